"""Stores of zarr-python and tensorstore, rechunked, and read by them again: the same bits in every layout."""

import json
import math
import random
import re

import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr
import zarr.codecs.numcodecs as nc
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

from support import digest, paths, rechunked, tool

RNG = np.random.default_rng(11)
TYPES = [
    "?",
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
    "S5",
    "U3",
    "V7",
    "M8[s]",
    "m8[10ns]",
    "str",
]


def sample(dtype, shape):
    """Elements of DTYPE, the first rows of them 0 so that chunks can be left out."""
    n = math.prod(shape)
    if dtype == "str":
        a = np.array([("", "ä", "日本", "x" * 300, "tail\0inside")[i * 7 % 5] for i in range(n)], object)
    else:
        dtype = np.dtype(dtype)
        base = np.arange(n) * 37 % 251
        if dtype.kind == "f":
            a = (base / 8).astype(dtype)
            a[::11], a[::17] = np.nan, -0.0
        elif dtype.kind == "c":
            a = (base / 8 - 1j * base).astype(dtype)
        elif dtype.kind in "SU":
            a = np.array([("αb%d" if dtype.kind == "U" else "b%d") % v for v in base]).astype(dtype)
        elif dtype.kind in "mM":
            a = base.astype("i8").view(dtype)
        elif dtype.kind == "V":
            a = np.frombuffer(RNG.bytes(n * dtype.itemsize), dtype)
        else:
            a = base.astype(dtype)
    a = a.reshape(shape).copy()
    if a.ndim and a.shape[0] > 4:
        a[:3] = "" if dtype == "str" else np.zeros((), dtype)
    return a


def write(path, values, chunks, fmt=3, **kw):
    kind = values.dtype.kind
    if kind == "V" and "fill_value" not in kw:
        kw["fill_value"] = np.zeros((), values.dtype)[()]
    z = zarr.create_array(
        str(path), shape=values.shape, chunks=chunks, dtype=str if kind == "O" else values.dtype, zarr_format=fmt, **kw
    )
    z[...] = values
    return z


def bits(values):
    values = np.asarray(values)
    if values.dtype.kind in "OT":
        return [str(v) for v in values.ravel()]
    return np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()


def shape_option(shape):
    return "x".join(map(str, shape))


def rechunk(source, target, *options):
    (a,) = rechunked.run(source, target, *options)["arrays"]
    return a


def expected_digest(values):
    if values.dtype.kind in "OT":
        return digest.text(digest.strings([str(v) for v in values.ravel()]))
    little = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"))
    raw, size = little.tobytes(), little.dtype.itemsize
    return digest.text(digest.fixed([raw[i : i + size] for i in range(0, len(raw), size)]))


def through_tensorstore(path, fmt):
    spec = {"driver": "zarr3" if fmt == 3 else "zarr", "kvstore": {"driver": "file", "path": f"{path}/"}}
    return tensorstore.open(spec, open=True, read=True).result().read().result()


# ---- types ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("fmt", [2, 3])
def test_every_type(tmp_path, dtype, fmt):
    a = sample(dtype, (9, 11))
    write(tmp_path / "0", a, (4, 5), fmt)
    steps = [
        ["--chunks", "9x2"],
        ["--chunks", "2x11", "--codec", "gzip:1"],
        ["--zarr-format", str(5 - fmt), "--chunks", "5x7"],
    ]
    if fmt == 3 and not dtype.startswith("V"):  # zarr-python reads no raw bytes from shards
        steps.insert(1, ["--chunks", "3x2", "--shards", "6x6"])
    want = expected_digest(a)
    for i, options in enumerate(steps):
        made = tmp_path / str(i + 1)
        found = rechunk(tmp_path / str(i), made, *options, "--verify", "full")
        got = zarr.open_array(str(made), mode="r")
        assert bits(np.asarray(got[...], got.dtype)) == bits(a), options
        assert found["digest"] == want, options
    assert {d for s in range(len(steps) + 1) for _, d in rechunked.digests(tmp_path / str(s)).values()} == {want}


