"""Running a contender once, and what surrounds that: page cache, disk, statistics.

Only the standard library: children are started from this process, and a child's
high-water mark begins at its parent's size.
"""
import ctypes
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

@dataclass
class Run:
    status: int
    seconds: float  # the program's own where it prints them, else from start to exit
    wall: float
    cpu: float
    peak_nbytes: int
    disk_nbytes: int  # read from the disk
    output: str
    errors: str

    def why(self):
        """Why it failed, in one line."""
        return f"exit status {self.status}: {' '.join((self.errors or self.output).split())[-300:]}"


def run(argv):
    """Runs ARGV to its end.  A last line `{"seconds": ...}` is the program's own time."""
    with tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, text=True)
        with child.stdout:
            output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read()
    try:
        seconds = json.loads(output.strip().splitlines()[-1])["seconds"]
    except (IndexError, ValueError, KeyError, TypeError):
        seconds = wall
    return Run(child.returncode, seconds, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024,
               usage.ru_inblock * 512, output, said)  # fmt: skip


def touch_memory(nbytes):
    """
    Uses memory once, in a child, and gives it back.  Under a hypervisor the first
    use of a page is many times slower than the next; whoever came first would pay.
    """
    subprocess.run([sys.executable, "-c", f"b'x' * {nbytes}"], check=False)


# ---- page cache ----


def resident(path):
    """The share of a file's pages in the page cache."""
    size = os.path.getsize(path)
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY) as m:
        pages = -(-size // mmap.PAGESIZE)
        vector = (ctypes.c_ubyte * pages)()
        first = ctypes.c_char.from_buffer(m)
        libc = ctypes.CDLL(None, use_errno=True)
        rc = libc.mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(size), vector)
        del first
        if rc != 0:
            raise OSError(ctypes.get_errno(), "mincore")
    return sum(v & 1 for v in bytes(vector)) / pages


def warm(path):
    buffer = bytearray(min(4 << 20, os.path.getsize(path) + 1))
    with open(path, "rb", buffering=0) as f:
        while f.readinto(buffer):
            pass
    return resident(path) > 0.99


def cold(path):
    with open(path, "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return resident(path) < 0.01


# ---- outputs ----


def measure_tree(path):
    """Files and their bytes."""
    files = nbytes = 0
    for folder, _, names in os.walk(path):
        for name in names:
            files += 1
            nbytes += os.path.getsize(os.path.join(folder, name))
    return files, nbytes


def remove(path):
    shutil.rmtree(path, ignore_errors=True)


# ---- statistics ----


def summary(values):
    """Median and quartiles."""
    values = sorted(values)
    if len(values) == 1:
        return {"median": values[0], "low": values[0], "high": values[0], "n": 1}
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": statistics.median(values), "low": low, "high": high, "n": len(values)}


def ratios(a, b):
    """A over B round by round; a round that one of them lacks is left out."""
    pairs = [a[r] / b[r] for r in a if r in b]
    return summary(pairs) if pairs else None


# ---- the machine ----


def first_line(argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout.strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return None


def value_of(path, name, separator):
    """The value of NAME in a file of `name: value` lines."""
    with open(path) as f:
        for line in f:
            if line.startswith(name):
                return line.split(separator, 1)[1].strip().strip('"')
    return "unknown"


def memory_nbytes():
    return int(value_of("/proc/meminfo", "MemAvailable", ":").split()[0]) * 1024


def machine(path):
    cpu = value_of("/proc/cpuinfo", "model name", ":")
    memory = f"{int(value_of('/proc/meminfo', 'MemTotal', ':').split()[0]) / (1 << 20):.0f} GiB"
    system = value_of("/etc/os-release", "PRETTY_NAME", "=")
    return {"cpu": cpu, "cpus": os.cpu_count(), "memory": memory, "system": system,
            "kernel": os.uname().release, "file system": first_line(["findmnt", "-n", "-o", "FSTYPE", "-T", path])}  # fmt: skip
