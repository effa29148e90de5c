"""Stochastic solvers on `Softmax`: index for index those of plain NumPy, and the minimum of Newton's method."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

import banditgrad as bg
from banditgrad._random import new_stream
from banditgrad.minimise import _two_seeds
from reference import bfgs, gradient_of_half_squared_norm, soft
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

    slopes.scales = s
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


def minibatches(draws, size):
    return np.reshape(draws[: len(draws) // size * size], (-1, size))


def mean_gradient(A, slopes, W, i, p):
    return A[i].T @ (slopes(W, i) / p[i, None]) / (len(A) * len(i))


def subgradient(W):
    return np.vstack([L1 * np.sign(W[:-1]) + L2 * W[:-1], np.zeros((1, W.shape[1]))])


def sgd(A, slopes, draws, p, proximal, batch=1):
    W = np.zeros((A.shape[1], CLASSES))
    for i in minibatches(draws, batch):
        g = mean_gradient(A, slopes, W, i, p)
        W = prox(W - GAMMA * g) if proximal else W - GAMMA * (g + subgradient(W))
    return W


BATCH, EVERY, MEMORY, HESSIAN_ROWS, SEED = 3, 4, 2, 15, 0


def sqn(A, slopes, draws, p):
    """Stochastic quasi-Newton on all numbers of W, its products with the Hessian from ∇²φ = diag(q) - q q'."""
    stream = bg.Uniform().start(len(A))
    stream.state.stream[:] = new_stream(_two_seeds(SEED)[1])
    W, iterates, means, pairs = np.zeros((A.shape[1], CLASSES)), [], [], []
    for t, i in enumerate(minibatches(draws, BATCH), start=1):
        V = mean_gradient(A, slopes, W, i, p) + subgradient(W)
        iterates.append(W)
        if pairs and t > 2 * EVERY:
            V = (bfgs(pairs[-MEMORY:]) @ V.ravel()).reshape(W.shape)
        W = W - GAMMA * V
        if t % EVERY == 0:
            means.append(np.mean(iterates[-EVERY:], axis=0))
            if len(means) > 1:
                chosen, S = stream.draw(HESSIAN_ROWS)[0], means[-1] - means[-2]
                q, scales = softmax(A[chosen] @ means[-1], axis=1), slopes.scales[chosen]
                U = A[chosen] @ S
                curved = scales[:, None] * q * (U - (q * U).sum(axis=1, keepdims=True))
                Y = A[chosen].T @ curved / HESSIAN_ROWS + L2 * np.vstack([S[:-1], np.zeros((1, CLASSES))])
                pairs.append((S.ravel(), Y.ravel()))
    return W


SOLVERS = {
    "Saga": (bg.Saga(GAMMA), saga),
    "ProxSvrg": (bg.ProxSvrg(GAMMA), lambda *about: svrg(*about, mean=True)),
    "ProxSvrg(last)": (bg.ProxSvrg(GAMMA, snapshot="last"), lambda *about: svrg(*about, mean=False)),
    "ProxSgd": (bg.ProxSgd(GAMMA), lambda *about: sgd(*about, proximal=True)),
    "Sgd": (bg.Sgd(GAMMA), lambda *about: sgd(*about, proximal=False)),
    "ProxSgd(3)": (bg.ProxSgd(GAMMA, batch_size=3), lambda *about: sgd(*about, proximal=True, batch=3)),
    "Sgd(3)": (bg.Sgd(GAMMA, batch_size=3), lambda *about: sgd(*about, proximal=False, batch=3)),
    "Sqn": (bg.Sqn(GAMMA, BATCH, HESSIAN_ROWS, EVERY, MEMORY), sqn),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SOLVERS)
def test_steps_are_the_textbook_s(name, form):
    solver, reference = SOLVERS[name]
    problem, draws, p, A, slopes = setup(form)
    last = {}
    bg.minimise(problem, solver, bg.Replay(draws, p), passes=len(draws) / 40, record_every=2.5, seed=SEED,
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


@pytest.mark.parametrize("solver", [bg.Sgd(), bg.ProxSgd(), bg.ProxSgd(batch_size=2), bg.Sqn(batch_size=10)], ids=repr)
def test_plain_sgd_with_an_automatic_step_comes_near(solver):
    problem, *_ = setup("sparse")
    best, start = bg.minimise(problem, tol=1e-10).value, problem.value(np.zeros(problem.shape))
    result = bg.minimise(problem, solver, passes=200, seed=0)
    assert result.value - best < 0.02 * (start - best)


def test_a_geometry_is_of_all_numbers_of_w():
    problem, draws, p, A, slopes = setup("sparse", steps=60)
    problem, q = problem.with_penalty(bg.L1(L1)), 1.5
    got = bg.minimise(problem, bg.ProxSgd(GAMMA, bg.PNorm(q)), bg.Replay(draws, p), passes=60 / 40, tol=0.0).w
    W = np.zeros_like(got)
    for i in draws:
        theta = gradient_of_half_squared_norm(W.ravel(), q).reshape(W.shape)
        theta -= GAMMA * mean_gradient(A, slopes, W, np.array([i]), p)
        theta[:-1] = soft(theta[:-1], GAMMA * L1)
        W = gradient_of_half_squared_norm(theta.ravel(), q / (q - 1.0)).reshape(W.shape)
    np.testing.assert_allclose(got, W, atol=1e-10)


class OneMargin(bg.Saga):
    """Somebody's solver that knows of one margin only."""

    @property
    def takes_several_margins(self):
        return False


def test_a_solver_of_one_margin_is_refused():
    problem, *_ = setup("dense")
    with pytest.raises(TypeError, match=r"OneMargin\(.*takes losses of one margin, and Softmax"):
        bg.minimise(problem, OneMargin())
