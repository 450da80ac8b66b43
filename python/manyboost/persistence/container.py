"""Named arrays and a JSON header in one file, with a checksum over all of it.

Layout, little-endian (docs/model-format.md): magic, version, length of the header, header, arrays,
checksum. There is one way to write given contents, and the reader refuses all others. Sizes are
compared with the size of the file before anything is allocated. Nothing in a file is executed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

AnyArray: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, AnyArray]

MAGIC = b"\x89MBOOST\n"
#: The latest version of the format.
VERSION = 6

# Arrays that came with the fourth version, one of each group.
_FOURTH = ("sigmoid_slopes", "isotonic_counts", "hierarchy_children", "group_codes")
_PREFIX = struct.Struct("<8sII")
_ALIGNMENT = 64
_CHECKSUM_BYTES = 32
DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
_LARGEST_HEADER = 1 << 26
_DEEPEST_HEADER = 24
_MOST_LISTS = 1 << 20  # and objects of a header: an empty one takes 50 times its two bytes
_MOST_DIMENSIONS = 8
_MOST_COLUMNS = 1 << 32
_LONGEST_INTEGER = 20


class BrokenFileError(ValueError):
    """Bytes that are not a sound file; the message says why."""


def broken(why: str) -> NoReturn:
    """Refuse a file."""
    raise BrokenFileError(why)


# ---------------------------------------------------------------------- packing


def pack(header: Mapping[str, Any], arrays: Arrays) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces, so that there is no copy of it in memory."""
    checksum = hashlib.blake2b(digest_size=_CHECKSUM_BYTES)
    for part in _content(header, arrays):
        checksum.update(part)
        yield part
    yield checksum.digest()


def _content(header: Mapping[str, Any], arrays: Arrays) -> Iterator[bytes]:
    text = _described_header(header, arrays)
    prefix = _PREFIX.pack(MAGIC, version_of(header, arrays), len(text))
    yield prefix + text + _padding(_PREFIX.size + len(text))
    for name in sorted(arrays):
        yield _little_endian(arrays[name]).tobytes()
        yield _padding(arrays[name].nbytes)


def version_of(header: Mapping[str, Any], arrays: Container[str]) -> int:
    """Return the version of the format that contents need, the oldest that has all of them.

    Means of models came with the second version, cuts in double precision with the third,
    calibrators, hierarchies of labels and rare categories with the fourth, several columns of
    classes with the fifth, leaves of a few outputs with the sixth.
    """
    if "leaf_outputs" in arrays:
        return 6
    if isinstance(targets := header.get("targets"), dict) and targets.get("kind") == "columns":
        return 5
    if any(name in arrays for name in _FOURTH):
        return 4
    if "cut_values" in arrays:
        return 3
    return 2 if "n_members" in header else 1


def size(header: Mapping[str, Any], arrays: Arrays) -> int:
    """Return the number of bytes that a file has."""
    start = _aligned(_PREFIX.size + len(_described_header(header, arrays)))
    return start + sum(_aligned(array.nbytes) for array in arrays.values()) + _CHECKSUM_BYTES


