"""--survey-cache: what was surveyed before is not opened again, and what changed is."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support import paths, tool

from . import files as F
from . import stores

N = 12


@pytest.fixture
def archive(tmp_path):
    files = F.clean(N)
    return files, F.write_all(files, tmp_path / "in")


def opened(tmp_path, *inputs, status=0, **kw):
    """Files that a survey with the cache opens."""
    return stores.survey("--survey-cache", tmp_path / "cache", *(inputs or (tmp_path / "in",)), status=status, **kw)[1]["opened"]


def test_nothing_is_opened_twice(archive, tmp_path, badlibrary):
    F.for_libraries(archive[1][5])
    assert opened(tmp_path) == N
    before = (tmp_path / "cache").stat()
    assert opened(tmp_path) == 0
    after = (tmp_path / "cache").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    if not paths.SANITIZED:  # a library that crashes on one of them is not asked
        env = {"LD_PRELOAD": str(badlibrary), "BADLIBRARY": "crash", "BADLIBRARY_FILE": archive[1][5].name}
        assert opened(tmp_path, env=env) == 0


def test_the_report_counts(archive, tmp_path):
    r = tool.nc2zarr("--survey", "--survey-cache", tmp_path / "cache", tmp_path / "in").ok()
    assert f"{N} of {N} files opened" in r.out
    assert f"0 of {N} files opened" in tool.nc2zarr("--survey", "--survey-cache", tmp_path / "cache", tmp_path / "in").ok().out


def test_the_same_is_found(archive, tmp_path):
    """Findings, axes and variables do not depend on who knew it."""
    files, made = archive
    other = F.changed(files[4])
    other.vars["tas"].attrs["units"] = "degC"
    F.write(other, tmp_path / "in")
    documents = [stores.survey("--survey-cache", tmp_path / "cache", tmp_path / "in", status=4)[1] for _ in range(2)]
    assert [d["opened"] for d in documents] == [N, 0] and documents[0]["decisions"] > 0
    for d in documents:
        del d["opened"], d["seconds"]
    assert documents[0] == documents[1]


def test_a_conversion_uses_what_a_survey_found(archive, tmp_path):
    files, _ = archive
    assert opened(tmp_path) == N
    r = stores.convert("--json", "--survey-cache", tmp_path / "cache", tmp_path / "in", tmp_path / "out.zarr").ok()
    assert (r.json()["input"]["files"], r.json()["input"]["opened"]) == (N, 0)
    stores.same(tmp_path / "out.zarr", F.joined(files))


def test_a_conversion_fills_it(archive, tmp_path):
    r = stores.convert("--json", "--survey-cache", tmp_path / "cache", tmp_path / "in", tmp_path / "out.zarr").ok()
    assert r.json()["input"]["opened"] == N
    assert opened(tmp_path) == 0


def test_only_what_is_new_or_changed_is_opened(archive, tmp_path):
    files, made = archive
    assert opened(tmp_path) == N
    F.write(F.half_days(N), tmp_path / "in")
    assert opened(tmp_path) == 1
    other = F.changed(files[3])
    other.vars["tas"].data = other.vars["tas"].data + 1
    F.write(other, tmp_path / "in")
    assert opened(tmp_path) == 1
    made[7].unlink()
    assert opened(tmp_path) == 0
    r = stores.convert("--survey-cache", tmp_path / "cache", tmp_path / "in", tmp_path / "out.zarr").ok()
    stores.same(tmp_path / "out.zarr", F.joined([*files[:3], other, *files[4:7], *files[8:], F.half_days(N)])), str(r)


def rewritten(path):
    """Other bytes, and the size and the time of the old ones."""
    was, data = path.stat(), bytearray(path.read_bytes())
    data[data.index(b"n12\0")] ^= 1  # a text of file 6, as it is stored
    path.write_bytes(data)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def replaced(path):
    """Another file with the old one's time and size."""
    was = path.stat()
    shutil.copyfile(path, path.with_suffix(".new"))
    os.utime(path.with_suffix(".new"), ns=(was.st_atime_ns, was.st_mtime_ns))
    path.with_suffix(".new").replace(path)


def touched(path):
    os.utime(path)


@pytest.mark.parametrize("change", [rewritten, replaced, touched])
def test_any_change_is_seen(archive, tmp_path, change):
    assert opened(tmp_path) == N
    change(archive[1][6])
    assert opened(tmp_path) == 1
    assert opened(tmp_path) == 0


def test_written_to_within_one_tick(tmp_path):
    """A file whose times do not tell that it changed again is looked at when they would."""
    made = F.write_all(F.clean(2), tmp_path / "in")
    for value in range(8):
        other = F.half_days(1)
        other.attrs["title"] = f"title {value}"
        F.write(other, tmp_path / "in")
        os.utime(made[1], ns=(10**18, 10**18))
        assert opened(tmp_path) in ((1, 2) if value == 0 else (1,))


def test_paths_are_the_same_from_everywhere(archive, tmp_path, monkeypatch):
    assert opened(tmp_path) == N
    monkeypatch.chdir(tmp_path)
    assert opened(tmp_path, "in") == 0
    assert opened(tmp_path, "in/*.nc") == 0
    monkeypatch.chdir(tmp_path / "in")
    assert opened(tmp_path, *sorted(p.name for p in archive[1])) == 0


