"""Estimators for Dask collections."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Iterator
from typing import Any, cast

from sklearn.base import _clone_parametrized
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import distributed
from manyboost import params
from manyboost.distributed.dask import partitions, running
from manyboost.distributed.dask.predicting import is_collection, predict_lazily
from manyboost.estimators import ManyBoostClassifier, ManyBoostRegressor
from manyboost.estimators.documentation import documented
from manyboost.estimators.fits import Given, validation_targets
from manyboost.estimators.fitting import Fitting, all_or_nothing
from manyboost.estimators.predicting import Predicting
from manyboost.persistence.info import ModelInfo
from manyboost.training.callbacks import Display, FitTasks, Watchers
from manyboost.training.scoring import score_name

# Attributes that other methods than fit have set.
_SETTINGS = ("_sklearn_output_config", "_skl_callbacks", "_metadata_request")


class OnDask(Fitting, Predicting):
    """What both estimators do differently from those of one machine."""

    client: Any
    on_worker_loss: str
    _exchanged: tuple[int, int, int]  # see RankResult
    _local: type[Any]

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        Y_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Any:
        """Fit the model where the data are.

        Every worker that holds rows trains on them, and all end with the model that one machine
        would learn from all rows; only the choice of ``strategy="auto"`` may be another one for
        fewer than 1,000 rows, as in :func:`manyboost.distributed.fit_rank`. Partitions stay where
        they are; collections that are not computed yet are computed first.

        Parameters
        ----------
        X : Dask array (n_rows, n_features) or data frame
            Features, in chunks of rows: NumPy arrays, SciPy CSR matrices or pandas frames. Chunks
            may be empty, and their sizes unknown.
        y : Dask array (n_rows,) or (n_rows, n_outputs), series or data frame
            Targets, classes or labels.
        sample_weight : Dask array or series, optional
            Weights of the rows (n_rows,), or of single cells (n_rows, n_outputs).
        X_val, Y_val (or y_val), sample_weight_val : Dask arrays or data frames, optional
            Rows for early stopping, instead of some of X.

        Returns
        -------
        self
        """
        params.validate(self)
        self._check_loss()
        Y_val = validation_targets(Y_val, y_val)
        Given(X, y, sample_weight, X_val, Y_val, sample_weight_val).refuse_validation_alone()
        if FitTasks.wanted(self):
            raise ValueError(
                "A cluster does not call what was passed to set_callbacks; use the parameter "
                "callbacks."
            )
        if self.checkpoint is not None:
            raise ValueError(
                f"checkpoint={self.checkpoint!r} would be written by workers, each for its rows "
                "alone; leave it out, and use on_worker_loss='restart' against lost workers."
            )
        continued = self.warm_start and hasattr(self, "_progress")
        given = [{"X": X, "y": y, "sample_weight": sample_weight}]
        if X_val is not None:
            given += [{"X_val": X_val, "Y_val": Y_val, "sample_weight_val": sample_weight_val}]
        display = None
        if self.verbose:
            score = score_name(self.scoring)
            display = Display(int(self.verbose), self.max_time, score=score)
        watchers = Watchers(list(self.callbacks or ()), display, None)
        restarts = self.on_worker_loss == "restart"
        with _outside_of_tasks(self.client) as client, contextlib.closing(watchers):
            tables = [partitions.find(client, each) for each in given]
            estimator = self._for_workers(fitted=False)
            model = self._for_workers(fitted=True) if continued else None
            result = running.fit(client, estimator, model, tables, watchers, restarts=restarts)
        if not continued:
            # A fit on one machine draws a number from a RandomState, too.
            check_random_state(self.random_state).randint(2**31 - 1)
        self._take(result.estimator)
        self._exchanged = result.exchanged
        return self

    def _for_workers(self, *, fitted: bool) -> Any:
        """Return an estimator for workers to train, with a copy of the random state."""
        local = self.to_local() if fitted else self._local(**self._local_parameters())
        local.callbacks, local.verbose = None, 0
        local.random_state = copy.deepcopy(check_random_state(self.random_state))
        return local

    def _local_parameters(self) -> dict[str, Any]:
        given = self.get_params(deep=False)
        return {name: value for name, value in given.items() if name not in params.CLUSTER_PARAMS}

    def _fitted_state(self) -> dict[str, Any]:
        keep = {*self.get_params(deep=False), *_SETTINGS, "_exchanged"}
        return {name: value for name, value in vars(self).items() if name not in keep}

    def _take(self, fitted: Any) -> None:
        """Take over the fitted attributes of another estimator."""
        for name in self._fitted_state():
            delattr(self, name)
        keep = self.get_params(deep=False)
        self.__dict__.update({name: v for name, v in vars(fitted).items() if name not in keep})

    def to_local(self) -> Any:
        """Return an ordinary estimator with the same parameters and, if fitted, the same model."""
        local = self._local(**self._local_parameters())
        settings = {name: v for name, v in vars(self).items() if name in _SETTINGS}
        local.__dict__.update(copy.deepcopy(settings) | self._fitted_state())
        return local

    @property
    def client_(self) -> Any:
        """The client that fit used: the one given, or the current one."""
        check_is_fitted(self, "n_iter_")
        return self.client if self.client is not None else distributed.get_client()

    def _checked_X(self, X: Any) -> Any:
        if is_collection(X):
            raise TypeError(
                "X is a Dask collection, for which only predictions are computed, block by block; "
                "pass an array or a frame, such as X.compute()."
            )
        return super()._checked_X(X)

    def _predict_collection(self, method: str, X: Any, offset: Any = None, **request: Any) -> Any:
        check_is_fitted(self, "n_iter_")
        if offset is not None:
            raise ValueError(
                "An offset was passed, but models that are fitted on Dask collections have none; "
                "leave it out."
            )
        if self._wants_frames():
            raise ValueError(
                "set_output asks for frames, but predictions for Dask collections are Dask arrays; "
                "use set_output(predict='default')."
            )
        if method == "predict_proba" and isinstance(self.classes_, list):
            raise ValueError(
                "predict_proba is a list for several columns of classes, which a Dask array cannot "
                "hold; use predict or decision_function, or to_local() with arrays."
            )
        model = self.to_local()
        # A worker computes as many chunks at a time as it has threads.
        model.n_jobs = 1 if model.n_jobs is None else model.n_jobs
        model.callbacks = None
        return predict_lazily(model, method, X, request)

    def save(self, path: Any, *, records: str = "auto") -> None:
        """Write the fitted model to a file, as that of :meth:`to_local`."""
        self.to_local().save(path, records=records)

    def info(self) -> ModelInfo:
        """Describe the model, as that of :meth:`to_local`."""
        return cast(ModelInfo, self.to_local().info())

    def __getstate__(self) -> dict[str, Any]:
        # A connection cannot be pickled.
        return super().__getstate__() | {"client": None}

    def __sklearn_clone__(self) -> Any:
        # A client cannot be copied: the clone uses the same one.
        without = copy.copy(self).set_params(client=None)
        return _clone_parametrized(without).set_params(client=self.client)


@contextlib.contextmanager
def _outside_of_tasks(client: Any) -> Iterator[Any]:
    """Yield the client; a task that trains lends its thread to the tasks it waits for."""
    with contextlib.ExitStack() as stack:
        try:
            distributed.get_worker()
        except ValueError:
            pass
        else:
            own = stack.enter_context(distributed.worker_client())
            client = own if client is None else client
        client = distributed.get_client() if client is None else client
        if client.asynchronous:
            raise ValueError(
                "The client is asynchronous, but fit waits for its result; use a Client without "
                "asynchronous=True."
            )
        # distributed.wait uses the current client.
        stack.enter_context(client.as_current())
        yield client


def _for_cluster(local: Any) -> Any:
    """Return the constructor of an estimator with the parameters of a cluster besides its own."""

    def __init__(self: Any, *arguments: Any, **parameters: Any) -> None:
        for name, param in params.CLUSTER_PARAMS.items():
            setattr(self, name, parameters.pop(name, param.default))
        local.__init__(self, *arguments, **parameters)

    own = inspect.signature(local.__init__)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=param.default)
        for name, param in params.CLUSTER_PARAMS.items()
    ]
    both = own.replace(parameters=[*own.parameters.values(), *more])
    __init__.__signature__ = both  # type: ignore[attr-defined]
    return __init__


def _for_collections(predict: Any) -> Any:
    """Return a method that predicts, for Dask collections as well as for arrays."""

    @functools.wraps(predict)
    def predict_any(self: Any, X: Any, **request: Any) -> Any:
        if is_collection(X):
            return self._predict_collection(predict.__name__, X, **request)
        return predict(self, X, **request)

    return predict_any


@documented
class DaskManyBoostRegressor(OnDask, ManyBoostRegressor):  # type: ignore[misc]
    """:class:`~manyboost.ManyBoostRegressor` for Dask arrays and data frames.

    The model is that of one machine, byte for byte, however many workers there are and however the
    rows are partitioned. After fit, the estimator has all attributes and methods of the other;
    :meth:`predict` returns a Dask array, which is not computed yet, for a Dask collection.

    Parameters
    ----------
    {parameters}
    """

    _local = ManyBoostRegressor
    __init__ = _for_cluster(ManyBoostRegressor)
    predict = _for_collections(ManyBoostRegressor.predict)


@documented
class DaskManyBoostClassifier(OnDask, ManyBoostClassifier):  # type: ignore[misc]
    """:class:`~manyboost.ManyBoostClassifier` for Dask arrays and data frames.

    The model is that of one machine, byte for byte, however many workers there are and however the
    rows are partitioned. After fit, the estimator has all attributes and methods of the other;
    predictions for a Dask collection are Dask arrays, which are not computed yet.

    Parameters
    ----------
    {parameters}
    """

    _local = ManyBoostClassifier
    __init__ = _for_cluster(ManyBoostClassifier)
    predict = _for_collections(ManyBoostClassifier.predict)
    predict_proba = _for_collections(ManyBoostClassifier.predict_proba)
    decision_function = _for_collections(ManyBoostClassifier.decision_function)
