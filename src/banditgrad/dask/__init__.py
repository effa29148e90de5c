"""Training past one machine: the estimators of `banditgrad.linear_model` on Dask collections.

from banditgrad.dask import BanditClassifier

model = BanditClassifier(random_state=0).fit(X, y)  # dask arrays or dataframes; rows stay where they are
model.predict(X)  # lazy
"""

try:
    import dask.array as _array  # noqa: F401
    import dask.dataframe as _dataframe  # noqa: F401
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    if (error.name or "").partition(".")[0] == "banditgrad":
        raise
    raise ModuleNotFoundError(
        'banditgrad.dask needs Dask, which is not installed. Run: pip install "banditgrad[dask]"', name="dask"
    ) from error

from banditgrad.dask.classifier import BanditClassifier
from banditgrad.dask.regressor import BanditRegressor

__all__ = ["BanditClassifier", "BanditRegressor"]
