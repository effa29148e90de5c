"""Runs as lines of JSON. A study that was stopped goes on where it was; a line counts for the code that made it."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import banditgrad as bg
from study.training import Look, Outcome


class Key(NamedTuple):
    task: str
    contender: str
    step_size: float
    seed: int
    size: float  # the share of the training samples
    epochs: float  # and of the task's epochs


class Journal:
    def __init__(self, path: Path | None) -> None:
        self.path, self.code = path, sources()
        self.outcomes: dict[Key, Outcome] = {}
        whole = path.read_text().splitlines(keepends=True) if path is not None and path.exists() else []
        for line in whole:
            if line.endswith("\n") and (entry := json.loads(line))["code"] == self.code:
                self.outcomes[Key(*entry["key"])] = _outcome(entry["outcome"])
        if path is not None and whole and not whole[-1].endswith("\n"):  # a line that was cut off
            path.write_text("".join(whole[:-1]))

    def add(self, key: Key, outcome: Outcome) -> None:
        self.outcomes[key] = outcome
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps({"code": self.code, "key": key, "outcome": outcome}) + "\n")


def _outcome(fields: list[Any]) -> Outcome:
    return Outcome([Look(*look) for look in fields[0]], *fields[1:])


def sources() -> str:
    """A hash of the code that a run depends on: the study's, the batch samplers' and the samplers'."""
    digest, package = hashlib.blake2b(digest_size=6), Path(bg.__file__).parent
    for folder in (Path(__file__).parent, package / "torch", package / "samplers"):
        for path in sorted(folder.rglob("*.py")):
            if path.name != "verdict.py":  # which only reads
                digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
