"""ARFF files as Mulan and MEKA write them: ``@attribute`` lines, then ``@data`` and the rows.

Rows are all dense, ``1,0,'hip hop'``, or all sparse, ``{1 1, 2 90.5}``. In a sparse row, an
attribute that is not written is 0, or its first category. A malformed line is refused.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from manyboost.datasets.dataset import Dataset, Matrix, Task, check_unique
from manyboost.datasets.readers.columns import Column, Selection, Table, select_targets, split_table
from manyboost.datasets.readers.text import PathLike, TextFile, excerpt, number, set_name

#: Turns the text of a value into a number, or raises ValueError or KeyError.
Converter: TypeAlias = Callable[[str], float]
#: Index of an attribute and the text of its value, None if it is missing.
Field: TypeAlias = tuple[int, str | None]

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_WORD = r"[^\s,'\"{}%][^\s,{}%]*"
_RELATION = re.compile(rf"@relation\s+({_QUOTED}|.*\S)\s*", re.IGNORECASE)
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|{_WORD})\s*(.*\S)\s*", re.IGNORECASE)
_DATE = re.compile(rf"date(?:\s+({_QUOTED}|\S+))?", re.IGNORECASE)
_MEKA_OPTION = re.compile(r"(?:^|[\s:])-[Cc]\s+(-?\d+)(?=\s|$)")
_FIELDS = {
    separator: re.compile(rf"{blank}*(?:({_QUOTED})|([^'\"{separator}]*?)){blank}*({separator}|$)")
    for separator, blank in ((",", r"\s"), ("\t", " "))
}
_PAIR = re.compile(rf"\s*(\d+)\s+({_QUOTED}|[^\s,'\"{{}}]+)\s*(,|$)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}

# Java's letters for the parts of a date, and Python's.
_DATE_PARTS = {
    "yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S",
    "Z": "%z",
}  # fmt: skip
_DATE_TOKEN = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*|')|.")  # quoted, letters, other
_DEFAULT_DATE = "yyyy-MM-dd'T'HH:mm:ss"
_SECONDS_A_DAY = 86400.0


def read_arff(
    path: PathLike,
    *,
    labels: PathLike | None = None,
    targets: Selection | int | None = None,
    drop: Selection = (),
    task: Task | None = None,
    name: str | None = None,
    encoding: str = "utf-8-sig",
) -> Dataset:
    r"""Read an ARFF file with several outputs, as Mulan and MEKA write them.

    Categories become codes, their index in the header, but features declared ``{0,1}`` are numbers.
    A date becomes the number of days since 1970-01-01. Leave out features of text with ``drop``.

    Parameters
    ----------
    path : str or path
        The file, which may be gzip-compressed.
    labels : str or path, default=None
        Mulan's XML file, which names the labels. They are taken in the order of the attributes.
    targets, drop, task, name, encoding
        See :func:`read_csv`. Without labels and targets, outputs are the first k attributes, or
        the last, as the option ``-C k`` says that MEKA stores in the name of the relation.

    Returns
    -------
    Dataset
        A file of sparse rows gives X, and Y if it holds labels, as CSR matrices.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manyboost.datasets import read_arff
    >>> header = "@relation 'sky: -C 1'\n@attribute rain {0,1}\n@attribute sky {clear, grey}\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "weather.arff")
    ...     _ = path.write_text(header + "@data\n1,grey\n0,?\n")
    ...     weather = read_arff(path)
    >>> weather.X.tolist(), weather.target_names, weather.categories
    ([[1.0], [nan]], ('rain',), {0: ('clear', 'grey')})
    """
    path = Path(path)
    table, option = arff_table(path, encoding)
    if labels is not None and targets is not None:
        raise ValueError("labels and targets both say what the outputs are; pass one of them.")
    if labels is not None:
        outputs = _labelled(Path(labels), table.names, path)
    elif (chosen := option if targets is None else targets) is not None:
        outputs = select_targets(chosen, table.names, path.name)
    else:
        remedy = "pass labels (Mulan's XML file) or targets."
        raise ValueError(f"{path.name} does not say which attributes are outputs; {remedy}")
    return split_table(table, outputs, drop, task, set_name(path, name))


def arff_table(path: Path, encoding: str = "utf-8-sig") -> tuple[Table, int | None]:
    """Read all attributes of an ARFF file, and k if it has MEKA's option ``-C k``."""
    file = TextFile(path, encoding)
    reader = _Reader(file)
    relation = reader.read_header()
    values, lines = reader.read_rows()
    if not lines:
        raise ValueError(f"{file.name} has no rows after @data; a data set needs at least one.")
    option = _MEKA_OPTION.search(relation)
    table = Table(file.name, reader.columns, values, lambda row: f"line {lines[row]}")
    return table, None if option is None else int(option[1])


