"""Reports: what is written, and what a browser makes of it."""

import csv
import math
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from experiments.report import cells, figures
from experiments.report.content import (
    Column,
    CriticalDifference,
    Finding,
    Lines,
    Report,
    Score,
    Section,
    Series,
    Table,
    Verdict,
)
from experiments.report.writing import escape_markdown, write_report

BOOSTED = ["st-gbrt", "gbmort", "gbrt-relabel-rpo-subsampled", "gbrt-rpo-subsampled"]
FRIEDMAN = {
    "artificial-gbrt": [(0.654, 0.015, 1), (0.889, 0.009, 1), (0.831, 0.004, 1)],
    "st-gbrt": [(0.626, 0.016, 5), (0.873, 0.008, 5), (0.830, 0.003, 2)],
    "gbmort": [(0.640, 0.008, 4), (0.874, 0.012, 4), (0.644, 0.010, 5)],
    "gbrt-relabel-rpo-subsampled": [(0.648, 0.015, 2), (0.880, 0.009, 2), (0.706, 0.009, 4)],
    "gbrt-rpo-subsampled": [(0.645, 0.013, 3), (0.876, 0.007, 3), (0.789, 0.003, 3)],
}
SYNTHETIC = ["friedman1-chain", "friedman1-group", "friedman1-ind"]
METHODS = [
    "br-gbrt",
    "br-rf",
    "gbmort",
    "gbrt-relabel-rpo-gaussian",
    "gbrt-relabel-rpo-subsampled",
    "gbrt-rpo-gaussian",
    "gbrt-rpo-subsampled",
    "mo-rf",
]
SETS = [
    *("CAL500", "bibtex", "birds", "corel5k", "delicious", "emotions", "enron", "genbase"),
    *("mediamill", "medical", "scene", "wipo", "yeast"),
]


def convergence(name, rng):
    """Three curves over time, one of them a thousand points long."""
    seconds = np.geomspace(0.0004, 40, 1000)
    series = []
    for shift, method in zip((30, 0.3, 0.2), BOOSTED[:3], strict=True):
        y = 0.65 / (1 + (0.05 * shift) / seconds) - 0.002 * np.log1p(seconds)
        series.append(Series(method, seconds, y + rng.normal(0, 0.001, 1000), y - 0.02, y + 0.02))
    return Lines(
        f"convergence-{name}",
        name,
        "training time in seconds",
        "macro-r²",
        series,
        caption="Stumps, learning rate 0.1, squared error; bands: one standard deviation.",
    )


def friedman_table(rng):
    rows = []
    for method, results in FRIEDMAN.items():
        row = {"method": method}
        for name, (paper, std, rank) in zip(SYNTHETIC, results, strict=True):
            row[name] = Score(paper + rng.normal(0, 0.02), std, rank, 5, paper, std, rank)
        rows.append(row)
    columns = [Column("method", "method"), *(Column(name, name) for name in SYNTHETIC)]
    return Table("friedman", "Macro-r² on the synthetic sets", columns, rows)


def multilabel_table(rng):
    rows = []
    for name in SETS:
        base = rng.uniform(0.2, 0.95)
        row = {"dataset": name, "outputs": int(rng.integers(6, 1000))}
        for rank, method in enumerate(rng.permutation(METHODS), 1):
            mean, std = base - 0.01 * rank, rng.uniform(0.002, 0.01)
            row[str(method)] = Score(
                mean, std, rank, 5, mean + rng.normal(0, 0.01), std, rank % 8 + 1
            )
        rows.append(row)
    rows[3]["br-gbrt"] = None
    rows[4]["br-rf"] = Score(None, paper=0.31, paper_std=0.002, paper_rank=5)
    columns = [Column("dataset", "data set"), Column("outputs", "outputs")]
    columns += [Column(method, method) for method in METHODS]
    return Table(
        "multilabel", "LRAP on the multi-label sets", columns, rows, "Five random splits each."
    )


