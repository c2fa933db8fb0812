"""rechunk beside its peers and the roofline, on the works of stores.py.

A pair is one run of a peer and one of rechunk, one right after the other, now this
one first and now that one; ratios are taken within pairs.  Each target is compared
with the source before anything counts.  Nobody syncs but those whose name says so,
and these are paired with each other.
"""

import json
import os
from dataclasses import dataclass

import measure
import report
import store_plan
import stores
import zarr_metadata
from contenders import ROOFLINE

HERE = os.path.dirname(os.path.abspath(__file__))
RECHUNK, DURABLE, DEFAULT = "rechunk", "rechunk-durable", "rechunk-default"
OURS = (RECHUNK, DURABLE, DEFAULT)
ROOM = 1 << 30  # bytes for peers that must be told a memory, where the work does not say one
FEW = 3  # pairs of those that no target names


@dataclass(frozen=True)
class Contender:
    title: str
    partner: str = RECHUNK
    judged: bool = True  # a target names it


CONTENDERS = {
    RECHUNK: Contender("rechunk --verify none"),
    DEFAULT: Contender("rechunk, its sample verification included", judged=False),
    DURABLE: Contender("rechunk --verify none --durable", judged=False),
    ROOFLINE: Contender("roofline, bare loops, no bound on memory"),
    "dask": Contender("dask's rechunk, with xarray, no bound on memory"),
    "tensorstore": Contender("tensorstore, without fsync"),
    "tensorstore-sync": Contender("tensorstore, with fsync", partner=DURABLE, judged=False),
    "zarr-python": Contender("zarr-python 3, all in memory", judged=False),
    "zarrs": Contender("the same with the zarrs pipeline", judged=False),
    "rechunker": Contender("rechunker, version 2, by an intermediate store"),
}


