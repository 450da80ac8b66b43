"""Folds: how rows fall into them, and members that train in lockstep."""

from unittest import mock

import numpy as np
import pytest
from scipy import sparse

from manyboost import ManyBoostClassifier, ManyBoostRegressor, _core
from manyboost.data.cells import TargetKind
from manyboost.data.rows import make_rows
from manyboost.training.folds import assign_folds, group_numbers, mean_model


def rows_of(Y, kind=TargetKind.REAL):
    return make_rows(np.zeros((len(Y), 1), np.float32), Y, None, "sample_weight", kind=kind)


def problem(n=200, d=4, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, np.sin(X @ rng.normal(size=(5, d))) + noise * rng.normal(size=(n, d))


def regressor(**parameters):
    settings = {"n_folds": 3, "max_iter": 20, "max_leaf_nodes": 6, "random_state": 0}
    return ManyBoostRegressor(**settings | parameters)


# How rows fall into folds --------------------------------------------------------------------


@pytest.mark.parametrize("n_folds", [2, 5, 23])
def test_folds_have_the_same_size_up_to_a_row(n_folds):
    fold = assign_folds(rows_of(np.zeros((23, 2))), n_folds, 0, None)
    counts = np.bincount(fold, minlength=n_folds)
    assert counts.sum() == 23
    assert counts.max() - counts.min() <= 1


def test_another_seed_gives_other_folds():
    rows = rows_of(np.zeros((50, 1)))
    folds = [assign_folds(rows, 5, seed, None) for seed in (0, 0, 1)]
    assert np.array_equal(folds[0], folds[1])
    assert not np.array_equal(folds[0], folds[2])


def test_classes_are_spread_over_the_folds():
    y = np.repeat([0, 1, 2], [60, 30, 10]).astype(np.uint32)
    fold = assign_folds(rows_of(y, TargetKind.CLASSES), 5, 0, None)
    for k, count in enumerate([12, 6, 2]):
        assert (np.bincount(fold[y == k]) == count).all()


def test_rare_labels_are_spread_over_the_folds():
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 6)) < 0.3).astype(np.uint8)
    rare = rng.choice(200, 10, replace=False)
    Y[:, 3] = 0
    Y[rare, 3] = 1
    fold = assign_folds(rows_of(Y, TargetKind.LABELS), 5, 0, None)
    assert (np.bincount(fold[rare], minlength=5) == 2).all()


@pytest.mark.filterwarnings("error")
def test_classes_of_fewer_rows_than_folds_are_spread_together():
    y = np.r_[np.zeros(40), [1, 1, 2, 3, 4, 5]].astype(np.uint32)
    fold = assign_folds(rows_of(y, TargetKind.CLASSES), 5, 0, None)
    assert np.bincount(fold, minlength=5).min() >= 8
    lonely = np.r_[np.zeros(40), [1]].astype(np.uint32)
    assert len(np.unique(assign_folds(rows_of(lonely, TargetKind.CLASSES), 5, 0, None))) == 5


@pytest.mark.parametrize("kind", [TargetKind.REAL, TargetKind.CLASSES])
def test_groups_stay_together(kind):
    groups = np.repeat(np.arange(20), 5)
    Y = np.zeros((100, 1)) if kind is TargetKind.REAL else (np.arange(100) % 2).astype(np.uint32)
    fold = assign_folds(rows_of(Y, kind), 4, 0, groups)
    assert all(len(set(fold[groups == g])) == 1 for g in range(20))
    assert (np.bincount(fold) == 25).all()


def test_groups_may_have_any_names():
    assert group_numbers(["a", 1, None.__class__, "a"], 4).tolist() == [0, 1, 2, 0]
    with pytest.raises(ValueError, match=r"groups\[1\] is missing; give every row a group"):
        group_numbers(["a", np.nan], 2)
    with pytest.raises(
        ValueError, match=r"shape \(2, 1\); it must have one group for each of the 2"
    ):
        group_numbers(np.zeros((2, 1)), 2)


# What members do -----------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["independent", "multioutput", "project", "relabel"])
def test_the_model_is_the_mean_of_its_members(strategy):
    X, Y = problem()
    model = regressor(strategy=strategy).fit(X, Y)
    members = model._member_raw(X)
    assert members.shape == (3, 200, 4)
    np.testing.assert_allclose(members.mean(axis=0), model.predict(X), atol=1e-5)
    assert np.abs(members[0] - members[1]).max() > 0.01


