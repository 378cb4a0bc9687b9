"""Formats 2 to 4, which no version of memtool has, and the steps that lead there.

With `tests` on the path, `python -m upkeep.future WORDS…` is memtool with these formats.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from memtool.cli import main
from memtool.memory.memory import Fields, FieldValue
from memtool.store import config, toml
from memtool.upkeep import migration
from memtool.upkeep.migration import FormatStep

NEWEST = 4


def _labelled(fields: Fields) -> Mapping[str, FieldValue | None]:
    return {"privacy": ("internal",)} if fields.get("category") == "warning" else {}


def _flat(fields: Fields, place: str) -> str:
    return f"{fields['type']}/{place.rpartition('/')[2]}"


def _renamed(text: str) -> str:
    limit = toml.read(text.encode(), "config.toml").get("search", {}).get("limit")
    if limit is None:
        return text
    return toml.set_key(toml.set_key(text, "search.limit", None), "inject.candidate_pool", limit)


def _weighed(fields: Fields) -> Mapping[str, FieldValue | None]:
    return {"importance": None} if fields.get("importance") == "0.5" else {}


STEPS = (
    FormatStep("warnings are labelled", keys=_labelled),
    FormatStep("months are no folders", place=_flat, settings=_renamed),
    FormatStep("the usual importance is left out", keys=_weighed),
)

if __name__ == "__main__":
    migration.STEPS, config.FORMAT = STEPS, NEWEST
    sys.exit(main.main(sys.argv[1:]))
