"""Leaves of rows, leaf values and the table of nodes describe the predictions completely."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

from manyboost import ManyBoostClassifier, ManyBoostRegressor, load

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
X[:, 3] = rng.integers(0, 5, 200)
X[rng.random(X.shape) < 0.05] = np.nan
Y = np.nan_to_num(X) @ rng.normal(size=(4, 3)) + (np.nan_to_num(X[:, [3]]) == 2)
FAST = {"max_iter": 5, "max_leaf_nodes": 5, "random_state": 0}
REGRESSORS = [
    {},
    {"strategy": "multioutput"},
    {"strategy": "project"},
    {"strategy": "independent"},
    {"categorical_features": [3]},
    {"n_folds": 3},
    {"n_folds": 2, "strategy": "independent"},
    {"strategy": "project", "n_folds": 2},
    {"early_stopping": "per_output", "n_iter_no_change": 1},
]


def named(options):
    return " ".join(f"{name}={value}" for name, value in options.items()) or "default"


def walked(table, model, row):
    """The leaf of one row in a tree, by its table alone."""
    nodes = table.set_index("node")
    names = [f"x{j}" for j in range(model.n_features_in_)]
    node = 0
    while not pd.isna(nodes.loc[node, "left"]):
        at = nodes.loc[node]
        value = np.float32(row[names.index(at["feature"])])
        if np.isnan(value):
            left = at["missing_left"]
        elif at["categories"] is not None:
            left = value in at["categories"]
        else:
            left = value <= at["threshold"]
        node = at["left"] if left else at["right"]
    return nodes.loc[node, "leaf"]


@pytest.mark.parametrize("options", REGRESSORS, ids=named)
def test_raw_predictions_are_the_baseline_and_the_values_of_leaves(options):
    model = ManyBoostRegressor(**FAST, **options).fit(X, Y)
    leaves = model.apply(X)
    assert leaves.dtype == np.int32
    trees_of_round = (3 if model.strategy_ == "independent" else 1) * options.get("n_folds", 1)
    assert leaves.shape == (200, model.n_iter_ * trees_of_round)
    raw = model.baseline_ + sum(model.leaf_values(t)[leaves[:, t]] for t in range(leaves.shape[1]))
    np.testing.assert_allclose(raw, model.predict(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", REGRESSORS, ids=named)
def test_the_table_leads_rows_to_their_leaves(options):
    model = ManyBoostRegressor(**FAST, **options).fit(X, Y)
    table, leaves = model.trees_to_dataframe(), model.apply(X)
    assert table["tree"].nunique() == leaves.shape[1]
    for t, nodes in table.groupby("tree"):
        found = [walked(nodes, model, row) for row in X[::20]]
        assert found == leaves[::20, t].tolist()
        # The cover of a split is that of its children; the root has all rows.
        splits = nodes[nodes["leaf"].isna()]
        for _, split in splits.iterrows():
            children = nodes[nodes["node"].isin([split["left"], split["right"]])]
            assert children["cover"].sum() == pytest.approx(split["cover"])
            assert (children["depth"] == split["depth"] + 1).all()
    splits = table.dropna(subset="feature")
    counts = splits["feature"].value_counts()
    expected = [counts.get(f"x{j}", 0) for j in range(4)]
    assert model.split_counts_.tolist() == expected
    assert table["round"].max() == model.n_iter_ - 1


def test_trees_of_one_output_have_their_values_in_the_table():
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    model = ManyBoostRegressor(strategy="independent", **FAST).fit(X, frame)
    table = model.trees_to_dataframe()
    assert table["output"].tolist()[0] == "a"
    assert table.groupby("tree")["output"].first().tolist()[:4] == ["a", "b", "c", "a"]
    leaves = table.dropna(subset="leaf")
    tree = leaves[leaves["tree"] == 1]
    np.testing.assert_array_equal(tree["value"], model.leaf_values(1)[:, 1])
    assert not model.leaf_values(1)[:, [0, 2]].any()
    classes = ManyBoostClassifier(strategy="independent", **FAST)
    table = classes.fit(X, np.array([3, 7, 9])[np.arange(len(X)) % 3]).trees_to_dataframe()
    assert table["output"].unique().tolist() == ["3", "7", "9"]
    single = ManyBoostRegressor(**FAST).fit(X, Y[:, 0]).trees_to_dataframe()
    assert "output" not in single
    assert single["value"].notna().sum() == single["leaf"].notna().sum()
    assert "value" not in ManyBoostRegressor(**FAST).fit(X, Y).trees_to_dataframe()


def test_the_table_speaks_of_columns_and_labels_of_a_frame():
    frame = pd.DataFrame({"size": X[:, 0], "colour": pd.Categorical(["red", "blue"] * 100)})
    target = (frame["colour"] == "red") * 5.0
    table = ManyBoostRegressor(**FAST).fit(frame, target).trees_to_dataframe()
    root = table.iloc[0]
    assert root["feature"] == "colour"
    assert root["categories"] in [("red",), ("blue",)]
    assert np.isnan(root["threshold"])


def test_thresholds_of_large_numbers_are_those_of_the_data():
    seconds = 1.7e9 + np.arange(300.0)[:, None]
    model = ManyBoostRegressor(**FAST).fit(seconds, np.arange(300) >= 123)
    root = model.trees_to_dataframe().iloc[0]
    assert root["threshold"] == 1.7e9 + 122.5


def test_classifiers_and_loaded_models_have_them_too(tmp_path):
    classes = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
    model = ManyBoostClassifier(**FAST).fit(X, classes)
    leaves = model.apply(X)
    raw = model.baseline_ + sum(model.leaf_values(t)[leaves[:, t]] for t in range(5))
    np.testing.assert_allclose(raw, model.decision_function(X), rtol=1e-5, atol=1e-6)
    model.save(tmp_path / "model.mb")
    read = load(tmp_path / "model.mb")
    np.testing.assert_array_equal(read.apply(X), leaves)
    pd.testing.assert_frame_equal(read.trees_to_dataframe(), model.trees_to_dataframe())


def test_what_cannot_be_shown_is_refused(monkeypatch):
    model = ManyBoostRegressor(**FAST).fit(X, Y)
    with pytest.raises(ValueError, match="no tree 5; the model has 5, counted from 0"):
        model.leaf_values(5)
    foreign = ManyBoostRegressor(estimator=DecisionTreeRegressor(max_depth=2), max_iter=2)
    foreign.fit(np.nan_to_num(X), Y)
    for call in (lambda: foreign.apply(X), foreign.trees_to_dataframe):
        with pytest.raises(ValueError, match="needs built-in trees"):
            call()
    with pytest.raises(AttributeError, match="needs built-in trees"):
        foreign.split_counts_  # noqa: B018
    constant = ManyBoostRegressor(early_stopping=True, max_iter=2)
    constant.fit(X, Y, X_val=X, Y_val=2 * Y.mean(axis=0) - Y)
    assert constant.apply(X).shape == (200, 0)
    assert constant.split_counts_.tolist() == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="no trees to make a table of"):
        constant.trees_to_dataframe()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs the package pandas; install it"):
        model.trees_to_dataframe()
