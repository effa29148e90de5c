"""Which part of the package may import which: read from the sources, so that imports inside functions count."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import banditgrad

PACKAGE = Path(banditgrad.__file__).parent
FRONT = {"cli", "paper", "report", "__main__"}  # what the core does not know
FACADE = {"__init__"}  # names `compare` for type checkers
HOMES = {  # the only parts that may import it
    "numba": {"_jit"},
    "llvmlite": {"_jit"},
    "torch": {"torch"},
    "dask": {"dask"},
    "distributed": {"dask"},
    "matplotlib": {"report"},
    "onnx": {"linear_model"},
    "pandas": {"_frames", "datasets"},
    "sklearn": {"cli", "dask", "linear_model"},
}
FILES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}


def part_of(name):
    """The folder, or the module, of the package that a file belongs to."""
    return Path(name).parts[0].removesuffix(".py")


def imported(path):
    """Dotted names of all that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_parts(path):
    """The parts of the package that a file imports."""
    names = [name.split(".") for name in imported(path)]
    return {name[1] for name in names if name[0] == "banditgrad" and len(name) > 1}


@pytest.mark.parametrize("name", [name for name in FILES if part_of(name) not in FRONT | FACADE])
def test_the_core_does_not_know_the_report_the_paper_and_the_commands(name):
    assert not own_parts(FILES[name]) & FRONT


@pytest.mark.parametrize("name", [name for name in FILES if part_of(name) == "report"])
def test_the_report_does_not_know_the_paper_and_the_commands(name):
    assert not own_parts(FILES[name]) & {"cli", "paper", "__main__"}


def test_each_library_has_its_home():
    homes = {library: set() for library in HOMES}
    for name, path in FILES.items():
        for library in {target.split(".")[0] for target in imported(path)} & set(HOMES):
            homes[library].add(part_of(name))
    assert homes == HOMES


def test_only_one_file_uses_what_numba_does_not_document():
    public = ("numba.types", "numba.extending", "numba.njit")
    for name, path in FILES.items():
        if name != str(Path("_jit", "internals.py")):
            used = [target for target in imported(path) if target.startswith("numba.")]
            assert all(target.startswith(public) for target in used), name


def test_the_package_alone_imports_neither_report_nor_scikit_learn():
    script = "import sys, banditgrad; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "banditgrad.minimise" in loaded
    late = {"banditgrad.report", "banditgrad.linear_model", "sklearn", "matplotlib", "torch", "dask"}
    assert not (late | {"scipy.linalg", "scipy.optimize"}) & set(loaded)  # half a second of importing


def test_what_is_imported_late_can_be_had_from_the_package():
    from banditgrad.report.comparison import compare

    assert banditgrad.compare is compare
    assert banditgrad.linear_model.BanditClassifier.__name__ == "BanditClassifier"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = banditgrad.nothing
