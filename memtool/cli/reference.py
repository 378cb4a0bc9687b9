"""The reference: every table and signature of memtool as one markdown page, `docs/reference.md`.

python -m memtool.cli.reference > docs/reference.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from memtool.cli.pages import EVERYWHERE, explained, name_of, usage
from memtool.cli.running import EXIT_CODES
from memtool.cli.signature import Interface, interface
from memtool.commands import GROUPS, VERBS
from memtool.errors import ERROR_CODES
from memtool.memory.categories import CATEGORIES
from memtool.memory.fields import FIELDS, Field
from memtool.memory.problem import CODES
from memtool.search.filters import FILTERS
from memtool.store.environment import ENVIRONMENT
from memtool.store.options import OPTIONS, Option

COMMAND = "python -m memtool.cli.reference > docs/reference.md"


def reference() -> str:
    """Return the page. It depends on nothing but the tables and signatures."""
    parts = [
        "# Reference",
        f"Made from the tables in the code by `{COMMAND}`; a test compares them.",
        (
            "[Verbs](#verbs) · [Query language](#query-language) · [Fields](#fields) · "
            "[Categories](#categories) · [Settings](#settings) · [Problem codes](#problem-codes) · "
            "[Error codes](#error-codes) · [Exit codes](#exit-codes) · [Environment](#environment)"
        ),
        *_verbs(),
        *_query_language(),
        *_fields(),
        *_categories(),
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
        names = [verb.name for verb in VERBS if verb.group == group]
        parts.append(f"{title.capitalize()}: " + ", ".join(f"[{n}](#{n})" for n in names))
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
            ((f"`{row.name}:`", row.takes, row.doc) for row in FILTERS.values()),
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
        ("How much a kind of knowledge weighs, how long it lives without being confirmed again, "
        "and how it fades. Rows are changed or added under `[categories.NAME]` of `config.toml`."),
        _table(
            ("category", "weight", "days to live", "decay per day", "temporal class", "meaning"),
            (
                (f"`{row.name}`", f"{row.weight:g}", f"{row.ttl_days}", f"{row.decay_per_day:g}",
                 row.temporal_class, row.doc)
                for row in CATEGORIES
            ),
        ),
    ]  # fmt: skip


def _settings() -> list[str]:
    return [
        "## Settings",
        "Kept in `config.toml` of the memory directory; `memtool config KEY VALUE` changes one.",
        _table(
            ("setting", "default", "allowed", "meaning"),
            (
                (f"`{row.key}`", _default(row), _allowed(row), row.doc)
                for row in OPTIONS
            ),
        ),
    ]  # fmt: skip


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
