"""The compiled kernels, called directly: what does not fit is refused with a clear sentence."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from manyboost import ManyBoostRegressor, _core

POOL = _core.Pool(2)
N, D = 40, 3
LOSSES = (
    "squared_error",
    "squared_labels",
    "absolute_error",
    "huber",
    "quantile",
    "poisson",
    "gamma",
    "log_loss",
    "exponential",
)


def weights(rows: Any = None, cells: Any = None, partial: bool = False) -> Any:
    """Return weights as the kernels take them."""
    return SimpleNamespace(rows=rows, cells=cells, partial=partial)


def ones(*shape: int) -> NDArray[np.float32]:
    """Return a float32 array of ones."""
    return np.ones(shape, np.float32)


def objective(loss: str | list[str] = "log_loss", n_outputs: int = D) -> _core.Objective:
    """Return losses without offset and with a parameter of one half."""
    runs = loss if isinstance(loss, str) else [(name, 1) for name in loss]
    return _core.Objective(runs, np.zeros(n_outputs, np.float32), 0.5 * ones(n_outputs))


def labels() -> NDArray[np.float32]:
    """Return 0/1 labels (N, D) as floats."""
    return np.random.default_rng(0).integers(0, 2, (N, D)).astype(np.float32)


def features() -> _core.Features:
    """Return binned features (N, 2)."""
    x = np.random.default_rng(1).normal(size=(N, 2)).astype(np.float32)
    return _core.Features.fit(POOL, x, None, 16)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_curvature_exceeds_its_bound(loss: str) -> None:
    rng = np.random.default_rng(2)
    kernel, y = objective(loss), labels()
    raw = rng.normal(size=(N, D)).astype(np.float32) * 2
    row_weights = rng.uniform(0.5, 3, N).astype(np.float32)
    residuals, curvatures = ones(N, D), ones(N, D)
    _, largest = kernel.advance(POOL, y, raw, weights(row_weights), residuals)
    kernel.curvatures(POOL, y, residuals, curvatures)
    bound = kernel.curvature_bound(
        np.full(D, float(row_weights.max())), largest, y.max(axis=0).astype(np.float64)
    )
    assert (curvatures * row_weights[:, None] <= bound * (1 + 1e-6)).all()


def test_each_output_has_the_curvature_bound_of_its_loss() -> None:
    kernel = objective(["squared_error", "poisson", "exponential"])
    bound = kernel.curvature_bound(np.full(3, 2.0), np.full(3, 5.0), np.full(3, 7.0))
    np.testing.assert_array_equal(bound, [2.0, 2.0 * 7.0 + 5.0, 5.0])
    with pytest.raises(ValueError, match="largest_target has 2 elements, expected 3"):
        kernel.curvature_bound(np.ones(3), np.ones(3), np.ones(2))


def test_losses_say_whether_curvature_depends_on_targets() -> None:
    assert objective(["squared_error", "poisson", "huber"]).curvature_uses_target
    assert not objective("softmax").curvature_uses_target


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_outputs", [1, 5, 300])
def test_blocks_of_rows_have_the_residuals_of_single_rows(loss: str, n_outputs: int) -> None:
    rng = np.random.default_rng(3)
    kernel = objective(loss, n_outputs)
    y = rng.integers(0, 2, (N, n_outputs)).astype(np.float32)
    raw = rng.normal(size=(N, n_outputs)).astype(np.float32)
    together, alone = ones(N, n_outputs), ones(1, n_outputs)
    loss_together, _ = kernel.advance(POOL, y, raw, weights(), together)
    losses = []
    for i in range(N):
        losses.append(kernel.advance(POOL, y[[i]], raw[[i]], weights(), alone)[0])
        np.testing.assert_array_equal(together[i], alone[0])
    assert loss_together == pytest.approx(sum(losses), rel=1e-12)
    as_labels, _ = kernel.advance(POOL, y.astype(np.uint8), raw, weights(), together)
    assert as_labels == loss_together


def test_features_that_do_not_exist_are_refused() -> None:
    binned = features()
    assert len(binned.thresholds(1)) > 0
    assert binned.column(1).shape == (N,)
    with pytest.raises(IndexError, match="no feature 2 of 2"):
        binned.thresholds(2)
    with pytest.raises(IndexError, match="no feature 7 of 2"):
        binned.column(7)


def test_weights_of_another_length_are_refused() -> None:
    kernel, y, raw, out = objective(), labels(), ones(N, D), ones(N, D)
    with pytest.raises(ValueError, match=r"weights\.rows has 39 elements, expected 40"):
        kernel.advance(POOL, y, raw, weights(ones(N - 1)), out)
    with pytest.raises(ValueError, match=r"weights\.cells has 80 elements, expected 120"):
        kernel.output_losses(POOL, y, raw, weights(cells=ones(N, 2)))
    with pytest.raises(ValueError, match="weight has 41 elements, expected 40"):
        _core.sweep(POOL, out, ones(N + 1), [])
    with pytest.raises(ValueError, match=r"weights\.rows has 1 elements, expected 40"):
        objective("softmax").softmax_along(
            POOL,
            np.zeros(N, np.uint32),
            raw,
            weights(ones(1)),
            None,
            ones(N, 1),
            np.ones(D),
            np.ones(D),
        )
    x = ones(N, 2)
    with pytest.raises(ValueError, match="weight has 3 elements, expected 40"):
        _core.Features.fit(POOL, x, np.ones(3), 16)
    for rows in ([N], [3, 2], [2, 2]):
        with pytest.raises(ValueError, match="rows must ascend, and exist"):
            features().take(POOL, np.array(rows, np.uint32))


def test_arrays_that_are_not_row_by_row_are_refused() -> None:
    rows = np.arange(6, dtype=np.float64).reshape(3, 2)
    assert _core.column_sums(POOL, rows, weights()).tolist() == [6, 9]
    for other in (np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2], rows[::-1]):
        with pytest.raises(ValueError, match="arrays must be C-contiguous"):
            _core.column_sums(POOL, other, weights())
    z = np.asfortranarray(ones(N, 2))
    with pytest.raises(ValueError, match="arrays must be C-contiguous"):
        _core.project(POOL, ones(N, D), ones(2, D), z)
    # One column, or one row, is in both orders.
    assert _core.column_sums(POOL, np.asfortranarray(rows[:, :1]), weights()).tolist() == [6]


def test_values_that_are_no_codes_of_categories_are_refused() -> None:
    x = ones(N, 2)
    x[3, 1] = np.nan
    binned = _core.Features.fit(POOL, x, None, 16, np.array([0, 2], np.uint32))
    assert binned.column(1).tolist() == [1, 1, 1, 2] + [1] * (N - 4)
    for value in (2, -1, 0.5):
        x[5, 1] = value
        with pytest.raises(ValueError, match="feature 1 holds other values than the codes of 2"):
            _core.Features.fit(POOL, x, None, 16, np.array([0, 2], np.uint32))
    with pytest.raises(ValueError, match="n_categories has 3 elements, expected 2"):
        _core.Features.fit(POOL, x, None, 16, np.array([0, 2, 2], np.uint32))


def test_more_rows_than_32_bits_number_are_refused(tmp_path: Path) -> None:
    column = np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)
    sentence = "4294967296 rows; one machine takes at most 4,294,967,295, spread them over ranks"
    with pytest.raises(ValueError, match=sentence):
        _core.Features.fit_sparse(POOL, column, 2**32, None, 16)
    with pytest.raises(ValueError, match=sentence):
        _core.ColumnBinner(POOL, tmp_path / "bins", 2**32, None, 16)


def test_a_projection_larger_than_memory_raises() -> None:
    for n_outputs in (10**6, 2**62):
        with pytest.raises(MemoryError, match="no memory for another"):
            _core.draw_projection("gaussian", 10**9, n_outputs, [], 0, 0)


@pytest.mark.parametrize("size", [2.0**120, 2.0**-120])
def test_shapley_values_do_not_depend_on_the_size_of_weights(size: float) -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(2000, 4))
    Y, weight = X[:, :2] + np.abs(X[:, 2:]), rng.integers(1, 4, 2000)
    # Few leaves of many rows, which weigh more than single precision can hold.
    model = ManyBoostRegressor(max_iter=3, max_leaf_nodes=4, random_state=0, early_stopping=False)
    plain, sized = (clone(model).fit(X, Y, weight * factor) for factor in (1.0, size))
    for _ in range(2):
        values = sized.shap_values(X[:9])
        assert np.isfinite(values).all()
        np.testing.assert_array_equal(values, plain.shap_values(X[:9]))
        np.testing.assert_array_equal(sized.expected_value_, plain.expected_value_)
        # The same trees, filled once more.
        plain.refit(X[::2], Y[::2], weight[::2])
        sized.refit(X[::2], Y[::2], weight[::2] * size)


def test_gains_of_huge_outputs_are_finite() -> None:
    X = np.random.default_rng(9).normal(size=(100, 3))
    model = ManyBoostRegressor(max_iter=2, output_scaling=None, early_stopping=False)
    trees = model.fit(X, X * 1e36)._progress.model.trees
    for tree in range(len(trees.tree_sizes())):
        gains = trees.tree(tree)[5]
        assert np.isfinite(gains).all()
        assert gains.max() > 1e38


def test_nothing_is_divided_by_no_outputs() -> None:
    none = ones(N, 0)
    for call in (
        lambda: objective(n_outputs=0),
        lambda: _core.sweep(POOL, none, None, []),
        lambda: _core.column_sums(POOL, none, weights()),
        lambda: _core.column_quantiles(POOL, none, weights(), np.empty(0)),
        lambda: _core.centred(POOL, none, np.empty(0)),
        lambda: _core.project(POOL, none, ones(2, 0), ones(N, 2)),
        lambda: _core.draw_projection("gaussian", 2, 0, [], 0, 0),
        lambda: _core.draw_projection("gaussian", 0, 2, [], 0, 0),
        lambda: _core.Ensemble("vector", 0, 2),
        lambda: _core.Ensemble("vector", 2, 0),
        lambda: _core.leaf_sums(
            POOL, np.zeros(N, np.uint32), 1, none, None, weights(), np.empty(0), np.empty(0)
        ),
        lambda: _core.dots(POOL, none, weights(), None, ones(N, 1), False),
        lambda: grower().grow(POOL, none, None, None, 0, 0),
    ):
        with pytest.raises(ValueError, match=r"output|component"):
            call()


def grower() -> _core.Grower:
    """Return a grower of small trees on :func:`features`."""
    return _core.Grower(
        features(),
        max_leaf_nodes=4,
        max_depth=3,
        min_samples_leaf=1,
        min_split_gain=0.0,
        max_features=2,
        seed=0,
    )


def test_leaves_that_do_not_exist_are_refused() -> None:
    leaves = np.full(N, 2, np.uint32)
    with pytest.raises(ValueError, match="leaf_of_row names leaf 2, but there are 2"):
        _core.add_leaves(POOL, leaves, ones(2, D), None, ones(N, D))
    with pytest.raises(ValueError, match="leaf_of_row names leaf 2, but there are 1"):
        _core.leaf_weights(POOL, leaves, 1, ones(N, D), weights())
    with pytest.raises(ValueError, match="leaf_of_row has 40 elements, expected 39"):
        _core.add_leaves(POOL, leaves, ones(3, D), None, ones(N - 1, D))


def test_a_tree_is_not_applied_to_features_it_does_not_know() -> None:
    z = np.random.default_rng(4).normal(size=(N, 1)).astype(np.float32)
    tree = grower().grow(POOL, z, None, None, 0, 0)
    assert tree.n_leaves > 1
    narrow = _core.Features.fit(POOL, np.arange(N, dtype=np.float32)[:, None], None, 16)
    if 1 in tree.ordered_features():
        with pytest.raises(ValueError, match="a feature that x does not have"):
            tree.apply(POOL, narrow)


def test_targets_and_losses_must_fit() -> None:
    raw, out = ones(N, D), ones(N, D)
    classes = np.full(N, D, np.uint32)
    with pytest.raises(ValueError, match="no class 3 among 3"):
        objective("softmax").advance(POOL, classes, raw, weights(), out)
    with pytest.raises(ValueError, match="class numbers belong to one softmax"):
        objective("log_loss").advance(POOL, classes, raw, weights(), out)
    with pytest.raises(ValueError, match="y has 117 elements, expected 120"):
        objective().advance(POOL, labels()[1:].copy(), raw, weights(), out)
    with pytest.raises(ValueError, match="Softmax needs 2 outputs or more"):
        objective(["softmax", "huber", "huber"])
    with pytest.raises(ValueError, match="several losses"):
        objective(["huber", "poisson", "poisson"]).derivatives(
            POOL, labels(), raw, weights(), None, ones(N, 1), np.zeros(D)
        )
    with pytest.raises(ValueError, match="share one loss"):
        objective("softmax").derivatives(
            POOL, np.zeros(N, np.uint32), raw, weights(), None, ones(N, 1), np.zeros(D)
        )


def test_a_projection_of_weighted_cells_needs_shares() -> None:
    cells, z = ones(N, D), ones(N, 1)
    with pytest.raises(ValueError, match="shares and omega"):
        objective().advance(
            POOL, labels(), ones(N, D), weights(cells=cells), ones(N, D), phi=ones(1, D), z=z
        )
