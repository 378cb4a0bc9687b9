"""Tools: which verbs an agent may call, with which of their parameters, and what that does.

What a tool is called, takes and says of itself comes from the verb's signature and docstring; this
table only chooses. No tool opens an editor, reads standard input, changes settings or skips a
check, and one that could name a file outside the repository says which parameters are looked at.
"""

from __future__ import annotations

import re

from memtool.cli.signature import Interface, Parameter, interface
from memtool.commands import BY_NAME
from memtool.mcp.shapes import SHAPES
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

READ, ADD, CHANGE, REMOVE = "read", "add", "change", "remove"

EFFECTS: dict[str, dict[str, bool]] = {
    READ: {"read_only": True, "destructive": False, "idempotent": True},
    ADD: {"read_only": False, "destructive": False, "idempotent": False},
    CHANGE: {"read_only": False, "destructive": False, "idempotent": True},
    REMOVE: {"read_only": False, "destructive": True, "idempotent": True},
}
"""What a host may be told of a tool before it asks its user. None reaches beyond the repository."""


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
    Choice("search", READ, ("query", "limit", "sort", "explain", "at", "as_of", "global"),
           joined="query", required=("query",)),
    Choice("show", READ, ("id", "at", "as_of", "global")),
    Choice("list", READ, ("filters", "limit", "sort", "at", "as_of", "global"), joined="filters"),
    Choice("inject", READ, ("prompt", "files", "for_", "budget", "remaining", "session", "at",
                            "as_of", "primer"), inside=("files",)),
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
    Choice("supersede", ADD, ("old", "title", "type", *_DRAFT), inside=("file",)),
    Choice("resolve", ADD, ("ids", "keep", "merge", "body", "why", "commit", "dry_run"),
           required=("ids", "why")),
    Choice("confirm", ADD, _MARK),
    Choice("pin", CHANGE, _MARK),
    Choice("unpin", CHANGE, _MARK),
    Choice("restore", CHANGE, _MARK),
    Choice("forget", REMOVE, ("wanted", "why", "commit", "dry_run", "global"), joined="wanted",
           required=("wanted", "why")),
)  # fmt: skip
"""Every tool, those that only read first."""

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

LONG = frozenset({"body", "prompt", "section", "text"})
LONG_CHARS, SHORT_CHARS = 1 << 20, 10_000
"""Most characters of a text, for what is written or asked at length and for everything else."""
MOST_ITEMS = 1_000
_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
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
    output_schema: dict[str, Any]


def tools(*, read_only: bool = False) -> dict[str, Tool]:
    """Return every tool by its name, or only those that change nothing."""
    chosen = [choice for choice in CHOICES if choice.effect == READ or not read_only]
    return {choice.verb: _tool(choice) for choice in chosen}


def is_required(choice: Choice, parameter: Parameter) -> bool:
    """Tell whether a call must give the parameter."""
    return parameter.is_required or parameter.name in choice.required


def most_chars(parameter: Parameter) -> int:
    """Return how long a text of the parameter may be."""
    return LONG_CHARS if parameter.name in LONG else SHORT_CHARS


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
        output_schema=SHAPES[verb.name],
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
    return _told(face, choice, clauses, "; ")


def _description(face: Interface, choice: Choice) -> str:
    paragraphs = [" ".join(part.split()) for part in face.description.split("\n\n") if part]
    return _told(face, choice, [face.summary, *paragraphs], "\n\n")


def _told(face: Interface, choice: Choice, parts: list[str], between: str) -> str:
    """Join the parts that say nothing of options which the tool lacks, the others named as here."""
    names = {option.flag: option for option in face.options}
    hidden = {flag for flag, option in names.items() if option.name not in choice.parameters}

    def named(flag: re.Match[str]) -> str:
        return f"`{names[flag[0]].name.rstrip('_')}`" if flag[0] in names else flag[0]

    kept = [part for part in parts if hidden.isdisjoint(_FLAG.findall(part))]
    return _FLAG.sub(named, between.join(kept))
