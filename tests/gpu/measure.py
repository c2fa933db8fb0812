"""Everything that is to be known of one machine with a GPU, in one call.

    python3 measure.py BUNDLE LOGS [--nvcomp FILE] [--quick] [--peers]

BUNDLE is what `make bundle` made, LOGS a folder for the logs.  Makes inputs in a temporary
folder (5 GB, with --quick 50 MB), runs the tests of the device, then readbench in its ways
of staging and decoding, and nc2zarr, rechunk and readbench from one thread to all.  A line
for each figure is printed, and at the end what failed; measure.json has all of it.  Needs
numpy; --peers measures PyTorch's pinned loader too, over the very bytes of the
uncompressed store that readbench reads, one sample a chunk.
"""

import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

NLAT, NLON = 721, 1440
LEAST_OF_PLAIN = 0.95  # of a plain page-locked copy, warm


class Run:
    def __init__(self, bundle, logs):
        self.bundle, self.logs = bundle, logs
        self.figures, self.failed = {}, []
        self.count = 0

    def tell(self, name, value, unit="", ok=True):
        self.figures[name] = value
        shown = f"{value:.4g}" if isinstance(value, float) else value
        print(f"{'' if ok else 'FAILED  '}{name}: {shown} {unit}".rstrip(), flush=True)
        if not ok:
            self.failed.append(name)

    def command(self, *words, status=0, timeout=300):
        """Its standard output; the log has both.  Another status is told, and gives None."""
        self.count += 1
        words = [str(w) for w in words]
        begun = time.monotonic()
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            self.tell(" ".join(words[-3:]), f"took more than {timeout} s", ok=False)
            return None
        seconds = time.monotonic() - begun
        log = self.logs / f"{self.count:03d}-{Path(words[0]).name}.log"
        log.write_text(f"{' '.join(words)}\n{seconds:.3f} s, status {done.returncode}\n{done.stdout}\n{done.stderr}")
        if done.returncode != status:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no words"]
            self.tell(f"{Path(words[0]).name} ({log.name})", last[0], ok=False)
            return None
        return done.stdout

    def program(self, name, *words, **options):
        return self.command(self.bundle / "bin" / name, *words, **options)

    def seconds(self, name, *words):
        begun = time.monotonic()
        done = self.program(name, *words)
        return None if done is None else time.monotonic() - begun

    def readbench(self, store, *words, **options):
        out = self.program("readbench", "--no-out", "--json", *words, store, **options)
        return None if out is None else json.loads(out)["sessions"][0]


def write_input(path, ntime):
    """A CDF-5 file of one variable, smooth fields with noise in the last bits."""
    align = lambda b: b + bytes(-len(b) % 4)
    name = lambda s: struct.pack(">q", len(s)) + align(s.encode())
    dims = [("time", ntime), ("lat", NLAT), ("lon", NLON)]
    head = b"CDF\x05" + struct.pack(">q", 0)
    head += struct.pack(">iq", 10, 3) + b"".join(name(n) + struct.pack(">q", size) for n, size in dims)
    head += struct.pack(">iq", 0, 0) + struct.pack(">iq", 11, 1) + name("t")
    head += struct.pack(">q3q", 3, 0, 1, 2) + struct.pack(">iq", 0, 0)
    nbytes = 4 * ntime * NLAT * NLON
    head += struct.pack(">iqq", 5, nbytes, len(head) + 20)
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:NLAT, 0:NLON].astype(np.float32)
    noise = rng.integers(0, 1 << 9, (NLAT, NLON), dtype=np.uint32)
    with open(path, "wb") as f:
        f.write(head)
        for t in range(ntime):
            field = 280 + 20 * np.sin(y / 115 + t / 40) + 8 * np.cos(x / 60 - t / 9) + 3 * np.sin((x + y) / 17)
            bits = field.astype(np.float32).view(np.uint32) & ~np.uint32(0x1FF) | np.roll(noise, 7 * t, 1)
            f.write(bits.view(np.float32).astype(">f4").tobytes())


