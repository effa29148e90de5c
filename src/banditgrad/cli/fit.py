"""`banditgrad fit`: train a linear model."""

import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from banditgrad.cli import constraints, inputs, options, outcome, screen
from banditgrad.registry import CLASSIFICATION_LOSSES, MULTI_CLASS, SAMPLERS, SOLVERS

ALPHA = 1e-4


def fit(
    context: typer.Context,
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
    alpha: options.Alpha = ALPHA,
    c: options.C = None,
    cv: Annotated[
        int | None,
        typer.Option("--cv", min=2, help="Choose alpha by cross-validation with so many folds.", metavar="FOLDS"),
    ] = None,
    alphas: Annotated[int, typer.Option("--alphas", min=1, help="How many strengths --cv tries.")] = 30,
    standardize: options.Standardize = False,
    l1_ratio: options.L1Ratio = 0.15,
    penalty_factor: constraints.Factor = None,
    non_negative: constraints.NonNegative = False,
    lower: constraints.Lower = None,
    upper: constraints.Upper = None,
    group: constraints.Group = None,
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
    summary: Annotated[
        bool, typer.Option("--summary", help="Print every coefficient with its standard error, for l2 and no penalty.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", help="Threads for classes one against the rest, or for folds.")] = -1,
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

    `banditgrad fit visits.csv --label bought --standardize --cv 5 --penalty l1`

    `banditgrad fit 'clicks/*.parquet' --label clicked --test-size 0.2 --out clicks.json`

    `zcat kddcup.data.gz | banditgrad fit - --label last`
    """
    from banditgrad.linear_model import BanditClassifier, BanditRegressor, save_model

    source = context.get_parameter_source("alpha")
    alpha_given = source is not None and source.name != "DEFAULT"
    if [alpha_given, c is not None, cv is not None].count(True) > 1:
        raise typer.BadParameter("--alpha, --C and --cv all say how strong the penalty is: pass one of them.")
    if cv is not None and penalty == "none":
        raise typer.BadParameter("--cv chooses the strength of a penalty, and with --penalty none there is none.")
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
        "standardize": standardize,
        "random_state": seed,
        "n_jobs": jobs,
    }
    settings |= constraints.settings_of(file, penalty, penalty_factor, non_negative, lower, upper, group)
    if balanced and not classify:
        raise typer.BadParameter(f"--balanced is for classes; the loss here is {loss}.")
    if classify:
        settings["multi_class"] = multi_class
    if balanced:
        settings["class_weight"] = "balanced"
    if not classify:
        settings |= {"quantile": quantile, "power": power}
        if c is not None:
            raise typer.BadParameter(f"--C is for classes; the loss here is {loss}. Pass --alpha.")
    elif c is not None:
        settings |= {"C": c}
    model = (BanditClassifier if classify else BanditRegressor)(**settings)
    other = None
    if test is not None:
        other = inputs.read_like(test, file.X.shape[1], file.encoding, file.zero_based, reading)
        inputs.expect_labels(other, file, classify)
    elif test_size is not None:
        file, other = inputs.split(file, test_size, classify, seed)
    results = outcome.decided(file, other, settings if cv is None else settings | {"folds": cv})
    if not json:
        outcome.show_decisions(results)
    run: dict[str, Any] = {}
    if cv is not None:
        model, run = _choose_strength(model, cv, alphas, file)
    run |= _train(model, file, classify, run.get("seconds_compiling", 0.0))
    if file.encoding is not None:
        model.feature_names_in_ = np.array(file.encoding.names, dtype=object)
        model.encoding_ = file.encoding
    if file.zero_based is not None:
        model.zero_based_ = file.zero_based
    results |= outcome.measured(model, file, other)
    results |= {"model": None if out is None else str(save_model(model, out)), **run}
    if summary:
        _add_summary(results, model, file)
    if json:
        screen.print_json(results)
    else:
        outcome.show(results)
    if run["interrupted"]:
        raise typer.Exit(screen.INTERRUPTED)


def _choose_strength(model: Any, folds: int, alphas: int, file: inputs.Data) -> tuple[Any, dict[str, Any]]:
    """The model with alpha chosen by cross-validation, and what there is to tell of the choice."""
    from banditgrad.linear_model import BanditClassifierCV, BanditRegressorCV

    kind = BanditClassifierCV if hasattr(model, "class_weight") else BanditRegressorCV
    shared = kind().get_params().keys() & model.get_params().keys()
    chooser = kind(**{name: getattr(model, name) for name in shared}).set_params(cv=folds, alphas=alphas)
    begin = time.perf_counter()
    with (
        warnings.catch_warnings(record=True) as caught,
        screen.working(f"choosing alpha by {folds} folds"),
        screen.compiling() as compiled,
    ):
        warnings.simplefilter("always")
        chooser.fit(file.X, file.y, sample_weight=file.weights)
    path, k = chooser.path_, int(np.flatnonzero(chooser.path_.alphas == chooser.alpha_)[0])
    about = {
        "folds": folds,
        "alpha": chooser.alpha_,
        "tried": len(path.alphas),
        "weakest": float(path.alphas[-1]),
        "strongest": float(path.alphas[0]),
        "measure": "accuracy" if hasattr(chooser, "classes_") else "R²" if model.loss == "squared_error" else "score",
        "score": chooser.best_score_,
        "standard_error": float(path.standard_errors[k]),
        "seconds": time.perf_counter() - begin - compiled(),
        "remarks": sorted({str(warning.message) for warning in caught}),
    }
    return model.set_params(alpha=chooser.alpha_), {"cv": about, "seconds_compiling": compiled()}


def _add_summary(results: dict[str, Any], model: Any, file: inputs.Data) -> None:
    """The coefficients with their standard errors, or why there are none."""
    try:
        table = inputs.call(lambda X: model.summary(X, file.y, file.weights), file)
    except ValueError as error:
        results["remarks"].append(f"No summary. {error}")
    else:
        results["summary"] = table.rename_axis("feature").reset_index().to_dict("records")


def _train(model: Any, file: inputs.Data, classify: bool, compiled_before: float) -> dict[str, Any]:
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
        "seconds_compiling": compiled_before + compiled(),
        "remarks": [str(warning.message) for warning in caught],
        "interrupted": interrupted,
    }
