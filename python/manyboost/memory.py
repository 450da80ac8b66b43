"""Memory: what training will need, what there is, and a way out where it is not enough.

Large allocations that fail raise MemoryError. Most systems promise more memory than they have,
though, and end the process that takes it at its word; so what is about to be taken is compared with
what is there.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import sparse

from manyboost.data.stored import StoredTable

# What small objects, threads and the allocator take besides what is counted.
_MARGIN = 1 << 24
# The largest budget for histograms that the core keeps, and the most nodes that it keeps them for.
_HISTOGRAMS, _HISTOGRAM_NODES = 1 << 30, 64

_CGROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


@dataclass(frozen=True)
class Part:
    """Some of the memory that is needed, and what makes it less."""

    what: str
    size: int
    remedy: str


@dataclass(frozen=True)
class Training:
    """What the memory of training depends on.

    ``components`` are the columns that a tree is grown on, ``weight_lanes`` the weights that go
    with them; ``in_place`` says that residuals are the only state, ``splits`` that validation rows
    are to be set apart, ``summed`` for how many outputs leaves are summed at a time, and ``scaled``
    that leaves have one value. ``rounds`` is 0 if training may end at any time.
    """

    n_outputs: int
    components: int
    weight_lanes: int
    in_place: bool
    splits: bool
    max_bins: int
    leaves: int
    summed: int
    scaled: bool
    rounds: int
    threads: int

    def parts(self, X: Any, Y: Any) -> list[Part]:
        """Return what checked features and encoded targets will take, besides themselves."""
        n, d = X.shape[0], self.n_outputs
        features = self._features(X)
        targets = (Y.nbytes if self.splits else 0) + (4 * n * d if Y.dtype.kind == "f" else 0)
        state = targets + (0 if self.in_place else 8 * n * d)
        width = self.components + self.weight_lanes + 1
        packed = self.components == 1 and self.weight_lanes == 0
        gradients = n * (4 * self.components + (8 if packed else 4 * width) + 12)
        bins = min(self.max_bins + 1, n)
        histogram = 8 * X.shape[1] * bins * (1 if packed else width)
        keeps = histogram * (min(self.leaves, _HISTOGRAM_NODES) + 1) <= _HISTOGRAMS
        # Half of the nodes are open at a time, mostly.
        kept = min(histogram * (self.leaves // 2 + 2), _HISTOGRAMS) if keeps else 0
        pieces = max(4 * self.threads, 2 * n * d // 40_000_000) if self.threads > 1 else 1
        # Sums of all outputs in each piece of the rows, and what is known of a leaf.
        sums = self.leaves * (16 * self.summed * pieces + 16 * width + 400)
        values = self.leaves + d if self.scaled else self.leaves * d
        # (A list that grows has room for half as much again.)
        model = 6 * self.rounds * values
        fewer = "train on fewer rows or outputs at a time"
        return [
            Part("features", features, "pass fewer rows or features, X as float32, or sparse X"),
            Part("outputs", state, fewer),
            Part("split gradients", gradients, f"{fewer}, or use fewer components"),
            Part(
                "histograms",
                kept,
                "use a smaller max_bins or max_leaf_nodes, or strategy='relabel'",
            ),
            Part("leaves", sums, "use a smaller max_leaf_nodes or a larger min_samples_leaf"),
            Part(
                "the model",
                model,
                "use a smaller max_iter or max_leaf_nodes, or strategy='project'",
            ),
        ]

    def _features(self, X: Any) -> int:
        """Bytes of copies of the features, and of their bins."""
        if sparse.issparse(X):
            stored = X.nnz
            copies = (X.dtype.itemsize + 4 if self.splits else 0) + (X.dtype.itemsize != 4) * 4
            # By columns; bins and their rows; and by rows again.
            return int(stored * (copies + 8 + 5 + 8))
        if isinstance(X, StoredTable):
            # Some columns at a time; bins lie in a file.
            return 32 * X.shape[0]
        cells, single = X.shape[0] * X.shape[1], X.dtype.itemsize == 4 and X.flags.c_contiguous
        copies = (X.dtype.itemsize if self.splits else 0) + (0 if single else 4)
        return int(cells * (copies + 1))


def check_training(training: Training, X: Any, Y: Any) -> None:
    """Refuse to train where there is too little memory."""
    parts = training.parts(X, Y)
    most = max(parts, key=lambda part: part.size)
    rows, features = X.shape
    check(
        sum(part.size for part in parts),
        f"Training on {rows:,} rows, {features:,} features and {training.n_outputs:,} outputs",
        f"most of it is for {most.what}: {most.remedy}",
    )


def check_labels(n_rows: int, n_labels: int, name: str) -> None:
    """Refuse to spread out labels, and the state of their training, without the memory for it."""
    is_trained_on = name == "y"
    check(
        n_rows * n_labels * (9 if is_trained_on else 1),
        f"{'Training on' if is_trained_on else name + ','} {n_rows:,} rows of {n_labels:,} labels",
        "pass fewer rows or labels at a time",
    )


def check_predictions(n_rows: int, n_outputs: int, itemsize: int) -> None:
    """Refuse predictions for which there is too little memory."""
    check(
        n_rows * n_outputs * itemsize,
        f"Predicting {n_outputs:,} outputs of {n_rows:,} rows",
        _PREDICT_LESS,
    )


_PREDICT_LESS = (
    "predict fewer rows at a time, some outputs (outputs=…), or with dtype=numpy.float32"
)


def check(needed: int, what: str, remedy: str) -> None:
    """Refuse to go on if so many bytes are needed and there are fewer."""
    if needed < _MARGIN:
        return
    free = available()
    if free is not None and needed + _MARGIN > free:
        raise _explained(
            f"{what} needs about {_words(needed)} of memory, but {_words(free)} are free; {remedy}."
        )


def _explained(sentence: str) -> MemoryError:
    error = MemoryError(sentence)
    error.explained = True  # type: ignore[attr-defined]
    return error


@contextlib.contextmanager
def explaining(what: str, remedy: str) -> Iterator[None]:
    """Make a MemoryError say what ran out of it, how much was missing, and what to do."""
    try:
        yield
    except MemoryError as error:
        if hasattr(error, "explained"):
            raise
        missing = f" ({str(error).rstrip('.')})" if str(error) else ""
        raise _explained(f"{what} ran out of memory{missing}; {remedy}.") from error


def explaining_fit() -> contextlib.AbstractContextManager[None]:
    """Explain what a fit ran out of."""
    return explaining(
        "Training",
        "train on fewer rows, features or outputs at a time, pass X as float32, or use a smaller "
        "max_leaf_nodes",
    )


def explaining_predictions() -> contextlib.AbstractContextManager[None]:
    """Explain what predictions ran out of."""
    return explaining("Predicting", _PREDICT_LESS)


@contextlib.contextmanager
def explaining_reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Refuse to read a model file for which there is too little memory, and explain failures."""
    name = f"{os.fspath(path)!r}"
    remedy = (
        "read it where there is more, or save a smaller model (fewer rounds or leaves, "
        "strategy='project')"
    )
    try:
        size = Path(path).stat().st_size
    except OSError:
        size = 0  # whoever opens it says why it cannot be read
    # The bytes of the file, and the trees made of them.
    check(2 * size, f"Reading {name}", remedy)
    with explaining(f"Reading the {_words(size)} of {name}", remedy):
        yield


