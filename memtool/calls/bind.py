"""Binding: the values that a caller gives, as the typed arguments of a verb.

Every interface reads its own syntax, names the parameters as it spells them, and calls `bind`. So
a value is checked in one place, and a wrong one is refused with the same sentence everywhere. A
verb trusts what it gets.
"""

from __future__ import annotations

from memtool.calls.signature import MAX_NUMBER
from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from memtool.calls.signature import Interface, Parameter, Signature

NOT_BLANK = r"[^\s\x1c-\x1f\x85\ufeff]"
"""A regular expression that finds a character of text, which is space to no reader of schemas."""
MAX_SHOWN_CHARS = 40
_KIND_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_MANY_NAMES = {str: "texts", int: "whole numbers", float: "numbers"}


class Call(Value):
    """What a command line asks for. `face` is the interface of the verb that was named."""

    face: Interface
    directory: str
    is_global: bool
    as_json: bool
    positional: tuple[Any, ...]
    options: dict[str, Any]


def bind(signature: Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every parameter, by its own name; defaults fill in what is not given.

    Args:
        signature: what the call takes.
        given: anything at all, by the name that the interface gives to a parameter. None is as
            good as not given.

    Raises:
        MemtoolError: a value is missing, unknown or does not fit.
    """
    for label in given:
        if label not in signature.parameters:
            raise unknown(signature, label)
    values = {}
    for label, parameter in signature.parameters.items():
        value = given.get(label)
        hint = signature.help or f"{label}: {parameter.help}"
        if parameter.is_required and (value is None or value == []):
            raise MemtoolError(f"{label} is missing", hint=signature.usage or hint)
        if not parameter.takes_blank and _is_blank(value):
            raise MemtoolError(f"{label} is empty", hint=hint)
        values[parameter.name] = fit(parameter, value, name=label, hint=hint)
    return values


def spread(face: Interface, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return bound values as what a verb takes by place, and by name: every option of it."""
    places: list[Any] = []
    for parameter in face.positional:
        value = values.get(parameter.name, parameter.default)
        places += value if isinstance(value, tuple) else [value]
    return places, {one.name: values.get(one.name, one.default) for one in face.options}


def fit(parameter: Parameter, value: Any, *, name: str, hint: str) -> Any:
    """Return a value as the verb takes it: a list as a tuple, a path as text, 2.0 as 2.

    Args:
        parameter: what the value is for.
        value: anything at all; None is the default of a parameter that has one.
        name: the parameter as the interface spells it.
        hint: the next step if no choice is near.

    Raises:
        MemtoolError: another type, no choice, out of range, too long, or not Unicode text.
    """
    if value is None and not parameter.is_required:
        return parameter.default
    if not parameter.is_many:
        return _fit_item(parameter, value, name, hint)
    if not isinstance(value, list | tuple | set | frozenset):
        raise MemtoolError(
            f"{name} takes a list of {_MANY_NAMES[parameter.kind]}, not {_kind_of(value)}",
            hint=hint,
        )
    if parameter.max_items and len(value) > parameter.max_items:
        raise MemtoolError(
            f"{name} takes {parameter.max_items:,} items at most, not {len(value):,}"
        )
    items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
    return tuple(_fit_item(parameter, item, name, hint) for item in items)


def _fit_item(parameter: Parameter, value: Any, name: str, hint: str) -> Any:
    kind = parameter.kind
    if kind is str and hasattr(type(value), "__fspath__"):
        value = value.__fspath__()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is str and isinstance(value, str):
        return _fit_text(parameter, value, name, hint)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is float and is_number and abs(value) <= MAX_NUMBER:
        return float(value)
    if kind is int and is_number and abs(value) <= MAX_NUMBER and value == int(value):
        if value < 0 and parameter.zero_means:
            raise MemtoolError(
                f"{name} {value} is below 0",
                hint=f"give a number, 0 for {parameter.zero_means}",
                code="bad-limit",
            )
        return int(value)
    is_far = kind is not str and is_number and abs(value) > MAX_NUMBER
    raise wrong_kind(parameter, "one so large" if is_far else _kind_of(value), name, hint)


def wrong_kind(parameter: Parameter, value: str, name: str, hint: str) -> MemtoolError:
    """Return the refusal of a value of another kind; `value` says what it is."""
    return MemtoolError(f"{name} takes {_KIND_NAMES[parameter.kind]}, not {value}", hint=hint)


def _fit_text(parameter: Parameter, text: str, name: str, hint: str) -> str:
    if parameter.choices and text != parameter.default and text not in parameter.choices:
        near = nearest(text, list(parameter.choices))
        raise MemtoolError(
            f"{name} is one of {', '.join(parameter.choices)}, not {shown(text)}",
            hint=f"did you mean {near}?" if near else hint,
        )
    if len(text) > parameter.max_chars:
        raise MemtoolError(
            f"{name} has {len(text):,} characters, {parameter.max_chars:,} are allowed",
            hint="give a shorter text",
            code="too-large",
        )
    if "\0" in text or not (text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)):
        raise MemtoolError(
            f"{name} is not Unicode text",
            hint="a text holds neither NUL nor half of a character",
            code="not-utf8",
        )
    if text == "-" and not parameter.takes_stdin:
        raise MemtoolError(f"{name} is -, and there is nothing to read", hint="give the text")
    key = text.partition("=")[0]
    if parameter.keys and key not in parameter.keys:
        raise MemtoolError(
            f"{name} takes no {shown(key)} here",
            hint=f"KEY=VALUE with one of {', '.join(parameter.keys)}",
        )
    return text


def _is_blank(value: Any) -> bool:
    import re  # only calls of programs ask

    return isinstance(value, str) and not re.search(NOT_BLANK, value)


def _kind_of(value: Any) -> str:
    """Return what a wrong value is. It is not shown: it may hold anything."""
    if value is None:
        return "nothing"
    return {
        list: "a list",
        tuple: "a list",
        dict: "an object",
        bytes: "bytes",
        float: "such a number",
    }.get(type(value), _KIND_NAMES.get(type(value), "such a value"))


def unknown(signature: Signature, label: str) -> MemtoolError:
    """Return the refusal of a name that a call does not take."""
    near = nearest(label[:MAX_SHOWN_CHARS], list(signature.parameters))
    known = f"it takes {', '.join(signature.parameters) or 'nothing'}"
    if signature.help:
        known = f"{signature.help} lists the {signature.noun}s"
    named = label if signature.noun == "option" else shown(label)
    return MemtoolError(
        f"{signature.title} has no {signature.noun} {named}",
        hint=f"did you mean {near}?" if near else known,
    )


def nearest(word: str, known: list[str]) -> str:
    """Return the two known words that a wrong one looks like, as "a or b"; empty for none."""
    import difflib  # only a wrong word pays for it

    return " or ".join(difflib.get_close_matches(word, known, n=2))


def shown(word: str) -> str:
    """Return a wrong word as an error shows it, cut if it is long."""
    return repr(word) if len(word) <= MAX_SHOWN_CHARS else repr(word[:MAX_SHOWN_CHARS]) + "…"
