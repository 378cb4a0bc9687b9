"""Messages of commits as forges join them: trailers, pull requests and co-authors."""

from __future__ import annotations

import pytest

from memtool.store.messages import (
    MEMORY_ID,
    PURGES,
    UNDOES,
    UPHOLDS,
    compose,
    filter_trailers,
    find_co_authors,
    find_pull_request,
    find_reason,
    find_values,
    parse_trailers,
)

COMMIT, OTHER = "1a44fc000362a64bbf134f240c0479dd2790990e", "b" * 40
GITHUB = f"""\
Keep sessions in redis (#12)

* Try sqlite

It is fast enough.

Memory-Id: dec-a
Upholds: dec-a
Reason: measured

* Use redis

Memory-Id: dec-d
Purges: dec-b, dec-c
Undoes: {COMMIT}
Reason: it was slow

---------

Co-authored-by: Bo <bo@example.org>
"""
GIT = f"""\
Squashed commit of the following:

commit {OTHER}
Author: Ada <ada@example.org>
Date:   Sun Nov 1 10:00:00 2026 +0000

    Use redis

    Purges: dec-b dec-c
    Undoes: {COMMIT}

commit {COMMIT}
Author: Ada <ada@example.org>
Date:   Sun Nov 1 09:00:00 2026 +0000

    Try sqlite

    Upholds: dec-a
"""
GITLAB = f"""\
Keep sessions in redis

* Try sqlite

Upholds: dec-a
* Use redis

Purges: dec-b,
  dec-c
Undoes: {COMMIT}

See merge request ada/shop!12
"""
BITBUCKET = f"""\
Merged in redis (pull request #12)

Keep sessions in redis

* Try sqlite
  Upholds: dec-a
* Use redis
  Purges: dec-b, dec-c
  Undoes: {COMMIT}

Approved-by: Bo
"""
GERRIT = f"""\
Keep sessions in redis

It was slow.

Upholds: dec-a
Purges: dec-b
Purges: dec-c
Undoes: {COMMIT}
Change-Id: I1a44fc000362a64bbf134f240c0479dd2790990e
Reviewed-on: https://review.example.org/c/shop/+/12
"""
BULLETS = f"Redis\n\n- Upholds: dec-a\n* purges: dec-b dec-c\n* Undoes: {COMMIT}\n"


@pytest.mark.parametrize(
    "message", [GITHUB, GIT, GITLAB, BITBUCKET, GERRIT, BULLETS, GERRIT.replace("\n", "\r\n")]
)
def test_a_trailer_counts_wherever_a_forge_puts_it(message: str) -> None:
    """The values of all joined commits are united, whatever text is around them."""
    trailers = parse_trailers(message)
    assert find_values(trailers, UPHOLDS) == ("dec-a",)
    assert find_values(trailers, PURGES) == ("dec-b", "dec-c")
    assert find_values(trailers, UNDOES) == (COMMIT,)


@pytest.mark.parametrize(
    "line",
    [
        "> Upholds: dec-a",
        ">Upholds: dec-a",
        "* > Upholds: dec-a",
        "Upholds dec-a",
        "See Upholds: dec-a",
        "Upholds: Ada <ada@example.org>",
        "Upholds: https://example.org/dec-a",
        "Upholds: dec-a, and Dec-B",
        "Upholds:",
        "Undoes: 1a44fc0003",
        "Undoes: dec-a",
        "Signed-off-by: Ada <ada@example.org>",
    ],
)
def test_a_line_that_only_looks_like_a_trailer_is_none(line: str) -> None:
    """Quoted lines, lines within text, and other names are not trailers."""
    assert parse_trailers(f"Upholds: dec-z\n\n{line}\n\nUpholds: dec-b\n") == ((UPHOLDS, "dec-b"),)


def test_each_commit_of_a_squash_keeps_its_reason() -> None:
    """A reason is about the memories of its own commit; with a single commit it is about all."""
    trailers = parse_trailers(GITHUB)
    assert [
        find_reason(filter_trailers(trailers, [id_]))
        for id_ in ("dec-a", "dec-d", "dec-c", "dec-x")
    ] == [
        "measured",
        "it was slow",
        "it was slow",
        "",
    ]
    assert find_values(filter_trailers(trailers, ["dec-a"]), UNDOES) == ()
    single = parse_trailers("Forget\n\nMemory-Id: dec-a\nReason: it was wrong\n")
    assert find_reason(filter_trailers(single, ["dec-x"])) == "it was wrong"
    assert find_values(single, MEMORY_ID) == ("dec-a",)


@pytest.mark.parametrize(
    ("message", "number"),
    [
        (GITHUB, "#12"),
        (GITLAB, "!12"),
        (BITBUCKET, "#12"),
        (GERRIT, "#12"),
        (GIT, ""),
        ("Merge pull request #12 from ada/redis\n\nKeep sessions (#7)\n", "#12"),
        ('Revert "Keep sessions (#12)" (#15)', "#15"),
        ('Revert "Keep sessions (#12)"', ""),
        ("Fix (#12) at last", ""),
        ("Fix\n\nsee (#12)\n", ""),
        ("Fix (#x12)", ""),
        ("", ""),
    ],
)
def test_the_pull_request_is_read_as_forges_write_it(message: str, number: str) -> None:
    """The number of a pull or merge request comes with its mark; others' numbers do not count."""
    assert find_pull_request(message) == number


def test_co_authors_are_others_than_the_author_and_named_once() -> None:
    """They may be in the middle of a message; an unprintable name is left out."""
    lines = (
        "Co-authored-by: Ada <ada@example.org>",
        "    co-authored-by: Bo <bo@example.org>",
        "* Co-Authored-By: Cy <cy@example.org>",
        "Co-authored-by: Robert <bo@example.org>",
        "Co-authored-by: A. L. <ADA@example.org>",
        "Co-authored-by: Eve\x1b[31m <eve@example.org>",
        "Co-authored-by: nobody",
        "> Co-authored-by: Dan <dan@example.org>",
    )
    message = "\n\n".join(("Keep sessions", *lines, "The end."))
    assert find_co_authors(message, "Ada", "ada@example.org") == ("Bo", "Cy")


def test_long_lines_are_folded_and_read_back() -> None:
    """No line has over 100 characters, and none of a folded text begins a trailer of its own."""
    ids = ", ".join(f"dec-2026-03-01-hold-a-seat-for-{number}-minutes" for number in range(20))
    reason = "- it says Supersedes: dec-forged and * Memory-Id: dec-forged again, " * 9
    text = compose("memory: x", {MEMORY_ID: ids, "Reason": reason}, f"renew dec-a: {reason}")
    assert max(map(len, text.splitlines())) <= 100
    assert parse_trailers(text) == ((MEMORY_ID, ids), ("Reason", reason.strip()))
