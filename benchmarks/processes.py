"""Parts of a benchmark that do not depend on each other, in processes side by side."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

Key = TypeVar("Key")


def side_by_side(
    jobs: int, work: Callable[..., Any], parts: Mapping[Key, tuple[Any, ...]]
) -> Iterator[tuple[Key, Any]]:
    """Yield (key, result) of each part as it is done; `parts` are the arguments of `work`."""
    with ProcessPoolExecutor(jobs) as pool:
        begun = {pool.submit(work, *arguments): key for key, arguments in parts.items()}
        for done in as_completed(begun):
            yield begun[done], done.result()
