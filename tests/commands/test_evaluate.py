"""Scores are scikit-learn's, and what is shown about a model is true."""

import json

import numpy as np
import pytest
from sklearn import metrics

import manyboost
from commands.csv_files import read_csv, write_csv
from manyboost.commands.scores import Predictions, score_model
from manyboost.data.named import NamedTable


def scores(run, *words):
    return json.loads(run("evaluate", *words, "--json"))


def test_regression(run, folder):
    found = scores(run, "sizes.mb", "iris_test.csv")
    _, rows = read_csv(folder / "iris_test.csv")
    Y = np.array([row[2:4] for row in rows], float)
    P = np.array(
        [line.split(",") for line in run("predict", "sizes.mb", "iris_test.csv").split()[1:]]
    )
    P = P.astype(float)
    assert (found["rows"], found["task"]) == (50, "regression")
    np.testing.assert_allclose(found["scores"]["r2"], metrics.r2_score(Y, P))
    np.testing.assert_allclose(found["scores"]["mae"], metrics.mean_absolute_error(Y, P))
    rmse = metrics.root_mean_squared_error(Y[:, 1], P[:, 1])
    np.testing.assert_allclose(found["by_output"]["petal_width"]["rmse"], rmse)
    np.testing.assert_allclose(
        found["by_output"]["petal_length"]["r2"], metrics.r2_score(Y[:, 0], P[:, 0])
    )


def test_missing_targets_are_left_out(run, folder):
    header, rows = read_csv(folder / "iris_test.csv")
    for row in rows[::3]:
        row[2] = ""
    path = write_csv(folder / "holes.csv", header, rows)
    found = scores(run, "sizes.mb", "holes.csv")
    kept = [row for i, row in enumerate(rows) if i % 3]
    write_csv(path, header, kept)
    expected = scores(run, "sizes.mb", "holes.csv")
    path.unlink()
    assert found["by_output"]["petal_length"] == pytest.approx(
        expected["by_output"]["petal_length"]
    )
    assert found["rows"] == 50


def test_classes(run, folder):
    found = scores(run, "classes.mb", "iris_test.csv")
    _, rows = read_csv(folder / "iris_test.csv")
    y = np.array([row[4] for row in rows])
    said = np.array(run("predict", "classes.mb", "iris_test.csv").split()[1:])
    lines = run("predict", "classes.mb", "iris_test.csv", "--proba").split()
    proba = np.array([line.split(",") for line in lines[1:]], float)
    expected = {
        "accuracy": metrics.accuracy_score(y, said),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, said),
        "f1_macro": metrics.f1_score(y, said, average="macro"),
        "log_loss": metrics.log_loss(y, proba, labels=lines[0].split(",")),
    }
    assert found["scores"] == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:y lacks labels above present ones")
def test_labels_above_present_ones_need_not_be_in_the_file(run, tmp_path):
    X = np.random.default_rng(0).normal(size=(120, 2)).round(3)
    lowest = np.column_stack([X[:, 0] > 0.5, X[:, 0] < -0.5, np.abs(X[:, 0]) < 0]).astype(int)
    header, file = ["a", "b", "up", "down", "any"], tmp_path / "lowest.csv"
    write_csv(file, header, np.hstack([X, lowest]).tolist())
    words = [str(file), "--target", "up", "down", "any", "--max-iter", "20", "--random-state", "0"]
    words += ["--label-hierarchy", "up=any,down=any"]
    run("fit", *words, "-o", str(tmp_path / "m.mb"))
    model = manyboost.load(tmp_path / "m.mb")
    named = NamedTable(header[:2], X)
    found = scores(run, str(tmp_path / "m.mb"), str(file))
    assert found["scores"]["subset_accuracy"] == model.score(named, lowest) == 1
    assert found["by_output"]["any"]["rows"] == lowest.any(axis=1).sum()
    assert json.loads(run("bench", *words, "--strategies", "relabel", "--json"))[0]["score"] == 1


def test_unknown_classes_count_as_wrong(run, folder):
    header, rows = read_csv(folder / "iris_test.csv")
    rows[0][4] = "rosa"
    path = write_csv(folder / "rosa.csv", header, rows)
    before = scores(run, "classes.mb", "iris_test.csv")["scores"]
    after = scores(run, "classes.mb", "rosa.csv")["scores"]
    path.unlink()
    assert "in 1 row of rosa.csv" in run.err
    assert after["accuracy"] in (pytest.approx(before["accuracy"] - 0.02), before["accuracy"])


