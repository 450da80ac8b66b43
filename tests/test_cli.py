"""The command line: how verbs are found, and how a command ends."""

import subprocess
import sys
import warnings

import pytest

from manyboost import __version__
from manyboost.cli import VERBS, main
from manyboost.commands import info
from manyboost.commands.usage import Interrupted


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MANYBOOST_TRACEBACK", raising=False)


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
    out = capsys.readouterr().out
    for name, verb in VERBS.items():
        assert name in out
        assert verb.SUMMARY in out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"manyboost {__version__}\n"


def test_runs_as_a_module():
    command = [sys.executable, "-m", "manyboost", "info", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert info.SUMMARY in done.stdout
    assert done.stderr == ""


def test_help_imports_no_library_that_is_slow_to_import():
    slow = {"numpy", "polars", "scipy", "shtab", "sklearn"}
    program = (
        f"import sys, manyboost.cli as c; c.main([]); sys.exit(bool({slow} & {{*sys.modules}}))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


# ------------------------------------------------------------------ wrong usage


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("evalute", "There is no verb 'evalute'; did you mean 'evaluate'?"),
        ("xyz", "There is no verb 'xyz'; available: 'fit', 'predict', "),
        ("info m --jsn", "There is no option '--jsn'; did you mean '--json'?"),
        ("info a.mb b.mb", "Unexpected argument 'b.mb'; see manyboost info --help"),
        ("info", "the following arguments are required: MODEL; see manyboost info --help."),
        ("evaluate m f --worst 0", "argument --worst: '0' is not a whole number above 0"),
        ("bench f --test-fraction nan", "argument --test-fraction: 'nan' is not a number between 0 and 1"),
        ("bench f --strategies ,", "argument --strategies: give at least one name"),
        ("evaluate m f --worst", "argument --worst: expected one argument"),
    ],
)
def test_wrong_usage_is_refused_with_one_sentence(command, sentence, capsys):
    assert sentence in refused(capsys, *command.split())


# ------------------------------------------------------------------ how a command ends


@pytest.fixture
def failing(monkeypatch):
    """Make ``manyboost info`` raise an error."""

    def failing(error):
        def run(arguments):
            raise error

        monkeypatch.setattr(info, "run", run)

    return failing


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ValueError("The set\n is empty."), 1, "The set is empty."),
        (KeyError("x"), 1, "KeyError: 'x'"),
        (MemoryError(), 1, "MemoryError."),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (Interrupted("Pass --resume to continue."), 130, "Pass --resume to continue."),
    ],
)
def test_a_failure_is_one_sentence(failing, capsys, error, code, said):
    failing(error)
    assert main(["info", "model.mb"]) == code
    assert capsys.readouterr().err == f"manyboost info: {said}\n"


def test_traceback_on_demand(failing, monkeypatch):
    failing(KeyError("x"))
    monkeypatch.setenv("MANYBOOST_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["info", "model.mb"])


def test_a_warning_is_one_line(monkeypatch, capsys):
    def run(arguments):
        warnings.simplefilter("always")
        warnings.warn("Use a smaller learning rate.", UserWarning, stacklevel=1)

    monkeypatch.setattr(info, "run", run)
    assert main(["info", "model.mb"]) == 0
    assert capsys.readouterr().err == "manyboost info: Warning: Use a smaller learning rate.\n"
