#!/usr/bin/env python3
"""The formulas of docs/scale.md beside what a run at a thousandth of the files shows.

    scripts/bench/scale.py [--files 200] [--parts 8] [--mb 1] [--sparse] [--bin build/bin] [--folder DIR]

200 files are a thousandth of 200,000; their bytes (--mb each, before compression) are far less than a
thousandth of a petabyte (with --mb 10 a thousandth of that thousandth), so figures that go by bytes are checked as formulas and not as times.
With --sparse the field is never written and takes no space on the disk: --mb 5000 is a terabyte, a thousandth,
whose elements are zeros; every byte is read, encoded and counted, and hardly any is written. CPU seconds are of
processes and their children; wall times say more about what else the machine does. The job has one
thread a part, the single process as many threads as parts run at once (2).
"""

import argparse
import json
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def make_sparse(folder, nfiles, mb):
    """Classic files whose field is a hole."""
    import netCDF4
    import numpy as np

    ny = nx = 512
    steps = max(1, round(mb * 2**20 / (4 * ny * nx)))
    for i in range(nfiles):
        with netCDF4.Dataset(folder / f"f{i:05}.nc", "w", format="NETCDF3_64BIT_DATA") as ds:
            ds.set_fill_off()
            for d, n in (("time", steps), ("y", ny), ("x", nx)):
                ds.createDimension(d, n)
            t = ds.createVariable("time", "f8", ("time",))
            t.units = "hours since 2000-01-01"
            tas = ds.createVariable("tas", "f4", ("time", "y", "x"))
            t[:] = np.arange(steps) + i * steps
            tas[-1, -1, -1] = 1.0
    return steps * nfiles, ny, nx


def make_files(folder, nfiles, mb):
    import netCDF4
    import numpy as np

    rng = np.random.default_rng(1)
    ny = nx = 128
    steps = max(1, round(mb * 2**20 / (4 * ny * nx)))
    for i in range(nfiles):
        with netCDF4.Dataset(folder / f"f{i:05}.nc", "w") as ds:
            for d, n in (("time", None), ("y", ny), ("x", nx)):
                ds.createDimension(d, n)
            t = ds.createVariable("time", "f8", ("time",))
            t.units = "hours since 2000-01-01"
            t[:] = np.arange(steps) + i * steps
            data = rng.normal(size=(steps, ny, nx)).astype("f4").round(1)
            ds.createVariable("tas", "f4", ("time", "y", "x"), zlib=True, chunksizes=(1, ny, nx))[:] = data
    return steps * nfiles, ny, nx


def cpu(argv):
    """CPU seconds of ARGV, peak memory in bytes, and its output."""
    with tempfile.TemporaryFile("w+") as out:
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
        _, status, used = os.wait4(pid, 0)
        out.seek(0)
        assert status == 0, argv
        return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, out.read()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--files", type=int, default=200)
    p.add_argument("--parts", type=int, default=8)
    p.add_argument("--mb", type=float, default=1)
    p.add_argument("--sparse", action="store_true")
    p.add_argument("--bin", default="build/bin")
    p.add_argument("--folder")
    a = p.parse_args()
    program = str(Path(a.bin).resolve() / "nc2zarr")
    root = Path(tempfile.mkdtemp(prefix="scale-", dir=a.folder))
    rows = []
    try:
        source = root / "in"
        source.mkdir()
        nsteps, ny, nx = (make_sparse if a.sparse else make_files)(source, a.files, a.mb)
        nbytes = sum(f.stat().st_size for f in source.iterdir())
        common = [program, "--verify", "none", "--json", "--chunks", f"tas:time=4,y={ny},x={nx}", "--shards", f"tas:time=16,y={ny},x={nx}"]
        survey, _, _ = cpu([program, "--dry-run", "--json", str(source), str(root / "o.zarr")])
        rows.append(("survey of F files, CPU s", "2 ms F", 2e-3 * a.files, survey))

        one_cpu, _, _ = cpu([*common, "-j", "2", str(source), str(root / "one.zarr")])
        out, beside = root / "parts.zarr", root / "parts.zarr.chunkmill"

        def part(k):
            return cpu([*common, "-j", "1", "-q", "--part", f"{k}/{a.parts}", str(source), str(out)])

        first = part(1)
        plan = (beside / "plan").stat().st_size
        files_beside = sum(1 for _ in beside.iterdir())
        with ThreadPoolExecutor(2) as pool:
            others = list(pool.map(part, range(2, a.parts + 1)))
        done = [json.loads(t) for _, _, t in [first, *others]]
        objects = [d["output"]["nobjects"] for d in done]
        shards = -(-nsteps // 16)
        found = sum(1 for f in (out / "tas").rglob("*") if f.is_file() and f.name != "zarr.json")
        rows.append(("objects of the field", "ceil(steps / steps of a shard)", shards, found))
        rows.append(("objects of all, each written once", "files in the store", sum(1 for f in out.rglob("*") if f.is_file()), sum(objects)))
        claims = json.loads((beside / "complete").read_text().split(" ", 1)[1])["parts"]
        rows.append(("bytes of the busiest part", "B / N, to 1.1", sum(c["nbytes"] for c in claims) / a.parts, max(c["nbytes"] for c in claims)))
        rows.append(("the plan on disk, bytes", "900 + 50 V", 900 + 50 * 2, plan))
        rows.append(("files beside the store, first part done", "4 N at most", 4 * a.parts, files_beside))
        parts_cpu = sum(c for c, _, _ in [first, *others])
        rows.append(("CPU s of N parts", "one process + (N - 1) surveys", one_cpu + (a.parts - 1) * survey, parts_cpu))
        rows.append(("memory of a part, MiB", "", None, max(m for _, m, _ in others) / 2**20))
        again, _, text = cpu([*common, "-j", "1", "-q", "--part", f"1/{a.parts}", str(source), str(out)])
        rows.append(("bytes that a finished part writes again", "0", 0, json.loads(text)["output"]["nobjects"]))
        rows.append(("CPU s of a finished part", "a survey + 5 us an object", survey + 5e-6 * found / a.parts, again))
        print(f"{a.files} files, {nbytes / 1e6:.0f} MB stored, {nsteps} steps, {a.parts} parts, {os.cpu_count()} CPUs")
        print(f"{'quantity':44} {'formula':32} {'says':>10} {'measured':>10}")
        for name, formula, says, measured in rows:
            print(f"{name:44} {formula:32} {'' if says is None else f'{says:.4g}':>10} {measured:10.4g}")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
