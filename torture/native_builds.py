"""Builds of the core that watch themselves: sanitizers, a fuzzer, loom, valgrind, Miri.

Each has a folder of its own under target/torture. What is not installed is a :class:`NoTool` that
says what it takes.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from torture.models import ROOT

TARGET = "x86_64-unknown-linux-gnu"
BUILDS = ROOT / "target" / "torture"


class NoTool(Exception):
    """Something that is not installed here."""


def environment(name: str, **variables: str) -> dict[str, str]:
    """Variables of a build of its own; rustup's folder is often missing from the path."""
    path = os.pathsep.join([os.environ.get("PATH", ""), str(Path.home() / ".cargo" / "bin")])
    # What the extension is built with is not what the core's tests are built with.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CARGO_", "RUSTFLAGS"))}
    own = {"PATH": path, "CARGO_TARGET_DIR": str(BUILDS / name), "CARGO_TERM_COLOR": "never"}
    return {**kept, **own, **variables}


def find(tool: str) -> str:
    """The path of a program."""
    found = shutil.which(tool, path=environment("")["PATH"])
    if found is None:
        raise NoTool(f"{tool} is not installed")
    return found


def call(
    command: list[str], env: dict[str, str], folder: Path = ROOT, seconds: float = 3600.0
) -> subprocess.CompletedProcess[str]:
    """Run a command and keep what it says; :class:`NoTool` if it does not end."""
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise NoTool(f"{command[0]} did not end within {seconds:,.0f} s") from None


@functools.cache
def sysroot() -> Path:
    """Where the toolchain is."""
    env = environment("")
    return Path(call([find("rustc"), "--print", "sysroot"], env).stdout.strip())


def fuzzer(*, build: bool) -> Path:
    """The binary of the fuzz target; built if need be, or :class:`NoTool`."""
    binary = BUILDS / "fuzz" / TARGET / "release" / "model_arrays"
    if not build:
        if not binary.is_file():
            raise NoTool("not built; the long run builds it")
        return binary
    find("c++")
    passes = "-Cpasses=sancov-module -Ccodegen-units=1 --cfg fuzzing"
    options = ("level=4", "inline-8bit-counters", "pc-table", "trace-compares")
    coverage = " ".join(f"-Cllvm-args=-sanitizer-coverage-{option}" for option in options)
    env = environment(
        "fuzz", RUSTC_BOOTSTRAP="1", RUSTFLAGS=f"-Zsanitizer=address {passes} {coverage}"
    )
    command = [find("cargo"), "build", "--release", "--target", TARGET]
    made = call(command, env, ROOT / "fuzz")
    if made.returncode:
        raise NoTool(f"the fuzz target does not build: {made.stderr.strip().splitlines()[-1]}")
    return binary
