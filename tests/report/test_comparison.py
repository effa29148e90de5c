"""Comparisons in which something goes wrong."""

import numpy as np
import pytest

import banditgrad as bg
from banditgrad import inspection, registry
from banditgrad.report import words
from banditgrad.report.comparison import compare
from banditgrad.report.numbers import formatted


@pytest.fixture
def problem(rng):
    X = rng.standard_normal((60, 4))
    return bg.Problem(X, X[:, 0], bg.Squared(), bg.SquaredL2(1e-3))


def test_runs_that_diverge_are_told_as_such(problem):
    solvers = {"wild": bg.ProxSvrg(step_size=1e3), "tame": bg.ProxSvrg()}
    found = compare(problem, solvers, {"uniform": bg.Uniform()}, passes=3, seeds=2)
    wild, tame = found.rows()
    assert wild["diverged"]
    assert wild["gap"] == float("inf")
    assert not tame["diverged"]
    assert tame["gap"] < 1.0
    report = found.report("title", "summary", {})
    assert report.tables[0].rows[0][2] == "diverged"


def test_ctrl_c_ends_an_inspection(problem):
    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inspection.inspect(problem, callback=interrupt)


@pytest.fixture(scope="module")
def found():
    X, y = bg.datasets.make_borderline(600, 30, 5, borderline=0.05, seed=0)
    samplers = {"uniform": bg.Uniform(), "auto": bg.Auto()}
    return bg.compare(bg.Problem(X, y, "logistic", bg.SquaredL2(1e-4)), {"sgd": "sgd"}, samplers, passes=6, seeds=2)


def test_a_comparison_as_a_frame_and_as_a_picture(found):
    frame = found.to_frame()
    assert len(frame) == 2 * 2 * 7
    assert (frame["gap"] == np.maximum(frame["value"] - found.best, 0.0)).all()
    assert set(frame["sampler"]) == {"uniform", "auto"}
    assert [axes.get_title() for axes in found.plot().axes] == ["(a) sgd, by passes", "(b) sgd, by seconds"]
    with pytest.raises(ValueError, match='what must be one of "distance", "variance"; got'):
        found.plot("time")


def test_the_two_ratios_of_variances_agree(found):
    """Their quotient is what uniform draws would have had, which a geometric mean keeps."""
    for outcome, row in zip(found.outcomes, found.rows(), strict=True):
        history = [result.history for result in outcome.results]
        pairs = [(h.uniform_variance / h.optimal_variance)[h.optimal_variance > 0] for h in history]
        expected = np.exp(np.mean(np.log(np.concatenate(pairs))))
        assert row["variance_vs_optimal"] / row["variance_vs_uniform"] == pytest.approx(expected)


def test_the_report_explains_itself(found, tmp_path):
    report = found.report("t", "s", {})
    assert report.verdict == found.verdict
    assert found.verdict.startswith("sgd came nearest with ")
    assert {"F*", "τ", "sgd (solver)", "uniform (sampler)", "auto (sampler)"} <= set(report.terms)
    titles = [panel.title for figure in report.figures for panel in figure.panels]
    assert len(set(titles)) == len(titles)


def test_every_solver_and_sampler_has_its_line():
    assert set(words.SAMPLERS) == set(registry.SAMPLERS)
    assert set(words.SOLVERS) == set(registry.SOLVERS)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1.5, "1.5"), (-134.2, "−134"), (1e-3, "0.001"), (3.2e-7, "3.2×10⁻⁷"), (1e-6, "10⁻⁶"),
     (-1e9, "−10⁹"), (123456.0, "1.23×10⁵"), (np.nan, "–")],
)  # fmt: skip
def test_numbers_are_written_as_in_the_charts(value, text):
    assert formatted(value) == text
