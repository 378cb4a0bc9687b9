"""Edits: the parts that memtool adds to a host's files and removes again.

A part of a file that others write too changes only its own bytes; a whole file is memtool's only
with its mark. Here are also the texts of slash commands and of the skill, in the form of each host.
Settings that cannot be parsed are refused.
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
from memtool.errors import MemtoolError, reason_of
from memtool.hosts.json_edit import JsonDocument
from memtool.store import toml
from memtool.store.files import read_regular
from memtool.value import Value

MARK = "installed by memtool"
"""Is in every file that is memtool's alone; without it a file is somebody else's."""
BOM = "\ufeff"


class ConfigEdit(Value):
    """A part of the file at a path; `elsewhere` are files of other levels that may have it."""

    path: str
    elsewhere: tuple[str, ...]
    is_hook = False  # True for what the host runs, once the user trusts it

    def put(self, before: bytes | None) -> bytes:
        """Return the file with the part, which may be there already."""
        raise NotImplementedError

    def take(self, before: bytes) -> bytes | None:
        """Return the file without the part, None for no file."""
        raise NotImplementedError

    def has(self, data: bytes) -> bool:
        """Tell whether a file has the part, in whatever version; one that is broken has not."""
        raise NotImplementedError


class WholeFile(ConfigEdit):
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


class JsonPart(ConfigEdit):
    """A part of a JSON file. `name` is what errors call the file, `start` a new one's content."""

    name: str
    start: dict[str, Any]
    comments: bool

    def document(self, data: bytes) -> tuple[JsonDocument, str]:
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
        return JsonDocument(text.removeprefix(mark), self.name, comments=self.comments), mark

    def put(self, before: bytes | None) -> bytes:
        """Return the file with the part; everything else keeps its bytes."""
        if before is None:
            first = self.added(JsonDocument(json.dumps(self.start), self.name)).root.value
            return (json.dumps(first, indent=2, ensure_ascii=False) + "\n").encode()
        document, mark = self.document(before)
        return (mark + self.added(document).text).encode()

    def take(self, before: bytes) -> bytes | None:
        """Return the file without the part; everything else keeps its bytes."""
        document, mark = self.document(before)
        return (mark + self.removed(document).text).encode()

    def has(self, data: bytes) -> bool:
        """Tell whether a file has the part. Comments are accepted: other levels may allow them."""
        try:
            return self.is_in(self.replace(comments=True).document(data)[0])
        except MemtoolError:
            return False

    def added(self, document: JsonDocument) -> JsonDocument:
        """Return the document with the part."""
        raise NotImplementedError

    def removed(self, document: JsonDocument) -> JsonDocument:
        """Return the document without the part."""
        raise NotImplementedError

    def is_in(self, document: JsonDocument) -> bool:
        """Tell whether the document has the part."""
        raise NotImplementedError


class Hook(JsonPart):
    """A command that the host runs at an event.

    `event` is the host's name for it, `call` what memtool is called with. Where hooks are
    `grouped`, an event has groups with a matcher and handlers each; else it has handlers.
    """

    event: str
    program: str
    call: tuple[str, ...]
    more: dict[str, Any]
    matcher: str = ""
    grouped: bool = True
    is_hook = True

    @property
    def command(self) -> str:
        """What a shell runs."""
        return guarded(self.program, self.call)

    @property
    def handler(self) -> dict[str, Any]:
        """What the host reads."""
        matcher = {"matcher": self.matcher} if self.matcher and not self.grouped else {}
        return {**matcher, "type": "command", "command": self.command, **self.more}

    def added(self, document: JsonDocument) -> JsonDocument:
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

    def removed(self, document: JsonDocument) -> JsonDocument:
        """Remove ours, and a group that only it was in."""
        for place in reversed(list(self.places(document))):
            group = document.value(place[:3])
            alone = self.grouped and len(group["hooks"]) == 1
            document = document.drop(place[:3] if alone else place)
        return document

    def has(self, data: bytes) -> bool:
        """Tell whether ours is in a settings file, which may also be TOML."""
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
        """Tell whether the document has a handler of ours."""
        return any(self.places(document))

    def places(self, document: JsonDocument) -> Iterator[list[str | int]]:
        """Yield the path of each handler that is ours."""
        for place in _items(document, ["hooks", self.event]):
            for inner in _items(document, [*place, "hooks"]) if self.grouped else [place]:
                if self.is_ours(document.value(inner)):
                    yield inner

    def is_ours(self, handler: Any) -> bool:
        """Tell whether a handler runs memtool's hook of this event, wherever memtool is."""
        command = handler.get("command") if isinstance(handler, dict) else None
        if not isinstance(command, str):
            return False
        given = handler.get("args")
        try:
            words = [command, *given] if isinstance(given, list) else shlex.split(command)
        except ValueError:
            return False
        programs = {word for word in words if os.path.basename(word) == "memtool"}
        if len(programs) != 1:
            return False
        program = programs.pop()
        return words in (shlex.split(guarded(program, self.call)), [program, *self.call])


