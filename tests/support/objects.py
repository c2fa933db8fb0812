"""
A server of objects for tests: S3 with signatures checked, or plain HTTP, in the memory of this process.

Real servers are asked in tests/store, where they are installed; this one is always there, and says what it was asked.
"""

import base64
import contextlib
import hashlib
import hmac
import random
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

import google_crc32c

from . import tool

MARK = "+/="  # of a page that goes on: AWS's are base64
KEY, SECRET = "AKIATEST", "se/cret+with=odd:chars"


class Refusal(Exception):
    def __init__(self, status, code, message, more=""):
        self.status, self.code, self.message, self.more = status, code, message, more


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def do(self):
        s = self.server.state
        n = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(n)
        if len(self.body) < n:  # who sent it is gone; no server keeps the half of an object
            self.close_connection = True
            return
        if self.path.startswith("http://"):  # asked as a proxy
            self.path = "/" + self.path.split("/", 3)[3]
        path, _, query = self.path.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.key = urllib.parse.unquote(path).lstrip("/")
        with s.lock:
            s.asked.append((self.command, self.key, self.headers.get("Range"), dict(self.query)))
        fault = s.fault(self) if s.fault else None
        if fault == "done":
            return
        try:
            if s.signed:
                self.check_signature(s, path, query)
            status, body, headers = self.answer(s)
        except Refusal as r:
            status, headers = r.status, {"Content-Type": "application/xml"}
            body = (
                f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{r.code}</Code>'
                f"<Message>{escape(r.message)}</Message>{r.more}</Error>"
            ).encode()
        self.reply(status, body, headers)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do

    def reply(self, status, body, headers):
        self.send_response(status)
        hidden = self.server.state.hidden
        for name, value in headers.items():
            if name not in hidden:
                self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def check_signature(self, s, path, query):
        """Signature version 4, written from its description."""
        auth = self.headers.get("Authorization")
        if auth is None:
            raise Refusal(403, "AccessDenied", "Access Denied")
        m = re.match(r"AWS4-HMAC-SHA256 Credential=([^,]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)", auth)
        key, day, region, signed, signature = m.groups()
        if key != s.key:
            raise Refusal(403, "InvalidAccessKeyId", "The key does not exist", f"<AWSAccessKeyId>{key}</AWSAccessKeyId>")
        if region != s.region:
            raise Refusal(400, "AuthorizationHeaderMalformed", f"the region '{region}' is wrong; expecting '{s.region}'", f"<Region>{s.region}</Region>")
        if (self.headers.get("x-amz-security-token") or None) != s.token:
            raise Refusal(400, "ExpiredToken", "The provided token has expired.")
        at = self.headers["X-Amz-Date"]
        names = signed.split(";")
        canonical = "\n".join(
            [self.command, path, "&".join(sorted(query.split("&"))) if query else ""]
            + [f"{n}:{' '.join((self.headers.get(n) or '').split())}" for n in names]
            + ["", signed, self.headers.get("x-amz-content-sha256") or ""]
        )
        scope = f"{day}/{region}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", at, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        k = ("AWS4" + s.secret).encode()
        for part in (day, region, "s3", "aws4_request"):
            k = hmac.new(k, part.encode(), hashlib.sha256).digest()
        if hmac.new(k, text.encode(), hashlib.sha256).hexdigest() != signature:
            raise Refusal(403, "SignatureDoesNotMatch", "The request signature we calculated does not match", f"<StringToSign>{s.secret}</StringToSign>")

    def answer(self, s):
        if s.bucket is not None:
            bucket, _, self.key = self.key.partition("/")
            if bucket != s.bucket:
                raise Refusal(404, "NoSuchBucket", "The specified bucket does not exist")
        with s.lock:
            return getattr(self, self.command.lower())(s)

    # ---- reading ----

    def get(self, s):
        if self.query.get("list-type") == "2":
            return self.list(s)
        if "uploads" in self.query:
            return self.list_uploads(s)
        if self.key not in s.objects:
            if s.bucket is None:
                return 404, b"<html>not here</html>", {"Content-Type": "text/html"}
            if s.hides_absent:
                raise Refusal(403, "AccessDenied", "Access Denied")
            raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
        data, etag = s.objects[self.key]
        wanted = self.headers.get("If-Match")
        if wanted and wanted != etag:
            raise Refusal(412, "PreconditionFailed", "changed")
        headers = {"ETag": etag, "Content-Type": "application/octet-stream", "Last-Modified": formatdate(s.times.get(self.key, 1672531200), usegmt=True)}
        r = re.match(r"bytes=(\d*)-(\d*)$", self.headers.get("Range") or "") if s.ranges else None
        if r is None:
            if self.headers.get("x-amz-checksum-mode") == "ENABLED" and self.key in s.sums:
                headers["x-amz-checksum-crc32c"] = s.sums[self.key]
            return 200, data, headers
        first, last = r.groups()
        n = len(data)
        lo, hi = (max(0, n - int(last)), n - 1) if first == "" else (int(first), min(int(last or n), n - 1))
        if lo >= n:
            raise Refusal(416, "InvalidRange", "The requested range is not satisfiable")
        return 206, data[lo : hi + 1], headers | {"Content-Range": f"bytes {lo}-{hi}/{n}"}

    def head(self, s):
        if self.key not in s.objects:
            return 403 if s.hides_absent else 404, b"", {}
        data, etag = s.objects[self.key]
        return 200, b"", {"ETag": etag, "Content-Length": str(len(data)), "Last-Modified": formatdate(s.times.get(self.key, 1672531200), usegmt=True)}

    def list(self, s):
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter")
        names = {}
        for key in sorted({*s.objects, *(s.folders if delimiter else ())}):
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                names[prefix + rest.split(delimiter)[0] + delimiter] = None
            else:
                names[key] = len(s.objects[key][0])
        names = sorted(names.items())
        start = int(self.query.get("continuation-token", "0").removesuffix(MARK))
        page = names[start : start + s.page]
        more = start + s.page < len(names)
        quote = s.quote
        body = "".join(
            f"<Contents><Key>{quote(k)}</Key><LastModified>{stamp(s.times.get(k, 1672531200))}</LastModified><ETag>{escape(s.objects[k][1])}</ETag><Size>{n}</Size></Contents>"
            if n is not None else f"<CommonPrefixes><Prefix>{quote(k)}</Prefix></CommonPrefixes>"
            for k, n in page
        )
        token = f"<NextContinuationToken>{start + s.page}{MARK}</NextContinuationToken>" if more else ""
        text = f'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>{str(more).lower()}</IsTruncated>{body}{token}</ListBucketResult>'
        return 200, text.encode(), {"Content-Type": "application/xml"}

    def list_uploads(self, s):
        prefix = self.query.get("prefix", "")
        # Moto's order; AWS and SeaweedFS tell the key first.
        body = "".join(
            f"<Upload><UploadId>{i}</UploadId><Key>{escape(key)}</Key></Upload>" for i, (key, _, _) in s.uploads.items() if key.startswith(prefix)
        )
        return 200, f"<ListMultipartUploadsResult>{body}<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>".encode(), {"Content-Type": "application/xml"}

    # ---- writing ----

    def check_sums(self):
        """Checks the body against the checksums of the request; returns the headers of the answer."""
        md5, crc = self.headers.get("Content-MD5"), self.headers.get("x-amz-checksum-crc32c")
        if md5 and md5 != base64.b64encode(hashlib.md5(self.body).digest()).decode() or crc and crc != crc32c_of(self.body):
            raise Refusal(400, "BadDigest", "The checksum you specified did not match what we received")
        self.sums = [w for w, there in (("md5", md5), ("crc32c", crc)) if there]
        return {"x-amz-checksum-crc32c": crc} if crc else {}

    def put(self, s):
        said = self.check_sums()
        with s.lock:
            s.summed += [(w, self.key) for w in self.sums]
        if "uploadId" in self.query:
            upload = s.uploads.get(self.query["uploadId"])
            if upload is None:
                raise Refusal(404, "NoSuchUpload", "The specified upload does not exist")
            if upload[2] != (said != {}):
                raise Refusal(400, "InvalidRequest", "Checksum Type mismatch occurred")
            upload[1][int(self.query["partNumber"])] = self.body
            return 200, b"", {"ETag": etag_of(self.body)} | said
        if self.headers.get("If-None-Match") == "*":
            if not s.conditional:
                raise Refusal(501, "NotImplemented", "A header you provided implies functionality that is not implemented.")
            if self.key in s.objects:
                raise Refusal(412, "PreconditionFailed", "is there")
        if self.headers.get("If-Match"):
            if not s.conditional:
                raise Refusal(501, "NotImplemented", "A header you provided implies functionality that is not implemented.")
            if self.key not in s.objects:
                raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
            if self.headers["If-Match"] != s.objects[self.key][1]:
                raise Refusal(412, "PreconditionFailed", "is another")
        s.objects[self.key] = (self.body, etag_of(self.body))
        s.times[self.key] = time.time()
        s.sums.pop(self.key, None)
        if said:
            s.sums[self.key] = said["x-amz-checksum-crc32c"]
        return 200, b"", {"ETag": etag_of(self.body)} | said

    def post(self, s):
        if "urlencoded" in (self.headers.get("Content-Type") or "urlencoded"):
            raise Refusal(400, "InvalidArgument", "A form has no body, and what it begins would be one")
        if "uploads" in self.query:
            s.counter += 1
            s.uploads[str(s.counter)] = (self.key, {}, self.headers.get("x-amz-checksum-algorithm") == "CRC32C")
            body = f"<InitiateMultipartUploadResult><Key>{escape(self.key)}</Key><UploadId>{s.counter}</UploadId></InitiateMultipartUploadResult>"
            return 200, body.encode(), {"Content-Type": "application/xml"}
        upload = s.uploads.pop(self.query.get("uploadId"), None)
        if upload is None:
            raise Refusal(404, "NoSuchUpload", "The specified upload does not exist")
        named = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag>(?:<ChecksumCRC32C>([^<]*)</ChecksumCRC32C>)?", self.body.decode())
        data = b""
        for number, etag, crc in named:
            part = upload[1][int(number)]
            assert etag.replace("&quot;", '"') == etag_of(part) and crc == (crc32c_of(part) if upload[2] else "")
            data += part
        if upload[2]:  # of the parts' checksums
            s.sums[self.key] = crc32c_of(b"".join(base64.b64decode(c) for _, _, c in named)) + f"-{len(named)}"
        sums = b"".join(hashlib.md5(upload[1][int(number)]).digest() for number, *_ in named)
        s.objects[self.key] = (data, etag_of(sums)[:-1] + f'-{len(named)}"')
        return 200, b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>", {"Content-Type": "application/xml"}

    def delete(self, s):
        gone = s.uploads.pop(self.query["uploadId"], None) if "uploadId" in self.query else s.objects.pop(self.key, None)
        if gone is None and s.strict:
            raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
        return 204, b"", {}


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


