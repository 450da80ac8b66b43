"""Models of files that are read in blocks are those of arrays in memory, byte for byte."""

from __future__ import annotations

import errno
import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.distributed import fit_files

polars = pytest.importorskip("polars")

N_ROWS = 700


def make_features(n_rows: int = N_ROWS, seed: int = 0) -> np.ndarray:
    """Continuous columns, missing values, mostly zero, few values, a constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 9))
    X[rng.random(n_rows) < 0.1, 1] = np.nan
    X[rng.random(n_rows) < 0.95, 2] = 0
    X[:, 3] = np.round(X[:, 3])
    X[:, 4] = 1
    X[:, 5] = rng.integers(0, 5, n_rows)
    return X


def make_targets(X: np.ndarray, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(X.shape[1], 3))
    return np.nan_to_num(X) @ W + rng.normal(size=(len(X), 3)) + [0, 1e6, -3]


X = make_features()
Y = make_targets(X)
WEIGHT = np.random.default_rng(2).random(N_ROWS) * (np.arange(N_ROWS) % 11 > 0)
FAST = {"max_iter": 6, "random_state": 0, "n_jobs": 2}


def saved(model: Any, folder: Path) -> bytes:
    path = folder / "model.mb"
    model.save(path)
    return path.read_bytes()


def npy(folder: Path, **arrays: np.ndarray) -> dict[str, Path]:
    paths = {name: folder / f"{name}.npy" for name in arrays}
    for name, array in arrays.items():
        np.save(paths[name], array)
    return paths


def assert_same(make: Any, folder: Path, files: dict[str, Any], *given: Any, **more: Any) -> Any:
    """Check that files give the model of arrays, and leave nothing behind."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    positional = {"X": files.pop("X"), "Y": files.pop("Y", None)}
    stored = fit_files(make(), *positional.values(), scratch=scratch, **files)
    assert list(scratch.iterdir()) == []
    expected = make().fit(*given, **more)
    assert saved(stored, folder) == saved(expected, folder)
    return stored


@pytest.mark.parametrize("strategy", ["relabel", "project", "multioutput", "independent"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npy_files_give_the_model_of_arrays(tmp_path: Path, strategy: str, dtype: type) -> None:
    given = X.astype(dtype), Y.astype(dtype)
    files = npy(tmp_path, X=given[0], Y=given[1])
    model = assert_same(
        lambda: ManyBoostRegressor(strategy=strategy, **FAST),
        tmp_path,
        {**files, "chunk_rows": 97},
        *given,
    )
    assert model.predict(X[:5]).shape == (5, 3)


@pytest.mark.parametrize("chunk_rows", [1, 13, 699, 700, 5000, None])
def test_the_size_of_blocks_does_not_matter(tmp_path: Path, chunk_rows: int | None) -> None:
    files = npy(tmp_path, X=X, Y=np.asfortranarray(Y))
    files["chunk_rows"] = chunk_rows
    assert_same(lambda: ManyBoostRegressor(**FAST), tmp_path, files, X, Y)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.float16, bool])
def test_files_of_other_types(tmp_path: Path, order: str, dtype: type) -> None:
    typed = np.array(np.nan_to_num(X * 3).astype(dtype), order=order)
    files = npy(tmp_path, X=typed, Y=typed[:, :2])
    assert_same(
        lambda: ManyBoostRegressor(**FAST),
        tmp_path,
        {**files, "chunk_rows": 64},
        typed,
        typed[:, :2],
    )


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "absolute_error"},
        {"loss": "quantile", "quantile": [0.1, 0.5]},
        {"loss": "huber"},
        {"loss": ["squared_error", "absolute_error", "huber"]},
        {"early_stopping": True},
        {"early_stopping": True, "scoring": "r2"},
        {"early_stopping": "per_output"},
        {"strategy": "auto"},
        {"n_folds": 3, "refit_all": True, "categorical_features": [5]},
        {"subsample": 0.5, "max_features": 0.5, "max_bins": 20},
        {"categorical_features": [5, 3]},
        {"monotonic_cst": [1, -1, *[0] * 7]},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parameters_mean_the_same(tmp_path: Path, parameters: dict[str, Any], dtype: type) -> None:
    files = npy(tmp_path, X=X, Y=Y.astype(dtype))
    make = lambda: ManyBoostRegressor(**FAST, **parameters)  # noqa: E731
    assert_same(make, tmp_path, {**files, "chunk_rows": 211}, X, Y.astype(dtype))


