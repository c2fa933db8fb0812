"""A repository grows by commits as a store does by appends, and every older snapshot stays what it was."""

import json
import os
import shutil

import netCDF4
import numpy as np
import pytest

from support import icechunk, paths, tool


def make(path, first, n, seed, fill=None):
    with netCDF4.Dataset(path, "w") as nc:
        for name, start, size in (("time", first, n), ("y", 0, 24), ("x", 0, 20)):
            nc.createDimension(name, size)
            nc.createVariable(name, "f8", (name,))[:] = np.arange(size) + start
        v = nc.createVariable("v", "f4", ("time", "y", "x"), zlib=True, chunksizes=(1, 24, 20), fill_value=-1)
        v[:] = np.random.default_rng(seed).normal(size=(n, 24, 20))
        if fill is not None:
            v[fill] = -1
        nc.createVariable("name", str, ("time",))[:] = np.array([f"step {first + i}" for i in range(n)], dtype=object)
        nc.createVariable("fixed", "i2", ("y",))[:] = np.arange(24)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Steps 0 to 6, 6 to 11 and 11 to 15, and 3 to 7 with other values, of which some are missing."""
    folder = tmp_path_factory.mktemp("in")
    return [
        make(folder / "a.nc", 0, 6, 0),
        make(folder / "b.nc", 6, 5, 1),
        make(folder / "c.nc", 11, 4, 2),
        make(folder / "new.nc", 3, 4, 3, fill=slice(0, 4)),
    ]


def digest(place):
    return tool.run("rechunk", "--digest", place).ok().out


def snapshots(repo):
    return {i: icechunk.Snapshot(repo, i).store() for i in icechunk.Repo(repo).history()}


def chunk_files(repo, ident):
    snapshot = icechunk.Snapshot(repo, ident)
    refs = [r for n in snapshot.nodes if n.is_array for r in snapshot.references(n).values()]
    return {r[0] for r in refs if not isinstance(r, bytes)}


LAYOUTS = {
    "a chunk across the end": ["--chunks", "v:4x12x20"],
    "shards": ["--chunks", "v:2x12x20", "--shards", "v:4x24x20"],
    "whole chunks": ["--chunks", "v:1x12x20"],
    "no compression": ["--chunks", "v:4x12x20", "--codec", "none"],
}


@pytest.mark.parametrize("layout", list(LAYOUTS)[: paths.tries(2, 4, 4)])
def test_as_a_store_does(files, layout, tmp_path):
    repo, store = tmp_path / "repo", tmp_path / "store.zarr"
    a, b, c, new = files
    steps = [[*LAYOUTS[layout], a], ["--append", "time", b], ["--append", "time", c], ["--replace", "time=3:7", new]]
    seen = {}
    for step in steps:
        tool.nc2zarr("-q", "--object-size", "4KiB", *step, f"icechunk:{repo}").ok()
        tool.nc2zarr("-q", *step, store).ok()
        assert digest(f"icechunk:{repo}") == digest(store)
        now = snapshots(repo)
        assert {i: now[i] for i in seen} == seen, "an older snapshot is another"
        assert len(now) == max(len(seen) + 1, 2)
        seen = now
    assert not os.path.exists(f"{repo}.chunkmill")


def test_what_stays(files, tmp_path):
    """Chunks that no step touches keep their files, arrays their ids, and what is as it was its manifest."""
    repo = tmp_path / "repo"
    tool.nc2zarr("-q", "--object-size", "4KiB", "--chunks", "v:1x12x20", files[0], f"icechunk:{repo}").ok()
    first = icechunk.Snapshot(repo, icechunk.Repo(repo).tip())
    tool.nc2zarr("-q", "--append", "time", files[1], f"icechunk:{repo}").ok()
    second = icechunk.Snapshot(repo, icechunk.Repo(repo).tip())
    assert chunk_files(repo, icechunk.Repo(repo).history()[1]) < chunk_files(repo, icechunk.Repo(repo).tip())
    was, now = ({n.path: n for n in s.nodes} for s in (first, second))
    assert {p: n.ident for p, n in was.items()} == {p: n.ident for p, n in now.items()}
    assert now["/fixed"].manifests == was["/fixed"].manifests != now["/v"].manifests
    assert second.new_arrays == [] and now["/v"].ident in second.updated and now["/fixed"].ident not in second.updated
    assert min(second.updated[now["/v"].ident]) == (6, 0, 0)


def test_rechunk_adds(files, tmp_path):
    repo, store = f"icechunk:{tmp_path / 'repo'}", tmp_path / "more.zarr"
    tool.nc2zarr("-q", files[0], repo).ok()
    tool.nc2zarr("-q", *files[:2], store).ok()
    tool.run("rechunk", "-q", "--append", "time", store, repo).ok()
    assert digest(repo) == digest(store)


def test_a_group(files, tmp_path):
    """One grows, or is replaced in part, and all that lies elsewhere stays; it is read by its name."""
    repo, store, copy = tmp_path / "repo", tmp_path / "store.zarr", tmp_path / "copy.zarr"
    a, b, _, new = files
    for target in (f"icechunk:{repo}", f"icechunk:{repo}::deep/er", store):
        tool.nc2zarr("-q", "--chunks", "v:4x12x20", a, target).ok()
    before = icechunk.read(repo)
    for step in (["--append", "time", b], ["--replace", "time=3:7", new]):
        for target in (f"icechunk:{repo}::deep/er", store):
            tool.nc2zarr("-q", *step, target).ok()
    now = icechunk.read(repo)
    assert {k: v for k, v in now.items() if not k.startswith("deep/er/")} == {k: v for k, v in before.items() if not k.startswith("deep/er/")}
    tool.run("rechunk", "-q", f"icechunk:{repo}::deep/er", copy).ok()
    assert digest(copy) == digest(store)


def test_nothing_new(files, tmp_path):
    """No commit is made of it; nor by a dry run."""
    repo = tmp_path / "repo"
    tool.nc2zarr("-q", files[0], f"icechunk:{repo}").ok()
    before = sorted(repo.rglob("*"))
    assert "Nothing is to be added" in tool.nc2zarr("--append", "time", files[0], f"icechunk:{repo}").ok().out
    tool.nc2zarr("--append", "time", "--dry-run", files[1], f"icechunk:{repo}").ok()
    assert "Nothing is to be replaced" in tool.nc2zarr("--replace", "time=0:6", files[0], f"icechunk:{repo}").ok().out
    tool.nc2zarr("-q", "--verify", "full", "--replace", "time=0:6", files[0], f"icechunk:{repo}").ok()
    assert sorted(repo.rglob("*")) == before and not os.path.exists(f"{repo}.chunkmill")


def test_a_branch(files, tmp_path):
    """One that is new begins at the tip of main, which stays."""
    repo = tmp_path / "repo"
    tool.nc2zarr("-q", files[0], f"icechunk:{repo}").ok()
    main = icechunk.Repo(repo).tip()
    tool.nc2zarr("-q", "--branch", "dev", "--message", "more", "--append", "time", files[1], f"icechunk:{repo}").ok()
    there = icechunk.Repo(repo)
    assert there.tip() == main and there.history("dev")[1] == main
    assert icechunk.Snapshot(repo, there.tip("dev")).message == "more"
    tool.nc2zarr("-q", "--branch", "dev", "--append", "time", files[2], f"icechunk:{repo}").ok()
    assert len(icechunk.Repo(repo).history("dev")) == 4


def test_refusals(files, tmp_path):
    repo = tmp_path / "repo"
    target = f"icechunk:{repo}"
    tool.nc2zarr("--append", "time", files[1], target).fails(1, "there is no store to add to")
    repo.mkdir()
    tool.nc2zarr("--append", "time", files[1], target).fails(1, "is not an Icechunk repository")
    repo.rmdir()
    tool.nc2zarr("-q", files[0], target).ok()
    tool.nc2zarr("--append", "time", files[1], f"{target}::g").fails(1, "g: no such folder")
    tool.nc2zarr("--append", "time", files[1], repo).fails(2, "name it icechunk:")
    assert tool.nc2zarr("--append", "y", files[1], target).status == 4
    assert not os.path.exists(f"{repo}.chunkmill")


def test_chunks_of_a_run_that_was_stopped(files, tmp_path):
    """An append takes no other run's chunks away, and whoever comes takes away those of an append."""
    from support import failio

    root, state, template = tmp_path / "work", tmp_path / "state", tmp_path / "template"
    repo = f"icechunk:{root / 'repo'}"
    template.mkdir()
    tool.nc2zarr("-q", files[0], f"icechunk:{template / 'repo'}").ok()
    stopped = {"write": ["-q", files[0], f"{repo}::g"], "append": ["-q", "--append", "time", files[1], repo]}
    for first, second in (("write", "append"), ("append", "write")):
        failio.renew(template, root)
        count = failio.inject("nc2zarr", *stopped[first], root=root, state=state).counts["rename"]
        failio.renew(template, root)
        failio.inject("nc2zarr", *stopped[first], root=root, state=state, kind="rename", nth=count - 2, way="kill")
        assert (root / "repo.chunkmill" / "icechunk").exists()
        other = tool.nc2zarr(*stopped[second])
        if first == "write":
            other.fails(1, "holds chunks of a run with other options")
            other = tool.nc2zarr(*stopped[first])
        other.ok()
        assert not (root / "repo.chunkmill").exists()
    shutil.rmtree(root)


