"""Arguments: parse a command line by the signature of its verb.

`argparse` would double the time of a cold start, and its messages do not name the next step. The
grammar: options may appear anywhere; `--option=value` and `--option value` mean the same; after
`--` every word is an argument. A word that begins with one dash, such as the `-word` of a query, is
an argument if the verb takes any number of them.
"""

from __future__ import annotations

import sys

from memtool.calls.bind import (
    OLD_OPTIONS,
    Call,
    bind,
    describe_old_names,
    split_arguments,
    suggest_nearest,
    unknown_name_error,
    wrong_kind_error,
)
from memtool.calls.signature import Signature, read_interface
from memtool.commands import ACTIONS, BY_NAME, VERBS, Verb, names
from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.calls.signature import Interface, Parameter

SHORT = {"-v": "--verbose"}
"""Short forms of options, for verbs that have the long form."""
ALL = "--all"
"""After `help` or `--help`: show every verb."""
ANYWHERE = ("--json", "--global", "-C", "--no-pager", "--help", "-h")
"""Options of every verb, which may also appear before it."""


class HelpPage(Value):
    """A requested page of text: `version`, or the help of a verb, a topic or memtool itself.

    `actions` names a verb with actions, for the page of all its actions. `is_all` asks for every
    verb instead of the daily ones.
    """

    name: str
    verb: Verb | None = None
    actions: str = ""
    topic: str = ""
    is_all: bool = False


def parse(args: list[str]) -> Call | HelpPage:
    """Parse the words of a command line into a call, or a requested page.

    Raises:
        MemtoolError: the words are not a valid call.
    """
    before, name, after = split_at_verb(args)
    if before[-1:] == ["-C"] and not name:
        raise MemtoolError("-C needs a directory", hint="memtool -C DIR status")
    if name in ("-V", "--version"):
        return HelpPage("version")
    wants_help = not {"-h", "--help"}.isdisjoint(before)
    if name == ALL and (wants_help or not {"-h", "--help"}.isdisjoint(after)):
        return HelpPage("help", is_all=True)
    if wants_help or name in ("", "help"):
        return _find_help_page(after if name == "help" else [])
    if name.startswith("-"):
        raise MemtoolError(f"unknown option {name} before the verb", hint="memtool help --all")
    if name in ACTIONS:
        flags, action, action_words = split_at_verb(after)
        if not action and not {"-h", "--help"}.isdisjoint(flags):
            return HelpPage("help", actions=name)
        if action and not action.startswith("-"):
            name, after = f"{name} {action}", flags + action_words
        else:
            name = next(verb.name for verb in VERBS if verb.name.startswith(f"{name} "))
    verb = _find_verb(name)
    face = read_interface(verb, with_texts=False)
    return _parse_call(face, before + after) or HelpPage("help", verb)


def wants_json(args: list[str]) -> bool:
    """Return whether to print errors as JSON, even if the words are not a valid call."""
    return "--json" in (args[: args.index("--")] if "--" in args else args)


def split_at_verb(args: list[str]) -> tuple[list[str], str, list[str]]:
    """Split the words at the verb's name, or at the first option that may not precede it."""
    number = 0
    while number < len(args) and args[number] in ANYWHERE:
        has_value = args[number] == "-C" and number + 1 < len(args)
        number += 2 if has_value else 1
    return args[:number], args[number] if number < len(args) else "", args[number + 1 :]


def _find_help_page(words: list[str]) -> HelpPage:
    """Return the page for the words after `memtool help`; memtool's own if there are none."""
    if words[:1] == [ALL]:
        return HelpPage("help", is_all=True)
    name = " ".join(words[:2]) if words[:1] and words[0] in ACTIONS else "".join(words[:1])
    if not name:
        return HelpPage("help")
    if name in ACTIONS:
        return HelpPage("help", actions=name)
    if name in BY_NAME or " " in name:
        return HelpPage("help", _find_verb(name))
    from memtool.cli.topics import TOPICS  # loads the tables of settings, filters and so on

    if name in TOPICS:
        return HelpPage("help", topic=name)
    near = FOREIGN_VERBS.get(name) or suggest_nearest(name, [*TOPICS, *names()])
    raise MemtoolError(
        f"unknown verb or topic {name!r}",
        hint=f"did you mean {near}?" if near else f"the topics are {', '.join(TOPICS)}",
    )


