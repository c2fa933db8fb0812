"""What a Loader is asked for: stores, shapes and sizes as people write them, and errors that say what is wrong."""

import json
import os

import numpy as np
import pytest
import zarr

from support import paths

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python")

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
import chunkmill  # noqa: E402

VALUES = np.arange(6 * 4 * 5, dtype="f4").reshape(6, 4, 5)
NAMES = ("time", "lat", "lon")


@pytest.fixture
def store(tmp_path):
    group = zarr.create_group(str(tmp_path / "a.zarr"))
    group.create_array("v", shape=VALUES.shape, chunks=(2, 2, 5), dtype="f4", dimension_names=NAMES)[...] = VALUES
    times = group.create_array("time", shape=(6,), dtype="i4", dimension_names=("time",),
                               attributes={"units": "hours since 2000-01-01", "calendar": "standard"})
    times[...] = np.arange(6) * 6
    return tmp_path / "a.zarr"


@pytest.mark.parametrize("how", ["map", "planned"])
def test_a_whole_array_is_a_sample(store, how):
    with chunkmill.Loader(store, variables="v", sample="full", loader=how) as loader:
        (batch,) = loader
        assert (batch["v"].numpy() == VALUES[None]).all()


def test_attributes_of_coordinates(store):
    library = chunkmill._library.library()
    with chunkmill.Loader(store, variables="v", sample={"time": 2}) as loader:
        said = [library.cm_loader_dim_attributes(loader._handle, i) for i in range(4)]
        assert json.loads(said[0]) == {"units": "hours since 2000-01-01", "calendar": "standard"}
        assert said[1:] == [None] * 3
