"""Datasets of xarray that show a store as it is, told from those that were changed since.

A Loader reads the store, so a selection, a product or a new coordinate would be ignored: they are refused.
Between a variable and its backend's array lie only caches, indexing of all elements and xarray's own decoding.
"""
from __future__ import annotations

import os
from typing import Any, NamedTuple

from . import _dates
from .errors import InvalidError

_PASSING = ("ImplicitToExplicitIndexingAdapter", "MemoryCachedArray", "CopyOnWriteArray", "NativeEndiannessArray",
            "BoolTypeArray")
# Calendars whose days datetime64 has, and the number that stands for no time in 64 bits.
_EVERY_DAY = ("standard", "gregorian", "proleptic_gregorian")
_NAT = -2**63


class Stored(NamedTuple):
    """Where one variable lies: an array of zarr-python, or a name in a NetCDF file."""

    array: Any
    path: str = ""
    name: str = ""


class View(NamedTuple):
    """A Dataset as the user sees it: variables by name, and where each lies."""

    stored: dict[str, Stored]
    variables: dict[str, Any]
    coords: dict[str, Any]  # of dimensions
    is_array: bool


def _takes_all(key: Any, shape: tuple[int, ...]) -> bool:
    parts = getattr(key, "tuple", None)
    return parts is not None and len(parts) == len(shape) and all(
        isinstance(part, slice) and part.indices(n) == (0, n, 1) for part, n in zip(parts, shape))


def _below_dask(array: Any) -> Any:
    """The array behind a dask array, as xarray opened it; None where dask computes anything."""
    graph = array.__dask_graph__()
    layers = getattr(graph, "layers", {})
    sources = [name for name in layers if name.startswith("original-")]
    opened = [name for name in layers if name.startswith(("open_dataset-", "xarray-"))]
    rechunked = [name for name in layers if name.startswith("rechunk-")]
    if len(sources) != 1 or len(opened) != 1 or len(layers) != 2 + len(rechunked) or array.name not in opened + rechunked:
        return None
    return layers[sources[0]].get(sources[0])


def _backend(data: Any) -> Any:
    """The backend's array that DATA shows all of, unchanged; None where there is none."""
    if type(data).__module__.split(".")[0] == "dask":
        data = _below_dask(data)
    while data is not None:
        kind, module = type(data).__name__, type(data).__module__
        if module.startswith("xarray.backends."):
            return data
        if not module.startswith("xarray."):
            return None
        if kind == "LazilyIndexedArray" and not _takes_all(data.key, data.array.shape):
            return None
        if kind == "_ElementwiseFunctionArray":
            function = getattr(data.func, "func", data.func)
            if not getattr(function, "__module__", "").startswith("xarray."):
                return None
        elif kind not in _PASSING and kind != "LazilyIndexedArray":
            return None
        data = data.array
    return None


def _stored(name: str, variable: Any) -> Stored:
    data = variable._data
    found = _backend(data)
    if found is None:
        loaded = type(data).__module__.split(".")[0] == "numpy" or type(getattr(data, "array", None)).__name__ == (
            "NumpyIndexingAdapter")
        why = ("its values are in memory, and may not be the store's" if loaded
               else "it was selected from or computed with since it was opened")
        raise InvalidError(f"store: variable {name} of the Dataset cannot be traced to a store: {why}; give a path or URL, "
                           "or the Dataset as xarray.open_zarr returned it")
    array = getattr(found, "_array", None)
    if type(found).__name__ == "ZarrArrayWrapper" and array is not None:
        return Stored(array)
    source = variable.encoding.get("source")
    if getattr(getattr(found, "datastore", None), "_group", "/") in (None, "", "/") and isinstance(source, str) and (
            os.path.isfile(source)):
        return Stored(None, source, found.variable_name)
    raise InvalidError(f"store: variable {name} of the Dataset does not say which store it is of; give a path or URL")


def view(given: Any, variables: list[str]) -> View:
    """A Dataset, with those of its variables that are asked for or all data variables, or a DataArray."""
    is_array = type(given).__name__ == "DataArray"
    if is_array:
        if variables:
            raise InvalidError(f"variables: {', '.join(variables)}: a DataArray is one variable; leave them out")
        shown = {str(given.name): given.variable}
    else:
        for name in variables:
            if name not in given.variables:
                raise InvalidError(f"variables: {name}: the Dataset has no such variable; there are "
                                   f"{', '.join(map(str, given.data_vars))}")
        shown = {str(name): given.variables[name] for name in variables or given.data_vars}
    if not shown:
        raise InvalidError("store: the Dataset has no data variables")
    return View({name: _stored(name, variable) for name, variable in shown.items()}, shown,
                {dim: given.coords[dim].variable for variable in shown.values() for dim in variable.dims
                 if dim in given.coords}, is_array)


def _datetimes(dates: Any) -> Any:
    """Objects of cftime as datetime64; None where their calendar has other days."""
    import numpy
    if not all(getattr(date, "calendar", "") in _EVERY_DAY for date in dates):
        return None
    try:
        return numpy.array([date.isoformat() for date in dates], "datetime64[us]")
    except ValueError:  # 1500-02-29 of the standard calendar
        return None


def _same(own: Any, shown: Any, unit_ns: int | None) -> bool:
    """Whether SHOWN is OWN in a form that xarray may give it.

    Instants and durations to the millisecond, or to the unit of SHOWN, whose fractions xarray drops.
    """
    import numpy
    step = numpy.timedelta64(1, "ms")
    if shown.dtype.kind in "mM":
        step = max(step, numpy.timedelta64(1, numpy.datetime_data(shown.dtype)[0]))
    if shown.dtype.kind == "O" and own.dtype.kind in "MO":  # xarray shows a missing instant as the date of its units
        there = ~numpy.isnat(own) if own.dtype.kind == "M" else numpy.array([value is not None for value in own], bool)
        own, shown = own[there], shown[there]
        shown = _datetimes(shown) if own.dtype.kind == "M" else shown
    if shown is None:
        return False
    if own.dtype.kind == "M" and shown.dtype.kind == "M":
        apart = numpy.abs(own - shown)
        return bool((numpy.isnat(own) == numpy.isnat(shown)).all() and not (apart > step).any())
    if own.dtype.kind in "fiu" and shown.dtype.kind == "m" and unit_ns is not None:
        own = numpy.where(own == _NAT, numpy.nan, own * (unit_ns / 1e6))
        return numpy.allclose(own, shown / numpy.timedelta64(1, "ms"), rtol=0, atol=step / numpy.timedelta64(1, "ms"), equal_nan=True)
    if own.dtype.kind in "fiu" and shown.dtype.kind in "fiu":
        return numpy.allclose(own, shown, rtol=1e-6, atol=0, equal_nan=True)
    return numpy.array_equal(own, shown)


def same_coords(shown: Any, stored: Any, meant: Any, units: object) -> bool:
    """Whether SHOWN are the store's coordinates, decoded or not; UNITS is their attribute."""
    import numpy
    unit_ns = _dates.UNITS_NS.get(str(units).lower())
    return stored is not None and any(
        own.shape == shown.shape and _same(own, shown, unit_ns) for own in map(numpy.asarray, (meant, stored)))
