"""Proof that a store holds what its file holds: --verify full, --check, --certificate; and going on: --resume."""
import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import netCDF4
import numpy as np
import pytest

from support import cdf, digest, readers, tool


def variables(result):
    return {v["name"]: v for v in result["variables"]}


@pytest.fixture(scope="module")
def fields(tmp_path_factory):
    """Several chunks, an unallocated one, a masked filter's worth of types, text."""
    path = tmp_path_factory.mktemp("proof") / "fields.nc"
    rng = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w") as ds:
        ds.title = "fields"
        for d, n in (("t", 12), ("y", 30), ("x", 40)):
            ds.createDimension(d, n)
        a = ds.createVariable("a", "f4", ("t", "y", "x"), zlib=True, shuffle=True, chunksizes=(1, 30, 40))
        a.units = "K"
        a[:] = rng.normal(size=(12, 30, 40)).astype("f4")
        b = ds.createVariable("b", "i2", ("t", "y", "x"), zlib=True, shuffle=False, chunksizes=(5, 7, 9), fill_value=-1)
        b.set_auto_maskandscale(False)
        b[:5] = rng.integers(0, 99, (5, 30, 40))
        ds.createVariable("i", "u8", ("x",))[:] = np.arange(40, dtype="u8") + 2**63
        ds.createVariable("s", str, ("y",))[:] = np.array([f"name {i} ü" for i in range(30)], object)
    return path


def expected_digest(path, name):
    with netCDF4.Dataset(path) as ds:
        v = ds[name]
        v.set_auto_maskandscale(False)
        data = v[...]
        if v.dtype is str:
            return digest.text(digest.strings([str(x) for x in np.ravel(data)]))
        raw, size = np.ascontiguousarray(data).tobytes(), data.dtype.itemsize
        return digest.text(digest.fixed([raw[i:i + size] for i in range(0, len(raw), size)]))


LAYOUTS = [
    (),
    ("--zarr-format", "2"),
    ("--chunks", "4x9x11"),
    ("--chunks", "4x9x11", "--shards", "8x18x22"),
    ("--codec", "keep"),
    ("--codec", "keep", "--zarr-format", "2"),
    ("--codec", "keep:gzip"),
    ("--codec", "keep", "--shards", "auto:16KiB"),
]


@pytest.mark.parametrize("options", LAYOUTS, ids=" ".join)
def test_digests_do_not_depend_on_the_layout(fields, out, options):
    result = variables(tool.nc2zarr("--json", "--verify", "full", *options, fields, out).json())
    for name in ("a", "b", "i", "s"):
        assert result[name]["digest"] == expected_digest(fields, name), name
    checked = variables(tool.nc2zarr("--json", "--check", fields, out).json())
    assert {n: v["digest"] for n, v in checked.items()} == {n: v["digest"] for n, v in result.items()}


@pytest.mark.parametrize("options", [o for o in LAYOUTS if "keep" in str(o)], ids=" ".join)
def test_kept_chunks_read_right_elsewhere(fields, out, options):
    tool.nc2zarr(*options, fields, out).ok()
    refused = () if "keep:gzip" in options else ("tensorstore: a: FAILED_PRECONDITION", "tensorstore: b: FAILED_PRECONDITION")
    assert [d for d in readers.disagreements(out) if not d.startswith(refused)] == []


def test_kept_bytes_are_the_files_own(fields, out):
    tool.nc2zarr("--codec", "keep", "--zarr-format", "2", fields, out).ok()
    stored = (out / "a" / "3.0.0").read_bytes()
    assert stored in fields.read_bytes()


def test_keep_refuses_another_shape(fields, out):
    tool.nc2zarr("--codec", "keep", "--chunks", "4x4x4", fields, out).fails(2, "keep")


# ---- --check finds what is wrong --------------------------------------------------------------------


@pytest.fixture
def store(fields, out):
    tool.nc2zarr("--chunks", "3x10x10", "--codec", "none", fields, out).ok()
    return out


def change_element(store):
    chunk = store / "a" / "c" / "1" / "2" / "0"
    data = bytearray(chunk.read_bytes())
    data[4 * (1 * 100 + 3 * 10 + 7)] ^= 1
    chunk.write_bytes(data)


def change_attribute(store):
    node = store / "a" / "zarr.json"
    for path in (node, store / "zarr.json"):
        path.write_text(path.read_text().replace('"K"', '"degC"'))


