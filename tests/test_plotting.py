"""Pictures hold what the model says."""

import sys

import numpy as np
import pandas
import pytest

from folded import folded_regressor
from manyboost import ManyBoostClassifier, ManyBoostRegressor, load, plotting
from manyboost.plotting.fits import calibration_points
from refusals import refusal

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

RNG = np.random.default_rng(0)
N, D = 200, 12
X = RNG.normal(size=(N, 6))
GROUP = np.arange(D) % 3
Y = X[:, GROUP] * 3 + RNG.normal(size=(N, D))
LABELS = (Y > 0).astype(int)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    return ManyBoostRegressor(max_iter=15, random_state=0).fit(
        X[:150], Y[:150], X_val=X[150:], Y_val=Y[150:]
    )


@pytest.fixture(scope="module")
def classifier():
    return ManyBoostClassifier(max_iter=15, random_state=0).fit(X[:150], LABELS[:150])


def texts(ax):
    return [text.get_text() for text in ax.texts]


def tick_names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


# ------------------------------------------------------------------ learning curves


def test_learning_curves_are_the_losses(model):
    ax = plotting.plot_learning_curves(model)
    drawn = lines(ax)
    np.testing.assert_array_equal(drawn["training"].get_ydata(), -model.train_score_)
    np.testing.assert_array_equal(drawn["validation"].get_ydata(), -model.validation_score_)
    np.testing.assert_array_equal(drawn["training"].get_xdata(), np.arange(model.n_iter_ + 1))
    assert texts(ax) == [f"best: {model.best_iter_}"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rounds", "mean loss")


def test_curves_are_those_of_the_fit_whatever_scoring_is_now(tmp_path):
    model = ManyBoostRegressor(max_iter=5, random_state=0, scoring="r2", early_stopping=True)
    model.fit(X, Y).set_params(scoring="loss")
    assert plotting.plot_learning_curves(model).get_ylabel() == "r2"

    def of_mine(model, X, y):
        return -float(np.abs(model.predict(X) - y).mean())

    model.set_params(scoring=of_mine).fit(X, Y).save(tmp_path / "model.mb")
    again = load(tmp_path / "model.mb")
    assert plotting.plot_learning_curves(again).get_ylabel() == "of mine"


def test_without_validation_rows_there_is_one_curve():
    model = ManyBoostRegressor(max_iter=4, random_state=0).fit(X, Y)
    ax = plotting.plot_learning_curves(model)
    assert list(lines(ax)) == ["training"]
    assert texts(ax) == []


def test_another_score_is_drawn_under_its_name():
    model = ManyBoostRegressor(max_iter=4, random_state=0, early_stopping=True, scoring="r2")
    ax = plotting.plot_learning_curves(model.fit(X, Y))
    assert ax.get_ylabel() == "r2"
    np.testing.assert_array_equal(lines(ax)["validation"].get_ydata(), model.validation_score_)
    assert "training" not in lines(ax)


def test_curves_of_many_outputs_have_a_median(model):
    ax = plotting.plot_learning_curves(model, per_output=True)
    curves = model.validation_score_per_output_ / model.validation_score_per_output_[0]
    np.testing.assert_allclose(ax.lines[3].get_ydata(), curves[:, 3])
    median = lines(ax)["median of 12 outputs"]
    np.testing.assert_allclose(median.get_ydata(), np.median(curves, axis=1))


def test_curves_of_few_outputs_have_names_and_their_best_rounds():
    model = ManyBoostRegressor(max_iter=20, random_state=0, early_stopping="per_output")
    model.fit(X, Y[:, :3])
    ax = plotting.plot_learning_curves(model, per_output=True)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["y0", "y1", "y2"]
    dots = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    assert dots == model.best_iter_per_output_.tolist()


def test_curves_of_outputs_need_validation_rows():
    model = ManyBoostRegressor(max_iter=2).fit(X, Y)
    sentence = refusal(lambda: plotting.plot_learning_curves(model, per_output=True))
    assert "per_output=False" in sentence


# ------------------------------------------------------------------ importances, similarity


def test_importances_are_sorted_and_named(model):
    ax = plotting.plot_importances(model)
    shares = model.output_importances_
    features = [int(name[1:]) for name in tick_names(ax.xaxis)]
    outputs = [int(name[1:]) for name in tick_names(ax.yaxis)]
    assert features == np.argsort(-shares.mean(axis=0), kind="stable").tolist()
    assert sorted(outputs) == list(range(D))
    drawn = ax.images[0].get_array()
    np.testing.assert_array_equal(drawn, shares[np.ix_(outputs, features)])
    # Outputs of a group are neighbours.
    assert np.count_nonzero(np.diff(GROUP[outputs])) == 2


def test_importances_of_many_are_cut_and_thinned():
    X_wide = RNG.normal(size=(N, 60))
    Y_wide = X_wide @ RNG.normal(size=(60, 100))
    model = ManyBoostRegressor(max_iter=5, random_state=0).fit(X_wide, Y_wide)
    ax = plotting.plot_importances(model, max_features=20, max_outputs=90)
    assert ax.images[0].get_array().shape == (90, 20)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("20 of 60 features", "90 of 100 outputs")
    assert len(tick_names(ax.yaxis)) == 30
    assert len(tick_names(ax.xaxis)) == 20


def test_shares_of_a_model_without_splits_are_zero_on_the_scale():
    model = ManyBoostRegressor(max_iter=2).fit(X, np.zeros((N, 2)))
    (image,) = plotting.plot_importances(model).images
    assert (image.get_array().max(), image.get_clim()) == (0, (0, 1))


def test_long_names_are_cut_wherever_they_could_cover_others():
    long = "a name that is far too long to be drawn as a whole"
    frame = pandas.DataFrame(X, columns=[f"{k} {long}" for k in range(6)])
    targets = pandas.DataFrame(Y[:, :5], columns=[f"{j} {long}" for j in range(5)])
    fitted = ManyBoostRegressor(max_iter=3, n_folds=3, random_state=0).fit(frame, targets)
    for ax in (
        plotting.plot_learning_curves(fitted, per_output=True),
        plotting.plot_importances(fitted),
        plotting.plot_predictions(fitted, frame, targets),
        plotting.plot_coverage(fitted, frame, targets, coverages=[0.5]),
        plotting.plot_widths(fitted, frame),
        plotting.plot_tree(fitted, output=0, max_depth=2),
    ):
        found = [text.get_text() for text in ax.figure.findobj(matplotlib.text.Text)]
        named = [text for text in found if "a name" in text]
        assert named
        assert all("…" in text or text.startswith("tree") for text in named)


def test_similarity_is_drawn_in_the_order_of_its_dendrogram(model):
    ax = plotting.plot_output_similarity(model)
    order = [int(name[1:]) for name in tick_names(ax.xaxis)]
    assert tick_names(ax.yaxis) == tick_names(ax.xaxis)
    assert np.count_nonzero(np.diff(GROUP[order])) == 2
    drawn = ax.images[0].get_array()
    np.testing.assert_array_equal(drawn, model.output_similarity()[np.ix_(order, order)])
    dendrogram = next(other for other in ax.figure.axes if len(other.lines) == D - 1)
    assert dendrogram.get_xlim() == ax.get_xlim()
    heights = [max(line.get_ydata()) for line in dendrogram.lines]
    assert max(heights) > 0.5, "groups meet far up"
    feet = {x for line in dendrogram.lines for x, y in line.get_xydata() if y == 0}
    assert feet == set(range(D))


def test_similarity_of_two_outputs_needs_no_dendrogram():
    model = ManyBoostRegressor(max_iter=3).fit(X, np.column_stack([Y[:, 0], -Y[:, 0]]))
    ax = plotting.plot_output_similarity(model)
    np.testing.assert_allclose(ax.images[0].get_array(), [[1, -1], [-1, 1]], atol=1e-6)


# ------------------------------------------------------------------ trees


def test_a_tree_shows_its_splits_rows_and_leaves():
    model = ManyBoostRegressor(max_iter=1, max_leaf_nodes=3, random_state=0).fit(X, Y[:, 0])
    feature, threshold, left, _, cover, _, _ = model._progress.model.trees.tree(0)
    values = model._progress.model.trees.leaf_values(0)[:, 0]
    ax = plotting.plot_tree(model)
    found = texts(ax)
    assert len(found) == 5
    for k in range(5):
        rows = f"{cover[k]:.4g}" + (" rows" if k == 0 else "")
        what = (
            f"{values[feature[k]]:+.3g}" if left[k] == 0 else f"x{feature[k]} ≤ {threshold[k]:.3g}"
        )
        assert what.replace("-", "−") + "\n" + rows in found
    assert ax.get_title() == "tree 0"
    # Left children are drawn to the left.
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert len({x for x, y in places.values()}) == 5
    assert min(y for _, y in places.values()) == -2


@pytest.mark.parametrize("strategy", ["independent", "multioutput", "project", "relabel"])
def test_leaves_show_what_they_add_to_an_output(strategy):
    model = ManyBoostRegressor(strategy=strategy, max_iter=1, max_leaf_nodes=2, random_state=0)
    model.fit(X, Y[:, :3])
    tree = 2 if strategy == "independent" else 0
    ax = plotting.plot_tree(model, tree, output=2)
    assert ax.get_title() == f"tree {tree}, what it adds to y2"
    added = np.unique(np.round(model.predict(X)[:, 2] - model.baseline_[2], 6))
    shown = [float(text.split("\n")[0].replace("−", "-")) for text in texts(ax)[1:]]
    np.testing.assert_allclose(sorted(shown), added, rtol=0.01)


def test_the_output_that_a_tree_moves_most_is_shown():
    scaled = Y[:, :3] * [1, 50, 2]
    model = ManyBoostRegressor(max_iter=1, strategy="multioutput").fit(X, scaled)
    assert plotting.plot_tree(model).get_title().endswith("y1")


def test_of_an_output_with_quantiles_the_level_that_moves_most_is_shown():
    levels = [0.1, 0.1000001, 0.95]
    model = ManyBoostRegressor("quantile", quantile=levels, max_iter=1, random_state=0)
    model.fit(X, Y[:, :2])
    shown = plotting.plot_tree(model, output=1).get_title()
    assert shown.startswith("tree 0, what it adds to y1, ")
    for name in ("y1, 0.1-quantile", "y1, 0.1000001-quantile", "y0, 0.95-quantile"):
        assert (
            plotting.plot_tree(model, output=name).get_title() == f"tree 0, what it adds to {name}"
        )


def test_categories_missing_values_and_hidden_splits():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    colour = RNG.choice(["red", "green", "blue"], N)
    frame = pandas.DataFrame({"colour": colour, "size": X[:, 0]})
    frame["colour"] = frame["colour"].astype("category")
    frame.loc[::5, "size"] = np.nan
    y = 5.0 * (colour == "red") + frame["size"].isna()
    settings = {"max_iter": 1, "max_leaf_nodes": 4, "min_samples_leaf": 2}
    model = ManyBoostRegressor(random_state=0, **settings).fit(frame, y)
    root = texts(plotting.plot_tree(model))[0]
    assert root.split("\n")[:2] in [["colour in", "{red}"], ["colour in", "{blue, green}"]]
    assert "size\nnot missing" in " ".join(texts(plotting.plot_tree(model)))
    hidden = texts(plotting.plot_tree(model, max_depth=1))
    assert len(hidden) == 3
    assert sum(text.startswith("…") for text in hidden) >= 1
    shown = " ".join(texts(plotting.plot_tree(model, show_missing=True)))
    left = model._progress.model.trees.tree(0)[3]
    assert ("or missing" in shown) == bool(left[0])


def test_trees_that_do_not_exist_are_refused(model):
    for tree in (15, -1, 0.5, True):
        expected = f"tree={tree} is not allowed; the model has trees 0 to 14."
        assert refusal(lambda tree=tree: plotting.plot_tree(model, tree)) == expected
    assert "has no rounds" in refusal(lambda: plotting.plot_tree(model.first_rounds(0)))


# ------------------------------------------------------------------ predictions, calibration


def test_predictions_are_drawn_from_the_best_output_to_the_worst(model):
    ax = plotting.plot_predictions(model, X, Y, max_outputs=4)
    assert ax.get_title() == "4 of 12 outputs, from best to worst"
    assert len(ax.child_axes) == 4
    titles = [panel.get_title() for panel in ax.child_axes]
    scores = [float(title.split("= ")[1]) for title in titles]
    assert scores == sorted(scores, reverse=True)
    predicted = model.predict(X)
    for panel, title in zip(ax.child_axes, titles, strict=True):
        j = int(title.split(":")[0][1:])
        points = panel.collections[0].get_offsets()
        np.testing.assert_allclose(points, np.column_stack([Y[:, j], predicted[:, j]]))
    from sklearn.metrics import r2_score

    best = max(r2_score(Y, predicted, multioutput="raw_values"))
    assert scores[0] == pytest.approx(best, abs=0.006)


def test_chosen_outputs_and_missing_targets(model):
    gaps = Y.copy()
    gaps[:50, 7] = np.nan
    ax = plotting.plot_predictions(model, X, gaps, outputs=[7])
    (panel,) = ax.child_axes
    assert panel.get_title().startswith("y7")
    assert len(panel.collections[0].get_offsets()) == N - 50
    assert ax.get_title() == ""


def test_predictions_of_other_things_are_refused(model, classifier):
    assert "plot_calibration" in refusal(lambda: plotting.plot_predictions(classifier, X, LABELS))
    assert "(200, 3)" in refusal(lambda: plotting.plot_predictions(model, X, Y[:, :3]))
    assert "classifier" in refusal(lambda: plotting.plot_calibration(model, X, Y))
    assert "(200, 3)" in refusal(lambda: plotting.plot_calibration(classifier, X, LABELS[:, :3]))


def test_targets_are_those_that_the_model_knows():
    names = [f"y{j}" for j in range(D)]
    named = ManyBoostRegressor(max_iter=2).fit(X, pandas.DataFrame(Y, columns=names))
    labels = ManyBoostClassifier(max_iter=2).fit(X, pandas.DataFrame(LABELS, columns=names))
    members = folded_regressor(X, pandas.DataFrame(Y, columns=names), max_iter=2)
    for draw in (
        lambda: plotting.plot_predictions(named, X, pandas.DataFrame(Y, columns=names[::-1])),
        lambda: plotting.plot_calibration(labels, X, pandas.DataFrame(LABELS, columns=names[::-1])),
        lambda: plotting.plot_coverage(members, X, pandas.DataFrame(Y, columns=names[::-1])),
        lambda: plotting.plot_fan(members, X, y=pandas.DataFrame(Y, columns=names[::-1])),
    ):
        assert "in another order" in refusal(draw)
    two = ManyBoostClassifier(max_iter=2).fit(X, np.where(LABELS[:, 0], "yes", "no"))
    sentence = refusal(lambda: plotting.plot_calibration(two, X, LABELS[:, 0]))
    assert sentence.startswith(f"y has the class {LABELS[0, 0]} in row 0, which the model does not")


def test_calibration_leaves_out_missing_labels_and_knows_the_hierarchy():
    labels = (X[:, :1] > np.array([-0.5, 0.5])).astype(float)
    model = ManyBoostClassifier(max_iter=3, label_hierarchy=[(1, 0)], random_state=0).fit(X, labels)
    gaps = labels.copy()
    gaps[:60, 1] = np.nan
    gaps[150:, 0] = 0  # which the hierarchy says they are not, where they have the other label
    drawn = lines(plotting.plot_calibration(model, X, gaps))
    p = model.predict_proba(X)
    np.testing.assert_allclose(
        drawn["y1"].get_data(), calibration_points(p[60:, 1], labels[60:, 1], 10)
    )
    closed = np.where(np.arange(N) < 150, labels[:, 0], labels[:, 1])
    np.testing.assert_allclose(drawn["y0"].get_data(), calibration_points(p[:, 0], closed, 10))


def test_calibration_points_are_means_of_equal_groups():
    probabilities = np.array([0.1, 0.9, 0.2, 0.8, 0.3, 0.7])
    true = np.array([0.0, 1, 1, 1, 0, np.nan])
    predicted, observed = calibration_points(probabilities, true, 2)
    # Of 0.1, 0.2, 0.3, 0.8, 0.9 the first two, then the others.
    np.testing.assert_allclose(predicted, [0.15, 2 / 3])
    np.testing.assert_allclose(observed, [0.5, 2 / 3])


def test_ties_are_not_parted():
    probabilities = np.array([0.5] * 7 + [0.9])
    true = np.array([0, 1, 0, 1, 0, 1, 0, 1.0])
    predicted, observed = calibration_points(probabilities, true, 4)
    np.testing.assert_allclose(predicted, [0.5, 0.9])
    np.testing.assert_allclose(observed, [3 / 7, 1])


def test_calibration_has_a_line_for_each_label_and_one_for_all(classifier):
    ax = plotting.plot_calibration(classifier, X, LABELS, outputs=[4, 1])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["y4", "y1", "all 2 labels"]
    probabilities = classifier.predict_proba(X)
    expected = calibration_points(probabilities[:, 4], LABELS[:, 4].astype(float), 10)
    np.testing.assert_allclose(lines(ax)["y4"].get_data(), expected)
    # Many lines have one name in common.
    ax = plotting.plot_calibration(classifier, X, LABELS)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["all 12 labels"]
    assert len(ax.lines) == 1 + D + 1


def test_calibration_of_classes_and_of_two_classes():
    names = np.array(["red", "green", "blue"])[np.argmax(Y[:, :3], axis=1)]
    several = ManyBoostClassifier(max_iter=5, random_state=0).fit(X, names)
    ax = plotting.plot_calibration(several, X, names)
    assert list(lines(ax))[1:] == ["blue", "green", "red", "all 3 classes"]
    two = ManyBoostClassifier(max_iter=5, random_state=0).fit(X, names == "red")
    ax = plotting.plot_calibration(two, X, names == "red")
    expected = calibration_points(two.predict_proba(X)[:, 1], (names == "red").astype(float), 10)
    np.testing.assert_allclose(lines(ax)["True"].get_data(), expected)


def test_pictures_call_classes_by_their_names():
    y = np.array([3, 7, 9])[np.digitize(Y[:, 0], [-2, 2])]
    three = ManyBoostClassifier(max_iter=3, random_state=0).fit(X, y)
    assert list(lines(plotting.plot_calibration(three, X, y)))[1:4] == ["3", "7", "9"]
    assert sorted(tick_names(plotting.plot_importances(three).yaxis)) == ["3", "7", "9"]
    assert plotting.plot_tree(three, output=1).get_title() == "tree 0, what it adds to 7"
    two = ManyBoostClassifier(max_iter=3).fit(X, np.where(LABELS[:, 0], "yes", "no"))
    assert tick_names(plotting.plot_importances(two).yaxis) == ["yes"]


def test_labels_as_sets():
    sets = [{f"l{j}" for j in np.flatnonzero(row)} for row in LABELS[:, :3]]
    model = ManyBoostClassifier(max_iter=5, random_state=0).fit(X, sets)
    ax = plotting.plot_calibration(model, X, sets)
    assert list(lines(ax))[1:] == ["l0", "l1", "l2", "all 3 labels"]


# ------------------------------------------------------------------ axes

PICTURES = {
    "learning curves": lambda model, ax: plotting.plot_learning_curves(model, ax=ax),
    "importances": lambda model, ax: plotting.plot_importances(model, ax=ax),
    "similarity": lambda model, ax: plotting.plot_output_similarity(model, ax=ax),
    "tree": lambda model, ax: plotting.plot_tree(model, ax=ax),
    "predictions": lambda model, ax: plotting.plot_predictions(model, X, Y, ax=ax),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_drawn_on_the_axes_given(name, model):
    ax = pyplot.figure().add_subplot()
    assert PICTURES[name](model, ax) is ax
    assert len(pyplot.get_fignums()) == 1
    ax.figure.canvas.draw()
    assert ax.has_data() or ax.child_axes or ax.texts


def test_without_matplotlib_the_extra_is_named(monkeypatch, model):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "manyboost[plots]" in refusal(
        lambda: plotting.plot_learning_curves(model), error=ImportError
    )


# ------------------------------------------------------------------ intervals


@pytest.fixture(scope="module")
def folds():
    return folded_regressor(X[:150], Y[:150], max_iter=15)


def test_lines_of_coverage_are_shares_inside(folds):
    holes = np.where(RNG.random((50, D)) < 0.3, np.nan, Y[150:])
    ax = plotting.plot_coverage(folds, X[150:], holes, coverages=(0.5, 0.9), outputs=[3, 0])
    drawn = lines(ax)
    for name, j in (("y3", 3), ("y0", 0)):
        ends = folds.predict_interval(X[150:], 0.9)[:, j]
        known = ~np.isnan(holes[:, j])
        share = ((ends[:, 0] <= holes[:, j]) & (ends[:, 1] >= holes[:, j]))[known].mean()
        assert drawn[name].get_ydata()[1] == pytest.approx(share)
    mean = drawn["mean of 2 outputs"].get_ydata()
    assert mean[1] == pytest.approx(drawn["y3"].get_ydata()[1] / 2 + drawn["y0"].get_ydata()[1] / 2)
    ends = folds.predict_interval(X[150:], 0.9, joint=True, outputs=[3, 0])
    true = holes[:, [3, 0]]
    held = ((ends[..., 0] <= true) & (ends[..., 1] >= true)) | np.isnan(true)
    there = ~np.isnan(true).all(axis=1)
    assert drawn["all at once, joint regions"].get_ydata()[1] == held[there].all(axis=1).mean()


def test_an_output_without_any_target_has_no_line_of_coverage(folds):
    true = Y[150:].copy()
    true[:, 3] = np.nan
    ax = plotting.plot_coverage(folds, X[150:], true, coverages=[0.5], outputs=[0, 3])
    drawn = lines(ax)
    assert np.isnan(drawn["y3"].get_ydata()).all()
    assert drawn["mean of 2 outputs"].get_ydata() == drawn["y0"].get_ydata()


def test_targets_of_other_rows_are_refused(folds):
    for wrong in (Y[:10], Y[150:, :1]):
        sentence = refusal(lambda y=wrong: plotting.plot_coverage(folds, X[150:], y))
        assert "pass the targets of the rows of X" in sentence


def test_lines_of_many_outputs_are_faint_and_have_a_mean(folds):
    ax = plotting.plot_coverage(folds, X[150:], Y[150:], coverages=(0.5, 0.8))
    assert f"mean of {D} outputs" in lines(ax)
    assert "y1" not in lines(ax)


def test_widths_are_relative_to_constant_predictions(folds):
    ax = plotting.plot_widths(folds, X[150:], coverage=0.8, methods=("split",), outputs=[4, 1])
    known = folds._calibration.Y[:, [4, 1]]
    alone = np.quantile(known, 0.9, axis=0) - np.quantile(known, 0.1, axis=0)
    width = np.ptp(folds.predict_interval(X[150:151], 0.8, outputs=[4, 1])[0], axis=1)
    expected = dict(zip(["y4", "y1"], width / alone, strict=True))
    drawn = dict(zip(tick_names(ax.yaxis), lines(ax)["split"].get_xdata(), strict=True))
    assert drawn == pytest.approx(expected)
    assert list(drawn.values()) == sorted(drawn.values(), reverse=True)


def test_a_fan_holds_the_intervals_of_a_row(folds):
    seen = np.arange(5.0)
    ax = plotting.plot_fan(
        folds, X[150:], row=7, y=Y[150:], history=seen, coverages=(0.5, 0.8), joint=True
    )
    bands = [each.get_paths()[0].vertices for each in ax.collections]
    for band, coverage in zip(bands, (0.8, 0.5), strict=True):
        ends = folds.predict_interval(X[157:158], coverage, joint=True)[0]
        assert (band[:, 1].min(), band[:, 1].max()) == (ends.min(), ends.max())
    drawn = lines(ax)
    np.testing.assert_allclose(drawn["prediction"].get_ydata(), folds.predict(X[157:158])[0])
    np.testing.assert_array_equal(drawn["what came"].get_ydata(), Y[157])
    np.testing.assert_array_equal(drawn["what was seen"].get_xdata(), [-4, -3, -2, -1, 0])
    assert [each.get_label() for each in ax.collections] == [
        "80 %, all at once",
        "50 %, all at once",
    ]


def test_rows_of_a_fan_may_be_lists(folds):
    bands = [plotting.plot_fan(folds, each, row=1).collections for each in (X, X.tolist())]
    for ours, theirs in zip(*bands, strict=True):
        np.testing.assert_array_equal(ours.get_paths()[0].vertices, theirs.get_paths()[0].vertices)


def test_one_output_and_quantiles_have_intervals_to_draw():
    one = folded_regressor(X[:150], Y[:150, 0], max_iter=5)
    assert len(plotting.plot_coverage(one, X[150:], Y[150:, 0]).lines) == 2
    assert tick_names(plotting.plot_widths(one, X[150:]).yaxis) == ["y0"]
    levels = folded_regressor(X[:150], Y[:150], loss="quantile", quantile=[0.1, 0.9], max_iter=5)
    assert "y2" in lines(plotting.plot_coverage(levels, X[150:], Y[150:], outputs=[2]))
    assert len(plotting.plot_fan(levels, X[150:]).collections) == 3


def test_intervals_are_drawn_for_regressors(classifier):
    for draw in (
        lambda: plotting.plot_coverage(classifier, X, Y),
        lambda: plotting.plot_widths(classifier, X),
        lambda: plotting.plot_fan(classifier, X),
    ):
        assert "needs a regressor; use plot_calibration for classifiers." in refusal(draw)
    one = folded_regressor(X[:150], Y[:150, 0], max_iter=5)
    said = refusal(lambda: plotting.plot_fan(one, X))
    assert said == "plot_fan needs several outputs, steps ahead; fit a two-dimensional y."


def test_names_that_begin_with_an_underscore_are_in_legends():
    frame = pandas.DataFrame(LABELS[:, :2], columns=["_a", "b"])
    classifier = ManyBoostClassifier(max_iter=2, random_state=0).fit(X, frame)
    shown = plotting.plot_calibration(classifier, X, frame).get_legend().get_texts()
    assert [each.get_text().lstrip("\u200b") for each in shown] == ["_a", "b", "all 2 labels"]
    two = ManyBoostClassifier(max_iter=2).fit(X, np.where(LABELS[:, 0], "_yes", "_no"))
    y = np.where(LABELS[:, 0], "_yes", "_no")
    assert len(plotting.plot_calibration(two, X, y).get_legend().get_texts()) == 1
    folds = folded_regressor(X, pandas.DataFrame(Y[:, :2], columns=["_a", "b"]), max_iter=2)
    assert len(plotting.plot_coverage(folds, X, Y[:, :2]).get_legend().get_texts()) == 4
    curves = ManyBoostRegressor(max_iter=2, early_stopping=True).fit(X, frame)
    shown = plotting.plot_learning_curves(curves, per_output=True).get_legend().get_texts()
    assert len(shown) == 2


def test_a_fan_shows_predictions_also_where_bands_are_cut_off():
    counts = RNG.poisson(0.5, size=(N, 3))
    model = folded_regressor(X, counts, loss="poisson", max_iter=3)
    line = lines(plotting.plot_fan(model, X, row=2))["prediction"]
    np.testing.assert_array_equal(line.get_ydata(), model.predict(X[2:3])[0])
    middle = model.predict_interval(X[2:3], 0.5)[0].mean(axis=1)
    assert np.abs(line.get_ydata() - middle).max() > 0.01
    levels = [0.05, 0.4, 0.95]
    model = folded_regressor(X, counts, loss="quantile", quantile=levels, max_iter=3)
    line = lines(plotting.plot_fan(model, X, row=2, coverages=[0.9]))["prediction"]
    np.testing.assert_array_equal(line.get_ydata(), model.predict(X[2:3])[0][:, 1])


def test_widths_need_folds_and_a_coverage(model, folds):
    sentence = refusal(lambda: plotting.plot_widths(model, X))
    assert sentence.startswith("plot_widths needs out-of-fold predictions")
    for coverage in (1.5, 0, True):
        expected = f"coverage={coverage} is not allowed; it must be a number strictly between"
        said = refusal(lambda each=coverage: plotting.plot_widths(folds, X, coverage=each))
        assert said.startswith(expected)


def test_dollar_signs_in_names_are_no_formulas(model):
    names = ["cost in $ per $", *(f"y{j}" for j in range(1, D))]
    named = ManyBoostRegressor(max_iter=3, random_state=0)
    named.fit(pandas.DataFrame(X, columns=["$a$", *"bcdef"]), pandas.DataFrame(Y, columns=names))
    shown = plotting.plot_importances(named)
    texts = [*shown.get_xticklabels(), *shown.get_yticklabels()]
    assert {r"\$a\$", r"cost in \$ per \$"} <= {each.get_text() for each in texts}
    assert not any(each._preprocess_math(each.get_text())[1] for each in texts)
    assert r"\$" in plotting.plot_tree(named, 0, output=names[0]).get_title()


def test_nothing_to_draw_is_refused(model, classifier, folds):
    count = "={} is not allowed; it must be an integer of at least 1."
    for what, call in [
        ("max_features", lambda: plotting.plot_importances(model, max_features=0)),
        ("max_outputs", lambda: plotting.plot_importances(model, max_outputs=0)),
        ("max_outputs", lambda: plotting.plot_predictions(model, X, Y, max_outputs=0)),
        ("n_bins", lambda: plotting.plot_calibration(classifier, X, LABELS, n_bins=0)),
    ]:
        assert refusal(call) == what + count.format(0)
    for what, call in [
        ("coverages", lambda: plotting.plot_coverage(folds, X, Y, coverages=[])),
        ("coverages", lambda: plotting.plot_fan(folds, X, coverages=[])),
        ("methods", lambda: plotting.plot_widths(folds, X, methods=[])),
    ]:
        assert refusal(call) == f"{what} is empty; give at least one."


def test_models_with_an_offset_are_drawn_with_it():
    offset = X[:, :1]
    two, labels = Y[:, :2], LABELS[:, :2]
    regressor = ManyBoostRegressor(max_iter=2, n_folds=2, random_state=0)
    regressor.fit(X, two, offset=offset)
    (panel, *_) = plotting.plot_predictions(regressor, X, two, offset=offset).child_axes
    drawn = np.sort(np.asarray(panel.collections[0].get_offsets())[:, 1])
    expected = np.sort(regressor.predict(X, offset=offset), axis=0)
    assert min(np.abs(drawn - each).max() for each in expected.T) < 1e-9
    plotting.plot_coverage(regressor, X, two, offset=offset)
    plotting.plot_widths(regressor, X, offset=offset)
    fan = plotting.plot_fan(regressor, X, row=3, offset=offset, coverages=[0.8])
    ends = regressor.predict_interval(X[3:4], 0.8, offset=offset[3:4])[0]
    line = next(each for each in fan.lines if each.get_label() == "prediction")
    assert np.allclose(line.get_ydata(), ends.mean(axis=1))
    classifier = ManyBoostClassifier(max_iter=2, random_state=0).fit(X, labels, offset=offset)
    plotting.plot_calibration(classifier, X, labels, offset=offset)
    missing = "The model was fitted with an offset, but offset=None was passed"
    for draw, each, truth in [
        (plotting.plot_predictions, regressor, two),
        (plotting.plot_calibration, classifier, labels),
    ]:
        assert refusal(lambda draw=draw, each=each, t=truth: draw(each, X, t)).startswith(missing)
