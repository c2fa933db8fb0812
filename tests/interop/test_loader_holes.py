"""The loader tells once of chunks that are absent."""

import os
import warnings

import numpy as np
import pytest
import zarr

from support import objects, paths

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python")

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
os.environ["CHUNKMILL_BIN"] = str(paths.BUILD / "bin")
import chunkmill  # noqa: E402

LINE = "t2m: 3 of 16 chunks are absent (1/0/0, 1/0/1, 1/1/0), read as fill"


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "a.zarr"
    root = zarr.create_group(str(path))
    for name in ("t2m", "z"):
        array = root.create_array(name, shape=(4, 4, 4), chunks=(1, 2, 2), dtype="f4", dimension_names=("time", "y", "x"))
        array[:] = np.arange(1, 65, dtype="f4").reshape(4, 4, 4)
    for key in ("1/0/0", "1/0/1", "1/1/0"):
        (path / "t2m/c" / key).unlink()
    return path


def opened(store, **options):
    """The holes that a loader has, and the warnings that it gave."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        with chunkmill.Loader(store, sample={"time": 1}, batch=2, **options) as loader:
            n = sum(1 for _ in loader)
        assert n == 2 // options.get("world_size", 1)
    return loader.holes, [str(w.message) for w in given if issubclass(w.category, chunkmill.HolesWarning)]


def test_holes_are_told_once(store):
    assert opened(store, variables="t2m") == (LINE, [f"{store}: {LINE}"])
    # Also where the store is opened twice to find the elements of a subset.
    assert opened(store, variables="t2m", subset={"time": slice(0, 4)})[1] == [f"{store}: {LINE}"]


def test_other_variables_and_other_ranks_tell_nothing(store):
    assert opened(store, variables="z") == (None, [])
    assert opened(store, variables="t2m", world_size=2, rank=1) == (None, [])
    assert opened(store, variables="t2m", world_size=2, rank=0)[0] == LINE


def test_a_bucket(store, monkeypatch):
    server = objects.Server()
    server.put_folder(store, "a.zarr")
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    try:
        assert opened("s3://bucket/a.zarr", variables="t2m") == (LINE, [f"s3://bucket/a.zarr: {LINE}"])
    finally:
        server.close()
