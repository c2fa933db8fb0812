"""Shapes that a header of a few bytes can claim: refused, or handled quickly in bounded memory."""
import h5py
import numpy as np
import pytest
import zarr

from support import paths, tool

MIB = 1 << 20


def claim(path, shape, chunks, dtype="f4", scale=False):
    """A dataset of which nothing was ever written."""
    with h5py.File(path, "w") as f:
        d = f.create_dataset("a", shape=shape, dtype=dtype, chunks=chunks, maxshape=(None,) * len(shape))
        if scale:
            d.make_scale("a")
    return path


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--memory", "100MiB"]], ids=" ".join)
@pytest.mark.parametrize("shape, chunks", [((2**60,), (1024,)), ((2**30, 2**30), (1024, 1024)), ((2**20,) * 3, (1, 1, 64))], ids=str)
def test_more_chunks_than_can_be_counted(tmp_path, out, shape, chunks, options):
    path = claim(tmp_path / "huge.h5", shape, chunks)
    tool.nc2zarr(*options, path, out, timeout=20).fails(1, path, "variable a", "larger --chunks")
    assert not out.exists()


def test_a_size_beyond_64_bits(tmp_path, out):
    path = claim(tmp_path / "beyond.h5", (2**61,), (1024,), "f8", scale=True)
    tool.nc2zarr(path, out, timeout=20).fails(1, path, "a", "64 bits")


@pytest.mark.parametrize("shape, chunks", [((2**38,), (2**20,)), ((2**19, 2**19), (2**13, 2**13))], ids=str)
def test_much_that_was_never_written(tmp_path, out, shape, chunks):
    path = claim(tmp_path / "empty.h5", shape, chunks)
    done = tool.nc2zarr(path, out, timeout=60, peak=True).ok()
    array = zarr.open(str(out))["a"]
    assert array.shape == shape and np.all(array[tuple(slice(n - 2, n) for n in shape)] == 0)
    assert paths.SANITIZED or done.peak <= 120 * MIB
