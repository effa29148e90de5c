"""Choosing alpha by cross-validation, against the peers: 100 alphas × 5 folds, the same ones for everybody.

Each contender runs once in a process of its own, on one thread, after a run with two alphas on which it compiles.
Processor and wall seconds are those of the whole call, fits of the folds, scores and the last fit included. What takes
more than --deadline processor seconds is stopped. Lines are kept in --out: stopped, it goes on where it was.

    python benchmarks/cross_validation.py [--data w8a ...] [--tasks lasso ...] [--deadline 600]
    python benchmarks/cross_validation.py --show --document docs/how-to/choosing-alpha.md
"""

import argparse
import json
import multiprocessing
import os
import resource
import signal
import time
import warnings
from functools import cache
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from banditgrad.linear_model import BanditClassifierCV, BanditRegressorCV
from sets import all_sets

ALPHAS, FOLDS = 100, 5
RANGE = {"logistic-l2": 1e-6, "logistic-l1": 1e-3, "lasso": 1e-3}  # the weakest alpha over the strongest
DATA = {"w8a": 1, "debian-tfidf": 1, "fashion": 4}  # one row of so many


def grid(task, X, y):
    """Strengths from what leaves nothing, or for a ridge the mean squared length of the rows, down."""
    if task == "logistic-l2":
        largest = 0.25 * (sp.csr_array(X).power(2).sum() if sp.issparse(X) else np.einsum("ij,ij", X, X)) / len(y)
    else:
        slopes = X.T @ (y - y.mean()) / len(y)
        largest = np.abs(slopes).max() * (0.5 if task == "logistic-l1" else 1.0)
    return np.geomspace(largest, largest * RANGE[task], ALPHAS)


def folds(task, y):
    """Pairs of rows to train on and to test on, with the same shares of both labels."""
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros((len(y), 1)), y))


def ours(task, X, y, alphas, cv, **options):
    kind = BanditRegressorCV if task == "lasso" else BanditClassifierCV
    scoring = "neg_mean_squared_error" if task == "lasso" else "neg_log_loss"
    penalty = "l2" if task == "logistic-l2" else "l1"
    model = kind(penalty=penalty, alphas=alphas, cv=cv, scoring=scoring, random_state=0, **options).fit(X, y)
    return model.alpha_, -model.best_score_


def complete(task, X, y, alphas, cv):
    return ours(task, X, y, alphas, cv, patience=None)


def scikit(solver):
    def run(task, X, y, alphas, cv):
        from sklearn.linear_model import LogisticRegressionCV

        strengths = 1.0 / (alphas * (1.0 - 1.0 / FOLDS) * len(y))
        model = LogisticRegressionCV(
            Cs=strengths, l1_ratios=(0.0 if task == "logistic-l2" else 1.0,), cv=cv, scoring="neg_log_loss",
            solver=solver, max_iter=1000, random_state=0, use_legacy_attributes=False,
        ).fit(X, y)  # fmt: skip
        return 1.0 / (float(np.ravel(model.C_)[0]) * 0.8 * len(y)), -float(model.scores_.mean(axis=0).max())

    return run


def lasso_cv(task, X, y, alphas, cv):
    """celer's is left out: it does not know scikit-learn 1.9."""
    from sklearn.linear_model import LassoCV

    columns = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
    model = LassoCV(alphas=alphas, cv=cv).fit(columns, y)
    return model.alpha_, float(model.mse_path_.mean(axis=-1).min())


def skglm_path(task, X, y, alphas, cv):
    """No estimator of skglm's chooses alpha: warm-started fits down the grid, fold by fold, as its examples do."""
    from skglm import Lasso, SparseLogisticRegression
    from sklearn.metrics import log_loss

    X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
    rows = sp.csr_matrix(X) if sp.issparse(X) else X
    kind = Lasso if task == "lasso" else SparseLogisticRegression
    scores = np.zeros((len(alphas), len(cv)))
    for fold, (train, test) in enumerate(cv):
        part = sp.csc_matrix(rows[train]) if sp.issparse(X) else np.asfortranarray(X[train])
        model = kind(warm_start=True)
        for k, alpha in enumerate(alphas):
            model.set_params(alpha=alpha).fit(part, y[train])
            if task == "lasso":
                scores[k, fold] = np.mean((model.predict(rows[test]) - y[test]) ** 2)
            else:
                scores[k, fold] = log_loss(y[test], model.predict_proba(rows[test]))
    best = scores.mean(axis=1).argmin()
    kind(alpha=alphas[best]).fit(X, y)
    return alphas[best], scores[best].mean()


