"""The runtime without Python predicts what Python predicts, to the last bit."""

import importlib.util
import json
import time
from pathlib import Path

import numpy as np
import pytest

import manyboost
from manyboost import Loss, ManyBoostRegressor
from manyboost.persistence import model as model_files
from model_surgery import closed, opened
from runtimes.c_library import StatusError
from small_problems import CLASSES, LABELS, X, Y, classifier, regressor

MODELS = Path(__file__).parents[1] / "models"
GOLDEN = sorted(path.stem for path in MODELS.glob("*.mb"))
ENTRIES = Path(__file__).parents[2] / "crates" / "predict" / "src" / "entries.rs"

spec = importlib.util.spec_from_file_location("golden", MODELS / "golden.py")
golden = importlib.util.module_from_spec(spec)
spec.loader.exec_module(golden)


def same_bits(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    assert a.shape == b.shape
    assert np.array_equal(a.view(np.uint64), b.view(np.uint64)), np.abs(a - b).max()


def file_of(model, tmp_path):
    model.save(tmp_path / "model.mb")
    return (tmp_path / "model.mb").read_bytes()


def agree(model, runtime, X, rows=None, **offset):
    """Compare all that both can say; ``rows`` are X as numbers."""
    rows = X if rows is None else rows
    raw = runtime.raw(rows)
    same_bits(raw, model._raw_predict(X, np.zeros(len(X)) if offset else None))
    raw = raw + np.asarray(offset.get("offset", np.zeros(len(X))))[:, None]
    if isinstance(model, ManyBoostRegressor):
        same_bits(runtime.finish(raw), model.predict(X, **offset))
        with pytest.raises(StatusError, match="3"):
            runtime.choose(raw)
    else:
        proba = model.predict_proba(X, **offset)
        of_columns = isinstance(proba, list)
        same_bits(runtime.finish(raw), np.hstack(proba) if of_columns else proba)
        chosen, predicted = runtime.choose(raw), model.predict(X, **offset)
        if of_columns:
            parts = np.split(chosen, np.cumsum(model.n_classes_)[:-1], axis=1)
            for part, classes, column in zip(parts, model.classes_, predicted.T, strict=True):
                assert classes[part.argmax(axis=1)].tolist() == column.tolist()
                assert (part.sum(axis=1) == 1).all()
        elif predicted.ndim == 2:
            assert chosen.tolist() == predicted.tolist()
        else:
            assert (model.classes_[chosen.argmax(axis=1)] == predicted).all()
            assert (chosen.sum(axis=1) == 1).all()
    if offset:
        with pytest.raises(StatusError, match="1"):
            runtime.predict(rows)
    else:
        same_bits(runtime.predict(rows), runtime.finish(raw))


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_models(library, name):
    data = (MODELS / f"{name}.mb").read_bytes()
    asked = json.loads((MODELS / f"{name}.json").read_text())["asked"]
    X, offset = golden.rows_of(asked)
    model, runtime, rows = manyboost.load(MODELS / f"{name}.mb"), library.open(data), None
    if "columns" in asked:
        labels = runtime.category_labels(1)
        assert labels == ["blue", "red", "é"]
        assert runtime.feature_names() == ["length", "colour"]
        assert runtime.column_names() == ["one", "two"]
        columns = asked["columns"]
        rows = np.column_stack([columns["length"], [labels.index(c) for c in columns["colour"]]])
        model.set_output(predict="default")
    agree(model, runtime, X, rows, **offset)


STRANGE = np.vstack([
    X,
    np.random.default_rng(1).normal(size=(200, 3)) * 3,
    np.full((1, 3), np.nan),
    np.full((1, 3), np.inf),
    np.full((1, 3), -np.inf),
    [[0.0, -0.0, 1e300], [1e-320, -1e300, np.nan], [np.nan, 0, np.inf]],
])  # fmt: skip
# Label 1 is above 0, that above 2, that above 3.
FAMILY = (X[:, :1] > np.array([0.0, -0.5, 0.5, 1.0])).astype(int)
COUNTS = np.round(np.exp(np.clip(Y, -2, 2)))
SEVERAL = {
    **{
        f"{loss}, {strategy}": lambda loss=loss, strategy=strategy, y=y: regressor(
            loss=loss, strategy=strategy
        ).fit(X, y)
        for strategy in ("independent", "multioutput", "project", "relabel")
        for loss, y in [
            ("squared_error", Y),
            ("absolute_error", Y),
            ("huber", Y),
            ("quantile", Y),
            ("poisson", COUNTS),
            ("gamma", COUNTS + 1),
            ("tweedie", COUNTS),
        ]
    },
    **{
        f"labels, {loss}, {strategy}": lambda loss=loss, strategy=strategy: classifier(
            loss=loss, strategy=strategy
        ).fit(X, LABELS)
        for strategy in ("independent", "project", "relabel")
        for loss in ("log_loss", "exponential", "squared_error")
    },
    **{
        f"classes, {loss}": lambda loss=loss: classifier(loss=loss).fit(X, CLASSES)
        for loss in ("log_loss", "exponential", "squared_error")
    },
    **{
        f"columns of classes, {loss}": lambda loss=loss: classifier(loss=loss).fit(
            X, np.c_[CLASSES, LABELS[:, 0], CLASSES[::-1], LABELS]
        )
        for loss in ("log_loss", "exponential", "squared_error")
    },
    "numbers as classes": lambda: classifier().fit(X, np.array([-3, 7, 12])[LABELS.sum(axis=1)]),
    "two classes": lambda: classifier(thresholds=0.3).fit(X, LABELS[:, 0]),
    "two floats": lambda: classifier().fit(X, LABELS[:, 0] - 0.0),
    "a threshold each": lambda: classifier(thresholds=[0.2, 0.7]).fit(X, LABELS),
    "certain labels": lambda: classifier(max_iter=200, learning_rate=1.0, step="line_search").fit(
        X, LABELS
    ),
    "levels": lambda: regressor(loss="quantile", quantile=[0.1, 0.5, 0.9]).fit(X, Y[:, 0]),
    "one output": lambda: regressor().fit(X, Y[:, 0]),
    "mixed": lambda: regressor(loss=["huber", "poisson"]).fit(X, np.c_[Y[:, 0], COUNTS[:, 1]]),
    "folds": lambda: regressor(n_folds=3).fit(X, Y),
    "folds, independent": lambda: classifier(n_folds=2, strategy="independent").fit(X, LABELS),
    "sigmoids": lambda: classifier(n_folds=2, calibration="sigmoid").fit(X, LABELS),
    "isotonic curves": lambda: classifier(n_folds=2, calibration="isotonic").fit(X, LABELS),
    "two classes, calibrated": lambda: classifier(
        n_folds=2, calibration="isotonic", thresholds=0.4
    ).fit(X, LABELS[:, 0]),
    "a hierarchy": lambda: classifier(label_hierarchy=[(0, 1), (2, 0), (3, 2), (3, 1)]).fit(
        X, FAMILY
    ),
    "a hierarchy, calibrated": lambda: classifier(
        label_hierarchy=[(0, 1), (2, 0), (3, 2)], n_folds=2, calibration="sigmoid", thresholds=0.3
    ).fit(X, FAMILY),
    "missing and infinite": lambda: regressor(max_leaf_nodes=16, min_samples_leaf=1).fit(
        np.vstack([STRANGE[-6:-3]] * 20), Y
    ),
    "a constant": lambda: regressor().fit(X, np.ones((60, 2))),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_models_of_all_kinds(library, tmp_path, name):
    model = SEVERAL[name]()
    agree(model, library.open(file_of(model, tmp_path)), STRANGE)


def test_columns_of_classes_have_names(library):
    runtime = library.open((MODELS / "class_columns.mb").read_bytes())
    kinds = ["kind=ant", "kind=bee", "kind=cow"]
    assert runtime.column_names()[:3] == kinds
    assert runtime.column_names()[-2:] == ["one=False", "one=True"]


def test_classes_have_the_names_of_their_values_whatever_their_type(library, tmp_path):
    for classes in ([0, 3], [-1, 65504], [-2, 2049]):
        values = np.sort(np.array(classes, np.float16))
        model = classifier().fit(X, values[LABELS[:, 0]])
        runtime = library.open(file_of(model, tmp_path))
        assert runtime.column_names() == [repr(float(each)) for each in values]
        agree(model, runtime, STRANGE)


def test_a_hundred_thousand_labels_are_read_at_once(library):
    def add(header, arrays):
        count = 100_000
        header["category_labels"] = [[1, [*(f"user {k}" for k in range(count - 2)), 1, "1"]]]
        arrays["category_counts"] = np.array([count], np.uint32)
        arrays["category_values"] = np.arange(count, dtype=np.float64)
        arrays["group_features"] = np.array([1], np.uint32)
        arrays["group_codes"] = np.minimum(np.arange(count), 3).astype(np.uint8)

    header, arrays = opened((MODELS / "frames.mb").read_bytes())
    add(header, arrays)
    data = closed(header, arrays, 4)
    began = time.perf_counter()
    library.open(data)
    # Comparing each with all others would take ten times as long.
    assert time.perf_counter() - began < 2
    assert len(model_files.from_bytes(data)._category_labels.of_column[1]) == 100_000
    header["category_labels"][0][1][-1] = "user 7"
    with pytest.raises(ValueError, match="labels of its categories"):
        library.open(closed(header, arrays, 4))


def test_categories_known_and_unknown_and_cuts_in_doubles(library, tmp_path):
    rng = np.random.default_rng(3)
    table = np.column_stack([
        rng.choice([-2.5, 0.0, 3.0, 7.0], 200),
        1.7e9 + rng.integers(0, 60, 200),
        rng.normal(size=200),
        -1e9 + rng.random(200),
    ])  # fmt: skip
    targets = np.column_stack([table[:, 0] == 3, np.sin(table[:, 1])]) + rng.normal(size=(200, 2))
    model = regressor(categorical_features=[0], max_iter=20).fit(table, targets)
    assert model._progress.categories.cuts.keys() == {1, 3}
    asked = np.vstack([table, table])
    asked[200:, 0] = rng.choice([np.nan, 1.0, -2.5, 99.0, -0.0], 200)
    asked[200:, 1] += rng.choice([0.5, -100, 1e12, np.nan, np.inf], 200)
    asked[200:, 3] = rng.choice([0, -1e9, -np.inf, -1e9 + 0.5], 200)
    agree(model, library.open(file_of(model, tmp_path)), asked)


def test_rare_categories_share_a_code(library, tmp_path):
    rng = np.random.default_rng(4)
    table = np.column_stack([np.floor(rng.exponential(60, 3000)), rng.normal(size=3000)])
    targets = np.column_stack([table[:, 0] % 7, table[:, 1]]) + rng.normal(size=(3000, 2))
    with pytest.warns(UserWarning, match="Rare categories count as one"):
        model = regressor(categorical_features=[0], max_iter=10, max_bins=40).fit(table, targets)
    asked = np.vstack([table[:300], [[np.nan, 0], [-1, 0], [1e6, 0], [1.5, 0]]])
    agree(model, library.open(file_of(model, tmp_path)), asked)


def test_categories_may_be_infinite(library, tmp_path):
    pandas = pytest.importorskip("pandas")
    sizes = np.array([-np.inf, 1.0, 2.5, np.inf])
    given = pandas.DataFrame({"size": pandas.Categorical(sizes[np.arange(60) % 4]), "x": X[:, 0]})
    model = regressor().fit(given, Y)
    runtime = library.open(file_of(model, tmp_path))
    assert runtime.category_labels(0) == ["-inf", "1.0", "2.5", "inf"]
    agree(model, runtime, given, np.column_stack([np.arange(60) % 4, X[:, 0]]))


def test_no_category_is_nan(library):
    header, arrays = opened((MODELS / "frames.mb").read_bytes())
    header["category_labels"][0][1][0] = {"float": "nan"}
    data = closed(header, arrays)
    for read in (library.open, model_files.from_bytes):
        with pytest.raises(ValueError, match="labels of "):
            read(data)


def test_single_precision_is_asked_like_double_precision(library, tmp_path):
    model = regressor().fit(X, Y)
    asked = STRANGE[:60].astype(np.float32)
    agree(model, library.open(file_of(model, tmp_path)), asked)


def test_columns_have_names(library, tmp_path):
    def names(model):
        return library.open(file_of(model, tmp_path)).column_names()

    assert names(regressor().fit(X, Y)) == ["y0", "y1"]
    assert names(regressor(loss="quantile", quantile=[0.1, 0.5]).fit(X, Y[:, 0])) == [
        "y0_q0.1",
        "y0_q0.5",
    ]
    close = regressor(loss="quantile", quantile=[1e-7, 0.1234567, 0.1234568]).fit(X, Y)
    close.set_output(predict="pandas")
    assert names(close) == list(close.predict(X).columns)
    assert len(set(names(close))) == 6
    assert names(classifier().fit(X, CLASSES)) == ["a", "b", "c"]
    assert names(classifier().fit(X, LABELS[:, 0] > 0)) == ["False", "True"]
    assert names(classifier().fit(X, LABELS[:, 0] - 3)) == ["-3", "-2"]
    assert names(classifier().fit(X, LABELS[:, 0] - 2.0)) == ["-2.0", "-1.0"]
    assert names(classifier().fit(X, [{"p"} if a else {"q"} for a, _ in LABELS])) == ["p", "q"]
    assert names(classifier().fit(X, LABELS)) == ["y0", "y1"]


def test_a_loss_without_link_has_raw_predictions_alone(library, tmp_path):
    class Signed(Loss):
        def value(self, y, raw):
            return (2 * y - 1 - raw) ** 2 / 2

        def gradient(self, y, raw):
            return raw - (2 * y - 1)

    model = classifier(loss=Signed()).fit(X, LABELS)
    runtime = library.open(file_of(model, tmp_path))
    same_bits(runtime.raw(STRANGE), model.decision_function(STRANGE))
    assert runtime.choose(runtime.raw(STRANGE)).tolist() == model.predict(STRANGE).tolist()
    with pytest.raises(StatusError, match="2"):
        runtime.predict(STRANGE)


def test_the_runtime_knows_all_entries_that_python_writes():
    text = ENTRIES.read_text()
    for entry in [*model_files.FIELDS, *model_files.ARRAYS]:
        assert f'("{entry.name}", ' in text
    for array in model_files.ARRAYS:
        shape = array.shape + " ?" * array.optional
        dtype = np.dtype(array.dtype).str
        assert f'("{array.name}", "{dtype}", "{shape}"),' in text
