"""A cache of stored objects on disk: filled, shared, bounded, and right after a crash."""

import concurrent.futures
import os
import signal
import subprocess
import time

import numpy as np
import pytest
import zarr

from support import readbench as rb
from support import tool

SHAPE, CHUNK = (16, 32, 32), (4, 8, 8)
FIELD = np.random.default_rng(6).random(SHAPE, "f4")
CHUNKS = 64
ALL = ["--sample", "4x8x8", "--order", "block-shuffle:1", "--batch", 4, "--batches", 1000]


def make(path, fmt=3, values=FIELD, shards=None):
    group = zarr.create_group(str(path), zarr_format=fmt, overwrite=True)
    group.create_array("t", shape=SHAPE, chunks=CHUNK, shards=shards, dtype="f4", compressors="auto")[...] = values
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make(tmp_path_factory.mktemp("store") / "t.zarr")


@pytest.fixture
def cache(tmp_path):
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def held(cache):
    """Bytes of objects; the cache's own file of a few numbers is none."""
    return sum(p.stat().st_size for p in cache.rglob("*") if p.is_file() and p.name != "state")


def stored(store):
    return sum(p.stat().st_size for p in (store / "t" / "c").rglob("*") if p.is_file())


@pytest.mark.parametrize("mode", ["sync", "threads", "processes"])
def test_the_second_run_reads_from_the_cache(store, cache, tmp_path, mode):
    args = [*ALL, "--mode", mode, "--cache-dir", cache, "--epochs", 1]
    program = "readbench" if mode == "threads" else rb.BARE
    first = rb.measure(tmp_path / "first", store, *args, program=program).only
    second = rb.measure(tmp_path / "second", store, *args, program=program).only
    for session in (first, second):
        rb.same_bytes(session, {"t": FIELD})
        assert session.counts["disk_hits"] + session.counts["disk_misses"] == CHUNKS
    assert first.counts["disk_misses"] == CHUNKS and second.counts["disk_hits"] == CHUNKS
    assert second.counts["disk_evictions"] == 0
    assert held(cache) >= stored(store)
    assert {p.name for p in tmp_path.iterdir()} == {"cache", "first", "second"}


@pytest.mark.parametrize("mode", ["sync", "threads", "processes"])
@pytest.mark.parametrize("shards", [None, (8, 16, 16)])
def test_requests_are_those_that_the_store_had(cache, tmp_path, mode, shards):
    """A hit asks the store for nothing; a chunk that is not there was asked for."""
    path = make(tmp_path / "t.zarr", shards=shards)
    whole, absent = stored(path), 0
    if shards is None:
        for chunk in list((path / "t" / "c").rglob("*"))[-3:]:
            whole, absent = whole - chunk.stat().st_size, absent + 1
            chunk.unlink()
    args = [*ALL, "--mode", mode, "--workers", 1, "--cache-dir", cache, "--epochs", 1]
    program = "readbench" if mode == "threads" else rb.BARE
    first, second = (rb.measure(tmp_path / name, path, *args, program=program).only for name in ("first", "second"))
    objects = CHUNKS // (1 if shards is None else 8)
    for run, misses in ((first, objects - absent), (second, 0)):
        assert run.counts["requests"] == misses + absent and run.counts["disk_misses"] == misses
        assert run.counts["stored_nbytes"] == (whole if misses else 0)
        assert sum(batch["disk_nbytes"] for batch in run.batches) == run.counts["disk_nbytes"]
    assert second.counts["disk_hits"] == objects - absent
    if shards is None:
        assert first.counts["disk_nbytes"] == 0 and second.counts["disk_nbytes"] == whole
    else:
        assert first.counts["disk_nbytes"] == second.counts["disk_nbytes"] > 0


def test_the_slow_storage_is_behind_the_cache(store, cache, tmp_path):
    args = [*ALL, "--cache-dir", cache, "--epochs", 1, "--emulate", "latency=4ms", "--mode", "sync"]
    first = rb.measure(tmp_path / "first", store, *args, program=rb.BARE).only
    second = rb.measure(tmp_path / "second", store, *args, program=rb.BARE).only
    assert first.training["wall_seconds"] >= CHUNKS * 0.004 > second.training["wall_seconds"]


def test_two_epochs_of_one_run(store, cache, tmp_path):
    args = [*ALL, "--cache-dir", cache, "--epochs", 2]
    counts = rb.measure(tmp_path / "out", store, *args, program=rb.BARE).only.counts
    assert counts["disk_misses"] == counts["disk_hits"] == CHUNKS


