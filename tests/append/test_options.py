"""Options of the conversion that made a store may stand in the command of each night."""

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from support import failio, tool

from . import files as F

UNITS = "hours since 1990-01-01"


def packed(path, first, n, scale, dtype="i2", fill=-32767, missing=()):
    """Days whose numbers are packed in their own way."""
    stored = (np.arange(n * F.NLAT * F.NLON).reshape(n, F.NLAT, F.NLON) % 1000).astype(dtype)
    stored.flat[list(missing)] = fill
    return F.day(path, first, n, type=dtype, fill=fill, data=stored, attrs={}) and repack(path, scale)


def repack(path, scale):
    with netCDF4.Dataset(path, "a") as nc:
        nc["tas"].setncattr("scale_factor", scale)
        nc["tas"].setncattr("add_offset", 10 * scale)
    return path


def decoded(paths):
    values = []
    for p in paths:
        with xr.open_dataset(p) as ds:
            values.append(ds.tas.values.astype("f8"))
    return np.concatenate(values)


@pytest.mark.parametrize("option", ["--append", "--replace"])
@pytest.mark.parametrize("fmt", ["2", "3"])
def test_packing(option, fmt, tmp_path):
    """Numbers of files that are packed differently go unpacked into a store that has them so."""
    files = [packed(tmp_path / f"{i}.nc", 2 * i, 2, 0.5 + i, missing=[i]) for i in range(4)]
    store, want = tmp_path / "s.zarr", tmp_path / "w.zarr"
    how = ["-q", "--zarr-format", fmt, "--packing", "unpack", "--chunks", "time=3"]
    n = 2 if option == "--append" else 4
    tool.nc2zarr(*how, *files[:n], store).ok()
    # A zero of the store keeps its sign.
    tool.nc2zarr(*how, *files, want).ok()
    if option == "--append":
        a = zarr.open_group(store)["tas"]
        a[0, 2, 2] = -0.0
        zarr.open_group(want)["tas"][0, 2, 2] = -0.0
        before = failio.contents(store)
        r = tool.nc2zarr("--append", "time", *files[2:], store)
        assert r.status == 4 and "scale_factor" in r.err and "; --packing unpack " in r.said, str(r)
        assert failio.contents(store) == before
        tool.nc2zarr("-q", "--append", "time", "--packing", "unpack", "--verify", "full", *files[2:], store).ok()
    else:
        files[1] = packed(tmp_path / "1.nc", 2, 2, 7.5, missing=[3])
        tool.nc2zarr("-q", "--overwrite", *how, *files, want).ok()
        tool.nc2zarr("-q", "--replace", "time=2:4", "--packing", "unpack", "--verify", "full", files[1], store).ok()
    got, once = zarr.open_group(store, mode="r")["tas"], zarr.open_group(want, mode="r")["tas"]
    assert got.dtype == "f8" and got[...].tobytes() == once[...].tobytes()
    if option == "--replace":
        np.testing.assert_array_equal(got[...], decoded(files))


@pytest.mark.parametrize("how", [dict(type="f4", fill=np.float32(1e20)), dict(type="f8", fill=1e20), dict(type="f8", fill=None), "packed"], ids=str)
def test_a_store_that_unpacked_numbers_do_not_fit(how, tmp_path):
    """It keeps its type, its packing, and its fill value; what would help is not offered."""
    store = tmp_path / "s.zarr"
    first = packed(tmp_path / "a.nc", 0, 2, 0.5) if how == "packed" else F.day(tmp_path / "a.nc", 0, 2, **how)
    tool.nc2zarr("-q", first, first, store).ok()
    before = failio.contents(tmp_path)
    new = packed(tmp_path / "b.nc", 2, 2, 0.25)
    before = failio.contents(tmp_path)
    for options in ([], ["--packing", "unpack"]):
        r = tool.nc2zarr("--append", "time", *options, new, store)
        assert r.status == 4 and "tas: " in r.err and "(b.nc)" in r.err and "; --packing" not in r.err, str(r)
    assert failio.contents(tmp_path) == before


