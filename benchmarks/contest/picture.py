"""Average ranks as a picture: who is within the critical difference of the best."""

from pathlib import Path

from benchmarks import plots
from benchmarks.contest.ranking import Ranking

OURS, OTHERS, BAND = "#c8102e", "#444444", "#f3e3c3"


def draw(ranking: Ranking, file: Path) -> bool:
    """Write the picture; False where there is nothing to draw."""
    ranks, difference = ranking.average_ranks(), ranking.critical_difference()
    if difference is None:
        return False
    plots.prepare()
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(7.0, 0.7 + 0.27 * len(ranks)), layout="tight")
    best = min(ranks.values())
    panel.axvspan(best, best + difference, color=BAND, zorder=0)
    for row, (name, rank) in enumerate(ranks.items()):
        colour = OURS if name.startswith("manyboost") else OTHERS
        panel.plot([best, rank], [row, row], color=colour, linewidth=1)
        panel.plot(rank, row, "o", color=colour, markersize=6)
        panel.annotate(f"{rank:.2f}", (rank, row), (7, -3.5), textcoords="offset points")
    panel.set_yticks(range(len(ranks)), list(ranks))
    panel.set(xlabel="average rank; shaded: within the critical difference of the best")
    panel.set_xlim(min(1.0, best), max([best + difference, *ranks.values()]) + 0.6)
    panel.invert_yaxis()
    panel.grid(visible=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    plots.save(figure, file)
    plt.close(figure)
    return True