@pytest.mark.parametrize("seconds", [0, 1_700_000_000])  # the latter take double precision
@pytest.mark.parametrize("parameters", [{}, {"n_folds": 2}, {"early_stopping": True}], ids=str)
def test_a_fit_goes_on_from_its_checkpoint(
    tmp_path: Path, parameters: dict[str, Any], seconds: int
) -> None:
    times = np.column_stack([X, seconds + np.arange(N_ROWS)])
    files, Y_file = [], npy(tmp_path, Y=Y)["Y"]
    for name, values in (("same", times), ("other", times + 1)):
        np.save(tmp_path / f"{name}.npy", values)
        files.append(tmp_path / f"{name}.npy")

    def model(max_iter: int, **checkpoint: Path) -> ManyBoostRegressor:
        return ManyBoostRegressor(
            max_iter=max_iter, random_state=0, n_jobs=2, **parameters, **checkpoint
        )

    run = tmp_path / "run"
    fit_files(model(4, checkpoint=run), files[0], Y_file)
    with pytest.raises(ValueError, match="belongs to another fit: other X"):
        fit_files(model(8, checkpoint=run), files[1], Y_file)
    resumed = fit_files(model(8, checkpoint=run), files[0], Y_file, chunk_rows=97)
    expected = saved(fit_files(model(8), files[0], Y_file), tmp_path)
    assert saved(resumed, tmp_path) == expected


class Squared(Loss):
    def value(self, y: Any, raw: Any) -> Any:
        return (y - raw) ** 2 / 2

    def gradient(self, y: Any, raw: Any) -> Any:
        return raw - y


def test_a_loss_written_in_python(tmp_path: Path) -> None:
    files = npy(tmp_path, X=X, Y=Y.astype(np.float32))
    stored = fit_files(ManyBoostRegressor(Squared(), **FAST), files["X"], files["Y"])
    expected = ManyBoostRegressor(Squared(), **FAST).fit(X, Y.astype(np.float32))
    assert np.array_equal(stored.predict(X), expected.predict(X))


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("weighted", ["rows", "cells"])
def test_weights_and_missing_targets(tmp_path: Path, weighted: str, partial: bool) -> None:
    targets = Y.copy()
    if partial:
        targets[np.random.default_rng(3).random(Y.shape) < 0.2] = np.nan
        targets[7] = np.nan
    weight = WEIGHT if weighted == "rows" else WEIGHT[:, None] * [1, 2, 0.5]
    files: dict[str, Any] = npy(tmp_path, X=X, Y=targets, sample_weight=weight)
    make = lambda: ManyBoostRegressor(early_stopping=True, **FAST)  # noqa: E731
    assert_same(make, tmp_path, {**files, "chunk_rows": 50}, X, targets, weight)


def test_validation_rows_in_files_and_in_memory(tmp_path: Path) -> None:
    validation = {"X_val": make_features(150, 5), "Y_val": make_targets(make_features(150, 5))}
    make = lambda: ManyBoostRegressor(**FAST)  # noqa: E731
    files = npy(tmp_path, X=X, Y=Y, **validation)
    assert_same(make, tmp_path, {**files, "chunk_rows": 40}, X, Y, **validation)
    assert_same(make, tmp_path, {**npy(tmp_path, X=X, Y=Y), **validation}, X, Y, **validation)


def test_a_warm_start_goes_on(tmp_path: Path) -> None:
    files = npy(tmp_path, X=X, Y=Y)
    for early_stopping in (False, True):
        model = ManyBoostRegressor(
            max_iter=3, warm_start=True, random_state=0, early_stopping=early_stopping
        )
        fit_files(model, files["X"], files["Y"], chunk_rows=100)
        fit_files(model.set_params(max_iter=6), files["X"], files["Y"], chunk_rows=77)
        expected = ManyBoostRegressor(**FAST, early_stopping=early_stopping).fit(X, Y)
        assert np.array_equal(model.predict(X), expected.predict(X))


LABELS = (np.nan_to_num(X[:, :4]) > 0.5).astype(np.uint8)


@pytest.mark.parametrize(
    ("labels", "parameters"),
    [
        (LABELS, {}),
        (LABELS.astype(float), {"early_stopping": True, "thresholds": "tuned"}),
        (
            np.where(np.arange(N_ROWS)[:, None] % 5 == 0, np.nan, LABELS),
            {"class_weight": "balanced"},
        ),
        (LABELS[:, 0], {"early_stopping": True}),
        (np.array(["no", "yes", "perhaps"])[LABELS[:, 0] + LABELS[:, 1]], {}),
        (LABELS[:, 0] + LABELS[:, 1], {"loss": "exponential", "early_stopping": True}),
        (LABELS, {"max_leaf_outputs": 2, "early_stopping": True}),
    ],
    ids=["indicator", "tuned", "missing", "binary", "text", "multiclass", "sparse leaves"],
)
def test_classifiers(tmp_path: Path, labels: np.ndarray, parameters: dict[str, Any]) -> None:
    files = npy(tmp_path, X=X, Y=labels)
    make = lambda: ManyBoostClassifier(**FAST, **parameters)  # noqa: E731
    assert_same(make, tmp_path, {**files, "chunk_rows": 123}, X, labels)


