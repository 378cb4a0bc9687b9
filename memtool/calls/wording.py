"""The words of hints for programs, which have no command line.

Verbs name options and commands. A program gets its arguments, and tools or routes instead. Where it
has neither, the hint says that the user can run the command.
"""

from __future__ import annotations

import re

from memtool.calls.procedures import CHOICES, DIRECTORY, FLAG, GLOBAL, Procedure
from memtool.commands import BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_BARE_FLAG = re.compile(r"(?<![\w'\"=`-])--[a-z][a-z-]*")
_COMMAND = re.compile(r"\b(?:git|memtool) [a-z-](?:\"[^\"]*\"|[^,;\"\n])*")
"""Matches a shell command in a sentence, up to its end."""
_CALL = re.compile(
    r"\bmemtool (?P<first>[a-z]+)(?: (?P<second>[a-z]+)(?![^\s,;]))?(?P<rest>(?: [^\s,;]+)*)"
)
_QUOTED_OR_CALL = re.compile(
    r'"[^"\n]*"'
    r"|(?P<lead>\brun:? )?(?P<tick>`?)\bmemtool (?P<place>--global |-C \S+ )?"
    r'(?P<verb>[a-z]+)(?![\w-])(?P<words>(?: (?:"[^"\n]*"|[^\s,;`()]+))*)(?P=tick)'
)
"""Matches a text in quotation marks, which may be a user's, or a command with the words after it.
`lead` says that somebody is asked to run it."""
_QUOTED_COMMAND = re.compile(r'"((?:git|memtool) [^"\n]*)"')
_GIT_LINE = re.compile(
    r"^(?=git (?:-C|add|checkout|commit|config|diff|fetch|init|log|merge|mv|rebase|remote|reset"
    r"|restore|rm|sparse-checkout|status|switch)\b)",
    re.MULTILINE,
)
"""Matches the beginning of a line that is a command of git, and no sentence about git."""
FOR_USER = "the user can run "
PLACES = {"--global": GLOBAL, "-C": DIRECTORY}
"""Options before the verb, with the arguments of tools."""


def reword(text: str, procedure: Procedure) -> str:
    """Rename the options in a message to the arguments of a program: `at` instead of --at.

    Shell commands and quoted texts are not changed.
    """
    names = {option.flag: option.name.rstrip("_") for option in procedure.face.options}

    def name_argument(flag: re.Match[str]) -> str:
        return f"`{names.get(flag[0], _name_argument(flag[0]))}`"

    parts, end = [], 0
    for command in _COMMAND.finditer(text):
        parts += [_BARE_FLAG.sub(name_argument, text[end : command.start()]), command[0]]
        end = command.end()
    return "".join([*parts, _BARE_FLAG.sub(name_argument, text[end:])])


def with_routes(text: str) -> str:
    """Replace the commands in a hint with the equivalent HTTP routes."""
    # Commands with --global stay: a server of a project has no routes for global memories.
    served = {choice.verb for choice in CHOICES}

    def route(match: re.Match[str]) -> str:
        first, second, tail = match["first"], match["second"] or "", match["rest"]
        verb = f"{first} {second}" if f"{first} {second}" in served else first
        if verb not in served:
            return match[0]
        words = tail if verb != first or not second else f" {second}{tail}"
        return f"POST /api/{verb.replace(' ', '-')}{_name_arguments(words)}"

    return _CALL.sub(route, text)


def with_tools(text: str, tools: Mapping[str, Procedure]) -> str:
    """Replace the commands in a hint with calls of these tools: `show` ID, `at` REV.

    A command that no tool can do is one for the user. Quoted texts are not changed.
    """

    def call(match: re.Match[str]) -> str:
        verb, words = match["verb"], match["words"] or ""
        if match["lead"] or verb not in BY_NAME:
            return match[0]
        tool = tools.get(verb)
        arguments = {_name_argument(flag) for flag in FLAG.findall(words)}
        place = PLACES.get((match["place"] or "").partition(" ")[0], "")
        if tool is None or not arguments | {place} - {""} <= set(tool.parameters):
            return FOR_USER + match[0]
        value = f" {match['place'].split()[1]}" if place == DIRECTORY else ""
        return f"`{verb}`{f' `{place}`{value}' if place else ''}{_name_arguments(words)}"

    return _GIT_LINE.sub(FOR_USER, _QUOTED_OR_CALL.sub(call, text))


def with_tools_quoted(text: str, tools: Mapping[str, Procedure]) -> str:
    """Do so also for commands in quotation marks, in a text that quotes nobody."""

    def call(match: re.Match[str]) -> str:
        call = with_tools(match[1], tools)
        return f"the user's {match[0]}" if call.startswith(FOR_USER) else call

    return with_tools(_QUOTED_COMMAND.sub(call, text), tools)


def _name_arguments(words: str) -> str:
    return FLAG.sub(lambda flag: f"`{_name_argument(flag[0])}`", words)


def _name_argument(flag: str) -> str:
    return flag[2:].replace("-", "_")