def test_statistics_are_of_what_is_there(files, tmp_path):
    """They go with the first commit that changes arrays, and are no variables that files would lack."""
    repo = tmp_path / "repo"
    tool.nc2zarr("-q", "--statistics", files[0], f"icechunk:{repo}").ok()
    tool.nc2zarr("-q", "--append", "time", files[1], f"icechunk:{repo}").ok()
    now, before, _ = (icechunk.Snapshot(repo, i).store() for i in icechunk.Repo(repo).history())
    assert "statistics/v/mean/c" in before and not [k for k in now if k.startswith("statistics")]


def test_a_page(files, tmp_path):
    page = tmp_path / "page.html"
    tool.nc2zarr("-q", "--report", page, files[0], f"icechunk:{tmp_path / 'repo'}").ok()
    assert page.read_text().lower().startswith("<!doctype html>")


# ---- what must not be lost -------------------------------------------------------------------------------


def titled(path, title, *variables):
    with netCDF4.Dataset(path, "w") as nc:
        if title:
            nc.title = title
        nc.createDimension("x", 4)
        for name in variables:
            nc.createVariable(name, "f8", ("x",))[:] = np.arange(4)
    return path


def test_verification_sees_what_stays(files, tmp_path):
    """Arrays and steps of which nothing is written lie in the snapshot before."""
    repo = f"icechunk:{tmp_path / 'repo'}"
    a, b, _, new = files
    tool.nc2zarr("-q", a, repo).ok()
    tool.nc2zarr("-q", "--verify", "full", "--append", "time", b, repo).ok()
    tool.nc2zarr("-q", "--verify", "full", "--append", "time", b, repo).ok()  # nothing is new
    tool.nc2zarr("-q", "--verify", "full", "--replace", "time=3:7", new, repo).ok()


