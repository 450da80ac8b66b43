"""The experiments of the paper, reproduced: ``python -m experiments --help``."""

from experiments.items import ITEMS
from experiments.options import Options
from experiments.report.content import Report
from experiments.reproduction import run, summarise

__all__ = ["ITEMS", "Options", "Report", "run", "summarise"]
