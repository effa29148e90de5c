"""Sweeps on a cluster give the same bits as in one process, also when a worker is killed."""

import json
import os
import signal
import sqlite3
import time

import joblib
import numpy as np
import pytest
from collections_of_rows import imbalanced
from distributed import Client, LocalCluster
from rich.console import Console
from sklearn.model_selection import GridSearchCV

import banditgrad as bg
from banditgrad.dask.sweeps import Sweep, sweep_on
from banditgrad.linear_model import BanditClassifier
from banditgrad.paper import evaluate
from banditgrad.report.comparison import compare
from paper.tiny import SCALE, cases

X, Y = imbalanced(600)
PROBLEM = bg.Problem(X, Y, bg.Logistic(), bg.ElasticNet(1e-3, 0.0))
PARTS = {"solvers": {"proxsvrg": bg.ProxSvrg()}, "samplers": {"uniform": bg.Uniform(), "auto": bg.Auto()}}


def values(found):
    return [result.history.value for outcome in found.outcomes for result in outcome.results]


def slow_square(data, job):
    time.sleep(0.1)
    return os.getpid(), float(data @ data) * job**2


def test_a_comparison_has_the_same_bits_as_in_this_process(client):
    here = compare(PROBLEM, **PARTS, passes=4, seeds=2)
    there = compare(PROBLEM, **PARTS, passes=4, seeds=2, each=Sweep(client).in_order)
    assert there.best == here.best
    assert [outcome.sampler for outcome in there.outcomes] == ["uniform", "auto"]
    for mine, theirs in zip(values(here), values(there), strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_killed_worker_costs_only_what_it_was_running(workers):
    data = np.arange(5.0)
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        done = {}
        for k, result in Sweep(client).as_done(slow_square, data, range(12)):
            done[k] = result
            if len(done) == 3:
                os.kill(result[0], signal.SIGKILL)
    assert [done[k][1] for k in range(12)] == [30.0 * k**2 for k in range(12)]
    assert len({pid for pid, _ in done.values()}) >= 2


def test_the_paper_has_the_same_outcomes_as_in_this_process(client, tmp_path):
    quiet = Console(quiet=True)

    def outcomes(folder, sweep):
        evaluate(["figure1"], SCALE, folder, 1, quiet, cases(), sweep)
        connection = sqlite3.connect(folder / "runs.sqlite")
        rows = connection.execute("SELECT key, outcome FROM outcomes ORDER BY key").fetchall()
        connection.close()
        return rows

    here = outcomes(tmp_path / "here", None)
    assert here == outcomes(tmp_path / "there", Sweep(client))
    assert len(here) > 10


def test_a_search_over_parameters_runs_under_joblib_s_dask_backend(client):
    search = GridSearchCV(BanditClassifier(random_state=0), {"alpha": [1e-4, 1e-2]}, cv=3)
    with joblib.parallel_config(backend="dask"):
        there = search.fit(X, Y).cv_results_["mean_test_score"]
    assert np.array_equal(there, search.fit(X, Y).cv_results_["mean_test_score"])


def test_the_command_compares_on_a_running_scheduler(cluster, tmp_path, monkeypatch, capsys):
    from banditgrad.cli import app

    rows = "\n".join(f"{y:+.0f} 1:{x[0]:.4f} 2:{x[1]:.4f}" for x, y in zip(X.toarray(), Y, strict=True))
    (tmp_path / "rows").write_text(rows + "\n")
    words = ["compare", str(tmp_path / "rows"), "--samplers", "uniform", "--solvers", "proxsvrg", "--passes", "3"]
    words += ["--seeds", "2", "--out", str(tmp_path / "out"), "--json"]
    minima = []
    for more in ([], ["--scheduler", cluster.scheduler_address]):
        app([*words, *more], standalone_mode=False)
        minima.append(json.loads(capsys.readouterr().out)["minimum"])
    assert minima[0] == minima[1]


def test_an_address_where_nothing_is_says_so(monkeypatch):
    monkeypatch.setattr("banditgrad.dask.sweeps.PATIENCE", 0.3)
    with pytest.raises(ValueError, match="No Dask scheduler answers at"), sweep_on("tcp://127.0.0.1:9"):
        pass


def test_a_scheduler_without_workers_says_so(monkeypatch):
    monkeypatch.setattr("banditgrad.dask.sweeps.PATIENCE", 3.0)
    with LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as cluster:
        with pytest.raises(ValueError, match="has no workers"), sweep_on(cluster.scheduler_address):
            pass
        with Client(cluster, timeout=3.0) as client, pytest.raises(TimeoutError):
            list(Sweep(client).as_done(slow_square, np.arange(5.0), [1]))
