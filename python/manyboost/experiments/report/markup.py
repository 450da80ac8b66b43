"""Text made safe for HTML and SVG, and the files a page is made of."""

from __future__ import annotations

import html
import re
from functools import cache
from importlib import resources

#: Characters that no XML document may contain.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escape(text: object) -> str:
    """Text for an element or a quoted attribute."""
    return html.escape(_FORBIDDEN.sub("\ufffd", str(text)))


@cache
def asset(name: str) -> str:
    """A style sheet or script that lies beside this module."""
    return resources.files(__package__).joinpath(name).read_text("utf-8").strip()
