"""Bad input gets one sentence that names what is wrong and what to do, before any work is done."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from manyboost import Checkpoint, Loss, RoundState
from manyboost.params import PARAMS
from refusals import refusal
from small_problems import CLASSES, LABELS, X, Y, classifier, regressor, replaced

# Parameters -------------------------------------------------------------------------------------

BAD_VALUES = {
    "loss": ["log-loss", "", 3, None, Loss, [], ["squared_error", "hinge"], [Loss()]],
    "quantile": [0.0, 1.0, -0.1, float("nan"), "0.5", None, [], [0.5, 0.5], [0.9, 0.1], [0.5, 1.0]],
    "huber_delta": [0.0, -1.0, float("inf"), float("nan"), "auto"],
    "power": [1.0, 2.0, 0.0, float("nan"), "auto", None],
    "strategy": ["relabelled", "Relabel", None, 1],
    "projection": ["gauss", None, 1, np.eye(2)],
    "n_components": [0, -1, 0.0, 1.5, -0.5, float("nan"), True, "all", None],
    "step": ["newtons", None, 0.5],
    "learning_rate": [0, -0.1, float("inf"), float("nan"), "0.1", None, True],
    "max_iter": [0, -5, 10.0, "100", None, True],
    "max_leaf_nodes": [1, 0, -1, 31.0, "31"],
    "max_leaf_outputs": [0, -1, 5.0, "5"],
    "max_depth": [0, -1, 3.0, "3"],
    "min_samples_leaf": [0, -1, 0.5, "20", None],
    "min_split_gain": [-1e-9, float("nan"), float("inf"), "0", None],
    "l2_regularization": [-1.0, float("nan"), float("inf"), "none", None],
    "max_features": [0, -1, 0.0, 1.5, "third", None, True],
    "subsample": [0.0, 1.1, -0.5, float("nan"), "0.5", None],
    "max_bins": [1, 0, 256, 255.0, "255", None],
    "categorical_features": ["from_dtypes", "auto", 1, {"a": True}, [[True], [0]], np.array(1)],
    "monotonic_cst": ["increasing", 1, -1.0, True, np.array(1)],
    "interaction_cst": ["pairs", 2, True, {0: 1}, np.array(1)],
    "output_weight": ["equal", 1.0, [], [0, 0], [1, -1], [1, float("nan")], [[1, 1]], [1, 1e300]],
    "class_weight": ["even", True, 2.0, np.ones(2)],
    "output_scaling": ["std", True, 1.0],
    "estimator": ["Ridge", 3, np.mean],
    "thresholds": ["tune", -0.1, 1.1, True, float("nan"), [], [0.5, 2.0], ["a"], {0.5}],
    "early_stopping": ["on", 1, None, 0.5, "per-output"],
    "validation_fraction": [0, -1, 0.0, 1.0, 1.5, float("nan"), "0.1"],
    "validation_split": ["first", None, True, 0.1, [0, 1], np.ones(3)],
    "calibration": ["platt", True, 0],
    "label_hierarchy": ["a", 3, [1, 2], [("a", "b", "c")], {"a", "b"}],
    "n_iter_no_change": [0, -1, 10.0, "10", None],
    "tol": [-1e-9, float("nan"), float("inf"), "0", None],
    "n_folds": [0, 1, 256, 2.0, "5", True],
    "refit_all": ["yes", 1, None],
    "scoring": ["accurate", 3, [], ["loss", "accurate"], int],
    "max_time": [0, -1.0, float("nan"), float("inf"), "10"],
    "warm_start": ["yes", 1, None, 0.0, np.eye(2)],
    "callbacks": [print, [3], "print", [RoundState]],
    "checkpoint": [3, "", b"run", ["run"], True, Checkpoint],
    "verbose": [-1, 3, 1.0, "1", None],
    "random_state": [-1, 2**32, 0.5, "seed", np.random.default_rng(0)],
    "n_jobs": [0, 1.0, "all", True],
}


def test_every_parameter_has_bad_values():
    assert set(BAD_VALUES) == set(PARAMS)


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD_VALUES.items() for value in [*values, object()]],
    ids=lambda x: x if isinstance(x, str) else type(x).__name__,
)
@pytest.mark.usefixtures("no_work")
def test_a_parameter_out_of_its_range_is_named_with_what_it_may_be(name, value):
    for model, target in [(regressor(), Y), (classifier(), LABELS)]:
        if name in model.get_params():
            model.set_params(**{name: value})
            sentence = refusal(lambda model=model, target=target: model.fit(X, target))
            assert sentence.startswith(f"{name}=")
            answers = ["it must be", "available: ", "did you mean"]
            assert any(words in sentence for words in answers)
            assert not hasattr(model, "n_iter_")


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("strategy", "relable", "relabel"),
        ("loss", "reg:squarederror", "squared_error"),
        ("projection", "gausian", "gaussian"),
        ("learning_rate", "Auto", "auto"),
    ],
)
def test_a_misspelt_value_is_answered_with_the_likely_one(name, value, meant):
    sentence = refusal(lambda: regressor().set_params(**{name: value}).fit(X, Y))
    assert sentence.startswith(f"{name}={value!r} is not a")
    assert sentence.endswith(f"; did you mean {meant!r}?")


@pytest.mark.usefixtures("no_work")
def test_an_unknown_name_is_answered_with_the_known_ones():
    for parameters, known in [
        ({"strategy": "x"}, ["'independent'", "'multioutput'", "'project'", "'relabel'"]),
        ({"step": "x"}, ["'auto'", "'line_search'", "'newton'"]),
        (
            {"projection": "x"},
            [
                "'gaussian'",
                "'rademacher'",
                "'achlioptas'",
                "'sparse'",
                "'subsample'",
                "'identity'",
                "a callable",
            ],
        ),
        (
            {"loss": "x"},
            [
                "'squared_error'",
                "'absolute_error'",
                "'huber'",
                "'quantile'",
                "'poisson'",
                "'gamma'",
                "'tweedie'",
                "a Loss object",
            ],
        ),
    ]:
        sentence = refusal(lambda p=parameters: regressor(**p).fit(X, Y))
        for name in known:
            assert name in sentence
    sentence = refusal(lambda: classifier(loss="poisson").fit(X, LABELS))
    assert "'log_loss', 'exponential', 'squared_error', or a Loss object" in sentence


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (
            {"strategy": "project", "n_components": 2},
            (
                "n_components=2 needs strategy='relabel', but strategy is 'project'; use "
                "strategy='relabel' or n_components=1."
            ),
        ),
        (
            {"strategy": "project", "n_components": 1.0},
            (
                "n_components=1.0 needs strategy='relabel', but strategy is 'project'; use "
                "strategy='relabel' or n_components=1."
            ),
        ),
        (
            {"strategy": "multioutput", "n_components": 2},
            (
                "n_components=2 needs strategy='relabel', but strategy is 'multioutput'; use "
                "strategy='relabel' or n_components=1."
            ),
        ),
        (
            {"strategy": "project", "projection": "identity"},
            (
                "projection='identity' keeps all 2 outputs, but strategy='project' grows trees on "
                "one; use strategy='multioutput' or another projection."
            ),
        ),
        (
            {"projection": "subsample", "n_components": 3},
            (
                "n_components=3 is more than the 2 outputs that projection='subsample' draws from "
                "without replacement; use fewer components or another projection."
            ),
        ),
        (
            {"step": "line_search", "l2_regularization": 1.0},
            (
                "l2_regularization=1.0 has no effect on line searches and on losses without "
                "curvature; use step='newton' with another loss, or leave it at 'auto'."
            ),
        ),
        (
            {"loss": "absolute_error", "l2_regularization": 1.0},
            (
                "l2_regularization=1.0 has no effect on line searches and on losses without "
                "curvature; use step='newton' with another loss, or leave it at 'auto'."
            ),
        ),
        (
            {"early_stopping": True, "validation_fraction": 60},
            (
                "validation_fraction=60 leaves none of the 60 rows for training; set fewer rows "
                "apart, pass X_val and Y_val, or use early_stopping=False."
            ),
        ),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, dict) else "",
)
def test_parameters_that_do_not_go_together(parameters, sentence):
    assert refusal(lambda: regressor(**parameters).fit(X, Y)) == sentence


def test_parameters_that_do_go_together():
    for parameters in [
        {"strategy": "project", "n_components": 0.5},
        {"strategy": "relabel", "n_components": 50},
        {"strategy": "relabel", "projection": "identity", "n_components": 7},
        {"projection": "subsample", "n_components": 2},
        {"step": "line_search", "l2_regularization": 0.0},
        {"max_features": 100},
        {"max_leaf_nodes": None, "max_depth": 2},
        {"learning_rate": np.float32(0.5), "max_iter": np.int64(2), "warm_start": np.True_},
    ]:
        assert np.isfinite(regressor(**parameters).fit(X, Y).predict(X)).all()


# y ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_work")
def test_counts_cannot_be_negative():
    bad = replaced(LABELS.astype(float), (5, 1), -2.0)
    expected = "{} has the value -2 in row 5{}; loss='poisson' needs counts of at least zero."
    model = regressor(loss="poisson")
    assert refusal(lambda: model.fit(X, bad)) == expected.format("y", ", output 1")
    named = pd.DataFrame(bad, columns=["u", "v"])
    assert refusal(lambda: model.fit(X, named)) == expected.format("y", ", output 'v'")
    assert refusal(lambda: model.fit(X, bad[:, 1])) == expected.format("y", "")
    call = lambda: model.fit(X, LABELS, X_val=X, Y_val=bad)  # noqa: E731
    assert refusal(call) == expected.format("Y_val", ", output 1")
    sentence = refusal(lambda: regressor(loss="tweedie").fit(X, bad))
    assert sentence.endswith(
        "-2 in row 5, output 1; loss='tweedie' needs amounts of at least zero."
    )
    none = replaced(LABELS + 1.0, (5, 1), 0.0)
    sentence = refusal(lambda: regressor(loss="gamma").fit(X, none))
    assert sentence.endswith("0 in row 5, output 1; loss='gamma' needs amounts above zero.")


# Weights and validation rows --------------------------------------------------------------------


@pytest.mark.usefixtures("no_work")
def test_weights_that_do_not_fit():
    ones = np.ones(60)
    for bad, words in [
        (ones[:9], "has shape (9,); it must have one weight for each of the 60 rows{}."),
        (ones[:, None], "has shape (60, 1); it must have one weight for each of the 60 rows{}."),
        (replaced(ones, 7, -2), "is negative (-2) in row 7; weights must be at least zero."),
        (replaced(ones, 7, np.nan), "is missing (NaN) in row 7; weights must be at least zero."),
    ]:
        for model, target in [(regressor(), Y), (classifier(), CLASSES)]:
            cells = ", or one for each of the 60 × 2 cells" if target is Y else ""
            expected = words.format(cells)
            fit = model.fit
            sentence = refusal(lambda fit=fit, target=target, bad=bad: fit(X, target, bad))
            assert sentence == f"sample_weight {expected}"
            sentence = refusal(
                lambda fit=fit, target=target, bad=bad: fit(
                    X, target, X_val=X, Y_val=target, sample_weight_val=bad
                )
            )
            assert sentence == f"sample_weight_val {expected}"
    assert refusal(lambda: regressor().fit(X, Y, 0 * ones)) == (
        "All of sample_weight is zero; at least one row needs a positive weight."
    )
    assert refusal(lambda: regressor().fit(X, Y, replaced(ones, 7, np.inf))) == (
        "sample_weight is infinite (inf) in row 7; weights must be finite."
    )
    for bad in [replaced(ones, 7, 1e300), replaced(ones, 7, 1e-300)]:
        sentence = refusal(lambda bad=bad: regressor().fit(X, Y, bad))
        assert sentence.startswith("sample_weight spans ")
        assert sentence.endswith("divide it by a constant.")
    assert refusal(lambda: regressor().fit(X, Y, ["heavy"] * 60)) == (
        "sample_weight holds text ('heavy') in row 0, not numbers; pass numbers."
    )


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("model", "target"), [(regressor(), Y), (classifier(), LABELS)], ids=["regressor", "classifier"]
)
def test_validation_rows_that_do_not_fit(model, target):
    for val, words in [
        ({"X_val": X}, "X_val was given without Y_val; pass both or neither."),
        ({"Y_val": target}, "Y_val was given without X_val; pass both or neither."),
        (
            {"sample_weight_val": np.ones(60)},
            "sample_weight_val was given without X_val and Y_val; pass all.",
        ),
        ({"X_val": X[:, :2], "Y_val": target}, "X_val: X has 2 features, but "),
        ({"X_val": X[:0], "Y_val": target[:0]}, "X_val has no rows"),
        ({"X_val": X[:, 0], "Y_val": target}, "X_val has 1 dimension(s)"),
        (
            {"X_val": X, "Y_val": target[:5]},
            (
                "Found input variables with inconsistent numbers of samples: X_val has 60 rows and "
                "Y_val has 5; they must have the same number."
            ),
        ),
        ({"X_val": X, "Y_val": target[:, [0, 1, 1]]}, "Y_val has "),
        (
            {"X_val": X, "Y_val": replaced(target.astype(float), (5, 1), np.inf)},
            "Y_val has an infinite value (inf) in row 5, output 1;",
        ),
        (
            {"X_val": X, "Y_val": np.full(target.shape, np.nan)},
            "Y_val has no observed value of positive weight in any of its 60 rows;",
        ),
    ]:
        assert refusal(lambda val=val: model.fit(X, target, **val)).startswith(words)


@pytest.mark.usefixtures("no_work")
def test_validation_rows_without_early_stopping():
    model = regressor(early_stopping=False)
    assert refusal(lambda: model.fit(X, Y, X_val=X, Y_val=Y)) == (
        "X_val was given but early_stopping=False; use early_stopping=True or 'auto', or leave "
        "out X_val."
    )


# Prediction -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "decision_function", "staged_predict"]
)
def test_what_cannot_be_predicted(method):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        list(getattr(classifier(), method)(X))
    model = classifier().fit(X, LABELS)

    def predict(X):
        return list(getattr(model, method)(X))

    expected = "X has 2 features, but ManyBoostClassifier is expecting 3 features as input."
    assert refusal(lambda: predict(X[:, :2])) == expected
    assert refusal(lambda: predict(X[0])).startswith("X has 1 dimension(s)")
    assert refusal(lambda: predict(X[:0])).startswith("X has no rows")


# Code of the user -------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["project", "relabel"])
@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (np.ones((3, 3)), "an array of shape (3, 3); it must return (n_components, n_outputs)"),
        (np.ones(2), "an array of shape (2,); it must return (n_components, n_outputs)"),
        (None, "an array of shape (); it must return (n_components, n_outputs) = (1, 2)."),
        (np.array([["x", "y"]]), "; it must return real numbers."),
        (np.array([[1j, 2]]), "; it must return real numbers."),
        (np.array([[np.nan, 1]]), "NaN or infinity; it must return finite numbers."),
        (np.array([[np.inf, 1]]), "NaN or infinity; it must return finite numbers."),
        (np.array([[1e300, 1]]), "NaN or infinity; it must return finite numbers."),
        (np.zeros((1, 2)), "row 0 is all zero, 100 times in a row; it must give some output a"),
    ],
    ids=str,
)
def test_projections_that_cannot_be_used(strategy, returned, words):
    model = regressor(strategy=strategy, projection=lambda q, d, rng: returned)
    sentence = refusal(lambda: model.fit(X, Y))
    assert sentence.startswith("The projection callable returned ")
    assert words in sentence


def test_a_constant_projection_says_nothing_of_classes():
    model = classifier(projection=lambda q, d, rng: np.ones((q, d)))
    assert "row 0 is constant, 100 times" in refusal(lambda: model.fit(X, CLASSES))
    # It does of labels, whose residuals do not sum to zero.
    assert model.fit(X, LABELS).n_iter_ == 3


class Square(Loss):
    """Squared error, one of whose methods returns something else from some call on."""

    def __init__(self, method, returns, call=1):
        self.method, self.returns, self.calls_left = method, returns, call

    def _or_bad(self, method, good):
        if method != self.method:
            return good
        self.calls_left -= 1
        return self.returns(good) if self.calls_left <= 0 else good

    def value(self, y, raw):
        return self._or_bad("value", (y - raw) ** 2 / 2)

    def gradient(self, y, raw):
        return self._or_bad("gradient", raw - y)

    def hessian(self, y, raw):
        return self._or_bad("hessian", np.ones_like(raw))

    def baseline(self, y, sample_weight):
        return self._or_bad("baseline", y.mean(axis=0))


@pytest.mark.parametrize("strategy", ["independent", "multioutput", "project", "relabel"])
@pytest.mark.parametrize("method", ["value", "gradient", "hessian"])
@pytest.mark.parametrize("call", [1, 4])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_is_refused(strategy, method, call, value):
    loss = Square(method, lambda good: replaced(good, (7, 0), value), call)
    model = regressor(loss=loss, strategy=strategy, max_iter=10)
    assert refusal(lambda: model.fit(X, Y)) == (
        f"Square.{method} returned NaN or infinity (first in row 7); it must return finite numbers."
    )
    assert not hasattr(model, "n_iter_")


@pytest.mark.parametrize("method", ["value", "gradient", "hessian"])
def test_a_loss_of_the_wrong_shape_is_refused(method):
    model = regressor(loss=Square(method, lambda good: good[:, :1]))
    sentence = refusal(lambda: model.fit(X, Y))
    assert sentence.startswith(f"Square.{method} returned an array of shape (60, 1); it must")
    assert "(60, 2)" in sentence


def test_a_gradient_that_is_nothing_is_refused():
    model = regressor(loss=Square("gradient", lambda good: None))
    assert refusal(lambda: model.fit(X, Y)).startswith("Square.gradient returned ")


@pytest.mark.parametrize("bad", [np.zeros(3), np.full(2, np.nan), 0.0], ids=str)
def test_a_baseline_needs_a_number_for_each_output(bad):
    model = regressor(loss=Square("baseline", lambda good: bad))
    assert refusal(lambda: model.fit(X, Y)).startswith(
        "Square.baseline must return 2 finite numbers, one per output; it returned "
    )


def test_a_loss_without_its_methods_says_which():
    assert refusal(lambda: regressor(loss=Loss()).fit(X, Y), NotImplementedError) == (
        "Loss needs a method gradient(y, raw)."
    )


def test_newton_needs_second_derivatives():
    model = regressor(loss=Square("hessian", lambda good: None), step="newton")
    assert refusal(lambda: model.fit(X, Y)) == (
        "step='newton' needs second derivatives, but Square has no hessian; implement it or use "
        "step='line_search'."
    )


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    "parameters",
    [{"thresholds": 0.3}, {"thresholds": "tuned"}, {"calibration": "sigmoid", "n_folds": 3}],
)
def test_what_needs_probabilities_needs_a_loss_with_a_link(parameters):
    name = next(iter(parameters))
    model = classifier(loss=Square("", None), **parameters)
    assert refusal(lambda: model.fit(X, LABELS)) == (
        f"{name} needs probabilities, but Square has no inverse_link; implement it, or leave "
        f"{name} out."
    )


def test_a_weak_learner_must_predict_finite_numbers():
    class Broken(Ridge):
        def predict(self, X):
            return np.full(len(X), np.nan)

    model = regressor(strategy="project", estimator=Broken())
    assert refusal(lambda: model.fit(X, Y)) == (
        "Broken predicted NaN or infinity; it cannot be boosted."
    )
