"""Memory, in seconds; `python -m torture memory` tries longer."""

from torture.areas import memory


def test_every_figure_holds():
    figures = memory.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []
