"""The four strategies: one record each, with everything that other modules ask about them.

The rounds themselves are in :mod:`manyboost.training.boosting`, under the same names. Other modules
never compare names of strategies; they ask the record.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Strategy:
    """How a round serves all outputs.

    An ensemble stores one tree for each output ("per_output"), trees with a value for each leaf and
    output ("vector"), or trees with one value for each leaf and a step for each output ("scaled").
    """

    name: str
    trees: str
    projects: bool = False  # trees are grown on a projection φ r of the residuals
    max_components: int | None = 1  # None: any number
    max_race_outputs: int | None = None  # with more, a round costs too much for strategy="auto"

    @property
    def shares_trees(self) -> bool:
        """Whether one tree serves all outputs."""
        return self.trees != "per_output"

    @property
    def has_one_value_per_leaf(self) -> bool:
        """Whether leaves hold a scalar: trees can then be grown under monotonic constraints."""
        return self.trees != "vector"

    @property
    def relabels(self) -> bool:
        """Whether leaves are relabelled: only the leaves of a weak learner are used."""
        return self.projects and self.trees == "vector"

    def n_grown_columns(self, n_outputs: int, n_components: int) -> int:
        """Return the number of columns that one tree is grown on."""
        if not self.shares_trees:
            return 1
        return n_components if self.projects else n_outputs


#: What an ensemble stores in the place of vectors if leaves have values for a few outputs.
SPARSE_TREES = "sparse"

STRATEGIES = {
    each.name: each
    for each in (
        Strategy("independent", trees="per_output", max_race_outputs=50),
        Strategy("multioutput", trees="vector", max_race_outputs=200),
        Strategy("project", trees="scaled", projects=True),
        Strategy("relabel", trees="vector", projects=True, max_components=None),
    )
}
