"""rechunk: ragged edges in a small memory, and codecs in the words that the source has for them."""

import json

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs.numcodecs

from support import paths, rechunked, tool

MIB = 1 << 20


# ---- target chunks that reach past the array's end ------------------------------------------------


@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")
def test_only_what_lies_inside_the_array_is_held(tmp_path, out):
    """Four target chunks of 8 MiB whole, of 8 MiB together inside the array."""
    data = np.random.default_rng(1).random((26, 201, 401), dtype="f4")
    source = tmp_path / "in.zarr"
    zarr.create_array(source, data=data, chunks=(1, 201, 401), compressors=None, fill_value=0.5)
    options = ["--chunks", "26x200x400", "--threads", "1", "--verify", "full"]
    memory = tool.least_mib("rechunk", *options, source, out) + 3
    (a,) = rechunked.run(source, out, *options, "--memory", f"{memory * MIB}")["arrays"]
    assert a["plan"]["kind"] == "sweep" and a["planned"]["chunk_decodes"] == 26
    assert a["plan"]["memory_nbytes"] < 4 * 26 * 200 * 400 * 4
    assert np.array_equal(zarr.open_array(out, mode="r")[...], data)
    # The last chunk is padded with the fill value.
    last = np.frombuffer((out / "c" / "0" / "1" / "1").read_bytes(), "<f4").reshape(26, 200, 400)
    assert np.array_equal(last[:, :1, :1], data[:, 200:, 400:])
    assert (last[:, 1:] == 0.5).all() and (last[:, :, 1:] == 0.5).all()


@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("more", [0, 3, 6, 10, 18, 34])
def test_ragged_in_any_memory(tmp_path, out, more, threads):
    data = np.random.default_rng(2).random((3, 1030, 1050), dtype="f4")
    source = tmp_path / "in.zarr"
    zarr.create_array(source, data=data, chunks=(1, 300, 1050), compressors=None)
    options = ["--chunks", "3x512x512", "--threads", str(threads), "--verify", "sample"]
    memory = tool.least_mib("rechunk", *options, source, out) + more
    document = rechunked.run(source, out, *options, "--memory", f"{memory}MiB")
    assert document["memory"]["limit_nbytes"] == memory * MIB
    assert np.array_equal(zarr.open_array(out, mode="r")[...], data)


@pytest.mark.few
@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")
@pytest.mark.parametrize("memory", [90, 100, 120])
def test_buffers_serve_all_arrays(tmp_path, out, memory):
    """One array has large source chunks, the other large target chunks: a worker has buffers for both."""
    root = zarr.create_group(tmp_path / "in.zarr")
    data = np.random.default_rng(4).random((48, 256, 512), dtype="f4")
    root.create_array("large", data=data, chunks=(24, 256, 512))
    root.create_array("small", data=data, chunks=(1, 256, 512))
    options = ["--chunks", "large:1x256x512", "--chunks", "small:24x256x512"]
    rechunked.run(tmp_path / "in.zarr", out, *options, "--memory", f"{memory}MiB", "--threads", "2", "--verify", "sample")
    for name in ("large", "small"):
        assert np.array_equal(zarr.open_group(out, mode="r")[name][...], data)


@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")
def test_verifying_in_full_is_counted(tmp_path, out):
    """A digest takes a chunk as stored, as decoded and as elements: where that does not fit, it says so before."""
    source = tmp_path / "in.zarr"
    zarr.create_array(source, data=np.random.default_rng(3).random((20, 200, 1000), dtype="f4"), chunks=(1, 200, 1000))
    options = ["--chunks", "20x200x1000", "--threads", "1"]
    full = tool.least_mib("rechunk", *options, "--verify", "full", source, out)
    less = f"{full - 7}MiB"
    tool.run("rechunk", *options, "--memory", less, "--verify", "full", source, out).fails(1, "need at least")
    assert not out.exists()
    rechunked.run(source, out, *options, "--memory", less, "--verify", "sample")
    rechunked.run(source, tmp_path / "full.zarr", *options, "--memory", f"{full}MiB", "--verify", "full")


# ---- codecs that stay -----------------------------------------------------------------------------

