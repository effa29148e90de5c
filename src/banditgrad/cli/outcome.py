"""What `fit` tells: what it decided before it trains, and how good the model is."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from banditgrad.cli import inputs, screen
from banditgrad.datasets.encoding import Levels
from banditgrad.registry import CLASSIFICATION_LOSSES, name_of
from banditgrad.solvers import SampledNewton

TABLE_CLASSES, CONFUSION_CLASSES = 30, 8  # up to so many classes are told one by one, and against one another
TOP = 8  # of the coefficients


def decided(file: inputs.Data, other: inputs.Data | None, settings: dict[str, Any]) -> dict[str, Any]:
    """The task, the rows and the columns, and how these became features."""
    results: dict[str, Any] = {
        "data": file.origin,
        "rows": file.X.shape[0],
        "test_rows": None if other is None else other.X.shape[0],
        "features": file.X.shape[1],
        "settings": settings,
        "task": "regression",
        "notes": [
            *file.notes,
            *(other.notes if other is not None else ()),
            *(() if settings["standardize"] else inputs.scale_notes(file)),
        ],
    }
    if settings["loss"] in CLASSIFICATION_LOSSES:
        results |= {"task": "classification", "classes": inputs.by_size(file.y)}
    if file.encoding is not None:
        words = [column for column in file.encoding.columns if isinstance(column, Levels)]
        results["columns"] = {
            "numbers": len(file.encoding.columns) - len(words),
            "words": {column.name: len(column.features) for column in words},
        }
    return results


def measured(model: Any, file: inputs.Data, other: inputs.Data | None) -> dict[str, Any]:
    """Scores, and what there is to see in the model."""
    results = {
        "objective": float(model.objective_.mean()),
        "solver": model.solver_,
        "passes": model.n_iter_,
        "nonzeros": int(np.count_nonzero(model.coef_)),
        "coefficients": int(model.coef_.size),
        "variance_ratio": model.effective_variance_ratio_,
        "largest": _largest(model, file),
        "train": inputs.scores(model, file),
        "test": None if other is None else inputs.scores(model, other),
    }
    if hasattr(model, "classes_"):
        results |= _by_class(model, other or file)
    return results


def _by_class(model: Any, data: inputs.Data) -> dict[str, Any]:
    """Precision and recall of each class, the largest first, and how often each was taken for which."""
    from sklearn.metrics import confusion_matrix

    counts = inputs.by_size(data.y)
    names = [*counts, *(str(name) for name in model.classes_ if str(name) not in counts)]
    confusion = confusion_matrix(data.y.astype(str), inputs.call(model.predict, data).astype(str), labels=names)
    right = np.diag(confusion)
    with np.errstate(invalid="ignore"):
        precision, recall = right / confusion.sum(axis=0), right / confusion.sum(axis=1)
    by_class = {
        name: {"rows": int(confusion[k].sum()), "precision": float(precision[k]), "recall": float(recall[k])}
        for k, name in enumerate(names)
    }
    return {"by_class": by_class, "confusion": {name: confusion[k].tolist() for k, name in enumerate(names)}}


def _largest(model: Any, file: inputs.Data) -> list[dict[str, Any]]:
    """The coefficients that move predictions most: by coefficient times the feature's standard deviation."""
    coef = np.atleast_2d(model.coef_)
    effects = coef * _deviations(file.X)
    problems = model.classes_[-len(coef) :] if hasattr(model, "classes_") else [None]
    first = 0 if file.zero_based else 1
    order = np.argsort(-np.abs(effects), axis=None, kind="stable")[:TOP]
    return [
        {
            "feature": file.names[j] if file.names is not None else str(j + first),
            "class": None if problems[k] is None else str(problems[k]),
            "coefficient": float(coef[k, j]),
            "effect": float(effects[k, j]),
        }
        for k, j in zip(*np.unravel_index(order, coef.shape), strict=True)
        if coef[k, j] != 0.0
    ]


def _deviations(X: Any) -> NDArray[np.float64]:
    mean = np.asarray(X.mean(axis=0)).ravel()
    if not sp.issparse(X):
        return np.asarray(X.std(axis=0, dtype=np.float64))
    squares = np.bincount(X.indices, np.square(X.data, dtype=np.float64), minlength=X.shape[1]) / X.shape[0]
    return np.sqrt(np.maximum(squares - mean**2, 0.0))


def show_decisions(results: dict[str, Any]) -> None:
    """Before the training."""
    settings = results["settings"]
    rows = f"{results['rows']:,} rows"
    if results["test_rows"] is not None:
        rows += f" to train on, {results['test_rows']:,} to test on"
    screen.facts(
        [
            ("data", f"{results['data']}: {rows}"),
            ("features", _features(results)),
            ("task", _task(results)),
            ("model", _model(settings)),
        ]
    )
    for note in results["notes"]:
        screen.note(note)


