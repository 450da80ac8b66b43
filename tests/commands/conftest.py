"""Files and models that the verbs are tried on: real data, small."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_linnerud

from commands.csv_files import write_csv
from manyboost.cli import main


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """iris (classes, and text as a category), linnerud (3 outputs), tags of iris (labels)."""
    folder = tmp_path_factory.mktemp("commands")
    iris = load_iris()
    order = np.random.default_rng(0).permutation(len(iris.data))
    species = iris.target_names[iris.target]
    for name, rows in (("train", order[:100]), ("test", order[100:])):
        header = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
        both = [[*iris.data[i], species[i]] for i in rows]
        write_csv(folder / f"iris_{name}.csv", [*header, "species"], both)
        tags = [
            [*iris.data[i, :2], *("yes" if on else "no" for on in iris.data[i, 2:] > [4, 1.5])]
            for i in rows
        ]
        write_csv(folder / f"tags_{name}.csv", [*header[:2], "long", "wide"], tags, ";")
    people = load_linnerud()
    header = [*people.feature_names, *(f"y_{name}" for name in people.target_names)]
    write_csv(folder / "people.csv", header, np.hstack([people.data, people.target]).tolist())
    common = ["--random-state", "0", "--max-iter", "15", "--quiet"]
    for model, *words in (
        ("classes", "iris_train.csv", "--target", "species"),
        ("sizes", "iris_train.csv", "--target", "petal*"),
        ("tags", "tags_train.csv", "--delimiter", ";", "--target", "long", "wide"),
        ("people", "people.csv", "--targets-prefix", "y_"),
    ):
        words[0] = str(folder / words[0])
        assert main(["fit", *words, "-o", str(folder / f"{model}.mb"), *common]) == 0
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Run a command in the folder of the files; its standard output."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MANYBOOST_TRACEBACK", raising=False)

    def run(*arguments):
        assert main(arguments) == 0, capsys.readouterr().err
        run.out, run.err = capsys.readouterr()
        return run.out

    return run


@pytest.fixture
def refused(folder, monkeypatch, capsys):
    """The one sentence with which a command ends, and its exit code."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MANYBOOST_TRACEBACK", raising=False)

    def refused(*arguments):
        before = sorted(folder.iterdir())
        code = main(arguments)
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert sorted(folder.iterdir()) == before
        return code, err

    return refused
