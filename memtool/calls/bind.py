"""Binding: turn the values of a caller into the typed arguments of a verb.

Every interface parses its own syntax, uses its own spelling of the parameters, and calls `bind`. So
values are validated in one place, with the same error messages everywhere. A verb trusts its
arguments.
"""

from __future__ import annotations

from memtool.calls.signature import MAX_NUMBER
from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from memtool.calls.signature import Interface, Parameter, Signature

_OLD_REASON = {"why": "reason"}
OLD_OPTIONS: dict[str, dict[str, str]] = {
    "archive": _OLD_REASON,
    "deprecate": _OLD_REASON,
    "forget": _OLD_REASON | {"all": "", "wanted": "id"},
    "inject": {"write": "into"},
    "promote": _OLD_REASON,
    "resolve": _OLD_REASON | {"each": "all", "keep_both": "keep=both"},
    "search": {"semantic": ""},
    "undo": _OLD_REASON,
}
"""Old names of options by verb, which work for one version, with those of today. With `=` the old
one was a switch, and means this value of another option; with nothing it is the default now."""
NOT_BLANK = r"[^\s\x1c-\x1f\x85\ufeff]"
"""Matches a character that is not white space in any dialect of regular expressions in schemas."""
MAX_SHOWN_CHARS = 40
_KIND_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_MANY_NAMES = {str: "texts", int: "whole numbers", float: "numbers"}


class Call(Value):
    """A parsed command line. `face` is the interface of its verb, `notes` are about old names."""

    face: Interface
    directory: str
    is_global: bool
    as_json: bool
    may_page: bool
    positional: tuple[Any, ...]
    options: dict[str, Any]
    notes: tuple[str, ...] = ()


