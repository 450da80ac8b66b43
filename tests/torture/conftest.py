"""The battery is not part of the package: it is imported from the repository's root."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
