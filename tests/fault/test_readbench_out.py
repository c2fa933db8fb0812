"""A folder of results that was begun is one that --overwrite takes, wherever the disk was full or the run was killed."""

import json
import shutil
import signal

import numpy as np
import pytest
import zarr

from support import failio, paths
from support import readbench as rb


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("out")
    group = zarr.create_group(str(root / "t.zarr"))
    group.create_array("t", shape=(8, 8), chunks=(4, 4), dtype="f4")[...] = np.arange(64).reshape(8, 8)
    return root


@pytest.mark.parametrize("sessions", ("one", "two"))
@pytest.mark.parametrize("kind, way", (("write", "ENOSPC+"), ("write", "kill"), ("rename", "kill")))
def test_what_was_begun_is_known(world, kind, way, sessions):
    out, state = world / "out", world / "state"
    argv = ["-q", "--sample", "2x2", "--batches", "2", "--step-time", "0ms", "--out", out, world / "t.zarr"]
    argv += ["--sweep", "workers=0,1"] if sessions == "two" else []

    def attempt(nth, way, *more):
        return failio.inject(rb.BARE, *more, *argv, root=world, state=state, kind=kind, nth=nth, way=way, timeout=300)

    shutil.rmtree(out, ignore_errors=True)
    whole = attempt(0, way)
    whole.done.ok()
    files = set(failio.contents(out))
    nfailed = 0
    for nth in failio.spread(whole.counts[kind], paths.tries(4, 40, 1000)):
        shutil.rmtree(out, ignore_errors=True)
        failed = attempt(nth, way)
        if failed.nfailed == 0:  # how often it writes is not always the same
            continue
        nfailed += 1
        assert failed.done.status in (1, -signal.SIGKILL, 128 + signal.SIGKILL), str(failed.done)
        again = attempt(0, way, "--overwrite")
        assert again.done.status == 0, f"{failed.what}: {again.done}"
        assert set(failio.contents(out)) == files, failed.what
        json.loads((out / "summary.json").read_text())
    assert nfailed > 1
