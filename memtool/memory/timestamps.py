"""Timestamps: RFC 3339 texts and ages to seconds, and back.

`datetime` is not imported: the hot commands compare moments at every start. The calendar
arithmetic is Howard Hinnant's "chrono-compatible low-level date algorithms" (days_from_civil),
exact for the whole proleptic Gregorian calendar.
"""

from __future__ import annotations

DAY_S = 86_400
UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": DAY_S, "w": 7 * DAY_S, "y": 365 * DAY_S}
_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, which `date` can write
_DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Count the days from 1970-01-01 to a date; negative before it."""
    year -= month <= 2
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return (year, month, day) of a day number: the inverse of `days_from_civil`."""
    days += 719_468
    era = days // 146_097
    day_of_era = days - era * 146_097
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return (
        year_of_era + era * 400 + (month <= 2),
        month,
        day_of_year - (153 * shifted + 2) // 5 + 1,
    )


def _parse_number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"not a number: {text!r}")
    return int(text)


_MAX_KNOWN = 1 << 12
_days: dict[str, int] = {}
"""The first second of days that were read before: many memories are of one day."""


def parse_date(text: str) -> int:
    """Return the first second of a `YYYY-MM-DD` day in UTC. Raises ValueError."""
    second = _days.get(text)
    if second is None:
        if len(_days) >= _MAX_KNOWN:
            _days.clear()
        second = _days[text] = _compute_date(text)
    return second


def _compute_date(text: str) -> int:
    if len(text) != 10 or text[4] != "-" or text[7] != "-":
        raise ValueError(f"not a date: {text!r}")
    year, month, day = _parse_number(text[:4]), _parse_number(text[5:7]), _parse_number(text[8:])
    if not (year >= 1 and 1 <= month <= 12 and 1 <= day <= _DAYS_IN_MONTH[month - 1]):
        raise ValueError(f"no such day: {text!r}")
    days = days_from_civil(year, month, day)
    if civil_from_days(days) != (year, month, day):  # 29 February of a common year
        raise ValueError(f"no such day: {text!r}")
    return days * DAY_S


def parse(text: str) -> int:
    """Return the second of an RFC 3339 moment with a zone; fractions are cut. Raises ValueError."""
    if len(text) < 20 or text[10] not in "Tt " or text[13] != ":" or text[16] != ":":
        raise ValueError(f"not an RFC 3339 moment: {text!r}")
    clock = _parse_number(text[11:13] + text[14:16] + text[17:19])
    hour, minute, second = clock // 10_000, clock // 100 % 100, clock % 100
    if hour > 23 or minute > 59 or second > 60:
        raise ValueError(f"no such time: {text!r}")
    zone = text[19:]
    if zone[0] == ".":
        digits = len(zone) - len(zone[1:].lstrip("0123456789")) - 1
        if not digits:
            raise ValueError(f"not an RFC 3339 moment: {text!r}")
        zone = zone[1 + digits :]
    moment = (
        parse_date(text[:10]) + hour * 3_600 + minute * 60 + min(second, 59) - _parse_offset(zone)
    )
    if not _FIRST <= moment <= _LAST:
        raise ValueError(f"outside of the calendar: {text!r}")
    return moment


def _parse_offset(zone: str) -> int:
    if zone in ("Z", "z"):
        return 0
    if len(zone) != 6 or zone[0] not in "+-" or zone[3] != ":":
        raise ValueError(f"no zone such as Z or +02:00: {zone!r}")
    hours, minutes = _parse_number(zone[1:3]), _parse_number(zone[4:])
    if hours > 23 or minutes > 59:
        raise ValueError(f"no such zone: {zone!r}")
    return (hours * 3_600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


def start(text: str) -> int:
    """Return the first second that a moment or a plain date covers. Raises ValueError."""
    return parse_date(text) if len(text) == 10 else parse(text)


def end(text: str) -> int:
    """Return the last second that a moment or a plain date covers. Raises ValueError."""
    return parse_date(text) + DAY_S - 1 if len(text) == 10 else parse(text)


def parse_when(text: str, now: int) -> int:
    """Parse a time as users type it: a moment, a date, or an age such as `30d` or `12h`.

    Raises:
        ValueError: it is none of these.
    """
    if text[-1:] in UNITS_S and text[:-1].isascii() and text[:-1].isdigit():
        return now - int(text[:-1]) * UNITS_S[text[-1]]
    return start(text)


def render(second: int) -> str:
    """Write a second as RFC 3339 in UTC, such as `2026-02-22T19:33:00Z`."""
    time = second % DAY_S
    return f"{format_date(second)}T{time // 3_600:02}:{time // 60 % 60:02}:{time % 60:02}Z"


def format_date(second: int) -> str:
    """Write the UTC day of a second as `YYYY-MM-DD`."""
    year, month, day = civil_from_days(second // DAY_S)
    return f"{year:04}-{month:02}-{day:02}"
