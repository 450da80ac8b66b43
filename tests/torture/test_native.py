"""The area "native", in seconds; `python -m torture native` tries longer."""

from torture.areas import native


def test_every_figure_holds():
    figures = native.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []


def test_licences_are_read_as_they_are_meant():
    for free in ("MIT", "MIT OR Apache-2.0", "MIT/GPL-3.0"):
        assert native.is_free(free)
    for unfree in (None, "", "GPL-3.0", "MIT AND GPL-3.0"):
        assert not native.is_free(unfree)
