"""The package's own layout comes back as it was stored, and damage is noticed."""

import numpy as np
import pytest
from scipy import sparse

from manyboost.datasets import read_npz

X = np.array([[0, 1.5, 0], [2, 0, 1], [0, 0, np.nan], [0, 1, 0]], dtype=np.float32)
Y = np.array([[1, 0], [0, 0], [1, 1], [0, 1]], dtype=np.uint8)
DENSE = {
    "X": X,
    "Y": Y,
    "feature_names": np.array(["u", "v", "w"]),
    "target_names": np.array(["a", "b"]),
}
NOMINAL = {
    "categorical": np.array([0], dtype=np.int32),
    "category_feature": np.array([0, 0, 0]),
    "category_code": np.array([2, 0, 1]),
    "category_value": np.array(["high", "low", "middle"]),
}


def thin(what, matrix):
    matrix = sparse.csr_matrix(matrix)
    arrays = {"indices": matrix.indices.astype(np.uint16), "indptr": matrix.indptr}
    arrays["shape"] = np.array(matrix.shape)
    if what == "X":
        arrays["data"] = matrix.data
    return {f"{what}_{part}": array for part, array in arrays.items()}


def without(arrays, *keys):
    return {key: array for key, array in arrays.items() if key not in keys}


SPARSE = {**without(DENSE, "X", "Y"), **thin("X", X), **thin("Y", Y)}


@pytest.fixture
def write(tmp_path):
    def write(arrays, name="toy.npz"):
        np.savez_compressed(tmp_path / name, **arrays)
        return tmp_path / name

    return write


@pytest.mark.parametrize("arrays", [DENSE, SPARSE])
def test_values_beyond_single_precision_are_refused(write, arrays):
    name = "X" if "X" in arrays else "X_data"
    with pytest.raises(
        ValueError, match=r"X of data set 'toy' holds [\d.]+e\+300, beyond the range"
    ):
        read_npz(write({**arrays, name: arrays[name].astype(float) * 1e300}))


def test_dense_arrays(write):
    data = read_npz(write({**DENSE, "split": np.array([0, 0, 1, 1], np.uint8), **NOMINAL}))
    assert (data.name, data.task) == ("toy", "multilabel")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.Y, Y)
    assert (data.X.dtype, data.Y.dtype) == (np.float32, np.uint8)
    assert data.feature_names == ("u", "v", "w")
    assert all(type(name) is str for name in data.feature_names + data.target_names)
    np.testing.assert_array_equal(data.split, [0, 0, 1, 1])
    assert data.categories == {0: ("low", "middle", "high")}


def test_sparse_arrays_stay_sparse(write):
    data = read_npz(write(SPARSE), name="another")
    assert data.name == "another"
    assert (data.X.format, data.X.dtype) == ("csr", np.float32)
    assert (data.Y.format, data.Y.dtype) == ("csr", np.uint8)
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.Y.toarray(), Y)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floats_are_numbers_to_predict(write, kind):
    data = read_npz(write({**DENSE, "Y": Y.astype(kind)}))
    assert (data.task, data.Y.dtype) == ("regression", kind)


def test_booleans_are_labels(write):
    data = read_npz(write({**DENSE, "Y": Y.astype(bool)}))
    assert (data.task, data.Y.dtype) == ("multilabel", np.uint8)


def test_other_arrays_are_not_read(write):
    assert read_npz(write({**DENSE, "notes": np.array([{"a": 1}], dtype=object)})).n_rows == 4


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (without(DENSE, "X"), r"toy.npz has no array 'X_data'; see the layout in"),
        (without(DENSE, "Y"), r"toy.npz has no array 'Y_indices'"),
        (without(DENSE, "target_names"), r"toy.npz has no array 'target_names'"),
        ({**DENSE, **without(NOMINAL, "category_code")}, r"no array 'category_code'"),
        ({**DENSE, "X": X.astype(object)}, r"toy.npz is not a NumPy archive of plain arrays \(Obj"),
        ({**DENSE, "X": X[0]}, r"X of data set 'toy' has shape \(3,\) and type float32; it must"),
        ({**DENSE, "Y": Y.astype(str)}, r"Y of data set 'toy' has shape \(4, 2\) and type <U"),
        ({**DENSE, "Y": Y * 2}, r"Y of data set 'toy' holds labels other than 0 and 1"),
        ({**DENSE, "Y": Y[1:]}, r"'toy' has 3 rows in Y but 4 rows in X"),
        ({**DENSE, "target_names": np.array(["a", "a"])}, r"has two outputs called 'a'"),
        (
            {**SPARSE, "X_indices": SPARSE["X_indices"] + 3},
            r"The sparse X of data set 'toy' is dam",
        ),
        ({**SPARSE, "Y_indptr": SPARSE["Y_indptr"][1:]}, r"The sparse Y of data set 'toy' is dama"),
        ({**SPARSE, "Y_indices": SPARSE["Y_indices"] * 0}, r"sparse Y .* \(an entry is stored twi"),
        ({**DENSE, **NOMINAL, "category_code": np.array([0, 1, 3])}, r"feature 0 .* \[0, 1, 3\]; "),
        ({**DENSE, **NOMINAL, "categorical": np.array([0, 1])}, r"feature 1 .* codes \[\]; they"),
        (
            {**DENSE, **NOMINAL, "category_value": np.array(["low"])},
            r"The category table of data set 'toy' has columns of 3, 3 and 1 entries",
        ),
    ],
)
def test_a_bad_archive_is_refused(write, arrays, message):
    with pytest.raises(ValueError, match=message):
        read_npz(write(arrays))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", b"something else"])
def test_what_is_not_an_archive_is_refused(tmp_path, content):
    path = tmp_path / "toy.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"toy.npz is not a NumPy archive of plain arrays"):
        read_npz(path)


def test_a_single_array_is_not_an_archive(tmp_path):
    np.save(tmp_path / "toy.npy", X)
    with pytest.raises(ValueError, match=r"toy.npy is not a NumPy archive of plain arrays"):
        read_npz(tmp_path / "toy.npy")


def test_a_file_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_npz(tmp_path / "nothing.npz")
