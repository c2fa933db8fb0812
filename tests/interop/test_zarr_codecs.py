"""Every codec of numcodecs in every place, every type of text and bytes, every fill value: as zarr-python has them."""

import json

import numcodecs
import numpy as np
import pytest
import zarr

from support import rechunked, tool

ANY = [
    numcodecs.Zlib(1),
    numcodecs.GZip(1),
    numcodecs.BZ2(1),
    numcodecs.Zstd(1),
    numcodecs.LZ4(),
    numcodecs.Blosc("lz4", 1, 1),
    numcodecs.Adler32(),
    numcodecs.CRC32(),
    numcodecs.CRC32C(),
    numcodecs.Fletcher32(),
    numcodecs.Shuffle(4),
    numcodecs.JenkinsLookup3(),
    numcodecs.LZMA(),
]
TYPED = [
    numcodecs.Delta("<i4"),
    numcodecs.Delta("<i4", "<i2"),
    numcodecs.Delta(">i4"),
    numcodecs.Delta("<i4", ">i4"),
    numcodecs.FixedScaleOffset(0, 1, "<i4", "<i4"),
    numcodecs.FixedScaleOffset(0, 1, ">i4", ">i4"),
    numcodecs.AsType("<i8", "<i4"),
    numcodecs.AsType(">i8", ">i4"),
    numcodecs.AsType(">i4", "<i4"),
]
VALUES = (np.arange(77, dtype="<i4") * 37 % 251).reshape(7, 11)


def name_of(codec):
    return repr(codec).replace("'", "")


def array_json(path, fmt=2, **members):
    """An array that zarr-python would not make."""
    path.mkdir(parents=True, exist_ok=True)
    if fmt == 2:
        document = {
            "zarr_format": 2,
            "shape": [5],
            "chunks": [2],
            "dtype": "<i4",
            "fill_value": 0,
            "order": "C",
            "filters": None,
            "compressor": None,
        }
    else:
        document = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [5],
            "data_type": "int32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "attributes": {},
        }
    (path / (".zarray" if fmt == 2 else "zarr.json")).write_text(json.dumps({**document, **members}))


def read(path):
    values = zarr.open_array(str(path), mode="r")[...]
    return values if values.dtype.kind in "OT" else values.astype(values.dtype.newbyteorder("<"))


def same(a, b):
    if a.dtype.kind in "OT":
        return a.shape == b.shape and a.tolist() == b.tolist()
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def goes_or_is_refused(source, target, *options):
    """True where TARGET holds what SOURCE does; false where a sentence said why not."""
    done = tool.run("rechunk", "--verify", "full", *options, source, target)
    if done.status == 0:
        assert same(read(source), read(target)), str(done)
        return True
    assert done.status in (1, 2) and done.err.count("\n") >= 1 and not target.exists(), str(done)
    return False


def write(path, dtype, filters, compressor, order="C", fill=0):
    z = zarr.create_array(
        str(path),
        shape=VALUES.shape,
        chunks=(4, 5),
        dtype=dtype,
        zarr_format=2,
        filters=filters,
        compressors=compressor,
        order=order,
        fill_value=fill,
    )
    z[...] = VALUES.astype(dtype)
    return z[...]


KNOWN = [c for c in ANY if c.codec_id not in ("lzma", "jenkins_lookup3")]


