"""Reads many damaged model files in little memory, and fails if one is not dealt with.

    python tests/model_mutants.py N [SEED]

Mutants with a wrong checksum must be refused. Those with a checksum that fits must be refused, or
be models: they say what their file says (it is written again byte for byte), and predict without
failing, numbers of the right shape. A file that takes seconds, or more memory than its few
kilobytes justify, makes the process fail; the same seed makes the same mutants.
"""

import copy
import json
import random
import resource
import signal
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.persistence import trees_from_bytes
from manyboost.persistence.container import BrokenFileError
from manyboost.persistence.model import from_bytes, to_parts
from model_surgery import PREFIX, closed, header_text, mended, opened, with_header_text

SPARE_MEMORY = 64 << 20
SECONDS_PER_FILE = 5
GOLDEN = {p.stem: p.read_bytes() for p in sorted(Path(__file__).parent.glob("models/*.mb"))}


def with_arrays_and_code():
    """A file with what golden files have none of."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), rng.normal(size=(60, 4)) + np.arange(4)
    model = ManyBoostRegressor(
        projection=lambda q, d, rng: rng.normal(size=(q, d)),
        strategy="project",
        n_jobs=np.int64(2),
        monotonic_cst=np.array([[1, 0, -1]] * 4, dtype=np.int8),
        interaction_cst=({0, 1}, {1, 2}),
        output_weight=np.array([1.0, 2.0, 0.0, 1.0]),
        random_state=np.random.RandomState(0),
        max_iter=3,
        max_leaf_nodes=4,
    ).fit(X, Y)
    model._progress.mean_importances = model.feature_importances_
    model._progress.importances = None
    model._left_out = ["importances by output"]
    return b"".join(to_parts(model))


# ---------------------------------------------------------------------- kinds of damage


def flipped_bits(data, rng):
    damaged = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        at = rng.randrange(len(damaged))
        damaged[at] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def truncated(data, rng):
    return data[: rng.randrange(len(data))]


def lengthened(data, rng):
    return data + rng.randbytes(rng.choice([1, 32, 64, 100]))


def spliced(data, rng):
    """A piece of the file is copied, moved, cleared, or comes from another file."""
    source = rng.choice(list(GOLDEN.values()))
    size = rng.choice([1, 2, 4, 8, 64, 300])
    first, at = rng.randrange(len(source)), rng.randrange(len(data))
    piece = rng.choice([source[first : first + size], bytes(size), b"\xff" * size])
    rest = data[at + rng.choice([0, size]) :]
    return data[:at] + piece + rest


def mended_bits(data, rng):
    return mended(flipped_bits(data[:-32], rng) + bytes(32))


def mended_splice(data, rng):
    return mended(spliced(data[:-32], rng) + bytes(32))


STRANGE = [
    *(None, True, False, 0, 1, -1, 2, 3, 255, 256, 2**31, 2**32, 2**53, 2**63, -(2**63)),
    *(0.5, -0.0, 1e-320, 1.7e308, "", "a", "\ud800", "nan", "os.system", "x" * 300),
    *([], [[]], [0], {}, {"a": 1}, {"tuple": []}, {"set": [1, 2]}, {"dict": []}),
    *({"float": "inf"}, {"float": "nan"}, {"left_out": "a"}, {"scalar": ["<i8", 3]}),
    *({"array": 0}, {"array": {"shape": [1], "text": ["a"], "width": 1}}, {"dict": [[1, 2]]}),
    {"array": {"shape": [2], "values": [1, "a"]}},
]


def edited_header(data, rng):
    """Something in the header becomes something else; the layout of the arrays stays or not."""
    header = json.loads(header_text(data))
    for _ in range(rng.choice([1, 1, 2])):
        _edit(header, rng)
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    return with_header_text(data, text)


def _edit(value, rng):
    """Change one place of a nested value, anywhere in it."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
            value = inner
            continue
        break
    match rng.randrange(5):
        case 0:
            del value[key]
        case 1 if isinstance(inner, int) and not isinstance(inner, bool):
            value[key] = inner + rng.choice([-1, 1, 64, -64, 10**6])
        case 2 if isinstance(value, dict):
            value[rng.choice([*keys, "new"])] = copy.deepcopy(inner)
        case 2:
            value.insert(rng.randrange(len(value) + 1), copy.deepcopy(inner))
        case 3:
            other = rng.choice(keys)
            value[key], value[other] = value[other], inner
        case _:
            value[key] = copy.deepcopy(rng.choice(STRANGE))