def p_values():
    rows = [
        {"better": "gbmort", "worse": "st-gbrt", "p": 2e-6, "n": 5},
        {"better": "st-gbrt", "worse": "gbrt-rpo", "p": 0.171, "n": 5},
        {"better": "mo-rf", "worse": "br-rf", "p": None, "n": None},
    ]
    titles = {
        "better": "better",
        "worse": "worse",
        "p": "p-value",
        "n": "pairs",
    }
    return Table(
        "tests", "Student’s paired t-test", [Column(k, t) for k, t in titles.items()], rows
    )


@pytest.fixture(scope="module")
def report():
    """A report like one of a whole reproduction."""
    rng = np.random.default_rng(0)
    components = [1, 2, 5, 10, 20, 50, 100, 200, 500, 983]
    ranks = dict(zip(METHODS, [6.4, 5.9, 4.1, 1.9, 4.5, 2.6, 5.3, 5.7], strict=True))
    return Report(
        "Reproduction of “Gradient tree boosting with random output projections”",
        ["Covered: everything.", "Searches draw 30 settings at random.", "Five splits."],
        [
            Section(
                "convergence",
                "Convergence with known output structure",
                [
                    "How fast do three strategies learn when the outputs form a chain or a group?",
                    "Curves show the score on 4,000 test rows against the time spent training.",
                ],
                [convergence(name, rng) for name in SYNTHETIC],
                [
                    Finding(
                        "gbmort and gbrt-rpo converge more than 100 times faster than st-gbrt on "
                        "friedman1-chain and friedman1-group.",
                        "section 4.2.2",
                        "113 times on chain, 96 times on group.",
                        Verdict.PARTLY,
                    ),
                    Finding(
                        "On friedman1-ind st-gbrt ends best.",
                        "abstract",
                        "0.83 against 0.64 and 0.79.",
                        Verdict.REPRODUCED,
                    ),
                ],
            ),
            Section(
                "friedman",
                "Best scores on the synthetic sets",
                ["Hyper-parameters are chosen on a fifth of the training rows."],
                [friedman_table(rng), p_values()],
                [Finding("artificial-gbrt is best.", "Table 4", "First twice.", Verdict.NOT)],
            ),
            Section(
                "components",
                "Number of projections",
                ["The score and the time of 100 rounds against the number of components q."],
                [
                    Lines(
                        "components-lrap",
                        "delicious after 100 rounds",
                        "components q",
                        "LRAP",
                        [
                            Series(
                                m,
                                components,
                                [0.2 + 0.01 * i + 0.02 * np.log(c) for c in components],
                            )
                            for i, m in enumerate(METHODS)
                        ],
                    )
                ],
                [Finding("q = 20 reaches gbmort.", "section 4", "Not run.", Verdict.NOT_RUN)],
            ),
            Section(
                "multilabel",
                "Multi-label sets",
                ["Eight methods, the same time for each."],
                [
                    multilabel_table(rng),
                    CriticalDifference(
                        "ranks",
                        "Average ranks over 13 sets",
                        ranks,
                        2.29,
                        "Methods joined by a bar do not differ significantly (Nemenyi, α = 0.05).",
                    ),
                ],
                [
                    Finding(
                        "gbrt-relabel-rpo-gaussian has the best average rank.",
                        "conclusions",
                        "1.90, the next is gbrt-rpo-gaussian with 2.60.",
                        Verdict.REPRODUCED,
                    )
                ],
            ),
        ],
        {"manyboost": "0.1.0", "numpy": "2.4.6", "machine": "2 cores, x86_64, Linux"},
    )


@pytest.fixture(scope="module")
def written(report, tmp_path_factory):
    return write_report(report, tmp_path_factory.mktemp("report"))


def one_section(*blocks, **others):
    return Report(
        "A report", ["Lead."], [Section("part", "A part", ["Text."], blocks, **others)], {}
    )


