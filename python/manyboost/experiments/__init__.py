"""The paper, reproduced: its protocol, its experiments, and what came of them.

Examples
--------
>>> from manyboost.experiments import Options, run
>>> options = Options(quick=True, datasets=["friedman1-chain"], methods=["gbmort"],
...                   budget="rounds:10", search="random:2", n_splits=1)
>>> report = run(["friedman"], options, ":memory:", stream=None)
>>> report.sections[0].title
'Output structure: chained, grouped and independent outputs'
"""

from manyboost.experiments.items import ITEMS
from manyboost.experiments.options import Options
from manyboost.experiments.reproduction import run, summarise
from manyboost.experiments.results import Report

__all__ = ["ITEMS", "Options", "Report", "run", "summarise"]
