"""The maps of the static site: by folder, by tag, and of each folder with too many for one."""

from __future__ import annotations

from functools import partial

from memtool.value import digest
from memtool.web.map_areas import iterate_areas, list_maps
from memtool.web.page import PageQuery
from memtool.web.pages.memory_map import (
    BY_FILE,
    BY_TAG,
    WAYS,
    build_map,
    collect_memories,
    find_address,
    find_best_way,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.web.map_areas import Area
    from memtool.web.site_pages import SitePage, StaticSite


def build_maps(site: StaticSite) -> Iterator[SitePage]:
    """Yield the maps. The tags of one lead to their lists."""
    memories = collect_memories(site.context, site.commit, is_counted=False)
    first, query = find_best_way(memories), PageQuery({})
    roots = {by: build(memories) for by, build in WAYS.items()}
    trails: list[tuple[str, Sequence[Area]]] = [(BY_TAG, [roots[BY_TAG]])]
    trails += [(BY_FILE, trail) for trail in list_maps([roots[BY_FILE]])]
    lists = {tag: page.file for page in site.tag_lists for tag, _some, _hidden in page.sections}
    for area in iterate_areas(roots[BY_TAG]):
        tag = area.path.partition("//")[0]
        file = lists.get(area.name) or lists.get(tag, "lists.html")
        site.links.add(find_address(query, BY_TAG, area.path), file)
    files = []
    for by, trail in trails:
        path = trail[-1].path
        name = f"{by}-{digest(path.encode(errors='surrogatepass'))}" if path else by
        file = "map.html" if (by, path) == (first, "") else f"map/{name}.html"
        site.links.add(find_address(query, by, path), file)
        files.append(file)
    for file, (by, trail) in zip(files, trails, strict=True):
        values = partial(build_map, trail, by, query)
        if file == "map.html":
            yield site.make_page(file, "map.html", values(), "/map")
        else:
            yield site.make_later(file, "map.html", values, _build_key(trail))


def _build_key(trail: Sequence[Area]) -> object:
    """Return all that the map of the last one of some areas shows, but how it is divided."""

    def build(area: Area) -> object:
        own = [(memory.id, memory.title, memory.state) for memory in area.memories]
        return area.path, area.states, own, [build(inner) for inner in area.areas]

    return [area.path for area in trail], build(trail[-1])
