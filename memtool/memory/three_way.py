"""Three-way merge of lifecycle keys: what two branches did to one memory, as one state.

Keys are merged, not lines. Where one side changed a key, that side holds. Where both did:

    status, with `deleted`    the more restrictive; of two deletions the earlier, both reasons
    checked                   the later confirmation
    faded, retired, valid_through  the earlier
    importance                the larger
    tags and other lists      without what either took away, with what either added, sorted
    a key of the user's own   text, as all that belongs to the claim: left to git

No rule asks which side is whose, so merging in any order gives the same. Without a common ancestor
every difference counts as a change of both.

Text that git left between conflict markers is taken apart into its two sides, so that a memory that
is divided in lifecycle keys only can be read while its merge is unfinished.
"""

from __future__ import annotations

from memtool.memory import document, frontmatter, schema, timestamps
from memtool.memory.fields import BY_NAME, STATUSES, is_mutable
from memtool.memory.memory import Fields, FieldValue, Memory, as_text
from memtool.memory.plain_claim import plain_claim
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


class Divided(Value):
    """A memory in an unfinished merge as both sides together have it, and what to say of it."""

    memory: Memory
    problem: schema.Problem


def settle(base: Fields | None, ours: Fields, theirs: Fields) -> Settled:
    """Return the merged value of each lifecycle key that is not the same everywhere.

    A key of the user's own that both sides changed in two ways is left out.
    """
    found: Settled = {}
    olds = {} if base is None else base
    names = {key for fields in (olds, ours, theirs) for key in fields if is_mutable(key)}
    for key in sorted(names):
        mine, other = ours.get(key), theirs.get(key)
        old = olds.get(key)
        if mine == other and (base is None or old == mine):
            continue
        if key in ("status", "deleted"):
            standing = _settled_standing(base, ours, theirs)
            found |= {name: standing[name] for name in ("status", "deleted") if name in names}
        elif mine == other or (base is not None and old == other):
            found[key] = mine
        elif base is not None and old == mine:
            found[key] = other
        elif key in BY_NAME:
            found[key] = _settled_key(key, old, mine, other)
    return found


def _settled_standing(base: Fields | None, ours: Fields, theirs: Fields) -> Settled:
    """Merge status and deletion, which say one thing together."""
    mine, other = _standing(ours), _standing(theirs)
    old = None if base is None else _standing(base)
    if other in (mine, old):
        chosen, where = mine, [ours, theirs] if mine == other else [ours]
    elif old == mine:
        chosen, where = other, [theirs]
    elif mine[0] == other[0] == "deleted":
        chosen, where = ("deleted", _both_deletions(mine[1], other[1])), [ours, theirs]
    else:
        chosen = max(mine, other, key=lambda one: (STATUSES.index(one[0]), sorted(one[1].items())))
        where = [ours, theirs]
    status, deleted = chosen
    is_written = status != DEFAULT_STATUS or any("status" in fields for fields in where)
    return {"status": status if is_written else None, "deleted": deleted or None}


def _standing(fields: Fields) -> tuple[str, Table]:
    status, deleted = fields.get("status", DEFAULT_STATUS), fields.get("deleted", {})
    assert isinstance(status, str)
    assert isinstance(deleted, dict)
    return status, deleted


def _both_deletions(one: Table, other: Table) -> Table:
    tables = sorted(filter(None, (one, other)), key=_moment)
    if not tables:
        return {}
    first = dict(tables[0])
    given = (table.get("reason", "").split(BETWEEN_REASONS) for table in tables)
    reason = BETWEEN_REASONS.join(sorted({part for parts in given for part in parts if part}))
    if reason and schema.is_line(reason):
        first["reason"] = reason
    return {key: first[key] for key in BY_NAME["deleted"].choices if key in first}


def _moment(table: Table) -> tuple[int, list[tuple[str, str]]]:
    return timestamps.parse(table["at"]), sorted(table.items())


def _later(one: Table, other: Table) -> Table:
    return max(one, other, key=_moment)


def _earlier(one: Table, other: Table) -> Table:
    return min(one, other, key=_moment)


def _larger(one: str, other: str) -> str:
    return max(one, other, key=lambda text: (float(text), text))


