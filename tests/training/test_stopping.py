"""Scorers that decide on early stopping, and outputs that are stopped one by one."""

import pickle

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer, log_loss, make_scorer, mean_absolute_error, r2_score
from sklearn.tree import DecisionTreeRegressor

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.training.scoring import RunningRegressor
from refusals import refusal
from small_problems import stepped_labels as labels
from small_problems import stepped_numbers as numbers

STRATEGIES = ["independent", "multioutput", "project", "relabel"]


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 15, "random_state": 0, **parameters})


def classifier(**parameters):
    return ManyBoostClassifier(**{"max_iter": 15, "random_state": 0, **parameters})


def validation(make=numbers, n=80, seed=1, **options):
    return dict(zip(["X_val", "Y_val"], make(n=n, seed=seed, **options), strict=True))


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


# Scorers ----------------------------------------------------------------------------------------


def staged_models(model, X, Y, **fit):
    """The fitted estimator after each of its rounds, the baseline left out."""
    for m in range(1, model.n_iter_ + 1):
        plain = type(model)(**model.get_params()).set_params(
            max_iter=m, early_stopping=False, scoring="loss"
        )
        yield plain.fit(X, Y, **fit)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error", "neg_max_error"])
def test_a_scorer_sees_the_model_of_the_round(strategy, scoring):
    d = 1 if scoring == "neg_max_error" else 3
    X, Y = numbers(d=d)
    Y = Y[:, 0] if d == 1 else Y
    val = validation(d=d)
    if d == 1:
        val["Y_val"] = val["Y_val"][:, 0]
    model = regressor(strategy=strategy, scoring=scoring, max_iter=5).fit(X, Y, **val)
    expected = [
        get_scorer(scoring)(stage, val["X_val"], val["Y_val"])
        for stage in staged_models(model, X, Y)
    ]
    assert model.validation_score_[1:] == pytest.approx(expected, rel=1e-5)


CLASSIFIERS = {
    "labels": labels(),
    "two classes": (labels()[0], np.array(["no", "yes"])[labels()[1][:, 0]]),
    "classes": (labels()[0], np.array(["a", "b", "c"])[numbers()[1].argmax(axis=1)]),
}


def names_are_averaged():
    """Whether scikit-learn's own classifiers have an average precision of classes with names."""
    X, y = CLASSIFIERS["classes"]
    try:
        get_scorer("average_precision")(DummyClassifier().fit(X, y), X, y)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("task", CLASSIFIERS)
@pytest.mark.parametrize(
    "scoring", ["accuracy", "roc_auc_ovr", "neg_log_loss", "average_precision"]
)
@pytest.mark.parametrize("loss", ["log_loss", "squared_error"])
def test_a_scorer_sees_labels_and_probabilities(task, scoring, loss):
    X, y = CLASSIFIERS[task]
    if (scoring, task) in [("neg_log_loss", "labels"), ("average_precision", "two classes")]:
        pytest.skip("scikit-learn has no such score")
    if (scoring, task) == ("average_precision", "classes") and not names_are_averaged():
        pytest.skip("this release of scikit-learn has the score for numbers alone")
    val = {"X_val": X[:120], "Y_val": y[:120]}
    model = classifier(scoring=scoring, loss=loss, max_iter=4, n_iter_no_change=4)
    model.fit(X, y, **val)
    expected = [get_scorer(scoring)(stage, *val.values()) for stage in staged_models(model, X, y)]
    assert model.validation_score_[1:] == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_the_scorer_decides():
    X, Y = labels(n=300)
    val = validation(labels)
    same = {"max_iter": 200, "learning_rate": 0.3, "n_iter_no_change": 5}
    by_loss = classifier(**same).fit(X, Y, **val)
    by_accuracy = classifier(scoring="accuracy", **same).fit(X, Y, **val)
    assert by_accuracy.n_iter_ != by_loss.n_iter_
    for model in (by_loss, by_accuracy):
        assert model.n_iter_ == model.best_iter_ == model.validation_score_.argmax() > 0
    assert by_accuracy.score(*val.values()) == by_accuracy.validation_score_[-1]


