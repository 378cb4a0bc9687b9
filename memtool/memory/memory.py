"""The Memory value: the fields of the frontmatter as written, and the body."""

from __future__ import annotations

from memtool.memory import moments
from memtool.memory.categories import DEFAULT_BY_TYPE
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FieldValue = str | tuple[str, ...] | dict[str, str]
"""What a key holds: every scalar stays the text that was written."""

Fields = dict[str, FieldValue]


class Memory(Value):
    """One memory. `fields` is never changed in place; properties read it with its defaults.

    Only `document` and `schema` make these from files, so that a Memory in hand is valid:
    required keys are there, choices are known, moments and numbers parse.
    """

    fields: Fields
    body: str

    def text(self, key: str, default: str = "") -> str:
        """Return a scalar key as text, or the default where it is absent."""
        value = self.fields.get(key, default)
        return value if isinstance(value, str) else default

    def items(self, key: str) -> tuple[str, ...]:
        """Return a list key, empty where it is absent."""
        value = self.fields.get(key, ())
        return value if isinstance(value, tuple) else ()

    def table(self, key: str) -> dict[str, str]:
        """Return a mapping key, empty where it is absent."""
        value = self.fields.get(key)
        return value if isinstance(value, dict) else {}

    def with_fields(self, **changes: FieldValue | None) -> Memory:
        """Return a copy with keys set, or dropped where the new value is None."""
        kept = {key: value for key, value in self.fields.items() if key not in changes}
        added = {key: value for key, value in changes.items() if value is not None}
        return Memory(fields=kept | added, body=self.body)

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
        return moments.parse(self.text("timestamp"))

    @property
    def importance(self) -> float:
        """0 to 1; 0.5 where nobody said."""
        return float(self.text("importance", "0.5"))

    @property
    def supersedes(self) -> tuple[str, ...]:
        return self.items("supersedes")

    @property
    def statement(self) -> str:
        """What the memory claims, in short: a paragraph of the body, on one line; may be empty.

        It is the one before any heading, else the first of a section that says what was decided,
        else the first of all. Headings underlined with `===` or `---` count as such.
        """
        # Most bodies begin with it, and then the rest of a long one need not be taken into lines.
        for heading, paragraph in _paragraphs(self.body.lstrip("\n").partition("\n\n")[0]):
            if not heading:
                return paragraph
            break
        first = ""
        for heading, paragraph in _paragraphs(self.body):
            if not heading or heading in _TELLING_SECTIONS:
                return paragraph
            first = first or paragraph
        return first


_TELLING_SECTIONS = frozenset({"chosen", "decision", "decision outcome", "summary", "abstract"})


def _paragraphs(body: str) -> Iterator[tuple[str, str]]:
    """Yield (heading above it in lower case, text on one line) for each paragraph of markdown."""
    heading = ""
    lines: list[str] = []
    for line in (*body.splitlines(), ""):
        text = line.strip()
        if len(lines) == 1 and len(text) > 1 and not text.strip("=-~"):
            heading, lines = lines[0].lower(), []
        elif text and not text.startswith("#"):
            lines.append(text)
        elif lines:
            yield heading, " ".join(lines)
            lines = []
        if text.startswith("#"):
            heading = text.strip("# ").lower()