def guarded(program: str, call: Sequence[str]) -> str:
    """Return the command of a hook for a shell: it ends with 0 where memtool is missing or broken.

    Settings of a project are shared with people who do not have memtool, and some hosts stop the
    agent at any other exit code.
    """
    name = shlex.quote(program)
    return f"command -v {name} >/dev/null 2>&1 || exit 0; {name} {shlex.join(call)} || exit 0"


def _items(document: JsonDocument, path: list[str | int]) -> Iterator[list[str | int]]:
    """Yield the path of each item of a list in a document; what is no list has none."""
    found = document.value(path)
    yield from ([*path, number] for number in range(len(found) if isinstance(found, list) else 0))


class Site(Value):
    """One level of a host: this project, or all projects of the user.

    `folder` is the host's directory, `other` that of the other level; removing empty directories
    ends at `top`. `home` and `project` are the directories that contain the levels. `program` runs
    memtool: its bare name where files are shared with others, who have it elsewhere.
    """

    folder: str
    other: str
    top: str
    home: str
    project: str
    program: str
    is_user: bool

    def at(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Return the path of a file of the host, and where the other level has it."""
        return os.path.join(self.folder, name), (os.path.join(self.other, name),)

    def shown(self, path: str) -> str:
        """Return a path as the user knows it: from the top of the project, or from home."""
        if path.startswith(f"{self.project}/"):
            return path[len(self.project) + 1 :]
        return f"~{path[len(self.home) :]}" if path.startswith(f"{self.home}/") else path

    def real(self, path: str) -> str:
        """Return a path without links.

        Raises:
            MemtoolError: a link leads out of the project.
        """
        place = os.path.realpath(path)
        if not self.is_user and not place.startswith(f"{os.path.realpath(self.project)}/"):
            raise MemtoolError(
                f"{self.shown(path)} is a link that leads out of the repository",
                hint="remove the link, or use --user",
                code="symlink",
            )
        return place

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file of the host, None for no file.

        Raises:
            MemtoolError: it cannot be read.
        """
        place = self.real(path)
        try:
            if not stat.S_ISREG(os.stat(place).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file")
            return read_regular(place)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise MemtoolError(
                f"{self.shown(path)} cannot be read: {reason_of(error)}; nothing was changed",
                hint="make it a file that you may read, or remove it",
                code="broken-settings",
            ) from None

    def has(self, part: ConfigEdit) -> bool:
        """Tell whether a part is in its file, as far as that can be read."""
        try:
            data = self.read(part.path)
        except MemtoolError:
            return False
        return data is not None and part.has(data)


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


class Server(JsonPart):
    """Memtool's MCP server among those of the host.

    An entry of that name is left as it is, unless it starts a memtool that is gone.
    """

    key: str
    entry: dict[str, Any]

    def added(self, document: JsonDocument) -> JsonDocument:
        """Add ours, unless one of that name is there."""
        entry = document.value([self.key, "memtool"])
        if _is_gone(entry):
            ours, old = self.entry["command"], entry["command"]
            command = [ours[0], *old[1:]] if isinstance(old, list) else ours
            return document.put([self.key, "memtool", "command"], command)
        if entry is not None:
            return document
        return document.put([self.key, "memtool"], self.entry)

    def removed(self, document: JsonDocument) -> JsonDocument:
        """Remove it where it starts memtool."""
        entry = document.value([self.key, "memtool"])
        return document.drop([self.key, "memtool"]) if _starts_memtool(entry) else document

    def is_in(self, document: JsonDocument) -> bool:
        """Tell whether one of that name is there."""
        return document.value([self.key, "memtool"]) is not None


class TomlServer(ConfigEdit):
    """The same in a TOML file: a table of its own at the end."""

    name: str
    command: str

    @property
    def block(self) -> str:
        """The table, with the line feed that it begins after."""
        return f'\n[mcp_servers.memtool]\ncommand = {json.dumps(self.command)}\nargs = ["mcp"]\n'

    def put(self, before: bytes | None) -> bytes:
        """Add the table, unless one of that name is there that can be started."""
        text = self._text(before or b"")
        entry = self._entry(text)
        if _is_gone(entry):
            text = toml.set_key(text, ("mcp_servers", "memtool", "command"), self.command)
        if entry is not None:
            return text.encode()
        if before is None:
            return self.block.removeprefix("\n").encode()
        is_ended = text.endswith("\n")
        # Without a line feed at the end there is none after ours either: `take` recognizes that.
        changed = text + self.block if is_ended else f"{text}\n{self.block.removesuffix(chr(10))}"
        if self._entry(changed) is None:
            raise MemtoolError(f"{self.name} holds mcp_servers in a way that takes no more")
        return changed.encode()

    def take(self, before: bytes) -> bytes | None:
        """Remove the table: as it was written, or by its name where it was edited since."""
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
        return toml.set_key(text, ("mcp_servers", "memtool"), None).encode()

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
"""Every slash command and the verb that it needs. Hosts have /memory, /config and /status."""
SKILL = "memtool"
ARGUMENTS = "$ARGUMENTS"
"""In a template: what the user types after the command."""


class Prompt(Value):
    """A text for the agent; `arguments` says what the user may type after its name."""

    name: str
    description: str
    body: str
    arguments: str = ""

    def markdown(self, **more: str | bool) -> str:
        """Return it with a front matter that only the host reads; an empty key is left out."""
        keys = {"description": self.description, **more}
        rows = [f"{key}: {json.dumps(value)}" for key, value in keys.items() if value != ""]
        return "\n".join(["---", f"# {_note()}", *rows, "---", self.body])

    def bare(self) -> str:
        """Return it for a host that knows no front matter, and adds what the user typed itself."""
        body = self.body.replace(ARGUMENTS, "(what follows the name of this command)")
        return f"{body}\n<!-- {_note()} -->\n"

    def toml(self) -> str:
        """Return it as a TOML file with a description and a prompt."""
        body = self.body.replace(ARGUMENTS, "{{args}}").replace("'''", "' ' '")
        description = json.dumps(self.description, ensure_ascii=False)
        return f"# {_note()}\ndescription = {description}\nprompt = '''\n{body}'''\n"


def commands() -> list[Prompt]:
    """Return the slash commands."""
    return [_read(f"commands/{name}", name) for name in COMMANDS]


def command_files(site: Site, path: str, form: Callable[[Prompt], str]) -> list[ConfigEdit]:
    """Return a file for each slash command; `path` has `{}` where its name belongs."""
    return [WholeFile(*site.at(path.format(one.name)), form(one)) for one in commands()]


def skill() -> Prompt:
    """Return the skill that teaches an agent to use memtool."""
    return _read("skill", SKILL)


def skill_file(site: Site) -> ConfigEdit:
    """Return the skill as a file of its own."""
    return WholeFile(*site.at(f"skills/{SKILL}/SKILL.md"), skill().markdown(name=SKILL))


def _read(template: str, name: str) -> Prompt:
    text = templates.read(f"hosts/{template}.md")
    _fence, head, body = text.split("---\n", 2)
    keys = dict(row.split(": ", 1) for row in head.splitlines())
    return Prompt(name, keys["description"], body, keys.get("arguments", ""))


def _note() -> str:
    return f"{MARK}; without this line the file is yours, and stays"
