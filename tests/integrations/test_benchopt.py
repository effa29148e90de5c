"""The solver files for benchopt, run by benchopt itself in benchmarks with the objectives of the published ones."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reference import soft

FOLDER = Path(__file__).parents[2] / "integrations" / "benchopt"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("benchopt") is None, reason='benchopt is not installed: pip install "banditgrad[dev]"'
)

LOGISTIC = "np.logaddexp(0.0, -self.y * (self.X @ beta)).sum()"
SQUARES = "0.5 * np.sum((self.X @ beta - self.y) ** 2)"
L1, L2 = "np.abs(beta).sum()", "0.5 * beta @ beta"
OBJECTIVES = {
    "logreg_l1": (LOGISTIC, L1),
    "logreg_l2": (LOGISTIC, L2),
    "lasso": (SQUARES, L1),
    "ridge": (SQUARES, L2),
}
SPARSE = ("logreg_l1", "ridge")  # these get the columns of sparse data, the others dense rows
LAMBDA, N, D = 2.0, 60, 6

OBJECTIVE = """
import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "local"

    def set_data(self, X, y):
        self.X, self.y = X, y

    def get_one_result(self):
        return {{"beta": np.zeros(self.X.shape[1])}}

    def evaluate_result(self, beta):
        return {{"value": {loss} + {strength} * {penalty}}}

    def get_objective(self):
        return {{"X": self.X, "y": self.y, "lmbd": {strength}}}
"""
DATASET = """
import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "simulated"

    def get_data(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal(({n}, {d}))
        y = X @ rng.standard_normal({d}) + 3.0 * rng.standard_normal({n})
        return {{"X": sp.csc_array(X) if {columns_first} else X, "y": {targets}}}
"""


def data(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = X @ rng.standard_normal(D) + 3.0 * rng.standard_normal(N)
    return X, np.sign(y) if "logreg" in name else y


def least(name):
    """The minimum of the summed objective, by proximal gradient steps."""
    X, y = data(name)
    loss, penalty = OBJECTIVES[name]
    logistic, l1 = loss == LOGISTIC, LAMBDA * (penalty == L1)
    l2, beta = LAMBDA - l1, np.zeros(D)
    step = 1.0 / (np.linalg.norm(X, 2) ** 2 + l2)
    for _ in range(5000):
        slopes = -y / (1.0 + np.exp(y * (X @ beta))) if logistic else X @ beta - y
        beta = soft(beta - step * (X.T @ slopes + l2 * beta), step * l1)
    return value(name, X, y, beta)


def value(name, X, y, beta):
    loss = np.logaddexp(0.0, -y * (X @ beta)).sum() if "logreg" in name else 0.5 * np.sum((X @ beta - y) ** 2)
    return loss + LAMBDA * (np.abs(beta).sum() if OBJECTIVES[name][1] == L1 else 0.5 * beta @ beta)


QUICK = "ridge"  # each is half a minute and more of benchopt's own; make test-slow runs the others


@pytest.mark.parametrize(
    "name", [name if name == QUICK else pytest.param(name, marks=pytest.mark.slow) for name in OBJECTIVES]
)
def test_benchopt_runs_it_from_zero_to_the_minimum(name, tmp_path):
    loss, penalty = OBJECTIVES[name]
    folder, targets = tmp_path / f"benchmark_{name}", "np.sign(y)" if "logreg" in name else "y"
    for part, text in {
        "objective.py": OBJECTIVE.format(loss=loss, penalty=penalty, strength=LAMBDA),
        "datasets/simulated.py": DATASET.format(n=N, d=D, columns_first=name in SPARSE, targets=targets),
        "solvers/banditgrad.py": (FOLDER / f"{name}.py").read_text(encoding="utf-8"),
    }.items():
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        (folder / part).write_text(text, encoding="utf-8")
    which = ["-s", "banditgrad[solver=[auto,saga],sampler=auto]", "-n", "30", "--no-plot", "--output", "found"]
    command = [sys.executable, "-m", "benchopt", "run", str(folder), *which]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = pd.read_parquet(folder / "outputs" / "found.parquet")
    runs = found.groupby("solver_name")
    assert len(runs) == 2, done.stdout
    X, y = data(name)
    zero, best = value(name, X, y, np.zeros(D)), least(name)
    for _, run in runs:
        values = run.sort_values("stop_val")["objective_value"].to_numpy()
        assert values[0] == pytest.approx(zero, rel=1e-12)
        assert values.min() == pytest.approx(best, rel=1e-8)
        assert values.min() >= best * (1.0 - 1e-10)
