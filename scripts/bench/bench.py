#!/usr/bin/env python3
"""bench.py [OPTIONS] BUILD: measures nc2zarr against its peers and the roofline.

In each round every contender converts the same input once, the first one
changing from round to round; ratios are taken within a round.  Before anything
counts, each output is compared with the file, element by element.  Nobody syncs.
Inputs stay in BUILD/bench/inputs for the next run, outputs are removed at once.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import archive
import contenders
import inputs
import measure
import page
import readbench
import readbench_report
import rechunk
import report
import zarr_metadata
from contenders import CONTENDERS, NC2ZARR, ROOFLINE, Job

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20


def say(text):
    print(f"bench: {text}", flush=True)


class Bench:
    def __init__(self, options):
        self.build, self.quick = os.path.abspath(options.build), options.quick
        self.rounds = options.rounds or (3 if self.quick else 9)
        self.pairs = options.rounds or (3 if self.quick else 11)
        self.threads = options.threads
        self.who = options.who.split(",") if options.who else None
        self.root = f"{self.build}/bench"
        self.python = os.environ["BENCH_PYTHON"]
        self.work = f"{self.root}/work"
        self.start = time.time()
        self.result = {"quick": self.quick, "threads": self.threads, "conversions": [], "peaks": []}

    def write(self):
        self.result["elapsed"] = time.time() - self.start
        report.write(self.result, self.root, [rechunk, archive, readbench_report])
        with open(f"{self.root}/report.html", "w") as f:
            f.write(page.page(self.result))

    def helper(self, script, *argv):
        return subprocess.run([self.python, f"{HERE}/{script}", *argv], check=True, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}).stdout  # fmt: skip

    def prepare(self, spec):
        """The input, made if it is not there, and the addresses of its chunks."""
        os.makedirs(f"{self.root}/inputs", exist_ok=True)
        quick = ["quick"] if self.quick else []
        path = f"{self.root}/inputs/{spec.name}{'-quick' if quick else ''}.nc"
        stamp = repr((spec, inputs.VERSION))
        if not os.path.exists(path) or not os.path.exists(path + ".made") or open(path + ".made").read() != stamp:
            say(f"making {spec.name}")
            for old in (path, path + ".digests"):
                if os.path.exists(old):
                    os.remove(old)
            self.helper("make_input.py", spec.name, path, *quick)
            with open(path + ".made", "w") as f:
                f.write(stamp)
        plan = path[:-3] + ".plan"
        if spec is not inputs.INDEX:
            self.helper("make_plan.py", spec.name, path, plan, *quick)
        return path, plan

    # ---- conversions ----

    def once(self, contender, job, cache="warm"):
        if not (measure.warm if cache == "warm" else measure.cold)(job.source):
            raise RuntimeError(f"{job.source} could not be made {cache}")
        r = measure.run(contender.argv(job))
        if r.status == 0 and contender.name.startswith(ROOFLINE):
            zarr_metadata.write(job.output, job.spec.variables(), job.spec.dims(job.quick), job.spec.target)
        return r

    def qualify(self, names, job_of, row):
        """Warm-up: who converts, and converts right.  What others made is removed after the comparison."""
        made = []
        for c in (CONTENDERS[n] for n in names):
            entry = row["contenders"][c.name] = {"title": c.title, "seconds": {}, "peak_nbytes": 0}
            if c.missing():
                entry["refused"] = f"{c.program} is not installed"
                continue
            job = job_of(c.name)
            measure.remove(job.output)
            r = self.once(c, job)
            if r.status != 0:
                entry["refused"] = r.why()
                continue
            entry["files"], entry["stored_nbytes"] = measure.measure_tree(job.output)
            made.append((c, job))
        verdicts = self.check(job_of("x"), [job.output for _, job in made])
        good = []
        for c, job in made:
            if verdicts[job.output] is None:
                good.append(c)
            else:
                row["contenders"][c.name]["refused"] = f"wrong output: {verdicts[job.output]}"
            measure.remove(job.output)
        for name, entry in row["contenders"].items():
            if "refused" in entry:
                say(f"{row['input']}: {name}: {entry['refused']}")
        return good

    def check(self, job, stores):
        """For each store None, or what differs from the file."""
        names = ",".join(name for name, _ in job.spec.variables())
        return json.loads(self.helper("check_store.py", job.source, names, *stores))

    def convert(self, spec, names, cache="warm"):
        source, plan = self.prepare(spec)

        def job_of(name):
            return Job(spec, self.quick, source, plan, f"{self.work}/{spec.name}-{name}.zarr", self.build, self.threads)

        row = {"input": spec.name, "title": spec.title, "shape": spec.dims(self.quick), "chunk": spec.chunk,
               "target": spec.target, "variables": len(spec.types), "cache": cache,
               "source_nbytes": os.path.getsize(source), "decoded_nbytes": spec.decoded_nbytes(self.quick),
               "contenders": {}}  # fmt: skip
        self.result["conversions"].append(row)
        good = self.qualify([n for n in names if self.who is None or n in self.who], job_of, row)
        for r in range(self.rounds if cache == "warm" else min(self.rounds, 5)):
            os.sync()
            for i in range(len(good)):
                c = good[(i + r) % len(good)]
                if not c.slow or r < (1 if self.quick else 3):
                    self.count(c, job_of(c.name), row["contenders"][c.name], r, cache)
        if cache == "warm" and {ROOFLINE, NC2ZARR} <= {c.name for c in good}:
            row["stages"] = self.stages(job_of("stages"))
        say(report.one_line(row))

    def stages(self, job):
        """Time of each kind of work, in the roofline and in nc2zarr."""
        least = measure.run([*contenders.roofline(job), "-s"])
        measure.remove(job.output)
        ours = measure.run([*contenders.nc2zarr(job, "--verify", "none"), "--json"])
        measure.remove(job.output)
        if least.status != 0 or ours.status != 0:
            raise RuntimeError(f"{job.spec.name}: stages: {least.why()}; {ours.why()}")
        found = {s["name"]: s["seconds"] for s in json.loads(ours.output)["stages"]}
        return {ROOFLINE: json.loads(least.output)["stages"], NC2ZARR: found}

    def count(self, c, job, entry, r, cache):
        run = self.once(c, job, cache)
        tree = measure.measure_tree(job.output)
        measure.remove(job.output)
        if run.status != 0 or tree != (entry["files"], entry["stored_nbytes"]):
            raise RuntimeError(f"{job.spec.name}: {c.name}: made something else than at first: {tree}: {run.why()}")
        entry["seconds"][r] = run.seconds
        entry["peak_nbytes"] = max(entry["peak_nbytes"], run.peak_nbytes)
        entry.setdefault("cpu", []).append(run.cpu)
        entry.setdefault("disk_nbytes", []).append(run.disk_nbytes)

    # ---- stored bytes unchanged, against cp -r of the store that comes of it ----

    def keep(self, spec):
        source, plan = self.prepare(spec)
        store, again, copy = (f"{self.work}/keep-{x}.zarr" for x in ("store", "again", "copy"))

        def argv(output):
            return [f"{self.build}/bin/nc2zarr", "-q", "-j", str(self.threads), "--verify", "none", "--codec", "keep",
                    source, output]  # fmt: skip

        row = {"input": spec.name, "title": spec.title}
        self.result.setdefault("keep", []).append(row)
        for path in (store, again, copy):
            measure.remove(path)
        measure.warm(source)
        first = measure.run(argv(store))
        if first.status != 0:
            row["refused"] = first.why()
            return
        verdict = self.check(Job(spec, self.quick, source, plan, store, self.build, self.threads), [store])[store]
        row["files"], row["stored_nbytes"] = measure.measure_tree(store)
        # A copy moves a few large files where nc2zarr puts many small chunks together.
        row["in_shards"] = row["files"] < spec.chunks(self.quick)
        row["keep"], row["copy"] = {}, {}
        if verdict is not None:
            row["refused"] = f"wrong output: {verdict}"
            measure.remove(store)
            return
        for r in range(self.pairs):
            os.sync()
            pair = [("keep", argv(again), again), ("copy", ["cp", "-r", store, copy], copy)]
            for key, command, output in pair if r % 2 else pair[::-1]:
                measure.warm(source)
                run = measure.run(command)
                if run.status != 0 or measure.measure_tree(output) != (row["files"], row["stored_nbytes"]):
                    raise RuntimeError(f"{spec.name}: {key}: another store than at first: {run.why()}")
                row[key][r] = run.wall
                measure.remove(output)
        measure.remove(store)
        say(f"{spec.name}: keep is {report.ratio_text(measure.ratios(row['keep'], row['copy']))} of cp -r, {row['files']} files")

    # ---- the index of a million chunks ----

    def index(self):
        """A dry run opens the file, reads the index, plans, and encodes one chunk of the target."""
        source, _ = self.prepare(inputs.INDEX)
        row = self.result["index"] = {"seconds": {}, "chunks": inputs.INDEX.chunks(self.quick)}
        for r in range(-1, self.rounds):
            measure.warm(source)
            run = measure.run([f"{self.build}/bin/nc2zarr", "-q", "--dry-run", source, f"{self.work}/index.zarr"])
            if run.status != 0:
                row["refused"] = run.why()
                return
            if r >= 0:
                row["seconds"][r], row["peak_nbytes"] = run.wall, run.peak_nbytes

    # ---- memory ----

    def memory(self, spec, limits):
        """Peaks under --memory, and by default; one run each, after the timed ones."""
        source, plan = self.prepare(spec)
        job = Job(spec, self.quick, source, plan, f"{self.work}/memory.zarr", self.build, self.threads)
        block = spec.block_nbytes(self.quick)
        for limit in [None, *limits]:
            option = ["--memory", str(limit)] if limit else []
            run = measure.run(contenders.nc2zarr(job, "--verify", "none", *option))
            measure.remove(job.output)
            row = {"input": spec.name, "limit": limit, "peak_nbytes": run.peak_nbytes, "seconds": run.seconds,
                   "bound": limit or 64 * MIB + block + 16 * MIB * self.threads}  # fmt: skip
            if run.status != 0:
                row["refused"] = run.why()
            self.result["peaks"].append(row)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--quick", action="store_true", help="smaller inputs, three rounds")
    p.add_argument("--rounds", type=int, help="9, or 3 if quick; 11 pairs against cp")
    p.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    p.add_argument("--who", help="comma-separated contenders, by the names in contenders.py")
    p.add_argument("--only", help="comma-separated parts: names of inputs, cold, keep, index, memory, rechunk, "
                   "archive, readbench, or of the last three rechunk:WORK, archive:survey, archive:references, archive:convert, readbench:WORK")
    return p.parse_args()


def main():
    options = parse()
    only = options.only.split(",") if options.only else None
    bench = Bench(options)
    measure.remove(bench.work)
    os.makedirs(bench.work)
    # Everyone has the same CPUs: children inherit this.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: bench.threads])
    bench.result["machine"] = measure.machine(bench.work)
    bench.result["versions"] = versions(bench)

    def wanted(part):
        return only is None or part in only

    measure.touch_memory(min(4 << 30, measure.memory_nbytes() // 2))
    try:
        for spec in inputs.INPUTS:
            if wanted(spec.name):
                bench.convert(spec, contenders.of_input(spec, bench.quick))
        if wanted("cold"):
            bench.convert(inputs.find("standard"), (ROOFLINE, NC2ZARR, *(() if bench.quick else ("xarray",))), "cold")
        if wanted("keep"):
            for name in ("standard",) if bench.quick else ("standard", "chunked", "tiny"):
                bench.keep(inputs.find(name))
        if wanted("index"):
            bench.index()
        if wanted("memory"):
            bench.memory(inputs.find("standard"), [64 * MIB, 96 * MIB, 128 * MIB])
            for name in ("chunked", "contiguous", "classic", "tiny", "sixty"):
                bench.memory(inputs.find(name), [])
        works = [part.split(":")[1] for part in only or [] if part.startswith("rechunk:")]
        if wanted("rechunk") or works:
            rechunk.run(bench, say, works)
        works = [part.split(":")[1] for part in only or [] if part.startswith("archive:")]
        if wanted("archive") or works:
            archive.run(bench, say, works)
        works = [part.split(":")[1] for part in only or [] if part.startswith("readbench:")]
        if wanted("readbench") or works:
            readbench.run(bench, say, works)
    finally:
        measure.remove(bench.work)
        bench.write()
    say(f"{bench.root}/report.html, report.md, report.json")


def versions(bench):
    asked = {"nc2zarr": [f"{bench.build}/bin/nc2zarr", "--version"], "GDAL": ["gdalmdimtranslate", "--version"]}
    found = {name: measure.first_line(argv) for name, argv in asked.items()}
    packages = {name: bench.python for name in ("xarray", "dask", "zarr", "zarrs", "tensorstore", "xbatcher")}
    packages["rechunker"] = os.environ.get("BENCH_RECHUNKER_PYTHON")
    for package, python in packages.items():
        if python:
            code = f"import importlib.metadata as m; print(m.version('{package}'))"
            found[package] = measure.first_line([python, "-c", code])
    return found


if __name__ == "__main__":
    sys.exit(main())
