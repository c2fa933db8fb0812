#!/usr/bin/env python3
"""peer_rechunk.py WHO SOURCE.zarr TARGET.zarr CHUNKS SHARDS THREADS MEMORY

Rechunks array v with WHO: dask (with xarray), tensorstore, tensorstore-sync,
zarr-python, zarrs or rechunker; MEMORY in bytes is for those that can be told.
Everyone writes blosc zstd 2 with byte shuffle.  The last line is the time from
opening to the end, without the imports.
"""

import json
import sys
import time


def lengths(text):
    return None if text == "none" else tuple(map(int, text.split("x")))


def blosc():
    from zarr.codecs import BloscCodec

    return BloscCodec(typesize=4, cname="zstd", clevel=2, shuffle="shuffle")


def configure(threads, pipeline=None):
    import numcodecs.blosc
    import zarr

    # numcodecs' Blosc uses threads of its own where it is called from the main thread alone.
    numcodecs.blosc.set_nthreads(1)
    zarr.config.set({"threading.max_workers": threads})
    if pipeline:
        zarr.config.set({"codec_pipeline.path": pipeline, "codec_pipeline.chunk_concurrent_maximum": threads})


def dask(source, target, chunks, shards, threads, memory):
    """One task graph: chunks are cut and put together in memory, which nothing bounds."""
    import dask
    import xarray

    configure(threads)
    dask.config.set(scheduler="threads", num_workers=threads)

    def work():
        data = xarray.open_zarr(source, chunks={}, consolidated=False, mask_and_scale=False)
        data = data.chunk(dict(zip(data["v"].dims, shards or chunks)))
        data["v"].encoding = {}
        encoding = {"chunks": chunks, "compressors": (blosc(),), **({"shards": shards} if shards else {})}
        data.to_zarr(target, zarr_format=3, encoding={"v": encoding}, consolidated=False)

    return work


def zarr_python(source, target, chunks, shards, threads, memory, pipeline=None):
    """The whole array read, then written: the quickest that it can, and all of it in memory."""
    import zarr

    configure(threads, pipeline)

    def work():
        a = zarr.open_group(source, mode="r")["v"]
        b = zarr.create_group(target).create_array(
            "v", shape=a.shape, chunks=chunks, shards=shards, dtype=a.dtype, compressors=blosc(), fill_value=0
        )
        b[...] = a[...]

    return work


def zarrs(*args):
    import zarrs  # noqa: F401

    return zarr_python(*args, pipeline="zarrs.ZarrsCodecPipeline")


def tensorstore(source, target, chunks, shards, threads, memory, sync=False):
    """Array to array, with a cache that holds everything, so that nothing is decoded twice."""
    import tensorstore as ts
    import zarr

    context = ts.Context(
        {
            "cache_pool": {"total_bytes_limit": 8 << 30},
            "data_copy_concurrency": {"limit": threads},
            "file_io_concurrency": {"limit": threads},
            "file_io_sync": sync,
        }
    )
    codecs = [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 2, "shuffle": "shuffle", "typesize": 4}},
    ]
    if shards:
        codecs = [
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": chunks,
                    "codecs": codecs,
                    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                },
            }
        ]

    def spec(path):
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/v/"}}

    def work():
        zarr.create_group(target)
        a = ts.open(spec(source), open=True, read=True, context=context).result()
        grid = {"name": "regular", "configuration": {"chunk_shape": shards or chunks}}
        metadata = {
            "shape": list(a.shape),
            "data_type": "float32",
            "fill_value": 0,
            "chunk_grid": grid,
            "codecs": codecs,
        }
        b = ts.open({**spec(target), "metadata": metadata}, create=True, context=context).result()
        b.write(a).result()

    return work


def tensorstore_sync(*args):
    return tensorstore(*args, sync=True)


def rechunker(source, target, chunks, shards, threads, memory):
    """Version 2 in and out, by way of an intermediate store beside the target."""
    import dask
    import numcodecs
    import zarr
    from rechunker import rechunk

    numcodecs.blosc.set_nthreads(1)
    dask.config.set(scheduler="threads", num_workers=threads)

    def work():
        options = {"compressor": numcodecs.Blosc("zstd", 2, numcodecs.Blosc.SHUFFLE)}
        zarr.open_group(target, mode="w")
        plan = rechunk(
            zarr.open_group(source, mode="r")["v"],
            chunks,
            memory // threads,
            f"{target}/v",
            target_options=options,
            temp_store=f"{target}.temp",
            executor="dask",
        )
        plan.execute()

    return work


WHO = {
    "dask": dask,
    "zarr-python": zarr_python,
    "zarrs": zarrs,
    "tensorstore": tensorstore,
    "tensorstore-sync": tensorstore_sync,
    "rechunker": rechunker,
}


def main():
    who, source, target, chunks, shards, threads, memory = sys.argv[1:]
    work = WHO[who](source, target, lengths(chunks), lengths(shards), int(threads), int(memory))
    start = time.perf_counter()
    work()
    print(json.dumps({"seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
