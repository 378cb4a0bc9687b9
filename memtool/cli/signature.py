"""Signatures as interfaces: reads a verb's function and gives each parameter its shape and help.

Positional parameters are positional arguments, keyword-only ones are options. The docstring is
Google style: a first line, paragraphs, `Example:` and `Args:`.

`inspect` and `typing` would cost twice a bare interpreter start, at every prompt of an agent. So
annotations are read as the text that they are; a verb that needs a new kind of parameter gets a
row in the table here.
"""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from memtool.commands import Verb

KINDS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
METAVARS = {
    "as_of": "TIME",
    "at": "REV",
    "body": "TEXT",
    "directory": "DIR",
    "file": "PATH",
    "files": "PATH",
    "floor": "MEASURE=X",
    "map": "FIELD=JSON.PATH",
    "prompt": "TEXT",
    "run": "FILE",
    "section": "NAME=TEXT",
    "set": "KEY=VALUE",
    "valid_through": "DATE",
    "why": "TEXT",
}
"""What stands for a value where the name of the option says too little."""
_HAS_MANY_WORDS = 0x04  # CO_VARARGS of a code object: `*words`
_SECTIONS = ("Args", "Example", "Raises", "Returns")


class Parameter(Value):
    """One parameter. `kind` is str, int, float or bool; `choices` is empty if any text will do."""

    name: str
    kind: type
    choices: tuple[str, ...]
    default: Any
    is_positional: bool
    is_required: bool
    is_many: bool
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.rstrip("_").replace("_", "-")

    @property
    def metavar(self) -> str:
        """What stands for the value in a usage line."""
        name = self.name.rstrip("_").upper()
        if self.is_positional:
            return name
        if self.choices:
            return "|".join(self.choices)
        return {int: "N", float: "X"}.get(self.kind) or METAVARS.get(self.name, name)


class Interface(Value):
    """What a surface needs to know of a verb: its function, its renderer, parameters and texts."""

    name: str
    run: Callable[..., Any]
    render: Callable[[Any], str]
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
    run = getattr(module, name)
    summary, description, sections = _docstring((run.__doc__ or "") if with_texts else "")
    return Interface(
        name=verb.name,
        run=run,
        render=module.render,
        parameters=_parameters(run, _arguments(sections.get("Args", []))),
        summary=summary,
        description=description,
        example="\n".join(sections.get("Example", [])),
    )


def _parameters(run: Callable[..., Any], helps: dict[str, str]) -> tuple[Parameter, ...]:
    """Return the parameters in the order of the signature, without the workspace."""
    code = run.__code__
    named = code.co_argcount + code.co_kwonlyargcount
    positional = code.co_varnames[1 : code.co_argcount]
    options = code.co_varnames[code.co_argcount : named]
    many = code.co_varnames[named : named + 1] if code.co_flags & _HAS_MANY_WORDS else ()
    given = run.__defaults__ or ()
    defaults = dict(zip(positional[len(positional) - len(given) :], given, strict=True))
    defaults |= run.__kwdefaults__ or {}
    return tuple(
        _parameter(
            name,
            run.__annotations__[name],
            defaults,
            is_positional=name not in options,
            is_many=name in many,
            help=helps.get(name, ""),
        )
        for name in (*positional, *many, *options)
    )


def _parameter(
    name: str,
    annotation: str,
    defaults: dict[str, Any],
    *,
    is_positional: bool,
    is_many: bool,
    help: str,
) -> Parameter:
    kind, choices, is_tuple = _shape(annotation)
    is_many = is_many or is_tuple
    return Parameter(
        name=name,
        kind=kind,
        choices=choices,
        default=() if is_many else defaults.get(name),
        is_positional=is_positional,
        is_required=name not in defaults and not is_many,
        is_many=is_many,
        help=help,
    )


def _shape(annotation: str) -> tuple[type, tuple[str, ...], bool]:
    """Return kind, choices, and whether it is a tuple. An empty choice means: not given."""
    inner = annotation.removesuffix(" | None")
    is_tuple = inner.startswith("tuple[") and inner.endswith(", ...]")
    if is_tuple:
        inner = inner[6:-6]
    if inner.startswith("Literal["):
        choices = [choice.strip("'\"") for choice in inner[8:-1].split(", ")]
        return str, tuple(filter(None, choices)), is_tuple
    if inner not in KINDS:
        raise TypeError(f"no surface knows how to ask for a {annotation}")
    return KINDS[inner], (), is_tuple


def _docstring(text: str) -> tuple[str, str, dict[str, list[str]]]:
    """Split a docstring into its first line, its paragraphs, and the lines of its sections."""
    summary, _newline, rest = text.strip().partition("\n")
    paragraphs: list[str] = []
    sections: dict[str, list[str]] = {}
    current = paragraphs
    for line in _dedented(rest.split("\n")):
        if line.endswith(":") and line[:-1] in _SECTIONS:
            current = sections.setdefault(line[:-1], [])
        else:
            current.append(line)
    blocks = {name: _dedented(_trimmed(rows)) for name, rows in sections.items()}
    return summary, "\n".join(_trimmed(paragraphs)), blocks


def _trimmed(rows: list[str]) -> list[str]:
    """Drop the empty lines at both ends."""
    full = [number for number, row in enumerate(rows) if row]
    return rows[full[0] : full[-1] + 1] if full else []


def _dedented(rows: list[str]) -> list[str]:
    margin = min((len(row) - len(row.lstrip()) for row in rows if row.strip()), default=0)
    return [row[margin:].rstrip() for row in rows]


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
