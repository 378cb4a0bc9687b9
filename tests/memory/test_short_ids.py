from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memtool.memory.short_ids import ShortIds, find_short, parse

SEAT = "dec-2026-08-10-hold-a-seat-for-20-minutes-2g54"
MADE = st.builds(
    lambda prefix, day, slug, suffix: f"{prefix}-2026-08-{day}-{slug}-{suffix}",
    st.sampled_from(["dec", "sem"]),
    st.sampled_from(["10", "11"]),
    st.sampled_from(["seat", "hold-a-seat", "2g54"]),
    st.sampled_from(["2g54", "seat", "2026"]),
)
FOREIGN = st.lists(
    st.sampled_from(["adr", "dec", "0001", "2g54", "use-postgresql"]), min_size=1
).map("-".join)


def test_an_id_is_shown_by_type_and_suffix() -> None:
    """Date and slug are left out, since the title is next to the id."""
    assert ShortIds([SEAT]).shorten(SEAT) == "dec-2g54"


def test_an_id_whose_suffix_is_shared_keeps_its_date() -> None:
    """Another type may have the same suffix; another memory of the type may not."""
    other = "dec-2026-08-11-no-holds-2g54"
    note = "sem-2026-08-10-a-note-2g54"
    short = ShortIds([SEAT, other, note])
    assert [short.shorten(id_) for id_ in (SEAT, other, note)] == [
        "dec-2026-08-10-2g54",
        "dec-2026-08-11-2g54",
        "sem-2g54",
    ]


def test_ids_that_share_date_and_suffix_are_shown_whole() -> None:
    same_day = "dec-2026-08-10-no-holds-2g54"
    short = ShortIds([SEAT, same_day])
    assert [short.shorten(SEAT), short.shorten(same_day)] == [SEAT, same_day]


def test_an_imported_id_keeps_the_parts_that_tell_it_apart() -> None:
    """Up to 20 characters it stays whole."""
    ids = [
        "bd-a1b2",
        "adr-0001-use-postgresql",
        "adr-0002-use-redis-for-it",
        "adr-0002-use-rabbitmq",
    ]
    short = ShortIds(ids)
    assert [short.shorten(id_) for id_ in ids] == [
        "bd-a1b2",
        "adr-0001",
        "adr-0002-use-redis",
        "adr-0002-use-rabbitmq",
    ]


def test_an_imported_id_never_looks_like_the_short_form_of_another() -> None:
    """`dec-2g54-…` would begin with what means the decision."""
    foreign = "dec-2g54-from-another-tool"
    assert ShortIds([SEAT, foreign]).shorten(foreign) == "dec-2g54-from"


def test_an_id_that_is_another_ones_short_form_takes_it() -> None:
    assert ShortIds([SEAT, "dec-2g54"]).shorten(SEAT) == "dec-2026-08-10-2g54"


def test_only_ids_of_our_own_form_have_parts() -> None:
    parts = parse(SEAT)
    assert parts is not None
    assert (parts.prefix, parts.date, parts.suffix) == ("dec", "2026-08-10", "2g54")
    for other in (
        "adr-0001-use-postgresql",
        "dec-2g54",
        "dec-2026-08-10-2g54",
        f"{SEAT}-x",
        "dec-",
    ):
        assert parse(other) is None, other


def test_a_short_form_finds_every_id_that_has_it() -> None:
    other = "dec-2026-08-11-no-holds-2g54"
    ids = [SEAT, other, "dec-2026-08-12-no-holds-9zzz"]
    assert find_short("dec-2g54", ids) == [SEAT, other]
    assert find_short("dec-2026-08-11-2g54", ids) == [other]
    for text in ("2g54", "dec-", "dec-2g5", "dec-2026-2g54", "", "dec-2026-08-10-hold-2g54"):
        assert find_short(text, ids) == [], text


@given(st.sets(MADE | FOREIGN, max_size=12))
def test_every_short_form_means_the_id_that_it_is_shown_for(ids: set[str]) -> None:
    """By the resolver's order: the whole id, a short form, then what one id alone begins with."""
    short = ShortIds(ids)
    for id_ in ids:
        form = short.shorten(id_)
        if form in ids:
            assert form == id_
        elif near := find_short(form, ids):
            assert near == [id_]
        else:
            assert [candidate for candidate in ids if candidate.startswith(form)] == [id_]


@given(st.sets(MADE | FOREIGN, max_size=12))
def test_short_forms_do_not_depend_on_the_order_of_ids(ids: set[str]) -> None:
    shortened = [{id_: ShortIds(order).shorten(id_) for id_ in ids} for order in (sorted(ids), ids)]
    assert shortened[0] == shortened[1]


def test_ids_in_a_sentence_are_shortened() -> None:
    """Also before a comma; other words, and ids of other trees, stay."""
    short = ShortIds([SEAT, "dec-old"])
    other = "dec-2026-08-11-no-holds-9zzz"
    assert short.shorten_in(f"NEWER: {SEAT}, dec-old; {other}  and well-known.") == (
        f"NEWER: dec-2g54, dec-old; {other}  and well-known."
    )
