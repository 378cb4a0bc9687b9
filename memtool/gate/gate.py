"""The gate: every check in one table, and their problems in one order.

`memtool check`, the hook and CI differ in the content that they bring. The rules are the same.
"""

from __future__ import annotations

from memtool.gate import claims, lineage, links, schema, silent, validity
from memtool.gate.checks import secrets
from memtool.memory.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from memtool.gate.content import Content

CHECKS: dict[str, Callable[[Content], Iterable[Problem]]] = {
    "schema": schema.check,
    "secrets": secrets.check,
    "silent": silent.check,
    "lineage": lineage.check,
    "claims": claims.check,
    "links": links.check,
    "validity": validity.check,
}
"""Every check by its name, in the order in which they run."""
_OF_FILES = ("schema", "validity")
"""Checks that judge each file by itself: one that they pass needs no second look."""


def problems(
    content: Content, begin: Callable[[str], None] = lambda _name: None
) -> tuple[Problem, ...]:
    """Return what every check finds, each once, sorted by path, line and code.

    `begin` hears the name of each check before it runs.
    """
    ids = {file.path: file.memory.id for file in content.files if file.memory is not None}
    found = set()
    spoiled: set[str] = set()
    for name, check in CHECKS.items():
        begin(name)
        told = list(check(content))
        if name in _OF_FILES:
            spoiled.update(problem.path for problem in told)
        found |= {
            problem.replace(
                id=problem.id or ids.get(problem.path, ""),
                hint=problem.hint or f"edit {problem.path}",
            )
            for problem in told
        }
    if content.known is not None:
        from memtool.gate import knowledge

        knowledge.keep(content, content.known, spoiled)
    if content.warned is not None:
        found = {p for p in found if p.severity == "error" or p.path in content.warned}
    return tuple(sorted(found, key=lambda p: (p.path, p.line, p.code, p.message, p.hint)))
