"""rechunk when things go wrong: killed, out of space, corrupt sources, and memory that is enforced."""

import json
import os
import random
import shutil
import subprocess
import time

import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, ZstdCodec

from support import failio, paths, rechunked, tool
from support.cgroup import Limited

MIB = 1 << 20


def run(*args, **kw):
    return tool.run("rechunk", *args, **kw)


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """6 MiB of noise in a group, as maps; and its digests."""
    path = tmp_path_factory.mktemp("source") / "in.zarr"
    rng = np.random.default_rng(5)
    root = zarr.create_group(str(path), attributes={"title": "noise"})
    for name, n in (("v", 32), ("g/w", 16)):
        a = root.create_array(
            name, shape=(n, 180, 170), chunks=(1, 180, 170), dtype="f4", compressors=ZstdCodec(level=1)
        )
        a[...] = rng.random((n, 180, 170), "f4")
    return path


@pytest.fixture(scope="session")
def truth(source):
    return rechunked.digests(source)


def state(folder):
    """Existing files by name, size and time: enough to see a change."""
    return sorted((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file())


# ---- killed -----------------------------------------------------------------------------------------

SLOW = ["-j", "1", "--codec", "zstd:15", "--verify", "none"]
LAYOUTS = {
    "chunks": ["--chunks", "32x30x34"],
    "shards": ["--chunks", "32x10x34", "--shards", "32x60x34"],
    "version 2": ["--zarr-format", "2", "--chunks", "5x64x64"],
    "recompressed": [],
}


def duration(source, folder, options):
    start = time.monotonic()
    run(*SLOW, *options, source, folder / "timed.zarr").ok()
    shutil.rmtree(folder / "timed.zarr")
    return time.monotonic() - start


def kill_at(moment, source, out, *options):
    """Killed after MOMENT seconds; False when it was done before."""
    process = subprocess.Popen(
        [tool.program("rechunk"), "-q", *SLOW, *options, str(source), str(out)],
        stderr=subprocess.PIPE,
        text=True,
        env=tool.environment(),
    )
    try:
        err = process.communicate(timeout=moment)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True
    assert process.returncode == 0, err
    return False


@pytest.mark.long(ci=2)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_killed_and_resumed(source, truth, tmp_path, out, layout):
    """Three of each layout: twelve kills; ten of each in the long version, forty in the full one."""
    most = paths.tries(3, 10, 40)
    options, rng = LAYOUTS[layout], random.Random(layout)
    whole = duration(source, tmp_path, options)
    kills = 0
    for attempt in range(8 * most):
        if not kill_at(rng.uniform(0, whole), source, out, *options):
            shutil.rmtree(out)
            whole *= 0.8  # the machine was busier when it was timed
            continue
        if tool.opens_as_store(out):  # then it was killed after its last step, and is whole
            assert rechunked.digests(out) == truth
            shutil.rmtree(out)
            continue
        kills += 1
        if kills % 2:  # once more while it resumes
            kill_at(rng.uniform(0, whole / 2), source, out, *options, "--resume")
        run(*SLOW, *options, "--resume", source, out).ok()
        assert rechunked.digests(out) == truth
        assert os.listdir(tmp_path) == [out.name] and not list(out.rglob(".chunkmill*"))
        if kills == most:
            return
        shutil.rmtree(out)
    pytest.fail(f"only {kills} kills in {8 * most} attempts")


# Chunks that are written by one call, and by several.
SHORT, LONG, LONG_ZSTD = (300, None), (50000, None), (50000, ZstdCodec(level=1))


@pytest.mark.few(1)
@pytest.mark.parametrize("nelem, codec", [SHORT, LONG, LONG_ZSTD], ids=["short", "long", "zstd"])
@pytest.mark.parametrize("kind", ["write", "open", "close"])
def test_killed_in_the_middle_of_a_chunk(tmp_path, kind, nelem, codec):
    """Chunks of a new store have their names before they have their bytes: whoever goes on finds those that are cut."""
    root = tmp_path / "root"
    root.mkdir()
    a = zarr.create_array(str(root / "in.zarr"), shape=(12, nelem), chunks=(1, nelem), dtype="f4", compressors=codec)
    a[...] = np.random.default_rng(6).random((12, nelem), "f4")
    want, out = rechunked.digests(root / "in.zarr"), root / "out.zarr"
    copy = lambda nth, *more: failio.inject("rechunk", "-q", "-j", "1", "--verify", "none", *more, root / "in.zarr", out, root=out,
                                            state=tmp_path / "state", kind=kind, nth=nth, way="kill")  # fmt: skip
    count, cut = copy(0).counts[kind], 0
    for nth in failio.spread(count, paths.tries(6, 40, 40)):
        shutil.rmtree(out)
        copy(nth)
        whole = {p: (root / "in.zarr" / p.relative_to(out)).stat().st_size for p in out.glob("c/[0-9]*/[0-9]*")}
        cut += any(p.stat().st_size < nbytes for p, nbytes in whole.items())
        if not tool.opens_as_store(out):
            run("-q", *["--resume"] * out.exists(), root / "in.zarr", out).ok()
            assert sorted(os.listdir(root)) == ["in.zarr", "out.zarr"]
        assert rechunked.digests(out) == want, nth
    assert cut > 0 or kind != "write"


def large(path, shape, chunk, slow=False):
    """An array too large for small memories, of three distinct chunks that compress well, or decode SLOWly."""
    codec = GzipCodec(level=1) if slow else ZstdCodec(level=1)
    a = zarr.create_array(str(path), shape=shape, chunks=chunk, dtype="f4", compressors=codec)
    raw = []
    for i in range(3):
        part = ((np.arange(np.prod(chunk)) // 1000 + i) % 100).astype("f4").reshape(chunk)
        if slow:
            part = np.random.default_rng(i).normal(size=chunk).astype("f4")
        a[tuple(slice(0, c) for c in chunk)] = part
        raw.append((path / "c" / "/".join("0" * len(chunk))).read_bytes())
    for n, at in enumerate(np.ndindex(*(-(-n // c) for n, c in zip(shape, chunk)))):
        key = path / "c" / "/".join(map(str, at))
        key.parent.mkdir(parents=True, exist_ok=True)
        key.write_bytes(raw[n % 3])
    return path


# Of 200 MiB of maps, columns, in a memory of which a sanitizer's program takes 40 MiB before it has a chunk.
MAPS = (200, 512, 512)
TIGHT = ["--memory", "64MiB", "-j", "1", "--chunks", "200x32x32", "--verify", "none"]


@pytest.mark.long(ci=1)
def test_killed_with_scratch_files(tmp_path, out):
    """Killed in the passes of such a plan, resumed it ends right, and scratch space is as empty as before."""
    # Reading again costs more than writing to any disk: the chunks decode slowly.
    source, scratch = large(tmp_path / "in.zarr", MAPS, (1, 128, 512), slow=True), tmp_path / "scratch"
    scratch.mkdir()
    options = [*TIGHT, "--scratch", scratch]
    # A disk that stands still while it is probed makes reading again look cheaper.
    for _ in range(20):
        plan = rechunked.run(source, out, *options, "--dry-run")
        if plan["scratch_nbytes"]:
            break
    else:
        pytest.fail("the plan needs no scratch space: " + str(plan["arrays"][0]["plan"]))
    rechunked.run(source, out, *options)
    want = rechunked.digests(source)
    assert rechunked.digests(out) == want and os.listdir(scratch) == []
    shutil.rmtree(out)
    process = subprocess.Popen(
        [tool.program("rechunk"), "-q", *map(str, options), str(source), str(out)], env=tool.environment()
    )
    while process.poll() is None and sum(len(files) for _, _, files in os.walk(out)) < 10:
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert not tool.opens_as_store(out)
    run(*options, "--resume", source, out).ok()
    assert rechunked.digests(out) == want
    assert os.listdir(scratch) == [] and sorted(os.listdir(tmp_path)) == ["in.zarr", out.name, "scratch"]


@pytest.mark.parametrize("fmt", [3, 2])
def test_chunks_of_what_was_killed_are_no_chunks_of_what_comes_after(tmp_path, out, fmt):
    """The array is the root, in a folder that was there, and the next source lacks chunks."""
    noise, sparse = tmp_path / "noise.zarr", tmp_path / "sparse.zarr"
    a = zarr.create_array(str(noise), shape=(16, 256, 256), chunks=(16, 16, 16), dtype="f4", zarr_format=fmt)
    a[...] = np.random.default_rng(1).random(a.shape, "f4")
    b = zarr.create_array(str(sparse), shape=a.shape, chunks=(8, 64, 64), dtype="f4", zarr_format=fmt, fill_value=0)
    b[8:, 64:128] = 1
    out.mkdir()
    options = ["--overwrite", "--verify", "none", "--chunks", "4x64x64"]
    process = subprocess.Popen(
        [tool.program("rechunk"), "-q", *options, "-j", "1", "--codec", "zstd:19", str(noise), str(out)],
        env=tool.environment(),
    )
    while process.poll() is None and sum(len(files) for _, _, files in os.walk(out)) < 10:
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert not tool.opens_as_store(out)
    run(*options, sparse, out).ok()
    assert np.array_equal(zarr.open_array(out, mode="r")[...], b[...])


@pytest.mark.parametrize("fmt", [3, 2])
def test_nothing_is_left_in_a_folder_that_was_there(tmp_path, out, fmt):
    """The array is the root, its last chunk is corrupt, and the folder holds a file of someone else."""
    source = tmp_path / "in.zarr"
    a = zarr.create_array(str(source), shape=(64, 64), chunks=(8, 64), dtype="f4", zarr_format=fmt)
    a[...] = np.random.default_rng(1).random(a.shape, "f4")
    (source / ("c/7/0" if fmt == 3 else "7.0")).write_bytes(b"no such chunk")
    zarr.create_array(str(out), data=np.arange(3), zarr_format=fmt)
    (out / "notes.txt").write_text("mine")
    done = run("--overwrite", "-j", "1", "--chunks", "4x8", source, out)
    assert done.status == 1 and "7/0" in done.err
    assert os.listdir(out) == ["notes.txt"]


# ---- no space ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [[], ["--shards", "32x180x170"], ["--zarr-format", "2"], ["-j", "1", "--codec", "none"], ["--durable"]],
    ids=" ".join,
)
def test_full_disk_and_then_more(source, truth, small_disk, options):
    before = state(source)
    disk = small_disk("size=2m")
    options = ["--chunks", "v:32x18x17", *options]
    run(*options, source, disk / "out.zarr").fails(1, "out.zarr", "no space left")
    assert not tool.opens_as_store(disk / "out.zarr") and state(source) == before
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    run(*options, "--resume", source, disk / "out.zarr").ok()
    assert rechunked.digests(disk / "out.zarr") == truth


@pytest.mark.parametrize("size", ["4k", "8k", "16k", "32k"])
def test_disk_full_while_metadata_are_written(tmp_path, small_disk, size):
    root = zarr.create_group(str(tmp_path / "in.zarr"), attributes={"long": "x" * 3000})
    for i in range(6):
        root.create_array(f"a{i}", shape=(4,), chunks=(2,), dtype="i2")[...] = np.arange(4)
    out = small_disk(f"size={size}") / "out.zarr"
    done = run("--codec", "none", tmp_path / "in.zarr", out)
    if done.status:
        done.fails(1, "out.zarr", "no space left")
        assert not tool.opens_as_store(out)


def test_scratch_that_does_not_fit_is_known_before(tmp_path, out, small_disk):
    """Another plan or a refusal that names the folder; never a run that dies half-way."""
    source = large(tmp_path / "in.zarr", MAPS, (1, 128, 512))
    disk = small_disk("size=8m")
    done = run("--json", *TIGHT, "--scratch", disk, source, out)
    if done.status:
        assert done.status == 1 and str(disk) in done.err and not out.exists(), str(done)
        return
    (found,) = rechunked.check_document(done.out)["arrays"]
    assert found["counted"]["scratch_nbytes"] <= 8 * MIB
    assert rechunked.digests(out) == rechunked.digests(source) and os.listdir(disk) == []


@pytest.mark.parametrize("limit", [0, 100, 1000, 60_000])
def test_file_size_limit(source, out, limit):
    run("--chunks", "v:32x60x60", source, out, before=tool.file_size_limit(limit)).fails(1, "out.zarr")
    assert not tool.opens_as_store(out)


# ---- corrupt sources --------------------------------------------------------------------------------


def corrupt_store(path, kind):
    """A store whose chunk 2/1 of g/v is damaged; the key of the damaged file."""
    root = zarr.create_group(str(path), zarr_format=2 if kind.startswith("v2") else 3)
    codecs = dict(compressors=[ZstdCodec(level=3), Crc32cCodec()])
    if kind.startswith("shard"):
        inner = ShardingCodec(chunk_shape=(10, 20), codecs=[BytesCodec(), ZstdCodec(checksum=True)])
        codecs = dict(serializer=inner, compressors=None)
    elif kind.startswith("v2"):
        codecs = {}
    chunks = (20, 40) if kind.startswith("shard") else (10, 20)
    a = root.create_group("g").create_array("v", shape=(40, 80), chunks=chunks, dtype="i4", **codecs)
    a[...] = np.random.default_rng(1).integers(0, 1 << 30, (40, 80))
    return path / "g" / "v" / ("2.1" if kind.startswith("v2") else "c/1/0" if kind.startswith("shard") else "c/2/1")


def damage(chunk, how):
    data = bytearray(chunk.read_bytes())
    if how == "flipped":
        data[len(data) // 3] ^= 0x55
    elif how == "cut":
        del data[len(data) // 2 :]
    elif how == "empty":
        data.clear()
    elif how == "index":
        data[-10] ^= 0x55
    elif how == "garbage":
        data[:] = os.urandom(len(data))
    chunk.write_bytes(data)


CORRUPT = [
    ("v3", "flipped"),
    ("v3", "cut"),
    ("v3", "empty"),
    ("v3", "garbage"),
    ("v2", "cut"),
    ("v2", "empty"),
    ("v2", "garbage"),
    ("shard", "index"),
    ("shard", "cut"),
    ("shard", "empty"),
    ("shard", "garbage"),
]


@pytest.mark.parametrize(
    "options",
    [["--chunks", "g/v:40x8"], ["--codec", "gzip", "-j", "1", "--verify", "none"], ["--verify", "full"]],
    ids=["other chunks", "other codec", "stored bytes"],
)
@pytest.mark.parametrize("kind, how", CORRUPT)
def test_corrupt_source(tmp_path, out, kind, how, options):
    damage(corrupt_store(tmp_path / "in.zarr", kind), how)
    before = state(tmp_path / "in.zarr")
    where = ("1/0",) if kind == "shard" else ("2/1",)
    if kind == "shard" and "--chunks" in options:
        options = [*options, "--shards", "none"]
    # Stored bytes that nobody decoded, without a checksum around them, are in a target that is complete, which
    # is not taken away; whichever of both is decoded first by then is named.  No bytes are no chunk.
    complete = "full" in options and kind == "v2" and how != "empty"
    named = "out.zarr" if complete else "in.zarr"
    done = run(*options, tmp_path / "in.zarr", out).fails(1, named, "g/v", *where)
    assert tool.opens_as_store(out) == complete == ("written, but not verified" in done.err)
    assert state(tmp_path / "in.zarr") == before


def test_corrupt_source_is_no_digest(tmp_path):
    damage(corrupt_store(tmp_path / "in.zarr", "v3"), "cut")
    run("--digest", tmp_path / "in.zarr").fails(1, "in.zarr", "g/v", "2/1")


def array_of_four(chunk):
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    grid = {"name": "regular", "configuration": {"chunk_shape": [chunk]}}
    head = {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int32", "fill_value": 0}
    return json.dumps({**head, "chunk_grid": grid, "chunk_key_encoding": {"name": "default"}, "codecs": [little]})


METADATA = {
    "not JSON": '{"zarr_format": 3,',
    "no shape": '{"zarr_format": 3, "node_type": "array"}',
    "empty": "",
    "binary": "\0\1\2",
    "huge chunks": array_of_four(1 << 62),
    "no chunks": array_of_four(0),
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("what", METADATA)
def test_corrupt_metadata(tmp_path, out, what):
    corrupt_store(tmp_path / "in.zarr", "v3")
    (tmp_path / "in.zarr" / "g" / "v" / "zarr.json").write_text(METADATA[what])
    done = run("--chunks", "g/v:3", tmp_path / "in.zarr", out, timeout=300)
    assert done.status in (1, 2), str(done)
    done.fails(done.status, "g/v")
    assert not out.exists()


# ---- memory -----------------------------------------------------------------------------------------

needs_own_memory = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")


def on_disk(folder):
    kind = subprocess.run(["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True).stdout.strip()
    if kind in ("tmpfs", "ramfs"):
        pytest.skip(f"{folder} is a {kind}: what lies there is memory")


@pytest.fixture
def limited():
    made = []

    def limit(nbytes):
        made.append(Limited(nbytes))
        return made[0].enter

    yield limit
    for group in made:
        group.close()


@pytest.mark.long
@needs_own_memory
def test_twenty_times_the_memory(tmp_path, out, limited):
    """1.9 GB through 96 MiB, in a cgroup of 128 MiB that counts page cache, too."""
    on_disk(tmp_path)
    source = large(tmp_path / "in.zarr", (480, 1024, 1024), (1, 1024, 1024))
    done = run(
        "--json",
        "--memory",
        "96MiB",
        "--chunks",
        "480x32x32",
        "--verify",
        "full",
        source,
        out,
        before=limited(128 * MIB),
        peak=True,
    ).ok()
    document = rechunked.check_document(done.out)
    rechunked.check_counts(document)
    assert document["verification"]["nelements"] == 480 << 20 and document["verification"]["differences"] == []
    assert done.peak <= 96 * MIB and document["memory"]["peak_nbytes"] <= 96 * MIB
    assert sorted(os.listdir(tmp_path)) == ["in.zarr", out.name]


PEAKS = {  # shape, chunks before, chunks after, MiB, more
    "maps to series": ((256, 512, 512), (1, 512, 512), "256x32x32", 64, []),
    "series to maps": ((256, 512, 512), (256, 32, 32), "1x512x512", 64, ["-j", "4"]),
    "cubes": ((256, 256, 256), (50, 50, 50), "64x64x64", 64, []),
    "shards": ((256, 512, 512), (4, 512, 512), "4x64x64", 96, ["--shards", "16x512x512"]),
    "recompressed": ((32, 1024, 1024), (4, 1024, 1024), "4x1024x1024", 128, ["--codec", "gzip:1"]),
    "many small chunks": ((4096, 2048), (4, 2048), "64x64", 64, ["-j", "8"]),
}


@pytest.mark.few
@needs_own_memory
@pytest.mark.parametrize("case", PEAKS)
def test_peak_stays_below_the_limit(tmp_path, out, case):
    shape, chunk, after, limit, options = PEAKS[case]
    source = large(tmp_path / "in.zarr", shape, chunk)
    done = run("--memory", f"{limit}MiB", "--chunks", after, *options, source, out, peak=True).ok()
    assert done.peak <= limit * MIB, f"peak {done.peak / MIB:.0f} MiB, limit {limit} MiB\n{done}"
    assert list(rechunked.digests(out).values()) == list(rechunked.digests(source).values())


ALLOCATIONS = {
    "series": ["--chunks", "3x20x40"],
    "shards": ["--chunks", "1x20x20", "--shards", "2x40x40", "-j", "2"],
    "version 2": ["--zarr-format", "2", "--codec", "gzip"],
    "copy": [],
    "scarce": ["--chunks", "6x8x8", "--memory", "40MiB", "--verify", "full"],
}


@pytest.fixture(scope="module")
def many_arrays(tmp_path_factory):
    source = tmp_path_factory.mktemp("many") / "in.zarr"
    root = zarr.create_group(str(source))
    a = root.create_array("g0", shape=(8, 8), chunks=(4, 8), dtype="f4", attributes={"x": "y" * 100})
    a[...] = np.arange(64).reshape(8, 8)
    for i in range(1, 1200):
        shutil.copytree(source / "g0", source / f"g{i}")
    zarr.consolidate_metadata(str(source))
    return source


@pytest.mark.long(ci=1)
@needs_own_memory
@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")
@pytest.mark.parametrize("options", [[], ["--shards", "8x6"], ["--zarr-format", "2"]], ids=["v3", "shards", "v2"])
def test_the_metadata_of_many_arrays_are_counted(many_arrays, tmp_path, out, options):
    """They take far more than the chunks: written, consolidated, and read again by the verification."""
    document = rechunked.run(many_arrays, out, "--chunks", "8x3", "--verify", "full", *options)
    limit = document["memory"]["limit_nbytes"]
    assert limit > 24 * MIB
    run("--memory", "24MiB", "--chunks", "8x3", *options, many_arrays, tmp_path / "other.zarr").fails(1, "at least")


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("case", ALLOCATIONS)
def test_each_allocation_fails_once(failmalloc, tmp_path, out, case):
    """Refused memory ends a run in one sentence; what then opens is whole."""
    root = zarr.create_group(str(tmp_path / "in.zarr"), attributes={"title": "t"})
    values = np.arange(9600, dtype="f4").reshape(6, 40, 40)
    root.create_array("g/v", shape=values.shape, chunks=(1, 40, 40), dtype="f4")[...] = values
    root.create_array("s", shape=(5,), chunks=(2,), dtype=str)[...] = np.array(["a", "", "ü", "d", "e"], object)
    want = rechunked.listing(tmp_path / "in.zarr")

    def attempt(nth):
        shutil.rmtree(out, ignore_errors=True)
        reached = tmp_path / f"reached{nth}"
        env = {"LD_PRELOAD": str(failmalloc), "FAILMALLOC_NTH": str(nth), "FAILMALLOC_REACHED": str(reached)}
        return run(*ALLOCATIONS[case], tmp_path / "in.zarr", out, env=env, timeout=300), reached.exists()

    last, failures, problems = 1, 0, []
    while attempt(last)[1] and last < 1 << 20:
        last *= 2
    for nth in sorted({1 + i * (last - 1) // 40 for i in range(40)}):
        done, reached = attempt(nth)
        if not reached or not done.status:
            continue
        failures += 1
        sentences = [line for line in done.err.splitlines() if "warning" not in line]
        whole = not tool.opens_as_store(out) or rechunked.listing(out) == want
        if done.status != 1 or len(sentences) != 1 or not whole:
            problems.append(f"allocation {nth}: {done}")
    assert not problems, "\n".join(problems)
    assert failures > 3, "the failures never reached the program"
