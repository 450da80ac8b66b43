"""What happens between rounds: callbacks, the progress that is shown, scikit-learn's callbacks.

A callback is any callable that takes a :class:`RoundState`; it is called after every round and ends
training by returning True. ``verbose`` shows the same states on standard error. Callbacks of
:mod:`sklearn.callback`, where the installed scikit-learn has them, are set by ``set_callbacks``.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from manyboost.arrays import F64

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is: this scikit-learn has no callbacks."""
        return method


__all__ = ["Callback", "CallbackSupportMixin", "RoundState", "with_callbacks"]


@dataclass(frozen=True)
class RoundState:
    """What a callback gets after a round; it is read-only.

    Attributes
    ----------
    round : int
        Number of the round that has just ended, from 1; a warm start continues the count.
    n_iter : int
        Rounds the model would have if training ended now: fewer than ``round`` if an earlier one
        was better on the validation rows.
    max_iter : int
        Maximum number of rounds.
    elapsed : float
        Seconds since training began.
    train_score : float
        Negative mean loss of the training rows.
    validation_score : float or None
        The score that decides on early stopping; None without validation rows.
    step_sizes : ndarray of shape (n_outputs,) or None
        Steps ρ of the round; None if leaves are Newton's, which have none.
    """

    round: int
    n_iter: int
    max_iter: int
    elapsed: float
    train_score: float
    validation_score: float | None
    step_sizes: F64 | None


Callback = Callable[[RoundState], bool | None]


# Seconds between two states of the line on a terminal.
_REFRESH = 0.1
# Seconds to the next plain line: the first pause, and the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_BAR_WIDTH = 24


class Display:
    """Shows the progress of training on a stream, by default standard error.

    With ``verbose=1`` it is one line that changes if the stream is a terminal, else lines at
    growing intervals; with 2 a line for each round. Training ends after ``max_time`` seconds;
    ``score`` is what decides on early stopping. Losses are shown as such: lower is better.
    """

    def __init__(
        self,
        verbose: int,
        max_time: float | None = None,
        stream: TextIO | None = None,
        *,
        score: str = "loss",
    ) -> None:
        # Programs without a console have no standard error.
        self._stream = stream or sys.stderr or io.StringIO()
        self._live = verbose == 1 and self._stream.isatty()
        self._every_round = verbose >= 2
        self._max_time = max_time
        self._score = score
        self._first_round: int | None = None
        self._last: RoundState | None = None
        self._pause = self._next = 0.0
        self._width = 0

    def __call__(self, state: RoundState) -> None:
        """Show a round, if it is time to."""
        if self._first_round is None:
            self._first_round = state.round
        self._last = state
        if not self._every_round:
            if state.elapsed < self._next:
                return
            self._pause = min(max(_FIRST_PAUSE, 2 * self._pause), _LONGEST_PAUSE)
            self._next = state.elapsed + (_REFRESH if self._live else self._pause)
        self._write(self._line(state))

    def close(self) -> None:
        """Show how training ended."""
        state = self._last
        if state is None:
            return
        words = f"{state.round} rounds in {_duration(state.elapsed)}{self._scores(state)}"
        if state.validation_score is not None:
            words += f", {state.n_iter} kept"
        self._write(words)
        if self._live:
            self._stream.write("\n")
            self._stream.flush()

    def _line(self, state: RoundState) -> str:
        total = state.max_iter
        line = f"round {state.round:{len(str(total))}d}/{total}"
        if self._live:
            line += f" [{'#' * (_BAR_WIDTH * state.round // total):.<{_BAR_WIDTH}}]"
        if state.round < total:
            line += f", {_duration(self._seconds_left(state))} left"
        return line + self._scores(state)

    def _seconds_left(self, state: RoundState) -> float:
        """Guess the time for the rounds to come from that of the rounds done, up to max_time."""
        assert self._first_round is not None
        done = state.round - self._first_round + 1
        left = state.elapsed / done * (state.max_iter - state.round)
        return left if self._max_time is None else min(left, max(0, self._max_time - state.elapsed))

    def _scores(self, state: RoundState) -> str:
        words = f", train loss {0 - state.train_score:.6g}"
        if (score := state.validation_score) is not None:
            words += f", validation {self._score} "
            words += f"{0 - score if self._score == 'loss' else score:.6g}"
        return words

    def _write(self, line: str) -> None:
        if self._live:
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


class FitTasks:
    """Rounds as tasks of scikit-learn's callbacks.

    The fit is a task, every round a subtask of it. Hooks get the training rows of the round and,
    if they ask for it, a fitted estimator with the rounds so far; a hook at the end of a round that
    returns True ends training.

    ``metadata`` is what fit was given beside X and y; ``fitted`` returns the attributes that make a
    copy of the estimator a fitted one with the rounds so far.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        metadata: dict[str, Any],
        n_rounds: int,
        fitted: Callable[[], dict[str, Any]],
    ) -> None:
        self._given = {"estimator": estimator, "X": X, "y": y, "metadata": metadata or None}
        self._fitted = fitted
        self._fit = estimator._init_callback_context(max_subtasks=n_rounds)
        self._fit.call_on_fit_task_begin(**self._given)
        self._round: Any = None

    def begin_round(self) -> None:
        """Tell that a round begins."""
        self._round = self._fit.subcontext(task_name="round")
        self._round.call_on_fit_task_begin(**self._given)

    def end_round(self) -> bool:
        """Tell that a round is over; whether training is to end."""
        given = self._given | {"reconstruction_attributes": self._fitted}
        return bool(self._round.call_on_fit_task_end(**given))

    def end(self) -> None:
        """Tell that the estimator is fitted."""
        self._fit.call_on_fit_task_end(**self._given, reconstruction_attributes=dict)

    @staticmethod
    def wanted(estimator: Any) -> bool:
        """Whether there is anyone to tell."""
        return bool(getattr(estimator, "_skl_callbacks", None))


@dataclass
class Watchers:
    """All that is told of rounds: callbacks, the display, scikit-learn's callbacks."""

    callbacks: Sequence[Callback]
    display: Display | None
    tasks: FitTasks | None

    def __bool__(self) -> bool:
        return bool(self.callbacks) or self.display is not None or self.tasks is not None

    def begin_round(self) -> None:
        """Tell that a round begins."""
        if self.tasks is not None:
            self.tasks.begin_round()

    def end_round(self, state: RoundState) -> bool:
        """Tell what a round has led to; whether training is to end."""
        if self.display is not None:
            self.display(state)
        stop = False
        for callback in self.callbacks:
            answer = callback(state)
            if not (answer is None or isinstance(answer, bool | np.bool_)):
                name = getattr(callback, "__name__", type(callback).__name__)
                raise TypeError(
                    f"The callback {name} returned {answer!r}; it must return True to end "
                    "training, or False or None to go on."
                )
            stop = stop or bool(answer)
        return (self.tasks is not None and self.tasks.end_round()) or stop

    def close(self) -> None:
        """Leave the last state on display."""
        if self.display is not None:
            self.display.close()


def unwatched() -> Watchers:
    """Return nobody who is told of rounds."""
    return Watchers([], None, None)


def check_callbacks(value: Any) -> bool:
    """Whether a value is a list of callbacks."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return is_list and all(callable(each) and not isinstance(each, type) for each in value)
