"""Arrays of Zarr 3 whose chunks differ in length along a dimension, written without a library that knows them."""

import calendar
import itertools
import json
from pathlib import Path

import netCDF4
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


def months(folder, n=4, chunk=None, first=1, **kw):
    """Files of N months of 2001, each a chunk in time; CHUNK: the length of all their chunks."""
    paths = []
    for month in range(first, first + n):
        begin = sum(calendar.monthrange(2001, k)[1] for k in range(1, month))
        days = calendar.monthrange(2001, month)[1]
        paths.append(month_file(folder / f"{month:02}.nc", begin, days, chunk or days, bool(chunk), **kw))
    return paths


def month_file(path, begin, days, chunk, unlimited=False, columns=3, add=0, **kw):
    """DAYS days from BEGIN on, in chunks of CHUNK by COLUMNS; 0: contiguous.  Values are places, and ADD."""
    kw = {"zlib": True, "shuffle": True, "chunksizes": (chunk, columns), **kw} if chunk else {**kw, "contiguous": True}
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("time", None if unlimited else days)
        nc.createDimension("x", 6)
        nc.createVariable("time", "f8", ("time",))[:] = np.arange(begin, begin + days)
        nc["time"].units = "days since 2001-01-01"
        nc.createVariable("tas", "f4", ("time", "x"), **kw)[:] = month_values(begin, days) + add
    return path


def month_values(begin, days):
    return np.arange(begin * 6, (begin + days) * 6, dtype="f4").reshape(days, 6)


def lengths_of(store, name, dim=0):
    """The lengths of chunks along a dimension as the document lists them; a regular grid has a number."""
    configuration = json.loads((Path(store) / name / "zarr.json").read_text())["chunk_grid"]["configuration"]
    return configuration.get("chunk_shapes", configuration.get("chunk_shape"))[dim]
