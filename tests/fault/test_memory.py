"""--memory is a promise about the process: its peak, as the system counts it."""

import json

import pytest

from support import paths, tool
from support.large import large

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")

MIB = 1 << 20
# shape, chunk of the file, variables, unlimited
FILES = {
    "2 GB decoded": dict(shape=(500, 1024, 1024), chunk=(1, 1024, 1024)),
    "series to maps": dict(shape=(4096, 256, 256), chunk=(4096, 16, 16)),
    "large chunks": dict(shape=(64, 2048, 2048), chunk=(4, 2048, 2048)),
    "60 variables": dict(shape=(16, 512, 512), chunk=(4, 512, 512), variables=60),
    "60 variables of small chunks": dict(shape=(64, 256, 256), chunk=(1, 64, 64), variables=60),
    "many small chunks": dict(shape=(100_000, 32), chunk=(2, 32), unlimited=True),
}
CASES = [
    ("2 GB decoded", 256, []),
    ("2 GB decoded", 256, ["--shards", "auto"]),
    ("2 GB decoded", 128, ["--chunks", "v00:8x512x512", "-j", "2"]),
    ("series to maps", 128, []),
    ("series to maps", 256, ["--chunks", "v00:1x256x256"]),
    ("series to maps", 256, ["-j", "8"]),
    ("large chunks", 384, ["--chunks", "source"]),
    ("60 variables", 128, []),
    ("60 variables", 128, ["--zarr-format", "2", "--chunks", "auto:1MiB"]),
    ("60 variables of small chunks", 128, ["-j", "4"]),
    ("many small chunks", 96, ["--chunks", "v00:64x32", "--shards", "v00:6400x32"]),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    made = {}

    def get(kind):
        if kind not in made:
            made[kind] = large(tmp_path_factory.mktemp("large") / "large.nc", **FILES[kind])
        return made[kind]

    return get


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("kind, limit, options", CASES, ids=lambda v: " ".join(v) if isinstance(v, list) else str(v))
def test_peak_stays_below_the_limit(files, out, kind, limit, options):
    done = tool.nc2zarr("--memory", f"{limit}MiB", *options, files(kind), out, peak=True).ok()
    assert done.peak <= limit * MIB, f"peak {done.peak / MIB:.0f} MiB, limit {limit} MiB\n{done}"


@pytest.mark.long(ci=1)
def test_the_peak_is_measured(files, out):
    """The same file under a larger limit uses more: what is measured is the program."""
    plan = {}
    for limit in (96, 1024):
        done = tool.nc2zarr(
            "--memory", f"{limit}MiB", "-j", "2", files("series to maps"), out.with_name(f"{limit}.zarr"), peak=True
        ).ok()
        plan[limit] = done.peak
    assert 10 * MIB < plan[96] < plan[1024]


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("limit, measured", [(256, False), (2048, True)])
def test_measuring_for_a_sample_keeps_to_the_limit(tmp_path, out, limit, measured):
    """A chunk of 64 MiB, decoded only to know what decoding costs, would take more than an eighth of 256 MiB."""
    path = large(tmp_path / "maps.nc", (64, 1024, 1024), (16, 1024, 1024))
    options = ("--memory", f"{limit}MiB", "-j", "1", "--sample", "1x64x64", "--verify", "none", "--json")
    done = tool.nc2zarr(*options, path, out, peak=True).ok()
    assert done.peak <= limit * MIB, f"peak {done.peak / MIB:.0f} MiB, limit {limit} MiB\n{done}"
    assert any("follow preset costs" in note for note in json.loads(done.out)["notes"]) != measured
    rechunked = tool.run("rechunk", *options, out, out.with_name("again.zarr"), peak=True).ok()
    assert rechunked.peak <= limit * MIB
