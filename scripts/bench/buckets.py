"""
buckets.py BUILD STORE ARRAY HTTP_LOOP [--pairs N] [--cases 0:8,20:32]

Reading random chunks of a bucket: readbench, a bare loop of libcurl whose bytes all cores decode, tensorstore, and
zarr-python over obstore, in turn, with so many requests in flight at so much latency (milliseconds).  The server is
nginx over the folder STORE, which takes every signature and waits before each answer (libnginx-mod-http-echo).
Prints for each case the medians of seconds and CPU seconds, and the ratios run by run.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import measure  # noqa: E402

KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}


class Server:
    """The bucket `bench`, whose prefix is ROOT; port P answers at once, P + 1 after so many milliseconds."""

    def __init__(self, root, port, ms):
        self.folder = Path(tempfile.mkdtemp(prefix="bench-nginx-"))
        f = self.folder
        (f / "www").mkdir()
        (f / "www" / "bench").symlink_to(root)
        temporary = "".join(f"{k}_temp_path {f}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;" if os.geteuid() == 0 else ""
        common = f"root {f}/www; keepalive_requests 1000000; location = /bench {{ return 501; }}"  # nobody lists
        (f / "nginx.conf").write_text(
            f"load_module modules/ngx_http_echo_module.so; {user} daemon off; worker_processes 1; pid {f}/pid; error_log {f}/log;"
            f" events {{ worker_connections 2048; }} http {{ access_log off; sendfile on; tcp_nopush on; open_file_cache max=10000; {temporary}"
            f" server {{ listen 127.0.0.1:{port}; {common} }}"
            f" server {{ listen 127.0.0.1:{port + 1}; {common} location @now {{ }}"
            f" location / {{ echo_sleep {ms / 1000}; echo_exec @now; }} }} }}"
        )
        self.urls = {0: f"http://127.0.0.1:{port}", ms: f"http://127.0.0.1:{port + 1}"}
        self.process = subprocess.Popen(["/usr/sbin/nginx", "-e", f / "log", "-c", f / "nginx.conf", "-p", "/usr/share/nginx"], cwd=f)
        time.sleep(1)

    def close(self):
        self.process.terminate()
        self.process.wait()
        measure.remove(self.folder)


def run(argv, text, env):
    done = subprocess.run([str(a) for a in argv], input=text, capture_output=True, text=True, env={**os.environ, **KEYS, **env})
    if done.returncode != 0:
        raise RuntimeError(f"{argv}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def ours(build, url, store, in_flight, epochs):
    # Two sizes of run: what setting up takes falls out.
    def once(n):
        argv = [build / "bin" / "readbench", "-q", "--json", "--no-out", "--step-time", "0ms", "--order", "chunks", "--batch", BATCH, "--batches", NCHUNKS // BATCH,
                *WORKERS, "--concurrency", in_flight, "--epochs", n, f"s3://bench/{store}"]  # fmt: skip
        (session,) = run(argv, None, {"AWS_ENDPOINT_URL": url})["sessions"]
        assert session["counts"]["missing_chunks"] == 0 and session["counts"]["samples"] == NCHUNKS * n, session["counts"]
        return session

    long, short = once(epochs + 1), once(1)
    return {"seconds": long["training"]["later_epoch_seconds"] * epochs, "cpu": long["resources"]["cpu_seconds"] - short["resources"]["cpu_seconds"]}


def main():
    global NCHUNKS, BATCH, WORKERS
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "store", "array", "loop"):
        parser.add_argument(name)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0, help="with as many threads as requests in flight; 0: as readbench chooses")
    parser.add_argument("--cases", default="0:8,0:32,0:128,20:8,20:32,20:128")
    parser.add_argument("--only", default="ours,bare,bytes,tensorstore,zarr")
    o = parser.parse_args()
    store = Path(o.store).resolve()
    meta = json.loads((store / o.array / "zarr.json").read_text())
    NCHUNKS, BATCH = meta["shape"][0], o.batch
    nbytes = meta["shape"][1] * meta["shape"][2] * 4
    numbers = list(range(NCHUNKS)) * o.epochs
    random.Random(1).shuffle(numbers)
    server = Server(store.parent, random.randrange(20000, 30000), 20)
    python = os.environ.get("BENCH_PYTHON", sys.executable)
    try:
        for case in o.cases.split(","):
            ms, n = map(int, case.split(":"))
            WORKERS = ["--workers", o.workers, "--worker-threads", max(1, n // o.workers)] if o.workers else []
            url, path = server.urls[ms], f"{store.name}/{o.array}/"
            env = {"AWS_ENDPOINT_URL": url}
            urls = "".join(f"{url}/bench/{path}c/{k}/0/0\n" for k in numbers)
            text = " ".join(map(str, numbers))
            contenders = {
                "ours": lambda: ours(Path(o.build), url, store.name, n, o.epochs),
                "bare": lambda: run([o.loop, "-j", os.cpu_count(), "-n", nbytes, n], urls, env),
                "bytes": lambda: run([o.loop, n], urls, env),
                "tensorstore": lambda: run([python, HERE / "peer_bucket.py", "tensorstore", url, path, n], text, env),
                "zarr": lambda: run([python, HERE / "peer_bucket.py", "zarr", url, path, n], text, env),
            }
            contenders = {k: v for k, v in contenders.items() if k in o.only.split(",")}
            rows = {k: [] for k in contenders}
            for _ in range(o.pairs):
                for k, go in contenders.items():
                    rows[k].append(go())
            print(f"{ms} ms, {n} in flight:")
            for k, all_of in rows.items():
                t, c = ([r[w] for r in all_of] for w in ("seconds", "cpu"))
                times = statistics.median(a / b["seconds"] for a, b in zip(t, rows["ours"]))
                cpus = statistics.median(a / b["cpu"] for a, b in zip(c, rows["ours"]))
                print(f"  {k:12s} {statistics.median(t):7.2f} s ({min(t):.2f} to {max(t):.2f})  CPU {statistics.median(c):6.2f} s   / ours: {times:.2f} in time, {cpus:.2f} in CPU", flush=True)
    finally:
        server.close()


main()
