"""The driver: records, stopping, seeds, interruptions."""

import _thread
import math
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import banditgrad as bg
from banditgrad._jit import watch_compiler
from tables import SAMPLERS


@pytest.fixture
def problem(small_data):
    X, y = small_data
    return bg.Problem(sp.csr_array(X), y, bg.Logistic(), bg.L1(0.01))


@pytest.mark.parametrize("solver", [bg.Sgd(0.05), bg.Sgd(0.05, average="linear"), bg.ProxSgd(0.05)], ids=repr)
def test_recording_does_not_change_the_iterates(problem, solver):
    paths: list[list] = [[], []]
    often, rarely = (
        bg.minimise(
            problem,
            solver,
            bg.Mabs(),
            passes=40,
            seed=1,
            record_every=every,
            record_variance=every < 1,
            callback=lambda progress, path=path: path.append(progress.w),
        )
        for every, path in zip((0.013, 100), paths, strict=True)
    )
    np.testing.assert_array_equal(paths[0][-1], paths[1][-1])
    assert often.history.passes.size > 1000
    assert rarely.history.passes.tolist() == [0.0, 40.0]
    assert often.history.value[-1] == rarely.history.value[-1]


def test_what_is_returned_is_the_best_recorded(problem):
    """Of SGD with a long step, whose last iterate rarely is; also where it is a mean, or the run is stopped."""
    for solver in (bg.Sgd(0.5), bg.ProxSgd(0.5), bg.Sgd(0.5, average="linear"), bg.Saga(0.5)):
        for stop in (None, lambda progress: progress.passes >= 15):
            result = bg.minimise(problem, solver, bg.Mabs(), passes=30, seed=1, callback=stop)
            assert result.value == result.history.value.min() == problem.value(result.w)


def test_a_run_that_ends_high_says_so(problem):
    start = problem.value(np.zeros(12))
    high = bg.minimise(problem, bg.Sgd(50.0), bg.Mabs(), passes=3, seed=0)
    assert start < high.history.value[-1] < np.inf
    assert high.reason is bg.Reason.ROSE
    assert '"auto"' in high.reason.value
    assert high.value == high.history.value.min() <= start
    limited = bg.minimise(problem, bg.Sgd(50.0), bg.Mabs(), passes=1e9, seed=0, time_limit=0.05, record_every=3)
    assert limited.reason is bg.Reason.ROSE


@pytest.mark.parametrize(
    ("values", "rose"),
    [
        ((1.0, 0.2, 0.3), False),
        ((1.0, 0.2, 0.5), True),  # more than a quarter of the gain is lost
        ((1.0, 0.999, 1.0), False),  # there was hardly any
        ((1.0, 0.9, 1.01), True),
        ((1.0, 1.0, 1.0 + 1e-12), False),
        ((np.inf, 0.2, 9.0), False),
        ((-1.0, -2.0, -1.9), False),
        ((-1.0, -2.0, -1.5), True),
    ],
)
def test_what_ends_high(rng, values, rose):
    """A problem of which nothing but the values matters."""
    problem = bg.Problem(np.ones((4, 1)), np.ones(4), bg.Squared())
    told = iter(values)
    problem.value = lambda w, last=values[-1]: next(told, last)
    assert (bg.minimise(problem, bg.Sgd(0.1), passes=2, seed=0).reason is bg.Reason.ROSE) == rose


