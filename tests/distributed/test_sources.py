"""Files are read in blocks of rows, and what cannot be read is refused by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from manyboost.distributed.sources import SourceOptions, open_source

polars = pytest.importorskip("polars")

X = np.arange(12.0).reshape(4, 3)
Y = np.arange(8).reshape(4, 2)


def opened(X: Any, Y: Any = None, weight: Any = None, **options: Any) -> Any:
    given = {"targets": None, "ignore": (), "chunk_rows": 3, "classes": False}
    return open_source("X", X, Y, weight, SourceOptions(**given | options))


def saved(folder: Path, name: str, array: Any) -> Path:
    path = folder / f"{name}.npy"
    np.save(path, array)
    return path


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "data.parquet"
    frame = {"a": [1, None, 3, 4], "b": [True, False, None, True], "c": list("pqrs")}
    polars.DataFrame(frame | {"y1": [0.5] * 4, "y2": [1.5] * 4, "w": [1, 2, 3, 4]}).write_parquet(
        path
    )
    return path


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_files_come_in_blocks(tmp_path: Path, order: Any) -> None:
    files = [saved(tmp_path, name, np.array(a, order=order)) for name, a in (("X", X), ("Y", Y))]
    source = opened(*files)
    assert (source.X_name, source.Y_name, source.size) == ("X.npy", "Y.npy", (4, 3, 2))
    blocks = list(source.blocks)
    assert [len(block[0]) for block in blocks] == [3, 1]
    np.testing.assert_array_equal(np.concatenate([block[0] for block in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([block[1] for block in blocks]), Y)


def test_columns_of_parquet_files_become_features_targets_and_weights(parquet: Path) -> None:
    source = opened(parquet, weight="w", targets="y*", ignore="c")
    assert source.names == ["a", "b"]
    assert source.output_names == ["y1", "y2"]
    features, targets, weight = next(iter(source.blocks))
    np.testing.assert_array_equal(features, [[1, 1], [np.nan, 0], [3, np.nan]])
    np.testing.assert_array_equal(targets, [[0.5, 1.5]] * 3)
    np.testing.assert_array_equal(weight, [1, 2, 3])


@pytest.mark.parametrize("name", ["a*.parquet", "d[1].parquet", "a?.parquet"])
def test_a_name_with_stars_and_brackets_is_that_of_one_file(tmp_path: Path, name: str) -> None:
    for each, value in ((name, 1.0), ("ab.parquet", 2.0)):
        polars.DataFrame({"a": [value], "y": [value]}).write_parquet(tmp_path / each)
    ((features, targets, _),) = opened(tmp_path / name, targets="y").blocks
    assert (features.tolist(), targets.tolist()) == ([[1.0]], [1.0])


def test_a_single_column_by_its_name_has_one_dimension(parquet: Path) -> None:
    def shape(targets: Any) -> Any:
        return next(iter(opened(parquet, targets=targets, ignore="c").blocks))[1].shape

    assert shape("y1") == shape(["y1"]) == (3,)
    assert shape("y1*") == shape(-1) == (3, 1)
    source = opened(parquet, targets="c", classes=True)
    assert next(iter(source.blocks))[1].tolist() == ["p", "q", "r"]


def test_blocks_of_the_caller_are_checked() -> None:
    with pytest.raises(ValueError, match="Block 1 of X is a list; blocks must be tuples"):
        list(opened([(X, Y), [X, Y]]).blocks)
    with pytest.raises(ValueError, match=r"Block 0 of X has features of shape \(4, 3\) and out"):
        list(opened([(X, Y[:2])]).blocks)
    with pytest.raises(ValueError, match=r"Block 1 of X has 4 rows but weights of shape \(3,\)"):
        list(opened([(X, Y, np.ones(4)), (X, Y, np.ones(3))]).blocks)
    frame = pd.DataFrame(X, columns=list("abc"))
    with pytest.raises(ValueError, match="Block 1 of X has columns of other names, or in another"):
        list(opened([(frame, Y), (frame[list("acb")], Y)]).blocks)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, "X", X)
    with pytest.raises(ValueError, match="X is a ndarray"):
        opened(X, Y)
    with pytest.raises(ValueError, match=r"X\.npy holds features alone"):
        opened(path)
    with pytest.raises(ValueError, match="targets='y' names columns of a Parquet file"):
        opened(path, Y, targets="y")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        opened(tmp_path / "none.npy", Y)
    with pytest.raises(FileNotFoundError, match="is a folder"):
        opened(tmp_path, Y)
    with pytest.raises(ValueError, match=r"X\.npy has 4 rows and Y has 3"):
        opened(path, Y[:3])
    with pytest.raises(ValueError, match=r"line\.npy has 1 dimension"):
        opened(saved(tmp_path, "line", X[0]), Y)
    objects = saved(tmp_path, "objects", np.array([[None]]))
    with pytest.raises(ValueError, match=r"objects\.npy cannot be read: .* objects"):
        opened(objects, Y)
    other = tmp_path / "X.txt"
    path.rename(other)
    with pytest.raises(ValueError, match=r"X\.txt is neither a \.npy nor a \.parquet file"):
        opened(other, Y)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"text", b"cut short"])
def test_files_that_are_no_npy_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = saved(tmp_path, "X", X)
    path.write_bytes(path.read_bytes()[:-8] if content == b"cut short" else content)
    with pytest.raises(ValueError, match=r"X\.npy (cannot be read: .*; save it again|is not a)"):
        opened(path, Y)


def test_files_that_are_no_parquet_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1 and more")
    with pytest.raises(ValueError, match=r"data\.parquet cannot be read: .*; save it again"):
        opened(path, targets="y*")


def test_a_file_of_weights_is_a_npy_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    np.savez(path, np.ones(4))
    with pytest.raises(ValueError, match=r"weights\.npz is not a \.npy file"):
        opened(saved(tmp_path, "X", X), Y, path)


def test_decimals_and_columns_without_values_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    columns = [
        polars.Series("a", [1.5, 2.5]).cast(polars.Decimal(9, 2)),
        polars.Series("b", [1, 2]),
    ]
    polars.DataFrame([*columns, polars.Series("c", [None, None])]).write_parquet(path)
    features, targets, _ = next(iter(opened(path, targets=["a"]).blocks))
    assert targets.dtype == features.dtype == np.float64
    assert targets.tolist() == [1.5, 2.5]
    np.testing.assert_array_equal(features, [[1, np.nan], [2, np.nan]])


def test_columns_of_parquet_files_are_refused_by_name(parquet: Path) -> None:
    with pytest.raises(ValueError, match=r"Column 'c' of data\.parquet holds String values, not"):
        list(opened(parquet, targets="y*").blocks)
    with pytest.raises(ValueError, match="targets='z' matches no column"):
        opened(parquet, targets="z")
    with pytest.raises(ValueError, match="Say which columns of"):
        opened(parquet)
    with pytest.raises(ValueError, match="left without any feature"):
        opened(parquet, targets="y*", ignore=["a", "b", "c", "w"])
    with pytest.raises(ValueError, match=r"Y was given, but the outputs of data\.parquet"):
        opened(parquet, Y, targets="y*")


def test_parquet_needs_polars(parquet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"Reading data\.parquet needs the package polars"):
        opened(parquet, targets="y*")
