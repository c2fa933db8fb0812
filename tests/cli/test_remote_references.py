"""References that point behind a network, and documents of references that lie there (server of support/objects.py)."""

import json

import netCDF4
import numpy as np
import pytest
from support import objects, tool


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("references")
    rng = np.random.default_rng(3)
    for name in ("fields.nc", "more of+it%é.nc"):
        with netCDF4.Dataset(folder / name, "w") as ds:
            for d, n in (("time", 12), ("y", 60), ("x", 80)):
                ds.createDimension(d, n)
            ds.createVariable("time", "f8", ("time",))[:] = np.arange(12)
            for path in ("t", "g/t"):
                ds.createVariable(path, "f4", ("time", "y", "x"), chunksizes=(4, 20, 40), zlib=True)[:] = rng.normal(size=(12, 60, 80)).astype("f4")
    return folder


@pytest.fixture
def servers(made):
    both = objects.Server(bucket=None, signed=False), objects.Server()
    for server in both:
        for path in made.iterdir():
            data = path.read_bytes()
            server.objects["data/" + path.name] = (data, objects.etag_of(data))
        server.asked.clear()
    yield both
    for server in both:
        server.close()


def bases(servers):
    web, bucket = servers
    return (f"{web.url}/data", web), ("s3://bucket/data", bucket)


def refer(source, out, *options, env=None):
    tool.nc2zarr("--virtual", "json", "--overwrite", *options, source, out, env=env).ok()
    return json.loads(out.read_text())["refs"]


def digest(place, env=None, *options):
    return sorted(line.split() for line in tool.run("rechunk", "--digest", *options, place, env=env).ok().out.splitlines())


def put(server, key, document):
    data = json.dumps(document).encode()
    server.objects[key] = (data, objects.etag_of(data))


@pytest.mark.long
def test_every_tool_reads_them(servers, made, tmp_path):
    env = servers[1].environment()
    for name in ("fields.nc", "more of+it%é.nc"):
        for base, server in bases(servers):
            refs = tmp_path / "refs.json"
            refer(made / name, refs, "--base-url", base)
            server.asked.clear()
            assert digest(refs, env) == digest(made / name)
            # A chunk is one request, and nothing else is asked for.
            assert len(server.asked) == 2 * 18 and all(m == "GET" and r.startswith("bytes=") for m, _, r, _ in server.asked)
            assert digest(f"{refs}::g", env) == [row for row in digest(made / name) if row[1] == "g/t"]
            tool.nc2zarr("--check", made / name, refs, env=env).ok()
            tool.run("rechunk", "--overwrite", "--chunks", "t:time=12,y=20,x=20", "--verify", "full", refs, tmp_path / "o.zarr", env=env).ok()
            assert digest(tmp_path / "o.zarr") == digest(made / name)
            assert "4x20x40" in tool.run("chunkcalc", refs, env=env).ok().out
            for mode in ("threads", "processes"):
                tool.run("readbench", "--no-out", "--mode", mode, "--workers", "2", "--variable", "t", "--sample", "time=2", "--batch", "2",
                         "--batches", "3", "--step-time", "0ms", "--cache", "1MiB", refs, env=env).ok()  # fmt: skip


@pytest.mark.long
def test_a_document_that_lies_there(servers, made, tmp_path):
    """By its URL, with references to what lies beside it, elsewhere, and in itself."""
    env = servers[1].environment()
    refs = tmp_path / "refs.json"
    for base, server in bases(servers):
        for name in ("fields.nc", "more of+it%é.nc"):
            found = refer(made / name, refs)
            beside = {k: [name, *v[1:]] if isinstance(v, list) else v for k, v in found.items()}
            put(server, "data/a.json", {"version": 1, "refs": beside})
            put(server, "data/in/b.JSON", {"version": 1, "templates": {"u": base}, "refs": refer(made / name, refs, "--base-url", base)})
            for place in (f"{base}/a.json", f"{base}/in/b.JSON"):
                assert digest(place, env) == digest(made / name)
                assert digest(f"{place}::t", env) == digest(f"{made / name}::t")
                assert "4x20x40" in tool.run("chunkcalc", f"{place}::g/t", env=env).ok().out
                tool.nc2zarr("--overwrite", place, tmp_path / "o.zarr", env=env).ok()
                assert digest(tmp_path / "o.zarr") == digest(made / name)


def test_nodes_of_a_local_document(made, tmp_path):
    refs = tmp_path / "refs.json"
    refer(made / "fields.nc", refs)
    assert digest(f"{refs}::g/t") == digest(f"{made / 'fields.nc'}::g/t")
    for node in ("nothing", "g/nothing", "t/0", "../refs.json"):
        r = tool.run("rechunk", "--digest", f"{refs}::{node}")
        assert r.status == 1 and len(r.err.splitlines()) == 1


@pytest.mark.parametrize("url", ["/etc/passwd", "file:///etc/passwd", "../fields.nc", "a/../../fields.nc", "{{u}}/../x"])
def test_a_document_from_a_network_reads_no_local_file(servers, url, made):
    for base, server in bases(servers):
        document = {
            "version": 1,
            "templates": {"u": base},
            "refs": {".zgroup": '{"zarr_format": 2}', "t/.zarray": json.dumps(ARRAY), "t/0": [url, 0, 8]},
        }
        put(server, "data/evil.json", document)
        r = tool.run("rechunk", "--digest", f"{base}/evil.json", env=servers[1].environment())
        assert r.status == 1 and "t/0" in r.err and "evil.json" in r.err and len(r.err.splitlines()) == 1


