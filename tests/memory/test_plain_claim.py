"""Changes by a formatter leave the claim the same, and all others do not."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.memory.plain_claim import find_plain_claim

TEXT = """Seats are _held_ for __20__ minutes.

* one
* two with `a_b_`
    * inner

```
a * _code_
```
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\n", "a\r\nb\r\n"),
        ("a  \nb\t\n", "a\nb\n"),
        ("a\n", "\na\n\n\n"),
        ("* a\n+ b\n", "- a\n- b\n"),
        ("* a\n  * b\n\n    * c\n", "- a\n  - b\n\n    - c\n"),
        ("It is _held_, __now__.\n", "It is *held*, **now**.\n"),
        ("(_so_) and `a_b_` and _it_\n", "(*so*) and `a_b_` and *it*\n"),
        ("> * a\n", "> - a\n"),
    ],
)
def test_what_claims_nothing_is_one_claim(old: str, new: str) -> None:
    """Line ends, blanks, bullets and emphasis are not part of the claim."""
    assert find_plain_claim(old) == find_plain_claim(new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("It is held.\n", "It is *held*.\n"),
        ("It is *held*.\n", "It is **held**.\n"),
        ("- a\n- b\n", "- a\n\nb\n"),
        ("- a\n", "a\n"),
        ("Call `_x_`.\n", "Call `*x*`.\n"),
        ("Call `a _x_\nb`.\n", "Call `a *x*\nb`.\n"),
        ("```\n* x\n```\n", "```\n- x\n```\n"),
        ("```\nx  \n```\n", "```\nx\n```\n"),
        ("A:\n\n    * x\n", "A:\n\n    - x\n"),
        ("snake_case_name\n", "snake*case*name\n"),
        ("[a](_x_)\n", "[a](*x*)\n"),
        ("a\nb\n", "a\n\nb\n"),
        ("1 * 2\n", "1 - 2\n"),
    ],
)
def test_what_says_something_is_another_claim(old: str, new: str) -> None:
    """Emphasis that comes or goes, code, words and paragraphs count."""
    assert find_plain_claim(old) != find_plain_claim(new)


def test_a_formatter_makes_no_silent_edit(sandbox: Sandbox) -> None:
    """Other line ends, bullets and blanks of a confirmed memory pass check; other words do not."""
    path = sandbox.path / sandbox.memory("sem-a", TEXT, type="semantic")
    sandbox.commit()
    before = path.read_bytes()
    for change in (
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b"\n* ", b"\n- ").replace(b"_held_", b"*held*") + b"\n\n",
        lambda data: data.replace(b"minutes.", b"minutes.  "),
    ):
        path.write_bytes(change(before))
        sandbox.git("add", "--all")
        assert sandbox.json("check", "--staged")["problems"] == []
    path.write_bytes(before.replace(b"_held_", b"held"))
    assert [problem["code"] for problem in sandbox.json("check")["problems"]] == ["silent-edit"]
    sandbox.commit()
    rows = sandbox.json("check", "--range", "HEAD~1..HEAD")["problems"]
    assert [row["code"] for row in rows] == ["silent-edit"]
