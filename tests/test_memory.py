"""Too little memory is a MemoryError that says how much is needed, and what to do."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from manyboost import ManyBoostClassifier, ManyBoostRegressor, load, memory
from manyboost.data.labels import check_labels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100_000, 40))
Y = X[:, :30] + RNG.normal(size=(100_000, 30))


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with little memory left."""

    def make(megabytes):
        monkeypatch.setattr(memory, "_of_machine", lambda: int(megabytes * 1e6))

    return make


def test_a_fit_that_would_not_fit_is_refused_before_it_begins(small_machine):
    model = ManyBoostRegressor(max_iter=2, early_stopping=False).fit(X[:500], Y[:500])
    before = model.predict(X[:5])
    small_machine(20)
    words = (
        r"Training on 100,000 rows, 40 features and 30 outputs needs about \d+ MB of memory, but "
        r"20 MB are free; most of it is for features: pass fewer rows or features, X as float32, "
        r"or sparse X\."
    )
    with pytest.raises(MemoryError, match=words):
        model.fit(X, Y)
    assert np.array_equal(model.predict(X[:5]), before)
    small_machine(1000)
    assert model.fit(X, Y).n_iter_ == 2


@pytest.mark.parametrize(
    ("parameters", "what", "remedy"),
    [
        ({"strategy": "multioutput", "max_bins": 255}, "histograms", "a smaller max_bins"),
        ({"max_iter": 10**5, "early_stopping": False}, "the model", "strategy='project'"),
        (
            {"max_leaf_nodes": None, "min_samples_leaf": 1, "max_bins": 2, "max_iter": 1},
            "leaves",
            "a larger min_samples",
        ),
    ],
)
def test_the_remedy_goes_with_what_takes_most(small_machine, parameters, what, remedy):
    small_machine(20)
    with pytest.raises(MemoryError, match=f"most of it is for {what}: .*{remedy}"):
        ManyBoostRegressor(**{"early_stopping": False, **parameters}).fit(X, Y)


def test_outputs_may_take_most(small_machine):
    small_machine(20)
    labels = np.zeros((20_000, 300), np.uint8)
    labels[::2] = 1
    with pytest.raises(MemoryError, match="most of it is for outputs: train on fewer rows or"):
        ManyBoostClassifier(early_stopping=False).fit(X[:20_000, :2], labels)


@pytest.mark.parametrize("kind", ["sparse", "sets"])
def test_labels_that_are_stored_sparsely_are_counted_before_they_are_spread_out(
    kind, small_machine, monkeypatch
):
    small_machine(20)
    labels = sparse.csr_array(np.eye(2000, 2000, dtype=np.uint8))
    if kind == "sets":
        labels = [{k} for k in range(2000)]
    words = "Training on 2,000 rows of 2,000 labels needs about 53 MB of memory, but 20 MB are free"
    with pytest.raises(MemoryError, match=words):
        ManyBoostClassifier(early_stopping=False).fit(X[:2000], labels)


@pytest.mark.parametrize("dtype", [np.uint8, bool, np.int64, np.float32])
def test_labels_are_read_some_rows_at_a_time(dtype):
    labels = np.zeros((200_000, 60), dtype)
    labels[::2] = 1
    tracemalloc.start()
    try:
        encoded = check_labels(labels, np.zeros((len(labels), 1), np.float32))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.array_equal(encoded, labels)
    assert peak < 4 * labels.size


def test_predictions_that_would_not_fit_are_refused(small_machine):
    model = ManyBoostRegressor(max_iter=1).fit(X[:500], np.tile(Y[:500], 10))
    small_machine(60)  # more than the predictions, but not enough beside all else
    words = (
        r"Predicting 300 outputs of 20,000 rows needs about 65 MB of memory, but 60 MB are free; "
        r"predict fewer rows or outputs at a time \(outputs=…\), or with dtype=numpy.float32\."
    )
    with pytest.raises(MemoryError, match=words):
        model.predict(X[:20_000])
    assert model.predict(X[:1000]).shape == (1000, 300)
    assert model.predict(X[:20_000], outputs=[1, 2]).shape == (20_000, 2)


@pytest.mark.parametrize(
    ("y", "parameters", "answer"),
    [
        (np.arange(300), {}, ManyBoostClassifier.predict),
        (np.arange(300), {}, lambda model, X: model.predict_proba(X, outputs=[1, 2])),
        (np.eye(300), {}, ManyBoostClassifier.predict_labels),
        (np.tri(300), {"label_hierarchy": {1: 0}}, lambda model, X: model.predict_top_k(X, 2)[0]),
    ],
    ids=["classes", "some classes", "sets of labels", "best labels"],
)
def test_predictions_made_in_blocks_need_memory_for_the_results_alone(
    y, parameters, answer, small_machine
):
    model = ManyBoostClassifier(max_iter=1, **parameters).fit(X[:300, :2], y)
    small_machine(20)
    assert len(answer(model, X[:, :2])) == len(X)