@pytest.mark.every
@pytest.mark.parametrize("option, words", [(("--message", os.fsdecode(b"\xff")), "UTF-8"), (("--message", ""), "is empty"), (("--branch", os.fsdecode(b"\xff")), "UTF-8"),
                                           (("--branch", ""), "is empty"), (("--branch", "tag:v"), "cannot be told"), (("--branch", "a@b"), "cannot be told")])  # fmt: skip
def test_texts_that_readers_refuse(files, option, words, tmp_path):
    """A byte that is no UTF-8 would make the whole history unreadable."""
    repo = f"icechunk:{tmp_path / 'repo'}"
    tool.nc2zarr("-q", files[0], repo).ok()
    before = digest(repo)
    for command in (("--append", "time", files[1], repo), (files[0], f"{repo}::g")):
        tool.nc2zarr(*option, *command).fails(2, option[0], words)
    assert digest(repo) == before


def test_attributes_of_groups_above_stay(tmp_path):
    repo = f"icechunk:{tmp_path / 'repo'}"
    tool.nc2zarr("-q", titled(tmp_path / "a.nc", "important", "v"), repo).ok()
    for _ in range(2):
        tool.nc2zarr("-q", "--overwrite", titled(tmp_path / "b.nc", None, "w"), f"{repo}::g").ok()
    assert json.loads(icechunk.read(tmp_path / "repo")["zarr.json"])["attributes"] == {"title": "important"}


