"""What users of CatBoost's estimators rely on, written anew for these estimators.

Not taken over, with the reason:

- ordered boosting, target statistics and combinations of categories: splits by sets of categories
- text and embedding features: make numbers of them in a pipeline
- ranking and pairwise losses, uncertainty by virtual ensembles: see ``predict_interval`` instead
- ``Pool``, ``cv``, ``select_features``, sums of models, GPU: other interfaces and machines
- categories without limit: beyond ``max_bins`` the rare ones count as one
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_regression

import manyboost
from manyboost import ManyBoostClassifier, ManyBoostRegressor

RNG = np.random.default_rng(0)
N = 500
FRAME = pd.DataFrame(
    {
        "town": RNG.choice(["Ghent", "Huy", "Spa", "Ypres"], N),
        "rooms": RNG.integers(1, 6, N),
        "area": RNG.normal(100, 20, N),
    }
)
PRICE = FRAME["area"] + 30 * FRAME["town"].isin(["Ghent", "Spa"]) + RNG.normal(size=N)


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 100, "random_state": 0, **parameters})


def test_columns_of_text_are_categories():
    model = regressor().fit(FRAME, PRICE)
    assert model.score(FRAME, PRICE) > 0.95
    assert model.is_categorical_.tolist() == [True, False, False]
    assert model.info()["categories"] == {"town": ["Ghent", "Huy", "Spa", "Ypres"]}


def test_categories_that_are_new_or_missing_are_answered_alike():
    model = regressor(max_iter=20).fit(FRAME, PRICE)
    new, gone = FRAME.assign(town="Liège"), FRAME.assign(town=pd.Series([None] * N, dtype=object))
    np.testing.assert_array_equal(model.predict(new), model.predict(gone))


def test_categories_that_are_missing_in_training_are_learnt_from():
    town = FRAME["town"].where(FRAME["town"] != "Spa")
    frame = FRAME.assign(town=town)
    assert regressor().fit(frame, PRICE).score(frame, PRICE) > 0.95


def test_columns_are_named_as_categories_by_number_or_name():
    by_name = regressor(max_iter=10, categorical_features=["town", "rooms"]).fit(FRAME, PRICE)
    by_number = regressor(max_iter=10, categorical_features=[0, 1]).fit(FRAME, PRICE)
    np.testing.assert_array_equal(by_name.predict(FRAME), by_number.predict(FRAME))
    with pytest.raises(ValueError, match="did you mean 'rooms'"):
        regressor(categorical_features=["room"]).fit(FRAME, PRICE)


def test_the_best_model_is_kept_and_its_curve_recorded():
    model = regressor(max_iter=400, learning_rate=0.3, n_iter_no_change=20)
    model.fit(FRAME[:300], PRICE[:300], X_val=FRAME[300:], y_val=PRICE[300:])
    assert model.n_iter_ == np.argmax(model.validation_score_)
    stages = list(model.staged_predict(FRAME[300:]))
    errors = [np.mean((PRICE[300:] - stage) ** 2) for stage in stages]
    assert np.argmin(errors) == len(errors) - 1


def test_a_fit_that_was_interrupted_goes_on_from_its_file(tmp_path):
    path = tmp_path / "fit.checkpoint"

    def stop(state):
        if state.round == 7:
            raise RuntimeError("power failure")

    broken = regressor(
        max_iter=15, checkpoint=manyboost.Checkpoint(path, every=5), callbacks=[stop]
    )
    with pytest.raises(RuntimeError, match="power failure"):
        broken.fit(FRAME, PRICE)
    rounds = []
    rest = clone(broken).set_params(callbacks=[lambda state: rounds.append(state.round)])
    rest.fit(FRAME, PRICE)
    assert rounds[0] == 6
    whole = regressor(max_iter=15).fit(FRAME, PRICE)
    np.testing.assert_array_equal(rest.predict(FRAME), whole.predict(FRAME))


def test_several_quantiles_and_several_targets_are_one_model():
    X, Y = make_regression(n_samples=300, n_targets=3, noise=20, random_state=0)
    assert regressor().fit(X, Y).predict(X).shape == (300, 3)
    levels = regressor(loss="quantile", quantile=[0.1, 0.9]).fit(X, Y)
    low, high = np.moveaxis(levels.predict(X), 2, 0)
    assert (low <= high).all()


def test_targets_may_be_missing():
    rng = np.random.default_rng(1)
    X, Y = make_regression(n_samples=300, n_targets=2, random_state=0)
    holes = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    model = regressor(max_iter=300).fit(X, holes)
    assert model.score(X, Y) > 0.7


def test_classes_of_little_weight_are_balanced():
    y = np.where(FRAME["area"] > 125, "large", "usual")
    model = ManyBoostClassifier(class_weight="balanced", max_iter=20, random_state=0)
    model.fit(FRAME, y)
    assert model.classes_.tolist() == ["large", "usual"]
    assert (model.predict(FRAME)[y == "large"] == "large").all()


def test_time_can_be_limited():
    model = regressor(max_iter=100_000, max_time=0.2).fit(FRAME, PRICE)
    assert 0 < model.n_iter_ < 100_000


def test_a_model_is_kept_in_a_file_with_its_names(tmp_path):
    model = regressor(max_iter=10).fit(FRAME, PRICE.rename("price"))
    model.save(tmp_path / "model.mb")
    again = manyboost.load(tmp_path / "model.mb")
    np.testing.assert_array_equal(again.predict(FRAME), model.predict(FRAME))
    assert again.info()["output_names"] == ["price"]


def test_values_of_features_are_explained():
    model = regressor(max_iter=50).fit(FRAME, PRICE)
    values = model.shap_values(FRAME)
    by_feature = np.abs(values).mean(axis=0)
    assert by_feature[1] < min(by_feature[0], by_feature[2])
    np.testing.assert_allclose(
        values.sum(axis=1) + model.expected_value_, model.predict(FRAME), rtol=1e-4
    )


def test_its_names_are_answered():
    for name in ("iterations", "depth", "l2_leaf_reg", "cat_features", "loss_function"):
        with pytest.raises(TypeError, match="in manyboost this is"):
            ManyBoostRegressor(**{name: 1})
