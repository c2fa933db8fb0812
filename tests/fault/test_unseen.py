"""A failed look is not taken for absence: at inputs, sources, stores of parts, locks, folders of others."""

import itertools
import shutil

import netCDF4
import numpy as np
import pytest
import zarr

from support import failio, icechunk, paths, rechunked, tool


def make_file(path, first):
    path.parent.mkdir(parents=True, exist_ok=True)
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", None)
        ds.createVariable("time", "f8", ("time",))[:] = first + np.arange(2)
        ds.variables["time"].units = "days since 2000-01-01"
        ds.createVariable("t", "f4", ("time",))[:] = first + np.arange(2)


def make_files(root):
    """Two folders of two files each."""
    for k in range(4):
        make_file(root / "in" / f"{k // 2}" / f"{k}.nc", 2 * k)
    return root


@pytest.fixture
def folders(tmp_path):
    return make_files(tmp_path / "root")


@pytest.mark.few
@pytest.mark.parametrize("pattern", ["in", "in/*", "in/*/*.nc"])
def test_no_input_is_left_out(folders, tmp_path, pattern):
    """Each look at a file or folder of the inputs fails, once or for good: all of them are in the store, or there is none."""
    whole, out = tmp_path / "whole.zarr", tmp_path / "out.zarr"
    tool.nc2zarr("-q", folders / pattern, whole).ok()
    run = lambda nth, way: failio.inject("nc2zarr", "-q", folders / pattern, out, root=folders, state=tmp_path / "state",
                                         kind="stat", nth=nth, way=way)  # fmt: skip
    count = run(0, "EIO").counts["stat"]
    assert count >= 6
    for nth, way in itertools.product(failio.spread(count, paths.tries(12, 60, 60)), ["EIO", "EACCES+"]):
        shutil.rmtree(out, ignore_errors=True)
        done = run(nth, way).done
        assert tool.opens_as_store(out) if done.status == 0 else done.err.strip(), (nth, way)
        if tool.opens_as_store(out):
            assert rechunked.digests(out) == rechunked.digests(whole), (nth, way)


def test_a_folder_that_may_not_be_entered(as_nobody):
    """Listed, but not to be entered: its files are findings, and those of others alone make no store."""
    folder, run = as_nobody
    make_files(folder)
    (folder / "in" / "1").chmod(0o644)
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    out = folder / "open" / "out.zarr"
    done = run("nc2zarr", "-q", folder / "in", out)
    assert done.status == 4 and "1/2.nc" in done.err and "Permission" in done.err, done.err
    assert not out.exists()


def make_store(path):
    a = zarr.create_array(str(path), shape=(6, 50), chunks=(2, 50), dtype="f4", compressors=None)
    a[...] = np.random.default_rng(3).random((6, 50), "f4")
    return path


def test_the_source_is_not_overwritten(tmp_path):
    """Whichever look at it fails: a store that is source and target stays as it is."""
    root = tmp_path / "root"
    root.mkdir()
    source = make_store(root / "a.zarr")
    before = failio.contents(source)
    run = lambda nth: failio.inject("rechunk", "-q", "--overwrite", source, source, root=root, state=tmp_path / "state", kind="stat", nth=nth)
    count = run(0).counts["stat"]
    assert count > 0
    for nth in range(1, count + 1):
        assert run(nth).done.status != 0
        assert failio.contents(source) == before, nth