# ---------------------------------------------------------------------- Parquet


def frame() -> Any:
    names = [f"x{j}" for j in range(X.shape[1])]
    columns = {name: X[:, j] for j, name in enumerate(names)} | {f"y{j}": Y[:, j] for j in range(3)}
    table = polars.DataFrame({**columns, "w": WEIGHT, "class": np.array(["a", "b"])[LABELS[:, 0]]})
    whole = polars.Series("x5", [None if k % 9 == 0 else int(v) for k, v in enumerate(X[:, 5])])
    return table.with_columns(
        whole, polars.col("x0").cast(polars.Float32), polars.col("x4").cast(polars.Boolean)
    )


def test_parquet_files_give_the_model_of_frames(tmp_path: Path) -> None:
    table = frame()
    table.write_parquet(tmp_path / "data.parquet", row_group_size=200)
    features, outputs = table.select("^x.*$"), table.select("y0", "y1", "y2")
    files = {"X": tmp_path / "data.parquet", "chunk_rows": 150, "ignore": ["class"]}
    model = assert_same(
        lambda: ManyBoostRegressor(**FAST),
        tmp_path,
        {**files, "targets": "y*", "sample_weight": "w"},
        features,
        outputs,
        WEIGHT,
    )
    assert model.output_names_.tolist() == ["y0", "y1", "y2"]
    assert model.feature_names_in_.tolist() == features.columns
    assert_same(
        lambda: ManyBoostRegressor(**FAST),
        tmp_path,
        {**files, "targets": "y1", "ignore": ["class", "w", "y[02]"]},
        features,
        table["y1"],
    )
    assert_same(
        lambda: ManyBoostClassifier(**FAST),
        tmp_path,
        {**files, "targets": "class", "ignore": ["w", "y?"]},
        features,
        table["class"],
    )


# ---------------------------------------------------------------------- blocks


def test_blocks_of_odd_sizes(tmp_path: Path) -> None:
    ends = [0, 1, 1, 130, 131, 500, N_ROWS]
    parts = [slice(start, stop) for start, stop in pairwise(ends)]
    blocks = ((X[rows], Y[rows], WEIGHT[rows]) for rows in parts)
    model = fit_files(ManyBoostRegressor(**FAST), blocks, scratch=tmp_path)
    expected = ManyBoostRegressor(**FAST).fit(X, Y, WEIGHT)
    assert list(tmp_path.iterdir()) == []
    assert saved(model, tmp_path) == saved(expected, tmp_path)


FRAMES = pd.DataFrame(X).add_prefix("x"), pd.DataFrame(Y).add_prefix("y")
MASK = np.random.default_rng(3).random(X.shape) < 0.1


@pytest.mark.parametrize(
    ("X", "Y"),
    [
        FRAMES,
        (X, FRAMES[1]["y1"]),
        (np.ma.MaskedArray(X, MASK), np.ma.MaskedArray(Y, MASK[:, :3])),
        (scipy.sparse.csr_matrix(np.nan_to_num(X)), Y),
    ],
    ids=["frames", "series", "masked", "sparse"],
)
def test_blocks_may_be_all_that_fit_takes(tmp_path: Path, X: Any, Y: Any) -> None:
    blocks = ((X[k : k + 300], Y[k : k + 300]) for k in range(0, N_ROWS, 300))
    assert_same(lambda: ManyBoostRegressor(**FAST), tmp_path, {"X": blocks}, X, Y)


@pytest.mark.parametrize("Y", [FRAMES[1], np.ma.MaskedArray(Y, MASK[:, :3])])
def test_targets_in_memory_beside_a_file(tmp_path: Path, Y: Any) -> None:
    files: dict[str, Any] = {**npy(tmp_path, X=X), "Y": Y}
    assert_same(lambda: ManyBoostRegressor(**FAST), tmp_path, files, X, Y)


# ---------------------------------------------------------------------- refusals