def test_classes_that_python_gave(run, refused, folder):
    header, rows = read_csv(folder / "iris_train.csv")
    X = np.array([row[:4] for row in rows], float)
    words = np.array([row[4] for row in rows])
    estimator = manyboost.ManyBoostClassifier(max_iter=15, random_state=0)
    # As text of fixed length, and as truth values.
    estimator.fit(X, words).save(folder / "words.mb")
    estimator.fit(X, words == "setosa").save(folder / "truth.mb")
    found = scores(run, "words.mb", "iris_test.csv", "--target", "species")["scores"]
    assert found == scores(run, "classes.mb", "iris_test.csv")["scores"]
    _, rows = read_csv(folder / "iris_test.csv")
    said = [[*row[:4], row[4] == "setosa"] for row in rows]
    path = write_csv(folder / "truth.csv", header, said)
    assert scores(run, "truth.mb", "truth.csv", "--target", "species")["scores"]["accuracy"] == 1
    write_csv(path, header, [*said, [*rows[0][:4], "perhaps"]])
    code, sentence = refused("evaluate", "truth.mb", "truth.csv", "--target", "species")
    assert code == 1
    assert "truth.csv has the class 'perhaps', but the model knows only False and True" in sentence
    for name in ("words.mb", "truth.mb", "truth.csv"):
        (folder / name).unlink()


def test_labels(run, folder):
    found = scores(run, "tags.mb", "tags_test.csv", "--delimiter", ";")["scores"]
    lines = (folder / "tags_test.csv").read_text().split()
    Y = np.array([[cell == "yes" for cell in line.split(";")[2:]] for line in lines[1:]], int)
    proba, said = (
        np.array(
            [
                line.split(",")
                for line in run(
                    "predict", "tags.mb", "tags_test.csv", "--delimiter", ";", *more
                ).split()[1:]
            ],
            float,
        )
        for more in (["--proba"], [])
    )
    expected = {
        "lrap": metrics.label_ranking_average_precision_score(Y, proba),
        "coverage": metrics.coverage_error(Y, proba),
        "ranking_loss": metrics.label_ranking_loss(Y, proba),
        "f1_micro": metrics.f1_score(Y, said, average="micro"),
        "f1_macro": metrics.f1_score(Y, said, average="macro"),
        "hamming_loss": metrics.hamming_loss(Y, said),
        "subset_accuracy": metrics.accuracy_score(Y, said),
        "log_loss": np.mean([metrics.log_loss(Y[:, j], proba[:, j]) for j in range(2)]),
    }
    assert found == pytest.approx(expected)


def test_two_classes_and_quantiles():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int)
    model = manyboost.ManyBoostClassifier(max_iter=3, random_state=0).fit(X, y)
    found = score_model(model, Predictions.of(model, X), y, ["y"])
    expected = metrics.roc_auc_score(y, model.predict_proba(X)[:, 1])
    assert found.overall["roc_auc"] == pytest.approx(expected)
    levels = [0.2, 0.8]
    model = manyboost.ManyBoostRegressor("quantile", quantile=levels, max_iter=5).fit(X, X)
    found = score_model(model, Predictions.of(model, X), X, ["a", "b"])
    P = model.predict(X)
    losses = [metrics.mean_pinball_loss(X, P[:, :, k], alpha=q) for k, q in enumerate(levels)]
    assert found.overall["pinball_loss"] == pytest.approx(np.mean(losses))
    assert found.overall["below_q0.8"] == pytest.approx((P[:, :, 1] >= X).mean())


def test_a_model_of_one_label_is_scored():
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = X[:, 0] + X[:, 1] > 1
    model = manyboost.ManyBoostClassifier(max_iter=20, random_state=0)
    model.fit(X, [{"a"} if each else set() for each in y])
    found = score_model(model, Predictions.of(model, X), y[:, None], ["a"])
    said = model.predict(X)[:, 0]
    assert said.any()
    assert found.by_output["a"] == {
        "f1": pytest.approx(metrics.f1_score(y, said)),
        "precision": pytest.approx(metrics.precision_score(y, said)),
        "recall": pytest.approx(metrics.recall_score(y, said)),
        "rows": y.sum(),
    }
    assert found.overall["f1_macro"] == found.by_output["a"]["f1"]
    assert "lrap" not in found.overall


