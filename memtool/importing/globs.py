"""Globs of other tools, converted to those of `files`: `*`, `?` and `**`, nothing else.

Braces and small character classes are expanded. A glob for every file governs the whole directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memtool.memory import schema
from memtool.value import Value

MAX_EXPANDED = 64
"""Globs that one glob with braces may become."""
_ALL = frozenset({"**", "**/*", "*", "**/**", "**/*.*", "*.*", ".", "**/**/*"})
_CLASS = re.compile(r"\[([A-Za-z0-9]{1,6})\]")
_EXTENDED = re.compile(r"([@?*+!])\(([^()]*)\)")
_DYNAMIC_NAME = re.compile(r"\[+(?:\.\.\.)?[\w-]+\]+(?:\.[\w.]+)?|\(+[\w.-]+\)+")
"""A name that really has brackets, such as `[id]`, `[...slug].tsx` or `(shop)`."""


class Scope(Value):
    """The files that a rule governs, none for all. `faults` are left-out globs, and why."""

    files: tuple[str, ...]
    faults: tuple[tuple[str, str], ...] = ()


def build_scope(value: Any, folder: str = "", *, matches_names: bool = False) -> Scope:
    """Build the scope of a value such as `src/**/*.{ts,tsx}, *.css`, relative to a folder.

    With `matches_names`, a glob without a slash matches in every directory, as in .gitignore.
    """
    files: dict[str, None] = {}
    faults: list[tuple[str, str]] = []
    covers_all = False
    globs = list(split_globs(value))
    for glob in globs:
        try:
            names = list(_expand(glob))
        except ValueError as error:
            faults.append((glob, str(error)))
            continue
        for name in names:
            place = _place(name, folder, matches_names=matches_names)
            if place in ("", folder):
                covers_all = True
            elif schema.is_inside(place) and schema.is_line(place):
                files[place] = None
            else:
                faults.append((glob, "it leaves the repository"))
                break
    if covers_all or not globs:
        files = {f"{folder}/**": None} if folder else {}
    if len(files) > schema.MAX_ITEMS:
        dropped = list(files)[schema.MAX_ITEMS :]
        faults.append((dropped[0], f"only {schema.MAX_ITEMS} fit, it and {len(dropped) - 1} more"))
    return Scope(tuple(files)[: schema.MAX_ITEMS], tuple(faults))


def split_globs(value: Any) -> Iterator[str]:
    """Yield the globs of a list, or of a text with commas; those inside of braces do not count."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from split_globs(item)
        return
    text = str(value or "").strip()
    if text.startswith("[") and text.endswith("]") and ("," in text or '"' in text or "'" in text):
        text = text[1:-1]
    depth, part = 0, ""
    for char in f"{text},":
        depth += (char in "{(") - (char in "})")
        if char in ",\n" and depth <= 0:
            glob = part.strip().strip("\"'").strip()
            part = ""
            if glob:
                yield glob
        else:
            part += char
    if part.strip(" ,"):
        yield part.removesuffix(",").strip()


def _expand(glob: str) -> Iterator[str]:
    """Yield the globs without braces and classes. Raises ValueError, with the reason."""
    if glob.startswith("!"):
        raise ValueError("it excludes files")
    todo: list[str] = [glob.replace("\\", "/") if "/" not in glob else glob]
    results: list[str] = []
    while todo:
        if len(todo) + len(results) > MAX_EXPANDED:
            raise ValueError(f"it stands for more than {MAX_EXPANDED} globs")
        current = todo.pop(0)
        alternatives = _expand_once(current)
        if alternatives is None:
            results.append(current)
        else:
            todo += alternatives
    yield from dict.fromkeys(results)


def _expand_once(glob: str) -> list[str] | None:
    """Return the alternatives of the first braces, group or class; None if there are none."""
    extended = _EXTENDED.search(glob)
    if extended and not _DYNAMIC_NAME.fullmatch(_find_part(glob, extended.start())):
        sign, content = extended.groups()
        if sign in "!*+":
            raise ValueError(f"{extended[0]} has no counterpart")
        options = content.split("|") + ([""] if sign == "?" else [])
        return [glob[: extended.start()] + text + glob[extended.end() :] for text in options]
    start = glob.find("{")
    if start >= 0:
        end, options = _read_braces(glob, start)
        return [glob[:start] + text + glob[end:] for text in options]
    for match in _CLASS.finditer(glob):
        if not _DYNAMIC_NAME.fullmatch(_find_part(glob, match.start())):
            return [glob[: match.start()] + char + glob[match.end() :] for char in match[1]]
    return None


def _find_part(glob: str, at: int) -> str:
    """Return the name between slashes around a position."""
    start = glob.rfind("/", 0, at) + 1
    end = glob.find("/", at)
    return glob[start : end if end >= 0 else len(glob)]


def _read_braces(glob: str, start: int) -> tuple[int, list[str]]:
    """Return the end of the braces at a position, and their alternatives."""
    depth, options, part = 0, [], ""
    for at in range(start, len(glob)):
        char = glob[at]
        depth += (char == "{") - (char == "}")
        if depth == 0:
            options.append(part)
            if len(options) == 1 and ".." in part:
                raise ValueError(f"{{{part}}} is a range")
            return at + 1, options
        if char == "," and depth == 1:
            options.append(part)
            part = ""
        elif not (char == "{" and depth == 1):
            part += char
    raise ValueError("a brace is never closed")


def _place(glob: str, folder: str, *, matches_names: bool) -> str:
    """Return a glob from the top of the repository; empty, or the folder, if it covers all."""
    name = glob.removeprefix("./")
    is_rooted = name.startswith("/")
    name = name.lstrip("/").rstrip("/")
    if name in _ALL or not name:
        return folder
    if matches_names and "/" not in name and not is_rooted:
        name = f"**/{name}"
    is_below = name == folder or name.startswith(f"{folder}/")
    return name if not folder or is_below else f"{folder}/{name}"


def join_faults(faults: Iterable[tuple[str, str]]) -> Sequence[str]:
    """Return a sentence for each glob that was left out."""
    return [f"the glob {glob!r} is left out: {why}" for glob, why in faults]
