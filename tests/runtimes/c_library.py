"""The library for C, called from Python, with NumPy arrays."""

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_uint8, c_void_p

import numpy as np

_MESSAGE = 1000
_TEXT = (c_void_p, c_char_p, c_size_t)


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        doubles = POINTER(c_double)
        signatures = {
            "open": (c_void_p, [c_char_p, c_size_t, c_char_p, c_size_t]),
            "close": (None, [c_void_p]),
            "features": (c_size_t, [c_void_p]),
            "outputs": (c_size_t, [c_void_p]),
            "columns": (c_size_t, [c_void_p]),
            "predict": (c_int, [c_void_p, doubles, c_size_t, doubles]),
            "raw": (c_int, [c_void_p, doubles, c_size_t, doubles]),
            "finish": (c_int, [c_void_p, doubles, c_size_t, doubles]),
            "choose": (c_int, [c_void_p, doubles, c_size_t, POINTER(c_uint8)]),
            "feature_name": (c_size_t, [c_void_p, c_size_t, c_char_p, c_size_t]),
            "column_name": (c_size_t, [c_void_p, c_size_t, c_char_p, c_size_t]),
            "category_label": (c_size_t, [c_void_p, c_size_t, c_size_t, c_char_p, c_size_t]),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(self.c, f"manyboost_{name}")
            function.restype, function.argtypes = result, arguments

    def open(self, data):
        """A model; a ValueError says why there is none."""
        message = ctypes.create_string_buffer(_MESSAGE)
        address = self.c.manyboost_open(data, len(data), message, _MESSAGE)
        if not address:
            raise ValueError(message.value.decode())
        return Model(self.c, address)


class StatusError(RuntimeError):
    """What a function returned in place of 0."""


class Model:
    def __init__(self, c, address):
        self.c, self.address = c, address
        self.n_features = c.manyboost_features(address)
        self.n_outputs = c.manyboost_outputs(address)
        self.n_columns = c.manyboost_columns(address)

    def __del__(self):
        self.c.manyboost_close(self.address)

    def _run(self, function, given, width, dtype=np.float64):
        given = np.ascontiguousarray(given, np.float64)
        out = np.full((len(given), width), 77, dtype)
        address = out.ctypes.data_as(POINTER(c_double if dtype is np.float64 else c_uint8))
        rows = given.ctypes.data_as(POINTER(c_double))
        if status := function(self.address, rows, len(given), address):
            raise StatusError(status)
        return out

    def predict(self, X):
        return self._run(self.c.manyboost_predict, X, self.n_columns)

    def raw(self, X):
        return self._run(self.c.manyboost_raw, X, self.n_outputs)

    def finish(self, raw):
        return self._run(self.c.manyboost_finish, raw, self.n_columns)

    def choose(self, raw):
        return self._run(self.c.manyboost_choose, raw, self.n_columns, np.uint8)

    def _names(self, function, *before):
        names = []
        while size := function(self.address, *before, len(names), None, 0):
            text = ctypes.create_string_buffer(size)
            assert function(self.address, *before, len(names), text, size) == size
            names.append(text.value.decode())
        return names

    def feature_names(self):
        return self._names(self.c.manyboost_feature_name)

    def column_names(self):
        return self._names(self.c.manyboost_column_name)

    def category_labels(self, feature):
        return self._names(self.c.manyboost_category_label, feature)
