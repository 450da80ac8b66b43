"""The example in C, compiled with the header, prints what Python predicts."""

import shutil
import subprocess

import numpy as np
import pytest

from runtimes.builds import PREDICT
from small_problems import CLASSES, X, Y, classifier, regressor


@pytest.fixture(scope="module")
def program(library_path, tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler on the PATH (Debian and Ubuntu: apt-get install gcc)")
    path = tmp_path_factory.mktemp("c") / "predict"
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{PREDICT / 'include'}"]
    sources = [PREDICT / "examples" / "predict.c", library_path]
    runtime_path = f"-Wl,-rpath,{library_path.parent}"
    subprocess.run([compiler, *options, *sources, runtime_path, "-o", path], check=True)
    return path


def run(program, path, rows=""):
    return subprocess.run([program, path], input=rows, capture_output=True, text=True, check=False)


def lines_of(table):
    return "".join(" ".join(map(repr, row)) + "\n" for row in table.tolist())


def test_it_prints_names_and_predictions(program, tmp_path):
    asked = np.vstack([X, [[np.nan, np.inf, -np.inf]]])
    for model in (regressor().fit(X, Y), classifier().fit(X, CLASSES)):
        model.save(tmp_path / "model.mb")
        done = run(program, tmp_path / "model.mb", lines_of(asked))
        assert done.returncode == 0, done.stderr
        names, *rows = (line.split("\t") for line in done.stdout.splitlines())
        is_classifier = hasattr(model, "classes_")
        assert names == (["a", "b", "c"] if is_classifier else ["y0", "y1"])
        expected = model.predict_proba(asked) if is_classifier else model.predict(asked)
        assert [[float.fromhex(cell) for cell in row] for row in rows] == expected.tolist()


def test_it_says_why_a_file_is_refused(program, tmp_path):
    (tmp_path / "model.mb").write_bytes(b"not a model")
    done = run(program, tmp_path / "model.mb")
    assert done.returncode == 1
    assert "it does not begin like a manyboost model file" in done.stderr
