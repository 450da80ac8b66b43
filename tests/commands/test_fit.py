"""``manyboost fit``: the file is read as it says, flags are parameters, errors are sentences."""

import numpy as np
import pytest

import manyboost
from commands.csv_files import read_csv, write_csv
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.cli import main
from manyboost.commands.parameters import parse
from manyboost.data.named import NamedTable
from manyboost.params import PARAMS


def test_the_model_is_that_of_python(folder):
    header, rows = read_csv(folder / "people.csv")
    values = np.array(rows, float)
    X = NamedTable(header[:3], values[:, :3])
    Y = NamedTable(header[3:], values[:, 3:])
    expected = ManyBoostRegressor(random_state=0, max_iter=15).fit(X, Y)
    expected.save(folder / "expected.mb")
    assert (folder / "people.mb").read_bytes() == (folder / "expected.mb").read_bytes()
    (folder / "expected.mb").unlink()


def test_names_categories_and_outputs_are_in_the_model(folder):
    sizes = manyboost.load(folder / "sizes.mb")
    assert sizes.feature_names_in_.tolist() == ["sepal_length", "sepal_width", "species"]
    assert sizes._category_labels.of_column == {2: ("setosa", "versicolor", "virginica")}
    assert sizes.output_names_.tolist() == ["petal_length", "petal_width"]
    classes = manyboost.load(folder / "classes.mb")
    assert classes.target_name_ == "species"
    assert classes.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    tags = manyboost.load(folder / "tags.mb")
    assert isinstance(tags, ManyBoostClassifier)
    assert tags.output_names_.tolist() == ["long", "wide"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("iris_train.csv --target species", "100 rows, 4 features, classes in 'species'"),
        ("iris_train.csv --target petal*", "3 features (1 categorical), 2 outputs: r"),
        ("tags_train.csv --delimiter ; --target long wide", "2 labels: multi-label"),
        (
            "iris_train.csv --target petal_width --ignore species sepal*",
            "1 feature, 1 output: regr",
        ),
        (
            "iris_train.csv --target petal_width --categorical-features sepal_width",
            "4 features (2 categorical)",
        ),
    ],
)
def test_what_was_read_is_told(run, folder, words, said):
    assert run("fit", *words.split(), "-o", "some.mb", "--max-iter", "2") == ""
    assert said in run.err
    assert "2 rounds" in run.err
    (folder / "some.mb").unlink()


def test_dates_are_said_to_be_categories(run, folder):
    rows = [[f"2024-03-{1 + i % 28:02}", "north", i] for i in range(56)]
    write_csv(folder / "days.csv", ["day", "place", "y"], rows)
    run("fit", "days.csv", "--target", "y", "-o", "days.mb", "--max-iter", "2")
    assert "'day' holds dates, which count as categories: turn them into numbers" in run.err
    assert "'place' holds" not in run.err


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("{:02}/02/2020", "dates"),
        ("{}.2.2020 08:30", "dates"),
        ("{}/12/24", "dates"),
        ("{}%", "percentages"),
        ("{}.5 %", "percentages"),
        ("{}.2.3", None),
        ("10.0.0.{}", None),
    ],
)
def test_numbers_that_are_not_written_as_such_are_told(run, tmp_path, cell, expected):
    path = tmp_path / "x.csv"
    path.write_text("a,y\n" + "".join(f"{cell.format(1 + i % 9)},{i}.5\n" for i in range(40)))
    run("fit", str(path), "--target", "y", "-o", str(tmp_path / "x.mb"), "--max-iter", "1")
    told = f"'a' holds {expected}, which count as categories: turn them into numbers"
    assert told in run.err if expected else "which count as categories" not in run.err


def test_whole_numbers_raise_a_doubt(run, folder):
    write_csv(folder / "stars.csv", ["x", "stars"], [[i, i % 5] for i in range(50)])
    run("fit", "stars.csv", "--target", "stars", "-o", "stars.mb", "--max-iter", "2")
    assert "'stars' holds 5 distinct integers: if they are classes, pass --task" in run.err
    run("fit", "stars.csv", "--target", "stars", "-o", "stars.mb", "--task", "classification")
    assert "classes in 'stars': classification." in run.err
    assert manyboost.load(folder / "stars.mb").classes_.tolist() == [0, 1, 2, 3, 4]


