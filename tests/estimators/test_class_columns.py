"""Several columns of classes in one model: blocks of softmax outputs beside labels."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeRegressor

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor, load
from manyboost.comm import Threads
from manyboost.distributed import fit_files, fit_rank
from manyboost.metrics import TopKScorer, get_scorer
from manyboost.plotting import plot_calibration
from refusals import refusal

STRATEGIES = ["independent", "multioutput", "project", "relabel"]
N = 240
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 5))
SCORES = X @ RNG.normal(size=(5, 4)) + 0.3 * RNG.normal(size=(N, 4))
COLOUR = np.array(["blue", "green", "red"])[np.digitize(SCORES[:, 0], [-1, 1])]
LABEL = (SCORES[:, 1] > 0).astype(int)
SIZE = np.array([1, 2, 4, 8])[np.digitize(SCORES[:, 2], [-2, 0, 2])]
SMOKES = np.array(["no", "yes"])[(SCORES[:, 3] > 0.5).astype(int)]
COLUMNS = [COLOUR, LABEL, SIZE, SMOKES]
NAMES = ["colour", "label", "size", "smokes"]
BLOCKS = [slice(0, 3), slice(3, 4), slice(4, 8), slice(8, 9)]
Y = np.column_stack([column.astype(object) for column in COLUMNS])
CODES = np.column_stack([np.unique(column, return_inverse=True)[1] for column in COLUMNS])


def classifier(**parameters):
    return ManyBoostClassifier(
        **{"max_iter": 6, "random_state": 0, "n_jobs": 1, "learning_rate": 0.2, **parameters}
    )


def raw(model, rows=X):
    """Raw predictions of a model, always (n_rows, n_outputs)."""
    return model.decision_function(rows).reshape(len(rows), -1)


def same_where(rows, together, alone, block):
    """Compare raw predictions of rows that a column has; cuts between these may lie elsewhere."""
    expected = raw(alone)[rows]
    assert raw(together)[rows, block] == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.fixture(scope="module")
def model():
    return classifier().fit(X, Y)


# ---------------------------------------------------------------------- one model per column


@pytest.mark.parametrize("step", ["newton", "line_search"])
@pytest.mark.parametrize("weighted", [False, True])
def test_independent_is_one_model_per_column_bit_for_bit(step, weighted):
    weight = RNG.integers(1, 4, N).astype(float) if weighted else None
    parameters = {"strategy": "independent", "step": step}
    together = classifier(**parameters).fit(X, Y, weight)
    for column, block in zip(COLUMNS, BLOCKS, strict=True):
        alone = classifier(**parameters).fit(X, column, weight)
        assert np.array_equal(raw(together)[:, block], raw(alone))
        assert np.array_equal(together.baseline_[block], alone.baseline_)


@pytest.mark.parametrize("loss", ["exponential", "squared_error"])
def test_other_losses_take_one_class_against_the_rest(loss):
    together = classifier(loss=loss, strategy="independent").fit(X, Y)
    for j, column in enumerate(COLUMNS):
        alone = classifier(loss=loss, strategy="independent").fit(X, column)
        assert np.array_equal(raw(together)[:, BLOCKS[j]], raw(alone))
        assert np.array_equal(together.predict_proba(X)[j], alone.predict_proba(X))


def test_weights_by_column_are_those_of_the_models_of_the_columns():
    weight = RNG.integers(0, 3, (N, 4)).astype(float)
    parameters = {"strategy": "independent"}
    together = classifier(**parameters).fit(X, Y, weight)
    for j, column in enumerate(COLUMNS):
        alone = classifier(**parameters).fit(X, column, weight[:, j])
        same_where(weight[:, j] > 0, together, alone, BLOCKS[j])


def test_a_missing_class_is_a_row_that_its_column_does_not_have():
    y, there = Y.copy(), np.ones((N, 4), bool)
    for j, missing in enumerate([None, np.nan, pd.NA, None]):
        y[5 * j : 5 * j + 30, j], there[5 * j : 5 * j + 30, j] = missing, False
    together = classifier(strategy="independent").fit(X, y)
    for j, column in enumerate(COLUMNS):
        alone = classifier(strategy="independent").fit(X, column, there[:, j].astype(float))
        same_where(there[:, j], together, alone, BLOCKS[j])
    zero = classifier(strategy="independent").fit(X, Y, there.astype(float))
    assert np.array_equal(raw(zero), raw(together))


def test_offsets_and_class_weights_are_those_of_the_columns():
    offset = RNG.normal(size=(N, 9))
    together = classifier(strategy="independent", class_weight="balanced").fit(X, Y, offset=offset)
    for column, block in zip(COLUMNS, BLOCKS, strict=True):
        alone = classifier(strategy="independent", class_weight="balanced")
        alone.fit(X, column, offset=offset[:, block])
        expected = raw_with(alone, offset[:, block])
        assert raw_with(together, offset)[:, block] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    dicts = [{"red": 3.0}, {}, {8: 0.5}, {"yes": 2.0}]
    together = classifier(strategy="independent", class_weight=dicts).fit(X, Y)
    for column, block, each in zip(COLUMNS, BLOCKS, dicts, strict=True):
        alone = classifier(strategy="independent", class_weight=each).fit(X, column)
        assert raw(together)[:, block] == pytest.approx(raw(alone), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("y", [Y, pd.DataFrame(Y, columns=NAMES)], ids=["array", "frame"])
def test_offsets_have_the_order_of_the_classes_of_all_columns(y):
    offset = RNG.normal(size=(N, 9))
    model = classifier().fit(X, y, offset=offset)
    frame = pd.DataFrame(offset, columns=model._known_names())
    other = frame.iloc[:, ::-1]
    for call in [
        lambda: classifier().fit(X, y, offset=other),
        lambda: model.predict(X, offset=other),
    ]:
        assert "offset has the outputs of fit in another order" in refusal(call)
    assert np.array_equal(model.predict(X, offset=frame), model.predict(X, offset=offset))


@pytest.mark.parametrize("step", ["newton", "line_search"])
@pytest.mark.parametrize("strategy", ["project", "relabel"])
def test_trees_grown_for_one_column_serve_it_as_its_own_model_would(strategy, step):
    drawn = np.random.default_rng(8).normal(size=(6, 3))

    def of_columns(block, n_outputs):
        """Projections that see one column alone, round by round."""
        rounds = iter(drawn)

        def projection(q, d, rng):
            assert (q, d) == (1, n_outputs)
            phi = np.zeros((1, n_outputs))
            phi[:, block] = next(rounds)
            return phi

        return projection

    parameters = {"strategy": strategy, "step": step, "min_samples_leaf": 5}
    together = classifier(projection=of_columns(BLOCKS[0], 9), **parameters).fit(X, Y)
    alone = classifier(projection=of_columns(slice(None), 3), **parameters).fit(X, COLOUR)
    assert raw(together)[:, BLOCKS[0]] == pytest.approx(raw(alone), rel=1e-4, abs=1e-5)


def raw_with(model, offset):
    return model.decision_function(X, offset=offset).reshape(N, -1)


# ---------------------------------------------------------------------- what a model says


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("step", ["newton", "line_search"])
def test_every_strategy_learns_all_columns(strategy, step):
    model = classifier(strategy=strategy, step=step, max_iter=40).fit(X, Y)
    loss = -model.train_score_
    assert loss[-1] < 0.8 * loss[0]
    found = model.predict(X)
    assert found.shape == (N, 4)
    for j in range(4):
        common = np.unique(CODES[:, j], return_counts=True)[1].max() / N
        assert (found[:, j] == Y[:, j]).mean() > common + 0.05


def test_shapes_and_classes_are_those_of_forests():
    model, forest = classifier().fit(X, CODES), RandomForestClassifier(5).fit(X, CODES)
    assert model.n_classes_ == forest.n_classes_ == [3, 2, 4, 2]
    assert model.n_outputs_ == 9
    for ours, theirs in zip(model.classes_, forest.classes_, strict=True):
        assert np.array_equal(ours, theirs)
    ours, theirs = model.predict_proba(X), forest.predict_proba(X)
    assert isinstance(ours, list)
    assert [each.shape for each in ours] == [each.shape for each in theirs]
    for each in ours:
        assert each.sum(axis=1) == pytest.approx(1.0)
    assert model.predict(X).shape == forest.predict(X).shape
    assert model.predict(X).dtype == CODES.dtype


def test_predictions_are_the_most_probable_classes(model):
    found, shares = model.predict(X), model.predict_proba(X)
    for j, values in enumerate(model.classes_):
        assert found[:, j].tolist() == values[shares[j].argmax(axis=1)].tolist()
    assert model.score(X, Y) == (found == Y).all(axis=1).mean()
    assert [each.dtype for each in model.predict_proba(X, dtype=np.float32)] == [np.float32] * 4
    *_, last = model.staged_predict(X)
    assert np.array_equal(last, found)
    *_, last = model.staged_predict_proba(X)
    assert all(map(np.array_equal, last, shares))
    partly = Y.copy()
    partly[found != Y] = None
    assert model.score(X, partly) == 1.0


def test_the_training_loss_is_the_mean_over_columns(model):
    losses = []
    for j, values in enumerate(model.classes_):
        place = np.searchsorted(values.tolist(), Y[:, j].tolist())
        losses.append(-np.log(model.predict_proba(X)[j][np.arange(N), place]).mean())
    assert -model.train_score_[-1] == pytest.approx(np.mean(losses), rel=1e-5)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_name_the_columns(library, model):
    y = library(dict(zip(NAMES, COLUMNS, strict=True)))
    named = classifier().fit(X, y)
    assert named.target_names_.tolist() == NAMES
    assert np.array_equal(raw(named), raw(model))
    assert named.classes_[2].dtype == SIZE.dtype
    names = ["colour=blue", "colour=green", "colour=red", "label=1", "size=1"]
    assert named.info()["output_names"][:5] == names
    first = named.decision_function(X, outputs=["colour=red", "smokes=yes"])
    assert np.array_equal(first, raw(model)[:, [2, 8]])
    named.set_output(predict=library.__module__.split(".")[0])
    assert list(named.predict(X).columns) == NAMES
    # Each column has the type of its classes.
    assert named.predict(X)["size"].dtype == library({"size": SIZE})["size"].dtype
    assert list(named.predict_proba(X)[0].columns) == ["blue", "green", "red"]
    sentence = refusal(lambda: classifier().fit(X, y, X_val=X, Y_val=y[NAMES[::-1]]))
    assert "in another order" in sentence
    with_missing = pd.DataFrame(dict(zip(NAMES, COLUMNS, strict=True)))
    with_missing.loc[3, "colour"] = None
    assert classifier().fit(X, with_missing).n_outputs_ == 9


def test_a_model_explains_each_class(model):
    values = model.shap_values(X[:7])
    assert values.shape == (7, 5, 9)
    assert values.sum(axis=1) + model.expected_value_ == pytest.approx(raw(model, X[:7]), abs=1e-5)
    assert model.output_importances_.shape == (9, 5)
    assert model.output_similarity().shape == (9, 9)


# ---------------------------------------------------------------------- keeping


@pytest.mark.parametrize("names", [None, NAMES])
def test_files_and_pickles_keep_the_columns(tmp_path, names):
    y = Y if names is None else pd.DataFrame(dict(zip(NAMES, COLUMNS, strict=True)))
    model = classifier(step="line_search").fit(X, y)
    model.save(tmp_path / "model.mb")
    for again in (load(tmp_path / "model.mb"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(raw(again), raw(model))
        assert np.array_equal(again.predict(X), model.predict(X))
        assert all(map(np.array_equal, again.classes_, model.classes_))
        assert [each.dtype for each in again.classes_] == [each.dtype for each in model.classes_]
        assert hasattr(again, "target_names_") == (names is not None)
        again.save(tmp_path / "again.mb")
        assert (tmp_path / "again.mb").read_bytes() == (tmp_path / "model.mb").read_bytes()
    assert model.info()["format_version"] == 5


def test_a_warm_start_continues(tmp_path):
    whole = classifier(max_iter=6).fit(X, Y)
    half = classifier(max_iter=3, warm_start=True).fit(X, Y)
    half.save(tmp_path / "half.mb")
    half = load(tmp_path / "half.mb").set_params(max_iter=6).fit(X, Y)
    assert np.array_equal(raw(half), raw(whole))
    path = tmp_path / "checkpoint"
    classifier(max_iter=3, checkpoint=path).fit(X, Y)
    continued = classifier(max_iter=6, checkpoint=path).fit(X, Y)
    assert np.array_equal(raw(continued), raw(whole))
    refitted = classifier().fit(X, Y).refit(X, Y)
    assert np.array_equal(raw(refitted), raw(whole))


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_onnx_has_classes_and_probabilities_of_all_columns(loss):
    onnxruntime = pytest.importorskip("onnxruntime")
    single = X.astype(np.float32)
    for y in (CODES, np.column_stack([COLOUR, SMOKES])):
        model = classifier(loss=loss).fit(single, y)
        session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
        labels, shares = session.run(None, {"X": single})
        assert labels.tolist() == model.predict(single).tolist()
        assert shares == pytest.approx(np.hstack(model.predict_proba(single)), abs=1e-5)
    sentence = refusal(lambda: classifier().fit(X, Y).to_onnx())
    assert sentence.startswith("The columns have classes of different types")


def test_treelite_has_raw_predictions(model):
    pytest.importorskip("treelite")
    assert "a link for each of 4 columns of classes" in refusal(model.to_treelite)
    treelite = pytest.importorskip("treelite")
    found = treelite.gtil.predict(model.to_treelite(raw=True), X.astype(np.float32))
    single = model.decision_function(X.astype(np.float32))
    assert np.asarray(found).reshape(N, -1) == pytest.approx(single, abs=1e-5)


# ---------------------------------------------------------------------- stopping, folds, ranks


def test_a_column_stops_as_the_model_of_it_alone():
    parameters = {
        "strategy": "independent",
        "max_iter": 60,
        "n_iter_no_change": 3,
        "learning_rate": 0.5,
    }
    known = {"X_val": X[:80], "Y_val": Y[:80]}
    together = classifier(early_stopping="per_output", **parameters).fit(X[80:], Y[80:], **known)
    for j, column in enumerate(COLUMNS):
        known["Y_val"] = column[:80]
        alone = classifier(early_stopping=True, **parameters).fit(X[80:], column[80:], **known)
        best = together.best_iter_per_output_[BLOCKS[j]]
        assert (best == alone.n_iter_).all()
        assert np.array_equal(raw(together)[:, BLOCKS[j]], raw(alone))
        curve = together.validation_score_per_output_[: alone.n_iter_ + 1, BLOCKS[j]]
        expected = alone.validation_score_[:, None]
        assert curve == pytest.approx(np.broadcast_to(expected, curve.shape), rel=1e-5)


def test_the_score_of_an_estimator_is_its_accuracy_in_whole_rows():
    known = {"X_val": X[:80], "Y_val": Y[:80]}
    model = classifier(scoring=None, early_stopping=True, max_iter=20).fit(X[80:], Y[80:], **known)
    assert model.validation_score_[model.n_iter_] == model.score(X[:80], Y[:80])


@pytest.mark.parametrize("early_stopping", [True, "per_output"])
def test_the_validation_score_is_the_mean_over_columns(early_stopping):
    settings = {"max_iter": 60, "early_stopping": early_stopping, "n_iter_no_change": 3}
    model = classifier(**settings).fit(X, Y)
    assert 0 < model.n_iter_ < 60
    per_output = model.validation_score_per_output_[:, [0, 3, 4, 8]]
    assert model.validation_score_ == pytest.approx(per_output.mean(axis=1), rel=1e-6)


def test_scorers_see_the_probabilities_of_a_first_fit():
    seen = []

    def score(model, X, y):
        seen.append(model.n_classes_)
        return -sum(np.var(part) for part in model.predict_proba(X))

    classifier(scoring=score, early_stopping=True).fit(X, Y)
    assert seen[0] == [3, 2, 4, 2]


def test_folds_are_a_mean_of_models():
    model = classifier(n_folds=3).fit(X, Y)
    assert model.oof_decision_function_.shape == (N, 9)
    assert len(model.predict_proba(X)) == 4
    assert "use predict_proba" in refusal(lambda: model.predict_set(X))


def test_ranks_fit_the_model_of_one(model):
    def fit(comm):
        rows = slice(comm.rank * N // 2, (comm.rank + 1) * N // 2)
        return fit_rank(classifier(), comm, X[rows], Y[rows])

    for each in Threads.run(2, fit):
        assert np.array_equal(raw(each), raw(model))
    # All of one rank's values are 0 and 1.
    codes = CODES[np.argsort(CODES.max(axis=1), kind="stable")]
    alone = classifier().fit(X, codes)
    assert (codes[:20] <= 1).all()

    def uneven(comm):
        rows = slice(0, 20) if comm.rank == 0 else slice(20, N)
        return fit_rank(classifier(), comm, X[rows], codes[rows])

    for each in Threads.run(2, uneven):
        assert np.array_equal(raw(each), raw(alone))


def test_every_way_of_training_takes_columns():
    for parameters in (
        {"strategy": "auto", "max_iter": 20},
        {"subsample": 0.5},
        {"projection": "rademacher", "n_components": 2},
        {"output_weight": [1, 0, 2, 1]},
        {"estimator": DecisionTreeRegressor(max_depth=2)},
        {"estimator": DecisionTreeRegressor(max_depth=2), "step": "line_search"},
        {"estimator": DecisionTreeRegressor(max_depth=2), "strategy": "independent"},
        {"interaction_cst": "pairwise"},
        {"early_stopping": True, "refit_all": True},
    ):
        model = classifier(**parameters).fit(X, Y)
        assert -model.train_score_[-1] < -model.train_score_[0]
        assert model.predict(X).shape == (N, 4)


class Squares(Loss):
    """Squared error of labels of 0 and 1."""

    def value(self, y, raw):
        return 0.5 * (y - raw) ** 2

    def gradient(self, y, raw):
        return raw - y

    def inverse_link(self, raw):
        return np.clip(raw, 0.001, 0.999)


def test_a_loss_in_python_sees_a_label_for_each_class():
    y = Y.copy()
    y[:9, 0] = None
    model = classifier(loss=Squares()).fit(X, y)
    assert [each.shape[1] for each in model.predict_proba(X)] == [3, 2, 4, 2]


# ---------------------------------------------------------------------- what is refused


def test_what_columns_do_not_have():
    fitted = classifier().fit(X, Y)
    for ask, words in [
        (lambda: fitted.predict_top_k(X, 2), "predict_top_k is not for several columns of classes"),
        (lambda: fitted.predict_labels(X), "of which this model predicts 4; use predict."),
        (lambda: fitted.predict(X, outputs=[0]), "4 columns of classes; leave outputs out"),
        (lambda: fitted.predict_proba(X, outputs=[0]), "4 columns of classes; leave outputs out"),
        (lambda: classifier(thresholds=0.3).fit(X, Y), "of each column the most likely class"),
        (lambda: classifier(monotonic_cst=[1] * 5).fit(X, Y), "not defined for 4 classes"),
        (lambda: classifier(class_weight={0: 1}).fit(X, Y), "one dict, but y has 4 columns"),
        (
            lambda: classifier(calibration="sigmoid", n_folds=2).fit(X, Y),
            "but y has 4 columns of classes; leave it out",
        ),
        (
            lambda: classifier(label_hierarchy={0: 1}).fit(X, Y),
            "label_hierarchy was given, but y holds columns of classes",
        ),
        (lambda: classifier(class_weight=[{}]).fit(X, Y), "1 dicts, but y has 4 columns"),
        (lambda: classifier(output_weight=[1] * 9).fit(X, Y), "9 weights, but there are 4 columns"),
        (lambda: classifier().fit(X, Y, np.ones((N, 9))), f"each of the {N} × 4 cells"),
        (lambda: classifier().fit(X, Y, offset=np.ones(N)), f"must have the shape ({N}, 9)"),
        (
            lambda: classifier().fit(X, Y[:, [1, 3]], offset=np.ones(N)),
            f"classes need an offset for each output; it must have the shape ({N}, 2)",
        ),
        (
            lambda: classifier(scoring="accuracy", early_stopping=True).fit(X, Y),
            "scoring='accuracy' does not go with these targets",
        ),
        (
            lambda: classifier(scoring=TopKScorer("recall", 1), early_stopping=True).fit(X, Y),
            "predict_top_k is not for several columns of classes",
        ),
        (lambda: ManyBoostRegressor().fit(X, Y), "use ManyBoostClassifier for classes"),
        (lambda: get_scorer("f1_macro")(fitted, X, CODES), "score each column by itself"),
        (lambda: plot_calibration(fitted, X, Y), "a plot for each column"),
    ]:
        assert words in refusal(ask)


def test_columns_that_hold_no_classes():
    for j, values, words in [
        (0, "red", "Column 0 of y has only one class ('red')"),
        (0, None, "Column 0 of y has no class"),
        (1, SCORES[:, 1], "Unknown label type: continuous; Column 1 of y must hold classes"),
        (3, ["x", 1] * (N // 2), "Column 3 of y mixes classes of the types int and str"),
    ]:
        bad = Y.copy()
        bad[:, j] = values
        assert words in refusal(lambda bad=bad: classifier().fit(X, bad))
    named = pd.DataFrame(dict(zip(NAMES, COLUMNS, strict=True)))
    unknown = named.copy()
    unknown.loc[7, "size"] = 16
    assert refusal(lambda: classifier().fit(X, named, X_val=X, Y_val=unknown)) == (
        "Column 'size' of Y_val has the class 16 in row 7, which the model does not know; fit on "
        "rows of all classes."
    )
    sentence = refusal(lambda: classifier().fit(X, Y, X_val=X, Y_val=Y[:, :3]))
    assert sentence == "Y_val has 3 columns; the model was given 4 columns of classes."
    weight = np.ones((N, 4))
    weight[:, 2] = 0
    sentence = refusal(lambda: classifier().fit(X, named, weight))
    assert sentence.startswith("Output 'size' of y has no observed value of positive weight")


def test_an_indicator_stays_an_indicator():
    labels = CODES[:, [1, 3]]
    assert classifier().fit(X, labels).classes_.tolist() == [0, 1]
    text = np.column_stack([SMOKES, SMOKES])
    model = classifier().fit(X, text)
    assert model.n_outputs_ == 2
    assert np.array_equal(raw(model), raw(classifier().fit(X, np.repeat(labels[:, 1:], 2, axis=1))))
    shares = labels * 0.5
    assert "for a probability p pass the row twice" in refusal(lambda: classifier().fit(X, shares))
    fitted = classifier(warm_start=True).fit(X, labels)
    assert "several outputs must be an indicator" in refusal(lambda: fitted.fit(X, CODES[:, :2]))


def test_fit_files_takes_indicators_only(tmp_path):
    for name, values in (("X", X), ("Y", CODES)):
        np.save(tmp_path / f"{name}.npy", values)
    sentence = refusal(lambda: fit_files(classifier(), tmp_path / "X.npy", tmp_path / "Y.npy"))
    assert "labels must be 0 or 1, one column each: use fit for several columns" in sentence
