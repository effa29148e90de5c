"""`partial_fit`: one pass of AdaGrad over the rows of each call."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import SGDClassifier, SGDRegressor

from banditgrad.linear_model import BanditClassifier, BanditRegressor, base
from banditgrad.linear_model.stream import INTERCEPT, RATE

SLOPES = {
    "log_loss": lambda z, y: -y / (1 + np.exp(y * z)),
    "multinomial": lambda z, y: softmax(z) - (y > 0),
    "squared_hinge": lambda z, y: -2 * y * np.maximum(0, 1 - y * z),
    "squared_error": lambda z, y: z - y,
}


def shrunk(w, step, l1, l2):
    return np.sign(w) * np.maximum(abs(w) - l1 * step, 0) / (1 + l2 * step)


def by_hand(blocks, loss, l1, l2, seed):
    """The same steps with plain NumPy: w of shape (d + 1, targets), the intercept last."""
    d, count = blocks[0][0].shape[1], blocks[0][1].shape[1]
    w, largest = np.zeros((d + 1, count)), np.append(np.zeros(d), 1.0)
    squares, by_target, total_y, crowd, seen = np.zeros(d + 1), np.zeros(count), 0.0, 0.0, 0
    curvature = {"log_loss": 0.0, "multinomial": 0.0, "squared_hinge": 2.0, "squared_error": 1.0}[loss]
    rates, balance = np.zeros(d + 1), np.ones(count)
    for X, Y, weights in blocks:
        total_y, seen = total_y + np.sum(Y**2) / count, seen + len(Y)
        crowd += np.sum((X / np.maximum(largest[:-1], abs(X).max(axis=0))) ** 2)
        rate = RATE * np.sqrt(total_y / seen / max(1.0, crowd / seen))
        used = squares > 0
        rates[used] = rate / (largest[used] * np.sqrt(squares[used]))
        done = np.zeros(d)
        weights = weights / weights.mean()
        for t, i in enumerate(np.random.RandomState(seed).permutation(len(Y))):
            x = np.append(X[i], 1.0)
            for j in np.flatnonzero(X[i]):
                w[j], done[j] = shrunk(w[j], rates[j] * (t - done[j]) * balance, l1, l2), t
                if abs(x[j]) > largest[j]:
                    w[j] *= largest[j] / abs(x[j]) if largest[j] > 0 else 1
                    largest[j] = abs(x[j])
            g = weights[i] * SLOPES[loss](x @ w, Y[i])
            by_target += g**2
            if not g.any():
                continue
            squares += x**2 * np.sum(g**2)
            rates[x != 0] = rate / (largest * np.sqrt(np.where(squares > 0, squares, 1)))[x != 0]
            rates[d] *= INTERCEPT
            balance = np.where(by_target > 0, np.sqrt(by_target.sum() / np.where(by_target > 0, by_target, 1)), 1)
            g *= balance / (1 + curvature * weights[i] * balance * (rates @ x**2))
            w -= np.outer(rates * x, g)
        for j in range(d):
            w[j] = shrunk(w[j], rates[j] * (len(Y) - done[j]) * balance, l1, l2)
    return w


@pytest.fixture(scope="module")
def blocks():
    rng = np.random.default_rng(0)
    made = []
    for n in (60, 40):
        X = rng.standard_normal((n, 6)) * (rng.random((n, 6)) < 0.5) * [1, 1, 1, 10, 100, 1e-3]
        made.append((X, rng.integers(0, 3, n), rng.random(n) + 0.5))
    return made


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet", None])
@pytest.mark.parametrize("loss", ["log_loss", "multinomial", "squared_hinge", "squared_error"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_steps_are_those_of_a_plain_loop(blocks, loss, penalty, form):
    alpha = 0.01
    l1 = alpha * {"l1": 1.0, "elasticnet": 0.15}.get(penalty, 0.0)
    l2 = 0.0 if penalty is None else alpha - l1
    kind, first = (BanditRegressor, {}) if loss == "squared_error" else (BanditClassifier, {"classes": [0, 1, 2]})
    settings = {"penalty": penalty, "alpha": alpha, "random_state": 7}
    if loss == "multinomial":
        model = kind("log_loss", multi_class=loss, **settings)
    else:
        model = kind(loss, **settings, **({} if kind is BanditRegressor else {"multi_class": "ovr"}))
    for X, y, weights in blocks:
        model.partial_fit(form(X), y, sample_weight=weights, **first)
    targets = [
        y[:, None] * 1.0 if loss == "squared_error" else np.where(y[:, None] == range(3), 1, -1) for _, y, _ in blocks
    ]
    w = by_hand([(X, Y, s) for (X, _, s), Y in zip(blocks, targets, strict=True)], loss, l1, l2, 7)
    np.testing.assert_allclose(np.atleast_2d(model.coef_), w[:-1].T, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(model.intercept_, w[-1], rtol=1e-9)
    assert model.coef_.shape == ((6,) if loss == "squared_error" else (3, 6))
    assert model.n_seen_ == 100
    assert model.solver_ == "adagrad"


def test_the_units_of_columns_do_not_matter(blocks):
    X, y, _ = blocks[0]
    units = 2.0 ** np.array([0, 20, -20, 7, 40, -40])  # powers of two, so that nothing is rounded
    one, other = BanditClassifier(penalty=None, random_state=0), BanditClassifier(penalty=None, random_state=0)
    for _ in range(3):
        one.partial_fit(X, y, classes=[0, 1, 2])
        other.partial_fit(X * units, y, classes=[0, 1, 2])
    assert np.array_equal(one.decision_function(X), other.decision_function(X * units))


def test_entries_near_the_smallest_number_do_no_harm(blocks):
    X, y, _ = blocks[0]
    model = BanditClassifier(random_state=0)
    for _ in range(2):
        model.partial_fit(X * [1, 1, 1e-160, 1e-200, 1e-300, 1], y, classes=[0, 1, 2])
    assert np.isfinite(model.coef_).all()
    assert model.coef_[:, :2].all()


def texts(n, rng, words=2000, topics=20):
    """Rows like tf-idf of short texts: words as frequent as 1/rank, some of them those of one of many uneven topics."""
    share = 1 / np.arange(1, topics + 1)
    topic = rng.choice(topics, n, p=share / share.sum())
    frequency = 1 / np.arange(1, words + 1)
    common = rng.choice(words, (n, 12), p=frequency / frequency.sum())
    own = words + topic[:, None] * 40 + rng.integers(0, 40, (n, 3))
    columns = np.hstack([common, np.where(rng.random((n, 3)) < 0.6, own, common[:, :3])])
    places = np.arange(n, dtype=np.int32).repeat(15), columns.ravel().astype(np.int32)
    counts = sp.csr_array((np.ones(15 * n), places), shape=(n, words + 40 * topics))
    return TfidfTransformer().fit_transform(counts), topic


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_text_is_learnt_no_slower_than_by_scikit_learn(loss):
    X, y = texts(8000, np.random.default_rng(0))
    ours, theirs = (kind(loss=loss, random_state=0) for kind in (BanditClassifier, SGDClassifier))
    for _ in range(3):
        for model in (ours, theirs):
            for block in (slice(0, 2000), slice(2000, 4000)):
                model.partial_fit(X[block], y[block], classes=range(20))
        assert ours.score(X[4000:], y[4000:]) > theirs.score(X[4000:], y[4000:])


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge", "squared_error", "huber"])
def test_raw_columns_throw_nothing_off(loss):
    rng = np.random.default_rng(1)
    scales = 10.0 ** rng.uniform(-3, 5, 10)
    X = np.exp(rng.standard_normal((3000, 10)))
    z = np.log(X) @ rng.standard_normal(10)
    if loss in ("log_loss", "squared_hinge"):
        ours, theirs, y = BanditClassifier(loss, random_state=0), SGDClassifier(loss=loss, random_state=0), z > 0
        first, enough = {"classes": [False, True]}, 0.8
    else:
        ours, theirs, y = BanditRegressor(loss, random_state=0), SGDRegressor(loss=loss, random_state=0), 100 * z
        first, enough = {}, 0.35
    with np.errstate(all="ignore"):
        for model in (ours, theirs):
            for _ in range(5):
                model.partial_fit(X[:2000] * scales, y[:2000], **first)
    assert ours.score(X[2000:] * scales, y[2000:]) > max(enough, theirs.score(X[2000:] * scales, y[2000:]))


def test_nothing_is_recorded_unless_a_run_is_asked_for(blocks, monkeypatch):
    X, y, _ = blocks[0]
    model = BanditClassifier(random_state=0, alpha=1e-2).fit(X, y)
    monkeypatch.setattr(base, "minimise", None)
    model.partial_fit(X, y)
    assert not any(hasattr(model, name) for name in base.OF_A_RUN)
    monkeypatch.undo()
    asked = BanditClassifier(sampler="mabs", random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    assert asked.sampling_probabilities_.shape == (60,)
    assert asked.solver_ == "proxsgd"


def test_a_stream_goes_on_from_a_fit():
    """Steps are as short as if all rows of the fit had come before: the minimum is not left again."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4000, 5))
    y = np.where(X @ rng.standard_normal(5) + 2 * rng.standard_normal(4000) > 0, 1, 0)
    model = BanditClassifier(random_state=0, alpha=1e-2).fit(X, y)
    w = model.coef_.copy()
    model.partial_fit(X[:50], y[:50])
    fresh = BanditClassifier(random_state=0, alpha=1e-2).partial_fit(X[:50], y[:50], classes=[0, 1])
    assert 0.0 < np.linalg.norm(model.coef_ - w) < 0.1 * np.linalg.norm(fresh.coef_)
    model.partial_fit(X, y).fit(X, y)
    assert np.array_equal(model.coef_, w)


def test_same_seed_same_bits_and_interruption_leaves_the_model_alone(blocks, monkeypatch):
    X, y, _ = blocks[0]
    one, other = (BanditClassifier(random_state=0).partial_fit(X, y, classes=[0, 1, 2]) for _ in range(2))
    other.partial_fit(sp.csr_array(X), y)
    monkeypatch.setattr("banditgrad.linear_model.stream.SLICE", 7)
    assert np.array_equal(one.partial_fit(X, y).coef_, other.coef_)
    before, seen = one.coef_.copy(), one.n_seen_
    with pytest.raises(ValueError, match="too large to compute with"):
        BanditRegressor().partial_fit(X, 1e200 * y)
    monkeypatch.setattr("banditgrad.linear_model.stream._settle", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        one.partial_fit(X, y)
    assert np.array_equal(one.coef_, before)
    assert one.n_seen_ == seen
    monkeypatch.undo()
    assert np.array_equal(one.partial_fit(X, y).coef_, other.partial_fit(X, y).coef_)
