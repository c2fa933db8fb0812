"""One store made by several processes: whatever their order, number and fate, the same bytes."""

import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import netCDF4
import numpy as np
import pytest

from support import paths, stores, tool


@pytest.fixture(scope="session")
def field(tmp_path_factory):
    """Chunked and contiguous, odd sizes, a stretch of fill, text, a scalar, a group."""
    path = tmp_path_factory.mktemp("parts") / "field.nc"
    rng = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in (("time", None), ("lat", 45), ("lon", 70), ("station", 5)):
            ds.createDimension(d, n)
        time = ds.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        time[:] = np.arange(90)
        ds.createVariable("lat", "f4", ("lat",))[:] = np.linspace(-90, 90, 45)
        tas = ds.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True, chunksizes=(7, 20, 30), fill_value=1e20)
        data = rng.normal(size=(90, 45, 70)).astype("f4").round(2)
        data[30:60] = 1e20
        tas[:] = data
        ds.createVariable("pr", "i2", ("time", "lat", "lon"), chunksizes=(1, 45, 70))[:] = rng.integers(
            0, 3000, (90, 45, 70)
        )
        ds.createVariable("oro", "f8", ("lat", "lon"), contiguous=True)[:] = rng.normal(size=(45, 70))
        ds.createVariable("crs", "i4", ())[...] = 4
        ds.createVariable("name", str, ("station",))[:] = np.array(["a", "bb", "", "dd", "e"], object)
        ds.createGroup("inner").createVariable("x", "f8", ("lat",))[:] = np.arange(45)
    return path


def part(k, n, *args, **kw):
    return tool.nc2zarr("--part", f"{k}/{n}", "-j", "1", *args, **kw)


