"""The command line: what it says, what it passes on, how it ends."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from manyboost import __version__, experiments
from manyboost.cli import main
from manyboost.commands.reproduce import ITEMS
from manyboost.experiments.results import Finding, Report, Section

REPORT = Report(
    "A report",
    [Section("friedman", "Friedman", ["Text."], [], [Finding("It works.", "It did.", True)])],
    {"manyboost": __version__},
)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MANYBOOST_DATA", raising=False)
    monkeypatch.delenv("MANYBOOST_TRACEBACK", raising=False)
    return tmp_path


@pytest.fixture
def calls(monkeypatch):
    """The calls of ``experiments.run``, which runs nothing."""
    made = []

    def run(items, options, store, *, stream):
        made.append(SimpleNamespace(items=list(items), options=options, store=store))
        return REPORT

    monkeypatch.setattr(experiments, "run", run)
    return made


def refused(capsys, *arguments):
    """The one sentence with which a command is refused."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


# ------------------------------------------------------------------ without a verb


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_lists_the_verbs(arguments, capsys):
    assert main(arguments) == 0
    assert "reproduce" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"manyboost {__version__}\n"


def test_runs_as_a_module():
    command = [sys.executable, "-m", "manyboost", "reproduce", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "friedman-noisy" in done.stdout
    assert done.stderr == ""


def test_misspelt_verb_gets_a_suggestion(capsys):
    assert "did you mean 'reproduce'?" in refused(capsys, "reprodce")


# ------------------------------------------------------------------ reproduce


def test_items_are_those_of_the_experiments():
    assert list(ITEMS) == list(experiments.ITEMS)


def test_all_items_are_reproduced_unless_some_are_named(calls, capsys):
    assert main(["reproduce"]) == 0
    assert main(["reproduce", "friedman", "--quick", "components", "friedman"]) == 0
    assert calls[0].items == list(ITEMS)
    assert calls[1].items == ["friedman", "components"]
    assert not calls[0].options.quick
    assert calls[1].options.quick


def test_report_is_written_and_its_place_told(calls, capsys, tmp_path):
    assert main(["reproduce", "--output", "out/here"]) == 0
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
    assert main(["reproduce", *flags.split()]) == 0
    options = calls[0].options
    assert options.budget == "T:100"
    assert list(options.methods) == ["gbmort", "st-gbrt", "mo-rf"]
    assert list(options.datasets) == ["yeast", "CAL500"]
    assert options.search == "random:12"
    assert (options.n_splits, options.max_seconds, options.n_jobs, options.seed) == (3, 2.5, 2, 7)
    assert options.data_dir.samefile(tmp_path)
    assert str(calls[0].store) == "s.db"


def test_flags_not_given_keep_the_defaults_of_the_experiments(calls):
    assert main(["reproduce"]) == 0
    assert calls[0].options == experiments.Options()


def test_data_folder_comes_from_the_environment(calls, monkeypatch, tmp_path):
    monkeypatch.setenv("MANYBOOST_DATA", str(tmp_path))
    assert main(["reproduce"]) == 0
    assert calls[0].options.data_dir == tmp_path


def test_list_names_items_methods_and_data_sets(calls, capsys):
    assert main(["reproduce", "--list"]) == 0
    listed = capsys.readouterr().out.split()
    assert {*ITEMS, "gbmort", "mo-rf", "friedman1-chain-noisy", "delicious"} <= set(listed)
    assert calls == []


def test_list_is_narrowed_to_the_items_named(capsys):
    assert main(["reproduce", "friedman", "--list"]) == 0
    listed = capsys.readouterr().out.split()
    assert "friedman1-ind" in listed
    assert "yeast" not in listed


def test_report_without_running(monkeypatch, calls, capsys):
    monkeypatch.setattr(experiments, "summarise", lambda items, options, store: REPORT)
    assert main(["reproduce", "--no-run"]) == 0
    assert capsys.readouterr().out.strip().endswith("index.html")
    assert calls == []


def test_small_reproduction_from_end_to_end(capsys, tmp_path):
    command = (
        "reproduce friedman --quick --datasets friedman1-chain --methods gbmort,st-gbrt"
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
        ("freidman", "There is no item 'freidman'; did you mean 'friedman'?"),
        ("xyz", "There is no item 'xyz'; there are convergence, friedman, "),
        ("--methods gbmrt", "There is no method 'gbmrt'; did you mean 'gbmort'?"),
        ("--datasets cal500", "There is no data set 'cal500'; did you mean 'CAL500'?"),
        ("friedman --methods mo-rf", "There is no method of friedman 'mo-rf'; there are "),
        ("friedman --datasets yeast", "There is no data set of friedman 'yeast'; there are "),
        ("--seed -1", "seed=-1"),
        ("--quik", "There is no option '--quik'; did you mean '--quick'?"),
        ("--budget hours:2", "write rounds:N, seconds:S or T:M"),
        ("--search all", "write grid, or random:N"),
        ("--repeats 0", "argument --repeats: '0' is not a whole number above 0"),
        ("--cap nan", "argument --cap: 'nan' is not a number above 0"),
        ("--methods ,", "argument --methods: give at least one name"),
        ("--seed", "argument --seed: expected one argument"),
        ("--data nowhere", "There is no folder 'nowhere'"),
    ],
)
def test_wrong_usage_is_refused_with_one_sentence(arguments, sentence, calls, capsys, tmp_path):
    assert sentence in refused(capsys, "reproduce", *arguments.split())
    assert calls == []
    assert list(tmp_path.iterdir()) == []


def failing(monkeypatch, error):
    def run(items, options, store, *, stream):
        raise error

    monkeypatch.setattr(experiments, "run", run)


def test_failure_is_one_sentence(monkeypatch, capsys):
    failing(monkeypatch, ValueError("The set\n is empty."))
    assert main(["reproduce"]) == 1
    assert capsys.readouterr().err == "manyboost reproduce: The set is empty.\n"


def test_unforeseen_failure_names_its_type(monkeypatch, capsys):
    failing(monkeypatch, KeyError("x"))
    assert main(["reproduce"]) == 1
    assert capsys.readouterr().err == "manyboost reproduce: KeyError: 'x'\n"


def test_traceback_on_demand(monkeypatch):
    failing(monkeypatch, KeyError("x"))
    monkeypatch.setenv("MANYBOOST_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["reproduce"])


def test_interrupt_says_how_to_go_on(monkeypatch, capsys):
    failing(monkeypatch, KeyboardInterrupt())
    assert main(["reproduce", "--store", "kept.sqlite"]) == 130
    err = capsys.readouterr().err
    assert "kept in kept.sqlite" in err
    assert "the same command goes on" in err
    assert err.count("\n") == 1
