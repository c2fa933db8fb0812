"""Makes the repositories of this folder, with icechunk-python 1.1.21 (format 1) or 2.3.0 (format 2):

    PYTHON make.py OUT        writes OUT.tar.xz, and OUT.json with the digests of what each version holds

Digests are those of chunkmill-digest(7), of what zarr-python reads through icechunk. Objects that virtual chunks
lie in are made anew by tests: see outside.py.
"""

import datetime
import io
import json
import os
import pathlib
import sys
import tarfile
import tempfile

import icechunk
import numpy as np
import zarr

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
from support import digest  # noqa: E402
from support.repositories import outside  # noqa: E402

FORMAT = 2 if int(icechunk.__version__.split(".")[0]) >= 2 else 1


def configuration():
    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = 64
    split = icechunk.ManifestSplittingConfig.from_dict(
        {icechunk.ManifestSplitCondition.name_matches("a"): {icechunk.ManifestSplitDimCondition.Axis(0): 2}}
    )
    more = {}
    if FORMAT == 2:
        more["virtual_chunk_location_compression"] = icechunk.ManifestVirtualChunkLocationCompressionConfig(
            min_num_chunks=20, dictionary_max_size_bytes=256
        )
    config.manifest = icechunk.ManifestConfig(splitting=split, **more)
    named = {"name": "parts"} if FORMAT == 2 else {}
    config.set_virtual_chunk_container(
        icechunk.VirtualChunkContainer(outside.PREFIX, icechunk.s3_store(region="us-east-1"), **named)
    )
    return config


def commit(repo, branch, change, message):
    session = repo.writable_session(branch)
    change(zarr.open_group(session.store), session)
    return session.commit(message)


def first(root, _):
    root.attrs["title"] = "first"
    a = root.create_array("a", shape=(24, 30), chunks=(6, 10), dtype="f4", fill_value=-1.0, dimension_names=["t", "x"])
    a[:] = np.random.default_rng(1).random((24, 30), dtype="f4")
    root.create_array("t", shape=(24,), chunks=(6,), dtype="i4", dimension_names=["t"])[:] = np.arange(24)
    root.create_array("s", shape=(), chunks=(), dtype="f8")[...] = 2.5
    hole = root.create_array("g/hole", shape=(9, 9), chunks=(2, 2), dtype="i2", fill_value=7)
    hole[4:8, 2:4] = 3


def second(root, _):
    root["a"][7:9] = 5
    root.create_array("g/more", shape=(5,), chunks=(2,), dtype="u1")[:] = [1, 2, 3, 4, 5]


def virtual(root, session):
    """Chunk I is 16 bytes of an object: of the odd ones with an ETag, of others with the time of a change."""
    v = root.create_array("v", shape=(outside.N * 16,), chunks=(16,), dtype="u1", compressors=None)
    for i in range(outside.N):
        tag = outside.etag(i).strip('"') if i % 2 else outside.CHANGED
        session.store.set_virtual_ref(f"{v.path}/c/{i}", outside.url(i), offset=outside.offset(i), length=16, checksum=tag)
    if FORMAT == 2:
        w = root.create_array("w", shape=(16,), chunks=(16,), dtype="u1", compressors=None)
        session.store.set_virtual_ref(f"{w.path}/c/0", "vcc://parts/" + outside.key(1).split("/", 1)[1], offset=0, length=16)


def listed(repo, **version):
    """Digest, path and type of every array; of virtual ones the object's own bytes."""
    rows = []
    for path, array in zarr.open_group(repo.readonly_session(**version).store, mode="r").members(max_depth=None):
        if not isinstance(array, zarr.Array):
            continue
        if path == "v":
            values = np.frombuffer(b"".join(outside.chunk(i) for i in range(outside.N)), "u1")
        elif path == "w":
            values = np.frombuffer(outside.data(1)[:16], "u1")
        else:
            values = np.asarray(array[...])
        rows.append([digest.text(digest.fixed([e.tobytes() for e in values.ravel()])), path, str(array.dtype)])
    return sorted(rows, key=lambda row: row[1])


def main(out):
    with tempfile.TemporaryDirectory() as folder:
        repo = icechunk.Repository.create(icechunk.local_filesystem_storage(folder), config=configuration())
        repo.save_config()
        old = commit(repo, "main", first, "first")
        repo.create_branch("dev", old)
        repo.create_tag("v1", old)
        repo.create_tag("gone", old)
        repo.delete_tag("gone")
        commit(repo, "dev", lambda root, _: root["a"].resize((26, 30)), "longer")
        commit(repo, "main", lambda root, _: root["t"].__setitem__(slice(0, 2), -5), "in between, expired later")
        tip = commit(repo, "main", second, "second")
        if FORMAT == 2:
            session = repo.writable_session("main")
            zarr.open_group(session.store)["s"][...] = 3.5
            tip = session.amend("second, amended")
            repo.create_branch("moved", tip)
            session = repo.rearrange_session("moved")
            session.move("/g", "/h")
            session.commit("moved")
        repo.create_branch("virtual", tip)
        commit(repo, "virtual", virtual, "virtual chunks")
        now = datetime.datetime.now(datetime.timezone.utc)
        repo.expire_snapshots(now)
        repo.garbage_collect(now)
        versions = {f"@{b}": {"branch": b} for b in sorted(repo.list_branches())}
        versions |= {"@tag:v1": {"tag": "v1"}, f"@{tip}": {"snapshot_id": tip}}
        said = {"versions": {name: listed(repo, **v) for name, v in versions.items()}}
        with tarfile.open(f"{out}.tar.xz", "w:xz", preset=9) as tar:
            for path in sorted(pathlib.Path(folder).rglob("*")):
                # Readers need no logs of transactions, nor former states.
                if path.is_file() and path.parent.name not in ("transactions", "overwritten"):
                    info = tarfile.TarInfo(str(path.relative_to(folder)))
                    info.size = path.stat().st_size
                    tar.addfile(info, io.BytesIO(path.read_bytes()))
    with open(f"{out}.json", "w") as f:
        json.dump(said, f, indent=1)
        f.write("\n")
    print(out, icechunk.__version__, os.path.getsize(f"{out}.tar.xz"), "bytes")


if __name__ == "__main__":
    main(sys.argv[1])
