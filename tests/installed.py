"""What `make dist` runs with an installed wheel or sdist, away from the sources: small fits, a page, the command."""

import importlib.metadata
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np

import banditgrad as bg
from banditgrad.linear_model import BanditClassifier
from banditgrad.report import write_html

assert Path(bg.__file__).is_relative_to(sys.prefix), f"{bg.__file__} is not the installed package"
assert importlib.metadata.version("banditgrad") == bg.__version__
assert files("banditgrad").joinpath("py.typed").is_file()
X, y = bg.datasets.make_imbalanced(500, 20, seed=0)
assert BanditClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
problem = bg.Problem(X, y, bg.Logistic(), bg.L1(1e-3))
assert bg.minimise(problem, bg.Saga(), bg.Mabs(), passes=5, seed=0).value < problem.value(np.zeros(20))
found = bg.compare(problem, {"saga": bg.Saga()}, {"uniform": bg.Uniform()}, passes=2, seeds=1)
with tempfile.TemporaryDirectory() as folder:
    assert write_html(found.report("title", "summary", {}), Path(folder, "report.html")).stat().st_size > 10_000
subprocess.run([sys.executable, "-I", "-m", "banditgrad", "--help"], check=True, stdout=subprocess.DEVNULL)
print(f"banditgrad {bg.__version__} works as installed")
