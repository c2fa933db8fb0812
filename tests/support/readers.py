"""Other readers of a store, held against zarr-python."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import tensorstore
import xarray as xr
import zarr

from .store_lint import strict_json


def arrays(store):
    """{path: zarr array} of the whole store."""
    group = zarr.open_group(str(store), mode="r")
    return {name: node for name, node in group.members(max_depth=None) if isinstance(node, zarr.Array)}


def same_bits(a, b):
    a, b = (np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<"), copy=False) for x in (a, b))
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def names_repeat(array):
    """Tensorstore opens no array whose dimension names repeat."""
    names = getattr(array.metadata, "dimension_names", None) or ()
    return len(set(names)) < len(names)


def known_to_tensorstore(array):
    """Whether its codecs are those of the specifications; numcodecs' own and version 2's filters are not."""
    meta = array.metadata
    if meta.zarr_format == 2:
        return meta.filters is None and (
            meta.compressor is None or meta.compressor.codec_id in ("blosc", "zlib", "gzip", "zstd", "bz2")
        )
    codecs = [c for codec in meta.codecs for c in (codec, *getattr(codec, "codecs", ()))]
    return not any(c.to_dict()["name"].startswith("numcodecs.") for c in codecs)


def tensorstore_problem(store, name, version, want):
    spec = {
        "driver": "zarr3" if version == 3 else "zarr",
        "kvstore": {"driver": "file", "path": str(Path(store, name)) + "/"},
    }
    try:
        got = tensorstore.open(spec, open=True, read=True).result().read().result()
    except Exception as e:
        return f"tensorstore: {name}: {str(e)[:300]}"
    return None if same_bits(np.asarray(got), want) else f"tensorstore: {name}: values differ"


def through_xarray(store, names, found):
    """{name: values} as xarray has them, undecoded; what it cannot open goes to FOUND."""
    groups, values = {}, {}
    for name in names:
        groups.setdefault(name.rpartition("/")[0], []).append(name)
    for group, members in groups.items():
        try:
            ds = xr.open_zarr(str(store), group=group or None, chunks=None, decode_cf=False)
            values.update({name: ds.variables[name.rpartition("/")[2]].values for name in members})
        except Exception as e:
            found.append(f"xarray: group {group or '/'}: {type(e).__name__}: {str(e)[:300]}")
    return values


def disagreements(store, xarray=True, kept=False):
    """Numeric arrays through xarray (which reads with zarr-python) and tensorstore, bit for bit.

    Without XARRAY, for files that xarray cannot show, zarr-python stands in its place.  With
    KEPT codecs, those that came from the file, tensorstore is asked where it knows them.
    """
    version, found = 3 if Path(store, "zarr.json").exists() else 2, []
    numeric = {name: a for name, a in arrays(store).items() if a.dtype.kind in "iuf"}
    values = (
        through_xarray(store, numeric, found) if xarray else {name: np.asarray(a[...]) for name, a in numeric.items()}
    )
    for name, array in numeric.items():
        if name in values and not names_repeat(array) and (not kept or known_to_tensorstore(array)):
            # xarray shows `dtype: "bool"` as what it says, always.
            found.append(tensorstore_problem(store, name, version, values[name].astype(array.dtype)))
    return [f for f in found if f]


def flatten(values):
    return [x for v in values for x in flatten(v)] if isinstance(values, list) else [values]


def have_gdal():
    return shutil.which("gdalmdiminfo") is not None


def gdal_disagreements(store):
    """Numeric arrays of a version 2 store of at most 5000 elements, as gdalmdiminfo prints them."""
    found = []
    for name, array in arrays(store).items():
        if array.dtype.kind not in "iuf" or array.dtype == np.float16 or not 0 < array.size <= 5000 or not array.ndim:
            continue
        done = subprocess.run(
            ["gdalmdiminfo", "-detailed", "-array", f"/{name}", f'ZARR:"{store}"'], capture_output=True
        )
        try:
            got = flatten(json.loads(done.stdout.decode("utf-8", "replace"))["values"])
        except (ValueError, KeyError) as e:
            found.append(f"gdal: {name}: {type(e).__name__} {e}: {done.stderr.decode('utf-8', 'replace')[:200]}")
            continue
        want = np.asarray(array[...])
        if not np.array_equal(
            np.array(got, want.dtype if want.dtype.kind in "iu" else "f8").astype(want.dtype),
            want.ravel(),
            equal_nan=want.dtype.kind == "f",
        ):
            found.append(f"gdal: {name}: values differ")
    return found


def zarr_json(store, name=""):
    return strict_json(Path(store, name, "zarr.json"))
