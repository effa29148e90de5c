"""Options of `fit` that say more of the penalty: factors, limits and groups, by the names of features or columns."""

import math
from typing import Annotated, Any

import numpy as np
import typer

from banditgrad.cli.inputs import Data
from banditgrad.registry import GROUPED

Factor = Annotated[
    list[str] | None,
    typer.Option(
        "--penalty-factor",
        help="Multiply the penalty of a feature, or of all features of a column; 0: none. By name, or position from 1.",
        metavar="NAME=NUMBER",
        show_default=False,
    ),
]
NonNegative = Annotated[bool, typer.Option("--non-negative", help="Coefficients of at least zero.")]
Lower = Annotated[
    float | None, typer.Option("--lower", max=0.0, help="A limit of all coefficients.", show_default=False)
]
Upper = Annotated[
    float | None, typer.Option("--upper", min=0.0, help="A limit of all coefficients.", show_default=False)
]
Group = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        help="For group_lasso: features or columns of a group. Default: the features of each column of a table.",
        metavar="NAME,NAME",
        show_default=False,
    ),
]


def settings_of(
    file: Data,
    penalty: str,
    factors: list[str] | None,
    non_negative: bool,
    lower: float | None,
    upper: float | None,
    groups: list[str] | None,
) -> dict[str, Any]:
    """What the options come to, as parameters of the estimators; nothing where none is given."""
    found: dict[str, Any] = {}
    if non_negative:
        found["positive"] = True
    if lower is not None or upper is not None:
        found["bounds"] = (-math.inf if lower is None else lower, math.inf if upper is None else upper)
    if penalty in GROUPED:
        if factors:
            raise typer.BadParameter("--penalty-factor is for penalties of single features, not for groups.")
        found["groups"] = [_features(file, names.split(","), "--group") for names in groups or []] or _columns(file)
    elif groups:
        raise typer.BadParameter("--group comes with --penalty group_lasso or sparse_group_lasso.")
    if factors:
        found["penalty_factor"] = _factors(file, factors)
    return found


def _factors(file: Data, given: list[str]) -> Any:
    each = np.ones(file.X.shape[1])
    for one in given:
        name, equals, number = one.rpartition("=")
        try:
            factor = float(number)
        except ValueError:
            factor = math.nan
        if not equals or not 0.0 <= factor < math.inf:
            raise typer.BadParameter(f"--penalty-factor expects NAME=NUMBER, of at least 0; got {one!r}.")
        each[_features(file, [name], "--penalty-factor")] = factor
    return each


def _columns(file: Data) -> list[list[int]]:
    """The features of each column of a table."""
    if file.encoding is None:
        raise typer.BadParameter("--group says which features are a group; only tables have columns to go by.")
    ends = np.cumsum([len(column.features) for column in file.encoding.columns]).tolist()
    return [list(range(end - len(c.features), end)) for c, end in zip(file.encoding.columns, ends, strict=True)]


def _features(file: Data, names: list[str], option: str) -> list[int]:
    """The numbers of the features with these names, or of the columns, or at these positions."""
    d, encoding = file.X.shape[1], file.encoding
    known: dict[str, list[int]] = {str(j + 1): [j] for j in range(d)}
    if encoding is not None:
        known = {column.name: features for column, features in zip(encoding.columns, _columns(file), strict=True)}
        known |= {name: [j] for j, name in enumerate(encoding.names) if name not in known}
    absent = [name for name in names if name not in known]
    if absent:
        raise typer.BadParameter(f"{option}: there is no feature {', '.join(map(repr, absent))}.")
    return sorted({j for name in names for j in known[name]})
