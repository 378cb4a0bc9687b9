"""Markup: what stands in a message without that anybody said it.

Blocks that memtool wrote are cut out of everything: what was injected must never come back as
evidence for itself. Blocks that a host writes between tags are cut out of what people typed.
"""

from __future__ import annotations

from memtool.inject.block import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memtool.sessions.message import Message

HEX = frozenset("0123456789abcdef")
MOST_NAME = 64
"""Characters of the name of a block."""
OWN = "memtool"
ESCAPES = (
    r"\[[0-9;:?<=>]{0,40}[ -/]{0,4}[@-~]",
    r"\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)",
    "[@-Z_=>78]",
)
"""What may follow an escape character: colours and moves, titles and links, short commands."""
BREAKS = ("&&", "||", "$(", ";", "|", "(", ")", "`", "&", "{", "}")
"""What stands between the commands of a line."""
BEFORE = frozenset(("command", "env", "exec", "nohup", "run", "sudo", "time", "uv", "uvx"))
"""Words that may stand before the name of a program."""


def _frames() -> Iterator[tuple[str, str, str]]:
    """Yield what stands before the name of a block, right behind it, and at the end of it."""
    for form in FORMATS:
        before, _name, behind = form.opening.partition("{boundary}")
        yield before, behind.partition("{preamble}")[0].strip("\n"), form.closing.strip("\n")


FRAMES = tuple(_frames())


def without_own(text: str) -> str:
    """Return a text without the blocks that memtool wrote; one that was cut off ends the text."""
    for before, behind, closing in FRAMES:
        pieces = []
        at = done = 0
        while (start := text.find(before, at)) >= 0:
            at = start + len(before)
            name = text[at : max(at, text.find(behind, at, at + MOST_NAME))]
            if not name or not HEX.issuperset(name):
                continue
            pieces.append(text[done:start])
            at = done = _behind(text, closing.replace("{boundary}", name), at)
            while text.startswith("\n", done):
                done += 1
        text = "".join((*pieces, text[done:]))
    return text


def _behind(text: str, mark: str, at: int) -> int:
    """Return the place behind a mark, the end of the text where there is none."""
    found = text.find(mark, at)
    return len(text) if found < 0 else found + len(mark)


def without_colours(text: str) -> str:
    """Return a text without the sequences by which a terminal is coloured, titled and moved in."""
    if "\x1b" not in text:
        return text
    import re

    return re.sub("\x1b(?:" + "|".join(ESCAPES) + ")", "", text)


def is_own_call(message: Message) -> bool:
    """Tell whether a tool was memtool itself: by its name, or by a command of its line."""
    if OWN in message.tool.lower():
        return True
    if OWN not in message.call:
        return False
    line = message.call
    for mark in BREAKS:
        line = line.replace(mark, "\n")
    return any(_is_own(command.split()) for command in line.split("\n"))


def _is_own(words: list[str]) -> bool:
    while words and (words[0] in BEFORE or "=" in words[0]):
        words = words[1:]
    program = words[0].strip("\"'").rpartition("/")[2] if words else ""
    is_module = program.startswith("python") and words[1:3] == ["-m", OWN]
    return program == OWN or is_module


def without_tags(text: str, tags: Iterable[str]) -> str:
    """Return a text without the blocks between tags; one that is not closed ends the text."""
    if "<" not in text:
        return text
    for tag in tags:
        pieces = []
        at = done = 0
        while (start := text.find(f"<{tag}", at)) >= 0:
            at = start + len(tag) + 1
            if text[at : at + 1] not in (">", " ", "\n", ""):
                continue
            pieces.append(text[done:start])
            at = done = _behind(text, f"</{tag}>", at)
        text = "".join((*pieces, text[done:]))
    return text.strip()


def inside(text: str, tag: str) -> str:
    """Return what stands between a tag, or the whole text where it has none."""
    start = text.find(f"<{tag}>")
    if start < 0:
        return text
    return text[start + len(tag) + 2 :].partition(f"</{tag}>")[0].strip("\n")