def explaining_writing() -> contextlib.AbstractContextManager[None]:
    """Explain what writing a model ran out of."""
    return explaining("Writing the model", "free some, or write it before anything else is held")


def _words(size: int) -> str:
    if size < 1e6:
        return f"{size / 1e3:.0f} kB"
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


# ---------------------------------------------------------------------- what there is


def available() -> int | None:
    """Return the bytes that this process may still take; None where that cannot be known."""
    rooms = [room for look in (_of_machine, _of_group, _of_process) if (room := _try(look))]
    return min(rooms, default=None)


def _try(look: Callable[[], int | None]) -> int | None:
    # (Files that other systems do not have, or write in another way.)
    with contextlib.suppress(OSError, ValueError, IndexError, KeyError, ImportError):
        return look()
    return None


def _of_machine() -> int | None:
    """Free memory and what can be freed, with the swap space."""
    fields = _fields(Path("/proc/meminfo"))
    return 1024 * (fields["MemAvailable:"] + fields.get("SwapFree:", 0))


def _of_group() -> int | None:
    """What limits on groups of processes leave, that of this one and those above it."""
    rooms = []
    for line in _OWN_GROUPS.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, limit, usage = _CGROUPS, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit = _CGROUPS / "memory", "memory.limit_in_bytes"
            usage = "memory.usage_in_bytes"
        else:
            continue
        group = root / path.lstrip("/")
        while True:
            rooms.append(_room_in(group, limit, usage))
            if group in (root, group.parent):
                break
            group = group.parent
    return min((room for room in rooms if room is not None), default=None)


def _room_in(group: Path, limit: str, usage: str) -> int | None:
    try:
        most = int((group / limit).read_text())  # "max" is no number
        used = int((group / usage).read_text())
        # What was read from files is forgotten before anything is refused.
        forgettable = _fields(group / "memory.stat").get("inactive_file", 0)
    except (OSError, ValueError, IndexError):
        return None
    return max(1, most - used + forgettable)


def _of_process() -> int | None:
    """What the limit on its own address space leaves (``ulimit -v``)."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return max(1, limit - pages * os.sysconf("SC_PAGE_SIZE"))


def _fields(file: Path) -> dict[str, int]:
    """Return the numbers of a file of names and numbers."""
    lines = (line.split() for line in file.read_text().splitlines())
    return {line[0]: int(line[1]) for line in lines if len(line) > 1}
