"""Parameters drawn from the whole of their table, on small data of all kinds."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.tree import DecisionTreeRegressor

from manyboost import Checkpoint, Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.params import PARAMS
from manyboost.training.projections import PROJECTIONS
from torture.children import Run, count_cases
from torture.clarity import check_refusal
from torture.figures import Figure, none_of

TITLE = "parameters"
PROMISE = (
    "Every combination of parameters fits, with a finite training loss and finite predictions, or "
    "is refused in one sentence."
)


def run(long: bool, seed: int) -> list[Figure]:
    batches = [(seed + k, 100) for k in range(120)] if long else [(seed, 60)]
    tally = count_cases(batch, batches)
    fits, refused = tally.endings["fit"], tally.endings["refused"]
    what = f"parameters ({fits:,} fits, {refused:,} refusals)"
    infinite = [failure for failure in tally.failures if "ArithmeticError" in failure]
    others = [failure for failure in tally.failures if "ArithmeticError" not in failure]
    return [
        none_of(f"{what}: unclear refusals and other errors", tally.cases, others),
        none_of("parameters: infinite losses or predictions", tally.cases, infinite),
        none_of("parameters: crashes", tally.cases, tally.crashes),
        none_of("parameters: hangs", tally.cases, tally.hangs),
        Figure("parameters: fits", "5,000" if long else "20", f"{fits:,}",
               fits >= (5_000 if long else 20), tally.cases),
    ]  # fmt: skip


def batch(argument: tuple[int, int], run: Run) -> None:
    """So many cases from a seed."""
    seed, count = argument
    numbers = iter(range(10**9))

    @with_seed(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def each(data: st.DataObject) -> None:
        kind, parameters, data_seed = data.draw(drawn_parameters())
        shown = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        case = f"seed {seed}, case {next(numbers)}, {kind}, data {data_seed}: {shown}"
        run(case, lambda: fit_case(kind, parameters, data_seed))

    each()


# ---------------------------------------------------------------------- what may be drawn


class LogCosh(Loss):
    """A loss with all that one can have."""

    def value(self, y: Any, raw: Any) -> Any:
        return np.logaddexp(y - raw, raw - y) - np.log(2)

    def gradient(self, y: Any, raw: Any) -> Any:
        return np.tanh(raw - y)

    def hessian(self, y: Any, raw: Any) -> Any:
        return 1 - np.tanh(raw - y) ** 2

    def __repr__(self) -> str:
        return "LogCosh()"


def signs(n_components: int, n_outputs: int, rng: np.random.Generator) -> Any:
    return rng.choice([-1.0, 1.0], size=(n_components, n_outputs))


def zeros(n_components: int, n_outputs: int, rng: np.random.Generator) -> Any:
    return np.zeros((n_components, n_outputs))


def never(state: Any) -> bool:
    return False


def at_once(state: Any) -> bool:
    return True


def spread(estimator: Any, X: Any, y: Any) -> float:
    return -float(np.std(np.asarray(estimator.predict(X), dtype=float)))


_LEVELS = st.floats(1e-6, 1 - 1e-6)
_LIST_OF_LEVELS = st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4, unique=True).map(sorted)
_LOSSES = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie")
_LABEL_LOSSES = ("log_loss", "exponential", "squared_error")
_SCORERS = ("loss", "r2", "neg_mean_absolute_error", "accuracy", "roc_auc", "f1_macro", spread)


def _real(low: float, high: float) -> st.SearchStrategy[float]:
    """Ordinary numbers, and powers of ten to the ends of the range."""
    powers = st.integers(round(np.log10(low)), round(np.log10(high))).map(lambda k: 10.0**k)
    return st.one_of(st.floats(max(low, 0.01), min(high, 2.0)), powers)


def _from(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


#: What each parameter of the table may be drawn from; those of classifiers come second.
DRAWN: dict[str, st.SearchStrategy[Any] | tuple[st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "loss": (
        st.one_of(_from(*_LOSSES, LogCosh()), st.lists(_from(*_LOSSES, "log_loss"), max_size=3)),
        _from(*_LABEL_LOSSES, LogCosh()),
    ),
    "quantile": st.one_of(_LEVELS, _LIST_OF_LEVELS),
    "huber_delta": st.one_of(st.none(), _real(1e-300, 1e300)),
    "power": st.floats(1.1, 1.9),
    "strategy": _from("independent", "multioutput", "project", "relabel", "auto"),
    "projection": _from(*PROJECTIONS, signs, zeros),
    "n_components": st.one_of(st.integers(1, 6), st.floats(0.1, 1.0)),
    "step": _from("auto", "line_search", "newton"),
    "learning_rate": st.one_of(_from("auto"), _real(1e-300, 1e300)),
    "max_iter": st.integers(1, 8),
    "n_folds": st.one_of(st.none(), st.integers(2, 4)),
    "refit_all": st.booleans(),
    "max_leaf_outputs": st.one_of(st.none(), st.integers(1, 4)),
    "validation_split": _from("random", "last", KFold(3), TimeSeriesSplit(3)),
    "calibration": _from(None, "sigmoid", "isotonic"),
    "label_hierarchy": _from(None, {}, {1: 0}, [(1, 0)], {0: 1, 1: 0}, {0: 7}),
    "max_leaf_nodes": st.one_of(st.none(), st.integers(2, 40), _from(10**9, 10**18)),
    "max_depth": st.one_of(st.none(), st.integers(1, 5), _from(10**9, 10**18)),
    "min_samples_leaf": st.one_of(_from("auto"), st.integers(1, 50), _from(10**9, 10**18)),
    "min_split_gain": st.one_of(_from(0, 0.0), _real(1e-300, 1e300)),
    "l2_regularization": st.one_of(_from("auto", 0, 0.0), _real(1e-300, 1e300)),
    "max_features": st.one_of(_from("sqrt", "log2"), st.integers(1, 9), st.floats(0.01, 1.0)),
    "subsample": st.one_of(st.floats(0.01, 1.0), _from(1e-300, 1)),
    "max_bins": st.one_of(st.integers(2, 8), st.integers(2, 255)),
    "categorical_features": st.one_of(
        _from("from_dtype", None),
        st.lists(st.integers(0, 3), max_size=3),
        st.lists(st.booleans(), min_size=3, max_size=3),
    ),
    "monotonic_cst": st.one_of(
        st.none(),
        st.lists(st.integers(-1, 1), min_size=3, max_size=3),
        st.lists(st.lists(st.integers(-1, 1), min_size=3, max_size=3), min_size=2, max_size=2),
    ),
    "interaction_cst": st.one_of(
        _from(None, "pairwise", "no_interactions"),
        st.lists(st.sets(st.integers(0, 2), max_size=3), max_size=3),
    ),
    "output_weight": st.one_of(
        st.none(), st.lists(_from(0, 1.0, 2.5, 1e-59, 1e59), min_size=1, max_size=3)
    ),
    "class_weight": st.one_of(
        _from(None, "balanced"),
        st.dictionaries(_from(0, 1, 2, 3), _from(0, 1, 0.5, 1e-30, 1e30), max_size=3),
        st.lists(st.dictionaries(_from(0, 1), _from(0, 1, 0.5, 1e9)), min_size=2, max_size=2),
    ),
    "output_scaling": _from("auto", None),
    "estimator": _from(None, Ridge(), DecisionTreeRegressor(max_depth=2), DummyRegressor()),
    "thresholds": st.one_of(
        _from(None, "tuned", 0, 1, 0.3), st.lists(st.floats(0, 1), min_size=2, max_size=2)
    ),
    "early_stopping": _from("auto", "per_output", True, False),
    "validation_fraction": st.one_of(st.integers(1, 40), st.floats(0.01, 0.99)),
    "n_iter_no_change": st.integers(1, 5),
    "tol": st.one_of(_from(0, 0.0), _real(1e-300, 1e300)),
    "scoring": st.one_of(_from(*_SCORERS), st.lists(_from(*_SCORERS), max_size=3)),
    "max_time": st.one_of(st.none(), _real(1e-300, 1e300)),
    "warm_start": st.booleans(),
    "checkpoint": _from(None, "path", "often"),
    "callbacks": _from(None, [], [never], [at_once], [never, at_once]),
    "verbose": _from(0, 1, 2, True, False),
    "random_state": st.one_of(
        st.none(), st.integers(0, 2**32 - 1), st.integers(0, 9).map(np.random.RandomState)
    ),
    "n_jobs": _from(None, 1, 2, 3, -1, -7),
}

_ENDLESS = 10**30
_JUNK = st.sampled_from(
    (
        *(None, True, -1, 0, 1, 2.5, float("nan"), float("inf"), _ENDLESS, "", "word", b"", []),
        *([None], (), {}, {1: 2}, set(), np.array([]), np.array(1.0), np.eye(2), print, 1j),
        range(3),
    )
)


@st.composite
def drawn_parameters(draw: st.DrawFn) -> tuple[str, dict[str, Any], int]:
    """Kind of estimator and data, parameters, and the seed of the data."""
    kind = draw(_from("numbers", "number", "counts", "labels", "classes", "two classes"))
    is_classifier = kind in ("labels", "classes", "two classes")
    make: Any = ManyBoostClassifier if is_classifier else ManyBoostRegressor
    names = sorted(make().get_params(deep=False))
    chosen = draw(st.lists(st.sampled_from(names), max_size=6, unique=True))
    parameters: dict[str, Any] = {"max_iter": 4, "n_jobs": 1, "random_state": 0}
    for name in chosen:
        strategy = DRAWN[name]
        if isinstance(strategy, tuple):
            strategy = strategy[is_classifier]
        parameters[name] = draw(_JUNK if draw(st.integers(0, 19)) == 0 else strategy)
    if parameters.get("max_time") is _ENDLESS:
        parameters["max_iter"] = 4  # more would not end, as asked for
    return kind, parameters, draw(st.integers(0, 5))


# ---------------------------------------------------------------------- a case


def small_data(kind: str, seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Features, targets and other arguments of fit; the seed says which."""
    rng = np.random.default_rng(seed)
    n_rows = (40, 40, 7, 2, 60, 25)[seed]
    X = rng.normal(size=(n_rows, 3))
    X[:, 2] = rng.integers(0, 4, size=n_rows)
    if seed == 1:
        X[rng.random(X.shape) < 0.2] = np.nan
    signal = np.nan_to_num(X) @ rng.normal(size=(3, 3)) + 0.3 * rng.normal(size=(n_rows, 3))
    if kind == "numbers":
        Y = signal * [1.0, 1e6, 1e-6] if seed == 4 else signal[:, :2]
    elif kind == "number":
        Y = signal[:, 0]
    elif kind == "counts":
        Y = np.round(np.exp(signal[:, :2]))
    elif kind == "labels":
        Y = (signal[:, :2] > 0.5).astype(np.float64)
    else:
        Y = np.argmax(signal, axis=1)[:, None] if kind == "classes" else signal[:, :1] > 0
        Y = Y[:, 0].astype(int)
        Y[:2] = 0, 1
    if seed == 5 and Y.ndim == 2:
        Y[rng.random(Y.shape) < 0.3] = np.nan
        Y[:2] = 1.0, 0.0
    arguments: dict[str, Any] = {}
    if seed in (1, 4):
        arguments["sample_weight"] = rng.exponential(size=n_rows)
    if seed == 4:
        arguments |= {"X_val": X[:20], "Y_val": Y[:20]}
    return X, Y, arguments