def bind(signature: Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every parameter, by its own name, with defaults for missing ones.

    Args:
        signature: the parameters of the call.
        arguments: unchecked values, by the interface's names of the parameters. None means missing.

    Raises:
        MemtoolError: an argument is missing, unknown or does not fit.
    """
    arguments = _use_current_names(signature, arguments)
    for label in arguments:
        if label not in signature.parameters:
            raise unknown_name_error(signature, label)
    values = {}
    for label, parameter in signature.parameters.items():
        value = arguments.get(label)
        hint = signature.help or f"{label}: {parameter.help}"
        if parameter.is_required and (value is None or value == []):
            raise MemtoolError(f"{label} is missing", hint=signature.usage or hint)
        if not parameter.takes_blank and _is_blank(value):
            raise MemtoolError(f"{label} is empty", hint=hint)
        values[parameter.name] = fit(parameter, value, name=label, hint=hint)
    return values


def _use_current_names(signature: Signature, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments by the names of today; one that is given by both names keeps the new."""
    if signature.old_names.keys().isdisjoint(arguments):
        return arguments
    renamed = dict(arguments)
    for old_name, current in signature.old_names.items():
        name, equals, switched_on = current.partition("=")
        value = renamed.pop(old_name, None)
        if not current:
            continue
        if equals and value is not None:
            value = switched_on if value else None
        if renamed.get(name) is None:
            renamed[name] = value
    return renamed


def describe_old_names(signature: Signature, labels: Iterable[str]) -> tuple[str, ...]:
    """Return a note for each old name among the labels of arguments."""
    return tuple(
        f"{label} is called {name} now" if name else f"{label} is the default now"
        for label in labels
        if (name := signature.old_names.get(label)) is not None
    )


def split_arguments(face: Interface, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Split bound values into positional arguments and all options by name."""
    places: list[Any] = []
    for parameter in face.positional:
        value = values.get(parameter.name, parameter.default)
        places += value if isinstance(value, tuple) else [value]
    return places, {option.name: values.get(option.name, option.default) for option in face.options}


def fit(parameter: Parameter, value: Any, *, name: str, hint: str) -> Any:
    """Validate a value and convert it: a list to a tuple, a path to text, 2.0 to 2.

    Args:
        parameter: the parameter that gets the value.
        value: unchecked; None means the default if the parameter has one.
        name: the parameter as the interface spells it.
        hint: the hint of the error, unless a similar choice is suggested.

    Raises:
        MemtoolError: wrong type, not a choice, out of range, too long, or not Unicode text.
    """
    if value is None and not parameter.is_required:
        return parameter.default
    if not parameter.is_many:
        return _fit_item(parameter, value, name, hint)
    if isinstance(value, str) and parameter.is_positional:
        value = [value]  # an argument that took one text before it took several
    if not isinstance(value, list | tuple | set | frozenset):
        raise MemtoolError(
            f"{name} takes a list of {_MANY_NAMES[parameter.kind]}, not {_describe_kind(value)}",
            hint=hint,
        )
    if parameter.max_items and len(value) > parameter.max_items:
        raise MemtoolError(
            f"{name} takes at most {parameter.max_items:,} items, not {len(value):,}"
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
                f"{name} must be 0 or more, not {value}",
                hint=f"0 means {parameter.zero_means}",
            )
        return int(value)
    is_far = kind is not str and is_number and abs(value) > MAX_NUMBER
    raise wrong_kind_error(
        parameter, "a number this large" if is_far else _describe_kind(value), name, hint
    )


def wrong_kind_error(parameter: Parameter, value: str, name: str, hint: str) -> MemtoolError:
    """Build the error for a value of the wrong kind, which `value` describes."""
    return MemtoolError(f"{name} takes {_KIND_NAMES[parameter.kind]}, not {value}", hint=hint)


def _fit_text(parameter: Parameter, text: str, name: str, hint: str) -> str:
    if parameter.choices and text != parameter.default and text not in parameter.choices:
        near = suggest_nearest(text, list(parameter.choices))
        raise MemtoolError(
            f"{name} is one of {', '.join(parameter.choices)}, not {clip_word(text)}",
            hint=f"did you mean {near}?" if near else hint,
        )
    if len(text) > parameter.max_chars:
        raise MemtoolError(
            f"{name} has {len(text):,} characters, the limit is {parameter.max_chars:,}",
            hint="give a shorter text",
            code="too-large",
        )
    if "\0" in text or not (text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)):
        raise MemtoolError(
            f"{name} is not valid Unicode",
            hint="remove NUL characters and unpaired surrogates",
            code="not-utf8",
        )
    if text == "-" and not parameter.takes_stdin:
        raise MemtoolError(
            f"{name} cannot be - here: there is no stdin", hint="pass the text itself"
        )
    key = text.partition("=")[0]
    if parameter.keys and key not in parameter.keys:
        raise MemtoolError(
            f"{name} does not take {clip_word(key)}",
            hint=f"KEY=VALUE with one of {', '.join(parameter.keys)}",
        )
    return text


def _is_blank(value: Any) -> bool:
    import re  # needed for calls by programs only

    texts = value if isinstance(value, (list, tuple)) else (value,)
    return any(isinstance(text, str) and not re.search(NOT_BLANK, text) for text in texts)


def _describe_kind(value: Any) -> str:
    """Describe the type of a wrong value, without showing it: it may be anything."""
    if value is None:
        return "nothing"
    return {
        list: "a list",
        tuple: "a list",
        dict: "an object",
        bytes: "bytes",
        float: "this number",
    }.get(type(value), _KIND_NAMES.get(type(value), "this value"))


def unknown_name_error(signature: Signature, label: str) -> MemtoolError:
    """Build the error for an unknown parameter."""
    labels = [*signature.parameters, *signature.old_names]
    near = suggest_nearest(label[:MAX_SHOWN_CHARS], labels, signature.old_names)
    parameters = f"it takes {', '.join(signature.parameters) or 'nothing'}"
    if signature.help:
        parameters = f"{signature.help} lists the {signature.noun}s"
    named = label if signature.noun == "option" else clip_word(label)
    return MemtoolError(
        f"{signature.title} has no {signature.noun} {named}",
        hint=f"did you mean {near}?" if near else parameters,
    )


def suggest_nearest(word: str, candidates: list[str], current_names: Mapping[str, str] = {}) -> str:
    """Return up to two candidates similar to a wrong word, as "a or b"; empty if none is.

    Those in `current_names` are given by their name of today.
    """
    import difflib  # needed for a wrong word only

    near = difflib.get_close_matches(word, candidates, n=2)
    return " or ".join(dict.fromkeys(current_names.get(name, name) for name in near))


def clip_word(word: str) -> str:
    """Quote a wrong word for an error message, truncated if it is long."""
    return repr(word) if len(word) <= MAX_SHOWN_CHARS else repr(word[:MAX_SHOWN_CHARS]) + "…"
