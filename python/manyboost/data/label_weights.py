"""Weights of single cells of labels that stay sparse; all other cells have the weight 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from manyboost import _core
from manyboost.arrays import F64
from manyboost.data.cells import cell_error, unobserved_output
from manyboost.data.features import in_canonical_order
from manyboost.data.sparse_labels import SparseLabels, times
from manyboost.data.weights import Weights, single_precision


def check_stored_weight(sample_weight: Any, shape: tuple[int, ...], name: str) -> Any:
    """Return weights of single cells as CSR; cells that are not stored have 1."""
    stored = in_canonical_order(sparse.csr_array(sample_weight, dtype=np.float64))
    if stored.shape != shape:
        wanted = f"a sparse one has a cell for each of the {shape[0]} × {shape[1]} labels"
        raise ValueError(f"{name} has shape {stored.shape}; {wanted}.")
    wrong = np.flatnonzero(~(stored.data >= 0))
    if len(wrong):
        row = int(np.searchsorted(stored.indptr, wrong[0], "right")) - 1
        value = stored.data[wrong[0]]
        what = "is missing (NaN)" if np.isnan(value) else f"is negative ({value:g})"
        rest = "; weights must be at least zero."
        raise cell_error(name, f"{name} {what}", (row, int(stored.indices[wrong[0]])), rest)
    return stored


def weigh_labels(weights: Weights, Y: SparseLabels, table: F64) -> Weights:
    """Multiply weights by those of labels (n_labels, 2), of which the first, of absence, are 1."""
    of_labels = table[Y.labels, 1], Y.labels, Y.starts
    labels = sparse.csr_array(of_labels, shape=Y.shape)
    return replace(weights, stored=single_precision(times(weights.stored, labels), "class_weight"))


def label_sums(Y: SparseLabels, weights: Weights, pool: _core.Pool) -> tuple[F64, F64 | float]:
    """Return for each output the weight of its labels, and of all its cells."""
    sums, totals = Y.sums(weights.rows), weights.total_of_rows(pool, len(Y))
    if weights.stored is None:
        return sums, totals
    outputs, excess, d = weights.stored.indices, weights.excess(), Y.n_outputs
    more = np.bincount(outputs, excess * Y.hold(weights.stored), d)
    return np.asarray(sums + more), np.asarray(totals + np.bincount(outputs, excess, d))


def weightless_label(weights: Weights, n_rows: int) -> int | None:
    """Return a label that is missing in all rows; None: there is none."""
    if weights.stored is None:
        return None
    weightless = weights.stored.indices[weights.stored.data == 0]
    counts = np.bincount(weightless, minlength=weights.stored.shape[1])
    return int(np.argmax(counts)) if (counts == n_rows).any() else None


def refuse_weightless_labels(weights: Weights, n_rows: int, names: Sequence[str] | None) -> None:
    """Refuse sparse labels of which one is missing in all rows."""
    if (label := weightless_label(weights, n_rows)) is not None:
        raise unobserved_output(label, "y", names)
