"""The signature of a verb: its parameters and texts, read from its function.

Positional parameters are positional arguments, keyword-only ones are options. The docstring is
Google style: a first line, paragraphs and tables (see `docstring`), `Example:` and `Args:`.

Annotations are parsed as text: importing `inspect` and `typing` would take twice as long as a bare
interpreter start, at every prompt of an agent. A new kind of parameter needs a row in `KINDS`.
Choices are written `Literal["low", "high"]`, or `Annotated[str, TABLE]` for the names of a table.

Options that several verbs share are a group: `**options: Unpack[GROUP]`, where the docstring of the
`TypedDict` has `Args:`. A verb can describe an option of the group differently in its own `Args:`.
"""

from __future__ import annotations

from memtool.commands import Verb
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from memtool.commands._layout import Layout

KINDS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
METAVARS = {
    "as_of": "TIME",
    "at": "REV",
    "body": "TEXT",
    "call": "COMMAND",
    "codeowners": "OWNER",
    "confidence": "LEVEL",
    "dismiss": "FINDING",
    "directory": "DIR",
    "file": "PATH",
    "files": "PATH",
    "floor": "MEASURE=X",
    "for_": "NAME",
    "from_": "FILE",
    "into": "PATH",
    "key": "FILE",
    "keep": "ID|newer|both",
    "map": "FIELD=JSON.PATH",
    "only": "NAME",
    "default_status": "STATUS",
    "merge": "TITLE",
    "older_than": "AGE",
    "prompt": "TEXT",
    "reason": "TEXT",
    "reopen": "FINDING",
    "run": "FILE",
    "said_by_user": "TEXT",
    "secret": "FINGERPRINT",
    "section": "NAME=TEXT",
    "set": "KEY=VALUE",
    "sort": "ORDER",
    "supersedes": "ID",
    "valid_through": "DATE",
    "why_not": "ID",
}
"""The placeholder of a value, if the name of the option is not clear enough."""
MAX_CHOICES_CHARS = 13
"""Length of `text|jsonl` and the like above which the help text of an option lists its choices."""
MAX_NUMBER = 1 << 53
"""JSON parsers do not agree on larger whole numbers."""
COUNTS = {"limit": "all", "offset": "the first", "depth": "all steps"}
"""Parameters that must not be negative, and the meaning of 0."""
LONG_TEXTS = frozenset({"body", "filters", "prompt", "query", "section", "summary", "text"})
"""Parameters for long texts."""
MAX_LONG_CHARS, MAX_CHARS = 1 << 20, 10_000
_HAS_MANY_WORDS = 0x04  # CO_VARARGS of a code object: `*words`


class Parameter(Value):
    """One parameter, and the limits of its value.

    `kind` is str, int, float or bool; `choices` is empty if any text is allowed.
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
    """The meaning of 0 if the value must not be negative; else empty."""
    takes_blank: bool = True
    """Whether a text of white space only is allowed."""
    takes_stdin: bool = True
    """Whether `-` means standard input."""
    max_items: int = 0
    """The limit of a parameter that takes many; 0 for none."""
    keys: tuple[str, ...] = ()
    """The keys allowed in a value KEY=VALUE; empty for any."""

    @property
    def flag(self) -> str:
        return "--" + self.name.rstrip("_").replace("_", "-")

    @property
    def metavar(self) -> str:
        """The placeholder of the value in a usage line."""
        name = self.name.rstrip("_").upper()
        if self.is_positional:
            return name
        choices = "|".join(self.choices)
        if 0 < len(choices) <= MAX_CHOICES_CHARS:
            return choices
        return {int: "N", float: "X"}.get(self.kind) or METAVARS.get(self.name, name)


class Signature(Value):
    """The parameters of a call, as one interface spells them.

    `parameters` are by the interface's name of each. `title`, `noun` and `help` are for errors: the
    name of the call, the word for a parameter, and the command that explains the call.
    """

    title: str
    parameters: Mapping[str, Parameter]
    noun: str = "argument"
    help: str = ""
    usage: str = ""
    """The minimal call; the hint if a parameter is missing."""
    old_names: Mapping[str, str] = {}
    """Names that parameters had in the version before, with those of today; see `OLD_OPTIONS`."""


class Interface(Value):
    """A verb for interfaces: its function, its renderer, its parameters and texts."""

    name: str
    run: Callable[..., Any]
    render: Callable[[Any, Layout], str | Iterator[str]]
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


def read_interface(verb: Verb, *, with_texts: bool = True) -> Interface:
    """Read the interface of a verb from its module; a call does not need the texts."""
    name = verb.module or verb.name
    module = __import__(f"memtool.commands.{name}", fromlist=[name])
    run = getattr(module, verb.function)
    about, shared = _group(run)
    texts: tuple[str, str, dict[str, list[str]]] = "", "", {}
    helps: dict[str, str] = {}
    if with_texts:
        from memtool.calls.docstring import fill_in_names, parse_arguments, parse_docstring

        texts = parse_docstring(fill_in_names(run.__doc__ or "", run.__globals__))
        for sections in (parse_docstring(about)[2], texts[2]):
            helps |= parse_arguments(sections.get("Args", []))
    summary, description, sections = texts
    return Interface(
        name=verb.name,
        run=run,
        render=module.render,
        parameters=_read_parameters(run, shared, helps),
        summary=summary,
        description=description,
        example="\n".join(sections.get("Example", [])),
    )


def _read_parameters(
    run: Callable[..., Any], shared: dict[str, str], helps: dict[str, str]
) -> tuple[Parameter, ...]:
    """Return the parameters in the order of the signature, without the context.

    `shared` are the annotations of a group; their defaults are blank, False or None.
    """
    code = run.__code__
    named = code.co_argcount + code.co_kwonlyargcount
    positional = code.co_varnames[1 : code.co_argcount]
    options = code.co_varnames[code.co_argcount : named]
    many = code.co_varnames[named : named + 1] if code.co_flags & _HAS_MANY_WORDS else ()
    default_values = run.__defaults__ or ()
    defaults = dict(
        zip(positional[len(positional) - len(default_values) :], default_values, strict=True)
    )
    defaults |= run.__kwdefaults__ or {}
    for name, annotation in shared.items():
        defaults[name] = None if annotation.endswith(" | None") else KINDS.get(annotation, str)()
    annotations = run.__annotations__ | shared
    parameters = []
    for name in (*positional, *many, *options, *shared):
        kind, choices, is_tuple = _shape(annotations[name], run.__globals__)
        is_many = is_tuple or name in many
        parameters.append(
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
    return tuple(parameters)


def _group(run: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the docstring and the annotations of the option group of a verb; empty for none."""
    for annotation in run.__annotations__.values():
        if annotation.startswith("Unpack["):
            group = run.__globals__[annotation[7:-1]]
            hints = group.__annotations__.items()
            return group.__doc__, {name: hint.__forward_arg__ for name, hint in hints}
    return "", {}


def _shape(annotation: str, tables: dict[str, Any]) -> tuple[type, tuple[str, ...], bool]:
    """Parse an annotation; return kind, choices, and whether it is a tuple.

    An empty choice means that the option was not given, so it is left out.
    """
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