FILLS = [
    ("f4", np.nan),
    ("f8", -np.inf),
    ("f4", 1e20),
    ("f2", 0.1),
    ("f4", -0.0),
    ("i8", -(2**63)),
    ("u8", 2**64 - 1),
    ("?", True),
    ("c16", complex(np.nan, 3)),
    ("S5", b"ab"),
    ("U3", "zß"),
    ("M8[s]", np.datetime64("NaT")),
    ("m8[ns]", 5),
]


@pytest.mark.parametrize("fmt", [2, 3])
@pytest.mark.parametrize("dtype, fill", FILLS, ids=lambda v: str(v))
def test_fill_values_of_chunks_that_are_not_there(tmp_path, out, dtype, fill, fmt):
    z = zarr.create_array(
        str(tmp_path / "in"), shape=(10, 7), chunks=(2, 3), dtype=dtype, fill_value=fill, zarr_format=fmt
    )
    z[4:6] = np.zeros((), dtype)
    for i, options in enumerate((["--chunks", "5x5"], ["--zarr-format", str(5 - fmt), "--chunks", "3x7"])):
        made = out.with_name(f"out{i}")
        found = rechunk(tmp_path / "in", made, *options)
        got = zarr.open_array(str(made), mode="r")
        assert bits(got[...]) == bits(z[...]) and bits(got.fill_value) == bits(z.fill_value)
        assert found["before"]["missing"] == 12 and found["counted"]["chunk_reads"] == 3


# ---- codecs -----------------------------------------------------------------------------------------

V3 = {
    "bare": dict(compressors=None),
    "big": dict(serializer=BytesCodec(endian="big"), compressors=None),
    "gzip": dict(compressors=GzipCodec(level=5)),
    "zstd": dict(compressors=ZstdCodec(level=3, checksum=True)),
    "crc": dict(compressors=[GzipCodec(), Crc32cCodec()]),
    "transpose": dict(filters=TransposeCodec(order=(1, 0))),
    "lz4": dict(compressors=BloscCodec(cname="lz4", clevel=4, shuffle="shuffle")),
    "bitshuffle": dict(compressors=BloscCodec(cname="zstd", clevel=2, shuffle="bitshuffle")),
    "blosclz": dict(compressors=BloscCodec(cname="blosclz", shuffle="noshuffle")),
    "dots": dict(chunk_key_encoding={"name": "default", "separator": "."}),
    "v2 keys": dict(chunk_key_encoding={"name": "v2", "separator": "/"}),
    **{
        f"numcodecs.{type(c).__name__.lower()}": dict(compressors=c)
        for c in (nc.Zlib(level=4), nc.BZ2(level=4), nc.LZ4(), nc.CRC32(), nc.Adler32())
    },
    "numcodecs.shuffle": dict(compressors=[nc.Shuffle(elementsize=4), nc.Zlib()]),
}


@pytest.mark.parametrize("codec", V3)
def test_a_chain_stays_as_it_is(tmp_path, out, codec):
    a = sample("f4", (9, 11))
    write(tmp_path / "in", a, (4, 5), fill_value=0, **V3[codec])
    rechunk(tmp_path / "in", out, "--chunks", "3x11")
    before, after = (json.loads((s / "zarr.json").read_text()) for s in (tmp_path / "in", out))
    assert after.pop("chunk_grid")["configuration"]["chunk_shape"] == [3, 11] and before.pop("chunk_grid")
    chains = before.pop("codecs"), after.pop("codecs")
    assert after == before
    assert [c["name"] for c in chains[0]] == [c["name"] for c in chains[1]]
    for a_codec, b_codec in zip(*chains):  # a default may be spelled out
        assert a_codec.get("configuration", {}).items() <= b_codec.get("configuration", {}).items()
    assert bits(zarr.open_array(str(out), mode="r")[...]) == bits(a)


