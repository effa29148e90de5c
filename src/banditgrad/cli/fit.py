"""`banditgrad fit`: train a linear model."""

import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from banditgrad.cli import inputs, options, screen
from banditgrad.registry import CLASSIFICATION_LOSSES, SAMPLERS, SOLVERS, name_of
from banditgrad.solvers import SampledNewton

INTERRUPTED = 130


def fit(
    data: options.DataFiles,
    test: Annotated[
        str | None, typer.Option("--test", help="Data to measure the model on.", **options.OtherData)
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write the model (JSON, no code in it).", metavar="FILE")
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
    penalty: options.PenaltyName = "l2",
    alpha: options.Alpha = 1e-4,
    l1_ratio: options.L1Ratio = 0.15,
    solver: Annotated[
        str, typer.Option("--solver", callback=options.one_of(tuple(SOLVERS)), help=f"{', '.join(SOLVERS)}.")
    ] = "auto",
    sampler: Annotated[
        str, typer.Option("--sampler", callback=options.one_of(tuple(SAMPLERS)), help=f"{', '.join(SAMPLERS)}.")
    ] = "auto",
    step_size: Annotated[
        float | None, typer.Option("--step-size", help="The solver's step; found while running unless given.")
    ] = None,
    max_iter: Annotated[int, typer.Option("--max-iter", min=1, help="Passes over the data, at most.")] = 1000,
    tol: Annotated[
        float, typer.Option("--tol", min=0.0, help="Stop when the gradient is this much smaller than at w = 0.")
    ] = 1e-6,
    intercept: Annotated[bool, typer.Option("--intercept/--no-intercept", help="Whether to fit one.")] = True,
    balanced: Annotated[bool, typer.Option("--balanced", help="Let all classes count the same.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", help="Threads for more than two classes.")] = -1,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Train a linear model and say how good it is and what the sampling bought.

    Labels that are words, or few whole numbers, are classes; other numbers are regressed on. Ctrl-C stops the training
    and keeps what was reached.

    **Examples**

    `banditgrad fit a9a --penalty l1 --alpha 1e-3 --out a9a.json`

    `banditgrad fit visits.csv --label bought --test later.csv --balanced`
    """
    from banditgrad.linear_model import BanditClassifier, BanditRegressor, save_model

    reading = inputs.Reading(label, drop, category, number, sep, header, na, missing, weights)
    file = inputs.read_data(data, reading, features)
    loss = inputs.choose_loss(file, loss)
    if step_size is not None and not 0.0 < step_size < np.inf:
        raise typer.BadParameter(f"--step-size must be positive, got {step_size:g}.")
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
    if balanced:
        settings["class_weight"] = "balanced"
    model = (BanditClassifier if classify else BanditRegressor)(**settings)
    other = None
    if test is not None:
        other = inputs.read_like(test, file.X.shape[1], file.encoding, file.zero_based, reading)
    if other is not None:
        inputs.expect_labels(other, file, classify)
    begin = time.perf_counter()
    remarks, interrupted = _train(model, file)
    seconds = time.perf_counter() - begin
    model.set_params(callback=None)
    if file.names is not None:
        model.feature_names_in_ = np.array(file.names, dtype=object)
        model.encoding_ = file.encoding
    if file.zero_based is not None:
        model.zero_based_ = file.zero_based
    results = {
        "data": file.origin,
        "rows": file.X.shape[0],
        "features": file.X.shape[1],
        "settings": settings,
        "objective": float(model.objective_.mean()),
        "solver": model.solver_,
        "passes": model.n_iter_,
        "seconds": seconds,
        "nonzeros": int(np.count_nonzero(model.coef_)),
        "coefficients": int(model.coef_.size),
        "variance_ratio": model.effective_variance_ratio_,
        "train": inputs.scores(model, file),
        "test": None if other is None else inputs.scores(model, other),
        "model": None if out is None else str(save_model(model, out)),
        "notes": list(file.notes),
        "remarks": remarks,
        "interrupted": interrupted,
    }
    if json:
        screen.print_json(results)
    else:
        _show(results)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _train(model: Any, file: inputs.Data) -> tuple[list[str], bool]:
    """Fit; what it warned of, and whether Ctrl-C ended it with something to keep."""
    interrupted = False
    with warnings.catch_warnings(record=True) as caught, screen.working("compiling") as say:
        warnings.simplefilter("always")
        model.set_params(callback=screen.pass_by_pass(say, "training"))
        try:
            model.fit(file.X, file.y, sample_weight=file.weights)
        except KeyboardInterrupt:
            if not hasattr(model, "coef_"):
                raise
            interrupted = True
    return [str(warning.message) for warning in caught], interrupted


def _bought(solver: str, ratio: float) -> str:
    """What the sampling bought, in words."""
    if solver == name_of(SampledNewton):
        return "hardly any draws; `--solver proxsvrg` shows what sampling buys, `banditgrad inspect` whether it pays"
    worth = f", worth {1 / ratio:.1f} times the draws" if ratio < 0.95 else ": no gain here"
    return f"variance {ratio:.2f} of uniform sampling's{worth}"


def _show(results: dict[str, Any]) -> None:
    settings = results["settings"]
    penalty = settings["penalty"] or "no penalty"
    screen.facts(
        [
            ("data", f"{results['data']}, {results['rows']:,} × {results['features']:,}"),
            ("model", f"{settings['loss']}, {penalty}, alpha {settings['alpha']:g}"),
            ("objective", f"{results['objective']:.8g}"),
            ("passes", f"{results['passes']} of {results['solver']} in {results['seconds']:.1f} s"),
            ("non-zeros", f"{results['nonzeros']:,} of {results['coefficients']:,} coefficients"),
            ("sampling", _bought(results["solver"], results["variance_ratio"])),
        ]
    )
    names = list(results["train"])
    rows = [
        (part, *(screen.number(results[part][name], 4) for name in names))
        for part in ("train", "test")
        if results[part] is not None
    ]
    screen.table(("", *names), rows)
    if results["model"]:
        screen.out.print(f"Model written to {screen.escape(results['model'])}")
    for remark in [*results["notes"], *results["remarks"]]:
        screen.err.print(f"[yellow]Note:[/] {screen.escape(remark)}")
    if results["interrupted"]:
        screen.err.print("[yellow]Interrupted:[/] this is what was reached by then.")
