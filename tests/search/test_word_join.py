"""The join of many texts: it finds what is alike, and its time grows with their number alone."""

from __future__ import annotations

from conftest import make_memory

from memtool.search.word_join import FLEET, TREE, JoinLimits, WordNumbers, join_similar


def near(*titles: str, limits: JoinLimits = TREE, wanted: tuple[int, ...] = ()) -> list[list[int]]:
    numbers = WordNumbers()
    memories = [make_memory(f"dec-{at}", "", title=title) for at, title in enumerate(titles)]
    texts = {at: numbers.number(memory) for at, memory in enumerate(memories)}
    return [matches for _at, matches in join_similar(texts, limits, wanted or None)]


def test_many_texts_are_joined_by_their_rare_words() -> None:
    """Each finds those that share most words with it; unrelated texts are not joined."""
    titles = ("Queues drain at night", "The queues drain nightly at night", "Tabs, not spaces")
    assert near(*titles) == [[1], [0], []]
    assert near(*titles, wanted=(1,)) == [[0]]


def test_a_part_is_a_candidate_in_a_tree_and_not_in_a_fleet() -> None:
    """The limits say how much of all words two texts share."""
    part = "Sessions live in Redis"
    whole = f"{part} since cookies grew past four kilobytes, which browsers refuse outright today"
    assert near(part, whole)[0] == [1]
    assert near(part, whole, limits=FLEET)[0] == []


def test_texts_without_words_are_joined_with_each_other() -> None:
    """Nothing else can be said of them."""
    assert near("Go!", "To be", "Queues drain at night") == [[1], [0], []]


def test_a_template_costs_no_more_than_other_texts() -> None:
    """Of thousands that share a template those with the same rare words are found, and not more."""
    titles = [f"Service {at // 2:05} deploys through pipeline" for at in range(4_000)]
    matches = near(*titles)
    assert all(at ^ 1 in indexes for at, indexes in enumerate(matches))
    assert max(map(len, matches)) <= TREE.max_words
