"""nc2zarr --virtual: references are the file, for xarray through fsspec and for our own tools."""

import ctypes
import ctypes.util
import glob
import json
import os

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from support import paths, stores, tool

FILES = sorted(
    path for folder in ("netcdf", "hdf5") for path in glob.glob(str(paths.SHARED / "data" / folder / "*"))
)

# One has compound types alone, the other no variable.
NOTHING_TO_REFER_TO = {"ref_tst_compounds.nc", "ref_tst_dims.nc"}


def virtual(*args):
    # The verification reads through libnetcdf, which needs the filters of some files.
    env = {"HDF5_PLUGIN_PATH": os.environ["HDF5_PLUGIN_PATH"]}
    return tool.run("nc2zarr", "--virtual", "json", *args, env=env)


def refs(path):
    return json.loads(path.read_text())["refs"]


def opened(path, **kw):
    return xr.open_dataset(
        "reference://",
        engine="zarr",
        backend_kwargs={"consolidated": False, "storage_options": {"fo": str(path), "remote_protocol": "file"}},
        **kw,
    )


def same(file, out, names):
    with opened(out, decode_cf=False) as ours, xr.open_dataset(file, decode_cf=False) as theirs:
        for name, var in theirs.variables.items():
            if name not in names:
                continue  # named when it was left out
            np.testing.assert_array_equal(ours[name].values, var.values, err_msg=name)


def stored(source):
    """Each variable of a file as it is stored, by its path."""
    with netCDF4.Dataset(source) as ds:
        ds.set_auto_maskandscale(False)
        ds.set_auto_chartostring(False)
        groups = [ds]
        for group in groups:
            groups += group.groups.values()
            for name, var in group.variables.items():
                yield f"{group.path}/{name}".strip("/"), var[...]


@pytest.mark.parametrize("source", FILES, ids=os.path.basename)
def test_zarr_python_reads_the_file(source, tmp_path):
    out = tmp_path / "refs.json"
    virtual("--skip-unsupported", source, out).ok()
    names = set(stores.digests(out, *stores.allow(os.path.dirname(source))))
    group = zarr.open_group(
        "reference://", mode="r", zarr_format=2, storage_options={"fo": str(out), "remote_protocol": "file"}
    )
    seen = 0
    for name, values in stored(source):
        if name in names:  # others were named when they were left out
            np.testing.assert_array_equal(group[name][...], values, err_msg=name)
            seen += 1
    assert seen == len(names)
    assert names or os.path.basename(source) in NOTHING_TO_REFER_TO


@pytest.mark.parametrize("source", FILES, ids=os.path.basename)
def test_references_are_the_file(source, tmp_path):
    out = tmp_path / "refs.json"
    virtual("--skip-unsupported", "--verify", "full", source, out).ok()
    ours, file = stores.digests(out, *stores.allow(os.path.dirname(source))), stores.digests(source, partial=True)
    assert ours == {name: file[name] for name in ours}
    try:
        xr.open_dataset(source, decode_cf=False).close()
    except Exception as e:
        pytest.skip(f"xarray does not open the file: {e}")
    same(source, out, names=set(ours))


@pytest.fixture
def fields(tmp_path):
    path = tmp_path / "in" / "fields.nc"
    path.parent.mkdir()
    rng = np.random.default_rng(7)
    t = rng.normal(size=(12, 60, 80)).astype("f4")
    xr.Dataset({"t": (("time", "y", "x"), t)}, coords={"time": np.arange(12)}).to_netcdf(
        path, encoding={"t": {"chunksizes": (4, 20, 40), "zlib": True, "shuffle": True}}
    )
    return path


@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF3_64BIT_OFFSET"])
def test_rows_of_a_file_that_begins_within_another(tmp_path, form):
    """Of the second file, the rows from the third on are referred to: in one piece, and in records."""
    for i, first in enumerate((0, 4)):
        with netCDF4.Dataset(tmp_path / f"{i}.nc", "w", format=form) as ds:
            ds.createDimension("time", 6 if form == "NETCDF4" else None)
            ds.createDimension("x", 5000)
            ds.createVariable("time", "i4", ("time",))[:] = np.arange(first, first + 6)
            rows = np.arange(first, first + 6)[:, None] * 5000 + np.arange(5000)
            ds.createVariable("v", "f4", ("time", "x"))[:] = rows
    files, out = [tmp_path / "0.nc", tmp_path / "1.nc"], tmp_path / "refs.json"
    doc = json.loads(virtual("--json", "--overlap", "first", "--verify", "none", *files, out).ok().out)
    assert doc["output"]["nreferences"] > 1
    with opened(out) as ds:
        np.testing.assert_array_equal(ds["v"].values, np.arange(10)[:, None] * 5000 + np.arange(5000))


