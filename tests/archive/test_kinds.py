"""Archives as they come: CMIP6, WRF, GOES, ERA5, ocean files without a time dimension, members, classic files."""

import datetime

import numpy as np
import pytest

from . import files as F
from . import stores
from .files import File, Var
from .kinds import cmip6, era5, goes, grid, member, rng, wrf


def converted(files, tmp_path, *options, verify="full", expect=0):
    F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    status, doc = stores.survey(*options, tmp_path / "in", status=expect)
    stores.convert("--verify", verify, *options, tmp_path / "in", out).ok()
    return out, doc


# ---- CMIP6: five years a file, units of its own, identifiers of its own -----------------------------


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "standard", "julian", "all_leap", "proleptic_gregorian"])
def test_cmip6_units_drift(tmp_path, calendar):
    files = [cmip6("tas", y, calendar) for y in range(1850, 1880, 5)]
    out, doc = converted(files, tmp_path)
    stores.same(out, F.joined(files), calendar)
    got = stores.attributes(out)
    assert got["source_id"] == "M" and not {"tracking_id", "history", "creation_date"} & set(got)
    assert {f["kind"] for f in doc["findings"]} >= {"time-units"}
    assert stores.attributes(out, "time")["units"] == "days since 1850-01-01 00:00:00"


def test_cmip6_attributes_by_file(tmp_path):
    """--file-attr makes one a coordinate along time."""
    files = [cmip6("tas", y, days=3) for y in (1850, 1855, 1860)]
    out, _ = converted(files, tmp_path, "--file-attr", "tracking_id")
    want = F.joined(files)
    want["tracking_id"] = (("time",), np.repeat([f.attrs["tracking_id"] for f in files], 3).astype(object))
    stores.same(out, want, "noleap")


def test_cmip6_two_variables(tmp_path):
    """tas_*.nc and pr_*.nc are joined and merged at once."""
    tas, pr = ([cmip6(v, y, seed=s) for y in (1850, 1855, 1860)] for v, s in (("tas", 0), ("pr", 1)))
    out, _ = converted(pr + tas, tmp_path)
    stores.same(out, {**F.joined(tas), **F.joined(pr)}, "noleap")


# ---- ERA5: months of 28 to 31 days in chunks that do not fit ----------------------------------------


def era5_joined(files):
    out = {}
    for name, v in files[0].vars.items():
        joined = "valid_time" in v.dims
        out[name] = (v.dims, np.concatenate([f.vars[name].data for f in files]) if joined else v.data)
    return out


@pytest.mark.parametrize("months", [(1, 2, 3, 4), (2, 1)])
def test_era5(tmp_path, months):
    files = [era5(m) for m in months]
    out, doc = converted(files, tmp_path)
    assert not [f for f in doc["findings"] if f["weight"] == "decision"]
    stores.same(out, era5_joined(sorted(files, key=lambda f: f.name)))


# ---- WRF: characters for time, coordinates that move along ------------------------------------------


def test_wrf(tmp_path):
    files = [wrf(h) for h in range(0, 36, 3)]
    F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    stores.convert("--verify", "full", str(tmp_path / "in" / "wrfout_*"), out).ok()
    want = {n: (v.dims, np.concatenate([f.vars[n].data for f in files])) for n, v in files[0].vars.items() if n != "Times"}
    stores.same(out, want, ignore=("Times", "Time"))
    from support import readers

    times = readers.arrays(out)["Times"][...]
    assert ["".join(c.decode() for c in row) for row in times] == [f.name[len("wrfout_d01_") :] for f in files]


# ---- files without the dimension --------------------------------------------------------------------


