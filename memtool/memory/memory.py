"""A memory as a value: its fields, its body and the sections in it.

A digest that memtool wrote names the tool as its source, with a fingerprint of the memories that it
sums up. It makes no claim of its own: it neither repeats nor contradicts a memory, and is rebuilt
when the fingerprint changes.
"""

from __future__ import annotations

from memtool.memory import timestamps
from memtool.memory.fields import DEFAULT_BY_TYPE
from memtool.memory.statement import find_paragraph, find_statement, has_text
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    class StoredMemory(Protocol):
        """A memory stored elsewhere: some fields at once, the others on demand."""

        @property
        def parsed(self) -> Fields: ...
        @property
        def timestamp(self) -> int: ...
        @property
        def withheld(self) -> tuple[str, ...]: ...
        def fields(self) -> Fields: ...
        def body(self) -> str: ...


DOCUMENT_ENDINGS = (
    ".adoc",
    ".asciidoc",
    ".jsonl",
    ".markdown",
    ".md",
    ".mdc",
    ".org",
    ".rst",
    ".txt",
)
"""Files of these kinds are sources of a memory, not code that it governs."""
FieldValue = str | tuple[str, ...] | dict[str, str]
"""The value of a key: every scalar is kept as the text in the file."""

Fields = dict[str, FieldValue]


def to_text(value: FieldValue | None) -> str:
    """Return a key's value on one line; empty if it is absent."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {text}" for key, text in value.items())
    return ", ".join(value) if isinstance(value, tuple) else value or ""


class Memory:
    """One memory. `fields` is never changed in place; properties read it with its defaults.

    Only `document` and `schema` make these from files, so that a Memory in hand is valid:
    required keys are there, choices are known, moments and numbers parse.
    """

    __slots__ = ("_body", "_fields", "_stored", "_withheld")

    def __init__(
        self,
        fields: Fields | None = None,
        body: str | None = None,
        withheld: tuple[str, ...] = (),
        *,
        stored: StoredMemory | None = None,
    ) -> None:
        """Take the fields and the body, or what reads them when they are first asked for."""
        self._fields = fields
        self._body = body
        self._withheld = withheld
        self._stored = stored

    @property
    def fields(self) -> Fields:
        if self._fields is None:
            assert self._stored is not None
            self._fields = self._stored.fields()
        return self._fields

    @property
    def body(self) -> str:
        if self._body is None:
            assert self._stored is not None
            self._body = self._stored.body()
        return self._body

    @property
    def withheld(self) -> tuple[str, ...]:
        """The kinds of secrets that were masked in it, sorted."""
        return self._withheld if self._stored is None else self._stored.withheld

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memory):
            return NotImplemented
        mine, theirs = ((memory.fields, memory.body, memory.withheld) for memory in (self, other))
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # its fields are a dict

    def __repr__(self) -> str:
        return f"Memory(fields={self.fields!r}, body={self.body!r}, withheld={self.withheld!r})"

    def text(self, key: str, default: str = "") -> str:
        """Return a scalar key as text, or the default if it is absent."""
        value = self._get(key)
        return value if isinstance(value, str) else default

    def items(self, key: str) -> tuple[str, ...]:
        """Return a list key; empty if it is absent."""
        value = self._get(key)
        return value if isinstance(value, tuple) else ()

    def table(self, key: str) -> dict[str, str]:
        """Return a mapping key; empty if it is absent."""
        value = self._get(key)
        return value if isinstance(value, dict) else {}

    def _get(self, key: str) -> FieldValue | None:
        if self._fields is None and self._stored is not None:
            parsed = self._stored.parsed
            if key in parsed:
                return parsed[key]
        return self.fields.get(key)

    def with_fields(self, **changes: FieldValue | None) -> Memory:
        """Return a copy with keys set, or removed if the new value is None."""
        fields = {key: value for key, value in self.fields.items() if key not in changes}
        added = {key: value for key, value in changes.items() if value is not None}
        return Memory(fields=fields | added, body=self.body)

    def with_body(self, body: str) -> Memory:
        """Return a copy with another body."""
        return Memory(self.fields, body, self.withheld)

    @property
    def id(self) -> str:
        return self.text("id")

    @property
    def title(self) -> str:
        return self.text("title")

    @property
    def type(self) -> str:
        return self.text("type")

    @property
    def category(self) -> str:
        return self.text("category") or DEFAULT_BY_TYPE.get(self.type, "")

    @property
    def status(self) -> str:
        return self.text("status", "confirmed")

    @property
    def confidence(self) -> str:
        return self.text("confidence")

    @property
    def timestamp(self) -> int:
        """The second at which it was written."""
        stored = self._stored
        return timestamps.parse(self.text("timestamp")) if stored is None else stored.timestamp

    @property
    def importance(self) -> float:
        """0 to 1; 0.5 if absent."""
        return float(self.text("importance", "0.5"))

    @property
    def supersedes(self) -> tuple[str, ...]:
        return self.items("supersedes")

    def named_paths(self) -> list[str]:
        """Return the globs and paths that it governs: its `files`, then its sources that are code.

        A source that is a document is where the memory comes from, and not what it is about.
        """
        code = (path for path in self.cited_paths() if not is_document(path))
        return [*self.items("files"), *code]

    def cited_paths(self) -> list[str]:
        """Return the paths of its file sources."""
        return [find_cited_path(source) for source in self.items("source") if is_file(source)]

    @property
    def document(self) -> str:
        """The path of the document that a decision was imported from; empty if there is none."""
        if self.type != "decision":
            return ""
        return next(filter(is_document, self.cited_paths()), "")

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it was never confirmed: a candidate, or a memory put away as one."""
        is_away = self.status in ("archived", "deprecated")
        return "candidate" in (self.status, self.table("retired").get("was") if is_away else "")

    @property
    def replaces(self) -> tuple[str, ...]:
        """The ids that it replaces: none while it is deleted or unconfirmed."""
        olds = self.supersedes
        return () if olds and (self.status == "deleted" or self.is_unconfirmed) else olds

    @property
    def proposes(self) -> tuple[str, ...]:
        """The ids that it would replace after a confirmation."""
        olds = self.supersedes
        return olds if olds and self.is_unconfirmed else ()

    @property
    def paragraph(self) -> str:
        """The claim in short: one paragraph of the body, on one line; empty without any text."""
        return find_paragraph(self.body, is_record=bool(self.document))

    @property
    def statement(self) -> str:
        """The claim in short; one that announces a list comes with what fits of it."""
        return find_statement(self.body, is_record=bool(self.document))

    @property
    def has_text(self) -> bool:
        """Whether the body says anything: headings and the comments of a template say nothing."""
        return has_text(self.body)


