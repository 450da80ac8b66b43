"""The plots of the report, from a run's summaries."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.records import Run, Summary

# The library's hue; manyboost is red, its strategies differ by dash.
LOOKS: dict[str, tuple[str, str]] = {
    "manyboost-relabel": ("#c8102e", "-"),
    "manyboost-project": ("#c8102e", "--"),
    "manyboost-multioutput": ("#c8102e", ":"),
    "manyboost-independent": ("#c8102e", "-."),
    "xgboost-projection": ("#1f77b4", "--"),
    "xgboost-multi-output-tree": ("#1f77b4", "-"),
    "xgboost-one-output-per-tree": ("#1f77b4", ":"),
    "lightgbm-per-output": ("#2ca02c", "-"),
    "lightgbm-softmax": ("#2ca02c", "-"),
    "catboost": ("#e08a00", "-"),
    "catboost-lossguide": ("#e08a00", "--"),
    "hessboost-multi-output-tree": ("#8c564b", "-"),
    "sklearn-hist-per-output": ("#7b4fa3", "-"),
    "sklearn-random-forest": ("#666666", "-"),
}
CURVES = ("regression-20000x50x50", "mediamill", "delicious")
MEGABYTE = 10**6


def draw(run: Run, folder: Path, suffix: str = "svg") -> list[Path]:
    """Draw every plot there is data for; the files written."""
    prepare()
    folder.mkdir(parents=True, exist_ok=True)
    plots = {
        "time-against-outputs": lambda: against_outputs(
            run, "fit time, seconds", lambda summary: summary.fit_seconds
        ),
        "memory-against-outputs": lambda: against_outputs(
            run, "peak memory above the data, MB", megabytes
        ),
        "score-against-time": lambda: against_time(run),
    }
    written = []
    for name, plot in plots.items():
        figure = plot()
        if figure is not None:
            file = folder / f"{name}.{suffix}"
            save(figure, file)
            written.append(file)
    return written


def prepare() -> None:
    """The look of all pictures."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "manyboost",  # the same data give the same bytes
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#e4e4e4",
            "legend.frameon": False,
        }
    )


def save(figure: Any, file: Path) -> None:
    date = {"Date": None} if file.suffix == ".svg" else None
    figure.savefig(file, bbox_inches="tight", dpi=110, metadata=date)


def megabytes(summary: Summary) -> float | None:
    peak = summary.peak_bytes
    # A tenth of a megabyte is what the counter can tell; a logarithmic axis has no zero.
    return None if peak is None else max(peak / MEGABYTE, 0.1)


def against_outputs(run: Run, label: str, value: Callable[[Summary], float | None]) -> Any:
    """One panel per kind of generated data: value over the number of outputs, both logarithmic."""
    from matplotlib.ticker import LogLocator

    shapes = output_series(run)
    if not shapes:
        return None
    figure, panels = grid(len(shapes), columns=2, sharey=True)
    for panel, (title, by_outputs) in zip(panels, shapes.items(), strict=True):
        for contestant in LOOKS:
            points = []
            for n_outputs, workload in sorted(by_outputs.items()):
                summary = run.find(workload, contestant)
                if summary and (y := value(summary)) is not None:
                    points.append((n_outputs, y, summary.extrapolated is not None))
            line(panel, contestant, points if len(points) > 1 else [])
        panel.set(xscale="log", yscale="log", title=title, xlabel="outputs")
        ticks = sorted(by_outputs)
        panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        panel.minorticks_off()
        low, high = panel.get_ylim()
        if high < 30 * low:  # powers of ten alone would be one or two ticks
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(plain)
    panels[0].set_ylabel(label)
    legend(figure, panels, "hollow: stopped at its time limit")
    return figure


def output_series(run: Run) -> dict[str, dict[int, str]]:
    """title → {number of outputs: workload}, for the shapes run with more than one number."""
    series: dict[str, dict[int, str]] = {}
    for workload in run.workloads():
        if shape := re.fullmatch(r"(regression|multilabel)-(\d+)x(\d+)x(\d+)", workload):
            n, p, d = (int(number) for number in shape.groups()[1:])
            kind = {"regression": "regression", "multilabel": "multi-label"}[shape[1]]
            title = f"{kind}, {n:,} rows × {p} features"
            series.setdefault(title, {})[d] = workload
    return {title: found for title, found in sorted(series.items(), reverse=True) if len(found) > 1}


def against_time(run: Run) -> Any:
    """One panel per data set: test score over fit time, manyboost with its longest fit."""
    present = [
        workload
        for workload in run.workloads()
        if any(s.curve for s in run.of(workload) if s.contestant in LOOKS)
    ]
    shown = [w for w in CURVES if w in present] or present[:4]
    if not shown:
        return None
    figure, panels = grid(len(shown), columns=min(3, len(shown)), sharey=False)
    for panel, workload in zip(panels, shown, strict=True):
        found = [run.longest(workload, contestant) for contestant in LOOKS]
        drawn = [summary for summary in found if summary and summary.curve]
        for summary in drawn:
            partly = summary.extrapolated is not None
            points = [(seconds, score, False) for _, seconds, score in summary.curve]
            line(panel, summary.contestant, points, markers=False)
            panel.plot(*points[-1][:2], **end_marker(summary.contestant, partly))
        score_name = drawn[0].records[0]["score_name"]
        panel.set(
            xscale="log", title=workload, xlabel="fit time, seconds", ylabel=f"test {score_name}"
        )
        panel.xaxis.set_major_formatter(plain)
        focus(panel, drawn)
    legend(figure, panels, "hollow end: stopped at its time limit")
    return figure


def plain(value: float, position: int) -> str:
    """Tick labels as numbers, not as powers of ten."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def focus(panel: Any, summaries: list[Summary]) -> None:
    """Leave out the first rounds' low scores, which would squeeze the part that is compared."""
    ends = [summary.curve[-1][2] for summary in summaries]
    tops = [summary.best_point[2] for summary in summaries]
    starts = [summary.curve[0][2] for summary in summaries]
    top = max(tops)
    middle = sorted(starts)[len(starts) // 2]
    bottom = max(min(*ends, top - 0.05) - 0.05 * abs(top), top - 1.1 * (top - middle))
    panel.set_ylim(bottom, top + 0.04 * (top - bottom))


def grid(n_panels: int, *, columns: int, sharey: bool) -> tuple[Any, list[Any]]:
    import matplotlib.pyplot as plt

    columns = min(columns, n_panels)
    rows = math.ceil(n_panels / columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(5.2 * columns, 4.2 * rows),
        sharey=sharey,
        squeeze=False,
        layout="tight",
    )
    panels = list(axes.flat)
    for spare in panels[n_panels:]:
        spare.remove()
    return figure, panels[:n_panels]


def line(
    panel: Any, contestant: str, points: list[tuple[float, float, bool]], markers: bool = True
):
    """A contestant's line; points that were extrapolated get hollow markers."""
    if not points:
        return
    colour, dash = LOOKS[contestant]
    x, y, _ = zip(*points, strict=True)
    width = 2.4 if contestant == "manyboost-relabel" else 1.5
    panel.plot(x, y, dash, color=colour, linewidth=width, label=contestant)
    if markers:
        for a, b, hollow in points:
            panel.plot(a, b, **end_marker(contestant, hollow))


def end_marker(contestant: str, hollow: bool) -> dict[str, Any]:
    colour, _ = LOOKS[contestant]
    face = "white" if hollow else colour
    return {"marker": "o", "markersize": 5, "color": colour, "markerfacecolor": face}


def legend(figure: Any, panels: list[Any], remark: str) -> None:
    """One legend for all panels, below them, in the order of LOOKS."""
    handles: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    names = [name for name in LOOKS if name in handles]
    figure.legend(
        [handles[name] for name in names],
        names,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=min(4, len(names)),
        title=remark,
        title_fontsize="small",
        handlelength=3,
    )
