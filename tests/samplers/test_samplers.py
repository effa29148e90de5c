"""What every sampler must do, one row of tables.py each."""

import os
import pickle
import subprocess
import sys
import threading
from copy import copy, deepcopy

import numpy as np
import pytest

import banditgrad as bg
from banditgrad.samplers import auto
from iterates import last_iterate
from samplers.test_weighted import chi_square_passes
from tables import SAMPLERS

N = 500


@pytest.fixture(scope="module")
def feedback():
    """a_i, bounds above them and smoothness constants for N items; some are zero."""
    rng = np.random.default_rng(1)
    a = np.exp(2.0 * rng.standard_normal(N)) / N**2
    a[:20] = 0.0
    bounds = a * rng.uniform(1.0, 4.0, N)
    return a, bounds, np.where(bounds > 0.0, rng.uniform(1.0, 2.0, N), 0.0)


def started(name, feedback, seed=0, horizon=100_000):
    _, bounds, smoothness = feedback
    return SAMPLERS[name].start(N, horizon=horizon, seed=seed, bounds=bounds, smoothness=smoothness)


def adapt(sampling, a, rounds=200, size=200):
    for _ in range(rounds):
        i, p = sampling.draw(size)
        sampling.update(i, a[i], p)


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_follow_p_before_and_after_adapting(name, feedback):
    sampling = started(name, feedback)
    for _ in range(2):
        p = sampling.probabilities()
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        i, p_drawn = sampling.draw(1_000_000)
        np.testing.assert_array_equal(p_drawn, p[i])
        assert chi_square_passes(np.bincount(i, minlength=N), p)
        adapt(sampling, feedback[0])


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_estimator_is_unbiased(name, small_data):
    """The mean over i ~ p of one SGD step from w is the full gradient step, before and after adapting."""
    X, y = small_data
    problem = bg.Problem(X, y)
    w = np.linspace(-1.0, 1.0, X.shape[1])
    p = bg.minimise(problem, bg.Sgd(0.05), SAMPLERS[name], passes=20, seed=0).sampling.probabilities()
    uniform = np.full(len(y), 1.0 / len(y))
    for q in (uniform, p):
        steps = [
            last_iterate(problem, bg.Sgd(0.1), bg.Replay([i], q), passes=1 / len(y), w0=w) - w
            for i in np.flatnonzero(q)
        ]
        np.testing.assert_allclose(q[q > 0.0] @ steps, -0.1 * problem.gradient(w), atol=1e-13)


ALWAYS_ADAPTIVE = [name for name in SAMPLERS if not name.startswith(("Uniform", "Importance", "Auto"))]


@pytest.mark.parametrize("name", ALWAYS_ADAPTIVE)
def test_adapting_lowers_the_variance(name, feedback):
    a = feedback[0]
    sampling = started(name, feedback)
    before = np.sum(a / sampling.probabilities())
    adapt(sampling, a, rounds=499)
    assert np.sum(a / sampling.probabilities()) < 0.8 * before


