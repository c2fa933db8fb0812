"""Servers that lie, and what they must not get (server of support/objects.py)."""

import json
import shutil
import ssl
import subprocess

import netCDF4
import pytest
from support import objects, paths, tool

ARRAY = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "<f8", "compressor": None, "filters": None, "fill_value": 0, "order": "C"}


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


@pytest.mark.every
@pytest.mark.parametrize("kind", LISTINGS)
def test_a_listing_that_goes_round_is_an_error(bucket, kind):
    pages = []
    most = 1100 if kind == "no names" else 30  # a page of deleted objects has no names

    def listing(handler):
        if handler.query.get("list-type") != "2":
            return None
        name, token = LISTINGS[kind](len(pages))
        pages.append(name)
        assert len(pages) < most, "it goes on and on"
        key = f"<Contents><Key>a.zarr/{name}</Key><Size>8</Size></Contents>" if name else ""
        text = f"<ListBucketResult><IsTruncated>true</IsTruncated>{key}<NextContinuationToken>{token}</NextContinuationToken></ListBucketResult>"
        handler.reply(200, text.encode(), {"Content-Type": "application/xml"})
        return "done"

    bucket.fault = listing
    tool.run("rechunk", "--digest", "s3://bucket/a.zarr", env=bucket.environment()).fails(1, "s3://bucket/a.zarr", "listing has no end")
    assert 2 <= len(pages) < most


def test_names_that_a_folder_cannot_have(bucket):
    """Of a listing with a delimiter, new ones for ever: the first of them is refused."""
    pages = []

    def listing(handler):
        if not handler.query.get("delimiter"):
            return None
        pages.append(handler.key)
        key = f"<Contents><Key>{handler.query['prefix']}f/{len(pages)}</Key><Size>8</Size></Contents>"
        text = f"<ListBucketResult><IsTruncated>true</IsTruncated>{key}<NextContinuationToken>{len(pages)}</NextContinuationToken></ListBucketResult>"
        handler.reply(200, text.encode(), {"Content-Type": "application/xml"})
        return "done"

    bucket.fault = listing
    tool.run("rechunk", "--digest", "s3://bucket/a.zarr", env=bucket.environment()).fails(1, "s3://bucket/a.zarr", "of other folders")
    assert len(pages) == 1


# ---- sent elsewhere ----


def sends(server, where):
    """SERVER answers requests below old/ by sending them to WHERE(rest of the key)."""

    def fault(handler):
        if handler.key.startswith("old/"):
            handler.reply(302, b"", {"Location": where(handler.key[4:])})
            return "done"

    server.fault = fault


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_bucket_that_is_elsewhere_is_not_followed(status):
    """Its address is told, without what may be secret in it."""
    bucket, other = objects.Server(), objects.Server()
    try:
        for user in ("", "me:SECRET@"):
            where = other.url.replace("//", f"//{user}")
            bucket.fault = lambda h, where=where: h.reply(status, b"", {"Location": f"{where}/{h.key}?sign=SECRET"}) or "done"
            for command in (["rechunk", "--digest", "s3://bucket/a.zarr"], ["nc2zarr", "s3://bucket/a.nc", "none.zarr"]):
                done = tool.run(*command, env=bucket.environment()).fails(1, "elsewhere", str(status))
                assert ("SECRET" not in done.err) and (other.url in done.err) == (user == "")
        assert other.asked == []
    finally:
        bucket.close()
        other.close()


@pytest.mark.parametrize("where, words", [("file:///etc/passwd", "not http:// or https://"), ("ftp://127.0.0.1/x", "not http:// or https://"),
                                          ("//me:SECRET@{host}/a.zarr/.zmetadata", "where the server sends this"), ("/old/round", "again and again")])  # fmt: skip
