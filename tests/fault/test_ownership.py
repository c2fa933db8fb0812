"""Foreign files stay: links, other files, special files; one run at a time; journals that are damaged."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import failio, paths, rechunked, tool
from support.locks import lock_text

CHUNKS = ("--chunks", "t:5x8x8", "--verify", "none")


def run(*args):
    return tool.run("rechunk", *args)


def beside(out):
    return Path(f"{out}.chunkmill")


def make_source(path, seed=0, corrupt=False, fmt=3):
    root = zarr.create_group(str(path), zarr_format=fmt)
    rng = np.random.default_rng(seed)
    for name, shape, chunks in (("t", (20, 30, 30), (4, 30, 30)), ("g/u", (6, 6), (3, 6))):
        a = root.create_array(name, shape=shape, chunks=chunks, dtype="f4", fill_value=0)
        a[...] = rng.random(shape, "f4")
    root["t"][4:8] = 0  # chunks that are left out
    if corrupt:
        chunk = sorted(p for p in (path / "t").rglob("*") if p.is_file() and p.name not in ("zarr.json", ".zarray"))[-1]
        chunk.write_bytes(b"no such chunk")
    return path


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    return {
        "good": make_source(folder / "good.zarr"),
        "other": make_source(folder / "other.zarr", 1),
        "corrupt": make_source(folder / "corrupt.zarr", 2, corrupt=True),
    }


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.zarr"


# ---- property: what is foreign is there afterwards --------------------------------------------------


def picture(path):
    """Contents below PATH by name, without following links."""
    if path.is_symlink():
        return ("link", os.readlink(path))
    if path.is_dir():
        return ("folder", {p.name: picture(p) for p in sorted(path.iterdir())})
    if path.is_file():
        return ("file", path.read_bytes())
    return ("special", path.stat().st_mode)


FILES = ("notes.txt", "README", "c.txt", "0.0.0.bak", ".zarr", "99999", "c/0/0/0.old", "data/0/0/0", "c/77/0/0", "zarr.json~")


def scatter(rng, out, outside):
    """Foreign things in OUT, at random: what each is, by its path."""
    foreign = {}
    folders = [out] + [p for p in out.rglob("*") if p.is_dir() and not p.is_symlink()]
    for i in range(rng.randint(1, 10)):
        kind = rng.choice(("file", "file", "file", "link to a folder", "link to a file", "dangling", "fifo"))
        name = rng.choice(FILES) if kind == "file" else f"mine-{i}"
        path = rng.choice(folders) / name
        if path.exists() or any(q.is_symlink() or (q.exists() and not q.is_dir()) for q in (path, *path.parents)):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "file":
            path.write_bytes(rng.randbytes(20))
        elif kind == "link to a folder":
            path.symlink_to(outside)
        elif kind == "link to a file":
            path.symlink_to(outside / "0")
        elif kind == "dangling":
            path.symlink_to(outside / "new")
        else:
            os.mkfifo(path)
        foreign[path] = picture(path)
    return foreign


def replace_by_link(rng, out, outside):
    """An array's folder, or one of its chunks, has become a link to one outside."""
    places = [
        p
        for p in (out / "t", out / "g", out / "t" / "c", out / "t" / "c" / "0")
        if p.is_dir() and not any(q.is_symlink() for q in (p, *p.parents))
    ]
    if rng.random() < 0.5 or not places:
        return {}
    place = rng.choice(places)
    shutil.rmtree(place)
    place.symlink_to(outside)
    return {place: picture(place)}