def page_of(folder, *blocks, **others):
    return write_report(one_section(*blocks, **others), folder).read_text()


def texts(figure):
    """The text of a figure."""
    names = [series.label for series in getattr(figure, "series", [])]
    root = ET.fromstring(figures.draw(figure, {name: i for i, name in enumerate(names)}))
    return {
        "".join(text.itertext()).strip() for text in root.iter("{http://www.w3.org/2000/svg}text")
    }


def sheet(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def everything(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}


# ------------------------------------------------------------------ files


def test_every_table_and_figure_has_its_files(written):
    folder = written.parent
    assert written.name == "index.html"
    names = ["friedman", "multilabel", "tests"]
    assert sorted(path.stem for path in (folder / "tables").iterdir()) == names
    drawn = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert drawn == {path.stem for path in (folder / "figures").glob("*.csv")}
    assert len(drawn) == 5
    for path in (folder / "figures").glob("*.svg"):
        ET.fromstring(path.read_text())


def test_same_report_gives_same_bytes(report, written, tmp_path):
    write_report(report, tmp_path)
    assert everything(tmp_path) == everything(written.parent)


def test_empty_report_says_so(tmp_path):
    page = write_report(Report("Nothing", ["Nothing."], [], {}), tmp_path).read_text()
    assert "Claims of the paper: none." in page
    assert "Claims of the paper: none." in (tmp_path / "README.md").read_text()


def test_csv_is_unrounded_and_holds_all_of_a_score(tmp_path):
    score = Score(1 / 3, 0.01, 2, 5, 0.25, 0.02, 1)
    rows = [{"m": "a", "s": score, "v": 0.5}, {"m": "b,c", "v": None}]
    page_of(tmp_path, Table("t", "T", [Column(key, key) for key in "msv"], rows))
    first, second = sheet(tmp_path / "tables" / "t.csv")
    assert float(first["s"]) == 1 / 3
    assert float(first["s_difference"]) == score.difference
    assert first["s_repeats"] == "5"
    assert first["s_paper_rank"] == "1"
    assert first["v"] == "0.5"
    assert second["m"] == "b,c"
    assert {value for key, value in second.items() if key != "m"} == {""}


def test_csv_of_a_figure_has_every_point(written, report):
    points = sheet(written.parent / "figures" / "convergence-friedman1-chain.csv")
    series = report.sections[0].blocks[0].series
    assert len(points) == sum(len(each.x) for each in series)
    assert float(points[0]["y"]) == series[0].y[0]


# ------------------------------------------------------------------ numbers and tables


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.500"), (-0.25, "−0.250"), (-0.0001, "0.000"), (math.nan, "–")],
)
def test_number(value, text):
    assert cells.fixed(value, 3) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.008, "+0.008"), (-0.008, "−0.008"), (0.0001, "0.000")]
)
def test_difference(value, text):
    assert cells.fixed(value, 3, "+") == text


def test_score_stands_above_the_papers(tmp_path):
    score = Score(0.706, 0.009, 4, 5, 0.698, 0.01, 3)
    page = page_of(tmp_path, Table("t", "T", [Column("s", "chain")], [{"s": score}]))
    for text in (
        "0.706 ± 0.009 (4)",
        "<small>paper 0.698 (3)",
        "+0.008",
        "5 splits; paper ± 0.010",
        "+0.008 ≈",
    ):
        assert text in page
    markdown = (tmp_path / "part.md").read_text()
    assert "| 0.706 ± 0.009 (4)<br>paper 0.698 (3) +0.008 ≈ |" in markdown


def test_difference_beyond_two_standard_errors_is_coloured(tmp_path):
    score = Score(0.5, 0.01, 1, 5, 0.6, 0.01, 2)
    page = page_of(tmp_path, Table("t", "T", [Column("s", "s")], [{"s": score}]))
    assert '<span class="below">−0.100 ▼</span>' in page


