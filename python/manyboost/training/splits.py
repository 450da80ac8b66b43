"""Rows set apart for validation: drawn ones, the last ones, or those that a splitter chooses."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from manyboost.arrays import Mask
from manyboost.data.cells import TargetKind, column_name, missing_cells
from manyboost.data.label_weights import weightless_label
from manyboost.data.rows import Rows, count_apart, split_validation
from manyboost.training.parameters import Parameters
from manyboost.training.training_data import Split, TrainingData

RANDOM, LAST = "random", "last"


def is_drawn(parameters: Parameters) -> bool:
    """Whether validation rows are drawn at random."""
    how = parameters.validation_split
    return isinstance(how, str) and how == RANDOM


def read_splits(
    splitter: Any, X: Any, y: Any, groups: Any, n_rows: int, n_folds: int | None
) -> tuple[Split, ...]:
    """Return the splits of a splitter: the last one, or all of them if they are to be folds.

    Splitters that go through time train on the most rows in their last split.
    """
    name = f"validation_split={splitter!r}"
    try:
        pairs = splitter.split(X, y, groups)
        kept = deque(pairs, 1) if n_folds is None else list(islice(pairs, n_folds + 1))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} cannot split these rows: {error}") from error
    if n_folds is not None and len(kept) != n_folds:
        found = "more" if len(kept) > n_folds else str(len(kept))
        remedy = "give both the same number"
        raise ValueError(f"{name} makes {found} splits, but n_folds={n_folds}; {remedy}.")
    if not kept:
        raise ValueError(f"{name} makes no split of the {n_rows} rows; use another splitter.")
    splits = tuple(Split(*(_mask(each, n_rows, name) for each in pair)) for pair in kept)
    for split in splits:
        if (split.train & split.test).any():
            row = int(np.argmax(split.train & split.test))
            what = f"{name} puts row {row} among training rows and validation rows"
            raise ValueError(f"{what}; they must not share rows.")
    if n_folds is not None:
        _refuse_other_folds(splits, name)
    return splits


def same_splits(one: tuple[Split, ...], other: tuple[Split, ...]) -> bool:
    """Whether splits put the same rows into the same parts."""
    first, second = ([(each.train, each.test) for each in splits] for splits in (one, other))
    return np.array_equal(first, second)


def _mask(places: Any, n_rows: int, name: str) -> Mask:
    """Return the rows that a splitter names as a mask."""
    array, mask = np.asarray(places), np.zeros(n_rows, bool)
    whole = array.ndim == 1 and (array.dtype.kind in "iu" or not array.size)
    if not whole or (array < -n_rows).any() or (array >= n_rows).any():
        raise ValueError(f"{name} must name rows by numbers from 0 to {n_rows - 1}, but does not.")
    mask[array.astype(np.intp)] = True
    return mask


def _refuse_other_folds(splits: tuple[Split, ...], name: str) -> None:
    """Refuse splits that do not leave out every row once, and train on all others."""
    times = np.add.reduce([split.test.astype(np.intp) for split in splits])
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        what = f"row {row} is in the validation rows of {times[row]} splits"
    elif unused := [k for k, split in enumerate(splits) if not (split.train | split.test).all()]:
        row = int(np.argmin(splits[unused[0]].train | splits[unused[0]].test))
        what = f"row {row} is in neither part of split {unused[0]}"
    else:
        return
    rule = "folds leave out each row once and train on the others"
    raise ValueError(f"{name} makes no folds, since {what}; {rule}: use KFold, or no n_folds.")


def check_split(parameters: Parameters, data: TrainingData, *, sets_apart: bool) -> None:
    """Refuse a way to set rows apart that has no effect, or contradicts other parameters."""
    if is_drawn(parameters):
        return
    what, by = f"validation_split={parameters.validation_split!r}", "sets rows of X apart"
    if data.validation is not None:
        raise ValueError(f"{what} {by}, but X_val was given; pass one of them.")
    if not sets_apart:
        remedy = "leave it at 'auto', or validation_split at 'random'"
        raise ValueError(f"{what} {by} for early stopping, but early_stopping=False; {remedy}.")
    if parameters.validation_fraction is None:
        raise ValueError(f"{what} {by}, but validation_fraction=None; set a fraction.")
    if parameters.n_folds is not None and data.splits is None:
        folds = f"n_folds={parameters.n_folds} scores on all rows"
        remedy = f"use validation_split=KFold({parameters.n_folds}) for folds of neighbouring rows"
        raise ValueError(f"{what} {by}, but {folds}; {remedy}.")


def set_apart(
    parameters: Parameters, data: TrainingData, fraction: int | float | None, seed: int
) -> TrainingData:
    """Return the data with validation rows, as ``validation_split`` says."""
    if data.splits is None:
        train, validation = drawn_or_last(parameters, data.rows, fraction, seed)
    else:
        train, validation = _parts(parameters, data.rows, data.splits[-1])
    if not is_drawn(parameters):
        what = f"set apart by validation_split={parameters.validation_split!r}"
        refuse_lost_outputs(train, data, f"only in rows {what}", "set other rows apart")
    elif train.weights.stored is not None:
        where, remedy = "only in rows that were drawn for validation", "pass X_val and Y_val"
        refuse_lost_outputs(train, data, where, remedy)
    return replace(data, rows=train, validation=validation)


def drawn_or_last(
    parameters: Parameters, rows: Rows, fraction: int | float | None, seed: int
) -> tuple[Rows, Rows]:
    """Return training rows and validation rows, which are drawn or come last."""
    if is_drawn(parameters) or fraction is None:
        return split_validation(rows, fraction, seed)
    count, numbers, comm = count_apart(rows, fraction), rows.numbers, rows.comm
    end = int(comm.largest([numbers.max(initial=0)])[0]) + 1
    # The first number from which on there are as many rows on all ranks.
    first = bisect_left(range(end), -count, key=lambda n: -comm.total(int((numbers >= n).sum())))
    is_last = numbers >= first
    return rows.take(np.flatnonzero(~is_last)), rows.take(np.flatnonzero(is_last))


def _parts(parameters: Parameters, rows: Rows, split: Split) -> tuple[Rows, Rows]:
    """Return the rows of both parts of a split, without those of no weight."""
    numbers, found = rows.numbers.astype(np.intp), []
    for mask, part in ((split.train, "training"), (split.test, "validation")):
        chosen = np.flatnonzero(mask[numbers])
        if not len(chosen):
            what = f"validation_split={parameters.validation_split!r} leaves no {part} rows"
            raise ValueError(f"{what} with a target of positive weight; use another splitter.")
        found.append(rows.take(chosen))
    return found[0], found[1]


def lost_output(train: Rows, data: TrainingData) -> int | None:
    """Return the first output that training rows never observe, though all rows of ``data`` do."""
    lost = weightless_label(train.weights, len(train))
    if train.weights.partial and train.kind is not TargetKind.CLASSES:
        observed = train.comm.largest(~missing_cells(train.Y).all(axis=0)) > 0
        lost = None if observed.all() else int(np.argmin(observed)) // data.n_levels
    return lost


def refuse_lost_outputs(train: Rows, data: TrainingData, where: str, remedy: str) -> None:
    """Refuse training rows in which some output is never observed, though it was in all rows."""
    if (lost := lost_output(train, data)) is not None:
        name = column_name(lost, data.output_names)
        raise ValueError(f"Output {name} is observed {where}; {remedy}, or leave out this output.")
