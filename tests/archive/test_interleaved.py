"""Stations, members and variables whose steps lie between those of others get the steps of all, as with xarray's outer join."""

import warnings

import numpy as np
import pytest
import xarray as xr

from support import icechunk, paths
from support.tool import nc2zarr

from . import files as F
from . import stores
from .files import File, Var
from .test_paste import paste, survey

HOURS = np.arange(24.0)
TIMES = {
    "two hours missing": [HOURS, np.delete(HOURS, [5, 6])],
    "hourly and three-hourly": [HOURS, HOURS[::3]],
    "three-hourly and hourly": [HOURS[::3], HOURS],
    "ten minutes later": [HOURS, HOURS + 1 / 6],
    "three of them": [HOURS[::2], HOURS[1::2], HOURS[3:20:5]],
    "from another day on": [HOURS[::3], HOURS + 12, HOURS[4:9] + 30],
}
KINDS = {"NETCDF4": {}, "compressed": {"chunks": (7, 2), "deflate": 1}, "NETCDF3_64BIT_OFFSET": {}}
OPTIONS = ("--new-dim", "station=_*_", "--missing", "fill")


def station(k, hours, part=0, kind="NETCDF4", values=None):
    """Number k: some fields are stored otherwise in odd stations."""
    hours = np.asarray(hours, "f8")
    data = (hours[:, None] * [1, 10, 100] + 1000 * k + part).astype("f4") if values is None else values
    scaled = {"scale_factor": 0.5} if k == 1 else {}
    vars = {
        "lat": Var((), np.array(50.0 + k), {"units": "degrees_north", "standard_name": "latitude"}),
        "time": Var(("time",), hours, {"units": "hours since 2000-01-01", "standard_name": "time"}),
        "ta": Var(("time", "x"), data, {"units": "K"}, np.float32(-9 - k), **KINDS[kind]),
        "flux": Var(("x", "time"), np.ascontiguousarray(data.T), {}, np.float32(-9), tuple(reversed(KINDS[kind].get("chunks", ()))) or None),
        "count": Var(("time",), (hours * 2 + k).astype("i2"), scaled, np.int16(-1)),
    }
    form = "NETCDF3_64BIT_OFFSET" if kind.startswith("NETCDF3") else "NETCDF4"
    return File(f"station_{k + 11}_{part}.nc", vars, {"part": str(part)}, ("time",) if form == "NETCDF4" else (), form)


