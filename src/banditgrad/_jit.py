"""How a part becomes compiled code: the only file that knows numba's extension API.

A *part* (a loss, a penalty, a sampler's state, ...) is a ``NamedTuple`` with plain methods. `bridge` makes the
methods of a protocol callable inside compiled code, where they are inlined; `kernel` compiles a loop that takes parts.
"""

import functools
import hashlib
import inspect
import os
import re
import uuid
import warnings
from collections.abc import Callable
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import numba
from llvmlite import ir
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.errors import NumbaError
from numba.core.runtime import rtsys
from numba.core.typing.templates import infer_getattr, make_overload_method_template
from numba.extending import intrinsic, overload

if numba.config.DISABLE_JIT:
    raise ImportError("banditgrad only runs compiled, which NUMBA_DISABLE_JIT forbids. Unset it.")

# "_nrt": False leaves out the reference counts of the arrays a part holds (the caller holds them anyway): a sampler's
# step takes 42 ns instead of 284. In return, compiled code cannot allocate: it writes into arrays it is given.
_COMMON = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
_KERNEL = {**_COMMON, "nogil": True}
_HELPER = {**_COMMON, "no_cpython_wrapper": True}  # only compiled code calls it: a fifth less to compile
_INLINE = {**_HELPER, "forceinline": True}


def bridge(protocol: type) -> type:
    """Class decorator: every public method of `protocol` becomes callable on any NamedTuple in compiled code.

    Method names are global (numba knows no protocols), so two protocols may share a name only with one signature.
    """
    for name, method in vars(protocol).items():
        if not name.startswith("_") and inspect.isfunction(method):
            _bridge_method(name, inspect.signature(method), method if method in _defaults else None)
    return protocol


_defaults: set[Any] = set()


def default(method: Any) -> Any:
    """Method decorator: what a protocol does for parts that do not offer this method themselves."""
    _defaults.add(method)
    return method


def part(cls: Any) -> Any:
    """Class decorator for banditgrad's own parts: whole numbers become floats (numba would compile twice), then the
    part's `validate`, if it has one, looks at them."""
    make = cls.__new__

    @functools.wraps(make)
    def __new__(kind: Any, *args: Any, **kwargs: Any) -> Any:
        self = _with_floats(kind, make(kind, *args, **kwargs))
        if hasattr(self, "validate"):
            self.validate()
        return self

    cls.__new__ = __new__
    return cls


def _with_floats(kind: Any, values: Any) -> Any:
    return tuple.__new__(kind, (float(v) if isinstance(v, Real) and not isinstance(v, bool) else v for v in values))


def check_part(value: Any, protocol: type, role: str, *, also: tuple[str, ...] = (), floats: bool = True) -> Any:
    """`value` if it has the fields and methods that compiled code will ask for; numba's own errors are unreadable.

    `also` names methods that only Python asks for; with `floats`, numbers become floats.
    """
    optional = [name for name in vars(protocol) if name in _signatures and vars(protocol)[name] in _defaults]
    methods = [name for name in vars(protocol) if name in _signatures and name not in optional]
    who = value.__name__ if isinstance(value, type) else type(value).__name__
    if isinstance(value, type) or not (isinstance(value, tuple) and getattr(value, "_fields", None)):
        remedy = f"an instance, {who}(...)" if isinstance(value, type) else "a NamedTuple with at least one field"
        raise TypeError(f"{role} must be {remedy}, with the methods {', '.join(methods)}; got {value!r}.")
    for name in methods + [name for name in optional if hasattr(type(value), name)]:
        method = inspect.getattr_static(type(value), name, None)
        if method is None:
            raise TypeError(f"{role}: {who} has no method {name}{_bare(_signatures[name])}.")
        if not inspect.isfunction(method) or _parameters(method) != list(_signatures[name].parameters):
            raise TypeError(f"{role}: {who}.{name} must be a plain method {name}{_bare(_signatures[name])}.")
    for name in also:
        if not callable(getattr(value, name, None)):
            raise TypeError(f"{role}: {who} has no method {name}(self).")
    return _with_floats(type(value), value) if floats else value


