"""The paper's comparison on any problem: the same solver with different samplers, over several seeds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditgrad._frames import as_frame
from banditgrad._names import look_up
from banditgrad.minimise import Reason, Result, minimise
from banditgrad.problem import Problem
from banditgrad.report import Curve, Figure, Panel, Report, Table, draw_figure, installed_versions, this_machine
from banditgrad.report.numbers import formatted
from banditgrad.report.words import SAMPLERS, SOLVERS, TERMS
from banditgrad.samplers import Auto, Sampler
from banditgrad.solvers import ProxSvrg, Solver

NEAR = 1e-3  # of F(0) - F*: what counts as near the minimum


@dataclass(frozen=True)
class Outcome:
    """The runs of one solver with one sampler, one per seed."""

    solver: str
    sampler: str
    results: list[Result]

    @property
    def diverged(self) -> bool:
        return any(result.reason is Reason.DIVERGED for result in self.results)

    def history(self, name: str) -> NDArray[np.float64]:
        """What was recorded, a row per seed; infinite from where a run diverged."""
        length = max(getattr(result.history, name).size + (result.reason is Reason.DIVERGED) for result in self.results)
        rows = np.full((len(self.results), length), np.inf)
        for row, result in zip(rows, self.results, strict=True):
            values = getattr(result.history, name)
            row[: values.size] = np.where(np.isfinite(values), values, np.inf)
        return rows


@dataclass(frozen=True)
class Comparison:
    """What `compare` found; `best` is F*, the least value met anywhere."""

    problem: Problem
    best: float
    start: float
    outcomes: list[Outcome]
    interrupted: bool

    def gaps(self, outcome: Outcome) -> NDArray[np.float64]:
        """F - F*, a row per seed."""
        return np.maximum(outcome.history("value") - self.best, 0.0)

    def passes_to_near(self, outcome: Outcome) -> float:
        """Passes until F - F* is a thousandth of what it was; the median over seeds, infinite where never."""
        reached = self.gaps(outcome) <= NEAR * (self.start - self.best)
        passes = outcome.results[int(np.argmax([r.history.passes.size for r in outcome.results]))].history.passes
        return float(np.median([passes[row.argmax()] if row.any() else np.inf for row in reached]))

    def rows(self) -> list[dict[str, Any]]:
        """A line per solver and sampler: medians over seeds, at the end of the runs."""
        return [
            {
                "solver": outcome.solver,
                "sampler": outcome.sampler,
                "gap": float(np.median(self.gaps(outcome)[:, -1])),
                "passes_to_near": self.passes_to_near(outcome),
                "variance_vs_uniform": _ratio(outcome, "effective_variance", "uniform_variance"),
                "variance_vs_optimal": _ratio(outcome, "effective_variance", "optimal_variance"),
                "seconds": float(np.median([result.seconds for result in outcome.results])),
                "diverged": outcome.diverged,
            }
            for outcome in self.outcomes
        ]

    def to_frame(self) -> Any:
        """A pandas frame with a row for each record of each run: solver, sampler, run, passes, seconds, value, gap and
        the variances."""
        parts: dict[str, list[Any]] = {}
        for outcome in self.outcomes:
            for run, result in enumerate(outcome.results):
                history = {name: values for name, values in vars(result.history).items() if values is not None}
                count = history["passes"].size
                about = {"solver": [outcome.solver] * count, "sampler": [outcome.sampler] * count, "run": [run] * count}
                gap = np.maximum(history["value"] - self.best, 0.0)
                for name, values in {**about, **history, "gap": gap}.items():
                    parts.setdefault(name, []).extend(values)
        return as_frame(parts)

    def plot(self, what: str = "distance") -> Any:
        """A matplotlib figure: "distance" to the minimum against passes and seconds, or "variance" of the estimator."""
        figures = {figure.key: figure for figure in self._figures()}
        return draw_figure(look_up("what", what, figures))

    @property
    def verdict(self) -> str:
        """What came out of it, in words: for each solver the sampler that came nearest, beside uniform draws."""
        rows = self.rows()
        solvers = dict.fromkeys(row["solver"] for row in rows)
        return " ".join(_verdict(solver, [row for row in rows if row["solver"] == solver]) for solver in solvers)

    def _terms(self) -> dict[str, str]:
        solvers = dict.fromkeys(outcome.solver for outcome in self.outcomes)
        samplers = dict.fromkeys(outcome.sampler for outcome in self.outcomes)
        of_solvers = {f"{name} (solver)": SOLVERS[name] for name in solvers if name in SOLVERS}
        return TERMS | of_solvers | {f"{name} (sampler)": SAMPLERS[name] for name in samplers if name in SAMPLERS}

    def report(self, title: str, summary: str, settings: Mapping[str, object]) -> Report:
        header = (
            "solver",
            "sampler",
            "F − F*",
            "passes to 0.1 %",
            "variance / uniform",
            "variance / optimal",
            "seconds",
        )
        rows = [{**row, "gap": "diverged" if row["diverged"] else row["gap"]} for row in self.rows()]
        cells = [tuple(row.values())[: len(header)] for row in rows]
        table = Table(
            "At the end",
            header,
            [[cell if not isinstance(cell, float) or np.isfinite(cell) else "–" for cell in row] for row in cells],
            "Medians over the seeds. Passes to 0.1 %: until F − F* is a thousandth of what it was at w = 0. Variance: "
            "of the solver's gradient estimator, over that with uniform and with perfect sampling at the same points, "
            "the geometric mean over the passes: the second over the first is what uniform draws would have had.",
        )
        return Report(
            title,
            summary,
            verdict=self.verdict,
            terms=self._terms(),
            figures=self._figures(),
            tables=[table],
            settings=settings,
            machine=this_machine(),
            versions=installed_versions(),
        )

    def _figures(self) -> list[Figure]:
        solvers = list(dict.fromkeys(outcome.solver for outcome in self.outcomes))
        distance, noise = [], []
        floor = max(1e-12 * abs(self.start), np.finfo(float).tiny)
        for solver in solvers:
            mine = [outcome for outcome in self.outcomes if outcome.solver == solver]
            gaps = [(outcome, self.gaps(outcome)) for outcome in mine]
            for x, label in (("passes", "passes over the data"), ("seconds", "seconds of solver work")):
                curves = _curves([(outcome, np.maximum(gap, floor)) for outcome, gap in gaps], x)
                distance.append(Panel(f"{solver}-{x}", f"{solver}, by {x}", label, "F − F*", curves, y_log=True))
            ratios = _curves([(o, _quotient(o, "effective_variance", "optimal_variance")) for o in mine], "passes")
            noise.append(
                Panel(
                    f"{solver}-variance",
                    f"{solver}, noise",
                    "passes over the data",
                    "variance / optimal",
                    ratios,
                    y_log=True,
                )
            )
        return [
            Figure(
                "distance",
                "Distance to the minimum",
                distance,
                columns=2,
                caption="Lines are medians over the seeds, bands go from the least to the largest.",
            ),
            Figure(
                "variance",
                "Noise of the gradient estimator",
                noise,
                columns=max(1, min(3, len(noise))),
                caption="Effective variance over the least possible; 1 is perfect sampling.",
            ),
        ]


class Job(NamedTuple):
    """One run of `minimise`, in words and numbers."""

    solver: Solver | str
    sampler: Sampler
    settings: dict[str, Any]


def run_job(problem: Problem, job: Job) -> Result:
    return minimise(problem, job.solver, job.sampler, **job.settings)


def _in_turn(function: Callable[[Problem, Job], Result], problem: Problem, jobs: Sequence[Job]) -> Iterator[Result]:
    for job in jobs:
        yield function(problem, job)


def compare(
    problem: Problem,
    solvers: Mapping[str, Solver | str],
    samplers: Mapping[str, Sampler],
    *,
    passes: float = 30,
    seeds: int = 3,
    seed: int = 0,
    tell: Callable[[str], Any] = lambda words: None,
    each: Callable[..., Iterable[Result]] = _in_turn,
) -> Comparison:
    """Run every solver with every sampler, `seeds` times each; `tell` hears what is going on.

    F* is the least value met by any run, or by a longer one of ProxSvrg made for that. Ctrl-C ends the comparison with
    what is there. `each(function, problem, jobs)` gives the results in the order of the jobs; a cluster's may be
    computed at the same time.
    """
    longest = Job(ProxSvrg(), Auto(), {"passes": 10 * passes, "seed": seed, "tol": 1e-10, "record_every": 2})
    names = [(solver, sampler, k) for solver in solvers for sampler in samplers for k in range(seeds)]
    jobs = [
        Job(solvers[solver], samplers[sampler], {"passes": passes, "seed": seed + k, "record_variance": True})
        for solver, sampler, k in names
    ]
    words = ["the minimum", *(f"{solver} with {sampler}, run {k + 1} of {seeds}" for solver, sampler, k in names)]
    found: list[Result] = []
    interrupted = False
    tell(words[0])
    try:
        for result in each(run_job, problem, [longest, *jobs]):
            interrupted = result.reason is Reason.INTERRUPTED
            if interrupted:
                break
            found.append(result)
            tell(words[min(len(found), len(jobs))])
    except KeyboardInterrupt:
        interrupted = True
    results: dict[tuple[str, str], list[Result]] = {}
    for (solver, sampler, _), result in zip(names, found[1:], strict=False):
        results.setdefault((solver, sampler), []).append(result)
    outcomes = [Outcome(solver, sampler, runs) for (solver, sampler), runs in results.items()]
    values = [float(np.min(result.history.value)) for result in found[1:]] + [result.value for result in found[:1]]
    start = problem.value(np.zeros(problem.dimension))
    return Comparison(problem, min(values, default=start), start, outcomes, interrupted)


def _verdict(solver: str, rows: list[dict[str, Any]]) -> str:
    sound = [row for row in rows if not row["diverged"]]
    if not sound:
        return f"{solver} diverged with every sampler."
    best = min(sound, key=lambda row: row["gap"])
    words = f"{solver} came nearest with {best['sampler']}: F − F* = {formatted(best['gap'], 2)}"
    uniform = next((row for row in sound if row["sampler"] == "uniform"), None)
    if uniform is None or uniform is best:
        return f"{words}."
    words += f", where uniform draws left {formatted(uniform['gap'], 2)}"
    near, far = best["passes_to_near"], uniform["passes_to_near"]
    if near < far:
        after = f"after {far:g}" if far < np.inf else "not at all"
        return f"{words}; within 0.1 % after {near:g} pass{'es' * (near != 1)}, with uniform draws {after}."
    return f"{words}."


def _quotient(outcome: Outcome, over: str, under: str) -> NDArray[np.float64]:
    a, b = outcome.history(over), outcome.history(under)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((b > 0.0) & np.isfinite(a) & np.isfinite(b), a / b, np.nan)


def _ratio(outcome: Outcome, over: str, under: str) -> float:
    """The geometric mean: means of quotients by different things then have the quotient of these things."""
    quotients = _quotient(outcome, over, under)
    used = quotients[np.isfinite(quotients) & (quotients > 0.0)]
    return float(np.exp(np.mean(np.log(used)))) if used.size else np.nan


def _curves(outcomes: Iterable[tuple[Outcome, NDArray[np.float64]]], x: str) -> list[Curve]:
    """Those that have something to show."""
    curves = []
    for outcome, values in outcomes:
        along = np.median(outcome.history(x), axis=0)
        keep = np.isfinite(along)
        keep[1:] &= along[1:] > along[:-1]
        keep &= ~np.isnan(values).all(axis=0)
        if keep.any():
            shown = values[:, keep]
            middle, low, high = np.median(shown, axis=0), shown.min(axis=0), shown.max(axis=0)
            curves.append(Curve(outcome.sampler, along[keep], middle, low, high))
    return curves
