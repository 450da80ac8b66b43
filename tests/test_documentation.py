"""What is written about the software is true of it."""

import csv
import doctest
import importlib
import inspect
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import manyboost
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.cli import VERBS
from manyboost.commands.parameters import flag
from manyboost.commands.usage import parser_for
from manyboost.params import PARAMS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "manyboost"
ESTIMATORS = [ManyBoostRegressor, ManyBoostClassifier]

# Where an estimator's default is not that of the table.
OWN_DEFAULTS = {(ManyBoostClassifier, "loss"): "log_loss"}


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def test_the_examples_of_the_readme_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks("README.md")
    assert blocks
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    # As its comments say.
    assert names["own_predictions"].shape == (100, 2)
    assert names["predictions"].shape == (500, 20)
    assert names["probabilities"].shape == (500, 12)
    assert names["heavy"].shape == (500, 1)
    assert names["labels"].shape == names["scores"].shape == (500, 2)
    assert list(names["table"].columns) == ["heavy", "large", "small"]
    assert names["again"].predict(names["frame"]).equals(names["table"])
    assert "3 features, 3 outputs" in names["about"]
    assert names["rounds"].shape == (12,)
    assert (names["low"] <= names["high"]).all()
    assert names["shares"].shape == (12, 20)
    assert names["shapley"].shape == (5, 20, 12)
    assert names["alike"].shape == (12, 12)
    outputs = [each.name for each in names["onnx_model"].graph.output]
    assert outputs == ["labels", "probabilities"]
    assert names["treelite_model"].num_tree == 50


def pages_of_the_site():
    """Pages of the site, without generated ones."""
    made = {ROOT / "docs" / name for name in ("_build", "gallery", "internals")}
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [page for page in pages if not made & set(page.parents)]


EXAMPLES = [page for page in pages_of_the_site() if "```pycon\n" in page.read_text()]


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_print_what_it_shows(page, tmp_path, monkeypatch):
    pytest.importorskip("narwhals")
    monkeypatch.chdir(tmp_path)
    parser, names, shown = doctest.DocTestParser(), {}, []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.REPORT_NDIFF)
    text = page.read_text()
    for block in re.finditer(r"^```pycon\n(.*?)^```", text, re.M | re.S):
        line = text[: block.start(1)].count("\n")
        example = parser.get_doctest(block[1], names, page.stem, str(page), line)
        example.globs = names  # get_doctest made a copy
        runner.run(example, out=shown.append, clear_globs=False)
    assert runner.tries > 5
    assert not runner.failures, "".join(shown)
    # Commands of such a page work with the files that its examples left.
    blocks = shell_blocks(page)
    if blocks and shutil.which("bash"):
        run_in_bash("\n".join(blocks), tmp_path)


def test_all_commands_of_the_site_are_run_by_a_test():
    with_commands = {page for page in pages_of_the_site() if shell_blocks(page)}
    assert {page for page in EXAMPLES if shell_blocks(page)}
    assert with_commands <= {ROOT / "docs" / "cli.md", *EXAMPLES}


def test_targets_that_pages_name_are_in_the_makefile():
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", text, re.M))
    named = {
        (page.name, target)
        for page in [*ROOT.glob("*.md"), *pages_of_the_site()]
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.M)
    }
    assert ("README.md", "demo") in named
    assert {target for _, target in named} <= targets


