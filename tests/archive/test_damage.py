"""Files that cannot be read, in the middle of an archive: each costs itself, is named, and never the run."""

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from support import paths, tool

from . import files as F
from . import stores

N, BAD = 9, 4


def truncated(path):
    os.truncate(path, path.stat().st_size // 2)


def emptied(path):
    os.truncate(path, 0)


def overwritten(path):
    """Its metadata are noise, behind a signature that is right."""
    data = bytearray(path.read_bytes())
    noise = np.random.default_rng(3).integers(0, 256, len(data) - 64, "u1").tobytes()
    data[64:] = noise
    path.write_bytes(data)


def text(path):
    path.write_text("this is no NetCDF file\n")


def fifo(path):
    path.unlink()
    os.mkfifo(path)


def unreadable(path):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    path.chmod(0)


BROKEN = {f.__name__: f for f in (truncated, emptied, overwritten, text, fifo, unreadable)}


@pytest.fixture
def archive(tmp_path):
    files = F.clean(N)
    made = F.write_all(files, tmp_path / "in")
    return files, made


def without(files, *bad):
    return F.joined([f for i, f in enumerate(files) if i not in bad])


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("at", [0, BAD, N - 1])
def test_broken(archive, how, at, tmp_path):
    files, made = archive
    BROKEN[how](made[at])
    # Paths, not the folder: what is no file there is not looked at.
    before = stores.listing(tmp_path)
    out = tmp_path / "out.zarr"
    status, doc = stores.survey(*made, status=4)
    found = [f for f in doc["findings"] if f["kind"] == "unreadable"]
    assert [Path(f["file"]).name for f in found] == [made[at].name], doc["findings"]
    assert found[0]["option"] == "--bad-file skip" and found[0]["weight"] == "decision" and found[0]["text"]
    r = tool.nc2zarr(*made, out)
    assert r.status == 4 and made[at].name in r.err and "--bad-file skip" in r.err, str(r)
    assert stores.listing(tmp_path) == before
    stores.convert("--bad-file", "skip", "--verify", "full", *made, out).ok()
    stores.same(out, without(files, at))


def test_a_path_that_is_not_there(archive, tmp_path):
    """A name on the command line is not skipped; a link in a folder that leads nowhere is a file that cannot be read."""
    files, made = archive
    made[BAD].unlink()
    r = tool.nc2zarr("--bad-file", "skip", *made, tmp_path / "out.zarr")
    assert r.status == 1 and made[BAD].name in r.err, str(r)
    made[BAD].symlink_to(made[BAD].with_name("nowhere.nc"))
    _, doc = stores.survey(tmp_path / "in", status=4)
    assert [Path(f["file"]).name for f in doc["findings"] if f["kind"] == "unreadable"] == [made[BAD].name]
    assert not (tmp_path / "out.zarr").exists()


def test_what_is_skipped_cannot_be_reproduced(archive, tmp_path):
    _, made = archive
    truncated(made[BAD])
    out, certificate = tmp_path / "out.zarr", tmp_path / "cert.json"
    args = ["--bad-file", "skip", "--verify", "full", "--certificate", certificate]
    stores.convert(*args, tmp_path / "in", out).ok()
    import json

    doc = json.loads(certificate.read_text())
    assert doc["reproducible"] is False
    assert made[BAD].name in json.dumps(doc)


def test_a_certificate_names_every_file(archive, tmp_path):
    _, made = archive
    out, certificate = tmp_path / "out.zarr", tmp_path / "cert.json"
    stores.convert("--verify", "full", "--certificate", certificate, tmp_path / "in", out).ok()
    import json

    doc = json.loads(certificate.read_text())
    assert doc["reproducible"] is True
    assert all(p.name in json.dumps(doc) for p in made)


@pytest.mark.skipif(paths.SANITIZED, reason="the sanitizers' own wrappers come first")
@pytest.mark.parametrize("how", ["crash", "abort", "kill", "exit", "overflow", "wait", "loop"])
def test_a_file_over_which_the_library_ends(archive, badlibrary, tmp_path, how):
    if how == "loop" and not paths.LONG:
        pytest.skip("takes 10 s of CPU time: CHUNKMILL_LONG=1")
    files, made = archive
    F.for_libraries(made[BAD])
    env = {"LD_PRELOAD": str(badlibrary), "BADLIBRARY": how, "BADLIBRARY_FILE": made[BAD].name}
    status, doc = stores.survey(tmp_path / "in", status=4, env=env)
    found = [f for f in doc["findings"] if f["kind"] == "unreadable"]
    assert [Path(f["file"]).name for f in found] == [made[BAD].name]
    out = tmp_path / "out.zarr"
    stores.convert("--bad-file", "skip", "--verify", "none", tmp_path / "in", out, env=env).ok()
    stores.same(out, without(files, BAD))


def test_many_broken_files(archive, tmp_path):
    files, made = archive
    for i in (1, 2, 5, 8):
        truncated(made[i])
    _, doc = stores.survey(tmp_path / "in", status=4)
    found = [f for f in doc["findings"] if f["kind"] == "unreadable"]
    names = {Path(f[k]).name for f in found for k in ("file", "last")}
    assert {made[1].name, made[8].name} <= names
    assert sum(f["files"] for f in found) == 4
    out = tmp_path / "out.zarr"
    stores.convert("--bad-file", "skip", tmp_path / "in", out).ok()
    stores.same(out, without(files, 1, 2, 5, 8))


def test_nothing_but_broken_files(archive, tmp_path):
    _, made = archive
    for p in made:
        truncated(p)
    r = tool.nc2zarr("--bad-file", "skip", tmp_path / "in", tmp_path / "out.zarr")
    assert r.status in (1, 4) and r.err, str(r)
    assert not (tmp_path / "out.zarr").exists()


# ---- data that are damaged: the survey sees headers only ---------------------------------------------


def test_a_damaged_chunk(archive, tmp_path):
    """Found while data move: named, and no store opens."""
    files, made = archive
    data = bytearray(made[BAD].read_bytes())
    import h5py

    with h5py.File(made[BAD]) as f:
        chunk = f["tas"].id.get_chunk_info(0)
    data[chunk.byte_offset : chunk.byte_offset + chunk.size] = b"\xff" * chunk.size
    made[BAD].write_bytes(data)
    out = tmp_path / "out.zarr"
    r = tool.nc2zarr("-q", tmp_path / "in", out)
    assert r.status == 1 and made[BAD].name in r.err and "tas" in r.err, str(r)
    assert not tool.opens_as_store(out)


# ---- files that change -------------------------------------------------------------------------------


def stopped_while_writing(argv, out, change):
    """Runs ARGV; when its output begins, it is halted, CHANGE is called, and it goes on."""
    with subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=tool.environment()) as p:
        while p.poll() is None and not any(Path(out).rglob("*")):
            time.sleep(0.0005)
        if p.poll() is None:
            p.send_signal(signal.SIGSTOP)
            change()
            p.send_signal(signal.SIGCONT)
        err = p.stderr.read().decode()
        return p.wait(), err


