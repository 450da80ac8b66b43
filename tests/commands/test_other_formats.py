"""Verbs as processes on real files: exported models, explanations, svmlight."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_diabetes

import manyboost
from commands.csv_files import read_csv
from manyboost.data.named import NamedTable

COMMAND = [sys.executable, "-m", "manyboost"]


def command(folder, *words):
    """Run a command as a process in a folder; what it printed and what it said."""
    done = subprocess.run([*COMMAND, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def numbers(table):
    """The numbers of a table that a verb printed, without its header."""
    return np.array([line.split(",") for line in table.splitlines()[1:]], float)


@pytest.fixture(scope="module")
def diabetes(tmp_path_factory):
    """Numbers to predict, in svmlight files; a model of them, made by the command line."""
    folder = tmp_path_factory.mktemp("svmlight")
    X, y = load_diabetes(return_X_y=True)
    for name, rows in (("train", slice(0, 300)), ("test", slice(300, None))):
        dump_svmlight_file(X[rows], y[rows], str(folder / f"{name}.svm"), zero_based=False)
    parameters = ["--task", "regression", "--max-iter", "40", "--random-state", "0"]
    _, said = command(folder, "fit", "train.svm", "-o", "model.mb", *parameters)
    assert "train.svm: 300 rows, 10 features, 1 output: regression." in said
    return folder, X, y


def test_svmlight_files_with_numbers_to_predict(diabetes):
    folder, X, y = diabetes
    model = manyboost.load(folder / "model.mb")
    assert model.output_names_.tolist() == ["y"]
    table, _ = command(folder, "predict", "model.mb", "test.svm")
    header, *rows = table.split()
    assert header == "y"
    names = model.feature_names_in_
    assert names.tolist() == [str(j) for j in range(1, 11)]
    again = manyboost.ManyBoostRegressor(max_iter=40, random_state=0).fit(
        X[:300].astype(np.float32), y[:300]
    )
    expected = again.predict(X[300:].astype(np.float32))
    np.testing.assert_allclose(np.array(rows, float), expected, rtol=1e-12)
    shown, _ = command(folder, "evaluate", "model.mb", "test.svm")
    assert f"{again.score(X[300:].astype(np.float32), y[300:]):.4f}" in shown


def test_signs_and_points_tell_numbers_from_labels(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{'+1' if i % 3 else '-1'} 1:{i % 3} 2:{i % 5}\n" for i in range(60)]
    (tmp_path / "signs.svm").write_text("".join(lines))
    words = ["fit", "signs.svm", "-o", "signs.mb", "--max-iter", "5"]
    run(*words)
    assert "2 distinct integers: if they are classes, pass --task classification" in run.err
    run(*words, "--task", "classification")
    model = manyboost.load(tmp_path / "signs.mb")
    assert model.classes_.tolist() == [-1, 1]
    assert run("predict", "signs.mb", "signs.svm").split()[1:4] == ["-1", "1", "1"]


def test_shapley_values_of_a_file_add_up(run, folder):
    model = manyboost.load(folder / "sizes.mb")
    values, said = command(folder, "explain", "sizes.mb", "iris_test.csv", "--shap")
    assert said == ""
    header, *lines = values.splitlines()
    assert header.split(",")[2:] == model.feature_names_in_.tolist()
    found = np.array([line.split(",")[2:] for line in lines], float).reshape(50, 2, 3)
    predicted = numbers(run("predict", "sizes.mb", "iris_test.csv"))
    np.testing.assert_allclose(model.expected_value_ + found.sum(axis=2), predicted, atol=1e-5)


def test_an_exported_onnx_model_predicts_the_same(run, folder, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    _, said = command(folder, "export", "people.mb", "-o", str(tmp_path / "people.onnx"))
    assert said.endswith(" bytes.\n")
    session = runtime.InferenceSession(str(tmp_path / "people.onnx"))
    model = manyboost.load(folder / "people.mb")
    header, rows = read_csv(folder / "people.csv")
    places = [header.index(name) for name in model.feature_names_in_]
    X = np.array(rows, float)[:, places].astype(np.float32)
    (found,) = session.run(["predictions"], {"X": X})
    expected = numbers(run("predict", "people.mb", "people.csv"))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_an_exported_treelite_model_predicts_the_same(run, diabetes, tmp_path):
    treelite = pytest.importorskip("treelite")
    folder, X, _ = diabetes
    command(folder, "export", "model.mb", "-o", str(tmp_path / "model.tl"), "--quiet")
    exported = treelite.Model.deserialize(str(tmp_path / "model.tl"))
    found = treelite.gtil.predict(exported, X[300:].astype(np.float32)).ravel()
    expected = numbers(run("predict", str(folder / "model.mb"), str(folder / "test.svm")))
    np.testing.assert_allclose(found, expected.ravel(), rtol=1e-5)


@pytest.fixture
def npz(tmp_path, monkeypatch):
    """Write a data set whose features are a, b and c, with these names of its two outputs."""
    monkeypatch.chdir(tmp_path)

    def npz(*outputs):
        X = np.random.default_rng(0).normal(size=(60, 3))
        Y = np.column_stack([100 + X[:, 1] * X[:, 2], 200 + X[:, 0]])
        np.savez("x.npz", X=X, Y=Y, feature_names=["a", "b", "c"], target_names=outputs)
        return NamedTable(["a", "b", "c"], X), Y

    return npz


FIT_NPZ = ["fit", "x.npz", "-o", "x.mb", "--max-iter", "3", "--random-state", "0"]


def test_a_feature_of_an_npz_file_can_be_the_target(run, npz):
    X, _ = npz("y0", "y1")
    run(*FIT_NPZ, "--target", "a")
    model = manyboost.load("x.mb")
    assert model.output_names_.tolist() == ["a"]
    # Declared outputs are not features, even if they are not predicted.
    assert model.feature_names_in_.tolist() == ["b", "c"]
    assert "Left out: the outputs 'y0', 'y1'." in run.err
    others = NamedTable(["b", "c"], X.values[:, 1:])
    expected = manyboost.ManyBoostRegressor(max_iter=3, random_state=0)
    expected.fit(others, X.values[:, 0])
    np.testing.assert_array_equal(model.predict(others), expected.predict(others))


def test_a_name_of_a_feature_and_an_output_means_the_output(run, refused, npz):
    X, Y = npz("b", "y1")
    run(*FIT_NPZ, "--target", "b")
    model = manyboost.load("x.mb")
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert "Left out: the output 'y1'." in run.err
    expected = manyboost.ManyBoostRegressor(max_iter=3, random_state=0).fit(X, Y[:, 0])
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    code, said = refused(*FIT_NPZ, "--target", "a")
    assert code == 2
    assert "--target 'a' matches no column of x.npz; available: 'b', 'y1'." in said


def test_a_name_of_a_feature_and_an_output_to_ignore_means_the_feature(run, refused, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5)).round(2)
    lines = []
    for row in X:
        labels = [str(j) for j in (3, 5) if row[4] + row[j - 2] > 0]
        cells = [f"{j}:{value}" for j, value in enumerate(row, 1)]
        lines.append(" ".join([",".join(labels), *cells]) + "\n")
    file, model = str(tmp_path / "d.svm"), str(tmp_path / "d.mb")
    Path(file).write_text("".join(lines))
    quick = ("-o", model, "--max-iter", "3", "--random-state", "0")
    for target in (["--target", "3"], []):
        run("fit", file, *target, "--ignore", "5", *quick)
        assert "4 features" in run.err
        assert "column '5'" in run.err
        assert manyboost.load(model).feature_names_in_.tolist() == ["1", "2", "3", "4"]
    shown = run("predict", model, file)
    assert run("predict", model, file, "--ignore", "5") == shown
    code, said = refused("predict", model, file, "--ignore", "3")
    assert code == 2
    assert "--ignore leaves out '3', which is a feature of the model." in said


@pytest.mark.parametrize(
    "rows", ["1:0.5 2:1\n2:-1\n", "3 1:0.5 2:1\n4,5 2:-1\n", "-1.5 1:0.5 2:1\n"]
)
def test_a_model_whose_outputs_have_no_names_predicts_svmlight_files(run, tmp_path, rows):
    (tmp_path / "toy.svm").write_text(rows)
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = manyboost.ManyBoostRegressor(max_iter=2, random_state=0)
    model.fit(NamedTable(["1", "2"], X), X[:, 0]).save(tmp_path / "toy.mb")
    expected = model.predict(NamedTable(["1", "2"], np.array([[0.5, 1], [0, -1]])))
    found = numbers(run("predict", str(tmp_path / "toy.mb"), str(tmp_path / "toy.svm")))[:, 0]
    np.testing.assert_array_equal(found, expected[: len(found)])


@pytest.mark.parametrize("value", ["3.5e38", "-1e300", "inf"])
def test_features_beyond_single_precision_are_learnt_in_every_format(run, tmp_path, value):
    values = [*map(str, range(59)), value]
    (tmp_path / "toy.svm").write_text("".join(f"{i}.5 1:{x}\n" for i, x in enumerate(values)))
    lines = ["1,y", *(f"{x},{i}.5" for i, x in enumerate(values))]
    (tmp_path / "toy.csv").write_text("\n".join(lines))
    for name in ("toy.svm", "toy.csv"):
        words = ("--target", "y", "--max-iter", "2", "--random-state", "0", "--quiet")
        run("fit", str(tmp_path / name), "-o", str(tmp_path / f"{name}.mb"), *words)
    models = [(tmp_path / f"{name}.mb").read_bytes() for name in ("toy.svm", "toy.csv")]
    assert models[0] == models[1]


@pytest.fixture
def codes(tmp_path, monkeypatch):
    """The same rows in four formats: the feature 1 holds codes, 2 numbers."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat([-1, 0, 2, 10, 0.1], 24))
    numbers = rng.normal(size=120).round(2)
    y = np.isin(group, (0, 10)) + 0.5
    rows = [(f"{g:g}", f"{x:g}", f"{t:g}") for g, x, t in zip(group, numbers, y, strict=True)]
    (tmp_path / "codes.csv").write_text("1,2,y\n" + "".join(",".join(row) + "\n" for row in rows))
    (tmp_path / "codes.svm").write_text("".join(f"{t} 1:{g} 2:{x}\n" for g, x, t in rows))
    head = "".join(f"@attribute {name} numeric\n" for name in ("1", "2", "y"))
    body = "".join(",".join(row) + "\n" for row in rows)
    (tmp_path / "codes.arff").write_text(f"@relation codes\n{head}@data\n{body}")
    names = {"feature_names": ["1", "2"], "target_names": ["y"]}
    X = np.column_stack([group, numbers]).astype(np.float32)
    np.savez(tmp_path / "codes.npz", X=X, Y=y[:, None], **names)


