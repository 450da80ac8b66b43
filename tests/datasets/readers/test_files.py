"""Files of any format are opened by name and read in blocks, with the same values however cut."""

import csv
import gzip
import io
import math
import sys

import numpy as np
import pytest

from manyboost.datasets.readers import files, tables
from manyboost.datasets.readers.columns import Column, Table, features_of, outputs_of, stack
from manyboost.datasets.readers.text import format_of

MISSING = ["", "?", "NA", "nan", "null", " "]


@pytest.fixture
def write(tmp_path):
    def write(text, name="toy.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return write


def open_file(path, format=None, **options):
    return files.open_file(path, format or format_of(path), **options)


def whole(file, features, outputs=(), is_nominal=None):
    """Features and outputs of all rows, put together from blocks."""
    blocks = list(file.blocks(features, list(outputs), is_nominal or {}))
    return tuple(stack([pair[k] for pair in blocks]) for k in (0, 1))


def decoded(table):
    """Rows of a table with labels in place of codes and None for what is missing."""
    return [
        [
            None
            if math.isnan(value)
            else value
            if c.categories is None
            else c.categories[int(value)]
            for value, c in zip(row, table.columns, strict=True)
        ]
        for row in table.values.tolist()
    ]


def slowly(text, kinds):
    """The same from the whole text, cell by cell."""
    _, *rows = [row for row in csv.reader(io.StringIO(text)) if row]

    def cell(value, is_text):
        value = value.strip()
        if value.lower() in ("", "?", "na", "nan", "null"):
            return None
        return value if is_text else float(value)

    return [[cell(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in rows]


@pytest.mark.parametrize("block", [1, 7, 40, 1 << 18])
@pytest.mark.parametrize("quotes", ["none", "some"])
@pytest.mark.parametrize("share_missing", [0, 0.02, 0.5])
def test_blocks_of_a_csv_file_are_the_file(write, monkeypatch, block, quotes, share_missing):
    monkeypatch.setattr(tables, "BLOCK_CELLS", block)
    rng = np.random.default_rng(block)
    lines = []
    for i in range(60):
        word = ["red", "blue", "7", "deep sea", "été"][rng.integers(5)] if i else "red"
        if quotes == "some" and i % 9 == 4:
            word = '"a, ""b""\nc"'
        cells = [f"{rng.normal():.6g}", word, f" {rng.integers(1000)} ", repr(rng.normal() * 1e30)]
        lines.append(
            ",".join(
                MISSING[rng.integers(6)] if rng.random() < share_missing else cell for cell in cells
            )
        )
        if i % 11 == 3:
            lines.append("")
    text = "x,colour,k,z\n" + "\n".join(lines) + ("\n" if block % 2 else "")
    file = open_file(write(text))
    assert file.names == ["x", "colour", "k", "z"]
    features, outputs = whole(file, [2, 1], [3, 0], {1: True})
    expected = slowly(text, [False, True, False, False])
    assert decoded(features) == [[row[2], row[1]] for row in expected]
    assert decoded(outputs) == [[row[3], row[0]] for row in expected]


def test_a_column_is_what_its_first_value_is(write, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_CELLS", 3)
    file = open_file(write("a,b,c\n,?,\n1,,\n2,x,\n3,4,\n"))
    table, _ = whole(file, [0, 1, 2])
    assert decoded(table) == [[None, None, None], [1, None, None], [2, "x", None], [3, "4", None]]


@pytest.mark.parametrize("block", [4, 1 << 18])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,2\n3,x\n", r"toy.csv, line 3: column 'b' holds 'x', which is not a number; correct it"),
        ("1,2\n3,1_0\n", r"line 3: column 'b' holds '1_0', which is not a number"),
        ("1,2\n\n3\n", r"toy.csv, line 4: the row has 1 cell for 2 columns; check delimiter"),
        ("1,2\n3,4,5\n", r"toy.csv, line 3: the row has 3 cells for 2 columns"),
        ('1,2\n3,"4"x\n', r"toy.csv, line 3: not valid CSV"),
        ('1,2\n"3,4\n5,6\n', r"toy.csv, line 4: not valid CSV"),
    ],
)
def test_a_bad_line_is_named(write, monkeypatch, rows, message, block):
    monkeypatch.setattr(tables, "BLOCK_CELLS", block)
    file = open_file(write("a,b\n" + rows))
    with pytest.raises(ValueError, match=message):
        whole(file, [0, 1])


@pytest.mark.parametrize("text", ["", "a,,b\n1,2,3\n"])
def test_columns_without_names_are_refused(write, text):
    with pytest.raises(ValueError, match=r"The first line of toy.csv must name every column"):
        open_file(write(text))


def test_two_columns_of_one_name_are_refused(write):
    with pytest.raises(ValueError, match=r"toy.csv has two columns called 'a'"):
        open_file(write("a,b,a\n1,2,3\n"))


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.csv", "csv"), ("a.TSV", "csv"), ("b.csv.gz", "csv"), ("b.c.parquet", "parquet"),
        ("x.arff.gz", "arff"), ("x.npz", "npz"), ("x.libsvm", "svmlight"), ("-", "csv"),
    ],
)  # fmt: skip
def test_the_ending_tells_the_format(name, format):
    assert format_of(name) == format


