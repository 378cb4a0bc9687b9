"""Servers: memtool's MCP server in the settings of a host, in JSON or in TOML."""

from __future__ import annotations

import json
import os

from memtool.errors import MemtoolError
from memtool.hosts.parts import Part, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.hosts.json_edit import Document
    from memtool.hosts.site import Site


def server(site: Site, path: str, elsewhere: tuple[str, ...], *, comments: bool = False) -> Server:
    """Return the server as most hosts write it: a command and its arguments below mcpServers."""
    return Server(
        path=path,
        elsewhere=elsewhere,
        name=site.shown(path),
        start={},
        comments=comments,
        key="mcpServers",
        entry={"command": site.program, "args": ["mcp"]},
    )


class Server(Settings):
    """Memtool's MCP server among those of the host; one of that name is left as it is.

    Only where it starts a memtool that is gone, that is mended.
    """

    key: str
    entry: dict[str, Any]

    def added(self, document: Document) -> Document:
        """Add ours, unless one of that name is there."""
        entry = document.value([self.key, "memtool"])
        if _is_gone(entry):
            ours, old = self.entry["command"], entry["command"]
            command = [ours[0], *old[1:]] if isinstance(old, list) else ours
            return document.put([self.key, "memtool", "command"], command)
        if entry is not None:
            return document
        return document.put([self.key, "memtool"], self.entry)

    def removed(self, document: Document) -> Document:
        """Remove it where it starts memtool."""
        entry = document.value([self.key, "memtool"])
        return document.drop([self.key, "memtool"]) if _starts_memtool(entry) else document

    def has(self, data: bytes) -> bool:
        """Tell whether one of that name is there."""
        try:
            document, _mark = self.replace(comments=True).document(data)
            return document.value([self.key, "memtool"]) is not None
        except MemtoolError:
            return False


class TomlServer(Part):
    """The same in a TOML file: a table of its own at the end."""

    name: str
    command: str

    @property
    def block(self) -> str:
        """The table, with the line feed that it begins after."""
        return f'\n[mcp_servers.memtool]\ncommand = {json.dumps(self.command)}\nargs = ["mcp"]\n'

    def put(self, before: bytes | None) -> bytes:
        """Add the table, unless one of that name is there that can be started."""
        from memtool.store import toml_edit

        text = self._text(before or b"")
        entry = self._entry(text)
        if _is_gone(entry):
            text = toml_edit.set_key(text, ("mcp_servers", "memtool", "command"), self.command)
        if entry is not None:
            return text.encode()
        if before is None:
            return self.block.removeprefix("\n").encode()
        is_ended = text.endswith("\n")
        # Without a line feed at the end there is none after ours either: so it is known again.
        changed = text + self.block if is_ended else f"{text}\n{self.block.removesuffix(chr(10))}"
        if self._entry(changed) is None:
            raise MemtoolError(f"{self.name} holds mcp_servers in a way that takes no more")
        return changed.encode()

    def take(self, before: bytes) -> bytes | None:
        """Remove the table: as it was written, or by its name where it was edited since."""
        from memtool.store import toml_edit

        text = self._text(before)
        if not _starts_memtool(self._entry(text)):
            return before
        if text == self.block.removeprefix("\n"):
            return None
        unended = f"\n{self.block.removesuffix(chr(10))}"
        if text.endswith(unended):
            return text.removesuffix(unended).encode()
        if self.block in text:
            return text.replace(self.block, "", 1).encode()
        return toml_edit.set_key(text, ("mcp_servers", "memtool"), None).encode()

    def has(self, data: bytes) -> bool:
        """Tell whether a table of that name is there."""
        try:
            return self._entry(self._text(data)) is not None
        except MemtoolError:
            return False

    def _text(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self._broken(f"not UTF-8 text at byte {error.start}") from None

    def _entry(self, text: str) -> Any:
        import tomllib

        try:
            servers = tomllib.loads(text).get("mcp_servers", {})
        except tomllib.TOMLDecodeError as error:
            raise self._broken(f"not TOML: {error}") from None
        if not isinstance(servers, dict):
            raise self._broken("not as expected: mcp_servers is no table")
        return servers.get("memtool")

    def _broken(self, what: str) -> MemtoolError:
        return MemtoolError(
            f"{self.name} is {what}; nothing was changed",
            hint=f"mend {self.name}, then run the same command again",
            code="broken-settings",
        )


def _starts_memtool(entry: Any) -> bool:
    """Tell whether an entry of a server starts memtool."""
    return os.path.basename(_program(entry)) == "memtool"


def _is_gone(entry: Any) -> bool:
    """Tell whether an entry starts a memtool that is not there any more."""
    program = _program(entry)
    is_ours = os.path.isabs(program) and _starts_memtool(entry)
    return is_ours and not os.access(program, os.X_OK)


def _program(entry: Any) -> str:
    """Return the program that an entry of a server starts, empty where it names none."""
    command = entry.get("command") if isinstance(entry, dict) else None
    words = command if isinstance(command, list) else [command]
    return words[0] if words and isinstance(words[0], str) else ""
