"""CSV and Parquet files are read exactly, or refused by column and row."""

import csv
import gzip
import sys

import numpy as np
import pytest

from manyboost.datasets import read_csv, read_parquet

HOUSES = """\
id,area,town,warm,y_heat,y_cool
7,80.5,Ghent,1,1.5,2
"8","","Huy, north",0,2.5,NA

9,nan,?,?,1e300,-3
"""
HOUSES_CHOICE = {"targets": "y_*", "categorical": "town", "drop": "id"}


@pytest.fixture
def write(tmp_path):
    def write(text, name="toy.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return write


def check_houses(houses):
    assert houses.task == "regression"
    assert houses.feature_names == ("area", "town", "warm")
    assert houses.target_names == ("y_heat", "y_cool")
    assert houses.categorical == (1,)
    assert houses.categories == {1: ("Ghent", "Huy, north")}
    assert houses.X.dtype == np.float32
    nan = np.nan
    np.testing.assert_array_equal(houses.X, [[80.5, 0, 1], [nan, 1, 0], [nan, nan, nan]])
    np.testing.assert_array_equal(houses.Y, [[1.5, 2], [2.5, nan], [1e300, -3]])


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_csv_file(write, mark, ending):
    houses = read_csv(write(mark + HOUSES.replace("\n", ending), "houses.csv"), **HOUSES_CHOICE)
    assert houses.name == "houses"
    check_houses(houses)


def test_a_compressed_csv_file(tmp_path):
    path = tmp_path / "houses.csv.gz"
    path.write_bytes(gzip.compress(HOUSES.encode()))
    check_houses(read_csv(path, **HOUSES_CHOICE))


def test_another_delimiter(write):
    data = read_csv(write("x;y\n1;2\n3;4\n"), targets="y", delimiter=";")
    np.testing.assert_array_equal(data.X, [[1], [3]])


@pytest.mark.parametrize(
    ("targets", "expected"),
    [("y*", ["y1", "y2"]), (["y2", "y1"], ["y2", "y1"]), (1, ["x"]), (-1, ["y2"])],
)
def test_outputs_by_name_pattern_or_number(write, targets, expected):
    data = read_csv(write("x,y1,y2\n0.5,1.5,2.5\n"), targets=targets)
    assert list(data.target_names) == expected
    assert data.Y.tolist() == [[{"x": 0.5, "y1": 1.5, "y2": 2.5}[name] for name in expected]]


@pytest.mark.parametrize("words", [("0", "1"), ("0.0", "1"), ("False", "TRUE"), ("no", "yes")])
def test_outputs_of_two_values_are_labels(write, words):
    off, on = words
    data = read_csv(write(f"x,a,b\n1,{off},{on}\n2,{on},{on}\n"), targets=["a", "b"])
    assert data.task == "multilabel"
    assert data.Y.dtype == np.uint8
    assert data.Y.tolist() == [[0, 1], [1, 1]]


def test_the_task_can_be_given(write):
    data = read_csv(write("x,a\n1,0\n2,1\n"), targets="a", task="regression")
    assert (data.task, data.Y.dtype) == ("regression", np.float64)


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        ("", {}, r"The first line of toy.csv must name every column"),
        ("x,,y\n1,2,3\n", {}, r"The first line of toy.csv must name every column"),
        ("x,y\n", {}, r"toy.csv has no rows"),
        ("x,y,x\n1,2,3\n", {}, r"toy.csv has two columns called 'x'; rename one"),
        ("x,y\n1,2\n3\n", {}, r"toy.csv, line 3: the row has 1 cell for 2 columns"),
        ('x,y\n1,"2\n', {}, r"toy.csv, line 2: not valid CSV"),
        ("x,y\r1,2\r", {}, "toy.csv, line 1: a line ends with a carriage return alone; save the"),
        ("x,y\n1,2\nred,2\n", {}, r"toy.csv, line 3: column 'x' holds 'red', .* categorical"),
        ("x,y\n1e39,2\n", {}, r"toy.csv, line 2: feature 'x' holds 1e\+39, beyond"),
        ("x,y\n1_0,2\n", {}, r"line 2: column 'x' holds '1_0', which is not a number"),
        ("x,y\n1,red\n2,blue\n", {}, r"Output 'y' of toy.csv takes the values 'blue', 'red', not"),
        ("x,y\n1,0\n2,\n", {}, r"toy.csv, line 3: label 'y' is missing, not 0 or 1"),
        ("x,y\n1,2\n", {"task": "multilabel"}, r"toy.csv, line 2: label 'y' is 2, not 0 or 1"),
        ("x,y\n1,2\n", {"targets": "z*"}, r"targets='z\*' matches no column of toy.csv"),
        ("x,y\n1,2\n", {"categorical": "z"}, r"categorical='z' matches no column of toy.csv"),
        ("x,y\n1,2\n", {"categorical": "y"}, r"Column 'y' of toy.csv is in both targets and cat"),
        ("x,y\n1,2\n", {"drop": "y"}, r"Column 'y' of toy.csv is in both targets and drop"),
        ("x,y\n1,2\n", {"drop": "x"}, r"toy.csv is left without any feature"),
    ],
)  # fmt: skip
def test_a_bad_csv_file_is_refused(write, text, params, message):
    with pytest.raises(ValueError, match=message):
        read_csv(write(text), **{"targets": "y", **params})


