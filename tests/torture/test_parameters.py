"""The area "parameters", in seconds; `python -m torture parameters` tries longer."""

from torture.areas import parameters


def test_every_figure_holds():
    figures = parameters.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []


def test_every_parameter_of_the_table_is_drawn():
    assert parameters.undrawn() == set()
