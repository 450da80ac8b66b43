"""Frames in and out: every type of column, names, labels, and what predictions come back as."""

import datetime
import decimal
import importlib
import pickle
import sys
import warnings

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from manyboost import ManyBoostClassifier, ManyBoostRegressor, load
from manyboost.data.features import check_X
from manyboost.data.frames import CategoryLabels, label_columns
from manyboost.data.named import NamedTable
from refusals import refusal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.column_stack([X[:, 0], X[:, 1] - X[:, 0], X[:, 2] ** 2]) + 0.1 * RNG.normal(size=(80, 3))
LABELS = (Y > 0).astype(int)
CLASSES = np.array(["ant", "bee", "cat"])[np.argmax(Y, axis=1)]
NAMES = ["u", "v", "w"]
FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 5, "random_state": 0, **parameters})


def classifier(**parameters):
    return ManyBoostClassifier(**{"max_iter": 5, "random_state": 0, **parameters})


def named(frame, values, names=NAMES):
    return frame({name: values[:, j] for j, name in enumerate(names)})


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


# Columns ----------------------------------------------------------------------------------------

COUNTS = [None if i % 7 == 0 else i % 10 for i in range(80)]
FLAGS = [None if i % 5 == 0 else i % 3 == 0 for i in range(80)]


def floats(values):
    return np.array([np.nan if value is None else float(value) for value in values])


PANDAS_NUMBERS = {
    "int64": (np.arange(80), np.arange(80)),
    "uint8": (np.arange(80, dtype=np.uint8), np.arange(80)),
    "float32": (X[:, 1].astype(np.float32), X[:, 1].astype(np.float32)),
    "float16": (np.arange(80).astype(np.float16), np.arange(80)),
    "bool": (X[:, 1] > 0, X[:, 1] > 0),
    "Int64": (pd.array(COUNTS, dtype="Int64"), floats(COUNTS)),
    "UInt8": (pd.array(COUNTS, dtype="UInt8"), floats(COUNTS)),
    "Float64": (pd.array(COUNTS, dtype="Float64"), floats(COUNTS)),
    "Float32": (pd.array(COUNTS, dtype="Float32"), floats(COUNTS)),
    "boolean": (pd.array(FLAGS, dtype="boolean"), floats(FLAGS)),
    "objects": (pd.Series(COUNTS, dtype=object), floats(COUNTS)),
    "object flags": (pd.Series(FLAGS, dtype=object), floats(FLAGS)),
}
POLARS_NUMBERS = {
    "Int64": (pl.Series(COUNTS, dtype=pl.Int64), floats(COUNTS)),
    "UInt8": (pl.Series(COUNTS, dtype=pl.UInt8), floats(COUNTS)),
    "Int128": (pl.Series(COUNTS, dtype=pl.Int128), floats(COUNTS)),
    "Float32": (pl.Series(COUNTS, dtype=pl.Float32), floats(COUNTS)),
    "Float64": (pl.Series(COUNTS, dtype=pl.Float64), floats(COUNTS)),
    "Boolean": (pl.Series(FLAGS, dtype=pl.Boolean), floats(FLAGS)),
    "Decimal": (
        pl.Series([None if c is None else decimal.Decimal(c) for c in COUNTS]),
        floats(COUNTS),
    ),
}


@pytest.mark.parametrize(
    ("frame", "column", "numbers"),
    [
        *((pd.DataFrame, *pair) for pair in PANDAS_NUMBERS.values()),
        *((pl.DataFrame, *pair) for pair in POLARS_NUMBERS.values()),
    ],
    ids=[f"pandas {k}" for k in PANDAS_NUMBERS] + [f"polars {k}" for k in POLARS_NUMBERS],
)
def test_numeric_columns_of_all_types_give_the_model_of_their_numbers(frame, column, numbers):
    for other in [X[:, 0], X[:, 0].astype(np.float32)]:
        array = np.column_stack([other, numbers]).astype(np.float64)
        data = frame({"u": other, "v": column})
        model, expected = regressor().fit(data, Y), regressor().fit(array, Y)
        assert model_bytes(model) == model_bytes(expected)
        assert np.array_equal(model.predict(data), expected.predict(array))


@FRAMES
def test_frames_of_one_type_give_the_model_of_their_array(frame):
    for dtype in [np.float64, np.float32]:
        values = X.astype(dtype)
        model = regressor().fit(named(frame, values), Y)
        assert model_bytes(model) == model_bytes(regressor().fit(values, Y))


def test_sparse_columns_of_pandas_are_sparse_features():
    dense = np.where(X > 0.5, X, 0.0)
    data = pd.DataFrame(dense, columns=NAMES).astype(pd.SparseDtype("float64", 0.0))
    model = regressor().fit(data, Y)
    assert np.array_equal(model.predict(data), regressor().fit(dense, Y).predict(dense))


def moment(i):
    return datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=i)


