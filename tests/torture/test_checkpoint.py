"""Checkpoints, in seconds; `python -m torture checkpoint` tries longer."""

from torture.areas import checkpoint


def test_every_figure_holds():
    figures = checkpoint.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []
