"""What is read as targets, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from manyboost.distributed import fit_files
from refusals import refusal
from small_problems import CLASSES, LABELS, X, Y, classifier, regressor, replaced


@pytest.mark.usefixtures("no_work")
def test_text_among_regression_targets():
    for y in [CLASSES, CLASSES.tolist(), pd.Series(CLASSES), pl.Series(CLASSES)]:
        assert refusal(lambda y=y: regressor().fit(X, y)) == (
            f"y holds text ({str(CLASSES[0])!r}) in row 0, not numbers; encode it, or use "
            "ManyBoostClassifier for classes."
        )
    assert "in row 0, output 0, not" in refusal(lambda: regressor().fit(X, np.c_[CLASSES, CLASSES]))
    assert refusal(lambda: regressor().fit(X, Y.astype(str))).endswith(
        "in row 0, output 0, not numbers; turn it into numbers with astype(float)."
    )


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("model", [regressor(), classifier()], ids=["regressor", "classifier"])
def test_the_shape_of_the_outputs(model):
    for bad, words in [
        (LABELS[:9], "X has 60 rows and y has 9; they must have the same number."),
        (LABELS[:0], "X has 60 rows and y has 0; they must have the same number."),
        (LABELS[..., None], "y has 3 dimension(s); it must have one or two."),
        (3, "y has 0 dimension(s); it must have one or two."),
        (LABELS[:, :0], "y has no outputs (0 columns); it needs at least one."),
        (None, "This estimator requires y to be passed, but the target y is None."),
    ]:
        assert refusal(lambda bad=bad: model.fit(X, bad)).endswith(words)


@pytest.mark.usefixtures("no_work")
def test_infinite_outputs_are_found():
    remedy = "; drop such rows or fill them in before fit."
    for value in (np.inf, -np.inf):
        two = replaced(Y, (5, 1), value)
        one = two[:, 1]
        labels = replaced(LABELS.astype(float), (5, 1), value)
        for model, bad, place in [
            (regressor(), two, "row 5, output 1"),
            (regressor(), one, "row 5"),
            (classifier(), labels, "row 5, output 1"),
            (classifier(), labels[:, 1], "row 5"),
        ]:
            sentence = refusal(lambda model=model, bad=bad: model.fit(X, bad))
            assert sentence == f"y has an infinite value (inf) in {place}{remedy}"


@pytest.mark.usefixtures("no_work")
def test_outputs_beyond_single_precision():
    bad = replaced(Y, (5, 1), 1e39)
    assert refusal(lambda: regressor().fit(X, bad)) == (
        "y has the value 1e+39 in row 5, output 1, beyond 1e+37, too large for single precision; "
        "divide it by a constant."
    )


@pytest.mark.parametrize("value", [1.1e37, -1e38, 1e300, np.inf])
def test_arrays_and_files_refuse_the_same_targets_in_the_same_words(value, tmp_path):
    np.save(tmp_path / "X.npy", X)
    bad = replaced(Y, (3, 1), value)
    sentence = refusal(lambda: regressor().fit(X, bad))
    assert "in row 3, output 1" in sentence

    def fit():
        fit_files(regressor(), tmp_path / "X.npy", bad, chunk_rows=2)

    assert refusal(fit) == f"Y{sentence.removeprefix('y')}"
    large = replaced(Y, (3, 1), 9e36)
    fit_files(regressor(), tmp_path / "X.npy", large)
    regressor().fit(X, large)
