"""Arguments: the interface of a verb from its signature, and a command line read by it.

Positional parameters are positional arguments, keyword-only ones are options. The docstring is
Google style: a first line, paragraphs, `Example:` and `Args:`. `inspect` and `typing` would cost
twice a bare interpreter start, at every prompt of an agent, so annotations are read as text; a verb
that needs a new kind of parameter gets a row in `KINDS`. Choices are `Literal["low", "high"]`, or
`Annotated[str, TABLE]` for the names of a table. `fit` is the one place where a value is checked
against its parameter: the command line, the MCP tools and the Python API all call it.

`argparse` would double the time of a cold start, and its messages name no next step. The grammar:
options may stand anywhere; `--option=value` and `--option value` mean the same; after `--` every
word is an argument. A word that begins with one dash, such as the `-word` of a query, is an
argument where the verb takes any number of them.
"""

from __future__ import annotations

from memtool.commands import ACTIONS, BY_NAME, VERBS, Verb, names
from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
        """The placeholder of the value in a usage line."""
        name = self.name.rstrip("_").upper()
        if self.is_positional:
            return name
        if self.choices:
            return "|".join(self.choices)
        return {int: "N", float: "X"}.get(self.kind) or METAVARS.get(self.name, name)


class Interface(Value):
    """A verb as surfaces see it: its function, its renderer, its parameters and texts."""

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
    texts: tuple[str, str, dict[str, list[str]]] = "", "", {}
    if with_texts:
        texts = parse_docstring(run.__doc__ or "")
    summary, description, sections = texts
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
    """Return the parameters in the order of the signature, without the context."""
    code = run.__code__
    named = code.co_argcount + code.co_kwonlyargcount
    positional = code.co_varnames[1 : code.co_argcount]
    options = code.co_varnames[code.co_argcount : named]
    many = code.co_varnames[named : named + 1] if code.co_flags & _HAS_MANY_WORDS else ()
    given = run.__defaults__ or ()
    defaults = dict(zip(positional[len(positional) - len(given) :], given, strict=True))
    defaults |= run.__kwdefaults__ or {}
    found = []
    for name in (*positional, *many, *options):
        kind, choices, is_tuple = _shape(run.__annotations__[name], run.__globals__)
        is_many = is_tuple or name in many
        found.append(
            Parameter(
                name=name,
                kind=kind,
                choices=choices,
                default=() if is_many else defaults.get(name),
                is_positional=name not in options,
                is_required=name not in defaults and not is_many,
                is_many=is_many,
                help=helps.get(name, ""),
            )
        )
    return tuple(found)


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
        raise TypeError(f"no surface knows how to ask for a {annotation}")
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


FARTHEST = 1 << 53
"""Beyond it JSON readers no longer agree on whole numbers."""
COUNTS = {"limit": "all", "offset": "the first", "depth": "all steps"}
"""Parameters that take no number below 0, and what 0 means."""
LONG = frozenset({"body", "filters", "prompt", "query", "section", "summary", "text"})
LONG_CHARS, SHORT_CHARS = 1 << 20, 10_000
"""Most characters of a text, for what is written or asked at length and for everything else."""
LONGEST_WORD = 40
_KIND_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_MANY_NAMES = {str: "texts", int: "whole numbers", float: "numbers"}


def fit(parameter: Parameter, found: Any, *, name: str, hint: str) -> Any:
    """Return a value as the verb takes it: a list as a tuple, a path as text, 2.0 as 2.

    Args:
        parameter: what the value is for.
        found: anything at all; None is the default of a parameter that has one.
        name: the parameter as the surface spells it.
        hint: the next step where no choice is near.

    Raises:
        MemtoolError: another type, no choice, out of range, too long, or not Unicode text.
    """
    if found is None and not parameter.is_required:
        return parameter.default
    if not parameter.is_many:
        return fit_one(parameter, found, name=name, hint=hint)
    if not isinstance(found, list | tuple | set | frozenset):
        raise MemtoolError(
            f"{name} takes a list of {_MANY_NAMES[parameter.kind]}, not {_kind_of(found)}",
            hint=hint,
        )
    items = sorted(found, key=repr) if isinstance(found, set | frozenset) else found
    return tuple(fit_one(parameter, item, name=name, hint=hint) for item in items)


def fit_one(parameter: Parameter, found: Any, *, name: str, hint: str) -> Any:
    """Return one value, or one item of many, as the verb takes it; see `fit`."""
    kind = parameter.kind
    if kind is str and hasattr(type(found), "__fspath__"):
        found = found.__fspath__()
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    if kind is str and isinstance(found, str):
        return _fit_text(parameter, found, name, hint)
    if kind is bool and isinstance(found, bool):
        return found
    if kind is float and is_number and abs(found) <= FARTHEST:
        return float(found)
    if kind is int and is_number and abs(found) <= FARTHEST and found == int(found):
        if found < 0 and parameter.name in COUNTS:
            raise MemtoolError(
                f"{name} {found} is below 0",
                hint=f"give a number, 0 for {COUNTS[parameter.name]}",
                code="bad-limit",
            )
        return int(found)
    is_far = kind is not str and is_number and abs(found) > FARTHEST
    given = "one so large" if is_far else _kind_of(found)
    raise MemtoolError(f"{name} takes {_KIND_NAMES[kind]}, not {given}", hint=hint)