def spoilt(array: np.ndarray, place: tuple[int, int], value: float) -> np.ndarray:
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("X", "Y", "words"),
    [
        (X, spoilt(Y, (401, 1), -np.inf), ["Y.npy", "infinite", "row 401, output 1"]),
        (X, spoilt(Y, (401, 1), 1e300), ["Y.npy", "1e+300", "row 401, output 1"]),
        (X.astype(str), Y, ["X.npy holds", "not numbers"]),
        (X, Y.astype(str), ["Y.npy holds text", "row 0, output 0", "astype(float)"]),
        (X, spoilt(Y, (401, 1), 2e37), ["Y.npy", "2e+37", "row 401, output 1", "beyond 1e+37"]),
        (X[:0], Y[:0], ["X.npy has no rows"]),
        (X[:, :0], Y, ["X.npy has no features"]),
    ],
)
def test_refusals_name_the_file_the_column_and_the_row(
    tmp_path: Path, X: np.ndarray, Y: np.ndarray, words: list[str]
) -> None:
    files = npy(tmp_path, X=X, Y=Y)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        fit_files(ManyBoostRegressor(), files["X"], files["Y"], chunk_rows=100, scratch=scratch)
    for word in words:
        assert word in str(caught.value)
    assert list(scratch.iterdir()) == []


def test_parameters_are_checked_before_anything_is_read() -> None:
    blocks = iter([(X, Y)])
    with pytest.raises(ValueError, match="max_iter=-1 is not allowed"):
        fit_files(ManyBoostRegressor(max_iter=-1), blocks)
    assert len(list(blocks)) == 1


def test_infinite_and_huge_features_are_values(tmp_path: Path) -> None:
    extreme = spoilt(spoilt(spoilt(X, (345, 2), np.inf), (699, 8), 1e39), (5, 1), -np.inf)
    files = npy(tmp_path, X=extreme, Y=Y)
    assert_same(
        lambda: ManyBoostRegressor(**FAST), tmp_path, {**files, "chunk_rows": 97}, extreme, Y
    )


def test_labels_other_than_0_and_1_are_refused(tmp_path: Path) -> None:
    labels = LABELS.astype(int)
    labels[555, 3] = 2
    files = npy(tmp_path, X=X, Y=labels)
    with pytest.raises(ValueError, match=r"Y\.npy has the value 2 in row 555, output 3"):
        fit_files(ManyBoostClassifier(), files["X"], files["Y"], chunk_rows=50)


def test_several_columns_of_classes_are_for_fit(tmp_path: Path) -> None:
    classes = np.random.default_rng(0).integers(0, 3, (N_ROWS, 2))
    ManyBoostClassifier(max_iter=1).fit(X, classes)
    row = int(np.argmax((classes == 2).any(axis=1)))
    files = npy(tmp_path, X=X, Y=classes)
    words = f"has the value 2 in row {row}, .*: use fit for several columns of classes"
    with pytest.raises(ValueError, match=words):
        fit_files(ManyBoostClassifier(), files["X"], files["Y"])
    shares = npy(tmp_path, X=X, Y=np.where(classes == 2, 0.25, classes))
    with pytest.raises(ValueError, match="for a probability p pass the row twice"):
        fit_files(ManyBoostClassifier(), shares["X"], shares["Y"])


def test_errors_name_the_columns_of_parquet_files(tmp_path: Path) -> None:
    table = frame()
    path = tmp_path / "data.parquet"
    table.write_parquet(path)
    spoilt = table.with_columns(
        polars.when(polars.arange(N_ROWS) == 321)
        .then(np.inf)
        .otherwise(polars.col("y1"))
        .alias("y1")
    )
    spoilt.write_parquet(path)
    with pytest.raises(ValueError, match=r"data\.parquet has an inf.* in row 321, output 'y1'"):
        fit_files(ManyBoostRegressor(), path, targets="y*", ignore="class", chunk_rows=99)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    from sklearn.tree import DecisionTreeRegressor

    files = npy(tmp_path, X=X, Y=Y)
    with pytest.raises(ValueError, match="takes features in memory"):
        fit_files(ManyBoostRegressor(estimator=DecisionTreeRegressor()), files["X"], files["Y"])
    with pytest.raises(ValueError, match="features are stored in single precision"):
        fit_files(ManyBoostRegressor(categorical_features=[0]), files["X"], files["Y"])
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        fit_files(ManyBoostRegressor(), files["X"], files["Y"], scratch=tmp_path / "none")
    with pytest.raises(ValueError, match="chunk_rows=0 is not allowed"):
        fit_files(ManyBoostRegressor(), files["X"], files["Y"], chunk_rows=0)


def test_a_small_disk_is_told_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = npy(tmp_path, X=X, Y=Y)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(OSError, match=r"take up to .* GB, but .* has 0\.0 GB left; pass scratch="):
        fit_files(ManyBoostRegressor(), files["X"], files["Y"])


def test_a_disk_that_fills_up_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = npy(tmp_path, X=X, Y=Y)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("manyboost.data.stored.TargetFile.write", full)
    with pytest.raises(OSError, match="has no room left for scratch files; pass scratch="):
        fit_files(ManyBoostRegressor(), files["X"], files["Y"])
