"""``manyboost predict`` writes what the model says, whatever the file looks like."""

import gzip
import os
import subprocess
import sys

import numpy as np
import pytest

import manyboost
from commands.csv_files import read_csv, write_csv
from manyboost.cli import main
from manyboost.data.named import NamedTable
from manyboost.datasets.readers import tables


def table_of(model, path):
    """The features of a model in a file, the obvious way."""
    header, rows = read_csv(path)
    cells = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    labels = {j: tuple(each) for j, each in model._category_labels.of_column.items()}
    columns = [
        [labels[j].index(cell) if j in labels else float(cell) for cell in cells[name]]
        for j, name in enumerate(model.feature_names_in_)
    ]
    return NamedTable(model.feature_names_in_.tolist(), np.array(columns).T, labels)


@pytest.fixture
def sizes(folder):
    model = manyboost.load(folder / "sizes.mb")
    return model, model.predict(table_of(model, folder / "iris_test.csv"))


def numbers(text):
    header, *rows = [line.split(",") for line in text.splitlines()]
    return header, np.array(rows, float)


@pytest.mark.parametrize("block", [3, 1 << 18])
def test_numbers_are_those_of_the_model_to_the_last_digit(run, sizes, monkeypatch, block):
    monkeypatch.setattr(tables, "BLOCK_CELLS", block)
    header, values = numbers(run("predict", "sizes.mb", "iris_test.csv"))
    assert header == ["petal_length", "petal_width"]
    np.testing.assert_array_equal(values, sizes[1])


def test_columns_are_found_by_name(run, folder, sizes):
    header, rows = read_csv(folder / "iris_test.csv")
    order = [4, 1, 0]
    shuffled = [[*(row[i] for i in order), "x"] for row in rows]
    path = write_csv(folder / "other.csv", [*(header[i] for i in order), "remark"], shuffled)
    _, values = numbers(run("predict", "sizes.mb", "other.csv"))
    path.unlink()
    np.testing.assert_array_equal(values, sizes[1])