@functools.lru_cache(maxsize=1024)  # it takes as long as a look at a thousand rows
def _parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def _bare(signature: inspect.Signature) -> str:
    return f"({', '.join(signature.parameters)})"


_signatures: dict[str, inspect.Signature] = {}


def _bridge_method(name: str, signature: inspect.Signature, otherwise: Any) -> None:
    shape = list(signature.parameters)
    if name in _signatures:
        assert list(_signatures[name].parameters) == shape, f"two protocols declare {name}() differently"
        return
    _signatures[name] = signature

    def resolve(part: Any, *_: Any) -> Any:
        return getattr(part.instance_class, name, otherwise)

    resolve.__signature__ = signature.replace(return_annotation=inspect.Signature.empty)  # type: ignore[attr-defined]
    # What numba.extending.overload_method does, except that a part's field of the same name comes first.
    template = make_overload_method_template(types.BaseNamedTuple, name, resolve, inline="never")  # type: ignore[attr-defined]
    find_method = template._resolve
    template._resolve = lambda self, part, attr: None if attr in part.fields else find_method(self, part, attr)
    infer_getattr(template)
    overload(resolve, strict=False, jit_options=_INLINE)(resolve)


def inline(function: Callable[..., Any]) -> Any:
    """Compile a small helper so that it is inlined wherever kernels and parts call it."""
    return _helper(function, _INLINE)


def inline_sum(function: Callable[..., Any]) -> Any:
    """As `inline`, for sums that may be reordered, so that they use vector instructions."""
    return _helper(function, {**_INLINE, "fastmath": {"reassoc", "contract"}})


def outline(function: Callable[..., Any]) -> Any:
    """Compile a helper that is called rarely: kept out of the loops, which compile faster for it."""
    return _helper(function, _HELPER)


def _helper(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise TypeError(
            f"{function.__name__} can only be called from compiled code: call it in a function that is a `kernel`. "
            f"{function.__name__}.py_func is the plain function."
        )

    helper = numba.njit(**options)(function)
    helper._insert = lambda *args, **kwargs: None  # Python must not find what has no wrapper for it,
    helper._compile_for_args = refuse  # and asks for it here
    return helper


# Names of folders without compiled code, wherever they are: a change there leaves what is compiled as it is.
_PLAIN = ("cli", "paper", "report")


def _package_stamp() -> str:
    digest, package = hashlib.sha256(), Path(__file__).parent
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if name not in (*_PLAIN, "__pycache__"))
        for name in sorted(name for name in names if name.endswith(".py")):
            digest.update(name.encode() + Path(folder, name).read_bytes())
    return digest.hexdigest()[:16]


_STAMP = _package_stamp()


class _PackageFiles(IndexDataCacheFile):
    """numba's files of machine code, each with a name of its own.

    numba numbers them: two processes that compile one kernel for different parts at the same time take the same number,
    and the index may then lead to the other's code, which crashes.
    """

    def _data_name(self, number: int) -> str:
        return self._index_name.removesuffix(".nbi") + f".{uuid.uuid4().hex}.nbc"


class _PackageCache(FunctionCache):
    """numba's disk cache, with files of their own for every state of the package's sources.

    A kernel's machine code contains the parts it was compiled with, yet numba only looks at the kernel's own file: it
    would keep a kernel whose loss was edited, and fail on an index that names a class which is no more. Files of other
    states go when the first new one is written.
    """

    _tidied: ClassVar[set[str]] = set()

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        name = f"{self._impl.filename_base}-{_STAMP}"
        self._cache_file = _PackageFiles(self._cache_path, name, self._impl.locator.get_source_stamp())

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
            _warn_of_no_cache()
            return
        if self._cache_path not in self._tidied:
            self._tidied.add(self._cache_path)
            for path in Path(self._cache_path).glob("*.nb[ic]"):
                if f"-{_STAMP}." not in path.name:
                    with suppress(OSError):  # another process was faster, or it is another user's
                        path.unlink()


