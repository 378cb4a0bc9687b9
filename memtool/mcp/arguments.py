"""Arguments: the JSON of a call to the parameters of a verb, each in its type.

A call is refused with one sentence before the verb sees anything of it.
"""

from __future__ import annotations

import os

from memtool.cli.signature import Parameter
from memtool.errors import MemtoolError
from memtool.mcp.tools import MOST_ITEMS, SETTABLE, Tool, is_required, most_chars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
LONGEST_WORD = 40
_MANY = {str: "texts", int: "whole numbers", float: "numbers"}
FARTHEST = 1 << 53
"""Beyond it JSON readers no longer agree on whole numbers."""


def read(tool: Tool, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what the verb takes by place and what it takes by name.

    Raises:
        MemtoolError: something is missing, unknown, of another type, too long, or not allowed.
    """
    for name in given:
        if name not in tool.parameters:
            raise _unknown(tool, name)
    places: list[Any] = []
    names: dict[str, Any] = {}
    for name, parameter in tool.parameters.items():
        found = given.get(name)
        is_absent = found is None or (isinstance(found, str) and not found.strip())
        if is_required(tool.choice, parameter) and (is_absent or found == []):
            raise MemtoolError(f"{name} is missing", hint=f"{name}: {_described(tool, name)}")
        value = parameter.default if found is None else _value(tool, name, parameter, found)
        if not parameter.is_positional:
            names[parameter.name] = value
        elif parameter.is_many:
            places += value
        else:
            places.append(value)
    return places, names


def paths(tool: Tool, given: Mapping[str, Any]) -> list[str]:
    """Return the arguments of a call that name files of the repository."""
    wanted = [name for name in tool.choice.inside if name in tool.parameters]
    return [path for name in wanted for path in given.get(name) or ()]


def refuse_outside(top: str, cwd: str, paths: list[str]) -> None:
    """Raise MemtoolError where a path leads out of the repository, by itself or through a link."""
    root = os.path.realpath(top)
    for path in paths:
        place = os.path.realpath(os.path.join(cwd, path))
        if path.startswith("~") or (place != root and not place.startswith(root + os.sep)):
            raise MemtoolError(
                f"{path} is not in the repository",
                hint="name files by their path from the top of the repository",
                code="outside",
            )


def _value(tool: Tool, name: str, parameter: Parameter, found: Any) -> Any:
    if parameter.name == tool.choice.joined:
        return [_one(tool, name, parameter, found)]
    if not parameter.is_many:
        return _one(tool, name, parameter, found)
    if not isinstance(found, list):
        raise MemtoolError(f"{name} takes a list of {_MANY[parameter.kind]}, not {_kind(found)}")
    if len(found) > MOST_ITEMS:
        raise MemtoolError(f"{name} takes {MOST_ITEMS:,} items at most, not {len(found):,}")
    return tuple(_one(tool, name, parameter, item) for item in found)


def _one(tool: Tool, name: str, parameter: Parameter, found: Any) -> Any:
    kind = parameter.kind
    if kind is str and isinstance(found, str):
        return _text(tool, name, parameter, found)
    if kind is bool and isinstance(found, bool):
        return found
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    if kind is float and is_number and abs(found) <= FARTHEST:
        return float(found)
    if kind is int and is_number and abs(found) <= FARTHEST and found == int(found):
        return int(found)
    raise MemtoolError(f"{name} takes {_NAMES[kind]}, not {_kind(found)}")


def _text(tool: Tool, name: str, parameter: Parameter, text: str) -> str:
    if parameter.choices:
        if text in parameter.choices:
            return text
        raise MemtoolError(
            f"{name} is one of {', '.join(parameter.choices)}, not {_shown(text)}",
            hint=f"{name}: {_described(tool, name)}",
        )
    most = most_chars(parameter)
    if len(text) > most:
        raise MemtoolError(
            f"{name} has {len(text):,} characters, {most:,} are allowed", code="too-large"
        )
    if text == "-":
        raise MemtoolError(f"{name} is -, and there is nothing to read", hint="give the text")
    if "\0" in text or not _is_unicode(text):
        raise MemtoolError(f"{name} is not Unicode text", code="not-utf8")
    if name == "set" and text.partition("=")[0] not in SETTABLE:
        raise MemtoolError(
            f"{name} takes no {_shown(text.partition('=')[0])} here",
            hint=f"KEY=VALUE with one of {', '.join(SETTABLE)}",
        )
    return text


def _is_unicode(text: str) -> bool:
    """Tell whether the text has no halves of characters, which JSON can spell."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _unknown(tool: Tool, name: str) -> MemtoolError:
    import difflib

    near = difflib.get_close_matches(name, list(tool.parameters), n=1)
    hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(tool.parameters)}"
    return MemtoolError(f"{tool.name} has no argument {_shown(name)}", hint=hint)


def _described(tool: Tool, name: str) -> str:
    described: str = tool.input_schema["properties"][name]["description"]
    return described


def _kind(found: Any) -> str:
    """Return what a wrong value is. It is not shown: nobody knows what stands in it."""
    if found is None:
        return "null"
    return {list: "a list", dict: "an object", float: "such a number"}.get(
        type(found), _NAMES.get(type(found), "that")
    )


def _shown(word: str) -> str:
    """Return a wrong word so that it can be told, cut where it is long."""
    return repr(word) if len(word) <= LONGEST_WORD else repr(word[:LONGEST_WORD]) + "…"
