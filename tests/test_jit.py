"""Parts as compiled code: users' own parts, redefinitions, the cache across processes."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import pytest
import scipy.sparse as sp
from numba.core.caching import FunctionCache

import banditgrad as bg
from banditgrad._jit import (
    Kernel,
    bridge,
    check_part,
    compile_once,
    default,
    inline,
    inline_sum,
    kernel,
    outline,
)
from banditgrad._jit.internals import PackageFiles, warn_once
from banditgrad.losses import Loss
from banditgrad.rows import Dense, squared_norms
from banditgrad.samplers.base import SamplerState
from iterates import last_iterate


class Pseudo(NamedTuple):
    """A user's loss: √(1 + r²) - 1, with a field that is called like a method of other parts."""

    weight: float = 1.0

    def value(self, z, y):
        return self.weight * ((1.0 + (z - y) ** 2) ** 0.5 - 1.0)

    def derivative(self, z, y):
        return self.weight * (z - y) / (1.0 + (z - y) ** 2) ** 0.5

    def curvature(self):
        return self.weight

    def slope_bound(self):
        return self.weight


class Box(NamedTuple):
    """A user's penalty without a closed form for many steps: the indicator of [-bound, bound]."""

    bound: float

    def cost(self, w, j):
        return 0.0 if abs(w) <= self.bound else np.inf

    def prox(self, w, step, j):
        return min(max(w, -self.bound), self.bound)

    def subgradient(self, w, j):
        return 0.0


class AlternateState(NamedTuple):
    turn: np.ndarray
    size: int

    def draw(self):
        self.turn[0] = (self.turn[0] + 1) % self.size
        return self.turn[0]

    def probability(self, i):
        return 1.0 / self.size

    def update(self, i, p_i, a_i):
        self.turn[1] += 1


class Alternate(bg.Sampler):
    """A user's sampler: one after the other."""

    def state(self, setup):
        return AlternateState(np.array([-1, 0]), setup.n)


def test_a_users_own_parts_run_in_compiled_loops(small_data):
    X, _ = small_data
    y = X @ np.ones(X.shape[1])
    problem = bg.Problem(X, y, Pseudo(2), Box(0.5))
    result = bg.minimise(problem, bg.ProxSgd(0.02), Alternate(), passes=100)
    assert abs(result.w).max() == 0.5
    assert result.value < problem.value(np.zeros(X.shape[1]))
    assert result.sampling.state.turn.tolist() == [0, 100 * X.shape[0] - 1]  # a block is one row here
    w = np.zeros(X.shape[1])
    for i in list(range(len(y))) * 100:
        w = np.clip(w - 0.02 * Pseudo(2.0).derivative(X[i] @ w, y[i]) * X[i], -0.5, 0.5)
    np.testing.assert_allclose(last_iterate(problem, bg.ProxSgd(0.02), Alternate(), passes=100), w, atol=1e-12)


def test_a_mistake_in_a_users_part_is_told_in_one_line(rng):
    class Typo(NamedTuple):
        scale: float = 1.0

        def value(self, z, y):
            return self.scael * z

        def derivative(self, z, y):
            return self.scale

        def curvature(self):
            return 1.0

        def slope_bound(self):
            return 1.0

    problem = bg.Problem(rng.standard_normal((5, 2)), np.ones(5), Typo())
    with pytest.raises(TypeError, match=r"Typo does not compile in _mean_term: .*scael"):
        problem.value(np.zeros(2))


def test_a_subclass_that_changes_prox_has_no_closed_form(rng):
    class NonNegativeL1(bg.L1):
        def prox(self, w, step, j):
            return max(w - step * self.strength, 0.0)

    X = rng.standard_normal((50, 3))
    for form in (X, sp.csr_array(X)):
        problem = bg.Problem(form, -X[:, 0], bg.Squared(), NonNegativeL1(0.01))
        assert problem.shrinkage is None
        assert bg.minimise(problem, bg.ProxSgd(0.02), passes=20, seed=0).w.min() >= 0.0


def test_a_users_kernel_sees_its_globals_anew(tmp_path):
    """It is not cached: numba's key knows nothing of globals."""
    (tmp_path / "main.py").write_text(
        "import banditgrad as bg, numpy as np\nfrom config import ALPHA\n"
        "@bg.kernel\ndef f(out):\n    out[0] = ALPHA\n"
        "out = np.zeros(1); f(out); print(out[0])\n"
    )
    for value in ("1.0", "2.0"):
        (tmp_path / "config.py").write_text(f"ALPHA = {value}\n")
        script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.dont_write_bytecode = True; import main"
        assert run_script(script, tmp_path / "cache") == [value]


