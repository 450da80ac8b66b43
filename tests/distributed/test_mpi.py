"""Ranks that are processes of mpiexec."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from rank_problems import LABELS, X, Y, fingerprint

HERE = Path(__file__).parent
MPIEXEC = shutil.which(
    "mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
)
pytest.importorskip("mpi4py", reason="mpi4py is not installed")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="there is no mpiexec")


def mpiexec(size, *command, **options):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path])}
    return subprocess.run(
        [MPIEXEC, "-n", str(size), sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
        **options,
    )


def fit(fate, *cases):
    """Fit cases, (size, partition, strategy, target) each, on as many ranks as the largest."""
    size = max(case[0] for case in cases)
    return mpiexec(size, HERE / "mpi_rank.py", fate, *(",".join(map(str, case)) for case in cases))


ONE_CASE = (2, "even", "relabel", "numbers")


def test_processes_end_with_the_model_of_one_machine():
    # One start for all: most of the time goes into imports.
    cases = [
        ONE_CASE,
        (4, "uneven", "project", "labels"),
        (3, "empty", "multioutput", "numbers"),
        (2, "two", "independent", "labels"),
    ]
    done = fit("fine", *cases)
    assert done.returncode == 0, done.stderr
    expected = []
    for number, (size, _, strategy, target) in enumerate(cases):
        estimator = ManyBoostClassifier if target == "labels" else ManyBoostRegressor
        model = estimator(strategy=strategy, max_iter=4, max_leaf_nodes=7, random_state=1)
        model.fit(X, LABELS if target == "labels" else Y)
        expected += [f"{number} {fingerprint(model)}"] * size
    assert sorted(done.stdout.splitlines()) == sorted(expected)


def test_an_error_of_one_rank_ends_all_and_says_why():
    done = fit("bad row", ONE_CASE)
    assert done.returncode != 0
    assert "rank 1 of 2 failed: y has an infinite value (inf) in row 0" in done.stderr


def test_an_error_of_all_ranks_is_an_exception_on_all():
    done = fit("bad parameter", ONE_CASE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ValueError: max_iter=-1") == 2


def test_an_interrupt_of_one_rank_ends_all():
    done = fit("interrupted", ONE_CASE)
    assert done.returncode != 0
    assert "rank 0 of 2 failed: KeyboardInterrupt" in done.stderr


def test_a_rank_that_dies_ends_all():
    done = fit("die", ONE_CASE)
    assert done.returncode != 0


MANY = """
from mpi4py import MPI
from manyboost.distributed import MPIComm

world = MPI.COMM_WORLD
for k in range(2500):  # MPICH has 2,048 communicators
    comm = MPIComm()
    assert comm.total(1) == 2
    some = comm.subset([k % 2])
    assert (some is None) == (comm.rank != k % 2)
    assert some is None or (some.total(1), some.subset([0]).size) == (1, 1)
    own = world.Split(0, -world.Get_rank())
    turned = MPIComm(own)
    assert turned.gather(world.Get_rank()) == [1, 0]
    assert turned.subset([0]) is None or turned.rank == 0
    own.Free()
print("fine", flush=True)
"""


def test_there_may_be_any_number_of_them():
    done = mpiexec(2, "-c", MANY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 2
    assert done.stderr == ""


def test_the_command_line_shares_a_fit(tmp_path):
    lines = ["a,b,y1,y2"]
    lines += [f"{i % 17},{i % 5 / 4},{i % 17 * 2 + i % 5},{i % 17 - i % 5}" for i in range(200)]
    (tmp_path / "train.csv").write_text("\n".join(lines))
    command = ["-m", "manyboost", "fit", "train.csv", "--target", "y1", "y2"]
    command += ["--max-iter", "3", "--random-state", "0", "-o"]
    shared = mpiexec(2, *command, "shared.mb", cwd=tmp_path)
    assert shared.returncode == 0, shared.stderr
    assert shared.stderr.count("200 rows") == 1
    alone = [sys.executable, *command, "alone.mb", "--quiet"]
    subprocess.run(alone, cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "shared.mb").read_bytes() == (tmp_path / "alone.mb").read_bytes()
