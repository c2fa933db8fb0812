"""--stack: several variables, and levels of them, as one array with a dimension of channels."""

import json
import shutil
import signal
import subprocess
import time

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from support import tool

RNG = np.random.default_rng(7)
LEVELS = [1000, 850, 500, 250]
TIMES, LATS, LONS = 40, 30, 20


def variable(ds, name, dtype, dims, values, chunks=None, fill=None, **attrs):
    more = {"chunksizes": chunks, "zlib": True} if chunks and ds.data_model == "NETCDF4" else {}
    v = ds.createVariable(name, dtype, dims, fill_value=fill, **more)
    v.setncatts(attrs)
    v.set_auto_maskandscale(False)
    v[:] = values
    return v


def make(path, model="NETCDF4"):
    with netCDF4.Dataset(path, "w", format=model) as ds:
        for name, n in {"time": None, "level": len(LEVELS), "lat": LATS, "lon": LONS}.items():
            ds.createDimension(name, n)
        field = ("time", "lat", "lon")
        variable(ds, "time", "f8", ("time",), np.arange(TIMES), units="days since 2000-01-01")
        variable(ds, "level", "i4", ("level",), LEVELS, units="hPa")
        variable(ds, "lat", "f4", ("lat",), np.linspace(-60, 60, LATS))
        variable(ds, "lon", "f4", ("lon",), np.linspace(0, 19, LONS))
        shape = (TIMES, LATS, LONS)
        variable(ds, "tas", "f4", field, RNG.normal(280, 20, shape), (7, 11, 20), units="K", cell_methods="time: mean",
                 long_name="temperature", grid_mapping="crs", coordinates="height area")
        variable(ds, "pr", "f4", field, RNG.random(shape), (5, 30, 20), units="mm", cell_methods="time: mean",
                 grid_mapping="crs", coordinates="area")
        variable(ds, "z", "f4", ("time", "level", "lat", "lon"), RNG.normal(5e3, 9, (TIMES, 4, LATS, LONS)),
                 (6, 3, 7, 20), units="m", cell_methods="time: mean", grid_mapping="crs", coordinates="area")
        if model != "NETCDF4":
            return
        variable(ds, "u", "f4", ("level", "time", "lat", "lon"), RNG.normal(0, 9, (4, TIMES, LATS, LONS)), (2, 9, 30, 7))
        variable(ds, "big", "f8", field, RNG.random(shape))
        variable(ds, "count", "i2", field, RNG.integers(-9, 9, shape), (7, 11, 20))
        holes = RNG.normal(0, 1, shape).astype("f4")
        holes[RNG.random(shape) < 0.1] = 1e20
        variable(ds, "holes", "f4", field, holes, (7, 11, 20), fill=np.float32(1e20), missing_value=np.float32(1e20))
        other = RNG.normal(0, 1, shape).astype("f4")
        other[RNG.random(shape) < 0.1] = -999
        variable(ds, "other", "f4", field, other, fill=np.float32(-999))
        odd = RNG.normal(0, 1, shape).astype("f4")
        odd[3, 4, 5] = 1e20
        variable(ds, "odd", "f4", field, odd)
        variable(ds, "masked", "f4", field, other, missing_value=np.float32(-999))
        variable(ds, "twice", "f4", field, other, fill=np.float32(-999), missing_value=np.float32(1e20))
        variable(ds, "far", "i8", field, RNG.integers(-9, 9, shape))
        for name, scale in (("p1", 0.25), ("p2", 0.5)):
            packed = RNG.integers(-3000, 3000, shape).astype("i2")
            packed[RNG.random(shape) < 0.1] = -32767
            variable(ds, name, "i2", field, packed, (7, 11, 20), fill=np.int16(-32767), scale_factor=scale, add_offset=7.0)
        variable(ds, "p3", "i2", field, packed, fill=np.int16(-32767), scale_factor=0.5, add_offset=7.0)
        variable(ds, "orog", "f4", ("lat", "lon"), RNG.random((LATS, LONS)))
        variable(ds, "mask", "f4", ("lat", "lon"), RNG.random((LATS, LONS)))
        variable(ds, "turned", "f4", ("time", "lon", "lat"), RNG.random((TIMES, LONS, LATS)))
        variable(ds, "crs", "i4", (), 0, grid_mapping_name="latitude_longitude")
        variable(ds, "area", "f4", ("lat", "lon"), RNG.random((LATS, LONS)))
        variable(ds, "height", "f4", (), 2.0)
        ds.createVariable("letter", "S1", field)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "in.nc"
    make(path)
    return path


