"""Archives that need a decision: the option that the survey names is typed as it stands, and what it makes is right."""

import datetime
import shlex
import warnings

import numpy as np
import pytest
import xarray as xr

from support import tool

from . import files as F
from . import kinds
from . import stores
from .files import File, Var


def grid_of(seed):
    return kinds.rng(seed).normal(290, 3, (4, 6)).astype("f4")


# ---- one step a file, told by a scalar, by a dimension without a coordinate, or by the name -----------


def scalar(name, units=("hours since 2001-02-03",), steps=5, dtype="f8"):
    """Ocean files without a time dimension: NAME is a number in each, in units that may differ."""
    files = []
    for i in range(steps):
        own = units[i % len(units)]
        at = 6 * i / (24 if own.startswith("days") else 1)
        files.append(
            File(
                f"ocean_{i:03d}.nc",
                {
                    **kinds.grid(),
                    name: Var((), np.array(at, dtype), {"units": own, "standard_name": "time", "long_name": "when"}),
                    "sst": Var(("lat", "lon"), grid_of(i), {"units": "K", "coordinates": name}, np.float32(-1)),
                    "ice": Var(("lat", "lon"), (grid_of(50 + i) > 290).astype("i1"), {"units": "1"}),
                    "crs": Var((), np.array(0, "i4"), {"grid_mapping_name": "latitude_longitude"}),
                },
                {"title": "sea", "history": f"run {i}"},
                unlimited=(),
            )
        )
    return files


def dated(name, dims=("lat", "lon"), step=1, unlimited=(), extra=None, steps=5):
    files = []
    for i in range(steps):
        date = datetime.datetime(2001, 2, 27) + datetime.timedelta(hours=24 * step * i)
        data = grid_of(100 + i).reshape(tuple(1 if d not in ("lat", "lon") else n for d, n in zip(dims, (1,) * (len(dims) - 2) + (4, 6))))
        vars = {**kinds.grid(), "sst": Var(dims, data, {"units": "K"}), **(extra(i) if extra else {})}
        files.append(File(date.strftime(name), vars, unlimited=unlimited))
    return files


def levels():
    return [File(f"part{i}.nc", {**kinds.grid(), "depth": Var((), np.array(d), {"units": "m", "positive": "down"}), "so": Var(("lat", "lon"), grid_of(i))}, unlimited=()) for i, d in enumerate((0.5, 1.5, 10.0))]


def numbered(names):
    return [File(n, {**kinds.grid(), "sst": Var(("lat", "lon"), grid_of(i))}, unlimited=()) for i, n in enumerate(names)]


# ---- ERA5: final and preliminary data, the latter with one dimension more -----------------------------


def era5(month, expver):
    f = kinds.era5(month, strings=False)
    v = f.vars["t"]
    if not expver:
        return f
    f.vars["expver"] = Var(("expver",), np.array(expver, "i4"))
    both = np.stack([v.data + 10 * k for k in range(len(expver))], 1)
    if len(expver) > 1:
        both[:10, 1] = both[10:, 0] = np.nan
    f.vars["t"] = Var((v.dims[0], "expver", *v.dims[1:]), both, v.attrs, v.fill)
    return f


ONE = {
    "GOES": ([kinds.goes(m) for m in range(0, 60, 10)], "--new-dim t=@t", "t"),
    "scalar time": (scalar("time"), "--new-dim time=@time", "time"),
    "scalar, units drift": (scalar("time", ("hours since 2001-02-03", "days since 2001-02-03")), "--new-dim time=@time", "time"),
    "scalar, single precision": (scalar("t", dtype="f4"), "--new-dim t=@t", "t"),
    "depths": (levels(), "--new-dim depth=@depth", "depth"),
    "numbers": (numbered([f"run{i}_sst.nc" for i in (1, 2, 10)]), "--new-dim 'file=run*_sst.nc'", "file"),
    "folders": (numbered([f"r{i}/sst.nc" for i in (1, 2, 10)]), "--new-dim 'file=/r*/sst.nc'", "file"),
    "days in names": (dated("sst.day.%Y%m%d.v2.nc"), "--new-dim time=%Y%m%d", "time"),
    "two dates in names": (dated("S%Y%m%d_made20240101.nc"), "--new-dim time=S%Y%m%d", "time"),
    "dashes": (dated("a-%Y-%m-%d.nc"), "--new-dim time=%Y-%m-%d", "time"),
    "hours": (dated("a_%Y%m%d_%H.nc", step=0.25), "--new-dim time=%Y%m%d_%H", "time"),
    "days of the year": (dated("A%Y%j.L3m.nc"), "--new-dim time=%Y%j", "time"),
    "months": (dated("a_%Y%m.nc", step=31), "--new-dim time=%Y%m", "time"),
    "time without a coordinate": (dated("a_%Y%m%d.nc", ("time", "lat", "lon")), "--new-dim time=%Y%m%d", "time"),
    "unlimited time without a coordinate": (dated("a_%Y%m%d.nc", ("time", "lat", "lon"), unlimited=("time",)), "--new-dim time=%Y%m%d", "time"),
    "nothing but an order": (dated("a_%d%Y.nc", ("time", "lat", "lon"), unlimited=("time",)), "--along time", "time"),
}


