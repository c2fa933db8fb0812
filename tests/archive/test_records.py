"""Observations along a record dimension without a coordinate: what orders them, and what is only one of their values."""

import itertools
import shlex

import numpy as np
import pytest

from support import readers, tool

from . import files as F
from . import stores

DAYS = {"units": "days since 2000-01-01", "standard_name": "time"}

# Of each file: the times of its observations, nan where one is missing.
UNORDERED = {
    "repeated": [[1, 1, 2], [3, 4, 4, 5]],
    "turning": [[1, 3, 2], [4, 6, 5, 7]],
    "each its own way": [[1, 2, 3], [7, 6, 5, 4]],
    "missing": [[1, 2, 3], [4, 5, np.nan, np.nan]],
}


def observations(i, n, **more):
    return F.File(f"f{i}.nc", {"value": F.Var(("obs",), np.arange(n, dtype="f4") + 100 * i), **more}, unlimited=("obs",))


def with_times(i, days):
    return observations(i, len(days), when=F.Var(("obs",), np.nan_to_num(np.array(days, "f8"), nan=-1), DAYS, fill=-1.0))


def with_labels(i, labels):
    return observations(i, len(labels), label=F.Var(("obs", "length"), F.characters(labels, 12)))


def in_order_of_names(files, store):
    got = readers.arrays(store)
    for name in files[0].vars:
        np.testing.assert_array_equal(got[name][...], np.concatenate([f.vars[name].data for f in files]), err_msg=name)


@pytest.mark.parametrize("days", UNORDERED.values(), ids=UNORDERED)
@pytest.mark.parametrize("options", [(), ("--order", "given")], ids=" ".join)
def test_times_without_order_are_values(tmp_path, days, options):
    files = [with_times(i, d) for i, d in enumerate(days)]
    paths = F.write_all(files, tmp_path)
    _, doc = stores.survey(*options, *paths, status=0)
    assert [(f["kind"], f["variable"], f["weight"]) for f in doc["findings"]] == [("coordinate", "when", "warning")]
    stores.convert("--verify", "full", *options, *paths, tmp_path / "out.zarr").ok()
    in_order_of_names(files, tmp_path / "out.zarr")


@pytest.mark.parametrize("falling", [False, True])
def test_times_in_order_say_how_files_follow(tmp_path, falling):
    files = [with_times(0, [5, 6, 7]), with_times(1, [1, 2])]
    if falling:
        for f in files:
            f.vars["when"].data = f.vars["when"].data[::-1].copy()
    stores.convert(*F.write_all(files, tmp_path), tmp_path / "out.zarr").ok()
    in_order_of_names(files if falling else files[::-1], tmp_path / "out.zarr")


def test_times_of_several_platforms_may_lie_between_each_other(tmp_path):
    files = [with_times(0, [1, 5, 9]), with_times(1, [2, 4]), with_times(2, [3, 8, 10, 11])]
    paths = F.write_all(files, tmp_path)
    _, doc = stores.survey(*paths, status=4)
    assert [f["kind"] for f in doc["findings"] if f["weight"] == "decision"] == ["interleaved"]
    assert "--order name " in doc["command"]
    stores.convert("--order", "name", "--verify", "full", *paths, tmp_path / "out.zarr").ok()
    in_order_of_names(files, tmp_path / "out.zarr")


def test_as_many_without_order_need_a_word(tmp_path):
    files = [with_times(i, [1, 1, 2]) for i in range(2)]
    paths = F.write_all(files, tmp_path)
    _, doc = stores.survey(*paths, status=4)
    assert [f["kind"] for f in doc["findings"]] == ["along"]
    stores.convert("--along", "obs", *paths, tmp_path / "out.zarr").ok()
    in_order_of_names(files, tmp_path / "out.zarr")


LABELS = {
    "mixed": [["B", "A"], ["C", "A", "C"]],
    "like years": [["2000", "2001"], ["1999", "2000", "2000"]],
    "some dates": [["2000-01-02", "Bern"], ["2000-01-01", "2000-01-02", "2000-01-02"]],
}


