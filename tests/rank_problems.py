"""Data, models and what makes two of them the same, for tests of training on several ranks."""

import hashlib

import numpy as np
from scipy import sparse

N_ROWS = 420

rng = np.random.default_rng(0)
#: Continuous, rounded, with missing values, mostly zero.
X = rng.normal(size=(N_ROWS, 6))
X[:, 3] = np.round(X[:, 3])
X[rng.random(X.shape) < 0.05] = np.nan
X[:, 5] = np.where(rng.random(N_ROWS) < 0.06, X[:, 5], 0.0)
Y = np.nan_to_num(X) @ rng.normal(size=(6, 4)) + rng.normal(size=(N_ROWS, 4))
LABELS = (Y > 0.5).astype(int)
CLASSES = np.array(["a", "b", "c"])[(Y[:, 0] > 0) * 1 + (Y[:, 1] > 0)]
COUNTS = np.round(np.exp(Y / 4))
PARTIAL = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
WEIGHT = rng.exponential(size=N_ROWS) + 0.1
SPARSE_X = sparse.random(N_ROWS, 30, 0.06, format="csr", random_state=0)

#: Where the rows of each rank end: one rank, two, one without rows, many of very different sizes.
PARTITIONS = {
    "one": [0, N_ROWS],
    "two": [0, 150, N_ROWS],
    "empty": [0, 200, 200, N_ROWS],
    "uneven": [0, 3, 10, 401, N_ROWS],
    "five": [0, 84, 168, 252, 336, N_ROWS],
}


def fingerprint(model):
    """Hash of all that training left."""
    progress = model._progress
    parts = [
        progress.model.trees.to_bytes(),
        model.baseline_,
        model.train_score_,
        progress.importances,
    ]
    parts += [getattr(model, "validation_score_", b""), np.array(progress.steps)]
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part if isinstance(part, bytes) else part.tobytes())
    return sha.hexdigest()
