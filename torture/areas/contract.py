"""scikit-learn's own checks, with the oldest versions that are supported and with the newest."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import manyboost
from torture.figures import Figure, skipped
from torture.models import ROOT, STRATEGIES

TITLE = "estimator contract"
PROMISE = (
    "Both estimators pass all of scikit-learn's checks, with the oldest and the newest version "
    "that are supported; none is expected to fail."
)

WHAT, BAR = "checks passed with {}", "all, none expected to fail"


def run(long: bool, seed: int) -> list[Figure]:
    if not long:
        return [figure_of(sys.executable, "the installed versions", "1")]
    oldest, newest = requirements()
    return [
        in_environment("oldest", oldest_python(), oldest),
        in_environment("newest", sys.executable, newest),
    ]


def requirements() -> tuple[list[str], list[str]]:
    """The oldest versions of what the package needs, and the newest."""
    text = (ROOT / "pyproject.toml").read_text()
    (line,) = re.findall(r"^dependencies = \[(.*)\]$", text, re.MULTILINE)
    needed = re.findall(r'"([^"]+)"', line)
    return [need.replace(">=", "==") + ".*" for need in needed], needed


def oldest_python() -> str:
    """The oldest Python that is supported, if it is installed; else this one."""
    text = (ROOT / "pyproject.toml").read_text()
    (version,) = re.findall(r'^requires-python = ">=(.*)"$', text, re.MULTILINE)
    folders = [*Path.home().glob(f".pyenv/versions/{version}.*/bin")]
    found = [str(folder / f"python{version}") for folder in folders]
    for python in [shutil.which(f"python{version}"), *found]:
        if python and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
            return python
    return sys.executable


def in_environment(name: str, python: str, needed: list[str]) -> Figure:
    """The checks in an environment of their own, which is kept for the next time."""
    folder = ROOT / f".venv-contract-{name}"
    own = folder / "bin" / "python"
    try:
        if not own.exists():
            subprocess.run([python, "-m", "venv", folder], check=True, capture_output=True)
        install = [own, "-m", "pip", "install", "--quiet", "--upgrade", *needed]
        subprocess.run(install, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        reason = str(error.stderr).strip().rpartition("\n")[2]
        return skipped(WHAT.format(f"the {name} versions"), BAR, f"no environment: {reason}")
    return figure_of(own, f"the {name}", str(len(STRATEGIES)))


def figure_of(python: Any, which: str, n_strategies: str) -> Figure:
    home = str(Path(manyboost.__file__).parent.parent)
    done = subprocess.run(
        [python, "-m", "torture.areas.contract", n_strategies],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": home},
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0:
        return Figure(WHAT.format(which), BAR, f"ended with code {done.returncode}", False)
    found = json.loads(done.stdout.splitlines()[-1])
    total = sum(found["counts"].values())
    passed = found["counts"].get("passed", 0)
    # Checks that ask for packages or settings that are not there skip themselves.
    left_out = found["counts"].get("skipped", 0)
    value = f"{passed} of {total - left_out}"
    if left_out:
        value += f" ({left_out} do not apply)"
    if found["others"]:
        value += f"; the first that did not: {found['others'][0]}"
    what = WHAT.format(f"{which}: {found['versions']}")
    return Figure(what, BAR, value, not found["others"], total)


def checks(n_strategies: int) -> dict[str, Any]:
    """All checks of both estimators, and what became of them."""
    import platform
    import warnings

    import numpy
    import scipy
    import sklearn
    from sklearn.utils.estimator_checks import check_estimator

    from manyboost import ManyBoostClassifier, ManyBoostRegressor

    warnings.simplefilter("ignore")
    counts: dict[str, int] = {}
    others = []
    small = {"min_samples_leaf": 1, "max_leaf_nodes": 4}
    for kind in (ManyBoostRegressor, ManyBoostClassifier):
        for strategy in STRATEGIES[-n_strategies:]:
            for parameters in ({}, small) if n_strategies > 1 else ({},):
                model = kind(strategy=strategy, **parameters)
                for result in check_estimator(model, on_fail=None, on_skip=None):
                    status = result["status"]
                    counts[status] = counts.get(status, 0) + 1
                    if status not in ("passed", "skipped"):
                        what = f"{model!r}: {result['check_name']}: {result['exception']!r}"
                        others.append(what)
    libraries = {"scikit-learn": sklearn, "NumPy": numpy, "SciPy": scipy}
    versions = ", ".join(f"{name} {library.__version__}" for name, library in libraries.items())
    versions += f", Python {platform.python_version()}"
    return {"counts": counts, "others": others, "versions": versions}


if __name__ == "__main__":
    print(json.dumps(checks(int(sys.argv[1]))))
