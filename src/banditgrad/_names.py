"""Looking parts up by name, and showing values in messages."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np


def shown(value: Any) -> str:
    """A value as people write it: 'x', not np.str_('x')."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def look_up(role: str, name: Any, known: Mapping[str, Any], other: str = "") -> Any:
    """What is known by this name, or a ValueError that lists the names; `other` is what may be given instead of one."""
    if isinstance(name, str) and name in known:
        return known[name]
    names = ", ".join(f'"{each}"' for each in known)
    near = get_close_matches(name.lower(), known, 1) if isinstance(name, str) else []
    meant = f' Did you mean "{near[0]}"?' if near else ""
    raise ValueError(f"{role} must be one of {names}{f' or {other}' if other else ''}; got {shown(name)}.{meant}")


def is_number(word: str) -> bool:
    """Whether a word is one that `float` takes."""
    try:
        float(word)
    except ValueError:
        return False
    return True