@pytest.fixture(scope="module")
def store(source):
    out = source.parent / "in.zarr"
    tool.nc2zarr(source, out).ok()
    return out


def raw(path):
    return xr.open_dataset(path, mask_and_scale=False, decode_times=False)


def stacked(source, labels, axis=1):
    """The stack of the variables, by numpy."""
    ds = raw(source)
    out = []
    for label in labels:
        name, _, level = label.partition("_")
        x = ds[name]
        if level:
            x = x.isel(level=LEVELS.index(int(level)))
        out.append(x.values)
    return np.stack(out, axis)


def check(folder, source, labels, name="x", axis=1, dims=("time", "channel", "lat", "lon")):
    got = xr.open_zarr(folder, chunks=None, mask_and_scale=False, decode_times=False)
    want = stacked(source, labels, axis)
    assert list(got["channel"].values) == labels
    assert got[name].dims == dims
    assert got[name].dtype == want.dtype and np.array_equal(got[name].values, want)
    return got


ALL = ["tas", "pr", "z_1000", "z_850", "z_500", "z_250"]
SPEC = "x=tas,pr,z@level"


@pytest.mark.parametrize("model", ["NETCDF4", "NETCDF3_64BIT_OFFSET"])
@pytest.mark.parametrize("zarr_format", ["2", "3"])
def test_equals_numpy(tmp_path, model, zarr_format):
    path, out = tmp_path / "in.nc", tmp_path / "out.zarr"
    make(path, model)
    tool.nc2zarr("--stack", SPEC, "--zarr-format", zarr_format, "--verify", "full", path, out).ok()
    got = check(out, path, ALL)
    assert not {"tas", "pr", "z"} & set(got.variables) and {"time", "level"} <= set(got.variables)
    assert zarr.open_group(str(out), mode="r")["x"].chunks[1] == 6, "a sample is not one read"


@pytest.mark.parametrize("more", [
    ["--chunks", "time=1"], ["--chunks", "x:channel=2,time=13,lat=7,lon=9"], ["--memory", "64MiB", "--chunks", "time=40,lat=1"],
    ["--shards", "time=20,lat=full,lon=full,channel=full", "--chunks", "x:5x6x15x10"], ["-j", "1"], ["-j", "8"],
    ["--codec", "none"], ["--sample", "time=3,lat=8,lon=8"]])
def test_any_layout(source, store, tmp_path, more):
    for i, path in enumerate((source, store)):
        out = tmp_path / f"{i}.zarr"
        tool.run("rechunk" if i else "nc2zarr", "--stack", SPEC, "--variable", "orog", "--verify", "full", *more, path, out).ok()
        check(out, source, ALL)


def test_a_sample_is_one_read(source, tmp_path):
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--stack", SPEC, "--sample", "time=1,lat=30,lon=20", source, out).ok()
    assert zarr.open_group(str(out), mode="r")["x"].chunks[1] == 6


@pytest.mark.parametrize("spec, labels, axis, dims", [
    ("x=z@level=500/1000,tas", ["z_500", "z_1000", "tas"], 1, ("time", "channel", "lat", "lon")),
    ("x=u@level,tas", ["u_1000", "u_850", "u_500", "u_250", "tas"], 0, ("channel", "time", "lat", "lon")),
    ("x=z@level=250,u@level=850/250", ["z_250", "u_850", "u_250"], 1, ("time", "channel", "lat", "lon")),
    ("x=orog,mask", ["orog", "mask"], 0, ("channel", "lat", "lon")),
    ("x=tas", ["tas"], 1, ("time", "channel", "lat", "lon")),
    ("x=count,tas", ["count", "tas"], 1, ("time", "channel", "lat", "lon")),
    ("x=tas,big", ["tas", "big"], 1, ("time", "channel", "lat", "lon")),
])
def test_where_channels_stand_and_what_type(source, store, tmp_path, spec, labels, axis, dims):
    for i, path in enumerate((source, store)):
        out = tmp_path / f"{i}.zarr"
        tool.run("rechunk" if i else "nc2zarr", "--stack", spec, "--verify", "full", path, out).ok()
        check(out, source, labels, axis=axis, dims=dims)


