"""The driver's side, without Dask: F falls whatever the partitions answer, by the best steps known."""

import numpy as np
import pytest

import banditgrad as bg

pytest.importorskip("distributed")
from banditgrad.certificate import column_curvatures
from banditgrad.dask.descent import Curve, Descent, Evaluate, Move, Probe, Shape, packed
from banditgrad.dask.subspace import Point, Subspace

RNG = np.random.default_rng(3)
X = RNG.standard_normal((200, 6)) * np.logspace(0, -1.5, 6)
Y = np.sign(X @ RNG.standard_normal(6) + 0.2 * RNG.standard_normal(200))


def problem(l1, l2):
    penalty = bg.ElasticNet(l1 + l2, l1 / (l1 + l2))
    return bg.Problem(X, Y, bg.Logistic(), penalty)


def hessian(task, w, caution):
    bends = [task.loss.second_derivative(z, label) for z, label in zip(X @ w, Y, strict=True)]
    return X.T @ (np.maximum(bends, caution * task.loss.curvature())[:, None] * X) / len(Y)


def shape_of(task, hessian):
    l1, l2 = task.penalty.shrinkage()
    return Shape(l1, l2, task.d, float(np.mean(task.smoothness)), column_curvatures(task), hessian)


def descend(task, move, rounds, curve=None, start=None):
    """The values of F, round by round, where `move` answers for the inner loops and `curve` for the Hessian."""
    descent, values = Descent(shape_of(task, curve is not None)), []
    w = np.zeros(task.d) if start is None else start
    steps = descent.go(Point(w, task.value(w) - descent.cost(w), task.value(w), task.gradient(w)))
    request = next(steps)
    while descent.rounds < rounds:
        if isinstance(request, Evaluate):
            answer = task.value(request.w) - descent.cost(request.w), task.gradient(request.w)
        elif isinstance(request, Probe):
            points = [request.w + part * request.direction for part in request.parts]
            answer = np.array([task.value(w) - descent.cost(w) for w in points])
        elif isinstance(request, Curve):
            answer = packed(curve(request))
        else:
            assert isinstance(request, Move)
            answer = move(request)
        try:
            request = steps.send(answer)
        except StopIteration:
            break
        values.append(descent.here.value)
    assert np.all(np.diff(values) <= 0.0)
    return descent


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-3), (1e-2, 0.0), (1e-3, 1e-3)])
@pytest.mark.parametrize("kind", ["nowhere", "uphill", "noise", "not a number"])
def test_it_converges_even_if_every_inner_loop_goes_astray(l1, l2, kind):
    task, noise = problem(l1, l2), np.random.default_rng(0)
    moves = {
        "nowhere": lambda request: request.w,
        "uphill": lambda request: request.w + 10.0 * request.gradient,
        "noise": lambda request: request.w + noise.standard_normal(task.d),
        "not a number": lambda request: np.full(task.d, np.nan),
    }
    least = bg.minimise(task, passes=2000, seed=0, tol=1e-12).value
    descent = descend(task, moves[kind], rounds=1000)
    assert descent.here.value - least < 1e-9
    assert descent.optimality(descent.here) < 1e-4


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-4), (1e-3, 0.0), (1e-4, 1e-4)])
def test_where_loops_go_astray_few_newton_steps_with_the_hessian_of_the_whole_are_enough(l1, l2):
    task = problem(l1, l2)
    least = bg.minimise(task, passes=2000, seed=0, tol=1e-12).value
    uphill = descend(
        task,
        lambda request: request.w + 10.0 * request.gradient,
        rounds=12,
        curve=lambda request: hessian(task, request.w, request.caution),
    )
    assert uphill.here.value - least < 1e-9


@pytest.mark.parametrize("factor", [1e-6, -1.0], ids=["far too small", "not convex"])
def test_it_converges_even_if_the_hessian_is_wrong(factor):
    task = problem(1e-3, 1e-3)
    least = bg.minimise(task, passes=2000, seed=0, tol=1e-12).value
    descent = descend(
        task,
        lambda request: request.w + 10.0 * request.gradient,
        rounds=1000,
        curve=lambda request: factor * hessian(task, request.w, request.caution),
    )
    assert descent.here.value - least < 1e-9


def test_a_newton_step_that_went_too_far_is_cut_to_its_best_part_and_the_next_are_cautious():
    """Rows far on the wrong side hardly curve: the first model promises the moon."""
    task, cautions = problem(0.0, 1e-6), []

    def curve(request):
        cautions.append(request.caution)
        return hessian(task, request.w, request.caution)

    far = -60.0 * bg.minimise(task, passes=200, seed=0).w
    least = bg.minimise(task, passes=2000, seed=0, tol=1e-12).value
    descent = descend(task, lambda request: request.w, rounds=25, curve=curve, start=far)
    assert cautions[0] == 0.0
    assert max(cautions) > 0.0
    assert descent.here.value - least < 1e-9


def test_the_last_step_sets_coordinates_to_zero_that_an_l1_norm_holds_there():
    task = problem(0.05, 0.0)
    descent = descend(task, lambda request: request.w + 1e-7, rounds=200)
    steps = descent.polish()
    request = next(steps)
    with pytest.raises(StopIteration):
        steps.send((task.value(request.w) - descent.cost(request.w), task.gradient(request.w)))
    reference = bg.minimise(task, passes=1000, seed=0, tol=1e-12).w
    assert np.array_equal(descent.here.w == 0.0, reference == 0.0)
    assert (reference == 0.0).any()


def test_on_a_quadratic_the_completed_step_is_the_best_on_the_span():
    curvature = X.T @ X / 200
    target = RNG.standard_normal(6)

    def point(w):
        value = 0.5 * (w - target) @ curvature @ (w - target)
        return Point(w, value, value, curvature @ (w - target))

    subspace, earlier = Subspace(0.0, 0.0, 6), RNG.standard_normal((3, 6))
    for w in earlier:
        subspace.add(point(w))
    here, proposed = point(np.zeros(6)), RNG.standard_normal(6)
    completed = subspace.complete(here, proposed)
    assert np.abs(earlier @ point(completed).gradient).max() < 1e-10  # the gradient left is orthogonal to the span
    assert np.linalg.matrix_rank(np.vstack([earlier, completed - proposed])) == 3  # and only steps on it were added


def test_points_between_which_f_is_far_from_quadratic_do_not_count():
    def point(w):  # a quartic
        return Point(w, float(np.sum(w**4)), float(np.sum(w**4)), 4.0 * w**3)

    subspace = Subspace(0.0, 0.0, 2)
    subspace.add(point(np.array([3.0, -2.0])))
    proposed = np.array([0.2, 0.1])
    assert subspace.complete(point(np.array([0.1, 0.1])), proposed) is proposed


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-3), (1e-2, 0.0), (1e-3, 1e-3)])
def test_optimality_is_that_of_the_problem(l1, l2):
    task, w = problem(l1, l2), RNG.standard_normal(6)
    point = Point(w, np.nan, task.value(w), task.gradient(w))
    np.testing.assert_allclose(Descent(shape_of(task, False)).optimality(point), task.optimality(w), rtol=1e-12)
