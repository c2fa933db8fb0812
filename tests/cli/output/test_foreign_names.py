"""Names from outside, of files, variables, dimensions, arrays and objects, that would control a terminal if they reached it."""

import shutil
import subprocess
import unicodedata

import netCDF4
import pytest
from support import objects, tool

FILE = "f\033[31m\nrechunk: all is well\u202e\u009b1m"
NAME = "t\u202e\u009b1m\u2066"
DIM = "d\u202eab"


def bare(said):
    """Characters of a report that control a terminal."""
    return [c for c in said if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / FILE
    folder.mkdir()
    for name, first in (("a.nc", 0), ("b.nc", 3)):
        with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
            ds.createDimension(DIM, None)
            ds.createDimension("x", 500)
            ds.createVariable(DIM, "f8", (DIM,))[:] = range(first, first + 3)
            ds.createVariable(NAME, "f4", (DIM, "x"), fill_value=first, chunksizes=(1, 500))[:] = 1
        shutil.move(tmp_path / "in.nc", folder / (FILE.replace("f", "") + name))
    return folder


@pytest.mark.long(ci=1)
def test_no_report_holds_what_a_terminal_obeys(place, tmp_path):
    one, two = sorted(place.iterdir())
    store, again, refs = place / "o.zarr", place / "p.zarr", place / "refs.json"
    runs = [
        ("nc2zarr", "--survey", one, two), ("nc2zarr", "--dry-run", one, store), ("nc2zarr", "-v", "--verify", "full", "--statistics", one, store),
        ("nc2zarr", one, store), ("nc2zarr", "--check", two, store), ("nc2zarr", "-v", "--append", DIM, one, store), ("nc2zarr", "--virtual", "json", two, refs),
        ("nc2zarr", "--part", "1/2", two, place / "q.zarr"), ("nc2zarr", "--parts-status", place / "q.zarr"), ("nc2zarr", "--consolidate", store),
        ("rechunk", "--digest", store, refs), ("rechunk", "-v", "--dry-run", store, again), ("rechunk", "-v", store, again), ("rechunk", store, again),
        ("rechunk", "--chunks", f"{NAME}:nothing=3", store, place / "r.zarr"), ("chunkcalc", "-v", store), ("chunkcalc", "--audit", "--format", "markdown", refs),
        ("readbench", "--no-out", "--sample", "1x500", "--batch", "1", "--step-time", "0ms", f"{store}::{NAME}"),
        ("readbench", "--out", place / "report", "--variable", NAME, "--sample", "1x500", "--batch", "1", "--step-time", "0ms", store),
        ("readbench", "--no-out", "--variable", FILE, store), ("chunkcalc", place / "absent.nc"), ("rechunk", place, again), ("nc2zarr", FILE, "--no-such" + FILE),
    ]  # fmt: skip
    statuses = []
    for run in runs:
        done = tool.run(*run)
        assert bare(done.out + done.err) == [], (run, done)
        assert not any(line.startswith("rechunk: all is well") for line in (done.out + done.err).splitlines()), done
        statuses.append(done.status)
    assert statuses.count(0) >= 12 and statuses.count(1) >= 3, statuses


def test_lines_to_paste_name_the_same_place(place, tmp_path):
    """In bash: what is shown in place of a character stands for it."""
    store = place / "o.zarr"
    done = tool.nc2zarr(sorted(place.iterdir())[0], store).ok()
    line = next(line for line in done.out.splitlines() if "python3 -c" in line)
    found = subprocess.run(["bash", "-c", f"printf '%s\\0' {line.strip()}"], capture_output=True, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
    program = found.stdout.decode().split("\0")[2]
    opened = {}
    xarray = type("xarray", (), {"open_zarr": staticmethod(lambda path, **more: opened.setdefault("path", path))})
    exec(program.split(";", 1)[1].strip(), {"xarray": xarray, "print": lambda *_: None})
    assert opened["path"] == str(store)


def test_names_that_a_bucket_lists(tmp_path):
    bucket = objects.Server()
    try:
        key = f"{FILE}/{NAME}.nc"
        bucket.objects[key] = (b"no file", '"x"')
        for run in (("nc2zarr", "--survey", "s3://bucket/**/*.nc"), ("nc2zarr", f"s3://bucket/{key}", tmp_path / "o.zarr"), ("rechunk", "--digest", f"s3://bucket/{FILE}")):
            done = tool.run(*run, env=bucket.environment())
            assert done.status != 0 and bare(done.out + done.err) == [], done
    finally:
        bucket.close()
