"""The census of a store: planted faults are found, each as what it is, and clean stores have none; in folders and buckets."""
import json
import math
import os
import re
import shutil
import struct
import warnings

import google_crc32c
import jsonschema
import netCDF4
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, ZstdCodec

from support import objects, paths, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "chunkcalc.json").read_text())
KINDS = ("absent", "left_out", "empty", "truncated", "undecodable")


def census(store, *options, env=None):
    result = tool.run("chunkcalc", "--json", *options, store, env=env).ok()
    document = json.loads(result.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document["census"]


def holes(found):
    """{"t2m absent": (4, ["1/0/0", ...])} of all that is not there or not right."""
    return {f"{a['name']} {k}": (a[k]["nchunks"], a[k]["chunks"]) for a in found["arrays"] for k in KINDS if a[k]["nchunks"] > 0}


def foreign(found):
    return {o["key"]: o["why"] for o in found["foreign"]["objects"]}


def consolidate(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(str(path))


# ---- planted faults -------------------------------------------------------------------------------

FIELD = np.random.default_rng(3).normal(size=(4, 4, 4)).astype("f4") + 9
SQUARE = np.arange(1, 65, dtype="i4").reshape(8, 8)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Arrays whose chunks are compressed with a checksum, raw, and in shards with their index at either end."""
    path = tmp_path_factory.mktemp("census") / "whole.zarr"
    root = zarr.open_group(str(path), mode="w", zarr_format=3)
    root.create_array("t2m", shape=(4, 4, 4), chunks=(1, 2, 2), dtype="f4", compressors=ZstdCodec(checksum=True))[:] = FIELD
    root.create_array("raw", shape=(8, 8), chunks=(4, 4), dtype="i4", compressors=None)[:] = SQUARE
    root.create_array("sum", shape=(8, 8), chunks=(4, 4), dtype="i4", compressors=Crc32cCodec())[:] = SQUARE
    root.create_array("sh", shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="i4", compressors=ZstdCodec(checksum=True))[:] = SQUARE
    inner = ShardingCodec(
        chunk_shape=(2, 2), codecs=[BytesCodec(), ZstdCodec(checksum=True)], index_codecs=[BytesCodec()], index_location="start"
    )
    root.create_array("front", shape=(8, 8), chunks=(4, 4), dtype="i4", serializer=inner, compressors=None)[:] = SQUARE
    root.create_group("deep").create_array("lat", shape=(4,), chunks=(2,), dtype="f8", compressors=GzipCodec())[:] = np.arange(1, 5)
    consolidate(path)
    return path


def gone(key):
    return lambda at: shutil.rmtree(at / key) if (at / key).is_dir() else (at / key).unlink()


def cut(key, nbytes):
    """To so many bytes, or by so many."""
    return lambda at: os.truncate(at / key, nbytes if nbytes >= 0 else (at / key).stat().st_size + nbytes)


def put(key, data=b"?"):
    def plant(at):
        (at / key).parent.mkdir(parents=True, exist_ok=True)
        (at / key).write_bytes(data)

    return plant


def flip(key, place):
    def plant(at):
        data = bytearray((at / key).read_bytes())
        data[place] ^= 0x55
        (at / key).write_bytes(data)

    return plant


def move(key, to):
    def plant(at):
        (at / to).parent.mkdir(parents=True, exist_ok=True)
        (at / key).rename(at / to)

    return plant


def copy(key, to):
    def plant(at):
        (at / to).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (at / key).is_dir() else shutil.copy)(at / key, at / to)

    return plant


def entry(key, number, offset, nbytes, at_end):
    """An entry of a shard's index that says something else, with the right checksum."""

    def plant(at):
        data = bytearray((at / key).read_bytes())
        index = len(data) - 4 * 16 - 4 if at_end else 0
        struct.pack_into("<QQ", data, index + 16 * number, offset, nbytes)
        if at_end:
            struct.pack_into("<I", data, len(data) - 4, google_crc32c.value(bytes(data[index:-4])))
        (at / key).write_bytes(data)

    return plant


NONE = 2**64 - 1
ALL_T2M = [f"{i}/{j}/{k}" for i in range(4) for j in range(2) for k in range(2)]

# name: (what is done, the holes, the foreign objects, whether every chunk must be decoded for it)
FAULTS = {
    "a chunk": (gone("t2m/c/1/0/0"), {"t2m absent": (1, ["1/0/0"])}, {}, False),
    "a folder of chunks": (gone("t2m/c/1"), {"t2m absent": (4, ALL_T2M[4:8])}, {}, False),
    "all chunks": (gone("t2m/c"), {"t2m absent": (16, ALL_T2M)}, {}, False),
    "an array": (gone("t2m"), {"t2m absent": (16, ALL_T2M)}, {}, False),
    "a chunk of a deep array": (gone("deep/lat/c/1"), {"deep/lat absent": (1, ["1"])}, {}, False),
    "a shard": (gone("sh/c/0/1"), {"sh absent": (4, ["shard 0/1"])}, {}, False),
    "an entry of an index": (entry("sh/c/1/1", 2, NONE, NONE, True), {"sh left_out": (1, ["3/2"])}, {}, False),
    "an entry of no bytes": (entry("sh/c/1/1", 2, 0, 0, True), {"sh empty": (1, ["3/2"])}, {}, False),
    "an entry that leaves the shard": (entry("front/c/0/1", 1, 90, 10**9, False), {"front truncated": (1, ["0/3"])}, {}, False),
    "an empty object": (cut("t2m/c/3/1/1", 0), {"t2m empty": (1, ["3/1/1"])}, {}, False),
    "an empty shard": (cut("sh/c/0/0", 0), {"sh empty": (4, ["shard 0/0"])}, {}, False),
    "a truncated object": (cut("raw/c/0/1", 60), {"raw truncated": (1, ["0/1"])}, {}, False),
    "a truncated compressed object": (cut("t2m/c/0/0/1", 12), {"t2m undecodable": (1, ["0/0/1"])}, {}, True),
    "a shard without its end": (cut("sh/c/1/0", 100), {"sh undecodable": (4, ["shard 1/0"])}, {}, False),
    "a shard shorter than its index": (cut("sh/c/1/0", 20), {"sh truncated": (4, ["shard 1/0"])}, {}, False),
    "a shard without its last chunk": (cut("front/c/1/1", -3), {"front truncated": (1, ["3/3"])}, {}, False),
    "a damaged index": (flip("sh/c/0/0", -20), {"sh undecodable": (4, ["shard 0/0"])}, {}, False),
    "flipped bits of a compressed chunk": (flip("t2m/c/2/0/0", 14), {"t2m undecodable": (1, ["2/0/0"])}, {}, True),
    "flipped bits of a checksummed chunk": (flip("sum/c/1/0", 3), {"sum undecodable": (1, ["1/0"])}, {}, True),
    "flipped bits within a shard": (flip("sh/c/0/0", 8), {"sh undecodable": (1, ["0/0"])}, {}, True),
    "a chunk of another shape": (put("raw/c/1/1", bytes(256)), {"raw undecodable": (1, ["1/1"])}, {}, False),
    "a compressed chunk of another shape": (
        copy("deep/lat/c/0", "t2m/c/1/1/1"), {"t2m undecodable": (1, ["1/1/1"])}, {}, True,
    ),
    "a page of HTML": (put("t2m/c/0/1/0", b"<html>403 Forbidden</html>"), {"t2m undecodable": (1, ["0/1/0"])}, {}, True),
    "a file of a person": (put("README.md"), {}, {"README.md": "no part of a group"}, False),
    "a file in an array": (put("t2m/notes.txt"), {}, {"t2m/notes.txt": "no chunk of its array"}, False),
    "a chunk outside the grid": (put("t2m/c/4/0/0"), {}, {"t2m/c/4/0/0": "outside the grid of chunks"}, False),
    "another separator": (
        move("t2m/c/1/0/0", "t2m/c.1.0.0"), {"t2m absent": (1, ["1/0/0"])},
        {"t2m/c.1.0.0": "named as chunks of another layout"}, False,
    ),
    "a chunk of version 2": (put("t2m/1.0.0"), {}, {"t2m/1.0.0": "named as chunks of another layout"}, False),
    "an array in itself": (
        copy("deep/lat", "t2m/lat"), {},
        {"t2m/lat/zarr.json": "of a node below an array", "t2m/lat/c/0": "no chunk of its array", "t2m/lat/c/1": "no chunk of its array"},
        False,
    ),
    "an array without its document": (
        copy("deep/lat/c", "old/c"), {}, {"old/c/0": "in a folder that is no node", "old/c/1": "in a folder that is no node"}, False,
    ),
    "our temporary": (put("t2m/c/1/.chunkmill-71-3.tmp"), {}, {"t2m/c/1/.chunkmill-71-3.tmp": "a temporary file"}, False),
    "a temporary of zarr-python": (put("t2m/c/1/0/0.8f14.partial"), {}, {"t2m/c/1/0/0.8f14.partial": "a temporary file"}, False),
    "a twin but for the case": (
        copy("t2m/c/1/0/0", "t2m/C/1/0/0"), {}, {"t2m/C/1/0/0": "a chunk's name but for the case"}, False,
    ),
    "a zero in front": (put("t2m/c/01/0/0"), {}, {"t2m/c/01/0/0": "no chunk of its array"}, False),
    "a chunk below a chunk": (
        lambda at: [f(at) for f in (gone("raw/c/0/0"), put("raw/c/0/0/0"))], {"raw absent": (1, ["0/0"])},
        {"raw/c/0/0/0": "no chunk of its array"}, False,
    ),
}  # fmt: skip


@pytest.mark.few(16)
@pytest.mark.parametrize("plant, want, strange, decoded", FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_found(whole, tmp_path, plant, want, strange, decoded):
    store = tmp_path / "a.zarr"
    shutil.copytree(whole, store)
    plant(store)
    options = ["--audit", "full"] if decoded else []
    found = census(store, *options)
    assert holes(found) == want and foreign(found) == strange
    assert found["foreign"]["nobjects"] == len(strange)
    for a in found["arrays"]:
        assert a["present"] == a["nchunks"] - sum(a[k]["nchunks"] for k in KINDS)
    # A listing that decodes nothing tells less, and nothing else.
    assert set(holes(census(store))) <= set(want)
    with objects_of(store) as (url, env):
        assert census(url, *options, env=env) == found
    said = tool.run("chunkcalc", *options, store).ok().out
    for key in strange:
        assert key in said
    for name in want:
        assert name.split()[0] in said


class objects_of:
    """A copy of the store in a bucket."""

    def __init__(self, store):
        self.store = store

    def __enter__(self):
        self.server = objects.Server()
        self.server.put_folder(self.store, "a.zarr")
        return "s3://bucket/a.zarr", self.server.environment()

    def __exit__(self, *_):
        self.server.close()


def test_faults_that_only_a_folder_can_have(whole, tmp_path):
    store = tmp_path / "a.zarr"
    shutil.copytree(whole, store)
    (store / "raw/c/0/0").unlink()
    (store / "raw/c/0/0").symlink_to("nothing")
    (store / "raw/c/0/1").unlink()
    os.mkfifo(store / "raw/c/0/1")
    (store / "t2m/c/0/0/0").unlink()
    (store / "t2m/c/0/0/0").mkdir()
    found = census(store)
    assert holes(found) == {
        "raw absent": (1, ["0/0"]), "raw undecodable": (1, ["0/1"]), "t2m absent": (1, ["0/0/0"]),
    }  # fmt: skip
    assert foreign(found) == {}


def test_a_listing_of_many_faults(whole, tmp_path):
    """The first are named, all are counted, and the strip shows where they lie."""
    store = tmp_path / "a.zarr"
    array = zarr.create_array(str(store), shape=(400, 4), chunks=(1, 1), dtype="i1", fill_value=0)
    array[:] = 1
    for i in list(range(100, 200)) + [399]:
        shutil.rmtree(store / f"c/{i}")
    (store / "c/0/3").unlink()
    for i in range(50):
        put(f"c/{i}/{i + 4}")(store)
    found = census(store)
    (a,) = found["arrays"]
    assert a["absent"]["nchunks"] == 405 and a["present"] == 1195
    assert a["absent"]["chunks"][:3] == ["0/3", "100/0", "100/1"] and len(a["absent"]["chunks"]) == 32
    assert found["foreign"]["nobjects"] == 50 and len(found["foreign"]["objects"]) == 32
    strip = a["strip"]
    assert len(strip) == 240 and strip[0] == "-" and set(strip[1:60]) == {"="} and set(strip[60:120]) == {"."}
    assert set(strip[120:239]) == {"="} and strip[239] in "-."
    said = tool.run("chunkcalc", store).ok().out
    assert "405 of 1600 chunks are absent, read as fill (0/3, 100/0, 100/1, ...)" in said
    assert "50 objects belong to nothing in this store:" in said


def test_csv_and_markdown(whole, tmp_path):
    store = tmp_path / "a.zarr"
    shutil.copytree(whole, store)
    (store / "t2m/c/1/0/0").unlink()
    head, *rows = tool.run("chunkcalc", "--format", "csv", store).ok().out.splitlines()
    assert head.endswith(",present,absent,left_out,empty,truncated,undecodable")
    assert any(row.startswith("t2m,") and row.endswith(",15,1,0,0,0,0") for row in rows)
    assert "## Which chunks are there" in tool.run("chunkcalc", "--format", "markdown", store).ok().out


def test_the_audit_of_reads_counts_too(whole, tmp_path):
    store = tmp_path / "a.zarr"
    shutil.copytree(whole, store)
    (store / "t2m/c/1/0/0").unlink()
    for options in (["--audit"], ["--audit", "full"], ["--audit=full"]):
        found = json.loads(tool.run("chunkcalc", "--json", "--variable", "t2m", "--sample", "1x2x2", *options, store).ok().out)
        assert found["audit"]["verdict"] and holes(found["census"]) == {"t2m absent": (1, ["1/0/0"])}
        assert found["census"]["depth"] == ("sizes" if options == ["--audit"] else "decode")
    tool.run("chunkcalc", "--audit=all", store).fails(2, "--audit takes full or nothing, not 'all'")
    tool.run("chunkcalc", "--audit", "all", store).fails(2, "one store at a time")


def test_arrays_that_are_not_counted_are_not_there(whole, tmp_path):
    """An array of a codec that nobody knows has no part in the sum, which says so."""
    store = tmp_path / "a.zarr"
    shutil.copytree(whole, store)
    document = json.loads((store / "raw" / "zarr.json").read_text())
    document["codecs"].append({"name": "nobody's", "configuration": {}})
    (store / "raw" / "zarr.json").write_text(json.dumps(document))
    (store / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group"}))
    assert holes(census(store)) == {}
    out = tool.run("chunkcalc", store).ok().out
    assert re.search(r"\nAll \d+ chunks of 5 arrays are there; 1 array was not counted\.\n", out), out


def test_a_node_of_a_store(whole, tmp_path):
    """Objects elsewhere are not counted."""
    store = tmp_path / "a.zarr"
    shutil.copytree(whole, store)
    (store / "deep/lat/c/0").unlink()
    (store / "deep/x").write_text("")
    (store / "y").write_text("")
    for node in ("deep", "deep/lat"):
        found = census(f"{store}::{node}")
        assert holes(found) == {"deep/lat absent": (1, ["0"])}
        assert foreign(found) == ({"deep/x": "no part of a group"} if node == "deep" else {})
    found = census(f"{store}::t2m")
    assert holes(found) == {} and foreign(found) == {} and [a["name"] for a in found["arrays"]] == ["t2m"]


# ---- clean stores ---------------------------------------------------------------------------------


def group(path, zarr_format):
    return zarr.open_group(str(path), mode="w", zarr_format=zarr_format)


def many(path, zarr_format, **more):
    root = group(path, zarr_format)
    for name, dtype in (("a", "f4"), ("b", "i2"), ("c", "bool"), ("d", "u8"), ("e", "complex64")):
        root.create_array(name, shape=(7, 5), chunks=(3, 2), dtype=dtype, **more)[:] = np.ones((7, 5), dtype)
    return root


def with_fill(path, zarr_format, **more):
    """Chunks of nothing but fill, which zarr-python leaves out without a word."""
    root = group(path, zarr_format)
    field = np.zeros((8, 8), "f4")
    field[:2, :3] = 1
    root.create_array("a", shape=(8, 8), chunks=(2, 2), dtype="f4", fill_value=0, **more)[:] = field


def scalars(path, zarr_format):
    root = group(path, zarr_format)
    for name, dtype in (("x", "f8"), ("y", "i4")):
        root.create_array(name, shape=(), dtype=dtype)[...] = 5


def empty_dims(path, zarr_format):
    root = group(path, zarr_format)
    root.create_array("a", shape=(0,), chunks=(3,), dtype="f4")
    root.create_array("b", shape=(4, 0, 3), chunks=(2, 1, 3), dtype="f4")
    root.create_group("nothing")


def strings(path, zarr_format):
    root = group(path, zarr_format)
    root.create_array("s", shape=(5,), chunks=(2,), dtype="U7")[:] = np.array(["a", "bb", "", "dd", "é"])
    root.create_array("v", shape=(5,), chunks=(2,), dtype=str)[:] = np.array(["a", "bb", "", "dd", "é"], dtype=object)


def one_array(path, zarr_format):
    zarr.create_array(str(path), shape=(5, 5), chunks=(2, 2), dtype="f4", zarr_format=zarr_format)[:] = 1


def nested(path, zarr_format):
    root = group(path, zarr_format)
    root.create_group("a/b/c").create_array("t", shape=(4,), chunks=(1,), dtype="f4")[:] = 1
    root.create_array("c", shape=(4,), chunks=(1,), dtype="f4")[:] = 1  # named like a folder of chunks


def consolidated(path, zarr_format):
    many(path, zarr_format)
    consolidate(path)


def dates(path, zarr_format):
    root = group(path, zarr_format)
    root.create_array("when", shape=(5,), chunks=(2,), dtype="M8[s]")[:] = np.arange(5).astype("M8[s]")


def not_understood(path, zarr_format):
    root = group(path, zarr_format)
    root.create_array("a", shape=(4,), chunks=(2,), dtype="f4")[:] = 1
    name = "a/zarr.json" if zarr_format == 3 else "a/.zarray"
    document = json.loads((path / name).read_text())
    if zarr_format == 3:
        document["codecs"].append({"name": "of_tomorrow"})
    else:
        document["compressor"] = {"id": "of_tomorrow"}
    (path / name).write_text(json.dumps(document))


def of_netcdf(*options, fill=False):
    def make(path, _):
        source = path.parent / "in.nc"
        with netCDF4.Dataset(source, "w") as ds:
            for d, n in (("time", 6), ("y", 8), ("x", 8)):
                ds.createDimension(d, n)
            ds.createVariable("time", "f8", ("time",))[:] = np.arange(6)
            field = np.random.default_rng(1).normal(size=(6, 8, 8)).astype("f4")
            v = ds.createVariable("g/tas", "f4", ("time", "y", "x"), fill_value=-9)
            v[:] = np.where(np.arange(6)[:, None, None] < 2, -9, field) if fill else field
            ds.createVariable("name", str, ("time",))[:] = np.array([f"n{i}" for i in range(6)], dtype=object)
            ds.createVariable("crs", "i4", ())[...] = 4
        tool.nc2zarr(source, path, "--chunks", "g/tas:time=1,y=4,x=8", *options).ok()

    return make


SEPARATED = {"chunk_key_encoding": {"name": "default", "separator": "."}}
CLEAN = {
    **{f"{f.__name__}, version {v}": (f, v) for v in (2, 3) for f in (
        many, with_fill, scalars, empty_dims, strings, one_array, nested, consolidated, dates, not_understood
    )},
    "shards": (lambda p, v: many(p, v, shards=(6, 4)), 3),
    "shards with fill": (lambda p, v: with_fill(p, v, shards=(4, 4)), 3),
    "points between numbers": (lambda p, v: many(p, v, **SEPARATED), 3),
    "keys of version 2": (lambda p, v: many(p, v, chunk_key_encoding={"name": "v2", "separator": "."}), 3),
    "slashes in version 2": (lambda p, v: many(p, v, chunk_key_encoding={"name": "v2", "separator": "/"}), 2),
    "raw": (lambda p, v: many(p, v, compressors=None), 3),
    "raw in version 2": (lambda p, v: many(p, v, compressors=None), 2),
    "gzip": (lambda p, v: many(p, v, compressors=GzipCodec()), 3),
    "blosc": (lambda p, v: many(p, v, compressors=BloscCodec()), 3),
    "checksums": (lambda p, v: many(p, v, compressors=[ZstdCodec(), Crc32cCodec()]), 3),
    "order F": (lambda p, v: many(p, v, order="F"), 2),
    "ours": (of_netcdf(), 3),
    "ours, version 2": (of_netcdf("--zarr-format", "2"), 2),
    "ours, in shards": (of_netcdf("--shards", "g/tas:time=3,y=8,x=8"), 3),
    "ours, raw": (of_netcdf("--codec", "none"), 3),
    "ours, with fill": (of_netcdf(fill=True), 3),
    "ours, with fill in shards": (of_netcdf("--shards", "g/tas:time=3,y=8,x=8", fill=True), 3),
    "ours, without consolidated metadata": (of_netcdf("--no-consolidate"), 3),
}  # fmt: skip


FILL_IN_SHARDS = [CLEAN[name][0] for name in ("shards with fill", "ours, with fill in shards")]


def absent_of(store):
    """Objects that zarr-python finds to be missing, by array: chunks, or shards."""
    node = zarr.open(str(store), mode="r")
    arrays = {"": node} if isinstance(node, zarr.Array) else {n: a for n, a in node.members(max_depth=None) if isinstance(a, zarr.Array)}
    return {
        name: math.prod(-(-n // c) for n, c in zip(a.shape, a.shards or a.chunks)) - a._nshards_initialized
        for name, a in arrays.items()
    }  # fmt: skip


@pytest.mark.few(14)
@pytest.mark.parametrize("make, zarr_format", CLEAN.values(), ids=CLEAN)
def test_a_clean_store_has_no_fault(tmp_path, make, zarr_format):
    store = tmp_path / "a.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(store, zarr_format)
    for options in ([], ["--audit", "full"]):
        found = census(store, *options)
        assert foreign(found) == {} and found["foreign"]["nobjects"] == 0
        assert not [k for k in holes(found) if not k.endswith(("absent", "left_out"))]
        if make is not_understood:
            assert found["arrays"][0]["not_counted"]
            continue
        missing = absent_of(store)
        assert {a["name"] for a in found["arrays"]} == set(missing)
        for a in found["arrays"]:
            assert not a["not_counted"] and not a["not_decoded"]
            shards = a["absent"]["chunks"] and a["absent"]["chunks"][0].startswith("shard")
            assert (len(a["absent"]["chunks"]) if shards else a["absent"]["nchunks"]) == missing[a["name"]], a
            assert (a["left_out"]["nchunks"] > 0) == (make in FILL_IN_SHARDS and a["nchunks"] > 4), a
    with objects_of(store) as (url, env):
        assert census(url, "--audit", "full", env=env)["foreign"]["nobjects"] == 0


# ---- sources with holes ---------------------------------------------------------------------------

LINE = "t2m: 3 of 16 chunks are absent (1/0/0, 1/0/1, 1/1/0), read as fill"


@pytest.fixture
def holed(whole, tmp_path):
    store = tmp_path / "holed.zarr"
    shutil.copytree(whole, store)
    for key in ("1/0/0", "1/0/1", "1/1/0"):
        (store / "t2m/c" / key).unlink()
    return store


def test_rechunk_tells_of_holes(holed, whole, tmp_path):
    """Once, in one line, and as they are in the document; the run does not fail."""
    result = tool.run("rechunk", "--json", "--chunks", "t2m:2x2x2", "--verify", "full", holed, tmp_path / "out.zarr").ok()
    document = json.loads(result.out)
    assert document["warnings"] == [LINE] and result.warnings == [f"rechunk: warning: {LINE}"]
    assert holes(document["census"]) == {"t2m absent": (3, ["1/0/0", "1/0/1", "1/1/0"])}
    assert document["census"]["foreign"] is None
    clean = json.loads(tool.run("rechunk", "--json", "--chunks", "t2m:2x2x2", whole, tmp_path / "clean.zarr").ok().out)
    assert clean["warnings"] == [] and holes(clean["census"]) == {}
    assert LINE in tool.run("rechunk", "--dry-run", holed, tmp_path / "no.zarr").ok().err
    assert LINE not in tool.run("rechunk", "--dry-run", "--variable", "raw", holed, tmp_path / "no.zarr").ok().err


def test_holes_of_arrays_that_become_one(holed, tmp_path):
    """Arrays that are stacked are read, and so counted, too."""
    root = zarr.open_group(str(holed), mode="a")
    root.create_array("z", shape=(4, 4, 4), chunks=(1, 2, 2), dtype="f4")[:] = FIELD
    consolidate(holed)
    result = tool.run("rechunk", "--stack", "all=t2m,z", holed, tmp_path / "out.zarr").ok()
    assert LINE in result.err and result.err.count("are absent") == 1


def test_holes_in_a_bucket(holed, tmp_path):
    (holed / "sh/c/0/1").unlink()
    with objects_of(holed) as (url, env):
        document = json.loads(tool.run("rechunk", "--json", "--verify", "none", url, tmp_path / "out.zarr", env=env).ok().out)
        assert document["warnings"] == ["sh: 4 of 16 chunks are absent (shard 0/1), read as fill; " + LINE]
        said = tool.run("readbench", "--no-out", "--variable", "sh", "--sample", "2x2", "--batches", "2", "--epochs", "1", url, env=env)
        assert said.ok().err.count("sh: 4 of 16 chunks are absent (shard 0/1), read as fill") == 1


def test_readbench_tells_of_holes(holed, tmp_path):
    options = ["--no-out", "--json", "--variable", "t2m", "--sample", "1x2x2", "--batches", "2", "--batch", "2", "--step-time", "0"]
    result = tool.run("readbench", *options, "--sweep", "workers=1,2", holed).ok()
    document = json.loads(result.out)
    assert [w for w in document["warnings"] if "absent" in w] == [f"{holed}: {LINE}"]
    assert result.err.count(LINE) == 1
    for session in document["sessions"]:
        assert holes(session["census"]) == {"t2m absent": (3, ["1/0/0", "1/0/1", "1/1/0"])}
        assert session["census"]["depth"] == "names"


def test_a_source_without_a_fill_value(tmp_path):
    store = tmp_path / "a.zarr"
    zarr.create_array(str(store), shape=(4,), chunks=(2,), dtype="f4", fill_value=None, zarr_format=2)[:2] = 1
    err = tool.run("rechunk", store, tmp_path / "out.zarr").ok().err
    assert err == "rechunk: warning: /: 1 of 2 chunks is absent (1), read as zeros: there is no fill value\n"


def test_what_decoding_takes_more_memory_than_is_allowed(tmp_path):
    """Its sizes are looked at, the page is made of the others, and both say so."""
    store = tmp_path / "a.zarr"
    group = zarr.open_group(store, mode="w")
    for name, n in (("large", 3000), ("small", 30)):
        group.create_array(name, shape=(n, n), chunks=(n, n), dtype="f8")[...] = np.random.default_rng(1).random((n, n))
    for how in (["--audit", "full"], ["--report", tmp_path / "page.html"]):
        said = tool.run("chunkcalc", "--memory", "32MiB", *how, store).ok().said
        assert "MiB of memory: more than --memory" in said and "small: " not in said, said
        (tmp_path / "page.html").unlink(missing_ok=True)
        assert "more than" not in tool.run("chunkcalc", *how, store).ok().said
