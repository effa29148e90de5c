"""What is said in more than one file of the project is said alike."""

import re
import tomllib
from pathlib import Path

import banditgrad

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    assert re.search(r"^version: (.*)$", read("CITATION.cff"), re.M)[1] == banditgrad.__version__
    assert re.search(r"^## ([0-9.]+)", read("CHANGELOG.md"), re.M)[1] == banditgrad.__version__


def test_ci_tests_the_versions_of_python_that_are_claimed():
    claimed = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    matrix = re.search(r"python: \[(.*)\]", read(".github/workflows/ci.yml"))[1]
    assert re.findall(r"3\.\d+", matrix) == claimed
    assert PROJECT["requires-python"] == f">={claimed[0]}"


def test_make_tries_both_ends_of_the_range_of_numba():
    (bounds,) = (need for need in PROJECT["dependencies"] if need.startswith("numba"))
    oldest, newest = (
        re.search(rf"^NUMBA_{age} := 0\.(\d+)", read("Makefile"), re.M)[1] for age in ("oldest", "newest")
    )
    assert bounds == f"numba>=0.{oldest},<0.{int(newest) + 1}"


def test_types_are_for_users_too():
    assert Path(banditgrad.__file__).with_name("py.typed").is_file()
