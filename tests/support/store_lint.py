"""Is a store on disk well formed, by the letter of both specifications?

Works on the files alone, without any reader: readers forgive what others fail on.
"""

import json
import math
from pathlib import Path

V3_ARRAY = {
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "storage_transformers",
    "dimension_names",
}
V2_ARRAY = {
    "zarr_format",
    "shape",
    "chunks",
    "dtype",
    "compressor",
    "fill_value",
    "order",
    "filters",
    "dimension_separator",
}


def strict_json(path):
    def refuse(token):
        raise ValueError(f"{token} is not JSON")

    def pairs(items):
        keys = [k for k, _ in items]
        if len(set(keys)) != len(keys):
            raise ValueError("a member appears twice")
        return dict(items)

    return json.loads(path.read_bytes().decode("utf-8"), parse_constant=refuse, object_pairs_hook=pairs)


def same(a, b):
    """Equality that tells 1 from 1.0 and keeps order of members."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


class Lint:
    def __init__(self, root):
        self.root, self.problems, self.nodes = Path(root), [], {}

    def say(self, where, what):
        self.problems.append(f"{where}: {what}")

    def load(self, path):
        try:
            return strict_json(path)
        except (OSError, ValueError) as e:
            self.say(path.relative_to(self.root), str(e))
            return None

    def chunk_keys(self, folder, where, shape, chunk, prefix, separator):
        """Every other file below an array is a chunk inside its grid."""
        grid = [math.ceil(n / c) for n, c in zip(shape, chunk)]
        for path in folder.rglob("*"):
            if path.is_dir():
                continue
            key = str(path.relative_to(folder))
            if key in ("zarr.json", ".zarray", ".zattrs"):
                continue
            parts = key.split(separator)
            if prefix:
                if parts[0] != prefix:
                    self.say(where, f"{key} is no chunk")
                    continue
                parts = parts[1:]
            elif not shape:
                parts = [] if parts == ["0"] else parts
            inside = len(parts) == len(grid) and all(
                p.isdecimal() and str(int(p)) == p and int(p) < g for p, g in zip(parts, grid)
            )
            if not inside:
                self.say(where, f"{key} is no chunk of a {grid} grid")

    def v3(self, folder):
        where = str(folder.relative_to(self.root))
        meta = self.load(folder / "zarr.json")
        if meta is None:
            return
        self.nodes[where] = meta
        if meta.get("zarr_format") != 3 or meta.get("node_type") not in ("group", "array"):
            return self.say(where, "not a version 3 node")
        if meta["node_type"] == "group":
            if not set(meta) <= {"zarr_format", "node_type", "attributes", "consolidated_metadata"}:
                self.say(where, f"members {sorted(meta)}")
            for child in sorted(folder.iterdir()):
                if child.is_dir() and (child / "zarr.json").exists():
                    self.v3(child)
                elif child.name != "zarr.json":
                    self.say(where, f"{child.name} belongs to no node")
            return
        missing = {"shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"} - set(meta)
        if missing or not set(meta) <= V3_ARRAY:
            return self.say(where, f"members {sorted(meta)}")
        shape = meta["shape"]
        if len(meta.get("dimension_names") or []) != len(shape):
            self.say(where, f"dimension_names {meta.get('dimension_names')} for shape {shape}")
        chunk = meta["chunk_grid"]["configuration"]["chunk_shape"]
        if len(chunk) != len(shape) or any(c < 1 for c in chunk):
            self.say(where, f"chunk shape {chunk}")
        if meta["fill_value"] is None:
            self.say(where, "fill_value is null")
        self.codecs(where, meta["codecs"], chunk)
        encoding = meta["chunk_key_encoding"]
        separator = encoding.get("configuration", {}).get("separator", "/")
        self.chunk_keys(folder, where, shape, chunk, "c" if encoding["name"] == "default" else "", separator)

    def codecs(self, where, codecs, chunk):
        if not all(isinstance(c, dict) and "name" in c for c in codecs):
            return self.say(where, "a codec is no object")
        names = [c["name"] for c in codecs]
        if sum(n in ("bytes", "vlen-utf8", "sharding_indexed") for n in names) != 1:
            self.say(where, f"codecs {names}: not one array to bytes codec")
        for c in codecs:
            conf = c.get("configuration", {})
            if c["name"] == "sharding_indexed":
                inner = conf["chunk_shape"]
                if len(inner) != len(chunk) or any(o % i for o, i in zip(chunk, inner)):
                    self.say(where, f"shard {chunk} is no multiple of chunk {inner}")
                self.codecs(where, conf["codecs"], inner)
            if c["name"] == "blosc" and conf.get("shuffle") != "noshuffle" and not conf.get("typesize"):
                self.say(where, "blosc without typesize")

    def v2(self, folder):
        where = str(folder.relative_to(self.root))
        attrs = self.load(folder / ".zattrs") if (folder / ".zattrs").exists() else {}
        if (folder / ".zgroup").exists():
            meta = self.load(folder / ".zgroup")
            if meta != {"zarr_format": 2}:
                self.say(where, f".zgroup is {meta}")
            self.nodes[where] = ("group", meta, attrs)
            for child in sorted(folder.iterdir()):
                if child.is_dir() and ((child / ".zgroup").exists() or (child / ".zarray").exists()):
                    self.v2(child)
                elif child.name not in (".zgroup", ".zattrs", ".zmetadata"):
                    self.say(where, f"{child.name} belongs to no node")
            return
        meta = self.load(folder / ".zarray")
        self.nodes[where] = ("array", meta, attrs)
        if meta is None:
            return
        if not set(meta) <= V2_ARRAY or not V2_ARRAY - {"dimension_separator"} <= set(meta):
            return self.say(where, f"members {sorted(meta)}")
        if meta["filters"] == []:
            self.say(where, "filters [] (null is right)")
        if len(meta["chunks"]) != len(meta["shape"]) or any(c < 1 for c in meta["chunks"]):
            self.say(where, f"chunks {meta['chunks']}")
        if len((attrs or {}).get("_ARRAY_DIMENSIONS", [None])) != len(meta["shape"]):
            self.say(where, "_ARRAY_DIMENSIONS does not fit")
        self.chunk_keys(folder, where, meta["shape"], meta["chunks"], "", meta.get("dimension_separator", "."))

    def consolidated_v3(self):
        found = self.nodes["."].get("consolidated_metadata")
        if not found:
            return self.say("/", "no consolidated metadata")
        if found.get("kind") != "inline" or found.get("must_understand") is not False:
            self.say("/", "consolidated_metadata's kind or must_understand")
        want = {k: v for k, v in self.nodes.items() if k != "."}
        if set(found["metadata"]) != set(want):
            return self.say("/", f"consolidated: {sorted(set(found['metadata']) ^ set(want))}")
        for key, node in found["metadata"].items():
            plain = {k: v for k, v in node.items() if k != "consolidated_metadata"}
            if not same(plain, {k: v for k, v in want[key].items() if k != "consolidated_metadata"}):
                self.say(key, "consolidated metadata differs from the node's own")

    def consolidated_v2(self):
        found = self.load(self.root / ".zmetadata") if (self.root / ".zmetadata").exists() else None
        if found is None:
            return self.say("/", "no consolidated metadata")
        want = {}
        for where, (kind, meta, attrs) in self.nodes.items():
            prefix = "" if where == "." else where + "/"
            want[prefix + (".zgroup" if kind == "group" else ".zarray")] = meta
            if (self.root / where / ".zattrs").exists():
                want[prefix + ".zattrs"] = attrs
        if found.get("zarr_consolidated_format") != 1 or set(found["metadata"]) != set(want):
            return self.say("/", f"consolidated: {sorted(set(found['metadata']) ^ set(want))}")
        for key in want:
            if not same(found["metadata"][key], want[key]):
                self.say(key, "consolidated metadata differs from the node's own")


def lint(root, consolidated=True):
    """Problems of the store at ROOT, as sentences."""
    check = Lint(root)
    version3 = (check.root / "zarr.json").exists()
    if not version3 and not (check.root / ".zgroup").exists():
        return [f"{root}: no root group"]
    (check.v3 if version3 else check.v2)(check.root)
    if not check.problems and consolidated:
        (check.consolidated_v3 if version3 else check.consolidated_v2)()
    return check.problems
