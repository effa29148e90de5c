"""Fits and optima as lines of JSON. A run that was stopped goes on where it was.

A line counts for the data it was made of; a fit also for the code that made it: those of another version only lower F*.
"""

import hashlib
import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import banditgrad as bg
from minima.fits import Fit
from minima.optimum import Optimum
from minima.problems import Case


class Journal:
    def __init__(self, path: Path | None) -> None:
        self.path, self.code, self.lines = path, sources(), []
        if path is not None and path.exists():
            self.lines = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line[-1] == "\n"]
            if not path.read_bytes().endswith(b"\n"):  # of a line that was cut off
                path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))

    def add(self, case: Case, entry: Fit | Optimum) -> None:
        line = {**asdict(entry), "code": self.code, "data": case.digest}
        self.lines.append(line)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def fits(self, case: Case) -> list[Fit]:
        """Those of this code."""
        return [_made(Fit, line) for line in self._of(case) if "seed" in line and line["code"] == self.code]

    def optimum(self, case: Case) -> Optimum | None:
        """The one that was certified best, with the least F that any fit has found since."""
        lines = self._of(case)
        known = [_made(Optimum, line) for line in lines if "bound" in line]
        if not known:
            return None
        best = min(known, key=lambda optimum: (not optimum.certified, -optimum.bound))
        return replace(best, value=min(line["value"] for line in lines))

    def _of(self, case: Case) -> list[dict[str, Any]]:
        key = (case.data.name, case.kind.name, case.digest)
        return [line for line in self.lines if (line["set"], line["kind"], line["data"]) == key]


def _made(kind: Any, line: dict[str, Any]) -> Any:
    return kind(**{field.name: line[field.name] for field in fields(kind)})


def sources() -> str:
    """A hash of the package's code."""
    digest, folder = hashlib.blake2b(digest_size=6), Path(bg.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()