SHARED = {"one each": [["GOOD"], ["BAD"], ["GOOD"]], "several": [["A", "B"], ["B", "C", "D"]], "within": [["A", "C"], ["B", "D", "E"]]}


@pytest.mark.parametrize("labels", SHARED.values(), ids=SHARED)
def test_labels_that_records_share_tell_none_from_another(tmp_path, labels):
    files = [with_labels(i, own) for i, own in enumerate(labels)]
    paths = F.write_all(files, tmp_path)
    options = () if len({len(own) for own in labels}) > 1 else ("--along", "obs")
    stores.convert("--verify", "full", *options, *paths, tmp_path / "out.zarr").ok()
    in_order_of_names(files, tmp_path / "out.zarr")


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_without_order_are_values(tmp_path, labels):
    files = [with_labels(i, own) for i, own in enumerate(labels)]
    stores.convert("--verify", "full", *F.write_all(files, tmp_path), tmp_path / "out.zarr").ok()
    in_order_of_names(files, tmp_path / "out.zarr")


def test_labels_in_order_tell_records_apart(tmp_path):
    files = [with_labels(0, ["Bern", "Chur"]), with_labels(1, ["Aarau"])]
    stores.convert(*F.write_all(files, tmp_path), tmp_path / "out.zarr").ok()
    in_order_of_names(files[::-1], tmp_path / "out.zarr")


KINDS_OF_LABELS = {
    "a character": F.Var((), np.array(b"B", "S1")),
    "characters": F.Var(("length",), F.characters(["Bern"], 12)[0]),
    "texts": F.Var(("obs", "length"), F.characters(["Bern", "Chur"], 12)),
    "strings": F.Var(("obs",), np.array(["Bern", "Chur"], object)),
    "strings in rows": F.Var(("obs", "length"), np.array([["a"] * 12, ["b"] * 12], object)),
    "numbers": F.Var(("obs",), np.array([1.0, 2.0])),
}


@pytest.mark.parametrize("first, second", itertools.permutations(KINDS_OF_LABELS, 2))
def test_labels_that_are_something_else_in_another_file(tmp_path, first, second):
    """They are refused with their name, or nothing is lost of them."""
    files = [observations(i, 2, label=KINDS_OF_LABELS[kind]) for i, kind in enumerate((first, second))]
    r = tool.nc2zarr("-q", "--missing", "fill", "--static", "first", *F.write_all(files, tmp_path), tmp_path / "out.zarr")
    assert r.status in (1, 4) and "label: " in r.err, str(r)


@pytest.mark.parametrize("days", [[[3], [1]], [[1, 2], [3, 4]]], ids=["one each", "several"])
def test_records_of_one_platform_are_told_apart_by_their_times(tmp_path, days):
    """As profiles of Argo are: PLATFORM_NUMBER(N_PROF, STRING8) and JULD(N_PROF)."""
    files = [with_times(i, own) for i, own in enumerate(days)]
    for f, own in zip(files, days):
        f.vars = {"platform": F.Var(("obs", "length"), F.characters(["6901234"] * len(own), 8)), **f.vars}
    stores.convert("--verify", "full", *F.write_all(files, tmp_path), tmp_path / "out.zarr").ok()
    in_order_of_names(sorted(files, key=lambda f: f.vars["when"].data[0]), tmp_path / "out.zarr")


def test_dates_as_text_say_how_files_follow(tmp_path):
    files = [with_labels(0, ["2000-01-03", "2000-01-04"]), with_labels(1, ["2000-01-01", "2000-01-02"])]
    stores.convert(*F.write_all(files, tmp_path), tmp_path / "out.zarr").ok()
    in_order_of_names(files[::-1], tmp_path / "out.zarr")


def test_more_are_added_behind(tmp_path):
    files = [with_times(i, days) for i, days in enumerate([[1, 1, 2], [3, 3], [2, 9, 2, 9]])]
    F.write_all(files[:2], tmp_path / "in")
    F.write_all(files[2:], tmp_path / "more")
    stores.convert(tmp_path / "in", tmp_path / "out.zarr").ok()
    stores.convert("--append", "obs", tmp_path / "more", tmp_path / "out.zarr").ok()
    in_order_of_names(files, tmp_path / "out.zarr")


