"""Pickles and copies of estimators."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

from sklearn.base import BaseEstimator

_FILE = "_model_file"


class Pickling(BaseEstimator):
    """What pickle, joblib, skops and copy ask of an estimator.

    A fitted estimator is pickled as its parameters and the bytes of its model file, which depend on
    no class of this package but the estimator's own. If its file would leave something out, such as
    a loss in Python, it is pickled as its attributes.
    """

    def __getstate__(self) -> dict[str, Any]:
        from manyboost import persistence

        state: dict[str, Any] = super().__getstate__()
        content = persistence.complete_file(self) if "_progress" in state else None
        if content is None:
            return state
        kept = {name: each for name, each in state.items() if name not in persistence.STORED}
        return kept | {_FILE: content}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from manyboost import persistence

        state = dict(state)
        content = state.pop(_FILE, None)
        if content is not None:
            fitted = vars(persistence.from_bytes(content))
            state |= {name: fitted[name] for name in persistence.STORED & fitted.keys()}
        super().__setstate__(state)

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(vars(self))
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = memo[id(self)] = type(self).__new__(type(self))
        copied.__dict__.update(deepcopy(vars(self), memo))
        return copied
