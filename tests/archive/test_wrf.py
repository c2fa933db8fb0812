"""WRF's dates, which are text alone, as a coordinate that readers decode."""

import datetime
import json
import zlib

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from support import readers, tool

from . import files as F
from . import stores

HOUR = datetime.timedelta(hours=1)
START = datetime.datetime(2000, 1, 24, 12)


def dates(first, n, step=6):
    return [START + HOUR * step * (first + i) for i in range(n)]


def texts(moments):
    return [f"{d:%Y-%m-%d_%H:%M:%S}" for d in moments]


def number(text):
    return zlib.crc32(text.encode()) % 1000


def wrf(name, times, format="NETCDF3_64BIT_OFFSET", length=19, unlimited=("Time",)):
    vars = {
        "Times": F.Var(("Time", "DateStrLen"), F.characters(times, length)),
        "XTIME": F.Var(("Time",), np.arange(len(times), dtype="f4"), {"units": "minutes since 2000-01-24 12:00:00"}),
        "T2": F.Var(("Time", "y"), np.repeat(np.array([[number(t)] for t in times], "f4"), 3, axis=1), {"units": "K"}),
    }
    return F.File(name, vars, unlimited=unlimited, format=format)


def steps(n=3, per=2, **kw):
    return [wrf(f"wrfout_{i}.nc", texts(dates(i * per, per)), **kw) for i in range(n)]


def check(store, moments):
    """Readers see the instants of the texts, which are as they were."""
    with xr.open_zarr(store) as got:
        assert got.Time.dims == ("Time",) and got.Time.dtype.kind == "M"
        assert got.Time.values.tolist() == np.array(moments, "M8[us]").astype(got.Time.dtype).tolist()
        assert [t.decode() for t in got.Times.values] == texts(moments)
        np.testing.assert_array_equal(got.T2.values[:, 0], [number(t) for t in texts(moments)])
        assert got.Time.attrs["standard_name"] == "time" and got.Time.attrs["axis"] == "T"


@pytest.mark.parametrize("format", ["NETCDF3_64BIT_OFFSET", "NETCDF4"])
def test_one_file(format, tmp_path):
    moments = [*dates(0, 3), datetime.datetime(2000, 2, 29, 23, 59, 59), datetime.datetime(2101, 12, 31)]
    path = F.write(wrf("wrfout", texts(moments), format, 24), tmp_path)
    stores.convert("--verify", "full", "--certificate", tmp_path / "c.json", path, tmp_path / "out.zarr").ok()
    check(tmp_path / "out.zarr", moments)
    doc = json.loads((tmp_path / "c.json").read_text())
    assert doc["reproducible"] and [v["array"] for v in doc["variables"] if "decoded_from" in v] == ["Time"]
    stores.convert("--check", path, tmp_path / "out.zarr").ok()
    # The texts are decoded again by who verifies.
    shard = next(p for p in sorted((tmp_path / "out.zarr" / "Time").rglob("*")) if p.is_file() and p.name != "zarr.json")
    shard.unlink()
    r = stores.convert("--check", path, tmp_path / "out.zarr")
    assert r.status == 3 and "Time: chunk 0 is missing: element 0 is 948715200 in the file" in r.err, str(r)


def test_a_subset_by_date(tmp_path):
    path = F.write(wrf("wrfout", texts(dates(0, 8))), tmp_path)
    stores.convert("--subset", "Time=2000-01-25..2000-01-25", "--variable", "T2,Times", "--verify", "full", path, tmp_path / "out.zarr").ok()
    check(tmp_path / "out.zarr", [d for d in dates(0, 8) if d.day == 25])


@pytest.mark.parametrize("fixed", [False, True], ids=["unlimited", "fixed"])
def test_an_archive(fixed, tmp_path):
    """Joined by date, whatever the names; grown, replaced; the certificate is a good one."""
    files = steps(4, unlimited=() if fixed else ("Time",))
    for f, name in zip(files, "dbca"):
        f.name = f"wrfout_{name}.nc"
    paths = F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    stores.convert("--verify", "full", "--certificate", tmp_path / "c.json", *paths[:3], out).ok()
    assert json.loads((tmp_path / "c.json").read_text())["reproducible"]
    check(out, dates(0, 6))
    stores.convert("--append", "Time", "--verify", "full", *paths, out).ok()
    check(out, dates(0, 8))
    stores.convert("--check", *paths, out).ok()
    stores.convert("--subset", "Time=2000-01-25T12..2000-01-26", *paths, tmp_path / "part.zarr").ok()
    check(tmp_path / "part.zarr", dates(0, 8)[4:8])


def test_a_wrong_date_is_found(tmp_path):
    """In a joined store, by verification alone; a file without steps takes part."""
    files = steps(2)
    for v in files[0].vars.values():
        v.data = v.data[:0]
    paths = F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    stores.convert("--verify", "full", *paths, out).ok()
    check(out, dates(2, 2))
    times = zarr.open_group(str(out), mode="a")["Time"]
    times[1] = times[1] + 1
    r = stores.convert("--check", *paths, out)
    assert r.status == 3 and "difference: Time: " in r.err, str(r)