class Section(Value):
    """A heading and the text below it. Lines count from 1 within the body, both inclusive.

    The text before the first heading is the section with level 0 and an empty title.
    """

    title: str
    level: int
    first_line: int
    last_line: int
    text: str


class Link(Value):
    """A reference out of the body: `[[id]]` has kind `memory`, a markdown link kind `url`."""

    kind: str
    target: str
    line: int


_parsers: dict[bool, MarkdownIt] = {}
"""The parsers of bodies, with inline content or without: building one is most of the work."""


def build_parser(*, with_html: bool) -> MarkdownIt:
    """Return a new parser of bodies, without HTML: tags are shown as text."""
    from markdown_it import MarkdownIt  # a search asks for no headings and no links

    return MarkdownIt("commonmark", {"html": with_html}).enable(["table"])


def _build_parser(*, is_whole: bool) -> MarkdownIt:
    if is_whole not in _parsers:
        made = build_parser(with_html=True)
        _parsers[is_whole] = made if is_whole else made.disable("inline")
    return _parsers[is_whole]


def split_sections(body: str) -> tuple[Section, ...]:
    """Split a body at its top-level headings; headings inside code or quotes do not count."""
    lines = body.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # as markdown-it does
    lines = lines[:-1] if lines[-1] == "" else lines
    starts: list[tuple[str, int, int, int]] = []  # title, level, first line, first line of text
    tokens = _build_parser(is_whole=False).parse(body)
    for number, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            title = tokens[number + 1].content
            starts.append((title, int(token.tag[1:]), token.map[0] + 1, token.map[1]))
    parts = []
    first_heading = starts[0][2] if starts else len(lines) + 1
    opening = "\n".join(lines[: first_heading - 1]).strip()
    if opening:
        parts.append(Section("", 0, 1, first_heading - 1, opening))
    for number, (title, level, first, text_start) in enumerate(starts):
        last = starts[number + 1][2] - 1 if number + 1 < len(starts) else len(lines)
        text = "\n".join(lines[text_start:last]).strip()
        parts.append(Section(title, level, first, last, text))
    return tuple(parts)


