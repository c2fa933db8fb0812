"""Lets zarr-python 3.4 or later work on stores whose chunks differ in length:

    rectilinear_peer.py make SEED FOLDER       stores FOLDER/cut and FOLDER/plain, the same random arrays; the first in such chunks
    rectilinear_peer.py compare STORE STORE... the names of arrays that have other values in one than in the first
    rectilinear_peer.py record STORE LOG       reads rows of the array "v", recorded by chunkmill
"""

import random
import sys
import warnings

import numpy as np
import zarr

warnings.simplefilter("ignore")
zarr.config.set({"array.rectilinear_chunks": True})

TYPES = ("i1", "u2", "i4", "f4", "f8", "M8[s]")
CODECS = ("auto", None, zarr.codecs.GzipCodec(), zarr.codecs.BloscCodec(cname="lz4"), zarr.codecs.ZstdCodec(level=1, checksum=True))


def cut(rng, length, multiple=1):
    lengths = []
    while sum(lengths) < length:
        lengths += [multiple * rng.randint(1, 7)] * rng.choice((1, 1, 1, 4))
    return lengths


def whole(lengths, length):
    """Without what lies behind LENGTH, which zarr-python takes of no one who creates an array."""
    lengths = list(lengths)
    while sum(lengths) - lengths[-1] >= length:
        lengths.pop()
    return lengths[:-1] + [length - sum(lengths[:-1])]


def make_array(rng, cut_group, plain_group, name):
    rank = rng.randint(1, 3)
    shape = [rng.randint(1, 40 if rank < 3 else 12) for _ in range(rank)]
    text = rng.random() < 0.15
    values = np.random.default_rng(rng.randrange(1 << 30)).integers(0, 120, shape)
    values = values.astype(str).astype(np.dtypes.StringDType()) if text else values.astype(rng.choice(TYPES))
    kw = {"dtype": values.dtype, "fill_value": "" if text else None, "dimension_names": [f"{name}{j}" for j in range(rank)]}
    inner = [rng.randint(1, 3) for _ in shape]
    if not text:
        kw["compressors"] = rng.choice(CODECS)
    if rng.random() < 0.25 and not text:
        shape = [-(-n // c) * c for n, c in zip(shape, inner)]
        grown = np.zeros(shape, values.dtype)
        grown[tuple(slice(0, n) for n in values.shape)] = values
        values = grown
        lengths = [[c * n for n in whole(cut(rng, s // c), s // c)] for s, c in zip(shape, inner)]
        a = cut_group.create_array(name, shape=shape, chunks=inner, shards=lengths, **kw)
    else:
        lengths = [whole(cut(rng, n), n) if rng.random() < 0.7 else min(n, 5) for n in shape]
        a = cut_group.create_array(name, shape=shape, chunks=lengths, **kw)
    a[...] = values
    if rng.random() < 0.3 and shape[0] > 1:
        shape[0] = rng.randint(1, shape[0])
        a.resize(shape)
        values = values[: shape[0]]
    plain_group.create_array(name, shape=shape, chunks=shape, **{**kw, "compressors": "auto"})[...] = values


def make(seed, folder):
    rng = random.Random(int(seed))
    groups = [zarr.create_group(f"{folder}/{name}") for name in ("cut", "plain")]
    for k in range(rng.randint(1, 4)):
        make_array(rng, *groups, f"v{k}")
    if rng.random() < 0.5:
        zarr.consolidate_metadata(f"{folder}/cut")


def compare(one, *others):
    a = dict(zarr.open_group(one, mode="r").arrays())
    for other in others:
        b = dict(zarr.open_group(other, mode="r").arrays())
        same = {n for n in a if n in b and a[n].shape == b[n].shape and np.array_equal(a[n][...], b[n][...])}
        print(*sorted((set(a) | set(b)) - same))


def record(path, log):
    import chunkmill

    array = zarr.open_group(chunkmill.record(path, log), mode="r")["v"]
    for first in range(0, array.shape[0] - 5, 7):
        array[first : first + 5]


if __name__ == "__main__":
    {"make": make, "compare": compare, "record": record}[sys.argv[1]](*sys.argv[2:])
