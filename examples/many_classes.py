"""
Many classes
============

One tree a round serves all sixty classes, instead of sixty trees. So there is time for more
rounds.
"""

# %%
# A map of sixty regions around sixty towns, with noisy positions as features. The map is twisted,
# so borders are not straight lines.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import top_k_accuracy_score

from manyboost import ManyBoostClassifier

rng = np.random.default_rng(5)
n_classes = 60
towns = rng.uniform(0, 1, size=(n_classes, 2))


def region(points):
    """The nearest town, after a twist of the map."""
    bent = points + 0.05 * np.sin(9 * points[:, ::-1])
    return ((bent[:, None] - towns) ** 2).sum(axis=2).argmin(axis=1)


points = rng.uniform(0, 1, size=(6000, 2))
y = region(points + 0.008 * rng.normal(size=points.shape))
directions = rng.normal(size=(2, 16))


def seen(points):
    """Eighteen features: the position, and how far it is along sixteen other directions."""
    return np.column_stack([points, points @ directions])


X = seen(points)
train, test = slice(0, 4000), slice(4000, None)

# %%
# Softmax over sixty classes. "independent" grows a tree for each class and round. It gets few
# rounds here, so that it does not take much longer than the others; with more it would rank its
# other guesses better.

results = {}
for strategy, rounds in (("relabel", 120), ("multioutput", 40), ("independent", 8)):
    model = ManyBoostClassifier(strategy=strategy, max_iter=rounds, random_state=0)
    begin = time.perf_counter()
    model.fit(X[train], y[train])
    seconds = time.perf_counter() - begin
    results[strategy] = model, seconds
    print(
        f"{strategy:12} {model.info()['n_trees']:4} trees  {seconds:5.2f} s  "
        f"accuracy {model.score(X[test], y[test]):.3f}"
    )

# %%
# The learned map, and how often the right class is among the first k.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axis = np.linspace(0, 1, 180)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
model = results["relabel"][0]
colours = plt.colormaps["tab20"](rng.permutation(n_classes) % 20)
learnt = model.predict(seen(grid)).reshape(180, 180)
left.imshow(colours[learnt], origin="lower", extent=(0, 1, 0, 1), interpolation="nearest")
true = region(grid).reshape(180, 180)
edges = (true != np.roll(true, 1, axis=0)) | (true != np.roll(true, 1, axis=1))
edges[0], edges[:, 0] = False, False
lines = np.zeros((*edges.shape, 4))
lines[edges] = 0, 0, 0, 0.8
left.imshow(lines, origin="lower", extent=(0, 1, 0, 1), interpolation="nearest")
left.set(title="Regions: learned (colours) and true (lines)", xticks=[], yticks=[])

ks = np.arange(1, 7)
for strategy, (model, seconds) in results.items():
    proba = model.predict_proba(X[test])
    accuracy = [top_k_accuracy_score(y[test], proba, k=k, labels=model.classes_) for k in ks]
    right.plot(ks, accuracy, "o-", ms=4, label=f"{strategy}, {seconds:.1f} s")
right.set(xlabel="k", ylabel="accuracy of the first k classes", title="2,000 test points")
right.set_ylim(top=1.005)
right.legend(frameon=False, loc="lower right")
plt.show()
