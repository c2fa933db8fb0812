"""Zip files as stores: complete or absent, read by zipfile and zarr, and never in the place of somebody's file."""

import io
import os
import signal
import struct
import subprocess
import time
import zipfile

import netCDF4
import numpy as np
import pytest
import zarr

from support import paths, tool

KILLS = paths.tries(8, 50, 50)


def make(path, n=40, seed=1):
    with netCDF4.Dataset(path, "w") as nc:
        for name, size in (("time", n), ("y", 60), ("x", 50)):
            nc.createDimension(name, size)
        nc.createVariable("time", "f8", ("time",))[:] = np.arange(n)
        nc.createVariable("t", "f4", ("time", "y", "x"))[:] = np.random.default_rng(seed).random((n, 60, 50), "f4")
        nc.createVariable("höhe", "f8", ("y",))[:] = np.arange(60)
    return path


@pytest.fixture
def source(tmp_path):
    return make(tmp_path / "in.nc")


def values(path):
    root = zarr.open_group(zarr.storage.ZipStore(str(path), mode="r"), mode="r")
    return {name: a[...] for name, a in root.arrays()}


def same(path, source):
    got = values(path)
    with netCDF4.Dataset(source) as nc:
        nc.set_auto_mask(False)
        return sorted(got) == sorted(nc.variables) and all(np.array_equal(got[n], nc[n][...]) for n in got)


def left_of(path):
    return sorted(n for n in os.listdir(path.parent) if n.startswith(path.name) and n != path.name)


LAYOUTS = {
    "chunks": ("--chunks", "time=1,y=20,x=50"),
    "shards": ("--chunks", "time=1,y=20,x=50", "--shards", "time=10,y=60,x=50"),
    "format 2": ("--zarr-format", "2", "--chunks", "time=4"),
    "durable": ("--durable", "--chunks", "time=4"),
    "eight threads": ("--threads", "8", "--chunks", "time=1,y=5,x=50"),
}


@pytest.mark.every
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_written(source, tmp_path, layout):
    out = tmp_path / "out.zip"
    tool.nc2zarr("--verify", "full", *LAYOUTS[layout], source, out).ok()
    assert same(out, source) and left_of(out) == []
    with zipfile.ZipFile(out) as z:
        assert z.testzip() is None and len(set(z.namelist())) == len(z.namelist())
        assert {i.compress_type for i in z.infolist()} == {zipfile.ZIP_STORED}
    tool.nc2zarr("--check", source, out).ok()


@pytest.mark.every
def test_all_tools_read_it(source, tmp_path):
    """The same as from a folder, also of a group in it."""
    folder, packed, again, back = (tmp_path / n for n in ("a.zarr", "a.zip", "b.zip", "c.zarr"))
    tool.nc2zarr("-q", "--chunks", "time=4", source, folder).ok()
    tool.nc2zarr("-q", "--chunks", "time=4", source, packed).ok()
    digests = [tool.run("rechunk", "--digest", p).ok().out for p in (folder, packed)]
    assert digests[0] == digests[1]
    tool.run("rechunk", "-q", "--chunks", "time=40,y=5,x=5", packed, again).ok()
    tool.run("rechunk", "-q", again, back).ok()
    assert tool.run("rechunk", "--digest", back).ok().out == digests[0] and same(again, source)
    shown = [tool.run("chunkcalc", "--json", p).ok().json()["arrays"] for p in (folder, packed)]
    for array in (*shown[0], *shown[1]):
        array.pop("decode_bytes_per_s")  # measured
    assert shown[0] == shown[1]
    tool.run("chunkcalc", f"{packed}::t").ok()
    tool.run("chunkcalc", f"{packed}::nowhere").fails(2, "no array lies at 'nowhere'")
    tool.run("readbench", "--sample", "time=4,y=8,x=8", "--variable", "t", "--epochs", "1", packed).ok()


def test_zarr_python_writes_and_nc2zarr_reads(source, tmp_path):
    """Metadata that it writes again and again are entries of one name: the last counts."""
    out = tmp_path / "theirs.zip"
    for zarr_format in (2, 3):
        with zarr.storage.ZipStore(str(out), mode="w") as store, pytest.warns(UserWarning, match="Duplicate"):
            root = zarr.create_group(store, zarr_format=zarr_format)
            a = root.create_array("v", shape=(10, 10), chunks=(5, 5), dtype="i4")
            a[...] = np.arange(100).reshape(10, 10)
            a.attrs["units"] = "m"
        tool.run("rechunk", "-q", "--overwrite", out, tmp_path / "ours.zip").ok()
        theirs = zarr.open_group(zarr.storage.ZipStore(str(tmp_path / "ours.zip"), mode="r"), mode="r")
        assert theirs["v"].attrs["units"] == "m" and np.array_equal(theirs["v"][...], np.arange(100).reshape(10, 10))