# ---- ragged arrays of the CF Conventions -------------------------------------------------------------


def ragged(i, rows, first, unlimited=("row", "obs"), ids=None):
    """Rows of samples, one behind the other; times begin at FIRST in each."""
    days = np.concatenate([first + np.arange(n, dtype="f8") for n in rows])
    vars = {
        "row_size": F.Var(("row",), np.array(rows, "i4"), {"sample_dimension": "obs"}),
        "time": F.Var(("obs",), days, DAYS),
        "value": F.Var(("obs",), np.arange(len(days), dtype="f4") + 100 * i),
    }
    if ids is not None:
        vars["row"] = F.Var(("row",), np.array(ids, "i4"), {"cf_role": "trajectory_id"})
    return F.File(f"f{i}.nc", vars, unlimited=unlimited)


RAGGED = {
    "of several rows": [([2, 3], 10), ([4, 0, 1], 0)],
    "one row, and its times rise": [([3], 10), ([2], 0)],
    "as many rows and samples": [([2, 1], 10), ([1, 2], 0)],
}


@pytest.mark.parametrize("rows", RAGGED.values(), ids=RAGGED)
@pytest.mark.parametrize("unlimited", [(), ("obs",), ("row", "obs")], ids=",".join)
@pytest.mark.parametrize("options", [(), ("--along", "obs"), ("--order", "given")], ids=" ".join)
def test_rows_follow_as_their_samples_do(tmp_path, rows, unlimited, options):
    files = [ragged(i, n, first, unlimited) for i, (n, first) in enumerate(rows)]
    stores.convert("--verify", "full", *options, *F.write_all(files, tmp_path), tmp_path / "out.zarr").ok()
    in_order_of_names(files, tmp_path / "out.zarr")


def test_names_of_rows_order_neither_rows_nor_samples(tmp_path):
    files = [ragged(0, [2, 3], 10, ids=[7, 8]), ragged(1, [1, 2], 0, ids=[3, 1])]
    stores.convert(*F.write_all(files, tmp_path), tmp_path / "out.zarr").ok()
    in_order_of_names(files, tmp_path / "out.zarr")


def test_renamed_rows_are_tied_too(tmp_path):
    files = [ragged(0, [2, 3], 10, ids=[7, 8]), ragged(1, [1, 2], 0, ids=[3, 1])]
    stores.convert("--rename", "row=drifter", *F.write_all(files, tmp_path), tmp_path / "out.zarr").ok()
    for f in files:
        f.vars["drifter"] = f.vars.pop("row")
    in_order_of_names(files, tmp_path / "out.zarr")


def test_samples_of_no_row_are_told(tmp_path):
    files = [ragged(i, rows, 0) for i, rows in enumerate([[2, 3], [1, 1]])]
    files[0].vars["row_size"].data = np.array([2, 2], "i4")
    paths = F.write_all(files, tmp_path)
    _, doc = stores.survey(*paths, status=4)
    assert [f["kind"] for f in doc["findings"]] == ["index"]
    assert stores.convert(*paths, tmp_path / "out.zarr").status == 4


def test_samples_whose_rows_no_file_counts_are_told(tmp_path):
    files = [ragged(i, rows, 0) for i, rows in enumerate([[2, 3], [1, 1], [2, 2]])]
    del files[1].vars["row_size"]
    files[1].vars["name"] = F.Var(("row",), np.array([1, 2], "i4"))
    paths = F.write_all(files, tmp_path)
    for options in ((), ("--missing", "fill")):
        _, doc = stores.survey(*options, *paths, status=4)
        assert "index" in [f["kind"] for f in doc["findings"]] and doc["command"] is None


def test_many_rows_are_counted(tmp_path):
    files = [ragged(i, np.ones(200_000, "i8"), 0) for i in range(2)]
    for f in files:
        f.vars["row_size"].data = f.vars["row_size"].data.astype("i8")
    files[0].vars["row_size"].data[7] = 0
    _, doc = stores.survey(*F.write_all(files, tmp_path), status=4)
    assert [f["kind"] for f in doc["findings"]] == ["index"]


