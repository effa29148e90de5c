"""Theorem 1 beside what SGD with each sampler realises: Σ_t V_e(p^t) against the best fixed p, and the full bound

    Σ_t V_e(p^t) <= 3 Σ_t V_e(p*) + 50 √(n⁵ T mean(a²) ln n),    for T >= 25 n ln n max(a²) / (4 mean(a²)).

Sums over t are taken over evenly spaced records, times T over their number.
"""

import math
import threading
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import banditgrad as bg
from banditgrad.paper.cases import Cases, is_synthetic, synthetic
from banditgrad.paper.claims import Section, judge, number
from banditgrad.paper.figure1 import STEP as SYNTHETIC_STEP
from banditgrad.paper.scale import BOUND, PAPER_SAMPLERS, REAL_SETS, Scale
from banditgrad.paper.store import Results
from banditgrad.paper.tasks import SAMPLERS, Outcome, Task, ended
from banditgrad.problem import optimal_variance
from banditgrad.report import Claim, Table


@dataclass(frozen=True)
class VarianceRun:
    """A run of SGD that adds up V_e: in units of the best fixed p, what is realised and what the theorem allows."""

    case: str
    sampler: str
    step_size: float
    draws: int
    records: int
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        return {**vars(self), "sampler": f"{self.sampler}: {SAMPLERS[self.sampler]!r}", "sums": "V_e"}

    def data(self, cases: Cases) -> str:
        return cases[self.case].data_hash

    def kind(self) -> Hashable:
        return "variance", self.case.partition("=")[0], self.sampler

    def units(self, cases: Cases) -> float:
        return self.draws + cases[self.case].problem.n * (self.records + 2.0)

    def trial(self, cases: Cases) -> float:
        short = replace(self, draws=max(1, self.draws // self.records), records=1)
        short.work(cases, threading.Event())  # compiles
        begin = time.perf_counter()
        short.work(cases, threading.Event())
        return (time.perf_counter() - begin) / short.units(cases)

    def work(self, cases: Cases, stop: threading.Event) -> Outcome:
        problem = cases[self.case].problem
        total, largest = np.zeros(problem.n), np.zeros(problem.n)

        def look(w: np.ndarray[Any, np.dtype[np.float64]]) -> bool:
            a = (problem.gradient_norms(w) / problem.n) ** 2
            np.add(total, a, out=total)
            np.maximum(largest, a, out=largest)
            return stop.is_set()

        look(np.zeros(problem.dimension))
        passes = self.draws / problem.n
        result = bg.minimise(
            problem,
            bg.Sgd(self.step_size),
            SAMPLERS[self.sampler],
            passes=passes,
            seed=self.seed,
            record_every=passes / self.records,
            record_variance=True,
            callback=lambda progress: look(progress.w),
        )
        ended(result)
        if result.reason is bg.Reason.DIVERGED:
            return {"ratio": math.inf, "bound": math.inf, "condition": math.inf}
        realised = result.history.effective_variance
        bounds = problem.gradient_bounds
        a = largest if bounds is None else (bounds / problem.n) ** 2
        return _beside_the_best(total / realised.size, float(realised.mean()), a, self.draws)  # type: ignore[union-attr]


def _beside_the_best(mean_a: Any, realised: float, a: Any, draws: int) -> Outcome:
    """All over Σ_t V_e(p*), whose p* is ∝ √Σ_t a_i: the realised sum, the theorem's bound; and the least T over T."""
    n, best = a.size, optimal_variance(mean_a)
    excess = 50.0 * math.sqrt(float(n) ** 5 * float(np.mean(a**2)) * math.log(n) / draws)
    least = 25.0 * n * math.log(n) * float(np.max(a) ** 2) / (4.0 * float(np.mean(a**2)))
    return {"ratio": realised / best, "bound": 3.0 + excess / best, "condition": least / draws}


def _samplers(scale: Scale, case: str) -> tuple[str, ...]:
    return (*PAPER_SAMPLERS, *(name for name in scale.beyond if name != BOUND or not is_synthetic(case)))


def _cases(scale: Scale) -> list[str]:
    middle = scale.taus[len(scale.taus) // 2]
    return [*(synthetic(tau) for tau in (scale.taus[0], middle, scale.taus[-1])), *REAL_SETS]


def _runs(scale: Scale, cases: Cases, case: str, sampler: str) -> list[VarianceRun]:
    step, draws = (SYNTHETIC_STEP, scale.figure1_steps) if is_synthetic(case) else (1.0, 0)
    draws = draws or scale.figure2_passes * cases[case].problem.n
    return [
        VarianceRun(case, sampler, step, draws, scale.theorem_records, seed) for seed in range(scale.theorem_repeats)
    ]


def panels(scale: Scale, cases: Cases) -> dict[str, Sequence[Task]]:
    return {
        "theorem": [
            run
            for case in _cases(scale)
            for sampler in _samplers(scale, case)
            for run in _runs(scale, cases, case, sampler)
        ]
    }


def section(scale: Scale, results: Results) -> Section:
    rows, mabs = [], {}
    columns = (*PAPER_SAMPLERS, *scale.beyond)
    for case in _cases(scale):
        medians = {}
        for sampler in _samplers(scale, case):
            outcomes = [results[run] for run in _runs(scale, results.cases, case, sampler)]
            medians[sampler] = {key: float(np.median([one[key] for one in outcomes])) for key in outcomes[0]}
        mabs[case] = medians["MABS"]
        cells = [number(medians[sampler]["ratio"]) if sampler in medians else "–" for sampler in columns]
        rows.append([case, *cells, number(mabs[case]["bound"]), number(mabs[case]["condition"])])
    table = Table(
        "Theorem 1: Σ V_e(p^t) / Σ V_e(p*) for SGD",
        ["set", *columns, "allowed by the bound", "T needed / T"],
        rows,
        caption="p* is the best fixed distribution. The bound is 3 plus a term that falls as 1/√T; the last column is "
        "how many times more draws the theorem asks for than were made. On synthetic sets the a_i are the largest met.",
    )
    return Section(_claims(mabs), [], [table])


def _claims(mabs: dict[str, dict[str, float]]) -> list[Claim]:
    ratios = "; ".join(f"{case}: {number(values['ratio'])}" for case, values in mabs.items())
    bounds = "; ".join(
        f"{case}: {number(values['ratio'])} <= {number(values['bound'])}"
        + (f" (T is {number(values['condition'])} times too small)" if values["condition"] > 1 else "")
        for case, values in mabs.items()
    )
    return [
        Claim(
            "Conclusion: MABS asymptotically approximates the optimal variance within a factor of 3.",
            f"Σ V_e(p^t) / Σ V_e(p*) over the whole run: {ratios}.",
            judge([values["ratio"] <= 3.0 for values in mabs.values()]),
        ),
        Claim(
            "Theorem 1: Σ V_e(p^t) <= 3 Σ V_e(p*) + 50 √(n⁵ T mean(a²) ln n), for T large enough.",
            f"both over Σ V_e(p*): {bounds}. Where T is too small the theorem says nothing.",
            judge([values["ratio"] <= values["bound"] for values in mabs.values()]),
        ),
    ]
