"""References that point behind a network, and documents of references that lie there (server of support/objects.py)."""

import json
import shlex

import netCDF4
import numpy as np
import pytest
from support import objects, stores, tool


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


def allow(*places):
    return [word for place in places for word in ("--allow", place)]


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
            assert stores.digest(refs, env, *allow(base)) == stores.digest(made / name)
            # A chunk is one request, and nothing else is asked for.
            assert len(server.asked) == 2 * 18 and all(m == "GET" and r.startswith("bytes=") for m, _, r, _ in server.asked)
            assert stores.digest(f"{refs}::g", env, *allow(base)) == [row for row in stores.digest(made / name) if row[1] == "g/t"]
            tool.nc2zarr("--check", *allow(base), made / name, refs, env=env).ok()
            tool.run("rechunk", *allow(base), "--overwrite", "--chunks", "t:time=12,y=20,x=20", "--verify", "full", refs, tmp_path / "o.zarr", env=env).ok()
            assert stores.digest(tmp_path / "o.zarr") == stores.digest(made / name)
            assert "4x20x40" in tool.run("chunkcalc", *allow(base), refs, env=env).ok().out
            for mode in ("threads", "processes"):
                tool.run("readbench", "--no-out", "--mode", mode, "--workers", "2", "--variable", "t", "--sample", "time=2", "--batch", "2",
                         "--batches", "3", "--step-time", "0ms", "--cache", "1MiB", *allow(base), refs, env=env).ok()  # fmt: skip


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
                assert stores.digest(place, env) == stores.digest(made / name)
                assert stores.digest(f"{place}::t", env) == stores.digest(f"{made / name}::t")
                assert "4x20x40" in tool.run("chunkcalc", f"{place}::g/t", env=env).ok().out
                tool.nc2zarr("--overwrite", place, tmp_path / "o.zarr", env=env).ok()
                assert stores.digest(tmp_path / "o.zarr") == stores.digest(made / name)


def test_nodes_of_a_local_document(made, tmp_path):
    refs = tmp_path / "refs.json"
    refer(made / "fields.nc", refs)
    assert stores.digest(f"{refs}::g/t", None, *allow(made)) == stores.digest(f"{made / 'fields.nc'}::g/t")
    for node in ("nothing", "g/nothing", "t/0", "../refs.json"):
        r = tool.run("rechunk", "--digest", *allow(made), f"{refs}::{node}")
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
        (["abfs://bucket/fields.nc", 0, 8], ["abfs://", "s3:// and gs:// are read"]),
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
    places = allow(servers[0].url, "s3://bucket", "s3://other")
    r = tool.run("rechunk", "--digest", *places, refs, env=servers[1].environment())
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
        r = tool.run("rechunk", "--digest", *options, *allow("s3://bucket"), refs, env=env).fails(1, word, "fields.nc")
        assert "wrong-secret" not in r.err and objects.SECRET not in r.err


def test_many_servers_are_refused(tmp_path):
    refs = tmp_path / "many.json"
    refs.write_text(json.dumps({"version": 1, "refs": {f"k{i}": [f"http://host{i}/x", 0, 1] for i in range(300)}}))
    tool.run("rechunk", "--digest", *allow(*(f"http://host{i}" for i in range(300))), refs).fails(1, "256 servers")


@pytest.mark.parametrize("hidden", ["", "ETag"], ids=["ETag", "Last-Modified"])
def test_a_file_that_changes_between_two_parts(servers, made, tmp_path, hidden):
    refs = tmp_path / "refs.json"
    for base, server in bases(servers):
        server.hidden = {hidden}
        refer(made / "fields.nc", refs, "--base-url", base)
        seen = []

        def change(handler, server=server, seen=seen):
            seen.append(handler.key)
            if len(seen) == 5:
                server.objects["data/fields.nc"] = (server.objects["data/fields.nc"][0], '"another"')
                server.times["data/fields.nc"] = 1672531201

        server.fault = change
        tool.run("rechunk", "--digest", "-j", "1", *allow(base), refs, env=servers[1].environment()).fails(1, "changed while it was read", "fields.nc")


def test_faults_change_nothing(servers, made, tmp_path):
    refs = tmp_path / "refs.json"
    for base, server in bases(servers):
        refer(made / "fields.nc", refs, "--base-url", base)
        met = objects.faults_of(server, 0.2)
        assert stores.digest(refs, servers[1].environment(), *allow(base)) == stores.digest(made / "fields.nc")
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
        assert stores.digest(refs, env, *allow("s3://bucket/data/more of+it%é.nc", servers[0].url)) == stores.digest(made / "more of+it%é.nc")
        found = refer(source, refs, "--base-url", "https://host/a/", env=env)
        assert {v[0] for v in found.values() if isinstance(v, list)} == {"https://host/a/more%20of+it%25%C3%A9.nc"}


