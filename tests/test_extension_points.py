"""One new entry each: a loss, a projection, a strategy, a parameter, a verb.

Every test adds a toy in one place, as CONTRIBUTING says, and sees it work through fit, save, load,
Shapley values, ONNX and the command line.
"""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import manyboost
from manyboost import ManyBoostRegressor, cli, params
from manyboost.params.checks import integer
from manyboost.training import boosting, losses, projections, strategies

X = np.random.default_rng(0).normal(size=(200, 4))
Y = np.column_stack([X[:, 0], X[:, 1] - X[:, 0], np.abs(X[:, 2])])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    header = "a,b,c,d,y0,y1,y2"
    np.savetxt(path, np.column_stack([X, Y]), delimiter=",", header=header, comments="")
    return path


def walk(parameters, tmp_path):
    """Fit, save, load, explain and export a model; returns it."""
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = ManyBoostRegressor(max_iter=8, random_state=0, **parameters).fit(X, Y)
    assert model.score(X, Y) > 0.3
    model.save(tmp_path / "model.mb")
    again = manyboost.load(tmp_path / "model.mb")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    values = model.shap_values(X[:5])
    np.testing.assert_allclose(
        values.sum(axis=1) + model.expected_value_, model.predict(X[:5]), rtol=1e-4, atol=1e-5
    )
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    (exported,) = session.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(exported, model.predict(X), rtol=1e-3, atol=1e-4)
    return model


def shell(table, *flags):
    model = table.with_suffix(".mb")
    code = cli.main(
        [
            "fit",
            str(table),
            "--target",
            "y*",
            "-o",
            str(model),
            "--max-iter",
            "4",
            "--quiet",
            *flags,
        ]
    )
    assert code == 0
    return manyboost.load(model)


def test_a_loss_is_one_record(monkeypatch, tmp_path, table):
    squares = losses.REGRESSION_LOSSES["squared_error"]
    monkeypatch.setitem(losses.REGRESSION_LOSSES, "toy", dataclasses.replace(squares))
    model = walk({"loss": "toy"}, tmp_path)
    expected = ManyBoostRegressor(max_iter=8, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert shell(table, "--loss", "toy").info()["loss"] == "toy"


def test_a_projection_is_one_record(monkeypatch, tmp_path, table):
    def first_output(n_components, n_outputs, zero_sums, seed, round_):
        return np.eye(n_components, n_outputs, k=round_ % n_outputs, dtype=np.float32)

    toy = projections.ProjectionFamily("toy", first_output)
    monkeypatch.setitem(projections.PROJECTIONS, "toy", toy)
    walk({"projection": "toy"}, tmp_path)
    assert shell(table, "--projection", "toy").projection == "toy"


def test_a_strategy_is_one_record_and_its_round(monkeypatch, tmp_path, table):
    toy = strategies.Strategy("toy", trees="vector")
    monkeypatch.setitem(strategies.STRATEGIES, "toy", toy)
    monkeypatch.setitem(boosting.ROUNDS, "toy", boosting.multioutput)
    model = walk({"strategy": "toy"}, tmp_path)
    expected = ManyBoostRegressor(strategy="multioutput", max_iter=8, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert shell(table, "--strategy", "toy").strategy_ == "toy"


def test_a_strategy_that_is_not_listed_is_refused():
    with pytest.raises(ValueError, match="strategy='toy' is not allowed"):
        ManyBoostRegressor(strategy="toy").fit(X, Y)


def test_a_parameter_is_one_record_and_an_argument(monkeypatch):
    class Toy(ManyBoostRegressor):
        def __init__(self, *, toy=1, max_iter=5):
            super().__init__(max_iter=max_iter)
            params.assign(self, locals())

    monkeypatch.setitem(params.PARAMS, "toy", params.Param(1, (integer(1),), "A toy."))
    assert Toy(toy=3).fit(X, Y).toy == 3
    with pytest.raises(ValueError, match="toy=0 is not allowed; it must be an integer of at least"):
        Toy(toy=0).fit(X, Y)


def test_a_verb_is_one_module(monkeypatch, capsys):
    toy = SimpleNamespace(
        SUMMARY="say hello",
        configure=lambda parser: None,
        run=lambda arguments: print("hello"),
    )
    monkeypatch.setitem(cli.VERBS, "toy", toy)
    assert cli.main(["toy"]) == 0
    assert capsys.readouterr().out == "hello\n"