def test_numbers_are_categories_in_every_format(run, codes):
    words = ["--target", "y", "--max-iter", "4", "--random-state", "0", "--max-leaf-nodes", "2"]
    shown = set()
    for ending in ("csv", "svm", "arff", "npz"):
        file, model = f"codes.{ending}", f"{ending}.mb"
        run("fit", file, "-o", model, *words, "--categorical-features", "1")
        assert "2 features (1 categorical)" in run.err
        labels = manyboost.load(model)._category_labels.of_column
        assert labels == {0: ("-1", "0", "0.1", "10", "2")}
        for other in ("csv", "svm", "arff", "npz"):
            shown.add(run("predict", model, f"codes.{other}"))
            assert run.err == ""
    assert len(shown) == 1
    predictions = set(shown.pop().split()[1:])
    assert len(predictions) == 2  # one split divides the categories


@pytest.mark.parametrize("ending", ["npz", "svm"])
def test_numbers_keep_the_digits_of_their_file(run, tmp_path, ending):
    seconds = 1_700_000_000 + np.arange(120.0)
    y = (np.arange(120) // 15) % 2.0
    path, model = tmp_path / f"times.{ending}", tmp_path / "model.mb"
    if ending == "npz":
        names = {"feature_names": ["0"], "target_names": ["y"]}
        np.savez(path, X=seconds[:, None], Y=y[:, None], **names)
    else:
        rows = zip(y, seconds, strict=True)
        path.write_text("".join(f"{target:+} 0:{second:.0f}\n" for target, second in rows))
    few = ["--max-iter", "40", "--min-samples-leaf", "1", "--quiet"]
    run("fit", str(path), "-o", str(model), "--random-state", "0", *few)
    run("predict", str(model), str(path))
    predictions = np.array(run.out.split()[1:], float)
    assert np.abs(predictions - y).max() < 0.3  # 128 seconds are one number in single precision
