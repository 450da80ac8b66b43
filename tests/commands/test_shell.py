"""The command line as a process: signals, pipes, completion."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

import manyboost
from commands.csv_files import write_csv
from manyboost.cli import VERBS, main
from manyboost.commands.parameters import WITHOUT_FLAG, flag
from manyboost.commands.usage import parser_for
from manyboost.params import PARAMS

BASH = shutil.which("bash")
COMMAND = [sys.executable, "-m", "manyboost"]


def test_ctrl_c_writes_the_model_so_far(tmp_path):
    rows = [[i % 7, (i * i) % 11, i % 3, (i * i) % 5] for i in range(500)]
    write_csv(tmp_path / "data.csv", ["a", "b", "y1", "y2"], rows)
    words = [
        "fit",
        "data.csv",
        "--target",
        "y*",
        "-o",
        "model.mb",
        "--max-iter",
        "1000000",
        "--verbose",
        "2",
    ]
    process = subprocess.Popen([*COMMAND, *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    lines = iter(process.stderr.readline, "")
    assert any(line.startswith("round") for line in lines)
    process.send_signal(signal.SIGINT)
    *_, last = lines
    assert process.wait() == 130
    process.stderr.close()
    model = manyboost.load(tmp_path / "model.mb")
    rounds = f"{model.n_iter_:,} round{'s' * (model.n_iter_ > 1)}"
    assert last.startswith(f"manyboost fit: Interrupted; model.mb holds the model after {rounds},")


def test_results_are_utf_8_whatever_the_locale(tmp_path):
    header, rows = ["größe", "Ω"], [[i % 7, i % 3] for i in range(50)]
    write_csv(tmp_path / "data.csv", header, rows)
    words = ["fit", "data.csv", "--target", "Ω", "-o", "model.mb", "--max-iter", "2", "--quiet"]
    for command in (words, ["predict", "model.mb", "data.csv"]):
        done = subprocess.run(
            [*COMMAND, *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": "cp1252"},
            capture_output=True,
            check=True,
        )
    assert done.stdout.decode("utf-8").startswith("Ω\n")


def test_closed_streams_are_said_to_be_closed(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MANYBOOST_TRACEBACK", raising=False)
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["predict", "people.mb", "-"]) == 1
    said = capsys.readouterr().err
    assert said == "manyboost predict: Standard input is closed; pass the name of a file.\n"
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["predict", "people.mb", "people.csv"]) == 1
    said = capsys.readouterr().err
    assert said == "manyboost predict: Standard output is closed; redirect it to a file.\n"
    # What is written elsewhere needs neither.
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["predict", "people.mb", "people.csv", "-o", os.devnull]) == 0
    assert main(["predict", "people.mb", "nothing.csv"]) == 1


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_commands_go_together_in_pipes(folder):
    script = """
    set -o pipefail
    "$PYTHON" -m manyboost predict sizes.mb - < iris_test.csv > from_stdin.csv || exit 3
    # (More than a pipe holds, so that whoever reads it is gone before the end.)
    for i in $(seq 300); do tail -n +2 iris_test.csv; done > body.csv
    head -n 1 iris_test.csv | cat - body.csv | "$PYTHON" -m manyboost predict sizes.mb - | head -n 2
    echo "codes: ${PIPESTATUS[*]}"
    """
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(
        [BASH, "-c", script], cwd=folder, capture_output=True, text=True, check=True,
        env=environment,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.stderr == ""
    assert lines[:2] == (folder / "from_stdin.csv").read_text().splitlines()[:2]
    assert lines[2].split()[-2:] == ["1", "0"]
    for name in ("from_stdin.csv", "body.csv"):
        (folder / name).unlink()


# ------------------------------------------------------------------ flags and completion


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb, capsys):
    assert main([verb, "--help"]) == 0
    out, err = capsys.readouterr()
    assert VERBS[verb].SUMMARY in " ".join(out.split())
    assert err == ""


def test_lists_that_begin_with_a_minus_are_explained(capsys):
    assert main(["fit", "--help"]) == 0
    assert "--monotonic-cst=-1,0,1" in capsys.readouterr().out
    words = ["--monotonic-cst=-1,0,1"]
    parsed = parser_for("fit", VERBS["fit"]).parse_args(words)
    assert parsed.monotonic_cst == [-1, 0, 1]


def test_every_parameter_has_a_flag():
    flags = {
        name
        for action in parser_for("fit", VERBS["fit"])._actions
        for name in action.option_strings
    }
    assert {flag(name) for name in PARAMS if name not in WITHOUT_FLAG} <= flags
    assert not {flag(name) for name in WITHOUT_FLAG} & flags


@pytest.fixture
def script(capsys):
    def script(shell):
        assert main(["completion", shell]) == 0
        return capsys.readouterr().out

    return script


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("manyboost ev", ["evaluate"]),
        ("manyboost fit --max-i", ["--max-iter"]),
        ("manyboost fit data.csv --strategy ", ["independent", "multioutput", "project", "relabel",
                                                "auto"]),
        ("manyboost fit --task c", ["classification"]),
        ("manyboost predict --pro", ["--proba"]),
        ("manyboost completion z", ["zsh"]),
        ("manyboost fit data", []),
        ("manyboost fit --checkpoint comp", ["complete.sh"]),
        ("manyboost fit --checkpoint no", []),
        ("manyboost fit --categorical-features fr", []),
    ],
)  # fmt: skip
def test_bash_completes(script, tmp_path, line, expected):
    words = line.split(" ")
    (tmp_path / "complete.sh").write_text(script("bash"))
    quoted = " ".join(f"'{word}'" for word in words)
    probe = (
        f"source complete.sh; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _shtab_manyboost;"
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run([BASH, "-c", probe], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.split() == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_know_all_verbs_and_flags(script, shell):
    text = script(shell)
    for verb in VERBS:
        assert verb in text
        for action in parser_for(verb, VERBS[verb])._actions:
            for name in action.option_strings:
                long = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                assert (long if shell == "fish" else name) in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_understand_their_scripts(script, shell):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([program, "-n"], input=script(shell), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("manyboost ev", ["evaluate"]),
        ("manyboost fit --max-i", ["--max-iter"]),
        ("manyboost fit --task c", ["classification"]),
        ("manyboost completion z", ["zsh"]),
    ],
)
def test_fish_completes(script, tmp_path, line, expected):
    program = shutil.which("fish")
    if program is None:
        pytest.skip("fish is not installed")
    (tmp_path / "manyboost.fish").write_text(script("fish"))
    probe = f"source manyboost.fish; complete -C '{line}'"
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(
        [program, "--no-config", "-c", probe], cwd=tmp_path, env=environment,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert [found.split("\t")[0] for found in done.stdout.splitlines()] == expected


def test_zsh_takes_the_script_after_compinit(script, tmp_path):
    program = shutil.which("zsh")
    if program is None:
        pytest.skip("zsh is not installed")
    (tmp_path / "complete.zsh").write_text(script("zsh"))
    probe = (
        "autoload -Uz compinit; compinit -u -d ./dump; source ./complete.zsh;"
        " print -- $_comps[manyboost]; whence -w _shtab_manyboost"
    )
    done = subprocess.run(
        [program, "-f", "-c", probe], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout.split("\n")[:2] == ["_shtab_manyboost", "_shtab_manyboost: function"]


def test_demo_without_polars_writes_no_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "polars", None)
    assert main(["demo", "-o", str(tmp_path / "demo")]) == 1
    assert "manyboost[files]" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()
