"""Every call to the system fails once, in small runs of each program, and each time the run ends in order.

A run that fails says why in one sentence that names a file, leaves nothing that opens and is not
whole, touches nothing that is not its own, and can be resumed.  A run that does not fail has made
what it makes undisturbed, to the byte.  `make check` tries a sample; check-long tries up to
MOST of the calls of each class.
"""

import errno
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import netCDF4
import numpy as np
import pytest

from support import failio, paths, tool
from support import readbench as rb

pytestmark = [
    pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library has to be the first one"),
]
MOST = paths.tries(1, 3, 15)  # failures of each kind in each class of calls


def make_input(path, **kw):
    rng = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w", **kw) as ds:
        for d, n in (("time", 6), ("lat", 8), ("lon", 10)):
            ds.createDimension(d, n)
        ds.setncatts({"title": "torture", "n": np.int32(3)})
        time = ds.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        time[:] = np.arange(6)
        options = {} if kw else {"zlib": True, "chunksizes": (2, 4, 5)}
        for name in ("tas", "pr"):
            v = ds.createVariable(name, "f4", ("time", "lat", "lon"), fill_value=1e20, **options)
            v.setncatts({"units": "K", "long_name": name})
            v[:] = rng.random((6, 8, 10), "f4")
        if not kw:
            text = ds.createVariable("text", str, ("time",))
            text[:] = np.array([f"day {i}" * i for i in range(6)], object)
    return path


@dataclass
class Case:
    name: str
    program: str
    args: list  # "@" stands for the root
    out: str = ""  # the store that is made
    before: tuple = ()  # programs run beforehand: (program, args)
    partial: bool = False  # OUT was begun by a run of the same command that was stopped
    documents: tuple = ()  # JSON documents that are made beside it
    reads: bool = False  # makes nothing: what it prints is the result
    again: str = "--resume"  # how it is brought to its end
    dear: int = 1  # how many times fewer failures are tried


