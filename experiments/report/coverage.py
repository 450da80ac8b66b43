"""What is covered: the first lines of the report, and Tables 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.paper import paper_sets
from experiments.report.content import Cell, Column, Section, Table
from experiments.report.outcomes import Outcomes
from manyboost.datasets import CATALOGUE

#: Sets of the paper of which no file with the paper's shape was found, and their stand-ins.
NOT_FOUND = {
    "bookmarks": "",
    "drug-interaction": "",
    "protein-interaction": "protein-drugbank-proxy",
    "reuters": "reutersk500",
    "scop-go": "",
    "sequence-funcat": "",
    "wipo": "",
    "yeast-go": "",
    "scm1d": "",
}

_ADD_TEXT = (
    "To add one, put its .arff or .npz file into a folder and run “python -m experiments --data "
    "FOLDER”, which runs every set it finds there. Two similar data sets (stand-ins) are reported "
    "separately and marked as such; they count in no rank and no test. sequence-funcat and "
    "yeast-go have none: the sets of yeast genes that we have (yeast-seq-funcat, yeast-*-go) have "
    "a ninth of their features or fewer, and sixteen times their outputs or more."
)
_MARKS_TEXT = (
    "A dash marks a missing run, or a value that does not exist; no score is estimated. ≈ marks a "
    "difference from the paper of at most two standard errors (computed from the splits of both), "
    "▲ and ▼ a larger one: our score is higher or lower."
)


def lead(searches: Mapping[str, Outcomes]) -> list[str]:
    """Say what is covered, why the rest is not, and how to add it."""
    parts = []
    for task, kind in (("multilabel", "multi-label"), ("regression", "regression")):
        names = paper_sets(task)
        found = [name for name in names if name not in NOT_FOUND]
        n_done = _n_complete(searches, task)
        parts.append(f"{len(found)} of the {len(names)} {kind} data sets ({n_done} complete)")
    n_done = _n_complete(searches, "friedman") + _n_complete(searches, "friedman-noisy")
    parts.append(f"the 6 synthetic data sets ({n_done} complete)")
    return [
        f"Covered: {parts[0]}, {parts[1]} and {parts[2]} of the paper.",
        (
            "No file was found with the numbers of rows, features and outputs that the paper gives "
            f"for these data sets: {', '.join(NOT_FOUND)}. {_ADD_TEXT}"
        ),
        _MARKS_TEXT,
    ]


def _n_complete(searches: Mapping[str, Outcomes], item: str) -> int:
    return len(searches[item].complete()) if item in searches else 0


def coverage_section(real: Mapping[str, Outcomes]) -> Section:
    """Tables 2 and 3: the data sets, and what is there of each."""
    blocks = []
    for number, task in ((2, "multilabel"), (3, "regression")):
        outcomes = real.get(task)
        rows = [_row(name, outcomes) for name in paper_sets(task)]
        columns = [
            Column("name", "data set"),
            Column("train", "training rows"),
            Column("test", "test rows"),
            Column("features", "features"),
            Column("outputs", "outputs"),
            Column("state", "our runs for Figures 7 and 8"),
            Column("stand_in", "stand-in"),
        ]
        kind = "multi-label" if task == "multilabel" else "multi-output regression"
        blocks.append(Table(f"table-{number}", f"Table {number}: {kind} data sets", columns, rows))
    text = (
        "The numbers are the paper's, and our files have the same. If the paper gives no number of "
        "test rows, the column of training rows has all rows: half of them are test rows. A fifth "
        "of the training rows are validation rows. Splits are random: five, as in the paper, but "
        "three on delicious and mediamill."
    )
    return Section("data", "Tables 2 and 3: the data sets", [text], blocks)


def _row(name: str, outcomes: Outcomes | None) -> dict[str, Cell]:
    entry = CATALOGUE[name]
    state = "not run"
    if name in NOT_FOUND and (outcomes is None or name not in outcomes.scope.datasets):
        state = "no file found"
    elif outcomes is not None and name in outcomes.scope.datasets:
        counts = [len(outcomes.results[name, m]) for m in outcomes.scope.methods]
        if name in outcomes.complete():
            state = f"complete, {max(counts)} splits"
        elif any(counts):
            state = "in part"
    return {
        "name": name,
        "train": entry.n_train,
        "test": entry.n_test,
        "features": entry.n_features,
        "outputs": entry.n_outputs,
        "state": state,
        "stand_in": NOT_FOUND.get(name) or None,
    }
