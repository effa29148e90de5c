"""Options with one meaning in all commands."""

from collections.abc import Iterable, Mapping
from glob import escape, glob
from pathlib import Path
from typing import Annotated, Any

import typer

from banditgrad.datasets.libsvm import SOURCES
from banditgrad.registry import CLASSIFICATION_LOSSES, PENALTIES, REGRESSION_LOSSES

FILE: dict[str, Any] = {"exists": True, "dir_okay": False, "readable": True, "show_default": False}
_TABLES = "Tables"


def complete(names: Iterable[str]) -> dict[str, Any]:
    """For an option's values: what the shell offers."""
    known = [str(name).lower() for name in names]
    return {"autocompletion": lambda incomplete: [name for name in known if name.startswith(incomplete.lower())]}


def complete_list(names: Iterable[str]) -> dict[str, Any]:
    """Likewise for values with commas between them: what may come after the last comma."""
    known = [str(name).lower() for name in names]

    def offers(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [f"{before}{comma}{name}" for name in known if name.startswith(last.lower()) and name not in taken]

    return {"autocompletion": offers}


def complete_data(incomplete: str) -> list[str]:
    """Files, folders and the sets that are known by name."""
    paths = sorted(Path(path) for path in glob(f"{escape(incomplete)}*"))
    files = [f"{path}/" if path.is_dir() else str(path) for path in paths]
    return files + [name for name in SOURCES if name.startswith(incomplete)]


DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="CSV, Parquet or svmlight, also compressed; several tables, or a pattern, are read as one; - is standard "
        f"input. Sets by name: {', '.join(SOURCES)}.",
        show_default=False,
        autocompletion=complete_data,
    ),
]
OtherData = {"metavar": "DATA", "show_default": False, "autocompletion": complete_data}
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        help=f"{_TABLES}: the label column, by name, position (from 1), first or last. Default: label, target, class "
        "or y.",
        metavar="NAME",
    ),
]
Drop = Annotated[list[str] | None, typer.Option("--drop", help=f"{_TABLES}: a column to leave out.", metavar="NAME")]
Category = Annotated[
    list[str] | None,
    typer.Option("--category", help=f"{_TABLES}: a column to take as words, though it holds numbers.", metavar="NAME"),
]
Number = Annotated[
    list[str] | None,
    typer.Option("--number", help=f"{_TABLES}: a column to take as numbers, though it looks like an index.",
                 metavar="NAME"),
]  # fmt: skip
Sep = Annotated[
    str | None,
    typer.Option("--sep", help=f"{_TABLES}: what separates cells: , ; | tab or space. Guessed.", metavar="CHAR"),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help=f"{_TABLES}: whether the first line names the columns. Guessed; else they are 1, 2, ...",
        show_default=False,
    ),
]
Na = Annotated[
    list[str] | None,
    typer.Option("--na", help=f"{_TABLES}: what stands for a missing value, besides NA, ? and the like.",
                 metavar="TEXT"),
]  # fmt: skip
Features = Annotated[
    int | None,
    typer.Option("--features", min=1, help="svmlight: the number of features, if more than occur.", metavar="D"),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")]
Alpha = Annotated[
    float,
    typer.Option("--alpha", min=0.0, help="λ, the strength of the penalty."),
]
C = Annotated[
    float | None,
    typer.Option("--C", help="In place of --alpha, for those who think in C: alpha is 1/(n C). For classes."),
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize", help="Let the penalty see columns of deviation 1; coefficients stay in the columns' own units."
    ),
]
L1Ratio = Annotated[float, typer.Option("--l1-ratio", min=0.0, max=1.0, help="Share of l1 in elasticnet.")]


def one_of(names: tuple[str | None, ...]) -> Any:
    """A callback that refuses other words, with exit code 2."""
    known = [str(name).lower() for name in names]

    def check(value: str) -> str:
        if value.lower() not in known:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.")
        return value.lower()

    return check


def list_of(known: Mapping[str, Any]) -> Any:
    """A callback for names with commas between them."""

    def check(value: str) -> str:
        names = [name.strip().lower() for name in value.split(",") if name.strip()]
        for name in names:
            if name not in known:
                raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}.")
        if not names or len(set(names)) < len(names):
            raise typer.BadParameter(f"pass one or more names, each once, with commas between; got {value!r}.")
        return ",".join(names)

    return check


LOSSES = (*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES)
LossName = Annotated[
    str,
    typer.Option(
        "--loss",
        callback=one_of(("auto", *LOSSES)),
        help=f"{', '.join(LOSSES)}; auto is log_loss for classes, squared_error for other numbers.",
        **complete(("auto", *LOSSES)),
    ),
]
Quantile = Annotated[float, typer.Option("--quantile", min=0.0, max=1.0, help="That of --loss quantile.")]
Power = Annotated[float, typer.Option("--power", min=1.0, max=2.0, help="Of the variance for --loss tweedie.")]
PenaltyName = Annotated[
    str,
    typer.Option(
        "--penalty", callback=one_of(PENALTIES), help="l1, l2, elasticnet or none.", **complete(map(str, PENALTIES))
    ),
]
WHEN_MISSING = ("impute", "error")
Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        callback=one_of(WHEN_MISSING),
        help=f"{_TABLES}: where numbers are missing, impute the median and mark the row, or stop with an error.",
        **complete(WHEN_MISSING),
    ),
]
