"""Archives without a telling coordinate: of what would join them, the survey proposes what drops nothing, or least."""

import shlex

import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import readers, tool

from . import files as F
from . import stores
from .files import File, Var

DAYS = {"units": "days since 1950-01-01 00:00:00 UTC", "standard_name": "time"}
HOURS = {"units": "hours since 2000-01-01", "standard_name": "time"}


def text(value, length):
    return F.characters([value], length)[0]


def profiles(counts, history, levels=20, changes=0):
    """Argo: profiles of one float, and what was done to them along an unlimited dimension that is mostly empty."""
    files = []
    for i, (n, h) in enumerate(zip(counts, history)):
        first = sum(counts[:i])
        files.append(
            File(
                f"D1901234_{i + 1:03d}.nc",
                {
                    "DATE_CREATION": Var(("DATE_TIME",), text(f"2020010{i + 1 if i >= changes else 1}120000", 14)),
                    "PLATFORM_NUMBER": Var(("N_PROF", "STRING8"), F.characters(["1901234"] * n, 8)),
                    "JULD": Var(("N_PROF",), 25000.0 + 10 * np.arange(first, first + n), DAYS),
                    "PRES": Var(("N_PROF", "N_LEVELS"), np.arange(n * levels, dtype="f4").reshape(n, levels) + 1000 * i),
                    "HISTORY_STEP": Var(("N_HISTORY", "N_PROF"), np.arange(h * n, dtype="i4").reshape(h, n) + i),
                },
                unlimited=("N_HISTORY",),
            )
        )
    return files


def stations(names, more=()):
    files = []
    for i, name in enumerate(names):
        files.append(
            File(
                f"st_{'ABCD'[i]}.nc",
                {
                    "station": Var(("station",), np.array([name], object), {"cf_role": "timeseries_id"}),
                    "lat": Var(("station",), np.array([10.0 + i], "f4")),
                    "time": Var(("time",), np.arange(4.0), HOURS),
                    "t": Var(("station", "time"), np.arange(4, dtype="f4")[None] + 10 * i),
                },
                unlimited=more,
            )
        )
    return files


def granules(days, lengths):
    """TROPOMI: scan lines that each file counts from 0, in a group that has a time of one element."""
    for i, (day, n) in enumerate(zip(days, lengths)):
        with netCDF4.Dataset(f"S5P_OFFL_{i:05d}.nc", "w") as nc:
            group = nc.createGroup("PRODUCT")
            for name, length in (("time", 1), ("scanline", n), ("ground_pixel", 3)):
                group.createDimension(name, length)
                group.createVariable(name, "i4", (name,))[:] = np.arange(length)
            group["time"].setncatts({"units": "seconds since 2010-01-01 00:00:00", "standard_name": "time"})
            group["time"][:] = 86400 * day
            group.createVariable("no2", "f4", ("time", "scanline", "ground_pixel"))[:] = np.arange(3 * n).reshape(1, n, 3) + 100 * i


def swaths(kind, **differ):
    """A time of each ray, and small things that are each file's own."""
    files = []
    for i in range(5):
        vars = {"time": Var(("time",), np.arange(6.0) + 6 * i, HOURS), "DBZ": Var(("time", "range"), np.arange(24, dtype="f4").reshape(6, 4) + i)}
        if kind == "text":
            vars["start"] = Var(("string_length",), text(f"2020-01-01T00:0{i}:00Z", 20))
        elif kind == "list":
            vars["start"] = Var(("sweep",), np.array([0.5, 1.5], "f4") + i)
        elif kind == "list, once":
            vars["start"] = Var(("sweep",), np.array([0.5, 1.5], "f4") + (i == 4))
        elif kind == "field":
            vars["start"] = Var(("y", "x"), np.ones((2, 2), "f4") + i)
        elif kind == "long list":
            vars["start"] = Var(("bin",), np.arange(1000.0) + i)
            vars["time"].data = np.arange(600.0) + 600 * i
            vars["DBZ"].data = np.repeat(vars["DBZ"].data, 100, 0)
        files.append(File(f"cfrad.{i}.nc", vars))
    return files


def line(folder, status):
    """The words of the command that the survey ends with, without program, inputs and output; and its text."""
    got, doc = stores.survey(folder, status=status)
    shown = " ".join(tool.nc2zarr("--survey", folder).out.split())
    return shlex.split(doc["command"])[1:-2] if doc["command"] else None, shown, doc


def convert(options, folder):
    out = folder.parent / "out.zarr"
    stores.convert("--verify", "full", *options, folder, out).ok()
    return readers.arrays(out)


# Of each: profiles of each file, lengths of the history, options.
ARGO = {
    "nothing in the history": ((1, 1), (0, 0), ["--along", "N_PROF", "--promote", "DATE_CREATION"]),
    "as much history in each": ((1, 1, 1), (3, 3, 3), ["--along", "N_PROF", "--promote", "DATE_CREATION"]),
    "more and more history": ((1, 1), (3, 4), ["--along", "N_PROF", "--exclude", "HISTORY_STEP", "--promote", "DATE_CREATION"]),
    "history in one": ((1, 1), (0, 4), ["--along", "N_PROF", "--exclude", "HISTORY_STEP", "--promote", "DATE_CREATION"]),
    "more profiles in one": ((1, 2, 1), (0, 0, 0), ["--along", "N_PROF", "--promote", "DATE_CREATION"]),
    "both": ((1, 2, 1), (3, 4, 2), ["--along", "N_PROF", "--exclude", "HISTORY_STEP", "--promote", "DATE_CREATION"]),
}


