"""SAGA, Prox-SVRG, S2GD and loopless SVRG beside plain loops and independent solvers."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare

import banditgrad as bg
import reference
from banditgrad._random import new_stream
from banditgrad.minimise import _two_seeds
from banditgrad.solvers.parts.bins import FixedBins, GeometricBins, TruncatedBins
from hard import hard_minimum, hard_problems, minimiser
from iterates import last_iterate
from tables import LOSSES, PENALTIES

SOLVERS = {
    "Saga": bg.Saga,
    "ProxSvrg": bg.ProxSvrg,
    "ProxSvrg(last)": lambda step: bg.ProxSvrg(step, snapshot="last"),
    "S2gd": bg.S2gd,
    "S2gd(nu)": lambda step: bg.S2gd(step, inner=40, nu=0.5),
    "LSvrg": bg.LSvrg,
}


@bg.kernel
def draw_lengths(bins, stream, out):
    for k in range(out.size):
        out[k] = bins.bin_length(stream)


def lengths_of(bins, stream, count):
    out = np.zeros(count, np.int64)
    draw_lengths(bins, stream, out)
    return out


def oracle(name, n, gamma, seed, arguments):
    if name == "Saga":
        return reference.saga(*arguments)
    bins = {
        "S2gd": TruncatedBins(float(n), 1.0),
        "S2gd(nu)": TruncatedBins(40.0, 1.0 - 0.5 * gamma),
        "LSvrg": GeometricBins(float(n)),
    }.get(name, FixedBins(float(n)))
    stream = new_stream(_two_seeds(seed)[1])
    return reference.svrg(*arguments, lengths_of(bins, stream, 500), name == "ProxSvrg")


# S2GD and loopless SVRG differ from Prox-SVRG in the lengths of bins: each sees every penalty, on one kind of rows.
LOOPS = [
    (name, penalty, rows)
    for name in SOLVERS
    for k, penalty in enumerate(PENALTIES)
    for r, rows in enumerate(("dense", "sparse"))
    if name in ("Saga", "ProxSvrg", "ProxSvrg(last)") or (k + r + (name == "LSvrg")) % 2
]


@pytest.mark.parametrize(("name", "penalty", "rows"), LOOPS)
def test_equal_to_the_plain_loop_index_for_index(small_data, rng, name, penalty, rows):
    X, y = small_data
    gamma, seed = 0.05, 3
    draws, p = rng.integers(0, len(y), 2500), rng.dirichlet(np.full(len(y), 5.0))
    problem = bg.Problem(X if rows == "dense" else sp.csr_array(X), y, bg.Logistic(), PENALTIES[penalty])
    arguments = (X, y, "Logistic", *PENALTIES[penalty].shrinkage(), gamma, draws, p, X.shape[1])
    expected = oracle(name, len(y), gamma, seed, arguments)
    replay = bg.Replay(draws, p)
    got = last_iterate(problem, SOLVERS[name](gamma), replay, passes=2500 / len(y), seed=seed, record_every=0.31)
    np.testing.assert_allclose(got, expected, atol=1e-10)


@pytest.mark.parametrize("name", ["Saga", "ProxSvrg", "LSvrg"])
def test_so_it_is_in_blocks_of_many_rows(rng, name):
    """With n = 60 a block is one row; here it is eleven."""
    X = rng.standard_normal((700, 12)) * (rng.random((700, 12)) < 0.3)
    y = np.where(X @ rng.standard_normal(12) + rng.standard_normal(700) > 0, 1.0, -1.0)
    draws, p = rng.integers(0, 700, 3000), rng.dirichlet(np.full(700, 5.0))
    problem = bg.Problem(sp.csr_array(X), y, bg.Logistic(), PENALTIES["L1"])
    expected = oracle(name, 700, 0.05, 3, (X, y, "Logistic", *PENALTIES["L1"].shrinkage(), 0.05, draws, p, 12))
    replay = bg.Replay(draws, p)
    got = last_iterate(problem, SOLVERS[name](0.05), replay, passes=3000 / 700, seed=3, record_every=0.31)
    np.testing.assert_allclose(got, expected, atol=1e-10)


def test_sagas_table_has_slope_and_margin_of_each_rows_last_draw(small_data, rng):
    X, y = small_data
    problem, solver = bg.Problem(X, y), bg.Saga(0.05)
    draws = rng.integers(0, len(y), 150)
    state = solver.start(problem, rng.standard_normal(12), 0)
    sampling = bg.Replay(draws, np.full(len(y), 1.0 / len(y))).start(len(y)).state
    margins = X @ solver.iterate(problem, state)
    for i in draws:
        margins[i] = X[i] @ solver.iterate(problem, state)
        assert solver.advance(problem, state, sampling, 1) == 1
    np.testing.assert_allclose(state.table["margin"], margins, atol=1e-12)
    np.testing.assert_allclose(state.table["slope"], reference.loss_derivative("Logistic", margins, y), atol=1e-12)


@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize("name", ["Saga", "ProxSvrg"])
def test_with_an_intercept(small_data, rng, name, rows):
    X, y = small_data
    draws, p = rng.integers(0, len(y), 1000), rng.dirichlet(np.full(len(y), 5.0))
    problem = bg.Problem(X if rows == "dense" else sp.csr_array(X), y, penalty=bg.L1(0.03), fit_intercept=True)
    A = reference.with_intercept(X, True)
    expected = oracle(name, len(y), 0.05, 0, (A, y, "Logistic", 0.03, 0.0, 0.05, draws, p, X.shape[1]))
    got = last_iterate(problem, SOLVERS[name](0.05), bg.Replay(draws, p), passes=1000 / len(y), seed=0)
    np.testing.assert_allclose(got, expected, atol=1e-10)


# Each of these compiles its own loops, for some 14 s: the fast tests have all solvers with one loss.
@pytest.mark.parametrize("penalty", ["L1", "SquaredL2", "ElasticNet"])
@pytest.mark.parametrize(
    ("loss", "names"),
    [
        ("Logistic", ("Saga", "ProxSvrg", "S2gd", "LSvrg")),
        *((loss, ("ProxSvrg",)) for loss in LOSSES if loss != "Logistic"),
        *(
            pytest.param(loss, ("Saga", "S2gd", "LSvrg"), marks=pytest.mark.slow)
            for loss in LOSSES
            if loss != "Logistic"
        ),
    ],
)
def test_all_converge_to_the_same_minimiser(small_data, loss, names, penalty):
    X, y = small_data
    problem = bg.Problem(sp.csr_array(X), y, LOSSES[loss], PENALTIES[penalty], fit_intercept=True)
    best = problem.value(minimiser(problem))
    for name in names:
        result = bg.minimise(problem, SOLVERS[name]("auto"), bg.Mabs(), passes=5000, seed=0, tol=1e-8, record_every=20)
        assert abs(result.value - best) < 1e-10, name


def test_the_rate_is_linear(small_data):
    X, y = small_data
    problem = bg.Problem(sp.csr_array(X), y, bg.Logistic(), bg.SquaredL2(0.05))
    best = problem.value(minimiser(problem))
    for name in ("Saga", "ProxSvrg", "S2gd", "LSvrg"):
        history = bg.minimise(problem, SOLVERS[name](0.1), bg.Mabs(mix="smoothness"), passes=1500, seed=0).history
        gaps = np.maximum(history.value - best, 1e-16)
        reached = [history.passes[np.argmax(gaps <= level)] for level in (1e-4, 1e-7, 1e-10)]
        assert 0 < reached[0] < reached[1] < reached[2], name
        assert reached[2] - reached[1] < 2.5 * (reached[1] - reached[0]) + 10, name


def test_agreement_with_scikit_learn_and_closed_forms(small_data):
    from sklearn.linear_model import ElasticNet, LogisticRegression

    X, y = small_data
    n, d = X.shape

    def solve(loss, penalty):
        problem = bg.Problem(X, y, loss, penalty)
        return bg.minimise(problem, bg.Saga(), bg.Mabs(), passes=20_000, seed=0, tol=1e-10, record_every=50).w

    ridge = np.linalg.solve(X.T @ X / n + 0.05 * np.eye(d), X.T @ y / n)
    np.testing.assert_allclose(solve(bg.Squared(), bg.SquaredL2(0.05)), ridge, atol=1e-7)
    net = ElasticNet(alpha=0.05, l1_ratio=0.5, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(solve(bg.Squared(), bg.ElasticNet(0.05, 0.5)), net.coef_, atol=1e-6)
    logistic = LogisticRegression(C=1 / (n * 0.05), fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(solve(bg.Logistic(), bg.SquaredL2(0.05)), logistic.coef_[0], atol=1e-6)


def test_sample_weights_converge_to_the_repeated_problem_as_fast(small_data, rng):
    X, y = small_data
    counts = rng.integers(0, 6, len(y))
    weighted = bg.Problem(X, y, penalty=bg.SquaredL2(0.05), sample_weight=counts)
    repeated = bg.Problem(np.repeat(X, counts, axis=0), np.repeat(y, counts), penalty=bg.SquaredL2(0.05))
    best = repeated.value(minimiser(repeated))
    draws = []
    for problem in (weighted, repeated):
        history = bg.minimise(problem, bg.Saga(), bg.Mabs(), passes=1000, seed=0).history
        assert abs(history.value[-1] - best) < 1e-11
        draws.append(history.passes[np.argmax(history.value - best < 1e-8)] * problem.n)
    assert draws[0] < 1.5 * draws[1]


# --- the automatic step ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampler", [bg.Uniform(), bg.Mabs(), bg.RecentNorm(mix="blend")], ids=lambda s: type(s).__name__
)
@pytest.mark.parametrize(
    "name", ["ProxSvrg", *(pytest.param(name, marks=pytest.mark.slow) for name in ("Saga", "S2gd", "LSvrg"))]
)
def test_auto_converges_on_hard_data(name, sampler):
    for case, problem in hard_problems().items():
        start = problem.value(np.zeros(problem.dimension))
        result = bg.minimise(problem, SOLVERS[name]("auto"), sampler, passes=400, seed=0)
        assert result.reason is bg.Reason.PASSES_DONE, case
        assert result.value <= start + 1e-12, case
        if case == "one huge row" and not isinstance(sampler, bg.RecentNorm):
            continue  # without a floor ∝ L_i, the safe step is a thousandth: no harm done is all one can ask
        best = hard_minimum(case)
        assert result.value - best <= 0.3 * (start - best) + 1e-9 * abs(start), case


@pytest.mark.parametrize("sampler", [bg.RecentNorm(theta=0.5, mix="blend"), bg.Auto()], ids=lambda s: type(s).__name__)
def test_f_does_not_rise_once_nothing_moves_but_in_a_direction_that_one_row_knows(sampler):
    rng, n = np.random.default_rng(0), 3000
    X = np.hstack([rng.standard_normal((n, 10)), np.zeros((n, 1))])
    X[7, 10] = 300.0
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(n))
    problem = bg.Problem(X, y, bg.Squared(), bg.SquaredL2(1e-4))
    for seed in range(4):
        values = bg.minimise(problem, bg.ProxSvrg(), sampler, passes=60, seed=seed).history.value
        assert (values <= 1.05 * np.minimum.accumulate(values)).all(), seed


def test_auto_is_refused_nothing_and_numbers_are_checked():
    for solver in (bg.Saga, bg.ProxSvrg, bg.S2gd, bg.LSvrg):
        assert solver().step_size == "auto"
        with pytest.raises(ValueError, match="positive"):
            solver(-1.0)
        with pytest.raises(TypeError, match='or "auto"'):
            solver("fast")


def test_the_recorded_variance_is_the_estimators_own(small_data):
    """It falls to zero with the distance to the minimum, as that of SGD does not."""
    X, y = small_data
    problem = bg.Problem(X, y, penalty=bg.SquaredL2(0.05))
    for name in ("Saga", "ProxSvrg", "S2gd", "LSvrg"):
        result = bg.minimise(problem, SOLVERS[name]("auto"), bg.Mabs(), passes=600, seed=0, record_variance=True)
        assert result.history.effective_variance[-1] < 1e-8 * problem.optimal_variance(result.w), name
        assert result.history.effective_variance[0] == 0.0


def test_lengths_of_bins_follow_their_law():
    stream, draws = new_stream(0), 20_000
    m, beta = 12, 0.8
    counts = np.bincount(lengths_of(TruncatedBins(float(m), beta), stream, draws), minlength=m + 1)
    weights = beta ** (m - np.arange(1, m + 1))
    assert counts[0] == 0
    assert chisquare(counts[1:], draws * weights / weights.sum()).pvalue > 1e-4
    even = np.bincount(lengths_of(TruncatedBins(5.0, 1.0), stream, draws), minlength=6)
    assert chisquare(even[1:]).pvalue > 1e-4
    lengths = lengths_of(GeometricBins(50.0), stream, draws)
    assert lengths.min() == 1
    assert lengths.mean() == pytest.approx(50.0, rel=0.03)
    assert set(lengths_of(GeometricBins(1.0), stream, 10)) == {1}


def test_a_leap_of_f_between_two_checks_is_seen(rng):
    """One row alone has a column, and a huge entry in it: a step that its neighbours allow throws w away."""
    X = np.hstack([rng.standard_normal((4000, 10)), np.zeros((4000, 1))])
    X[5, 10] = 1e3
    problem = bg.Problem(X, np.sign(X[:, :10].sum(axis=1)), bg.Squared(), bg.SquaredL2(1.0 / 4000))
    for seed in range(3):
        F = bg.minimise(problem, bg.Saga(), bg.Auto(), passes=12, seed=seed, record_every=0.5).history.value
        assert F.max() <= 1.5 * F[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_row_that_saga_seldom_draws_is_seen_before_its_term_is_f(seed):
    """Its term grows tenfold from one draw to the next, too slowly to be a leap, and within a pass."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.standard_normal((4000, 10)), np.zeros((4000, 1))])
    X[5, 10] = 1e3
    problem = bg.Problem(X, np.sign(X[:, :10].sum(axis=1)), bg.Squared(), bg.SquaredL2(1e-4))
    F = bg.minimise(problem, bg.Saga(), bg.Uniform(), passes=30, seed=seed, record_every=0.25).history.value
    assert F.max() <= 1.05 * F[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_saga_does_not_rise_along_rows_that_are_drawn_all_the_time(seed):
    """Long rows, alone in their columns, that an adaptive sampler draws often: each draw moves their own w̃_i, too."""
    rng, n = np.random.default_rng(0), 4000
    rare = (rng.random((n, 6)) < 2e-3) * 20.0 * np.exp(1.5 * rng.standard_normal((n, 6)))
    X = np.hstack([rng.standard_normal((n, 10)), rare])
    y = np.sign(X[:, :10].sum(axis=1) + 3.0 * rng.standard_normal(n))
    problem = bg.Problem(X, y, bg.Squared(), bg.SquaredL2(1e-4))
    F = bg.minimise(problem, bg.Saga(), bg.Auto(), passes=15, seed=seed, record_every=0.05).history.value
    assert (2.0 * np.minimum.accumulate(F) >= F).all()
