"""Run areas of the battery one after the other, then write the page.

python -m torture                       all areas, the long version (hours)
python -m torture interrupt load        these areas
python -m torture --short --seed 7      all areas, seconds each, another seed

Each area runs in a process of its own under a watchdog. A long run's results are kept when a short
one follows.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from torture import areas, report, results
from torture.figures import Figure

ROOT = Path(__file__).resolve().parent.parent
SECONDS_LONG, SECONDS_SHORT = 2 * 3600.0, 600.0  # after which the watchdog ends an area


def main() -> None:
    options = parse(sys.argv[1:])
    long = not options.short
    failing = 0
    for name in options.areas or areas.names():
        area = areas.find(name)
        print(f"{area.TITLE}: {area.PROMISE}", flush=True)
        began = time.monotonic()
        figures = run_watched(name, long, options.seed)
        seconds = time.monotonic() - began
        for figure in figures:
            print(f"  {figure.line()}", flush=True)
        failing += sum(figure.holds is False for figure in figures)
        if not results.store(options.results, name, figures, seconds, long, options.seed):
            print("  (not stored: the file holds a long run)")
    report.write(options.results, options.page)
    print(f"wrote {options.page}")
    sys.exit(f"{failing} figures do not hold" if failing else 0)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__.split("\n")[0])
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"of {', '.join(areas.names())}")
    parser.add_argument("--short", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=results.FOLDER)
    parser.add_argument("--page", type=Path, default=report.PAGE)
    options = parser.parse_args(arguments)
    if unknown := set(options.areas) - set(areas.names()):
        parser.error(f"unknown areas: {', '.join(sorted(unknown))}")
    return options


def run_watched(name: str, long: bool, seed: int) -> list[Figure]:
    """The figures of an area; that it did not come to its end is a figure as well."""
    limit = getattr(areas.find(name), "SECONDS", SECONDS_LONG) if long else SECONDS_SHORT
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        process = subprocess.Popen(
            [sys.executable, "-m", "torture.area", name, str(int(long)), str(seed), str(file)],
            cwd=ROOT,
            start_new_session=True,  # so that its children end with it
        )
        try:
            code = process.wait(limit)
            how = f"exit code {code}" if code >= 0 else f"ended by {signal.Signals(-code).name}"
        except subprocess.TimeoutExpired:
            how = f"still running after {limit:.0f} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        figures = results.read_figures(file) if file.is_file() else []
    if how != "exit code 0":
        figures.append(Figure("the area itself", "comes to its end", how, False))
    return figures


if __name__ == "__main__":
    main()
