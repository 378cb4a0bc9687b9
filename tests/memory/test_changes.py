from __future__ import annotations

import pytest
from conftest import make_memory
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory.changes import (
    Change,
    Version,
    compare,
    describe_change,
    find_changed_keys,
    find_changes,
    is_redacted,
    is_redaction,
)
from memtool.memory.memory import FieldValue

MARK = "[REDACTED:token]"


def version(id: str = "dec-a", body: str = "It is so.\n", **fields: FieldValue) -> Version:
    return Version(f".memory/{id}.md", make_memory(id, body, **fields))


def kinds(before: Version | None, after: Version | None) -> list[str]:
    return [change.kind for change in find_changes(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("candidate", "confirmed", ["confirmed"]),
        ("confirmed", "pinned", ["pinned"]),
        ("pinned", "confirmed", ["unpinned"]),
        ("pinned", "candidate", ["unpinned"]),
        ("confirmed", "deprecated", ["deprecated"]),
        ("pinned", "archived", ["archived"]),
        ("confirmed", "deleted", ["forgotten"]),
        ("deleted", "confirmed", ["restored"]),
        ("archived", "pinned", ["restored"]),
        ("confirmed", "candidate", ["edited"]),
        ("confirmed", "confirmed", []),
    ],
)
def test_each_change_of_status_has_its_word(before: str, after: str, expected: list[str]) -> None:
    """A change of status is named by the verb that makes it."""
    assert kinds(version(status=before), version(status=after)) == expected


def test_a_status_that_is_left_out_is_the_default() -> None:
    """Writing down the status that held anyway changes nothing."""
    assert find_changes(version(), version(status="confirmed")) == ()


def test_vouching_again_is_a_confirmation() -> None:
    """A newer `checked` is a confirmation, with its author."""
    after = version(checked={"at": "2026-02-23T00:00:00Z", "by": "Bob"})
    (change,) = find_changes(version(), after)
    assert (change.kind, change.details) == ("confirmed", {"by": "Bob"})


def test_taking_a_confirmation_away_is_an_edit() -> None:
    """Removing `checked` is not a confirmation."""
    before = version(checked={"at": "2026-02-23T00:00:00Z", "by": "Bob"})
    (change,) = find_changes(before, version())
    assert (change.kind, change.details["keys"]) == ("edited", ("checked",))


def test_what_was_seen_is_no_step() -> None:
    """A record that is added or taken away says nothing about what holds."""
    seen = {"saw": "src/x.py=3f2a91c0de12"}
    assert find_changes(version(), version(checked=seen)) == ()
    at = {"at": "2026-02-23T00:00:00Z", "by": "Bob"}
    assert find_changes(version(checked=at), version(checked=at | seen)) == ()
    (change,) = find_changes(version(checked=seen), version(checked=at | seen))
    assert change.kind == "confirmed"


def test_forgetting_tells_who_and_why() -> None:
    """The reason that the file holds is part of the change."""
    deleted: FieldValue = {"at": "2026-02-23T00:00:00Z", "by": "Bob", "reason": "wrong"}
    (change,) = find_changes(version(), version(status="deleted", deleted=deleted))
    assert change.details == {"from": "confirmed", "by": "Bob", "reason": "wrong"}
    assert describe_change(change) == "from confirmed; by Bob; wrong"


def test_an_edited_claim_is_silent_only_after_confirmation() -> None:
    """Candidates may be edited freely, confirmed claims may not."""
    for status, silent in (("candidate", False), ("confirmed", True), ("deprecated", True)):
        (change,) = find_changes(
            version(status=status), version(status=status, body="It is not.\n")
        )
        assert (change.kind, change.details["silent"]) == ("edited", silent)
        assert change.details["keys"] == ("body",)


def test_labels_may_change() -> None:
    """Keys that may change later make an edit that is not silent."""
    (change,) = find_changes(version(), version(tags=("x",), importance="0.9", **{"x-own": "1"}))
    assert change.details == {"keys": ("tags", "importance", "x-own"), "silent": False}


def test_a_redaction_is_told_apart_from_an_edit_beside_it() -> None:
    """Redacting the title while rewriting the body gives both changes."""
    before = version(title="Key is abc", body="One.\n")
    changes = find_changes(before, version(title=f"Key is {MARK}", body="Two.\n"))
    assert [(c.kind, c.details["keys"]) for c in changes] == [
        ("redacted", ("title",)),
        ("edited", ("body",)),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a SECRET b", f"a {MARK} b", True),
        ("SECRET", MARK, True),
        ("a S b T c", f"a {MARK} b {MARK} c", True),
        (f"a {MARK} b T c", f"a {MARK} b {MARK} c", True),
        (f"S {MARK}", f"{MARK} {MARK}", True),
        (f"S{MARK}", f"{MARK}{MARK}", True),
        (f"{MARK}S", f"{MARK}{MARK}", True),
        (f"a {MARK}S{MARK} b", f"a {MARK}{MARK}{MARK} b", True),
        (f"{MARK}ST{MARK}U", f"{MARK}{MARK}T{MARK}{MARK}", True),
        ("ab", f"{MARK}{MARK}", True),
        ("a", f"{MARK}{MARK}", False),
        (MARK, f"{MARK}{MARK}", False),
        (f"a{MARK}", f"{MARK}b{MARK}", False),
        (f"{MARK}S", f"[REDACTED:email]{MARK}", False),
        ("same", "same", False),
        (f"{MARK} b", f"{MARK} c", False),
        ("a S b", f"a {MARK} other", False),
        ("ab", f"ab{MARK}", False),
        (f"a {MARK} long claim b T c", f"a {MARK} b {MARK} c", False),
        ("a [REDACTED:open", "a [REDACTED:open b", False),
        ("the sky is blue", "the sky is [REDACTED: in truth green]", False),
        ("the sky is blue", "the sky is [REDACTED:]", False),
        ("the key is abc", "the key is [REDACTED:token:0a1b2c3d]", True),
        ("[REDACTED: x] is abc", f"[REDACTED: x] is {MARK}", True),
    ],
)
def test_only_spans_that_became_marks_are_a_redaction(
    before: str, after: str, *, expected: bool
) -> None:
    """Everything outside the new marks must be as it was."""
    assert is_redaction(before, after) is expected


