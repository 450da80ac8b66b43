"""Reports: what is written, and what a browser makes of it."""

import csv
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from experiments.report import cells, figures, markdown, write_report
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
)

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
        x_log=True,
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
        {"better": "gbmort", "worse": "st-gbrt", "p": 2e-6, "significant": True, "n": 5},
        {"better": "st-gbrt", "worse": "gbrt-rpo", "p": 0.171, "significant": False, "n": 5},
        {"better": "mo-rf", "worse": "br-rf", "p": None, "significant": None, "n": None},
    ]
    titles = {
        "better": "better",
        "worse": "worse",
        "p": "p-value",
        "significant": "below 0.05",
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
    by_rank = sorted(METHODS, key=ranks.__getitem__)
    return Report(
        "Reproduction of “Gradient tree boosting with random output projections”",
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
                        "113 times on chain, 96 times on group.",
                        False,
                    ),
                    Finding(
                        "On friedman1-ind st-gbrt ends best.", "0.83 against 0.64 and 0.79.", True
                    ),
                ],
                {"rows": "300 for training, 4,000 for testing", "rounds": "10,000", "repeats": "5"},
            ),
            Section(
                "friedman",
                "Best scores on the synthetic sets",
                ["Hyper-parameters are chosen on a fifth of the training rows."],
                [friedman_table(rng), p_values()],
                [Finding("artificial-gbrt is best on every set.", "First on all three.", True)],
                {
                    "search": "learning rate {1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01}, 2 to 8 leaves, "
                    "features {√p, 0.1 p, 0.2 p, 0.5 p, p}; 30 random draws",
                    "budget": "10,000 rounds",
                },
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
                        x_log=True,
                    )
                ],
                [Finding("q = 20 reaches the score of gbmort.", "Not run: capped.", None)],
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
                        [by_rank[:3], by_rank[2:6], by_rank[3:]],
                        "Methods joined by a bar do not differ significantly (Nemenyi, α = 0.05).",
                    ),
                ],
                [
                    Finding(
                        "gbrt-relabel-rpo-gaussian has the best average rank.",
                        "1.90, the next is gbrt-rpo-gaussian with 2.60.",
                        True,
                    )
                ],
                {"splits": "5 random splits", "cap": "600 seconds per fit"},
            ),
        ],
        {"manyboost": "0.1.0", "numpy": "2.4.6", "machine": "2 cores, x86_64, Linux"},
        ["Searches draw 30 settings at random instead of walking the whole grid.", "Five splits."],
    )


@pytest.fixture(scope="module")
def written(report, tmp_path_factory):
    return write_report(report, tmp_path_factory.mktemp("report"))


def one_section(*blocks, **others):
    return Report("A report", [Section("part", "A part", ["Text."], blocks, **others)], {})


def page_of(folder, *blocks, **others):
    return write_report(one_section(*blocks, **others), folder).read_text()


def svg_of(block, colours=None):
    names = [series.label for series in getattr(block, "series", [])]
    drawn = figures.draw(block, "x", colours or {name: i for i, name in enumerate(names)})
    return drawn, ET.fromstring(drawn)


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


def test_names_are_made_safe_and_unique(tmp_path):
    empty = [Table(name, "T", [], []) for name in ("../up", "up", "UP", "", "summary")]
    page_of(tmp_path / "r", *empty)
    names = sorted(path.name for path in (tmp_path / "r" / "tables").iterdir())
    assert names == ["part.csv", "summary.csv", "up-2.csv", "up-3.csv", "up.csv"]
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_empty_report_says_so(tmp_path):
    page = write_report(Report("Nothing", [], {}), tmp_path).read_text()
    assert "No findings were recorded." in page
    assert "No findings were recorded." in (tmp_path / "report.md").read_text()


