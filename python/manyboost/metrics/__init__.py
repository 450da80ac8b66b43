"""Metrics for very many labels, and scorers for targets with missing values."""

from manyboost.metrics.at_k import (
    TopKScorer,
    label_propensities,
    ndcg_at_k,
    precision_at_k,
    propensity_scored_ndcg_at_k,
    propensity_scored_precision_at_k,
    recall_at_k,
)
from manyboost.metrics.observed import ObservedScorer, get_scorer, get_scorer_names

__all__ = [
    "ObservedScorer",
    "TopKScorer",
    "get_scorer",
    "get_scorer_names",
    "label_propensities",
    "ndcg_at_k",
    "precision_at_k",
    "propensity_scored_ndcg_at_k",
    "propensity_scored_precision_at_k",
    "recall_at_k",
]
