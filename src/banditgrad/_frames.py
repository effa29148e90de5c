"""Results as pandas frames."""

from collections.abc import Mapping
from typing import Any


def as_frame(columns: Mapping[str, Any], index: Any = None) -> Any:
    """A pandas DataFrame of these columns; pandas is imported where one is asked for."""
    import pandas as pd

    return pd.DataFrame(dict(columns), index=index)
