"""Stochastic solvers on `Softmax`: index for index those of plain NumPy, and the minimum of Newton's method."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

import banditgrad as bg
from reference import soft
from test_softmax import rows

CLASSES, GAMMA, L1, L2 = 4, 0.05, 0.01, 0.05
PENALTY = bg.ElasticNet(L1 + L2, L1 / (L1 + L2))
FORMS = {"dense": np.asarray, "sparse": sp.csr_array}


def setup(form, steps=300):
    X, y = rows(n=40, d=5)
    rng = np.random.default_rng(1)
    s, p = rng.random(40) + 0.5, rng.random(40) + 0.1
    problem = bg.Problem(FORMS[form](X), y, bg.Softmax(CLASSES), PENALTY, s, True)
    draws, p = rng.integers(0, 40, steps), p / p.sum()
    A, s = np.hstack([X, np.ones((40, 1))]), s / s.mean()

    def slopes(W, i=slice(None)):
        """s_i ∇φ_i as a function of the margins."""
        return s[i, None] * (softmax(A[i] @ W, axis=-1) - np.eye(CLASSES)[y[i].astype(int)])

    return problem, draws, p, A, slopes


def prox(W):
    W = W.copy()
    W[:-1] = soft(W[:-1], GAMMA * L1) / (1.0 + GAMMA * L2)
    return W


def saga(A, slopes, draws, p):
    W, n = np.zeros((A.shape[1], CLASSES)), len(A)
    table = slopes(W)
    for i in draws:
        new = slopes(W, [i])[0]
        estimate = np.outer(A[i], new - table[i]) / (n * p[i]) + A.T @ table / n
        table[i] = new
        W = prox(W - GAMMA * estimate)
    return W


def svrg(A, slopes, draws, p, mean):
    n = len(A)
    W = snapshot = np.zeros((A.shape[1], CLASSES))
    for begin in range(0, len(draws), n):
        table, total = slopes(snapshot), np.zeros_like(W)
        for i in draws[begin : begin + n]:
            change = slopes(W, [i])[0] - table[i]
            W = prox(W - GAMMA * (np.outer(A[i], change) / (n * p[i]) + A.T @ table / n))
            total += W
        snapshot = total / n if mean else W
    return W


def sgd(A, slopes, draws, p, proximal):
    W, n = np.zeros((A.shape[1], CLASSES)), len(A)
    for i in draws:
        g = np.outer(A[i], slopes(W, [i])[0]) / (n * p[i])
        if proximal:
            W = prox(W - GAMMA * g)
        else:
            g[:-1] += L1 * np.sign(W[:-1]) + L2 * W[:-1]
            W = W - GAMMA * g
    return W


SOLVERS = {
    "Saga": (bg.Saga(GAMMA), saga),
    "ProxSvrg": (bg.ProxSvrg(GAMMA), lambda *about: svrg(*about, mean=True)),
    "ProxSvrg(last)": (bg.ProxSvrg(GAMMA, snapshot="last"), lambda *about: svrg(*about, mean=False)),
    "ProxSgd": (bg.ProxSgd(GAMMA), lambda *about: sgd(*about, proximal=True)),
    "Sgd": (bg.Sgd(GAMMA), lambda *about: sgd(*about, proximal=False)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SOLVERS)
def test_steps_are_the_textbook_s(name, form):
    solver, reference = SOLVERS[name]
    problem, draws, p, A, slopes = setup(form)
    last = {}
    bg.minimise(problem, solver, bg.Replay(draws, p), passes=len(draws) / 40, record_every=2.5,
                callback=lambda progress: last.update(w=progress.w))  # fmt: skip
    np.testing.assert_allclose(last["w"], reference(A, slopes, draws, p), atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", [bg.Saga(), bg.ProxSvrg(), bg.LSvrg(), bg.S2gd()], ids=lambda s: type(s).__name__)
def test_automatic_steps_lead_to_the_minimum(solver, form):
    problem, *_ = setup(form)
    best = bg.minimise(problem, tol=1e-10).value
    result = bg.minimise(problem, solver, bg.Mabs(), passes=150, seed=0, record_variance=True)
    assert result.value == pytest.approx(best, rel=1e-9)
    history = result.history
    assert (history.effective_variance >= 0.999 * history.optimal_variance).all()
    assert (history.effective_variance[1:] <= 1e-6).any()


@pytest.mark.parametrize("solver", [bg.Sgd(), bg.ProxSgd()], ids=lambda s: type(s).__name__)
def test_plain_sgd_with_an_automatic_step_comes_near(solver):
    problem, *_ = setup("sparse")
    best, start = bg.minimise(problem, tol=1e-10).value, problem.value(np.zeros(problem.shape))
    result = bg.minimise(problem, solver, passes=200, seed=0)
    assert result.value - best < 0.02 * (start - best)


@pytest.mark.parametrize("solver", [bg.Sqn(), bg.Sgd(batch_size=2), bg.ProxSgd(geometry=bg.PNorm(1.5))], ids=repr)
def test_what_is_not_done_yet_is_refused(solver):
    problem, *_ = setup("dense")
    with pytest.raises(TypeError, match=rf"{type(solver).__name__}\(.*takes losses of one margin, and Softmax"):
        bg.minimise(problem, solver)
