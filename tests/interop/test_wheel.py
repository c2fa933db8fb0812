"""The wheel in a fresh virtual environment: installed, it converts and feeds a training."""

import os
import subprocess
import sys

import pytest

from support import paths

pytestmark = [pytest.mark.long, pytest.mark.skipif(paths.SANITIZED, reason="programs of a wheel are not sanitized")]

SCRIPT = """
import sys, chunkmill, glob
assert "site-packages" in chunkmill.__file__, chunkmill.__file__
report = chunkmill.convert(sys.argv[1], "weather.zarr", variable="z", verify="full")
assert report["error"] is None
advice = chunkmill.chunkcalc("weather.zarr", variable="z", sample={"time": 2, "lat": 16, "lon": 16})
assert advice["error"] is None
total = 0
for epoch in range(2):
    with chunkmill.Loader("weather.zarr", variables="z", sample={"time": 2, "lat": 16, "lon": 16}, batches=5,
                          loader="planned") as loader:
        total += sum(len(batch) for batch in loader)
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "/lib" in line}
print(total, sorted(m for m in mapped if any(w in m for w in ("netcdf", "hdf5", "blosc", "chunkmill"))))
"""


def test_install_convert_train(tmp_path):
    subprocess.run(["make", "NODEPS=1", f"BUILD={paths.BUILD}", "wheel"], cwd=paths.ROOT, check=True, capture_output=True)
    (wheel,) = (paths.BUILD / "dist").glob("*.whl")
    python = tmp_path / "fresh" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "fresh"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", wheel], check=True)
    subprocess.run([paths.BUILD / "bin" / "make_sample", tmp_path / "weather.nc"], check=True, capture_output=True)
    bare = {k: v for k, v in os.environ.items() if not k.startswith(("CHUNKMILL", "PYTHON", "LD_"))}
    done = subprocess.run([python, "-c", SCRIPT, "weather.nc"], cwd=tmp_path, env=bare, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    total, libraries = done.stdout.split(" ", 1)
    assert total == str(2 * 5 * 32)
    assert all(str(tmp_path) in path for path in eval(libraries)), libraries  # noqa: S307 - what we printed
    version = subprocess.run([python.parent / "nc2zarr", "--version"], env=bare, capture_output=True, text=True,
                             check=True).stdout
    assert version.startswith("nc2zarr (Chunkmill)")
