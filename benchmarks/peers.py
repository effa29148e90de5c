"""Seconds to F − F* ≤ 1e-3, 1e-4, 1e-6, 1e-8, beside the peers: how it is measured is told in docs/benchmarks.md.

python benchmarks/peers.py                          everything: hours
python benchmarks/peers.py --quick                  a subset in 3 minutes
python benchmarks/peers.py --data w8a --objectives l1-logistic lasso --contenders banditgrad liblinear
python benchmarks/peers.py --document docs/benchmarks.md      fill the tables in from what was measured last
"""

import argparse
import time
from pathlib import Path

from rich.console import Console

from race import display, results
from race.contenders import all_contenders
from race.measure import Entry, Limits, race
from race.optimum import certified_optimum
from race.problems import DATA, OBJECTIVES, Task, task_name

FULL = Limits(rounds=3, budget=20.0, patience=5.0)
QUICK = Limits(rounds=2, budget=1.0, patience=5.0)
QUICK_TASKS = (
    ("w8a", "l1-logistic"),
    ("ijcnn1", "l2-logistic"),
    ("a9a", "squared-hinge"),
    ("words", "l1-logistic"),
    ("words", "ridge"),
)
QUICK_CONTENDERS = (
    "banditgrad",
    "liblinear -s 6",
    "liblinear primal",
    "scikit-learn lbfgs",
    "scikit-learn saga",
    "scikit-learn SGD",
    "scikit-learn Ridge cholesky",
    "cyanure auto",
)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=DATA, help="which data sets")
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, help="what to minimise on them")
    parser.add_argument("--contenders", nargs="+", help="names of contenders, or of libraries for all of theirs")
    parser.add_argument("--quick", action="store_true", help="a subset in 3 minutes")
    parser.add_argument("--rounds", type=int, help="turns of each contender, of which the minimum counts")
    parser.add_argument("--budget", type=float, help="seconds that one fit may take")
    parser.add_argument("--patience", type=float, help="the same, as a multiple of the fastest contender's time")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="where CSV files and the figure go")
    parser.add_argument("--resume", action="store_true", help="keep what --out has and race for the rest")
    parser.add_argument("--document", type=Path, help="no race: write the tables of --out into this file")
    return parser.parse_args()


def chosen_tasks(chosen: argparse.Namespace) -> dict[str, list[str]]:
    """data set → objectives."""
    pairs = [(data, objective) for data in DATA for objective in OBJECTIVES]
    if chosen.quick and not (chosen.data or chosen.objectives):
        pairs = list(QUICK_TASKS)
    tasks: dict[str, list[str]] = {}
    for data, objective in pairs:
        if data in (chosen.data or DATA) and objective in (chosen.objectives or OBJECTIVES):
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


def notes(entries: list[Entry], gap: float) -> str:
    lines = [f"{entry.contender.name}: {entry.note}" for entry in entries if entry.note]
    return "\n".join([f"F* is certified by a duality gap of {gap:.1e}", *lines])


# Of the other benchmarks: the names of their CSV files and of their places in the document.
TABLES = (
    "everything-auto",
    "steps-l1",
    "steps-l2",
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
        figure = "![F − F* against processor seconds, each library by the best of its contenders](figures/peers.png)"
        tables = display.markdown(results.read_cells(out / "peers.csv"))
        display.fill_document(document, "peers", f"{figure}\n\n{tables}")
        display.draw(document.parent / "figures" / "peers.png", results.read_points(out / "peers-fits.csv"))
    for name in TABLES:
        if (out / f"{name}.csv").exists():
            display.fill_document(document, name, display.kept_markdown(out / f"{name}.csv"))


def main() -> None:
    chosen = options()
    console = Console(width=120)
    csv, path = chosen.out / "peers.csv", chosen.out / "peers-fits.csv"
    if chosen.document:
        fill_in(chosen.document, chosen.out)
        return
    given = {name: getattr(chosen, name) for name in Limits._fields if getattr(chosen, name) is not None}
    limits = (QUICK if chosen.quick else FULL)._replace(**given)
    contenders = chosen_contenders(chosen)
    begin, cells, points = time.perf_counter(), [], []
    if chosen.resume and csv.exists():
        cells, points = results.read_cells(csv), results.read_points(path)
    done = {cell.task for cell in cells}
    for data, objectives in chosen_tasks(chosen).items():
        objectives = [objective for objective in objectives if task_name(data, objective) not in done]
        if not objectives:
            continue
        try:
            X, y = DATA[data]()
        except OSError as error:
            console.print(f"{data} is left out: {error}", style="dim")
            continue
        for objective in objectives:
            task = Task(data, objective, X, y)
            with console.status(task.name) as status:
                optimum = certified_optimum(task, chosen.out / "optima.json")
                entries = race(task, contenders, optimum, limits, tell=status.update)
            cells += results.cells(entries)
            points += results.points(entries)
            results.write_csv(path, points)  # after every task, so that a run that is stopped has what it measured
            results.write_csv(csv, cells)  # last: what is in here is not run again
            display.print_tables(console, results.cells(entries), {task.name: notes(entries, optimum.gap)})
    if not cells:
        raise SystemExit("Nothing was measured.")
    display.draw(chosen.out / "peers.png", points)
    console.print(f"{csv}, {path} and peers.png written after {time.perf_counter() - begin:.0f} s")
    console.print(results.summary(cells))


if __name__ == "__main__":
    main()
