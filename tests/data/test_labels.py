"""What is read as classes and labels, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from refusals import refusal
from small_problems import CLASSES, LABELS, X, Y, classifier, replaced


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=["None", "nan", "NA"])
def test_missing_classes_are_found(missing):
    bad = CLASSES.astype(object)
    bad[5] = missing
    expected = "y has a missing value (NaN) in row 5; drop such rows or fill them in before fit."
    assert refusal(lambda: classifier().fit(X, bad)) == expected
    assert refusal(lambda: classifier().fit(X, pd.Series(bad))) == expected
    if missing is None:
        assert refusal(lambda: classifier().fit(X, pl.Series(bad.tolist()))) == expected


@pytest.mark.usefixtures("no_work")
def test_what_a_classifier_cannot_take_for_classes():
    for bad, expected in [
        (
            Y[:, 0],
            (
                "Unknown label type: continuous; y must hold classes, for numbers use "
                "ManyBoostRegressor."
            ),
        ),
        (
            Y * 10,
            (
                "Unknown label type: continuous; Column 0 of y must hold classes, for numbers use "
                "ManyBoostRegressor."
            ),
        ),
        (
            sparse.csr_matrix(np.c_[LABELS, np.arange(60)]),
            (
                "y has the value 2 in row 2, output 2; several outputs must be an indicator of 0 "
                "and 1, one column per label, or a list of sets of labels."
            ),
        ),
        (np.zeros(60), "y has only one class (0.0); a classifier needs at least two classes."),
        (["x"] * 60, "y has only one class ('x'); a classifier needs at least two classes."),
        (
            np.array(["x", 1] * 30, dtype=object),
            "y mixes classes of the types int and str; bring them to one type.",
        ),
    ]:
        assert refusal(lambda bad=bad: classifier().fit(X, bad)) == expected


@pytest.mark.usefixtures("no_work")
def test_classes_of_validation_rows_must_be_known():
    unknown = replaced(CLASSES, 7, "d")
    sentence = refusal(lambda: classifier().fit(X, CLASSES, X_val=X, Y_val=unknown))
    assert sentence == (
        "Y_val has the class 'd' in row 7, which the model does not know; fit on rows of all "
        "classes."
    )


@pytest.mark.parametrize("fill_value", [0.0, 1.0, np.nan])
def test_a_frame_of_one_sparse_column_holds_classes(fill_value):
    labels = (Y[:, 0] > 0).astype(float)
    column = pd.arrays.SparseArray(labels, fill_value=fill_value)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        fitted = classifier().fit(X, pd.DataFrame({"y": column}))
    assert np.array_equal(fitted.predict(X), classifier().fit(X, labels).predict(X))


def test_a_missing_class_beside_text_in_a_list_is_no_class():
    classes = [*CLASSES.tolist()[:59], float("nan")]
    assert "missing value (NaN) in row 59" in refusal(lambda: classifier().fit(X, classes))


def test_numbers_beside_text_in_a_list_are_not_turned_into_text():
    classes = [*CLASSES.tolist()[:59], 3]
    assert refusal(lambda: classifier().fit(X, classes)) == (
        "y mixes classes of the types int and str; bring them to one type."
    )


def test_bytes_are_no_text():
    assert refusal(lambda: classifier().fit(X, CLASSES.astype("S"))) == (
        f"y holds bytes (such as {CLASSES[0].encode()!r}); decode them into text."
    )


def test_classes_kept_as_objects_are_what_they_are():
    numbers = np.unique(CLASSES, return_inverse=True)[1]
    expected = classifier().fit(X, numbers)
    for given in [numbers.astype(object), pd.Series(numbers, dtype=object)]:
        model = classifier().fit(X, given)
        assert model.classes_.dtype == numbers.dtype
        assert np.array_equal(model.predict_proba(X), expected.predict_proba(X))
    infinite = numbers.astype(float).astype(object)
    infinite[3] = np.inf
    assert "infinite value (inf) in row 3" in refusal(lambda: classifier().fit(X, infinite))


def test_validation_classes_of_another_type_are_unknown():
    for other in [np.full(60, np.datetime64("2024-01-01")), np.arange(60) % 3]:
        words = refusal(lambda other=other: classifier().fit(X, CLASSES, X_val=X, Y_val=other))
        assert "which the model does not know" in words


def test_a_sparse_column_is_one_class_per_row():
    column = sparse.csr_matrix(3 * LABELS[:, :1])
    with pytest.warns(match="column-vector"):
        model = classifier().fit(X, column)
    assert model.classes_.tolist() == [0, 3]
    expected = classifier().fit(X, 3 * LABELS[:, 0]).predict_proba(X)
    assert np.array_equal(model.predict_proba(X), expected)


NUMBERS = np.unique(CLASSES, return_inverse=True)[1]
NULLABLE = {
    "pandas integers": pd.Series(NUMBERS + 2**60, dtype="Int64"),
    "arrow integers": pd.Series(NUMBERS + 2**60, dtype="int64[pyarrow]"),
    "an array of pandas": pd.array(NUMBERS + 2**60, dtype="Int64"),
    "pandas truth values": pd.Series(NUMBERS > 0, dtype="boolean"),
    "arrow truth values": pd.Series(NUMBERS > 0, dtype="bool[pyarrow]"),
}


@pytest.mark.parametrize("given", NULLABLE.values(), ids=NULLABLE)
def test_classes_of_nullable_types_do_not_become_floats(given):
    plain = NUMBERS > 0 if "bool" in str(given.dtype) else NUMBERS + 2**60
    model, expected = classifier().fit(X, given), classifier().fit(X, plain)
    assert model.classes_.dtype == plain.dtype
    assert model.classes_.tolist() == expected.classes_.tolist()
    assert np.array_equal(model.predict(X), expected.predict(X))
    if isinstance(given, pd.Series):
        with pytest.warns(DataConversionWarning, match="column-vector"):
            of_frame = classifier().fit(X, given.to_frame("y"))
        assert of_frame.classes_.tolist() == expected.classes_.tolist()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_whole_numbers_beside_missing_classes_are_not_mixed_up(frame):
    large = [None if i % 4 == 0 else 2**60 + i % 4 for i in range(60)]
    column = pd.Series(large, dtype="Int64") if frame is pd.DataFrame else large
    model = classifier().fit(X, frame({"large": column, "small": NUMBERS + 1}))
    assert [each.tolist() for each in model.classes_] == [[2**60 + i for i in (1, 2, 3)], [1, 2, 3]]


def test_a_score_takes_the_classes_that_fit_takes():
    model = classifier().fit(X, NUMBERS)
    expected = np.mean(model.predict(X) == NUMBERS)
    for given in [NUMBERS.astype(object), pd.Series(NUMBERS, dtype="Int64"), NUMBERS.tolist()]:
        assert model.score(X, given) == expected
    with pytest.warns(match="column-vector"):
        assert model.score(X, sparse.csr_matrix(NUMBERS[:, None])) == expected
    assert model.score(X, NUMBERS + 1) < expected  # unknown classes are mistakes
    assert refusal(lambda: model.score(X, NUMBERS, -np.ones(60))) == (
        "sample_weight is negative (-1) in row 0; weights must be at least zero."
    )


def test_classes_that_are_no_text_or_numbers_are_named():
    spans = pd.cut(pd.Series(Y[:, 0]), [-99, 0, 99])
    words = refusal(lambda: classifier().fit(X, spans))
    assert words.startswith("Unknown label type: y holds Interval values (such as '(")
    assert words.endswith("; turn them into text or whole numbers.")
