"""Attributes of every type and value that JSON makes hard."""

import numpy as np

from .book import FORMATS, SHORT, types_of, variable

NUMBERS = {
    "i1": [-128, 127],
    "u1": [255, 0],
    "i2": [-32768, 32767],
    "u2": [65535],
    "i4": [-(2**31), 2**31 - 1],
    "u4": [2**32 - 1],
    "i8": [-(2**63), 2**63 - 1, 2**53 + 1, 0],
    "u8": [2**64 - 1, 2**63, 2**53 + 1],
    "f4": [1.0, 0.1, 1e20, -0.0, 3.4028235e38, 1e-45, 16777217],
    "f8": [1.0, 0.1, 1e300, -0.0, 5e-324, 1 / 3, 2.0**63, 1e16],
}
SPECIAL = [np.nan, np.inf, -np.inf]
TEXTS = {
    "empty": "",
    "space": " ",
    "unicode": "Größe 温度 😀",
    "quotes": '"\\/\b\f\n\r\t',
    "control": "\x01\x1f\x7f",
    "json": '{"a": [1, NaN]}',
    "number": "1e5",
    "nan": "NaN",
    "long": "x" * 70_000 + "end",
}
NAMES = [
    "UPPER",
    "with space",
    "with.dot",
    "Größe",
    "a-b",
    "x@y",
    "dtype",
    "_Unsigned",
    "shape",
    "zarr_format",
    "_ARRAY",
    "0digit",
    "coordinates2",
    "__dunder",
]


def numbers(book, fmt):
    with book.nc(f"attr_numbers_{SHORT[fmt]}.nc", fmt) as ds:
        ds.createDimension("x", 2)
        v = variable(ds, "v", "f4", ("x",), [1, 2])
        for target in (ds, v):
            for t in types_of(fmt):
                if t == "S1":
                    continue
                a = np.array(NUMBERS[t], t)
                target.setncattr(f"list_{t}", a)
                for i, x in enumerate(a):
                    target.setncattr(f"one_{t}_{i}", x)
                target.setncattr(f"none_{t}", np.array([], t))
                if t[0] == "f":
                    target.setncattr(f"special_{t}", np.array(SPECIAL, t))
                    for name, x in zip(("nan", "inf", "minf"), SPECIAL):
                        target.setncattr(f"{name}_{t}", np.array(x, t))


def texts(book, fmt):
    with book.nc(f"attr_texts_{SHORT[fmt]}.nc", fmt) as ds:
        ds.createDimension("x", 2)
        v = variable(ds, "v", "f4", ("x",), [1, 2])
        for target in (ds, v):
            for name, text in TEXTS.items():
                target.setncattr(name, text)
            target.setncattr("latin1", b"25 \xb0C")
            target.setncattr("broken", b"\xe2\x82 \xf0\x9f\x98 \xc0\x80 \xed\xa0\x80 \xff")
            if fmt == "NETCDF4":
                for name, text in TEXTS.items():
                    target.setncattr_string(f"s_{name}", text)
                target.setncattr_string("s_list", ["a", "", "ü"])
                target.setncattr_string("s_list_of_one", ["only"])


def names(book, fmt):
    with book.nc(f"attr_names_{SHORT[fmt]}.nc", fmt) as ds:
        ds.createDimension("x", 2)
        variable(ds, "x", "f4", ("x",), [1, 2], {n: i for i, n in enumerate(NAMES)})
        variable(ds, "v", "f4", ("x",), [1, 2], {n: i for i, n in enumerate(NAMES)})
        ds.setncatts({n: str(i) for i, n in enumerate(reversed(NAMES))})


def many(book):
    with book.nc("attr_many.nc") as ds:
        ds.createDimension("x", 2)
        v = variable(ds, "v", "f4", ("x",), [1, 2])
        for i in range(300):
            v.setncattr(f"a{(i * 7) % 300:03}", i)  # in an order that is not the alphabet's
    for fmt in FORMATS[:3]:  # netCDF-4 keeps these two names to itself
        with book.nc(f"attr_own_name_{SHORT[fmt]}.nc", fmt) as ds:
            ds.createDimension("x", 2)
            for name in ("v", "x"):
                variable(ds, name, "f4", ("x",), [1, 2], {"NAME": "mine", "CLASS": "mine too"})
            ds.setncatts({"NAME": "of the file", "CLASS": "of the file"})


def missing(book):
    """missing_value and _FillValue, of the variable's type and others."""
    for fmt in ("NETCDF3_CLASSIC", "NETCDF4"):
        with book.nc(f"attr_missing_{SHORT[fmt]}.nc", fmt, warns="missing_value") as ds:
            ds.createDimension("x", 4)
            variable(ds, "nan_on_int", "i2", ("x",), range(4), {"missing_value": np.nan, "valid_min": np.int16(0)})
            variable(ds, "nan_on_float", "f4", ("x",), range(4), {"missing_value": np.float32(np.nan)})
            variable(ds, "both", "f4", ("x",), range(4), {"missing_value": np.float32(1e20)}, fill_value=1e20)
            variable(
                ds,
                "lists",
                "f4",
                ("x",),
                range(4),
                {"missing_value": np.array([1e20, 2], "f4"), "valid_range": np.array([-5, 5], "f4")},
            )
            variable(ds, "double", "f4", ("x",), range(4), {"missing_value": 1e20})
            variable(
                ds,
                "flags",
                "i1",
                ("x",),
                range(4),
                {"flag_values": np.array([0, 1, 2], "i1"), "flag_meanings": "a b c", "_Unsigned": "true"},
                fill_value=-1,
            )
            variable(ds, "masks", "i1", ("x",), range(4), {"flag_masks": np.array([1, 2, -128], "i1")})


def write(book):
    for fmt in FORMATS:
        numbers(book, fmt)
        texts(book, fmt)
        names(book, fmt)
    many(book)
    missing(book)
