"""Table 1: n, d and τ of the sets."""

from collections.abc import Sequence

from banditgrad.paper.cases import Cases, synthetic
from banditgrad.paper.claims import Section, judge
from banditgrad.paper.scale import REAL_SETS, Scale
from banditgrad.paper.store import Results
from banditgrad.paper.tasks import Task
from banditgrad.report import Claim, Table
from banditgrad.report.contents import Cell

PRINTED = {"ijcnn1": (49990, 22, 2.61), "w8a": (49749, 300, 9.79)}
PRINTED_SYNTHETIC = (101, 5, 3.7, 83.9)


def panels(scale: Scale, cases: Cases) -> dict[str, Sequence[Task]]:
    return {}


def section(scale: Scale, results: Results) -> Section:
    rows: list[list[Cell]] = []
    agree = []
    ends = [results.cases[synthetic(tau)].problem for tau in (scale.taus[0], scale.taus[-1])]
    taus = [problem.tau for problem in ends]
    n, d, low, high = PRINTED_SYNTHETIC
    rows.append(["synthetic", ends[0].n, ends[0].d, f"{taus[0]:.4g} to {taus[1]:.4g}", f"{n}, {d}, {low} to {high}"])
    agree.append((ends[0].n, ends[0].d, round(taus[0], 1), round(taus[1], 1)) == PRINTED_SYNTHETIC)
    for name in reversed(REAL_SETS):
        problem, printed = results.cases[name].problem, PRINTED[name]
        rows.append([name, problem.n, problem.d, f"{problem.tau:.4g}", ", ".join(map(str, printed))])
        agree.append((problem.n, problem.d) == printed[:2] and abs(problem.tau - printed[2]) <= 0.01)
    measured = "; ".join(f"{row[0]}: {row[1]:,} × {row[2]}, τ = {row[3]}" for row in rows)
    statement = "Table 1: n, d and τ of the synthetic sets, ijcnn1 (2.61) and w8a (9.79)."
    return Section(
        claims=[Claim(statement, measured + ".", judge(agree))],
        tables=[Table("Table 1: the sets", ["set", "n", "d", "τ", "printed in the paper"], rows)],
    )
