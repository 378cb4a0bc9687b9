"""Stores: where other tools keep knowledge in a repository, by the names of folders and files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from memtool import tables
from memtool.value import Value

MAX_NAMES = 5_000
"""How many files of a folder are looked at to guess its kind."""


_ANY_NOTE = "a.md"
"""A name that fits a pattern which says nothing without its folder."""


SKIPPED_FOLDERS = frozenset(
    ("fixtures", "node_modules", "site-packages", "test", "testdata", "tests", "vendor")
)
"""Folders whose stores are made up, or speak of another project."""


class Store(Value):
    """A folder, or the top, with records of one format.

    `source` is the name of the format. `path` is relative to the top, `.` for the top itself.
    `what` says what its records are called. `first` is the path of the first file that looks like
    one of them.
    """

    source: str
    path: str
    what: str
    first: str


class _Place(Value):
    source: str
    folder: re.Pattern[str] | None
    name: re.Pattern[str]
    what: str


_PLACES = tuple(
    _Place(
        source, None if folder == "-" else re.compile(folder), re.compile(name, re.IGNORECASE), what
    )
    for source, folder, name, what in tables.read_rows("importing/places")
)


def find_stores(paths: Iterable[str]) -> list[Store]:
    """Return the stores among the files of a repository, by path, without those of tests.

    Of stores of one format inside each other, only the outer one is returned.

    The paths are relative to the top.
    """
    stores: dict[tuple[str, str], Store] = {}
    tops: dict[str, list[tuple[_Place, str]]] = {}
    for path in paths:
        folder, _slash, name = path.rpartition("/")
        if folder not in tops:
            is_foreign = not SKIPPED_FOLDERS.isdisjoint(folder.lower().split("/"))
            tops[folder] = [] if is_foreign else _find_tops(folder)
        for place, top in tops[folder]:
            if place.name.fullmatch(name):
                store = Store(place.source, top or ".", place.what, path)
                stores.setdefault((place.source, top), store)
                break
    outer = [store for store in stores.values() if not _has_store_above(store, stores)]
    return sorted(outer, key=lambda store: (store.path, store.source))


def _has_store_above(store: Store, stores: Mapping[tuple[str, str], Store]) -> bool:
    """Return whether a folder above has a store of the same format, which this one belongs to."""
    parts = [] if store.path == "." else store.path.split("/")
    return any((store.source, "/".join(parts[:end])) in stores for end in range(len(parts)))


def _find_tops(folder: str) -> list[tuple[_Place, str]]:
    """Return the places that a folder lies in, each with the topmost folder of the store."""
    parts = folder.split("/") if folder else []
    above = ["/".join(parts[:end]) for end in range(len(parts) + 1)]
    tops = []
    for place in _PLACES:
        pattern = place.folder
        top = next((path for path in above if pattern and pattern.fullmatch(path)), None)
        if top is not None:
            tops.append((place, top))
    return tops


def guess_source(path: str, top: str) -> str:
    """Guess the format of a file or directory from where it lies and the names of its files.

    Return an empty text if none fits, or if several stores lie below.
    """
    name = os.path.relpath(path, os.path.realpath(top)).replace(os.sep, "/")
    if name.startswith("../"):
        name = os.path.basename(path)
    is_folder = os.path.isdir(path)
    names = list_files(path) if is_folder else []
    paths = [below if name == "." else f"{name}/{below}" for below in names] or [name]
    stores = find_stores(paths)
    around = [
        store for store in stores if store.path == "." or f"{name}/".startswith(f"{store.path}/")
    ]
    if stores:
        return max(around, key=lambda store: len(store.path)).source if around else ""
    own = [below for below in names if "/" not in below] if is_folder else [os.path.basename(path)]
    for place in _PLACES:
        if not place.name.fullmatch(_ANY_NOTE) and any(map(place.name.fullmatch, own)):
            return place.source
    return ""


def list_files(path: str) -> Sequence[str]:
    """Return the files below a directory, relative to it; of a large one only some."""
    names: list[str] = []
    for folder, _folders, files in os.walk(path):
        inner = os.path.relpath(folder, path).replace(os.sep, "/")
        names += [file if inner == "." else f"{inner}/{file}" for file in sorted(files)]
        if len(names) > MAX_NAMES:
            break
    return names[:MAX_NAMES]
