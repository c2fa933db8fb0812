"""The checkers themselves: a right store passes, and each single fault is found."""

import json
import shutil

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from support import nc_equals_zarr, readers, store_lint


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A file and two stores of it, written by xarray and mended to hold what the file holds."""
    folder = tmp_path_factory.mktemp("checkers")
    path = folder / "source.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.setncatts({"title": "a test", "count": np.int32(3)})
        ds.createDimension("y", 4)
        ds.createDimension("x", 6)
        y = ds.createVariable("y", "f8", ("y",))
        y.units = "degrees_north"
        y[:] = np.arange(4)
        v = ds.createVariable("v", "f4", ("y", "x"), fill_value=-9)
        v.setncatts({"units": "K", "scale": np.float32(2.0), "flags": np.array([1, 2], "i2")})
        v[:] = np.arange(24).reshape(4, 6)
        i = ds.createVariable("i", "i2", ("x",))
        i[:] = np.arange(6)
    for version in (2, 3):
        build(path, folder / f"v{version}", version)
    return folder


def build(path, store, version):
    """The correct result of a conversion, by zarr-python."""
    with netCDF4.Dataset(path) as nc:
        nc.set_auto_maskandscale(False)
        root = zarr.open_group(str(store), mode="w", zarr_format=version)
        root.attrs.update({n: nc_equals_zarr.to_json(nc.getncattr(n)) for n in nc.ncattrs()})
        for name, var in nc.variables.items():
            fill = nc_equals_zarr.stored_fill(var)
            attrs = {n: nc_equals_zarr.to_json(var.getncattr(n)) for n in var.ncattrs() if n != "_FillValue"}
            if version == 2:
                attrs["_ARRAY_DIMENSIONS"] = list(var.dimensions)
            elif fill is not None:
                attrs["_FillValue"] = nc_equals_zarr.number(fill, as_attribute=True)
            value = (
                fill
                if fill is not None
                else None if version == 2 else var.dtype.type(netCDF4.default_fillvals[var.dtype.str[1:]])
            )
            kw = dict(dimension_names=var.dimensions) if version == 3 else {}
            a = root.create_array(
                name,
                shape=var.shape,
                chunks=tuple(min(3, n) for n in var.shape),
                dtype=var.dtype,
                fill_value=value,
                attributes=attrs,
                **kw,
            )
            a[...] = var[...]
    zarr.consolidate_metadata(str(store), zarr_format=version)


def edit(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def edit_node(store, name, change):
    """Changes a node and its copy in the consolidated metadata alike."""
    edit(store / name / "zarr.json", change)
    edit(store / "zarr.json", lambda root: change(root["consolidated_metadata"]["metadata"][name]))


def attributes(node):
    return node["attributes"]


def one_element(store):
    zarr.open_group(str(store), mode="r+")["v"][2, 3] += 1


FAULTS = {
    "one element": (one_element, "elements differ"),
    "a lost chunk": (lambda s: (s / "v/c/1/1").unlink(), "elements differ"),
    "int for float": (lambda s: edit_node(s, "v", lambda n: attributes(n).update(scale=2)), "attribute scale"),
    "float for int": (lambda s: edit_node(s, "v", lambda n: attributes(n).update(flags=[1.0, 2])), "attribute flags"),
    "lost attribute": (lambda s: edit_node(s, "v", lambda n: attributes(n).pop("units")), "units is missing"),
    "new attribute": (lambda s: edit_node(s, "v", lambda n: attributes(n).update(new=1)), "from nowhere"),
    "order": (
        lambda s: edit_node(s, "v", lambda n: attributes(n).update(units=attributes(n).pop("units"))),
        "order of attributes",
    ),
    "lost fill": (lambda s: edit_node(s, "v", lambda n: attributes(n).pop("_FillValue")), "_FillValue"),
    "plain fill": (lambda s: edit_node(s, "v", lambda n: attributes(n).update(_FillValue=-9.0)), "_FillValue"),
    "other fill": (lambda s: edit_node(s, "v", lambda n: n.update(fill_value=0.0)), "fill_value"),
    "dimension": (lambda s: edit_node(s, "v", lambda n: n.update(dimension_names=["y", "z"])), "dimensions"),
    "lost variable": (lambda s: shutil.rmtree(s / "i"), "variable is missing"),
    "stray variable": (lambda s: shutil.copytree(s / "i", s / "j"), "j appeared from nowhere"),
    "bare NaN": (lambda s: edit(s / "v/zarr.json", lambda n: attributes(n).update(x=float("nan"))), "is not JSON"),
    "stale copy": (
        lambda s: edit(s / "v/zarr.json", lambda n: attributes(n).update(units="C")),
        "differs from the node's own",
    ),
    "stray file": (lambda s: (s / "v/c/9").mkdir() or (s / "v/c/9/0").write_bytes(b""), "is no chunk"),
    "temporary": (lambda s: (s / "v/c/0/.0.tmp").write_bytes(b""), "is no chunk"),
    "implicit group": (lambda s: (s / "g/h").mkdir(parents=True), "belongs to no node"),
    "no consolidated": (lambda s: edit(s / "zarr.json", lambda n: n.pop("consolidated_metadata")), "no consolidated"),
}


@pytest.mark.parametrize("version", [2, 3])
def test_right_store_passes(source, version):
    store = source / f"v{version}"
    assert nc_equals_zarr.differences(source / "source.nc", store) == []
    assert store_lint.lint(store) == []
    assert readers.disagreements(store) == []


@pytest.mark.every
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found(source, fault, tmp_path):
    apply, said = FAULTS[fault]
    store = tmp_path / "broken.zarr"
    shutil.copytree(source / "v3", store)
    apply(store)
    found = store_lint.lint(store)
    if not any("is not JSON" in f for f in found):
        found += nc_equals_zarr.differences(source / "source.nc", store)
    assert any(said in f for f in found), found


def test_v2_zero_fill_is_found(source, tmp_path):
    store = tmp_path / "broken.zarr"
    shutil.copytree(source / "v2", store)
    edit(store / "i/.zarray", lambda n: n.update(fill_value=0))
    edit(store / ".zmetadata", lambda n: n["metadata"]["i/.zarray"].update(fill_value=0))
    found = nc_equals_zarr.differences(source / "source.nc", store)
    assert any("fill_value is 0" in f for f in found) and any("decoded: i differs" in f for f in found), found


def test_readers_are_asked(source, tmp_path, monkeypatch):
    """A store that only one of them reads differently, or cannot open, is reported."""
    store = tmp_path / "broken.zarr"
    shutil.copytree(source / "v3", store)
    real = readers.through_xarray
    monkeypatch.setattr(readers, "through_xarray", lambda *a: {k: v + 1 for k, v in real(*a).items()})
    assert sorted(readers.disagreements(store)) == [f"tensorstore: {n}: values differ" for n in ("i", "v", "y")]
    monkeypatch.undo()
    edit_node(store, "v", lambda n: n.pop("dimension_names"))
    assert any(f.startswith("xarray: group /: KeyError") for f in readers.disagreements(store))


def test_xarray_sees_the_stores(source):
    for version in (2, 3):
        with xr.open_zarr(str(source / f"v{version}"), chunks=None) as ds:
            assert ds.v.dims == ("y", "x") and ds.v.encoding["_FillValue"] == -9
