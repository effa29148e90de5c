"""What banditgrad uses of numba beyond its public API: all of it is in this file.

Each use has a way without it, taken where a version of numba lacks it: slower, and right. Which one is decided at
import by looking at what is there, not by compiling, which would take longer than all the rest of the import.
"""

import functools
import hashlib
import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import numba
from numba import types
from numba.extending import overload, overload_method


@functools.cache  # once, not for every kernel
def warn_once(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


# --- options of the compiler ------------------------------------------------------------------------------------------


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that this numba knows; none of them changes what is computed."""
    try:
        from numba.core.compiler import Flags
        from numba.core.registry import cpu_target

        parse = cpu_target.options.parse_as_flags
    except (ImportError, AttributeError):
        return {}
    known = {}
    for name, value in options.items():
        with suppress(KeyError):  # refused
            parse(Flags(), {name: value})
            known[name] = value
    return known


# "_nrt": False leaves out the reference counts of the arrays a part holds (the caller holds them anyway): a sampler's
# step takes 42 ns instead of 284. In return, compiled code cannot allocate: it writes into arrays it is given.
_COMMON = {"error_model": "numpy", **_known({"_nrt": False, "no_cfunc_wrapper": True})}
if "_nrt" not in _COMMON:
    warn_once(
        f"banditgrad is several times slower with numba {numba.__version__}, whose options it does not know. "
        "Install a version of numba that banditgrad asks for."
    )
KERNEL = {**_COMMON, "nogil": True}
HELPER = dict(_COMMON)
INLINE = {**HELPER, **_known({"forceinline": True})}


# --- helpers that only compiled code calls ----------------------------------------------------------------------------


def _seal(dispatcher: Any, message: str) -> None:
    """Calls from Python raise: the dispatcher finds no compiled code, and where it asks for some it is refused."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise TypeError(message)

    dispatcher._insert = lambda *args, **kwargs: None
    dispatcher._compile_for_args = refuse


def _can_seal() -> bool:
    """Whether a sealed helper raises, which needs no compiling to see."""
    probe = numba.njit(lambda: None)
    if not all(callable(getattr(probe, name, None)) for name in ("_insert", "_compile_for_args")):
        return False
    _seal(probe, "sealed")
    try:
        probe()
    except TypeError as error:
        return str(error) == "sealed"
    return False


_SEALED = _can_seal()
# A helper that Python cannot call needs no wrapper for it, and no machine code of its own: it is part of the kernels
# that call it, which are optimised as a whole. Kernels compile in half the time.
_BARE: dict[str, Any] = _known({"no_cpython_wrapper": True}) if _SEALED else {}
try:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, CompileResult

    used = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals", "get_pointer_to_function")
    if not (
        "no_cpython_wrapper" in _BARE
        and all(callable(getattr(JITCodeLibrary, name)) for name in used)
        and callable(CompileResult._find_referenced_environments)
    ):
        raise AttributeError
except (ImportError, AttributeError):
    pass
else:

    class _HelperLibrary(JITCodeLibrary):
        """LLVM's code of a helper as it was generated, for others to take in."""

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            return 0

        @property
        def codegen(self) -> Any:
            return self

        def set_env(self, name: str, environment: Any) -> None:
            """What a helper prints with: set in the kernel."""

    class _HelperCompiler(Compiler):
        def compile_extra(self, function: Callable[..., Any]) -> Any:
            self.state.library = _HelperLibrary(self.state.targetctx.codegen(), function.__qualname__)
            self.state.library.enable_object_caching()
            return super().compile_extra(function)

    class _KernelCompiler(Compiler):
        def compile_extra(self, function: Callable[..., Any]) -> Any:
            result = super().compile_extra(function)
            for environment in result._find_referenced_environments():
                result.library.codegen.set_env(environment.env_name, environment)
            return result

    _BARE["pipeline_class"] = _HelperCompiler
    KERNEL["pipeline_class"] = _KernelCompiler


def helper(function: Callable[..., Any], options: dict[str, Any], message: str) -> Any:
    """A function for compiled code; called from Python it raises a TypeError with the message, or where numba does not
    let us, is compiled and called like any other."""
    dispatcher = numba.njit(**options, **_BARE)(function)
    if _SEALED:
        _seal(dispatcher, message)
    return dispatcher


# --- methods of named tuples ------------------------------------------------------------------------------------------


@functools.cache
def _load_builtins() -> None:
    """Have numba register its own attributes first, among them the fields of named tuples: the first found is taken."""
    with suppress(ImportError, AttributeError):
        from numba.core.registry import cpu_target

        cpu_target.typing_context.refresh()


def add_method(name: str, resolve: Callable[..., Any]) -> None:
    """Make `part.name(...)` callable in compiled code, for named tuples of all types. resolve(type of the part, ...)
    is the plain function that does it, and has its signature."""
    options = {**INLINE, **_BARE}
    try:
        from numba.core.typing.templates import infer_getattr, make_overload_method_template

        # What overload_method does, except that a part's field of the same name comes first.
        template = make_overload_method_template(types.BaseNamedTuple, name, resolve, inline="never")
        find = template._resolve
        template._resolve = lambda self, part, attr: None if attr in part.fields else find(self, part, attr)
    except (ImportError, AttributeError, TypeError):
        _load_builtins()
        overload_method(types.BaseNamedTuple, name, inline="never", strict=False, jit_options=options)(resolve)
    else:
        infer_getattr(template)
        overload(resolve, strict=False, jit_options=options)(resolve)


# --- the cache on disk ------------------------------------------------------------------------------------------------

# Names of folders without compiled code, wherever they are: a change there leaves what is compiled as it is.
_PLAIN = ("cli", "paper", "report")


def _package_stamp() -> str:
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if name not in (*_PLAIN, "__pycache__"))
        for name in sorted(name for name in names if name.endswith(".py")):
            digest.update(name.encode() + Path(folder, name).read_bytes())
    return digest.hexdigest()[:16]


