"""Files of several things in one folder, which no option joins: the survey proposes a store of each."""

import shlex

import numpy as np
import pytest

from support import readers, tool

from . import files as F
from . import stores
from .files import File, Var

HOURS = {"units": "hours since 2000-01-01", "standard_name": "time"}
SIZES = {"d01": (3, 4), "d02": (6, 5), "d03": (2, 9)}


def field(kind, day, steps=4):
    y, x = SIZES[kind]
    first = 100 * day + len(kind)
    return {
        "time": Var(("time",), np.arange(float(steps)) + 24 * day, HOURS),
        "t": Var(("time", "y", "x"), np.arange(steps * y * x, dtype="f4").reshape(steps, y, x) + first),
    }


# The names of files, by kind and day, and the pattern that tells the kinds apart.
NAMES = {
    "wrf": ("wrfout_{}_2000-01-0{}_00_00_00.nc", "wrfout_*_"),
    "at the end": ("geo-2000010{1}-{0}.nc", "-*."),
    "at the beginning": ("{}_x_2000010{}.nc", "*_x_"),
    "folders": ("{}/x_2000010{}.nc", "{dir}"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("nkinds", [2, 3])
@pytest.mark.every
def test_a_store_of_each_kind(name, nkinds, tmp_path):
    """The command that is proposed makes them, with every element."""
    form, pattern = NAMES[name]
    kinds = sorted(SIZES)[:nkinds]
    files = {k: [File(form.format(k, day), field(k, day)) for day in (1, 2, 3)] for k in kinds}
    F.write_all([f for k in kinds for f in files[k]], tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", tmp_path / "out.zarr", status=4)
    words = shlex.split(doc["command"])
    assert words[1:3] == ["--store-per", pattern] and words[-1] == str(tmp_path / "out"), doc["command"]
    shown = " ".join(tool.nc2zarr("--survey", tmp_path / "in").out.split())
    assert f"{nkinds} stores in the folder of the output" in shown and "no option joins" not in shown, shown
    tool.nc2zarr("-q", "--verify", "full", *words[1:]).ok()
    assert sorted(p.name for p in (tmp_path / "out").glob("*.zarr")) == [f"{k}.zarr" for k in kinds]
    for k in kinds:
        got = readers.arrays(tmp_path / "out" / f"{k}.zarr")
        np.testing.assert_array_equal(got["t"][...], np.concatenate([f.vars["t"].data for f in files[k]]))


def test_a_store_of_each_variable(tmp_path):
    """Grids differ, and a name tells nothing that a variable does not."""
    files = []
    for day in (1, 2, 3):
        for v, (y, x) in {"a": (3, 4), "b": (6, 5)}.items():
            files.append(File(f"{day}{v}.nc", {"time": Var(("time",), np.arange(2.0) + 24 * day, HOURS),
                                               v: Var(("time", "y", "x"), np.full((2, y, x), day, "f4"))}))
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    assert shlex.split(doc["command"])[1:3] == ["--store-per", "{variable}"]


@pytest.mark.parametrize("options", [["--store-per", "_*_"], ["--along", "y"]], ids=str)
def test_what_was_asked_for_stays(options, tmp_path):
    F.write_all([File(f"w_{k}_{day}_.nc", field(k, day)) for k in ("d01", "d02") for day in (1, 2)], tmp_path / "in")
    status, doc = stores.survey(*options, tmp_path / "in")
    assert (doc["command"] or "").count("--store-per") == (status == 0), doc["command"]


def test_no_stores_that_need_decisions_of_their_own(tmp_path):
    """One kind has two grids itself."""
    files = [File(f"w_{k}_{day}.nc", field(k, day)) for k in ("d01", "d02") for day in (1, 2, 3)]
    files[0].vars["t"].data = np.zeros((4, 7, 7), "f4")
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    assert "--store-per" not in (doc["command"] or "")


@pytest.mark.parametrize("output", ["repo.icechunk", "out.zarr"])
def test_stores_only_where_they_can_be_made(output, tmp_path):
    F.write_all([File(f"w_{k}_{day}.nc", field(k, day)) for k in ("d01", "d02") for day in (1, 2, 3)], tmp_path / "in")
    target = ("icechunk:" if output.startswith("repo") else "") + str(tmp_path / output)
    r = tool.nc2zarr(tmp_path / "in", target)
    assert r.status == 4 and ("--store-per" in r.err) == (output == "out.zarr"), str(r)
    assert stores.listing(tmp_path).keys() == {"in", *(f"in/{p.name}" for p in (tmp_path / "in").iterdir())}