def _labelled(labels: Path, names: list[str], path: Path) -> list[int]:
    """Find the attributes that Mulan's XML file names, in the order of the ARFF file."""
    text = labels.read_bytes()
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        # Entities can make a small file expand to any size.
        raise ValueError(f"{labels.name} defines a document type; remove it from the labels file.")
    try:
        elements = ElementTree.fromstring(text).iter()
    except ElementTree.ParseError as error:
        what = f"not well-formed XML ({error})."
        raise TextFile(labels).error(what, error.position[0]) from None
    found = [each.get("name", "") for each in elements if each.tag.rpartition("}")[2] == "label"]
    if not found or "" in found:
        what = "a label without a name" if found else "no labels"
        raise ValueError(f"{labels.name} has {what}; it should hold elements <label name=...>.")
    check_unique(found, labels.name, "labels")
    index = {name: i for i, name in enumerate(names)}
    for label in found:
        if label not in index:
            what = f"Label {label!r} of {labels.name} is not an attribute of {path.name}"
            raise ValueError(f"{what}; check that the two files belong together.")
    return sorted(index[label] for label in found)


class _Reader:
    """Reads the header and the rows of a file."""

    def __init__(self, file: TextFile) -> None:
        self.columns: list[Column] = []
        self._converters: dict[str, Converter] = {}  # of the columns, by name
        self._file, self._error = file, file.error
        texts = map(str.strip, file)
        self._texts = (text for text in texts if text and not text.startswith("%"))

    def read_header(self) -> str:
        """Read up to @data; return the name of the relation."""
        relation: str | None = None
        for text in self._texts:
            keyword = text.split(None, 1)[0].lower()
            if keyword == "@data":
                if not self.columns:
                    raise self._error("@data is out of place; no attribute comes before it.")
                if len(text) > len(keyword):
                    raise self._error("@data is out of place; rows begin on the next line.")
                return relation or ""
            if keyword == "@relation":
                match = _RELATION.fullmatch(text)
                if match is None or relation is not None:
                    raise self._error("write @relation once, with a name, quoted if needed.")
                relation = _unquoted(match[1])
            elif keyword != "@attribute":
                expected = "expected @relation, @attribute or @data."
                raise self._error(f"{excerpt(text)} is not part of a header; {expected}")
            elif relation is None:
                raise self._error("an attribute comes before @relation; put it after.")
            else:
                self._read_attribute(text)
        raise ValueError(f"{self._file.name} has no @data line; the file may be cut short.")

    def _read_attribute(self, text: str) -> None:
        match = _ATTRIBUTE.fullmatch(text)
        if match is None:
            remedy = "write @attribute NAME TYPE, and quote a name with spaces or any of , { } %."
            raise self._error(f"{excerpt(text)} is not an attribute; {remedy}")
        name = _unquoted(match[1])
        if name in self._converters:
            raise self._error(f"there is an attribute {name!r} already; rename one of them.")
        column, self._converters[name] = self._typed(name, match[2])
        self.columns.append(column)

    def _typed(self, name: str, kind: str) -> tuple[Column, Converter]:
        """Return an attribute and what turns its values into numbers."""
        if kind.lower() in ("numeric", "real", "integer"):
            return Column(name), number
        if kind.lower() == "string":
            return Column(name, is_text=True), lambda text: np.nan
        if match := _DATE.fullmatch(kind):
            return Column(name), self._date_converter(match[1])
        if not (kind.startswith("{") and kind.endswith("}")):
            expected = "expected numeric, {categories}, string or date."
            raise self._error(f"attribute {name!r} has the type {excerpt(kind)}; {expected}")
        values = _fields(kind[1:-1], ",")
        if values is None or None in values or "" in values:
            raise self._error(f"the categories of {name!r} are not a list {{a, b, 'c d'}}.")
        categories = tuple(map(str, values))
        codes = {category: float(code) for code, category in enumerate(categories)}
        if len(codes) < len(categories):
            raise self._error(f"attribute {name!r} names a category twice; remove one.")
        return Column(name, categories), codes.__getitem__

    def _date_converter(self, quoted: str | None) -> Converter:
        """Read dates of a format, in Java's letters, as days since 1970-01-01."""
        java = _DEFAULT_DATE if quoted is None else _unquoted(quoted)
        try:
            return partial(_days, format=_DATE_TOKEN.sub(_date_part, java))
        except KeyError:
            parts = ", ".join(_DATE_PARTS)
            what = f"the date format {java!r} is not understood; it may use {parts}"
            raise self._error(f"{what} and quoted text.") from None

    def read_rows(self) -> tuple[Matrix, array[int]]:
        """Read rows that are all dense or all sparse; return values and the line of each row."""
        values, indices, ends, lines = array("d"), array("q"), array("q", [0]), array("q")
        converters = list(self._converters.values())
        is_sparse: bool | None = None
        for text in self._texts:
            if is_sparse is None:
                is_sparse = text.startswith("{")
            pairs = self._sparse_row(text) if is_sparse else self._dense_row(text)
            values.extend(self._converted(pairs, converters))
            if is_sparse:
                indices.extend([index for index, _ in pairs])
                ends.append(len(indices))
            lines.append(self._file.line)
        if not is_sparse:
            return np.asarray(values).reshape(-1, len(self.columns)), lines
        arrays = (np.asarray(values), np.asarray(indices), np.asarray(ends))
        return sparse.csr_matrix(arrays, shape=(len(lines), len(self.columns))), lines

    def _dense_row(self, text: str) -> list[Field]:
        if text.startswith("{"):
            raise self._error("a sparse row follows dense ones; write all rows the same way.")
        fields = _fields(text, "," if "," in text else "\t")
        if fields is None:
            raise self._error("a quote is not closed, or is inside a value; quote whole values.")
        if len(fields) != len(self.columns):
            what = f"the row has {len(fields)} values for {len(self.columns)} attributes"
            raise self._error(f"{what}; separate values by commas and write ? for a missing one.")
        return list(enumerate(fields))

    def _sparse_row(self, text: str) -> list[Field]:
        pairs = _pairs(text[1:-1]) if text[0] + text[-1] == "{}" else None
        if pairs is None:
            remedy = "write {index value, index value}, and quote values with spaces."
            raise self._error(f"{excerpt(text)} is not a sparse row; {remedy}")
        width = len(self.columns)
        for last, index in pairwise([-1, *(index for index, _ in pairs)]):
            if not last < index < width:
                what = f"index {index} does not follow {last} or is not below {width}, the number"
                raise self._error(f"{what} of attributes; write increasing indices from 0.")
        return pairs

    def _converted(self, fields: list[Field], converters: list[Converter]) -> list[float]:
        """Turn the values of a row into numbers, NaN where a value is missing."""
        row: list[float] = []
        try:
            for i, field in fields:
                row.append(np.nan if field is None else converters[i](field))
        except (ValueError, KeyError):
            i, field = fields[len(row)]
            column = self.columns[i]
            kind = "one of its categories" if column.categories else "a number or a date"
            what = f"attribute {column.name!r} holds {excerpt(field or '')}, which is not {kind}"
            raise self._error(f"{what} as declared; write ? for a missing value.") from None
        return row