_STAMP = _package_stamp()

try:
    from numba.core.caching import FunctionCache, IndexDataCacheFile
    from numba.core.runtime import rtsys

    if not (callable(FunctionCache._load_overload) and callable(IndexDataCacheFile._data_name)):
        raise AttributeError
except (ImportError, AttributeError):
    # numba's own cache would keep a kernel whose loss was edited: without ours there is none.
    FunctionCache = IndexDataCacheFile = object
    _CAN_CACHE = False
else:
    _CAN_CACHE = True


class PackageFiles(IndexDataCacheFile):
    """numba's files of machine code, each with a name of its own.

    numba numbers them: two processes that compile one kernel for different parts at the same time take the same number,
    and the index may then lead to the other's code, which crashes.
    """

    def _data_name(self, number: int) -> str:
        return self._index_name.removesuffix(".nbi") + f".{uuid.uuid4().hex}.nbc"


class PackageCache(FunctionCache):
    """numba's disk cache, with files of their own for every state of the package's sources.

    A kernel's machine code contains the parts it was compiled with, yet numba only looks at the kernel's own file: it
    would keep a kernel whose loss was edited, and fail on an index that names a class which is no more. Files of other
    states go when the first new one is written.
    """

    _tidied: ClassVar[set[str]] = set()

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        name = f"{self._impl.filename_base}-{_STAMP}"
        self._cache_file = PackageFiles(self._cache_path, name, self._impl.locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As numba's, but for what it imports first to be ready to compile: 0.4 seconds in a new process, which machine
        code that is there already need not wait for. Where it is not there, the compiler imports it."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:  # the disk is full, for one
            warn_once(_NO_FOLDER)
            return
        if self._cache_path not in self._tidied:
            self._tidied.add(self._cache_path)
            for path in Path(self._cache_path).glob("*.nb[ic]"):
                if f"-{_STAMP}." not in path.name:
                    with suppress(OSError):  # another process was faster, or it is another user's
                        path.unlink()


def keep_on_disk(dispatcher: Any) -> None:
    """Let what the dispatcher compiles be found by later processes."""
    if not _CAN_CACHE or not hasattr(dispatcher, "_cache"):
        warn_once(_NO_CACHE)
        return
    try:
        dispatcher._cache = PackageCache(dispatcher.py_func)
    except RuntimeError:  # numba knows no folder that it can write to
        warn_once(_NO_FOLDER)
    except (AttributeError, TypeError):
        warn_once(_NO_CACHE)


_NO_FOLDER = (
    "banditgrad cannot keep its compiled code: there is no folder to write it to, or the disk is full. Every process "
    "will compile anew, which takes seconds. Set NUMBA_CACHE_DIR to a folder that can be written to."
)
_NO_CACHE = (
    f"banditgrad cannot keep its compiled code: it does not know the cache of numba {numba.__version__}. Every process "
    "will compile anew, which takes seconds. Install a version of numba that banditgrad asks for."
)


# --- when it compiles -------------------------------------------------------------------------------------------------


@contextmanager
def watch_compiler(begins: Callable[[], Any]) -> Iterator[Callable[[], float]]:
    """Calls `begins` when the compiler is first needed, not where its work is found on disk; yields a function that
    gives the seconds it has worked. Where numba does not tell, they are 0."""
    try:
        from numba.core.event import Listener, install_listener
    except ImportError:
        yield lambda: 0.0
        return

    class Watch(Listener):
        depth, since, seconds = 0, 0.0, 0.0

        def on_start(self, event: Any) -> None:
            if self.depth == 0:
                self.since = time.perf_counter()
                if self.seconds == 0.0:
                    begins()
            self.depth += 1

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                self.seconds += time.perf_counter() - self.since

    watch = Watch()
    with install_listener("numba:compile", watch):
        yield lambda: watch.seconds