class Rechunks:
    def __init__(self, bench, say):
        self.bench, self.say = bench, say

    def prepare(self, work, version=3):
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

    def source(self, who, work):
        return self.prepare(work, 2 if who == "rechunker" else 3)

    def layout(self, work):
        chunks = "x".join(map(str, work.lengths(work.target, self.bench.quick)))
        return chunks, "x".join(map(str, work.shards)) or "none"

    def plan_path(self, work):
        return f"{self.bench.work}/{work.name}.plan"

    def ours(self, who, work, target):
        chunks, shards = self.layout(work)
        memory = work.memory(self.bench.quick)
        options = ["--chunks", chunks, "--shards", shards]
        # The same codec by name would do as well, but then its chunks are coded anew.
        options += ["--codec", "blosc:zstd:2:shuffle"] if work.codec != "blosc" else []
        options += ["--memory", str(memory)] if memory else []
        options += ["--verify", "none"] if who != DEFAULT else []
        options += ["--durable"] if who == DURABLE else []
        program = [f"{self.bench.build}/bin/rechunk", "-q", "-j", str(self.bench.threads)]
        return [*program, *options, self.prepare(work), target]

    def argv(self, who, work, target):
        if who in OURS:
            return self.ours(who, work, target)
        if who == ROOFLINE:
            return [f"{self.bench.build}/bench/roofline", "-j", str(self.bench.threads), self.plan_path(work), target]
        python = os.environ.get("BENCH_RECHUNKER_PYTHON", "") if who == "rechunker" else self.bench.python
        memory = work.memory(self.bench.quick) or ROOM
        told = [*self.layout(work), str(self.bench.threads), str(memory)]
        return [python, f"{HERE}/peer_rechunk.py", who, self.source(who, work), target, *told]

    def clear(self, target):
        measure.remove(target)
        measure.remove(f"{target}.temp")

    def once(self, who, work, target):
        self.clear(target)
        for folder, _, names in os.walk(self.source(who, work)):
            for name in names:
                measure.warm(os.path.join(folder, name))
        # A hypervisor takes back what was free for a while, and what runs next would pay for it.
        measure.touch_memory(min(2 * work.nbytes(self.bench.quick), measure.memory_nbytes() // 2))
        return measure.run(self.argv(who, work, target))

    def refusal(self, who, work, entry, target):
        """Warm-up: why WHO cannot take part; None: it made the right thing."""
        quick = self.bench.quick
        if who == "rechunker" and not os.environ.get("BENCH_RECHUNKER_PYTHON"):
            return "could not be installed"
        run = self.once(who, work, target)
        if run.status != 0:
            return run.why()
        if who == ROOFLINE:
            chunks = work.lengths(work.target, quick)
            zarr_metadata.write(target, [("v", "f4")], work.dims(quick), chunks, work.shards)
        entry["files"], entry["stored_nbytes"] = measure.measure_tree(target)
        verdict = json.loads(self.bench.helper("check_rechunk.py", self.prepare(work), *self.layout(work), target))
        return f"wrong target: {verdict[target]}" if verdict[target] else None

    def qualify(self, row, work):
        """Contenders that rechunk correctly."""
        good, peers = [], work.contenders(self.bench.quick)
        names = [RECHUNK, DEFAULT, *([DURABLE] if "tensorstore-sync" in peers else []), ROOFLINE, *peers]
        for who in names:
            if self.bench.who is not None and who not in (RECHUNK, CONTENDERS[who].partner, *self.bench.who):
                continue
            entry = row["contenders"][who] = {"title": CONTENDERS[who].title, "peak_nbytes": 0}
            entry.update(seconds={}, partner={}, cpu=[])
            target = self.target(who, work)
            why = self.refusal(who, work, entry, target)
            self.clear(target)
            if why:
                entry["refused"] = why
                self.say(f"{work.name}: {who}: {why}")
            else:
                good.append(who)
        return good

    def target(self, who, work):
        return f"{self.bench.work}/{work.name}-{who}.zarr"

    def count(self, row, work, who):
        """One more run of WHO; returns its seconds."""
        target, entry = self.target(who, work), row["contenders"][who]
        run = self.once(who, work, target)
        if run.status != 0:
            raise RuntimeError(f"{work.name}: {who}: {run.why()}")
        self.clear(target)
        # Like rechunk, the roofline counts from start to exit; it has as much memory to give back.
        seconds = run.wall if who == ROOFLINE else run.seconds
        entry["seconds"][len(entry["seconds"])] = seconds
        entry["peak_nbytes"] = max(entry["peak_nbytes"], run.peak_nbytes)
        entry["cpu"].append(run.cpu)
        return seconds

    def pair(self, row, work, who, r):
        partner = CONTENDERS[who].partner
        order = (who, partner) if r % 2 else (partner, who)
        seconds = {name: self.count(row, work, name) for name in order}
        row["contenders"][who]["partner"][len(row["contenders"][who]["seconds"]) - 1] = seconds[partner]

    def rounds(self, who):
        few = 1 if self.bench.quick else FEW
        return self.bench.rounds if CONTENDERS[who].judged else min(self.bench.rounds, few)

    def dry_run(self, work):
        """Bytes and bound, as rechunk reports them."""
        argv = self.argv(RECHUNK, work, f"{self.bench.work}/plan.zarr")
        argv[1] = "--json"
        run = measure.run([*argv[:-2], "--dry-run", *argv[-2:]])
        if run.status != 0:
            return None
        document = json.loads(run.output)
        (array,) = document["arrays"]
        return {"plan": array["plan"], "planned": array["planned"], "memory": document["memory"]}

    def stages(self, work):
        """Time of each kind of work, in the roofline and in rechunk; one run each."""
        found = {}
        for who, option in ((ROOFLINE, "-s"), (RECHUNK, "--json")):
            target = self.target(who, work)
            program, *rest = self.argv(who, work, target)
            run = measure.run([program, option, *rest])
            self.clear(target)
            if run.status != 0:
                raise RuntimeError(f"{work.name}: stages: {run.why()}")
            found[who] = json.loads(run.output)["stages"]
        found[RECHUNK] = {s["name"]: s["seconds"] for s in found[RECHUNK]}
        return found

    def measure(self, work):
        quick = self.bench.quick
        row = {
            "work": work.name,
            "title": work.title,
            "shape": work.dims(quick),
            "memory": work.memory(quick),
            "chunk": work.lengths(work.chunk, quick),
            "target": work.lengths(work.target, quick),
            "shards": work.shards,
            "decoded_nbytes": work.nbytes(quick),
            "contenders": {},
        }
        store_plan.write(self.plan_path(work), self.prepare(work), work, quick)
        good = self.qualify(row, work)
        for r in range(self.bench.rounds):
            os.sync()
            for who in good:
                if who not in (RECHUNK, DURABLE) and CONTENDERS[who].partner in good and r < self.rounds(who):
                    self.pair(row, work, who, r)
        row["plan"] = self.dry_run(work)
        if {ROOFLINE, RECHUNK} <= set(good):
            row["stages"] = self.stages(work)
        times = {who: measure.summary(e["seconds"].values()) for who, e in row["contenders"].items() if e["seconds"]}
        self.say(f"rechunk, {work.name}: " + ", ".join(f"{who} {s['median']:.2f} s" for who, s in times.items()))
        return row


def run(bench, say, only=()):
    """Makes the rows of `rechunk` in the report; ONLY: names of works."""
    every, rows = Rechunks(bench, say), bench.result.setdefault("rechunk", [])
    for work in stores.WORKS:
        if not only or work.name in only:
            rows.append(every.measure(work))
            bench.write()


# ---- the report ----


def ratio(row, who):
    """WHO's time over that of its partner, pair by pair; None where it was not measured."""
    entry = row["contenders"].get(who)
    return measure.ratios(entry["seconds"], entry["partner"]) if entry and entry["partner"] else None


def targets(result, rows):
    for row in result.get("rechunk", []):
        entry = row["contenders"].get(ROOFLINE)
        if entry and not row["memory"]:
            over = measure.ratios(entry["partner"], entry["seconds"]) if entry["partner"] else None
            report.at_most(rows, f"rechunk over roofline: {row['work']}", 1.2, over)
        for who, factor in (("dask", 2.5), ("tensorstore", 1.3), ("rechunker", 5)):
            if who in row["contenders"]:
                name = f"rechunk, times faster than {CONTENDERS[who].title}: {row['work']}"
                report.at_least(rows, name, factor, ratio(row, who))
        plan = row["plan"]["plan"] if row["plan"] else {}
        if plan.get("kind") == "sweep" and plan["bound_nbytes"]:
            name = f"rechunk, bytes over the lower bound: {row['work']}"
            report.at_most(rows, name, 1, plan["traffic_nbytes"] / plan["bound_nbytes"])
        peak = row["contenders"][RECHUNK]["peak_nbytes"]
        if row["memory"] and peak:
            name = f"rechunk, peak memory under --memory: {row['work']}"
            report.at_most(rows, name, row["memory"] // report.MIB, peak / report.MIB, " MiB")


METHOD = """As above, but with stores for input, and in pairs: one run of a contender and one of rechunk right
beside it, in turn this one first and that one. Those who sync are paired with each other, nobody else syncs. Before its
time counts, each target was compared with its source, chunks and shards included, both read by zarr-python with the
codecs of zarrs. All write blosc zstd level 2 with byte shuffle; where chunks and codec stay, rechunk and the roofline
move stored bytes. rechunk and the roofline count from start to exit, peers without their imports; CPU seconds and peak
memory are those of the whole process. In quick runs most peers are measured on the first work only."""


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
        partner = CONTENDERS[who].partner
        over = ratio(row, who)
        cells = [entry["title"], report.spread(measure.summary(entry["seconds"].values()))]
        cells.append("1" if over is None else report.spread(over) + (", durable" if partner == DURABLE else ""))
        cells.append(len(entry["partner"]) or len(entry["seconds"]))
        cells += [f"{measure.summary(entry['cpu'])['median']:.2f}", f"{entry['peak_nbytes'] / report.MIB:.0f}"]
        body.append((*cells, entry["files"], f"{entry['stored_nbytes'] / 1e6:.1f}"))
    head = ("contender", "seconds", "over rechunk", "pairs", "CPU s", "peak MiB", "files", "MB stored")
    lines += ["", report.table(head, body), *refused]
    if "stages" in row:
        lines += ["", report.stages(row["stages"], RECHUNK)]
    return "\n".join(lines)