# ---- what a document may refer to by itself ----


def opens(place, env, *options):
    """The message; "" if everything can be read."""
    r = tool.run("rechunk", "--digest", *options, place, env=env)
    assert r.status in (0, 1) and len(r.err.splitlines()) == r.status, r
    return r.err


def pasted(said):
    """The option that a sentence gives, as a shell would take it."""
    return shlex.split(said.split("; ")[-1].rsplit(" permits it", 1)[0])


@pytest.mark.long(ci=1)
def test_a_local_document_refers_to_its_folder_and_below(servers, tmp_path, monkeypatch):
    """By a path that is absolute or not, typed in any way; to all else by the option that the message gives."""
    env, odd = servers[1].environment(), tmp_path / "it's odd $(x)"
    for folder in (odd, tmp_path / "d" / "below", tmp_path / "d-evil"):
        folder.mkdir(parents=True)
        (folder / "x").write_bytes(b"12345678")
    (tmp_path / "link").symlink_to(tmp_path / "d")
    servers[1].objects["data/x"] = servers[0].objects["data/x"] = (b"12345678", '"x"')
    document = tmp_path / "d" / "one.json"
    cases = {
        "below/x": True, f"{tmp_path}/d/below/x": True, f"file://{tmp_path}/d/below/x": True, f"{tmp_path}/d-evil/x": False, f"{odd}/x": False,
        f"{tmp_path}/link/below/x": False, f"{servers[0].url}/data/x": False, "s3://bucket/data/x": False,
    }  # fmt: skip
    monkeypatch.chdir(tmp_path / "d")
    for url, own in cases.items():
        one(tmp_path / "d", [url, 0, 8])
        for place in (document, tmp_path / "link" / "one.json", "one.json", "../d/one.json", f"file://{document}"):
            if not own and "/link/" in url and "/link/" in str(place):
                continue  # it is written in the same way
            said = opens(place, env)
            assert (said == "") == own, (url, place, said)
            if not own:
                assert "t/0" in said and opens(place, env, *pasted(said)) == "", (url, place, said)
    for url in (f"{tmp_path}/d/../d-evil/x", f"{tmp_path}/d/below/../../d-evil/x", "file:x"):
        one(tmp_path / "d", [url, 0, 8])
        assert opens(document, env) != "" and opens(document, env, *allow(f"{tmp_path}/d")) != ""


def test_a_document_behind_a_network_refers_to_its_own_server(servers):
    """Not to another port of the same machine, another bucket, nor what only begins as they do."""
    (web, bucket), other = servers, objects.Server(bucket=None, signed=False)
    for server in (web, bucket, other):
        server.objects["data/x"] = (b"12345678", '"x"')
    for base, own in ((f"{web.url}/data", [f"{web.url}/data/x"]), ("s3://bucket/data", ["s3://bucket/data/x"])):
        for url in (f"{web.url}/data/x", "s3://bucket/data/x", f"{other.url}/data/x", "s3://bucket-of-others/data/x"):
            put(bucket if base.startswith("s3") else web, "data/one.json",
                {"version": 1, "refs": {".zgroup": '{"zarr_format": 2}', "t/.zarray": json.dumps(ARRAY), "t/0": [url, 0, 8]}})  # fmt: skip
            other.asked.clear()
            said = opens(f"{base}/one.json", bucket.environment())
            assert (said == "") == (url in own) and other.asked == [], (base, url, said)
            if said:
                then = opens(f"{base}/one.json", bucket.environment(), *pasted(said))
                assert then == "" or ("of-others" in url and "no such bucket" in then), then
                near = [word.replace("data", "dat") for word in pasted(said)]
                assert opens(f"{base}/one.json", bucket.environment(), *near) == said
    other.close()


def test_what_nc2zarr_writes_opens_again(made, tmp_path):
    """Where the files lie in the document's folder or below; else the message gives the option."""
    source = tmp_path / "a" / "b" / "in.nc"
    source.parent.mkdir(parents=True)
    source.write_bytes((made / "fields.nc").read_bytes())
    (tmp_path / "c").mkdir()
    for folder, own in ((source.parent, True), (tmp_path / "a", True), (tmp_path, True), (tmp_path / "c", False)):
        tool.nc2zarr("--virtual", "json", "--verify", "full", source, folder / "refs.json").ok()
        said = opens(folder / "refs.json", None)
        assert (said == "") == own
        assert own or opens(folder / "refs.json", None, *pasted(said)) == ""


@pytest.mark.parametrize("place, word", [("s3://", "bucket"), ("abfs://bucket", "abfs://"), ("https://me:pw@host", "user")])
def test_what_is_allowed_must_be_a_place(tmp_path, place, word):
    tool.run("rechunk", "--digest", "--allow", place, one(tmp_path, ["x", 0, 8])).fails(2, "--allow", word)
