"""The drawing of --survey: which steps of the joined dimension which variables have, in how many files."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import jsonschema
import netCDF4
import numpy as np
import pytest

from support import paths, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "nc2zarr.json").read_text())


def file(path, days, names=("tas",), member=None):
    dims = ("time", "x") if member is None else ("member", "time", "x")
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", None)
        ds.createDimension("x", 2)
        t = ds.createVariable("time", "f8", ("time",))
        t.units = "days since 2000-01-01"
        t[:] = list(days)
        if member is not None:
            ds.createDimension("member", 1)
            ds.createVariable("member", "i4", ("member",))[:] = [member]
        for name in names:
            ds.createVariable(name, "f4", dims)[:] = np.broadcast_to(
                np.array(days, "f4")[:, None], (1, len(days), 2)[-len(dims):])


def drawn(*args):
    """{label: cells}, and the lines below them."""
    r = tool.nc2zarr("--survey", *args)
    assert r.status in (0, 4), str(r)
    said = re.split("^(?:note|warning|decision needed): ", r.out, maxsplit=1, flags=re.M)[0]
    lines = [line for line in said.splitlines() if line.startswith("    ")]
    rows = dict((line[4:].rsplit("  ", 1)[0].rstrip(), line.rsplit("  ", 1)[1])
                for line in lines if set(line.rsplit("  ", 1)[-1]) <= set("=.-#*!"))
    return rows, lines[len(rows):], max(map(len, lines), default=0)


def coverage(*args):
    r = tool.nc2zarr("--survey", "--json", *args)
    document = json.loads(r.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return [[{c["variables"][0]: [(s["files"], s["steps"]) for s in c["spans"]]} for c in a["coverage"]] for a in document["axes"]]


def test_gaps_and_overlaps(tmp_path):
    for i in range(10):
        if i != 4:
            file(tmp_path / f"{i}.nc", range(i * 2, i * 2 + (3 if i == 6 else 2)))
    rows, below, width = drawn(tmp_path)
    assert rows == {"tas": "".join(c * 3 for c in "========..====#=====")} and width <= 80
    assert below == ["         2000-01-01T00:00:00                      2000-01-20T00:00:00",
                     "    = in one file, . missing, # in more than one file"]
    assert coverage(tmp_path) == [[{"tas": [(1, 8), (0, 2), (1, 4), (2, 1), (1, 5)]}]]
    spans = tool.nc2zarr("--survey", "--json", tmp_path).json()["axes"][0]["coverage"][0]["spans"]
    assert [(s["first"], s["last"]) for s in spans[1:4:2]] == [
        ("2000-01-09T00:00:00", "2000-01-10T00:00:00"), ("2000-01-15T00:00:00", "2000-01-15T00:00:00")]
    # Filled, the steps are there, and still in no file.
    assert drawn("--gaps", "fill", tmp_path)[0] == rows
    assert coverage("--gaps", "fill", tmp_path) == coverage(tmp_path)


def test_one_missing_step_of_many_is_seen(tmp_path):
    for i in range(10):
        file(tmp_path / f"{i}.nc", [d for d in range(i * 100, i * 100 + 100) if d != 555])
    file(tmp_path / "z.nc", [999])
    cells = drawn(tmp_path)[0]["tas"]
    assert cells[:-1].strip("=") == "-" and cells[-1] == "*"
    assert cells.index("-") == 555 * len(cells) // 1000


def test_variables_of_other_files_are_rows_and_no_overlap(tmp_path):
    for i in range(6):
        file(tmp_path / f"a{i}.nc", [i], ("tas", "huss"))
        if i > 2:
            file(tmp_path / f"b{i}.nc", [i], ("pr",))
    assert coverage("--missing", "fill", tmp_path) == [[{"huss": [(1, 6)]}, {"pr": [(0, 3), (1, 3)]}]] or \
        coverage("--missing", "fill", tmp_path) == [[{"tas": [(1, 6)]}, {"pr": [(0, 3), (1, 3)]}]]
    rows, below, _ = drawn(tmp_path)  # also where it needs a decision
    assert set(rows) == {"tas, huss", "pr"} and rows["pr"].strip("=").strip(".") == ""
    assert below[-1] == "    = in one file, . missing"


def test_members_are_no_overlap(tmp_path):
    for m in range(3):
        for i in range(4):
            file(tmp_path / f"{m}{i}.nc", [i], member=m)
    assert coverage(tmp_path) == [[{"tas": [(1, 3)]}], [{"tas": [(1, 4)]}]] or coverage(tmp_path) == [
        [{"tas": [(1, 4)]}], [{"tas": [(1, 3)]}]]


def test_what_cannot_be_joined_is_not_drawn(tmp_path):
    file(tmp_path / "a.nc", [0, 2])
    file(tmp_path / "b.nc", [1, 3])
    assert drawn(tmp_path)[0] == {}
    assert [c for a in coverage(tmp_path) for c in a] == []


def test_many_and_long_names_fit(tmp_path):
    for i in range(3):
        file(tmp_path / f"{i}.nc", [i], [f"variable_with_a_rather_long_name_{k}" for k in range(9)])
    rows, _, width = drawn(tmp_path)
    assert list(rows) == ["variable_with_a_ and 8 more"] and width <= 80


@pytest.mark.parametrize("columns, want", [(60, 60), (120, 120), (10, 40)])
def test_the_width_of_the_terminal(tmp_path, columns, want):
    for i in range(4):
        file(tmp_path / f"{i}.nc", range(i * 100, i * 100 + 100))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([paths.BUILD / "bin" / "nc2zarr", "--survey", tmp_path], stdout=theirs, stderr=subprocess.DEVNULL):
        os.close(theirs)
        out = b""
        try:
            while got := os.read(ours, 4096):
                out += got
        except OSError:  # the end of a pseudo-terminal
            pass
    os.close(ours)
    assert [len(line) for line in out.decode().splitlines() if line.endswith("=")] == [want]