SHARDED = {
    "sharded": dict(chunks=(2, 5), shards=(4, 10)),
    "edges": dict(chunks=(2, 3), shards=(8, 6), compressors=BloscCodec()),
    "index at the start": dict(
        chunks=(8, 10),
        serializer=ShardingCodec(chunk_shape=(2, 5), codecs=[BytesCodec(), ZstdCodec()], index_location="start"),
        compressors=None,
    ),
    "bare index": dict(
        chunks=(4, 4),
        serializer=ShardingCodec(chunk_shape=(4, 1), index_codecs=[BytesCodec(endian="big")]),
        compressors=None,
    ),
    "compressed shards": dict(chunks=(4, 10), serializer=ShardingCodec(chunk_shape=(2, 5)), compressors=GzipCodec()),
    "transposed shards": dict(
        chunks=(4, 4),
        filters=TransposeCodec(order=(1, 0)),
        serializer=ShardingCodec(chunk_shape=(2, 4)),
        compressors=None,
    ),
    "shards of shards": dict(
        chunks=(8, 10),
        serializer=ShardingCodec(
            chunk_shape=(4, 5), codecs=[ShardingCodec(chunk_shape=(2, 1), codecs=[BytesCodec(), GzipCodec()])]
        ),
        compressors=None,
    ),
}


