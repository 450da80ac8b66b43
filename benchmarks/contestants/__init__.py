"""The contestants by name. A library is imported only when its contestant is prepared."""

from benchmarks.contestants import catboost, hessboost, lightgbm, manyboost, sklearn, xgboost
from benchmarks.contestants.base import Contestant, Settings, Stopwatch

__all__ = ["CONTESTANTS", "Contestant", "Settings", "Stopwatch"]

CONTESTANTS: dict[str, type[Contestant]] = {
    kind.name: kind
    for kind in (
        manyboost.Relabel,
        manyboost.Project,
        manyboost.MultiOutput,
        manyboost.Independent,
        xgboost.Projection,
        xgboost.MultiOutputTree,
        xgboost.OneOutputPerTree,
        lightgbm.LightGBM,
        lightgbm.LightGBMOne,
        lightgbm.LightGBMClasses,
        hessboost.HessBoost,
        catboost.CatBoost,
        catboost.CatBoostLossguide,
        sklearn.HistGradientBoosting,
        sklearn.GradientBoostingOne,
        sklearn.RandomForest,
    )
}
