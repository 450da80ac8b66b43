"""The page of the contest comes from the records alone."""

import pytest
from benchmarks.contest.__main__ import PAGE, RESULTS
from benchmarks.contest.comparison import (
    FOLDED,
    OURS,
    REFITTED,
    Comparison,
    comparisons,
)
from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contest.page import PICTURE, document, write
from benchmarks.contest.sets import SETS
from benchmarks.records import Run

from contest_records import record, run_of

PEERS = tuple(name for name in CONTESTANTS if name not in (OURS, FOLDED, REFITTED))
SETS_OF_TWO = ("emotions", "yeast")


def page_of(*records) -> str:
    return document(run_of(*records), "contest.json")


def compared(run: Run, name="emotions") -> Comparison:
    found, _ = comparisons(run)
    return next(c for c in found if c.name == name)


def row(page: str, start: str, table: int = 0) -> list[str]:
    """The cells of the row that starts so, in the first table that has one or in a later one."""
    lines = [line for line in page.splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip() for cell in lines[table].strip("|").split("|")]


def test_the_stored_page_is_that_of_the_stored_records():
    page = document(Run.read(RESULTS), RESULTS.name, drawn=(PAGE.parent / PICTURE).is_file())
    assert PAGE.read_text() == page


# ------------------------------------------------------------------ the ranking


def test_ranking_shows_average_ranks_counts_and_geometric_means():
    page = page_of(
        record(OURS, 0.6, fit_seconds=1.0, peak_bytes=10_000_000),
        record("lightgbm", 0.5, fit_seconds=2.0, peak_bytes=40_000_000),
        record("catboost", 0.599, fit_seconds=300.0, peak_bytes=10_000_000, capped=True),
        record(OURS, 0.6, workload="yeast", fit_seconds=1.0, peak_bytes=10_000_000),
        record("lightgbm", 0.7, workload="yeast", fit_seconds=8.0, peak_bytes=10_000_000),
        record("catboost", None, workload="yeast", extrapolated="1 of 14 outputs"),
    )
    assert "3 contestants on 2 sets: manyboost.**" in page
    head = "average rank | within 0.002 | over budget | capped | time / manyboost's | memory"
    assert head in page
    assert row(page, "**manyboost**")[1:] == ["1.50", "1", "0", "0", "1 × (2)", "1 × (2)"]
    assert row(page, "lightgbm")[1:] == ["2.00", "1", "0", "0", "4 × (2)", "2 × (2)"]
    assert row(page, "catboost")[1:] == ["2.50", "1", "1", "1", "–", "–"]


def test_a_missing_contestant_is_a_dash_and_named():
    ours = [record(OURS, 0.5, workload=each) for each in SETS_OF_TWO]
    page = page_of(*ours, record("lightgbm", 0.4))
    assert row(page, "boomer")[1:] == ["–"] * 6
    [named] = [line for line in page.splitlines() if "Contestants that are not measured" in line]
    assert "boomer" in named
    assert "lightgbm" not in named
    assert row(page, "yeast")[1:] == ["**0.5000**", "–"]
    assert "- yeast is not ranked yet; still missing: lightgbm." in page


def test_a_contestant_that_was_tried_on_few_sets_is_named_and_not_ranked():
    full = [record(OURS, 0.5, workload=name) for name in ("emotions", "yeast", "scene")]
    page = page_of(*full, record("hessboost", 0.4))
    assert "- Not ranked, tried on 1 of 3 sets only: hessboost." in page
    assert row(page, "hessboost")[1] == "–"


def test_an_added_contestant_is_ranked_with_the_others():
    page = page_of(record(OURS, 0.5), record("abacus", 0.6))
    assert "2 contestants on 1 sets: abacus.**" in page
    assert row(page, "abacus")[1] == "1.00"
    assert row(page, "emotions")[1:] == ["0.5000", "**0.6000**"]


def test_the_critical_difference_is_told_in_words_and_drawn(tmp_path):
    names = list(SETS)[:8]
    orders = {OURS: 0.9, "lightgbm": 0.8, "catboost": 0.5, "random-forest": 0.1}
    run = run_of(*(record(c, s, workload=w) for w in names for c, s in orders.items()))
    write(run, "contest.json", tmp_path / "contest.md")
    page = (tmp_path / "contest.md").read_text()
    # 2.569 · √(4·5 / (6·8)) = 1.66 of the ranks 1, 2, 3, 4
    assert "differ by more than 1.66" in page
    assert "Not significantly worse than the best: lightgbm." in page
    assert "](benchmarks/contest-ranks.svg)" in page
    first = (tmp_path / "benchmarks" / "contest-ranks.svg").read_text()
    assert first.startswith("<?xml")
    write(run, "contest.json", tmp_path / "contest.md")
    assert (tmp_path / "benchmarks" / "contest-ranks.svg").read_text() == first


def test_ranks_that_may_be_chance_are_called_no_evidence():
    scores = {OURS: (0.5, 0.6), "lightgbm": (0.6, 0.5), "catboost": (0.55, 0.55)}
    records = (
        record(name, score, workload=each)
        for name, found in scores.items()
        for each, score in zip(SETS_OF_TWO, found, strict=True)
    )
    assert "That is no evidence of a difference." in page_of(*records)