def _sooner(one: str, other: str) -> str:
    return min(one, other, key=lambda text: (timestamps.end(text), text))


_RULES: dict[str, Callable[..., FieldValue]] = {
    "checked": _later,
    "faded": _earlier,
    "retired": _earlier,
    "importance": _larger,
    "valid_through": _sooner,
}
"""How two values become one; lists have their own rule."""


def _settled_key(
    key: str, old: FieldValue | None, mine: FieldValue | None, other: FieldValue | None
) -> FieldValue | None:
    """Merge a key that both sides changed; what one set and the other dropped stays."""
    if key in _RULES:
        return (mine or other) if not (mine and other) else _RULES[key](mine, other)
    before, one, two = ((value if isinstance(value, tuple) else ()) for value in (old, mine, other))
    kept = [item for item in before if item in one and item in two]
    added = sorted({*one, *two}.difference(before))
    return tuple(dict.fromkeys([*kept, *added])) or None


def prepared(sides: Sides, path: str = "") -> Sides:
    """Return the three texts with the same lifecycle, the merged one: what is left is the claim.

    Every other line keeps its bytes. Without a base the result has none.

    Raises:
        Unreadable: one of them cannot be read, or holds a lifecycle key with an impossible value.
    """
    texts = [sides.ours, sides.theirs] + ([] if sides.base is None else [sides.base])
    read = [_lifecycle(text, path) for text in texts]
    ours, theirs = read[0][0], read[1][0]
    base = None if sides.base is None else read[2][0]
    settled = settle(base, ours, theirs)
    names = {key for _fields, lines in read for key in lines if is_mutable(key)}
    for key in sorted(names - settled.keys()):
        if ours.get(key) == theirs.get(key) and len({rows.get(key) for _f, rows in read}) > 1:
            settled[key] = ours.get(key)  # one value in several spellings
    edited = [_with(text, settled, path) for text in texts]
    return Sides(None if sides.base is None else edited[2], edited[0], edited[1])


def _with(text: bytes, settled: Mapping[str, FieldValue | None], path: str) -> bytes:
    """Return a text with some keys at their canonical places, wherever they were."""
    without = document.edit(text, dict.fromkeys(settled), path)
    kept = {key: value for key, value in settled.items() if value is not None}
    return document.edit(without, kept, path) if kept else without


def _lifecycle(text: bytes, path: str) -> tuple[Fields, dict[str, str]]:
    """Return fields and lines of a text whose lifecycle keys hold what such keys may hold."""
    fields, lines = document.lines_of(text, path)
    for key, value in fields.items():
        field = BY_NAME.get(key)
        if is_mutable(key):
            fault = (
                schema.value_fault(field, value, ())
                if field is not None
                else ""
                if frontmatter.is_key(key) and isinstance(value, str)
                else "is no text"
            )
            if fault:
                problem = schema.Problem(path, 1, "bad-value", f"{key}: {fault}")
                raise document.Unreadable([problem])
    return fields, lines


def sides_of(data: bytes) -> Sides | None:
    """Take a text with conflict markers apart; None where they are not as git writes them."""
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


def divided(data: bytes, path: str, categories: Collection[str]) -> Divided | None:
    """Return the memory of a file with conflict markers around lifecycle keys and nothing else.

    None for any other file.
    """
    sides = sides_of(data) if OPENS.encode() in data else None
    if sides is None:
        return None
    try:
        one = document.read(sides.ours, path, categories)
        two = document.read(sides.theirs, path, categories)
        base = _lifecycle(sides.base, path)[0] if sides.base is not None else None
    except document.Unreadable:
        return None
    keys = settle(base, one.fields, two.fields)
    merged = one.with_fields(**keys)
    other = two.with_fields(**keys)
    if merged.fields != other.fields or plain_claim(merged.body) != plain_claim(other.body):
        return None
    shown = ", ".join(f"{key} {as_text(value) or 'none'}" for key, value in keys.items())
    problem = schema.Problem(
        path,
        data[: data.index(OPENS.encode())].count(b"\n") + 1,
        "conflict-markers",
        f"a merge is unfinished here, in lifecycle keys only; it is read with {shown}",
        "memtool resolve settles every such file",
        merged.id,
        "warning",
    )
    return Divided(merged, problem)