def test_a_column_of_unknown_categories_is_told(run, tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    write_csv(train, ["shop", "y"], [[i % 3, i % 3 + i % 5] for i in range(60)])
    words = ("--target", "y", "--categorical-features", "shop", "--max-iter", "3", "--quiet")
    run("fit", str(train), *words, "-o", str(tmp_path / "shops.mb"))
    # Other programs write 1.0 for 1 as soon as a cell of the column is empty.
    for shops, is_told in ((["1.0", "2.0", ""], True), (["1", "7", ""], False), ([""], False)):
        write_csv(test, ["x", "shop"], [[0, shop] for shop in shops])
        run("predict", str(tmp_path / "shops.mb"), str(test))
        assert run.err == is_told * (
            "No category of column 'shop' of test.csv is known to the model: it has '1.0', '2.0', "
            "the model '0', '1', '2'; they count as missing.\n"
        )


def test_unknown_categories_are_missing(run, folder):
    rows = [[5.5, 3.1, "rosa"], [5.5, 3.1, ""], [5.5, 3.1, "?"]]
    path = write_csv(folder / "other.csv", ["sepal_length", "sepal_width", "species"], rows)
    _, values = numbers(run("predict", "sizes.mb", "other.csv"))
    path.unlink()
    assert (values == values[0]).all()


def test_some_outputs_into_a_file(run, folder, sizes):
    assert run("predict", "sizes.mb", "iris_test.csv", "--outputs", "*width", "-o", "w.csv") == ""
    header, rows = read_csv(folder / "w.csv")
    (folder / "w.csv").unlink()
    assert header == ["petal_width"]
    np.testing.assert_array_equal(np.array(rows, float)[:, 0], sizes[1][:, 1])


def test_classes_probabilities_and_the_best_of_them(run, folder):
    model = manyboost.load(folder / "classes.mb")
    X = table_of(model, folder / "iris_test.csv")
    header, *rows = run("predict", "classes.mb", "iris_test.csv").split()
    assert header == "species"
    assert rows == model.predict(X).tolist()
    header, values = numbers(run("predict", "classes.mb", "iris_test.csv", "--proba"))
    assert header == ["setosa", "versicolor", "virginica"]
    np.testing.assert_array_equal(values, model.predict_proba(X))
    _, some = numbers(
        run("predict", "classes.mb", "iris_test.csv", "--proba", "--outputs", "setosa")
    )
    np.testing.assert_array_equal(some, values[:, :1])
    header, *rows = run("predict", "classes.mb", "iris_test.csv", "--top-k", "2").splitlines()
    assert header == "top_1,score_1,top_2,score_2"
    labels, scores = model.predict_top_k(X, 2)
    first = rows[0].split(",")
    assert first[::2] == labels[0].tolist()
    assert [float(cell) for cell in first[1::2]] == scores[0].tolist()


def test_labels_are_zeros_and_ones(run, folder):
    header, values = numbers(run("predict", "tags.mb", "tags_test.csv", "--delimiter", ";"))
    assert header == ["long", "wide"]
    assert set(values.ravel()) == {0, 1}
    _, proba = numbers(run("predict", "tags.mb", "tags_test.csv", "--delimiter", ";", "--proba"))
    np.testing.assert_array_equal(values, proba > 0.5)


def test_several_quantiles_have_a_column_each(run, folder):
    words = "fit iris_train.csv --target petal* --loss quantile --quantile 0.1,0.9 -o q.mb --quiet"
    run(*words.split(), "--max-iter", "3")
    header, values = numbers(run("predict", "q.mb", "iris_test.csv"))
    assert header == [f"petal_{side}_q{q}" for side in ("length", "width") for q in (0.1, 0.9)]
    assert (values[:, 0] <= values[:, 1]).all()
    (folder / "q.mb").unlink()


def test_a_model_without_names_takes_columns_in_order(run, refused, folder):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    model = manyboost.ManyBoostRegressor(max_iter=3).fit(X, y)
    model.save(folder / "plain.mb")
    path = write_csv(folder / "plain.csv", ["id", "p", "q"], np.column_stack([X[:, 0], X]))
    header, values = numbers(run("predict", "plain.mb", "plain.csv", "--ignore", "id"))
    assert header == ["y0", "y1"]
    np.testing.assert_array_equal(values, model.predict(X))
    code, said = refused("predict", "plain.mb", "plain.csv")
    assert code == 1
    assert "plain.csv has 3 columns for the 2 features of the model, which have no names" in said
    path.unlink()
    (folder / "plain.mb").unlink()


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("sizes.mb iris_test.csv --proba", 2, "--proba is for classifiers"),
        ("classes.mb iris_test.csv --outputs setosa", 2, "the model predicts one class"),
        ("sizes.mb iris_test.csv --outputs petal_widht", 2, "did you mean 'petal_width'?"),
        (
            "sizes.mb people.csv",
            1,
            "people.csv lacks the features 'sepal_length', 'sepal_width', 'species'",
        ),
        ("iris_test.csv iris_test.csv", 1, "is not a sound model file"),
        ("sizes.mb", 2, "Name the file to read"),
        ("sizes.mb iris_test.csv --ignore species", 2, "leaves out 'species', which is a feature"),
        (
            "sizes.mb iris_test.csv --rows test",
            2,
            "iris_test.csv has no split into training and test rows; remove --rows.",
        ),
        ("sizes.mb sizes.npz", 1, "The file 'sizes.npz' does not exist"),
    ],
)
def test_wrong_commands_are_refused_with_one_sentence(refused, words, code, sentence):
    found, said = refused("predict", *words.split())
    assert sentence in said
    assert found == code


