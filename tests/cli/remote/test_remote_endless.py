"""Answers without an end, and listings without one: a run ends in time, in its memory, with one sentence that is true."""

import json
import time
import zlib

import netCDF4
import pytest
from support import objects, tool

ARRAY = {"zarr_format": 2, "shape": [4], "chunks": [1], "dtype": "<f8", "compressor": None, "filters": None, "fill_value": 0, "order": "C"}
METADATA = json.dumps({"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}, "t/.zarray": ARRAY}}).encode()
STORE = {"a.zarr/.zmetadata": METADATA, "a.zarr/.zgroup": b'{"zarr_format": 2}', "a.zarr/t/.zarray": json.dumps(ARRAY).encode()} | {
    f"a.zarr/t/{i}": b"12345678" for i in range(4)
}
LIMIT = 120  # seconds against hangs


@pytest.fixture
def web():
    server = objects.Server(bucket=None, signed=False, objects={k: (v, objects.etag_of(v)) for k, v in STORE.items()})
    yield server
    server.close()


@pytest.fixture
def bucket():
    server = objects.Server(objects={k: (v, objects.etag_of(v)) for k, v in STORE.items()})
    yield server
    server.close()


def on(server, key, answer):
    server.fault = lambda h: answer(h) if h.key.endswith(key) else None


def endless(status, headers=b"", some=b"x" * 65536, pause=0.0):
    """A body, byte for byte as it is, until the other one hangs up."""

    def answer(handler):
        handler.close_connection = True
        try:
            handler.wfile.write(b"HTTP/1.1 %d x\r\n%s\r\n" % (status, headers))
            while True:
                handler.wfile.write(some)
                time.sleep(pause)
        except OSError:
            return "done"

    return answer


CHUNKED = b"%x\r\n%s\r\n" % (1000, b"x" * 1000)
ENDLESS = {  # what is sent, and what is said
    "an object": (endless(200), "more than the"),
    "an object in chunks": (endless(200, b"Transfer-Encoding: chunked\r\n", CHUNKED), "more than the"),
    "access denied": (endless(403), "access denied"),
    "an error": (endless(500), "HTTP 500"),
    "an error in chunks": (endless(503, b"Transfer-Encoding: chunked\r\n", CHUNKED), "HTTP 503"),
    "an error, drop by drop": (endless(500, some=b"x", pause=0.2), "HTTP 500"),
    "a change": (endless(412), "changed while it was read"),
    "nothing at all": (endless(204), "the server"),
}


@pytest.mark.few
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_body_without_end(web, kind):
    answer, words = ENDLESS[kind]
    on(web, "t/3", answer)
    tool.run("rechunk", "--digest", "--timeout", "1s", f"{web.url}/a.zarr", timeout=LIMIT).fails(1, "t/3", words)


@pytest.mark.parametrize("some", [b"A: b\r\n" * 1000, b"x" * 65536], ids=["lines", "one line"])
def test_headers_without_end(web, some):
    """Asked for once: the next answer would be no other."""

    def answer(handler):
        handler.close_connection = True
        try:
            handler.wfile.write(b"HTTP/1.1 200 x\r\n")
            while True:
                handler.wfile.write(some)
        except OSError:
            return "done"

    on(web, "t/3", answer)
    tool.run("rechunk", "--digest", f"{web.url}/a.zarr", timeout=LIMIT).fails(1, "t/3", "headers")
    assert [key for _, key, *_ in web.asked].count("a.zarr/t/3") == 1


def test_an_absent_object_whose_page_has_no_end(web):
    on(web, "t/3", endless(404))
    before = tool.run("rechunk", "--digest", f"{web.url}/a.zarr", timeout=LIMIT).ok().out
    web.fault = None
    del web.objects["a.zarr/t/3"]
    assert tool.run("rechunk", "--digest", f"{web.url}/a.zarr").ok().out == before


def test_writing_where_errors_have_no_end(bucket, tmp_path):
    """The store is not there, and is written once the server is well again."""
    bucket.fault = lambda h: endless(500)(h) if h.command == "PUT" and "/t/" in h.key else None
    command = ("--timeout", "1s", "s3://bucket/a.zarr", "s3://bucket/b.zarr")
    tool.run("rechunk", *command, env=bucket.environment(), timeout=LIMIT).fails(1, "t/")  # HTTP 500, or a server too slow to say it
    assert "b.zarr/.zmetadata" not in bucket.objects
    bucket.fault = None
    tool.run("rechunk", "--resume", *command, env=bucket.environment()).ok()
    digests = [tool.run("rechunk", "--digest", f"s3://bucket/{name}.zarr", env=bucket.environment()).ok().out.splitlines()[-1] for name in "ab"]
    assert digests[0] == digests[1]


@pytest.mark.parametrize("answer, words", [(endless(500), "HTTP 500"), (lambda h: h.reply(200, b"{", {}) or "done", "JSON")], ids=["an error", "half a document"])
def test_why_metadata_are_of_no_use(web, answer, words):
    """Of a web server, which lists nothing: not that there are none."""
    on(web, ".zmetadata", answer)
    tool.run("rechunk", "--digest", "--timeout", "1s", f"{web.url}/a.zarr", timeout=LIMIT).fails(1, ".zmetadata", words)


@pytest.mark.few
@pytest.mark.parametrize("key, node", [(".zmetadata", ""), ("zarr.json", ""), (".zarray", "/t")])
@pytest.mark.roomy
def test_metadata_without_end(web, key, node):
    """Stopped at one limit, which is named, before they fill the memory."""
    if key != ".zmetadata":
        del web.objects["a.zarr/.zmetadata"]
    on(web, key, endless(200))
    target = f"{web.url}/a.zarr{node}"
    done = tool.run("rechunk", "--digest", target, timeout=LIMIT, peak=True).fails(1, key, "more than the 67108864 bytes")
    assert done.peak < 256 << 20


def test_a_gzip_bomb(web):
    """Nobody asked for a coding: bytes are taken as they come, and are too many."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(100)) + packer.flush()
    for data, words in ((bomb, "more than the"), (bomb[:2000], "chunk 3")):
        on(web, "t/3", lambda h, data=data: h.reply(200, data, {"Content-Encoding": "gzip"}) or "done")
        done = tool.run("rechunk", "--digest", "--timeout", "1s", f"{web.url}/a.zarr", peak=True).fails(1, words)
        assert done.peak < 64 << 20


REFERENCES = b'{"version": 1, "refs": {".zgroup": "{\\"zarr_format\\": 2}", "a": "'
ROWS = b"".join(b'"%d": ["x.nc", 0, 10], ' % i for i in range(4000))
DOCUMENTS = {  # of references: what is sent, and what is said
    "a text": (endless(200, some=REFERENCES + b"x" * 65536), "no more fits the memory; raise --memory"),
    "references": (endless(200, some=b'{"version": 1, "refs": {' + ROWS), "no more fits the memory; raise --memory"),
    "in chunks": (endless(200, b"Transfer-Encoding: chunked\r\n", CHUNKED), "no more fits the memory; raise --memory"),
    "drop by drop": (endless(200, some=b"x", pause=0.05), "less than 1000 bytes a second"),
    "a length that lies": (endless(200, b"Content-Length: 3000000000\r\n", REFERENCES), "has 3000000000 bytes, more than"),
    "more bytes than its length": (endless(200, b"Content-Length: 100\r\n", REFERENCES), "r.json"),
    "the length of a world": (endless(200, b"Content-Length: 18446744073709551615\r\n", REFERENCES), "r.json"),
    "fewer bytes than its length": (lambda h: h.reply(200, REFERENCES, {"Content-Length": "100000"}) or setattr(h, "close_connection", True) or "done", "r.json"),
    "compressed": (lambda h: h.reply(200, zlib.compress(bytes(100 << 20), 9, 31), {"Content-Encoding": "gzip"}) or "done", "JSON"),
}


@pytest.mark.few
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_references_without_end(web, kind, tmp_path):
    """Within the memory, of which text and table may take half."""
    answer, words = DOCUMENTS[kind]
    on(web, "r.json", answer)
    args = ("--timeout", "2s", "--memory", "64MiB", f"{web.url}/r.json")
    for command in (("rechunk", *args, tmp_path / "o.zarr"), ("rechunk", "--digest", *args), ("nc2zarr", "--dry-run", *args, tmp_path / "o.zarr"), ("chunkcalc", *args)):
        done = tool.run(*command, timeout=LIMIT, peak=True)
        done.fails(1, "r.json", words)
        assert done.peak < 64 << 20, f"{done.peak >> 20} MiB\n{done}"
    assert list(tmp_path.iterdir()) == []


def test_parquet_references_are_no_document(web):
    """A store of kerchunk's parquet has consolidated metadata that say so: told, and nothing of it is fetched."""
    web.objects["p.parq/.zmetadata"] = (b'{"metadata": {".zgroup": {"zarr_format": 2}}, "record_size": 9223372036854775807}', '"p"')
    on(web, ".parq", endless(200))
    tool.run("rechunk", "--digest", f"{web.url}/p.parq", timeout=LIMIT).fails(1, "p.parq", "parquet")


TREES = {  # JSON whose tree is many times as large
    "objects": "[" + "{}," * 100_000 + "0]",
    "lists": "[" + "[]," * 100_000 + "0]",
    "numbers": "[" + "1," * 400_000 + "0]",
    "fractions": "[" + "1.5," * 400_000 + "0]",
    "texts": "[" + '"",' * 300_000 + "0]",
    "members": "{" + ",".join(f'"{i}":1' for i in range(100_000)) + "}",
    "one text": '"' + "x" * (20 << 20) + '"',
}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", TREES)
def test_json_whose_tree_takes_all_memory(web, kind, tmp_path):
    """As attributes of a store, and in a document of references: refused before it is parsed."""
    group = b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": %s}}' % TREES[kind].encode()
    document = b'{"version": 1, "refs": {".zgroup": {"zarr_format": 2}, ".zattrs": {"a": %s}}}' % TREES[kind].encode()
    for key, text in (("t.zarr/zarr.json", group), ("t.json", document), ("t.zarr/none", b"")):
        web.objects[key] = (text, objects.etag_of(text))
    (tmp_path / "t.json").write_bytes(document)
    for place in (f"{web.url}/t.zarr", f"{web.url}/t.json", tmp_path / "t.json"):
        done = tool.run("rechunk", "--memory", "64MiB", place, tmp_path / "o.zarr", timeout=LIMIT, peak=True)
        done.fails(1, "t.zarr" if str(place).endswith("zarr") else "t.json", "memory")
        assert done.peak < 64 << 20, f"{done.peak >> 20} MiB\n{done}"


def test_an_error_instead_of_a_size(bucket, tmp_path):
    """SlowDown within a 200 is asked about again, also where only headers come: its length is not the object's."""
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        ds.createDimension("x", 4)
        ds.createVariable("v", "f4", ("x",))[:] = range(4)
    data = (tmp_path / "in.nc").read_bytes()
    bucket.objects["in.nc"] = (data, objects.etag_of(data))
    slow, met = b"<?xml version='1.0'?><Error><Code>SlowDown</Code></Error>", []

    def fault(handler):
        if handler.command == "HEAD" and handler.key.endswith("in.nc") and len(met) < 3:
            met.append(1)
            handler.reply(200, slow, {"Content-Type": "application/xml"})
            return "done"

    bucket.fault = fault
    tool.nc2zarr("-q", "s3://bucket/in.nc", tmp_path / "o.zarr", env=bucket.environment()).ok()
    assert len(met) == 3


def test_a_long_listing(bucket):
    """100,000 keys beside few that matter: all pages are read, once, and nothing is lost."""
    del bucket.objects["a.zarr/.zmetadata"]
    want = tool.run("rechunk", "--digest", "s3://bucket/a.zarr", env=bucket.environment()).ok().out
    bucket.objects |= {f"a.zarr/t/x{i}": (b"", '"e"') for i in range(100_000)}
    names = sorted(bucket.objects)
    pages = []

    def listing(handler):
        # As the server would, which sorts all of them for each page.
        if handler.query.get("list-type") != "2" or handler.query.get("delimiter"):
            return None
        start = int(handler.query.get("continuation-token", "0"))
        found = [k for k in names[start : start + 1000] if k.startswith(handler.query["prefix"])]
        pages.append(start)
        more = f"<NextContinuationToken>{start + 1000}</NextContinuationToken>" if start + 1000 < len(names) else ""
        body = "".join(f"<Contents><Key>{k}</Key><Size>8</Size></Contents>" for k in found)
        handler.reply(200, f"<ListBucketResult><IsTruncated>{str(bool(more)).lower()}</IsTruncated>{body}{more}</ListBucketResult>".encode(), {})
        return "done"

    bucket.fault = listing
    done = tool.run("rechunk", "--digest", "s3://bucket/a.zarr", env=bucket.environment(), peak=True).ok()
    assert done.out == want and done.peak < 128 << 20
    assert len(pages) == len(set(pages))