def test_references(tmp_path):
    F.write_all(steps(), tmp_path / "in")
    F.write(wrf("one.nc", texts(dates(0, 2))), tmp_path)
    for inputs, n in ((tmp_path / "in", 6), (tmp_path / "one.nc", 2)):
        stores.convert("--virtual", "json", inputs, tmp_path / "refs.json").ok()
        stores.convert(tmp_path / "refs.json", tmp_path / f"{n}.zarr").ok()
        check(tmp_path / f"{n}.zarr", dates(0, n))
        (tmp_path / "refs.json").unlink()


def test_overlaps_and_gaps_are_found(tmp_path):
    files = steps()
    files[1] = wrf("wrfout_1.nc", texts(dates(1, 3)))
    paths = F.write_all(files, tmp_path / "in")
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr", "--exclude", "XTIME").ok()
    check(tmp_path / "out.zarr", dates(0, 6))
    _, doc = stores.survey(*paths, F.write(wrf("late.nc", texts(dates(8, 4))), tmp_path))
    assert doc["axes"][0]["name"] == "Time" and doc["axes"][0]["missing"] == 2, doc["axes"]


def add_texts(nc, group):
    nc.createDimension("Time", None)
    nc.createDimension("DateStrLen", 19)
    nc.createGroup(group)
    nc["d01"].createVariable("Times", "S1", ("Time", "DateStrLen"))[:] = F.characters(texts(dates(0, 2)), 19)


# ---- texts that stay text ---------------------------------------------------------------------------

NO_DATES = ["2000-02-30_00:00:00", "2000-01-24 12:00:00", "2000-01-24_24:00:00", "2000-01-24_12:00", "0000-01-24_12:00:00", "2000-02-24_12:00:00.5"]


@pytest.mark.parametrize("text", NO_DATES)
def test_no_dates(text, tmp_path):
    """Texts of another calendar, or of none, in one file of many: all of them have the texts alone."""
    files = [wrf("a.nc", texts(dates(0, 2)), length=24), wrf("b.nc", [text], length=24)]
    paths = F.write_all(files, tmp_path / "in")
    stores.convert("--verify", "full", paths[1], tmp_path / "one.zarr").ok()
    stores.convert("--verify", "full", *paths, tmp_path / "all.zarr").ok()
    for out in ("one.zarr", "all.zarr"):
        assert "Time" not in readers.arrays(tmp_path / out) and "Times" in readers.arrays(tmp_path / out)


def test_what_has_a_time_keeps_it(tmp_path):
    """A variable Time, a group Time, and a store that was made without one."""
    f = wrf("own.nc", texts(dates(0, 2)))
    f.vars["Time"] = F.Var(("Time",), np.array([5.0, 6.0]), {"units": "days since 1999-01-01"})
    stores.convert(F.write(f, tmp_path), tmp_path / "own.zarr").ok()
    assert readers.arrays(tmp_path / "own.zarr")["Time"][...].tolist() == [5.0, 6.0]
    with netCDF4.Dataset(tmp_path / "group.nc", "w") as nc:
        add_texts(nc, "d01/Time")
    stores.convert(tmp_path / "group.nc", tmp_path / "group.zarr").ok()
    assert set(readers.arrays(tmp_path / "group.zarr")) == {"d01/Times"}
    paths = F.write_all(steps(2), tmp_path / "in")
    stores.convert("--exclude", "Time", *paths[:1], tmp_path / "old.zarr").ok()
    stores.convert("--append", "Time", "--verify", "full", *paths, tmp_path / "old.zarr").ok()
    assert "Time" not in readers.arrays(tmp_path / "old.zarr")
    assert readers.arrays(tmp_path / "old.zarr")["T2"].shape == (4, 3)


def test_dates_before_the_gregorian_calendar(tmp_path):
    """Idealised runs begin in the year 1: as cftime reads the text."""
    moments = ["0001-01-01_00:00:00", "1500-02-29_06:00:00", "1582-10-04_00:00:00", "1582-10-15_00:00:00"]
    path = F.write(wrf("ideal.nc", moments), tmp_path)
    stores.convert("--verify", "full", path, tmp_path / "out.zarr").ok()
    with xr.open_zarr(tmp_path / "out.zarr", decode_times=xr.coders.CFDatetimeCoder(use_cftime=True)) as got:
        assert [d.strftime("%Y-%m-%d_%H:%M:%S").replace(" ", "0") for d in got.Time.values] == moments


def test_a_group(tmp_path):
    with netCDF4.Dataset(tmp_path / "g.nc", "w") as nc:
        add_texts(nc, "d01")
    tool.nc2zarr("-q", "--verify", "full", tmp_path / "g.nc", tmp_path / "out.zarr").ok()
    with xr.open_zarr(tmp_path / "out.zarr", group="d01") as got:
        assert got.Time.values.tolist() == np.array(dates(0, 2), "M8[us]").astype(got.Time.dtype).tolist()
