#!/usr/bin/env python3
"""Makes rectilinear.zip and rectilinear.json beside it: arrays of zarr-python 3.4 or later whose chunks differ in length.

    make_rectilinear.py          (with zarr 3.4; any run of one version gives the same bytes)

The document has of each array its shape, the lengths of its chunks, and the digest that `rechunk --digest` prints of the
same values in a regular grid, which tests/cli/rechunk/test_rectilinear.py compares.
"""

import json
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import zarr

HERE = Path(__file__).parent
MONTHS = [31, 28, 31, 30]


def arrays(group):
    """(name, array, values)"""
    raw = {"compressors": None}

    def make(name, values, **kw):
        a = group.create_array(name, shape=values.shape, dtype=values.dtype, fill_value=kw.pop("fill_value", -1), **kw)
        a[...] = values
        return name, a, values

    def numbers(*shape, dtype="f4"):
        return np.arange(np.prod(shape)).reshape(shape).astype(dtype)

    yield make("months", numbers(120, 3), chunks=(MONTHS, 3), dimension_names=("time", "x"))
    yield make("both", numbers(12, 9, dtype="i2"), chunks=([5, 4, 3], [2, 3, 2, 2]), **raw)
    yield make("runs", numbers(40, dtype="u1"), chunks=([3] * 9 + [4, 4, 5],), fill_value=255)
    name, a, values = make("cut", numbers(90, 2), chunks=([31, 28, 31], 2))
    a.resize((80, 2))  # the last chunk reaches past the end
    yield name, a, values[:80]
    name, a, values = make("shorter", numbers(90, dtype="i4"), chunks=([31, 28, 31],))
    a.resize((45,))  # and chunks behind the end are not there
    yield name, a, values[:45]
    yield make("holes", np.where(numbers(30, 4) < 60, -1, numbers(30, 4)).astype("f4"), chunks=([10, 5, 15], 4))
    words = np.array(["a", "", "ccc", "dd", "e" * 40, "\u00e9", "g"], dtype=np.dtypes.StringDType())
    yield make("text", words, chunks=([2, 4, 1],), fill_value="")
    yield make("sharded", numbers(30, 8, dtype="i2"), chunks=(2, 4), shards=([10, 14, 6], 8))


def digests(values):
    """By array, of the values in one chunk each."""
    with tempfile.TemporaryDirectory() as folder:
        group = zarr.create_group(folder + "/plain")
        for name, v in values.items():
            group.create_array(name, shape=v.shape, chunks=v.shape, dtype=v.dtype)[...] = v
        tool = HERE.parent / "build" / "bin" / "rechunk"
        out = subprocess.run([tool, "--digest", folder + "/plain"], check=True, capture_output=True, text=True).stdout
    return {line.split()[1]: line.split()[0] for line in out.splitlines()}


def main():
    warnings.simplefilter("ignore")
    zarr.config.set({"array.rectilinear_chunks": True})
    facts, values = {}, {}
    (HERE / "rectilinear.zip").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        group = zarr.create_group(folder)
        for name, a, v in arrays(group):
            assert (a[...] == v).all()
            values[name] = v
            facts[name] = {"shape": list(a.shape), "grid": a.metadata.chunk_grid.to_dict()}
        zarr.consolidate_metadata(folder)
        with zipfile.ZipFile(HERE / "rectilinear.zip", "w", zipfile.ZIP_STORED) as store:
            for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
                store.writestr(zipfile.ZipInfo(str(path.relative_to(folder))), path.read_bytes())
    for name, digest in digests(values).items():
        facts[name]["digest"] = digest
    (HERE / "rectilinear.json").write_text(json.dumps(facts, indent=1, default=list) + "\n")


if __name__ == "__main__":
    sys.exit(main())
