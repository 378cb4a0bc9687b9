"""The areas of the map: memories in a tree of folders, or under a tag that they share.

A chain of folders with nothing else in them is one area, and a memory that is alone in a folder
belongs to the folder above. Everything has parts of a size that a reader can take in: a folder with
thousands of memories is divided by category, then by title.
"""

from __future__ import annotations

import math
from collections import Counter

from memtool.value import Value, split_batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Placed = tuple[tuple[str, ...], "MapMemory"]
    """A memory with the names of the areas that it is in below another one."""

MAX_MEMORIES = 500
"""Memories that are drawn one by one; an area with more has parts."""
MAX_AREAS = 200
"""Areas directly in another one; the smallest of more are bundled by name."""
MAX_DEPTH = 40
"""Folders below each other; what is deeper counts as being there."""
NO_FILES, NO_TAGS, EVERYWHERE, OTHERS = "/no files", "/no tags", "/whole project", "/others"
"""Names of areas that are no folder or tag: no path begins with a slash."""
GLOB_SIGNS = frozenset("*?[{")


class MapMemory(Value):
    """A memory of the map; `uses` counts the answers with it, `state` is of `picture.STATES`."""

    id: str
    title: str
    state: str
    category: str
    files: tuple[str, ...]
    tags: tuple[str, ...]
    uses: int = 0

    @property
    def weight(self) -> float:
        """The share of the picture that it gets. The root keeps rarely shown ones visible."""
        return math.sqrt(1 + self.uses)


class Area(Value):
    """A part of the map: other areas, the largest first, and memories, the most shown first.

    `path` leads to it from the root. `states` are the numbers of its memories by state, those of
    its areas included.
    """

    name: str
    path: str
    areas: tuple[Area, ...]
    memories: tuple[MapMemory, ...]
    weight: float
    states: dict[str, int]

    @property
    def label(self) -> str:
        """The name as it is shown."""
        return self.name.removeprefix("/")

    @property
    def count(self) -> int:
        """The number of memories in it and in its areas."""
        return sum(self.states.values())


def build_by_file(memories: Sequence[MapMemory]) -> Area:
    """Return the areas of memories by the folder that all files of each have in common."""
    folders = {files: find_folder(files) for files in {memory.files for memory in memories}}
    return _build([(folders[memory.files], memory) for memory in memories])


def build_by_tag(memories: Sequence[MapMemory]) -> Area:
    """Return the areas of memories by that tag of each which the most memories have."""
    counts = Counter(tag for memory in memories for tag in memory.tags)
    return _build(
        [
            ((max(memory.tags, key=lambda tag: (counts[tag], tag), default=NO_TAGS),), memory)
            for memory in memories
        ]
    )


def find_folder(files: Sequence[str]) -> tuple[str, ...]:
    """Return the folder that some files and globs are all in; a single file counts as one."""
    paths = [_split_path(path) for path in files]
    if not paths:
        return (NO_FILES,)
    common = paths[0]
    for path in paths[1:]:
        shared = 0
        while shared < min(len(common), len(path)) and common[shared] == path[shared]:
            shared += 1
        common = common[:shared]
    return common[:MAX_DEPTH] or (EVERYWHERE,)


def _split_path(path: str) -> tuple[str, ...]:
    """Return the folders and the file of a path, as far as they are without a pattern."""
    parts: list[str] = []
    for part in path.split("/"):
        if GLOB_SIGNS.intersection(part):
            break
        if part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def find_area(root: Area, path: str) -> tuple[list[Area], bool]:
    """Return the areas that a path leads through, the root first, and whether all of it is there.

    A folder that is no area, since it has nothing but another folder, leads to that one.
    """
    trail, remaining = [root], path
    while remaining:
        areas = trail[-1].areas
        area = next((area for area in areas if f"{remaining}/".startswith(f"{area.name}/")), None)
        if area is None:
            area = next((area for area in areas if area.name.startswith(f"{remaining}/")), None)
            return ([*trail, area], True) if area else (trail, False)
        trail.append(area)
        remaining = remaining[len(area.name) + 1 :]
    return trail, True


def iterate_areas(area: Area) -> Iterator[Area]:
    """Yield all areas in an area, each before those in it."""
    for inner in area.areas:
        yield inner
        yield from iterate_areas(inner)


