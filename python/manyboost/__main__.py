"""The command line as ``python -m manyboost``."""

import sys

from manyboost.cli import main

if __name__ == "__main__":
    sys.exit(main())
