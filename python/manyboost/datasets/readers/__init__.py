"""Readers of the formats of data sets with many outputs, one module for each family.

All readers are strict and return a :class:`~manyboost.datasets.Dataset`: a malformed line is an
error that names file and line, and nothing is dropped or converted silently.
"""
