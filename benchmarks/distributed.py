"""Training on Dask workers: bytes and time for each tree, beside xgboost's Dask interface.

    python -m benchmarks.distributed                 measures what is missing, and writes the pages
    python -m benchmarks.distributed 'tree-*'        measures these anew
    python -m benchmarks.distributed --pages         writes the pages alone

Figures go to `benchmarks/results/distributed.json`, tables to `docs/guide/scaling-out.md` and
`docs/guide/scaling-cost.md`, between their marks. Run it with the interpreter of `.venv-bench`, on
a machine that does nothing else. Takes about half an hour.

Workers are processes of one machine. So times of several workers say what Dask costs, not what more
machines bring; bytes are those of any cluster. What is sent is counted twice: as the numbers that a
rank brings to reductions, and as what passes through the loopback device, where nothing else does.
"""

import argparse
import contextlib
import json
import statistics
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import one_build
from benchmarks.run import OthersLoad, busy_meanwhile
from benchmarks.tables import filled, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "distributed.json"
GUIDE = ROOT / "docs" / "guide" / "scaling-out.md"
COST = ROOT / "docs" / "guide" / "scaling-cost.md"

FEATURES = 50
LEAVES = 31
BINS = 255
REPEATS = 3
#: Whole fits on workers and on threads, in turn.
PAIRS = 5

#: Trees that a time for each tree is taken from, besides the first two.
TREES = 10

#: Bytes of an exchange, and how often it is made.
EXCHANGES = {8: 500, 100_000: 300, 1_000_000: 100, 10_000_000: 20}

#: Rows, outputs and workers of the comparison.
SHAPES = [
    *((200_000, outputs, workers) for outputs in (10, 100) for workers in (1, 2, 4)),
    (50_000, 10, 2),
    (50_000, 200, 2),
    (50_000, 1000, 2),
]
#: xgboost exchanges gigabytes for each tree from here on; it is given fewer trees, or none.
XGBOOST_TREES = {10: 5, 100: 2, 200: 2}

#: Rows and outputs at which two workers are held against two threads; how many times as long.
BARS = {(200_000, 100): 2.0, (1_000_000, 20): 1.3}


# ---------------------------------------------------------------------- data and clusters


def block(number: int, rows: int, features: int, outputs: int) -> np.ndarray:
    """Some rows: features, then targets, in single precision."""
    mixing = np.random.default_rng(0).normal(size=(20, outputs)).astype(np.float32)
    rng = np.random.default_rng(number + 1)
    X = rng.normal(size=(rows, features)).astype(np.float32)
    noise = rng.normal(size=(rows, outputs)).astype(np.float32)
    return np.hstack([X, np.tanh(X[:, :20] @ mixing) + noise])


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """A client of that many worker processes, with one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=50,
        ) as local,
        Client(local) as client,
    ):
        yield client


def spread(client: Any, rows: int, outputs: int) -> tuple[Any, Any]:
    """Features and targets, as many rows on every worker."""
    import dask
    import dask.array as da

    from distributed import wait

    addresses = sorted(client.nthreads())
    share, width = rows // len(addresses), FEATURES + outputs
    parts = [
        client.compute(dask.delayed(block)(k, share, FEATURES, outputs), workers=[address])
        for k, address in enumerate(addresses)
    ]
    whole = da.concatenate([da.from_delayed(part, (share, width), np.float32) for part in parts])
    X, Y = whole[:, :FEATURES].persist(), whole[:, FEATURES:].persist()
    wait([X, Y])
    return X, Y


def loopback_bytes() -> int:
    """Bytes that have passed through the loopback device."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "lo":
            return int(counts.split()[0])
    raise OSError("there is no loopback device")


# ---------------------------------------------------------------------- what is measured