def scanned(path, first, n=1, x=range(6), field=range(6), scale=np.float32(5.6e-05)):
    """Days of an imager's files: coordinates, a field without time and data, all packed alike."""
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("time", None)
        nc.createDimension("x", 6)
        t = nc.createVariable("time", "f8", ("time",))
        t.units = F.UNITS
        t[:] = np.arange(first, first + n)
        for name, dims, stored in (("x", ("x",), x), ("angle", ("x",), field), ("v", ("time", "x"), np.arange(6) + first)):
            v = nc.createVariable(name, "i2", dims)
            v.set_auto_maskandscale(False)
            v.scale_factor, v.add_offset = scale, type(scale)(np.float32(-0.101))
            v[:] = np.broadcast_to(stored, (n, 6) if name == "v" else (6,))
    return path


@pytest.mark.parametrize("fmt", ["2", "3"])
def test_scales_in_single_precision(fmt, tmp_path):
    """JSON does not say that a scale is a float32: equal numbers, packed alike, mean the same."""
    store, want = tmp_path / "s.zarr", tmp_path / "w.zarr"
    files = [scanned(tmp_path / f"{i}.nc", i) for i in range(3)]
    files.append(scanned(tmp_path / "3.nc", 3, scale=np.float64(np.float32(5.6e-05))))
    tool.nc2zarr("-q", "--zarr-format", fmt, *files[:2], store).ok()
    tool.nc2zarr("-q", "--zarr-format", fmt, *files[:3], want).ok()
    tool.nc2zarr("-q", "--append", "time", "--verify", "full", files[2], store).ok()
    assert tool.run("rechunk", "--digest", store).ok().out == tool.run("rechunk", "--digest", want).ok().out
    tool.nc2zarr("-q", "--append", "time", "--recheck", *files, store).ok()
    r = tool.nc2zarr("--replace", "time=1:2", "--verify", "full", files[1], store).ok()
    assert "Changed in v: 0 elements" in r.out, str(r)
    before = failio.contents(store)
    for name, how in {"x": dict(x=np.arange(6) + 1), "angle": dict(field=np.arange(6)[::-1]), "angle, v, x": dict(scale=np.float32(5.7e-05))}.items():
        new = scanned(tmp_path / "new.nc", 4, **how)
        r = tool.nc2zarr("--append", "time", new, store)
        assert r.status == 4 and f"  {name}: " in r.err and "(new.nc)" in r.err, str(r)
    assert failio.contents(store) == before


def test_scales_in_single_precision_along_the_axis(tmp_path):
    """A packed coordinate grows: which of its steps are in the store is known by their stored numbers."""
    store = tmp_path / "s.zarr"
    files = [scanned(tmp_path / f"{i}.nc", 0, x=np.arange(6) + 5 * i, field=np.arange(6) + 5 * i) for i in range(3)]
    for p in files:
        with netCDF4.Dataset(p, "a") as nc:
            nc["v"].set_auto_maskandscale(False)
            nc["v"][:] = nc["v"][:] + 5 * files.index(p)
    tool.nc2zarr("-q", "--along", "x", *files[:2], store).ok()
    tool.nc2zarr("-q", "--append", "x", "--recheck", files[1], files[2], store).ok()
    stored = zarr.open_group(store)
    assert list(stored["x"][:]) == list(range(16)) == list(stored["angle"][:]) == list(stored["v"][0])


@pytest.mark.parametrize("fmt", [2, 3])
def test_time_units(fmt, tmp_path):
    """Those of the store, however they are written, are no question; any other is one that it cannot take."""
    days, store = F.days(tmp_path, 0, 6), tmp_path / "s.zarr"
    how = ["-q", "--zarr-format", str(fmt), "--time-units", UNITS]
    tool.nc2zarr(*how, *days[:3], store).ok()
    tool.nc2zarr("-q", "--append", "time", "--time-units", UNITS, "--verify", "full", days[3], store).ok()
    tool.nc2zarr("-q", "--append", "time", "--time-units", "hours since 1990-1-1T00:00:00", days[4], store).ok()
    before = failio.contents(tmp_path)
    for units in (F.UNITS, "hours since 1990-01-02", "furlongs"):
        tool.nc2zarr("--append", "time", "--time-units", units, days[5], store).fails(2, "--time-units", "" if units == "furlongs" else f"variable time: the store counts it in {UNITS}")
        assert failio.contents(tmp_path) == before
    tool.nc2zarr("-q", "--append", "time", days[5], store).ok()
    assert zarr.open_group(store)["time"].attrs["units"] == UNITS
    F.same(store, days)


