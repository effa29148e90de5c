"""One table of all samplers: × solvers × real data × objectives, by passes, processor seconds, variance and regret.

python benchmarks/samplers.py                                      everything, ten seeds: many hours
python benchmarks/samplers.py --rows 4000 --seeds 3 --passes 20 --sparse    a part of each set, in minutes
python benchmarks/samplers.py ... --show                           what the journal has, of older code too; runs nothing

Writes page.html, with charts, and CSV files to --out, and the tables of docs/samplers.md with --document. What was done
is kept in --out/journal.jsonl: stopped, it goes on where it was, unless data, settings or the package's code changed.
"""

import argparse
import time
from pathlib import Path

from rich.console import Console

from banditgrad.report import write_html
from banditgrad.report.files import csv_text
from contest.cases import OBJECTIVES, SAMPLERS, SETS, SOLVERS, Settings
from contest.display import halves, markdown, report, summary, words
from contest.results import cells, draw_costs
from contest.runs import Journal, Missing, measure
from race.display import fill_document


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, choices in (("sets", SETS), ("objectives", OBJECTIVES), ("solvers", SOLVERS), ("samplers", SAMPLERS)):
        parser.add_argument(f"--{name}", nargs="+", choices=list(choices), default=list(choices))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--passes", type=float, default=40.0)
    parser.add_argument("--rows", type=int, help="of each set, at most")
    parser.add_argument("--sparse", action="store_true", help="store dense rows as sparse ones: fewer loops to compile")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="processor time after which to show what is there"
    )
    parser.add_argument("--show", action="store_true", help="run nothing")
    parser.add_argument("--out", type=Path, default=Path("out/samplers"))
    parser.add_argument("--document", type=Path, help="docs/samplers.md, to be filled in")
    return parser.parse_args()


def main() -> None:
    options, console = arguments(), Console()
    settings = Settings(
        *(tuple(getattr(options, name)) for name in ("sets", "objectives", "solvers", "samplers")),
        options.seeds,
        options.passes,
        options.rows,
        options.sparse,
    )
    journal = Journal(options.out / "journal.jsonl", any_code=options.show)
    journal.deadline = 0.0 if options.show else time.process_time() + 60.0 * options.minutes
    lines = []
    try:
        for line in measure(settings, journal, lambda words: console.print(f"{time.process_time():7.0f} s  {words}")):
            lines.append(line)
    except (KeyboardInterrupt, Missing) as stopped:
        console.print(str(stopped) or "stopped")
    found, draws = cells(lines), draw_costs(lines)
    page = write_html(report(found, draws, settings), options.out / "page.html")
    texts = [words(settings)]
    for name, mine in halves(found).items():
        table = summary(mine, draws)
        texts.append(f"### {name.capitalize()}\n\n{markdown(table)}")
        (options.out / f"{name.replace(' ', '-')}.csv").write_text(csv_text(table.header, table.rows), encoding="utf-8")
    if options.document:
        fill_document(options.document, "samplers", "\n\n".join(texts))
    console.print("\n\n".join(texts), soft_wrap=True)
    console.print(f"Written: {page}")


if __name__ == "__main__":
    main()
