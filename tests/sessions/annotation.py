"""Annotated transcripts: sessions as text files, with the findings that a careful reader keeps."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from memtool.sessions.model import Finding, Message

FOLDER = Path(__file__).parent / "annotated"
RESULTS = {"ok": True, "failed": False, "tool": None}


class Expected(NamedTuple):
    """A finding that should be made: its category, its evidence, and words it must contain.

    Where careful readers differ in the category, a slash stands between those that are right.
    """

    category: str
    messages: tuple[int, ...]
    words: tuple[str, ...]

    def is_met_by(self, finding: Finding) -> bool:
        content = finding.content.lower()
        return (
            finding.category in self.category.split("/")
            and set(self.messages) <= set(finding.messages)
            and all(word.lower() in content for word in self.words)
        )


class Annotated(NamedTuple):
    name: str
    messages: list[Message]
    expected: list[Expected]


class Score(NamedTuple):
    """The findings that were made, the right ones among them, and the expected ones."""

    made: int
    right: int
    wanted: int

    @property
    def precision(self) -> float:
        return self.right / self.made if self.made else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.wanted if self.wanted else 1.0


def half(name: str) -> list[Annotated]:
    """Read the sessions of one folder of `annotated`, in the order of their names."""
    return [read(path) for path in sorted((FOLDER / name).glob("*.txt"))]


def read(path: Path) -> Annotated:
    """Read a session: each section begins with `%% role` or `%% call TOOL COMMAND`."""
    messages: list[Message] = []
    expected: list[Expected] = []
    for part in path.read_text(encoding="utf-8").split("\n%% ")[1:]:
        head, _line, text = part.partition("\n")
        kind, _space, argument = head.partition(" ")
        if kind == "findings":
            expected = [_expected(line) for line in text.splitlines() if line]
            continue
        number = len(messages) + 1
        tool, _space, call = argument.partition(" ")
        if kind == "call":
            made = Message(number, "assistant", text, tool=tool, call=call)
        elif kind in RESULTS:
            made = Message(number, "tool", text, tool=messages[-1].tool, is_ok=RESULTS[kind])
        else:
            made = Message(number, kind, text)
        messages.append(made)
    return Annotated(path.stem, messages, expected)


def _expected(line: str) -> Expected:
    category, numbers, words = (part.strip() for part in line.split("|"))
    return Expected(
        category,
        tuple(int(number) for number in numbers.split()),
        tuple(word.strip() for word in words.split(",")),
    )


def matched(made: tuple[Finding, ...], wanted: list[Expected]) -> list[tuple[Finding, Expected]]:
    """Pair findings with what was wanted, each once, in order."""
    remaining = list(wanted)
    pairs = []
    for finding in made:
        met = next((expected for expected in remaining if expected.is_met_by(finding)), None)
        if met is not None:
            remaining.remove(met)
            pairs.append((finding, met))
    return pairs
