"""HTML of pages: the templates of `templates/web`, with everything escaped that is not ours.

In addition to the values of its page a template gets these names: `to` makes an address of a path,
`markdown` makes HTML of a body, `view` is the context of the page, `title` and `place` are those of
the page; `named` and `short_id` are the title and the short id of a memory, `shortened` shortens
the ids in a sentence, `when` is the age of a moment, and `states` what is unusual about a memory.
The static site renders the same templates with another `to`.
"""

from __future__ import annotations

import os
from functools import partial
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import escape

from memtool import templates
from memtool.calls.output import make_visible
from memtool.commands._layout import Layout, shorten_commit, shorten_foreign
from memtool.commands._render import format_authors, format_commit, format_kind, list_states
from memtool.value import Value, format_count
from memtool.web.markdown import is_link, to_html
from memtool.web.refusals import strip_commands
from memtool.web.sent_form import pick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from memtool.web.sent_form import SentForm

FOLDER = "web"
FILES = {
    "style.css": "text/css; charset=utf-8",
    "script.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""What pages load, by name, with its type."""


NO_MEMORIES = Layout(lambda: None, 0)
"""The layout of a page that names no memory."""
MENU_ROW = 6
"""Pages that the menu shows in its row; the others are under "More", the seventh entry."""


class PageView(Value):
    """The context of a page: the repository, the menu, and what the user may do."""

    name: str
    pages: tuple[tuple[str, str], ...]
    """Path and title of the pages that every page leads to."""
    is_writing: bool = False
    is_live: bool = True
    nonce: str = ""
    running: tuple[str, ...] = ()
    """The verbs that are at work in the server."""
    failure: str = ""
    """The message of the last long verb, if it failed."""
    policy: str = ""
    """The content policy in a page itself, for the static site, which has no headers."""
    address: str = "/"
    """The path and the query of the page, which its forms carry."""
    sent: SentForm | None = None
    """A form of the page that was refused, and is shown again."""

    def value(self, form: str, field: str, default: str = "") -> str:
        """Return the text of a field: as it was typed, or its default."""
        return next(iter(pick(self.sent, form, field, [default])), "")

    def values(self, form: str, field: str, default: Sequence[str]) -> list[str]:
        """Return the texts of a field that is there several times."""
        return pick(self.sent, form, field, default)

    def is_sent(self, form: str) -> bool:
        """Return whether this form was refused."""
        return self.sent is not None and self.sent.name == form

    def is_wrong(self, form: str, field: str) -> bool:
        """Return whether a form was refused for this field."""
        refusal = self.sent.refusal if self.sent is not None else None
        return self.is_sent(form) and refusal is not None and refusal.field == field

    @property
    def row(self) -> tuple[tuple[str, str], ...]:
        """The pages in the row of the menu."""
        return self.pages if len(self.pages) <= MENU_ROW + 1 else self.pages[:MENU_ROW]

    @property
    def folded(self) -> tuple[tuple[str, str], ...]:
        """The pages under "More"."""
        return self.pages[len(self.row) :]


def render_page(
    template: str,
    values: Mapping[str, Any],
    *,
    view: PageView,
    place: str,
    to: Callable[[str], str] = str,
    layout: Layout = NO_MEMORIES,
) -> str:
    """Return a page as HTML; `place` is its path, `values` hold its `title`.

    `layout` shortens and names the ids of memories.
    """

    def name(text: str, id_: str) -> tuple[str, str]:
        title, short = make_visible(layout.title(id_)), layout.short(id_)
        return (title, short) if title and title not in text else (short, "")

    return _environment.get_template(template).render(
        **values,
        view=view,
        place=place,
        to=to,
        short_id=layout.short,
        named=lambda id_: layout.title(id_) or id_,
        shortened=layout.shorten,
        states=partial(list_states, layout),
        when=layout.when,
        markdown=lambda text, top=2: to_html(make_visible(text), to, top, partial(name, text)),
    )


def has_form(page: str, name: str) -> bool:
    """Return whether a page has a form of this name."""
    return bool(name) and f'name="form" value="{escape(name)}"' in page


def read_static(name: str) -> bytes:
    """Return the style, the script or the icon."""
    return templates.read(f"{FOLDER}/{name}").encode()


def _format_day(moment: str | None) -> str:
    return (moment or "")[:10]


def _format_minute(moment: str | None) -> str:
    return (moment or "")[:16].replace("T", " ")


class CarriedText(str):
    """A text that a form sends back: it is escaped as HTML, and not changed to be seen."""

    __slots__ = ()


def _finalize(value: Any) -> Any:
    """Make invisible characters visible in a text, which may come from a memory."""
    return make_visible(value) if type(value) is str else value


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
    carried=CarriedText,
    commit_name=format_commit,
    day=_format_day,
    foreign=shorten_foreign,
    no_commands=strip_commands,
    is_link=is_link,
    minute=_format_minute,
    people=format_authors,
    plural=format_count,
    segment=lambda text: quote(text, safe=""),
    short=shorten_commit,
    words=format_kind,
)
