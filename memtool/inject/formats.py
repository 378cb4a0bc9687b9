"""The formats of a block, one row each, and the format that each agent host reads best.

A row is only templates. Everything that is put into them is escaped first.
"""

from __future__ import annotations

from memtool.inject.escape import Escapes
from memtool.value import Value


class Format(Value):
    """How a block is written.

    `opening` and `closing` stand around the block, `head` and `tail` around each memory. The head
    holds its `cite` and its `facts`, each written as `fact` and joined by `between`. Warnings
    follow as lines of their own, then the content, line by line. `section` and `section_end` stand
    around the parts of a primer.
    """

    name: str
    opening: str
    closing: str
    head: str
    fact: str
    between: str
    tail: str
    section: str
    section_end: str
    escapes: Escapes
    """For the content."""
    head_escapes: Escapes
    """For what the head holds."""


# In markdown and text too `<` is escaped: hosts put such blocks between tags of their own, and a
# comment would be invisible to people while the model reads it.
_MARKS: Escapes = (("&", "&amp;"), ("<", "&lt;"))
_XML: Escapes = (*_MARKS, (">", "&gt;"))

FORMATS: tuple[Format, ...] = (
    Format(
        name="xml",
        opening='<memory-context id="{boundary}">\n{preamble}\n',
        closing="</memory-context>\n",
        head='<memory id="{cite}" {facts}>\n',
        fact='{name}="{value}"',
        between=" ",
        tail="</memory>\n",
        section='<section title="{title}">\n',
        section_end="</section>\n",
        escapes=_XML,
        head_escapes=(*_XML, ('"', "&quot;"), ("'", "&#39;")),
    ),
    Format(
        name="markdown",
        opening="## Memory of this repository ({boundary})\n\n{preamble}\n\n",
        closing="## End of memory ({boundary})\n",
        head="### {cite}\n\n{facts}\n",
        fact="{name}: {value}",
        between=", ",
        tail="\n",
        section="## {title}\n\n",
        section_end="\n",
        escapes=_MARKS,
        head_escapes=_MARKS,
    ),
    Format(
        name="text",
        opening="[memory {boundary}]\n{preamble}\n\n",
        closing="[end of memory {boundary}]\n",
        head="[{cite}] {facts}\n",
        fact="{name}: {value}",
        between=", ",
        tail="\n",
        section="= {title}\n\n",
        section_end="\n",
        escapes=_MARKS,
        head_escapes=_MARKS,
    ),
)

BY_NAME: dict[str, Format] = {row.name: row for row in FORMATS}

HOSTS: dict[str, str] = {
    "claude": "xml",
    "cursor": "xml",
    "gemini": "markdown",
    "codex": "text",
    "opencode": "text",
    "plain": "text",
}
"""The format for each host."""
