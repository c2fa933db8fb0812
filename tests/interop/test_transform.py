"""Changes that nc2zarr and rechunk make to a Zarr store: parts, types, packing, rounding, names, fill values, chunks.

zarr-python writes the source and reads the target; numpy says what it should hold.
"""

import base64
import json

import jsonschema
import netCDF4
import numpy as np
import pytest
import zarr

from support import paths, stores, tool

RNG = np.random.default_rng(13)
DIMS = ["time", "lat", "lon"]
SHAPE, CHUNKS, SHARDS = (30, 20, 24), (5, 10, 8), (10, 20, 24)
LAT = np.linspace(-90, 90, SHAPE[1])
NAN = float("nan")

PACKED = RNG.integers(-1000, 1000, SHAPE).astype("i2")
PACKED[3, 4, 5] = PACKED[10:20] = -9999  # whole chunks are missing
PLAIN = RNG.normal(size=SHAPE).astype("f4")
PLAIN[0, 0, 0], PLAIN[5, 5, 5] = np.nan, -999
UNPACKED = np.where(PACKED == -9999, np.nan, PACKED * 0.1 + 5.0)

SCHEMA = {name: json.loads((paths.ROOT / "tools" / "schema" / f"{name}.json").read_text()) for name in ("nc2zarr", "rechunk")}
LAYOUTS = {"v2": (2, None), "v3": (3, None), "sharded": (3, SHARDS)}


def base64_of(value):
    return base64.b64encode(np.float64(value).tobytes()).decode()


def number_of(text):
    return float(np.frombuffer(base64.b64decode(text))[0])


def make(path, zarr_format, shards):
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    group.attrs["title"] = "for tests"

    def put(name, data, chunks, fill, dims, **attributes):
        v3 = {"dimension_names": dims, "shards": shards if data.ndim == 3 else None} if zarr_format == 3 else {}
        a = group.create_array(name, shape=data.shape, dtype=data.dtype, chunks=chunks, fill_value=fill, **v3)
        a[...] = data
        a.attrs.update(attributes if zarr_format == 3 else attributes | {"_ARRAY_DIMENSIONS": dims})

    v3 = zarr_format == 3
    packing = {"scale_factor": 0.1, "add_offset": 5.0, "valid_min": -900, "units": "K", "coordinates": "area"}
    put("t", PACKED, CHUNKS, -9999, DIMS, **packing, **({"_FillValue": -9999} if v3 else {}))
    put("f", PLAIN, CHUNKS, 0.0 if v3 else -999.0, DIMS, **({"_FillValue": base64_of(-999)} if v3 else {}))
    put("time", np.arange(SHAPE[0]) * 6.0, SHAPE[:1], 0.0 if v3 else None, DIMS[:1], units="hours since 2000-01-01")
    put("lat", LAT, SHAPE[1:2], 0.0 if v3 else None, DIMS[1:2])
    put("lon", np.arange(SHAPE[2]) * 15.0, SHAPE[2:], 0.0 if v3 else None, DIMS[2:])
    put("area", RNG.normal(size=SHAPE[1:]), SHAPE[1:], 0.0 if v3 else None, DIMS[1:])
    return path


@pytest.fixture(scope="module", params=LAYOUTS)
def source(request, tmp_path_factory):
    return make(tmp_path_factory.mktemp("source") / f"{request.param}.zarr", *LAYOUTS[request.param])


@pytest.fixture(params=[(t, n) for t in ("rechunk", "nc2zarr") for n in (2, 3)], ids=lambda p: f"{p[0]}-v{p[1]}")
def changed(request, source, tmp_path):
    program, zarr_format = request.param

    def run(*options):
        out = tmp_path / "out.zarr"
        done = tool.run(program, "--json", "--verify", "full", "--zarr-format", zarr_format, *options, source, out).ok()
        document = json.loads(done.out)
        jsonschema.Draft202012Validator(SCHEMA[program]).validate(document)
        return zarr.open_group(out, mode="r")

    run.program, run.zarr_format = request.param
    return run