def test_flags_are_parameters(run, folder):
    flags = (
        "--loss quantile --quantile 0.1,0.9 --max-leaf-nodes none --subsample 0.5 --max-iter 3"
        " --interaction-cst sepal_length,sepal_width --monotonic-cst sepal_width=1 --n-jobs 1"
        " --early-stopping false --random-state 3 --max-features sqrt --verbose 2"
        " --learning-rate 0.01"
    )
    words = "fit iris_train.csv --target petal* --ignore species -o some.mb"
    run(*words.split(), *flags.split())
    assert run.err.count("\nround ") == 3
    parameters = manyboost.load(folder / "some.mb").get_params()
    (folder / "some.mb").unlink()
    expected = {
        "loss": "quantile", "quantile": [0.1, 0.9], "max_leaf_nodes": None, "subsample": 0.5,
        "interaction_cst": [["sepal_length", "sepal_width"]], "monotonic_cst": {"sepal_width": 1},
        "n_jobs": 1, "early_stopping": False, "random_state": 3, "max_features": "sqrt",
        "max_iter": 3, "verbose": 0, "warm_start": False,
    }  # fmt: skip
    assert {name: parameters[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("max_iter", "7", 7), ("learning_rate", "auto", "auto"), ("learning_rate", "0.1", 0.1),
        ("max_features", "1", 1), ("max_features", "1.0", 1.0), ("max_depth", "None", None),
        ("loss", "squared_error,log_loss", ["squared_error", "log_loss"]),
        ("verbose", "true", True),
        ("output_weight", "2", [2]), ("output_weight", "1,2.5", [1, 2.5]), ("scoring", "r2", "r2"),
        ("class_weight", "a=2,1=0.5", {"a": 2, "1": 0.5}), ("class_weight", "balanced", "balanced"),
        ("interaction_cst", "a,b;3", [["a", "b"], ["3"]]),
        ("interaction_cst", "pairwise", "pairwise"),
        ("monotonic_cst", "3=-1", {"3": -1}), ("thresholds", "0.1,0.2", [0.1, 0.2]),
    ],
)  # fmt: skip
def test_a_flag_is_read_as_its_parameter_allows(name, text, value):
    read = parse(name, text)
    assert read == value
    assert type(read) is type(value)
    assert any(check.holds(read) for check in PARAMS[name].checks)


def test_going_on_is_training_longer(run, folder):
    words = "fit iris_train.csv --target species --random-state 0 --learning-rate 0.1 --quiet"
    run(*words.split(), "--max-iter", "4", "-o", "short.mb")
    run(*words.split(), "--max-iter", "9", "-o", "long.mb")
    run(
        "fit", "iris_train.csv", "--resume", "short.mb", "--max-iter", "9", "-o", "on.mb", "--quiet"
    )
    assert (folder / "on.mb").read_bytes() == (folder / "long.mb").read_bytes()
    run("fit", "iris_train.csv", "--resume", "short.mb", "--max-iter", "9", "-o", "on.mb")
    assert "9 rounds" in run.err
    for name in ("short", "long", "on"):
        (folder / f"{name}.mb").unlink()


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("iris_train.csv --target specis", 2, "matches no column of iris_train.csv; did you"),
        ("iris_train.csv", 2, "Say which columns of iris_train.csv to predict, with"),
        ("iris_train.csv --target species --ignore petal_lenght", 2, "mean 'petal_length'?"),
        ("iris_train.csv --target species --ignore species", 2, "is in both --target and --ignore"),
        ("iris_train.csv --target *", 2, "is left without any feature"),
        ("iris_train.csv --targets-prefix z", 2, "begins with --targets-prefix 'z'"),
        ("--target species iris_train.csv", 2, "put it before options that take several names"),
        ("tags_train.csv --target long", 2, "has a single column, 'sepal_length;sepal_width;long;"),
        ("tags_train.csv --delimiter ;; --target long", 2, "';;' cannot separate cells; use one"),
        ("tags_train.csv --delimiter § --target long", 2, "'§' cannot separate cells; use one"),
        ("tags_train.csv --delimiter \" --target long", 2, "cannot separate cells; use one"),
        ("iris.npz --delimiter ;", 2, "is for the format 'csv', but iris.npz is npz; remove it"),
        ("iris.svm --encoding cp1252", 2, "is for the formats 'csv', 'arff', but iris.svm is svm"),
        ("iris_train.csv --target species --rows test", 2, "iris_train.csv has no split into"),
        ("iris_train.csv --target species --max-iter 0", 2, "max_iter=0 is not allowed; it must"),
        ("iris_train.csv --target species --max-itr 3", 2, "did you mean '--max-iter'?"),
        ("iris_train.csv --target species --loss hubr", 2, "no loss 'hubr'; did you mean 'huber'?"),
        ("iris_train.csv --target species --n-estimators 3", 2, "in manyboost this is --max-iter."),
        ("iris_train.csv --target species --eta=1", 2, "in manyboost this is --learning-rate."),
        ("iris_train.csv --target species --strategy relable", 2, "did you mean 'relabel'?\n"),
        ("iris_train.csv extra --target species", 2, "Unexpected argument 'extra'"),
        ("iris_train.csv --target species --task regression --class-weight balanced", 1, "is text"),
        ("iris_train.csv --target petal* --task regression --thresholds 0.3", 2, "--thresholds is"),
        ("iris.dat --target species", 2, "is unknown; pass --format"),
        ("nothing.csv --target species", 1, "The file 'nothing.csv' does not exist"),
        ("iris_train.csv --target sepal_width species", 1, "has classes (output 'species') and"),
        ("iris_train.csv --resume sizes.mb --task regression", 2, "--resume determines --task"),
        ("iris_train.csv --resume nothing.mb", 1, "The model file 'nothing.mb' does not exist"),
    ],
)  # fmt: skip
def test_wrong_commands_are_refused_with_one_sentence(refused, words, code, sentence):
    found, said = refused("fit", *words.split(), "-o", "refused.mb")
    assert sentence in said
    assert found == code


