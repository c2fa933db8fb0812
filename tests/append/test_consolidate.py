"""--consolidate: what the documents of the nodes say stands in consolidated metadata, and nothing else is changed."""

import json
import os
import warnings

import jsonschema
import numpy as np
import pytest
import xarray as xr
import zarr

from support import failio, paths, tool

from . import files as F

warnings.filterwarnings("ignore", category=UserWarning)


def consolidate(*args):
    return tool.nc2zarr("--consolidate", *args)


def tree(store, fmt, consolidated=False):
    """Nested groups with names that sort in more than one way."""
    root = zarr.create_group(store, zarr_format=fmt, attributes={"title": "ä \" \\ \u2028", "none": None})
    for path in ("a", "a/b", "a/b/deep", "a-b", "B", "a/B"):
        g = root.create_group(path, attributes={"path": path})
        kw = {} if fmt == 2 else {"dimension_names": ("x",)}
        x = g.create_array("x", shape=(4,), chunks=(2,), dtype="f4", fill_value=np.nan, attributes={"big": 2**63, "x": 0.1, "nan": float("nan")}, **kw)
        x[:] = np.arange(4) + len(path)
        if fmt == 2:
            x.attrs["_ARRAY_DIMENSIONS"] = ["x"]
    if consolidated:
        consolidate(store).ok()
    return store


def claim(group):
    """The group says that nothing lies below it."""
    j = json.loads((group / "zarr.json").read_text())
    (group / "zarr.json").write_text(json.dumps(j | {"consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": {}}}))


def own_documents(store):
    """Everything but consolidated metadata."""
    found = {}
    for key, data in failio.contents(store).items():
        if str(key).endswith("zarr.json"):
            data = json.loads(data)
            data.pop("consolidated_metadata", None)
            data = json.dumps(data)
        if not str(key).endswith(".zmetadata"):
            found[key] = data
    return found


def late(group):
    x = group.create_array("late", shape=(3,), dtype="i2", **({} if group.metadata.zarr_format == 2 else {"dimension_names": ("y",)}))
    x[:] = 7
    if group.metadata.zarr_format == 2:
        x.attrs["_ARRAY_DIMENSIONS"] = ["y"]


def as_zarr_sees(store, consolidated):
    root = zarr.open_group(store, mode="r", use_consolidated=consolidated)
    return {path: (type(m).__name__, repr(m.attrs.asdict()), getattr(m, "shape", None)) for path, m in root.members(max_depth=None)}


@pytest.mark.parametrize("fmt", [2, 3])
@pytest.mark.parametrize("before", ["none", "stale", "stale nested", "damaged"])
def test_readers_find_every_node(fmt, before, tmp_path):
    store = tree(tmp_path / "s.zarr", fmt, before.startswith("stale"))
    if before == "stale nested" and fmt == 3:
        claim(store / "a")
    if before.startswith("stale"):
        g = zarr.open_group(store, use_consolidated=False, zarr_format=fmt)["a/b"]
        late(g)
        g["x"].resize((9,))
        g.attrs["renewed"] = True
    if before == "damaged" and fmt == 2:
        (store / ".zmetadata").write_text('{"metadata": {')
    if before == "damaged" and fmt == 3:
        j = json.loads((store / "zarr.json").read_text())
        (store / "zarr.json").write_text(json.dumps(j | {"consolidated_metadata": {"kind": "other", "metadata": 3}}))
    was = own_documents(store)
    consolidate(store).ok()
    assert own_documents(store) == was
    assert not os.path.exists(f"{store}.chunkmill")
    want = as_zarr_sees(store, False)
    assert len(want) == 12 + before.startswith("stale")
    assert as_zarr_sees(store, True) == want
    if fmt == 3:
        assert as_zarr_sees(store / "a", None) == as_zarr_sees(store / "a", False)
    with xr.open_zarr(store, group="a/b", consolidated=True) as ds:
        np.testing.assert_array_equal(ds.x.values[:4], np.arange(4) + 3)
        assert ds.x.attrs["x"] == 0.1
    # The program itself finds no two things said of one node.
    r = tool.run("rechunk", "--digest", store).ok()
    assert "consolidated" not in r.err, str(r)
    again = failio.contents(store)
    r = consolidate("--json", store).json()
    jsonschema.validate(r, json.loads((paths.ROOT / "tools/schema/consolidate.json").read_text()))
    assert (r["outcome"], r["written"], r["arrays"], r["groups"]) == ("unchanged", 0, 6 + before.startswith("stale"), 7)
    assert failio.contents(store) == again


