"""Newton's method on sampled rows: each part beside plain NumPy, the whole beside independent minimisers."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import banditgrad as bg
from banditgrad._random import new_stream
from banditgrad.solvers.newton import quadratic
from banditgrad.solvers.newton.hessian import HessianMatrix, add_outer_products
from banditgrad.solvers.newton.quadratic import minimise_quadratic
from banditgrad.solvers.newton.solver import sample_sizes
from banditgrad.solvers.newton.subset import RowSubset, draw_subset
from hard import hard_minimum, hard_problems, minimiser
from newton_problems import hessian, problem_of, with_ones
from tables import LOSSES

# --- one look at the rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_look_sees_what_numpy_sees(small_data, rng, loss, rows, weighted):
    X, y = small_data
    n, s = len(y), rng.uniform(0.1, 2.0, len(y))
    problem = problem_of(small_data, rows, loss, sample_weight=s if weighted else None)
    s = problem.sample_weight if weighted else np.ones(n)
    w, A = rng.standard_normal(13), with_ones(X)
    chosen, weights = rng.integers(0, n, 41), rng.random(41)
    for subset, i, share in (
        (RowSubset(problem), np.arange(n), np.full(n, 1 / n)),
        (RowSubset(problem, chosen, weights), chosen, weights),
    ):
        subset.diagonal = np.zeros(13)
        z = A[i] @ w
        terms = [(LOSSES[loss].value(a, b), LOSSES[loss].derivative(a, b), LOSSES[loss].second_derivative(a, b))
                 for a, b in zip(z, y[i], strict=True)]  # fmt: skip
        value, slope, bend = np.array(terms).T * share * s[i]
        assert subset.evaluate(w) == pytest.approx(value.sum(), rel=1e-12)
        np.testing.assert_allclose(subset.margins, z, atol=1e-12)
        np.testing.assert_allclose(subset.gradient, A[i].T @ slope, atol=1e-12)
        np.testing.assert_allclose(subset.second_derivatives, bend, atol=1e-14)
        np.testing.assert_allclose(subset.diagonal, (A[i] ** 2).T @ bend, atol=1e-12)
        a = (slope / share) ** 2 * problem.parts.norms2[i] / n**2
        np.testing.assert_allclose(subset.feedback(), a, atol=1e-14)


def test_between_two_looks_no_row_is_needed(small_data, rng):
    problem = problem_of(small_data)
    subset, one, two = RowSubset(problem), rng.standard_normal(13), rng.standard_normal(13)
    subset.evaluate(one)
    subset.evaluate(two)
    for t in (0.0, 0.3, 1.0):
        other = RowSubset(problem)
        assert subset.value_along(t) == pytest.approx(other.evaluate(one + t * (two - one)), rel=1e-12)


def test_drawn_rows_are_weighted_without_bias(small_data):
    problem = problem_of(small_data)
    w = np.full(13, 0.1)
    gradients = []
    for seed in range(400):
        sampling = bg.Importance().start(problem.n, horizon=None, seed=seed, smoothness=problem.smoothness)
        subset = draw_subset(problem, sampling.state, 50)
        subset.evaluate(w)
        gradients.append(subset.gradient)
    errors = (np.mean(gradients, axis=0) - problem.gradient(w)) / (np.std(gradients, axis=0) / np.sqrt(400) + 1e-12)
    assert np.abs(errors).max() < 4.5


# --- the sampled Hessian ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_the_matrix_is_that_of_its_coefficients(small_data, rng, rows):
    X, y = small_data
    problem = problem_of(small_data, rows)
    subset = RowSubset(problem)
    estimate = HessianMatrix(subset, new_stream(0))
    for share in (0.2, 0.5, 1.0, 0.3):
        estimate.move(rng.random(len(y)), share)
        np.testing.assert_allclose(estimate.matrix, hessian(problem, X, estimate.sample.coefficients), atol=1e-12)
        np.testing.assert_allclose(estimate.matrix, estimate.matrix.T, atol=1e-12)


@pytest.mark.parametrize("chosen", [[3, 4, 5, 6], [0, 0, 2], [1, 5, 9], []])
def test_outer_products_of_rows_side_by_side_twice_and_apart(small_data, rng, chosen):
    X, y = small_data
    matrix, scales = np.zeros((12, 12)), rng.random(len(chosen))
    rows = bg.Problem(X, y).parts.rows
    add_outer_products(rows, np.array(chosen, np.int64), scales, matrix)
    np.testing.assert_allclose(matrix, X[chosen].T @ (scales[:, None] * X[chosen]), atol=1e-12)


def test_all_rows_give_the_hessian_and_few_rows_correct_it(small_data, rng):
    X, y = small_data
    subset = RowSubset(problem_of(small_data))
    estimate, second_derivatives = HessianMatrix(subset, new_stream(0)), rng.random(len(y))
    assert estimate.move(second_derivatives, 1.0) == np.count_nonzero(subset.norms2)
    np.testing.assert_allclose(estimate.matrix, hessian(None, X, second_derivatives), atol=1e-12)
    assert estimate.move(second_derivatives, 1.0) == 0
    nearby = second_derivatives * (1.0 + 0.01 * rng.random(len(y)))
    assert estimate.move(nearby, 1.0) < 10
    np.testing.assert_allclose(estimate.matrix, hessian(None, X, nearby), rtol=0.2, atol=0.05 * len(y))


def test_the_sample_is_unbiased_and_better_than_a_uniform_one(small_data, rng):
    X, y = small_data
    subset, second_derivatives, share = RowSubset(problem_of(small_data)), rng.random(len(y)), 0.3
    truth = hessian(None, X, second_derivatives)

    def samples(move):
        return np.array([move(seed) for seed in range(500)])

    def ours(seed):
        estimate = HessianMatrix(subset, new_stream(seed))
        estimate.move(second_derivatives, share)
        return estimate.matrix

    def uniform(seed):
        taken = np.random.default_rng(seed).random(len(y)) < share
        return hessian(None, X, np.where(taken, second_derivatives / share, 0.0))

    found = samples(ours)
    errors = (found.mean(axis=0) - truth) / (found.std(axis=0) / np.sqrt(500) + 1e-9)
    assert np.abs(errors).max() < 5.0
    assert found.var(axis=0).sum() < 0.5 * samples(uniform).var(axis=0).sum()


# --- the model's minimiser -------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 25),
    rank=st.integers(1, 25),
    l1=st.sampled_from([0.0, 0.01, 0.3]),
    l2=st.sampled_from([0.0, 1e-4, 0.1]),
)
def test_the_models_minimiser_meets_its_conditions(seed, d, rank, l1, l2):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((rank, d)) * np.exp(rng.standard_normal(d))
    M, w = B.T @ B, rng.standard_normal(d) * (rng.random(d) < 0.5)
    g = M @ rng.standard_normal(d)  # in the range of M, so that there is a minimiser
    strengths = np.full(d, l1), np.full(d, l2)
    u = w + minimise_quadratic(M, g, w, *strengths, 1e-6)
    slope = g + M @ (u - w) + l2 * u
    start = np.abs(g + l2 * w).max() + l1 + np.abs(M @ w).max()
    assert np.all(np.abs(slope[u == 0.0]) <= l1 + 1e-3 * start)
    np.testing.assert_allclose(slope[u != 0.0], -l1 * np.sign(u[u != 0.0]), atol=1e-3 * start)


# --- the whole -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize("penalty", ["L1", "SquaredL2", "ElasticNet"])
@pytest.mark.parametrize("loss", LOSSES)
def test_converges_to_the_minimiser(small_data, loss, penalty, rows):
    problem = problem_of(small_data, rows, loss, penalty)
    result = bg.minimise(problem, bg.SampledNewton(), passes=40, seed=0)
    assert abs(result.value - problem.value(minimiser(problem))) < 1e-10
    assert np.all(np.diff(result.history.value) <= 1e-13)


def test_converges_on_hard_data():
    for case, problem in hard_problems().items():
        result = bg.minimise(problem, bg.SampledNewton(), passes=40, seed=0)
        assert result.reason in (bg.Reason.CONVERGED, bg.Reason.PASSES_DONE), case
        assert result.value - hard_minimum(case) <= 1e-9 * max(1.0, abs(result.history.value[0])), case
        values = result.history.value
        assert np.all(np.diff(values) <= 1e-12 * np.abs(values[:-1]) + 1e-30 * values[0]), case  # F* is 0 for one


def test_overflow_is_divergence(rng):
    X, y = 1e10 * rng.standard_normal((50, 4)), 1e300 * rng.standard_normal(50)
    with np.errstate(over="ignore", invalid="ignore"):
        result = bg.minimise(bg.Problem(X, y, bg.Squared()), bg.SampledNewton(), passes=5, seed=0)
    assert result.reason is bg.Reason.DIVERGED


def test_fits_at_the_same_time_leave_blas_its_threads():
    threads = [library.num_threads for library in quadratic._blas().lib_controllers]
    with quadratic.one_blas_thread:
        with quadratic.one_blas_thread:
            pass
        assert all(library.num_threads == 1 for library in quadratic._blas().lib_controllers)
    assert [library.num_threads for library in quadratic._blas().lib_controllers] == threads


def test_starts_where_the_loss_is_straight(small_data):
    """There the Hessian is zero and tells nothing of the way."""
    X, y = small_data
    problem = bg.Problem(sp.csr_array(X), 1e3 * y, bg.Huber(0.1), bg.SquaredL2(1e-3))
    result = bg.minimise(problem, bg.SampledNewton(), passes=100, seed=0)
    assert result.value - problem.value(minimiser(problem)) < 1e-9 * result.value


def test_converges_where_rows_stop_curving():
    """Nearly separable words: after a long step many columns have no estimate left, and models no minimiser."""
    rng, n, d = np.random.default_rng(0), 600, 1500
    frequency = 1.0 / (np.arange(d) + 5.0)
    lengths = np.clip(np.exp(3.4 + 1.2 * rng.standard_normal(n)), 1, 800).astype(int)
    indices = rng.choice(d, lengths.sum(), p=frequency / frequency.sum())
    X = sp.csr_array((np.ones(lengths.sum()), indices, np.r_[0, lengths.cumsum()]), shape=(n, d))
    X.sum_duplicates()
    X.data[:] = 1.0
    problem = bg.Problem(X, np.where(X @ rng.standard_normal(d) > 0.0, 1.0, -1.0), bg.Logistic(), bg.L1(1e-5))
    values = [bg.minimise(problem, bg.SampledNewton(), passes=40, seed=seed).value for seed in range(8)]
    assert max(values) < min(values) + 1e-7 < 0.0113


def many_rows(rng, n=20_000, d=15):
    X = rng.standard_normal((n, d)) * np.exp(rng.standard_normal(n))[:, None]
    return X, np.where(X @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0)


def test_samples_of_growing_size_lead_to_the_neighbourhood(rng):
    X, y = many_rows(rng)
    assert sample_sizes(len(y), 15) == [312, 2500]
    assert sample_sizes(1000, 15) == []
    problem = bg.Problem(sp.csr_array(X), y, bg.Logistic(), bg.L1(1e-3))
    result = bg.minimise(problem, bg.SampledNewton(), bg.Mabs(), passes=10, seed=0)
    gaps = result.history.value - bg.minimise(problem, bg.SampledNewton(), passes=30, seed=1).value
    assert gaps[1] < 0.05 * gaps[0]  # before any step on all rows
    assert gaps[5] < 1e-9
    assert result.sampling.probabilities().max() > 1.01 / problem.n  # the sampler was told of what it drew


def test_same_seed_same_bits_and_weights_are_repeated_rows(rng):
    X, y = many_rows(rng, 4000)
    counts = rng.integers(0, 4, len(y))
    weighted = bg.Problem(sp.csr_array(X), y, bg.Logistic(), bg.L1(1e-3), sample_weight=counts)
    repeated = bg.Problem(sp.csr_array(np.repeat(X, counts, axis=0)), np.repeat(y, counts), bg.Logistic(), bg.L1(1e-3))
    one, two, other = (bg.minimise(p, bg.SampledNewton(), passes=15, seed=5) for p in (weighted, weighted, repeated))
    np.testing.assert_array_equal(one.w, two.w)
    np.testing.assert_allclose(one.w, other.w, atol=1e-6)


def test_what_it_knows_is_right_and_saves_passes(small_data, monkeypatch):
    problem = problem_of(small_data)
    result = bg.minimise(problem, bg.SampledNewton(), passes=30, seed=0, tol=1e-9, record_variance=True)
    assert result.reason is bg.Reason.CONVERGED
    assert result.value == pytest.approx(problem.value(result.w), rel=1e-13)
    a = (problem.gradient_norms(result.w) / problem.n) ** 2
    assert result.history.uniform_variance[-1] == pytest.approx(a.sum() * problem.n, rel=1e-9)
    monkeypatch.setattr(bg.Problem, "value", lambda *_: pytest.fail("F was computed though it is known"))
    solver = bg.SampledNewton()
    state = solver.start(problem, np.zeros(13), 0)
    sampling = bg.Uniform().start(problem.n, horizon=None, seed=0)
    solver.advance(problem, state, sampling.state, 3)
    np.testing.assert_allclose(solver.known(problem, state).gradient, problem.gradient(state.w), atol=1e-14)


@pytest.mark.parametrize("penalty", [bg.L1(1e-2), bg.SquaredL2(1e-3), bg.Zero()])
def test_a_squared_loss_is_solved_without_a_second_look(rng, penalty, monkeypatch):
    X, _ = many_rows(rng, 4000)
    problem = bg.Problem(X, X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(len(X)), bg.Squared(), penalty)
    evaluate, sizes = RowSubset.evaluate, []
    monkeypatch.setattr(RowSubset, "evaluate", lambda subset, w: sizes.append(subset.size) or evaluate(subset, w))
    result = bg.minimise(problem, passes=1, record_every=1)
    assert sizes.count(problem.n) == 1
    assert isinstance(result.sampling.sampler, bg.Uniform)  # nothing was drawn
    assert result.value == pytest.approx(problem.value(result.w), rel=1e-11)
    looked = bg.minimise(problem, passes=1, record_every=1, record_variance=True, tol=1e-9)
    assert looked.reason is bg.Reason.CONVERGED or not isinstance(penalty, bg.Zero)
    assert looked.value == pytest.approx(problem.value(looked.w), rel=1e-14)


@pytest.mark.parametrize("case", ["a perfect fit", "columns almost the same"])
def test_a_squared_loss_is_looked_at_where_rounding_would_show(rng, case):
    X, _ = many_rows(rng, 4000)
    y = 1e6 * X[:, 2]
    if case != "a perfect fit":  # they take entries of 1e4 that cancel
        X[:, 1] = X[:, 0] + 1e-4 * rng.standard_normal(len(X))
        y = rng.standard_normal(len(X)) + 1e4 * (X[:, 1] - X[:, 0])
    problem = bg.Problem(X, y, bg.Squared(), bg.Zero())
    result = bg.minimise(problem, passes=1, record_every=1)
    assert result.value == pytest.approx(problem.value(result.w), rel=1e-11)


def test_it_is_chosen_where_it_fits(small_data):
    from banditgrad.solvers import automatic_solver

    assert isinstance(automatic_solver(problem_of(small_data)), bg.SampledNewton)
    square = np.random.default_rng(0).standard_normal((700, 700))
    y, unlike = np.sign(square[:, 0]), square * np.exp(1.5 * np.random.default_rng(1).standard_normal(700))[:, None]
    for penalty in (bg.L1(0.1), bg.SquaredL2(0.1)):
        assert isinstance(automatic_solver(bg.Problem(square, y, penalty=penalty)), bg.SampledNewton)
        assert isinstance(automatic_solver(bg.Problem(unlike, y, penalty=penalty)), bg.ProxSvrg)
        assert isinstance(automatic_solver(bg.Problem(sp.csr_array(unlike), y, penalty=penalty)), bg.SampledNewton)
    wide = bg.Problem(sp.csr_array(square), np.sign(square[:, 0]), penalty=bg.L1(0.1))
    assert isinstance(automatic_solver(wide), bg.SampledNewton)
    short = sp.csr_array((np.ones(10_000), (np.arange(10_000), np.arange(10_000) % 100)))
    assert isinstance(automatic_solver(bg.Problem(short, np.ones(10_000), penalty=bg.L1(0.1))), bg.SampledNewton)


MINIMA = {"w8a": 0.146882453106, "ijcnn1": 0.190396020161, "a9a": 0.326898961969}


@pytest.mark.parametrize("name", MINIMA)
def test_few_passes_do_on_real_data(real_data, name):
    X, y = real_data(name)
    result = bg.minimise(bg.Problem(X, y, bg.Logistic(), bg.L1(1e-4)), passes=10, seed=0)
    assert abs(result.value - MINIMA[name]) < 1e-8
