"""The signature of a verb: its parameters and texts, read from its function.

Positional parameters are positional arguments, keyword-only ones are options. The docstring is
Google style: a first line, paragraphs, `Example:` and `Args:`. `inspect` and `typing` would cost
twice a bare interpreter start, at every prompt of an agent, so annotations are read as text; a verb
that needs a new kind of parameter gets a row in `KINDS`. Choices are `Literal["low", "high"]`, or
`Annotated[str, TABLE]` for the names of a table.

Options that verbs have in common are a group: `**options: Unpack[GROUP]`, where the `TypedDict` has
`Args:` in its docstring. A verb that says something else of an option of it has it in its own.
"""

from __future__ import annotations

from memtool.commands import Verb
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

KINDS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
METAVARS = {
    "as_of": "TIME",
    "at": "REV",
    "body": "TEXT",
    "dismiss": "FINDING",
    "directory": "DIR",
    "file": "PATH",
    "files": "PATH",
    "floor": "MEASURE=X",
    "map": "FIELD=JSON.PATH",
    "older_than": "AGE",
    "prompt": "TEXT",
    "reopen": "FINDING",
    "run": "FILE",
    "section": "NAME=TEXT",
    "set": "KEY=VALUE",
    "valid_through": "DATE",
    "why": "TEXT",
}
"""The placeholder of a value where the name of the option says too little."""
MAX_NUMBER = 1 << 53
"""Beyond it JSON readers no longer agree on whole numbers."""
COUNTS = {"limit": "all", "offset": "the first", "depth": "all steps"}
"""Parameters that take no number below 0, and what 0 means."""
LONG_TEXTS = frozenset({"body", "filters", "prompt", "query", "section", "summary", "text"})
"""Parameters for what is written or asked at length."""
MAX_LONG_CHARS, MAX_CHARS = 1 << 20, 10_000
_HAS_MANY_WORDS = 0x04  # CO_VARARGS of a code object: `*words`
_SECTIONS = ("Args", "Example", "Raises", "Returns")


class Parameter(Value):
    """One parameter, and the bounds of its value.

    `kind` is str, int, float or bool; `choices` is empty if any text will do.
    """

    name: str
    kind: type = str
    choices: tuple[str, ...] = ()
    default: Any = None
    is_positional: bool = False
    is_required: bool = False
    is_many: bool = False
    help: str = ""
    max_chars: int = MAX_CHARS
    zero_means: str = ""
    """What 0 means if it is the least value; empty if there is no least value."""
    takes_blank: bool = True
    """Whether a text of nothing but space counts as a value."""
    takes_stdin: bool = True
    """Whether `-` stands for standard input."""
    max_items: int = 0
    """Of a parameter that takes many, 0 if any number will do."""
    keys: tuple[str, ...] = ()
    """The keys that a value KEY=VALUE may have, empty for any."""

    @property
    def flag(self) -> str:
        return "--" + self.name.rstrip("_").replace("_", "-")

    @property
    def metavar(self) -> str:
        """The placeholder of the value in a usage line."""
        name = self.name.rstrip("_").upper()
        if self.is_positional:
            return name
        if self.choices:
            return "|".join(self.choices)
        return {int: "N", float: "X"}.get(self.kind) or METAVARS.get(self.name, name)


class Signature(Value):
    """What a call takes, as one interface spells it.

    `parameters` maps the name that the interface gives to each. `title`, `noun` and `help` are for
    errors: who takes it, what an unknown name is called, and the command that explains the call.
    """

    title: str
    parameters: Mapping[str, Parameter]
    noun: str = "argument"
    help: str = ""
    usage: str = ""
    """What a call needs at least; the hint if something is missing."""


class Interface(Value):
    """A verb as interfaces see it: its function, its renderer, its parameters and texts."""

    name: str
    run: Callable[..., Any]
    render: Callable[[Any], str | Iterator[str]]
    parameters: tuple[Parameter, ...]
    summary: str
    description: str
    example: str

    @property
    def positional(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.is_positional)

    @property
    def options(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if not parameter.is_positional)