DATA = np.arange(600, dtype="i4").reshape(20, 30)
V2 = {
    "blosc chooses its shuffle": {"compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}},
    "levels by default": {"compressor": {"id": "zstd"}, "filters": [{"id": "delta", "dtype": "<i4"}]},
    "zlib": {"compressor": {"id": "zlib", "level": 1}, "filters": None},
    "nothing": {"compressor": None, "filters": None},
}
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
V3 = {
    "defaults left out": [BYTES, {"name": "zstd", "configuration": {"level": 1}}],
    "spelled out": [BYTES, {"name": "zstd", "configuration": {"level": 1, "checksum": False}}],
    "checked": [BYTES, {"name": "gzip", "configuration": {"level": 1}}, {"name": "crc32c"}],
}


def source_v2(path, members):
    kept = {k: v for k, v in members.items() if v is not None}
    compressor = numcodecs.get_codec(dict(kept["compressor"])) if "compressor" in kept else None
    filters = [numcodecs.get_codec(dict(f)) for f in kept.get("filters", [])] or None
    zarr.create_array(path, data=DATA, chunks=(7, 8), zarr_format=2, compressors=compressor, filters=filters)
    document = json.loads((path / ".zarray").read_text()) | members
    (path / ".zarray").write_text(json.dumps(document))


def source_v3(path, codecs, shards=None):
    make = {"zstd": zarr.codecs.ZstdCodec(level=1), "gzip": zarr.codecs.GzipCodec(level=1), "crc32c": zarr.codecs.Crc32cCodec()}
    compressors = [make[c["name"]] for c in codecs[1:]]
    zarr.create_array(path, data=DATA, chunks=(7, 8), shards=shards, compressors=compressors)
    document = json.loads((path / "zarr.json").read_text())
    if shards:
        document["codecs"][0]["configuration"]["codecs"] = codecs
    else:
        document["codecs"] = codecs
    (path / "zarr.json").write_text(json.dumps(document))


@pytest.mark.parametrize("members", V2.values(), ids=V2)
def test_codecs_of_version_2_stay_as_written(tmp_path, out, members):
    source_v2(tmp_path / "in.zarr", members)
    rechunked.run(tmp_path / "in.zarr", out, "--chunks", "10x11", "--verify", "full")
    document = json.loads((out / ".zarray").read_text())
    assert {k: document[k] for k in members} == members
    assert document["chunks"] == [10, 11]
    assert np.array_equal(zarr.open_array(out, mode="r")[...], DATA)


@pytest.mark.every
@pytest.mark.parametrize("before", [None, (14, 16)], ids=["unsharded", "sharded"])
@pytest.mark.parametrize("after", [None, (20, 22)], ids=["to chunks", "to shards"])
@pytest.mark.parametrize("codecs", V3.values(), ids=V3)
def test_codecs_of_version_3_stay_as_written(tmp_path, out, codecs, before, after):
    source_v3(tmp_path / "in.zarr", codecs, before)
    shards = "x".join(map(str, after)) if after else "none"
    rechunked.run(tmp_path / "in.zarr", out, "--chunks", "10x11", "--shards", shards, "--verify", "full")
    written = json.loads((out / "zarr.json").read_text())["codecs"]
    if after:
        assert written[0]["configuration"]["chunk_shape"] == [10, 11]
        written = written[0]["configuration"]["codecs"]
    assert written == codecs
    assert np.array_equal(zarr.open_array(out, mode="r")[...], DATA)


def test_a_shuffle_that_no_other_reader_would_undo(tmp_path, out):
    """numcodecs refuses bytes that are no multiple of the element size."""
    values = np.arange(12 * 7, dtype="i2").reshape(12, 7)
    shuffle = zarr.codecs.numcodecs.Shuffle(elementsize=4)
    zarr.create_array(tmp_path / "in.zarr", data=values, chunks=(2, 7), compressors=[shuffle])
    done = tool.run("rechunk", "--chunks", "3x5", tmp_path / "in.zarr", out).fails(1, "not a multiple")
    assert "array /: codec shuffle" in done.err and not out.exists()
    tool.run("rechunk", "--dry-run", "--chunks", "3x5", tmp_path / "in.zarr", out).fails(1, "not a multiple")
    rechunked.run(tmp_path / "in.zarr", out, "--chunks", "4x5")
    assert np.array_equal(zarr.open_array(out, mode="r")[...], values)


ROUNDING = {
    "offset": zarr.codecs.numcodecs.FixedScaleOffset(offset=280, scale=1000, dtype="f4", astype="u2"),
    "digits": zarr.codecs.numcodecs.Quantize(digits=2, dtype="f4"),
    "bits": zarr.codecs.numcodecs.BitRound(keepbits=3),
    "type": zarr.codecs.numcodecs.AsType(encode_dtype="f2", decode_dtype="f4"),
}


@pytest.mark.parametrize("layout", [["--chunks", "6x6"], ["--chunks", "24x16", "--shards", "24x16"]])
@pytest.mark.parametrize("name", ROUNDING)
def test_codecs_that_round_lose_nothing(tmp_path, out, name, layout):
    """Rounded values come back; a fill value that rounding would change is refused."""
    a = zarr.create_array(
        tmp_path / "in.zarr", shape=(24, 16), chunks=(4, 4), dtype="f4", filters=[ROUNDING[name]], fill_value=0.1
    )
    a[:12, :8] = (280 + np.sin(np.arange(24 * 16) / 50)).reshape(24, 16)[:12, :8]
    done = tool.run("rechunk", "--verify", "none", *layout, tmp_path / "in.zarr", out)
    done.fails(1, "choose another codec")
    assert "array /: chunk" in done.err or "variable /: chunk" in done.err
    assert not out.exists()
    rechunked.run(tmp_path / "in.zarr", out, "--verify", "full", "--codec", "zstd", *layout)
    a[...] = (280 + np.sin(np.arange(24 * 16) / 50)).reshape(24, 16)
    rechunked.run(tmp_path / "in.zarr", out, "--overwrite", "--verify", "full", *layout)
    assert np.array_equal(zarr.open_array(out, mode="r")[...], a[...])


def test_another_codec_is_written_whole(tmp_path, out):
    source_v3(tmp_path / "in.zarr", V3["defaults left out"])
    rechunked.run(tmp_path / "in.zarr", out, "--codec", "zstd:1", "--verify", "full")
    assert json.loads((out / "zarr.json").read_text())["codecs"] == V3["spelled out"]


# ---- strings --------------------------------------------------------------------------------------


def make_strings(path, shape, chunks, length):
    n = int(np.prod(shape))
    text = np.array([f"{i}-" + "é" * (i * 7919 % length) for i in range(n)], "U").reshape(shape)
    zarr.create_array(path, shape=shape, chunks=chunks, dtype=str, fill_value="none")[...] = text
    return text


@pytest.mark.every
@pytest.mark.parametrize("chunks", ["70x9", "1x40", "300x1", "2000x2000"])
@pytest.mark.parametrize("threads", [1, 4])
def test_strings_by_many_threads(tmp_path, out, chunks, threads):
    text = make_strings(tmp_path / "in.zarr", (211, 37), (50, 37), 60)
    rechunked.run(tmp_path / "in.zarr", out, "--chunks", chunks, "--threads", str(threads), "--verify", "full")
    assert zarr.open_array(out, mode="r")[...].tolist() == text.tolist()


@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")
@pytest.mark.roomy
def test_strings_that_are_longer_than_a_part_of_the_memory(tmp_path, out):
    """Too long for each of four threads, and not for one; for a smaller memory they are refused."""
    text = make_strings(tmp_path / "in.zarr", (60000, 1), (30000, 1), 400)
    options = ["--chunks", "7000x1", "--threads", "4", "--verify", "none"]
    rechunked.run(tmp_path / "in.zarr", out, *options, "--memory", "110MiB")
    assert zarr.open_array(out, mode="r")[...].tolist() == text.tolist()
    small = tmp_path / "small.zarr"
    tool.run("rechunk", *options, "--memory", "40MiB", tmp_path / "in.zarr", small).fails(1, "more with --memory")
    assert not small.exists()


@pytest.mark.roomy
@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")
def test_digests_of_long_text_keep_to_the_memory(tmp_path):
    """A chunk that unpacks to more than there is room for is refused, the same chunk with room is not."""
    z = zarr.create_array(str(tmp_path / "in.zarr"), shape=(48,), chunks=(16,), dtype=str)
    z[...] = [chr(65 + i) * (1 << 20) for i in range(48)]
    for limit, fits in ((48 << 20, False), (64 << 20, True), (256 << 20, True)):
        done = tool.run("rechunk", "--digest", "--memory", str(limit), tmp_path / "in.zarr", peak=True)
        assert done.peak <= limit or paths.SANITIZED, str(done)
        if fits:
            done.ok()
        else:
            done.fails(1, "chunk 0", "the limit is 48.00 MiB")


@pytest.mark.parametrize("compressor", [None, zarr.codecs.ZstdCodec()], ids=["raw", "zstd"])
@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")
def test_digests_keep_to_the_memory(tmp_path, compressor):
    """The least that is named for the chunks of two arrays is enough, for any number of threads, and is kept."""
    for name in "ab":
        z = zarr.create_array(
            tmp_path / "in.zarr", name=name, shape=(6 << 20,), chunks=(3 << 20,), dtype="f4", compressors=compressor
        )
        z[...] = np.random.default_rng(0).random(z.shape, "f4")
    least = tool.least_mib("rechunk", "--digest", tmp_path / "in.zarr")
    for threads in (1, 4):
        done = tool.run(
            "rechunk", "--digest", "-j", threads, "--memory", f"{least + 1}MiB", tmp_path / "in.zarr", peak=True
        ).ok()
        assert done.peak <= (least + 1) << 20, str(done)
        tool.run("rechunk", "--digest", "-j", threads, "--memory", f"{least // 2}MiB", tmp_path / "in.zarr").fails(
            1, "array a", "--memory"
        )


def test_a_dry_run_counts_the_memory_of_verification(tmp_path, out):
    source = tmp_path / "in.zarr"
    zarr.create_array(source, data=np.arange(2_000_000.0), chunks=(2_000_000,), fill_value=0, compressors=None)
    options = ["-q", "--chunks", "200000", "--codec", "zstd", "--verify", "full", "--threads", "1"]
    least = tool.least_mib("rechunk", *options, source, out)
    for limit in (least - 4, least + 4):
        done = [tool.run("rechunk", *more, *options, "--memory", f"{limit}MiB", source, out) for more in (["--dry-run"], [])]
        assert [d.status for d in done] == [int(limit < least)] * 2, done


@pytest.mark.parametrize("compressor, length", [(None, 0), (None, 31), (None, 33), (zarr.codecs.ZstdCodec(), 0)])
def test_a_chunk_that_is_copied_has_its_length(tmp_path, out, compressor, length):
    """Without a look at its elements: nothing that opens is left behind."""
    source = tmp_path / "in.zarr"
    a = zarr.create_array(source, shape=(16,), dtype="f4", chunks=(8,), compressors=compressor, name="v")
    a[:] = np.arange(16)
    chunk = source / "v" / "c" / "1"
    chunk.write_bytes((chunk.read_bytes() + bytes(33))[:length])
    tool.run("rechunk", "--verify", "none", source, out).fails(1, "in.zarr", "v: chunk 1", f"{length} bytes")
    assert not out.exists()


@pytest.mark.parametrize("beside", [False, True])
def test_a_shape_without_a_name_is_of_an_only_array(tmp_path, out, beside):
    """Of one dimension as well; beside others it is a coordinate, which stays as it is."""
    source = tmp_path / "in.zarr"
    group = zarr.create_group(source)
    group.create_array("v", data=np.arange(20.0), chunks=(10,))
    if beside:
        group.create_array("w", data=np.arange(20.0).reshape(4, 5), chunks=(2, 5))
    tool.run("rechunk", "--chunks", "4x4" if beside else "4", source, out).ok()
    got = zarr.open_group(out, mode="r")
    assert got["v"].chunks == ((10,) if beside else (4,)) and (got["v"][...] == np.arange(20)).all()
