"""The map: areas by file and by tag, boxes that fill a picture, and the same as a list."""

from __future__ import annotations

import gzip
import re
from html import unescape
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.web.map_areas import (
    MAX_AREAS,
    MAX_MEMORIES,
    Area,
    MapMemory,
    build_by_file,
    build_by_tag,
    find_area,
    find_folder,
    list_maps,
)
from memtool.web.page import PageQuery
from memtool.web.pages.memory_map import MAX_BOXES, PHONE, SCREEN, build_map
from memtool.web.picture import STATES, Box, measure, squarify, wrap

if TYPE_CHECKING:
    from typing import Any

    from conftest import Sandbox

    Web = Any


def make(number: int, *files: str, **values: Any) -> MapMemory:
    """Return a memory of the map with a number as its id."""
    given_values = {"title": f"Memory {number}", "state": "active", "category": "decision"}
    return MapMemory(
        **({"id": f"dec-{number}", "files": files, "tags": ()} | given_values | values)
    )


def names(area: Area) -> list[str]:
    """Return the paths of all areas in an area, in order."""
    return [path for inner in area.areas for path in (inner.path, *names(inner))]


def ids(area: Area) -> list[str]:
    """Return the ids of all memories of an area, in order."""
    own = [memory.id for memory in area.memories]
    return own + [id_ for inner in area.areas for id_ in ids(inner)]


