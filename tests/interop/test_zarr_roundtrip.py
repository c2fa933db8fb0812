"""Zarr stores of other implementations read by ours, and ours read by them."""
import json
import os
import struct
import subprocess

import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr
import zarr.codecs.numcodecs as nc
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

from support import paths

CAT = paths.BUILD / "tests" / "bin" / "zarr_cat"
RNG = np.random.default_rng(7)


def cat(*args, ok=True):
    done = subprocess.run([str(CAT), *map(str, args)], capture_output=True)
    assert (done.returncode == 0) == ok, done.stderr.decode()
    return done.stdout if ok else done.stderr.decode()


def meta(store):
    return json.loads(cat("--meta", store))


def strings_of(data):
    out, at = [], 0
    while at < len(data):
        (n,) = struct.unpack_from("<I", data, at)
        out.append(data[at + 4 : at + 4 + n].decode())
        at += 4 + n
    return out


def little(a):
    """The bytes that zarr_cat prints for A."""
    return np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")).tobytes()


def sample(dtype, shape):
    """Elements of DTYPE, some of them 0 so that chunks can be left out."""
    dtype = np.dtype(dtype)
    n = int(np.prod(shape))
    base = np.arange(n) * 37 % 251
    if dtype.kind == "b":
        a = base % 3 == 0
    elif dtype.kind in "iu":
        a = base.astype(dtype)
    elif dtype.kind == "f":
        a = (base / 8).astype(dtype)
        a[::11] = np.nan
        a[::17] = -np.inf
    elif dtype.kind == "c":
        a = (base / 8 - 1j * base).astype(dtype)
    elif dtype.kind in "SU":
        a = np.array([("αb%d" if dtype.kind == "U" else "b%d") % v for v in base]).astype(dtype)
    elif dtype.kind in "mM":
        a = base.astype("i8").view(dtype)
    else:
        a = np.frombuffer(RNG.bytes(n * dtype.itemsize), dtype)
    a = a.reshape(shape).copy()
    if a.ndim and a.shape[0] > 4:
        a[:4] = np.zeros((), dtype)
    return a


TYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "S5", "U3", "V7", "M8[s]", "m8[10ns]"]
SHAPES = {"scalar": ((), ()), "line": ((17,), (5,)), "plane": ((9, 11), (4, 5)), "cube": ((5, 6, 7), (2, 6, 3)), "empty": ((0, 4), (2, 2))}


def write(path, a, chunks, zarr_format=3, **kwargs):
    if a.dtype.kind == "V" and "fill_value" not in kwargs:
        kwargs["fill_value"] = np.zeros((), a.dtype)[()]
    z = zarr.create_array(str(path), shape=a.shape, chunks=chunks, dtype=a.dtype, zarr_format=zarr_format, **kwargs)
    z[...] = a
    return z


def check_both_ways(tmp_path, a, formats=(2, 3)):
    """The store at in.zarr reads as A, and its copies in FORMATS read as A in zarr-python."""
    store = tmp_path / "in.zarr"
    assert cat(store, "") == little(a)
    for fmt in formats:
        copy = tmp_path / f"out{fmt}.zarr"
        cat("--copy", store, "", copy, "--format", fmt, "--threads", 3)
        got = zarr.open_array(str(copy), mode="r")
        assert got.dtype.newbyteorder("<") == a.dtype.newbyteorder("<")
        assert little(np.asarray(got[...], got.dtype)) == little(a)
        assert cat(copy, "") == little(a)


@pytest.mark.few(60)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("fmt", [2, 3])
def test_every_type(tmp_path, dtype, shape, fmt):
    full, chunks = SHAPES[shape]
    chunks = tuple(min(c, s) or 1 for c, s in zip(chunks, full))
    a = sample(dtype, full)
    write(tmp_path / "in.zarr", a, chunks, fmt)
    check_both_ways(tmp_path, a)


