"""Numbers of coordinate variables as what they mean: unpacked, and instants of time."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _dates

_PROLEPTIC, _MIXED = "proleptic_gregorian", ("standard", "gregorian")
# Seconds from 1970 that datetime64[ns] holds; the first day of the Gregorian calendar.
_NS_RANGE = (-9_223_372_036, 9_223_372_036)
_GREGORIAN_S = -12_219_292_800


def _number(attrs: Mapping[str, Any], name: str) -> float | None:
    value = attrs.get(name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _unpack(values: Any, attrs: Mapping[str, Any]) -> Any:
    import numpy
    if values.dtype.kind == "i" and str(attrs.get("_Unsigned")).lower() == "true":
        values = values.view(f"u{values.dtype.itemsize}")
    scale, offset = _number(attrs, "scale_factor"), _number(attrs, "add_offset")
    if scale is None and offset is None:
        return values
    return values.astype(numpy.float64) * (1 if scale is None else scale) + (0 if offset is None else offset)


def _datetimes(values: Any, since: _dates.Since, calendar: str) -> Any:
    """datetime64[ns], or [us] where that does not reach; None where the calendar is another one then."""
    import numpy
    there = ~numpy.isnan(values)
    shown = numpy.where(there, values, 0)
    whole = numpy.floor(shown) if values.dtype.kind == "f" else shown
    reach = numpy.abs(whole.astype(numpy.float64)).max(initial=0) * (since.unit_ns / 1e9)
    if not reach < 9e12:  # 290,000 years, as far as microseconds reach
        return None
    # Seconds, and nanoseconds beyond them: neither overflows.
    whole = whole.astype(numpy.int64)
    if since.unit_ns >= 10**9:
        seconds, rest = whole * (since.unit_ns // 10**9), numpy.zeros_like(whole)
    else:
        seconds, rest = numpy.divmod(whole, 10**9 // since.unit_ns)
        rest = rest * since.unit_ns
    if values.dtype.kind == "f":  # to the microsecond, as cftime does it
        rest = rest + numpy.rint((shown - numpy.floor(shown)) * since.unit_ns / 1000).astype(numpy.int64) * 1000
    more, rest = numpy.divmod(rest + since.us * 1000, 10**9)
    seconds = seconds + more + _dates.start_s(since, calendar)
    first, last = seconds.min(initial=0, where=there), seconds.max(initial=0, where=there)
    if calendar in _MIXED and first < _GREGORIAN_S:
        return None
    if _NS_RANGE[0] < first and last < _NS_RANGE[1]:
        found = (seconds * 10**9 + rest).astype("datetime64[ns]")
    else:
        found = (seconds * 10**6 + rest // 1000).astype("datetime64[us]")
    found[~there] = numpy.datetime64("NaT")
    return found


def _mask(values: Any, missing: Any) -> Any:
    """VALUES with NaN where MISSING; integers are the floats that xarray makes of them."""
    import numpy
    if values.dtype.kind in "iu":
        values = values.astype(numpy.float32 if values.dtype.itemsize <= 2 else numpy.float64)
    return numpy.where(missing, values.dtype.type(numpy.nan), values)


def decode(values: Any, attrs: Mapping[str, Any], missing: bytes | None = None) -> Any:
    """VALUES, a NumPy array as it is stored, as what ATTRS say.

    MISSING: a byte for each, other than 0 where it is missing; None where nothing can be.  Times are datetime64 in
    the calendars of every day, and elsewhere objects (_dates.py).  What is of a unit or calendar that is not known
    stays a number.
    """
    import numpy
    if values.dtype.kind not in "iuf":
        return values
    values = _unpack(values, attrs)
    holes = None if missing is None else numpy.frombuffer(missing, bool)
    units, calendar = attrs.get("units"), str(attrs.get("calendar", "standard")).lower()
    since = _dates.parse(units)
    if since is None or calendar not in _dates.CALENDARS:
        return values if holes is None else _mask(values, holes)
    if values.dtype == numpy.int64:  # that number is datetime64's NaT, which xarray writes without a fill value
        nat = values == numpy.iinfo(numpy.int64).min
        holes = nat if holes is None else holes | nat
    if values.dtype.kind == "f":  # products in float32 would be off by milliseconds
        values = values.astype("float64")
    if holes is not None and holes.any():  # integers of 64 bits without any stay exact
        values = _mask(values.astype("float64"), holes)
    found = _datetimes(values, since, calendar) if calendar in (_PROLEPTIC, *_MIXED) else None
    return _dates.objects(values, str(units), since, calendar) if found is None else found
