"""Every Python block of README and CONTRIBUTING runs, in order, as a reader would type it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_the_code_in_the_documents_runs(name, capsys):
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = [(match.start(), match[1]) for match in re.finditer(r"```python\n(.*?)```", text, flags=re.S)]
    assert len(blocks) >= 3
    scope = {"__name__": "documents"}
    for start, block in blocks:
        line = text.count("\n", 0, start) + 1
        exec(compile("\n" * line + block, name, "exec"), scope)
    if name == "README.md":
        printed = capsys.readouterr().out
        assert "Result(value=" in printed
        assert "Mabs" in printed