@pytest.mark.every
def test_what_a_zip_file_cannot(source, tmp_path):
    out = tmp_path / "out.zip"
    tool.nc2zarr("-q", source, out).ok()
    before = out.read_bytes()
    for words, *args in (
        ("complete or absent", "--resume", source, out),
        ("written once, as a whole", "--append", "time", source, out),
        ("written once, as a whole", "--replace", "time=0:2", source, out),
        ("nothing is added to a zip file", source, f"{out}::group"),
        ("which one process writes", "-q", "--part", "1/2", source, out),
        ("make it here, and copy it", source, "s3://bucket/out.zip"),
    ):
        tool.nc2zarr(*args).fails(2, words)
    tool.nc2zarr("--consolidate", out).fails(2, "is not a folder")
    tool.nc2zarr(source, out).fails(1, "exists; --overwrite replaces it")
    assert out.read_bytes() == before and left_of(out) == []


@pytest.mark.every
def test_files_of_others_stay(source, tmp_path):
    """Text, a zip file that is no store, a damaged store, a folder, a link to nothing."""
    out, inner = tmp_path / "out.zip", io.BytesIO()
    with zipfile.ZipFile(inner, "w") as z:
        z.writestr("thesis.txt", "years")
    good = tmp_path / "good.zip"
    tool.nc2zarr("-q", source, good).ok()
    for content in (b"", b"text", inner.getvalue(), good.read_bytes()[:-30]):
        out.write_bytes(content)
        for options in ((), ("--overwrite",)):
            tool.nc2zarr(*options, source, out).fails(1, "out.zip: ")
        assert out.read_bytes() == content
    out.unlink()
    out.mkdir()
    tool.nc2zarr("--overwrite", source, out).fails(1, "is a folder")
    out.rmdir()
    out.symlink_to("nowhere.zip")
    tool.nc2zarr("--overwrite", source, out).fails(1, "is a symbolic link to nothing")
    out.unlink()
    out.symlink_to("good.zip")
    tool.nc2zarr("-q", "--overwrite", "--chunks", "time=1", source, out).ok()
    assert out.is_symlink() and same(good, source) and left_of(out) == left_of(good) == []


def test_killed_at_any_point(tmp_path):
    """Absent, or what stood there; then complete.  The next run clears what is left."""
    source, other = make(tmp_path / "in.nc", 200, 2), make(tmp_path / "old.nc", 8, 3)
    run = [tool.program("nc2zarr"), "-q", "--threads", "8", "--overwrite", "--chunks", "time=1,y=5,x=50", source]
    for k in range(KILLS):
        out = tmp_path / f"{k}.zip"
        if k % 2:
            tool.nc2zarr("-q", other, out).ok()
        before = out.read_bytes() if k % 2 else None
        process = subprocess.Popen([*run, out])
        time.sleep(0.004 * k)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if not out.exists():
            assert before is None
        elif out.read_bytes() != before:
            assert same(out, source)
        tool.nc2zarr("-q", "--overwrite", source, out).ok()
        assert same(out, source) and left_of(out) == []
        out.unlink()


@pytest.mark.long(ci=1)
def test_many_objects(tmp_path):
    """More than 65535 entries need the end of ZIP64."""
    out = tmp_path / "many.zip"
    with netCDF4.Dataset(tmp_path / "many.nc", "w") as nc:
        nc.createDimension("i", 66000)
        nc.createDimension("j", 2)
        nc.createVariable("v", "i4", ("i", "j"), fill_value=-1)[:] = np.arange(132000).reshape(66000, 2)
    tool.nc2zarr("-q", "--shards", "none", "--chunks", "1x2", tmp_path / "many.nc", out).ok()
    with zipfile.ZipFile(out) as z:
        assert len(z.namelist()) > 66000
        assert z.testzip() is None
    assert zarr.open_array(zarr.storage.ZipStore(str(out), mode="r"), path="v", mode="r")[65999].tolist() == [131998, 131999]
    tool.nc2zarr("-q", "--check", tmp_path / "many.nc", out).ok()


