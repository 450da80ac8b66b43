#!/usr/bin/env bash
# Makes .venv-bench at the repository's root: the peers at the versions that the requirements name, and
# manyboost built from this tree. A second call installs what they name since, and builds anew what has changed.
#   benchmarks/setup.sh           all
#   benchmarks/setup.sh peers     only the peers
#   benchmarks/setup.sh self      only manyboost
set -euo pipefail

part="${1:-all}"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="$root/.venv-bench/bin/python"
pip=("$python" -m pip --quiet --disable-pip-version-check install)
unset VIRTUAL_ENV CONDA_PREFIX PYO3_PYTHON # they may point to another environment
unset PIP_QUIET                # the list of versions below is wanted

if [ ! -x "$python" ]; then
    "${PYTHON:-python3}" -m venv "$root/.venv-bench"
    part=all
fi
if [ "$part" != self ]; then
    "${pip[@]}" --upgrade pip
    "${pip[@]}" --requirement "$root/benchmarks/requirements.txt"
    "${pip[@]}" --no-deps --ignore-requires-python \
        --requirement "$root/benchmarks/requirements-unchecked.txt"
fi
if [ "$part" != peers ]; then
    "${pip[@]}" --no-deps "$root"
fi
"$python" -m pip --disable-pip-version-check list |
    grep -E '^(manyboost|xgboost|lightgbm|catboost|hessboost|mlrl-boomer|scikit-learn|numpy) '
