"""nc2zarr and rechunk into Icechunk repositories, read back by an oracle of our own (support/icechunk.py)."""

import json
import os
import shutil

import numpy as np
import pytest

from support import icechunk, nc_equals_zarr, paths, tool

NC2ZARR, RECHUNK = "nc2zarr", "rechunk"


def run(program, *argv, **more):
    return tool.run(program, *argv, **more)


@pytest.fixture
def source(tmp_path):
    """A file with two variables, a group, and small and large chunks."""
    import netCDF4

    path = tmp_path / "in.nc"
    with netCDF4.Dataset(path, "w") as nc:
        nc.title = "a file"
        for name, n in (("time", 12), ("y", 40), ("x", 50)):
            nc.createDimension(name, n)
            nc.createVariable(name, "f8", (name,))[:] = np.arange(n) * 1.5
        tas = nc.createVariable("tas", "f4", ("time", "y", "x"), chunksizes=(2, 20, 25))
        tas[:] = np.random.default_rng(1).normal(size=(12, 40, 50))
        tas.units = "K"
        group = nc.createGroup("g")
        group.createVariable("n", "i4", ("x",))[:] = np.arange(50)
        nc.createVariable("one", "i2", ())[:] = 7
    return path


def differences(nc, repo, tmp_path, branch="main"):
    folder = tmp_path / "unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    icechunk.unpack(repo, folder, branch)
    return nc_equals_zarr.differences(nc, folder)


@pytest.mark.parametrize("nc", paths.shared_files("netcdf", "hdf5"))
def test_shared_files(nc, tmp_path):
    repo = tmp_path / "repo"
    made = run(NC2ZARR, "--verify", "full", nc, f"icechunk:{repo}")
    if made.status != 0:  # as into a store
        assert run(NC2ZARR, "--verify", "full", nc, tmp_path / "store.zarr").status == made.status
        assert not repo.exists() and not os.path.exists(f"{repo}.chunkmill")
        return
    assert differences(nc, repo, tmp_path) == []
    assert not os.path.exists(f"{repo}.chunkmill")


def test_chunks_are_packed(source, tmp_path):
    repo = tmp_path / "repo"
    run(NC2ZARR, "-j", "4", "--codec", "none", "--chunks", "tas:1x10x25", "--object-size", "10KiB", source, f"icechunk:{repo}").ok()
    snapshot = icechunk.Snapshot(repo, icechunk.Repo(repo).tip())
    (tas,) = [n for n in snapshot.nodes if n.path == "/tas"]
    refs = snapshot.references(tas)
    assert len(refs) == 12 * 4 * 2
    files = {ref[0] for ref in refs.values()}
    assert 96 // 10 <= len(files) <= 96 // 10 + 4
    assert all(length == 1000 for _, _, length in refs.values())
    assert all(os.path.getsize(repo / "chunks" / icechunk.letters(f)) <= 10 << 10 for f in files)
    (one,) = [n for n in snapshot.nodes if n.path == "/one"]
    assert isinstance(snapshot.references(one)[()], bytes)
    assert snapshot.updated[tas.ident] == sorted(refs)
    assert differences(source, repo, tmp_path) == []


def test_a_second_commit(source, tmp_path):
    repo = tmp_path / "repo"
    run(NC2ZARR, "--message", "first", source, f"icechunk:{repo}").ok()
    first = icechunk.Repo(repo).tip()
    run(NC2ZARR, source, f"icechunk:{repo}").fails(1, "/g/n: is in the repository already", "--overwrite")
    assert icechunk.Repo(repo).tip() == first
    run(NC2ZARR, "--message", "below", source, f"icechunk:{repo}::a/b").ok()
    second = icechunk.Repo(repo)
    assert second.history()[1] == first and len(second.history()) == 3
    paths_there = [n.path for n in icechunk.Snapshot(repo, second.tip()).nodes]
    assert {"/", "/a", "/a/b", "/a/b/tas", "/a/b/g/n", "/tas"} <= set(paths_there)
    run(NC2ZARR, "--overwrite", "--variable", "tas", source, f"icechunk:{repo}").ok()
    assert len(icechunk.Repo(repo).history()) == 4
    assert differences(source, repo, tmp_path) != []  # it has /a besides
    # The old snapshot is whole, and as it was.
    old = icechunk.Snapshot(repo, first)
    assert old.message == "first"
    old.store()


def test_branches(source, tmp_path):
    repo = tmp_path / "repo"
    run(NC2ZARR, "--branch", "dev", source, f"icechunk:{repo}").ok()
    there = icechunk.Repo(repo)
    assert len(there.history("main")) == 1 and len(there.history("dev")) == 2
    assert differences(source, repo, tmp_path, "dev") == []
    run(NC2ZARR, source, f"icechunk:{repo}").ok()
    there = icechunk.Repo(repo)
    assert len(there.history("main")) == 2 and len(there.history("dev")) == 2
    assert differences(source, repo, tmp_path) == []


