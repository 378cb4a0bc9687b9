from __future__ import annotations

import pytest

from memtool.authoring import draft
from memtool.errors import MemtoolError


@pytest.mark.parametrize(
    ("pairs", "found"),
    [
        (["domain=billing"], {"domain": "billing"}),
        (["domain=a=b"], {"domain": "a=b"}),
        (["aliases=one, two", "aliases=three"], {"aliases": ("one", "two", "three")}),
        (["x-team=core"], {"x-team": "core"}),
        ([], {}),
    ],
)
def test_set_reads_keys_and_values(pairs: list[str], found: dict[str, object]):
    """Lists take commas and repetition, all else is text."""
    assert draft.assigned(pairs) == found


@pytest.mark.parametrize(
    ("pair", "message", "hint"),
    [
        ("domain", "--set 'domain' is not KEY=VALUE", "--set domain=billing"),
        ("", "--set '' is not KEY=VALUE", "--set domain=billing"),
        ("domian=x", "no memory has the key 'domian'",
         "did you mean domain? For a key of your own: --set x-domian=x"),
        ("zzz=1", "no memory has the key 'zzz'", "--set x-zzz=1"),
        ("=1", "no memory has the key ''", "--set x-name=1"),
        ("x-=1", "no memory has the key 'x-'", "--set x-name=1"),
        ("x-a: b=1", "no memory has the key 'x-a: b'", "--set x-a--b=1"),
        ("id=dec-b", "id is not for --set", "it has an option of its own, --id"),
        ("deleted=now", "deleted is not for --set", "memtool forget writes it"),
    ],
)  # fmt: skip
def test_set_refuses_what_it_must_not_write(pair: str, message: str, hint: str):
    """A key that no memory has, or that has its own verb, is told with the way to do it."""
    with pytest.raises(MemtoolError) as caught:
        draft.assigned([pair])
    assert (caught.value.message, caught.value.hint) == (message, hint)
