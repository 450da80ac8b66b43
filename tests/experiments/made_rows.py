"""A store full of invented rows, near the paper's scores: reports are tested with it."""

import zlib

import numpy as np
from experiments.costs import VARIATIONS
from experiments.items import ITEMS
from experiments.options import Options
from experiments.paper import paper_score
from experiments.problems import METRICS, in_paper, task_of
from experiments.protocol import (
    VARIANTS,
    Chosen,
    Curve,
    CurveResult,
    ModelResult,
    Search,
    SearchResult,
)
from experiments.store import Store

from experiments import reproduction

SPEEDS = {"st-gbrt": 400, "gbmort": 16, "gbrt-rpo-subsampled": 6}


def rng_of(run):
    return np.random.default_rng(zlib.crc32(repr(run).encode()))


def search_result(run):
    """Scores around the paper's; those of other sets are invented."""
    rng, metric = rng_of(run), METRICS[task_of(run.dataset)]
    metrics = [metric] + ["half-macro-r2"] * ("noisy" in run.dataset)

    def score(name):
        paper = paper_score(in_paper(run.dataset), run.method, name)
        center, std = (paper.score, paper.std or 0.01) if paper else (0.5, 0.01)
        return round(float(center + rng.normal(0, std)), 6)

    settings = {"loss": "squared_error", "learning_rate": 0.1, "max_features": 1.0}
    settings["max_leaf_nodes"] = int(rng.integers(2, 9))
    models = [
        Chosen(settings, rounds, 0.6, {v: {m: score(m) for m in metrics} for v in VARIANTS})
        for rounds in (120, 90)
    ]
    forest = run.method.endswith("-rf")
    budgets = {"nominal": 0} if forest else {b: i % 2 for i, b in enumerate(VARIATIONS)}
    return SearchResult(models, budgets, 0 if forest else 42, 1.5)


def curve_result(run):
    rng, rounds = rng_of(run), [1, 3, 10, 30, 100, 300, 1000]
    speed = SPEEDS.get(run.method, 5 + run.settings.get("n_components", 1) ** 0.5)
    top = 0.5 + 0.01 * (zlib.crc32(run.method.encode()) % 9)
    scores = [round(float(top * m / (m + speed) + rng.normal(0, 0.002)), 6) for m in rounds]
    cost = {b: 1 + run.settings.get("n_components", 1) / 100 for b in VARIATIONS}
    return CurveResult(rounds, scores, [m * 0.01 for m in rounds], cost)


def result_of(run):
    if isinstance(run, Search):
        return search_result(run)
    if isinstance(run, Curve):
        return curve_result(run)
    score = round(float(rng_of(run).uniform(0.4, 0.9)), 6)
    return ModelResult({METRICS[task_of(run.dataset)]: score}, 100, 0.5)


def scopes(store, monkeypatch):
    """All items, as if the files of 20 sets were there."""
    absent = ("bookmarks", "drug-interaction", "protein-interaction", "reuters", "scop-go")
    absent += ("sequence-funcat", "wipo", "yeast-go", "scm1d")
    monkeypatch.setattr("experiments.items.base.is_available", lambda name, _: name not in absent)
    return reproduction.choose(list(ITEMS), Options(), store)


def make_store(monkeypatch, keep=lambda run: True):
    """Return scopes and a store that holds the runs that ``keep`` keeps."""
    store = Store(None)
    chosen = scopes(store, monkeypatch)
    for item, scope in chosen.items():
        for run in item.runs(scope):
            if keep(run):
                store.put(run, result_of(run))
    return chosen, store
