"""ARFF files are read exactly, or refused with the line that is wrong."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import arff

from manyboost.datasets import read_arff

MUSIC = """\
% a comment
@RELATION 'Music: -C 2'

@attribute happy {0,1}
@attribute 'is sad' {0,1}
  % another comment
@attribute tempo NUMERIC
@attribute genre {rock, 'hip hop', "rock'n'roll"}
@attribute loud {0, 1}
@data
1,0,120.5,rock,1
0, 1 , -1e3 ,'hip hop',0

% rows may be followed by comments
0,0,?,"rock'n'roll",?
1\t1\t0\t'hip hop'\t1
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="toy.arff"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return write


def header(*attributes, relation="toy"):
    return "\n".join([f"@relation {relation}", *(f"@attribute {a}" for a in attributes), "@data\n"])


# --- what is read ---------------------------------------------------------------------


def test_a_dense_file(write):
    music = read_arff(write(MUSIC, "music.arff"))
    assert (music.name, music.task, music.split) == ("music", "multilabel", None)
    assert music.target_names == ("happy", "is sad")
    assert music.feature_names == ("tempo", "genre", "loud")
    assert music.X.dtype == np.float32
    np.testing.assert_array_equal(
        music.X, [[120.5, 0, 1], [-1000, 1, 0], [np.nan, 2, np.nan], [0, 1, 1]]
    )
    assert music.Y.dtype == np.uint8
    np.testing.assert_array_equal(music.Y, [[1, 0], [0, 1], [0, 0], [1, 1]])


def test_nominal_features_keep_their_categories_and_binary_ones_are_numbers(write):
    music = read_arff(write(MUSIC))
    assert music.categorical == (1,)
    assert music.categories == {1: ("rock", "hip hop", "rock'n'roll")}


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks_do_not_matter(write, ending, mark):
    music = read_arff(write(mark + MUSIC.replace("\n", ending)))
    assert music.target_names == ("happy", "is sad")
    assert music.n_rows == 4


def test_a_compressed_file(tmp_path, write):
    path = tmp_path / "music.arff.gz"
    path.write_bytes(gzip.compress(MUSIC.encode()))
    music = read_arff(path)
    assert music.name == "music"
    np.testing.assert_array_equal(music.X, read_arff(write(MUSIC)).X)


def test_a_sparse_file_says_the_same_as_a_dense_one(write):
    attributes = ["a {0,1}", "b {0,1}", "x numeric", "k {u, 'v w', z}"]
    dense = read_arff(write(header(*attributes) + "0,1,0,'v w'\n1,0,2.5,u\n0,0,?,z\n"), targets=2)
    rows = "{1 1, 3 'v w'}\n{0 1,2 2.5}\n{ 2 ? , 3 z }\n"
    thin = read_arff(write(header(*attributes) + rows), targets=2)
    assert thin.X.format == thin.Y.format == "csr"
    assert (thin.X.dtype, thin.Y.dtype) == (np.float32, np.uint8)
    np.testing.assert_array_equal(thin.X.toarray(), dense.X)
    np.testing.assert_array_equal(thin.Y.toarray(), dense.Y)
    assert thin.Y.nnz == 2
    assert thin.categories == dense.categories


def test_an_empty_sparse_row_is_all_zeros(write):
    data = read_arff(write(header("a {0,1}", "x numeric") + "{}\n{ 0 1 }\n"), targets="a")
    np.testing.assert_array_equal(data.X.toarray(), [[0], [0]])
    np.testing.assert_array_equal(data.Y.toarray(), [[0], [1]])


def test_an_unwritten_label_is_its_first_category(write):
    text = header("a {1,0}", "b {NO,YES}", "c {0,1}", "x numeric") + "{}\n{0 0,1 YES,2 1}\n"
    np.testing.assert_array_equal(
        read_arff(write(text), targets=3).Y.toarray(), [[1, 0, 0], [0, 1, 1]]
    )


