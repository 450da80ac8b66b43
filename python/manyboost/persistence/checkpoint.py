"""Checkpoint files: the state of a fit, in the container of model files and read as strictly."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from manyboost.data.categories import Categories
from manyboost.persistence import container
from manyboost.persistence.container import BrokenFileError, broken
from manyboost.persistence.files import replacing
from manyboost.persistence.parts import (
    IMPORTANCES,
    KIND,
    N_FEATURES,
    N_OUTPUTS,
    PROJECTION,
    RECORDS,
    SCORE_NAMES,
    SEARCH_RESULTS,
    SEED,
    Array,
    Contents,
    Draft,
    Part,
    choice,
    entry,
    of_type,
    read_trees,
    within,
    write_trees,
)
from manyboost.training.checkpoints import (
    Found,
    Identity,
    Recorder,
    Start,
    State,
    trees_digest,
)
from manyboost.training.strategies import STRATEGIES


def write(recorder: Recorder, state: State) -> None:
    """Replace the checkpoint of a fit."""
    assert recorder.start is not None
    draft = Draft(None, state.progress, recorder.start)
    parts = container.pack(*draft.complete(_parts(recorder, state)))
    # What a killed process leaves behind is overwritten by the next one.
    with replacing(recorder.path, mark="new") as file:
        file.writelines(parts)


def read(recorder: Recorder, categories: Categories, *, continued: bool) -> Found | None:
    """Return the state in the recorder's file, or refuse a file of another fit.

    None, if a warm start continues the very model that the fit in the file ended with.
    """
    shown = repr(str(recorder.path))
    try:
        file = Contents(container.read(recorder.path))
        file.found.categories = categories
        found = file.read(_parts(recorder))
    except BrokenFileError as error:
        raise ValueError(
            f"{shown} is not a sound checkpoint: {error}; give another path, or remove the file to "
            "start anew."
        ) from None
    start = Start(found.seed, found.strategy, found.projection, found.search_results)
    state = Found(found.progress, found.gains, found.stopping, found.ended, start)
    if found.began_with == recorder.began_with:
        return state
    if continued and _result(state) == recorder.began_with:
        return None
    raise ValueError(
        f"The checkpoint {shown} belongs to another fit: it continued another model; give another "
        "path, or remove the file to start anew."
    )


def _parts(recorder: Recorder, state: Any = None) -> list[Part]:
    """Return the parts of a checkpoint; a ``state`` is needed only to write them."""
    parts = recorder.identity.parts.items()
    return [
        entry("content", lambda draft: "checkpoint", choice("checkpoint")),
        entry(
            "identity",
            lambda draft: [[name, *part] for name, part in parts],
            lambda file, name: _check_identity(file, name, recorder),
        ),
        entry(
            "began_with",
            lambda draft: recorder.began_with,
            lambda file, name: file.take(name, (str, type(None))),
        ),
        KIND,
        entry("strategy", lambda draft: draft.start.strategy, _read_strategy),
        N_OUTPUTS,
        N_FEATURES,
        SEED,
        PROJECTION,
        SEARCH_RESULTS,
        Part("trees", write_trees, _read_trees),
        entry("left_out", _left_out, Contents.texts),
        SCORE_NAMES,
        RECORDS,
        Part("gains", lambda draft: _write_gains(draft, state), _read_gains),
        Part("stopping", lambda draft: _write_stopping(draft, state), _read_stopping),
        entry("ended", lambda draft: state.ended, of_type(bool)),
    ]


def _check_identity(file: Contents, name: str, recorder: Recorder) -> None:
    """Refuse the file of another fit."""
    parts = {}
    for each in file.take(name, list):
        match each:
            case [str() as part, str() as digest, str() as shown]:
                parts[part] = digest, shown
            case _:
                broken("it does not say which fit it belongs to")
    differences = recorder.identity.differences(Identity(parts))
    if differences:
        raise ValueError(
            f"The checkpoint {str(recorder.path)!r} belongs to another fit: "
            f"{', '.join(differences)}; keep to what it was, give another path, or remove the file "
            "to start anew."
        )


def _read_strategy(file: Contents, name: str) -> str:
    strategy, kind = choice(*STRATEGIES)(file, name), file.found.kind
    if STRATEGIES[strategy].trees != kind:
        broken(f"trees of kind {kind!r} do not come from strategy {strategy!r}")
    return strategy


def _read_trees(file: Contents) -> Any:
    categories, p = file.found.categories, file.found.n_features
    if p != categories.n_features:
        broken(f"it has trees of {p} features")
    return read_trees(file, categories.counts)


def _left_out(draft: Draft) -> list[str]:
    return [IMPORTANCES] if draft.progress.importances is None else []


def _write_gains(draft: Draft, state: State) -> None:
    if state.gains is not None:
        draft.arrays["gains"] = state.gains


def _read_gains(file: Contents) -> Array | None:
    shape = file.found.n_features, file.found.n_outputs
    return file.array("gains", "f8", shape) if "gains" in file.arrays else None


def _write_stopping(draft: Draft, state: State) -> None:
    draft.arrays |= {f"stopping_{name}": array for name, array in state.stopping.items()}


def _read_stopping(file: Contents) -> dict[str, Array]:
    d, per_output = file.found.n_outputs, "stopping_top" in file.arrays
    best = file.array("stopping_best", "i8", (d if per_output else 1,))
    stopping = {"best": within(best, 0, file.found.trees.n_rounds)}
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