@pytest.mark.parametrize("fmt", [2, 3])
def test_what_is_not_known_stays_as_it_is_written(fmt, tmp_path):
    """Members, numbers, spelling: the documents' own text is what is listed."""
    store = tree(tmp_path / "s.zarr", fmt)
    root, node = (store / ("zarr.json" if fmt == 3 else ".zgroup")), store / "a" / "x" / ("zarr.json" if fmt == 3 else ".zattrs")
    if fmt == 3:
        root.write_text(root.read_text().replace("{", '{ "ours": {"must_understand": false, "n": 1e0},', 1))
    else:
        (store / ".zmetadata").write_text('{"theirs": [1e0], "metadata": {}, "zarr_consolidated_format": 1}')
    spelling = '"odd": [1e0, 0.1000000000000000000001, 0.10, NaN, "\\u00e4", -0.0]'
    text = node.read_text()
    at = text.index('"big"')
    node.write_text(text[:at] + spelling + ", " + text[at:])
    consolidate(store).ok()
    made = (root if fmt == 3 else store / ".zmetadata").read_text()
    assert spelling in made
    assert ('"n": 1e0' if fmt == 3 else '"theirs": [1e0]') in made
    assert json.loads(made)


def test_a_store_of_ours_stays(tmp_path):
    """Consolidated metadata of nc2zarr and those made anew are equal, in the same order."""
    for fmt in ("2", "3"):
        store = tmp_path / f"{fmt}.zarr"
        tool.nc2zarr("-q", "--zarr-format", fmt, *F.days(tmp_path, 0, 3), store).ok()
        name = store / (".zmetadata" if fmt == "2" else "zarr.json")
        before = json.loads(name.read_text())
        consolidate("-q", "--durable", store).ok()
        after = json.loads(name.read_text())
        assert after == before
        if fmt == "3":
            assert list(after["consolidated_metadata"]["metadata"]) == list(before["consolidated_metadata"]["metadata"])


def test_append_goes_on(tmp_path):
    """Where consolidated metadata are behind, the append says what to do, and that helps."""
    files = F.days(tmp_path, 0, 6)
    store = F.by_xarray(files[:3], tmp_path / "s.zarr", consolidated=True)
    text = (store / "zarr.json").read_text()
    j = json.loads(text)
    del j["consolidated_metadata"]["metadata"]["tas"]
    (store / "zarr.json").write_text(json.dumps(j))
    before = failio.contents(store)
    r = tool.nc2zarr("--append", "time", *files, store)
    assert r.status != 0 and failio.contents(store) == before, str(r)
    consolidate(store).ok()
    tool.nc2zarr("-q", "--append", "time", *files, store).ok()
    assert xr.open_zarr(store, consolidated=True).sizes["time"] == 6


def refused(store, *words, status=1):
    before = failio.contents(store.parent)
    consolidate(store).fails(status, *words)
    assert failio.contents(store.parent) == before
    assert not os.path.exists(f"{store}.chunkmill/lock")


@pytest.mark.every
@pytest.mark.parametrize("fmt", [2, 3])
@pytest.mark.parametrize("text", ["{", "[]", "", '{"zarr_format": 9}', '{"a": "\xff"}'], ids=["cut", "list", "empty", "format", "latin1"])
def test_a_document_that_cannot_be_read(fmt, text, tmp_path):
    store = tree(tmp_path / "s.zarr", fmt, True)
    (store / "a" / "b" / "x" / ("zarr.json" if fmt == 3 else ".zarray")).write_bytes(text.encode("latin-1"))
    refused(store, "a/b/x")


def test_attributes_that_cannot_be_read(tmp_path):
    store = tree(tmp_path / "s.zarr", 2, True)
    (store / "a" / "x" / ".zattrs").write_bytes(b'{"a": "\xff"}')
    refused(store, "a/x/.zattrs", "UTF-8")
    (store / "a" / "x" / ".zattrs").write_bytes(b'{"a": /* */ 1}')
    refused(store, "z")


@pytest.mark.parametrize("fmt", [2, 3])
def test_never_through_a_link(fmt, tmp_path):
    store = tree(tmp_path / "s.zarr", fmt, True)
    name = store / ("zarr.json" if fmt == 3 else ".zmetadata")
    name.rename(tmp_path / "elsewhere")
    name.symlink_to(tmp_path / "elsewhere")
    zarr.open_group(store, use_consolidated=False, zarr_format=fmt)["a"].create_array("late", shape=(3,), dtype="i2")
    refused(store, name.name, "link")


