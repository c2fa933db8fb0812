"""Arrays of Zarr 3 whose chunks differ in length along a dimension, written without a library that knows them."""

import itertools
import json
from pathlib import Path

import numpy as np

ZARR_FILL = -1


def cut(rng, length, longest):
    """LENGTH as a sum of random lengths."""
    lengths = []
    while sum(lengths) < length:
        lengths.append(rng.randint(1, longest))
    lengths[-1] -= sum(lengths) - length
    return [n for n in lengths if n > 0]


def runs(lengths):
    """As zarr-python writes them: [31, [28, 2], 31]."""
    groups = [(n, len(list(same))) for n, same in itertools.groupby(lengths)]
    return [n if count == 1 else [n, count] for n, count in groups]


def document(values, lengths, names=None):
    """LENGTHS has of each dimension a list, or one length for all."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(values.shape),
        "data_type": values.dtype.name,
        "chunk_grid": {
            "name": "rectilinear",
            "configuration": {
                "kind": "inline",
                "chunk_shapes": [n if isinstance(n, int) else runs(n) for n in lengths],
            },
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": ZARR_FILL,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {},
        **({"dimension_names": names} if names else {}),
    }


def spans(length, lengths):
    """(start, stored length) of each chunk along a dimension."""
    if isinstance(lengths, int):
        return [(at, lengths) for at in range(0, length, lengths)]
    starts = [sum(lengths[:k]) for k in range(len(lengths))]
    return [(at, n) for at, n in zip(starts, lengths) if at < length]


def write(store, name, values, lengths, names=None):
    """Every chunk, uncompressed; what reaches past the array is zeros."""
    folder = Path(store) / name
    folder.mkdir(parents=True)
    (folder / "zarr.json").write_text(json.dumps(document(values, lengths, names)))
    root = Path(store) / "zarr.json"
    if not root.exists():
        root.write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))
    along = [list(enumerate(spans(n, ls))) for n, ls in zip(values.shape, lengths)]
    for chunk in itertools.product(*along):
        whole = np.zeros([n for _, (_, n) in chunk], values.dtype.newbyteorder("<"))
        part = values[tuple(slice(at, at + n) for _, (at, n) in chunk)]
        whole[tuple(slice(0, n) for n in part.shape)] = part
        path = folder.joinpath("c", *(str(k) for k, _ in chunk))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(whole.tobytes())
