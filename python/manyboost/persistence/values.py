"""Python values as JSON: parameters, classes and labels, with their types.

None, booleans, integers of up to 64 bits, finite floats, text and lists stay what they are; other
types are objects with one key, which names the type. Code (functions, losses, scorers, callbacks)
is left out: a :class:`LeftOut` says what was there, and fit refuses it until it is replaced.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyboost.persistence.container import DTYPES, AnyArray, BrokenFileError, broken
from manyboost.training.custom import Loss

#: The place of an object in memory, which many show.
_ADDRESS = re.compile(" at 0x[0-9A-Fa-f]+")
#: Characters of what an object shows that count.
_MOST_SHOWN = 1000
#: Characters that the entries of a text array may have beyond the longest text.
_ROOM = 64
#: Bytes that a text array may always take, and those for each character that it holds.
_SPARE_BYTES, _BYTES_OF_CHARACTER = 1 << 24, 64


@dataclass(frozen=True, eq=False, repr=False)
class LeftOut:
    """Stands for code that is not in the file.

    It equals functions of the same name, and scorers that are made with the same, so that a warm
    start can continue the model after they are given again.
    """

    what: str

    def __repr__(self) -> str:
        return f"<not in the model file: {self.what}>"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LeftOut):
            return self.what == other.what
        return callable(other) and self.what == _name_of(other)

    def __hash__(self) -> int:
        return hash(self.what)


def _name_of(code: Any) -> str:
    """Return the name of code; of an object that of its type, and what it shows of itself."""
    named = code if hasattr(code, "__qualname__") else type(code)
    name = f"{named.__module__}.{named.__qualname__}"
    shows_itself = named is not code and named.__repr__ is not object.__repr__
    return f"{name}: {plain_repr(code)[:_MOST_SHOWN]}" if shows_itself else name


def plain_repr(value: Any) -> str:
    """Return what an object shows of itself, without its place in memory."""
    return _ADDRESS.sub("", repr(value))


def is_code(value: Any) -> bool:
    """Whether a value is a function, or an object that splits rows."""
    is_text = isinstance(value, str | bytes)
    return callable(value) or (callable(getattr(value, "split", None)) and not is_text)


class Unstorable(ValueError):
    """A value that a file cannot hold; the message says what it is."""


@dataclass
class Encoder:
    """Turns values into JSON; numeric arrays are collected and referred to by number."""

    arrays: list[AnyArray] = field(default_factory=list)

    def encode(self, value: Any) -> Any:
        """Return the JSON of a value."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return str(value)
        if isinstance(value, int):
            if not -(2**63) <= value < 2**64:
                raise Unstorable(f"the number {value}, which takes more than 64 bits")
            return int(value)
        if isinstance(value, float):
            number = float(value)
            return number if math.isfinite(number) else {"float": repr(number)}
        if isinstance(value, list | range):
            return [self.encode(each) for each in value]
        if isinstance(value, tuple):
            return {"tuple": [self.encode(each) for each in value]}
        if isinstance(value, set | frozenset):
            members = [self.encode(each) for each in value]
            return {"set": sorted(members, key=lambda each: (type(each).__name__, str(each)))}
        if isinstance(value, Mapping):
            return {"dict": [[self.encode(key), self.encode(v)] for key, v in value.items()]}
        if isinstance(value, LeftOut):
            return {"left_out": value.what}
        if isinstance(value, np.generic) and value.dtype.kind in "biuf" and value.itemsize <= 8:
            return {"scalar": [value.dtype.newbyteorder("<").str, self.encode(value.item())]}
        if isinstance(value, Loss | np.random.RandomState) or is_code(value):
            return {"left_out": _name_of(value)}
        if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
            return {"array": self._array(np.asarray(value))}
        raise Unstorable(f"a value of type {type(value).__name__}")

    def _array(self, array: AnyArray) -> Any:
        if array.dtype.kind in "biuf" and array.dtype.itemsize <= 8:
            self.arrays.append(array)
            return len(self.arrays) - 1
        if array.dtype.kind == "U":
            texts = [str(each) for each in array.ravel()]
            longest = max(map(len, texts), default=0)
            width = array.dtype.itemsize // 4
            width = max(width if width <= longest + _ROOM else longest, 1)
            if _is_mostly_empty(texts, width):
                what = f"{len(texts)} texts in an array with room for {width} characters in each"
                raise Unstorable(f"{what} (one of dtype object has no empty room)")
            return {"shape": list(array.shape), "text": texts, "width": width}
        if array.dtype == object:
            values = [self.encode(each) for each in array.ravel().tolist()]
            return {"shape": list(array.shape), "values": values}
        raise Unstorable(f"an array of type {array.dtype}")


