"""Asking: the text of a query from its words, a saved query put in the place of its name."""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store.reading import read_regular

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
    from memtool.search import saved  # only here: most queries are written out

    name = saved.name_of(joined)
    if name is None:
        return joined
    path = f"{ws.directory}/{saved.QUERIES_NAME}"
    return saved.expand(joined, name, saved.parse(_file(ws, path), path), path)


def _file(ws: Workspace, path: str) -> bytes | None:
    """Return the bytes of a file, of HEAD in a bare repository; None where there is none."""
    if ws.repository.is_bare:
        return ws.repository.git.run("cat-file", "blob", f"HEAD:{path}", allowed=(0, 128)) or None
    try:
        return read_regular(os.path.join(ws.repository.top, path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise MemtoolError(
            f"{path} cannot be read: {os.strerror(error.errno or 0)}",
            hint=f"make {path} a file that you may read",
            code="bad-query",
        ) from None