V3 = {
    "bare": dict(compressors=None),
    "big": dict(serializer=BytesCodec(endian="big"), compressors=None),
    "gzip": dict(compressors=GzipCodec(level=5)),
    "zstd": dict(compressors=ZstdCodec(level=3, checksum=True)),
    "crc": dict(compressors=[GzipCodec(), Crc32cCodec()]),
    "transpose": dict(filters=TransposeCodec(order=(1, 0))),
    "sharded": dict(chunks=(2, 5), shards=(4, 5)),
    "one_shard": dict(chunks=(3, 2), shards=(9, 12), compressors=GzipCodec()),
    "edge_shards": dict(chunks=(2, 3), shards=(8, 6), compressors=BloscCodec()),
    "index_start": dict(
        serializer=ShardingCodec(chunk_shape=(2, 5), codecs=[BytesCodec(), ZstdCodec()], index_location="start"), compressors=None
    ),
    "index_bare": dict(serializer=ShardingCodec(chunk_shape=(4, 1), index_codecs=[BytesCodec(endian="big")]), compressors=None),
    "compressed_shard": dict(serializer=ShardingCodec(chunk_shape=(2, 5)), compressors=GzipCodec()),
    "transposed_shard": dict(
        chunks=(4, 4), filters=TransposeCodec(order=(1, 0)), serializer=ShardingCodec(chunk_shape=(2, 4)), compressors=None
    ),
    "nested_shards": dict(
        serializer=ShardingCodec(chunk_shape=(4, 5), codecs=[ShardingCodec(chunk_shape=(2, 1), codecs=[BytesCodec(), GzipCodec()])]),
        compressors=None,
        chunks=(8, 10),
    ),
    "dots": dict(chunk_key_encoding={"name": "default", "separator": "."}),
    "v2_keys": dict(chunk_key_encoding={"name": "v2", "separator": "."}),
    "v2_slashes": dict(chunk_key_encoding={"name": "v2", "separator": "/"}),
    **{
        f"blosc_{cname}_{shuffle}": dict(compressors=BloscCodec(cname=cname, clevel=4, shuffle=shuffle))
        for cname in ("zstd", "lz4", "lz4hc", "zlib", "blosclz")
        for shuffle in ("noshuffle", "shuffle", "bitshuffle")
    },
}


@pytest.mark.few(48)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c8"])
@pytest.mark.parametrize("codec", V3)
def test_v3_codecs(tmp_path, codec, dtype):
    a = sample(dtype, (9, 11))
    options = {"chunks": (4, 5), "fill_value": 0, **V3[codec]}
    write(tmp_path / "in.zarr", a, options.pop("chunks"), **options)
    to_v2 = not any(word in codec for word in ("shard", "index"))
    check_both_ways(tmp_path, a, (2, 3) if to_v2 else (3,))


NUMCODECS_BYTES = {
    "zlib": nc.Zlib(level=4),
    "gzip": nc.GZip(level=4),
    "bz2": nc.BZ2(level=4),
    "lz4": nc.LZ4(),
    "zstd": nc.Zstd(level=2),
    "blosc": nc.Blosc(cname="lz4", clevel=3, shuffle=2),
    "shuffle": [nc.Shuffle(), nc.Zlib()],
    "crc32": nc.CRC32(),
    "crc32c": nc.CRC32C(),
    "adler32": nc.Adler32(),
    "fletcher32": nc.Fletcher32(),
}


@pytest.mark.few(32)
@pytest.mark.parametrize("dtype", ["i2", "i4", "f8"])
@pytest.mark.parametrize("codec", NUMCODECS_BYTES)
def test_v3_numcodecs(tmp_path, codec, dtype):
    a = sample(dtype, (9, 12))
    write(tmp_path / "in.zarr", a, (4, 4), compressors=NUMCODECS_BYTES[codec], fill_value=0)
    check_both_ways(tmp_path, a)


