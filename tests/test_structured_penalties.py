"""Penalties of features with factors, within bounds and of groups, beside their formulas."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import banditgrad as bg
import reference
from banditgrad.penalties import form_of, with_strength
from tables import STRUCTURED, structured

D = 6
X = np.random.default_rng(0).standard_normal((40, D))


@bg.kernel
def apply(penalty, w, step, d):
    penalty.prox_all(w, step, d)


@bg.kernel
def apply_each(penalty, w, steps, d):
    penalty.prox_each(w, steps, d)


@bg.kernel
def cost(penalty, w, d):
    return penalty.total_cost(w, d)


@bg.kernel
def add_subgradient(penalty, w, out, d):
    penalty.add_subgradient(w, 1.0, out, d)


def over(name, margins=1):
    """The penalty as a problem has it."""
    loss = bg.Squared() if margins == 1 else bg.Softmax(margins)
    return bg.Problem(X, np.zeros(len(X)), loss, structured(D)[name]).penalty


def points(rng, penalty, size, count=40):
    """Some of them at zero here and there, all within bounds."""
    for scale in np.geomspace(1e-3, 10.0, count):
        w = scale * rng.standard_normal(size) * (rng.random(size) < 0.7)
        yield np.clip(w, *(penalty.bounds() if hasattr(penalty, "bounds") else (-np.inf, np.inf)))


@pytest.mark.parametrize("margins", [1, 3])
@pytest.mark.parametrize("name", STRUCTURED)
def test_steps_and_costs_are_those_of_the_formulas(rng, name, margins):
    penalty, size = over(name, margins), D * margins
    step = reference.structured_prox(name, D, size)
    for w in points(rng, penalty, size):
        assert cost(penalty, w, size) == pytest.approx(reference.structured_cost(name, D, w), abs=1e-14)
        gamma, steps, v = rng.exponential(), rng.exponential(size=size), rng.standard_normal(size)
        u = w + 0.3 * v
        got = u.copy()
        apply(penalty, got, gamma, size)
        np.testing.assert_allclose(got, step(u, gamma), atol=1e-13)
        got = u.copy()
        apply_each(penalty, got, steps, size)
        np.testing.assert_allclose(got, step(u, steps), atol=1e-13)


@pytest.mark.parametrize("name", STRUCTURED)
def test_the_proximal_step_is_optimal_block_by_block(rng, name):
    """Along no direction within a block does step · λ r(u) + ½ ‖u - w‖² in the metric of the steps fall."""
    penalty = over(name)
    for w in points(rng, penalty, D):
        steps, start = rng.exponential(size=D), w + 0.3 * rng.standard_normal(D)
        u = start.copy()
        apply_each(penalty, u, steps, D)

        def objective(v, start=start, steps=steps):
            return cost(penalty, v, D) + 0.5 * np.sum((v - start) ** 2 / steps)

        least = objective(u)
        for block in ([0], [1], [0, 1, 2], [3, 4, 5], [0, 5], [2, 3]):
            for size in (1e-4, 1e-2, 1.0):
                v = u.copy()
                v[block] += size * rng.standard_normal(len(block))
                assert objective(v) >= least - 1e-12
            v = u.copy()
            v[block] = 0.0
            assert objective(v) >= least - 1e-12


@pytest.mark.parametrize("name", STRUCTURED)
def test_subgradients(rng, name):
    penalty = over(name)
    for w in points(rng, penalty, D, 10):
        g = np.zeros(D)
        add_subgradient(penalty, w, g, D)
        for u in points(rng, penalty, D, 10):
            assert cost(penalty, u, D) >= cost(penalty, w, D) + g @ (u - w) - 1e-12


@pytest.mark.parametrize("name", STRUCTURED)
def test_the_form_tells_cost_and_conjugate(rng, name):
    penalty = over(name)
    form = form_of(penalty, D)
    for w in points(rng, penalty, D):
        assert form.cost(w) == pytest.approx(cost(penalty, w, D), abs=1e-14)
        g = 0.2 * rng.standard_normal(D)
        s, both = form.conjugate(g, w)
        assert 0.0 <= s <= 1.0
        conjugate = both - form.cost(w)
        for u in points(rng, penalty, D, 10):  # Fenchel and Young's inequality
            assert conjugate >= -s * (g @ u) - form.cost(u) - 1e-12


def test_the_conjugate_is_the_supremum(rng):
    form = form_of(over("Box(Weighted)"), D)
    for _ in range(10):
        g = rng.standard_normal(D)
        s, both = form.conjugate(g, np.zeros(D))
        assert s == 1.0
        total = 0.0
        for j in range(D):
            best = minimize_scalar(
                lambda u, j=j, g=g: g[j] * u + form.l1[j] * abs(u) + 0.5 * form.l2[j] * u * u,
                bounds=(form.lower[j], form.upper[j]),
                method="bounded",
                options={"xatol": 1e-12},
            )
            total += max(0.0, -best.fun)
        assert both == pytest.approx(total, abs=1e-7)


def test_bounds_are_infinite_outside():
    penalty = bg.Problem(X, np.zeros(40), bg.Squared(), bg.Box(0.0, 1.0)).penalty
    assert cost(penalty, np.full(D, -1e-9), D) == np.inf
    assert cost(penalty, np.full(D, 1.0), D) == 0.0
    assert form_of(penalty, D).cost(np.full(D, 1.1)) == np.inf


def test_groups_by_lists_and_by_numbers_are_the_same():
    one, other = (bg.GroupLasso(groups, 0.1) for groups in ([[0, 2], [1, 3], [4, 5]], [0, 1, 0, 1, 2, 2]))
    np.testing.assert_array_equal(one.groups.members, other.groups.members)
    np.testing.assert_array_equal(one.weights, np.sqrt([2, 2, 2]))


def test_another_strength_reaches_the_penalty_within():
    penalty = with_strength(bg.Box(0.0, 1.0, bg.Weighted(bg.L1(0.1), [1.0])), 0.5)
    assert penalty.penalty.penalty == bg.L1(0.5)
    assert with_strength(bg.GroupLasso([[0]], 0.1), 0.5).strength == 0.5


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bg.Weighted(bg.L1(0.1), [-1.0]), "not negative"),
        (lambda: bg.Weighted(bg.L1(0.1), [np.nan]), "NaN"),
        (lambda: bg.Weighted(bg.L1(0.1), "many"), "number"),
        (lambda: bg.Weighted(bg.GroupLasso([[0]]), [1.0]), "GroupLasso"),
        (lambda: bg.Weighted(bg.Box(0.0), [1.0]), "around"),
        (lambda: bg.Box(0.5, 1.0), "lower <= 0"),
        (lambda: bg.Box(0.0, 1.0, bg.SparseGroupLasso([[0]])), "SparseGroupLasso"),
        (lambda: bg.GroupLasso([[0, 1], [1, 2]]), "one group at most"),
        (lambda: bg.GroupLasso([[0], []]), "list"),
        (lambda: bg.GroupLasso("abc"), "lists"),
        (lambda: bg.GroupLasso([[0]], -1.0), "strength"),
        (lambda: bg.GroupLasso([[0]], 1.0, [1.0, 2.0]), "weight"),
        (lambda: bg.SparseGroupLasso([[0]], 1.0, 1.5), "l1_ratio"),
        (lambda: bg.Problem(X, X[:, 0], penalty=bg.Weighted(bg.L1(0.1), [1.0, 2.0])), "6"),
        (lambda: bg.Problem(X, X[:, 0], penalty=bg.GroupLasso([[0, 6]])), "feature 6"),
    ],
)
def test_settings_are_checked(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


class OneByOne(bg.Solver):
    """Somebody's solver, which knows penalties of one coordinate."""

    def start(self, problem, w, seed):
        return w

    def advance(self, problem, state, sampler, steps):
        return steps

    def iterate(self, problem, state):
        return state


@pytest.mark.parametrize(
    ("solver", "penalty", "words"),
    [
        (OneByOne(), bg.GroupLasso([[0, 1]], 0.1), ["OneByOne", "GroupLasso", "takes_vector_penalties"]),
        (bg.Sgd(), bg.Box(0.0), ["Sgd", "Box", "ProxSgd"]),
        (bg.Sqn(), bg.Box(0.0), ["Sqn", "Box", "ProxSgd"]),
        (bg.ProxSgd(0.1, bg.PNorm(1.5)), bg.GroupLasso([[0, 1]], 0.1), ["PNorm", "GroupLasso", "Euclidean"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, bg.Solver) else "",
)
def test_no_penalty_is_taken_in_a_way_that_it_is_not_made_for(solver, penalty, words):
    problem = bg.Problem(X, np.sign(X[:, 0]), bg.Logistic(), penalty)
    with pytest.raises(TypeError) as error:
        bg.minimise(problem, solver, passes=1)
    assert all(word in str(error.value) for word in words)
