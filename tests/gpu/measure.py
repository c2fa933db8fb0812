"""Everything that is to be known of one machine with a GPU, in one call for each part.

    python3 measure.py BUNDLE LOGS [PART...] [--work FOLDER] [--quick]

BUNDLE is what `make bundle` made, LOGS a folder for the logs.  Parts, each of which takes less than
ten minutes on 16 CPUs; all of them where none is named:

    tests     the tests of the device: flips that are injected, a thousand opens, no room
    staging   pinned and pageable copies against a plain one, overlap, 10 GB compared
    limits    what is said with an old driver, a full device
    peers     PyTorch's pinned loader and kvikio, over the very bytes of the uncompressed store
    scaling   nc2zarr, rechunk and readbench from one thread to all, beside bare loops

Inputs (5 GB, with --quick 50 MB, and as much again for each codec) are made in the work folder, by
default a temporary one, and are there for the next call where one is given.  A line for each figure
is printed, at the end a table of them, and what failed; LOGS/PART.json and PART.md have them too.
Needs numpy.
"""

import argparse
import ctypes
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

try:
    import numpy as np
except ImportError:
    np = None  # --help needs none

NLAT, NLON = 721, 1440
CHUNK = (1, 240, 360)
LEAST_OF_PLAIN = 0.95  # of a plain page-locked copy, warm
BATCH = 32
CODECS = {"plain": "none", "blosc-zstd": "blosc:zstd:2:shuffle"}