def same(array, want):
    got = np.ascontiguousarray(array[...])
    assert got.dtype == want.dtype and got.shape == want.shape
    assert got.tobytes() == np.ascontiguousarray(want).tobytes()


def missing(array):
    """The value that xarray takes for missing in ARRAY; None: none."""
    if array.metadata.zarr_format == 2:
        return array.fill_value
    value = array.attrs.get("_FillValue")
    return number_of(value) if isinstance(value, str) else value


def dims_of(array):
    if array.metadata.zarr_format == 2:
        return list(array.attrs["_ARRAY_DIMENSIONS"])
    return list(array.metadata.dimension_names)


def test_a_part_by_index_and_by_value(changed):
    out = changed("--subset", "time=3:27:2", "--subset", "lat=-45..45")
    rows = (LAT >= -45) & (LAT <= 45)
    same(out["t"], PACKED[3:27:2][:, rows])
    same(out["f"], PLAIN[3:27:2][:, rows])
    same(out["lat"], LAT[rows])
    same(out["time"], np.arange(30)[3:27:2] * 6.0)
    assert out["t"].fill_value == -9999


def test_a_part_by_date(changed):
    out = changed("--subset", "time=2000-01-02..2000-01-03")
    same(out["f"], PLAIN[4:12])


def test_a_part_in_other_chunks_and_codecs(changed):
    shards = ["--shards", "time=20,lat=full,lon=full"] if changed.zarr_format == 3 else []
    out = changed("--subset", "time=1:29", "--chunks", "time=10,lat=-1,lon=6", "--codec", "zstd:3", *shards)
    same(out["t"], PACKED[1:29])
    assert out["t"].chunks == (10, 20, 6)
    assert out["t"].shards == ((20, 20, 24) if shards else None)


def test_unpacked(changed):
    out = changed("--unpack", "all")
    assert out["t"].dtype == np.float64
    np.testing.assert_allclose(out["t"][...], UNPACKED, rtol=1e-15)
    assert np.isnan(missing(out["t"])) and np.isnan(out["t"].fill_value)
    assert not {"scale_factor", "add_offset", "valid_min"} & set(out["t"].attrs)
    assert out["t"].attrs["units"] == "K"
    same(out["f"], PLAIN)


def test_unpacked_as_float32_in_part(changed):
    out = changed("--unpack", "t", "--dtype", "t:float32", "--subset", "lon=2:20")
    assert out["t"].dtype == np.float32
    np.testing.assert_allclose(out["t"][...], UNPACKED[:, :, 2:20].astype("f4"))


@pytest.mark.every
def test_another_type(changed):
    out = changed("--dtype", "f:float64")
    same(out["f"], PLAIN.astype("f8"))
    assert missing(out["f"]) == -999


def test_rounded(changed):
    out = changed("--keepbits", "f:5")
    got, stays = out["f"][...], np.isnan(PLAIN) | (PLAIN == -999)
    assert not (got.view("u4")[~stays] & (1 << 18) - 1).any()
    np.testing.assert_allclose(got[~stays], PLAIN[~stays], rtol=2**-5)
    assert got[stays].tobytes() == PLAIN[stays].tobytes()


@pytest.mark.every
def test_new_names_everywhere(changed):
    out = changed("--rename", "t=temp", "--rename", "area=cell", "--rename", "lat=y")
    same(out["temp"], PACKED)
    assert sorted(out.array_keys()) == ["cell", "f", "lon", "temp", "time", "y"]
    assert out["temp"].attrs["coordinates"] == "cell"
    for name in ("temp", "f"):
        assert dims_of(out[name]) == ["time", "y", "lon"]
    assert dims_of(out["y"]) == ["y"]


def test_another_fill_value(changed):
    fill = 7 if changed.zarr_format == 3 else 2000  # readers of Zarr 2 mask it: it may be no number of the data
    out = changed("--fill-value", f"t:{fill}", "--fill-value", "f:1.5")
    same(out["t"], PACKED)
    same(out["f"], PLAIN)
    assert (out["t"].fill_value, out["f"].fill_value) == (fill, 1.5)
    if changed.zarr_format == 3:
        assert (missing(out["t"]), missing(out["f"])) == (-9999, -999)


