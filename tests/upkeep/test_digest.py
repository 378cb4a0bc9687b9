"""Digests: which memories are told, how, and when a page is written anew."""

from __future__ import annotations

from conftest import Sandbox
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory import memory
from memtool.upkeep.digest import (
    CHANGED,
    EMPTY,
    MAX_LISTED,
    MAX_SENTENCE,
    UNCHANGED,
    Digest,
    _bound,
    first_sentence,
    format_page,
    plan_digests,
    sum_up,
)

NOW = 1_772_366_400


def summed(sandbox: Sandbox, category: str = "decision", seed: bytes = b"abc") -> Digest:
    tree = sandbox.context().tree()
    return sum_up(tree, category, NOW, lambda _count: seed)


def test_a_page_tells_each_living_memory_in_a_line_the_most_important_first(
    sandbox: Sandbox,
) -> None:
    """Title, first sentence, day and link are on one line, under the shared tag."""
    sandbox.memory("dec-a", "Redis holds them. It is fast.\n", tags=("storage",), title="Sessions")
    sandbox.memory("dec-b", "In Kafka.\n", tags=("storage",), title="Events", importance="0.9")
    sandbox.memory("dec-c", "Not one.\n", tags=("security",), title="Logs", status="candidate")
    memory = summed(sandbox).memory
    assert memory is not None
    assert memory.body == (
        "3 memories hold in the category decision: Events; Sessions; Logs.\n\n"
        "## storage\n\n"
        "- **Events.** In Kafka. (2026-02-22) [[dec-b]]\n"
        "- **Sessions.** Redis holds them. (2026-02-22) [[dec-a]]\n\n"
        "## Others\n\n"
        "- **Logs.** Not one. (2026-02-22, candidate) [[dec-c]]\n"
    )
    assert memory.items("derived_from") == ("dec-a", "dec-b", "dec-c")


def test_what_is_not_in_use_is_not_summed_up(sandbox: Sandbox) -> None:
    """Superseded, deleted, archived, deprecated and expired memories are left out."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-new", supersedes=("dec-old",))
    sandbox.memory("dec-gone", status="archived")
    sandbox.memory("dec-past", status="deprecated")
    sandbox.memory("dec-over", valid_through="2026-02-23")
    memory = summed(sandbox).memory
    assert memory is not None
    assert memory.items("derived_from") == ("dec-new",)


def test_the_same_memories_change_nothing(sandbox: Sandbox) -> None:
    """A digest stays as long as its inputs do; then it is superseded."""
    sandbox.memory("dec-a")
    first = summed(sandbox).memory
    assert first is not None
    sandbox.memory(first.id, first.body, **{k: v for k, v in first.fields.items() if k != "id"})
    assert summed(sandbox, seed=b"xyz").change == UNCHANGED
    sandbox.memory("dec-b")
    again = summed(sandbox, seed=b"xyz")
    assert again.change == CHANGED
    assert again.memory is not None
    assert again.memory.supersedes == (first.id,)


def test_digests_of_two_branches_become_one(sandbox: Sandbox) -> None:
    """If a category has two digests, the next one replaces both."""
    sandbox.memory("dec-a")
    for id_ in ("sem-one", "sem-two"):
        sandbox.memory(id_, type="semantic", category="decision", source=(f"{memory.SOURCE}0",))
    made = summed(sandbox).memory
    assert made is not None
    assert made.supersedes == ("sem-one", "sem-two")


def test_a_digest_with_nothing_left_is_to_be_archived(sandbox: Sandbox) -> None:
    """The last memory of a category takes the digest with it."""
    sandbox.memory("sem-one", type="semantic", category="decision", source=(f"{memory.SOURCE}0",))
    made = summed(sandbox)
    assert (made.change, made.memory, made.replaces[0].id) == (EMPTY, None, "sem-one")


def test_unasked_only_what_has_a_digest_is_summed_up(sandbox: Sandbox) -> None:
    """Upkeep refreshes digests, and begins none."""
    sandbox.memory("dec-a")
    sandbox.memory("war-a", category="warning")
    sandbox.memory("sem-one", type="semantic", category="warning", source=(f"{memory.SOURCE}0",))
    tree = sandbox.context().tree()
    planned = plan_digests(tree, NOW, lambda _count: b"abc")
    assert [step.category for step in planned] == ["warning"]


def test_a_page_is_bounded_and_says_what_is_left_out(sandbox: Sandbox) -> None:
    """Ten thousand memories give a page that a memory may have, naming only what it tells."""
    from conftest import make_memory

    memories = [make_memory(f"dec-{n:04}-{'x' * 100}", title="t " * 240) for n in range(300)]
    listed = _bound(memories)
    text = format_page(listed, len(memories) - len(listed))
    assert 0 < len(listed) <= MAX_LISTED
    assert len(text.encode()) < 45_000
    assert f"{300 - len(listed)} more are less important" in text


def test_a_title_neither_links_nor_hides_what_follows(sandbox: Sandbox) -> None:
    """Only the digest's own links are links."""
    sandbox.memory("dec-a", "So.\n", title="See [[dec-zzz]] <!-- and")
    memory = summed(sandbox).memory
    assert memory is not None
    assert "[[dec-zzz" not in memory.body
    assert "<!--" not in memory.body


def test_a_first_sentence_ends_where_one_does() -> None:
    """Abbreviations before a small letter end none; long ones are cut between words."""
    assert first_sentence("Use it, e.g. for logs. Then stop.") == "Use it, e.g. for logs."
    assert first_sentence("One\nline only") == "One line only"
    assert first_sentence("word " * 100).endswith("word …")


@given(st.text(max_size=400))
def test_a_first_sentence_is_a_line_of_bounded_length(text: str) -> None:
    """Whatever a memory says, its line is one."""
    line = first_sentence(text)
    assert len(line.split("\n")) == 1
    assert len(line) <= MAX_SENTENCE + 2