def test_same_seed_same_bits_also_in_two_threads(problem):
    def run(answers, k):
        answers[k] = bg.minimise(problem, bg.ProxSgd(0.05), bg.Mabs(), passes=50, seed=4).w

    answers: dict = {}
    threads = [threading.Thread(target=run, args=(answers, k)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run(answers, 2)
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
    other = bg.minimise(problem, bg.ProxSgd(0.05), bg.Mabs(), passes=50, seed=5).w
    assert (other != answers[0]).any()


def test_dense_and_sparse_rows_give_the_same_path(small_data):
    X, y = small_data
    w = [
        bg.minimise(bg.Problem(form, y, penalty=bg.ElasticNet(0.02)), bg.ProxSgd(0.05), bg.Mabs(), passes=20, seed=0).w
        for form in (X, sp.csr_array(X), np.asfortranarray(X))
    ]
    np.testing.assert_allclose(w[1], w[0], atol=1e-10)
    np.testing.assert_array_equal(w[2], w[0])


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_reaches_the_minimum(small_data, name):
    X, y = small_data
    problem = bg.Problem(X, y, bg.Huber(), bg.SquaredL2(0.1))
    best = bg.minimise(problem, bg.ProxSgd(bg.ShiftedInverseTime(20.0, 0.1)), passes=3000, seed=0).value
    result = bg.minimise(problem, bg.ProxSgd(bg.ShiftedInverseTime(20.0, 0.1)), SAMPLERS[name], passes=400, seed=1)
    assert result.value <= best + 2e-3
    assert result.reason is bg.Reason.PASSES_DONE
    assert "passes" in result.reason.value


def test_converged_means_the_gradient_mapping_is_small(rng):
    X = rng.standard_normal((30, 4))
    problem = bg.Problem(X, X @ [1.0, 2.0, 0.0, -1.0], bg.Squared())  # interpolation: SGD converges to the point
    result = bg.minimise(problem, bg.Sgd(0.05), passes=5000, seed=0, tol=1e-8)
    assert result.reason is bg.Reason.CONVERGED
    assert result.converged
    start = np.linalg.norm(problem.gradient_mapping(np.zeros(4)))
    assert np.linalg.norm(problem.gradient_mapping(result.w)) <= 1e-8 * start
    assert result.passes < 5000


@pytest.fixture
def far_apart(rng):
    """Two classes that a plane parts."""
    y = np.where(rng.random(1000) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((1000, 15))
    X[:, 0] += 8.0 * y
    return X, y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("penalty", [bg.SquaredL2(1e-8), bg.L1(1e-6)], ids=repr)
def test_tol_holds_where_little_of_f_is_left(far_apart, penalty, seed):
    problem = bg.Problem(*far_apart, bg.Logistic(), penalty)
    result, best = bg.minimise(problem, tol=1e-4, seed=seed), bg.minimise(problem, passes=300, seed=0).value
    assert best < 1e-4 * problem.value(np.zeros(15))
    assert result.converged
    assert result.value <= (1.0 + 1e-6) * best


def test_tol_is_met_where_f_falls_for_ever(far_apart):
    result = bg.minimise(bg.Problem(*far_apart), tol=1e-4, seed=0)
    assert result.converged
    assert result.value <= 1e-8 * result.history.value[0]
    assert result.passes < 50


def test_tol_is_the_same_from_wherever_a_run_starts(problem):
    w = bg.minimise(problem, passes=300, seed=0).w
    near = w + 1e-3 * np.abs(w).max()
    cold, warm = (bg.minimise(problem, bg.ProxSvrg(), passes=400, tol=1e-5, seed=0, w0=w0) for w0 in (None, near))
    assert cold.converged
    assert warm.converged
    assert warm.passes < cold.passes
    assert bg.minimise(problem, bg.ProxSvrg(), tol=1e-5, seed=0, w0=warm.w).passes == 1.0


def test_a_diverging_run_stops_and_returns_the_best(rng):
    X = 10.0 * rng.standard_normal((50, 5))
    problem = bg.Problem(X, rng.standard_normal(50), bg.Squared())
    result = bg.minimise(problem, bg.Sgd(1.0), passes=1000, seed=0)
    assert result.reason is bg.Reason.DIVERGED
    assert "step_size" in result.reason.value
    assert np.isfinite(result.w).all()
    assert result.value == problem.value(result.w) == result.history.value.min()
    assert result.passes < 50


def test_records_do_not_count(problem):
    plain, slow = (
        bg.minimise(problem, bg.Sgd(0.01), passes=20, callback=callback)
        for callback in (None, lambda progress: time.sleep(0.02))
    )
    assert slow.seconds < plain.seconds + 0.2  # 20 callbacks took 0.4


@pytest.mark.parametrize("solver", ["auto", "proxsvrg", "saga"])
def test_nothing_is_left_to_compile_when_the_clock_starts(small_data, solver):
    class Own(NamedTuple):  # a class of its own, so that nothing is compiled for it yet
        scale: float = 1.0

        def value(self, z, y):
            return self.scale * 0.5 * (z - y) ** 2

        def derivative(self, z, y):
            return self.scale * (z - y)

        def second_derivative(self, z, y):
            return self.scale

        def curvature(self):
            return self.scale

        def slope_bound(self):
            return math.inf

    X, y = small_data
    problem = bg.Problem(X, y, Own(), bg.SquaredL2(1e-3))
    bg.minimise(problem, solver, passes=0, tol=1e-3, seed=0)
    with watch_compiler(lambda: None) as spent:
        bg.minimise(problem, solver, passes=5, tol=1e-3, seed=0)
    assert spent() == 0.0


def test_time_limit_is_kept_even_if_steps_are_slow(rng):
    X = sp.random(300, 20_000, 0.01, random_state=rng, format="csr")
    problem = bg.Problem(X, np.ones(300), bg.Squared(), bg.L1(1e-3))
    solver = bg.ProxSgd(1e-3, geometry=bg.PNorm(1.5))  # d powers at every step
    result = bg.minimise(problem, solver, bg.Mabs(), passes=1e20, time_limit=0.3)
    assert result.reason is bg.Reason.TIME_LIMIT
    assert 0.3 <= result.seconds < 1.5
    assert result.history.passes[-1] == result.passes


def test_an_open_end_does_not_stop_the_bandit_from_learning(rng):
    X = rng.standard_normal((500, 5)) * np.exp(rng.standard_normal(500))[:, None]
    problem = bg.Problem(X, np.sign(X[:, 0]))
    gains = []
    for passes, limit in ((50, None), (1e12, 0.2)):
        result = bg.minimise(problem, bg.Sgd(0.01), bg.Mabs(), passes=passes, time_limit=limit, seed=0)
        w, p = result.w, result.sampling.probabilities()
        gains.append(problem.effective_variance(w, p) / problem.effective_variance(w, np.full(500, 1 / 500)))
    assert max(gains) < 0.6


def test_whole_numbers_of_steps(problem):
    for steps in range(1, 200):
        result = bg.minimise(problem, bg.Sgd(1e-3), passes=steps / problem.n, record_every=100)
        assert round(result.passes * problem.n) == steps


def test_an_infinite_value_at_the_start_is_no_divergence():
    from test_jit import Box

    boxed = bg.Problem(np.eye(3), np.ones(3), bg.Squared(), Box(0.5))
    result = bg.minimise(boxed, bg.ProxSgd(0.1), passes=50, w0=np.full(3, 9.0), seed=0)
    assert result.reason is bg.Reason.PASSES_DONE
    np.testing.assert_allclose(result.w, 0.5)


def test_a_sampler_that_draws_what_is_not_a_row(problem):
    from test_jit import AlternateState

    class Wild(bg.Sampler):
        def state(self, setup):
            return AlternateState(np.array([10**9, 0]), 10**12)

    with pytest.raises(IndexError, match=r"Wild drew an index outside 0\.\.59"):
        bg.minimise(problem, bg.Sgd(0.1), Wild())
    with pytest.raises(IndexError, match="Wild"):
        bg.minimise(problem, bg.Saga(0.1), Wild())
    with pytest.raises(IndexError, match="Wild"):
        bg.minimise(bg.Problem(np.ones((50_000, 1)), np.ones(50_000)), bg.SampledNewton(), Wild())
    with pytest.raises(IndexError, match="Wild"):
        Wild().start(60).draw(3)


def test_callback_sees_and_stops(problem):
    seen = []

    def callback(progress):
        seen.append(progress.value)
        assert progress.value == problem.value(progress.w)
        return progress.passes >= 3

    result = bg.minimise(problem, bg.Sgd(0.01), passes=50, seed=0, callback=callback)
    assert result.reason is bg.Reason.CALLBACK
    assert result.passes == 3
    assert seen == result.history.value[1:].tolist()


def test_ctrl_c_before_there_is_anything_is_passed_on(rng, monkeypatch):
    X = rng.standard_normal((20, 3))
    problem = bg.Problem(X, X[:, 0], bg.Squared())

    def interrupt(self, w):
        raise KeyboardInterrupt

    monkeypatch.setattr(bg.Problem, "value", interrupt)
    with pytest.raises(KeyboardInterrupt):
        bg.minimise(problem, bg.Sgd(1e-3), passes=1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_ctrl_c_returns_what_there_is(rng):
    X = rng.standard_normal((2000, 20))
    problem = bg.Problem(X, X[:, 0], bg.Squared())
    bg.minimise(problem, bg.Sgd(1e-3), passes=1)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    result = bg.minimise(problem, bg.Sgd(1e-3), passes=1e9, seed=0)
    timer.join()
    assert result.reason is bg.Reason.INTERRUPTED
    assert np.isfinite(result.value)
    assert result.passes > 0
    assert result.value < problem.value(np.zeros(20))


def test_variance_in_the_history_is_the_problems(problem):
    result = bg.minimise(problem, bg.Sgd(0.05), bg.Mabs(), passes=10, seed=0, record_variance=True)
    history = result.history
    assert history.effective_variance[-1] == pytest.approx(
        problem.effective_variance(result.w, result.sampling.probabilities()), rel=1e-12
    )
    assert history.optimal_variance[-1] == pytest.approx(problem.optimal_variance(result.w), rel=1e-12)
    assert (history.effective_variance >= history.optimal_variance * (1 - 1e-12)).all()
    assert bg.minimise(problem, bg.Sgd(0.05), passes=1).history.effective_variance is None


def test_the_smallest_problems():
    for X, y in (([[1.0]], [1.0]), ([[1.0], [0.0]], [1.0, 1.0]), (np.zeros((3, 2)), [1.0, -1.0, 1.0])):
        for form in (np.array(X), sp.csr_array(np.array(X))):
            for sampler in (bg.Uniform(), bg.Importance(), bg.Mabs(), bg.Vrb(), bg.RecentNorm()):
                problem = bg.Problem(form, y, penalty=bg.L1(0.1), fit_intercept=True)
                result = bg.minimise(problem, bg.ProxSgd(0.5), sampler, passes=20, seed=0)
                assert np.isfinite(result.w).all()
                assert result.value <= problem.value(np.zeros(problem.dimension)) + 0.5


def test_a_progress_bar_only_on_a_terminal(problem, capsys):
    bg.minimise(problem, bg.Sgd(0.01), passes=2, progress=True)
    assert capsys.readouterr() == ("", "")


def test_mabs_beats_uniform_on_w8a(real_data):
    """The paper's figure 2, first panel, in short: SGD with γ = 1 on L1-logistic regression, λ = 1e-4."""
    X, y = real_data("w8a")
    problem = bg.Problem(X, y, bg.Logistic(), bg.L1(1e-4))
    gap = {
        name: bg.minimise(problem, bg.Sgd(1.0), SAMPLERS[name], passes=30, seed=0, record_every=30).value - 0.146882453
        for name in ("Uniform", "Importance(smoothness)", "Mabs")
    }
    assert gap["Mabs"] < 0.5 * min(gap["Uniform"], gap["Importance(smoothness)"])


def test_names_mean_what_the_objects_do(small_data):
    X, y = small_data
    named = bg.minimise(bg.Problem(X, y, "logistic"), "saga", "mabs", passes=3, seed=0)
    objects = bg.minimise(bg.Problem(X, y, bg.Logistic()), bg.Saga(), bg.Mabs(), passes=3, seed=0)
    assert np.array_equal(named.w, objects.w)
    assert bg.Problem(X, y, "log_loss").loss == bg.Logistic()
    assert bg.Problem(X, y, "squaredhinge").loss == bg.Problem(X, y, "squared_hinge").loss == bg.SquaredHinge()


def test_a_history_as_a_frame(small_data):
    X, y = small_data
    history = bg.minimise(bg.Problem(X, y), "sgd", "uniform", passes=3, seed=0).history
    assert list(history.to_frame().columns) == ["passes", "seconds", "value"]
    assert history.to_frame()["value"].tolist() == history.value.tolist()
    noted = bg.minimise(bg.Problem(X, y), "sgd", "uniform", passes=3, seed=0, record_variance=True).history
    assert list(noted.to_frame().columns)[3:] == ["effective_variance", "optimal_variance", "uniform_variance"]