def test_dimensions_in_another_order(source, tmp_path):
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--stack", "x=tas,turned", "--verify", "full", source, out).ok()
    ds = raw(source)
    want = np.stack([ds["tas"].values, ds["turned"].values.transpose(0, 2, 1)], 1)
    assert np.array_equal(xr.open_zarr(out, chunks=None)["x"].values, want)


def test_no_attribute_is_lost(source, tmp_path):
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--stack", "x=tas,pr,z@level=500", source, out).ok()
    group = zarr.open_group(str(out), mode="r")
    assert group["x"].attrs.asdict() == {
        "channel_units": ["K", "mm", "m"], "cell_methods": "time: mean", "channel_long_name": ["temperature", None, None],
        "grid_mapping": "crs", "coordinates": "area", "channel_coordinates": ["height area", "area", "area"]}
    assert group["channel"].attrs.asdict() == {"variable": ["tas", "pr", "z"], "level": [None, None, 500.0]}
    assert set(xr.open_zarr(out, chunks=None)["x"].coords) >= {"channel", "time", "lat", "lon", "area"}


def test_two_arrays(source, tmp_path):
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--stack", "x=tas,pr", "--stack", "y=pr,z@level", "--verify", "full", "--variable", "orog", source, out).ok()
    got = xr.open_zarr(out, chunks=None, decode_times=False)
    assert np.array_equal(got["x"].values, stacked(source, ["tas", "pr"]))
    assert np.array_equal(got["y"].values, stacked(source, ALL[1:]))
    assert got["x"].dims[1] == "x_channel" and list(got["y_channel"].values) == ALL[1:]


# ---- missing values and packing


def test_one_fill_value_for_all(source, store, tmp_path):
    """Missing stays missing, and data stay data."""
    want = xr.open_dataset(source, decode_times=False)
    for i, path in enumerate((source, store)):
        out = tmp_path / f"{i}.zarr"
        tool.run("rechunk" if i else "nc2zarr", "--stack", "x=holes,other,tas", "--verify", "full", path, out).ok()
        got = xr.open_zarr(out, chunks=None, decode_times=False)["x"]
        assert np.array_equal(got.values, np.stack([want[n].values for n in ("holes", "other", "tas")], 1), equal_nan=True)
        assert np.isnan(got.values[:, 0]).any() and np.isnan(got.values[:, 1]).any()
        assert "missing_value" not in got.attrs


def test_data_that_would_become_missing_stop_the_run(source, tmp_path):
    out = tmp_path / "out.zarr"
    done = tool.nc2zarr("--stack", "x=holes,odd", source, out)
    done.fails(1, "x", "equals the fill value", "3/1/4/5")


def test_packed_numbers(source, tmp_path):
    out = tmp_path / "out.zarr"
    want = xr.open_dataset(source, decode_times=False)
    tool.nc2zarr("--stack", "x=p1,p2", source, out).fails(2, "--stack", "p1", "p2", "--unpack")
    for unpack in ("x", "all", "p1,p2"):
        texts = [word for name in unpack.split(",") for word in ("--unpack", name)]
        tool.nc2zarr("--stack", "x=p1,tas,p2", *texts, "--verify", "full", "--overwrite", "--variable", "orog", source, out).ok()
        got = xr.open_zarr(out, chunks=None, decode_times=False)["x"]
        assert got.dtype == "f8" and "scale_factor" not in got.attrs
        for k, name in enumerate(("p1", "tas", "p2")):
            plain = raw(source)[name].values.astype("f8")
            if name != "tas":
                plain = np.where(plain == -32767, np.nan, plain * (0.25 if name == "p1" else 0.5) + 7.0)
            assert np.array_equal(got.values[:, k], plain, equal_nan=True)
            assert np.allclose(got.values[:, k], want[name].values, equal_nan=True)
    tool.nc2zarr("--stack", "x=p1,p2", "--unpack", "x", "--dtype", "x:float32", "--overwrite", source, out).ok()
    assert xr.open_zarr(out, chunks=None)["x"].dtype == "f4"


