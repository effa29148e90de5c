"""SGD and proximal SGD beside plain loops, index for index, and beside theorems 2 and 3."""

import numpy as np
import pytest
import scipy.sparse as sp

import banditgrad as bg
import reference
from iterates import last_iterate
from tables import LOSSES, PENALTIES

SCHEDULES = {
    "constant": (0.05, lambda t: 0.05),
    "inverse time": (bg.InverseTime(2.0), lambda t: 1.0 / t),
    "shifted": (bg.ShiftedInverseTime(5.0, 0.1), lambda t: 1.0 / (5.0 + 0.1 * t)),
}


# Each compiles its own loop, for some 4 s. On dense rows nothing is lazy, so that schedule and penalty do not meet:
# there each is tried with one of the other.
STEPS = [
    (rows, penalty, schedule)
    for rows in ("dense", "sparse")
    for penalty in PENALTIES
    for schedule in SCHEDULES
    if rows == "sparse" or schedule == "constant" or penalty == "ElasticNet"
]


def problem_of(small_data, rows, loss, penalty, fit_intercept=False):
    X, y = small_data
    form = X if rows == "dense" else sp.csr_array(X)
    return bg.Problem(form, y, LOSSES[loss], penalty, fit_intercept=fit_intercept)


def injected(rng, n, steps):
    p = rng.dirichlet(np.full(n, 5.0))
    return rng.integers(0, n, steps), p


def solve(problem, solver, draws, p, record_every=0.37):
    return last_iterate(problem, solver, bg.Replay(draws, p), passes=len(draws) / problem.n, record_every=record_every)


