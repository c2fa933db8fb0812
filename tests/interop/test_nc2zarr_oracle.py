"""Stores of nc2zarr, read back by everything else and held against their files."""

import importlib.util
import itertools
import json
import sys
import zlib

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from support import nc_equals_zarr, paths, readers, store_lint, tool

OPTIONS = {
    "default": [],
    "v2": ["--zarr-format", "2"],
    "shards": ["--shards", "auto"],
    "small_chunks": ["--chunks", "auto:8KiB", "-j", "4"],
    "source_chunks": ["--chunks", "source"],
    "gzip": ["--codec", "gzip"],
    "zstd": ["--codec", "zstd", "-j", "1"],
    "none": ["--codec", "none"],
    "v2_gzip": ["--zarr-format", "2", "--codec", "gzip:1", "--chunks", "auto:32KiB"],
    "v2_zstd": ["--zarr-format", "2", "--codec", "zstd:7", "-j", "2"],
    "v2_none": ["--zarr-format", "2", "--codec", "none", "--chunks", "source"],
    "small_shards": ["--chunks", "auto:4KiB", "--shards", "auto:64KiB", "-j", "4"],
    "bitshuffle": ["--codec", "blosc:lz4:5:bitshuffle"],
    "noshuffle": ["--codec", "blosc:zlib:1:noshuffle", "--chunks", "auto:100KiB"],
    "tight": ["--memory", "96MiB", "-j", "2"],
    "sharded_gzip": ["--codec", "gzip:9", "--chunks", "auto:16KiB", "--shards", "auto"],
    "verified": ["--verify", "full"],
    "keep": ["--codec", "keep"],
    "keep_v2": ["--codec", "keep", "--zarr-format", "2"],
    "keep_gzip": ["--codec", "keep:gzip", "-j", "2"],
    "keep_shards": ["--codec", "keep", "--shards", "auto"],
}
# These hold types that are refused.
SHARED_UNSUPPORTED = {"ref_tst_compounds.nc"}


