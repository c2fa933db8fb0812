"""Makes the roofline's chunks a store, so that they can be compared like any other contender's."""

import json

TYPES = {"f4": "float32", "i2": "int16"}


def regular(lengths):
    return {"name": "regular", "configuration": {"chunk_shape": list(lengths)}}


def codecs(dtype, chunks=None):
    """The chain of one chunk; of shards of CHUNKS if these are given."""
    blosc = {"cname": "zstd", "clevel": 2, "shuffle": "shuffle", "typesize": int(dtype[1]), "blocksize": 0}
    chain = [{"name": "bytes", "configuration": {"endian": "little"}}]
    if not chunks:
        return [*chain, {"name": "blosc", "configuration": blosc}]
    inner = {"chunk_shape": list(chunks), "codecs": codecs(dtype), "index_location": "end"}
    return [{"name": "sharding_indexed", "configuration": {**inner, "index_codecs": [*chain, {"name": "crc32c"}]}}]


def write(store, variables, shape, chunks, shards=()):
    """VARIABLES: pairs of name and type, all of the same shape."""
    with open(f"{store}/zarr.json", "w") as f:
        json.dump({"zarr_format": 3, "node_type": "group", "attributes": {}}, f)
    for name, dtype in variables:
        meta = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(shape),
            "data_type": TYPES[dtype],
            "fill_value": 0,
            "attributes": {},
            "chunk_grid": regular(shards or chunks),
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": codecs(dtype, chunks if shards else None),
        }
        with open(f"{store}/{name}/zarr.json", "w") as f:
            json.dump(meta, f)