def test_labels_may_be_words(write):
    text = (
        header("a {TRUE,FALSE}", "b {no,yes}", "c {1}", "x numeric")
        + "FALSE,yes,1,0\nTRUE,no,1,0\n"
    )
    np.testing.assert_array_equal(read_arff(write(text), targets=3).Y, [[0, 1, 1], [1, 0, 1]])


def test_numbers_to_predict_keep_double_precision_and_missing_values(write):
    text = header("x numeric", "y real", "z integer") + "1,0.1,?\n2,1e300,5\n"
    data = read_arff(write(text), targets=["y", "z"])
    assert data.task == "regression"
    assert data.Y.dtype == np.float64
    np.testing.assert_array_equal(data.Y, [[0.1, np.nan], [1e300, 5]])


def test_numbers_to_predict_are_dense_even_in_a_sparse_file(write):
    data = read_arff(write(header("x numeric", "y numeric") + "{1 2.5}\n{0 1}\n"), targets="y")
    np.testing.assert_array_equal(data.Y, [[2.5], [0]])


def test_dates_are_days(write):
    attributes = ["a date", "b date 'dd.MM.yy'", 'c date "yyyy-MM-dd HH:mm Z"', "y numeric"]
    rows = "1970-01-02T12:00:00,01.02.70,'1970-01-01 01:00 +0100',2\n?,?,?,3\n"
    data = read_arff(write(header(*attributes) + rows), targets="y")
    np.testing.assert_array_equal(data.X, [[1.5, 31, 0], [np.nan] * 3])


def test_text_can_be_left_out(write):
    text = header("id string", "x numeric", "y numeric") + "'a, b',1,2\nc,3,4\n"
    data = read_arff(write(text), targets="y", drop="i*")
    assert data.feature_names == ("x",)
    np.testing.assert_array_equal(data.X, [[1], [3]])


def test_zeros_and_ones_may_be_numbers_to_predict(write):
    text = header("x numeric", "y {0,1}") + "5,1\n6,0\n"
    data = read_arff(write(text), targets="y", task="regression")
    assert data.task == "regression"
    assert data.Y.dtype == np.float64


def test_another_encoding(tmp_path):
    path = tmp_path / "toy.arff"
    path.write_bytes((header("café numeric", "y numeric") + "1,2\n").encode("latin-1"))
    assert read_arff(path, targets="y", encoding="latin-1").feature_names == ("café",)
    with pytest.raises(ValueError, match=r"^toy.arff, line 2: the text is not utf-8; pass the enc"):
        read_arff(path, targets="y")


def test_scipy_reads_the_same_numbers(write):
    rng = np.random.default_rng(0)
    rows = "".join(f"{u},{'abc'[int(3 * u)]},{v}\n" for u, v in rng.random((50, 2)).tolist())
    path = write(header("u numeric", "k {a,b,c}", "v numeric") + rows)
    ours = read_arff(path, targets="v")
    theirs, _ = arff.loadarff(str(path))
    np.testing.assert_array_equal(ours.X[:, 0], theirs["u"].astype(np.float32))
    np.testing.assert_array_equal([b"abc"[int(k) : int(k) + 1] for k in ours.X[:, 1]], theirs["k"])
    np.testing.assert_array_equal(ours.Y[:, 0], theirs["v"])


# --- which attributes are outputs -----------------------------------------------------

FOUR = ["a {0,1}", "b1 {0,1}", "b2 {0,1}", "x {0,1}"]


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ("b1", ["b1"]),
        ("b*", ["b1", "b2"]),
        (["b2", "a"], ["b2", "a"]),
        (["b*", "b1", "a"], ["b1", "b2", "a"]),
        (1, ["a"]),
        (-2, ["b2", "x"]),
    ],
)
def test_outputs_by_name_pattern_or_number(write, targets, expected):
    data = read_arff(write(header(*FOUR) + "0,0,1,1\n"), targets=targets)
    assert list(data.target_names) == expected
    value = {"a": 0, "b1": 0, "b2": 1, "x": 1}
    assert data.Y.tolist() == [[value[name] for name in expected]]
    assert list(data.feature_names) == [name for name in value if name not in expected]