INDICES = {"instance_dimension": ("station", "station"), "compress": ("lat station", "station")}


@pytest.mark.parametrize("attribute", INDICES)
def test_places_along_a_joined_dimension_are_refused(tmp_path, attribute):
    names, dim = INDICES[attribute]
    files = [
        observations(i, 4, index=F.Var(("obs",), np.array([0, 1, 1, 0], "i4"), {attribute: names}), height=F.Var((dim,), np.arange(n, dtype="f4")))
        for i, n in enumerate([2, 3])
    ]
    for f in files:
        f.unlimited = ("obs", dim)
    paths = F.write_all(files, tmp_path)
    _, doc = stores.survey(*paths, "--along", dim, status=4)
    assert [(f["kind"], f["variable"]) for f in doc["findings"] if f["weight"] == "decision"][-1] == ("index", "index")
    assert stores.convert(*paths, tmp_path / "out.zarr").status == 4


@pytest.mark.parametrize("seconds, option", [([0, 1, 2, 3], []), ([0, 0, 1, 1], ["--order", "name"])], ids=["rising", "repeated"])
def test_volumes_of_a_radar(tmp_path, seconds, option):
    """Rays, whose times may repeat, are joined; where sweeps begin and end among the rays of one file is left out."""
    files = []
    for i in range(3):
        rays = {"time": F.Var(("time",), np.array(seconds, "f8") + 100 * i, {"units": "seconds since 2000-01-01"}),
                "azimuth": F.Var(("time",), np.arange(4, dtype="f4") + 10 * i)}  # fmt: skip
        sweeps = {n: F.Var(("sweep",), np.array(v, "i4")) for n, v in {"sweep_start_ray_index": [0, 2], "sweep_end_ray_index": [1, 3]}.items()}
        files.append(F.File(f"f{i}.nc", {**rays, "fixed_angle": F.Var(("sweep",), np.array([1, 2], "f4")), **sweeps}, unlimited=("time",)))
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    words = shlex.split(doc["command"])[1:-2]
    assert words == [*option, "--exclude", "sweep_start_ray_index", "--exclude", "sweep_end_ray_index"]
    stores.convert("--verify", "full", *words, tmp_path / "in", tmp_path / "out.zarr").ok()
    got = readers.arrays(tmp_path / "out.zarr")
    np.testing.assert_array_equal(got["azimuth"][...], np.concatenate([f.vars["azimuth"].data for f in files]))


@pytest.mark.parametrize("along, counted", [("instance", True), ("instance", False), ("time", True)])
def test_geometries(tmp_path, along, counted):
    """Counts of nodes belong to the nodes of one file; points without counts go along, and so do shapes that all files share."""
    nodes = "node" if counted else "instance"
    container = {"geometry_type": "line" if counted else "point", "node_coordinates": "x y"} | ({"node_count": "count"} if counted else {})
    files = []
    for i in range(2):
        n, first = (5 if counted else 2), 100 * i * (along == "instance")
        variables = {"shape": F.Var((), np.array(0, "i4"), container),
                     "x": F.Var((nodes,), np.arange(n, dtype="f8") + (0 if counted else first), {"axis": "X"}),
                     "y": F.Var((nodes,), np.arange(n, dtype="f8") + (0 if counted else first), {"axis": "Y"}),
                     "time": F.Var(("time",), np.arange(3.0) + (0 if along == "instance" else 3 * i), DAYS),
                     "rain": F.Var(("instance", "time"), np.arange(6, dtype="f4").reshape(2, 3) + first, {"geometry": "shape"})}  # fmt: skip
        if counted:
            variables["count"] = F.Var(("instance",), np.array([[3, 2], [2, 3]][i * (along == "instance")], "i4"))
        files.append(F.File(f"f{i}.nc", variables, unlimited=(along,)))
    paths = F.write_all(files, tmp_path)
    refused = along == "instance" and counted
    _, doc = stores.survey(*paths, "--along", along, status=4 if refused else 0)
    assert [(f["kind"], f["variable"]) for f in doc["findings"] if f["kind"] == "index"] == ([("index", "count")] if refused else [])
    assert stores.convert(*paths, "--along", along, tmp_path / "out.zarr").status == (4 if refused else 0)


