"""Assignments: `--set KEY=VALUE`, for the keys that have no option of their own."""

from __future__ import annotations

from collections.abc import Sequence

from memtool.errors import MemtoolError
from memtool.memory.fields import BY_NAME, LIST_KINDS, OWN_PREFIX
from memtool.memory.memory import FieldValue

NOT_BY_SET = {
    "id": "it has an option of its own, --id",
    "type": "it is the first argument of memtool new",
    "title": "it is an argument of its own",
    "supersedes": "it has an option of its own, --supersedes, which looks the id up",
    "checked": "memtool confirm writes it",
    "deleted": "memtool forget writes it",
}
"""Keys that `--set` must not write past their own checks, and who writes them."""


def read(pairs: Sequence[str]) -> dict[str, FieldValue]:
    """Read `--set KEY=VALUE`: list keys take values between commas, or several `--set`.

    Raises:
        MemtoolError: a pair has no `=`, or names a key that is not to be set so.
    """
    found: dict[str, FieldValue] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise MemtoolError(f"--set {pair!r} is not KEY=VALUE", hint="--set domain=billing")
        if key in NOT_BY_SET:
            raise MemtoolError(f"{key} is not for --set", hint=NOT_BY_SET[key])
        field = BY_NAME.get(key)
        if field is None and not _is_own_key(key):
            raise _unknown_key(key, pair)
        if field is not None and field.kind in LIST_KINDS:
            items = tuple(part.strip() for part in value.split(",") if part.strip())
            so_far = found.get(key, ())
            found[key] = (so_far if isinstance(so_far, tuple) else ()) + items
        else:
            found[key] = value
    return found


def _is_own_key(key: str) -> bool:
    plain = key.replace("-", "a").replace("_", "a")
    return key.startswith(OWN_PREFIX) and len(key) > len(OWN_PREFIX) and plain.isalnum()


def _unknown_key(key: str, pair: str) -> MemtoolError:
    import difflib  # only a wrong key pays for it

    near = difflib.get_close_matches(key, [name for name in BY_NAME if name not in NOT_BY_SET], n=1)
    own = "".join(c if c.isalnum() else "-" for c in key.removeprefix(OWN_PREFIX)) or "name"
    mended = f"--set {OWN_PREFIX}{own}={pair.partition('=')[2]}"
    hint = f"did you mean {near[0]}? For a key of your own: {mended}" if near else mended
    return MemtoolError(f"no memory has the key {key!r}", hint=hint, code="unknown-key")