def test_every_stage_is_the_mean_of_the_members_at_that_stage():
    X, Y = problem()
    model = regressor().fit(X, Y)
    stages = list(model.staged_predict(X))
    assert len(stages) == model.n_iter_
    for m in (1, 7):
        shorter = regressor(max_iter=m).fit(X, Y)
        assert (shorter.best_iter_per_fold_ == m).all()
        np.testing.assert_allclose(stages[m - 1], shorter.predict(X), atol=1e-5)


def test_a_row_is_predicted_by_the_member_that_has_not_seen_it():
    X, Y = problem()
    model = regressor().fit(X, Y)
    members = model._member_raw(X)
    apart = np.abs(members - model.oof_prediction_).max(axis=2)
    assert (apart.min(axis=0) < 1e-5).all()
    fold = apart.argmin(axis=0)
    assert (np.bincount(fold) >= 66).all()
    other = Y.copy()
    other[fold == 0] += 5.0
    again = regressor().fit(X, other)
    # Its own targets do not matter to what a row is told, but for the rounds that others choose.
    if (again.best_iter_per_fold_[0], model.best_iter_per_fold_[0]) == (20, 20):
        np.testing.assert_array_equal(
            again.oof_prediction_[fold == 0], model.oof_prediction_[fold == 0]
        )


def test_the_rounds_of_a_member_do_not_depend_on_its_own_fold():
    X, Y = problem(noise=1.0)
    model = regressor(max_iter=100, n_iter_no_change=10).fit(X, Y)
    members = [m.boosting for m in _members_of(regressor(max_iter=100, n_iter_no_change=10), X, Y)]
    assert len(set(model.best_iter_per_fold_)) > 1
    curves = [np.array(each.validation.ratings.values) for each in members]
    sizes = [each.validation.objective.n_rows for each in members]
    n_rounds = members[0].complete.n_rounds
    for k, best in enumerate(model.best_iter_per_fold_):
        others = [j for j in range(3) if j != k]
        mean = np.average([curves[j] for j in others], axis=0, weights=[sizes[j] for j in others])
        assert best == mean[: n_rounds + 1].argmax()


def test_rounds_at_a_time_make_no_difference():
    X, Y = problem(noise=1.0)
    models = []
    for stride in (1, 3, 8):
        with mock.patch("manyboost.training.folds._STRIDE", stride):
            models.append(regressor(max_iter=100, n_iter_no_change=10).fit(X, Y))
    for other in models[1:]:
        assert np.array_equal(other.predict(X), models[0].predict(X))
        assert np.array_equal(other.output_importances_, models[0].output_importances_)
        assert np.array_equal(other.train_score_, models[0].train_score_)
        assert np.array_equal(other.validation_score_, models[0].validation_score_)


def test_training_ends_when_the_mean_of_the_members_no_longer_improves():
    X, Y = problem(noise=1.0)
    members = [m.boosting for m in _members_of(regressor(max_iter=200, n_iter_no_change=7), X, Y)]
    curves = [np.array(each.validation.ratings.values) for each in members]
    sizes = [each.validation.objective.n_rows for each in members]
    mean = np.average(curves, axis=0, weights=sizes)
    n_rounds = members[0].complete.n_rounds
    assert n_rounds == mean[: n_rounds + 1].argmax() + 7 < 200
    assert [each.n_rounds for each in members] == [n_rounds] * 3  # and none is made in vain


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_members_share_the_cuts_of_all_rows(form):
    X, Y = problem()
    X = np.where(np.random.default_rng(0).random(X.shape) < [0, 0.05, 0.5, 0.9, 0.97], 0, X)
    members = _members_of(regressor(max_bins=20), form(X), Y)
    pool = _core.Pool(1)
    single = X.astype(np.float32)
    expected = _core.Features.fit(pool, single, None, 20)
    for member in members:
        fitted = member.boosting.learner.features
        seen = ~np.isin(np.arange(200), member.rows.numbers)
        for data, rows in [(fitted, seen), (member.boosting.validation.data, ~seen)]:
            binned = expected.bin(pool, single[rows])
            for j in range(5):
                assert np.array_equal(data.thresholds(j), expected.thresholds(j))
                assert np.array_equal(data.column(j), binned.column(j))


