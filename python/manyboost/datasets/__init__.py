"""Data to try the package on: the sets of the paper, readers for files, synthetic problems."""

from manyboost.datasets.catalogue import CATALOGUE, CatalogueEntry, load_dataset
from manyboost.datasets.dataset import Dataset, join_train_test
from manyboost.datasets.readers.arff import read_arff
from manyboost.datasets.readers.npz import read_npz
from manyboost.datasets.readers.sparse_text import read_svmlight, read_xc
from manyboost.datasets.readers.tables import read_csv, read_parquet
from manyboost.datasets.synthetic import (
    make_friedman1_chain,
    make_friedman1_group,
    make_friedman1_ind,
    make_low_rank_multilabel,
    make_many_labels,
)

__all__ = [
    "CATALOGUE",
    "CatalogueEntry",
    "Dataset",
    "join_train_test",
    "load_dataset",
    "make_friedman1_chain",
    "make_friedman1_group",
    "make_friedman1_ind",
    "make_low_rank_multilabel",
    "make_many_labels",
    "read_arff",
    "read_csv",
    "read_npz",
    "read_parquet",
    "read_svmlight",
    "read_xc",
]