def test_survey_cache(tmp_path):
    """It keeps what was found of files, so that a night that was refused opens them once; never of the store."""
    here, store, cache = tmp_path / "in", tmp_path / "s.zarr", tmp_path / "cache"
    here.mkdir()
    F.days(here, 0, 5)
    tool.nc2zarr("-q", "--survey-cache", cache, "--chunks", "time=4", here, store).ok()
    command = ["--append", "time", "--survey-cache", cache, "--json", here, store]
    F.days(here, 5, 2)
    bad = F.day(here / "zz.nc", 7, attrs={"units": "degC"})
    assert tool.nc2zarr(*command).status == 4
    F.day(bad, 7)
    report = tool.nc2zarr(*command).json()
    assert report["append"] == {"dimension": "time", "was": 5, "length": 8, "nheld": 0, "nlisted": 5}
    assert report["input"]["opened"] == 1
    kept = cache.read_bytes()
    assert str(store).encode() not in kept and b"zz.nc" in kept and b"day00000.nc" in kept
    assert tool.nc2zarr(*command).json()["input"]["opened"] in (0, None)
    assert cache.read_bytes() == kept, "nothing was found anew"
    report = tool.nc2zarr("--recheck", *command).json()
    assert report["input"]["opened"] == 0 and report["append"]["nlisted"] == 0
    F.same(store, sorted(here.glob("*.nc")))
    # Where the ledger is lost the cache still knows them.
    (tmp_path / "s.zarr.chunkmill" / "ledger").unlink()
    F.days(here, 8, 1)
    report = tool.nc2zarr(*command).json()
    assert report["input"]["opened"] == 1 and report["append"]["length"] == 9
    # Of a store that grew meanwhile nothing was kept.
    assert zarr.open_group(store)["tas"].shape[0] == 9


# Of a store of 5 steps, and what lies along time in "tas": chunks, and shards.
LONGER = {
    "chunks": (["--chunks", "time=12"], [12], None),
    "all dimensions": (["--chunks", "time=12,lat=2,lon=3"], [12], None),
    "shards": (["--chunks", "time=2", "--shards", "time=8"], [8], [2]),
    "chunks past the end in shards": (["--chunks", "time=6", "--shards", "time=24"], [24], [6]),
    "full": (["--chunks", "time=full"], [5], None),
    "shards that are not whole chunks": (["--chunks", "time=2", "--shards", "time=9"], [6], [2]),
    "too far": (["--chunks", "time=100000000"], [5], None),
    "for a sample": (["--chunks", "time=12", "--sample", "time=3"], [12], None),
}


@pytest.mark.parametrize("each", [5, 1], ids=["one file", "many"])
@pytest.mark.parametrize("name", LONGER)
def test_lengths_past_the_end(name, each, tmp_path):
    """A store that is meant to grow has the chunks that were asked for, and is then what one conversion makes."""
    options, outer, inner = LONGER[name]
    first, more = F.days(tmp_path, 0, 5, each=each), F.days(tmp_path, 5, 20, each=20)
    store = tmp_path / "s.zarr"
    made = tool.nc2zarr("--verify", "full", *options, *first, store).ok()
    a = zarr.open_group(store, mode="r")["tas"]
    assert [(a.shards or a.chunks)[0]] == outer and (inner is None or [a.chunks[0]] == inner)
    assert ("as long as the dimension is now" in made.err) == (name == "too far"), str(made)
    tool.nc2zarr("-q", "--append", "time", "--verify", "full", *more, store).ok()
    F.same(store, first + more)
    if name in ("chunks", "all dimensions", "shards", "chunks past the end in shards"):
        want = tmp_path / "w.zarr"
        tool.nc2zarr("-q", *options, *first, *more, want).ok()
        a, b = (zarr.open_group(s, mode="r")["tas"] for s in (store, want))
        assert (a.chunks, a.shards) == (b.chunks, b.shards)


def test_a_dimension_that_does_not_grow(tmp_path):
    """There, as ever, a length past the end is the whole dimension."""
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--chunks", "time=3,lat=100,lon=100", F.day(tmp_path / "a.nc", 0, 5), store).ok()
    assert zarr.open_group(store)["tas"].chunks == (3, F.NLAT, F.NLON)
