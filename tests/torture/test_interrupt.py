"""Interrupts, in seconds; `python -m torture interrupt` tries longer, with huge rounds."""

from torture.areas import interrupt


def test_every_figure_but_the_time_holds():
    figures = interrupt.run(long=False, seed=0)
    # How fast a fit stops is for an idle machine to say; what it leaves behind is not.
    timeless = [figure for figure in figures if "stop" not in figure.what]
    assert len(timeless) == 3
    assert [figure.line() for figure in timeless if figure.holds is False] == []