@pytest.mark.parametrize("name", SAMPLERS)
def test_same_seed_same_bits_also_from_two_threads(name, feedback):
    answers = {}

    def work(key):
        sampling = started(name, feedback, seed=9)
        adapt(sampling, feedback[0], rounds=50)
        answers[key] = (*sampling.draw(1000), sampling.probabilities())

    threads = [threading.Thread(target=work, args=(key,)) for key in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work(2)
    for key in (1, 2):
        for one, other in zip(answers[0], answers[key], strict=True):
            np.testing.assert_array_equal(one, other)
    other_seed, _ = started(name, feedback, seed=10).draw(1000)
    first, _ = started(name, feedback, seed=9).draw(1000)
    assert (other_seed != first).any()


@pytest.mark.parametrize("name", SAMPLERS)
def test_state_is_saved_and_restored_exactly(name, feedback, tmp_path):
    sampling = started(name, feedback)
    adapt(sampling, feedback[0], rounds=30)
    np.savez(tmp_path / "state.npz", **sampling.state_dict())
    again = started(name, feedback, seed=77)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as saved:
        again.load_state_dict(dict(saved))
    for run in (sampling, again):
        adapt(run, feedback[0], rounds=30)
    for one, other in zip(sampling.draw(500), again.draw(500), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(sampling.probabilities(), again.probabilities())
    assert sampling.statistics() == again.statistics()


def test_a_foreign_or_damaged_state_is_refused():
    sampling = bg.Mabs().start(10, horizon=100, seed=0)
    good = sampling.state_dict()
    with pytest.raises(ValueError, match="not a state of Uniform"):
        bg.Uniform().start(10).load_state_dict(good)
    with pytest.raises(ValueError, match="another run"):
        bg.Mabs().start(11).load_state_dict(good)
    with pytest.raises(ValueError, match="eta"):
        bg.Mabs(eta=0.3).start(10).load_state_dict(good)
    for name, value in (("weighted.where", 10_000), ("weighted.buckets", -1)):
        bad = {**good, name: np.full_like(good[name], value)}
        with pytest.raises(ValueError, match="damaged"):
            sampling.load_state_dict(bad)
    bad = {**good, "weighted.entries": good["weighted.entries"].copy()}
    bad["weighted.entries"]["id"][:] = 2**30
    with pytest.raises(ValueError, match="damaged"):
        sampling.load_state_dict(bad)
    bad["weighted.entries"] = good["weighted.entries"].copy()
    bad["weighted.entries"]["m"] = 0.0  # nothing could ever be drawn
    with pytest.raises(ValueError, match="damaged"):
        sampling.load_state_dict(bad)
    bad = {**good, "weighted.buckets": good["weighted.buckets"].copy()}
    bad["weighted.buckets"]["ends"][0, 3:7] = 2**62  # the sums of bounds
    with pytest.raises(ValueError, match="damaged"):
        sampling.load_state_dict(bad)
    sampling.load_state_dict(good)
    with pytest.raises(ValueError, match="its n is 20"):
        bg.Uniform().start(10).load_state_dict(bg.Uniform().start(20).state_dict())
    with pytest.raises(ValueError, match="reset_every"):
        bg.Mabs().start(10).load_state_dict(bg.Mabs(reset_every=7).start(10).state_dict())
    replay = bg.Replay([1, 2]).start(3)
    with pytest.raises(ValueError, match="damaged"):
        replay.load_state_dict({**replay.state_dict(), "position": np.array([10**12])})


@pytest.mark.parametrize(
    "way", [lambda s: pickle.loads(pickle.dumps(s)), deepcopy, copy], ids=["pickle", "deep", "copy"]
)
def test_a_copy_goes_its_own_way(way, feedback):
    sampling = started("Mabs", feedback)
    adapt(sampling, feedback[0], rounds=5)
    other = way(sampling)
    before = other.probabilities()
    np.testing.assert_array_equal(sampling.draw(100)[0], other.draw(100)[0])
    adapt(sampling, feedback[0], rounds=5)
    np.testing.assert_array_equal(other.probabilities(), before)


def test_threads_may_share_a_sampling(feedback):
    sampling = started("Mabs", feedback)
    threads = [threading.Thread(target=adapt, args=(sampling, feedback[0], 300, 50)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sampling.statistics()["updates"] == 4 * 300 * 50
    assert sampling.probabilities().sum() == pytest.approx(1.0, abs=1e-12)
    sampling.load_state_dict(sampling.state_dict())  # finds no fault


def test_feedback_of_zero_lowers_p():
    sampling = bg.RecentNorm(memory=0.0).start(50, seed=0)
    i, p = sampling.draw(50)
    sampling.update(i, np.ones(50), p)  # the warm-up
    for a, expected in ((1e6, 0.5), (0.0, 0.01)):
        sampling.update([3], [a])
        assert (sampling.probability(3) > expected) == (a > 0)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_items(name, n):
    sampling = SAMPLERS[name].start(n, horizon=10, seed=0, bounds=np.ones(n), smoothness=np.ones(n))
    for _ in range(20):
        i, p = sampling.draw(5)
        assert (i < n).all()
        sampling.update(i, np.ones(5), p)
    assert sampling.probabilities().sum() == pytest.approx(1.0)
    assert isinstance(sampling.draw()[0], int)


@pytest.mark.parametrize("name", SAMPLERS)
def test_feedback_of_zero_and_of_any_size(name, feedback):
    for scale in (0.0, 1e-200, 1e200):
        sampling = started(name, feedback)
        adapt(sampling, feedback[0] * scale, rounds=20)
        p = sampling.probabilities()
        assert np.isfinite(p).all()
        assert p.sum() == pytest.approx(1.0)


def test_duplicates_in_a_batch_count_each_time():
    """Feedback (i, i) given at once is the same as given twice with the probability of the draw."""
    together, apart = (bg.Mabs(delta=1e-3).start(4, seed=0) for _ in range(2))
    together.update([2, 2, 1], [0.3, 0.3, 0.1])
    for i, a in ((2, 0.3), (2, 0.3), (1, 0.1)):
        apart.update([i], [a], [0.25])
    np.testing.assert_array_equal(together.probabilities(), apart.probabilities())
    once = bg.Mabs(delta=1e-3).start(4, seed=0)
    once.update([2, 1], [0.3, 0.1])
    assert once.probability(2) < together.probability(2)


def run_auto(a, draws, smoothness=None):
    sampling = bg.Auto().start(len(a), seed=0, smoothness=smoothness)
    adaptive = []
    for _ in range(draws // 100):
        i, p = sampling.draw(100)
        sampling.update(i, a[i], p)
        adaptive.append(sampling.statistics()["adaptive"])
    return sampling, adaptive


def test_auto_is_adaptive_only_where_it_pays(rng):
    n = 2000
    alike, unlike = rng.uniform(0.5, 1.5, n), np.exp(3.0 * rng.standard_normal(n))
    sampling, adaptive = run_auto(alike, 20 * n)
    assert not any(adaptive)
    np.testing.assert_array_equal(sampling.probabilities(), 1.0 / n)
    sampling, adaptive = run_auto(unlike, 20 * n)
    assert not adaptive[0]
    assert all(adaptive[n // 100 :])
    assert np.sum(unlike / sampling.probabilities()) < 0.5 * np.sum(unlike * n)


def test_auto_compares_norms_that_rise_and_fall_together(rng):
    """As those of a snapshot method do, within a bin and from one to the next."""
    n, block = 20_000, 200
    unlike, ratios = np.exp(2.0 * rng.standard_normal(n)), []
    sampling = bg.Auto().start(n, seed=0)
    for t in np.arange(0.0, 12.0, block / n):
        level = 1e-2 ** int(t) * (t % 1.0 + 1e-3) ** 2
        i, p = sampling.draw(block)
        sampling.update(i, level * unlike[i], p)
        ratios.append(np.sum(unlike / sampling.probabilities()) / (np.sum(unlike) * n))
    assert max(ratios) <= 1.05
    assert np.mean(ratios[len(ratios) // 2 :]) < 0.6


def test_auto_gives_up_where_the_gain_goes_and_waits_longer_before_the_next_try(rng):
    n = 2000
    sampling, adaptive = run_auto(np.exp(3.0 * rng.standard_normal(n)), 4 * n)
    assert adaptive[-1]
    for _ in range(8 * n // 100):
        i, p = sampling.draw(100)
        sampling.update(i, np.ones(100), p)
    assert not sampling.statistics()["adaptive"]
    waits = sampling.state.patience
    assert waits[0] >= 2 * waits[1]


def test_auto_does_not_trust_norms_that_a_draw_uses_up(rng):
    """As with SAGA, whose table makes the a_i of a row small once it is drawn: they grow with the time since then."""
    n, now = 4000, 0
    sampling, drawn, ratios = bg.Auto().start(n, seed=0), np.zeros(n), []
    for _ in range(20 * n // 100):
        i, p = sampling.draw(100)
        now += 100
        sampling.update(i, (now - drawn[i]) ** 4, p)
        drawn[i] = now
        a = (now - drawn) ** 4
        ratios.append(np.sum(a / sampling.probabilities()) / (np.sum(a) * n))
    assert max(ratios) <= 1.3
    assert np.mean(ratios) <= 1.03


def test_auto_begins_adaptive_where_the_smoothness_differs_much(rng):
    n = 2000
    for spread, expected in ((0.5, False), (2.0, True)):
        sampling = bg.Auto().start(n, seed=0, smoothness=np.exp(spread * rng.standard_normal(n)))
        assert sampling.statistics()["adaptive"] == expected


@pytest.mark.parametrize("used_up", [False, True])
def test_auto_tells_norms_that_a_draw_uses_up(rng, used_up):
    n, now = 4000, 0
    sampling, drawn = bg.Auto().start(n, seed=0), np.zeros(n)
    unlike = np.exp(1.5 * rng.standard_normal(n))
    while not sampling.statistics()["adaptive"]:
        i, p = sampling.draw(100)
        now += 100
        sampling.update(i, unlike[i] * ((now - drawn[i]) ** 2 if used_up else 1.0), p)
        drawn[i] = now
    assert sampling.state.clock[auto.FIXED] == used_up


def test_while_uniform_auto_bounds_what_a_safe_step_must_heed(rng):
    """A few huge L_i: p is within a twentieth of uniform for the variance, and L_i / (n p_i) within twenty means."""
    n = 5000
    L = rng.uniform(0.5, 1.5, n)
    for heavy in (1.0, 1e3):
        L[7] = heavy
        sampling = bg.Auto().start(n, seed=0, smoothness=L)
        p = sampling.probabilities()
        assert (1.0 / (n * p)).max() <= 1.0 / 0.95 + 1e-9
        assert (L / (n * p)).max() <= 20.0 * L.mean()
        assert (p.max() == p.min()) == (heavy == 1.0)
        i, p_drawn = sampling.draw(200_000)
        np.testing.assert_allclose(p_drawn, p[i], rtol=1e-12)
        assert np.mean(i == 7) == pytest.approx(p[7], rel=0.1, abs=1e-3)


def test_replay_draws_what_it_is_given():
    p = np.array([0.2, 0.3, 0.5])
    sampling = bg.Replay([2, 0, 1], p).start(3)
    i, reported = sampling.draw(4)
    assert i.tolist() == [2, 0, 1, 2]
    np.testing.assert_array_equal(reported, p[i])
    with pytest.raises(ValueError, match="from 0 to 2"):
        bg.Replay([3]).start(3)


USES = {
    "load_state_dict": lambda sampling, saved: sampling.load_state_dict(saved),
    "deepcopy": lambda sampling, saved: deepcopy(sampling),
    "copy": lambda sampling, saved: copy(sampling),
    "pickle": lambda sampling, saved: pickle.dumps(sampling),
    "state_dict": lambda sampling, saved: sampling.state_dict(),
    "statistics": lambda sampling, saved: sampling.statistics(),
    "draw": lambda sampling, saved: sampling.draw(3),
    "probabilities": lambda sampling, saved: sampling.probabilities(),
    "update": lambda sampling, saved: sampling.update([0], [1.0], [0.1]),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_one_thread_at_a_time_uses_the_state(use):
    sampling = bg.Mabs().start(N, seed=0)
    saved, inside, leave = sampling.state_dict(), threading.Event(), threading.Event()
    use(sampling, saved)  # what it needs is compiled
    first = threading.Thread(target=sampling.apply, args=(lambda state: inside.set() or leave.wait(),))
    second = threading.Thread(target=use, args=(sampling, saved))
    first.start()
    inside.wait()
    second.start()
    second.join(timeout=0.1)
    waits = second.is_alive()
    leave.set()
    first.join()
    second.join()
    assert waits


FORK = """
import os, signal, threading, time
import banditgrad as bg

sampling, inside = bg.Mabs().start(50, seed=0), threading.Event()
sampling.draw()

def half_done(state):
    state.total[0] = -1.0
    inside.set()
    time.sleep(0.3)
    state.total[0] = 1.0

thread = threading.Thread(target=sampling.apply, args=(lambda state: half_done(state.weighted),))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)
    whole = sampling.state.weighted.total[0] == 1.0
    sampling.draw()
    bg.Mabs().start(5).draw()
    os._exit(0 if whole else 1)
sampling.draw()
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_may_draw_while_threads_of_its_parent_do():
    """It gets a state that no thread is at work on, and a lock that no thread holds."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0\n"
