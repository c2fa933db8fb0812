"""HDF5's own types: booleans and enumerations become arrays, all others are refused by name."""

import json

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

from support import tool

COLOURS = h5py.enum_dtype({"RED": 0, "DARK GREEN": 1, "BLUE": -42}, basetype="<i2")
WIDE = h5py.enum_dtype({"NONE": 0, "ALL": 2**62 + 1}, basetype="<u8")
BIG = h5py.enum_dtype({"A": 1, "B": 300}, basetype=">u4")
OTHERS = {
    "sequences": (h5py.vlen_dtype("<i4"), "length"),  # "of variable length", or by netCDF-C 4.9.3 "variable-length type"
    "pairs": (np.dtype([("x", "<i4"), ("y", "<f8")]), "compound"),
    "complex": (np.dtype("<c16"), "compound"),
    "references": (h5py.ref_dtype, "references"),
    "opaque": (np.dtype("V3"), "opaque"),
    "arrays": (np.dtype(("<i4", (2,))), "array"),
}
LAYOUTS = {
    "contiguous": {},
    "chunked": dict(chunks=(4, 5), maxshape=(None, 9)),
    "deflated": dict(chunks=(4, 5), compression="gzip", shuffle=True, fletcher32=True),
}


def values(dtype):
    rng = np.random.default_rng(3)
    if dtype == np.dtype(bool):
        return rng.random((7, 9)) < 0.5
    members = list(h5py.check_enum_dtype(dtype).values())
    return rng.choice(np.array(members, dtype.base), (7, 9))


@pytest.mark.parametrize("zarr_format", ["2", "3"])
@pytest.mark.parametrize("user_block", [0, 512])
def test_booleans_and_enumerations(tmp_path, out, user_block, zarr_format):
    path, made = tmp_path / "types.h5", {}
    with h5py.File(path, "w", userblock_size=user_block) as f:
        f["y"] = np.arange(7.0)
        f["y"].make_scale("y")
        for group in ("", "deeper/"):
            for layout, how in LAYOUTS.items():
                for name, dtype in {"bool": np.dtype(bool), "colours": COLOURS, "wide": WIDE, "big": BIG}.items():
                    key = f"{group}{layout}_{name}"
                    made[key] = values(dtype)
                    v = f.create_dataset(key, data=made[key], dtype=dtype, **how)
                    v.attrs["units"] = "1"
                    v.attrs["limits"] = np.array([0.5, 1.5], "f4")
                    v.attrs["count"] = np.int64(2**62 + 1)
                    v.dims[0].attach_scale(f["y"])
        f.create_dataset("unwritten", (3, 4), dtype=bool)
        f.create_dataset("one", data=np.True_)
        f.create_dataset("own", data=np.array([1, 0], "<i2"), dtype=COLOURS).attrs["flag_values"] = np.array([5], "<i2")
    made |= {"unwritten": np.zeros((3, 4), bool), "one": np.True_, "own": np.array([1, 0], "<i2")}
    options = ["--zarr-format", zarr_format]
    done = tool.nc2zarr("--verify", "full", *options, path, out)
    if "netCDF-C knows no dimension" in done.err:
        pytest.skip("netCDF-C 4.9.3 loses dimensions that have no scale where another one has")
    done.ok()
    assert all("GDAL takes for NoData" in warning for warning in done.warnings), str(done)
    store = zarr.open_group(str(out), mode="r")
    for key, want in made.items():
        got = store[key]
        assert got.dtype == (bool if want.dtype == bool else want.dtype.newbyteorder("=")), key
        np.testing.assert_array_equal(got[...], want, err_msg=key)
        if "_" not in key:
            continue
        attrs = dict(got.attrs)
        dims = attrs.pop("_ARRAY_DIMENSIONS", None) or list(got.metadata.dimension_names)
        assert dims[0] == "y" and dims[1] != "y", key
        assert (attrs.pop("units"), attrs.pop("limits"), attrs.pop("count")) == ("1", [0.5, 1.5], 2**62 + 1)
        if "bool" in key:
            assert attrs == {}
    assert store["chunked_colours"].attrs["flag_values"] == [-42, 0, 1] or sorted(
        zip(store["chunked_colours"].attrs["flag_values"], store["chunked_colours"].attrs["flag_meanings"].split())
    ) == [(-42, "BLUE"), (0, "RED"), (1, "DARK_GREEN")]
    assert dict(zip(store["deflated_wide"].attrs["flag_meanings"].split(), store["deflated_wide"].attrs["flag_values"])) == {
        "NONE": 0, "ALL": 2**62 + 1,
    }
    assert store["own"].attrs["flag_values"] == 5 and "flag_meanings" not in store["own"].attrs
    tool.nc2zarr("--check", *options, path, out).ok()
    with xr.open_zarr(out) as ds:
        assert ds.contiguous_bool.dtype == bool


