"""Every type in every format, ranks 0 to 7, lengths of zero."""

import numpy as np

from .book import FORMATS, SHORT, random, types_of, values, variable


def label(t):
    return "str" if t is str else t


def one_type(book, fmt, t):
    name = f"type_{SHORT[fmt]}_{label(t)}.nc"
    rng = random(name)
    with book.nc(name, fmt) as ds:
        ds.createDimension("time", None)
        for d, n in (("y", 5), ("x", 7), ("one", 1)):
            ds.createDimension(d, n)
        variable(ds, "scalar", t, (), values(t, (), rng) if t is not str else np.array("only", object))
        variable(ds, "line", t, ("x",), values(t, (7,), rng))
        variable(ds, "plane", t, ("y", "x"), values(t, (5, 7), rng))
        variable(ds, "single", t, ("one", "one"), values(t, (1, 1), rng))
        variable(ds, "record", t, ("time", "y"), values(t, (3, 5), rng))
        variable(ds, "series", t, ("time",), values(t, (3,), rng))
        if t is not str:  # written in part: the rest is what the format fills in
            v = variable(ds, "partly", t, ("time", "x"))
            v[1, 2:5] = values(t, (3,), rng)
        variable(ds, "never", t, ("y", "x"))


def ranks(book, fmt):
    name = f"ranks_{SHORT[fmt]}.nc"
    rng = random(name)
    with book.nc(name, fmt) as ds:
        lengths = (2, 3, 1, 4, 2, 3, 2)
        for i, n in enumerate(lengths):
            ds.createDimension(f"d{i}", n)
        for rank in range(8):
            for t in ("i2", "f8"):
                variable(ds, f"r{rank}_{t}", t, tuple(f"d{i}" for i in range(rank)), values(t, lengths[:rank], rng))


def empty(book, fmt):
    name = f"empty_{SHORT[fmt]}.nc"
    with book.nc(name, fmt) as ds:
        ds.createDimension("time", None)
        ds.createDimension("x", 4)
        ds.createDimension("unused", 3)
        for t in types_of(fmt):
            variable(ds, f"none_{t}", t, ("time", "x"))
        variable(ds, "time", "f8", ("time",), attrs={"units": "days since 2000-01-01"})
        variable(ds, "x", "i4", ("x",), np.arange(4))


def characters(book, fmt):
    name = f"chars_{SHORT[fmt]}.nc"
    with book.nc(name, fmt) as ds:
        for d, n in (("station", 3), ("name_len", 12), ("code", 4)):
            ds.createDimension(d, n)
        names = np.array([b"Karlsruhe", "Zürich".encode(), b""], "S12").view("S1").reshape(3, 12)
        variable(ds, "name", "S1", ("station", "name_len"), names, {"long_name": "station name"})
        variable(
            ds,
            "code",
            "S1",
            ("station", "code"),
            np.array([b"ab  ", b"\xff\x00zz", b"1234"], "S4").view("S1").reshape(3, 4),
        )
        variable(ds, "flag", "S1", ("station",), np.array([b"y", b"\0", b"n"]))
        variable(ds, "crs", "S1", (), np.array(b"x"), {"grid_mapping_name": "latitude_longitude"})
        variable(ds, "blank", "S1", ("name_len",))
        variable(ds, "value", "f4", ("station",), np.arange(3), {"coordinates": "name"})


def text_fills(book):
    """Zarr 3 has no attribute for the fill value of text, so only Zarr 2 shows it to xarray."""
    for fmt in ("NETCDF3_CLASSIC", "NETCDF4"):
        with book.nc(f"chars_fill_{SHORT[fmt]}.nc", fmt, oracle="own") as ds:
            ds.createDimension("station", 3)
            ds.createDimension("code", 4)
            v = variable(ds, "filled", "S1", ("station", "code"), fill_value=b"*")
            v[0, :] = np.array([b"a", b"b", b"c", b"d"])
    with book.nc("strings_fill.nc", oracle="own") as ds:
        ds.createDimension("x", 6)
        v = variable(ds, "s", str, ("x",), fill_value="missing")
        v[1] = "one"