def edited_array(data, rng):
    """An array changes its values, size, type or name; the layout is made anew."""
    header, arrays = opened(data)
    name = rng.choice([each for each in arrays if arrays[each].size] or list(arrays))
    array = arrays[name]
    match rng.randrange(6):
        case 0:
            arrays[name] = array[: rng.randrange(len(array))].copy()
        case 1:
            arrays[name] = np.concatenate([array, array[:1]])
        case 2:
            arrays[name] = array.astype(rng.choice(["<f4", "<f8", "<u4", "<i8", "|i1", "|b1"]))
        case 3:
            arrays[rng.choice([*arrays, "new"])] = arrays.pop(name)
        case _:
            place = tuple(rng.randrange(n) for n in array.shape)
            floats = [0, -0.0, 1, -1, 0.3, 1e30, 1e-40, np.nan, np.inf, -np.inf]
            whole = [0, 1, 2, 3, 5, 7, 100, 127]
            wide = [2**30, 2**31, 2**31 + 1, 2**32 - 1] if array.dtype.itemsize >= 4 else []
            is_float = array.dtype.kind == "f"
            with np.errstate(over="ignore"):
                array[place] = rng.choice(floats if is_float else [*whole, *wide])
    return closed(header, arrays, PREFIX.unpack_from(data)[1])


KINDS = {
    "flipped bits": flipped_bits,
    "truncated": truncated,
    "lengthened": lengthened,
    "spliced": spliced,
    "mended bits": mended_bits,
    "mended splice": mended_splice,
    "edited header": edited_header,
    "edited array": edited_array,
}
MENDED = ("mended bits", "mended splice", "edited header", "edited array")


# ---------------------------------------------------------------------- what becomes of them


def outcome(mutant):
    """Tell whether a mutant is "refused" or "sound"; anything else is an error."""
    try:
        model = from_bytes(mutant)
    except BrokenFileError:
        return "refused"
    assert b"".join(to_parts(model, "all")) == mutant, "it does not say what its file says"
    predict(model)
    return "sound"


def predict(model):
    """Ask a model for all that it can tell."""
    n, p, d = 3, model.n_features_in_, model.n_outputs_
    X = np.array([[np.nan] * p, [0.0] * p, list(range(p))])
    if model._category_labels.of_column:
        import pandas as pd

        names = list(getattr(model, "feature_names_in_", range(p)))
        X = pd.DataFrame(X, columns=names)
        for j, labels in model._category_labels.of_column.items():
            if labels:
                X[names[j]] = pd.Categorical([labels[0], labels[-1], None])
    elif hasattr(model, "feature_names_in_"):
        import pandas as pd

        X = pd.DataFrame(X, columns=list(model.feature_names_in_))
    arguments = {"offset": np.zeros((n, d // model._n_levels))} if model._with_offset else {}
    if isinstance(model, ManyBoostClassifier):
        assert np.shape(model.predict(X, **arguments))[0] == n
        proba = model.predict_proba(X, **arguments)
        proba = np.hstack(proba) if isinstance(proba, list) else np.asarray(proba)
        assert len(proba) == n
        assert not np.isnan(proba).any()
        assert len(model.decision_function(X, **arguments)) == n
    elif model._quantiles is None:
        values = np.asarray(model.predict(X, **arguments))
        assert values.shape == ((n,) if model._one_dimensional else (n, d))
        assert not np.isnan(values).any()
    assert len(list(model.staged_predict(X, **arguments))) == model.n_iter_
    unknown = model._progress.mean_importances
    if unknown is None or not np.isnan(unknown).all():
        assert model.feature_importances_.shape == (p,)
    str(model.info())


def limit_memory():
    with Path("/proc/self/statm").open() as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + SPARE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(n_mutants, seed):
    rng = random.Random(seed)
    counts = Counter()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    GOLDEN["with_arrays_and_code"] = with_arrays_and_code()
    for data in GOLDEN.values():
        # Everything is imported before memory is limited.
        assert outcome(data) == "sound"
    trees = from_bytes(GOLDEN["relabel"])._progress.model.trees.to_bytes()
    limit_memory()
    for k in range(n_mutants):
        kind = list(KINDS)[k % len(KINDS)]
        name = rng.choice(list(GOLDEN))
        mutant = GOLDEN[name]
        while mutant == GOLDEN[name]:
            mutant = KINDS[kind](GOLDEN[name], rng)
        signal.alarm(SECONDS_PER_FILE)
        try:
            found = outcome(mutant)
            assert found == "refused" or kind in MENDED, "the change went unnoticed"
            damaged_trees = mended_bits(trees, rng)
            try:
                trees_from_bytes(damaged_trees)
            except BrokenFileError:
                counts["trees, refused"] += 1
        except BaseException:
            print(f"mutant {k} of {name} ({kind}), seed {seed}", file=sys.stderr)
            raise
        signal.alarm(0)
        counts[f"{kind}, mutants"] += 1
        counts[f"{kind}, {found}"] += 1
    for what, count in sorted(counts.items()):
        print(what, count)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