def test_a_redefined_class_is_compiled_anew(rng):
    """As when a notebook cell is run again: same name, same fields, other code."""
    X, y = rng.standard_normal((20, 3)), np.ones(20)
    values = []
    for factor in (1.0, 3.0):
        scope: dict = {"NamedTuple": NamedTuple, "FACTOR": factor}
        exec(
            textwrap.dedent("""
            class Squared(NamedTuple):
                scale: float = 1.0
                def value(self, z, y): return FACTOR * (z - y) ** 2
                def derivative(self, z, y): return 2.0 * FACTOR * (z - y)
                def curvature(self): return 2.0 * FACTOR
                def slope_bound(self): return float("inf")
            """),
            scope,
        )
        problem = bg.Problem(X, y, scope["Squared"]())
        values.append(problem.value(np.ones(3)))
        assert values[-1] == pytest.approx(factor * np.mean((X.sum(axis=1) - 1.0) ** 2))
        one_step = last_iterate(problem, bg.Sgd(0.1), bg.Replay([4]), passes=1 / 20)
        np.testing.assert_allclose(one_step, 0.2 * factor * X[4])
    ours = bg.Problem(X, y, bg.Squared()).value(np.ones(3))
    assert ours == pytest.approx(0.5 * np.mean((X.sum(axis=1) - 1.0) ** 2))


def test_a_part_that_lacks_something_gets_a_readable_error():
    class NoDerivative(NamedTuple):
        scale: float = 1.0

        def value(self, z, y):
            return z

    class WrongSignature(NamedTuple):
        scale: float = 1.0

        def value(self, z):
            return z

        def derivative(self, z, y):
            return z

    class NoField(NamedTuple):
        def value(self, z, y):
            return z

    with pytest.raises(TypeError, match=r"NoDerivative has no method derivative\(self, z, y\)"):
        check_part(NoDerivative(), Loss, "loss")
    with pytest.raises(TypeError, match=r"WrongSignature.value must be a plain method value\(self, z, y\)"):
        check_part(WrongSignature(), Loss, "loss")
    with pytest.raises(TypeError, match="at least one field"):
        check_part(NoField(), Loss, "loss")
    with pytest.raises(TypeError, match=r"an instance, Logistic\(...\)"):
        check_part(bg.Logistic, Loss, "loss")
    with pytest.raises(TypeError, match="loss must be a NamedTuple"):
        check_part("logistic", Loss, "loss")
    with pytest.raises(TypeError, match="draw, probability, update"):
        check_part(3, SamplerState, "state")


@inline
def _thrice(x):
    return 3.0 * x


@kernel
def _thrice_all(x):
    for k in range(x.size):
        x[k] = _thrice(x[k])


@pytest.mark.parametrize("decorator", [inline, inline_sum, outline])
def test_python_cannot_call_a_helper_by_mistake(decorator):
    """It would run as plain Python, a hundred times slower."""
    x = np.ones(2)
    _thrice_all(x)
    assert x.tolist() == [3.0, 3.0]
    for helper in (_thrice, decorator(_thrice.py_func)):  # compiled already, and not yet
        with pytest.raises(TypeError, match=r"_thrice can only be called from compiled code: .*kernel"):
            helper(2.0)
        assert helper.py_func(2.0) == 6.0


def test_whole_numbers_do_not_compile_twice():
    assert check_part(Pseudo(2), Loss, "loss").weight.__class__ is float


SCRIPT = """
import sys, numpy as np, banditgrad as bg
from banditgrad.solvers import prox_sgd
rng = np.random.default_rng(0)
problem = bg.Problem(rng.standard_normal((50, 4)), np.ones(50), bg.Huber(), bg.L1(0.01))
for _ in range(2):
    w = bg.minimise(problem, bg.ProxSgd(0.01), bg.Uniform(), passes=3, seed=0).w
kernel = prox_sgd._prox_sgd.dispatcher
hits, misses = kernel.stats.cache_hits, kernel.stats.cache_misses
print(len(kernel.signatures), sum(hits.values()), sum(misses.values()), w.tobytes().hex())
print("numba.np.linalg" in sys.modules)
"""


