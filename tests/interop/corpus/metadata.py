"""Names, groups and dimensions."""

import numpy as np

from .book import FORMATS, SHORT, random, smooth, values, variable

NAMES = {
    "space": "two words",
    "dot": "a.b.c",
    "colon": "a:b",
    "comma": "a,b",
    "equals": "a=b",
    "star": "a*b",
    "unicode": "température",
    "cjk": "温度",
    "emoji": "t😀",
    "plus": "a+b",
    "at": "a@b",
    "paren": "f(x)",
    "bracket": "f[0]",
    "percent": "100%",
    "hash": "a#b",
    "quote": "it's",
    "dquote": 'say"hi"',
    "c": "c",
    "zero": "0",
    "digits": "0.0",
    "long255": "n" * 255,
    "dashes": "a-b-c",
    "zarr": "zarr",
    "zarray": "zarray",
    "json": "x.json",
    "nan": "NaN",
    "true": "true",
    "single_under": "_x",
}
REFUSED = {"backslash": "a\\b", "zarr_json": "zarr.json", "long256": "n" * 256}


def names(book):
    for key, name in NAMES.items():
        with book.nc(f"name_{key}.nc") as ds:
            ds.createDimension(name, 3)
            variable(ds, name, "f4", (name,), smooth((3,)), {"units": "1"})
            variable(ds, "other", "i2", (name,), [1, 2, 3])
    for key in ("space", "dot", "unicode", "colon"):
        for fmt in FORMATS[:3]:
            with book.nc(f"name_{key}_{SHORT[fmt]}.nc", fmt) as ds:
                ds.createDimension("x", 3)
                variable(ds, NAMES[key], "f4", ("x",), smooth((3,)))
    for key, name in REFUSED.items():
        for fmt in ("NETCDF3_CLASSIC", "NETCDF4"):
            with book.nc(f"name_{key}_{SHORT[fmt]}.nc", fmt, expect="refused", word="--rename") as ds:
                ds.createDimension("x", 3)
                variable(ds, name, "f4", ("x",), smooth((3,)))
    for key, name in {"dotz": ".zattrs", "dotzgroup": ".zgroup", "climb": "..", "climb_dot": "..."}.items():
        with book.h5(f"name_{key}.h5", expect="refused", word="--rename", oracle=False) as f:
            f[name] = np.arange(3)
    with book.h5("name_freely.h5") as f:  # HDF5 allows what netCDF would not write
        for name in ("~home", "-dash", "?", "$x", "&", "name.", "(x)"):
            f[name] = np.arange(3)
    with book.nc("name_group_zarr_json.nc", expect="refused", word="zarr.json") as ds:
        variable(ds.createGroup("zarr.json"), "v", "i2", (), 3)
    with book.nc("name_dunder.nc", warns="__x") as ds:
        ds.createDimension("x", 3)
        variable(ds, "__x", "f4", ("x",), smooth((3,)))
    with book.nc("name_case.nc") as ds:
        ds.createDimension("x", 3)
        for name in ("T", "t", "TT", "Tt"):
            variable(ds, name, "f4", ("x",), smooth((3,)))
    with book.nc("name_zarr_json_as_dim.nc") as ds:  # a dimension's name makes no file
        ds.createDimension("zarr.json", 3)
        variable(ds, "v", "f4", ("zarr.json",), smooth((3,)))


