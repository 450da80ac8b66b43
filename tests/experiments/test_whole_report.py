"""The report of all items, from invented rows: complete, with runs missing, and from nothing."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from experiments.items import ITEMS
from experiments.options import Options
from experiments.paper import paper_sets
from experiments.report import make_report, write
from experiments.report.beyond import OURS
from experiments.report.claims import Measured, verdict
from experiments.report.comparing import agreement
from experiments.report.content import Score, Table, Verdict
from experiments.report.curves import components_section
from experiments.report.outcomes import Line
from experiments.store import Store
from tests.experiments import made_rows

from experiments import reproduction

# In the order of the paper; tables of scores stand with the figures that they belong to.
ORDER = [*("data", "convergence", "friedman", "friedman-noisy", "projections", "components")]
ORDER += ["multilabel", "regression", "claims", "beyond"]
TABLES = {f"table-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 9)}
TABLES |= {f"table-{n}-{v}" for n in (10, 12) for v in ("no-refit", "refit")}
FIGURES = {f"figure-{n}" for n in ("1a", "1b", "1c", "2", "3", "4", "5a", "5b", "6a", "6b")}


@pytest.fixture(scope="module")
def whole():
    with pytest.MonkeyPatch.context() as patch:
        return make_report(*made_rows.make_store(patch))


@pytest.fixture(scope="module")
def partial():
    """A report without mediamill, without a method on enron and with two splits of birds."""

    def keep(run):
        lacks = run.dataset == "enron" and getattr(run, "method", "") == "br-rf"
        return not (
            lacks or run.dataset == "mediamill" or (run.dataset == "birds" and run.split > 1)
        )

    with pytest.MonkeyPatch.context() as patch:
        return make_report(*made_rows.make_store(patch, keep))


def section(report, name):
    return next(each for each in report.sections if each.name == name)


def table(report, name):
    blocks = [block for each in report.sections for block in each.blocks]
    return next(block for block in blocks if block.name == name)


def row(report, name, **keys):
    rows = table(report, name).rows
    return next(r for r in rows if all(r[key] == value for key, value in keys.items()))


def test_all_tables_and_figures_are_there_in_order(whole):
    assert [each.name for each in whole.sections] == ORDER
    names = [block.name for each in whole.sections for block in each.blocks]
    assert len(names) == len(set(names))
    assert set(names) >= TABLES | FIGURES
    assert {name for name in names if name.startswith("figure-7-paper")}


def test_the_first_line_says_what_is_covered(whole, partial):
    assert whole.lead[0].startswith(
        "Covered: 13 of the 21 multi-label data sets (13 complete), "
        "7 of the 8 regression data sets (7 complete)"
    )
    assert "(10 complete)" in partial.lead[0]
    assert "--data" in whole.lead[1]
    assert "wipo" in whole.lead[1]


def test_scores_stand_beside_the_papers(whole):
    cell = row(whole, "table-10-refit", dataset="emotions")["gbmort"]
    assert (cell.paper, cell.paper_std, cell.paper_rank, cell.n_repeats) == (0.794, 0.014, 8, 5)
    assert cell.deviates in (-1, 0, 1)
    assert row(whole, "table-10-refit", dataset="delicious")["gbmort"].n_repeats == 3


@pytest.mark.parametrize(
    ("mean", "deviates"), [(0.5, 0), (0.512, 0), (0.513, 1), (0.488, 0), (0.487, -1)]
)
def test_two_standard_errors(mean, deviates):
    # 2 √(0.01² / 5 + 0.01² / 5) = 0.0126
    assert Score(mean, 0.01, 1, 5, 0.5, 0.01, 1).deviates == deviates


def test_deviation_is_unknown_without_deviations():
    assert Score(0.5, None, 1, 1, 0.5, 0.01, 1).deviates is None
    assert Score(None, None, None, 0, 0.5, 0.01, 1).deviates is None


def test_absent_sets_and_missing_runs_are_dashes(whole, partial):
    absent = row(whole, "table-10-no-refit", dataset="wipo")
    assert absent["gbmort"].mean is None
    assert absent["gbmort"].paper == 0.762
    assert absent["order"] is None
    assert row(partial, "table-10-no-refit", dataset="birds")["gbmort"].mean is None
    enron = row(partial, "table-10-no-refit", dataset="enron")
    assert enron["br-rf"].mean is None
    assert enron["gbmort"].mean is not None
    assert enron["gbmort"].rank is None
    assert "runs are missing" in " ".join(section(partial, "multilabel").text)
    assert "runs are missing" not in " ".join(section(whole, "multilabel").text)
    assert "figure-2" not in {block.name for block in section(partial, "projections").blocks}
    assert "4 of 12 lines are missing" in " ".join(section(partial, "projections").text)


def test_statistics_of_the_paper_are_recomputed_on_the_same_sets(partial):
    rows = {r["whose"]: r for r in table(partial, "figure-7-statistics").rows}
    assert rows["paper, on all its sets"]["sets"] == 21
    sets = {name: r["sets"] for name, r in rows.items() if name != "paper, on all its sets"}
    assert sets == {"paper, on the same sets": 10, "no refit": 10, "refit": 10}
    assert float(rows["paper, on all its sets"]["p"]) < float(rows["paper, on the same sets"]["p"])
    assert re.fullmatch(r"-?\d\.\d\d \(-?\d\.\d\d to -?\d\.\d\d\)", rows["no refit"]["order"])


def test_every_pair_of_the_paper_is_compared(whole):
    assert [len(table(whole, f"table-{n}").rows) for n in (5, 7, 8, 9)] == [30, 18, 28, 28]
    for n in (5, 7, 8, 9):
        assert all(r["agreement"] is not None for r in table(whole, f"table-{n}").rows)
    pair = row(whole, "table-8", first="br-gbrt", second="gbrt-relabel-rpo-gaussian")
    assert pair["paper"] == "6e-05 (<)"
    assert pair["agreement"] == "both, same direction"  # the rows are near the paper's


@pytest.mark.parametrize(
    ("ours", "paper", "text"),
    [
        ((0.01, 1), (0.001, 1), "both, same direction"),
        ((0.01, -1), (0.001, 1), "both, opposite directions"),
        ((0.2, 1), (0.001, 1), "paper only"),
        ((0.01, 1), (0.2, 0), "ours only"),
        ((0.6, 1), (0.2, 0), "neither"),
        (None, (0.2, 0), None),
    ],
)
def test_agreement(ours, paper, text):
    assert agreement(ours, paper) == text


def test_constants_halved_and_doubled(whole):
    rows = table(whole, "figure-8-costs").rows
    assert len(rows) == 9
    assert rows[0]["budget"] == "as measured"
    assert rows[0]["change"] == 0
    assert max(r["change"] for r in rows) > 0


def test_the_time_of_components_is_explained(whole):
    section = next(each for each in whole.sections if each.name == "components")
    told = "the paper says 7"
    assert any(told in text for text in section.text)
    assert not any(told in text for text in components_section({}, 0).text)


def test_all_inputs_stand_side_by_side(whole):
    *rows, oracle = table(whole, "table-4-inputs").rows
    assert len(rows) == 15
    assert oracle["method"] == "artificial-gbrt-mean"
    assert oracle["uniform"].paper == oracle["friedman-ten"].paper == 0.654
    assert oracle["uniform"].rank is None
    for row in rows:
        inputs = {"uniform", "friedman-ten", "friedman-normal"} & row.keys()
        assert len(inputs) == (2 if row["dataset"] == "friedman1-ind" else 3)
        assert all(row[name].mean is not None for name in inputs)
        assert len({row[name].paper for name in inputs}) == 1


def test_both_variants_stand_side_by_side(whole):
    assert [r["variant"] for r in table(whole, "table-4-variants").rows] == ["no refit", "refit"]
    first = table(whole, "table-4").rows[0]
    assert {"friedman1-chain no refit", "friedman1-chain refit"} <= first.keys()


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (None, Verdict.NOT_RUN),
        (Measured("", [], True), Verdict.NOT_RUN),
        (Measured("", [True, True], True), Verdict.REPRODUCED),
        (Measured("", [True, False], True), Verdict.PARTLY),
        (Measured("", [False], True), Verdict.NOT),
        (Measured("", [True], True, by_construction=True), Verdict.BY_CONSTRUCTION),
    ],
)
def test_verdicts(measured, expected):
    assert verdict(measured) is expected


def test_claims_are_decided_if_rows_are_there_and_open_if_not(whole, partial):
    assert Verdict.NOT_RUN not in {finding.verdict for finding in whole.findings}
    assert all(finding.is_whole for finding in whole.findings)
    last = next(f for f in partial.findings if f.claim.startswith("br-gbrt has the worst"))
    assert last.words.endswith(" so far")
    assert last.measured.startswith("average ranks over 10 multi-label sets")
    with pytest.MonkeyPatch.context() as patch:
        empty = make_report(*made_rows.make_store(patch, lambda run: False))
    verdicts = {f.claim: f.verdict for f in empty.findings if f.verdict is not Verdict.NOT_RUN}
    [(claim, only)] = verdicts.items()
    assert claim.startswith("gbrt-rpo has smaller models ")
    assert only is Verdict.BY_CONSTRUCTION
    tables = [block for block in section(empty, "multilabel").blocks if isinstance(block, Table)]
    cells = [cell for each in tables for row in each.rows for cell in row.values()]
    assert {c.mean for c in cells if isinstance(c, Score)} <= {None}


def test_stand_ins_are_marked_and_apart(whole):
    rows = table(whole, "stand-ins").rows
    assert len(rows) == 2
    assert all("(stand-in)" in r["dataset"] for r in rows)
    names = [r["dataset"] for r in table(whole, "table-10-refit").rows]
    assert names == paper_sets("multilabel")


def test_our_models_stand_beside_the_best_of_the_paper(whole):
    rows = table(whole, "beyond").rows
    assert len(rows) == 20
    assert all({"overall", "best", *OURS} <= r.keys() for r in rows)
    counts = table(whole, "beyond-counts").rows
    assert len(counts) == 2 * len(OURS)
    for row in counts:
        assert row["sets"] == 20
        assert row["clearly ahead"] <= row["ahead"] <= 20 - row["clearly behind"]


def test_cost_to_a_score():
    cost = {"nominal": 2.0}
    scores, seconds = np.array([[0.1, 0.3, 0.4], [0.3, 0.5, 0.4]]), np.array([0.5, 1.0, 2.5])
    line = Line("a", "a", None, "line_search", [1, 2, 5], scores, seconds, cost)
    assert line.best == pytest.approx(0.4)
    assert line.cost_to(0.4) == 4
    assert line.seconds_to(0.4) == 1
    assert line.rounds_to(0.4) == 2
    assert line.cost_to(0.41) == float("inf")


def test_files_are_written_and_old_ones_removed(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "old.csv").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        chosen, store = made_rows.make_store(patch, lambda run: run.dataset == "edm")
    page = write(chosen, store, tmp_path)
    assert page == tmp_path / "index.html"
    assert not (tmp_path / "tables" / "old.csv").exists()
    markdown = (tmp_path / "README.md").read_text()
    assert markdown.split("\n")[2].startswith("Covered: 13 of the 21 multi-label data sets (0")
    pages = [path.read_text() for path in tmp_path.glob("*.md")]
    assert len(pages) == 9
    links = [link for page in pages for link in re.findall(r"\]\(([^)#]*)[^)]*\)", page)]
    assert len(links) > 40
    for name in set(links) - {"errata.md"}:
        assert (tmp_path / name).is_file(), name
    with (tmp_path / "tables" / "table-12-refit.csv").open() as file:
        rows = {r["dataset"]: r for r in csv.DictReader(file)}
    assert rows["edm"]["gbmort_deviates"] in ("-1", "0", "1")
    assert rows["oes10"]["gbmort"] == ""


ROOT = Path(__file__).parents[2]


def test_the_committed_report_is_that_of_the_committed_rows(tmp_path):
    store = Store(ROOT / "experiments" / "rows")
    write(reproduction.choose(list(ITEMS), Options(), store), store, tmp_path)
    made = [path for path in tmp_path.rglob("*") if path.suffix in (".md", ".csv")]
    assert len(made) > 30
    for path in made:
        committed = ROOT / "docs" / "reproduction" / path.relative_to(tmp_path)
        assert path.read_text() == committed.read_text()
