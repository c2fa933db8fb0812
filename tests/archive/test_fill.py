"""Missing elements stay missing and data stay data, where files differ in having a fill value or a step."""

import numpy as np
import pytest
import xarray as xr

from . import files as F
from . import stores


def file(name, days, **vars):
    time = F.Var(("time",), np.asarray(days, "f8"), {"units": F.UNITS, "calendar": "standard"})
    return F.File(f"{name}.nc", {"time": time, **{k: v for k, v in vars.items() if v is not None}})


def along(values, dtype, fill=None):
    return F.Var(("time",), np.asarray(values, dtype), fill=None if fill is None else np.dtype(dtype).type(fill))


def converted(tmp_path, files, *options):
    F.write_all(files, tmp_path / "in")
    return tmp_path / "out.zarr", stores.convert("--verify", "full", *options, tmp_path / "in", tmp_path / "out.zarr")


def values(out, name):
    with xr.open_zarr(out, decode_times=False) as made:
        return made[name].values.astype("f8")


TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


@pytest.mark.parametrize("first", TYPES)
@pytest.mark.parametrize("second", ["i2", "i4"])
def test_a_gap_in_integers_is_missing(tmp_path, first, second):
    """Whatever type holds those of both files."""
    if first == "u8":
        second = "u8"
    files = [file("a", [0, 1], v=along([0, 1], first)), file("b", [3, 4], v=along([0, 4], second))]
    out, r = converted(tmp_path, files, "--gaps", "fill")
    r.ok()
    np.testing.assert_array_equal(values(out, "v"), [0, 1, np.nan, 0, 4])


@pytest.mark.every
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "i8"])
@pytest.mark.parametrize("how", ["gaps", "missing", "promote"])
def test_data_that_would_become_missing_stop_the_run(tmp_path, dtype, how):
    low = {"u1": 255, "i2": -32767, "i4": -2147483647, "i8": -9223372036854775806}[dtype]
    v = F.Var((), np.array(low, dtype)) if how == "promote" else along([low, 1], dtype)
    files = [file("a", [0, 1], v=v), file("b", [2, 3] if how == "missing" else [3, 4], v=None if how == "missing" else v)]
    options = {"gaps": ("--gaps", "fill"), "missing": ("--missing", "fill"), "promote": ("--gaps", "fill", "--promote", "v")}
    _, r = converted(tmp_path, files, *options[how])
    assert r.status == 1 and "fill value" in r.err, str(r)


def test_a_promoted_integer_is_missing_where_no_file_has_it(tmp_path):
    files = [file("a", [0, 1], v=F.Var((), np.array(0, "i4"))), file("b", [3], v=F.Var((), np.array(7, "i4")))]
    out, r = converted(tmp_path, files, "--gaps", "fill", "--promote", "v")
    r.ok()
    np.testing.assert_array_equal(values(out, "v"), [0, 0, np.nan, 7])


def test_bounds_in_integers_of_a_step_that_is_filled(tmp_path):
    """Counted from other dates, so that they are made anew."""
    files = []
    for name, first in (("a", 0), ("b", 72)):
        units = "hours since 2000-01-01" if name == "a" else "hours since 2000-01-02"
        hours = np.array([first, first + 24], "i4") - (0 if name == "a" else 24)
        time = F.Var(("time",), hours, {"units": units, "calendar": "standard", "bounds": "time_bnds"})
        files.append(F.File(f"{name}.nc", {"time": time, "time_bnds": F.Var(("time", "bnds"), np.stack([hours, hours + 24], 1))}))
    out, r = converted(tmp_path, files, "--gaps", "fill")
    r.ok()
    got = values(out, "time_bnds")
    np.testing.assert_array_equal(got, [[0, 24], [24, 48], [48, 72], [72, 96], [96, 120]])


