"""--fill-value decides where files have several; --order and --overlap where two have a step."""

import numpy as np
import pytest

from support import readers

from . import files as F
from . import stores


def file(name, days, values, dtype="i2", fill=None):
    time = F.Var(("time",), np.asarray(days, "f8"), {"units": F.UNITS, "calendar": "standard"})
    fill = None if fill is None else np.dtype(dtype).type(fill)
    return F.File(f"{name}.nc", {"time": time, "v": F.Var(("time",), np.asarray(values, dtype), {}, fill=fill)})


def convert(tmp_path, *options):
    return stores.convert("--verify", "full", *options, tmp_path / "in", tmp_path / "out.zarr")


# Each holds as data what is missing in the other.
CLASHES = {
    "two fill values": (("i2", -32767), ("i2", -1), [1, -32767], [-32767, 5], "-9999", [1, -9999, -32767, 5]),
    "none in the second": (("i2", -32767), ("i2", None), [1, -32767], [-32767, 5], "-9999", [1, -9999, -32767, 5]),
    "none in the first": (("i2", None), ("i2", -1), [1, -1], [-1, 5], "-9999", [1, -1, -9999, 5]),
    "types too": (("i2", -99), ("i4", -1), [1, -99], [-99, -1], "100000", [1, 100000, -99, 100000]),
    "floats": (("f4", 1e20), ("f4", -1), [1, 1e20], [1e20, -1], "NaN", [1, np.nan, np.float32(1e20), np.nan]),
}


@pytest.mark.parametrize("name", CLASHES)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_fill_value_that_is_no_data(name, zarr_format, tmp_path):
    (ta, fa), (tb, fb), a, b, asked, want = CLASHES[name]
    F.write_all([file("a", [0, 1], a, ta, fa), file("b", [2, 3], b, tb, fb)], tmp_path / "in")
    r = convert(tmp_path)
    assert r.status == 1 and "--fill-value v:X" in r.err and ("a.nc" in r.err or "b.nc" in r.err), str(r)
    convert(tmp_path, "--overwrite", "--zarr-format", zarr_format, "--fill-value", f"v:{asked}").ok()
    got = readers.arrays(tmp_path / "out.zarr")["v"]
    np.testing.assert_array_equal(got[...], np.array(want, got.dtype))
    np.testing.assert_array_equal(got.metadata.fill_value, got.dtype.type(float(asked)))


def test_a_fill_value_that_is_data_is_refused(tmp_path):
    F.write_all([file("a", [0, 1], [1, -9], "i2", -9), file("b", [2, 3], [7, 5], "i2", -1)], tmp_path / "in")
    r = convert(tmp_path, "--fill-value", "v:7")
    assert r.status == 1 and "element 2 is data" in r.err, str(r)
    assert not (tmp_path / "out.zarr" / "zarr.json").exists()


def test_data_stay_where_files_agree(tmp_path):
    """As of one file."""
    F.write_all([file("a", [0, 1], [1, -9], "i2", -9), file("b", [2, 3], [7, 5], "i2", -9)], tmp_path / "in")
    convert(tmp_path, "--fill-value", "v:-1").ok()
    assert readers.arrays(tmp_path / "out.zarr")["v"][...].tolist() == [1, -9, 7, 5]


# ---- steps that two files have, in an order that is no coordinate's ------------------------------------


@pytest.mark.parametrize("order", ["name", "given"])
def test_a_step_is_never_there_twice(order, tmp_path):
    """b.nc comes first where files are given so; b and a share day 2."""
    a, b = file("a", [0, 1, 2], [0, 1, 2]), file("b", [2, 3], [20, 30])
    paths = F.write_all([a, b], tmp_path / "in")
    inputs = [paths[1], paths[0]]
    _, doc = stores.survey("--order", order, *inputs, status=4)
    (found,) = [f for f in doc["findings"] if f["weight"] == "decision"]
    assert found["kind"] == "overlap" and found["file"].endswith("b.nc") and found["option"] == "--overlap first"
    for keep in ("first", "last"):
        out = tmp_path / f"{keep}.zarr"
        stores.convert("--verify", "full", "--order", order, "--overlap", keep, *inputs, out).ok()
        got = readers.arrays(out)
        first = (order == "name") == (keep == "first")
        assert got["v"][...].tolist() == [0, 1, 2 if first else 20, 30]
        assert got["time"][...].tolist() == [0, 1, 2, 3]


def test_files_in_the_order_that_is_given(tmp_path):
    """Where they share no step, whatever their coordinates."""
    paths = F.write_all([file("a", [4, 5], [1, 2]), file("b", [0, 1], [3, 4])], tmp_path / "in")
    stores.convert("--order", "given", *paths, tmp_path / "out.zarr").ok()
    got = readers.arrays(tmp_path / "out.zarr")
    assert got["time"][...].tolist() == [4, 5, 0, 1] and got["v"][...].tolist() == [1, 2, 3, 4]
