"""Files as other programs write them: indices, encodings, words for missing values, commas."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import manyboost
from commands.csv_files import read_csv
from manyboost.datasets import read_arff, read_parquet
from manyboost.datasets import read_csv as read_dataset

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "größe": RNG.normal(size=60).round(3),
        "farbe": RNG.choice(["rot", "grün", "blau"], 60),
        "y": RNG.choice(["ja", "nein"], 60),
    }
)
QUICK = ("--max-iter", "3", "--random-state", "0")


@pytest.fixture
def fit(run, tmp_path):
    """Fit a model to a file, and return it."""

    def fit(path, *options):
        model = tmp_path / "model.mb"
        run("fit", str(path), "--target", "y", "-o", str(model), *QUICK, *options)
        return manyboost.load(model)

    return fit


def test_the_index_of_a_frame_is_left_out_and_that_is_said(fit, run, tmp_path):
    FRAME.to_csv(tmp_path / "with.csv")
    FRAME.to_csv(tmp_path / "without.csv", index=False)
    model = fit(tmp_path / "with.csv")
    assert "Left out: the index, which has no name." in run.err
    assert model.feature_names_in_.tolist() == ["größe", "farbe"]
    plain = fit(tmp_path / "without.csv", "--ignore", "farbe")
    assert "Left out: column 'farbe'." in run.err
    assert plain.n_features_in_ == 1
    assert plain.info()["left_out"] == ["column 'farbe'"]
    assert model.info()["left_out"] == ["the index, which has no name"]
    model.save(tmp_path / "m.mb")
    shown = run("predict", str(tmp_path / "m.mb"), str(tmp_path / "with.csv"))
    assert shown == run("predict", str(tmp_path / "m.mb"), str(tmp_path / "without.csv"))
    data = read_dataset(tmp_path / "with.csv", targets="größe", categorical=["farbe", "y"])
    assert data.feature_names == ("farbe", "y")


def test_the_index_of_a_frame_in_a_parquet_file_is_left_out(tmp_path):
    pytest.importorskip("pyarrow")
    FRAME.set_axis(range(7, 67)).iloc[::2].to_parquet(tmp_path / "toy.parquet")
    data = read_parquet(tmp_path / "toy.parquet", targets="größe", categorical=["farbe", "y"])
    assert data.feature_names == ("farbe", "y")


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", ""), ("UTF_8", "\ufeff"), ("utf-16-le", "\ufeff"), ("utf-16-be", "")],
)
def test_a_byte_order_mark_is_no_part_of_a_name(fit, tmp_path, encoding, mark):
    (tmp_path / "toy.csv").write_text(mark + FRAME.to_csv(index=False), encoding)
    model = fit(tmp_path / "toy.csv", "--encoding", encoding)
    assert model.feature_names_in_.tolist() == ["größe", "farbe"]
    text = "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute ü numeric\n@data\n1,2\n0,3\n"
    (tmp_path / "toy.arff").write_text(mark + text, encoding)
    assert read_arff(tmp_path / "toy.arff", encoding=encoding).feature_names == ("ü",)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig"])
def test_a_file_may_have_another_encoding(fit, tmp_path, encoding):
    FRAME.to_csv(tmp_path / "toy.csv", index=False, encoding=encoding)
    model = fit(tmp_path / "toy.csv", "--encoding", encoding)
    assert model.feature_names_in_.tolist() == ["größe", "farbe"]
    assert model._category_labels.of_column == {1: ("blau", "grün", "rot")}


def test_an_encoding_that_is_wrong_or_unknown_is_refused(refused, tmp_path):
    FRAME.to_csv(tmp_path / "toy.csv", index=False, encoding="latin-1")
    words = ["fit", str(tmp_path / "toy.csv"), "--target", "y", "-o", "never.mb"]
    code, sentence = refused(*words)
    assert code == 1
    assert "line 1: the text is not utf-8; pass the encoding of the file, such as" in sentence
    code, sentence = refused(*words, "--encoding", "utf-16")
    assert code == 1
    assert (
        "toy.csv, line 1: the text is not utf-16; pass the encoding of the file, such" in sentence
    )
    for unknown in ("klingon", "hex"):
        code, sentence = refused(*words, "--encoding", unknown)
        assert code == 2
        assert f"--encoding {unknown!r} is not known; use a name such as utf-8" in sentence


def test_words_of_other_programs_for_missing_values_are_missing(tmp_path):
    words = ["", "?", "NA", "na", "N/A", "n/a", "#N/A", "<NA>", "NaN", "null", "None"]
    lines = [f"1.5,{word},{i}" for i, word in enumerate(words)]
    (tmp_path / "toy.csv").write_text("\n".join(["x,z,y", "1,2.5,0", *lines, "1,3.5,9"]))
    data = read_dataset(tmp_path / "toy.csv", targets="y")
    assert np.isnan(data.X[1:-1, 1]).all()
    assert data.X[[0, -1], 1].tolist() == [2.5, 3.5]
    # A category may be called "none".
    (tmp_path / "text.csv").write_text("fence,y\nnone,1\nNone,2\nwood,3\n")
    data = read_dataset(tmp_path / "text.csv", targets="y", categorical="fence")
    assert data.categories == {0: ("none", "wood")}


def test_decimal_commas_are_no_categories(refused, fit, tmp_path):
    commas = [str(value).replace(".", ",") for value in FRAME["größe"]]
    FRAME.assign(größe=commas).to_csv(tmp_path / "toy.csv", sep=";", index=False)
    words = ["fit", str(tmp_path / "toy.csv"), "--target", "y", "-o", "never.mb"]
    code, sentence = refused(*words, "--delimiter", ";")
    assert code == 1
    assert f"line 2: column 'größe' holds {commas[0]!r} with a decimal comma, which is" in sentence
    # What is declared is believed.
    options = ("--delimiter", ";", "--categorical-features", "größe")
    assert fit(tmp_path / "toy.csv", *options).is_categorical_.all()


def test_all_columns_that_are_wrong_are_named_at_once(refused, tmp_path):
    lines = ["a,b,c,y", "1,1,2,0", "2,x,2,1", "y,3,2,0"]
    (tmp_path / "toy.csv").write_text("\n".join(lines))
    code, sentence = refused("fit", str(tmp_path / "toy.csv"), "--target", "y", "-o", "never.mb")
    assert code == 1
    assert (
        "columns that are not all numbers: 'a' ('y' in line 4), 'b' ('x' in line 3); correct"
        in (sentence)
    )


def test_large_and_infinite_numbers_of_a_file_are_those_of_a_frame(fit, tmp_path):
    rng = np.random.default_rng(0)
    seconds = 1.7e9 + rng.permutation(400)
    size = np.where(np.arange(400) % 50 == 0, np.inf, rng.normal(size=400))
    y = (np.sin(seconds / 20) > 0) + (size > 0) + 0.1 * rng.normal(size=400)
    frame = pd.DataFrame({"seconds": seconds, "size": size})
    frame.assign(y=y).to_csv(tmp_path / "toy.csv", index=False)
    model = fit(tmp_path / "toy.csv")
    expected = type(model)(**model.get_params()).fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame), expected.predict(frame))
    assert 0 in model._progress.categories.cuts


@pytest.mark.parametrize("columns", [["y"], ["y", "z"]])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_classes_that_doubles_mix_up_are_refused(run, refused, tmp_path, columns, ending):
    path = tmp_path / f"toy.{ending}"
    words = ["fit", str(path), "--target", *columns, "--task", "classification", "-o"]
    for large in (2**53 - 1, -(2**53), 2**53 + 1):
        frame = pl.DataFrame({"x": range(60), "y": [5, 7, large] * 20, "z": [1, 2, 3] * 20})
        frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
        if large == 2**53 - 1:
            run(*words, str(tmp_path / "toy.mb"), "--max-iter", "1")
        else:
            code, sentence = refused(*words, "never.mb")
            assert code == 1
            assert f"the class 'y' is {np.sign(large) * 2**53:d}, but numbers from" in sentence


def test_the_best_of_two_classes_have_scores_or_probabilities(fit, run, refused, tmp_path):
    FRAME.to_csv(tmp_path / "toy.csv", index=False)
    model = fit(tmp_path / "toy.csv")
    X = FRAME[["größe", "farbe"]]
    model.save(tmp_path / "m.mb")
    words = ["predict", str(tmp_path / "m.mb"), str(tmp_path / "toy.csv"), "--top-k"]
    labels, scores = model.predict_top_k(X, 2)
    assert (labels[:, 0] == model.predict(X)).all()
    raw = model.decision_function(X)
    np.testing.assert_array_equal(np.where(labels[:, 0] == "nein", raw, -raw), scores[:, 0])
    run(*words, "2", "-o", str(tmp_path / "out.csv"))
    header, rows = read_csv(tmp_path / "out.csv")
    assert header == ["top_1", "score_1", "top_2", "score_2"]
    assert rows[0] == [labels[0, 0], str(scores[0, 0]), labels[0, 1], str(scores[0, 1])]
    run(*words, "1", "--proba", "-o", str(tmp_path / "out.csv"))
    _, rows = read_csv(tmp_path / "out.csv")
    best = model.predict_proba(X).max(axis=1)
    np.testing.assert_array_equal([float(score) for _, score in rows], best)
    code, sentence = refused(*words, "3")
    assert code == 2
    assert "--top-k 3 is more than the 2 that there are" in sentence


def test_probabilities_of_the_best_labels(run):
    model = manyboost.load("tags.mb")
    lines = run(
        "predict", "tags.mb", "tags_test.csv", "--delimiter", ";", "--top-k", "2", "--proba"
    )
    first = lines.splitlines()[1].split(",")
    assert {first[0], first[2]} == {"long", "wide"}
    assert 1 >= float(first[1]) >= float(first[3]) >= 0
    assert model.n_classes_ == 2


def test_info_shows_names_of_features_outputs_and_categories(fit, run, tmp_path):
    FRAME.to_csv(tmp_path / "toy.csv", index=False)
    fit(tmp_path / "toy.csv").save(tmp_path / "m.mb")
    lines = dict(
        line.split(maxsplit=1) for line in run("info", str(tmp_path / "m.mb")).splitlines()
    )
    assert lines["features"] == "'größe', 'farbe'"
    assert lines["outputs"] == "'ja', 'nein'"
    assert lines["categories"] == "farbe: 'blau', 'grün', 'rot'"
    info = json.loads(run("info", "people.mb", "--json"))
    assert info["feature_names"] == ["Chins", "Situps", "Jumps"]
    assert info["output_names"] == ["y_Weight", "y_Waist", "y_Pulse"]
    assert info["categories"] == {}
