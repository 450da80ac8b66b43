"""Training on Dask workers, which exchange sums over Dask's own connections."""

from importlib.util import find_spec

if not all(map(find_spec, ("dask", "distributed", "pandas"))):
    raise ImportError(
        "Training on Dask needs packages that are not installed; pip install 'manyboost[dask]'."
    )

from manyboost.distributed.dask.estimators import DaskManyBoostClassifier, DaskManyBoostRegressor

__all__ = ["DaskManyBoostClassifier", "DaskManyBoostRegressor"]