@pytest.mark.parametrize("codec", ANY, ids=name_of)
@pytest.mark.parametrize("place", ["filter", "compressor", "both", "before delta", "twice"])
def test_a_codec_in_either_place(tmp_path, codec, place):
    filters, compressor = {
        "filter": ([codec], None),
        "compressor": (None, codec),
        "both": ([codec], numcodecs.Zstd(1)),
        "before delta": ([codec, numcodecs.Delta("<u1")], None),
        "twice": ([codec], codec),
    }[place]
    try:
        want = write(tmp_path / "s", "<i4", filters, compressor)
    except ValueError as e:
        pytest.skip(f"numcodecs writes no such array: {e}")
    assert same(want, VALUES), "numcodecs reads something else than it wrote"
    was = json.loads((tmp_path / "s" / ".zarray").read_text())
    assert goes_or_is_refused(tmp_path / "s", tmp_path / "kept")
    got = json.loads((tmp_path / "kept" / ".zarray").read_text())
    assert (got["filters"], got["compressor"]) == (was["filters"], was["compressor"])
    ok = codec in KNOWN and place != "before delta"
    chunks = "8x4" if codec.codec_id == "shuffle" else "3x11"
    if goes_or_is_refused(tmp_path / "s", tmp_path / "cut", "--chunks", f"/:{chunks}"):
        got = json.loads((tmp_path / "cut" / ".zarray").read_text())
        assert (got["filters"], got["compressor"]) == (was["filters"], was["compressor"])
    else:
        assert not ok
    assert goes_or_is_refused(tmp_path / "s", tmp_path / "other", "--codec", "/:zstd", "--chunks", "/:7x3") == ok
    if goes_or_is_refused(tmp_path / "s", tmp_path / "three", "--zarr-format", "3", "--chunks", "/:4x3"):
        goes_or_is_refused(tmp_path / "three", tmp_path / "two", "--zarr-format", "2", "--chunks", "/:4x7")
    else:
        assert not ok


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<i4", ">i4"])
@pytest.mark.parametrize("second", [None, numcodecs.Delta("<i4"), numcodecs.Delta(">i4"), numcodecs.Shuffle(4)], ids=name_of)
@pytest.mark.parametrize("codec", TYPED, ids=name_of)
def test_byte_orders_of_filters(tmp_path, codec, second, dtype, order):
    """numcodecs views the bytes as its own type: what another order makes of them is decoded alike, or refused."""
    try:
        want = write(tmp_path / "s", dtype, [codec] + ([second] if second else []), numcodecs.Zstd(1), order)
    except (OverflowError, ValueError) as e:
        pytest.skip(f"numcodecs writes no such array: {e}")
    stored = np.asarray(want).astype("<i4")
    assert goes_or_is_refused(tmp_path / "s", tmp_path / "kept")
    config = codec.get_config()
    goes = goes_or_is_refused(tmp_path / "s", tmp_path / "cut", "--chunks", "/:3x11", "--codec", "/:gzip:1")
    if config.get("dtype", config.get("decode_dtype")) == dtype and second is None:
        assert goes and same(read(tmp_path / "cut"), stored)
    if goes_or_is_refused(tmp_path / "s", tmp_path / "three", "--zarr-format", "3", "--chunks", "/:4x4"):
        goes_or_is_refused(tmp_path / "three", tmp_path / "two", "--zarr-format", "2", "--chunks", "/:7x2")


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("codec", TYPED, ids=name_of)
def test_byte_orders_of_filters_in_version_3(tmp_path, codec, endian):
    config = codec.get_config()
    name = config.pop("id")
    array_json(
        tmp_path / "s",
        3,
        codecs=[
            {"name": f"numcodecs.{name}", "configuration": config},
            {"name": "bytes", "configuration": {"endian": endian}},
        ],
    )
    (tmp_path / "s/c").mkdir()
    width = np.dtype(config.get("astype", config.get("encode_dtype"))).itemsize
    stored = np.array([5, 7], f"{'<' if endian == 'little' else '>'}i{width}")
    (tmp_path / "s/c/1").write_bytes(stored.tobytes())
    try:
        read(tmp_path / "s")
    except ValueError:
        pytest.skip("zarr-python reads no such array")
    assert goes_or_is_refused(tmp_path / "s", tmp_path / "kept")
    goes_or_is_refused(tmp_path / "s", tmp_path / "cut", "--chunks", "/:5", "--codec", "/:zstd")


# ---- text and bytes ----------------------------------------------------------------------------------

TEXT = [["a", "", "ü", "b\0c", "x" * 300], ["", "", "", "日本", "z"]]
KINDS = {
    "string": "string",
    "variable_length_bytes": "variable_length_bytes",
    "fixed_length_utf32": "U3",
    "null_terminated_bytes": "S3",
    "raw_bytes": "V3",
}


def text_values(kind):
    if kind == "string":
        return np.array(TEXT, object)
    data = [[t.encode() for t in row] for row in TEXT]
    if kind == "variable_length_bytes":
        data[0][3] = b"\xff\xfe\0"
        out = np.empty((2, 5), object)
        for i, row in enumerate(data):
            out[i] = row
        return out
    if kind == "fixed_length_utf32":
        return np.array(TEXT).astype("U3")
    values = np.array(data).astype("S3")
    return values if kind == "null_terminated_bytes" else values.view("V3")


@pytest.mark.long
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("fmt", [2, 3])
@pytest.mark.parametrize("codec", ["none", "zstd:1", "gzip", "blosc", "blosc:lz4:3:bitshuffle", "same"])
def test_text_and_bytes_with_every_codec(tmp_path, kind, fmt, codec):
    from zarr.dtype import VariableLengthBytes

    values = text_values(kind)
    dtype = {"string": str, "variable_length_bytes": VariableLengthBytes()}.get(kind, KINDS[kind])
    kw = {"fill_value": np.zeros((), "V3")[()]} if kind == "raw_bytes" else {}
    z = zarr.create_array(str(tmp_path / "s"), shape=(2, 5), chunks=(1, 3), dtype=dtype, zarr_format=fmt, **kw)
    z[...] = values
    for other in (2, 3):
        for chunks in ("same", "2x2"):
            options = ["--codec", codec, "--zarr-format", str(other)]
            options += [] if chunks == "same" else ["--chunks", chunks]
            target = tmp_path / f"{other}{chunks}"
            assert goes_or_is_refused(tmp_path / "s", target, *options)
            assert rechunked.digests(target) == rechunked.digests(tmp_path / "s")
            doc = json.loads((target / ("zarr.json" if other == 3 else ".zarray")).read_text())
            if other == 3:
                names = [c["name"] for c in doc["codecs"]]
                assert ("vlen-utf8" in names) == (kind == "string") and ("vlen-bytes" in names) == (
                    kind == "variable_length_bytes"
                )


