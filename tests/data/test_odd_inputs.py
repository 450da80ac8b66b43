"""Inputs that are not plain arrays of numbers: each means what it says, or is refused.

The grid of `python -m torture inputs` found what is tested here; it tries thousands of others.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from manyboost import ManyBoostClassifier, ManyBoostRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2]]) + 0.1 * RNG.normal(size=(60, 2))
LABELS = (Y > 0).astype(int)
CLASSES = np.array(["a", "b", "c"])[np.clip(np.round(Y[:, 0]) + 1, 0, 2).astype(int)]


def regressor(**parameters):
    return ManyBoostRegressor(max_iter=3, random_state=0, n_jobs=1, **parameters)


def classifier(**parameters):
    return ManyBoostClassifier(max_iter=3, random_state=0, n_jobs=1, **parameters)


def refusal(call):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert ". " not in sentence
    return sentence


# Masked arrays ----------------------------------------------------------------------------------


def masked(array, *places):
    """The array with places masked, nonsense beneath."""
    array = np.ma.MaskedArray(array.copy())
    for place in places:
        array[place] = 1e6 if array.dtype.kind == "f" else array.data.flat[0]
        array[place] = np.ma.masked
    return array


def missing(array, *places):
    array = array.astype(float)
    for place in places:
        array[place] = np.nan
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


# Weights and offsets ----------------------------------------------------------------------------


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


# Features and targets ---------------------------------------------------------------------------


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
    model = regressor().fit(X, Y)
    assert refusal(lambda: model.predict(rows)).startswith(expected.format("X"))


def test_no_features_at_all():
    words = "X is None; pass an array or a frame of features."
    assert refusal(lambda: regressor().fit(None, Y)) == words
    assert refusal(lambda: regressor().fit(X, Y).predict(None)) == words
    nothing = pd.DataFrame(index=range(60))
    assert "0 feature(s)" in refusal(lambda: regressor().fit(nothing, Y))
    expected = "y has no outputs (0 columns); it needs at least one."
    assert refusal(lambda: regressor().fit(X, nothing)) == expected
    assert refusal(lambda: classifier().fit(X, nothing)) == expected


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


def test_frames_with_sparse_columns():
    holes = missing(X, (3, 1))
    expected = regressor().fit(holes, Y).predict(holes)
    columns = {f"x{j}": holes[:, j] for j in range(3)}
    sparse_by_nan = pd.DataFrame({k: pd.arrays.SparseArray(v) for k, v in columns.items()})
    mixed = sparse_by_nan.assign(x0=columns["x0"])
    by_zero = pd.DataFrame(
        {k: pd.arrays.SparseArray(v, fill_value=0.0) for k, v in columns.items()}
    )
    for frame in [sparse_by_nan, mixed, by_zero]:
        assert np.array_equal(regressor().fit(frame, Y).predict(frame), expected)
    targets = pd.DataFrame({k: pd.arrays.SparseArray(v) for k, v in zip("uv", Y.T, strict=True)})
    assert np.array_equal(regressor().fit(X, targets).predict(X), regressor().fit(X, Y).predict(X))


@pytest.mark.parametrize("fill_value", [0.0, 1.0, np.nan])
def test_a_frame_of_one_sparse_column_holds_classes(fill_value):
    labels = (Y[:, 0] > 0).astype(float)
    column = pd.arrays.SparseArray(labels, fill_value=fill_value)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        fitted = classifier().fit(X, pd.DataFrame({"y": column}))
    assert np.array_equal(fitted.predict(X), classifier().fit(X, labels).predict(X))


def test_columns_of_objects_without_a_value_are_missing():
    holes = X.copy()
    holes[:, 1] = np.nan
    expected = regressor().fit(holes, Y).predict(holes)
    frame = pd.DataFrame(holes, columns=["u", "v", "w"])
    frame["v"] = pd.Series([None] * 60, dtype=object)
    assert np.array_equal(regressor().fit(frame, Y).predict(frame), expected)


# Classes ----------------------------------------------------------------------------------------


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
