"""The table of procedures: the verbs as programs call them, with arguments in JSON.

Name, parameters and description of a procedure come from the verb's signature and docstring; the
table only chooses. No procedure opens an editor, reads standard input, changes settings or skips a
check, and a row names the parameters that must be files of the repository.

Agents are offered some of them as tools, and of these only the arguments that agents use: a host
sends the descriptions of all tools with every request to the model. Programs that speak HTTP get
every procedure with all that it takes. What decides who is trusted, is run by git or reads files
of the user's choice is no procedure: settings, hosts, hooks, imports, purging.
"""

from __future__ import annotations

import re

from memtool.calls.json_schema import object_schema
from memtool.calls.signature import (
    MAX_LONG_CHARS,
    Interface,
    Parameter,
    Signature,
    interface,
)
from memtool.commands import BY_NAME
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

AGENT, HTTP = "agent", "http"
"""The surfaces that call procedures."""
READ, ADD, CHANGE, REMOVE = "read", "add", "change", "remove"

EFFECTS: dict[str, dict[str, bool]] = {
    READ: {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True},
    ADD: {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False},
    CHANGE: {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True},
    REMOVE: {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True},
}
"""What a host may show of a tool before it asks its user. None reaches beyond the repository, but
for what the user's own settings let it ask: their global memories, and their fleet."""


class Choice(Value):
    """A row of the table. `joined` parameters take one text where the verb takes many words.

    `tool` are the parameters that an agent is offered, none where it is no tool. `inside` name
    files, which must lie in the repository; `required` are those that the verb refuses to do
    without, though its signature has a default. `withheld` are not offered to anybody. `contents`
    names a parameter that takes the text of a file in place of its path.
    """

    verb: str
    effect: str
    tool: tuple[str, ...] = ()
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
        joined="query",
        required=("query",),
    ),
    Choice("show", READ, ("id", "at", "as_of", "global")),
    Choice("list", READ, ("filters", "limit", "sort", "at", "as_of", "global"), joined="filters"),
    Choice(
        "inject",
        READ,
        ("prompt", "files", "for_", "budget", "primer"),
        inside=("files",),
        withheld=("write", "dry_run"),
    ),
    Choice("why", READ, ("id", "at")),
    Choice("log", READ, ("id", "at", "injected", "limit")),
    Choice("blame", READ, ("id", "at")),
    Choice("diff", READ, ("range",)),
    Choice("conflicts", READ, ("ids", "at", "since", "all")),
    Choice("check", READ, ("path", "staged", "range", "history"), inside=("path",)),
    Choice("status", READ, ("at", "as_of")),
    Choice("stats", READ),
    Choice("drift", READ),
    Choice("verify", READ, withheld=("online", "run", "yes", "seconds")),
    Choice("review", READ),
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
        ("text", "category", "tag", "file", "said_by_user", "commit", "dry_run", "global"),
        joined="text",
        inside=("file",),
        required=("text",),
    ),
    Choice("new", ADD, ("type", "title", *_DRAFT), inside=("file",), withheld=("id",)),
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
            "commit",
            "dry_run",
            "global",
        ),
        inside=("file",),
        withheld=("id",),
    ),
    Choice(
        "resolve",
        ADD,
        ("ids", "keep", "merge", "body", "why", "commit", "dry_run"),
        required=("ids", "why"),
        withheld=("keep_both",),
    ),
    Choice("confirm", ADD),
    Choice("pin", CHANGE, _MARK),
    Choice("unpin", CHANGE, _MARK),
    Choice("restore", CHANGE, _MARK),
    Choice("undo", REMOVE, ("id", "why", "commit", "dry_run", "global")),
    Choice(
        "forget",
        REMOVE,
        ("wanted", "why", "commit", "dry_run", "global"),
        joined="wanted",
        required=("wanted", "why"),
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
    Choice("deprecate", CHANGE),
    Choice("archive", CHANGE),
    Choice("auto", CHANGE),
)
"""Every procedure, those that only read first."""
WITHHELD = ("edit", "format")
"""Options that are for people at a terminal."""

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
"""Keys that `set` may give. The others decide what a memory counts for: its status, the conflicts
that are passed over, the marks for handling."""

GLOBAL = "global"
_GLOBAL = Parameter(
    name=GLOBAL, kind=bool, default=False, help="work on the user's global memories"
)
"""What `--global` is on the command line: it belongs to no verb."""

DIRECTORY = "directory"
_DIRECTORY = Parameter(name=DIRECTORY, default="", help="the worktree")
"""Where an agent works that is not where the server was started. It belongs to no verb either."""

MAX_ITEMS = 1_000
_FLAG = re.compile(r"--[a-z][a-z-]*")
_STDIN = re.compile(r",? or - to read it from stdin")
_BARE_FLAG = re.compile(r"(?<![\w'\"=`-])--[a-z][a-z-]*")
_COMMAND = re.compile(r"\b(?:git|memtool) [a-z-](?:\"[^\"]*\"|[^,;\"])*")
"""A command for a shell, as far as it goes in a sentence."""
_CALL = re.compile(
    r"\bmemtool (?P<first>[a-z]+)(?: (?P<second>[a-z]+)(?![^\s,;]))?(?P<rest>(?: [^\s,;]+)*)"
)
_SET_HELP = f"KEY=VALUE with a key of {', '.join(SETTABLE)}"


