"""Lets icechunk-python work on a repository, in an interpreter that has it (Python 3.12 or later):

    icechunk_peer.py unpack REPO BRANCH FOLDER    all keys of a branch, read through its store, as a folder
    icechunk_peer.py xarray REPO BRANCH NC        whether xarray shows the same of both; words of what differs
    icechunk_peer.py collect REPO                 its garbage collection, of all that nothing refers to
    icechunk_peer.py commit REPO BRANCH NAME N    N commits of an array each, rebased where others were faster
    icechunk_peer.py create REPO NC SPLIT         a repository with the file; manifests of up to SPLIT chunks along each
                                                  dimension, 0: as it likes
    icechunk_peer.py append REPO BRANCH NC DIM    adds the file along a dimension
    icechunk_peer.py refer REPO NC FOLDER         a repository with references to v of the file, one for each step, and a
                                                  container of FOLDER under a name
    icechunk_peer.py compress REPO                writes all manifests of main anew, with locations compressed
    icechunk_peer.py read REPO BRANCH             reads every element of every array
    icechunk_peer.py names REPO BRANCH            the paths of all arrays
    icechunk_peer.py length REPO BRANCH           the number of its snapshots

REPO is a folder, or s3://BUCKET/PREFIX with the endpoint in AWS_ENDPOINT_URL.
"""

import asyncio
import datetime
import os
import sys
import warnings

import icechunk
import numpy as np
import zarr

warnings.simplefilter("ignore")
icechunk.set_logs_filter("error")


def storage(place):
    if not place.startswith("s3://"):
        return icechunk.local_filesystem_storage(place)
    bucket, _, prefix = place[5:].partition("/")
    return icechunk.s3_storage(
        bucket=bucket,
        prefix=prefix,
        region="us-east-1",
        endpoint_url=os.environ["AWS_ENDPOINT_URL"],
        access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        allow_http=True,
        force_path_style=True,
    )


def opened(place):
    repo = icechunk.Repository.open(storage(place))
    containers = {c.url_prefix: None for c in (repo.config.virtual_chunk_containers or {}).values()}
    return icechunk.Repository.open(storage(place), authorize_virtual_chunk_access=containers) if containers else repo


def session(place, branch):
    return opened(place).readonly_session(branch)


def unpack(place, branch, folder):
    store = session(place, branch).store

    async def all_of_it():
        async for key in store.list():
            data = await store.get(key, zarr.core.buffer.default_buffer_prototype())
            path = os.path.join(folder, key)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data.to_bytes())

    asyncio.run(all_of_it())


def compare(place, branch, nc):
    import xarray as xr

    store = session(place, branch).store
    with xr.open_dataset(nc, decode_times=False, mask_and_scale=False) as want:
        got = xr.open_zarr(store, consolidated=False, chunks=None, decode_times=False, mask_and_scale=False)
        for name in want.variables:
            a, b = np.asarray(want[name].values), np.asarray(got[name].values)
            same = a.shape == b.shape and (
                (a.dtype == b.dtype and a.tobytes() == b.tobytes()) if a.dtype.kind not in "OU" else (a.astype(str) == b.astype(str)).all()
            )
            if not same or want[name].dims != got[name].dims:
                print(f"{name} differs")


def collect(place):
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    print(opened(place).garbage_collect(later))


def commit(place, branch, name, n):
    for i in range(int(n)):
        repo = opened(place)
        writing = repo.writable_session(branch)
        array = zarr.create_array(writing.store, name=f"{name}{i}", shape=(4,), chunks=(2,), dtype="i4")
        array[:] = np.arange(4) + i
        writing.commit(f"{name}{i}", rebase_with=icechunk.ConflictDetector(), rebase_tries=100)


def create(place, nc, split):
    import xarray as xr

    config = icechunk.RepositoryConfig.default()
    if int(split) > 0:
        by = {icechunk.ManifestSplitDimCondition.Any(): int(split)}
        config.manifest = icechunk.ManifestConfig(
            splitting=icechunk.ManifestSplittingConfig.from_dict({icechunk.ManifestSplitCondition.AnyArray(): by})
        )
    writing = icechunk.Repository.create(storage(place), config=config).writable_session("main")
    with xr.open_dataset(nc, decode_times=False, mask_and_scale=False) as ds:
        for v in ds.variables.values():
            v.encoding = {}
        chunks = {name: {"chunks": (4, 24, 20)} for name, v in ds.variables.items() if v.ndim == 3}
        ds.to_zarr(writing.store, consolidated=False, encoding=chunks)
    writing.commit("theirs")


def append(place, branch, nc, dim):
    import xarray as xr

    writing = opened(place).writable_session(branch)
    with xr.open_dataset(nc, decode_times=False, mask_and_scale=False) as ds:
        for v in ds.variables.values():
            v.encoding = {}
        ds.drop_vars([n for n, v in ds.variables.items() if dim not in v.dims]).to_zarr(
            writing.store, append_dim=dim, consolidated=False, align_chunks=True
        )
    writing.commit("appended", rebase_with=icechunk.ConflictDetector(), rebase_tries=100)


def refer(place, nc, folder):
    import netCDF4

    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(f"file://{folder}/", icechunk.local_filesystem_store(folder), name="files"))
    repo = icechunk.Repository.create(storage(place), config=config)
    repo.save_config()
    writing = repo.writable_session("main")
    group = zarr.create_group(writing.store)
    with netCDF4.Dataset(nc) as d, open(nc, "rb") as f:
        data, values = f.read(), np.asarray(d["v"][:])
        group.create_array("time", shape=(len(values),), chunks=(4,), dtype="f8", dimension_names=["time"])[:] = d["time"][:]
        v = group.create_array("v", shape=values.shape, chunks=(1, *values.shape[1:]), dtype="f4", compressors=None, dimension_names=["time", "y", "x"])
    for i, step in enumerate(values):
        place = f"vcc://files/{os.path.basename(nc)}" if i % 2 else f"file://{nc}"
        writing.store.set_virtual_ref(f"{v.path}/c/{i}/0/0", place, offset=data.index(step.tobytes()), length=step.nbytes)
    writing.commit("theirs")


def compress(place):
    config = icechunk.Repository.open(storage(place)).config
    packing = icechunk.ManifestVirtualChunkLocationCompressionConfig(min_num_chunks=2, dictionary_max_size_bytes=256)
    config.manifest = icechunk.ManifestConfig(virtual_chunk_location_compression=packing)
    icechunk.Repository.open(storage(place), config=config).rewrite_manifests("rewritten", branch="main")


def read(place, branch):
    group = zarr.open_group(session(place, branch).store, mode="r")
    for _, node in group.members(max_depth=None):
        if isinstance(node, zarr.Array):
            node[...]


def names(place, branch):
    group = zarr.open_group(session(place, branch).store, mode="r")
    print(*[name for name, node in group.members(max_depth=None) if isinstance(node, zarr.Array)])


def length(place, branch):
    print(len(list(opened(place).ancestry(branch=branch))))


if __name__ == "__main__":
    commands = {f.__name__: f for f in (unpack, collect, commit, create, append, refer, compress, read, names, length)} | {"xarray": compare}
    commands[sys.argv[1]](*sys.argv[2:])
    # Threads of icechunk 2.3 that are at work when the interpreter ends may crash it, after all is done.
    sys.stdout.flush()
    os._exit(0)
