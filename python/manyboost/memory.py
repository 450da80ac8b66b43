"""Memory: what training takes, what there is, and an error that says what to do.

Large allocations that fail raise MemoryError. Most systems promise more memory than they have,
though, and kill the process that uses it. So estimates are compared with what is free beforehand.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scipy import sparse

from manyboost.control_groups import own_groups

# Bytes for small objects, threads and the allocator, which no estimate counts.
_MARGIN = 1 << 24
# The core keeps histograms of at most so many bytes, and of at most so many nodes.
_HISTOGRAMS, _HISTOGRAM_NODES = 1 << 30, 64
# It packs gradient and count of fewer rows in one number, and copies of up to so many lanes.
_PACKED_ROWS, _PACKED_LANES = 1 << 20, 8
# From so many lanes on it copies them in vectors of eight.
_VECTOR_LANES = 24
# It sorts so many columns at once, in at most so many threads.
_SORTED_COLUMNS, _SORTERS = 8, 16
#: Outputs with trees of their own whose steps are found together: enough for vectors of them, few
#: enough for an array of their directions.
STEPS_TOGETHER = 32


class ExplainedMemoryError(MemoryError):
    """A MemoryError that says what needs how much memory, and what to do."""


# ---------------------------------------------------------------------- what training takes


@dataclass(frozen=True)
class Training:
    """What the memory of training depends on, besides the data."""

    n_outputs: int
    n_columns: int  # of gradients that a tree is grown on
    row_weights: bool
    cell_weights: bool
    residuals_only: bool  # without raw predictions beside them
    splits: bool  # some of the rows will be set apart for validation
    max_bins: int
    max_leaves: int  # the most that a tree can have
    tree_kind: str  # "vector", "scaled" or "per_output": what leaves hold
    rounds: int  # that training will certainly do; 0 if it may end at any time
    threads: int
    n_members: int = 1  # models that are trained side by side, each without one fold
    keeps_sparse: bool = False  # labels stay sparse
    leaf_outputs: int | None = None  # that have a value in a leaf; None: all

    def needs(self, X: Any, Y: Any) -> dict[str, int]:
        """Return the bytes that training takes besides checked features and encoded targets."""
        (n, n_features), d = X.shape, self.n_outputs
        # Labels are trained on as they are, unless residuals take the place of targets.
        copies = Y.dtype.kind == "f" or self.residuals_only
        targets = (Y.nbytes if self.splits else 0) + (4 * n * d if copies else 0)
        lanes = self.n_columns if self.cell_weights else int(self.row_weights)
        # One column without weights is packed: sum and count in one number.
        packed = self.n_columns == 1 and lanes == 0 and n < _PACKED_ROWS
        width = self.n_columns + lanes + 1
        # Lanes of all rows, and a copy of those of a node: if packed, of the smaller child at most.
        copied = 8 * (width - 1) if width - 1 <= _PACKED_LANES else 0
        copied = 32 * -(-width // 8) if width >= _VECTOR_LANES else copied
        summed_rows = n * (8 + 4 if packed else 4 * width + copied)
        # Beside them the rows of each node, twice, and the leaves of rows, of two rounds.
        grown = n * (4 * self.n_columns + 16) + summed_rows
        if self.tree_kind == "per_output":  # directions of outputs whose steps are found together
            grown += 4 * n * min(d, STEPS_TOGETHER)
        histogram = 8 * n_features * min(self.max_bins + 1, n) * (1 if packed else width)
        fits = histogram * (min(self.max_leaves, _HISTOGRAM_NODES) + 1) <= _HISTOGRAMS
        # About half of the nodes are open at a time.
        kept = min(histogram * (self.max_leaves // 2 + 2), _HISTOGRAMS) if fits else 0
        # Each thread sums leaves of its own; then there are the total, and both as real numbers.
        tables = self.threads + 3
        summed = 1 if self.tree_kind == "per_output" else d
        values = self.max_leaves + d if self.tree_kind == "scaled" else self.max_leaves * d
        # Rows are in leaves, which are numbered by one byte, two, or four.
        place = 1 if self.max_leaves <= 1 << 8 else 2 if self.max_leaves <= 1 << 16 else 4
        outputs = targets + (0 if self.residuals_only else 8 * n * d)
        sums = self.max_leaves * (16 * summed * tables + 16 * width + 400)
        if self.keeps_sparse:
            # Labels by row and by output; numbers of outputs, and their sums in each thread.
            outputs = 3 * Y.nbytes + n * place * max(self.rounds, 1) + 40 * d
            sums = self.max_leaves * (16 * width + 400) + (16 * self.threads + 24) * d
            if self.leaf_outputs is not None:
                values = 3 * self.max_leaves * self.leaf_outputs
        needs = {
            # Cuts are found before gradients are there.
            "features": self._features(X) + max(0, self._cutting(X) - grown),
            "outputs": outputs,
            "split gradients": grown,
            "histograms": kept,
            "leaves": sums,
            # Four bytes a value, in a list with room for half as many again.
            "the model": 6 * self.rounds * values,
        }
        if self.n_members == 1:
            return needs
        # Each member has all rows but those of its fold. All folds together are a copy of the rows,
        # and so is what one member is made of; in the end there are out-of-fold predictions.
        needs = {name: size * (self.n_members - 1) for name, size in needs.items()}
        stored = X.data.nbytes if sparse.issparse(X) else 0 if _is_in_files(X) else X.nbytes
        needs["features"] += 2 * stored + 16 * n
        needs["outputs"] += 2 * Y.nbytes + (8 + 24) * n * d
        return needs

    def _features(self, X: Any) -> int:
        """Return the bytes of copies of the features, and of their bins."""
        if _is_in_files(X):
            return 32 * int(X.shape[0])  # some columns at a time; the bins are in a file
        size = X.dtype.itemsize
        held_out = size if self.splits else 0
        if sparse.issparse(X):
            # Copies by row, in single precision; by column; bins with their rows; bins by row.
            copies = held_out + (4 if self.splits else 0) + (0 if size == 4 else 4)
            return int(X.nnz * (copies + 8 + 5 + 8))
        is_single = size == 4 and X.flags.c_contiguous
        return int(X.shape[0] * X.shape[1] * (held_out + (0 if is_single else 4) + 1))

    def _cutting(self, X: Any) -> int:
        """Return the bytes that finding the cuts of dense features takes, beyond those of bins."""
        if _is_in_files(X) or sparse.issparse(X):
            return 0
        n, n_features = X.shape
        sorters = min(self.threads, _SORTERS)
        columns = min(max(1, _SORTED_COLUMNS // sorters) * sorters, n_features)
        weights = 16 + 16 * sorters if self.row_weights or self.cell_weights else 0
        return int(n * (4 * (columns + min(sorters, columns)) + weights - n_features))


def _is_in_files(X: Any) -> bool:
    return bool(getattr(X, "is_in_files", False))


_FEWER = "train on fewer rows or outputs at a time"
_REMEDIES = {
    "features": "pass fewer rows or features, X as float32, or sparse X",
    "outputs": _FEWER,
    "split gradients": f"{_FEWER}, or use fewer components",
    "histograms": "use a smaller max_bins or max_leaf_nodes, or strategy='relabel'",
    "leaves": "use a smaller max_leaf_nodes or a larger min_samples_leaf",
    "the model": "use a smaller max_iter or max_leaf_nodes, or strategy='project'",
}
_FEWER_ROWS = "predict fewer rows at a time"
_PREDICT_LESS = "predict fewer rows or outputs at a time (outputs=…), or with dtype=numpy.float32"


def check_training(training: Training, X: Any, Y: Any) -> None:
    """Refuse to train if there is too little memory."""
    needs = training.needs(X, Y)
    most = max(needs, key=needs.__getitem__)
    data = f"{X.shape[0]:,} rows, {X.shape[1]:,} features and {training.n_outputs:,} outputs"
    remedy = f"most of it is for {most}: {_REMEDIES[most]}"
    check(sum(needs.values()), f"Training on {data}", remedy)


def check_labels(n_rows: int, n_labels: int, name: str, obstacle: str | None = None) -> None:
    """Refuse to make sparse labels dense, and to train on them, if there is too little memory.

    ``obstacle`` is what keeps them from staying sparse.
    """
    what, size = ("Training on", 9) if name == "y" else (f"{name},", 1)
    what += f" {n_rows:,} rows of {n_labels:,} labels"
    remedy = "pass fewer rows or labels at a time"
    if obstacle is not None:
        remedy += (
            f", or let them stay sparse, which {obstacle} keeps them from: use max_leaf_outputs "
            "with loss='log_loss' or 'squared_error', or the latter with strategy='project'"
        )
    check(n_rows * n_labels * size, what, remedy)


def check_predictions(n_rows: int, n_outputs: int) -> None:
    """Refuse to predict in double precision if there is too little memory."""
    what = f"Predicting {n_outputs:,} outputs of {n_rows:,} rows"
    check(n_rows * n_outputs * 8, what, _PREDICT_LESS)


def check_results(n_rows: int, row_size: int) -> None:
    """Refuse to predict in blocks if there is too little memory for all results."""
    check(n_rows * row_size, f"Predicting {n_rows:,} rows", _FEWER_ROWS)


# ---------------------------------------------------------------------- the error


def check(needed: int, what: str, remedy: str) -> None:
    """Raise an error if ``what`` needs more bytes than there are."""
    if needed < _MARGIN:
        return
    free, total = available(), needed + _MARGIN
    if free is not None and total > free:
        raise ExplainedMemoryError(
            f"{what} needs about {_words(total)} of memory, but {_words(free)} are free; {remedy}."
        )


@contextlib.contextmanager
def explaining(what: str, remedy: str) -> Iterator[None]:
    """Make a MemoryError say what ran out of memory, how much was missing, and what to do."""
    try:
        yield
    except ExplainedMemoryError:
        raise
    except MemoryError as error:
        missing = f" ({str(error).rstrip('.')})" if str(error) else ""
        raise ExplainedMemoryError(f"{what} ran out of memory{missing}; {remedy}.") from error


_TRAIN_LESS = "train on fewer rows, features or outputs, X as float32, or with fewer max_leaf_nodes"
explaining_fit = partial(explaining, "Training", _TRAIN_LESS)
explaining_predictions = partial(explaining, "Predicting", _FEWER_ROWS)
explaining_writing = partial(
    explaining, "Writing the model", "free some, or write it before other objects are made"
)


@contextlib.contextmanager
def explaining_reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Refuse to read a model file if there is too little memory, and explain failures."""
    name = f"{os.fspath(path)!r}"
    remedy = "read it where there is more, or save fewer rounds or leaves, or strategy='project'"
    try:
        size = Path(path).stat().st_size
    except OSError:
        size = 0  # whoever opens the file says why it cannot be read
    # The bytes of the file, and the trees made of them.
    check(2 * size, f"Reading {name}", remedy)
    with explaining(f"Reading the {_words(size)} of {name}", remedy):
        yield


