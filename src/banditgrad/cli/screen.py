"""What commands print: results to standard output, everything else to standard error."""

import codecs
import json
import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from banditgrad._jit import watch_compiler
from banditgrad.minimise import Progress

__all__ = [
    "compiling",
    "err",
    "escape",
    "facts",
    "never_fail_to_encode",
    "note",
    "number",
    "out",
    "pass_by_pass",
    "print_json",
    "table",
    "training",
    "watch_compiler",
    "working",
]

INTERRUPTED = 130  # the exit code of a command that Ctrl-C has ended
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


_IN_ASCII = {"τ": "tau", "−": "-", "–": "-", "×": "x", "∝": "~"}


def never_fail_to_encode() -> None:
    """Let characters that the terminal's encoding lacks become what is nearest in ASCII, or their code."""
    codecs.register_error("nearest", _nearest)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="nearest")


def _nearest(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    codes = (_IN_ASCII.get(each) or each.encode("ascii", "backslashreplace").decode() for each in lacking)
    return "".join(codes), error.end


def print_json(content: Any) -> None:
    """One JSON object; numbers that JSON does not know become null."""
    unicode = (sys.stdout.encoding or "utf").lower().startswith("utf")
    print(json.dumps(_plain(content), indent=2, ensure_ascii=not unicode, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def facts(rows: Iterable[tuple[str, str]], title: str = "") -> None:
    """Names and values, one pair a line."""
    table = Table(box=None, show_header=False, title=title or None, title_justify="left", padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, escape(value))
    out.print(table)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> None:
    """A table whose first `left` columns are words and the others numbers."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(header):
        shown.add_column(name, justify="left" if at < left else "right", no_wrap=True)
    for row in rows:
        shown.add_row(*map(escape, row))
    Console(highlight=False, width=max(out.width, 100) if not out.is_terminal else None).print(shown)


def note(words: str, kind: str = "Note") -> None:
    """A remark on what was done, beside the results."""
    err.print(f"[yellow]{kind}:[/] {escape(words)}")


@contextmanager
def compiling() -> Iterator[Callable[[], float]]:
    """Says so if there is something to compile; yields a function that gives the seconds spent on it so far."""
    with watch_compiler(lambda: note("compiling for data of this kind, once on this machine (some seconds).")) as spent:
        yield spent


@contextmanager
def training(problems: int) -> Iterator[Callable[[Progress], bool]]:
    """A bar on a terminal, nothing elsewhere. Yields a callback for the runs of so many problems."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    made: dict[int, float] = {}  # passes, by thread: a run that begins anew has made fewer
    with Bar(
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    ) as bar:
        task = bar.add_task("", total=problems if problems > 1 else None)

        def callback(progress: Progress) -> bool:
            thread = threading.get_ident()
            if progress.passes <= made.get(thread, 0.0):
                bar.advance(task)
            made[thread] = progress.passes
            bar.update(task, description=f"pass {progress.passes:.0f}, F = {progress.value:.6g}")
            return False

        yield callback


@contextmanager
def working(words: str) -> Iterator[Any]:
    """A line on a terminal that tells what is going on; nothing elsewhere. Yields a function that changes the words."""
    if not err.is_terminal:
        yield lambda words: None
        return
    with err.status(words) as status:
        yield status.update


def pass_by_pass(say: Any, what: str) -> Any:
    """A callback for `minimise` that says how far a run is."""

    def callback(progress: Progress) -> bool:
        say(f"{what}: pass {progress.passes:.0f}, F = {progress.value:.6g}")
        return False

    return callback


def number(value: float, digits: int = 3) -> str:
    """A number for a table; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.{digits}g}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.{max(digits - 1, 0)}e}"
