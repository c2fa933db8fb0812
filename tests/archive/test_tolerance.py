"""Fields that differ from file to file: what is told, and the options that decide about one of them."""

import json

import numpy as np
import pytest
import xarray as xr

from support import tool

from . import files as F

TWO = np.array([[0, 1], [1, 2], [2, 3.0]])


def grid(name, day, shift=0.0, height=2.0, ground=0.0, lat=0.0):
    at = np.array([0.5, 1.5, 2.5]) + lat
    return F.File(
        name,
        {
            "time": F.Var(("time",), np.array([day], "f8"), {"units": F.UNITS}),
            "lat": F.Var(("lat",), at, {"bounds": "lat_bnds"}),
            "lat_bnds": F.Var(("lat", "two"), TWO + shift),
            "height": F.Var((), np.array(float(height))),
            "ground": F.Var(("lat", "k"), np.full((3, 3000), ground)),
            "v": F.Var(("time", "lat"), np.full((1, 3), float(day))),
        },
    )


def run(tmp_path, files, *options):
    F.write_all(files, tmp_path / "in")
    return tool.nc2zarr("--verify", "full", "--certificate", tmp_path / "c.json", *options, tmp_path / "in", tmp_path / "out.zarr")


def test_bounds_follow_the_tolerance_of_their_coordinate(tmp_path):
    files = [grid("a.nc", 0), grid("b.nc", 1, shift=2**-47, lat=2**-47)]
    r = run(tmp_path, files)
    assert r.status == 4 and r.said.count("; --tolerance 7.1") == 2 and r.err.splitlines()[-1].count("--tolerance") == 1 and "--static" not in r.err, str(r)
    r = run(tmp_path, files, "--tolerance", "1e-12").ok()
    assert "lat_bnds" in r.err and "the first file's are taken" in r.err, str(r)
    with xr.open_zarr(tmp_path / "out.zarr") as ds:
        np.testing.assert_array_equal(ds.lat_bnds, TWO)
    assert json.loads((tmp_path / "c.json").read_text())["reproducible"] is False


def test_a_tolerance_is_not_for_other_fields(tmp_path):
    r = run(tmp_path, [grid("a.nc", 0), grid("b.nc", 1, height=10, shift=1e-14)], "--tolerance", "1e-12")
    assert r.status == 4 and "height: its values are not those of" in r.err, str(r)
    r = run(tmp_path, [grid("a.nc", 0), grid("b.nc", 1, shift=1e-6)], "--tolerance", "1e-12")
    assert r.status == 4 and "lat_bnds" in r.err, str(r)


def test_a_difference_is_told_with_values_place_and_magnitude(tmp_path):
    files = [grid("a.nc", 0), grid("b.nc", 1), grid("c.nc", 2)]
    files[1].vars["lat_bnds"].data[1, 0] += 0.75
    files[2].vars["lat_bnds"].data[2, 1] -= 1.5
    r = run(tmp_path, files)
    assert "element 1/0 is 1.75, and 1.0 there; they differ by up to 1.5" in r.said, str(r)
    assert "(2 files, " in r.err and "--promote lat_bnds" in r.err, str(r)


def test_times_differ_in_seconds(tmp_path):
    files = [grid("a.nc", 0), grid("b.nc", 1)]
    for f, units, n in zip(files, ("days since 2000-01-01", "hours since 2000-01-02"), (1, 1)):
        f.vars["launch"] = F.Var(("x",), np.array([n, n], "i4"), {"units": units})
    r = run(tmp_path, files)
    assert "element 0 is 2000-01-02T01:00:00, and 2000-01-02T00:00:00 there; they differ by up to 3600.0 s" in r.said, str(r)


def test_static_of_one_variable(tmp_path):
    files = [grid("a.nc", 0), grid("b.nc", 1, height=10, ground=7.0)]
    r = run(tmp_path, files, "--static", "height:first")
    assert r.status == 1 and "ground: values without the joined dimension differ: element 0/0 is 7, and 0 in" in r.err, str(r)
    assert "9000 elements differ by up to 7.0" in r.err, str(r)
    r = run(tmp_path, files, "--static", "height:first", "--static", "ground:first", "--overwrite").ok()
    assert "height: its values are not those of" in r.err and "they differ by up to 8.0; the first file's are taken" in r.err, str(r)
    assert "ground: 9000 elements differ by up to 7.0" in r.err, str(r)
    assert json.loads((tmp_path / "c.json").read_text())["reproducible"] is False


def test_fields_compared_late_leave_no_claim(tmp_path):
    """Values outside the survey were dropped, without a word in the certificate."""
    run(tmp_path, [grid("a.nc", 0), grid("b.nc", 1, ground=7.0)], "--static", "first").ok()
    assert json.loads((tmp_path / "c.json").read_text())["reproducible"] is False
    run(tmp_path, [grid("a.nc", 0), grid("b.nc", 1)], "--static", "first", "--overwrite").ok()
    assert json.loads((tmp_path / "c.json").read_text())["reproducible"] is True


@pytest.mark.parametrize("option", ["nope:first", "height:last", "last"])
def test_static_that_means_nothing(option, tmp_path):
    r = run(tmp_path, [grid("a.nc", 0), grid("b.nc", 1)], "--static", option)
    assert r.status == 2 and option.split(":")[0] in r.err + "height" and "--static" in r.err, str(r)


def test_tiles_and_time(tmp_path):
    """Neighbours along x differ in what lies along time: no step is there twice, and no overlap decides."""

    def tile(name, x, day, label):
        return F.File(
            name,
            {
                "time": F.Var(("time",), np.array([day], "f8"), {"units": F.UNITS}),
                "x": F.Var(("x",), np.array(x, "i4")),
                "label": F.Var(("time",), np.array([label], "i4")),
                "v": F.Var(("time", "x"), np.full((1, len(x)), day, "f4")),
            },
        )

    files = [tile(f"{d}{i}.nc", [2 * i, 2 * i + 1], d, 10 * d + i * (d == 1)) for d in (0, 1) for i in (0, 1)]
    r = run(tmp_path, files)
    assert r.status == 1 and "values without the joined dimension differ" in r.err and "--static" in r.err, str(r)
    assert run(tmp_path, files, "--overlap", "first", "--overwrite").status == 1
    r = run(tmp_path, files, "--static", "label:first", "--overwrite").ok()
    assert "label: 1 element differs by up to 1.0" in r.err, str(r)
    with xr.open_zarr(tmp_path / "out.zarr") as ds:
        np.testing.assert_array_equal(ds.label, [0, 10])
        assert ds.v.shape == (2, 4)


def test_a_tolerance_for_one_point(tmp_path):
    """They were two tiles, whose grid --missing fill doubled."""

    def site(name, day, lat):
        v = {"time": F.Var(("time",), np.array([day], "f8"), {"units": F.UNITS}), "lat": F.Var(("lat",), np.array([lat]))}
        return F.File(name, {**v, "v": F.Var(("time", "lat"), np.full((1, 1), float(day)))})

    files = [site("a.nc", 0, 0.0), site("b.nc", 1, 1e-6)]
    run(tmp_path, files, "--tolerance", "1e-3", "--missing", "fill").ok()
    with xr.open_zarr(tmp_path / "out.zarr") as ds:
        assert ds.v.shape == (2, 1) and ds.lat.values == [0.0]
    r = run(tmp_path / "tiles", [site("a.nc", 0, 0.0), site("b.nc", 0, 1.0)], "--tolerance", "1e-3").ok()
    with xr.open_zarr(tmp_path / "tiles/out.zarr") as ds:
        assert ds.v.shape == (1, 2)
