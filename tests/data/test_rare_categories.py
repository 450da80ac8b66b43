"""More categories than bins: the most frequent stay apart, the others count as one."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import manyboost
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.comm import Threads
from manyboost.data.categories import LEAST_ROWS, Categories
from manyboost.distributed import fit_files, fit_rank
from refusals import refusal

RNG = np.random.default_rng(0)
N = 3000
# 600 shops, the first ones most often; each sells something of its own.
SHOP = np.minimum(RNG.geometric(0.008, size=N) - 1, 599).astype(float)
EFFECT = RNG.normal(size=600)
X = np.column_stack([RNG.normal(size=N), SHOP])
Y = X[:, 0] + EFFECT[SHOP.astype(int)] + 0.1 * RNG.normal(size=N)
NAMES = np.array([f"shop {k:03}" for k in RNG.permutation(600)], object)
FRAME = pd.DataFrame({"size": X[:, 0], "shop": NAMES[SHOP.astype(int)]})

pytestmark = pytest.mark.filterwarnings("ignore:Rare categories count as one")


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 20, "random_state": 0, "max_bins": 100, **parameters})


def of_arrays(**parameters):
    return regressor(categorical_features=[1], **parameters).fit(X, Y)


def merged(column, max_bins=100):
    """The codes of categories, found one by one: rare ones share the last code."""
    counts = {value: int((column == value).sum()) for value in sorted(set(column))}
    by_count = sorted(counts, key=lambda value: (-counts[value], value))[: max_bins - 1]
    kept = sorted(value for value in by_count if counts[value] >= LEAST_ROWS)
    codes = {value: kept.index(value) if value in kept else len(kept) for value in counts}
    return np.array([codes[value] for value in column], float)


def test_the_model_is_that_of_merged_categories():
    codes = np.column_stack([X[:, 0], merged(SHOP)])
    expected = regressor(categorical_features=[1]).fit(codes, Y)
    np.testing.assert_array_equal(of_arrays().predict(X), expected.predict(codes))
    assert len(np.unique(codes[:, 1])) == 100


def test_rare_categories_say_so_once():
    with pytest.warns(UserWarning, match="Rare categories count as one") as caught:
        regressor().fit(FRAME, Y)
    (message,) = [str(each.message) for each in caught]
    n = FRAME["shop"].nunique()
    assert f"more than max_bins=100: column 'shop' keeps 99 of its {n}; merge" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ManyBoostRegressor(max_iter=2).fit(FRAME[SHOP < 200], Y[SHOP < 200])


def test_a_column_of_names_is_one_category():
    names = np.arange(600.0)[:, None]
    with pytest.warns(UserWarning, match="column 0 keeps 0 of its 600"):
        model = ManyBoostRegressor(categorical_features=[0], max_iter=5).fit(names, names[:, 0])
    assert np.ptp(model.predict(names)) == 0


def test_labels_of_frames_and_their_codes_give_the_same_model():
    places = pd.Categorical(FRAME["shop"]).codes.astype(float)
    numbers = np.column_stack([X[:, 0], places])
    expected = regressor(categorical_features=[1]).fit(numbers, Y)
    model = regressor().fit(FRAME, Y)
    np.testing.assert_array_equal(model.predict(FRAME), expected.predict(numbers))


def test_unknown_categories_are_missing_and_rare_ones_are_not():
    is_rare = merged(SHOP) == 99
    model = regressor(categorical_features=[1], max_iter=100).fit(X, Y + 3 * is_rare)
    shops, counts = np.unique(SHOP, return_counts=True)
    rows = np.array([[0.0, 1e6], [0.0, np.nan], [0.0, shops[counts.argmin()]]])
    unknown, missing, rare = model.predict(rows)
    assert unknown == missing < rare
    frame = pd.DataFrame({"size": [0.0, 0.0], "shop": ["elsewhere", None]})
    assert np.ptp(regressor(max_iter=100).fit(FRAME, Y).predict(frame)) == 0


def test_more_than_255_categories_can_be_told_apart_by_the_frequent_ones():
    model = ManyBoostRegressor(categorical_features=[1], random_state=0).fit(X, Y)
    without = ManyBoostRegressor(random_state=0).fit(X[:, :1], Y)
    assert model.score(X, Y) > without.score(X[:, :1], Y) + 0.3


@pytest.mark.parametrize("made", [regressor, lambda: ManyBoostClassifier(max_bins=100, max_iter=9)])
def test_files_and_pickles_keep_them(made, tmp_path):
    y = Y if isinstance(made(), ManyBoostRegressor) else (Y > 0).astype(int)
    model = made().fit(FRAME, y)
    model.save(tmp_path / "model.mb")
    loaded = manyboost.load(tmp_path / "model.mb")
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(FRAME), model.predict(FRAME))
    info = loaded.info()
    assert info["format_version"] == 4
    assert info["n_rare"] == {"shop": FRAME["shop"].nunique() - 99}
    assert "rare ones count as one" in str(info)


def test_a_warm_start_keeps_the_codes():
    model = regressor(categorical_features=[1], max_iter=10, warm_start=True).fit(X, Y)
    model.set_params(max_iter=20).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), of_arrays().predict(X))


def test_ranks_count_together():
    def fit(comm):
        mine = np.arange(N) % 3 == comm.rank
        model = regressor(categorical_features=[1])
        numbers = np.flatnonzero(mine).astype(np.uint64)
        return fit_rank(model, comm, X[mine], Y[mine], row_numbers=numbers)

    for model in Threads.run(3, fit):
        np.testing.assert_array_equal(model.predict(X), of_arrays().predict(X))


def test_files_larger_than_memory_count_too(tmp_path):
    single = X.astype(np.float32)
    np.save(tmp_path / "X.npy", single)
    np.save(tmp_path / "Y.npy", Y)
    model = regressor(categorical_features=[1])
    fit_files(model, tmp_path / "X.npy", tmp_path / "Y.npy", chunk_rows=500)
    expected = regressor(categorical_features=[1]).fit(single, Y)
    np.testing.assert_array_equal(model.predict(single), expected.predict(single))


def test_frequent_categories_come_first_and_ties_go_to_the_lowest():
    counts = [5, 9, 3, 5, 2, 5, 1]
    column = np.repeat(np.arange(7.0), counts)[:, None]
    categories = Categories.of(column, np.array([True]), 4, None)
    # 1 is most frequent; of 0, 3 and 5 the first two; the rest share the last code.
    assert categories.grouped[0].tolist() == [0, 1, 3, 2, 3, 3, 3]
    assert categories.n_rare(0) == 4
    assert categories.values_of(0, np.array([3, 1, 9])) == [[2.0, 4.0, 5.0, 6.0], [1.0], []]


def test_tables_of_trees_name_all_categories():
    pytest.importorskip("matplotlib")
    model = regressor().fit(FRAME, Y)
    table = model.trees_to_dataframe()
    named = {name for each in table["categories"] if each is not None for name in each}
    assert named <= set(FRAME["shop"])
    assert len(named) > 300
    from manyboost import plotting

    assert plotting.plot_tree(model, 0) is not None


def test_both_ways_into_onnx_know_them():
    runtime = pytest.importorskip("onnxruntime")
    rows = X.astype(np.float32)
    rows[:2, 1] = [1e6, np.nan]
    model = of_arrays()
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    (found,) = session.run(None, {"X": rows})
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-5, atol=1e-6)
    model = regressor().fit(FRAME, Y)
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    given = {"X": rows[:, :1], "shop": FRAME[["shop"]].to_numpy()}
    (found,) = session.run(None, given)
    frame = FRAME.assign(size=rows[:, 0])
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-5, atol=1e-6)


def test_a_pipeline_in_onnx_knows_them():
    runtime = pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    from manyboost.export import register_skl2onnx

    register_skl2onnx()
    model, rows = of_arrays(), X.astype(np.float32)
    session = runtime.InferenceSession(skl2onnx.to_onnx(model, rows[:1]).SerializeToString())
    (found,) = session.run(None, {"X": rows})
    np.testing.assert_allclose(found.ravel(), model.predict(rows), rtol=1e-5, atol=1e-6)


def test_treelite_cannot_look_them_up():
    pytest.importorskip("treelite")
    assert "rare categories that count as one" in refusal(of_arrays().to_treelite)


def test_large_numbers_beside_rare_categories_are_exported():
    runtime = pytest.importorskip("onnxruntime")
    seconds = 1.7e9 + np.arange(N)
    rows = np.column_stack([X, seconds])
    y = Y + (seconds > 1.7e9 + N / 2)
    model = regressor(categorical_features=[1]).fit(rows, y)
    assert model._progress.categories.cuts
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    (found,) = session.run(None, {"X": rows})
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-5, atol=1e-5)