def test_instances_that_differ_are_refused_with_their_index(tmp_path):
    """The first file's, as --static gives, would say other stations of the observations of others."""
    files = [
        observations(i, 3, time=F.Var(("obs",), np.arange(3.0) + 10 * i, DAYS), index=F.Var(("obs",), np.array([0, 1, 1], "i4"), {"instance_dimension": "station"}), station=F.Var(("station",), np.array([1, 2], "i4") + i))
        for i in range(2)
    ]
    paths = F.write_all(files, tmp_path)
    _, doc = stores.survey(*paths, status=4)
    assert doc["command"] is None or "--static" not in doc["command"]
    assert stores.convert(*paths, tmp_path / "out.zarr").status == 4


@pytest.mark.parametrize("lengths, options", [((3, 2), ()), ((3, 2), ("--exclude", "id")), ((2, 2), ("--exclude", "id"))])
def test_indices_need_what_they_point_to(tmp_path, lengths, options):
    files = [
        observations(i, 2 + i, index=F.Var(("obs",), np.arange(2 + i, dtype="i4") % 2, {"instance_dimension": "station"}), id=F.Var(("station",), np.arange(n, dtype="i4") + 10 * i))
        for i, n in enumerate(lengths)
    ]
    paths = F.write_all(files, tmp_path)
    _, doc = stores.survey(*options, *paths, status=4)
    assert "index" in [f["kind"] for f in doc["findings"]] and doc["command"] is None
    stores.convert("--exclude", "id,index", *paths, tmp_path / "out.zarr").ok()


def test_a_store_does_not_grow_along_rows_and_samples(tmp_path):
    files = [ragged(i, rows, 0) for i, rows in enumerate([[2], [3], [1]])]
    F.write_all(files[:2], tmp_path / "in")
    F.write_all(files[2:], tmp_path / "more")
    stores.convert(tmp_path / "in", tmp_path / "out.zarr").ok()
    before = stores.listing(tmp_path / "out.zarr")
    for dim in ("row", "obs"):
        r = stores.convert("--append", dim, tmp_path / "more", tmp_path / "out.zarr")
        assert r.status != 0 and "row and obs grow together" in r.err, str(r)
    assert stores.listing(tmp_path / "out.zarr") == before


CUTS = {"row=1:2": "row_size", "obs=0:3": "row_size", "station=0:1": "index", "time=0:1": None}


@pytest.mark.parametrize("cut", CUTS)
def test_a_part_of_what_is_counted_is_a_warning(tmp_path, cut):
    f = ragged(0, [2, 3], 0)
    f.vars["index"] = F.Var(("row",), np.array([0, 1], "i4"), {"instance_dimension": "station"})
    f.vars["height"] = F.Var(("station",), np.array([5, 7], "f4"))
    f.vars["field"] = F.Var(("time",), np.arange(4.0))
    del f.vars["time"]
    [path] = F.write_all([f], tmp_path)
    r = tool.nc2zarr("--subset", cut, path, tmp_path / "out.zarr").ok()
    warned = [line for line in r.err.splitlines() if "count elements" in line]
    assert [line.split(": ")[2] for line in warned] == ([CUTS[cut]] if CUTS[cut] else []), r.err


def test_places_along_a_dimension_that_all_files_share_stay(tmp_path):
    files = [
        observations(i, n, index=F.Var(("obs",), np.arange(n, dtype="i4") % 2, {"instance_dimension": "station"}), height=F.Var(("station",), np.array([5, 7], "f4")))
        for i, n in enumerate([4, 3])
    ]
    stores.convert(*F.write_all(files, tmp_path), tmp_path / "out.zarr").ok()
    got = readers.arrays(tmp_path / "out.zarr")
    np.testing.assert_array_equal(got["index"][...], [0, 1, 0, 1, 0, 1, 0])
    np.testing.assert_array_equal(got["height"][...], [5, 7])
