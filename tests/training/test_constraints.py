"""Constraints: predictions move with features as asked, and features meet only where allowed."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.training.constraints import Monotonic, resolve_interactions, resolve_monotonic
from positive_targets import positive
from refusals import refusal

STRATEGIES = ("independent", "multioutput", "project", "relabel")
STEPS = ("line_search", "newton")
LABELS = ("log_loss", "exponential", "squared_error")
REGRESSION = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie")


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


def wavy_data(seed=0, n=300, p=4, d=3, signs=0):
    """Signals that rise or fall on the whole, as ``signs`` (d, p) say, but not everywhere."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, p))
    slopes = rng.normal(size=(p, d))
    slopes = np.where(np.transpose(signs) == 0, slopes, np.abs(slopes) * np.transpose(signs))
    Y = X @ slopes + np.sin(4 * X) @ rng.normal(size=(p, d)) + 0.3 * rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.03] = np.nan
    return X, Y


def lines_along(X, feature, rng, n_lines=60, n_points=101):
    """Rows (n_lines, n_points, p) that differ along a line in one feature alone."""
    rows = X[rng.integers(0, len(X), n_lines)]
    rows = np.repeat(rows[:, None, :], n_points, axis=1)
    known = X[~np.isnan(X[:, feature]), feature]
    # Beyond the data on both sides, and on the very values of training.
    grid = np.sort(np.append(np.linspace(-3, 3, n_points - 50), rng.choice(known, 50)))
    rows[:, :, feature] = grid
    return rows


def assert_monotone(model, X, signs):
    """``signs`` (d, p); every output along dense lines in every constrained feature, exactly."""
    rng = np.random.default_rng(1)
    for j in np.flatnonzero(np.any(signs, axis=0)):
        rows = lines_along(X, j, rng)
        raw = model._raw_predict(rows.reshape(-1, X.shape[1])).reshape(*rows.shape[:2], -1)
        moves = np.diff(raw, axis=1) * np.asarray(signs)[:, j]
        assert moves.min() >= 0, f"feature {j}"


def fitted(loss, strategy, step, Y, **settings):
    estimator = ManyBoostClassifier if Y.dtype == np.uint8 else ManyBoostRegressor
    settings = {"max_iter": 25, "min_samples_leaf": 3, "random_state": 0} | settings
    return estimator(loss, strategy=strategy, step=step, **settings)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("loss", "labels"),
    [*((loss, False) for loss in REGRESSION), *((loss, True) for loss in LABELS)],
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_predictions_are_monotone(strategy, loss, labels, step):
    X, Y = wavy_data()
    if labels:
        Y = (Y > 0).astype(np.uint8)
    if loss in ("poisson", "gamma", "tweedie"):
        Y = positive(loss, np.exp(Y / 3))
    weight = np.random.default_rng(2).uniform(0.2, 3, len(X))
    signs = [1, -1, 0, 1]
    model = fitted(loss, strategy, step, Y, monotonic_cst=signs).fit(X, Y, weight)
    assert_monotone(model, X, np.tile(signs, (3, 1)))
    # Not by standing still: the free feature moves predictions, and so do the others.
    assert (model.feature_importances_ > 0).all()
    assert np.ptp(model._raw_predict(X), axis=0).min() > 0


class LogCosh(Loss):
    """A loss written in Python."""

    def value(self, y, raw):
        return np.logaddexp(y - raw, raw - y) - np.log(2)

    def gradient(self, y, raw):
        return np.tanh(raw - y)

    def hessian(self, y, raw):
        return 1 - np.tanh(raw - y) ** 2


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_losses_written_in_python_are_constrained_too(strategy, step):
    X, Y = wavy_data()
    signs = [1, -1, 0, 1]
    model = fitted(LogCosh(), strategy, step, Y, monotonic_cst=signs).fit(X, Y)
    assert_monotone(model, X, np.tile(signs, (3, 1)))
    assert np.ptp(model._raw_predict(X), axis=0).min() > 0


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_output_may_have_constraints_of_its_own(strategy, step):
    signs = np.array([[1, 1, 0, 0], [1, -1, 0, 0], [-1, -1, 1, 0], [0, 0, 0, 0]])
    X, Y = wavy_data(1, d=4, signs=signs)
    for subsample in (1.0, 0.6):
        model = fitted(
            "squared_error",
            strategy,
            step,
            Y,
            monotonic_cst=signs,
            subsample=subsample,
            max_iter=40,
        ).fit(X, Y)
        assert_monotone(model, X, signs)
        # Every output has trees of its own; what they explain is not nothing.
        assert r2_score(Y, model.predict(X), multioutput="raw_values").min() > 0.2


def test_trees_of_project_serve_outputs_that_agree_with_them():
    signs = np.array([[1, 1, 0, 0], [1, -1, 0, 0], [-1, -1, 0, 0]])
    X, Y = wavy_data(2, d=3, signs=signs)
    model = fitted("squared_error", "project", "newton", Y, monotonic_cst=signs, max_iter=30)
    steps = model.fit(X, Y).step_sizes_
    features = [set(tree_features(model, t)) for t in range(30)]
    for m, (rho, used) in enumerate(zip(steps, features, strict=True)):
        reference = signs[m % 2]  # the third agrees with the first, up to its sign
        for j in range(3):
            agreement = {int(signs[j, f] * reference[f]) for f in used & {0, 1}}
            if 1 in agreement:
                assert rho[j] >= 0
            if -1 in agreement:
                assert rho[j] <= 0
    assert any(used >= {0, 1} for used in features)
    assert (steps[:, 0] > 0).any()
    assert (steps[:, 2] < 0).any()


def tree_features(model, tree):
    """Features whose values a tree parts, not only cuts off the missing ones."""
    feature, threshold, left, *_ = model._progress.model.trees.tree(tree)
    return feature[(left > 0) & np.isfinite(threshold)].tolist()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_true_constraints_cost_little(strategy, step):
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(2000, 4))
    signal = np.column_stack([4 * X[:, 0] ** 2 - 2 * X[:, 1], np.exp(X[:, 0]) - 3 * X[:, 1] ** 3])
    Y = signal + 0.2 * rng.normal(size=signal.shape)
    X_new = rng.uniform(size=(1000, 4))
    truth = np.column_stack(
        [4 * X_new[:, 0] ** 2 - 2 * X_new[:, 1], np.exp(X_new[:, 0]) - 3 * X_new[:, 1] ** 3]
    )
    settings = {"strategy": strategy, "step": step, "max_iter": 100, "random_state": 0}
    free = ManyBoostRegressor(**settings).fit(X, Y).score(X_new, truth)
    kept = ManyBoostRegressor(monotonic_cst=[1, -1, 0, 0], **settings).fit(X, Y)
    assert kept.score(X_new, truth) > free - 0.01


def test_a_stump_against_the_constraint_is_the_pooled_mean():
    # Two values in the wrong order: the best monotone prediction is their common mean.
    X = np.repeat([0.0, 1.0], [30, 10])[:, None]
    Y = np.column_stack([np.repeat([1.0, 0.0], [30, 10]), np.repeat([0.0, 1.0], [30, 10])])
    for strategy in ("multioutput", "relabel"):
        model = ManyBoostRegressor(
            strategy=strategy, monotonic_cst=[1], learning_rate=1.0, max_iter=1, max_leaf_nodes=2,
            min_samples_leaf=1, random_state=0,
        ).fit(X, Y)  # fmt: skip
        assert_allclose(model.predict([[0.0], [1.0]]), [[0.75, 0.0], [0.75, 1.0]], atol=1e-6)


def test_growth_avoids_splits_that_break_the_order():
    X, Y = wavy_data(4, d=1)
    falling = -np.nan_to_num(X[:, 0]) + 0.1 * Y[:, 0]
    model = ManyBoostRegressor(
        strategy="independent", monotonic_cst=[1, 0, 0, 0], max_iter=20, max_leaf_nodes=2
    ).fit(X, falling)
    for t in range(20):
        feature, threshold, *_ = model._progress.model.trees.tree(t)
        # Only missing values may be cut off by the constrained feature.
        assert feature[0] != 0 or threshold[0] == np.inf


def test_constraints_hold_beside_categories_interactions_and_drawn_features():
    rng = np.random.default_rng(5)
    X, Y = wavy_data(5)
    X = np.column_stack([X, rng.integers(0, 12, len(X))])
    Y = Y + 2 * rng.normal(size=(12, 3))[X[:, 4].astype(int)]
    signs = np.array([1, -1, 0, 0, 0])
    for strategy, options in itertools.product(
        STRATEGIES, ({}, {"max_features": 0.4}, {"interaction_cst": [[0, 4], [1, 2, 3]]})
    ):
        model = fitted(
            "squared_error", strategy, "auto", Y, monotonic_cst=signs, categorical_features=[4],
            **options,
        ).fit(X, Y)  # fmt: skip
        assert_monotone(model, X, np.tile(signs, (3, 1)))
        assert model.feature_importances_[4] > 0.02


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_threads_do_not_change_constrained_models(strategy):
    rng = np.random.default_rng(6)
    X, Y = wavy_data(6, n=3000, p=6, d=4)
    X[:, 5] = rng.integers(0, 30, len(X))
    weight = rng.uniform(0.5, 2, len(X))
    models = [
        fitted(
            "squared_error",
            strategy,
            "auto",
            Y,
            monotonic_cst=[1, -1, 0, 0, 1, 0],
            interaction_cst=[[0, 1, 5], [2, 3, 4]],
            categorical_features=[5],
            n_jobs=n_jobs,
            max_iter=5,
        ).fit(X, Y, weight)
        for n_jobs in (1, 2, 3)
    ]
    assert len({model_bytes(model) for model in models}) == 1


def test_without_constraints_the_model_is_the_same():
    X, Y = wavy_data(7)
    for strategy in STRATEGIES:
        expected = model_bytes(fitted("squared_error", strategy, "auto", Y).fit(X, Y))
        for given in ([0] * 4, np.zeros((3, 4)), {}):
            model = fitted("squared_error", strategy, "auto", Y, monotonic_cst=given)
            assert model_bytes(model.fit(X, Y)) == expected
        model = fitted("squared_error", strategy, "auto", Y, interaction_cst=[range(4)])
        assert model_bytes(model.fit(X, Y)) == expected


def test_sparse_rows_and_validation_rows_keep_the_constraints():
    X, Y = wavy_data(8)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0
    signs = [1, -1, 0, 0]
    for strategy in STRATEGIES:
        model = fitted("squared_error", strategy, "auto", Y, monotonic_cst=signs)
        dense = model_bytes(model.fit(X, Y, X_val=X[:50], Y_val=Y[:50]))
        S = sparse.csr_matrix(X)
        assert model_bytes(model.fit(S, Y, X_val=S[:50], Y_val=Y[:50])) == dense
        assert_monotone(model, X, np.tile(signs, (3, 1)))


def test_constraints_are_given_by_name():
    pd = pytest.importorskip("pandas")
    X, Y = wavy_data(9)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    expected = fitted("squared_error", "relabel", "auto", Y, monotonic_cst=[1, 0, -1, 0])
    by_name = fitted("squared_error", "relabel", "auto", Y, monotonic_cst={"c": -1, "a": 1})
    assert model_bytes(by_name.fit(frame, Y)) == model_bytes(expected.fit(X, Y))
    expected = fitted("squared_error", "relabel", "auto", Y, interaction_cst=[{0, 2}, {1}])
    by_name = fitted("squared_error", "relabel", "auto", Y, interaction_cst=[{"c", "a"}, {"b"}])
    assert model_bytes(by_name.fit(frame, Y)) == model_bytes(expected.fit(X, Y))


# Interactions -----------------------------------------------------------------------------------


def paths(model, tree):
    """The set of features on each path from the root of a tree to a leaf."""
    feature, _, left, *_ = model._progress.model.trees.tree(tree)

    def below(node, seen):
        if left[node] == 0:
            yield seen
            return
        for child in (left[node], left[node] + 1):
            yield from below(child, seen | {int(feature[node])})

    return list(below(0, frozenset()))


INTERACTIONS = {
    "pairs": ([(0, 1), (2, 3)], [{0, 1}, {2, 3}, {4, 5}]),
    "overlap": ([[0, 1, 2], [2, 3], [4], [5]], [{0, 1, 2}, {2, 3}, {4}, {5}]),
    "pairwise": ("pairwise", [set(pair) for pair in itertools.combinations(range(6), 2)]),
    "none": ("no_interactions", [{j} for j in range(6)]),
}


