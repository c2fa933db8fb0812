"""Many files as one store: the survey, references, and the conversion, beside peers and bare loops.

As in rechunk.py runs come in pairs, one of a contender and one of ours right beside it, now
this one first and now that one; ratios are taken within pairs.  What a conversion makes is
compared with the files before its time counts.
"""

import json
import os
import shutil
from dataclasses import dataclass

import measure
import report
import zarr_metadata
from contenders import CODEC, ROOFLINE

HERE = os.path.dirname(os.path.abspath(__file__))
VERSION = 1  # of what make_archive.py makes
SURVEY, REFER, CONVERT = "survey", "references", "convert"


@dataclass(frozen=True)
class Archive:
    name: str
    files: int
    steps: int
    ny: int
    nx: int
    target: tuple = ()  # chunks of the store; empty: surveyed only

    def shape(self):
        return (self.files * self.steps, self.ny, self.nx)


DAILY = Archive("daily", 400, 24, 181, 360, (48, 91, 180))
QUICK = Archive("daily", 40, 24, 91, 180, (48, 46, 90))
THOUSAND = Archive("thousand", 1000, 24, 91, 180, (48, 46, 90))
MANY = Archive("many", 10000, 4, 91, 180, (48, 46, 90))
TINY = Archive("tiny", 5000, 1, 37, 72)
QUICK_TINY = Archive("tiny", 500, 1, 37, 72)


TITLES = {SURVEY: "nc2zarr --survey", REFER: "nc2zarr --virtual json --verify none", CONVERT: "nc2zarr --verify none"}


@dataclass(frozen=True)
class Contender:
    title: str
    archives: tuple = ("daily",)
    judged: bool = True  # a target names it


SURVEYS = {
    "loop": Contender("bare loops of nc_open, headers and coordinates", ("daily", "tiny")),
    "xarray": Contender("xarray open_mfdataset", ("daily", "tiny")),
    "advised": Contender("the same, told to compare nothing", ("daily",), False),
    "virtualizarr": Contender("VirtualiZarr", judged=False),
    "kerchunk": Contender("kerchunk, scan and combine", judged=False),
}
REFERENCES = {
    "virtualizarr": Contender("VirtualiZarr, written as JSON"),
    "kerchunk": Contender("kerchunk, scan and combine, written as JSON"),
}
CONVERSIONS = {
    ROOFLINE: Contender("roofline, bare loops over the same chunks", ("daily", "thousand", "many")),
    "one": Contender("nc2zarr of the same data in one file", ("daily", "thousand", "many")),
    "xarray": Contender("xarray open_mfdataset + dask + zarr-python 3"),
    "ncrcat": Contender("ncrcat, then nc2zarr of its one file", judged=False),
}


OTHERS = {SURVEY: SURVEYS, REFER: REFERENCES, CONVERT: CONVERSIONS}


