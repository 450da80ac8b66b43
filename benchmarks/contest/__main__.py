"""Every library at its defaults, 1000 rounds at most, early stopping: who predicts best.

    python -m benchmarks.contest
    python -m benchmarks.contest --sets emotions yeast --contestants manyboost lightgbm
    python -m benchmarks.contest --add my_model.py
    python -m benchmarks.contest --report

Every fit in its own process; results/contest.json is kept current and an interrupted run resumes.
docs/contest.md is written from it at the end, or at once with --report. Needs the data folder.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.contest import added, page
from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contest.running import CAP, Plan
from benchmarks.contest.sets import SETS
from benchmarks.progress import say
from benchmarks.records import Run
from benchmarks.result_files import Refused, Results
from benchmarks.run import MEMORY
from benchmarks.suites import THREADS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "contest.json"
PAGE = ROOT / "docs" / "contest.md"


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    if not options.report:
        try:
            planned(options).run(opened(options), mixed=bool(options.add or options.elsewhere))
        except Refused as refused:
            sys.exit(str(refused))
        except KeyboardInterrupt:
            sys.exit("\ninterrupted; the same command resumes from here")
    if not options.results.is_file():
        sys.exit(f"{options.results} does not exist: there is nothing to report")
    page.write(Run.read(options.results), options.results.name, options.page)
    say(f"wrote {options.page}")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.contest", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument(
        "--add", type=Path, metavar="FILE", help="run the contestants of a file instead"
    )
    parser.add_argument("--cap", type=float, default=CAP, help="seconds of each fit at most")
    parser.add_argument("--repeats", type=int, help="at most so many repeats")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument(
        "--memory", type=float, default=MEMORY, help="gigabytes of each fit at most"
    )
    parser.add_argument("--fresh", action="store_true", help="forget the records of earlier runs")
    parser.add_argument(
        "--elsewhere",
        action="store_true",
        help="keep what another machine measured of a set; such times are marked, not compared",
    )
    parser.add_argument("--report", action="store_true", help="write the page, run nothing")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    return parser.parse_args(arguments)


def planned(options: argparse.Namespace) -> Plan:
    if options.add:
        contestants = added.read(options.add)
    else:
        contestants = {
            name: CONTESTANTS[name] for name in CONTESTANTS if name in options.contestants
        }
    limits = (options.cap, options.repeats, options.threads, options.memory)
    return Plan(options.sets, contestants, *limits, file=options.add)


def opened(options: argparse.Namespace) -> Results:
    return Results(options.results, fresh=options.fresh, keep_outdated=bool(options.add))


if __name__ == "__main__":
    main(sys.argv[1:])