def test_results_of_blocks_that_would_not_fit_are_refused(small_machine):
    long = np.array(["a" * 100, "b" * 100, "c" * 100])
    model = ManyBoostClassifier(max_iter=1).fit(X[:300, :2], long[np.arange(300) % 3])
    small_machine(60)
    assert model.predict(X[:, :2]).nbytes == 4 * 100 * len(X)
    small_machine(50)
    words = (
        r"Predicting 100,000 rows needs about 57 MB of memory, but 50 MB are free; predict fewer "
        r"rows at a time\."
    )
    with pytest.raises(MemoryError, match=words):
        model.predict(X[:, :2])


def test_small_fits_never_ask(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: pytest.fail("asked"))
    model = ManyBoostRegressor(max_iter=1).fit(X[:500], Y[:500])
    model.predict(X[:500])


def test_an_allocation_that_fails_on_the_way_is_explained(monkeypatch):
    def fail(*arguments):
        raise MemoryError("no memory for another 3 MB")

    model = ManyBoostRegressor(max_iter=1).fit(X[:50], Y[:50])
    monkeypatch.setattr("manyboost.training.plan._resolve_max_features", fail)
    before = dict(vars(model))
    with pytest.raises(
        MemoryError,
        match=r"Training ran out of memory \(no memory for another 3 MB\); train on fewer rows",
    ):
        model.fit(X[:50], Y[:50])
    assert vars(model) == before


def fail(*arguments):
    raise MemoryError


def test_model_files_that_would_not_fit_are_refused(small_machine, tmp_path, monkeypatch):
    path = tmp_path / "model.mb"
    model = ManyBoostRegressor(max_iter=2, random_state=0).fit(X[:500], Y[:500])
    model.save(path)
    monkeypatch.setattr(memory, "_MARGIN", 0)
    small_machine(0.01)
    with pytest.raises(MemoryError, match=r"Reading '.*model.mb' needs about .* are free; read it"):
        load(path)
    small_machine(1000)
    assert np.array_equal(load(path).predict(X), model.predict(X))


def test_an_allocation_that_fails_with_a_model_file_is_explained(tmp_path, monkeypatch):
    path = tmp_path / "model.mb"
    model = ManyBoostRegressor(max_iter=2, random_state=0).fit(X[:500], Y[:500])
    model.save(path)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("manyboost.persistence.from_bytes", fail)
        words = r"Reading the \d+ kB of '.*model.mb' ran out of memory; read it where there is more"
        with pytest.raises(MemoryError, match=words):
            load(path)
    monkeypatch.setattr("manyboost.persistence.container._little_endian", fail)
    with pytest.raises(MemoryError, match=r"Writing the model ran out of memory; free some"):
        model.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.mb"]


def test_buffers_of_the_core_that_cannot_be_had_raise():
    from manyboost import _core

    ensemble = _core.Ensemble("vector", 2**24, 1)
    rows = np.zeros((2**20, 1), np.float32)
    with pytest.raises(MemoryError, match=r"no memory for another 281475\.0 GB"):
        ensemble.top_k(_core.Pool(1), rows, 0, np.zeros(2**24), 2**24)


def training(**facts):
    given = {
        "n_outputs": 3,
        "n_columns": 1,
        "row_weights": False,
        "cell_weights": False,
        "residuals_only": True,
        "splits": False,
        "max_bins": 255,
        "max_leaves": 31,
        "tree_kind": "vector",
        "rounds": 0,
        "threads": 1,
    }
    return memory.Training(**given | facts)


def test_estimates_count_what_is_made_of_the_features():
    def features(X):
        return training().needs(X, Y)["features"]

    single = X.astype(np.float32)
    assert features(single) == X.size  # bins alone
    assert features(X) == features(np.asfortranarray(single)) == 5 * X.size  # and a copy
    few = sparse.csr_array(np.where(X > 2, X, 0))
    assert features(few) < features(X)


def test_estimates_count_the_values_of_a_model_by_the_kind_of_its_trees():
    sizes = {
        kind: training(n_outputs=100, rounds=10, tree_kind=kind).needs(X, Y)["the model"]
        for kind in ("vector", "per_output", "scaled")
    }
    assert sizes["vector"] == sizes["per_output"] == 6 * 10 * 31 * 100
    assert sizes["scaled"] == 6 * 10 * (31 + 100)


