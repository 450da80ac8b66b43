"""Files that Python refuses are refused, or differ in what predictions do not depend on."""

import random
from pathlib import Path

import numpy as np
import pytest

import model_mutants
from manyboost.persistence.container import BrokenFileError
from manyboost.persistence.model import from_bytes, to_parts
from model_surgery import mended
from small_problems import LABELS, X, Y, classifier, regressor

MODELS = Path(__file__).parents[1] / "models"
HOSTILE = sorted((MODELS / "hostile").glob("*.mb"))
GOLDEN = {path.stem: path.read_bytes() for path in sorted(MODELS.glob("*.mb"))}
N_MUTANTS = 1_500

# What they say about parameters, training and Python's types is wrong; predictions do not read it.
OF_TRAINING = {
    "calibration_classes",
    "calibration_numbers",
    "classes_wide",
    "few_outputs_of_project",
    "frames_unknown",
    "group_beyond",
    "group_empty",
    "group_twice",
    "left_out_not",
    "loss_not_trained",
    "parameter_array",
    "parameter_estimator",
    "parameter_key_list",
    "parameter_key_twice",
    "parameter_missing",
    "parameter_of_other_type",
    "parameter_of_two_types",
    "parameter_pickled",
    "parameter_refused",
    "parameter_scalar",
    "parameter_scalar_float",
    "parameter_scalar_type",
    "parameter_scalar_wide",
    "parameter_scorers",
    "parameter_scoring",
    "parameter_set",
    "parameter_text_wide",
    "parameter_unknown",
    "projection_array",
    "projection_unknown",
    "rounds_beyond",
    "score_twice",
    "search_cut",
    "search_of_lists",
    "search_of_nothing",
    "sign_two",
    "signs_none",
    "target_name_of_labels",
    "target_name_of_numbers",
    "trained_with_arrays",
    "trained_with_foreign",
    "trained_with_nothing",
    "trained_with_other",
}


def later_files():
    """Files of the second and the fourth version of the format, which golden files are not."""
    folded = {"n_folds": 2, "max_leaf_nodes": 4}
    models = [
        regressor(**folded).fit(X, Y),
        classifier(calibration="sigmoid", **folded).fit(X, LABELS),
        classifier(calibration="isotonic", **folded).fit(X, LABELS),
        classifier(label_hierarchy=[(0, 1)], max_leaf_nodes=4).fit(X, np.sort(LABELS, axis=1)),
    ]
    table = np.column_stack([np.arange(60) * 7 % 40 // 3, X[:, 0]])
    with pytest.warns(UserWarning, match="Rare categories"):
        models.append(regressor(categorical_features=[0], max_bins=6).fit(table, Y))
    return [b"".join(to_parts(model)) for model in models]


def rows(model):
    p = model.n_features
    return np.array([[np.nan] * p, [0.0] * p, list(range(p)), [np.inf] * p, [-1.5] * p])


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: path.stem)
def test_hostile_files_are_refused_in_one_sentence(library, path):
    if path.stem in OF_TRAINING:
        model = library.open(path.read_bytes())
        raw = model.raw(rows(model)).tobytes()
        assert raw in {
            each.raw(rows(each)).tobytes() for each in map(library.open, GOLDEN.values())
        }
        return
    with pytest.raises(ValueError, match=r"^This is not a sound model file: .+\.$"):
        library.open(path.read_bytes())


def test_later_versions_of_the_format_are_refused_by_their_number(library):
    data = GOLDEN["relabel"]
    with pytest.raises(ValueError, match="format version 9, but this release reads versions up to"):
        library.open(mended(data[:8] + b"\x09" + data[9:]))


def test_mutants_are_refused_or_predict_what_python_predicts(library):
    rng = random.Random(0)
    n_refused = n_sound = 0
    sources = [*GOLDEN.values(), *later_files()]
    for k in range(N_MUTANTS):
        kind = list(model_mutants.KINDS)[k % len(model_mutants.KINDS)]
        mutant = model_mutants.KINDS[kind](rng.choice(sources), rng)
        try:
            python = from_bytes(mutant)
        except BrokenFileError:
            python = None
        try:
            runtime = library.open(mutant)
        except ValueError:
            assert python is None, f"mutant {k} is refused, but Python reads it"
            n_refused += 1
            continue
        asked = rows(runtime)
        raw = runtime.raw(asked)
        assert np.isfinite(raw).all()
        if python is not None and not python._category_labels.of_column:
            n_sound += 1
            python.__dict__.pop("feature_names_in_", None)
            offset = np.zeros(len(asked)) if python._with_offset else None
            expected = python._raw_predict(asked, offset)
            assert raw.tobytes() == expected.tobytes(), f"mutant {k}"
            if hasattr(python, "classes_"):
                arguments = {} if offset is None else {"offset": offset}
                proba = python.predict_proba(asked, **arguments)
                proba = np.hstack(proba) if isinstance(proba, list) else proba
                assert runtime.finish(raw).tobytes() == proba.tobytes(), f"mutant {k}"
    assert n_refused > N_MUTANTS // 2
    assert n_sound > N_MUTANTS // 50
