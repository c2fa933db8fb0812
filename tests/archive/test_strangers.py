"""Archives of other people's shapes against xarray: tiles, forecasts, staggered grids, records, odd times, overlaps."""

import warnings

import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import tool

from . import files as F
from . import stores
from .files import File, Var


def rng(*key):
    return np.random.default_rng([11, *key])


def time(values, units=F.UNITS, calendar="standard", dtype="f8", **attrs):
    return Var(("time",), np.asarray(values, dtype), {"units": units, "calendar": calendar, **attrs})


def line(name, days, values=None, **kw):
    return File(f"{name}.nc", {"time": time(days, **kw), "v": Var(("time",), np.asarray(days if values is None else values, "f8"))})


def grid():
    return {"lat": Var(("lat",), np.linspace(60, -60, 4)), "lon": Var(("lon",), np.arange(6) * 60.0)}


def tiles():
    whole = rng(0).normal(size=(4, 6))
    for i in range(2):
        for j in range(3):
            rows, columns = slice(2 * i, 2 * i + 2), slice(2 * j, 2 * j + 2)
            g = grid()
            vars = {"lat": Var(("lat",), g["lat"].data[rows]), "lon": Var(("lon",), g["lon"].data[columns]), "z": Var(("lat", "lon"), whole[rows, columns])}
            yield File(f"t{j}{i}.nc", vars, unlimited=())


def ensemble():
    for r in (3, 1, 2):
        for year in (2001, 2000):
            for name in ("tas", "pr"):
                data = rng(r, year, len(name)).normal(size=(1, 4, 4, 6)).astype("f4")
                vars = {**grid(), "member": Var(("member",), np.array([r], "i4")), "time": time(np.arange(4.0), f"days since {year}-01-01", "noleap")}
                yield File(f"{name}_{year}_r{r}.nc", {**vars, name: Var(("member", "time", "lat", "lon"), data)})


def wrf():
    for hour in range(4):
        text = f"2005-08-28_{hour:02d}:00:00"
        field = lambda *shape: rng(hour, *shape).normal(size=(1, *shape)).astype("f4")  # noqa: B023, E731
        vars = {
            "Times": Var(("Time", "DateStrLen"), np.array([list(text)], "S1")),
            "U": Var(("Time", "bottom_top", "south_north", "west_east_stag"), field(3, 4, 6)),
            "V": Var(("Time", "bottom_top", "south_north_stag", "west_east"), field(3, 5, 5)),
            "W": Var(("Time", "bottom_top_stag", "south_north", "west_east"), field(4, 4, 5)),
            "P_TOP": Var(("Time",), np.array([5000.0], "f4")),
            "ZNU": Var(("Time", "bottom_top"), np.ones((1, 3), "f4")),
        }
        yield File(f"wrfout_d01_{text}.nc", vars, unlimited=("Time",), format="NETCDF3_64BIT_OFFSET")


def forecasts(drift):
    for day in range(3):
        units = f"hours since 2020-01-0{day + 1 if drift else 1}"
        start = 0.0 if drift else 24.0 * day
        vars = {
            "time": Var(("time",), np.array([start]), {"units": units}),
            "step": Var(("step",), np.arange(4) * 6.0, {"units": "hours"}),
            "valid_time": Var(("time", "step"), start + np.arange(4)[None] * 6.0, {"units": units}),
            "t": Var(("time", "step"), rng(day).normal(size=(1, 4)).astype("f4")),
        }
        yield File(f"fc{day}.nc", vars, unlimited=())


def records():
    """Classic files in all formats, with records of one byte, of two, and of floats."""
    formats = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4", "NETCDF4_CLASSIC"]
    for i, format in enumerate(formats):
        vars = {
            **grid(),
            "time": time(np.arange(3) + 3.0 * i),
            "flag": Var(("time",), np.arange(3, dtype="i1")),
            "s": Var(("time", "lon"), rng(i).integers(0, 9, (3, 6)).astype("i2")),
            "tas": Var(("time", "lat", "lon"), rng(i, 1).normal(size=(3, 4, 6)).astype("f4")),
        }
        yield File(f"f{i}.nc", vars, format=format)


