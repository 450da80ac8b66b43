"""Whether a refusal is clear: one sentence, meant for the user, of the right type."""

from __future__ import annotations

import ast
import functools
import traceback
from pathlib import Path

from manyboost.errors import RowError

# scikit-learn's own words, over several lines, which its estimator checks ask for.
_KEPT_WORDS = ("The feature names should match those that were passed during fit.",)
_AUTHORS = ("manyboost", "sklearn/utils")


class UnclearError(Exception):
    """A refusal that a user could not make use of."""


def check_refusal(error: Exception) -> None:
    """Raise :class:`UnclearError` for an error that is not a clear refusal."""
    if type(error) not in (ValueError, TypeError, RowError):
        raise UnclearError(f"a {type(error).__name__}, from {_origin(error)}: {error}") from error
    text = _origin(error)
    sentence = str(error)
    if any(sentence.partition(": ")[2].startswith(words) for words in _KEPT_WORDS):
        sentence = sentence.partition(": ")[2]
    if sentence.startswith(_KEPT_WORDS):
        return
    if not _was_raised(error):
        raise UnclearError(f"not raised on purpose, from {text}: {error}") from error
    if not sentence.endswith((".", "?")) or "\n" in sentence or ". " in sentence:
        raise UnclearError(f"not one sentence, from {text}: {error}") from error


def _frame(error: BaseException) -> traceback.FrameSummary:
    return traceback.extract_tb(error.__traceback__)[-1]


def _origin(error: BaseException) -> str:
    frame = _frame(error)
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _was_raised(error: BaseException) -> bool:
    """Whether the error comes from a raise statement of manyboost, or of scikit-learn's checks."""
    frame = _frame(error)
    path = frame.filename.replace("\\", "/")
    return any(author in path for author in _AUTHORS) and frame.lineno in _raise_lines(path)


@functools.cache
def _raise_lines(path: str) -> frozenset[int]:
    """Lines of a file that belong to raise statements."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(Path(path).read_text())):
        if isinstance(node, ast.Raise):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)
