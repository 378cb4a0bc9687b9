"""Edits: the parts that memtool adds to a host's files and removes again.

Adding a part to a shared file changes no other byte. A whole file belongs to memtool only if it has
its mark. This module also formats slash commands and the skill for each host. Settings that cannot
be parsed are refused.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import stat
import tomllib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memtool import templates
from memtool.errors import MemtoolError, find_reason
from memtool.hosts.json_edit import JsonDocument
from memtool.store import toml
from memtool.store.files import read_regular
from memtool.value import Value

MARK = "installed by memtool"
"""In every file that belongs to memtool alone; a file without it belongs to the user."""
BOM = "\ufeff"


class ConfigEdit(Value):
    """A part of a file; `elsewhere` are files of other levels that may have it instead."""

    path: str
    elsewhere: tuple[str, ...]
    is_hook = False  # True for a command that the host runs once the user trusts it

    def add(self, before: bytes | None) -> bytes:
        """Return the file with the part, which it may already have."""
        raise NotImplementedError

    def remove(self, before: bytes) -> bytes | None:
        """Return the file without the part; None to delete the file."""
        raise NotImplementedError

    def has(self, data: bytes) -> bool:
        """Return whether a file has the part, in any version; False for a broken file."""
        raise NotImplementedError


class WholeFile(ConfigEdit):
    """A file that belongs to memtool alone; a user's file of the same name is not changed."""

    text: str
    is_executable: bool = False

    def add(self, before: bytes | None) -> bytes:
        """Return our file, or the user's file if there is one."""
        return self.text.encode() if before is None or self.has(before) else before

    def remove(self, before: bytes) -> bytes | None:
        """Return None for our file, and a user's file unchanged."""
        return None if self.has(before) else before

    def has(self, data: bytes) -> bool:
        """Return whether a file is ours."""
        return MARK.encode() in data