def days(first, last):
    return (np.arange(np.datetime64(first), np.datetime64(last)) - np.datetime64("1999-01-01")).astype("f8")


NESTED = {"combine": "nested", "data_vars": "minimal", "coords": "minimal"}
ARCHIVES = {
    "tiles": (list(tiles()), {}),
    "members, years and variables": (list(ensemble()), {}),
    "staggered grids": (list(wrf()), {**NESTED, "concat_dim": "Time"}),
    "forecasts": (list(forecasts(False)), {**NESTED, "concat_dim": "time"}),
    "forecasts whose units drift": (list(forecasts(True)), {**NESTED, "concat_dim": "time"}),
    "records of all formats": (list(records()), {}),
    "days, no leap day": ([line(y, [d for d in days(f"{y}-01-01", f"{y + 1}-01-01") if d != 424], units="days since 1999-01-01") for y in (2001, 1999, 2000)], {}),
    "middles of years": ([line(y, [days("1999-01-01", f"{y}-07-01").size], units="days since 1999-01-01") for y in range(2000, 2009)], {}),
    "since the year 1": ([line(y, np.arange(3.0) + 3 * y + 730000, units="days since 1-1-1 00:00:0.0", calendar="gregorian") for y in range(3)], {}),
    "days as numbers": ([File(f"{y}.nc", {"time": Var(("time",), np.array([20000101.0, 20000102.5]) + 10000 * y, {"units": "day as %Y%m%d.%f"}), "v": Var(("time",), np.arange(2.0))}) for y in range(3)], {}),
    "strings": ([File(f"{i}.nc", {"time": time([2 * i, 2 * i + 1]), "station": Var(("time",), np.array([f"é{i}", "b" * i], object))}) for i in range(3)], {}),
}


def compare(want, got):
    made = {"Time"} if "Times" in want.variables else set()  # of WRF's texts
    assert set(got.variables) - made == set(want.variables)
    for v in want.variables:
        a, b = want[v].transpose(*got[v].dims), got[v]
        assert a.dims == b.dims and a.shape == b.shape, v
        if a.dtype.kind == "M":
            assert np.abs((a.values.astype("M8[ns]") - b.values.astype("M8[ns]")).astype("i8")).max() < 1000, v
        elif a.dtype.kind in "OSUT":
            assert [str(x) for x in a.values.ravel()] == [str(x) for x in b.values.ravel()], v
        else:
            assert a.dtype == b.dtype, v
            np.testing.assert_array_equal(a.values, b.values, err_msg=v)


