"""Generated sets have the properties they promise."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import banditgrad as bg
from banditgrad.datasets import make_borderline, make_imbalanced, make_tau


@pytest.mark.parametrize("tau", [3.7, 10.0, 83.9, 100.9])
def test_tau_is_what_was_asked_for(tau):
    X, y = make_tau(tau)
    assert X.shape == (101, 5)
    assert bg.Problem(X, y, loss=bg.Squared()).tau == pytest.approx(tau, abs=1e-9)


def test_only_one_row_depends_on_tau():
    (X, y), (longer, same) = make_tau(4.0, seed=3), make_tau(50.0, seed=3)
    changed = np.flatnonzero((longer != X).any(axis=1))
    assert changed.tolist() == [np.argmax(np.sum(X**2, axis=1))]
    i = changed[0]
    assert np.ptp(longer[i] / X[i]) < 1e-12
    assert longer[i, 0] / X[i, 0] > 1.0
    assert np.array_equal(y, same)


def test_labels_are_linear_up_to_noise():
    """Least squares without the long row finds a residual of the noise's size, and β of size 10."""
    for noise in (0.0, 1.0, 3.0):
        X, y = make_tau(30.0, n=2000, d=8, noise=noise, seed=1)
        rest = np.sum(X**2, axis=1) < np.sum(X**2, axis=1).max()
        beta = np.linalg.lstsq(X[rest], y[rest], rcond=None)[0]
        assert np.std(y[rest] - X[rest] @ beta) == pytest.approx(noise, rel=0.1, abs=1e-10)
        assert 3.0 < np.sqrt(np.mean(beta**2)) < 30.0


def test_make_tau_says_which_tau_are_possible():
    for tau in (1.0, 101.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"tau must be from 2.875, .* to below n = 101"):
            make_tau(tau)
    X, y = make_tau(2.8751)
    assert bg.Problem(X, y, loss=bg.Squared()).tau == pytest.approx(2.8751)
    with pytest.raises(ValueError, match="noise must be"):
        make_tau(5.0, noise=-1.0)
    with pytest.raises(ValueError, match="n must be a whole number from 2"):
        make_tau(5.0, n=1)


@pytest.mark.parametrize(("n", "d", "k"), [(70_000, 50, 7), (300, 10, 10), (300, 10, 1), (5, 1, 1), (33, 1000, 999)])
def test_imbalanced_rows_are_valid_and_of_the_promised_shape(n, d, k):
    X, y = make_imbalanced(n, d, k, seed=2)
    X.check_format(full_check=True)
    assert X.shape == (n, d)
    assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (np.float64, np.int32, np.int32)
    assert (np.diff(X.indptr) == k).all()
    assert (np.diff(X.indices.reshape(n, k), axis=1) > 0).all()
    assert X.data.min() > 0.0
    assert set(y.tolist()) == {-1.0, 1.0}
    assert np.sum(y == 1.0) == max(round(0.03 * n), 1)


def test_imbalanced_columns_scales_and_labels_follow_the_docstring():
    X, y = make_imbalanced(200_000, 50, 5, positive=0.2, tail=0.7, seed=4)
    assert np.sum(y == 1.0) == 40_000
    counts = np.bincount(X.indices, minlength=50)
    assert np.abs(counts - 20_000).max() < 6 * np.sqrt(20_000)
    norms2 = X.power(2).sum(axis=1)
    assert np.mean(norms2) == pytest.approx(1.0, rel=0.05)
    even = make_imbalanced(200_000, 50, 5, tail=0.0, seed=4)[0].power(2).sum(axis=1)
    spread = np.var(np.log(norms2)) - np.var(np.log(even))  # of log s_i², the rest is of u_i
    assert np.sqrt(spread) / 2 == pytest.approx(0.7, rel=0.02)
    assert abs(np.corrcoef(np.log(norms2), y)[0, 1]) < 0.1


def test_a_linear_model_without_intercept_finds_the_imbalanced_labels():
    X, y = make_imbalanced(3000, 40, 8, positive=0.1, seed=5)
    norms = np.sqrt(X.power(2).sum(axis=1))
    z = X @ LogisticRegression(C=10.0, fit_intercept=False).fit(X, y).coef_[0] / norms
    assert np.mean(y[np.argsort(-z)[:300]] == 1.0) > 0.5  # 0.1 by chance
    assert norms.max() ** 2 / np.mean(norms**2) > 20.0


def test_seeds_decide_everything():
    for make in (lambda seed: make_tau(9.0, seed=seed), lambda seed: make_imbalanced(50_000, 30, 4, seed=seed)):
        (X, y), (again, same), (other, _) = make(1), make(1), make(2)
        assert abs(X - again).max() == 0.0
        assert np.array_equal(y, same)
        assert abs(X - other).max() > 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1}, "n must be a whole number from 2"),
        ({"n": 10.0}, "n must be a whole number"),
        ({"d": 0}, "d must be a whole number from 1"),
        ({"nonzeros_per_row": 31}, "nonzeros_per_row must be a whole number from 1 to 30, got 31"),
        ({"positive": 0.0}, "positive must be above 0 and below 1, got 0.0"),
        ({"positive": 1.0}, "positive must be above 0 and below 1"),
        ({"tail": -1.0}, "tail must be from 0.0 to 10.0"),
        ({"tail": np.nan}, "tail must be"),
        ({"n": 2**30}, "n · nonzeros_per_row must be below"),
    ],
)
def test_make_imbalanced_names_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_imbalanced(**({"n": 100, "d": 30} | arguments))


def test_borderline_rows_are_as_long_as_others_and_lack_what_gives_the_class_away():
    X, y = make_borderline(1000, 50, 8, borderline=0.02, seed=3)
    told = X[:, [0, 1]].toarray()
    few = ~told.any(axis=1)
    assert few.sum() == 20
    assert np.allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1.0)
    assert np.array_equal(told[:, 0] > 0, (y > 0) & ~few)
    assert np.array_equal(told[:, 1] > 0, (y < 0) & ~few)
    assert set(np.diff(X.indptr)[few]) == {7}
    assert set(np.diff(X.indptr)[~few]) == {8}
    again, _ = make_borderline(1000, 50, 8, borderline=0.02, seed=3)
    assert np.array_equal(again.data, X.data)
    assert bg.Problem(X, y).tau == pytest.approx(1.0)


def test_only_a_bandit_finds_the_borderline_rows():
    X, y = make_borderline(3000, 60, 8, borderline=0.02, seed=0)
    problem = bg.Problem(X, y, "logistic", bg.SquaredL2(1e-4))
    ratios = {}
    for sampler in ("importance", "auto"):
        history = bg.minimise(problem, "sgd", sampler, passes=8, seed=0, record_variance=True).history
        ratios[sampler] = history.effective_variance[-1] / history.uniform_variance[-1]
    assert ratios["importance"] == pytest.approx(1.0)
    assert ratios["auto"] < 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"borderline": 0.0}, "borderline must be above 0"), ({"signal": -1.0}, "signal must"), ({"d": 2}, "d must be")],
)
def test_make_borderline_names_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_borderline(**{"n": 100, "d": 30, **arguments})
