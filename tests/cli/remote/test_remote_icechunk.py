"""Icechunk repositories behind a network, and chunks of theirs that lie elsewhere (server of support/objects.py)."""

import statistics

import netCDF4
import numpy as np
import pytest
from support import objects, paths, readbench, repositories, tool
from support.repositories import outside


NAMES = repositories.NAMES if paths.LONG else repositories.NAMES[1:]


@pytest.fixture
def servers():
    both = objects.Server(bucket=None, signed=False), objects.Server()
    yield both
    for server in both:
        server.close()


def upload(folder, *servers):
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for server in servers:
                server.objects["r/" + path.relative_to(folder).as_posix()] = (data, objects.etag_of(data))


def digest(place, env, *options):
    return [line.split() for line in tool.run("rechunk", "--digest", *options, place, env=env).ok().out.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_every_version(servers, name, tmp_path):
    path, versions = repositories.unpack(name, tmp_path)
    upload(path, *servers)
    web, bucket = servers
    env = bucket.environment()
    for version in versions if paths.LONG else ["@dev", "@tag:v1"]:
        if version != "@virtual":
            assert digest(f"icechunk:s3://bucket/r{version}", env) == versions[version]
    assert digest("s3://bucket/r", env) == digest(f"{web.url}/r", env) == versions["@main"]
    tool.run("rechunk", "--digest", "icechunk:s3://bucket/r@nope", env=env).fails(1, "has no branch nope", "dev, main")
    tool.run("rechunk", "--digest", f"icechunk:{web.url}/r@nope", env=env).fails(1, "has no branch nope")
    tool.run("rechunk", "--digest", "icechunk:s3://bucket/other", env=env).fails(1, "not an Icechunk repository")


def test_neighbours_are_one_request(servers, tmp_path):
    """Chunks side by side in one file come in few requests, and nothing is asked for its size."""
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as d:
        d.createDimension("t", 64)
        d.createDimension("x", 400)
        d.createVariable("a", "f4", ("t", "x"))[:] = np.random.default_rng(2).random((64, 400), dtype="f4")
    # One thread fills one file in the order of the chunks; two would share them between two files by chance.
    tool.nc2zarr("-j", "1", "--shards", "none", "--chunks", "a:4x100", tmp_path / "in.nc", f"icechunk:{tmp_path / 'repo'}").ok()
    upload(tmp_path / "repo", servers[1])
    env = servers[1].environment()
    expected = tool.run("rechunk", "--digest", tmp_path / "repo").ok().out
    for how in (["rechunk", "--digest"], ["readbench", "--no-out", "--sample", "t=64,x=400", "--batch", "1", "--batches", "1", "--step-time", "0ms"]):
        servers[1].asked.clear()
        out = tool.run(*how, "icechunk:s3://bucket/r", env=env).ok().out
        assert how[0] == "readbench" or out == expected
        chunks = [(method, key, header) for method, key, header, _ in servers[1].asked if "/chunks/" in key]
        assert chunks and all(method == "GET" and header.startswith("bytes=") for method, _, header in chunks)
        whole = {f"bytes=0-{len(servers[1].objects[key.removeprefix('bucket/')][0]) - 1}" for _, key, _ in chunks}
        assert how[0] == "rechunk" or whole & {header for *_, header in chunks}, "all chunks at once"


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """A repository: the chunks of `a` lie side by side in one file, two of its rows are absent, those of `n` lie in the manifest."""
    path = tmp_path_factory.mktemp("joined")
    with netCDF4.Dataset(path / "in.nc", "w") as d:
        d.createDimension("t", 64)
        d.createDimension("x", 400)
        a = d.createVariable("a", "f4", ("t", "x"), fill_value=-1)
        a[:] = np.random.default_rng(2).random((64, 400), dtype="f4")
        a[8:16] = -1
        d.createVariable("n", "i2", ("t",))[:] = range(64)
    tool.nc2zarr("-j", "1", "--shards", "none", "--chunks", "a:4x100", "--chunks", "n:8", path / "in.nc", f"icechunk:{path / 'repo'}").ok()
    return path / "repo"


@pytest.mark.few
@pytest.mark.parametrize("how", [["--mode", "sync"], ["--workers", "2"]], ids=["sync", "ahead"])
@pytest.mark.parametrize("box", ["t=8,x=400", "t=30,x=90"])
def test_requests_are_those_that_are_made(servers, joined, box, how, tmp_path):
    """Counted as the server gets them, alike in a folder, and foreseen: neighbours are one, absent chunks none."""
    upload(joined, servers[1])
    env = servers[1].environment()
    args = ["--variable", "a", "--sample", box, "--batch", "4", "--batches", "5", "--epochs", "2", *how]
    servers[1].asked.clear()
    there = readbench.measure(tmp_path / "there", "icechunk:s3://bucket/r", *args, env=env, program=readbench.BARE).only
    got = [text.removeprefix("bytes=").split("-") for _, key, text, _ in servers[1].asked if "/chunks/" in key]
    assert there.counts["requests"] == len(got) < there.counts["chunks"] / 2
    assert there.counts["stored_nbytes"] == sum(int(end) - int(begin) + 1 for begin, end in got), "with gaps"
    here = readbench.measure(tmp_path / "here", f"icechunk:{joined}", *args).only
    assert [b["requests"] for b in here.batches] == [b["requests"] for b in there.batches]
    assert here.counts["stored_nbytes"] == there.counts["stored_nbytes"]
    first = [b["requests"] for b in here.batches if b["epoch"] == 0]
    assert here.predicted["batch_requests"] == statistics.fmean(first[: here.measured["batches"]])
    assert here.predicted["requests_per_sample"] == statistics.fmean(first) / 4


def test_chunks_in_a_manifest_are_no_requests(joined, tmp_path):
    args = ["--variable", "n", "--sample", "t=20", "--batch", "4", "--batches", "5", "--epochs", "1"]
    session = readbench.measure(tmp_path / "out", f"icechunk:{joined}", *args).only
    assert session.counts["requests"] == 0 < session.counts["chunks"] == session.counts["decoded"]
    assert session.predicted["requests_per_sample"] == session.predicted["batch_requests"] == 0
    assert session.predicted["batch_seconds"] > 0


def steps(tmp_path):
    """Files of eight steps each, and the same as objects."""
    data, files = {}, []
    for i in range(4):
        files.append(tmp_path / f"step {i}.nc")
        with netCDF4.Dataset(files[i], "w") as d:
            for name, first, n in (("t", 8 * i, 8), ("x", 0, 1000)):
                d.createDimension(name, n)
                d.createVariable(name, "f8", (name,))[:] = np.arange(first, first + n)
            d.createVariable("a", "f4", ("t", "x"), zlib=True, chunksizes=(4, 500))[:] = np.random.default_rng(i).random((8, 1000), dtype="f4")
        raw = files[i].read_bytes()
        data[f"data/step {i}.nc"] = raw, objects.etag_of(raw)
    return data, files


def test_references_are_added(servers, tmp_path):
    """A repository in a bucket refers to objects of it, and grows by more of them, none of which is asked for."""
    env, (data, files) = servers[1].environment(), steps(tmp_path)
    refer = ["-q", "--virtual", "icechunk", "--base-url", "s3://bucket/data"]
    tool.nc2zarr(*refer, files[0], "icechunk:s3://bucket/refs", env=env).ok()
    for new in (files[1:2], files[1:3], files):  # files that are there already need no reading
        tool.nc2zarr(*refer, "--append", "t", *new, "icechunk:s3://bucket/refs", env=env).ok()
    ncommits = len([key for key in servers[1].objects if key.startswith("refs/snapshots/")])
    tool.nc2zarr(*refer, "--append", "t", *files, "icechunk:s3://bucket/refs", env=env).ok()
    assert len([key for key in servers[1].objects if key.startswith("refs/snapshots/")]) == ncommits == 5
    assert not [key for _, key, *_ in servers[1].asked if "data/" in key]
    servers[1].objects.update(data)
    tool.nc2zarr("-q", *files, tmp_path / "store.zarr").ok()
    got = digest("icechunk:s3://bucket/refs", env, "--allow", "s3://bucket/data")
    assert got == digest(tmp_path / "store.zarr", env)


@pytest.mark.few
@pytest.mark.parametrize("place", ["icechunk:s3://bucket/refs", "icechunk:repo"])
def test_references_to_objects(servers, place, tmp_path):
    """Inputs in a bucket become references by their own URLs, several of them at once, too."""
    env, (data, files) = servers[1].environment(), steps(tmp_path)
    servers[1].objects.update(data)
    keys = [f"s3://bucket/{key}" for key in data]
    for new in (keys[:2], ["--append", "t", *keys[2:3]], ["--append", "t", *keys]):
        tool.nc2zarr("-q", "--virtual", "icechunk", *new, place, env=env, cwd=tmp_path).ok()
    tool.nc2zarr("-q", *files, tmp_path / "store.zarr").ok()
    said = tool.run("rechunk", "--digest", "--allow", "s3://bucket/data", place, env=env, cwd=tmp_path).ok().out
    assert [line.split() for line in said.splitlines()] == digest(tmp_path / "store.zarr", env)
    tool.nc2zarr("-q", "--virtual", "json", *keys, "refs.json", env=env, cwd=tmp_path).ok()
    assert digest(tmp_path / "refs.json", env, "--allow", "s3://bucket/data") == digest(tmp_path / "store.zarr", env)
    tool.nc2zarr("--virtual", "icechunk", keys[0], files[1], "icechunk:mixed", env=env, cwd=tmp_path).fails(2, "lies on another server or in another bucket")
    assert not (tmp_path / "mixed").exists()


@pytest.mark.parametrize("folder", ["chunks", "manifests", "snapshots"])
def test_what_is_missing(servers, folder, tmp_path):
    path, _ = repositories.unpack("two", tmp_path)
    upload(path, servers[1])
    for key in [key for key in servers[1].objects if f"/{folder}/" in key]:
        del servers[1].objects[key]
    tool.run("rechunk", "--digest", "icechunk:s3://bucket/r", env=servers[1].environment()).fails(1, folder)


@pytest.mark.parametrize("name", NAMES)
def test_virtual_chunks(servers, name, tmp_path):
    """Of one object each, with ETags, times of change, compressed locations and names of containers."""
    path, versions = repositories.unpack(name, tmp_path)
    upload(path, servers[1])
    there, env = servers[1].objects, servers[1].environment()
    for i in range(outside.N):
        there[outside.key(i)] = (outside.data(i), outside.etag(i))
    places = f"icechunk:{path}@virtual", "icechunk:s3://bucket/r@virtual"
    for place in places:
        servers[1].asked.clear()
        tool.run("rechunk", "--digest", place, env=env).fails(1, "lies outside the repository; --allow s3://bucket/data")
        tool.run("rechunk", "--digest", "--allow", "s3://bucket/dat", place, env=env).fails(1, "--allow s3://bucket/data")
        assert not [key for _, key, *_ in servers[1].asked if key.startswith("bucket/data")]
        assert digest(place, env, "--allow", outside.PREFIX) == versions["@virtual"]
    changed = b"x" + outside.data(1)
    there[outside.key(1)] = changed, objects.etag_of(changed)
    for place in places:
        tool.run("rechunk", "--digest", "--allow", "s3://bucket", place, env=env).fails(1, "part-0001.bin has changed since")
    del there[outside.key(1)]
    tool.run("rechunk", "--digest", "--allow", "s3://bucket", places[0], env=env).fails(1, "part-0001.bin is missing")


def test_a_commit_that_is_not_heard_of(servers, tmp_path):
    """Another writer commits on top of it: its snapshot and the copy of the state before stay, and it is made once."""
    bucket, (_, files) = servers[1], steps(tmp_path)
    env, other = bucket.environment(), objects.Server()
    tool.nc2zarr("-q", files[0], "icechunk:s3://bucket/r::a", env=env).ok()

    def lose(handler):
        if handler.command != "PUT" or not handler.key.endswith("r/repo"):
            return None
        handler.answer(bucket)
        bucket.fault = None
        other.objects |= {key: what for key, what in bucket.objects.items() if not key.startswith("r.chunkmill")}
        tool.nc2zarr("-q", files[2], "icechunk:s3://bucket/r::c", env=other.environment()).ok()
        bucket.objects |= other.objects
        handler.connection.shutdown(2)
        handler.close_connection = True
        return "done"

    bucket.fault = lose
    tool.nc2zarr("-q", files[1], "icechunk:s3://bucket/r::b", env=env).ok()
    other.close()
    assert len(bucket.keys("r/snapshots/")) == 4 and len(bucket.keys("r/overwritten/")) == 2
    tool.nc2zarr("-q", files[1], tmp_path / "b.zarr").ok()
    there = digest("icechunk:s3://bucket/r", env)
    assert [[d, name[2:], *more] for d, name, *more in there if name.startswith("b/")] == digest(tmp_path / "b.zarr", env)
    assert {name[:2] for _, name, *_ in there} == {"a/", "b/", "c/"}