FILTERS = {
    "delta": ("i4", lambda d: numcodecs.Delta(d)),
    "delta_narrow": ("i4", lambda d: numcodecs.Delta(d, "i2")),
    "delta_float": ("f8", lambda d: numcodecs.Delta(d)),
    "fixed": ("f8", lambda d: numcodecs.FixedScaleOffset(offset=2, scale=8, dtype=d, astype="u2")),
    "quantize": ("f4", lambda d: numcodecs.Quantize(3, d)),
    "bitround": ("f4", lambda d: numcodecs.BitRound(10)),
    "astype": ("i4", lambda d: numcodecs.AsType("i2", d)),
    "packbits": ("?", lambda d: numcodecs.PackBits()),
    "shuffle": ("i4", lambda d: numcodecs.Shuffle(4)),
    "fletcher32": ("i4", lambda d: numcodecs.Fletcher32()),
    "crc32": ("i4", lambda d: numcodecs.CRC32()),
}


@pytest.mark.few(32)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name,endian", [(n, e) for n in FILTERS for e in "<>" if n + e != "bitround>"])  # numcodecs rounds no big-endian
def test_v2_filters(tmp_path, name, endian, order):
    dtype, make = FILTERS[name]
    dtype = np.dtype(endian + dtype)
    a = np.nan_to_num(sample(dtype, (9, 12)), neginf=5) if dtype.kind == "f" else sample(dtype, (9, 12))
    a = a.astype(dtype)
    z = write(tmp_path / "in.zarr", a, (4, 4), 2, filters=[make(dtype)], compressors=numcodecs.Zlib(), order=order, fill_value=0)
    want = z[...]  # what a lossy filter made of it
    assert cat(tmp_path / "in.zarr", "") == little(want)
    copy = tmp_path / "copy.zarr"
    cat("--copy", tmp_path / "in.zarr", "", copy)
    assert little(zarr.open_array(str(copy), mode="r")[...]) == little(want)
    assert json.loads((copy / ".zarray").read_text())["dtype"] == json.loads((tmp_path / "in.zarr/.zarray").read_text())["dtype"]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<i2", ">i2", ">f8", "|u1", ">U2", ">c8", ">M8[ms]"])
@pytest.mark.parametrize("compressor", [None, numcodecs.Zstd(3), numcodecs.Blosc("zstd", 3, -1), numcodecs.LZ4(), numcodecs.BZ2(), numcodecs.GZip()])
def test_v2_compressors(tmp_path, compressor, dtype, order):
    a = sample(dtype, (7, 6, 5))
    write(tmp_path / "in.zarr", a, (3, 4, 2), 2, compressors=compressor, order=order)
    check_both_ways(tmp_path, a)


@pytest.mark.parametrize("sep", [".", "/"])
def test_v2_separator(tmp_path, sep):
    a = sample("i4", (7, 6))
    write(tmp_path / "in.zarr", a, (3, 4), 2, chunk_key_encoding={"name": "v2", "separator": sep})
    check_both_ways(tmp_path, a)


FILLS = [
    ("f4", np.nan), ("f4", np.inf), ("f8", -np.inf), ("f4", 1e20), ("f8", 0.1), ("f2", 0.1), ("f2", 65504), ("f4", -0.0),
    ("i8", -(2**63)), ("i8", 2**63 - 1), ("u8", 2**64 - 1), ("u1", 255), ("i1", -128), ("?", True), ("c8", 1 - 2j), ("c16", complex(np.nan, 3)),
    ("S5", b"ab"), ("U3", "zß"), ("M8[s]", np.datetime64("NaT")), ("m8[ns]", 5),
]


@pytest.mark.parametrize("fmt", [2, 3])
@pytest.mark.parametrize("dtype,fill", FILLS)
def test_fill_values(tmp_path, dtype, fill, fmt):
    z = zarr.create_array(str(tmp_path / "in.zarr"), shape=(7,), chunks=(2,), dtype=dtype, fill_value=fill, zarr_format=fmt)
    check_both_ways(tmp_path, z[...])


