"""Asking: the text of a query from its words, a saved query put in the place of its name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.workspace import Workspace

SIGN = "@"


def text(ws: Workspace, words: tuple[str, ...]) -> str:
    """Return the query that the words of a command line make.

    Raises:
        MemtoolError: they begin with the name of a query that is not saved, or cannot be read.
    """
    joined = " ".join(words).strip()
    if not joined.startswith(SIGN):
        return joined
    from memtool.search import parser  # only here: most queries are written out

    name = parser.saved_name(joined)
    if name is None:
        return joined
    path = f"{ws.directory}/{parser.QUERIES_NAME}"
    known = parser.parse_saved(ws.file(path, "bad-query"), path)
    return parser.expand_saved(joined, name, known, path)