ENCODE = "encode it (OrdinalEncoder, OneHotEncoder) or drop it."
CAST = f"cast it to a categorical type, name it in categorical_features, {ENCODE}"
SINCE = "turn it into numbers (such as the days since a date) or drop it."
SECONDS = "turn it into numbers (such as its total seconds) or drop it."
SPREAD = "spread it over numeric columns or drop it."
REFUSED = {
    "pandas text": (pd.DataFrame, ["x"] * 80, CAST),
    "pandas string": (pd.DataFrame, pd.Series(["x"] * 80, dtype="string"), CAST),
    "pandas objects": (pd.DataFrame, pd.Series([1, "x"] * 40, dtype=object), ENCODE),
    "pandas times": (pd.DataFrame, pd.date_range("2024", periods=80), SINCE),
    "pandas spans": (pd.DataFrame, pd.timedelta_range("1D", periods=80), SECONDS),
    "pandas periods": (pd.DataFrame, pd.period_range("2024", periods=80), ENCODE),
    "pandas intervals": (pd.DataFrame, pd.interval_range(0, 80), ENCODE),
    "pandas complex": (pd.DataFrame, np.full(80, 1j), ENCODE),
    "pandas raw bytes": (pd.DataFrame, np.zeros(80, "V8"), ENCODE),
    "pandas lists": (pd.DataFrame, pd.Series([[1, 2]] * 80), ENCODE),
    "polars text": (pl.DataFrame, ["x"] * 80, CAST),
    "polars times": (pl.DataFrame, [moment(i) for i in range(80)], SINCE),
    "polars dates": (pl.DataFrame, [moment(i).date() for i in range(80)], SINCE),
    "polars spans": (pl.DataFrame, [moment(i) - moment(0) for i in range(80)], SECONDS),
    "polars clock": (
        pl.DataFrame,
        [moment(i).time() for i in range(80)],
        "turn it into numbers (such as the seconds since midnight) or drop it.",
    ),
    "polars lists": (pl.DataFrame, [[1, 2]] * 80, SPREAD),
    "polars arrays": (pl.DataFrame, pl.Series([[1, 2]] * 80, dtype=pl.Array(pl.Int8, 2)), SPREAD),
    "polars structs": (pl.DataFrame, [{"a": 1}] * 80, SPREAD),
    "polars bytes": (pl.DataFrame, [b"x"] * 80, ENCODE),
}


@pytest.mark.parametrize(("frame", "column", "remedy"), REFUSED.values(), ids=REFUSED)
def test_other_columns_are_refused_by_name_with_the_remedy(frame, column, remedy):
    bad = frame({"fine": X[:, 0], "odd one": column})
    sentence = refusal(lambda: regressor(categorical_features=None).fit(bad, Y))
    assert sentence.startswith("Column 'odd one' of X holds ")
    assert sentence.endswith(f"values, not numbers; {remedy}") or "(such as" in sentence
    assert sentence.endswith(remedy)
    model = regressor(categorical_features=None).fit(
        frame({"fine": X[:, 0], "odd one": X[:, 1]}), Y
    )
    problem = sentence.partition(";")[0]
    assert refusal(lambda: model.predict(bad)) == (
        f"{problem}; turn it into numbers, which it held in fit."
    )
    good = frame({"fine": X[:, 0], "odd one": X[:, 1]})
    sentence = refusal(
        lambda: regressor(categorical_features=None).fit(good, Y, X_val=bad, Y_val=Y)
    )
    assert sentence.startswith("Column 'odd one' of X_val holds ")


NOTHING = {
    "pandas objects": (pd.DataFrame, pd.Series([None] * 80, dtype=object)),
    "pandas text": (pd.DataFrame, pd.Series([None] * 80, dtype="string")),
    "pandas times": (pd.DataFrame, pd.Series([pd.NaT] * 80)),
    "polars": (pl.DataFrame, [None] * 80),
    "polars text": (pl.DataFrame, pl.Series([None] * 80, dtype=pl.String)),
    "polars dates": (pl.DataFrame, pl.Series([None] * 80, dtype=pl.Date)),
}


@pytest.mark.parametrize(("frame", "nothing"), NOTHING.values(), ids=NOTHING)
def test_a_column_that_is_all_missing_may_be_of_any_type(frame, nothing):
    known, empty = (frame({"u": X[:, 0], "v": each}) for each in (X[:, 1], nothing))
    model, missing = regressor().fit(known, Y), np.column_stack([X[:, 0], np.full(80, np.nan)])
    with pytest.warns(match="feature names"):
        assert np.array_equal(model.predict(empty), model.predict(missing))
    expected = regressor().fit(missing, Y).predict(missing)
    assert np.array_equal(regressor().fit(empty, Y).predict(empty), expected)
    outputs = frame({"p": Y[:, 0], "q": nothing})
    assert "Output 'q' of y has no observed value" in refusal(lambda: regressor().fit(X, outputs))


@FRAMES
def test_text_may_come_where_all_of_it_was_missing_in_fit(frame):
    dtype = {"dtype": "string"} if frame is pd.DataFrame else {"dtype": pl.String}
    column = pd.Series if frame is pd.DataFrame else pl.Series
    empty = frame({"u": X[:, 0], "v": column([None] * 80, **dtype)})
    model = regressor().fit(empty, Y)
    later = frame({"u": X[:, 0], "v": ["new"] * 80})
    assert np.array_equal(model.predict(later), model.predict(empty))