def _cache_of(function: Callable[..., Any]) -> Any:
    try:
        return _PackageCache(function)
    except RuntimeError:  # numba knows no folder that it can write to
        _warn_of_no_cache()
        return NullCache()


@functools.cache  # once, not for every kernel
def _warn_of_no_cache() -> None:
    warnings.warn(
        "banditgrad cannot keep its compiled code: there is no folder to write it to, or no room. It will compile in "
        "every process anew, which takes seconds. Set NUMBA_CACHE_DIR to a folder that can be written to.",
        RuntimeWarning,
        stacklevel=2,
    )


class Kernel:
    """A compiled function of parts and arrays; made by the decorator `kernel`.

    Calls that involve only banditgrad's parts share one dispatcher with a disk cache. A call that involves a user's
    class goes to a private, uncached twin: numba identifies a NamedTuple by its name and fields alone, and a cache
    entry that has seen a user's class cannot be read by a process that cannot import it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.dispatcher = numba.njit(**_KERNEL)(function)
        if function.__module__.startswith("banditgrad."):  # a user's kernel may use globals that the cache cannot see
            self.dispatcher._cache = _cache_of(function)
        self.twins: dict[tuple[type, ...], Any] = {}

    def __call__(self, *args: Any) -> Any:
        foreign = tuple(dict.fromkeys(_foreign_classes(args)))
        if not foreign:
            return self.dispatcher(*args)
        if foreign not in self.twins:
            self.twins[foreign] = numba.njit(**_KERNEL)(self.py_func)
        try:
            return self.twins[foreign](*args)
        except NumbaError as error:
            names = " or ".join(kind.__name__ for kind in foreign)
            raise TypeError(f"{names} does not compile in {self.__name__}: {_innermost(error)}") from error


def _innermost(error: NumbaError) -> str:
    """What numba says went wrong, without its tour through the layers in between."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()]
    useful = [line for line in lines if line.startswith(_TELLING)]
    where = [line for line in lines if line.startswith("File ") and "banditgrad" not in line.split(",")[0]]
    return " ".join((useful or lines)[-1:] + where[-1:])


_TELLING = (
    "Unknown attribute",
    "NameError",
    "Untyped global name",
    "Cannot",
    "Use of unsupported",
    "unsupported",
    "No impl",
)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a loop over parts: cached on disk, without the GIL, safe for classes defined in a user's own file."""
    return Kernel(function)


def _foreign_classes(args: Any) -> Any:
    for value in args:
        if isinstance(value, tuple):
            if hasattr(value, "_fields") and not type(value).__module__.startswith("banditgrad."):
                yield type(value)
            yield from _foreign_classes(value)


# --- machine instructions that numba has no name for ------------------------------------------------------------------


@intrinsic
def multiply_high(typingctx: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of the 128-bit product of two uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def float_bits(typingctx: Any, x: Any) -> Any:
    """The bits of a float64 as an int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def bits_float(typingctx: Any, bits: Any) -> Any:
    """The float64 that has the given bits (int64)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask the processor to bring array[index], or the start of that row, into its cache; no effect on results.

    What is read-only is asked for such that it may stay in the caches of other processors, too.
    """
    writes = int(array.mutable)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = context.make_array(signature.args[0])(context, builder, args[0])
        base = builder.bitcast(parts.data, ir.IntType(8).as_pointer())
        if array.ndim == 1 and array.is_c_contig:  # a constant: the multiplication is a shift
            stride = ir.Constant(ir.IntType(64), context.get_abi_sizeof(context.get_data_type(array.dtype)))
        else:
            stride = builder.extract_value(parts.strides, 0)
        address = builder.gep(base, [builder.mul(args[1], stride)])
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, i32, i32, i32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(function, [address, ir.Constant(i32, writes), ir.Constant(i32, 3), ir.Constant(i32, 1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen
