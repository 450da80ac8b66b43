"""Categorical features: the best set of categories goes left, whatever their codes are."""

import itertools
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.metrics import label_ranking_average_precision_score, r2_score
from sklearn.model_selection import KFold

from manyboost import ManyBoostClassifier, ManyBoostRegressor, _core
from manyboost.data.categories import Categories
from manyboost.data.features import resolve_categorical
from manyboost.datasets import load_dataset
from reference import boost, gain_by_chance, make_loss, row_variance
from refusals import refusal

STRATEGIES = ("independent", "multioutput", "project", "relabel")
ONE_STUMP = {"max_iter": 1, "max_leaf_nodes": 2, "learning_rate": 1.0, "random_state": 0}


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


def left_set(model, tree=0, n_categories=40):
    """The categories that the root of a tree sends left."""
    left_categories = model._progress.model.trees.tree(tree)[6][0]
    assert left_categories is not None, "the root is not categorical"
    return {int(code) for code in left_categories if code < n_categories}


def subset_problem(seed, n=2000, k=40, d=1):
    """Outputs that depend on whether the category is in a random set, and noise features."""
    rng = np.random.default_rng(seed)
    subset = set(rng.choice(k, size=rng.integers(5, k - 5), replace=False).tolist())
    X = np.column_stack([rng.normal(size=n), rng.permutation(np.arange(n) % k), rng.normal(size=n)])
    inside = np.isin(X[:, 1], list(subset))
    Y = inside[:, None] * rng.normal(2, 0.5, size=d) + 0.3 * rng.normal(size=(n, d))
    return X, Y, subset


# The best set -----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_stump_finds_the_set_that_matters(strategy, d, weighted):
    for seed in range(5):
        X, Y, subset = subset_problem(seed, d=d)
        weight = np.random.default_rng(seed).uniform(0.5, 2, len(X)) if weighted else None
        model = ManyBoostRegressor(strategy=strategy, categorical_features=[1], **ONE_STUMP)
        model.fit(X, Y, weight)
        for tree in range(d if strategy == "independent" else 1):
            assert left_set(model, tree) in (subset, set(range(40)) - subset)


@pytest.mark.parametrize("n_components", [2, 4])
def test_several_components_find_the_set_too(n_components):
    for seed in range(5):
        X, Y, subset = subset_problem(seed, d=6)
        model = ManyBoostRegressor(
            categorical_features=[1], n_components=n_components, **ONE_STUMP
        ).fit(X, Y)
        assert left_set(model) in (subset, set(range(40)) - subset)


def gain(z, w, left):
    a, b = w[left].sum(), w[~left].sum()
    mean = np.average(z, weights=w)
    return sum((w[s] @ (z[s] - mean)) ** 2 / t for s, t in ((left, a), (~left, b)))


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_no_set_of_categories_gains_more(weighted):
    rng = np.random.default_rng(1)
    for _ in range(20):
        k, n = int(rng.integers(2, 9)), 60
        x = rng.integers(0, k, n).astype(float)
        x[rng.random(n) < 0.1] = np.nan
        y = rng.normal(size=n)
        w = rng.uniform(0.2, 3, n) if weighted else np.ones(n)
        model = ManyBoostRegressor(
            strategy="independent", categorical_features=[0], min_samples_leaf=1, **ONE_STUMP
        )
        model.fit(x[:, None], y, w if weighted else None)
        found = model._progress.model.trees.tree(0)[5][0]
        categories = np.unique(x[~np.isnan(x)])
        groups = [*(x == c for c in categories), np.isnan(x)]
        groups = [group for group in groups if group.any()]
        best = max(
            gain(y, w, np.logical_or.reduce(chosen))
            for size in range(1, len(groups))
            for chosen in itertools.combinations(groups, size)
        )
        residuals = (y - np.average(y, weights=w))[:, None]
        chance = row_variance(residuals, w) * gain_by_chance(len(categories), 1, 1)
        assert_allclose(found, max(best - chance, 0), rtol=1e-4)