def words(page: str) -> str:
    """Return a page without its tags."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)))


@pytest.mark.parametrize(
    ("files", "folder"),
    [
        ((), "/no files"),
        (("src/api/users.py",), "src/api/users.py"),
        (("src/api/*.py",), "src/api"),
        (("./src//api/",), "src/api"),
        (("src/api/users.py", "src/api/teams.py"), "src/api"),
        (("src/api.py", "src/web/page.py"), "src"),
        (("src/api.py", "docs/index.md"), "/whole project"),
        (("**/*.py",), "/whole project"),
        (("app/[id]/page.tsx",), "app"),
        (("a b/ü<i>.py",), "a b/ü<i>.py"),
        (("/".join("d" * 300),), "/".join("d" * 40)),
    ],
)
def test_a_memory_is_in_the_folder_that_its_files_share(files: tuple[str, ...], folder: str):
    """A pattern counts as the folder before it, and several files as what they have in common."""
    assert "/".join(find_folder(files)) == folder


def test_a_chain_of_folders_is_one_area():
    """A folder with nothing but a folder is no area, and a single memory needs none."""
    root = build_by_file(
        [
            make(1, "src/main/java/org/a.java"),
            make(2, "src/main/java/org/a.java"),
            make(3, "src/main/java/org/b.java"),
            make(4, "docs/index.md"),
        ]
    )
    assert names(root) == ["src/main/java/org", "src/main/java/org/a.java"]
    assert [memory.id for memory in root.memories] == ["dec-4"]
    assert sorted(ids(root)) == ["dec-1", "dec-2", "dec-3", "dec-4"]


def test_a_memory_is_under_the_tag_that_most_memories_have():
    """So each is drawn once; tags with markup are names like others."""
    root = build_by_tag(
        [
            make(1, tags=("auth", "<b>")),
            make(2, tags=("auth",)),
            make(3, tags=("<b>",)),
            make(4, tags=("<b>", "rare")),
            make(5),
            make(6),
        ]
    )
    assert [(area.name, ids(area)) for area in root.areas] == [
        ("<b>", ["dec-1", "dec-3", "dec-4"]),
        ("/no tags", ["dec-5", "dec-6"]),
    ]
    assert ids(root)[0] == "dec-2"


def test_a_path_leads_to_an_area_or_near_it():
    """A folder in a chain leads to the end of the chain; what is gone, to what is around it."""
    root = build_by_file(
        [make(number, f"src/main/{part}/a.py") for part in "xy" for number in range(2)]
    )

    def follow(path: str) -> tuple[list[str], bool]:
        trail, is_whole = find_area(root, path)
        return [area.path for area in trail], is_whole

    assert follow("") == ([""], True)
    assert follow("src") == (["", "src/main"], True)
    assert follow("src/main/x") == (["", "src/main", "src/main/x/a.py"], True)
    assert follow("src/main/z") == (["", "src/main"], False)
    assert follow("srcs") == ([""], False)


def _one_folder(number: int) -> MapMemory:
    return make(number, "src/main.py", title=f"{number:05} holds")


def _no_files(number: int) -> MapMemory:
    return make(number, category=("decision", "error", "pattern")[number % 3])


def _own_tag(number: int) -> MapMemory:
    return make(number, tags=(f"tag-{number // 2}",))


def _flat(number: int) -> MapMemory:
    return make(number, f"src/f{number // 4}.py")


@pytest.mark.slow
@pytest.mark.parametrize("shape", [_one_folder, _no_files, _own_tag, _flat])
def test_ten_thousand_memories_are_drawn_in_parts(shape: Any):
    """Each map has a sensible number of boxes, and together they have every memory once."""
    memories = [shape(number) for number in range(10_000)]
    root = (build_by_tag if shape is _own_tag else build_by_file)(memories)
    assert root.count == 10_000
    drawn: list[str] = []
    for trail in list_maps([root]):
        values = build_map(trail, "file", PageQuery({}))
        shapes = values["pictures"][0][2]
        assert 0 < len(shapes) <= max(MAX_MEMORIES * 2, MAX_BOXES)
        if values["is_each"]:
            drawn += [memory.id for _name, _path, group in values["groups"] for memory in group]
        else:
            assert not any(isinstance(shape.item, MapMemory) for shape in shapes)
            assert len(trail[-1].areas) <= MAX_AREAS
    assert sorted(drawn) == sorted(memory.id for memory in memories)
    assert len(set(names(root))) == len(names(root))
    for path in names(root):
        assert find_area(root, path)[0][-1].path == path


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=60), st.integers(40, 900))
def test_boxes_fill_the_picture_in_proportion(weights: list[int], width: int):
    """They do not overlap, are inside, and have the area that their weight gives them."""
    weights.sort(reverse=True)
    outer = Box(0, 0, width, 600)
    boxes = squarify(weights, outer)
    total = sum(weights)
    for weight, box in zip(weights, boxes, strict=True):
        assert box.width * box.height == pytest.approx(weight * width * 600 / total, rel=1e-3)
        assert -1e-6 <= box.x <= box.x + box.width <= width + 1e-3
        assert -1e-6 <= box.y <= box.y + box.height <= 600 + 1e-3
    for number, box in enumerate(boxes):
        for other in boxes[:number]:
            assert (
                min(box.x + box.width, other.x + other.width) - max(box.x, other.x) < 1e-3
                or min(box.y + box.height, other.y + other.height) - max(box.y, other.y) < 1e-3
            )


@given(st.text(max_size=400), st.integers(30, 300))
def test_a_text_without_a_limit_is_whole_and_fits(text: str, width: int):
    """No character is lost but spaces, and no line is wider than its box."""
    lines = wrap(text, width)
    from memtool.calls.output import make_visible

    assert "".join("".join(lines).split()) == "".join(make_visible(text).split())
    assert all(measure(line) <= width or len(line) == 1 for line in lines)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ()),
        ("Hold a seat", ("Hold a", "seat")),
        ("Hold a seat for 20 minutes", ("Hold a", "seat for…")),
        ("Internationalization of seats", ("Internati…",)),
        ("座席を十分間保持します", ("座席を十分", "間保持し…")),
    ],
)
def test_a_text_with_a_limit_ends_with_dots(text: str, lines: tuple[str, ...]):
    """A word is not broken, unless its script has no spaces."""
    assert wrap(text, 68, 2) == lines


def test_every_memory_is_in_both_pictures_and_in_the_list(sandbox: Sandbox, web: Web):
    """Each is a link with its whole title; states have a sign, and what is replaced is left out."""
    sandbox.memory("dec-old", "It held.\n", title="An old one", files=("src/a.py",))
    sandbox.memory(
        "dec-new", "It holds.\n", title="A new one", files=("src/a.py",), supersedes=("dec-old",)
    )
    sandbox.memory("dec-c", "It may.\n", title="A candidate", status="candidate", tags=("auth",))
    sandbox.commit()
    page = web.get("/map").text
    assert page.count("<svg") == 2
    for name in ("dec-new", "dec-c"):
        assert page.count(f'href="/m/{name}"') == 3
    assert "dec-old" not in page
    assert page.count("A candidate (dec-c): not confirmed yet</title>") == 2
    assert f"{STATES['candidate'][0]} A candidate" in words(page)
    past = web.get("/map?past=1").text
    assert "An old one (dec-old): replaced</title>" in past
    assert "src/a.py" in words(past)
    assert "src/a.py" not in words(page)  # one memory alone needs no frame
    assert '<a class="button" href="/map?by=tag">By tag</a>' in page


def test_what_needs_somebody_is_marked(sandbox: Sandbox, web: Web):
    """A fork conflicts, a memory whose file is gone has drifted, an old discovery is due."""
    sandbox.write("src/a.py", "def hold():\n    return 15\n")
    sandbox.memory("dec-one", title="One", files=("src/a.py",), supersedes=("dec-base",))
    sandbox.memory("dec-two", title="Two", supersedes=("dec-base",))
    sandbox.memory("dec-base", title="Base")
    sandbox.memory("dec-gone", title="Gone", files=("src/b.py",))
    sandbox.write("src/b.py", "x = 1\n")
    sandbox.commit()
    (sandbox.path / "src/b.py").unlink()
    sandbox.commit()
    page = web.get("/map").text
    assert page.count('class="memory s-conflicting"') == 4
    assert page.count('class="memory s-drifted"') == 2
    assert 'href="/search?q=is%3Aconflicted"' in page
    assert "2 conflicting, 1 drifted from the code" in words(page)


def test_a_box_is_larger_the_more_often_its_memory_is_shown(sandbox: Sandbox, web: Web):
    """Uses come from the ledger of this clone; at a revision all boxes are alike."""
    for name in ("dec-a", "dec-b"):
        sandbox.memory(name, f"{name} holds.\n", files=("src/a.py",))
    sandbox.commit()
    for _use in range(8):
        sandbox.run("show", "dec-b")
    page = web.get("/map").text

    def size(page: str, name: str) -> int:
        box = page.partition(f'href="/m/{name}"')[2].partition("/></rect>")[0]
        width, height = re.search(r'width="(\d+)" height="(\d+)"', box).groups()  # type: ignore[union-attr]
        return int(width) * int(height)

    assert size(page, "dec-b") > 2 * size(page, "dec-a")
    assert "shown 8 times" in words(page)
    alike = web.get("/map?at=HEAD").text
    assert size(alike, "dec-b") == pytest.approx(size(alike, "dec-a"), rel=0.02)


def test_a_store_without_memories_says_what_will_be_there(sandbox: Sandbox, web: Web, writer: Web):
    """No picture of nothing; who may write is led to the form."""
    page = web.get("/map").text
    assert "<svg" not in page
    assert "There is nothing to draw yet" in page
    assert 'href="/new"' in writer.get("/map").text.partition("<main")[2]


def test_one_memory_is_one_box(sandbox: Sandbox, web: Web):
    """By tag, as it names no file."""
    sandbox.memory("dec-a", title="Alone")
    page = web.get("/map").text
    assert page.count("<rect") == 2
    assert 'href="/map?by=tag" aria-current="true"' in page


HOSTILE = '</title><script>alert(1)</script>"><img src=x>'


def test_names_are_text(sandbox: Sandbox, web: Web):
    """Markup in titles, tags and paths is drawn; long and right-to-left titles have their box."""
    for number in range(2):
        sandbox.memory(
            f"dec-{number}",
            f"{number} holds.\n",
            title=f"{HOSTILE} {number}",
            tags=(HOSTILE,),
            files=(f"src/{HOSTILE}/a b&c.py",),
        )
    sandbox.memory("dec-long", title="long " * 60)
    sandbox.memory("dec-rtl", title="שמור מושב למשך עשרים דקות")
    for path in ("/map?by=file", "/map?by=tag", "/map?by=tag&in=" + HOSTILE.replace("<", "%3C")):
        page = web.get(path).text
        assert page.count("<script") == 1
        assert "<img" not in page
        assert ("long " * 60).strip() in page or "in=" in path
    areas = [
        unescape(address)
        for address in re.findall(r'href="(/map\?[^"]*)"', web.get("/map?by=tag").text)
        if "in=" in address
    ]
    assert areas
    for address in areas:
        assert web.get(address).text.count('class="memory') == 4


def test_a_wrong_address_is_answered(sandbox: Sandbox, web: Web):
    """Another way to divide is refused; a part that is gone leads to what is around it."""
    sandbox.memory("dec-a", files=("src/a.py",))
    sandbox.memory("dec-b", files=("src/b.py",))
    assert web.get("/map?by=colour").status == 422
    page = web.get("/map?by=file&in=src/gone")
    assert page.status == 200
    assert "the map has no part 'src/gone'" in words(page.text)
    assert "Map: src" in page.text


def test_many_memories_are_folders_that_open(sandbox: Sandbox, web: Web):
    """Above 500 a box is a folder with its number and worst state; it opens, and leads back."""
    for number in range(MAX_MEMORIES + 20):
        sandbox.memory(
            f"dec-{number:03}",
            f"The part {number} is so.\n",
            title=f"Part {number}",
            files=(f"{('src', 'docs')[number % 2]}/{number % 10}.py",),
            status="candidate" if number == 4 else "confirmed",
        )
    sandbox.commit()
    sandbox.run("list")  # a page does not wait for the index
    page = web.get("/map").text
    assert 'href="/m/' not in page.partition("<main")[2]
    boxes = re.findall(r'<a href="(/map[^"]*)" class="area s-(\w+)"><title>([^<]*)<', page)
    assert sorted(boxes[:2]) == [
        ("/map?by=file&amp;in=docs", "active", "docs: 260 memories"),
        ("/map?by=file&amp;in=src", "candidate", "src: 260 memories, 1 not confirmed yet"),
    ]
    opened = web.get("/map?by=file&in=src").text
    assert opened.count('href="/m/dec-004"') == 3
    assert '<a href="/map?by=file">All</a>' in opened
    assert len(gzip.compress(opened.encode())) < 200_000


def test_each_state_has_a_sign_and_words():
    """No two signs are alike, so that the picture can be read without colours."""
    signs = [sign for sign, _words in STATES.values()]
    assert len(set(signs)) == len(signs)
    assert SCREEN.width > PHONE.width


@pytest.mark.slow
def test_the_site_has_the_map_without_uses(sandbox: Sandbox):
    """By folder and by tag, and a page for each part of what is too large; no link is dead."""
    for number in range(MAX_MEMORIES + 4):
        sandbox.memory(
            f"dec-{number:03}",
            f"The part {number} is so.\n",
            title=f"Part {number}",
            files=(f"{('src', 'docs')[number % 2]}/{number % 4}.py",),
            tags=("one",),
        )
    sandbox.commit()
    sandbox.run("show", "dec-001")
    done = sandbox.run("site", "public")
    assert done.returncode == 0, done.stderr
    place = sandbox.path / "public"
    page = (place / "map.html").read_text()
    assert "shown" not in words(page)
    links = re.findall(r'<a href="([^"]+)" class="area', page)
    assert len(links) == 4
    for link in links:
        inner = (place / link).read_text()
        assert inner.count('class="memory') == 2 * (MAX_MEMORIES + 4) // 2
        assert 'href="../map.html">All</a>' in inner
    assert (place / "map/tag.html").is_file()
    assert 'href=""' not in page
