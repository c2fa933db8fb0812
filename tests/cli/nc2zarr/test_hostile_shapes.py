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
    tool.nc2zarr(*options, path, out, timeout=300).fails(1, path, "variable a", "larger --chunks")
    assert not out.exists()


def test_a_size_beyond_64_bits(tmp_path, out):
    path = claim(tmp_path / "beyond.h5", (2**61,), (1024,), "f8", scale=True)
    tool.nc2zarr(path, out, timeout=300).fails(1, path, "a", "64 bits")


@pytest.mark.parametrize("shape, chunks", [((2**38,), (2**20,)), ((2**19, 2**19), (2**13, 2**13))], ids=str)
def test_much_that_was_never_written(tmp_path, out, shape, chunks):
    path = claim(tmp_path / "empty.h5", shape, chunks)
    done = tool.nc2zarr(path, out, timeout=300, peak=True).ok()
    array = zarr.open(str(out))["a"]
    assert array.shape == shape and np.all(array[tuple(slice(n - 2, n) for n in shape)] == 0)
    assert paths.SANITIZED or done.peak <= 120 * MIB


def contiguous(path, shape, fillvalue=None, beside=False):
    """Storage of a contiguous dataset is allocated when it is first written to."""
    with h5py.File(path, "w") as f:
        f.create_dataset("a", shape=shape, dtype="i2", fillvalue=fillvalue)
        if beside:
            f.create_dataset("b", data=np.arange(100, dtype="i2"))
    return path


@pytest.mark.parametrize("options, value", [
    ([], -7), (["--shards", "none", "--chunks", "a:4096x4096x1"], -7), (["--dtype", "a:f8"], -7.0),
    (["--subset", "phony_dim_0=5::3"], -7), (["--durable", "--codec", "none"], -7),
], ids=lambda v: " ".join(v) if isinstance(v, list) else str(v))
def test_storage_that_was_never_allocated(tmp_path, out, options, value):
    """64 TiB of it take no longer than metadata do: nothing is read, nothing written."""
    path = contiguous(tmp_path / "a.h5", (2**15, 2**15, 2**15), -7)
    done = tool.nc2zarr("--json", *options, path, out, timeout=300).json()
    array = zarr.open(str(out))["a"]
    assert array.fill_value == value and np.all(array[-2:, -2:, -2:] == value)
    assert not [p for p in (out / "a").rglob("*") if p.name != "zarr.json"]
    made = done["variables"][0]
    assert made["nskipped"] == made["nchunks"] > 1000 and made["nobjects"] == 0 and made["stored_nbytes"] == 0
    assert done["warnings"] == [] or "shards" in done["warnings"][0]


def test_the_plan_of_storage_that_was_never_allocated(tmp_path, out):
    path = contiguous(tmp_path / "a.h5", (2**15, 2**15, 2**15), beside=True)
    plan = tool.nc2zarr("--json", "--dry-run", path, out, timeout=300).json()
    assert [(v["nobjects"], v["stored_nbytes"] > 0) for v in plan["variables"]] == [(0, False), (1, True)]


def test_what_is_not_written_is_compared_all_the_same(tmp_path, out):
    """And where the store's fill value is another, it is written."""
    path = contiguous(tmp_path / "a.h5", (300, 400), 5, beside=True)
    tool.nc2zarr("--verify", "full", path, out).ok()
    assert np.all(zarr.open(str(out))["a"][:] == 5) and not (out / "a" / "c").exists()
    other = out.with_name("other.zarr")
    tool.nc2zarr("--verify", "full", "--fill-value", "a:0", path, other).ok()
    assert np.all(zarr.open(str(other))["a"][:] == 5) and (other / "a" / "c").exists()