def test_a_misspelt_column_is_recognised(refused, folder):
    path = folder / "iris_misspelt.csv"
    path.write_text("sepal_lenght,sepal_width,species\n5,3,setosa\n")
    code, said = refused("predict", "sizes.mb", path.name)
    path.unlink()
    assert code == 1
    assert "did you mean 'sepal_length' for 'sepal_lenght'?" in said


def test_a_bad_cell_leaves_no_file_behind(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    rows = [[5, 3, "setosa"]] * 10 + [[5, "three", "setosa"]]
    path = write_csv(folder / "bad.csv", ["sepal_length", "sepal_width", "species"], rows)
    before = sorted(folder.iterdir())
    assert main(["predict", "sizes.mb", "bad.csv", "-o", "out.csv"]) == 1
    err = capsys.readouterr().err
    assert "bad.csv, line 12: column 'sepal_width' holds 'three', which is not a number" in err
    assert sorted(folder.iterdir()) == before
    path.unlink()


CHILD = """
import resource
from manyboost.cli import main

def peak():  # in megabytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000

assert main(["predict", "sizes.mb", "blocks.csv.gz", "-o", "blocks_out.csv"]) == 0
before = peak()
assert main(["predict", "sizes.mb", "large.csv.gz", "-o", "large_out.csv"]) == 0
print(peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the unit of the peak is Linux's")
def test_memory_does_not_grow_with_the_file(folder):
    header, rows = read_csv(folder / "iris_test.csv")
    body = "".join(",".join(row) + "\n" for row in rows)
    # Two blocks of rows, and twelve: these are more than 100 MB as Python's strings.
    for name, times in (("blocks", 2000), ("large", 12000)):
        text = ",".join(header) + "\n" + body * times
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode(), 1))
    done = subprocess.run(
        [sys.executable, "-c", CHILD], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.stderr == ""
    assert float(done.stdout) < 30
    with (folder / "large_out.csv").open() as lines:
        assert sum(1 for _ in lines) == 1 + times * len(rows)
    _, first = read_csv(folder / "blocks_out.csv")
    with (folder / "large_out.csv").open() as lines:
        last = lines.readlines()[-len(rows) :]
    assert [line.strip().split(",") for line in last] == first[: len(rows)]
    for name in ("large.csv.gz", "large_out.csv", "blocks.csv.gz", "blocks_out.csv"):
        (folder / name).unlink()


def test_a_model_with_an_offset_says_where_it_can_be_used(refused, folder):
    X = np.random.default_rng(0).normal(size=(60, 3))
    path = folder / "with_offset.mb"
    manyboost.ManyBoostRegressor(max_iter=2).fit(X, X[:, :2], offset=X[:, 0]).save(path)
    try:
        for verb in ("predict", "evaluate"):
            code, sentence = refused(verb, path.name, "people.csv")
            assert code == 1
            assert sentence == (
                f"manyboost {verb}: The model was fitted with an offset, which commands cannot "
                "take; use manyboost.load in Python and pass offset= to its methods.\n"
            )
    finally:
        path.unlink()


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("people", ["predict", "people.csv"]),
        ("people", ["evaluate", "people.csv"]),
        ("tags", ["predict", "tags_test.csv", "--delimiter", ";"]),
        ("tags", ["predict", "tags_test.csv", "--delimiter", ";", "--proba"]),
        ("tags", ["predict", "tags_test.csv", "--delimiter", ";", "--proba", "--top-k", "1"]),
        ("tags", ["evaluate", "tags_test.csv", "--delimiter", ";"]),
        ("classes", ["predict", "iris_test.csv", "--proba"]),
        ("classes", ["predict", "iris_test.csv", "--proba", "--top-k", "2"]),
    ],
)
def test_a_model_that_predicts_frames_in_python_writes_the_same(
    run, tmp_path, model, words, library
):
    framed = str(tmp_path / "framed.mb")
    command, *rest = words
    expected = run(command, f"{model}.mb", *rest)
    manyboost.load(f"{model}.mb").set_output(predict=library).save(framed)
    assert run(command, framed, *rest) == expected