def test_of_a_list_all_are_recorded_and_the_first_decides():
    X, Y = numbers()
    val = validation()

    def spread(estimator, X, y):
        return -np.abs(estimator.predict(X) - y).max()

    names = ["r2", "loss", spread, make_scorer(mean_absolute_error, greater_is_better=False)]
    listed = regressor(scoring=names).fit(X, Y, **val)
    alone = regressor(scoring="r2").fit(X, Y, **val)
    plain = regressor().fit(X, Y, **val)
    assert list(listed.validation_scores_) == ["r2", "loss", "spread", "mean_absolute_error"]
    assert np.array_equal(listed.validation_score_, alone.validation_score_)
    assert np.array_equal(listed.validation_scores_["r2"], alone.validation_score_)
    shared = min(listed.n_iter_, plain.n_iter_) + 1
    loss = listed.validation_scores_["loss"]
    assert np.array_equal(loss[:shared], plain.validation_score_[:shared])
    assert listed.validation_scores_["spread"][-1] == pytest.approx(
        spread(listed, *val.values()), rel=1e-5
    )
    assert not hasattr(alone, "validation_scores_")
    assert {len(curve) for curve in listed.validation_scores_.values()} == {listed.n_iter_ + 1}


def test_scorers_of_one_name_are_told_apart():
    X, Y = numbers()
    model = regressor(scoring=["r2", lambda *_: 1.0, lambda *_: 2.0]).fit(X, Y, **validation())
    assert list(model.validation_scores_) == ["r2", "<lambda>", "<lambda>_"]
    assert model.validation_scores_["<lambda>_"][-1] == 2.0


def test_rows_set_apart_are_scored_as_given():
    X, Y = labels(n=300)
    y = np.array(["no", "yes"])[Y[:, 0]]
    seen = []

    def look(estimator, X, y):
        seen.append((X, y, estimator.classes_, estimator.predict(X)))
        return 0.0

    classifier(scoring=look, early_stopping=True, max_iter=1).fit(X, y)
    X_val, y_val, classes, predicted = seen[0]
    assert X_val.shape == (30, 5)
    assert set(y_val) == set(classes) == {"no", "yes"}
    assert set(predicted) <= {"no", "yes"}
    place = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in X_val]
    assert np.array_equal(y_val, y[place])


def test_weights_of_validation_rows_reach_the_scorer():
    X, Y = numbers()
    val = validation()
    weight = np.random.default_rng(2).uniform(0.1, 2, 80)
    model = regressor(scoring="r2", max_iter=3).fit(X, Y, **val, sample_weight_val=weight)
    expected = r2_score(val["Y_val"], model.predict(val["X_val"]), sample_weight=weight)
    assert model.validation_score_[-1] == pytest.approx(expected, rel=1e-5)
    assert model.validation_score_[-1] != pytest.approx(model.score(*val.values()))
    with pytest.raises(ValueError, match="the scorer count takes no sample_weight"):
        regressor(scoring=count).fit(X, Y, **val, sample_weight_val=weight)


def count(estimator, X, y):
    return len(y)


def test_a_model_in_training_predicts_its_rows_alone():
    def curious(estimator, X, y):
        assert isinstance(estimator, RunningRegressor)
        assert not hasattr(estimator, "predict_proba")
        assert not hasattr(estimator, "fit")
        assert estimator.n_features_in_ == 5
        return estimator.predict(X[:3]).sum()

    with pytest.raises(ValueError, match="predicts the validation rows alone"):
        regressor(scoring=curious).fit(*numbers(), **validation())


@pytest.mark.parametrize("bad", [None, "high", float("nan"), [1.0, 2.0]], ids=str)
def test_a_score_must_be_a_number(bad):
    with pytest.raises(ValueError, match=r"The scorer <lambda> returned .* must return a number"):
        regressor(scoring=lambda *_: bad).fit(*numbers(), **validation())


