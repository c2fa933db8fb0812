"""rechunk: metadata that are odd, not known here, or older than the store."""

import json

import numpy as np
import pytest
import zarr

from support import rechunked, tool

NUMBERS = np.arange(30, dtype="f4").reshape(6, 5)


def make_array(path, fmt, **kw):
    zarr.create_array(str(path), data=NUMBERS, chunks=(4, 3), zarr_format=fmt, **kw)
    return path


def edit(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def attributes(store):
    if (store / "zarr.json").exists():
        return json.loads((store / "zarr.json").read_text())["attributes"]
    return json.loads((store / ".zattrs").read_text())


# ---- attributes -----------------------------------------------------------------------------------


@pytest.mark.every
@pytest.mark.parametrize("options", [[], ["--chunks", "3x5"], ["--zarr-format", "2"], ["--zarr-format", "3"]])
@pytest.mark.parametrize("fmt", [3, 2])
def test_numbers_that_json_does_not_know_become_text(tmp_path, out, fmt, options):
    """zarr-python writes them bare, which other readers take for no JSON."""
    source = make_array(tmp_path / "in.zarr", fmt, attributes={"missing": float("nan"), "range": [-np.inf, 1.0]})
    done = tool.run("rechunk", "--verify", "full", *options, source, out).ok()
    assert attributes(out) == {"missing": "NaN", "range": ["-Infinity", 1.0]}
    assert "warning: 1 array or group has attributes that are NaN or infinite (/)" in done.err


def test_attributes_that_are_not_finite_in_groups_are_told_too(tmp_path, out):
    root = zarr.create_group(str(tmp_path / "in.zarr"), attributes={"x": float("inf")})
    root.create_array("a", data=NUMBERS)
    assert "2 arrays and groups" not in tool.run("rechunk", tmp_path / "in.zarr", out).ok().err
    root["a"].attrs["y"] = float("nan")
    done = tool.run("rechunk", "--overwrite", tmp_path / "in.zarr", out).ok()
    assert "2 arrays and groups" in done.err


def test_names_of_dimensions_among_the_attributes_of_version_3(tmp_path, out):
    source = make_array(tmp_path / "in.zarr", 3, attributes={"_ARRAY_DIMENSIONS": ["y", "x"], "a": 1})
    rechunked.run(source, out, "--zarr-format", "2", "--verify", "full")
    assert attributes(out) == {"_ARRAY_DIMENSIONS": ["y", "x"], "a": 1}


# ---- members that are not known here ----------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [[], ["--chunks", "a:3x5"], ["--codec", "gzip"], ["--chunks", "a:3x2", "--shards", "a:6x4"]]
)
def test_members_of_version_3_that_may_be_ignored(tmp_path, out, options):
    member = {"must_understand": False, "dims": ["/y", "/x"]}
    root = zarr.create_group(str(tmp_path / "in.zarr"))
    root.create_array("a", data=NUMBERS, chunks=(4, 3))
    for node in ("", "a/"):
        edit(tmp_path / f"in.zarr/{node}zarr.json", lambda d: d.update(_other=member))
    rechunked.run(tmp_path / "in.zarr", out, "--verify", "full", *options)
    for node in ("", "a/"):
        assert json.loads((out / f"{node}zarr.json").read_text())["_other"] == member
    assert np.array_equal(zarr.open_array(out / "a", mode="r")[...], NUMBERS)


@pytest.mark.parametrize("options", [[], ["--chunks", "a:3x5"], ["--codec", "gzip"]])
def test_members_of_version_2(tmp_path, out, options):
    root = zarr.create_group(str(tmp_path / "in.zarr"), zarr_format=2)
    root.create_array("a", data=NUMBERS, chunks=(4, 3))
    edit(tmp_path / "in.zarr/.zgroup", lambda d: d.update(_nczarr_group={"dims": {"y": 6, "x": 5}}))
    edit(tmp_path / "in.zarr/a/.zarray", lambda d: d.update(_nczarr_array={"dimrefs": ["/y", "/x"]}))
    rechunked.run(tmp_path / "in.zarr", out, "--verify", "full", *options)
    assert json.loads((out / ".zgroup").read_text())["_nczarr_group"] == {"dims": {"y": 6, "x": 5}}
    assert json.loads((out / "a" / ".zarray").read_text())["_nczarr_array"] == {"dimrefs": ["/y", "/x"]}


# ---- what readers see with other eyes ---------------------------------------------------------------


def test_texts_that_version_2_has_readers_mask_are_told(tmp_path, out):
    """No attribute of version 3 says so of texts."""
    group = zarr.create_group(tmp_path / "in.zarr", zarr_format=2)
    for name, dtype in (("text", "S1"), ("number", "i4")):
        group.create_array(name, shape=(3,), dtype=dtype, fill_value=b"x" if name == "text" else 0, attributes={"_ARRAY_DIMENSIONS": ["x"]})
    assert "warning: xarray" not in tool.run("rechunk", tmp_path / "in.zarr", out).ok().err
    done = tool.run("rechunk", "--overwrite", "--zarr-format", "3", tmp_path / "in.zarr", out).ok()
    assert "warning: xarray" in done.err and "1 array (text) as a value" in done.err


def test_no_fill_value_is_nothing_to_tell(tmp_path, out):
    source = make_array(tmp_path / "in.zarr", 2, fill_value=None)
    assert "warning" not in tool.run("rechunk", "--zarr-format", "3", source, out).ok().err


@pytest.mark.parametrize("fmt", [3, 2])
def test_what_consolidated_metadata_do_not_list(tmp_path, out, fmt):
    source = tmp_path / "in.zarr"
    root = zarr.create_group(str(source), zarr_format=fmt)
    for name in ("a", "b"):
        root.create_array(name, data=NUMBERS)
    zarr.consolidate_metadata(str(source))
    assert "warning" not in tool.run("rechunk", source, out).ok().err
    root = zarr.open_group(str(source), mode="a", use_consolidated=False)
    root.create_array("late", data=NUMBERS)
    root["b"].resize((9, 5))
    warnings = tool.run("rechunk", "--overwrite", source, out).ok().err
    assert "1 array or group is missing" in warnings and "all the same: late" in warnings and "warning: b: shape: " in warnings
    assert zarr.open_group(str(out), mode="r")["late"][...].tolist() == NUMBERS.tolist()
    assert "warning" not in tool.run("rechunk", "--overwrite", "--variable", "a", source, out).ok().err
