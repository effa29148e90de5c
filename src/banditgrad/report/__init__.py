"""Results as figures, CSV files and one self-contained HTML page.

Data classes in, files out: only `comparison`, which runs solvers, knows more of them than their names.
"""

from banditgrad.report.contents import Claim, Curve, Figure, Panel, Report, Table, Verdict
from banditgrad.report.environment import installed_versions, this_machine
from banditgrad.report.figures import draw_figure, write_figures
from banditgrad.report.page import write_html

__all__ = [
    "Claim",
    "Curve",
    "Figure",
    "Panel",
    "Report",
    "Table",
    "Verdict",
    "draw_figure",
    "installed_versions",
    "this_machine",
    "write_figures",
    "write_html",
]