def copy_package(folder):
    package = Path(bg.__file__).parent
    shutil.copytree(package, folder / "banditgrad", ignore=shutil.ignore_patterns("__pycache__"))


def run(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **environment}
    )


def run_script(script, cache):
    done = run(script, NUMBA_CACHE_DIR=str(cache))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A cache in which the script's loops are, and what it said when it compiled them."""
    folder = tmp_path_factory.mktemp("compiled")
    return folder, run_script(SCRIPT, folder)


def test_a_second_process_hits_the_cache_and_a_second_call_does_not_recompile(compiled):
    first, second = compiled[1], run_script(SCRIPT, compiled[0])
    assert first[:3] == ["1", "0", "1"]
    assert second[:3] == ["1", "1", "0"]
    assert first[3] == second[3]
    assert (first[4], second[4]) == ("True", "False")  # what numba needs to compile was not imported


def test_kernels_of_other_states_of_the_sources_are_removed(compiled, tmp_path):
    shutil.copytree(compiled[0], tmp_path, dirs_exist_ok=True)
    (folder,) = {path.parent for path in tmp_path.rglob("prox_sgd*.nbi")}
    for path in folder.iterdir():
        path.rename(folder / re.sub("-[0-9a-f]{16}[.]", "-0123456789abcdef.", path.name))
    run_script(SCRIPT, tmp_path)
    assert list(folder.glob("prox_sgd*.nbi"))
    assert not list(folder.glob("*-0123456789abcdef.*"))


@bridge
class Greeter(Protocol):
    """Has what Python from 3.12 on puts into every protocol: an attribute without a hash."""

    habits: ClassVar[dict[str, str]] = {}

    def greeting(self):
        """What to say."""

    @default
    def farewell(self):
        """Optional."""
        return 0.0


def test_a_protocols_other_attributes_are_not_asked_for():
    class Silent(NamedTuple):
        volume: float = 0.0

    class Polite(Silent):
        def greeting(self):
            return 1.0

    check_part(Polite(), Greeter, "greeter")
    with pytest.raises(TypeError, match=re.escape("no method greeting(self)")):
        check_part(Silent(), Greeter, "greeter")


def test_processes_that_compile_at_the_same_time_do_not_mix_up_their_code(tmp_path, monkeypatch):
    """The order of events in which numba's own files would give one the other's machine code: a crash."""
    one, other, later = (PackageFiles(str(tmp_path), "kernel-stamp", "source") for _ in range(3))
    monkeypatch.setattr(other, "_load_index", dict)  # read before the first wrote its own
    save_data = one._save_data

    def save_after_the_other(name, data):
        other.save("its parts", "its code")
        save_data(name, data)

    monkeypatch.setattr(one, "_save_data", save_after_the_other)
    one.save("my parts", "my code")
    assert later.load("its parts") == "its code"
    assert later.load("my parts") in ("my code", None)  # None: it compiles again


def test_a_users_class_leaves_no_trace_in_the_cache(compiled, tmp_path):
    """A kernel that has met a user's class must still load where that class does not exist."""
    foreign = """
class Huber(__import__("typing").NamedTuple):
    delta: float = 1.0
    def value(self, z, y): return 0.25 * (z - y) ** 2
    def derivative(self, z, y): return 0.5 * (z - y)
    def curvature(self): return 1.0
    def slope_bound(self): return float("inf")
"""
    ours = compiled[1]
    theirs = run_script(foreign + SCRIPT.replace("bg.Huber()", "Huber()"), tmp_path)
    after = run_script(SCRIPT, tmp_path)
    assert theirs[0] == "0"  # the shared dispatcher was not used
    assert theirs[3] != ours[3] == after[3]


def test_the_cache_is_stale_when_any_source_changes(tmp_path):
    """numba alone would keep a kernel whose loss, in another file, was edited, and fail on a class that is no more."""
    copy_package(tmp_path)
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + SCRIPT
    before = run_script(script, tmp_path / "cache")
    losses = tmp_path / "banditgrad" / "losses" / "regression.py"
    text = losses.read_text()
    losses.write_text(text.replace("min(max(z - y, -self.delta), self.delta)", "0.5 * (z - y)"))
    assert losses.read_text() != text
    penalties = tmp_path / "banditgrad" / "penalties" / "separable.py"
    penalties.write_text(penalties.read_text().replace("class L1", "class Lasso") + "\n\nL1 = Lasso\n")
    after = run_script(script, tmp_path / "cache")
    assert after[:3] == ["1", "0", "1"]
    assert before[3] != after[3]


