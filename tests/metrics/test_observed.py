"""Scorers that count each output where it is observed."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import metrics as sklearn_metrics
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.metrics import get_scorer, get_scorer_names

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
Y = np.exp(X[:, :2] + 0.1 * RNG.normal(size=(240, 2)))
HOLES = np.where(RNG.random(Y.shape) < 0.3, np.nan, Y)
LABELS = (X[:, :2] + 0.3 * RNG.normal(size=(240, 2)) > 0).astype(int)
REGRESSION = [
    n for n in get_scorer_names() if "macro" not in n and "roc" not in n and "av" not in n
]


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 20, "random_state": 0, "loss": "poisson"} | parameters)


def classifier(**parameters):
    return ManyBoostClassifier(**{"max_iter": 20, "random_state": 0} | parameters)


@pytest.mark.parametrize("name", REGRESSION)
def test_complete_targets_are_scored_as_by_scikit_learn(name):
    model = regressor().fit(X, Y)
    expected = sklearn_metrics.get_scorer(name)(model, X, Y)
    assert get_scorer(name)(model, X, Y) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["f1_macro", "roc_auc", "average_precision", "jaccard_macro"])
def test_complete_labels_are_scored_as_by_scikit_learn(name):
    model = classifier().fit(X, LABELS)
    expected = sklearn_metrics.get_scorer(name)(model, X, LABELS)
    assert get_scorer(name)(model, X, LABELS) == pytest.approx(expected, rel=1e-12)
    classes = classifier().fit(X, LABELS[:, 0])
    expected = sklearn_metrics.get_scorer(name)(classes, X, LABELS[:, 0])
    assert get_scorer(name)(classes, X, LABELS[:, 0]) == expected


def test_an_output_is_scored_where_it_is_observed():
    rng = np.random.default_rng(1)
    model, scorer = regressor().fit(X, Y), get_scorer("neg_mean_absolute_error")
    errors = np.abs(model.predict(X) - HOLES)
    expected = -np.nanmean(errors, axis=0).mean()
    for given in (HOLES, pd.DataFrame(HOLES)):
        assert scorer(model, X, given) == pytest.approx(expected)
    weights = rng.uniform(0.5, 2, HOLES.shape)
    weighted = [
        np.average(e[~np.isnan(e)], weights=w[~np.isnan(e)])
        for e, w in zip(errors.T, weights.T, strict=True)
    ]
    assert scorer(model, X, HOLES, sample_weight=weights) == pytest.approx(-np.mean(weighted))
    single = regressor().fit(X, Y[:, 0])
    there = ~np.isnan(HOLES[:, 0])
    expected = -np.abs(single.predict(X) - HOLES[:, 0])[there].mean()
    assert scorer(single, X, HOLES[:, 0]) == pytest.approx(expected)


def test_a_search_over_targets_with_holes_finds_numbers():
    rng = np.random.default_rng(1)
    search = GridSearchCV(
        regressor(), {"max_leaf_nodes": [2, 9]}, scoring=get_scorer("r2"), cv=3, error_score="raise"
    ).fit(X, HOLES)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    labels = np.where(rng.random(LABELS.shape) < 0.3, np.nan, LABELS)
    scores = cross_val_score(
        classifier(), X, labels, scoring=get_scorer("roc_auc"), cv=KFold(3), error_score="raise"
    )
    assert scores.min() > 0.8


def test_labels_are_scored_in_every_form_that_fit_takes():
    names = np.array(["a", "b"])
    lists = [names[row == 1].tolist() for row in LABELS]
    model = classifier().fit(X, lists)
    expected = get_scorer("f1_macro")(model, X, LABELS)
    for given in (lists, list(map(set, lists)), pd.Series(lists), sparse.csr_matrix(LABELS)):
        assert get_scorer("f1_macro")(model, X, given) == expected


def test_outputs_in_another_order_than_in_fit_are_refused():
    targets, labels = (pd.DataFrame(values, columns=["a", "b"]) for values in (Y, LABELS))
    for model, y, name in ((regressor(), targets, "r2"), (classifier(), labels, "f1_macro")):
        model.fit(X, y)
        assert get_scorer(name)(model, X, y) == get_scorer(name)(model, X, y.to_numpy())
        with pytest.raises(ValueError, match="y has the outputs of fit in another order"):
            get_scorer(name)(model, X, y[["b", "a"]])


def test_scorers_can_be_sent_to_other_processes():
    scorer = get_scorer("r2")
    assert pickle.loads(pickle.dumps(scorer)) == scorer
    assert scorer.__name__ == "r2"


def test_an_unknown_scorer_is_answered_with_names_that_exist():
    with pytest.raises(
        ValueError, match=r"'f1' is no mean over outputs .* did you mean 'f1_macro'"
    ):
        get_scorer("f1")
    with pytest.raises(ValueError, match="'accuracy' is no mean over outputs"):
        get_scorer("accuracy")


# A label that the validation rows lack --------------------------------------------------------


def test_roc_auc_counts_the_labels_of_which_validation_rows_have_both_values():
    rare = np.column_stack([LABELS, np.zeros(240, int)])
    rare[:2, 2] = 1
    both = classifier(scoring="roc_auc").fit(X[:120], rare[:120], X_val=X[120:], y_val=rare[120:])
    scores = sklearn_metrics.roc_auc_score(LABELS[120:], both.decision_function(X[120:])[:, :2])
    assert both.validation_score_[-1] == pytest.approx(scores)
    drawn = classifier(scoring="roc_auc", early_stopping=True).fit(X, rare)
    assert np.isfinite(drawn.validation_score_).all()


def test_roc_auc_without_any_such_label_is_refused():
    with pytest.raises(ValueError, match="no label has both values in these rows"):
        classifier(scoring="roc_auc").fit(X, LABELS, X_val=X[:1], y_val=LABELS[:1])


@pytest.mark.parametrize("y", [Y, HOLES, Y[:, 0]], ids=["complete", "holes", "one"])
def test_a_list_of_quantiles_is_refused_in_a_sentence(y):
    model = regressor(loss="quantile", quantile=[0.1, 0.5, 0.9]).fit(X, y)
    words = "r2_score compares one prediction for each output with y, .*; for a list of quantiles"
    with pytest.raises(ValueError, match=words):
        get_scorer("r2")(model, X, y)
