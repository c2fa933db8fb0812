"""rechunk beside its peers, on the works of stores.py.

As bench.py does it: in each round everyone rechunks the same store once, in turn;
each target is compared with the source before anything counts; nobody syncs but
those whose name says so.
"""

import json
import os

import measure
import report
import stores

HERE = os.path.dirname(os.path.abspath(__file__))
RECHUNK = "rechunk"
ROOM = 1 << 30  # bytes for peers that must be told a memory, where the work does not say one

TITLES = {
    RECHUNK: "rechunk --verify none",
    "rechunk-durable": "rechunk --verify none --durable",
    "dask": "dask's rechunk, with xarray, no bound on memory",
    "tensorstore": "tensorstore, without fsync",
    "tensorstore-sync": "tensorstore, with fsync",
    "zarr-python": "zarr-python 3, all in memory",
    "zarrs": "the same with the zarrs pipeline",
    "rechunker": "rechunker, version 2, by an intermediate store",
}
SLOW = ("rechunker",)  # measured in a few rounds


class Rechunks:
    def __init__(self, bench, say):
        self.bench, self.say = bench, say
        self.rounds = bench.rounds if bench.quick else min(bench.rounds, 5)

    def prepare(self, work, version):
        """The store, made if it is not there."""
        folder = f"{self.bench.root}/inputs"
        os.makedirs(folder, exist_ok=True)
        path = f"{folder}/{work.source()}-v{version}{'-quick' if self.bench.quick else ''}.zarr"
        stamp = repr((stores.find(work.source()), stores.VERSION))
        if not os.path.exists(path + ".made") or open(path + ".made").read() != stamp:
            self.say(f"making {os.path.basename(path)}")
            measure.remove(path)
            measure.remove(path + ".part")
            self.bench.helper(
                "make_store.py", work.source(), path, str(version), *(["quick"] if self.bench.quick else [])
            )
            with open(path + ".made", "w") as f:
                f.write(stamp)
        return path

    def argv(self, who, work, target):
        quick, threads = self.bench.quick, str(self.bench.threads)
        chunks = "x".join(map(str, work.lengths(work.target, quick)))
        shards = "x".join(map(str, work.shards)) or "none"
        memory = work.memory(quick)
        if who.startswith(RECHUNK) and who != "rechunker":
            limit = ["--memory", str(memory)] if memory else []
            durable = ["--durable"] if who.endswith("durable") else []
            # The same codec by name would do as well, but then its chunks are coded anew.
            codec = ["--codec", "blosc:zstd:2:shuffle"] if work.codec != "blosc" else []
            argv = [f"{self.bench.build}/bin/rechunk", "-q", "-j", threads, "--verify", "none", *codec]
            layout = ["--chunks", chunks, "--shards", shards]
            return [*argv, *layout, *limit, *durable, self.prepare(work, 3), target]
        python = os.environ.get("BENCH_RECHUNKER_PYTHON", "") if who == "rechunker" else self.bench.python
        source = self.prepare(work, 2 if who == "rechunker" else 3)
        return [python, f"{HERE}/peer_rechunk.py", who, source, target, chunks, shards, threads, str(memory or ROOM)]

    def once(self, who, work, target):
        measure.remove(target)
        measure.remove(f"{target}.temp")
        argv = self.argv(who, work, target)
        for folder, _, names in os.walk(self.prepare(work, 2 if who == "rechunker" else 3)):
            for name in names:
                measure.warm(os.path.join(folder, name))
        return measure.run(argv)

    def qualify(self, row, work):
        """Who rechunks, and rechunks right."""
        good, quick = [], self.bench.quick
        peers = work.contenders(quick)
        names = [RECHUNK, *(["rechunk-durable"] if "tensorstore-sync" in peers else []), *peers]
        for who in names:
            entry = row["contenders"][who] = {"title": TITLES[who], "seconds": {}, "peak_nbytes": 0}
            if who == "rechunker" and not os.environ.get("BENCH_RECHUNKER_PYTHON"):
                entry["refused"] = "could not be installed"
                continue
            target = f"{self.bench.work}/{work.name}-{who}.zarr"
            run = self.once(who, work, target)
            if run.status != 0:
                entry["refused"] = run.why()
                continue
            entry["files"], entry["stored_nbytes"] = measure.measure_tree(target)
            chunks = "x".join(map(str, work.lengths(work.target, quick)))
            shards = "x".join(map(str, work.shards)) or "none"
            verdict = json.loads(self.bench.helper("check_rechunk.py", self.prepare(work, 3), chunks, shards, target))[
                target
            ]
            measure.remove(target)
            measure.remove(f"{target}.temp")
            if verdict:
                entry["refused"] = f"wrong target: {verdict}"
            else:
                good.append(who)
        for who, entry in row["contenders"].items():
            if "refused" in entry:
                self.say(f"{work.name}: {who}: {entry['refused']}")
        return good

    def plan(self, work):
        """What rechunk itself says of bytes and bound."""
        argv = self.argv(RECHUNK, work, f"{self.bench.work}/plan.zarr")
        argv[1] = "--json"
        run = measure.run([*argv[:-2], "--dry-run", *argv[-2:]])
        if run.status != 0:
            return None
        document = json.loads(run.output)
        (array,) = document["arrays"]
        return {"plan": array["plan"], "planned": array["planned"], "memory": document["memory"]}

    def measure(self, work):
        row = {
            "work": work.name,
            "title": work.title,
            "shape": work.dims(self.bench.quick),
            "memory": work.memory(self.bench.quick),
            "chunk": work.lengths(work.chunk, self.bench.quick),
            "target": work.lengths(work.target, self.bench.quick),
            "shards": work.shards,
            "decoded_nbytes": work.nbytes(self.bench.quick),
            "contenders": {},
        }
        good = self.qualify(row, work)
        for r in range(self.rounds):
            os.sync()
            for i in range(len(good)):
                who = good[(i + r) % len(good)]
                if who in SLOW and r >= 3:
                    continue
                target, entry = f"{self.bench.work}/{work.name}-{who}.zarr", row["contenders"][who]
                run = self.once(who, work, target)
                if run.status != 0:
                    raise RuntimeError(f"{work.name}: {who}: {run.why()}")
                entry["seconds"][r] = run.seconds
                entry["peak_nbytes"] = max(entry["peak_nbytes"], run.peak_nbytes)
                entry.setdefault("cpu", []).append(run.cpu)
                measure.remove(target)
                measure.remove(f"{target}.temp")
        row["plan"] = self.plan(work)
        parts = [
            f"{who} {measure.summary(e['seconds'].values())['median']:.2f} s"
            for who, e in row["contenders"].items()
            if e["seconds"]
        ]
        self.say(f"rechunk, {work.name}: " + ", ".join(parts))
        return row


