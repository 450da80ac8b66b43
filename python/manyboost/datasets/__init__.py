"""Data to try the package on: synthetic problems whose output structure is known."""

from manyboost.datasets.synthetic import (
    make_friedman1_chain,
    make_friedman1_group,
    make_friedman1_ind,
    make_low_rank_multilabel,
)

__all__ = [
    "make_friedman1_chain",
    "make_friedman1_group",
    "make_friedman1_ind",
    "make_low_rank_multilabel",
]
