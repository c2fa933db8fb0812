"""The content of a store, whatever version of a compressor wrote it: each chunk's bytes, decompressed."""

import hashlib
import json
import re
import struct

import numcodecs
import numpy as np

COMPRESSORS = ("gzip", "zstd", "blosc", "zlib", "bz2", "lz4")
# Codecs between compressors, whose output depends only on the data.
PLAIN = ("shuffle", "crc32", "adler32", "fletcher32", "crc32c")


def undo(codec, data):
    """DATA without a bytes->bytes codec of format 3; None: not one of these."""
    name, configuration = codec["name"].removeprefix("numcodecs."), dict(codec.get("configuration") or {})
    if name == "crc32c":
        return data[4:] if configuration.get("location") == "start" else data[:-4]
    if name == "blosc":
        configuration = {}
    if name == "zstd":
        configuration.pop("checksum", None)
    if name in COMPRESSORS + PLAIN:
        return bytes(numcodecs.get_codec({"id": name, **configuration}).decode(data))
    return None


def digest_v3(codecs, shape, data, h):
    """Adds a chunk of SHAPE: of a shard, each inner chunk in C order."""
    for codec in reversed(codecs):
        undone = undo(codec, data)
        if undone is not None:
            data = undone
        elif codec["name"] == "sharding_indexed":
            return digest_shard(codec["configuration"], shape, data, h)
        else:
            break
    h.update(struct.pack("<Q", len(data)) + data)


def digest_shard(c, shape, data, h):
    count = int(np.prod([n // m for n, m in zip(shape, c["chunk_shape"])], dtype=np.int64))
    size = 16 * count + 4 * sum(k["name"] == "crc32c" for k in c["index_codecs"])
    at_start = c.get("index_location") == "start"
    big = c["index_codecs"][0].get("configuration", {}).get("endian") == "big"
    index = (data[:size] if at_start else data[-size:])[: 16 * count]
    for offset, nbytes in np.frombuffer(index, ">u8" if big else "<u8").reshape(-1, 2).tolist():
        if offset == 2**64 - 1:
            h.update(b"missing")
        else:
            digest_v3(c["codecs"], c["chunk_shape"], data[offset : offset + nbytes], h)


def digest_v2(document, data, h):
    codecs = [*(document.get("filters") or []), *([document["compressor"]] if document.get("compressor") else [])]
    for codec in reversed(codecs):
        if codec["id"] not in COMPRESSORS + PLAIN:
            break
        data = bytes(numcodecs.get_codec(codec).decode(data))
    h.update(struct.pack("<Q", len(data)) + data)


def arrays(root):
    """Folder of each array -> its document."""
    found = {}
    for path in root.rglob("*"):
        if path.name in ("zarr.json", ".zarray"):
            document = json.loads(path.read_text())
            if path.name == ".zarray" or document.get("node_type") == "array":
                found[path.parent] = document
    return found


def data_of(path):
    """Bytes of a file, where they do not tell of this machine: a ledger's lines have a file's folder and time."""
    data = path.read_bytes()
    if path.name != "ledger":
        return data
    lines = [line.split(b" ", 1)[1] for line in data.splitlines()]  # without the checksum of a line
    return re.sub(rb'(?<="path":")[^"]*/|,"mtime_ns":\d+', b"", b"\n".join(lines))


def digest(root):
    """Hash of everything below ROOT: documents as they are, chunks decompressed."""
    h, known = hashlib.sha256(), arrays(root)
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        h.update(str(path.relative_to(root)).encode() + b"\0")
        data, owner = data_of(path), next((p for p in path.parents if p in known), None)
        if owner is None or path.name in ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"):
            h.update(data)
            continue
        document = known[owner]
        try:
            if document["zarr_format"] == 3:
                digest_v3(document["codecs"], document["chunk_grid"]["configuration"]["chunk_shape"], data, h)
            else:
                digest_v2(document, data, h)
        except Exception:  # what nobody here can decode is compared as it is
            h.update(b"as it is" + data)
    return h.hexdigest()[:16]


def listing(root):
    """{name: bytes} of all below ROOT."""
    return {str(p.relative_to(root)): data_of(p) if p.is_file() else None for p in root.rglob("*")}
