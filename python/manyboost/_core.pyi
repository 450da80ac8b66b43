"""Compiled kernels: arrays in, arrays out. Matrices are C-contiguous and row-major."""

import os
from collections.abc import Sequence
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

_F32 = NDArray[np.float32]
_F64 = NDArray[np.float64]
_U32 = NDArray[np.uint32]
# Starts, indices and values of a compressed sparse matrix.
_Sparse = tuple[NDArray[np.int64], NDArray[np.int32], _F32]
# Values of a few outputs for each leaf: where each leaf begins, outputs, values.
_SparseLeaves = tuple[NDArray[np.int64], _U32, _F32]
# One output, or a half-open range of outputs.
_Outputs = int | tuple[int, int]

# Weights of rows (n,) and of cells (n, d); whether targets are missing.
class _Weights(Protocol):
    @property
    def rows(self) -> _F32 | None: ...
    @property
    def cells(self) -> _F32 | None: ...
    @property
    def partial(self) -> bool: ...

__version__: str
__sources__: str
__all__ = [
    "ColumnBinner",
    "Ensemble",
    "Features",
    "Grower",
    "LabelRows",
    "Objective",
    "Pool",
    "Tree",
    "__sources__",
    "__version__",
    "add_leaves",
    "apply_link",
    "book_gains",
    "centred",
    "column_quantiles",
    "column_sums",
    "dots",
    "draw_projection",
    "leaf_quantiles",
    "leaf_sums",
    "leaf_weights",
    "look_ahead",
    "project",
    "quantile_steps",
    "sample_rows",
    "share",
    "simd_level",
    "sweep",
    "validation_rows",
]

@final
class Pool:
    def __new__(cls, threads: int) -> Pool: ...
    def among(self, comm: Any, n_rows: int) -> Pool: ...
    def all_rows(self, n_rows: int) -> int: ...
    def largest(self, numbers: _F64) -> _F64: ...
    def totals(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]: ...
    @property
    def threads(self) -> int: ...

@final
class Features:
    @staticmethod
    def fit(
        pool: Pool, x: _F32, weight: _F64 | None, max_bins: int, n_categories: _U32 | None = None
    ) -> Features: ...
    @staticmethod
    def fit_sparse(
        pool: Pool, x: _Sparse, n_rows: int, weight: _F64 | None, max_bins: int
    ) -> Features: ...
    def bin(self, pool: Pool, x: _F32) -> Features: ...
    def bin_sparse(self, pool: Pool, x: _Sparse, n_rows: int) -> Features: ...
    def take(self, pool: Pool, rows: _U32) -> Features: ...
    def thresholds(self, feature: int) -> _F32: ...
    def column(self, feature: int) -> NDArray[np.uint8]: ...

@final
class ColumnBinner:
    def __new__(
        cls,
        pool: Pool,
        path: str | os.PathLike[str],
        n_rows: int,
        weight: _F64 | None,
        max_bins: int,
        n_categories: _U32 | None = None,
    ) -> ColumnBinner: ...
    @staticmethod
    def known(path: str | os.PathLike[str], n_rows: int, features: Features) -> ColumnBinner: ...
    def push(self, pool: Pool, columns: _F32) -> None: ...
    def finish(self) -> Features: ...

@final
class Grower:
    def __new__(
        cls,
        features: Features,
        *,
        max_leaf_nodes: int,
        max_depth: int,
        min_samples_leaf: int,
        min_split_gain: float,
        max_features: int,
        seed: int,
        interactions: list[list[int]] | None = None,
    ) -> Grower: ...
    def grow(
        self,
        pool: Pool,
        z: _F32,
        weight: _F32 | None,
        rows: _U32 | None,
        round: int,
        output: int,
        signs: NDArray[np.int8] | None = None,
    ) -> Tree: ...

@final
class Tree:
    @staticmethod
    def leaf() -> Tree: ...
    @property
    def n_leaves(self) -> int: ...
    @property
    def leaf_of_row(self) -> _U32: ...
    @property
    def leaf_weights(self) -> _F64: ...
    def with_covers(self, leaf_weights: _F64) -> Tree: ...
    def ordered_features(self) -> _U32: ...
    def order_leaves(self, signs: NDArray[np.int8], weights: _F64, values: _F64) -> _F64: ...
    def apply(self, pool: Pool, features: Features) -> _U32: ...

