"""Small models of all kinds, as model files with what they must predict.

The files are loaded by the tests of every release. They are not to be made again: a release that
changes the format adds files, and goes on reading these.

    python tests/models/golden.py NAME...    makes files that are not there yet
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent


def data():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(80, 4))
    Y = X @ rng.normal(size=(4, 3)) + 0.1 * rng.normal(size=(80, 3))
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, Y


def frame_of(columns):
    """A frame of columns by name; those of text are categories."""
    import pandas as pd

    return pd.DataFrame(
        {
            name: pd.Categorical(values) if isinstance(values[0], str) else values
            for name, values in columns.items()
        }
    )


def answers(model, X, **arguments):
    """What a model says about rows, as JSON can hold it exactly."""
    methods = {"predict": model.predict}
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name):
            methods[name] = getattr(model, name)
    said = {name: listed(method(X, **arguments)) for name, method in methods.items()}
    said["stages"] = [listed(stage) for stage in model.staged_predict(X, **arguments)]
    return said


def listed(values):
    """Arrays, frames and lists of them as lists."""
    return (
        [listed(each) for each in values]
        if isinstance(values, list)
        else np.asarray(values).tolist()
    )


def flat(values):
    """The members of nested lists, one after the other."""
    if not isinstance(values, list):
        return [values]
    return [member for each in values for member in flat(each)]


def make():
    """Models by name, with the rows that they are asked about."""
    from manyboost import ManyBoostClassifier, ManyBoostRegressor

    X, Y = data()
    common = {"max_iter": 3, "max_leaf_nodes": 4, "random_state": 0, "learning_rate": 0.3}
    rows = {"X": X[:8].tolist()}
    counts = np.round(np.exp(Y / 3))
    offset = np.linspace(-1, 1, len(X))
    yield (
        "relabel",
        ManyBoostRegressor(n_components=2, **common).fit(X, Y),
        rows,
    )
    yield (
        "project_poisson_offset",
        ManyBoostRegressor("poisson", strategy="project", **common).fit(X, counts, offset=offset),
        rows | {"offset": offset[:8].tolist()},
    )
    labels = [{name for name, y in zip("abc", row, strict=True) if y > 0} for row in Y]
    yield (
        "independent_labels",
        ManyBoostClassifier(strategy="independent", thresholds="tuned", **common).fit(X, labels),
        rows,
    )
    classes = np.array(["ant", "bee", "cow"])[Y.argmax(axis=1)]
    yield (
        "multioutput_classes",
        ManyBoostClassifier(strategy="multioutput", step="line_search", **common).fit(X, classes),
        rows,
    )
    yield (
        "chosen_strategy",
        ManyBoostRegressor(strategy="auto", **common).fit(X, Y),
        rows,
    )
    yield (
        "binary",
        ManyBoostClassifier("exponential", class_weight={True: 2.0}, **common).fit(X, Y[:, 0] > 0),
        rows,
    )
    mixed = np.column_stack([Y[:, 0], Y[:, 1], counts[:, 2], Y[:, 2] > 0])
    yield (
        "mixed_per_output",
        ManyBoostRegressor(
            ["huber", "huber", "poisson", "log_loss"],
            early_stopping="per_output",
            n_iter_no_change=1,
            **common,
        ).fit(X, mixed),
        rows,
    )
    yield (
        "quantiles",
        ManyBoostRegressor("quantile", quantile=[0.1, 0.5, 0.9], **common).fit(X, Y[:, :2]),
        rows,
    )
    coded = X.copy()
    coded[:, 1] = np.arange(80) * 7 % 5
    by_category = Y + 3 * np.array([0, 1, 0, 1, 0.5])[coded[:, 1].astype(int), None]
    yield (
        "constrained_categories",
        ManyBoostRegressor(
            categorical_features=[1],
            monotonic_cst=[1, 0, 0, -1],
            interaction_cst=[{0, 1}, {2, 3}],
            scoring=["loss", "r2"],
            early_stopping=True,
            **common,
        ).fit(coded, by_category),
        {"X": coded[:8].tolist()},
    )
    seconds = X.copy()
    seconds[:, 1] = 1.7e9 + np.arange(80) * 37 % 60
    yield (
        "cuts_in_doubles",
        ManyBoostRegressor(**common).fit(seconds, Y + np.sin(seconds[:, [1]] / 10)),
        {"X": seconds[:8].tolist()},
    )
    # Version 4.
    tags = frame_of(
        {
            name: (Y[:, j] > limit).astype(int)
            for name, j, limit in (("any", 0, -1), ("some", 0, 0), ("few", 0, 1), ("rare", 1, 4))
        }
    )
    yield (
        "calibrated_hierarchy",
        ManyBoostClassifier(
            n_folds=2,
            calibration="sigmoid",
            label_hierarchy={"few": "some", "some": "any"},
            **common,
        ).fit(X, tags),
        rows,
    )
    yield (
        "isotonic_labels",
        ManyBoostClassifier(n_folds=2, calibration="isotonic", **common).fit(X, Y > [0, 1, 9]),
        rows,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rare = ManyBoostRegressor(categorical_features=[1], max_bins=4, **common)
        rare.fit(coded, by_category)
    yield "rare_categories", rare, {"X": coded[:8].tolist()}
    # Version 5.
    kinds = np.array(["ant", "bee", "cow"])[Y.argmax(axis=1)].tolist()
    yield (
        "class_columns",
        ManyBoostClassifier(step="line_search", **common).fit(
            X, frame_of({"kind": kinds, "count": np.clip(counts[:, 0], 0, 3), "one": Y[:, 1] > 0})
        ),
        rows,
    )
    columns = {
        "length": np.nan_to_num(X[:, 0]).tolist(),
        "colour": ["red", "blue", "red", "é"] * 20,
    }
    outputs = frame_of({"one": Y[:, 0].tolist(), "two": Y[:, 1].tolist()})
    yield (
        "frames",
        ManyBoostRegressor(strategy="project", **common)
        .fit(frame_of(columns), outputs)
        .set_output(predict="pandas"),
        {"columns": {name: values[:8] for name, values in columns.items()}},
    )


def rows_of(asked):
    """Rows to predict for, and further arguments, of what a golden file was asked about."""
    if "columns" in asked:
        return frame_of(asked["columns"]), {}
    X = np.array(asked["X"], dtype=float)
    return X, {"offset": np.array(asked["offset"])} if "offset" in asked else {}


def main():
    for name, model, asked in make():
        path = FOLDER / f"{name}.mb"
        if path.exists() or (sys.argv[1:] and name not in sys.argv[1:]):
            continue
        model.save(path)
        X, arguments = rows_of(asked)
        expected = {"asked": asked, "answers": answers(model, X, **arguments)}
        path.with_suffix(".json").write_text(json.dumps(expected) + "\n")
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
