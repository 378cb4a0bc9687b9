"""Arguments: a command line, read by the signature of its verb.

`argparse` would double the time of a cold start, and its messages name no next step. The grammar:
options may stand anywhere; `--option=value` and `--option value` mean the same; after `--` every
word is an argument. A word that begins with one dash, such as the `-word` of a query, is an
argument where the verb takes any number of them.
"""

from __future__ import annotations

from memtool.calls.bind import Call, bind, nearest, spread, unknown, wrong_kind
from memtool.calls.signature import Signature, interface
from memtool.commands import ACTIONS, BY_NAME, VERBS, Verb, names
from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.calls.signature import Interface, Parameter

EXIT_CODES: dict[int, str] = {
    0: "fine",
    1: "problems were found, and told on stdout",
    2: "a wrong call, setting, file or state of git; told on stderr with the next step",
    3: "a bug; stderr names the log file",
    130: "interrupted",
}
"""The exit codes of the command line."""
SHORT = {"-v": "--verbose"}
"""Options of one letter, where a verb has the long one."""
ANYWHERE = ("--json", "--global", "-C", "--help", "-h")
"""Options of every verb, which may also stand before it."""


class HelpPage(Value):
    """A page of text that was asked for: `version`, or the help of a verb or of everything.

    `actions` names a verb with actions whose page is asked for as a whole.
    """

    name: str
    verb: Verb | None = None
    actions: str = ""


def parse(args: list[str]) -> Call | HelpPage:
    """Return the call, or the page that was asked for.

    Raises:
        MemtoolError: the words make no call.
    """
    before, name, after = split(args)
    if before[-1:] == ["-C"] and not name:
        raise MemtoolError("-C needs a directory", hint="memtool -C DIR VERB")
    if name in ("-V", "--version"):
        return HelpPage("version")
    if "-h" in before or "--help" in before or name in ("", "help"):
        return _help_page(after if name == "help" else [])
    if name.startswith("-"):
        raise MemtoolError(
            f"there is no option {name} before the verb", hint="memtool --help lists the verbs"
        )
    if name in ACTIONS:
        flags, action, rest = split(after)
        if not action and not {"-h", "--help"}.isdisjoint(flags):
            return HelpPage("help", actions=name)
        if action and not action.startswith("-"):
            name, after = f"{name} {action}", flags + rest
        else:
            name = next(verb.name for verb in VERBS if verb.name.startswith(f"{name} "))
    verb = _verb(name)
    face = interface(verb, with_texts=False)
    return _call(face, before + after) or HelpPage("help", verb)


def wants_json(args: list[str]) -> bool:
    """Tell whether errors are printed as JSON, even if the words make no call."""
    return "--json" in (args[: args.index("--")] if "--" in args else args)


def split(args: list[str]) -> tuple[list[str], str, list[str]]:
    """Split the words at the verb's name, or at the first option that may not stand before it."""
    number = 0
    while number < len(args) and args[number] in ANYWHERE:
        has_value = args[number] == "-C" and number + 1 < len(args)
        number += 2 if has_value else 1
    return args[:number], args[number] if number < len(args) else "", args[number + 1 :]


def _help_page(words: list[str]) -> HelpPage:
    """Return the page of what follows `memtool help`, that of memtool itself for nothing."""
    name = " ".join(words[:2]) if words[:1] and words[0] in ACTIONS else "".join(words[:1])
    if name in ACTIONS:
        return HelpPage("help", actions=name)
    return HelpPage("help", _verb(name) if name else None)


ELSEWHERE = {
    "add": "new or remember",
    "create": "new or remember",
    "delete": "forget",
    "edit": "supersede",
    "find": "search",
    "get": "show",
    "ls": "list",
    "modify": "supersede",
    "remove": "forget",
    "rm": "forget",
    "update": "supersede",
}
"""Verbs of other tools that are named otherwise here, for the hint after a wrong one."""


