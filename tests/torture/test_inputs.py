"""The area "inputs", in seconds; `python -m torture inputs` tries longer."""

from torture.areas import inputs


def test_every_figure_holds():
    figures = inputs.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []
