"""Labels given as sets."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import MultiLabelBinarizer

from refusals import refusal
from small_problems import classifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.column_stack([X[:, 0], X[:, 1] - X[:, 0], X[:, 2] ** 2]) + 0.1 * RNG.normal(size=(80, 3))
LABELS = (Y > 0).astype(int)
CLASSES = np.array(["ant", "bee", "cat"])[np.argmax(Y, axis=1)]

TAGS = np.array(["ant", "bee", "cat"])

SETS = [set(TAGS[row > 0].tolist()) for row in LABELS]

SET_FORMS = {
    "sets": SETS,
    "frozensets": tuple(frozenset(each) for each in SETS),
    "lists": [sorted(each) for each in SETS],
    "tuples": [tuple(sorted(each)) for each in SETS],
    "objects": pd.Series([sorted(each) for each in SETS]).to_numpy(),
    "pandas": pd.Series([sorted(each) for each in SETS], name="tags"),
    "polars": pl.Series("tags", [sorted(each) for each in SETS]),
    "polars frame": pl.DataFrame({"tags": [sorted(each) for each in SETS]}),
    "pandas frame": pd.DataFrame({"tags": SETS}),
    # As pandas reads lists in Parquet files.
    "pandas arrays": pd.Series([TAGS[row > 0] for row in LABELS]),
    "arrays": [TAGS[row > 0] for row in LABELS],
}


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


@pytest.mark.parametrize("sets", SET_FORMS.values(), ids=SET_FORMS)
def test_sets_of_labels_are_the_indicator_that_scikit_learn_makes_of_them(sets):
    binarizer = MultiLabelBinarizer().fit(SETS)
    model = classifier().fit(X, sets, X_val=X, Y_val=sets)
    assert model.classes_.tolist() == binarizer.classes_.tolist() == TAGS.tolist()
    assert model.output_names_.tolist() == TAGS.tolist()
    expected = classifier().fit(X, LABELS, X_val=X, Y_val=LABELS)
    assert model_bytes(model) == model_bytes(expected)
    assert np.array_equal(model.predict(X), expected.predict(X))
    assert model.predict_labels(X) == binarizer.inverse_transform(expected.predict(X))
    assert model.score(X, sets) == accuracy_score(LABELS, expected.predict(X))


def test_lists_of_pyarrow_are_sets_of_labels():
    pyarrow = pytest.importorskip("pyarrow")
    lists, expected = [sorted(each) for each in SETS], model_bytes(classifier().fit(X, SETS))
    forms = pyarrow.array(lists), pyarrow.chunked_array([lists]), pyarrow.table({"tags": lists})
    for sets in forms:
        model = classifier().fit(X, sets)
        assert model.classes_.tolist() == TAGS.tolist()
        assert model_bytes(model) == expected


def test_labels_that_are_numbers():
    sets = [{10 * (j + 1) for j in np.flatnonzero(row)} for row in LABELS]
    lists = [sorted(int(label) for label in each) for each in sets]
    for y in [sets, lists]:
        model = classifier().fit(X, y)
        assert model.classes_.tolist() == [10, 20, 30]
        assert model.output_names_.tolist() == ["10", "20", "30"]
        assert set(model.predict_labels(X)[0]) <= {10, 20, 30}
    one = classifier().fit(X, [{7} if flag else set() for flag in LABELS[:, 0]])
    assert one.predict(X).shape == (80, 1)
    assert set(one.predict_labels(X)) == {(), (7,)}


def test_rows_of_equal_length_are_a_table():
    assert classifier().fit(X, LABELS.tolist()).classes_.tolist() == [0, 1, 2]
    pairs = [["ant", "bee"], ["bee", "cat"]] * 40
    assert classifier().fit(X, pairs).classes_.tolist() == ["ant", "bee", "cat"]
    numbers = [[3, 4], [5, 6]] * 40
    assert [each.tolist() for each in classifier().fit(X, numbers).classes_] == [[3, 5], [4, 6]]


@pytest.mark.parametrize(
    "rows", [pd.Series(LABELS.tolist()), pl.Series(LABELS.tolist()), pd.Series(list(LABELS))]
)
def test_rows_of_an_indicator_in_a_series_are_not_taken_for_sets(rows):
    assert refusal(lambda: classifier().fit(X, rows)) == (
        f"y has the label {np.bincount(LABELS[0]).argmax()} twice in row 0; if rows are those of a "
        "table, pass np.array(list(y))."
    )
    model = classifier().fit(X, np.array(list(rows)))
    assert model_bytes(model) == model_bytes(classifier().fit(X, LABELS))


def test_sets_that_cannot_be_used():
    for y, sentence in [
        ([set()] * 80, "y has no label in any row; a classifier needs at least one label."),
        (
            [{1, 2}, {"a"}] * 40,
            "y mixes labels of the types int and str; bring them to one type.",
        ),
        (
            [{"a"}, "b"] * 40,
            (
                "y holds 'b' in row 1 but sets of labels in others; pass a set for every row, "
                "maybe an empty one."
            ),
        ),
        (
            [{"a"}, {None}] * 40,
            "y has the label None in row 1; labels must be text or numbers.",
        ),
        (
            [{"a"}, {float("nan")}] * 40,
            "y has the label nan in row 1; labels must be text or numbers.",
        ),
        (
            [{np.datetime64("2024")}, {np.datetime64("2025")}] * 40,
            "y has the label np.datetime64('2024') in row 0; labels must be text or numbers.",
        ),
    ]:
        assert refusal(lambda y=y: classifier().fit(X, y)) == sentence
    unknown = [{"dog"}, *SETS[1:]]
    assert refusal(lambda: classifier().fit(X, SETS, X_val=X, Y_val=unknown)) == (
        "Y_val has the label 'dog' in row 0, which the model does not know; fit on rows of all "
        "labels."
    )
    assert "Y_val holds sets of labels, but the model was given classes" in refusal(
        lambda: classifier().fit(X, CLASSES, X_val=X, Y_val=SETS)
    )
    assert "inconsistent numbers" in refusal(lambda: classifier().fit(X, SETS[:-1]))
    assert refusal(lambda: classifier().fit(X, CLASSES).predict_labels(X)) == (
        "predict_labels is for labels, but this model predicts one of 3 classes; use predict."
    )


def test_whole_numbers_among_floats_are_not_mixed_up():
    large = 2**53 + 1
    assert classifier().fit(X[:80], [{1, large}, {2**53}] * 40).classes_.tolist()[2] == large
    for other, most in ((1.5, large), (-1, 2**64)):
        held = f"the label {most}, which no type of number holds exactly beside the others"
        what = refusal(lambda y=[{other, most}, {2**53}] * 40: classifier().fit(X[:80], y))
        assert what == f"y has {held}; turn all of them into text."
    for y in ([1.5, large, 2**53, 1.5] * 20, np.array([1.0, large, 2**53, 1.0] * 20, object)):
        what = refusal(lambda y=y: classifier().fit(X[:80], list(y)))
        held = f"the class {large}, which no type of number holds exactly beside the others"
        assert what == f"y has {held}; turn all of them into text."