def test_chunks_for_a_sample(changed):
    out = changed("--chunks", "auto:4KiB", "--sample", "time=24,lat=4,lon=4")
    same(out["t"], PACKED)
    assert out["t"].chunks[0] > out["t"].chunks[1]


@pytest.mark.every
def test_left_out(changed):
    out = changed("--exclude", "f,area")
    assert sorted(out.array_keys()) == ["lat", "lon", "t", "time"]
    same(out["t"], PACKED)


@pytest.mark.parametrize(
    "chunks, want",
    [
        ("time=full,lat=source,lon=6", (30, 10, 6)),
        ("time=-1,lat=same,lon=source", (30, 10, 8)),
        ("-1xsamexsource", (30, 10, 8)),
        ("t:lat=source,time=3,lon=full", (3, 10, 24)),
    ],
)
def test_a_dimension_that_stays(changed, chunks, want):
    out = changed("--chunks", chunks)
    same(out["t"], PACKED)
    assert out["t"].chunks == want


# ---- what is not understood can only stay


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def foreign(request, tmp_path):
    path = make(tmp_path / "in.zarr", request.param, None)
    document = path / "f" / (".zarray" if request.param == 2 else "zarr.json")
    words = json.loads(document.read_text())
    if request.param == 2:
        words["compressor"] = {"id": "weird"}
    else:
        words["codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "weird"}]
    document.write_text(json.dumps(words))
    return path, request.param


REFUSED = [
    ["--subset", "time=0:5"],
    ["--rename", "lat=y"],
    ["--dtype", "f:float64"],
    ["--keepbits", "f:3"],
    ["--unpack", "f"],
    ["--fill-value", "f:0"],
]


@pytest.mark.parametrize("options", REFUSED, ids=" ".join)
@pytest.mark.parametrize("program", ["rechunk", "nc2zarr"])
def test_an_unknown_codec_is_not_left_as_it_was_beside_what_changed(foreign, program, options, tmp_path):
    path, zarr_format = foreign
    out = tmp_path / "out.zarr"
    done = tool.run(program, "--zarr-format", zarr_format, *options, path, out)
    done.fails(1, "array f", "as it is", "weird")
    assert not out.exists()


@pytest.mark.parametrize("options", [["--dtype", "float64"], ["--keepbits", "5"]], ids=" ".join)
def test_what_is_asked_of_all_is_said_not_to_be_done(foreign, options, tmp_path):
    path, zarr_format = foreign
    out = tmp_path / "out.zarr"
    done = tool.run("rechunk", *options, path, out).ok()
    assert any("array f keeps its elements" in line for line in done.warnings)
    assert sorted(p.name for p in (out / "f").rglob("*")) == sorted(p.name for p in (path / "f").rglob("*"))


# ---- nc2zarr of a store


def test_a_store_has_no_default_output(source, tmp_path):
    tool.run("nc2zarr", source).fails(2, "name the output")
    tool.run("nc2zarr", f"{source}::t").fails(2, "name the output")


def test_a_folder_that_is_no_store(tmp_path):
    (tmp_path / "files").mkdir()
    tool.run("nc2zarr", tmp_path / "files", tmp_path / "o.zarr").fails(1, "holds no file")


def test_a_store_is_compared_with_itself_and_no_file(source, tmp_path):
    out = tmp_path / "o.zarr"
    options = ["--subset", "time=3:9", "--unpack", "all", "--rename", "f=g"]
    done = tool.nc2zarr("--verify", "full", *options, source, out).ok()
    assert "libnetcdf" not in done.out and "input 0 B" not in done.out
    done = tool.nc2zarr("--check", *options, source, out).ok()
    assert "Compared against the source" in done.out
    zarr.open_array(out / "t", mode="r+")[1, 1, 1] = 12345
    done = tool.nc2zarr("--check", *options, source, out)
    assert done.status == 3 and "t: element 1/1/1" in done.err and "file" not in done.err


# ---- rechunk of a file


@pytest.fixture(scope="module", params=["NETCDF3_CLASSIC", "NETCDF4"])
def netcdf(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("netcdf") / "in.nc"
    with netCDF4.Dataset(path, "w", format=request.param) as nc:
        for name, n in zip([*DIMS, "n"], [*SHAPE, 6]):
            nc.createDimension(name, n)
        more = {"zlib": True, "chunksizes": CHUNKS} if request.param == "NETCDF4" else {}
        v = nc.createVariable("t", "i2", DIMS, fill_value=-9999, **more)
        v.set_auto_maskandscale(False)
        v.scale_factor, v.add_offset = 0.1, 5.0
        v[...] = PACKED
        nc.createVariable("name", "S1", ("lat", "n"))[...] = np.frombuffer(b"abcdef" * SHAPE[1], "S1").reshape(-1, 6)
    return path


LAYOUT_OPTIONS = [
    [],
    ["--chunks", "source"],
    ["--chunks", "time=full,lat=source,lon=6"],
    ["--codec", "zstd:1"],
    ["--zarr-format", "2"],
    ["--chunks", "time=10,lat=10,lon=8", "--shards", "time=20,lat=20,lon=24"],
]


@pytest.mark.parametrize("options", LAYOUT_OPTIONS, ids=" ".join)
def test_a_file_in_other_layouts(netcdf, options, tmp_path):
    out = tmp_path / "o.zarr"
    done = tool.run("rechunk", "--json", "--verify", "full", *options, netcdf, out).ok()
    document = json.loads(done.out)
    jsonschema.Draft202012Validator(SCHEMA["rechunk"]).validate(document)
    group = zarr.open_group(out, mode="r")
    same(group["t"], PACKED)
    assert b"".join(group["name"][...].ravel().tolist()) == b"abcdef" * SHAPE[1]


def test_a_files_compressed_bytes_stay_where_its_chunks_do(netcdf, tmp_path):
    plans = []
    for i, options in enumerate([[], ["--chunks", "source"], ["--chunks", "source", "--codec", "same"]]):
        done = tool.run("rechunk", "--json", *options, netcdf, tmp_path / f"{i}.zarr").ok()
        plans.append({a["name"]: a["plan"]["kind"] for a in json.loads(done.out)["arrays"]})
    assert plans[0] == plans[1] == plans[2]
    assert plans[0]["t"] == ("copy" if netCDF4.Dataset(netcdf).data_model == "NETCDF4" else "sweep")


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("program", ["rechunk", "nc2zarr"])
def test_maps_to_series_in_little_memory(program, tmp_path):
    """Equal digests with and without room: what does not fit goes through files, and the limit holds."""
    path, shape = tmp_path / "in.nc", (192, 256, 256)
    with netCDF4.Dataset(path, "w") as nc:
        for name, n in zip(DIMS, shape):
            nc.createDimension(name, n)
        v = nc.createVariable("z", "f4", DIMS, chunksizes=(1, 256, 256))
        v[...] = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    (tmp_path / "scratch").mkdir()
    found = {}
    for memory in ("2GiB", "48MiB"):
        options = ["--json", "--verify", "full", "-j", "2", "--memory", memory, "--scratch", tmp_path / "scratch"]
        out = tmp_path / f"{memory}.zarr"
        done = tool.run(program, *options, "--chunks", "time=full,lat=32,lon=32", path, out).ok()
        document = json.loads(done.out)
        jsonschema.Draft202012Validator(SCHEMA[program]).validate(document)
        if not paths.SANITIZED:
            assert document["memory"]["peak_nbytes"] <= document["memory"]["limit_nbytes"]
        found[memory] = stores.digests(out)
    assert found["2GiB"] == found["48MiB"]
    assert not list((tmp_path / "scratch").iterdir())