WRAPPED = ["compressed shards", "transposed shards", "shards of shards"]  # shards inside other codecs have no other cut


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--shards", "none", "--chunks", "3x11"],
        ["--chunks", "3x2", "--shards", "9x4"],
        ["--codec", "zstd"],
        ["--shards", "none"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("layout", SHARDED)
def test_shards(tmp_path, out, layout, options):
    a = sample("i4", (9, 11))
    a[1:7, 2:] = 5  # whole innermost chunks of the fill value are left out
    write(tmp_path / "in", a, fill_value=5, **SHARDED[layout])
    if "--chunks" in options and layout in WRAPPED:
        tool.run("rechunk", *options, tmp_path / "in", out).fails(1, "in", "--codec")
        assert not out.exists()
        options = [*options, "--codec", "zstd"]
    found = rechunk(tmp_path / "in", out, *options)
    got = zarr.open_array(str(out), mode="r")
    assert bits(got[...]) == bits(a)
    if not options:
        before, after = rechunked.files(tmp_path / "in"), rechunked.files(out)
        assert found["plan"]["kind"] == "copy" and json.loads(before.pop("zarr.json")) == json.loads(
            after.pop("zarr.json")
        )
        assert {k: len(v) for k, v in after.items()} == {
            k: len(v) for k, v in before.items()
        }  # in any order inside a shard
    if "none" in options and (layout not in WRAPPED or "--codec" in options):
        assert got.shards is None
    if "9x4" in options:
        assert (got.shards, got.chunks) == ((9, 4), (3, 2))


FILTERS = {
    "delta": ("i4", lambda d: numcodecs.Delta(d)),
    "delta, narrow": ("i4", lambda d: numcodecs.Delta(d, "i2")),
    "delta of floats": ("f8", lambda d: numcodecs.Delta(d)),
    "scale": ("f8", lambda d: numcodecs.FixedScaleOffset(offset=2, scale=8, dtype=d, astype="u2")),
    "quantize": ("f4", lambda d: numcodecs.Quantize(3, d)),
    "astype": ("i4", lambda d: numcodecs.AsType("i2", d)),
    "packbits": ("?", lambda d: numcodecs.PackBits()),
    "shuffle": ("i4", lambda d: numcodecs.Shuffle(4)),
    "fletcher32": ("i4", lambda d: numcodecs.Fletcher32()),
}


@pytest.mark.every
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("endian", ["<", ">"])
@pytest.mark.parametrize("name", FILTERS)
def test_version_2_filters(tmp_path, out, name, endian, order):
    dtype, make = FILTERS[name]
    dtype = np.dtype(endian + dtype)
    a = np.nan_to_num(sample(dtype.str, (9, 12))).astype(dtype)
    z = write(
        tmp_path / "in", a, (4, 4), 2, filters=[make(dtype)], compressors=numcodecs.Zlib(), order=order, fill_value=0
    )
    want = z[...]  # what a lossy filter made of it
    done = tool.run("rechunk", "--chunks", "9x5", tmp_path / "in", out)
    if done.status:  # an encoder is there, or the codec is named
        done.fails(1, "in", json.loads((tmp_path / "in" / ".zarray").read_text())["filters"][0]["id"])
        assert not out.exists()
        return
    before, after = (json.loads((s / ".zarray").read_text()) for s in (tmp_path / "in", out))
    assert (before.pop("chunks"), after.pop("chunks")) == ([4, 4], [9, 5]) and after == before
    assert bits(zarr.open_array(str(out), mode="r")[...]) == bits(want)


@pytest.mark.parametrize("stored", ["|i1", "<i2", ">i8", "<f4"])
@pytest.mark.parametrize("dtype", ["|i1", "|u1", "?", "<i2", ">f4"])
def test_filters_that_change_the_type_become_version_3(tmp_path, out, dtype, stored):
    """zarr-python reads them, or they are refused: it does not where one byte becomes several."""
    a = (np.arange(20) % 2).astype(dtype)
    source = tmp_path / "in"
    write(source, a, (7,), 2, filters=[numcodecs.AsType(stored, dtype)], compressors=None, fill_value=0)
    assert bits(zarr.open_array(str(source), mode="r")[...]) == bits(a)
    done = tool.run("rechunk", "--zarr-format", "3", source, out)
    if np.dtype(dtype).itemsize == 1 and np.dtype(stored).itemsize > 1:
        done.fails(1, "array /", "zarr-python", "--codec")
        assert not out.exists()
        rechunk(source, out, "--zarr-format", "3", "--codec", "gzip")
    else:
        done.ok()
    assert bits(zarr.open_array(str(out), mode="r")[...]) == bits(a)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<i2", ">f8", "|u1", ">U2", ">M8[ms]"])
@pytest.mark.parametrize(
    "compressor",
    [None, numcodecs.Zstd(3), numcodecs.Blosc("zstd", 3, -1), numcodecs.LZ4(), numcodecs.BZ2()],
    ids=lambda c: getattr(c, "codec_id", "none"),
)
def test_version_2_compressors(tmp_path, out, compressor, dtype, order):
    a = sample(dtype, (7, 6, 5))
    write(
        tmp_path / "in",
        a,
        (3, 4, 2),
        2,
        compressors=compressor,
        order=order,
        chunk_key_encoding={"name": "v2", "separator": "/"},
    )
    rechunk(tmp_path / "in", out, "--chunks", "2x6x3")
    before, after = (json.loads((s / ".zarray").read_text()) for s in (tmp_path / "in", out))
    for meta in (before, after):  # an automatic shuffle may be spelled out
        if (meta["compressor"] or {}).get("shuffle") == -1:
            meta["compressor"]["shuffle"] = 2 if np.dtype(dtype).itemsize == 1 else 1
    assert (before.pop("chunks"), after.pop("chunks")) == ([3, 4, 2], [2, 6, 3]) and after == before
    assert bits(zarr.open_array(str(out), mode="r")[...]) == bits(a)
    third = out.with_name("third")
    rechunk(out, third, "--zarr-format", "3", "--chunks", "7x2x5")
    got = zarr.open_array(str(third), mode="r")
    assert got.metadata.zarr_format == 3 and bits(got[...]) == bits(a)


# ---- tensorstore ------------------------------------------------------------------------------------


def tensorstore_spec(path, dtype, shape, chunk, layout):
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    if layout.startswith("v2"):
        order = "F" if layout == "v2 F" else "C"
        return {
            "driver": "zarr",
            "kvstore": {"driver": "file", "path": f"{path}/"},
            "metadata": {
                "shape": list(shape),
                "chunks": list(chunk),
                "dtype": np.dtype(dtype).str,
                "order": order,
                "fill_value": None,
                "filters": None,
                "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
                "dimension_separator": ".",
            },
        }
    codecs = {
        "plain": [little],
        "gzip": [little, {"name": "gzip", "configuration": {"level": 3}}],
        "transposed": [
            {"name": "transpose", "configuration": {"order": [2, 0, 1]}},
            little,
            {"name": "zstd", "configuration": {"level": 3}},
        ],
        "sharded": [
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": [2, 3, 2],
                    "codecs": [
                        little,
                        {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 2, "shuffle": "shuffle"}},
                    ],
                    "index_codecs": [little, {"name": "crc32c"}],
                },
            }
        ],
    }[layout]
    return {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{path}/"},
        "metadata": {
            "shape": list(shape),
            "data_type": dtype,
            "codecs": codecs,
            "chunk_key_encoding": {"name": "default"},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        },
    }


