"""Every Python block of README, CONTRIBUTING and the pages in docs runs, in order, as a reader would type it."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "CONTRIBUTING.md", *(str(page.relative_to(ROOT)) for page in sorted(ROOT.glob("docs/*.md")))]


@pytest.mark.parametrize("name", PAGES)
def test_the_code_in_the_documents_runs(name, capsys, tmp_path, monkeypatch):
    text = (ROOT / name).read_text(encoding="utf-8")
    found = importlib.util.find_spec("torch")
    has_torch = found is not None and found.origin is not None  # and not the folder tests/torch
    if name == "docs/torch.md" and not has_torch:
        pytest.skip('PyTorch is not installed: pip install "banditgrad[torch]"')
    monkeypatch.chdir(tmp_path)
    blocks = [(match.start(), match[1]) for match in re.finditer(r"```python\n(.*?)```", text, flags=re.S)]
    assert len(blocks) >= 3
    scope = {"__name__": "documents"}
    for start, block in blocks:
        if "torch" in block and not has_torch:
            continue
        line = text.count("\n", 0, start) + 1
        exec(compile("\n" * line + block, name, "exec"), scope)
    if name == "README.md":
        printed = capsys.readouterr().out
        assert "Result(value=" in printed
        assert "Mabs" in printed
