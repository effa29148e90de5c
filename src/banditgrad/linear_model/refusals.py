"""What is wrong with data that scikit-learn refuses: which column, which row, and what to do."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from banditgrad._names import is_number


def refuse_words(who: str, y: Any) -> None:
    word = _first_word(y)
    if word is not None:
        raise ValueError(f"{who}: y must hold numbers, got {word!r}. For classes take BanditClassifier.")


def what_is_wrong(who: str, X: Any) -> str | None:
    """Words on words and on numbers that are not finite; None where scikit-learn's own say all there is to say."""
    if (isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], str)) or _is_column_of_words(X):
        return f"{who}: X holds texts, not rows of numbers. Turn them into some, with TfidfVectorizer for one."
    columns = _words_by_column(X)
    if columns:
        named = ", ".join(f"{name!r} (such as {value!r})" for name, value in list(columns.items())[:5])
        more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
        return (
            f"{who}: X has words where numbers are expected, in {named}{more}. Encode them, with OneHotEncoder in a "
            "ColumnTransformer for one, or leave them out; `banditgrad fit FILE` encodes them itself."
        )
    return _not_finite(who, X)


def _is_column_of_words(X: Any) -> bool:
    return np.ndim(X) == 1 and not sp.issparse(X) and _first_word(X) is not None


def _words_by_column(X: Any) -> dict[Any, str]:
    """The first word of each column that has some."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        found = {str(name): _first_word(X.iloc[:, k]) for k, name in enumerate(X.columns)}
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUS":
        found = {f"column {k}": _first_word(X[:, k]) for k in range(X.shape[1])}
    else:
        return {}
    return {name: word for name, word in found.items() if word is not None}


def _first_word(values: Any) -> str | None:
    """The first that is a word and no number, if there is one."""
    array = np.asarray(values)
    if array.dtype.kind not in "OUS" or array.ndim != 1:
        return None
    return next((str(value) for value in array if isinstance(value, str) and not is_number(value)), None)


def _not_finite(who: str, X: Any) -> str | None:
    """Which entries are no numbers, by column and first row; rows and unnamed columns count from 0."""
    if np.iscomplexobj(X):
        return None
    try:
        values: Any = X.tocsr() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if values.ndim != 2:
        return None
    if sp.issparse(values):
        bad = ~np.isfinite(values.data)
        row, column = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))[bad], values.indices[bad]
        nan = bool(np.isnan(values.data).any())
    else:
        row, column = np.nonzero(~np.isfinite(values))
        nan = bool(np.isnan(values).any())
    if not row.size:
        return None
    name = repr(str(X.columns[column[0]])) if hasattr(X, "columns") else str(column[0])
    columns = np.unique(column).size
    return (
        f"{who}: X contains {'NaN' if nan else 'infinity'}, {row.size:,} entr{'y' if row.size == 1 else 'ies'} in "
        f"{columns:,} column{'s'[: columns > 1]}, the first in column {name}, row {row[0]}. Impute them, with "
        "SimpleImputer(add_indicator=True) in a pipeline for one, or leave these rows out; `banditgrad fit FILE` "
        "imputes itself."
    )
