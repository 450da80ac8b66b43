"""Asking for less: some outputs, the best labels, single precision; and thresholds of labels."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeRegressor

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.training.thresholds import tune_thresholds
from refusals import refusal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = np.nan_to_num(X) @ RNG.normal(size=(4, 7)) + RNG.normal(size=(150, 7))
LABELS = (Y > 1).astype(int)
CLASSES = np.argmax(Y[:, :5], axis=1)
STRATEGIES = ["independent", "multioutput", "project", "relabel"]


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 8, "random_state": 0, **parameters})


def classifier(**parameters):
    return ManyBoostClassifier(**{"max_iter": 8, "random_state": 0, **parameters})


def test_arrays_taken_as_they_are_give_what_others_give():
    model = regressor().fit(X, Y)
    expected = model.predict(sparse.csr_matrix(X))
    read_only = X.copy()
    read_only.flags.writeable = False
    for same in (X, read_only, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist()):
        np.testing.assert_array_equal(model.predict(same), expected)
    single = X.astype(np.float32)
    np.testing.assert_array_equal(model.predict(single), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinite_values_are_predicted_as_large_ones(dtype):
    model = regressor().fit(X, Y)
    for value in (1e30, -1e30):
        large, infinite = X.astype(dtype), X.astype(dtype)
        large[140, 2], infinite[140, 2] = value, np.inf * value
        for given in (infinite, np.asfortranarray(infinite)):
            np.testing.assert_array_equal(model.predict(given), model.predict(large))


@pytest.fixture(params=[None, 40], ids=["whole", "blocks"])
def blocks(request, monkeypatch):
    """Once as usual, once with blocks of a few rows."""
    if request.param is not None:
        monkeypatch.setattr("manyboost.estimators.predicting.BLOCK_CELLS", request.param)


class Sigmoid(Loss):
    """Squared error of a sigmoid: its link is not a built-in one."""

    def value(self, y, raw):
        return (y - 1 / (1 + np.exp(-raw))) ** 2

    def gradient(self, y, raw):
        p = 1 / (1 + np.exp(-raw))
        return 2 * (p - y) * p * (1 - p)

    def inverse_link(self, raw):
        assert raw.shape[1] == 7, "a link may look at all outputs"
        return 1 / (1 + np.exp(-raw))


# Some outputs -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("chosen", [[3], [6, 0, 2], list(range(7))], ids=str)
def test_some_outputs_are_columns_of_all(strategy, chosen):
    for data in [X, sparse.csr_matrix(np.nan_to_num(X))]:
        model = regressor(strategy=strategy).fit(data, Y)
        assert np.array_equal(model.predict(data, outputs=chosen), model.predict(data)[:, chosen])
        labels = classifier(strategy=strategy).fit(data, LABELS)
        for method in ["predict", "predict_proba", "decision_function"]:
            call = getattr(labels, method)
            assert np.array_equal(call(data, outputs=chosen), call(data)[:, chosen])


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(
    "model",
    [
        regressor(loss="poisson"),
        regressor(loss="huber"),
        regressor(loss=Sigmoid()),
        regressor(estimator=Ridge(), strategy="project"),
        regressor(estimator=DecisionTreeRegressor(max_depth=2, random_state=0)),
    ],
    ids=["poisson", "huber", "custom", "Ridge", "tree"],
)
def test_some_outputs_of_other_losses_and_learners(model):
    data, chosen = np.nan_to_num(X), [5, 1]
    model.fit(data, LABELS.astype(float))
    assert np.array_equal(model.predict(data, outputs=chosen), model.predict(data)[:, chosen])


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_some_classes_have_the_probabilities_they_have_among_all(loss):
    model = classifier(loss=loss).fit(X, CLASSES)
    for method in [model.predict_proba, model.decision_function]:
        assert np.array_equal(method(X, outputs=[4, 1]), method(X)[:, [4, 1]])
    named = classifier(loss=loss).fit(X, np.array(list("abcde"))[CLASSES])
    assert np.array_equal(
        named.predict_proba(X, outputs=["e", "b"]), named.predict_proba(X)[:, [4, 1]]
    )
    assert "one of 5 classes is predicted, for which all are needed" in refusal(
        lambda: model.predict(X, outputs=[1])
    )


@pytest.mark.usefixtures("blocks")
def test_some_labels_with_thresholds_and_a_link_of_the_users():
    for loss in ["log_loss", Sigmoid()]:
        model = classifier(loss=loss, thresholds=np.linspace(0.2, 0.6, 7)).fit(X, LABELS)
        assert np.array_equal(model.predict(X, outputs=[6, 2]), model.predict(X)[:, [6, 2]])


def test_outputs_that_there_are_not():
    model = regressor().fit(X, Y)
    for outputs, sentence in [
        ([7], "outputs has the output 7; y has the outputs 0 to 6."),
        ([-1], "outputs has the output -1; y has the outputs 0 to 6."),
        ([True], "outputs has True in place of an output; give its number or its name."),
        ([1.0], "outputs has 1.0 in place of an output; give its number or its name."),
        ([1, 2, 1], "outputs asks for 1 twice; ask for it once."),
        ([], "outputs is empty; ask for at least one, or leave it out for all."),
        (3, "outputs=3 is not a list; pass a list of the names or numbers of outputs."),
        ("a", "outputs='a' is not a list; pass a list of the names or numbers of outputs."),
        (
            ["a"],
            (
                "outputs names the output 'a', but y has no output names; give its number from 0 "
                "to 6, or fit on a data frame."
            ),
        ),
    ]:
        assert refusal(lambda outputs=outputs: model.predict(X, outputs=outputs)) == sentence
    sets = [{"price", "rent"} if i % 2 else {"tax"} for i in range(len(X))]
    named = classifier().fit(X, sets)
    assert refusal(lambda: named.predict(X, outputs=["prise"])) == (
        "outputs names the output 'prise', which y does not have; did you mean 'price'?"
    )
    assert refusal(lambda: named.predict(X, outputs=["zz"])) == (
        "outputs names the output 'zz', which y does not have; available: 'price', 'rent', 'tax'."
    )
    for single in [regressor().fit(X, Y[:, 0]), classifier().fit(X, LABELS[:, 0])]:
        assert refusal(lambda single=single: single.predict(X, outputs=[0])) == (
            "outputs=[0] was given, but the model has one output; leave outputs out."
        )
    with pytest.raises(NotFittedError):
        regressor().predict(X, outputs=[0])


# Single precision -------------------------------------------------------------------------------


@pytest.mark.usefixtures("blocks")
def test_single_precision_is_double_precision_rounded():
    for model, y in [(regressor(), Y), (regressor(), Y[:, 0]), (regressor(loss="poisson"), Y**2)]:
        model.fit(X, y)
        single = model.predict(X, dtype=np.float32)
        assert single.dtype == np.float32
        assert np.array_equal(single, model.predict(X).astype(np.float32))
    for y in [LABELS, CLASSES, LABELS[:, 0]]:
        model = classifier().fit(X, y)
        for method in [model.predict_proba, model.decision_function]:
            single = method(X, dtype="float32")
            assert single.dtype == np.float32
            assert np.array_equal(single, method(X).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float16, int, "double precision", "U3"])
def test_other_types_are_refused(dtype):
    model = regressor().fit(X, Y)
    sentence = refusal(lambda: model.predict(X, dtype=dtype))
    assert sentence == f"dtype={dtype!r} is not allowed; it must be float32 or float64."


MEMORY = """
import re
from pathlib import Path
import numpy as np
from manyboost import ManyBoostClassifier

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(50, 3)), rng.random((50, 1500)) < 0.3
model = ManyBoostClassifier(max_iter=2, random_state=0, n_jobs=1).fit(X, Y)
rows = np.zeros((20_000, 3), np.float32)
model.decision_function(rows[:10])
for call in [
    lambda: model.predict_top_k(rows, 3),
    lambda: model.decision_function(rows, dtype=np.float32),
    lambda: model.decision_function(rows),
]:
    before = peak()
    result = call()
    print(peak() - before)
    del result
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to see the peak")
def test_who_asks_for_less_needs_less_memory():
    run = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    best, single, double = map(int, run.stdout.split())
    cells = 20_000 * 1500
    # Besides the results, a block of doubles and what Python needs.
    assert best < 0.5 * cells
    assert single < 4 * cells + 1.0 * cells
    # Added to the peak of the call before.
    assert single + double > 7 * cells


