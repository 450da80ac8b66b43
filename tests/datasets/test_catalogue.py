"""The catalogue knows the sets of the paper, and loads nothing else under their names."""

import gzip
import hashlib
import re
from dataclasses import replace
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets
from benchmarks.workloads import data_folder
from scipy import sparse

from manyboost.datasets import CATALOGUE, CatalogueEntry, catalogue, load_dataset

TOY = CatalogueEntry(
    name="toy",
    task="multilabel",
    in_paper=False,
    n_train=3,
    n_test=1,
    n_features=2,
    n_outputs=2,
    source="https://example.org/toy",
)
ARRAYS = {
    "X": np.arange(8, dtype=np.float32).reshape(4, 2),
    "Y": np.array([[0, 1], [1, 1], [0, 0], [1, 0]], dtype=np.uint8),
    "feature_names": np.array(["u", "v"]),
    "target_names": np.array(["a", "b"]),
    "split": np.array([0, 0, 0, 1], dtype=np.uint8),
}
ARFF = """@relation toy
@attribute u numeric
@attribute a {0,1}
@attribute v numeric
@attribute b {0,1}
@data
"""
XML = '<labels><label name="b"/><label name="a"/></labels>'


FETCH_OPENML = sklearn.datasets.fetch_openml


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(**_):
        raise AssertionError("a test asked for the network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("MANYBOOST_DATA", raising=False)


@pytest.fixture
def know(monkeypatch):
    """Put a small set into the catalogue."""

    def know(**changes):
        entry = replace(TOY, **changes)
        monkeypatch.setattr(catalogue, "CATALOGUE", {**CATALOGUE, entry.name: entry})
        return entry

    return know


def store(folder, **changes):
    path = folder / "toy.npz"
    np.savez(path, **{**ARRAYS, **changes})
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- what it holds --------------------------------------------------------------------


def test_the_paper_has_29_sets():
    paper = [entry for entry in CATALOGUE.values() if entry.in_paper]
    assert sum(entry.task == "multilabel" for entry in paper) == 21
    assert sum(entry.task == "regression" for entry in paper) == 8


def test_shapes_are_those_of_the_paper():
    def shape(name):
        entry = CATALOGUE[name]
        return entry.n_train, entry.n_test, entry.n_features, entry.n_outputs

    assert shape("delicious") == (12920, 3185, 500, 983)
    assert shape("drug-interaction") == (1862, None, 660, 1554)
    assert shape("yeast") == (2417, None, 103, 14)
    assert shape("scm1d") == (8145, 1658, 280, 16)


def test_entries_are_complete():
    for name, entry in CATALOGUE.items():
        assert entry.name == name
        assert entry.source.startswith("http")
        assert entry.sha256 is None or len(bytes.fromhex(entry.sha256)) == 32
        # At OpenML the outputs of a regression are not marked.
        assert entry.openml is None or entry.task == "multilabel" or entry.targets
    assert len({entry.openml for entry in CATALOGUE.values() if entry.openml}) == sum(
        entry.openml is not None for entry in CATALOGUE.values()
    )


def test_the_catalogue_cannot_be_changed():
    with pytest.raises(TypeError):
        CATALOGUE["toy"] = TOY


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("delicius", "did you mean 'delicious'?"),
        ("cal500", "did you mean 'CAL500'?"),
        ("water_quality", "did you mean 'water-quality'?"),
        ("nothing-like-it", "available: "),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name, hint):
    with pytest.raises(ValueError, match=re.escape(f"There is no data set {name!r}; {hint}")):
        load_dataset(name)


# --- folders --------------------------------------------------------------------------


def test_a_folder_is_looked_in(know, tmp_path):
    know(sha256=store(tmp_path))
    data = load_dataset("toy", tmp_path)
    np.testing.assert_array_equal(data.X, ARRAYS["X"])
    assert data.test()[1].tolist() == [[1, 0]]


