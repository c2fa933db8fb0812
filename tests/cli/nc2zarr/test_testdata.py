"""The files described in testdata, made by ncgen, and what must come out."""
import json
import shutil
import subprocess

import pytest

from support import paths, readers, tool

FOLDER = paths.ROOT / "testdata"


@pytest.mark.parametrize("kind", ["classic", "64-bit offset", "netCDF-4", "64-bit data"])
def test_attributes(tmp_path, out, kind):
    if not shutil.which("ncgen"):
        pytest.skip("ncgen is not installed")
    path = tmp_path / "traps.nc"
    subprocess.run(["ncgen", "-k", kind, "-o", path, FOLDER / "traps.cdl"], check=True)
    tool.nc2zarr("--verify", "full", path, out).ok()
    for node, want in json.loads((FOLDER / "traps.json").read_text()).items():
        got = readers.zarr_json(out, node)["attributes"]
        assert got == want and {k: type(v) for k, v in got.items()} == {k: type(v) for k, v in want.items()}, node
        assert list(got) == list(want), node