@pytest.mark.parametrize("what", ["a file", "foreign", "version 1", "a Zarr store"])
def test_what_is_not_ours(source, tmp_path, what):
    repo = tmp_path / "repo"
    if what == "a file":
        repo.write_text("mine")
    elif what == "foreign":
        (repo / "chunks").mkdir(parents=True)
        (repo / "notes.txt").write_text("mine")
    elif what == "version 1":
        (repo / "refs" / "branch.main").mkdir(parents=True)
        (repo / "refs" / "branch.main" / "ref.json").write_text("{}")
    else:
        run(NC2ZARR, source, repo).ok()
    before = sorted(repo.rglob("*")) if repo.is_dir() else repo.read_text()
    for more in ([], ["--overwrite"], ["--resume"]):
        run(NC2ZARR, *more, source, f"icechunk:{repo}").fails(1, str(repo))
        assert (sorted(repo.rglob("*")) if repo.is_dir() else repo.read_text()) == before
        assert not os.path.exists(f"{repo}.chunkmill")


def test_options_of_a_repository_alone(source, tmp_path):
    for option in (["--branch", "b"], ["--message", "m"], ["--object-size", "1MiB"]):
        run(NC2ZARR, *option, source, tmp_path / "out.zarr").fails(2, "icechunk:PATH")
    repo = f"icechunk:{tmp_path / 'repo'}"
    run(NC2ZARR, "--zarr-format", "2", source, repo).fails(2, "Zarr format 3")
    assert not (tmp_path / "repo").exists()


def test_rechunk_into_a_repository(source, tmp_path):
    store, repo = tmp_path / "a.zarr", tmp_path / "repo"
    for version in ("2", "3"):
        shutil.rmtree(store, ignore_errors=True)
        shutil.rmtree(repo, ignore_errors=True)
        run(NC2ZARR, "--zarr-format", version, source, store).ok()
        run(RECHUNK, "--chunks", "tas:12x5x5", store, f"icechunk:{repo}").ok()
        assert differences(source, repo, tmp_path) == []
        run(RECHUNK, "--shards", "tas:12x20x25", "--chunks", "tas:12x5x5", "--overwrite", store, f"icechunk:{repo}").ok()
        assert differences(source, repo, tmp_path) == []


def test_dry_run_touches_nothing(source, tmp_path):
    run(NC2ZARR, "--dry-run", source, f"icechunk:{tmp_path / 'repo'}").ok()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.nc"]


def test_what_the_commit_says(source, tmp_path):
    repo = tmp_path / "repo"
    run(NC2ZARR, "--message", "état", source, f"icechunk:{repo}").ok()
    snapshot = icechunk.Snapshot(repo, icechunk.Repo(repo).tip())
    assert snapshot.message == "état"
    assert json.loads(snapshot.nodes[0].document)["attributes"] == {"title": "a file"}
    assert "consolidated_metadata" not in json.loads(snapshot.nodes[0].document)


# ---- references ----------------------------------------------------------------------------------------


def chunked(path, first=0, n=4, seed=0, zlib=True):
    import netCDF4

    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("time", None)
        nc.createDimension("y", 64)
        nc.createDimension("x", 80)
        time = nc.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        time[:] = np.arange(first, first + n)
        for name, size in (("y", 64), ("x", 80)):
            nc.createVariable(name, "f4", (name,))[:] = np.arange(size)
        v = nc.createVariable("v", "f4", ("time", "y", "x"), zlib=zlib, chunksizes=(1, 16, 40), fill_value=-1)
        values = np.random.default_rng(seed).normal(size=(n, 64, 80)).astype("f4")
        values[0, :16] = -1
        v[:] = values
    return path, values


def opened(repo, tmp_path, branch="main"):
    import zarr

    folder = tmp_path / "unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    icechunk.unpack(repo, folder, branch)
    return zarr.open_group(folder, mode="r")


def places(repo, path="/v"):
    snapshot = icechunk.Snapshot(repo, icechunk.Repo(repo).tip())
    (node,) = [n for n in snapshot.nodes if n.path == path]
    refs = snapshot.references(node)
    assert snapshot.updated[node.ident] == sorted(refs)
    return refs