class Run:
    def __init__(self, given, part):
        self.bundle, self.logs = given.bundle.resolve(), given.logs / part
        self.quick, self.part = given.quick, part
        self.rows, self.failed = [], []
        self.count = 0
        self.logs.mkdir(parents=True, exist_ok=True)
        self.cpus = len(os.sched_getaffinity(0))
        self.ntime = 12 if self.quick else 1280
        self.sample = ",".join(f"{name}={n}" for name, n in zip(("time", "lat", "lon"), CHUNK))
        self.batches = self.ntime * 4 * 4 // BATCH if self.ntime * 16 < 480 * BATCH else 480

    def tell(self, name, value, unit="", ok=True):
        self.rows.append({"what": name, "value": value, "unit": unit, "ok": ok})
        shown = f"{value:.4g}" if isinstance(value, float) else value
        print(f"{'' if ok else 'FAILED  '}{name}: {shown} {unit}".rstrip(), flush=True)
        if not ok:
            self.failed.append(name)
        # At once: a call that runs into its limit is ended from outside.
        self.logs.with_suffix(".json").write_text(json.dumps(self.rows, indent=1))
        self.logs.with_suffix(".md").write_text(self.table())

    def log(self, name, text):
        self.count += 1
        (self.logs / f"{self.count:03d}-{name}.log").write_text(text)

    def command(self, *words, status=0, timeout=300, environment=None):
        """Its standard output; the log has both.  Another status is told, and gives None."""
        done = self.attempt(*words, timeout=timeout, environment=environment)
        if done is None:
            return None
        if done.returncode != status:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no words"]
            self.tell(f"{Path(words[0]).name} ({self.count:03d})", last[0], ok=False)
            return None
        return done.stdout

    def attempt(self, *words, timeout=300, environment=None):
        words = [str(w) for w in words]
        begun = time.monotonic()
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False,
                                  env={**os.environ, **(environment or {})})
        except subprocess.TimeoutExpired:
            self.tell(" ".join(words[-3:]), f"took more than {timeout} s", ok=False)
            return None
        seconds = time.monotonic() - begun
        self.log(Path(words[0]).name,
                 f"{' '.join(words)}\n{seconds:.3f} s, status {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def program(self, name, *words, **options):
        return self.command(self.bundle / "bin" / name, *words, **options)

    def seconds(self, name, *words):
        begun = time.monotonic()
        done = self.program(name, *words)
        return None if done is None else time.monotonic() - begun

    def readbench(self, store, *words, **options):
        out = self.program("readbench", "--no-out", "--json", *words, store, **options)
        return None if out is None else json.loads(out)["sessions"][0]

    def table(self):
        lines = ["| | | |", "| --- | ---: | --- |"]
        for row in self.rows:
            value = f"{row['value']:.4g}" if isinstance(row["value"], float) else row["value"]
            verdict = "" if row["ok"] else " **failed**"
            lines.append(f"| {row['what']} | {value} | {row['unit']}{verdict} |")
        return "\n".join(lines) + "\n"


# ---- inputs --------------------------------------------------------------------------------------


def data_begin(ntime):
    return len(header(ntime))


def header(ntime):
    def align(b):
        return b + bytes(-len(b) % 4)

    def name(s):
        return struct.pack(">q", len(s)) + align(s.encode())

    dims = [("time", ntime), ("lat", NLAT), ("lon", NLON)]
    head = b"CDF\x05" + struct.pack(">q", 0)
    head += struct.pack(">iq", 10, 3) + b"".join(name(n) + struct.pack(">q", size) for n, size in dims)
    head += struct.pack(">iq", 0, 0) + struct.pack(">iq", 11, 1) + name("t")
    head += struct.pack(">q3q", 3, 0, 1, 2) + struct.pack(">iq", 0, 0)
    return head + struct.pack(">iqq", 5, 4 * ntime * NLAT * NLON, len(head) + 20)


def write_input(path, ntime):
    """A CDF-5 file of one variable, smooth fields with noise in the last bits."""
    rng = np.random.default_rng(1)
    y, x = np.arange(NLAT, dtype=np.float32)[:, None], np.arange(NLON, dtype=np.float32)[None, :]
    still = 280 + 3 * np.sin((x + y) / 17)
    noise = rng.integers(0, 1 << 9, (NLAT, NLON), dtype=np.uint32)
    with open(f"{path}.part", "wb") as f:
        f.write(header(ntime))
        for t in range(ntime):
            field = still + 20 * np.sin(y / 115 + t / 40) + 8 * np.cos(x / 60 - t / 9)
            bits = field.astype(np.float32).view(np.uint32) & ~np.uint32(0x1FF) | np.roll(noise, 7 * t, 1)
            f.write(bits.astype(">u4").tobytes())
    os.rename(f"{path}.part", path)


def make_input(run, work):
    source = work / f"in-{run.ntime}.nc"
    if not source.exists():
        write_input(source, run.ntime)
    return source


def make_stores(run, work, names):
    """The store of each codec that is there, or could be made."""
    stores = {}
    chunks = ",".join(f"{name}={n}" for name, n in zip(("time", "lat", "lon"), CHUNK))
    for name in names:
        store = work / f"{name}-{run.ntime}.zarr"
        done = store.with_suffix(".done")
        if not done.exists():
            made = run.program("nc2zarr", "-q", "--overwrite", "--verify", "none", "--chunks", chunks, "--codec",
                               CODECS[name], make_input(run, work), store)
            if made is None:
                continue
            done.touch()
        stores[name] = store
    return stores


# ---- tests ---------------------------------------------------------------------------------------

WANTED = ("every flip is caught", "a thousand opens", "out of memory", "buffers are poisoned")


def part_tests(run, work):
    for test in ("test_device", "test_stage"):
        done = run.attempt(run.bundle / "tests/gpu" / test, timeout=600)
        if done is None:
            continue
        text = done.stdout + done.stderr
        verdicts = {}
        for verdict, name in re.findall(r"\[ +(OK|FAILED|SKIPPED|ERROR) +\] (.*)", text):
            verdicts[name.strip()] = verdict
        cuda = {name: verdict for name, verdict in verdicts.items() if name.startswith("cuda: ")}
        run.tell(f"{test}: passed", sum(v == "OK" for v in verdicts.values()), f"of {len(verdicts)}", done.returncode == 0)
        # Some need a stand-in that can be told to fail.  Without a device all of them skip.
        passed, skipped = (sum(v == verdict for v in cuda.values()) for verdict in ("OK", "SKIPPED"))
        run.tell(f"{test}: of cuda", passed, f"of {len(cuda)}, {skipped} need a stand-in",
                 passed > 0 and passed + skipped == len(cuda))
        for name in WANTED:
            verdict = cuda.get(f"cuda: {name}", "SKIPPED")
            if verdict != "SKIPPED":
                run.tell(f"{test}, cuda: {name}", verdict, ok=verdict == "OK")


# ---- staging -------------------------------------------------------------------------------------


def common_words(run):
    return ["--sample", run.sample, "--order", "all", "--batch", BATCH, "--batches", run.batches, "--warm", "--device",
            "cuda"]


def describe_machine(run, session):
    d = session["device"]
    for name in ("name", "driver", "link"):
        run.tell(f"device: {name}", d.get(name) or "not told")
    if (d.get("name") or "").startswith("fake"):
        run.tell("a stand-in for the driver", "no figure of this run means anything", ok=True)


def part_staging(run, work):
    store = make_stores(run, work, ["plain"]).get("plain")
    if store is None:
        return
    common = common_words(run)
    rates = {}
    for kind in ("pinned", "pageable"):
        for overlap in (True, False):
            words = [*common, "--step-time", "0ms", "--validate", "none", "--epochs", 2, "--staging", kind]
            s = run.readbench(store, *words, *([] if overlap else ["--no-overlap"]))
            if s is None:
                continue
            d = s["device"]
            if not rates:
                describe_machine(run, s)
            name = f"{kind}, {'overlapped' if overlap else 'one after the other'}"
            run.tell(f"staged {name}", d["copied"] / 1e9, "GB/s while copying")
            run.tell(f"delivered {name}", s["rates"]["logical"] / 1e9, "GB/s")
            rates[kind] = d["copied"]
            if kind == "pinned" and overlap:
                run.tell("plain page-locked copy", d["link_pinned"] / 1e9, "GB/s")
                run.tell("plain pageable copy", d["link_pageable"] / 1e9, "GB/s")
                share = d["copied"] / d["link_pinned"]
                run.tell("staged over plain page-locked copy", share, f"at least {LEAST_OF_PLAIN}",
                         ok=share >= LEAST_OF_PLAIN)
    if len(rates) == 2:
        run.tell("pinned over pageable", rates["pinned"] / rates["pageable"])
    s = run.readbench(store, *common, "--step-time", "20ms", "--validate", "none", "--batches", 60)
    if s is not None:
        run.tell("copying during steps of 20 ms", s["device"]["overlap"])
    compared = 0
    for how, kind in (("full", "pinned"), ("full", "pageable"), ("checksum", "pinned")):
        s = run.readbench(store, *common, "--step-time", "0ms", "--validate", how, "--epochs", 1, "--staging", kind,
                          timeout=500)
        if s is not None:
            v = s["validation"]
            compared += v["nbytes"]
            run.tell(f"differences, {how}, {kind}", v["mismatches"], f"in {v['nbytes'] / 1e9:.4g} GB",
                     ok=v["mismatches"] == 0)
    run.tell("bytes compared", compared / 1e9, "GB, at least 10", ok=run.quick or compared >= 10e9)


# ---- limits --------------------------------------------------------------------------------------


def free_memory():
    """All of device 0 but a little taken by this process; None where that cannot be done."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    context, device = ctypes.c_void_p(), ctypes.c_int()
    free, total, address = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
    names = ("cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemGetInfo_v2", "cuMemAlloc_v2")
    if not all(hasattr(cuda, name) for name in names):
        return None
    name = ctypes.create_string_buffer(256)
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0) or cuda.cuDeviceGetName(name, 256, device):
        return None
    if name.value.startswith(b"fake"):  # its memory is each process's own
        return None
    if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) or cuda.cuCtxSetCurrent(context):
        return None
    left = 0
    while cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0:
        left = free.value
        if left < 700 << 20 or cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(left - (600 << 20))):
            break
    return left


def sentence(run, name, status, says, *words, environment=None):
    done = run.attempt(run.bundle / "bin/readbench", "--no-out", *words, environment=environment)
    if done is None:
        return
    last = (done.stderr.strip().splitlines() or ["no words"])[-1]
    run.tell(name, last, ok=done.returncode == status and any(s in last for s in says))


def part_limits(run, work):
    store = make_stores(run, work, ["plain"]).get("plain")
    if store is None:
        return
    words = ["--sample", run.sample, "--batch", BATCH, "--batches", 4, "--step-time", "0ms", "--device", "cuda"]
    lib = run.bundle / "tests/lib"
    folder = work / "old-driver"  # a stand-in for one of CUDA 10.2, under the name that is looked for
    folder.mkdir(exist_ok=True)
    shutil.copy(lib / "fake_cuda_9.so", folder / "libcuda.so.1")
    sentence(run, "with an old driver", 1, ["too old"], *words, store, environment={"LD_LIBRARY_PATH": str(folder)})
    sentence(run, "with a device that is not there", 1, ["cuda:63", "device"], *words[:-1], "cuda:63", store)
    left = free_memory()
    if left is None:
        run.tell("with a full device", "not tried: the driver is a stand-in, or has no memory to be taken")
        return
    large = ["--sample", f"time=1,lat={NLAT},lon={NLON}", "--batch", min(400, run.ntime), "--batches", 1, "--step-time", "0ms", "--device",
             "cuda"]
    sentence(run, f"with a full device ({left >> 20} MiB left)", 1, ["memory"], *large, store)


# ---- peers ---------------------------------------------------------------------------------------


def chunk_files(run, store):
    files = [f for f in sorted(Path(store, "t/c").rglob("*")) if f.is_file()]
    return files[: BATCH * run.batches]


def best_of(passes, once):
    best = 0
    for _ in range(passes):
        begun = time.monotonic()
        best = max(best, once() / (time.monotonic() - begun))
    return best / 1e9


def pinned_loader(run, files):
    """DataLoader(pin_memory=True) over the uncompressed chunks, read with numpy."""
    import torch  # only here: a machine without it has no peer

    class Chunks(torch.utils.data.Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, i):
            return torch.from_numpy(np.fromfile(files[i], dtype="<f4"))

    loader = torch.utils.data.DataLoader(
        Chunks(), batch_size=BATCH, num_workers=run.cpus, pin_memory=True, persistent_workers=True
    )

    def once():
        nbytes = 0
        for batch in loader:
            nbytes += batch.to("cuda", non_blocking=True).nbytes
        torch.cuda.synchronize()
        return nbytes

    run.tell(f"torch {torch.__version__} DataLoader, pin_memory, {run.cpus} workers", best_of(3, once),
             "GB/s delivered, best of 3")


def kvikio_loader(run, files):
    """kvikio's reads of the same files into memory of the device, as many at once as there are CPUs."""
    import cupy
    import kvikio
    import kvikio.defaults

    kvikio.defaults.set("num_threads", run.cpus) if hasattr(kvikio.defaults, "set") else None
    each = files[0].stat().st_size
    buffer = cupy.empty((BATCH, each), dtype="u1")

    def once():
        nbytes = 0
        for at in range(0, len(files), BATCH):
            opened = [kvikio.CuFile(f, "r") for f in files[at : at + BATCH]]
            waiting = [f.pread(buffer[i]) for i, f in enumerate(opened)]
            nbytes += sum(w.get() for w in waiting)
            for f in opened:
                f.close()
        return nbytes

    run.tell(f"kvikio {kvikio.__version__}", best_of(3, once), "GB/s delivered, best of 3")


def part_peers(run, work):
    store = make_stores(run, work, ["plain"]).get("plain")
    if store is None:
        return
    s = run.readbench(store, *common_words(run), "--step-time", "0ms", "--validate", "none", "--epochs", 3)
    if s is not None:
        run.tell("readbench, pinned", s["rates"]["logical"] / 1e9, "GB/s delivered")
    files = chunk_files(run, store)
    for name, peer in (("PyTorch's pinned loader", pinned_loader), ("kvikio", kvikio_loader)):
        try:
            peer(run, files)
        except ImportError as why:
            run.tell(name, f"not measured: {why}")
        except Exception as why:  # of the peer: what else is to be measured here goes on
            run.log("peer", traceback.format_exc())
            run.tell(name, f"{type(why).__name__}: {why}".splitlines()[0], ok=False)


# ---- scaling -------------------------------------------------------------------------------------


def conversion_plan(run, source, work):
    """For the bare loops of a conversion (scripts/bench/roofline_plan.c)."""
    plan = work / "convert.plan"
    nbytes, begin = 4 * NLAT * NLON, data_begin(run.ntime)
    with open(plan, "w") as f:
        print("input", source, file=f)
        print("array t 4 raw plain swap", run.ntime, NLAT, NLON, 1, NLAT, NLON, 16, 128, 128, run.ntime, file=f)
        f.writelines(f"{begin + t * nbytes} {nbytes}\n" for t in range(run.ntime))
    return plan


def reading_plan(run, store, work):
    """The samples of readbench's order `all`, for the bare loops of reading."""
    plan = work / "read.plan"
    starts = [(t, y, x) for t in range(run.ntime) for y in range(0, NLAT - CHUNK[1] + 1, CHUNK[1])
              for x in range(0, NLON - CHUNK[2] + 1, CHUNK[2])][: BATCH * run.batches]
    with open(plan, "w") as f:
        print(f"array {store}/t\nitemsize 4\nshape {run.ntime} {NLAT} {NLON}", file=f)
        print("chunk", *CHUNK, "\nshard 0 0 0\nsample", *CHUNK, f"\nbatch {BATCH}\nsamples {len(starts)}", file=f)
        f.writelines(f"{t} {y} {x}\n" for t, y, x in starts)
    return plan, len(starts) * 4 * CHUNK[0] * CHUNK[1] * CHUNK[2]


def bare_reading(run, plan, nthreads):
    loop = subprocess.Popen([str(run.bundle / "scripts/bench/read_roofline"), "-j", str(nthreads), str(plan)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with loop:
        loop.stdout.readline()  # ready
        best = None
        for _ in range(3):
            loop.stdin.write("pass\n")
            loop.stdin.flush()
            answer = json.loads(loop.stdout.readline() or "{}")
            seconds = answer.get("seconds")
            best = seconds if best is None else min(best, seconds)
        loop.stdin.close()
    return best


def bare_conversion(run, plan, work, nthreads):
    shutil.rmtree(work / "bare", ignore_errors=True)
    begun = time.monotonic()
    done = run.command(run.bundle / "scripts/bench/roofline", "-j", nthreads, plan, work / "bare")
    return None if done is None else time.monotonic() - begun


def part_scaling(run, work):
    source, store = make_input(run, work), make_stores(run, work, ["blosc-zstd"]).get("blosc-zstd")
    if store is None:
        return
    converting, (reading, nbytes) = conversion_plan(run, source, work), reading_plan(run, store, work)
    first = {}
    for n in [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= run.cpus]:
        seconds = {
            "nc2zarr": run.seconds("nc2zarr", "-q", "--overwrite", "--verify", "none", "-j", n, "--chunks",
                                   "time=16,lat=128,lon=128", "--codec", "blosc:zstd:2:shuffle", source, work / "n.zarr"),
            "nc2zarr's bare loops": bare_conversion(run, converting, work, n),
            "rechunk": run.seconds("rechunk", "-q", "--overwrite", "-j", n, "--chunks", "t:time=full,lat=32,lon=32",
                                   store, work / "r.zarr"),
        }
        s = run.readbench(store, "--sample", run.sample, "--order", "sequential", "--batch", BATCH, "--batches",
                          run.batches, "--warm", "--step-time", "0ms", "--workers", n, "--worker-threads", 1)
        seconds["readbench"] = s and nbytes / s["rates"]["logical"]
        seconds["readbench's bare loops"] = bare_reading(run, reading, n)
        for name, value in seconds.items():
            if value:
                first.setdefault(name, value)
                run.tell(f"{name}, {n} thread{'s' if n > 1 else ''}", value, f"s, {first[name] / value:.2f} times one")
    for name in ("n.zarr", "r.zarr", "bare"):
        shutil.rmtree(work / name, ignore_errors=True)


# ---- all of them ---------------------------------------------------------------------------------

PARTS = {"tests": part_tests, "staging": part_staging, "limits": part_limits, "peers": part_peers,
         "scaling": part_scaling}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("logs", type=Path)
    parser.add_argument("part", nargs="*", metavar="PART", help=" ".join(PARTS))
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="where inputs are made, and kept")
    parser.add_argument("--quick", action="store_true", help="tiny inputs, to see that everything runs")
    given = parser.parse_args()
    unknown = [name for name in given.part if name not in PARTS]
    if np is None:
        sys.exit("measure.py: numpy is not installed: python3 -m pip install numpy, or apt-get install python3-numpy")
    if unknown:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    given.logs.mkdir(parents=True, exist_ok=True)
    work = given.work.resolve() if given.work else Path(tempfile.mkdtemp(prefix="chunkmill-gpu-"))
    work.mkdir(parents=True, exist_ok=True)
    runs = []
    try:
        for name in given.part or PARTS:
            begun = time.monotonic()
            run = Run(given, name)
            runs.append(run)
            print(f"---- {name}: {run.cpus} CPUs", flush=True)
            try:
                PARTS[name](run, work)
            except Exception as why:  # the machine is lent for minutes: the other parts go on
                run.log("part", traceback.format_exc())
                run.tell("this part", f"{type(why).__name__}: {why}".splitlines()[0], ok=False)
            run.tell("seconds that this part took", time.monotonic() - begun)
    finally:
        if not given.work:
            shutil.rmtree(work, ignore_errors=True)
    for run in runs:
        print(f"\n{run.part}\n\n{run.table()}")
    failed = [f"{run.part}: {name}" for run in runs for name in run.failed]
    print("failed:", "; ".join(failed) if failed else "nothing")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
