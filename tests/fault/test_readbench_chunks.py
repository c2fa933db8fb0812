"""Chunks that are missing or corrupt: told, counted, and never passed off as fast reads."""

import collections
import math
import re
import shutil
import struct

import google_crc32c
import netCDF4
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, ZstdCodec

from support import readbench as rb

SHAPE, CHUNK = (12, 20, 24), (4, 10, 8)
GRID = [-(-n // c) for n, c in zip(SHAPE, CHUNK)]
FIELD = np.random.default_rng(4).random(SHAPE, "f4")
FILL = np.float32(-99.5)
NBYTES = 4 * math.prod(CHUNK)
# Each chunk is read as two samples, each sample lies in one chunk.
TILED = ["--sample", "2x10x8", "--order", "all", "--batch", 3, "--batches", 1000, "--epochs", 1]
SAMPLES = 2 * math.prod(GRID)


def make(path, fmt=3, **kw):
    group = zarr.create_group(str(path), zarr_format=fmt)
    group.create_array("t", shape=SHAPE, chunks=CHUNK, dtype="f4", fill_value=FILL, **kw)[...] = FIELD
    return path


def chunk_file(path, at, fmt=3):
    return path / "t" / "c" / "/".join(map(str, at)) if fmt == 3 else path / "t" / ".".join(map(str, at))


def with_fill(*missing):
    values = FIELD.copy()
    for at in missing:
        values[rb.box([i * c for i, c in zip(at, CHUNK)], CHUNK)] = FILL
    return values


# ---- missing --------------------------------------------------------------------------------------

GONE = [(0, 0, 0), (1, 1, 2), (2, 0, 1)]


@pytest.mark.parametrize("mode", ["sync", "threads", "processes"])
@pytest.mark.parametrize("loader", ["map", "planned"])
@pytest.mark.parametrize("fmt", [2, 3])
def test_missing_chunks_are_the_fill_value_and_are_counted(tmp_path, fmt, loader, mode):
    path = make(tmp_path / "t.zarr", fmt)
    for at in GONE:
        chunk_file(path, at, fmt).unlink()
    # Rates and predictions meet missing chunks, too.
    program = "readbench" if (loader, mode) == ("map", "threads") else rb.BARE
    report = rb.measure(tmp_path / "out", path, *TILED, "--loader", loader, "--mode", mode, program=program)
    session, counts = report.only, report.only.counts
    rb.same_bytes(session, {"t": with_fill(*GONE)})
    met = 2 if loader == "map" else 1  # times that each chunk is read
    assert counts["missing_chunks"] == met * len(GONE)
    assert counts["missing_nbytes"] == len(GONE) * NBYTES, "the elements that samples were given of it"
    assert counts["failed_chunks"] == counts["failed_batches"] == 0
    # Rates count only what was read.
    wall = session.training["wall_seconds"]
    there = math.prod(SHAPE) * 4 - len(GONE) * NBYTES
    assert session.rates["logical"] == pytest.approx(there / wall)
    assert counts["decoded_nbytes"] == met * (math.prod(GRID) - len(GONE)) * NBYTES
    assert session.rates["decoded"] == pytest.approx(counts["decoded_nbytes"] / wall)
    assert re.search(rf"missing chunks +{counts['missing_chunks']}\b", report.result.out)
    said = [f["sentence"] for f in session.findings if "missing" in f["rule"] or "not in the store" in f["sentence"]]
    assert said, session.findings


def test_a_store_without_any_chunk_has_no_speed(tmp_path):
    group = zarr.create_group(str(tmp_path / "t.zarr"))
    group.create_array("t", shape=SHAPE, chunks=CHUNK, dtype="f4", fill_value=FILL)
    session = rb.measure(tmp_path / "out", tmp_path / "t.zarr", *TILED).only
    rb.same_bytes(session, {"t": np.full(SHAPE, FILL)})
    assert session.counts["missing_chunks"] == SAMPLES and session.counts["decoded_nbytes"] == 0
    rates = session.rates
    assert rates["logical"] == rates["decoded"] == rates["physical"] == 0
    assert not rates["capacity"] and not session.accelerators["got"]
    assert session.accelerators["fed"] == 0


def test_missing_chunks_in_a_shard(tmp_path):
    path = tmp_path / "t.zarr"
    group = zarr.create_group(str(path))
    array = group.create_array("t", shape=SHAPE, chunks=CHUNK, shards=(4, 20, 24), dtype="f4", fill_value=FILL)
    array[...] = with_fill((1, 0, 1), (1, 1, 0))  # chunks of nothing but fill are not written
    chunk_file(path, (2, 0, 0)).unlink()
    session = rb.measure(tmp_path / "out", path, *TILED).only
    gone = [(1, 0, 1), (1, 1, 0), *((2, y, x) for y in range(2) for x in range(3))]
    rb.same_bytes(session, {"t": with_fill(*gone)})
    assert session.counts["missing_chunks"] == 2 * len(gone)
    assert session.counts["missing_nbytes"] == len(gone) * NBYTES


# ---- corrupt --------------------------------------------------------------------------------------


def flip(file):
    data = bytearray(file.read_bytes())
    for i in range(4, len(data), 7):
        data[i] ^= 0x5A
    file.write_bytes(data)


def truncate(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file):
    file.write_bytes(b"")


HARM = {"flipped": flip, "truncated": truncate, "empty": empty}


def failures(report, bad, status=1):
    """Samples of BAD chunks fail with their batches; everything else comes and is right."""
    session, counts = report.only, report.only.counts
    assert report.document["outcome"] == "failed" and report.document["error"]["message"]
    delivered = collections.Counter(rb.starts(session, 0))
    want = rb.tiles(SHAPE, (2, 10, 8))
    hit = {i // 3 for i, s in enumerate(want) if tuple(a // c for a, c in zip(s, CHUNK)) in bad}
    failed = {b["number"] for b in session.batches if b["failed"]}
    if session.loader["kind"] == "map":
        assert failed == hit
        whole = [s for i, s in enumerate(want) if i // 3 not in hit]
        assert delivered == collections.Counter(whole)
    assert 1 <= len(failed) == counts["failed_batches"] < counts["batches"]
    assert counts["failed_chunks"] >= len(bad)
    rb.same_bytes(session, {"t": FIELD})
    good = [b for b in session.batches if not b["failed"]]
    nbytes = sum(b["nsamples"] for b in good) * 4 * 2 * 10 * 8
    assert counts["logical_nbytes"] == nbytes
    assert session.rates["logical"] * session.training["wall_seconds"] <= nbytes * (1 + 1e-9)
    return session


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
@pytest.mark.parametrize("loader", ["map", "planned"])
def test_corrupt_chunks_fail_their_batches(tmp_path, loader, harm):
    path = make(tmp_path / "t.zarr", compressors=ZstdCodec(checksum=True))
    bad = [(1, 0, 1)]
    harm(chunk_file(path, bad[0]))
    report = rb.measure(tmp_path / "out", path, *TILED, "--loader", loader, status=1)
    session = failures(report, bad)
    sentence = report.result.err.splitlines()[-1]
    assert "1/0/1" in sentence and "t.zarr" in sentence, sentence
    assert session.first_failure in sentence
    assert "batches failed" in report.result.out or "could not be read" in report.result.out


@pytest.mark.parametrize("mode", ["sync", "processes"])
@pytest.mark.parametrize("fmt", [2, 3])
def test_corrupt_chunks_in_every_mode(tmp_path, fmt, mode):
    path = make(tmp_path / "t.zarr", fmt)
    bad = [(0, 1, 1), (2, 0, 2)]
    for at in bad:
        truncate(chunk_file(path, at, fmt))
    failures(rb.measure(tmp_path / "out", path, *TILED, "--mode", mode, status=1, program=rb.BARE), bad)


@pytest.mark.parametrize("io", ["pread", "mmap", "uring", "direct"])
def test_corrupt_chunks_by_every_way_of_reading(tmp_path, io):
    path = make(tmp_path / "t.zarr", compressors=None)
    chunk = chunk_file(path, (1, 1, 1))
    chunk.write_bytes(chunk.read_bytes()[:-4])  # without a codec the length is all there is to check
    failures(rb.measure(tmp_path / "out", path, *TILED, "--io", io, status=1, program=rb.BARE), [(1, 1, 1)])


@pytest.mark.long(ci=1)
def test_every_chunk_is_corrupt(tmp_path):
    path = make(tmp_path / "t.zarr", compressors=BloscCodec())
    for file in (path / "t" / "c").rglob("*"):
        if file.is_file():
            flip(file)
    report = rb.measure(tmp_path / "out", path, *TILED, status=1)
    counts, rates = report.only.counts, report.only.rates
    assert counts["failed_batches"] == counts["batches"] == SAMPLES / 3
    assert counts["logical_nbytes"] == 0 and rates["logical"] == rates["samples"] == 0
    assert report.only.accelerators["fed"] == 0
    assert not (report.folder / "samples.csv").exists(), "nothing was delivered"


@pytest.mark.long(ci=1)
def test_a_cache_does_not_keep_what_is_corrupt(tmp_path):
    path = make(tmp_path / "t.zarr", compressors=ZstdCodec(checksum=True))
    flip(chunk_file(path, (1, 0, 1)))
    args = [*TILED, "--cache", "1MiB", "--cache-dir", tmp_path / "cache", "--cache-dir-size", "1MiB"]
    (tmp_path / "cache").mkdir()
    for name in ("first", "second"):
        session = rb.measure(tmp_path / name, path, *args, "--epochs", 2, status=1).only
        rb.same_bytes(session, {"t": FIELD})
        assert session.counts["failed_batches"] == 4, "two batches meet the chunk, in each epoch"


def damaged_shard(path):
    """A shard whose index says that an inner chunk lies beyond the end of the file."""
    group = zarr.create_group(str(path))
    group.create_array("t", shape=SHAPE, chunks=CHUNK, shards=(4, 20, 24), dtype="f4")[...] = FIELD
    file = chunk_file(path, (1, 0, 0))
    data = bytearray(file.read_bytes())
    index = len(data) - 4 - 6 * 16
    struct.pack_into("<QQ", data, index + 16, len(data) - 20, 1000)
    struct.pack_into("<I", data, len(data) - 4, google_crc32c.value(bytes(data[index:-4])))
    file.write_bytes(data)


def test_an_inner_chunk_beyond_its_shard(tmp_path):
    damaged_shard(tmp_path / "t.zarr")
    report = rb.measure(tmp_path / "out", tmp_path / "t.zarr", *TILED, status=1)
    rb.same_bytes(report.only, {"t": FIELD})
    failed = {b["number"] for b in report.only.batches if b["failed"]}
    assert {4, 6} <= failed <= {4, 5, 6, 7}, "those that need the chunk; at most all that need the shard"


def test_the_index_of_a_shard_is_corrupt(tmp_path):
    path = tmp_path / "t.zarr"
    damaged_shard(path)
    file = chunk_file(path, (1, 0, 0))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    failures(rb.measure(tmp_path / "out", path, *TILED, status=1), [(1, y, x) for y in range(2) for x in range(3)])


@pytest.mark.parametrize("engine", ["native", "netcdf"])
def test_a_corrupt_chunk_of_a_netcdf_file(tmp_path, engine):
    path = tmp_path / "t.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for name, n in zip("zyx", SHAPE):
            ds.createDimension(name, n)
        v = ds.createVariable("t", "f4", ("z", "y", "x"), chunksizes=CHUNK, fletcher32=True)
        v[:] = FIELD
    data = path.read_bytes()
    part = FIELD[rb.box((4, 0, 8), CHUNK)].tobytes()
    assert data.count(part[:64]) == 1
    at = data.index(part[:64])
    path.write_bytes(data[: at + 9] + bytes([data[at + 9] ^ 1]) + data[at + 10 :])
    report = rb.measure(tmp_path / "out", path, "--variable", "t", *TILED, "--engine", engine, status=1)
    session = report.only
    want = rb.tiles(SHAPE, (2, 10, 8))
    hit = {i // 3 for i, s in enumerate(want) if tuple(a // c for a, c in zip(s, CHUNK)) == (1, 0, 1)}
    assert {b["number"] for b in session.batches if b["failed"]} == hit
    rb.same_bytes(session, {"t": FIELD})


@pytest.mark.long(ci=1)
def test_one_of_two_stores_fails(tmp_path):
    """The other is measured all the same."""
    bad, good = make(tmp_path / "bad.zarr", compressors=ZstdCodec(checksum=True)), make(tmp_path / "good.zarr")
    flip(chunk_file(bad, (0, 0, 0)))
    report = rb.measure(tmp_path / "out", [bad, good], *TILED, status=1)
    first, second = report.sessions
    assert first.counts["failed_batches"] >= 1 and second.counts["failed_batches"] == 0
    rb.same_bytes(second, {"t": FIELD})
    assert "bad.zarr" in report.result.err
    shutil.rmtree(good)
    rb.readbench("--no-out", *TILED, bad, good, status=1).fails(1, "good.zarr")
