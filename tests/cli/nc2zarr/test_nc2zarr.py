"""Effects of nc2zarr's options on a store, compared with numpy, xarray and netCDF4."""

import json
import os

import jsonschema
import h5py
import netCDF4
import numcodecs
import numpy as np
import pytest
import xarray as xr
import zarr

from support import nc_equals_zarr, paths, readers, store_lint, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "nc2zarr.json").read_text())


def convert(path, out, *options):
    """Converts, and lets everyone look at the store."""
    done = tool.nc2zarr("--json", *options, path, out)
    document = done.json()
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    if "--dry-run" not in options:
        assert store_lint.lint(out, consolidated="--no-consolidate" not in options) == []
        assert readers.disagreements(out) == []
    return document


def raw(path, **kw):
    return xr.open_dataset(path, engine="netcdf4", decode_cf=False, **kw)


def store(path, **kw):
    return xr.open_zarr(str(path), chunks=None, decode_cf=False, **kw)


def equal(want, got, names=None):
    """The variables of GOT hold, bit for bit, what those of WANT do."""
    for name in names or got.variables:
        a, b = want.variables[name], got.variables[name]
        assert a.dims == b.dims and a.dtype == b.dtype, name
        assert a.values.tobytes() == b.values.tobytes(), name


def layout(document):
    return {v["name"]: v for v in document["variables"]}


def codecs(path, name):
    return readers.zarr_json(path, name)["codecs"]


def make(path, variables, fmt="NETCDF4"):
    """variables: {name: (dtype, dims, array, attributes)}"""
    with netCDF4.Dataset(path, "w", format=fmt) as ds:
        for name, (dtype, dims, data, attrs) in variables.items():
            for d, n in zip(dims, np.shape(data)):
                if d not in ds.dimensions:
                    ds.createDimension(d, n)
            fill = attrs.pop("_FillValue", None)
            v = ds.createVariable(name, dtype, dims, fill_value=fill)
            v.set_auto_maskandscale(False)
            v.set_auto_chartostring(False)
            v.setncatts(attrs)
            v[...] = data
    return path


