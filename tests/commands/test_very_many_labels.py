"""Very many labels on the command line: files of sparse rows, fitted and scored as they are."""

import json
from unittest import mock

import numpy as np
import pytest

import manyboost
from manyboost.data.named import NamedTable
from manyboost.datasets import make_many_labels, read_xc
from manyboost.metrics import ndcg_at_k, precision_at_k, recall_at_k

N_LABELS = 20_000
FIT = ("--loss", "squared_error", "--max-leaf-outputs", "10", "--max-iter", "8", "--quiet")


def write_xc(path, X, Y):
    lines = [f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}"]
    for x, y in zip(X, Y, strict=True):
        pairs = " ".join(f"{j}:{v:g}" for j, v in zip(x.indices, x.data, strict=True))
        lines.append(f"{','.join(map(str, y.indices))} {pairs}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def files(tmp_path_factory, folder):
    X, Y = make_many_labels(600, n_labels=N_LABELS, n_topics=5, random_state=0)
    X, Y = X.tocsr(), Y.tocsr()
    home = tmp_path_factory.mktemp("xc")
    write_xc(home / "train.txt", X[:500], Y[:500])
    write_xc(home / "test.txt", X[500:], Y[500:])
    return home


@pytest.fixture(scope="module")
def model(files):
    from manyboost.cli import main

    words = ["fit", str(files / "train.txt"), "--format", "xc", "-o", str(files / "m.mb"), *FIT]
    with mock.patch("scipy.sparse.csr_matrix.toarray", side_effect=AssertionError("made dense")):
        assert main([*words, "--random-state", "0"]) == 0
    return manyboost.load(files / "m.mb")


def test_labels_of_a_file_stay_sparse(files, model):
    data = read_xc(files / "train.txt")
    same = manyboost.ManyBoostClassifier(
        "squared_error", max_leaf_outputs=10, max_iter=8, random_state=0
    ).fit(data.X, data.Y)
    named = NamedTable(list(map(str, range(data.n_features))), data.X)
    pairs = zip(model.predict_top_k(named, 3), same.predict_top_k(data.X, 3), strict=True)
    for found, expected in pairs:
        np.testing.assert_array_equal(found.astype(float), expected)


def test_the_best_labels_of_each_row_are_scored(run, files, model):
    found = json.loads(
        run("evaluate", str(files / "m.mb"), str(files / "test.txt"), "--format", "xc", "--json")
    )
    data = read_xc(files / "test.txt")
    named = NamedTable(list(map(str, range(data.n_features))), data.X)
    best = model.predict_top_k(named, 5)[0].astype(int)
    assert found["scores"] == pytest.approx(
        {
            "precision_at_1": precision_at_k(data.Y, best, 1),
            "precision_at_3": precision_at_k(data.Y, best, 3),
            "precision_at_5": precision_at_k(data.Y, best, 5),
            "ndcg_at_5": ndcg_at_k(data.Y, best, 5),
            "recall_at_5": recall_at_k(data.Y, best, 5),
        }
    )
    Y = data.Y.toarray()
    assert found["by_output"].keys() == {str(j) for j in np.flatnonzero(Y.any(axis=0))}
    ranked = np.zeros_like(Y)
    np.put_along_axis(ranked, best, 1, axis=1)
    frequent = int(Y.sum(axis=0).argmax())
    assert found["by_output"][str(frequent)] == {
        "recall_at_5": pytest.approx(ranked[Y[:, frequent] == 1, frequent].mean()),
        "rows": Y[:, frequent].sum(),
    }


def test_the_table_names_labels_that_are_missed_in_most_rows(run, files, model):
    shown = run("evaluate", str(files / "m.mb"), str(files / "test.txt"), "--format", "xc")
    occur = np.unique(read_xc(files / "test.txt").Y.indices).size
    assert f"100 rows, {N_LABELS:,} labels, of which {occur:,} occur." in shown
    worst = [line.split() for line in shown.split("worst label")[1].splitlines()[1:]]
    rows = [int(row) for _, recall, row in worst if float(recall) == 0]
    assert len(rows) > 1
    assert rows == sorted(rows, reverse=True)


def test_rows_with_a_missing_label_are_left_out(run, refused, files, model, tmp_path):
    data, file = read_xc(files / "test.txt"), tmp_path / "holes.npz"
    words = ("evaluate", str(files / "m.mb"), str(file), "--json")
    X, Y = data.X.toarray(), data.Y.toarray().astype(np.float32)
    names = {"feature_names": data.feature_names, "target_names": data.target_names}
    np.savez(file, X=X[3:], Y=Y[3:], **names)
    expected = json.loads(run(*words))
    Y[:3, [0, 5, 5]] = np.nan
    np.savez(file, X=X, Y=Y, **names)
    found = json.loads(run(*words))
    assert (found.pop("rows"), expected.pop("rows")) == (100, 97)
    assert found == expected
    Y[:, 7] = np.nan
    np.savez(file, X=X, Y=Y, **names)
    assert "nothing to score, as each row lacks a label; fill some in." in refused(*words)[1]
