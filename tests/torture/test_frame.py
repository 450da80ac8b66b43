"""The battery itself: what it stores, what it shows, and that it notices what ends badly."""

import json
import os
import sys
import textwrap
from types import SimpleNamespace

import pytest
from torture.figures import Figure, none_of, skipped

from torture import __main__ as battery
from torture import areas, report, results

HELD = Figure("crashes", "0", "0", True, 10)


@pytest.fixture
def area(tmp_path, monkeypatch):
    """Make an area of the given source, which processes of the battery find as well."""

    def make(source):
        (tmp_path / "torture_stand_in.py").write_text(
            "TITLE, PROMISE = 'stand-in', 'It holds.'\n" + textwrap.dedent(source)
        )
        # A process of the battery finds areas by name: this one is put among them.
        (tmp_path / "sitecustomize.py").write_text(
            "import sys, torture_stand_in\n"
            "sys.modules['torture.areas.stand_in'] = torture_stand_in\n"
        )
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.pathsep.join(sys.path)}")
        monkeypatch.setattr(areas, "find", lambda name: SimpleNamespace(SECONDS=5.0))
        return "stand_in"

    return make


def test_a_sound_area_hands_over_its_figures(area):
    name = area("""
        from torture.figures import Figure
        def run(long, seed):
            of_seed = Figure("seed", "7", str(seed), seed == 7, 3)
            return [of_seed, Figure("long", "no", "", not long)]
    """)
    assert battery.run_watched(name, False, 7) == [
        Figure("seed", "7", "7", True, 3),
        Figure("long", "no", "", True),
    ]


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("raise SystemExit(3)", "exit code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended by SIGKILL"),
        ("import time; time.sleep(60)", "still running after 1 s"),
    ],
)
def test_an_area_that_ends_badly_is_a_figure_that_fails(area, monkeypatch, body, how):
    monkeypatch.setattr(battery, "SECONDS_SHORT", 1.0 if "sleep" in body else 60.0)
    name = area(f"def run(long, seed):\n    {body}\n")
    (figure,) = battery.run_watched(name, False, 0)
    assert (figure.value, figure.holds) == (how, False)


def test_a_short_run_never_replaces_a_long_one(tmp_path):
    assert results.store(tmp_path, "load", [HELD], 3600.0, True, 0)
    assert not results.store(tmp_path, "load", [], 1.0, False, 0)
    assert results.read(tmp_path)["load"]["figures"][0]["cases"] == 10
    assert results.store(tmp_path, "load", [], 60.0, True, 1)
    assert json.loads((tmp_path / "load.json").read_text())["seed"] == 1


def test_the_page_shows_what_holds_and_what_does_not(tmp_path):
    figures = [
        HELD,
        none_of("hangs", 5, ["case | 4"]),
        skipped("free-threaded build", "same result", "none is installed"),
    ]
    results.store(tmp_path, "determinism", figures, 3600.0, True, 0)
    page = report.document(results.read(tmp_path))
    assert "1 of 2 figures hold." in page
    assert "| determinism | crashes | 0 | 0 | 10 | yes |" in page
    assert "| hangs | 0 | 1, the first: case \\| 4 | 5 | **no** |" in page
    assert "not tried" in page
    assert areas.find("determinism").PROMISE in page