def test_csv_is_unrounded_and_holds_all_of_a_score(tmp_path):
    score = Score(1 / 3, 0.01, 2, 5, 0.25, 0.02, 1)
    rows = [{"m": "a", "s": score, "b": True, "v": np.float32(0.5)}, {"m": "b,c", "v": math.nan}]
    page_of(tmp_path, Table("t", "T", [Column(key, key) for key in "msbv"], rows))
    first, second = sheet(tmp_path / "tables" / "t.csv")
    assert float(first["s"]) == 1 / 3
    assert float(first["s_difference"]) == score.difference
    assert first["s_repeats"] == "5"
    assert first["s_paper_rank"] == "1"
    assert (first["b"], first["v"]) == ("true", "0.5")
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
    [
        (0.5, "0.500"),
        (-0.25, "−0.250"),
        (0.0, "0.000"),
        (2e-6, "2e−06"),
        (7, "7"),
        (math.inf, "∞"),
        (math.nan, "–"),
    ],
)
def test_number(value, text):
    assert cells.number(value, 3) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.008, "+0.008"), (-0.008, "−0.008"), (-0.0001, "0.000"), (0.0001, "0.000"), (None, "–")],
)
def test_difference(value, text):
    assert cells.signed(value, 3) == text


def test_score_stands_beside_the_papers(tmp_path):
    score = Score(0.706, 0.009, 4, 5, 0.698, 0.01, 3)
    table = Table("t", "T", [Column("s", "chain")], [{"s": score}])
    page = page_of(tmp_path, table)
    for text in ("0.706 ± 0.009 (4)", "0.698 ± 0.010 (3)", "+0.008", "5 repeats"):
        assert text in page
    assert "| chain ours | chain paper | chain diff. |" in (tmp_path / "report.md").read_text()


def test_many_scores_stack_the_papers_value(tmp_path):
    columns = [Column(key, key) for key in "abcd"]
    score = Score(0.5, 0.01, 1, 5, 0.6, 0.01, 2)
    page = page_of(tmp_path, Table("t", "T", columns, [dict.fromkeys("abcd", score)]))
    assert page.count("<small>paper 0.600 (2)") == 4
    assert page.count('<span class="below">−0.100</span>') == 4


def test_difference_within_the_deviations_is_not_coloured(tmp_path):
    score = Score(0.5, 0.06, 1, 5, 0.6, 0.06, 2)
    page = page_of(tmp_path, Table("t", "T", [Column("s", "s")], [{"s": score}]))
    assert 'class="below"' not in page


def test_missing_values_are_dashes_and_sort_last(tmp_path):
    rows = [{"s": None}, {}, {"s": Score(None)}, {"s": math.nan}, {"s": 1.0}]
    page = page_of(tmp_path, Table("t", "T", [Column("s", "s")], rows))
    assert page.count(">–</td>") == 4
    assert page.count("data-value=") == 1


@pytest.mark.parametrize(
    "table",
    [Table("t", "T", [], []), Table("t", "T", [Column("a", "a")], []), Table("t", "T", [], [{}])],
)
def test_empty_table_says_so(table, tmp_path):
    assert "Nothing to show." in page_of(tmp_path, table)
    assert "Nothing to show." in (tmp_path / "report.md").read_text()


# ------------------------------------------------------------------ figures


@pytest.mark.parametrize(
    "block",
    [
        Lines("l", "L", "x", "y", []),
        Lines("l", "L", "x", "y", [Series("a", [], [])]),
        Lines("l", "L", "x", "y", [Series("a", [0, -1], [1, 2])], x_log=True),
        Lines("l", "L", "x", "y", [Series("a", [1], [math.nan])]),
        CriticalDifference("c", "C", {}, 1.0, []),
    ],
)
def test_empty_figure_says_so(block):
    assert "Nothing to show." in svg_of(block)[0]


def test_figure_has_title_description_and_one_entry_per_line():
    block = Lines(
        "l", "A figure", "time", "score", [Series("a", [1, 2], [3, 4]), Series("b", [1], [0.5])]
    )
    text, root = svg_of(block)
    space = "{http://www.w3.org/2000/svg}"
    assert root.find(f"{space}title").text == "A figure"
    assert "a 4; b 0.5" in root.find(f"{space}desc").text
    assert root.get("role") == "img"
    assert text.count('class="series') == 2
    assert "nan" not in text.lower().replace("noto sans", "")


def test_points_stay_within_the_plot_and_keep_their_extremes():
    x = np.linspace(0, 1, 20_000)
    y = np.zeros(20_000)
    y[12_345] = 1
    _, root = svg_of(Lines("l", "L", "x", "y", [Series("a", x, y)]))
    line = root.find(".//{*}path[@class='line']").get("d")
    points = [tuple(map(float, point.split())) for point in line[1:].split("L")]
    assert len(points) < 3000
    heights = sorted({point[1] for point in points})
    assert len(heights) == 2
    width, height = map(float, root.get("viewBox").split()[2:])
    assert all(0 <= a <= width and 0 <= b <= height for a, b in points)


