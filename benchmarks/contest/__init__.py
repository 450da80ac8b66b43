"""The open benchmark for many outputs: libraries at their defaults, on real sets, ranked.

    python -m benchmarks.contest --help

A file for `--add` imports its base class from here.
"""

from benchmarks.contestants.base import Contestant, Settings, Stopwatch

__all__ = ["Contestant", "Settings", "Stopwatch"]