@FRAMES
def test_categories_that_are_large_whole_numbers_are_not_mixed_up(frame):
    small = np.arange(80) % 3
    targets = np.column_stack([small == 1, small == 2])
    settings = {"categorical_features": ["id"]}
    data = frame({"u": X[:, 0], "id": small + 2**60})
    model = regressor(**settings).fit(data, targets)
    expected = regressor(**settings).fit(frame({"u": X[:, 0], "id": small}), targets)
    assert model_bytes(model) == model_bytes(expected)
    unknown = frame({"u": X[:1, 0], "id": [2**60 + 3]})
    missing = frame({"u": X[:1, 0], "id": np.array([np.nan])})
    assert np.array_equal(model.predict(unknown), model.predict(missing))


@FRAMES
def test_category_columns_become_codes_of_their_sorted_labels(frame):
    kinds = {
        "colour": ["red", "blue", None, "green", "blue"],
        "size": [3.5, None, 1.0, 2.0, 2.0],
        "brand": ["z", "y", "x", "x", None],
    }
    data = frame(kinds)
    if frame is pd.DataFrame:
        data["colour"] = data["colour"].astype("category")
    else:
        data = data.with_columns(pl.col("colour").cast(pl.Categorical))
    opened = nw.from_native(data, eager_only=True)
    assert label_columns(opened, None) == [0, 2]
    categories = CategoryLabels.of(opened, [0, 2])
    assert categories.of_column == {0: ("blue", "green", "red"), 2: ("x", "y", "z")}
    nan = np.nan
    expected = [[2, 3.5, 2], [0, nan, 1], [nan, 1, 0], [1, 2, 0], [0, 2, nan]]
    assert np.array_equal(categories.encode(opened), expected, equal_nan=True)
    unseen = frame({"colour": ["pink", "red"], "size": [1.0, 2.0], "brand": ["x", "?"]})
    codes = categories.encode(nw.from_native(unseen, eager_only=True))
    assert np.array_equal(codes, [[nan, 1, 0], [2, 2, nan]], equal_nan=True)
    assert pickle.loads(pickle.dumps(categories)) == categories


@FRAMES
def test_category_columns_that_are_asked_for_are_encoded_as_in_fit(frame):
    model = regressor()
    seen = frame({"u": [1.5, 2.5, 3.5], "tint": ["red", "blue", None]})
    codes = check_X(model, seen, reset=True, categorical=[1])
    assert np.array_equal(codes, [[1.5, 1], [2.5, 0], [3.5, np.nan]], equal_nan=True)
    later = frame({"u": [1.5, 2.5], "tint": ["pink", "red"]})
    codes = check_X(model, later, reset=False)
    assert np.array_equal(codes, [[1.5, np.nan], [2.5, 1]], equal_nan=True)


@FRAMES
def test_numbers_do_not_stand_for_labels(frame):
    model = regressor()
    check_X(model, frame({"tint": ["red", "blue", None]}), reset=True, categorical=[0])
    for column in [[1.0, 0.0], [1, 0], [True, False]]:
        later = frame({"tint": column})
        assert refusal(lambda later=later: check_X(model, later, reset=False)) == (
            f"Column 'tint' of X holds numbers ({column[0]!r}), but held categories such as 'blue' "
            "in fit; pass the labels that the numbers stand for."
        )
    nothing = frame({"tint": [np.nan, np.nan]})
    assert np.isnan(check_X(model, nothing, reset=False)).all()


def tints(n_rows=300):
    """Rows whose output depends on a colour, which has no order."""
    rng = np.random.default_rng(0)
    colours = np.array(["red", "green", "blue", "pink", "grey", "teal"])
    tint = colours[rng.integers(len(colours), size=n_rows)]
    u = rng.normal(size=n_rows)
    return u, tint, np.isin(tint, ["red", "blue", "teal"]) + 0.01 * rng.normal(size=n_rows)


@pytest.mark.parametrize(
    "column",
    [
        lambda tint: ("pandas", pd.Categorical(tint), {}),
        lambda tint: ("pandas", tint.astype(object), {"categorical_features": ["tint"]}),
        lambda tint: ("pandas", pd.array(tint, dtype="string"), {"categorical_features": [1]}),
        lambda tint: ("polars", pl.Series(tint, dtype=pl.Categorical), {}),
        lambda tint: ("polars", pl.Series(tint, dtype=pl.Enum(sorted(set(tint)))), {}),
        lambda tint: ("polars", pl.Series(tint), {"categorical_features": [False, True]}),
    ],
    ids=["categorical", "object", "string", "polars categorical", "polars enum", "polars text"],
)
def test_columns_of_categories_split_by_sets(column):
    u, tint, y = tints()
    library, values, options = column(tint)
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    model = ManyBoostRegressor(max_iter=1, max_leaf_nodes=2, learning_rate=1.0, **options)
    model.fit(frame({"u": u, "tint": values}), y)
    unseen = frame({"u": [0.0, 0.0, 0.0], "tint": ["red", "green", "never seen"]})
    if not options and library == "pandas":
        unseen["tint"] = pd.Categorical(unseen["tint"])
    elif not options:
        unseen = unseen.with_columns(pl.col("tint").cast(pl.Categorical))
    red, green, other = model.predict(unseen)
    assert abs(red - 1) < 0.01
    assert abs(green) < 0.01
    assert other in (red, green)


