"""Contradictions between consolidated metadata and the nodes' own documents: --check finds it, opening warns of it."""

import json
import shutil

import pytest
import zarr

from support import rechunked, tool

from .test_zarr_codecs import array_json, read

FORMATS = [2, 3]


@pytest.fixture(scope="module", params=FORMATS)
def made(request, tmp_path_factory):
    """(format, file, store): a file in a store that is its copy."""
    import netCDF4
    import numpy as np

    at = tmp_path_factory.mktemp("made")
    with netCDF4.Dataset(at / "in.nc", "w") as f:
        f.title, f.x = "T", 1.5
        f.createDimension("y", 6)
        f.createDimension("x", 8)
        for group in (f, f.createGroup("deep")):
            v = group.createVariable("tas", "f4", ("y", "x"), fill_value=1e20, chunksizes=(3, 4), zlib=True)
            v[:] = np.arange(48).reshape(6, 8)
            v.units, v.long_name = "K", "t"
            group.createVariable("n", "i2", ("x",))[:] = np.arange(8)
    fmt = request.param
    tool.nc2zarr("-q", "--zarr-format", fmt, "--chunks", "3x4", "--codec", "zstd:1", at / "in.nc", at / "s.zarr").ok()
    return fmt, at / "in.nc", at / "s.zarr"


def edit(path, **members):
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, **members}))


def document(fmt, folder):
    return folder / ("zarr.json" if fmt == 3 else ".zarray")


def plant_dtype(fmt, node):
    edit(document(fmt, node), **({"data_type": "int32"} if fmt == 3 else {"dtype": "<i4"}))


def plant_endianness(fmt, node):
    if fmt == 2:
        return edit(document(fmt, node), dtype=">f4")
    codecs = json.loads(document(fmt, node).read_text())["codecs"]
    codecs[0]["configuration"] = {"endian": "big"}
    edit(document(fmt, node), codecs=codecs)


def plant_fill(fmt, node):
    edit(document(fmt, node), fill_value=7.0)


def plant_shape(fmt, node):
    edit(document(fmt, node), shape=[6, 9])


def plant_chunks(fmt, node):
    if fmt == 2:
        return edit(document(fmt, node), chunks=[6, 2])
    edit(document(fmt, node), chunk_grid={"name": "regular", "configuration": {"chunk_shape": [6, 2]}})


def plant_codec(fmt, node):
    if fmt == 2:
        return edit(document(fmt, node), compressor={"id": "gzip", "level": 1})
    codecs = json.loads(document(fmt, node).read_text())["codecs"]
    codecs[1] = {"name": "gzip", "configuration": {"level": 1}}
    edit(document(fmt, node), codecs=codecs)


def plant_attributes(fmt, node):
    if fmt == 2:
        return edit(node / ".zattrs", units="degC")
    attributes = json.loads(document(fmt, node).read_text())["attributes"]
    edit(document(fmt, node), attributes={**attributes, "units": "degC"})


def plant_order(fmt, node):
    at = node / (".zattrs" if fmt == 2 else "zarr.json")
    was = json.loads(at.read_text())
    attributes = was if fmt == 2 else was["attributes"]
    turned = dict(reversed(list(attributes.items())))
    at.write_text(json.dumps(turned if fmt == 2 else {**was, "attributes": turned}))


def plant_deleted(fmt, node):
    document(fmt, node).unlink()


def plant_brace(fmt, node):
    document(fmt, node).write_text("{")


def plant_extra_array(fmt, node):
    shutil.copytree(node, node.parent / "extra")


def plant_extra_group(fmt, node):
    (node.parent / "more").mkdir()
    name, text = ("zarr.json", '{"zarr_format":3,"node_type":"group"}') if fmt == 3 else (".zgroup", '{"zarr_format":2}')
    (node.parent / "more" / name).write_text(text)


PLANTS = {name[6:]: plant for name, plant in list(globals().items()) if name.startswith("plant_")}
WORDS = {
    "dtype": "type",
    "endianness": "codecs|dtype",
    "fill": "fill_value",
    "shape": "shape",
    "chunks": "chunk",
    "codec": "codecs|compressor",
    "attributes": "attributes",
    "order": "order",
    "deleted": "has no",
    "brace": "cannot be read",
    "extra_array": "extra: is not in the consolidated",
    "extra_group": "more: is not in the consolidated",
}


