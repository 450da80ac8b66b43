"""The entries of a file, each declared once: how it is written, and what is allowed when reading.

A kind of file is a list of :class:`Field` (entries of the header) and :class:`Array`.
:func:`collect` writes such a list, :class:`Contents` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from manyboost.persistence import container
from manyboost.persistence.container import AnyArray, broken
from manyboost.persistence.values import Decoder


class Field(NamedTuple):
    """An entry of the header.

    ``allowed`` is a type, several types, a range of integers, or a set of texts. ``get`` returns
    the entry from the source of a file; an ``optional`` one is absent if it is None.
    """

    name: str
    allowed: type | tuple[type, ...] | range | frozenset[str]
    get: Callable[[Any], Any]
    optional: bool = False


class Array(NamedTuple):
    """An array of a file.

    ``shape`` has a word for each dimension: a number, ``*`` for any number, or a letter. The same
    letter stands for the same number in all arrays. An ``optional`` array is absent if ``get``
    returns None. If not ``copied``, it keeps the bytes of the whole file in memory.
    """

    name: str
    dtype: str
    shape: str
    get: Callable[[Any], Any]
    optional: bool = False
    copied: bool = True


def collect(
    source: Any, fields: Iterable[Field], arrays: Iterable[Array]
) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return header and arrays of a file; fields add to ``source.encoder.arrays``."""
    entries = [(field, field.get(source)) for field in fields]
    header = {field.name: v for field, v in entries if not (field.optional and v is None)}
    given = {array: array.get(source) for array in arrays}
    stored = {a.name: np.asarray(v, a.dtype) for a, v in given.items() if v is not None}
    return header, stored | {f"value_{k:06d}": v for k, v in enumerate(source.encoder.arrays)}


class Contents:
    """A file that is being read: every entry must be asked for, and have an allowed value.

    ``found`` has the entries that were read, by name, and None for absent ones.
    """

    def __init__(self, data: bytes) -> None:
        self.header, self.arrays = container.unpack(data)
        self.found = SimpleNamespace()
        self._sizes: dict[str, int] = {}
        names = sorted(name for name in self.arrays if name.startswith("value_"))
        if names != [f"value_{k:06d}" for k in range(len(names))]:
            broken("its arrays of parameters are not numbered")
        self._decoder = Decoder([self.arrays.pop(name) for name in names])
        self.decode = self._decoder.decode

    def read(self, fields: Iterable[Field], arrays: Iterable[Array] = ()) -> SimpleNamespace:
        """Read some entries; return all that were read so far."""
        for field in fields:
            setattr(self.found, field.name, self._field(field))
        if arrays:
            d, kind = self.found.n_outputs, self.found.kind
            self._sizes |= {"d": d, "p": self.found.n_features, "w": d if kind == "vector" else 1}
        for array in arrays:
            setattr(self.found, array.name, self._array(array))
        return self.found

    def done(self) -> None:
        """Refuse entries that were not asked for."""
        self._decoder.done()
        for name in [*self.header, *self.arrays]:
            broken(f"it has {name!r}, which this release does not know")

    def _field(self, field: Field) -> Any:
        name, allowed = field.name, field.allowed
        if name not in self.header:
            return None if field.optional else broken(f"it has no {name!r}")
        value = self.header.pop(name)
        types: Any = allowed
        if isinstance(allowed, range | frozenset):
            types = int if isinstance(allowed, range) else str
        # True is an integer to Python.
        if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
            broken(f"its {name!r} has the type {type(value).__name__}")
        if isinstance(allowed, range) and value not in allowed:
            broken(f"its {name!r} is {value}, beyond {allowed.start} to {allowed.stop - 1}")
        if isinstance(allowed, frozenset) and value not in allowed:
            broken(f"its {name!r} is {value!r}, which this release does not know")
        return value

    def _array(self, array: Array) -> AnyArray | None:
        name = array.name
        if name not in self.arrays:
            return None if array.optional else broken(f"it has no array {name!r}")
        values, words = self.arrays.pop(name), array.shape.split()
        fits = values.dtype == np.dtype(array.dtype) and len(words) == values.ndim
        for word, size in zip(words, values.shape, strict=False):
            wanted = int(word) if word.isdecimal() else self._sizes.setdefault(word, size)
            fits = fits and (word == "*" or wanted == size)
        if not fits:
            broken(f"its array {name!r} is {values.dtype} of shape {values.shape}")
        return np.array(values) if array.copied else values


def texts(values: list[Any], name: str) -> list[str]:
    """Refuse lists of anything but text."""
    if not all(isinstance(each, str) for each in values):
        broken(f"its {name!r} are not all text")
    return values


def names(values: list[Any] | None, count: int, name: str) -> list[str] | None:
    """Refuse anything but None and ``count`` different texts."""
    if values is not None and (len(set(texts(values, name))) != count or len(values) != count):
        broken(f"its {name!r} are not {count} different names")
    return values


def finite(array: AnyArray) -> AnyArray:
    """Refuse NaN and infinity."""
    if not np.isfinite(array).all():
        broken("it has numbers that are not finite where they must be")
    return array


def within(array: AnyArray, low: float, high: float) -> AnyArray:
    """Refuse NaN and numbers outside a closed range."""
    if not ((array >= low) & (array <= high)).all():
        broken(f"it has numbers beyond {low} to {high}")
    return array
