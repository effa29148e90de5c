"""Methods that only some parameters allow, and that say why where they do not."""

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any


class _Available:
    def __init__(self, method: Callable[..., Any], check: Callable[[Any], Any]) -> None:
        functools.update_wrapper(self, method)  # type: ignore[arg-type]
        self.method, self.check = method, check

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        if estimator is None:
            return self.method
        self.check(estimator)
        return MethodType(self.method, estimator)


def available_if(check: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Any]:
    """As scikit-learn's, but that the AttributeError `check` raises is what the user reads, and not only its cause."""
    return lambda method: _Available(method, check)