@pytest.mark.parametrize("d", [1, 6])
def test_categories_of_noise_cost_little(d):
    rng = np.random.default_rng(0)
    n = 2000
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 200, n)])
    Y = np.sin(2 * X[:, [0]]) + X[:, [1]] + rng.normal(size=(n, d))
    train, test = slice(1000), slice(1000, n)
    target = Y[:, 0] if d == 1 else Y

    def score(columns, **parameters):
        model = ManyBoostRegressor(random_state=0, **parameters)
        model.fit(X[train, :columns], target[train])
        return model.score(X[test, :columns], target[test])

    without, as_categories = score(2), score(3, categorical_features=[2])
    assert as_categories > without - 0.02
    assert as_categories > score(3) - 0.02  # as numbers


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("step", ["line_search", "newton"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_trees_agree_with_the_reference(strategy, step, weighted):
    rng = np.random.default_rng(3)
    n, d = 150, 3
    X = np.column_stack([rng.integers(0, 9, n), rng.normal(size=n), rng.integers(0, 4, n)])
    # Effects along one direction, mostly: the reference finds it exactly, the library nearly so.
    effects = np.outer(rng.normal(size=9), rng.normal(size=d)) + 0.2 * rng.normal(size=(9, d))
    noise = np.outer(rng.normal(size=n), rng.normal(size=d))
    Y = effects[X[:, 0].astype(int)] + X[:, [1]] + 0.3 * noise
    X[:, ::2][rng.random((n, 2)) < 0.1] = np.nan
    weight = rng.uniform(0.2, 3, n) if weighted else None
    q = 2 if strategy == "relabel" else 1
    matrices = list(rng.normal(size=(6, q, d)))
    turns = iter(matrices)
    shape = {"learning_rate": 0.5, "max_leaf_nodes": 6, "min_samples_leaf": 4, "max_iter": 6}
    model = ManyBoostRegressor(
        strategy=strategy,
        step=step,
        projection=lambda *_: next(turns),
        n_components=q,
        categorical_features=[0, 2],
        output_scaling=None,
        random_state=0,
        **shape,
    ).fit(X, Y, weight)
    expected = boost(
        X,
        Y,
        strategy=strategy,
        loss=make_loss("squared_error"),
        step=step,
        projections=matrices if strategy in ("project", "relabel") else None,
        sample_weight=weight,
        categorical=(0, 2),
        **shape,
    )
    assert_allclose(model.predict(X), expected.raw, rtol=1e-4, atol=1e-4)
    X_new = X[rng.permutation(n)].copy()
    X_new[:, 1] = rng.normal(size=n)
    X_new[:20, 0] = 77  # unknown
    assert_allclose(model.predict(X_new), expected.predict_raw(X_new), rtol=1e-4, atol=1e-4)


def test_min_samples_leaf_holds_for_sets():
    X, Y, _ = subset_problem(0, n=400)
    for min_samples_leaf in (1, 50, 150, 200):
        model = ManyBoostRegressor(
            categorical_features=[1], min_samples_leaf=min_samples_leaf, **ONE_STUMP
        ).fit(X, Y)
        cover = model._progress.model.trees.tree(0)[4]
        assert min(cover) >= min_samples_leaf


def test_categories_of_equal_gradients_are_not_split():
    X = np.repeat(np.arange(10.0), 30)[:, None]
    model = ManyBoostRegressor(categorical_features=[0], max_iter=2).fit(
        X, np.tile([0.3, 0.7], 150)
    )
    assert list(model._progress.model.trees.tree_sizes()) == [1, 1]


# Codes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_codes_do_not_matter(strategy):
    rng = np.random.default_rng(2)
    n = 800
    X = np.column_stack([rng.integers(0, 30, n), rng.normal(size=n), rng.integers(0, 5, n)])
    Y = rng.normal(size=(30, 3))[X[:, 0].astype(int)] * X[:, [1]] + rng.normal(size=(n, 3))
    settings = {"strategy": strategy, "max_iter": 10, "random_state": 0}
    expected = ManyBoostRegressor(categorical_features=[0, 2], **settings).fit(X, Y).predict(X)
    # Any distinct numbers serve as codes: negative, fractional, far apart.
    names = np.concatenate([rng.normal(scale=100, size=28), [1e30, -1e-30]])
    other = X.copy()
    other[:, 0] = rng.permutation(names)[X[:, 0].astype(int)]
    other[:, 2] = rng.permutation(5)[X[:, 2].astype(int)]
    mask = [True, False, True]
    model = ManyBoostRegressor(categorical_features=mask, **settings).fit(other, Y)
    assert_allclose(model.predict(other), expected, rtol=1e-5, atol=1e-6)


def test_features_are_given_by_mask_number_or_name():
    pd = pytest.importorskip("pandas")
    X, Y, _ = subset_problem(4, n=300)
    frame = pd.DataFrame(X, columns=["a", "colour", "c"])
    expected = model_bytes(ManyBoostRegressor(categorical_features=[1], **ONE_STUMP).fit(X, Y))
    for given in ([False, True, False], np.array([1]), (1,), ["colour"], np.array(["colour"])):
        model = ManyBoostRegressor(categorical_features=given, **ONE_STUMP)
        assert model_bytes(model.fit(frame, Y)) == expected
    numeric = model_bytes(ManyBoostRegressor(**ONE_STUMP).fit(X, Y))
    assert numeric != expected
    for given in (None, "from_dtype", [], [False] * 3):
        model = ManyBoostRegressor(categorical_features=given, **ONE_STUMP)
        assert model_bytes(model.fit(X, Y)) == numeric


def test_the_index_of_a_value_in_its_table_is_its_code():
    tables = Categories(3, {1: np.array([-1.5, 0.0, 7.0]), 2: np.array([])})
    column = np.array([7.0, -0.0, np.nan, 3.0])
    encoded = tables.encode(np.column_stack([column, column, column]), None)
    assert_array_equal(encoded.T, [column, [2, 1, np.nan, np.nan], [np.nan] * 4])
    tables = Categories(3, {1: np.array([-1.5, 0.0, 7.0])})
    assert_array_equal(tables.counts, [0, 3, 0])
    assert_array_equal(tables.mask, [False, True, False])
    assert Categories(3, {}).counts is None


def test_resolve_categorical_answers_with_a_mask():
    X = np.zeros((2, 3))
    names = np.array(["a", "b", "c"], dtype=object)
    for given, expected in [
        (None, []), ("from_dtype", []), ([], []), ([2, 0], [0, 2]), (["b"], [1]),
        ([True, False, True], [0, 2]),
    ]:  # fmt: skip
        mask = resolve_categorical(X, given, names)
        assert mask.dtype == bool
        assert_array_equal(np.flatnonzero(mask), expected)


# Missing and unknown values ---------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("with_missing", [False, True])
def test_an_unknown_category_is_a_missing_value(strategy, with_missing):
    X, Y, _ = subset_problem(5, d=3)
    if with_missing:
        X[::7, 1] = np.nan
    model = ManyBoostRegressor(
        strategy=strategy, categorical_features=[1], max_iter=10, random_state=0
    ).fit(X, Y)
    missing, unknown = X[:50].copy(), X[:50].copy()
    missing[:, 1] = np.nan
    expected = model.predict(missing)
    for value in (40, -1, 0.5, 39.999, 1e9, 255, 256):
        unknown[:, 1] = value
        assert_array_equal(model.predict(unknown), expected)
    assert not np.array_equal(model.predict(X[:50]), expected)


def test_missing_values_without_an_example_follow_the_larger_child():
    X, Y, subset = subset_problem(6)
    model = ManyBoostRegressor(categorical_features=[1], **ONE_STUMP).fit(X, Y)
    larger = subset if len(subset) >= 20 else set(range(40)) - subset
    expected = model.predict([[0.0, float(min(larger)), 0.0]])
    assert_array_equal(model.predict([[0.0, np.nan, 0.0]]), expected)


def test_missing_values_go_where_they_gain_most():
    X, Y, subset = subset_problem(7)
    X[np.isin(X[:, 1], list(subset)) & (np.arange(len(X)) % 3 == 0), 1] = np.nan
    model = ManyBoostRegressor(categorical_features=[1], **ONE_STUMP).fit(X, Y)
    inside, missing = model.predict([[0, float(min(subset)), 0], [0, np.nan, 0]])
    assert inside == missing


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
def test_large_whole_numbers_of_an_array_are_categories_of_their_own(dtype):
    small = np.random.default_rng(0).integers(0, 4, size=(80, 2))
    targets = np.column_stack([small[:, 1] == 1, small[:, 1] == 2])
    settings = {"categorical_features": [1], "max_iter": 5, "random_state": 0}
    large = small.astype(dtype)
    large[:, 1] += 2**60
    model = ManyBoostRegressor(**settings).fit(large, targets)
    expected = ManyBoostRegressor(**settings).fit(small, targets)
    trees, others = (each._progress.model.trees.to_bytes() for each in (model, expected))
    assert trees == others
    assert_array_equal(model.predict(large), expected.predict(small))
    unknown, missing = np.array([[1, 2**60 + 4]]), np.array([[1, np.nan]])
    assert_array_equal(model.predict(unknown), model.predict(missing))


def test_validation_rows_may_hold_categories_that_training_lacks():
    X, Y, _ = subset_problem(8)
    X_val, Y_val = X[:200].copy(), Y[:200]
    X_val[:50, 1] = 99
    model = ManyBoostRegressor(categorical_features=[1], max_iter=5, random_state=0)
    model.fit(X, Y, X_val=X_val, Y_val=Y_val)
    expected = -np.mean((Y_val[:, 0] - model.predict(X_val)[:, 0]) ** 2) / 2
    assert_allclose(model.validation_score_[-1], expected, rtol=1e-5)


def test_a_column_without_any_category_is_never_split():
    X = np.column_stack([np.full(100, np.nan), np.arange(100.0)])
    model = ManyBoostRegressor(categorical_features=[0], max_iter=3).fit(X, X[:, 1])
    assert model.feature_importances_[0] == 0
    assert model.predict(X).std() > 0


# Forms of the model -----------------------------------------------------------------------------


def mixed_problem(n=3000, seed=0):
    """Categories that are rare, common and missing; most rows of column 2 hold one category."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.zipf(1.5, n) % 50,
            rng.normal(size=n),
            np.where(rng.random(n) < 0.93, 7, rng.integers(0, 20, n)),
        ]
    ).astype(float)
    X[rng.random(X.shape) < 0.02] = np.nan
    effects = rng.normal(size=(50, 4))
    filled = np.nan_to_num(X, nan=3).astype(int)
    Y = effects[filled[:, 0]] + effects[filled[:, 2]] + rng.normal(size=(n, 4))
    return X, Y


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_threads_do_not_change_the_model(strategy):
    X, Y = mixed_problem()
    settings = {"strategy": strategy, "max_iter": 6, "random_state": 0}
    if strategy == "relabel":
        settings["n_components"] = 3
    for options in ({}, {"max_features": 0.5}, {"subsample": 0.5}):
        models = [
            ManyBoostRegressor(
                categorical_features=[0, 2], n_jobs=n_jobs, **settings, **options
            ).fit(X, Y)
            for n_jobs in (1, 2, 3)
        ]
        assert len({model_bytes(model) for model in models}) == 1
        # Leaves by the partition, by bins and by values are the same.
        score = -np.mean((Y - models[0].predict(X)) ** 2) / 2
        assert_allclose(models[0].train_score_[-1], score, rtol=1e-5)


def test_columns_with_one_frequent_category_are_split_like_others():
    # More rows of the frequent category make the column compressed; the split stays the same.
    rng = np.random.default_rng(0)
    n = 1000
    x = np.concatenate([rng.integers(0, 12, 100), np.full(n - 100, 12)]).astype(float)
    y = np.isin(x, [1, 4, 7, 12]) + 0.1 * rng.normal(size=n)
    model = ManyBoostRegressor(categorical_features=[0], min_samples_leaf=1, **ONE_STUMP)
    model.fit(x[:, None], y)
    assert left_set(model, n_categories=13) in ({1, 4, 7, 12}, set(range(12)) - {1, 4, 7})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_models_survive_pickling(strategy):
    X, Y = mixed_problem(500)
    model = ManyBoostRegressor(strategy=strategy, categorical_features=[0, 2], max_iter=5).fit(X, Y)
    X[:20, 0] = 1000
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))
    assert model_bytes(again) == model_bytes(model)
    *_, last = again.staged_predict(X)
    assert_array_equal(last, model.predict(X))


def test_hostile_sets_are_refused():
    X, Y = mixed_problem(600)
    settings = {"max_iter": 2, "max_leaf_nodes": 16, "random_state": 0}
    model = ManyBoostRegressor(categorical_features=[0, 2], **settings).fit(X, Y)
    trees, counts = model._progress.model.trees, model._progress.categories.counts
    good = trees.arrays()
    categorical = np.flatnonzero(good["split_feature"] & 1 << 30)
    numeric = np.flatnonzero(~good["split_feature"] & 1 << 30)
    sets = good["split_categories"]
    assert len(categorical) == len(sets) > 0
    first, number = categorical[0], numeric[0]

    def changed(name, place, value):
        array = good[name].copy()
        array[place] = value
        return good | {name: array}

    for damaged in (
        good | {"split_categories": sets[:-1]},
        good | {"split_categories": np.concatenate([sets, sets[:1]])},
        changed("split_feature", first, good["split_feature"][first] & ~np.uint32(1 << 30)),
        changed("split_feature", first, good["split_feature"][first] | np.uint32(0xFFFFFF)),
        changed("split_feature", number, good["split_feature"][number] | np.uint32(1 << 30)),
        changed("split_threshold", first, 0.5),
        changed("split_threshold", first, np.nan),
        changed("split_categories", (0, 7), ~sets[0, 7]),
    ):
        with pytest.raises(ValueError, match="tree"):
            _core.Ensemble.from_arrays(trees.kind, Y.shape[1], X.shape[1], 1, damaged, counts)
    again = _core.Ensemble.from_arrays(trees.kind, Y.shape[1], X.shape[1], 1, good, counts)
    assert again.to_bytes() == _core.Ensemble.from_bytes(again.to_bytes()).to_bytes()


def test_a_warm_start_goes_on_with_the_same_codes():
    X, Y = mixed_problem(600)
    settings = {"categorical_features": [0, 2], "random_state": 0, "learning_rate": 0.1}
    model = ManyBoostRegressor(max_iter=4, warm_start=True, **settings).fit(X, Y)
    model.set_params(max_iter=8).fit(X, Y)
    whole = ManyBoostRegressor(max_iter=8, **settings).fit(X, Y)
    assert model_bytes(model) == model_bytes(whole)
    model.set_params(max_iter=9)
    some = X.copy()
    some[3, 0] = 1234
    assert "Column 0 of X has the category 1234 in row 3" in refusal(lambda: model.fit(some, Y))
    model.set_params(categorical_features=[0])
    assert "categorical_features names other" in refusal(lambda: model.fit(X, Y))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_classifiers_take_categories(strategy):
    X, Y = mixed_problem(1500)
    for target in ((Y > 0).astype(int), Y.argmax(axis=1)):
        model = ManyBoostClassifier(strategy=strategy, max_iter=30, random_state=0)
        plain = -model.fit(X, target).train_score_[-1]
        model.set_params(categorical_features=[0, 2])
        assert -model.fit(X, target).train_score_[-1] < plain
        assert model.predict_proba(X).shape == (1500, 4)


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([True, False], "mask of 2 entries but X has 3 features"),
        ([3], "has the feature 3; X has the features 0 to 2"),
        ([-1], "has the feature -1; X has the features 0 to 2"),
        (["colour"], "names the feature 'colour', but X has no feature names"),
        ([0.5], "has 0.5 in place of a feature"),
        ([True, 1], "has True in place of a feature"),
    ],
)
def test_features_that_do_not_exist_are_refused(given, words):
    X, Y, _ = subset_problem(0, n=100)
    model = ManyBoostRegressor(categorical_features=given)
    sentence = refusal(lambda: model.fit(X, Y))
    assert "categorical_features" in sentence
    assert words in sentence


def test_an_unknown_name_is_refused_with_a_likely_one():
    pd = pytest.importorskip("pandas")
    X, Y, _ = subset_problem(0, n=100)
    frame = pd.DataFrame(X, columns=["a", "colour", "c"])
    model = ManyBoostRegressor(categorical_features=["color"])
    with pytest.raises(ValueError, match="'color', which X does not have; did you mean 'colour'"):
        model.fit(frame, Y)


def test_all_255_categories_fit():
    rng = np.random.default_rng(0)
    x = np.repeat(np.arange(255.0), 8)
    y = rng.normal(size=255)[x.astype(int)]
    X = np.append(x, np.nan)[:, None]
    model = ManyBoostRegressor(
        categorical_features=[0], min_samples_leaf=1, learning_rate=1.0, max_leaf_nodes=None,
        max_iter=20,
    ).fit(X, np.append(y, 9.0))  # fmt: skip
    assert_allclose(model.predict(X), np.append(y, 9.0), atol=1e-4)


def test_sparse_matrices_and_other_estimators_are_refused():
    X, Y, _ = subset_problem(0, n=100)
    model = ManyBoostRegressor(categorical_features=[1], max_iter=2)
    sentence = refusal(lambda: model.fit(sparse.csr_matrix(X), Y))
    assert "Column 1 is categorical but X is a sparse matrix" in sentence
    model.fit(X, Y)
    assert "Column 1 is categorical" in refusal(lambda: model.predict(sparse.csr_matrix(X)))
    model = ManyBoostRegressor(categorical_features=[1], estimator=Ridge(), strategy="project")
    assert "categorical_features works with built-in trees" in refusal(lambda: model.fit(X, Y))


# Data sets --------------------------------------------------------------------------------------


def data_set(name):
    folder = os.environ.get("MANYBOOST_DATA")
    folder = Path(folder) if folder else Path(__file__).parents[3] / "shared" / "data"
    if not (folder / f"{name}.npz").is_file():
        pytest.skip(f"{name}.npz is not in the data folder (set MANYBOOST_DATA)")
    return load_dataset(name, folder)


def one_hot(X, categories):
    """X with a 0/1 column for each category instead of the codes; missing: all zero."""
    columns = []
    for j in range(X.shape[1]):
        if j in categories:
            columns.append(X[:, [j]] == np.arange(len(categories[j])))
        else:
            columns.append(X[:, [j]])
    return np.hstack(columns).astype(np.float32)


@pytest.mark.parametrize("name", ["flags", "sf1", "sf2", "yeast-seq-funcat"])
def test_categories_are_as_good_as_one_hot_columns(name):
    # Scores vary by about 0.01 with seed and folds; sf1 and sf2 hardly hold any signal, and their
    # r² by a few hundredths.
    data = data_set(name)
    X = np.asarray(data.X.toarray() if sparse.issparse(data.X) else data.X)
    Y = np.asarray(data.Y.toarray() if sparse.issparse(data.Y) else data.Y)
    labels = data.task == "multilabel"
    estimator = ManyBoostClassifier if labels else ManyBoostRegressor
    folds = [(np.flatnonzero(data.split == 0), np.flatnonzero(data.split == 1))]
    if name != "yeast-seq-funcat":
        folds = [f for seed in range(3) for f in KFold(5, shuffle=True, random_state=seed).split(X)]
    scores = []
    for features, categorical in ((X, list(data.categories)), (one_hot(X, data.categories), None)):
        score = []
        for train, test in folds:
            model = estimator(random_state=0, max_iter=50, categorical_features=categorical)
            model.fit(features[train], Y[train])
            if labels:
                some = Y[test].any(axis=1)
                ranked = model.decision_function(features[test])[some]
                score.append(label_ranking_average_precision_score(Y[test][some], ranked))
            else:
                score.append(r2_score(Y[test], model.predict(features[test])))
        scores.append(np.mean(score))
    assert scores[0] >= scores[1] - (0.01 if labels else 0.03), scores
