"""Archives as newcomers have them: what the survey proposes leads to a store, and nothing of the files is lost."""

import datetime
import shlex

import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import tool

from . import files as F
from . import kinds
from . import stores
from .files import File, Var


def rng(*key):
    return np.random.default_rng([13, *key])


def decide(folder, *options):
    """Options that the survey proposes are taken until none is left to decide; then FOLDER is converted."""
    asked = list(options)
    for _ in range(5):
        status, doc = stores.survey(*asked, folder)
        if status == 0:
            return asked
        assert not (folder.parent / "out.zarr").exists()
        proposals = [f["option"] for f in doc["findings"] if f["weight"] == "decision" and f["option"]]
        assert proposals, doc["findings"]
        for p in dict.fromkeys(proposals):
            asked += shlex.split(p)
    raise AssertionError(asked)


def convert(folder, *options):
    out = folder.parent / "out.zarr"
    asked = decide(folder, *options)
    stores.convert("--verify", "full", *asked, folder, out).ok()
    tool.nc2zarr("-q", "--check", *asked, folder, out).ok()
    return asked, xr.open_zarr(out, chunks=None, decode_times=False, mask_and_scale=False)


def hours(n, first=0, name="time", **attrs):
    return Var((name,), np.arange(n, dtype="f8") + first, {"units": "hours since 2001-02-03", **attrs})


# ---- a field that lacks the dimension which its file is a step of ------------------------------------


@pytest.mark.parametrize("nfiles", [2, 5])
def test_rivers(nfiles, tmp_path):
    """NWM: time is a coordinate of one element, and no field has it."""
    flow = [rng(i).integers(0, 999, 6).astype("i4") for i in range(nfiles)]
    files = [
        File(
            f"nwm.t00z.f{i + 1:03d}.nc",
            {
                "time": hours(1, i),
                "reference_time": Var(("reference_time",), np.zeros(1), {"units": "hours since 2001-02-03"}),
                "feature_id": Var(("feature_id",), np.arange(6, dtype="i4")),
                "streamflow": Var(("feature_id",), flow[i], {"units": "m3 s-1", "scale_factor": np.float32(0.01)}),
            },
            unlimited=(),
        )
        for i in range(nfiles)
    ]
    F.write_all(files, tmp_path / "in")
    asked, got = convert(tmp_path / "in")
    with got:
        assert asked == ["--promote", "streamflow"]
        assert got.streamflow.dims == ("time", "feature_id") and got.feature_id.dims == ("feature_id",)
        np.testing.assert_array_equal(got.streamflow.values, np.stack(flow))


def test_starts_of_runs(tmp_path):
    """A scalar that each file has for itself is kept for each of its steps; one that changed once was corrected."""
    files = [File(f"his_{i}.nc", {"time": hours(3, 3 * i), "start": Var((), np.array(10.0 * i)), "dt": Var((), np.array(5.0 + (i > 2))), "v": Var(("time",), np.arange(3.0) + i)}) for i in range(5)]
    F.write_all(files, tmp_path / "in")
    asked, got = convert(tmp_path / "in")
    with got:
        assert set(zip(asked[::2], asked[1::2])) == {("--promote", "start"), ("--static", "dt:first")}
        np.testing.assert_array_equal(got.start.values, np.repeat(10.0 * np.arange(5), 3))
        assert got.dt.values == 5


def test_an_option_that_is_not_needed_yet(tmp_path):
    """--promote of what has the dimension in all files so far."""
    files = [File(f"{i}.nc", {"time": hours(2, 2 * i), "v": Var(("time",), np.arange(2.0) + i)}) for i in range(3)]
    F.write_all(files, tmp_path / "in")
    _, got = convert(tmp_path / "in", "--promote", "v")
    with got:
        assert got.v.values.tolist() == [0, 1, 1, 2, 2, 3]


# ---- dimensions without numbers ----------------------------------------------------------------------