class Archives:
    def __init__(self, bench, say):
        self.bench, self.say = bench, say
        self.program = f"{bench.build}/bin/nc2zarr"

    def prepare(self, archive, one=False):
        """The folder of the files, made if it is not there."""
        name = f"{archive.name}{'-one' if one else ''}{'-quick' if self.bench.quick else ''}"
        folder = f"{self.bench.root}/inputs/{name}"
        stamp = repr((archive, VERSION))
        if not os.path.exists(folder + ".made") or open(folder + ".made").read() != stamp:
            self.say(f"making the archive {name}, {archive.files} files")
            measure.remove(folder)
            shape = (archive.files, archive.steps, archive.ny, archive.nx)
            self.bench.helper("make_archive.py", folder, *map(str, shape), *(["one"] if one else []))
            with open(folder + ".made", "w") as f:
                f.write(stamp)
        for name in os.listdir(folder):
            measure.warm(f"{folder}/{name}")
        return folder

    def peer(self, what, folder, out, archive):
        told = ["x".join(map(str, archive.target)), str(self.bench.threads)] if archive.target else []
        return [self.bench.python, f"{HERE}/peer_archive.py", what, folder, out, *told]

    def ours(self, inputs, out, archive):
        chunks = ",".join(f"{d}={n}" for d, n in zip(("time", "lat", "lon"), archive.target))
        return [self.program, "-q", "-j", str(self.bench.threads), "--verify", "none", "--chunks", f"t2m:{chunks}",
                "--codec", CODEC, inputs, out]  # fmt: skip

    # ---- one run each ----

    def survey(self, who, archive, folder):
        if who == SURVEY:
            return measure.run([self.program, "-q", "-j", str(self.bench.threads), "--survey", folder])
        if who == "loop":
            return measure.run([f"{self.bench.build}/bench/survey_loop", str(self.bench.threads), folder])
        return measure.run(self.peer(f"survey-{who}", folder, "-", archive))

    def refer(self, who, archive, folder, out):
        measure.remove(out)
        if who == REFER:
            return measure.run([self.program, "-q", "-j", str(self.bench.threads), "--verify", "none", "--virtual", "json", folder, out])
        return measure.run(self.peer(f"refer-{who}", folder, out, archive))

    def convert(self, who, archive, folder, out):
        measure.remove(out)
        if who == CONVERT:
            return measure.run(self.ours(folder, out, archive))
        if who == "one":
            return measure.run(self.ours(f"{self.prepare(archive, one=True)}/all.nc", out, archive))
        if who == ROOFLINE:
            run = measure.run([f"{self.bench.build}/bench/roofline", "-j", str(self.bench.threads), self.plan, out])
            return run
        if who == "ncrcat":
            return self.ncrcat(archive, folder, out)
        return measure.run(self.peer("convert-xarray", folder, out, archive))

    def ncrcat(self, archive, folder, out):
        """Its file is written beside the others, and counts; nc2zarr's time is added."""
        joined = f"{self.bench.work}/ncrcat.nc"
        names = sorted(f"{folder}/{name}" for name in os.listdir(folder))
        first = measure.run(["ncrcat", "-O", "-h", "-4", "-L", "1", *names, joined])
        if first.status != 0:
            return first
        second = measure.run(self.ours(joined, out, archive))
        second.seconds += first.seconds
        second.cpu += first.cpu
        second.peak_nbytes = max(first.peak_nbytes, second.peak_nbytes)
        os.remove(joined)
        return second

    # ---- pairs ----

    def refusal(self, kind, who, archive, folder, out):
        """Warm-up: why WHO cannot take part; None: it did the work, and what it made is right."""
        if who == "ncrcat" and shutil.which("ncrcat") is None:
            return "ncrcat is not installed"
        run = self.one(kind, who, archive, folder, out)
        if run.status != 0 and not (kind == SURVEY and who == SURVEY and run.status == 4):
            return run.errors.strip() if run.status == 3 else run.why()
        if kind == SURVEY:
            return None
        if who == ROOFLINE:
            zarr_metadata.write(out, [("t2m", "f4")], archive.shape(), archive.target)
        return json.loads(self.bench.helper("check_archive.py", folder, out))[out]

    def one(self, kind, who, archive, folder, out):
        if kind == SURVEY:
            return self.survey(who, archive, folder)
        return (self.refer if kind == REFER else self.convert)(who, archive, folder, out)

    def output(self, kind, who):
        return f"{self.bench.work}/archive-{who}.{'json' if kind == REFER else 'zarr'}"

    def once(self, kind, who, archive, folder):
        out = self.output(kind, who)
        run = self.one(kind, who, archive, folder, out)
        if run.status != 0:
            raise RuntimeError(f"{archive.name}, {kind}: {who}: {run.why()}")
        measure.remove(out)
        return run

    def count(self, row, kind, who, archive, folder):
        run, entry = self.once(kind, who, archive, folder), row["contenders"][who]
        seconds = run.wall if who == ROOFLINE else run.seconds
        entry["seconds"][len(entry["seconds"])] = seconds
        entry["cpu"].append(run.cpu)
        entry["peak_nbytes"] = max(entry["peak_nbytes"], run.peak_nbytes)
        return seconds

    def measure(self, kind, archive):
        folder = self.prepare(archive)
        ours, others = kind, OTHERS[kind]
        row = {"kind": kind, "archive": archive.name, "files": archive.files, "shape": archive.shape(), "contenders": {}}
        title = TITLES[kind]
        names = [ours, *(w for w, c in others.items() if archive.name in c.archives)]
        good = []
        if kind == CONVERT:
            self.plan = f"{self.bench.work}/archive.plan"
            self.bench.helper("peer_archive.py", "index", folder, self.plan, "x".join(map(str, archive.target)))
        for who in names:
            if self.bench.who is not None and who not in (ours, *self.bench.who):
                continue
            entry = {"title": others[who].title if who in others else title, "seconds": {}, "partner": {}, "cpu": []}
            row["contenders"][who] = {**entry, "peak_nbytes": 0}
            out = self.output(kind, who)
            why = self.refusal(kind, who, archive, folder, out)
            measure.remove(out)
            if why:
                row["contenders"][who]["refused"] = why
                self.say(f"{archive.name}, {kind}: {who}: {why}")
            else:
                good.append(who)
        if ours in good:
            self.pairs(row, kind, [w for w in good if w != ours], ours, archive, folder)
        said = {w: measure.summary(e["seconds"].values()) for w, e in row["contenders"].items() if e["seconds"]}
        self.say(f"{archive.name}, {kind}: " + ", ".join(f"{w} {s['median']:.2f} s" for w, s in said.items()))
        return row

    def pairs(self, row, kind, peers, ours, archive, folder):
        others = OTHERS[kind]
        slow = 1 if self.bench.quick else 3
        for r in range(self.bench.rounds):
            os.sync()
            for who in peers:
                bare = who in ("loop", ROOFLINE, "one")
                if not bare and r >= (slow if others[who].judged else 1):
                    continue
                order = (who, ours) if r % 2 else (ours, who)
                seconds = {w: self.count(row, kind, w, archive, folder) for w in order}
                entry = row["contenders"][who]
                entry["partner"][len(entry["seconds"]) - 1] = seconds[ours]