def device_tests(run):
    for test in ("test_device", "test_stage", "test_decode"):
        done = run.command(run.bundle / "tests/gpu" / test)
        if done is not None:
            log = run.logs / f"{run.count:03d}-{test}.log"
            text = log.read_text()
            skipped = len(set(re.findall(r"SKIPPED +\] (cuda: .*)", text)))
            run.tell(f"{test}: passed, of cuda skipped", f"{text.count('OK ]')}, {skipped}", ok=skipped == 0)


def staging(run, store, sample, batches):
    """Pinned and pageable, overlapped and not; then all of the batches are compared, twice."""
    common = ["--sample", sample, "--order", "all", "--batch", 32, "--batches", batches, "--warm", "--device", "cuda"]
    rates = {}
    for kind in ("pinned", "pageable"):
        for overlap in (True, False):
            words = [*common, "--step-time", "0ms", "--validate", "none", "--epochs", 2, "--staging", kind]
            s = run.readbench(store, *words, *([] if overlap else ["--no-overlap"]))
            if s is None:
                continue
            d = s["device"]
            name = f"{kind}, {'overlapped' if overlap else 'one after the other'}"
            run.tell(f"staged {name}", d["copied"] / 1e9, "GB/s while copying")
            run.tell(f"delivered {name}", s["rates"]["logical"] / 1e9, "GB/s")
            rates[kind] = d["copied"]
            if kind == "pinned" and overlap:
                run.tell("plain page-locked copy", d["link_pinned"] / 1e9, "GB/s")
                run.tell("plain pageable copy", d["link_pageable"] / 1e9, "GB/s")
                share = d["copied"] / d["link_pinned"]
                run.tell("staged over plain page-locked copy", share, ok=share >= LEAST_OF_PLAIN)
    if len(rates) == 2:
        run.tell("pinned over pageable", rates["pinned"] / rates["pageable"])
    s = run.readbench(store, *common, "--step-time", "20ms", "--validate", "none")
    if s is not None:
        run.tell("copying during steps of 20 ms", s["device"]["overlap"])
    for how in ("full", "checksum"):
        s = run.readbench(store, *common, "--step-time", "0ms", "--validate", how, "--epochs", 1, timeout=600)
        if s is not None:
            v = s["validation"]
            run.tell(f"bytes compared, {how}", v["nbytes"] / 1e9, "GB")
            run.tell(f"differences, {how}", v["mismatches"], ok=v["mismatches"] == 0)


def decoding(run, stores, sample, batches, nvcomp):
    library = ["--nvcomp", nvcomp] if nvcomp else []
    for name, store in stores.items():
        common = ["--sample", sample, "--order", "all", "--batch", 32, "--batches", batches, "--warm", "--device", "cuda"]
        common += ["--step-time", "0ms", "--epochs", 2]
        for where in ("host", "device"):
            words = [*common, "--decode", where, *(library if where == "device" else [])]
            s = run.readbench(store, *words, timeout=600)
            if s is None:
                continue
            run.tell(f"{name}, decoded by the {where}", s["rates"]["logical"] / 1e9, "GB/s delivered")
            run.tell(f"{name}, {where}: differences", s["validation"]["mismatches"], ok=s["validation"]["mismatches"] == 0)
            if where == "device":
                d = s["device"]["decode"]
                run.tell(f"{name}: {d['library']}", d["device"] / 1e9, "GB/s of chunks decoded")
                run.tell(f"{name}: with the copying", d["path"] / 1e9, "GB/s of chunks")
                run.tell(f"{name}: {d['cpus']} CPUs", d["host"] / 1e9, "GB/s of chunks decoded")
                run.tell(f"{name}: CPUs that would do as much", d["cpus_alike"])
                run.tell(f"{name}: GPUDirect Storage", d["gpudirect"])


