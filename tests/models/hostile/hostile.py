"""Files that must be refused, each with one thing wrong and a checksum that fits.

python tests/models/hostile/hostile.py    makes them from the golden files
"""

import pickle
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1]))

from model_surgery import (  # noqa: E402
    PREFIX,
    changed,
    dumped,
    header_text,
    mended,
    opened,
    padded,
    with_header,
    with_header_text,
)

golden = {path.stem: path.read_bytes() for path in FOLDER.parent.glob("*.mb")}
RELABEL = golden["relabel"]
PROJECT = golden["project_poisson_offset"]
LABELS = golden["independent_labels"]
CLASSES = golden["multioutput_classes"]
MIXED = golden["mixed_per_output"]
QUANTILES = golden["quantiles"]
CATEGORIES = golden["constrained_categories"]
DOUBLES = golden["cuts_in_doubles"]
FRAMES = golden["frames"]
CALIBRATED = golden["calibrated_hierarchy"]
ISOTONIC = golden["isotonic_labels"]
RARE = golden["rare_categories"]
FEW = golden["few_outputs"]
COLUMNS = golden["class_columns"]


def outside():
    """Files whose container is wrong: (name, bytes, words of the refusal)."""
    flipped = bytearray(RELABEL)
    flipped[len(flipped) // 2] ^= 4
    header = opened(RELABEL)[0] | {"arrays": {}}
    yield "text", b"This is not a model.\n", "does not begin"
    yield "pickled", pickle.dumps({"model": [1, 2, 3]}), "does not begin"
    yield "cut_short", RELABEL[:-1], "checksum"
    yield "cut_in_the_prefix", RELABEL[:13], "cut short"
    yield "one_bit", bytes(flipped), "checksum"
    yield "version_2", mended(RELABEL[:8] + b"\x02" + RELABEL[9:]), "format version 2"
    yield (
        "header_too_long",
        mended(RELABEL[:12] + b"\xff" * 4 + RELABEL[16:]),
        "length of its header",
    )
    yield "header_not_json", with_header_text(RELABEL, b"{'a': 1}"), "not JSON"
    yield "header_not_text", with_header_text(RELABEL, b'{"a":"\xff"}'), "not JSON"
    deep = b'{"arrays":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    yield "header_deep", with_header_text(RELABEL, deep), "not JSON|deeply"
    nested = b'{"arrays":{},"x":' + b"[" * 40 + b"]" * 40 + b"}"
    yield "header_nested", with_header_text(RELABEL, nested), "deeply"
    yield "header_nan", with_header_text(RELABEL, b'{"arrays":{},"x":NaN}'), "not JSON"
    yield "header_infinite", with_header_text(RELABEL, b'{"arrays":{},"x":1e999}'), "canonical"
    long = b'{"arrays":{},"x":' + b"9" * 5000 + b"}"
    yield "header_long_number", with_header_text(RELABEL, long), "not JSON"
    twice = header_text(RELABEL).replace(b'"seed":', b'"seed":1,"seed":')
    yield "header_key_twice", with_header_text(RELABEL, twice), "canonical"
    spaces = header_text(RELABEL).replace(b'"seed":', b'"seed": ')
    yield "header_with_spaces", with_header_text(RELABEL, spaces), "canonical"
    yield "header_a_list", with_header_text(RELABEL, b"[]"), "not an object"
    yield "no_arrays", mended(padded(PREFIX.pack(RELABEL[:8], 1, 2) + b"{}") + bytes(32)), "arrays"
    yield "arrays_alone", with_header_text(RELABEL, dumped(header)), "belong to no array"
    yield "bytes_after", mended(RELABEL[:-32] + bytes(64) + bytes(32)), "belong to no array"
    end = PREFIX.size + len(header_text(RELABEL))
    assert end % 64
    padding = bytearray(RELABEL)
    padding[end] = 1
    yield "padding_not_zero", mended(padding), "between its arrays"

    def array(name, **description):
        return with_header(RELABEL, lambda header: header["arrays"][name].update(description))

    yield "array_of_objects", array("baseline", dtype="|O"), "which is not allowed"
    yield "array_of_records", array("baseline", dtype=[["a", "<f8"]]), "which is not allowed"
    yield "array_huge", array("baseline", shape=[2**60], length=2**63), "impossible shape"
    yield "array_negative", array("baseline", shape=[-3]), "impossible shape"
    yield "array_of_true", array("baseline", shape=[True]), "impossible shape"
    yield "array_of_empty_rows", array("baseline", shape=[10**9, 0]), "impossible shape"
    yield "array_length", array("baseline", length=16), "length"
    yield "array_elsewhere", array("baseline", offset=64), "offset"
    yield "array_without_offset", with_header(RELABEL, _drop("baseline", "offset")), "offset"


def _drop(array, key):
    return lambda header: header["arrays"][array].pop(key)


def trees():
    """Files whose trees are wrong."""

    def edit(data, name, place, value):
        def change(_, arrays):
            arrays[name][place] = value

        return changed(data, change)

    def resized(data, name, rows):
        def change(_, arrays):
            arrays[name] = np.resize(arrays[name], (rows, *arrays[name].shape[1:]))

        return changed(data, change)

    arrays = opened(RELABEL)[1]
    splits = np.flatnonzero(arrays["node_left"])
    size, n_leaves = int(arrays["tree_sizes"][0]), len(arrays["leaf_values"])
    yield "tree_cycle", edit(RELABEL, "node_left", splits[1], 1), "child 1 of"
    yield "tree_child_beyond", edit(RELABEL, "node_left", splits[1], 10**9), "child 1000000000"
    yield "tree_two_parents", edit(RELABEL, "node_left", splits[0], 3), "parent"
    yield "tree_of_no_nodes", edit(RELABEL, "tree_sizes", 0, 0), "0 nodes"
    yield "tree_too_large", edit(RELABEL, "tree_sizes", 0, 2**32 - 1), "4294967295 nodes"
    yield "tree_cut", edit(RELABEL, "tree_sizes", 0, size - 2), "tree 0"
    yield "tree_missing", resized(RELABEL, "tree_sizes", 2), "belong to no tree"
    yield "feature_beyond", edit(RELABEL, "split_feature", 0, 4), "feature 4 of 4"
    yield "feature_flags", edit(RELABEL, "split_feature", 0, 2**32 - 1), "feature"
    yield "threshold_nan", edit(RELABEL, "split_threshold", 0, np.nan), "threshold of NaN"
    yield "cover_negative", edit(RELABEL, "node_cover", 0, -1), "cover of -1"
    yield "gain_nan", edit(RELABEL, "split_gain", 0, np.nan), "gain of NaN"
    yield "leaf_value_nan", edit(RELABEL, "leaf_values", (0, 0), np.nan), "not finite"
    yield "step_infinite", edit(PROJECT, "tree_steps", (0, 0), np.inf), "not finite"
    yield "leaf_value_missing", resized(RELABEL, "leaf_values", n_leaves - 1), "leaf values"
    yield "steps_missing", resized(PROJECT, "tree_steps", 2), "tree_steps"
    category = int(np.flatnonzero(opened(CATEGORIES)[1]["split_feature"] >> 30 & 1)[0])
    number = int(np.flatnonzero(~opened(CATEGORIES)[1]["split_feature"] >> 30 & 1)[0])
    yield "categories_as_number", edit(CATEGORIES, "split_feature", category, 1), "as categories"
    yield "number_as_categories", edit(CATEGORIES, "split_feature", number, 1 << 30), "beside"
    yield "category_beyond", edit(CATEGORIES, "split_categories", (0, 7), 1), "of 5 as if"
    yield "category_set_missing", resized(CATEGORIES, "split_categories", 0), "no category set"
    yield "category_set_narrow", changed(CATEGORIES, _narrow_sets), "split_categories"
    yield "categories_missing", changed(CATEGORIES, _drop_categories), "feature 1 as numbers"
    yield "trees_of_other_kind", with_header(RELABEL, lambda h: h.update(kind="scaled")), "kind"
    halves = changed(LABELS, lambda h, a: a.update(tree_sizes=a["tree_sizes"][:-1]))
    yield "trees_not_in_turn", halves, "in turn"


def _drop_categories(_, arrays):
    for part in ("features", "counts", "values"):
        del arrays[f"category_{part}"]


def _narrow_sets(_, arrays):
    arrays["split_categories"] = arrays["split_categories"][:, :4].copy()


def models():
    """Files that hold together as containers and trees, but are no models."""

    def head(data, **fields):
        return with_header(data, lambda header: header.update(fields))

    def parameter(name, value):
        return with_header(RELABEL, lambda header: header["parameters"].update({name: value}))

    def trained(name, value):
        return with_header(RELABEL, lambda header: header["trained_with"].update({name: value}))

    def array(data, name, value):
        return changed(data, lambda _, arrays: arrays.update({name: np.array(value)}))

    def element(data, name, place, value):
        return changed(data, lambda _, arrays: arrays[name].__setitem__(place, value))

    def without(data, name):
        return changed(data, lambda _, arrays: arrays.pop(name))

    yield "unknown_key", head(RELABEL, execute="os.system"), "does not know"
    yield "unknown_array", array(RELABEL, "zzz", [1.0]), "does not know"
    yield "key_missing", with_header(RELABEL, lambda header: header.pop("seed")), "no 'seed'"
    yield "array_missing", without(RELABEL, "baseline"), "no array 'baseline'"
    yield "type_of_key", head(RELABEL, seed="1"), "type str"
    yield "true_for_one", head(RELABEL, seed=True), "type bool"
    yield "seed_negative", head(RELABEL, seed=-1), "beyond"
    yield "trees_alone", head(RELABEL, content="trees"), "content"
    yield "estimator_unknown", head(RELABEL, estimator="subprocess.Popen"), "does not know"
    yield "outputs_none", head(RELABEL, n_outputs=0), "beyond"
    yield "outputs_huge", head(RELABEL, n_outputs=2**31), "baseline"
    yield "features_huge", head(RELABEL, n_features=2**30), "importances"
    yield "features_fewer", head(RELABEL, n_features=3), "feature|importances"
    yield "type_of_array", array(RELABEL, "baseline", np.zeros(3, np.float32)), "float32"
    yield "baseline_nan", element(RELABEL, "baseline", 0, np.nan), "not finite"
    yield "baseline_not_single", element(PROJECT, "baseline", 0, 0.1), "single precision"
    yield "loss_unknown", head(RELABEL, losses=[["cosh", 3]]), "unknown loss"
    yield "loss_of_labels", head(RELABEL, losses=[["log_loss", 3]]), "unknown loss"
    yield "loss_of_too_few", head(RELABEL, losses=[["squared_error", 2]]), "one loss for each"
    yield "loss_not_trained", head(RELABEL, losses=[["absolute_error", 3]]), "trained with"
    yield "losses_apart", head(MIXED, losses=[["huber", 1]] * 2 + [["poisson", 2]]), "together"
    yield "delta_negative", element(MIXED, "loss_constants", 0, -1.0), "impossible constants"
    yield "levels_other", element(QUANTILES, "loss_constants", 0, 0.2), "its quantiles"
    levels = {"one_dimensional": False, "quantiles": [0.5, 0.1, 0.9]}
    yield "levels_unsorted", head(QUANTILES, targets=levels), "quantile="
    yield (
        "dimensions",
        head(RELABEL, targets={"one_dimensional": True, "quantiles": None}),
        "target",
    )
    yield "classes_twice", head(CLASSES, targets=_classes(["ant", "ant", "cow"])), "twice"
    yield "classes_unsorted", head(CLASSES, targets=_classes(["bee", "ant", "cow"])), "of order"
    yield "classes_too_few", head(CLASSES, targets=_classes(["ant", "bee"])), "2 classes"
    yield "classes_wide", head(CLASSES, targets=_classes(["a", "b", "c"], 2**30)), "width"
    yield "classes_of_lists", head(CLASSES, targets={"kind": "multiclass", "values": [1]}), "list"
    numbered = {"kind": "multiclass", "values": "numbers"}
    yield "classes_as_numbers", head(CLASSES, targets=numbered), "not a list"
    yield "classes_shaped", head(CLASSES, targets=_classes(["a"], 1, [10**9])), "shape"
    yield "names_twice", head(FRAMES, output_names=["one", "one"]), "different names"
    yield "names_too_few", head(FRAMES, feature_names=["length"]), "different names"
    yield "names_of_numbers", head(FRAMES, feature_names=["length", 1]), "not all text"
    yield "labels_twice", head(FRAMES, category_labels=[[1, ["a", "a", "b"]]]), "different"
    yield "labels_of_lists", head(FRAMES, category_labels=[[1, [[], {}, None]]]), "no type|texts"
    yield "labels_too_few", head(FRAMES, category_labels=[[1, ["a", "b"]]]), "those of its"
    labels = [[True, ["a", "b", "c"]]]
    yield "labels_of_true", head(FRAMES, category_labels=labels), "no categorical"
    yield "labels_of_numbers", head(FRAMES, category_labels=[[0, ["a", "b"]]]), "no categorical"
    yield "categories_unsorted", element(CATEGORIES, "category_values", 0, 9.0), "out of order"
    yield "category_feature", element(CATEGORIES, "category_features", 0, 4), "out of order"
    yield "category_counts", element(CATEGORIES, "category_counts", 0, 255), "do not fit"
    yield "cuts_unsorted", element(DOUBLES, "cut_values", 0, 2e9), "cuts are out of order"
    yield "cuts_infinite", element(DOUBLES, "cut_values", 0, -np.inf), "not finite"
    yield "cut_feature", element(DOUBLES, "cut_features", 0, 4), "with cuts are out of order"
    yield "cut_of_other_feature", element(DOUBLES, "cut_features", 0, 3), "cuts that feature 3"
    yield "cut_counts", element(DOUBLES, "cut_counts", 0, 255), "do not fit"
    yield "group_codes_apart", element(RARE, "group_codes", 0, 3), "rare categories are out of"
    yield "group_features", element(RARE, "group_features", 0, 2), "with rare categories are out"
    yield "group_alone", without(RARE, "group_features"), "all arrays of its rare"
    yield "slope_alone", element(CALIBRATED, "sigmoid_slopes", 0, np.nan), "alone"
    yield "slope_negative", element(CALIBRATED, "sigmoid_slopes", 0, -1.0), "beyond 0 to inf"
    yield "slopes_alone", without(CALIBRATED, "sigmoid_intercepts"), "arrays of its calibrator"
    yield "curve_falling", element(ISOTONIC, "isotonic_values", 0, 1.0), "curve of its calibrator"
    yield "curve_unsorted", element(ISOTONIC, "isotonic_knots", 0, 99.0), "curve of its calibrator"
    yield "curve_beyond", element(ISOTONIC, "isotonic_values", 0, 1.5), "beyond 0 to 1"
    yield "curve_counts", element(ISOTONIC, "isotonic_counts", 0, 999), "do not fit"
    yield "hierarchy_cycle", array(CALIBRATED, "hierarchy_parents", np.array([2, 1], "u4")), "cycle"
    yield "hierarchy_beyond", element(CALIBRATED, "hierarchy_parents", 0, 4), "beyond 0 to 3"
    yield "hierarchy_unsorted", element(CALIBRATED, "hierarchy_children", 0, 3), "out of order"
    yield "hierarchy_alone", without(CALIBRATED, "hierarchy_parents"), "of its hierarchy"
    yield "leaf_output_beyond", element(FEW, "leaf_outputs", 1, 9), "out of order"
    first = opened(FEW)[1]["leaf_outputs"][0]
    yield "leaf_outputs_twice", element(FEW, "leaf_outputs", 1, first), "out of order"
    yield "leaf_outputs_fewer", array(FEW, "leaf_outputs", np.uint32([1])), "outputs of leaves"
    yield "leaf_size_more", element(FEW, "leaf_sizes", 0, 3), "leaf values"
    yield "leaf_size_huge", element(FEW, "leaf_sizes", 0, 2**32 - 1), "leaf values"
    yield "leaf_sizes_moved", element(FEW, "leaf_sizes", slice(0, 2), [4, 0]), "out of order"
    yield "leaf_sizes_missing", changed(FEW, lambda _, a: a.pop("leaf_sizes")), "no 'leaf_sizes'"
    yield "leaves_of_all", head(FEW, kind="vector"), "'leaf_values'"
    other = with_header(FEW, lambda header: header["trained_with"].update(strategy="project"))
    yield "few_outputs_of_project", other, "do not come from strategy"
    yield "thresholds_beyond", element(LABELS, "thresholds", 0, 1.5), "beyond 0 to 1"
    yield "thresholds_nan", element(LABELS, "thresholds", 0, np.nan), "beyond 0 to 1"
    yield "thresholds_of_numbers", array(RELABEL, "thresholds", np.full(3, 0.5)), "cannot have"
    yield "thresholds_of_classes", array(CLASSES, "thresholds", np.full(3, 0.5)), "cannot have"
    halves = np.full(len(opened(COLUMNS)[1]["baseline"]), 0.5)
    yield "thresholds_of_columns", array(COLUMNS, "thresholds", halves), "cannot have"
    yield "target_name_of_numbers", head(RELABEL, target_name="y"), "name of a column"
    yield "target_name_of_labels", head(LABELS, target_name="y"), "name of a column"
    yield "calibration_numbers", changed(CALIBRATED, _calibration("targets", "f8")), "cannot have"
    yield "calibration_classes", changed(CALIBRATED, _calibration("classes", "u4")), "cannot have"
    yield "sign_two", element(CATEGORIES, "monotonic_signs", (0, 0), 2), "beyond -1 to 1"
    yield "signs_none", element(CATEGORIES, "monotonic_signs", ..., 0), "constrain nothing"
    yield "group_beyond", element(CATEGORIES, "interaction_features", 0, 4), "beyond 0 to 3"
    yield "group_empty", element(CATEGORIES, "interaction_counts", 0, 0), "beyond 1 to 4"
    yield "group_twice", element(CATEGORIES, "interaction_features", 1, 0), "out of order"
    yield "scores_too_few", array(RELABEL, "train_score", [-1.0, -0.5]), "validation_scores"
    yield "score_twice", head(CATEGORIES, score_names=["loss", "loss"]), "one name"
    yield "rounds_beyond", element(MIXED, "best_iter_per_output", 0, 9), "beyond 0 to 3"
    yield "left_out_not", head(RELABEL, left_out=["importances by output"]), "importances"
    yield "frames_unknown", head(RELABEL, set_output="os"), "does not know"
    yield "parameter_missing", with_header(RELABEL, lambda h: h["parameters"].pop("tol")), "'tol'"
    texts = {"shape": [2], "text": ["a", "b"], "width": 1}
    yield "projection_array", head(RELABEL, projection={"array": texts}), "unknown projection"
    yield "projection_unknown", head(RELABEL, projection="haar"), "unknown projection"
    yield "search_of_nothing", head(RELABEL, search_results={"dict": []}), "was chosen"
    yield "search_of_lists", head(RELABEL, search_results=_results([1])), "was chosen"
    yield "search_cut", array(golden["chosen_strategy"], "value_000000", [1]), "one for each"
    yield "parameter_unknown", parameter("depth", 1), "not one that"
    yield "parameter_refused", parameter("max_iter", -1), "max_iter=-1"
    yield "parameter_of_other_type", parameter("n_jobs", "all"), "n_jobs='all'"
    yield "parameter_estimator", parameter("estimator", {"left_out": "a.b"}), "left out"
    yield (
        "parameter_pickled",
        parameter("loss", {"pickle": "gASVBQAAAAAAAABLKi4="}),
        "does not know",
    )
    yield "parameter_of_two_types", parameter("loss", {"tuple": [], "set": []}), "no type"
    yield "parameter_array", parameter("output_weight", {"array": 0}), "not there"
    wide = {"shape": [1000], "text": ["x" * 5000] + [""] * 999, "width": 5000}
    yield "parameter_text_wide", parameter("scoring", {"array": wide}), "does not fit its width"
    yield "parameter_scoring", parameter("scoring", {"set": ["loss", "r2"]}), "scoring="
    yield "parameter_scorers", parameter("scoring", ["r2", []]), "scoring="
    yield "parameter_key_twice", parameter("monotonic_cst", {"dict": [["a", 1]] * 2}), "twice"
    yield "parameter_key_list", parameter("monotonic_cst", {"dict": [[[], 1]]}), "do not fit"
    yield "parameter_set", parameter("interaction_cst", [{"set": [2, 1]}]), "out of order"
    yield "parameter_scalar", parameter("max_iter", {"scalar": ["|i1", 300]}), "do not fit"
    yield "parameter_scalar_type", parameter("max_iter", {"scalar": ["|O", 3]}), "does not know"
    yield "parameter_scalar_float", parameter("max_iter", {"scalar": ["<i8", 3.0]}), "do not fit"
    yield "parameter_scalar_wide", parameter("max_iter", {"scalar": ["<f16", 3.0]}), "does not know"
    yield "trained_with_other", trained("strategy", "project"), "strategy"
    lists = {"tuple": [{"array": {"shape": [2], "text": ["a", "b"], "width": 1}}]}
    yield "trained_with_arrays", trained("loss", lists), "neither names nor numbers"
    yield "trained_with_nothing", head(RELABEL, trained_with={}), "how the model was trained"
    yield "trained_with_foreign", trained("built_in_trees", False), "built in"


def _calibration(name, dtype):
    """A change of what the calibration rows have as targets."""

    def change(_, arrays):
        labels = arrays.pop("calibration_labels").astype(dtype)
        arrays[f"calibration_{name}"] = labels if name == "targets" else labels[:, 0].copy()

    return change


def _results(array):
    keys = ("strategy", "projection", "heats", "n_rounds", "validation_score")
    return {"dict": [[key, array] for key in keys]}


def _classes(texts, width=3, shape=None):
    array = {"shape": shape or [len(texts)], "text": texts, "width": width}
    return {"kind": "multiclass", "values": {"array": array}}


def make():
    """All files: name, bytes, words of the refusal."""
    yield from outside()
    yield from trees()
    yield from models()


if __name__ == "__main__":
    for name, data, _ in make():
        (FOLDER / f"{name}.mb").write_bytes(data)