# The best labels --------------------------------------------------------------------------------


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_best_labels_are_the_first_of_all_sorted(strategy, k):
    for data in [X, sparse.csr_matrix(np.nan_to_num(X))]:
        # Two labels that are the same have the same scores.
        y = LABELS.copy()
        y[:, 5] = y[:, 2]
        model = classifier(strategy=strategy, projection="identity" if k == 7 else "gaussian")
        if strategy == "project":
            model.set_params(projection="gaussian")
        model.fit(data, y)
        full = model.decision_function(data)
        order = np.argsort(-full, axis=1, kind="stable")[:, :k]
        labels, scores = model.predict_top_k(data, k)
        assert np.array_equal(labels, order)
        assert np.array_equal(scores, np.take_along_axis(full, order, axis=1))


@pytest.mark.usefixtures("blocks")
def test_the_best_classes_are_named_and_foreign_learners_have_them_too():
    names = np.array(["ant", "bee", "cat", "dog", "elk"])
    data = np.nan_to_num(X)
    for model in [classifier(), classifier(estimator=Ridge(), strategy="project")]:
        model.fit(data, names[CLASSES])
        labels, scores = model.predict_top_k(data, 2)
        full = model.decision_function(data)
        order = np.argsort(-full, axis=1, kind="stable")[:, :2]
        assert np.array_equal(labels, names[order])
        assert np.array_equal(scores, np.take_along_axis(full, order, axis=1))
        assert np.array_equal(labels[:, 0], model.predict(data))


