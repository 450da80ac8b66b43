"""The area "numerical", in seconds; `python -m torture numerical` tries longer."""

from torture.areas import numerical


def test_every_figure_holds():
    figures = numerical.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []
