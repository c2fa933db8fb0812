"""Does a Zarr store hold exactly what a NetCDF file holds?

The file is read with netCDF4-python (h5py where netCDF lacks a filter), the
store's metadata as JSON and its values with zarr-python, the decoded view with
xarray; nothing of this project takes part.  `differences` returns sentences.
"""

import base64
import math
import struct
from pathlib import Path

import h5py
import hdf5plugin  # noqa: F401
import netCDF4
import numpy as np
import xarray as xr
import zarr

from .store_lint import same, strict_json

NETCDF_OWN = {
    "_NCProperties",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
}


def to_json(value):
    """An attribute as JSON: one number a number, several a list, floats stay floats."""
    if isinstance(value, (bytes, str)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return text.replace("\0", "")
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return to_json(value[0]) if len(value) == 1 else [to_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def is_user_type(value):
    dtype = getattr(value, "dtype", None)
    return dtype is not None and (dtype.names is not None or dtype.kind == "V")


def is_text(var):
    return var.dtype is str or np.dtype(var.dtype).kind == "S"


def convertible(var):
    return var.dtype is str or not isinstance(var.datatype, (netCDF4.VLType, netCDF4.CompoundType))


def stored_fill(var):
    """The `_FillValue` attribute in the variable's type, or None: an integer cannot be NaN."""
    if "_FillValue" not in var.ncattrs():
        return None
    fill, kind = np.asarray(var.getncattr("_FillValue")), np.dtype(var.dtype).kind
    return None if kind in "iu" and fill.dtype.kind == "f" and not np.isfinite(fill) else fill.astype(var.dtype)


def number(x, as_attribute=False):
    """A fill value as Zarr writes it; xarray wants a float's attribute as base64 of a double."""
    x = np.asarray(x).reshape(())
    if x.dtype.kind != "f":
        return x.item()
    if as_attribute:
        return base64.b64encode(struct.pack("<d", x.item())).decode()
    return x.item()


def same_number(got, x):
    """Whether GOT, from JSON, stands for X."""
    want = number(x)
    if not isinstance(want, float):
        return isinstance(got, int) and not isinstance(got, bool) and got == want
    if isinstance(got, str):
        names = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
        if got in names:
            return np.array_equal(names[got], want, equal_nan=True)
        size = x.dtype.itemsize
        return got.startswith("0x") and int(got, 16) == int(np.asarray(x).reshape(1).view(f"u{size}")[0])
    if not isinstance(got, (int, float)) or not math.isfinite(want):
        return False
    return x.dtype.type(got) == x and math.copysign(1, got) == math.copysign(1, want)


class Comparison:
    def __init__(self, path, store, rename=None, values=True):
        self.compare_values = values
        self.path, self.store, self.rename = str(path), Path(store), rename or {}
        self.version = 3 if (self.store / "zarr.json").exists() else 2
        self.problems = []
        self.hdf5 = None

    def say(self, where, what):
        self.problems.append(f"{where or '/'}: {what}")

    # ---- metadata ----

    def node(self, where):
        """(metadata, attributes) of a node, or None."""
        folder = self.store / where.lstrip("/")
        if self.version == 3:
            try:
                meta = strict_json(folder / "zarr.json")
            except FileNotFoundError:
                return None
            return meta, meta.get("attributes", {})
        for key in (".zgroup", ".zarray"):
            if (folder / key).exists():
                attrs = folder / ".zattrs"
                return strict_json(folder / key), strict_json(attrs) if attrs.exists() else {}
        return None

    def expected_attrs(self, nc, integer):
        want = {}
        for name in nc.ncattrs():
            if name in NETCDF_OWN or name == "_FillValue":
                continue
            value = nc.getncattr(name)
            if is_user_type(value):
                continue
            value = to_json(value)
            if not (integer and name == "missing_value" and value == "NaN"):
                want[name] = value
        return want

    def attrs(self, where, nc, got, var=None):
        want = self.expected_attrs(nc, var is not None and not is_text(var) and np.dtype(var.dtype).kind in "iu")
        if (
            var is not None
            and isinstance(var.datatype, netCDF4.EnumType)
            and not {"flag_values", "flag_meanings"} & set(want)
        ):
            members = var.datatype.enum_dict
            want["flag_values"] = list(members.values()) if len(members) > 1 else next(iter(members.values()))
            want["flag_meanings"] = " ".join("_".join(m.split()) for m in members)  # CF: one word for each value
        if var is not None and var.dtype is str and "_FillValue" in var.ncattrs():
            want.setdefault("missing_value", var.getncattr("_FillValue"))  # by which xarray masks a store's strings
        got = {k: v for k, v in got.items() if k not in ("_ARRAY_DIMENSIONS", "_FillValue")}
        for name in want:
            if name not in got:
                self.say(where, f"attribute {name} is missing")
            elif not same(
                to_json(got[name]) if isinstance(got[name], list) and len(got[name]) == 1 else got[name], want[name]
            ):
                self.say(where, f"attribute {name}: {want[name]!r:.200} became {got[name]!r:.200}")
        for name in set(got) - set(want):
            self.say(where, f"attribute {name} appeared from nowhere")
        if set(got) == set(want) and list(got) != list(want):
            self.say(where, f"order of attributes: {list(want)} became {list(got)}")

    def fill(self, where, var, meta, attrs):
        own = None if is_text(var) else stored_fill(var)
        if self.version == 2:
            got = meta["fill_value"]
            if is_text(var):
                if ("_FillValue" in var.ncattrs()) != (got is not None):
                    self.say(where, f"fill_value is {got!r}, the file's attributes are {var.ncattrs()}")
            elif own is None and got is not None or own is not None and not same_number(got, own):
                self.say(where, f"fill_value is {got!r}, the file's _FillValue is {own!r}")
            return
        attribute = attrs.get("_FillValue")
        if own is None:
            if attribute is not None:
                self.say(where, f"_FillValue {attribute!r} appeared from nowhere")
        elif not same(attribute, number(own, as_attribute=True)):
            self.say(where, f"_FillValue {own!r} became {attribute!r}")
        dataset = self.dataset(where)  # HDF5's own fill value may be another than the attribute
        if (
            own is not None
            and (dataset is None or np.array_equal(dataset.fillvalue, own, equal_nan=True))
            and not same_number(meta["fill_value"], own)
        ):
            self.say(where, f"fill_value is {meta['fill_value']!r}, the file's _FillValue is {own!r}")

    def dataset(self, where):
        """The HDF5 dataset of a variable, or None.  netCDF hides a name that a dimension has taken."""
        if self.hdf5 is None:
            return None
        group, name = where.rsplit("/", 1)
        for key in (f"{group}/_nc4_non_coord_{name}", where):
            if key in self.hdf5:
                return self.hdf5[key]
        return None

    # ---- values ----

    def values(self, where, var):
        """All elements.  Where a variable is shorter than its unlimited dimensions, netCDF-C 4.9 and
        4.10 read nonsense, and HDF5 says what is there."""
        there = self.dataset(where)
        if there is not None and var.ndim and there.shape != var.shape and var.dtype is not str:
            want = np.full(var.shape, there.fillvalue, there.dtype)
            want[tuple(slice(n) for n in there.shape)] = there[...]
            return want
        try:
            return np.asarray(var[...])
        except RuntimeError:
            return np.asarray(there[...])

    def data(self, where, var, array):
        want, got = self.values(where, var), np.asarray(array[...])
        if want.shape != got.shape:
            return self.say(where, f"shape {want.shape} became {got.shape}")
        if var.dtype is str:
            w = [str(x) for x in np.ravel(want)]
            g = [x.decode() if isinstance(x, bytes) else str(x) for x in np.ravel(got)]
            if w != g:
                bad = [i for i, (a, b) in enumerate(zip(w, g)) if a != b]
                self.say(where, f"{len(bad)} strings differ, first {w[bad[0]]!r:.60} became {g[bad[0]]!r:.60}")
            return
        little = want.dtype.newbyteorder("<")
        if want.dtype.kind == "S":
            little = np.dtype("S1")
        if got.dtype.newbyteorder("<") != little:
            return self.say(where, f"type {want.dtype} became {got.dtype}")
        w, g = (np.ascontiguousarray(a.astype(little, copy=False)).tobytes() for a in (want, got))
        if w != g:
            size = little.itemsize
            bad = np.flatnonzero(np.frombuffer(w, f"V{size}") != np.frombuffer(g, f"V{size}"))
            self.say(
                where,
                f"{bad.size} of {want.size} elements differ, first at {np.unravel_index(bad[0], want.shape)}: "
                f"{want.ravel()[bad[0]]!r} became {got.ravel()[bad[0]]!r}",
            )

    def dimensions(self, where, var, meta, attrs):
        got = meta.get("dimension_names") if self.version == 3 else attrs.get("_ARRAY_DIMENSIONS")
        if got != list(var.dimensions):
            self.say(where, f"dimensions {var.dimensions} became {got}")

    def variable(self, where, var, group, key):
        var.set_auto_maskandscale(False)
        var.set_auto_chartostring(False)
        node = self.node(where.rsplit("/", 1)[0] + "/" + key)
        if node is None:
            return self.say(where, "variable is missing")
        meta, attrs = node
        self.dimensions(where, var, meta, attrs)
        self.attrs(where, var, attrs, var)
        self.fill(where, var, meta, attrs)
        if self.compare_values:
            self.data(where, var, group[key])

    def group(self, where, nc):
        node = self.node(where)
        if node is None:
            return self.say(where, "group is missing")
        self.attrs(where, nc, node[1])
        group = zarr.open_group(str(self.store / where.lstrip("/")), mode="r", use_consolidated=False)
        expected = set(nc.groups)
        for name, var in nc.variables.items():
            if convertible(var):
                key = self.rename.get(f"{where}/{name}".lstrip("/"), name)
                expected.add(key)
                self.variable(f"{where}/{name}", var, group, key)
        folder = self.store / where.lstrip("/")
        for name in sorted({p.name for p in folder.iterdir() if p.is_dir()} - expected):
            self.say(where, f"{name} appeared from nowhere")
        for name, sub in nc.groups.items():
            self.group(f"{where}/{name}", sub)

    def run(self):
        with netCDF4.Dataset(self.path) as nc:
            try:
                self.hdf5 = h5py.File(self.path, "r")
            except OSError:
                self.hdf5 = None
            try:
                self.group("", nc)
            finally:
                if self.hdf5 is not None:
                    self.hdf5.close()
        return self.problems


def same_decoded(a, b):
    if a.shape != b.shape:
        return False
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        if a.dtype == b.dtype:
            return np.array_equal(a, b, equal_nan=True)
        # A float32 scale factor is a double in JSON, so the product may be one too.
        scale = 3e-6 * np.nanmax(np.abs(a), initial=0)
        return np.allclose(a, b, rtol=1e-6, atol=scale, equal_nan=True)
    if a.dtype.kind in "mM":
        return a.dtype.kind == b.dtype.kind and np.array_equal(a, b.astype(a.dtype), equal_nan=True)
    return [str(x) for x in np.ravel(a)] == [str(x) for x in np.ravel(b)]


def not_shown_alike(path, store):
    """Variables that are left out, and text with a fill value: no Zarr 3 attribute can carry that one."""
    version3 = Path(store, "zarr.json").exists()
    with netCDF4.Dataset(str(path)) as nc:
        return {
            n
            for n, v in nc.variables.items()
            if not convertible(v) or version3 and is_text(v) and "_FillValue" in v.ncattrs()
        }


def decoded_differences(path, store):
    """Compares the root group as xarray shows it, file against store."""
    try:
        want = xr.open_dataset(path, engine="netcdf4", decode_timedelta=True)
        want = want.drop_vars(not_shown_alike(path, store) & set(want.variables)).load()
    except Exception:
        return []  # xarray cannot show this file to anyone
    try:
        got = xr.open_zarr(str(store), chunks=None, decode_timedelta=True).load()
    except Exception as e:
        return [f"xarray cannot open the store: {type(e).__name__}: {e}"]
    got = got.drop_vars(set(got.variables) & not_shown_alike(path, store))
    problems = []
    if set(want.variables) != set(got.variables):
        problems.append(f"decoded: variables {sorted(want.variables)} became {sorted(got.variables)}")
    if set(want.coords) != set(got.coords):
        problems.append(f"decoded: coordinates {sorted(want.coords)} became {sorted(got.coords)}")
    for name in set(want.variables) & set(got.variables):
        if want[name].dims != got[name].dims or not same_decoded(want[name].values, got[name].values):
            problems.append(f"decoded: {name} differs")
    return problems


def differences(path, store, rename=None, values=True, decoded=True):
    problems = Comparison(path, store, rename, values).run()
    if decoded and not rename:
        problems += decoded_differences(path, store)
    return problems