def fit_case(kind: str, parameters: dict[str, Any], data_seed: int) -> str:
    X, Y, arguments = small_data(kind, data_seed)
    if parameters.get("estimator") is not None:
        X = np.nan_to_num(X)  # what others say about missing values is theirs to say
    is_classifier = kind in ("labels", "classes", "two classes")
    make: Any = ManyBoostClassifier if is_classifier else ManyBoostRegressor
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        given = parameters.get("checkpoint")
        checkpoint = given if isinstance(given, str) else None  # (it may be an array)
        if checkpoint == "path":
            parameters = {**parameters, "checkpoint": path}
        elif checkpoint == "often":
            parameters = {**parameters, "checkpoint": Checkpoint(path, every=1)}
        model = make(**parameters)
        here = Path.cwd()
        # (Any text is the path of a checkpoint.)
        os.chdir(folder)
        try:
            return quietly(lambda: fitted(model, X, Y, arguments))
        finally:
            os.chdir(here)


def fitted(model: Any, X: Any, Y: Any, arguments: dict[str, Any]) -> str:
    try:
        model.fit(X, Y, **arguments)
    except MemoryError as error:
        if " GB of memory, but " not in str(error):
            raise AssertionError("it does not say how much is needed") from error
        return "refused"
    except (ValueError, TypeError) as error:
        check_refusal(error)
        if hasattr(model, "n_iter_"):
            raise AssertionError("a refused fit left a model behind") from error
        return "refused"
    check_finite(model, X)
    if model.warm_start and isinstance(model.max_iter, int):
        rounds = model.n_iter_
        model.set_params(max_iter=model.max_iter + 1)
        try:
            model.fit(X, Y, **arguments)
        except (ValueError, TypeError) as error:
            check_refusal(error)
        else:
            check_finite(model, X)
        assert model.n_iter_ >= min(rounds, 1)
    return "fit"


