"""Finished work, kept in one SQLite file as JSON: loading executes nothing, a commit is there whole or not at all.

An outcome is kept under a key: a hash of the task's settings, of the data and of the code that computes it, so that a
changed setting, set or solver finds nothing, and is computed anew.
"""

import functools
import hashlib
import importlib.metadata
import inspect
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import banditgrad
from banditgrad.paper.cases import Cases
from banditgrad.paper.tasks import Outcome, Task

_PACKAGE = Path(banditgrad.__file__).parent
_SOURCES = (
    "*.py",
    "_jit/*.py",
    "samplers/*.py",
    "solvers/**/*.py",
    "datasets/*.py",
    "paper/cases.py",
    "paper/tasks.py",
)


class Store:
    """Outcomes by key. Any number of threads may use it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._lock = path, threading.Lock()
        self._connection = sqlite3.connect(path, check_same_thread=False, timeout=60.0)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")  # safe when killed, quick to commit
            with self._connection:
                self._connection.execute(
                    "CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, settings TEXT, outcome TEXT) STRICT"
                )
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise ValueError(
                f"{path} cannot be used as a store of results ({error}). Remove it to start anew."
            ) from error

    def get(self, key: str) -> Outcome | None:
        with self._lock, self._told():
            row = self._connection.execute("SELECT outcome FROM outcomes WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, key: str, settings: dict[str, Any], outcome: Outcome) -> None:
        row = (key, json.dumps(settings, ensure_ascii=False), json.dumps(outcome))
        with self._lock, self._told(), self._connection:
            self._connection.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?)", row)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """A full disk, a damaged file and the like in words for users."""
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(f"{self._path} cannot be used as a store of results ({error}).") from error

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()


class Results:
    """The outcomes of tasks, looked up in a store."""

    def __init__(self, store: Store, cases: Cases) -> None:
        self.store, self.cases = store, cases
        self._known: dict[Task, Outcome] = {}

    def key(self, task: Task) -> str:
        content = [task.settings(), task.data(self.cases), code_hash(type(task))]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def find(self, task: Task) -> Outcome | None:
        if task not in self._known and (found := self.store.get(self.key(task))) is not None:
            self._known[task] = found
        return self._known.get(task)

    def __getitem__(self, task: Task) -> Outcome:
        found = self.find(task)
        if found is None:
            raise KeyError(f"not computed yet: {task.settings()}")
        return found

    def keep(self, task: Task, outcome: Outcome) -> None:
        self.store.put(self.key(task), task.settings(), outcome)


@functools.cache
def code_hash(task: type) -> str:
    """A hash of the sources that decide a task's outcome, and of the versions of the compiler and of NumPy."""
    files = {path for pattern in _SOURCES for path in _PACKAGE.glob(pattern) if path.name != "__init__.py"}
    files.add(Path(inspect.getfile(task)))
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    for package in ("numba", "llvmlite", "numpy"):
        digest.update(f"{package} {importlib.metadata.version(package)}\n".encode())
    return digest.hexdigest()