def test_cells_beyond_the_limit_of_the_csv_module_are_refused(write):
    path = write(f'x,y\n1,"{"long" * 40_000}"\n')
    limit = csv.field_size_limit(131_072)  # its default, which other packages may have raised
    try:
        with pytest.raises(ValueError, match="line 2: a cell has more than 131,072 characters; cl"):
            read_csv(path, targets="y")
    finally:
        csv.field_size_limit(limit)


def test_long_cells_are_quoted_in_part(write):
    with pytest.raises(ValueError, match=r"takes the values 'a{59}…', not 0 and 1"):
        read_csv(write(f"x,y\n1,{'a' * 1000}\n"), targets="y")


# --- Parquet --------------------------------------------------------------------------


@pytest.fixture
def parquet(tmp_path):
    polars = pytest.importorskip("polars")

    def write(columns, name="toy.parquet"):
        path = tmp_path / name
        polars.DataFrame(columns, strict=False).write_parquet(path)
        return path

    return write


HOUSE_COLUMNS = {
    "id": ["7", "8", "9"],
    "area": [80.5, float("nan"), None],
    "town": ["Ghent", "Huy, north", None],
    "warm": [True, False, None],
    "y_heat": [1.5, 2.5, 1e300],
    "y_cool": [2, None, -3],
}


def test_a_parquet_file(parquet):
    houses = read_parquet(parquet(HOUSE_COLUMNS, "houses.parquet"), **HOUSES_CHOICE)
    assert houses.name == "houses"
    check_houses(houses)


@pytest.mark.parametrize("read", [read_csv, read_parquet])
def test_a_missing_polars_is_named_with_its_extra(read, write, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"needs the package polars; .* 'manyboost\[files\]'"):
        read(write("x,y\n1,2\n"), targets="y")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1", "2"], r"toy.parquet, row 0: column 'x' holds '1', which is not a number"),
        ([b"1", b"2"], r"Column 'x' of toy.parquet holds values of type Binary, neither numbers"),
        ([[1], [2]], r"Column 'x' of toy.parquet holds values of type List"),
    ],
)
def test_a_column_of_another_type_is_refused_by_name(parquet, cells, message):
    with pytest.raises(ValueError, match=message):
        read_parquet(parquet({"x": cells, "y": [1.5, 2.5]}), targets="y")


@pytest.mark.parametrize("word", ["inf", "Infinity", "INF"])
def test_infinite_features_are_values(write, word):
    data = read_csv(write(f"x,y\n1,2\n{word},3\n-inf,4\n"), targets="y")
    assert data.X[:, 0].tolist() == [1, np.inf, -np.inf]


def test_numbers_beyond_double_precision_are_not_infinite(write):
    path = write("a,y\n1,2\n-1e400,3\n")
    with pytest.raises(ValueError, match=r"line 3: column 'a' holds '-1e400', which is not a num"):
        read_csv(path, targets="y")
    # Nor are they categories, as text at the beginning of a column is.
    path = write(f"a,y\n{'9' * 400},2\n1,3\n")
    with pytest.raises(ValueError, match=r"line 2: column 'a' holds '9{39}…', which is not a num"):
        read_csv(path, targets="y")


def test_lines_end_with_their_ends_alone_in_all_encodings(tmp_path):
    path = tmp_path / "toy.csv"
    for encoding in ("utf-8", "utf-16"):
        path.write_bytes("c,y\na\u2028b,1\nc\x0bd,2\ne\x85f,3\n".encode(encoding))
        toy = read_csv(path, targets="y", categorical="c", encoding=encoding)
        assert toy.categories == {0: ("a\u2028b", "c\x0bd", "e\x85f")}


@pytest.mark.parametrize("content", [b"", b"PAR1 is how these begin", b"a,b\n1,2\n"])
def test_what_is_no_parquet_file_is_refused_by_name(tmp_path, content):
    path = tmp_path / "toy.parquet"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"toy\.parquet is not a sound Parquet file \(.*; get the"):
        read_parquet(path, targets="y")


def test_infinite_features_of_parquet_files_are_values(parquet):
    data = read_parquet(parquet({"x": [1.0, float("inf")], "y": [1.5, 2.5]}), targets="y")
    assert data.X[:, 0].tolist() == [1, np.inf]
