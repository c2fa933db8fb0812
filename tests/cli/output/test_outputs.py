"""Every option that names a place for output, against everything that can be there.

The options are read from the completion that each tool generates of its own table: one that is
new and names a file or a folder is tested here, or fails for having no row in RUNS.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess

import netCDF4
import numpy as np
import pytest
import zarr
from support import tool

TOOLS = ("nc2zarr", "rechunk", "chunkcalc", "readbench")


def place_options():
    """(tool, option, "file" or "folder") for all that the completion of bash completes with names."""
    found = []
    for name in TOOLS:
        script = subprocess.run([tool.program(name), "--generate", "bash"], capture_output=True, text=True, check=True)
        for options, kind in re.findall(r"^\s*(--?[^)]*)\)[^;]*?compgen -([fd]) ", script.stdout, re.M):
            for option in options.split("|"):
                if option.startswith("--"):
                    found.append((name, option, "file" if kind == "f" else "folder"))
    return found


OPTIONS = place_options()
INPUTS = ("--access", "--replay")  # logs, which are read
FILES = [(t, o) for t, o, kind in OPTIONS if kind == "file" and o not in INPUTS]
# Documents that are only written.  A cache is read too: nothing of somebody else is ever replaced by one, and pipes are none.
DOCUMENTS = [o for o in FILES if o[1] != "--survey-cache"]
FOLDERS = [(t, o) for t, o, kind in OPTIONS if kind == "folder"]


def test_the_options_are_found():
    assert {("nc2zarr", "--trace"), ("nc2zarr", "--certificate"), ("rechunk", "--trace")} <= set(FILES)
    assert {("chunkcalc", "--plot"), ("readbench", "--trace")} <= set(FILES)
    assert {("readbench", "--out"), ("readbench", "--cache-dir"), ("rechunk", "--scratch")} <= set(FOLDERS)


class World:
    """An input of each kind, and what a command line needs to get to its output."""

    def __init__(self, tmp_path):
        self.tmp = tmp_path
        self.nc = tmp_path / "in.nc"
        with netCDF4.Dataset(self.nc, "w") as ds:
            ds.createDimension("y", 8)
            ds.createDimension("x", 8)
            ds.createVariable("v", "f4", ("y", "x"))[:] = np.arange(64).reshape(8, 8)
        self.store = tmp_path / "in.zarr"
        root = zarr.create_group(str(self.store))
        root.create_array("v", shape=(8, 8), chunks=(4, 4), dtype="f4", dimension_names=("y", "x"))[...] = 1
        self.made = tmp_path / "made.zarr"

    def input(self, name):
        return self.nc if name == "nc2zarr" else self.store

    def run(self, name, option, value, *more, **kw):
        runs = {
            "nc2zarr": ["--verify", "full", self.nc, self.made],
            "rechunk": ["--chunks", "8x2", self.store, self.made],
            "chunkcalc": ["--sample", "2x2", self.store],
            "readbench": ["--sample", "2x2", "--batches", "2", "--step-time", "0ms", self.store],
        }
        if name == "readbench" and option != "--out":
            more = ("--no-out", *more)
        return tool.run(name, *more, option, value, *runs[name], timeout=300, **kw)

    def state(self):
        """Existing files, byte for byte, links as links, except for those that the command makes."""
        found = {}
        for folder, folders, files in os.walk(self.tmp):
            folders[:] = [f for f in folders if os.path.join(folder, f) != str(self.made)]
            for n in [*files, *folders]:
                path = os.path.join(folder, n)
                if os.path.islink(path):
                    found[path] = "-> " + os.readlink(path)
                elif os.path.isfile(path):
                    found[path] = hashlib.sha256(open(path, "rb").read()).hexdigest()
                else:
                    found[path] = oct(os.lstat(path).st_mode)
        return found


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def ending(option):
    return {"--plot": ".svg", "--report": ".html"}.get(option, ".json")


def refused(done, status, *words):
    assert done.status == status and done.out == "", str(done)
    for word in words:
        assert str(word) in done.err, f"{word!r} is not in\n{done}"
    return done


def is_whole(text, option):
    """A document from its beginning to its end."""
    if option == "--plot":
        return "<svg" in text
    if option == "--report":  # chunkcalc prints its answer behind it
        return text.startswith("<!doctype html>") and "</html>" in text
    return len(json.loads(text)) > 1


def is_document(path, option):
    return is_whole(path.read_text(), option)


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]], ids=["", "overwrite"])
@pytest.mark.parametrize("how", ["itself", "link", "hard link", "object", "object through a link", "in it"])
@pytest.mark.parametrize("name, option", FILES)
def test_no_file_replaces_an_input(world, name, option, how, overwrite):
    """Not with --overwrite either.  For --plot the name must end in .svg, so links do."""
    source, end = world.input(name), ending(option)
    place = world.tmp / f"place{end}"
    if how == "itself" and option == "--plot":
        source = source.rename(world.tmp / f"in{end}")
        world.store = source
        place = source
    elif how == "itself":
        place = source
    elif how == "link":
        place.symlink_to(source)
    elif how == "hard link":
        if source.is_dir():
            pytest.skip("a store is a folder")
        os.link(source, place)
    elif source.is_file():
        pytest.skip("a file has no objects")
    elif how == "object":
        place = source / "v" / f"new{end}"
    elif how == "object through a link":
        (world.tmp / "link").symlink_to(source / "v")
        place = world.tmp / "link" / f"new{end}"
    elif how == "in it":
        place.symlink_to(source / "v" / "zarr.json")
    before = world.state()
    done = world.run(name, option, place, *overwrite)
    refused(done, 2, place)
    assert "input" in done.err or "is read" in done.err, str(done)
    assert world.state() == before and not world.made.exists()


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]], ids=["", "overwrite"])
@pytest.mark.parametrize("where", ["itself", "in it", "above it"])
@pytest.mark.parametrize("name, option", [o for o in FILES if o[0] in ("nc2zarr", "rechunk")])
def test_no_file_lies_in_the_store_that_is_made(world, name, option, where, overwrite):
    if where == "above it":
        world.made = world.tmp / "deep" / "made.zarr"
    elif overwrite:
        zarr.create_group(str(world.made))
    place = {"itself": world.made, "in it": world.made / "t.json", "above it": world.tmp / "deep"}[where]
    before = world.state()
    done = world.run(name, option, place, *overwrite)
    assert done.status in (1, 2) and str(place) in done.err and done.out == "", str(done)
    assert world.state() == before and not (world.made / "v").exists()


@pytest.mark.parametrize("name, option", DOCUMENTS)
def test_a_file_of_someone_else(world, name, option):
    place = world.tmp / f"thesis{ending(option)}"
    place.write_text('{"traceEvents": [], "schema": "mine", "text": "years of work"}')
    before = world.state()
    refused(world.run(name, option, place), 1, place, "exists and is not a", "--overwrite replaces it")
    assert world.state() == before and not world.made.exists()
    world.run(name, option, place, "--overwrite").ok()
    assert is_document(place, option)
    assert set(world.state()) == set(before)


@pytest.mark.parametrize("name, option", DOCUMENTS)
def test_a_file_of_someone_else_behind_a_link(world, name, option):
    """--overwrite permits replacing the named file, not the target of a link, unless that is a document of ours."""
    there, link, links = world.tmp / f"thesis{ending(option)}", world.tmp / f"link{ending(option)}", world.tmp / f"links{ending(option)}"
    there.write_text('{"traceEvents": [], "schema": "mine", "text": "years of work"}')
    link.symlink_to(there)
    links.symlink_to(link)
    before = world.state()
    for place in (link, links):
        for more in ([], ["--overwrite"]):
            refused(world.run(name, option, place, *more), 2, place, there, "is a symbolic link to")
    assert world.state() == before and not world.made.exists()
    there.unlink()
    world.run(name, option, there).ok()
    first = there.stat().st_ino
    if world.made.exists():
        shutil.rmtree(world.made)
    world.run(name, option, links).ok()
    assert is_document(there, option) and there.stat().st_ino != first and link.is_symlink() and links.is_symlink()


@pytest.mark.parametrize("name, option", DOCUMENTS)
def test_a_document_of_ours_is_replaced(world, name, option):
    place = world.tmp / f"new{ending(option)}"
    world.run(name, option, place).ok()
    assert is_document(place, option)
    first = place.stat().st_ino
    before = set(world.state())
    if world.made.exists():
        shutil.rmtree(world.made)
    world.run(name, option, place).ok()
    assert is_document(place, option) and place.stat().st_ino != first
    assert set(world.state()) == before, "something is left beside it"


@pytest.mark.parametrize("one, other", [("nc2zarr", "--certificate"), ("readbench", "--trace")])
def test_a_document_of_another_kind_is_someone_elses(world, one, other):
    place = world.tmp / "doc.json"
    world.run(one, other, place).ok()
    if world.made.exists():
        shutil.rmtree(world.made)
    kind = "--trace" if other == "--certificate" else "--certificate"
    before = world.state()
    refused(world.run("nc2zarr", kind, place), 1, "exists and is not a")
    assert world.state() == before


@pytest.mark.parametrize("name, option", FILES)
@pytest.mark.parametrize("what", ["folder", "link to nowhere", "link to itself", "no folder", "socket"])
def test_what_is_no_file(world, name, option, what):
    place = world.tmp / f"place{ending(option)}"
    if what == "folder":
        place.mkdir()
    elif what == "link to nowhere":
        place.symlink_to(world.tmp / "none" / "nowhere")
    elif what == "link to itself":
        place.symlink_to(place)
    elif what == "no folder":
        place = world.tmp / "none" / place.name
    elif what == "socket":
        os.mknod(place, 0o140600)
    before = world.state()
    for more in ([], ["--overwrite"]):
        done = world.run(name, option, place, *more)
        assert done.status in (1, 2) and str(place) in done.err and done.out == "", str(done)
        assert world.state() == before and not world.made.exists()


@pytest.mark.parametrize("name, option", DOCUMENTS)
def test_a_link_to_a_file_that_is_not_there_yet(world, name, option):
    place, there = world.tmp / f"link{ending(option)}", world.tmp / "there"
    (world.tmp / "between").symlink_to("there")
    place.symlink_to("between")
    world.run(name, option, place).ok()
    assert place.is_symlink() and is_document(there, option)


@pytest.mark.parametrize("name, option", [o for o in DOCUMENTS if o[1] != "--plot"])
@pytest.mark.parametrize("what", ["/dev/null", "fifo", "link to a fifo", "/dev/full"])
def test_devices_and_pipes_are_written_into(world, name, option, what):
    place = world.tmp / "pipe"
    if what.startswith("/dev"):
        place = what
    else:
        os.mkfifo(place)
        # Open before the program begins: a pipe that nobody reads is refused.  What is written fits into it.
        reader = open(os.open(place, os.O_RDONLY | os.O_NONBLOCK), "rb")
    if what == "link to a fifo":
        place = world.tmp / "link"
        place.symlink_to(world.tmp / "pipe")
    done = world.run(name, option, place)
    if what == "/dev/full":
        assert done.status == 1 and "/dev/full: cannot be written: No space left on device" in done.err, str(done)
        assert not world.made.exists() or tool.opens_as_store(world.made), "the store is finished work"
        assert world.made.exists() == (name in ("nc2zarr", "rechunk"))
        return
    done.ok()
    if what != "/dev/null":
        with reader:
            assert is_whole(reader.read().decode(), option)


@pytest.mark.parametrize("name, option", DOCUMENTS)
def test_a_pipe_that_nobody_reads_is_told_at_once(world, name, option):
    place = world.tmp / f"pipe{ending(option)}"
    os.mkfifo(place)
    refused(world.run(name, option, place), 2, place, "no program reads this pipe")
    assert not world.made.exists() and place.is_fifo()


def test_references_in_a_pipe_that_nobody_reads(world):
    os.mkfifo(world.tmp / "pipe")
    done = tool.run("nc2zarr", "-q", "--virtual", "json", world.input("nc2zarr"), world.tmp / "pipe", timeout=300)
    done.fails(2, world.tmp / "pipe", "no program reads this pipe")
    assert (world.tmp / "pipe").is_fifo()


def test_references_do_not_replace_what_a_link_leads_to(world):
    there, link = world.tmp / "other.nc", world.tmp / "refs.json"
    shutil.copy(world.nc, there)
    link.symlink_to(there)
    done = tool.run("nc2zarr", "-q", "--overwrite", "--virtual", "json", world.nc, link, timeout=300)
    done.fails(2, link, there, "is a symbolic link to")
    assert there.read_bytes() == world.nc.read_bytes() and link.is_symlink()


@pytest.mark.parametrize("name, option", [o for o in DOCUMENTS if o[1] != "--plot"])
def test_standard_output_stands_for_where_it_goes(world, name, option):
    with open(world.tmp / "log", "w+") as log:
        log.write("before\n")
        log.flush()
        more = ["-q"] if name != "chunkcalc" else []
        argv = world.run(name, option, "/dev/null", *more).argv
        if world.made.exists():
            shutil.rmtree(world.made)
        argv = ["/dev/stdout" if a == "/dev/null" else a for a in argv]
        assert subprocess.run(argv, stdout=log, stderr=subprocess.DEVNULL).returncode == 0
        log.seek(0)
        first, rest = log.read().split("\n", 1)
        assert first == "before" and is_whole(rest, option)


def test_one_place_for_two(world):
    place = world.tmp / "t.json"
    done = world.run("nc2zarr", "--trace", place, "--certificate", place)
    refused(done, 2, place, "two outputs")


# ---- folders ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]], ids=["", "overwrite"])
@pytest.mark.parametrize("how", ["itself", "link", "in it", "deep in it"])
@pytest.mark.parametrize("name, option", FOLDERS)
def test_no_folder_is_an_input(world, name, option, how, overwrite):
    place = {"itself": world.store, "in it": world.store / "v", "deep in it": world.store / "v" / "a" / "b"}.get(how)
    if how == "link":
        place = world.tmp / "link"
        place.symlink_to(world.store)
    before = world.state()
    if name == "nc2zarr":  # whose input is a folder where that is a store
        done = tool.run(name, *overwrite, option, place, world.store, world.made, timeout=300)
    else:
        done = world.run(name, option, place, *overwrite)
    assert done.status == 2 and str(place) in done.err and done.out == "", str(done)
    assert world.state() == before and not world.made.exists()


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]], ids=["", "overwrite"])
@pytest.mark.parametrize("what", ["folder", "file", "another's summary"])
@pytest.mark.parametrize("option", ["--out", "--cache-dir"])
def test_a_folder_of_someone_else(world, option, what, overwrite):
    place = world.tmp / "home"
    if what == "file":
        place.write_text("mine")
    else:
        (place / "00").mkdir(parents=True)
        (place / ("summary.json" if "summary" in what else "thesis.txt")).write_text('{"schema": "mine"}')
    before = world.state()
    done = world.run("readbench", option, place, *overwrite)
    assert done.status in (1, 2) and str(place) in done.err, str(done)
    assert world.state() == before


@pytest.mark.long(ci=1)
def test_a_report_is_replaced_and_what_is_not_ours_stays(world):
    place, outside = world.tmp / "report", world.tmp / "outside.txt"
    outside.write_text("mine")
    stores = [world.store, world.nc]
    tool.run("readbench", "--sample", "2x2", "--batches", "2", "--step-time", "0ms", "--out", place, "--variable", "v", *stores).ok()
    sessions = [p for p in place.iterdir() if p.is_dir()]
    assert len(sessions) == 2
    (place / "notes.txt").write_text("mine")
    (sessions[0] / "notes.txt").write_text("mine")
    (place / "batches.csv").symlink_to(outside)
    refused(world.run("readbench", "--out", place), 1, place, "--overwrite")
    world.run("readbench", "--out", place, "--overwrite").ok()
    assert len(json.loads((place / "summary.json").read_text())["sessions"]) == 1
    assert (place / "notes.txt").read_text() == (sessions[0] / "notes.txt").read_text() == "mine"
    assert os.listdir(sessions[0]) == ["notes.txt"] and not sessions[1].exists()
    assert outside.read_text() == "mine" and not (place / "batches.csv").is_symlink()


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("program", ["nc2zarr", "rechunk", "chunkcalc", "readbench"])
@pytest.mark.roomy
def test_without_standard_files(program, closed, tmp_path):
    """No file that is opened takes their place: nothing is printed into it, and a lost result is an error."""
    source, out = tmp_path / "in.nc", tmp_path / "out.zarr"
    with netCDF4.Dataset(source, "w") as ds:
        ds.createDimension("x", 100)
        ds.createVariable("v", "f8", ("x",), chunksizes=(10,))[:] = range(100)
    args = {"nc2zarr": [source, out], "rechunk": [source, out], "chunkcalc": [source],
            "readbench": ["--no-out", "--sample", "x=10", source]}[program]
    before = source.read_bytes()
    done = subprocess.run(["sh", "-c", 'exec "$@" ' + " ".join(f"{fd}>&-" for fd in closed), "sh", tool.paths.BUILD / "bin" / program, *args],
                          capture_output=True, text=True)
    assert done.returncode == (1 if 1 in closed else 0), done.stderr
    assert 2 in closed or 1 not in closed or "standard output: the result could not be written" in done.stderr
    assert source.read_bytes() == before
    if out.exists():
        assert tool.run("rechunk", "--digest", out).ok().out.split()[-1:] == tool.run("rechunk", "--digest", source).ok().out.split()[-1:]


# ---- dry runs -------------------------------------------------------------------------------------------


def tree(folder):
    return {str(p.relative_to(folder)): (os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else None)
            for p in folder.rglob("*")}


@pytest.mark.parametrize("option", ["", "--overwrite", "--resume"])
@pytest.mark.parametrize("program", ["nc2zarr", "rechunk"])
def test_a_dry_run_refuses_the_outputs_that_the_run_refuses(world, program, option):
    """With the same words; and it touches nothing."""
    source = world.nc if program == "nc2zarr" else world.store
    there = world.tmp / "there"
    there.mkdir()
    tool.run(program, "-q", source, there / "store.zarr").ok()
    tool.run(program, "-q", "--chunks", "4x4", source, there / "store.zarr.zip").ok()
    (there / "file.zarr").write_text("a file")
    (there / "empty.zarr").mkdir()
    (there / "other.zarr").mkdir()
    (there / "other.zarr" / "text").write_text("a text")
    (there / "taken.zarr" / "v" / "zarr.json").mkdir(parents=True)
    (there / "taken.zarr" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    (there / "link.zarr").symlink_to("nothing")
    (there / "beside.zarr.chunkmill").write_text("a file")
    (there / "begun.zarr").mkdir()
    (there / "begun.zarr.chunkmill").mkdir()
    (there / "begun.zarr.chunkmill" / "journal").write_text("damaged")
    before, work, refused = tree(there), world.tmp / "work", 0
    for name in sorted([p.name for p in there.iterdir()] + ["new.zarr", "file.zarr/x.zarr", "store.zarr::v", "store.zarr::g/w"]):
        if name.endswith(".chunkmill"):
            continue
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(there, work, symlinks=True)
        args = [*([option] if option else []), "-q", source, f"{work}/{name}"]
        dry = tool.run(program, "--dry-run", *args)
        assert tree(work) == before, name
        done = tool.run(program, *args)
        if done.status == 3:  # a difference, which only reading finds
            assert dry.ok()
            continue
        assert (dry.status, dry.err) == (done.status, done.err), name
        refused += done.status != 0
    assert refused >= 5


def test_a_dry_run_of_references_refuses_what_the_run_refuses(world):
    out = world.tmp / "refs.json"
    out.write_text("{}")
    for more in (["--dry-run"], []):
        tool.nc2zarr("--virtual", "json", *more, world.nc, out).fails(1, "refs.json", "--overwrite replaces it")
    assert out.read_text() == "{}"