def test_months_without_a_coordinate(tmp_path):
    """The one dimension whose length differs is joined, in order of name."""
    parts = [rng(m).normal(size=(n, 4)) for m, n in enumerate((28, 29, 31))]
    F.write_all([File(f"model_20000{m + 2}.nc", {"x": Var(("time", "y"), x)}, unlimited=()) for m, x in enumerate(parts)], tmp_path / "in")
    asked, got = convert(tmp_path / "in")
    with got:
        assert asked == ["--along", "time"]
        np.testing.assert_array_equal(got.x.values, np.concatenate(parts))


def test_dates_as_strings(tmp_path):
    days = [[f"2000-01-0{2 * i + 1}", f"2000-01-0{2 * i + 2}"] for i in range(3)]
    files = [File(f"file{i}.nc", {"time": Var(("time",), np.array(d, object)), "x": Var(("time",), np.arange(2.0) + i)}) for i, d in enumerate(days)]
    F.write_all(files, tmp_path / "in")
    asked, got = convert(tmp_path / "in")
    with got:
        assert asked == ["--along", "time"]
        assert got.time.values.tolist() == sum(days, []) and got.x.values.tolist() == [0, 1, 1, 2, 2, 3]


def test_two_unlimited_dimensions(tmp_path):
    """One of them has no elements in any file."""
    (tmp_path / "in").mkdir()
    for i in range(3):
        with netCDF4.Dataset(tmp_path / "in" / f"{i}.nc", "w") as nc:
            nc.createDimension("time", None)
            nc.createDimension("event", None)
            t = nc.createVariable("time", "f8", ("time",))
            t.units = F.UNITS
            t[:] = [2 * i, 2 * i + 1]
            nc.createVariable("x", "f4", ("time",))[:] = [i, i + 0.5]
            nc.createVariable("events", "f4", ("event",))
            nc.createVariable("counts", "i2", ("time", "event"))
    _, got = convert(tmp_path / "in")
    with got:
        assert got.events.shape == (0,) and got.counts.shape == (6, 0)
        assert got.x.values.tolist() == [0, 0.5, 1, 1.5, 2, 2.5]


