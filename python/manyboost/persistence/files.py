"""Output files: a regular file is replaced at once, anything else is written to directly."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

FilePath = str | os.PathLike[str]


@contextmanager
def replacing(path: FilePath, *, mark: str | None = None) -> Iterator[BinaryIO]:
    """Open a file for writing; readers find the old file or the complete new one.

    Symbolic links are followed: the file they point to is replaced, and the links stay. A target
    that is not a regular file, such as a pipe or a device, is opened and written to directly.
    ``mark`` is part of the name of the temporary file, which stays behind if the process is killed
    and is overwritten by the next call with the same mark; by default it is a random text. Errors
    name ``path``, not the temporary file.
    """
    status = status_of(path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        with Path(path).open("wb") as file:
            yield file
        return
    target = Path(path).resolve()
    # (Names of files have up to 255 bytes.)
    start = os.fsdecode(os.fsencode(target.name)[:200])
    temporary = target.with_name(f".{start}.{mark or secrets.token_hex(8)}.tmp")
    try:
        # What is left of an earlier call, or lies in wait: a link must not be followed.
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if status is not None:
            temporary.chmod(stat.S_IMODE(status.st_mode))
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        if error.filename != str(temporary):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def same_regular_file(path: FilePath, others: Iterable[FilePath]) -> FilePath | None:
    """Return the first of ``others`` that is the same regular file, by any name or link."""
    status = status_of(path)
    if status is None or not stat.S_ISREG(status.st_mode):
        return None
    for other in others:
        found = status_of(other)
        if found is not None and os.path.samestat(status, found):
            return other
    return None


def status_of(path: FilePath) -> os.stat_result | None:
    """Return what the system knows about a file; None if there is none."""
    try:
        return Path(path).stat()
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure, on systems that can open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    # The file is there already; a folder may be one that can be written, but not read.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
