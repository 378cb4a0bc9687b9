"""Refusals in the words of a page: what is wrong, where in the text, and what helps here.

Verbs hint at commands. A page has buttons and links instead, so commands are separated from the
hint: only a server that reads only shows them, for those who have a shell.
"""

from __future__ import annotations

import re

from memtool.calls.output import make_visible
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.errors import MemtoolError

SHELL = re.compile(r"\b(?:memtool|git) [a-z-]|(?<![\w-])--[a-z]|\b(?:GET|POST) /api/")
"""Matches what only a command line, or a program, can use."""
_CLAUSE = re.compile(r"(?:[:;,] (?:run )?|\s*\()`?memtool [a-z][^;)`]*`?\)?")
"""Matches the part of a note that says which command to run."""
_VERB = re.compile(r"^cannot [a-z]+: ")


class PageRefusal(Value):
    """A refusal as a page shows it.

    `lines` follow the sentence, such as the memories that a text may mean. `pointer` is the query
    with carets below the place that is wrong, for a monospaced block; empty if there is none.
    """

    sentence: str
    lines: tuple[str, ...] = ()
    pointer: str = ""
    hint: str = ""
    commands: tuple[str, ...] = ()


def word_refusal(error: MemtoolError, hint: str) -> PageRefusal:
    """Return an error in the words of a page, with its hint or another one."""
    first, *lines = make_visible(error.message).split("\n")
    pointer = ""
    if lines and lines[-1].strip("^ ") == "" and "^" in lines[-1]:
        indent = min(len(line) - len(line.lstrip()) for line in lines[-2:])
        pointer = "\n".join(line[indent:] for line in lines[-2:])
        lines = lines[:-2]
    hints = make_visible(hint).splitlines()
    return PageRefusal(
        capitalize(_VERB.sub("", first)),
        tuple(line.strip() for line in lines if not SHELL.search(line)),
        pointer,
        capitalize(" ".join(hint for hint in hints if not SHELL.search(hint))),
        tuple(hint for hint in hints if SHELL.search(hint)),
    )


def capitalize(text: str) -> str:
    """Return a sentence with a capital first, unless it begins with a name such as `type:`."""
    word = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if word.isalpha() or word.rstrip(",").isalpha() else text


def strip_commands(note: str) -> str:
    """Return a note without the commands that it ends with: a page has links for them."""
    return _CLAUSE.sub("", note)