def test_categories_are_refused_where_none_are_wanted():
    u, tint, y = tints()
    data = pd.DataFrame({"u": u, "tint": pd.Categorical(tint)})
    sentence = refusal(lambda: ManyBoostRegressor(categorical_features=None).fit(data, y))
    assert "Column 'tint' of X holds category values" in sentence
    assert "name it in categorical_features" in sentence


def test_categories_of_several_types_have_an_order():
    data = pd.DataFrame({"c": pd.Categorical([2, "b", 1, "a"], categories=["b", 2, "a", 1])})
    opened = nw.from_native(data, eager_only=True)
    assert CategoryLabels.of(opened, [0]).of_column == {0: (1, 2, "a", "b")}


def test_a_lazy_frame_must_be_collected():
    lazy = named(pl.DataFrame, X).lazy()
    assert refusal(lambda: regressor().fit(lazy, Y)) == (
        "X is a lazy frame, which holds no values yet; pass X.collect()."
    )


def test_plain_arrays_import_no_frame_library(monkeypatch):
    def refuse(name):
        pytest.fail(f"{name} was imported")

    monkeypatch.setattr("manyboost.data.frames.importlib.import_module", refuse)
    assert regressor().fit(X, Y).predict(X).shape == (80, 3)


@FRAMES
def test_without_narwhals_numeric_frames_work_and_others_name_the_extra(monkeypatch, frame):
    genuine = importlib.import_module

    def missing(name, *rest):
        if name.startswith("narwhals"):
            raise ImportError(name)
        return genuine(name, *rest)

    monkeypatch.setattr("manyboost.data.frames.importlib.import_module", missing)
    assert model_bytes(regressor().fit(named(frame, X), Y)) == model_bytes(regressor().fit(X, Y))
    bad = frame({"u": X[:, 0], "v": ["x"] * 80})
    sentence = refusal(lambda: regressor().fit(bad, Y))
    assert sentence.startswith("Column 'v' of X holds ")
    assert "pip install 'manyboost[frames]'" in sentence
    sentence = refusal(lambda: regressor().fit(Table(X), Y), ImportError)
    assert sentence.endswith("takes narwhals to read; install it: pip install 'manyboost[frames]'.")


class Table:
    """Something with named columns that no library knows."""

    columns = property(lambda self: NAMES)

    def __init__(self, values):
        self.shape = values.shape


def test_frames_of_unknown_libraries_are_named():
    sentence = refusal(lambda: regressor().fit(Table(X), Y))
    assert "Table, which is not a frame in memory; pass a frame of pandas or polars" in sentence


# Names of features ------------------------------------------------------------------------------


def test_two_columns_of_one_name_are_refused():
    twice = pd.DataFrame(X, columns=["u", "v", "u"])
    assert refusal(lambda: regressor().fit(twice, Y)) == (
        "X has two columns named 'u'; rename or drop one."
    )
    outputs = pd.DataFrame(Y, columns=["a", "a", "b"])
    assert refusal(lambda: regressor().fit(X, outputs)) == (
        "y has two columns named 'a'; rename or drop one."
    )


@FRAMES
def test_names_and_their_order_are_those_of_fit(frame):
    names = ["height", "weight", "age"]
    model = regressor().fit(named(frame, X, names), Y)
    assert model.feature_names_in_.tolist() == names
    for given, words in [
        (["weight", "height", "age"], "must be in the same order as they were in fit."),
        (["heigth", "weight", "age"], "unseen at fit time:\n- heigth\n"),
        (["heigth", "weight", "age"], "Did you mean 'height' for 'heigth'?"),
        (["height", "weight", "income"], "now missing:\n- age\n"),
    ]:
        with pytest.raises(ValueError, match="feature names should match") as caught:
            model.predict(named(frame, X, given))
        assert words in str(caught.value)
    with pytest.raises(ValueError, match="now missing:\n- age\n"):
        model.predict(frame({"height": X[:, 0], "weight": X[:, 1]}))
    with pytest.raises(ValueError, match="X_val: The feature names should match"):
        regressor().fit(
            named(frame, X, names), Y, X_val=named(frame, X, ["height", "age", "weight"]), Y_val=Y
        )


@FRAMES
def test_an_array_for_a_frame_or_a_frame_for_an_array_warns(frame):
    array_model, frame_model = regressor().fit(X, Y), regressor().fit(named(frame, X), Y)
    with pytest.warns(UserWarning, match="X has feature names, but ManyBoostRegressor was fitted"):
        from_frame = array_model.predict(named(frame, X))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        from_array = frame_model.predict(X)
    assert np.array_equal(from_frame, from_array)


def test_names_that_are_not_text():
    numbered = pd.DataFrame(X)
    model = regressor().fit(numbered, pd.DataFrame(Y))
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "output_names_")
    assert model.predict(numbered).shape == (80, 3)
    with pytest.raises(TypeError, match="string names"):
        regressor().fit(pd.DataFrame(X, columns=["u", 1, 2]), Y)


# Outputs ----------------------------------------------------------------------------------------


