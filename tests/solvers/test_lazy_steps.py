"""Many steps of one coordinate in closed form, beside the plain loop."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import banditgrad as bg
from banditgrad.solvers.parts.iterates.affine import POWERS, _after_straight_steps, refill, travelled


@bg.kernel
def travel(w, g, l1, l2, gamma, m, powers):
    refill(powers, gamma * l2)
    return travelled(w, g, l1, l2, gamma, m, powers)


@bg.kernel
def go_straight(w, g, l1, gamma, m, powers):
    return _after_straight_steps(w, g, l1, gamma, m, powers)


def plain(w, g, l1, l2, gamma, m):
    total = 0.0
    for _ in range(m):
        u = w - gamma * g
        w = math.copysign(max(abs(u) - gamma * l1, 0.0), u) / (1.0 + gamma * l2)
        total += w
    return w, total


numbers = st.one_of(st.just(0.0), st.floats(-3.0, 3.0))
strengths = st.one_of(st.just(0.0), st.floats(1e-6, 2.0))


@settings(max_examples=600, deadline=None)
@given(w=numbers, g=numbers, l1=strengths, l2=strengths, gamma=st.floats(1e-3, 3.0), m=st.integers(1, 60))
@example(w=1.0, g=0.5, l1=0.5, l2=0.0, gamma=0.25, m=4)  # arrives at zero exactly
@example(w=1.0, g=1.0, l1=0.0, l2=0.0, gamma=0.25, m=9)  # goes through zero
@example(w=0.0, g=-1.0, l1=0.5, l2=0.1, gamma=0.25, m=9)  # leaves zero
def test_closed_form_is_the_loop(w, g, l1, l2, gamma, m):
    expected = plain(w, g, l1, l2, gamma, m)
    scale = abs(w) + gamma * (abs(g) + l1) * m
    got = travel(w, g, l1, l2, gamma, m, np.zeros(100, POWERS))
    assert got[0] == pytest.approx(expected[0], abs=1e-12 * (1.0 + scale))
    assert got[1] == pytest.approx(expected[1], abs=1e-12 * (1.0 + scale) * m)


@settings(max_examples=600, deadline=None)
@given(w=numbers, g=numbers, l1=strengths, gamma=st.floats(1e-3, 3.0), m=st.integers(0, 60))
@example(w=1.0, g=0.5, l1=0.5, gamma=0.25, m=4)  # arrives at zero exactly
@example(w=1.0, g=2.0, l1=0.5, gamma=0.25, m=9)  # is carried over zero
@example(w=-1.0, g=-2.0, l1=0.5, gamma=0.25, m=2)  # arrives at zero, whence it will be carried on
@example(w=1.0, g=1.0, l1=0.0, gamma=0.25, m=9)  # no threshold
def test_one_long_step_is_the_loop(w, g, l1, gamma, m):
    expected, _ = plain(w, g, l1, 0.0, gamma, m)
    scale = abs(w) + gamma * (abs(g) + l1) * m
    got = go_straight(w, g, l1, gamma, float(m), np.zeros(1, POWERS))
    assert got == pytest.approx(expected, abs=1e-12 * (1.0 + scale))