@pytest.mark.few
@pytest.mark.parametrize("how", ["rewritten", "replaced", "shorter", "gone"])
def test_a_file_that_changes_while_it_is_read(tmp_path, how):
    files = [F.half_days(i, steps=40) for i in range(60)]
    made = F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    last = made[-1]

    def change():
        if how == "rewritten":
            data = last.read_bytes()
            last.write_bytes(data)
        elif how == "replaced":
            other = F.changed(files[-1])
            other.vars["tas"].data = other.vars["tas"].data + 1
            other.name = "other.nc"
            os.replace(F.write(other, tmp_path), last)
        elif how == "shorter":
            os.truncate(last, 1000)
        else:
            last.unlink()

    argv = [tool.program("nc2zarr"), "-q", "-j", "1", "--chunks", "time=8", "--verify", "none", str(tmp_path / "in"), str(out)]
    status, err = stopped_while_writing(argv, out, change)
    assert status == 1 and last.name in err, (status, err)
    assert not tool.opens_as_store(out)


def test_a_stale_cache_is_not_believed(archive, tmp_path):
    files, made = archive
    cache, out = tmp_path / "cache", tmp_path / "out.zarr"
    stores.survey("--survey-cache", cache, tmp_path / "in", status=0)
    other = F.changed(files[BAD])
    other.vars["tas"].data = other.vars["tas"].data + 1
    F.write(other, tmp_path / "in")
    stores.convert("--survey-cache", cache, tmp_path / "in", out).ok()
    stores.same(out, F.joined([other if i == BAD else f for i, f in enumerate(files)]))


@pytest.mark.parametrize("harm", [lambda b: b[: len(b) // 2], lambda b: b[:40] + b"\xff" * 40 + b[80:], lambda b: b"", lambda b: b"x" * 5000])
def test_a_damaged_cache(archive, tmp_path, harm):
    files, made = archive
    cache, out = tmp_path / "cache", tmp_path / "out.zarr"
    stores.survey("--survey-cache", cache, tmp_path / "in", status=0)
    cache.write_bytes(harm(cache.read_bytes()))
    r = tool.nc2zarr("-q", "--survey-cache", cache, tmp_path / "in", out)
    if r.status == 0:
        stores.same(out, F.joined(files))
    else:
        assert "cache" in r.err, str(r)


def test_a_cache_is_no_file_of_the_users(archive, tmp_path):
    """A file that is not a cache is never overwritten."""
    diary = tmp_path / "diary.txt"
    diary.write_text("dear diary\n" * 100)
    tool.nc2zarr("--survey", "--survey-cache", diary, tmp_path / "in")
    assert diary.read_text() == "dear diary\n" * 100
