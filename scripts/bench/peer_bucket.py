"""
peer_bucket.py tensorstore|zarr URL_OF_SERVER ARRAY_IN_BUCKET IN_FLIGHT < NUMBERS

Reads chunks (their numbers, one of the first dimension each) of an array in the bucket `bench`, IN_FLIGHT at
a time, decoded, as a program of a careful user would.  Prints {"seconds":, "cpu":, "sum":}, the sum of the CRC32Cs.
"""

import asyncio
import json
import resource
import sys
import time

import google_crc32c
import numpy as np

who, url, path, in_flight = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
numbers = [int(n) for n in sys.stdin.read().split()]
CHECK = "--check" in sys.argv


def crc(a):
    return google_crc32c.value(np.ascontiguousarray(a).tobytes()) if CHECK else 0


def tensorstore():
    import os

    import tensorstore as ts

    context = ts.Context({
        "s3_request_concurrency": {"limit": in_flight}, "data_copy_concurrency": {"limit": os.cpu_count()}, "cache_pool": {"total_bytes_limit": 0},
    })  # fmt: skip
    kvstore = {"driver": "s3", "bucket": "bench", "path": path, "endpoint": url, "aws_region": "us-east-1"}
    array = ts.open({"driver": "zarr3", "kvstore": kvstore}, context=context, read=True).result()
    begun, total, under_way = time.perf_counter(), 0, []
    for n in numbers:
        if len(under_way) >= 2 * in_flight:
            total += crc(under_way.pop(0).result())
        under_way.append(array[n].read())
    for f in under_way:
        total += crc(f.result())
    return begun, total


def zarr():
    import os

    import obstore.store
    import zarr
    from zarr.storage import ObjectStore

    zarr.config.set({"async.concurrency": in_flight, "threading.max_workers": os.cpu_count()})
    s3 = obstore.store.S3Store("bench", prefix=path, endpoint=url, region="us-east-1", client_options={"allow_http": True}, virtual_hosted_style_request=False)
    array = zarr.open_array(ObjectStore(s3, read_only=True), mode="r")

    async def read():
        gate, total = asyncio.Semaphore(in_flight), 0

        async def one(n):
            async with gate:
                return crc(await array._async_array.getitem(n))

        for k in range(0, len(numbers), 8 * in_flight):
            total += sum(await asyncio.gather(*(one(n) for n in numbers[k : k + 8 * in_flight])))
        return total

    begun = time.perf_counter()
    return begun, zarr_sync(read())


def zarr_sync(coroutine):
    from zarr.core.sync import sync

    return sync(coroutine)


before = resource.getrusage(resource.RUSAGE_SELF)
begun, total = {"tensorstore": tensorstore, "zarr": zarr}[who]()
seconds = time.perf_counter() - begun
usage = resource.getrusage(resource.RUSAGE_SELF)
cpu = usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime
print(json.dumps({"seconds": seconds, "cpu": cpu, "peak_kib": usage.ru_maxrss, "sum": total}))
