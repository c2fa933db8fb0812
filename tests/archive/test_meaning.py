"""Files are joined by what their numbers mean: under other units, packings, fill values and lengths."""

import json

import numpy as np
import pytest
import xarray as xr

from . import files as F
from . import stores

NAN = np.nan
DAYS = "days since 2000-01-01"


def time(days, units=DAYS, dtype="f8", **kw):
    return F.Var(("time",), np.asarray(days, dtype), {"units": units, "calendar": "standard"}, **kw)


def var(dims, data, dtype="i4", fill=None, **attrs):
    data = np.asarray(data, dtype)
    dims = tuple(dims.split())
    return F.Var(dims, data, attrs, fill=None if fill is None else data.dtype.type(fill))


def two(a, b, time_units=(DAYS, DAYS), **kw):
    """Files of two steps each with the variables A and B."""
    return [
        F.File("a.nc", {"time": time([0, 1], time_units[0]), **a}, **kw),
        F.File("b.nc", {"time": time([2, 3], time_units[1]), **b}, **kw),
    ]


def run(tmp_path, files, *options):
    F.write_all(files, tmp_path / "in")
    return stores.convert("--verify", "full", *options, tmp_path / "in", tmp_path / "out.zarr")


def shown(tmp_path, files, *options):
    """The store as xarray shows it."""
    run(tmp_path, files, *options).ok()
    with xr.open_zarr(tmp_path / "out.zarr") as ds:
        return ds.load()


def refused(tmp_path, files, *options, text):
    r = run(tmp_path, files, *options)
    assert r.status == 4 and text in r.err, str(r)
    assert not (tmp_path / "out.zarr").exists()


def dates(*text):
    return np.array(text, "datetime64[ns]")


# ---- lengths ----


def observed(name, day, nobs, dims="time obs", format="NETCDF4"):
    steps = () if "time" not in dims else (2,)
    data = np.ones(steps + (nobs,), "f4")
    return F.File(name, {"time": time([day, day + 1]), "a": var(dims, data, "f4")}, format=format)


@pytest.mark.every
@pytest.mark.parametrize("lengths", [(5, 0), (0, 5), (5, 0, 5), (0, 0, 5)])
@pytest.mark.parametrize("dims", ["time obs", "obs"])
def test_no_elements_are_a_length_too(lengths, dims, tmp_path):
    files = [observed(f"{i}.nc", 2 * i, n, dims) for i, n in enumerate(lengths)]
    refused(tmp_path, files, text="obs: the dimension has ")


def test_no_elements_in_any_file(tmp_path):
    ds = shown(tmp_path, [observed("a.nc", 0, 0), observed("b.nc", 2, 0)])
    assert ds.a.shape == (4, 0)


def test_no_elements_along_the_joined_dimension(tmp_path):
    files = [
        F.File("a.nc", {"time": time([]), "a": var("time x", np.ones((0, 2)))}),
        F.File("b.nc", {"time": time([1, 2]), "a": var("time x", np.ones((2, 2)))}),
        F.File("c.nc", {"time": time([3]), "a": var("time x", np.ones((1, 2)))}),
    ]
    assert shown(tmp_path, files).a.shape == (3, 2)


def test_an_empty_file_of_a_variable_that_is_left_out(tmp_path):
    files = two({"a": var("obs", [1, 2])}, {"b": var("obs", [])})
    for f in files:
        f.vars["c"] = var("time", [1, 2])
    assert shown(tmp_path, files, "--exclude", "[ab]").c.shape == (4,)


def test_no_elements_in_merged_files(tmp_path):
    files = [F.File("a.nc", {"a": var("obs", [1, 2])}, unlimited=()), F.File("b.nc", {"b": var("obs", [])}, unlimited=())]
    refused(tmp_path, files, text="obs: the dimension has ")


def test_no_elements_in_the_first_tile(tmp_path):
    def tile(name, y, x):
        v = np.add.outer(10 * np.asarray(y), np.asarray(x))
        return F.File(name, {"y": var("y", y), "x": var("x", x), "v": var("y x", v)}, unlimited=())

    files = [tile("a.nc", [0, 1], []), tile("b.nc", [0, 1], [0, 1]), tile("c.nc", [2, 3], [0, 1])]
    r = run(tmp_path, files, "--along", "y")
    assert r.status == 4 and "x: " in r.err, str(r)