# ------------------------------------------------------------------ against the best peer


@pytest.mark.parametrize(
    ("ours", "within"), [(0.9, True), (0.8, True), (0.7981, True), (0.7979, False)]
)
def test_within_means_no_more_than_the_margin_below_the_best_peer(ours, within):
    scores = {peer: 0.8 - 0.1 * i for i, peer in enumerate(PEERS)}
    run = run_of(record(OURS, ours), *(record(peer, scores[peer]) for peer in PEERS))
    found = compared(run)
    assert found.best_peer == PEERS[0]
    assert found.within is within
    text = document(run, "contest.json")
    assert f"on {int(within)} of 1 sets, and ahead of all of them on {int(ours > 0.8)}.**" in text


def test_folds_are_ours_and_have_a_verdict_of_their_own():
    peers = [record(peer, 0.5) for peer in PEERS]
    folds = record(FOLDED, 0.6), record(REFITTED, 0.45)
    run = run_of(record(OURS, 0.4), *folds, *peers)
    assert compared(run).difference == pytest.approx(-0.1)
    assert compared(run).ahead_by(FOLDED) == pytest.approx(0.1)
    text = document(run, "contest.json")
    assert "**With `n_folds=5` it is ahead on 1 of 1.**" in text
    assert "**With `n_folds=5, refit_all=True` it is ahead on 0 of 1.**" in text
    assert "| -0.1000 | no | +0.1000 | -0.0500 | 1 × |" in text
    assert "- emotions: not examined." in text


def test_seconds_of_another_machine_are_marked_and_not_compared():
    elsewhere = [record(peer, 0.5, machine=1) for peer in PEERS]
    text = page_of(record(OURS, 0.6), *elsewhere)
    assert row(text, "emotions")[1:3] == ["**0.6000**", "0.5000"]
    assert row(text, "emotions", 1)[1:3] == ["2", "2 †"]
    assert "| +0.1000 | yes | – | – |" in text
    assert row(text, "lightgbm")[5] == "–"


def test_scores_are_means_of_the_repeats():
    peers = [record(peer, 0.5, repeat=i) for peer in PEERS for i in range(2)]
    run = run_of(record(OURS, 0.4), record(OURS, 0.6, repeat=1), *peers)
    assert compared(run).score(OURS) == pytest.approx(0.5)
    assert compared(run).difference == pytest.approx(0.0)


def test_a_set_is_compared_only_when_all_were_tried_as_often_or_took_long():
    peers = [record(peer, 0.5) for peer in PEERS]
    others = [record(peer, 0.5, workload="yeast") for peer in (OURS, *PEERS)]
    assert compared(run_of(record(OURS, 0.6), *peers[1:], *others)).within is None
    once_more = record(OURS, 0.6, repeat=1)
    assert compared(run_of(record(OURS, 0.6), once_more, *peers)).within is None
    long = [record(peer, 0.5, fit_seconds=90.0) for peer in PEERS]
    assert compared(run_of(record(OURS, 0.6), once_more, *long)).within is True
    assert compared(run_of(record(OURS, 0.6), *peers)).within is True


# ------------------------------------------------------------------ marks and details


def test_page_marks_what_was_capped_over_budget_or_killed():
    peers = [record(peer, 0.5) for peer in PEERS[3:]]
    capped = record(PEERS[0], 0.7, capped=True)
    over = record(PEERS[1], None, fit_seconds=5000.0, extrapolated="10 of 159 outputs")
    killed = {**record(PEERS[2], None), "status": "over memory", "fit_seconds": None}
    run = run_of(record(OURS, 0.6), capped, over, killed, *peers)
    page = document(run, "contest.json")
    assert row(page, "emotions")[2:5] == ["**0.7000** ◦", "over budget", "over memory"]
    assert row(page, "emotions", 1)[2:5] == ["2", "≈ 5,000", "–"]
    assert "from 10 of 159 outputs" in page
    last = f"{len(PEERS) + 1 - 0.5:.2f}"  # the last two ranks, shared
    assert row(page, PEERS[1])[1] == row(page, PEERS[2])[1] == last
    assert compared(run).best_peer == PEERS[0]
    assert "| -0.1000 | no |" in page


def test_details_show_time_memory_and_size():
    sizes = {"peak_bytes": 12_000_000, "model_bytes": 3_400_000, "predict_seconds": 0.25}
    page = page_of(record(OURS, 0.6, others_cores=0.5, **sizes))
    assert "| 50 | 2 | 0.25 | 12 | 3.4 | 1 | other processes used 0.5 cores |" in page
    assert "Other processes used more than 0.1 cores during 1 of 1 fits." in page


def test_reasons_for_fits_that_were_not_made_are_told_once():
    run = run_of()
    run.skipped = {f"{name} · boomer": "mlrl is not installed" for name in SETS_OF_TWO}
    assert (
        "## Skipped\n\n- mlrl is not installed: 2 pairs of a set and a contestant.\n"
        in document(run, "contest.json")
    )


def test_page_of_an_empty_run_measures_nothing_and_says_so():
    page = page_of()
    assert "Nothing is measured yet." in page
    assert f"Contestants that are not measured yet: {', '.join(CONTESTANTS)}." in page
    assert f"Sets that are not measured yet: {', '.join(SETS)}." in page