def test_where_no_request_is_sent_is_asked_once(web, where, words):
    sends(web, lambda rest: where.format(host=web.url.split("//")[1]))
    done = tool.run("rechunk", "--digest", f"{web.url}/old/a.zarr").fails(1, "zarr", words)
    assert "SECRET" not in done.err and "passwd" not in done.err
    assert len(web.asked) <= 6 and {key for _, key, _, _ in web.asked[1:]} <= {"old/round"}


def test_netrc_stays_at_its_port(web, tmp_path):
    """The address typed gets the password, also for another path; another port or name of the same machine does not."""
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
@pytest.mark.skipif(paths.PRELOAD is not None, reason="no certificate is valid for a clock that jumps before it was made")
def test_https_never_becomes_http(web, tmp_path):
    """A server whose certificate is trusted sends to one that anybody may be."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key", "-out", tmp_path / "cert"], check=True, capture_output=True)  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    server = objects.Server(bucket=None, signed=False)
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    url, env = server.url.replace("http", "https"), {"AWS_CA_BUNDLE": str(tmp_path / "cert")}
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


# ---- what must stay secret ----

KEY, SECRET = "ASIA7QXZWVKJHGFD", "q8Zr+T1mVx/9sLw2Kc4Ny6Hb0Jd5Gf3Re7Pa/UoE"
TOKEN = "FwoGZXIvYXdzE" + "".join(f"{a}{b}/{b}x{a}+" for a in "kLmNpQrS" for b in "2T4V6X8Z") + "=="


def secrets_in(*texts):
    """Eight characters in a row of any of them."""
    parts = {s[i : i + 8].encode() for s in (KEY, SECRET, TOKEN, "IDENTITY-OF-A-ROLE") for i in range(len(s) - 7)}
    return [p for p in parts for t in texts if p in (t if isinstance(t, bytes) else t.encode())]


@pytest.fixture
def keeper(bucket, tmp_path):
    """A bucket that is asked with a session token, what all programs are told, and one source."""
    bucket.key, bucket.secret, bucket.token = KEY, SECRET, TOKEN
    bucket.env = bucket.environment(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, AWS_SESSION_TOKEN=TOKEN)
    bucket.objects = {k: (v, objects.etag_of(v)) for k, v in store("a.zarr/").items()}
    for name, at in (("one.nc", 0), ("two.nc", 4)):
        with netCDF4.Dataset(tmp_path / name, "w") as ds:
            ds.createDimension("time", None)
            time = ds.createVariable("time", "f8", ("time",))
            time.units = "days since 2000-01-01"
            time[:] = range(at, at + 4)
            ds.createVariable("t", "f4", ("time",))[:] = range(4)
    return bucket


def error(code="AccessDenied", message="no", more=""):
    return f"<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>".encode()


XML = {"Content-Type": "application/xml"}
ECHOES = {
    "a code": (400, error(TOKEN), XML),
    "a code that is cut": (400, error("x" * 40 + SECRET), XML),
    "a sentence": (400, error("Odd", f"not with {TOKEN}, {SECRET} or {KEY}"), XML),
    "a sentence that is cut": (400, error("Odd", "x" * 225 + TOKEN), XML),
    "a long sentence": (400, error("Odd", "  " * 500 + TOKEN), XML),
    "half of it": (400, error("Odd", "you said " + TOKEN[20:60]), XML),
    "within a 200": (200, error("Odd", "you said " + SECRET[3:]), XML),
    "a region": (400, error("Odd", "no", f"<Region>{SECRET[:38]}</Region>"), XML),
    "a header": (301, b"", {"x-amz-bucket-region": SECRET[:30]}),
    "an address": (307, error(), {"Location": f"http://{KEY}.invalid/{TOKEN}"}),
    "a length": (200, b"", {"Content-Length": SECRET}),
}


@pytest.mark.every
@pytest.mark.parametrize("kind", ECHOES)
def test_what_a_server_repeats_is_not_shown(keeper, kind):
    status, body, headers = ECHOES[kind]
    keeper.fault = lambda h: h.reply(status, body, headers) or "done"
    done = tool.run("rechunk", "-v", "--digest", "s3://bucket/a.zarr", env=keeper.env)
    assert done.status == 1 and "s3://bucket/a.zarr" in done.err
    assert secrets_in(done.out, done.err) == [], done.err


@pytest.mark.parametrize("kind", ["container", "role"])
def test_what_a_service_for_credentials_repeats_is_not_shown(keeper, web, tmp_path, kind):
    (tmp_path / "token").write_text("IDENTITY-OF-A-ROLE")
    web.fault = lambda h: h.reply(400, error("IDENTITY-OF-A-ROLE", "not with IDENTITY-OF-A-ROLE"), XML) or "done"
    env = keeper.env | {"AWS_ACCESS_KEY_ID": "", "HOME": str(tmp_path)} | {
        "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": web.url, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "IDENTITY-OF-A-ROLE"},
        "role": {"AWS_ROLE_ARN": "arn:aws:x", "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ENDPOINT_URL_STS": web.url},
    }[kind]  # fmt: skip
    done = tool.run("rechunk", "--digest", "s3://bucket/a.zarr", env=env).fails(1, "credentials")
    assert secrets_in(done.err) == [], done.err


def test_no_output_holds_a_secret(keeper, tmp_path):
    """All that programs print, write and leave, of runs that succeed: of a server that gives the token as an ETag, too."""
    (tmp_path / "made").mkdir()
    for key in ("one.nc", "two.nc"):
        keeper.objects[key] = ((tmp_path / key).read_bytes(), f'"{TOKEN[:60]}"')
    made = [str(tmp_path / "made" / name) for name in ("proof.json", "trace.json", "report", "refs.json", "cache")]
    runs = [
        ("nc2zarr", "-v", "--json", "--verify", "full", "--statistics", "--certificate", made[0], "--trace", made[1], "s3://bucket/one.nc", "s3://bucket/b.zarr"),
        ("nc2zarr", "-v", "--json", "--append", "time", "s3://bucket/two.nc", "s3://bucket/b.zarr"),
        ("nc2zarr", "-v", "--json", "--survey", "--survey-cache", made[4], "s3://bucket/one.nc", "s3://bucket/two.nc"),
        ("nc2zarr", "-v", "--virtual", "json", "s3://bucket/one.nc", made[3]),
        ("nc2zarr", "-v", "--part", "1/2", "s3://bucket/one.nc", "s3://bucket/c.zarr"),
        ("nc2zarr", "--json", "--parts-status", "s3://bucket/c.zarr"),
        ("rechunk", "-v", "--json", "s3://bucket/b.zarr", "s3://bucket/d.zarr"),
        ("chunkcalc", "-v", "--json", "s3://bucket/b.zarr"),
        ("readbench", "-v", "--out", made[2], "--sample", "time=2", "--batch", "1", "--batches", "2", "--step-time", "0ms", "s3://bucket/b.zarr::t"),
    ]  # fmt: skip
    said = []
    for run in runs:
        done = tool.run(*run, env=keeper.env)
        assert done.status in (0, 3), done
        said += [done.out, done.err]
    kept = [data for key, (data, _) in keeper.objects.items()] + [p.read_bytes() for p in (tmp_path / "made").rglob("*") if p.is_file()]
    assert len(kept) > 30 and any(b"xxh128" in data for data in kept)
    assert secrets_in(*said, *kept) == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_certificate_of_another_name(tmp_path):
    """Whoever signed it is trusted; but it is not of the host that was asked."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=elsewhere.example", "-addext",
                    "subjectAltName=DNS:elsewhere.example", "-keyout", tmp_path / "key", "-out", tmp_path / "cert"], check=True, capture_output=True)  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    server = objects.Server(bucket=None, signed=False)
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    env = {"AWS_CA_BUNDLE": str(tmp_path / "cert")}
    tool.run("rechunk", "--digest", f"{server.url.replace('http', 'https')}/a.zarr", env=env).fails(1, "a.zarr", "certificate")
    assert server.asked == []
    server.close()
