"""The contestants by name: every library at its own defaults, with early stopping.

Nothing is set but rounds, threads, seed and, where there is no default, patience. After a fit
`rounds_done` says how many rounds are kept, and `patience` how many without improvement end it.
BOOMER takes part where it is installed.
"""

from benchmarks.contest.contestants import (
    boomer,
    catboost,
    hessboost,
    lightgbm,
    manyboost,
    sklearn,
    xgboost,
)
from benchmarks.contestants.base import Contestant

CONTESTANTS: dict[str, type[Contestant]] = {
    kind.name: kind
    for kind in (
        manyboost.ManyBoost,
        manyboost.Folds,
        manyboost.Refitted,
        lightgbm.LightGBM,
        xgboost.MultiOutputTree,
        xgboost.OneOutputPerTree,
        catboost.CatBoost,
        hessboost.HessBoost,
        sklearn.HistGradientBoosting,
        sklearn.RandomForest,
        boomer.Boomer,
    )
}