def test_cuts_see_no_targets():
    X, Y = problem()
    thresholds = []
    for y in (Y[:, 0] > 0, Y[:, 1] > 0):
        model = ManyBoostClassifier(n_folds=3, max_iter=3, max_bins=9, class_weight={True: 5})
        members = _members_of(model.set_params(random_state=0), X, y)
        thresholds.append([members[0].boosting.learner.features.thresholds(j) for j in range(5)])
    assert np.array_equal(*thresholds)


def _members_of(model, X, Y):
    """The members of a fit, as training leaves them."""
    from manyboost.training.folds import FoldedBoosting

    kept = []
    run = FoldedBoosting.run

    def remember(self):
        run(self)
        kept.extend(self.members)

    with (
        mock.patch.object(FoldedBoosting, "run", remember),
        mock.patch("manyboost.training.progress.Progress.truncate"),
    ):
        model.fit(X, Y)
    return kept


@pytest.mark.parametrize("d", [1, 8])
def test_pure_noise_is_not_predicted_out_of_fold(d):
    rng = np.random.default_rng(0)
    scores = []
    for seed in range(20):
        X, Y = rng.normal(size=(100, 5)), rng.normal(size=(100, d))
        model = ManyBoostRegressor(n_folds=5, max_iter=100, random_state=seed).fit(X, Y)
        error = ((Y - model.oof_prediction_) ** 2).sum(axis=0)
        scores.append(np.mean(1 - error / ((Y - Y.mean(axis=0)) ** 2).sum(axis=0)))
    assert np.mean(scores) <= 0


def test_out_of_fold_scores_are_those_of_new_rows():
    X, Y = problem(900)
    model = ManyBoostRegressor(n_folds=5, max_iter=200, random_state=0).fit(X[:300], Y[:300])
    unseen = 1 - ((Y[:300] - model.oof_prediction_) ** 2).mean() / Y[:300].var(axis=0).mean()
    members = model._member_raw(X[300:])
    new = np.mean(
        [1 - ((Y[300:] - raw) ** 2).mean() / Y[300:].var(axis=0).mean() for raw in members]
    )
    assert abs(unseen - new) < 0.06


def test_means_of_curves_go_on_with_the_last_value():
    X, Y = problem(noise=1.0)
    members = _members_of(regressor(max_iter=30, n_iter_no_change=5), X, Y)
    parts = [member.kept(copied=True) for member in members]
    parts[0].truncate(2)
    mean = mean_model(parts)
    assert len(mean.train_score) == mean.n_rounds + 1 == max(p.n_rounds for p in parts) + 1
    last = [parts[0].train_score[-1], parts[1].train_score[3], parts[2].train_score[3]]
    assert mean.train_score[3] == pytest.approx(np.mean(last))


def test_labels_and_classes():
    X, Y = problem(noise=0.1)
    labels = ManyBoostClassifier(n_folds=4, max_iter=30, random_state=0).fit(X, Y > 0)
    assert labels.oof_decision_function_.shape == (200, 4)
    assert ((labels.oof_decision_function_ > 0) == (Y > 0)).mean() > 0.75
    y = np.array(["a", "b", "c"])[Y[:, :3].argmax(axis=1)]
    classes = ManyBoostClassifier(n_folds=4, max_iter=30, random_state=0).fit(X, y)
    assert (classes.classes_[classes.oof_decision_function_.argmax(axis=1)] == y).mean() > 0.5
    binary = ManyBoostClassifier(n_folds=4, max_iter=30, random_state=0).fit(X, y == "a")
    assert binary.oof_decision_function_.shape == (200,)


def test_thresholds_are_tuned_on_rows_that_were_not_seen():
    X, Y = problem(noise=1.0)
    labels = (Y > 0.8).astype(int)
    model = ManyBoostClassifier(n_folds=4, thresholds="tuned", max_iter=30, random_state=0)
    model.fit(X, labels)
    proba = 1 / (1 + np.exp(-model.oof_decision_function_))

    def f1(threshold, j):
        found = proba[:, j] > threshold
        both = (found & (labels[:, j] == 1)).sum()
        return 2 * both / max(1, found.sum() + labels[:, j].sum())

    for j in range(4):
        grid = [f1(t, j) for t in np.linspace(0.01, 0.99, 99)]
        assert f1(model.thresholds_[j], j) >= max(grid) - 1e-12


