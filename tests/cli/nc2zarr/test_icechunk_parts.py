"""Several processes make one commit to a repository: the arrays of one process, and one snapshot."""

import json
import os
import shutil
import subprocess

import netCDF4
import numpy as np
import pytest

from support import icechunk, objects, paths, tool

LAYOUTS = {
    "chunks": ("--chunks", "time=5,lat=6,lon=8"),
    "shards": ("--chunks", "time=5,lat=3,lon=4", "--shards", "time=10,lat=6,lon=8"),
    "default": (),
    "statistics": ("--chunks", "time=5,lat=6,lon=8", "--statistics"),
}
NPARTS = 3


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Chunks that are small, large and all fill; text; a group."""
    path = tmp_path_factory.mktemp("in") / "in.nc"
    rng = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in (("time", 20), ("lat", 12), ("lon", 16)):
            ds.createDimension(d, n)
        data = rng.normal(size=(20, 12, 16)).round(1)
        data[5:10] = 1e20
        ds.createVariable("tas", "f4", ("time", "lat", "lon"), fill_value=1e20)[:] = data
        ds.createVariable("pr", "f8", ("time", "lat", "lon"))[:] = rng.normal(size=(20, 12, 16))
        ds.createVariable("lat", "f8", ("lat",))[:] = np.arange(12)
        ds.createVariable("name", str, ("lat",))[:] = np.array([f"row {i}" for i in range(12)], object)
        ds.createGroup("inner").createVariable("x", "i4", ("lat",))[:] = np.arange(12)
    return path


def part(k, *args, n=NPARTS, program="nc2zarr", **more):
    return tool.run(program, "-q", "--part", f"{k}/{n}", *args, **more)


def digest(place, **more):
    """Digests and names, in the group that PLACE may end with."""
    group = place.partition("::")[2]
    lines = [line.split() for line in tool.run("rechunk", "--digest", place, **more).ok().out.splitlines()]
    return {name.removeprefix(f"{group}/"): what for what, name, *_ in lines}


def unreferred(repo):
    used = set()
    for ident in icechunk.Repo(repo).history():
        snapshot = icechunk.Snapshot(repo, ident)
        used |= {icechunk.letters(i) for i in snapshot.files}
        for node in snapshot.nodes:
            for ref in (snapshot.references(node) if node.is_array else {}).values():
                if not isinstance(ref, bytes):
                    used.add(icechunk.letters(ref[0]))
    return {p.name for f in ("chunks", "manifests") for p in (repo / f).glob("*")} - used


@pytest.mark.parametrize("layout", LAYOUTS)
def test_like_one_process(source, layout, tmp_path):
    repo, one = tmp_path / "repo", tmp_path / "one"
    tool.nc2zarr("-q", *LAYOUTS[layout], source, f"icechunk:{one}").ok()
    for k in (3, 1, 3):
        part(k, *LAYOUTS[layout], source, f"icechunk:{repo}").ok()
        assert not (repo / "repo").exists()
    part(2, *LAYOUTS[layout], source, f"icechunk:{repo}").ok()
    assert digest(f"icechunk:{repo}") == digest(f"icechunk:{one}")
    got, want = (icechunk.Snapshot(r, icechunk.Repo(r).tip()).store() for r in (repo, one))
    for view in (got, want):
        if layout == "statistics":
            counted = view["statistics/zarr.json"] = json.loads(view["statistics/zarr.json"])
            del counted["attributes"]["store"]
    assert got == want
    assert len(icechunk.Repo(repo).history()) == 2 and not unreferred(repo)
    assert sorted(os.listdir(tmp_path / "repo.chunkmill")) == ["complete", "plan"]
    tip = icechunk.Repo(repo).tip()
    part(2, *LAYOUTS[layout], source, f"icechunk:{repo}").ok()
    assert icechunk.Repo(repo).tip() == tip


@pytest.mark.few(2)
@pytest.mark.parametrize("verify", ["none", "sample", "full"])
def test_rechunk(source, verify, tmp_path):
    """Into a group on a branch of a repository that is there, from a repository."""
    repo = tmp_path / "repo"
    tool.nc2zarr("-q", source, f"icechunk:{repo}").ok()
    for k in (2, 1):
        more = ("--verify", verify, "--chunks", "time=full,lat=4,lon=4", "--branch", "dev")
        part(k, *more, source_store(source, tmp_path), f"icechunk:{repo}::series", n=2, program="rechunk").ok()
    assert digest(f"icechunk:{repo}@dev::series") == digest(f"icechunk:{repo}")
    assert icechunk.Repo(repo).tip() != icechunk.Repo(repo).tip("dev")


def test_within_one_repository(source, tmp_path):
    """The commit moves the branch that is read: parts read a snapshot that is named."""
    repo = tmp_path / "repo"
    tool.nc2zarr("-q", source, f"icechunk:{repo}").ok()
    tip = icechunk.letters(icechunk.Repo(repo).tip())
    for place in ("", "@main"):
        part(1, f"icechunk:{repo}{place}", f"icechunk:{repo}::copy", program="rechunk").fails(2, "name the snapshot")
    for k in (3, 2, 1, 2):
        part(k, "--chunks", "tas:5x4x4", f"icechunk:{repo}@{tip}", f"icechunk:{repo}::copy", program="rechunk").ok()
    assert digest(f"icechunk:{repo}@{tip}").items() <= digest(f"icechunk:{repo}::copy").items()


def source_store(source, tmp_path):
    if not (tmp_path / "a.zarr").exists():
        tool.nc2zarr("-q", source, tmp_path / "a.zarr").ok()
    return tmp_path / "a.zarr"


def test_the_next_plan(source, tmp_path):
    """A plan that is complete is in nobody's way; one that is not is refused, or given up with all it wrote."""
    repo = tmp_path / "repo"
    for group in ("", "::a", "::b"):
        for k in (1, 2):
            part(k, source, f"icechunk:{repo}{group}", n=2).ok()
    assert len(icechunk.Repo(repo).history()) == 4
    part(1, source, f"icechunk:{repo}::a", n=2).fails(1, "/a/", "is in the repository already")
    part(1, source, f"icechunk:{repo}::c", n=2).ok()
    assert unreferred(repo)
    other = [source, f"icechunk:{repo}::d"]
    part(1, *other, n=2).fails(1, "the group differs", "not complete", "--break-lock")
    part(1, "--branch", "dev", source, f"icechunk:{repo}::c", n=2).fails(1, "the branch differs")
    part(1, source, f"icechunk:{repo}::c", n=3).fails(1, "2 parts, not in 3")
    tool.nc2zarr("-q", *other).fails(1, "2 parts write into it", "--overwrite")
    tool.nc2zarr("-q", "--append", "time", source, f"icechunk:{repo}::b").fails(1, "2 parts write into it")
    tool.nc2zarr("-q", "--virtual", "icechunk", *other).fails(1, "2 parts write into it")
    part(1, "--overwrite", "--break-lock", *other, n=2).ok()
    assert len(unreferred(repo)) == 1, "those of the part that is done"
    tool.nc2zarr("-q", "--overwrite", *other).ok()
    assert not unreferred(repo) and not os.path.exists(f"{repo}.chunkmill")
    assert digest(f"icechunk:{repo}::d") == digest(f"icechunk:{repo}::b")