def exchange(workers: int) -> dict[str, Any]:
    """Microseconds of a reduction, by bytes: the median of many, on all ranks at once."""
    from manyboost.distributed.dask import ranks

    with cluster(workers) as client:
        fit, addresses = uuid.uuid4().hex, sorted(client.nthreads())
        client.run(ranks.prepare, fit, addresses, False)
        tasks = [
            client.submit(timed_exchanges, fit, f"{fit}-{k}", key=f"{fit}-{k}", workers=[address])
            for k, address in enumerate(addresses)
        ]
        of_ranks = client.gather(tasks)
    return {str(size): statistics.median(each[size] for each in of_ranks) for size in EXCHANGES}


def timed_exchanges(fit: str, key: str) -> dict[int, float]:
    """Be one rank that reduces arrays, of all sizes."""
    from distributed import get_worker, secede
    from manyboost.distributed.dask import ranks
    from manyboost.distributed.dask.comm import DaskComm

    secede()
    seat = ranks._SEATS[get_worker().address, fit]
    seat.links.open(key)
    comm = DaskComm(seat.links)
    medians = {}
    for size, times in EXCHANGES.items():
        array, seconds = np.zeros(size // 8, np.int64), []
        for _ in range(times):
            began = time.perf_counter()
            comm.sum(array)
            seconds.append(time.perf_counter() - began)
        medians[size] = 1e6 * statistics.median(seconds)
    seat.links.close()
    return medians


def payload(outputs: int, loss: str) -> dict[str, Any]:
    """Bytes and exchanges of a rank for each tree, and before the first one."""
    from manyboost import ManyBoostClassifier, ManyBoostRegressor
    from manyboost.distributed import Threads, fit_rank

    table = block(0, 4000, FEATURES, outputs)
    X, Y = table[:, :FEATURES], table[:, FEATURES:]
    kind: Any = ManyBoostRegressor
    if loss == "log_loss":
        kind, Y = ManyBoostClassifier, (Y > 0.5).astype(int)
    counted = {}
    for rounds in (2, 2 + TREES):

        def rank(comm: Any, rounds: int = rounds) -> tuple[int, int]:
            model = kind(loss, max_iter=rounds, random_state=0, early_stopping=False, n_jobs=1)
            rows = np.arange(comm.rank, len(X), 2)
            fit_rank(model, comm, X[rows], Y[rows], row_numbers=rows.astype(np.uint64))
            return comm.n_bytes, comm.n_exchanges

        counted[rounds] = Threads.run(2, rank)[0]
    few, many = counted[2], counted[2 + TREES]
    of_tree = (many[0] - few[0]) / TREES
    return {
        "bytes": of_tree,
        "exchanges": (many[1] - few[1]) / TREES,
        "set_up_bytes": few[0] - 2 * of_tree,
    }


def tree(rows: int, outputs: int, workers: int) -> dict[str, Any]:
    """Seconds and bytes of a tree on so many workers."""
    with cluster(workers) as client:
        X, Y = spread(client, rows, outputs)
        return {
            "manyboost": per_tree(partial(fit_manyboost, X, Y), TREES),
            "xgboost": (
                per_tree(partial(fit_xgboost, client, X, Y), XGBOOST_TREES[outputs])
                if outputs in XGBOOST_TREES
                else None
            ),
        }


def per_tree(fit: Callable[[int], None], trees: int) -> dict[str, float]:
    """Seconds and bytes on the loopback device of one more tree, the first ones apart."""
    fit(1)
    taken: dict[int, list[tuple[float, int]]] = {2: [], 2 + trees: []}
    for _ in range(REPEATS):
        for rounds, each in taken.items():
            before, began = loopback_bytes(), time.perf_counter()
            fit(rounds)
            each.append((time.perf_counter() - began, loopback_bytes() - before))
    few, many = taken.values()
    seconds = min(each[0] for each in many) - min(each[0] for each in few)
    sent = statistics.median(each[1] for each in many) - statistics.median(each[1] for each in few)
    return {"seconds": seconds / trees, "loopback_bytes": sent / trees}


def fit_manyboost(X: Any, Y: Any, rounds: int) -> None:
    from manyboost.distributed.dask import DaskManyBoostRegressor

    DaskManyBoostRegressor(max_iter=rounds, random_state=0, early_stopping=False).fit(X, Y)


def fit_xgboost(client: Any, X: Any, Y: Any, rounds: int) -> None:
    from xgboost import dask as xgboost

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = xgboost.DaskQuantileDMatrix(client, X, Y, max_bin=BINS)
        parameters = {
            "objective": "reg:squarederror",
            "multi_strategy": "multi_output_tree",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": LEAVES,
            "max_depth": 0,
            "max_bin": BINS,
            "learning_rate": 0.1,
        }
        xgboost.train(client, parameters, matrix, num_boost_round=rounds)


def overhead(rows: int, outputs: int) -> dict[str, Any]:
    """Seconds of whole fits of 100 trees: two workers with a thread each, and two threads."""
    from manyboost import ManyBoostRegressor
    from manyboost.distributed.dask import DaskManyBoostRegressor

    parameters = {"max_iter": 100, "random_state": 0, "early_stopping": False}
    with cluster(2) as client:
        X, Y = spread(client, rows, outputs)
        fit_manyboost(X, Y, 1)
        table = X.compute(), Y.compute()
        model = DaskManyBoostRegressor(**parameters)
        local = ManyBoostRegressor(**parameters, n_jobs=2)
        on_dask, alone = [], []
        # In turn, and as ratios of neighbours: the speed of the machine changes with time.
        for _ in range(PAIRS):
            on_dask.append(seconds(lambda: model.fit(X, Y)))
            alone.append(seconds(lambda: local.fit(*table)))
    assert model._progress.model.trees.to_bytes() == local._progress.model.trees.to_bytes()
    return {
        "dask_seconds": statistics.median(on_dask),
        "local_seconds": statistics.median(alone),
        "ratio": statistics.median(d / a for d, a in zip(on_dask, alone, strict=True)),
    }


def seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def constants() -> dict[str, Any]:
    """Nanoseconds of one thread for a row: of a feature, and of an output, in each tree."""
    from manyboost import ManyBoostRegressor

    def of_tree(rows: int, features: int, outputs: int) -> float:
        table = block(0, rows, features, outputs)
        X, Y = table[:, :features], table[:, features:]

        def fit(rounds: int) -> None:
            model = ManyBoostRegressor(max_iter=rounds, random_state=0, early_stopping=False)
            model.set_params(n_jobs=1).fit(X, Y)

        taken = {
            rounds: min(seconds(partial(fit, rounds)) for _ in range(REPEATS))
            for rounds in (2, 2 + TREES)
        }
        return (taken[2 + TREES] - taken[2]) / TREES / rows

    narrow, wide = of_tree(400_000, 40, 1), of_tree(400_000, 160, 1)
    few, many = of_tree(100_000, 20, 10), of_tree(100_000, 20, 500)
    return {
        "feature_nanoseconds": 1e9 * (wide - narrow) / 120,
        "output_nanoseconds": 1e9 * (many - few) / 490,
    }


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    **{f"exchange-{workers}": partial(exchange, workers) for workers in (2, 4)},
    **{
        f"bytes-{loss}-{outputs}": partial(payload, outputs, loss)
        for loss in ("squared_error", "log_loss")
        for outputs in (10, 100, 200, 1000)
    },
    **{
        f"tree-{rows}x{outputs}-{w}": partial(tree, rows, outputs, w) for rows, outputs, w in SHAPES
    },
    **{f"overhead-{rows}x{outputs}": partial(overhead, rows, outputs) for rows, outputs in BARS},
    "constants": constants,
}