def strings(book):
    with book.nc("strings_shapes.nc") as ds:
        rng = random("strings_shapes.nc")
        for d, n in (("t", None), ("y", 3), ("x", 4), ("long", 500)):
            ds.createDimension(d, n)
        variable(ds, "grid", str, ("y", "x"), values(str, (3, 4), rng))
        variable(ds, "many", str, ("long",), values(str, (500,), rng), chunksizes=(64,))
        variable(ds, "records", str, ("t", "x"), values(str, (5, 4), rng))
        variable(ds, "packed", str, ("y", "x"), values(str, (3, 4), rng), zlib=True, shuffle=False)
        variable(ds, "scalar", str, (), np.array("", object))
    with book.nc(
        "strings_part.nc", expect="either", word="part"
    ) as ds:  # HDF5 1.10 cannot read chunks of strings that are not there
        ds.createDimension("long", 500)
        v = variable(ds, "part", str, ("long",), chunksizes=(100,))
        v[10] = "ten"
    with book.nc("strings_big.nc") as ds:
        ds.createDimension("x", 3)
        variable(ds, "s", str, ("x",), np.array(["a" * 1_000_000, "", "é" * 300_000], object))


def enums(book):
    with book.nc("enum.nc") as ds:
        ds.createDimension("x", 5)
        ds.createDimension("t", None)
        for t in ("i1", "u1", "i2", "i8"):
            kind = ds.createEnumType(t, f"cloud_{t}", {"clear": 0, "few": 1, "overcast": 5, "missing": 127})
            v = ds.createVariable(f"e_{t}", kind, ("x",), fill_value=127)
            v[:] = np.array([0, 1, 5, 127, 0], t)
            v = ds.createVariable(f"z_{t}", kind, ("t", "x"), zlib=True, fill_value=5)
            v[1, :] = np.array([0, 1, 5, 127, 0], t)
    with book.nc("enum_own_flags.nc") as ds:
        ds.createDimension("x", 3)
        kind = ds.createEnumType("u1", "quality", {"good": 0, "bad": 1})
        v = ds.createVariable("q", kind, ("x",))
        v[:] = np.array([0, 1, 0], "u1")
        v.setncatts({"flag_values": np.array([0, 1], "u1"), "flag_meanings": "fine poor"})


def user_types(book):
    with book.nc("compound_only.nc", expect="unsupported", word="compound") as ds:
        kind = ds.createCompoundType(np.dtype([("a", "f4"), ("b", "i2")]), "pair")
        ds.createDimension("x", 2)
        ds.createVariable("pairs", kind, ("x",))[:] = np.zeros(2, kind.dtype)
    with book.nc("compound_beside.nc", expect="unsupported", word="obs") as ds:
        kind = ds.createCompoundType(np.dtype([("a", "f4"), ("b", "i2", (3,))]), "obs_t")
        ds.createDimension("x", 2)
        ds.createVariable("obs", kind, ("x",))
        variable(ds, "plain", "f4", ("x",), [1, 2])
    with book.nc("vlen_beside.nc", expect="unsupported", word="ragged") as ds:
        kind = ds.createVLType(np.int32, "ragged_t")
        ds.createDimension("x", 2)
        v = ds.createVariable("ragged", kind, ("x",))
        v[0] = np.arange(3, dtype="i4")
        v[1] = np.arange(1, dtype="i4")
        variable(ds, "plain", "i4", ("x",), [1, 2])
        g = ds.createGroup("deep")
        g.createVariable("ragged2", kind, ("x",))
    with book.nc("user_types_unused.nc") as ds:  # a type that no variable has is no obstacle
        ds.createCompoundType(np.dtype([("a", "f4")]), "unused_t")
        ds.createVLType(np.float64, "unused_vlen")
        ds.createDimension("x", 2)
        variable(ds, "plain", "i4", ("x",), [1, 2])
    with book.nc("user_types_attribute.nc", warns="odd", oracle=False) as ds:
        kind = ds.createCompoundType(np.dtype([("a", "f4"), ("b", "i4")]), "pair")
        ds.createDimension("x", 2)
        variable(ds, "plain", "i4", ("x",), [1, 2]).odd = np.array((1.5, 2), kind.dtype)


def write(book):
    for fmt in FORMATS:
        for t in types_of(fmt):
            one_type(book, fmt, t)
        ranks(book, fmt)
        empty(book, fmt)
        characters(book, fmt)
    one_type(book, "NETCDF4", str)
    strings(book)
    text_fills(book)
    enums(book)
    user_types(book)
