"""Figures as SVG: text stays text, colours come from a style sheet that knows light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyboost.experiments.report.cells import fixed
from manyboost.experiments.report.markup import asset, escape
from manyboost.experiments.results import CriticalDifference, Lines, Series

Points = NDArray[np.float64]

N_COLOURS = 8
N_DASHES = 3
#: Lines are told apart by colour alone up to here, then by dashes too.
SOLID = 4
#: The margin of a figure in a file of its own, and its background.
EDGE = 12
PAPER = f'<rect class="paper" x="-{EDGE}" y="-{EDGE}" width="100%" height="100%"/>'


def draw(
    block: Lines | CriticalDifference,
    anchor: str,
    colours: Mapping[str, int],
    *,
    alone: bool = False,
) -> str:
    """A figure as an ``<svg>`` element.

    Parameters
    ----------
    block : Lines or CriticalDifference
        What to draw.
    anchor : str
        Unique in the page: title and description get anchors made of it.
    colours : mapping
        The number of the colour of every line.
    alone : bool
        For a file of its own, with the style sheet inside.
    """
    if isinstance(block, Lines):
        picture = _lines(block, colours)
    else:
        picture = _critical_difference(block)
    edge = EDGE if alone else 0
    width, height = round(picture.width) + 2 * edge, round(picture.height) + 2 * edge
    if alone:
        size = f'width="{width}" height="{height}"'
        inside = f"<style>{asset('figure.css')}</style>" + PAPER
    else:
        size, inside = f'style="max-width:{picture.zoom * width:.0f}px"', ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="figure {picture.kind}" {size}'
        f' viewBox="{-edge} {-edge} {width} {height}" role="img"'
        f' aria-labelledby="{anchor}.title {anchor}.desc">'
        f'<title id="{anchor}.title">{escape(block.title)}</title>'
        f'<desc id="{anchor}.desc">{escape(picture.description)}</desc>'
        f"{inside}{''.join(picture.parts)}</svg>\n"
    )


@dataclass(frozen=True)
class Picture:
    """What is inside an ``<svg>``, in units that are pixels at zoom 1."""

    kind: str
    width: float
    height: float
    description: str
    parts: Sequence[str]
    zoom: float = 1.0


def _text(x: float, y: float, text: str, anchor: str = "start", style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(text)}</text>'


def _path(points: str, style: str) -> str:
    return f'<path class="{style}" d="{points}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return _path(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", style)


# ------------------------------------------------------------------ lines

WIDTH = 560
PLOT_HEIGHT = 250
LEFT, RIGHT, BOTTOM = 58, 18, 52
ROW = 23  # of the legend
KEY = 32  # the dash before a label
CHARACTER = 9.0  # the width of a letter when a narrow screen enlarges the text


@dataclass(frozen=True)
class Axis:
    """Numbers to coordinates: ``low`` lies at ``start``, ``high`` at ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, values: Points | float) -> Points:
        """The coordinates of some values."""
        low, high, values = self.low, self.high, np.asarray(values, dtype=np.float64)
        if self.log:
            low, high, values = math.log(low), math.log(high), np.log(values)
        return self.start + (values - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Round values within the axis, with their labels; an empty label: a minor tick."""
        make = log_ticks if self.log else linear_ticks
        return make(self.low, self.high)


def _lines(block: Lines, colours: Mapping[str, int]) -> Picture:
    curves = [(series, _points(series, block.x_log)) for series in block.series]
    curves = [(series, curve) for series, curve in curves if len(curve[0])]
    corners = _legend([series.label for series, _ in curves])
    top = max((y for _, y in corners), default=0) + ROW + 22
    bottom = top + PLOT_HEIGHT
    described = f"Lines. Horizontal: {block.x_label}{', logarithmic' * block.x_log}. "
    described += f"Vertical: {block.y_label}. "
    if not curves:
        empty = _text(WIDTH / 2, 40, "Nothing to show.", "middle", "muted")
        return Picture("lines", WIDTH, 64, described + "Nothing to show.", [empty])

    x_range = _range([x for _, (x, *_) in curves], block.x_log)
    y_range = _range([y for _, (_, *ys) in curves for y in ys], log=False, margin=0.04)
    x = Axis(*x_range, LEFT, WIDTH - RIGHT, block.x_log)
    y = Axis(*y_range, bottom, top)
    parts = [*_frame(block, x, y, top, bottom)]
    for (series, curve), corner in zip(curves, corners, strict=True):
        parts.append(_curve(series.label, curve, x, y, colours[series.label], corner))
    ends = "; ".join(f"{series.label} {curve[1][-1]:.4g}" for series, curve in curves)
    return Picture("lines", WIDTH, bottom + BOTTOM, f"{described}Ends: {ends}.", parts, zoom=1.1)


def _points(series: Series, log: bool) -> tuple[Points, Points, Points, Points]:
    """x, y, low and high of the points that can be drawn, by x."""
    x, y = np.asarray(series.x, np.float64), np.asarray(series.y, np.float64)
    low = y if series.low is None else np.asarray(series.low, np.float64)
    high = y if series.high is None else np.asarray(series.high, np.float64)
    drawn = np.isfinite(x) & np.isfinite(y)
    if log:
        drawn &= x > 0
    x, y, low, high = x[drawn], y[drawn], low[drawn], high[drawn]
    order = np.argsort(x, kind="stable")
    low, high = (np.where(np.isfinite(edge), edge, y) for edge in (low, high))
    return x[order], y[order], low[order], high[order]


def _range(values: Sequence[Points], log: bool, margin: float = 0.0) -> tuple[float, float]:
    low, high = float(min(v.min() for v in values)), float(max(v.max() for v in values))
    if low == high:
        return (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
    space = margin * (high - low)
    return low - space, high + space


def _legend(labels: Sequence[str]) -> list[tuple[float, float]]:
    """Where the entries of the legend begin: one after the other, in as many rows as it takes."""
    corners, x, y = [], 0.0, ROW / 2
    for label in labels:
        length = KEY + CHARACTER * len(label)
        if x and x + length > WIDTH:
            x, y = 0.0, y + ROW
        corners.append((x, y))
        x += length + 18
    return corners


def _frame(block: Lines, x: Axis, y: Axis, top: float, bottom: float) -> Iterator[str]:
    """Grid, ticks and the names of the axes."""
    for value, label in y.ticks():
        at = float(y(value))
        yield _line(LEFT, at, WIDTH - RIGHT, at, "grid")
        yield _text(LEFT - 8, at + 4.5, label, "end", "tick")
    for value, label in x.ticks():
        at = float(x(value))
        yield _line(at, bottom, at, bottom + (6 if label else 3), "axis")
        yield _text(at, bottom + 22, label, "middle", "tick") if label else ""
    yield _line(LEFT, bottom, WIDTH - RIGHT, bottom, "axis")
    yield _text(0, top - 12, block.y_label, "start", "label")
    yield _text((LEFT + WIDTH - RIGHT) / 2, bottom + 44, block.x_label, "middle", "label")


def _curve(
    label: str,
    curve: tuple[Points, Points, Points, Points],
    x: Axis,
    y: Axis,
    number: int,
    corner: tuple[float, float],
) -> str:
    """A line, its band and its entry in the legend."""
    across, line, low, high = x(curve[0]), y(curve[1]), y(curve[2]), y(curve[3])
    dash = min(number // SOLID, N_DASHES - 1)
    parts = [f'<g class="series c{number % N_COLOURS} d{dash}"><title>{escape(label)}</title>']
    if not np.array_equal(low, high):
        edge = [*_thin(across, high), *reversed(_thin(across, low))]
        parts.append(_path(f"M{_joined(edge)}Z", "band"))
    points = _thin(across, line)
    parts.append(_path(f"M{_joined(points)}", "line"))
    parts.append('<circle class="end" cx="{:.1f}" cy="{:.1f}" r="2.6"/>'.format(*points[-1]))
    left, middle = corner
    parts.append(_line(left + 1, middle, left + 25, middle, "line"))
    parts.append(_text(left + KEY, middle + 4.5, label))
    return "".join(parts) + "</g>"


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _thin(x: Points, y: Points) -> list[tuple[float, float]]:
    """The points without those that no eye could tell: of every column of pixels, its outline."""
    starts = np.flatnonzero(np.diff(np.round(x), prepend=-np.inf)).tolist()
    kept: list[int] = []
    for start, end in zip(starts, [*starts[1:], len(x)], strict=True):
        part = y[start:end]
        kept += sorted({start, start + int(part.argmin()), start + int(part.argmax()), end - 1})
    return [(float(x[i]), float(y[i])) for i in kept]


# ------------------------------------------------------------------ ticks


def linear_ticks(low: float, high: float, about: int = 6) -> list[tuple[float, str]]:
    """At most `about` multiples of 1, 2 or 5 times a power of ten, with their labels.

    Examples
    --------
    >>> [label for _, label in linear_ticks(0.02, 0.71)]
    ['0.2', '0.4', '0.6']
    """
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(f * power for f in (1, 2, 5, 10, 20) if f * power >= rough)
    digits = max(0, -math.floor(math.log10(step * 1.0001)))
    multiples = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [(k * step, fixed(k * step, digits)) for k in multiples]


def log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Powers of ten; 2 and 5 times them where these are few; the others unlabelled.

    Examples
    --------
    >>> [label for _, label in log_ticks(0.03, 200) if label]
    ['0.1', '1', '10', '100']
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [(k, n) for n in exponents for k in range(1, 10) if low <= k * 10.0**n <= high]
    powers = [n for k, n in ticks if k == 1]
    if len(ticks) < 3:
        return linear_ticks(low, high)
    labelled = (1,) if len(powers) > 2 else (1, 2, 5)
    every = math.ceil(len(powers) / 6)
    return [
        (k * 10.0**n, _power(k, n) if k in labelled and n % every == 0 else "") for k, n in ticks
    ]


def _power(k: int, n: int) -> str:
    if -3 <= n <= 4:
        return f"{k * 10.0**n:.{max(0, -n)}f}"
    ten = "10" + str(n).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ten if k == 1 else f"{k}·{ten}"


# ------------------------------------------------------------------ critical difference

AXIS_LENGTH = 360
LETTER = 7.2
AXIS_AT = 74.0
LABEL_ROW = 25


def _critical_difference(block: CriticalDifference) -> Picture:
    ranked = sorted(block.ranks.items(), key=lambda item: item[1])
    if not ranked:
        empty = _text(WIDTH / 2, 40, "Nothing to show.", "middle", "muted")
        return Picture("ranks", WIDTH, 64, "Nothing to show.", [empty])

    side = 56 + LETTER * max(len(name) for name, _ in ranked)
    width = 2 * side + AXIS_LENGTH
    last = max(2, len(ranked), math.ceil(max(ranked[-1][1], 1 + block.distance)))
    axis = Axis(1, last, side, width - side)

    bars = list(_bars(block, axis))
    first_label = AXIS_AT + 26 + 10 * (1 + max((level for *_, level in bars), default=0))
    half = math.ceil(len(ranked) / 2)
    parts = list(_rank_axis(axis, last, block.distance))
    for i, (name, rank) in enumerate(ranked[:half]):
        parts.append(_rank(name, rank, axis, first_label + LABEL_ROW * i, left=True))
    for i, (name, rank) in enumerate(reversed(ranked[half:])):
        parts.append(_rank(name, rank, axis, first_label + LABEL_ROW * i, left=False))
    for start, end, level in bars:
        at = AXIS_AT + 16 + 10 * level
        parts.append(_line(start - 5, at, end + 5, at, "bar"))
    height = first_label + LABEL_ROW * (half - 1) + 18
    return Picture("ranks", width, height, _ranks_described(block, ranked), parts)


def _rank_axis(axis: Axis, last: int, distance: float) -> Iterator[str]:
    every = math.ceil(last / 15)
    yield _line(axis.start, AXIS_AT, axis.end, AXIS_AT, "axis")
    for rank in range(1, last + 1, every):
        at = float(axis(rank))
        yield _line(at, AXIS_AT - 6, at, AXIS_AT, "axis")
        yield _text(at, AXIS_AT - 12, str(rank), "middle", "tick")
    yield _text(axis.start - 14, AXIS_AT - 12, "average rank", "end", "muted")
    if distance > 0 and math.isfinite(distance):
        start, end = float(axis(1)), float(axis(1 + distance))
        yield _path(f"M{start:.1f} 27v10m0 -5H{end:.1f}m0 -5v10", "axis")
        yield _text(start, 18, f"critical difference {fixed(distance, 2)}")


def _rank(name: str, rank: float, axis: Axis, at: float, left: bool) -> str:
    """A method: from its place on the axis down, then outwards to its name."""
    place, value = float(axis(rank)), fixed(rank, 2)
    edge, anchor = (axis.start - 14, "end") if left else (axis.end + 14, "start")
    words = [f"<tspan>{escape(name)}</tspan>", f'<tspan class="muted">{value}</tspan>']
    label = "\u2002".join(words if left else reversed(words))
    gap = -6 if left else 6
    return (
        _path(f"M{place:.1f} {AXIS_AT:.1f}V{at:.1f}H{edge:.1f}", "lead")
        + f'<circle class="dot" cx="{place:.1f}" cy="{AXIS_AT:.1f}" r="3.2"/>'
        + f'<text x="{edge + gap:.1f}" y="{at + 4.5:.1f}" text-anchor="{anchor}">{label}</text>'
    )


def _bars(block: CriticalDifference, axis: Axis) -> Iterator[tuple[float, float, int]]:
    """Start, end and level of the bar of every group; bars on one level do not touch."""
    known = [[name for name in group if name in block.ranks] for group in block.groups]
    spans = [sorted(float(axis(block.ranks[name])) for name in group) for group in known]
    ends: list[float] = []
    for start, *_, end in sorted(span for span in spans if len(span) > 1):
        level = next((i for i, taken in enumerate(ends) if taken + 16 < start), len(ends))
        ends[level : level + 1] = [end]
        yield start, end, level


def _ranks_described(block: CriticalDifference, ranked: Sequence[tuple[str, float]]) -> str:
    ranks = "; ".join(f"{name} {fixed(rank, 2)}" for name, rank in ranked)
    text = (
        f"Average ranks, the best first: {ranks}. Critical difference {fixed(block.distance, 2)}."
    )
    joined = [", ".join(group) for group in block.groups if len(group) > 1]
    if joined:
        text += f" Not significantly apart: {'; '.join(joined)}."
    return text