# ---------------------------------------------------------------------- pages


def xgboost_histogram_bytes(outputs: int) -> int:
    """Bytes of xgboost's histogram of one node: two doubles for each bin and output."""
    return FEATURES * BINS * outputs * 16


def megabytes(number: float) -> str:
    return f"{number / 1e6:,.2f}" if number < 1e8 else f"{number / 1e6:,.0f}"


def bytes_table(records: dict[str, Any]) -> str:
    rows = []
    for outputs in (10, 100, 200, 1000):
        leaves = LEAVES * outputs * 8
        ours = [records[f"bytes-{loss}-{outputs}"] for loss in ("squared_error", "log_loss")]
        theirs = (LEAVES - 1) * xgboost_histogram_bytes(outputs)
        rows.append(
            [
                str(outputs),
                megabytes(ours[0]["bytes"]),
                megabytes(leaves),
                megabytes(ours[1]["bytes"]),
                f"{ours[0]['exchanges']:.0f}",
                megabytes(theirs),
                f"{theirs / ours[0]['bytes']:,.0f}",
            ]
        )
    head = [
        "outputs",
        "squared error, MB",
        "part for leaves × outputs, MB",
        "log loss, MB",
        "exchanges",
        "xgboost, MB",
        "xgboost : squared error",
    ]
    return table(head, rows, 0, len(head))


