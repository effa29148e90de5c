"""Paths of penalties, and estimators that choose from them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LassoCV
from sklearn.linear_model import lasso_path as sklearn_lasso_path
from sklearn.metrics import check_scoring
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import banditgrad as bg
from banditgrad.linear_model import BanditClassifier, BanditClassifierCV, BanditRegressor, BanditRegressorCV
from banditgrad.linear_model.scoring import score_by_margins
from banditgrad.path import alpha_grid, alpha_max


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the checks' data is often not scaled
@parametrize_with_checks([BanditClassifierCV(alphas=5, cv=3, tol=1e-10), BanditRegressorCV(alphas=5, cv=3, tol=1e-10)])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def test_a_path_agrees_with_scikit_learns():
    X, y = load_diabetes(return_X_y=True)
    y = y - y.mean()
    found = bg.path(bg.Problem(X, y, bg.Squared(), bg.L1(1.0)), 20, tol=1e-9, seed=0)
    _, expected, _ = sklearn_lasso_path(X, y, alphas=found.alphas, tol=1e-10, max_iter=100_000)
    np.testing.assert_allclose(found.w, expected.T, atol=1e-4)
    assert found.nonzeros[0] == 0
    assert (np.diff(found.values) < 0).all()


@pytest.mark.parametrize("intercept", [False, True])
def test_at_alpha_max_the_first_coefficient_is_about_to_appear(cancer, intercept):
    X, y = cancer
    problem = bg.Problem(X, 2.0 * y - 1.0, bg.Logistic(), bg.L1(1.0), fit_intercept=intercept)
    largest = alpha_max(problem)
    above, below = bg.path(problem, [1.001 * largest, 0.99 * largest], tol=1e-8, seed=0)
    assert np.count_nonzero(above.w[:30]) == 0
    assert np.count_nonzero(below.w[:30]) == 1


def test_a_path_ends_where_the_callback_says_so(cancer):
    X, y = cancer
    problem = bg.Problem(X, 2.0 * y - 1.0, bg.Logistic(), bg.SquaredL2(1.0))
    found = bg.path(problem, 10, seed=0, callback=lambda alpha, result: alpha < 1e-2)
    assert 1 < len(found) < 10
    assert found.alphas[-1] < 1e-2 <= found.alphas[-2]


def test_bad_paths_are_refused(cancer):
    X, y = cancer
    y = 2.0 * y - 1.0
    with pytest.raises(TypeError, match="penalty with a strength"):
        bg.path(bg.Problem(X, y))
    with pytest.raises(ValueError, match="not negative"):
        bg.path(bg.Problem(X, y, penalty=bg.L1(1.0)), [0.1, -1.0])
    with pytest.raises(ValueError, match="between 0 and 1"):
        alpha_grid(bg.Problem(X, y, penalty=bg.L1(1.0)), 5, 2.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", [bg.Squared(), bg.Logistic(), bg.Huber(0.1), bg.Hinge()])
@pytest.mark.parametrize("penalty", [bg.L1(1.0), bg.SquaredL2(1.0), bg.ElasticNet(1.0, 0.5)])
def test_what_a_path_carries_over_changes_no_minimum(cancer, penalty, loss, sparse):
    X, y = cancer
    X, y = (sp.csr_array(X) if sparse else X), 2.0 * y - 1.0
    problem = bg.Problem(X, y, loss, penalty, fit_intercept=True)
    found = bg.path(problem, np.geomspace(0.3, 1e-3, 8), tol=1e-8, passes=3000, seed=0)
    for alpha, result in zip(found.alphas, found, strict=True):
        alone = bg.minimise(problem.with_penalty(penalty._replace(strength=alpha)), tol=1e-8, passes=3000, seed=1)
        assert result.value == pytest.approx(alone.value, rel=1e-7)
        assert result.value == pytest.approx(alone._problem.value(result.w), rel=1e-12)  # it is no guess
        assert type(result.solver) is bg.SampledNewton


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("model", "scoring", "data"),
    [
        (BanditClassifier(), None, load_breast_cancer),
        (BanditClassifier(), "neg_log_loss", load_breast_cancer),
        (BanditClassifier(loss="squared_hinge"), "accuracy", load_breast_cancer),
        (BanditClassifier(), "accuracy", load_iris),
        (BanditClassifier(), "neg_log_loss", load_iris),
        (BanditRegressor(), None, load_diabetes),
        (BanditRegressor(), "neg_mean_squared_error", load_diabetes),
    ],
)
def test_scores_from_margins_are_scikit_learns(model, scoring, data, weighted):
    X, y = data(return_X_y=True)
    weights = np.random.default_rng(0).random(len(y)) if weighted else None
    model.set_params(standardize=True, random_state=0).fit(X, y)
    margins = X @ np.atleast_2d(model.coef_).T + model.intercept_
    theirs = check_scoring(model, scoring)(model, X, y, **({"sample_weight": weights} if weighted else {}))
    assert score_by_margins(model, scoring, y, weights)(margins) == pytest.approx(theirs, rel=1e-12)


def test_other_scores_are_left_to_scikit_learn(cancer):
    model = BanditClassifier(random_state=0).fit(*cancer)
    assert score_by_margins(model, "roc_auc", cancer[1], None) is None
    assert score_by_margins(model.set_params(loss="modified_huber"), "neg_log_loss", cancer[1], None) is None


def test_another_penalty_changes_nothing_else(cancer):
    X, y = cancer
    first = bg.Problem(X, 2.0 * y - 1.0, penalty=bg.L1(0.1))
    w = np.ones(30)
    first.relative_optimality(w)
    second, fresh = first.with_penalty(bg.L1(0.02)), bg.Problem(X, 2.0 * y - 1.0, penalty=bg.L1(0.02))
    assert first.penalty == bg.L1(0.1)
    assert second.value(w) == fresh.value(w)
    assert second.relative_optimality(w) == fresh.relative_optimality(w)


def test_a_sampling_goes_on_in_the_next_run(cancer):
    X, y = cancer
    problem = bg.Problem(X, 2.0 * y - 1.0, penalty=bg.L1(1e-3))
    first = bg.minimise(problem, bg.Saga(), bg.Mabs(), passes=5, seed=0)
    learned = first.sampling.probabilities()
    second = bg.minimise(problem, bg.Saga(), first.sampling, passes=1, seed=1, w0=first.w)
    assert (first.sampling.probabilities() == learned).all()  # it went on from a copy
    fresh = bg.minimise(problem, bg.Saga(), bg.Mabs(), passes=1, seed=1, w0=first.w).sampling.probabilities()
    assert np.abs(second.sampling.probabilities() - learned).sum() < np.abs(fresh - learned).sum()
    with pytest.raises(ValueError, match="rows"):
        bg.minimise(bg.Problem(X[:50], 2.0 * y[:50] - 1.0), bg.Saga(), first.sampling)


def test_the_chosen_alpha_is_that_of_lasso_cv():
    X, y = load_diabetes(return_X_y=True)
    ours = BanditRegressorCV(
        penalty="l1", alphas=30, patience=None, scoring="neg_mean_squared_error", cv=5, tol=1e-8, random_state=0
    ).fit(X, y)
    theirs = LassoCV(alphas=ours.path_.alphas, cv=5, tol=1e-10).fit(X, y)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.path_.mean_scores, -theirs.mse_path_.mean(axis=1), rtol=1e-4)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_scores_are_those_of_fits_from_zero(cancer, penalty):
    X, y = cancer
    found = BanditClassifierCV(penalty=penalty, alphas=[1e-1, 1e-2, 1e-3], scoring="neg_log_loss", random_state=0)
    path = found.fit(X, y).path_
    for alpha, scores in zip(path.alphas, path.scores, strict=True):
        cold = BanditClassifier(penalty=penalty, alpha=alpha, random_state=0)
        np.testing.assert_allclose(scores, cross_val_score(cold, X, y, scoring="neg_log_loss"), rtol=1e-3)


def test_one_standard_error_is_simpler_and_hardly_worse(cancer):
    X, y = cancer
    best = BanditClassifierCV(penalty="l1", alphas=20, random_state=0).fit(X, y)
    simple = BanditClassifierCV(penalty="l1", alphas=20, selection="1se", random_state=0).fit(X, y)
    path = best.path_
    assert simple.alpha_ >= best.alpha_
    assert np.count_nonzero(simple.coef_) <= np.count_nonzero(best.coef_)
    assert simple.best_score_ >= best.best_score_ - path.standard_errors[path.best]
    assert path.mean_scores[path.best] == best.best_score_ == path.mean_scores.max()


def test_threads_and_folds_do_not_change_the_choice(cancer):
    X, y = cancer
    one, two = (BanditClassifierCV(alphas=8, random_state=3, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert (one.path_.scores == two.path_.scores).all()
    assert (one.coef_ == two.coef_).all()


def test_an_elastic_net_chooses_its_ratio_too(cancer):
    X, y = cancer
    found = BanditClassifierCV(penalty="elasticnet", l1_ratio=[0.1, 0.9], alphas=8, random_state=0).fit(X, y)
    assert [path.l1_ratio for path in found.paths_] == [0.1, 0.9]
    assert found.l1_ratio_ == found.best_estimator_.l1_ratio
    assert found.best_score_ == max(path.mean_scores.max() for path in found.paths_)


def test_more_classes_have_a_column_each():
    X, y = load_iris(return_X_y=True)
    found = BanditClassifierCV(alphas=6, random_state=0).fit(X, y)
    assert found.coef_.shape == (3, 4)
    assert found.path_.coefs[0].shape == (3, 4)
    assert found.score(X, y) > 0.9


def test_patience_ends_a_path_that_has_peaked(cancer):
    X, y = cancer
    y = np.random.default_rng(0).permutation(y)  # nothing to learn: weaker penalties only score lower
    whole = BanditClassifierCV(alphas=30, patience=None, scoring="neg_log_loss", random_state=0).fit(X, y)
    ended = BanditClassifierCV(alphas=30, patience=5, scoring="neg_log_loss", random_state=0).fit(X, y)
    assert len(ended.path_.alphas) < len(whole.path_.alphas) == 30
    assert ended.alpha_ == whole.alpha_


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"penalty": None}, "no alpha to choose"),
        ({"selection": "worst"}, "selection must be"),
        ({"patience": 0}, "patience"),
        ({"alphas": []}, "alphas"),
        ({"loss": "perceptron"}, "expects loss"),
    ],
)
def test_bad_choices_are_named(cancer, wrong, message):
    with pytest.raises(ValueError, match=message):
        BanditClassifierCV(**wrong).fit(*cancer)


def test_frames_keep_their_names(cancer):
    X, y = cancer
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    found = BanditClassifierCV(alphas=3, cv=2, random_state=0).fit(frame, y)  # a warning would be an error here
    assert found.best_estimator_.feature_names_in_.tolist() == list(frame.columns)
    assert found.predict(frame).shape == y.shape
