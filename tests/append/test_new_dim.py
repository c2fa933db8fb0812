"""Files without the dimension that a store grows along: options say which step each is, as in the conversion that made it."""

import datetime
import subprocess

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from support import failio, tool

from . import files as F

DIM = {"day": "time", "scalar": "time", "own": "t", "number": "member", "attribute": "run", "fraction": "level"}
OPTION = {
    "day": "time=.%Y%m%d",
    "scalar": "time=@t",
    "own": "t=@t",
    "number": "member=r*i1",
    "attribute": "run=@run",
    "fraction": "level=@level",
}
LAYOUTS = {
    "v3": ["--chunks", "DIM=2"],
    "v2": ["--zarr-format", "2", "--chunks", "DIM=2,lat=3"],
    "shards": ["--chunks", "DIM=1,lat=2", "--shards", "DIM=4,lat=4"],
}


def scene(folder, k, data=None, units="seconds since 2000-01-01", length=None, name=None):
    """Number k: a field, what differs in each file and what is the same in all; no dimension but lat and lon."""
    day = datetime.date(2000, 1, 30) + datetime.timedelta(k)
    path = folder / (name or f"r{k}i1.{day:%Y%m%d}.nc")
    with netCDF4.Dataset(path, "w") as nc:
        nc.run, nc.level = np.int32(100 + k), 0.25 + k
        nc.createDimension("lat", 5)
        nc.createDimension("lon", 7)
        nc.createDimension("nv", 2)
        if length:
            nc.createDimension("time", length)
        nc.createVariable("lat", "f8", ("lat",))[:] = np.arange(5) * 10
        nc.createVariable("lon", "f8", ("lon",))[:] = np.arange(7)
        dims = ("time", "lat", "lon") if length else ("lat", "lon")
        sst = nc.createVariable("sst", "f4", dims, zlib=True, fill_value=-9.0)
        sst.grid_mapping = "crs"
        sst[:] = np.arange(35).reshape(5, 7) + 100 * k if data is None else data
        nc.createVariable("crs", "i4", ()).grid_mapping_name = "latitude_longitude"
        nc.createVariable("orbit", "i4", ())[...] = 1000 + k
        nc.createVariable("name", str, ("lat",))[:] = np.array([f"{k} of {i}" for i in range(5)], object)
        t = nc.createVariable("t", "f8", ())
        t.units, t.bounds = units, "t_bounds"
        since = datetime.datetime.fromisoformat(units.removeprefix("seconds since "))
        t[...] = 86400.0 * k - (since - datetime.datetime(2000, 1, 1)).total_seconds()
        nc.createVariable("t_bounds", "f8", ("nv",))[:] = [float(t[...]), float(t[...]) + 60]
    return path


def scenes(folder, n, first=0, **kw):
    return [scene(folder, first + k, **kw) for k in range(n)]


def digest(store):
    return tool.run("rechunk", "--digest", store).ok().out


def case(kind, layout="v3"):
    """Words of the conversion, and of an append."""
    made = [w.replace("DIM", DIM[kind]) for w in LAYOUTS[layout]]
    option = ["--new-dim", OPTION[kind]] + ([] if kind in ("scalar", "own") else ["--exclude", "t,t_bounds"])
    return [*made, *option], ["--append", DIM[kind], *option]


@pytest.mark.few
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", OPTION)
def test_equals_one_conversion(kind, layout, tmp_path):
    """One night after the other, or several at once; what is there already adds nothing, listed in the ledger or not."""
    files, store, want = scenes(tmp_path, 7), tmp_path / "s.zarr", tmp_path / "w.zarr"
    make, add = case(kind, layout)
    tool.nc2zarr("-q", *make, *files[:2], store).ok()
    tool.nc2zarr("-q", *make, *files, want).ok()
    tool.nc2zarr("-q", *add, "--verify", "full", files[2], store).ok()
    before = failio.contents(store)
    r = tool.nc2zarr(*add, files[2], store).ok()
    assert "Nothing is to be added; 1 file is in the store already" in r.out, str(r)
    tool.nc2zarr("-q", *add, "--recheck", "--verify", "full", *files[:3], store).ok()
    assert failio.contents(store) == before
    (tmp_path / "s.zarr.chunkmill" / "ledger").unlink()
    tool.nc2zarr("-q", *add, "--verify", "full", *files[1:], store).ok()
    assert digest(store) == digest(want)
    with xr.open_zarr(store, chunks=None) as a, xr.open_zarr(want, chunks=None) as b:
        xr.testing.assert_identical(a.load(), b.load())