def _verb(name: str) -> Verb:
    if name in BY_NAME:
        return BY_NAME[name]
    first, _space, action = name.partition(" ")
    if action:
        known = [verb.name.partition(" ")[2] for verb in VERBS if verb.name.startswith(f"{first} ")]
        near = nearest(action, known)
        raise MemtoolError(
            f"ACTION is one of {', '.join(known)}, not {action!r}",
            hint=f"did you mean {near}?" if near else f"memtool {first} --help",
        )
    near = ELSEWHERE.get(name) or nearest(name, list(names()))
    hint = f"did you mean {near}?" if near else "memtool --help lists the verbs"
    raise MemtoolError(f"there is no verb {name!r}", hint=hint)


def _call(face: Interface, words: list[str]) -> Call | None:
    """Return the call that some words make; None where they ask for help.

    Raises:
        MemtoolError: an option is unknown or has no value, or a value does not fit.
    """
    signature = _signature(face)
    arguments, options, directory, flags = _sort(face, signature, words)
    _refuse_undecodable([*arguments, *(text for texts in options.values() for text in texts)])
    is_global = "--global" in flags
    if is_global and directory:
        raise _misuse(face, "-C DIR and --global name two repositories", "give one of them")
    if not flags.isdisjoint(("-h", "--help")):
        return None
    given = {
        name: _read(face, signature.parameters[name], texts)
        for name, texts in (_placed(face, arguments) | options).items()
    }
    positional, named = spread(face, bind(signature, given))
    return Call(
        face=face,
        directory=directory or ".",
        is_global=is_global,
        as_json="--json" in flags,
        positional=tuple(positional),
        options=named,
    )


def _sort(
    face: Interface, signature: Signature, words: list[str]
) -> tuple[list[str], dict[str, list[str]], str, set[str]]:
    """Sort words into arguments, values by option, the directory of -C, and flags.

    Raises:
        MemtoolError: an option is unknown, or has no value.
    """
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
        word = SHORT[word] if SHORT.get(word) in by_flag else word
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
            raise unknown(signature, flag)
        else:
            positional.append(word)
    options |= {flag: [] for flag in flags if flag in by_flag}
    return positional, options, directory, flags


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


def _read(face: Interface, parameter: Parameter, texts: list[str]) -> Any:
    """Return the words of a parameter in its type; of several where one is taken, the last."""
    if parameter.kind is bool:
        return True
    values = [_number(face, parameter, text) for text in texts]
    return values if parameter.is_many else values[-1]


def _number(face: Interface, parameter: Parameter, text: str) -> Any:
    if parameter.kind is str:
        return text
    try:
        value = parameter.kind(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        hint = f"memtool {face.name} --help"
        raise wrong_kind(parameter, repr(text), label(parameter), hint)
    return value


def label(parameter: Parameter) -> str:
    """Return a parameter as the command line spells it: `TITLE`, or `--tag`."""
    return parameter.metavar if parameter.is_positional else parameter.flag


def _placed(face: Interface, words: list[str]) -> dict[str, list[str]]:
    """Return the words of each positional parameter that has some, by its label."""
    placed = {}
    for parameter in face.positional:
        count = len(words) if parameter.is_many else 1
        if words:
            placed[label(parameter)], words = words[:count], words[count:]
    if words:
        raise MemtoolError(
            f"{words[0]!r} is one word too many for memtool {face.name}",
            hint=f"put quotes around a text of several words; memtool {face.name} --help",
        )
    return placed


def _signature(face: Interface) -> Signature:
    needed = [parameter.metavar for parameter in face.positional if parameter.is_required]
    title = f"memtool {face.name}"
    return Signature(
        title=title,
        parameters={label(parameter): parameter for parameter in face.parameters},
        noun="option",
        help=f"{title} --help",
        usage=" ".join([title, *needed]),
    )


def _misuse(face: Interface, message: str, hint: str = "") -> MemtoolError:
    return MemtoolError(message, hint=hint or f"memtool {face.name} --help")
