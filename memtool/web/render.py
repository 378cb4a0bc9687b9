"""HTML of pages: the templates of `templates/web`, with everything escaped that is not ours.

A template gets the values of its page and five names more: `to` makes an address of a path,
`markdown` makes HTML of a body, `view` is what the page is shown in, `title` and `place` are of the
page. The static site renders the same templates with another `to`.
"""

from __future__ import annotations

import os
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined

from memtool import templates
from memtool.calls.output import visible
from memtool.value import Value, plural
from memtool.web.markdown import html

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

FOLDER = "web"
FILES = {
    "style.css": "text/css; charset=utf-8",
    "script.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""What pages load, by name, with its type."""


class PageView(Value):
    """What a page is shown in: whose memories, which pages there are, what may be done."""

    name: str
    pages: tuple[tuple[str, str], ...]
    """Path and title of the pages that every page leads to."""
    is_writing: bool = False
    is_live: bool = True
    nonce: str = ""
    policy: str = ""
    """What a page itself allows to be loaded, where no header says so: that of the static site."""


def page(
    template: str,
    values: Mapping[str, Any],
    *,
    view: PageView,
    place: str,
    to: Callable[[str], str] = str,
) -> str:
    """Return a page as HTML; `place` is its path, `values` hold its `title`."""
    return _environment.get_template(template).render(
        **values,
        view=view,
        place=place,
        to=to,
        markdown=lambda text, top=2: html(visible(text), to, top),
    )


def static(name: str) -> bytes:
    """Return the style, the script or the icon."""
    return templates.read(f"{FOLDER}/{name}").encode()


def _day(moment: str | None) -> str:
    return (moment or "")[:10]


def _minute(moment: str | None) -> str:
    return (moment or "")[:16].replace("T", " ")


class Carried(str):
    """A text that a form sends back: it is escaped as HTML, and not changed to be seen."""

    __slots__ = ()


def _finalize(value: Any) -> Any:
    """Show what is invisible in a text: it may be of a memory."""
    return visible(value) if type(value) is str else value


_environment = Environment(
    loader=FunctionLoader(lambda name: templates.read(f"{FOLDER}/{name}")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
    finalize=_finalize,
)
_environment.filters.update(
    basename=os.path.basename,
    carried=Carried,
    day=_day,
    minute=_minute,
    plural=plural,
    segment=lambda text: quote(text, safe=""),
    short=lambda commit: (commit or "")[:10],
)