def test_numbers_packed_alike_stay_packed(source, tmp_path):
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--stack", "x=p2,p3", "--verify", "full", source, out).ok()
    got = check(out, source, ["p2", "p3"])
    assert got["x"].attrs["scale_factor"] == 0.5 and got["x"].dtype == "i2"
    tool.nc2zarr("--stack", "x=p2,p3", "--unpack", "x", "--verify", "full", "--overwrite", source, out).ok()
    plain = xr.open_dataset(source, decode_times=False)
    assert np.allclose(xr.open_zarr(out, chunks=None)["x"].values[:, 1], plain["p3"].values, equal_nan=True)


# Each packed like the one before, but spelled otherwise; then with one missing value, and types that only a third one holds.
ALIKE = {
    "a": ({"scale_factor": 0.5, "add_offset": 0.0}, {}), "b": ({"scale_factor": 0.5, "valid_min": 2}, {}),
    "c": ({"add_offset": 10.0}, {}), "d": ({"scale_factor": 1.0, "add_offset": np.int32(10)}, {}),
    "e": ({"scale_factor": 0.5, "missing_value": np.int16(4)}, {}), "f": ({"scale_factor": 0.25, "missing_value": np.int16(4)}, {}),
    "g": ({"missing_value": np.int16(4)}, {}), "h": ({}, {"dtype": "f4", "fill": np.float32(-9)}),
    "i": ({}, {"dtype": "u4"}), "j": ({}, {"dtype": "i4"}), "k": ({}, {"dtype": "f8"}), "l": ({}, {"dtype": "i8"}),
    "m": ({}, {"dtype": "f4", "fill": np.float32(3)})}


@pytest.mark.parametrize("names, more", [
    ("ab", []), ("ba", []), ("cd", []), ("dc", []), ("ab", ["--unpack", "x"]), ("cd", ["--unpack", "x"]), ("dc", ["--unpack", "x"]),
    ("ef", ["--unpack", "x"]), ("hg", []), ("ijk", []), ("kl", ["--dtype", "x:float64"]), ("hm", ["--fill-value", "x:-99"]),
    ("hm", ["--fill-value", "x:nan"]), ("gk", ["--fill-value", "x:-99", "--zarr-format", "2"])])
def test_readers_see_the_files_numbers(tmp_path, names, more):
    """Verified in full, and no attribute is left that says how numbers were packed before."""
    path, out = tmp_path / "in.nc", tmp_path / "out.zarr"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", 2)
        ds.createDimension("k", 3)
        for name in names:
            attrs, more_of = ALIKE[name]
            values = [[1, 2, 3], [4, 5, 6 if name != "m" else -9]]
            variable(ds, name, more_of.get("dtype", "i2"), ("time", "k"), values, fill=more_of.get("fill"), **attrs)
    tool.nc2zarr("--stack", f"x={','.join(names)}", "--verify", "full", *more, path, out).ok()
    want, got = xr.open_dataset(path), xr.open_zarr(out, chunks=None)["x"]
    assert np.array_equal(got.values, np.stack([want[name].values for name in names]), equal_nan=True)
    left = {"channel_valid_min"} if names in ("ab", "ba") and not more else set()
    assert {name for name in got.attrs if name.startswith("channel")} == left


# ---- with everything else


def test_plan_says_it_and_writes_nothing(source, tmp_path):
    done = tool.nc2zarr("--stack", SPEC, "--dry-run", "-v", source, tmp_path / "out.zarr").ok()
    assert "6 channels along dimension channel, from tas to z_250" in done.out and "40x6x30x20" in done.out
    assert list(tmp_path.iterdir()) == []