def _fields(text: str, separator: str) -> list[str | None] | None:
    """Split at separators outside quotes; None for a missing value, or if quotes do not match."""
    if "'" not in text and '"' not in text:
        return [None if field == "?" else field for field in map(str.strip, text.split(separator))]
    if (matches := _matches(_FIELDS[separator], text)) is None:
        return None
    return [_unquoted(m[1]) if m[1] else None if m[2] == "?" else m[2] for m in matches]


def _pairs(text: str) -> list[Field] | None:
    """Split the inside of a sparse row into indices and values; None if it is malformed."""
    if (matches := _matches(_PAIR, text) if text.strip() else []) is None:
        return None
    return [(int(m[1]), None if m[2] == "?" else _unquoted(m[2])) for m in matches]


def _matches(pattern: re.Pattern[str], text: str) -> list[re.Match[str]] | None:
    """Match a list, whose last entry ends with nothing as third group; None if it is malformed."""
    matches, position = [], 0
    while match := pattern.match(text, position):
        matches.append(match)
        if not match[3]:
            return matches
        position = match.end()
    return None


def _date_part(token: re.Match[str]) -> str:
    """Translate a part of Java's format of dates."""
    if token[2] is not None:
        return _DATE_PARTS[token[2]]
    text = token[0] if token[1] is None else token[1].replace("''", "'") or "'"
    return text.replace("%", "%%")


def _days(text: str, format: str) -> float:
    """Return a date as the number of days since 1970-01-01."""
    moment = datetime.strptime(text, format)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp() / _SECONDS_A_DAY


def _unquoted(text: str) -> str:
    """Remove the quotes, if any, and resolve escapes."""
    if text[0] not in "'\"":
        return text

    def resolve(match: re.Match[str]) -> str:
        symbol = match[1]
        return chr(int(symbol[1:], 16)) if len(symbol) > 1 else _ESCAPED.get(symbol, symbol)

    return _ESCAPE.sub(resolve, text[1:-1])