def test_an_unknown_ending_has_no_format():
    assert format_of("a.dat") is None
    assert format_of("csv") is None


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none.csv' does not exist; check its name"):
        open_file(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError, match=r"is a folder; check its name"):
        open_file(tmp_path, format="csv")


@pytest.mark.parametrize("compress", [False, True])
def test_standard_input_is_read_once(monkeypatch, compress):
    text = b"a\tb\n1\t2\n3\t4\n"
    stream = io.BufferedReader(io.BytesIO(gzip.compress(text) if compress else text))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    file = open_file("-", delimiter="\t")
    assert file.file == "standard input"
    assert whole(file, [1, 0])[0].values.tolist() == [[2, 1], [4, 3]]


def test_parquet_comes_in_blocks_too(tmp_path, monkeypatch):
    polars = pytest.importorskip("polars")
    monkeypatch.setattr(tables, "BLOCK_CELLS", 6)
    columns = {"x": [1, None, 3, 4, 5], "town": ["a", None, "b", "a", "c"], "y": [0.5, 1, 2, 3, 4]}
    polars.DataFrame(columns, strict=False).write_parquet(tmp_path / "toy.parquet")
    file = open_file(tmp_path / "toy.parquet")
    assert len(list(file.blocks([0, 1], [2], {}))) == 3
    features, outputs = whole(file, [1, 0], [2])
    assert decoded(features) == [["a", 1], [None, None], ["b", 3], ["a", 4], ["c", 5]]
    assert decoded(outputs) == [[0.5], [1], [2], [3], [4]]


def test_parquet_columns_of_other_types_are_refused(tmp_path):
    polars = pytest.importorskip("polars")
    polars.DataFrame({"x": [[1], [2]]}).write_parquet(tmp_path / "toy.parquet")
    with pytest.raises(ValueError, match=r"Column 'x' of toy.parquet holds values of type List"):
        whole(open_file(tmp_path / "toy.parquet"), [0])


ARFF = """\
@relation 'Music: -C 2'
@attribute happy {0,1}
@attribute mood {0,1}
@attribute tempo numeric
@attribute genre {rock, 'hip hop'}
@attribute loud {0,1}
@data
1,0,120,rock,1
0,1,?,'hip hop',0
"""


def test_an_arff_file_says_what_it_holds(write):
    file = open_file(write(ARFF, "music.arff"))
    assert list(file.declared) == [0, 1]
    features, outputs = whole(file, [2, 3, 4], file.declared)
    assert decoded(features) == [[120, "rock", 1], [None, "hip hop", 0]]
    assert outputs.values.tolist() == [[1, 0], [0, 1]]
    assert decoded(whole(file, [4], is_nominal={4: True})[0]) == [["1"], ["0"]]


def test_an_arff_file_may_have_another_encoding(tmp_path):
    path = tmp_path / "music.arff"
    path.write_bytes(ARFF.replace("hip hop", "düster").encode("latin-1"))
    features, _ = whole(open_file(path, encoding="latin-1"), [3])
    assert decoded(features) == [["rock"], ["düster"]]


def test_categories_in_sparse_rows_become_dense(write):
    text = ARFF.split("@data")[0] + "@data\n{0 1, 2 120}\n{3 'hip hop'}\n"
    features, _ = whole(open_file(write(text, "music.arff")), [2, 3])
    table = features_of(features)
    assert table.values.tolist() == [[120, 0], [0, 1]]
    assert table.categories == {1: ("rock", "hip hop")}


def test_svmlight_counts_features_as_another_file_did(write):
    train = open_file(write("3,7 0:0.5 2:2\n7 1:1\n", "train.svm"))
    assert train.names == ["0", "1", "2", "3", "7"]
    like = ["0", "1", "2"], ["3", "7"]
    # Neither has the feature 0, the second no labels.
    test = open_file(write("7,9 1:4\n", "test.svm"), like=like)
    blank = open_file(write("1:4\n2:5\n", "blank.svm"), like=like)
    features, outputs = whole(test, [0, 1, 2], test.declared)
    assert features.values.toarray().tolist() == [[0, 4, 0]]
    assert outputs.values.toarray().tolist() == [[0, 1]]
    features, _ = whole(blank, [0, 1, 2])
    assert features.values.toarray().tolist() == [[0, 4, 0], [0, 0, 5]]
    from_one = open_file(write("1:4\n", "one.svm"), like=(["1", "2"], ["3"]))
    assert whole(from_one, [0, 1])[0].values.toarray().tolist() == [[4, 0]]
    # Features that the other file did not have are ignored, as columns of other formats are.
    more = open_file(write("3 0:1 5:1\n7 5:2\n3 2:4 3:5\n", "more.svm"), like=like)
    assert whole(more, [0, 1, 2])[0].values.toarray().tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 4]]
    with pytest.raises(ValueError, match=r"feature 0 is not between 1 and 2"):
        open_file(write("0:4\n", "zero.svm"), like=(["1", "2"], ["3"]))


