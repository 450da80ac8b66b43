"""Generated pages: which are of the present build."""

import re
from pathlib import Path

from benchmarks import machine, pages

ROOT = Path(__file__).resolve().parent.parent.parent


def test_every_generated_page_is_known():
    written = set()
    for module in [*ROOT.glob("benchmarks/**/*.py"), *ROOT.glob("torture/*.py")]:
        for line in re.findall(r'^[A-Z]+ = .*"docs".*\.md"$', module.read_text(), re.M):
            written.add("/".join(re.findall(r'"([\w.-]+)"', line)))
    written = {page for page in written if "/decisions/" not in page}
    assert len(written) > 10
    assert written <= set(pages.PAGES)
    for page in pages.PAGES:
        assert (ROOT / page).is_file(), page


def test_every_command_exists():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    for command in pages.PAGES.values():
        program, *words = command.split()
        if program == "make":
            assert words[0] in targets
        else:
            assert (ROOT / words[1].replace(".", "/")).with_suffix(".py").is_file()


def test_a_page_is_of_this_build_only_if_all_its_figures_are():
    assert pages.state(pages.builds("nothing"), "1.2 (aa)") == "names no build"
    text = "manyboost 1.2 (0123abcd), numpy 2; again manyboost 1.2 (0123abcd)."
    assert pages.state(pages.builds(text), "1.2 (0123abcd)") == "of this build"
    mixed = text + " Times: manyboost 1.1 (0123abce), manyboost 1.0."
    assert pages.state(pages.builds(mixed), "1.2 (0123abcd)") == "older: 1.1 (0123abce), 1.0"


def test_a_build_is_known_by_its_sources(tmp_path):
    package = tmp_path / "manyboost"
    package.mkdir()
    (package / "a.py").write_text("x = 1")
    extension = package / "_core.abi3.so"
    extension.write_bytes(b"\0here sources:0123456789abcdef and there")
    digest = machine.digest(package)
    extension.write_bytes(b"\0compiled elsewhere sources:0123456789abcdef")
    assert machine.digest(package) == digest
    extension.write_bytes(b"\0here sources:0123456789abcdee and there")
    assert machine.digest(package) != digest
    extension.write_bytes(b"an older one")
    assert machine.digest(package) not in (digest, machine.digest(None))


def test_the_extension_names_its_sources():
    from manyboost import _core

    assert re.fullmatch("sources:[0-9a-f]{16}", _core.__sources__)
