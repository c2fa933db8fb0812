"""Several inputs: which files are meant, what they hold, and where they disagree."""

import json
import os

import jsonschema
import netCDF4
import numpy as np
import pytest
import xarray

from support import paths, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "nc2zarr.json").read_text())
NDAYS = 12


def day(path, i, *, time=None, units="days since 2000-01-01", calendar="standard", kelvin="K", dtype="f4", fill=None,
        dims=("time", "lat"), lat=(10.0, 20.0, 30.0), static=7.0, field=True, standard_name="air_temperature", scale=None):
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", None)
        ds.createDimension("lat", len(lat))
        ds.history = f"file {i}"
        t = ds.createVariable("time", "f8", ("time",))
        t.units, t.calendar = units, calendar
        t[:] = [i if time is None else time]
        ds.createVariable("lat", "f8", ("lat",))[:] = lat
        if static is not None:
            ds.createVariable("oro", "f4", ("lat",))[:] = static
        if field:
            v = ds.createVariable("tas", dtype, dims, fill_value=fill)
            v.set_auto_maskandscale(False)
            v.units, v.standard_name = kelvin, standard_name
            if scale is not None:
                v.scale_factor = scale
            values = np.arange(len(lat))[None] + 10 * i
            v[:] = values.transpose([("time", "lat").index(d) for d in dims])


@pytest.fixture
def archive(tmp_path):
    folder = tmp_path / "archive"
    folder.mkdir()
    for i in range(NDAYS):
        day(folder / f"day{i:02d}.nc", i)
    return folder


