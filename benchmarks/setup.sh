#!/usr/bin/env bash
# Makes .venv-bench at the repository's root: the peers at their newest versions, and manyboost built
# from this tree. A second call upgrades the peers and builds anew what has changed.
#   benchmarks/setup.sh           all
#   benchmarks/setup.sh peers     only the peers
#   benchmarks/setup.sh self      only manyboost
set -euo pipefail

part="${1:-all}"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$root/.venv-bench/bin/python"
pip=("$python" -m pip --quiet --disable-pip-version-check install)
unset VIRTUAL_ENV CONDA_PREFIX # they may point to another environment
unset PIP_QUIET                # the list of versions below is wanted

if [ ! -x "$python" ]; then
    "${PYTHON:-python3}" -m venv "$root/.venv-bench"
    part=all
fi
if [ "$part" != self ]; then
    "${pip[@]}" --upgrade pip
    "${pip[@]}" --upgrade --requirement "$root/benchmarks/requirements.txt"
    # Past the Python version that its metadata asks for: the wheel itself is py3-none and runs.
    # Without its dependencies: NumPy and SciPy are there, and the other is 300 MB for GPUs.
    "${pip[@]}" --upgrade --no-deps --ignore-requires-python 'xgboost>=3.4'
fi
if [ "$part" != peers ]; then
    "${pip[@]}" --no-deps "$root"
fi
"$python" -m pip --disable-pip-version-check list |
    grep -E '^(manyboost|xgboost|lightgbm|catboost|hessboost|scikit-learn|numpy) '
