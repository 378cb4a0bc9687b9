"""The table of procedures: verbs that programs call, with arguments in JSON.

Name, parameters and description of a procedure come from the verb's signature and docstring; the
table only selects. No procedure opens an editor, reads standard input, changes settings or skips a
check. A row names the parameters that must be files of the repository.

Agents get some of the procedures as tools, with only the arguments that agents use: a host sends
the descriptions of all tools with every request to the model. HTTP clients get every procedure with
all its parameters. Verbs that decide who is trusted, are run by git, or read arbitrary files are
not procedures: settings, hosts, hooks, imports, purging.
"""

from __future__ import annotations

import re

from memtool.calls.bind import OLD_OPTIONS
from memtool.calls.docstring import parse_blocks
from memtool.calls.json_schema import build_object_schema
from memtool.calls.signature import (
    MAX_LONG_CHARS,
    Interface,
    Parameter,
    Signature,
    read_interface,
)
from memtool.commands import BY_NAME
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

AGENT, HTTP = "agent", "http"
"""The interfaces that call procedures."""
READ, ADD, CHANGE, REMOVE, REVERT = "read", "add", "change", "remove", "revert"

EFFECTS: dict[str, dict[str, bool]] = {
    READ: {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True},
    ADD: {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False},
    CHANGE: {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True},
    REMOVE: {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True},
    REVERT: {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False},
}
"""The hints of a tool for the host, which may show them when it asks the user for permission. No
tool reaches beyond the repository, except for the global memories and the fleet, if the user's
settings allow it."""


class Choice(Value):
    """A row of the table. The parameter `joined` takes one text; the verb takes many words.

    `tool` are the parameters for agents, empty if it is not a tool, and `about` its description for
    them, by default that of the verb. The parameters `inside` are files that must be in the
    repository. Those in `required` have a default in the signature, but the verb refuses without
    them. Those `withheld` are not offered at all. The parameter `contents` takes the text of a file
    instead of its path.
    """

    verb: str
    effect: str
    tool: tuple[str, ...] = ()
    about: str = ""
    joined: str = ""
    inside: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    contents: str = ""


_DRAFT = (
    "body",
    "section",
    "category",
    "tag",
    "file",
    "source",
    "confidence",
    "importance",
    "valid_through",
    "supersedes",
    "set",
    "said_by_user",
    "keep_citation",
    "commit",
    "dry_run",
    "global",
)
_MARK = ("id", "commit", "dry_run", "global")

