"""The documentation site: ``make docs`` builds it into ``docs/_build/html``."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import internals  # noqa: E402  (beside this file)

import manyboost  # noqa: E402

project = "manyboost"
author = "manyboost developers"
version = release = manyboost.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
# Output of other programs is not a source.
exclude_patterns = ["_build", "reproduction/tables", "reproduction/figures"]
nitpicky = True
nitpick_ignore = [
    ("py:mod", "sklearn.callback"),
    ("py:func", "sklearn.set_config"),
    ("py:func", "sklearn.datasets.fetch_openml"),
]
smartquotes = False  # defaults are code
toc_object_entries_show_parents = "hide"
html_show_sourcelink = False
html_copy_source = False

# ------------------------------------------------------------------ pages

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# ------------------------------------------------------------------ the reference

autodoc_typehints = "none"  # the docstrings say more, in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()

# ------------------------------------------------------------------ the gallery

# MANYBOOST_DOCS=pages builds the site without running examples.
without_gallery = os.environ.get("MANYBOOST_DOCS") == "pages"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # Those that need other packages are shown as they are.
    "filename_pattern": r"a^" if without_gallery else r"examples/\w+\.py$",
    "ignore_pattern": r"^demo\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "run_stale_examples": True,  # the library may have changed, even if the example did not
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
    "image_srcset": ["2x"],
    "thumbnail_size": (600, 260),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "doc_module": ("manyboost",),
    "reference_url": {"manyboost": None},
    "backreferences_dir": None,
    "min_reported_time": 1e9,
}
# The gallery's configuration cannot be cached, which does not matter.
suppress_warnings = ["config.cache"]

# ------------------------------------------------------------------ the look

html_theme = "pydata_sphinx_theme"
html_title = "manyboost"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
WIDE_PAGES = ["benchmarks", "contest", "study", "intervals", "labels", "guide/tuning"]
WIDE_PAGES += [f"reproduction/{page.stem}" for page in (HERE / "reproduction").glob("*.md")]
html_theme_options = {
    "logo": {"text": "manyboost", "alt_text": "manyboost"},
    "show_prev_next": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    # Tables of results are wide: they get the room of the list of contents.
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        **{page: [] for page in WIDE_PAGES},
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {name: [] for name in ("index", "start", "method", "theory", "changelog")}
html_show_sphinx = False
copyright = "manyboost developers, BSD-3-Clause"


def escape_shapes(app, what, name, thing, options, lines: list[str]) -> None:
    """Escape names with a final underscore in shapes; reStructuredText takes them for links."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = re.sub(
                r"\([^()`]*\)", lambda shape: re.sub(r"_(?=\W)", r"\\_", shape[0]), line
            )


def link_report(app, docname: str, source: list[str]) -> None:
    """Link the HTML page of `python -m experiments` as it is: a download would lose its tables."""
    if docname.startswith("reproduction/"):
        link = r"\[([^\]]*)\]\((index\.html[^)]*)\)"
        source[0] = re.sub(link, r'<a href="\2">\1</a>', source[0])
    if docname == "reproduction/README":
        names = "data convergence friedman friedman-noisy projections components"
        pages = "\n".join([*names.split(), "multilabel", "regression", "errata"])
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def list_decisions(app, docname: str, source: list[str]) -> None:
    """Give the page that lists the decisions their contents, for the site alone."""
    if docname == "decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n[0-9]*\n```\n"


def link_gallery(app, docname: str, source: list[str]) -> None:
    """Link the pages of the gallery in place of the programs that they are made from."""
    link = r"\]\(((?:\.\./)*)\.\./examples(?:/([\w/]+)\.py)?\)"
    source[0] = re.sub(link, lambda at: f"]({at[1]}gallery/{at[2] or 'index'}.rst)", source[0])


def copy_report(app, exception: Exception | None) -> None:
    """Put the HTML page of `python -m experiments` and its tables beside the others."""
    if exception is None and app.builder.format == "html":
        place = Path(app.outdir, "reproduction")
        leave = shutil.ignore_patterns("*.md")
        shutil.copytree(HERE / "reproduction", place, dirs_exist_ok=True, ignore=leave)


def setup(app) -> None:
    """Write the pages about modules before Sphinx looks for pages."""
    internals.write_pages(HERE / "internals")
    app.connect("source-read", link_report)
    app.connect("source-read", list_decisions)
    app.connect("source-read", link_gallery)
    app.connect("autodoc-process-docstring", escape_shapes, priority=100)  # before numpydoc
    app.connect("build-finished", copy_report)
