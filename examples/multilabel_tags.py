"""
Multi-label tags
================

Short texts with tags; some tags are rare. Words are a sparse matrix, tags are sets, and each tag
gets the threshold with the best F1.
"""

# %%
# Synthetic questions on a forum. A question is about one or two topics. Every topic prefers some
# words and some tags, and some tags are much more frequent than others.

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.metrics import f1_score

from manyboost import ManyBoostClassifier

rng = np.random.default_rng(1)
n_rows, n_words, n_topics, n_tags = 3500, 600, 12, 60
names = np.array([f"tag-{j:02d}" for j in range(n_tags)])

topics = np.zeros((n_rows, n_topics))
for i, k in enumerate(rng.integers(1, 3, size=n_rows)):
    topics[i, rng.choice(n_topics, size=k, replace=False)] = 1
word_rates = rng.gamma(0.15, 1.0, size=(n_topics, n_words))
X = sparse.csr_matrix(rng.poisson(0.5 * topics @ word_rates))

tag_rates = np.zeros((n_topics, n_tags))
for j in range(n_tags):
    frequency = 0.9 * (1 - j / n_tags) ** 2 + 0.08  # the last ones are rare
    tag_rates[rng.choice(n_topics, size=2, replace=False), j] = frequency * rng.uniform(0.7, 1, 2)
indicator = rng.random((n_rows, n_tags)) < 1 - np.exp(-topics @ tag_rates)
tags = [set(names[row]) for row in indicator]
print(f"{X.nnz / X.shape[0]:.0f} words and {indicator.sum(axis=1).mean():.1f} tags a question")

# %%
# Pass tags as sets. ``predict_top_k`` suggests the best ones.

train, test = slice(0, 2500), slice(2500, None)
model = ManyBoostClassifier(random_state=0).fit(X[train], tags[train])
suggested, scores = model.predict_top_k(X[test], 5)
for row in range(3):
    print("suggested", *suggested[row][:4], "  given", *sorted(tags[2500 + row]))

# %%
# The probability of a rare tag is seldom above one half, so the usual threshold never predicts it.
# ``thresholds="tuned"`` finds the threshold with the best F1 for each tag, on validation rows.

tuned = ManyBoostClassifier(thresholds="tuned", validation_fraction=0.25, random_state=0).fit(
    X[train], tags[train]
)
truth = indicator[test][:, np.argsort(names)]
f1 = {
    "threshold 0.5": f1_score(truth, model.predict(X[test]), average=None, zero_division=0),
    "tuned thresholds": f1_score(truth, tuned.predict(X[test]), average=None, zero_division=0),
}

# %%
# The plot shows both for every tag, and how many tags are found among the first k suggestions.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=[3, 2]
)
frequency = truth.mean(axis=0)
for (name, values), colour, marker in zip(f1.items(), ("0.55", "C0"), ("o", "D"), strict=True):
    left.scatter(
        frequency,
        values,
        s=18,
        color=colour,
        marker=marker,
        label=f"{name}, mean {values.mean():.2f}",
    )
left.vlines(frequency, *f1.values(), color="0.85", lw=1, zorder=0)
left.set_xscale("log")
left.set_xticks([0.02, 0.05, 0.1, 0.2], ["2 %", "5 %", "10 %", "20 %"])
left.minorticks_off()
left.set(xlabel="questions with the tag", ylabel="F1 on test questions", title="Each dot is a tag")
left.legend(frameon=False, loc="upper left")

ks = np.arange(1, 11)
ranked, _ = model.predict_top_k(X[test], ks[-1])
hits = np.array([[tag in tags[2500 + i] for tag in row] for i, row in enumerate(ranked)])
n_given = np.maximum(truth.sum(axis=1), 1)[:, None]
right.plot(ks, (hits.cumsum(axis=1) / n_given).mean(axis=0), "o-", label="tags found")
right.plot(ks, (hits.cumsum(axis=1) / ks).mean(axis=0), "s-", label="correct", color="C1")
right.set(xlabel="number of suggestions", ylabel="share", title="The first k suggestions")
right.set_ylim(0, 1)
right.legend(frameon=False)
plt.show()
