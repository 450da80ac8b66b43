"""The compiled core under sanitizers, valgrind, Miri and loom, and what it depends on."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable

from torture.figures import Figure, none_of, skipped
from torture.models import ROOT
from torture.native_builds import BUILDS, TARGET, NoTool, call, environment, find, sysroot

TITLE = "native code"
PROMISE = (
    "No tool that watches memory and threads finds anything to report in the compiled core, and "
    "what it depends on is little, known and free."
)

#: Tests of the code that shares memory between threads.
THREADED = ("lowlevel::", "parallel::")

LICENCES = {
    *("MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unlicense", "0BSD"),
    *("Unicode-3.0", "Apache-2.0 WITH LLVM-exception", "MIT-0", "CC0-1.0"),
}


def run(long: bool, seed: int) -> list[Figure]:
    figures = [unsafe_code(), *dependencies()]
    tools: list[tuple[str, Callable[[], tuple[int, list[str]]]]] = [
        ("AddressSanitizer, all tests of the core", address_sanitizer),
        ("ThreadSanitizer, all tests of the core", thread_sanitizer),
        ("valgrind, all tests of the core", lambda: valgrind(())),
        ("Miri, tests of threads", miri),
        ("loom, every order of what the pool's threads do", loom),
    ]
    if not long:
        tools = [("valgrind, tests of threads", lambda: valgrind(THREADED, build=False))]
    for name, tool in tools:
        what = f"{name}: reports"
        try:
            figures.append(none_of(what, *tool()))
        except NoTool as reason:
            figures.append(skipped(what, "0", str(reason)))
    return figures


# ---------------------------------------------------------------------- what can be read


def unsafe_code() -> Figure:
    """Files with unsafe code outside the folder and the functions for C that may have it."""
    may = {ROOT / "crates/predict/src" / name for name in ("ffi.rs", "lib.rs")}
    sources = [
        path
        for path in ROOT.glob("crates/*/src/**/*.rs")
        if "lowlevel" not in path.parts and path not in may
    ]
    found = [
        str(path.relative_to(ROOT))
        for path in sources
        if re.search(r"\bunsafe\s*(\{|fn|impl|extern)", path.read_text())
        or "allow(unsafe_code)" in path.read_text()
    ]
    return none_of("files with unsafe code, but for threads, SIMD and the functions for C",
                   len(sources), found)  # fmt: skip


def dependencies() -> list[Figure]:
    """Crates that the extension is made of: where they come from and their licences."""
    what = "crates that the extension is made of"
    try:
        command = [find("cargo"), "metadata", "--format-version", "1", "--locked", "--offline"]
        command += ["--filter-platform", TARGET]
        found = call(command, environment("metadata"))
    except NoTool as reason:
        return [skipped(what, "free, from crates.io", str(reason))]
    if found.returncode:
        reason = found.stderr.strip().splitlines()[-1]
        return [skipped(what, "free, from crates.io", f"cargo metadata failed: {reason}")]
    tree = json.loads(found.stdout)
    used = runtime_crates(tree)
    packages = [p for p in tree["packages"] if p["id"] in used and p["source"] is not None]
    lock = (ROOT / "Cargo.lock").read_text()
    foreign = [p["name"] for p in packages if "crates.io" not in p["source"]]
    unchecked = [
        p["name"]
        for p in packages
        if not re.search(
            rf'name = "{p["name"]}"\nversion = "{re.escape(p["version"])}"\n.*\nchecksum = ', lock
        )
    ]
    unfree = [f"{p['name']} ({p['license']})" for p in packages if not is_free(p["license"])]
    names = ", ".join(sorted(p["name"] for p in packages))
    return [
        none_of(f"{what} ({names}): not from crates.io, or without checksum",
                len(packages), foreign + unchecked),
        none_of(f"{what}: licences that are not permissive", len(packages), unfree),
    ]  # fmt: skip


def runtime_crates(tree: dict[str, object]) -> set[str]:
    """Ids of all crates that end up in the extension, or in what builds it."""
    nodes = {node["id"]: node for node in tree["resolve"]["nodes"]}  # type: ignore[index]
    packages: list[dict[str, str]] = tree["packages"]  # type: ignore[assignment]
    waiting = [p["id"] for p in packages if p["name"] == "manyboost-python"]
    found: set[str] = set()
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += [
                dependency["pkg"]
                for dependency in nodes[each]["deps"]
                if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
            ]
    return found


def is_free(licence: str | None) -> bool:
    """Whether one of the licences to choose from is permissive, all its parts."""
    choices = re.split(r" OR |/", (licence or "").replace("(", "").replace(")", ""))
    return any(all(part in LICENCES for part in choice.split(" AND ")) for choice in choices)


# ---------------------------------------------------------------------- what must be run

_REPORT = re.compile(
    r"ERROR: \w*Sanitizer.*|WARNING: ThreadSanitizer.*|error: Undefined Behavior.*"
    r"|thread '.*' panicked at .*|test .* \.\.\. FAILED|error: could not compile .*"
)


def verdict(process: subprocess.CompletedProcess[str]) -> tuple[int, list[str]]:
    """Tests that ran, and reports of the tool."""
    said = process.stdout + process.stderr
    tests = sum(int(count) for count in re.findall(r"running (\d+) tests?", said))
    reports = _REPORT.findall(said)
    # (Tests of what happens when a worker panics show a panic and pass.)
    reports = [r for r in reports if "panicked" not in r or process.returncode]
    if process.returncode and not reports:
        last = process.stderr.strip().splitlines()[-1:] or ["no output"]
        raise NoTool(f"it does not run here: {last[0]}")
    return tests, reports


def cargo_test(name: str, *arguments: str, **variables: str) -> tuple[int, list[str]]:
    command = [find("cargo"), "test", "-p", "manyboost-core", "--lib", "--target", TARGET]
    # A test asks for more memory than there is, and wants to be refused.
    refused = {f"{tool}_OPTIONS": "allocator_may_return_null=1" for tool in ("ASAN", "TSAN")}
    own = {"RUSTC_BOOTSTRAP": "1", "CARGO_PROFILE_DEV_OPT_LEVEL": "1"}
    variables = {**own, **refused, **variables}
    return verdict(call([*command, *arguments], environment(name, **variables)))


def address_sanitizer() -> tuple[int, list[str]]:
    return cargo_test("address", RUSTFLAGS="-Zsanitizer=address")


def thread_sanitizer() -> tuple[int, list[str]]:
    """With a standard library of its own: the locks of an unwatched one look like races."""
    if not (sysroot() / "lib" / "rustlib" / "src").is_dir():
        raise NoTool("the sources of Rust's library are missing (rustup component add rust-src)")
    return cargo_test("thread", "-Zbuild-std", RUSTFLAGS="-Zsanitizer=thread")


def valgrind(modules: tuple[str, ...], *, build: bool = True) -> tuple[int, list[str]]:
    """The tests in a build with optimisation, as it is delivered."""
    tool = find("valgrind")
    if build:
        command = [find("cargo"), "test", "--profile", "profiling", "-p", "manyboost-core"]
        made = call([*command, "--lib", "--no-run"], environment("valgrind"))
        if made.returncode:
            raise NoTool(made.stderr.strip().splitlines()[-1])
    folders = [BUILDS / "valgrind" / "profiling" / "deps", ROOT / "target" / "release" / "deps"]
    found = [path for folder in folders for path in folder.glob("manyboost_core-*")]
    binaries = [path for path in found if path.suffix == "" and os.access(path, os.X_OK)]
    if not binaries:
        raise NoTool("the tests of the core are not built")
    binary = max(binaries, key=lambda path: path.stat().st_mtime)
    command = [tool, "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    # Threads of a pool spin for a moment before they sleep: each must get its turn.
    command += ["--fair-sched=yes", str(binary), "--test-threads=1", *modules]
    process = call(command, environment("valgrind"))
    said = process.stdout + process.stderr
    tests = sum(int(count) for count in re.findall(r"running (\d+) tests?", said))
    summary = re.search(r"ERROR SUMMARY: (\d+) errors.*", said)
    if summary is None:
        raise NoTool(f"valgrind does not run here: {said.strip().splitlines()[-1]}")
    failed = re.findall(r"test .* \.\.\. FAILED", said)
    return tests, failed + ([summary.group(0)] if int(summary.group(1)) else [])


def miri() -> tuple[int, list[str]]:
    command = [find("cargo"), "+nightly", "miri", "test", "-p", "manyboost-core", "--lib", "--"]
    flags = "-Zmiri-disable-isolation -Zmiri-ignore-leaks"
    env = environment("miri", MIRIFLAGS=flags, MANYBOOST_SIMD="portable")
    # Miri does not support files that are mapped into memory.
    process = call([*command, *THREADED, "--skip", "lowlevel::map::"], env, seconds=5400)
    if "is not installed" in process.stderr or "no such command" in process.stderr:
        raise NoTool("Miri is not installed (rustup +nightly component add miri rust-src)")
    return verdict(process)


def loom() -> tuple[int, list[str]]:
    command = [find("cargo"), "test", "--release"]
    env = environment("loom", RUSTFLAGS="--cfg loom")
    return verdict(call(command, env, ROOT / "torture" / "native" / "handover", seconds=5400))
