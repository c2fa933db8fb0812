"""--packing unpack: numbers of files that are packed differently, as xarray decodes each file."""

import numpy as np
import pytest
import xarray as xr

from . import files as F
from . import stores


def packed(name, days, stored, dtype="i2", fill=-32767, **attrs):
    time = F.Var(("time",), np.asarray(days, "f8"), {"units": F.UNITS, "calendar": "standard"})
    stored = np.asarray(stored).astype(dtype)
    fill = None if fill is None else np.dtype(dtype).type(fill)
    return F.File(f"{name}.nc", {"time": time, "v": F.Var(("time",), stored, attrs, fill=fill)})


def convert(tmp_path, files, *options):
    F.write_all(files, tmp_path / "in")
    return stores.convert("--verify", "full", "--packing", "unpack", *options, tmp_path / "in", tmp_path / "out.zarr")


def decoded(tmp_path, files):
    """Each file in turn as xarray decodes it; and the store."""
    parts = []
    for f in files:
        with xr.open_dataset(tmp_path / "in" / f.name) as ds:
            parts.append(ds.v.values.astype("f8"))
    with xr.open_zarr(tmp_path / "out.zarr") as made:
        return np.concatenate(parts), made.v.values


@pytest.mark.every
@pytest.mark.parametrize("which", ["a", "b", "ab"])
@pytest.mark.parametrize("missing", [np.int16(-1), np.array([-32767, -1], "i2")], ids=["one", "two"])
def test_a_missing_value_that_is_not_the_fill_value_is_refused(tmp_path, which, missing):
    """It would become a number like any other."""
    files = [packed("a", [0, 1], [1, -1], scale_factor=0.5), packed("b", [2, 3], [4, -1], scale_factor=0.25)]
    for f, name in zip(files, "ab"):
        if name in which:
            f.vars["v"].attrs["missing_value"] = missing
    # Also where the first file's attributes were chosen.
    r = convert(tmp_path, files, "--attrs", "first")
    assert r.status == 1 and f"{which[0]}.nc: v: has a missing_value" in r.err, str(r)
    assert not (tmp_path / "out.zarr").exists()


def test_a_missing_value_that_is_the_fill_value_is_missing(tmp_path):
    files = [packed("a", [0, 1], [1, -32767], scale_factor=0.5, missing_value=np.int16(-32767)),
             packed("b", [2, 3], [-32767, 5], scale_factor=0.25, missing_value=np.int16(-32767))]
    convert(tmp_path, files).ok()
    want, got = decoded(tmp_path, files)
    np.testing.assert_array_equal(got, want)
    assert np.isnan(got).tolist() == [False, True, True, False]


@pytest.mark.parametrize("dtype, stored", [("i1", [0, 1, 127, -128, -2, -1]), ("i2", [0, 1, 32767, -32768, -2, -1])])
@pytest.mark.parametrize("fill", [None, -1])
def test_unsigned_numbers(tmp_path, dtype, stored, fill):
    files = [packed(n, np.arange(6) + 6 * i, stored, dtype, fill, _Unsigned="true", scale_factor=s, add_offset=1.0)
             for i, (n, s) in enumerate([("a", 0.5), ("b", 0.25)])]
    convert(tmp_path, files).ok()
    want, got = decoded(tmp_path, files)
    np.testing.assert_array_equal(got, want)
    assert np.nanmin(got) == 1.0, "all of them are positive"
    assert np.isnan(got[-1]) == (fill is not None)


def test_unsigned_in_one_file_only(tmp_path):
    files = [packed("a", [0, 1], [1, -2], "i1", None, scale_factor=0.5), packed("b", [2, 3], [1, -2], "i1", None, scale_factor=0.5, _Unsigned="true")]
    convert(tmp_path, files).ok()
    want, got = decoded(tmp_path, files)
    np.testing.assert_array_equal(got, want)
    assert got.tolist() == [0.5, -1.0, 0.5, 127.0]


@pytest.mark.parametrize("seed", range(3))
def test_era5_packs_each_file_for_itself(tmp_path, seed):
    """scale_factor and add_offset of full precision: the same double as xarray's, to the bit."""
    rng = np.random.default_rng(seed)
    files = []
    for i in range(6):
        stored = rng.integers(-32766, 32767, 20)
        stored[rng.random(20) < 0.2] = -32767
        files.append(packed(f"f{i}", np.arange(20) + 20 * i, stored, scale_factor=rng.random() * 1e-3, add_offset=rng.random() * 300,
                            missing_value=np.int16(-32767)))
    convert(tmp_path, files).ok()
    want, got = decoded(tmp_path, files)
    assert got.tobytes() == want.tobytes()


def values_of(dtype):
    info = np.iinfo(dtype)
    r = np.random.default_rng(info.bits)
    # xarray takes what float32 does not tell from the fill value for missing.
    return np.concatenate([[info.min // 2, info.max, 0, 1, -1], r.integers(info.min // 2, info.max, 200)]).astype(dtype)


S, D, I = np.float32, np.float64, np.int32
PACKINGS = {
    "single": [{"scale_factor": S(0.1), "add_offset": S(273.15)}, {"scale_factor": S(0.3), "add_offset": S(1e3)}],
    "scale alone, single": [{"scale_factor": S(0.1)}, {"scale_factor": S(0.7)}],
    "offset alone, single": [{"add_offset": S(0.1)}, {"add_offset": S(0.7)}],
    "double": [{"scale_factor": D(0.1), "add_offset": D(273.15)}, {"scale_factor": D(0.3), "add_offset": D(1e3)}],
    "one of each": [{"scale_factor": S(0.1), "add_offset": D(273.15)}, {"scale_factor": S(0.3), "add_offset": D(1e3)}],
    "single, then double": [{"scale_factor": S(0.1), "add_offset": S(273.15)}, {"scale_factor": D(0.3), "add_offset": D(1e3)}],
    "an integer offset": [{"scale_factor": S(0.1), "add_offset": I(3)}, {"scale_factor": S(0.3), "add_offset": I(4)}],
    "packed, then not": [{"scale_factor": S(0.1), "add_offset": S(273.15)}, {}],
}


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4"])
@pytest.mark.parametrize("name", PACKINGS)
def test_type_and_rounding_are_those_of_xarray(tmp_path, name, dtype):
    """Where attributes are float32 xarray computes in it, and so the store is float32, bit for bit."""
    stored, fill = values_of(dtype), np.iinfo(dtype).min
    files = [packed(f, np.arange(len(stored)) + 1000 * i, stored, dtype, fill, **attrs) for i, (f, attrs) in enumerate(zip("ab", PACKINGS[name]))]
    convert(tmp_path, files).ok()
    parts = []
    for f in files:
        with xr.open_dataset(tmp_path / "in" / f.name) as ds:
            parts.append(ds.v.values)
    want = np.concatenate(parts)
    with xr.open_zarr(tmp_path / "out.zarr") as made:
        assert made.v.dtype == want.dtype
        np.testing.assert_array_equal(made.v.values, want)
