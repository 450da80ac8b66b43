"""Files of the formats that data sets with many outputs come in, one module for each family.

All readers are strict and return a :class:`~manyboost.datasets.Dataset`: a malformed line is an
error that names file and line, and nothing is dropped or converted without being asked for.
"""