def wanted(files):
    """The dataset of xarray: a dimension of stations over the steps of all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = {}
        for path in sorted(files):
            parts.setdefault(int(path.name.split("_")[1]), []).append(xr.open_dataset(path).load())
        whole = [xr.concat(p, "time", data_vars="minimal", coords="minimal") for p in parts.values()]
        return xr.concat(whole, "station", join="outer", data_vars="all", coords="all").assign_coords(station=list(parts))


def hold(store, files, names=("ta", "flux", "count", "lat")):
    want = wanted(files)
    with xr.open_zarr(store, chunks=None) as got:
        assert np.abs(got.time.values - want.time.values).max() < np.timedelta64(1, "us")
        np.testing.assert_array_equal(got.station.values, want.station.values)
        for v in names:
            np.testing.assert_array_equal(got[v].transpose(*want[v].dims).values, want[v].values, v)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TIMES)
def test_stations(name, kind, tmp_path):
    made = F.write_all([station(k, t, kind=kind) for k, t in enumerate(TIMES[name])], tmp_path / "in")
    _, line = survey("in", "out.zarr", cwd=tmp_path)
    assert "--new-dim" in line and "--missing fill" in line, line
    hold(paste(line, tmp_path), made)
    for i, more in enumerate((["--chunks", "time=5,station=2"], ["--zarr-format", "2", "--codec", "keep"], ["--verify", "full", "--chunks", "time=100,station=1"])):
        nc2zarr(*OPTIONS, "--packing", "unpack", *more, "in", f"{i}.zarr", cwd=tmp_path).ok()
        hold(tmp_path / f"{i}.zarr", made)


PLACES = {  # numbers that tell where a station is, what refers to them, and the dimension that is proposed
    "names of coordinates": (("lat", "lon"), False, "station"),
    "coordinates of fields": (("site_y", "site_x"), True, "file"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", TIMES)
def test_places_without_attributes(name, place, tmp_path):
    """Not along one of their numbers: the names of the files tell stations apart."""
    numbers, refers, dim = PLACES[place]
    files = [station(k, t) for k, t in enumerate(TIMES[name])]
    for k, f in enumerate(files):
        del f.vars["lat"]
        f.vars.update({v: Var((), np.array(50.0 + k / (3 + i))) for i, v in enumerate(numbers)})
        f.vars["ta"].attrs.update({"coordinates": " ".join(numbers)} if refers else {})
        f.attrs.pop("part")
    made = F.write_all(files, tmp_path / "in")
    _, line = survey("in", "out.zarr", cwd=tmp_path)
    assert f"--new-dim '{dim}=_*_' --missing fill" in line, line
    out = paste(line, tmp_path)
    want = wanted(made)
    with xr.open_zarr(out, chunks=None) as got:
        np.testing.assert_array_equal(got[dim].values, want.station.values)
        for v in ("ta", "flux", "count", *numbers):
            np.testing.assert_array_equal(got[v].values, want[v].rename(station=dim).transpose(*got[v].dims).values, v)


@pytest.mark.parametrize("form", ["st_{}_{}.nc", "{}/st_{}.nc", "{1}.{0}.nc"])
@pytest.mark.parametrize("name", TIMES)
def test_stations_of_several_files(name, form, tmp_path):
    """A part of the names that goes with the place tells stations apart."""
    files = {}
    for k, t in enumerate(TIMES[name]):
        for part in range(2):
            f = station(k, t + 100 * part)
            f.name, f.vars["lat"].attrs = form.format(f"X{k}", part), {}
            files.setdefault(k, []).append(f)
    F.write_all([f for of in files.values() for f in of], tmp_path / "in")
    _, line = survey("in", "out.zarr", cwd=tmp_path)
    assert "--new-dim station=" in line.replace("'", "") and "--missing fill" in line, line
    with xr.open_zarr(paste(line, tmp_path), chunks=None, decode_times=False) as got:
        assert got.lat.values.tolist() == [50.0 + k for k in files] and got.ta.dims[0] == "station"
        for k, of in files.items():
            hours = np.concatenate([f.vars["time"].data for f in of])
            here = got.isel(station=k, time=np.searchsorted(got.time.values, hours - 1e-9))
            np.testing.assert_array_equal(here.ta.values, np.concatenate([f.vars["ta"].data for f in of]))


def test_messages_name_the_element(tmp_path):
    """Steps that are read at once lie apart in the store."""
    files = [station(k, t) for k, t in ((0, HOURS), (2, HOURS[::3]))]
    files[1].vars["ta"].data[5, 1] = files[0].vars["ta"].fill
    F.write_all(files, tmp_path / "in")
    run = nc2zarr(*OPTIONS, tmp_path / "in", tmp_path / "out.zarr", "--chunks", "time=24,station=2")
    assert run.status == 1 and "variable ta: element 1/15/1 is data" in run.err, str(run)


def test_a_place_along_a_dimension_of_one_element(tmp_path):
    """As HadISD has its latitude: it tells stations, too."""
    files = [station(k, t) for k, t in enumerate(TIMES["two hours missing"])]
    for f in files:
        f.vars["lat"] = Var(("one",), f.vars["lat"].data[None], f.vars["lat"].attrs)
    F.write_all(files, tmp_path / "in")
    _, line = survey("in", "out.zarr", cwd=tmp_path)
    assert "--new-dim" in line
    with xr.open_zarr(paste(line, tmp_path)) as got:
        assert got.lat.shape == (2, 1)


def test_files_of_one_station_that_interleave_are_refused(tmp_path):
    F.write_all([station(0, HOURS), station(1, HOURS[::2]), station(1, HOURS[1:9:4] + 0.25, 1)], tmp_path / "in")
    _, said = stores.survey(*OPTIONS, "--packing", "unpack", tmp_path / "in", status=4)
    kinds = {f["kind"] for f in said["findings"] if f["weight"] == "decision" and not f["decided"]}
    assert "interleaved" in kinds, kinds


def test_variables_of_other_steps(tmp_path):
    """In files of their own, without a second joined dimension."""
    made = []
    for name, hours, day in (("tas", HOURS, 0), ("tas", HOURS, 1), ("pr", HOURS[::3] + 1 / 6, 0), ("pr", HOURS[::3] + 1 / 6, 1), ("rh", HOURS[::6], 0)):
        f = station(0, hours + 24 * day)
        f.vars = {"time": f.vars["time"], name: f.vars["ta"]}
        f.name = f"{name}_{day}.nc"
        made.append(F.write(f, tmp_path / "in" if day else tmp_path / "in"))
    _, line = survey("in", "out.zarr", cwd=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_mfdataset(map(str, made), combine="by_coords", join="outer") as want, xr.open_zarr(paste(line, tmp_path)) as got:
            assert np.abs(got.time.values - want.time.values).max() < np.timedelta64(1, "us")
            for v in ("tas", "pr", "rh"):
                np.testing.assert_array_equal(got[v].values, want[v].values)


@pytest.mark.parametrize("target", ["out.zarr", "icechunk:out"])
def test_grows(target, tmp_path):
    """By days whose steps interleave; what lies before the end of the store stays refused."""
    days = [[station(0, HOURS + 24 * d, d), station(2, HOURS[::3] + 24 * d, d)] for d in range(2)]
    made = [F.write_all(files, tmp_path / f"day{d}") for d, files in enumerate(days)]
    nc2zarr(*OPTIONS, "day0", target, cwd=tmp_path).ok()
    nc2zarr("--append", "time", *OPTIONS, "day1", target, cwd=tmp_path).ok()
    if not target.startswith("icechunk"):
        hold(tmp_path / target, made[0] + made[1])
    late = F.write(station(2, HOURS[1:9:2] + 0.5, 2), tmp_path / "late")
    run = nc2zarr("--append", "time", *OPTIONS, late, target, cwd=tmp_path)
    assert run.status == 4 and "lies before the end of the store" in " ".join(run.err.split()), str(run)
    whole = nc2zarr("--replace", "time=2000-01-02..2000-01-02T23", *OPTIONS, "day1", target, cwd=tmp_path)
    assert whole.status == 2 and "the files lack elements" in whole.err, str(whole)


@pytest.mark.parametrize("kind", ["NETCDF3_64BIT_OFFSET", "NETCDF4", "compressed"])
def test_references(kind, tmp_path):
    """Chunks of several steps, which cannot be referred to, are copied."""
    files = [station(k, t, kind=kind) for k, t in ((0, HOURS), (2, HOURS[::3]))]
    files[1].vars["ta"].fill = files[0].vars["ta"].fill
    made = F.write_all(files, tmp_path / "in")
    nc2zarr("--virtual", "icechunk", *OPTIONS, "in", "icechunk:out", cwd=tmp_path).ok()
    icechunk.unpack(tmp_path / "out", tmp_path / "out.zarr")
    hold(tmp_path / "out.zarr", made)


@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")
def test_memory_and_limit(tmp_path):
    """A step between each two of another file is a part of its own: 100 bytes of each, no more, are in memory."""

    def peak(n, **kw):
        for k in range(2):
            f = station(k, (2 * np.arange(n) + k) / 60)
            f.vars = {"time": f.vars["time"], "ta": Var(("time",), np.arange(n, dtype="f4"), {}, np.float32(-9))}
            F.write(f, tmp_path / "in")
        return nc2zarr("-j", "2", *OPTIONS, "--dry-run", tmp_path / "in", tmp_path / "out.zarr", peak=True, **kw)

    few, many = peak(1000).ok().peak, peak(100000).ok().peak
    assert many - few < 200000 * 100, (few, many)
