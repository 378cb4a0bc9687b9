"""Prompts: slash commands and skills, one template each, given in the form of a host."""

from __future__ import annotations

import json

from memtool import templates
from memtool.hosts.parts import MARK
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
"""Stands in a template for what the user types after the command."""


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


def commands(verbs: Iterable[str]) -> Iterator[Prompt]:
    """Yield the slash commands whose verbs there are."""
    known = set(verbs)
    for name, verb in COMMANDS.items():
        if verb in known:
            yield _read(f"commands/{name}", name)


def skill() -> Prompt:
    """Return the skill that teaches an agent to use memtool."""
    return _read("skill", SKILL)


def _read(template: str, name: str) -> Prompt:
    text = templates.read(f"hosts/{template}.md")
    _fence, head, body = text.split("---\n", 2)
    keys = dict(row.split(": ", 1) for row in head.splitlines())
    return Prompt(name, keys["description"], body, keys.get("arguments", ""))


def _note() -> str:
    return f"{MARK}; without this line the file is yours, and stays"
