"""svmlight and extreme classification files are read exactly, or refused with the line."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from manyboost.datasets import join_train_test, read_svmlight, read_xc


@pytest.fixture
def write(tmp_path):
    def write(text, name="toy.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


# --- svmlight -------------------------------------------------------------------------

SVM = "# comment\n3,7 4:2.5 1:-1e-3 # note\n\n7 2:1\n 3:4\n3\n"


def test_an_svmlight_file(write):
    data = read_svmlight(write(SVM, "toy.svm"))
    assert (data.name, data.task) == ("toy", "multilabel")
    assert (data.X.format, data.X.dtype) == ("csr", np.float32)
    assert (data.Y.format, data.Y.dtype) == ("csr", np.uint8)
    assert data.target_names == ("3", "7")
    assert data.feature_names == ("1", "2", "3", "4")
    expected = np.array([[-1e-3, 0, 0, 2.5], [0, 1, 0, 0], [0, 0, 4, 0], [0] * 4], np.float32)
    np.testing.assert_array_equal(data.X.toarray(), expected)
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 1], [0, 1], [0, 0], [1, 0]])


def test_scikit_learn_reads_the_same(write):
    path = write(SVM.replace("4:2.5 1:-1e-3", "1:-1e-3 4:2.5"))  # it wants features in order
    X, labels = load_svmlight_file(str(path), multilabel=True)
    data = read_svmlight(path)
    np.testing.assert_array_equal(data.X.toarray(), X.toarray().astype(np.float32))
    names = np.array(data.target_names, dtype=float)
    assert [tuple(names[row == 1]) for row in data.Y.toarray()] == labels


@pytest.mark.parametrize(
    ("zero_based", "names"),
    [("auto", ("1", "2")), (True, ("0", "1", "2")), (False, ("1", "2"))],
)
def test_features_count_from_0_or_1(write, zero_based, names):
    assert read_svmlight(write("0 1:5 2:6\n"), zero_based=zero_based).feature_names == names


def test_a_feature_0_shows_where_counting_begins(write):
    assert read_svmlight(write("0 0:5 2:6\n")).feature_names == ("0", "1", "2")


def test_two_files_agree_when_the_numbers_are_given(write):
    counts = {"n_features": 5, "n_outputs": 4, "zero_based": True}
    train = read_svmlight(write("0,2 1:1\n", "toy-train.svm"), **counts)
    test = read_svmlight(write("3 4:1\n", "toy-test.svm"), **counts)
    joined = join_train_test(train, test)
    assert joined.X.shape == (2, 5)
    np.testing.assert_array_equal(joined.Y.toarray(), [[1, 0, 1, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        ("", {}, r"toy.txt has no rows"),
        (" 1:2\n", {}, r"toy.txt has no labels"),
        ("1\n", {}, r"toy.txt has no features"),
        ("0 1:1\n1.5 1:2\n", {}, r"toy.txt, line 2: the row is not 'label,label feature:value"),
        ("-1 1:2\n", {}, r"line 1: the row is not"),
        ("1, 1:2\n", {}, r"line 1: the row is not"),
        ("1 qid:2 1:2\n", {}, r"line 1: the row is not"),
        ("1 2\n", {}, r"line 1: the row is not"),
        ("1 2:\n", {}, r"line 1: the row is not"),
        ("1 2:nan\n", {}, r"line 1: the row is not"),
        ("1 2:1:3\n", {}, r"line 1: the row is not"),
        ("1,1 2:1\n", {}, r"line 1: label 1 occurs twice"),
        ("1 2:1 2:1\n", {}, r"line 1: feature 2 occurs twice"),
        ("1 2:-1e39\n", {}, r"X of data set 'toy' holds -1e\+39, beyond the range of single"),
        (
            "1 2:1e400\n",
            {},
            r"line 1: the row is not .* labels and features, and numbers as values",
        ),
        ("1 1:1\n\n1 3:1\n", {"n_features": 2}, r"line 3: feature 3 is not between 1 and 2; corr"),
        ("1 0:1\n", {"zero_based": False}, r"line 1: feature 0 is not between 1 and"),
        ("1 1:1\n2,5 1:1\n", {"n_outputs": 3}, r"line 2: label 5 is not between 0 and 2; correct"),
    ],
)
def test_a_bad_svmlight_file_is_refused(write, text, params, message):
    with pytest.raises(ValueError, match=message):
        read_svmlight(write(text), **params)


def test_infinite_features_are_values(write):
    assert read_svmlight(write("1 1:inf 2:-inf\n")).X.toarray().tolist() == [[np.inf, -np.inf]]


NUMBERS = "0.5,-3 1:1 4:2\n2:1\n1e-3,7 1:5\n"


@pytest.mark.parametrize("targets", ["auto", "numbers"])
def test_numbers_to_predict(write, targets):
    data = read_svmlight(write(NUMBERS), targets=targets)
    assert (data.task, data.target_names) == ("regression", ("y0", "y1"))
    np.testing.assert_array_equal(data.Y, [[0.5, -3], [np.nan, np.nan], [1e-3, 7]])
    np.testing.assert_array_equal(data.X.toarray(), [[1, 0, 0, 2], [0, 1, 0, 0], [5, 0, 0, 0]])


def test_whole_numbers_are_labels_unless_said_otherwise(write):
    path = write("3 1:1\n10 1:2\n")
    assert read_svmlight(path, targets="auto").target_names == ("3", "10")
    data = read_svmlight(path, targets="numbers")
    assert data.target_names == ("y",)
    np.testing.assert_array_equal(data.Y, [[3], [10]])
    np.testing.assert_array_equal(read_svmlight(write("1,1 1:1\n"), targets="numbers").Y, [[1, 1]])


def test_scikit_learn_reads_the_same_numbers(write):
    path = write("-1 1:2 3:4\n+1 2:5\n2.5 1:1\n")
    X, y = load_svmlight_file(str(path))
    data = read_svmlight(path, targets="auto")
    np.testing.assert_array_equal(data.X.toarray(), X.toarray())
    np.testing.assert_array_equal(data.Y[:, 0], y)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.5 1:1\n\n1,2 1:1\n", r"line 3: the row has 2 numbers to predict instead of 1"),
        ("1.5 1:1\nx 1:1\n", r"line 2: the row is not 'number,number feature:value"),
        ("nan 1:1\n", r"line 1: the row is not 'number,number"),
        ("1:1\n2:1\n", r"toy.txt has no numbers to predict"),
        ("1.5\n", r"toy.txt has no features"),
    ],
)
def test_bad_numbers_are_refused(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_svmlight(write(text), targets="numbers")


# --- extreme classification -----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"toy.txt, line 1: the first line must hold the numbers of rows, features and"),
        ("2 3\n", r"line 1: the first line must hold"),
        ("1 3 0\n 1:1\n", r"line 1: the first line must hold the numbers"),
        ("2 3 2\n0 1:1\n", r"toy.txt has 1 row but its first line says 2; the file may be cut"),
        ("1 3 2\n0 1:1\n1 1:1\n", r"toy.txt has 2 rows but its first line says 1; correct that"),
        ("1 3 2\n0 3:1\n", r"toy.txt, line 2: feature 3 is not between 0 and 2"),
        ("2 3 2\n0,1 1:1\n2 1:1\n", r"toy.txt, line 3: label 2 is not between 0 and 1"),
        ("1 3 2\n0 a:1\n", r"toy.txt, line 2: the row is not"),
    ],
)
def test_a_bad_xc_file_is_refused(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_xc(write(text))


def test_empty_lines_may_follow_the_rows(write):
    text = "2 3 2\n0 1:1\n\n"  # the second row has neither labels nor features
    for more in ("", "\n", "\n \n\n"):
        data = read_xc(write(text + more))
        np.testing.assert_array_equal(data.Y.toarray(), [[1, 0], [0, 0]])


def test_a_compressed_xc_file(tmp_path):
    path = tmp_path / "toy.txt.gz"
    path.write_bytes(gzip.compress(b"1 2 2\n1 0:0.5\n"))
    data = read_xc(path)
    assert data.name == "toy"
    np.testing.assert_array_equal(data.Y.toarray(), [[0, 1]])


def xc_text(X, Y):
    """The format, written row by row; zeros are not written, rows may be empty."""
    lines = [f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}"]
    for x, y in zip(X, Y, strict=True):
        labels = ",".join(str(j) for j in np.flatnonzero(y))
        lines.append(" ".join([labels, *(f"{j}:{x[j]}" for j in np.flatnonzero(x))]))
    return "\n".join(lines) + "\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_what_is_written_comes_back_unchanged(write, data):
    n, p, d = (data.draw(st.integers(1, 5)) for _ in range(3))
    values = st.one_of(st.just(0.0), st.floats(width=32, allow_nan=False, allow_infinity=False))
    X = np.array(data.draw(st.lists(values, min_size=n * p, max_size=n * p)), np.float32)
    Y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n * d, max_size=n * d)), np.uint8)
    X, Y = X.reshape(n, p), Y.reshape(n, d)
    read = read_xc(write(xc_text(X, Y)))
    assert sparse.issparse(read.X)
    assert sparse.issparse(read.Y)
    np.testing.assert_array_equal(read.X.toarray(), X)
    np.testing.assert_array_equal(read.Y.toarray(), Y)
    assert read.Y.nnz == Y.sum()
