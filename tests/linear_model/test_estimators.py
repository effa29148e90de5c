"""What the estimators promise beyond scikit-learn's checks."""

import itertools
import pickle
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import banditgrad as bg
from banditgrad.linear_model import BanditClassifier, BanditRegressor
from banditgrad.linear_model.base import _in_threads


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)) * np.exp(rng.standard_normal(300))[:, None]
    return X, np.where(X @ [1.0, -2.0, 0.5, 0.0, 0.0] + rng.standard_normal(300) > 0, "yes", "no")


@pytest.fixture
def ctrl_c():
    """SIGINT as in a terminal; the background jobs of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def three_classes():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 300)
    return rng.standard_normal((300, 5)) + 2.0 * np.eye(5)[y], y


def test_pipelines_searches_and_pickles(rows):
    X, y = rows
    model = make_pipeline(StandardScaler(), BanditClassifier(random_state=0))
    search = GridSearchCV(model, {"banditclassifier__alpha": [1e-3, 1e-1]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.75
    assert cross_val_score(model, X, y, cv=3).min() > 0.7
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(again.predict(X), search.predict(X))
    assert clone(BanditClassifier(sampler=bg.Mabs(eta=0.3))).sampler.eta == 0.3


def test_frames_and_their_names(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = BanditClassifier(random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("edcba")])


def test_dense_sparse_and_single_precision_agree(rows):
    X, y = rows
    X = X.astype(np.float32)
    settings = {"alpha": 1e-2, "tol": 1e-9, "random_state": 0}
    reference = BanditClassifier(**settings).fit(X.astype(np.float64), y)
    for other in (X, sp.csr_array(X), sp.csc_matrix(X), np.asfortranarray(X)):
        np.testing.assert_allclose(BanditClassifier(**settings).fit(other, y).coef_, reference.coef_, atol=1e-6)


def test_large_single_precision_rows_are_not_copied(rows, monkeypatch):
    from banditgrad.linear_model import base

    monkeypatch.setattr(base, "SMALL_BYTES", 0)
    X = rows[0].astype(np.float32)
    assert base.as_few_kinds(X) is X
    assert base.as_few_kinds(sp.csr_array(X)).dtype == np.float32


def test_same_seed_same_bits_and_threads_do_not_matter(three_classes):
    X, y = three_classes
    drawing = BanditClassifier(solver="proxsvrg", multi_class="ovr", random_state=3)
    models = [clone(drawing).set_params(n_jobs=jobs).fit(X, y) for jobs in (1, 2, -1)]
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)
    assert not np.array_equal(models[0].coef_, clone(drawing).set_params(random_state=4).fit(X, y).coef_)
    assert models[0].coef_.shape == (3, 5)
    assert models[0].score(X, y) > 0.8
    np.testing.assert_allclose(models[0].predict_proba(X).sum(axis=1), 1.0)


def test_class_weights_are_sample_weights(rows):
    X, y = rows
    settings = {"alpha": 1e-2, "tol": 1e-9, "random_state": 0}
    by_class = BanditClassifier(class_weight={"yes": 3.0, "no": 1.0}, **settings).fit(X, y)
    by_row = BanditClassifier(**settings).fit(X, y, sample_weight=np.where(y == "yes", 3.0, 1.0))
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, atol=1e-7)
    assert np.sum(by_class.predict(X) == "yes") > np.sum(BanditClassifier(**settings).fit(X, y).predict(X) == "yes")
    with pytest.raises(ValueError, match="Sample weights must be 1D"):
        BanditClassifier(class_weight="balanced").fit(X, y, sample_weight=np.ones((300, 1)))


def test_warm_start_goes_on_and_means_the_same_tol(rows):
    X, y = rows
    model = BanditClassifier(random_state=0, warm_start=True, alpha=1e-2, tol=1e-6).fit(X, y)
    first, w = model.n_iter_, model.coef_.copy()
    model.fit(X, y)
    assert model.n_iter_ <= 2 < first  # a look, and a model that says that nothing is left
    np.testing.assert_allclose(model.coef_, w, atol=1e-4)
    with pytest.raises(ValueError, match="warm_start needs data like that of the last fit"):
        model.fit(X[:, :3], y)


def test_warm_start_where_zero_is_the_minimiser(rows):
    X, y = rows
    model = BanditClassifier(penalty="l1", alpha=1e-3, fit_intercept=False, warm_start=True).fit(X, y)
    assert model.coef_.any()
    model.set_params(alpha=100.0).fit(X, y)
    assert not model.coef_.any()
    assert model.n_iter_ == 1


def test_a_warning_says_what_to_do(rows):
    X, y = rows
    with pytest.warns(ConvergenceWarning, match="max_iter=2 passes and the gradient is .*standardize=True"):
        BanditClassifier(max_iter=2, tol=1e-10).fit(X, y)
    BanditClassifier(max_iter=2, tol=None).fit(X, y)  # asked for two passes, made two passes


def test_divergence_is_told(rows):
    X, _ = rows
    with pytest.warns(ConvergenceWarning, match="diverged.*smaller step_size"):
        model = BanditRegressor(step_size=1e3, max_iter=50).fit(X, X[:, 0])
    assert np.isfinite(model.coef_).all()


def test_callback_and_history(rows):
    X, y = rows
    seen = []
    model = BanditClassifier(random_state=0, tol=None, callback=lambda p: seen.append(p.value) or len(seen) == 4)
    model.fit(X, y)
    assert model.n_iter_ == len(seen) == 4
    (history,) = model.history_
    assert history.value.tolist()[1:] == seen
    assert model.objective_[0] == history.value[-1]


def test_interrupted_fits_keep_what_they_reached(three_classes, ctrl_c):
    X, y = three_classes
    for jobs in (1, 2):
        calls = itertools.count()

        def interrupt(progress, calls=calls):
            if next(calls) == 5:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        model = BanditClassifier(
            multi_class="ovr", random_state=0, n_jobs=jobs, tol=None, max_iter=10**7, callback=interrupt
        )
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.coef_.shape == (3, 5)
        assert model.coef_.any()
        assert model.n_iter_ < 10**7


def test_ctrl_c_is_seen_at_any_moment(ctrl_c):
    """The signal comes while the pool starts its threads, or just before the wait for them."""
    for delay in np.linspace(0.0, 1e-3, 200):
        stop, first = threading.Event(), itertools.count()

        def solve(k, stop=stop, first=first, delay=delay):
            if next(first) == 0:
                time.sleep(delay)
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            return stop.wait(60.0)

        assert _in_threads(solve, 3, 2, stop) == [True] * 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_exception_in_one_class_ends_the_others(three_classes):
    calls = itertools.count()

    def fail(progress):
        if next(calls) == 0:
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        BanditClassifier(multi_class="ovr", n_jobs=2, tol=None, max_iter=10**6, callback=fail).fit(*three_classes)


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet", None])
def test_the_steps_of_a_stream_fall(rows, penalty):
    X, y = rows
    model = BanditClassifier(penalty=penalty, alpha=0.1, random_state=0)
    first, late = (model._falling_step(X, None, seen).at(1) for seen in (0, 10**6))
    assert late < 1e-2 * first
    model.fit(X, y)
    assert model.n_seen_ == model.n_iter_ * 300


def test_partial_fit_learns_a_stream():
    rng = np.random.default_rng(2)
    truth = rng.standard_normal(5)
    X = rng.standard_normal((4000, 5))
    labels = np.where(X @ truth > 0, 1, 0)
    model = BanditClassifier(random_state=0)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, labels)
    for begin in range(0, 4000, 500):
        block = slice(begin, begin + 500)
        model.partial_fit(X[block], labels[block], classes=[0, 1])
    assert model.n_seen_ == 4000
    assert model.score(X, labels) > 0.95
    with pytest.raises(ValueError, match=r"not in classes: \[7\]"):
        model.partial_fit(X[:3], [0, 1, 7])
    with pytest.raises(ValueError, match="is not what the first call"):
        model.partial_fit(X[:3], [0, 1, 1], classes=[0, 1, 2])
    regression = BanditRegressor(random_state=0)
    for _ in range(5):
        regression.partial_fit(X, X @ truth)
    np.testing.assert_allclose(regression.coef_, truth, atol=0.05)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "saga"}, "partial_fit is stochastic gradient descent"),
        ({"class_weight": "balanced"}, "Pass a dict"),
    ],
)
def test_partial_fit_refuses(rows, settings, message):
    with pytest.raises(ValueError, match=message):
        BanditClassifier(**settings).partial_fit(*rows, classes=["no", "yes"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "perceptron"}, 'expects loss="log_loss" or "squared_hinge" or "hinge"'),
        ({"penalty": "l3"}, "penalty must be one of"),
        ({"alpha": -1.0}, "alpha must be a number from 0"),
        ({"alpha": "0.1"}, "alpha must be a number"),
        ({"l1_ratio": 1.5}, "l1_ratio must be a number from 0 to 1"),
        ({"max_iter": 0}, "max_iter must be a whole number"),
        ({"max_iter": 2.5}, "max_iter must be a whole number"),
        ({"tol": np.nan}, "tol must be a number"),
        ({"solver": "lbfgs"}, 'solver must be one of "auto", "samplednewton"'),
        ({"sampler": "thompson"}, 'sampler must be one of "auto", "uniform"'),
        ({"solver": bg.Saga(), "step_size": 0.1}, "Pass it to Saga"),
        ({"step_size": -1.0}, "step_size"),
    ],
)
def test_bad_parameters_are_named(rows, settings, message):
    with pytest.raises(ValueError, match=message):
        BanditClassifier(**settings).fit(*rows)


@pytest.mark.parametrize("kind", [BanditClassifier, BanditRegressor])
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
def test_masked_entries_are_refused(kind, call, name):
    rng = np.random.default_rng(0)
    data = {"X": rng.standard_normal((20, 2)), "y": np.arange(20) % 2, "sample_weight": np.ones(20)}
    first = {"classes": [0, 1]} if (kind, call) == (BanditClassifier, "partial_fit") else {}
    masked = {**data, name: np.ma.masked_array(data[name], mask=np.zeros(data[name].shape, bool))}
    model = getattr(kind(random_state=0), call)(**masked, **first)  # nothing is masked
    assert np.array_equal(model.coef_, getattr(kind(random_state=0), call)(**data, **first).coef_)
    masked[name].mask[3] = True
    with pytest.raises(ValueError, match=f"{name} is a masked array in which {masked[name].mask.sum()} entries are"):
        getattr(kind(), call)(**masked, **first)
    with pytest.raises(ValueError, match="X is a masked array"):
        model.predict(np.ma.masked_less(data["X"], 0.0))


def test_probabilities_need_the_logistic_loss(rows):
    model = BanditClassifier("squared_hinge", random_state=0).fit(*rows)
    assert not hasattr(model, "predict_proba")
    assert model.score(*rows) > 0.75


def test_importance_finds_the_rows_that_matter(rows):
    X, y = rows
    flipped = np.array(["no", "yes"])[(y == "no").astype(int)]
    wrong = np.argsort(np.abs(X @ [1.0, -2.0, 0.5, 0.0, 0.0]))[-5:]  # far from the border, on the wrong side
    y = np.where(np.isin(np.arange(len(y)), wrong), flipped, y)
    model = BanditClassifier(alpha=1e-2, random_state=0).fit(X, y)
    assert model.importance_.mean() == pytest.approx(1.0)
    assert np.isin(np.argsort(model.importance_)[-5:], wrong).sum() >= 4
    assert model.sampling_probabilities_.sum() == pytest.approx(1.0)


def test_the_variance_ratio_tells_what_sampling_bought(rows):
    X, y = rows
    uniform = BanditClassifier(sampler="uniform", random_state=0).fit(X, y)
    assert uniform.effective_variance_ratio_ == pytest.approx(1.0)
    bandit = BanditClassifier(solver="proxsvrg", random_state=0).fit(X, y)
    assert bandit.effective_variance_ratio_ < 0.8
    assert bandit.solver_ == "proxsvrg"
    assert BanditClassifier(random_state=0).fit(X, y).solver_ == "samplednewton"


@pytest.mark.parametrize("solver", [bg.ProxSvrg(), bg.Saga(), bg.Sgd(), bg.SampledNewton()])
def test_the_variance_is_looked_at_a_few_times_only(rows, solver, monkeypatch):
    X, y = rows
    looks, feedback = [], type(solver).feedback
    monkeypatch.setattr(type(solver), "feedback", lambda *args: looks.append(1) or feedback(*args))
    model = BanditClassifier(solver=solver, sampler="mabs", tol=None, max_iter=40, random_state=0).fit(X, y)
    looked = np.array([1, 2, 3, 4, 5, 7, 9, 12, 15, 19, 24, 30, 38])
    looked = looked[looked <= model.n_iter_]  # Newton's method ends by itself
    assert len(looks) == looked.size
    problem = bg.Problem(X, np.where(y == "yes", 1.0, -1.0), penalty=bg.ElasticNet(1e-4, 0.0), fit_intercept=True)
    seed = int(np.random.RandomState(0).randint(2**31 - 1, size=1)[0])
    run = bg.minimise(
        problem, solver, bg.Mabs(), passes=40, seed=seed, record_variance=True, callback=lambda progress: False
    )
    assert np.array_equal(run.w[:-1], model.coef_[0])
    ratios = run.history.effective_variance[1:] / run.history.uniform_variance[1:]
    assert model.effective_variance_ratio_ == pytest.approx(
        np.average(ratios[looked - 1], weights=np.diff(looked, prepend=0))
    )
    assert model.effective_variance_ratio_ == pytest.approx(np.mean(ratios), rel=0.25)


def test_importing_the_package_leaves_scikit_learn_alone():
    import subprocess
    import sys

    code = "import sys, banditgrad as bg; assert 'sklearn' not in sys.modules; assert bg.linear_model.BanditClassifier"
    subprocess.run([sys.executable, "-c", code], check=True)
