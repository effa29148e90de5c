"""The paper's evaluation, recomputed: one module per table or figure of section 4, and what runs them.

cases, tasks, optimum    what is computed: problems, runs of solvers on them, and F*
store, runner, display   how: outcomes kept under a hash of all they depend on, threads, progress
table1 ... theorem       which runs each part needs, and what figures, tables and claims it makes of them
evaluation               all together, on behalf of ``banditgrad paper``
"""

from banditgrad.paper.cases import Cases
from banditgrad.paper.evaluation import PARTS, evaluate
from banditgrad.paper.scale import PAPER, QUICK, Scale

__all__ = ["PAPER", "PARTS", "QUICK", "Cases", "Scale", "evaluate"]