@pytest.mark.every
@pytest.mark.parametrize("fmt,options", [
    (2, dict(chunks=(2, 2))), (3, dict(chunks=(2, 2))), (3, dict(chunks=(2, 2), shards=(4, 4))),
    (2, dict(chunks=(3, 4), compressors=None)), (3, dict(chunks=(3, 4), compressors=None)),
])
def test_strings(tmp_path, fmt, options):
    a = np.array([["", "ä", "a" * 300], ["x", "日本", ""], ["1", "22", "333"], ["", "", ""], ["end", "", "\n"]], dtype=object)
    store = tmp_path / "in.zarr"
    z = zarr.create_array(str(store), shape=a.shape, dtype=str, zarr_format=fmt, **options)
    z[...] = a
    assert strings_of(cat(store, "")) == list(a.ravel())
    for out in (2, 3):
        if out == 2 and "shards" in options:
            continue
        copy = tmp_path / f"out{out}.zarr"
        cat("--copy", store, "", copy, "--format", out, "--threads", 2)
        assert list(zarr.open_array(str(copy), mode="r")[...].ravel()) == list(a.ravel())


@pytest.mark.every
@pytest.mark.parametrize("codec", ["gzip", "zstd", "blosc", "shard", "bytes"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32", "complex64"])
def test_tensorstore(tmp_path, codec, dtype):
    def spec(path, **more):
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path) + "/"}, **more}

    little_bytes = {"name": "bytes", "configuration": {"endian": "little"}}
    codecs = {
        "bytes": [{"name": "bytes", "configuration": {"endian": "big"}}],
        "gzip": [little_bytes, {"name": "gzip", "configuration": {"level": 3}}],
        "zstd": [little_bytes, {"name": "zstd", "configuration": {"level": 3}}],
        "blosc": [little_bytes, {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"}}],
        "shard": [{
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 3], "codecs": [little_bytes], "index_location": "start",
                "index_codecs": [little_bytes, {"name": "crc32c"}],
            },
        }],
    }[codec]
    a = np.nan_to_num(sample(np.dtype(dtype), (9, 11)), neginf=3)
    ts = tensorstore.open(
        spec(tmp_path / "in.zarr", metadata={
            "shape": [9, 11], "data_type": dtype, "codecs": codecs,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
            "chunk_key_encoding": {"name": "default"},
        }),
        create=True,
    ).result()
    ts.write(a).result()
    assert cat(tmp_path / "in.zarr", "") == little(a)
    cat("--copy", tmp_path / "in.zarr", "", tmp_path / "out.zarr", "--threads", 4)
    assert little(tensorstore.open(spec(tmp_path / "out.zarr")).result().read().result()) == little(a)


# ---- hierarchies ----


def make_hierarchy(path, fmt):
    root = zarr.create_group(str(path), zarr_format=fmt, attributes={"title": "T", "n": 2**60, "x": 0.1})
    for name in ("b", "A", "deep/er", "deep/Est/most"):
        g = root.require_group(name)
        g.attrs["name"] = name
        a = g.create_array("data", shape=(4, 3), chunks=(2, 3), dtype="i2", **({"dimension_names": ["y", None]} if fmt == 3 else {}))
        a[...] = np.arange(12).reshape(4, 3)
        a.attrs["units"] = "m"
    root.create_array("scalar", shape=(), dtype="f8")[...] = 2.5
    return root


def listing(store, **kwargs):
    g = zarr.open_group(str(store), mode="r", **kwargs)
    out = {"": dict(g.attrs)}
    for path, node in g.members(max_depth=None):
        value = node[...].tolist() if isinstance(node, zarr.Array) else None
        names = node.metadata.dimension_names if isinstance(node, zarr.Array) and g.metadata.zarr_format == 3 else None
        out[path] = (dict(node.attrs), value, names)
    return out


