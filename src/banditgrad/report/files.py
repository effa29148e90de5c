"""Files that are there whole or not at all."""

import csv
import io
import os
import secrets
from pathlib import Path

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


def panel_csv(panel: Panel) -> bytes:
    """Every x of any curve, and each curve's median, low and high there; empty where a curve has no value."""
    xs = sorted({float(x) for curve in panel.curves for x in curve.points[0]})
    columns: list[list[str]] = [[repr(x) for x in xs]]
    for curve in panel.curves:
        x, *values = curve.points
        place = np.searchsorted(xs, x)
        for column in values:
            cells = [""] * len(xs)
            for at, value in zip(place, column, strict=True):
                cells[at] = "" if np.isnan(value) else repr(float(value))
            columns.append(cells)
    header = [f"{curve.name} {part}" for curve in panel.curves for part in ("median", "low", "high")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["x", *header])
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode("utf-8", "replace")
