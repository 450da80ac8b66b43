"""The area "model_files", in seconds; `python -m torture model_files` tries longer."""

from pathlib import Path

from torture.areas import model_files

MODELS = Path(__file__).resolve().parents[1] / "models"


def test_every_figure_holds():
    figures = model_files.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []


def test_every_golden_file_is_a_seed_of_the_fuzz_target(tmp_path):
    model_files.write_seeds(tmp_path)
    golden = {path.stem for path in MODELS.glob("*.mb")}
    assert {path.name for path in tmp_path.iterdir()} == golden
    # A word for the kind, outputs, features, and the length of each of eleven arrays.
    assert all(path.stat().st_size > 4 * 14 for path in tmp_path.iterdir())