def drop_attribute(store):
    for path in (store / "a" / "zarr.json", store / "zarr.json"):
        path.write_text(path.read_text().replace('"units"', '"unit"'))


def rename_dimension(store):
    for path in (store / "a" / "zarr.json", store / "zarr.json"):
        doc = json.loads(path.read_text())
        node = doc if path.parent.name == "a" else doc["consolidated_metadata"]["metadata"]["a"]
        node["dimension_names"] = ["t", "x", "y"]
        path.write_text(json.dumps(doc))


DAMAGE = [
    ("an element", change_element, ("a: element 4,23,7", "a: element 4/23/7")),
    ("a missing chunk", lambda s: (s / "a" / "c" / "2" / "0" / "3").unlink(), ("a: chunk 2/0/3 is missing",)),
    ("an attribute", change_attribute, ('a: attribute units: "k" became "degc"',)),
    ("an attribute's name", drop_attribute, ("a: attribute units is missing",)),
    ("dimensions", rename_dimension, ("a: its dimensions",)),
    ("a whole array", lambda s: shutil.rmtree(s / "i"), ("i: ",)),
]


@pytest.mark.parametrize("damage,words", [(d, w) for _, d, w in DAMAGE], ids=[n for n, _, _ in DAMAGE])
def test_check_finds(fields, store, damage, words):
    tool.nc2zarr("--check", fields, store).ok()
    damage(store)
    found = tool.nc2zarr("--check", fields, store)
    if found.status == 1:  # an array that the metadata promise and that is gone
        assert "i" in words[0]
        return
    assert found.status == 3, str(found)
    assert any(w in found.err.lower() for w in words), str(found)


def test_damage_of_the_store_is_no_error_of_the_file(fields, tmp_path):
    """Also where the names of both begin alike, and the digest is the file's all the same."""
    path, store, paper = tmp_path / "a", tmp_path / "a.zarr", tmp_path / "certificate.json"
    shutil.copy(fields, path)
    tool.nc2zarr("--chunks", "3x10x10", "--codec", "none", path, store).ok()
    for chunk in (store / "a" / "c" / "1" / "2" / "0", store / "s" / "c" / "0"):
        chunk.write_bytes(chunk.read_bytes()[:-5])
    done = tool.nc2zarr("--check", "--certificate", paper, path, store)
    assert done.status == 3, done
    assert "a: cannot be read from the store" in done.err and "s: cannot be read from the store" in done.err
    doc = json.loads(paper.read_text())
    assert len(doc["differences"]) == 2
    assert {v["name"]: v["digest"] for v in doc["variables"]} == {n: expected_digest(fields, n) for n in "abis"}


def test_check_writes_nothing(fields, store):
    before = sorted((p, p.stat().st_mtime_ns) for p in store.rglob("*"))
    tool.nc2zarr("--check", fields, store).ok()
    assert sorted((p, p.stat().st_mtime_ns) for p in store.rglob("*")) == before


def test_check_of_what_is_no_store(fields, tmp_path):
    tool.nc2zarr("--check", fields, tmp_path / "none.zarr").fails(1, "none.zarr")
    tool.nc2zarr("--check", fields, tmp_path).fails(1, tmp_path.name)


# ---- certificate ------------------------------------------------------------------------------------


def test_certificate(fields, out, tmp_path):
    paper = tmp_path / "certificate.json"
    tool.nc2zarr("--verify", "full", "--certificate", paper, fields, out).ok()
    doc = json.loads(paper.read_text())
    assert doc["reproducible"] is True and doc["differences"] == []
    assert doc["input"]["bytes"] == fields.stat().st_size
    assert {v["name"]: v["digest"] for v in doc["variables"]} == {n: expected_digest(fields, n) for n in "abis"}
    assert "--certificate" in doc["command"]


def test_a_certificate_does_not_replace_a_link_or_a_pipe(fields, store, tmp_path):
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("paper.json")
    tool.nc2zarr("--check", "--certificate", link, fields, store).ok()
    assert link.is_symlink() and json.loads((tmp_path / "paper.json").read_text())["differences"] == []
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    tool.nc2zarr("--check", "--certificate", pipe, fields, store).ok()
    assert json.loads(reader.communicate(timeout=300)[0])["differences"] == []
    assert pipe.is_fifo() and not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("options,word", [
    (("--keepbits", "a:5"), "rounded"),
    (("--variable", "a"), "variables"),
    (("--subset", "t=2:8"), "dimensions"),
    (("--dtype", "a:f8"), "types"),
    (("--fill-value", "a:0"), "unwritten"),
])
def test_certificate_of_a_loss(fields, out, tmp_path, options, word):
    paper = tmp_path / "certificate.json"
    tool.nc2zarr("--verify", "full", "--certificate", paper, *options, fields, out).ok()
    doc = json.loads(paper.read_text())
    assert doc["reproducible"] is False
    assert any(word in why for why in doc["not_reproducible_because"])


