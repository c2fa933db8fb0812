"""Instants of CF's "UNIT since DATE" in the calendars that datetime64 does not have.

Objects of cftime where it is installed; otherwise a Date, with the fields that cftime's have.
"""
from __future__ import annotations

import re
from typing import Any, Callable, NamedTuple

# Microseconds, but of the nanosecond.
UNITS_NS = {"nanosecond": 1, "nanoseconds": 1, "ns": 1,
            **dict.fromkeys(("microsecond", "microseconds", "microsec", "microsecs", "us"), 1000),
            **dict.fromkeys(("millisecond", "milliseconds", "millisec", "millisecs", "msec", "msecs", "ms"), 10**6),
            **dict.fromkeys(("second", "seconds", "sec", "secs", "s"), 10**9),
            **dict.fromkeys(("minute", "minutes", "min", "mins"), 60 * 10**9),
            **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), 3600 * 10**9),
            **dict.fromkeys(("day", "days", "d"), 86400 * 10**9)}
_SINCE = re.compile(
    r"\s*([A-Za-z]+)\s+since\s+([+-]?\d+)-(\d{1,2})(?:-(\d{1,2}))?"
    r"(?:[T\s]\s*(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?)?\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?|(?<=\s)00?(?::00)?)?\s*", re.I)
_DAY_US = 86400 * 10**6
_GREGORIAN_JDN = 2299161  # 1582-10-15, which follows 1582-10-04
_1970_JDN = 2440588


class Since(NamedTuple):
    """Units of time: nanoseconds of one, and what they count from, in UTC."""

    unit_ns: int
    year: int
    month: int
    day: int
    us: int  # since midnight; may be negative or beyond the day where a time zone was given


def parse(units: object) -> Since | None:
    """None where UNITS is no "UNIT since DATE", or of a unit without a fixed length."""
    found = _SINCE.fullmatch(units) if isinstance(units, str) else None
    unit_ns = UNITS_NS.get(found[1].lower()) if found else None
    if found is None or unit_ns is None or not (1 <= int(found[3]) <= 12 and 1 <= int(found[4] or 1) <= 31):
        return None
    seconds = sum(int(part or 0) * size for part, size in zip(found.group(5, 6, 7), (3600, 60, 1)))
    zone = found[9] or ""
    if zone[:1] == "0" and (seconds or (found[8] or "").strip("0")):
        return None  # readers do not agree about a zero without a sign, but at midnight
    if zone[:1] in ("+", "-"):
        digits = zone[1:].replace(":", "").rjust(2, "0")
        offset = int(digits[:-2] or 0) * 3600 + int(digits[-2:]) * 60 if len(digits) > 2 else int(digits) * 3600
        seconds += offset if zone[0] == "-" else -offset
    fraction = int(((found[8] or "") + "000000")[:6])
    return Since(unit_ns, int(found[2]), int(found[3]), int(found[4] or 1), seconds * 10**6 + fraction)


class Date(NamedTuple):
    """An instant of a calendar that datetime64 does not have, where cftime is not installed.

    Attributes:
        year: of the calendar.
        month: from 1 to 12.
        day: of the month, from 1.
        hour: of the day.
        minute: of the hour.
        second: of the minute.
        microsecond: of the second.
        calendar: its name, as "noleap" or "360_day".
    """

    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0
    second: int = 0
    microsecond: int = 0
    calendar: str = "standard"


# ---- days of calendars: numbers from dates, and back ----

def _fixed_days(months: tuple[int, ...]) -> tuple[Callable[[int, int, int], int], Callable[[int], tuple[int, int, int]]]:
    """Of a calendar whose years are all alike."""
    total = sum(months)

    def number(year: int, month: int, day: int) -> int:
        return year * total + sum(months[:month - 1]) + day - 1

    def date(n: int) -> tuple[int, int, int]:
        year, n = divmod(n, total)
        month = 0
        while n >= months[month]:
            n -= months[month]
            month += 1
        return year, month + 1, n + 1

    return number, date


def _jdn(year: int, month: int, day: int, gregorian: bool) -> int:
    """The Julian day number (Richards 2013), years counted with a 0."""
    a = (14 - month) // 12
    y, m = year + 4800 - a, month + 12 * a - 3
    n = day + (153 * m + 2) // 5 + 365 * y + y // 4
    return n - y // 100 + y // 400 - 32045 if gregorian else n - 32083


def _of_jdn(n: int, gregorian: bool) -> tuple[int, int, int]:
    b = 0
    c = n + 32082
    if gregorian:
        a = n + 32044
        b = (4 * a + 3) // 146097
        c = a - 146097 * b // 4
    d = (4 * c + 3) // 1461
    e = c - 1461 * d // 4
    m = (5 * e + 2) // 153
    return 100 * b + d - 4800 + m // 10, m + 3 - 12 * (m // 10), e - (153 * m + 2) // 5 + 1


def _mixed_number(year: int, month: int, day: int) -> int:
    return _jdn(year, month, day, (year, month, day) >= (1582, 10, 15))


_MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_NOLEAP, _ALL_LEAP, _EQUAL = (_fixed_days(m) for m in (_MONTHS, (31, 29, *_MONTHS[2:]), (30,) * 12))
_MIXED = _mixed_number, lambda n: _of_jdn(n, n >= _GREGORIAN_JDN)
_CALENDARS = {
    "noleap": _NOLEAP, "365_day": _NOLEAP, "all_leap": _ALL_LEAP, "366_day": _ALL_LEAP, "360_day": _EQUAL,
    "julian": (lambda year, month, day: _jdn(year, month, day, False), lambda n: _of_jdn(n, False)),
    "proleptic_gregorian": (lambda year, month, day: _jdn(year, month, day, True), lambda n: _of_jdn(n, True)),
    "standard": _MIXED, "gregorian": _MIXED}
CALENDARS = tuple(_CALENDARS)


def start_s(since: Since, calendar: str) -> int:
    """Seconds from 1970 to the day of SINCE, of a calendar that is Gregorian in 1970."""
    return (_CALENDARS[calendar][0](since.year, since.month, since.day) - _1970_JDN) * 86400


def date_of(since: Since, value: float, calendar: str) -> Date | None:
    """The instant VALUE; None where it is NaN."""
    if value != value:
        return None
    number, date = _CALENDARS[calendar]
    whole = int(value // 1)
    us = since.us + whole * since.unit_ns // 1000 + round((value - whole) * since.unit_ns / 1000)
    days, us = divmod(us, _DAY_US)
    seconds, us = divmod(us, 10**6)
    return Date(*date(number(since.year, since.month, since.day) + days), seconds // 3600, seconds // 60 % 60,
                seconds % 60, us, calendar)


def objects(values: Any, units: str, since: Since, calendar: str) -> Any:
    """An array of objects, as VALUES, a NumPy array of numbers."""
    import numpy
    found = numpy.empty(values.shape, dtype=object)
    try:
        import cftime
    except ImportError:
        for i, value in enumerate(values.tolist()):
            found[i] = date_of(since, value, calendar)
        return found
    there = ~numpy.isnan(values)
    found[there] = cftime.num2date(values[there], units, calendar, only_use_cftime_datetimes=True)
    return found