@pytest.mark.parametrize("options", [{}, {"max_features": 0.5}, {"subsample": 0.5}], ids=str)
@pytest.mark.parametrize("case", INTERACTIONS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_features_meet_only_within_a_group(strategy, case, options):
    given, groups = INTERACTIONS[case]
    X, Y = wavy_data(10, p=6)
    X[:, 4] = np.random.default_rng(0).integers(0, 9, len(X))
    model = fitted(
        "squared_error", strategy, "auto", Y, interaction_cst=given, categorical_features=[4],
        max_leaf_nodes=15, **options,
    ).fit(X, Y)  # fmt: skip
    n_trees = len(model._progress.model.trees.tree_sizes())
    walked = {path for tree in range(n_trees) for path in paths(model, tree)}
    assert all(any(path <= group for group in groups) for path in walked)
    # Every group is used to the full somewhere, or the test could not fail.
    largest = max(map(len, groups))
    assert any(len(path) == min(largest, 3) for path in walked)


def test_without_interactions_the_model_is_a_sum_of_functions_of_one_feature():
    X, Y = wavy_data(11)
    model = fitted("squared_error", "relabel", "auto", Y, interaction_cst="no_interactions")
    model.fit(X, Y)
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-2, 2, size=(2, 50, 4))
    mixed, swapped = a.copy(), b.copy()
    mixed[:, 1], swapped[:, 1] = b[:, 1], a[:, 1]
    both = model.predict(a) + model.predict(b)
    assert_allclose(model.predict(mixed) + model.predict(swapped), both, atol=1e-4)
    free = fitted("squared_error", "relabel", "auto", Y).fit(X, Y)
    both = free.predict(a) + free.predict(b)
    assert np.abs(free.predict(mixed) + free.predict(swapped) - both).max() > 0.01


def test_features_in_no_group_make_up_another():
    names = np.array(["a", "b", "c", "d"], dtype=object)
    assert resolve_interactions([{2, 0}], 4, None) == [[0, 2], [1, 3]]
    assert resolve_interactions([{"c", 0}, ("d",)], 4, names) == [[0, 2], [3], [1]]
    assert resolve_interactions([], 2, None) == [[0, 1]]
    assert resolve_interactions([range(3)], 3, None) == [[0, 1, 2]]
    assert resolve_interactions("pairwise", 3, None) == [[0, 1], [0, 2], [1, 2]]
    assert resolve_interactions("pairwise", 1, None) == [[0]]
    assert resolve_interactions("no_interactions", 3, None) == [[0], [1], [2]]


# How constraints are read -----------------------------------------------------------------------


def test_references_take_turns():
    monotonic = Monotonic(np.array([[0, 1, 0], [0, 0, 0], [0, -1, 0], [1, 1, 0], [-1, 1, 0]]))
    turns = [monotonic.reference(m).tolist() for m in range(6)]
    # As many outputs rise with feature 0 as fall: upwards where none of them has its turn.
    assert turns == [[1, 1, 0], [1, 1, 0], [1, -1, 0]] * 2
    rho = np.array([-1.0, -1.0, 1.0, 1.0, 1.0])
    along = monotonic.along(rho, np.array([1, 1, 0], np.int8), np.array([0, 1]))
    assert_array_equal(along, [0, -1, 0, 1, 0])
    along = monotonic.along(rho, np.array([1, 1, 0], np.int8), np.array([2]))
    assert_array_equal(along, rho)
    phi = np.array([[1.0, -9.0, 0.5, -1.0, 3.0]], np.float32)
    assert monotonic.sense(phi, np.array([1, 1, 0], np.int8)) == -1
    assert monotonic.sense(-phi, np.array([1, 1, 0], np.int8)) == 1


def test_one_row_of_signs_serves_all_outputs():
    free = np.zeros(2, bool)
    monotonic = resolve_monotonic([1, -1], 3, free, None)
    assert_array_equal(monotonic.signs, [[1, -1]] * 3)
    assert resolve_monotonic(None, 3, free, None) is None
    assert resolve_monotonic([0, 0], 3, free, None) is None


