"""Same data and seed, same bytes: whatever the number of threads or the instruction set."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from manyboost import ManyBoostClassifier, ManyBoostRegressor, _core
from model_digest import digest

STRATEGIES = ["independent", "multioutput", "project", "relabel"]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_threads_do_not_change_the_model(strategy, seed):
    serial = digest(1, strategy, seed)
    for n_jobs in (2, 3, 8):
        assert digest(n_jobs, strategy, seed) == serial, n_jobs


@pytest.mark.skipif(_core.simd_level() == "portable", reason="this machine has one path only")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_instruction_sets_do_not_change_the_model(strategy):
    command = [sys.executable, Path(__file__).with_name("model_digest.py"), strategy]
    digests = set()
    for level in ("portable", "avx2", "avx512"):
        environment = os.environ | {"MANYBOOST_SIMD": level}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        digests.add(done.stdout.strip())
    assert len(digests) == 1


def test_seeds_do_change_the_model():
    X = np.random.default_rng(0).normal(size=(200, 4))
    models = [
        ManyBoostRegressor(random_state=seed, max_iter=3).fit(X, X @ np.ones((4, 3)) * [1, 2, 3])
        for seed in (0, 1)
    ]
    assert models[0]._progress.model.trees.to_bytes() != models[1]._progress.model.trees.to_bytes()


@pytest.mark.parametrize("name", ["gaussian", "sparse", "subsample"])
def test_projections_depend_on_seed_and_round_alone(name):
    draw = _core.draw_projection
    np.testing.assert_array_equal(draw(name, 2, 9, [], 1, 5), draw(name, 2, 9, [], 1, 5))
    assert not np.array_equal(draw(name, 2, 9, [], 1, 5), draw(name, 2, 9, [], 1, 6))
    assert not np.array_equal(draw(name, 2, 9, [], 1, 5), draw(name, 2, 9, [], 2, 5))


def test_order_of_rows_matters_to_no_sum():
    # Without draws by row number, a shuffled table gives the same model.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 4))
    Y = X @ rng.normal(size=(4, 6))
    order = rng.permutation(500)
    labels = (Y > 0).astype(int)
    for estimator, target in ((ManyBoostRegressor, Y), (ManyBoostClassifier, labels)):
        plain = estimator(random_state=0, max_iter=10).fit(X, target)
        shuffled = estimator(random_state=0, max_iter=10).fit(X[order], target[order])
        assert plain._progress.model.trees.to_bytes() == shuffled._progress.model.trees.to_bytes()
        np.testing.assert_array_equal(plain.train_score_, shuffled.train_score_)


def unaligned(array):
    """The same array one byte off, as it comes out of a buffer that holds other things."""
    buffer = np.empty(array.nbytes + 1, np.uint8)[1:]
    view = buffer.view(array.dtype).reshape(array.shape)
    view[:] = array
    assert not view.flags.aligned
    return view


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_need_not_be_aligned(dtype):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 4)).astype(dtype)
    Y = X.astype(np.float64) @ rng.normal(size=(4, 6))
    weight, offset = rng.exponential(size=300), rng.normal(size=(300, 6))
    parameters = {"random_state": 0, "max_iter": 5}
    plain = ManyBoostRegressor(**parameters).fit(X, Y, weight, offset=offset)
    other = ManyBoostRegressor(**parameters).fit(
        unaligned(X), unaligned(Y), unaligned(weight), offset=unaligned(offset)
    )
    assert plain._progress.model.trees.to_bytes() == other._progress.model.trees.to_bytes()
    predicted = other.predict(unaligned(X), offset=unaligned(offset))
    np.testing.assert_array_equal(predicted, plain.predict(X, offset=offset))
    matrix = sparse.csr_matrix(np.where(X > 1, X, 0))
    shifted = sparse.csr_matrix(matrix)
    shifted.data, shifted.indices = unaligned(matrix.data), unaligned(matrix.indices)
    plain = ManyBoostRegressor(**parameters).fit(matrix, Y)
    other = ManyBoostRegressor(**parameters).fit(shifted, unaligned(Y))
    assert plain._progress.model.trees.to_bytes() == other._progress.model.trees.to_bytes()
    np.testing.assert_array_equal(other.predict(shifted), plain.predict(matrix))
