"""CSV files of tables and figures."""

import csv
import io
from collections.abc import Iterable
from typing import Any

import numpy as np

from banditgrad._names import is_number
from banditgrad.report.contents import Panel


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """CSV in which no text is a formula to a spreadsheet: an apostrophe comes before what would begin one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(map(_harmless, row) for row in (header, *rows))
    return text.getvalue()


def _harmless(cell: Any) -> Any:
    if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) and not is_number(cell):
        return f"'{cell}"
    return cell


def panel_csv(panel: Panel) -> bytes:
    """Every x of any curve, and each curve's median, low and high there; empty where a curve has no value."""
    xs = sorted({float(x) for curve in panel.curves for x in curve.points[0]})
    columns: list[list[Any]] = [list(xs)]
    for curve in panel.curves:
        x, *values = curve.points
        place = np.searchsorted(xs, x)
        for column in values:
            cells: list[Any] = [""] * len(xs)
            for at, value in zip(place, column, strict=True):
                cells[at] = "" if np.isnan(value) else float(value)
            columns.append(cells)
    header = [f"{curve.name} {part}" for curve in panel.curves for part in ("median", "low", "high")]
    return csv_text(["x", *header], zip(*columns, strict=True)).encode("utf-8", "replace")
