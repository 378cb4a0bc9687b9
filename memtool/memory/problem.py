"""Problems: what is wrong with a file, where, and which command mends it."""

from __future__ import annotations

from memtool.value import Value

CODES: dict[str, str] = {
    "unreadable": "the file cannot be opened or read",
    "not-utf8": "the file is not UTF-8 text, or holds NUL bytes",
    "too-large": "the file is larger than a memory may be",
    "symlink": "a symbolic link, device or socket inside the memory tree",
    "no-frontmatter": "the file does not begin with a closed `---` block",
    "bad-yaml": "the frontmatter is not the strict YAML of memtool",
    "conflict-markers": "the file still holds the markers of an unfinished merge",
    "unknown-key": "a key that no memory has",
    "missing-key": "a required key is absent",
    "bad-value": "a value that its key cannot hold",
    "bad-window": "the memory ends before it begins",
    "wrong-name": "the file name is not the id",
    "duplicate-id": "two files hold the same id",
    "dangling": "a relation names a memory that is not there",
    "cycle": "memories supersede each other in a circle",
    "fork": "two heads supersede the same memory",
    "not-a-head": "it supersedes a memory that another one superseded before",
    "hidden-character": "a character that no reader sees, or that reorders the text",
    "long-line": "a line that is too long to be read",
    "html-comment": "text that people do not see, but agents do",
    "file-mode": "the file is marked as a program",
    "missing-section": "a section that memories of its type have is absent",
    "secret": "something that looks like a password, key or token",
    "personal-data": "something that looks like an address, or a phone or card number",
    "silent-edit": "the claim of a confirmed, committed memory was changed in place",
    "backdated": "the timestamp of a confirmed memory was set back",
    "unconfirmed": "a confirmed memory became a candidate again",
    "removed": "a committed memory is gone",
    "moved": "a committed memory lies elsewhere, or has another name",
    "broken-link": "it names a memory that is not there",
    "broken-source": "a file or commit that it comes from is not there",
    "no-such-file": "its files match nothing",
    "duplicate": "another living memory says the same, in the same words or nearly so",
    "conflict": "another living memory says the contrary, or gives another value",
    "future": "a moment of the past lies in the future",
    "stale-block": "the block in a file such as AGENTS.md is not what the memories say now",
    "edited-block": "the block in such a file was edited by hand",
    "broken-block": "the lines around such a block do not make one pair",
    "unreachable": "a golden query expects a memory that no prose finds, such as a superseded one",
}
"""Every problem code and what it means. Codes are stable: scripts may match them."""


class Problem(Value):
    """One finding about one file. `line` counts from 1; 0 means the whole file."""

    path: str
    line: int
    code: str
    message: str
    hint: str = ""
    id: str = ""
    severity: str = "error"

    def text(self) -> str:
        """Return the one-line form `path:line: CODE message`."""
        return f"{self.path}:{self.line}: {self.code} {self.message}"
