"""Files that are there whole or not at all."""

import csv
import io
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from banditgrad.report.contents import Panel


def write_atomically(path: Path, content: bytes) -> Path:
    """Write to a file beside it and rename: a reader, or a crash, never meets half a file.

    Where a link leads is written to, and so is what is not a file, such as a pipe.
    """
    if path.is_symlink():
        write_atomically(path.resolve(), content)
        return path
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return path


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """CSV in which no text is a formula to a spreadsheet: an apostrophe comes before what would begin one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(map(_harmless, row) for row in (header, *rows))
    return text.getvalue()


def _harmless(cell: Any) -> Any:
    if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) and not _is_number(cell):
        return f"'{cell}"
    return cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


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
