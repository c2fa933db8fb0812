"""A store that nc2zarr made of many files, held against what they hold."""

import json
from pathlib import Path

import numpy as np
import zarr

from support import readers, tool

from . import files as F


def survey(*args, status=None, **kw):
    """(exit status, the document)."""
    r = tool.nc2zarr("--survey", "--json", *args, **kw)
    assert r.status in (0, 4), str(r)
    if status is not None:
        assert r.status == status, str(r)
    return r.status, json.loads(r.out)


def convert(*args, **kw):
    return tool.nc2zarr("-q", *args, **kw)


def listing(folder):
    """Everything below FOLDER with sizes and times: what was written there would show."""
    return {str(p.relative_to(folder)): (p.lstat().st_size, p.lstat().st_mtime_ns) for p in Path(folder).rglob("*")}


def times(array, attrs, calendar):
    v = F.Var((), np.asarray(array), {"units": attrs["units"], "calendar": calendar})
    return F.instants(v)


def dimensions(a):
    """Of an array, whichever the format."""
    if a.metadata.zarr_format == 2:
        return tuple(a.attrs["_ARRAY_DIMENSIONS"])
    return tuple(a.metadata.dimension_names or ())


def same(store, want, calendar="standard", ignore=()):
    """Bit for bit, types and dimensions included; times in instants."""
    got = readers.arrays(store)
    assert set(got) - set(ignore) == set(want) - set(ignore)
    for name, (dims, values) in want.items():
        if name in ignore:
            continue
        a = got[name]
        assert dimensions(a) == tuple(dims), name
        if name == "time" or name in F.BOUNDS:
            units = dict(got["time"].attrs)
            np.testing.assert_array_equal(times(a[...], units, units.get("calendar", calendar)), values, err_msg=name)
            continue
        values = np.asarray(values)
        assert a.shape == values.shape, name
        if values.dtype.kind in "OUT":
            assert list(np.asarray(a[...]).ravel()) == list(values.ravel()), name
            continue
        assert a.dtype == values.dtype, (name, a.dtype, values.dtype)
        assert np.ascontiguousarray(a[...]).tobytes() == np.ascontiguousarray(values).tobytes(), (
            name,
            np.argwhere(np.asarray(a[...] != values))[:3],
        )


def attributes(store, name=None):
    root = zarr.open_group(str(store), mode="r")
    return dict(root[name].attrs if name else root.attrs)