def killed(rng, sources, out, *options):
    process = subprocess.Popen(
        [tool.program("rechunk"), "-q", "-j", "1", "--codec", "zstd:19", *CHUNKS, *options, str(sources["good"]), str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=tool.environment(),
    )
    time.sleep(rng.uniform(0, 0.1))
    process.send_signal(rng.choice((signal.SIGKILL, signal.SIGINT)))
    process.wait(timeout=300)


OPERATIONS = {
    "overwrite": lambda rng, s, out: run("--overwrite", *CHUNKS, s["good"], out),
    "overwrite with another": lambda rng, s, out: run("--overwrite", "--chunks", "t:20x30x30", s["other"], out),
    "overwrite by version 2": lambda rng, s, out: run("--overwrite", "--zarr-format", "2", *CHUNKS, s["good"], out),
    "overwrite by a corrupt one": lambda rng, s, out: run("--overwrite", *CHUNKS, s["corrupt"], out),
    "resume": lambda rng, s, out: run("--resume", "--codec", "zstd:19", *CHUNKS, s["good"], out),
    "killed": lambda rng, s, out: killed(rng, s, out),
    "killed while it overwrites": lambda rng, s, out: killed(rng, s, out, "--overwrite"),
    "a forged journal": lambda rng, s, out: forge(out),
}


def forge(out):
    if out.exists():
        (out / ".chunkmill-journal").write_text(json.dumps({"made": True, "arrays": ["", "t", "g", "t/c", "../outside"]}) + "\n")
        beside(out).mkdir(exist_ok=True)
        (beside(out) / "journal").write_text(json.dumps({"made": True, "phase": "writing", "arrays": ["", "t"]}) + "\n")


@pytest.mark.parametrize("seed", range(paths.tries(30, 100, 400)))
def test_what_is_foreign_stays(sources, tmp_path, out, seed):
    rng = random.Random(seed)
    outside = tmp_path / "outside"
    (outside / "c" / "0" / "0").mkdir(parents=True)
    for name in ("0", "0.0.0", "zarr.json", ".zarray", "c/0/0/0", "c/0/0/1", ".chunkmill-1-1.tmp", "notes"):
        (outside / name).write_bytes(rng.randbytes(10))
    before = picture(outside)
    if rng.random() < 0.7:
        run(*CHUNKS, "--zarr-format", rng.choice("23"), sources["other"], out).ok()
    foreign, story = {}, []
    for _ in range(rng.randint(1, 4)):
        if out.is_dir():
            foreign.update(scatter(rng, out, outside))
            if rng.random() < 0.3:
                taken = replace_by_link(rng, out, outside)
                foreign = {p: what for p, what in foreign.items() if p.exists() or p.is_symlink()} | taken
        name = rng.choice(list(OPERATIONS))
        done = OPERATIONS[name](rng, sources, out)
        story.append((name, getattr(done, "status", None), getattr(done, "err", "")))
        assert picture(outside) == before, story
        for path, what in foreign.items():
            assert picture(path) == what, (path, story)
        assert set(os.listdir(tmp_path)) <= {"out.zarr", "out.zarr.chunkmill", "outside"}, story


def test_what_is_left_is_counted_and_named(sources, out):
    run(sources["good"], out).ok()
    (out / "t" / "mine.txt").write_text("mine")
    said = run("--overwrite", sources["good"], out).ok().err
    assert "1 file is not the old store's, and stayed: t/mine.txt" in said


# ---- links and special files in the way ---------------------------------------------------------------


@pytest.mark.parametrize("place", ["t", "t/c", "t/c/0", "t/zarr.json", "zarr.json", "g"])
def test_a_link_in_the_way_is_refused_before_anything_is_lost(sources, tmp_path, out, place):
    run(*CHUNKS, sources["good"], out).ok()
    outside = tmp_path / "outside"
    shutil.move(out / place, outside)
    (out / place).symlink_to(outside)
    before = (picture(out), picture(outside))
    run("--overwrite", *CHUNKS, sources["other"], out).fails(1, "link")
    assert (picture(out), picture(outside)) == before


@pytest.mark.parametrize("name", ["lock", "journal"])
@pytest.mark.parametrize("kind", ["fifo", "dangling", "link"])
def test_strange_files_beside_the_output(sources, tmp_path, out, name, kind):
    """Neither waits for a writer of the FIFO, nor writes where a link leads."""
    beside(out).mkdir()
    place, other = beside(out) / name, tmp_path / "other"
    if kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to(other)
    if kind == "link":
        other.write_text("mine")
    run(*CHUNKS, sources["good"], out).fails(1)
    assert not out.exists() and other.exists() == (kind == "link")
    if kind == "link":
        assert other.read_text() == "mine"


def test_the_folder_beside_may_be_no_link(sources, tmp_path, out):
    (tmp_path / "elsewhere").mkdir()
    beside(out).symlink_to(tmp_path / "elsewhere")
    run(*CHUNKS, sources["good"], out).fails(1, ".chunkmill")
    assert not out.exists() and not os.listdir(tmp_path / "elsewhere")


def test_the_root_may_be_a_link(sources, tmp_path, out):
    (tmp_path / "real").mkdir()
    out.symlink_to(tmp_path / "real")
    run("--overwrite", *CHUNKS, sources["good"], out).ok()
    assert rechunked.digests(tmp_path / "real") == rechunked.digests(sources["good"])
    assert out.is_symlink() and sorted(os.listdir(tmp_path)) == ["out.zarr", "real"]


# ---- the lock ---------------------------------------------------------------------------------------


@pytest.mark.long(ci=1)
def test_one_of_two_wins(sources, tmp_path, out):
    """Two runs at once, again and again: one store, whole, of the one that says that it made it."""
    truth = {name: rechunked.digests(sources[name]) for name in ("good", "other")}
    refused = rounds = 0
    while rounds < paths.tries(15, 50, 200) or not refused:
        assert rounds < 500, "never refused for a run that was under way"
        rounds += 1
        options = ["--chunks", "t:1x30x30", "--verify", "none", "-q"]
        processes = {
            name: subprocess.Popen(
                [tool.program("rechunk"), *options, str(sources[name]), str(out)],
                stderr=subprocess.PIPE, text=True, env=tool.environment(),
            )
            for name in truth
        }
        said = {name: (p.communicate(timeout=300)[1], p.returncode) for name, p in processes.items()}
        winners = [name for name, (_, status) in said.items() if status == 0]
        assert len(winners) == 1, said
        assert rechunked.digests(out) == truth[winners[0]]
        (err, status) = next(v for k, v in said.items() if k not in winners)
        assert status == 1 and "out.zarr" in err, said
        refused += "another run" in err
        assert os.listdir(tmp_path) == ["out.zarr"]
        shutil.rmtree(out)


LOCKS = {  # what it says: refused, and with --break-lock
    "a process that runs": (lambda: lock_text(), "another run", "another run"),
    "one that has ended": (lambda: lock_text(**{"process": 2**22 - 1}), None, None),
    "a number that was given again": (lambda: lock_text(**{"process start": 1}), None, None),
    "another host": (lambda: lock_text(host="elsewhere"), "elsewhere", None),
    "another container": (lambda: lock_text(**{"process space": "pid:[1]"}), "cannot be seen", None),
    "a host of the same name": (lambda: lock_text(boot="1"), "cannot be seen", None),
    "nothing": (lambda: "", "does not say by whom", None),
    "half of it": (lambda: lock_text()[:50], "does not say by whom", None),
}


@pytest.mark.parametrize("name", LOCKS)
def test_locks(sources, out, name):
    text, refused, refused_too = LOCKS[name]
    beside(out).mkdir()
    (beside(out) / "lock").write_text(text())
    for options, sentence in (((), refused), (("--break-lock",), refused_too)):
        done = run(*options, *CHUNKS, sources["good"], out)
        if sentence:
            done.fails(1, sentence, "out.zarr")
            assert not out.exists() and (beside(out) / "lock").read_text() == text()
        elif not out.exists() or options == ():
            assert "took over the lock" in done.ok().err
            assert not beside(out).exists()
            return


@pytest.mark.long(ci=1)
def test_many_take_a_stale_lock(sources, out):
    """Of several at once one takes it over."""
    for _ in range(10):
        beside(out).mkdir()
        (beside(out) / "lock").write_text(lock_text(process=2**22 - 1))
        processes = [
            subprocess.Popen([tool.program("rechunk"), "-q", *CHUNKS, str(sources["good"]), str(out)],
                             stderr=subprocess.DEVNULL, env=tool.environment())
            for _ in range(4)
        ]  # fmt: skip
        assert sorted(p.wait(timeout=300) for p in processes) == [0, 1, 1, 1]
        assert rechunked.digests(out) == rechunked.digests(sources["good"]) and not beside(out).exists()
        shutil.rmtree(out)


# ---- the journal ------------------------------------------------------------------------------------


def interrupted(sources, out):
    """Killed when some chunks are there and some were left out."""
    for _ in range(40):
        process = subprocess.Popen(
            [tool.program("rechunk"), "-q", "-j", "1", "--codec", "zstd:19", *CHUNKS, str(sources["good"]), str(out)],
            stderr=subprocess.DEVNULL, env=tool.environment(),
        )  # fmt: skip
        while process.poll() is None and sum(len(f) for _, _, f in os.walk(out / "t")) < 20:
            time.sleep(0.001)
        process.kill()
        process.wait()
        if process.returncode != 0 and not (out / "zarr.json").exists():
            # The last one may have been cut in the middle: those of the clock's last tick go.
            times = {p: p.stat().st_mtime_ns for p in (out / "t").rglob("*") if p.is_file()}
            for p in [p for p, t in times.items() if t == max(times.values())]:
                p.unlink()
            return
        shutil.rmtree(out)
        shutil.rmtree(beside(out), ignore_errors=True)
    pytest.fail("was never stopped in the middle")


def resume(sources, out):
    done = run("--resume", "--codec", "zstd:19", *CHUNKS, sources["good"], out)
    return done


@pytest.mark.parametrize("option", ["--resume", "--overwrite"])
@pytest.mark.parametrize("text", [b"", b"\0" * 100, b"00000000 {}\n", b"{\"made\": true}\n"], ids=["empty", "zeros", "wrong", "old"])
def test_a_damaged_journal_is_overcome(sources, out, option, text):
    interrupted(sources, out)
    (beside(out) / "journal").write_bytes(text)
    run(option, "--codec", "zstd:19", *CHUNKS, sources["good"], out).ok()
    assert rechunked.digests(out) == rechunked.digests(sources["good"])
    assert not beside(out).exists()


@pytest.mark.parametrize("option", ["--resume", "--overwrite"])
def test_an_empty_folder_is_overcome(sources, out, option):
    out.mkdir()
    run(*CHUNKS, sources["good"], out).fails(1, "exists")
    run(option, *CHUNKS, sources["good"], out).ok()
    assert rechunked.digests(out) == rechunked.digests(sources["good"])


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.long(ci=1)
def test_lines_that_are_cut_or_wrong_count_for_nothing(sources, out):
    interrupted(sources, out)
    journal = beside(out) / "journal"
    head = journal.read_bytes().split(b"\n")[0]
    assert int(head[:8], 16) == crc32c(head[9:])
    lines = [b"%08x %s" % (crc32c(p), p) for p in (b"0 1", b"0 2")]
    for bad in (lines[0][:-1] + lines[1] + b"\n", lines[0], b"0 1\n0 2\n", b"%08x 0  1\n" % crc32c(b"0  1"), b"%08x 0 +1\n" % crc32c(b"0 +1"),
                b"%08x 0 99999\n" % crc32c(b"0 99999"), b"%08x 99 0\n" % crc32c(b"99 0"), b"%08x 0 01\n" % crc32c(b"0 01")):  # fmt: skip
        shutil.copytree(out, f"{out}.copy")
        shutil.copytree(beside(out), beside(f"{out}.copy"))
        copy = Path(f"{out}.copy")
        (beside(copy) / "journal").write_bytes(head + b"\n" + bad)
        resume(sources, copy).ok()
        assert rechunked.digests(copy) == rechunked.digests(sources["good"]), bad
        shutil.rmtree(copy)


@pytest.mark.parametrize("damage", ["empty", "short", "zeros", "noise"])
def test_objects_are_kept_only_when_they_decode(sources, out, damage):
    interrupted(sources, out)
    chunks = sorted(p for p in (out / "t" / "c").rglob("*") if p.is_file() and not p.name.startswith("."))
    for p in chunks[::3]:
        data = p.read_bytes()
        p.write_bytes({"empty": b"", "short": data[: len(data) // 2], "zeros": bytes(len(data)), "noise": os.urandom(len(data))}[damage])
    before = {p: p.stat().st_ino for p in chunks}
    resume(sources, out).ok()
    assert rechunked.digests(out) == rechunked.digests(sources["good"])
    assert {p for p in chunks if p.stat().st_ino == before[p]} == set(chunks) - set(chunks[::3])


@pytest.mark.parametrize("options", [[], ["--overwrite"], ["--virtual", "icechunk"]], ids=["new", "overwrite", "icechunk"])
def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(tmp_path, options):
    """It may be anybody's: nothing is added and nothing goes, whichever look at it fails."""
    root, out = tmp_path / "root", tmp_path / "root" / "out"
    out.mkdir(parents=True)
    (out / "notes.txt").write_text("mine")
    place = f"icechunk:{out}" if "icechunk" in options else out
    copy = lambda nth, way="EIO": failio.inject("nc2zarr", "-q", *options, paths.CORPUS / "cmip_nc4.nc", place, root=root,
                                                state=tmp_path / "state", kind="list", nth=nth, way=way)  # fmt: skip
    count = copy(0).counts["list"]
    assert count > 0
    for nth, way in itertools.product(range(1, count + 1), ["EIO", "EIO+"]):
        copy(nth, way).done.fails(1, "out: ", "Input/output error")
        assert failio.contents(root) == {"out": None, "out/notes.txt": b"mine"}, nth
