"""Parts of a benchmark that do not depend on each other, in processes side by side."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

Key = TypeVar("Key")


def side_by_side(
    jobs: int, work: Callable[..., Any], parts: Mapping[Key, tuple[Any, ...]]
) -> Iterator[tuple[Key, Any]]:
    """Yield (key, result) of each part as it is done; `parts` are the arguments of `work`.

    A part that fails is raised when the others are done. An interrupt ends with the parts that have
    begun.
    """
    pool, failed = ProcessPoolExecutor(jobs), dict[Key, BaseException]()
    try:
        begun = {pool.submit(work, *arguments): key for key, arguments in parts.items()}
        for done in as_completed(begun):
            if error := done.exception():
                failed[begun[done]] = error
            else:
                yield begun[done], done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    for key, error in failed.items():
        raise RuntimeError(f"{key} failed") from error