def test_runs_share_it_at_the_same_time(store, cache, tmp_path):
    """Small enough that they also throw out what the other has just put in."""
    args = [*ALL, "--cache-dir", cache, "--cache-dir-size", "40KB", "--epochs", 6]

    def one(number):
        mode = ["--mode", "processes" if number % 2 else "threads"]
        return rb.measure(tmp_path / f"run{number}", store, *args, *mode, "--seed", number, program=rb.BARE).only

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for session in pool.map(one, range(3)):
            rb.same_bytes(session, {"t": FIELD})
            assert session.counts["failed_batches"] == 0
            assert session.counts["disk_hits"] + session.counts["disk_misses"] == 6 * CHUNKS
    assert held(cache) <= 45_000


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_it_is_bounded(store, cache, tmp_path, mode):
    limit = stored(store) // 3
    args = [*ALL, "--cache-dir", cache, "--cache-dir-size", limit, "--epochs", 3, "--mode", mode]
    session = rb.measure(tmp_path / "out", store, *args, program=rb.BARE).only
    rb.same_bytes(session, {"t": FIELD})
    assert held(cache) <= limit
    assert session.counts["disk_evictions"] > 0
    assert session.counts["disk_misses"] > CHUNKS


def test_what_is_larger_than_the_cache(store, cache, tmp_path):
    args = [*ALL, "--cache-dir", cache, "--cache-dir-size", 500]
    session = rb.measure(tmp_path / "out", store, *args, program=rb.BARE).only
    rb.same_bytes(session, {"t": FIELD})
    assert session.counts["disk_hits"] == 0 and held(cache) <= 500


def test_killed_while_filling(store, cache, tmp_path):
    args = [*ALL, "--cache-dir", cache, "--cache-dir-size", "60KB", "--epochs", 1000, "--mode", "processes"]
    for wait in (0.15, 0.3):
        process = subprocess.Popen(
            [tool.program(rb.BARE), *map(str, args), "--memory", "128MiB", "--no-out", store],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=tool.environment(),
        )
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
    session = rb.measure(tmp_path / "out", store, *args, "--epochs", 2, program=rb.BARE).only
    rb.same_bytes(session, {"t": FIELD})
    assert session.counts["failed_batches"] == 0
    assert held(cache) <= 60_000


@pytest.mark.parametrize("harm", ["half", "nothing", "zeros"])
def test_files_that_a_crash_left_half_written(store, cache, tmp_path, harm):
    """The store is whole: what the cache holds must not fail a batch, let alone be delivered."""
    args = [*ALL, "--cache-dir", cache, "--epochs", 1]
    rb.measure(tmp_path / "first", store, *args, program=rb.BARE)
    files = [p for p in cache.rglob("*") if p.is_file()]
    assert files
    for path in files:
        size = path.stat().st_size
        with open(path, "r+b") as f:
            if harm == "zeros":
                f.write(bytes(size))
            else:
                f.truncate(size // 2 if harm == "half" else 0)
    session = rb.measure(tmp_path / "second", store, *args, program=rb.BARE).only
    rb.same_bytes(session, {"t": FIELD})
    assert session.counts["failed_batches"] == 0


def test_a_chunk_that_was_written_anew(cache, tmp_path):
    path = make(tmp_path / "t.zarr")
    args = [*ALL, "--cache-dir", cache, "--epochs", 1]
    rb.measure(tmp_path / "first", path, *args, program=rb.BARE)
    time.sleep(0.02)
    changed = FIELD + 1
    zarr.open_group(str(path), mode="r+")["t"][...] = changed
    session = rb.measure(tmp_path / "second", path, *args, program=rb.BARE).only
    rb.same_bytes(session, {"t": changed})


def test_stores_of_the_same_name_are_told_apart(cache, tmp_path):
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        path = make(tmp_path / str(number) / "t.zarr", values=FIELD * (number + 1))
        args = [*ALL, "--cache-dir", cache, "--epochs", 1]
        session = rb.measure(tmp_path / f"out{number}", path, *args, program=rb.BARE).only
        rb.same_bytes(session, {"t": FIELD * np.float32(number + 1)})


@pytest.mark.long(ci=1)
def test_what_it_does_not_own_is_left_alone(store, cache, tmp_path):
    rb.readbench(*ALL, "--no-out", "--cache-dir", cache, "--cache-dir-size", "20KB", store)
    (cache / "mine.txt").write_text("mine")
    (cache / "folder").mkdir()
    (cache / "folder" / "mine.bin").write_bytes(bytes(200_000))
    rb.measure(tmp_path / "out", store, *ALL, "--cache-dir", cache, "--cache-dir-size", "20KB", "--epochs", 2)
    assert (cache / "mine.txt").read_text() == "mine"
    assert (cache / "folder" / "mine.bin").stat().st_size == 200_000


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(store, cache, tmp_path):
    cache.chmod(0o500)
    rb.readbench(*ALL, "--no-out", "--cache-dir", cache, store, status=1).fails(1, str(cache))


def test_a_file_in_its_place(store, tmp_path):
    (tmp_path / "file").write_text("mine")
    rb.readbench(*ALL, "--no-out", "--cache-dir", tmp_path / "file", store, status=1).fails(1, "file")
    assert (tmp_path / "file").read_text() == "mine"