def test_ties_go_to_the_first_label():
    y = np.repeat(LABELS[:, :1], 6, axis=1)
    labels, scores = classifier(strategy="multioutput").fit(X, y).predict_top_k(X, 4)
    assert np.array_equal(labels, np.tile(np.arange(4), (len(X), 1)))
    assert (scores == scores[:, :1]).all()


def test_the_best_labels_do_not_depend_on_threads():
    data = np.tile(X, (40, 1))
    y = np.tile(LABELS, 20)
    labels, scores = classifier(n_jobs=1).fit(X, y).predict_top_k(data, 5)
    again, scores_again = classifier(n_jobs=2).fit(X, y).predict_top_k(data, 5)
    assert np.array_equal(labels, again)
    assert np.array_equal(scores, scores_again)


def test_the_number_of_best_labels_has_limits():
    model = classifier().fit(X, LABELS)
    for k in [0, 8, -1, 1.0, True, "3", None]:
        assert refusal(lambda k=k: model.predict_top_k(X, k)) == (
            f"k={k!r} is not allowed; it must be an integer from 1 to 7, the number of labels or "
            "classes."
        )
    two = classifier().fit(X, LABELS[:, 0])
    assert refusal(lambda: two.predict_top_k(X, 3)) == (
        "k=3 is not allowed; it must be an integer from 1 to 2, the number of labels or classes."
    )
    with pytest.raises(NotFittedError):
        classifier().predict_top_k(X, 1)


# Thresholds -------------------------------------------------------------------------------------


def slow_thresholds(proba, present, weight):
    """The same by trying every candidate."""
    best = []
    for p, y in zip(proba.T, present.T.astype(bool), strict=True):
        values = np.unique(np.append(p, 0.0))
        candidates = [0.5, *((values[1:] + values[:-1]) / 2)]

        def f1(t, p=p, y=y):
            taken = p > t
            hits = weight[taken & y].sum()
            total = weight[taken].sum() + weight[y].sum()
            return 2 * hits / total if total > 0 else 0.0

        best.append(min(candidates, key=lambda t: (-round(f1(t), 12), abs(t - 0.5))))
    return np.array(best)


@pytest.mark.parametrize("weighted", [False, True])
def test_tuned_thresholds_are_those_found_by_trying_all(weighted):
    rng = np.random.default_rng(1)
    for n in [1, 2, 30]:
        proba = np.round(rng.random((n, 40)), 2) ** 2
        present = rng.random((n, 40)) < proba * (np.arange(40) > 3)
        present[:, 39] = True
        weight = rng.integers(1, 5, n).astype(np.float32) if weighted else np.ones(n, np.float32)
        found = tune_thresholds(proba, present, weight if weighted else None)
        assert np.allclose(found, slow_thresholds(proba, present, weight), rtol=0, atol=1e-15)
        # Labels that no row has stay where they are.
        assert (found[:4] == 0.5).all()


def test_a_threshold_separates_neighbouring_numbers():
    low = 0.3
    high = np.nextafter(low, 1)
    proba = np.array([[high], [low]])
    threshold = tune_thresholds(proba, np.array([[1], [0]]), None)
    assert ((proba > threshold)[:, 0] == [True, False]).all()