def test_classes_that_neither_occur_nor_are_predicted_do_not_count():
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = np.digitize(X[:, 0], [0, 1])
    model = manyboost.ManyBoostClassifier(max_iter=30, random_state=0).fit(X, y)
    low = X[:, 0] < 0.5
    predicted = Predictions.of(model, X[low])
    assert set(predicted.values) == {0, 1}
    found = score_model(model, predicted, y[low], [])
    expected = metrics.f1_score(y[low], predicted.values, average="macro")
    assert found.overall["f1_macro"] == pytest.approx(expected)
    assert found.worst(3)[-1] == "2"


def test_missing_labels_take_no_part():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = (X > 0).astype(float)
    model = manyboost.ManyBoostClassifier(max_iter=3, random_state=0).fit(X, Y)
    holes = Y.copy()
    holes[:20, 1] = np.nan
    found = score_model(model, Predictions.of(model, X), holes, ["a", "b", "c"])
    rest = score_model(model, Predictions.of(model, X[20:]), Y[20:], ["a", "b", "c"])
    assert found.by_output["b"] == pytest.approx(rest.by_output["b"])
    assert found.overall["lrap"] == pytest.approx(rest.overall["lrap"])
    holes[:20] = np.nan  # in all labels
    found = score_model(model, Predictions.of(model, X), holes, ["a", "b", "c"])
    assert found.overall == pytest.approx(rest.overall)
    assert found.overall["subset_accuracy"] == model.score(X, holes)


def test_an_output_without_any_target_has_no_score():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    names = ["a", "b", "c"]
    labels = (X > 0).astype(float)
    classifier = manyboost.ManyBoostClassifier(max_iter=3, random_state=0).fit(X, labels)
    regressor = manyboost.ManyBoostRegressor("quantile", quantile=[0.2, 0.8], max_iter=3).fit(X, X)
    for model, Y, mean in ((classifier, labels, "f1_macro"), (regressor, X, "pinball_loss")):
        predicted = Predictions.of(model, X)
        whole, holes = score_model(model, predicted, Y, names), Y.copy()
        holes[:, 1] = np.nan
        found = score_model(model, predicted, holes, names)
        others = [whole.by_output[name][whole.worst_by] for name in ("a", "c")]
        assert found.overall[mean] == pytest.approx(abs(np.mean(others)))
        assert np.isnan(found.by_output["b"][found.worst_by])
        with pytest.raises(ValueError, match="nothing to score, as all outputs are missing"):
            score_model(model, predicted, np.full_like(Y, np.nan), names)


def test_an_undefined_score_is_null(run, folder):
    header, rows = read_csv(folder / "iris_test.csv")
    path = write_csv(folder / "holes.csv", header, [[*row[:2], "", *row[3:]] for row in rows])
    report = run("evaluate", "sizes.mb", "holes.csv", "--json")
    path.unlink()
    assert "NaN" not in report
    assert json.loads(report)["by_output"]["petal_length"]["r2"] is None
    assert run.err == ""


def test_labels_of_other_values_are_refused(run, refused, folder):
    lines = (folder / "tags_test.csv").read_text().split()
    path = folder / "odd.csv"
    for odd in ("2", "maybe"):
        path.write_text("\n".join([*lines[:-1], lines[-1].rpartition(";")[0] + f";{odd}"]))
        code, sentence = refused("evaluate", "tags.mb", "odd.csv", "--delimiter", ";")
        assert code == 1
        assert f"Output 'wide' of odd.csv takes the values '{odd}', 'no', 'yes', not 0" in sentence
    header, *rows = lines
    numbers = [row.replace("yes", "1").replace("no", "0") for row in rows]
    path.write_text("\n".join([header, *numbers[:-1], numbers[-1][:-1] + "2"]))
    code, sentence = refused("evaluate", "tags.mb", "odd.csv", "--delimiter", ";")
    path.unlink()
    assert code == 1
    assert "odd.csv, line 51: label 'wide' is 2, not 0 or 1" in sentence


