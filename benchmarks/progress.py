"""What a long run says about itself, on the error stream."""

import sys


def say(text: str, end: str = "\n") -> None:
    sys.stderr.write(text + end)
    sys.stderr.flush()