def rare_labels(n_rows, seed):
    """Labels that few rows have."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(n_rows, 5))
    scores = data @ np.random.default_rng(7).normal(size=(5, 8)) + rng.normal(size=(n_rows, 8))
    return data, (scores > 4.5).astype(int)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_tuned_thresholds_raise_the_macro_f1_of_rare_labels(early_stopping):
    (train, y), (test, y_test) = rare_labels(3000, 0), rare_labels(3000, 1)
    assert y.mean() < 0.06

    def macro_f1(thresholds):
        model = ManyBoostClassifier(
            max_iter=60,
            thresholds=thresholds,
            early_stopping=early_stopping,
            validation_fraction=0.3,
            random_state=0,
        )
        model.fit(train, y)
        return f1_score(y_test, model.predict(test), average="macro", zero_division=0)

    assert macro_f1("tuned") > macro_f1(None) + 0.05


def test_thresholds_decide_what_is_predicted():
    given = np.linspace(0, 1, 7)
    for thresholds in [0.3, given, given.tolist()]:
        model = classifier(thresholds=thresholds).fit(X, LABELS)
        assert np.array_equal(model.thresholds_, np.broadcast_to(thresholds, 7))
        expected = (model.predict_proba(X) > model.thresholds_).astype(int)
        assert np.array_equal(model.predict(X), expected)
        *_, last = model.staged_predict(X)
        assert np.array_equal(last, expected)
    two = classifier(thresholds=0.2).fit(X, np.array(["no", "yes"])[LABELS[:, 0]])
    assert np.array_equal(two.predict(X) == "yes", two.predict_proba(X)[:, 1] > 0.2)
    assert not hasattr(model.set_params(thresholds=None).fit(X, LABELS), "thresholds_")


def test_thresholds_are_tuned_on_the_validation_rows():
    weight = RNG.integers(1, 4, 150).astype(float)
    for early_stopping in [False, "auto"]:
        model = classifier(thresholds="tuned", early_stopping=early_stopping)
        model.fit(X[:100], LABELS[:100], X_val=X[100:], Y_val=LABELS[100:])
        expected = tune_thresholds(model.predict_proba(X[100:]), LABELS[100:], None)
        assert np.array_equal(model.thresholds_, expected)
        # Without early stopping all rounds are kept.
        assert early_stopping or model.n_iter_ == 8
        assert hasattr(model, "validation_score_") == bool(early_stopping)
    model.fit(
        X[:100], LABELS[:100], X_val=X[100:], Y_val=LABELS[100:], sample_weight_val=weight[100:]
    )
    expected = tune_thresholds(model.predict_proba(X[100:]), LABELS[100:], weight[100:])
    assert np.array_equal(model.thresholds_, expected)
    apart = classifier(thresholds="tuned", validation_fraction=0.5).fit(X, LABELS)
    stopped = classifier(early_stopping=True, n_iter_no_change=99, validation_fraction=0.5)
    stopped.fit(X, LABELS)
    # The rows that early stopping sets apart, and as many rounds.
    assert np.array_equal(apart.baseline_, stopped.baseline_)
    foreign = classifier(thresholds="tuned", estimator=Ridge(), strategy="project")
    data = np.nan_to_num(X)
    foreign.fit(data[:100], LABELS[:100], X_val=data[100:], Y_val=LABELS[100:])
    expected = tune_thresholds(foreign.predict_proba(data[100:]), LABELS[100:], None)
    assert np.array_equal(foreign.thresholds_, expected)


def test_thresholds_tuned_in_blocks_of_labels_are_those_of_all(monkeypatch):
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(200, 3))
    labels = (rows[:, [0, 1, 2, 0, 1]] + rng.normal(size=(200, 5)) > 1).astype(float)
    labels[rng.random(labels.shape) < 0.1] = np.nan
    offset = rng.normal(size=labels.shape)
    model = ManyBoostClassifier(
        thresholds="tuned", class_weight="balanced", max_iter=10, random_state=0
    )
    expected = model.fit(rows, labels, offset=offset).thresholds_
    assert len(set(expected.tolist())) == 5
    monkeypatch.setattr("manyboost.estimators.classifier.BLOCK_CELLS", 41)
    assert np.array_equal(model.fit(rows, labels, offset=offset).thresholds_, expected)


def test_thresholds_that_do_not_fit():
    assert refusal(lambda: classifier(thresholds=[0.1, 0.2]).fit(X, LABELS)) == (
        "thresholds holds 2 numbers, but there are 7 labels; give one number for each label, or "
        "one for all."
    )
    for thresholds in [0.5, "tuned", [0.1] * 5]:
        for loss in ["log_loss", "exponential"]:
            model = classifier(loss=loss, thresholds=thresholds)
            sentence = refusal(lambda model=model: model.fit(X, CLASSES))
            assert sentence.startswith(f"thresholds={thresholds!r} was given, but of the 5 classes")
            assert sentence.endswith("use thresholds=None.")
    model = classifier(warm_start=True).fit(X, LABELS).set_params(thresholds="tuned", max_iter=9)
    sentence = refusal(lambda: model.fit(X, LABELS))
    assert sentence.startswith("thresholds='tuned' needs rows that were set apart for it from the")
    model = classifier(warm_start=True, thresholds="tuned").fit(X, LABELS).set_params(max_iter=9)
    expected = classifier(thresholds="tuned", max_iter=9).fit(X, LABELS)
    assert np.array_equal(model.fit(X, LABELS).thresholds_, expected.thresholds_)
