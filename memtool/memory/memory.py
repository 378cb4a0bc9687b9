"""The Memory value: the fields of the frontmatter as written, and the body."""

from __future__ import annotations

from memtool.memory import moments
from memtool.memory.categories import DEFAULT_BY_TYPE
from memtool.value import Value

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
        """The first paragraph of the body: what the memory claims, in short; may be empty."""
        paragraph: list[str] = []
        for line in self.body.splitlines():
            if line.startswith("#"):
                break
            if line.strip():
                paragraph.append(line.strip())
            elif paragraph:
                break
        return " ".join(paragraph)