@pytest.mark.parametrize("consolidated", [True, False])
@pytest.mark.parametrize("fmt", [2, 3])
def test_hierarchy(tmp_path, fmt, consolidated):
    store = tmp_path / "in.zarr"
    make_hierarchy(store, fmt)
    want = listing(store, use_consolidated=False)
    if consolidated:
        zarr.consolidate_metadata(str(store))
    seen = meta(store)
    assert seen["consolidated"] == consolidated
    assert sorted(n["path"] for n in seen["nodes"]) == sorted(want)
    assert [n["path"] for n in seen["nodes"]] == sorted(want)
    copy = tmp_path / "out.zarr"
    cat("--copy-all", store, copy)
    assert listing(copy, use_consolidated=True) == want
    assert listing(copy, use_consolidated=False) == want
    if fmt == 3:  # a group opened on its own is consolidated, too
        deep = listing(copy / "deep", use_consolidated=True)
        assert deep["er/data"] == want["deep/er/data"]
        zarr.consolidate_metadata(str(store))
        theirs = json.loads((store / "zarr.json").read_text())["consolidated_metadata"]
        ours = json.loads((copy / "zarr.json").read_text())["consolidated_metadata"]
        assert list(ours["metadata"]) == list(theirs["metadata"])
        assert ours == theirs


@pytest.mark.parametrize("fmt", [2, 3])
def test_documents_are_those_of_zarr_python(tmp_path, fmt):
    """The same members with the same values, for every type and codec."""
    for dtype in TYPES:
        a = sample(dtype, (4,))
        store, copy = tmp_path / f"in{TYPES.index(dtype)}", tmp_path / f"out{TYPES.index(dtype)}"
        write(store, a, (2,), fmt, attributes={"a": 1})
        cat("--copy", store, "", copy)
        name = "zarr.json" if fmt == 3 else ".zarray"
        assert json.loads((copy / name).read_text()) == json.loads((store / name).read_text()), dtype


def test_erase(tmp_path):
    for fmt in (2, 3):
        store = tmp_path / f"s{fmt}"
        make_hierarchy(store, fmt)
        zarr.consolidate_metadata(str(store))
        (store / "b" / "notes.txt").write_text("mine")
        outside = tmp_path / "outside"
        (outside / "0").mkdir(parents=True, exist_ok=True)
        (outside / "0" / "0").write_text("theirs")
        (outside / "zarr.json").write_text("{}")
        os.symlink(outside, store / "A" / "link")
        assert cat("--erase", store) == b"2\n"
        left = sorted(str(p.relative_to(store)) for p in store.rglob("*"))
        assert left == ["A", "A/link", "b", "b/notes.txt"]
        assert (outside / "0" / "0").read_text() == "theirs"
        assert "no Zarr store" in cat("--erase", store, ok=False)


def test_unsupported_nodes_are_carried_over(tmp_path):
    store = tmp_path / "in.zarr"
    root = make_hierarchy(store, 3)
    a = root.create_array("strange", shape=(4,), chunks=(2,), dtype="i4", compressors=nc.LZMA())
    a[...] = np.arange(4)
    zarr.consolidate_metadata(str(store))
    (node,) = [n for n in meta(store)["nodes"] if n["path"] == "strange"]
    assert "lzma" in node["unsupported"]
    assert "lzma" in cat(store, "strange", ok=False)
    cat("--copy-all", store, tmp_path / "out.zarr")
    assert listing(tmp_path / "out.zarr") == listing(store)


@pytest.mark.parametrize("name,array", [
    ("v2_blosc_F.zarr", ""), ("v2_zstd_C.zarr", ""), ("v2_none_C.zarr", ""), ("v3_gzip.zarr", ""),
    ("v3_sharded.zarr", "group/array"), ("v3_hierarchy.zarr", "a/foo"),
])
def test_samples_of_others(name, array):
    store = paths.SHARED / "data" / "zarr" / name
    if not store.exists():
        pytest.skip("no ../shared/data beside this checkout")
    assert cat(store, array) == little(zarr.open_array(str(store / array), mode="r")[...])
