"""Features whose values single precision mixes up are cut in double precision."""

import numpy as np
import onnxruntime
import pytest
import skl2onnx
import treelite
from scipy import sparse
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
from sklearn.ensemble import HistGradientBoostingRegressor

from manyboost import ManyBoostRegressor, _core, load
from manyboost.comm import Threads
from manyboost.data.doubles import _GOLDEN, RowSample, find_cuts, mixed_features
from manyboost.distributed import fit_files
from manyboost.distributed.training import fit_rank
from manyboost.export import register_skl2onnx

START = 1.7e9  # a Unix time; neighbours in float32 are 128 seconds apart
N_ROWS = 600


def problem(n_rows=N_ROWS):
    """Seconds of half an hour, a feature that float32 holds, and two outputs; from zero on."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 1800, n_rows), rng.normal(size=n_rows)]).astype(float)
    X[rng.random(n_rows) < 0.1, 0] = np.nan
    seconds = np.nan_to_num(X[:, 0])
    return X, np.column_stack([np.sin(seconds / 100) + X[:, 1], seconds > 900])


X, Y = problem()
LATE = X + np.array([START, 0])
FAST = {"max_iter": 8, "random_state": 0, "n_jobs": 1}


def fitted(X=LATE, Y=Y, **parameters):
    return ManyBoostRegressor(**FAST | parameters).fit(X, Y)


@pytest.mark.parametrize(("start", "n_values"), [(1.7e9, 200), (2e7, 250)])
def test_unix_seconds_and_ids_score_as_in_scikit_learn(start, n_values):
    rng = np.random.default_rng(0)
    places = rng.integers(0, n_values, 3000)
    X, y = start + places[:, None].astype(float), rng.normal(size=n_values)[places]
    ours, theirs = ManyBoostRegressor(random_state=0), HistGradientBoostingRegressor()
    assert ours.fit(X, y).score(X, y) == pytest.approx(theirs.fit(X, y).score(X, y), abs=0.01)


@pytest.mark.parametrize("strategy", ["relabel", "project", "multioutput", "independent"])
@pytest.mark.parametrize("max_bins", [255, 31])
def test_a_constant_added_to_a_feature_changes_nothing(strategy, max_bins):
    late, early = (fitted(x, strategy=strategy, max_bins=max_bins) for x in (LATE, X))
    assert list(late._progress.categories.cuts) == [0]
    assert not early._progress.categories.cuts
    np.testing.assert_array_equal(late.predict(LATE), early.predict(X))
    np.testing.assert_array_equal(late.feature_importances_, early.feature_importances_)
    np.testing.assert_array_equal(late.shap_values(LATE[:20]), early.shap_values(X[:20]))


@pytest.mark.parametrize("n_rows", [600, 20_000, 777_777])
def test_only_a_few_of_many_rows_are_looked_at_for_a_sample(n_rows, monkeypatch):
    chosen = []
    partition = np.argpartition
    monkeypatch.setattr(np, "argpartition", lambda *a: chosen.append(len(a[0])) or partition(*a))
    sample, numbers = RowSample(1), np.arange(n_rows, dtype=np.uint64)
    sample.add(numbers[:, None], numbers)
    assert all(sample.size < n <= 3 * sample.size for n in chosen)
    keys = numbers * _GOLDEN
    assert sorted(sample.values[:, 0]) == sorted(np.argsort(keys)[: sample.size])


def test_other_ways_to_fit_know_the_cuts():
    other, other_Y = problem(250)
    for parameters, validation in [
        ({"early_stopping": True}, {}),
        ({"early_stopping": True}, {"X_val": other, "Y_val": other_Y}),
        ({"n_folds": 3}, {}),
        ({"subsample": 0.5}, {"sample_weight": 1.0 + np.arange(N_ROWS) % 3}),
    ]:
        models = []
        for shift in ([0, 0], [START, 0]):
            model = ManyBoostRegressor(max_bins=250, **FAST, **parameters)
            given = {**validation}
            if "X_val" in given:
                given["X_val"] = given["X_val"] + shift
            models.append(model.fit(X + shift, Y, **given))
        # Bins of a feature with more values than bins come from validation rows as well.
        early, late = models[0].score(X, Y), models[1].score(LATE, Y)
        assert late == pytest.approx(early, abs=0.02)
    model = fitted(max_iter=4)
    again = model.set_params(max_iter=8, warm_start=True).fit(LATE, Y)
    np.testing.assert_array_equal(again.predict(LATE), fitted().predict(LATE))
    np.testing.assert_allclose(fitted().refit(LATE, Y).predict(LATE), fitted().predict(LATE))


def test_what_single_precision_tells_apart_stays_as_it_is():
    rng = np.random.default_rng(1)
    n = 5000
    columns = {
        "normal": rng.normal(size=n),
        "uniform": rng.random(n),
        "large": 1e30 * rng.random(n),
        "tenths": rng.integers(0, 50, n) / 10,
        "whole": rng.integers(0, 1 << 24, n),
        "year of seconds": START + rng.integers(0, 3_000_000_000, n),
        "missing": np.full(n, np.nan),
    }
    table = np.column_stack(list(columns.values()))
    assert mixed_features(table, None) == []
    assert mixed_features((LATE * [1, 0]).astype(np.float32), None) == []
    assert mixed_features(sparse.csr_array(table), None) == []


@pytest.mark.parametrize("n_rows", [10, 5000])
def test_what_single_precision_mixes_up_is_found(n_rows):
    rng = np.random.default_rng(2)
    columns = {
        "seconds": START + rng.integers(0, 1800, n_rows),
        "two ids": 2e7 + rng.integers(0, 2, n_rows),
        "half of them": np.where(np.arange(n_rows) % 2, rng.normal(size=n_rows), 0.0),
        "beyond its range": 1e40 * rng.random(n_rows),
        "held": rng.normal(size=n_rows),
    }
    columns["half of them"][::2] = 2e7 + rng.integers(0, 2, len(columns["half of them"][::2]))
    table = np.column_stack(list(columns.values()))
    assert mixed_features(table, None) == [0, 1, 2, 3]
    assert mixed_features(sparse.csr_array(table), None) == [0, 1, 2, 3]


def test_zeros_that_are_not_stored_are_told_from_the_smallest_numbers():
    table = np.array([[1e-150, 0.0, -1e-60], [0.0, 0.0, 0.0], [0.0, 1.0, np.nan], [2.0, 0.0, -3.0]])
    for n_times in (1, 500):
        rows = np.repeat(table, n_times, axis=0)
        assert mixed_features(rows, None) == [0, 2]
        assert mixed_features(sparse.csr_array(rows), None) == [0, 2]
    Y = np.array([1.0, 0.0, 0.0, 0.0])
    predictions = [
        ManyBoostRegressor(max_iter=5, min_samples_leaf=1, random_state=0).fit(X, Y).predict(X)
        for X in (table, sparse.csr_array(table))
    ]
    assert np.array_equal(*predictions)
    assert predictions[0][0] > predictions[0][1]


@pytest.mark.parametrize("max_bins", [2, 16, 255])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_values", [5, 200, 10_000])
def test_cuts_are_those_that_the_core_finds(n_values, weighted, max_bins):
    rng = np.random.default_rng(3)
    values = rng.integers(0, n_values, 3000).astype(float)
    values[:40] = np.nan
    weight = rng.random(3000) + 0.01 if weighted else None
    table = values[:, None].astype(np.float32)
    features = _core.Features.fit(_core.Pool(1), table, weight, max_bins)
    np.testing.assert_array_equal(find_cuts(values, weight, max_bins), features.thresholds(0))


def test_neighbouring_doubles_are_kept_apart():
    neighbours = np.array([1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0)])
    np.testing.assert_array_equal(find_cuts(neighbours, None, 255), np.sort(neighbours)[:2])
    assert find_cuts(np.array([np.nan, 3.0, 3.0]), None, 255).size == 0


@pytest.mark.parametrize("max_bins", [255, 20])
def test_a_sparse_matrix_gives_the_model_of_its_dense_copy(max_bins):
    dense = np.nan_to_num(LATE)
    dense[::3, 0] = 0
    dense[1::9, 0] *= -1
    model, other = (fitted(x, max_bins=max_bins) for x in (dense, sparse.csr_array(dense)))
    assert list(other._progress.categories.cuts) == [0]
    assert model._progress.model.trees.to_bytes() == other._progress.model.trees.to_bytes()
    np.testing.assert_array_equal(other.predict(sparse.csr_array(dense)), model.predict(dense))


@pytest.mark.parametrize("weighted", [False, True])
def test_ranks_give_the_model_of_one_machine(weighted):
    weight = np.random.default_rng(4).random(N_ROWS) + 0.1 if weighted else None
    ends = [0, 0, 170, 400, N_ROWS]

    def on_rank(comm):
        rows = slice(ends[comm.rank], ends[comm.rank + 1])
        given = LATE[rows], Y[rows], None if weight is None else weight[rows]
        return fit_rank(ManyBoostRegressor(max_bins=40, **FAST), comm, *given)

    expected = ManyBoostRegressor(max_bins=40, **FAST).fit(LATE, Y, weight)
    for model in Threads.run(len(ends) - 1, on_rank):
        cuts, known = model._progress.categories.cuts, expected._progress.categories.cuts
        np.testing.assert_array_equal(cuts[0], known[0])
        np.testing.assert_array_equal(model.predict(LATE), expected.predict(LATE))


def test_files_larger_than_memory_give_the_model_of_arrays(tmp_path):
    np.save(tmp_path / "X.npy", LATE)
    np.save(tmp_path / "Y.npy", Y)
    weight = (np.arange(N_ROWS) % 7 > 0) * 1.0
    parameters = {"early_stopping": True, "max_bins": 40, **FAST}
    paths = tmp_path / "X.npy", tmp_path / "Y.npy", weight
    model = fit_files(ManyBoostRegressor(**parameters), *paths, chunk_rows=97)
    expected = ManyBoostRegressor(**parameters).fit(LATE, Y, weight)
    model.save(tmp_path / "files.mb")
    expected.save(tmp_path / "arrays.mb")
    assert (tmp_path / "files.mb").read_bytes() == (tmp_path / "arrays.mb").read_bytes()
    blocks = [(LATE[k : k + 50], Y[k : k + 50]) for k in range(0, N_ROWS, 50)]
    model = fit_files(ManyBoostRegressor(**FAST), blocks, X_val=blocks[:1])
    np.testing.assert_array_equal(model.predict(LATE), fitted().predict(LATE))


def test_files_whose_first_block_does_not_show_it_are_refused():
    first = LATE[:100].copy()
    first[:, 0] = START
    blocks = [(first, Y[:100]), (LATE[100:], Y[100:])]
    with pytest.raises(ValueError, match=r"Column 0 of X has different values .* chunk_rows"):
        fit_files(ManyBoostRegressor(**FAST), blocks)


def test_a_model_file_keeps_the_cuts_and_others_stay_as_they_were(tmp_path):
    model = fitted()
    model.save(tmp_path / "model.mb")
    read = load(tmp_path / "model.mb")
    np.testing.assert_array_equal(read.predict(LATE), model.predict(LATE))
    read.save(tmp_path / "again.mb")
    data = (tmp_path / "model.mb").read_bytes()
    assert data == (tmp_path / "again.mb").read_bytes()
    assert data[8] == 3
    fitted(X).save(tmp_path / "plain.mb")
    assert (tmp_path / "plain.mb").read_bytes()[8] == 1


@pytest.mark.parametrize("strategy", ["relabel", "project", "independent"])
def test_exports_take_doubles(strategy):
    model = fitted(strategy=strategy)
    expected = model.predict(LATE)
    runtime = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    (found,) = runtime.run(None, {"X": LATE})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    found = treelite.gtil.predict(model.to_treelite(), LATE)[..., 0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    register_skl2onnx()
    inputs = [("X", DoubleTensorType([None, 2]))]
    proto = skl2onnx.convert_sklearn(model, initial_types=inputs, target_opset={"": 15})
    runtime = onnxruntime.InferenceSession(proto.SerializeToString())
    (found,) = runtime.run(None, {"X": LATE})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"Column 0 has different values .*DoubleTensorType"):
        skl2onnx.convert_sklearn(model, initial_types=[("X", FloatTensorType([None, 2]))])


def test_treelite_rounds_other_features_as_predict_does():
    # Doubles beside a cut, of which single precision makes the cut itself or its neighbour.
    cut = np.float32(1.1)
    following = np.nextafter(cut, np.float32(2))
    beside = np.array([cut, following], float)
    middle = beside.mean()
    exact = np.array([*beside, middle, np.nextafter(middle, 2), np.nextafter(middle, 0)])
    rows = np.column_stack([START + np.arange(200) % 20, np.tile(beside, 100)])
    model = fitted(rows, rows[:, 1] > cut, max_iter=2)
    asked = np.column_stack([np.full(len(exact), START), exact])
    found = treelite.gtil.predict(model.to_treelite(), asked).ravel()
    np.testing.assert_allclose(found, model.predict(asked), rtol=1e-5)
    assert len(np.unique(model.predict(asked))) == 2


def test_a_drawn_tree_shows_the_values_of_the_feature():
    pytest.importorskip("matplotlib")
    from manyboost.plotting import plot_tree

    texts = [text.get_text() for text in plot_tree(fitted(max_leaf_nodes=2), 0).texts]
    assert any(text.startswith("x0 ≤ 17000") for text in texts)