def _described_header(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    text = _dump({**header, "arrays": _layout(arrays)})
    n_lists, is_long = _n_lists(text), len(text) > _LARGEST_HEADER
    if is_long or n_lists > _MOST_LISTS or _is_deeper(header, _DEEPEST_HEADER):
        what = f"The names and parameters of the model take {len(text)} bytes and {n_lists} lists"
        limits = f"{_LARGEST_HEADER} bytes, {_MOST_LISTS} lists and {_DEEPEST_HEADER} levels"
        problem = f"{what}, or nest too deeply"
        raise ValueError(f"{problem}; use shorter ones: a model file holds {limits}.")
    return text


def _n_lists(text: bytes) -> int:
    """Return how many lists and objects a header may begin; brackets in texts count too."""
    return text.count(b"[") + text.count(b"{")


def _layout(arrays: Arrays) -> dict[str, dict[str, Any]]:
    """Describe the arrays; offsets start after the padding of the header."""
    layout, offset = {}, 0
    for name, array in sorted(arrays.items()):
        dtype, shape = array.dtype.newbyteorder("<").str, list(array.shape)
        layout[name] = {"dtype": dtype, "length": array.nbytes, "offset": offset, "shape": shape}
        offset += _aligned(array.nbytes)
    return layout


def _little_endian(array: AnyArray) -> AnyArray:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _padding(size: int) -> bytes:
    return bytes(_aligned(size) - size)


def _dump(header: Any) -> bytes:
    """Canonical JSON: sorted keys, no spaces, ASCII."""
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


# ---------------------------------------------------------------------- unpacking


def read(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a regular file."""
    with Path(path).open("rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            broken("it is not a regular file")
        return file.read(status.st_size)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return header and arrays, which are views of ``data``; refuse anything else."""
    if data[: len(MAGIC)] != MAGIC[: len(data)] or not data:
        broken("it does not begin like a manyboost model file")
    if len(data) < _PREFIX.size + _CHECKSUM_BYTES:
        broken("it is cut short")
    _, version, length = _PREFIX.unpack_from(data)
    if not 1 <= version <= VERSION:
        broken(
            f"it has format version {version}, but this release reads versions up to {VERSION}; "
            "use a newer release of manyboost"
        )
    start = _aligned(_PREFIX.size + length)
    if length > _LARGEST_HEADER or start + _CHECKSUM_BYTES > len(data):
        broken(f"it is cut short, or the length of its header, {length} bytes, is wrong")
    view = memoryview(data)
    body, checksum = view[:-_CHECKSUM_BYTES], view[-_CHECKSUM_BYTES:]
    if hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest() != checksum:
        broken("its checksum is wrong: bytes were changed, lost or added")
    end = _PREFIX.size + length
    header = _parse(data[_PREFIX.size : end])
    layout = header.get("arrays")
    if version != version_of(header, layout if isinstance(layout, dict) else ()):
        broken(f"it has format version {version}, which is not that of its contents")
    _check_padding(body[end:start])
    return header, _arrays(header.pop("arrays", None), body[start:])


def _parse(text: bytes) -> dict[str, Any]:
    if _n_lists(text) > _MOST_LISTS:
        broken(f"its header has more than {_MOST_LISTS} lists and objects")
    try:
        header = json.loads(text, parse_int=_integer)
        canonical = _dump(header) == text
    except (ValueError, RecursionError):
        canonical = False
    if not canonical:
        broken("its header is not JSON in canonical form")
    if not isinstance(header, dict) or _is_deeper(header, _DEEPEST_HEADER):
        broken("its header is not an object, or nested too deeply")
    return header


def _integer(digits: str) -> int:
    # A number of a million digits takes minutes to read.
    if len(digits) > _LONGEST_INTEGER:
        raise ValueError("a number of too many digits")
    return int(digits)


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and dicts are nested more than ``levels`` deep."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


def _arrays(layout: Any, body: memoryview) -> dict[str, AnyArray]:
    """Return views of the arrays of a layout, which must fill ``body``."""
    if not isinstance(layout, dict):
        broken("its header describes no arrays")
    arrays, offset = {}, 0
    for name in sorted(layout):
        dtype, shape = _type_and_shape(name, layout[name], len(body))
        end = offset + math.prod(shape) * dtype.itemsize
        if end > len(body):
            broken(f"its array {name!r} has a length that does not fit the file")
        array = np.frombuffer(body[offset:end], dtype).reshape(shape)
        arrays[name] = array if dtype.isnative else array.astype(dtype.newbyteorder("="))
        offset = _aligned(end)
        _check_padding(body[end:offset])
    if offset != len(body):
        broken("it has bytes that belong to no array, or arrays that are cut short")
    # Compared as text, in which true is not 1.
    if _dump(layout) != _dump(_layout(arrays)):
        broken("its arrays have lengths or offsets that do not fit their shapes")
    return arrays


def _type_and_shape(name: str, array: Any, size: int) -> tuple[np.dtype[Any], list[int]]:
    if not isinstance(array, dict) or array.get("dtype") not in DTYPES:
        broken(f"its array {name!r} has a type which is not allowed")
    shape = array.get("shape")
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        broken(f"its array {name!r} has no shape")
    # A million empty rows would take time: only the first dimension of an empty array may be 0.
    most = _MOST_COLUMNS if shape[:1] == [0] else size
    possible = all(type(n) is int and 0 <= n <= most for n in shape)
    if not possible or math.prod(shape[1:]) > _MOST_COLUMNS:
        broken(f"its array {name!r} has an impossible shape")
    return np.dtype(array["dtype"]), shape


def _check_padding(padding: memoryview) -> None:
    if any(padding):
        broken("it has something between its arrays")
