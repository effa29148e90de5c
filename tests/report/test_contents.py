import numpy as np
import pytest

from banditgrad.report import Claim, Curve, Figure, Panel, Report, Table, Verdict


def panel(key="a", **changes):
    return Panel(
        **{"key": key, "title": "", "x_label": "x", "y_label": "y", "curves": [Curve("c", [1], [1])]} | changes
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Curve("MABS", [], []), "'MABS': x has shape .* at least 1"),
        (lambda: Curve("MABS", [1, 2], [1]), "'MABS': median has shape"),
        (lambda: Curve("MABS", [1, 2], [1, 2], low=[1, 2]), "only one of low and high"),
        (lambda: Curve("MABS", [2, 1], [1, 2]), "must be finite and increase"),
        (lambda: Curve("MABS", [1, 1], [1, 2]), "must be finite and increase"),
        (lambda: Curve("MABS", [1, np.nan], [1, 2]), "must be finite and increase"),
        (lambda: panel(key="../a"), "cannot name a file"),
        (lambda: panel(curves=[Curve("c", [1], [1]), Curve("c", [2], [1])]), r"names must differ, got \['c'\]"),
        (lambda: panel(y_log=True, y_min=0), "Pass y_min > 0"),
        (lambda: panel(y_min=2, y_max=1), "not below y_max"),
        (lambda: Figure("f", "", []), "one or more of each"),
        (lambda: Figure("f", "", [panel()], columns=0), "one or more of each"),
        (lambda: Figure("f", "", [panel(), panel()]), r"keys must differ, got \['a'\]"),
        (lambda: Figure("f g", "", [panel()]), "cannot name a file"),
        (lambda: Table("t", ["a", "b"], [[1]]), "a row has 1 cells, the header 2"),
        (lambda: Report("r", figures=[Figure("f", "", [panel()])] * 2), r"keys must differ, got \['f'\]"),
        (lambda: Report("r", claims=[Claim("s", "m", Verdict.HOLDS, figure="f")]), "names the figure 'f'"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_remedy(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_curve_keeps_its_own_numbers():
    x = np.array([1.0, 2.0])
    curve = Curve("c", x, [3, 4])
    x[0] = 7.0
    np.testing.assert_array_equal(curve.points, [[1, 2], [3, 4], [3, 4], [3, 4]])
    with pytest.raises(ValueError, match="read-only"):
        curve.median[0] = 1.0


def test_a_legend_names_each_curve_once():
    first, again, other = Curve("c", [1], [1]), Curve("c", [2], [2]), Curve("d", [1], [1])
    figure = Figure("f", "", [panel("a", curves=[first]), panel("b", curves=[other, again])])
    assert figure.curves == [first, other]
