"""
Random hierarchies and random options: every array, attribute and group is in the
target as zarr-python sees it in the source, or the tool says in a sentence why not.
"""

import random
import warnings

import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr
import zarr.codecs
import zarr.codecs.numcodecs as nc
from zarr.dtype import VariableLengthBytes

from support import paths, rechunked, tool

BATCH = 10
BATCHES = paths.tries(24, 60, 300)

NAMES = ["a", "0", "1", "ü", "a b", "x.y", "-n", "a:b", "row", "1.0", "c", "zarr", "A", "100%", "a,b", "__x", "日本", "s=1"]
TYPES = ["?", "i1", "u2", ">i4", "i8", "f2", "f4", ">f8", "c8", "S3", "U2", "V5", "M8[s]", "m8[10ns]", "str", "bytes"]
ATTRIBUTES = [1, 2.5, -0.0, "t", "ü", [1, 2], [], {}, {"z": 1, "a": [None, True]}, None, 2**60, ""]


def attributes(rng):
    return {rng.choice("zyxab") + str(i): rng.choice(ATTRIBUTES) for i in range(rng.choice([0, 0, 1, 3]))}


def elements(rng, dtype, shape):
    n = int(np.prod(shape))
    ints = np.array([rng.choice([0, 0, rng.randrange(120)]) for _ in range(n)], "i8")
    if dtype in ("str", "bytes"):
        words = ["", "ä", "x" * 40, "b\0c"]
        out = np.empty(n, object)
        out[:] = [words[i % 4] if dtype == "str" else words[i % 4].encode() for i in ints]
        return out.reshape(shape)
    t = np.dtype(dtype)
    if t.kind in "mM":
        return ints.view(t).reshape(shape)
    if t.kind == "V":
        return np.frombuffer(b"".join(bytes([i % 256]) * t.itemsize for i in ints), t).reshape(shape)
    if t.kind in "SU":
        return np.array([str(i) if i else "" for i in ints], t).reshape(shape)
    values = ints.astype(t)
    if t.kind in "fc" and n:
        values[:: rng.randrange(1, 9)] = rng.choice([np.nan, -0.0, np.inf])
    return values.reshape(shape)


def codecs_of(rng, fmt, t, chunks, shape):
    if fmt == 2:
        kw = {"compressors": rng.choice([None, numcodecs.Zstd(1), numcodecs.Blosc("lz4", 1, 1), numcodecs.CRC32(), "auto"])}
        if t is not None and t.kind in "iu" and rng.random() < 0.4:
            kw["filters"] = rng.choice([[numcodecs.Delta(t.str)], [numcodecs.Shuffle(t.itemsize), numcodecs.Adler32()]])
        if t is not None:
            kw["order"] = rng.choice("CF")
        if rng.random() < 0.1:
            kw["compressors"] = numcodecs.LZMA()  # not known here
        return kw
    known = [None, zarr.codecs.ZstdCodec(level=1), zarr.codecs.GzipCodec(level=1), zarr.codecs.Crc32cCodec(), "auto"]
    kw = {"compressors": rng.choice(known)}
    if rng.random() < 0.1:
        kw["compressors"] = [nc.LZMA()]
    if t is not None and len(shape) > 1 and rng.random() < 0.3:
        kw["filters"] = [zarr.codecs.TransposeCodec(order=tuple(reversed(range(len(shape)))))]
    # zarr-python reads no shards of raw bytes: their fill value has no hash.
    if t is not None and t.kind != "V" and shape and all(chunks) and rng.random() < 0.25:
        kw["shards"] = tuple(c * rng.choice([1, 2]) for c in chunks)
    return kw


def make_array(rng, path, fmt):
    rank = rng.choice([0, 1, 1, 2, 2, 3])
    shape = tuple(rng.choice([0, 1, 3, 5, 8]) if rank > 1 else rng.choice([1, 4, 9]) for _ in range(rank))
    chunks = tuple(rng.choice([1, 2, 3, max(1, n)]) for n in shape)
    dtype = rng.choice(TYPES)
    values = elements(rng, dtype, shape)
    if rng.random() < 0.12 and np.dtype("O") != values.dtype and values.dtype.kind in "iuf" and shape:
        metadata = {"shape": shape, "chunks": chunks, "dtype": values.dtype.newbyteorder("<").str}
        if fmt == 3:
            grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
            metadata = {"shape": shape, "chunk_grid": grid, "data_type": values.dtype.name}
        where = {"driver": "file", "path": f"{path}/"}
        spec = {"driver": "zarr3" if fmt == 3 else "zarr", "kvstore": where, "metadata": metadata, "create": True}
        return tensorstore.open(spec).result().write(values).result()
    t = None if dtype in ("str", "bytes") else np.dtype(dtype)
    kw = codecs_of(rng, fmt, t, chunks, shape)
    extra = attributes(rng)
    if rng.random() < 0.5:
        dims = [f"d{i}" for i in range(rank)]
        if fmt == 3:
            kw["dimension_names"] = dims
        else:
            extra["_ARRAY_DIMENSIONS"] = dims
    if t is not None and t.kind == "V":
        kw["fill_value"] = np.zeros((), t)[()]
    elif t is not None and t.kind in "iuf" and rng.random() < 0.5:
        kw["fill_value"] = t.type(rng.choice([0, 1, 7]))
    z = zarr.create_array(
        str(path),
        shape=shape,
        chunks=chunks,
        dtype={"str": str, "bytes": VariableLengthBytes()}.get(dtype, t),
        zarr_format=fmt,
        attributes=extra,
        **kw,
    )
    if rng.random() < 0.9:
        z[...] = values