REASON_SECTION = "Rationale"


def with_reason(body: str, why: str) -> str:
    """Add the reason to a body, in its section Rationale or in a new one."""
    lines = body.rstrip("\n").split("\n")
    for section in split_sections(body):
        if section.title.lower() == REASON_SECTION.lower():
            if why in section.text:
                return body
            at = min(section.last_line, len(lines))
            while at > section.first_line and not lines[at - 1].strip():
                at -= 1
            following = lines[at:]
            return "\n".join([*lines[:at], "", why, *following]).rstrip("\n") + "\n"
    opening = body.rstrip("\n")
    return f"{opening}\n\n## {REASON_SECTION}\n\n{why}\n".lstrip("\n")


def has_reason_added(body: str, old: str) -> bool:
    """Return whether a body is an old one to which `with_reason` has added a reason."""
    added = set(body.split("\n")) - set(old.split("\n")) - {f"## {REASON_SECTION}"}
    return len(added) == 1 and with_reason(old, added.pop()).strip() == body.strip()


def find_code_lines(body: str) -> frozenset[int]:
    """Return the numbers of the lines, from 0, of fenced and indented code."""
    return frozenset(
        line
        for token in _build_parser(is_whole=False).parse(body)
        if token.type in ("fence", "code_block") and token.map
        for line in range(*token.map)
    )


def find_links(body: str) -> tuple[Link, ...]:
    """Return every `[[id]]` and markdown link of the text, not of code, in reading order."""
    links = []
    for token in _build_parser(is_whole=True).parse(body):
        if token.type == "inline" and token.children:
            line = token.map[0] + 1 if token.map else 1
            links.extend(_find_inline_links(token.children, line))
    return tuple(links)


def _find_inline_links(children: list[Token], line: int) -> list[Link]:
    links = []
    for child in children:
        if child.type in ("softbreak", "hardbreak"):
            line += 1
        elif child.type == "link_open":
            links.append(Link("url", str(child.attrGet("href") or ""), line))
        elif child.type == "text":
            for part in child.content.split("[[")[1:]:
                target, closed, _tail = part.partition("]]")
                if closed:
                    links.append(Link("memory", target.strip(), line))
    return links


MAX_TITLE = 100
"""Characters of a title that is made of a text."""
_MARKS = ".!?"


def first_sentence(text: str) -> str:
    """Return the first sentence of a text: one line, without its full stop, cut between words."""
    line = " ".join(text.split())
    ends = (at for at, char in enumerate(line) if char in _MARKS and _is_end(line, at))
    line = line[: next(ends, len(line))]
    line = line.rstrip(".") or line
    if len(line) <= MAX_TITLE:
        return line
    return (line[: MAX_TITLE - 2].rpartition(" ")[0] or line[: MAX_TITLE - 2]) + " …"


def _is_end(line: str, at: int) -> bool:
    """Return whether a sentence ends at a mark; `e.g. this` goes on."""
    return at > 0 and line[at + 1 : at + 2] == " " and not line[at + 2 : at + 3].islower()


SOURCE = "tool:digest/"
"""Begins the source of a digest that memtool wrote; the fingerprint of its inputs follows."""


def digest_inputs(memory: Memory) -> str:
    """Return the fingerprint of the memories that a digest sums up; empty for any other memory."""
    for source in memory.items("source"):
        if source.startswith(SOURCE):
            return source[len(SOURCE) :]
    return ""


def is_file(source: str) -> bool:
    """Return whether a source is a file."""
    return source.startswith("file:")


def find_cited_path(source: str) -> str:
    """Return the path of a file source, without lines and commit."""
    return source.partition(":")[2].partition("#")[0].partition("@")[0]


def is_document(path: str) -> bool:
    """Return whether a file is a text for people."""
    return path.lower().endswith(DOCUMENT_ENDINGS)


def is_generated(memory: Memory) -> bool:
    """Return whether memtool wrote a memory as the digest of others."""
    return bool(digest_inputs(memory))
