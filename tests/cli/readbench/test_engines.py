"""The loaders of scripts/engines, spoken to as readbench speaks to them."""

import json
import subprocess
import sys

import numpy as np
import pytest

from support import paths

ENGINES = paths.ROOT / "scripts" / "engines"
DATA = np.arange(5 * 6 * 7, dtype="f4").reshape(5, 6, 7)
MASK = np.arange(42, dtype="i2").reshape(6, 7)
REQUEST = {
    "epoch": 0,
    "batch": 3,
    "samples": [[0, 1, 2], [4, 3, 5]],
    "parts": [
        {"variable": "g/t", "start": [[0, 1, 2], [4, 3, 5]], "shape": [[1, 2, 3], [1, 2, 2]]},
        {"variable": "g/mask", "start": [[1, 2], [3, 5]], "shape": [[2, 3], [2, 2]]},
    ],
}


def greeting(store):
    return {
        "protocol": 1,
        "store": str(store),
        "variables": ["g/t", "g/mask"],
        "worker": 0,
        "sample": [[1, 2, 3], [2, 3]],
        "batch": 2,
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    zarr = pytest.importorskip("zarr")
    path = tmp_path_factory.mktemp("engines") / "store.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=3).create_group("g")
    for name, data, dims in (("t", DATA, ("time", "y", "x")), ("mask", MASK, ("y", "x"))):
        array = group.create_array(
            name, shape=data.shape, chunks=(2,) * data.ndim, dtype=data.dtype, dimension_names=dims
        )
        array[:] = data
    return path


def talk(script, *requests, options=(), env=None):
    text = "".join(json.dumps(r) + "\n" for r in requests)
    done = subprocess.run(
        [sys.executable, "-B", ENGINES / script, *options],
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def expected():
    """The bytes of the batch, clipped samples followed by zeros."""
    text, nbytes = b"", 0
    for part, data in zip(REQUEST["parts"], (DATA, MASK)):
        whole = 6 * data.itemsize
        for start, shape in zip(part["start"], part["shape"]):
            box = data[tuple(slice(s, s + n) for s, n in zip(start, shape))]
            nbytes += box.nbytes
            text += box.tobytes() + bytes(whole - box.nbytes)
    return text, nbytes


@pytest.mark.parametrize("script", ["zarr_python.py", "xarray_engine.py"])
def test_a_batch(script, store):
    crc = pytest.importorskip("google_crc32c")
    if script == "xarray_engine.py":
        pytest.importorskip("xarray")
    text, nbytes = expected()
    ready, batch, again = talk(
        script, greeting(store), REQUEST, dict(REQUEST, batch=4), options=["--checksum"]
    )
    assert ready == {"ready": True}
    assert batch["batch"] == 3 and again["batch"] == 4
    assert batch["nbytes"] == nbytes
    assert batch["crc32c"] == again["crc32c"] == crc.value(text)
    assert batch["seconds"] > 0


def test_xarray_reads_netcdf(tmp_path):
    netcdf = pytest.importorskip("netCDF4")
    crc = pytest.importorskip("google_crc32c")
    pytest.importorskip("xarray")
    path = tmp_path / "file.nc"
    with netcdf.Dataset(path, "w") as file:
        group = file.createGroup("g")
        for name, length in (("time", 5), ("y", 6), ("x", 7)):
            group.createDimension(name, length)
        variable = group.createVariable("t", "f4", ("time", "y", "x"))
        variable.scale_factor = np.float32(3)  # what is stored is wanted
        variable.set_auto_maskandscale(False)
        variable[:] = DATA
        group.createVariable("mask", "i2", ("y", "x"))[:] = MASK
    text, _ = expected()
    _, batch = talk("xarray_engine.py", greeting(path), REQUEST, options=["--checksum"])
    assert batch["crc32c"] == crc.value(text)


def test_torch(store):
    answers = talk("torch_loader.py", greeting(store), REQUEST, options=["--checksum"])
    try:
        import torch  # noqa: F401
    except ImportError:
        assert answers == [{"error": "PyTorch is not installed: pip install torch"}]
        return
    crc = pytest.importorskip("google_crc32c")
    text, nbytes = expected()
    assert answers[0] == {"ready": True}
    assert answers[1]["nbytes"] == nbytes
    assert answers[1]["crc32c"] == crc.value(text)


def test_errors_are_answers(store):
    wrong = dict(REQUEST, parts=[{"variable": "nothing", "start": [[0]], "shape": [[1]]}])
    ready, error, batch = talk("zarr_python.py", greeting(store), wrong, REQUEST)
    assert ready == {"ready": True}
    assert "nothing" in error["error"]
    assert batch["batch"] == 3 and "crc32c" not in batch


@pytest.mark.parametrize("script", ["zarr_python.py", "xarray_engine.py"])
def test_no_store(script, tmp_path):
    pytest.importorskip("zarr")
    pytest.importorskip("xarray")
    (answer,) = talk(script, greeting(tmp_path / "nowhere.zarr"))
    assert list(answer) == ["error"]


def test_another_protocol(store):
    (answer,) = talk("zarr_python.py", dict(greeting(store), protocol=2))
    assert answer == {"error": "this loader speaks protocol 1, not 2"}


def test_nothing_to_do():
    assert talk("zarr_python.py") == []
