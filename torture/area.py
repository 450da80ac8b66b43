"""One area in this process: `python -m torture.area NAME LONG SEED FILE`."""

import faulthandler
import json
import sys
from dataclasses import asdict
from pathlib import Path

from torture import areas


def main() -> None:
    name, long, seed, file = sys.argv[1:]
    faulthandler.enable()
    figures = areas.find(name).run(long=bool(int(long)), seed=int(seed))
    Path(file).write_text(json.dumps([asdict(figure) for figure in figures]))


if __name__ == "__main__":
    main()