def shell_blocks(page):
    """Blocks of commands of a page that call manyboost."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    return [block for block in blocks if re.search(r"\bmanyboost ", block)]


def run_in_bash(script, folder):
    """Run commands as a user would, ``manyboost`` being that of this interpreter."""
    manyboost_command = 'manyboost() { "$PYTHON" -m manyboost "$@"; }'
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{manyboost_command}\n{script}"],
        cwd=folder,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def rows_of(path):
    with path.open(newline="") as stream:
        header, *rows = csv.reader(stream)
    return header, rows


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@needs_bash
def test_the_two_lines_of_the_readme_make_a_model_and_predict(tmp_path):
    (block,) = shell_blocks("README.md")
    assert len(block.splitlines()) == 2
    rng = np.random.default_rng(0)
    for name, n_rows in (("train", 200), ("test", 30)):
        with (tmp_path / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["size", "y_red", "colour", "y_blue"])
            for size in rng.normal(size=n_rows):
                red = rng.random() < 0.5
                writer.writerow([size, size + red, ["blue", "red"][red], size - red])
    done = run_in_bash(block, tmp_path)
    assert "200 rows, 2 features (1 categorical), 2 outputs: regression." in done.stderr
    header, rows = rows_of(tmp_path / "out.csv")
    _, test = rows_of(tmp_path / "test.csv")
    assert header == ["y_red", "y_blue"]
    truth = np.array([[row[1], row[3]] for row in test], float)
    errors = np.array(rows, float) - truth
    assert np.abs(errors).mean() < 0.3 * np.abs(truth - truth.mean(axis=0)).mean()


@needs_bash
def test_the_commands_of_the_page_on_the_command_line_run(tmp_path):
    first, make_files, *others = shell_blocks("docs/cli.md")
    # The first needs the files that the second makes.
    done = run_in_bash("\n".join([make_files, first, *others]), tmp_path)
    folder = tmp_path / "demo"
    assert rows_of(folder / "out.csv")[0] == [f"y{j}" for j in range(8)]
    header, rows = rows_of(folder / "two.csv")
    assert (header, len(rows)) == (["y0", "y1"], 500)
    scores = json.loads((folder / "scores.json").read_text())
    assert scores["scores"]["r2"] > 0.9
    assert rows_of(folder / "importances.csv")[0] == ["feature", "importance", "y1"]
    assert manyboost.load(folder / "longer.mb").n_iter_ == 250
    for said in ("worst output", "shape       6 features, 8 outputs", "auto ("):
        assert said in done.stdout
    assert "200 rounds" in done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_and_its_options_are_on_the_page(verb):
    page = (ROOT / "docs" / "cli.md").read_text()
    assert f"manyboost {verb}" in page
    parameters = {flag(name) for name in PARAMS}
    for action in parser_for(verb, VERBS[verb])._actions:
        names = set(action.option_strings)
        if names and not names & {"--help", *parameters}:
            assert any(re.search(rf"(?<![\w-]){name}\b", page) for name in names), names


PAGES = [*sorted(ROOT.glob("*.md")), *pages_of_the_site()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (page.parent / link).exists()]
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
        line = f"\n    {name} : {PARAMS[name].type}, default={parameter.default!r}\n"
        assert line in text
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


def test_every_decision_is_in_the_index_and_says_why():
    folder = ROOT / "docs" / "decisions"
    pages = sorted(folder.glob("[0-9]*.md"))
    assert [int(page.name[:2]) for page in pages] == list(range(1, len(pages) + 1))
    titles = {}
    for page in pages:
        sections = re.findall(r"^(#+ .*)", page.read_text(), re.M)
        titles[page.name] = sections[0].removeprefix("# ")
        assert sections[1:3] == ["## Decision", "## Why"], page.name
        assert sections[3:] in ([], ["## Tried and dropped"]), page.name
    listed = re.findall(r"\[(.*)\]\((\d.*\.md)\)", (folder / "README.md").read_text())
    assert listed == [(title, name) for name, title in titles.items()]


def test_the_architecture_names_every_module():
    named = set(re.findall(r"`([\w/.]+)`", (ROOT / "ARCHITECTURE.md").read_text()))
    named = {re.sub(r"/$|\.py$", "", name) for name in named}
    core = ROOT / "crates" / "core" / "src"
    modules = set(re.findall(r"^pub mod (\w+);", (core / "lib.rs").read_text(), re.M))
    for folder in (PACKAGE, PACKAGE / "training"):
        modules |= {path.stem for path in folder.glob("*.py")}
        modules |= {path.parent.name for path in folder.glob("*/__init__.py")}
    assert modules - {"__init__", "__main__"} <= named
