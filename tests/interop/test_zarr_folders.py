"""Folders without metadata above arrays, and what lies in a store and is none of it."""

import json

import numpy as np
import pytest
import zarr

from support import rechunked, tool

FORMATS = [2, 3]


def plate(root, fmt, consolidated=False):
    """An OME-Zarr plate as bioformats2raw makes it: rows have no metadata of their own."""
    zarr.create_group(str(root), zarr_format=fmt, attributes={"plate": {"name": "P"}})
    for row in "AB":
        for column in "12":
            well = root / row / column
            zarr.create_group(str(well), zarr_format=fmt, attributes={"well": row + column})
            zarr.create_group(str(well / "0"), zarr_format=fmt, attributes={"multiscales": []})
            for level in (0, 1):
                n = 8 >> level
                z = zarr.create_array(
                    str(well / "0" / str(level)), shape=(n, n), chunks=(4, 4), dtype="u2", zarr_format=fmt
                )
                z[...] = ord(row) + int(column) + np.arange(n * n).reshape(n, n)
    if consolidated:
        zarr.consolidate_metadata(str(root))
    return root


def arrays_below(root):
    """{path: values} of every array that zarr-python opens anywhere below."""
    found = {}
    for name in ("zarr.json", ".zarray"):
        for at in sorted(root.rglob(name)):
            try:
                node = zarr.open_array(str(at.parent), mode="r")
            except Exception:  # a group
                continue
            found[str(at.parent.relative_to(root))] = node[...].tolist()
    return found


@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.parametrize("fmt", FORMATS)
def test_a_plate(tmp_path, fmt, consolidated):
    source = plate(tmp_path / "s", fmt, consolidated)
    for other in (2, 3):
        target = tmp_path / str(other)
        report = rechunked.run(source, target, "--zarr-format", str(other), "--chunks", "3x3", "--verify", "full")
        assert report["verification"]["nelements"] == 4 * (64 + 16)
        assert arrays_below(target) == arrays_below(source) and len(arrays_below(source)) == 8
        seen = rechunked.listing(target)
        assert sum("shape" in node for node in seen.values()) == 8
        assert zarr.open_group(str(target), mode="r")["A/1"].attrs["well"] == "A1"
        assert dict(zarr.open_group(str(target), mode="r").attrs) == {"plate": {"name": "P"}}
    assert rechunked.digests(source) == rechunked.digests(tmp_path / "2") == rechunked.digests(tmp_path / "3")
    assert set(rechunked.digests(source)) == set(arrays_below(source))


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_folder_of_a_plate(tmp_path, fmt):
    source = plate(tmp_path / "s", fmt)
    rechunked.run(f"{source}::A", tmp_path / "t")
    assert set(arrays_below(tmp_path / "t")) == {"1/0/0", "1/0/1", "2/0/0", "2/0/1"}
    chosen = rechunked.arrays(rechunked.run(source, tmp_path / "u", "--variable", "/A/1/0/0,B/*/0/1"))
    assert set(chosen) == {"A/1/0/0", "B/1/0/1", "B/2/0/1"}


@pytest.mark.parametrize("fmt", FORMATS)
def test_what_is_no_part_of_the_store_is_named(tmp_path, fmt):
    source = plate(tmp_path / "s", fmt)
    (source / "A" / "notes.txt").write_text("mine")
    other = source / "old"
    zarr.create_array(str(other), shape=(2,), chunks=(2,), dtype="u1", zarr_format=5 - fmt)[...] = 1
    (tmp_path / "elsewhere").mkdir()
    (source / "link").symlink_to(tmp_path / "elsewhere")
    (source / "B" / "loop").symlink_to(source / "B")
    (source / "void").mkdir()
    done = tool.run("rechunk", source, tmp_path / "t").ok()
    (told,) = [w for w in done.warnings if "of no array or group" in w]
    n = 3 + sum(p.is_file() for p in other.rglob("*"))  # and two links, which are not followed
    assert f" {n} files" in told and "A/notes.txt" in told, told


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_source_without_arrays(tmp_path, fmt):
    zarr.create_group(str(tmp_path / "empty"), zarr_format=fmt, attributes={"a": 1})
    rechunked.run(tmp_path / "empty", tmp_path / "t")
    assert rechunked.listing(tmp_path / "t") == rechunked.listing(tmp_path / "empty")
    (tmp_path / "empty" / "a").mkdir()
    (tmp_path / "empty" / "a" / "0.0").write_bytes(b"xx")
    tool.run("rechunk", tmp_path / "empty", tmp_path / "u").fails(1, "no array", "a/0.0")
    tool.run("rechunk", "--digest", tmp_path / "empty").fails(1, "no array", "a/0.0")
    assert not (tmp_path / "u").exists()
    (tmp_path / "folder" / "x").mkdir(parents=True)
    tool.run("rechunk", tmp_path / "folder", tmp_path / "u").fails(1, "no Zarr store")


@pytest.mark.parametrize("fmt", FORMATS)
def test_attributes_of_a_group_that_consolidated_metadata_leave_out(tmp_path, fmt):
    """They list an array below it, and the group itself only its folder tells of."""
    root = zarr.create_group(str(tmp_path / "s"), zarr_format=fmt)
    root.create_group("g", attributes={"title": "here"}).create_array("a", shape=(2,), dtype="u1")[...] = 1
    zarr.consolidate_metadata(str(tmp_path / "s"))
    at = tmp_path / "s" / ("zarr.json" if fmt == 3 else ".zmetadata")
    document = json.loads(at.read_text())
    nodes = document["consolidated_metadata"]["metadata"] if fmt == 3 else document["metadata"]
    for key in ("g", "g/.zgroup", "g/.zattrs"):
        nodes.pop(key, None)
    at.write_text(json.dumps(document))
    done = tool.run("rechunk", tmp_path / "s", tmp_path / "t").ok()
    assert any(w.endswith(": g") for w in done.warnings), str(done)
    assert dict(zarr.open_group(str(tmp_path / "t"), mode="r")["g"].attrs) == {"title": "here"}
