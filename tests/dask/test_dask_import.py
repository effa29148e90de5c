"""Dask is asked for by banditgrad.dask alone."""

import subprocess
import sys

import pytest

WITHOUT_DASK = """
import sys
sys.modules["dask"] = None  # import dask now fails as if it were not installed
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_banditgrad_does_not_import_dask():
    done = run("import banditgrad, sys; assert 'dask' not in sys.modules; print('fine')")
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize("statement", ["import banditgrad.dask"])
def test_without_dask_the_error_says_what_to_install(statement):
    done = run(WITHOUT_DASK + "import banditgrad\n" + statement)
    assert 'pip install "banditgrad[dask]"' in done.stderr
