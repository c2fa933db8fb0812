"""Runs rechunk and holds what it says of itself against its contract and against zarr-python."""

import json
import math
import os
from pathlib import Path

import jsonschema
import numpy as np
import zarr

from . import paths, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "rechunk.json").read_text())


def check_document(text):
    document = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def arrays(document):
    return {a["name"]: a for a in document["arrays"]}


def check_counts(document, resumed=False):
    """The plan is arithmetic that holds, and was kept; RESUMED: a part of it was done before."""
    for name, a in arrays(document).items():
        if a["before"]["codec"] == "not known":
            assert a["plan"]["kind"] == "copy", name
            continue
        for side in ("before", "after"):
            grid = [-(-n // c) for n, c in zip(a["shape"], a[side]["chunks"])]
            assert a[side]["nchunks"] == math.prod(grid), (name, side)
        plan, planned = a["plan"], a["planned"]
        assert plan["gap"] is None or plan["gap"] >= 0, (name, plan)
        assert sorted(plan["order"]) == list(range(len(a["shape"]))), (name, plan)
        if plan["kind"] in ("copy", "sweep"):
            assert planned["chunk_reads"] <= a["before"]["nchunks"], name
            assert planned["scratch_nbytes"] == 0, name
        if plan["kind"] == "copy":
            assert planned["chunk_decodes"] in (0, planned["chunk_reads"]), name  # the latter where somebody looks
        else:
            assert planned["element_nbytes_written"] == a["decoded_nbytes"], name
            assert planned["chunk_writes"] == a["after"]["nchunks"], name
        if document["target"]["written"] and resumed:
            assert all(a["counted"][key] <= planned[key] for key in planned), (name, planned, a["counted"])
        elif document["target"]["written"]:
            assert a["counted"] == planned, (name, plan)


def run(source, target, *options, **kw):
    """Rechunks; returns the document of --json."""
    done = tool.run("rechunk", "--json", *options, source, target, **kw).ok()
    document = check_document(done.out)
    assert document["outcome"] == ("planned" if "--dry-run" in options else "done")
    check_counts(document, "--resume" in options)
    if not paths.SANITIZED:
        assert document["memory"]["peak_nbytes"] <= document["memory"]["limit_nbytes"]
    return document


def digests(store, **kw):
    """{array: (type, digest)}"""
    document = check_document(tool.run("rechunk", "--json", "--digest", store, **kw).ok().out)
    return {row["name"]: (row["type"], row["digest"]) for row in document["digests"]}


def plain(value):
    """VALUE so that equality means the same bits."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OT":
            return [str(x) for x in value.ravel()]
        return (
            value.dtype.newbyteorder("<").str,
            np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<")).tobytes(),
        )
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return repr(value)


def node_of(node):
    if not isinstance(node, zarr.Array):
        return {"attributes": plain(dict(node.attrs))}
    meta = node.metadata
    names = getattr(meta, "dimension_names", None)
    found = {
        "attributes": plain(dict(node.attrs)),
        "shape": node.shape,
        "fill": plain(np.asarray(node.fill_value)),
        "values": plain(np.asarray(node[...], node.dtype)),
    }
    if names and any(names):
        found["names"] = tuple(names)
    return found


def listing(store):
    """{path: everything about the node but its layout}, as zarr-python reads it."""
    root = zarr.open(str(store), mode="r")
    found = {"": node_of(root)}
    if isinstance(root, zarr.Group):
        found.update({path: node_of(node) for path, node in root.members(max_depth=None)})
    return found


def files(folder):
    """{path: bytes} of everything below."""
    folder = Path(folder)
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def names_below(folder):
    return sorted(
        os.path.relpath(os.path.join(at, name), folder) for at, dirs, found in os.walk(folder) for name in dirs + found
    )