def test_statistics_of_each_channel(source, tmp_path):
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--stack", SPEC, "--statistics", source, out).ok()
    mean = zarr.open_group(str(tmp_path / "out.zarr.statistics.zarr"), mode="r")["mean/x"][:]
    want = stacked(source, ALL).astype("f8").mean((0, 2, 3))
    assert np.allclose(mean, want, rtol=1e-12)


def test_a_part_of_it(source, tmp_path):
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--stack", SPEC, "--subset", "time=3:30:4", "--subset", "lat=5:25", "--subset", "channel=1:5", "--rename",
                 "channel=feature", "--dtype", "x:float64", "--verify", "full", source, out).ok()
    got = xr.open_zarr(out, chunks=None)
    assert np.array_equal(got["x"].values, stacked(source, ALL)[3:30:4, 1:5, 5:25].astype("f8"))
    assert got["x"].dims[1] == "feature" and list(got["feature"].values) == ALL[1:5]


def test_parts_make_the_same_store(source, tmp_path):
    whole, parts = tmp_path / "whole.zarr", tmp_path / "parts.zarr"
    options = ["--stack", SPEC, "--chunks", "time=3", "--variable", "orog"]
    tool.nc2zarr(*options, source, whole).ok()
    for k in (2, 1, 3):
        tool.nc2zarr(*options, "--part", f"{k}/3", source, parts).ok()
    check(parts, source, ALL)
    assert {p.relative_to(whole): p.read_bytes() for p in whole.rglob("*") if p.is_file()} == {
        p.relative_to(parts): p.read_bytes() for p in parts.rglob("*") if p.is_file()}


