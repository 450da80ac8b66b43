"""Hierarchies of labels: predictions agree with them in every row."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone

import manyboost
from manyboost import ManyBoostClassifier
from manyboost.commands.parameters import parse
from manyboost.data.hierarchy import Hierarchy
from manyboost.data.labels import Classes
from manyboost.metrics import TopKScorer
from refusals import refusal

RNG = np.random.default_rng(0)
NAMES = ["cat", "animal", "pet", "dog", "plant", "tree"]
# A cat is a pet and an animal, a pet is an animal, and so on; "plant" comes before "tree".
PAIRS = [("cat", "pet"), ("dog", "pet"), ("pet", "animal"), ("cat", "animal"), ("tree", "plant")]
X = RNG.normal(size=(300, 4))
BELOW = (X[:, [0, 1, 2, 1, 3, 3]] + RNG.normal(size=(300, 6)) > [1.5, 9, 9, -0.5, 9, 0.5]).astype(
    int
)


def classes(names=NAMES):
    return Classes("multilabel", np.array(names, object), tuple(names))


HIERARCHY = Hierarchy.of(PAIRS, classes())
LABELS = HIERARCHY.closed(BELOW)
FRAME = pd.DataFrame(LABELS, columns=NAMES)


def classifier(**parameters):
    fixed = {"label_hierarchy": PAIRS, "max_iter": 25, "random_state": 0}
    return ManyBoostClassifier(**{**fixed, **parameters})


def ancestors(n, pairs):
    """Which labels are above which, and themselves: powers of the adjacency matrix."""
    above = np.eye(n, dtype=int)
    for child, parent in pairs:
        above[child, parent] = 1
    for _ in range(n):
        above = (above @ above > 0).astype(int)
    return above.astype(bool)


def numbered(pairs=PAIRS, names=NAMES):
    return [(names.index(child), names.index(parent)) for child, parent in pairs]


def assert_agrees(values, pairs=None):
    """No label has more than its parents, hence than its ancestors."""
    for child, parent in numbered() if pairs is None else pairs:
        assert (values[:, child] <= values[:, parent]).all()


# Values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_label_has_the_most_of_itself_and_all_below_it(seed):
    rng = np.random.default_rng(seed)
    n = 12
    place = rng.permutation(n)
    drawn = [
        (int(place[i]), int(place[j])) for i in range(n) for j in range(i) if rng.random() < 0.2
    ]
    hierarchy = Hierarchy.of(drawn, Classes("multilabel", np.arange(n)))
    values, above = rng.normal(size=(40, n)), ancestors(n, drawn)
    expected = np.stack([values[:, above[:, j]].max(axis=1) for j in range(n)], axis=1)
    found = hierarchy.consistent(values)
    np.testing.assert_array_equal(found, expected)
    assert_agrees(found, drawn)
    np.testing.assert_array_equal(hierarchy.consistent(found), found)


def test_labels_are_ordered_from_above():
    place = np.argsort(HIERARCHY.order)
    assert all(place[parent] < place[child] for child, parent in numbered())


def test_labels_are_closed_upwards():
    above = ancestors(6, numbered())
    np.testing.assert_array_equal(LABELS, (BELOW @ above > 0).astype(int))
    assert HIERARCHY.closed(LABELS) is LABELS


@pytest.mark.parametrize(
    "given",
    [
        {"cat": ["pet", "animal"], "dog": "pet", "pet": ("animal",), "tree": {"plant"}},
        {"cat": ["pet", "animal"], "dog": 2, 2: 1, 5: 4, "animal": None, "plant": []},
        [list(pair) for pair in PAIRS],
        tuple(PAIRS + PAIRS),
    ],
)
def test_all_forms_give_the_same_hierarchy(given):
    hierarchy = Hierarchy.of(given, classes())
    np.testing.assert_array_equal(hierarchy.children, HIERARCHY.children)
    np.testing.assert_array_equal(hierarchy.parents, HIERARCHY.parents)


def test_labels_that_are_numbers_are_their_own_names():
    sets = Classes("multilabel", np.array([3, 7, 40]), ("3", "7", "40"))
    hierarchy = Hierarchy.of({40: 7, 7: 3}, sets)
    assert list(zip(hierarchy.children, hierarchy.parents, strict=True)) == [(1, 0), (2, 1)]
    problem = "label_hierarchy names the label 0, which y does not have; the labels are 3, 7, 40."
    assert refusal(lambda: Hierarchy.of({40: 0}, sets)) == problem


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"cat": 9}, "label_hierarchy has the output 9"),
        ({"cat": 1.5}, "label_hierarchy has 1.5 in place of an output"),
        ([(["cat"], 2)], "label_hierarchy has ['cat'] in place of an output"),
        ({0: np.array([1, 2])}, "label_hierarchy has array([1, 2]) in place of an output"),
        ({"cat": "cat"}, "has the cycle 'cat' -> 'cat'"),
        (
            {"tree": "cat", "cat": "pet", "pet": ["animal", "dog"], "dog": "cat"},
            "has the cycle 'cat' -> 'pet' -> 'dog' -> 'cat'",
        ),
    ],
)
def test_other_hierarchies_are_refused(given, problem):
    assert problem in refusal(lambda: Hierarchy.of(given, classes()))


@pytest.mark.parametrize("given", [[([0], 1)], {0: np.array([1, 2])}])
def test_what_is_no_label_that_is_a_number_is_refused(given):
    sets = Classes("multilabel", np.arange(3))
    assert "in place of an output" in refusal(lambda: Hierarchy.of(given, sets))


def test_a_misspelt_label_is_recognised():
    with pytest.raises(ValueError, match=r"names the output 'pte'.* did you mean 'pet'"):
        Hierarchy.of({"cat": "pte"}, classes())


def test_a_hierarchy_needs_labels():
    sentence = refusal(lambda: classifier(label_hierarchy={1: 0}).fit(X, BELOW.sum(axis=1)))
    assert "y holds one class per row" in sentence
    for odd in ("cat", [("a", "b", "c")], [{"a", "b"}], 3):
        assert "is not allowed" in refusal(
            lambda odd=odd: classifier(label_hierarchy=odd).fit(X, FRAME)
        )


# Models --------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["log_loss", "exponential", "squared_error"])
@pytest.mark.parametrize("strategy", ["relabel", "project", "independent"])
def test_all_predictions_agree_with_the_hierarchy(loss, strategy):
    # So little weight of pets makes cats and dogs more probable.
    weight = np.ones(LABELS.shape)
    weight[LABELS[:, 2] == 1, 2] = 0.1
    model = classifier(loss=loss, strategy=strategy).fit(X, FRAME, weight)
    plain = classifier(loss=loss, strategy=strategy, label_hierarchy=None).fit(X, FRAME, weight)
    raw = plain.decision_function(X)
    assert any((raw[:, c] > raw[:, p]).any() for c, p in numbered()), "nothing to mend"
    np.testing.assert_array_equal(model.decision_function(X), HIERARCHY.consistent(raw))
    for values in (model.predict_proba(X), model.decision_function(X), model.predict(X)):
        assert_agrees(values)
    for stage in (model.staged_predict, model.staged_predict_proba):
        for values in stage(X):
            assert_agrees(values)


@pytest.mark.parametrize(
    "parameters",
    [
        {"thresholds": [0.5, 0.9, 0.8, 0.2, 0.7, 0.1]},
        {"thresholds": "tuned"},
        {"thresholds": 0.2},
        {"calibration": "isotonic", "n_folds": 3},
        {"calibration": "sigmoid", "thresholds": "tuned", "n_folds": 3},
    ],
)
def test_predicted_labels_are_closed_whatever_the_thresholds(parameters):
    model = classifier(**parameters).fit(X, FRAME)
    present = model.predict(X)
    np.testing.assert_array_equal(HIERARCHY.closed(present), present)
    assert_agrees(model.predict_proba(X))
    assert present.sum() > 0


def test_with_one_threshold_labels_are_those_that_are_probable_enough():
    model = classifier(thresholds=0.3).fit(X, FRAME)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X) > 0.3)
    model = classifier().fit(X, FRAME)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X) > 0.5)


def test_some_outputs_are_those_of_all():
    model = classifier(thresholds=[0.5, 0.9, 0.8, 0.2, 0.7, 0.1]).fit(X, FRAME)
    for method in (model.predict, model.predict_proba, model.decision_function):
        np.testing.assert_array_equal(method(X, outputs=["dog", "animal"]), method(X)[:, [3, 1]])


def test_the_best_labels_never_come_before_those_above_them():
    model = classifier().fit(X, FRAME)
    above = ancestors(6, numbered())
    for k in range(1, 7):
        labels, scores = model.predict_top_k(X, k)
        assert (np.diff(scores, axis=1) <= 0).all()
        present = np.stack([np.isin(NAMES, row) for row in labels])
        np.testing.assert_array_equal(present, present @ above)
        np.testing.assert_allclose(
            np.sort(model.decision_function(X), axis=1)[:, ::-1][:, :k], scores
        )


@pytest.mark.parametrize("recall", [0.5, 0.8, 0.9])
def test_labels_for_a_recall_are_closed(recall):
    model = classifier(n_folds=3).fit(X, FRAME)
    above = {name: {p for c, p in PAIRS if c == name} for name in NAMES}
    for row in model.predict_labels(X, recall):
        assert all(above[label] <= set(row) for label in row)
    assert_agrees(model.oof_decision_function_)


def test_scorers_see_predictions_that_agree():
    seen = []

    def watch(estimator, X, y):
        seen.append(estimator.predict_proba(X))
        return -len(seen)

    classifier(scoring=watch, early_stopping=True, max_iter=5).fit(X, FRAME)
    for values in seen:
        assert_agrees(values)


# Targets -------------------------------------------------------------------------------------


def test_labels_above_present_ones_are_added_with_a_warning():
    frame = pd.DataFrame(BELOW, columns=NAMES)
    before = frame.copy()
    with pytest.warns(UserWarning, match=r"y lacks labels above present ones in \d+ rows, such as"):
        model = classifier().fit(X, frame)
    pd.testing.assert_frame_equal(frame, before)
    same = classifier().fit(X, FRAME)
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    assert model.score(X, frame) == same.score(X, FRAME)


def test_own_arrays_of_labels_stay_as_they_are():
    labels = BELOW.astype(np.uint8)
    before = labels.copy()
    with pytest.warns(UserWarning, match="such as 1 in row|such as 2 in row|such as 4 in row"):
        classifier(label_hierarchy=numbered()).fit(X, labels)
    np.testing.assert_array_equal(labels, before)


def test_missing_labels_above_present_ones_are_filled_in_silence():
    partial = FRAME.astype(float)
    partial.loc[partial["cat"] == 1, "animal"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = classifier().fit(X, partial)
    same = classifier().fit(X, FRAME)
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))


def hidden(value):
    """Labels of which some have the weight zero and a given value, and their weights."""
    weight, labels = np.random.default_rng(1).integers(0, 3, LABELS.shape), LABELS.copy()
    labels[weight == 0] = value
    return labels, weight.astype(float)


@pytest.mark.parametrize("loss", ["log_loss", "squared_error"])
def test_labels_of_weight_zero_are_missing(loss):
    partial = LABELS.astype(float)
    partial[hidden(0)[1] == 0] = np.nan
    expected = classifier(loss=loss, label_hierarchy=numbered()).fit(X, partial, hidden(0)[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (0, 1):
            model = classifier(loss=loss, label_hierarchy=numbered()).fit(X, *hidden(value))
            found = model.predict_proba(X)
            np.testing.assert_array_equal(found, expected.predict_proba(X))


def test_labels_above_those_of_weight_zero_are_added():
    # "pet" is unknown where there are cats, but they are animals.
    labels, weight = LABELS.copy(), np.ones(LABELS.shape)
    weight[LABELS[:, 0] == 1, 2] = 0
    without = LABELS.copy()
    without[LABELS[:, 0] == 1, 1:3] = 0
    pairs = [("cat", "pet"), ("pet", "animal")]
    expected = classifier(label_hierarchy=numbered(pairs)).fit(X, labels, weight)
    with pytest.warns(UserWarning, match="y lacks labels above present ones"):
        model = classifier(label_hierarchy=numbered(pairs)).fit(X, without, weight)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_validation_labels_of_weight_zero_are_missing():
    scores = []
    for value in (0, 1):
        labels, weight = hidden(value)
        validation = {"X_val": X, "Y_val": labels, "sample_weight_val": weight}
        model = classifier(label_hierarchy=numbered()).fit(X, LABELS, **validation)
        scores.append(model.validation_score_)
    np.testing.assert_array_equal(*scores)


def test_validation_labels_are_closed_too():
    frame = pd.DataFrame(BELOW, columns=NAMES)
    with pytest.warns(UserWarning, match="Y_val lacks labels"):
        model = classifier().fit(X, FRAME, X_val=X, Y_val=frame)
    same = classifier().fit(X, FRAME, X_val=X, Y_val=FRAME)
    np.testing.assert_array_equal(model.validation_score_, same.validation_score_)


def test_sets_of_labels_have_a_hierarchy():
    sets = [{NAMES[j] for j in np.flatnonzero(row)} for row in LABELS]
    model = classifier().fit(X, sets)
    names = model.classes_.tolist()
    assert_agrees(model.predict_proba(X), numbered(names=names))
    for row in model.predict_labels(X):
        assert all(parent in row for child, parent in PAIRS if child in row)


# Around it -----------------------------------------------------------------------------------


def test_files_clones_and_pickles_keep_the_hierarchy(tmp_path):
    model = classifier(label_hierarchy=dict(PAIRS[:3])).fit(X, FRAME)
    assert clone(model).label_hierarchy == dict(PAIRS[:3])
    model.save(tmp_path / "model.mb")
    loaded = manyboost.load(tmp_path / "model.mb")
    assert loaded.label_hierarchy == model.label_hierarchy
    assert loaded.info()["format_version"] == 4
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    plain = model.set_params(label_hierarchy=None).fit(X, FRAME)
    assert plain._hierarchy is None


@pytest.mark.parametrize("nothing", [{}, [], {"cat": None, "dog": []}])
def test_a_hierarchy_without_pairs_changes_nothing(nothing, tmp_path):
    model = classifier(label_hierarchy=nothing).fit(X, FRAME)
    same = classifier(label_hierarchy=None).fit(X, FRAME)
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    model.save(tmp_path / "model.mb")
    loaded = manyboost.load(tmp_path / "model.mb")
    np.testing.assert_array_equal(loaded.predict_proba(X), same.predict_proba(X))


def test_a_warm_start_goes_on_with_the_hierarchy():
    model = classifier(warm_start=True, max_iter=5).fit(X, FRAME)
    model.set_params(max_iter=25).fit(X, FRAME)
    np.testing.assert_array_equal(
        model.predict_proba(X), classifier().fit(X, FRAME).predict_proba(X)
    )


def test_ranks_agree_with_the_hierarchy():
    from manyboost.comm import Threads
    from manyboost.distributed import fit_rank

    pairs = numbered()

    def fit(comm):
        mine = np.arange(300) % 2 == comm.rank
        numbers = np.flatnonzero(mine).astype(np.uint64)
        model = classifier(label_hierarchy=pairs)
        return fit_rank(model, comm, X[mine], LABELS[mine], row_numbers=numbers)

    same = classifier(label_hierarchy=pairs).fit(X, LABELS)
    for model in Threads.run(2, fit):
        np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))


def test_models_with_a_hierarchy_are_not_exported():
    model = classifier().fit(X, FRAME)
    pytest.importorskip("onnx")
    assert "no export holds that" in refusal(model.to_onnx)
    pytest.importorskip("treelite")
    assert "no export holds that" in refusal(model.to_treelite)
    assert model.to_treelite(raw=True) is not None


def test_the_command_line_takes_pairs():
    assert parse("label_hierarchy", "cat=pet, cat=animal") == [("cat", "pet"), ("cat", "animal")]
    assert parse("label_hierarchy", "none") is None


def test_a_prediction_without_trees_agrees():
    model = classifier(max_iter=1).fit(X, FRAME).first_rounds(0)
    proba = model.predict_proba(X)
    assert_agrees(proba)
    np.testing.assert_allclose(proba[0], HIERARCHY.consistent(expit(model.baseline_)[None])[0])


def test_scorers_rank_labels_after_those_above_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    low = (X[:, :3] + 0.5 * rng.normal(size=(300, 3)) > 1).astype(int)
    labels = np.column_stack([low.max(axis=1), low])
    scorer = TopKScorer("precision", 1)
    settings = {"max_iter": 6, "early_stopping": True, "scoring": [scorer, "loss"]}
    model = ManyBoostClassifier(label_hierarchy={1: 0, 2: 0, 3: 0}, random_state=0, **settings)
    model.fit(X[100:], labels[100:], X_val=X[:100], Y_val=labels[:100])
    recorded = model.validation_score_[-1]
    assert scorer(model, X[:100], labels[:100]) == pytest.approx(recorded)
