"""The manual: help pages, and the reference in `docs/`, both from signatures and tables.

python -m memtool.cli.manual > docs/reference.md
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from importlib import import_module

from memtool.calls.docstring import Rows, parse_blocks, parse_docstring
from memtool.calls.signature import Interface, Parameter, read_interface
from memtool.cli.arguments import HelpPage, format_label
from memtool.cli.topics import COMMON_OPTIONS, QUERY_SYNTAX, TOPICS, Topic, format_default
from memtool.commands import GROUPS, VERBS, names
from memtool.errors import ERROR_CODES, EXIT_CODES
from memtool.memory.fields import CATEGORIES, FIELDS, Field
from memtool.memory.lifecycle import PRESETS
from memtool.memory.schema import CODES
from memtool.search.filters import FILTERS
from memtool.search.query import FILTER_VALUES, STATES
from memtool.search.ranking import FACTORS
from memtool.store.config import OPTIONS, Option
from memtool.store.repository import ENVIRONMENT

WIDTH = 80
MAX_TERM_WIDTH = 30
"""Columns above which a term of a table has a line of its own."""
INTRODUCTION = "Git-native memory for coding agents: reviewed markdown files in .memory/."


def render_page(page: HelpPage) -> str:
    """Return the text of a help page."""
    if page.actions:
        return render_actions(page.actions)
    if page.topic:
        return render_topic(TOPICS[page.topic])
    if page.verb is not None:
        return render_verb(read_interface(page.verb))
    return render_all() if page.is_all else render_overview()


def render_overview() -> str:
    """Return the help page of memtool itself: the daily verbs, by task."""
    daily_verbs = [verb for verb in VERBS if verb.is_daily]
    groups = {
        title: [(verb.name, verb.summary) for verb in daily_verbs if verb.group == group]
        for group, title in GROUPS.items()
    }
    topics = f"Topics (memtool help TOPIC): {', '.join(TOPICS)}"
    blocks = [
        INTRODUCTION,
        "usage: memtool VERB …",
        *_groups(groups),
        textwrap.fill(topics, WIDTH, subsequent_indent="  ", break_on_hyphens=False),
        f"One verb: memtool VERB --help. All {len(names())} verbs: memtool help --all",
    ]
    return "\n\n".join(blocks) + "\n"


def render_all() -> str:
    """Return the help page with every verb and topic."""
    groups = {
        title: [(name, row[1]) for name, row in names().items() if row[0] == group]
        for group, title in GROUPS.items()
    }
    groups["topics (memtool help TOPIC)"] = [(t.name, t.summary) for t in TOPICS.values()]
    return "\n\n".join([INTRODUCTION, "usage: memtool VERB …", *_groups(groups)]) + "\n"


def _groups(groups: dict[str, list[tuple[str, str]]]) -> list[str]:
    """Format tables with a common width of their first column, without the empty ones."""
    width = max(len(name) for rows in groups.values() for name, _summary in rows)
    return [_rows(title.capitalize(), rows, width) for title, rows in groups.items() if rows]


def render_topic(topic: Topic) -> str:
    """Return the help page of a topic."""
    return "\n\n".join(map(_block, topic.build())) + "\n"


def render_actions(name: str) -> str:
    """Return the help page of a verb that has actions."""
    verbs = [verb for verb in VERBS if verb.name.startswith(f"{name} ")]
    module = import_module(f"memtool.commands.{verbs[0].module}")
    summary, description, sections = parse_docstring(module.__doc__ or "")
    rows = [(verb.name.partition(" ")[2], verb.summary) for verb in verbs]
    blocks = [
        summary,
        f"usage: memtool {name} [ACTION] …",
        *map(_block, parse_blocks(description)),
        _rows(f"actions (without one: {rows[0][0]})", rows),
        _example("\n".join(sections["Example"])),
        f"One action: memtool {name} ACTION --help",
    ]
    return "\n\n".join(blocks) + "\n"


def render_verb(face: Interface) -> str:
    """Return the help page of one verb, or of one action."""
    blocks = [
        face.summary,
        _wrap("usage: ", format_short_usage(face)),
        *map(_block, parse_blocks(face.description)),
    ]
    for title, parameters in (("arguments", face.positional), ("options", face.options)):
        if parameters:
            rows = [(format_name(p), format_help(p, face.description)) for p in parameters]
            blocks.append(_rows(title, rows))
    return "\n\n".join([*blocks, _example(face.example)]) + "\n"


def _block(block: str | Rows) -> str:
    if isinstance(block, Rows):
        return _rows(block.title, block.rows)
    return textwrap.fill(block, WIDTH, break_long_words=False, break_on_hyphens=False)


def _example(text: str) -> str:
    title = "examples" if "\n" in text else "example"
    return f"{title}:\n" + textwrap.indent(text, "  ")


def format_short_usage(face: Interface) -> str:
    """Return the usage of a verb with its arguments only."""
    return " ".join([*_usage_parts(face), *(["[options]"] if face.options else [])])


def format_usage(face: Interface) -> str:
    """Return the usage of a verb with its arguments and options."""
    return " ".join([*_usage_parts(face), *(f"[{format_name(option)}]" for option in face.options)])


def _usage_parts(face: Interface) -> list[str]:
    parts = [f"memtool {face.name}"]
    for parameter in face.positional:
        name = parameter.metavar + (" …" if parameter.is_many else "")
        parts.append(name if parameter.is_required else f"[{name}]")
    return parts


def format_name(parameter: Parameter) -> str:
    """Return a parameter as in a usage line: `TITLE`, or `--tag TAG`."""
    if parameter.is_positional or parameter.kind is bool:
        return format_label(parameter)
    return f"{parameter.flag} {parameter.metavar}"


def format_help(parameter: Parameter, description: str) -> str:
    """Return the help of a parameter, with its choices if the page does not name them elsewhere."""
    shown = f"{parameter.help} {parameter.metavar} {description}"
    if all(choice in shown for choice in parameter.choices):
        return parameter.help
    return f"{parameter.help}: {', '.join(parameter.choices)}"


def _wrap(label: str, line: str) -> str:
    # A line break inside `[--tag TAG]` reads badly.
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


def _rows(title: str, rows: Sequence[tuple[str, str]], width: int = 0) -> str:
    """Format a table. `width` is that of the first column, by default its longest term."""
    widths = [len(term) for term, _text in rows if len(term) <= MAX_TERM_WIDTH]
    width = width or max(widths, default=0)
    lines = [f"{title}:"] if title else []
    indent = " " * (width + 4)
    for term, text in rows:
        start = f"  {term}"
        if len(term) > width:
            lines.append(start)
            start = ""
        lines.append(
            textwrap.fill(
                text,
                WIDTH,
                initial_indent=f"{start:<{width + 4}}",
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
    return "\n".join(lines)


COMMAND = "python -m memtool.cli.manual > docs/reference.md"


def render_reference() -> str:
    """Return `docs/reference.md`. It only depends on the tables and signatures."""
    parts = [
        "# Reference",
        "For all readers: every verb, filter, field, setting, code and environment variable.",
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
            "Options may appear anywhere; `--option=value` and `--option value` mean the same, and "
            "after `--` every word is an argument. Every verb takes these as well:"
        ),
        _table(("option", "meaning"), ((f"`{name}`", text) for name, text in COMMON_OPTIONS)),
    ]
    for group, title in GROUPS.items():
        group_verbs = [verb.name for verb in VERBS if verb.group == group]
        parts.append(
            f"{title.capitalize()}: "
            + ", ".join(f"[{n}](#{n.replace(' ', '-')})" for n in group_verbs)
        )
    for verb in VERBS:
        parts += _verb(read_interface(verb))
    return parts


def _verb(face: Interface) -> list[str]:
    parts = [f"### {face.name}", face.summary, f"```\n{format_usage(face)}\n```"]
    parts += [
        block if isinstance(block, str) else _format_rows(block)
        for block in parse_blocks(face.description)
    ]
    rows = [(f"`{format_name(p)}`", format_help(p, face.description)) for p in face.parameters]
    if rows:
        parts.append(_table(("parameter", "meaning"), rows))
    return [*parts, f"```console\n{_add_prompts(face.example)}\n```"]


def _format_rows(block: Rows) -> str:
    terms = ((_code(term), text) for term, text in block.rows)
    return _table((block.title or "case", "meaning"), terms)


def _add_prompts(example: str) -> str:
    return "\n".join(f"$ {row}" if row[:1].strip() else row for row in example.splitlines())


def _query_language() -> list[str]:
    return [
        "## Query language",
        "The same in `list`, `search`, `export` and verbs that change memories, such as `confirm`.",
        _table(("query", "meaning"), ((f"`{term}`", text) for term, text in QUERY_SYNTAX)),
        _table(
            ("filter", "takes", "matches"),
            ((f"`{row.name}:`", FILTER_VALUES[row.name], row.doc) for row in FILTERS.values()),
        ),
        _table(("state", "meaning"), ((f"`is:{name}`", text) for name, text in STATES.items())),
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
                (
                    f"`{field.name}`",
                    _describe_values(field),
                    "yes" if field.mutable else "",
                    field.doc,
                )
                for field in FIELDS
            ),
        ),
    ]


def _describe_values(field: Field) -> str:
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
            "as the table says."
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
            "`memtool search --explain` shows them. A memory that the text names scores as much as "
            "the best of the others; the factor `named` is the difference."
        ),
        _table(
            ("factor", "least", "most", "meaning"),
            ((f"`{row.name}`", f"{row.minimum:g}", f"{row.maximum:g}", row.doc) for row in FACTORS),
        ),
    ]


def _settings() -> list[str]:
    return [
        "## Settings",
        (
            "Kept in `config.toml` of the memory directory; `memtool config KEY VALUE` changes "
            "one. Also in the file are categories, under `[categories.NAME]`, and trust "
            "rules, under `[[trust.rules]]` ([For teams](teams.md#8-who-may-decide-what))."
        ),
        _table(
            ("setting", "default", "allowed", "meaning"),
            ((f"`{row.key}`", _default(row), _allowed(row), row.doc) for row in OPTIONS),
        ),
    ]


def _default(row: Option) -> str:
    text = format_default(row)
    return text if text == "none" else f"`{text}`"


def _allowed(row: Option) -> str:
    if row.choices:
        return " ".join(f"`{choice}`" for choice in row.choices)
    if isinstance(row.default, tuple | dict):
        return "a list of texts" if isinstance(row.default, tuple) else "a table of reasons"
    if isinstance(row.default, bool):
        return "`true` `false`"
    return "text" if isinstance(row.default, str) else f"{row.minimum:g} to {row.maximum:,.9g}"


def _code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.buffer.write(render_reference().encode())
