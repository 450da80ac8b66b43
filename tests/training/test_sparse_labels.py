"""Labels that stay sparse: the same models as with dense ones, without their arrays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from manyboost import ManyBoostClassifier, load
from manyboost.estimators import sparsity
from manyboost.metrics import TopKScorer, ndcg_at_k, precision_at_k
from manyboost.training.projections import PROJECTIONS

RNG = np.random.default_rng(0)
N, P, D = 400, 12, 30
X = RNG.normal(size=(N, P)).astype(np.float32)
SIGNAL = X @ RNG.normal(size=(P, D)) + RNG.normal(size=(N, D))
RANK = SIGNAL.argsort(axis=0).argsort(axis=0)
Y = (N * (1 - 1 / (2 + np.arange(D))) <= RANK).astype(np.uint8)  # ever rarer labels
Y[:, 7] = 0  # a label that no row has
LABELS = sparse.csr_matrix(Y)
WEIGHT = RNG.integers(0, 4, N) / 2
DRAWN = [name for name, family in PROJECTIONS.items() if family.draw is not None]
PARAMETERS = {"loss": "squared_error", "max_iter": 25, "random_state": 5, "learning_rate": 0.3}


@pytest.fixture
def stay_sparse(monkeypatch):
    """Sparse labels stay sparse however few they are."""
    monkeypatch.setattr(sparsity, "SPARSE_CELLS", 1)


def fitted(labels=LABELS, weight=None, **parameters):
    parameters = {**PARAMETERS, **parameters}
    return ManyBoostClassifier(**parameters).fit(X, labels, weight)


def is_sparse(model):
    return model._progress.importances is None


def assert_same_model(sparse_one, dense_one):
    """Trees, raw predictions and curves agree."""
    assert is_sparse(sparse_one)
    assert not is_sparse(dense_one)
    assert np.array_equal(sparse_one.apply(X), dense_one.apply(X))
    expected = dense_one.decision_function(X)
    assert np.abs(sparse_one.decision_function(X) - expected).max() < 1e-5
    assert np.allclose(sparse_one.train_score_, dense_one.train_score_, rtol=1e-5, atol=1e-7)


def assert_same_values(sparse_one, dense_one, weight, labels=Y):
    """Given the same trees, their leaves, raw predictions and curves agree."""
    dense_one._progress.model = sparse_one._progress.model
    assert_same_model(sparse_one, dense_one.refit(X, labels, weight))


@pytest.mark.parametrize("projection", DRAWN)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
class TestTheModelIsThatOfDenseLabels:
    """Ties between splits are broken by rounding, so with sparse projections trees may differ."""

    def test_project(self, stay_sparse, projection, weight):
        kept = fitted(strategy="project", projection=projection, weight=weight)
        dense_one = fitted(Y, weight, strategy="project", projection=projection)
        if projection == "gaussian":
            assert_same_model(kept, dense_one)
        assert_same_values(kept, dense_one, weight)

    @pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
    def test_relabel_with_all_outputs(self, projection, weight, loss):
        shared = {"projection": projection, "weight": weight, "n_components": 3, "loss": loss}
        kept, dense_one = fitted(max_leaf_outputs=D, **shared), fitted(Y, **shared)
        if projection == "gaussian":
            assert_same_model(kept, dense_one)
        assert_same_values(kept, dense_one, weight)


def cells_with_weights():
    """Labels with missing cells and weights of cells: sparse, and as arrays of all cells."""
    rng = np.random.default_rng(3)
    weight = np.ones((N, D))
    some = rng.random((N, D)) < 0.2
    weight[some] = rng.choice([0, 0.5, 3], some.sum())
    holes = np.where(rng.random((N, D)) < 0.1, np.nan, Y)
    holes[5] = np.nan  # of a row nothing is known but one label
    holes[5, 3], weight[5, 3] = 1, 2
    rows, columns = np.nonzero(weight != 1)
    single = sparse.coo_array((weight[rows, columns], (rows, columns)), shape=weight.shape)
    stored = np.nonzero(np.isnan(holes) | (holes == 1))
    labels = sparse.csr_array((holes[stored], stored), shape=holes.shape)
    return (labels, single), (holes, weight)


@pytest.mark.parametrize("projection", DRAWN)
@pytest.mark.parametrize(
    ("strategy", "loss"),
    [("project", "squared_error"), ("relabel", "squared_error"), ("relabel", "log_loss")],
)
class TestMissingLabelsAndWeightsOfCells:
    def check(self, projection, strategy, loss, sparse_data, dense_data, **parameters):
        shared = {"strategy": strategy, "loss": loss, "projection": projection, **parameters}
        most = {"max_leaf_outputs": D} if strategy == "relabel" else {}
        kept, dense_one = fitted(*sparse_data, **shared, **most), fitted(*dense_data, **shared)
        assert np.allclose(kept.baseline_, dense_one.baseline_, atol=1e-6)
        if projection == "gaussian":
            assert_same_model(kept, dense_one)
        assert_same_values(kept, dense_one, dense_data[1], dense_data[0])

    def test_missing_labels(self, stay_sparse, projection, strategy, loss):
        (labels, _), (holes, _) = cells_with_weights()
        self.check(projection, strategy, loss, (labels, WEIGHT), (holes, WEIGHT))

    def test_weights_of_cells(self, stay_sparse, projection, strategy, loss):
        (_, single), (_, weight) = cells_with_weights()
        self.check(projection, strategy, loss, (LABELS, single), (Y, weight), n_components=1)

    def test_both(self, stay_sparse, projection, strategy, loss):
        options = {"l2_regularization": 0.5, "step": "newton"}
        self.check(projection, strategy, loss, *cells_with_weights(), **options)

    @pytest.mark.parametrize("class_weight", [{1: 4.0}, [{1: 1 + j % 3} for j in range(D)]])
    def test_weights_of_labels(self, stay_sparse, projection, strategy, loss, class_weight):
        data = (LABELS, WEIGHT), (Y, WEIGHT)
        self.check(projection, strategy, loss, *data, class_weight=class_weight)


@pytest.mark.parametrize(
    ("strategy", "loss"),
    [("project", "squared_error"), ("relabel", "squared_error"), ("relabel", "log_loss")],
)
@pytest.mark.parametrize("by_cell", [False, True], ids=["by row", "by cell"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"subsample": 0.6},
        {"l2_regularization": 3.0, "step": "newton"},
        {"output_weight": np.linspace(0, 2, D)},
        {"early_stopping": True, "validation_fraction": 0.3},
        {"early_stopping": True, "validation_fraction": 0.3, "subsample": 0.7},
        {"early_stopping": True, "refit_all": True},
        {"max_features": 0.5},
        {"interaction_cst": "pairwise"},
    ],
    ids=lambda parameters: "-".join(parameters),
)
def test_parameters_have_the_same_effect(stay_sparse, strategy, loss, parameters, by_cell):
    most = {"max_leaf_outputs": D} if strategy == "relabel" else {}
    shared = {"strategy": strategy, "loss": loss, **parameters}
    data = cells_with_weights() if by_cell else ((LABELS, WEIGHT), (Y, WEIGHT))
    kept, dense_one = fitted(*data[0], **shared, **most), fitted(*data[1], **shared)
    assert kept.n_iter_ == dense_one.n_iter_
    assert_same_model(kept, dense_one)
    if "refit_all" not in parameters and "early_stopping" in parameters:
        scores = kept.validation_score_, dense_one.validation_score_
        assert np.allclose(*scores, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("strategy", ["project", "relabel"])
def test_leaves_of_more_than_one_byte_are_told_apart(stay_sparse, strategy):
    rng = np.random.default_rng(1)
    X, signal = rng.normal(size=(2000, 6)), rng.normal(size=(2000, 40))
    Y = (signal + X[:, :1] > 1).astype(np.uint8)
    shared = {**PARAMETERS, "max_iter": 4, "max_leaf_nodes": 300, "min_samples_leaf": 5}
    most = {"max_leaf_outputs": 40} if strategy == "relabel" else {}
    kept = ManyBoostClassifier(**shared, strategy=strategy, **most).fit(X, sparse.csr_matrix(Y))
    dense_one = ManyBoostClassifier(**shared, strategy=strategy).fit(X, Y)
    assert kept.apply(X).max() == 299
    assert np.array_equal(kept.apply(X), dense_one.apply(X))
    raw = kept.decision_function(X), dense_one.decision_function(X)
    assert np.abs(raw[0] - raw[1]).max() < 1e-5


def test_a_line_search_of_project_is_the_same(stay_sparse):
    kept = fitted(strategy="project", step="line_search")
    assert_same_model(kept, fitted(Y, strategy="project", step="line_search"))


def test_validation_rows_of_any_form_are_scored(stay_sparse):
    shared = {"strategy": "project", **PARAMETERS}
    labels = [frozenset(np.flatnonzero(row).tolist()) for row in Y]
    curves = []
    for Y_val in (LABELS[300:], Y[300:], sparse.coo_array(LABELS[300:])):
        model = ManyBoostClassifier(**shared)
        model.fit(X[:300], LABELS[:300], X_val=X[300:], Y_val=Y_val)
        curves.append(model.validation_score_)
    assert np.array_equal(curves[0], curves[1])
    assert np.array_equal(curves[0], curves[2])
    named = ManyBoostClassifier(**PARAMETERS, max_leaf_outputs=4).fit(X, labels)
    assert is_sparse(named)
    assert np.array_equal(named.classes_, np.delete(np.arange(D), 7))


def test_missing_labels_of_any_form_are_the_same(stay_sparse):
    (labels, _), (holes, _) = cells_with_weights()
    raw = [fitted(y, max_leaf_outputs=5).decision_function(X) for y in (labels, holes)]
    assert np.array_equal(*raw)
    assert is_sparse(fitted(labels, strategy="project"))
    stopped = {"max_leaf_outputs": 5, "early_stopping": True}
    curves = [fitted(y, **stopped).validation_score_ for y in (labels, holes)]
    assert np.array_equal(*curves)
    stopped["max_leaf_outputs"] = D
    expected = fitted(holes, early_stopping=True).validation_score_
    assert np.allclose(fitted(labels, **stopped).validation_score_, expected, rtol=1e-5)


def test_dense_labels_stay_dense_unless_leaves_have_few_outputs(stay_sparse):
    assert not is_sparse(fitted(Y, strategy="project"))
    few = fitted(Y, max_leaf_outputs=5)
    assert is_sparse(few)
    assert np.array_equal(few.decision_function(X), fitted(max_leaf_outputs=5).decision_function(X))


def test_few_cells_become_dense():
    assert not is_sparse(fitted(strategy="project"))


@pytest.mark.parametrize(
    "parameters",
    [
        {"strategy": "project"},
        {"max_leaf_outputs": 4},
        {"max_leaf_outputs": 4, "loss": "log_loss"},
    ],
    ids=str,
)
@pytest.mark.parametrize("by_cell", [False, True])
def test_the_same_bytes_for_any_number_of_threads(stay_sparse, tmp_path, parameters, by_cell):
    files, data = [], cells_with_weights()[0] if by_cell else (LABELS, WEIGHT)
    for n_jobs in (1, 2, 3):
        model = fitted(*data, **parameters, n_jobs=n_jobs, n_components=1)
        model.set_params(n_jobs=None).save(tmp_path / "model")
        files.append((tmp_path / "model").read_bytes())
    assert files[0] == files[1] == files[2]


class TestLeavesOfAFewOutputs:
    def test_a_leaf_keeps_the_outputs_of_largest_residual_sums(self):
        few, everything = fitted(max_leaf_outputs=4, max_iter=1), fitted(Y, max_iter=1)
        leaves = everything.leaf_values(0)
        best = np.argsort(-np.abs(leaves), axis=1, kind="stable")[:, :4]
        expected = np.zeros_like(leaves)
        np.put_along_axis(expected, best, np.take_along_axis(leaves, best, 1), 1)
        assert np.allclose(few.leaf_values(0), expected, atol=1e-6)

    def test_with_the_log_loss_it_keeps_those_that_gain_most(self):
        shared = {"loss": "log_loss", "max_iter": 1, "l2_regularization": 2.0, "learning_rate": 1.0}
        few = fitted(max_leaf_outputs=4, weight=WEIGHT, **shared)
        leaf, share = few.apply(X)[:, 0], np.average(Y, axis=0, weights=WEIGHT)
        for k, found in enumerate(few.leaf_values(0)):
            weight = WEIGHT * (leaf == k)
            slope = weight @ (Y - share)
            damped = weight.sum() * share * (1 - share) + 2.0
            best = np.sort(np.argsort(-(slope**2) / damped, kind="stable")[:4])
            assert np.array_equal(np.flatnonzero(found), best)
            assert np.allclose(found[best], slope[best] / damped[best], rtol=1e-4)

    def test_over_predicted_outputs_get_negative_values(self):
        assert min(fitted(max_leaf_outputs=4).leaf_values(t).min() for t in range(25)) < 0

    def test_the_training_loss_falls_and_is_that_of_the_predictions(self):
        model = fitted(max_leaf_outputs=4, weight=WEIGHT)
        assert (np.diff(model.train_score_) > 0).all()
        squares = (2.0 * Y - 1 - model.decision_function(X)) ** 2
        loss = 0.5 * np.average(squares.mean(axis=1), weights=WEIGHT)
        assert model.train_score_[-1] == pytest.approx(-loss, rel=1e-5)

    def test_so_it_is_with_the_log_loss(self):
        model = fitted(max_leaf_outputs=4, weight=WEIGHT, loss="log_loss")
        assert (np.diff(model.train_score_) > 0).all()
        raw = model.decision_function(X)
        losses = np.logaddexp(0, np.where(Y == 1, -raw, raw)).mean(axis=1)
        expected = np.average(losses, weights=WEIGHT)
        assert model.train_score_[-1] == pytest.approx(-expected, rel=1e-5)
        assert np.allclose(model.predict_proba(X), 1 / (1 + np.exp(-raw)))

    def test_the_support_is_where_predictions_leave_the_baseline(self):
        model = fitted(max_leaf_outputs=2, max_iter=3)
        support, raw = model.decision_function(X, sparse_output=True), model.decision_function(X)
        assert support.shape == raw.shape
        spread = np.tile(model.baseline_, (N, 1))
        spread[np.repeat(np.arange(N), np.diff(support.indptr)), support.indices] = support.data
        assert np.array_equal(spread, raw)

    def test_the_best_labels_are_those_of_all_predictions(self):
        for max_iter in (1, 25):
            model = fitted(max_leaf_outputs=3, max_iter=max_iter)
            raw = model.decision_function(X)
            for k in (1, 5, D):
                best, scores = model.predict_top_k(sparse.csr_matrix(X), k)
                order = np.argsort(-raw, axis=1, kind="stable")[:, :k]
                assert np.array_equal(best, order)
                assert np.array_equal(scores, np.take_along_axis(raw, order, 1))

    @pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
    def test_files_and_copies_predict_the_same(self, tmp_path, loss):
        model = fitted(max_leaf_outputs=3, loss=loss)
        model.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert loaded.max_leaf_outputs == 3
        assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
        assert np.array_equal(loaded.feature_importances_, model.feature_importances_)
        assert model.info()["format_version"] == 6
        loaded.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
        assert model.first_rounds(5).predict_top_k(X, 2)[0].shape == (N, 2)

    def test_some_outputs_are_predicted_as_in_the_whole(self):
        model = fitted(max_leaf_outputs=3)
        raw = model.decision_function(X)
        assert np.array_equal(model.decision_function(X, outputs=[4, 2]), raw[:, [4, 2]])
        assert np.array_equal(list(model.staged_decision_function(X))[-1], raw)

    @pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
    def test_refit_to_the_same_rows_is_the_same_model(self, loss):
        model = fitted(max_leaf_outputs=3, loss=loss)
        raw = model.decision_function(X)
        assert np.allclose(model.refit(X, LABELS).decision_function(X), raw, atol=1e-6)

    @pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
    def test_refit_knows_missing_labels_and_weights_of_cells(self, loss):
        labels, single = cells_with_weights()[0]
        model = fitted(labels, single, max_leaf_outputs=3, loss=loss)
        raw = model.decision_function(X)
        assert np.allclose(model.refit(X, labels, single).decision_function(X), raw, atol=1e-6)
        assert not np.allclose(model.refit(X, LABELS).decision_function(X), raw, atol=1e-3)

    def test_importances_are_shares_of_the_gain_of_splits(self):
        model = fitted(max_leaf_outputs=3)
        assert model.feature_importances_.sum() == pytest.approx(1)
        with pytest.raises(AttributeError, match="labels were kept sparse"):
            _ = model.output_importances_

    @pytest.mark.parametrize(
        "ask",
        [
            lambda model: model.shap_values(X),
            lambda model: model.to_onnx(),
            lambda model: model.to_treelite(raw=True),
            lambda model: model.output_similarity(),
        ],
    )
    def test_what_needs_all_outputs_is_refused(self, ask):
        with pytest.raises(ValueError, match="values for all outputs; fit with max_leaf"):
            ask(fitted(max_leaf_outputs=3, max_iter=2))


REFUSED = [
    ({"loss": "exponential"}, {}, "loss='exponential'"),
    ({"loss": "log_loss", "strategy": "project"}, {}, "loss='log_loss' and strategy='project'"),
    ({"strategy": "project"}, {}, "strategy='project', whose leaves have one value"),
    ({"strategy": "multioutput"}, {}, "strategy='multioutput'"),
    ({"projection": "identity"}, {}, "projection='identity'"),
    ({"step": "line_search"}, {}, "step='line_search'"),
    ({"class_weight": "balanced"}, {}, "class_weight='balanced'"),
    (
        {"class_weight": {0: 0.5}},
        {},
        "class_weight={0: 0.5} (only weights of present labels can be used",
    ),
    ({"monotonic_cst": [1] * P}, {}, "monotonic_cst="),
    ({"n_folds": 3}, {}, "n_folds=3"),
    ({"calibration": "sigmoid"}, {}, "calibration='sigmoid'"),
    ({"label_hierarchy": {0: 1}}, {}, "label_hierarchy={0: 1}"),
    ({"warm_start": True}, {}, "warm_start=True"),
    ({"checkpoint": "there"}, {}, "checkpoint='there'"),
    ({"thresholds": "tuned"}, {}, "thresholds='tuned'"),
    ({"early_stopping": "per_output"}, {}, "early_stopping='per_output'"),
    ({"scoring": "f1_macro"}, {}, "scoring='f1_macro'"),
    ({}, {"sample_weight": np.ones((N, D))}, "an array of weights for all cells (a sparse one"),
    ({}, {"offset": np.zeros((N, D))}, "an offset"),
]


@pytest.mark.parametrize(("parameters", "arguments", "what"), REFUSED, ids=[r[2] for r in REFUSED])
def test_what_does_not_go_with_few_outputs_is_refused_by_name(parameters, arguments, what):
    model = ManyBoostClassifier(**{**PARAMETERS, "max_leaf_outputs": 3, **parameters})
    with pytest.raises(ValueError, match="max_leaf_outputs=3 does not go with") as error:
        model.fit(X, LABELS, **arguments)
    assert what in str(error.value)


def test_other_refusals_say_what_to_do(stay_sparse):
    (holes, single), _ = cells_with_weights()
    with pytest.raises(ValueError, match=r"sample_weight has shape \(400, 29\); a sparse one"):
        fitted(weight=single.tocsr()[:, 1:], max_leaf_outputs=3)
    single.data[4] = -1
    with pytest.raises(ValueError, match=r"sample_weight is negative \(-1\) in row 0, output 20"):
        fitted(weight=single, max_leaf_outputs=3)
    nobody = np.array(Y, dtype=float)
    nobody[:, 2] = np.nan
    with pytest.raises(ValueError, match="Output 2 of y has no observed value"):
        fitted(nobody, max_leaf_outputs=3)
    once = np.array(Y, dtype=float)
    once[1:, 2] = np.nan
    for split, where in (("random", "drawn for validation"), ("last", "set apart by validation")):
        shown = once if split == "random" else once[::-1]
        stopped = {"early_stopping": True, "validation_split": split, "random_state": 1}
        with pytest.raises(ValueError, match=f"Output 2 is observed only in rows .*{where}"):
            fitted(shown, max_leaf_outputs=3, validation_fraction=0.9, **stopped)
    ranked = {"scoring": TopKScorer("precision", 3), "early_stopping": True}
    with pytest.raises(ValueError, match="knows no missing labels"):
        fitted(holes, max_leaf_outputs=3, **ranked)
    with pytest.raises(ValueError, match="is for labels, but y holds classes"):
        ManyBoostClassifier(**PARAMETERS, max_leaf_outputs=3).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="one weight for each of the 400 rows"):
        fitted(weight=np.ones(3), max_leaf_outputs=3)
    with pytest.raises(ValueError, match="sparse_output=True needs leaves of a few outputs"):
        fitted(strategy="project").decision_function(X, sparse_output=True)
    with pytest.raises(ValueError, match="does not go with outputs"):
        fitted(max_leaf_outputs=3).decision_function(X, sparse_output=True, outputs=[1])


def test_labels_that_cannot_fit_are_refused_with_the_remedy():
    wide = sparse.csr_matrix((N, 3_000_000_000 // 2), dtype=np.uint8)
    with pytest.raises(
        MemoryError, match=r"which loss='exponential' keeps them from.*max_leaf_outputs"
    ):
        ManyBoostClassifier(loss="exponential").fit(X, wide)
    with pytest.raises(MemoryError, match="max_leaf_outputs=None"):
        ManyBoostClassifier(loss="squared_error").fit(X, wide)


class TestScoresOfTheBestLabels:
    def test_they_are_those_of_the_stages_on_the_validation_rows(self):
        shared = {**PARAMETERS, "max_iter": 6, "max_leaf_outputs": 5}
        plain = ManyBoostClassifier(**shared, early_stopping=False).fit(X[:300], LABELS[:300])
        stages = [np.tile(plain.baseline_, (100, 1)), *plain.staged_decision_function(X[300:])]
        expected = [precision_at_k(Y[300:], stage, 3) for stage in stages]
        scorer = [TopKScorer("precision", 3), "loss"]
        model = ManyBoostClassifier(**shared, scoring=scorer)
        model.fit(X[:300], LABELS[:300], X_val=X[300:], Y_val=LABELS[300:])
        curve = model.validation_scores_["precision_at_3"]
        assert len(curve) > 2  # up to the best round
        assert curve.tolist() == pytest.approx(expected[: len(curve)])

    def test_they_look_every_few_rounds_at_some_rows(self):
        scorer = TopKScorer("recall", 2, every=3, n_rows=40)
        shared = {**PARAMETERS, "max_iter": 9, "scoring": scorer, "n_iter_no_change": 50}
        model = ManyBoostClassifier(**shared, max_leaf_outputs=5, early_stopping=True)
        curve = model.fit(X, LABELS).validation_score_
        changes = np.flatnonzero(np.diff(curve)) + 1
        assert len(changes) > 0
        assert set(changes.tolist()) <= {3, 6, 9}

    def test_dense_labels_and_named_ones_are_scored_alike(self):
        names = np.array([f"label {j:02}" for j in range(D)])
        sets = [set(names[row == 1].tolist()) for row in Y]
        scorer, model = TopKScorer("ndcg", 4), fitted(Y, max_iter=5)
        named = ManyBoostClassifier(**{**PARAMETERS, "max_iter": 5}).fit(X, sets)
        present = np.delete(Y, 7, axis=1)
        best, _ = named.predict_top_k(X, 4)
        places = np.searchsorted(named.classes_.astype(str), best.astype(str))
        assert scorer(named, X, sets) == pytest.approx(ndcg_at_k(present, places, 4))
        assert scorer(model, X, Y) == pytest.approx(ndcg_at_k(Y, model.decision_function(X), 4))
        stopped = ManyBoostClassifier(**{**PARAMETERS, "max_iter": 5, "scoring": scorer})
        assert len(stopped.set_params(early_stopping=True).fit(X, Y).validation_score_) <= 6

    def test_wrong_scorers_are_refused(self):
        with pytest.raises(ValueError, match="metric='precison' is unknown"):
            TopKScorer("precison", 3)
        with pytest.raises(ValueError, match="every=0 is not allowed"):
            TopKScorer("recall", 3, every=0)


def test_a_warm_start_keeps_to_leaves_of_a_few_outputs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    labels = (X > 0).astype(int)
    model = ManyBoostClassifier(max_leaf_outputs=2, max_iter=3, random_state=0).fit(X, labels)
    model.set_params(max_leaf_outputs=None, max_iter=6, warm_start=True)
    with pytest.raises(ValueError, match=r"max_leaf_outputs \(now None\) changed since"):
        model.fit(X, labels)