def test_goes(tmp_path):
    files = [goes(m) for m in range(0, 60, 10)]
    options = ("--new-dim", "time=_s%Y%j%H%M%S%f_", "--promote", "t,time_bounds")
    out, doc = converted(files, tmp_path, *options)
    from support import readers

    got = readers.arrays(out)
    np.testing.assert_array_equal(got["CMI"][...], np.stack([f.vars["CMI"].data for f in files]))
    assert got["CMI"].metadata.dimension_names == ("time", "y", "x")
    np.testing.assert_array_equal(got["time_bounds"][...], np.stack([f.vars["time_bounds"].data for f in files]))
    assert got["y"].shape == (5,) and got["goes_imager_projection"].shape == ()
    at = stores.times(got["time"][...], dict(got["time"].attrs), "standard")
    assert list(np.diff(at)) == [600_000_000] * 5
    np.testing.assert_array_equal(at, F.instants(Var((), got["t"][...], {"units": "seconds since 2000-01-01 12:00:00"})))
    assert not got["time"].attrs.get("_FillValue")


def test_ocean_files_without_time(tmp_path):
    files = []
    for day in range(28, 33):
        date = datetime.date(2000, 2, 1) + datetime.timedelta(days=day - 1)
        sst = rng(day).normal(290, 3, (4, 6)).astype("f4")
        vars = {**grid(), "sst": Var(("lat", "lon"), sst, {"units": "degC"}, np.float32(-999))}
        files.append(File(f"sub/sst.day.{date:%Y%m%d}.v2.nc", vars, {"title": "sst"}, unlimited=(), format="NETCDF3_CLASSIC"))
    F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    # Without a dimension to join along there is nothing that could be right.
    stores.survey(tmp_path / "in", status=4)
    stores.convert("--new-dim", "time=%Y%m%d", "--verify", "full", tmp_path / "in", out).ok()
    want = {n: (v.dims, v.data) for n, v in grid().items()}
    want["sst"] = (("time", "lat", "lon"), np.stack([f.vars["sst"].data for f in files]))
    stores.same(out, want, ignore=("time",))
    from support import readers

    time = readers.arrays(out)["time"]
    dates = stores.times(time[...], dict(time.attrs), "standard")
    assert list(np.diff(dates)) == [86_400_000_000] * 4
    assert dates[0] == F.instants(Var((), np.array(0), {"units": "days since 2000-02-28"}))


# ---- two dimensions at once -------------------------------------------------------------------------


YEARS = (1850, 1855, 1860)


def rectangle(members):
    rows = [F.joined(row) for row in members]
    want = dict(rows[0])
    return want, rows


def test_members_have_a_coordinate(tmp_path):
    members = [[member("tas", y, r, r) for y in YEARS] for r in (1, 2, 10)]
    out, doc = converted([f for row in members for f in row], tmp_path)
    want, rows = rectangle(members)
    want["member"] = (("member",), np.array([1, 2, 10], "i4"))
    want["tas"] = (("member", "time", "lat", "lon"), np.concatenate([r["tas"][1] for r in rows]))
    stores.same(out, want, "noleap")
    assert [a["length"] for a in doc["axes"]] in ([3, 9], [9, 3])


def test_members_are_in_the_path(tmp_path):
    members = [[member("tas", y, r) for y in YEARS] for r in (1, 2, 10)]
    out, _ = converted([f for row in members for f in row], tmp_path, "--new-dim", "member=/r*i1p1/")
    want, rows = rectangle(members)
    want["tas"] = (("member", "time", "lat", "lon"), np.stack([r["tas"][1] for r in rows]))
    stores.same(out, want, "noleap", ignore=("member",))
    from support import readers

    assert [int(m) for m in readers.arrays(out)["member"][...]] == [1, 2, 10]


def test_a_rectangle_with_a_hole_is_refused(tmp_path):
    files = [member("tas", y, r, r) for y in YEARS for r in (1, 2) if (y, r) != (1855, 2)]
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    assert [f for f in doc["findings"] if f["weight"] == "decision" and f["kind"] in ("holes", "missing")], doc["findings"]


# ---- formats, lengths, numbers ----------------------------------------------------------------------


