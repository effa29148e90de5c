"""`banditgrad predict`: use a trained model."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from banditgrad.cli import inputs, options, screen
from banditgrad.report.files import csv_text


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `banditgrad fit --out` wrote.", **options.FILE)],
    data: options.DataFiles,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write there, not to the screen.", metavar="FILE")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="Tables: a column to put before the predictions, such as an id.", metavar="NAME"),
    ] = None,
    sep: options.Sep = None,
    header: options.Header = None,
    na: options.Na = None,
    label: options.Label = None,
    json: options.Json = False,
) -> None:
    """Predict with a model, as CSV: a line per row of the data.

    A table's columns are found by the names that the model knows, and become features as they did when it was trained;
    others are left alone. A level that was not seen then counts as rare, or as none where no level was rare.

    **Examples**

    `banditgrad predict a9a.json a9a.t --out predictions.csv`

    `banditgrad predict visits.json new.csv --proba --keep id`

    `zcat new.csv.gz | banditgrad predict visits.json -`
    """
    from banditgrad.linear_model import BanditClassifier, load_model

    try:
        fitted = load_model(model)
    except ValueError as error:
        if len(data) == 1 and _is_model(data[0]):
            raise typer.BadParameter(f"The model comes first: banditgrad predict {data[0]} {model}") from None
        raise error
    if proba and not (isinstance(fitted, BanditClassifier) and hasattr(fitted, "predict_proba")):
        raise ValueError(
            f"{model} gives no probabilities: its loss is {fitted.loss}. --proba needs a model of log_loss or "
            "modified_huber."
        )
    reading = inputs.Reading(label, sep=sep, header=header, na=na)
    file = inputs.read_like(
        data,
        fitted.n_features_in_,
        inputs.encoding_of(fitted),
        getattr(fitted, "zero_based_", None),
        reading,
        need_label=False,
        keep=keep,
    )
    columns: dict[str, Any] = {**file.kept, "prediction": inputs.tidy(inputs.call(fitted.predict, file))}
    if proba:
        p = inputs.call(fitted.predict_proba, file)
        columns.update({f"p({name})": p[:, k] for k, name in enumerate(fitted.classes_)})
    for note in file.notes:
        screen.err.print(f"[yellow]Note:[/] {screen.escape(note)}")
    if out is not None:
        inputs.write(out, _csv(columns))
        screen.err.print(f"{file.X.shape[0]:,} predictions written to {screen.escape(str(out))}")
    if json:
        screen.print_json({**columns, "out": None if out is None else str(out)})
    elif out is None:
        print(_csv(columns), end="")


def _is_model(path: str) -> bool:
    from banditgrad.linear_model import load_model

    try:
        load_model(path)
    except (ValueError, OSError):
        return False
    return True


def _csv(columns: dict[str, Any]) -> str:
    return csv_text(columns, zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True))
