"""Features that meet: offsets, losses, lists of quantiles, stopping, constraints, frames."""

import numpy as np
import pandas as pd
import pytest

from manyboost import ManyBoostClassifier, ManyBoostRegressor

RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 4))
Y = np.column_stack([X[:, 0], -X[:, 1] + X[:, 0], np.abs(X[:, 2])]) + 0.1 * RNG.normal(
    size=(300, 3)
)
OFFSET = RNG.normal(size=(300, 3))
LABELS = (Y + OFFSET > 0.3).astype(int)
COMMON = {"max_iter": 8, "random_state": 0, "n_jobs": 1}
STRATEGIES = ["independent", "multioutput", "project", "relabel"]


def mixed(**parameters):
    Z = np.column_stack([Y[:, 0], np.round(np.exp(Y[:, 1])), LABELS[:, 2]])
    losses = ["absolute_error", "poisson", "log_loss"]
    return ManyBoostRegressor(losses, **COMMON, **parameters), Z


# Predicting less ---------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [[2], [1, 0], [2, 0, 1]])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_some_outputs_of_several_losses_are_those_of_all(strategy, outputs):
    model, Z = mixed(strategy=strategy)
    model.fit(X, Z, offset=OFFSET)
    everything = model.predict(X, offset=OFFSET)
    assert (everything[:, 2] <= 1).all()
    assert (everything[:, 1] > 0).all()
    some = model.predict(X, offset=OFFSET, outputs=outputs)
    np.testing.assert_array_equal(some, everything[:, outputs])
    single = model.predict(X, offset=OFFSET, outputs=outputs, dtype=np.float32)
    np.testing.assert_array_equal(single, everything[:, outputs].astype(np.float32))