FOREIGN_VERBS = {
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
"""Verbs of other tools and their names here, for the hint after an unknown verb."""


def _find_verb(name: str) -> Verb:
    if name in BY_NAME:
        return BY_NAME[name]
    first, _space, action = name.partition(" ")
    if action:
        actions = [
            verb.name.partition(" ")[2] for verb in VERBS if verb.name.startswith(f"{first} ")
        ]
        near = suggest_nearest(action, actions)
        raise MemtoolError(
            f"ACTION is one of {', '.join(actions)}, not {action!r}",
            hint=f"did you mean {near}?" if near else f"memtool {first} --help",
        )
    near = FOREIGN_VERBS.get(name) or suggest_nearest(name, list(names()))
    hint = f"did you mean {near}?" if near else "memtool help --all"
    raise MemtoolError(f"unknown verb {name!r}", hint=hint)


def _parse_call(face: Interface, words: list[str]) -> Call | None:
    """Parse the words around a verb into a call; None if they ask for help.

    Raises:
        MemtoolError: an option is unknown or has no value, or a value does not fit.
    """
    signature = _make_signature(face)
    words, old_flags = _use_current_flags(signature, words)
    arguments, options, directory, flags = _sort_words(face, signature, words)
    _refuse_undecodable([*arguments, *(text for texts in options.values() for text in texts)])
    is_global = "--global" in flags
    if is_global and directory:
        raise _make_error(face, "-C DIR and --global are two repositories", "leave out one of them")
    if not flags.isdisjoint(("-h", "--help")):
        return None
    readings = getattr(sys.modules[face.run.__module__], "READINGS", {})
    if face.name in readings:
        arguments = readings[face.name](arguments, directory)
    values = {
        name: _convert(face, signature.parameters[name], texts)
        for name, texts in (_assign_positional(face, arguments) | options).items()
    }
    positional, named = split_arguments(face, bind(signature, values))
    return Call(
        face=face,
        directory=directory or ".",
        is_global=is_global,
        as_json="--json" in flags,
        may_page="--no-pager" not in flags,
        positional=tuple(positional),
        options=named,
        notes=describe_old_names(signature, old_flags),
    )


def _use_current_flags(signature: Signature, words: list[str]) -> tuple[list[str], list[str]]:
    """Return the words with the options of today, and the old flags among them, each once."""
    last = words.index("--") if "--" in words else len(words)
    flags = [word.partition("=")[0] for word in words[:last]]
    current_words = [
        signature.old_names.get(flag, flag) + word.removeprefix(flag)
        for flag, word in zip(flags, words, strict=False)
        if signature.old_names.get(flag) != ""
    ]
    old_flags = dict.fromkeys(flag for flag in flags if flag in signature.old_names)
    return current_words + words[last:], list(old_flags)


def _sort_words(
    face: Interface, signature: Signature, words: list[str]
) -> tuple[list[str], dict[str, list[str]], str, set[str]]:
    """Sort words into arguments, values by option, the directory of -C, and flags.

    Raises:
        MemtoolError: an option is unknown, or has no value.
    """
    by_flag = {option.flag: option for option in face.options}
    all_flags = {*by_flag, *ANYWHERE, "--"}
    is_greedy = not face.positional
    takes_any = any(parameter.is_many for parameter in face.positional)
    positional: list[str] = []
    options: dict[str, list[str]] = {}
    directory = ""
    flags = set()
    stack = list(reversed(words))
    while stack:
        word = stack.pop()
        word = SHORT[word] if SHORT.get(word) in by_flag else word
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        option = by_flag.get(flag)
        if word == "--":
            positional += reversed(stack)
            break
        if word == "-C":
            directory = _pop_value(face, word, stack, all_flags)
        elif flag in ANYWHERE or (option is not None and option.kind is bool):
            if equals:
                raise _make_error(face, f"{flag} does not take a value")
            flags.add(flag)
        elif option is not None:
            values = options.setdefault(flag, [])
            values.append(value if equals else _pop_value(face, flag, stack, all_flags))
            # `--files a b` is allowed if the verb has no arguments that it could swallow.
            while is_greedy and option.is_many and stack and not stack[-1].startswith("-"):
                values.append(stack.pop())
        elif not _is_argument(word, takes_any=takes_any):
            raise unknown_name_error(signature, flag)
        else:
            positional.append(word)
    options |= {flag: [] for flag in flags if flag in by_flag}
    return positional, options, directory, flags


def _is_argument(word: str, *, takes_any: bool) -> bool:
    """Return whether a word is not an option: `-` is stdin, `-5` a number, a sentence text."""
    if not word.startswith("-") or word == "-" or any(map(str.isspace, word)):
        return True
    return word[1] != "-" and (takes_any or word[1].isdigit())


def _pop_value(face: Interface, flag: str, stack: list[str], all_flags: set[str]) -> str:
    """Take an option's value off the stack; it may begin with a dash, but not be an option."""
    if not stack or stack[-1].partition("=")[0] in all_flags:
        raise _make_error(face, f"{flag} needs a value")
    return stack.pop()


def _refuse_undecodable(words: list[str]) -> None:
    for word in words:
        if not word.isprintable() and any("\udc80" <= char <= "\udcff" for char in word):
            raise MemtoolError(
                f"the argument {word!r} is not UTF-8 text",
                hint="set the terminal's locale to UTF-8, or pass the text on stdin",
                code="not-utf8",
            )


def _convert(face: Interface, parameter: Parameter, texts: list[str]) -> Any:
    """Convert the words of a parameter to its type; the last counts if it takes only one."""
    if parameter.kind is bool:
        return True
    values = [_convert_word(face, parameter, text) for text in texts]
    return values if parameter.is_many else values[-1]


def _convert_word(face: Interface, parameter: Parameter, text: str) -> Any:
    if parameter.kind is str:
        return text
    try:
        value = parameter.kind(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        hint = f"memtool {face.name} --help"
        raise wrong_kind_error(parameter, repr(text), format_label(parameter), hint)
    return value


def _format_flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def format_label(parameter: Parameter) -> str:
    """Return a parameter as the command line spells it: `TITLE`, or `--tag`."""
    return parameter.metavar if parameter.is_positional else parameter.flag


def _assign_positional(face: Interface, words: list[str]) -> dict[str, list[str]]:
    """Assign words to the positional parameters; return the words by label."""
    placed = {}
    for parameter in face.positional:
        count = len(words) if parameter.is_many else 1
        if words:
            placed[format_label(parameter)], words = words[:count], words[count:]
    if words:
        raise MemtoolError(
            f'{face.name} does not take the argument "{words[0]}"',
            hint=f"put quotes around a text of several words\nmemtool {face.name} --help",
        )
    return placed


def _make_signature(face: Interface) -> Signature:
    needed = [parameter.metavar for parameter in face.positional if parameter.is_required]
    title = f"memtool {face.name}"
    return Signature(
        title=title,
        parameters={format_label(parameter): parameter for parameter in face.parameters},
        noun="option",
        help=f"{title} --help",
        usage=" ".join([title, *needed]),
        old_names={
            _format_flag(old_name): _format_flag(current) if current else ""
            for old_name, current in OLD_OPTIONS.get(face.name, {}).items()
        },
    )


def _make_error(face: Interface, message: str, hint: str = "") -> MemtoolError:
    return MemtoolError(message, hint=hint or f"memtool {face.name} --help")
