"""Arguments: the words of a command line to a verb and its parameters.

The grammar is small, so it is written out: `argparse` alone would double the time of a cold start,
and its complaints are not ours. Options may stand anywhere; `--option=value` and `--option value`
mean the same; after `--` every word is an argument. A word that begins with one dash, such as the
`-word` of a query, is an argument where the verb takes any number of them.
"""

from __future__ import annotations

from memtool.cli.signature import Interface, Parameter, interface
from memtool.commands import BY_NAME, Verb
from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANYWHERE = ("--json", "--global", "-C", "--help", "-h")
"""Flags that stand before or after any verb."""
_NUMBER_NAMES = {int: "a whole number", float: "a number"}


class Call(Value):
    """A parsed command line. `face` is the interface of the verb that was named."""

    face: Interface
    directory: str
    is_global: bool
    as_json: bool
    positional: tuple[Any, ...]
    options: dict[str, Any]


class Page(Value):
    """A page of text that was asked for: `version`, or the help of a verb or of everything."""

    name: str
    verb: Verb | None = None


class _Words(Value):
    """The words of a call, sorted: what stands anywhere, then arguments, then option values."""

    directory: str
    is_global: bool
    as_json: bool
    wants_help: bool
    positional: tuple[str, ...]
    options: dict[str, list[str]]


def parse(args: list[str]) -> Call | Page:
    """Return the call, or the page that was asked for.

    Raises:
        MemtoolError: the words make no call.
    """
    before, name, after = _split(args)
    if before[-1:] == ["-C"] and not name:
        raise MemtoolError("-C needs a directory", hint="memtool -C DIR VERB")
    if name in ("-V", "--version"):
        return Page("version")
    if "-h" in before or "--help" in before or name in ("", "help"):
        return Page("help", _verb(after[0]) if name == "help" and after else None)
    if name.startswith("-"):
        raise MemtoolError(
            f"there is no option {name} before the verb", hint="memtool --help lists the verbs"
        )
    verb = _verb(name)
    face = interface(verb, with_texts=False)
    words = _sort(face, before + after)
    if words.wants_help:
        return Page("help", verb)
    return _call(face, words)


def wants_json(args: list[str]) -> bool:
    """Tell whether errors are to be told as JSON, even if the words make no call."""
    return "--json" in (args[: args.index("--")] if "--" in args else args)


def _split(args: list[str]) -> tuple[list[str], str, list[str]]:
    """Split the words at the verb's name, or at the first option that may not stand before it."""
    number = 0
    while number < len(args) and args[number] in ANYWHERE:
        has_value = args[number] == "-C" and number + 1 < len(args)
        number += 2 if has_value else 1
    return args[:number], args[number] if number < len(args) else "", args[number + 1 :]


def _verb(name: str) -> Verb:
    if name in BY_NAME:
        return BY_NAME[name]
    near = _nearest(name, list(BY_NAME))
    hint = f"did you mean {near}?" if near else "memtool --help lists the verbs"
    raise MemtoolError(f"there is no verb {name!r}", hint=hint)


def _nearest(word: str, known: list[str]) -> str:
    import difflib  # only a wrong word pays for it

    return " or ".join(difflib.get_close_matches(word, known, n=2))


def _sort(face: Interface, words: list[str]) -> _Words:
    """Sort the words of a call. Raises MemtoolError where one is unknown or stands alone."""
    by_flag = {option.flag: option for option in face.options}
    known = {*by_flag, *ANYWHERE, "--"}
    is_greedy = not face.positional
    takes_any = any(parameter.is_many for parameter in face.positional)
    positional: list[str] = []
    options: dict[str, list[str]] = {}
    directory = ""
    flags = set()
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        option = by_flag.get(flag)
        if word == "--":
            positional += reversed(rest)
            break
        if word == "-C":
            directory = _value(face, word, rest, known)
        elif flag in ANYWHERE or (option is not None and option.kind is bool):
            if equals:
                raise _misuse(face, f"{flag} takes no value")
            flags.add(flag)
        elif option is not None:
            values = options.setdefault(flag, [])
            values.append(value if equals else _value(face, flag, rest, known))
            # `--files a b` reads well where no argument could be swallowed by it.
            while is_greedy and option.is_many and rest and not rest[-1].startswith("-"):
                values.append(rest.pop())
        elif not _is_argument(word, takes_any=takes_any):
            raise _unknown_option(face, flag, list(by_flag))
        else:
            positional.append(word)
    options |= {flag: [] for flag in flags if flag in by_flag}
    _refuse_undecodable([*positional, *(text for texts in options.values() for text in texts)])
    is_global = "--global" in flags
    if is_global and directory:
        raise _misuse(face, "-C DIR and --global name two repositories", "give one of them")
    return _Words(
        directory=directory or ".",
        is_global=is_global,
        as_json="--json" in flags,
        wants_help="-h" in flags or "--help" in flags,
        positional=tuple(positional),
        options=options,
    )