@given(st.lists(st.text("ab \n", min_size=1, max_size=8), min_size=1, max_size=5))
def test_redacting_whole_words_is_always_seen(words: list[str]) -> None:
    """Any text in which unlike spans became marks is a redaction of the text before."""
    before = "|".join(f"{word}|SECRET{n}" for n, word in enumerate(words))
    after = "|".join(f"{word}|{MARK}" for word in words)
    assert is_redaction(before, after)


@given(
    st.lists(st.sampled_from(["S", "T", "ab", " ", MARK, "[REDACTED:email]"]), max_size=8),
    st.data(),
)
def test_a_mark_beside_another_is_seen(pieces: list[str], data: st.DataObject) -> None:
    """Old and new marks may be adjacent, in any order."""
    hidden = data.draw(st.lists(st.booleans(), min_size=len(pieces), max_size=len(pieces)))
    after = [
        MARK if piece in ("S", "T") and is_new else piece
        for piece, is_new in zip(pieces, hidden, strict=True)
    ]
    assert is_redaction("".join(pieces), "".join(after)) is (after != pieces)


def test_lists_and_tables_are_redacted_item_by_item() -> None:
    """A list with one redacted item is redacted; one with an item more is edited."""
    assert is_redacted(("a", "key=x"), ("a", f"key={MARK}"))
    assert not is_redacted(("a",), ("a", MARK))
    assert is_redacted({"at": "now", "by": "x"}, {"at": "now", "by": MARK})
    assert not is_redacted(None, MARK)


def test_superseding_is_told_of_both_memories() -> None:
    """The new memory is added, and what it names is superseded by it."""
    old = version("dec-old")
    changes = compare([old], [old, version("dec-new", supersedes=("dec-old",))])
    assert changes == (
        Change(
            "added",
            "dec-new",
            "Title of dec-new",
            ".memory/dec-new.md",
            {"supersedes": ("dec-old",)},
        ),
        Change(
            "superseded", "dec-old", "Title of dec-old", ".memory/dec-old.md", {"by": "dec-new"}
        ),
    )


def test_a_deleted_memory_supersedes_nothing() -> None:
    """Superseding takes effect when the superseding memory is restored, not before."""
    gone = version("dec-new", supersedes=("dec-old",), status="deleted")
    back = version("dec-new", supersedes=("dec-old",))
    assert "superseded" not in kinds(None, gone)
    assert kinds(gone, back) == ["restored", "superseded"]


def test_a_moved_file_is_the_same_memory() -> None:
    """A file that lies elsewhere under its name has moved, whatever else changed."""
    before = version(status="candidate")
    after = Version(".memory/other/dec-a.md", make_memory("dec-a", status="confirmed"))
    changes = compare([before], [after])
    assert [change.kind for change in changes] == ["confirmed", "moved"]
    assert changes[1].details == {"from": ".memory/dec-a.md"}


def test_a_renamed_id_is_known_by_its_moment_of_writing() -> None:
    """Another id with the same moment and title, or that git paired, is the same memory."""
    old = version("dec-a", title="T")
    assert [c.kind for c in compare([old], [version("dec-b", title="T")])] == ["moved"]
    other = version("dec-b", title="U")
    assert [c.kind for c in compare([old], [other])] == ["removed", "added"]
    paired = compare([old], [other], {other.path: old.path})
    assert [c.kind for c in paired] == ["edited", "moved"]
    assert paired[1].details["from_id"] == "dec-a"


def test_a_successor_is_not_taken_for_a_renamed_memory() -> None:
    """Git pairs a removed memory with its similar successor; memtool does not."""
    old = version("dec-a", title="T")
    new = version("dec-b", title="T", supersedes=("dec-a",))
    changes = compare([old], [new], {new.path: old.path})
    assert [(c.id, c.kind) for c in changes] == [
        ("dec-a", "superseded"),
        ("dec-a", "removed"),
        ("dec-b", "added"),
    ]


def test_a_file_that_broke_is_not_removed() -> None:
    """An unreadable file is still there, with its problem."""
    broken = Version(".memory/dec-a.md", None, "it is not UTF-8 text")
    (change,) = find_changes(version(), broken)
    assert (change.kind, change.title) == ("unreadable", "Title of dec-a")
    assert change.details == {"fault": "it is not UTF-8 text"}
    assert kinds(broken, version()) == ["mended"]
    assert kinds(None, broken) == ["unreadable"]
    assert kinds(broken, None) == ["removed"]
    assert kinds(broken, broken.replace(fault="other")) == []


def test_the_order_of_the_input_does_not_matter() -> None:
    """The same sets of versions give the same changes, whatever their order."""
    before = [version(name) for name in ("dec-a", "dec-b", "dec-c")]
    after = [version(name, status="pinned") for name in ("dec-d", "dec-b", "dec-c")]
    assert compare(before, after) == compare(before[::-1], after[::-1])


def test_the_id_and_the_lifecycle_are_no_edited_keys() -> None:
    """Keys that other changes report are left out."""
    old, new = make_memory("dec-a"), make_memory("dec-b", title="Title of dec-a", status="pinned")
    assert find_changed_keys(old, new) == ()
