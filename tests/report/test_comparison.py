"""Comparisons in which something goes wrong."""

import pytest

import banditgrad as bg
from banditgrad import inspection
from banditgrad.report.comparison import compare


@pytest.fixture
def problem(rng):
    X = rng.standard_normal((60, 4))
    return bg.Problem(X, X[:, 0], bg.Squared(), bg.SquaredL2(1e-3))


def test_runs_that_diverge_are_told_as_such(problem):
    solvers = {"wild": bg.ProxSvrg(step_size=1e3), "tame": bg.ProxSvrg()}
    found = compare(problem, solvers, {"uniform": bg.Uniform()}, passes=3, seeds=2)
    wild, tame = found.rows()
    assert wild["diverged"]
    assert wild["gap"] == float("inf")
    assert not tame["diverged"]
    assert tame["gap"] < 1.0
    report = found.report("title", "summary", {})
    assert report.tables[0].rows[0][2] == "diverged"


def test_ctrl_c_ends_an_inspection(problem):
    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inspection.inspect(problem, callback=interrupt)
