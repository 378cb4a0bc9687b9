"""The manual: help pages, and the reference in `docs/`, both made of signatures and tables.

python -m memtool.cli.manual > docs/reference.md
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from importlib import import_module

from memtool.calls.signature import Interface, Parameter, interface, parse_docstring
from memtool.cli.arguments import EXIT_CODES, HelpPage, label
from memtool.commands import GROUPS, VERBS, names
from memtool.errors import ERROR_CODES
from memtool.memory.fields import CATEGORIES, FIELDS, Field
from memtool.memory.lifecycle import PRESETS
from memtool.memory.schema import CODES
from memtool.search.filters import FILTERS
from memtool.search.query import FILTER_VALUES
from memtool.search.ranking import FACTORS
from memtool.store.config import OPTIONS, Option
from memtool.store.repository import ENVIRONMENT

WIDTH = 100
_GAP = 26
"""Columns before the help text of an option."""
EVERYWHERE = (
    ("--json", "print JSON, errors too"),
    ("-C DIR", "work in the repository of this directory"),
    ("--global", "work on your global memories, which hold in all of your projects"),
    ("-h, --help", "show this page"),
)
"""The help of the options that every verb takes."""


def text(page: HelpPage) -> str:
    """Return the text of a help page."""
    if page.actions:
        return of_actions(page.actions)
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
        lines += [f"  {name:<11}{row[1]}" for name, row in names().items() if row[0] == group]
    lines += [
        "",
        "memtool VERB --help explains a verb, with an example.",
        "Exit codes: 0 fine, 1 problems found, 2 a wrong call, setting or state of git, 3 a bug.",
    ]
    return "\n".join(lines) + "\n"


def of_actions(name: str) -> str:
    """Return the help page of a verb that has actions."""
    verbs = [verb for verb in VERBS if verb.name.startswith(f"{name} ")]
    module = import_module(f"memtool.commands.{verbs[0].module}")
    summary, description, sections = parse_docstring(module.__doc__ or "")
    rows = [(verb.name.partition(" ")[2], verb.summary) for verb in verbs]
    blocks = [
        f"usage: memtool {name} [ACTION] …",
        summary,
        *_paragraphs(description),
        _rows("actions", rows),
        _rows("options", EVERYWHERE),
        _example("\n".join(sections["Example"])),
        f"memtool {name} ACTION --help explains an action; without one it is {rows[0][0]}.",
    ]
    return "\n\n".join(blocks) + "\n"


def of_verb(face: Interface) -> str:
    """Return the help page of one verb, or of one action."""
    blocks = [_wrapped("usage: ", usage(face)), face.summary, *_paragraphs(face.description)]
    if face.positional:
        blocks.append(_rows("arguments", [(p.metavar, explained(p)) for p in face.positional]))
    options = [(name_of(option), option.help) for option in face.options]
    blocks.append(_rows("options", [*options, *EVERYWHERE]))
    if face.example:
        blocks.append(_example(face.example))
    return "\n\n".join(blocks) + "\n"


def _paragraphs(description: str) -> list[str]:
    return [textwrap.fill(part, WIDTH) for part in description.split("\n\n") if part]


def _example(text: str) -> str:
    return "example:\n" + textwrap.indent(text, "  ")


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
    """Return a parameter as a usage line shows it: `TITLE`, or `--tag TAG`."""
    if parameter.is_positional or parameter.kind is bool:
        return label(parameter)
    return f"{parameter.flag} {parameter.metavar}"


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
        glued,
        WIDTH,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace("\0", " ")


def _rows(title: str, rows: Iterable[tuple[str, str]]) -> str:
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


COMMAND = "python -m memtool.cli.manual > docs/reference.md"


def reference() -> str:
    """Return the page. It depends on nothing but the tables and signatures."""
    parts = [
        "# Reference",
        f"Made from the tables in the code by `{COMMAND}`; a test compares them.",
        (
            "[Verbs](#verbs) · [Query language](#query-language) · [Fields](#fields) · "
            "[Categories](#categories) · [Decay](#decay) · [Ranking factors](#ranking-factors) · "
            "[Settings](#settings) · [Problem codes](#problem-codes) · "
            "[Error codes](#error-codes) · [Exit codes](#exit-codes) · [Environment](#environment)"
        ),
        *_verbs(),
        *_query_language(),
        *_fields(),
        *_categories(),
        *_decay(),
        *_factors(),
        *_settings(),
        "## Problem codes",
        "What `path:line: CODE message` may say, and `code` in JSON.",
        _table(("code", "meaning"), ((f"`{code}`", text) for code, text in CODES.items())),
        "## Error codes",
        "The `code` of a refusal, as `--json` prints it on stderr.",
        _table(("code", "meaning"), ((f"`{code}`", text) for code, text in ERROR_CODES.items())),
        "## Exit codes",
        "A reader that closes the pipe, such as `head`, is no error.",
        _table(("code", "meaning"), ((f"{code}", text) for code, text in EXIT_CODES.items())),
        "## Environment",
        "Git's own variables, such as `GIT_AUTHOR_NAME`, are read by git.",
        _table(("variable", "meaning"), ((_code(name), doc) for name, doc in ENVIRONMENT.items())),
    ]
    return "\n\n".join(parts) + "\n"


def _verbs() -> list[str]:
    parts = [
        "## Verbs",
        (
            "Options may stand anywhere; `--option=value` and `--option value` mean the same, and "
            "after `--` every word is an argument. Every verb takes these as well:"
        ),
        _table(("option", "meaning"), ((f"`{name}`", text) for name, text in EVERYWHERE)),
    ]
    for group, title in GROUPS.items():
        found = [verb.name for verb in VERBS if verb.group == group]
        parts.append(
            f"{title.capitalize()}: " + ", ".join(f"[{n}](#{n.replace(' ', '-')})" for n in found)
        )
    for verb in VERBS:
        parts += _verb(interface(verb))
    return parts


def _verb(face: Interface) -> list[str]:
    parts = [f"### {face.name}", face.summary, f"```\n{usage(face)}\n```"]
    parts += [" ".join(part.split()) for part in face.description.split("\n\n") if part]
    rows = [(f"`{name_of(parameter)}`", explained(parameter)) for parameter in face.parameters]
    if rows:
        parts.append(_table(("parameter", "meaning"), rows))
    return [*parts, f"```console\n{_prompted(face.example)}\n```"]


def _prompted(example: str) -> str:
    return "\n".join(f"$ {row}" if row[:1].strip() else row for row in example.splitlines())


def _query_language() -> list[str]:
    return [
        "## Query language",
        (
            "The same in `list`, `search`, `forget` and `export`. Words are ranked: one at least "
            'has to occur. `"a phrase"` must occur as it is, `-word` must not, `OR` and '
            "parentheses give alternatives, and filters must hold."
        ),
        _table(
            ("filter", "takes", "matches"),
            ((f"`{row.name}:`", FILTER_VALUES[row.name], row.doc) for row in FILTERS.values()),
        ),
    ]


def _fields() -> list[str]:
    return [
        "## Fields",
        (
            "The keys of a memory's frontmatter. Keys that may not change belong to the claim: "
            "once a memory is confirmed and committed, a changed claim is a new memory that "
            "supersedes it. Unknown keys are refused; a key of your own begins with `x-` and "
            "holds one line."
        ),
        _table(
            ("key", "holds", "may change", "meaning"),
            (
                (f"`{field.name}`", _holds(field), "yes" if field.mutable else "", field.doc)
                for field in FIELDS
            ),
        ),
    ]


def _holds(field: Field) -> str:
    parts = [field.kind]
    if field.required:
        parts.insert(0, "required")
    if field.choices:
        parts.append(" ".join(f"`{choice}`" for choice in field.choices))
    if field.default:
        parts.append(f"by default `{field.default}`")
    return ", ".join(parts)


def _categories() -> list[str]:
    return [
        "## Categories",
        (
            "How much a kind of knowledge weighs, how long it lives without being confirmed again, "
            "and its [rates of decay](#decay) per day. Rows are changed or added under "
            "`[categories.NAME]` of `config.toml`, where `decay_per_day` is both rates."
        ),
        _table(
            ("category", "weight", "days to live", "rate", "λ", "temporal class", "meaning"),
            (
                (
                    f"`{row.name}`",
                    f"{row.weight:g}",
                    f"{row.ttl_days}",
                    f"{row.decay_per_day:g}",
                    f"{row.lambda_per_day:g}",
                    row.temporal_class,
                    row.doc,
                )
                for row in CATEGORIES
            ),
        ),
    ]


def _decay() -> list[str]:
    return [
        "## Decay",
        (
            "What time leaves of a memory, so many days after its last confirmation, by the "
            "setting `decay.preset`. A `fade_rate` of its own stands in for the rate or λ of its "
            "category; what is pinned or has `fade_rate: 0` does not fade at all. Accesses count "
            "as the table says, unless `decay.accesses` is set."
        ),
        _table(
            ("preset", "what is left", "accesses count", "scales in the ranking"),
            (
                (
                    f"`{name}`",
                    row.doc,
                    "yes" if row.counts else "no",
                    "freshness and importance" if row.scales else "freshness",
                )
                for name, row in PRESETS.items()
            ),
        ),
    ]


def _factors() -> list[str]:
    return [
        "## Ranking factors",
        (
            "The score of a memory is its relevance to the words, times each of these, as "
            "`memtool search --explain` shows them."
        ),
        _table(
            ("factor", "least", "most", "meaning"),
            ((f"`{row.name}`", f"{row.least:g}", f"{row.most:g}", row.doc) for row in FACTORS),
        ),
    ]


def _settings() -> list[str]:
    return [
        "## Settings",
        (
            "Kept in `config.toml` of the memory directory; `memtool config KEY VALUE` changes "
            "one. Written by hand beside them are categories, under `[categories.NAME]`, and trust "
            "rules, under `[[trust.rules]]` ([For teams](teams.md#8-who-may-decide-what))."
        ),
        _table(
            ("setting", "default", "allowed", "meaning"),
            ((f"`{row.key}`", _default(row), _allowed(row), row.doc) for row in OPTIONS),
        ),
    ]


def _default(row: Option) -> str:
    if row.default in ("", (), {}):
        return "none"
    return f"`{str(row.default).lower() if isinstance(row.default, bool) else row.default}`"


def _allowed(row: Option) -> str:
    if row.choices:
        return " ".join(f"`{choice}`" for choice in row.choices)
    if isinstance(row.default, tuple | dict):
        return "a list of texts" if isinstance(row.default, tuple) else "a table of reasons"
    if isinstance(row.default, bool):
        return "`true` `false`"
    return "text" if isinstance(row.default, str) else f"{row.least:g} to {row.most:,.9g}"


def _code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.buffer.write(reference().encode())