def test_the_folder_given_comes_before_that_of_the_environment(know, tmp_path, monkeypatch):
    know()
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    monkeypatch.setenv("MANYBOOST_DATA", str(second))
    store(second, X=ARRAYS["X"] + 1)
    assert load_dataset("toy", first).X[0, 0] == 1
    store(first)
    assert load_dataset("toy", first).X[0, 0] == 0
    assert load_dataset("toy").X[0, 0] == 1


def test_a_folder_that_is_not_there_is_refused(monkeypatch, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"data_dir='nowhere' is not a folder"):
        load_dataset("scene", "nowhere")
    monkeypatch.setenv("MANYBOOST_DATA", "nowhere")
    with pytest.raises(FileNotFoundError, match=r"MANYBOOST_DATA='nowhere' is not a folder"):
        load_dataset("scene")


def test_another_file_is_refused_unless_asked_for(know, tmp_path):
    found, expected = store(tmp_path), "0" * 64
    know(sha256=expected)
    with pytest.raises(ValueError, match=f"sha256 {found}, but the catalogue expects {expected}"):
        load_dataset("toy", tmp_path)
    assert load_dataset("toy", tmp_path, verify=False).n_rows == 4


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"task": "regression"}, "task of data set 'toy' is multilabel, but the .* regression"),
        ({"n_train": 4}, "n_rows of data set 'toy' is 4, but the catalogue expects 5"),
        ({"n_features": 3}, "n_features of data set 'toy' is 2, but the"),
        ({"n_outputs": 3}, "n_outputs of data set 'toy' is 2, but the"),
        ({"n_train": 2, "n_test": 2}, "n_test of data set 'toy' is 1, but the"),
    ],
)
def test_another_shape_is_refused_even_without_verifying(know, tmp_path, changes, what):
    know(**changes)
    store(tmp_path)
    with pytest.raises(ValueError, match=what + r".* get it from https://example.org/toy"):
        load_dataset("toy", tmp_path, verify=False)


def test_a_split_is_kept_where_the_paper_has_none(know, tmp_path):
    know(n_train=4, n_test=None)
    store(tmp_path)
    assert load_dataset("toy", tmp_path).split.sum() == 1


def test_an_arff_file_with_its_labels_serves_too(know, tmp_path):
    know(n_train=2, n_test=None)
    (tmp_path / "toy.arff.gz").write_bytes(gzip.compress((ARFF + "1,0,2,1\n3,1,4,0\n").encode()))
    (tmp_path / "toy.xml").write_text(XML)
    data = load_dataset("toy", tmp_path)
    assert data.name == "toy"
    assert data.Y.tolist() == [[0, 1], [1, 0]]


def test_a_training_and_a_test_file_are_joined(know, tmp_path):
    know(n_train=2, n_test=1)
    (tmp_path / "toy-train.arff").write_text(ARFF + "1,0,2,1\n3,1,4,0\n")
    (tmp_path / "toy-test.arff").write_text(ARFF + "5,0,6,0\n")
    (tmp_path / "toy.xml").write_text(XML)
    data = load_dataset("toy", tmp_path)
    assert data.name == "toy"
    assert data.split.tolist() == [0, 0, 1]
    assert data.test()[0].tolist() == [[5, 6]]


def test_the_outputs_of_a_regression_are_known_by_name(know, tmp_path):
    know(task="regression", n_train=1, n_test=None, targets=("y*",))
    rows = "@attribute y1 real\n@attribute y2 real\n@data\n1,2,0,1\n"
    (tmp_path / "toy.arff").write_text("@relation t\n@attribute u real\n@attribute v real\n" + rows)
    data = load_dataset("toy", tmp_path)
    assert (data.task, data.target_names) == ("regression", ("y1", "y2"))


# --- OpenML ---------------------------------------------------------------------------


@pytest.fixture
def serve(monkeypatch):
    """Let OpenML answer with this, and note what it was asked."""

    def serve(**bunch):
        asked = {}

        def fetch(**params):
            asked.update(params)
            return SimpleNamespace(**bunch)

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
        return asked

    return serve


