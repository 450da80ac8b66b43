"""Several columns of classes on the command line."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

import manyboost
from commands.csv_files import read_csv, write_csv
from manyboost.data.named import NamedTable

FIT = ("--random-state", "0", "--max-iter", "15", "--quiet")


@pytest.fixture
def flowers(folder):
    """Iris with its species, whether petals are long (yes, no), and sizes in whole centimetres."""
    iris = load_iris()
    species = iris.target_names[iris.target]
    rows = [
        [*x, "" if i == 4 else name, "yes" if x[2] > 4 else "no", round(x[0])]
        for i, (x, name) in enumerate(zip(iris.data.tolist(), species, strict=True))
    ]
    header = [*"abcd", "species", "long", "size"]
    path = write_csv(folder / "flowers.csv", header, rows)
    yield path
    path.unlink()


def features(path):
    return NamedTable(list("abcd"), np.array([row[:4] for row in read_csv(path)[1]], float))


def fitted(run, folder, *words):
    run("fit", "flowers.csv", *words, "-o", "columns.mb", *FIT)
    return manyboost.load(folder / "columns.mb")


def test_text_and_labels_are_columns_of_classes(run, folder, flowers):
    words = ("flowers.csv", "--target", "species", "long", "--ignore", "size")
    run("fit", *words, "-o", "columns.mb", "--max-iter", "2", "--random-state", "0")
    assert "2 columns of classes: classification" in run.err
    model = manyboost.load(folder / "columns.mb")
    assert model.target_names_.tolist() == ["species", "long"]
    assert [each.tolist() for each in model.classes_] == [
        ["setosa", "versicolor", "virginica"],
        ["no", "yes"],
    ]


def test_predictions_are_columns_and_probabilities_name_the_classes(run, folder, flowers):
    words = ("--target", "species", "long", "size", "--task", "classification")
    model = fitted(run, folder, *words)
    assert model.classes_[2].tolist() == [4, 5, 6, 7, 8]
    header, *rows = [
        line.split(",") for line in run("predict", "columns.mb", "flowers.csv").splitlines()
    ]
    assert header == ["species", "long", "size"]
    X = features(flowers)
    assert rows == [list(map(str, row)) for row in model.predict(X).tolist()]
    header, *rows = [
        line.split(",")
        for line in run("predict", "columns.mb", "flowers.csv", "--proba").splitlines()
    ]
    assert header[:5] == [
        "species=setosa",
        "species=versicolor",
        "species=virginica",
        "long=no",
        "long=yes",
    ]
    assert np.array_equal(np.array(rows, float), np.hstack(model.predict_proba(X)))
    assert run("explain", "columns.mb", "--csv").startswith("feature,importance,species=setosa,")


def test_every_column_is_scored_where_it_is_known(run, folder, flowers):
    model = fitted(run, folder, "--target", "species", "long", "--ignore", "size")
    report = json.loads(run("evaluate", "columns.mb", "flowers.csv", "--json"))
    truth = np.array([row[4:6] for row in read_csv(flowers)[1]], object)
    X = features(flowers)
    right = model.predict(X) == truth
    there = truth != ""
    by_column = [right[there[:, j], j].mean() for j in range(2)]
    assert report["task"] == "columns"
    assert [each["accuracy"] for each in report["by_output"].values()] == by_column
    assert report["scores"]["accuracy"] == pytest.approx(np.mean(by_column))
    assert report["scores"]["subset_accuracy"] == (right | ~there).all(axis=1).mean()
    assert "worst column" in run("evaluate", "columns.mb", "flowers.csv")


def test_columns_of_truth_values_are_scored(run, tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 2))
    Y = np.array([[a > 0, "uvw"[int(b > 0.5) + int(b > -0.5)]] for a, b in X.tolist()], object)
    csv, saved = tmp_path / "truth.csv", tmp_path / "truth.mb"
    write_csv(csv, list("abpq"), np.hstack([X.astype(object), Y]))
    model = manyboost.ManyBoostClassifier(max_iter=5, random_state=0)
    model.fit(NamedTable(["a", "b"], X), NamedTable(["p", "q"], Y)).save(saved)
    assert model.classes_[0].tolist() == [False, True]
    found = json.loads(run("evaluate", str(saved), str(csv), "--json"))
    right = model.predict(NamedTable(["a", "b"], X)) == Y
    assert [each["accuracy"] for each in found["by_output"].values()] == right.mean(axis=0).tolist()
    assert found["scores"]["subset_accuracy"] == right.all(axis=1).mean()


def test_what_columns_do_not_have_on_the_command_line(run, refused, folder, flowers):
    fitted(run, folder, "--target", "species", "long", "--ignore", "size")
    for option in (("--top-k", "2"), ("--outputs", "species")):
        code, sentence = refused("predict", "columns.mb", "flowers.csv", *option)
        assert code == 2
        assert f"{option[0]} is not for models of this kind" in sentence
    words = ("--target", "species", "size", "--ignore", "long", "-o", "other.mb")
    code, sentence = refused("fit", "flowers.csv", *words)
    assert code == 1
    assert "has classes (output 'species') and numbers" in sentence
