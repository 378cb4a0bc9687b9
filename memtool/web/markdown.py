"""Markdown of a memory as HTML that can do nothing: text from others, shown in our page.

No tag of the text is one of the page, no image is loaded (it is a link), only schemes of the
allowlist are links, headings go below those of the page. `[[id]]` leads to the memory.
"""

from __future__ import annotations

import re
from html import escape
from urllib.parse import urlsplit

from memtool.memory.memory import build_parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SCHEMES = ("http", "https", "mailto")
DEEPEST = 6
_WIKI = re.compile(r"\[\[([a-z0-9][a-z0-9._-]{2,119})\]\]")
_parsers: list[Any] = []
_OUTSIDE = 'rel="noopener noreferrer nofollow"'


def to_html(
    text: str,
    to: Callable[[str], str],
    top: int = 3,
    name: Callable[[str], tuple[str, str]] = lambda id_: (id_, ""),
) -> str:
    """Return HTML of markdown text; `to` makes an address of a path such as `/m/ID`.

    `name` returns what a link to a memory is called, and its short id, empty if that is the name.

    The highest of its headings are of level `top`, the others follow without a gap.
    """
    parser = _build_parser()
    tokens = parser.parse(text)
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    levels = sorted({token.tag for token in headings})
    for token in headings:
        token.tag = f"h{min(DEEPEST, top + levels.index(token.tag))}"
    return str(parser.renderer.render(tokens, parser.options, {"to": to, "name": name}))


def _build_parser() -> Any:
    """Return the parser and renderer, made once: that takes as long as a short text."""
    if not _parsers:
        made: Any = build_parser(with_html=False)
        made.validateLink = lambda _address: True  # each is judged when it is written
        made.renderer.rules.update(
            link_open=lambda tokens, at, *_arguments: _open_link(
                str(tokens[at].attrGet("href") or "")
            ),
            link_close=lambda tokens, at, *_arguments: _close_link(tokens, at),
            image=lambda tokens, at, *_arguments: _render_image(tokens[at]),
            text=lambda tokens, at, _options, env: _render_text(tokens[at].content, **env),
            fence=lambda tokens, at, *_arguments: _render_code(tokens[at].content),
            code_block=lambda tokens, at, *_arguments: _render_code(tokens[at].content),
        )
        _parsers.append(made)
    return _parsers[0]


def find_wiki_links(text: str) -> list[str]:
    """Return the ids that a text links to as `[[id]]`."""
    return _WIKI.findall(text) if "[[" in text else []


def is_link(address: str) -> bool:
    """Return whether an address may be a link: it has a scheme of the allowlist, and a host."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    if any(char.isspace() or not char.isprintable() for char in address):
        return False
    return parts.scheme in SCHEMES and bool(parts.netloc or parts.scheme == "mailto")


def _open_link(address: str) -> str:
    if is_link(address):
        return f'<a href="{escape(address)}" {_OUTSIDE}>'
    return f'<span class="ref" title="{escape(address)}">'


def _close_link(tokens: Any, at: int) -> str:
    depth, where = 1, at
    while depth:  # links do not nest, but an image in one has text of its own
        where -= 1
        depth += {"link_close": 1, "link_open": -1}.get(tokens[where].type, 0)
    return "</a>" if is_link(str(tokens[where].attrGet("href") or "")) else "</span>"


def _render_image(token: Any) -> str:
    address = str(token.attrGet("src") or "")
    named = escape(token.content or address)
    if not is_link(address):
        return f'<span class="ref" title="{escape(address)}">image: {named}</span>'
    return f'<a href="{escape(address)}" {_OUTSIDE}>image: {named}</a>'


def _render_text(
    text: str, to: Callable[[str], str], name: Callable[[str], tuple[str, str]]
) -> str:
    parts = _WIKI.split(text)  # every second one is an id
    return "".join(
        _render_memory(part, to, name) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def _render_memory(
    id_: str, to: Callable[[str], str], name: Callable[[str], tuple[str, str]]
) -> str:
    title, short = name(id_)
    link = f'<a href="{escape(to("/m/" + id_))}">{escape(title)}</a>'
    return f'{link} <span class="id">{escape(short)}</span>' if short else link


def _render_code(text: str) -> str:
    return f'<pre tabindex="0"><code>{escape(text)}</code></pre>\n'