ARRAY = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "<f8", "compressor": None, "filters": None, "fill_value": 0, "order": "C"}


def one(tmp_path, ref):
    refs = tmp_path / "one.json"
    refs.write_text(json.dumps({"version": 1, "refs": {".zgroup": '{"zarr_format": 2}', "t/.zarray": json.dumps(ARRAY), "t/0": ref}}))
    return refs


@pytest.mark.parametrize(
    "ref, words",
    [
        (["{web}/data/none.nc", 0, 8], ["none.nc", "not there"]),
        (["s3://bucket/data/none.nc", 0, 8], ["none.nc", "not there"]),
        (["s3://other/data/fields.nc", 0, 8], ["no such bucket"]),
        (["{web}/data/fields.nc", 100000000, 8], ["fields.nc", "ends before"]),
        (["{web}/data/fields.nc", -4, 8], ["fields.nc", "ends before"]),
        (["s3://bucket/data/fields.nc", -4, 8], ["fields.nc", "ends before"]),
        (["s3://bucket/data/fields.nc"], ["more"]),
        (["gs://bucket/fields.nc", 0, 8], ["gs://", "s3:// are read"]),
        (["{web}/data/fields.nc?token=SECRET", 0, 8], ["query"]),
        (["http://me:SECRET@host/x", 0, 8], ["password"]),
        (["{web}/data/%2e%2e/x", 0, 8], [".."]),
        (["{web}/data//fields.nc", 0, 8], ["empty name"]),
        (["{web}", 0, 8], ["empty"]),
        (["s3://bucket", 0, 8], ["empty"]),
        (["s3:///x", 0, 8], ["bucket"]),
    ],
)
def test_what_cannot_be_read_is_one_sentence(servers, tmp_path, ref, words):
    ref[0] = ref[0].format(web=servers[0].url)
    if -4 in ref:  # from the end
        ref[1] += len(servers[0].objects["data/fields.nc"][0])
    refs = one(tmp_path, ref)
    r = tool.run("rechunk", "--digest", refs, env=servers[1].environment())
    assert r.status == 1 and len(r.err.splitlines()) == 1 and "SECRET" not in r.err and "t/0" in r.err, r.err
    for word in words:
        assert word in r.err, r.err
    assert len(servers[0].asked) + len(servers[1].asked) <= 6


def test_credentials_are_those_of_a_bucket(servers, made, tmp_path):
    bucket = servers[1]
    refs = tmp_path / "refs.json"
    refer(made / "fields.nc", refs, "--base-url", "s3://bucket/data")
    for options, env, word in (
        (["--anonymous"], bucket.environment(), "access denied"),
        ([], bucket.environment(AWS_SECRET_ACCESS_KEY="wrong-secret"), "secret key is wrong"),
    ):
        r = tool.run("rechunk", "--digest", *options, refs, env=env).fails(1, word, "fields.nc")
        assert "wrong-secret" not in r.err and objects.SECRET not in r.err


def test_many_servers_are_refused(tmp_path):
    refs = tmp_path / "many.json"
    refs.write_text(json.dumps({"version": 1, "refs": {f"k{i}": [f"http://host{i}/x", 0, 1] for i in range(300)}}))
    tool.run("rechunk", "--digest", refs).fails(1, "256 servers")


def test_a_file_that_changes_between_two_parts(servers, made, tmp_path):
    refs = tmp_path / "refs.json"
    for base, server in bases(servers):
        refer(made / "fields.nc", refs, "--base-url", base)
        seen = []

        def change(handler, server=server, seen=seen):
            seen.append(handler.key)
            if len(seen) == 5:
                server.objects["data/fields.nc"] = (server.objects["data/fields.nc"][0], '"another"')

        server.fault = change
        tool.run("rechunk", "--digest", "-j", "1", refs, env=servers[1].environment()).fails(1, "changed while it was read", "fields.nc")


def test_faults_change_nothing(servers, made, tmp_path):
    refs = tmp_path / "refs.json"
    for base, server in bases(servers):
        refer(made / "fields.nc", refs, "--base-url", base)
        met = objects.faults_of(server, 0.2)
        assert digest(refs, servers[1].environment()) == digest(made / "fields.nc")
        assert len(set(met)) >= 2


def test_references_of_a_file_behind_a_network(servers, made, tmp_path):
    """They point to its URL, not to the copy that was looked at."""
    env = servers[1].environment()
    refs = tmp_path / "refs.json"
    for source, name, server in (
        ("s3://bucket/data/more of+it%é.nc", "more of+it%é.nc", servers[1]),
        (f"{servers[0].url}/data/more%20of%2Bit%25%C3%A9.nc", "more%20of%2Bit%25%C3%A9.nc", servers[0]),
    ):
        found = refer(source, refs, "--verify", "full", env=env)
        assert {v[0] for v in found.values() if isinstance(v, list)} == {source}
        assert digest(refs, env) == digest(made / "more of+it%é.nc")
        found = refer(source, refs, "--base-url", "https://host/a/", env=env)
        assert {v[0] for v in found.values() if isinstance(v, list)} == {"https://host/a/more%20of+it%25%C3%A9.nc"}