def check_finite(model: Any, X: Any) -> None:
    if not np.isfinite(model.train_score_).all():
        raise ArithmeticError(f"training scores {model.train_score_}")
    answers = {"predict": model.predict(X)}
    if hasattr(model, "predict_proba"):
        if not isinstance(model.loss, LogCosh):  # has no link to probabilities
            answers["predict_proba"] = model.predict_proba(X)
        answers["decision_function"] = model.decision_function(X)
    for method, answer in answers.items():
        values = np.asarray(answer)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ArithmeticError(f"{method} is not finite")
    last = None
    for last in model.staged_predict(X):  # noqa: B007 (only the last is looked at)
        pass
    if last is not None:
        assert np.array_equal(last, answers["predict"]), "the last stage is not the prediction"


def quietly(call: Callable[[], str]) -> str:
    """Run a case without its display; a warning is an error."""
    said = io.StringIO()
    with (
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(said),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        # What scikit-learn says of scores without two rows, or classes that are never predicted.
        for words in ("R\\^2 score", "Only one class", "Precision", "F-score", "y_pred contains"):
            warnings.filterwarnings("ignore", message=words)
        # What fit says of parameters that make it diverge, and of those that change the data.
        for words in (
            "Training ended with a mean loss",
            "Rare categories",
            "(y|Y_val) lacks labels",
        ):
            warnings.filterwarnings("ignore", message=words)
        return call()


def undrawn() -> set[str]:
    """Parameters of the table that nothing is drawn for."""
    return set(PARAMS) - set(DRAWN)
