"""Servers that lie, and what they must not get (server of support/objects.py)."""

import json
import shutil
import ssl
import subprocess

import pytest
from support import objects, preload, tool

ARRAY = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "<f8", "compressor": None, "filters": None, "fill_value": 0, "order": "C"}


@pytest.fixture
def bucket():
    server = objects.Server()
    yield server
    server.close()


@pytest.fixture
def web():
    server = objects.Server(bucket=None, signed=False)
    server.objects = {k: (v, objects.etag_of(v)) for k, v in store("a.zarr/").items()}
    yield server
    server.close()


def store(prefix):
    return {
        f"{prefix}.zmetadata": json.dumps({"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}, "t/.zarray": ARRAY}}).encode(),
        f"{prefix}t/0": b"12345678",
    }


# ---- listings ----

LISTINGS = {  # what page N holds, and the token of the next one
    "one token": lambda n: (f"k{n}", "again"),
    "tokens in turn": lambda n: (f"k{n}", f"token{n % 7}"),
    "the same names": lambda n: ("k", f"token{n}"),
    "names in turn": lambda n: (f"k{n % 5}", f"token{n}"),
    "no names": lambda n: (None, f"token{n}"),
}


@pytest.mark.parametrize("kind", LISTINGS)
def test_a_listing_that_goes_round_is_an_error(bucket, kind):
    pages = []

    def listing(handler):
        if handler.query.get("list-type") != "2":
            return None
        name, token = LISTINGS[kind](len(pages))
        pages.append(name)
        assert len(pages) < 100, "it goes on and on"
        key = f"<Contents><Key>a.zarr/{name}</Key><Size>8</Size></Contents>" if name else ""
        text = f"<ListBucketResult><IsTruncated>true</IsTruncated>{key}<NextContinuationToken>{token}</NextContinuationToken></ListBucketResult>"
        handler.reply(200, text.encode(), {"Content-Type": "application/xml"})
        return "done"

    bucket.fault = listing
    tool.run("rechunk", "--digest", "s3://bucket/a.zarr", env=bucket.environment()).fails(1, "s3://bucket/a.zarr", "listing has no end")
    assert 2 <= len(pages) < 30


# ---- sent elsewhere ----


def sends(server, where):
    """SERVER answers requests below old/ by sending them to WHERE(rest of the key)."""

    def fault(handler):
        if handler.key.startswith("old/"):
            handler.reply(302, b"", {"Location": where(handler.key[4:])})
            return "done"

    server.fault = fault


@pytest.mark.parametrize("where, words", [("file:///etc/passwd", "no http:// or https://"), ("ftp://127.0.0.1/x", "no http:// or https://"),
                                          ("//me:SECRET@{host}/a.zarr/.zmetadata", "where the server sends this"), ("/old/round", "again and again")])  # fmt: skip
def test_where_no_request_is_sent_is_asked_once(web, where, words):
    sends(web, lambda rest: where.format(host=web.url.split("//")[1]))
    done = tool.run("rechunk", "--digest", f"{web.url}/old/a.zarr").fails(1, "zarr", words)
    assert "SECRET" not in done.err and "passwd" not in done.err
    assert len(web.asked) <= 6 and {key for _, key, _, _ in web.asked[1:]} <= {"old/round"}


def test_netrc_stays_at_its_port(web, tmp_path):
    """What was typed gets the password, also by another path; another port or name of the same machine does not."""
    other, seen = objects.Server(bucket=None, signed=False), []
    other.objects = web.objects
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password PASSWORD\n")
    (tmp_path / ".netrc").chmod(0o600)
    for to, trusted in ((web.url, True), (other.url, False)):
        sends(web, lambda rest, to=to: f"{to}/{rest}")
        for server in (web, other):
            send, before = server.fault, len(seen)
            server.fault = lambda h, send=send: seen.append((h.server.state, h.headers.get("Authorization"))) or (send and send(h))
        tool.run("rechunk", "--digest", f"{web.url}/old/a.zarr", env={"HOME": str(tmp_path)}).ok()
        assert all((auth is not None) == (server is web) for server, auth in seen[before:])
        assert any(server is (web if trusted else other) for server, _ in seen[before:])
    other.close()


@pytest.mark.parametrize("kind", ["instance", "container", "role"])
def test_credentials_come_from_their_address_alone(bucket, web, tmp_path, kind):
    """Neither the token that goes along nor a password is sent on."""
    seen = []
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password PASSWORD\n")
    (tmp_path / "token").write_text("IDENTITY")
    service = objects.Server(bucket=None, signed=False)

    def fault(h):
        seen.append(h.headers.get("Authorization"))
        if h.command == "PUT":
            h.reply(200, b"METADATA-TOKEN", {})
        else:
            h.reply(307, b"", {"Location": f"{web.url}/{h.key}"})
        return "done"

    service.fault = fault
    env = bucket.environment(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", HOME=str(tmp_path), AWS_EC2_METADATA_DISABLED="") | {
        "instance": {"AWS_EC2_METADATA_SERVICE_ENDPOINT": service.url},
        "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": service.url, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "AUTHORIZED"},
        "role": {"AWS_ROLE_ARN": "arn:aws:x", "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ENDPOINT_URL_STS": service.url},
    }[kind]
    tool.run("rechunk", "--digest", "s3://bucket/a.zarr", env=env).fails(1, "elsewhere")
    assert web.asked == [] and bucket.asked == []
    assert set(seen) == {"AUTHORIZED"} if kind == "container" else set(seen) == {None}
    service.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_https_never_becomes_http(web, tmp_path):
    """A server whose certificate is trusted sends to one that anybody may be."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key", "-out", tmp_path / "cert"], check=True, capture_output=True)  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    server = objects.Server(bucket=None, signed=False)
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    url, env = server.url.replace("http", "https"), {"LD_PRELOAD": str(preload.library("trustca")), "TRUSTCA": str(tmp_path / "cert")}
    sends(server, lambda rest: f"{web.url}/{rest}")
    tool.run("rechunk", "--digest", f"{url}/old/a.zarr", env=env).fails(1, "from https:// to http://")
    assert web.asked == [] and len(server.asked) == 1
    server.objects = web.objects
    sends(server, lambda rest: f"{url}/{rest}")
    tool.run("rechunk", "--digest", f"{url}/old/a.zarr", env=env).ok()
    server.close()


# ---- what is final ends at once, what may pass in time ----


def answers(status, headers=None, body=b"12345678"):
    """One that is written byte by byte: http.server would make sense of it."""
    head = "".join(f"{k}: {v}\r\n" for k, v in (headers or {}).items())

    def fault(handler):
        handler.close_connection = True
        handler.wfile.write(f"HTTP/1.1 {status} x\r\n{head}\r\n".encode() + body)
        return "done"

    return fault


@pytest.mark.parametrize("name, fault, most", [
    ("a negative length", answers(200, {"Content-Length": -5}), 1),
    ("no length", answers(200, {"Content-Length": "many"}), 1),
    ("a coding that nobody asked for", answers(200, {"Transfer-Encoding": "rot13", "Content-Length": 8}), 4),
    ("a part of what is whole", answers(206, {"Content-Length": 8, "Content-Range": "bytes 0-7/20"}), 4),
    ("a part without a range", answers(206, {"Content-Length": 8}), 4),
    ("nothing", answers(204, body=b""), 4),
    ("no answer", answers(100), 4),
])  # fmt: skip
def test_an_answer_that_makes_no_sense_is_not_asked_for_again_and_again(web, name, fault, most):
    web.fault = lambda h: fault(h) if h.key.endswith("t/0") else None
    tool.run("rechunk", "--digest", f"{web.url}/a.zarr").fails(1, "t/0")
    assert 1 <= sum(key.endswith("t/0") for _, key, _, _ in web.asked) <= most


@pytest.mark.parametrize("timeout, retry_after, most", [("2s", 59, 1), ("2s", 3, 1), ("1500ms", 1, 2)])
def test_timeout_is_a_deadline(web, timeout, retry_after, most):
    """No try begins after it, and a server that says that it will be later is not waited for."""
    web.fault = lambda h: h.reply(503, b"", {"Retry-After": str(retry_after)}) or "done"
    tool.run("rechunk", "--digest", "--timeout", timeout, f"{web.url}/a.zarr").fails(1, "503")
    assert len(web.asked) <= most
