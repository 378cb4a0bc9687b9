"""Signatures as interfaces: reads a verb's function and gives each parameter its shape and help.

Positional parameters are positional arguments, keyword-only ones are options. The docstring is
Google style: a first line, paragraphs, `Example:` and `Args:`.
"""

from __future__ import annotations

import inspect
import textwrap
import types
import typing
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Literal

from memtool.commands import Verb
from memtool.value import Value


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


class Interface(Value):
    """What a surface needs to know of a verb: its function, its renderer, parameters and texts."""

    name: str
    run: Callable[..., Any]
    render: Callable[[Any], str]
    parameters: tuple[Parameter, ...]
    summary: str
    description: str
    example: str


@cache
def interface(verb: Verb) -> Interface:
    """Read the interface of a verb from its module."""
    name = verb.module or verb.name
    module = import_module(f"memtool.commands.{name}")
    run = getattr(module, name)
    summary, description, sections = _docstring(run)
    helps = _arguments(sections.get("Args", ""))
    hints = typing.get_type_hints(run)
    parameters = [
        _parameter(parameter, hints[parameter.name], helps)
        for parameter in list(inspect.signature(run).parameters.values())[1:]
    ]
    return Interface(
        name=verb.name,
        run=run,
        render=module.render,
        parameters=tuple(parameters),
        summary=summary,
        description=description,
        example=sections.get("Example", ""),
    )


def _parameter(parameter: inspect.Parameter, hint: Any, helps: dict[str, str]) -> Parameter:
    is_many = parameter.kind is parameter.VAR_POSITIONAL
    if typing.get_origin(hint) is tuple:
        is_many, hint = True, typing.get_args(hint)[0]
    if isinstance(hint, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    choices: tuple[str, ...] = ()
    if typing.get_origin(hint) is Literal:
        choices, hint = tuple(c for c in typing.get_args(hint) if c), str
    is_required = parameter.default is parameter.empty and not is_many
    return Parameter(
        name=parameter.name,
        kind=hint,
        choices=choices,
        default=() if is_many else (None if is_required else parameter.default),
        is_positional=parameter.kind is not parameter.KEYWORD_ONLY,
        is_required=is_required,
        is_many=is_many,
        help=helps[parameter.name],
    )


def _docstring(run: Callable[..., Any]) -> tuple[str, str, dict[str, str]]:
    """Split a docstring into its first line, its paragraphs, and its named sections."""
    lines = inspect.getdoc(run) or ""
    summary, _blank, rest = lines.partition("\n")
    paragraphs: list[str] = []
    sections: dict[str, list[str]] = {}
    current = paragraphs
    for line in rest.splitlines():
        if line in ("Args:", "Example:", "Raises:", "Returns:"):
            current = sections.setdefault(line[:-1], [])
        else:
            current.append(line)
    texts = {name: textwrap.dedent("\n".join(rows)).strip() for name, rows in sections.items()}
    return summary, "\n".join(paragraphs).strip(), texts


def _arguments(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(" "):
            found[name] += " " + line.strip()
        else:
            name, _colon, help_ = line.partition(": ")
            found[name] = help_
    return found
