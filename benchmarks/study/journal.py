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
        self.path, self._codes = path, {ours: sources(ours) for ours in (False, True)}
        self.outcomes: dict[Key, Outcome] = {}
        whole = path.read_text().splitlines(keepends=True) if path is not None and path.exists() else []
        for line in whole:
            if line.endswith("\n") and (entry := json.loads(line))["code"] in self._codes.values():
                self.outcomes[Key(*entry["key"])] = _outcome(entry["outcome"])
        if path is not None and whole and not whole[-1].endswith("\n"):  # a line that was cut off
            path.write_text("".join(whole[:-1]))

    def add(self, key: Key, outcome: Outcome, ours: bool) -> None:
        self.outcomes[key] = outcome
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps({"code": self._codes[ours], "key": key, "outcome": outcome}) + "\n")


def _outcome(fields: list[Any]) -> Outcome:
    return Outcome([Look(*look) for look in fields[0]], *fields[1:])


def sources(ours: bool) -> str:
    """A hash of the code that a run depends on: the study's, and for ours the batch samplers' and the samplers'."""
    study, package = Path(__file__).parent, Path(bg.__file__).parent
    paths = [study / f"{name}.py" for name in ("tasks", "training", "rivals", "infobatch")]
    if ours:
        paths += [
            study / "contenders.py",
            *(path for part in ("torch", "samplers") for path in sorted((package / part).rglob("*.py"))),
        ]
    digest = hashlib.blake2b(digest_size=6)
    for path in paths:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