def test_chunks_that_cannot_be_listed_are_not_taken_for_new(as_nobody):
    """Old chunks in a folder that may not be listed would be values of the array that overwrites theirs."""
    folder, run = as_nobody
    zeros, out = folder / "zeros.zarr", folder / "root" / "out.zarr"
    for path, value in (out, 1), (zeros, 0):
        zarr.create_array(str(path), shape=(6,), chunks=(2,), dtype="f4")[:] = value
    for path in (out.parent, *out.parent.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    (out / "c").chmod(0o333)
    done = run("rechunk", "-q", "--overwrite", zeros, out)
    (out / "c").chmod(0o777)
    assert done.status != 0 and "c: cannot open this folder" in done.err, done.err
    run("rechunk", "-q", "--overwrite", zeros, out).ok()
    assert not zarr.open_array(str(out))[:].any()


@pytest.mark.parametrize("way", ["EIO", "ESTALE+"])
def test_a_store_of_parts_is_not_taken_for_removed(folders, tmp_path, way):
    """A part that is done again, while the store cannot be looked at, erases nothing."""
    root = tmp_path / "parts"
    root.mkdir()
    out = root / "out.zarr"
    part = lambda k, nth, more=(): failio.inject("nc2zarr", "-q", *more, "--part", f"{k}/2", folders / "in", out, root=out,
                                                 state=tmp_path / "state", kind="stat", nth=nth, way=way)  # fmt: skip
    part(1, 0).done.ok()
    part(2, 0).done.ok()
    before = failio.contents(out)
    count = part(1, 0, ["--overwrite"]).counts["stat"]
    for nth in range(1, count + 1):
        part(1, nth, ["--overwrite"])
        assert failio.contents(out) == before, nth


@pytest.mark.parametrize("kind", ["open", "read"])
def test_a_commit_of_parts_that_is_gone(folders, tmp_path, kind):
    """In place of the repository that parts made stands another: a part that cannot read it is not done."""
    repo, kept = tmp_path / "parts" / "repo", tmp_path / "kept"
    repo.parent.mkdir()
    part = lambda k, nth: failio.inject("nc2zarr", "-q", "--part", f"{k}/2", folders / "in", f"icechunk:{repo}", root=repo,
                                        state=tmp_path / "state", kind=kind, nth=nth)  # fmt: skip
    part(1, 0).done.ok()
    part(2, 0).done.ok()
    shutil.rmtree(repo)
    other = make_store(tmp_path / "a.zarr")
    tool.run("rechunk", "-q", other, f"icechunk:{repo}::other").ok()
    shutil.copytree(repo.parent, kept)
    count = part(1, 0).counts[kind]
    assert count > 0
    for nth in failio.spread(count, paths.tries(8, 40, 40)):
        shutil.rmtree(repo.parent)
        shutil.copytree(kept, repo.parent)
        if part(1, nth).done.status == 0:
            part(2, 0).done.ok()
            assert set(icechunk.Snapshot(repo, icechunk.Repo(repo).tip()).store()) > {"t/zarr.json", "time/zarr.json"}, nth


def test_a_lock_that_its_holder_cannot_look_at_is_given_back(folders, tmp_path):
    """Its own lock is nobody else's, for whom it would wait for ever."""
    root = tmp_path / "parts"
    root.mkdir()
    out, lock = root / "out.zarr", root / "out.zarr.chunkmill"
    part = lambda k, nth: failio.inject("nc2zarr", "-q", "--part", f"{k}/2", folders / "in", out, root=lock, timeout=120,
                                        state=tmp_path / "state", kind="stat", nth=nth)  # fmt: skip
    count = 0
    for nth in itertools.count():
        shutil.rmtree(root)
        root.mkdir()
        tool.nc2zarr("-q", "--part", "1/2", folders / "in", out).ok()
        outcome = part(2, nth)
        count = count or outcome.counts["stat"]
        if outcome.done.status != 0:  # then it goes on when it is run again
            tool.nc2zarr("-q", "--part", "2/2", folders / "in", out, timeout=120).ok()
        assert tool.opens_as_store(out), nth
        if nth == min(count, paths.tries(20, 80, 80)):
            break


@pytest.mark.parametrize("kind", ["stat", "list"])
def test_a_foreign_file_in_a_cache_folder(tmp_path, kind):
    """A folder that holds somebody's `state`, or notes, is no cache, whichever look at it fails."""
    store = make_store(tmp_path / "a.zarr")
    root = tmp_path / "cache"
    root.mkdir()
    (root / "state").write_text("mine")
    (root / "notes.txt").write_text("mine, too")
    run = lambda nth: failio.inject("readbench", "-q", "--no-out", "--batch", "1", "--batches", "2", "--sample", "2x50", "--cache-dir", root,
                                    store, root=root, state=tmp_path / "state", kind=kind, nth=nth)  # fmt: skip
    count = run(0).counts[kind]
    for nth in range(1, count + 1):
        assert run(nth).done.status != 0
        assert failio.contents(root) == {"state": b"mine", "notes.txt": b"mine, too"}, nth


@pytest.mark.parametrize("inside", ["", "g/deep"])
def test_chunks_behind_a_link_to_nothing(tmp_path, inside):
    """A disk that is not mounted: no chunk is known to be absent, so that no fill value stands for it."""
    root = tmp_path / "s.zarr"
    zarr.create_group(str(root))
    make_store(root / (inside or "a"))
    chunks, name = root / (inside or "a") / "c", inside or "a"
    chunks.rename(tmp_path / "disk")
    chunks.symlink_to(tmp_path / "disk")
    want = rechunked.digests(root)
    (tmp_path / "disk").rename(tmp_path / "unmounted")
    for command in (["rechunk", root, tmp_path / "o.zarr"], ["rechunk", "--digest", root],
                    ["readbench", "--no-out", "--batch", "1", "--batches", "2", "--sample", "2x50", f"{root}::{name}"]):  # fmt: skip
        tool.run(*command).fails(1, f"{name}/c: is a link to nothing")
    (tmp_path / "unmounted").rename(tmp_path / "disk")
    assert rechunked.digests(root) == want


def test_no_array_is_dropped_from_consolidated_metadata(tmp_path):
    """An array whose folder is a link that cannot be looked at: `--consolidate` says so."""
    root = tmp_path / "root"
    zarr.create_group(str(root / "g.zarr"))
    make_store(root / "elsewhere")
    make_store(root / "g.zarr" / "here")
    (root / "g.zarr" / "linked").symlink_to(root / "elsewhere")
    run = lambda nth: failio.inject("nc2zarr", "--consolidate", root / "g.zarr", root=root, state=tmp_path / "state", kind="stat", nth=nth)
    outcome = run(0)
    outcome.done.ok()
    whole = (root / "g.zarr" / "zarr.json").read_bytes()
    assert b'"linked"' in whole
    for nth in range(1, outcome.counts["stat"] + 1):
        run(nth)
        assert b'"linked"' in (root / "g.zarr" / "zarr.json").read_bytes(), nth
