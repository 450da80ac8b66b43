"""Whether two builds of the library train the same models, bit for bit.

    python tests/same_models.py write FILE     # with the one build
    python tests/same_models.py compare FILE   # with the other

Several hundred small fits cover what training can do: strategies, losses, steps, projections,
weights, missing targets, categories, constraints, sparse features, early stopping, warm starts,
checkpoints, other weak learners, files and ranks. The digest of a model covers its predictions,
its importances, its scores and the bytes of its file. Only public names are used, so that the
script runs with older releases as well.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import manyboost
from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.distributed import Threads, fit_files, fit_rank

STRATEGIES = ("independent", "multioutput", "project", "relabel")
STEPS = ("line_search", "newton")
PROJECTIONS = ("gaussian", "rademacher", "achlioptas", "sparse", "subsample", "identity")
WEIGHTS = ("none", "rows", "cells", "missing", "rows and missing")
REAL_LOSSES = ("squared_error", "absolute_error", "huber", "quantile", "poisson")
LABEL_LOSSES = ("log_loss", "exponential", "squared_error")
COMMON = {"random_state": 3, "max_iter": 6, "max_leaf_nodes": 6, "early_stopping": False}
COMMON |= {"n_jobs": 1}

RNG = np.random.default_rng(11)
N_ROWS = 300
X = RNG.normal(size=(N_ROWS, 6))
X[RNG.random(X.shape) < 0.04] = np.nan
SIGNAL = np.nan_to_num(X) @ RNG.normal(size=(6, 5)) + np.sin(3 * np.nan_to_num(X[:, :1]))
REAL = SIGNAL + 0.3 * RNG.normal(size=SIGNAL.shape)
COUNTS = np.round(np.exp(REAL / 3))
LABELS = (np.array([0, 0.5, 1, -0.5, 2]) < REAL).astype(int)
CLASSES = np.argmax(REAL[:, :4], axis=1)
ROWS = RNG.exponential(size=N_ROWS)
CELLS = RNG.exponential(size=REAL.shape)
MISSING = RNG.random(REAL.shape) < 0.25
CODES = X.copy()
CODES[:, 4] = np.round(3 * np.nan_to_num(X[:, 4]))
CODES[:, 5] = np.round(2 * np.nan_to_num(X[:, 5]))
SPARSE = sparse.csr_array(np.where(np.abs(np.nan_to_num(X)) > 1.2, np.nan_to_num(X), 0.0))
FRAME = pd.DataFrame(X, columns=list("abcdef")).assign(
    kind=pd.Categorical(np.where(np.nan_to_num(X[:, 0]) > 0, "high", "low"))
)


class LogCosh(Loss):
    """log cosh(f - y), a loss without a hessian."""

    def value(self, y: Any, raw: Any) -> Any:
        return np.logaddexp(raw - y, y - raw) - np.log(2)

    def gradient(self, y: Any, raw: Any) -> Any:
        return np.tanh(raw - y)


def weighted(weights: str, Y: Any) -> tuple[Any, Any]:
    """Targets with missing cells, and weights."""
    if "missing" in weights:
        Y = np.where(MISSING, np.nan, Y)
    given = ROWS if "rows" in weights else CELLS if weights == "cells" else None
    return Y, given


def regressor(loss: Any = "squared_error", Y: Any = REAL, features: Any = X, *args: Any, **p: Any):
    return lambda: ManyBoostRegressor(loss, **COMMON | p).fit(features, Y, *args)


def classifier(Y: Any = LABELS, features: Any = X, *args: Any, **p: Any):
    return lambda: ManyBoostClassifier(**COMMON | p).fit(features, Y, *args)


def configurations() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names of fits, and the fits."""
    for loss, strategy, step, weights in itertools.product(REAL_LOSSES, STRATEGIES, STEPS, WEIGHTS):
        Y, weight = weighted(weights, COUNTS if loss == "poisson" else REAL)
        name = f"regression {loss} {strategy} {step} {weights}"
        yield name, regressor(loss, Y, X, weight, strategy=strategy, step=step)
    for loss, strategy, step, weights in itertools.product(
        LABEL_LOSSES, STRATEGIES, STEPS, ("none", "rows", "cells")
    ):
        Y, weight = weighted(weights, LABELS)
        name = f"labels {loss} {strategy} {step} {weights}"
        yield name, classifier(Y, X, weight, loss=loss, strategy=strategy, step=step)
    for strategy, step, weights in itertools.product(STRATEGIES, STEPS, ("none", "rows")):
        Y, weight = weighted(weights, CLASSES)
        name = f"classes {strategy} {step} {weights}"
        yield name, classifier(Y, X, weight, strategy=strategy, step=step)
    for strategy, projection, q in itertools.product(
        ("project", "relabel"), PROJECTIONS, (1, 2, 3, 0.5)
    ):
        if (strategy == "relabel" or q == 1) and not (
            strategy == "project" and projection == "identity"
        ):
            shape = {"strategy": strategy, "projection": projection, "n_components": q}
            yield f"projection {strategy} {projection} {q}", regressor(**shape)
            yield (
                f"projection cells {strategy} {projection} {q}",
                regressor("squared_error", REAL, X, CELLS, **shape),
            )
            yield f"projection labels {strategy} {projection} {q}", classifier(**shape)
            yield f"projection classes {strategy} {projection} {q}", classifier(CLASSES, **shape)
    for strategy, loss in itertools.product(STRATEGIES, ("squared_error", "huber", LogCosh())):
        where = {"strategy": strategy}
        name = f"{strategy} {loss if isinstance(loss, str) else 'LogCosh'}"
        yield (
            f"categories {name}",
            regressor(loss, REAL, CODES, categorical_features=[4, 5], **where),
        )
        yield (
            f"constraints {name}",
            regressor(
                loss,
                REAL,
                CODES,
                monotonic_cst=[1, -1, 0, 0, 0, 0],
                categorical_features=[4],
                **where,
            ),
        )
        yield (
            f"interactions {name}",
            regressor(
                loss,
                interaction_cst=[[0, 1, 2], [3, 4, 5]],
                monotonic_cst=[0, 1, 1, 0, 0, 0],
                **where,
            ),
        )
        yield f"sparse {name}", regressor(loss, REAL, SPARSE, **where)
        yield (
            f"frame {name}",
            regressor(loss, pd.DataFrame(REAL, columns=list("vwxyz")), FRAME, **where),
        )
        yield f"drawn {name}", regressor(loss, subsample=0.6, max_features=0.5, **where)
        yield (
            f"few bins {name}",
            regressor(
                loss, max_bins=7, max_depth=2, min_samples_leaf=9, min_split_gain=0.5, **where
            ),
        )
        stopping = {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 15}
        yield f"stopping {name}", regressor(loss, **stopping | where)
        yield (
            f"stopping per output {name}",
            regressor(loss, **stopping | where | {"early_stopping": "per_output"}),
        )
        yield (
            f"offset {name}",
            lambda loss=loss, where=where: ManyBoostRegressor(loss, **COMMON | where).fit(
                X, REAL, offset=REAL / 2
            ),
        )
        yield (
            f"warm start {name}",
            lambda loss=loss, where=where: warm(ManyBoostRegressor(loss, **COMMON | where)),
        )
        yield (
            f"checkpoint {name}",
            lambda loss=loss, where=where: from_checkpoint(
                ManyBoostRegressor(loss, **COMMON | where)
            ),
        )
        if strategy != "independent":
            yield f"output weight {name}", regressor(loss, output_weight=[1, 2, 0, 1, 0.5], **where)
    for strategy, loss in itertools.product(STRATEGIES, LABEL_LOSSES):
        where, name = {"strategy": strategy, "loss": loss}, f"{strategy} {loss}"
        yield f"balanced {name}", classifier(class_weight="balanced", **where)
        yield f"tuned {name}", classifier(thresholds="tuned", validation_fraction=0.3, **where)
        yield f"sparse labels {name}", classifier(sparse.csr_array(LABELS), SPARSE, **where)
        yield (
            f"scoring {name}",
            classifier(scoring="f1_macro", **where | {"early_stopping": True, "max_iter": 9}),
        )
    losses = ["squared_error", "huber", "quantile", "poisson", "log_loss"]
    mixed = np.column_stack([REAL[:, :3], COUNTS[:, 3], LABELS[:, 4]])
    for strategy, step in itertools.product(STRATEGIES, STEPS):
        shape = {"strategy": strategy, "step": step}
        name = f"{strategy} {step}"
        yield f"mixed {name}", regressor(losses, mixed, **shape)
        yield f"mixed cells {name}", regressor(losses, mixed, X, CELLS, **shape)
        yield (
            f"quantiles {name}",
            regressor("quantile", REAL[:, :2], quantile=[0.1, 0.5, 0.9], **shape),
        )
        yield (
            f"custom {name}",
            regressor(LogCosh(), REAL, X, ROWS, strategy=strategy, step="line_search"),
        )
        yield f"threads {name}", regressor("squared_error", n_jobs=2, **shape)
        yield f"ranks {name}", lambda shape=shape: on_ranks(ManyBoostRegressor(**COMMON | shape))
        yield f"binary {name}", classifier(LABELS[:, 0], **shape)
        yield f"one output {name}", regressor("huber", REAL[:, 0], **shape)
        if step == "newton":
            yield f"damped {name}", classifier(l2_regularization=0.3, **shape)
        ridge = Ridge() if strategy != "relabel" else DecisionTreeRegressor(max_depth=3)
        yield (
            f"foreign {name}",
            regressor("squared_error", REAL, np.nan_to_num(X), estimator=ridge, **shape),
        )
        yield (
            f"foreign labels {name}",
            classifier(LABELS, np.nan_to_num(X), estimator=ridge, **shape),
        )
    yield "auto", regressor(strategy="auto")
    yield "auto labels", classifier(strategy="auto")
    for strategy in STRATEGIES:
        yield f"files {strategy}", lambda strategy=strategy: from_files(strategy)


