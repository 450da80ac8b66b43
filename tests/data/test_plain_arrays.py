"""Arrays that are not plain numbers: each means what it says, or is refused."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from refusals import refusal
from small_problems import CLASSES, LABELS, X, Y, classifier, missing, regressor, replaced

refusal = partial(refusal, error=(TypeError, ValueError))


def masked(array, *places):
    """The array with places masked, nonsense beneath."""
    array = np.ma.MaskedArray(array.copy())
    for place in places:
        array[place] = 1e6 if array.dtype.kind == "f" else array.data.flat[0]
        array[place] = np.ma.masked
    return array


def test_what_is_masked_is_missing():
    place = (3, 1)
    expected = regressor().fit(missing(X, place), missing(Y, place)).predict(missing(X, place))
    model = regressor().fit(masked(X, place), masked(Y, place))
    assert np.array_equal(model.predict(masked(X, place)), expected)
    labels = classifier().fit(X, missing(LABELS, place)).predict_proba(X)
    assert np.array_equal(classifier().fit(X, masked(LABELS, place)).predict_proba(X), labels)
    assert "missing value (NaN) in row 3" in refusal(
        lambda: classifier().fit(X, masked(CLASSES, (3,)))
    )
    assert refusal(lambda: regressor().fit(X, Y, masked(np.ones(60), (3,)))) == (
        "sample_weight is missing (NaN) in row 3; weights must be at least zero."
    )


def test_a_mask_that_hides_nothing_changes_nothing():
    plain = regressor().fit(X, Y, np.ones(60)).predict(X)
    model = regressor().fit(masked(X), masked(Y), masked(np.ones(60)))
    assert np.array_equal(model.predict(masked(X)), plain)


@pytest.mark.parametrize("name", ["sample_weight", "offset"])
@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1.5"] * 60, "holds text ('1.5') in row 0, not numbers; turn it into numbers"),
        (["heavy"] * 60, "holds text ('heavy') in row 0, not numbers; pass numbers."),
        (np.full(60, np.datetime64("2024-01-01")), "holds datetime64[D] values, not numbers"),
        (np.full(60, np.timedelta64(1, "s")), "holds timedelta64[s] values, not numbers"),
        (np.full(60, 1j), "holds complex128 values"),
        ([10**400] * 60, "holds a number beyond double precision (1.8e308) in row 0"),
        ([1.0] * 59 + [[2.0]], "is a list of rows that do not make a table"),
        ([1.0] * 59 + [{}], "holds dict values (such as '{}') in row 59, not numbers"),
        (sparse.csr_matrix(np.ones((60, 2))), "is a sparse matrix"),
    ],
    ids=["spelled", "text", "dates", "spans", "complex", "huge", "ragged", "dict", "sparse"],
)
def test_weights_and_offsets_are_numbers(name, values, words):
    sentence = refusal(lambda: regressor().fit(X, Y, **{name: values}))
    assert name in sentence
    assert words in sentence


def test_whole_numbers_and_truth_values_are_weights():
    kept = np.arange(60) % 3 > 0
    expected = regressor().fit(X, Y, kept.astype(float)).predict(X)
    for weight in [kept, kept.astype(np.int8), kept.astype(object), kept.tolist()]:
        assert np.array_equal(regressor().fit(X, Y, weight).predict(X), expected)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1.0], "Column 1 of X holds list values (such as '[1.0]'), not numbers; encode it"),
        (1j, "Column 1 of X holds complex values"),
        (10**400, "Column 1 of X holds a number beyond double precision (1.8e308); divide it"),
        (np.datetime64("2024"), "Column 1 of X holds datetime64 values"),
    ],
    ids=["list", "complex", "huge", "date"],
)
def test_objects_that_are_no_numbers(value, words):
    objects = X.astype(object)
    objects[3, 1] = value
    assert words in refusal(lambda: regressor().fit(objects, Y))
    named = pd.DataFrame(objects, columns=["u", "v", "w"])
    sentence = refusal(lambda: regressor().fit(named, Y))
    assert sentence.startswith("Column 'v' of X holds ")
    targets = Y.astype(object)
    targets[3, 1] = value
    assert refusal(lambda: regressor().fit(X, targets)).startswith("y holds ")


def test_rows_that_do_not_make_a_table():
    rows = [*X.tolist()[:59], [1.0]]
    expected = "{} is a list of rows that do not make a table; every row must hold the same number "
    assert refusal(lambda: regressor().fit(rows, Y)).startswith(expected.format("X"))
    targets = [*Y.tolist()[:59], [1.0]]
    assert refusal(lambda: regressor().fit(X, targets)).startswith(expected.format("y"))
    for model, outputs in ((regressor(), Y), (classifier(), Y > 0)):
        sentence = refusal(
            lambda model=model, outputs=outputs: model.fit(X, outputs, sample_weight=targets)
        )
        assert sentence.startswith(expected.format("sample_weight"))
    model = regressor().fit(X, Y)
    assert refusal(lambda: model.predict(rows)).startswith(expected.format("X"))


def test_records_are_refused():
    records = np.zeros((60, 2), [("u", float), ("v", float)])
    for call in [
        lambda: regressor().fit(records, Y),
        lambda: regressor().fit(X, records),
        lambda: classifier().fit(X, records),
        lambda: regressor().fit(X, Y, records[:, 0]),
    ]:
        assert "is an array of records" in refusal(call)


def test_long_doubles_are_numbers():
    expected = regressor().fit(X, Y).predict(X)
    long_X, long_Y = X.astype(np.longdouble), Y.astype(np.longdouble)
    assert np.array_equal(regressor().fit(long_X, long_Y).predict(long_X), expected)
    frame = pd.DataFrame(long_X)
    assert np.array_equal(regressor().fit(frame, Y).predict(frame), expected)


def test_matrices_are_arrays():
    expected = regressor().fit(X, Y).predict(X)
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.asmatrix(X)
    assert np.array_equal(regressor().fit(matrix, np.asarray(Y)).predict(matrix), expected)


@pytest.mark.usefixtures("no_work")
def test_text_in_arrays_is_found():
    expected = (
        "Column 1 of X holds text ('red'), not numbers; encode it (OrdinalEncoder, OneHotEncoder) "
        "or drop it."
    )
    bad = replaced(X, (4, 1), "red")
    for rows in [bad, bad.astype(str), bad.tolist()]:
        assert refusal(lambda rows=rows: regressor().fit(rows, Y)) == expected
    spelled = (
        "Column 0 of X holds text ('1.5'), not numbers; turn it into numbers with astype(float)."
    )
    for rows in [np.full((60, 3), "1.5"), np.full((60, 3), "1.5", dtype=object)]:
        assert refusal(lambda rows=rows: regressor().fit(rows, Y)) == spelled


@pytest.mark.usefixtures("no_work")
def test_numbers_of_other_kinds_are_not_converted():
    days = np.arange(60).astype("datetime64[D]")
    dates = "{} holds datetime64[D] values, not numbers; turn them into numbers, such as the days "
    dates += "since a date."
    assert refusal(lambda: regressor().fit(days[:, None], Y)) == dates.format("X")
    assert refusal(lambda: regressor().fit(X, days)) == dates.format("y")
    for y in [pd.Series(days), pl.Series(days)]:
        assert refusal(lambda y=y: regressor().fit(X, y)).startswith("y holds datetime64[")
    assert refusal(lambda: regressor().fit(X, days - days[0])).startswith("y holds timedelta64[D]")
    for call, name in [
        (lambda: regressor().fit(X + 1j, Y), "X"),
        (lambda: classifier().fit(X + 1j, LABELS), "X"),
        (lambda: regressor().fit(X, Y + 1j), "y"),
    ]:
        sentence = refusal(call)
        assert sentence.startswith(f"Complex data not supported: {name} holds complex128 values; ")


def test_none_and_na_are_missing_in_arrays_of_objects():
    for null in [None, pd.NA, np.nan]:
        features, y = X.astype(object), Y[:, 0].astype(object)
        features[3, 1] = y[5] = null
        expected = np.where(np.arange(60) == 5, np.nan, Y[:, 0])
        missing = replaced(X, (3, 1), np.nan)
        predicted = regressor().fit(missing, expected).predict(missing)
        for target in [y, pd.Series(y, dtype=object), pd.DataFrame({"y": pd.Series(y)}), [*y]]:
            model = regressor().fit(features, target)
            assert np.array_equal(model.predict(features).ravel(), predicted)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 1")
def test_text_of_any_width_is_text():
    text = np.dtypes.StringDType()
    model = classifier().fit(X, CLASSES.astype(text))
    assert np.array_equal(model.predict(X), classifier().fit(X, CLASSES).predict(X))
    assert refusal(lambda: regressor().fit(X.astype(str).astype(text), Y)).startswith(
        "Column 0 of X holds text ("
    )
    assert "y holds text" in refusal(lambda: regressor().fit(X, CLASSES.astype(text)))
