"""What is run: (workload, contestant) entries with rounds, threads, repeats and a time limit."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks import workloads
from benchmarks.contestants import CONTESTANTS

OUTPUTS = (1, 10, 50, 200, 1000)
THREADS = 2
BINS = 255
LEARNING_RATE = 0.1


@dataclass(frozen=True)
class Entry:
    """One line of a plan. At the limit (seconds of fitting) a contestant stops, and what it has
    done is extrapolated; `n_rounds` and `leaves` None mean the workload's own. The protocol says
    what is measured: a whole fit with its scores, or the time of rounds or predictions alone
    (`engine`), or that of growing trees (`builds`)."""

    workload: str
    contestant: str
    n_rounds: int | None = None
    threads: int = THREADS
    repeats: int = 3
    limit: float = 60.0
    leaves: int | None = None
    variant: str = ""  # of manyboost's parameters and arguments, or of the data
    protocol: Literal["fit", "rounds", "growth", "prediction", "contest"] = "fit"


RELABEL, PROJECT, MULTIOUTPUT, INDEPENDENT = (
    f"manyboost-{strategy}" for strategy in ("relabel", "project", "multioutput", "independent")
)
MANYBOOST = (RELABEL, PROJECT, MULTIOUTPUT, INDEPENDENT)
XGBOOST = ("xgboost-projection", "xgboost-multi-output-tree", "xgboost-one-output-per-tree")
PER_OUTPUT = ("lightgbm-per-output", "sklearn-hist-per-output")
HESSBOOST = "hessboost-multi-output-tree"
ONE_OUTPUT = "lightgbm-one-output"
PEERS = (*XGBOOST, *PER_OUTPUT, HESSBOOST, "catboost", "sklearn-random-forest")
CLASS_PEERS = (*XGBOOST, "lightgbm-softmax", "catboost")
IMPORTS = ("import-manyboost", "import-sklearn")


def entries(workload: str, contestants: Iterable[str], **options: Any) -> list[Entry]:
    return [Entry(workload, contestant, **options) for contestant in contestants]


def full() -> list[Entry]:
    """Everything the documentation shows. The sets whose curves are compared get long limits."""
    d50 = "regression-20000x50x50"
    plan = [
        *entries("import", IMPORTS),
        *entries(d50, [*MANYBOOST, *PEERS, "catboost-lossguide", ONE_OUTPUT], limit=300),
        *entries(d50, [RELABEL], n_rounds=1000),
        *entries("friedman1", [RELABEL, "sklearn-gbr-one-output", ONE_OUTPUT]),
    ]
    for kind in ("regression", "multilabel"):
        for n_outputs in OUTPUTS:
            name = f"{kind}-20000x50x{n_outputs}"
            if name != d50:
                plan += entries(name, [*MANYBOOST, *PEERS])
        big = f"{kind}-100000x100x100"
        plan += entries(big, [RELABEL, PROJECT, MULTIOUTPUT, *XGBOOST, *PER_OUTPUT, "catboost"])
    plan += entries("regression-100000x100x100", [RELABEL], threads=1)
    for n_classes in (100, 1000):
        plan += entries(
            f"classes-20000x50x{n_classes}", [RELABEL, PROJECT, MULTIOUTPUT, *CLASS_PEERS]
        )
    for name in ("mediamill", "delicious"):
        plan += entries(name, [RELABEL, PROJECT, MULTIOUTPUT, *PEERS], limit=600)
        plan += entries(name, [RELABEL], n_rounds=1000)
    return plan


def quick() -> list[Entry]:
    """Under five minutes: the shapes and contestants that tell whether a change was good."""
    d50 = "regression-20000x50x50"
    twice = {"repeats": 2, "limit": 10.0}
    once = {"repeats": 1, "limit": 12.0}
    return [
        *entries("import", IMPORTS, repeats=1),
        *entries(d50, [RELABEL, PROJECT, ONE_OUTPUT, "xgboost-projection"], **twice),
        *entries(d50, [RELABEL], n_rounds=1000, **twice),
        *entries(d50, [MULTIOUTPUT, "xgboost-multi-output-tree"], **once),
        *entries(d50, ["lightgbm-per-output"], repeats=1, limit=40.0),  # its score is needed whole
        *entries("regression-20000x50x10", [RELABEL], **twice),
        *entries("regression-20000x50x1000", [RELABEL], **twice),
        *entries("friedman1", [RELABEL, "sklearn-gbr-one-output", ONE_OUTPUT], **once),
        *entries("delicious", [RELABEL, PROJECT, "xgboost-multi-output-tree"], **once),
    ]


def tiny() -> list[Entry]:
    """Every contestant on next to nothing: whether the harness itself works."""
    shapes = ("500x10x1", "500x10x5", "500x10x20")
    names = [f"{kind}-{shape}" for kind in ("regression", "multilabel") for shape in shapes]
    options = {"n_rounds": 20, "threads": 1, "repeats": 2, "limit": 20.0}
    plan = entries("import", IMPORTS, repeats=1)
    for name in [*names, "classes-500x10x5"]:
        task = workloads.find(name).task
        plan += entries(
            name, [c for c, kind in CONTESTANTS.items() if task in kind.tasks], **options
        )
    plan += entries("regression-500x10x5", [RELABEL], **{**options, "n_rounds": 200})
    return plan


# ------------------------------------------------------------------ the engine

SMALL_TABLES = ("emotions", "atp1d", "CAL500", "oes97", "yeast", "scene")
SPARSE_TABLES = ("medical", "genbase", "enron", "bibtex")
AS_STORED = "as-stored"  # the first label is that of the file, not the one nearest to half
CLIFF = tuple(f"regression-{2**20 + more}x20x5" for more in (-20_000, 20_000))
WEIGHTED = {
    "regression-200000x20x5": ("row-weights", "cell-weights"),
    "multilabel-200000x20x5": ("class-weight",),
}
COMPONENTS = "components-4"
GROWTH = ("regression-20000x50x10", "regression-20000x50x50", "regression-20000x50x1000")
GROWTH_LABELS = "multilabel-20000x50x1000"
THREADED = "regression-100000x100x100"
TALL, WIDE = "regression-5000000x28x10", "regression-1000000x100x100"
MANY_PREDICTED = "regression-20000x50x983"
PREDICTED = (*(f"regression-20000x50x{n_outputs}" for n_outputs in (1, 10, 50)), MANY_PREDICTED)
PREDICTED_ROUNDS = (10, 100)
SINGLE = "float32"
PREDICTORS = (RELABEL, "xgboost-multi-output-tree", "lightgbm-per-output", HESSBOOST)
VECTOR_LEAVES = (MULTIOUTPUT, "xgboost-multi-output-tree", HESSBOOST)


def engine() -> list[Entry]:
    """Twenty minutes: the time of a round on shapes that ask different things of it."""
    return [*small_and_sparse(), *large(), *with_peers(), *predictions()]


def rounds(workload: str, contestants: Iterable[str], n_rounds: int, **options: Any) -> list[Entry]:
    options = {"protocol": "rounds", "repeats": 2, "limit": 2.0, **options}
    return entries(workload, contestants, n_rounds=n_rounds, **options)


def small_and_sparse() -> list[Entry]:
    plan = []
    for name in SMALL_TABLES:
        for leaves in (31, 4):
            for threads in (1, 2):
                plan += rounds(
                    name, [RELABEL, ONE_OUTPUT], 180, leaves=leaves, threads=threads, limit=1.0
                )
    for name in SPARSE_TABLES:
        plan += rounds(name, [RELABEL, ONE_OUTPUT], 60, threads=1)
        plan += rounds(name, [ONE_OUTPUT], 60, threads=1, variant=AS_STORED)
    return plan


def large() -> list[Entry]:
    """Millions of rows, weights, threads."""
    plan = []
    # Reading and binning take most of these fits: few of them, with rounds enough to be told apart.
    plan += rounds(TALL, [RELABEL, ONE_OUTPUT], 24, repeats=1, limit=45.0)
    plan += rounds(WIDE, [RELABEL], 24, repeats=1, limit=30.0)
    for name in CLIFF:
        plan += rounds(name, [RELABEL], 18, limit=6.0)
    for name, weights in WEIGHTED.items():
        for weight in ("", *weights):
            for components in ("", COMPONENTS):
                variant = "+".join(filter(None, (weight, components)))
                plan += rounds(name, [RELABEL], 30, variant=variant)
    for threads in (1, 2):
        plan += rounds(THREADED, [RELABEL], 30, threads=threads, limit=6.0)
    return plan


def with_peers() -> list[Entry]:
    """The outputs grow from ten to a thousand; trees from all outputs."""
    plan = []
    for name in (*GROWTH, GROWTH_LABELS):
        plan += rounds(name, [RELABEL, ONE_OUTPUT], 36, limit=3.0)
    plan += rounds("regression-20000x50x50", VECTOR_LEAVES, 6, limit=6.0)
    return plan


def predictions() -> list[Entry]:
    plan = []
    for name in PREDICTED:
        for n_rounds in PREDICTED_ROUNDS:
            # Others would need minutes to fit a hundred rounds of so many outputs.
            alone = name == MANY_PREDICTED and n_rounds > PREDICTED_ROUNDS[0]
            plan += predicted(name, [RELABEL] if alone else PREDICTORS, n_rounds)
            if name == MANY_PREDICTED:
                plan += predicted(name, [RELABEL], n_rounds, variant=SINGLE)
    return plan


def predicted(
    workload: str, contestants: Iterable[str], n_rounds: int, **options: Any
) -> list[Entry]:
    options = {"protocol": "prediction", "repeats": 1, "limit": 20.0, **options}
    return entries(workload, contestants, n_rounds=n_rounds, **options)


# ------------------------------------------------------------------ two builds

GROWN = "regression-20000x50x50"


def builds() -> list[Entry]:
    """Five minutes: what an earlier build is compared in. The limit is that of both together."""
    plan = []
    for name in SMALL_TABLES:
        for leaves in (31, 4):
            plan += rounds(name, [RELABEL], 180, leaves=leaves, threads=1, limit=8.0)
    plan += rounds(GROWN, [RELABEL], 36, limit=8.0)
    plan += rounds(GROWN, [RELABEL], 36, limit=8.0, protocol="growth")
    for name in (GROWTH[-1], GROWTH_LABELS):
        plan += rounds(name, [RELABEL], 24, limit=20.0)
    plan += rounds("regression-100000x100x10", [RELABEL], 12, limit=8.0)
    plan += rounds("regression-2000x30x5", [RELABEL], 120, threads=1, limit=8.0)
    plan += rounds("regression-300x10x16", [RELABEL], 600, leaves=2, threads=1, limit=8.0)
    for n_rounds in PREDICTED_ROUNDS:
        plan += predicted(MANY_PREDICTED, [RELABEL], n_rounds, limit=8.0)
    return plan


SUITES = {"full": full, "quick": quick, "tiny": tiny, "engine": engine}