class Procedure(Value):
    """A verb as a program calls it."""

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


def procedures(surface: str, verbs: tuple[str, ...] = ()) -> dict[str, Procedure]:
    """Return what a surface may call, by name: `session-add` for the verb `session add`.

    Where verbs are given, only these of them: each is a module to load.
    """
    chosen = [
        one for one in CHOICES if (one.tool or surface == HTTP) and (not verbs or one.verb in verbs)
    ]
    made = [_procedure(choice, surface) for choice in chosen]
    return {one.name: one for one in made}


def _procedure(choice: Choice, surface: str) -> Procedure:
    verb = BY_NAME[choice.verb]
    face = interface(verb)
    known = {parameter.name: parameter for parameter in face.parameters}
    names = choice.tool
    if surface == HTTP:
        names = tuple(name for name in known if name not in (*WITHHELD, *choice.withheld))
    known[GLOBAL] = _GLOBAL
    offered = [known[name] for name in names]
    if surface == AGENT:
        offered.append(_DIRECTORY)
    parameters = {one.name.rstrip("_"): _offered(face, choice, names, one) for one in offered}
    name = verb.name.replace(" ", "-")
    return Procedure(
        name=name,
        title=verb.summary,
        description=_description(face, names),
        effect=choice.effect,
        face=face,
        choice=choice,
        signature=Signature(title=name, parameters=parameters),
        input_schema=object_schema(parameters, is_bounded=surface == HTTP),
    )


def _offered(
    face: Interface, choice: Choice, names: tuple[str, ...], parameter: Parameter
) -> Parameter:
    """Return a parameter of a verb as programs give it."""
    is_required = parameter.is_required or parameter.name in choice.required
    is_contents = parameter.name == choice.contents
    return parameter.replace(
        is_required=is_required,
        is_many=parameter.is_many and parameter.name != choice.joined,
        help=_help(face, names, parameter),
        max_chars=MAX_LONG_CHARS if is_contents else parameter.max_chars,
        max_items=MAX_ITEMS,
        takes_blank=not is_required,
        takes_stdin=False,
        keys=SETTABLE if parameter.name == "set" else (),
    )


def _help(face: Interface, names: tuple[str, ...], parameter: Parameter) -> str:
    if parameter.name == "set":
        return _SET_HELP
    clauses = _STDIN.sub("", parameter.help).replace("; may be repeated", "").split("; ")
    return _joined(face, names, clauses, "; ")


def _description(face: Interface, names: tuple[str, ...]) -> str:
    paragraphs = [" ".join(part.split()) for part in face.description.split("\n\n") if part]
    return _joined(face, names, [face.summary, *paragraphs], "\n\n")


def _joined(face: Interface, names: tuple[str, ...], parts: list[str], between: str) -> str:
    """Join the parts that say nothing of options which are lacking, the others named as here."""
    options = {option.flag: option for option in face.options}
    hidden = {flag for flag, option in options.items() if option.name not in names}
    hidden |= set() if GLOBAL in names else {f"--{GLOBAL}"}

    def named(flag: re.Match[str]) -> str:
        return f"`{options[flag[0]].name.rstrip('_')}`" if flag[0] in options else flag[0]

    kept = [part for part in parts if hidden.isdisjoint(_FLAG.findall(part))]
    return _FLAG.sub(named, between.join(kept))


def worded(text: str, procedure: Procedure) -> str:
    """Return a message of a verb with its arguments named as a program gives them: `at`, not --at.

    A command for a shell stays as it is, and so does what somebody wrote and is quoted.
    """
    names = {option.flag: option.name.rstrip("_") for option in procedure.face.options}

    def named(flag: re.Match[str]) -> str:
        return f"`{names.get(flag[0], flag[0][2:].replace('-', '_'))}`"

    parts, end = [], 0
    for command in _COMMAND.finditer(text):
        parts += [_BARE_FLAG.sub(named, text[end : command.start()]), command[0]]
        end = command.end()
    return "".join([*parts, _BARE_FLAG.sub(named, text[end:])])


def addressed(text: str) -> str:
    """Return a hint with the routes of HTTP in place of the commands that they stand for.

    What works on the global memories of a user has no route beside those of a project.
    """
    served = {choice.verb for choice in CHOICES}

    def route(found: re.Match[str]) -> str:
        first, second, rest = found["first"], found["second"] or "", found["rest"]
        verb = f"{first} {second}" if f"{first} {second}" in served else first
        if verb not in served:
            return found[0]
        words = rest if verb != first or not second else f" {second}{rest}"
        named = _FLAG.sub(lambda flag: f"`{flag[0][2:].replace('-', '_')}`", words)
        return f"POST /api/{verb.replace(' ', '-')}{named}"

    return _CALL.sub(route, text)
