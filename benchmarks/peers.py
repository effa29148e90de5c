"""Seconds to F − F* ≤ 1e-3, 1e-4, 1e-6, 1e-8, beside the peers: how it is measured is told in docs/benchmarks.md.

python benchmarks/peers.py                          everything: hours
python benchmarks/peers.py --quick                  a subset of both halves in 4 minutes
python benchmarks/peers.py --half held-out          the half on which no constant was chosen
python benchmarks/peers.py --data w8a --objectives l1-logistic lasso --contenders banditgrad liblinear
python benchmarks/peers.py --document docs/benchmarks.md      fill the tables in from what was measured last
"""

import argparse
import time
from pathlib import Path

import numpy as np
from rich.console import Console

from race import display, results
from race.contenders import all_contenders
from race.measure import Entry, Limits, race
from race.optimum import Optimum, certified_optimum
from race.problems import OBJECTIVES, RACED, TWO_CLASSES, Task, load, task_name
from sets import every_set

FULL = Limits()
QUICK = Limits(rounds=2, seeds=2, budget=1.0, patience=3.0)
QUICK_TASKS = (
    ("australian", "l1-logistic"),
    ("w8a", "l1-logistic"),
    ("ijcnn1", "l2-logistic-1/n"),
    ("words", "ridge"),
    ("digits", "multinomial-l2"),
    ("svmguide1", "l1-logistic"),
    ("mushrooms", "squared-hinge"),
    ("abalone", "lasso"),
    ("debian-tfidf", "l1-logistic"),
    ("images", "l2-logistic-1/n"),
    ("debian-tfidf", "ridge"),
)
QUICK_CONTENDERS = (
    "banditgrad",
    "banditgrad estimator",
    "liblinear",
    "snapml",
    "scikit-learn lbfgs",
    "scikit-learn newton-cholesky",
    "scikit-learn SGD",
    "scikit-learn Lasso",
    "scikit-learn Ridge cholesky",
    "cyanure auto",
    "glum irls-cd",
)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=every_set(), metavar="SET", help="which data sets")
    parser.add_argument("--half", choices=("tuning", "held-out"), help="one half of them")
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, help="what to minimise on them")
    parser.add_argument("--contenders", nargs="+", help="names of contenders, or of libraries for all of theirs")
    parser.add_argument("--quick", action="store_true", help="a subset in 4 minutes")
    parser.add_argument("--rounds", type=int, help="turns of each contender, of which the minimum counts")
    parser.add_argument("--seeds", type=int, help="seeds of each contender that takes one, of which the worst counts")
    parser.add_argument("--budget", type=float, help="seconds that one fit may take")
    parser.add_argument("--patience", type=float, help="the same, as a multiple of the fastest contender's time")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="where CSV files and the figure go")
    parser.add_argument("--resume", action="store_true", help="keep what --out has and race for the rest")
    parser.add_argument("--document", type=Path, help="no race: write the tables of --out into this file")
    return parser.parse_args()


def chosen_tasks(chosen: argparse.Namespace) -> dict[str, list[str]]:
    """data set → objectives: those of its kind, unless others are asked for."""
    if chosen.data and chosen.objectives:
        pairs = [(data, objective) for data in chosen.data for objective in chosen.objectives]
    elif chosen.quick and not (chosen.data or chosen.objectives):
        pairs = list(QUICK_TASKS)
    else:
        mine = {data: RACED.get(data, TWO_CLASSES) for data in chosen.data or RACED}
        pairs = [(data, o) for data, kinds in mine.items() for o in kinds if o in (chosen.objectives or kinds)]
    tasks: dict[str, list[str]] = {}
    for data, objective in pairs:
        if chosen.half in (None, every_set()[data].half):
            tasks.setdefault(data, []).append(objective)
    return tasks


def chosen_contenders(chosen: argparse.Namespace):
    everyone = all_contenders()
    names = chosen.contenders or (QUICK_CONTENDERS if chosen.quick else everyone)
    wanted = {}
    for name in names:
        found = [everyone[name]] if name in everyone else [c for c in everyone.values() if c.library == name]
        if not found:
            raise SystemExit(f"No contender is called {name!r}. There are: {', '.join(everyone)}.")
        wanted |= {c.name: c for c in found}
    return list(wanted.values())


def notes(entries: list[Entry], optimum: Optimum) -> str:
    lines = {f"{entry.contender.name}: {entry.note}": None for entry in entries if entry.note}
    return "\n".join([str(optimum), *lines])


# Of the other benchmarks: the names of their CSV files and of their places in the document.
TABLES = (
    "everything-auto",
    "steps-l1",
    "steps-dense",
    "draws",
    "sampling-cost",
    "growth",
    "memory-map",
    "start-up",
)


def fill_in(document: Path, out: Path) -> None:
    """Put what was measured into the document, and the figure of the race beside it; the rest stays as it is."""
    if (out / "peers.csv").exists():
        cells = results.read_cells(out / "peers.csv")
        figure = (
            "![Share of cells in which a library takes at most so many times as long as the fastest](figures/peers.png)"
        )
        display.fill_document(document, "peers", f"{display.summary(cells)}\n\n{figure}\n\n{display.tables(cells)}")
        display.draw(document.parent / "figures" / "peers.png", cells)
    for name in TABLES:
        if (out / f"{name}.csv").exists():
            display.fill_document(document, name, display.kept_markdown(out / f"{name}.csv"))


def main() -> None:
    chosen = options()
    console = Console(width=120)
    csv = chosen.out / "peers.csv"
    if chosen.document:
        fill_in(chosen.document, chosen.out)
        return
    given = {name: getattr(chosen, name) for name in Limits._fields if getattr(chosen, name) is not None}
    limits = (QUICK if chosen.quick else FULL)._replace(**given)
    contenders = chosen_contenders(chosen)
    begin, cells = time.perf_counter(), []
    if chosen.resume and csv.exists():
        cells = results.read_cells(csv)
    done = {cell.task for cell in cells}
    for data, objectives in chosen_tasks(chosen).items():
        objectives = [objective for objective in objectives if task_name(data, objective) not in done]
        if not objectives:
            continue
        try:
            X, y = load(data)
        except OSError as error:
            console.print(f"{data} is left out: {error}", style="dim")
            continue
        for objective in objectives:
            task = Task(data, objective, X, y)
            try:
                with console.status(task.name) as status:
                    optimum = certified_optimum(task, chosen.out / "optima.json")
                    entries = race(task, contenders, optimum, limits, tell=status.update)
            except (ArithmeticError, MemoryError, ValueError, np.linalg.LinAlgError) as error:
                console.print(f"{task.name} is left out: {type(error).__name__}: {error}", style="red")
                continue
            if not entries:
                console.print(f"{task.name} is left out: {optimum}", style="red")
                continue
            cells += results.cells(entries)
            results.write_csv(csv, cells)  # after every task, so that a run that is stopped has what it measured
            display.print_tables(console, results.cells(entries), {task.name: notes(entries, optimum)})
    if not cells:
        raise SystemExit("Nothing was measured.")
    display.draw(chosen.out / "peers.png", cells)
    console.print(f"{csv} and peers.png written after {time.perf_counter() - begin:.0f} s")
    display.print_standings(console, cells)


if __name__ == "__main__":
    main()