@pytest.mark.parametrize("name", OTHERS)
def test_other_types_are_refused_by_name(tmp_path, out, name):
    dtype, word = OTHERS[name]
    path, certificate = tmp_path / "types.h5", tmp_path / "certificate.json"
    with h5py.File(path, "w") as f:
        f["kept"] = np.arange(4.0)
        f.create_dataset(f"deeper/{name}", (2,), dtype=dtype)
    tool.nc2zarr("-q", path, out).fails(1, f"variable deeper/{name}", word, "--skip-unsupported")
    assert not out.exists()
    tool.nc2zarr("--exclude", f"deeper/{name}", path, tmp_path / "without.zarr").ok()
    options = ["--skip-unsupported", "--verify", "full", "--certificate", certificate]
    document = tool.nc2zarr("--json", *options, path, out).json()
    assert [text.split(":")[0] for text in document["skipped"]] == [f"deeper/{name}"]
    assert f"deeper/{name}" in json.dumps(json.loads(certificate.read_text()))
    assert list(zarr.open_group(str(out), mode="r").array_keys()) == ["kept"]
    for other in (("chunkcalc", path), ("rechunk", "--digest", path)):
        tool.run(*other)  # must not crash over what it cannot read


def test_an_attribute_of_two_dimensions_refuses_its_variable_alone(tmp_path, out):
    """As MATLAB writes for a matrix; netCDF-C does not even tell such a variable's type."""
    path = tmp_path / "matrix.h5"
    with h5py.File(path, "w") as f:
        for name in ("first", "second", "third"):
            f.create_dataset(f"deeper/{name}", data=np.arange(4.0)).attrs["units"] = "1"
        f["deeper/second"].attrs["scale"] = np.array([[2.5]])
    tool.nc2zarr("-q", path, out).fails(1, "variable deeper/second: an attribute of more than one dimension", "--skip-unsupported")
    for option in (["--skip-unsupported"], ["--exclude", "deeper/second"]):
        tool.nc2zarr("--overwrite", *option, path, out).ok()
        got = zarr.open_group(str(out), mode="r")["deeper"]
        assert sorted(got.array_keys()) == ["first", "third"] and (got["third"][...] == np.arange(4)).all() and got["third"].attrs["units"] == "1"


@pytest.mark.parametrize("files", [1, 2])
def test_attributes_of_two_dimensions_of_groups(tmp_path, out, files):
    """Of which netCDF-C reads none of the group: all are read, a matrix as nested lists."""
    attrs = {"matrix": np.arange(6.0).reshape(2, 3), "words": np.array([["a", "bc"]], object), "one": np.array([[7]], "i2"),
             "nothing": np.zeros((0, 2), "f4"), "title": "x", "plain": np.array([1, 2], "u1")}  # fmt: skip
    for i in range(files):
        with h5py.File(tmp_path / f"{i}.nc", "w") as f:
            time = f.create_dataset("time", data=np.arange(3.0) + 3 * i)
            time.attrs["units"] = "days since 2000-01-01"
            time.make_scale("time")
            f.create_dataset("v", data=np.arange(3, dtype="f4") + i).dims[0].attach_scale(time)
            f.create_group("deeper").create_dataset("w", data=np.arange(4.0))
            for group in (f, f["deeper"]):
                group.attrs.update(attrs)
    tool.nc2zarr("--verify", "full", *(tmp_path / f"{i}.nc" for i in range(files)), out).ok()
    root = zarr.open_group(str(out), mode="r")
    assert (root["v"][...] == np.concatenate([np.arange(3) + i for i in range(files)])).all()
    for group in (root, root["deeper"]):
        assert dict(group.attrs) == {"matrix": [[0, 1, 2], [3, 4, 5]], "words": [["a", "bc"]], "one": 7, "nothing": [], "title": "x",
                                     "plain": [1, 2]}  # fmt: skip
    tool.nc2zarr("--check", *(tmp_path / f"{i}.nc" for i in range(files)), out).ok()
