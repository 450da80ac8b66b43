"""A fingerprint of models of all kinds, for comparisons across threads and instruction sets."""

import hashlib
import sys

import numpy as np

from manyboost import ManyBoostClassifier, ManyBoostRegressor


def digest(n_jobs, strategy, seed):
    """Hash of many models; the data are large enough that kernels are cut into pieces."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000, 8))
    X[rng.random(X.shape) < 0.05] = np.nan
    Z = np.nan_to_num(X) @ rng.normal(size=(8, 20))
    weight = rng.exponential(size=len(X)) if seed % 2 else None
    common = {
        "strategy": strategy,
        "random_state": seed,
        "n_jobs": n_jobs,
        "max_iter": 5,
        "max_leaf_nodes": 8,
        "subsample": 0.7 if seed % 3 == 0 else 1.0,
        "max_features": 0.5 if seed % 3 == 1 else 1.0,
    }
    labels = (Z > 1).astype(int)
    constrained = common | {
        "categorical_features": [7],
        "monotonic_cst": [1, -1, 0, 0, 0, 0, 0, 0],
        "interaction_cst": [[0, 1, 2, 7], [3, 4, 5, 6]],
    }
    with_categories = X.copy()
    with_categories[:, 7] = np.round(3 * X[:, 7])
    sha = hashlib.sha256()
    mixed = np.column_stack([Z[:, :3], np.round(np.exp(Z[:, 3:5] / 4)), labels[:, 5:9]])
    losses = ["squared_error", "huber", "quantile", *["poisson"] * 2, *["log_loss"] * 4]
    stopping = {"early_stopping": "per_output", "n_iter_no_change": 1}
    missing = rng.random(Z.shape) < 0.3
    cells = rng.exponential(size=Z.shape)
    for model, Y, weights in [
        (ManyBoostRegressor(**common), np.where(missing, np.nan, Z), weight),
        (ManyBoostRegressor("absolute_error", **common), Z, cells),
        (ManyBoostRegressor("poisson", step="line_search", **common), np.exp(Z / 4), cells),
        (ManyBoostClassifier(class_weight="balanced", **common), labels, weight),
    ]:
        model.fit(X, Y, weights)
        sha.update(model._progress.model.trees.to_bytes())
        sha.update(model.train_score_.tobytes())
    for model, Y in [
        (ManyBoostRegressor(**constrained), Z),
        (ManyBoostRegressor(**common), Z),
        (ManyBoostRegressor("huber", **common), Z),
        (ManyBoostRegressor("absolute_error", **common), Z),
        (ManyBoostRegressor("poisson", step="line_search", **common), np.round(np.exp(Z / 4))),
        (ManyBoostClassifier(**common), labels),
        (ManyBoostClassifier(step="line_search", **common), labels),
        (ManyBoostClassifier(**common), np.argmax(Z[:, :5], axis=1)),
        (ManyBoostRegressor(losses, **common), mixed),
        (ManyBoostRegressor(losses, step="line_search", **common), mixed),
        (ManyBoostClassifier(**common, **stopping), labels),
    ]:
        features = X if model.interaction_cst is None else with_categories
        model.fit(features, Y, weight)
        sha.update(model._progress.model.trees.to_bytes())
        sha.update(model.train_score_.tobytes())
        sha.update(model._raw_predict(features).tobytes())
    return sha.hexdigest()


if __name__ == "__main__":
    print(digest(2, sys.argv[1], 1))