def glum_cv(task, X, y, alphas, cv):
    """Its deviance is twice the log loss, and the squared error."""
    from glum import GeneralizedLinearRegressorCV

    family, targets = ("normal", y) if task == "lasso" else ("binomial", (y > 0).astype(float))
    columns = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
    model = GeneralizedLinearRegressorCV(
        l1_ratio=0.0 if task == "logistic-l2" else 1.0, alphas=alphas, family=family, cv=cv, max_iter=1000
    ).fit(columns, targets)
    scores = model.deviance_path_.mean(axis=0).min()
    return model.alpha_, float(scores) * (1.0 if task == "lasso" else 0.5)


LOGISTIC = {"ours": ours, "ours, all 100 alphas": complete, "glum GeneralizedLinearRegressorCV": glum_cv}
CONTENDERS = {
    "logistic-l2": {
        **LOGISTIC,
        "LogisticRegressionCV, lbfgs": scikit("lbfgs"),
        "LogisticRegressionCV, newton-cholesky": scikit("newton-cholesky"),
    },
    "logistic-l1": {**LOGISTIC, "skglm": skglm_path, "LogisticRegressionCV, saga": scikit("saga")},
    "lasso": {
        "ours": ours,
        "ours, all 100 alphas": complete,
        "LassoCV": lasso_cv,
        "skglm": skglm_path,
        "glum GeneralizedLinearRegressorCV": glum_cv,
    },
}


@cache
def load(data):
    X, y = all_sets()[data].load()
    X, y = X[:: DATA.get(data, 1)], y[:: DATA.get(data, 1)]
    if sp.issparse(X):
        X = sp.csr_matrix(X)  # peers take matrices
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def run(connection, data, task, name, deadline):
    """In a process of its own: send a line of results."""
    X, y = load(data)
    contender = CONTENDERS[task][name]
    alphas, cv = grid(task, X, y), folds(task, y)
    warnings.simplefilter("ignore")
    try:
        contender(task, X, y, alphas[:2], cv)
        cpu, wall = time.process_time(), time.perf_counter()
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu + deadline) + 1, resource.RLIM_INFINITY))
        alpha, score = contender(task, X, y, alphas, cv)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        connection.send({"cpu": cpu, "wall": wall, "alpha": float(alpha), "score": float(score)})
    except Exception as error:  # whatever a library raises, its line says so
        connection.send({"failed": f"{type(error).__name__}: {error}"[:200]})


def measure(data, task, name, deadline):
    """Run a contender in a process of its own, which has the data already."""
    load(data)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=run, args=(theirs, data, task, name, deadline))
    child.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        child.join()
        out_of_time = child.exitcode == -signal.SIGXCPU
        return {"stopped": deadline} if out_of_time else {"failed": f"its process ended with {child.exitcode}"}


def table(lines):
    """Markdown: a part for each task and set, the fastest first."""
    parts = []
    for data, task in dict.fromkeys((line["data"], line["task"]) for line in lines):
        mine = [line for line in lines if (line["data"], line["task"]) == (data, task)]
        mine.sort(key=lambda line: line.get("cpu", np.inf))
        rows = [f"| {line['name']} | {' | '.join(cells(line))} |" for line in mine]
        head = f"| {data}, {task} | processor s | wall s | alpha | held-out loss |\n|---|---|---|---|---|"
        parts.append("\n".join([head, *rows]))
    return "\n\n".join(parts)


def cells(line):
    if "cpu" in line:
        return f"{line['cpu']:.3g}", f"{line['wall']:.3g}", f"{line['alpha']:.2e}", f"{line['score']:.5f}"
    return (f"more than {line['stopped']:.0f}" if "stopped" in line else "failed", "–", "–", "–")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--tasks", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--only", nargs="+", help="contenders")
    parser.add_argument("--deadline", type=float, default=600.0, help="processor seconds for each")
    parser.add_argument("--out", type=Path, default=Path("out/bench/cross-validation.jsonl"))
    parser.add_argument("--document", type=Path, help="a page to fill in")
    parser.add_argument("--show", action="store_true", help="run nothing")
    return parser.parse_args()


def main():
    options = arguments()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    wanted = [(d, t, name) for d in options.data for t in options.tasks for name in options.only or CONTENDERS[t]]
    for data, task, name in [] if options.show else wanted:
        if name not in CONTENDERS[task] or any((o["data"], o["task"], o["name"]) == (data, task, name) for o in lines):
            continue
        line = {"data": data, "task": task, "name": name, **measure(data, task, name, options.deadline)}
        print(line, flush=True)
        lines.append(line)
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
    if options.document:
        from race.display import fill_document

        fill_document(options.document, "cross-validation", table(lines))
    print(table(lines))


if __name__ == "__main__":
    main()