def test_statistics_beside_arrays_of_that_name(tmp_path):
    """Refused before anything is written: a name that is both would be one of the two by chance."""
    repo, own = f"icechunk:{tmp_path / 'repo'}", titled(tmp_path / "own.nc", None, "statistics/mymean")
    for name in ("statistics", "statistics/v/mean"):
        tool.nc2zarr("--statistics", titled(tmp_path / "in.nc", None, "v", name), repo).fails(2, name, "--exclude")
    assert not (tmp_path / "repo").exists()
    tool.nc2zarr("-q", own, repo).ok()
    tool.nc2zarr("--statistics", titled(tmp_path / "v.nc", None, "v"), repo).fails(1, "/statistics", "was not made by --statistics")
    tool.nc2zarr("-q", titled(tmp_path / "v.nc", None, "v"), repo).ok()
    tool.nc2zarr("-q", "--overwrite", titled(tmp_path / "v.nc", None, "v"), repo).ok()
    assert "statistics/mymean" in digest(repo)


def test_options_that_a_comparison_does_not_use(files, tmp_path):
    repo = f"icechunk:{tmp_path / 'repo'}"
    tool.nc2zarr("-q", files[0], repo).ok()
    for option in ("--branch", "--message"):
        tool.nc2zarr("--check", option, "other", files[0], repo).fails(2, option, "--check")
    tool.nc2zarr("--virtual", "icechunk", "--verify", "full", files[0], f"{repo}-2").fails(2, "--verify full", "--check")


# ---- statistics elsewhere ---------------------------------------------------------------------------------


def groups_counted(repo):
    return sorted(k.removesuffix("/zarr.json") for k in icechunk.Snapshot(repo, icechunk.Repo(repo).tip()).store() if k.endswith("statistics/zarr.json"))


@pytest.mark.parametrize("how", ["append", "replace", "overwrite"])
def test_statistics_of_groups_above_and_below(files, how, tmp_path):
    """Statistics that tell of an array that changes go; others stay."""
    repo, top = tmp_path / "repo", tmp_path / "top.zarr"
    tool.nc2zarr("-q", files[0], f"{top}").ok()
    tool.nc2zarr("-q", files[0], f"{top}::sub").ok()
    tool.run("rechunk", "-q", "--statistics", top, f"icechunk:{repo}").ok()
    tool.run("rechunk", "-q", "--statistics", top, f"icechunk:{repo}::deep").ok()
    tool.nc2zarr("-q", "--statistics", files[0], f"icechunk:{repo}::other").ok()
    assert groups_counted(repo) == ["deep/statistics", "other/statistics", "statistics"]
    more = {"append": ["--append", "time", files[1]], "replace": ["--replace", "time=3:7", files[3]], "overwrite": ["--overwrite", files[0]]}[how]
    if how == "replace":
        tool.nc2zarr("-q", "--append", "time", files[1], f"icechunk:{repo}::other").ok()
        tool.nc2zarr("-q", "--append", "time", files[1], f"icechunk:{repo}::sub").ok()
        assert groups_counted(repo) == ["deep/statistics"]
        tool.nc2zarr("-q", "--append", "time", files[1], f"icechunk:{repo}::deep/sub").ok()
        assert groups_counted(repo) == []
        return
    tool.nc2zarr("-q", *more, f"icechunk:{repo}::sub").ok()
    assert groups_counted(repo) == ["deep/statistics", "other/statistics"]
    if how == "append":  # the whole repository: of its groups
        shutil.rmtree(repo)
        tool.run("rechunk", "-q", top, f"icechunk:{repo}").ok()
        tool.run("rechunk", "-q", "--statistics", f"icechunk:{repo}@{icechunk.letters(icechunk.Repo(repo).tip())}::sub", f"icechunk:{repo}::sub", "--overwrite").ok()
        assert groups_counted(repo) == ["sub/statistics"]
        tool.nc2zarr("-q", "--append", "time", join_with_group(files[1], tmp_path / "both.nc"), f"icechunk:{repo}").ok()
        assert groups_counted(repo) == []