def run(bench, say):
    """The rows of `rechunk` in the report."""
    every = Rechunks(bench, say)
    return [every.measure(work) for work in stores.WORKS]


# ---- the report ----


def targets(result, rows):
    for row in result.get("rechunk", []):
        for who, factor in (("dask", 2.5), ("tensorstore", 1.3), ("rechunker", 5)):
            if who in row["contenders"]:
                name = f"rechunk, times faster than {TITLES[who]}: {row['work']}"
                report.at_least(rows, name, factor, report.against(row, who, RECHUNK))
        plan = row["plan"]["plan"] if row["plan"] else {}
        if plan.get("kind") == "sweep" and plan["bound_nbytes"]:
            name = f"rechunk, bytes over the lower bound: {row['work']}"
            report.at_most(rows, name, 1, plan["traffic_nbytes"] / plan["bound_nbytes"])
        peak = row["contenders"][RECHUNK]["peak_nbytes"]
        if row["memory"] and peak:
            name = f"rechunk, peak memory under --memory: {row['work']}"
            report.at_most(rows, name, row["memory"] // report.MIB, peak / report.MIB, " MiB")


METHOD = """As above, but with stores for input. Before its time counts, each target was compared with its source,
chunks and shards included, both read by zarr-python with the codecs of zarrs. Who is said to sync does, nobody else.
In quick runs most peers are measured on the first work only."""


def sections(result):
    rows = result.get("rechunk", [])
    return ["# rechunk\n\n" + METHOD, *(section(row) for row in rows)] if rows else []


def text_of(lengths):
    return "x".join(map(str, lengths))


def what(row):
    shards = f" in shards of {text_of(row['shards'])}" if row["shards"] else ""
    memory = f", --memory {row['memory'] / report.MIB:.0f} MiB" if row["memory"] else ""
    size = f"{text_of(row['shape'])} float32, {row['decoded_nbytes'] / 1e6:.0f} MB decoded"
    return f"{size}, chunks of {text_of(row['chunk'])} to {text_of(row['target'])}{shards}{memory}."


def plan_of(row):
    plan, planned = row["plan"]["plan"], row["plan"]["planned"]
    counts = ", ".join(f"{planned[f'chunk_{key}']:,} {key}" for key in ("reads", "decodes", "writes"))
    scratch, traffic, bound = (
        n / 1e6 for n in (planned["scratch_nbytes"], plan["traffic_nbytes"], plan["bound_nbytes"])
    )
    return (
        f"Plan: {plan['kind']}, chunk {counts}, {scratch:.0f} MB by scratch files, "
        f"traffic {traffic:.0f} MB over a bound of {bound:.0f} MB."
    )


def section(row):
    lines = [f"## rechunk, {row['work']}: {row['title']}", "", what(row)]
    if row["plan"]:
        lines.append(plan_of(row))
    body, refused = [], []
    for who, entry in row["contenders"].items():
        if not entry["seconds"]:
            refused.append(f"- {entry['title']}: {entry.get('refused', 'not measured')}")
            continue
        cells = [entry["title"], report.spread(measure.summary(entry["seconds"].values()))]
        cells.append("1" if who == RECHUNK else report.spread(report.against(row, who, RECHUNK)))
        cells += [f"{measure.summary(entry['cpu'])['median']:.2f}", f"{entry['peak_nbytes'] / report.MIB:.0f}"]
        body.append((*cells, entry["files"], f"{entry['stored_nbytes'] / 1e6:.1f}"))
    head = ("contender", "seconds", "over rechunk", "CPU s", "peak MiB", "files", "MB stored")
    return "\n".join([*lines, "", report.table(head, body), *refused])
