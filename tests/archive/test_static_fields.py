"""Static fields that are too large for a survey: the run compares them, by where their bytes lie."""

import h5py
import numpy as np
import pytest

from support import paths, tool

from . import files as F
from . import stores

N, ODD = 4, 2
NY, NX = 96, 80  # of float64, more than 16 KiB: a survey leaves it to the run


def field():
    return np.round(np.random.default_rng(5).normal(500, 200, (NY, NX)))


def with_field(f, data, chunks=None, deflate=0):
    g = F.changed(f)
    g.vars["ground"] = F.Var(("y", "x"), data, {"units": "m"}, chunks=chunks, deflate=deflate)
    return g


LAYOUTS = {"contiguous": {}, "one chunk": {"chunks": (NY, NX), "deflate": 2}, "chunks": {"chunks": (40, 32), "deflate": 1}}


def archive(folder, layout, **odd):
    """Like files, but for what ODD says of number ODD: its data, chunks or deflate."""
    data = field()
    files = [with_field(f, data, **LAYOUTS[layout]) for f in F.clean(N)]
    if odd:
        files[ODD] = with_field(files[ODD], **{"data": data, **LAYOUTS[layout], **odd})
    return files, F.write_all(files, folder)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.skipif(paths.SANITIZED, reason="the sanitizers' own wrappers come first")
def test_no_library_opens_a_file(tmp_path, badlibrary, layout):
    """All that the run needs is known from the survey, which reads such files by itself."""
    files, _ = archive(tmp_path / "in", layout)
    env = {"LD_PRELOAD": str(badlibrary), "BADLIBRARY": "abort", "BADLIBRARY_REACHED": str(tmp_path / "opened")}
    stores.convert("--verify", "none", tmp_path / "in", tmp_path / "out.zarr", env=env).ok()
    assert not (tmp_path / "opened").exists()
    stores.same(tmp_path / "out.zarr", F.joined(files))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("at", [(0, 0), (NY - 1, NX - 1)])
def test_one_differs(tmp_path, layout, at):
    data = field()
    data[at] += 1
    _, made = archive(tmp_path / "in", layout, data=data)
    out = tmp_path / "out.zarr"
    r = stores.convert(tmp_path / "in", out)
    assert r.status == 1 and made[ODD].name in r.err and made[0].name in r.err, str(r)
    assert "ground" in r.err and f"element {at[0]}/{at[1]} " in r.err, str(r)
    assert "1 element differs" in r.err and not (out / "zarr.json").exists(), str(r)
    r = tool.nc2zarr("--static", "first", "--overwrite", "--verify", "none", tmp_path / "in", out)
    assert r.status == 0 and "1 element differs" in r.err, str(r)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("odd", [{"chunks": None, "deflate": 0}, {"chunks": (40, 32), "deflate": 5}, {"chunks": (7, 9), "deflate": 0}])
def test_the_same_field_stored_otherwise(tmp_path, layout, odd):
    files, _ = archive(tmp_path / "in", layout, **odd)
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    stores.same(tmp_path / "out.zarr", F.joined(files))


def test_one_was_opened_by_a_library(tmp_path):
    files, made = archive(tmp_path / "in", "chunks")
    F.for_libraries(made[ODD])
    F.for_libraries(made[0])
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    stores.same(tmp_path / "out.zarr", F.joined(files))


def damage(path):
    """The first chunk of the field is noise."""
    with h5py.File(path) as h5:
        info = h5["ground"].id.get_chunk_info(0)
    with open(path, "r+b") as f:
        f.seek(info.byte_offset)
        f.write(b"\xff" * info.size)


@pytest.mark.parametrize("which", [0, ODD, N - 1])
@pytest.mark.parametrize("layout", ["one chunk", "chunks"])
def test_a_damaged_chunk(tmp_path, layout, which):
    _, made = archive(tmp_path / "in", layout)
    damage(made[which])
    r = tool.nc2zarr("-q", "--verify", "none", tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 1 and made[which].name in r.err and "ground: chunk 0/0: " in r.err, str(r)
    assert len(r.err.strip().splitlines()) == 1, str(r)


def test_all_are_damaged_alike(tmp_path):
    """Equal stored bytes are not decoded for comparison, but for conversion."""
    _, made = archive(tmp_path / "in", "one chunk")
    for path in made:
        damage(path)
    r = tool.nc2zarr("-q", "--verify", "none", tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 1 and made[0].name in r.err and "ground" in r.err, str(r)


@pytest.mark.parametrize("changed", [False, True])
def test_a_large_chunk(tmp_path, changed):
    """More than 4 MiB are not held as they are stored, beside what they decode to."""
    data = np.random.default_rng(8).normal(size=(900, 800))
    other = data.copy()
    other[-1, -1] += changed
    files = [with_field(f, other if i == 1 else data, chunks=data.shape, deflate=1) for i, f in enumerate(F.clean(2))]
    made = F.write_all(files, tmp_path / "in")
    with h5py.File(made[0]) as h5:
        assert h5["ground"].id.get_chunk_info(0).size > 4 << 20
    r = stores.convert("--verify", "none", tmp_path / "in", tmp_path / "out.zarr")
    if changed:
        assert r.status == 1 and made[1].name in r.err and "element 899/799 " in r.err, str(r)
        return
    r.ok()
    stores.same(tmp_path / "out.zarr", F.joined(files))