@FRAMES
def test_frames_of_outputs_leave_their_names(frame):
    outputs = ["price", "rent", "tax"]
    model = regressor().fit(X, named(frame, Y, outputs))
    assert model.output_names_.tolist() == outputs
    assert model_bytes(model) == model_bytes(regressor().fit(X, Y))
    assert pickle.loads(pickle.dumps(model)).output_names_.tolist() == outputs
    labels = classifier().fit(X, named(frame, LABELS, outputs))
    assert labels.output_names_.tolist() == outputs
    assert labels.classes_.tolist() == outputs
    assert np.array_equal(labels.predict(X), classifier().fit(X, LABELS).predict(X))
    flags = classifier().fit(X, named(frame, LABELS.astype(bool), outputs))
    assert model_bytes(flags) == model_bytes(labels)
    model.fit(X, Y)
    assert not hasattr(model, "output_names_")


def test_labels_that_are_whole_numbers_are_kept(tmp_path):
    labels = pd.DataFrame(LABELS, columns=[30, 10, 20])
    model = classifier().fit(X, labels)
    model.save(tmp_path / "model.mb")
    for each in [model, load(tmp_path / "model.mb")]:
        assert each.classes_.tolist() == [30, 10, 20]
        assert each.output_names_.tolist() == ["30", "10", "20"]
        present = [labels.columns[row > 0].tolist() for row in each.predict(X)]
        assert [list(row) for row in each.predict_labels(X)] == present
    assert "in another order" in refusal(lambda: model.score(X, labels[[10, 20, 30]]))
    assert classifier().fit(X, pd.DataFrame(LABELS)).classes_.tolist() == [0, 1, 2]


def test_levels_of_outputs_are_joined():
    columns = pd.MultiIndex.from_product([["sales", "stock"], [1, 2]])
    wide = pd.DataFrame(np.hstack([Y, X[:, :1]]), columns=columns)
    names = ["sales_1", "sales_2", "stock_1", "stock_2"]
    model = ManyBoostRegressor(max_iter=2).fit(X, wide).set_output(predict="pandas")
    assert model.output_names_.tolist() == names
    assert model.predict(X, outputs=["stock_1"]).columns.tolist() == ["stock_1"]
    labels = ManyBoostClassifier(max_iter=2).fit(X, (wide > 0).astype(int))
    assert labels.classes_.tolist() == names
    twice = pd.MultiIndex.from_tuples([("a", "b_c"), ("a_b", "c"), ("d", "e"), ("f", "g")])
    with pytest.raises(ValueError, match="two columns named 'a_b_c'"):
        ManyBoostRegressor().fit(X, wide.set_axis(twice, axis=1))


def test_a_series_leaves_its_name_and_predictions_have_one_dimension():
    for series in [pd.Series(Y[:, 0], name="price"), pl.Series("price", Y[:, 0])]:
        model = regressor().fit(X, series)
        assert model.output_names_.tolist() == ["price"]
        assert np.array_equal(model.predict(X), regressor().fit(X, Y[:, 0]).predict(X))
        for data in [pd.Series(CLASSES, name="kind"), pl.Series("kind", CLASSES)]:
            classes = classifier().fit(X, data)
            assert not hasattr(classes, "output_names_")
            assert np.array_equal(classes.predict(X), classifier().fit(X, CLASSES).predict(X))


@FRAMES
def test_bad_outputs_are_named(frame):
    infinite = Y.copy()
    infinite[3, 1] = np.inf
    assert "in row 3, output 'v'; drop such" in refusal(
        lambda: regressor().fit(X, named(frame, infinite))
    )
    missing = Y.copy()
    missing[:, 1] = np.nan
    for model in (regressor(), classifier()):
        target = np.where(np.isnan(missing), np.nan, missing > 0)
        sentence = refusal(lambda m=model, t=target: m.fit(X, named(frame, t)))
        assert sentence.startswith("Output 'v' of y has no observed value of positive weight;")
    large = Y.copy()
    large[3, 1] = 1e39
    assert "in row 3, output 'v', beyond" in refusal(
        lambda: regressor().fit(X, named(frame, large))
    )
    labels = LABELS.copy()
    labels[5, 2] = 2
    known = named(frame, LABELS)
    assert "in row 5, output 'w'; several outputs must be" in refusal(
        lambda: classifier().fit(X, known, X_val=X, Y_val=named(frame, labels))
    )
    for text in [["0", "1"] * 40, ["yes", "no"] * 40]:
        bad = frame({"u": LABELS[:, 0], "v": text})
        sentence = refusal(lambda bad=bad: regressor().fit(X, bad))
        assert sentence.startswith("Column 'v' of y holds ")
        assert sentence.endswith("turn it into numbers, 0 and 1 for labels, or drop it.")
        fitted = classifier().fit(X, bad)
        assert [each.tolist() for each in fitted.classes_] == [[0, 1], sorted(set(text))]


def test_an_indicator_of_text_holds_classes():
    text = LABELS.astype(str)
    for y in [text, text.tolist(), text.astype(object)]:
        model = classifier().fit(X, y)
        assert [each.tolist() for each in model.classes_] == [["0", "1"]] * LABELS.shape[1]


