"""Arguments: the words of a command line to a verb and its parameters."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from memtool import __version__
from memtool.cli.signature import Interface, Parameter, interface
from memtool.commands import BY_NAME, GROUPS, VERBS, Verb
from memtool.errors import MemtoolError
from memtool.value import Value


class Call(Value):
    """A parsed command line."""

    verb: Verb
    directory: str
    as_json: bool
    positional: tuple[Any, ...]
    options: dict[str, Any]


def parse(args: list[str]) -> Call | str:
    """Return the call, or the text of a help page that was asked for.

    Raises:
        MemtoolError: the words make no call.
    """
    directory = "."
    rest = list(args)
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if flag in ("-h", "--help"):
            return overview()
        if flag in ("-V", "--version"):
            return f"memtool {__version__}\n"
        if flag == "-C" and rest:
            directory = rest.pop(0)
        elif flag == "--json":
            rest.append(flag)
            if not any(not word.startswith("-") for word in rest):
                break
        else:
            raise MemtoolError(
                f"there is no option {flag} before the verb", hint="memtool --help lists the verbs"
            )
    if not rest or rest[0].startswith("-"):
        return overview()
    name = rest.pop(0)
    if name == "help":
        return help_page(_verb(rest[0])) if rest else overview()
    verb = _verb(name)
    if "-h" in rest or "--help" in rest:
        return help_page(verb)
    return _call(verb, directory, rest)


def _verb(name: str) -> Verb:
    if name in BY_NAME:
        return BY_NAME[name]
    import difflib

    near = difflib.get_close_matches(name, BY_NAME, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else "memtool --help lists the verbs"
    raise MemtoolError(f"there is no verb {name!r}", hint=hint)


class _Parser(argparse.ArgumentParser):
    """An argparse parser whose complaints are ours."""

    def error(self, message: str) -> NoReturn:
        raise MemtoolError(f"{self.prog}: {message}", hint=f"{self.prog} --help")


def parser(verb: Interface) -> argparse.ArgumentParser:
    """Build the parser of one verb from its interface."""
    built = _Parser(
        prog=f"memtool {verb.name}",
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    has_positional = any(parameter.is_positional for parameter in verb.parameters)
    for parameter in verb.parameters:
        if parameter.is_positional:
            _add_positional(built, parameter)
        else:
            _add_option(built, parameter, greedy=not has_positional)
    built.add_argument("--json", action="store_true", help="print JSON", dest="as_json")
    built.add_argument(
        "-C", default=None, metavar="DIR", dest="directory", help="the repository to work in"
    )
    return built


def _add_positional(built: argparse.ArgumentParser, parameter: Parameter) -> None:
    metavar = parameter.name.rstrip("_").upper()
    nargs = "*" if parameter.is_many else (None if parameter.is_required else "?")
    options: dict[str, Any] = {} if nargs is None else {"nargs": nargs}
    if parameter.choices:
        options["choices"] = parameter.choices
        metavar = "|".join(parameter.choices)
    if nargs == "?":
        options["default"] = parameter.default
    built.add_argument(
        parameter.name, metavar=metavar, type=parameter.kind, help=parameter.help, **options
    )


def _add_option(built: argparse.ArgumentParser, parameter: Parameter, *, greedy: bool) -> None:
    options: dict[str, Any] = {"help": parameter.help, "dest": parameter.name}
    if parameter.kind is bool:
        built.add_argument(parameter.flag, action="store_true", **options)
        return
    options["type"] = parameter.kind
    if parameter.choices:
        options["choices"] = parameter.choices
    else:
        options["metavar"] = {int: "N", float: "X"}.get(
            parameter.kind, parameter.name.rstrip("_").upper()
        )
    if parameter.is_many:
        # `--files a b` reads well where no positional argument could be swallowed by it.
        options |= {"action": "extend", "nargs": "+"} if greedy else {"action": "append"}
    built.add_argument(
        parameter.flag, default=None if parameter.is_many else parameter.default, **options
    )


def _call(verb: Verb, directory: str, words: list[str]) -> Call:
    face = interface(verb)
    found = vars(parser(face).parse_intermixed_args(words))
    positional: list[Any] = []
    options = {}
    for parameter in face.parameters:
        value = found[parameter.name]
        if parameter.is_many:
            value = tuple(value or ())
        if not parameter.is_positional:
            options[parameter.name] = value
        elif parameter.is_many:
            positional.extend(value)
        else:
            positional.append(value)
    return Call(
        verb=verb,
        directory=found["directory"] or directory,
        as_json=found["as_json"],
        positional=tuple(positional),
        options=options,
    )


def overview() -> str:
    """Return the help page of memtool itself."""
    lines = [
        "usage: memtool [-C DIR] VERB [--json] …",
        "",
        "Git-native memory for coding agents: one reviewed markdown file per memory.",
    ]
    for group, title in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {verb.name:<11}{verb.summary}" for verb in VERBS if verb.group == group]
    lines += ["", "memtool VERB --help explains a verb, with an example."]
    return "\n".join(lines) + "\n"


def help_page(verb: Verb) -> str:
    """Return the help page of one verb."""
    face = interface(verb)
    built = parser(face)
    built.description = "\n\n".join(filter(None, (face.summary, face.description)))
    if face.example:
        built.epilog = "example:\n" + "\n".join(f"  {row}" for row in face.example.splitlines())
    return built.format_help()
