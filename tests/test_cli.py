"""The command line: what it says, what it passes on, how it ends."""

import subprocess
import sys

import pytest

from manyboost import __version__
from manyboost.cli import main
from manyboost.commands import demo


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MANYBOOST_DATA", raising=False)
    monkeypatch.delenv("MANYBOOST_TRACEBACK", raising=False)
    return tmp_path


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
    assert "predict" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"manyboost {__version__}\n"


def test_runs_as_a_module():
    command = [sys.executable, "-m", "manyboost", "predict", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "usage: manyboost predict" in done.stdout
    assert done.stderr == ""


def test_misspelt_verb_gets_a_suggestion(capsys):
    assert "did you mean 'predict'?" in refused(capsys, "predct")


# ------------------------------------------------------------------ how a command ends


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("demo --quik", "There is no option '--quik'; "),
        ("demo x", "'x' is one word too many; see manyboost demo --help."),
    ],
)
def test_wrong_usage_is_refused_with_one_sentence(arguments, sentence, capsys, tmp_path):
    assert sentence in refused(capsys, *arguments.split())
    assert list(tmp_path.iterdir()) == []


def failing(monkeypatch, error):
    def run(arguments):
        raise error

    monkeypatch.setattr(demo, "run", run)


def test_failure_is_one_sentence(monkeypatch, capsys):
    failing(monkeypatch, ValueError("The set\n is empty."))
    assert main(["demo"]) == 1
    assert capsys.readouterr().err == "manyboost demo: The set is empty.\n"


def test_unforeseen_failure_names_its_type(monkeypatch, capsys):
    failing(monkeypatch, KeyError("x"))
    assert main(["demo"]) == 1
    assert capsys.readouterr().err == "manyboost demo: KeyError: 'x'\n"


def test_traceback_on_demand(monkeypatch):
    failing(monkeypatch, KeyError("x"))
    monkeypatch.setenv("MANYBOOST_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["demo"])


def test_interrupt_is_one_word(monkeypatch, capsys):
    failing(monkeypatch, KeyboardInterrupt())
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "manyboost demo: Interrupted.\n"
