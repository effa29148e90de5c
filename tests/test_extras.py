"""Extras are asked for by their own subpackage alone, and an absent one is told with the command that installs it."""

import subprocess
import sys

import pytest

EXTRAS = ["dask", "torch"]


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("extra", EXTRAS)
def test_importing_banditgrad_does_not_import_it(extra):
    done = run(f"import banditgrad, sys; assert {extra!r} not in sys.modules; print('fine')")
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize("extra", EXTRAS)
def test_without_it_the_error_says_what_to_install(extra):
    # With None there, the import fails as if it were not installed.
    done = run(f"import sys; sys.modules[{extra!r}] = None\nimport banditgrad\nimport banditgrad.{extra}")
    assert f'pip install "banditgrad[{extra}]"' in done.stderr