def test_overwrite(source, tmp_path):
    repo = tmp_path / "repo"
    tool.nc2zarr("-q", "--dtype", "pr:f4", source, f"icechunk:{repo}").ok()
    old = icechunk.Repo(repo).tip()
    part(1, source, f"icechunk:{repo}").fails(1, "already", "--overwrite")
    for k in range(1, NPARTS + 1):
        assert icechunk.Repo(repo).tip() == old
        part(k, "--overwrite", source, f"icechunk:{repo}").ok()
    tool.nc2zarr("-q", source, f"icechunk:{tmp_path / 'one'}").ok()
    assert digest(f"icechunk:{repo}") == digest(f"icechunk:{tmp_path / 'one'}")
    assert icechunk.Repo(repo).history()[1] == old
    # Once more is nothing more, and a repository that was made anew is another.
    tip = icechunk.Repo(repo).tip()
    part(1, "--overwrite", source, f"icechunk:{repo}").ok()
    assert icechunk.Repo(repo).tip() == tip
    for k in range(1, NPARTS + 1):
        part(k, "--overwrite", "--break-lock", source, f"icechunk:{repo}").ok()
    assert icechunk.Repo(repo).history()[1] == tip
    assert digest(f"icechunk:{repo}") == digest(f"icechunk:{tmp_path / 'one'}")
    shutil.rmtree(repo)
    for k in range(1, NPARTS + 1):
        part(k, source, f"icechunk:{repo}").ok()
    assert digest(f"icechunk:{repo}") == digest(f"icechunk:{tmp_path / 'one'}")