LATIN1 = {  # what is not UTF-8, where, and what the warning calls it
    "text of a variable": (dict(var={"units": b"K \xb0C"}), "variable v: attribute units: "),
    "text of the file": (dict(file={"title": b"\xff"}), "group /: attribute title: "),
    "one text of several": (dict(var={"ok": "\u00b0C", "units": b"\xb0C", "also": "x"}), "variable v: attribute units: "),
    "a dimension": (dict(dim=b"l\xe4nge"), "variable v: dimension l\ufffdnge: "),
}


@pytest.mark.parametrize("where", LATIN1)
def test_metadata_that_is_not_utf8_is_told(tmp_path, out, where):
    """JSON cannot hold it: the store has U+FFFD, and the file could not be made again from it."""
    odd, words = LATIN1[where]
    dim, data, paper = odd.get("dim", "x"), np.arange(5, dtype="i2"), tmp_path / "certificate.json"
    path = tmp_path / "latin1.nc"
    path.write_bytes(cdf.Cdf(1, {dim: 5}, [("v", "i2", (dim,), data, odd.get("var", {}))], odd.get("file")).build())
    done = tool.nc2zarr("--verify", "full", "--certificate", paper, path, out).ok()
    assert [w for w in done.warnings if words + "text that is not UTF-8" in w], done
    doc = json.loads(paper.read_text())
    assert doc["reproducible"] is False and doc["differences"] == []
    assert any("UTF-8" in why for why in doc["not_reproducible_because"])
    tool.nc2zarr("--check", "--certificate", paper, path, out).ok()
    assert json.loads(paper.read_text())["reproducible"] is False


def test_metadata_that_is_utf8_is_not_told(tmp_path, out):
    path = tmp_path / "good.nc"
    path.write_bytes(cdf.Cdf(1, {"x": 5}, [("v", "i2", ("x",), np.arange(5, dtype="i2"), {"units": "\u00b0C"})]).build())
    assert tool.nc2zarr(path, out).ok().warnings == []


def test_certificate_of_a_difference(fields, store, tmp_path):
    change_element(store)
    paper = tmp_path / "certificate.json"
    assert tool.nc2zarr("--check", "--certificate", paper, fields, store).status == 3
    doc = json.loads(paper.read_text())
    assert doc["reproducible"] is False and len(doc["differences"]) == 1


def test_certificate_needs_a_comparison(fields, out, tmp_path):
    tool.nc2zarr("--certificate", tmp_path / "c", fields, out).fails(2, "--certificate")


# ---- --resume ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Long enough to be killed in the middle."""
    path = tmp_path_factory.mktemp("large") / "large.nc"
    rng = np.random.default_rng(1)
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in (("t", 60), ("y", 200), ("x", 300)):
            ds.createDimension(d, n)
        v = ds.createVariable("v", "f4", ("t", "y", "x"), zlib=True, complevel=1, chunksizes=(1, 200, 300))
        v[:40] = rng.normal(size=(40, 200, 300)).astype("f4")
        ds.createVariable("n", str, ("t",))[:] = np.array([str(i) for i in range(60)], object)
    return path


SLOW = ("--chunks", "4x20x30", "--codec", "blosc:zstd:5", "--verify", "none", "-j", "1")


def objects(out):
    return sum(len(files) for _, _, files in os.walk(out / "v"))


def kill_and_resume(path, out, options, rng, times):
    """Starts over and over, killed each time when some more objects are there; returns how often it was killed."""
    kills, resume, before = 0, (), 0
    for _ in range(times):
        wanted = before + rng.randint(0, 40)
        p = subprocess.Popen([tool.program("nc2zarr"), "-q", *options, *resume, str(path), str(out)],
                             env=tool.environment(), stderr=subprocess.PIPE, text=True)
        while p.poll() is None and objects(out) <= wanted:
            time.sleep(0.002)
        number = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT))
        p.send_signal(number)
        err = p.communicate()[1]
        if p.returncode == 0:
            return kills
        assert p.returncode == -number, err
        kills += 1
        assert not tool.opens_as_store(out)
        assert Path(f"{out}.chunkmill", "journal").exists()
        resume, before = ("--resume",), objects(out)
    tool.nc2zarr(*options, *resume, path, out).ok()
    return kills