def run(bench, say, only=()):
    """Makes the rows of `archive` in the report; ONLY: survey, references, convert."""
    every, rows = Archives(bench, say), bench.result.setdefault("archive", [])
    daily, tiny = (QUICK, QUICK_TINY) if bench.quick else (DAILY, TINY)
    larger = () if bench.quick else ((CONVERT, THOUSAND), (CONVERT, MANY))
    for kind, archive in ((SURVEY, daily), (SURVEY, tiny), (REFER, daily), (CONVERT, daily), *larger):
        if not only or kind in only:
            rows.append(every.measure(kind, archive))
            bench.write()


# ---- the report ----


def ratio(row, who):
    """WHO's time over ours, pair by pair; None where it was not measured."""
    entry = row["contenders"].get(who)
    return measure.ratios(entry["seconds"], entry["partner"]) if entry and entry["partner"] else None


def ours_over(row, who):
    entry = row["contenders"].get(who)
    return measure.ratios(entry["partner"], entry["seconds"]) if entry and entry["partner"] else None


def targets(result, rows):
    for row in result.get("archive", []):
        where = f"{row['files']} files"
        if row["kind"] == SURVEY:
            report.at_least(rows, f"survey, speed over the bare loop: {where}", 0.8, ratio(row, "loop"))
            report.at_least(rows, f"survey, times faster than open_mfdataset: {where}", 10, ratio(row, "xarray"))
            continue
        if row["kind"] == REFER:
            continue  # ratios are shown, and no target names one
        report.at_most(rows, f"archive over roofline: {where}", 1.1, ours_over(row, ROOFLINE))
        report.at_most(rows, f"archive over the same data in one file: {where}", 1.1, ours_over(row, "one"))
        report.at_least(rows, f"archive, times faster than xarray + dask: {where}", 4, ratio(row, "xarray"))


METHOD = """Daily NetCDF-4 files whose units drift from file to file, with a static field and a history each,
deflated with shuffle, a map a chunk; all warm. A survey opens every file, reads headers and coordinates, and says how
they hang together; the bare loop asks libnetcdf for the same with as many processes. References are read back by
zarr-python and compared with the files, as stores are. The conversion writes blosc zstd
level 2 with byte shuffle; before times count, values and times of each store are compared with what netCDF4 and cftime
read from the files. Peers count without their imports, ncrcat together with the nc2zarr that follows; peers that no
target names run once."""


def sections(result):
    rows = result.get("archive", [])
    return ["# Archives\n\n" + METHOD, *(section(row) for row in rows)] if rows else []


def section(row):
    shape = "x".join(map(str, row["shape"]))
    lines = [f"## {row['kind']}, {row['files']} files: {shape} float32", ""]
    body, refused = [], []
    for entry in row["contenders"].values():
        if not entry["seconds"]:
            refused.append(f"- {entry['title']}: {entry.get('refused', 'not measured')}")
            continue
        over = measure.ratios(entry["seconds"], entry["partner"]) if entry["partner"] else None
        s = measure.summary(entry["seconds"].values())
        body.append((entry["title"], report.spread(s), report.spread(over) if over else "1", len(entry["partner"]) or s["n"],
                     f"{row['files'] / s['median']:.0f}", f"{measure.summary(entry['cpu'])['median']:.2f}",
                     f"{entry['peak_nbytes'] / report.MIB:.0f}"))  # fmt: skip
    head = ("contender", "seconds", "over nc2zarr", "pairs", "files/s", "CPU s", "peak MiB")
    return "\n".join([*lines, report.table(head, body), *refused])