def test_without_a_place_for_the_cache_it_compiles_and_says_so_once(tmp_path):
    """As in a container that is read-only; files where folders should be keep out root as well."""
    copy_package(tmp_path)
    for folder in {path.parent for path in tmp_path.rglob("*.py")}:
        (folder / "__pycache__").touch()
    script = "import banditgrad as bg; print(bg.__file__, bg.Problem([[3.0], [4.0]], [1, -1]).smoothness)"
    nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache", "NUMBA_CACHE_DIR": "/dev/null/numba"}
    done = run(script, **nowhere, PYTHONPATH=str(tmp_path))
    assert done.stdout.split(maxsplit=1) == [str(tmp_path / "banditgrad" / "__init__.py"), "[2.25 4.  ]\n"], done.stderr
    assert done.stderr.count("Set NUMBA_CACHE_DIR") == 1


def test_a_full_disk_only_costs_the_cache(monkeypatch):
    def fail(*args):
        raise OSError("No space left on device")

    warn_once.cache_clear()
    monkeypatch.setattr(FunctionCache, "save_overload", fail)
    fresh = Kernel(squared_norms.py_func)
    monkeypatch.setattr(fresh.dispatcher._cache, "load_overload", lambda *args: None)
    out = np.zeros(1)
    with pytest.warns(RuntimeWarning, match="Set NUMBA_CACHE_DIR"):
        fresh(Dense(np.full((1, 2), 2.0), 0.0), out)
    assert out == 8.0


def test_without_a_compiler_there_is_one_sentence():
    done = run("import banditgrad", NUMBA_DISABLE_JIT="1")
    assert done.stderr.splitlines()[-1].startswith("ImportError: banditgrad only runs compiled")


def test_a_numba_without_the_internals_gives_the_same_bits_and_a_warning(tmp_path):
    """As a later version might be: with other options, another cache, other templates of methods."""
    fit = """
import numpy as np, banditgrad as bg
from test_jit import Pseudo
X = np.random.default_rng(0).standard_normal((50, 4))
for loss in (bg.Huber(), Pseudo()):
    print(np.float64(bg.Problem(X, np.ones(50), loss, bg.L1(0.01)).value(np.ones(4))).hex())
"""
    hide = """
import sys
from numba.core import caching, compiler
from numba.core.typing import templates
make = templates.make_overload_method_template
def refuse(*args, **kwargs):
    if sys._getframe(1).f_globals["__name__"].startswith("banditgrad"):
        raise TypeError
    return make(*args, **kwargs)
flags, templates.make_overload_method_template = compiler.Flags, refuse
del caching.IndexDataCacheFile._data_name, compiler.Flags
import banditgrad._jit
compiler.Flags = flags
"""
    path = {"PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))}
    usual = run(fit, NUMBA_CACHE_DIR=str(tmp_path), **path)
    other = run(hide + fit, NUMBA_CACHE_DIR=str(tmp_path / "other"), **path)
    assert usual.stderr == ""
    assert other.stdout == usual.stdout != ""
    for words in ("several times slower with numba", "does not know the cache of numba"):
        assert other.stderr.count(words) == 1
    assert not list((tmp_path / "other").rglob("*.nbc"))


def test_what_was_compiled_is_called_again_only_for_other_types():
    done, numbers = [], np.zeros(3)

    def work(k):
        if k == 0:
            raise KeyboardInterrupt
        done.append(k)

    with pytest.raises(KeyboardInterrupt):
        compile_once(work, (numbers, bg.Logistic(), True), 0)
    compile_once(work, (numbers, bg.Logistic(), True), 1)  # what was not finished is not counted
    compile_once(work, (np.ones(5), bg.Logistic(2.0), True), 2)
    assert done == [1]
    read_only, single = numbers.view(), numbers.astype(np.float32)
    read_only.flags.writeable = False
    for k, values in enumerate(((read_only, bg.Logistic()), (single, bg.Logistic()), (numbers, bg.Hinge()))):
        compile_once(work, (*values, True), k + 3)
    compile_once(work, (numbers, bg.Logistic(), False), 6)
    assert done == [1, 3, 4, 5, 6]