def test_chunks_that_are_collected(source, tmp_path):
    """Icechunk's garbage collection removes what nothing refers to: the part whose chunks it was is made again."""
    repo, options = tmp_path / "repo", ("--chunks", "time=5,lat=6,lon=8", "--object-size", "4KiB", source)
    tool.nc2zarr("-q", source, f"icechunk:{repo}::old").ok()
    there = set((repo / "chunks").iterdir())
    part(1, *options, f"icechunk:{repo}").ok()
    first = sorted(set((repo / "chunks").iterdir()) - there)
    part(2, *options, f"icechunk:{repo}").ok()
    tip = icechunk.Repo(repo).tip()
    for path in first[::2]:
        path.unlink()
    part(3, *options, f"icechunk:{repo}").fails(1, "part 1 made", "run part 1 again")
    assert icechunk.Repo(repo).tip() == tip
    status = json.loads(tool.nc2zarr("--json", "--parts-status", f"icechunk:{repo}").ok().out)
    assert {p["number"]: p["state"] for p in status["parts"]} == {1: "missing", 2: "done", 3: "done"}
    part(1, *options, f"icechunk:{repo}").ok()
    tool.nc2zarr("-q", *options, f"icechunk:{tmp_path / 'one'}").ok()
    assert digest(f"icechunk:{tmp_path / 'one'}").items() <= digest(f"icechunk:{repo}").items()
    assert not unreferred(repo)


@pytest.mark.every
@pytest.mark.parametrize("what", ["cut", "changed", "absent"])
def test_damaged_places(source, what, tmp_path):
    repo, places = tmp_path / "repo", tmp_path / "repo.chunkmill" / "part-1.places"
    for k in (1, 2):
        part(k, source, f"icechunk:{repo}").ok()
    data = places.read_bytes()
    if what == "absent":
        places.unlink()
    else:
        places.write_bytes(data[:-9] if what == "cut" else data[:40] + bytes([data[40] ^ 1]) + data[41:])
    part(3, source, f"icechunk:{repo}").fails(1, "run part 1 again")
    assert not (repo / "repo").exists()
    part(1, source, f"icechunk:{repo}").ok()
    tool.nc2zarr("-q", source, f"icechunk:{tmp_path / 'one'}").ok()
    assert digest(f"icechunk:{repo}") == digest(f"icechunk:{tmp_path / 'one'}")


def test_refused(source, tmp_path):
    repo = f"icechunk:{tmp_path / 'repo'}"
    part(1, "--report", tmp_path / "r.html", source, repo).fails(2, "--report")
    part(1, "--virtual", "icechunk", source, repo).fails(2, "--part")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a").write_text("somebody's")
    part(1, source, f"icechunk:{tmp_path / 'other'}").fails(1, "is not an Icechunk repository")
    assert [p.name for p in (tmp_path / "other").iterdir()] == ["a"]
    tool.nc2zarr("--dry-run", "--part", "1/2", source, repo).ok()
    assert not (tmp_path / "repo").exists()


def test_all_at_once(source, tmp_path):
    """And each of them twice."""
    repo = tmp_path / "repo"
    argv = [[tool.program("nc2zarr"), "-q", "--part", f"{k}/4", str(source), f"icechunk:{repo}"] for k in (1, 2, 3, 4) * 2]
    running = [subprocess.Popen(a, env=tool.environment({}), stderr=subprocess.PIPE, text=True) for a in argv]
    for child in running:
        err = child.communicate(timeout=300)[1]
        assert child.returncode == 0, err
    tool.nc2zarr("-q", source, f"icechunk:{tmp_path / 'one'}").ok()
    assert digest(f"icechunk:{repo}") == digest(f"icechunk:{tmp_path / 'one'}")
    assert len(icechunk.Repo(repo).history()) == 2 and not unreferred(repo)


