"""What is written about the software is true of it."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import manyboost
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.params import PARAMS

ROOT = Path(__file__).parent.parent
ESTIMATORS = [ManyBoostRegressor, ManyBoostClassifier]

# Where an estimator's default is not that of the table.
OWN_DEFAULTS = {(ManyBoostClassifier, "loss"): "log_loss"}


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def test_the_examples_of_the_readme_run_in_order():
    blocks = python_blocks("README.md")
    assert blocks
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    # As its comments say.
    assert names["predictions"].shape == (500, 20)
    assert names["probabilities"].shape == (500, 12)
    assert names["heavy"].shape == (500, 1)
    assert names["labels"].shape == names["scores"].shape == (500, 2)
    assert list(names["table"].columns) == ["heavy", "large", "small"]
    assert names["rounds"].shape == (12,)
    assert names["reasons"].shape == (5, names["X"].shape[1], 12)
    assert names["alike"].shape == (12, 12)
    assert (names["low"] <= names["high"]).all()


@pytest.mark.parametrize(
    "page", sorted(path.name for path in ROOT.glob("*.md")), ids=lambda name: name
)
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / page).read_text())
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (ROOT / link).exists()]
    assert missing == []


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_in_the_table_with_its_default(estimator):
    for name, parameter in inspect.signature(estimator).parameters.items():
        expected = OWN_DEFAULTS.get((estimator, name), PARAMS[name].default)
        assert parameter.default == expected, name
        assert type(parameter.default) is type(expected), name


def test_every_row_of_the_table_is_a_parameter():
    used = {name for estimator in ESTIMATORS for name in inspect.signature(estimator).parameters}
    assert set(PARAMS) == used


def test_every_default_is_allowed_by_the_table():
    for name, parameter in PARAMS.items():
        assert any(check.holds(parameter.default) for check in parameter.checks), name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_only_the_loss_may_be_given_by_position(estimator):
    kinds = [parameter.kind for parameter in inspect.signature(estimator).parameters.values()]
    assert kinds[0] is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds[1:]) == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_in_the_docstring_with_its_default_and_meaning(estimator):
    text = estimator.__doc__
    assert "{parameters}" not in text
    for name, parameter in inspect.signature(estimator).parameters.items():
        assert f"\n    {name} : default={parameter.default!r}\n" in text
        assert PARAMS[name].meaning in " ".join(text.split())


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_fitted_attribute_is_in_the_docstring(estimator):
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = estimator(max_iter=1, strategy="project").fit(X, X > 0, X_val=X, Y_val=X > 0)
    fitted = {name for name in dir(model) if re.fullmatch(r"[a-z]\w*[a-z]_", name)}
    assert {"n_iter_", "baseline_", "step_sizes_", "feature_importances_"} <= fitted
    attributes = estimator.__doc__.split("Attributes\n", 1)[1]
    for name in fitted | {"feature_names_in_"}:
        assert re.search(rf"\b{name}\b", attributes), name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_public_method_has_a_docstring(estimator):
    for name, method in inspect.getmembers(estimator, callable):
        # scikit-learn makes the request methods, and documents them.
        if not name.startswith("_"):
            assert inspect.getdoc(method), name


MODULES = ["manyboost"] + [
    module.name for module in pkgutil.walk_packages(manyboost.__path__, "manyboost.")
]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is_for(name):
    text = importlib.import_module(name).__doc__
    assert text
    assert text.strip().splitlines()[0].endswith((".", ":"))


def test_everything_exported_exists_and_is_documented():
    for name in manyboost.__all__:
        thing = getattr(manyboost, name)
        assert name == "__version__" or inspect.getdoc(thing)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", manyboost.__version__)
