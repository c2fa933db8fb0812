"""A disk that is full for one write of a document, and for no later one.

stdio forgets why a write failed, and a disk may have room again when it is asked: every writer says "No space left on
device", of the write that failed, and leaves no document with a gap.
"""

import json
import subprocess

import netCDF4
import numpy as np
import pytest
from support import failio, paths, tool
from support import readbench as rb

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library has to be the first one")
MOST = paths.tries(3, 8, 30)  # writes of each document that fail

BENCH = "--variable v --sample 2x2 --batch 2 --batches 40 --epochs 1 --workers 1 --step-time 0ms --memory 256MiB".split()
PAIR = ["--new-dim", "file=*.nc", "@/in.nc", "@/more.nc"]
# The documents lie below @docs, all else beside it: only their writes are counted.
RUNS = {
    "certificate and trace": (
        "nc2zarr",
        ["--trace", "@docs/t.json", "--certificate", "@docs/c.json", "--verify", "full", "@/in.nc", "@/made.zarr"],
    ),
    "survey cache": ("nc2zarr", ["--survey", "--survey-cache", "@docs/cache", *PAIR]),
    "references": ("nc2zarr", ["--virtual", "json", "@/in.nc", "@docs/refs.json"]),
    "plot": ("chunkcalc", ["--sample", "2x2", "--plot", "@docs/p.svg", "@/in.zarr"]),
    "trace of readbench": (rb.BARE, [*BENCH, "--no-out", "--trace", "@docs/t.json", "@/in.zarr"]),
    "report": (rb.BARE, [*BENCH, "--out", "@docs/report", "@/in.zarr"]),
    "report with pictures": ("readbench", [*BENCH, "--out", "@docs/report", "@/in.zarr"]),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Enough chunks for documents of several buffers."""
    root = tmp_path_factory.mktemp("full")
    for name in ("in.nc", "more.nc"):
        with netCDF4.Dataset(root / name, "w") as ds:
            for d in ("y", "x"):
                ds.createDimension(d, 32)
            ds.createVariable("v", "f4", ("y", "x"), chunksizes=(2, 2))[:] = np.arange(1024).reshape(32, 32)
    tool.run("nc2zarr", "-q", "--chunks", "2x2", root / "in.nc", root / "in.zarr").ok()
    (root / "docs").mkdir()
    return root


@pytest.mark.few(2)
@pytest.mark.parametrize("case", RUNS)
def test_a_disk_that_is_full_once(template, tmp_path, case):
    program, args = RUNS[case]
    root, state = tmp_path.resolve() / "root", tmp_path / "state"

    def attempt(**kw):
        failio.renew(template, root)
        given = [a.replace("@docs", str(root / "docs")).replace("@", str(root)) for a in args]
        return failio.inject(program, "-q", *given, root=root / "docs", state=state, **kw)

    profile = attempt()
    whole = {k for k in failio.contents(root / "docs") if not k.endswith(".part")}
    assert profile.done.status == 0 and profile.counts["write"] > 0, str(profile.done)
    for nth in failio.spread(profile.counts["write"], 1 if case == "report with pictures" and MOST < 8 else MOST):
        outcome = attempt(kind="write", nth=nth, way="ENOSPC")
        done = outcome.done
        if outcome.nfailed == 0:  # times in a report have more digits in one run than in another
            assert done.status == 0 and nth > outcome.counts["write"] > 0, f"{nth}\n{done}"
            continue
        assert outcome.nfailed == 1 and done.status == 1, f"{nth}: {outcome.what}\n{done}"
        assert "No space left on device" in done.err and "Input/output error" not in done.err, str(done)
        left = failio.contents(root / "docs")
        assert set(left) < whole, "the document that failed is not there, and nothing else is"
        for key, data in left.items():
            if key.endswith(".json"):
                json.loads(data)


@pytest.mark.parametrize("program", ["nc2zarr", "rechunk", "chunkcalc", "readbench"])
def test_a_standard_output_that_is_full_once(tmp_path, program):
    """A help is longer than stdio's buffer: its first write fails, in the middle of printing, and the others would not."""
    out, state = tmp_path.resolve() / "out", tmp_path / "state"
    env = tool.environment(failio.environment(tmp_path, state, "write", 1, "ENOSPC"))
    with open(out, "w") as to:
        done = subprocess.run([tool.program(program), "--help"], stdout=to, stderr=subprocess.PIPE, text=True, env=env)
    assert failio.failed(state), "nothing was written"
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "standard output" in done.stderr and "No space left on device" in done.stderr, done.stderr
    assert out.read_text() == "", "there is no gap in what was printed"
