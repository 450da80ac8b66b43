"""scikit-learn's checks by way of the battery, which tries other versions in the long run."""

from torture.areas import contract


def test_every_figure_holds():
    (figure,) = contract.run(long=False, seed=0)
    assert figure.holds, figure.line()


def test_the_oldest_versions_are_those_of_the_manifest():
    oldest, newest = contract.requirements()
    assert "scikit-learn==1.6.*" in oldest
    assert "scikit-learn>=1.6" in newest