def _words(size: int) -> str:
    if size < 1e6:
        return f"{size / 1e3:.0f} kB"
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


# ---------------------------------------------------------------------- what there is


def available() -> int | None:
    """Return the bytes that this process may still take; None if the system does not say."""
    rooms = []
    for look in (_of_machine, _of_group, _of_process):
        # Other systems do not have these files, or write them differently.
        with contextlib.suppress(OSError, ValueError, IndexError, KeyError, ImportError):
            rooms.append(look())
    return min((room for room in rooms if room is not None), default=None)


def _of_machine() -> int | None:
    """Return the memory that is free or can be freed, and the free swap space."""
    fields = _fields(Path("/proc/meminfo"))
    return 1024 * (fields["MemAvailable:"] + fields.get("SwapFree:", 0))


def _of_group() -> int | None:
    """Return what the limits of the control group of this process, and of its parents, leave."""
    names = {
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        2: ("memory.max", "memory.current"),
    }
    rooms = [_room_in(group, *names[version]) for version, group in own_groups("memory")]
    return min((room for room in rooms if room is not None), default=None)


def _room_in(group: Path, limit: str, usage: str) -> int | None:
    try:
        most = int((group / limit).read_text())  # "max" is no number
        used = int((group / usage).read_text())
        # The system drops cached files before it refuses memory.
        droppable = _fields(group / "memory.stat").get("inactive_file", 0)
    except (OSError, ValueError, IndexError):
        return None
    return max(1, most - used + droppable)


def _of_process() -> int | None:
    """Return what the limit on the address space (``ulimit -v``) leaves."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return max(1, limit - pages * os.sysconf("SC_PAGE_SIZE"))


def _fields(file: Path) -> dict[str, int]:
    """Return a file of names and numbers as a dict."""
    lines = (line.split() for line in file.read_text().splitlines())
    return {line[0]: int(line[1]) for line in lines if len(line) > 1}