@FRAMES
def test_validation_outputs_have_the_names_of_fit(frame):
    for make, values in [(regressor, Y), (classifier, LABELS)]:
        y = named(frame, values, ["price", "rent", "tax"])

        def fit(names, make=make, values=values, y=y):
            return make().fit(X, y, X_val=X, Y_val=named(frame, values, names))

        assert fit(["price", "rent", "tax"]).n_iter_ >= 0
        assert make().fit(X, y, X_val=X, Y_val=values).n_iter_ >= 0
        assert refusal(lambda: fit(["price", "rant", "tax"])) == (
            "Y_val has the output 'rant', which fit did not see; did you mean 'rent'?"
        )
        assert refusal(lambda: fit(["price", "zzz", "tax"])) == (
            "Y_val has the output 'zzz', which fit did not see; output 'rent' was expected."
        )
        assert refusal(lambda: fit(["rent", "price", "tax"])) == (
            "Y_val has the outputs of fit in another order ('rent', 'price', 'tax'); select them "
            "in the order of fit."
        )
        fewer = named(frame, values[:, :2], ["price", "rent"])
        assert refusal(lambda: make().fit(X, y, X_val=X, Y_val=fewer)).startswith("Y_val ")  # noqa: B023
        model = make(warm_start=True).fit(X, y).set_params(max_iter=7)
        other = named(frame, values, ["price", "rent", "tx"])
        assert "did you mean 'tax'?" in refusal(lambda: model.fit(X, other))  # noqa: B023
        assert model.fit(X, y).n_iter_ == 7
        assert model.output_names_.tolist() == ["price", "rent", "tax"]


@FRAMES
def test_weights_and_offsets_have_the_order_of_the_outputs(frame):
    outputs, weights = named(frame, Y), np.abs(Y) + 0.5
    same, other = named(frame, weights), named(frame, weights[:, ::-1], NAMES[::-1])
    order = "has the outputs of fit in another order ('w', 'v', 'u')"
    model = regressor().fit(X, outputs, same, offset=same)
    assert np.array_equal(
        model.predict(X, offset=same),
        regressor().fit(X, Y, weights, offset=weights).predict(X, offset=weights),
    )
    validation = {"X_val": X, "Y_val": outputs, "offset_val": same}
    for name, call in [
        ("sample_weight", lambda: regressor().fit(X, outputs, other)),
        ("offset", lambda: regressor().fit(X, outputs, offset=other)),
        (
            "sample_weight_val",
            lambda: regressor().fit(X, outputs, sample_weight_val=other, offset=same, **validation),
        ),
        ("offset", lambda: model.predict(X, offset=other)),
        ("sample_weight", lambda: model.score(X, outputs, other, offset=same)),
    ]:
        assert refusal(call) == f"{name} {order}; select them in the order of fit."
    # Frames with names of their own go by position.
    own = named(frame, weights, ["1st", "2nd", "3rd"])
    assert np.array_equal(
        regressor().fit(X, outputs, own).predict(X), regressor().fit(X, Y, weights).predict(X)
    )


@FRAMES
@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
@pytest.mark.parametrize("classes", [["ant", "bee", "cat"], [10, 20, 30]], ids=["text", "numbers"])
def test_offsets_have_the_order_of_the_classes(frame, loss, classes):
    y, names = np.array(classes)[np.argmax(Y, axis=1)], list(map(str, classes))
    same, other = named(frame, Y, names), named(frame, Y[:, ::-1], names[::-1])
    validation = {"X_val": X, "Y_val": y, "offset_val": other}
    model = classifier(loss=loss).fit(X, y, offset=same)
    order = f"another order ({', '.join(map(repr, names[::-1]))}); select them in the order of fit."
    for name, call in [
        ("offset", lambda: classifier(loss=loss).fit(X, y, offset=other)),
        ("offset_val", lambda: classifier(loss=loss).fit(X, y, offset=same, **validation)),
        ("offset", lambda: model.predict(X, offset=other)),
        ("offset", lambda: next(model.staged_predict(X, offset=other))),
    ]:
        assert refusal(call) == f"{name} has the outputs of fit in {order}"
    plain = classifier(loss=loss).fit(X, y, offset=Y)
    expected = plain.predict_proba(X, offset=Y)
    assert np.array_equal(model.predict_proba(X, offset=same), expected)
    # Frames with names of their own, or that only count, go by position.
    for own in (named(frame, Y), named(frame, Y, ["2", "1", "0"]), pd.DataFrame(Y)):
        assert np.array_equal(model.predict_proba(X, offset=own), expected)


def test_offsets_may_name_classes_by_numbers():
    y = np.array([10, 20, 30])[np.argmax(Y, axis=1)]
    backwards = pd.DataFrame(Y[:, ::-1], columns=[30, 20, 10])
    assert "in another order ('30', '20'" in refusal(
        lambda: classifier().fit(X, y, offset=backwards)
    )