def tree_table(records: dict[str, Any]) -> str:
    rows = []
    for n_rows, outputs, workers in SHAPES:
        record = records[f"tree-{n_rows}x{outputs}-{workers}"]
        cells = [f"{n_rows:,}", str(outputs), str(workers)]
        for name in ("manyboost", "xgboost"):
            each = record[name]
            cells += (
                ["–", "–"]
                if each is None
                else [f"{1e3 * each['seconds']:,.0f}", megabytes(each["loopback_bytes"])]
            )
        rows.append(cells)
    head = ["rows", "outputs", "workers", "ms", "MB sent by all", "xgboost, ms", "xgboost, MB"]
    return table(head, rows, 0, len(head))


def overhead_table(records: dict[str, Any]) -> str:
    rows = []
    for (n_rows, outputs), bar in BARS.items():
        record = records[f"overhead-{n_rows}x{outputs}"]
        rows.append(
            [
                f"{n_rows:,} × {FEATURES} × {outputs}",
                f"{record['local_seconds']:.1f} s",
                f"{record['dask_seconds']:.1f} s",
                f"{record['ratio']:.2f}",
                f"{bar:g}",
            ]
        )
    head = ["rows × features × outputs", "two threads", "two workers", "ratio", "at most"]
    return table(head, rows, 1, len(head))


def exchange_table(records: dict[str, Any]) -> str:
    rows = [
        [f"{workers} workers"]
        + [f"{records[f'exchange-{workers}'][str(size)]:,.0f} µs" for size in EXCHANGES]
        for workers in (2, 4)
    ]
    head = ["", *(f"{size:,} bytes" for size in EXCHANGES)]
    return table(head, rows, 1, len(head))


