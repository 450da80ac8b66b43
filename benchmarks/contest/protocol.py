"""What the page says about how fits are made, and how to add a contestant."""

from benchmarks.contest.contestants.manyboost import FOLDS
from benchmarks.contest.contestants.sklearn import FOREST
from benchmarks.contest.contestants.stopping import PATIENCE
from benchmarks.contest.running import LONG_FIT, ROUNDS
from benchmarks.contest.sets import SETS, VALIDATION
from benchmarks.records import Run


def protocol(records: Run) -> str:
    caps = sorted({r["spec"]["limit"] for s in records.summaries for r in s.records})
    cap = " or ".join(f"{seconds:g} s" for seconds in caps)
    found = {s.contestant: s.median("patience") for s in records.summaries}
    patience = ", ".join(f"{name}: {rounds:g}" for name, rounds in found.items() if rounds)
    dropped = [name for name, each in SETS.items() if each.dropped]
    return f"""\
- Every library has its own default parameters, at most {ROUNDS} rounds and {records.threads}
  threads; every fit runs in its own process, one of less than a second up to five times in a row,
  of which the median time counts. Scores are means over the repeats, other figures
  medians. A fit of more than {LONG_FIT:g} s is not repeated. Repeats are interleaved, so that a
  slow hour affects all contestants. All contestants on a set are measured on the same machine,
  unless marked (†); another set may be measured on another machine.
- The official split if there is one, else a fixed random half of the rows for training.
  {VALIDATION:.0%} of the training rows, the same for all contestants, are handed to each for its
  early stopping, by its own default metric. A repeat has another such part and another seed.
- Rounds without improvement after which a fit stops: the library's default where it has one, else
  {PATIENCE} ({patience}). All predict with the rounds up to the best one, except
  hist-gradient-boosting, which keeps the later rounds.
- lightgbm and hist-gradient-boosting fit one model per output, each stopped on its own; lightgbm
  bins the data once. hessboost grows trees on all outputs, as xgboost-multi-output-tree does; their
  scores are often the same.
- manyboost-folds is `n_folds={FOLDS}`, refitted with `refit_all=True`, [as the study of folds
  advises](folds.md): they validate on their own folds and are given all training rows, the
  validation part included. The refitted one finds its rounds in half of the time of a fit.
- boomer chooses its own validation rows (`global_pruning="pre-pruning"`), so it too gets all
  training rows. A rule counts as a round. It draws a few features for each rule, and ends when none
  of them separates rows.
- random-forest: {FOREST} full trees; it has no early stopping and gets all training rows, the
  validation part included. Labels are treated as regression targets, with the classifier's default
  of √features per split. Its trees are freed once they have predicted; their sizes are added to the
  memory.
- Labels are ranked by raw predictions (LRAP; ties count against); regression is scored by macro r².
  Sparse features are passed as CSR matrices to all that take them, and made dense, within the
  measured time, for those that do not; categories as their codes, missing values as NaN. The first
  feature of {", ".join(dropped)} identifies the row; it is removed for all.
- manyboost's defaults [were studied](study.md) on these sets: on training rows where there is an
  official split, else on a part of all rows. Without an official split, its defaults were thus
  chosen partly on rows that are test rows here. How the others chose their
  defaults is not known to us.
- Memory is what the fit adds to the loaded data at its peak; the size of a model is that of its
  pickle.
- A fit may take {cap}. At the cap, a contestant stops after its round and is scored with what
  it has. Where one model per output cannot be fitted for all outputs in that time, the contestant
  is over budget and its time is extrapolated from the outputs that were fitted. A process that
  takes more memory than it may, or does not stop, is ended: over memory, over budget.
- A fit is measured again when the library has another version or build.
  `benchmarks/requirements*.txt` name the versions of the peers, `benchmarks/setup.sh` installs
  them."""


EXAMPLE = """\
import numpy as np
from benchmarks.contest import Contestant


class Mean(Contestant):
    name, library = "mean", "numpy"

    def fit(self, data, settings, watch):
        self.model = data.Y.mean(axis=0)

    def predict(self, X):
        return np.tile(self.model, (X.shape[0], 1))
"""

ADDING = f"""\
Write a file with your own class:

```python
{EXAMPLE}```

`python -m benchmarks.contest --add my_model.py` runs it on all sets, adds its records to the
stored ones, and ranks it with them on this page. The stored records stay as they are; yours are
marked if they come from another machine, and their times are then not compared. `--sets` runs
only some sets; `--results` and `--page` write to other files than those of the repository.

- `data` has `X` (dense or CSR), `Y`, `X_val`, `Y_val`, `X_test`, `task` ("regression" or
  "multilabel"), and `with_validation()` for all training rows.
- `settings` has `n_rounds`, `n_threads` and `seed`. Leave all else at your defaults.
- `watch.expired` says that the time is over: stop, and keep what you have. What `watch.paused()`
  encloses is not timed.
- `predict` returns an array (rows, outputs). For labels, larger means more likely.
- Optional: `self.parameters`, `self.rounds_done` and `self.patience` are shown; `tasks` names the
  kinds of sets that you support; `prepare` imports what should not count as time of the fit;
  `model_bytes` gives the size of a model that cannot be pickled.

To keep it here, put the class into `benchmarks/contest/contestants`, pin its version in
`benchmarks/requirements.txt`, and send the records that you made."""