@pytest.mark.few
@pytest.mark.parametrize("layout", [(), ("--shards", "8x40x60"), ("--zarr-format", "2")], ids=("chunks", "shards", "v2"))
def test_killed_and_resumed(large, out, layout):
    kills = kill_and_resume(large, out, (*SLOW, *layout), random.Random(str(layout)), 8)
    assert kills >= 5
    tool.nc2zarr("--check", large, out).ok()
    assert not list(out.rglob(".chunkmill*")) and not Path(f"{out}.chunkmill").exists()


def interrupted(large, out):
    for _ in range(20):
        kill_once = subprocess.Popen([tool.program("nc2zarr"), "-q", *SLOW, str(large), str(out)], env=tool.environment(),
                                     stderr=subprocess.PIPE)
        while kill_once.poll() is None and not (out / "v" / "c" / "2").exists():
            time.sleep(0.01)
        kill_once.send_signal(signal.SIGINT)
        err = kill_once.communicate()[1].decode()
        if kill_once.returncode == -signal.SIGINT:
            assert "--resume" in err
            return
        shutil.rmtree(out)
    pytest.fail("could not be interrupted in time")


def test_nothing_is_done_twice(large, out):
    interrupted(large, out)
    before = {p: p.stat().st_mtime_ns for p in (out / "v").rglob("*") if p.is_file()}
    assert before
    tool.nc2zarr(*SLOW, "--resume", large, out).ok()
    assert all(p.stat().st_mtime_ns == when for p, when in before.items())


def test_resume_refuses_other_options_and_sources(large, fields, out):
    interrupted(large, out)
    tool.nc2zarr(*SLOW, "--resume", "--keepbits", "v:7", large, out).fails(1, "--keepbits")
    tool.nc2zarr(*SLOW, "--resume", fields, out).fails(1, "input")
    tool.nc2zarr(*SLOW, large, out).fails(1, "--resume")
    tool.nc2zarr(*SLOW, "--resume", "-j", "2", "--memory", "200MiB", large, out).ok()
    tool.nc2zarr("--check", large, out).ok()


def test_overwrite_begins_again(large, fields, out):
    interrupted(large, out)
    tool.nc2zarr("--overwrite", fields, out).ok()
    assert not (out / "v").exists()
    tool.nc2zarr("--check", fields, out).ok()


def test_resume_of_what_is_complete(fields, out):
    tool.nc2zarr(fields, out).ok()
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    done = tool.nc2zarr("--resume", fields, out).ok()
    assert "complete, nothing to resume" in done.err and "--check" in done.err
    checked = tool.nc2zarr("--resume", "--verify", "full", "--certificate", out.parent / "c", fields, out).ok()
    assert "complete, nothing to resume" in checked.err and (out.parent / "c").exists()
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before


def test_resume_of_nothing_starts(fields, out):
    tool.nc2zarr("--resume", fields, out).ok()
    tool.nc2zarr("--check", fields, out).ok()


@pytest.mark.parametrize("verify", ["sample", "full"])
def test_a_complete_store_of_another_source_is_not_taken_for_this_one(tmp_path, verify):
    """Its status, 0, would allow somebody to delete the source."""
    for name, n in (("a", 3), ("b", 4)):
        with netCDF4.Dataset(tmp_path / f"{name}.nc", "w") as ds:
            ds.createDimension("x", n)
            ds.createVariable(name, "f4", ("x",))[:] = range(n)
    out = tmp_path / "out.zarr"
    tool.nc2zarr("-q", tmp_path / "a.nc", out).ok()
    before = objects(out)
    for program, source in (("nc2zarr", tmp_path / "b.nc"), ("rechunk", tmp_path / "b.zarr")):
        if program == "rechunk":
            tool.nc2zarr("-q", tmp_path / "b.nc", source).ok()
        done = tool.run(program, "-q", "--resume", "--verify", verify, source, out)
        assert done.status == 3 and "b" in done.err and objects(out) == before, str(done)
    tool.nc2zarr("-q", "--resume", "--verify", verify, tmp_path / "a.nc", out).ok()
