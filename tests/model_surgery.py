"""Model files taken apart and put together again, sound or not; the checksum always fits."""

import hashlib
import json
import struct

import numpy as np

PREFIX = struct.Struct("<8sII")
MAGIC = b"\x89MBOOST\n"


def mended(data):
    """The bytes with a checksum that fits."""
    return bytes(data[:-32]) + hashlib.blake2b(data[:-32], digest_size=32).digest()


def padded(data):
    return data + bytes(-len(data) % 64)


def header_text(data):
    return data[PREFIX.size : PREFIX.size + PREFIX.unpack_from(data)[2]]


def with_header_text(data, text):
    """The file with another header, whatever it is."""
    start = len(padded(data[: PREFIX.size + len(header_text(data))]))
    body, version = data[start:], PREFIX.unpack_from(data)[1]
    return mended(padded(PREFIX.pack(MAGIC, version, len(text)) + text) + body)


def dumped(header):
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


def with_header(data, change):
    """The file after ``change(header)``."""
    header = json.loads(header_text(data))
    change(header)
    return with_header_text(data, dumped(header))


def opened(data):
    """Header without the description of the arrays, and the arrays."""
    header = json.loads(header_text(data))
    start = len(padded(data[: PREFIX.size + len(header_text(data))]))
    arrays = {}
    for name, array in header.pop("arrays").items():
        first = start + array["offset"]
        elements = data[first : first + array["length"]]
        arrays[name] = np.frombuffer(elements, array["dtype"]).reshape(array["shape"]).copy()
    return header, arrays


def closed(header, arrays, version=1):
    """The file of a header and arrays, laid out as it should be."""
    layout, body = {}, b""
    for name, array in sorted(arrays.items()):
        layout[name] = {
            "dtype": array.dtype.str,
            "length": array.nbytes,
            "offset": len(body),
            "shape": list(array.shape),
        }
        body = padded(body + array.tobytes())
    text = dumped(header | {"arrays": layout})
    return mended(padded(PREFIX.pack(MAGIC, version, len(text)) + text) + body + bytes(32))


def changed(data, change):
    """The file after ``change(header, arrays)``, laid out as it should be."""
    header, arrays = opened(data)
    change(header, arrays)
    return closed(header, arrays, PREFIX.unpack_from(data)[1])
