"""Contenders that convert: each one's command line, and how it differs."""
import os
import shutil
from dataclasses import dataclass
from typing import Callable

HERE = os.path.dirname(os.path.abspath(__file__))
CODEC = "blosc:zstd:2:shuffle"


@dataclass(frozen=True)
class Job:
    """One input under one contender."""

    spec: object  # inputs.Input
    quick: bool
    source: str
    plan: str
    output: str
    build: str
    threads: int


@dataclass(frozen=True)
class Contender:
    name: str
    title: str
    argv: Callable  # of a Job
    program: str = ""  # that has to be installed
    slow: bool = False  # measured in a few rounds: far from the others, or with another codec

    def missing(self):
        return self.program and shutil.which(self.program) is None


def nc2zarr(job, *options, threads=None):
    return [f"{job.build}/bin/nc2zarr", "-q", "-j", str(threads or job.threads), "--chunks",
            job.spec.target_option(), "--codec", CODEC, *options, job.source, job.output]  # fmt: skip


def roofline(job, threads=None):
    return [f"{job.build}/bench/roofline", "-j", str(threads or job.threads), job.plan, job.output]


def xarray(job, *pipeline):
    python = os.environ["BENCH_PYTHON"]
    return [python, f"{HERE}/peer_xarray.py", job.source, job.output, job.spec.target_option(),
            str(job.spec.depth(job.quick)), str(job.threads), *pipeline]  # fmt: skip


def gdal(job):
    argv = ["gdalmdimtranslate", "-q", "-of", "Zarr", "--config", "GDAL_NUM_THREADS", str(job.threads)]
    options = {"BLOCKSIZE": ",".join(map(str, job.spec.target)), "COMPRESS": "BLOSC", "BLOSC_CNAME": "zstd",
               "BLOSC_CLEVEL": "2", "BLOSC_SHUFFLE": "BYTE", "BLOSC_NUM_THREADS": str(job.threads)}  # fmt: skip
    for key, value in options.items():
        argv += ["-co", f"ARRAY:IF(DIM=3):{key}={value}"]
    return [*argv, "-co", "FORMAT=ZARR_V2", job.source, job.output]


def nccopy(job):
    chunks = ",".join(f"{d}/{n}" for d, n in zip(("time", "latitude", "longitude"), job.spec.target))
    return ["nccopy", "-u", "-d", "0", "-c", chunks, job.source, f"file://{job.output}#mode=zarr,file"]


ROOFLINE, NC2ZARR = "roofline", "nc2zarr"

CONTENDERS = {
    c.name: c
    for c in [
        Contender(ROOFLINE, "roofline, bare loops", roofline),
        Contender(NC2ZARR, "nc2zarr --verify none", lambda j: nc2zarr(j, "--verify", "none")),
        Contender("nc2zarr-verify", "nc2zarr, its sample verification included", nc2zarr),
        Contender("roofline-1", "roofline, 1 thread", lambda j: roofline(j, 1)),
        Contender("nc2zarr-1", "nc2zarr --verify none, 1 thread", lambda j: nc2zarr(j, "--verify", "none", threads=1)),
        Contender("xarray", "xarray + dask + zarr-python 3", xarray),
        Contender("zarrs", "the same with the zarrs pipeline", lambda j: xarray(j, "zarrs")),
        Contender("gdal", "GDAL, gdalmdimtranslate", gdal, "gdalmdimtranslate", slow=True),
        Contender("nccopy", "netCDF-C, nccopy to NCZarr, no compression", nccopy, "nccopy", slow=True),
    ]
}


def of_input(spec, quick):
    names = [ROOFLINE, NC2ZARR]
    if spec.name == "standard":
        names += ["nc2zarr-verify", "roofline-1", "nc2zarr-1"]
    if not quick or spec.name == "standard":
        names += spec.peers
    return names
