"""What a release promises: one version everywhere, pinned actions, permissive licences, all wheels.

It runs without the package too, before one is published: ``pytest --noconftest -c /dev/null``.
"""

import ast
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PERMISSIVE = {
    *("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "Unicode-3.0", "Zlib"),
    "Apache-2.0 WITH LLVM-exception",
}
# Releases have a wheel for each of these, and one for each without the GIL.
PLATFORMS = {
    *("manylinux_2_28_x86_64", "manylinux_2_28_aarch64"),
    *("musllinux_1_2_x86_64", "musllinux_1_2_aarch64"),
    *("macosx_x86_64", "macosx_arm64", "win_amd64"),
}


def version_in(path, pattern=r'^version = "(.+)"$'):
    return re.search(pattern, (ROOT / path).read_text(), re.MULTILINE)[1]


VERSION = version_in("Cargo.toml")


def test_the_version_is_the_same_everywhere():
    assert version_in("crates/predict/Cargo.toml") == VERSION
    assert version_in("CITATION.cff", r"^version: (.+)$") == VERSION
    for lock in ("Cargo.lock", "crates/predict/Cargo.lock"):
        own = r'name = "(manyboost-\w+)"\nversion = "(.+)"'
        found = dict(re.findall(own, (ROOT / lock).read_text()))
        assert set(found.values()) == {VERSION}


@pytest.mark.skipif(not os.environ.get("MANYBOOST_TAG"), reason="no release is being made")
def test_a_tag_is_the_version_and_has_its_part_of_the_changelog():
    assert os.environ["MANYBOOST_TAG"] == f"v{VERSION}"
    dated = rf"^## \[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d$"
    assert re.search(dated, (ROOT / "CHANGELOG.md").read_text(), re.M)


@pytest.mark.skipif(not os.environ.get("MANYBOOST_DIST"), reason="no release is being made")
def test_there_are_wheels_for_all_platforms_and_sources():
    names = [path.name for path in Path(os.environ["MANYBOOST_DIST"]).iterdir()]
    assert f"manyboost-{VERSION}.tar.gz" in names
    wheels = [name.removesuffix(".whl").split("-") for name in names if name.endswith(".whl")]

    def platforms(abi):
        tags = {tag for *_, found, tags in wheels if found == abi for tag in tags.split(".")}
        return {re.sub(r"^macosx_\d+_\d+_", "macosx_", tag) for tag in tags}

    assert platforms("abi3") >= PLATFORMS
    assert platforms("cp314t") >= PLATFORMS


def test_the_supported_version_is_one_and_the_same_in_all_places():
    oldest = version_in("pyproject.toml", r'^requires-python = ">=3\.(\d+)"$')
    assert f"abi3-py3{oldest}" in (ROOT / "crates/python/Cargo.toml").read_text()
    assert f'"3.{oldest}"' in (ROOT / ".github/workflows/tests.yml").read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash(path):
    used = re.findall(r"uses: (.+)$", path.read_text(), re.MULTILINE)
    for action in used:
        pinned = r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
        assert action.startswith("./") or re.fullmatch(pinned, action), action


def test_one_action_has_one_hash():
    text = "\n".join(path.read_text() for path in WORKFLOWS)
    pins = set(re.findall(r"uses: ([\w-]+/[\w-]+)[\w/-]*@(\w+)", text))
    assert len(pins) == len({action for action, _ in pins}) > 5


def test_the_battery_runs_in_all_its_areas_every_night():
    tree = ast.parse((ROOT / "torture/areas/__init__.py").read_text())
    (order,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "ORDER"
    )
    text = (ROOT / ".github/workflows/nightly.yml").read_text()
    listed = re.search(r"area:\n((?: +- \w+\n)+)", text)[1]
    assert sorted(listed.replace("-", "").split()) == sorted(order)


@pytest.fixture(scope="module")
def crates():
    if shutil.which("cargo") is None:
        pytest.skip("no cargo on the PATH (https://rustup.rs)")
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--all-features"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cargo knows nothing about its packages here: {done.stderr[-200:]}")
    return json.loads(done.stdout)["packages"]


def choices(licence):
    """The choices of a licence expression, all of which must be made."""
    licence = licence.replace("(", "").replace(")", "").replace("/", " OR ")
    # In these expressions AND stands between choices, never inside of one.
    return [part.split(" OR ") for part in licence.split(" AND ")]


def test_crates_have_permissive_licences(crates):
    assert len(crates) > 20
    for crate in crates:
        for options in choices(crate["license"] or "none"):
            assert PERMISSIVE.intersection(options), (crate["name"], crate["license"])


def test_crates_come_from_the_registry_or_from_here(crates):
    for crate in crates:
        assert crate["source"] in (None, "registry+https://github.com/rust-lang/crates.io-index")


def test_the_runtime_without_python_has_no_dependencies():
    lock = (ROOT / "crates/predict/Cargo.lock").read_text()
    assert lock.count("[[package]]") == 1
    assert "\nversion = 3\n" in lock
