"""Killed at random moments and resumed, a store of many files is what it would have been."""

import os
import random
import shutil
import subprocess
import time

import pytest

from support import paths, rechunked, tool

from . import files as F
from . import stores

KILLS = paths.tries(4, 12, 50)

LAYOUTS = {
    "cuts on chunk boundaries": ["--codec", "keep"],
    "cuts inside chunks": ["--chunks", "time=7,lat=2", "--codec", "zstd:9"],
    "shards": ["--chunks", "time=3", "--shards", "time=12"],
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    files = [F.half_days(i, steps=8) for i in range(40)]
    folder = tmp_path_factory.mktemp("archive")
    F.write_all(files, folder)
    return files, folder


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_kills(archive, layout, tmp_path):
    files, folder = archive
    out = tmp_path / "out.zarr"
    args = ["-q", "-j", "1", "--verify", "none", *LAYOUTS[layout]]
    begin = time.monotonic()
    tool.nc2zarr(*args, folder, out).ok()
    took = time.monotonic() - begin
    want = rechunked.files(out)
    rng = random.Random(layout)
    for kill in range(KILLS):
        shutil.rmtree(out)
        resume = []
        for _ in range(1 + kill % 3):
            argv = [tool.program("nc2zarr"), *args, *resume, str(folder), str(out)]
            with subprocess.Popen(argv, stderr=subprocess.DEVNULL, env=tool.environment()) as p:
                time.sleep(rng.random() * took)
                p.kill()
            resume = ["--resume"] if out.exists() or os.path.exists(f"{out}.chunkmill") else []
            # A store that opens is complete: it is not run again, and compared below.
        if not tool.opens_as_store(out):
            tool.nc2zarr(*args, *resume, folder, out).ok()
        got = rechunked.files(out)
        assert set(got) == set(want), (layout, kill)
        if layout != "shards":
            assert got == want, (layout, kill)
        stores.same(out, F.joined(files))
        assert set(os.listdir(tmp_path)) <= {"out.zarr", "out.zarr.chunkmill"}, os.listdir(tmp_path)


def test_resume_after_the_archive_changed(archive, tmp_path):
    """The rest of another archive is no continuation."""
    files, folder = archive
    here = tmp_path / "in"
    shutil.copytree(folder, here)
    out = tmp_path / "out.zarr"
    args = ["-q", "-j", "1", "--verify", "none", "--chunks", "time=7,lat=2", "--codec", "zstd:19"]
    with subprocess.Popen([tool.program("nc2zarr"), *args, str(here), str(out)], env=tool.environment()) as p:
        while p.poll() is None and not (out.exists() and any(out.rglob("c/*"))):
            time.sleep(0.0005)
        p.kill()
    if tool.opens_as_store(out):
        pytest.skip("it was done before it was killed")
    F.write(F.half_days(len(files), steps=8, first=8 * len(files)), here)
    r = tool.nc2zarr(*args, "--resume", here, out)
    assert r.status == 1 and not tool.opens_as_store(out), str(r)