def test_no_elements_with_a_new_dimension(tmp_path):
    files = [F.File(f"r{i}.nc", {"a": var("obs", np.ones(n))}, unlimited=()) for i, n in enumerate((3, 0))]
    refused(tmp_path, files, "--new-dim", "run=r*.nc", text="obs: the dimension has ")


def test_no_elements_in_references(tmp_path):
    F.write_all([observed("a.nc", 0, 5), observed("b.nc", 2, 0)], tmp_path / "in")
    r = stores.convert("--virtual", "json", tmp_path / "in", tmp_path / "out.json")
    assert r.status == 4 and "obs: the dimension has " in r.err, str(r)


def test_no_elements_in_a_store_that_grows(tmp_path):
    F.write_all([observed("a.nc", 0, 0)], tmp_path / "one")
    stores.convert(tmp_path / "one", tmp_path / "out.zarr").ok()
    F.write_all([observed("b.nc", 2, 5)], tmp_path / "in")
    r = stores.convert("--append", "time", tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 4 and "obs: the dimension has " in r.err, str(r)


@pytest.mark.parametrize("units", ["months since 2000-01-01", "days since 0000-00-00", "hours since start", DAYS])
def test_a_coordinate_of_that_name_along_another_dimension(units, tmp_path):
    files = [
        F.File("k.nc", {"time": time([0, 1, 2])}),
        F.File("l.nc", {"time": F.Var(("t",), np.arange(4.0), {"units": units})}, unlimited=()),
    ]
    r = run(tmp_path, files)
    assert r.status in (1, 4) and "time" in r.err, str(r)


# ---- units and fill values ----

SINCE = "days since 2000-01-03"


@pytest.mark.parametrize("name", ["scalar", "field"])
def test_one_number_from_two_dates(name, tmp_path):
    v = [var("", 0, "f8", units=u) if name == "scalar" else var("x", [0, 5], units=u) for u in (DAYS, SINCE)]
    files = two({"v": v[0]}, {"v": v[1]})
    refused(tmp_path, files, text="v: its values are not those of ")
    got = shown(tmp_path, files, "--promote", "v").v
    want = dates("2000-01-01", "2000-01-01", "2000-01-03", "2000-01-03")
    np.testing.assert_array_equal(got if name == "scalar" else got[:, 0], want)


def test_one_date_from_two_dates(tmp_path):
    a = {"ref": var("", 2, "f8", units=DAYS), "launch": var("x", [2, 3], units=DAYS)}
    b = {"ref": var("", -24, "f8", units="hours since 2000-01-04"), "launch": var("x", [0, 1], units=SINCE)}
    ds = shown(tmp_path, two(a, b))
    assert ds.ref.values == dates("2000-01-03")[0]
    np.testing.assert_array_equal(ds.launch, dates("2000-01-03", "2000-01-04"))


def test_bounds_count_as_their_coordinate_does(tmp_path):
    """The same numbers in files whose times count from other dates."""
    files = []
    for i, (units, first) in enumerate(((DAYS, 0), (SINCE, -2))):
        # along y, which is not joined: nothing but the units of its coordinate tells bounds apart
        y = F.Var(("y",), np.array([first, first + 1.0]), {"units": units, "bounds": "y_bnds"})
        files.append(F.File(f"{i}.nc", {"time": time([i]), "y": y, "y_bnds": var("y two", [[0, 1], [1, 2]], "f8")}))
    refused(tmp_path, files, "--along", "time", text="y_bnds: its values are not those of ")


def test_one_number_under_two_fill_values(tmp_path):
    files = two({"s": var("x", [1, -1], fill=-1)}, {"s": var("x", [1, -1], fill=-2)})
    refused(tmp_path, files, text="s: its values are not those of ")
    r = run(tmp_path, files, "--promote", "s")
    assert r.status == 1 and "is data, but equals the fill value that the store has" in r.err, str(r)


@pytest.mark.parametrize("kind", ["fill", "unpacked type"])
def test_a_missing_element_under_two_fill_values(kind, tmp_path):
    b = var("x", [1, -2], fill=-2) if kind == "fill" else var("x", [1, NAN], "f8")
    files = two({"s": var("x", [1, -1], fill=-1)}, {"s": b})
    np.testing.assert_array_equal(shown(tmp_path, files).s, [1, NAN])


@pytest.mark.parametrize("fill", (0.0, -0.0))
@pytest.mark.parametrize("other", (None, -999.0))
def test_zeros_of_both_signs_are_one_fill_value(fill, other, tmp_path):
    a = {"v": var("time", [1, 2], "f4", fill=fill)}
    b = {"v": var("time", [3.0, -fill], "f4", **({} if other is None else {"fill": other}))}
    r = run(tmp_path, two(a, b))
    assert r.status == 1 and "is data, but equals the fill value that the store has" in r.err, str(r)


def test_a_store_keeps_what_its_numbers_mean(tmp_path):
    F.write_all(two({"ref": var("", 0, "f8", units=DAYS)}, {"ref": var("", -48, "f8", units="hours since 2000-01-03")}), tmp_path / "in")
    stores.convert(tmp_path / "in", tmp_path / "out.zarr").ok()
    more = [F.File("c.nc", {"time": time([4]), "ref": var("", 0, "f8", units=SINCE)})]
    F.write_all(more, tmp_path / "more")
    r = stores.convert("--append", "time", tmp_path / "more", tmp_path / "out.zarr")
    assert r.status == 4 and "ref: its values are not those of " in r.said, str(r)


def test_fields_of_one_order(tmp_path):
    """The same bytes, transposed."""
    v = [[1, 2], [3, 4]]
    r = run(tmp_path / "other", two({"v": var("y x", v)}, {"v": var("x y", v)}))
    assert r.status != 0 and "v" in r.err, str(r)
    same = two({"v": var("y x", v)}, {"v": var("x y", np.transpose(v))})
    np.testing.assert_array_equal(shown(tmp_path, same).v, v)


# ---- packing ----


def packed(dims, values, scale, dtype="i2", **attrs):
    return var(dims, np.rint(np.asarray(values) / scale), dtype, scale_factor=scale, **attrs)


def scaled(name, days, scale, **values):
    return F.File(
        name,
        {
            "time": packed("time", days, scale, units=DAYS),
            "d": packed("time", np.arange(len(days)) * 4, scale),
            **{n: packed("lat" if n == "lat" else "", v, scale) for n, v in values.items()},
        },
    )


@pytest.mark.parametrize("later", [(2, 3), (0.5, 1.5)])
def test_packed_coordinates_are_unpacked(later, tmp_path):
    """Raw numbers of the second file are those of the first, or lie between them."""
    files = [scaled("a.nc", [0, 1], 1.0, lat=[4, 8], h=2), scaled("b.nc", later, 0.5, lat=[4, 8], h=2)]
    if later == (0.5, 1.5):
        refused(tmp_path, files, "--packing", "unpack", text="time: ")
        return
    ds = shown(tmp_path, files, "--packing", "unpack")
    np.testing.assert_array_equal(ds.time, dates("2000-01-01", "2000-01-02", "2000-01-03", "2000-01-04"))
    np.testing.assert_array_equal(ds.lat, [4, 8])
    np.testing.assert_array_equal(ds.d, [0, 4, 0, 4])
    assert ds.h == 2


def test_packed_scalars_are_promoted_unpacked(tmp_path):
    files = [scaled("a.nc", [0, 1], 1.0, h=3), scaled("b.nc", [2, 3], 0.5, h=6)]
    refused(tmp_path, files, "--packing", "unpack", text="h: its values are not those of ")
    ds = shown(tmp_path, files, "--packing", "unpack", "--promote", "h")
    np.testing.assert_array_equal(ds.h, [3, 3, 6, 6])


def packed_time(numbers, scale):
    return F.Var(("time",), np.asarray(numbers, "i4"), {"units": "hours since 2000-01-01", "scale_factor": scale})


COMPUTED = {
    "a promoted field, packed in one file": (
        two({"s": var("x", [12, 16], "f4", fill=-9999)}, {"s": var("x", [6, 8], "f4", fill=-9999, scale_factor=2.0)}),
        ["--packing", "unpack", "--promote", "s"]),
    "packed times": (
        [F.File(f"{name}.nc", {"time": packed_time(*of), "v": var("time", [1, 2])})
         for name, of in (("a", ([2, 4], 0.5)), ("b", ([24, 28], 0.25)))],
        ["--packing", "unpack"]),
    "times as data, two of them missing": (
        two({"v": var("time", [99, 5], fill=-1, units="seconds since 1970-01-01", missing_value=np.int32(99))},
            {"v": var("time", [99, -2], fill=-2, units="hours since 1900-01-01")}), []),
}  # fmt: skip


@pytest.mark.parametrize("verify", ("sample", "full"))
@pytest.mark.parametrize("name", COMPUTED)
def test_what_a_join_computes_is_verified_as_readers_see_it(name, verify, tmp_path):
    files, options = COMPUTED[name]
    F.write_all(files, tmp_path / "in")
    stores.convert("--verify", verify, *options, tmp_path / "in", tmp_path / "out.zarr").ok()


def test_packed_scalars_that_raw_are_the_same(tmp_path):
    files = [scaled("a.nc", [0, 1], 1.0, h=3), scaled("b.nc", [2, 3], 0.5, h=1.5)]
    refused(tmp_path, files, "--packing", "unpack", text="h: its values are not those of ")


def test_packed_scalars_become_steps(tmp_path):
    files = [
        F.File(f"{i}.nc", {"h": packed("", h, s), "v": packed("x", [h, h], s)}, unlimited=())
        for i, (h, s) in enumerate(((3, 1.0), (1.5, 0.5)))
    ]
    ds = shown(tmp_path, files, "--packing", "unpack", "--new-dim", "h=@h").sortby("h")
    np.testing.assert_array_equal(ds.h, [1.5, 3])
    np.testing.assert_array_equal(ds.v, [[1.5, 1.5], [3, 3]])


def test_overlapping_steps_of_other_packings(tmp_path):
    """Raw they are the same two."""
    files = [scaled("a.nc", [1, 2], 1.0), scaled("b.nc", [0.5, 1], 0.5)]
    files[1].vars["d"].data[:] = [8, 0]
    ds = shown(tmp_path, files, "--packing", "unpack")
    np.testing.assert_array_equal(ds.time, dates("2000-01-01T12", "2000-01-02", "2000-01-03"))
    np.testing.assert_array_equal(ds.d, [4, 0, 4])


def test_gaps_between_packed_steps(tmp_path):
    files = [scaled("a.nc", [0, 1], 0.5), scaled("b.nc", [3, 4], 0.5)]
    ds = shown(tmp_path, files, "--gaps", "fill")
    np.testing.assert_array_equal(ds.time, dates(*(f"2000-01-0{i}" for i in range(1, 6))))


# ---- missing values ----


def counted(name, units, days, stamps, **attrs):
    return F.File(name, {"time": time(days, units), "t": var("time", stamps, units=units, **attrs)})


@pytest.mark.parametrize("missing", [np.int32(-999), np.array([-999, -1], "i4")], ids=["one", "two"])
@pytest.mark.parametrize("fill", [None, -5])
def test_missing_times_stay_missing(missing, fill, tmp_path):
    files = [
        counted("a.nc", DAYS, [0, 1], [3, -999], missing_value=missing),
        counted("b.nc", "days since 2001-01-01", [0, 1], [-998, -999], missing_value=missing),
    ]
    for f in files:
        f.vars["t"].fill = None if fill is None else np.int32(fill)
    ds = shown(tmp_path, files)
    np.testing.assert_array_equal(ds.t, dates("2000-01-04", "NaT", "1998-04-09", "NaT"))
    assert "missing_value" not in json.loads((tmp_path / "out.zarr/t/zarr.json").read_text())["attributes"]


def test_missing_times_of_one_file(tmp_path):
    ds = shown(tmp_path, [counted("a.nc", DAYS, [0, 1], [3, -999], missing_value=np.int32(-999))], "--time-units", "days since 1990-01-01")
    np.testing.assert_array_equal(ds.t, dates("2000-01-04", "NaT"))


def test_a_missing_step_has_no_place(tmp_path):
    files = [F.File(f"{i}.nc", {"time": time([i, -9], u)}) for i, u in enumerate((DAYS, SINCE))]
    for f in files:
        f.vars["time"].attrs["missing_value"] = -9.0
    refused(tmp_path, files, text="time: element 1 is missing, so that its step has no place")


def test_missing_times_are_appended(tmp_path):
    F.write_all([counted("a.nc", DAYS, [0, 1], [3, -999], missing_value=np.int32(-999))], tmp_path / "in")
    stores.convert(tmp_path / "in", tmp_path / "out.zarr").ok()
    F.write_all([counted("b.nc", SINCE, [0, 1], [3, -999], missing_value=np.int32(-999))], tmp_path / "more")
    stores.convert("--verify", "full", "--append", "time", tmp_path / "more", tmp_path / "out.zarr").ok()
    with xr.open_zarr(tmp_path / "out.zarr") as ds:
        np.testing.assert_array_equal(ds.t, dates("2000-01-04", "NaT", "2000-01-06", "NaT"))


def test_missing_times_of_two_dimensions(tmp_path):
    def file(name, units):
        return F.File(name, {"time": time([0], units), "t": var("time x", [[3, -999]], units=units, missing_value=np.int32(-999))})

    ds = shown(tmp_path, [file("a.nc", DAYS), file("b.nc", SINCE)])
    np.testing.assert_array_equal(ds.t, [dates("2000-01-04", "NaT"), dates("2000-01-06", "NaT")])


def test_missing_bounds(tmp_path):
    def file(name, units):
        t = time([1], units)
        t.attrs["bounds"] = "time_bnds"
        return F.File(name, {"time": t, "time_bnds": var("time two", [[0, -999]], "f8", missing_value=-999.0)})

    run(tmp_path, [file("a.nc", DAYS), file("b.nc", SINCE)]).ok()
    with xr.open_zarr(tmp_path / "out.zarr", decode_times=False) as ds:
        np.testing.assert_array_equal(ds.time_bnds, [[0, NAN], [2, NAN]])


def test_missing_values_are_told_apart_whatever_is_asked(tmp_path):
    """The first file's attribute would make data of the second's."""
    files = two({"v": var("time", [1, -1], missing_value=np.int32(-1))}, {"v": var("time", [1, -2], missing_value=np.int32(-2))})
    refused(tmp_path, files, "--attrs", "first", text="v: missing_value is -2, and -1 in ")


# ---- one file hides no other ----


def test_three_types(tmp_path):
    """The second widens the first; the third fits the first, and not both."""
    files = [F.File(f"{i}.nc", {"time": time([i]), "v": var("time", [x], t)}) for i, (x, t) in enumerate(((20, "i2"), (18, "i8"), (1.5, "f8")))]
    refused(tmp_path, files, text="v: its type is float64, and int16 in ")


def test_packed_bounds_of_another_unit(tmp_path):
    """The coordinate is re-based; its bounds are packed, alike in all files."""

    def file(name, units, day):
        t = time([day], units)
        t.attrs["bounds"] = "time_bnds"
        return F.File(name, {"time": t, "time_bnds": packed("time two", [[day, day + 1]], 0.5, units=DAYS)})

    r = run(tmp_path, [file("a.nc", DAYS, 0), file("b.nc", SINCE, 0)])
    assert r.status == 4 and "time" in r.err and "packed times are not counted from another date" in r.err, str(r)


# ---- numbers of another sign ----


def test_unsigned_numbers_of_one_file(tmp_path):
    a = {"o": var("time", [3, 4], "u1", scale_factor=0.5)}
    b = {"o": var("time", [250, 1], "u1", _Unsigned="false")}
    np.testing.assert_array_equal(shown(tmp_path, two(a, b), "--packing", "unpack").o, [1.5, 2, -6, 1])


def test_unsigned_numbers_are_not_widened(tmp_path):
    files = two({"o": var("time", [-6, 1], "i1", _Unsigned="true")}, {"o": var("time", [3, 4], "i2", _Unsigned="true")})
    refused(tmp_path, files, text="o: its type is int16, and int8 in ")


@pytest.mark.parametrize("dtype, sign, stored, want", [("i1", "true", -6, 250), ("u1", "false", 250, -6)])
def test_unsigned_numbers_of_one_file_are_unpacked(dtype, sign, stored, want, tmp_path):
    files = [F.File("a.nc", {"time": time([0]), "o": var("time", [stored], dtype, _Unsigned=sign, scale_factor=0.5)})]
    assert shown(tmp_path, files, "--unpack", "o").o[0] == want / 2


# ---- what a store cannot say ----


def grown(tmp_path, first, more, *options):
    F.write_all([first], tmp_path / "in")
    stores.convert(tmp_path / "in", tmp_path / "out.zarr").ok()
    F.write_all([more], tmp_path / "more")
    return stores.convert("--verify", "none", *options, "--append", "time", tmp_path / "more", tmp_path / "out.zarr")


@pytest.mark.parametrize("dims", ["time", "time x"])
def test_a_store_without_a_fill_value_takes_nothing_missing(dims, tmp_path):
    def file(name, day, data, fill):
        data = data if dims == "time" else [[x] for x in data]
        return F.File(name, {"time": time([day, day + 1]), "v": var(dims, data, fill=fill)})

    r = grown(tmp_path, file("a.nc", 0, [8, 9], None), file("b.nc", 2, [1, -1], -1))
    assert r.status == 1 and "is missing, and the store has no _FillValue that says so" in r.err, str(r)
    r = grown(tmp_path / "present", file("a.nc", 0, [8, 9], None), file("b.nc", 2, [1, 2], -1)).ok()
    with xr.open_zarr(tmp_path / "present/out.zarr") as ds:
        np.testing.assert_array_equal(np.ravel(ds.v), [8, 9, 1, 2])


def test_a_store_without_a_fill_value_has_no_holes(tmp_path):
    a = F.File("a.nc", {"time": time([0, 1]), "v": var("time", [8, 9]), "w": var("time", [1, 2])})
    b = F.File("b.nc", {"time": time([2, 3]), "v": var("time", [8, 9])})
    r = grown(tmp_path, a, b, "--missing", "fill")
    assert r.status == 1 and "w: the store has no _FillValue for it" in r.err, str(r)


def test_holes_of_unpacked_numbers(tmp_path):
    """The first file's fill value is no data, and shown as none."""
    a = {"q": var("time", [48.0, 1.0], "f8", fill=-1e9), "v": var("time", [1, 2])}
    b = {"q": var("time", [80, -1], "i1", fill=-1, scale_factor=0.25, add_offset=8.0), "v": var("time", [1, 2])}
    files = [*two(a, b), F.File("c.nc", {"time": time([4]), "v": var("time", [3])})]
    got = shown(tmp_path, files, "--packing", "unpack", "--missing", "fill").q
    np.testing.assert_array_equal(got, [48, 1, 28, NAN, NAN])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_data_that_equal_an_asked_fill_value(zarr_format, tmp_path):
    a = {"t": var("time", [0.0, 1.0], "f4", fill=-32767)}
    b = {"t": var("time", [23, 7], fill=9999, scale_factor=2.0, add_offset=8.0)}
    options = ("--packing", "unpack", "--zarr-format", str(zarr_format))
    r = run(tmp_path, two(a, b), *options, "--fill-value", "t:0")
    assert r.status == 1 and "t: element 0 is data, but equals the fill value" in r.err, str(r)
    b["t"].data[1] = 9999
    got = shown(tmp_path / "other", two(a, b), *options, "--fill-value", "t:-5").t
    np.testing.assert_array_equal(got, [0, 1, 54, NAN])


@pytest.mark.parametrize("fill", [-1, None])
def test_overlapping_steps_that_are_missing_in_both(fill, tmp_path):
    files = [
        F.File("a.nc", {"time": time([0, 1]), "v": var("time", [5, -1], "f8", fill=-1)}),
        F.File("b.nc", {"time": time([1, 2]), "v": var("time", [NAN, 7], "f8", fill=fill)}),
    ]
    np.testing.assert_array_equal(shown(tmp_path, files).v, [5, NAN, 7])


def test_a_date_that_would_become_the_fill_value(tmp_path):
    r = run(tmp_path, [counted("a.nc", DAYS, [0, 1], [3, 4]), counted("b.nc", SINCE, [0, 1], [5, 6])][::-1])
    r.ok()
    files = [counted("a.nc", DAYS, [0, 1], [3, 4]), counted("b.nc", SINCE, [0, 1], [5, 6])]
    for f, fill in zip(files, (7, -1)):
        f.vars["t"].fill = np.int32(fill)
    r = run(tmp_path / "other", files)
    assert r.status == 1 and "would become the fill value" in r.err, str(r)