def interface(verb: Verb, *, with_texts: bool = True) -> Interface:
    """Read the interface of a verb from its module; a call needs none of its texts."""
    name = verb.module or verb.name
    module = __import__(f"memtool.commands.{name}", fromlist=[name])
    run = getattr(module, verb.function)
    about, shared = _group(run)
    texts: tuple[str, str, dict[str, list[str]]] = "", "", {}
    helps: dict[str, str] = {}
    if with_texts:
        texts = parse_docstring(run.__doc__ or "")
        for sections in (parse_docstring(about)[2], texts[2]):
            helps |= _arguments(sections.get("Args", []))
    summary, description, sections = texts
    return Interface(
        name=verb.name,
        run=run,
        render=module.render,
        parameters=_parameters(run, shared, helps),
        summary=summary,
        description=description,
        example="\n".join(sections.get("Example", [])),
    )


def _parameters(
    run: Callable[..., Any], shared: dict[str, str], helps: dict[str, str]
) -> tuple[Parameter, ...]:
    """Return the parameters in the order of the signature, without the context.

    `shared` are the annotations of a group; what is not given of it is blank, False or None.
    """
    code = run.__code__
    named = code.co_argcount + code.co_kwonlyargcount
    positional = code.co_varnames[1 : code.co_argcount]
    options = code.co_varnames[code.co_argcount : named]
    many = code.co_varnames[named : named + 1] if code.co_flags & _HAS_MANY_WORDS else ()
    given = run.__defaults__ or ()
    defaults = dict(zip(positional[len(positional) - len(given) :], given, strict=True))
    defaults |= run.__kwdefaults__ or {}
    for name, annotation in shared.items():
        defaults[name] = None if annotation.endswith(" | None") else KINDS.get(annotation, str)()
    annotations = run.__annotations__ | shared
    found = []
    for name in (*positional, *many, *options, *shared):
        kind, choices, is_tuple = _shape(annotations[name], run.__globals__)
        is_many = is_tuple or name in many
        found.append(
            Parameter(
                name=name,
                kind=kind,
                choices=choices,
                default=() if is_many else defaults.get(name),
                is_positional=name in positional or name in many,
                is_required=name not in defaults and not is_many,
                is_many=is_many,
                help=helps.get(name, ""),
                max_chars=MAX_LONG_CHARS if name in LONG_TEXTS else MAX_CHARS,
                zero_means=COUNTS.get(name, ""),
            )
        )
    return tuple(found)


def _group(run: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the docstring of the group of options that a verb takes, and their annotations."""
    for annotation in run.__annotations__.values():
        if annotation.startswith("Unpack["):
            group = run.__globals__[annotation[7:-1]]
            hints = group.__annotations__.items()
            return group.__doc__, {name: hint.__forward_arg__ for name, hint in hints}
    return "", {}


def _shape(annotation: str, tables: dict[str, Any]) -> tuple[type, tuple[str, ...], bool]:
    """Return kind, choices, and whether it is a tuple. An empty choice means: not given."""
    inner = annotation.removesuffix(" | None")
    is_tuple = inner.startswith("tuple[") and inner.endswith(", ...]")
    if is_tuple:
        inner = inner[6:-6]
    if inner.startswith("Literal["):
        choices = [choice.strip("'\"") for choice in inner[8:-1].split(", ")]
        return str, tuple(filter(None, choices)), is_tuple
    if inner.startswith("Annotated[str, "):
        return str, tuple(tables[inner[15:-1]]), is_tuple
    if inner not in KINDS:
        raise TypeError(f"no interface knows how to ask for a {annotation}")
    return KINDS[inner], (), is_tuple


def parse_docstring(text: str) -> tuple[str, str, dict[str, list[str]]]:
    """Split a docstring into its first line, its paragraphs, and the lines of its sections."""
    from textwrap import dedent  # only pages of text and tools pay for it

    summary, _newline, rest = text.strip().partition("\n")
    paragraphs: list[str] = []
    sections: dict[str, list[str]] = {}
    current = paragraphs
    for line in dedent(rest).split("\n"):
        if line.endswith(":") and line[:-1] in _SECTIONS:
            current = sections.setdefault(line[:-1], [])
        else:
            current.append(line)
    blocks = {
        name: dedent("\n".join(rows)).strip("\n").split("\n") for name, rows in sections.items()
    }
    return summary, "\n".join(paragraphs).strip("\n"), blocks


def _arguments(rows: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for row in rows:
        if row.startswith(" "):
            found[name] += " " + row.strip()
        else:
            name, _colon, found_help = row.partition(": ")
            found[name] = found_help
    return found