def list_maps(trail: Sequence[Area]) -> Iterator[Sequence[Area]]:
    """Yield some areas, each in the one before, and those to each part that has a map of its own.

    These are the parts of an area that is too large for a picture of all its memories.
    """
    yield trail
    if trail[-1].count > MAX_MEMORIES:
        for area in trail[-1].areas:
            yield from list_maps([*trail, area])


def _build(placed: Sequence[Placed], name: str = "", path: str = "") -> Area:
    own: list[MapMemory] = []
    groups: dict[str, list[Placed]] = {}
    for parts, memory in placed:
        if parts:
            groups.setdefault(parts[0], []).append((parts[1:], memory))
        else:
            own.append(memory)
    areas = []
    for first, group in groups.items():
        if len(group) == 1:
            own.append(group[0][1])
            continue
        below, inside = first, group
        while inside[0][0] and len({parts[:1] for parts, _memory in inside}) == 1:
            below = f"{below}/{inside[0][0][0]}"
            inside = [(parts[1:], memory) for parts, memory in inside]
        areas.append(_build(inside, below, _join(path, below)))
    if len(placed) <= MAX_MEMORIES:
        return _make_area(name, path, areas, own)
    if not areas:
        return _divide(name, path, own)
    if own:
        areas.append(_divide(OTHERS, _join(path, OTHERS), own))
    return _make_area(name, path, areas, ())


def _divide(name: str, path: str, memories: Sequence[MapMemory]) -> Area:
    """Return an area whose memories have no folders, divided if there are too many of them."""
    if len(memories) <= MAX_MEMORIES:
        return _make_area(name, path, (), memories)
    categories: dict[str, list[MapMemory]] = {}
    for memory in memories:
        categories.setdefault(f"/{memory.category}", []).append(memory)
    if len(categories) > 1:
        parts = [(below, _join(path, below), some) for below, some in categories.items()]
        return _make_area(name, path, [_divide(*part) for part in parts], ())
    ordered = sorted(memories, key=lambda memory: (memory.title.casefold(), memory.id))
    areas = []
    for number, some in enumerate(split_batches(ordered, MAX_MEMORIES), 1):
        below = f"/{number}. {_first_word(some[0].title)} to {_first_word(some[-1].title)}"
        areas.append(_make_area(below, _join(path, below), (), some))
    return _make_area(name, path, areas, ())


def _make_area(name: str, path: str, areas: Sequence[Area], memories: Sequence[MapMemory]) -> Area:
    weight = sum(area.weight for area in areas) + sum(memory.weight for memory in memories)
    states = Counter(memory.state for memory in memories)
    for area in areas:
        states.update(area.states)
    if len(areas) > MAX_AREAS:
        areas = _bundle(path, areas)
    return Area(
        name,
        path,
        tuple(sorted(areas, key=lambda area: (-area.weight, area.name))),
        tuple(sorted(memories, key=lambda memory: (-memory.weight, memory.title, memory.id))),
        weight,
        dict(states),
    )


def _bundle(path: str, areas: Sequence[Area]) -> list[Area]:
    """Return the largest areas as they are, and the others in parts by name."""
    ordered = sorted(areas, key=lambda area: (-area.weight, area.name))
    largest, small = ordered[: MAX_AREAS // 2], ordered[MAX_AREAS // 2 :]
    size = max(MAX_AREAS, math.ceil(len(small) * 2 / MAX_AREAS))
    bundles = []
    by_name = sorted(small, key=lambda area: (area.name.casefold(), area.name))
    for number, some in enumerate(split_batches(by_name, size), 1):
        name = f"/{number}. {_shorten(some[0].label)} to {_shorten(some[-1].label)}"
        below = _join(path, name)
        moved = [_move(area, _join(below, area.name)) for area in some]
        bundles.append(_make_area(name, below, moved, ()))
    return [*largest, *bundles]


def _move(area: Area, path: str) -> Area:
    """Return an area at another path, with all that is in it."""
    below = tuple(_move(inner, _join(path, inner.name)) for inner in area.areas)
    return area.replace(path=path, areas=below)


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _first_word(title: str) -> str:
    return _shorten(next(iter(title.split()), "…"))


def _shorten(text: str) -> str:
    return text if len(text) <= 16 else f"{text[:15]}…"