@pytest.mark.parametrize("layout", ["plain", "gzip", "transposed", "sharded", "v2 C", "v2 F"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex64"])
def test_tensorstore(tmp_path, dtype, layout):
    a = sample(np.dtype(dtype).str, (9, 11, 5))
    ts = tensorstore.open(tensorstore_spec(tmp_path / "0", dtype, a.shape, (4, 6, 4), layout), create=True).result()
    ts.write(a).result()
    fmt, digests = 2 if layout.startswith("v2") else 3, {expected_digest(a)}
    for i, options in enumerate(
        (["--shards", "none", "--chunks", "9x2x5"] if fmt == 3 else ["--chunks", "9x2x5"], ["--chunks", "2x11x1"])
    ):
        rechunk(tmp_path / str(i), tmp_path / str(i + 1), *options, "-j", "2")
        assert bits(through_tensorstore(tmp_path / str(i + 1), fmt)) == bits(a)
        digests |= {d for _, d in rechunked.digests(tmp_path / str(i + 1)).values()}
    assert len(digests) == 1


# ---- any geometry -----------------------------------------------------------------------------------


def geometry(seed):
    """A random array and what to do to it: rank 0 to 6, edges, empty dimensions, chunks beyond the array."""
    r = random.Random(seed)
    rank = (0, 1, 2, 3, 3, 4, 5, 6)[seed % 8]
    most = {0: 1, 1: 500, 2: 60, 3: 20, 4: 9, 5: 6, 6: 5}[rank]
    shape = [r.randint(1, most) for _ in range(rank)]
    if rank and seed % 11 == 5:
        shape[r.randrange(rank)] = 0

    def chunk():
        return [
            r.choice([1, r.randint(1, most + 3), max(1, n), r.randint(1, max(1, n)), r.choice([2, 3, 5, 7])])
            for n in shape
        ]

    before, after = chunk(), chunk()
    for side in (before, after):  # not thousands of files
        while math.prod(-(-n // c) for n, c in zip(shape, side)) > 250:
            i = r.randrange(rank)
            side[i] *= 2
    fmt, to = r.choice((2, 3)), r.choice((2, 3))
    shards = [c * r.randint(1, 3) for c in after] if rank and to == 3 and r.random() < 0.4 else None
    return shape, before, after, fmt, to, shards, r


@pytest.mark.every
@pytest.mark.parametrize("seed", range(56))
def test_any_geometry(tmp_path, out, seed):
    shape, before, after, fmt, to, shards, r = geometry(seed)
    a = sample(r.choice(["i2", "f4", "f8", "u1", "str"]), shape)
    layout = {}
    if fmt == 3 and shape and r.random() < 0.4:
        layout["shards"] = [c * r.randint(1, 3) for c in before]
    elif fmt == 2 and r.random() < 0.5:
        layout["order"] = "F"
    write(tmp_path / "in", a, before, fmt, **layout)
    options = ["--zarr-format", str(to), "-j", str(r.randint(1, 3)), "--verify", "full"]
    of = "*:" if len(shape) == 1 else ""  # a shape for nobody in particular leaves coordinates whole
    if shape:
        options += ["--chunks", of + shape_option(after)]
    if shape and to == 3:
        options += ["--shards", of + shape_option(shards) if shards else "none"]
    found = rechunk(tmp_path / "in", out, *options)
    got = zarr.open_array(str(out), mode="r")
    assert got.shape == tuple(shape) and bits(np.asarray(got[...], got.dtype)) == bits(a)
    assert found["digest"] == expected_digest(a)
    if shape and 0 not in shape:  # what lies beyond the array is cut off
        assert list(got.chunks) == [min(c, n) for c, n in zip(after, shape)]
        assert (got.shards is None) == (shards is None)
    if 0 in shape:
        assert found["counted"]["chunk_reads"] == found["counted"]["chunk_writes"] == 0


TIGHT = {  # shape, chunks before and after
    "maps to series": ((64, 512, 512), (1, 512, 512), (64, 32, 32)),
    "series to maps": ((64, 512, 512), (64, 32, 32), (1, 512, 512)),
    "relatively prime": ((150, 300, 320), (50, 80, 70), (64, 77, 101)),
    "long to wide": ((3000, 4000), (3000, 11), (13, 4000)),
}


@pytest.mark.roomy
@pytest.mark.few
@pytest.mark.parametrize("case", TIGHT)
def test_in_little_memory(tmp_path, out, case):
    """A little more than what the refusal names as the least: the plans that are not one sweep."""
    shape, before, after = TIGHT[case]
    a = (np.arange(math.prod(shape)) // 777 % 1000).astype("f4").reshape(shape)
    write(tmp_path / "in", a, before, compressors=ZstdCodec(level=1))
    options = ["-j", "1", "--chunks", shape_option(after), "--verify", "full"]
    refusal = tool.run("rechunk", "--memory", "1MiB", *options, tmp_path / "in", out).fails(1, "--memory")
    least, unit = re.findall(r"([\d.]+) ?([KMG]iB)", refusal.err)[-1]
    found = rechunk(tmp_path / "in", out, *options, "--memory", f"{float(least) * 1.25}{unit}")
    assert found["plan"]["kind"] != "copy" and found["plan"]["traffic_nbytes"] >= found["plan"]["bound_nbytes"]
    assert bits(zarr.open_array(str(out), mode="r")[...]) == bits(a)


# ---- NetCDF -----------------------------------------------------------------------------------------

NETCDF = [
    "cmip_nc4_z.nc",
    "groups_nested.nc",
    "strings_shapes.nc",
    "interleaved_cdf5.nc",
    "chars_nc4.nc",
    "type_cdf1_f8.nc",
    "plugin_lzf_shuffle.h5",
    "era5_cdf2.nc",
]


@pytest.mark.parametrize("name", NETCDF)
def test_digests_of_a_file_its_store_and_its_rechunk_are_one(out, name):
    path, third = paths.CORPUS / name, out.with_name("third.zarr")
    tool.nc2zarr("-q", "--verify", "none", path, out).ok()
    rechunked.run(out, third, "--chunks", "auto:500B", "--codec", "gzip:1")
    want = rechunked.digests(path)
    assert want and rechunked.digests(out) == rechunked.digests(third)
    assert {n: d for n, (_, d) in want.items()} == {n: d for n, (_, d) in rechunked.digests(out).items()}


SAMPLES = [
    "v2_blosc_F.zarr",
    "v2_zstd_C.zarr",
    "v2_none_C.zarr",
    "v3_gzip.zarr",
    "v3_sharded.zarr",
    "v3_hierarchy.zarr",
]


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_of_others(out, name):
    store = paths.SHARED / "data" / "zarr" / name
    if not store.exists():
        pytest.skip("no ../shared/data beside this checkout")
    if name == "v3_sharded.zarr":  # its root has no metadata of its own
        store = store / "group"
    rechunked.run(store, out)
    assert rechunked.listing(out) == rechunked.listing(store)
    again = out.with_name("again")
    rechunked.run(store, again, "--chunks", "auto:32KiB", *(["--shards", "none"] if "v3" in name else []))
    assert rechunked.listing(again) == rechunked.listing(store)
