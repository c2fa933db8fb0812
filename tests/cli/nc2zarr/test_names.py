"""Which variable a name on the command line means, and which names a store can have."""
import netCDF4
import numpy as np
import pytest
import zarr

from support import tool

NAMES = ["a:b", "a*b", "a=b", "a,b", "a[1]", "a?b", "plain"]


@pytest.fixture
def odd(tmp_path):
    path = tmp_path / "odd.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 3)
        for i, name in enumerate(NAMES):
            ds.createVariable(name, "f4", ("x",))[:] = i
    return path


@pytest.fixture
def tree(tmp_path):
    path = tmp_path / "tree.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 3)
        ds.createVariable("x", "f8", ("x",))[:] = [1, 2, 3]
        ds.createVariable("tas", "f4", ("x",))[:] = 0
        forecast = ds.createGroup("forecast")
        forecast.createVariable("tas", "f4", ("x",))[:] = 1
        deep = forecast.createGroup("deep").createVariable("q", "f4", ("x",))
        deep[:] = 2
        deep.coordinates = "x"
        ds.createGroup("empty")
    return path


def arrays(out):
    return {path: array for path, array in zarr.open(str(out)).members(max_depth=None) if isinstance(array, zarr.Array)}


@pytest.mark.parametrize("pattern, want", [
    (r"a\:b", ["a:b"]), (r"a\*b", ["a*b"]), (r"a\=b", ["a=b"]), (r"a\,b", ["a,b"]), ("a[1]", ["a[1]"]),
    ("a*b", ["a*b", "a,b", "a:b", "a=b", "a?b"]), ("a[1],plain", ["a[1]", "plain"]), ("p*,a[[]1]", ["a[1]", "plain"]),
])
def test_a_name_or_a_glob(odd, out, pattern, want):
    tool.nc2zarr("--variable", pattern, odd, out).ok()
    assert sorted(arrays(out)) == want


@pytest.mark.parametrize("names", ["", "plain,", ",plain", "plain,,plain"])
def test_an_empty_name_is_refused(odd, out, names):
    tool.nc2zarr("--variable", names, odd, out).fails(2, "an empty name")


def test_escapes_of_a_renamed_variable_are_undone_once(tmp_path, out):
    path = tmp_path / "backslash.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 3)
        for i, name in enumerate(["one", r"a\:b", "two"]):
            ds.createVariable(name, "f4", ("x",))[:] = i
    tool.nc2zarr("--rename", r"a\\:b=new", path, out).ok()
    assert sorted(arrays(out)) == ["new", "one", "two"] and np.all(arrays(out)["new"][:] == 1)


@pytest.mark.parametrize("rename, words", [
    ("tas=forecast", "below forecast, which is an array"), ("x=tas/y", "tas/y would lie below tas"),
    ("forecast/tas=deep", "below forecast/deep, which is an array"), ("tas=empty", "a group is named empty"),
    ("tas=forecast/tas", "two variables would be named forecast/tas"), ("tas=a/", "an empty name"), ("tas=/a", "an empty name"),
    ("tas=a//b", "an empty name"),
])
@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=["made", "planned"])
def test_a_place_that_is_taken(tree, out, rename, words, options):
    tool.nc2zarr("--rename", rename, *options, tree, out).fails(2, words)
    assert not out.exists()


@pytest.mark.parametrize("rename, want", [
    ("tas=new/group/tas", {"x", "new/group/tas", "forecast/tas", "forecast/deep/q"}),
    ("forecast/deep/q=r", {"x", "tas", "forecast/tas", "forecast/deep/r"}),
    ("tas=empty/tas", {"x", "empty/tas", "forecast/tas", "forecast/deep/q"}),
])
def test_rename_into_a_group(tree, out, rename, want):
    tool.nc2zarr("--rename", rename, tree, out).ok()
    assert set(arrays(out)) == want


def test_coordinates_of_parent_groups_come_along(tree, out):
    tool.nc2zarr("--variable", "forecast/deep/q", tree, out).ok()
    assert set(arrays(out)) == {"x", "forecast/deep/q"}


def test_a_dimension_like_a_keyword(tree, out):
    """Only "auto", "auto:SIZE" and "source" themselves are keywords."""
    for option, value in (("--chunks", "automatic=4"), ("--chunks", "sources=4"), ("--shards", "nonesuch=4")):
        tool.nc2zarr(option, value, tree, out).fails(2, option, "no chosen variable has a dimension")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_groups_that_differ_by_case_alone_are_all_listed(tmp_path, zarr_format):
    """zarr-python takes each run of entries of a group for all of it, so the runs must not mix."""
    with netCDF4.Dataset(tmp_path / "case.nc", "w") as ds:
        for group, names in (("A", "xz"), ("a", "y")):
            made = ds.createGroup(group)
            made.createDimension("n", 3)
            for name in names:
                made.createVariable(name, "f4", ("n",))[:] = 1
    tool.run("nc2zarr", "--zarr-format", zarr_format, tmp_path / "case.nc", tmp_path / "case.zarr").ok()
    root = zarr.open_consolidated(tmp_path / "case.zarr", zarr_format=zarr_format)
    assert {k: sorted(g.array_keys()) for k, g in root.groups()} == {"A": ["x", "z"], "a": ["y"]}


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
def test_attributes_whose_names_are_not_utf8(form, tmp_path, out):
    """netCDF-C counts such attributes of a classic file, and does not find them by their names."""
    path = tmp_path / "latin.nc"
    values = {"aQ": np.array([1.5, -2.5]), "bQ": np.array([1, -2, 3], "i1"), "cQ": np.int16(-7), "units": "K", "Qd": "some text"}
    if form == "NETCDF3_64BIT_DATA":
        values |= {"eQ": np.array([2**63 + 1], "u8"), "fQ": np.array([7, 60000], "u2")}
    with netCDF4.Dataset(path, "w", format=form) as ds:
        ds.createDimension("x", 3)
        for owner in (ds, ds.createVariable("first", "f4", ("x",)), ds.createVariable("last", "i2", ("x",))):
            owner.setncatts(values)
        for v in ds.variables.values():
            v[:] = [1, 2, 3]
    path.write_bytes(path.read_bytes().replace(b"Q", b"\xb5"))
    r = tool.nc2zarr("--verify", "full", path, out).ok()
    assert "attribute a\ufffd: text that is not UTF-8 becomes U+FFFD" in r.err
    want = {k.replace("Q", "\ufffd"): np.asarray(v).tolist() for k, v in values.items()}
    want = {k: v[0] if isinstance(v, list) and len(v) == 1 else v for k, v in want.items()}
    got = zarr.open(str(out))
    for owner in (got, got["first"], got["last"]):
        assert {k: v for k, v in owner.attrs.items() if k != "_FillValue"} == want