def warm(model: Any) -> Any:
    model.set_params(warm_start=True, max_iter=3).fit(X, REAL)
    return model.set_params(max_iter=7).fit(X, REAL)


def from_checkpoint(model: Any) -> Any:
    """Interrupt a fit after two rounds, and let another one go on."""

    def interrupt(state: Any) -> None:
        if state.round == 2:
            raise RuntimeError("enough")

    with tempfile.TemporaryDirectory() as folder:
        keeper = manyboost.Checkpoint(Path(folder) / "state", every=1)
        model.set_params(checkpoint=keeper, callbacks=[interrupt])
        try:
            model.fit(X, REAL)
        except RuntimeError:
            model.set_params(callbacks=None)
            model.fit(X, REAL)
        model.set_params(checkpoint=None)
    return model


def on_ranks(model: Any) -> Any:
    """Fit on two ranks that are threads."""
    halves = [slice(0, 140), slice(140, N_ROWS)]

    def fit(comm: Any) -> Any:
        rows = halves[comm.rank]
        return fit_rank(clone(model), comm, X[rows], REAL[rows])

    return Threads.run(2, fit)[0]


def from_files(strategy: str) -> Any:
    model = ManyBoostRegressor(**COMMON | {"strategy": strategy})
    blocks = ((X[rows], REAL[rows]) for rows in np.array_split(np.arange(N_ROWS), 3))
    with tempfile.TemporaryDirectory() as folder:
        return fit_files(model, blocks, scratch=folder)


