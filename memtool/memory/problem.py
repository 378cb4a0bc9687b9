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
