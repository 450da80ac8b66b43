"""Made-up records of the contest."""

from benchmarks.records import Run

FACTS = {"cpu": "abacus", "cores": 2, "memory_bytes": 2**34, "system": "", "python": "3"}
MACHINE = {**FACTS, "libraries": ["manyboost 1"], "notes": []}
OTHER = {**MACHINE, "cpu": "another"}
SHAPE = ("n_rows", "n_validation_rows", "n_test_rows", "n_features", "n_outputs")


def record(contestant, score, *, workload="emotions", repeat=0, **facts):
    spec = {
        "protocol": "contest",
        "workload": workload,
        "contestant": contestant,
        "n_rounds": 1000,
        "n_threads": 2,
        "limit": 600.0,
        "repeat": repeat,
        "library": "abacus 1",
    }
    return {
        "spec": spec,
        "status": "ok",
        "when": "2026-01-02T03:04:05+00:00",
        "fit_seconds": 2.0,
        "score_name": "LRAP",
        "score": score,
        "rounds": 50,
        "patience": 10,
        "capped": False,
        "machine": 0,
        **dict.fromkeys(SHAPE, 7),
        **facts,
    }


def stored(*records):
    return {"machines": [MACHINE, OTHER], "skipped": {}, "records": list(records)}


def run_of(*records) -> Run:
    return Run(stored(*records))
