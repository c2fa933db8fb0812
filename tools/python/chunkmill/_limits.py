"""The elements that samples lie in: `subset` and `split` of a Loader."""
from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _arguments as a
from .errors import InvalidError

if TYPE_CHECKING:
    from .loader import Dim

Subset = Union[Mapping[str, slice], None]
Split = Union[Sequence[Any], None]

PARTS = ("train", "val", "test")
_DATE = re.compile(r"([+-]?\d+)(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ](\d{1,2})(?::(\d{1,2})(?::(\d{1,2}))?)?)?)?)?")


def ranges(dims: list[Dim], subset: Subset, split: Split, split_dim: str | None) -> dict[str, range]:
    """Elements by the name of their dimension; dimensions that stay whole are left out."""
    found: dict[str, range] = {}
    for name, key in (subset or {}).items():
        found[name] = _elements(f"subset[{name!r}]", _find("subset", dims, name), key)
    if split is not None:
        cut = split_dim or ("time" if any(d.name == "time" for d in dims) else dims[0].name if dims else None)
        if cut is None:
            raise InvalidError("split: the first dimension has no name, and only one with a name can be split")
        found[cut] = _part(split, cut, found.get(cut, range(_find("split_dim", dims, cut).length)))
    return found


def _find(argument: str, dims: list[Dim], name: Any) -> Dim:
    for d in dims:
        if d.name == name and name is not None:
            return d
    known = ", ".join(str(d.name) for d in dims if d.name is not None)
    raise InvalidError(f"{argument}: no chosen variable has a dimension {name}; there are {known or 'none with a name'}")


# ---- split ----

def _part(split: Any, name: str, within: range) -> range:
    """The part of WITHIN that SPLIT names: runs of it, one after the other."""
    usage = 'split: needs ("train", 0.8) or ("val", 0.8); of three parts ("test", 0.8, 0.1)'
    if isinstance(split, (str, bytes)) or not isinstance(split, Sequence) or not 2 <= len(split) <= 3:
        raise InvalidError(usage)
    part, shares = split[0], split[1:]
    if part not in PARTS or not all(isinstance(s, (int, float)) and 0 < s < 1 for s in shares) or sum(shares) >= 1:
        raise InvalidError(f"{usage}; shares are between 0 and 1, and leave some for the last part")
    number = PARTS.index(part)
    if number > len(shares):
        raise InvalidError(f"{usage}: {len(shares)} share has no part {part}")
    cuts = [0, *(round(len(within) * sum(shares[:i + 1])) for i in range(len(shares))), len(within)]
    found = within[cuts[number]:cuts[number + 1]]
    if not found:
        raise InvalidError(f"split: {part} has none of the {len(within)} elements of {name}")
    return found


# ---- subset ----

def _is_index(value: Any) -> bool:
    return hasattr(value, "__index__") and not a.is_bool(value)


def _elements(argument: str, dim: Dim, key: Any) -> range:
    if not isinstance(key, slice):
        raise a.wrong_type(argument, key, "a slice")
    if key.step not in (None, 1):
        raise InvalidError(f"{argument}: {key!r} leaves elements out: samples lie side by side, so a step must be 1")
    bounds = [bound for bound in (key.start, key.stop) if bound is not None]
    if all(_is_index(bound) for bound in bounds):
        found = range(dim.length)[key]
    elif any(_is_index(bound) for bound in bounds):
        raise InvalidError(f"{argument}: {key!r} mixes an index and a label; write 500.0 for a coordinate of 500")
    else:
        found = _labelled(argument, dim, key)
    if not found:
        raise InvalidError(f"{argument}: {key!r} chooses none of the {dim.length} elements of {dim.name}")
    return found


