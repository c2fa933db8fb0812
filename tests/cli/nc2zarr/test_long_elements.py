"""Elements longer than any number, with missing chunks and no fill value."""
import json

import numpy as np
import pytest
import zarr

from support import tool


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "long.zarr"
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    for name, dtype, at, value in (("text", "<U30", slice(0, 4), "abc"), ("bytes", "S100", slice(4, 8), b"xyz")):
        array = group.create_array(name, shape=(10,), chunks=(4,), dtype=dtype, fill_value=np.zeros((), dtype)[()], compressors=None)
        array[at] = value
        meta = path / name / ".zarray"
        meta.write_text(json.dumps(json.loads(meta.read_text()) | {"fill_value": None}))
    (path / ".zmetadata").unlink(missing_ok=True)
    return path


@pytest.mark.parametrize("length", [1, 3, 4, 7, 10])
def test_missing_chunks_and_edges_are_zeros(store, out, length):
    tool.run("rechunk", "--chunks", f"text:{length}", "--chunks", f"bytes:{length}", "--verify", "full", store, out).ok()
    for name, want in (("text", ["abc"] * 4 + [""] * 6), ("bytes", [b""] * 4 + [b"xyz"] * 4 + [b""] * 2)):
        assert zarr.open(str(out))[name][:].tolist() == want
