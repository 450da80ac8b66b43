"""Lines of Python and of Rust that the test suite runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from torture.figures import Figure, none_of, skipped
from torture.models import ROOT
from torture.native_builds import BUILDS, NoTool, call, environment, find, sysroot

TITLE = "coverage"
PROMISE = "The test suite runs nearly every line of the library, in both languages."
SECONDS = 4 * 3600.0

PYTHON_BAR, RUST_BAR = 95.0, 90.0
FOLDER = BUILDS / "coverage"
SETTINGS = """\
[run]
source_pkgs = manyboost
parallel = true
data_file = {folder}/data/lines
concurrency = thread, multiprocessing
sigterm = true
patch = subprocess

[report]
exclude_also =
    if TYPE_CHECKING:
    raise NotImplementedError
    raise AssertionError
    @abstractmethod
    @overload
"""


def run(long: bool, seed: int) -> list[Figure]:
    bars = f"≥ {PYTHON_BAR:g} %", f"≥ {RUST_BAR:g} %"
    if not long:
        reason = "takes the whole test suite"
        return [
            skipped("lines of Python", bars[0], reason),
            skipped("lines of Rust", bars[1], reason),
        ]
    try:
        build()
    except NoTool as reason:
        return [skipped("lines of Python and Rust", " and ".join(bars), str(reason))]
    run_tests()
    return figures()


def figures() -> list[Figure]:
    """What the last run of the tests left in files."""
    python, rust = python_lines(), rust_lines()
    show(python)
    show(rust)
    n_tests, failing = failing_tests()
    return [
        figure("lines of Python", PYTHON_BAR, python),
        figure("lines of Rust", RUST_BAR, rust),
        none_of("tests that failed meanwhile, and again with the extension that is delivered",
                n_tests, failing),
    ]  # fmt: skip


Lines = dict[str, tuple[int, int]]  # by file: lines run, lines


def figure(what: str, bar: float, lines: Lines) -> Figure:
    ran, total = (sum(each[k] for each in lines.values()) for k in (0, 1))
    share = 100 * ran / max(total, 1)
    return Figure(what, f"≥ {bar:g} %", f"{share:.1f} %", share >= bar, total)


def show(lines: Lines) -> None:
    """Print the files with the most lines that did not run."""
    missing = sorted(lines, key=lambda name: lines[name][0] - lines[name][1])
    for name in missing[:15]:
        ran, total = lines[name]
        print(f"  {total - ran:5} of {total:5} lines did not run: {name}", flush=True)


# ---------------------------------------------------------------------- a copy that counts


def build() -> None:
    """A copy of the package with an extension that counts, and the tests of the core that do."""
    llvm_tool("llvm-cov")  # needed at the end: look for it before the long run of tests
    shutil.rmtree(FOLDER / "python", ignore_errors=True)
    shutil.rmtree(FOLDER / "data", ignore_errors=True)
    (FOLDER / "data").mkdir(parents=True)
    package = FOLDER / "python" / "manyboost"
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "python" / "manyboost", package, ignore=ignored)
    (FOLDER / "settings").write_text(SETTINGS.format(folder=FOLDER))
    env = counting()
    for arguments in (
        ["build", "--release", "-p", "manyboost-python"],
        ["test", "--release", "-p", "manyboost-core", "--lib", "--no-run"],
    ):
        made = call([find("cargo"), *arguments], env)
        if made.returncode:
            raise NoTool(made.stderr.strip().splitlines()[-1])
    shutil.copy(FOLDER / "release" / "lib_core.so", package / "_core.abi3.so")


def counting() -> dict[str, str]:
    return environment(
        "coverage",
        RUSTFLAGS="-Cinstrument-coverage",
        CARGO_PROFILE_RELEASE_LTO="off",
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS="8",
        CARGO_PROFILE_RELEASE_OPT_LEVEL="1",
        PYO3_PYTHON=sys.executable,
        LLVM_PROFILE_FILE=f"{FOLDER}/data/%p-%m.profraw",
    )


def run_tests() -> None:
    """Run both suites, and keep what they say."""
    env = counting() | {"PYTHONPATH": f"{FOLDER / 'python'}{os.pathsep}{ROOT}"}
    rust = call([find("cargo"), "test", "--release", "-p", "manyboost-core", "--lib"], env)
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={FOLDER}/settings", "-m"]
    command += ["pytest", "-q", "-p", "no:cacheprovider", "tests"]
    command.append(str(FOLDER / "python" / "manyboost"))
    # The process of the tests itself counts by `coverage run`; those that it starts find this.
    env["COVERAGE_RCFILE"] = f"{FOLDER}/settings"
    python = call(command, env, seconds=SECONDS)
    for name, process in (("cargo", rust), ("pytest", python)):
        (FOLDER / f"{name}.txt").write_text(process.stdout + process.stderr)


def failing_tests() -> tuple[int, list[str]]:
    """How many tests there are, and which fail.

    An extension that counts is slow, and what has to be prompt is not: tests of Python that failed
    with it are run again without.
    """
    rust, python = ((FOLDER / f"{name}.txt").read_text() for name in ("cargo", "pytest"))
    counts = re.findall(r"(\d+) (?:passed|failed)", rust) + re.findall(
        r"(\d+) (?:passed|failed)", python
    )
    failing = re.findall(r"^test (.*) \.\.\. FAILED$", rust, re.MULTILINE)
    for test in re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", python, re.MULTILINE):
        again = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        failing += [test] if again.returncode else []
    for name, words in (("cargo", rust), ("pytest", python)):
        if not re.search(r"\d+ passed", words):
            failing.append(f"{name} did not come to its end")
    return sum(map(int, counts)), failing


# ---------------------------------------------------------------------- what was counted


def python_lines() -> Lines:
    report = FOLDER / "python.json"
    rcfile = f"--rcfile={FOLDER}/settings"
    commands = [["json", rcfile, "-q", "-o", str(report)]]
    if any((FOLDER / "data").glob("lines.*")):  # of single processes, until they are put together
        commands.insert(0, ["combine", rcfile, "-q"])
    for arguments in commands:
        subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT, check=True)
    files: dict[str, Any] = json.loads(report.read_text())["files"]
    return {
        Path(name).name if "manyboost" not in name else name.partition("manyboost/")[2]: (
            found["summary"]["covered_lines"],
            found["summary"]["num_statements"],
        )
        for name, found in files.items()
    }


def llvm_tool(name: str) -> str:
    """The path of a tool that reads what Rust's programs counted."""
    found = next(sysroot().glob(f"lib/rustlib/*/bin/{name}"), None)
    if found is None:
        raise NoTool(f"{name} is not installed (rustup component add llvm-tools)")
    return str(found)


