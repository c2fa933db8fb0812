"""readbench beside its peers and the roofline, on the works of readings.py.

A pair is one pass of a peer over the samples and one of readbench right beside it,
now this one first and now that one; ratios are taken within pairs.  In quick runs
all peers of a round share one pass of readbench, and there are two rounds.  Everyone has opened the store
before, has read the samples once, and that pass gave the same CRC32C of each sample.
"""

import copy
import os

import inputs
import measure
import readbench_disk
import readings
import report
from readbench_contenders import Ours, Refused, plan_of, server

QUICK_ROUNDS = 2


def load():
    """Programs that wanted to run, in the mean of the last minute."""
    return os.getloadavg()[0]


class Readbenches:
    def __init__(self, bench, say):
        self.bench, self.say = bench, say

    # ---- stores ----

    def spec(self, reading):
        """The standard input, and whether it is the short one."""
        return inputs.find("standard"), self.bench.quick or reading.quick_input

    def store(self, layout_name, quick):
        """The standard input in that layout, made if it is not there."""
        layout, bench = readings.LAYOUTS[layout_name], self.bench
        path = f"{bench.root}/inputs/read-{layout_name}{'-quick' if quick else ''}.zarr"
        stamp = repr((layout, inputs.find("standard"), inputs.VERSION, readings.VERSION))
        if not os.path.exists(path + ".made") or open(path + ".made").read() != stamp:
            maker = copy.copy(bench)
            maker.quick = quick
            source, _ = maker.prepare(inputs.find("standard"))
            self.say(f"making {os.path.basename(path)}")
            measure.remove(path)
            shape = ["x".join(map(str, lengths)) for lengths in (layout.chunk, layout.shard)]
            argv = [f"{bench.build}/bin/nc2zarr", "-q", "--verify", "none", "--chunks", shape[0], "--shards",
                    shape[1] or "none", "--codec", readings.CODEC, source, path]  # fmt: skip
            run = measure.run(argv)
            if run.status != 0:
                raise RuntimeError(f"{path}: {run.why()}")
            with open(path + ".made", "w") as f:
                f.write(stamp)
        return path

    # ---- contenders ----

    def ours(self, name, reading, store, options):
        spec, quick = self.spec(reading)
        told = {"--variable": spec.variables()[0][0], "--sample": "x".join(map(str, reading.sample)),
                "--order": reading.order, "--batch": reading.batch, "--mode": reading.mode,
                "--batches": reading.nbatches(self.bench.quick, spec.dims(quick)), "--loader": reading.loader,
                "--workers": self.bench.threads, "--worker-threads": 1}  # fmt: skip
        argv = [str(word) for pair in told.items() for word in pair]
        return Ours(f"{self.bench.build}/bin/readbench", store, [*argv, *options],
                    reading.epochs[self.bench.quick], f"{self.bench.work}/{name}")  # fmt: skip

    def write_plan(self, reading, store, samples):
        spec, _ = self.spec(reading)
        path, name = f"{self.bench.work}/{reading.name}.plan", spec.variables()[0][0]
        plan_of(f"{store}/{name}", reading.batch, samples).write(path)
        return path

    def peer(self, reading, peer, store, plan):
        name = f"{reading.name}-{peer.who}"
        if peer.options:
            return self.ours(name, reading, store, [*reading.options, *peer.options])
        return server(peer.who, self.bench, plan, self.bench.threads, f"{self.bench.work}/{name}")

    def qualify(self, reading, store, plan, samples, row):
        """Contenders that read the same samples."""
        good = {}
        for peer in reading.peers:
            if (self.bench.quick and not peer.quick) or (self.bench.who is not None and peer.who not in self.bench.who):
                continue
            entry = row["contenders"][peer.who] = {"title": peer.title, "factor": peer.factor}
            entry.update(seconds={}, cpu={}, partner={}, partner_cpu={})
            contender = self.peer(reading, peer, store, plan)
            try:
                if peer.options:
                    # Another loader or setting: the same samples, perhaps in another order.
                    same = sorted((s.start, s.crc) for s in contender.samples())
                    wanted = sorted((s.start, s.crc) for s in samples)
                else:
                    same, wanted = contender.checksums(), [s.crc for s in samples]
                if same != wanted:
                    raise Refused(f"{sum(a != b for a, b in zip(same, wanted))} of {len(wanted)} samples are others")
            except Refused as refused:
                contender.close()
                entry["refused"] = str(refused)
                self.say(f"readbench, {reading.name}: {peer.who}: {refused}")
                continue
            good[peer.who] = contender
        return good

    # ---- measuring ----

    def pair(self, row, who, contender, ours, r):
        entry = row["contenders"][who]
        if self.bench.quick and row["last"].get("round") == r:
            passes = {"ours": row["last"]["pass"], "peer": contender.once()}
        else:
            passes = {}
            for side in ("ours", "peer") if r % 2 == 0 or self.bench.quick else ("peer", "ours"):
                passes[side] = (ours if side == "ours" else contender).once()
            row["last"] = {"round": r, "pass": passes["ours"]}
        for key, side in (("", "peer"), ("partner", "ours")):
            entry[key or "seconds"][r] = passes[side].seconds
            entry[f"{key}_cpu" if key else "cpu"][r] = passes[side].cpu
        row["load"].append(load())

    def measure(self, reading):
        _, quick = self.spec(reading)
        store = self.store(reading.layout, quick)
        layout = readings.LAYOUTS[reading.layout]
        for path in readbench_disk.files_of(store):
            measure.warm(path)
        ours = self.ours(reading.name, reading, store, reading.options)
        row = {"work": reading.name, "title": reading.title, "chunk": layout.chunk, "shard": layout.shard,
               "sample": reading.sample, "order": reading.order, "mode": reading.mode, "loader": reading.loader,
               "batch": reading.batch, "workers": self.bench.threads, "load": [], "last": {},
               "contenders": {}}  # fmt: skip
        try:
            samples = ours.samples()
        except Refused as refused:
            self.say(f"readbench, {reading.name}: {refused}")
            return {**row, "refused": str(refused)}
        row["samples"] = len(samples)
        good = self.qualify(reading, store, self.write_plan(reading, store, samples), samples, row)
        try:
            for r in range(min(self.bench.rounds, QUICK_ROUNDS) if self.bench.quick else self.bench.rounds):
                order = list(good)
                for who in order[r % len(order) :] + order[: r % len(order)] if order else ():
                    self.pair(row, who, good[who], ours, r)
        finally:
            for contender in good.values():
                contender.close()
        del row["last"]
        row["counts"], row["decodes_per_chunk"] = ours.counts, ours.decodes
        self.say(one_line(row))
        return row


def one_line(row):
    parts = []
    for who, entry in row["contenders"].items():
        if entry["seconds"]:
            over = report.spread(measure.ratios(entry["seconds"], entry["partner"]))
            parts.append(f"{who} {over}")
    return f"readbench, {row['work']}: times as long as readbench: " + ", ".join(parts)


def run(bench, say, only=()):
    """Makes the rows of `readbench` in the report; ONLY: names of works, or disk."""
    every, result = Readbenches(bench, say), bench.result.setdefault("readbench", {"rows": []})
    for reading in readings.READINGS:
        if reading.name in only or (not only and (reading.quick or not bench.quick)):
            result["rows"].append(every.measure(reading))
            bench.write()
    if not only or "disk" in only:
        result["disk"] = readbench_disk.measure_disk(bench, every.store("shards", bench.quick), say)
        bench.write()