def _is_argument(word: str, *, takes_any: bool) -> bool:
    """Tell whether a word is no option: `-` means stdin, `-5` is a number, a sentence is text."""
    if not word.startswith("-") or word == "-" or any(map(str.isspace, word)):
        return True
    return word[1] != "-" and (takes_any or word[1].isdigit())


def _value(face: Interface, flag: str, rest: list[str], known: set[str]) -> str:
    """Take the value of an option off the stack; it may begin with a dash, but be no option."""
    if not rest or rest[-1].partition("=")[0] in known:
        raise _misuse(face, f"{flag} needs a value")
    return rest.pop()


def _refuse_undecodable(words: list[str]) -> None:
    for word in words:
        if not word.isprintable() and any("\udc80" <= char <= "\udcff" for char in word):
            raise MemtoolError(
                f"the argument {word!r} is not UTF-8 text",
                hint="set the locale of the terminal to UTF-8, or give the text on stdin",
                code="not-utf8",
            )


def _call(face: Interface, words: _Words) -> Call:
    """Give each parameter its value, in its type. Raises MemtoolError where it does not fit."""
    texts = list(words.positional)
    positional: list[Any] = []
    for parameter in face.positional:
        if parameter.is_many:
            positional += [_typed(face, parameter, text) for text in texts]
            texts = []
        elif texts:
            positional.append(_typed(face, parameter, texts.pop(0)))
        elif parameter.is_required:
            names = " ".join(p.metavar for p in face.positional if p.is_required)
            raise _misuse(face, f"{parameter.metavar} is missing", f"memtool {face.name} {names}")
        else:
            positional.append(parameter.default)
    if texts:
        raise MemtoolError(
            f"{texts[0]!r} is one word too many for memtool {face.name}",
            hint=f"put quotes around a text of several words; memtool {face.name} --help",
        )
    return Call(
        face=face,
        directory=words.directory,
        is_global=words.is_global,
        as_json=words.as_json,
        positional=tuple(positional),
        options={option.name: _chosen(face, option, words.options) for option in face.options},
    )


def _chosen(face: Interface, option: Parameter, given: dict[str, list[str]]) -> Any:
    values = given.get(option.flag)
    if option.kind is bool:
        return values is not None
    if option.is_many:
        return tuple(_typed(face, option, text) for text in values or ())
    return option.default if values is None else _typed(face, option, values[-1])


def _typed(face: Interface, parameter: Parameter, text: str) -> Any:
    name = parameter.metavar if parameter.is_positional else parameter.flag
    if parameter.choices and text not in parameter.choices:
        near = _nearest(text, list(parameter.choices))
        raise MemtoolError(
            f"{name} is one of {', '.join(parameter.choices)}, not {text!r}",
            hint=f"did you mean {near}?" if near else f"memtool {face.name} --help",
        )
    if parameter.kind is str:
        return text
    try:
        number = parameter.kind(text)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise _misuse(face, f"{name} takes {_NUMBER_NAMES[parameter.kind]}, not {text!r}")
    return number


def _unknown_option(face: Interface, flag: str, known: list[str]) -> MemtoolError:
    near = _nearest(flag, known)
    hint = f"did you mean {near}?" if near else f"memtool {face.name} --help lists the options"
    return _misuse(face, f"memtool {face.name} has no option {flag}", hint)


def _misuse(face: Interface, message: str, hint: str = "") -> MemtoolError:
    return MemtoolError(message, hint=hint or f"memtool {face.name} --help")
