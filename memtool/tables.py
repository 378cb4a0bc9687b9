"""Tables of data that code reads: one row a line in `PACKAGE/data/NAME.tsv`.

    # a comment for those who add rows
    kind<TAB>prefix
    slack-token<TAB>xoxb-

Fields contain no tab and no line feed, and are not quoted: a search reads some of these files, and
importing `csv` would slow its cold start. Rows with patterns or lists are tables of plain TOML, in
`NAME.toml`. `tests/test_tables.py` checks the form of every file.
"""

from __future__ import annotations

import os

from memtool.plain_toml import read_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "data"


def read_rows(name: str) -> list[list[str]]:
    """Return the rows of a table such as `index/stop_words`, without the names of its columns."""
    lines = read(f"{name}.tsv").split("\n")
    return [line.split("\t") for line in lines if line and line[0] != "#"][1:]


def read_words(name: str) -> list[str]:
    """Return the rows of a table with one column."""
    return [line for line in read(f"{name}.tsv").split("\n") if line and line[0] != "#"][1:]


def group_rows(name: str) -> dict[str, list[str]]:
    """Return the second column of a table by its first."""
    groups: dict[str, list[str]] = {}
    for group, word in read_rows(name):
        groups.setdefault(group, []).append(word)
    return groups


def read_toml(name: str) -> dict[str, Any]:
    """Return the tables of a file such as `redaction/shapes`, which is plain TOML."""
    return read_plain(read(f"{name}.toml")) or {}


def read(name: str) -> str:
    """Return the text of a file of data such as `search/aliases.toml`."""
    room, _, file_name = name.partition("/")
    with open(os.path.join(_find_folder(room), file_name), encoding="utf-8", newline="\n") as file:
        return file.read()


def list_names(room: str) -> list[str]:
    """Return the names of the files of data of a room, sorted."""
    return sorted(os.listdir(_find_folder(room)))


def read_code(room: str) -> list[str]:
    """Return the texts of the modules of a room, sorted by name."""
    folder = os.path.dirname(_find_folder(room))
    texts = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                texts.append(file.read())
    return texts


def _find_folder(room: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), room, FOLDER)