@dataclass
class Decoder:
    """Turns JSON back into values; ``arrays`` are those that the encoder collected."""

    arrays: list[AnyArray]
    n_used: int = 0

    def done(self) -> None:
        """Refuse arrays that no value refers to."""
        if self.n_used != len(self.arrays):
            broken("it has arrays that no parameter uses")

    def decode(self, stored: Any) -> Any:
        """Return the value of some JSON; refuse all but what an encoder makes of this value."""
        before = self.arrays[: self.n_used]
        try:
            value = self._value(stored)
            again = Encoder(before).encode(value)
        except BrokenFileError:
            raise
        except (TypeError, ValueError, OverflowError):  # of Python and NumPy
            again = None
        # Compared as text, in which neither true nor 1.0 is 1.
        if repr(again) != repr(stored):
            broken("it has a value whose parts do not fit its type, come twice or are out of order")
        return value

    def _value(self, stored: Any) -> Any:
        if isinstance(stored, list):
            return [self._value(each) for each in stored]
        if not isinstance(stored, dict):
            return stored
        if len(stored) != 1:
            broken("it has a value of no type")
        ((type_, content),) = stored.items()
        match type_, content:
            case "float", str():
                return float(content)
            case "tuple", list():
                return tuple(map(self._value, content))
            case "set", list():
                return set(map(self._value, content))
            case "dict", list():
                return {self._value(key): self._value(value) for key, value in content}
            case "left_out", str():
                return LeftOut(content)
            case "scalar", [str() as name, number] if name in DTYPES:
                return _scalar(np.dtype(name), self._value(number))
            case "array", int():
                # Each array once, in the order in which the encoder collected them.
                if content != self.n_used or content >= len(self.arrays):
                    broken("it has a value whose array is not there")
                self.n_used += 1
                return np.array(self.arrays[content])
            case "array", {"shape": list() as shape, "values": list() as values}:
                return _shaped(np.fromiter(map(self._value, values), object, len(values)), shape)
            case "array", {"shape": list() as shape, "text": list() as texts, "width": int(width)}:
                # No more memory than the texts have a use for.
                too_wide = width > max(map(len, texts), default=0) + _ROOM
                if too_wide or _is_mostly_empty(texts, width):
                    broken("it has text that does not fit its width")
                return _shaped(np.array(texts, f"<U{width}"), shape)
        raise BrokenFileError(f"it has a value of type {type_!r} that this release does not know")


def _is_mostly_empty(texts: list[Any], width: int) -> bool:
    """Whether an array of texts would take much more memory than they do."""
    return 4 * width * len(texts) > max(_SPARE_BYTES, _BYTES_OF_CHARACTER * sum(map(len, texts)))


def _scalar(dtype: np.dtype[Any], value: Any) -> Any:
    """Return a NumPy number; the first releases of NumPy that are supported wrap large integers."""
    if dtype.kind in "iu" and isinstance(value, int):
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            broken("it has numbers that do not fit their types")
    return dtype.type(value)


def _shaped(array: AnyArray, shape: list[Any]) -> AnyArray:
    """Reshape an array; a million empty rows would take time."""
    if not all(0 <= n <= array.size for n in shape):
        broken("it has an array whose shape does not fit its values")
    return array.reshape(shape)