@pytest.mark.long(ci=1)
def test_a_stopped_run_goes_on_with_the_same_stack_alone(source, tmp_path):
    out = tmp_path / "out.zarr"
    options = ["--chunks", "x:1x1x1x20", "--codec", "none", "--variable", "orog", "-j", "1"]
    process = subprocess.Popen([tool.program("nc2zarr"), "--stack", SPEC, *options, source, out], env=tool.environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (out / "x" / "c" / "3").exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == -signal.SIGTERM, said
    assert not (out / "zarr.json").exists() and (tmp_path / "out.zarr.chunkmill").exists()
    tool.nc2zarr("--stack", "x=pr,tas,z@level", *options, "--resume", source, out).fails(1, "--stack")
    tool.nc2zarr("--stack", SPEC, *options, "--resume", "--verify", "full", source, out).ok()
    check(out, source, ALL)


def test_certificate_and_check(source, tmp_path):
    out, proof = tmp_path / "out.zarr", tmp_path / "proof.json"
    tool.nc2zarr("--stack", SPEC, "--verify", "full", "--certificate", proof, source, out).ok()
    said = json.loads(proof.read_text())
    assert said["reproducible"] is False and "variables were stacked into one array" in said["not_reproducible_because"]
    tool.nc2zarr("--check", "--stack", SPEC, source, out).ok()
    assert tool.nc2zarr("--check", "--stack", "x=pr,tas,z@level", source, out).status == 3
    x = zarr.open_group(str(out), mode="r+")["x"]
    x[7, 3, 2, 1] += 1
    done = tool.nc2zarr("--check", "--stack", SPEC, source, out)
    assert done.status == 3 and "7/3/2/1" in done.err


def test_many_files(source, tmp_path):
    """Joined variables are stacked like any other."""
    ds = raw(source)[["tas", "pr", "z"]]
    for name in ds.variables:
        ds[name].encoding = {}
        ds[name].attrs.pop("coordinates", None)
    for k in range(4):
        ds.isel(time=slice(10 * k, 10 * k + 10)).to_netcdf(tmp_path / f"{k}.nc", unlimited_dims="time")
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--stack", SPEC, "--verify", "full", *(tmp_path / f"{k}.nc" for k in range(4)), out).ok()
    check(out, source, ALL)


def test_groups(tmp_path):
    path, out = tmp_path / "in.nc", tmp_path / "out.zarr"
    with netCDF4.Dataset(path, "w") as ds:
        g = ds.createGroup("g")
        g.createDimension("a", 5)
        for name in ("u", "v"):
            variable(g, name, "f4", ("a",), RNG.random(5))
    tool.nc2zarr("--stack", "g/x=g/u,g/v", "--verify", "full", path, out).ok()
    with netCDF4.Dataset(path) as ds:
        want = np.stack([ds["g/u"][:], ds["g/v"][:]])
    assert np.array_equal(xr.open_zarr(out, chunks=None, group="g")["x"].values, want)
    shutil.rmtree(out)
    tool.nc2zarr("--stack", "x=u,v", f"{path}::g", out).ok()
    assert np.array_equal(xr.open_zarr(out, chunks=None)["x"].values, want)
    tool.nc2zarr("--stack", "h/x=g/u,g/v", path, tmp_path / "no.zarr").fails(2, "no group h")


def test_a_store_without_names_of_dimensions(tmp_path):
    path, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    group = zarr.open_group(str(path), mode="w")
    want = RNG.random((2, 6, 7))
    for k in range(2):
        group.create_array(f"v{k}", data=want[k], chunks=(4, 3))
    tool.run("rechunk", "--stack", "x=v0,v1", "--verify", "full", path, out).ok()
    assert np.array_equal(zarr.open_group(str(out), mode="r")["x"][:], want)


REFUSED = [
    ("x", "NAME=A,B,C"), ("=tas", "NAME=A,B,C"), ("x=", "NAME=A,B,C"), ("x=tas,", "NAME=A,B,C"), ("x=tas,@level", "NAME=A,B,C"),
    ("x=z@", "NAME=A,B,C"), ("x=z@level=", "NAME=A,B,C"), ("x=z@level=a", "a"), ("x=tas,nope", "no variable nope"),
    ("x=tas,z@nope", "no dimension nope"), ("x=z@level=7", "has no value 7"), ("x=tas,orog", "same dimensions"),
    ("x=tas,z", "VAR@DIM"), ("x=tas,tas", "labelled tas"), ("x=time,time", "coordinate"), ("x=tas,letter", "no numbers"),
    ("orog=tas,pr", "orog is taken"), ("lat=tas,pr", "lat is taken"), ("x=tas,twice", "missing_value"),
    ("x=far,tas", "--dtype x:float64"),
]


@pytest.mark.parametrize("spec, told", REFUSED)
def test_what_does_not_fit_is_refused(source, store, tmp_path, spec, told):
    for program, path in (("nc2zarr", source), ("rechunk", store)):
        if "letter" in spec and program == "rechunk":
            continue
        told_here = told.replace("no variable", "no array") if program == "rechunk" else told
        tool.run(program, "--stack", spec, path, tmp_path / "out.zarr").fails(2, "--stack", told_here)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.every
@pytest.mark.parametrize("more, told", [
    (["--codec", "keep"], "--codec"), (["--codec", "x:keep"], "--codec"), (["--exclude", "x"], "--exclude"),
    (["--exclude", "tas"], "--exclude"), (["--subset", "level=0:2"], "--stack"), (["--virtual", "json"], "--stack"),
    (["--stack", "x=big,count"], "taken"), (["--rename", "tas=t"], "--rename")])
def test_options_that_do_not_go_with_it(source, tmp_path, more, told):
    tool.nc2zarr("--stack", SPEC, *more, source, tmp_path / "out.zarr").fails(2, told)
    assert list(tmp_path.iterdir()) == []


def test_keep_goes_on_for_the_others(source, tmp_path):
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--stack", SPEC, "--codec", "keep", "--codec", "x:zstd", "--codec", "channel:zstd", "--verify", "full", source, out).ok()
    check(out, source, ALL)


def test_a_grown_store_is_not_stacked(source, tmp_path):
    out = tmp_path / "out.zarr"
    tool.nc2zarr("--stack", SPEC, source, out).ok()
    tool.nc2zarr("--append", "time", "--stack", SPEC, source, out).fails(2, "--stack")