@pytest.mark.parametrize(
    ("classes", "words", "weights"),
    [
        ((True, False), "True=3,False=1", {"True": 3, "False": 1}),
        (("none", "2"), "none=3,2=1", {"none": 3, "2": 1}),
        ((0, 1), "0=3,1=1", {0: 3, 1: 1}),
    ],
)
def test_weights_are_those_of_the_classes_of_the_file(run, tmp_path, classes, words, weights):
    rows = [[i, classes[i % 5 > 1]] for i in range(60)]
    path, model = write_csv(tmp_path / "toy.csv", ["x", "y"], rows), str(tmp_path / "toy.mb")
    run("fit", str(path), "--target", "y", "--class-weight", words, "-o", model, "--quiet")
    assert manyboost.load(model).class_weight == weights


def test_the_model_needs_a_place(refused):
    assert "Name the file to write the model to" in refused("fit", "iris_train.csv")[1]
    words = ("fit", "iris_train.csv", "-o", "nowhere/model.mb")
    said = "There is no folder 'nowhere' to write to.\n"
    assert refused(*words) == (2, f"manyboost fit: {said}")
    # Before training, not after it.
    code, said = refused("fit", "iris_train.csv", "--target", "species", "-o", ".")
    assert (code, said) == (
        2,
        "manyboost fit: -o '.' is a folder; name another file to write to.\n",
    )


@pytest.mark.filterwarnings("default:Rare categories")
def test_text_of_too_many_values_counts_as_one_and_that_is_said(run, folder):
    path = write_csv(
        folder / "ids.csv", ["id", "x", "y"], [[f"n{i}", i, i / 2] for i in range(300)]
    )
    run("fit", "ids.csv", "--target", "y", "-o", "ids.mb", "--max-iter", "3")
    assert "more than max_bins=255: column 'id' keeps 0 of its 300; merge" in run.err
    run("info", "ids.mb")
    assert "(300 rare ones count as one)" in run.out
    path.unlink()
    (folder / "ids.mb").unlink()


def test_an_interrupt_keeps_what_was_learnt(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)

    def interrupted(model, *arguments):
        def stop(state):
            if state.round == 3:
                raise KeyboardInterrupt

        model.callbacks = [stop]
        return fit(model, *arguments)

    fit = ManyBoostClassifier.fit
    monkeypatch.setattr(ManyBoostClassifier, "fit", interrupted)
    words = "fit iris_train.csv --target species -o part.mb --quiet"
    assert main(words.split()) == 130
    assert "part.mb holds the model after 3 rounds, pass --resume part.mb" in (
        capsys.readouterr().err
    )
    assert manyboost.load("part.mb").n_iter_ == 3
    (folder / "part.mb").unlink()