# ---- plan and result --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--shards", "auto"],
        ["--zarr-format", "2"],
        ["--chunks", "auto:1KiB"],
        ["--chunks", "source"],
        ["--chunks", "auto:512B", "--shards", "auto:8KiB"],
    ],
    ids=" ".join,
)
def test_the_plan_is_what_is_made(grid, out, options):
    plan = convert(grid, out, "--dry-run", *options)
    assert plan["outcome"] == "planned" and not out.exists()
    made = convert(grid, out, *options)
    assert made["output"]["nobjects"] == sum(len(files) for _, _, files in os.walk(out))
    for name, v in layout(made).items():
        p = layout(plan)[name]
        for key in ("shape", "chunks", "shards", "codec", "nchunks", "type", "decodes_per_chunk"):
            assert p[key] == v[key], (name, key)
        files = sum(len(f) for _, _, f in os.walk(out / name)) - (1 if "2" not in options else 2)
        assert v["nobjects"] == files <= p["nobjects"], name
        assert v["nchunks"] == np.prod([-(-n // c) for n, c in zip(v["shape"], v["chunks"])], dtype=int)
    assert made["memory"]["planned_nbytes"] <= made["memory"]["limit_nbytes"]
    assert made["memory"]["peak_nbytes"] <= made["memory"]["limit_nbytes"] or paths.SANITIZED


def test_the_summary_names_the_store_and_how_to_open_it(grid, out):
    done = tool.nc2zarr(grid, out).ok()
    assert str(out) in done.out and "open_zarr" in done.out
    assert "time" in done.out  # the unlimited dimension is recorded


def test_verification_is_reported(grid, out):
    document = convert(grid, out, "--verify", "full")
    assert document["verification"]["mode"] == "full" and document["verification"]["differences"] == []
    total = sum(np.prod(v["shape"], dtype=int) for v in document["variables"])
    assert document["verification"]["nelements"] == total and document["verification"]["complete"]
    assert all(len(v["digest"]) == 32 for v in document["variables"])


def test_verify_none(grid, out):
    told = convert(grid, out, "--verify", "none")["verification"]
    assert told["nelements"] == 0 and not told["complete"]


def test_trace_is_a_chrome_trace(grid, out, tmp_path):
    convert(grid, out, "--trace", tmp_path / "trace.json", "-j", "2")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    assert events and all({"ph", "pid", "tid", "name"} <= set(e) for e in events)
    complete = [e for e in events if e["ph"] == "X"]
    assert complete and all(e["dur"] >= 0 and e["ts"] >= 0 for e in complete)


def test_no_consolidate(grid, out):
    convert(grid, out, "--no-consolidate")
    assert "consolidated_metadata" not in readers.zarr_json(out)
    convert(grid, out.with_name("two.zarr"), "--no-consolidate", "--zarr-format", "2")
    assert not (out.with_name("two.zarr") / ".zmetadata").exists()


@pytest.mark.parametrize(
    "options", [["--durable"], ["-j", "3"], ["--memory", "200MB"], ["--progress", "always"]], ids=" ".join
)
def test_harmless_options_change_nothing(grid, out, options):
    convert(grid, out, *options)
    assert nc_equals_zarr.differences(grid, out) == []


def test_file_url(grid, out):
    tool.nc2zarr(grid, f"file://{out}").ok()
    assert nc_equals_zarr.differences(grid, out) == []


def test_too_little_memory_is_refused_with_what_would_do(grid, out):
    done = tool.nc2zarr("--memory", "100KiB", grid, out)
    assert done.status in (1, 2) and not out.exists(), str(done)
    assert any(unit in done.err for unit in ("MiB", "MB", "KiB", "GiB")), str(done)


# ---- what is already there --------------------------------------------------------------------------


def test_overwrite_replaces_the_store_and_keeps_what_is_not_its_own(grid, out):
    convert(grid, out, "--chunks", "auto:1KiB")
    (out / "notes.txt").write_text("mine")
    (out / "tas" / "README").write_text("mine too")
    tool.nc2zarr("--overwrite", "--variable", "mask", grid, out).ok()
    assert (out / "notes.txt").read_text() == "mine" and (out / "tas" / "README").read_text() == "mine too"
    left = {p.name for p in out.rglob("*") if p.is_file()} - {"zarr.json", "0", "c", "notes.txt", "README"}
    assert not left, left
    assert not (out / "tas" / "zarr.json").exists()
    assert "tas" not in dict(zarr.open_group(str(out), mode="r").members())


@pytest.mark.parametrize("first, second", [("3", "2"), ("2", "3")])
def test_overwrite_leaves_one_version(grid, out, first, second):
    convert(grid, out, "--zarr-format", first)
    convert(grid, out, "--zarr-format", second, "--overwrite")
    assert (out / "zarr.json").exists() == (second == "3") and (out / ".zgroup").exists() == (second == "2")
    assert nc_equals_zarr.differences(grid, out) == []


def test_overwrite_with_a_bad_input_loses_nothing(grid, out, tmp_path):
    convert(grid, out)
    (tmp_path / "bad.nc").write_bytes(b"not a file of ours" * 100)
    tool.nc2zarr("--overwrite", tmp_path / "bad.nc", out).fails(1, "bad.nc")
    tool.nc2zarr("--overwrite", tmp_path / "absent.nc", out).fails(1, "absent.nc")
    tool.nc2zarr("--overwrite", "--chunks", "nosuch=3", grid, out).fails(2, "nosuch")
    assert nc_equals_zarr.differences(grid, out) == []


@pytest.mark.parametrize("options", [[], ["--overwrite"]], ids=["plain", "overwrite"])
def test_a_regular_file_is_never_replaced(grid, tmp_path, options):
    target = tmp_path / "out.zarr"
    target.write_text("precious")
    tool.nc2zarr(*options, grid, target).fails(1, "out.zarr")
    assert target.read_text() == "precious"
    tool.nc2zarr(*options, grid, grid).fails(2, "grid.nc")
    assert nc_equals_zarr.netCDF4.Dataset(str(grid)).data_model == "NETCDF4"


def test_a_folder_of_other_things_is_kept(grid, out):
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    tool.nc2zarr(grid, out).fails(1, "out.zarr")
    tool.nc2zarr("--overwrite", grid, out)
    assert (out / "thesis.tex").read_text() == "years of work"


def test_the_folder_above_is_missing(grid, tmp_path):
    done = tool.nc2zarr(grid, tmp_path / "no" / "such" / "out.zarr")
    if done.status:  # making it would do as well
        done.fails(1, "out.zarr")
        assert not (tmp_path / "no").exists()


# ---- choice -----------------------------------------------------------------------------------------


def test_variable_brings_what_it_needs(grid, out):
    names = set(layout(convert(grid, out, "--variable", "tas")))
    assert names == {"tas", "time", "lat", "lon", "time_bnds", "height", "crs"}
    equal(raw(grid), store(out))


def test_exclude(grid, out):
    names = set(layout(convert(grid, out, "--exclude", "tas,name")))
    assert names == {"time", "time_bnds", "lat", "lon", "height", "crs", "pr", "mask", "a:b"}


@pytest.mark.parametrize("new", ["tas2", "températures", "a b"])
def test_rename(grid, out, new):
    convert(grid, out, "--rename", f"tas={new}")
    assert nc_equals_zarr.differences(grid, out, rename={"tas": new}) == []


@pytest.mark.parametrize(
    "file, old", [("name_zarr_json_nc4.nc", "zarr.json"), ("name_dotz.h5", ".zattrs"), ("name_climb.h5", "..")]
)
def test_rename_helps_a_name_that_zarr_refuses(file, old, out):
    document = convert(paths.CORPUS / file, out, "--rename", f"{old}=allowed")
    assert "allowed" in layout(document)


# ---- subset -----------------------------------------------------------------------------------------

SLICES = {
    "time=5:12": {"time": slice(5, 12)},
    "time=3:40:7": {"time": slice(3, 40, 7)},
    "time=0:1": {"time": slice(0, 1)},
    "lat=2:9:3": {"lat": slice(2, 9, 3)},
    "lon=11:12": {"lon": slice(11, 12)},
    "station=1:3": {"station": slice(1, 3)},
    "time=6:36,lat=1:8:2": {"time": slice(6, 36), "lat": slice(1, 8, 2)},
    "bnds=1:2": {"bnds": slice(1, 2)},
}


@pytest.mark.parametrize("version", ["3", "2"])
@pytest.mark.parametrize("spec", SLICES)
def test_subset_by_index(grid, out, spec, version):
    options = [o for part in spec.split(",") for o in ("--subset", part)]
    convert(grid, out, *options, "--zarr-format", version, "--chunks", "auto:700B")
    equal(raw(grid).isel(SLICES[spec]), store(out), raw(grid).variables)


@pytest.mark.parametrize(
    "spec, dim, low, high",
    [
        ("lat=-35..45", "lat", 45, -35),
        ("lat=-40..40", "lat", 40, -40),
        ("lon=30..100", "lon", 30, 100),
        ("lon=0..0", "lon", 0, 0),
        ("lon=89.5..1000", "lon", 89.5, 1000),
    ],
)
def test_subset_by_value(grid, out, spec, dim, low, high):
    convert(grid, out, "--subset", spec)
    equal(raw(grid).sel({dim: slice(low, high)}), store(out), raw(grid).variables)


@pytest.mark.parametrize("dtype, attributes, stored", [
    ("i2", {"scale_factor": 0.1, "add_offset": 20.0}, np.arange(0, 300)),
    ("i2", {"scale_factor": np.float32(0.1), "add_offset": np.float32(20)}, np.arange(0, 300)),
    ("i1", {"scale_factor": 0.1, "add_offset": 20.0, "_Unsigned": "true"}, np.arange(0, 250).astype("u1").view("i1")),
    ("i4", {"scale_factor": -0.01, "add_offset": 0.0}, -np.arange(2000, 5000, 10)),
    ("f4", {}, (np.arange(0, 300) * 0.1 + 20).astype("f4")),
    ("f8", {"scale_factor": 0.5}, np.arange(400, 900, 2) / 10),
], ids=["i2", "i2 float32 factors", "unsigned i1", "i4 falling", "f4", "f8"])
@pytest.mark.parametrize("low, high", [(30.1, 40.3), (32.7, 32.7), (29.5, 33)])
def test_subset_by_value_of_a_packed_coordinate(tmp_path, out, dtype, attributes, stored, low, high):
    """Values are what readers show, and a bound that is shown is within."""
    path = tmp_path / "packed.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("lat", len(stored))
        lat = ds.createVariable("lat", dtype, ("lat",))
        lat.set_auto_maskandscale(False)
        lat.setncatts(attributes)
        lat[:] = stored
        ds.createVariable("v", "i2", ("lat",))[:] = np.arange(len(stored))
    shown = np.round(xr.open_dataset(path, engine="netcdf4").lat.values.astype("f8"), 3)
    keep = np.flatnonzero((shown >= low) & (shown <= high))
    assert 0 < keep.size < 120
    convert(path, out, "--subset", f"lat={low}..{high}")
    assert np.array_equal(zarr.open(str(out))["v"][:], keep)


def test_a_missing_coordinate_lies_nowhere(tmp_path, out):
    path = tmp_path / "missing.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 6)
        x = ds.createVariable("x", "i2", ("x",), fill_value=30)
        x.set_auto_maskandscale(False)
        x.scale_factor = 1.0
        x[:] = [10, 20, 40, 50, 30, 60]
    convert(path, out, "--subset", "x=20..45")
    assert zarr.open(str(out))["x"][:].tolist() == [20, 40]


def test_subset_by_date_of_a_packed_time(tmp_path, out):
    path = tmp_path / "packed.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", 48)
        time = ds.createVariable("time", "i2", ("time",))
        time.set_auto_maskandscale(False)
        time.setncatts({"units": "days since 2000-01-01", "scale_factor": 0.25, "add_offset": 10.0})
        time[:] = np.arange(48)
    convert(path, out, "--subset", "time=2000-01-12..2000-01-13")
    assert zarr.open(str(out))["time"][:].tolist() == list(range(4, 12))


CALENDARS = (
    [e["file"] for e in json.loads(paths.MANIFEST.read_text())["files"] if e["file"].startswith("calendar_")]
    if paths.MANIFEST.exists()
    else []
)
DATES = [
    ("2000-01-10", "2000-02-20"),
    ("1999-12-31", "2000-01-01"),
    ("2000-02-28", "2000-02-28"),
    ("1999-06-01", "2000-03-30"),
]


@pytest.mark.parametrize("first, last", DATES)
@pytest.mark.parametrize("file", CALENDARS)
def test_subset_by_date(file, first, last, out):
    path = paths.CORPUS / file
    if "360_day" in file and first.endswith("31"):
        tool.nc2zarr("--subset", f"time={first}..{last}", path, out).fails(2, first)  # that calendar has no such day
        return
    convert(path, out, "--subset", f"time={first}..{last}")
    dates = xr.open_dataset(path, engine="netcdf4").sel(time=slice(first, last))
    keep = np.isin(xr.open_dataset(path, engine="netcdf4").time.values, dates.time.values)
    assert 0 < keep.sum() < keep.size
    equal(raw(path).isel(time=keep), store(out), ["time", "v"])


# ---- options that change values ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec, want",
    [("tas:float64", "f8"), ("mask:int32", "i4"), ("mask:float32", "f4"), ("pr:int32", "i4"), ("a*:float32", "f4")],
)
def test_dtype(grid, out, spec, want):
    convert(grid, out, "--dtype", spec)
    name = {"tas": "tas", "mask": "mask", "pr": "pr", "a*": "a:b"}[spec.split(":")[0]]
    a, b = raw(grid)[name], store(out)[name]
    assert b.dtype == want and np.array_equal(a.values.astype(want), b.values)
    others = [n for n in raw(grid).variables if n != name]
    equal(raw(grid), store(out), others)
    shown, expected = xr.open_zarr(str(out), chunks=None)[name], xr.open_dataset(grid)[name]
    assert np.array_equal(shown.values, expected.values.astype(shown.dtype), equal_nan=True)


def test_dtype_that_cannot_hold_a_value_is_refused(tmp_path, out):
    path = make(tmp_path / "big.nc", {"v": ("f8", ("x",), [1.0, 1e10], {})})
    done = tool.nc2zarr("--dtype", "v:int16", path, out)
    assert done.status in (1, 2), str(done)
    done.fails(done.status, "big.nc", "v", "int16")
    assert not tool.opens_as_store(out)


@pytest.mark.parametrize("version", ["3", "2"])
@pytest.mark.parametrize("what", ["pr", "all"])
def test_unpack(grid, out, what, version):
    convert(grid, out, "--unpack", what, "--zarr-format", version)
    got = store(out)["pr"]
    assert got.dtype.kind == "f" and not {"scale_factor", "add_offset"} & set(got.attrs)
    want, shown = xr.open_dataset(grid)["pr"].values, xr.open_zarr(str(out), chunks=None)["pr"].values
    assert np.allclose(shown, want, rtol=1e-6, equal_nan=True) and np.isnan(want).sum() == 12
    equal(raw(grid), store(out), ["tas", "mask", "time"])


@pytest.mark.parametrize("bits", [1, 7, 12, 23])
def test_keepbits(grid, out, bits):
    convert(grid, out, "--keepbits", f"tas:{bits}")
    codec = numcodecs.BitRound(keepbits=bits)
    values = raw(grid)["tas"].values
    want = codec.decode(codec.encode(values)).view("f4").reshape(values.shape)
    fill = values == np.float32(1e20)
    got = store(out)["tas"].values
    assert np.array_equal(got[~fill], want[~fill])
    assert (got[fill] == np.float32(1e20)).all()  # the fill value stays what _FillValue says
    equal(raw(grid), store(out), [n for n in raw(grid).variables if n != "tas"])


def test_fill_value(tmp_path, out):
    path = make(tmp_path / "image.nc", {"image": ("u1", ("y", "x"), np.arange(256).reshape(16, 16), {})})
    done = tool.nc2zarr(path, out).ok()
    assert any("image" in w and "255" in w for w in done.warnings), str(done)
    done = tool.nc2zarr("--fill-value", "image:0", path, out.with_name("two.zarr")).ok()
    assert readers.zarr_json(out.with_name("two.zarr"), "image")["fill_value"] == 0
    assert np.array_equal(raw(path)["image"].values, store(out.with_name("two.zarr"))["image"].values)


@pytest.mark.parametrize("version", ["3", "2"])
@pytest.mark.parametrize("mode", ["keep", "join", "uint8"])
def test_char(grid, out, mode, version):
    convert(grid, out, "--char", mode, "--zarr-format", version)
    got = zarr.open_group(str(out), mode="r")["name"][...]
    with netCDF4.Dataset(grid) as ds:
        ds["name"].set_auto_chartostring(False)
        want = ds["name"][...].data
    if mode == "keep":
        assert got.dtype == "S1" and got.tobytes() == want.tobytes()
    elif mode == "uint8":
        assert got.dtype == "u1" and got.tobytes() == want.tobytes()
    else:
        assert got.shape == (3,) and [str(s) for s in got] == ["Kiel", "a b", ""]
    shown = xr.open_zarr(str(out), chunks=None)["name"].values
    if mode != "uint8":
        assert [s.decode() if isinstance(s, bytes) else s for s in shown.tolist()] == ["Kiel", "a b", ""]


def test_characters_that_label_a_dimension_are_not_joined(tmp_path, out):
    """As in trajectories of AMBER: a scalar named like a dimension cannot be opened by xarray."""
    with netCDF4.Dataset(tmp_path / "amber.nc", "w", format="NETCDF3_64BIT_OFFSET") as ds:
        for name, n in (("atom", 5), ("spatial", 3), ("label", 4)):
            ds.createDimension(name, n)
        ds.createVariable("spatial", "S1", ("spatial",))[:] = np.array(list("xyz"), "S1")
        ds.createVariable("element", "S1", ("atom", "label"))[:] = netCDF4.stringtochar(np.array(["C"] * 5, "S4"))
        ds.createVariable("place", "f4", ("atom", "spatial"))[:] = 1
    document = convert(tmp_path / "amber.nc", out, "--char", "join")
    assert any("spatial" in note and "not joined" in note for note in document["notes"]), document["notes"]
    got = xr.open_zarr(str(out), chunks=None)
    assert got["spatial"].values.tolist() == [b"x", b"y", b"z"] and got["element"].values.tolist() == ["C"] * 5


@pytest.mark.parametrize("verify", ["sample", "full"])
def test_an_attribute_that_zarr_2_has_for_itself(tmp_path, out, verify):
    with netCDF4.Dataset(tmp_path / "own.nc", "w", format="NETCDF3_CLASSIC") as ds:
        ds.createDimension("x", 3)
        v = ds.createVariable("v", "f4", ("x",))
        v[:], v._ARRAY_DIMENSIONS, v.units = 1, "y", "m"
    done = tool.nc2zarr("--zarr-format", "2", "--verify", verify, tmp_path / "own.nc", out).ok()
    assert any("v: its attribute _ARRAY_DIMENSIONS is left out" in w for w in done.warnings), str(done)
    assert xr.open_zarr(str(out), chunks=None)["v"].attrs == {"units": "m"}
    three = out.with_name("three.zarr")
    assert not tool.nc2zarr("--verify", verify, tmp_path / "own.nc", three).ok().warnings
    assert readers.zarr_json(three, "v")["attributes"]["_ARRAY_DIMENSIONS"] == "y"
    done = tool.run("rechunk", "--zarr-format", "2", "--verify", verify, three, out.with_name("two.zarr")).ok()
    assert any("_ARRAY_DIMENSIONS is left out" in w for w in done.warnings), str(done)


def test_nothing_is_packed_where_all_is_text(tmp_path, out):
    with netCDF4.Dataset(tmp_path / "text.nc", "w") as ds:
        ds.createDimension("x", 1)
        ds.createVariable("t", str, ("x",))[0] = "a"
    convert(tmp_path / "text.nc", out, "--unpack", "all")
    tool.nc2zarr("--unpack", "t", tmp_path / "text.nc", out.with_name("other.zarr")).fails(2, "variable t holds text")


def test_skip_unsupported_lists_what_it_left(out):
    document = convert(paths.CORPUS / "vlen_beside.nc", out, "--skip-unsupported")
    assert any("ragged" in s for s in document["skipped"]) and any("ragged2" in s for s in document["skipped"])
    assert set(layout(document)) == {"plain"}


# ---- chunks, shards, codecs -------------------------------------------------------------------------

CHUNKS = {
    "by name": (["time=10,lat=4,lon=5"], {"tas": [10, 4, 5], "pr": [10, 4, 5], "time": [40], "lat": [9]}),
    "in order": (["tas:10x4x5"], {"tas": [10, 4, 5]}),
    "for one": (["tas:time=8,lat=full,lon=2"], {"tas": [8, 9, 2]}),
    "later wins": (["tas:10x4x5", "tas:2x3x4"], {"tas": [2, 3, 4]}),
    "glob": (["t?s:10x4x5", "p?:5x9x12"], {"tas": [10, 4, 5], "pr": [5, 9, 12]}),
    # Where it grows, chunks may be longer.
    "longer than the array": (["tas:1000x1000x1000"], {"tas": [1000, 9, 12]}),
    "all, and more": (["tas:time=100000000,lat=3"], {"tas": [40, 3, 12]}),
    "coordinate when named": (["time:16"], {"time": [16]}),
    "source": (["tas:source"], {"tas": [7, 4, 5]}),
    "escaped colon": (["a\\:b:3x5"], {"a:b": [3, 5]}),
    "one element": (["mask:1x1"], {"mask": [1, 1]}),
}


@pytest.mark.parametrize("case", CHUNKS)
def test_chunks(grid, out, case):
    specs, want = CHUNKS[case]
    made = layout(convert(grid, out, *[o for s in specs for o in ("--chunks", s)]))
    for name, shape in want.items():
        assert made[name]["chunks"] == shape, name
        grid_of = readers.zarr_json(out, name)["chunk_grid"]["configuration"]["chunk_shape"]
        assert grid_of == shape, name
    equal(raw(grid), store(out))


def test_dimensions_not_named_are_chosen(grid, out):
    chunks = layout(convert(grid, out, "--chunks", "tas:time=1"))["tas"]["chunks"]
    assert chunks[0] == 1 and chunks[1:] == [9, 12]


@pytest.mark.parametrize("size, least, most", [("64KiB", 8 << 10, 128 << 10), ("1MiB", 128 << 10, 2 << 20)])
def test_auto_of_a_size(tmp_path, out, size, least, most):
    path = make(tmp_path / "big.nc", {"v": ("f4", ("t", "y", "x"), np.zeros((50, 181, 360), "f4"), {})})
    chunk = layout(convert(path, out, "--dry-run", "--chunks", f"auto:{size}"))["v"]["chunks"]
    assert least <= 4 * np.prod(chunk) <= most, chunk


def test_shards(grid, out):
    made = layout(convert(grid, out, "--chunks", "tas:5x3x4", "--shards", "tas:20x9x12"))["tas"]
    assert made["chunks"] == [5, 3, 4] and made["shards"] == [20, 9, 12] and made["nobjects"] == 2
    codec = codecs(out, "tas")
    assert [c["name"] for c in codec] == ["sharding_indexed"] and codec[0]["configuration"]["chunk_shape"] == [5, 3, 4]
    equal(raw(grid), store(out))


@pytest.mark.long(ci=1)
def test_more_than_ten_thousand_objects_become_shards(out, tmp_path):
    path = make(tmp_path / "many.nc", {"v": ("i1", ("y", "x"), np.arange(400 * 300).reshape(400, 300) % 100, {})})
    done = tool.nc2zarr("--chunks", "v:2x5", path, out).ok()
    assert "shard" in done.out + done.err
    assert codecs(out, "v")[0]["name"] == "sharding_indexed"
    assert sum(len(f) for _, _, f in os.walk(out)) < 10_000
    equal(raw(path), store(out))


CODECS = {
    "default": ([], "tas", [("blosc", {"cname": "zstd", "clevel": 2, "shuffle": "shuffle"})]),
    "none": (["none"], "tas", []),
    "zstd": (["zstd"], "tas", [("zstd", {"level": 3})]),
    "zstd level": (["zstd:11"], "tas", [("zstd", {"level": 11})]),
    "gzip": (["gzip"], "tas", [("gzip", {"level": 5})]),
    "gzip of one": (["tas:gzip:1"], "tas", [("gzip", {"level": 1})]),
    "not of others": (["tas:gzip:1"], "pr", [("blosc", {"cname": "zstd"})]),
    "glob": (["t?s:none"], "tas", []),
    "blosc": (
        ["blosc:lz4:7:bitshuffle"],
        "tas",
        [("blosc", {"cname": "lz4", "clevel": 7, "shuffle": "bitshuffle", "typesize": 4})],
    ),
    "blosc name": (["blosc:lz4hc"], "pr", [("blosc", {"cname": "lz4hc", "shuffle": "shuffle", "typesize": 2})]),
    "no shuffle": (
        ["blosc:zlib:1:noshuffle"],
        "tas",
        [("blosc", {"cname": "zlib", "clevel": 1, "shuffle": "noshuffle"})],
    ),
    "later wins": (["gzip", "tas:zstd"], "tas", [("zstd", {"level": 3})]),
    "escaped": (["a\\:b:gzip"], "a:b", [("gzip", {"level": 5})]),
}


@pytest.mark.parametrize("case", CODECS)
def test_codec(grid, out, case):
    specs, name, want = CODECS[case]
    convert(grid, out, *[o for s in specs for o in ("--codec", s)])
    got = [c for c in codecs(out, name) if c["name"] != "bytes"]
    assert [c["name"] for c in got] == [n for n, _ in want]
    for c, (_, conf) in zip(got, want):
        assert conf.items() <= c["configuration"].items(), c
    equal(raw(grid), store(out))


def test_a_variable_named_like_a_codec(tmp_path, out):
    path = make(
        tmp_path / "named.nc",
        {"gzip": ("f4", ("x", "y"), np.ones((3, 4)), {}), "v": ("f4", ("x", "y"), np.ones((3, 4)), {})},
    )
    convert(path, out, "--codec", "gzip:7")
    assert codecs(out, "v")[-1]["configuration"]["level"] == 7


WRONG = {
    "unknown dimension": ["--chunks", "nosuch=3"],
    "unknown variable": ["--chunks", "nosuch:3x3"],
    "zero": ["--chunks", "tas:0x1x1"],
    "words": ["--chunks", "tas:axbxc"],
    "rank": ["--chunks", "tas:3x3"],
    "rank above": ["--chunks", "tas:1x2x3x4"],
    "negative": ["--chunks", "tas:-2x2x3"],
    "no length": ["--chunks", "time="],
    "empty": ["--chunks", ""],
    "beyond 64 bits": ["--chunks", "tas:99999999999999999999x1x1"],
    "twice": ["--chunks", "tas:time=3,time=4"],
    "auto of nothing": ["--chunks", "auto:0"],
    "auto of what": ["--chunks", "auto:big"],
    "glob of none": ["--chunks", "zz*:3x3"],
    "shards and v2": ["--zarr-format", "2", "--shards", "auto"],
    "shard no multiple": ["--chunks", "tas:5x3x4", "--shards", "tas:7x9x12"],
    "shards of an unknown": ["--shards", "nosuch:3x3"],
    "codec": ["--codec", "zip"],
    "gzip level": ["--codec", "gzip:10"],
    "zstd level": ["--codec", "zstd:99"],
    "blosc name": ["--codec", "blosc:foo"],
    "blosc level": ["--codec", "blosc:lz4:10"],
    "blosc shuffle": ["--codec", "blosc:lz4:5:weird"],
    "level of words": ["--codec", "gzip:x"],
    "none with a level": ["--codec", "none:3"],
    "codec of an unknown": ["--codec", "nosuch:gzip"],
    "empty codec": ["--codec", ""],
    "too many parts": ["--codec", "zstd:3:4"],
    "variable": ["--variable", "nosuch"],
    "one of several": ["--variable", "tas,nosuch"],
    "exclude": ["--exclude", "nosuch"],
    "rename": ["--rename", "nosuch=x"],
    "rename onto another": ["--rename", "tas=pr"],
    "rename to nothing": ["--rename", "tas="],
    "rename without": ["--rename", "tas"],
    "rename to zarr.json": ["--rename", "tas=zarr.json"],
    "rename out": ["--rename", "tas=../x"],
    "rename two to one": ["--rename", "tas=x", "--rename", "pr=x"],
    "subset dimension": ["--subset", "nosuch=1:2"],
    "subset words": ["--subset", "time=a:b"],
    "subset step": ["--subset", "time=0:5:0"],
    "subset beyond": ["--subset", "time=50:60"],
    "subset backwards": ["--subset", "time=9:3"],
    "subset without": ["--subset", "time"],
    "subset date": ["--subset", "time=2000-13-01..2000-14-01"],
    "subset no such day": ["--subset", "time=2000-02-29..2000-03-01"],
    "subset nothing there": ["--subset", "time=1900-01-01..1900-12-31"],
    "subset no coordinate": ["--subset", "bnds=1.5..2.5"],
    "dtype": ["--dtype", "tas:float99"],
    "dtype variable": ["--dtype", "nosuch:float32"],
    "dtype of text": ["--dtype", "name:float32"],
    "unpack": ["--unpack", "nosuch"],
    "keepbits": ["--keepbits", "tas:24"],
    "keepbits zero": ["--keepbits", "tas:0"],
    "keepbits words": ["--keepbits", "tas:x"],
    "keepbits of integers": ["--keepbits", "mask:3"],
    "keepbits variable": ["--keepbits", "nosuch:3"],
    "fill": ["--fill-value", "mask"],
    "fill variable": ["--fill-value", "nosuch:3"],
    "fill words": ["--fill-value", "mask:x"],
    "fill range": ["--fill-value", "mask:1000"],
    "format": ["--zarr-format", "4"],
    "char": ["--char", "utf8"],
    "sample": ["--sample", "nosuch=3"],
    "keep and a shape": ["--codec", "keep", "--chunks", "tas:1x1x1"],
    "certificate without full": ["--certificate", "c.json", "--verify", "none"],
}


@pytest.mark.every
@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_exit_2(grid, out, tmp_path, case):
    tool.nc2zarr(*WRONG[case], grid, out, cwd=tmp_path).fails(2)
    assert not out.exists() and os.listdir(tmp_path) == []


# ---- groups -----------------------------------------------------------------------------------------


def test_a_group_of_a_file(out):
    path = paths.CORPUS / "groups_nested.nc"
    document = convert(f"{path}::a/b", out)
    assert set(layout(document)) >= {"v", "time", "c/v"} and not any(n.startswith("d/") for n in layout(document))
    assert np.array_equal(store(out)["v"].values, raw(path, group="a/b")["v"].values)
    assert store(out).attrs["path"] == "a/b"


def test_a_path_that_exists_wins(grid, tmp_path):
    literal = tmp_path / "x::y.nc"
    literal.write_bytes(grid.read_bytes())
    tool.nc2zarr(literal, tmp_path / "out.zarr").ok()
    assert nc_equals_zarr.differences(literal, tmp_path / "out.zarr") == []


def test_a_group_that_is_not_there(out):
    tool.nc2zarr(f"{paths.CORPUS / 'groups_nested.nc'}::no/such", out).fails(1, "groups_nested.nc", "no/such")
    assert not out.exists()


@pytest.mark.every
@pytest.mark.parametrize("pattern, chosen", [
    ("*", {"v", "o/v", "o/s/v", "o/s/w"}), ("v", {"v", "o/v", "o/s/v"}), ("o/*", {"o/v"}),
    ("o/**", {"o/v", "o/s/v", "o/s/w"}), ("**/w", {"o/s/w"}), ("o/*/?", {"o/s/v", "o/s/w"}),
])
def test_patterns_and_groups(tmp_path, out, pattern, chosen):
    path = tmp_path / "groups.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for name in ("v", "o/v", "o/s/v", "o/s/w"):
            ds.createVariable(name, "i2", ())[...] = 1
    document = convert(path, out, "--variable", pattern)
    assert {v["name"] for v in document["variables"]} == chosen


def test_variables_in_groups_are_chosen_by_path(out):
    document = convert(paths.CORPUS / "groups_nested.nc", out, "--variable", "a/b/v")
    assert "a/b/v" in layout(document) and "d/v" not in layout(document)


@pytest.mark.parametrize("others", [False, True])
def test_filters_that_netcdf_lacks(tmp_path, out, others):
    """Nothing that was not compared is called verified, and no comparison is proposed that lacks the same filter."""
    path, lacks = tmp_path / "in.h5", "netCDF-C lacks filter lzf (32000), which a plugin in HDF5_PLUGIN_PATH may add"
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(400).reshape(20, 20), chunks=(5, 5), compression="lzf")
        if others:
            f.create_dataset("w", data=np.arange(20))
    done = tool.nc2zarr(path, out).ok()
    assert lacks in done.err and "variable v is not verified" in done.err
    told = "20 elements" if others else "Not verified against libnetcdf (a sample): no variable could be compared"
    assert told in done.out and ("; not all variables could be compared" in done.out) == others
    assert not convert(path, out, "--overwrite")["verification"]["complete"]
    done = tool.nc2zarr("--overwrite", "--verify", "full", path, out).fails(1, "written, but not verified", lacks)
    assert "--check" not in done.err and ("(20 elements) is equal" in done.err) == others
    tool.nc2zarr("--check", path, out).fails(1, lacks)
    if others:
        chunk = out / "w" / "c" / "0"
        chunk.unlink()
        tool.nc2zarr("--check", path, out).fails(1, lacks, "another variable differs: w: chunk 0 is missing")


def test_a_store_folder_is_an_input(tmp_path):
    """A folder with a store in it is one input; another folder holds files, or is empty."""
    values = np.arange(24, dtype="f4").reshape(4, 6)
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as nc:
        nc.createDimension("x", 4)
        nc.createDimension("y", 6)
        nc.createVariable("v", "f4", ("x", "y"))[:] = values
    for version in "2", "3":
        first, second = tmp_path / f"a{version}.zarr", tmp_path / f"b{version}.zarr"
        tool.nc2zarr("-q", "--zarr-format", version, tmp_path / "a.nc", first)
        text = tool.nc2zarr("--chunks", "2x6", first, second).out
        assert "Verified against the source" in text and "libnetcdf" not in text
        np.testing.assert_array_equal(store(second)["v"], values)
    (tmp_path / "folder").mkdir()
    tool.nc2zarr(tmp_path / "folder", tmp_path / "c.zarr").fails(1, "holds no file")