@pytest.mark.parametrize("name", ARCHIVES)
def test_as_xarray_joins_them(name, tmp_path):
    files, how = ARCHIVES[name]
    paths = sorted(str(p) for p in F.write_all(files, tmp_path / "in"))
    stores.survey(tmp_path / "in", status=0)
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    by_coordinates = {"combine": "by_coords", "data_vars": "minimal", "coords": "minimal", "join": "exact"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_mfdataset(paths, combine_attrs="drop_conflicts", compat="override", **(how or by_coordinates)) as want, xr.open_zarr(tmp_path / "out.zarr") as got:
            compare(want, got)


# ---- what xarray does not join, or not rightly ---------------------------------------------------------


def joined(tmp_path, files, *options):
    F.write_all(files, tmp_path / "in")
    stores.convert("--verify", "full", *options, tmp_path / "in", tmp_path / "out.zarr").ok()
    return xr.open_zarr(tmp_path / "out.zarr", decode_times=False)


def test_files_that_share_steps_three_deep(tmp_path):
    files = [line(k, np.arange(a, b)) for k, (a, b) in enumerate([(0, 8), (5, 15), (6, 7), (12, 20)])]
    with joined(tmp_path, files) as got:
        assert got.time.values.tolist() == got.v.values.tolist() == list(range(20))


def test_times_that_descend(tmp_path):
    """In each file and over all of them."""
    with joined(tmp_path, [line(i, [3 * i + 2, 3 * i + 1, 3 * i]) for i in range(3)]) as got:
        assert got.time.values.tolist() == got.v.values.tolist() == list(range(8, -1, -1))


def test_climatologies_whose_units_drift(tmp_path):
    """Bounds without units of their own: xarray takes them as they are, here they are the same instants."""
    files = []
    for year in (1960, 1970, 1980):
        t = np.array([15.0, 45.0, 75.0])
        attrs = {"units": f"days since {year}-01-01", "calendar": "standard", "climatology": "climatology_bnds"}
        files.append(File(f"{year}.nc", {"time": Var(("time",), t, attrs), "climatology_bnds": Var(("time", "nv"), np.stack([t - 15, t + 3650], 1))}))
    joined(tmp_path, files).close()
    stores.same(tmp_path / "out.zarr", F.joined(files))


def test_a_group(tmp_path):
    import netCDF4

    (tmp_path / "in").mkdir()
    for i in range(3):
        with netCDF4.Dataset(tmp_path / "in" / f"{i}.nc", "w") as nc:
            g = nc.createGroup("PRODUCT")
            g.createDimension("time", None)
            t = g.createVariable("time", "f8", ("time",))
            t.units = F.UNITS
            t[:] = [2 * i, 2 * i + 1]
            g.createVariable("v", "f4", ("time",))[:] = [i, i + 0.5]
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    with xr.open_zarr(tmp_path / "out.zarr", group="PRODUCT", decode_times=False) as got:
        assert got.time.values.tolist() == list(range(6)) and got.v.values.tolist() == [0, 0.5, 1, 1.5, 2, 2.5]


@pytest.mark.parametrize("kind, first, second", [("coordinate", np.arange(6) * 60.0, np.arange(6) * 60.0 - 180), ("direction", np.arange(6) * 60.0, np.arange(6)[::-1] * 60.0)])
def test_longitudes_that_are_others(kind, first, second, tmp_path):
    files = [File(f"{i}.nc", {"time": time([i]), "lon": Var(("lon",), x), "v": Var(("time", "lon"), np.ones((1, 6)))}) for i, x in enumerate((first, first, second))]
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    (found,) = [f for f in doc["findings"] if f["weight"] == "decision"]
    assert found["kind"] == kind and found["variable"] == "lon" and found["file"].endswith("2.nc") and found["option"] is None


def test_groups_with_other_dimensions_of_one_name(tmp_path):
    """Two dimensions of one file are not taken for one, whose length would be that of either."""
    for k in range(2):
        with netCDF4.Dataset(tmp_path / f"{k}.nc", "w") as ds:
            for name, n in (("a", 3), ("b", 5)):
                group = ds.createGroup(name)
                group.createDimension("time", n)
                t = group.createVariable("time", "i4", ("time",))
                t.units = "days since 2000-01-01"
                t[:] = np.arange(n) + k * n
    run = tool.nc2zarr("-q", "--verify", "none", tmp_path / "0.nc", tmp_path / "1.nc", tmp_path / "out.zarr")
    said = " ".join(run.err.split())
    assert run.status == 4 and "0.nc: time: variable b/time has 5 elements along it" in said and "are not joined" in said, str(run)
    assert not (tmp_path / "out.zarr").exists()


@pytest.mark.parametrize("form", ["zarr", "icechunk"])
def test_stores_are_no_inputs(form, tmp_path):
    F.write_all([line(f"{i}", [2 * i, 2 * i + 1]) for i in range(2)], tmp_path / "in")
    name = f"icechunk:{tmp_path / 'a'}" if form == "icechunk" else str(tmp_path / "a.zarr")
    tool.nc2zarr("-q", tmp_path / "in", name).ok()
    tool.nc2zarr("-q", tmp_path / "in", tmp_path / "b.zarr").ok()
    said = "is a repository" if form == "icechunk" else "is a Zarr store"
    for args in (["--survey", name], ["--append", "time", name, tmp_path / "b.zarr"]):
        tool.nc2zarr(*args).fails(2, f"{said}; only files are joined, or added to a store")