@pytest.mark.parametrize("kind", ["day", "scalar", "number"])
def test_parts(kind, tmp_path):
    files, store, want = scenes(tmp_path, 9), tmp_path / "s.zarr", tmp_path / "w.zarr"
    make, add = case(kind, "shards")
    tool.nc2zarr("-q", *make, *files[:3], store).ok()
    tool.nc2zarr("-q", *make, *files, want).ok()
    for k in (3, 1, 2):
        tool.nc2zarr("-q", *add, "--part", f"{k}/3", "--verify", "full", *files[3:], store).ok()
    assert digest(store) == digest(want)


@pytest.mark.parametrize("kind", ["day", "scalar", "number"])
def test_overlap_and_replacement(kind, tmp_path):
    """A step that the store has is compared, or replaced; only what differs is told."""
    files, store = scenes(tmp_path, 5), tmp_path / "s.zarr"
    make, add = case(kind)
    (tmp_path / "new").mkdir()
    other = scene(tmp_path / "new", 3, data=7.0)
    tool.nc2zarr("-q", *make, *files, store).ok()
    before = failio.contents(store)
    tool.nc2zarr(*add, other, store).fails(1, "variable sst: overlapping steps differ", "--overlap first or last")
    assert failio.contents(store) == before
    tool.nc2zarr("-q", *add, "--overlap", "first", other, store).ok()
    assert failio.contents(store) == before
    replace = ["--replace", f"{DIM[kind]}=3:4", *add[2:]]
    r = tool.nc2zarr(*replace, "--verify", "full", other, store).ok()
    assert "Changed in sst: 35 elements" in r.out, str(r)
    tool.nc2zarr("-q", *make, *files[:3], other, files[4], tmp_path / "w.zarr").ok()
    assert digest(store) == digest(tmp_path / "w.zarr")


def test_times_of_other_units(tmp_path):
    """Each file counts from its own day; the store goes on in its units, and so do its bounds."""
    files = [scene(tmp_path, k, units=f"seconds since 2000-01-0{k + 1}") for k in range(4)]
    tool.nc2zarr("-q", "--new-dim", "t=@t", *files[:2], tmp_path / "s.zarr").ok()
    tool.nc2zarr("-q", "--new-dim", "t=@t", *files, tmp_path / "w.zarr").ok()
    tool.nc2zarr("-q", "--append", "t", "--new-dim", "t=@t", "--verify", "full", *files[2:], tmp_path / "s.zarr").ok()
    assert digest(tmp_path / "s.zarr") == digest(tmp_path / "w.zarr")


@pytest.mark.parametrize("fmt", [2, 3])
@pytest.mark.parametrize("calendar, units", [("standard", "hours since 1990-01-01"), ("noleap", "days since 1999-01-01")])
def test_a_store_of_others(fmt, calendar, units, tmp_path):
    """Names are instants on the store's calendar, in its units; a file may have the dimension, without a coordinate."""
    files = [scene(tmp_path, k, length=1 if k % 2 else None, name=f"d.2000{m}.nc") for k, m in enumerate(("0227", "0228", "0301", "0302"))]
    parts = []
    for p in files[:2]:
        with xr.open_dataset(p, decode_times=False) as ds:
            sst = ds.sst.load()
            parts.append(sst if "time" in sst.dims else sst.expand_dims("time"))
    held = xr.concat(parts, "time").drop_vars("t", errors="ignore").to_dataset()
    days = [netCDF4.date2num(datetime.datetime(2000, 2, d), units, calendar) for d in (27, 28)]
    held = held.assign_coords(time=("time", np.array(days, "f8"), {"units": units, "calendar": calendar}))
    for v in held.variables.values():
        v.encoding = {}
    held.sst.encoding["_FillValue"] = np.float32(-9)
    held.to_zarr(tmp_path / "s.zarr", zarr_format=fmt)
    add = ["--append", "time", "--new-dim", "time=.%Y%m%d", "--exclude", "t,t_bounds,orbit,crs,name"]
    tool.nc2zarr("-q", *add, "--verify", "full", *files, tmp_path / "s.zarr").ok()
    grown = zarr.open_group(tmp_path / "s.zarr")
    want = [netCDF4.date2num(datetime.datetime(2000, m, d), units, calendar) for m, d in ((2, 27), (2, 28), (3, 1), (3, 2))]
    assert list(grown["time"][:]) == want
    np.testing.assert_array_equal(grown["sst"][:, 0, 0], [0, 100, 200, 300])