def test_difference_within_two_standard_errors_is_not_coloured(tmp_path):
    score = Score(0.5, 0.08, 1, 5, 0.6, 0.08, 2)
    page = page_of(tmp_path, Table("t", "T", [Column("s", "s")], [{"s": score}]))
    assert 'class="below"' not in page


def test_missing_values_are_dashes_and_sort_last(tmp_path):
    rows = [{"s": None}, {}, {"s": Score(None)}, {"s": math.nan}, {"s": 1.0}]
    page = page_of(tmp_path, Table("t", "T", [Column("s", "s")], rows))
    assert page.count(">–</td>") == 4
    assert page.count("data-value=") == 1


@pytest.mark.parametrize(
    "table",
    [Table("t", "T", [], []), Table("t", "T", [Column("a", "a")], [])],
)
def test_empty_table_says_so(table, tmp_path):
    assert "Nothing to show." in page_of(tmp_path, table)
    assert "Nothing to show." in (tmp_path / "part.md").read_text()


# ------------------------------------------------------------------ figures


def test_figure_names_its_axes_and_lines(report):
    figure = report.sections[0].blocks[0]
    assert texts(figure) >= {figure.x_label, figure.y_label, *(s.label for s in figure.series)}


def test_figure_names_every_method_with_its_rank(report):
    figure = report.sections[-1].blocks[-1]
    found = " ".join(texts(figure))
    for method, rank in figure.ranks.items():
        assert method in found
        assert f"{rank:.2f}" in found


DRAW_RANKS = """
from experiments.report.content import CriticalDifference
from experiments.report.figures import draw
ranks = {f"method {k}": 1 + 0.3 * k for k in range(8)}
print(draw(CriticalDifference("ranks", "Ranks", ranks, 1.0), {}))
"""


def test_a_diagram_has_the_same_bytes_in_every_process():
    def drawn(seed):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", DRAW_RANKS]
        return subprocess.run(command, env=environment, check=True, capture_output=True).stdout

    first = drawn("1")
    assert b"method 7" in first
    assert drawn("2") == drawn("3") == first


def test_same_method_has_the_same_colour_in_every_figure_of_a_section(tmp_path):
    first = Lines("f", "F", "x", "y", [Series("a", [1, 2], [1, 2]), Series("b", [1, 2], [2, 1])])
    second = Lines("g", "G", "x", "y", [Series("b", [1, 2], [2, 1])])
    page_of(tmp_path, first, second)
    f, g = ((tmp_path / "figures" / f"{name}.svg").read_text() for name in "fg")
    assert f.count("#0072b2") == g.count("#0072b2") == 2  # a line and its entry in the legend
    assert f.count("#d55e00") == 2
    assert "#d55e00" not in g


# ------------------------------------------------------------------ Markdown


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("0.83 against −0.64, +0.01", "0.83 against −0.64, +0.01"),
        ("squared_error", "squared\\_error"),
        ("a|b *c* <d>", "a\\|b \\*c\\* \\<d\\>"),
        ("two\nlines", "two lines"),
    ],
)
def test_markdown_is_escaped(text, escaped):
    assert escape_markdown(text) == escaped


# ------------------------------------------------------------------ hostile text

EVIL = "<script>alert(1)</script>\"'&|\\`*_$x$\n# [a](javascript:b) </style>"


def hostile():
    blocks = [
        Table("t", EVIL, [Column("k", EVIL)], [{"k": EVIL}], EVIL),
        Lines("l", EVIL, EVIL, EVIL, [Series(EVIL, [1, 2], [1, 2])], caption=EVIL),
        CriticalDifference("c", EVIL, {EVIL: 1.0, "b": 2.0}, 1, EVIL),
    ]
    findings = [Finding(EVIL, EVIL, EVIL, Verdict.PARTLY)]
    return Report(EVIL, [EVIL, EVIL], [Section("s", EVIL, [EVIL], blocks, findings)], {EVIL: EVIL})


