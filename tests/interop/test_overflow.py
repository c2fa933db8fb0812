"""Numbers that the type of --dtype does not hold: an error with its place, or the end of the range."""

import numpy as np
import pytest
import zarr
from support import tool

INF, NAN = np.inf, np.nan
F16 = 65504.0
F32 = float(np.finfo("f4").max)

# source type, numbers, target type, what they become, or the first that is refused all the same
ROWS = [
    ("f4", [1, 70000, -70000, 65519, -65520, INF, -INF, NAN, 1e-9], "float16",
     [1, F16, -F16, F16, -F16, INF, -INF, NAN, 0]),
    ("i4", [70000, -70000, 2048], "float16", [F16, -F16, 2048]),
    ("f8", [1e300, -1e39, 1.5, NAN, INF], "float32", [F32, -F32, 1.5, NAN, INF]),
    ("f8", [1e300, -1e300, 127.4, 127.6, -128.5, 0.5, 1.5, INF, -INF], "int8",
     [127, -128, 127, 127, -128, 0, 2, 127, -128]),
    ("f8", [1e300, -1, 2.0**64, 2.0**63], "uint64", [2**64 - 1, 0, 2**64 - 1, 2**63]),
    ("f8", [1e300, -1e300, 2.0**63, -(2.0**63)], "int64", [2**63 - 1, -(2**63), 2**63 - 1, -(2**63)]),
    ("i2", [300, -300, 5, -1], "int8", [127, -128, 5, -1]),
    ("i2", [300, -300, 5, -1], "uint8", [255, 0, 5, 0]),
    ("u8", [2**64 - 1, 5], "int64", [2**63 - 1, 5]),
]  # fmt: skip


def store(path, kind, numbers):
    values = np.array(numbers, dtype=kind).reshape(1, -1)
    zarr.create_group(str(path)).create_array("a", shape=values.shape, chunks=(1, 2), dtype=kind)[...] = values
    return path


@pytest.mark.every
@pytest.mark.parametrize("program", ["nc2zarr", "rechunk"])
@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r[0]}-{r[2]}")
def test_overflow(tmp_path, program, row):
    kind, numbers, to, want = row
    source, target = store(tmp_path / "in.zarr", kind, numbers), tmp_path / "out.zarr"
    refused = tool.run(program, "--dtype", f"a:{to}", source, target)
    refused.fails(2, "variable a", "chunk", "element", f"does not fit {to}")
    tool.run(program, "--overwrite", "--dtype", f"a:{to}", "--overflow", "saturate", "--verify", "full", source, target).ok()
    got = zarr.open_group(str(target))["a"][0]
    assert got.dtype == to
    np.testing.assert_array_equal(got, np.array(want, dtype=to))


def test_nothing_stands_for_nan(tmp_path):
    source = store(tmp_path / "in.zarr", "f4", [1, NAN])
    tool.run("rechunk", "--dtype", "a:int8", "--overflow", "saturate", source, tmp_path / "out.zarr").fails(
        2, "NaN does not fit int8")
    tool.run("rechunk", "--dtype", "a:float16", "--overflow", "saturate", "--keepbits", "a:3", source,
             tmp_path / "out.zarr").fails(2, "--overflow", "--keepbits")
    tool.run("rechunk", "--overflow", "wrap", source, tmp_path / "out.zarr").fails(2, "wrap")


@pytest.mark.parametrize("program", ["nc2zarr", "rechunk"])
def test_all_variables_means_those_of_two_dimensions(tmp_path, program):
    group = zarr.create_group(str(tmp_path / "in.zarr"))
    group.create_array("a", shape=(3,), chunks=(3,), dtype="f8")[...] = 1.5
    for option, value in (("--dtype", "float32"), ("--keepbits", "5")):
        done = tool.run(program, "--overwrite", option, value, tmp_path / "in.zarr", tmp_path / "out.zarr").ok()
        assert f"{option} {value} changes nothing" in done.err and f"VAR:{value}" in done.err
        done = tool.run(program, "--overwrite", option, f"a:{value}", tmp_path / "in.zarr", tmp_path / "out.zarr").ok()
        assert "changes nothing" not in done.err