def test_a_name_comes_before_a_pattern(write):
    data = read_arff(write(header("'b*' {0,1}", *FOUR) + "0,0,0,1,1\n"), targets="b*")
    assert data.target_names == ("b*",)


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("'Music: -C 1'", ["a"]),
        ("'Music: -C -1'", ["x"]),
        ("'-c 2 -split-number 3'", ["a", "b1"]),
        ("Music:  -C  -2", ["b2", "x"]),
    ],
)
def test_meka_keeps_the_number_of_outputs_in_the_name(write, relation, expected):
    data = read_arff(write(header(*FOUR, relation=relation) + "0,0,1,1\n"))
    assert list(data.target_names) == expected


XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="x"><label name="b2"></label></label>
</labels>"""


def test_mulan_names_labels_in_an_xml_file_and_they_may_be_nested(write):
    path = write(header(*FOUR) + "0,0,1,1\n")
    data = read_arff(path, labels=write(XML, "toy.xml"))
    assert data.target_names == ("b2", "x")


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (XML.replace('"b2"', '"b9"'), r"Label 'b9' of toy.xml is not an attribute of toy.arff"),
        (XML.replace('"b2"', '"x"'), r"toy.xml has two labels called 'x'"),
        (XML.replace("name", "id"), r"toy.xml has a label without a name"),
        ("<labels></labels>", r"toy.xml has no labels"),
        (XML.replace("</labels>", ""), r"toy.xml, line 4: not well-formed XML"),
        ("<!DOCTYPE labels>" + XML[38:], r"toy.xml defines a document type"),
    ],
)
def test_a_bad_labels_file_is_refused(write, xml, message):
    with pytest.raises(ValueError, match=message):
        read_arff(write(header(*FOUR) + "0,0,1,1\n"), labels=write(xml, "toy.xml"))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, r"toy.arff does not say which attributes are outputs; pass labels"),
        ({"targets": "a", "labels": "toy.xml"}, r"labels and targets both say"),
        ({"targets": "b11"}, r"targets='b11' matches no column of toy.arff; did you mean 'b1'"),
        (
            {"targets": "q*"},
            r"targets='q\*' matches no column .* available: 'a', 'b1', 'b2', 'x'.",
        ),
        ({"targets": 0}, r"targets=0 does not leave outputs and features among the 4 columns"),
        ({"targets": 4}, r"targets=4 does not leave"),
        ({"targets": []}, r"toy.arff is left without any output"),
        ({"targets": "*"}, r"toy.arff is left without any feature"),
        ({"targets": "a", "drop": "a"}, r"Column 'a' of toy.arff is in both targets and drop"),
        ({"targets": "a", "drop": "z"}, r"drop='z' matches no column"),
        ({"targets": "a", "task": "ranking"}, r"task='ranking' is not a task"),
    ],
)
def test_a_bad_choice_of_outputs_is_refused(write, params, message):
    with pytest.raises(ValueError, match=message):
        read_arff(write(header(*FOUR) + "0,0,1,1\n"), **params)


# --- what is refused ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@attribute x numeric\n@data\n1\n", r"line 1: an attribute comes before @relation"),
        ("@relation\n", r"line 1: write @relation once"),
        ("@relation a\n@relation b\n", r"line 2: write @relation once"),
        ("@relation a\n@data\n1\n", r"line 2: @data is out of place; no attribute comes before"),
        ("@relation a\n@attribute x real\n@data 1\n", r"line 3: @data is out of place; rows begin"),
        ("@relation a\n@attribute x real\n1,2\n", r"line 3: '1,2' is not part of a header"),
        ("@relation a\n@attribute x real\n", r"toy.arff has no @data line; the file may be cut"),
        ("", r"toy.arff has no @data line"),
        (header("x real"), r"toy.arff has no rows after @data"),
        (header("x"), r"line 2: '@attribute x' is not an attribute; write @attribute NAME TYPE"),
        (header("x y real"), r"line 2: attribute 'x' has the type 'y real'; expected numeric"),
        (header("'x real"), r"line 2: .* is not an attribute"),
        (header("100% real"), r"line 2: attribute '100' has the type '% real'"),
        (header("x relational"), r"line 2: attribute 'x' has the type 'relational'"),
        (header("x {}"), r"line 2: the categories of 'x' are not a list"),
        (header("x {a,,b}"), r"line 2: the categories of 'x' are not a list"),
        (header("x {a,'b}"), r"line 2: the categories of 'x' are not a list"),
        (header("x {a,?}"), r"line 2: the categories of 'x' are not a list"),
        (header("x {a,b,a}"), r"line 2: attribute 'x' names a category twice"),
        (header("x {a,b} % c"), r"line 2: attribute 'x' has the type"),
        (header("x real", "'x' real"), r"line 3: there is an attribute 'x' already"),
        (header("x date yyyy-DDD"), r"line 2: the date format 'yyyy-DDD' is not understood"),
        (header("x date \"yyyy'\""), r"line 2: the date format \"yyyy'\" is not understood"),
    ],
)  # fmt: skip
def test_a_malformed_header_is_refused_with_its_line(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_arff(write(text), targets=1)


THREE = header("x numeric", "k {a,b}", "y numeric", "t date")


def test_infinite_features_are_values(write):
    data = read_arff(write(header("x numeric", "y numeric") + "inf,1.5\n-inf,2\n"), targets="y")
    assert data.X[:, 0].tolist() == [float("inf"), float("-inf")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,a,2", r"the row has 3 values for 4 attributes; separate values by commas"),
        ("1,a,2,?,3", r"the row has 5 values for 4 attributes"),
        ("one,a,2,?", r"attribute 'x' holds 'one', which is not a number or a date as declared"),
        ("1_0,a,2,?", r"attribute 'x' holds '1_0', which is not a number"),
        ("nan,a,2,?", r"attribute 'x' holds 'nan', which is not a number"),
        ("1e400,a,2,?", r"attribute 'x' holds '1e400', which is not a number"),
        (",a,2,?", r"attribute 'x' holds '', which is not a number"),
        ("1,c,2,?", r"attribute 'k' holds 'c', which is not one of its categories"),
        ("1,'?',2,?", r"attribute 'k' holds '\?', which is not one of its categories"),
        ("1,a,5%,?", r"attribute 'y' holds '5%', which is not a number"),
        ("1,a,2,1970-13-01T00:00:00", r"attribute 't' holds '1970-13-01T00:00:00', which is not"),
        ("1,'a,2,?", r"a quote is not closed, or is inside a value"),
        ("1,a'b',2,?", r"a quote is not closed, or is inside a value"),
        ("{0 1}", r"a sparse row follows dense ones"),
        ("1,a,2,{5}", r"attribute 't' holds '\{5\}'"),
    ],
)
def test_a_malformed_row_is_refused_with_its_line(write, row, message):
    text = THREE + "1,a,2,?\n% comment\n" + row + "\n"
    with pytest.raises(ValueError, match=f"^toy.arff, line 9: {message}"):
        read_arff(write(text), targets="y")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{0 1", r"'{0 1' is not a sparse row; write {index value"),
        ("1,a,2,?", r"'1,a,2,\?' is not a sparse row"),
        ("{0}", r"'\{0\}' is not a sparse row"),
        ("{0 1,}", r"'{0 1,}' is not a sparse row"),
        ("{-1 1}", r"'{-1 1}' is not a sparse row"),
        ("{1 a b}", r"'{1 a b}' is not a sparse row"),
        ("{1 'a}", r"\"{1 'a}\" is not a sparse row"),
        ("{4 1}", r"index 4 does not follow -1 or is not below 4"),
        ("{2 1, 0 1}", r"index 0 does not follow 2"),
        ("{2 1, 2 1}", r"index 2 does not follow 2"),
        ("{2 one}", r"attribute 'y' holds 'one', which is not a number"),
        ("{1 c}", r"attribute 'k' holds 'c', which is not one of its categories"),
    ],
)
def test_a_malformed_sparse_row_is_refused_with_its_line(write, row, message):
    with pytest.raises(ValueError, match=f"^toy.arff, line 8: {message}"):
        read_arff(write(THREE + "{0 1}\n" + row + "\n"), targets="y")


@pytest.mark.parametrize(
    ("attributes", "row", "targets", "message"),
    [
        (["s string", "y real"], "a,1", "y", r"Feature 's' of toy.arff is text; .* leave it out"),
        (["s string", "y real"], "a,1", "s", r"Output 's' of toy.arff is text"),
        (["x real", "k {a,b,c}"], "1,a", "k", r"Output 'k' .* takes the values 'a', 'b', 'c', not"),
        (["x real", "k {0,1,yes}"], "1,0", "k", r"Output 'k' of toy.arff takes the values"),
        (["x real", "k {0,1}"], "1,?", "k", r"line 5: label 'k' is missing, not 0 or 1; correct"),
        (["x real", "k {1,0}"], "1,?", "k", r"line 5: label 'k' is missing"),
        (["x real", "k {1,0}"], "{1 ?}", "k", r"line 5: label 'k' is missing"),
        (["x real", "k {0,1}", "y real"], "1,0,2.5", ["k", "y"], r"has labels \(output 'k'\) and"),
        (["x real", "y real"], "1e39,1", "y", r"line 5: feature 'x' holds 1e\+39, beyond"),
        (["x real", "y real"], "{0 1e39}", "y", r"line 5: feature 'x' holds 1e\+39, beyond"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused_by_name(write, attributes, row, targets, message):
    text = header(*attributes) + row + "\n"
    with pytest.raises(ValueError, match=message):
        read_arff(write(text), targets=targets)


def test_a_number_is_no_label(write):
    text = header("x real", "y real") + "1,1\n2,0.5\n"
    with pytest.raises(ValueError, match=r"^toy.arff, line 6: label 'y' is 0.5, not 0 or 1"):
        read_arff(write(text), targets="y", task="multilabel")


def test_a_file_cut_short_is_refused(tmp_path):
    path = tmp_path / "music.arff.gz"
    path.write_bytes(gzip.compress(MUSIC.encode())[:-20])
    with pytest.raises(ValueError, match=r"music.arff.gz, line \d+: the gzip stream is damaged"):
        read_arff(path)


def test_a_file_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_arff(tmp_path / "nothing.arff", targets=1)


# --- quoting --------------------------------------------------------------------------


def quoted(text, quote):
    """Write as WEKA does: in quotes, what they cannot hold behind a backslash."""
    escaped = {"\\": "\\\\", quote: "\\" + quote, "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return quote + "".join(escaped.get(symbol, symbol) for symbol in text) + quote


words = st.text(st.characters(codec="utf-8"), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    name=words,
    categories=st.lists(words.filter(bool), min_size=1, max_size=4, unique=True),
    quote=st.sampled_from("'\""),
    data=st.data(),
)
def test_what_is_quoted_comes_back_unchanged(write, name, categories, quote, data):
    codes = data.draw(st.lists(st.integers(0, len(categories) - 1), min_size=1, max_size=4))
    listing = ", ".join(quoted(category, quote) for category in categories)
    top = header("'the output' numeric", f"{quoted('_' + name, quote)} {{{listing}}}")
    values = [quoted(categories[code], quote) for code in codes]
    dense = read_arff(write(top + "".join(f"7.5,{v}\n" for v in values)), targets=1)
    thin = read_arff(write(top + "".join(f"{{0 7.5, 1 {v}}}\n" for v in values)), targets=1)
    for read in (dense, thin):
        assert read.feature_names == ("_" + name,)
        if tuple(categories) != ("0", "1"):
            assert read.categories == {0: tuple(categories)}
    np.testing.assert_array_equal(dense.X[:, 0], codes)
    np.testing.assert_array_equal(thin.X.toarray()[:, 0], codes)


def test_unicode_escapes_are_resolved(write):
    data = read_arff(write(header("'caf\\u00e9' numeric", "y numeric") + "1,2\n"), targets="y")
    assert data.feature_names == ("café",)