def test_archives_share_a_cache(archive, tmp_path):
    F.write_all(F.clean(3), tmp_path / "second")
    assert opened(tmp_path) == N
    assert opened(tmp_path, tmp_path / "second") == 3
    assert opened(tmp_path) == 0
    assert opened(tmp_path, tmp_path / "second") == 0
    size = (tmp_path / "cache").stat().st_size
    shutil.rmtree(tmp_path / "in")  # what is gone goes with the next change
    F.write(F.half_days(3), tmp_path / "second")
    assert opened(tmp_path, tmp_path / "second") == 1
    assert (tmp_path / "cache").stat().st_size < size / 2


def test_what_cannot_be_read_is_tried_again(archive, tmp_path):
    _, made = archive
    whole = made[2].read_bytes()
    made[2].write_bytes(whole[:100])
    assert opened(tmp_path, status=4) == N
    before = (tmp_path / "cache").stat().st_mtime_ns
    assert opened(tmp_path, status=4) == 1
    assert (tmp_path / "cache").stat().st_mtime_ns == before
    made[2].write_bytes(whole)
    assert opened(tmp_path) == 1


def test_a_survey_that_is_stopped_keeps_what_it_has(tmp_path, badlibrary):
    """One file takes for ever; the others are known when the survey is interrupted."""
    if paths.SANITIZED:
        pytest.skip("the sanitizers' own wrappers come first")
    made = F.write_all(F.clean(160), tmp_path / "in")
    reached = tmp_path / "reached"
    F.for_libraries(made[140])
    env = {"LD_PRELOAD": str(badlibrary), "BADLIBRARY": "loop", "BADLIBRARY_FILE": made[140].name, "BADLIBRARY_REACHED": str(reached)}
    argv = [tool.program("nc2zarr"), "-q", "-j", "2", "--survey", "--survey-cache", str(tmp_path / "cache"), str(tmp_path / "in")]
    with subprocess.Popen(argv, env=tool.environment(env), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        while not reached.exists():
            assert p.poll() is None
            time.sleep(0.01)
        p.send_signal(signal.SIGINT)
        assert p.wait(300) == -signal.SIGINT
    assert 1 <= opened(tmp_path) < 160


def refused(tmp_path):
    r = tool.nc2zarr("--survey", "--json", "--survey-cache", tmp_path / "cache", tmp_path / "in").ok()
    return r.json()["opened"], r.err


@pytest.mark.parametrize("harm", ["cut", "bit", "more", "version"])
def test_one_damage_and_nothing_is_believed(archive, tmp_path, harm):
    """Said in one sentence; the cache is whole again afterwards."""
    assert opened(tmp_path) == N
    cache = tmp_path / "cache"
    data = bytearray(cache.read_bytes())
    if harm == "cut":
        data = data[:-1]
    elif harm == "bit":
        data[len(data) * 2 // 3] ^= 0x10
    elif harm == "more":
        data += b"\0"
    else:
        at = data.index(b"\0", 19 + 16 + 8) - 1
        data[at] ^= 1
    cache.write_bytes(data)
    n, err = refused(tmp_path)
    assert n == N and err.count("\n") == 1 and "cache" in err, err
    assert opened(tmp_path) == 0


@pytest.mark.long(ci=1)
def test_every_bit_counts(tmp_path):
    """A bit turned anywhere: every file is opened again, or the file is none of ours."""
    F.write_all(F.clean(1), tmp_path / "in")
    assert opened(tmp_path) == 1
    cache = tmp_path / "cache"
    data = cache.read_bytes()
    for i in range(60 if not paths.LONG else 600):
        bad = bytearray(data)
        at = i * 7919 % (len(data) * 8)
        bad[at // 8] ^= 1 << at % 8
        cache.write_bytes(bad)
        r = tool.nc2zarr("-q", "--survey", "--json", "--survey-cache", cache, tmp_path / "in")
        assert (r.status == 0 and r.json()["opened"] == 1) or (r.status == 1 and at // 8 < 19), (at, str(r))


@pytest.mark.parametrize("more", [[], ["--overwrite"]])
@pytest.mark.parametrize("what", ["text", "empty", "folder", "fifo", "input", "certificate"])
def test_no_file_of_somebody_else(archive, tmp_path, what, more):
    cache = tmp_path / "cache"
    if what == "text":
        cache.write_text("dear diary\n" * 100)
    elif what == "empty":
        cache.write_text("")
    elif what == "folder":
        cache.mkdir()
    elif what == "fifo":
        os.mkfifo(cache)
    elif what == "certificate":
        cache.write_text('{"schema":"chunkmill-certificate-1",}')
    else:
        cache = archive[1][0]
    was = cache.read_bytes() if cache.is_file() else None
    out = tmp_path / "out.zarr"
    r = tool.nc2zarr(*more, "--survey-cache", cache, tmp_path / "in", out)
    assert r.status in (1, 2) and r.err.count("\n") == 1 and not out.exists(), str(r)
    assert was is None or cache.read_bytes() == was


def test_a_link_is_followed(archive, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "there" / "real")
    assert opened(tmp_path) == N and opened(tmp_path) == 0
    assert (tmp_path / "cache").is_symlink() and (tmp_path / "there" / "real").is_file()


def test_not_inside_the_output(archive, tmp_path):
    out = tmp_path / "out.zarr"
    r = tool.nc2zarr("--survey-cache", out / "cache", tmp_path / "in", out)
    assert r.status in (1, 2) and not out.exists(), str(r)


def test_nothing_is_left_beside_it(archive, tmp_path):
    assert opened(tmp_path) == N
    assert sorted(p.name for p in Path(tmp_path).iterdir()) == ["cache", "in"]
