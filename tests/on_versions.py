"""Run the quick part of the suite with an installed wheel, on all versions of Python here.

    python tests/on_versions.py dist                     all of them
    python tests/on_versions.py --this dist              this one
    python tests/on_versions.py --dependencies oldest …  with the oldest dependencies allowed

Without a word about dependencies, every version gets the newest ones, and the oldest version the
oldest ones too. Each has an environment of its own, in .venv-versions.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLDEST = (3, 10)
QUICK = [
    *("tests/test_core.py", "tests/test_reference.py", "tests/test_threads.py"),
    *("tests/persistence/test_round_trip.py", "tests/persistence/test_stored_files.py"),
    *("tests/estimators/test_predicting.py", "tests/data/test_sparse.py"),
]
NEEDED = ["numpy", "scipy", "scikit-learn"]
# What these tests use besides.
BESIDES = ["pandas", "polars", "narwhals", "pytest", "hypothesis"]
PROGRAMS = "Scripts" if os.name == "nt" else "bin"


def interpreters():
    """Programs by version, from the PATH and from pyenv, the oldest first."""
    candidates = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], 40)]
    candidates += sorted(Path.home().glob(".pyenv/versions/*/bin/python3"))
    found = {}
    for program in filter(None, candidates):
        ask = "import sys; print(sys.implementation.name, *sys.version_info[:2])"
        done = subprocess.run([program, "-c", ask], capture_output=True, text=True, check=False)
        name, *version = done.stdout.split() or [""]
        version = tuple(map(int, version))
        if done.returncode == 0 and name == "cpython" and version >= OLDEST:
            found.setdefault(version, program)
    return dict(sorted(found.items()))


def requirements(dependencies):
    """What pip is to install beside the wheel."""
    if dependencies != "oldest":
        return [*NEEDED, *BESIDES]
    text = (ROOT / "pyproject.toml").read_text()

    def pinned(name):
        bound = re.search(rf'"{name}>=([\d.]+)"', text)[1]
        return f"{name}=={bound}" + ("" if bound.count(".") > 1 else ".*")

    return [*map(pinned, [*NEEDED, "pandas", "polars", "narwhals"]), "pytest", "hypothesis"]


def run(program, version, dependencies, wheel):
    """Make an environment and run the tests in it; whether they passed."""
    folder = ROOT / ".venv-versions" / f"{'.'.join(map(str, version))}-{dependencies}"
    print(f"Python {folder.name}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([program, "-m", "venv", folder], check=True)
    python = folder / PROGRAMS / "python"
    options = ["--quiet", "--disable-pip-version-check"]
    options += ["--pre"] if dependencies == "unreleased" else ["--prefer-binary"]
    command = [python, "-m", "pip", "install", *options, wheel, *requirements(dependencies)]
    subprocess.run(command, check=True)
    # Unreleased packages announce what they will change.
    warnings = ["-W", "default"] if dependencies == "unreleased" else []
    command = [python, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *warnings, *QUICK]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of the wheel")
    parser.add_argument("--this", action="store_true", help="this version of Python only")
    parser.add_argument("--dependencies", choices=["oldest", "newest", "unreleased"])
    options = parser.parse_args()
    (wheel,) = options.folder.glob("*abi3*.whl")
    this = {sys.version_info[:2]: sys.executable}
    found = this if options.this else interpreters()
    runs = [(version, options.dependencies or "newest") for version in found]
    if not options.dependencies and not options.this:
        runs.insert(0, (min(found), "oldest"))
    failed = [each for each in runs if not run(found[each[0]], *each, wheel.resolve())]
    for version, dependencies in failed:
        print(f"failed: Python {version[0]}.{version[1]}, {dependencies} dependencies")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