@pytest.mark.parametrize("form, pattern", [("A%Y%j{}.L3m_8D.nc", "time=A%Y%j"), ("3B-MO.MS.MRG.%Y%m%d{}.V07.nc", "time=%Y%m%d")])
def test_first_and_last_day_in_one_number(form, pattern, tmp_path):
    """MODIS: A20021852002192 are two days of the year."""
    first = [datetime.date(2002, 7, 4) + datetime.timedelta(days=8 * i) for i in range(4)]
    last = "%Y%j" if "%j" in form else "-S000000"
    names = [d.strftime(form).replace("{}", (d + datetime.timedelta(days=7)).strftime(last)) for d in first]
    files = [File(n, {"sst": Var(("lat", "lon"), rng(i).normal(size=(4, 6)))}, unlimited=()) for i, n in enumerate(names)]
    F.write_all(files, tmp_path / "in")
    asked, got = convert(tmp_path / "in")
    with got:
        assert asked == ["--new-dim", pattern]
        np.testing.assert_array_equal(F.instants(Var((), got.time.values, dict(got.time.attrs))) // 86_400_000_000, [(d - datetime.date(1970, 1, 1)).days for d in first])
        np.testing.assert_array_equal(got.sst.values, np.stack([f.vars["sst"].data for f in files]))


# ---- ERA5: old files have neither valid_time nor standard names ----------------------------------------


def test_old_and_new_era5(tmp_path):
    files = []
    for month in (1, 2, 3):
        f = kinds.era5(month, strings=False)
        if month < 3:
            old = {"valid_time": "time"}
            del f.vars["number"]
            f.vars = {old.get(k, k): v for k, v in f.vars.items()}
            for v in f.vars.values():
                v.dims = tuple(old.get(d, d) for d in v.dims)
                v.attrs.pop("standard_name", None)
            t = f.vars["time"]
            since = (datetime.datetime(1970, 1, 1) - datetime.datetime(1900, 1, 1)).days * 24
            f.vars["time"] = Var(("time",), (t.data // 3600 + since).astype("i4"), {"units": "hours since 1900-01-01 00:00:00.0", "calendar": "gregorian"})
        files.append(f)
    want = [F.instants(next(v for k, v in f.vars.items() if k in ("time", "valid_time"))) for f in files]
    F.write_all(files, tmp_path / "in")
    asked, got = convert(tmp_path / "in")
    with got:
        assert {"time=valid_time"} <= set(asked) or {"valid_time=time"} <= set(asked)
        name = "valid_time" if "time=valid_time" in asked else "time"
        np.testing.assert_array_equal(F.instants(Var((), got[name].values, dict(got[name].attrs))), np.concatenate(want))
        np.testing.assert_array_equal(got.t.values, np.concatenate([f.vars["t"].data for f in files]))


# ---- files that have the same steps --------------------------------------------------------------------


def member(r, year, name="tas", attr=None):
    t = Var(("time",), np.arange(3.0), {"units": f"days since {year}-01-01"})
    attrs = {"realization_index": np.int32(r), "tracking_id": f"{r}/{year}"} if attr else {}
    return File("", {"time": t, "lat": kinds.grid()["lat"], name: Var(("time", "lat"), rng(r, year, len(name)).normal(size=(3, 4)))}, attrs)


MEMBERS = {
    "attribute": ("{v}_r{r}i1p1f1_{y}.nc", ("tas",), True, "member=@realization_index"),
    "attribute, two variables": ("{v}_r{r}i1p1f1_{y}.nc", ("tas", "pr"), True, "member=@realization_index"),
    "names": ("{v}_day_M_r{r}i1p1f1_gn_{y}0101-{y}1231.nc", ("tas",), False, "member=_r*i1p1f1_"),
    "names, the last part": ("{v}_{y}_mem{r:02d}.nc", ("tas",), False, "member=_mem*."),
    "folders": ("r{r}/{v}_{y}.nc", ("tas", "pr"), False, "member=/r*/"),
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_members(kind, tmp_path):
    """They cannot be told from copies before data are read: then, and in the survey, the option stands that keeps all."""
    form, names, attr, expected = MEMBERS[kind]
    files = {}
    for r in (1, 2, 10):
        for y in (2001, 2002):
            for v in names:
                files[v, r, y] = member(r, y, v, attr)
                files[v, r, y].name = form.format(v=v, r=r, y=y)
    F.write_all(files.values(), tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=0)
    (found,) = [f for f in doc["findings"] if f["kind"] == "overlap"]
    words = shlex.split(found["option"])
    assert words == ["--new-dim", expected]
    assert f"; to keep all of them: {found['option']} " in " ".join(tool.nc2zarr("--survey", tmp_path / "in").out.split())
    r = stores.convert(tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 1 and f"--new-dim '{expected}' keeps all" in r.err, str(r)
    _, got = convert(tmp_path / "in", "--overwrite", *words)
    with got:
        assert got.member.values.tolist() == [1, 2, 10]
        for v in names:
            assert got[v].dims == ("member", "time", "lat")
            want = [np.concatenate([files[v, r, y].vars[v].data for y in (2001, 2002)]) for r in (1, 2, 10)]
            np.testing.assert_array_equal(got[v].values, want)


def test_levels_in_files_of_their_own(tmp_path):
    files = [member(level, year) for level in (500, 850) for year in (2001, 2002)]
    for f, level, year in zip(files, (500, 500, 850, 850), (2001, 2002) * 2):
        f.name = f"hgt_{level}_{year}.nc"
        f.vars["level"] = Var((), np.array(level, "f4"), {"units": "hPa"})
    F.write_all(files, tmp_path / "in")
    asked, got = convert(tmp_path / "in")
    with got:
        assert asked == ["--new-dim", "level=@level"] and got.level.values.tolist() == [500, 850]
        np.testing.assert_array_equal(got.tas.values, [np.concatenate([f.vars["tas"].data for f in files[i : i + 2]]) for i in (0, 2)])


def test_runs_and_lead_times(tmp_path):
    """Two scalars give each file its place, and what differs with both of them lies along both."""
    files, data = [], rng(9).normal(size=(2, 3, 4))
    for run in range(2):
        for step in range(3):
            scalars = {"time": (6.0 * run, "forecast_reference_time"), "step": (3.0 * step, "forecast_period"), "valid_time": (6.0 * run + 3 * step, "time")}
            vars = {k: Var((), np.array(x), {"units": "hours" if k == "step" else "hours since 2001-02-03", "standard_name": s}) for k, (x, s) in scalars.items()}
            files.append(File(f"gfs.{run}/f{3 * step:03d}.nc", {"lat": kinds.grid()["lat"], **vars, "t2m": Var(("lat",), data[run, step])}, unlimited=()))
    F.write_all(files, tmp_path / "in")
    asked, got = convert(tmp_path / "in")
    with got:
        assert asked == ["--new-dim", "time=@time", "--new-dim", "step=@step"]
        assert got.time.values.tolist() == [0, 6] and got.step.values.tolist() == [0, 3, 6]
        assert got.valid_time.values.tolist() == [[0, 3, 6], [6, 9, 12]]
        np.testing.assert_array_equal(got.t2m.values, data)


def test_runs_whose_steps_overlap(tmp_path):
    """Not every run has every step: nothing but one of the two files would do."""
    files = [File(f"run{r}_{s}.nc", {"time": hours(1, 6 * r + 3 * s), "v": Var(("time",), np.array([10.0 * r + s]))}) for r in range(2) for s in range(3)]
    F.write_all(files, tmp_path / "in")
    r = stores.convert(tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 1 and "--overlap first or last" in r.err and "--new-dim" not in r.err, str(r)
    _, got = convert(tmp_path / "in", "--overwrite", "--overlap", "last")
    with got:
        assert got.v.values.tolist() == [0, 1, 10, 11, 12]


# ---- what stops a run names what decides ---------------------------------------------------------------


def test_steps_that_differ(tmp_path):
    files = [File(f"{i}.nc", {"time": hours(3, 2 * i), "v": Var(("time",), np.arange(3.0) + 10 * i)}) for i in range(3)]
    F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    r = stores.convert(tmp_path / "in", out)
    assert r.status == 1 and "overlapping steps differ" in r.err and "--overlap first" in r.err, str(r)
    assert not (out / "zarr.json").exists()
    stores.convert("--overlap", "last", "--overwrite", tmp_path / "in", out).ok()


def runs_that_share_a_step(folder, bounds=0.0, start=0.0, scale=1):
    """Two files of three steps, the last of the one the first of the other, which alone has what is asked for."""
    files = []
    for i in range(2):
        unit = "hours" if i == 0 or scale == 1 else "days"
        per = 1 if unit == "hours" else scale
        steps = np.arange(3.0) + 2 * i
        edges = np.stack([steps - 1, steps], 1) + np.array([[bounds * i, 0], [0, 0], [0, 0]])
        time = Var(("time",), steps / per, {"units": f"{unit} since 2001-02-03", "bounds": "time_bnds"})
        vars = {"time": time, "time_bnds": Var(("time", "nv"), edges / per), "dstart": Var((), np.array(start * i)), "v": Var(("time",), steps)}
        files.append(File(f"{i}.nc", vars))
    F.write_all(files, folder)


@pytest.mark.parametrize("name, asked", [("time_bnds", {"bounds": 0.25, "scale": 24}), ("dstart", {"start": 7.0})])
def test_what_the_join_knows_differs_at_a_step(name, asked, tmp_path):
    """Values that the survey has are not read again with the data, and are compared all the same."""
    runs_that_share_a_step(tmp_path / "in", **asked)
    promote = ["--promote", "dstart"]
    status, doc = stores.survey(*promote, tmp_path / "in")
    (found,) = [f for f in doc["findings"] if f["weight"] == "decision"]
    assert status == 4 and found["kind"] == "overlap" and found["variable"] == name and found["option"] == "--overlap first", doc["findings"]
    assert stores.convert(*promote, tmp_path / "in", tmp_path / "out.zarr").status == 4
    assert not (tmp_path / "out.zarr").exists()
    for which, dstart, edge in (("first", 0, 1), ("last", asked.get("start", 0), 1 + asked.get("bounds", 0))):
        _, got = convert(tmp_path / "in", *promote, "--overwrite", "--overlap", which)
        with got:
            assert got.dstart.values[2] == dstart and got.time_bnds.values[2, 0] == pytest.approx(edge), (which, got.dstart.values, got.time_bnds.values)


@pytest.mark.parametrize("scale", [1, 24])
def test_one_step_in_units_that_differ(scale, tmp_path):
    """Bounds of the same instants, counted in hours and in days, are the same."""
    runs_that_share_a_step(tmp_path / "in", scale=scale)
    _, got = convert(tmp_path / "in")
    with got:
        assert got.v.values.tolist() == [0, 1, 2, 3, 4] and got.sizes["time"] == 5


def test_large_fields_that_differ(tmp_path):
    """Larger than what a survey reads."""
    ground = [rng(i).normal(size=(400, 500)) for i in range(3)]
    files = [File(f"{i}.nc", {"time": hours(1, i), "z": Var(("y", "x"), g), "v": Var(("time",), np.ones(1))}, unlimited=()) for i, g in enumerate(ground)]
    F.write_all(files, tmp_path / "in")
    r = stores.convert(tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 1 and "variable z: " in r.err and "--promote" in r.err and "--static VAR:first" in r.err, str(r)
    _, got = convert(tmp_path / "in", "--promote", "z", "--overwrite")
    with got:
        np.testing.assert_array_equal(got.z.values, np.stack(ground))


@pytest.mark.parametrize("steps", [1, 2])
def test_strings_that_differ(steps, tmp_path):
    """They are repeated where a file is one step; elsewhere --promote would not help, and is not named."""
    files = [File(f"{i}.nc", {"time": hours(steps, steps * i), "expver": Var((), np.array(f"000{i}", object)), "v": Var(("time",), np.ones(steps))}) for i in (1, 5)]
    F.write_all(files, tmp_path / "in")
    r = stores.convert(tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 1 and "variable expver: " in r.err and ("--promote" in r.err) == (steps == 1) and "--static VAR:first" in r.err, str(r)
    _, got = convert(tmp_path / "in", "--overwrite", *(["--promote", "expver"] if steps == 1 else ["--static", "first"]))
    with got:
        assert got.expver.values.tolist() == (["0001", "0005"] if steps == 1 else "0001")


def test_folder_of_other_names(tmp_path):
    """wrfout_d01_2005-08-28_12:00:00 has no ending: the pattern that the message shows finds it."""
    files = [kinds.wrf(h) for h in (0, 3, 6)]
    F.write_all(files, tmp_path / "in")
    r = tool.nc2zarr("--survey", tmp_path / "in")
    assert r.status == 1 and f"'{tmp_path}/in/*'" in r.err, str(r)
    stores.convert(f"{tmp_path}/in/*", tmp_path / "out.zarr").ok()
    with xr.open_zarr(tmp_path / "out.zarr", decode_times=False) as got:
        np.testing.assert_array_equal(got.T2.values, np.concatenate([f.vars["T2"].data for f in files]))


# ---- what is left out ----------------------------------------------------------------------------------


def test_exclude(tmp_path):
    files = F.clean(3)
    F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    for how, left in ((["--exclude", "pr,note"], {"pr", "note"}), (["--exclude", "t*_bnds", "--exclude", "orog"], {"time_bnds", "orog"})):
        stores.convert("--overwrite", *how, "--verify", "full", tmp_path / "in", out).ok()
        stores.same(out, {k: v for k, v in F.joined(files).items() if k not in left})
        tool.nc2zarr("-q", "--check", *how, tmp_path / "in", out, "--certificate", tmp_path / "c.json").ok()
        assert "only some variables were chosen" in (tmp_path / "c.json").read_text()
        (tmp_path / "c.json").unlink()


@pytest.mark.parametrize("what", ["nosuch", "pr,nosuch", "nosuch,pr"])
def test_exclude_what_no_file_has(what, tmp_path):
    F.write_all(F.clean(3), tmp_path / "in")
    before = stores.listing(tmp_path)
    for how in ([tmp_path / "in", tmp_path / "out.zarr"], ["--survey", tmp_path / "in"]):
        r = tool.nc2zarr("--exclude", what, *how)
        assert r.status == 2 and "--exclude nosuch: no file has such a variable" in r.err, str(r)
    assert stores.listing(tmp_path) == before