def scaling(run, work, source, stores, sample, batches):
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= len(os.sched_getaffinity(0))]
    first = {}
    for n in counts:
        seconds = {
            "nc2zarr": run.seconds("nc2zarr", "-q", "--overwrite", "--verify", "none", "-j", n, "--chunks",
                                   "time=16,lat=128,lon=128", "--codec", "blosc:zstd:2:shuffle", source, work / "n.zarr"),
            "rechunk": run.seconds("rechunk", "-q", "--overwrite", "-j", n, "--chunks", "t:time=full,lat=32,lon=32",
                                   stores["blosc-zstd"], work / "r.zarr"),
        }
        s = run.readbench(stores["blosc-zstd"], "--sample", sample, "--order", "all", "--batch", 32, "--batches",
                          batches, "--warm", "--step-time", "0ms", "--workers", n, "--worker-threads", 1)
        seconds["readbench"] = s and s["counts"]["logical_nbytes"] / s["rates"]["logical"]
        for name, value in seconds.items():
            if value:
                first.setdefault(name, value)
                run.tell(f"{name}, {n} threads", value, f"s, {first[name] / value:.2f} times one")


def pinned_loader(run, store, batches, workers):
    """DataLoader(pin_memory=True) over the uncompressed chunks of STORE, read with numpy."""
    import torch  # only here: a machine without it has no peer

    files = sorted(Path(store, "t/c").rglob("*"))
    files = [f for f in files if f.is_file()][: 32 * batches]

    class Chunks(torch.utils.data.Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, i):
            return torch.from_numpy(np.fromfile(files[i], dtype="<f4"))

    loader = torch.utils.data.DataLoader(
        Chunks(), batch_size=32, num_workers=workers, pin_memory=True, persistent_workers=True
    )
    best = 0
    for _ in range(3):
        begun, nbytes = time.monotonic(), 0
        for batch in loader:
            nbytes += batch.to("cuda", non_blocking=True).nbytes
        torch.cuda.synchronize()
        best = max(best, nbytes / (time.monotonic() - begun))
    run.tell(f"torch {torch.__version__} DataLoader, pin_memory, {workers} workers", best / 1e9, "GB/s delivered, best of 3")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("logs", type=Path)
    parser.add_argument("--nvcomp")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peers", action="store_true")
    given = parser.parse_args()
    given.logs.mkdir(parents=True, exist_ok=True)
    run = Run(given.bundle.resolve(), given.logs)
    work = Path(tempfile.mkdtemp(prefix="chunkmill-gpu-"))
    ntime, batches = (12, 2) if given.quick else (1280, 480)
    sample = "time=1,lat=240,lon=360"
    try:
        run.tell("CPUs", len(os.sched_getaffinity(0)))
        device_tests(run)
        source = work / "in.nc"
        write_input(source, ntime)
        stores = {}
        codecs = {"plain": "none", "blosc-zstd": "blosc:zstd:2:shuffle", "blosc-lz4": "blosc:lz4:5:shuffle",
                  "zstd": "zstd:1", "gzip": "gzip:1"}
        for name, codec in codecs.items():
            store = work / f"{name}.zarr"
            if run.program("nc2zarr", "-q", "--verify", "none", "--chunks", "time=1,lat=240,lon=360", "--codec", codec,
                           source, store) is not None:
                stores[name] = store
        staging(run, stores["plain"], sample, batches)
        decoding(run, stores, sample, batches, given.nvcomp)
        if given.peers:
            pinned_loader(run, stores["plain"], batches, len(os.sched_getaffinity(0)))
        scaling(run, work, source, stores, sample, batches)
    finally:
        shutil.rmtree(work)
        (given.logs / "measure.json").write_text(json.dumps(run.figures, indent=1))
    print("failed:", ", ".join(run.failed) if run.failed else "nothing")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
