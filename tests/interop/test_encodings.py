"""Characters whose _Encoding is said, as strings, as numbers, and as they are."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import readers, tool

TEXTS = ["Zürich", "Bern", "", "Genève"]


def write(path, encoding, codec):
    raw = [t.encode(codec).ljust(10, b"\0") for t in TEXTS]
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("station", len(TEXTS))
        nc.createDimension("length", 10)
        v = nc.createVariable("name", "S1", ("station", "length"))
        v.set_auto_chartostring(False)
        if encoding:
            v._Encoding = encoding
        v.long_name = "name of the station"
        v[:] = np.frombuffer(b"".join(raw), "S1").reshape(-1, 10)
    return np.frombuffer(b"".join(raw), "u1").reshape(-1, 10)


NAMED = [("utf-8", "utf-8"), ("UTF8", "utf-8"), (None, "utf-8"), ("latin-1", "latin-1"), ("ISO-8859-1", "latin-1"), ("latin_1", "latin-1")]


@pytest.mark.every
@pytest.mark.parametrize("fmt", ["2", "3"])
@pytest.mark.parametrize("encoding, codec", NAMED)
def test_strings(tmp_path, encoding, codec, fmt):
    write(tmp_path / "in.nc", encoding, codec)
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--char", "join", "--zarr-format", fmt, "--verify", "full", tmp_path / "in.nc", out).ok()
    with xr.open_zarr(out) as ds:
        assert [str(t) for t in ds["name"].values] == TEXTS
        assert ds["name"].attrs == {"long_name": "name of the station"}
    assert tool.nc2zarr("--char", "join", "--check", tmp_path / "in.nc", out).status == 0


@pytest.mark.every
@pytest.mark.parametrize("encoding, codec", NAMED)
def test_numbers(tmp_path, encoding, codec):
    raw = write(tmp_path / "in.nc", encoding, codec)
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--char", "uint8", "--verify", "full", tmp_path / "in.nc", out).ok()
    with xr.open_zarr(out) as ds:
        np.testing.assert_array_equal(ds["name"].values, raw)


@pytest.mark.every
@pytest.mark.parametrize("encoding, codec", [*NAMED, ("utf-16-le", "utf-8")])
def test_as_they_are(tmp_path, encoding, codec):
    raw = write(tmp_path / "in.nc", encoding, codec)
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--verify", "full", tmp_path / "in.nc", out).ok()
    array = readers.arrays(out)["name"]
    assert array[...].tobytes() == raw.tobytes() and array.attrs.get("_Encoding") == encoding
    if encoding and codec == encoding:
        with xr.open_zarr(out) as ds:
            assert list(ds["name"].values) == TEXTS


def test_what_is_not_made_strings_of(tmp_path):
    write(tmp_path / "in.nc", "shift_jis", "utf-8")
    r = tool.nc2zarr("--char", "join", tmp_path / "in.nc", tmp_path / "out.zarr")
    assert r.status == 1 and "name: its _Encoding is shift_jis" in r.err and "--char keep" in r.err, str(r)
    assert not (tmp_path / "out.zarr").exists()