def shared_oracle():
    source = paths.SHARED / "oracle" / "nc_equals_zarr.py"
    if not source.exists():
        return None
    spec = importlib.util.spec_from_file_location("shared_oracle", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ORACLE = shared_oracle()


def oracle_differences(path, store, decoded):
    """Output of the independent oracle, if it is installed."""
    import netCDF4
    import zarr

    ORACLE.problems.clear()
    with netCDF4.Dataset(str(path)) as nc:
        ORACLE.compare_group("", nc, zarr.open_group(str(store), mode="r"), {})
    if decoded:
        ORACLE.compare_decoded(str(path), str(store))
    return [f"oracle: {p}" for p in ORACLE.problems]


def xarray_opens(path):
    """Whether xarray shows the file itself; a store cannot do better."""
    import xarray

    try:
        xarray.open_dataset(path, decode_cf=False).close()
        return True
    except Exception:
        return False


def problems_of(path, store, oracle=True, complete=True, kept=False):
    found = store_lint.lint(store)
    independent = ORACLE and oracle is True  # then it compares the values
    if oracle:
        found += nc_equals_zarr.differences(path, store, values=not independent,
                                          decoded=not independent and oracle != "raw")
    if independent:
        found += oracle_differences(path, store, decoded=complete)
    return found + readers.disagreements(store, xarray_opens(path), kept)


def check(path, store, options, entry):
    done = tool.nc2zarr(*options, *entry["args"], path, store)
    if entry["expect"] == "refused" or entry["expect"] == "unsupported" or entry["expect"] == "either" and done.status:
        done.fails(1, path.name, *([entry["word"]] if entry["word"] else []))
        assert not tool.opens_as_store(store), str(done)
        if entry["expect"] != "unsupported":
            return
        done = tool.nc2zarr("--skip-unsupported", *options, path, store)
        assert entry["word"] in done.out + done.err, f"what was left out is not named:\n{done}"
    if done.status == 1 and "full" in options and "netCDF-C lacks filter" in done.err:
        # Without its filter, data cannot be verified through libnetcdf.  The store is there.
        done.fails(1, path.name, "filter")
    else:
        done.ok()
    if entry["warns"] and "2" not in options:
        assert any(entry["warns"] in w for w in done.warnings), f"no warning names {entry['warns']!r}:\n{done}"
    found = problems_of(
        path,
        store,
        entry["oracle"],
        complete=entry["expect"] != "unsupported",
        kept=any(o.startswith("keep") for o in options),
    )
    assert not found, "\n".join(found[:20]) + f"\n{done}"


# ---- the corpus: each file with two sets of options, all sets in turn ----


def corpus():
    entries = json.loads(paths.MANIFEST.read_text())["files"] if paths.MANIFEST.exists() else []
    turn = itertools.cycle(OPTIONS)
    return [
        pytest.param(e, kind, id=f"{e['file']}-{kind}", marks=[pytest.mark.engine] if i % 25 == 0 else [])
        for i, e in enumerate(entries)
        for kind in (next(turn), next(turn))
    ]


@pytest.mark.parametrize("entry, kind", corpus())
def test_corpus(entry, kind, out):
    check(paths.CORPUS / entry["file"], out, OPTIONS[kind], entry)


@pytest.mark.engine
@pytest.mark.parametrize(
    "options",
    [
        ["-j", "8", "--chunks", "auto:2KiB", "--shards", "auto:64KiB"],
        ["-j", "8", "--codec", "gzip", "--chunks", "auto:4KiB"],
        ["-j", "3", "--chunks", "source", "--verify", "full"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "file",
    [
        "chunks_default.nc",
        "chunks_many.nc",
        "chunks_series.nc",
        "interleaved_cdf5.nc",
        "masks_v110.h5",
        "strings_shapes.nc",
    ],
)
def test_many_threads(file, options, out):
    check(
        paths.CORPUS / file,
        out,
        options,
        {"expect": "converts", "word": None, "warns": None, "oracle": True, "args": []},
    )


# ---- real files, where they are: each with what users ask for most, and one or two sets more ----

FREQUENT = ["default", "v2", "shards", "small_chunks", "gzip", "zstd", "none"]


def many_chunks(name, kind):
    """Seven thousand chunks take zarr-python ten seconds."""
    return [pytest.mark.long] if name.startswith("psl_EUR-11") and kind == "source_chunks" else []


def shared():
    turn = itertools.cycle(k for k in OPTIONS if k not in FREQUENT)
    return [
        pytest.param(*p.values, kind, id=f"{p.id}-{kind}", marks=[*p.marks, *many_chunks(p.id, kind)])
        for p in paths.shared_files("netcdf", "hdf5")
        for kind in (*FREQUENT, next(turn), next(turn))
    ]


@pytest.mark.parametrize("path, kind", shared())
def test_shared(path, kind, out):
    entry = {
        "expect": "unsupported" if path.name in SHARED_UNSUPPORTED else "converts",
        "word": "",
        "warns": None,
        "oracle": True,
        "args": [],
    }
    check(path, out, OPTIONS[kind], entry)


# ---- GDAL ----


def numeric_v2():
    names = [
        "type_cdf5_i2.nc",
        "type_nc4_f4.nc",
        "type_nc4_u4.nc",
        "type_cdf1_f8.nc",
        "era5_nc4.nc",
        "packed_f4_nc4.nc",
    ]
    turn = itertools.cycle(["blosc:zstd:2:shuffle", "gzip", "zstd", "none"])
    files = [pytest.param(paths.CORPUS / n, id=n) for n in names] + paths.shared_files("netcdf")
    return [pytest.param(*f.values, next(turn), id=f.id, marks=f.marks) for f in files]


@pytest.mark.skipif(not readers.have_gdal(), reason="gdalmdiminfo is not installed")
@pytest.mark.parametrize("path, codec", numeric_v2())
def test_gdal(path, codec, out):
    tool.nc2zarr("--zarr-format", "2", "--skip-unsupported", "--codec", codec, path, out).ok()
    found = readers.gdal_disagreements(out)
    assert not found, "\n".join(found)


if __name__ == "__main__":  # one file by hand: test_nc2zarr_oracle.py FILE STORE
    print("\n".join(problems_of(*sys.argv[1:3])) or "no differences")


@pytest.mark.parametrize("dtype", ["i2", "f4", "f8", "u1"])
@pytest.mark.every
def test_keep_gzip_of_either_byte_order(dtype, tmp_path):
    """gzip's checksum is of the stored bytes: big-endian chunks are recoded, others wrapped."""
    values = np.arange(800).reshape(8, 100).astype(dtype)
    for endian in ("big", "little"):
        with netCDF4.Dataset(tmp_path / "in.nc", "w") as nc:
            nc.createDimension("y", 8), nc.createDimension("x", 100)
            nc.createVariable("v", dtype, ("y", "x"), zlib=True, shuffle=False, chunksizes=(4, 100), endian=endian)[:] = values
        tool.nc2zarr("-q", "--overwrite", "--codec", "keep:gzip", "--verify", "none", tmp_path / "in.nc", tmp_path / "o.zarr").ok()
        assert np.array_equal(zarr.open_array(str(tmp_path / "o.zarr"), path="v", mode="r")[:], values), endian


def test_bytes_behind_a_zlib_stream_are_not_taken_for_its_end(tmp_path):
    """HDF5 ignores them; a gzip member that held them would be damaged."""
    data = np.arange(64, dtype="<i4")
    with h5py.File(tmp_path / "in.nc", "w") as f:
        v = f.create_dataset("v", shape=(64,), chunks=(64,), dtype="<i4", compression="gzip")
        v.id.write_direct_chunk((0,), zlib.compress(data.tobytes()) + b"more")
    tool.nc2zarr("-q", "--codec", "keep:gzip", "--verify", "none", tmp_path / "in.nc", tmp_path / "o.zarr").ok()
    assert np.array_equal(zarr.open_group(tmp_path / "o.zarr", mode="r")["v"][...], data)