def test_what_is_written(fields, tmp_path):
    out = tmp_path / "refs.json"
    doc = json.loads(virtual("--json", fields, out).ok().out)
    found = refs(out)
    ranges = {k: v for k, v in found.items() if isinstance(v, list)}
    assert set(ranges) == {f"t/{i}.{j}.{k}" for i in range(3) for j in range(3) for k in range(2)}
    assert all(url == str(fields) and n > 0 for url, _, n in ranges.values())
    assert found["time/0"].startswith("base64:")
    assert (doc["output"]["nreferences"], doc["output"]["ninline"]) == (18, 1)
    assert json.loads(found["t/.zarray"])["chunks"] == [4, 20, 40]


@pytest.mark.parametrize(
    "base, url",
    [
        ("s3://bucket/a/", "s3://bucket/a/sub dir/fields.nc"),
        ("https://host/a", "https://host/a/sub%20dir/fields.nc"),
    ],
)
def test_a_base_url_stands_for_the_folder_of_all_files(fields, tmp_path, base, url):
    source = fields.parent / "sub dir" / "fields.nc"
    source.parent.mkdir()
    fields.rename(source)
    out = tmp_path / "refs.json"
    virtual("--base-url", base, source, out).ok()
    # One file: its own folder is the folder of all.
    assert {v[0] for v in refs(out).values() if isinstance(v, list)} == {url.replace("sub dir/", "").replace("sub%20dir/", "")}


def test_only_references_of_ours_are_replaced(fields, tmp_path):
    out = tmp_path / "refs.json"
    out.write_text("somebody's notes")
    r = virtual(fields, out)
    assert r.status == 1 and out.read_text() == "somebody's notes"
    assert "exists and is not a document of references that Chunkmill wrote" in r.err and "--overwrite" in r.err
    virtual("--overwrite", fields, out).ok()
    virtual(fields, out).ok()  # what is there is ours
    r = virtual("--overwrite", fields, fields)
    assert r.status != 0 and netCDF4.Dataset(fields)["t"].shape == (12, 60, 80)


@pytest.mark.every
@pytest.mark.parametrize(
    "args",
    [["--chunks", "time=1"], ["--codec", "zstd"], ["--dtype", "float64"], ["--subset", "time=0:2"], ["--zarr-format", "3"], ["--resume"], ["--append", "time"]],
    ids=lambda a: a[0],
)
def test_what_changes_bytes_is_refused(fields, tmp_path, args):
    r = virtual(*args, fields, tmp_path / "refs.json")
    assert r.status == 2 and args[0] in r.err and "not built" not in r.err
    assert not (tmp_path / "refs.json").exists()


def test_parquet_is_refused(fields, tmp_path):
    r = tool.run("nc2zarr", "--virtual", "parquet", fields, tmp_path / "refs.parq")
    assert r.status == 2 and "json" in r.err and not (tmp_path / "refs.parq").exists()


def test_a_dry_run_writes_nothing(fields, tmp_path):
    virtual("--dry-run", fields, tmp_path / "refs.json").ok()
    assert not (tmp_path / "refs.json").exists()


def test_what_is_not_stored_keeps_its_value(tmp_path):
    path, out = tmp_path / "sparse.h5", tmp_path / "refs.json"
    with h5py.File(path, "w") as f:
        d = f.create_dataset("t", (100, 300), "i4", chunks=(10, 300), fillvalue=-7)
        d[20:30] = 5
    r = virtual(path, out).ok()
    assert len(r.warnings) == 1 and "xarray shows as missing" in r.warnings[0]
    assert sum(k.startswith("t/") and isinstance(v, list) for k, v in refs(out).items()) == 1
    assert stores.digests(out)["t"] == stores.digests(path)["t"]


@pytest.mark.long(ci=1)
def test_filters_left_out_for_a_chunk_are_named(tmp_path):
    path = tmp_path / "masked.h5"
    with h5py.File(path, "w") as f:
        d = f.create_dataset("t", (4000, 2000), "f8", chunks=(1000, 2000), compression="gzip")
        for i in range(4):
            d.id.write_direct_chunk((1000 * i, 0), np.full((1000, 2000), i, "f8").tobytes(), filter_mask=1)
    r = virtual(path, tmp_path / "refs.json")
    # 61 MiB may still stand in the document; twice as much may not.
    assert r.status in (0, 1)
    with h5py.File(path, "a") as f:
        d = f.create_dataset("u", (8000, 2000), "f8", chunks=(1000, 2000), compression="gzip")
        for i in range(8):
            d.id.write_direct_chunk((1000 * i, 0), np.full((1000, 2000), i, "f8").tobytes(), filter_mask=1)
    r = virtual("--overwrite", path, tmp_path / "refs.json")
    assert r.status == 1 and "filters were left out" in r.err and "u" in r.err