def test_along_another_dimension(tmp_path):
    """A store of members, whose files have times: more times of the members that it has."""
    files = {}
    for member in (1, 2):
        for n in range(3):
            p = files[member, n] = F.day(tmp_path / f"m{member}_{n}.nc", 2 * n, 2, data=F.values(2 * n, 2) + member, bounds=False)
            assert p.exists()
    made = ["--new-dim", "member=m*_", "--chunks", "time=3"]
    tool.nc2zarr("-q", *made, *(p for (_, n), p in files.items() if n < 2), tmp_path / "s.zarr").ok()
    tool.nc2zarr("-q", *made, *files.values(), tmp_path / "w.zarr").ok()
    new = [p for (_, n), p in files.items() if n == 2]
    tool.nc2zarr("-q", "--append", "time", "--new-dim", "member=m*_", "--verify", "full", *new, tmp_path / "s.zarr").ok()
    assert digest(tmp_path / "s.zarr") == digest(tmp_path / "w.zarr")
    # Not of one that it does not have.
    third = F.day(tmp_path / "m3_3.nc", 6, 2, bounds=False)
    before = failio.contents(tmp_path / "s.zarr")
    r = tool.nc2zarr("--append", "time", "--new-dim", "member=m*_", "--missing", "fill", third, tmp_path / "s.zarr")
    assert r.status == 4 and "member: 3 is not in the store, which grows along time alone" in r.err, str(r)
    assert failio.contents(tmp_path / "s.zarr") == before