NC, CLASSIC, OUT, ZARR = "@/in.nc", "@/classic.nc", "@/out.zarr", "@/in.zarr"
MADE = (("nc2zarr", ["--chunks", "2x4x5", NC, ZARR]),)
BENCH = "--variable tas --sample 1x4x5 --batch 2 --batches 3 --epochs 1 --workers 2 --step-time 0ms".split()
BENCH += ["--memory", "256MiB", "--validate", "checksum", "--out", "@/bench"]
REPORT = ("bench/summary.json", "bench/trace.json")
SMALL = ["-j", "2", "--chunks", "3x4x10"]
CASES = [
    Case("v3", "nc2zarr", [*SMALL, "--verify", "full", NC, OUT], "out.zarr"),
    Case("v2", "nc2zarr", ["-j", "2", "--zarr-format", "2", "--chunks", "auto:1KiB", NC, OUT], "out.zarr"),
    Case("shards", "nc2zarr", ["--chunks", "1x4x5", "--shards", "2x8x10", NC, OUT], "out.zarr"),
    Case("text", "nc2zarr", ["--variable", "text", "--verify", "full", NC, OUT], "out.zarr"),
    Case("kept", "nc2zarr", ["--codec", "keep", "--verify", "full", NC, OUT], "out.zarr"),
    Case("classic", "nc2zarr", ["-j", "1", "--codec", "none", CLASSIC, OUT], "out.zarr"),
    Case("durable", "nc2zarr", ["--durable", "--verify", "none", NC, OUT], "out.zarr"),
    Case(
        "documents",
        "nc2zarr",
        ["--trace", "@/trace.json", "--certificate", "@/proof.json", "--verify", "full", CLASSIC, OUT],
        "out.zarr",
        documents=("trace.json", "proof.json"),
    ),
    Case("resume", "nc2zarr", [*SMALL, "--resume", NC, OUT], "out.zarr", partial=True),
    Case(
        "overwrite",
        "nc2zarr",
        ["--overwrite", NC, OUT],
        "out.zarr",
        before=(("nc2zarr", ["--zarr-format", "2", CLASSIC, OUT]),),
        again="--overwrite",
    ),
    Case("check", "nc2zarr", ["--check", NC, ZARR], before=MADE, reads=True),
    Case("dry run", "nc2zarr", ["--dry-run", NC, OUT], reads=True),
    Case("rechunk", "rechunk", ["--chunks", "6x2x3", "--verify", "full", ZARR, OUT], "out.zarr", MADE),
    Case("rechunk v2", "rechunk", ["-j", "2", "--zarr-format", "2", "--chunks", "5x5x5", ZARR, OUT], "out.zarr", MADE),
    Case(
        "rechunk shards", "rechunk", ["--chunks", "1x2x5", "--shards", "6x4x10", ZARR, OUT], "out.zarr", MADE
    ),
    Case("recompressed", "rechunk", ["--codec", "gzip:1", "--durable", ZARR, OUT], "out.zarr", MADE),
    Case("passed on", "rechunk", [ZARR, OUT], "out.zarr", MADE),
    Case("rechunk resume", "rechunk", [*SMALL, "--resume", ZARR, OUT], "out.zarr", MADE, partial=True),
    Case(
        "rechunk overwrite",
        "rechunk",
        ["--overwrite", "--chunks", "6x2x3", ZARR, OUT],
        "out.zarr",
        (*MADE, ("nc2zarr", [CLASSIC, OUT])),
        again="--overwrite",
    ),
    Case(
        "into a store",
        "rechunk",
        ["--chunks", "6x2x3", ZARR, "@/big.zarr::sub/new"],
        "big.zarr/sub/new",
        (*MADE, ("nc2zarr", [CLASSIC, "@/big.zarr"])),
    ),
    Case("digest", "rechunk", ["--digest", NC, ZARR], before=MADE, reads=True),
    Case("chunkcalc", "chunkcalc", [ZARR], before=MADE, reads=True),
    Case("chunkcalc file", "chunkcalc", ["--variable", "tas", NC], reads=True),
    Case("readbench", "readbench", [*BENCH, "--mode", "threads", ZARR], before=MADE, documents=REPORT, dear=5),
    Case(
        "readbench processes",
        rb.BARE,
        [*BENCH, "--mode", "processes", "--cache-dir", "@/cache", "--cache-dir-size", "1MiB", ZARR],
        before=MADE,
        documents=REPORT,
        dear=5,
    ),
    Case("readbench uring", rb.BARE, [*BENCH, "--io", "uring", ZARR], before=MADE, documents=REPORT, dear=5),
    Case("readbench file", rb.BARE, [*BENCH, "--engine", "netcdf", NC], documents=REPORT, dear=5),
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    make_input(folder / "in.nc")
    make_input(folder / "classic.nc", format="NETCDF3_64BIT_OFFSET")
    return folder


def steady(text):
    """Printed lines without times, memory and threads."""
    lines = [line for line in text.splitlines() if not line.strip().startswith("Memory:")]
    return [re.sub(r" in [0-9.]+ m?s| +[0-9.]+ [MG]B/s", "", line) for line in lines]


class Bench:
    """One case: what there is before, what an undisturbed run makes of it, and trying again."""

    def __init__(self, case, inputs, tmp_path):
        self.case, self.tmp = case, tmp_path.resolve()
        self.root, self.template, self.state = self.tmp / "root", self.tmp / "template", self.tmp / "state"
        shutil.copytree(inputs, self.root)
        for program, args in case.before:
            tool.run(program, "-q", *self.at_root(args)).ok()
        if case.partial:
            self.stop_half_way()
        self.plant()
        shutil.copytree(self.root, self.template, symlinks=True)
        self.foreign = failio.contents(self.root)
        if case.out and (case.partial or case.again == "--overwrite"):
            ours = failio.contents(self.root / case.out)
            self.foreign = {
                k: v
                for k, v in self.foreign.items()
                if not k.startswith(case.out) or (k.endswith("foreign") and k[len(case.out) + 1 :] in ours)
            }
        if case.out == "big.zarr/sub/new":  # the store's own consolidated metadata name what is new
            del self.foreign["big.zarr/zarr.json"]
        self.old = self.whole()
        self.profile = self.attempt()
        assert self.profile.done.status == 0, str(self.profile.done)
        self.truth = self.whole()
        self.after = failio.contents(self.root / case.out) if case.out else None
        self.printed = self.profile.done.out

    def at_root(self, args):
        return [a.replace("@", str(self.root)) for a in args]

    def attempt(self, kind=None, nth=0, way="EIO"):
        failio.renew(self.template, self.root)
        return self.run(self.case.args, kind, nth, way)

    def run(self, args, kind=None, nth=0, way="EIO"):
        quiet = [] if self.case.reads else ["-q"]
        return failio.inject(
            self.case.program,
            *quiet,
            *self.at_root(args),
            root=self.root,
            state=self.state,
            kind=kind,
            nth=nth,
            way=way,
            timeout=300,
        )

    def stop_half_way(self):
        """The state after a full disk, half-way through the chunks."""
        args = [a for a in self.case.args if a != "--resume"]
        n = self.run(args).counts["write"]
        shutil.rmtree(self.root / self.case.out)
        assert self.run(args, "write", n // 2, "ENOSPC+").done.status == 1
        assert (self.root / self.case.out).is_dir()

    def plant(self):
        """Adds foreign files around the output and inside."""
        (self.root / "beside").mkdir()
        (self.root / "beside" / "foreign").write_text("mine")
        (self.root / "link").symlink_to("beside")
        if self.case.out and (self.root / self.case.out).is_dir():
            (self.root / self.case.out / "foreign").write_text("mine, in the store")

    def whole(self):
        """The content of the store; None if it does not open."""
        out = self.root / self.case.out
        if not self.case.out or not tool.opens_as_store(out):
            return None
        done = tool.run("rechunk", "--digest", out)
        return done.out if done.status == 0 else str(done)

    def differs(self):
        """From the undisturbed run: chunks may lie elsewhere in a shard, the rest is equal."""
        now = failio.contents(self.root / self.case.out)
        names = set(now) ^ set(self.after)
        is_json = (k for k in self.after if k.rsplit("/", 1)[-1] in ("zarr.json", ".zattrs", ".zarray", ".zgroup"))
        changed = {k for k in is_json if now.get(k) != self.after[k]}
        if names or changed:
            return f"other files {sorted(names)}, changed {sorted(changed)}"
        return "" if self.whole() == self.truth else f"other values: {self.whole()}"

    def problems(self, kind, nth, way):
        """The failures of order of one attempt; None where nothing failed in it."""
        got = self.attempt(kind, nth, way)
        if got.nfailed == 0:
            return None
        found = list(self.judge(got.done, kind, way))
        if self.case.out and not found and got.done.status != 0:
            found = list(self.bring_to_end())
        said = f"{kind} {nth} {way}, {got.what.replace(str(self.root), '@')}: status {got.done.status}\n    {got.done.err}"
        return [f"{said}    {p}" for p in found]

    def judge(self, done, kind, way):
        now = failio.contents(self.root)
        for name, was in self.foreign.items():
            if name not in now or now[name] != was:
                yield f"{name} was {'changed' if name in now else 'removed'}"
        if done.status == 0:
            # It says what it could not measure, and its census which object could not be read, and why.
            named = hasattr(errno, way) and os.strerror(getattr(errno, way)) in done.out
            told = self.case.program == "chunkcalc" and ("warning" in done.err or named)
            if self.case.reads and not told and steady(done.out) != steady(self.printed):
                yield f"printed something else:\n{done.out}"
            if self.case.out and self.differs():
                yield f"done, but {self.differs()}"
            for name in self.case.documents:
                try:
                    json.loads((self.root / name).read_bytes())
                except (OSError, ValueError) as e:
                    yield f"done, but {name}: {e}"
            return
        if way in ("short", "EINTR"):
            yield "is no failure"
        if done.status != 1:
            yield "is not the status of a failure"
        yield from self.sentence(done, kind)
        if self.case.out and self.whole() not in (None, self.truth, self.old):
            yield f"opens, but holds {self.whole()}"

    def sentence(self, done, kind):
        lines = [line for line in done.err.splitlines() if "warning" not in line]
        begin = f"{Path(self.case.program).name}: "
        if done.out and not self.case.reads:
            yield f"printed {done.out}"
        if len(lines) != 1 or not lines[0].startswith(begin):
            yield "does not say it in one sentence"
        elif kind not in failio.NAMELESS and str(self.root) not in lines[0]:
            yield "names no file"

    def only_foreign_is_left(self):
        below = f"{self.case.out}/"
        now = {k for k, v in failio.contents(self.root).items() if k.startswith(below) and v is not None}
        return now == {k for k in self.foreign if k.startswith(below)}

    def bring_to_end(self):
        args = [a for a in self.case.args if a not in ("--resume", "--overwrite")]
        done = tool.run(self.case.program, "-q", self.case.again, *self.at_root(args))
        if done.status == 1 and "is not a Zarr store, so --overwrite" in done.err and self.only_foreign_is_left():
            return  # what the first run was allowed to remove is gone, and the rest is not ours
        if done.status != 0:
            yield f"{self.case.again} fails: {done.err}"
        elif self.differs():
            yield f"after {self.case.again} {self.differs()}"


@pytest.mark.long(ci=9)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_each_call_fails_once(case, inputs, tmp_path):
    bench = Bench(case, inputs, tmp_path)
    tried, problems = 0, []
    for kind, ways in failio.WAYS.items():
        for way in ways:
            for nth in failio.spread(bench.profile.counts[kind], -(-MOST // case.dear)):
                found = bench.problems(kind, nth, way)
                tried += found is not None
                problems += found or []
    counts = paths.BUILD / "tests" / "torture"
    counts.mkdir(parents=True, exist_ok=True)
    (counts / f"{case.name}.json").write_text(json.dumps({"tried": tried, "calls": bench.profile.counts}))
    assert not problems, f"{len(problems)} of {tried}:\n" + "\n".join(problems[:40])
    assert tried >= 5