# ---- hostile files ----------------------------------------------------------------------------------


def packed(*entries):
    """Local headers, bytes, directory and end of (name, bytes, changes of the directory's fields)."""
    body, directory = b"", b""
    for name, data, changes in entries:
        name = name if isinstance(name, bytes) else name.encode()
        crc = zipfile.crc32(data)
        f = dict(sig=0x02014B50, flags=0, method=0, crc=crc, csize=len(data), usize=len(data), offset=len(body), local=name)
        f.update(changes)
        body += struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 0, 0, 33, crc, len(data), len(data), len(f["local"]), 0)
        body += f["local"] + data
        directory += struct.pack("<IHHHHHHIIIHHHHHII", f["sig"], 20, 20, f["flags"], f["method"], 0, 33, f["crc"], f["csize"],
                                 f["usize"], len(name), 0, 0, 0, 0, 0, f["offset"]) + name
    return body, directory


def zipped(*entries, n=None, size=None, offset=None, tail=b""):
    body, directory = packed(*entries)
    n = len(entries) if n is None else n
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, n, n, len(directory) if size is None else size,
                      len(body) if offset is None else offset, 0)
    return body + directory + end + tail


META = b'{"zarr_format":3,"node_type":"group"}'
GOOD = ("zarr.json", META, {})
HOSTILE = {
    "a name that climbs": (zipped(GOOD, ("../../etc/passwd", b"x", {})), "no path inside of the file"),
    "an absolute name": (zipped(GOOD, ("/etc/passwd", b"x", {})), "no path inside of the file"),
    "a name with a zero byte": (zipped(GOOD, (b"a\0b", b"x", {})), "has a zero byte"),
    "no name": (zipped(GOOD, ("", b"x", {})), "no path inside of the file"),
    "an entry behind the end": (zipped(GOOD, ("a", b"x", {"offset": 10**6})), "lies outside of the zip file"),
    "an entry that is too long": (zipped(GOOD, ("a", b"x", {"csize": 10**6, "usize": 10**6})), "lies outside of the zip file"),
    "entries that overlap": (zipped(("a", b"x" * 100, {}), ("b", b"y", {"offset": 40})), "a and b overlap"),
    "the same bytes twice": (zipped(GOOD, ("a", b"x", {"offset": 0})), "overlap"),
    "two sizes": (zipped(GOOD, ("a", b"xy", {"usize": 10**9})), "has two sizes"),
    "a huge count": (zipped(GOOD, n=65535), "too short for the 65535 entries"),
    "fewer entries": (zipped(GOOD, ("a", b"x", {}), n=1), "goes on behind its last entry"),
    "a directory elsewhere": (zipped(GOOD, offset=3), "does not lie where its end says"),
    "a directory of no size": (zipped(GOOD, size=0, n=0), "does not lie where its end says"),
    "bytes behind it": (zipped(GOOD, tail=b"more"), "does not end in a directory"),
    "a damaged entry": (zipped(("zarr.json", META, {"sig": 7})), "entry 0 of its directory is damaged"),
    "another name in the file": (zipped(("zarr.json", META, {"local": b"zarr.jsoN"})), "has another entry where the directory says"),
    "a wrong checksum": (zipped(("zarr.json", META, {"crc": 1})), "its checksum in the zip file is another"),
    "a compressed entry": (zipped(("zarr.json", META, {"method": 8})), "only stored entries are read"),
    "an encrypted entry": (zipped(("zarr.json", META, {"flags": 1})), "is encrypted"),
    "nothing but an end": (b"PK\5\6" + bytes(17), "is not a zip file, or not a complete one"),
}


@pytest.mark.every
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(tmp_path, name):
    content, words = HOSTILE[name]
    path = tmp_path / "bad.zip"
    path.write_bytes(content)
    for program in (("chunkcalc",), ("rechunk", "--digest")):
        result = tool.run(*program, path).fails(1, words)
        assert len(result.err.splitlines()) == 1


@pytest.mark.every
def test_a_file_that_is_cut_anywhere(source, tmp_path):
    whole, path = tmp_path / "whole.zip", tmp_path / "cut.zip"
    tool.nc2zarr("-q", "--chunks", "time=20", source, whole).ok()
    content = whole.read_bytes()
    for n in [0, 1, 4, len(content) // 2, len(content) - 1000, len(content) - 22, len(content) - 1]:
        path.write_bytes(content[:n])
        tool.run("chunkcalc", path).fails(1, "not a complete one")