# To a store of days made by their names: a file, options, the exit status, and words of the message.
REFUSED = {
    "no match": ("plain.nc", ["--new-dim", "time=.%Y%m%d"], 2, "plain.nc: its name does not match .%Y%m%d"),
    "an hour": ("a.20000301_06.nc", ["--new-dim", "time=.%Y%m%d_%H"], 2, "is 2000-03-01T06:00:00, which the store's time has no exact value for"),
    "before the end": ("a.20000110.nc", ["--new-dim", "time=.%Y%m%d"], 4, "2000-01-10T00:00:00 lies before the end of the store"),
    "no instant": ("a.20000301.nc", ["--new-dim", "time=a.*.nc"], 2, "says '20000301', and the store's time counts time"),
    "no attribute": ("a.20000301.nc", ["--new-dim", "time=@none"], 2, "has no global attribute none"),
    "no dimension": ("a.20000301.nc", ["--new-dim", "day=.%Y%m%d"], 2, "--new-dim day=.%Y%m%d: the store has no dimension day"),
    "a coordinate": ("a.20000301.nc", ["--new-dim", "lat=.%Y%m%d"], 2, "a.20000301.nc has a variable lat already"),
    "no option": ("a.20000301.nc", [], 4, "sst: it has no dimension time here"),
    "a step for many": ("a.20000301.nc", ["--promote", "sst"], 4, "sst: it has no dimension time here"),
    "not in the store": ("a.20000301.nc", ["--new-dim", "time=.%Y%m%d", "--promote", "crs"], 2, "--promote crs: the store has no such variable along time"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    file, options, status, words = REFUSED[name]
    store, without = tmp_path / "s.zarr", ["--exclude", "t,t_bounds"]
    tool.nc2zarr("-q", "--new-dim", "time=.%Y%m%d", *without, *scenes(tmp_path, 3), store).ok()
    new = scene(tmp_path, 5, name=file)
    before = failio.contents(tmp_path)
    r = tool.nc2zarr("--append", "time", *without, *options, new, store)
    assert r.status == status and words in " ".join(r.err.split()), str(r)
    assert "--promote" not in r.err or "--promote" in options, str(r)
    assert failio.contents(tmp_path) == before


FORGOTTEN = {"scalar": "time=@t", "own": "t=@t", "day": "time=%Y%m%d"}


@pytest.mark.parametrize("kind", FORGOTTEN)
def test_an_option_that_was_forgotten_is_proposed(kind, tmp_path):
    """A number of the name of the store's dimension, a time, or a date in the names of files without one; the command runs."""
    files, store = scenes(tmp_path, 3), tmp_path / "s.zarr"
    make, add = case(kind)
    if kind == "day":
        make, add = ([*a, "--exclude", "t,t_bounds"] for a in (make, add))
        for p in files:
            with netCDF4.Dataset(p, "a") as nc:  # without a time of its own
                del nc["t"].units
    tool.nc2zarr("-q", *make, *files[:2], store).ok()
    r = tool.nc2zarr(*add[:2], *(make[-2:] if kind == "day" else ()), files[2], store)
    assert r.status == 4 and "it has no dimension" in r.err, str(r)
    assert f"; --new-dim {FORGOTTEN[kind]}" in " ".join(r.err.split()), str(r)
    subprocess.run(r.err.splitlines()[-1], shell=True, capture_output=True, check=True)
    tool.nc2zarr("-q", *make, *files, tmp_path / "w.zarr").ok()
    assert digest(store) == digest(tmp_path / "w.zarr")


def test_texts_are_refused(tmp_path):
    """Nothing compares the names that a store has."""
    files, store = scenes(tmp_path, 3), tmp_path / "s.zarr"
    option = ["--new-dim", "label=*i1", "--exclude", "t,t_bounds"]
    tool.nc2zarr("-q", *option, *files[:2], store).ok()
    tool.nc2zarr("--append", "label", *option, files[2], store).fails(2, "the store has no coordinate label of numbers")


def promoted(path, first, n, ny=3):
    """Steps with fields that have no time, one of which has its dimensions in another order."""
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("time", None)
        nc.createDimension("y", ny)
        nc.createDimension("x", 400)
        t = nc.createVariable("time", "f8", ("time",))
        t.units = F.UNITS
        t[:] = np.arange(first, first + n)
        nc.createVariable("v", "f4", ("time", "y", "x"))[:] = np.broadcast_to(np.arange(first, first + n)[:, None, None], (n, ny, 400))
        ground = nc.createVariable("ground", "f4", ("y", "x"), zlib=True, chunksizes=(ny // 2 + 1, 300))
        ground[:] = np.arange(ny * 400).reshape(ny, 400) + 0.5 * first
        nc.createVariable("turned", "i2", ("x", "y"))[:] = first
        nc.createVariable("orbit", "i4", ())[...] = first
    return path


@pytest.mark.parametrize("each, ny", [(1, 3), (3, 3), (1, 300)])
def test_promotion(each, ny, tmp_path):
    """A field that the store has along the dimension, and files do not: each file's, at all of its steps."""
    files = [promoted(tmp_path / f"{k}.nc", each * k, each, ny) for k in range(5)]
    store, want, option = tmp_path / "s.zarr", tmp_path / "w.zarr", ["--promote", "ground,turned,orbit"]
    make = ["-q", "--chunks", "time=2,y=99", *option]
    tool.nc2zarr(*make, *files[:2], store).ok()
    tool.nc2zarr(*make, *files, want).ok()
    r = tool.nc2zarr("--append", "time", files[2], store)
    assert r.status == 4 and "ground, orbit, turned: it has no dimension time here" in r.err, str(r)
    add = ["--append", "time", *option, "--verify", "full"]
    tool.nc2zarr("-q", *add, files[2], store).ok()
    before = failio.contents(store)
    assert "Nothing is to be added" in tool.nc2zarr(*add, files[2], store).ok().out
    assert failio.contents(store) == before
    for k in (2, 1):
        tool.nc2zarr("-q", *add, "--part", f"{k}/2", *files[1:], store).ok()
    assert digest(store) == digest(want)


def test_promotion_of_a_large_field_for_several_steps(tmp_path):
    """A conversion refuses that; an append reads the field again for each step."""
    store, option = tmp_path / "s.zarr", ["--promote", "ground,turned,orbit"]
    files = [promoted(tmp_path / f"{k}.nc", k, 1, 300) for k in range(2)]
    tool.nc2zarr("-q", "--chunks", "time=2,y=77", *option, *files, store).ok()
    new = promoted(tmp_path / "2.nc", 2, 3, 300)
    tool.nc2zarr("-q", "--append", "time", *option, "--verify", "full", new, store).ok()
    grown, ground = zarr.open_group(store), np.arange(300 * 400).reshape(300, 400)
    for step, of in enumerate((0, 1, 2, 2, 2)):
        assert (grown["ground"][step] == (ground + 0.5 * of).astype("f4")).all() and grown["orbit"][step] == of
        assert (grown["turned"][step] == of).all() and (grown["v"][step] == step).all()