def test_parameters_with_names_go_by_these():
    features, outputs = named(pd.DataFrame, X), named(pd.DataFrame, Y, ["p", "q", "r"])
    settings = {"max_iter": 5, "random_state": 0, "strategy": "multioutput"}

    def fitted(targets=outputs, kind=ManyBoostRegressor, **parameters):
        return model_bytes(kind(**settings, **parameters).fit(features, targets))

    weights, signs = pd.Series([0.1, 9.0, 1.0], ["p", "q", "r"]), pd.Series([1, -1, 0], NAMES)
    table = pd.DataFrame([[1, 0, 0], [0, -1, 0], [0, 0, 1]], ["p", "q", "r"], NAMES)
    mask = pd.Series([True, False, False], NAMES)
    plain = fitted(output_weight=weights.tolist())
    assert fitted(output_weight=weights) == fitted(output_weight=weights.iloc[::-1]) == plain
    for given in (signs, table, table.T.iloc[::-1].T):
        expected = fitted(monotonic_cst=given[NAMES].to_numpy())
        assert fitted(monotonic_cst=given.iloc[::-1]) == expected
    expected = fitted(monotonic_cst={"u": [1, 0, 0]})
    assert fitted(monotonic_cst={"u": table["u"].iloc[::-1]}) == expected
    rounded = {"categorical_features": mask.tolist()}
    features["u"] = features["u"].round()
    assert fitted(categorical_features=mask.iloc[::-1]) == fitted(**rounded)
    # Columns of classes have names of their own.
    columns = pd.DataFrame({"a": CLASSES, "b": LABELS[:, 0]})
    of_columns = pd.Series([9.0, 0.1], ["b", "a"])
    expected = fitted(columns, ManyBoostClassifier, output_weight=[0.1, 9.0])
    assert fitted(columns, ManyBoostClassifier, output_weight=of_columns) == expected


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
@pytest.mark.parametrize("classes", [["ant", "bee", "cat"], [10, 20, 30]], ids=["text", "numbers"])
def test_weights_of_outputs_go_by_the_classes(classes, loss):
    y = np.array(classes)[np.argmax(Y, axis=1)]

    def fitted(weight):
        model = classifier(loss=loss, strategy="multioutput", output_weight=weight)
        return model_bytes(model.fit(X, y))

    weights = pd.Series([0.1, 9.0, 1.0], classes)
    expected = fitted(weights.tolist())
    assert expected != fitted(weights.tolist()[::-1])
    # An index that only counts is no name.
    for same in (weights, weights.iloc[::-1], weights.reset_index(drop=True)):
        assert fitted(same) == expected
    unknown = pd.Series([0.1, 9.0, 1.0], [*classes[:2], 7])
    assert "output_weight names the output '7', which y does not have" in refusal(
        lambda: fitted(unknown)
    )


def test_parameters_with_other_names_go_by_position_or_are_refused():
    outputs, weights = named(pd.DataFrame, Y), [0.1, 9.0, 1.0]

    def fitted(index):
        model = regressor(strategy="multioutput", output_weight=pd.Series(weights, index))
        return model.fit(X, outputs)

    expected = model_bytes(regressor(strategy="multioutput", output_weight=weights).fit(X, Y))
    for index in (None, ["low", "middle", "high"], [3, 4, 5]):
        assert model_bytes(fitted(index)) == expected
    unknown = "output_weight names the output 'x', which y does not have; available: 'u', 'v', 'w'."
    assert refusal(lambda: fitted(["u", "v", "x"])) == unknown
    twice = "output_weight has the output 'u' twice; give it once."
    assert refusal(lambda: fitted(["u", "v", "u"])) == twice


# Frames out -------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_predictions_come_back_as_frames(library):
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    outputs = ["price", "rent", "tax"]
    data = named(frame, X)
    model = regressor().fit(data, named(frame, Y, outputs))
    arrays = model.predict(data)
    predictions = model.set_output(predict=library).predict(data)
    assert isinstance(predictions, frame)
    assert list(predictions.columns) == outputs
    assert np.array_equal(predictions.to_numpy(), arrays)
    some = model.predict(data, outputs=["tax", "price"], dtype=np.float32)
    assert list(some.columns) == ["tax", "price"]
    assert some.to_numpy().dtype == np.float32
    assert isinstance(model.score(data, Y), float)
    labels = classifier().set_output(transform=library).fit(data, named(frame, LABELS, outputs))
    for method in ["predict", "predict_proba", "decision_function"]:
        result = getattr(labels, method)(data)
        assert isinstance(result, frame)
        assert list(result.columns) == outputs
    assert labels.score(data, LABELS) == labels.set_output(predict="default").score(data, LABELS)
    assert isinstance(labels.predict(data), np.ndarray)


def test_columns_without_names_and_of_classes():
    model = regressor().set_output(predict="pandas").fit(X, Y)
    assert list(model.predict(X).columns) == ["y0", "y1", "y2"]
    assert list(model.predict(X, outputs=[2]).columns) == ["y2"]
    assert isinstance(model.fit(X, Y[:, 0]).predict(X), np.ndarray)
    classes = classifier().set_output(predict="polars").fit(X, CLASSES)
    assert classes.predict_proba(X).columns == ["ant", "bee", "cat"]
    assert isinstance(classes.predict(X), np.ndarray)
    two = classifier().set_output(predict="polars").fit(X, LABELS[:, 0])
    assert two.predict_proba(X).columns == ["0", "1"]
    assert isinstance(two.decision_function(X), np.ndarray)


