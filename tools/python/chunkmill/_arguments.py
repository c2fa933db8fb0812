"""Values of arguments as people write them; what cannot be one is refused with the argument's name."""
from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Union

from .errors import ArgumentTypeError, InvalidError

Size = Union[int, float, str, None]
Names = Union[str, Iterable[str], None]
Sample = Union[str, Iterable[Any], Mapping[str, Any], None]

# As the programs read sizes: letters alone are binary.
_UNITS: dict[str, int] = {
    "": 1, "b": 1, **{f"{letter}b": 1000 ** (i + 1) for i, letter in enumerate("kmgt")},
          **{f"{letter}{more}": 1024 ** (i + 1) for i, letter in enumerate("kmgt") for more in ("", "ib")}}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def is_bool(value: object) -> bool:
    """True for Python's and NumPy's booleans, which would pass for integers."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def wrong_type(name: str, value: object, wanted: str) -> ArgumentTypeError:
    """The error for an argument whose type is not the one wanted."""
    given = "None" if value is None else f"{value!r}, of type {type(value).__name__}"
    return ArgumentTypeError(f"{name}: needs {wanted}, not {given}")


def any_integer(name: str, value: Any) -> int:
    """An integer of Python or NumPy."""
    try:
        if is_bool(value):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        raise wrong_type(name, value, "an integer") from None
    return found


def integer(name: str, value: Any) -> int:
    """An integer of Python or NumPy that is not negative."""
    found = any_integer(name, value)
    if found < 0:
        raise InvalidError(f"{name}: {found} is negative")
    return found


def epoch(value: Any) -> int:
    """VALUE, a number that an epoch may have."""
    found = integer("epoch", value)
    if found >= 2**64:  # ctypes would cut it
        raise InvalidError(f"epoch: {found} is too large")
    return found


def size(name: str, value: Size) -> int:
    """Bytes: 3000000000, "3GB", "3 GB", "256MiB"; None is 0, which lets the loader choose."""
    if value is None:
        return 0
    if isinstance(value, str):
        found = _SIZE.fullmatch(value)
        factor = _UNITS.get(found[2].lower()) if found else None
        if found is None or factor is None:
            raise InvalidError(f'{name}: "{value}" is not a size; write 65536, "512MiB", "1.5GiB" or "2GB"')
        return round(float(found[1]) * factor) if "." in found[1] else int(found[1]) * factor
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)  # 3e9
    try:
        return integer(name, value)
    except ArgumentTypeError:
        raise wrong_type(name, value, 'bytes or a size as "2GB"') from None


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not is_bool(value):
        raise wrong_type(name, value, "True or False")
    return bool(value)


def text(name: str, value: str | None) -> bytes | None:
    """A word for the library; None stays None."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong_type(name, value, "a text")
    return os.fsencode(value)


def path(name: str, value: str | os.PathLike[str] | None) -> bytes | None:
    """A path for the library; None stays None."""
    if value is not None and not isinstance(value, (str, bytes, os.PathLike)):
        raise wrong_type(name, value, "a path")
    return None if value is None else os.fsencode(value)


def names(name: str, value: Names) -> list[str]:
    """One text or several; None is none."""
    if value is None or isinstance(value, str):
        return [] if value is None else [value]
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise wrong_type(name, value, "a text or a list of texts")
    found = list(value)
    for one in found:
        if not isinstance(one, str):
            raise wrong_type(name, one, "texts")
    return found


def name(argument: str, value: str | None) -> str | None:
    """One name; None stays None."""
    if value is not None and not isinstance(value, str):
        raise wrong_type(argument, value, "a text")
    return value


def subset(value: Any) -> Any:
    """Slices by dimension; None is none."""
    if value is not None and not isinstance(value, Mapping):
        raise wrong_type("subset", value, "slices by dimension, as {'time': slice(0, 100)}")
    return value


def lags(value: Any) -> bytes | None:
    """Steps: 6, [0, 6], "0,6"; None is 0 alone."""
    if value is None or isinstance(value, str):
        return text("lags", value)
    if isinstance(value, Iterable):
        return ",".join(str(any_integer("lags", lag)) for lag in value).encode() or None
    return str(any_integer("lags", value)).encode()


def _length(name: str, value: Any) -> str:
    if value is None or value == slice(None):
        return "full"
    if isinstance(value, str):
        return value  # "full", or what the library refuses
    if isinstance(value, slice):
        raise InvalidError(f"{name}: {value!r} chooses elements; a sample says how many it takes: give their number")
    found = integer(name, value)
    if found == 0:
        raise InvalidError(f"{name}: 0 elements are no sample; leave the dimension out, or say None, for all of it")
    return str(found)


def sample(value: Sample) -> bytes | None:
    """{"time": 4, "lat": 64}, {} for whole arrays, (4, 64, 64), "time=4,lat=64"; None stays None.

    Dimensions that are not named, or are None, are read whole.
    """
    if value is None or isinstance(value, str):
        return text("sample", value)
    if isinstance(value, Mapping):
        for dim in value:
            if not isinstance(dim, str):
                raise wrong_type("sample", dim, "names of dimensions")
        lengths = [f"{dim}={_length(f'sample[{dim!r}]', n)}" for dim, n in value.items()]
        return ",".join(lengths).encode() or b"full"
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise wrong_type("sample", value, "lengths by dimension, as {'time': 4}")
    return "x".join(_length("sample", n) for n in value).encode() or b"full"