LAYOUTS = {
    "default": (),
    "small": ("--chunks", "time=11,lat=13,lon=17"),
    "series": ("--chunks", "time=full,lat=9,lon=10"),
    "keep": ("--codec", "keep"),
    "shards": ("--chunks", "time=10,lat=9,lon=10", "--shards", "time=30,lat=18,lon=20"),
    "shards of series": ("--chunks", "time=full,lat=9,lon=10", "--shards", "time=full,lat=45,lon=40"),
    "version 2, every third": ("--zarr-format", "2", "--chunks", "time=8,lat=9,lon=full", "--subset", "time=3:80:3"),
}


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_number_in_any_order_some_twice(field, tmp_path, layout):
    options = LAYOUTS[layout]
    tool.nc2zarr("-q", "-j", "1", *options, field, tmp_path / "one.zarr").ok()
    for n in (1, 2, 7, 64) if layout in ("small", "shards") else (2, 7):
        order = [*range(1, n + 1), *random.Random(n).sample(range(1, n + 1), n // 2)]
        random.Random(n + 1).shuffle(order)
        out = tmp_path / f"{n}.zarr"
        for i, k in enumerate(order):
            tool.nc2zarr("--part", f"{k}/{n}", "-j", str(1 + i % 2), "-q", *options, field, out).ok()
        stores.same_files(tmp_path / "one.zarr", out)


@pytest.mark.few
@pytest.mark.parametrize("layout", ("small", "shards"))
def test_all_at_once(field, tmp_path, layout):
    options = LAYOUTS[layout]
    tool.nc2zarr("-q", *options, field, tmp_path / "one.zarr").ok()
    for n in (4, 16):
        out = tmp_path / f"{n}.zarr"
        with ThreadPoolExecutor(2 * n) as pool:
            done = list(pool.map(lambda k: part(k, n, "--json", *options, field, out), [*range(1, n + 1)] * 2))
        reports = [d.json() for d in done]
        stores.same_files(tmp_path / "one.zarr", out)
        assert sum(r["part"]["finished"] for r in reports) == 1
        assert sum(not r["part"]["was_done"] for r in reports) == n
        # Each object was written once.
        files = sum(1 for p in out.rglob("*") if p.is_file())
        assert sum(r["output"]["nobjects"] for r in reports) == files


def test_a_finished_part_writes_nothing(field, tmp_path):
    out = tmp_path / "o.zarr"
    part(1, 2, field, out).ok()
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    again = part(1, 2, "--json", field, out).json()
    assert again["outcome"] == "part" and again["part"]["was_done"] and again["output"]["nobjects"] == 0
    assert again["part"]["missing"] == "2"
    assert before == {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    assert not tool.opens_as_store(out)
    assert part(2, 2, "--json", field, out).json()["part"]["finished"]
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    for k in (1, 2):
        # With --overwrite too: the part is done, and who publishes the plan overwrites.
        report = part(k, 2, "--json", "--overwrite", field, out).json()
        assert report["outcome"] == "done" and report["part"]["complete"] and report["part"]["was_done"]
    assert before == {p: p.stat().st_mtime_ns for p in out.rglob("*")}


def test_another_plan_is_refused(field, tmp_path):
    out = tmp_path / "o.zarr"
    part(1, 3, field, out).ok()
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    part(2, 4, "-q", field, out).fails(1, "in 3 parts, not in 4")
    part(2, 3, "-q", "--codec", "zstd", field, out).fails(1, "another plan", "differs")
    part(2, 3, "-q", "--codec", "zstd", "--overwrite", field, out).fails(1, "another plan", "not complete")
    tool.nc2zarr("-q", field, out).fails(1, "3 parts", "not complete")
    tool.nc2zarr("-q", "--resume", field, out).fails(1, "3 parts", "not complete")
    assert before == {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    for k in (2, 3):
        part(k, 3, field, out).ok()
    part(1, 3, "-q", "--codec", "zstd", field, out).fails(1, "exists")
    for k in (2, 1):
        part(k, 2, "-q", "--codec", "zstd", "--overwrite", field, out).ok()
    tool.nc2zarr("-q", "--codec", "zstd", field, tmp_path / "one.zarr").ok()
    stores.same_files(tmp_path / "one.zarr", out)


def test_what_is_there_is_not_overwritten(field, tmp_path):
    out = tmp_path / "o.zarr"
    tool.nc2zarr("-q", field, out).ok()
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    part(1, 2, "-q", "--codec", "zstd", field, out).fails(1, "exists")
    assert before == {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    assert not (tmp_path / "o.zarr.chunkmill").exists()
    # And once where that was asked for: the second part keeps what the first wrote.
    part(1, 2, "-q", "--codec", "zstd", "--overwrite", field, out).ok()
    part(2, 2, "-q", "--codec", "zstd", "--overwrite", field, out).ok()
    tool.nc2zarr("-q", "--codec", "zstd", field, tmp_path / "one.zarr").ok()
    stores.same_files(tmp_path / "one.zarr", out)
    # A run without parts afterwards is a run like any other.
    tool.nc2zarr("-q", field, out).fails(1, "exists")
    tool.nc2zarr("-q", "--overwrite", field, out).ok()
    assert not (tmp_path / "o.zarr.chunkmill").exists()


@pytest.mark.long(ci=1)
def test_a_damaged_chunk_costs_one_part(field, tmp_path):
    """Its part fails, the others finish, and what is missing is named; repaired, it is made."""
    broken = tmp_path / "field.nc"
    shutil.copy(field, broken)
    times = broken.stat()
    whole = broken.read_bytes()
    tool.nc2zarr("-q", *LAYOUTS["keep"], field, tmp_path / "one.zarr").ok()
    # Within the deflated data of tas, somewhere in the middle of the file.
    at = max(whole.find(data) for data in (p.read_bytes()[100:160] for p in (tmp_path / "one.zarr/tas/c").rglob("*") if p.is_file()))
    broken.write_bytes(whole[:at] + bytes(200) + whole[at + 200 :])
    os.utime(broken, ns=(times.st_atime_ns, times.st_mtime_ns))
    tool.nc2zarr("-q", field, tmp_path / "whole.zarr").ok()
    out = tmp_path / "o.zarr"
    results = {k: part(k, 6, "-q", "--verify", "none", broken, out) for k in range(1, 7)}
    failed = [k for k, r in results.items() if r.status != 0]
    assert len(failed) == 1, {k: str(r) for k, r in results.items()}
    last = part(failed[0] % 6 + 1, 6, "--json", "--verify", "none", broken, out).json()
    assert last["outcome"] == "part" and last["part"]["missing"] == str(failed[0])
    missing = {p.relative_to(tmp_path / "whole.zarr") for p in (tmp_path / "whole.zarr").rglob("*") if p.is_file()}
    missing -= {p.relative_to(out) for p in out.rglob("*") if p.is_file()}
    assert {p.name for p in missing} >= {"zarr.json"}
    broken.write_bytes(whole)
    os.utime(broken, ns=(times.st_atime_ns, times.st_mtime_ns))
    part(failed[0], 6, "-q", "--verify", "none", broken, out).ok()
    stores.same_files(tmp_path / "whole.zarr", out)


def test_a_part_must_be_one_of_them(field, tmp_path):
    for text in ("0/4", "5/4", "1", "1/0", "a/b", "1/4x", "-1/4"):
        tool.nc2zarr("--part", text, field, tmp_path / "o.zarr").fails(2, "K/N")
    tool.nc2zarr("--part", "1/4", "--parts", "5", field, tmp_path / "o.zarr").fails(2, "contradict")
    tool.nc2zarr("--parts", "5", field, tmp_path / "o.zarr").fails(2, "no launcher")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [("--chunks", "time=full,lat=9,lon=10"), ("--codec", "zstd"), ()])
def test_rechunk_has_the_same_parts(field, tmp_path, options):
    source = tmp_path / "source.zarr"
    tool.nc2zarr("-q", field, source).ok()
    tool.run("rechunk", "-q", *options, source, tmp_path / "one.zarr").ok()
    for k in (4, 2, 5, 1, 3, 2):
        tool.run("rechunk", "-q", "--part", f"{k}/5", *options, source, tmp_path / "five.zarr").ok()
    stores.same_files(tmp_path / "one.zarr", tmp_path / "five.zarr")


def test_a_part_that_reads_again_says_so(tmp_path):
    """It has no scratch: what its memory does not hold is decoded again."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as ds:
        for d, n in (("t", 600), ("x", 128), ("y", 128)):
            ds.createDimension(d, n)
        data = np.zeros((600, 128, 128), "f4") + np.arange(600, dtype="f4")[:, None, None]
        ds.createVariable("v", "f4", ("t", "x", "y"), chunksizes=(1, 128, 128))[:] = data
    tool.nc2zarr("-q", "--codec", "keep", tmp_path / "a.nc", tmp_path / "a.zarr").ok()
    options = ("--chunks", "t=600,x=32,y=32", "-j", "1")
    tool.run("rechunk", "-q", *options, tmp_path / "a.zarr", tmp_path / "one.zarr").ok()
    least = tool.least_mib("rechunk", "--part", "1/2", *options, tmp_path / "a.zarr", tmp_path / "two.zarr")
    for k, memory, warns in ((1, f"{least + 8}MiB", True), (2, "1GiB", False)):
        done = tool.run("rechunk", "--part", f"{k}/2", "--memory", memory, *options, tmp_path / "a.zarr", tmp_path / "two.zarr").ok()
        assert ("each source chunk is decoded 2.0 times; raise --memory" in done.err) == warns, done.err
    stores.same_files(tmp_path / "one.zarr", tmp_path / "two.zarr")


@pytest.mark.long(ci=1)
def test_status_says_how_they_stand(field, tmp_path):
    schema = json.loads((paths.ROOT / "tools/schema/parts.json").read_text())

    def status():
        document = tool.nc2zarr("--parts-status", "--json", out).json()
        jsonschema.Draft202012Validator(schema).validate(document)
        return document, {p["number"]: p["state"] for p in document["parts"]}

    out = tmp_path / "o.zarr"
    tool.nc2zarr("--parts-status", out).fails(1, "not begun in parts")
    tool.nc2zarr("--parts-status", field, out).fails(2, "one store")
    part(2, 4, "-q", field, out).ok()
    assert status()[1] == {1: "missing", 2: "done", 3: "missing", 4: "missing"}
    text = tool.nc2zarr("--parts-status", out).ok().out
    assert f"for k in 1 3 4; do nc2zarr --part $k/4 -j 1 -q {field} {out}; done" in text
    # A part that runs, stopped in the middle; then one that was killed.
    argv = [tool.program("nc2zarr"), "-q", "-j", "1", "--part", "3/4", "--codec", "zstd:19", str(field), str(tmp_path / "slow.zarr")]
    out = tmp_path / "slow.zarr"
    running = subprocess.Popen(argv)
    lock = tmp_path / "slow.zarr.chunkmill" / "part-3.lock"
    while not lock.exists():
        assert running.poll() is None
        time.sleep(0.002)
    running.send_signal(signal.SIGSTOP)
    document, states = status()
    assert states[3] == "running" and f"process {running.pid}" in document["parts"][2]["who"]
    tool.nc2zarr("-q", "--overwrite", field, out).fails(1, "being written")
    running.kill()
    running.wait()
    assert status()[1][3] == "stale"
    subprocess.run([str(a) for a in argv], check=True)
    assert status()[1][3] == "done"
    for k in (1, 2, 4):
        part(k, 4, "-q", "--codec", "zstd:19", field, out).ok()
    document, states = status()
    assert document["outcome"] == "complete" and document["done"] == 4 and states == {}
    assert "complete, made in 4 parts" in tool.nc2zarr("--parts-status", out).ok().out


@pytest.mark.long
def test_the_first_part_tells_of_all(tmp_path):
    with netCDF4.Dataset(tmp_path / "noise.nc", "w") as ds:
        ds.createDimension("x", 3_000_000)
        ds.createVariable("v", "f4", ("x",))[:] = np.random.default_rng(1).normal(size=3_000_000).round(1)
    slow = ("--codec", "zstd:19", "--chunks", "x=50000", "--progress", "always", tmp_path / "noise.nc", tmp_path / "o.zarr")
    for k in (2, 3):
        assert "parts done" not in part(k, 4, *slow).ok().err
    assert "2 of 4 parts done" in part(1, 4, *slow).ok().err


def test_an_archive_has_the_same_parts(tmp_path):
    """Files whose chunks do not end where the file does: pieces of many lengths."""
    rng = np.random.default_rng(9)
    for month, days in enumerate((31, 28, 31, 30, 31)):
        with netCDF4.Dataset(tmp_path / f"m{month}.nc", "w") as ds:
            for d, n in (("time", None), ("lat", 20), ("lon", 30)):
                ds.createDimension(d, n)
            time = ds.createVariable("time", "f8", ("time",))
            time.units = "days since 2000-01-01"
            time[:] = np.arange(days) + sum((31, 28, 31, 30, 31)[:month])
            data = rng.normal(size=(days, 20, 30)).round(1)
            ds.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True, chunksizes=(7, 20, 30))[:] = data
    for name, options in ("a", ()), ("b", ("--chunks", "time=10,lat=9,lon=13")), ("c", ("--subset", "time=5:140:3")):
        arguments = ("-q", *options, str(tmp_path / "m*.nc"))
        tool.nc2zarr(*arguments, tmp_path / f"{name}.zarr").ok()
        for k in (3, 1, 4, 2):
            part(k, 4, *arguments, tmp_path / f"{name}4.zarr").ok()
        stores.same_files(tmp_path / f"{name}.zarr", tmp_path / f"{name}4.zarr")


@pytest.mark.parametrize("chunks", ["time=1", "time=3,y=2"])
def test_a_part_is_compared_with_what_its_own_files_say(tmp_path, chunks):
    """Rows of a variable without the joined dimension, which others make, are not missing."""
    (tmp_path / "in").mkdir()
    for i in range(9):
        with netCDF4.Dataset(tmp_path / f"in/{i}.nc", "w") as ds:
            for name, n in (("time", None), ("y", 3)):
                ds.createDimension(name, n)
            ds.createVariable("time", "f8", ("time",))[:] = np.arange(4) + 4 * i
            ds.createVariable("oro", "f4", ("y",))[:] = 5
            ds.createVariable("v", "f4", ("time", "y"))[:] = i
    options = ("-q", "--promote", "oro", "--chunks", chunks)
    tool.nc2zarr(*options, tmp_path / "in", tmp_path / "one.zarr").ok()
    for verify in ("sample", "full"):
        out = tmp_path / f"{verify}.zarr"
        for k in (3, 1, 2):
            part(k, 3, *options, "--verify", verify, tmp_path / "in", out).ok()
        stores.same_files(tmp_path / "one.zarr", out)


def test_a_part_makes_no_certificate(field, tmp_path):
    arguments = ("--verify", "full", "--certificate", tmp_path / "c.json", field, tmp_path / "o.zarr")
    part(1, 2, "-q", *arguments).fails(2, "whole store")
    assert not list(tmp_path.iterdir())


def test_parts_add_files_to_a_store_and_no_other_store(field, tmp_path):
    for name in ("a", "b"):
        tool.nc2zarr("-q", field, tmp_path / f"{name}.zarr").ok()
    argv = ("-q", "--part", "1/2", "--append", "time", tmp_path / "a.zarr", tmp_path / "b.zarr")
    tool.run("rechunk", *argv).fails(2, "--append", "--part")
    assert not (tmp_path / "b.zarr.chunkmill").exists()


@pytest.mark.parametrize("change", ("append", "replace"))
def test_a_part_run_again_leaves_a_store_that_has_changed(tmp_path, change):
    """A task that is queued again, weeks later: what was added or replaced meanwhile is not put back."""
    for i in range(2):
        with netCDF4.Dataset(tmp_path / f"{i}.nc", "w") as ds:
            ds.createDimension("time", None)
            time = ds.createVariable("time", "f8", ("time",))
            time.units = "days since 2000-01-01"
            time[:] = np.arange(6) + (6 * i if change == "append" else 0)
            ds.createVariable("v", "f4", ("time",))[:] = np.arange(6) + 10 * i + 1
    out = tmp_path / "o.zarr"
    options = ("-q", "--chunks", "time=4", tmp_path / "0.nc", out)
    for k in (1, 2):
        part(k, 2, *options).ok()
    how = ("--append", "time") if change == "append" else ("--replace", "time=2000-01-01..2000-01-06")
    tool.nc2zarr("-q", *how, tmp_path / "1.nc", out).ok()
    shutil.copytree(out, tmp_path / "grown.zarr")
    for k in (1, 2):
        part(k, 2, *options).fails(1, "exists")
        stores.same_files(tmp_path / "grown.zarr", out)


@pytest.mark.roomy
def test_ten_begin_at_once_on_nothing(field, tmp_path):
    """One plan, one store, each time."""
    options = ("-q", "-j", "1", "--verify", "none", *LAYOUTS["small"], str(field))
    tool.nc2zarr(*options, tmp_path / "one.zarr").ok()
    out, beside = tmp_path / "o.zarr", tmp_path / "o.zarr.chunkmill"
    for _ in range(paths.tries(3, 20, 100)):
        argv = [tool.program("nc2zarr"), *options, str(out), "--part"]
        running = [subprocess.Popen([*argv, f"{k}/10"]) for k in range(1, 11)]
        assert [p.wait() for p in running] == [0] * 10
        stores.same_files(tmp_path / "one.zarr", out)
        assert sorted(p.name for p in beside.iterdir()) == ["complete", "plan"]
        shutil.rmtree(out)
        shutil.rmtree(beside)


@pytest.mark.long(ci=1)
def test_parts_that_are_killed_are_run_again(field, tmp_path):
    """At any moment, the end included; a store that opens is complete."""
    rng = random.Random(4)
    options = ("-q", "-j", "1", *LAYOUTS["small"], str(field))
    tool.nc2zarr(*options, tmp_path / "one.zarr").ok()
    out = tmp_path / "o.zarr"
    for _ in range(paths.tries(3, 10, 40)):
        for k in [1, 2, 3, 4] * 2:
            p = subprocess.Popen([tool.program("nc2zarr"), *options, str(out), "--part", f"{k}/4"])
            time.sleep(rng.uniform(0.005, 0.2))
            p.kill()
            p.wait()
            if tool.opens_as_store(out) and (out / "zarr.json").exists():
                stores.same_files(tmp_path / "one.zarr", out)
        for k in (1, 2, 3, 4):
            part(k, 4, *options[3:], "-q", out).ok()
        stores.same_files(tmp_path / "one.zarr", out)
        shutil.rmtree(out)
        shutil.rmtree(tmp_path / "o.zarr.chunkmill")


@pytest.mark.long(ci=1)
def test_a_store_that_was_removed_is_begun_again(field, tmp_path):
    """Its plan says nothing any more, whether it was complete or not, and whatever is made instead."""
    out, beside = tmp_path / "o.zarr", tmp_path / "o.zarr.chunkmill"
    options = ("-q", *LAYOUTS["small"])
    tool.nc2zarr(*options, field, tmp_path / "one.zarr").ok()
    for done, again in itertools.product((1, 3), (2, 3)):
        for k in range(1, done + 1):
            part(k, 3, *options, field, out).ok()
        shutil.rmtree(out)
        for k in range(1, again + 1):
            part(k, again, *options, field, out).ok()
        stores.same_files(tmp_path / "one.zarr", out)
        shutil.rmtree(out)
    part(1, 3, *options, field, out).ok()
    refused = tool.nc2zarr(*options, field, out)
    assert refused.status == 1 and "remove it" in refused.err, str(refused)
    shutil.rmtree(out)
    tool.nc2zarr(*options, "--overwrite", field, out).ok()
    stores.same_files(tmp_path / "one.zarr", out)
    assert not (beside / "plan").exists()


# Changes that others may make to a store between two parts, with the folder beside it untouched.
ACCIDENTS = {
    "emptied": lambda out: [shutil.rmtree(p) if p.is_dir() else p.unlink() for p in out.iterdir()],
    "removed and made": lambda out: (shutil.rmtree(out), out.mkdir()),
    "an array": lambda out: shutil.rmtree(out / "pr"),
    "an object": lambda out: next(p for p in sorted((out / "tas").rglob("*")) if p.is_file() and p.name != "zarr.json").unlink(),
    "a cut object": lambda out: os.truncate(next(p for p in sorted((out / "tas").rglob("*")) if p.is_file() and p.name != "zarr.json"), 3),
    "text": lambda out: shutil.rmtree(out / "name" / "c"),
}


@pytest.mark.few
@pytest.mark.parametrize("layout", ("small", "shards"))
@pytest.mark.parametrize("accident", ACCIDENTS)
def test_objects_that_are_gone_are_missed(field, tmp_path, accident, layout):
    """By whoever would finish the store, who says which parts made them; and by those parts."""
    options = ("-q", *LAYOUTS[layout])
    tool.nc2zarr(*options, field, tmp_path / "one.zarr").ok()
    out = tmp_path / "o.zarr"
    for k in (1, 2, 3):
        part(k, 4, *options, field, out).ok()
    ACCIDENTS[accident](out)
    refused = part(4, 4, *options, field, out)
    refused.fails(1, "removed or changed", "again")
    assert not tool.opens_as_store(out)
    missing = [p["number"] for p in tool.nc2zarr("--parts-status", "--json", out).json()["parts"] if p["state"] == "missing"]
    named = re.search(r"run part ([0-9,-]+) again", refused.err).group(1)
    numbers = [int(n) for a in named.split(",") for n in range(int(a.split("-")[0]), int(a.split("-")[-1]) + 1)]
    assert missing == numbers and 0 < len(numbers) <= 3 and 4 not in numbers
    for k in numbers:
        report = part(k, 4, "--json", *options[1:], field, out).json()
        assert not report["part"]["was_done"] and report["part"]["finished"] == (k == numbers[-1])
    stores.same_files(tmp_path / "one.zarr", out)
    # The same of a store that is complete: who made the objects makes them again, and nothing else.
    ACCIDENTS[accident](out)
    again = [part(k, 4, "--json", *options[1:], field, out) for k in (1, 2, 3, 4)]
    rewritten = [k for k, a in enumerate(again, 1) if "made again" in a.out + a.err]
    assert rewritten
    for k in (1, 2, 3, 4):
        report = part(k, 4, "--json", *options[1:], field, out).json()
        assert report["part"]["was_done"] and report["part"]["complete"] and report["output"]["nobjects"] == 0
    if accident not in ("emptied", "removed and made"):
        stores.same_files(tmp_path / "one.zarr", out)


def test_a_finished_part_notices_that_its_objects_are_gone(field, tmp_path):
    options = ("-q", *LAYOUTS["small"])
    tool.nc2zarr(*options, field, tmp_path / "one.zarr").ok()
    out = tmp_path / "o.zarr"
    for k in (1, 2):
        part(k, 3, *options, field, out).ok()
    ACCIDENTS["emptied"](out)
    for k in (1, 2):
        report = part(k, 3, "--json", *options[1:], field, out).json()
        assert not report["part"]["was_done"] and "made again" in report["warnings"][0]
    part(3, 3, *options, field, out).ok()
    stores.same_files(tmp_path / "one.zarr", out)


@pytest.mark.long(ci=1)
def test_objects_that_go_while_a_part_runs(tmp_path):
    """It does not say that it is done."""
    with netCDF4.Dataset(tmp_path / "noise.nc", "w") as ds:
        ds.createDimension("x", 1_500_000)
        ds.createVariable("v", "f4", ("x",))[:] = np.random.default_rng(1).normal(size=1_500_000).round(1)
    out = tmp_path / "o.zarr"
    argv = [tool.program("nc2zarr"), "-q", "-j", "1", "--verify", "none", "--part", "1/2", "--codec", "zstd:19", "--chunks", "v:x=50000", "--shards", "none", str(tmp_path / "noise.nc"), str(out)]
    running = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    while not (there := list(out.glob("v/c/[0-9]*"))):
        assert running.poll() is None
        time.sleep(0.002)
    there[0].unlink()
    err = running.communicate()[1]
    assert running.returncode == 1 and "not there any more" in err, err
    assert not (tmp_path / "o.zarr.chunkmill" / "part-1.done").exists()
    for k in (1, 2):
        subprocess.run([*(f"{k}/2" if a == "1/2" else a for a in argv)], check=True)
    tool.nc2zarr("-q", "--codec", "zstd:19", "--chunks", "v:x=50000", "--shards", "none", tmp_path / "noise.nc", tmp_path / "one.zarr").ok()
    stores.same_files(tmp_path / "one.zarr", out)