def survey(*args, status=0, **kwargs):
    done = tool.nc2zarr("--survey", "--json", *args, **kwargs)
    assert done.status == status, str(done)
    document = json.loads(done.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["outcome"] == ("undecided" if status else "surveyed")
    return document


def findings(document, weight=None):
    return [(f["kind"], f["variable"], os.path.basename(f["file"] or "")) for f in document["findings"]
            if f["kind"] != "attribute" and (weight is None or f["weight"] == weight)]


# ---- inputs ---------------------------------------------------------------------------------------

def test_inputs_mean_the_same_files(archive, tmp_path):
    deep = archive / "a" / "b"
    deep.mkdir(parents=True)
    (archive / "day03.nc").rename(deep / "day03.nc")
    (archive / "readme.txt").write_text("no data")
    names = sorted(str(p) for p in archive.rglob("*.nc"))
    (tmp_path / "list").write_text("\n".join(names) + "\n")
    (tmp_path / "nul").write_bytes(b"\0".join(n.encode() for n in names))
    for given in ([archive], [f"{archive}/**/*.nc"], [f"@{tmp_path}/list"], ["-0", f"@{tmp_path}/nul"], names,
                  [f"{archive}/a", f"{archive}/day*.nc"], [f"{archive}/a/b/day03.nc", archive]):
        assert survey(*given)["files"] == NDAYS, given


def test_a_file_named_twice_counts_once_and_says_so(archive):
    document = survey(archive, archive / "day05.nc")
    assert document["files"] == NDAYS
    assert findings(document) == [("repeated", None, "day05.nc")]


@pytest.mark.every
@pytest.mark.parametrize("given", ["nosuch/*.nc", "*.xyz", "@nosuch", "nosuch.nc", "empty"])
def test_inputs_that_are_not_there(tmp_path, given):
    (tmp_path / "empty").mkdir()
    done = tool.nc2zarr("--survey", given, cwd=tmp_path)
    assert done.status == 1 and given.lstrip("@") in done.err, str(done)


# ---- one dataset ----------------------------------------------------------------------------------

def test_a_folder_becomes_one_store(archive, tmp_path):
    document = survey(archive)
    assert document["how"] == "joined along time"
    assert [(a["name"], a["length"], a["step"], a["missing"]) for a in document["axes"]] == [("time", NDAYS, "1 day", 0)]
    tool.nc2zarr(archive, tmp_path / "out.zarr").ok()
    with xarray.open_zarr(tmp_path / "out.zarr") as made, \
            xarray.open_mfdataset(f"{archive}/*.nc", combine="by_coords", data_vars="minimal", coords="minimal",
                                  join="exact") as want:
        xarray.testing.assert_equal(made.load(), want.load())


def test_files_of_different_variables_are_merged(archive, tmp_path):
    for i in range(NDAYS):
        path = archive / f"day{i:02d}.nc"
        with xarray.open_dataset(path, decode_times=False) as ds:
            ds[["tas"]].rename(tas="pr").load().to_netcdf(archive / f"pr{i:02d}.nc", unlimited_dims=["time"])
    document = survey(archive)
    assert findings(document, "decision") == []
    tool.nc2zarr(archive, tmp_path / "out.zarr").ok()
    with xarray.open_zarr(tmp_path / "out.zarr") as made:
        assert dict(made.sizes) == {"time": NDAYS, "lat": 3}
        np.testing.assert_array_equal(made.pr, made.tas)


# ---- disagreements --------------------------------------------------------------------------------

DECISIONS = {
    "units": (dict(kelvin="degC"), ("units", "tas"), None),
    "calendar": (dict(calendar="noleap"), ("calendar", "time"), None),
    "packing": (dict(scale=0.5), ("packing", "tas"), "--packing unpack"),
    "type": (dict(dtype="i8"), ("type", "tas"), "--dtype tas:float64"),
    "missing": (dict(field=False), ("missing", "tas"), "--missing fill"),
    "missing static": (dict(static=None), ("missing", "oro"), "--missing fill"),
    "static": (dict(static=8.0), ("static", "oro"), "--static oro:first"),
    "coordinate": (dict(lat=(10.0, 20.0, 30.001)), ("coordinate", "lat"), "--tolerance 0.0"),
    "meaning": (dict(standard_name="sea_temperature"), ("meaning", "tas"), "--attrs first"),
}


@pytest.mark.parametrize("place", [0, 7, NDAYS - 1])
@pytest.mark.parametrize("trap", DECISIONS)
def test_each_trap_is_found_and_nothing_is_written(archive, tmp_path, trap, place):
    keywords, (kind, variable), option = DECISIONS[trap]
    day(archive / f"day{place:02d}.nc", place, **keywords)
    # If the first file is the odd one, the difference begins at the second.
    begins = 1 if place == 0 and not trap.startswith("missing") else place
    document = survey(archive, status=4)
    assert findings(document, "decision") == [(kind, variable, f"day{begins:02d}.nc")]
    found = [f for f in document["findings"] if f["weight"] == "decision"][0]
    assert (found["option"] or "").startswith(option or "") and bool(found["option"]) == bool(option)
    done = tool.nc2zarr(archive, tmp_path / "out.zarr")
    assert done.status == 4 and f"day{begins:02d}.nc" in done.err and variable in done.err, str(done)
    assert not option or option in done.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["archive"]


@pytest.mark.parametrize("keywords, kind", [
    (dict(units="days since 1999-12-31", time=8.0), "time-units"),
    (dict(dtype="f8"), "type"),
    (dict(dims=("lat", "time")), "dimension-order"),
    (dict(fill=1e20), "fill-value"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_what_is_converted_as_it_is(archive, tmp_path, keywords, kind):
    day(archive / "day07.nc", 7, **keywords)
    document = survey(archive)
    assert [f for f in findings(document) if f[0] == kind] != []
    tool.nc2zarr(archive, tmp_path / "out.zarr").ok()
    with xarray.open_zarr(tmp_path / "out.zarr") as made:
        np.testing.assert_array_equal(made.tas, np.arange(3)[None] + 10 * np.arange(NDAYS)[:, None])
        np.testing.assert_array_equal(made.time, np.datetime64("2000-01-01", "ns") + np.arange(NDAYS) * np.timedelta64(1, "D"))


def test_gaps(archive, tmp_path):
    (archive / "day04.nc").unlink()
    (archive / "day05.nc").unlink()
    document = survey(archive)
    assert findings(document) == [("gap", "time", "day03.nc")]
    assert document["axes"][0]["missing"] == 2
    survey("--gaps", "error", archive, status=4)
    tool.nc2zarr("--gaps", "fill", archive, tmp_path / "out.zarr").ok()
    with xarray.open_zarr(tmp_path / "out.zarr") as made:
        assert made.sizes["time"] == NDAYS
        np.testing.assert_array_equal(made.time.diff("time"), np.timedelta64(1, "D"))
        assert np.isnan(made.tas[4:6]).values.all() and not np.isnan(made.tas[6:]).values.any()


# ---- files that cannot be read --------------------------------------------------------------------

@pytest.mark.parametrize("make", [
    lambda p: p.write_bytes(p.read_bytes()[:2000]),
    lambda p: p.write_bytes(b""),
    lambda p: p.write_bytes(b"no data at all"),
    lambda p: (p.unlink(), os.mkfifo(p)),
    lambda p: (p.unlink(), p.symlink_to(p)),
], ids=["truncated", "empty", "other", "pipe", "loop"])
def test_a_bad_file_costs_one_file(archive, tmp_path, make):
    make(archive / "day06.nc")
    names = [archive / f"day{i:02d}.nc" for i in range(NDAYS)]
    (tmp_path / "list").write_text("".join(f"{n}\n" for n in names))
    document = survey(f"@{tmp_path}/list", status=4)
    assert findings(document) == [("unreadable", None, "day06.nc")] or \
        findings(document, "decision") == [("unreadable", None, "day06.nc")]
    assert document["files"] == NDAYS and document["left_out"] == 1
    document = survey("--bad-file", "skip", f"@{tmp_path}/list")
    assert document["axes"][0]["length"] == NDAYS - 1 and document["axes"][0]["missing"] == 1


@pytest.mark.parametrize("gone, told", [((), ""), ((3,), ", 1 missing"), ((3, 5), ", 2 missing")])
def test_missing_steps_are_counted_in_words(archive, gone, told):
    for i in gone:
        (archive / f"day{i:02d}.nc").unlink()
    said = tool.nc2zarr("--survey", archive).out
    assert f"  time: {NDAYS - len(gone)} steps of 1 day, 2000-01-01T00:00:00 to 2000-01-12T00:00:00{told}\n" in said, said


def test_a_link_to_nothing_is_a_bad_file(archive):
    (archive / "gone.nc").symlink_to("nowhere")
    assert findings(survey(archive, status=4), "decision") == [("unreadable", None, "gone.nc")]


# ---- decisions ------------------------------------------------------------------------------------

def test_packings_are_unpacked(archive, tmp_path):
    day(archive / "day07.nc", 7, dtype="i2", scale=0.5, fill=-1)
    for i in range(NDAYS):
        day(archive / f"day{i:02d}.nc", i, dtype="i2", scale=0.5 if i == 7 else 0.25, fill=-1)
    tool.nc2zarr("--packing", "unpack", archive, tmp_path / "out.zarr").ok()
    with xarray.open_zarr(tmp_path / "out.zarr") as made:
        scale = np.where(np.arange(NDAYS) == 7, 0.5, 0.25)[:, None]
        np.testing.assert_array_equal(made.tas, (np.arange(3)[None] + 10 * np.arange(NDAYS)[:, None]) * scale)
        assert made.tas.dtype == "f8" and "scale_factor" not in made.tas.encoding


@pytest.mark.parametrize("option, want", [("first", 3.0), ("last", 99.0)])
def test_overlapping_steps(archive, tmp_path, option, want):
    with netCDF4.Dataset(archive / "day99.nc", "w") as ds, netCDF4.Dataset(archive / "day03.nc") as other:
        ds.createDimension("time", None)
        ds.createDimension("lat", 3)
        for name, v in other.variables.items():
            made = ds.createVariable(name, v.dtype, v.dimensions)
            made.setncatts(v.__dict__)
            made[:] = v[:]
        ds["tas"][0, 0] = 99.0
    done = tool.nc2zarr(archive, tmp_path / "refused.zarr")
    assert done.status == 1 and "day99.nc" in done.err and "overlapping steps differ" in done.err, str(done)
    tool.nc2zarr("--overlap", option, archive, tmp_path / "out.zarr").ok()
    with xarray.open_zarr(tmp_path / "out.zarr") as made:
        assert made.tas[3].values.tolist() == [30.0 if option == "first" else 99.0, 31.0, 32.0]


def test_variables_get_the_joined_dimension(archive, tmp_path):
    for i in range(NDAYS):
        day(archive / f"day{i:02d}.nc", i, static=float(i))
    tool.nc2zarr("--promote", "oro", archive, tmp_path / "out.zarr").ok()
    with xarray.open_zarr(tmp_path / "out.zarr") as made:
        np.testing.assert_array_equal(made.oro, np.repeat(np.arange(NDAYS)[:, None], 3, axis=1))


def test_a_dimension_comes_from_names_and_attributes(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    for i in range(6):
        with netCDF4.Dataset(folder / f"sst_200001{i + 1:02d}_r{i}i1p1.nc", "w") as ds:
            ds.createDimension("lat", 3)
            ds.createVariable("sst", "f4", ("lat",))[:] = np.arange(3) + 10 * i
            ds.realization_index, ds.model = i, f"m{i % 2}"
    values = np.arange(3)[None] + 10 * np.arange(6)[:, None]
    assert survey(folder, status=4)["findings"]
    for option, name, want in ("time=%Y%m%d", "time", np.datetime64("2000-01-01", "ns") + np.arange(6) * np.timedelta64(1, "D")), \
            ("member=@realization_index", "member", np.arange(6)), ("run=r*i1p1", "run", np.arange(6)):
        out = tmp_path / f"{name}.zarr"
        tool.nc2zarr("--new-dim", option, "--file-attr", "model", folder, out).ok()
        with xarray.open_zarr(out) as made:
            assert made.sst.dims == (name, "lat")
            np.testing.assert_array_equal(made[name], want)
            np.testing.assert_array_equal(made.sst, values)
            assert list(made.model.values) == ["m0", "m1"] * 3


def test_names_that_changed(tmp_path):
    folder = tmp_path / "renamed"
    folder.mkdir()
    for i in range(6):
        time, name = "time" if i < 3 else "valid_time", "tas" if i < 4 else "t2m"
        with netCDF4.Dataset(folder / f"day{i:02d}.nc", "w") as ds:
            ds.createDimension(time, None)
            t = ds.createVariable(time, "f8", (time,))
            t.units, t.standard_name = "days since 2000-01-01", "time"
            t[:] = [i]
            v = ds.createVariable(name, "f4", (time,))
            v.standard_name, v.coordinates = "air_temperature", time
            v[:] = [i]
    options = []
    for variable, option in ("valid_time", "--rename valid_time=time"), ("t2m", "--rename t2m=tas"):
        found = [f for f in survey(*options, folder, status=4)["findings"] if f["kind"] == "name"]
        assert [(f["variable"], f["option"]) for f in found] == [(variable, option)]
        options += option.split()
    tool.nc2zarr(*options, "--rename", "tas=temperature", folder, tmp_path / "out.zarr").ok()
    with xarray.open_zarr(tmp_path / "out.zarr") as made:
        assert list(made.data_vars) == ["temperature"]
        np.testing.assert_array_equal(made.temperature, np.arange(6))