def etag_of(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def crc32c_of(data):
    return base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()


class Connections(ThreadingHTTPServer):
    """Counts those whose requests may still be answered."""

    daemon_threads = True

    def __init__(self, *args):
        super().__init__(*args)
        self.open, self.changed = 0, threading.Condition()

    def count(self, n):
        with self.changed:
            self.open += n
            self.changed.notify_all()

    def process_request(self, *args):
        self.count(+1)
        super().process_request(*args)

    def process_request_thread(self, *args):
        try:
            super().process_request_thread(*args)
        finally:
            self.count(-1)

    def handle_error(self, *_):
        """Somebody who was killed hears no answer."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*_)


class Server:
    """`objects` maps keys to (bytes, ETag), `times` those that were put to seconds; `asked` lists (method, key, range, query) of all requests."""

    def __init__(self, bucket="bucket", signed=True, **more):
        self.bucket, self.signed = bucket, signed
        self.key, self.secret, self.token, self.region = KEY, SECRET, None, "us-east-1"
        self.ranges, self.page, self.hides_absent, self.conditional = True, 1000, False, True
        self.quote = urllib.parse.quote  # or quote_plus: how listings encode names
        self.strict = False  # to delete what is not there is an error
        self.hidden = set()  # headers that answers lack, as those of some servers do
        self.fault = None  # called with the handler; "done": it has answered, or will not
        self.folders = set()  # that the server keeps, and lists, without objects: "out.zarr/g/"
        self.sums, self.summed = {}, []  # what the server keeps of objects; (kind, key) of what came with a checksum
        self.objects, self.times, self.uploads, self.counter, self.asked = {}, {}, {}, 0, []
        self.lock = threading.RLock()
        self.__dict__.update(more)
        self.http = Connections(("127.0.0.1", 0), Handler)
        self.http.state = self
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True, kwargs={"poll_interval": 0.05}).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def settle(self):
        """Waits until all is answered that those who are gone have asked."""
        with socket.create_connection(self.http.server_address) as last:
            last.shutdown(socket.SHUT_WR)
            assert last.recv(1) == b""  # those that came before it are counted
        with self.http.changed:
            assert self.http.changed.wait_for(lambda: self.http.open == 0, 300), "somebody is still there"

    def kill(self, run):
        run.kill()
        run.communicate()
        self.fault = None
        self.settle()

    def put_folder(self, folder, prefix):
        for path in folder.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                self.objects[f"{prefix}/{path.relative_to(folder)}"] = (data, etag_of(data))

    def get_folder(self, prefix, folder):
        for key, (data, _) in self.objects.items():
            if key.startswith(prefix + "/"):
                path = folder / key[len(prefix) + 1 :]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        return folder

    def keys(self, prefix=""):
        return sorted(k for k in self.objects if k.startswith(prefix))

    def environment(self, **more):
        """Environment for AWS's tools; removes the machine's own settings."""
        names = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": self.region,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/nonexistent",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        } | more
        return {k: v for k, v in names.items() if v is not None}


def lose_answers(server, kind_of):
    """The server does what the first request of each kind asks, and nobody hears of it; the set of those kinds.  None: of no kind."""
    lost = set()

    def lose(handler):
        kind = kind_of(handler)
        if kind is None or kind in lost:
            return None
        lost.add(kind)
        with contextlib.suppress(Refusal):
            handler.answer(server)
        handler.connection.shutdown(2)
        handler.close_connection = True
        return "done"

    server.fault = lose
    return lost


def faults_of(server, share, seed=1):
    """Each request in turn meets a fault with the probability SHARE; what they were."""
    chance, met = random.Random(seed), []
    kinds = ("500", "503", "reset", "cut", "slow down in a 200", "late")

    def fault(handler):
        if chance.random() >= share:
            return None
        kind = chance.choice(kinds)
        if kind == "slow down in a 200" and not server.signed:
            return None
        met.append(kind)
        if kind in ("500", "503"):
            handler.reply(int(kind), b"<Error><Code>InternalError</Code></Error>", {})
        elif kind == "slow down in a 200":
            handler.reply(200, b"<?xml version='1.0'?><Error><Code>SlowDown</Code></Error>", {"Content-Type": "application/xml"})
        elif kind == "reset":
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            handler.connection.close()
            handler.close_connection = True
        elif kind == "cut":
            handler.send_response(200)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
            handler.wfile.write(b"x" * 1000)
            handler.wfile.flush()
            handler.connection.shutdown(2)
            handler.close_connection = True
        else:
            time.sleep(0.05)
            return None
        return "done"

    server.fault = fault
    return met


def wait_until(true, seconds=300):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def kill_at(bucket, nth, done, *command, program="nc2zarr"):
    """A program is killed when the Nth request that writes has come, which the server has DONE, or never does.

    (exit status, keys of the requests that write, standard error)
    """
    writes, run, started = [], [], threading.Event()

    def fault(handler):
        if handler.command not in ("PUT", "POST", "DELETE"):
            return None
        writes.append(handler.key)
        if len(writes) != nth:
            return None if len(writes) < nth else "done"
        if done:
            with contextlib.suppress(Refusal):
                handler.answer(bucket)
        started.wait(300)
        run[0].kill()
        handler.close_connection = True
        return "done"

    bucket.fault = fault
    run.append(subprocess.Popen([tool.program(program), *map(str, command)], env=tool.environment(bucket.environment()), stderr=subprocess.PIPE))
    started.set()
    err = run[0].communicate(timeout=300)[1]
    bucket.fault = None
    bucket.settle()
    return run[0].returncode, writes, err
