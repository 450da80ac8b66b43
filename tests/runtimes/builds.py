"""The runtime without Python, compiled: a library for C, and WebAssembly."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PREDICT = Path(__file__).parents[2] / "crates" / "predict"
BUILDS = Path(__file__).parents[2] / "target" / "runtimes"
# The oldest compiler that is promised, as Debian 12 has it, is asked before the newest.
DEBIAN = "/usr/bin/rustc"
HOW = "(Debian and Ubuntu: apt-get install rustc libstd-rust-dev-wasm32 lld)"


def rustc(*arguments):
    compiler = DEBIAN if Path(DEBIAN).exists() else shutil.which("rustc")
    if compiler is None:
        pytest.skip(f"no rustc on the PATH {HOW}")
    command = [compiler, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=PREDICT)


def built(name, *options):
    """The crate, compiled without Cargo, once for each version of sources and compiler."""
    options = ["--edition", "2021", "-O", "-C", "strip=symbols", *options]
    options += ["--crate-name", "manyboost_predict", "--cfg", 'feature="c"', "src/lib.rs"]
    sources = b"".join(path.read_bytes() for path in sorted((PREDICT / "src").glob("*.rs")))
    key = hashlib.sha256(sources + repr((rustc("-vV").stdout, options)).encode()).hexdigest()[:16]
    path = BUILDS / key / name
    if not path.exists():
        # Several processes may build it; the last one wins. (Libraries know their own names.)
        fresh = path.parent / str(os.getpid()) / name
        fresh.parent.mkdir(parents=True, exist_ok=True)
        done = rustc(*options, "-D", "warnings", "-o", fresh)
        if "can't find crate for `std`" in done.stderr:
            pytest.skip(f"the compiler has no standard library for WebAssembly {HOW}")
        if "linker" in done.stderr and "not found" in done.stderr:
            pytest.skip(f"the compiler has no linker {HOW}")
        assert done.returncode == 0, done.stderr
        fresh.replace(path)
    return path
