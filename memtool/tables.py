"""Tables of data that code reads: one row a line in `ROOM/data/NAME.tsv`, so that a row is no code.

    # what the file is, for whoever adds a row
    kind<TAB>prefix
    slack-token<TAB>xoxb-

Fields hold no tab and no line feed, and nothing is quoted: a search reads some of these files, and
cannot wait for `csv`. `tests/test_tables.py` holds every file to this form.
"""

from __future__ import annotations

import os

FOLDER = "data"


def rows(name: str) -> list[list[str]]:
    """Return the rows of a table such as `index/stop_words`, without the names of its columns."""
    lines = read(f"{name}.tsv").split("\n")
    return [line.split("\t") for line in lines if line and line[0] != "#"][1:]


def words(name: str) -> list[str]:
    """Return the rows of a table with one column."""
    return [line for line in read(f"{name}.tsv").split("\n") if line and line[0] != "#"][1:]


def grouped(name: str) -> dict[str, list[str]]:
    """Return the second column of a table by its first."""
    found: dict[str, list[str]] = {}
    for group, word in rows(name):
        found.setdefault(group, []).append(word)
    return found


def read(name: str) -> str:
    """Return the text of a file of data such as `search/aliases.toml`."""
    room, _, file_name = name.partition("/")
    with open(os.path.join(_folder(room), file_name), encoding="utf-8", newline="\n") as file:
        return file.read()


def names(room: str) -> list[str]:
    """Return the names of the files of data of a room, sorted."""
    return sorted(os.listdir(_folder(room)))


def _folder(room: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), room, FOLDER)
