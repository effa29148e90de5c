"""`banditgrad predict`: use a trained model."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from banditgrad.cli import inputs, screen
from banditgrad.report.files import csv_text


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `banditgrad fit --out` wrote.", **inputs.FILE)],
    data: inputs.DataFile,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write there, not to the screen.", metavar="FILE")] = None,
    label: inputs.Label = None,
    json: inputs.Json = False,
) -> None:
    """Predict with a model, as CSV: a line per row of the data.

    A table's columns are found by the names that the model knows; others are left alone.

    **Examples**

    `banditgrad predict a9a.json a9a.t --out predictions.csv`

    `banditgrad predict visits.json new.csv --proba`
    """
    from banditgrad.linear_model import BanditClassifier, load_model

    fitted = load_model(model)
    if proba and not (isinstance(fitted, BanditClassifier) and fitted.loss == "log_loss"):
        raise ValueError(f"{model} gives no probabilities: its loss is {fitted.loss}. --proba needs log_loss.")
    names = getattr(fitted, "feature_names_in_", None)
    file = inputs.read_like(
        data,
        fitted.n_features_in_,
        None if names is None else names.tolist(),
        getattr(fitted, "zero_based_", None),
        label,
        need_label=False,
    )
    columns: dict[str, Any] = {"prediction": inputs.tidy(inputs.call(fitted.predict, file))}
    if proba:
        p = inputs.call(fitted.predict_proba, file)
        columns.update({f"p({name})": p[:, k] for k, name in enumerate(fitted.classes_)})
    if out is not None:
        inputs.write(out, _csv(columns))
        screen.err.print(f"{file.X.shape[0]:,} predictions written to {screen.escape(str(out))}")
    if json:
        screen.print_json({**columns, "out": None if out is None else str(out)})
    elif out is None:
        print(_csv(columns), end="")


def _csv(columns: dict[str, Any]) -> str:
    return csv_text(columns, zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True))
