"""CSV files, written and read the obvious way."""

import csv


def write_csv(path, header, rows, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return path


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    return header, rows