def groups(book):
    with book.nc("groups_nested.nc") as ds:
        ds.title = "root"
        ds.createDimension("time", None)
        ds.createDimension("x", 4)
        variable(ds, "time", "f8", ("time",), np.arange(3), {"units": "days since 2000-01-01", "calendar": "noleap"})
        for path in ("a", "a/b", "a/b/c", "d", "e/f"):
            g = ds.createGroup(path)
            g.setncatts({"path": path, "depth": np.int32(path.count("/"))})
            variable(g, "v", "f4", ("time", "x"), smooth((3, 4)))
        variable(ds["a/b"], "time", "i4", ("time",), [7, 8, 9])
    with book.nc("groups_same_dim.nc") as ds:
        for path, n in (("", 3), ("one", 5), ("two", 7), ("one/inner", 2)):
            g = ds.createGroup(path) if path else ds
            g.createDimension("n", n)
            variable(g, "n", "i4", ("n",), np.arange(n))
            variable(g, "data", "f8", ("n",), smooth((n,), "f8"))
    with book.nc("groups_empty.nc") as ds:
        ds.createGroup("nothing")
        ds.createGroup("x/y/z").attr = "deep"
    with book.nc("groups_same_name.nc") as ds:
        ds.createDimension("x", 2)
        for path in ("p", "p/p", "p/p/p"):
            variable(ds.createGroup(path), "p0", "i2", ("x",), [1, 2])
    with book.nc("groups_types_inherited.nc") as ds:
        kind = ds.createEnumType("i1", "color", {"red": 0, "green": 1})
        ds.createDimension("x", 2)
        g = ds.createGroup("g/h")
        g.createVariable("c", kind, ("x",), fill_value=0)[:] = np.array([0, 1], "i1")
    with book.nc("groups_wide.nc") as ds:
        for i in range(60):
            g = ds.createGroup(f"g{i:02}")
            g.createDimension("x", i % 3 + 1)
            variable(g, "v", "i2", ("x",), np.arange(i % 3 + 1))


def dimensions(book):
    with book.nc("dims_no_variable.nc") as ds:
        for d, n in (("alone", 7), ("free", None), ("x", 3), ("nv", 2)):
            ds.createDimension(d, n)
        variable(ds, "x", "f8", ("x",), [1, 2, 3], {"bounds": "x_bnds"})
        variable(ds, "x_bnds", "f8", ("x", "nv"), [[0, 1], [1, 2], [2, 3]])
    with book.nc("dims_only.nc") as ds:
        ds.createDimension("a", 7)
        ds.createDimension("b", None)
        ds.title = "no variables at all"
    # A variable named like a dimension that it does not have: netCDF hides it as _nc4_non_coord_.
    with book.nc("dims_non_coordinate.nc") as ds:
        for d, n in (("a", 3), ("b", 4), ("s", 2)):
            ds.createDimension(d, n)
        variable(ds, "a", "f4", ("b",), smooth((4,)))
        variable(ds, "b", "f4", ("a", "b"), smooth((3, 4)))
        variable(ds, "s", "i4", (), 5)
        variable(ds, "v", "f4", ("a", "b", "s"), smooth((3, 4, 2)))
    with book.nc("dims_two_d_coordinate.nc") as ds:
        ds.createDimension("time", 3)
        ds.createDimension("len", 4)
        variable(ds, "time", "S1", ("time", "len"), np.array([b"0000", b"0600", b"1200"]).view("S1").reshape(3, 4))
        variable(ds, "v", "f4", ("time",), smooth((3,)))
    with book.nc("dims_repeated.nc") as ds:
        ds.createDimension("x", 4)
        variable(ds, "covariance", "f8", ("x", "x"), smooth((4, 4), "f8"))
        variable(ds, "cube", "i2", ("x", "x", "x"), smooth((4, 4, 4), "i2"), chunksizes=(3, 2, 4), zlib=True)
    for fmt in FORMATS:
        name = f"dims_many_{SHORT[fmt]}.nc"
        rng = random(name)
        with book.nc(name, fmt) as ds:
            for i in range(40):
                ds.createDimension(f"d{i}", i % 5 + 1)
                variable(ds, f"v{i}", "i4", (f"d{i}", f"d{i // 2}"), values("i4", (i % 5 + 1, (i // 2) % 5 + 1), rng))
    with book.nc("dims_order.nc") as ds:  # coordinates made after, and in another order than, dimensions
        for d in ("x", "y", "t"):
            ds.createDimension(d, 3)
        variable(ds, "v", "f4", ("t", "y", "x"), smooth((3, 3, 3)))
        for d in ("t", "x", "y"):
            variable(ds, d, "f8", (d,), np.arange(3))


def write(book):
    names(book)
    groups(book)
    dimensions(book)
