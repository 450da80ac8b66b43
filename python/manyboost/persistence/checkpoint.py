"""Checkpoint files: the state of a fit, in the container of model files and as strictly read."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.estimators.fitting import KINDS
from manyboost.persistence import container
from manyboost.persistence.container import BrokenFileError, broken
from manyboost.persistence.reading import (
    Contents,
    read_progress,
    read_projection,
    read_search_results,
    read_trees,
)
from manyboost.persistence.values import Decoder, Encoder
from manyboost.persistence.writing import IMPORTANCES, stored_records
from manyboost.training.checkpoints import Found, Identity, State, trees_digest

if TYPE_CHECKING:
    from manyboost.data.categories import Categories
    from manyboost.training.checkpoints import Recorder


def write(recorder: Recorder, state: State) -> None:
    """Put the state of a fit in the place of the last one."""
    model, progress = recorder.model, state.progress
    trees, encoder = progress.model, Encoder()
    assert isinstance(trees, _core.Ensemble)
    header = {
        "content": "checkpoint",
        "identity": [[name, *part] for name, part in recorder.identity.parts.items()],
        "began_with": recorder.began_with,
        "kind": trees.kind,
        "n_outputs": trees.n_outputs,
        "n_features": trees.n_features,
        "seed": model._seed,
        "strategy": model.strategy_,
        "projection": encoder.encode(model.projection_),
        "search_results": encoder.encode(getattr(model, "search_results_", None)),
        "score_names": list(progress.validation_scores),
        "left_out": [IMPORTANCES] if progress.importances is None else [],
        "ended": state.ended,
    }
    arrays: dict[str, NDArray[Any]] = {
        **trees.arrays(),
        "train_score": np.array(progress.train_score),
        "validation_score": np.array(progress.validation_score),
        **stored_records(progress, trees.n_outputs),
        **{f"stopping_{name}": array for name, array in state.stopping.items()},
        **{f"value_{k:06d}": array for k, array in enumerate(encoder.arrays)},
    }
    if state.gains is not None:
        arrays["gains"] = state.gains
    # (What a killed process leaves behind is overwritten by the next.)
    container.write(recorder.path, container.pack(header, arrays), mark="new")


def read(recorder: Recorder, categories: Categories, *, continued: bool) -> Found | None:
    """Return the state in the recorder's file, or say why it is not one of this fit.

    None, if a warm start goes on with the very model that the fit in the file ended with.
    """
    shown = repr(str(recorder.path))
    try:
        file = Contents(*container.unpack(container.read(recorder.path)))
        file.choice("content", ["checkpoint"])
        identity = _read_identity(file)
        began_with = file.take("began_with", (str, type(None)))
        differences = recorder.identity.differences(identity)
        if differences:
            raise ValueError(
                f"The checkpoint {shown} belongs to another fit: {', '.join(differences)}; keep to "
                "what it was, give another path, or remove the file to start anew."
            )
        found = _read_state(file, categories)
    except BrokenFileError as error:
        raise ValueError(
            f"{shown} is not a sound checkpoint: {error}; give another path, or remove the file to "
            "start anew."
        ) from None
    if began_with == recorder.began_with:
        return found
    if continued and _result(found) == recorder.began_with:
        return None
    raise ValueError(
        f"The checkpoint {shown} belongs to another fit: it went on from another model; give "
        "another path, or remove the file to start anew."
    )


def _read_identity(file: Contents) -> Identity:
    parts = {}
    for entry in file.take("identity", list):
        match entry:
            case [str() as name, str() as digest, str() as shown]:
                parts[name] = digest, shown
            case _:
                broken("it does not say which fit it belongs to")
    return Identity(parts)


def _read_state(file: Contents, categories: Categories) -> Found:
    kind = file.choice("kind", dict.fromkeys(KINDS.values()))
    strategy = file.choice("strategy", KINDS)
    if KINDS[strategy] != kind:
        broken(f"trees of kind {kind!r} do not come from strategy {strategy!r}")
    d = file.integer("n_outputs", 1, 2**32)
    p = file.integer("n_features", 1, 2**30)
    if p != categories.n_features:
        broken(f"it has trees of {p} features")
    decoder = Decoder(file.value_arrays())
    projection = read_projection(file, decoder)
    search_results = read_search_results(file, decoder)
    decoder.done()
    trees = read_trees(file, kind, d, p, categories.counts)
    progress = read_progress(file, trees, file.texts("left_out"))
    gains = file.array("gains", "f8", (p, d)) if "gains" in file.arrays else None
    found = Found(
        progress,
        gains,
        _read_stopping(file, d, trees.n_rounds),
        file.boolean("ended"),
        file.integer("seed", 0, 2**31),
        strategy,
        projection,
        search_results,
    )
    file.done()
    return found


def _read_stopping(file: Contents, d: int, n_rounds: int) -> dict[str, NDArray[Any]]:
    per_output = "stopping_top" in file.arrays
    stopping = {"best": file.array("stopping_best", "i8", (d if per_output else 1,))}
    if ((stopping["best"] < 0) | (stopping["best"] > n_rounds)).any():
        broken("its best round is none of its rounds")
    if per_output:
        stopping["top"] = file.array("stopping_top", "f8", (d,))
        stopping["frozen"] = file.array("stopping_frozen", "b1", (d,))
    return stopping


def _result(found: Found) -> str:
    """Return the digest of the model that a fit in this state would end with."""
    progress, best = deepcopy(found.progress), found.stopping["best"]
    progress.truncate(int(best.max()))
    if "top" in found.stopping:
        progress.keep_best(best.astype(np.intp))
    return trees_digest(progress)