def _fit_text(parameter: Parameter, text: str, name: str, hint: str) -> str:
    if parameter.choices and text != parameter.default and text not in parameter.choices:
        near = nearest(text, list(parameter.choices))
        raise MemtoolError(
            f"{name} is one of {', '.join(parameter.choices)}, not {shown(text)}",
            hint=f"did you mean {near}?" if near else hint,
        )
    most = LONG_CHARS if parameter.name in LONG else SHORT_CHARS
    if len(text) > most:
        raise MemtoolError(
            f"{name} has {len(text):,} characters, {most:,} are allowed",
            hint="give a shorter text",
            code="too-large",
        )
    if "\0" in text or not (text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)):
        raise MemtoolError(
            f"{name} is not Unicode text",
            hint="a text holds neither NUL nor half of a character",
            code="not-utf8",
        )
    return text


def _kind_of(found: Any) -> str:
    """Return what a wrong value is. It is not shown: it may hold anything."""
    if found is None:
        return "nothing"
    return {
        list: "a list",
        tuple: "a list",
        dict: "an object",
        bytes: "bytes",
        float: "such a number",
    }.get(type(found), _KIND_NAMES.get(type(found), "such a value"))


def shown(word: str) -> str:
    """Return a wrong word as an error shows it, cut where it is long."""
    return repr(word) if len(word) <= LONGEST_WORD else repr(word[:LONGEST_WORD]) + "…"


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


class Call(Value):
    """A parsed command line. `face` is the interface of the verb that was named."""

    face: Interface
    directory: str
    is_global: bool
    as_json: bool
    positional: tuple[Any, ...]
    options: dict[str, Any]


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


def nearest(word: str, known: list[str]) -> str:
    """Return the two known words that a wrong one looks like, as "a or b"; empty for none."""
    import difflib  # only a wrong word pays for it

    return " or ".join(difflib.get_close_matches(word, known, n=2))


def _call(face: Interface, words: list[str]) -> Call | None:
    """Return the call that some words make; None where they ask for help.

    Raises:
        MemtoolError: an option is unknown or has no value, or a value does not fit.
    """
    positional, options, directory, flags = _sort(face, words)
    _refuse_undecodable([*positional, *(text for texts in options.values() for text in texts)])
    is_global = "--global" in flags
    if is_global and directory:
        raise _misuse(face, "-C DIR and --global name two repositories", "give one of them")
    if not flags.isdisjoint(("-h", "--help")):
        return None
    return Call(
        face=face,
        directory=directory or ".",
        is_global=is_global,
        as_json="--json" in flags,
        positional=_positional(face, positional),
        options={option.name: _chosen(face, option, options) for option in face.options},
    )


def _sort(
    face: Interface, words: list[str]
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
            raise _unknown_option(face, flag, list(by_flag))
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


def _positional(face: Interface, texts: list[str]) -> tuple[Any, ...]:
    """Give each positional parameter its value, in its type."""
    rest = list(texts)
    found: list[Any] = []
    for parameter in face.positional:
        if parameter.is_many:
            found += [_typed(face, parameter, text) for text in rest]
            rest = []
        elif rest:
            found.append(_typed(face, parameter, rest.pop(0)))
        elif parameter.is_required:
            names = " ".join(p.metavar for p in face.positional if p.is_required)
            raise _misuse(face, f"{parameter.metavar} is missing", f"memtool {face.name} {names}")
        else:
            found.append(parameter.default)
    if rest:
        raise MemtoolError(
            f"{rest[0]!r} is one word too many for memtool {face.name}",
            hint=f"put quotes around a text of several words; memtool {face.name} --help",
        )
    return tuple(found)


def _chosen(face: Interface, option: Parameter, given: dict[str, list[str]]) -> Any:
    values = given.get(option.flag)
    if option.kind is bool:
        return values is not None
    if option.is_many:
        return tuple(_typed(face, option, text) for text in values or ())
    return option.default if values is None else _typed(face, option, values[-1])


def _typed(face: Interface, parameter: Parameter, text: str) -> Any:
    name = parameter.metavar if parameter.is_positional else parameter.flag
    value: Any = text
    if parameter.kind is not str:
        try:
            value = parameter.kind(text)
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            raise _misuse(face, f"{name} takes {_KIND_NAMES[parameter.kind]}, not {text!r}")
    return fit_one(parameter, value, name=name, hint=f"memtool {face.name} --help")


def _unknown_option(face: Interface, flag: str, known: list[str]) -> MemtoolError:
    near = nearest(flag, known)
    hint = f"did you mean {near}?" if near else f"memtool {face.name} --help lists the options"
    return _misuse(face, f"memtool {face.name} has no option {flag}", hint)


def _misuse(face: Interface, message: str, hint: str = "") -> MemtoolError:
    return MemtoolError(message, hint=hint or f"memtool {face.name} --help")
