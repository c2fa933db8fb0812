"""The input of roofline.c for a work of stores.py: the files, their lengths, and where they go."""

import itertools
import os


def keys(shape, chunk):
    return itertools.product(*(range(-(-n // c)) for n, c in zip(shape, chunk)))


def shard_places(chunk, shard, sizes):
    """For each chunk its place in its shard: one behind the other, in C order."""
    filled, places = {}, []
    for key, nbytes in sizes:
        at = tuple(k * c // s for k, c, s in zip(key, chunk, shard))
        places.append(filled.get(at, 0))
        filled[at] = places[-1] + nbytes
    return places


def write(out, source, work, quick):
    """Chunks that only move into shards are copied; everything else is coded anew."""
    shape, chunk = work.dims(quick), work.lengths(work.chunk, quick)
    target = work.shards or work.lengths(work.target, quick)
    sizes = [(key, os.path.getsize(f"{source}/v/c/{'/'.join(map(str, key))}")) for key in keys(shape, chunk)]
    places = shard_places(chunk, work.shards, sizes) if work.shards else [0] * len(sizes)
    with open(out, "w") as f:
        print("input", os.path.abspath(source), file=f)
        coding = "copy" if work.shards else work.codec
        print("array v 4", coding, "plain native", *shape, *chunk, *target, len(sizes), file=f)
        f.writelines(f"{place} {nbytes}\n" for place, (_, nbytes) in zip(places, sizes))
