"""The command line of the experiments: what it says, what it passes on, how it ends."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from experiments.__main__ import main
from experiments.items import ITEMS
from experiments.options import Options
from experiments.protocol import Search
from experiments.store import Store

from experiments import report, reproduction

DEFAULT_STORE, QUICK_STORE = "experiments/rows", "reproduction-quick/rows"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MANYBOOST_DATA", raising=False)
    return tmp_path


@pytest.fixture
def pages(monkeypatch):
    """The pages that were asked for, none of which is written."""
    asked = []

    def write(chosen, store, output):
        asked.append(SimpleNamespace(chosen=chosen, store=store, output=output))
        return Path(output) / "index.html"

    monkeypatch.setattr(report, "write", write, raising=False)
    return asked


@pytest.fixture
def calls(monkeypatch, pages):
    """The calls of ``reproduction.run``, which runs nothing."""
    made = []

    def run(items, options, store):
        made.append(SimpleNamespace(items=list(items), options=options, store=store._folder))

    monkeypatch.setattr(reproduction, "run", run)
    return made


def test_all_items_are_reproduced_unless_some_are_named(calls, pages):
    assert main([]) == 0
    assert main(["friedman", "--quick", "components", "friedman"]) == 0
    assert calls[0].items == list(ITEMS)
    assert calls[1].items == ["friedman", "components"]
    assert calls[0].options == Options()
    assert calls[1].options == Options(quick=True)
    assert [str(call.store) for call in calls] == [DEFAULT_STORE, QUICK_STORE]
    assert [item.name for item in pages[1].chosen] == ["friedman", "components"]
    assert pages[1].chosen[ITEMS["friedman"]].budget == "rounds:300"


def test_report_is_written_and_its_place_told(calls, pages, capsys):
    assert main(["--output", "out/here"]) == 0
    assert main(["--no-report"]) == 0
    assert capsys.readouterr().out == "out/here/index.html\n"
    assert len(pages) == 1


def test_every_flag_reaches_the_options(calls, tmp_path):
    flags = (
        "--methods gbmort,st-gbrt --methods mo-rf --datasets yeast,CAL500 --settings 12"
        " --splits 3 --n-jobs 2 --seed 7 --store rows --data ."
    )
    assert main([*flags.split()]) == 0
    options = calls[0].options
    assert list(options.methods) == ["gbmort", "st-gbrt", "mo-rf"]
    assert list(options.datasets) == ["yeast", "CAL500"]
    assert (options.n_settings, options.n_splits, options.n_jobs, options.seed) == (12, 3, 2, 7)
    assert options.data_dir.samefile(tmp_path)
    assert str(calls[0].store) == "rows"


def test_data_folder_comes_from_the_environment(calls, monkeypatch, tmp_path):
    monkeypatch.setenv("MANYBOOST_DATA", str(tmp_path))
    assert main([]) == 0
    assert calls[0].options.data_dir == tmp_path


def test_list_names_items_methods_and_data_sets(calls, capsys):
    assert main(["--list"]) == 0
    listed = re.findall(r"[\w-]+", capsys.readouterr().out)
    assert {*ITEMS, "gbmort", "mo-rf", "friedman1-chain-noisy", "delicious"} <= set(listed)
    assert main(["friedman", "--list"]) == 0
    listed = re.findall(r"[\w-]+", capsys.readouterr().out)
    assert "friedman1-ind" in listed
    assert "yeast" not in listed
    assert calls == []


SMALL = "friedman --quick --datasets friedman1-chain --methods gbmort,st-gbrt --settings 1"


def test_small_reproduction_from_end_to_end(capsys, tmp_path, pages):
    command = f"{SMALL} --splits 1".split()
    assert main([*command, "--time-left"]) == 0
    assert "0 of 4 runs" in capsys.readouterr().out
    assert main(command) == 0
    assert main([*command, "--time-left"]) == 0
    out = capsys.readouterr().out
    assert "4 of 4 runs" in out
    assert "about 0.0 core-hours left" in out
    run = Search.declare("friedman1-chain", 0, 0, "gbmort", 1, "rounds:300")
    assert Store(QUICK_STORE).get(run).model().scores["refit"]["macro-r2"] > 0.3
    assert main([*command, "--no-run"]) == 0
    assert len(pages) == 2


def test_what_is_left_is_estimated_from_what_is_stored(capsys, pages):
    assert main([*SMALL.split(), "--splits", "1"]) == 0
    left = reproduction.time_left(
        ["friedman"],
        Options(quick=True, datasets=["friedman1-chain"], methods=["gbmort"], n_settings=1),
        Store(QUICK_STORE),
    )
    part = left["friedman", "friedman1-chain"]
    assert (part.n_missing, part.n_runs) == (2, 4)
    assert 0 < part.hours < 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("xyz", "item 'xyz' is unknown; use some of convergence, regression, "),
        ("--methods gbmrt", "method 'gbmrt' is unknown; use some of artificial-gbrt, "),
        ("friedman --methods mo-rf", "method 'mo-rf' belongs to none of the items friedman;"),
        ("friedman --datasets yeast", "data set 'yeast' belongs to none of the items friedman;"),
        ("--seed -1", "seed=-1 is too small"),
        ("--quik", "unrecognized arguments: --quik"),
        ("--settings 0", "n_settings=0 is too small"),
        ("--splits 0", "n_splits=0 is too small"),
        ("--data nowhere", "--data 'nowhere' is not a folder."),
    ],
)
def test_wrong_usage_is_refused(arguments, sentence, calls, capsys, tmp_path):
    with pytest.raises(SystemExit) as end:
        main(arguments.split())
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err
    assert calls == []
    assert list(tmp_path.iterdir()) == []


def test_interrupt_says_how_to_continue(monkeypatch, capsys):
    def run(items, options, store):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction, "run", run)
    assert main([]) == 130
    assert "The same command continues" in capsys.readouterr().err