class JsonPart(ConfigEdit):
    """A part of a JSON file; `name` is the file in errors, `start` the content of a new one."""

    name: str
    start: dict[str, Any]
    comments: bool

    def parse_document(self, data: bytes) -> tuple[JsonDocument, str]:
        """Parse a file: the document, and the byte-order mark before it."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise MemtoolError(
                f"{self.name} is not UTF-8 text at byte {error.start}; nothing was changed",
                hint=f"save {self.name} as UTF-8, then run the command again",
                code="broken-settings",
            ) from None
        mark = BOM if text.startswith(BOM) else ""
        return JsonDocument(text.removeprefix(mark), self.name, comments=self.comments), mark

    def add(self, before: bytes | None) -> bytes:
        """Return the file with the part; everything else keeps its bytes."""
        if before is None:
            root = self.with_part(JsonDocument(json.dumps(self.start), self.name)).root.value
            return (json.dumps(root, indent=2, ensure_ascii=False) + "\n").encode()
        document, mark = self.parse_document(before)
        return (mark + self.with_part(document).text).encode()

    def remove(self, before: bytes) -> bytes | None:
        """Return the file without the part; everything else keeps its bytes."""
        document, mark = self.parse_document(before)
        return (mark + self.without_part(document).text).encode()

    def has(self, data: bytes) -> bool:
        """Return whether a file has the part; comments are allowed, as other levels may be."""
        try:
            return self.is_in(self.replace(comments=True).parse_document(data)[0])
        except MemtoolError:
            return False

    def with_part(self, document: JsonDocument) -> JsonDocument:
        """Return the document with the part."""
        raise NotImplementedError

    def without_part(self, document: JsonDocument) -> JsonDocument:
        """Return the document without the part."""
        raise NotImplementedError

    def is_in(self, document: JsonDocument) -> bool:
        """Return whether the document has the part."""
        raise NotImplementedError


class Hook(JsonPart):
    """A command that the host runs at an event.

    `event` is the host's name of it, `call` the arguments of memtool, `key` the host's name of the
    command line. If hooks are `grouped`, an event has groups, each with a matcher and handlers;
    otherwise it has handlers only.
    """

    event: str
    program: str
    call: tuple[str, ...]
    extra: dict[str, Any]
    matcher: str = ""
    is_grouped: bool = True
    key: str = "command"
    is_hook = True

    @property
    def command(self) -> str:
        """The command line for a shell."""
        return guard_command(self.program, self.call)

    @property
    def handler(self) -> dict[str, Any]:
        """The entry in the settings of the host."""
        matcher = {"matcher": self.matcher} if self.matcher and not self.is_grouped else {}
        return {**matcher, "type": "command", self.key: self.command, **self.extra}

    def with_part(self, document: JsonDocument) -> JsonDocument:
        """Add our handler after all others, or update the existing one."""
        places = list(self.find_handlers(document))
        if self.is_grouped and any(self._has_other_matcher(document, place) for place in places):
            document, places = self.without_part(document), []  # the group may have other handlers
        for place in reversed(places):
            if document.find_value(place) != self.handler:
                document = document.put(place, self.handler)
        if places:
            return document
        group = {"matcher": self.matcher} if self.matcher else {}
        entry = {**group, "hooks": [self.handler]} if self.is_grouped else self.handler
        return document.append(["hooks", self.event], entry)

    def _has_other_matcher(self, document: JsonDocument, place: list[str | int]) -> bool:
        """Return whether our handler is run for other tools, as an older version had it."""
        matcher = document.find_value(place[:3]).get("matcher")
        is_ours = isinstance(matcher, str) and all(matcher.split("|"))
        return is_ours and set(matcher.split("|")) < set(self.matcher.split("|"))

    def without_part(self, document: JsonDocument) -> JsonDocument:
        """Remove our handler, and its group if nothing else is in it."""
        for place in reversed(list(self.find_handlers(document))):
            group = document.find_value(place[:3])
            is_alone = self.is_grouped and len(group["hooks"]) == 1
            document = document.drop(place[:3] if is_alone else place)
        return document

    def has(self, data: bytes) -> bool:
        """Return whether a settings file, JSON or TOML, has our handler."""
        if data.lstrip()[:1] in (b"{", BOM.encode()[:1]):
            return super().has(data)
        try:
            tables = tomllib.loads(data.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            return False
        hooks = tables.get("hooks")
        entries = hooks.get(self.event) if isinstance(hooks, dict) else None
        text = json.dumps({"hooks": {self.event: entries}}, default=str)
        return self.is_in(JsonDocument(text, self.name))

    def is_in(self, document: JsonDocument) -> bool:
        """Return whether the document has our handler."""
        return any(self.find_handlers(document))

    def find_handlers(self, document: JsonDocument) -> Iterator[list[str | int]]:
        """Yield the path of each of our handlers."""
        for place in _find_items(document, ["hooks", self.event]):
            for inner in _find_items(document, [*place, "hooks"]) if self.is_grouped else [place]:
                if self.is_ours(document.find_value(inner)):
                    yield inner

    def is_ours(self, handler: Any) -> bool:
        """Return whether a handler runs memtool's hook for this event, at any path of memtool."""
        command = handler.get(self.key) if isinstance(handler, dict) else None
        if not isinstance(command, str):
            return False
        arguments = handler.get("args")
        try:
            words = [command, *arguments] if isinstance(arguments, list) else shlex.split(command)
        except ValueError:
            return False
        programs = {word for word in words if os.path.basename(word) == "memtool"}
        if len(programs) != 1:
            return False
        program = programs.pop()
        return words in (shlex.split(guard_command(program, self.call)), [program, *self.call])


def guard_command(program: str, call: Sequence[str]) -> str:
    """Return a shell command for a hook that exits with 0 even if memtool is missing or broken."""
    # Not every user of a shared project has memtool, and some hosts stop the agent at exit code 1.
    name = shlex.quote(program)
    return f"command -v {name} >/dev/null 2>&1 || exit 0; {name} {shlex.join(call)} || exit 0"


def _find_items(document: JsonDocument, path: list[str | int]) -> Iterator[list[str | int]]:
    """Yield the path of each item of a list in a document; none if it is not a list."""
    items = document.find_value(path)
    yield from ([*path, number] for number in range(len(items) if isinstance(items, list) else 0))