def test_same_method_has_the_same_colour_in_every_figure_of_a_section(tmp_path):
    first = Lines("f", "F", "x", "y", [Series("a", [1, 2], [1, 2]), Series("b", [1, 2], [2, 1])])
    second = Lines("g", "G", "x", "y", [Series("b", [1, 2], [2, 1])])
    page_of(tmp_path, first, second)
    for name in ("f", "g"):
        text = (tmp_path / "figures" / f"{name}.svg").read_text()
        assert '<g class="series c1 d0"><title>b</title>' in text


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.02, 0.71, ["0.2", "0.4", "0.6"]),
        (-3, 12, ["0", "5", "10"]),
        (1000, 10_000, ["2000", "4000", "6000", "8000", "10000"]),
        (0.64, 0.66, ["0.640", "0.645", "0.650", "0.655", "0.660"]),
    ],
)
def test_linear_ticks(low, high, labels):
    assert [label for _, label in figures.linear_ticks(low, high)] == labels


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.03, 200, ["0.1", "1", "10", "100"]),
        (1, 30, ["1", "2", "5", "10", "20"]),
        (1e-6, 1e6, ["10⁻⁶", "0.001", "1", "1000", "10⁶"]),
        (4.1, 4.4, ["4.1", "4.2", "4.3", "4.4"]),
    ],
)
def test_log_ticks(low, high, labels):
    ticks = figures.log_ticks(low, high)
    assert [label for _, label in ticks if label] == labels
    assert all(low * 0.999 <= value <= high * 1.001 for value, _ in ticks)


def test_critical_difference_joins_groups_and_names_every_method():
    ranks = {"a": 1.2, "b": 1.9, "c": 3.0}
    block = CriticalDifference("c", "C", ranks, 1.0, [["a", "b"], ["c"], ["b", "unknown"]])
    text, root = svg_of(block)
    assert text.count('class="bar"') == 1
    assert "critical difference 1.00" in text
    assert {span.text for span in root.findall(".//{*}tspan")} >= {"a", "b", "c", "1.20", "3.00"}


def test_bars_that_overlap_are_drawn_on_different_levels():
    ranks = {"a": 1.0, "b": 2.0, "c": 3.0}
    _, root = svg_of(CriticalDifference("c", "C", ranks, 1.5, [["a", "b"], ["b", "c"]]))
    bars = [path.get("d") for path in root.findall(".//{*}path[@class='bar']")]
    assert len({bar.split()[1].split("L")[0] for bar in bars}) == 2


# ------------------------------------------------------------------ Markdown


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("0.83 against −0.64, +0.01", "0.83 against −0.64, +0.01"),
        ("stackex_cs", "stackex_cs"),
        ("_so_", "\\_so\\_"),
        ("a|b *c* <d> & e", "a\\|b \\*c\\* &lt;d&gt; &amp; e"),
        ("1. one", "1\\. one"),
        ("- one", "\\- one"),
        ("## two\nlines", "\\## two lines"),
    ],
)
def test_markdown_escapes_what_it_must_and_no_more(text, escaped):
    assert markdown.escape(text) == escaped


# ------------------------------------------------------------------ hostile text

EVIL = "<script>alert(1)</script>\"'&|\\`*_\n# [a](javascript:b) \x00</style>"


def hostile():
    table = Table(EVIL, EVIL, [Column("k", EVIL), Column("s", EVIL)], [{"k": EVIL, "s": EVIL}])
    return Report(
        EVIL,
        [
            Section(
                EVIL,
                EVIL,
                [EVIL],
                [
                    Table(EVIL, EVIL, table.columns, table.rows, EVIL),
                    Lines(EVIL, EVIL, EVIL, EVIL, [Series(EVIL, [1, 2], [1, 2])], caption=EVIL),
                    CriticalDifference(EVIL, EVIL, {EVIL: 1.0, "b": 2.0}, 1, [[EVIL, "b"]], EVIL),
                ],
                [Finding(EVIL, EVIL, None)],
                {EVIL: EVIL},
            )
        ],
        {EVIL: EVIL},
        [EVIL],
    )


