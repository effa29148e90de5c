import numpy as np
import pytest

from banditgrad.report import Curve, Panel
from banditgrad.report.scales import floors, limits, notes


def panel(*curves, **changes):
    return Panel("p", "t", "x", "y", curves, **changes)


@pytest.mark.parametrize(
    ("values", "floor"),
    [([0.0, 3e-5, 2.0], 1e-5), ([1e-5, -1.0], 1e-6), ([0.0, -1.0], 0.1), ([np.nan, np.inf], 0.1), ([5e-324], 1e-101)],
)
def test_the_floor_is_a_power_of_ten_below_all_that_is_positive(values, floor):
    curve = Curve("c", np.arange(len(values)), values)
    assert floors(panel(curve, y_log=True)) == (None, pytest.approx(floor, rel=1e-12))
    assert floors(panel(curve)) == (None, None)


def test_a_given_minimum_is_the_floor():
    assert floors(panel(Curve("c", [0, 20], [1e-9, 1]), x_log=True, y_log=True, y_min=1e-6)) == (10.0, 1e-6)


def test_notes_tell_what_the_chart_cannot_show():
    x = [0, 1, 2, 3]
    curves = [
        Curve("lost", x, [1, np.inf, 1e305, np.nan]),
        Curve("low", x, [1, 0.5, 0, -1]),
        Curve("band", x, [1, 0.5, 0.2, 0.2], [0, 0.5, 0.2, 0.2], [1, 1, 1, 1]),
        Curve("high", x, [1, 1, 1, 50]),
    ]
    assert notes(panel(*curves, x_log=True, y_log=True, y_max=10)) == [
        "Diverged, marked × at the top: lost (2 of 4 points, first at 1).",
        "Below 0.1, drawn there: low (2 of 4 points), band (the band only).",
        "Above 10, off the axis: high (1 of 4 points).",
        "Without a value: lost (1 of 4 points).",
        "Points at zero or less along the axis are drawn at 0.5.",
    ]
    assert notes(panel(curves[1])) == []
    assert notes(panel()) == ["Nothing was measured."]
    many = [Curve(f"c{k}", x, [0, 0, 0, 1]) for k in range(9)]
    assert notes(panel(*many, y_log=True))[0].endswith("c5 (3 of 4 points), and 3 more.")


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[], [np.nan], [np.inf], [3.0], [1e-100, 1e100], [2.0, 3.0, np.inf]])
def test_limits_hold_all_that_is_finite(values, log):
    low, high = limits(np.array(values), log, 0.05)
    assert np.isfinite([low, high]).all()
    assert low < high
    assert all(low < value < high for value in values if np.isfinite(value))
    assert not log or low > 0
