"""The tables of an index: the files that it was made from, the memories in them, and their terms.

An index is one database (see `store/state.py`). Each memory has a number, which is never used again
for another file. `docs/state.md` explains every column.
"""

from __future__ import annotations

from memtool.store.state import Schema, Table

SCHEMA = Schema(
    3,
    (
        Table("meta", "name TEXT, value", 1),
        Table(
            "folder",
            "path BLOB, size INT, mtime INT, ctime INT, inode INT, files INT, doubtful BLOB, "
            "problems BLOB",
            1,
        ),
        Table("listing", "folder BLOB, names BLOB, statuses BLOB, numbers BLOB", 1, is_wide=True),
        Table(
            "memory",
            "number INTEGER, id TEXT, path BLOB, oid BLOB, kind INT, begin INT, until INT, "
            "due INT, written INT, length INT, head_length INT, thread TEXT, thread_place TEXT, "
            "fields TEXT",
            1,
            is_wide=True,
            indexes=(
                "id",
                "kind",
                "written",
                "begin WHERE begin IS NOT NULL",
                "until, kind WHERE until IS NOT NULL",
                "due WHERE due IS NOT NULL",
                "thread WHERE thread IS NOT NULL",
            ),
        ),
        Table("content", "number INTEGER, body BLOB, text BLOB", 1, is_wide=True),
        Table("posting", "term TEXT, chunk INT, heads INT, top REAL, data BLOB", 2, is_wide=True),
        Table("link", "number INT, place INT, new TEXT, old TEXT, is_proposed INT", 2),
        Table("named", "key TEXT, item TEXT, number INT", 3),
        Table("kind", "number INT, fields TEXT", 1),
        Table("masked", "number INT, kinds TEXT", 1),
        Table("clean", "oid BLOB", 1),
        Table("twin", "id TEXT", 1),
        Table("dictionary", "name TEXT, words BLOB", 1),
    ),
)
