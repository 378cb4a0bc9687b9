"""Three-way merge of lifecycle keys: the changes of two branches to one memory, as one state.

Keys are merged, not lines. If one side changed a key, that side wins. If both did:

    status, with `deleted`    the more restrictive; of two deletions the earlier, both reasons
    checked                   the later confirmation
    faded, retired, valid_through  the earlier
    importance                the larger
    tags and other lists      without what either removed, with what either added, sorted
    a key of the user's own   like all of the claim: left to git as text

The result does not depend on which side is ours, so merging in any order gives the same. Without a
common ancestor every difference counts as a change of both.

A text with git's conflict markers is split into its two sides, so that a memory that differs only
in lifecycle keys can be read during a merge.
"""

from __future__ import annotations

from memtool.memory import document, frontmatter, schema, timestamps
from memtool.memory.fields import BY_NAME, LIST_KINDS, STATUSES, is_mutable
from memtool.memory.memory import Fields, FieldValue, Memory, to_text
from memtool.memory.plain_claim import find_plain_claim
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    Table = dict[str, str]
    Settled = dict[str, FieldValue | None]
    """Lifecycle keys in which the sides differ, as they are merged; None for a key to drop."""

DEFAULT_STATUS = BY_NAME["status"].default
BETWEEN_REASONS = " | "
"""Parts the reasons of two deletions."""
OPENS, BASE, PARTS, CLOSES = "<" * 7, "|" * 7, "=" * 7, ">" * 7
"""What begins the lines that git writes around and between the sides of a conflict."""
_FOLLOWS = {OPENS: ("",), BASE: (OPENS,), PARTS: (OPENS, BASE), CLOSES: (PARTS,)}
"""Which line may be before which; a lone `=======` is a heading of markdown."""


class Sides(Value):
    """The texts of a file on both sides of a merge; `base` is the common one, None if unknown."""

    base: bytes | None
    ours: bytes
    theirs: bytes


class DividedMemory(Value):
    """A memory in an unfinished merge as both sides together have it, and what to say of it."""

    memory: Memory
    problem: schema.Problem


def settle(base: Fields | None, ours: Fields, theirs: Fields) -> Settled:
    """Return the merged value of each lifecycle key that is not the same everywhere.

    A key of the user's own that both sides changed in two ways is left out.
    """
    settled: Settled = {}
    olds = {} if base is None else base
    names = {key for fields in (olds, ours, theirs) for key in fields if is_mutable(key)}
    for key in sorted(names):
        if ours.get(key) == theirs.get(key) and (base is None or olds.get(key) == ours.get(key)):
            continue
        # An empty list is the same as none.
        old, mine, other = (fields.get(key) or None for fields in (olds, ours, theirs))
        if key in ("status", "deleted"):
            standing = _settle_standing(base, ours, theirs)
            settled |= {name: standing[name] for name in ("status", "deleted") if name in names}
        elif key in BY_NAME and BY_NAME[key].kind in LIST_KINDS:  # whichever side changed it
            settled[key] = _settle_key(key, old, mine, other)
        elif mine == other or (base is not None and old == other):
            settled[key] = mine
        elif base is not None and old == mine:
            settled[key] = other
        elif key in BY_NAME:
            settled[key] = _settle_key(key, old, mine, other)
    return {key: _normalize(key, value) for key, value in settled.items()}


def _normalize(key: str, value: FieldValue | None) -> FieldValue | None:
    """Return a value in one spelling, whichever side it is of: a table in order, no empty list."""
    if not isinstance(value, dict):
        return None if value == () else value
    return {name: value[name] for name in BY_NAME[key].choices if name in value}


def _settle_standing(base: Fields | None, ours: Fields, theirs: Fields) -> Settled:
    """Merge status and deletion, which say one thing together."""
    mine, other = _find_standing(ours), _find_standing(theirs)
    old = None if base is None else _find_standing(base)
    if other in (mine, old):
        chosen, where = mine, [ours, theirs] if mine == other else [ours]
    elif old == mine:
        chosen, where = other, [theirs]
    elif mine[0] == other[0] == "deleted":
        chosen, where = ("deleted", _merge_deletions(mine[1], other[1])), [ours, theirs]
    else:
        chosen = max(
            mine, other, key=lambda side: (STATUSES.index(side[0]), sorted(side[1].items()))
        )
        where = [ours, theirs]
    status, deleted = chosen
    is_written = status != DEFAULT_STATUS or any("status" in fields for fields in where)
    return {"status": status if is_written else None, "deleted": deleted or None}


def _find_standing(fields: Fields) -> tuple[str, Table]:
    status, deleted = fields.get("status", DEFAULT_STATUS), fields.get("deleted", {})
    assert isinstance(status, str)
    assert isinstance(deleted, dict)
    return status, deleted


def _merge_deletions(mine: Table, other: Table) -> Table:
    tables = sorted(filter(None, (mine, other)), key=_deletion_order)
    if not tables:
        return {}
    first = dict(tables[0])
    reasons = (table.get("reason", "").split(BETWEEN_REASONS) for table in tables)
    reason = BETWEEN_REASONS.join(sorted({part for parts in reasons for part in parts if part}))
    if reason and schema.is_line(reason):
        first["reason"] = reason
    return {key: first[key] for key in BY_NAME["deleted"].choices if key in first}


def _deletion_order(table: Table) -> tuple[int, list[tuple[str, str]]]:
    at = table.get("at")  # a sighting without a confirmation comes first
    return timestamps.parse(at) if at else 0, sorted(table.items())