def test_a_file_without_rows_has_no_blocks(write):
    file = open_file(write("# nothing\n", "empty.svm"), like=(["0", "1"], ["3"]))
    assert list(file.blocks([0, 1], [], {})) == []


def test_a_column_may_be_a_feature_and_an_output(write):
    features, outputs = whole(open_file(write("a,b\n1,2\n3,4\n", "toy.csv")), [0, 1], [0])
    assert features.values.tolist() == [[1, 2], [3, 4]]
    assert outputs.values.tolist() == [[1], [3]]


# ------------------------------------------------------------------ what outputs are


def outputs(*columns, task=None):
    described = [Column(name, categories) for name, categories, _ in columns]
    values = np.column_stack([np.array(values, float) for _, _, values in columns])
    return outputs_of(Table("toy.csv", described, values, "line {}".format), task)


def test_text_is_classes():
    found, kind = outputs(("species", ("b", "a"), [0, 1, 0]))
    assert (kind, found.name, found.to_list()) == ("classes", "species", ["b", "a", "b"])


def test_zeros_and_ones_are_two_classes_or_labels():
    one, kind = outputs(("y", None, [0, 1, 1]))
    assert (kind, one.dtype, one.to_list()) == ("classes", np.int64, [0, 1, 1])
    several, kind = outputs(("a", None, [0, 1]), ("b", ("yes", "No"), [0, 1]))
    assert (kind, several.values.dtype) == ("labels", np.uint8)
    assert several.values.tolist() == [[0, 1], [1, 0]]


def test_missing_labels_stay_missing():
    found, kind = outputs(("a", None, [0, np.nan]), ("b", ("no", "yes"), [0, 1]))
    assert kind == "labels"
    np.testing.assert_array_equal(found.values, [[0, 0], [np.nan, 1]])


def test_numbers_are_regression_unless_classes_are_asked_for():
    assert outputs(("y", None, [0, 1, 2]))[1] == "regression"
    found, kind = outputs(("y", None, [0, 1, 2]), task="classification")
    assert (kind, found.dtype) == ("classes", np.int64)
    found, kind = outputs(("y", None, [0, 1]), task="regression")
    assert (kind, found.dtype) == ("regression", np.float64)


@pytest.mark.parametrize(
    ("columns", "task", "message"),
    [
        ([("y", ("a", "b"), [0, 1])], "regression", r"'y' of toy.csv is text, which regression"),
        ([("y", ("a", "b"), [0, np.nan])], None, r"toy.csv, line 1: the class 'y' is missing"),
        ([("a", ("no", "yes"), [0, 1]), ("b", None, [0, 3])], None, r"has labels .* and numbers"),
    ],
)
def test_outputs_that_do_not_go_together_are_refused(columns, task, message):
    with pytest.raises(ValueError, match=message):
        outputs(*columns, task=task)


@pytest.mark.parametrize(
    ("value", "dtype"), [(1e39, "f8"), (0.1, "f8"), (0.5, "f4"), (np.inf, "f4")]
)
def test_features_are_in_single_precision_if_that_is_exact(value, dtype):
    values = np.array([[1.0], [value], [np.nan]])
    X = features_of(Table("toy.csv", [Column("x")], values, "line {}".format)).values
    assert X.dtype == dtype
    np.testing.assert_array_equal(X, values)


def test_numbers_of_a_file_without_text_are_categories_if_asked_for(write):
    head = "@relation r\n@attribute a numeric\n@attribute b {0,1}\n@attribute c {x,y}\n@data\n"
    rows = "2,1,y\n?,0,x\n10,?,y\n-0,1,x\n0,0,?\n2.5,1,x\n"
    file = open_file(write(head + rows, "toy.arff"))
    X, Y = whole(file, [0, 1], [2], {0: True, 1: True, 2: True})
    assert X.categories == {0: ("0", "10", "2", "2.5"), 1: ("0", "1")}
    expected = [["2", "1"], [None, "0"], ["10", None], ["0", "1"], ["0", "0"], ["2.5", "1"]]
    assert decoded(X) == expected
    assert Y.categories == {0: ("x", "y")}
    # Outputs are as the file has them.
    assert whole(file, [1], [0], {0: True})[1].categories == {}
