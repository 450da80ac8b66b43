"""The synthetic problems have the structure they promise."""

import numpy as np
import pytest

from manyboost.datasets import (
    make_friedman1_chain,
    make_friedman1_group,
    make_friedman1_ind,
    make_low_rank_multilabel,
    make_many_labels,
)

SHARED_INPUTS = [make_friedman1_chain, make_friedman1_group]
FRIEDMAN = [*SHARED_INPUTS, make_friedman1_ind]
GENERATORS = [*FRIEDMAN, make_low_rank_multilabel]


def friedman1(x1, x2, x3, x4, x5):
    return 10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5


def signal(make, X, n_outputs):
    """f(x) for every output, one output at a time: the slow twin of the generators."""
    if make is make_friedman1_ind:
        columns = [friedman1(*X[:, 5 * j : 5 * j + 5].T) for j in range(n_outputs)]
    else:
        columns = [friedman1(*X.T)] * n_outputs
    return np.column_stack(columns)


# --- friedman1 ------------------------------------------------------------------------


def test_the_defaults_are_the_size_the_paper_trains_on():
    assert [array.shape for array in make_friedman1_chain()] == [(300, 5), (300, 16)]
    assert [array.shape for array in make_friedman1_group()] == [(300, 5), (300, 16)]
    assert [array.shape for array in make_friedman1_ind()] == [(300, 80), (300, 16)]


