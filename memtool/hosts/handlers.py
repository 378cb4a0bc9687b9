"""Handlers: the hook of one event in the settings of a host, told from those of others."""

from __future__ import annotations

import json
import os
import shlex

from memtool.errors import MemtoolError
from memtool.hosts.json_edit import Document
from memtool.hosts.parts import BOM, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Hook(Settings):
    """A command that the host runs at an event.

    `event` is the host's name for it. Where hooks are `grouped`, an event has groups with a matcher
    and handlers each; else it has handlers.
    """

    event: str
    command: str
    more: dict[str, Any]
    matcher: str = ""
    grouped: bool = True

    @property
    def handler(self) -> dict[str, Any]:
        """What the host reads."""
        matcher = {"matcher": self.matcher} if self.matcher and not self.grouped else {}
        return {**matcher, "type": "command", "command": self.command, **self.more}

    def added(self, document: Document) -> Document:
        """Add ours after all others, or bring the one that is there up to date."""
        found = list(self.places(document))
        for place in reversed(found):
            if document.value(place) != self.handler:
                document = document.put(place, self.handler)
        if found:
            return document
        group = {"matcher": self.matcher} if self.matcher else {}
        entry = {**group, "hooks": [self.handler]} if self.grouped else self.handler
        return document.append(["hooks", self.event], entry)

    def removed(self, document: Document) -> Document:
        """Remove ours, and a group that only it was in."""
        for place in reversed(list(self.places(document))):
            group = document.value(place[:3])
            alone = self.grouped and len(group["hooks"]) == 1
            document = document.drop(place[:3] if alone else place)
        return document

    def has(self, data: bytes) -> bool:
        """Tell whether ours is in a file of settings; in one that cannot be read it is not."""
        if data.lstrip()[:1] not in (b"{", BOM.encode()[:1]):
            return self._is_in_toml(data)
        try:
            document, _mark = self.replace(comments=True).document(data)
            return any(self.places(document))
        except MemtoolError:
            return False

    def places(self, document: Document) -> Iterator[list[str | int]]:
        """Yield the path of each handler that is ours."""
        entries = document.value(["hooks", self.event])
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            place: list[str | int] = ["hooks", self.event, number]
            if not isinstance(entry, dict):
                continue
            if not self.grouped:
                if self.is_ours(entry):
                    yield place
                continue
            handlers = entry.get("hooks")
            for inner, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if isinstance(handler, dict) and self.is_ours(handler):
                    yield [*place, "hooks", inner]

    def is_ours(self, handler: dict[str, Any]) -> bool:
        """Tell whether a handler runs memtool's hook of this event, wherever memtool is."""
        command, given = handler.get("command"), handler.get("args")
        if not isinstance(command, str):
            return False
        try:
            words = [command, *given] if isinstance(given, list) else shlex.split(command)
        except ValueError:
            return False
        program, *rest = words or [""]
        wanted = shlex.split(self.command)[1:]
        return os.path.basename(program) == "memtool" and rest == wanted

    def _is_in_toml(self, data: bytes) -> bool:
        import tomllib

        try:
            tables = tomllib.loads(data.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            return False
        hooks = tables.get("hooks")
        entries = hooks.get(self.event) if isinstance(hooks, dict) else None
        text = json.dumps({"hooks": {self.event: entries}}, default=str)
        return any(self.places(Document(text, self.name)))