@pytest.mark.parametrize("formats", [["NETCDF3_CLASSIC"], ["NETCDF3_64BIT_DATA"], ["NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF4_CLASSIC"]])
def test_formats(tmp_path, formats):
    files = [F.half_days(i, format=formats[i % len(formats)]) for i in range(6)]
    out, _ = converted(files, tmp_path)
    stores.same(out, F.joined(files))


@pytest.mark.parametrize("steps", [[1] * 7, [0, 3, 0, 2], [5, 1, 4, 0, 7, 2], [0, 0, 1]])
def test_uneven_and_empty_files(tmp_path, steps):
    files, first = [], 0
    for i, n in enumerate(steps):
        files.append(F.half_days(i, steps=n, first=first))
        first += n
    out, _ = converted(files, tmp_path)
    stores.same(out, F.joined(files))


def test_fixed_dimensions_join_too(tmp_path):
    files = F.clean(4)
    for f in files[::2]:
        f.unlimited = ()
    out, _ = converted(files, tmp_path)
    stores.same(out, F.joined(files))


def test_many_variables(tmp_path):
    files = F.clean(5)
    for f in files:
        for v in range(60):
            f.vars[f"v{v}"] = Var(("time", "lat"), rng(v, f.steps()).normal(size=(f.steps(), 4)), {"units": "1"})
    out, _ = converted(files, tmp_path)
    stores.same(out, F.joined(files))


def test_variables_apart(tmp_path):
    """Files with different variables on the same coordinates are merged."""
    f = F.half_days(0, steps=5)
    files = []
    for name in ("tas", "pr", "flag"):
        part = F.changed(f)
        part.vars = {k: v for k, v in f.vars.items() if k not in ("tas", "pr", "flag") or k == name}
        part.name = f"{name}.nc"
        files.append(part)
    out, _ = converted(files, tmp_path)
    stores.same(out, F.joined([f]))


# ---- inputs -----------------------------------------------------------------------------------------


def test_ways_to_name_the_files(tmp_path):
    files = F.clean(6)
    for i, f in enumerate(files):
        f.name = f"{2000 + i}/{i % 2}/{f.name}"
    paths = F.write_all(files, tmp_path / "in")
    (tmp_path / "in" / "notes.txt").write_text("not data")
    want = F.joined(files)
    lines, nul = tmp_path / "list", tmp_path / "list0"
    lines.write_text("\n".join(map(str, reversed(paths))) + "\n")
    nul.write_bytes(b"\0".join(str(p).encode() for p in paths) + b"\0")
    ways = {
        "folder": [tmp_path / "in"],
        "pattern": [tmp_path / "in" / "**" / "w_*.nc"],
        "one level": [tmp_path / "in" / "200?" / "[01]" / "*.nc"],
        "paths": paths[3:] + paths[:3],
        "twice": [*paths, tmp_path / "in", paths[2]],
        "list": [f"@{lines}"],
        "zero": ["-0", f"@{nul}"],
    }
    for name, inputs in ways.items():
        out = tmp_path / f"{name}.zarr"
        stores.convert(*inputs, out).ok()
        stores.same(out, want)


def test_a_pattern_that_finds_nothing(tmp_path):
    from support import tool

    r = tool.nc2zarr(tmp_path / "*.nc", tmp_path / "out.zarr")
    assert r.status == 1 and "*.nc" in r.err, str(r)
    assert list(tmp_path.iterdir()) == []


def test_store_per_folder(tmp_path):
    """One survey, many stores; each is whole by itself."""
    for member in ("a", "b"):
        files = F.clean(3)
        for f in files:
            f.name = f"{member}/{f.name}"
            if member == "b":
                f.vars["tas"].data = f.vars["tas"].data + 1
        F.write_all(files, tmp_path / "in")
    stores.convert("--store-per", "{dir}", tmp_path / "in", tmp_path / "out").ok()
    made = sorted(p.name for p in (tmp_path / "out").iterdir() if p.name.endswith(".zarr"))
    assert made == ["a.zarr", "b.zarr"]
    stores.same(tmp_path / "out" / "a.zarr", F.joined(F.clean(3)))