def test_hostile_text_is_escaped_everywhere(tmp_path):
    page = write_report(hostile(), tmp_path).read_text()
    assert page.count("<script>") == 1  # the page's own
    assert page.count("</style>") == 1
    assert "&lt;script&gt;" in page
    for path in (tmp_path / "figures").glob("*.svg"):
        text = path.read_text()
        assert "<script" not in text
        ET.fromstring(text)
    text = (tmp_path / "README.md").read_text()
    assert not re.search(r"(?<!\\)<script", text)
    assert "[a](javascript" not in text
    assert "\n# [" not in text


# ------------------------------------------------------------------ in a browser


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_page_shows_every_section_and_never_scrolls_sideways(browser, report, written, width, dark):
    browser.open(written, width, dark=dark)
    titles = browser.evaluate("[...document.querySelectorAll('h2')].map(e => e.textContent)")
    expected = [section.title for section in report.sections]
    assert titles == [*expected, "Versions"]
    assert browser.evaluate("[...document.images].filter(i => i.naturalWidth > 0).length") == 5
    assert browser.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')]"
        ".every(a => document.getElementById(a.hash.slice(1)))"
    )
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.evaluate("window.scrollTo(200, 0), window.scrollX") == 0
    assert browser.complaints() == []
    assert browser.requests() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_its_background(browser, written, dark):
    browser.open(written, 1280, dark=dark)
    contrasts = browser.evaluate("""
    (() => {
      const light = (colour) => {
        const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255);
        const [r, g, b] = parts.map((v) => v <= 0.04 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const paper = light(getComputedStyle(document.body).backgroundColor);
      const all = [...document.querySelectorAll("p, h1, h2, h3, td, th, small, a, span")];
      return all.map((e) => light(getComputedStyle(e).color))
        .map((ink) => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05));
    })()
    """)
    assert len(contrasts) > 200
    assert min(contrasts) > 4.5  # what WCAG asks of text


COLUMN = (
    "[...document.getElementById('block-friedman').querySelectorAll('tbody tr')]"
    ".map(row => row.cells[0].textContent)"
)
SORTED = (
    "[...document.getElementById('block-friedman').querySelectorAll('[aria-sort]')]"
    ".map(head => head.textContent + ' ' + head.ariaSort)"
)
OURS_ON_CHAIN = "[id='block-friedman'] th:nth-child(2) button"


def test_table_is_sorted_by_a_click_and_by_the_keyboard(browser, report, written):
    table = report.sections[1].blocks[0]
    by_score = sorted(table.rows, key=lambda row: -row["friedman1-chain"].mean)
    ranking = [row["method"] for row in by_score]
    browser.open(written, 1280)
    assert browser.evaluate(COLUMN) == [row["method"] for row in table.rows]
    browser.click(OURS_ON_CHAIN)
    assert browser.evaluate(COLUMN) == ranking
    assert browser.evaluate(SORTED) == ["friedman1-chain descending"]
    browser.press("Enter", "\r")  # the button has the focus
    assert browser.evaluate(COLUMN) == ranking[::-1]
    assert browser.evaluate(SORTED) == ["friedman1-chain ascending"]
    browser.click("[id='block-friedman'] th:nth-child(1) button")
    assert browser.evaluate(COLUMN) == sorted(ranking)
    assert browser.evaluate(SORTED) == ["method ascending"]
    assert browser.complaints() == []


def test_missing_values_stay_at_the_end_whichever_way(browser, written):
    browser.open(written, 1280)
    last = "document.getElementById('block-tests').querySelector('tbody tr:last-child').textContent"
    for _ in range(2):
        browser.click("[id='block-tests'] th:nth-child(3) button")
        assert browser.evaluate(last).startswith("mo-rf")


def test_hostile_page_runs_nothing_and_keeps_its_width(browser, tmp_path):
    browser.open(write_report(hostile(), tmp_path), 360)
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints() == []
    assert browser.requests() == []
