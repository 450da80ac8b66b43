"""What a fit is given, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F64
from manyboost.comm import ALONE, Comm
from manyboost.data.rows import Rows
from manyboost.estimators.base import Model
from manyboost.persistence.checkpoint import Recorder
from manyboost.training.boosting import Boosting
from manyboost.training.checkpoints import Start
from manyboost.training.folds import FoldedBoosting, member_seed
from manyboost.training.training_data import TrainingData


@dataclass(frozen=True)
class Given:
    """The arguments of fit as the user passed them, and the ranks that hold the other rows."""

    X: Any
    y: Any
    sample_weight: Any = None
    X_val: Any = None
    Y_val: Any = None
    sample_weight_val: Any = None
    offset: Any = None
    offset_val: Any = None
    groups: Any = None
    comm: Comm = ALONE
    row_numbers: NDArray[np.uint64] | None = None

    def refuse_validation_alone(self) -> None:
        """Refuse arguments that belong together and are not all there."""
        if (self.X_val is None) != (self.Y_val is None):
            given, missing = ("X_val", "Y_val") if self.Y_val is None else ("Y_val", "X_val")
            raise ValueError(f"{given} was given without {missing}; pass both or neither.")
        if self.X_val is None:
            for name in ("sample_weight_val", "offset_val"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} was given without X_val and Y_val; pass all.")
        elif (self.offset is None) != (self.offset_val is None):
            pair = ("offset_val", "offset") if self.offset is None else ("offset", "offset_val")
            raise ValueError(f"{pair[0]} was given without {pair[1]}; pass both or neither.")


def validation_targets(Y_val: Any, y_val: Any) -> Any:
    """Return the targets of the validation rows, which fit takes by two names."""
    if Y_val is not None and y_val is not None:
        raise ValueError("Y_val and y_val are names of the same argument; pass one of them.")
    return y_val if Y_val is None else Y_val


@dataclass(frozen=True)
class Unseen:
    """Training rows, and what the members that have not seen them predict."""

    rows: Rows
    raw: F64  # (n_rows, n_outputs)
    member: NDArray[np.uint8]  # the member that has not seen the row
    n_given: int  # rows that were passed to fit

    def placed(self, predictions: NDArray[Any]) -> NDArray[Any]:
        """Return predictions for all rows that were passed; NaN for those not trained on."""
        placed = np.full((self.n_given, *predictions.shape[1:]), np.nan)
        placed[self.rows.numbers.astype(np.intp)] = predictions
        return placed


@dataclass(frozen=True)
class Result:
    """What a fit leaves: fitted attributes, and rows that thresholds may be tuned on."""

    attributes: dict[str, Any]
    validation: Rows | Unseen | None
    unseen: Unseen | None = None


@dataclass(frozen=True)
class Fit:
    """A fit that is ready to run, and what it leaves."""

    boosting: Boosting | FoldedBoosting
    result: Callable[..., Result]


def refuse_other_outputs(model: Model, data: TrainingData, method: str, remedy: str = "") -> None:
    """Refuse rows whose outputs or offsets are not those of a fitted model."""
    if data.n_outputs != model.n_outputs_:
        problem = f"y has {data.n_outputs} outputs but the fitted model has {model.n_outputs_}"
        raise ValueError(f"{problem}; keep to these{remedy}.")
    if (data.rows.offset is None) == model._with_offset:
        now, then = ("without", "with") if model._with_offset else ("with", "without")
        problem = f"{method} was called {now} an offset, but the model was fitted {then} one"
        raise ValueError(f"{problem}; keep to that{remedy}.")


def start_of(recorders: list[Recorder]) -> Start | None:
    """Return how the fit in checkpoints began, of which members of folds may lack some.

    Members of different fits are refused: they would train on each other's folds.
    """
    starts: list[tuple[str, Start]] = []
    for fold, recorder in enumerate(recorders):
        if recorder.found is not None:
            start = recorder.found.start
            start = replace(start, seed=member_seed(start.seed, -fold))
            starts.append((str(recorder.path), start))
    for path, start in starts:
        first, expected = starts[0]
        if start.seed != expected.seed:
            problem = f"The checkpoints {first!r} and {path!r} belong to fits of different seeds"
            raise ValueError(f"{problem}; remove the files of all folds to start anew.")
    return starts[0][1] if starts else None