def test_missing_targets_weights_offsets_and_quantiles():
    X, Y = problem()
    rng = np.random.default_rng(1)
    partial = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    partial[:, 0] = Y[:, 0]
    partial[0] = np.nan
    offset, weight = rng.normal(size=Y.shape), rng.random(200) + 0.5
    model = regressor().fit(X, partial, weight, offset=offset)
    assert np.isnan(model.oof_prediction_[0]).all()
    assert np.isfinite(model.oof_prediction_[1:]).all()
    assert model.predict(X, offset=offset).shape == Y.shape
    levels = regressor(loss="quantile", quantile=[0.1, 0.9]).fit(X, Y[:, 0])
    assert levels.oof_prediction_.shape == (200, 2)
    assert (np.diff(levels.oof_prediction_, axis=1) >= 0).all()
    per_output = regressor(early_stopping="per_output", max_iter=60).fit(X, Y)
    assert np.isfinite(per_output.predict(X)).all()
    mixed = regressor(loss=["huber", "squared_error", "squared_error", "absolute_error"]).fit(X, Y)
    assert np.isfinite(mixed.oof_prediction_).all()


def test_an_output_that_only_one_fold_observes_is_refused():
    X, Y = problem()
    Y[1:, 2] = np.nan
    with pytest.raises(ValueError, match="Output 2 is observed in one of the folds only"):
        regressor().fit(X, Y)


def test_the_model_does_not_depend_on_threads():
    X, Y = problem()
    for strategy in ["independent", "project", "relabel"]:
        for more in [{}, {"refit_all": True}]:
            models = [
                regressor(strategy=strategy, n_jobs=n_jobs, **more).fit(X, Y) for n_jobs in (1, 3)
            ]
            first, second = (each._progress.model.trees.to_bytes() for each in models)
            assert first == second
            assert np.array_equal(models[0].oof_prediction_, models[1].oof_prediction_)
            again = [each.refit(X[:150], Y[:150])._progress.model.trees for each in models]
            assert again[0].to_bytes() == again[1].to_bytes() != first


def test_callbacks_and_time_end_all_members_together():
    X, Y = problem()
    seen = []

    def stop(state):
        seen.append(state)
        return state.round == 4

    model = regressor(callbacks=[stop]).fit(X, Y)
    assert [state.round for state in seen] == [1, 2, 3, 4]
    assert model.best_iter_per_fold_.tolist() == [4, 4, 4]
    assert seen[-1].validation_score == pytest.approx(model.validation_score_[-1])
    assert regressor(max_time=1e-9, max_iter=1000).fit(X, Y).n_iter_ == 1


def test_an_interrupt_keeps_the_rounds_that_members_have():
    X, Y = problem()

    def interrupt(state):
        if state.round == 5:
            raise KeyboardInterrupt

    model = regressor(callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.n_iter_ == 5
    assert model.predict(X).shape == Y.shape


@pytest.mark.parametrize(
    ("parameters", "fit", "sentence"),
    [
        ({"warm_start": True}, {}, "n_folds=3 trains a model anew; use warm_start=False."),
        ({"early_stopping": False}, {}, "n_folds=3 needs early stopping"),
        ({}, {"X_val": 1, "Y_val": 1}, "n_folds=3 scores on folds of X, but X_val was given"),
        ({"n_folds": 201}, {}, "n_folds=201 needs as many rows, but there are 200; use fewer."),
        ({}, {"groups": np.arange(200) % 2}, "groups has 2 different groups"),
        ({"n_folds": None}, {"groups": np.arange(200)}, "only n_folds and a splitter"),
        ({"refit_all": True, "n_folds": None}, {"X_val": 1, "Y_val": 1}, "refit_all=True fits to"),
    ],
)
def test_what_does_not_go_with_folds_is_refused(parameters, fit, sentence):
    X, Y = problem()
    fit = fit | ({"X_val": X, "Y_val": Y} if "X_val" in fit else {})
    with pytest.raises(ValueError, match=sentence.replace(".", r"\.")):
        regressor(**parameters).fit(X, Y, **fit)


def test_folds_need_built_in_trees():
    from sklearn.tree import DecisionTreeRegressor

    X, Y = problem()
    with pytest.raises(ValueError, match="n_folds works with built-in trees only"):
        regressor(estimator=DecisionTreeRegressor()).fit(X, Y)