@pytest.mark.parametrize(("rows", "penalty", "schedule"), STEPS)
@pytest.mark.parametrize("average", [None, "linear"])
def test_sgd_is_equation_2(small_data, rng, rows, penalty, schedule, average):
    X, y = small_data
    draws, p = injected(rng, len(y), 2500)  # more than one block of the lazy penalty
    step, gamma = SCHEDULES[schedule]
    problem = problem_of(small_data, rows, "Logistic", PENALTIES[penalty])
    last, mean = reference.sgd(X, y, "Logistic", *PENALTIES[penalty].shrinkage(), gamma, draws, p, X.shape[1])
    got = solve(problem, bg.Sgd(step, average=average), draws, p)
    np.testing.assert_allclose(got, last if average is None else mean, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize(("rows", "penalty", "schedule"), STEPS)
def test_prox_sgd_is_equation_17(small_data, rng, rows, penalty, schedule):
    X, y = small_data
    draws, p = injected(rng, len(y), 2500)
    step, gamma = SCHEDULES[schedule]
    problem = problem_of(small_data, rows, "Logistic", PENALTIES[penalty])
    expected = reference.prox_sgd(X, y, "Logistic", *PENALTIES[penalty].shrinkage(), gamma, draws, p, X.shape[1])
    np.testing.assert_allclose(solve(problem, bg.ProxSgd(step), draws, p), expected, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize("solver", ["Sgd", "ProxSgd"])
@pytest.mark.parametrize("loss", LOSSES)
def test_batches_intercepts_and_losses(small_data, rng, rows, solver, loss):
    X, y = small_data
    draws, p = injected(rng, len(y), 1500)
    problem = problem_of(small_data, rows, loss, PENALTIES["L1"], fit_intercept=True)
    A = reference.with_intercept(X, True)
    oracle = reference.sgd if solver == "Sgd" else reference.prox_sgd
    expected = oracle(A, y, loss, 0.03, 0.0, lambda t: 0.01, draws, p, X.shape[1], batch=3)
    expected = expected[0] if solver == "Sgd" else expected
    got = solve(problem, getattr(bg, solver)(0.01, batch_size=3), draws, p)
    np.testing.assert_allclose(got, expected, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("average", [None, "linear"])
@pytest.mark.parametrize("penalty", [bg.SquaredL2(1.0), bg.ElasticNet(2.0, 0.5)])
def test_steps_that_turn_w_around(small_data, rng, penalty, average):
    """γ_t l2 = 2/t: the factor 1 - γ l2 is -1 at the first step and 0 at the second."""
    X, y = small_data
    draws, p = injected(rng, len(y), 300)
    problem = problem_of(small_data, "sparse", "Squared", penalty)
    expected = reference.sgd(X, y, "Squared", *penalty.shrinkage(), lambda t: 2.0 / t, draws, p, X.shape[1])
    got = solve(problem, bg.Sgd(bg.InverseTime(1.0), average=average), draws, p)
    index = 0 if average is None else 1
    scale = abs(expected[index]).max()
    np.testing.assert_allclose(got / scale, expected[index] / scale, atol=1e-10)


@pytest.mark.parametrize("step", [0.5, 0.1, 0.03])
@pytest.mark.parametrize("penalty", [bg.SquaredL2(1.0), bg.ElasticNet(1.0, 0.2)])
def test_the_mean_under_a_strong_penalty(small_data, rng, penalty, step):
    X, y = small_data
    draws, p = injected(rng, len(y), 2000)
    expected = reference.sgd(X, y, "Huber", *penalty.shrinkage(), lambda t: step, draws, p, X.shape[1])[1]
    problem = bg.Problem(sp.csr_array(X), y, bg.Huber(), penalty)
    np.testing.assert_allclose(solve(problem, bg.Sgd(step, average="linear"), draws, p), expected, atol=1e-10)


@pytest.mark.parametrize("average", [None, "linear"])
@pytest.mark.parametrize("schedule", [0.05, bg.ShiftedInverseTime(2.0, 0.01), bg.InverseTime(1.0)], ids=repr)
def test_many_rare_features_with_batches_weights_and_intercept(rng, schedule, average):
    """Blocks longer than the smallest, and coordinates that cross zero many times between two visits."""
    n, d = 80, 1500
    X = sp.random(n, d, 0.004, random_state=rng, data_rvs=rng.standard_normal).toarray()
    y, s = rng.standard_normal(n), rng.random(n)
    draws, p = injected(rng, n, 4000)
    problem = bg.Problem(sp.csr_array(X), y, bg.Huber(), bg.L1(0.02), sample_weight=s, fit_intercept=True)
    eager = bg.Problem(X, y, bg.Huber(), bg.L1(0.02), sample_weight=s, fit_intercept=True)
    solver = bg.Sgd(schedule, average=average, batch_size=2)
    np.testing.assert_allclose(solve(problem, solver, draws, p), solve(eager, solver, draws, p), atol=1e-10)


def test_a_coordinate_that_lands_on_zero_stays_there():
    X = np.array([[1.0, 0.0], [1.0, 0.0]])
    for form in (X, sp.csr_array(X)):
        problem = bg.Problem(form, [1.0, 1.0], bg.Squared(), bg.L1(1.0))
        w = last_iterate(problem, bg.Sgd(0.25), bg.Replay([0]), passes=3, w0=[0.0, 0.25])
        assert w[1] == 0.0


@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_sample_weights_scale_the_gradients(small_data, rng, rows):
    X, y = small_data
    s = rng.random(len(y))
    draws, p = injected(rng, len(y), 500)
    problem = bg.Problem(X if rows == "dense" else sp.csr_array(X), y, bg.Squared(), sample_weight=s)
    expected = np.zeros(X.shape[1])
    for i in draws:
        expected -= 0.01 * s[i] / s.mean() * (X[i] @ expected - y[i]) * X[i] / (len(y) * p[i])
    np.testing.assert_allclose(solve(problem, bg.Sgd(0.01), draws, p), expected, atol=1e-10)


def test_a_strong_penalty_on_sparse_rows(rng):
    """Products of many factors far below 1 must not underflow."""
    X = sp.random(40, 30, 0.05, random_state=rng, format="csr")
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    draws, p = injected(rng, 40, 4000)
    for penalty in (bg.SquaredL2(8.0), bg.ElasticNet(8.0, 0.01)):
        expected = reference.prox_sgd(
            X.toarray(), y, "Logistic", *penalty.shrinkage(), lambda t: 0.5, draws, p, X.shape[1]
        )
        got = solve(bg.Problem(X, y, bg.Logistic(), penalty), bg.ProxSgd(0.5), draws, p)
        np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize("penalty", [bg.Zero(), bg.L1(0.03)])
@pytest.mark.parametrize("norm", [1.2, 2.0])
def test_p_norm_geometry_is_a_soft_threshold_in_the_dual(small_data, rng, penalty, norm):
    X, y = small_data
    draws, p = injected(rng, len(y), 400)
    w0 = 0.1 * rng.standard_normal(X.shape[1])
    expected = reference.p_norm_sgd(X, y, "Logistic", penalty.strength, lambda t: 0.02, draws, p, norm, w0)
    problem = bg.Problem(sp.csr_array(X), y, bg.Logistic(), penalty)
    got = last_iterate(
        problem, bg.ProxSgd(0.02, geometry=bg.PNorm(norm)), bg.Replay(draws, p), passes=400 / len(y), w0=w0
    )
    np.testing.assert_allclose(got, expected, atol=1e-10)


def test_p_norm_of_two_is_euclidean(small_data, rng):
    X, y = small_data
    draws, p = injected(rng, len(y), 500)
    problem = bg.Problem(X, y, bg.Logistic(), bg.L1(0.03))
    np.testing.assert_allclose(
        solve(problem, bg.ProxSgd(0.02, geometry=bg.PNorm(2)), draws, p),
        solve(problem, bg.ProxSgd(0.02), draws, p),
        atol=1e-12,
    )


def test_p_norm_step_minimises_equation_17(rng):
    """The closed step against a numerical minimiser of <g, u> + λ‖u‖₁ + B_ψ(u, w)/γ."""
    from scipy.optimize import minimize

    p, gamma, strength = 1.5, 0.3, 0.2
    w, x = rng.standard_normal(3), rng.standard_normal(3)
    problem = bg.Problem(x[None, :], [1.0], bg.Logistic(), bg.L1(strength))
    got = last_iterate(problem, bg.ProxSgd(gamma, geometry=bg.PNorm(p)), passes=1, w0=w)
    g = reference.loss_derivative("Logistic", x @ w, 1.0) * x
    link = reference.gradient_of_half_squared_norm(w, p)

    def objective(u):
        divergence = 0.5 * np.linalg.norm(u, p) ** 2 - 0.5 * np.linalg.norm(w, p) ** 2 - link @ (u - w)
        return g @ u + strength * abs(u).sum() + divergence / gamma

    best = minimize(objective, w, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 20_000})
    assert objective(got) <= best.fun + 1e-9


# --- Theorems 2 and 3 ------------------------------------------------------------------------------------------------


def ridge(rng):
    """A strongly convex f: least squares with rows of different norm; μ and L are extreme eigenvalues."""
    X = rng.standard_normal((50, 4)) * np.exp(0.7 * rng.standard_normal(50))[:, None]
    y = X @ rng.standard_normal(4) + 0.5 * rng.standard_normal(50)
    eigenvalues = np.linalg.eigvalsh(X.T @ X / 50)
    return X, y, eigenvalues[0], eigenvalues[-1]


@pytest.mark.parametrize("sampler", [bg.Uniform(), bg.Mabs()], ids=["uniform", "mabs"])
def test_theorem_2(rng, sampler):
    """E F(2/(T(T+1)) Σ t w^t) - F* <= 2/(μT(T+1)) Σ E V_e."""
    X, y, mu, _ = ridge(rng)
    problem = bg.Problem(X, y, bg.Squared())
    best = problem.value(np.linalg.lstsq(X, y)[0])
    T = 400
    gaps, bounds = [], []
    for seed in range(20):
        solver = bg.Sgd(bg.InverseTime(mu), average="linear")
        result = bg.minimise(
            problem, solver, sampler, passes=T / 50, seed=seed, record_every=1 / 50, record_variance=True
        )
        gaps.append(result.value - best)
        bounds.append(2.0 / (mu * T * (T + 1)) * result.history.effective_variance[:-1].sum())
    assert len(result.history.value) == T + 1
    assert 0.0 < np.mean(gaps) <= np.mean(bounds)


@pytest.mark.parametrize("sampler", [bg.Uniform(), bg.Mabs()], ids=["uniform", "mabs"])
def test_theorem_3(rng, sampler):
    """(1/T) Σ E F(w^{t+1}) - F* <= α/T B(w*, w¹) + (1/T) Σ E V_e / (α + μt), with ψ = ½‖w‖²."""
    X, y, mu, smooth = ridge(rng)
    penalty = bg.L1(0.5)
    problem = bg.Problem(X, y, bg.Squared(), penalty)
    w = np.zeros(4)
    for _ in range(20_000):  # proximal gradient descent to the minimiser
        w = reference.soft(w - problem.gradient(w) / smooth, 0.5 / smooth)
    alpha, T = smooth - mu, 400
    gaps, bounds = [], []
    for seed in range(20):
        solver = bg.ProxSgd(bg.ShiftedInverseTime(alpha, mu))
        history = bg.minimise(
            problem, solver, sampler, passes=T / 50, seed=seed, record_every=1 / 50, record_variance=True
        ).history
        gaps.append(history.value[1:].mean() - problem.value(w))
        noise = np.sum(history.effective_variance[:-1] / (alpha + mu * np.arange(1, T + 1))) / T
        bounds.append(alpha / T * 0.5 * (w @ w) + noise)
    assert 0.0 < np.mean(gaps) <= np.mean(bounds)