def _labelled(argument: str, dim: Dim, key: slice) -> range:
    """As xarray's sel: both ends belong to it, in the order of the coordinates."""
    try:
        import numpy
    except ImportError:
        raise InvalidError(f"{argument}: labels need NumPy; give integers, which count elements") from None
    coords = dim.meant()
    if coords is None:
        raise InvalidError(f"{argument}: {dim.name} has no coordinates; give integers, which count elements")
    coords = numpy.asarray(coords)
    if coords.dtype.kind in "UT" or coords.dtype.kind == "O" and isinstance(coords[0], str):
        return _between_texts(argument, dim, coords, key)
    coords, first, last = _comparable(argument, dim, coords, key)
    rises, falls = bool((coords[:-1] <= coords[1:]).all()), bool((coords[:-1] >= coords[1:]).all())
    if not rises and not falls:
        raise InvalidError(f"{argument}: coordinates of {dim.name} neither rise nor fall; give integers, which count elements")
    low, high = (first, last) if rises else (last, first)
    chosen = numpy.ones(len(coords), dtype=bool)
    if low is not None:
        chosen &= coords >= low.least
    if high is not None:
        chosen &= coords < high.end if high.is_period else coords <= high.end
    places = numpy.flatnonzero(chosen)
    if not len(places) and not rises and low is not None and high is not None and low.least > high.end:
        raise InvalidError(f"{argument}: {key!r} chooses nothing: coordinates of {dim.name} fall, so the larger one comes first")
    return range(int(places[0]), int(places[-1]) + 1) if len(places) else range(0)


def _between_texts(argument: str, dim: Dim, coords: Any, key: slice) -> range:
    texts = [str(text) for text in coords]

    def place(bound: Any, otherwise: int) -> int:
        if bound is None:
            return otherwise
        if texts.count(str(bound)) != 1:
            raise InvalidError(f"{argument}: {bound!r} is {texts.count(str(bound))} times among the labels of {dim.name}")
        return texts.index(str(bound))

    return range(place(key.start, 0), place(key.stop, len(texts) - 1) + 1)


class _Bound(NamedTuple):
    """One end of a slice: an instant or a number, or a period, as "2020-06", with the first instant behind it."""

    least: Any
    end: Any
    is_period: bool


_FIELDS = ("year", "month", "day", "hour", "minute", "second", "microsecond")
_ROOM = (13, 32, 24, 60, 60, 10**6)  # of all but the year: a field may be one more than it has values


def _ordinal(fields: Sequence[int]) -> int:
    """A number for fields of a date that rises with it, whatever its calendar."""
    n, rest = fields[0], [*fields[1:], *(1, 1, 0, 0, 0, 0)[len(fields) - 1:]]
    for field, room in zip(rest, _ROOM):
        n = n * room + field
    return n


def _comparable(argument: str, dim: Dim, coords: Any, key: slice) -> tuple[Any, _Bound | None, _Bound | None]:
    """The coordinates and the ends of KEY as numbers or instants of one type."""
    import numpy

    def number(bound: Any) -> _Bound:
        if not isinstance(bound, (float, numpy.floating)):
            raise a.wrong_type(argument, bound, f"numbers with a point for coordinates of {dim.name}, as 500.0")
        return _Bound(bound, bound, False)

    def not_a_date(bound: Any) -> InvalidError:
        return InvalidError(f"{argument}: {bound!r} is not a date; write \"2020-06-01\" or \"2020-06-01T12:00\"")

    def instant(bound: Any) -> _Bound:
        if not isinstance(bound, (str, numpy.datetime64, datetime.date)):
            raise a.wrong_type(argument, bound, f"dates for coordinates of {dim.name}")
        try:
            at = numpy.datetime64(bound)
        except ValueError:
            raise not_a_date(bound) from None
        end = at + 1 if isinstance(bound, str) else at
        return _Bound(at.astype("datetime64[us]"), end.astype("datetime64[us]"), isinstance(bound, str))

    def date(bound: Any) -> _Bound:
        if not isinstance(bound, str):
            if not hasattr(bound, "year"):
                raise a.wrong_type(argument, bound, f"dates for coordinates of {dim.name}")
            at = _ordinal([getattr(bound, field, 0) for field in _FIELDS])
            return _Bound(at, at, False)
        found = _DATE.fullmatch(bound.strip())
        if found is None:
            raise not_a_date(bound)
        fields = [int(part) for part in found.groups() if part is not None]
        return _Bound(_ordinal(fields), _ordinal([*fields[:-1], fields[-1] + 1]), True)

    kind = coords.dtype.kind
    if kind == "M":
        coords, make = coords.astype("datetime64[us]"), instant
    elif kind == "O" and all(hasattr(x, "year") for x in coords):
        coords, make = numpy.array([_ordinal([getattr(x, field) for field in _FIELDS]) for x in coords]), date
    elif kind in "iuf":
        make = number
    else:
        raise InvalidError(f"{argument}: coordinates of {dim.name} are {coords.dtype}, or some are missing; "
                           "give integers, which count elements")
    return (coords, None if key.start is None else make(key.start), None if key.stop is None else make(key.stop))