def join_with_group(source, path):
    """The file, and itself once more as its group sub."""
    with netCDF4.Dataset(source) as nc, netCDF4.Dataset(path, "w") as out:
        for group in (out, out.createGroup("sub")):
            for name, dim in nc.dimensions.items():
                group.createDimension(name, len(dim))
            for name, v in nc.variables.items():
                group.createVariable(name, v.dtype, v.dimensions, fill_value=getattr(v, "_FillValue", None))[:] = v[:]
    return path


@pytest.mark.parametrize("more", [["--subset", "time=0:3"], ["--keepbits", "v:20"], ["--dtype", "v:float64"], []])
def test_statistics_that_are_taken_along(files, more, tmp_path):
    """But not where they are of other elements than those that are stored."""
    repo, copy = tmp_path / "repo", tmp_path / "copy"
    tool.nc2zarr("-q", "--statistics", files[0], f"icechunk:{repo}").ok()
    done = tool.run("rechunk", *more, f"icechunk:{repo}", f"icechunk:{copy}").ok()
    assert groups_counted(copy) == ([] if more else ["statistics"])
    assert ("statistics of what the source stores" in done.out + done.err) == bool(more), str(done)
    tool.run("rechunk", "-q", *more, f"icechunk:{repo}", tmp_path / "copy.zarr").ok()
    assert (tmp_path / "copy.zarr" / "statistics").exists() == (not more)
    if more:
        tool.run("rechunk", "-q", "--statistics", *more, f"icechunk:{repo}", f"icechunk:{tmp_path / 'again'}").ok()
        assert groups_counted(tmp_path / "again") == ["statistics"]


@pytest.mark.every
@pytest.mark.parametrize("version", ["dev", "tag:v1"])
def test_versions_are_for_reading(files, version, tmp_path):
    repo = tmp_path / "repo"
    tool.nc2zarr("-q", files[0], f"icechunk:{repo}").ok()
    for more in (["--append", "time"], ["--replace", "time=3:7"], [], ["--part", "1/2"], ["--virtual", "icechunk"]):
        tool.nc2zarr("-q", *more, files[1], f"icechunk:{repo}@{version}").fails(2, "is for reading", "--branch", f"icechunk:{repo},")
        assert not os.path.exists(f"{repo}@{version}")
    # A folder of that name wins.
    tool.nc2zarr("-q", files[0], tmp_path / "x.zarr").ok()
    os.mkdir(f"{repo}@{version}")
    tool.nc2zarr("-q", files[0], f"icechunk:{repo}@{version}").ok()


def test_shards_that_are_chosen(tmp_path):
    """Without shards a repository has no file for each chunk."""
    with netCDF4.Dataset(tmp_path / "many.nc", "w") as nc:
        nc.createDimension("x", 10001)
        nc.createVariable("v", "u1", ("x",))[:] = np.arange(10001) % 7
    for place, says in ((f"icechunk:{tmp_path / 'repo'}", "lists each in manifests"), (tmp_path / "a.zarr", "makes a file of each")):
        done = tool.nc2zarr("--chunks", "v:1", tmp_path / "many.nc", place).ok()
        assert f"shards of about 256 MiB; --shards none {says}" in " ".join((done.out + done.err).split())
