"""The wheel, installed in a clean environment without Rust, fits the models of this build."""

import json
import os
import re
import shutil
import subprocess
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from model_digest import digest

WHEEL = os.environ.get("MANYBOOST_WHEEL")
pytestmark = pytest.mark.skipif(not WHEEL, reason="`make test-wheel` builds a wheel and tests it")
WINDOWS = os.name == "nt"
EXTENSION = "manyboost/_core.pyd" if WINDOWS else "manyboost/_core.abi3.so"
PLATFORMS = r"((many|musl)linux_\d+_\d+_(x86_64|aarch64)|macosx_\d+_\d+_\w+|win_amd64)"


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """Run a program of an environment that holds the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if WINDOWS else "bin")
    assert shutil.which("cargo", path=programs) is shutil.which("rustc", path=programs) is None

    def run(program, *arguments):
        environment = {"PATH": str(programs), "HOME": os.environ.get("HOME", str(folder))}
        # Windows starts no program without it.
        environment |= {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        command = [programs / program, *arguments]
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    # The versions of this environment: data that are drawn must be the same.
    packages = [f"{name}=={version(name)}" for name in ("numpy", "scipy", "scikit-learn")]
    options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    run("python", "-m", "pip", "install", *options, Path(WHEEL).resolve(), *packages)
    return run


def test_one_wheel_serves_all_versions_of_python_on_many_systems():
    name = rf"manyboost-[\d.]+-cp310-abi3-{PLATFORMS}(\.{PLATFORMS})*\.whl"
    assert re.fullmatch(name, Path(WHEEL).name)
    with zipfile.ZipFile(WHEEL) as wheel:
        files = wheel.namelist()
        (metadata,) = [file for file in files if file.endswith("METADATA")]
        text = wheel.read(metadata).decode()
    assert {EXTENSION, "manyboost/_core.pyi", "manyboost/py.typed"} <= set(files)
    assert [file for file in files if file.endswith((".so", ".pyd", ".dylib"))] == [EXTENSION]
    assert any(file.endswith("licenses/LICENSE") for file in files)
    assert {file.split("/")[0].partition("-")[0] for file in files} == {"manyboost"}
    required = {line for line in text.splitlines() if line.startswith("Requires-Dist:")}
    needed = [line for line in required if "extra ==" not in line]
    assert len(needed) == 3
    assert "extra == 'onnx'" in text


def test_it_lists_the_crates_that_it_contains():
    with zipfile.ZipFile(WHEEL) as wheel:
        (file,) = [
            name for name in wheel.namelist() if re.search(r"/sboms/.+\.cyclonedx\.json$", name)
        ]
        bill = json.loads(wheel.read(file))
    assert bill["bomFormat"] == "CycloneDX"
    listed = {each["name"]: each for each in bill["components"]}
    locked = (Path(__file__).parents[1] / "Cargo.lock").read_text()
    versions = dict(re.findall(r'name = "(.+)"\nversion = "(.+)"', locked))
    # What is linked into the extension, with licences and versions of the lock file.
    assert {"manyboost-core", "manyboost-predict", "pyo3", "numpy", "memmap2"} <= set(listed)
    for name in ("manyboost-predict", "pyo3", "numpy", "memmap2"):
        assert listed[name]["version"] == versions[name]
        assert listed[name]["licenses"]


def test_it_fits_the_same_models_to_the_last_bit(clean, tmp_path):
    script = tmp_path / "model_digest.py"
    shutil.copy(Path(__file__).with_name("model_digest.py"), script)
    assert clean("python", script, "relabel").split() == [digest(2, "relabel", 1)]


def test_it_is_the_package_of_the_clean_environment_with_its_command(clean):
    where = "import manyboost, sys; print(manyboost.__file__.startswith(sys.prefix))"
    assert clean("python", "-I", "-c", where).strip() == "True"
    assert version("manyboost") in clean("manyboost", "--version")