CHOICES: tuple[Choice, ...] = (
    Choice(
        "search",
        READ,
        ("query", "limit", "explain", "at", "as_of", "fleet", "global"),
        about="Find memories that answer a question, best first: decisions, conventions, warnings, "
        "failures. Use it before choosing or undoing something. Plain words work best. Filters "
        "narrow: `type:decision file:src/api/** since:30d`; `is:superseded` also finds what was "
        "replaced.",
        joined="query",
        required=("query",),
    ),
    Choice(
        "show",
        READ,
        ("id", "at", "as_of", "global"),
        about="Show one memory in full: text, reason, sources, conflicts, what replaced it, "
        "whether its code has changed.",
    ),
    Choice(
        "list",
        READ,
        ("filters", "limit", "sort", "at", "as_of", "global"),
        about="List memories by filter, newest first: `type:decision tag:auth file:src/ "
        "since:30d`. Use `search` for a question.",
        joined="filters",
    ),
    Choice(
        "inject",
        READ,
        ("prompt", "files", "for_", "budget", "primer"),
        about="Get what you must know before a task: always-on conventions, what governs `files`, "
        "what answers `prompt`. Returns nothing if nothing is relevant. Set `primer` once, at the "
        "start of a session.",
        inside=("files",),
        withheld=("into", "dry_run"),
    ),
    Choice("why", READ, ("id", "at")),
    Choice("log", READ, ("id", "at", "injected", "limit")),
    Choice("blame", READ, ("id", "at")),
    Choice("diff", READ, ("range",)),
    Choice("conflicts", READ, ("ids", "at", "since", "all")),
    Choice(
        "check",
        READ,
        ("path", "staged", "range", "history"),
        inside=("path",),
        withheld=("from_",),
    ),
    Choice("status", READ, ("at", "as_of")),
    Choice("stats", READ),
    Choice("drift", READ),
    Choice("verify", READ, withheld=("online", "run", "yes", "seconds")),
    Choice("review", READ, withheld=("from_",)),
    Choice("doctor", READ, withheld=("fix", "probe", "yes")),
    Choice("export", READ, joined="filters"),
    Choice("fleet status", READ),
    Choice("fleet similar", READ, withheld=("seconds",)),
    Choice("session list", READ),
    Choice("session show", READ),
    Choice("session diff", READ),
    Choice(
        "remember",
        ADD,
        (
            "text",
            "category",
            "tag",
            "file",
            "said_by_user",
            "keep_citation",
            "commit",
            "dry_run",
            "global",
        ),
        about="Keep a rule, preference or fact that the user stated, in their words. Only the "
        "user's statements; for a choice with reasons use `new`. Pass `file` if it is about code "
        "and `category` (warning, preference, pattern, discovery).",
        joined="text",
        inside=("file",),
        required=("text",),
    ),
    Choice(
        "new",
        ADD,
        ("type", "title", *_DRAFT),
        about="Record a choice and its reason (`decision`), a failure that took long to understand "
        "(`episodic`), or the plan and the open questions (`state`). One claim in each.",
        inside=("file",),
        withheld=("id",),
    ),
    Choice(
        "supersede",
        ADD,
        (
            "old",
            "title",
            "body",
            "section",
            "category",
            "tag",
            "file",
            "source",
            "supersedes",
            "said_by_user",
            "keep_citation",
            "commit",
            "dry_run",
            "global",
        ),
        about="Correct a memory: write a new one that replaces it and says why. The old one stays "
        "readable. Tags, files and category carry over unless given.",
        inside=("file",),
        withheld=("id",),
    ),
    Choice(
        "resolve",
        ADD,
        ("ids", "keep", "merge", "body", "reason", "commit", "dry_run"),
        required=("ids", "reason"),
    ),
    Choice("confirm", ADD, required=("id",)),
    Choice("pin", CHANGE, _MARK, required=("id",)),
    Choice("unpin", CHANGE, _MARK, required=("id",)),
    Choice("restore", CHANGE, _MARK, required=("id",)),
    Choice("undo", REVERT, ("id", "reason", "commit", "dry_run", "global")),
    Choice(
        "forget",
        REMOVE,
        ("id", "reason", "commit", "dry_run", "global"),
        about="Delete memories, with a reason. They are no longer found or shown; `restore` brings "
        "them back. A filter must match one memory only.",
        required=("id", "reason"),
    ),
    Choice("session start", ADD),
    Choice("session add", ADD, joined="text", inside=("file",), required=("text",)),
    Choice("session checkpoint", ADD, joined="text"),
    Choice("session end", ADD),
    Choice("session fork", ADD),
    Choice("session prune", REMOVE),
    Choice("session delete", REMOVE),
    Choice("capture", ADD, contents="transcript"),
    Choice("promote", ADD),
    Choice("curate", CHANGE),
    Choice("digest", ADD),
    Choice("maintain", CHANGE),
    Choice("deprecate", CHANGE, required=("id",)),
    Choice("archive", CHANGE, required=("id",)),
    Choice("tag", CHANGE, required=("id",)),
    Choice("auto", CHANGE),
)
"""Every procedure, read-only ones first."""
WITHHELD = ("edit", "format")
"""Options for users at a terminal only."""

SETTABLE = (
    "related_to",
    "resolves",
    "derived_from",
    "parent",
    "blocked_by",
    "valid_from",
    "aliases",
    "trigger_phrases",
    "question_types",
    "domain",
    "feature",
    "temporal_class",
    "action_required",
    "awaiting",
    "task_id",
    "iteration",
    "error_signature",
    "environment",
    "agent",
    "session",
)
"""Keys that `set` may set. The others affect how far a memory counts: its status, its accepted
conflicts, its privacy labels."""

GLOBAL = "global"
_GLOBAL = Parameter(name=GLOBAL, kind=bool, default=False, help="use the global memories")
"""`--global` on the command line, which is not an option of a verb."""

DIRECTORY = "directory"
_DIRECTORY = Parameter(name=DIRECTORY, default="", help="the worktree")
"""The worktree of an agent, if the server was started elsewhere. Not a parameter of a verb."""

MAX_ITEMS = 1_000
FLAG = re.compile(r"--[a-z][a-z-]*")
_STDIN = re.compile(r",? or - to read it from stdin")
_COMMAND_NOTE = re.compile(r" \((?:see )?memtool [^)]*\)")
"""Matches the command that a help text refers to."""
_SET_HELP = f"KEY=VALUE with a key of {', '.join(SETTABLE)}"