@pytest.mark.parametrize(
    ("estimator", "residuals_only"),
    [
        (ManyBoostRegressor("squared_error"), True),
        (ManyBoostRegressor("squared_error", strategy="multioutput"), False),
        (ManyBoostRegressor("absolute_error"), False),
        (ManyBoostClassifier("squared_error"), True),
        (ManyBoostClassifier("log_loss"), False),
    ],
)
def test_raw_predictions_and_residuals_are_counted_unless_residuals_suffice(
    estimator, residuals_only, monkeypatch
):
    seen = []
    monkeypatch.setattr(memory, "check_training", lambda *given: seen.append(given))
    targets = (Y[:500] > 0).astype(int) if isinstance(estimator, ManyBoostClassifier) else Y[:500]
    estimator.set_params(max_iter=1).fit(X[:500], targets)
    facts, features, encoded = seen[0]
    copies = 4 if encoded.dtype.kind == "f" or residuals_only else 0
    state = copies if residuals_only else copies + 8
    assert facts.needs(features, encoded)["outputs"] == state * encoded.size


# What a fit takes ---------------------------------------------------------------------------------

_MEASURED_FIT = """
import json, sys
from pathlib import Path
import numpy as np
from manyboost import ManyBoostRegressor, memory

n, p, d, weighted, parameters = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(n, p)).astype(np.float32)
Y = X[:, :1] ** 2 + rng.normal(size=(n, d))
weight = rng.uniform(0.5, 1.5, n) if weighted else None
model = ManyBoostRegressor(max_iter=3, n_jobs=2, **{"early_stopping": False} | parameters)
model.fit(X[:2000], Y[:2000])  # loads what is loaded on first use
expected = []
memory.check_training = lambda training, X, Y: expected.append(training.needs(X, Y))
status = lambda name: next(
    1024 * int(line.split()[1])
    for line in Path("/proc/self/status").read_text().splitlines()
    if line.startswith(name)
)
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
model.fit(X, Y, weight)
print(status("VmHWM") - before, sum(expected[0].values()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
@pytest.mark.parametrize(
    ("shape", "weighted", "parameters"),
    [
        ((1_200_000, 10, 3), False, {}),  # too many rows for packed lanes
        ((600_000, 10, 3), False, {}),
        ((400_000, 10, 3), True, {}),
        ((400_000, 2, 5), False, {"n_components": 4}),
        ((200_000, 10, 20), False, {"strategy": "multioutput", "max_bins": 31}),
        ((300_000, 20, 5), False, {"n_folds": 5, "early_stopping": "auto"}),
    ],
)
def test_estimates_are_what_a_fit_takes(shape, weighted, parameters):
    given = json.dumps([*shape, weighted, parameters])
    run = subprocess.run(
        [sys.executable, "-c", _MEASURED_FIT, given], capture_output=True, text=True, check=True
    )
    peak, expected = map(int, run.stdout.split())
    assert peak < expected + memory._MARGIN
    assert expected < 1.25 * peak


# What there is ----------------------------------------------------------------------------------


def test_the_limit_of_a_group_counts(groups):
    groups(
        "0::/job/part\n",
        {
            "job/part/memory.max": "max\n",
            "job/part/memory.current": "10\n",
            "job/memory.max": "1000000\n",
            "job/memory.current": "900000\n",
            "job/memory.stat": "anon 1\ninactive_file 50000\n",
        },
    )
    # What was read from files can be forgotten; the group above has the limit.
    assert memory._of_group() == 150_000
    assert memory.available() == 150_000


def test_the_limit_of_a_group_of_the_older_kind_counts(groups):
    groups(
        "5:cpu:/x\n4:memory:/job\n0::/\n",
        {
            "memory/job/memory.limit_in_bytes": "1000000",
            "memory/job/memory.usage_in_bytes": "400000",
            "memory/job/memory.stat": "cache 3\n",
        },
    )
    assert memory._of_group() == 600_000


def test_groups_without_limits_limit_nothing(groups):
    groups("0::/\n", {"memory.max": "max\n", "memory.current": "1\n"})
    assert memory._of_group() is None


def test_systems_that_tell_nothing_are_not_asked_again(monkeypatch):
    def unknown():
        raise OSError

    for name in ("_of_machine", "_of_group", "_of_process"):
        monkeypatch.setattr(memory, name, unknown)
    assert memory.available() is None
    memory.check(1 << 60, "This", "do that")


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="another system")
def test_the_memory_of_this_machine_is_known():
    assert 1 << 20 < memory._of_machine() < 1 << 50