def make_below(rng, folder, fmt, depth, budget):
    for name in rng.sample(NAMES, rng.randrange(1, 4)):
        if budget[0] <= 0:
            return
        budget[0] -= 1
        at = folder / name
        if depth < 3 and rng.random() < 0.45:
            if rng.random() < 0.6:
                zarr.create_group(str(at), zarr_format=fmt, attributes=attributes(rng))
            make_below(rng, at, fmt, depth + 1, budget)
        else:
            make_array(rng, at, fmt)


def make(rng, root):
    fmt = rng.choice([2, 3])
    if rng.random() < 0.1:
        make_array(rng, root, fmt)
        return fmt
    zarr.create_group(str(root), zarr_format=fmt, attributes=attributes(rng))
    consolidated = rng.choice(["no", "yes", "old"])
    make_below(rng, root, fmt, 0, [rng.randrange(1, 6)])
    if consolidated != "no":
        zarr.consolidate_metadata(str(root))
    if consolidated == "old":
        make_below(rng, root / "late", fmt, 1, [2])
    return fmt


def look(root):
    """{path: all that zarr-python says of the node}, through every document, whatever is consolidated."""
    found = {}
    for name in ("zarr.json", ".zarray", ".zgroup"):
        for document in root.rglob(name):
            at = document.parent
            node = zarr.open(str(at), mode="r", use_consolidated=False) if name != ".zarray" else zarr.open_array(str(at), mode="r")
            attrs = dict(node.attrs)
            names = attrs.pop("_ARRAY_DIMENSIONS", None)
            entry = {"attributes": rechunked.plain(attrs), "order": list(attrs)}
            if isinstance(node, zarr.Array):
                names = getattr(node.metadata, "dimension_names", None) or names
                entry["names"] = list(names) if names and any(names) else None
                entry["shape"] = node.shape
                entry["values"] = rechunked.plain(np.asarray(node[...], None if node.dtype.kind == "T" else node.dtype))
                if node.fill_value is not None:
                    entry["fill"] = rechunked.plain(np.asarray(node.fill_value))
            path = str(at.relative_to(root))
            found["" if path == "." else path] = entry
    return found


def escape(name):
    return "".join("\\" + c if c in ":,=*\\" else c for c in name)


def options_for(rng, seen, fmt):
    arrays = {path: node["shape"] for path, node in seen.items() if "shape" in node}
    options = []
    if rng.random() < 0.6:
        for path in rng.sample(sorted(arrays), min(len(arrays), rng.randrange(1, 3))):
            if arrays[path]:
                shape = "x".join(str(rng.choice([1, 2, 3, 4, 10])) for _ in arrays[path])
                options += ["--chunks", f"/{escape(path)}:{shape}"]
    elif rng.random() < 0.5:
        options += ["--chunks", rng.choice(["auto", "auto:1KiB", "source"])]
    if rng.random() < 0.5:
        codec = rng.choice(["none", "zstd:1", "gzip:1", "blosc", "same"])
        path = rng.choice(sorted(arrays))
        options += ["--codec", codec if rng.random() < 0.5 else f"/{escape(path)}:{codec}"]
    if rng.random() < 0.4:
        options += ["--zarr-format", rng.choice(["2", "3"])]
    if rng.random() < 0.2 and not any("|V5" in str(node.get("values", "")) for node in seen.values()):
        options += ["--shards", rng.choice(["auto", "none", "auto:1KiB"])]
    if rng.random() < 0.3:
        options += ["--threads", rng.choice("123")]
    chosen = set(arrays)
    if rng.random() < 0.2:
        chosen = set(rng.sample(sorted(arrays), rng.randrange(1, len(arrays) + 1)))
        options += ["--variable", ",".join("/" + escape(path) for path in sorted(chosen))]
    return options, chosen


def without_missing(nodes):
    """Each version has another place for the missing value; test_missing_stays.py compares what readers see."""
    for node in nodes.values():
        node.pop("fill", None)
        node["attributes"].pop("_FillValue", None)
        node["order"] = [name for name in node["order"] if name != "_FillValue"]
    return nodes


def check(seed, folder):
    rng = random.Random(seed)
    source, target = folder / f"s{seed}", folder / f"t{seed}"
    fmt = make(rng, source)
    want = look(source)
    if not any("shape" in node for node in want.values()):
        return tool.run("rechunk", source, target)
    options, chosen = options_for(rng, want, fmt)
    done = tool.run("rechunk", "--verify", rng.choice(["full", "sample"]), *options, source, target)
    said = f"seed {seed}, {options}\n{done}"
    if done.status != 0:
        lines = [line for line in done.err.splitlines() if "warning" not in line]
        assert done.status in (1, 2) and len(lines) == 1 and not target.exists(), said
        return done
    got = look(target)
    if (target / "zarr.json").exists() != (fmt == 3):
        want, got = (without_missing(nodes) for nodes in (want, got))
    for path, node in want.items():
        if "shape" in node and path in chosen:
            more = {k: v for k, v in got[path].items() if k in node}
            assert more == node, f"{path!r}: {said}"
        elif "shape" not in node and "--variable" not in options:
            assert got[path] == node, f"{path!r}: {said}"
    assert {p for p, n in got.items() if "shape" in n} == chosen, said
    return done


@pytest.mark.parametrize("batch", range(BATCHES))
def test_everything_is_there_or_refused(tmp_path, batch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = [check(batch * BATCH + i, tmp_path).status for i in range(BATCH)]
    assert done.count(0) >= BATCH // 3, done