class Procedure(Value):
    """A verb with the interface for programs."""

    name: str
    title: str
    description: str
    effect: str
    face: Interface
    choice: Choice
    signature: Signature
    input_schema: dict[str, Any]

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return self.signature.parameters


def build_procedures(surface: str, verbs: tuple[str, ...] = ()) -> dict[str, Procedure]:
    """Build the procedures of an interface, by name: `session-add` for the verb `session add`.

    With `verbs`, build only these.
    """
    # Each verb is a module to load.
    chosen = [
        choice
        for choice in CHOICES
        if (choice.tool or surface == HTTP) and (not verbs or choice.verb in verbs)
    ]
    made = [_build_procedure(choice, surface) for choice in chosen]
    return {procedure.name: procedure for procedure in made}


def _build_procedure(choice: Choice, surface: str) -> Procedure:
    verb = BY_NAME[choice.verb]
    face = read_interface(verb)
    by_name = {parameter.name: parameter for parameter in face.parameters}
    names = choice.tool
    if surface == HTTP:
        names = tuple(name for name in by_name if name not in (*WITHHELD, *choice.withheld))
    by_name[GLOBAL] = _GLOBAL
    offered = [by_name[name] for name in names]
    if surface == AGENT:
        offered.append(_DIRECTORY)
    parameters = {
        parameter.name.rstrip("_"): _offer_parameter(face, choice, names, parameter)
        for parameter in offered
    }
    old_names = {
        old_name: current
        for old_name, current in OLD_OPTIONS.get(verb.name, {}).items()
        if current in parameters or not current
    }
    name = verb.name.replace(" ", "-")
    about = choice.about if surface == AGENT else ""
    return Procedure(
        name=name,
        title=verb.summary,
        description=about or _format_description(face, choice, names),
        effect=choice.effect,
        face=face,
        choice=choice,
        signature=Signature(title=name, parameters=parameters, old_names=old_names),
        input_schema=build_object_schema(parameters, is_bounded=surface == HTTP),
    )


def _offer_parameter(
    face: Interface, choice: Choice, names: tuple[str, ...], parameter: Parameter
) -> Parameter:
    """Adapt a parameter of a verb for programs."""
    is_required = parameter.is_required or parameter.name in choice.required
    is_contents = parameter.name == choice.contents
    return parameter.replace(
        is_required=is_required,
        is_many=parameter.is_many and parameter.name != choice.joined,
        help=_format_help(face, choice, names, parameter),
        max_chars=MAX_LONG_CHARS if is_contents else parameter.max_chars,
        max_items=MAX_ITEMS,
        takes_blank=not is_required,
        takes_stdin=False,
        keys=SETTABLE if parameter.name == "set" else (),
    )


def _format_help(
    face: Interface, choice: Choice, names: tuple[str, ...], parameter: Parameter
) -> str:
    if parameter.name == "set":
        return _SET_HELP
    text = _COMMAND_NOTE.sub("", _STDIN.sub("", parameter.help))
    clauses = text.replace("; may be repeated", "").split("; ")
    return _join_parts(face, choice, names, clauses, "; ")


def _format_description(face: Interface, choice: Choice, names: tuple[str, ...]) -> str:
    parts = [face.summary]
    for block in parse_blocks(face.description):
        if isinstance(block, str):
            parts.append(block)
            continue
        rows = [f"- {term}: {text}" for term, text in block.rows]
        visible = _join_parts(face, choice, names, rows, "\n")
        parts += [f"{block.title}:\n{visible}" if block.title else visible] if visible else []
    return _join_parts(face, choice, names, parts, "\n\n")


def _join_parts(
    face: Interface, choice: Choice, names: tuple[str, ...], parts: list[str], between: str
) -> str:
    """Join the parts that apply to programs; name their options as arguments.

    Parts do not apply that mention a hidden option, or begin "without" a required one.
    """
    never = tuple(f"without --{name} " for name in choice.required)
    options = {option.flag: option for option in face.options}
    hidden = {flag for flag, option in options.items() if option.name not in names}
    hidden |= set() if GLOBAL in names else {f"--{GLOBAL}"}

    def name_argument(flag: re.Match[str]) -> str:
        return f"`{options[flag[0]].name.rstrip('_')}`" if flag[0] in options else flag[0]

    visible = [
        part
        for part in parts
        if hidden.isdisjoint(FLAG.findall(part)) and not part.lower().startswith(never)
    ]
    return FLAG.sub(name_argument, between.join(visible))
