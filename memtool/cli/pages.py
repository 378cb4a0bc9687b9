"""Pages: the help of memtool and of each verb, at most 100 columns wide."""

from __future__ import annotations

import textwrap

from memtool import __version__
from memtool.cli.arguments import Page
from memtool.cli.signature import Interface, Parameter, interface
from memtool.commands import GROUPS, VERBS

WIDTH = 100
_GAP = 26
"""Columns before the help text of an option."""
EVERYWHERE = (
    ("--json", "print JSON, errors too"),
    ("-C DIR", "work in the repository of this directory"),
    ("--global", "work on your global memories, which hold in all of your projects"),
    ("-h, --help", "show this page"),
)
"""Options of every verb, which may also stand before it."""


def text(page: Page) -> str:
    """Return the text of a page."""
    if page.name == "version":
        return f"memtool {__version__}\n"
    return overview() if page.verb is None else of_verb(interface(page.verb))


def overview() -> str:
    """Return the help page of memtool itself."""
    lines = [
        "usage: memtool [-C DIR | --global] [--json] VERB …",
        "",
        "Git-native memory for coding agents: one reviewed markdown file per memory.",
    ]
    for group, title in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {verb.name:<11}{verb.summary}" for verb in VERBS if verb.group == group]
    lines += [
        "",
        "memtool VERB --help explains a verb, with an example.",
        "Exit codes: 0 fine, 1 problems found, 2 a wrong call, setting or state of git, 3 a bug.",
    ]
    return "\n".join(lines) + "\n"


def of_verb(face: Interface) -> str:
    """Return the help page of one verb."""
    blocks = [
        _wrapped("usage: ", usage(face)),
        face.summary,
        *(textwrap.fill(part, WIDTH) for part in face.description.split("\n\n") if part),
    ]
    if face.positional:
        blocks.append(_rows("arguments", [(p.metavar, explained(p)) for p in face.positional]))
    options = [(name_of(option), option.help) for option in face.options]
    blocks.append(_rows("options", [*options, *EVERYWHERE]))
    if face.example:
        blocks.append("example:\n" + textwrap.indent(face.example, "  "))
    return "\n\n".join(blocks) + "\n"


def usage(face: Interface) -> str:
    """Return the usage of a verb in one line."""
    parts = [f"memtool {face.name}"]
    for parameter in face.positional:
        many = " …" if parameter.is_many else ""
        name = parameter.metavar + many
        parts.append(name if parameter.is_required else f"[{name}]")
    parts += [f"[{name_of(option)}]" for option in face.options]
    return " ".join(parts)


def name_of(parameter: Parameter) -> str:
    """Return how a parameter stands in a usage line: `TITLE`, or `--tag TAG`."""
    if parameter.is_positional:
        return parameter.metavar
    return parameter.flag if parameter.kind is bool else f"{parameter.flag} {parameter.metavar}"


def explained(parameter: Parameter) -> str:
    """Return the help of a parameter, with the choices where its name in the usage hides them."""
    named = all(choice in parameter.help for choice in parameter.choices)
    if parameter.is_positional and not named:
        return f"{', '.join(parameter.choices)}: {parameter.help}"
    return parameter.help


def _wrapped(label: str, line: str) -> str:
    # Brackets hold together: a break inside `[--tag TAG]` reads badly.
    glued = line.replace(" ", "\0").replace("\0[", " [").replace("]\0", "] ")
    glued = glued.replace("memtool\0", "memtool ", 1)
    filled = textwrap.fill(
        glued, WIDTH, initial_indent=label, subsequent_indent=" " * len(label),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return filled.replace("\0", " ")


def _rows(title: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"{title}:"]
    for name, help_ in rows:
        start = f"  {name}"
        if len(start) + 2 > _GAP:
            lines.append(start)
            start = ""
        lines.append(
            textwrap.fill(
                help_,
                WIDTH,
                initial_indent=f"{start:<{_GAP}}",
                subsequent_indent=" " * _GAP,
                break_on_hyphens=False,
            )
        )
    return "\n".join(lines)