def test_materialised_references_are_the_conversion(fields, tmp_path):
    virtual(fields, tmp_path / "refs.json").ok()
    tool.run("rechunk", "--chunks", "time=12,y=20,x=20", tmp_path / "refs.json", tmp_path / "out.zarr").ok()
    assert stores.digests(tmp_path / "out.zarr") == stores.digests(fields)


CHANGES = {
    "other values": lambda p: touched(p, lambda b: b[:-8] + bytes(8), 10**9),
    "longer": lambda p: touched(p, lambda b: b + b"x", 0),
    "touched": lambda p: touched(p, lambda b: b, 60 * 10**9),
    "older": lambda p: touched(p, lambda b: b, -60 * 10**9),
}


def touched(path, change, ns):
    """PATH with other bytes, and a time of change that is NS later."""
    before = path.stat().st_mtime_ns
    path.write_bytes(change(path.read_bytes()))
    os.utime(path, ns=(before + ns, before + ns))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("many", [False, True])
def test_a_file_that_changed_is_an_error(tmp_path, change, many):
    """With its name, and for every tool: what is referred to are bytes at addresses that no longer mean what they did."""
    folder = tmp_path / "in"
    folder.mkdir()
    inputs = []
    for i in range(1 + many):
        inputs.append(folder / f"{i} %{{}}.nc")
        with netCDF4.Dataset(inputs[-1], "w") as ds:
            ds.createDimension("time", None)
            ds.createDimension("x", 20000)
            ds.createVariable("time", "i4", ("time",))[:] = [2 * i, 2 * i + 1]
            ds.createVariable("v", "f8", ("time", "x"), chunksizes=(1, 20000))[:] = np.arange(40000.0).reshape(2, -1) + i
    out = tmp_path / "refs.json"
    virtual(*inputs, out).ok()
    assert [f[0] for f in json.loads(out.read_text())["files"]] == [str(p) for p in inputs]
    at = inputs[-1].stat().st_mtime_ns
    os.utime(inputs[-1], ns=(at, at // 10**9 * 10**9))  # as tar restores it
    tool.run("rechunk", "--digest", out).ok()
    os.utime(inputs[-1], ns=(at, at))
    CHANGES[change](inputs[-1])
    told = ("v/", inputs[-1].name, "has changed since the references to it were made")
    tool.run("rechunk", out, tmp_path / "new.zarr").fails(1, *told)
    tool.run("rechunk", "--digest", out).fails(1, *told)
    r = tool.run("nc2zarr", "--check", *inputs, out)
    assert r.status == 3 and told[2] in r.err, str(r)
    r = tool.run("readbench", "--no-out", "--variable", "v", "--sample", "time=1", out)
    assert r.status == 1 and told[2] in r.err, str(r)
    virtual("--verify", "full", *inputs, out).ok()  # made anew
    tool.run("rechunk", "--digest", out).ok()


def gdal():
    """GDAL's library, of CHUNKMILL_GDAL or the system, that reads references: from 3.11 on."""
    name = os.environ.get("CHUNKMILL_GDAL") or ctypes.util.find_library("gdal")
    if name is None:
        pytest.skip("GDAL is not installed")
    lib = ctypes.CDLL(name)
    lib.GDALVersionInfo.restype = ctypes.c_char_p
    version = lib.GDALVersionInfo(b"RELEASE_NAME").decode()
    if tuple(map(int, version.split(".")[:2])) < (3, 11):
        pytest.skip(f"GDAL {version} does not read references; 3.11 does")
    lib.GDALOpenEx.restype = lib.GDALGetRasterBand.restype = ctypes.c_void_p
    lib.GDALOpenEx.argtypes = [ctypes.c_char_p, ctypes.c_uint, *[ctypes.c_void_p] * 3]
    lib.GDALGetRasterBand.argtypes = [ctypes.c_void_p, ctypes.c_int]
    lib.GDALClose.argtypes = [ctypes.c_void_p]
    lib.GDALRasterIO.argtypes = [ctypes.c_void_p, *[ctypes.c_int] * 5, ctypes.c_void_p, *[ctypes.c_int] * 5]
    lib.GDALAllRegister()
    return lib


def test_gdal_reads_them(fields, tmp_path):
    lib = gdal()
    virtual(fields, tmp_path / "refs.json").ok()
    with netCDF4.Dataset(fields) as ds:
        field = ds["t"][:]
    for step, expected in enumerate(field):
        name = f'ZARR:"/vsikerchunk_json_ref/{{{tmp_path / "refs.json"}}}":/t:{step}'
        data = lib.GDALOpenEx(name.encode(), 2, None, None, None)
        assert data, name
        found = np.empty(expected.shape, "f4")
        ny, nx = expected.shape
        band = lib.GDALGetRasterBand(data, 1)
        assert lib.GDALRasterIO(band, 0, 0, 0, nx, ny, found.ctypes.data, nx, ny, 6, 0, 0) == 0  # GDT_Float32
        np.testing.assert_array_equal(found, expected)
        lib.GDALClose(data)