@pytest.mark.parametrize("name", ["in.nc", "with blank.nc", "100%41.nc", "caf\u00e9#?.nc"])
def test_references_to_a_file(tmp_path, name):
    nc, values = chunked(tmp_path / name)
    repo = tmp_path / "repo"
    run(NC2ZARR, "--virtual", "icechunk", nc, f"icechunk:{repo}").ok()
    refs = places(repo)
    assert len(refs) == 4 * 4 * 2
    modified = {ref[3] for ref in refs.values()}
    assert modified == {-(-os.stat(nc).st_mtime_ns // 10**9)}
    (url,) = {ref[0] for ref in refs.values()}
    assert url.startswith("file:///") and not set(url) & set(" #?\u00e9")
    if "%" not in url:
        assert np.array_equal(opened(repo, tmp_path)["v"][:], values)


def test_references_to_many_files(tmp_path):
    parts = [chunked(tmp_path / f"{i}.nc", first=3 * i, n=3, seed=i) for i in range(5)]
    repo = tmp_path / "repo"
    run(NC2ZARR, "--virtual", "icechunk", *[p for p, _ in parts], f"icechunk:{repo}").ok()
    group = opened(repo, tmp_path)
    assert np.array_equal(group["v"][:], np.concatenate([v for _, v in parts]))
    assert np.array_equal(group["time"][:], np.arange(15))
    assert len({ref[0] for ref in places(repo).values()}) == 5
    assert run(NC2ZARR, "--virtual", "icechunk", parts[0][0], f"icechunk:{repo}").status == 1
    run(NC2ZARR, "--virtual", "icechunk", "--overwrite", parts[0][0], f"icechunk:{repo}").ok()
    assert np.array_equal(opened(repo, tmp_path)["v"][:], parts[0][1])


def test_references_to_tiles(tmp_path):
    """Files that share no whole rows of the grid: numbers of chunks of a file are not in a row."""
    import netCDF4

    whole = np.random.default_rng(3).normal(size=(2, 96, 80)).astype("f4")
    files = []
    for a in range(3):
        for b in range(2):
            path = tmp_path / f"tile_{a}_{b}.nc"
            with netCDF4.Dataset(path, "w") as nc:
                for name, start, n in (("t", 0, 2), ("y", 32 * a, 32), ("x", 40 * b, 40)):
                    nc.createDimension(name, n)
                    nc.createVariable(name, "f8", (name,))[:] = np.arange(start, start + n)
                v = nc.createVariable("v", "f4", ("t", "y", "x"), zlib=True, chunksizes=(1, 16, 20))
                v[:] = whole[:, 32 * a : 32 * a + 32, 40 * b : 40 * b + 40]
            files.append(path)
    repo = tmp_path / "repo"
    done = run(NC2ZARR, "--virtual", "icechunk", *files, f"icechunk:{repo}")
    if done.status != 0:
        pytest.fail(str(done))
    assert len(places(repo)) == 2 * 6 * 4 and len({ref[0] for ref in places(repo).values()}) == 6
    assert np.array_equal(opened(repo, tmp_path)["v"][:], whole)


def test_references_by_url(tmp_path):
    nc, _ = chunked(tmp_path / "in.nc")
    repo = tmp_path / "repo"
    run(NC2ZARR, "--virtual", "icechunk", "--base-url", "s3://bucket/era5", nc, f"icechunk:{repo}").ok()
    assert {(ref[0], ref[3]) for ref in places(repo).values()} == {("s3://bucket/era5/in.nc", 0)}


def test_references_are_committed_to_repositories(tmp_path):
    nc, _ = chunked(tmp_path / "in.nc")
    run(NC2ZARR, "--virtual", "icechunk", nc, tmp_path / "out.json").fails(2, "icechunk:PATH")
    run(NC2ZARR, "--virtual", "icechunk", "--dry-run", nc, f"icechunk:{tmp_path / 'repo'}").ok()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.nc"]


def test_names_that_look_like_chunks(tmp_path):
    """'c' is where the key of a chunk begins, and may be a name, too."""
    import netCDF4

    nc, repo = tmp_path / "in.nc", tmp_path / "repo"
    with netCDF4.Dataset(nc, "w") as f:
        f.createDimension("x", 6)
        f.createVariable("c", "i4", ("x",), chunksizes=(2,))[:] = np.arange(6)
        group = f.createGroup("g").createGroup("c")
        group.createVariable("c", "i4", ("x",), chunksizes=(3,))[:] = np.arange(6) + 10
        group.createVariable("1", "i4", ())[...] = 5
        f.createVariable("cc", "i4", ("x",))[:] = 7
    run(NC2ZARR, "--chunks", "source", nc, f"icechunk:{repo}").ok()
    assert differences(nc, repo, tmp_path) == []


def test_small_arrays_share_a_manifest(source, tmp_path):
    repo = tmp_path / "repo"
    run(NC2ZARR, "--chunks", "tas:1x1x25", source, f"icechunk:{repo}").ok()  # 960 chunks
    assert len(list((repo / "manifests").iterdir())) == 1
    run(NC2ZARR, "--chunks", "tas:1x1x10", "--overwrite", source, f"icechunk:{repo}").ok()  # 2400
    assert len(icechunk.Snapshot(repo, icechunk.Repo(repo).tip()).files) == 2
    assert differences(source, repo, tmp_path) == []


def test_texts_that_are_not_utf8(source, tmp_path):
    """Readers would refuse the whole repository: what is typed is refused, and a path in the command repaired."""
    repo = f"icechunk:{tmp_path / 'repo'}"
    bad = os.fsdecode(b"a\xff")
    run(NC2ZARR, "--branch", bad, source, repo).fails(2, "--branch: is not UTF-8")
    run(NC2ZARR, "--branch", "", source, repo).fails(2, "--branch: is empty")
    run(NC2ZARR, "--message", bad, source, repo).fails(2, "--message: is not UTF-8")
    run(NC2ZARR, source, f"{repo}::{bad}").fails(2, "is not UTF-8")
    assert not (tmp_path / "repo").exists()
    odd = tmp_path / os.fsdecode(b"in\xff.nc")
    shutil.copy(source, odd)
    run(NC2ZARR, odd, repo).ok()
    assert "in\\xff.nc" in icechunk.Snapshot(tmp_path / "repo", icechunk.Repo(tmp_path / "repo").tip()).message


def test_any_snapshot_is_compared(source, tmp_path):
    """By its id, a branch or a group of it, after others came; the certificate names the snapshot, which is the one."""
    repo, paper = tmp_path / "repo", tmp_path / "paper.json"
    run(NC2ZARR, "-q", source, f"icechunk:{repo}").ok()
    first = icechunk.letters(icechunk.Repo(repo).tip())
    run(NC2ZARR, "-q", "--subset", "time=0:3", "--overwrite", source, f"icechunk:{repo}").ok()
    run(NC2ZARR, "-q", "--branch", "dev", source, f"icechunk:{repo}::deep/er").ok()
    for place, status in ((f"@{first}", 0), ("", 3), ("@main", 3), ("@dev::deep/er", 0)):
        done = run(NC2ZARR, "-q", "--check", "--certificate", paper, source, f"icechunk:{repo}{place}")
        assert done.status == status, (place, str(done))
        made = json.loads(paper.read_text())
        assert made["reproducible"] == (status == 0)
        there = icechunk.Repo(repo)
        want = first if first in place else icechunk.letters(there.tip("dev" if "dev" in place else "main"))
        assert made["snapshot"] == want
    run(NC2ZARR, "--check", source, f"icechunk:{repo}@nowhere").fails(1, "has no branch nowhere")


def test_what_is_proven_of_a_commit(source, tmp_path):
    """Digests stand in its metadata, which the specification stores in FlexBuffers, and the certificate is of the snapshot."""
    repo, paper = tmp_path / "repo", tmp_path / "paper.json"
    more = ["--verify", "full", "--statistics", "--certificate", paper]
    run(NC2ZARR, "-q", *more, source, f"icechunk:{repo}::g").ok()
    made, tip = json.loads(paper.read_text()), icechunk.Repo(repo).tip()
    assert made["snapshot"] == icechunk.letters(tip) and made["reproducible"]
    digests = {v["array"]: v["digest"] for v in made["variables"]}
    snapshot = icechunk.flatbuffer(repo / "snapshots" / icechunk.letters(tip), icechunk.SNAPSHOT)
    assert len(digests) == 6 and all(d.encode() in snapshot for d in digests.values())
    lines = run(RECHUNK, "--digest", f"icechunk:{repo}").ok().out.splitlines()
    assert {f"{d}  g/{name}" for name, d in digests.items()} <= {" ".join(x.split()[:2]).replace(" ", "  ") for x in lines}


@pytest.mark.parametrize("n", [50, 21])
def test_an_array_that_stays_with_another_length_is_told(source, tmp_path, n):
    """Nodes that are replaced are those of the run: xarray would not open the group with what is left."""
    import netCDF4

    with netCDF4.Dataset(tmp_path / "new.nc", "w") as nc:
        nc.createDimension("x", n)
        nc.createVariable("tas", "f4", ("x",))[:] = np.arange(n)
    repo = tmp_path / "repo"
    run(NC2ZARR, source, f"icechunk:{repo}").ok()
    done = run(NC2ZARR, "--overwrite", tmp_path / "new.nc", f"icechunk:{repo}").ok()
    told = "/x: stays in the repository with 50 elements along x, of which /tas has 21"
    assert (told in done.err) == (n == 21), done.err
