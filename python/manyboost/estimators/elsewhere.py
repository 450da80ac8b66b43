"""Arguments that users know from other libraries, and what they are called here.

Calls with such an argument are answered by this table, and the page "Coming from other libraries"
of the documentation holds it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from manyboost.spelling import closest

_Function = TypeVar("_Function", bound=Callable[..., Any])

_LIGHTGBM, _XGBOOST, _CATBOOST = "LightGBM", "XGBoost", "CatBoost"
_ALL = f"{_LIGHTGBM}, {_XGBOOST}, {_CATBOOST}"
_GBDT = "scikit-learn's GradientBoosting"
_TREES = "nothing: trees are grown by histograms, best leaf first, on CPUs"

#: What an argument is here, and where it is known from; answers follow "in manyboost this is".
CONSTRUCTOR: dict[str, tuple[str, str]] = {
    "n_estimators": ("max_iter", f"{_LIGHTGBM}, {_XGBOOST}, {_GBDT}"),
    "num_boost_round": ("max_iter", f"{_LIGHTGBM}, {_XGBOOST}"),
    "num_iterations": ("max_iter", _LIGHTGBM),
    "iterations": ("max_iter", _CATBOOST),
    "eta": ("learning_rate", _XGBOOST),
    "num_leaves": ("max_leaf_nodes", _LIGHTGBM),
    "max_leaves": ("max_leaf_nodes", f"{_XGBOOST}, {_CATBOOST}"),
    "depth": ("max_depth", _CATBOOST),
    "min_child_samples": ("min_samples_leaf", _LIGHTGBM),
    "min_data_in_leaf": ("min_samples_leaf", f"{_LIGHTGBM}, {_CATBOOST}"),
    "min_child_weight": ("min_samples_leaf, which counts rows", f"{_LIGHTGBM}, {_XGBOOST}"),
    "min_samples_split": ("min_samples_leaf, for the rows of a leaf", _GBDT),
    "min_gain_to_split": ("min_split_gain", _LIGHTGBM),
    "gamma": ("min_split_gain", _XGBOOST),
    "min_impurity_decrease": ("min_split_gain", _GBDT),
    "reg_lambda": ("l2_regularization", f"{_LIGHTGBM}, {_XGBOOST}"),
    "lambda_l2": ("l2_regularization", _LIGHTGBM),
    "l2_leaf_reg": ("l2_regularization", _CATBOOST),
    "reg_alpha": ("nothing; l2_regularization shrinks leaves too", f"{_LIGHTGBM}, {_XGBOOST}"),
    "lambda_l1": ("nothing; l2_regularization shrinks leaves too", _LIGHTGBM),
    "feature_fraction": ("max_features, drawn for each node", _LIGHTGBM),
    "colsample_bytree": ("max_features, drawn for each node", f"{_LIGHTGBM}, {_XGBOOST}"),
    "colsample_bylevel": ("max_features, drawn for each node", f"{_XGBOOST}, {_CATBOOST}"),
    "colsample_bynode": ("max_features", _XGBOOST),
    "rsm": ("max_features, drawn for each node", _CATBOOST),
    "bagging_fraction": ("subsample", _LIGHTGBM),
    "bagging_freq": ("nothing: subsample draws rows for every tree", _LIGHTGBM),
    "subsample_freq": ("nothing: subsample draws rows for every tree", _LIGHTGBM),
    "bootstrap_type": ("subsample, without replacement", _CATBOOST),
    "max_bin": ("max_bins, at most 255", f"{_LIGHTGBM}, {_XGBOOST}"),
    "border_count": ("max_bins, at most 255", _CATBOOST),
    "objective": ("loss", f"{_LIGHTGBM}, {_XGBOOST}"),
    "loss_function": ("loss", _CATBOOST),
    "alpha": ("quantile for loss='quantile', huber_delta for loss='huber'", _GBDT),
    "quantile_alpha": ("quantile", _XGBOOST),
    "multi_strategy": ("strategy", _XGBOOST),
    "num_class": ("nothing: classes are found in y", f"{_LIGHTGBM}, {_XGBOOST}"),
    "missing": ("nothing: missing is NaN", _XGBOOST),
    "base_score": ("offset of fit and predict", _XGBOOST),
    "categorical_feature": ("categorical_features", _LIGHTGBM),
    "cat_features": ("categorical_features", _CATBOOST),
    "enable_categorical": ("categorical_features='from_dtype', the default", _XGBOOST),
    "monotone_constraints": ("monotonic_cst", _ALL),
    "interaction_constraints": ("interaction_cst", f"{_LIGHTGBM}, {_XGBOOST}"),
    "scale_pos_weight": ("class_weight={0: 1, 1: weight}", _ALL),
    "is_unbalance": ("class_weight='balanced'", _LIGHTGBM),
    "auto_class_weights": ("class_weight='balanced'", _CATBOOST),
    "class_weights": ("class_weight", _CATBOOST),
    "early_stopping_round": ("early_stopping=True with n_iter_no_change", _LIGHTGBM),
    "early_stopping_rounds": ("early_stopping=True with n_iter_no_change",
                              f"{_XGBOOST}, {_CATBOOST}"),
    "od_wait": ("early_stopping=True with n_iter_no_change", _CATBOOST),
    "use_best_model": ("early_stopping=True, which keeps the rounds up to the best", _CATBOOST),
    "snapshot_file": ("checkpoint", _CATBOOST),
    "metric": ("scoring", _LIGHTGBM),
    "eval_metric": ("scoring", f"{_XGBOOST}, {_CATBOOST}"),
    "seed": ("random_state", f"{_LIGHTGBM}, {_XGBOOST}"),
    "random_seed": ("random_state", _CATBOOST),
    "num_threads": ("n_jobs", _LIGHTGBM),
    "nthread": ("n_jobs", _XGBOOST),
    "thread_count": ("n_jobs", _CATBOOST),
    "verbosity": ("verbose", f"{_LIGHTGBM}, {_XGBOOST}"),
    "silent": ("verbose", _CATBOOST),
    "logging_level": ("verbose", _CATBOOST),
    "importance_type": ("feature_importances_ for gains, split_counts_ for numbers of splits",
                        f"{_LIGHTGBM}, {_XGBOOST}"),
    "boosting_type": (_TREES, _LIGHTGBM),
    "booster": (_TREES, _XGBOOST),
    "tree_method": (_TREES, _XGBOOST),
    "grow_policy": (_TREES, f"{_XGBOOST}, {_CATBOOST}"),
    "device": (_TREES, f"{_LIGHTGBM}, {_XGBOOST}"),
    "task_type": (_TREES, _CATBOOST),
    "criterion": (_TREES, _GBDT),
    "min_weight_fraction_leaf": ("min_samples_leaf, which counts rows", _GBDT),
    "ccp_alpha": ("min_split_gain, while trees grow; they are not pruned", _GBDT),
    "init": ("offset of fit and predict", _GBDT),
}  # fmt: skip
#: The same for fit.
FIT: dict[str, tuple[str, str]] = {
    "eval_set": ("X_val and y_val, for one set; score others by staged_predict", _ALL),
    "sample_weight_eval_set": ("sample_weight_val", _XGBOOST),
    "eval_sample_weight": ("sample_weight_val", _LIGHTGBM),
    "eval_metric": ("scoring of the constructor", _LIGHTGBM),
    "eval_init_score": ("offset_val", _LIGHTGBM),
    "base_margin_eval_set": ("offset_val", _XGBOOST),
    "group": ("groups, for folds; there are no ranking losses", f"{_LIGHTGBM}, {_XGBOOST}"),
    "qid": ("groups, for folds; there are no ranking losses", _XGBOOST),
    "init_score": ("offset", _LIGHTGBM),
    "base_margin": ("offset", _XGBOOST),
    "baseline": ("offset", _CATBOOST),
    "init_model": ("warm_start=True of the constructor", f"{_LIGHTGBM}, {_CATBOOST}"),
    "xgb_model": ("warm_start=True of the constructor", _XGBOOST),
    "feature_name": ("the names of a data frame's columns", _LIGHTGBM),
    "categorical_feature": ("categorical_features of the constructor", _LIGHTGBM),
    "cat_features": ("categorical_features of the constructor", _CATBOOST),
    "early_stopping_rounds": ("n_iter_no_change of the constructor", _CATBOOST),
    "monitor": ("callbacks of the constructor", _GBDT),
}
#: The same for predict and its kin.
PREDICT: dict[str, tuple[str, str]] = {
    "num_iteration": ("first_rounds(k), a model to predict with", _LIGHTGBM),
    "iteration_range": ("first_rounds(k), a model to predict with", _XGBOOST),
    "ntree_end": ("first_rounds(k), a model to predict with", _CATBOOST),
    "raw_score": ("decision_function", _LIGHTGBM),
    "output_margin": ("decision_function", _XGBOOST),
    "prediction_type": ("predict_proba or decision_function", _CATBOOST),
    "pred_contrib": ("shap_values", _LIGHTGBM),
    "pred_contribs": ("shap_values", _XGBOOST),
    "pred_interactions": ("shap_interaction_values", _XGBOOST),
    "pred_leaf": ("apply", f"{_LIGHTGBM}, {_XGBOOST}"),
    "base_margin": ("offset", _XGBOOST),
    "init_score": ("offset", _LIGHTGBM),
    "thread_count": ("n_jobs of the constructor", _CATBOOST),
}
_TABLES = {"__init__": CONSTRUCTOR, "fit": FIT}


def explained(function: _Function) -> _Function:
    """Make a method say what an unknown argument is called here, or which one may be meant."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                method = "" if function.__name__ == "__init__" else f".{function.__name__}"
                problem = f"{type(self).__name__}{method}() got an unexpected keyword argument"
                raise TypeError(f"{problem} {name!r}{answer(self, function.__name__, name)}")
        return function(self, *args, **kwargs)

    return checked  # type: ignore[return-value]


def answer(estimator: Any, method: str, name: str) -> str:
    """Return the end of a sentence about an unknown argument of a method."""
    table = _TABLES.get(method, PREDICT)
    own = list(inspect.signature(type(estimator).__init__).parameters)[1:]
    if method != "__init__" and name in own:
        return "; it is a parameter of the constructor."
    if name in table:
        return f"; in manyboost this is {table[name][0]}."
    if method != "__init__":
        own = list(inspect.signature(getattr(type(estimator), method)).parameters)[1:]
    likely = closest(name, own)
    return "." if likely is None else f"; did you mean {likely!r}?"


def as_markdown() -> str:
    """Return the tables of the page "Coming from other libraries"."""
    parts = []
    for title, table in (("Parameters", CONSTRUCTOR), ("`fit`", FIT), ("`predict`", PREDICT)):
        parts += [f"### {title}", "", "| elsewhere | in manyboost | known from |", "|---|---|---|"]
        parts += [f"| `{name}` | {here} | {where} |" for name, (here, where) in table.items()]
        parts.append("")
    return "\n".join(parts)