def test_a_scorer_without_early_stopping_is_refused():
    for parameters in ({"early_stopping": False},):
        with pytest.raises(ValueError, match="scoring='r2' is what early stopping looks at"):
            regressor(scoring="r2", **parameters).fit(*numbers())


@pytest.mark.parametrize("scoring", ["r2", ["loss", "r2"]])
def test_scores_are_gone_on_with(scoring):
    X, Y = numbers()
    val = validation()
    at_once = regressor(scoring=scoring, max_iter=8).fit(X, Y, **val)
    twice = regressor(scoring=scoring, max_iter=4, warm_start=True).fit(X, Y, **val)
    twice.set_params(max_iter=8).fit(X, Y, **val)
    assert model_bytes(twice) == model_bytes(at_once)
    assert np.array_equal(twice.validation_score_, at_once.validation_score_)
    with pytest.raises(ValueError, match="scoring"):
        twice.set_params(max_iter=9, scoring="neg_mean_absolute_error").fit(X, Y, **val)


# Curves of each output --------------------------------------------------------------------------


def cell_losses(loss, Y, raw):
    """Loss of every cell, in plain NumPy."""
    u, sign = Y - raw, 2 * Y - 1
    return {
        "squared_error": 0.5 * u**2,
        "absolute_error": np.abs(u),
        "quantile": np.maximum(0.3 * u, -0.7 * u),
        "poisson": np.exp(np.minimum(raw, 50)) - Y * raw,
        "log_loss": np.logaddexp(0, -sign * raw),
        "exponential": np.exp(-sign * raw / 2),
    }[loss]


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(
    "loss",
    ["squared_error", "absolute_error", "quantile", "poisson", "log_loss", "exponential"],
)
def test_every_output_has_its_own_curve(loss, weighted):
    is_labels = loss in ("log_loss", "exponential")
    X, Y = labels() if is_labels or loss == "poisson" else numbers()
    val = validation(labels if is_labels or loss == "poisson" else numbers)
    weight = np.random.default_rng(5).uniform(0.1, 3, 80) if weighted else None
    make = classifier if is_labels else regressor
    options = {"quantile": 0.3} if loss == "quantile" else {}
    model = make(loss=loss, max_iter=6, **options)
    model.fit(X, Y, **val, sample_weight_val=weight)
    curves = model.validation_score_per_output_
    assert curves.shape == (model.n_iter_ + 1, 3)
    for m, raw in enumerate(model._staged_raw_predict(val["X_val"]), start=1):
        cells = cell_losses(loss, val["Y_val"], raw)
        assert curves[m] == pytest.approx(-np.average(cells, axis=0, weights=weight), rel=2e-5)
    assert model.validation_score_ == pytest.approx(curves.mean(axis=1), rel=1e-12)


def test_classes_share_their_loss():
    X, y = CLASSIFIERS["classes"]
    model = classifier().fit(X, y, X_val=X, Y_val=y)
    assert not hasattr(model, "validation_score_per_output_")
    probabilities = model.predict_proba(X)
    assert model.validation_score_[-1] == pytest.approx(-log_loss(y, probabilities), rel=1e-5)


def test_curves_do_not_depend_on_threads_or_on_the_order_of_rows():
    X, Y = numbers(n=3000, d=20, p=25)
    X_val, Y_val = numbers(n=4000, d=20, p=25, seed=1)
    order = np.random.default_rng(0).permutation(4000)
    curves = []
    for n_jobs, rows in [(1, slice(None)), (2, slice(None)), (3, order)]:
        model = regressor(loss="huber", n_jobs=n_jobs, max_iter=3)
        model.fit(X, Y, X_val=X_val[rows], Y_val=Y_val[rows])
        curves.append((model.validation_score_per_output_, model.validation_score_))
    for other in curves[1:]:
        assert np.array_equal(curves[0][0], other[0])
        assert np.array_equal(curves[0][1], other[1])


# Outputs stopped one by one ---------------------------------------------------------------------