def test_a_group_behind_a_link(tmp_path):
    """It is listed, for readers reach it; its own document is not written."""
    other, store = tree(tmp_path / "other.zarr", 3, True), tree(tmp_path / "s.zarr", 3)
    (store / "linked").symlink_to(other / "a")
    claim(other / "a")
    zarr.open_group(other, use_consolidated=False)["a"].create_array("late", shape=(3,), dtype="i2")
    refused(store, "linked/zarr.json", "link")
    (other / "a" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    before = failio.contents(other)
    consolidate(store).ok()
    assert failio.contents(other) == before
    assert zarr.open_group(store, use_consolidated=True)["linked/late"].shape == (3,)


def test_what_is_no_store(tmp_path):
    for name in ("empty", "foreign"):
        (tmp_path / name).mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine")
    (tmp_path / "plain.zarr").write_text("{}")
    for name, word in {"empty": "no Zarr store", "foreign": "no Zarr store", "plain.zarr": "not a folder", "absent": "no store"}.items():
        refused(tmp_path / name, name, word, status=1 if name != "plain.zarr" else 2)
    zarr.create_array(tmp_path / "array.zarr", shape=(3,), dtype="i2")
    refused(tmp_path / "array.zarr", "is an array", status=2)
    tree(tmp_path / "s.zarr", 3)
    refused(tmp_path / "s.zarr::a", "as a whole", status=2)
    consolidate().fails(2, "one store")
    consolidate(tmp_path / "s.zarr", tmp_path / "s.zarr").fails(2, "one store")
    consolidate("--overwrite", tmp_path / "s.zarr").fails(2, "--overwrite")


def test_references_are_not_destroyed(tmp_path):
    store = tree(tmp_path / "s.zarr", 2)
    (store / ".zmetadata").write_text('{"metadata": {}, "record_size": 10}')
    refused(store, "Parquet")
    (store / ".zmetadata").write_text('{"metadata": {}, "zarr_consolidated_format": 2}')
    refused(store, "format")


def test_a_store_that_is_being_written(tmp_path):
    store = tree(tmp_path / "s.zarr", 3)
    beside = tmp_path / "s.zarr.chunkmill"
    beside.mkdir()
    (beside / "append").write_text("{}")
    refused(store, "append was stopped")
    (beside / "append").unlink()
    (beside / "lock").write_text('{"host": "elsewhere", "boot": "x", "pid": 1, "start": 1}')
    before = failio.contents(tmp_path)
    consolidate(store).fails(1, "s.zarr", "break the lock")
    assert failio.contents(tmp_path) == before
    consolidate("--break-lock", store).ok()
    assert not beside.exists()


def test_a_folder_that_cannot_be_written(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    store = tree(tmp_path / "s.zarr", 3)
    os.chmod(tmp_path, 0o555)
    try:
        consolidate(store).fails(1, "s.zarr", "permission")
    finally:
        os.chmod(tmp_path, 0o755)


def test_documents_are_replaced_whole(tmp_path):
    """Whoever has the old document open goes on reading it: it is exchanged, not written over."""
    for fmt, name in ((2, ".zmetadata"), (3, "zarr.json")):
        store = tree(tmp_path / f"{fmt}.zarr", fmt, True)
        zarr.open_group(store, use_consolidated=False, zarr_format=fmt)["a"].create_array("late", shape=(3,), dtype="i2")
        with open(store / name) as f:
            old = f.read()
            consolidate(store).ok()
            f.seek(0)
            assert f.read() == old
        assert "late" in (store / name).read_text()
        assert not [p for p in store.rglob("*") if "tmp" in p.name]


def test_folders_without_documents(tmp_path):
    """Arrays below a folder that nobody calls a group are found, as without consolidation."""
    for fmt, name in ((2, ".zgroup"), (3, "zarr.json")):
        store = tree(tmp_path / f"{fmt}.zarr", fmt)
        (store / "a" / "b" / name).unlink()
        consolidate(store).ok()
        r = tool.run("rechunk", "--digest", store).ok()
        assert "a/b/x" in r.out, str(r)
        assert as_zarr_sees(store, True).keys() >= as_zarr_sees(store, False).keys()
