"""The table of tools.

Name, parameters and description of a tool come from the verb's signature and docstring; the table
only chooses. No tool opens an editor, reads standard input, changes settings or skips a check, and
a row names the parameters that must be files of the repository.

A host sends the descriptions of all tools with every request to the model. So few are offered
unless all are asked for, with the first sentence of their help and the arguments that agents use.
"""

from __future__ import annotations

import re

from memtool.cli.arguments import Interface, Parameter, interface
from memtool.commands import BY_NAME
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_JSON_TYPES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


READ, ADD, CHANGE, REMOVE = "read", "add", "change", "remove"

EFFECTS: dict[str, dict[str, bool]] = {
    READ: {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True},
    ADD: {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False},
    CHANGE: {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True},
    REMOVE: {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True},
}
"""What a host may show of a tool before it asks its user. None reaches beyond the repository."""


class Choice(Value):
    """A row of the table. `joined` parameters take one text where the verb takes many words.

    `inside` name files, which must lie in the repository; `required` are those that the verb
    refuses to do without, though its signature has a default.
    """

    verb: str
    effect: str
    parameters: tuple[str, ...]
    joined: str = ""
    inside: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


_DRAFT = (
    "body", "section", "category", "tag", "file", "source", "confidence", "importance",
    "valid_through", "supersedes", "set", "commit", "dry_run", "global",
)  # fmt: skip
_MARK = ("id", "commit", "dry_run", "global")

CHOICES: tuple[Choice, ...] = (
    Choice("search", READ, ("query", "limit", "explain", "at", "as_of", "global"),
           joined="query", required=("query",)),
    Choice("show", READ, ("id", "at", "as_of", "global")),
    Choice("list", READ, ("filters", "limit", "sort", "at", "as_of", "global"), joined="filters"),
    Choice("inject", READ, ("prompt", "files", "for_", "budget", "primer"), inside=("files",)),
    Choice("why", READ, ("id", "at")),
    Choice("log", READ, ("id", "at", "injected", "limit")),
    Choice("blame", READ, ("id", "at")),
    Choice("diff", READ, ("range",)),
    Choice("conflicts", READ, ("ids", "at", "since", "all")),
    Choice("check", READ, ("path", "staged", "range", "history"), inside=("path",)),
    Choice("status", READ, ("at", "as_of")),
    Choice("remember", ADD, ("text", "category", "tag", "file", "commit", "dry_run", "global"),
           joined="text", inside=("file",), required=("text",)),
    Choice("new", ADD, ("type", "title", *_DRAFT), inside=("file",)),
    Choice("supersede", ADD, ("old", "title", "body", "section", "category", "tag", "file",
                              "source", "supersedes", "commit", "dry_run", "global"),
           inside=("file",)),
    Choice("resolve", ADD, ("ids", "keep", "merge", "body", "why", "commit", "dry_run"),
           required=("ids", "why")),
    Choice("confirm", ADD, _MARK),
    Choice("pin", CHANGE, _MARK),
    Choice("unpin", CHANGE, _MARK),
    Choice("restore", CHANGE, _MARK),
    Choice("undo", REMOVE, ("id", "why", "commit", "dry_run", "global")),
    Choice("forget", REMOVE, ("wanted", "why", "commit", "dry_run", "global"), joined="wanted",
           required=("wanted", "why")),
)  # fmt: skip
"""Every tool, those that only read first."""
COMMON = ("search", "show", "list", "inject", "remember", "supersede")
"""The tools that are offered unless all are asked for."""

SETTABLE = (
    "related_to", "resolves", "derived_from", "parent", "blocked_by", "valid_from", "aliases",
    "trigger_phrases", "question_types", "domain", "feature", "temporal_class", "action_required",
    "awaiting", "task_id", "iteration", "error_signature", "environment", "agent", "session",
)  # fmt: skip
"""Keys that `set` may give. The others decide what a memory counts for: its status, the conflicts
that are passed over, the marks for handling."""

GLOBAL = "global"
_ELSEWHERE = Parameter(
    name=GLOBAL, kind=bool, choices=(), default=False, is_positional=False, is_required=False,
    is_many=False, help="work on the user's global memories",
)  # fmt: skip
"""What `--global` is on the command line: it belongs to no verb."""

MOST_ITEMS = 1_000
_FLAG = re.compile(r"--[a-z][a-z-]*")
_STDIN = re.compile(r",? or - to read it from stdin")
_SET_HELP = f"KEY=VALUE with a key of {', '.join(SETTABLE)}"


class Tool(Value):
    """A verb as an agent sees it. `parameters` maps each name of an argument to the verb's own."""

    name: str
    title: str
    description: str
    effect: str
    face: Interface
    choice: Choice
    parameters: dict[str, Parameter]
    input_schema: dict[str, Any]


def tools(*, every: bool = False, read_only: bool = False) -> dict[str, Tool]:
    """Return the tools by name: the common ones or every one, and of these those that only read."""
    chosen = [one for one in CHOICES if one.effect == READ or not read_only]
    chosen = [one for one in chosen if every or one.verb in COMMON]
    return {choice.verb: _tool(choice) for choice in chosen}


def is_required(choice: Choice, parameter: Parameter) -> bool:
    """Tell whether a call must give the parameter."""
    return parameter.is_required or parameter.name in choice.required


def _tool(choice: Choice) -> Tool:
    verb = BY_NAME[choice.verb]
    face = interface(verb)
    known = {parameter.name: parameter for parameter in face.parameters}
    known[GLOBAL] = _ELSEWHERE
    given = {name.rstrip("_"): known[name] for name in choice.parameters}
    return Tool(
        name=verb.name,
        title=verb.summary,
        description=_description(face, choice),
        effect=choice.effect,
        face=face,
        choice=choice,
        parameters=given,
        input_schema={
            "type": "object",
            "properties": {name: _property(face, choice, one) for name, one in given.items()},
            "required": [name for name, one in given.items() if is_required(choice, one)],
            "additionalProperties": False,
        },
    )


def _property(face: Interface, choice: Choice, parameter: Parameter) -> dict[str, Any]:
    one: dict[str, Any] = {"type": _JSON_TYPES[parameter.kind]}
    if parameter.choices:
        one["enum"] = list(parameter.choices)
    is_list = parameter.is_many and parameter.name != choice.joined
    shape = {"type": "array", "items": one} if is_list else one
    if parameter.default not in (None, "", (), False):
        shape["default"] = parameter.default
    return shape | {"description": _help(face, choice, parameter)}


def _help(face: Interface, choice: Choice, parameter: Parameter) -> str:
    if parameter.name == "set":
        return _SET_HELP
    clauses = _STDIN.sub("", parameter.help).replace("; may be repeated", "").split("; ")
    return _joined(face, choice, clauses, "; ")


def _description(face: Interface, choice: Choice) -> str:
    paragraphs = [" ".join(part.split()) for part in face.description.split("\n\n") if part]
    return _joined(face, choice, [face.summary, *paragraphs], "\n\n")


def _joined(face: Interface, choice: Choice, parts: list[str], between: str) -> str:
    """Join the parts that say nothing of options which the tool lacks, the others named as here."""
    names = {option.flag: option for option in face.options}
    hidden = {flag for flag, option in names.items() if option.name not in choice.parameters}

    def named(flag: re.Match[str]) -> str:
        return f"`{names[flag[0]].name.rstrip('_')}`" if flag[0] in names else flag[0]

    kept = [part for part in parts if hidden.isdisjoint(_FLAG.findall(part))]
    return _FLAG.sub(named, between.join(kept))
