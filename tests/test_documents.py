"""Every Python block of the documents runs, in order, as a reader would type it."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
INCLUDING = "docs/how-to/own-parts.md"  # its code is that of CONTRIBUTING.md
DOCS = [str(page.relative_to(ROOT)) for page in sorted(ROOT.glob("docs/**/*.md"))]
PAGES = [
    page
    for page in ("README.md", "CONTRIBUTING.md", *DOCS)
    if page != INCLUDING and "```python" in (ROOT / page).read_text(encoding="utf-8")
]


def installed(name):
    found = importlib.util.find_spec(name)
    return found is not None and found.origin is not None  # and not the folder tests/torch


# What frameworks warn of in their own code: few workers, functions of torch that are deprecated.
@pytest.mark.filterwarnings("ignore:::lightning", "ignore:::transformers", "ignore:::accelerate", "ignore:::torch")
@pytest.mark.parametrize("name", PAGES)
def test_the_code_in_the_documents_runs(name, capsys, tmp_path, monkeypatch):
    text = (ROOT / name).read_text(encoding="utf-8")
    absent = [extra for extra in ("torch", "dask", "lightning", "transformers") if not installed(extra)]
    for extra in absent:
        if name == f"docs/{extra}.md":
            pytest.skip(f'{extra} is not installed: pip install "banditgrad[{extra}]"')
    monkeypatch.chdir(tmp_path)
    blocks = [(match.start(), match[1]) for match in re.finditer(r"```python\n(.*?)```", text, flags=re.S)]
    assert blocks
    scope = {"__name__": "documents"}
    for start, block in blocks:
        if any(extra in block for extra in absent):
            continue
        line = text.count("\n", 0, start) + 1
        exec(compile("\n" * line + block, name, "exec"), scope)
    if name == "README.md":
        printed = capsys.readouterr().out
        assert "Result(value=" in printed
        assert "mabs: F = " in printed


def test_the_page_on_own_parts_includes_the_examples():
    section = re.search(r"--8<-- \"(.*?):(.*?)\"", (ROOT / INCLUDING).read_text(encoding="utf-8"))
    text = (ROOT / section[1]).read_text(encoding="utf-8")
    included = text.split(f"[start:{section[2]}]")[1].split(f"[end:{section[2]}]")[0]
    assert (
        included.count("```python") == 6
    )  # losses of one margin and of several, penalties of coordinates and of blocks, a sampler, a solver
