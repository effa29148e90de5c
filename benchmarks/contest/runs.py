"""What is measured: runs with their records, what a pass costs, what a draw costs. All goes to a journal of JSON lines,
from which a run that was stopped goes on."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import banditgrad as bg
from banditgrad.samplers.blocks import new_block
from contest.cases import SAMPLERS, SOLVERS, Case, Settings, cases
from minima.journal import sources

PACE_PASSES, PACE_ROUNDS = 10.0, 3
DRAWS, BLOCK, ITEMS = 100_000, 128, 50_000

Line = dict[str, Any]


class Missing(Exception):
    """There is no time to make what the journal does not have."""


class Journal:
    """Lines that count for the settings, the data and, unless `any_code`, the code that they were made with."""

    def __init__(self, path: Path, any_code: bool = False) -> None:
        self.path, self.code, self.any_code, self.lines = path, sources(), any_code, dict[str, Line]()
        self.deadline = np.inf  # in processor seconds
        if path.exists():
            whole, end, _ = path.read_text(encoding="utf-8").rpartition("\n")
            path.write_text(whole + end, encoding="utf-8")  # without a line that was cut off
            for text in whole.splitlines():
                line = json.loads(text)
                self.lines[self._name(line["key"])] = line

    def _name(self, key: Line) -> str:
        return json.dumps({**key, "code": ""} if self.any_code else key, sort_keys=True)

    def get(self, key: Line, work: Callable[[], Line]) -> Line:
        """The line of this key, made now if it is not there."""
        key = {**key, "code": self.code}
        name = self._name(key)
        if name not in self.lines:
            if time.process_time() >= self.deadline:
                raise Missing(f"Not all is there: stopped before {key}.")
            self.lines[name] = {"key": key, **work()}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self.lines[name]) + "\n")
        return self.lines[name]


def measure(settings: Settings, journal: Journal, tell: Callable[[str], Any]) -> Iterator[Line]:
    """Every line of the table, in order: draws, then for each case its optimum, its paces and its runs."""
    for sampler in settings.samplers:
        yield journal.get({"draw": sampler}, lambda sampler=sampler: _draw_cost(sampler))
    for case in cases(settings):
        place = {"set": case.data, "objective": case.objective, "data": case.digest}
        tell(f"{case.data}, {case.objective}")
        yield journal.get({**place, "what": "optimum"}, lambda case=case: _optimum(case))
        for solver in settings.solvers:
            key = {**place, "solver": solver, "what": "pace", "samplers": list(settings.samplers)}
            yield journal.get(key, lambda case=case, key=key: _paces(case, key))
            for sampler in settings.samplers:
                for seed in range(settings.seeds):
                    key = {**place, "solver": solver, "sampler": sampler, "seed": seed, "passes": settings.passes}
                    yield journal.get(key, lambda case=case, key=key: _run(case, key))


def _optimum(case: Case) -> Line:
    result = bg.minimise(case.problem, passes=300, seed=1000, tol=1e-12)
    return {"value": result.value, "gap": result.gap, "start": case.problem.value(np.zeros(case.problem.dimension))}


def _run(case: Case, key: Line) -> Line:
    sampler, solver = SAMPLERS[key["sampler"]], SOLVERS[key["solver"]]
    result = bg.minimise(
        case.problem, solver, sampler, passes=key["passes"], seed=key["seed"], record_variance=True, record_every=0.5
    )
    history = result.history
    columns = {
        "passes": history.passes,
        "value": history.value,
        "variance": history.effective_variance,
        "optimal": history.optimal_variance,
        "uniform": history.uniform_variance,
    }
    digits = {"value": 16}
    return {name: [float(f"{x:.{digits.get(name, 4)}g}") for x in column] for name, column in columns.items()}


def _paces(case: Case, key: Line) -> Line:
    """Processor seconds of a pass with each sampler: of some passes less those of none, minima over rounds of both."""
    lengths, solver = (0.0, PACE_PASSES), SOLVERS[key["solver"]]
    best = {name: [np.inf, np.inf] for name in key["samplers"]}
    for seed in range(PACE_ROUNDS):
        for name, least in best.items():
            for k, passes in enumerate(lengths):
                begin = time.process_time()
                bg.minimise(case.problem, solver, SAMPLERS[name], passes=passes, seed=seed, record_every=PACE_PASSES)
                least[k] = min(least[k], time.process_time() - begin)
    return {"seconds": {name: max(most - none, 1e-9) / PACE_PASSES for name, (none, most) in best.items()}}


def _draw_cost(sampler: str) -> Line:
    """Processor nanoseconds of a draw with its p and its update, in blocks as solvers make them."""
    rng, block = np.random.default_rng(0), new_block(ITEMS, BLOCK)
    a, L = np.exp(2.0 * rng.standard_normal(ITEMS)), np.exp(rng.standard_normal(ITEMS))
    state = SAMPLERS[sampler].start(ITEMS, seed=0, smoothness=L, horizon=30 * ITEMS).state
    seconds = []
    for _ in range(6):  # the first compiles, and the weights learn
        begin = time.process_time()
        draw_and_learn(state, block, a, DRAWS // BLOCK)
        seconds.append(time.process_time() - begin)
    return {"nanoseconds": min(seconds[1:]) / DRAWS * 1e9}


@bg.kernel
def draw_and_learn(state, block, a, blocks):
    for _ in range(blocks):
        state.draw_many(block)
        for t in range(block.i.size):
            block.a[t] = a[block.i[t]]
        state.learn_many(block, block.i.size)