@pytest.mark.parametrize("name", ARGO)
def test_profiles_are_joined_along_what_most_data_lie_along(name, tmp_path):
    counts, history, expected = ARGO[name]
    files = profiles(counts, history)
    F.write_all(files, tmp_path / "in")
    options, shown, doc = line(tmp_path / "in", 4)
    assert options == expected, shown
    # An option that is not in the command is not advertised as what decides.
    assert "--along N_HISTORY" not in shown and "--static JULD" not in shown and "--static PRES" not in shown
    assert not {"--along N_HISTORY", "--static PRES:first"} & {f["option"] for f in doc["findings"]}
    assert ("nothing is dropped" in shown.split("--along N_PROF the files")[1].split("--promote")[0]) == ("--exclude" not in options)
    got = convert(options, tmp_path / "in")
    for v in ("JULD", "PRES", "PLATFORM_NUMBER"):
        np.testing.assert_array_equal(got[v][...], np.concatenate([f.vars[v].data for f in files]).reshape(got[v].shape), err_msg=v)
    dates = np.concatenate([np.repeat(f.vars["DATE_CREATION"].data[None], n, 0) for f, n in zip(files, counts)])
    np.testing.assert_array_equal(got["DATE_CREATION"][...], dates)
    assert ("HISTORY_STEP" in got) == ("--exclude" not in options)
    if "HISTORY_STEP" in got:
        np.testing.assert_array_equal(got["HISTORY_STEP"][...], np.concatenate([f.vars["HISTORY_STEP"].data for f in files], 1))