@pytest.mark.parametrize("make", FRIEDMAN)
def test_friedman_arrays_are_float64(make):
    X, Y = make(10, n_outputs=3, noisy_outputs=True, random_state=0)
    assert X.dtype == Y.dtype == np.float64


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
@pytest.mark.parametrize("make", FRIEDMAN)
def test_without_noise_every_output_is_the_formula(make, distribution):
    X, Y = make(50, n_outputs=4, noise=0.0, distribution=distribution, random_state=1)
    np.testing.assert_allclose(Y, signal(make, X, 4), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("make", FRIEDMAN)
def test_noise_scales_the_disturbance_and_leaves_the_inputs_alone(make):
    X, clean = make(50, n_outputs=4, noise=0.0, random_state=2)
    X_one, one = make(50, n_outputs=4, noise=1.0, random_state=2)
    X_two, two = make(50, n_outputs=4, noise=2.0, random_state=2)
    np.testing.assert_array_equal(X, X_one)
    np.testing.assert_array_equal(X, X_two)
    np.testing.assert_allclose(two - clean, 2 * (one - clean), rtol=0, atol=1e-12)
    assert np.all(one != clean)


# For the standard deviation of n normal draws the standard error is σ/√(2n), for a correlation
# 1/√n: with 20,000 rows 0.005 σ and 0.007. The tolerances below are five to eight of them.


def test_noise_accumulates_along_the_chain():
    X, Y = make_friedman1_chain(20_000, n_outputs=9, noise=2.0, random_state=0)
    noise = Y - signal(make_friedman1_chain, X, 9)
    np.testing.assert_allclose(noise.std(axis=0), 2.0 * np.sqrt(np.arange(1, 10)), rtol=0.03)
    steps = np.diff(noise, axis=1)
    np.testing.assert_allclose(steps.std(axis=0), 2.0, rtol=0.03)
    assert np.abs(np.corrcoef(steps.T) - np.eye(8)).max() < 0.04


@pytest.mark.parametrize("make", [make_friedman1_group, make_friedman1_ind])
def test_noise_is_independent_between_outputs_otherwise(make):
    X, Y = make(20_000, n_outputs=4, noise=2.0, random_state=0)
    noise = Y - signal(make, X, 4)
    np.testing.assert_allclose(noise.std(axis=0), 2.0, rtol=0.03)
    assert np.abs(np.corrcoef(noise.T) - np.eye(4)).max() < 0.04


@pytest.mark.parametrize("make", FRIEDMAN)
def test_inputs_follow_the_distribution_asked_for(make):
    uniform, _ = make(20_000, n_outputs=2, random_state=0)
    normal, _ = make(20_000, n_outputs=2, distribution="normal", random_state=0)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    np.testing.assert_allclose(uniform.mean(axis=0), 0.5, atol=0.02)
    np.testing.assert_allclose(normal.mean(axis=0), 0.0, atol=0.05)
    np.testing.assert_allclose(normal.std(axis=0), 1.0, atol=0.03)


@pytest.mark.parametrize("make", FRIEDMAN)
def test_noisy_outputs_are_permutations_of_the_outputs_and_come_last(make):
    X, Y = make(200, n_outputs=4, random_state=3)
    X_noisy, Y_noisy = make(200, n_outputs=4, noisy_outputs=True, random_state=3)
    assert Y_noisy.shape == (200, 8)
    np.testing.assert_array_equal(X_noisy, X)
    np.testing.assert_array_equal(Y_noisy[:, :4], Y)
    np.testing.assert_array_equal(np.sort(Y_noisy[:, 4:], axis=0), np.sort(Y, axis=0))


def test_noisy_outputs_are_permuted_each_on_its_own():
    # Without noise the outputs of a group are equal, so equal copies would betray one
    # permutation used for all of them.
    _, Y = make_friedman1_group(500, n_outputs=4, noise=0.0, noisy_outputs=True, random_state=0)
    correlation = np.corrcoef(Y[:, 3:].T)  # one true output and the four noisy ones
    assert np.abs(correlation - np.eye(5)).max() < 0.25  # five standard errors, 1/√500


# --- low-rank multi-label -------------------------------------------------------------


def test_multilabel_arrays_are_features_and_a_uint8_indicator():
    X, Y = make_low_rank_multilabel(100, n_features=7, n_outputs=9, random_state=0)
    assert X.shape == (100, 7)
    assert X.dtype == np.float64
    assert Y.shape == (100, 9)
    assert Y.dtype == np.uint8
    assert set(np.unique(Y)) == {0, 1}


@pytest.mark.parametrize(
    ("n_rows", "n_outputs", "cardinality"),
    [(1000, 50, 3.0), (300, 100, 1.2), (300, 10, 8.5), (5000, 400, 12.0), (50, 1000, 2.0)],
)
def test_the_mean_number_of_labels_is_the_cardinality(n_rows, n_outputs, cardinality):
    _, Y = make_low_rank_multilabel(
        n_rows, n_outputs=n_outputs, cardinality=cardinality, random_state=0
    )
    # Rows are counted out, not drawn: only the rounding of the total to an integer is left.
    assert abs(int(Y.sum()) - cardinality * n_rows) <= 1


@pytest.mark.parametrize(
    ("n_rows", "n_outputs", "cardinality"),
    [(1000, 50, 3.0), (100, 100, 1.0), (20, 30, 28.5), (2, 4, 2.0), (2, 2, 1.0)],
)
def test_every_label_is_present_somewhere_and_absent_somewhere(n_rows, n_outputs, cardinality):
    for seed in range(5):
        _, Y = make_low_rank_multilabel(
            n_rows, n_outputs=n_outputs, cardinality=cardinality, random_state=seed
        )
        assert Y.any(axis=0).all()
        assert not Y.all(axis=0).any()


def test_label_frequencies_fall_like_a_power_law():
    _, Y = make_low_rank_multilabel(10_000, n_outputs=100, random_state=0)
    counts = np.sort(Y.sum(axis=0, dtype=np.int64))[::-1]
    # Among the rare labels the count is inversely proportional to the place.
    assert counts[19] / counts[79] == pytest.approx(80 / 20, rel=0.05)
    assert counts[0] > 20 * counts[-1]


def test_frequent_labels_are_not_bunched_at_the_first_outputs():
    _, Y = make_low_rank_multilabel(1000, n_outputs=100, random_state=0)
    counts = Y.sum(axis=0, dtype=np.int64)
    # Spearman's correlation of place and count; under a random order its standard error is 0.1.
    places = np.argsort(np.argsort(counts))
    assert abs(np.corrcoef(places, np.arange(100))[0, 1]) < 0.4


def test_labels_share_few_factors():
    rank = 2
    _, Y = make_low_rank_multilabel(
        20_000, n_outputs=40, rank=rank, cardinality=20.0, random_state=0
    )
    variance = np.linalg.eigvalsh(np.corrcoef(Y.T.astype(float)))[::-1]
    # Beyond the factors themselves only the thresholding and the noise are left.
    assert variance[:rank].sum() > variance[rank:].sum() * 0.5
    assert variance[rank - 1] > 2 * variance[rank]


def test_labels_can_be_learned_from_the_features():
    neighbors = pytest.importorskip("sklearn.neighbors")
    X, Y = make_low_rank_multilabel(
        4000, n_features=3, n_outputs=10, rank=3, cardinality=4.0, random_state=0
    )
    model = neighbors.KNeighborsClassifier(15).fit(X[:3000], Y[:3000])
    accuracy = (model.predict(X[3000:]) == Y[3000:]).mean()
    frequency = Y[:3000].mean(axis=0)
    constant = (Y[3000:] == (frequency > 0.5)).mean()
    assert accuracy > constant + 0.05


# --- both -----------------------------------------------------------------------------


@pytest.mark.parametrize("make", GENERATORS)
def test_the_same_seed_gives_the_same_data_and_another_seed_does_not(make):
    X, Y = make(60, random_state=5)
    X_same, Y_same = make(60, random_state=5)
    X_other, Y_other = make(60, random_state=6)
    np.testing.assert_array_equal(X, X_same)
    np.testing.assert_array_equal(Y, Y_same)
    assert not np.array_equal(X, X_other)
    assert not np.array_equal(Y, Y_other)


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize(
    "source", [np.random.default_rng, np.random.RandomState, np.int64], ids=lambda s: s.__name__
)
def test_random_state_may_be_any_of_numpys_sources(make, source):
    np.testing.assert_array_equal(
        make(20, random_state=source(7))[1], make(20, random_state=source(7))[1]
    )


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_a_generator_moves_on_from_call_to_call(make, source):
    rng = source(0)
    assert not np.array_equal(make(20, random_state=rng)[0], make(20, random_state=rng)[0])


@pytest.mark.parametrize("make", GENERATORS)
def test_no_random_state_gives_new_data_at_every_call(make):
    assert not np.array_equal(make(20)[0], make(20)[0])


@pytest.mark.parametrize("make", GENERATORS)
def test_the_global_random_state_is_left_alone(make):
    np.random.seed(0)  # noqa: NPY002 - the legacy state is what must not move
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make(20, random_state=0)
    make(20)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize(
    ("error", "params", "message"),
    [
        (ValueError, {"n_rows": 0}, "n_rows=0 is too small: pass an int, . or more."),
        (TypeError, {"n_rows": 10.0}, "n_rows=10.0 is not an integer: pass an int, . or more."),
        (TypeError, {"n_rows": True}, "n_rows=True is not an integer: pass an int, . or more."),
        (ValueError, {"n_outputs": -1}, "n_outputs=-1 is too small: pass an int, 1 or more."),
        (ValueError, {"random_state": -3}, "random_state=-3 is too small: pass an int, 0 or more,"),
        (TypeError, {"random_state": "7"}, "random_state='7' is not an integer: pass an int, 0 or"),
    ],
)
def test_a_bad_common_parameter_is_named_with_its_value_and_the_remedy(
    make, error, params, message
):
    with pytest.raises(error, match=f"^{message}"):
        make(**params)


@pytest.mark.parametrize("make", FRIEDMAN)
@pytest.mark.parametrize(
    ("error", "params", "message"),
    [
        (ValueError, {"noise": -1.0}, "noise=-1.0 is not a standard deviation: pass a finite"),
        (ValueError, {"noise": float("nan")}, "noise=nan is not a standard deviation: pass"),
        (ValueError, {"noise": float("inf")}, "noise=inf is not a standard deviation: pass"),
        (TypeError, {"noise": "1"}, "noise='1' is not a number: pass an int or a float."),
        (ValueError, {"distribution": "gamma"}, "distribution='gamma' is unknown: pass"),
    ],
)
def test_a_bad_friedman_parameter_is_named_with_its_value_and_the_remedy(
    make, error, params, message
):
    with pytest.raises(error, match=f"^{message}"):
        make(**params)


@pytest.mark.parametrize(
    ("error", "params", "message"),
    [
        (ValueError, {"n_rows": 1}, "n_rows=1 is too small: pass an int, 2 or more."),
        (ValueError, {"n_features": 0}, "n_features=0 is too small: pass an int, 1 or more."),
        (ValueError, {"rank": 0}, "rank=0 is too small: pass an int, 1 or more."),
        (TypeError, {"rank": 1.5}, "rank=1.5 is not an integer: pass an int, 1 or more."),
        (TypeError, {"cardinality": "3"}, "cardinality='3' is not a number: pass an int or"),
        (ValueError, {"cardinality": 0}, "cardinality=0 is not possible with n_outputs=50: pass"),
        (ValueError, {"cardinality": 50}, "cardinality=50 is not possible with n_outputs=50:"),
    ],
)
def test_a_bad_multilabel_parameter_is_named_with_its_value_and_the_remedy(error, params, message):
    with pytest.raises(error, match=f"^{message}"):
        make_low_rank_multilabel(**params)


@pytest.mark.parametrize("make", GENERATORS)
def test_everything_after_n_rows_is_keyword_only(make):
    with pytest.raises(TypeError, match="positional"):
        make(10, 4)


def test_very_many_labels_follow_their_topics_and_zipfs_law():
    X, Y, best = make_many_labels(
        5000, n_labels=10_000, n_topics=20, random_state=0, return_best=True
    )
    assert (X.shape, Y.shape) == ((5000, 1000), (5000, 10_000))
    assert (np.diff(Y.indptr) == 5).all()
    assert np.diff(X.indptr).mean() == pytest.approx(18.4, abs=0.5)
    hits = np.asarray(Y[np.arange(5000), best]).ravel()
    assert 0.35 < hits.mean() < 0.7
    counts = np.sort(np.bincount(Y.indices, minlength=10_000))[::-1]
    # A power law with an exponent near one: the first tenth of the labels has most of the rows.
    assert counts[:1000].sum() > 0.6 * counts.sum()
    again, _ = make_many_labels(5000, n_labels=10_000, n_topics=20, random_state=0)
    assert (again != X).nnz == 0
    with pytest.raises(ValueError, match="n_labels=10 is too small"):
        make_many_labels(100, n_labels=10)
