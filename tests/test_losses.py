import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditgrad as bg
import reference
from tables import LOSSES

margins = st.floats(-50, 50)


@pytest.mark.parametrize("name", LOSSES)
@given(z=margins, sign=st.sampled_from([-1.0, 1.0]))
def test_value_and_derivative_are_the_formulas(name, z, sign):
    loss = LOSSES[name]
    assert loss.value(z, sign) == pytest.approx(float(reference.loss_value(name, z, sign)), rel=1e-12, abs=1e-15)
    assert loss.derivative(z, sign) == pytest.approx(
        float(reference.loss_derivative(name, z, sign)), rel=1e-12, abs=1e-15
    )


@pytest.mark.parametrize("name", LOSSES)
@given(z=margins, sign=st.sampled_from([-1.0, 1.0]))
def test_derivative_by_finite_differences(name, z, sign):
    loss, h = LOSSES[name], 1e-5
    slope = (loss.value(z + h, sign) - loss.value(z - h, sign)) / (2 * h)
    assert loss.derivative(z, sign) == pytest.approx(slope, rel=1e-5, abs=2e-5)


@pytest.mark.parametrize("name", LOSSES)
@given(z=margins, sign=st.sampled_from([-1.0, 1.0]))
def test_second_derivative_by_finite_differences(name, z, sign):
    loss, h = LOSSES[name], 1e-5
    slopes = [loss.derivative(z + shift, sign) for shift in (-h, 0.0, h)]
    left, right = (slopes[1] - slopes[0]) / h, (slopes[2] - slopes[1]) / h
    assert min(left, right) - 1e-4 <= loss.second_derivative(z, sign) <= max(left, right) + 1e-4


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if hasattr(loss, "expansion")])
@given(z=margins, sign=st.sampled_from([-1.0, 1.0]))
def test_expansion_is_value_and_derivatives_at_once(name, z, sign):
    loss = LOSSES[name]
    apart = loss.value(z, sign), loss.derivative(z, sign), loss.second_derivative(z, sign)
    assert loss.expansion(z, sign) == pytest.approx(apart, rel=1e-14, abs=0.0)


@pytest.mark.parametrize("name", LOSSES)
@given(z=margins, shift=st.floats(-5, 5))
def test_bounds_on_slope_and_curvature(name, z, shift):
    loss = LOSSES[name]
    a, b = loss.derivative(z, 1.0), loss.derivative(z + shift, 1.0)
    assert abs(b - a) <= loss.curvature() * abs(shift) + 1e-12
    assert abs(a) <= loss.slope_bound()


@pytest.mark.parametrize("z", [-1e4, -800.0, 800.0, 1e4])
def test_logistic_does_not_overflow(z):
    loss = bg.Logistic()
    assert loss.value(z, 1.0) == max(0.0, -z)
    assert loss.derivative(z, 1.0) == (0.0 if z > 0 else -1.0)


def test_settings_are_checked():
    for loss, number in ((bg.Huber, 0.0), (bg.Logistic, -1), (bg.Squared, np.inf), (bg.SquaredHinge, np.nan)):
        with pytest.raises(ValueError, match="positive"):
            loss(number)
    assert isinstance(bg.Huber(1).delta, float)


@given(z=margins, width=st.floats(1.35, 100.0))
def test_a_smoothed_huber_has_the_same_slopes_far_away(z, width):
    loss, smooth = bg.Huber(), bg.Huber().smoothed(width)
    assert smooth.width() == width
    assert smooth.slope_bound() == pytest.approx(loss.slope_bound())
    far = z + np.copysign(width, z)
    assert smooth.derivative(far, 0.0) == pytest.approx(loss.derivative(far, 0.0))
    assert 0.0 <= loss.value(z, 0.0) - smooth.value(z, 0.0) + 1e-9 <= 0.5 * 1.35 * width + 2e-9
    assert smooth.second_derivative(0.0, 0.0) == smooth.curvature() == pytest.approx(1.35 / width)