def test_classes_that_are_numbers(run, refused, folder):
    header, rows = read_csv(folder / "iris_train.csv")
    numbers = {"setosa": 1, "versicolor": 2, "virginica": 3}
    coded = [[*row[:4], numbers[row[4]]] for row in rows]
    write_csv(folder / "numbers.csv", header, coded)
    words = "--target species --task classification --max-iter 15 --random-state 0 --quiet"
    run("fit", "numbers.csv", *words.split(), "-o", "numbers.mb")
    for odd, problem in (
        ("", "line 2: the class 'species' is missing; fill it in"),
        ("rosa", "line 2: column 'species' holds 'rosa', which is not a number"),
    ):
        write_csv(folder / "numbers.csv", header, [[*coded[0][:4], odd], *coded[1:]])
        assert problem in refused("evaluate", "numbers.mb", "numbers.csv")[1]
    # Classes that the model does not know are errors, whatever their type.
    write_csv(folder / "numbers.csv", header, [[*row[:4], 0.5] for row in coded])
    found = scores(run, "numbers.mb", "numbers.csv")
    assert run.err == (
        "Classes unknown to the model, in 100 rows of numbers.csv, count as errors; "
        "the log loss omits them.\n"
    )
    assert found["scores"] == {"accuracy": 0, "balanced_accuracy": None, "f1_macro": 0}
    assert [each["rows"] for each in found["by_output"].values()] == [0, 0, 0]
    for name in ("numbers.csv", "numbers.mb"):
        (folder / name).unlink()


def test_a_column_may_be_a_feature_and_the_output_to_score(run):
    words = ("--target", "petal_width", "sepal_width")
    assert scores(run, "sizes.mb", "iris_test.csv", *words)["rows"] == 50


def test_the_table_shows_the_worst_outputs(run):
    text = run("evaluate", "people.mb", "people.csv", "--worst", "2")
    by_output = scores(run, "people.mb", "people.csv")["by_output"]
    worst = sorted(by_output, key=lambda name: by_output[name]["r2"])
    lines = text.splitlines()
    assert lines[0] == "people.csv: 20 rows, 3 outputs."
    assert [line.split()[0] for line in lines[-2:]] == worst[:2]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("sizes.mb people.csv", 1, "lacks the output 'petal_length' of the model"),
        (
            "sizes.mb iris_test.csv --target petal_width",
            2,
            "selects 1 column of iris_test.csv, but the model has 2",
        ),
        (
            "sizes.mb iris_test.csv --ignore petal_width",
            2,
            "--ignore leaves out 'petal_width', which is an output of the model.",
        ),
    ],
)
def test_wrong_commands_are_refused_with_one_sentence(refused, words, code, sentence):
    found, said = refused("evaluate", *words.split())
    assert sentence in said
    assert found == code


# ------------------------------------------------------------------ info, explain, export, bench


def test_info_is_that_of_the_model(run, folder):
    info = manyboost.load(folder / "sizes.mb").info()
    assert run("info", "sizes.mb") == f"{info}\n"
    found = json.loads(run("info", "sizes.mb", "--json"))
    assert found["n_outputs"] == 2
    assert found["parameters"]["max_iter"] == 15


def test_importances_are_those_of_the_model(run, folder):
    model = manyboost.load(folder / "sizes.mb")
    names = model.feature_names_in_.tolist()
    found = json.loads(run("explain", "sizes.mb", "--json", "--outputs", "*width"))
    assert list(found["features"].values()) == model.feature_importances_.tolist()
    assert list(found["outputs"]) == ["petal_width"]
    assert list(found["outputs"]["petal_width"].values()) == model.output_importances_[1].tolist()
    header, *rows = [line.split(",") for line in run("explain", "sizes.mb", "--csv").split()]
    assert header == ["feature", "importance", "petal_length", "petal_width"]
    assert [row[0] for row in rows] == names
    np.testing.assert_array_equal(
        np.array([row[2:] for row in rows], float), model.output_importances_.T
    )
    best = names[int(np.argmax(model.feature_importances_))]
    shown = run("explain", "sizes.mb", "--top", "1").splitlines()
    assert shown[1].split()[0] == best
    assert len(shown) == 2 + 1 + 1 + 2


def test_outputs_that_are_not_shown_are_counted(run, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 12))
    path = str(tmp_path / "many.mb")
    for n_outputs, said in ((10, ""), (11, "(1 more output: "), (12, "(2 more outputs: ")):
        manyboost.ManyBoostRegressor(max_iter=2).fit(X, X[:, :n_outputs]).save(path)
        assert run("explain", path).splitlines()[-1].startswith(said or "y9 ")
    assert "more output" not in run("explain", path, "--outputs", "y1")


