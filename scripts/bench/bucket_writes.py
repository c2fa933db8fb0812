"""
bucket_writes.py BUILD SOURCE HTTP_LOOP [--sink HTTP_SINK] [--url URL] [--rounds N] -- nc2zarr|rechunk [OPTION...]

Writing into a bucket: a conversion of SOURCE into it, and a bare loop of libcurl that PUTs the same objects (from files
in memory), in turn, against HTTP_SINK, which forgets what it gets, or the server at URL, whose bucket is `bench` and
whose keys are in the environment.  What the conversion itself takes is the same one into a folder in memory, less a
copy of that folder by rechunk, which passes stored bytes on: both write the same files by the same code.  The rest of
the CPU is reading objects and sending them, as the loop does.  Prints medians of seconds and CPU seconds of the
client, and of the ratios round by round.
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

sys.path.insert(0, str(Path(__file__).resolve().parent))
import measure  # noqa: E402

KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1"}


def run(argv, stdin=None, env=None):
    """Seconds and CPU seconds, the program's own where it prints them."""
    begun = time.perf_counter()
    child = subprocess.Popen([str(a) for a in argv], stdin=stdin, stdout=subprocess.PIPE, env=env)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{argv}: exit status {child.returncode}")
    if argv[0].name == "http_loop":
        seconds = json.loads(out)["seconds"]
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "switches": usage.ru_nvcsw}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "source", "loop", "command"):
        parser.add_argument(name, nargs="+" if name == "command" else None)
    parser.add_argument("--sink")
    parser.add_argument("--url")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--in-flight", type=int, default=16)
    o = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-writes-", dir="/dev/shm"))
    program, *options = o.command
    written, server, port = 0, None, random.randrange(20000, 30000)
    if o.sink:
        server = subprocess.Popen([o.sink, str(port)])
        o.url = f"http://127.0.0.1:{port}"
        time.sleep(0.3)
    env = {**KEYS, **os.environ, "AWS_ENDPOINT_URL": o.url, "AWS_EC2_METADATA_DISABLED": "true"}

    def tool(name, *args):
        return run([Path(o.build) / "bin" / name, "-q", "--overwrite", "--verify", "none", *args], env=env)

    def convert(target):
        return tool(program, *options, o.source, target)

    def bucket():  # nothing to remove
        nonlocal written
        written += 1
        return convert(f"s3://bench/{folder.name}-{written}.zarr")

    def copy():
        return tool("rechunk", folder / "out.zarr", folder / "copy.zarr")

    def put():
        with open(folder / "list") as names:
            return run([Path(o.loop).resolve(), "-p", o.in_flight], stdin=names, env=env)

    try:
        convert(folder / "out.zarr")
        files = [p for p in (folder / "out.zarr").rglob("*") if p.is_file()]
        (folder / "list").write_text("".join(f"{p}\t{o.url}/bench/{folder.name}/{p.relative_to(folder)}\n" for p in files))
        nbytes = sum(p.stat().st_size for p in files)
        contenders = {"bucket": bucket, "loop": put, "folder": lambda: convert(folder / "out.zarr"), "copy": copy}
        rows = {k: [] for k in contenders}
        for i in range(o.rounds + 1):
            for k, go in contenders.items():
                row = go()
                if i > 0:
                    rows[k].append(row)
    finally:
        if server is not None:
            server.terminate()
            server.wait()
        measure.remove(folder)
    print(f"{program} {' '.join(options)}: {len(files)} objects, {nbytes / 2**20:.1f} MiB")
    for k, all_of in rows.items():
        t, c, s = ([r[w] for r in all_of] for w in ("seconds", "cpu", "switches"))
        print(f"  {k:8s} {statistics.median(t):7.3f} s  CPU {statistics.median(c):6.3f} s ({min(c):.3f} to {max(c):.3f})  {statistics.median(s) / len(files):.1f} waits an object")
    by_round = list(zip(*rows.values()))
    whole = [b["cpu"] / p["cpu"] for b, p, _, _ in by_round]
    sending = [(b["cpu"] - max(0, f["cpu"] - c["cpu"])) / p["cpu"] for b, p, f, c in by_round]
    seconds = [b["seconds"] / p["seconds"] for b, p, _, _ in by_round]
    print(f"  bucket / loop: seconds {statistics.median(seconds):.2f}, CPU {statistics.median(whole):.2f}, CPU without the conversion {statistics.median(sending):.2f}")


main()