def uneven(n=300, seed=0):
    """Outputs that are learnt at very different speed, and one that is noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    easy = (X[:, 0] > 0).astype(float)
    hard = X[:, 1] * X[:, 2] + np.sin(3 * X[:, 0])
    return X, np.column_stack([easy, hard, rng.normal(size=n), hard + rng.normal(size=n)])


def stopped(**parameters):
    defaults = {"max_iter": 300, "early_stopping": "per_output", "n_iter_no_change": 8,
                "learning_rate": 0.3, "max_leaf_nodes": 8}  # fmt: skip
    return regressor(**{**defaults, **parameters})


@pytest.mark.parametrize("step", ["newton", "line_search"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_output_keeps_the_rounds_up_to_its_own_best(strategy, step):
    X, Y = uneven()
    val = validation(uneven, n=200)
    model = stopped(strategy=strategy, step=step, subsample=0.8).fit(X, Y, **val)
    best = model.best_iter_per_output_
    assert len(set(best.tolist())) > 2
    assert model.n_iter_ == model.best_iter_ == best.max() < 300
    curves = model.validation_score_per_output_
    assert curves.shape == (model.n_iter_ + 1, 4)
    assert np.array_equal(curves.argmax(axis=0), best)
    # What is predicted is what was seen at the best round of each output.
    predicted = model.predict(val["X_val"])
    stages = [np.tile(model.baseline_, (200, 1)), *model.staged_predict(val["X_val"])]
    for j, m in enumerate(best):
        assert predicted[:, j] == pytest.approx(stages[m][:, j], rel=1e-6, abs=1e-6)
        assert all(np.array_equal(later[:, j], predicted[:, j]) for later in stages[m:])
        seen = -np.mean((val["Y_val"][:, j] - predicted[:, j]) ** 2) / 2
        assert curves[m, j] == pytest.approx(seen, rel=1e-5)
    # Scores are those of the model that is left.
    assert model.validation_score_[-1] == pytest.approx(curves[-1].mean(), rel=1e-12)
    train_loss = np.mean((Y - model.predict(X)) ** 2) / 2
    assert model.train_score_[-1] == pytest.approx(-train_loss, rel=1e-5)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    if step == "line_search" or strategy == "project":
        rounds = np.arange(model.n_iter_)[:, None]
        assert not model.step_sizes_[rounds >= best].any()
        assert model.step_sizes_[rounds < best].all()


@pytest.mark.parametrize("loss", ["squared_error", "huber", "absolute_error"])
def test_independent_outputs_are_stopped_as_if_they_were_alone(loss):
    X, Y = uneven()
    val = validation(uneven, n=200)
    together = stopped(strategy="independent", loss=loss).fit(X, Y, **val)
    for j in range(4):
        alone = stopped(strategy="independent", loss=loss, early_stopping=True)
        alone.fit(X, Y[:, j], X_val=val["X_val"], Y_val=val["Y_val"][:, j])
        assert alone.n_iter_ == together.best_iter_per_output_[j]
        assert np.array_equal(together.predict(X)[:, j], alone.predict(X))
        # Gains are added up in another order.
        assert together.output_importances_[j] == pytest.approx(
            alone.output_importances_[0], rel=1e-12
        )
        assert np.array_equal(
            together.validation_score_per_output_[: alone.n_iter_ + 1, j], alone.validation_score_
        )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_until_the_first_is_frozen_rounds_are_those_of_any_fit(strategy):
    X, Y = uneven()
    val = validation(uneven, n=200)
    model = stopped(strategy=strategy, subsample=0.8).fit(X, Y, **val)
    # The first output can be frozen only after its best and the patience.
    shared = int(model.best_iter_per_output_.min()) + 8
    plain = regressor(strategy=strategy, max_iter=shared, learning_rate=0.3, max_leaf_nodes=8)
    plain.set_params(subsample=0.8).fit(X, Y)
    stages = [np.tile(plain.baseline_, (300, 1)), *plain.staged_predict(X)]
    for m, stage in enumerate(model.staged_predict(X), start=1):
        if m <= shared:
            kept = np.minimum(m, model.best_iter_per_output_)
            for j, rounds in enumerate(kept):
                assert np.array_equal(stage[:, j], stages[rounds][:, j])


@pytest.mark.parametrize("strategy", ["multioutput", "project", "relabel"])
def test_frozen_outputs_take_no_part_in_growing_trees(strategy):
    X, Y = uneven()
    val = validation(uneven, n=200)

    def projection(n_components, n_outputs, rng):
        return np.ones((n_components, n_outputs))

    options = {} if strategy == "multioutput" else {"projection": projection}
    model = stopped(strategy=strategy, output_scaling=None, **options)
    # The noise explodes: a tree that saw it would look at nothing else.
    target = Y.copy()
    target[:, 2] *= 1e6
    model.fit(X, target, X_val=val["X_val"], Y_val=val["Y_val"])
    assert model.best_iter_per_output_[2] == 0
    gains = [model._progress.model.trees.tree(t)[5].max() for t in range(model.n_iter_)]
    assert min(gains[:8]) > 1e9
    assert max(gains[8:]) < 1e5


@pytest.mark.parametrize(
    "projection", ["gaussian", "sparse", "subsample", "identity", "achlioptas"]
)
def test_projections_leave_frozen_outputs_out(projection):
    X, Y = uneven()
    val = validation(uneven, n=200)
    components = {} if projection == "identity" else {"n_components": 3}
    model = stopped(projection=projection, **components).fit(X, Y, **val)
    assert model.n_iter_ < 300
    assert model.validation_score_[-1] >= model.validation_score_[0]
    again = stopped(projection=projection, n_jobs=1, **components).fit(X, Y, **val)
    assert model_bytes(model) == model_bytes(again)


@pytest.mark.parametrize(
    ("strategy", "estimator"),
    [
        ("independent", Ridge(alpha=30.0)),
        ("multioutput", Ridge(alpha=30.0)),
        ("multioutput", DecisionTreeRegressor(max_depth=3)),
        ("project", Ridge(alpha=30.0)),
        ("relabel", DecisionTreeRegressor(max_depth=3)),
    ],
    ids=str,
)
def test_foreign_weak_learners_are_stopped_per_output_too(strategy, estimator):
    X, Y = uneven()
    val = validation(uneven, n=200)
    model = stopped(strategy=strategy, estimator=estimator, max_iter=60).fit(X, Y, **val)
    predicted = model.predict(val["X_val"])
    for j, m in enumerate(model.best_iter_per_output_):
        seen = -np.mean((val["Y_val"][:, j] - predicted[:, j]) ** 2) / 2
        assert model.validation_score_per_output_[m, j] == pytest.approx(seen, rel=1e-4)


def test_labels_are_stopped_one_by_one():
    X, Y = uneven()
    Y = (Y.mean(axis=0) < Y).astype(int)
    X_val, Y_val = uneven(n=200, seed=1)
    Y_val = (Y_val > Y_val.mean(axis=0)).astype(int)
    options = {"max_iter": 300, "n_iter_no_change": 8, "learning_rate": 0.3}
    model = classifier(early_stopping="per_output", **options).fit(X, Y, X_val=X_val, Y_val=Y_val)
    plain = classifier(**options).fit(X, Y, X_val=X_val, Y_val=Y_val)
    assert len(set(model.best_iter_per_output_.tolist())) > 1
    assert model.validation_score_[-1] > plain.validation_score_[-1]


def test_rows_are_set_apart_for_stopping_per_output():
    model = stopped(max_iter=50).fit(*uneven())
    assert model.best_iter_per_output_.shape == (4,)
    assert np.array_equal(model.validation_score_per_output_.argmax(axis=0),
                          model.best_iter_per_output_)  # fmt: skip


def test_a_model_stopped_per_output_may_end_at_its_baseline():
    X, Y = uneven()
    model = stopped().fit(X, Y, X_val=X, Y_val=-10 * Y)
    assert model.n_iter_ == 0
    assert model.best_iter_per_output_.tolist() == [0, 0, 0, 0]
    assert np.array_equal(model.predict(X), np.tile(model.baseline_, (300, 1)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_outputs_stay_frozen_in_a_warm_start(strategy):
    X, Y = uneven()
    val = validation(uneven, n=200)
    model = stopped(strategy=strategy, max_iter=30, warm_start=True).fit(X, Y, **val)
    first, n_iter = model.best_iter_per_output_, model.n_iter_
    before = model.predict(X)
    score = model.validation_score_[-1]
    model.set_params(max_iter=300).fit(X, Y, **val)
    frozen = n_iter - first >= 8
    assert frozen.any()
    assert np.array_equal(model.best_iter_per_output_[frozen], first[frozen])
    assert np.array_equal(model.predict(X)[:, frozen], before[:, frozen])
    assert model.validation_score_[-1] >= score
    with pytest.raises(ValueError, match="stopping per output"):
        model.set_params(max_iter=400, early_stopping=True).fit(X, Y, **val)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_threads_do_not_change_what_is_frozen(strategy):
    X, Y = uneven(n=2000)
    val = validation(uneven, n=1000)
    models = [
        stopped(strategy=strategy, n_jobs=n_jobs, max_iter=60).fit(X, Y, **val)
        for n_jobs in (1, 2, 3)
    ]
    assert len({model_bytes(model) for model in models}) == 1
    assert len({model.validation_score_per_output_.tobytes() for model in models}) == 1
    assert len({model.output_importances_.tobytes() for model in models}) == 1


def test_importances_are_those_of_the_rounds_kept():
    X, Y = uneven()
    val = validation(uneven, n=200)
    model = stopped().fit(X, Y, **val)
    for j, rounds in enumerate(model.best_iter_per_output_):
        # Up to the first freeze the trees are those of a plain fit.
        if rounds <= model.best_iter_per_output_.min() + 8:
            plain = regressor(max_iter=max(rounds, 1), learning_rate=0.3, max_leaf_nodes=8)
            expected = plain.fit(X, Y).output_importances_[j] if rounds else np.zeros(4)
            assert model.output_importances_[j] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("loss", ["squared_error", "exponential"])
def test_each_class_against_the_rest_is_stopped_by_itself(loss):
    X, Y = uneven()
    classes = np.digitize(Y[:, 1], [-1, 1])
    settings = {"early_stopping": "per_output", "n_iter_no_change": 3, "max_iter": 60}
    model = classifier(loss=loss, **settings).fit(X, classes, X_val=X[:99], Y_val=classes[:99])
    curves = model.validation_score_per_output_
    assert np.array_equal(curves.argmax(axis=0), model.best_iter_per_output_)


class RowLoss(Loss):
    def value(self, y, raw):
        return ((y - raw) ** 2).sum(axis=1) / 2

    def gradient(self, y, raw):
        return raw - y


@pytest.mark.parametrize(
    ("model", "target", "sentence"),
    [
        (classifier(), CLASSIFIERS["classes"][1], "the classes of loss='log_loss' share one"),
        (regressor(loss=RowLoss()), numbers()[1], "RowLoss.value returns one for each row"),
        (regressor(scoring="r2"), numbers()[1], "scoring begins with 'r2'"),
    ],
    ids=["softmax", "rows", "scorer"],
)
def test_what_cannot_be_stopped_per_output(model, target, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.set_params(early_stopping="per_output").fit(numbers()[0], target)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score"])
def test_scorers_of_one_class_per_row_refuse_labels(scoring):
    X, Y = labels()
    what = refusal(lambda: classifier(scoring=scoring).fit(X, Y, **validation(labels)))
    assert what.startswith(f"The scorer {scoring} is for one class per row, but the validation ")
    assert what.endswith("use 'loss', or a scorer of labels such as 'roc_auc'.")