@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_matrix])
def test_labels_are_those_that_openml_marks(know, serve, as_type, tmp_path):
    know(openml=77)
    asked = serve(
        data=as_type([[0.5, 2], [1.5, 0], [2.5, 1], [3.5, 0]]),
        feature_names=["u", "k"],
        categories={"k": ["low", "middle", "high"]},
        target=np.array([["TRUE", "TRUE"], ["FALSE", "TRUE"]] * 2, dtype=object),
        target_names=["a", "b"],
    )
    data = load_dataset("toy", tmp_path)  # an empty folder does not stop the search
    assert (asked["data_id"], asked["target_column"]) == (77, "default-target")
    Y = data.Y.toarray() if sparse.issparse(data.Y) else data.Y
    assert Y.tolist() == [[1, 1], [0, 1]] * 2
    assert Y.dtype == np.uint8
    assert data.X.dtype == np.float32
    assert data.categories == {1: ("low", "middle", "high")}
    assert data.split is None


def test_labels_may_be_numbers(know, serve):
    know(openml=77)
    serve(
        data=np.zeros((4, 2)),
        feature_names=["u", "v"],
        categories={},
        target=np.array([[0.0, 1.0]] * 4),
        target_names=["a", "b"],
    )
    assert load_dataset("toy").Y.tolist() == [[0, 1]] * 4


def test_the_outputs_of_a_regression_are_chosen_among_all_columns(know, serve):
    know(task="regression", openml=78, targets=("LBL", "MTL*"))
    asked = serve(
        data=np.arange(16.0).reshape(4, 4),
        feature_names=["u", "v", "LBL", "MTL2"],
        categories=None,
        target=None,
        target_names=[],
    )
    data = load_dataset("toy")
    assert asked["target_column"] is None
    assert (data.feature_names, data.target_names) == (("u", "v"), ("LBL", "MTL2"))
    np.testing.assert_array_equal(data.Y, np.arange(16.0).reshape(4, 4)[:, 2:])


def test_outputs_that_openml_does_not_have_are_named(know, serve):
    know(openml=77, targets=("LBL",))
    serve(data=np.zeros((4, 2)), feature_names=["u", "v"], categories={}, target=None)
    with pytest.raises(ValueError, match=r"targets='LBL' matches no column of OpenML's data set 7"):
        load_dataset("toy")


def test_a_set_that_is_nowhere_comes_with_directions(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        load_dataset("bookmarks", tmp_path)
    assert str(error.value) == (
        "Data set 'bookmarks' was not found; get it from "
        "https://mulan.sourceforge.net/datasets-mlc.html and put it, as bookmarks.npz or "
        "bookmarks.arff, into the folder data_dir or the folder named by MANYBOOST_DATA."
    )


def test_a_network_that_is_down_comes_with_directions(monkeypatch, tmp_path):
    def fail(*_, **__):
        raise URLError("no route")

    # The true function, so that it also checks what it is asked.
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", FETCH_OPENML)
    monkeypatch.setattr(sklearn.datasets._openml, "urlopen", fail)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"'scm1d' could not be fetched .*no route.*; get"):
        load_dataset("scm1d")


# --- the files themselves -------------------------------------------------------------

FOLDER = data_folder()


@pytest.mark.parametrize("name", [entry.name for entry in CATALOGUE.values() if entry.sha256])
def test_the_files_are_what_the_catalogue_says(name):
    if not (FOLDER / f"{name}.npz").is_file():
        pytest.skip(f"{name}.npz is not in the data folder (set MANYBOOST_DATA)")
    entry, data = CATALOGUE[name], load_dataset(name, FOLDER)
    assert data.name == name
    assert (data.split is not None) == (entry.n_test is not None) or name == "yeast"
    assert data.X.dtype == np.float32
    if entry.task == "multilabel":
        assert data.Y.dtype == np.uint8
        assert data.Y.max() == 1
        # As stored: many labels sparse, and never made dense.
        assert sparse.issparse(data.Y) == (entry.n_outputs > 100)
    else:
        assert np.isfinite(data.Y).all()
    for feature, categories in data.categories.items():
        column = data.X[:, [feature]]
        codes = column.data if sparse.issparse(column) else column[np.isfinite(column)]
        assert codes.max() < len(categories)
        assert (codes == np.floor(codes)).all()
