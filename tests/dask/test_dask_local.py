"""A partition's inner loop is the textbook's, with the gradient of all partitions as its centre."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import banditgrad as bg

pytest.importorskip("distributed")
from banditgrad.dask.local import Loop

RNG = np.random.default_rng(5)
X = RNG.standard_normal((40, 5)) * (RNG.random((40, 5)) < 0.6)
Y = np.sign(RNG.standard_normal(40))
GAMMA = 0.2


def textbook(problem, w, gradient, draws):
    """The mean of w ← prox(w - γ ((∇φ_i(w) - ∇φ_i(w̃)) / (n p_i) + ∇f)), with p uniform."""

    def slope(i, w):
        return -Y[i] / (1.0 + np.exp(Y[i] * (X[i] @ w[:5] + w[5])))

    snapshot, total = w, np.zeros_like(w)
    l1, l2 = problem.penalty.shrinkage()
    for i in draws:
        change = slope(i, w) - slope(i, snapshot)
        w = w - GAMMA * (change * np.append(X[i], 1.0) + gradient)
        v = w[:5]
        w[:5] = np.sign(v) * np.maximum(np.abs(v) - GAMMA * l1, 0.0) / (1.0 + GAMMA * l2)
        total += w
    return total / len(draws)


@pytest.mark.parametrize("rows", [X, sp.csr_array(X)], ids=["dense", "sparse"])
def test_index_for_index(rows):
    draws = RNG.integers(0, 40, size=81)  # and one that is drawn ahead
    problem = bg.Problem(rows, Y, bg.Logistic(), bg.ElasticNet(0.05, 0.4), fit_intercept=True)
    loop = Loop(problem, bg.Replay(draws), GAMMA, 0)
    w, gradient = RNG.standard_normal(6), 0.1 * RNG.standard_normal(6)
    moved = loop.run(problem, w, gradient, 2.0, careful=False)
    np.testing.assert_allclose(moved.w, textbook(problem, w, gradient, draws[:80]), rtol=1e-11, atol=1e-13)
    assert moved.noise[0] == pytest.approx(moved.noise[1])  # p is uniform


def test_a_round_runs_compiled_code_only(monkeypatch):
    """The table of powers has a row per feature: filled by plain Python it would take all the time."""
    problem = bg.Problem(sp.csr_array(X), Y, bg.Logistic(), bg.ElasticNet(0.05, 0.4), fit_intercept=True)
    loop, w = Loop(problem, bg.Auto(), "auto", 0), np.zeros(6)
    moved = [loop.run(problem, w, problem.gradient(w), 1.0, careful=True).w]

    def refuse(*args):
        raise AssertionError("plain Python filled the table")

    monkeypatch.setattr("banditgrad.solvers.parts.iterates.affine.refill", refuse)
    moved.append(loop.run(problem, w, problem.gradient(w), 1.0, careful=True).w)
    assert all(np.isfinite(each).all() for each in moved)


def test_at_the_minimiser_it_stands_still():
    problem = bg.Problem(sp.csr_array(X), Y, bg.Logistic(), bg.ElasticNet(0.05, 0.4), fit_intercept=True)
    w = bg.minimise(problem, passes=3000, seed=0, tol=1e-13).w
    half = bg.Problem(sp.csr_array(X[:20]), Y[:20], bg.Logistic(), bg.ElasticNet(0.05, 0.4), fit_intercept=True)
    loop = Loop(half, bg.Auto(), "auto", 0)
    moved = loop.run(half, w, problem.gradient(w), 5.0, careful=False)
    np.testing.assert_allclose(moved.w, w, atol=1e-9)


def test_value_and_gradient_are_those_of_the_problem():
    problem = bg.Problem(sp.csr_array(X), Y, bg.Logistic(), bg.ElasticNet(0.05, 0.4), fit_intercept=True)
    w = RNG.standard_normal(6)
    value, gradient = Loop(problem, bg.Auto(), "auto", 0).evaluate(problem, w)
    cost = sum(problem.penalty.cost(v, j) for j, v in enumerate(w[:5]))
    assert value + cost == pytest.approx(problem.value(w), rel=1e-13)
    np.testing.assert_allclose(gradient, problem.gradient(w), rtol=1e-12)


@pytest.mark.parametrize("caution", [0.0, 0.5])
def test_the_hessian_of_a_partition_with_weights(caution):
    weights = RNG.integers(0, 3, size=40).astype(float)
    problem = bg.Problem(sp.csr_array(X), Y, bg.Logistic(), bg.SquaredL2(0.1), weights, fit_intercept=True)
    w, full = RNG.standard_normal(6), np.column_stack([X, np.ones(40)])
    share = 1.0 / (1.0 + np.exp(-full @ w))
    bends = np.maximum(share * (1.0 - share), caution * 0.25) * problem.sample_weight / 40
    matrix, passes = Loop(problem, bg.Auto(), "auto", 0).hessian(problem, w, 1.0, caution)
    np.testing.assert_allclose(matrix, full.T @ (bends[:, None] * full), rtol=1e-12, atol=1e-15)
    assert 1.0 < passes <= 2.0


def test_values_along_a_direction():
    problem = bg.Problem(sp.csr_array(X), Y, bg.Logistic(), bg.Zero(), fit_intercept=True)
    w, direction, parts = RNG.standard_normal(6), RNG.standard_normal(6), np.array([1.0, 0.25])
    values = Loop(problem, bg.Auto(), "auto", 0).probe(problem, w, direction, parts)
    np.testing.assert_allclose(values, [problem.value(w + part * direction) for part in parts], rtol=1e-13)


def test_pickled_in_mid_run_it_goes_on_to_the_same_bits():
    problem = bg.Problem(sp.csr_array(X), Y, bg.Logistic(), bg.ElasticNet(0.05, 0.4), fit_intercept=True)
    w, loop = np.zeros(6), Loop(problem, bg.Auto(), "auto", 0)
    first = loop.run(problem, w, problem.gradient(w), 3.0, careful=False).w
    again = pickle.loads(pickle.dumps(loop))
    gradient = problem.gradient(first)
    ends = [each.run(problem, first, gradient, 3.0, careful=False).w for each in (loop, again)]
    assert np.array_equal(*ends)


def test_large_partitions_first_go_towards_their_own_minimiser():
    rng = np.random.default_rng(1)  # its own: a sample's error is about d / 2m = 1.2e-3, on some data below the bound
    rows = rng.standard_normal((20_000, 5))
    labels = np.sign(rows @ [1.0, -1.0, 0.5, 0.0, 0.0] + rng.standard_normal(20_000))
    problem = bg.Problem(rows, labels, bg.Logistic(), bg.SquaredL2(1e-4), fit_intercept=True)
    best = bg.minimise(problem, passes=20, seed=0).value
    loop = Loop(problem, bg.Auto(), "auto", 0)
    moved = loop.approach(problem, np.zeros(6))
    assert best <= problem.value(moved.w) < best + 1e-3
    small = bg.Problem(X, Y, bg.Logistic(), bg.SquaredL2(1e-4), fit_intercept=True)
    assert Loop(small, bg.Auto(), "auto", 0).approach(small, np.zeros(6)) is None


CLASSES = RNG.integers(0, 3, size=40).astype(float)
A = np.column_stack([X, np.ones(40)])
WEIGHTS = RNG.integers(0, 3, size=40).astype(float)


def several_classes(weights=None):
    penalty = bg.ElasticNet(0.05, 0.4)
    return bg.Problem(sp.csr_array(X), CLASSES, bg.Softmax(3), penalty, weights, fit_intercept=True)


def probabilities(W):
    e = np.exp(A @ W)
    return e / e.sum(axis=1, keepdims=True)


def test_several_classes_index_for_index():
    draws, problem = RNG.integers(0, 40, size=81), several_classes()
    loop, W, centre = Loop(problem, bg.Replay(draws), GAMMA, 0), RNG.standard_normal((6, 3)), RNG.random((6, 3))
    moved = loop.run(problem, W.ravel(), centre.ravel(), 2.0, careful=False)
    l1, l2 = problem.penalty.shrinkage()
    before, total = probabilities(W), np.zeros_like(W)
    for i in draws[:80]:
        W = W - GAMMA * (np.outer(A[i], probabilities(W)[i] - before[i]) + centre)
        W[:5] = np.sign(W[:5]) * np.maximum(np.abs(W[:5]) - GAMMA * l1, 0.0) / (1.0 + GAMMA * l2)
        total += W
    np.testing.assert_allclose(moved.w.reshape(6, 3), total / 80, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("caution", [0.0, 0.5])
def test_the_hessian_of_several_classes_with_weights(caution):
    problem, W = several_classes(WEIGHTS), RNG.standard_normal((6, 3))
    matrix, passes = Loop(problem, bg.Auto(), "auto", 0).hessian(problem, W.ravel(), 1e9, caution)
    expected = np.zeros((18, 18))
    for x, q, s in zip(A, probabilities(W), problem.sample_weight, strict=True):
        expected += np.kron(np.outer(x, x), s / 40 * (np.diag(q) - np.outer(q, q) + caution * 0.5 * np.eye(3)))
    np.testing.assert_allclose(matrix, expected, rtol=1e-10, atol=1e-14)
    assert passes == 2.0


def test_a_sampled_hessian_of_several_classes_is_that_of_all_rows_in_the_mean():
    problem, W = several_classes(), RNG.standard_normal((6, 3)).ravel()
    loop = Loop(problem, bg.Auto(), "auto", 0)
    exact, _ = loop.hessian(problem, W, 1e9, 0.0)
    several = [loop.hessian(problem, W, 0.5, 0.0) for _ in range(400)]
    assert max(passes for _, passes in several) < 1.6
    mean, off = np.mean([matrix for matrix, _ in several], axis=0), ~np.eye(18, dtype=bool)
    assert np.abs(mean - exact)[off].max() < 0.1 * np.abs(exact).max()
    assert all((np.diag(matrix) > 0.0).all() for matrix, _ in several)  # what it has seen too little of is held


def test_values_of_several_classes_along_a_direction():
    problem, W, V, parts = several_classes(), *RNG.standard_normal((2, 18)), np.array([1.0, 0.25])
    loop = Loop(problem, bg.Auto(), "auto", 0)
    value, gradient = loop.evaluate(problem, W)
    plain = problem.with_penalty(bg.Zero())
    assert value == pytest.approx(plain.value(W), rel=1e-13)
    np.testing.assert_allclose(gradient, problem.gradient(W), rtol=1e-11, atol=1e-14)
    values = loop.probe(problem, W, V, parts)
    np.testing.assert_allclose(values, [plain.value(W + part * V) for part in parts], rtol=1e-13)
