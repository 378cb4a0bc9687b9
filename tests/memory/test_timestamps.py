"""Moments: the same seconds as `datetime`, and no text that is not a moment."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone

import pytest

from memtool.memory import timestamps

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = -62_135_596_800
LAST = 253_402_300_799


def test_seconds_are_written_as_datetime_writes_them() -> None:
    """For thousands of seconds between the years 1 and 9999 both directions agree."""
    rng = random.Random(1)
    for second in [FIRST, LAST, -1, 0, 1, *(rng.randint(FIRST, LAST) for _ in range(5_000))]:
        expected = EPOCH + timedelta(seconds=second)
        text = timestamps.render(second)
        assert expected.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0") == text
        assert timestamps.parse(text) == second
        assert timestamps.format_date(second) == text[:10]
        assert timestamps.parse_date(text[:10]) == second - second % 86_400


def test_zones_and_fractions_are_read_as_datetime_reads_them() -> None:
    """A zone shifts the second, a fraction is cut."""
    rng = random.Random(2)
    for _ in range(3_000):
        second = rng.randint(FIRST + 100_000, LAST - 100_000)
        zone = timezone(timedelta(minutes=rng.randint(-1_439, 1_439)))
        text = (EPOCH + timedelta(seconds=second)).astimezone(zone).isoformat()
        assert timestamps.parse(text) == second
        assert timestamps.parse(f"{text[:19]}.{rng.randint(0, 10**9)}{text[19:]}") == second


def test_every_day_of_four_centuries_is_counted() -> None:
    """Days are numbered without a gap, leap years and all."""
    days = timestamps.days_from_civil(1900, 1, 1)
    for number in range(146_097):
        assert (
            timestamps.days_from_civil(*timestamps.civil_from_days(days + number)) == days + number
        )
    assert timestamps.civil_from_days(days + 146_097) == (2300, 1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-02-22",
        "2026-02-22T19:33:00",
        "2026-02-22T19:33Z",
        "2026-02-22T24:00:00Z",
        "2026-02-22T23:60:00Z",
        "2026-02-22T23:59:61Z",
        "2026-02-30T00:00:00Z",
        "2025-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-00-10T00:00:00Z",
        "2026-13-10T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-02-22T19:33:00+2:00",
        "2026-02-22T19:33:00+0200",
        "2026-02-22T19:33:00+24:00",
        "2026-02-22T19:33:00+00:60",
        "2026-02-22T19:33:00.Z",
        "2026-02-22T19:33:00.5",
        "2026-02-22T19:33:00 Z",
        " 2026-02-22T19:33:00Z",
        "2026-02-22T19:33:00Z ",
        "2026-02-22X19:33:00Z",
        "2026-02-22T19-33-00Z",
        "²026-02-22T19:33:00Z",
        "\u0662026-02-22T19:33:00Z",
        "2026-02-22T1\u0669:33:00Z",
        "-026-02-22T19:33:00Z",
        "+026-02-22T19:33:00Z",
        "2026-02-22T19:33:00UTC",
        "2026-02-22T+9:33:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "1771788780",
    ],
)
def test_other_texts_are_no_moment(text: str) -> None:
    """Days and times that do not exist, and moments without a zone, are refused."""
    with pytest.raises(ValueError, match=r"."):
        timestamps.parse(text)


@pytest.mark.parametrize(
    "text", ["2026-02-30", "2026-2-03", "20260203", "2026-02-03 ", "0000-01-01"]
)
def test_other_texts_are_no_day(text: str) -> None:
    """Days that do not exist or are written otherwise are refused."""
    with pytest.raises(ValueError, match=r"."):
        timestamps.parse_date(text)


def test_a_leap_second_is_the_last_second_of_its_minute() -> None:
    """RFC 3339 allows :60; it is read as :59."""
    assert timestamps.parse("2016-12-31T23:59:60Z") == timestamps.parse("2016-12-31T23:59:59Z")


def test_a_day_lasts_from_its_first_to_its_last_second() -> None:
    """A plain date begins at midnight and ends a second before the next, in UTC."""
    assert timestamps.render(timestamps.start("2026-02-28")) == "2026-02-28T00:00:00Z"
    assert timestamps.render(timestamps.end("2026-02-28")) == "2026-02-28T23:59:59Z"
    assert timestamps.start("2026-02-28T01:00:00+01:00") == timestamps.start("2026-02-28")
    assert timestamps.end("2026-02-28T00:00:00Z") == timestamps.start("2026-02-28")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 910),
        ("1m", 940),
        ("0h", 1_000),
        ("1d", -85_400),
        ("2w", -1_208_600),
        ("1y", -31_535_000),
        ("1970-01-02", 86_400),
        ("1970-01-01T00:00:07Z", 7),
    ],
)
def test_ages_count_back_from_now(text: str, expected: int) -> None:
    """A person types an age, a day or a moment."""
    assert timestamps.parse_when(text, now=1_000) == expected


@pytest.mark.parametrize(
    "text", ["", "d", "-1d", "1.5d", "²d", "1 d", "1x", "30", "1d ", "+1d", "9" * 5_000 + "d"]
)
def test_other_texts_are_no_age(text: str) -> None:
    """Anything else is refused."""
    with pytest.raises(ValueError, match=r"."):
        timestamps.parse_when(text, now=0)