def test_pandas_frames_keep_the_index_of_the_features():
    index = pd.date_range("2024", periods=80)
    data = pd.DataFrame(X, columns=NAMES, index=index)
    model = regressor().set_output(predict="pandas").fit(data, Y)
    assert model.predict(data).index.equals(index)
    assert model.predict(data[5:9]).index.equals(index[5:9])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.predict(X).index.equals(pd.RangeIndex(80))


def test_the_choice_of_frames():
    model = regressor().set_output(predict="pandas").fit(X, Y)
    assert isinstance(clone(model).fit(X, Y).predict(X), pd.DataFrame)
    assert isinstance(model.set_output().predict(X), pd.DataFrame)
    assert isinstance(model.set_output(predict="polars").predict(X), pl.DataFrame)
    assert isinstance(pickle.loads(pickle.dumps(model)).predict(X), pl.DataFrame)
    assert refusal(lambda: model.set_output(predict="arrow")) == (
        "predict='arrow' is not allowed; it must be 'default', 'pandas' or 'polars'."
    )
    assert refusal(lambda: model.set_output(predict="pandas", transform="polars")) == (
        "predict='pandas' and transform='polars' contradict each other; give one."
    )


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    model = regressor().set_output(predict="polars").fit(X, Y)
    monkeypatch.setitem(sys.modules, "polars", None)
    assert refusal(lambda: model.predict(X), ImportError) == (
        "set_output asked for frames of polars, which is not installed; install it: pip install "
        "polars."
    )


# Arrays for models that were fitted on frames -------------------------------------------------


@pytest.mark.parametrize("kind", [np.int64, np.float64, bool], ids=["int", "float", "bool"])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_categories_that_are_numbers_may_come_as_arrays(kind):
    codes = np.array([3, 7, 11, 20])[RNG.integers(0, 4, 80)]
    codes = codes > 7 if kind is bool else codes.astype(kind)
    frame = pd.DataFrame({"u": X[:, 0], "v": pd.Categorical(codes)})
    model = regressor().fit(frame, Y + 5 * (codes.astype(float) == codes[0])[:, None])
    expected = model.predict(frame)
    array = np.column_stack([X[:, 0], codes.astype(float)])
    for given in (array, np.asfortranarray(array), array.tolist(), frame.astype(object).to_numpy()):
        assert np.array_equal(model.predict(given), expected)
    unknown, missing = array.copy(), array.copy()
    unknown[:, 1], missing[:, 1] = -1, np.nan
    assert np.array_equal(model.predict(unknown), model.predict(missing))
    assert np.array_equal(model.predict(missing), model.predict(frame.assign(v=None)))
    validated = regressor().fit(frame, Y, X_val=array, Y_val=Y)
    by_frame = regressor().fit(frame, Y, X_val=frame, Y_val=Y)
    assert np.array_equal(validated.validation_score_, by_frame.validation_score_)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_categories_that_are_text_may_come_as_arrays_of_objects():
    frame = pd.DataFrame({"u": X[:, 0], "v": pd.Categorical(["a", "b"] * 40)})
    model = regressor().fit(frame, Y)
    assert np.array_equal(model.predict(frame.to_numpy(object)), model.predict(frame))
    sentence = refusal(lambda: model.predict(X[:, :2]))
    assert sentence.startswith("Column 'v' of X holds numbers (")
    assert sentence.endswith(
        "but held categories such as 'a' in fit; pass the labels that the numbers stand for."
    )


@FRAMES
def test_columns_of_text_hold_categories(frame):
    u, tint, y = tints()
    data = frame({"u": u, "tint": tint})
    model = regressor().fit(data, y)
    named = regressor(categorical_features=["tint"]).fit(data, y)
    assert model.is_categorical_.tolist() == [False, True]
    assert np.array_equal(model.predict(data), named.predict(data))


LARGE = 2**60


@pytest.mark.parametrize(
    ("make", "known", "unknown"),
    [
        (lambda c: pd.DataFrame({"c": pd.Categorical(c)}), "ab", "'z'"),
        (lambda c: pl.DataFrame({"c": list(c)}), "ab", "'z'"),
        (lambda c: NamedTable(["c"], np.eye(60)[:, 3:4], {0: (c[0], c[3])}), "ab", "'z'"),
        (lambda c: np.array(c)[:, None], [LARGE, LARGE + 1], LARGE + 2),
    ],
)
def test_labels_that_a_model_does_not_know_are_missing_or_refused(make, known, unknown):
    labels = [known[i % 2] for i in range(60)]
    model = ManyBoostRegressor(max_iter=2)
    if isinstance(unknown, int):
        model.set_params(categorical_features=[0])
    model.fit(make(labels), np.arange(60.0))
    labels[3] = unknown if isinstance(unknown, int) else "z"
    assert np.isnan(check_X(model, make(labels), reset=False)[3, 0])
    column = "0" if isinstance(unknown, int) else "'c'"
    assert refusal(lambda: check_X(model, make(labels), reset=False, refuse_unknown=True)) == (
        f"Column {column} of X has the category {unknown} in row 3, which the fitted model does "
        "not know; make it missing, or fit a new model."
    )