def digest(model: Any) -> str:
    """Hash of all that a user can see of a model."""
    sha = hashlib.sha256()
    features = FRAME if "kind" in getattr(model, "feature_names_in_", ()) else X
    if getattr(model, "estimator", None) is not None:
        features = np.nan_to_num(X)
    arguments = {"offset": REAL / 2} if getattr(model, "_with_offset", False) else {}
    names = ("predict", "decision_function", "predict_proba")
    for name in names:
        if hasattr(model, name):
            answer = getattr(model, name)(features, **arguments)
            for array in answer if isinstance(answer, list) else [answer]:
                dense = array.toarray() if sparse.issparse(array) else np.asarray(array)
                sha.update(np.ascontiguousarray(dense, np.float64).tobytes())
    for name in ("train_score_", "validation_score_", "baseline_", "n_iter_", "thresholds_"):
        if hasattr(model, name):
            sha.update(np.ascontiguousarray(getattr(model, name)).tobytes())
    if getattr(model, "estimator", None) is None:
        sha.update(np.ascontiguousarray(model.output_importances_).tobytes())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.mb"
            model.save(path, records="all")
            sha.update(path.read_bytes())
    return sha.hexdigest()


def digests() -> dict[str, str]:
    """Digest of every configuration, or the sentence with which it is refused."""
    found = {}
    for name, fit in configurations():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[name] = digest(fit())
            except ValueError as error:
                found[name] = f"refused: {error}"
    return found


def main(verb: str, path: str) -> int:
    """Write the digests to a file, or compare with those in it."""
    found = digests()
    if verb == "write":
        Path(path).write_text(json.dumps(found, indent=1))
        refused = sum(each.startswith("refused") for each in found.values())
        print(f"{len(found)} models, {refused} of them refused")
        return 0
    known = json.loads(Path(path).read_text())
    differ = [name for name in known if found.get(name) != known[name]]
    for name in differ:
        print(f"differs: {name}")
        if known[name].startswith("refused") or found.get(name, "").startswith("refused"):
            print(f"    was {known[name]}\n    is  {found.get(name)}")
    print(f"{len(known) - len(differ)} of {len(known)} models are the same")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