def _choose_later(mine: Table, other: Table) -> Table:
    return max(mine, other, key=_deletion_order)


def _choose_earlier(mine: Table, other: Table) -> Table:
    return min(mine, other, key=_deletion_order)


def _choose_larger(mine: str, other: str) -> str:
    return max(mine, other, key=lambda text: (float(text), text))


def _choose_sooner(mine: str, other: str) -> str:
    return min(mine, other, key=lambda text: (timestamps.end(text), text))


_RULES: dict[str, Callable[..., FieldValue]] = {
    "checked": _choose_later,
    "faded": _choose_earlier,
    "retired": _choose_earlier,
    "importance": _choose_larger,
    "valid_through": _choose_sooner,
}
"""How two values become one; lists have their own rule."""


def _settle_key(
    key: str, old: FieldValue | None, mine: FieldValue | None, other: FieldValue | None
) -> FieldValue | None:
    """Merge a key that both sides changed; what one set and the other dropped stays."""
    if key in _RULES:
        return (mine or other) if not (mine and other) else _RULES[key](mine, other)
    before, first, two = (
        (value if isinstance(value, tuple) else ()) for value in (old, mine, other)
    )
    items = [item for item in before if item in first and item in two]
    added = sorted({*first, *two}.difference(before))
    return tuple(dict.fromkeys([*items, *added])) or None


def prepare_sides(sides: Sides, path: str = "") -> Sides:
    """Return the three texts with one merged lifecycle, so that only the claim is left to merge.

    All other lines keep their bytes. Without a base the result has none.

    Raises:
        Unreadable: one of them cannot be read, or has a lifecycle key with an impossible value.
    """
    texts = [sides.ours, sides.theirs] + ([] if sides.base is None else [sides.base])
    read = [_parse_lifecycle(text, path) for text in texts]
    ours, theirs = read[0][0], read[1][0]
    base = None if sides.base is None else read[2][0]
    settled = settle(base, ours, theirs)
    names = {key for _fields, lines in read for key in lines if is_mutable(key)}
    for key in sorted(names - settled.keys()):
        mine, other = ours.get(key) or None, theirs.get(key) or None
        if mine == other and len({rows.get(key) for _f, rows in read}) > 1:
            settled[key] = _normalize(key, mine)  # one value in several spellings
    edited = [_with(text, settled, path) for text in texts]
    return Sides(None if sides.base is None else edited[2], edited[0], edited[1])


def _with(text: bytes, settled: Mapping[str, FieldValue | None], path: str) -> bytes:
    """Return a text with some keys at their canonical places, wherever they were."""
    without = document.edit(text, dict.fromkeys(settled), path)
    fields = {key: value for key, value in settled.items() if value is not None}
    return document.edit(without, fields, path) if fields else without


def _parse_lifecycle(text: bytes, path: str) -> tuple[Fields, dict[str, str]]:
    """Return fields and lines of a text if its lifecycle keys have valid values."""
    fields, lines = document.read_field_lines(text, path)
    for key, value in fields.items():
        field = BY_NAME.get(key)
        if is_mutable(key):
            fault = (
                schema.find_value_fault(field, value, ())
                if field is not None
                else ""
                if frontmatter.is_key(key) and isinstance(value, str)
                else "is no text"
            )
            if fault:
                problem = schema.Problem(path, 1, "bad-value", f"{key}: {fault}")
                raise document.Unreadable([problem])
    return fields, lines


def split_sides(data: bytes) -> Sides | None:
    """Split a text at its conflict markers; None if they are not as git writes them."""
    texts: dict[str, list[bytes]] = {OPENS: [], BASE: [], PARTS: []}
    now = ""
    has_base = conflicts = 0
    for row in data.splitlines(keepends=True):
        mark = row[:7].decode(errors="replace")
        ends = row[7:8] in (b" ", b"\n", b"\r", b"")
        if ends and mark in _FOLLOWS and (mark != PARTS or now):
            if now not in _FOLLOWS[mark]:
                return None
            conflicts += mark == OPENS
            has_base += mark == BASE
            now = "" if mark == CLOSES else mark
            continue
        for name in (now,) if now else texts:
            texts[name].append(row)
    if now or not conflicts or has_base not in (0, conflicts):
        return None
    ours, base, theirs = (b"".join(texts[name]) for name in (OPENS, BASE, PARTS))
    return Sides(base if has_base else None, ours, theirs)


def read_divided(data: bytes, path: str, categories: Collection[str]) -> DividedMemory | None:
    """Return the memory of a file with conflict markers around lifecycle keys and nothing else.

    None for any other file.
    """
    sides = split_sides(data) if OPENS.encode() in data else None
    if sides is None:
        return None
    try:
        ours = document.read(sides.ours, path, categories)
        two = document.read(sides.theirs, path, categories)
        base = _parse_lifecycle(sides.base, path)[0] if sides.base is not None else None
    except document.Unreadable:
        return None
    keys = settle(base, ours.fields, two.fields)
    merged = ours.with_fields(**keys)
    other = two.with_fields(**keys)
    if merged.fields != other.fields or find_plain_claim(merged.body) != find_plain_claim(
        other.body
    ):
        return None
    shown = ", ".join(f"{key} {to_text(value) or 'none'}" for key, value in keys.items())
    problem = schema.Problem(
        path,
        data[: data.index(OPENS.encode())].count(b"\n") + 1,
        "conflict-markers",
        f"a merge is unfinished here, in lifecycle keys only; it is read with {shown}",
        "memtool resolve settles every such file",
        merged.id,
        "warning",
    )
    return DividedMemory(merged, problem)