def test_blocks_of_rows_get_their_own_offsets(monkeypatch):
    model = ManyBoostClassifier(**COMMON).fit(X, LABELS, offset=OFFSET)
    whole = model.decision_function(X, offset=OFFSET)
    proba = model.predict_proba(X, offset=OFFSET, outputs=[1, 2])
    monkeypatch.setattr("manyboost.estimators.predicting.BLOCK_CELLS", 21)
    single = model.decision_function(X, offset=OFFSET, dtype=np.float32)
    np.testing.assert_array_equal(single, whole.astype(np.float32))
    single = model.predict_proba(X, offset=OFFSET, outputs=[1, 2], dtype=np.float32)
    np.testing.assert_array_equal(single, proba.astype(np.float32))
    labels, scores = model.predict_top_k(X, 2, offset=OFFSET)
    order = np.argsort(-whole, axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(labels, order)
    np.testing.assert_array_equal(scores, np.take_along_axis(whole, order, axis=1))
    sets = model.predict_labels(X, offset=OFFSET)
    assert sets == [tuple(np.flatnonzero(row).tolist()) for row in whole > 0]


@pytest.mark.parametrize("method", ["predict", "predict_labels", "decision_function"])
def test_an_offset_is_asked_for_wherever_one_was_fitted(method):
    model = ManyBoostClassifier(**COMMON).fit(X, LABELS, offset=OFFSET)
    with pytest.raises(ValueError, match="was fitted with an offset"):
        getattr(model, method)(X)
    with pytest.raises(ValueError, match="was fitted with an offset"):
        model.predict_top_k(X, 1)
    model.fit(X, LABELS)
    with pytest.raises(ValueError, match="was fitted without one"):
        getattr(model, method)(X, offset=OFFSET)
    with pytest.raises(ValueError, match="was fitted without one"):
        model.predict_top_k(X, 1, offset=OFFSET)


# Lists of quantiles ------------------------------------------------------------------------------


def test_some_outputs_of_a_list_of_quantiles_are_outputs_of_y():
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    model = ManyBoostRegressor("quantile", quantile=[0.1, 0.9], **COMMON)
    model.fit(X, frame, offset=OFFSET)
    everything = model.predict(X, offset=OFFSET)
    assert everything.shape == (300, 3, 2)
    some = model.predict(X, offset=OFFSET, outputs=["c", "a"], dtype=np.float32)
    np.testing.assert_array_equal(some, everything[:, [2, 0]].astype(np.float32))
    with pytest.raises(ValueError, match="y has the outputs 0 to 2"):
        model.predict(X, offset=OFFSET, outputs=[3])


def test_a_list_of_quantiles_is_scored_as_an_array():
    model = ManyBoostRegressor("quantile", quantile=[0.1, 0.9], **COMMON).fit(X, Y)
    score = model.score(X, Y)
    assert model.set_output(predict="pandas").predict(X).shape == (len(X), 2 * Y.shape[1])
    assert model.score(X, Y) == score


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_constraints_of_an_output_hold_for_all_its_quantiles(strategy):
    signs = [[1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 0, 0]]
    model = ManyBoostRegressor(
        "quantile", quantile=[0.2, 0.5, 0.8], strategy=strategy, monotonic_cst=signs, **COMMON
    ).fit(X, Y)
    for feature, output, sign in [(0, 0, 1), (1, 1, -1)]:
        moved = X.copy()
        moved[:, feature] += sign * 0.7
        rise = model.predict(moved)[:, output] - model.predict(X)[:, output]
        assert (rise >= 0).all()
        assert (rise > 0).any()
    with pytest.raises(ValueError, match=r"or a row of them for each of the 3 outputs"):
        model.set_params(monotonic_cst=np.repeat(signs, 3, axis=0)).fit(X, Y)


# Constraints -------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["newton", "line_search"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_constraints_hold_for_outputs_of_different_losses(strategy, step):
    signs = [[1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 1, 0]]
    model, Z = mixed(strategy=strategy, step=step, monotonic_cst=signs)
    model.fit(X, Z)
    free, _ = mixed(strategy=strategy, step=step)
    free.fit(X, Z)
    broken = 0
    for j, (feature, sign) in enumerate([(0, 1), (1, -1), (2, 1)]):
        moved = X.copy()
        moved[:, feature] += sign * 0.7
        assert (model.predict(moved)[:, j] >= model.predict(X)[:, j]).all()
        broken += (free.predict(moved)[:, j] < free.predict(X)[:, j]).sum()
    assert broken > 0


def test_an_output_of_an_independent_mixed_model_is_constrained_as_alone():
    signs = np.array([[1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 1, 0]])
    model, Z = mixed(strategy="independent", monotonic_cst=signs, output_scaling=None)
    everything = model.fit(X, Z).predict(X)
    alone = ManyBoostRegressor(
        "absolute_error", strategy="independent", monotonic_cst=signs[0], **COMMON
    ).fit(X, Z[:, 0])
    np.testing.assert_array_equal(everything[:, 0], alone.predict(X))


# Stopping ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_outputs_stop_one_by_one_with_categories_and_constraints(strategy):
    features = X.copy()
    features[:, 3] = np.round(3 * X[:, 3]) % 5
    model = ManyBoostRegressor(
        **COMMON | {"max_iter": 60, "learning_rate": 0.5},
        strategy=strategy,
        early_stopping="per_output",
        n_iter_no_change=2,
        categorical_features=[3],
        monotonic_cst=[1, 0, 0, 0],
        min_samples_leaf=3,
    )
    model.fit(features[:200], Y[:200], X_val=features[200:], Y_val=Y[200:])
    rounds = model.best_iter_per_output_
    assert len(set(rounds.tolist())) > 1
    # The model that is left has the scores of its own predictions.
    errors = ((model.predict(features[200:]) - Y[200:]) ** 2).mean(axis=0) / 2
    np.testing.assert_allclose(-model.validation_score_per_output_[-1], errors, rtol=1e-5)
    moved = features.copy()
    moved[:, 0] += 0.5
    assert (model.predict(moved) >= model.predict(features)).all()


def test_thresholds_are_tuned_on_the_model_that_stopping_and_offset_leave():
    from manyboost.training.thresholds import tune_thresholds

    model = ManyBoostClassifier(
        **COMMON | {"max_iter": 40, "learning_rate": 0.5},
        early_stopping="per_output",
        n_iter_no_change=2,
        thresholds="tuned",
    )
    train, rest = slice(200), slice(200, 300)
    model.fit(
        X[train],
        LABELS[train],
        X_val=X[rest],
        Y_val=LABELS[rest],
        offset=OFFSET[train],
        offset_val=OFFSET[rest],
    )
    proba = model.predict_proba(X[rest], offset=OFFSET[rest])
    expected = tune_thresholds(proba, LABELS[rest].astype(np.uint8), None)
    np.testing.assert_array_equal(model.thresholds_, expected)
    predicted = model.predict(X, offset=OFFSET)
    assert (predicted == (model.predict_proba(X, offset=OFFSET) > expected)).all()


def test_scorers_see_the_given_thresholds():
    from sklearn.metrics import f1_score

    model = ManyBoostClassifier(
        **COMMON, thresholds=0.2, scoring=["f1_macro", "loss"], early_stopping=True
    )
    model.fit(X[:200], LABELS[:200], X_val=X[200:], Y_val=LABELS[200:])
    expected = f1_score(LABELS[200:], model.predict(X[200:]), average="macro")
    assert model.validation_scores_["f1_macro"][-1] == pytest.approx(expected, abs=1e-12)


# Frames ------------------------------------------------------------------------------------------


def test_losses_name_the_output_they_cannot_take():
    frame = pd.DataFrame({"size": Y[:, 0], "count": -np.ones(300)})
    with pytest.raises(ValueError, match="y has the value -1 in row 0, output 'count'; loss="):
        ManyBoostRegressor(["huber", "poisson"], **COMMON).fit(X, frame)


def test_frames_come_with_offsets_and_callbacks():
    rounds = []
    names = ["a", "b", "c"]
    model = ManyBoostRegressor(**COMMON, callbacks=[lambda state: rounds.append(state.round)])
    model.set_output(predict="pandas")
    model.fit(X, pd.DataFrame(Y, columns=names), offset=OFFSET)
    assert rounds == list(range(1, 9))
    table = model.predict(X, offset=OFFSET, outputs=["b"])
    assert list(table.columns) == ["b"]
    arrays = model.set_output(predict="default").predict(X, offset=OFFSET)
    np.testing.assert_array_equal(table["b"], arrays[:, 1])


# Cells -------------------------------------------------------------------------------------------

MISSING = RNG.random(Y.shape) < 0.2
CELLS = RNG.exponential(size=Y.shape)


def holey(Z):
    return np.where(MISSING, np.nan, Z)


@pytest.mark.parametrize("step", ["newton", "line_search"])
def test_an_output_of_an_independent_mixed_model_with_holes_is_that_of_its_rows(step):
    model, Z = mixed(strategy="independent", step=step, output_scaling=None, min_samples_leaf=5)
    # Few values, so that bins do not depend on weights.
    few = np.round(X, 1)
    everything = model.fit(few, holey(Z), CELLS, offset=OFFSET).predict(few, offset=OFFSET)
    for j, loss in enumerate(["absolute_error", "poisson"]):
        there = ~MISSING[:, j]
        alone = ManyBoostRegressor(
            loss, strategy="independent", step=step, min_samples_leaf=5, **COMMON
        )
        alone.fit(few[there], Z[there, j], CELLS[there, j], offset=OFFSET[there, j])
        expected = alone.predict(few[there], offset=OFFSET[there, j])
        np.testing.assert_allclose(everything[there, j], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_cells_of_several_losses_that_are_all_one_are_no_cells(strategy):
    model, Z = mixed(strategy=strategy)
    plain = model.fit(X, Z).predict(X)
    np.testing.assert_array_equal(model.fit(X, Z, np.ones(Z.shape)).predict(X), plain)
    filled = np.where(MISSING, 1.0, Z)
    weight = np.where(MISSING, 0.0, 1.0)
    by_weight = model.fit(X, filled, weight, offset=OFFSET).predict(X, offset=OFFSET)
    by_hole = model.fit(X, holey(Z), offset=OFFSET).predict(X, offset=OFFSET)
    np.testing.assert_array_equal(by_weight, by_hole)
    assert np.isfinite(by_hole).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_losses_of_outputs_are_means_over_their_own_cells(strategy):
    model = ManyBoostRegressor(strategy=strategy, early_stopping="per_output", **COMMON)
    train, rest = slice(200), slice(200, 300)
    holes = holey(Y)
    model.fit(
        X[train],
        holes[train],
        CELLS[train],
        X_val=X[rest],
        Y_val=holes[rest],
        sample_weight_val=CELLS[rest],
    )

    def squares(rows):
        there = ~MISSING[rows]
        error = np.where(there, model.predict(X[rows]) - Y[rows], 0.0)
        weight = CELLS[rows] * there
        return (weight * error**2 / 2).sum(axis=0), weight.sum(axis=0)

    sums, totals = squares(rest)
    np.testing.assert_allclose(
        -model.validation_score_per_output_[-1], sums / totals, rtol=1e-4, atol=1e-6
    )
    assert -model.validation_score_[-1] == pytest.approx(sums.sum() / totals.sum(), rel=1e-4)
    sums, totals = squares(train)
    assert -model.train_score_[-1] == pytest.approx(sums.sum() / totals.sum(), rel=1e-4)


def test_stopping_per_output_needs_an_observed_cell_of_each():
    Y_val = Y[200:].copy()
    Y_val[:, 1] = np.nan
    model = ManyBoostRegressor(early_stopping="per_output", **COMMON)
    with pytest.raises(ValueError, match="Output 1 of the validation rows has no observed value"):
        model.fit(X[:200], Y[:200], X_val=X[200:], Y_val=Y_val)
    model.set_params(early_stopping=True).fit(X[:200], Y[:200], X_val=X[200:], Y_val=Y_val)
    assert np.isnan(model.validation_score_per_output_[:, 1]).all()
    assert np.isfinite(model.validation_score_).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("step", ["newton", "line_search"])
def test_constraints_hold_where_targets_are_missing(strategy, step):
    signs = [[1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 1, 0]]
    model = ManyBoostRegressor(strategy=strategy, step=step, monotonic_cst=signs, **COMMON)
    model.fit(X, holey(Y), CELLS)
    for j, (feature, sign) in enumerate([(0, 1), (1, -1), (2, 1)]):
        moved = X.copy()
        moved[:, feature] += sign * 0.7
        rise = (model.predict(moved) - model.predict(X))[:, j]
        assert (rise >= 0).all()
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_categories_are_ordered_by_observed_cells(strategy):
    kind = RNG.integers(6, size=300)
    features = kind[:, None]
    effect = RNG.normal(size=(6, 3))
    Z = effect[kind]
    model = ManyBoostRegressor(
        **COMMON | {"max_iter": 200, "learning_rate": 0.3},
        strategy=strategy,
        categorical_features=[0],
        n_components=2 if strategy == "relabel" else 1,
        min_samples_leaf=1,
    )
    weight = np.where(MISSING, 0.0, CELLS)
    # What is not observed is far away.
    model.fit(features, np.where(MISSING, 100.0, Z), weight)
    assert np.abs(model.predict(features) - Z).max() < 0.2


def test_a_list_of_quantiles_takes_cells_of_y():
    model = ManyBoostRegressor("quantile", quantile=[0.2, 0.8], strategy="independent", **COMMON)
    predicted = model.fit(X, holey(Y), CELLS).predict(X)
    assert predicted.shape == (300, 3, 2)
    single = ManyBoostRegressor("quantile", quantile=0.8, strategy="independent", **COMMON)
    expected = single.fit(X, holey(Y), CELLS).predict(X)
    crossing = model.predict(X)[..., 1] != expected
    assert crossing.mean() < 0.1
    shared = ManyBoostRegressor(
        "quantile", quantile=[0.2, 0.8], output_weight=[1, 0, 2], **COMMON
    ).fit(X, Y)
    assert shared.predict(X).shape == (300, 3, 2)
    with pytest.raises(ValueError, match="output_weight has 6 weights, but there are 3 outputs"):
        shared.set_params(output_weight=[1] * 6).fit(X, Y)


@pytest.mark.parametrize("strategy", ["multioutput", "relabel", "project"])
def test_outputs_without_weight_go_on_when_the_others_are_frozen(strategy):
    model = ManyBoostRegressor(
        **COMMON | {"max_iter": 40, "learning_rate": 0.5},
        strategy=strategy,
        early_stopping="per_output",
        n_iter_no_change=1,
        output_weight=[1, 0, 0],
    )
    model.fit(X[:200], Y[:200], CELLS[:200], X_val=X[200:], Y_val=Y[200:])
    assert np.isfinite(model.predict(X)).all()
    assert model.n_iter_ == model.best_iter_per_output_.max()


# Scorers -----------------------------------------------------------------------------------------


def test_regression_metrics_are_asked_output_by_output_where_targets_are_missing():
    from sklearn.metrics import r2_score

    model = ManyBoostRegressor(scoring=["r2", "loss"], early_stopping=True, **COMMON)
    train, rest = slice(200), slice(200, 300)
    holes = holey(Y)
    model.fit(
        X[train],
        holes[train],
        X_val=X[rest],
        Y_val=holes[rest],
        sample_weight_val=CELLS[rest],
    )
    predicted = model.predict(X[rest])
    expected = []
    for j in range(3):
        there = ~MISSING[rest, j]
        weight = CELLS[rest, j][there]
        expected.append(r2_score(Y[rest, j][there], predicted[there, j], sample_weight=weight))
    assert model.validation_score_[-1] == pytest.approx(np.mean(expected), rel=1e-5)


@pytest.mark.parametrize("scoring", ["f1_macro", "jaccard_macro", "roc_auc", "average_precision"])
def test_metrics_of_labels_are_asked_label_by_label_where_some_are_missing(scoring):
    from sklearn import metrics

    labels = holey(LABELS.astype(float))
    rest = slice(200, None)
    for cells in [None, CELLS[rest, :3]]:
        model = ManyBoostClassifier(scoring=scoring, **COMMON)
        model.fit(X, LABELS, X_val=X[rest], Y_val=labels[rest], sample_weight_val=cells)
        of_label = getattr(metrics, f"{scoring.removesuffix('_macro')}_score")
        ranks = scoring in ("roc_auc", "average_precision")
        response = model.decision_function(X[rest]) if ranks else model.predict(X[rest])
        expected = []
        for j in range(labels.shape[1]):
            there = ~np.isnan(labels[rest, j])
            if cells is not None:
                there &= cells[:, j] > 0
            weight = None if cells is None else cells[there, j]
            truth = labels[rest, j][there].astype(int)
            expected.append(of_label(truth, response[there, j], sample_weight=weight))
        assert model.validation_score_[-1] == pytest.approx(np.mean(expected), rel=1e-5)


def test_other_scorers_refuse_missing_targets():
    labels = holey(LABELS.astype(float))
    model = ManyBoostClassifier(scoring="f1_micro", early_stopping=True, **COMMON)
    with pytest.raises(ValueError, match="which the scorer f1_micro cannot take; use 'loss'"):
        model.fit(X, labels)
    model = ManyBoostRegressor(scoring=lambda e, X, y: 0.0, early_stopping=True, **COMMON)
    with pytest.raises(ValueError, match="cannot take; use 'loss'"):
        model.fit(X, holey(Y))


@pytest.mark.parametrize("classes", ["classes", "two classes", "labels"])
def test_scorers_do_not_see_class_weights(classes):
    from sklearn.metrics import accuracy_score

    y = {
        "classes": np.digitize(Y[:, 0], [-0.5, 0.5]),
        "two classes": LABELS[:, 0],
        "labels": LABELS,
    }[classes]
    for weight in [None, RNG.exponential(size=100)]:
        model = ManyBoostClassifier(
            scoring="accuracy", early_stopping=True, class_weight="balanced", **COMMON
        )
        model.fit(X[:200], y[:200], X_val=X[200:], Y_val=y[200:], sample_weight_val=weight)
        expected = accuracy_score(y[200:], model.predict(X[200:]), sample_weight=weight)
        assert model.validation_score_[-1] == pytest.approx(expected, rel=1e-5)


def test_tuned_thresholds_know_missing_labels_and_offsets():
    from manyboost.training.thresholds import tune_thresholds

    labels = holey(LABELS.astype(float))
    train, rest = slice(200), slice(200, 300)
    model = ManyBoostClassifier(thresholds="tuned", class_weight="balanced", **COMMON)
    offsets = {"offset": OFFSET[train], "offset_val": OFFSET[rest]}
    model.fit(X[train], labels[train], X_val=X[rest], Y_val=labels[rest], **offsets)
    proba = model.predict_proba(X[rest], offset=OFFSET[rest])
    expected = tune_thresholds(proba, LABELS[rest], (~MISSING[rest]).astype(float))
    np.testing.assert_allclose(model.thresholds_, expected, rtol=1e-9)