def proposed(folder):
    """The one decision of FOLDER's files, and its option as words of a command line."""
    _, doc = stores.survey(folder, status=4)
    (finding,) = [f for f in doc["findings"] if f["weight"] == "decision"]
    shown = tool.nc2zarr("--survey", folder)
    assert shown.status == 4 and f"; {finding['option']} " in " ".join(shown.out.split()), str(shown)
    return finding["option"], shlex.split(finding["option"])


def convert(options, folder, out):
    stores.convert("--verify", "full", *options, folder, out).ok()
    return xr.open_zarr(out, chunks=None, decode_times=False, mask_and_scale=False)


@pytest.mark.parametrize("name", ONE)
def test_one_step_a_file(name, tmp_path):
    files, expected, dim = ONE[name]
    paths = F.write_all(files, tmp_path / "in")
    option, words = proposed(tmp_path / "in")
    assert option == expected
    paths = sorted(paths) if "--along" in expected else paths
    parts = [xr.open_dataset(p, decode_times=False, mask_and_scale=False) for p in paths]
    with convert(words, tmp_path / "in", tmp_path / "out.zarr") as got:
        # A scalar: xarray with the same dimension told by hand.  Otherwise files in order.
        want = xr.concat(parts, dim, data_vars="all", coords="minimal", compat="override", join="override", combine_attrs="drop_conflicts")
        for v in got.data_vars:
            if dim not in got[v].dims:
                assert got[v].variable.equals(parts[0][v].variable), v
                continue
            assert got[v].dims == want[v].dims and got[v].dtype == want[v].dtype, v
            np.testing.assert_array_equal(got[v].values, want[v].values, err_msg=v)
        assert set(got.variables) - {dim} == set(want.variables) - {dim}
        if "@" in expected:
            at = [F.instants(Var((), np.asarray(p[dim]), dict(p[dim].attrs))) for p in parts] if "since" in got[dim].attrs["units"] else [p[dim].item() for p in parts]
            now = F.instants(Var((), got[dim].values, dict(got[dim].attrs))) if "since" in got[dim].attrs["units"] else got[dim].values
            np.testing.assert_array_equal(now, at)
        elif "%Y" in expected:
            now = F.instants(Var((), got[dim].values, dict(got[dim].attrs)))
            first = datetime.datetime(2001, 2, 1 if name == "months" else 27)
            assert now[0] == (first - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
            assert (np.diff(now) > 0).all()
        elif dim == "file":
            assert list(got[dim].values) == [1, 2, 10]


def test_a_scalar_under_another_name(tmp_path):
    """`time=@t`: the scalar t becomes the coordinate time, and attributes that name it follow."""
    files = scalar("t")
    F.write_all(files, tmp_path / "in")
    with convert(["--new-dim", "time=@t"], tmp_path / "in", tmp_path / "out.zarr") as got:
        assert "t" not in got.variables and got["sst"].dims == ("time", "lat", "lon")
        np.testing.assert_array_equal(got["time"].values, [f.vars["t"].data for f in files])
        assert got["time"].attrs["units"] == "hours since 2001-02-03"
    assert stores.attributes(tmp_path / "out.zarr", "sst")["coordinates"] == "time"


@pytest.mark.parametrize("order", ["coordinate", "name"])
def test_scalars_in_another_order_than_names(order, tmp_path):
    files = scalar("time")
    for f, i in zip(files, (3, 0, 4, 1, 2)):
        f.vars["time"].data = np.array(6.0 * i)
    F.write_all(files, tmp_path / "in")
    with convert(["--new-dim", "time=@time", "--order", order], tmp_path / "in", tmp_path / "out.zarr") as got:
        files = sorted(files, key=lambda f: f.vars["time"].data) if order == "coordinate" else files
        np.testing.assert_array_equal(got["time"].values, [f.vars["time"].data for f in files])
        np.testing.assert_array_equal(got["sst"].values, [f.vars["sst"].data for f in files])


def test_bounds_of_a_scalar_follow_its_units(tmp_path):
    files = [kinds.goes(m) for m in range(0, 60, 10)]
    for f in files[3:]:
        f.vars["t"].attrs["units"] = "hours since 2000-01-01 12:00:00"
        f.vars["t"].data = f.vars["t"].data / 3600
        f.vars["time_bounds"].data = f.vars["time_bounds"].data / 3600
    want = [F.instants(f.vars["time_bounds"], f.vars["t"]) for f in files]
    F.write_all(files, tmp_path / "in")
    with convert(["--new-dim", "t=@t"], tmp_path / "in", tmp_path / "out.zarr") as got:
        now = F.instants(Var((), got["time_bounds"].values, dict(got["t"].attrs)))
        np.testing.assert_array_equal(now, want)


def test_variables_apart_with_the_same_scalar(tmp_path):
    """sst_0.nc, sst_1.nc and ice_0.nc, ice_1.nc: joined along time and merged."""
    files = []
    for f in scalar("time", steps=4):
        for v in ("sst", "ice"):
            files.append(File(f"{v}_{f.name}", {k: w for k, w in f.vars.items() if k not in ("sst", "ice") or k == v}, unlimited=()))
    F.write_all(files, tmp_path / "in")
    option, words = proposed(tmp_path / "in")
    assert option == "--new-dim time=@time"
    with convert(words, tmp_path / "in", tmp_path / "out.zarr") as got:
        for v in ("sst", "ice"):
            np.testing.assert_array_equal(got[v].values, [f.vars[v].data for f in files if v in f.vars])


def spoiled(how):
    files = scalar("time")
    if how == "missing":
        del files[3].vars["time"]
    elif how == "no number":
        files[3].vars["time"] = Var(("n",), np.array([1.0, 2.0]), files[3].vars["time"].attrs)
    elif how == "same":
        files[3].vars["time"].data = files[2].vars["time"].data
    return files


@pytest.mark.parametrize("how, word", [("missing", "ocean_003.nc"), ("no number", "ocean_003.nc"), ("same", "ocean_003.nc")])
def test_a_scalar_that_is_no_step(how, word, tmp_path):
    F.write_all(spoiled(how), tmp_path / "in")
    r = stores.convert("--new-dim", "time=@time", tmp_path / "in", tmp_path / "out.zarr")
    assert r.status in (1, 2) and word in r.err, str(r)
    assert not (tmp_path / "out.zarr" / "zarr.json").exists()


def test_a_name_that_files_use(tmp_path):
    """A new dimension is not laid over a variable."""
    F.write_all(scalar("time"), tmp_path / "in")
    r = stores.convert("--new-dim", "time=ocean_*.nc", tmp_path / "in", tmp_path / "out.zarr")
    assert r.status in (1, 2) and "time" in r.err and not (tmp_path / "out.zarr").exists(), str(r)


# ---- dimensions that some files lack --------------------------------------------------------------------


@pytest.mark.parametrize(
    "versions",
    [(None, (1, 5), (1, 5)), (None, None, (1, 5)), ((1, 5), None, (1, 5)), ((1, 5), (1, 5), None), (None, None, (5,)), ((5,), None, None)],
    ids=str,
)
@pytest.mark.parametrize("chunks", ["source", "valid_time=7,latitude=3"])
def test_a_dimension_that_some_files_lack(versions, chunks, tmp_path):
    """As xarray joins them: what lacks the dimension is the same all along it."""
    files = [era5(m + 1, v) for m, v in enumerate(versions)]
    paths = F.write_all(files, tmp_path / "in")
    option, words = proposed(tmp_path / "in")
    assert option == "--promote t"
    with convert([*words, "--chunks", chunks], tmp_path / "in", tmp_path / "out.zarr") as got, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        how = {"combine": "nested", "concat_dim": "valid_time", "data_vars": "minimal", "coords": "minimal", "join": "exact", "compat": "override", "combine_attrs": "override"}
        with xr.open_mfdataset([str(p) for p in paths], decode_times=False, mask_and_scale=False, **how) as want:
            order = got["t"].dims
            assert order == ("valid_time", "expver", "pressure_level", "latitude", "longitude")
            np.testing.assert_array_equal(got["t"].values, want["t"].transpose(*order).values)
            np.testing.assert_array_equal(got["expver"].values, next(v for v in versions if v))
    r = tool.nc2zarr("--check", *words, tmp_path / "in", tmp_path / "out.zarr", "--certificate", tmp_path / "c.json")
    assert r.status == 0 and '"reproducible": false' in (tmp_path / "c.json").read_text().replace('":false', '": false'), str(r)


def test_a_joined_dimension_that_a_file_lacks(tmp_path):
    """No option repeats it, and none is named."""
    files = F.clean(4)
    v = files[2].vars["tas"]
    files[2].vars["tas"] = Var(v.dims[1:], v.data[0], v.attrs, v.fill)
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    found = [f for f in doc["findings"] if f["kind"] == "dimensions"]
    assert len(found) == 1 and found[0]["variable"] == "tas" and found[0]["file"].endswith(files[2].name) and not found[0]["option"]
    _, doc = stores.survey("--promote", "tas", tmp_path / "in", status=4)


@pytest.mark.parametrize("kind", ["strings", "scalar"])
def test_versions_that_early_files_lack(kind, tmp_path):
    files = [kinds.era5(m, strings=kind == "strings" and m > 2) for m in (1, 2, 3, 4)]
    if kind == "scalar":
        for f in files[2:]:
            f.vars["expver"] = Var((), np.array("0005", object))
    F.write_all(files, tmp_path / "in")
    option, words = proposed(tmp_path / "in")
    assert option == "--missing fill"
    with convert(words, tmp_path / "in", tmp_path / "out.zarr") as got:
        if kind == "scalar":
            assert got["expver"].item() == "0005"
        else:
            n = [len(f.vars["valid_time"].data) for f in files]
            assert list(got["expver"].values) == [""] * (n[0] + n[1]) + ["0005"] * (n[2] + n[3])
        np.testing.assert_array_equal(got["t"].values, np.concatenate([f.vars["t"].data for f in files]))


# ---- nothing to decide ----------------------------------------------------------------------------------


@pytest.mark.parametrize("calendar", ["noleap", "360_day"])
def test_cmip6_units_of_every_spelling(calendar, tmp_path):
    """Dates written in other ways, units that change, and bounds with them."""
    spelled = ["days since 1850-1-1", "days since 1855-01-01 00:00:00", "hours since 1860-1-1 0:0:0.0", "days since 1850-1-1 00:00", "days since 1870-01-01T00:00:00Z"]
    days = 360 if calendar == "360_day" else 365
    files = []
    for i, units in enumerate(spelled):
        f = kinds.cmip6("tas", 1850 + 5 * i, calendar)
        f.vars["time"].attrs["units"] = units
        for v in ("time", "time_bnds"):
            if i == 2:
                f.vars[v].data = f.vars[v].data * 24
            if i == 3:
                f.vars[v].data = f.vars[v].data + days * 5 * i
        files.append(f)
    F.write_all(files, tmp_path / "in")
    stores.survey(tmp_path / "in", status=0)
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    stores.same(tmp_path / "out.zarr", F.joined(files), calendar)


@pytest.mark.parametrize("counted", [True, False], ids=["XTIME", "Times alone"])
def test_wrf_as_xarray_joins_it(counted, tmp_path):
    files = [kinds.wrf(h) for h in range(0, 36, 3)]
    if not counted:
        for f in files:
            del f.vars["XTIME"]
    paths = F.write_all(files, tmp_path / "in")
    pattern = str(tmp_path / "in" / "wrfout_*")
    stores.survey(pattern, status=0)
    stores.convert("--verify", "full", pattern, tmp_path / "out.zarr").ok()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_mfdataset([str(p) for p in paths], combine="nested", concat_dim="Time", combine_attrs="drop_conflicts") as want, xr.open_zarr(tmp_path / "out.zarr") as got:
            assert set(got.variables) == {*want.variables, "Time"}
            for v in want.variables:
                assert got[v].dims == want[v].dims, v
                np.testing.assert_array_equal(got[v].values, want[v].values, err_msg=v)
            assert [t.decode() for t in got["Times"].values] == [f.name[len("wrfout_d01_") :] for f in files]


# ---- what an option costs: of each variable what holds of it ------------------------------------------


def with_parts(*parts):
    """A file a step; of PARTS, (name, steps that have it)."""
    return [
        File(
            f"d{i}.nc",
            {
                "time": Var(("time",), np.array([float(i)]), {"units": F.UNITS}),
                "always": Var(("time",), np.array([1.0])),
                **{name: Var(("time",), np.array([float(i)])) for name, has in parts if i in has},
            },
        )
        for i in range(6)
    ]


def told(tmp_path, files):
    F.write_all(files, tmp_path / "in")
    out = tool.nc2zarr("--survey", tmp_path / "in", tmp_path / "out.zarr").out
    return " ".join(out[out.index("what they cost:") :].split())


def test_variables_that_are_missing_in_other_files_have_their_own_numbers(tmp_path):
    said = told(tmp_path, with_parts(("a", range(5)), ("b", range(4, 6)), ("c", range(1, 6))))
    for words in ("a, c: missing in 1 file; 1 of 6 steps holds the fill value; ", "b: missing in 4 files; 4 of 6 steps hold the fill value; "):
        assert words in said, said
    assert "; chunks of nothing else take no space; or --exclude" in said and "leaves them out" in said, said


def test_many_such_variables_are_cut(tmp_path):
    said = told(tmp_path, with_parts(*((f"v{k}", range(k)) for k in range(1, 6))))
    assert all(f"v{k}: missing in {6 - k} file" in said for k in range(1, 5)), said
    assert "v5: missing" not in said and "others: missing in up to 5 files; up to 5 of 6 steps hold the fill value;" in said, said


def test_attributes_of_other_files_are_counted_as_the_most(tmp_path):
    files = with_parts(("a", range(6)), ("b", range(6)))
    for i, f in enumerate(files):
        f.vars["a"].attrs["standard_name"] = "x" if i < 5 else "y"
        f.vars["b"].attrs["standard_name"] = "x" if i < 2 else "y"
    assert "what up to 4 other files say is dropped" in told(tmp_path, files)


@pytest.mark.parametrize("types, words", [
    ("i2 f4", "plain numbers instead of packed ones, as readers decode them; the store grows by up to 12 B"),
    ("i2 i4", "plain numbers instead of packed ones, float64 instead of int32, as readers decode them; the store grows by up to 36 B"),
    ("i2 i2", "plain numbers instead of packed ones, float64 instead of int16, as readers decode them; the store grows by 36 B"),
    ("f4 f4", "plain numbers instead of packed ones, as readers decode them; no element gets larger"),
])  # fmt: skip
def test_unpacking_says_what_gets_larger(types, words, tmp_path):
    files = with_parts(("a", range(6)))
    for i, f in enumerate(files):
        kind = types.split()[i % 2]
        scale = np.float32 if "f4" in types else np.float64
        f.vars["a"] = Var(("time",), np.array([i], kind), {} if (types, kind) == ("i2 f4", "f4") else {"scale_factor": scale(i % 2 + 2)})
    assert words in told(tmp_path, files)


# ---- an option that was tried, and does not join the files, is not offered ------------------------------


def uneven(rows):
    """Files whose dimensions, without coordinates, have other lengths: no file is one step of another dimension."""
    return [File(f"f{i:03d}.nc", {"v": Var(("row", "x"), np.ones((n, 3 + i % 2)))}, unlimited=()) for i, n in enumerate(rows)]


@pytest.mark.parametrize("rows", [(1, 2, 1), (2, 1, 3), (4, 5, 6)], ids=str)
def test_an_option_that_does_not_join_the_files_is_not_offered(rows, tmp_path):
    F.write_all(uneven(rows), tmp_path / "in")
    out = tool.nc2zarr("--survey", tmp_path / "in", tmp_path / "out.zarr").out
    assert "no option joins these files" in out and "--new-dim" not in out, out
    said = " ".join(out.split())
    assert f"the dimension has {rows[1]} element{'s' if rows[1] > 1 else ''}, {rows[0]} in" in said, said
    _, found = stores.survey(tmp_path / "in", status=4)
    assert not [f for f in found["findings"] if (f["option"] or "").startswith("--new-dim")]