@final
class Ensemble:
    def __new__(cls, kind: str, n_outputs: int, n_features: int) -> Ensemble: ...
    @property
    def kind(self) -> str: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_rounds(self) -> int: ...
    def push(self, tree: Tree, values: _F32, steps: _F32 | None = None) -> None: ...
    def push_sparse(self, tree: Tree, values: _SparseLeaves) -> None: ...
    def truncate(self, n_rounds: int) -> None: ...
    def keep(self, rounds: NDArray[np.uint64]) -> None: ...
    def add_to(self, pool: Pool, x: _F32 | _Sparse, start: int, stop: int, raw: _F32) -> None: ...
    def predict(
        self, pool: Pool, x: _F32 | _F64 | _Sparse, stop: int, baseline: _F64, out: _F64
    ) -> None: ...
    def top_k(
        self, pool: Pool, x: _F32 | _Sparse, stop: int, baseline: _F64, k: int
    ) -> tuple[_U32, _F64]: ...
    def support(
        self, pool: Pool, x: _F32 | _Sparse, stop: int, baseline: _F64
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], _F64]: ...
    def add_shap_values(self, pool: Pool, x: _F32 | _Sparse, out: _F64) -> None: ...
    def add_shap_interactions(self, pool: Pool, x: _F32 | _Sparse, out: _F64) -> None: ...
    def expected(self) -> _F64: ...
    def leaves(
        self, pool: Pool, x: _F32 | _Sparse, start: int = 0, stop: int | None = None
    ) -> _U32: ...
    def of_outputs(self, outputs: list[int]) -> Ensemble: ...
    @property
    def n_members(self) -> int: ...
    @staticmethod
    def mean(members: list[Ensemble]) -> Ensemble: ...
    def member(self, member: int) -> Ensemble: ...
    def refilled(self, tree: int, leaf_of_row: _U32, leaf_weights: _F64) -> Tree: ...
    def steps(self) -> _F32: ...
    def sparse_leaf_values(self, tree: int) -> _SparseLeaves: ...
    def leaf_values(self, tree: int) -> _F32: ...
    def tree_sizes(self) -> _U32: ...
    def tree(
        self, tree: int
    ) -> tuple[_U32, _F32, _U32, NDArray[np.bool_], _F32, _F32, list[NDArray[np.uint8] | None]]: ...
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    @staticmethod
    def from_arrays(
        kind: str,
        n_outputs: int,
        n_features: int,
        n_members: int,
        arrays: dict[str, NDArray[Any]],
        n_categories: _U32 | None = None,
    ) -> Ensemble: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Ensemble: ...
    def __deepcopy__(self, _memo: Any) -> Ensemble: ...

@final
class LabelRows:
    def __new__(
        cls, n_outputs: int, starts: NDArray[np.int64], labels: NDArray[np.int32]
    ) -> LabelRows: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...
    @property
    def n_trees(self) -> int: ...
    def mark(
        self, starts: NDArray[np.int64], outputs: NDArray[np.int32], weights: _F32
    ) -> None: ...
    def cell_shares(self, phi: _F32, shares: _F32) -> None: ...
    def marked_squares(self, leaf_of_row: _U32, values: _F64, weight: _F32 | None) -> _F64: ...
    def push(self, trees: Ensemble, leaf_of_row: _U32, n_leaves: int) -> None: ...
    def project(self, pool: Pool, trees: Ensemble, phi: _F32, start: _F64, z: _F32) -> None: ...
    def slopes(
        self,
        pool: Pool,
        trees: Ensemble,
        leaf_of_row: _U32,
        values: _F64,
        weight: _F32 | None,
        start: _F64,
    ) -> _F64: ...
    def leaf_sums(
        self,
        pool: Pool,
        trees: Ensemble,
        leaf_of_row: _U32,
        n_leaves: int,
        weight: _F32 | None,
        start: _F64,
        order: _U32,
        most: int,
        damping: float,
    ) -> tuple[NDArray[np.int64], _U32, _F64, _F64]: ...
    def leaf_products(
        self,
        pool: Pool,
        trees: Ensemble,
        leaf_of_row: _U32,
        values: _SparseLeaves,
        weight: _F32 | None,
        start: _F64,
    ) -> tuple[float, float]: ...
    def log_loss(
        self,
        pool: Pool,
        trees: Ensemble,
        baseline: _F32,
        weight: _F32 | None,
        phi: _F32 | None = None,
        z: _F32 | None = None,
    ) -> float: ...
    def log_leaf_sums(
        self,
        pool: Pool,
        trees: Ensemble,
        leaf_of_row: _U32,
        n_leaves: int,
        baseline: _F32,
        weight: _F32 | None,
        order: _U32,
        most: int,
        damping: float,
    ) -> tuple[NDArray[np.int64], _U32, _F64, _F64]: ...

