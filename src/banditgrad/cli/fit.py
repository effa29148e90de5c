"""`banditgrad fit`: train a linear model."""

import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from banditgrad.cli import inputs, options, outcome, screen
from banditgrad.registry import CLASSIFICATION_LOSSES, MULTI_CLASS, SAMPLERS, SOLVERS

INTERRUPTED = 130


def fit(
    data: options.DataFiles,
    test: Annotated[
        str | None, typer.Option("--test", help="Data to measure the model on.", **options.OtherData)
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write the model (JSON, no code in it).", metavar="FILE")
    ] = None,
    test_size: Annotated[
        float | None,
        typer.Option(
            "--test-size",
            min=0.0,
            max=1.0,
            help="Hold out this share of the rows and measure the model on it.",
            metavar="SHARE",
        ),
    ] = None,
    label: options.Label = None,
    drop: options.Drop = None,
    category: options.Category = None,
    number: options.Number = None,
    sep: options.Sep = None,
    header: options.Header = None,
    na: options.Na = None,
    missing: options.Missing = "impute",
    weights: Annotated[
        str | None, typer.Option("--weights", help="Tables: a column of row weights.", metavar="NAME")
    ] = None,
    features: options.Features = None,
    loss: options.LossName = "auto",
    quantile: options.Quantile = 0.5,
    power: options.Power = 1.5,
    penalty: options.PenaltyName = "l2",
    alpha: options.Alpha = 1e-4,
    l1_ratio: options.L1Ratio = 0.15,
    solver: Annotated[
        str,
        typer.Option(
            "--solver",
            callback=options.one_of(tuple(SOLVERS)),
            help=f"{', '.join(SOLVERS)}.",
            **options.complete(SOLVERS),
        ),
    ] = "auto",
    sampler: Annotated[
        str,
        typer.Option(
            "--sampler",
            callback=options.one_of(tuple(SAMPLERS)),
            help=f"{', '.join(SAMPLERS)}.",
            **options.complete(SAMPLERS),
        ),
    ] = "auto",
    step_size: Annotated[
        float | None, typer.Option("--step-size", help="The solver's step; found while running unless given.")
    ] = None,
    max_iter: Annotated[int, typer.Option("--max-iter", min=1, help="Passes over the data, at most.")] = 1000,
    tol: Annotated[
        float, typer.Option("--tol", min=0.0, help="Stop when the gradient is this much smaller than at w = 0.")
    ] = 1e-6,
    intercept: Annotated[bool, typer.Option("--intercept/--no-intercept", help="Whether to fit one.")] = True,
    multi_class: Annotated[
        str,
        typer.Option(
            "--multi-class",
            callback=options.one_of(MULTI_CLASS),
            help="More than two classes: multinomial, or ovr, one against the rest; auto: the first with log_loss.",
            **options.complete(MULTI_CLASS),
        ),
    ] = "auto",
    balanced: Annotated[bool, typer.Option("--balanced", help="Let all classes count the same.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", help="Threads for classes one against the rest.")] = -1,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Train a linear model and say what was decided, how good it is and what the sampling bought.

    Labels that are words, or few whole numbers, are classes; other numbers are regressed on. In a table, words become
    features of 0 and 1, one for each level that is not rare, and gaps in numbers are filled; the model file tells
    `predict` how. Ctrl-C stops the training and keeps what was reached.

    **Examples**

    `banditgrad fit a9a --penalty l1 --alpha 1e-3 --out a9a.json`

    `banditgrad fit visits.csv --label bought --test later.csv --balanced`

    `banditgrad fit 'clicks/*.parquet' --label clicked --test-size 0.2 --out clicks.json`

    `zcat kddcup.data.gz | banditgrad fit - --label last`
    """
    from banditgrad.linear_model import BanditClassifier, BanditRegressor, save_model

    if test is not None and test_size is not None:
        raise typer.BadParameter("--test and --test-size: pass one of them.")
    if step_size is not None and not 0.0 < step_size < np.inf:
        raise typer.BadParameter(f"--step-size must be positive, got {step_size:g}.")
    reading = inputs.Reading(label, drop, category, number, sep, header, na, missing, weights)
    file = inputs.read_data(data, reading, features)
    loss = inputs.choose_loss(file, loss)
    if out is not None:
        inputs.expect_writable(out)
    classify = loss in CLASSIFICATION_LOSSES
    settings: dict[str, Any] = {
        "loss": loss,
        "penalty": None if penalty == "none" else penalty,
        "alpha": alpha,
        "l1_ratio": l1_ratio,
        "solver": solver,
        "sampler": sampler,
        "step_size": "auto" if step_size is None else step_size,
        "max_iter": max_iter,
        "tol": tol,
        "fit_intercept": intercept,
        "random_state": seed,
        "n_jobs": jobs,
    }
    if balanced and not classify:
        raise typer.BadParameter(f"--balanced is for classes; the loss here is {loss}.")
    if classify:
        settings["multi_class"] = multi_class
    if balanced:
        settings["class_weight"] = "balanced"
    if not classify:
        settings |= {"quantile": quantile, "power": power}
    model = (BanditClassifier if classify else BanditRegressor)(**settings)
    other = None
    if test is not None:
        other = inputs.read_like(test, file.X.shape[1], file.encoding, file.zero_based, reading)
        inputs.expect_labels(other, file, classify)
    elif test_size is not None:
        file, other = inputs.split(file, test_size, classify, seed)
    results = outcome.decided(file, other, settings)
    if not json:
        outcome.show_decisions(results)
    run = _train(model, file, classify)
    if file.encoding is not None:
        model.feature_names_in_ = np.array(file.encoding.names, dtype=object)
        model.encoding_ = file.encoding
    if file.zero_based is not None:
        model.zero_based_ = file.zero_based
    results |= outcome.measured(model, file, other)
    results |= {"model": None if out is None else str(save_model(model, out)), **run}
    if json:
        screen.print_json(results)
    else:
        outcome.show(results)
    if run["interrupted"]:
        raise typer.Exit(INTERRUPTED)


def _train(model: Any, file: inputs.Data, classify: bool) -> dict[str, Any]:
    """Fit; the seconds without those of the compiler, what it warned of, and whether Ctrl-C ended it."""
    from banditgrad.linear_model.classifier import is_multinomial

    interrupted = False
    classes = np.unique(file.y).size if classify else 1
    problems = 1 if classes == 2 or (classify and is_multinomial(model, classes)) else classes
    begin = time.perf_counter()
    with (
        warnings.catch_warnings(record=True) as caught,
        screen.training(problems) as callback,
        screen.compiling() as compiled,
    ):
        warnings.simplefilter("always")
        model.set_params(callback=callback)
        try:
            model.fit(file.X, file.y, sample_weight=file.weights)
        except KeyboardInterrupt:
            if not hasattr(model, "coef_"):
                raise
            interrupted = True
        finally:
            model.set_params(callback=None)
    return {
        "seconds": time.perf_counter() - begin - compiled(),
        "seconds_compiling": compiled(),
        "remarks": [str(warning.message) for warning in caught],
        "interrupted": interrupted,
    }