# ---- in a bucket ----------------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_a_bucket(source, layout, tmp_path):
    server = objects.Server()
    env, repo = server.environment(), "icechunk:s3://bucket/r"
    try:
        tool.nc2zarr("-q", *LAYOUTS[layout], source, f"icechunk:{tmp_path / 'one'}").ok()
        for k in (3, 1, 3):
            part(k, *LAYOUTS[layout], source, repo, env=env).ok()
            assert "r/repo" not in server.objects
        tool.nc2zarr("-q", source, repo, env=env).fails(1, "3 parts write into it")
        status = json.loads(tool.nc2zarr("--json", "--parts-status", repo, env=env).ok().out)
        assert {p["number"]: p["state"] for p in status["parts"]} == {1: "done", 2: "missing", 3: "done"}
        part(2, *LAYOUTS[layout], source, repo, env=env).ok()
        assert digest(repo, env=env) == digest(f"icechunk:{tmp_path / 'one'}")
        assert server.keys("r.chunkmill") == ["r.chunkmill/complete", "r.chunkmill/plan"]
        part(2, *LAYOUTS[layout], source, repo, env=env).ok()
        # Somebody removes chunks of a part that is done.
        for k in (1, 2):
            part(k, *LAYOUTS[layout], source, f"{repo}::again", env=env).ok()
        for key in set(server.keys("r/chunks")) - {f"r/chunks/{name}" for name in referred(server, tmp_path)}:
            del server.objects[key]
        part(3, *LAYOUTS[layout], source, f"{repo}::again", env=env).fails(1, "run part 1-2 again")
        for k in (1, 2):
            part(k, *LAYOUTS[layout], source, f"{repo}::again", env=env).ok()
        assert digest(f"{repo}::again", env=env) == digest(f"icechunk:{tmp_path / 'one'}")
    finally:
        server.close()


def referred(server, tmp_path):
    folder = server.get_folder("r", tmp_path / "fetched")
    return {p.name for p in (folder / "chunks").iterdir()} - unreferred(folder)


@pytest.mark.few
@pytest.mark.parametrize("number", [NPARTS, 1])
@pytest.mark.parametrize("layout", ["chunks", "shards", "statistics"])
def test_killed_in_a_bucket(source, layout, number, tmp_path):
    """At requests that write, of the first part and of the last, which the server has done or not."""
    server = objects.Server()
    env, repo = server.environment(), "icechunk:s3://bucket/r"
    options = ("--verify", "none", "--object-size", "4KiB", *LAYOUTS[layout])
    numbers = [k for k in range(1, NPARTS + 1) if k < number]
    try:
        tool.nc2zarr("-q", "--verify", "none", source, f"{repo}::old", env=env).ok()
        template = dict(server.objects)
        want = None
        for nth, done in [(None, None), *((n, n % 2 == 0) for n in spread(40, paths.tries(2, 24, 40)))]:
            server.objects.clear()
            server.objects.update(template)
            server.uploads.clear()
            for k in numbers:
                part(k, *options, source, repo, env=env).ok()
            begun = digest(repo, env=env)
            command = ("-q", "-j", "1", "--part", f"{number}/{NPARTS}", *options, source, repo)
            if nth is not None:
                objects.kill_at(server, nth, done, *command)
                assert digest(repo, env=env) in (begun, want), nth
            for k in (*numbers, *range(number, NPARTS + 1)):
                part(k, *options, source, repo, env=env).ok()
            got = digest(repo, env=env)
            want = want or got
            assert got == want and got.items() >= begun.items() and "pr" in got, nth
            assert server.keys("r.chunkmill") == ["r.chunkmill/complete", "r.chunkmill/plan"], nth
            assert template.keys() <= server.objects.keys(), nth
            history = icechunk.Repo(server.get_folder("r", tmp_path / f"got{nth}")).history()
            assert len(history) == 3, nth
    finally:
        server.close()


def spread(count, most):
    return sorted({1 + i * (count - 1) // max(most - 1, 1) for i in range(min(most, count))})