@final
class Objective:
    def __new__(cls, loss: str | list[tuple[str, int]], offset: _F32, param: _F32) -> Objective: ...
    def advance(
        self,
        pool: Pool,
        y: NDArray[Any],
        raw: _F32,
        weights: _Weights,
        out: _F32,
        *,
        leaf_of_row: _U32 | None = None,
        values: _F32 | None = None,
        steps: _F32 | None = None,
        phi: _F32 | None = None,
        z: _F32 | None = None,
        omega: _F32 | None = None,
        shares: _F32 | None = None,
    ) -> tuple[float, _F64]: ...
    def loss_sum(self, pool: Pool, y: NDArray[Any], raw: _F32, weights: _Weights) -> float: ...
    def output_losses(self, pool: Pool, y: NDArray[Any], raw: _F32, weights: _Weights) -> _F64: ...
    def curvature_bound(self, heaviest: _F64, max_residual: _F64, largest_target: _F64) -> _F64: ...
    @property
    def curvature_uses_target(self) -> bool: ...
    def curvatures(self, pool: Pool, y: NDArray[Any], residuals: _F32, out: _F32) -> None: ...
    def derivatives(
        self,
        pool: Pool,
        y: NDArray[Any],
        raw: _F32,
        weights: _Weights,
        leaf_of_row: _U32 | None,
        values: _F32,
        rho: _F64,
        output: _Outputs | None = None,
        active: NDArray[np.bool_] | None = None,
    ) -> tuple[_F64, _F64]: ...
    def softmax_along(
        self,
        pool: Pool,
        y: NDArray[Any],
        raw: _F32,
        weights: _Weights,
        leaf_of_row: _U32 | None,
        values: _F32,
        rho: _F64,
        v: _F64,
        output: _Outputs | None = None,
    ) -> tuple[float, _F64, _F64]: ...
    def leaf_sums(
        self,
        pool: Pool,
        tree_leaves: _U32,
        n_leaves: int,
        y: NDArray[Any],
        residuals: _F32,
        weights: _Weights,
        max_residual: _F64,
        max_curvature: _F64,
        output: _Outputs | None = None,
    ) -> tuple[_F64, _F64]: ...

def leaf_sums(
    pool: Pool,
    leaf_of_row: _U32,
    n_leaves: int,
    residuals: _F32,
    curvatures: _F32 | None,
    weights: _Weights,
    max_residual: _F64,
    max_curvature: _F64,
    output: _Outputs | None = None,
) -> tuple[_F64, _F64 | None]: ...
def leaf_weights(
    pool: Pool,
    leaf_of_row: _U32,
    n_leaves: int,
    y: NDArray[Any],
    weights: _Weights,
    output: _Outputs | None = None,
) -> _F64: ...
def leaf_quantiles(
    pool: Pool,
    leaf_of_row: _U32,
    n_leaves: int,
    y: _F32,
    raw: _F32,
    levels: _F64,
    weights: _Weights,
    output: _Outputs | None = None,
) -> _F64: ...
def sweep(
    pool: Pool,
    residuals: _F32,
    weight: _F32 | None,
    pending: Sequence[tuple[_U32, _F32, _F32 | None]],
    *,
    leaf_of_row: _U32 | None = None,
    bounds: _F64 | None = None,
    n_leaves: int = 0,
    phi: _F32 | None = None,
    z: _F32 | None = None,
) -> tuple[float, _F64, _F64]: ...
def look_ahead(
    pool: Pool,
    update: tuple[_U32, _F32, _F32 | None],
    n_outputs: int,
    sums: tuple[_F64, _F64] | None = None,
    *,
    phi: _F32 | None = None,
    z: _F32 | None = None,
) -> tuple[float, _F64]: ...
def add_leaves(
    pool: Pool,
    leaf_of_row: _U32,
    values: _F32,
    steps: _F32 | None,
    raw: _F32,
    output: _Outputs | None = None,
) -> None: ...
def book_gains(
    pending: list[tuple[int, Tree, _F64, _F64, _Outputs | None]], n_rounds: int, importances: _F64
) -> None: ...
def quantile_steps(
    pool: Pool,
    y: _F32,
    raw: _F32,
    levels: _F64,
    weights: _Weights,
    leaf_of_row: _U32 | None,
    values: _F32,
    output: _Outputs | None = None,
) -> _F64: ...
def dots(
    pool: Pool,
    cells: _F32,
    weights: _Weights,
    leaf_of_row: _U32 | None,
    values: _F32,
    squared: bool,
    output: _Outputs | None = None,
) -> _F64: ...
def apply_link(link: str, raw: _F64) -> None: ...
def share(proba: _F64) -> None: ...
def centred(pool: Pool, cells: _F32 | _F64, centre: _F64) -> _F32 | None: ...
def column_sums(
    pool: Pool, cells: NDArray[Any], weights: _Weights, squared: bool = False
) -> _F64: ...
def column_quantiles(
    pool: Pool, cells: _F32 | _F64, weights: _Weights, levels: _F64, centre: _F64 | None = None
) -> _F64: ...
def project(pool: Pool, residuals: _F32, phi: _F32, z: _F32, shares: bool = False) -> None: ...
def draw_projection(
    name: str,
    n_components: int,
    n_outputs: int,
    zero_sums: list[tuple[int, int]],
    seed: int,
    round: int,
) -> _F32: ...
def sample_rows(
    pool: Pool, global_rows: NDArray[np.uint64], count: int, seed: int, round: int, output: int
) -> _U32: ...
def validation_rows(pool: Pool, global_rows: NDArray[np.uint64], count: int, seed: int) -> _U32: ...
def simd_level() -> str: ...