def _model(settings: dict[str, Any]) -> str:
    scaled = ", columns standardised" if settings["standardize"] else ""
    if settings["penalty"] is None:
        return f"{settings['loss']}, no penalty{scaled}"
    if "folds" in settings:
        return f"{settings['loss']}, {settings['penalty']} penalty, alpha by {settings['folds']} folds{scaled}"
    strength = f"C {settings['C']:g}" if "C" in settings else f"alpha {settings['alpha']:g}"
    return f"{settings['loss']}, {settings['penalty']} penalty, {strength}{scaled}"


def _features(results: dict[str, Any]) -> str:
    columns, d = results.get("columns"), results["features"]
    if columns is None or not columns["words"]:
        return f"{d:,}"
    words = [f"{name} ({count})" for name, count in columns["words"].items()]
    listed = ", ".join(words[:6]) + (", ..." if len(words) > 6 else "")
    return f"{d:,}, from {columns['numbers']:,} columns of numbers and {len(words):,} of words, one-hot: {listed}"


def _task(results: dict[str, Any]) -> str:
    if results["task"] == "regression":
        return "regression, since labels are numbers (--loss log_loss for classes)"
    return f"classification, {inputs.in_shares(results['classes'])}"


def show(results: dict[str, Any]) -> None:
    """After the training."""
    compiled = results["seconds_compiling"]
    beside = f", after {compiled:.1f} s of compiling" if compiled >= 0.05 else ""
    screen.facts(
        [
            *([("alpha", _chosen(results["cv"]))] if "cv" in results else []),
            ("trained", f"{results['seconds']:.2f} s, {results['passes']} passes of {results['solver']}{beside}"),
            ("objective", f"{results['objective']:.8g}"),
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
    if len(results.get("by_class", ())) <= TABLE_CLASSES:
        _show_classes(results)
    if "summary" in results:
        _show_summary(results["summary"])
    else:
        _show_largest(results["largest"])
    if results["model"]:
        screen.out.print(f"Model written to {screen.escape(results['model'])}")
    for remark in results["remarks"]:
        screen.note(remark)
    if results["interrupted"]:
        screen.note("this is what was reached by then.", "Interrupted")


def _chosen(cv: dict[str, Any]) -> str:
    return (
        f"{cv['alpha']:.3g}, the best of {cv['tried']} from {cv['strongest']:.3g} to {cv['weakest']:.3g} by "
        f"{cv['folds']} folds: {cv['measure']} {cv['score']:.4g} ± {cv['standard_error']:.1g}; {cv['seconds']:.2f} s"
    )


def _bought(solver: str, ratio: float) -> str:
    """What the sampling bought, in words."""
    if solver == name_of(SampledNewton):
        return "hardly any draws; `--solver proxsvrg` shows what sampling buys, `banditgrad inspect` whether it pays"
    worth = f", worth {1 / ratio:.1f} times the draws" if ratio < 0.95 else ": no gain here"
    return f"variance {screen.number(ratio, 2)} of uniform sampling's{worth}"


def _show_classes(results: dict[str, Any]) -> None:
    if "by_class" not in results:
        return
    few = len(results["by_class"]) <= CONFUSION_CLASSES
    taken = [f"as {name}" for name in results["by_class"]] if few else []
    where = "train" if results["test"] is None else "test"
    screen.table(
        (f"class ({where})", "rows", "precision", "recall", *taken),
        [
            (
                name,
                f"{each['rows']:,}",
                screen.number(each["precision"]),
                screen.number(each["recall"]),
                *(f"{count:,}" for count in results["confusion"][name] if few),
            )
            for name, each in results["by_class"].items()
        ],
    )


def _show_summary(rows: list[dict[str, Any]]) -> None:
    words = [name for name in ("feature", "class") if name in rows[0]]
    numbers = [name for name in rows[0] if name not in words]
    screen.table(
        [name.replace("_", " ") for name in (*words, *numbers)],
        [(*(str(row[name]) for name in words), *(screen.number(row[name]) for name in numbers)) for row in rows],
        left=len(words),
    )


def _show_largest(largest: list[dict[str, Any]]) -> None:
    if not largest:
        return
    several = len({each["class"] for each in largest}) > 1
    screen.table(
        ("largest coefficients", *(["class"] if several else []), "coefficient", "× deviation"),
        [
            (
                each["feature"],
                *([each["class"]] if several else []),
                screen.number(each["coefficient"]),
                screen.number(each["effect"]),
            )
            for each in largest
        ],
        left=1 + several,
    )