class Site(Value):
    """One level of a host: this project, or all projects of the user.

    `folder` is the host's directory, `other` that of the other level. Empty directories are removed
    only below `top`. `home` and `project` are the directories that contain the levels. `program`
    runs memtool; in shared files it is the bare name, as the path differs between users.
    """

    folder: str
    other_folder: str
    top: str
    home: str
    project: str
    program: str
    is_user: bool

    def find_paths(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Return the path of a file of the host, and its path at the other level."""
        return os.path.join(self.folder, name), (os.path.join(self.other_folder, name),)

    def format_path(self, path: str) -> str:
        """Return a path relative to the project or to `~`, for messages."""
        if path.startswith(f"{self.project}/"):
            return path[len(self.project) + 1 :]
        return f"~{path[len(self.home) :]}" if path.startswith(f"{self.home}/") else path

    def resolve_path(self, path: str) -> str:
        """Resolve the links in a path.

        Raises:
            MemtoolError: a link leads out of the project.
        """
        place = os.path.realpath(path)
        if not self.is_user and not place.startswith(f"{os.path.realpath(self.project)}/"):
            raise MemtoolError(
                f"{self.format_path(path)} is a link to a place outside the repository",
                hint="remove the link, or use --user",
                code="symlink",
            )
        return place

    def read(self, path: str) -> bytes | None:
        """Read a file of the host; None if it does not exist.

        Raises:
            MemtoolError: it cannot be read.
        """
        place = self.resolve_path(path)
        try:
            if not stat.S_ISREG(os.stat(place).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file")
            return read_regular(place)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise MemtoolError(
                f"{self.format_path(path)} cannot be read: {find_reason(error)}; "
                "nothing was changed",
                hint="make it readable, or remove it",
                code="broken-settings",
            ) from None

    def has(self, part: ConfigEdit) -> bool:
        """Return whether a part is in its file; False if the file cannot be read."""
        try:
            data = self.read(part.path)
        except MemtoolError:
            return False
        return data is not None and part.has(data)


def build_server(
    site: Site, path: str, elsewhere: tuple[str, ...], *, comments: bool = False
) -> Server:
    """Build the server entry of most hosts: command and arguments below `mcpServers`."""
    return Server(
        path=path,
        elsewhere=elsewhere,
        name=site.format_path(path),
        start={},
        comments=comments,
        key="mcpServers",
        entry={"command": site.program, "args": ["mcp"]},
    )


class Server(JsonPart):
    """Memtool's entry among the MCP servers of the host.

    An existing entry of that name is kept, unless it starts a memtool that no longer exists.
    """

    key: str
    entry: dict[str, Any]

    def with_part(self, document: JsonDocument) -> JsonDocument:
        """Add our entry, unless there is one of that name."""
        entry = document.find_value([self.key, "memtool"])
        if _is_gone(entry):
            ours, old = self.entry["command"], entry["command"]
            command = [ours[0], *old[1:]] if isinstance(old, list) else ours
            return document.put([self.key, "memtool", "command"], command)
        if entry is not None:
            return document
        return document.put([self.key, "memtool"], self.entry)

    def without_part(self, document: JsonDocument) -> JsonDocument:
        """Remove the entry if it starts memtool."""
        entry = document.find_value([self.key, "memtool"])
        return document.drop([self.key, "memtool"]) if _starts_memtool(entry) else document

    def is_in(self, document: JsonDocument) -> bool:
        """Return whether there is an entry of that name."""
        return document.find_value([self.key, "memtool"]) is not None


class TomlServer(ConfigEdit):
    """Memtool's MCP server in a TOML file: a table at its end."""

    name: str
    command: str

    @property
    def block(self) -> str:
        """The table, with the line feed before it."""
        return f'\n[mcp_servers.memtool]\ncommand = {json.dumps(self.command)}\nargs = ["mcp"]\n'

    def add(self, before: bytes | None) -> bytes:
        """Add the table, or correct the command of one that starts a missing memtool."""
        text = self._decode(before or b"")
        entry = self._parse_entry(text)
        if _is_gone(entry):
            text = toml.set_key(text, ("mcp_servers", "memtool", "command"), self.command)
        if entry is not None:
            return text.encode()
        if before is None:
            return self.block.removeprefix("\n").encode()
        is_ended = text.endswith("\n")
        # If the file has no final line feed, neither has our block: `take` recognizes that.
        changed = text + self.block if is_ended else f"{text}\n{self.block.removesuffix(chr(10))}"
        if self._parse_entry(changed) is None:
            raise MemtoolError(f"cannot add to mcp_servers in {self.name}: not a plain table")
        return changed.encode()

    def remove(self, before: bytes) -> bytes | None:
        """Remove the table: as it was written, or by its name if it was edited since."""
        text = self._decode(before)
        if not _starts_memtool(self._parse_entry(text)):
            return before
        if text == self.block.removeprefix("\n"):
            return None
        unended = f"\n{self.block.removesuffix(chr(10))}"
        if text.endswith(unended):
            return text.removesuffix(unended).encode()
        if self.block in text:
            return text.replace(self.block, "", 1).encode()
        return toml.set_key(text, ("mcp_servers", "memtool"), None).encode()

    def has(self, data: bytes) -> bool:
        """Return whether there is a table of that name."""
        try:
            return self._parse_entry(self._decode(data)) is not None
        except MemtoolError:
            return False

    def _decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self._broken_error(f"not UTF-8 text at byte {error.start}") from None

    def _parse_entry(self, text: str) -> Any:
        try:
            servers = tomllib.loads(text).get("mcp_servers", {})
        except tomllib.TOMLDecodeError as error:
            raise self._broken_error(f"not TOML: {error}") from None
        if not isinstance(servers, dict):
            raise self._broken_error("not as expected: mcp_servers is not a table")
        return servers.get("memtool")

    def _broken_error(self, what: str) -> MemtoolError:
        return MemtoolError(
            f"{self.name} is {what}; nothing was changed",
            hint=f"fix {self.name}, then run the command again",
            code="broken-settings",
        )


def _starts_memtool(entry: Any) -> bool:
    """Return whether a server entry starts memtool."""
    return os.path.basename(_find_program(entry)) == "memtool"


def _is_gone(entry: Any) -> bool:
    """Return whether a server entry starts a memtool that no longer exists."""
    program = _find_program(entry)
    is_ours = os.path.isabs(program) and _starts_memtool(entry)
    return is_ours and not os.access(program, os.X_OK)


def _find_program(entry: Any) -> str:
    """Return the program that a server entry starts; empty if it names none."""
    command = entry.get("command") if isinstance(entry, dict) else None
    words = command if isinstance(command, list) else [command]
    return words[0] if words and isinstance(words[0], str) else ""


COMMANDS: dict[str, str] = {
    "remember": "remember",
    "forget": "forget",
    "pin": "pin",
    "memory-status": "status",
    "memory-list": "list",
    "memory-search": "search",
    "memory-budget": "inject",
    "memory-alias": "alias",
    "memory-auto": "auto",
    "memory-config": "config",
}
# Hosts have /memory, /config and /status of their own, hence the longer names.
SKILL = "memtool"
ARGUMENTS = "$ARGUMENTS"
"""Placeholder in a template for the text that the user types after the command."""


class Prompt(Value):
    """A text for the agent; `arguments` describes what the user may type after its name."""

    name: str
    description: str
    body: str
    arguments: str = ""

    def to_markdown(self, **host_keys: str | bool) -> str:
        """Format as markdown with front matter for the host; empty values are omitted."""
        keys = {"description": self.description, **host_keys}
        rows = [f"{key}: {json.dumps(value)}" for key, value in keys.items() if value != ""]
        return "\n".join(["---", f"# {_ownership_note()}", *rows, "---", self.body])

    def to_plain(self) -> str:
        """Format for a host without front matter that appends the user's text itself."""
        body = self.body.replace(ARGUMENTS, "(what follows the name of this command)")
        return f"{body}\n<!-- {_ownership_note()} -->\n"

    def to_toml(self) -> str:
        """Format as a TOML file with a description and a prompt."""
        body = self.body.replace(ARGUMENTS, "{{args}}").replace("'''", "' ' '")
        description = json.dumps(self.description, ensure_ascii=False)
        return f"# {_ownership_note()}\ndescription = {description}\nprompt = '''\n{body}'''\n"


def load_commands() -> list[Prompt]:
    """Return the slash commands."""
    return [_read_prompt(f"commands/{name}", name) for name in COMMANDS]


def build_command_files(
    site: Site, path: str, format_prompt: Callable[[Prompt], str]
) -> list[ConfigEdit]:
    """Return a file per slash command; `{}` in `path` is replaced by its name."""
    return [
        WholeFile(*site.find_paths(path.format(prompt.name)), format_prompt(prompt))
        for prompt in load_commands()
    ]


def build_command_skills(site: Site, **host_keys: str | bool) -> list[ConfigEdit]:
    """Return a skill per slash command, for a host that has no commands of a project."""
    texts = {
        prompt.name: prompt.to_markdown(name=prompt.name, **host_keys).replace(
            ARGUMENTS, "(what the user wrote)"
        )
        for prompt in load_commands()
    }
    return [
        WholeFile(*site.find_paths(f"skills/{name}/SKILL.md"), text) for name, text in texts.items()
    ]


def load_skill() -> Prompt:
    """Return the skill that teaches an agent to use memtool."""
    return _read_prompt("skill", SKILL)


def build_skill_file(site: Site) -> ConfigEdit:
    """Return the file of the skill."""
    return WholeFile(
        *site.find_paths(f"skills/{SKILL}/SKILL.md"), load_skill().to_markdown(name=SKILL)
    )


def _read_prompt(template: str, name: str) -> Prompt:
    text = templates.read(f"hosts/{template}.md")
    _fence, head, body = text.split("---\n", 2)
    keys = dict(row.split(": ", 1) for row in head.splitlines())
    return Prompt(name, keys["description"], body, keys.get("arguments", ""))


def _ownership_note() -> str:
    return f"{MARK}; without this line the file is yours, and stays"
