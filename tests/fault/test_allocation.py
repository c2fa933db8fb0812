"""Memory that is refused: every allocation of the program fails once, and each time it ends in order."""

import shutil

import pytest

from support import nc_equals_zarr, paths, tool

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer has its own allocator")

CASES = {
    "zarr 3": ("cmip_nc4_z.nc", []),
    "zarr 2": ("groups_nested.nc", ["--zarr-format", "2"]),
    "classic and shards": ("interleaved_cdf5.nc", ["--shards", "auto", "--codec", "gzip"]),
    "strings": ("strings_shapes.nc", ["--codec", "zstd"]),
    "filters": ("plugin_lzf_shuffle.h5", ["--chunks", "auto:1KiB", "-j", "2"]),
    "choices": (
        "cmip_nc4.nc",
        ["--variable", "tas", "--subset", "time=2:9", "--dtype", "t:float64", "--rename", "tas=t"],
    ),
}
MOST = paths.tries(40, 100, 400)  # failures tried for each case, spread over all allocations


def attempt(library, nth, folder, path, options):
    reached, out = folder / f"reached{nth}", folder / "out.zarr"
    shutil.rmtree(out, ignore_errors=True)
    env = {"LD_PRELOAD": str(library), "FAILMALLOC_NTH": str(nth), "FAILMALLOC_REACHED": str(reached)}
    done = tool.nc2zarr(*options, path, out, env=env, timeout=300)
    return done, reached.exists(), out


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("case", CASES)
def test_each_allocation_fails_once(failmalloc, tmp_path, case):
    name, options = CASES[case]
    path = paths.CORPUS / name
    last = 1
    while attempt(failmalloc, last, tmp_path, path, options)[1] and last < 1 << 20:
        last *= 2
    failures, problems = 0, []
    for nth in sorted({1 + i * (last - 1) // MOST for i in range(MOST)}):
        done, reached, out = attempt(failmalloc, nth, tmp_path, path, options)
        if not reached:
            continue
        if done.status:
            failures += 1
            sentences = [line for line in done.err.splitlines() if "warning" not in line]
            # A store that opens was finished: then only the verification failed.
            whole = (
                not tool.opens_as_store(out)
                or "choices" in case
                or nc_equals_zarr.differences(path, out, decoded=False) == []
            )
            if done.status != 1 or len(sentences) != 1 or not whole:
                problems.append(f"allocation {nth}: {done}")
    assert not problems, "\n".join(problems)
    assert failures > 3, "the failures never reached the program"


@pytest.mark.long(ci=1)
def test_a_difference_is_not_lost(failmalloc, tmp_path):
    """Whatever allocation fails: a store that differs never passes."""
    path, out = paths.CORPUS / "cmip_nc4.nc", tmp_path / "out.zarr"
    tool.nc2zarr("--codec", "none", "--chunks", "auto:1KiB", path, out).ok()
    chunk = max((p for p in (out / "tas" / "c").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    chunk.write_bytes(bytes(b ^ 1 for b in chunk.read_bytes()))
    low, high = 0, 1 << 20  # how many allocations there are
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if check(failmalloc, middle, tmp_path, path, out)[1] else (low, middle)
    statuses = set()
    for nth in range(max(low - 60, 1), low + 1):  # differences are told towards the end
        done, reached = check(failmalloc, nth, tmp_path, path, out)
        statuses.add(done.status)
        assert done.status in (1, 3), f"allocation {nth}: {done}"
    assert 1 in statuses  # some failed; after the difference was told a failure may count for nothing


def check(library, nth, folder, path, out):
    reached = folder / f"reached{nth}"
    env = {"LD_PRELOAD": str(library), "FAILMALLOC_NTH": str(nth), "FAILMALLOC_REACHED": str(reached)}
    return tool.nc2zarr("--check", "-j", "1", path, out, env=env, timeout=300), reached.exists()
