"""However many files there are, each is opened a few times, and not once for every variable."""

import resource

import numpy as np
import pytest

from support import failio

from . import files as F
from . import stores

FILES, STEPS = 60, 4
VARIABLES = 5


def few_descriptors():
    """A quarter of them is for inputs: 16 files stay open."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def archive(files, folder):
    made = []
    for i in range(files):
        steps = np.arange(i * STEPS, (i + 1) * STEPS)
        vars = {"time": F.Var(("time",), steps.astype("f8"), {"units": "hours since 2000-01-01"})}
        for k in range(VARIABLES):
            data = (steps[:, None] * 100 + np.arange(6) + k * 10000).astype("f4")
            vars[f"v{k}"] = F.Var(("time", "x"), data, chunks=(1 + k % 2, 6), deflate=1)
        made.append(F.File(f"f{i:03}.nc", vars))
    F.write_all(made, folder)
    return F.joined(made)


def opens(tmp_path, files, *args):
    """Opens of inputs, each, by a conversion."""
    want = archive(files, tmp_path / "in")
    done = failio.inject("nc2zarr", "-q", "-j2", *args, tmp_path / "in", tmp_path / "out.zarr", root=tmp_path / "in", state=tmp_path / "state",
                         before=few_descriptors)  # fmt: skip
    done.done.ok()
    stores.same(tmp_path / "out.zarr", want)
    return done.counts["open"] / files


@pytest.mark.every
@pytest.mark.parametrize("args", [["--codec", "keep"], ["--chunks", "time=6,x=3"], ["--chunks", "time=24,x=6", "--shards", "time=48,x=6"]])
def test_opens_of_many_files(tmp_path, args):
    """Two in the survey, one for the elements, and one for digests of what fell out of those that stay open."""
    args = [*args, "--verify", "none"]
    few = opens(tmp_path / "few", 12, *args)
    many = opens(tmp_path / "many", FILES, *args)
    assert many <= few + 1.5, (few, many)
