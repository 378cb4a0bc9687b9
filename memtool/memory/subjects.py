"""The code that a memory speaks of: its files, the lines that it cites, the names in its text."""

from __future__ import annotations

import posixpath

from memtool.memory import drift as rules
from memtool.memory.environment import SECTION, parse_environment
from memtool.memory.schema import Source, find_source_fault, parse_source
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.memory import Memory


class Subjects(Value):
    """The code that a memory is about: paths and globs in order, cited lines, and sources.

    `text` is title and body. `sources` are those that git can look up, including the commit at
    which a trace failed.
    """

    files: tuple[str, ...] = ()
    cited: tuple[tuple[str, tuple[int, int]], ...] = ()
    text: str = ""
    sources: tuple[Source, ...] = ()


def find_subjects(memory: Memory) -> Subjects:
    """Return the code that a memory speaks of."""
    sources = [
        source
        for text in memory.items("source")
        if not find_source_fault(text) and (source := parse_source(text)).kind in ("commit", "file")
    ]
    named = [source for source in sources if source.kind == "file"]
    files = [posixpath.normpath(path) for path in memory.items("files")]
    files += [posixpath.normpath(source.target) for source in named]
    cited = {(posixpath.normpath(source.target), source.lines) for source in named if source.lines}
    text = f"{memory.title}\n{memory.body}"
    for path in files:
        cited.update((path, lines) for lines in rules.find_cited_lines(text, path))
    if failed_at := _find_failed_commit(memory.body):
        sources.append(Source("commit", failed_at, None, failed_at))
    return Subjects(tuple(dict.fromkeys(files)), tuple(sorted(cited)), text, tuple(sources))


def _find_failed_commit(body: str) -> str:
    """Return the commit at which a trace failed; empty if unknown."""
    try:
        return parse_environment(body).commit if SECTION in body else ""
    except ValueError:
        return ""


def find_names(subjects: Subjects) -> tuple[str, ...]:
    """Return the distinctive names of a text, sorted, but for the names of its files."""
    text = subjects.text
    for path in sorted(subjects.files, key=len, reverse=True):
        text = text.replace(path, " ").replace(posixpath.basename(path) or path, " ")
    return rules.find_names(text)
