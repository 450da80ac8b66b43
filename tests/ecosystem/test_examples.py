"""Programs and pages that use other packages run."""

import importlib.util
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "examples" / "packages").glob("with_*.py"))
PAGES = [ROOT / "docs" / "guide" / "tuning.md"]


def needs(code):
    """Skip if a package that the code imports is not installed."""
    for name in sorted(set(re.findall(r"^(?:from|import) (\w+)", code, re.M))):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed; make test-ecosystem installs it")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_runs(program, tmp_path, monkeypatch, capsys):
    needs(program.read_text())
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(program))
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S))
    needs(code)
    exec(compile(code, page.name, "exec"), {})