def test_importances_that_a_file_does_not_hold_are_told_or_refused(run, refused, tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 300))
    model = manyboost.ManyBoostRegressor(strategy="project", max_iter=3, random_state=0)
    path = str(tmp_path / "large.mb")
    model.fit(X, X[:, :1] * np.arange(1, 401)).save(path)
    assert run("explain", path, "--top", "1").startswith("feature  importance\n")
    assert run.err.startswith("Importances by output are not known: ")
    code, said = refused("explain", path, "--outputs", "y1")
    assert (code, said) == (1, f"manyboost explain: {run.err}")


def test_shapley_values_have_a_line_for_each_row_and_output(run):
    header, *rows = run("explain", "sizes.mb", "iris_test.csv", "--shap").splitlines()
    assert header == "row,output,sepal_length,sepal_width,species"
    assert len(rows) == 50 * 2


def test_a_file_without_rows_has_a_header_of_shapley_values_only(run, folder):
    header, _ = read_csv(folder / "iris_test.csv")
    path = write_csv(folder / "no_rows.csv", header, [])
    shown = run("explain", "sizes.mb", "no_rows.csv", "--shap")
    path.unlink()
    assert shown == "row,output,sepal_length,sepal_width,species\n"


def test_a_model_that_uses_no_feature_has_a_table_without_rows(run, folder):
    path = write_csv(folder / "constant.csv", ["x", "y1", "y2"], [[1, i, -i] for i in range(30)])
    run("fit", "constant.csv", "--target", "y*", "-o", "constant.mb", "--max-iter", "2", "--quiet")
    shown = run("explain", "constant.mb").splitlines()
    for each in (path, folder / "constant.mb"):
        each.unlink()
    assert shown[:2] == ["feature  importance", ""]
    assert [line.split() for line in shown[3:]] == [["y1", "none"], ["y2", "none"]]


def test_shapley_values_are_written_row_by_row(run, monkeypatch):
    def shap_values(model, X, outputs=None):
        first = np.arange(len(X)) if len(X) > 1 else np.zeros(1)
        values = np.zeros((len(X), 3, 2))
        values[:, 0, 1] = first
        values[:, 2, 0] = X.values[:, 0]
        return values if outputs is None else values[:, :, outputs]

    estimator = manyboost.ManyBoostRegressor
    monkeypatch.setattr(estimator, "shap_values", shap_values, raising=False)
    _, *rows = run("explain", "sizes.mb", "iris_test.csv", "--shap").splitlines()
    assert [row.split(",")[:2] for row in rows[:3]] == [
        ["0", "petal_length"], ["0", "petal_width"], ["1", "petal_length"],
    ]  # fmt: skip
    assert float(rows[3].split(",")[2]) == 1
    _, *rows = run("explain", "sizes.mb", "iris_test.csv", "--shap", "--outputs", "*h").splitlines()
    assert len(rows) == 100


def test_outputs_are_found_under_other_names(run, folder):
    header, rows = read_csv(folder / "iris_test.csv")
    path = write_csv(folder / "renamed.csv", [*header[:2], "true_l", "true_w", header[4]], rows)
    found = scores(run, "sizes.mb", "renamed.csv", "--target", "true*")
    again = scores(run, "sizes.mb", "renamed.csv", "--targets-prefix", "true_")
    path.unlink()
    assert found == again == scores(run, "sizes.mb", "iris_test.csv")


def test_patterns_may_find_the_outputs_in_another_order(run, folder):
    header, rows = read_csv(folder / "iris_test.csv")
    order = [0, 1, 3, 2, 4]
    swapped = [[row[i] for i in order] for row in rows]
    path = write_csv(folder / "swapped.csv", [header[i] for i in order], swapped)
    found = scores(run, "sizes.mb", "swapped.csv", "--target", "petal*")
    again = scores(run, "sizes.mb", "swapped.csv", "--targets-prefix", "petal")
    path.unlink()
    assert found == again == scores(run, "sizes.mb", "iris_test.csv")