def rust_lines() -> Lines:
    merged = FOLDER / "merged.profdata"
    parts = FOLDER / "parts.txt"
    parts.write_text("\n".join(map(str, sorted((FOLDER / "data").glob("*.profraw")))))
    merge = [llvm_tool("llvm-profdata"), "merge", "-sparse", "-f", str(parts), "-o", str(merged)]
    subprocess.run([*merge, "--failure-mode=warn"], check=True, capture_output=True)
    binaries = [FOLDER / "python" / "manyboost" / "_core.abi3.so"]
    binaries += [
        path
        for path in (FOLDER / "release" / "deps").glob("manyboost_core-*")
        if path.suffix == "" and os.access(path, os.X_OK)
    ]
    objects = [part for binary in binaries[1:] for part in ("-object", str(binary))]
    command = [llvm_tool("llvm-cov"), "export", "-summary-only", f"-instr-profile={merged}"]
    found = subprocess.run(
        [*command, str(binaries[0]), *objects], check=True, capture_output=True, text=True
    )
    files = json.loads(found.stdout)["data"][0]["files"]
    return {
        each["filename"].partition("/crates/")[2]: (
            each["summary"]["lines"]["covered"],
            each["summary"]["lines"]["count"],
        )
        for each in files
        if "/crates/" in each["filename"] and ".cargo" not in each["filename"]
    }