# ---- fill values -------------------------------------------------------------------------------------

FILLS = [
    0, 1, -1, 300, True, False, 0.0, 1.0, 0.5, "0", "-1", "300", "0.5", "", "abc", "YWJj", "NaN", "nan", "-Infinity",
    "1e3", None, [1, 2], ["NaN", 0], "0x7fc00001", "NaT",
]  # fmt: skip
V2 = ["|u1", "<i4", ">i4", "<f4", ">f8", "|b1", "|S3", "<U3", "<M8[s]", "<c8", "|V3", "vlen-utf8", "vlen-bytes"]


@pytest.mark.parametrize("dtype", V2)
def test_fill_values_of_version_2(tmp_path, dtype):
    """Missing chunks become the value that zarr-python reads; an unknown one blocks no other array."""
    root = tmp_path / "s"
    zarr.create_group(str(root), zarr_format=2).create_array("other", shape=(4,), chunks=(2,), dtype="i2")[...] = 7
    vlen = dtype.startswith("vlen")
    filters = [{"id": dtype}] if vlen else None
    readable = []
    for i, fill in enumerate(FILLS):
        array_json(root / f"a{i}", dtype="|O" if vlen else dtype, filters=filters, fill_value=fill)
        try:
            read(root / f"a{i}")
        except Exception:  # whatever it says, it does not open
            continue
        readable.append(i)
    assert readable
    done = tool.run("rechunk", "--verify", "full", "--chunks", "5", root, tmp_path / "t").ok()
    # Fill values that no reader understands keep an array from being digested.
    assert tool.run("rechunk", "--digest", root).status in (0, 3)
    different = 0
    for i in readable:
        got = tmp_path / f"t/a{i}"
        if same(read(root / f"a{i}"), read(got)):
            continue
        different += 1
    assert different == 0, str(done)


def test_a_text_fill_value_is_not_lost_with_a_chunk(tmp_path):
    """A chunk of "" is no fill where the fill is "0"."""
    z = zarr.create_array(str(tmp_path / "s"), shape=(4,), chunks=(2,), dtype=str, zarr_format=2, config={"write_empty_chunks": True})
    z[...] = ["", "", "0", "0"]
    document = json.loads((tmp_path / "s/.zarray").read_text())
    (tmp_path / "s/.zarray").write_text(json.dumps({**document, "fill_value": 0}))
    assert goes_or_is_refused(tmp_path / "s", tmp_path / "t", "--codec", "none")
    assert read(tmp_path / "t").tolist() == ["", "", "0", "0"]


NANS = {
    "float16": ["0x7e00", "0x7e01", "0xfe00", "0x7c01"],
    "float32": ["0x7fc00000", "0x7fc00001", "0xffc00000", "0x7fa00000"],
    "float64": ["0x7ff8000000000000", "0x7ff8000000000001", "0xfff8000000000000", "0x7ff0000000000001"],
}


@pytest.mark.parametrize("fmt", [2, 3])
@pytest.mark.parametrize("dtype", list(NANS))
def test_chunks_of_a_nan_that_json_does_not_hold(tmp_path, dtype, fmt):
    """All of them are written in the one format that cannot say which NaN is the fill, and in the other where readers change it."""
    width = np.dtype(dtype).itemsize
    for i, text in enumerate(NANS[dtype]):
        bits = np.frombuffer(bytes.fromhex(text[2:])[::-1] * 5, dtype)
        source = tmp_path / f"s{i}"
        array_json(source, 3, data_type=dtype, fill_value=text)
        (source / "c").mkdir()
        for chunk in range(2):
            (source / f"c/{chunk}").write_bytes(bits[:2].tobytes())
        options = ["--verify", "full", "--zarr-format", str(fmt), "--chunks", "5", "--codec", "none"]
        tool.run("rechunk", *options, source, tmp_path / f"t{i}").ok()
        got = read(tmp_path / f"t{i}")[:4]
        assert got.tobytes().hex() == bits[:4].tobytes().hex(), (text, width)
        assert rechunked.digests(source) == rechunked.digests(tmp_path / f"t{i}")
