"""The command line of the experiments: what it says, what it passes on, how it ends."""

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from experiments.__main__ import main
from experiments.items import ITEMS
from experiments.options import Options
from experiments.report.content import Finding, Report, Section

from experiments import reproduction
from manyboost import __version__

ROOT = Path(__file__).parents[2]

REPORT = Report(
    "A report",
    [Section("friedman", "Friedman", ["Text."], [], [Finding("It works.", "It did.", True)])],
    {"manyboost": __version__},
)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MANYBOOST_DATA", raising=False)
    return tmp_path


@pytest.fixture
def calls(monkeypatch):
    """The calls of ``reproduction.run``, which runs nothing."""
    made = []

    def run(items, options, store, *, stream):
        made.append(SimpleNamespace(items=list(items), options=options, store=store))
        return REPORT

    monkeypatch.setattr(reproduction, "run", run)
    return made


def test_all_items_are_reproduced_unless_some_are_named(calls, capsys):
    assert main([]) == 0
    assert main(["friedman", "--quick", "components", "friedman"]) == 0
    assert calls[0].items == list(ITEMS)
    assert calls[1].items == ["friedman", "components"]
    assert not calls[0].options.quick
    assert calls[1].options.quick


def test_report_is_written_and_its_place_told(calls, capsys, tmp_path):
    assert main(["--output", "out/here"]) == 0
    out, err = capsys.readouterr()
    assert (tmp_path / out.strip()).is_file()
    assert out.strip().endswith("index.html")
    assert "1 holds" in err
    assert (tmp_path / "out/here/report.md").is_file()
    assert str(calls[0].store).startswith("out/here")


def test_every_flag_reaches_the_options(calls, tmp_path):
    flags = (
        "--budget T:100 --methods gbmort,st-gbrt --methods mo-rf --datasets yeast,CAL500"
        " --search random:12 --repeats 3 --cap 2.5 --n-jobs 2 --seed 7 --store s.db --data ."
    )
    assert main([*flags.split()]) == 0
    options = calls[0].options
    assert options.budget == "T:100"
    assert list(options.methods) == ["gbmort", "st-gbrt", "mo-rf"]
    assert list(options.datasets) == ["yeast", "CAL500"]
    assert options.search == "random:12"
    assert (options.n_splits, options.max_seconds, options.n_jobs, options.seed) == (3, 2.5, 2, 7)
    assert options.data_dir.samefile(tmp_path)
    assert str(calls[0].store) == "s.db"


def test_flags_not_given_keep_the_defaults_of_the_experiments(calls):
    assert main([]) == 0
    assert calls[0].options == Options()


def test_data_folder_comes_from_the_environment(calls, monkeypatch, tmp_path):
    monkeypatch.setenv("MANYBOOST_DATA", str(tmp_path))
    assert main([]) == 0
    assert calls[0].options.data_dir == tmp_path


def test_list_names_items_methods_and_data_sets(calls, capsys):
    assert main(["--list"]) == 0
    listed = re.findall(r"[\w-]+", capsys.readouterr().out)
    assert {*ITEMS, "gbmort", "mo-rf", "friedman1-chain-noisy", "delicious"} <= set(listed)
    assert calls == []


def test_list_is_narrowed_to_the_items_named(capsys):
    assert main(["friedman", "--list"]) == 0
    listed = re.findall(r"[\w-]+", capsys.readouterr().out)
    assert "friedman1-ind" in listed
    assert "yeast" not in listed


def test_report_without_running(monkeypatch, calls, capsys):
    monkeypatch.setattr(reproduction, "summarise", lambda items, options, store: REPORT)
    assert main(["--no-run"]) == 0
    assert capsys.readouterr().out.strip().endswith("index.html")
    assert calls == []


def test_small_reproduction_from_end_to_end(capsys, tmp_path):
    command = (
        "friedman --quick --datasets friedman1-chain --methods gbmort,st-gbrt"
        " --budget rounds:3 --search random:1 --repeats 1"
    )
    assert main(command.split()) == 0
    page = tmp_path / capsys.readouterr().out.strip()
    assert "gbmort" in page.read_text()
    before = page.read_bytes()
    assert main([*command.split(), "--no-run"]) == 0
    assert page.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("xyz", "item 'xyz' is unknown; use some of convergence, friedman, "),
        ("--methods gbmrt", "method 'gbmrt' is unknown; use some of artificial-gbrt, "),
        ("friedman --methods mo-rf", "method 'mo-rf' belongs to none of the items friedman;"),
        ("friedman --datasets yeast", "data set 'yeast' belongs to none of the items friedman;"),
        ("--seed -1", "seed=-1 is too small"),
        ("--quik", "unrecognized arguments: --quik"),
        ("--budget hours:2", "write rounds:N, seconds:S or T:M"),
        ("--search all", "write grid, or random:N"),
        ("--repeats 0", "n_splits=0 is too small"),
        ("--cap nan", "max_seconds=nan is not positive"),
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
    def run(items, options, store, *, stream):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction, "run", run)
    assert main(["--store", "kept.jsonl"]) == 130
    err = capsys.readouterr().err
    assert "kept in kept.jsonl" in err
    assert "The same command continues" in err


PAGES = sorted((ROOT / "docs" / "reproduction").glob("*/report.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_pages_are_made_again_from_the_stored_rows(page, tmp_path):
    command = re.search(r"Made by: python -m experiments (.*)", page.read_text())[1]
    store = ROOT / "experiments" / "results.jsonl"
    where = ["--no-run", "--store", str(store), "--output", str(tmp_path)]
    assert main([*shlex.split(command.replace("\\", "")), *where]) == 0
    made = [path for path in tmp_path.rglob("*") if path.suffix in (".md", ".csv")]
    assert len(made) > 2
    for path in made:
        committed = page.parent / path.relative_to(tmp_path)
        assert path.read_text() == committed.read_text()