def cost_tables(records: dict[str, Any]) -> dict[str, str]:
    """What a billion rows would take, by the formulas of the page."""
    n, p, d, m, threads, bandwidth = 1e9, 100, 1000, 64, 32, 1.25e9
    constant, measured = records["constants"], records["bytes-squared_error-1000"]
    a, b = (1e-9 * constant[f"{name}_nanoseconds"] for name in ("feature", "output"))
    wait, exchanges = 1e-6 * records["exchange-2"]["8"], measured["exchanges"]
    leaves = LEAVES * d * 8
    reduced = (measured["bytes"] - LEAVES * 1000 * 8) * p / FEATURES + leaves
    sent = 2 * (m - 1) / m * reduced
    growing, labelling = n / m * p * a / threads, n / m * d * b / threads
    waiting, sending = exchanges * 2 * np.log2(m) * wait, sent / bandwidth
    total = growing + labelling + waiting + sending
    of_all_outputs = 2 * (m - 1) / m * (LEAVES - 1) * p * BINS * d * 16
    constants_table = table(
        ["constant", "", "measured"],
        [
            ["a", "time of a thread per row and feature of a tree", f"{1e9 * a:.2f} ns"],
            ["b", "time of a thread per row and output of a tree", f"{1e9 * b:.2f} ns"],
            ["E", "exchanges in a tree", f"{exchanges:.0f}"],
            ["t", "a message from thread to thread, sent and received", f"{1e6 * wait:.0f} µs"],
            [
                "R",
                f"bytes reduced in a tree, {FEATURES} features",
                megabytes(measured["bytes"]) + " MB",
            ],
        ],
        2,
        3,
    )
    result = table(
        ["in a tree", "formula", ""],
        [
            ["growing it", "n p a / (m k)", f"{growing:.2f} s"],
            ["gradients, leaves, update", "n d b / (m k)", f"{labelling:.2f} s"],
            ["waiting for messages", "2 E t log2 m", f"{waiting:.2f} s"],
            [f"sending {megabytes(sent)} MB", "2 R (m − 1) / (m w)", f"{sending:.3f} s"],
            ["**together**", "", f"**{total:.1f} s**"],
            ["**1000 trees**", "", f"**{1000 * total / 3600:.1f} hours**"],
        ],
        2,
        3,
    )
    memory = table(
        ["on each machine", "formula", ""],
        [
            [
                "residuals of squared error, or raw predictions and residuals of others",
                "4 n d / m, or twice that",
                f"{4e-9 * n * d / m:.0f} GB",
            ],
            ["binned features", "n p / m", f"{1e-9 * n * p / m:.1f} GB"],
            [
                "targets in single precision, labels in a byte",
                "4 n d / m, n d / m",
                f"{4e-9 * n * d / m:.0f} GB, {1e-9 * n * d / m:.0f} GB",
            ],
        ],
        2,
        3,
    )
    peer = (
        f"Histograms of all {d} outputs, {LEAVES - 1} nodes of p × {BINS} × d × 16 bytes, would be "
        f"{of_all_outputs / 1e9:,.0f} GB to send from each machine in a tree: "
        f"{of_all_outputs / bandwidth:,.0f} seconds at the same bandwidth, and "
        f"{of_all_outputs / sent:,.0f} times as many bytes."
    )
    return {"constants": constants_table, "cost": result, "memory": memory, "peer": peer}


def write_pages(stored: dict[str, Any]) -> None:
    records = {name: record["figures"] for name, record in stored["records"].items()}
    facts = stored["machine"]
    about = f"{facts['cpu']}, {facts['cores']} cores; {', '.join(facts['libraries'])}."
    tables = {
        "machine": f"{about} {busy_meanwhile(stored['records'].values())}".strip(),
        "bytes": bytes_table(records),
        "trees": tree_table(records),
        "overhead": overhead_table(records),
        "exchanges": exchange_table(records),
        **cost_tables(records),
    }
    for page in (GUIDE, COST):
        page.write_text(filled(page.read_text(), tables))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", help="cases to measure anew")
    parser.add_argument("--pages", action="store_true", help="write the pages alone")
    arguments = parser.parse_args()
    begin = one_build.read if arguments.pages else partial(one_build.opened, timed=True)
    stored = begin(RESULTS, records={})
    for name, measure in {} if arguments.pages else CASES.items():
        asked = any(fnmatch(name, pattern) for pattern in arguments.patterns)
        if asked or (not arguments.patterns and name not in stored["records"]):
            others = OthersLoad()
            figures = measure()
            stored["records"][name] = {"figures": figures, "others_cores": others.cores()}
            one_build.save(RESULTS, stored)
            print(name, json.dumps(figures), flush=True)
    missing = [name for name in CASES if name not in stored["records"]]
    if missing:
        print("pages are not written, these are missing:", ", ".join(missing))
    else:
        write_pages(stored)


if __name__ == "__main__":
    main()