def test_hostile_text_is_escaped_everywhere(tmp_path):
    page = write_report(hostile(), tmp_path).read_text()
    assert page.count("<script>") == 1  # the page's own
    assert page.count("</style>") == 1
    assert "\x00" not in page
    assert "&lt;script&gt;" in page
    for path in (tmp_path / "figures").glob("*.svg"):
        text = path.read_text()
        assert "<script" not in text
        ET.fromstring(text)
    text = (tmp_path / "report.md").read_text()
    assert "<script" not in text
    assert "[a](javascript" not in text
    assert "\n# [" not in text


# ------------------------------------------------------------------ in a browser


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_page_shows_every_section_and_never_scrolls_sideways(browser, report, written, width, dark):
    browser.open(written, width, dark=dark)
    titles = browser.evaluate("[...document.querySelectorAll('h2')].map(e => e.textContent)")
    expected = [section.title for section in report.sections]
    assert titles == ["Summary", "Contents", *expected, "Versions"]
    assert browser.evaluate("document.querySelectorAll('svg[role=img]').length") == 5
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
      const colour = (e) => e.closest("svg") ? getComputedStyle(e).fill : getComputedStyle(e).color;
      const all = [...document.querySelectorAll("p, h1, h2, h3, td, th, small, a, svg text, span")];
      return all.map((e) => light(colour(e)))
        .map((ink) => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05));
    })()
    """)
    assert len(contrasts) > 200
    assert min(contrasts) > 4.5  # what WCAG asks of text


def test_no_text_of_a_figure_overlaps_another_or_leaves_it(browser, written):
    for width in (360, 1280):
        browser.open(written, width)
        overlaps = browser.evaluate("""
        [...document.querySelectorAll("svg.figure")].flatMap((svg) => {
          const frame = svg.getBoundingClientRect();
          const boxes = [...svg.querySelectorAll("text")].map((e) => e.getBoundingClientRect());
          const out = boxes.filter((b) => b.left < frame.left - 1 || b.right > frame.right + 1);
          const pairs = boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) =>
            Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
            Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > a.height / 3));
          return [...out, ...pairs].map(() => svg.querySelector("title").textContent);
        })
        """)
        assert overlaps == []


COLUMN = (
    "[...document.getElementById('table.friedman').querySelectorAll('tbody tr')]"
    ".map(row => row.cells[0].textContent)"
)
SORTED = (
    "[...document.getElementById('table.friedman').querySelectorAll('[aria-sort]')]"
    ".map(head => head.textContent + ' ' + head.ariaSort)"
)
OURS_ON_CHAIN = "[id='table.friedman'] th[data-column='1'] button"


def test_table_is_sorted_by_a_click_and_by_the_keyboard(browser, report, written):
    table = report.sections[1].blocks[0]
    by_score = sorted(table.rows, key=lambda row: -row["friedman1-chain"].mean)
    ranking = [row["method"] for row in by_score]
    browser.open(written, 1280)
    assert browser.evaluate(COLUMN) == [row["method"] for row in table.rows]
    browser.click(OURS_ON_CHAIN)
    assert browser.evaluate(COLUMN) == ranking
    assert browser.evaluate(SORTED) == ["ours descending"]
    browser.press("Enter", "\r")  # the button has the focus
    assert browser.evaluate(COLUMN) == ranking[::-1]
    assert browser.evaluate(SORTED) == ["ours ascending"]
    browser.click("[id='table.friedman'] th[data-column='0'] button")
    assert browser.evaluate(COLUMN) == sorted(ranking)
    assert browser.evaluate(SORTED) == ["method ascending"]
    assert browser.complaints() == []


def test_missing_values_stay_at_the_end_whichever_way(browser, written):
    browser.open(written, 1280)
    last = "document.getElementById('table.tests').querySelector('tbody tr:last-child').textContent"
    for _ in range(2):
        browser.click("[id='table.tests'] th[data-column='2'] button")
        assert browser.evaluate(last).startswith("mo-rf")


def test_hostile_page_runs_nothing_and_keeps_its_width(browser, tmp_path):
    browser.open(write_report(hostile(), tmp_path), 360)
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints() == []
    assert browser.requests() == []