def test_a_file_with_a_split_is_read_in_parts(run, folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    arrays = {
        "X": X, "Y": (X[:, :2] > 0).astype(np.uint8), "split": np.repeat([0, 1], [40, 20]),
        "feature_names": np.array(["a", "b", "c"]), "target_names": np.array(["u", "v"]),
    }  # fmt: skip
    np.savez(folder / "split.npz", **arrays)
    run("fit", "split.npz", "-o", "split.mb", "--max-iter", "3")
    assert "split.npz: 40 training rows, 3 features, 2 labels" in run.err
    assert run("evaluate", "split.mb", "split.npz").startswith("split.npz: 20 test rows, 2 labels")
    assert scores(run, "split.mb", "split.npz", "--rows", "all")["rows"] == 60
    assert len(run("predict", "split.mb", "split.npz").split()) == 61
    run("fit", "split.npz", "--target", "v", "-o", "split.mb", "--max-iter", "3", "--rows", "all")
    assert "60 rows, 3 features, classes in 'v'" in run.err
    for name in ("split.npz", "split.mb"):
        (folder / name).unlink()


def test_importances_take_no_file(refused):
    code, said = refused("explain", "sizes.mb", "iris_test.csv")
    assert code == 2
    assert "remove FILE, or add --shap" in said


def test_export_tells_the_size(run, refused, folder, monkeypatch):
    estimator = manyboost.ManyBoostRegressor
    monkeypatch.setattr(
        estimator, "to_onnx", lambda model, path: path.write_bytes(b"onnx"), raising=False
    )
    run("export", "sizes.mb", "-o", "sizes.onnx")
    assert run.err == "Wrote sizes.onnx: 4 bytes.\n"
    (folder / "sizes.onnx").unlink()
    assert "pass --to" in refused("export", "sizes.mb", "-o", "sizes.bin")[1]
    assert "Name the file to write" in refused("export", "sizes.mb")[1]
    assert "Name the file to write" in refused("export", "sizes.mb", "-o", "-", "--to", "onnx")[1]


def test_bench_fits_every_strategy(run):
    words = "bench iris_train.csv --target petal* --max-iter 5 --json --quiet"
    found = json.loads(run(*words.split()))
    strategies = [result["strategy"] for result in found]
    assert strategies == ["independent", "multioutput", "project", "relabel", "auto"]
    assert found[-1]["chosen"]
    assert all(result["rounds"] == 5 and result["metric"] == "r2" for result in found)
    assert len({result["score"] for result in found}) > 2
    words = "bench iris_train.csv --target species --max-iter 5 --strategies project,relabel"
    lines = run(*words.split()).splitlines()
    assert lines[0] == "80 training rows, 20 test rows."
    assert [line.split()[0] for line in lines[-2:]] == ["project", "relabel"]
    assert "project …" in run.err


def test_bench_keeps_no_checkpoint(refused):
    words = "bench iris_train.csv --target petal* --max-iter 5 --checkpoint run"
    code, said = refused(*words.split())
    assert code == 2
    assert "--checkpoint" in said


def test_bench_scores_sparse_labels(run, tmp_path, monkeypatch):
    monkeypatch.setattr("manyboost.commands.scores.MOST_LABELS", 3)
    rng = np.random.default_rng(0)
    for n_labels, metric in ((3, "lrap"), (6, "precision_at_1")):
        rows = [f"{a % n_labels} 0:{a % 5} 1:{b}" for a, b in rng.integers(99, size=(60, 2))]
        (tmp_path / "toy.svm").write_text("\n".join(rows))
        words = ("--max-iter", "2", "--strategies", "relabel", "--json", "--quiet")
        (found,) = json.loads(run("bench", str(tmp_path / "toy.svm"), *words))
        assert found["metric"] == metric
        assert found["score"] > 0


def test_a_few_rows_of_many_classes_are_compared_without_strata(run, tmp_path):
    rows = [[i % 5, f"k{i // 2}"] for i in range(12)]
    path = write_csv(tmp_path / "few.csv", ["x", "c"], rows)
    words = ("--target", "c", "--max-iter", "2", "--strategies", "relabel", "--quiet")
    assert run("bench", str(path), *words).startswith("9 training rows, 3 test rows.\n")
    most = run("bench", str(path), *words, "--test-fraction", "0.5").splitlines()[0]
    assert most == "6 training rows, 6 test rows."


def test_one_row_cannot_be_learnt_and_scored(refused, tmp_path):
    path = write_csv(tmp_path / "one.csv", ["x", "y"], [[1, 2.5]])
    code, said = refused("bench", str(path), "--target", "y", "--quiet")
    assert code == 1
    assert "one.csv has one row; bench needs some to learn and some to score" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--strategies relable", "There is no strategy 'relable'; did you mean 'relabel'?"),
        ("--test-fraction 1", "is not a number between 0 and 1"),
        ("--strategy project", "There is no option '--strategy'; did you mean '--strategies'?"),
    ],
)
def test_wrong_comparisons_are_refused(refused, words, sentence):
    code, said = refused("bench", "iris_train.csv", "--target", "species", *words.split())
    assert code == 2
    assert sentence in said
