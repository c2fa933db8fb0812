"""Damaged files: bits flipped, bytes set, ends cut off.  No crash, no hang, no memory without
bound; a failure is one sentence and leaves no store that opens."""

import random
import shutil

import pytest

from support import paths, tool

SIGNATURES = [b"TREE", b"SNOD", b"HEAP", b"GCOL", b"OHDR", b"FRHP", b"BTHD", b"OCHK", b"\x08\x00", b"\x10\x00"]
FILES = paths.tries(25, 100, 500)  # of each way to run
MEMORY = 256 << 20
WAYS = {"planned": ["--dry-run"], "converted": ["--skip-unsupported", "--verify", "sample"]}


def sources():
    folders = [paths.CORPUS, paths.SHARED / "data" / "netcdf", paths.SHARED / "data" / "hdf5"]
    found = [p for folder in folders for p in sorted(folder.glob("*")) if p.suffix in (".nc", ".nc4", ".h5", ".hdf5")]
    return [p for p in found if p.is_file() and p.stat().st_size < 3 << 20]


def place(rng, data):
    """Half of the time where metadata begin, or behind a signature."""
    how = rng.random()
    if how < 0.5:
        return rng.randrange(min(len(data), 8192))
    at = rng.randrange(len(data))
    if how < 0.75:
        found = data.find(rng.choice(SIGNATURES), at)
        at = min(len(data) - 1, max(found, at) + rng.randrange(48))
    return at


def damage(rng, data):
    if rng.random() < 0.15:
        return data[: rng.randrange(1, len(data))]
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 8, 20])):
        at, how = place(rng, data), rng.random()
        if how < 0.4:
            data[at] ^= 1 << rng.randrange(8)
        elif how < 0.8:
            data[at] = rng.choice([rng.randrange(256), 0, 255, 127, 128, 1])
        else:
            n = rng.choice([2, 4, 8])
            data[at : at + n] = rng.choice([b"\xff" * n, bytes(n), rng.randbytes(n)])[: len(data) - at]
    return bytes(data)


@pytest.mark.parametrize("way", WAYS)
def test_damaged_files(tmp_path, out, way):
    rng = random.Random(f"damage {way}")
    files, failed = sources(), 0
    path = tmp_path / "damaged.nc"
    for _ in range(FILES):
        path.write_bytes(damage(rng, rng.choice(files).read_bytes()))
        peak = not paths.SANITIZED
        done = tool.nc2zarr("--memory", str(MEMORY), "-j", "2", *WAYS[way], path, out, peak=peak, timeout=300)
        assert done.status in (0, 1, 3), str(done)
        assert not peak or done.peak < MEMORY, f"{done.peak}\n{done}"
        if done.status == 1:
            failed += 1
            done.fails(1, "damaged.nc")
            # Data that this project reads and libraries cannot are written, but not compared.
            assert not tool.opens_as_store(out) or "written, but not verified" in done.err, str(done)
        shutil.rmtree(out, ignore_errors=True)
    assert failed > FILES // 5  # else nothing was damaged that matters
