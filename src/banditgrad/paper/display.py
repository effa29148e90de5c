"""Progress: a live bar on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from banditgrad.paper.runner import State

_LINE_EVERY = 15.0  # seconds between two plain lines


def duration(seconds: float) -> str:
    """Seconds in words: 40 s, 12 min, 1 h 5 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _told(state: State) -> str:
    left = "" if state.seconds_left is None else f", {duration(state.seconds_left)} left"
    panels = f"{state.panels_done} of {state.panels} panels"
    return f"{panels}, {state.tasks_done} of {state.tasks} runs, {state.rate:.1f} runs/s{left}"


@contextmanager
def display(console: Console) -> Iterator[Callable[[State], None]]:
    """A function to be told how far the work is."""
    if console.is_terminal:
        columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.percentage:>3.0f} %  {task.description}"))
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=1.0)
            yield lambda state: bar.update(task, completed=state.share, description=_told(state))
        return
    last = [-_LINE_EVERY]

    def line(state: State) -> None:
        if time.monotonic() - last[0] >= _LINE_EVERY or state.tasks_done == state.tasks:
            last[0] = time.monotonic()
            console.print(_told(state), highlight=False, soft_wrap=True)

    yield line
