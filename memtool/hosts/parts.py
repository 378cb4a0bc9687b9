"""Parts: what memtool puts into the files of a host, each known again when it is to be taken out.

A part of a file that others write too changes only its own bytes.
"""

from __future__ import annotations

import json

from memtool.errors import MemtoolError
from memtool.hosts.json_edit import Document
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = "installed by memtool"
"""Stands in every file that is memtool's alone; without it a file is somebody else's."""
BOM = "\ufeff"


class Part(Value):
    """One thing at a path; `elsewhere` are files of other levels where it may be already."""

    path: str
    elsewhere: tuple[str, ...]

    def put(self, before: bytes | None) -> bytes:
        """Return the file with the part, which may be there already."""
        raise NotImplementedError

    def take(self, before: bytes) -> bytes | None:
        """Return the file without the part, None for no file."""
        raise NotImplementedError

    def has(self, data: bytes) -> bool:
        """Tell whether a file holds the part, in whatever version."""
        raise NotImplementedError


class Whole(Part):
    """A file that is memtool's alone. One of that name that somebody else wrote is left alone."""

    text: str

    def put(self, before: bytes | None) -> bytes:
        """Return the file: ours, or what somebody else wrote."""
        return self.text.encode() if before is None or self.has(before) else before

    def take(self, before: bytes) -> bytes | None:
        """Return nothing in the place of ours."""
        return None if self.has(before) else before

    def has(self, data: bytes) -> bool:
        """Tell whether a file is ours."""
        return MARK.encode() in data


class Settings(Part):
    """A part of a JSON file. `name` is what errors call it, `start` what a new file begins with."""

    name: str
    start: dict[str, Any]
    comments: bool

    def document(self, data: bytes) -> tuple[Document, str]:
        """Return the text as a document, and the byte-order mark before it."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise MemtoolError(
                f"{self.name} is not UTF-8 text at byte {error.start}; nothing was changed",
                hint=f"save {self.name} as UTF-8, then run the same command again",
                code="broken-settings",
            ) from None
        mark = BOM if text.startswith(BOM) else ""
        return Document(text.removeprefix(mark), self.name, comments=self.comments), mark

    def put(self, before: bytes | None) -> bytes:
        """Return the file with the part; everything else keeps its bytes."""
        if before is None:
            first = self.added(Document(json.dumps(self.start), self.name)).root().value
            return (json.dumps(first, indent=2, ensure_ascii=False) + "\n").encode()
        document, mark = self.document(before)
        return (mark + self.added(document).text).encode()

    def take(self, before: bytes) -> bytes | None:
        """Return the file without the part; everything else keeps its bytes."""
        document, mark = self.document(before)
        return (mark + self.removed(document).text).encode()

    def added(self, document: Document) -> Document:
        """Return the document with the part."""
        raise NotImplementedError

    def removed(self, document: Document) -> Document:
        """Return the document without the part."""
        raise NotImplementedError
