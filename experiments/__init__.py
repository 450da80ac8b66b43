"""The experiments of the paper, reproduced: ``python -m experiments --help``."""