@pytest.mark.parametrize("where", ["", "deep"], ids=["root", "deep"])
@pytest.mark.parametrize("plant", list(PLANTS))
def test_check_finds_what_one_reader_sees(made, tmp_path, plant, where):
    fmt, source, store = made
    copy = tmp_path / "s.zarr"
    shutil.copytree(store, copy)
    check = ["--check", "--certificate", tmp_path / "c.json", "--json", source, copy]
    assert tool.nc2zarr(*check).ok() and json.loads((tmp_path / "c.json").read_text())["reproducible"] is True
    (tmp_path / "c.json").unlink()
    PLANTS[plant](fmt, copy / where / "tas")
    done = tool.nc2zarr(*check)
    assert done.status == 3, str(done)
    found = json.loads(done.out)["verification"]["differences"]
    assert any(word in text for text in found for word in WORDS[plant].split("|")), found
    certificate = json.loads((tmp_path / "c.json").read_text())
    assert certificate["reproducible"] is False and certificate["differences"] == found
    if plant == "order":
        return
    # Whoever opens it is told, and gets what consolidated metadata say, and what they do not list.
    warned = rechunked.check_document(tool.run("rechunk", "--json", "--digest", copy).ok().out)
    assert any(word in text for text in warned["warnings"] for word in WORDS[plant].split("|")), warned["warnings"]
    before = rechunked.digests(store)
    after = {row["name"]: (row["type"], row["digest"]) for row in warned["digests"]}
    assert {name: after[name] for name in before} == before
    report = rechunked.run(copy, tmp_path / "t.zarr", "--verify", "full")
    assert report["warnings"], report
    extra = {"extra_array": "extra", "extra_group": "more"}.get(plant)
    seen = rechunked.listing(tmp_path / "t.zarr")
    assert set(seen) == set(rechunked.listing(store)) | ({f"{where}/{extra}".strip("/")} if extra else set())


def test_consolidated_metadata_that_cannot_be_read(made, tmp_path):
    fmt, source, store = made
    copy = tmp_path / "s.zarr"
    shutil.copytree(store, copy)
    if fmt == 2:
        (copy / ".zmetadata").write_text("{")
    else:
        root = json.loads((copy / "zarr.json").read_text())
        root["consolidated_metadata"]["metadata"]["tas"]["shape"] = "x"
        (copy / "zarr.json").write_text(json.dumps(root))
    done = tool.nc2zarr("--check", "--json", source, copy)
    assert done.status == 3 and "consolidated metadata cannot be read" in json.loads(done.out)["verification"]["differences"][0]
    assert any("consolidated metadata cannot be read" in w for w in tool.run("rechunk", "--digest", copy).ok().warnings)


def test_consolidated_metadata_of_a_group(tmp_path):
    """A group below the root has its own: what opens that group reads them."""
    root = zarr.create_group(str(tmp_path / "s"))
    root.create_group("g").create_array("a", shape=(4,), chunks=(2,), dtype="i2")[...] = 1
    zarr.consolidate_metadata(str(tmp_path / "s" / "g"))
    assert not tool.run("rechunk", "--digest", tmp_path / "s").ok().warnings
    array_json(tmp_path / "s/g/b", 3)
    edit(tmp_path / "s/g/a/zarr.json", shape=[3])
    told = tool.run("rechunk", "--digest", tmp_path / "s").ok().warnings
    assert len(told) == 2 and all("of group g" in text for text in told), told


@pytest.mark.parametrize("fmt", FORMATS)
def test_other_words_for_the_same(tmp_path, fmt):
    """Defaults that one writer leaves out and another does not are no disagreement."""
    root = zarr.create_group(str(tmp_path / "s"), zarr_format=fmt)
    root.create_array("a", shape=(4,), chunks=(2,), dtype="f4", fill_value=float("nan"), attributes={"x": float("nan")})
    zarr.consolidate_metadata(str(tmp_path / "s"))
    own = document(fmt, tmp_path / "s/a")
    was = json.loads(own.read_text())
    if fmt == 2:
        was["filters"] = []
        was.pop("dimension_separator", None)
        was["_nczarr"] = {"storage": "chunked"}
    else:
        was.pop("storage_transformers", None)
        was["codecs"][1]["configuration"].pop("checksum", None)
        was["chunk_key_encoding"] = {"name": "default"}
    own.write_text(json.dumps(was))
    assert not tool.run("rechunk", "--digest", tmp_path / "s").ok().warnings
    rechunked.run(tmp_path / "s", tmp_path / "t", "--verify", "full")
    assert read(tmp_path / "t/a").shape == (4,)
