"""The documentation site as it was built: no link leads nowhere.

``make test-docs`` builds it and names it in MANYBOOST_SITE.
"""

import os
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = os.environ.get("MANYBOOST_SITE")
pytestmark = pytest.mark.skipif(SITE is None, reason="make test-docs builds the site")

# What a page may lead to.
REFERENCES = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "srcset"}


class Page(HTMLParser):
    """The references of a page, and the places in it that can be referred to."""

    def __init__(self, path):
        super().__init__()
        self.references, self.places = [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        if reference := given.get(REFERENCES.get(tag)):
            self.references.append(reference)
        if tag == "img" and (sizes := given.get("srcset")):
            self.references += [each.split()[0] for each in sizes.split(",")]


read = cache(Page)


def pages():
    found = sorted(Path(SITE).rglob("*.html"))
    return [page for page in found if "_static" not in page.parts]  # (templates of the theme)


def test_the_pages_that_were_asked_for_are_there():
    root, repository = Path(SITE), Path(__file__).parent.parent
    core = repository / "crates" / "core" / "src"
    modules = {path.stem for path in core.glob("*.rs")} - {"lib"}  # files and folders
    modules |= {path.parent.name for path in core.glob("*/mod.rs")}
    wanted = {f"internals/{module}.html" for module in modules}
    decisions = repository.joinpath("docs", "decisions").glob("*.md")
    wanted |= {f"decisions/{page.stem}.html" for page in decisions}
    wanted |= {"index.html", "start.html", "method.html", "changelog.html", "benchmarks.html"}
    wanted |= {f"reproduction/{name}.html" for name in ("index", "README", "errata", "multilabel")}
    wanted |= {"theory.html"}
    missing = {name for name in wanted if not (root / name).is_file()}
    assert missing == set()
    examples = repository.joinpath("examples").glob("*.py")
    shown = {page.stem for page in root.joinpath("gallery").glob("*.html")}
    assert {example.stem for example in examples} - {"demo"} <= shown
    assert len(shown) > 8


def test_every_example_has_a_picture():
    for page in sorted(Path(SITE, "gallery").glob("*.html")):
        if page.stem not in ("index", "sg_execution_times"):
            pictures = [name for name in read(page).references if "/sphx_glr_" in name]
            assert pictures, page.stem


def test_links_within_the_site_lead_somewhere():
    broken = []
    for page in pages():
        for reference in read(page).references:
            parts = urlsplit(reference)
            if parts.scheme or parts.netloc:
                continue
            target = page.parent / unquote(parts.path) if parts.path else page
            if target.is_dir():
                target = target / "index.html"
            if not target.is_file():
                broken.append(f"{page.relative_to(SITE)} → {reference}")
            elif target.suffix == ".html" and unquote(parts.fragment) not in read(target).places:
                broken.append(f"{page.relative_to(SITE)} → {reference} (no such place)")
    assert broken == []


def test_nothing_is_fetched_from_elsewhere():
    fetched = [
        (page.name, reference)
        for page in pages()
        for reference in read(page).references
        if urlsplit(reference).netloc and reference.endswith((".js", ".css", ".png", ".svg"))
    ]
    assert fetched == []