def test_levels_that_differ_are_not_left_out(tmp_path):
    """Most of the data would be gone: then no option joins the files."""
    files = profiles((1, 1), (0, 0), levels=20) + profiles((1, 1), (0, 0), levels=30)
    for i, f in enumerate(files):
        f.name = f"D1901234_{i:03d}.nc"
    F.write_all(files, tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert options is None and "no option joins these files" in shown, shown


def test_a_date_that_changed_once(tmp_path):
    """It was corrected: the first file's is taken, as ever, and other dimensions would drop more."""
    files = profiles((1,) * 5, (0,) * 5, changes=4)
    F.write_all(files, tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert options == ["--along", "N_PROF", "--static", "DATE_CREATION:first"], shown
    assert "nothing is dropped" not in shown and "or --promote DATE_CREATION keeps" in shown
    convert(options, tmp_path / "in")


def test_what_was_asked_for_is_not_replaced(tmp_path):
    F.write_all(profiles((1, 1), (3, 3)), tmp_path / "in")
    _, doc = stores.survey("--along", "N_HISTORY", tmp_path / "in", status=4)
    assert shlex.split(doc["command"])[1:3] == ["--along", "N_HISTORY"] and "--static PRES:first" in doc["command"]


@pytest.mark.parametrize("names", [["AA", "BB"], ["AA", "BB", "CC", "DD"]], ids=len)
@pytest.mark.parametrize("more", [(), ("station",)], ids=["fixed", "unlimited"])
def test_stations_of_a_file_each(names, more, tmp_path):
    """Names are strings, which a survey does not read; all files have the same times."""
    files = stations(names, more)
    F.write_all(files, tmp_path / "in")
    # The survey reads latitudes only where their dimension has a length.
    options, shown, _ = line(tmp_path / "in", 0 if more else 4)
    assert options == ["--along", "station"] and "to keep all of them: --along station" in shown, shown
    r = stores.convert(tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == (1 if more else 4) and not (tmp_path / "out.zarr" / "zarr.json").exists(), str(r)
    convert([*options, "--overwrite"], tmp_path / "in")
    with xr.open_zarr(tmp_path / "out.zarr", chunks=None, decode_times=False) as got:
        assert got.station.values.tolist() == names and got.lat.values.tolist() == [10.0 + i for i in range(len(names))]
        np.testing.assert_array_equal(got.t.values, np.concatenate([f.vars["t"].data for f in files]))


@pytest.mark.parametrize("packed", [False, True])
def test_no_steps_are_drawn_of_several_calendars(packed, tmp_path):
    """Numbers that one calendar counts are no dates of the other; what else differs is said all the same."""
    for i, calendar in enumerate(["360_day", "noleap"]):
        units = {"units": "days since 1850-01-01", "calendar": calendar, "standard_name": "time"}
        scale = {"scale_factor": 0.5 + i, "add_offset": 0.0} if packed else {}
        variables = {"time": Var(("time",), np.arange(5.0) + 80000 + 90 * i, units), "t": Var(("time",), np.arange(5, dtype="i2"), scale)}
        F.write_all([File(f"f{i}.nc", variables)], tmp_path / "in")
    options, shown, doc = line(tmp_path / "in", 4)
    assert options is None and {f["kind"] for f in doc["findings"]} == {"calendar"} | ({"packing"} if packed else set()), shown
    assert "missing" not in shown and " to 20" not in shown


# Of each: what a file says of itself, by its number; the role of that; what is proposed.
IDENTITIES = {
    "number": (lambda i: ((), np.array(100 + i, "i4")), "timeseries_id", "id=@id"),
    "text": (lambda i: (("strlen",), text(f"st{i}", 8)), "timeseries_id", "station=_*."),
    "drifter": (lambda i: (("strlen",), text(f"buoy{i}", 8)), "trajectory_id", "trajectory=_*."),
    "no role": (lambda i: ((), np.array(100 + i, "i4")), None, "id=@id"),
}


@pytest.mark.parametrize("kind", IDENTITIES)
def test_files_of_a_thing_each_that_share_some_steps(kind, tmp_path):
    """Each has its own times, some of which others have, too: what identifies it keeps all of it apart."""
    identify, role, want = IDENTITIES[kind]
    files = []
    for i in range(4):
        dims, value = identify(i)
        variables = {"id": Var(dims, value, {"cf_role": role} if role else {}),
                     "time": Var(("time",), np.arange(6.0 + i) + 3 * i, HOURS),
                     "t": Var(("time",), np.arange(6 + i, dtype="f4") + 10 * i)}  # fmt: skip
        files.append(File(f"st_{'ABCD'[i]}.nc", variables, unlimited=("time",)))
    F.write_all(files, tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert options == ["--new-dim", want, "--missing", "fill"], shown
    got = convert(options, tmp_path / "in")["t"]
    assert got.shape == (4, 18)
    for i, f in enumerate(files):
        np.testing.assert_array_equal(got[i, 3 * i : 3 * i + 6 + i], f.vars["t"].data)


PLACES = {  # attributes of a position, and whether they say that it is one
    "latitude": ({}, True),
    "stn_lat": ({"units": "degrees_north"}, True),
    "phi": ({"standard_name": "latitude"}, True),
    "rlat": ({"standard_name": "grid_latitude", "units": "degrees"}, True),
    "northing": ({"standard_name": "projection_y_coordinate", "units": "m"}, True),
    "site_y": ({"axis": "Y", "units": "m"}, True),
    "site_lat": ({"_CoordinateAxisType": "Lat"}, True),
    "geo_y": ({"_CoordinateAxisType": "GeoY"}, True),
    "lat": ({"standard_name": "air_temperature"}, False),
    "depth": ({"axis": "Z", "units": "m"}, False),
}
TIMES = {  # of file I: its station, and its first step
    "a file each": lambda i: (i, 3 * i),
    "months of each": lambda i: (i // 2, 6 * (i % 2)),
    "other months of each": lambda i: (i // 2, 6 * (i % 2) + 3 * (i // 2)),
}


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("dims", [(), ("one",), ("y", "x")], ids=len)
@pytest.mark.parametrize("name", PLACES)
@pytest.mark.few(24)
def test_stations_whose_position_has_any_name(name, dims, times, tmp_path):
    """Attributes tell it, or a name that says it where there are none; it may have dimensions of one element."""
    attrs, place = PLACES[name]
    files = []
    for i in range(4 if times == "a file each" else 6):
        station, first = TIMES[times](i)
        variables = {name: Var(dims, np.full((1,) * len(dims), 10.0 * station), attrs), "across": Var(dims, np.full((1,) * len(dims), 20.0 + station)),
                     "time": Var(("time",), np.arange(6.0) + first, HOURS), "t": Var(("time",), np.arange(6, dtype="f4") + 100 * i)}  # fmt: skip
        files.append(File(f"st_{'ABCD'[station]}{'' if times == 'a file each' else f'_{i % 2}'}.nc", variables, unlimited=("time",)))
    F.write_all(files, tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert (options[:2] == ["--new-dim", "station=_*" + ("." if times == "a file each" else "_")]) == place, shown
    if place:
        got = convert(options, tmp_path / "in")
        assert got[name].shape[0] == got["t"].shape[0] == TIMES[times](len(files) - 1)[0] + 1
        for i, f in enumerate(files):
            station, first = TIMES[times](i)
            np.testing.assert_array_equal(got["t"][...][station, first : first + 6], f.vars["t"].data)


def runs(parts=1, nfields=1):
    """Forecasts of 36 hours every 24 hours, each in PARTS files; a second time that is the same wherever two files have a step."""
    files = []
    for i in range(4):
        for k in range(parts):
            n = 36 // parts
            hours = np.arange(n) + 24.0 * i + n * k
            variables = {"reference": Var((), np.array(24.0 * i), {**HOURS, "standard_name": "forecast_reference_time"}),
                         "time": Var(("time",), hours, HOURS), "valid": Var(("time",), hours - 24 * i, {"units": f"hours since 2000-01-0{i + 1}"}),
                         **{f"t{f}": Var(("time", "x"), np.arange(2.0 * n).reshape(n, 2) + 1000 * i) for f in range(nfields)}}  # fmt: skip
            files.append(File(f"run{i}_{k}.nc", variables))
    return files


@pytest.mark.parametrize("parts", [1, 2])
def test_runs_that_overlap_lie_side_by_side(parts, tmp_path):
    """A number that is one for the files of a run tells them apart: along time alone, steps of one run would be dropped."""
    files = runs(parts)
    F.write_all(files, tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert options == ["--new-dim", "reference=@reference", "--missing", "fill"], shown
    got = convert(options, tmp_path / "in")["t0"]
    assert got.shape == (4, 108, 2)
    for i in range(4):
        data = np.concatenate([f.vars["t0"].data for f in files[parts * i : parts * (i + 1)]])
        np.testing.assert_array_equal(got[i, 24 * i : 24 * i + 36], data)


def test_a_number_that_does_not_tell_files_apart_is_no_dimension(tmp_path):
    """Two of the files that have it share steps all the same."""
    files = runs()
    for i, f in enumerate(files):
        f.vars["reference"] = Var((), np.array(i // 2 + i % 2 * (i > 2), "i4"))
    F.write_all(files, tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert "--new-dim" not in shown and "--overlap" in options, shown


def test_the_cost_of_an_overlap_names_all_that_it_drops(tmp_path):
    """And nothing that is the same in the files which have it."""
    F.write_all(runs(nfields=6), tmp_path / "in")
    _, doc = stores.survey("--promote", "reference", tmp_path / "in", status=4)
    assert doc["command"].split()[1:5] == ["--promote", "reference", "--overlap", "first"]
    shown = " ".join(tool.nc2zarr("--survey", "--promote", "reference", tmp_path / "in").out.split())
    assert "--overlap first reference, t0, t1, t2, t3, t4, t5: of a step in several files" in shown, shown


def test_members_at_one_station(tmp_path):
    """Whatever the survey knows of the place is the same in all files: the names of files tell them apart, as ever."""
    files = stations(["AA", "AA"])
    files[1].vars["lat"] = files[0].vars["lat"]
    F.write_all(files, tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 0)
    assert options == ["--new-dim", "member=_*."], shown
    assert convert(options, tmp_path / "in")["t"].shape == (2, 1, 4)


@pytest.mark.parametrize("days, expected", [((0, 0, 0), []), ((0, 1, 2), ["--static", "PRODUCT/time:first"])], ids=["one day", "days"])
def test_granules(days, expected, tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    granules(days, (5, 6, 4))
    options, shown, _ = line(tmp_path / "in", 4)
    assert options == ["--along", "scanline", *expected], shown
    assert "--promote" not in shown  # which a coordinate is refused
    got = convert(options, tmp_path / "in")
    np.testing.assert_array_equal(got["PRODUCT/no2"][...][0, :, 0], np.concatenate([np.arange(0, 3 * n, 3) + 100 * i for i, n in enumerate((5, 6, 4))]))
    assert tool.nc2zarr("--survey", "--along", "scanline", "--promote", "PRODUCT/time", tmp_path / "in").status == 2


SMALL = {
    "text": "--promote start",
    "list": "--promote start",
    "list, once": "--static start:first",
    "field": "--static start:first",
    "long list": "--static start:first",
}


@pytest.mark.parametrize("kind", SMALL)
def test_small_things_of_each_file(kind, tmp_path):
    """Texts and lists are kept for each step where that is no more than 16 MiB; fields, and what changed once, are not."""
    files = swaths(kind)
    F.write_all(files, tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert options == shlex.split(SMALL[kind]), shown
    got = convert(options, tmp_path / "in")
    if "--promote" in options:
        np.testing.assert_array_equal(got["start"][...], np.concatenate([np.repeat(f.vars["start"].data[None], 6, 0) for f in files]))
    else:
        assert "or --promote start keeps those of each step" in shown


def test_a_text_of_a_file_without_steps(tmp_path):
    """It would have no place along the dimension."""
    files = swaths("text")
    for name in ("time", "DBZ"):
        files[1].vars[name].data = files[1].vars[name].data[:0]
    F.write_all(files, tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert options == ["--static", "start:first"], shown


def test_a_dimension_along_which_data_may_stop_the_run_is_not_better(tmp_path):
    """Values along an unlimited dimension are not in a survey: they may differ."""
    files = [
        File(
            f"f{i}.nc",
            {"v": Var(("rec",), np.array([i], "f4")), **{n: Var(("one", "x"), np.full((1, 4), 10.0 * i + k, "f4")) for k, n in enumerate(("s0", "s1"))}},
            unlimited=("rec",),
        )
        for i in range(3)
    ]
    F.write_all(files, tmp_path / "in")
    options, _, _ = line(tmp_path / "in", 4)
    assert options[:2] == ["--along", "rec"]
    got = convert(options, tmp_path / "in")
    np.testing.assert_array_equal(got["v"][...], [0, 1, 2])
    np.testing.assert_array_equal(np.squeeze(got["s1"][...])[:, 0], [1, 11, 21])


@pytest.mark.parametrize("differs", [False, True])
def test_strings_of_each_file_are_told_of(differs, tmp_path):
    """A survey reads none: that they may stop the run is said before it begins."""
    files = [
        File(
            f"f{i}.nc",
            {
                "expver": Var((), np.array(f"000{1 + i * differs}", object)),
                "time": Var(("time",), np.arange(3.0) + 3 * i, HOURS),
                "t": Var(("time",), np.arange(3, dtype="f4")),
            },
            unlimited=("time",),
        )
        for i in range(2)
    ]
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=0)
    assert [(f["kind"], f["variable"], f["weight"]) for f in doc["findings"]] == [("static", "expver", "note")]
    assert stores.convert(tmp_path / "in", tmp_path / "out.zarr").status == differs
    assert (tmp_path / "out.zarr" / "zarr.json").exists() != differs


def test_tiles_that_overlap_are_joined_along_what_they_tile(tmp_path):
    """No dimension but that of the tiles differs, and it is not the first of the data."""
    whole = np.arange(4 * 12 * 5, dtype="f4").reshape(4, 12, 5)
    for i, rows in enumerate([slice(0, 5), slice(4, 9), slice(8, 12)]):
        variables = {"time": Var(("time",), np.arange(4.0), HOURS), "lat": Var(("lat",), np.arange(12.0)[rows], {"units": "degrees_north"}),
                     "t": Var(("time", "lat", "lon"), whole[:, rows])}  # fmt: skip
        F.write_all([File(f"tile{i}.nc", variables)], tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert options == ["--along", "lat"], shown
    np.testing.assert_array_equal(convert(options, tmp_path / "in")["t"][...], whole)


@pytest.mark.parametrize("differs", ["attributes", "layout", "nothing"])
def test_members_are_told_apart_whatever_describes_them(differs, tmp_path):
    """Scenarios have their names in attributes, and chunks of their own."""
    for i, name in enumerate(["A1B_north.nc", "E1_north.nc"]):
        t = Var(("time",), np.arange(5, dtype="f4") + 10 * i, {"scenario": name[:2] if differs == "attributes" else "x"})
        F.write_all([File(name, {"time": Var(("time",), np.arange(5.0), HOURS), "t": t})], tmp_path / "in")
        if differs == "layout" and i == 1:
            with netCDF4.Dataset(tmp_path / "in" / name, "w") as nc:
                nc.createDimension("time", 5)
                when = nc.createVariable("time", "f8", ("time",))
                when.setncatts(HOURS)
                when[:] = np.arange(5)
                nc.createVariable("t", "f4", ("time",), zlib=True, chunksizes=(3,)).scenario = "x"
                nc["t"][:] = t.data
    options, shown, _ = line(tmp_path / "in", 0)
    assert options == ["--new-dim", "member=*_"], shown
    np.testing.assert_array_equal(convert(options, tmp_path / "in")["t"][...], np.arange(5) + 10 * np.arange(2)[:, None])


def counted(lengths, first=0, dtype="i4", dates=True):
    """Samples that each file counts from FIRST."""
    files = []
    for i, n in enumerate(lengths):
        times = {"sample_time": Var(("sample",), np.arange(n) * 0.5, {"units": f"seconds since 2021-01-0{i + 1} 00:00:00"})} if dates else {}
        samples = {"sample": Var(("sample",), np.arange(first, first + n).astype(dtype), {"units": "1"})}
        files.append(File(f"d{i}.nc", {**samples, **times, "wind": Var(("sample",), np.arange(n, dtype="f4") + 100 * i)}, unlimited=("sample",)))
    return files


@pytest.mark.parametrize("dates", [True, False], ids=["dates", "no dates"])
@pytest.mark.parametrize("lengths, first, dtype", [((8, 9, 10), 0, "i4"), ((8, 9, 10), 1, "f8"), ((9, 8, 8), 1, "i2")])
def test_an_index_does_not_say_how_files_follow_each_other(lengths, first, dtype, dates, tmp_path):
    files = counted(lengths, first, dtype, dates)
    F.write_all(files, tmp_path / "in")
    # Floats may be places on a grid, which are not merged by themselves.
    options, shown, _ = line(tmp_path / "in", 4 if dates or dtype == "f8" else 0)
    assert options == ["--order", "name"] and "to keep all of them: --order name" in shown, shown
    got = convert(options, tmp_path / "in")
    for v in ("sample", "wind"):
        np.testing.assert_array_equal(got[v][...], np.concatenate([f.vars[v].data for f in files]))


def test_an_index_of_as_many_elements_in_each_file(tmp_path):
    files = counted((8, 8), dates=False)
    F.write_all(files, tmp_path / "in")
    got = convert(["--order", "name", "--along", "sample"], tmp_path / "in")
    np.testing.assert_array_equal(got["wind"][...], np.concatenate([f.vars["wind"].data for f in files]))


@pytest.mark.parametrize("kind", ["goes on", "beside a time", "of variables"])
def test_a_coordinate_that_places_elements_stays_one(kind, tmp_path):
    files = counted((8, 9), dates=False)
    if kind == "goes on":
        files[1].vars["sample"].data = np.arange(8, 17, dtype="i4")
    elif kind == "of variables":
        files[1].vars["speed"] = files[1].vars.pop("wind")
    for i, f in enumerate(files):
        if kind == "beside a time":
            f.vars["wind"] = Var(("time", "sample"), f.vars["wind"].data[None])
            f.vars["time"] = Var(("time",), np.array([24.0 * i]), HOURS)
    F.write_all(files, tmp_path / "in")
    got = convert(["--missing", "fill", *(["--order", "name"] if kind == "goes on" else [])], tmp_path / "in")
    assert got["wind"].shape == {"goes on": (17,), "beside a time": (2, 9), "of variables": (9,)}[kind]


CYCLES = {"of its own": ([0, 1, 2, 3, 4], "reference_time"), "of several": ([0, 0, 0, 3, 3], "time")}


@pytest.mark.parametrize("kind", CYCLES)
def test_a_field_of_each_file_that_lacks_both_joined_dimensions(kind, tmp_path):
    """It gets the one along which no two files have the same step."""
    references, along = CYCLES[kind]
    files = [
        File(
            f"f{i}.nc",
            {
                "time": Var(("time",), np.array([float(i)]), HOURS),
                "reference_time": Var(("reference_time",), np.array([float(r)]), HOURS),
                "flow": Var(("feature",), np.arange(9, dtype="f4") + 100 * i),
            },
            unlimited=("time",),
        )
        for i, r in enumerate(references)
    ]
    F.write_all(files, tmp_path / "in")
    options, shown, doc = line(tmp_path / "in", 4)
    assert options == ["--promote", "flow"], shown
    got = convert(options, tmp_path / "in")
    np.testing.assert_array_equal(got["flow"][...], [f.vars["flow"].data for f in files])
    with xr.open_zarr(tmp_path / "out.zarr", chunks=None, decode_times=False) as ds:
        assert ds.flow.dims == (along, "feature")


def test_a_field_of_each_member_is_no_field_of_each_file(tmp_path):
    """Files of one member say the same, and along neither dimension has a file steps of its own."""
    files = [
        File(
            f"m{m}_{t}.nc",
            {
                "time": Var(("time",), np.arange(2.0) + 2 * t, HOURS),
                "member": Var(("member",), np.array([m], "i4")),
                "t": Var(("member", "time"), np.arange(2, dtype="f4")[None] + 10 * m + t),
                "orography": Var(("x",), np.arange(3, dtype="f4") + m),
            },
        )
        for m in range(3)
        for t in range(2)
    ]
    F.write_all(files, tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert options == ["--static", "orography:first"] and "--promote" not in shown, shown


@pytest.mark.parametrize("name", ["S3A_SL_2_LST____{}T1{}0000_{}T1{}0300_20220105T170000_0179_LN2.SEN3", "{}/{}", "run_{}_{}"])
def test_products_that_are_folders_of_several_files(name, tmp_path):
    """The date is in the name of the folder, which may have others; each file has variables of its own."""
    for i, day in enumerate(["20220101", "20220102", "20220102"][: 3 if "SEN3" in name else 2]):
        for k, v in enumerate(("flags", "LST", "quality")):
            file = File(f"{name.format(day, i, '20220102', i)}/{v}_in.nc", {v: Var(("rows", "columns"), np.arange(6, dtype="f4").reshape(2, 3) + 10 * i + k)})
            F.write_all([file], tmp_path / "in")
    options, shown, doc = line(tmp_path / "in", 4)
    assert options and options[0] == "--new-dim" and options[1].startswith("time="), shown
    (along,) = [f for f in doc["findings"] if f["kind"] == "along"]
    assert along["file"].endswith("LST_in.nc") and "LST_in.nc, and no coordinate" in along["text"]
    got = convert(options, tmp_path / "in")
    for k, v in enumerate(("flags", "LST", "quality")):
        np.testing.assert_array_equal(got[v][...][:, 0, 0], [10.0 * i + k for i in range(3 if "SEN3" in name else 2)])


@pytest.mark.parametrize("staggered", [False, True])
def test_a_latitude_of_another_name(staggered, tmp_path):
    """Without a standard_name, its units and values tell; those of another grid are another coordinate."""
    for i in range(3):
        lat = "latitude" if i == 2 else "lat"
        variables = {"time": Var(("time",), np.array([24.0 * i]), HOURS), "sst": Var(("time", lat), np.arange(3, dtype="f4")[None] + i),
                     lat: Var((lat,), np.arange(3.0) + (i == 2 and staggered) / 2, {"units": "degrees_north"})}  # fmt: skip
        F.write_all([File(f"d{i}.nc", variables)], tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert options == (None if staggered else ["--rename", "latitude=lat"]), shown
    if not staggered:
        assert convert(options, tmp_path / "in")["sst"].shape == (3, 3)


@pytest.mark.parametrize("name", ["time_offset", "time"])
def test_times_that_cannot_be_counted_are_left_out(name, tmp_path):
    """But not those that say how the files follow each other."""
    for i in range(3):
        bad = {"units": f"seconds since 2020-02-0{i + 1} at noon"}
        variables = {"time": Var(("time",), np.arange(4.0) + 4 * i, bad if name == "time" else HOURS), "tdry": Var(("time",), np.arange(4, dtype="f4")),
                     "time_offset": Var(("time",), np.arange(4.0), bad if name == "time_offset" else {"units": "1"})}  # fmt: skip
        F.write_all([File(f"sonde{i}.nc", variables)], tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4)
    assert options == (["--exclude", "time_offset"] if name == "time_offset" else None), shown


@pytest.mark.parametrize("name", ["b.e11.B20.f09_g16.00{}.cam.h0.{}.nc", "a_b_r{}_x_y_{}.nc", "x-1-{}-1-{}.nc"])
def test_members_whose_number_stands_between_other_words(name, tmp_path):
    """Alone it would be found elsewhere in the name, too: as much of the name goes with it as it takes."""
    data = np.arange(3 * 2 * 4, dtype="f4").reshape(3, 2, 4)
    for m in range(3):
        for y in range(2):
            file = File(name.format(m + 1, 1990 + y), {"time": Var(("time",), np.arange(4.0) + 4 * y, HOURS), "t": Var(("time",), data[m, y])})
            F.write_all([file], tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 0)
    assert options[0] == "--new-dim" and options[1].startswith("member="), shown
    np.testing.assert_array_equal(convert(options, tmp_path / "in")["t"][...], data.reshape(3, 8))


@pytest.mark.parametrize("place", [False, True])
def test_series_of_which_one_ends_before_the_others(place, tmp_path):
    """All begin with the same step, and some have the same steps throughout: they are not parts of one series."""
    lengths = (20, 20, 17)
    for i, n in enumerate(lengths):
        variables = {"time": Var(("time",), np.arange(float(n)), HOURS), "flow": Var(("time", "y", "x"), np.arange(n, dtype="f4").reshape(n, 1, 1) + 100 * i)}
        if place:
            variables["latitude"] = Var(("y", "x"), np.array([[10.0 * i]]))
        F.write_all([File(f"basin_{'ABC'[i]}.nc", variables)], tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 4 if place else 0)
    dim = "station" if place else "file"
    assert options == ["--new-dim", f"{dim}=_*.", "--missing", "fill"], shown
    got = convert(options, tmp_path / "in")
    for i, n in enumerate(lengths):
        np.testing.assert_array_equal(got["flow"][...][i, :n, 0, 0], np.arange(n) + 100 * i)
    assert not place or got["latitude"][...].ravel().tolist() == [0, 10, 20]


def test_a_series_that_grows_from_file_to_file_is_one(tmp_path):
    for i in range(3):
        n = 4 + 2 * i
        F.write_all([File(f"until_{2000 + i}.nc", {"time": Var(("time",), np.arange(float(n)), HOURS), "t": Var(("time",), np.arange(n, dtype="f4"))})], tmp_path / "in")
    options, shown, _ = line(tmp_path / "in", 0)
    assert options == [], shown
    np.testing.assert_array_equal(convert(options, tmp_path / "in")["t"][...], np.arange(8))


def domains(kind):
    """A file a part of the model: what differs between them gets the dimension of the parts."""
    files = []
    for k in range(4):
        f = File(
            f"ORCA_1d_20200101_20200103_grid_T_{k:04d}.nc",
            {
                "nav_lat": Var(("y", "x"), np.full((4, 5), k, "f4"), {"standard_name": "latitude"}),
                "time_counter": Var(("time_counter",), np.arange(3.0), {"units": "days since 2020-01-01"}),
                "thetao": Var(("time_counter", "y", "x"), np.full((3, 4, 5), k + 0.5, "f4")),
            },
            unlimited=("time_counter",),
        )
        if kind == "scalars":
            f.vars["depth"] = Var((), np.array(10.0 * k), {"units": "m"})
        files.append(f)
    return files


@pytest.mark.parametrize("kind", ["domains", "scalars"])
def test_what_gets_the_new_dimension_is_not_said_to_be_dropped(kind, tmp_path):
    F.write_all(domains(kind), tmp_path / "in")
    words, shown, _ = line(tmp_path / "in", 4)
    assert words[0] == "--new-dim" and len(words) == 2, words
    assert "the first file's values are kept" not in shown and "--static" not in shown, shown
    np.testing.assert_array_equal(convert(words, tmp_path / "in")["nav_lat"][:, 0, 0], np.arange(4))


def sweeps():
    """CfRadial: rays of each sweep are counted from the file's own first."""
    files = []
    for k in range(4):
        n = 6 + k % 2
        files.append(
            File(
                f"cfrad.20210501_100{k}03.nc",
                {
                    "time": Var(("time",), np.arange(n) * 0.5, {"units": f"seconds since 2021-05-01T10:0{k}:03Z", "standard_name": "time"}),
                    "range": Var(("range",), np.arange(5, dtype="f4")),
                    "sweep_start_ray_index": Var(("sweep",), np.array([0, 3], "i4")),
                    "sweep_end_ray_index": Var(("sweep",), np.array([2, n - 1], "i4")),
                    "DBZ": Var(("time", "range"), np.full((n, 5), k, "f4")),
                },
                {"Conventions": "CF/Radial"},
            )
        )
    return files


def test_nothing_is_decided_of_what_is_left_out(tmp_path):
    """Nor is it said of a variable that is excluded which values are kept."""
    F.write_all(sweeps(), tmp_path / "in")
    words, shown, _ = line(tmp_path / "in", 4)
    assert set(words[::2]) == {"--exclude"} and len(words) == 4, words
    assert "are kept" not in shown and "--static" not in shown, shown


def test_options_of_last_night_when_nothing_is_new(tmp_path):
    """Of a variable that they leave out, as of one that a store has."""
    F.write_all(sweeps(), tmp_path / "in")
    options = ["--exclude", "sweep_*", "--static", "sweep_end_ray_index:first", "--static", "range:first"]
    convert(options, tmp_path / "in")
    for _ in range(2):
        tool.nc2zarr("--append", "time", *options, tmp_path / "in", tmp_path / "out.zarr").ok()
    F.write(File("later.nc", {v: Var(w.dims, w.data + 600 * (v == "time"), w.attrs) for v, w in sweeps()[0].vars.items()}, {"Conventions": "CF/Radial"}), tmp_path / "in")
    tool.nc2zarr("--append", "time", *options, tmp_path / "in", tmp_path / "out.zarr").ok()
    bad = tool.nc2zarr("--static", "no_such:first", tmp_path / "in", tmp_path / "other.zarr")
    assert bad.status == 2 and "no_such" in bad.err


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("models", [("tas",), ("tas", "pr")])
def test_fixed_fields_of_a_file_each(models, n, tmp_path):
    """CMIP6: areas, masks and heights beside fields of time; one that lacks a mask is no file of the fields."""
    grid = {"lat": Var(("lat",), np.arange(4.0), {"units": "degrees_north"}), "lon": Var(("lon",), np.arange(5.0), {"units": "degrees_east"})}
    files = [
        File(f"{v}_Amon_{year}.nc", {**grid, "time": Var(("time",), 365 * year + 30 * np.arange(12.0), {"units": "days since 2000-01-01"}), v: Var(("time", "lat", "lon"), np.full((12, 4, 5), year, "f4"))})
        for v in models
        for year in range(2)
    ]
    fixed = ("areacella", "orog", "sftlf")[:n]
    files += [File(f"{v}_fx.nc", {**grid, v: Var(("lat", "lon"), np.full((4, 5), i, "f4"))}, unlimited=()) for i, v in enumerate(fixed)]
    F.write_all(files, tmp_path / "in")
    words, shown, doc = line(tmp_path / "in", 0)
    assert words == [] and not [f for f in doc["findings"] if f["kind"] == "missing"], shown
    got = convert([], tmp_path / "in")
    for i, v in enumerate(fixed):
        assert got[v].shape == (4, 5) and (got[v][...] == i).all()


def test_a_mask_that_some_months_lack_is_a_finding(tmp_path):
    """Of files that have the same fields."""
    files = F.clean(3)
    for f in files[:2]:
        f.vars["mask"] = Var(("lat",), np.arange(float(f.dims()["lat"])))
    F.write_all(files, tmp_path / "in")
    words, _, doc = line(tmp_path / "in", 4)
    assert words == ["--missing", "fill"] and [f["variable"] for f in doc["findings"] if f["kind"] == "missing"] == ["mask"]


def beams(path, lengths):
    """ICESat-2: groups whose dimensions have one name, and lengths of their own."""
    path.parent.mkdir(exist_ok=True)
    with netCDF4.Dataset(path, "w") as nc:
        for name, n in zip(("gt1l", "gt1r"), lengths):
            g = nc.createGroup(name)
            g.createDimension("delta_time", n)
            g.createVariable("delta_time", "f8", ("delta_time",))[:] = np.arange(n)
            g.createVariable("h_ph", "f4", ("delta_time",))[:] = np.arange(n)


@pytest.mark.parametrize("options", [[], ["--store-per", "{variable}"], ["--store-per", "_*."], ["--along", "delta_time"], ["--exclude", "gt1r/*"]])
def test_groups_with_dimensions_of_their_own(options, tmp_path):
    """The page of a survey says why they are not joined."""
    for i, lengths in enumerate([(10, 10), (12, 15), (7, 8)]):
        beams(tmp_path / "in" / f"ATL03_{i}.h5", lengths)
    run = tool.nc2zarr("--survey", *options, "in", cwd=tmp_path)
    assert run.status == 4 and "files whose groups have other dimensions of one name are not joined" in " ".join(run.out.split()), str(run)
    assert run.err == ""
    _, doc = stores.survey(*options, tmp_path / "in", status=4)
    said = [f for s in doc.get("stores", [doc]) for f in s["findings"] if f["kind"] == "length"]
    assert said and all(f["variable"] == "delta_time" and f["option"] is None for f in said)
    run = tool.nc2zarr(*options, "in", "out.zarr", cwd=tmp_path)
    assert run.status == 4 and not (tmp_path / "out.zarr").exists()


def test_the_error_about_a_field_beside_others_names_what_keeps_these(tmp_path):
    """Files of one variable each that all hold a second one, which differs: it alone stops the run."""
    for i, v in enumerate(("tmax", "ppt")):
        for y in range(2):
            fields = {n: Var(("time", "x"), np.arange(6, dtype="f4").reshape(3, 2) + 10 * i + 100 * y) for n in (v, "stations")}
            F.write_all([File(f"{v}_{y}.nc", {"time": Var(("time",), 3.0 * y + np.arange(3.0), HOURS), **fields})], tmp_path / "in")
    r = stores.convert(tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 1 and "stations" in r.err and "--overlap first or last" in r.err and "--exclude of the variable keeps all others" in r.err, str(r)
    got = convert(["--exclude", "stations", "--overwrite"], tmp_path / "in")
    assert got["tmax"].shape == got["ppt"].shape == (6, 2)