@pytest.mark.parametrize("first", ["i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("second", ["i2", "i4", "f8"])
def test_a_fill_value_of_a_later_file_only(tmp_path, first, second):
    if (first, second) == ("i8", "f8"):
        first = "i4"
    files = [file("a", [0, 1], v=along([0, 1], first)), file("b", [2, 3], v=along([-5, 3], second, -5))]
    out, r = converted(tmp_path, files)
    r.ok()
    np.testing.assert_array_equal(values(out, "v"), [0, 1, np.nan, 3])


def test_a_fill_value_of_a_later_file_is_data_of_the_first(tmp_path):
    files = [file("a", [0, 1], v=along([0, -5], "i4")), file("b", [2, 3], v=along([-5, 3], "i4", -5))]
    _, r = converted(tmp_path, files)
    assert r.status == 1 and "a.nc: variable v: element 1 is data" in r.err, str(r)


def test_promoted_variables_of_different_fill_values(tmp_path):
    files = [file(n, [i], v=F.Var((), np.array(-3, "i4"), fill=np.int32(-i))) for n, i in (("a", 2), ("b", 3))]
    out, r = converted(tmp_path, files, "--promote", "v")
    r.ok()
    np.testing.assert_array_equal(values(out, "v"), [-3, np.nan])


@pytest.mark.parametrize("gaps", ["fill", "error"])
def test_gaps_of_a_coordinate_that_descends(tmp_path, gaps):
    """They are not looked for, which is said where they are asked for."""
    files = [file("a", [5, 4], v=along([5, 4], "f4")), file("b", [2, 1], v=along([2, 1], "f4"))]
    _, r = converted(tmp_path, files, "--gaps", gaps)
    assert r.status == 1 and "time: it descends" in r.err, str(r)


# ---- --file-attr ------------------------------------------------------------------------------------


def told(name, days, run, **vars):
    f = file(name, days, **vars)
    f.attrs["run"] = run
    return f


@pytest.mark.parametrize("overlap, want", [("first", ["A", "A", "B"]), ("last", ["A", "B", "B"])])
def test_the_attribute_is_of_the_file_whose_data_are_taken(tmp_path, overlap, want):
    files = [told("a", [0, 1], "A", v=along([0, 1], "f4")), told("b", [1, 2], "B", v=along([5, 2], "f4"))]
    out, r = converted(tmp_path, files, "--overlap", overlap, "--file-attr", "run")
    r.ok()
    np.testing.assert_array_equal(values(out, "v"), [0, 1 if overlap == "first" else 5, 2])
    with xr.open_zarr(out) as made:
        assert list(made.run.values) == want


def test_an_attribute_of_which_a_step_has_two(tmp_path):
    """Each of two variables comes from a file of its own."""
    files = [told(f"{v}{i}", [i], f"{v}{i}", **{v: along([i], "f4")}) for v in "vw" for i in range(2)]
    _, r = converted(tmp_path, files, "--file-attr", "run")
    assert r.status == 2 and "run: " in r.err and "have the same time" in r.err, str(r)
    assert not (tmp_path / "out.zarr").exists()


def test_an_attribute_goes_along_the_dimension_it_belongs_to(tmp_path):
    files = [told(f"m_r{m}_{i}", [i], f"R{m}", v=along([i + 10 * m], "f4")) for m in (1, 2) for i in range(3)]
    out, r = converted(tmp_path, files, "--new-dim", "member=r*_", "--file-attr", "run")
    r.ok()
    with xr.open_zarr(out) as made:
        assert made.run.dims == ("member",) and list(made.run.values) == ["R1", "R2"]


def test_an_attribute_of_a_step_that_no_file_has(tmp_path):
    files = [told("a", [0, 1], 0, v=along([0, 1], "f4")), told("b", [3], 7, v=along([3], "f4"))]
    out, r = converted(tmp_path, files, "--gaps", "fill", "--file-attr", "run")
    r.ok()
    np.testing.assert_array_equal(values(out, "run"), [0, 0, np.nan, 7])
