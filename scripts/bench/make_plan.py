#!/usr/bin/env python3
"""make_plan.py NAME INPUT.nc PLAN [quick]: where the chunks of an input lie, for roofline.c.

Chunked variables: the library's own iteration over chunks.  Contiguous ones:
arithmetic from the dataset's address.  Classic: records lie at the end of the
file, and each holds the record variables in the order of their definition.
"""
import os
import sys

import h5py

import inputs


def chunked(dataset, chunk):
    counts = [-(-n // c) for n, c in zip(dataset.shape, chunk)]
    place = [(0, 0)] * (counts[0] * counts[1] * counts[2])

    def visit(info):
        i, j, k = (o // c for o, c in zip(info.chunk_offset, chunk))
        place[(i * counts[1] + j) * counts[2] + k] = (info.byte_offset, info.size)

    dataset.id.chunk_iter(visit)
    return place


def sliced(shape, chunk, itemsize, map_address):
    """Pieces of CHUNK's rows of one map each: MAP_ADDRESS(step) is where that map begins."""
    row = shape[2] * itemsize
    for step in range(shape[0]):
        for y in range(0, shape[1], chunk[1]):
            yield map_address(step) + y * row, min(chunk[1], shape[1] - y) * row


def classic_maps(spec, shape, path):
    """For each variable a function from the step to its map's address."""
    sizes = [8] + [int(t[1]) * shape[1] * shape[2] for _, t in spec.variables()]  # time comes first
    sizes = [-(-n // 4) * 4 for n in sizes]
    record = sum(sizes)
    first = os.path.getsize(path) - shape[0] * record
    for i in range(len(spec.types)):
        begin = first + sum(sizes[: i + 1])
        yield lambda step, begin=begin: begin + step * record


def places(spec, shape, path):
    if spec.layout == "classic":
        for (name, dtype), address in zip(spec.variables(), classic_maps(spec, shape, path)):
            yield name, dtype, list(sliced(shape, spec.chunk, int(dtype[1]), address))
        return
    with h5py.File(path, "r") as h5:
        for name, dtype in spec.variables():
            dataset = h5[name]
            if spec.layout == "contiguous":
                base, nbytes = dataset.id.get_offset(), int(dtype[1]) * shape[1] * shape[2]
                yield name, dtype, list(sliced(shape, spec.chunk, int(dtype[1]), lambda s: base + s * nbytes))
            else:
                yield name, dtype, chunked(dataset, spec.chunk)


def main():
    spec, path, out, quick = inputs.find(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:] == ["quick"]
    shape = spec.dims(quick)
    decode = "raw plain" if spec.layout in ("contiguous", "classic") else "deflate shuffle"
    swap = "swap" if spec.layout == "classic" else "native"
    with open(out, "w") as f:
        print("input", os.path.abspath(path), file=f)
        for name, dtype, chunks in places(spec, shape, path):
            print("array", name, dtype[1], decode, swap, *shape, *spec.chunk, *spec.target, len(chunks), file=f)
            f.writelines(f"{address} {nbytes}\n" for address, nbytes in chunks)


if __name__ == "__main__":
    main()
