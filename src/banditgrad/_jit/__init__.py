"""How a part becomes compiled code.

A *part* (a loss, a penalty, a sampler's state, ...) is a ``NamedTuple`` with plain methods. `bridge` makes the
methods of a protocol callable inside compiled code, where they are inlined; `kernel` compiles a loop that takes parts.

No other folder knows numba. What is not in its public API is in `internals`, the machine instructions that it has no
name for are in `instructions`.
"""

import functools
import inspect
import re
from collections.abc import Callable
from numbers import Real
from typing import Any

import numba
import numpy as np

if numba.config.DISABLE_JIT:
    raise ImportError("banditgrad only runs compiled, which NUMBA_DISABLE_JIT forbids. Unset it.")

from banditgrad._jit import internals
from banditgrad._jit.instructions import bits_float, float_bits, multiply_high, prefetch
from banditgrad._jit.internals import watch_compiler

__all__ = [
    "Kernel",
    "bits_float",
    "bridge",
    "check_part",
    "compile_once",
    "default",
    "float_bits",
    "inline",
    "inline_sum",
    "kernel",
    "multiply_high",
    "outline",
    "part",
    "prefetch",
    "watch_compiler",
]


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
    """Class decorator for banditgrad's own parts: whole numbers become floats (numba would compile twice), the part's
    `prepared`, if it has one, makes arrays of what else was given, and its `validate` looks at them."""
    make = cls.__new__

    @functools.wraps(make)
    def __new__(kind: Any, *args: Any, **kwargs: Any) -> Any:
        self = _with_floats(kind, make(kind, *args, **kwargs))
        if hasattr(self, "prepared"):
            self = self.prepared()
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
    if (type(value), protocol) not in _checked:
        _check_class(value, protocol, role)
        _checked.add((type(value), protocol))
    for name in also:
        if not callable(getattr(value, name, None)):
            raise TypeError(f"{role}: {type(value).__name__} has no method {name}(self).")
    return _with_floats(type(value), value) if floats else value


_checked: set[tuple[type, type]] = set()  # classes of parts and protocols: a check costs as much as a small fit


def _check_class(value: Any, protocol: type, role: str) -> None:
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
    internals.add_method(name, resolve)


def inline(function: Callable[..., Any]) -> Any:
    """Compile a small helper so that it is inlined wherever kernels and parts call it."""
    return _helper(function, internals.INLINE)


def inline_sum(function: Callable[..., Any]) -> Any:
    """As `inline`, for sums that may be reordered, so that they use vector instructions."""
    return _helper(function, {**internals.INLINE, "fastmath": {"reassoc", "contract"}})


def outline(function: Callable[..., Any]) -> Any:
    """Compile a helper that is called rarely: kept out of the loops, which compile faster for it."""
    return _helper(function, internals.HELPER)


def _helper(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    name = function.__name__
    message = f"{name} can only be called from compiled code: call it in a function that is a `kernel`. "
    return internals.helper(function, options, message + f"{name}.py_func is the plain function.")


class Kernel:
    """A compiled function of parts and arrays; made by the decorator `kernel`.

    Calls that involve only banditgrad's parts share one dispatcher with a disk cache. A call that involves a user's
    class goes to a private, uncached twin: numba identifies a NamedTuple by its name and fields alone, and a cache
    entry that has seen a user's class cannot be read by a process that cannot import it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.dispatcher = numba.njit(**internals.KERNEL)(function)
        if function.__module__.startswith("banditgrad."):  # a user's kernel may use globals that the cache cannot see
            internals.keep_on_disk(self.dispatcher)
        self.twins: dict[tuple[type, ...], Any] = {}

    def __call__(self, *args: Any) -> Any:
        found = _foreign_classes(args)
        if not found:
            return self.dispatcher(*args)
        foreign = tuple(dict.fromkeys(found))
        if foreign not in self.twins:
            self.twins[foreign] = numba.njit(**internals.KERNEL)(self.py_func)
        try:
            return self.twins[foreign](*args)
        except numba.NumbaError as error:
            names = " or ".join(kind.__name__ for kind in foreign)
            raise TypeError(f"{names} does not compile in {self.__name__}: {_innermost(error)}") from error

    def chosen(self, *parts: Any) -> Callable[..., Any]:
        """What to call with these parts, chosen once: for calls so short that choosing is a good part of them."""
        return self if _foreign_classes(parts) else self.dispatcher


def _innermost(error: Exception) -> str:
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


def _foreign_classes(values: Any) -> list[type]:
    """Classes of users' own among the parts and the parts of parts: quick, as every call of a kernel asks."""
    found: list[type] = []
    _find_foreign(values, found)
    return found


def _find_foreign(values: Any, found: list[type]) -> None:
    for value in values:
        if isinstance(value, tuple):
            kind = type(value)
            if kind not in _ours:
                if kind.__module__.startswith("banditgrad.") or not hasattr(value, "_fields"):
                    _ours.add(kind)
                else:
                    found.append(kind)
            _find_foreign(value, found)


_ours: set[type] = {tuple}


def compile_once(work: Callable[..., Any], deciding: Any, *args: Any) -> None:
    """work(*args), which calls kernels so that they are compiled, unless that was done: it takes as long as a fit.

    `deciding` are all parts and arrays they are compiled for, and classes and bools that decide which are called."""
    key = (work.__module__, work.__qualname__, _types(deciding))
    if key not in _compiled:
        work(*args)
        _compiled.add(key)


_compiled: set[Any] = set()


def _types(value: Any) -> Any:
    """What numba tells types by."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num
    if isinstance(value, tuple):
        return (type(value), *map(_types, value))
    return value if isinstance(value, (type, bool)) else type(value)
