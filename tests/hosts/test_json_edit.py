"""JSON edited in place: what is put in can be read, and taking it out leaves no trace."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.hosts import json_edit
from memtool.hosts.json_edit import JsonDocument

KEYS = st.sampled_from(["hooks", "Stop", "mcpServers", "a", 'q"\\', "\u00fc", ""])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
PATHS = st.lists(KEYS, min_size=1, max_size=3)
OURS = {"type": "command", "command": "memtool hook claude stop", "timeout": 10}


def spelled(value: Any, dice: Random, *, comments: bool) -> str:
    """Return a value as JSON, with blanks, line ends and comments wherever they are allowed."""
    blanks = ["", " ", "\n", "\n\t", "\r\n  "]
    if comments:
        blanks += [" // so, {\n", "/* [1] */", '\n  // "x": 1\n  ']

    def gap() -> str:
        return dice.choice(blanks)

    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=dice.random() < 0.5)
    is_list = isinstance(value, list)
    parts = []
    for item in value if is_list else value.items():
        key = "" if is_list else json.dumps(item[0]) + gap() + ":" + gap()
        inner = item if is_list else item[1]
        parts.append(gap() + key + spelled(inner, dice, comments=comments) + gap())
    joined = ",".join(parts)
    if comments and parts and dice.random() < 0.5:
        joined += "," + gap()
    return f"[{joined}]" if is_list else f"{{{joined or gap()}}}"


def laid_out(value: Any, seed: int) -> JsonDocument:
    """A document of that value, in one of many layouts."""
    dice = Random(seed)
    how = dice.choice(["noisy", "commented", "dumped"])
    if how == "dumped":
        indent = dice.choice([None, 0, 2, 4, "\t"])
        text = json.dumps(value, indent=indent, separators=dice.choice([None, (",", ":")]))
    else:
        text = spelled(value, dice, comments=how == "commented")
    text += dice.choice(["", "\n", "\r\n\r\n"])
    return JsonDocument(text, "settings.json", comments=how == "commented")


LAYOUTS = st.integers(0, 10_000)
GIVEN = st.builds(lambda value, seed: (laid_out(value, seed), value), OBJECTS, LAYOUTS)


def set_at(value: Any, path: list[str], new: Any) -> Any:
    """Return a value with a new one at a path; None if the path leads through no object."""
    if not path:
        return new
    if not isinstance(value, dict):
        return None
    inner = set_at(value.get(path[0], {}), path[1:], new)
    return None if inner is None else value | {path[0]: inner}


def at(value: Any, path: list[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


@given(GIVEN)
def test_a_text_is_read_as_json_reads_it(pair: tuple[JsonDocument, Any]) -> None:
    """Blanks, comments and commas at the end change nothing."""
    document, value = pair
    assert document.root.value == value


@given(GIVEN, PATHS)
def test_a_member_is_put_and_dropped_without_a_trace(
    pair: tuple[JsonDocument, Any], path: list[str]
) -> None:
    """It can be read at its path, and every byte is as before when it is gone."""
    document, value = pair
    expected = set_at(value, path, OURS)
    if expected is None or at(value, path) is not None or _is_there(value, path):
        return
    changed = document.put(path, OURS)
    assert changed.root.value == expected
    assert changed.drop(path).text == document.text


@given(GIVEN, PATHS)
def test_an_item_is_appended_and_dropped_without_a_trace(
    pair: tuple[JsonDocument, Any], path: list[str]
) -> None:
    """The same for the last item of a list, which may have to be made."""
    document, value = pair
    before = at(value, path)
    if not isinstance(before, list) and _is_there(value, path):
        with pytest.raises(MemtoolError, match="is not a list"):
            document.append(path, OURS)
        return
    items = before or []
    expected = set_at(value, path, [*items, OURS])
    if expected is None:
        return
    changed = document.append(path, OURS)
    assert changed.root.value == expected
    assert changed.drop([*path, len(items)]).text == document.text


@given(GIVEN, st.lists(PATHS, min_size=2, max_size=4))
def test_several_are_taken_out_in_the_other_order(
    pair: tuple[JsonDocument, Any], paths: list[list[str]]
) -> None:
    """The last added is dropped first, and then no trace is left."""
    document, value = pair
    changed, done = document, []
    for path in paths:
        if set_at(value, path, OURS) is None or _is_there(value, path):
            continue
        value = set_at(value, path, OURS)
        changed = changed.put(path, OURS)
        done.append(path)
    for path in reversed(done):
        changed = changed.drop(path)
    assert changed.text == document.text


@given(GIVEN, st.data())
def test_dropping_anything_leaves_the_rest(
    pair: tuple[JsonDocument, Any], data: st.DataObject
) -> None:
    """Whichever member goes, the others can be read as before."""
    document, value = pair
    if not value:
        return
    key = data.draw(st.sampled_from(sorted(value)))
    remaining = document.drop([key]).root.value
    assert remaining == {name: item for name, item in value.items() if name != key}


def _is_there(value: Any, path: list[str]) -> bool:
    holder = at(value, path[:-1])
    return isinstance(holder, dict) and path[-1] in holder


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "1:1"),
        ("{", "1:2"),
        ('{"a": 1,}', "1:9"),
        ('{"a" 1}', "1:6"),
        ('{"a": 1 "b": 2}', "1:9"),
        ("{a: 1}", "1:2"),
        ('{"a": 01}', "1:8"),
        ('{"a": nul}', "1:7"),
        ('{"a": "x\ny"}', "1:9"),
        ('{"a": 1}\n}', "2:1"),
        ('{\n  "a": 1,\n  "a": 2\n}', "3:3"),
        ('{"a": 1 // b\n}', "1:9"),
        ("[" * 200, "1:102"),
        ("[1]", "1:1"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(text: str, where: str) -> None:
    """Line and column, and the name of the file."""
    with pytest.raises(MemtoolError) as caught:
        JsonDocument(text, "settings.json").put(["hooks"], 1)
    assert f"settings.json:{where}" in caught.value.message


def test_a_path_through_something_else_is_refused() -> None:
    """A setting of a wrong type is told with its place."""
    document = JsonDocument('{\n  "hooks": [1]\n}', "settings.json")
    with pytest.raises(MemtoolError, match=r"settings\.json:2:12: hooks is not an object"):
        document.put(["hooks", "Stop"], 1)
    with pytest.raises(MemtoolError, match="Stop is not a list"):
        JsonDocument('{"hooks": {"Stop": {}}}', "x").append(["hooks", "Stop"], 1)


def test_new_lines_look_like_those_around_them() -> None:
    """Indentation and line ends are those of the file."""
    text = '{\r\n\t"theme": "dark" // mine\r\n}\r\n'
    document = JsonDocument(text, "x", comments=True).append(["hooks", "Stop"], {"command": "c"})
    assert document.text == (
        '{\r\n\t"theme": "dark", // mine\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t{\r\n'
        '\t\t\t\t"command": "c"\r\n\t\t\t}\r\n\t\t]\r\n\t}\r\n}\r\n'
    )
    assert document.drop(["hooks", "Stop", 0]).text == text


def test_neighbours_that_came_later_stay() -> None:
    """Entries after ours keep their bytes when ours is removed."""
    document = JsonDocument('{\n  "a": 1\n}', "x").put(["ours"], True).put(["b"], [1])
    assert document.drop(["ours"]).text == '{\n  "a": 1,\n  "b": [\n    1\n  ]\n}'


def test_a_place_names_line_and_column() -> None:
    """Both are counted from one."""
    assert json_edit.format_position("a\nbc", 3) == "2:2"
