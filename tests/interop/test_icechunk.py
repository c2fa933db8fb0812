"""Repositories of ours, used by icechunk-python: read through zarr and xarray, collected, committed to.

icechunk 2 needs Python 3.12 or later: CHUNKMILL_ICECHUNK_PYTHON names an interpreter that has icechunk, zarr, xarray
and netCDF4."""

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from archive import files as F
from golden.families import FAMILIES
from support import icechunk, nc_equals_zarr, objects, paths, repositories, stores, tool
from support.repositories import outside

PYTHON = os.environ.get("CHUNKMILL_ICECHUNK_PYTHON")
PEER = Path(__file__).with_name("icechunk_peer.py")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="CHUNKMILL_ICECHUNK_PYTHON names no interpreter with icechunk 2")


def peer(*argv):
    done = subprocess.run([PYTHON, str(PEER), *map(str, argv)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def start(*argv):
    return subprocess.Popen([PYTHON, str(PEER), *map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def make(path, name="v", n=6, seed=0, first=0, **storage):
    import netCDF4

    with netCDF4.Dataset(path, "w") as nc:
        for dim, size in (("time", n), ("y", 48), ("x", 40)):
            nc.createDimension(dim, size)
        nc.createVariable("time", "f8", ("time",))[:] = np.arange(first, first + n)
        v = nc.createVariable(name, "f4", ("time", "y", "x"), **({"zlib": True, "chunksizes": (1, 24, 20)} | storage))
        v[:] = np.random.default_rng(seed).normal(size=(n, 48, 40))
    return path


@pytest.mark.parametrize("how", [[], ["--virtual", "icechunk"], ["--chunks", "auto:8KiB", "--shards", "auto:64KiB"]])
@pytest.mark.parametrize("nc", paths.shared_files("netcdf", "hdf5"))
def test_shared_files(nc, how, tmp_path):
    repo, folder = tmp_path / "repo", tmp_path / "read"
    if tool.run("nc2zarr", "-q", *how, nc, f"icechunk:{repo}").status != 0:
        return
    peer("unpack", repo, "main", folder)
    assert nc_equals_zarr.differences(nc, folder) == []


@pytest.mark.parametrize("how", [[], ["--virtual", "icechunk"]], ids=["written", "referred to"])
@pytest.mark.parametrize("name", FAMILIES)
def test_families(name, how, tmp_path):
    """Icechunk reads of an archive the elements of the store that is made of it."""
    family, source, store, repo, folder = FAMILIES[name], *(tmp_path / k for k in ("in", "out.zarr", "repo", "read"))
    source.mkdir()
    F.write_all(family.files, source)
    if family.more:
        family.more(source)
    inputs = sorted(source.iterdir()) if any("." not in f.name for f in family.files) else [source]
    options = ("-q", *family.options, *inputs)
    plain, made = tool.nc2zarr(*options, store), tool.nc2zarr(*how, *options, f"icechunk:{repo}")
    if plain.status != 0 or how and made.status != 0:  # undecided; or nothing that references can say
        assert (plain.status == made.status or "references" in made.err) and not repo.exists(), str(made)
        return
    peer("unpack", made.ok() and repo, "main", folder)
    assert stores.digests(folder) == stores.digests(store)


def test_through_xarray(tmp_path):
    nc, repo = make(tmp_path / "in.nc"), tmp_path / "repo"
    for how in ([], ["--virtual", "icechunk", "--overwrite"]):
        shutil.rmtree(repo, ignore_errors=True)
        tool.run("nc2zarr", "-q", *how, nc, f"icechunk:{repo}").ok()
        assert peer("xarray", repo, "main", nc) == ""


def test_the_line_that_opens_it(tmp_path):
    """Pasted as it is printed it warns of nothing, and chunks in other files are read."""
    first, more, repo = make(tmp_path / "in.nc"), make(tmp_path / "more.nc", first=6), tmp_path / "repo"
    for run in (["--virtual", "icechunk", first], ["--append", "time", more]):
        done = tool.run("nc2zarr", *run, f"icechunk:{repo}").ok()
        line = next(line for line in done.out.splitlines() if "python3 -c" in line)
        program = shlex.split(line)[2].replace("; print(", "; opened = (") + "; opened.load()"
        read = subprocess.run([PYTHON, "-W", "error::DeprecationWarning:__main__", "-c", program], capture_output=True, text=True)
        assert read.returncode == 0 and "DEPRECATED" not in read.stdout + read.stderr, read


def test_its_garbage_collection(tmp_path):
    """Of all that is old, it removes what nothing refers to, and nothing else."""
    nc, repo = make(tmp_path / "in.nc"), tmp_path / "repo"
    tool.run("nc2zarr", "-q", "--object-size", "8KiB", nc, f"icechunk:{repo}").ok()
    tool.run("nc2zarr", "-q", "--overwrite", "--chunks", "v:6x24x40", nc, f"icechunk:{repo}").ok()
    stray = repo / "chunks" / "0123456789ABCDEFGHJ0"
    stray.write_bytes(b"nobody's")
    history = icechunk.Repo(repo).history()
    before = [icechunk.Snapshot(repo, i).store() for i in history]
    peer("collect", repo)
    assert not stray.exists()
    assert [icechunk.Snapshot(repo, i).store() for i in history] == before
    assert peer("xarray", repo, "main", nc) == ""


def test_commits_in_turn(tmp_path):
    """Its commit on ours, and ours on its."""
    nc, repo = make(tmp_path / "in.nc"), tmp_path / "repo"
    tool.run("nc2zarr", "-q", nc, f"icechunk:{repo}").ok()
    peer("commit", repo, "main", "theirs", 2)
    tool.run("nc2zarr", "-q", make(tmp_path / "w.nc", "w"), f"icechunk:{repo}::below").ok()
    peer("commit", repo, "main", "again", 1)
    there = icechunk.Repo(repo)
    nodes = {n.path for n in icechunk.Snapshot(repo, there.tip()).nodes}
    assert {"/v", "/theirs0", "/theirs1", "/below/w", "/again0"} <= nodes
    assert len(there.history()) == 6
    peer("read", repo, "main")


# ---- repositories that grow ------------------------------------------------------------------------------


def join(path, *files):
    """The files as one, along time."""
    import netCDF4

    with netCDF4.Dataset(path, "w") as out:
        for nc in (netCDF4.Dataset(f) for f in files):
            at = len(out.dimensions["time"]) if out.dimensions else 0
            for name, dim in nc.dimensions.items() if at == 0 else ():
                out.createDimension(name, None if name == "time" else len(dim))
            for name, v in nc.variables.items():
                there = out.variables.get(name) or out.createVariable(name, v.dtype, v.dimensions)
                if v.dimensions[0] == "time":
                    there[at:] = v[:]
            nc.close()
    return path


@pytest.mark.parametrize("split", [0, 1, 3, "ours"])
def test_growing_in_turn(split, tmp_path):
    """Both add to one repository, whose manifests are its or ours, and replace steps; its collection takes nothing away."""
    a, b, c, d, new = (
        make(tmp_path / f"{i}.nc", n=n, seed=i, first=first) for i, (first, n) in enumerate([(0, 6), (6, 5), (11, 5), (16, 3), (4, 9)])
    )
    repo = tmp_path / "repo"
    if split == "ours":
        tool.run("nc2zarr", "-q", "--object-size", "16KiB", "--chunks", "v:4x24x20", a, f"icechunk:{repo}").ok()
    else:
        peer("create", repo, a, split)
    steps = [
        (lambda: tool.run("nc2zarr", "-q", "--append", "time", b, f"icechunk:{repo}").ok(), (a, b)),
        (lambda: peer("append", repo, "main", c, "time"), (a, b, c)),
        (lambda: tool.run("nc2zarr", "-q", "--append", "time", d, f"icechunk:{repo}").ok(), (a, b, c, d)),
    ]
    for i, (step, files) in enumerate(steps):
        step()
        assert peer("xarray", repo, "main", join(tmp_path / f"all{i}.nc", *files)) == ""
    tool.run("nc2zarr", "-q", "--replace", "time=4:13", new, f"icechunk:{repo}").ok()
    history = icechunk.Repo(repo).history()
    before = [icechunk.Snapshot(repo, i).store() for i in history]
    peer("collect", repo)
    assert [icechunk.Snapshot(repo, i).store() for i in history] == before
    peer("read", repo, "main")
    unpacked = tmp_path / "read"
    peer("unpack", repo, "main", unpacked)
    assert tool.run("rechunk", "--digest", unpacked).ok().out == tool.run("rechunk", "--digest", f"icechunk:{repo}").ok().out


def test_references_in_turn(tmp_path):
    """A repository of references grows by references and by converted steps, between icechunk's own commits."""
    folder, repo = tmp_path / "in", tmp_path / "repo"
    folder.mkdir()
    files = [make(folder / f"{i}.nc", n=n, seed=i, first=first) for i, (first, n) in enumerate([(0, 6), (6, 5), (11, 5), (16, 3), (19, 4), (23, 3)])]
    refer = ["-q", "--virtual", "icechunk"]
    tool.run("nc2zarr", *refer, files[0], f"icechunk:{repo}").ok()
    steps = [
        lambda: tool.run("nc2zarr", *refer, "--append", "time", files[1], f"icechunk:{repo}").ok(),
        lambda: peer("append", repo, "main", files[2], "time"),
        lambda: tool.run("nc2zarr", *refer, "--append", "time", *files[:4], "--allow", folder, f"icechunk:{repo}").ok(),
        lambda: tool.run("nc2zarr", "-q", "--append", "time", files[4], f"icechunk:{repo}").ok(),
    ]
    for i, step in enumerate(steps):
        step()
        peer("collect", repo)
        assert peer("xarray", repo, "main", join(tmp_path / f"all{i}.nc", *files[: i + 2])) == ""
    refs = references_of(repo)
    assert {os.path.basename(r[0]) for r in refs if isinstance(r[0], str)} == {"0.nc", "1.nc", "3.nc"}
    tool.run("nc2zarr", "--check", "--allow", folder, *files[:5], f"icechunk:{repo}").ok()
    peer("commit", repo, "main", "theirs", 1)
    tool.run("nc2zarr", *refer, "--append", "time", files[5], f"icechunk:{repo}").ok()
    peer("unpack", repo, "main", tmp_path / "read")
    tool.run("nc2zarr", "-q", *files, tmp_path / "store.zarr").ok()
    got, want = (dict(x.split()[1::-1] for x in digest(p).splitlines()) for p in (tmp_path / "read", tmp_path / "store.zarr"))
    assert {"theirs0"} == got.keys() - want.keys() and {k: got[k] for k in want} == want


def test_references_with_compressed_locations(tmp_path):
    """icechunk may compress locations: chunks that stay are referred to as before."""
    folder, repo = tmp_path / "in", tmp_path / "repo"
    folder.mkdir()
    files = [make(folder / f"a-rather-long-name-of-a-file-{i}.nc", n=5, seed=i, first=5 * i) for i in range(5)]
    tool.run("nc2zarr", "-q", "--virtual", "icechunk", *files[:3], f"icechunk:{repo}").ok()
    peer("compress", repo)
    with pytest.raises((AttributeError, TypeError, AssertionError)):
        assert all(isinstance(r[0], str) for r in references_of(repo))
    tool.run("nc2zarr", "-q", "--virtual", "icechunk", "--append", "time", *files[2:], f"icechunk:{repo}").ok()
    assert len({r[0] for r in references_of(repo)}) == 5
    assert peer("xarray", repo, "main", join(tmp_path / "all.nc", *files)) == ""


def test_references_of_theirs(tmp_path):
    """A repository of references that icechunk made grows by ours; containers that have names are known by their prefix."""
    folder, repo = tmp_path / "in", tmp_path / "repo"
    folder.mkdir()
    files = [make(folder / f"{i}.nc", n=6, seed=i, first=6 * i, zlib=False, chunksizes=(1, 48, 40)) for i in range(3)]
    peer("refer", repo, files[0], folder)
    for new in files[1:]:
        tool.run("nc2zarr", "-q", "--virtual", "icechunk", "--append", "time", new, f"icechunk:{repo}").ok()
    assert {r[0] for r in references_of(repo)} == {"vcc://files/0.nc", *(f"file://{f}" for f in files)}
    assert peer("xarray", repo, "main", join(tmp_path / "all.nc", *files)) == ""
    tool.run("nc2zarr", "-q", *files, tmp_path / "store.zarr").ok()
    assert digest(f"icechunk:{repo}", "--allow", folder) == digest(tmp_path / "store.zarr")


def references_of(repo):
    snapshot = icechunk.Snapshot(repo, icechunk.Repo(repo).tip())
    return [r for n in snapshot.nodes if n.path == "/v" for r in snapshot.references(n).values()]


def test_theirs_are_read(tmp_path):
    """Every version of a repository that the installed icechunk makes, virtual chunks included."""
    made = tmp_path / "made"
    done = subprocess.run([PYTHON, repositories.FOLDER / "make.py", made], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    repo, versions = repositories.unpack("made", tmp_path / "repo", tmp_path)
    server = objects.Server()
    for i in range(outside.N):
        server.objects[outside.key(i)] = (outside.data(i), outside.etag(i))
    try:
        for version, rows in versions.items():
            said = tool.run("rechunk", "--digest", "--allow", outside.PREFIX, f"icechunk:{repo}{version}", env=server.environment()).ok().out
            assert [line.split() for line in said.splitlines()] == rows, version
    finally:
        server.close()


def parts(n, *argv):
    """All N parts at once."""
    running = [
        subprocess.Popen([tool.program("nc2zarr"), "-q", "--part", f"{k}/{n}", *map(str, argv)], stderr=subprocess.PIPE, text=True) for k in range(1, n + 1)
    ]
    for child in running:
        _, err = child.communicate(timeout=600)
        assert child.returncode == 0, err[-2000:]


@pytest.mark.parametrize("how", [["--chunks", "v:1x24x20"], ["--chunks", "v:2x12x10", "--shards", "v:2x24x20"], ["--chunks", "v:1x24x20", "--statistics"]])
def test_parts(how, tmp_path):
    """Equal through xarray; its commits in between stay, and its collection removes nothing that is referred to."""
    nc, repo = make(tmp_path / "in.nc"), tmp_path / "repo"
    parts(3, *how, nc, f"icechunk:{repo}")
    assert peer("xarray", repo, "main", nc) == ""
    tool.run("nc2zarr", "-q", "--part", "1/2", *how, nc, f"icechunk:{repo}::below").ok()
    peer("commit", repo, "main", "theirs", 2)
    tool.run("nc2zarr", "-q", "--part", "2/2", *how, nc, f"icechunk:{repo}::below").ok()
    assert {"theirs0", "theirs1", "below/v", "v"} <= set(peer("names", repo, "main").split())
    peer("collect", repo)
    peer("read", repo, "main")
    # Chunks of parts that are done are of nobody yet.
    tool.run("nc2zarr", "-q", "--part", "1/2", *how, nc, f"icechunk:{repo}::again").ok()
    peer("collect", repo)
    tool.run("nc2zarr", "-q", "--part", "2/2", *how, nc, f"icechunk:{repo}::again").fails(1, "run part 1 again")
    tool.run("nc2zarr", "-q", "--part", "1/2", *how, nc, f"icechunk:{repo}::again").ok()
    peer("collect", repo)
    peer("read", repo, "main")
    assert int(peer("length", repo, "main")) == 6


@pytest.mark.parametrize("shards", [[], ["--shards", "v:8x24x40"]], ids=["chunks", "shards"])
def test_parts_that_grow(shards, tmp_path):
    """Its commit of another array in between stays; both read what parts added and replaced, and its collection takes
    none of it."""
    a, b, c, new = (make(tmp_path / f"{i}.nc", n=n, seed=i, first=first) for i, (first, n) in enumerate([(0, 6), (6, 5), (11, 5), (4, 9)]))
    repo = tmp_path / "repo"
    tool.run("nc2zarr", "-q", "--chunks", "v:4x24x20", *shards, a, f"icechunk:{repo}").ok()
    parts(3, "--append", "time", b, c, f"icechunk:{repo}")
    assert peer("xarray", repo, "main", join(tmp_path / "abc.nc", a, b, c)) == ""
    replace = ("--replace", "time=4:13", new, f"icechunk:{repo}")
    tool.run("nc2zarr", "-q", "--part", "2/3", *replace).ok()
    peer("commit", repo, "main", "theirs", 2)
    for k in (1, 3):
        tool.run("nc2zarr", "-q", "--part", f"{k}/3", *replace).ok()
    peer("collect", repo)
    assert {"theirs0", "theirs1", "v", "time"} == set(peer("names", repo, "main").split())
    assert int(peer("length", repo, "main")) == 6
    peer("read", repo, "main")
    store = tmp_path / "store.zarr"
    tool.run("nc2zarr", "-q", "--chunks", "v:4x24x20", *shards, a, b, c, store).ok()
    tool.run("nc2zarr", "-q", "--replace", "time=4:13", new, store).ok()
    want, got = ({tuple(x.split()) for x in digest(p).splitlines()} for p in (store, f"icechunk:{repo}"))
    assert want < got


# ---- in a bucket: both commit by conditional requests ---------------------------------------------------


@pytest.fixture(scope="module")
def bucket():
    """The environment of a bucket of moto, where that interpreter has it."""
    import urllib.request

    from support.daemons import free_ports

    if subprocess.run([PYTHON, "-c", "import moto.server"], capture_output=True).returncode != 0:
        pytest.skip("that interpreter has no moto")
    port = free_ports(1)
    server = subprocess.Popen([PYTHON, "-m", "moto.server", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    env = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }
    make_it = urllib.request.Request(env["AWS_ENDPOINT_URL"] + "/bucket", method="PUT", data=b"")
    try:
        for left in range(120, 0, -1):
            try:
                urllib.request.urlopen(make_it, timeout=30).close()
                break
            except OSError:
                if left == 1:
                    raise
                time.sleep(0.5)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            yield
    finally:
        server.terminate()
        server.wait()


def test_two_writers(bucket, tmp_path):
    """No commit is lost, whoever was faster."""
    rounds, nc, repo = paths.tries(4, 10, 50), make(tmp_path / "in.nc", n=1), "s3://bucket/two"
    tool.run("nc2zarr", "-q", nc, f"icechunk:{repo}").ok()
    for i in range(rounds):
        theirs = start("commit", repo, "main", f"theirs{i}_", 2)
        ours = [tool.run("nc2zarr", "-q", nc, f"icechunk:{repo}::ours{i}{k}") for k in "ab"]
        _, err = theirs.communicate(timeout=600)
        assert theirs.returncode == 0, err[-2000:]
        assert [o.status for o in ours] == [0, 0], "\n".join(map(str, ours))
    names = peer("names", repo, "main").split()
    want = {f"theirs{i}_{k}" for i in range(rounds) for k in range(2)} | {f"ours{i}{k}/v" for i in range(rounds) for k in "ab"}
    assert want <= set(names), sorted(want - set(names))
    assert int(peer("length", repo, "main")) == 2 + 4 * rounds
    peer("read", repo, "main")


def test_parts_beside_others(bucket, tmp_path):
    """Parts at once while icechunk commits: no commit is lost, and each has all of its array."""
    rounds, nc, repo = paths.tries(2, 10, 50), make(tmp_path / "in.nc", n=3), "s3://bucket/parts"
    tool.run("nc2zarr", "-q", nc, f"icechunk:{repo}").ok()
    for i in range(rounds):
        theirs = start("commit", repo, "main", f"theirs{i}_", 3)
        parts(3, "--chunks", "v:1x12x20", nc, f"icechunk:{repo}::ours{i}")
        _, err = theirs.communicate(timeout=600)
        assert theirs.returncode == 0, err[-2000:]
    want = {f"theirs{i}_{k}" for i in range(rounds) for k in range(3)} | {f"ours{i}/v" for i in range(rounds)}
    assert want <= set(peer("names", repo, "main").split())
    assert int(peer("length", repo, "main")) == 2 + 4 * rounds
    peer("read", repo, "main")
    got = {x.split()[1]: x.split()[0] for x in digest(f"icechunk:{repo}").splitlines()}
    assert all(got[f"ours{i}/{name}"] == got[name] for i in range(rounds) for name in ("v", "time"))


def test_the_same_node_twice(bucket, tmp_path):
    """A commit that came first and has the node is not replaced without a word."""
    nc, repo = make(tmp_path / "in.nc", n=1), "s3://bucket/same"
    tool.run("nc2zarr", "-q", nc, f"icechunk:{repo}").ok()
    tool.run("nc2zarr", "-q", nc, f"icechunk:{repo}").fails(1, "is in the repository already")
    assert int(peer("length", repo, "main")) == 2


def digest(place, *options):
    return tool.run("rechunk", "--digest", *options, place).ok().out


def test_growing_beside_others(bucket, tmp_path):
    """Appends and replacements while icechunk commits other arrays: none is lost."""
    rounds, repo = paths.tries(2, 10, 50), "s3://bucket/grows"
    files = [make(tmp_path / f"{i}.nc", n=3, seed=i, first=3 * i) for i in range(rounds + 1)]
    new = [make(tmp_path / f"new{i}.nc", n=2, seed=99 + i, first=1) for i in range(rounds)]
    tool.run("nc2zarr", "-q", "--chunks", "v:4x24x20", files[0], f"icechunk:{repo}").ok()
    for i, nc in enumerate(files[1:]):
        theirs = start("commit", repo, "main", f"theirs{i}_", 2)
        tool.run("nc2zarr", "-q", "--append", "time", nc, f"icechunk:{repo}").ok()
        tool.run("nc2zarr", "-q", "--replace", "time=1:3", new[i], f"icechunk:{repo}").ok()
        _, err = theirs.communicate(timeout=600)
        assert theirs.returncode == 0, err[-2000:]
    assert int(peer("length", repo, "main")) == 2 + 4 * rounds
    names = set(peer("names", repo, "main").split())
    assert names == {"time", "v"} | {f"theirs{i}_{k}" for i in range(rounds) for k in range(2)}
    store = tmp_path / "store.zarr"
    tool.run("nc2zarr", "-q", "--chunks", "v:4x24x20", *files, store).ok()
    tool.run("nc2zarr", "-q", "--replace", "time=1:3", new[-1], store).ok()
    want, got = ({x.split()[1]: x.split()[0] for x in digest(p).splitlines()} for p in (store, f"icechunk:{repo}"))
    assert want == {name: got[name] for name in want}


def test_parts_grow_beside_others(bucket, tmp_path):
    """Parts at once add and replace while icechunk commits other arrays: none is lost, whichever snapshot each begins with."""
    rounds, repo = paths.tries(2, 10, 50), "s3://bucket/grows-in-parts"
    files = [make(tmp_path / f"{i}.nc", n=3, seed=i, first=3 * i) for i in range(rounds + 1)]
    new = make(tmp_path / "new.nc", n=2, seed=99, first=1)
    tool.run("nc2zarr", "-q", "--chunks", "v:4x24x20", files[0], f"icechunk:{repo}::ours").ok()
    for i, nc in enumerate(files[1:]):
        theirs = start("commit", repo, "main", f"theirs{i}_", 3)
        parts(3, "--append", "time", nc, f"icechunk:{repo}::ours")
        parts(3, "--replace", "time=1:3", new, f"icechunk:{repo}::ours")
        _, err = theirs.communicate(timeout=600)
        assert theirs.returncode == 0, err[-2000:]
    assert int(peer("length", repo, "main")) == 2 + 5 * rounds
    store = tmp_path / "store.zarr"
    tool.run("nc2zarr", "-q", "--chunks", "v:4x24x20", *files, store).ok()
    tool.run("nc2zarr", "-q", "--replace", "time=1:3", new, store).ok()
    want, got = ({x.split()[1].removeprefix("ours/"): x.split()[0] for x in digest(p).splitlines()} for p in (store, f"icechunk:{repo}::ours"))
    assert want == got


@pytest.mark.parametrize("how", ["new", "append", "replace", "refer"])
def test_killed_in_a_bucket(bucket, how, tmp_path):
    """At any moment: the branch has its old snapshot or the new one, and the same command makes the new one."""
    tries, rng = paths.tries(2, 12, 40), np.random.default_rng(7)
    a = make(tmp_path / "a.nc", n=6)
    b, c = make(tmp_path / "b.nc", n=5, seed=1, first=6), make(tmp_path / "c.nc", n=3, seed=2, first=2)
    more = {"new": a, "append": b, "replace": c, "refer": b}[how]
    options = {"new": ["--chunks", "v:4x24x20"], "append": ["--append", "time"], "replace": ["--replace", "time=2:5"]}
    option = (options | {"refer": ["--virtual", "icechunk", "--append", "time"]})[how]
    begin, allow = (["--virtual", "icechunk"], ["--allow", tmp_path]) if how == "refer" else (options["new"], [])

    def prepare(repo):
        if how != "new":
            tool.run("nc2zarr", "-q", *begin, a, repo).ok()
        return ["-q", "--object-size", "8KiB", *option, more, repo]

    began = time.monotonic()
    tool.run("nc2zarr", *prepare("icechunk:s3://bucket/whole-" + how)).ok()
    whole, took = digest("icechunk:s3://bucket/whole-" + how, *allow), time.monotonic() - began
    nkilled = 0
    for i in range(tries):
        repo = f"icechunk:s3://bucket/killed-{how}-{i}"
        args = prepare(repo)
        old = digest(repo, *allow) if how != "new" else None
        child = subprocess.Popen([tool.program("nc2zarr"), *map(str, args)], stderr=subprocess.PIPE, env=tool.environment())
        try:
            child.wait(timeout=rng.uniform(0, took))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            nkilled += 1
        seen = tool.run("rechunk", "--digest", *allow, repo)
        assert seen.status == 1 and how == "new" or seen.out in (old, whole), (i, str(seen))
        done = tool.run("nc2zarr", "--break-lock", *args)
        assert done.status == 0 or "is in the repository already" in done.err, (i, str(done))
        assert digest(repo, *allow) == whole, i
        peer("read", repo.removeprefix("icechunk:"), "main")
    print(f"{how}: {nkilled} kills")
