"""The area "model_files", in seconds; `python -m torture model_files` tries longer."""

from torture.areas import model_files


def test_every_figure_holds():
    figures = model_files.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []
