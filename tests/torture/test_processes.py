"""Processes and threads, in seconds; `python -m torture processes` tries longer."""

from torture.areas import processes


def test_every_figure_holds():
    figures = processes.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []
