"""NetCDF classic, byte by byte: records, padding, gaps, header values that readers must not trust."""

import netCDF4
import numpy as np

from support.cdf import Cdf

from .book import FORMATS, SHORT, random, smooth, types_of, values, variable


def records(book, version):
    rng = random(f"records{version}")
    x = np.arange(5, dtype="i2")

    def write(name, dims, variables, says=None, gap=0, **kw):
        book.raw(
            f"cdf{version}_{name}.nc", Cdf(version, dims, variables, {"title": name}, **kw).build(gap), **(says or {})
        )

    rec = {"t": None, "x": 5}
    for t in ("i1", "i2", "f8"):
        # One record variable alone is not padded, whatever its length; two are.
        write(f"one_record_{t}", rec, [("v", t, ("t", "x"), values(t, (7, 5), rng))])
        write(
            f"two_records_{t}", rec, [("v", t, ("t", "x"), values(t, (7, 5), rng)), ("w", "i1", ("t",), np.arange(7))]
        )
    write("one_byte_records", rec, [("v", "i1", ("t",), np.arange(9))])
    write(
        "fixed_between",
        rec,
        [("a", "i2", ("t",), np.arange(3)), ("x", "i2", ("x",), x), ("b", "i2", ("t", "x"), values("i2", (3, 5), rng))],
    )
    write("header_gap", rec, [("x", "i2", ("x",), x), ("b", "i2", ("t", "x"), values("i2", (3, 5), rng))], gap=5000)
    write("no_records", rec, [("x", "i2", ("x",), x), ("b", "i2", ("t", "x"), np.zeros((0, 5)))])
    write("no_variables", rec, [])
    write("nothing", {}, [])
    # vsize is redundant: writers leave 0 or overflow it, and readers compute their own.
    write("vsize_zero", {"x": 5}, [("x", "i2", ("x",), x)], vsize=0)
    write(
        "vsize_wrong",
        rec,
        [("b", "i2", ("t", "x"), values("i2", (3, 5), rng)), ("c", "i4", ("t", "x"), values("i4", (3, 5), rng))],
        vsize=2**31 - 4,
    )
    write(
        "fill_other_type",
        {"x": 5},
        [("v", "i2", ("x",), x, {"_FillValue": ("f8", [3.0])})],
        {"warns": "_FillValue", "oracle": False},
    )
    write(
        "bad_utf8",
        {"x": 5},
        [("v", "i2", ("x",), x, {"units": b"K \xb0C \xff\xfe", "ok": "gr\u00fcn"})],
        {"warns": "attribute units"},
    )
    write("nul_text", {"x": 5}, [("v", "i2", ("x",), x, {"a": b"mid\0dle", "b": b"end\0\0", "c": b"\0", "d": b""})])


def long_records(book):
    """Records that add up: many variables of several types interleaved."""
    for fmt in FORMATS[:3]:
        name = f"interleaved_{SHORT[fmt]}.nc"
        rng = random(name)
        with book.nc(name, fmt) as ds:
            ds.createDimension("t", None)
            for d, n in (("y", 3), ("x", 5)):
                ds.createDimension(d, n)
            for i, t in enumerate(types_of(fmt)):
                variable(ds, f"r{i}_{t}", t, ("t", "y", "x")[: i % 3 + 1], values(t, (20, 3, 5)[: i % 3 + 1], rng))
                variable(ds, f"f{i}_{t}", t, ("x",), values(t, (5,), rng))


def no_fill(book):
    for fmt in FORMATS[:3]:
        path = book.path(f"nofill_{SHORT[fmt]}.nc")
        with netCDF4.Dataset(path, "w", format=fmt) as ds:
            ds.set_fill_off()
            ds.createDimension("t", None)
            ds.createDimension("x", 50)
            variable(ds, "v", "f4", ("t", "x"), smooth((4, 50)))
            variable(ds, "i", "i1", ("t", "x"), smooth((4, 50), "i1"))


def write(book):
    for version in (1, 2, 5):
        records(book, version)
    long_records(book)
    no_fill(book)