def test_a_dict_gives_features_a_sign_or_one_for_each_output():
    free, names = np.zeros(3, bool), np.array(["a", "b", "c"])
    monotonic = resolve_monotonic({"c": [1, 0, -1], "a": -1}, 3, free, names)
    assert_array_equal(monotonic.signs, [[-1, 0, 1], [-1, 0, 0], [-1, 0, -1]])
    assert refusal(lambda: resolve_monotonic({"c": [1, 0]}, 3, free, names)) == (
        "monotonic_cst has signs of the shape (2,) for feature 'c'; it must have one sign, or one "
        "for each of the 3 outputs."
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1, 0], "monotonic_cst has shape (2,); it must have one sign for each of the 4 features"),
        (np.ones((2, 4)), "monotonic_cst has shape (2, 4)"),
        ([1, 0, 2, 0], "monotonic_cst is 2 for feature 2; it must be -1 (falls)"),
        ([1, 0, 0.5, 0], "monotonic_cst is 0.5 for feature 2"),
        ([1, 0, np.nan, 0], "monotonic_cst is nan for feature 2"),
        (["up", 0, 0, 0], "monotonic_cst must hold -1, 0 and 1"),
        ([[1], [0, 1]], "monotonic_cst must hold -1, 0 and 1"),
        ({"a": 1}, "monotonic_cst names the feature 'a', but X has no feature names"),
        ({0: 1}, "monotonic_cst has the key 0"),
        ([0, 0, 0, 1], "monotonic_cst constrains feature 3, which is categorical"),
    ],
)
def test_bad_signs_are_refused(given, words):
    X, Y = wavy_data(12)
    X[:, 3] = X[:, 3] > 0
    model = ManyBoostRegressor(monotonic_cst=given, categorical_features=[3])
    assert words in refusal(lambda: model.fit(X, Y))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([0, 1], "interaction_cst has 0 as group 0; each group must be a set of features"),
        (["ab"], "interaction_cst has 'ab' as group 0"),
        ([{0, 4}], "interaction_cst has the feature 4; X has the features 0 to 3"),
        ([{-1}], "interaction_cst has the feature -1"),
        ([{"a"}], "interaction_cst names the feature 'a', but X has no feature names"),
        ([{0.5}], "interaction_cst has 0.5 in place of a feature"),
    ],
)
def test_bad_groups_are_refused(given, words):
    X, Y = wavy_data(13)
    assert words in refusal(lambda: ManyBoostRegressor(interaction_cst=given).fit(X, Y))


def test_unknown_names_are_refused():
    pd = pytest.importorskip("pandas")
    X, Y = wavy_data(14)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    for parameters in ({"monotonic_cst": {"x": 1}}, {"interaction_cst": [{"x"}]}):
        sentence = refusal(lambda given=parameters: ManyBoostRegressor(**given).fit(frame, Y))
        assert "names the feature 'x', which X does not have" in sentence


def test_classes_and_other_estimators_are_refused():
    X, Y = wavy_data(15)
    X = np.nan_to_num(X)
    model = ManyBoostClassifier(monotonic_cst=[1, 0, 0, 0])
    assert "not defined for 3 classes" in refusal(lambda: model.fit(X, Y.argmax(axis=1)))
    model.fit(X, (Y[:, 0] > 0).astype(int))
    for parameters in ({"monotonic_cst": [1, 0, 0, 0]}, {"interaction_cst": "pairwise"}):
        model = ManyBoostRegressor(estimator=Ridge(), strategy="project", **parameters)
        assert "built-in trees only" in refusal(lambda model=model: model.fit(X, Y))


def test_a_warm_start_keeps_the_constraints():
    X, Y = wavy_data(16)
    model = fitted("squared_error", "project", "auto", Y, monotonic_cst=[1, 0, 0, 0], max_iter=5)
    model.set_params(warm_start=True, learning_rate=0.1).fit(X, Y)
    model.set_params(max_iter=10).fit(X, Y)
    whole = fitted("squared_error", "project", "auto", Y, monotonic_cst=[1, 0, 0, 0], max_iter=10)
    assert model_bytes(model) == model_bytes(whole.set_params(learning_rate=0.1).fit(X, Y))
    for parameters in ({"monotonic_cst": None}, {"interaction_cst": "pairwise"}):
        changed = fitted("squared_error", "project", "auto", Y, monotonic_cst=[1, 0, 0, 0])
        changed.set_params(warm_start=True, max_iter=2).fit(X, Y)
        changed.set_params(max_iter=3, **parameters)
        assert "changed since the fitted model" in refusal(lambda m=changed: m.fit(X, Y))
