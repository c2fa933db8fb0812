"""Batches of the Python package against zarr-python and netCDF4, and what holds them."""

import contextlib
import copy
import ctypes
import gc
import itertools
import json
import multiprocessing
import os
import pickle
import queue
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import netCDF4
import numpy as np
import pytest
import zarr

from support import objects, paths, tasks

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python")

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
os.environ["CHUNKMILL_BIN"] = str(paths.BUILD / "bin")
import chunkmill  # noqa: E402

SHAPE, CHUNK = (14, 23, 30), (5, 7, 8)
NAMES = ("time", "lat", "lon")
SAMPLE = {"time": 2, "lat": 6, "lon": 9}
RNG = np.random.default_rng(5)
FIELDS = {
    "a": RNG.integers(-100, 100, SHAPE).astype("i1"),
    "b": RNG.standard_normal(SHAPE).astype("f8"),
    "c": RNG.integers(0, 60000, SHAPE[:1] + SHAPE[2:]).astype("u2"),
    "d": RNG.standard_normal(SHAPE[1:]).astype("f4"),
}
DIMS = {"a": NAMES, "b": NAMES, "c": ("time", "lon"), "d": ("lat", "lon")}
COORDS = {"time": np.arange(SHAPE[0]) * 6.0 + 100, "lat": np.linspace(-60, 60, SHAPE[1]).astype("f4")}


def zarr_store(path, fmt=3, shards=None):
    group = zarr.create_group(str(path), zarr_format=fmt)
    for name, values in {**FIELDS, **COORDS}.items():
        dims = DIMS.get(name, (name,))
        size = dict(zip(NAMES, CHUNK))
        chunks = tuple(size[d] for d in dims)
        kw = {"dimension_names": dims} if fmt == 3 else {"attributes": {"_ARRAY_DIMENSIONS": list(dims)}}
        if shards:
            kw["shards"] = tuple(2 * n for n in chunks)
        group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, **kw)[...] = values
    return path


def netcdf_file(path, fmt="NETCDF4", **kw):
    with netCDF4.Dataset(path, "w", format=fmt) as ds:
        for name, n in zip(NAMES, SHAPE):
            ds.createDimension(name, n)
        for name, values in {**FIELDS, **COORDS}.items():
            ds.createVariable(name, values.dtype, DIMS.get(name, (name,)), **kw)[...] = values
    return path


MAKERS = {
    "v3.zarr": lambda p: zarr_store(p),
    "v2.zarr": lambda p: zarr_store(p, fmt=2),
    "sharded.zarr": lambda p: zarr_store(p, shards=True),
    "deflate.nc": lambda p: netcdf_file(p, zlib=True, chunksizes=None),
    "contiguous.nc": lambda p: netcdf_file(p, contiguous=True),
}


@pytest.fixture
def store(tmp_path):
    return zarr_store(tmp_path / "a.zarr")


def expected(loader, batch, name, k, lag=0):
    """Sample K of BATCH as NumPy cuts it out of the field."""
    starts = dict(zip((d.name for d in loader.dims), batch.index[k]))
    starts["time"] += lag
    return FIELDS[name][tuple(slice(starts[d], starts[d] + SAMPLE[d]) for d in DIMS[name])]


def assert_right(loader, batch, names, lags=(0,)):
    for name, lag in itertools.product(names, lags):
        tensor = batch[name] if lag == 0 else batch[name, lag]
        got = np.from_dlpack(tensor)
        assert got.dtype == FIELDS[name].dtype and tensor.dtype == str(got.dtype)
        assert got.ctypes.data % got.itemsize == 0
        for k in range(len(batch)):
            assert got[k].tobytes() == expected(loader, batch, name, k, lag).tobytes(), (name, lag, k)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("how", ["map", "planned"])
def test_batches_are_what_the_store_holds(tmp_path, kind, how):
    path = MAKERS[kind](tmp_path / kind)
    if how == "planned" and kind == "contiguous.nc":
        with pytest.raises(chunkmill.ChunkmillError, match="no chunks"):
            chunkmill.Loader(path, sample=SAMPLE, variables="b", loader=how)
        return
    for order in ("random", "sequential", "strided:3", "block-shuffle:4", "chunks"):
        with chunkmill.Loader(path, sample=SAMPLE, variables=["a", "b", "c", "d"], batch=7, batches=9, order=order,
                              seed=3, loader=how, decode=False) as loader:  # 0 is the fill value of version 2
            assert len(loader) == 9
            for epoch in range(2):
                numbers = []
                for n, batch in enumerate(loader):
                    assert (batch.epoch, batch.number, len(batch)) == (epoch, n, 7)
                    assert_right(loader, batch, "abcd")
                    numbers += batch.samples.tolist()
                assert len(numbers) == len(set(numbers)) == 63


def test_a_stack_is_one_variable(store, tmp_path):
    """Channels that nobody named come whole."""
    out = tmp_path / "stacked.zarr"
    assert chunkmill.rechunk(store, out, stack="x=a,b")["error"] is None
    want = np.stack([FIELDS["a"].astype("f8"), FIELDS["b"]])  # no coordinate of times: channels come first
    for how in ("map", "planned"):
        with chunkmill.Loader(out, sample=SAMPLE, variables="x", batch=4, batches=9, loader=how) as loader:
            assert [(d.name, d.sample) for d in loader.dims][0] == ("channel", 2)
            for batch in loader:
                assert batch.coords["channel"].tolist() == [["a", "b"]] * len(batch)
                got = np.from_dlpack(batch["x"])
                for k in range(len(batch)):
                    starts = batch.index[k]
                    size = (2, *SAMPLE.values())
                    assert (got[k] == want[tuple(slice(s, s + n) for s, n in zip(starts, size))]).all()


def test_types_and_lags(store):
    with chunkmill.Loader(store, sample=SAMPLE, variables=["b", "c"], lags=[0, 3, 5], batch=4, batches=6) as loader:
        assert loader.keys() == ["b", ("b", 3), ("b", 5), "c", ("c", 3), ("c", 5)]
        for batch in loader:
            assert_right(loader, batch, "bc", (0, 3, 5))
    with chunkmill.Loader(store, sample=SAMPLE, variables="b", cast="float16", batch=4, batches=2) as loader:
        for batch in loader:
            got = batch["b"].numpy()
            assert got.dtype == np.float16
            for k in range(4):
                assert (got[k] == expected(loader, batch, "b", k).astype("f2")).all()


def test_index_and_coordinates(store):
    with chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=5, batches=3) as loader:
        assert [(d.name, d.length, d.sample) for d in loader.dims] == [
            (n, SHAPE[i], SAMPLE[n]) for i, n in enumerate(NAMES)]
        assert (loader.dims[0].coords == COORDS["time"]).all() and loader.dims[2].coords is None
        for batch in loader:
            assert batch.index.shape == (5, 3) and set(batch.coords) == {"time", "lat"}
            for name, place in (("time", 0), ("lat", 1)):
                for k in range(5):
                    first = batch.index[k, place]
                    want = COORDS[name][first:first + SAMPLE[name]]
                    assert batch.coords[name].dtype == want.dtype and (batch.coords[name][k] == want).all()


LABELS = ["t2m", "", "z\u2085\u2080\u2080", "a label that is longer than the others"]


def labelled_zarr(path, fmt, dtype):
    group = zarr.create_group(str(path), zarr_format=fmt)
    for name, values, dims in (("x", np.arange(4 * 9, dtype="f4").reshape(9, 4), ("time", "channel")),
                               ("channel", np.array(LABELS, object if dtype is str else dtype), ("channel",)),
                               ("time", np.arange(9).astype("M8[h]").astype("M8[ns]"), ("time",))):
        kw = {"dimension_names": dims} if fmt == 3 else {"attributes": {"_ARRAY_DIMENSIONS": list(dims)}}
        kind = dtype if name == "channel" else values.dtype
        group.create_array(name, shape=values.shape, chunks=(3, *values.shape[1:]), dtype=kind, **kw)[...] = values
    return path


def labelled_netcdf(path, chars):
    with netCDF4.Dataset(path, "w") as ds:
        for name, n in (("time", 9), ("channel", 4), ("letters", 60)):
            ds.createDimension(name, n)
        ds.createVariable("x", "f4", ("time", "channel"))[...] = np.arange(4 * 9).reshape(9, 4)
        if chars:
            raw = np.array([text.encode() for text in LABELS], "S60")
            ds.createVariable("channel", "S1", ("channel", "letters"))[...] = raw.view("S1").reshape(4, 60)
        else:
            ds.createVariable("channel", str, ("channel",))[...] = np.array(LABELS, object)
    return path


LABELLED = {
    "strings, version 3": lambda p: labelled_zarr(p, 3, str),
    "strings, version 2": lambda p: labelled_zarr(p, 2, str),
    "unicode, version 3": lambda p: labelled_zarr(p, 3, "<U40"),
    "unicode, version 2": lambda p: labelled_zarr(p, 2, "<U40"),
    "NetCDF's strings": lambda p: labelled_netcdf(p.with_suffix(".nc"), False),
    "NetCDF's characters": lambda p: labelled_netcdf(p.with_suffix(".nc"), True),
}


@pytest.mark.every
@pytest.mark.parametrize("kind", LABELLED)
@pytest.mark.filterwarnings("ignore")  # of zarr-python, about types of version 3
def test_labels(tmp_path, kind):
    """Coordinates that are texts, cut as the samples are; times have their type."""
    path = LABELLED[kind](tmp_path / "a")
    with chunkmill.Loader(path, sample={"time": 2, "channel": 3}, variables="x", batch=4) as loader:
        assert loader.dims[1].type in ("string", "unicode40")
        assert loader.dims[1].coords.tolist() == LABELS and loader.dims[1].coords.dtype.kind == "U"
        for batch in loader:
            got = batch.coords["channel"]
            assert got.shape == (4, 3) and got.dtype == loader.dims[1].coords.dtype
            for k, (time, first) in enumerate(batch.index.tolist()):
                assert got[k].tolist() == LABELS[first:first + 3]
                if path.suffix != ".nc":
                    hours = np.arange(time, time + 2).astype("M8[h]").astype("M8[ns]")
                    assert batch.coords["time"].dtype == "M8[ns]" and (batch.coords["time"][k] == hours).all()


def test_one_long_label(tmp_path):
    """It does not make the others as wide: objects instead."""
    path = tmp_path / "a.nc"
    texts = ["x" * (5 << 20), *"abc"]
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("channel", 4)
        ds.createVariable("x", "f4", ("channel",))[...] = np.arange(4)
        ds.createVariable("channel", str, ("channel",))[...] = np.array(texts, object)
    with chunkmill.Loader(path, sample={"channel": 2}, variables="x", batch=3) as loader:
        assert loader.dims[0].coords.dtype == object
        for batch in loader:
            assert batch.coords["channel"].tolist() == [texts[i:i + 2] for i in batch.index[:, 0].tolist()]


def test_labels_without_numpy(tmp_path):
    """Lists of str; times are their counts."""
    script = ("import sys; sys.modules['numpy'] = None\n"
              "import chunkmill\n"
              "loader = chunkmill.Loader(sys.argv[1], sample={'time': 1, 'channel': 2}, batch=1, order='sequential', variables='x')\n"
              "batch = next(iter(loader))\n"
              "print(batch.coords['channel'], batch.coords['time'].tolist(), batch.index.tolist())\n")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(labelled_zarr(tmp_path / "a", 3, str))],
                          env=environment(), capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.stderr) == ("[['t2m', '']] [[0]] [[0, 0]]\n", "")


@pytest.mark.filterwarnings("ignore")
def test_labels_that_cannot_be_read_are_left_out(tmp_path):
    """Of a codec that is not known: the variable is read all the same."""
    path = labelled_zarr(tmp_path / "a", 2, str)
    described = path / "channel" / ".zarray"
    document = json.loads(described.read_text())
    document["filters"] = [{"id": "pickle", "protocol": 5}]
    described.write_text(json.dumps(document))
    with chunkmill.Loader(path, sample={"time": 2}, variables="x", batch=4) as loader:
        assert set(next(iter(loader)).coords) == {"time"}


@pytest.mark.parametrize("how", ["map", "planned"])
@pytest.mark.parametrize("world", [1, 2, 3])
def test_ranks_share_an_epoch(store, how, world):
    """All ranks together: each sample once; where ranks do not come out even the first ones again."""
    for order, drop_last in itertools.product(("random", "sequential", "block-shuffle:5"), (False, True)):
        seen = []
        for rank in range(world):
            with chunkmill.Loader(store, sample={"time": 7, "lat": 8, "lon": 10}, variables=["a", "b"], batch=3,
                                  order=order, seed=9, rank=rank, world_size=world, drop_last=drop_last,
                                  loader=how) as loader:
                total = loader.nsamples
                mine = [n for batch in loader for n in batch.samples.tolist()]
                assert len(loader) == (total // world // 3 if drop_last else -(-total // world // 3))
                seen += mine
        if drop_last:
            assert len(seen) == len(set(seen)) == total // world // 3 * 3 * world
        else:
            assert set(seen) == set(range(total)) and len(seen) == -(-total // world) * world


def digest(batch):
    return batch.number, tuple(batch.samples.tolist()), batch["b"].numpy().tobytes()


@pytest.mark.parametrize("how", ["map", "planned"])
def test_a_restored_loader_goes_on(store, how):
    options = {"sample": SAMPLE, "variables": ["a", "b"], "batch": 6, "batches": 11, "seed": 4, "loader": how}
    with chunkmill.Loader(store, **options) as loader:
        whole = [[digest(b) for b in loader] for _ in range(3)]
    for stop in (0, 1, 5, 10, 11):
        with chunkmill.Loader(store, **options) as loader:
            loader.set_epoch(1)
            running = iter(loader)
            for _ in range(stop):
                next(running)
            state = loader.state_dict()
        with chunkmill.Loader(store, workers=2, **options) as other:
            other.load_state_dict(state)
            assert other.state_dict()["position"] == state["position"]
            assert [digest(b) for b in other] == whole[1][stop:]
            assert [digest(b) for b in other] == whole[2]
            state_after = other.state_dict()
        with chunkmill.Loader(store, **options) as third:  # whole epochs go on with the next one
            third.load_state_dict(state_after)
            assert next(iter(third)).epoch == 3
    assert state["epoch"] == 1
    for change in ({"seed": 5}, {"batch": 5}, {"sample": {**SAMPLE, "lat": 5}}, {"world_size": 2, "rank": 1},
                   {"variables": ["b"]}, {"order": "sequential"}):
        with chunkmill.Loader(store, **{**options, **change}) as other:
            with pytest.raises(chunkmill.ChunkmillError, match="saved by a loader with other"):
                other.load_state_dict(state)
            with pytest.raises(chunkmill.ChunkmillError, match="not one that a loader"):
                other.load_state_dict({"position": "00" * 64, "epoch": 0})
            for bad in (None, {**state, "epoch": "x"}, {**state, "epoch": -1}, {**state, "epoch": 2**64}):
                with pytest.raises(chunkmill.InvalidError, match="not one that a loader gave"):
                    other.load_state_dict(bad)
            with pytest.raises(chunkmill.InvalidError, match="epoch: 18446744073709551616 is too large"):
                other.set_epoch(2**64)


@pytest.mark.parametrize("how", ["map", "planned"])
def test_held_batches_stay_as_they_are(store, how):
    """Held beyond the loader's end, given back in any order by other threads."""
    loader = chunkmill.Loader(store, sample=SAMPLE, variables=["a", "b"], batch=6, batches=12, held=12, loader=how)
    held = []
    for batch in loader:
        held += [(np.from_dlpack(batch[name]), np.array([expected(loader, batch, name, k) for k in range(6)]))
                 for name in "ab"]
    del batch
    loader.close()
    random.Random(3).shuffle(held)

    def drop(mine):
        while mine:
            got, want = mine.pop()
            assert got.tobytes() == want.tobytes()

    parts = [held[i::4] for i in range(4)]
    held.clear()
    failed = []
    threads = [threading.Thread(target=lambda p=p: drop(p)) for p in parts]
    threading.excepthook, before = failed.append, threading.excepthook
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    threading.excepthook = before
    assert not failed


@pytest.mark.few(2)
@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("how", ["map", "planned"])
def test_held_batches_may_be_held_while_the_next_is_made(tmp_path, how, sync):
    """As many as `held` says, with the least memory that will do as with much."""
    path = tmp_path / "a.zarr"
    zarr.create_array(str(path), shape=(64, 32, 32), chunks=(8, 8, 8), dtype="f4", dimension_names=NAMES)[...] = 1
    for held in (1, 2, 3):
        options = {"sample": {"time": 8, "lat": 16, "lon": 16}, "batch": 32, "batches": 12, "loader": how, "sync": sync,
                   "held": held, "workers": 1, "worker_threads": 1}
        fitted = set()
        for memory in (*range(1 << 20, 8 << 20, 1 << 18), 1 << 28):
            try:
                loader = chunkmill.Loader(path, memory=memory, **options)
            except chunkmill.ChunkmillError as problem:
                assert problem.status == "budget"
                continue
            kept = []
            for batch in loader:
                kept = [*kept[len(kept) == held:], batch[loader.keys()[0]].numpy()]
                del batch
            assert (np.array(kept) == 1).all()
            fitted.add(loader.slots)
            loader.close()
        assert len(fitted) > (not sync), "memory changed nothing"


def test_memory_beside_a_cache(tmp_path):
    """Blocks are chosen for what the cache leaves, and a refusal names it."""
    zarr.create_array(str(tmp_path / "a.zarr"), shape=(64, 512, 512), chunks=(8, 128, 128), dtype="f4", dimension_names=NAMES)
    options = {"sample": {"time": 4, "lat": 64, "lon": 64}, "batch": 16, "batches": 20, "workers": 2, "loader": "planned"}
    with chunkmill.Loader(tmp_path / "a.zarr", memory="64MiB", **options) as loader:
        window = loader.window
        alone = [batch.index.tolist() for batch in loader]
    with chunkmill.Loader(tmp_path / "a.zarr", memory="164MiB", cache="100MiB", **options) as loader:
        assert (loader.window, [batch.index.tolist() for batch in loader]) == (window, alone)
    for memory, words in ((90, "a cache of 100.00 MiB, 2 workers and a batch"), (120, "decoded chunks, a cache of 100.00 MiB, batches")):
        with pytest.raises(chunkmill.ChunkmillError, match=f"{words}.* allowed is {memory} MiB: a smaller cache, "):
            chunkmill.Loader(tmp_path / "a.zarr", memory=f"{memory}MiB", cache="100MiB", **{**options, "window": 8 if memory > 100 else None})


@pytest.mark.parametrize("how", ["map", "planned"])
def test_all_slots_held_is_an_error(store, how):
    with chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=4, batches=200, loader=how) as loader:
        held = []
        with pytest.raises(chunkmill.ChunkmillError, match=f"all {loader.slots} batches") as problem:
            while True:
                running = iter(loader)
                for batch in running:
                    held.append(np.from_dlpack(batch["b"]))
        assert problem.value.status == "invalid" and 2 <= len(held) <= loader.slots
        assert loader.stats()["held"] == len(held)
        due, batch = loader.stats()["batch"], None
        if how == "map":  # a planned batch may need more than one
            del held[0]
            assert next(running).number == due
            due += 1
        held.clear()
        assert [b.number for b in running] == list(range(due, 200))


def test_slots_come_back_while_another_thread_waits(store):
    """Consumers in several threads delete tensors while the loader is asked for more."""
    tensors, failed = queue.Queue(maxsize=4), []

    def consume():
        while (item := tensors.get()) is not None:
            if not (item[0] == item[1]).all():
                failed.append(item)
            del item

    with chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=4, batches=300, held=12) as loader:
        threads = [threading.Thread(target=consume) for _ in range(3)]
        for t in threads:
            t.start()
        for batch in loader:
            tensors.put((np.from_dlpack(batch["b"]),
                         np.array([expected(loader, batch, "b", k) for k in range(4)])))
        for _ in threads:
            tensors.put(None)
        for t in threads:
            t.join()
    assert not failed


def test_capsules(store):
    """Both forms; one that nobody takes gives its batch back."""
    is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_IsValid", ctypes.pythonapi))
    with chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=4, batches=50) as loader:
        running = iter(loader)
        batch = next(running)
        tensor = batch["b"]
        assert tensor.__dlpack_device__() == (1, 0)
        for version, name in ((None, b"dltensor"), ((0, 8), b"dltensor"), ((1, 0), b"dltensor_versioned")):
            capsule = tensor.__dlpack__(max_version=version)
            assert is_valid(capsule, name)
            del capsule
        with pytest.raises(BufferError):
            tensor.__dlpack__(copy=True)
        with pytest.raises(BufferError):
            tensor.__dlpack__(dl_device=(2, 0))
        array = np.from_dlpack(tensor)
        want = array.copy()
        batch.release()
        batch.release()
        with pytest.raises(chunkmill.ChunkmillError, match="was released"):
            tensor.__dlpack__()
        assert loader.stats()["held"] == 1 and (array == want).all()
        del array
        gc.collect()
        assert loader.stats()["held"] == 0


def test_capsules_that_go_while_an_exception_is_raised(store):
    """A consumer that refuses a tensor drops its capsule with its own exception set: that one arrives."""
    with chunkmill.Loader(store, sample=SAMPLE, variables="b", cast="bfloat16", batch=4, batches=20) as loader:
        for batch in loader:  # more of them than there are slots
            with pytest.raises((BufferError, RuntimeError), match="(?i)dlpack|dtype"):
                np.from_dlpack(batch["b"])
        del batch
        assert loader.stats()["held"] == 0


def test_tensors_say_what_they_are(store):
    """The same in full batches and in a last one that is not; none of a batch that was released."""
    with chunkmill.Loader(store, sample=SAMPLE, variables=["a", "b"], lags=[0, 2], batch=7, order="sequential") as loader:
        sizes = []
        for batch in loader:
            for key, tensor in batch.items():
                array = tensor.numpy()
                assert (tensor.shape, tensor.dtype, tensor.nbytes) == (array.shape, array.dtype.name, array.nbytes)
                assert key == ((tensor.name, tensor.lag) if tensor.lag else tensor.name)
                assert array.shape == (len(batch), *(SAMPLE[n] for n in NAMES)) and len(tensor) == len(batch)
            assert batch.index.shape == (len(batch), 3) and batch.samples.shape == (len(batch),)
            sizes.append(len(batch))
        assert set(sizes[:-1]) == {7} and sum(sizes) >= loader.nsamples
        kept = batch.index.copy(), batch.samples.copy(), batch.number
        batch.release()
        with pytest.raises(chunkmill.ChunkmillError, match="was released"):
            batch["b"]
        assert (batch.index == kept[0]).all() and (batch.samples == kept[1]).all() and batch.number == kept[2]


def in_child(body):
    """The answer of BODY in a forked child."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, body().encode())
        finally:
            os._exit(7)
    os.close(write)
    text = b""
    while part := os.read(read, 4096):
        text += part
    os.close(read)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    return text.decode()


def test_a_forked_child_gets_errors(store):
    loader = chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=4, batches=20)
    running = iter(loader)
    batch = next(running)
    array = np.from_dlpack(batch["b"])
    calls = {"next": lambda: next(running), "iter": lambda: iter(loader), "state": loader.state_dict,
             "stats": loader.stats, "tensor": lambda: batch["b"],
             "restore": lambda: loader.load_state_dict(loader.state_dict())}

    def try_all():
        said = []
        for name, call in calls.items():
            try:
                call()
                said.append(f"{name}: nothing")
            except chunkmill.ChunkmillError as problem:
                said.append(f"{name}: {problem.status}")
        nonlocal batch, array
        array, batch = None, None  # gives nothing back to the parent's workers
        loader.close()
        own = chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=4, batches=2)
        said.append(f"own: {sum(1 for _ in own)}")
        return "\n".join(said)

    assert in_child(try_all).split("\n") == [f"{name}: invalid" for name in calls] + ["own: 2"]
    want = np.array([expected(loader, batch, "b", k) for k in range(4)])
    assert (array == want).all()
    assert [b.number for b in running] == list(range(1, 20))
    loader.close()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_loader_is_not_sent_to_another_process(store, method):
    with chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=4, batches=2) as loader:
        with pytest.raises(TypeError, match="open it there"):
            multiprocessing.get_context(method).Process(target=len, args=(loader,)).start()


def test_what_is_asked_wrongly(store, tmp_path):
    for options, words in (({"sample": {"time": 99}}, "time"), ({"sample": {"depth": 2}}, "depth"),
                           ({"sample": SAMPLE, "variables": "nothing"}, "nothing"), ({}, "sample"),
                           ({"sample": SAMPLE, "order": "odd"}, "odd"), ({"sample": SAMPLE, "batch": 0}, "batch"),
                           ({"sample": SAMPLE, "rank": 2, "world_size": 2}, "rank"),
                           ({"sample": SAMPLE, "held": 0}, "held"), ({"sample": SAMPLE, "seed": -1}, "negative"),
                           ({"sample": SAMPLE, "memory": "3 sacks"}, "sacks"),
                           ({"sample": SAMPLE, "seed": 1 << 64}, "too large"),
                           ({"sample": SAMPLE, "batch": (1 << 64) + 4}, "too large"),
                           ({"sample": SAMPLE, "workers": (1 << 32) + 1}, "too large"),
                           ({"sample": SAMPLE, "batch": 0}, "^batch and prefetch are"),
                           ({"sample": SAMPLE, "window": 2}, "^window needs loader planned"),
                           ({"sample": SAMPLE, "memory": 1000}, "memory"),
                           ({"sample": {"time": 2}, "variables": ["b", "d"], "order": "map"}, "")):
        with pytest.raises(chunkmill.ChunkmillError, match=words):
            chunkmill.Loader(store, **{"variables": "b", **options}).close()
    with pytest.raises(chunkmill.ChunkmillError) as problem:
        chunkmill.Loader(tmp_path / "nowhere.zarr", sample=SAMPLE)
    assert problem.value.status == "not-found"
    loader = chunkmill.Loader(store, sample=SAMPLE, variables="b")
    loader.close()
    loader.close()
    with pytest.raises(chunkmill.ChunkmillError, match="was closed"):
        iter(loader)


@pytest.mark.parametrize("how", ["map", "planned"])
def test_an_epoch_that_is_left_early_is_over(store, how):
    """A training of a few steps an epoch must not see the same samples in each."""
    options = {"sample": SAMPLE, "variables": "b", "batch": 4, "seed": 4, "loader": how}
    with chunkmill.Loader(store, **options) as loader:
        whole = [[digest(b) for b in loader] for _ in range(4)]
    with chunkmill.Loader(store, **options) as loader:
        for epoch in range(3):
            left = []
            for batch in loader:
                left.append(digest(batch))
                if len(left) == 5:
                    break
            assert left == whole[epoch][:5]
        state = loader.state_dict()
        loader.set_epoch(1)
        assert digest(next(iter(loader))) == whole[1][0]
    with chunkmill.Loader(store, **options) as other:
        other.load_state_dict(state)
        assert [digest(b) for b in other] == whole[2][5:]
        assert [digest(b) for b in other] == whole[3]


@pytest.mark.parametrize("sample", [(2, 6, 9), [2, 6, 9], "2x6x9"])
def test_a_sample_in_order(store, sample):
    with chunkmill.Loader(store, sample=sample, variables="b", batch=3, batches=2) as loader:
        assert loader._keys["b"].shape == (2, 6, 9)


def test_what_lies_in_the_loader_is_not_copied(store):
    """Said with what to do, as for a worker's queue."""
    with chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=3) as loader:
        batch = next(iter(loader))
        for one in (batch, batch["b"]):
            for send in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match="take an array"):
                    send(one)
    for name, value in (("batch", 1.5), ("seed", "7"), ("prefetch", None)):
        with pytest.raises(TypeError, match=f"^{name}: "):
            chunkmill.Loader(store, sample=SAMPLE, variables="b", **{name: value})


def test_an_exception_in_the_loop(store):
    with chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=4, batches=10) as loader:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                for batch in loader:
                    1 // (3 - batch.number)
        loader.set_epoch(7)
        assert [(b.epoch, b.number) for b in loader] == [(7, n) for n in range(10)]
        first, second = iter(loader), iter(loader)
        next(second)
        with pytest.raises(chunkmill.ChunkmillError, match="one epoch at a time"):
            next(first)
        assert next(second).number == 1


def test_torchrun_variables(store, monkeypatch):
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    with chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=4, batches=3) as loader:
        assert (loader.rank, loader.world_size) == (1, 2)
        mine = [b.samples.tolist() for b in loader]
    with chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=4, batches=3, rank=1, world_size=2) as loader:
        assert [b.samples.tolist() for b in loader] == mine
    monkeypatch.setenv("RANK", "one")
    with pytest.raises(chunkmill.ChunkmillError, match="RANK=one"):
        chunkmill.Loader(store, sample=SAMPLE, variables="b")


def test_programs(tmp_path):
    source = netcdf_file(tmp_path / "a.nc")
    report = chunkmill.convert(source, tmp_path / "a.zarr", chunks="time=4,lat=8,lon=8", verify="full")
    assert report["schema"].startswith("nc2zarr/")
    assert (zarr.open_group(str(tmp_path / "a.zarr"))["b"][...] == FIELDS["b"]).all()
    with pytest.raises(chunkmill.ProgramError, match="exists") as problem:
        chunkmill.convert(source, tmp_path / "a.zarr")
    assert problem.value.returncode != 0
    assert chunkmill.rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks="time=full,lat=4,lon=4",
                             overwrite=True)["schema"].startswith("rechunk/")
    assert zarr.open_group(str(tmp_path / "b.zarr"))["b"].chunks == (14, 4, 4)
    assert chunkmill.chunkcalc(tmp_path / "a.zarr", variable="b", sample=SAMPLE)["schema"].startswith("chunkcalc/")
    measured = chunkmill.readbench(tmp_path / "a.zarr", variable="b", sample=SAMPLE, batch=4, batches=3, step_time="1ms")
    assert measured["schema"].startswith("readbench/")
    with pytest.raises(chunkmill.ProgramError, match="no-such"):
        chunkmill.chunkcalc(tmp_path / "a.zarr", no_such=3)


@pytest.mark.parametrize("kind", ["v3.zarr", "v2.zarr"])
def test_a_store_that_disappears_is_an_error(tmp_path, kind):
    """Chunks that are gone with their array are not fill values."""
    path = MAKERS[kind](tmp_path / kind)
    for gone in (path, path / "b"):
        with chunkmill.Loader(path, sample=SAMPLE, variables=["b", "a"], batch=4, batches=400, decode=False) as loader:
            running = iter(loader)
            next(running)
            shutil.copytree(path, tmp_path / "kept")
            shutil.rmtree(gone)
            right = 0
            with pytest.raises(chunkmill.ChunkmillError, match="removed") as problem:
                for batch in running:
                    assert_right(loader, batch, "ab")
                    right += 1
            assert problem.value.status == "io" and right < 399
            with pytest.raises(chunkmill.ChunkmillError, match="removed"):
                next(running)
        shutil.rmtree(path, ignore_errors=True)
        (tmp_path / "kept").rename(path)


@pytest.mark.parametrize("version", [2, 3])
def test_a_store_that_disappears_from_a_planned_loader(tmp_path, version):
    """Of more chunks than fit its memory: what was decoded before is right."""
    path = tmp_path / "a.zarr"
    field = np.arange(3000 * 4096, dtype="f4").reshape(3000, 64, 64)
    group = zarr.create_group(str(path), zarr_format=version)
    group.create_array("b", data=field, chunks=(10, 64, 64), dimension_names=NAMES if version == 3 else None)
    sample = {"time": 1} if version == 3 else (1, 64, 64)
    with chunkmill.Loader(path, variables="b", sample=sample, batch=4, loader="planned", memory="24MiB") as loader:
        running = iter(loader)
        next(running)
        shutil.rmtree(path)
        right = 0
        with pytest.raises(chunkmill.ChunkmillError, match="removed") as problem:
            for batch in running:
                assert np.array_equal(batch["b"].numpy()[:, 0], field[batch.index[:, 0]])
                right += 1
        assert problem.value.status == "io" and right < 749


@pytest.mark.parametrize("how", ["map", "planned"])
def test_history(store, how):
    """Lags may be negative: `index` and `coords` are those of lag 0."""
    with chunkmill.Loader(store, sample=SAMPLE, variables=["b", "d"], lags=[-3, 0, 2], batch=4, batches=20, loader=how) as loader:
        assert set(loader.keys()) == {"b", ("b", -3), ("b", 2), "d"}
        starts = set()
        for batch in loader:
            for k, (t, y, x) in enumerate(batch.index.tolist()):
                for lag in (-3, 0, 2):
                    want = FIELDS["b"][t + lag:t + lag + 2, y:y + 6, x:x + 9]
                    assert np.array_equal(batch["b", lag].numpy()[k] if lag else batch["b"].numpy()[k], want)
                assert np.array_equal(batch["d"].numpy()[k], FIELDS["d"][y:y + 6, x:x + 9])
                assert batch.coords["time"][k].tolist() == COORDS["time"][t:t + 2].tolist()
                starts.add(t)
        assert min(starts) >= 3 and max(starts) <= SHAPE[0] - 4
    with pytest.raises(chunkmill.ChunkmillError, match="-3 is there twice"):
        chunkmill.Loader(store, sample=SAMPLE, variables="b", lags=[-3, -3])


@pytest.mark.parametrize("how", ["map", "planned"])
def test_a_hundred_variables(tmp_path, how):
    group = zarr.create_group(str(tmp_path / "a.zarr"))
    fields = np.random.default_rng(8).random((100, 20, 6, 7), "f4")
    for i, field in enumerate(fields):
        group.create_array(f"v{i}", data=field, chunks=(4, 6, 7), dimension_names=NAMES)
    with chunkmill.Loader(tmp_path / "a.zarr", variables="v*", sample={"time": 2}, batch=5, loader=how) as loader:
        assert len(loader.keys()) == 100
        for batch in loader:
            for i in (0, 57, 99):
                for k, t in enumerate(batch.index[:, 0].tolist()):
                    assert np.array_equal(batch[f"v{i}"].numpy()[k], fields[i, t:t + 2])


def test_missing_chunks_of_a_store_that_is_there(tmp_path):
    path = zarr_store(tmp_path / "a.zarr")
    for chunk in (path / "b" / "c" / "1").rglob("*"):
        if chunk.is_file():
            chunk.unlink()
    with chunkmill.Loader(path, sample=SAMPLE, variables="b", batch=4, batches=100) as loader:
        zeros = sum((b["b"].numpy() == 0).sum() for b in loader)
        assert zeros > 0 and loader.stats()["missing_chunks"] > 0


def test_the_planned_order_follows_from_the_options(store):
    """Ranks with other workers, prefetch and batches held deliver parts of one order."""
    options = {"sample": {"time": 3, "lat": 7, "lon": 9}, "variables": "b", "batch": 4, "batches": 90, "seed": 1,
               "loader": "planned", "window": 2}
    ways = [{}, {"workers": 1, "prefetch": 7}, {"workers": 5, "held": 5}, {"sync": True}]
    orders = []
    for more in ways:
        with chunkmill.Loader(store, **options, **more) as loader:
            orders.append([[digest(b) for b in loader] for _ in range(3)])
    assert all(order == orders[0] for order in orders)
    assert orders[0][0] != orders[0][1]


def test_the_planned_loader_takes_places_alone_from_an_order(store):
    options = {"sample": SAMPLE, "variables": "b", "batch": 4}
    for order in ("sequential", "strided:3", "chunks"):
        places = []
        for how in ("map", "planned"):
            with chunkmill.Loader(store, order=order, loader=how, **options) as loader:
                places.append([tuple(row) for batch in loader for row in batch.index.tolist()])
        assert sorted(set(places[1])) == sorted(set(places[0])) and places[1] != places[0], order
    assert "shuffles them" in chunkmill.Loader.__doc__


@pytest.mark.roomy
def test_a_position_keeps_the_order_with_other_memory(tmp_path):
    path = tmp_path / "a.zarr"
    field = np.random.default_rng(3).random((200, 160, 160), "f4")
    group = zarr.create_group(str(path))
    group.create_array("b", data=field, chunks=(4, 160, 160), dimension_names=NAMES)
    options = {"variables": "b", "sample": {"time": 3}, "batch": 8, "loader": "planned", "seed": 2}
    with chunkmill.Loader(path, memory="1GiB", **options) as loader:
        whole = [digest(b) for b in loader]
        window = loader.window
    with chunkmill.Loader(path, memory="1GiB", **options) as loader:
        begun = [digest(b) for b in itertools.islice(loader, 5)]
        state = loader.state_dict()
    assert begun == whole[:5]
    with chunkmill.Loader(path, memory="48MiB", **options) as loader:
        assert loader.window < window or [digest(b) for b in loader] != whole, "memory changed nothing"
        loader.load_state_dict(state)
        assert [digest(b) for b in loader] == whole[5:]


SCRIPT = """
import sys, chunkmill, numpy as np, hashlib
loader = chunkmill.Loader(sys.argv[1], sample={"time": 2, "lat": 6, "lon": 9}, variables=["a", "b"], batch=6, batches=40,
                          seed=4, loader=sys.argv[2])
if len(sys.argv) > 3:
    import json
    loader.load_state_dict(json.loads(sys.argv[3]))
import json
for batch in loader:
    print(batch.number, hashlib.sha256(batch["b"].numpy().tobytes()).hexdigest(), json.dumps(loader.state_dict()), sep="|", flush=True)
"""


def environment():
    return {**os.environ, "PYTHONPATH": str(paths.ROOT / "tools" / "python")}


@pytest.mark.parametrize("how", ["map", "planned"])
def test_a_killed_training_goes_on(store, how):
    def lines(*more):
        return [sys.executable, "-c", SCRIPT, str(store), how, *more]

    whole = subprocess.run(lines(), env=environment(), capture_output=True, text=True, check=True).stdout.splitlines()
    with subprocess.Popen(lines(), env=environment(), stdout=subprocess.PIPE, text=True) as run:
        seen = [next(run.stdout).strip() for _ in range(13)]
        run.kill()
    rest = subprocess.run(lines(seen[-1].split("|")[2]), env=environment(), capture_output=True, text=True,
                          check=True).stdout.splitlines()
    assert seen + rest == whole and len(whole) == 40


@pytest.mark.roomy
def test_an_interrupt_ends_a_wait(tmp_path):
    """Ctrl-C while the loader makes a batch: KeyboardInterrupt, and the process ends."""
    big = tmp_path / "big.zarr"
    zarr.create_array(str(big), shape=(4000, 64, 64), chunks=(200, 64, 64), dtype="f4",
                      dimension_names=NAMES)[...] = RNG.standard_normal((4000, 64, 64)).astype("f4")
    script = ("import sys, chunkmill\n"
              "loader = chunkmill.Loader(sys.argv[1], sample={'time': 1}, batch=2000, workers=1, worker_threads=1)\n"
              "try:\n"
              "    print('begun', flush=True)\n"
              "    while True:\n"
              "        for batch in loader: pass\n"
              "except KeyboardInterrupt:\n"
              "    print('interrupted', flush=True)\n")
    with subprocess.Popen([sys.executable, "-c", script, str(big)], env=environment(), stdout=subprocess.PIPE,
                          text=True) as run:
        assert next(run.stdout) == "begun\n"
        time.sleep(0.2)
        try:
            run.send_signal(signal.SIGINT)
            assert run.communicate(timeout=300)[0] == "interrupted\n"
        finally:
            run.kill()
        assert run.returncode == 0


INTERRUPTED = """
import gc, os, random, signal, sys, chunkmill
sys.path.append(sys.argv[3])
from support import tasks

def interrupt(number, frame):  # as Ctrl-C does
    raise KeyboardInterrupt

def held():
    gc.collect()
    return tasks.held()

times, n, store = random.Random(2), 0, sys.argv[1]
options = dict(sample={"time": 1, "lat": 1, "lon": 1}, variables="b", batch=1, batches=10**6, workers=1, prefetch=1, held=1)
loader = chunkmill.Loader(store, **options)
before = held()
signal.signal(signal.SIGALRM, interrupt)
while n < 1500:
    n += 1
    batch = array = other = running = None
    try:
        signal.setitimer(signal.ITIMER_REAL, times.random() * 0.003)
        if sys.argv[2] == "open":
            other = chunkmill.Loader(store, **options)
            other.close()
        else:
            running = iter(loader)
            for batch in running:
                array = batch["b"].numpy()
                array = batch = None
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
batch = array = other = running = None
print(loader.stats()["held"], held() - before)
"""


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("what", ["open", "next"])
def test_interrupts_lose_nothing(store, what):
    """Wherever Ctrl-C falls, slots, workers and files are given back."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, str(store), what, str(paths.TESTS)], env=environment(),
                          capture_output=True, text=True, timeout=1500, check=False)
    assert (done.returncode, done.stdout) == (0, "0 set()\n"), done.stderr


def test_a_handler_of_signals_may_save(store):
    """As where a cluster's scheduler says that a job will be stopped: no deadlock with the call that it interrupts."""
    script = ("import signal, sys, chunkmill\n"
              "states = []\n"
              "def save(*_): states.append(loader.state_dict())\n"
              "loader = chunkmill.Loader(sys.argv[1], sample={'time': 1, 'lat': 1, 'lon': 1}, variables='b', batch=1, workers=1)\n"
              "signal.signal(signal.SIGALRM, save)\n"
              "signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)\n"
              "while len(states) < 200:\n"
              "    for batch in loader: pass\n"
              "signal.setitimer(signal.ITIMER_REAL, 0)\n"
              "print(len({state['position'] for state in states}) > 100)\n")
    done = subprocess.run([sys.executable, "-c", script, str(store)], env=environment(), capture_output=True, text=True,
                          timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_loader_is_closed_while_another_thread_waits(store):
    for _ in range(20):
        loader, seen = chunkmill.Loader(store, sample=SAMPLE, variables="b", batch=4, batches=10**6), []

        def train(loader=loader, seen=seen):
            try:
                while True:  # epoch after epoch, until it is closed
                    for batch in loader:
                        seen.append(batch.number)
            except chunkmill.ChunkmillError as problem:
                seen.append(str(problem))

        thread = threading.Thread(target=train)
        thread.start()
        while len(seen) < 3:
            loader.stats()
        loader.close()
        thread.join(60)
        assert not thread.is_alive() and seen[-1] == "the loader was closed"


def test_what_is_alive_when_the_interpreter_ends(store):
    """Loaders, batches and tensors in globals, in cycles, in a thread that does not end."""
    script = ("import sys, threading, numpy as np\n"
              "from chunkmill import Loader\n"
              "loader = Loader(sys.argv[1], sample={'time': 2}, variables='b', batch=4, batches=10**6, held=8)\n"
              "other = Loader(sys.argv[1], sample={'time': 2}, variables='b', batch=4, batches=10**6)\n"
              "batch = next(iter(loader)); x = np.from_dlpack(batch['b']); capsule = batch['b'].__dlpack__()\n"
              "class Node: pass\n"
              "a, b = Node(), Node(); a.b, b.a, a.x, b.batch = b, a, loader, next(iter(loader))\n"
              "np.kept = (a, batch, loader)\n"  # in a module that is emptied late
              "begun = threading.Event()\n"
              "def train():\n"
              "    try:\n"
              "        for one in other: begun.set()\n"
              "    except Exception: pass\n"
              "threading.Thread(target=train, daemon=True).start(); begun.wait()\n")
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", script, str(store)], env=environment(), capture_output=True, text=True,
                              timeout=300, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("end", ["os._exit(3)", "sys.exit(3)", "raise SystemExit(3)"])
def test_a_process_that_ends_in_the_loop(store, end):
    script = ("import os, sys, chunkmill, numpy as np\n"
              "loader = chunkmill.Loader(sys.argv[1], sample={'time': 2}, variables='b', batch=4)\n"
              "for batch in loader:\n"
              "    x = np.from_dlpack(batch['b'])\n"
              f"    {end}\n")
    done = subprocess.run([sys.executable, "-c", script, str(store)], env=environment(), capture_output=True, text=True,
                          timeout=300, check=False)
    assert (done.returncode, done.stderr) == (3, "")


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                                                     "uordblks", "fordblks", "keepcost")]


def in_use():
    """Bytes of the C heap in use, and of mappings; what is held."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Mallinfo2
    gc.collect()
    info = libc.mallinfo2()
    words = open("/proc/self/statm").read().split()
    return info.uordblks + info.hblkhd, int(words[0]) * os.sysconf("SC_PAGESIZE"), tasks.held()


# Bytes an open that must not go unnoticed.  What threads keep for the next allocation counts as in use: up to some
# 300 KB came and went in 120 opens.
LEAK = paths.tries(8192, 1024, 1024)


@pytest.mark.parametrize("leaks", [0, LEAK])
def test_many_loaders_leave_nothing(store, leaks):
    """Memory, descriptors and threads, over opens: 1,000 in `make check-long`.  A planted leak is found."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    opens, planted, more = paths.tries(120, 1000, 1000), [], contextlib.ExitStack()
    for i in range(60 + opens):
        if i == 60:  # caches of allocators are full
            before = in_use()
        with chunkmill.Loader(store, sample=SAMPLE, variables=["a", "b"], batch=2, batches=2,
                              loader=("map", "planned")[i % 2]) as loader:
            for batch in loader:
                array = np.from_dlpack(batch["b"])
        if leaks:
            planted.append(libc.malloc(leaks))
    del array, batch, loader
    if leaks:
        end = threading.Event()
        thread = threading.Thread(target=end.wait)
        thread.start()
        more.callback(end.set)
        more.enter_context(open(os.devnull))
    heap, space, held = (b - a for a, b in zip(before, in_use()))
    more.close()
    for block in planted:
        libc.free(block)
    assert sorted(h[0] for h in held) == (["descriptor", "thread"] if leaks else []), held
    assert (heap < opens * LEAK // 2) != bool(leaks), f"{heap} bytes after {opens} opens"
    if not leaks:
        assert space < 16 << 20, f"{space} bytes of address space after {opens} opens"


def test_torch(store):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    options = {"sample": SAMPLE, "variables": ["a", "b"], "batch": 4, "batches": 10}
    with chunkmill.Loader(store, **options) as loader:
        for batch in loader:
            x = torch.from_dlpack(batch["b"])
            assert x.shape == (4, 2, 6, 9) and x.dtype == torch.float64
            for k in range(4):
                assert (x[k].numpy() == expected(loader, batch, "b", k)).all()
    with chunkmill.Loader(store, cast="bfloat16", **{**options, "variables": "b"}) as loader:
        x = torch.from_dlpack(next(iter(loader))["b"])
        assert x.dtype == torch.bfloat16
    with chunkmill.Loader(store, **options) as loader:
        rows = torch.utils.data.DataLoader(loader.dataset(), batch_size=None, num_workers=0)
        assert len(rows) == 10
        assert [tuple(r["b"].shape) for r in rows] == [(4, 2, 6, 9)] * 10
        with pytest.raises(Exception, match="num_workers=0"):
            list(torch.utils.data.DataLoader(loader.dataset(), batch_size=None, num_workers=1))


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_example_trains(tmp_path, ranks):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    source = tmp_path / "weather.nc"
    subprocess.run([paths.BUILD / "bin" / "make_sample", source], check=True, capture_output=True)
    chunkmill.convert(source, tmp_path / "weather.zarr", variable="z")
    example, checkpoint = str(paths.ROOT / "examples" / "train.py"), str(tmp_path / "state.pt")
    start = [sys.executable] + ([] if ranks == 1 else ["-m", "torch.distributed.run", "--standalone",
                                                       "--nproc-per-node", "2"])
    for epochs, words in ((2, ["epoch 0: 3 batches", "epoch 1: 3 batches"]), (3, ["epoch 2: 3 batches"])):
        done = subprocess.run([*start, example, tmp_path / "weather.zarr", "--batches", "3", "--epochs", str(epochs),
                               "--checkpoint", checkpoint], env={**environment(), "OMP_NUM_THREADS": "1"},
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        assert [line.split(",")[0] for line in done.stdout.splitlines()] == words


def test_the_c_example(tmp_path, store):
    """Compiled by pkg-config, as its header says; the means are those of the batches."""
    program = tmp_path / "batches"
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "chunkmill-loader"], check=True, capture_output=True,
                           text=True, env={**os.environ, "PKG_CONFIG_PATH": str(paths.BUILD / "lib")}).stdout.split()
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", str(paths.ROOT / "examples" / "batches.c"), "-o",
                    str(program), *flags], check=True)
    done = subprocess.run([program, store, "time=2,lat=6,lon=9", "a", "b"], check=True, capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": str(paths.BUILD / "lib")})
    with chunkmill.Loader(store, sample=SAMPLE, variables=["a", "b"], batches=20, loader="planned", cast="float32") as loader:
        for epoch, line in enumerate(done.stdout.splitlines()):
            parts = [(b["a"].numpy().astype("f8"), b["b"].numpy().astype("f8")) for b in loader]
            a, b = (np.mean(values) for values in zip(*parts))
            assert line == f"epoch {epoch}: 20 batches, mean a={a:.6g} b={b:.6g}"


@pytest.mark.few
@pytest.mark.parametrize("kind", ["web", "bucket"])
def test_a_store_behind_a_url(store, monkeypatch, kind):
    subprocess.run([sys.executable, "-c", "import sys, zarr; zarr.consolidate_metadata(sys.argv[1])", str(store)],
                   check=True, capture_output=True)
    server = objects.Server() if kind == "bucket" else objects.Server(bucket=None, signed=False)
    try:
        server.put_folder(store, "data/a.zarr")
        for name, value in server.environment().items() if kind == "bucket" else ():
            monkeypatch.setenv(name, value)
        url = f"s3://{server.bucket}/data/a.zarr" if kind == "bucket" else f"{server.url}/data/a.zarr"
        for how in ("map", "planned"):
            with chunkmill.Loader(url, sample=SAMPLE, variables=["a", "b"], batch=4, batches=5, loader=how) as loader:
                for batch in loader:
                    assert_right(loader, batch, "ab")
    finally:
        server.close()


@pytest.mark.few
@pytest.mark.parametrize("kind", ["web", "bucket"])
def test_references_to_what_lies_behind_a_url(tmp_path, monkeypatch, kind):
    source, refs = netcdf_file(tmp_path / "a.nc"), tmp_path / "refs.json"
    server = objects.Server() if kind == "bucket" else objects.Server(bucket=None, signed=False)
    try:
        server.objects["data/a.nc"] = (data := source.read_bytes(), objects.etag_of(data))
        for name, value in server.environment().items() if kind == "bucket" else ():
            monkeypatch.setenv(name, value)
        base = f"s3://{server.bucket}/data" if kind == "bucket" else f"{server.url}/data"
        chunkmill.convert(source, refs, virtual="json", base_url=base)
        source.unlink()
        with pytest.raises(chunkmill.ChunkmillError, match=f"; allow {base} permits it"):
            chunkmill.Loader(refs, sample=SAMPLE)
        for place in (refs, f"file://{refs}"):
            with chunkmill.Loader(place, sample=SAMPLE, variables=["a", "b"], batch=4, batches=5, allow=base) as loader:
                for batch in loader:
                    assert_right(loader, batch, "ab")
    finally:
        server.close()


# A device as a consumer of DLPack sees it, where the driver is a fake whose memory is the host's.
ON_A_DEVICE = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import numpy as np, chunkmill

class Managed(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("number", ctypes.c_int32)]

get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
options = dict(sample={"time": 2, "lat": 6, "lon": 9}, variables=["a", "b"], batch=4, batches=9)
with chunkmill.Loader(sys.argv[2], **options) as here, \\
        chunkmill.Loader(sys.argv[2], device="cuda:1", staging="pageable", **options) as there:
    assert (here.device, there.device) == ("none", "cuda:1")
    n = 0
    for near, far in zip(here, there):
        for name in "ab":
            want, tensor = near[name].numpy(), far[name]
            assert tensor.__dlpack_device__() == (2, 1)
            for stream in (None, 1, 2, -1):
                capsule = tensor.__dlpack__(stream=stream, max_version=None)
                seen = Managed.from_address(get(capsule, b"dltensor"))
                assert (seen.type, seen.number) == (2, 1)
                assert ctypes.string_at(seen.data, tensor.nbytes) == want.tobytes()
                del capsule
            try:
                tensor.__dlpack__(stream=0)
                raise SystemExit("a stream that DLPack does not define was taken")
            except chunkmill.ChunkmillError as error:
                assert "not a stream" in str(error)
            try:
                tensor.numpy()
                raise SystemExit("NumPy took memory of a device")
            except BufferError as error:
                assert "on a device" in str(error)
            try:
                np.from_dlpack(tensor)  # takes a capsule, and refuses it
                raise SystemExit("NumPy took memory of a device")
            except (RuntimeError, SystemError):
                pass
            del tensor
        n += 1
        assert there.stats()["held"] <= 1
    assert n == 9
print("seen")
"""


def test_batches_on_a_device(store, tmp_path):
    """Copied there: what the host reads."""
    fake = tmp_path / "driver" / "libcuda.so.1"
    fake.parent.mkdir()
    shutil.copy(paths.BUILD / "tests" / "lib" / "fake_cuda_12.so", fake)
    done = subprocess.run([sys.executable, "-c", ON_A_DEVICE, str(paths.ROOT / "tools" / "python"), str(store)],
                          env={**environment(), "LD_LIBRARY_PATH": str(fake.parent)}, capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.stdout == "seen\n", done.stderr


def test_a_second_memory(store):
    """The device `host` is memory of the CPU, and says so."""
    with chunkmill.Loader(store, sample=SAMPLE, variables=["a", "b"], batch=4, batches=20, device="host") as loader:
        assert loader.device == "host"
        kept = []
        for batch in loader:
            assert batch["a"].__dlpack_device__() == (1, 0)
            assert_right(loader, batch, "ab")
            kept = [batch["b"].numpy()]
        copy = kept[0].copy()
    assert (kept[0] == copy).all()
    with pytest.raises(chunkmill.ChunkmillError, match="staging"):
        chunkmill.Loader(store, sample=SAMPLE, staging="pinned")


def test_no_driver(store):
    if os.path.exists("/proc/driver/nvidia/version"):
        pytest.skip("this machine has a driver")
    with pytest.raises(chunkmill.ChunkmillError, match="device cuda: no NVIDIA driver") as caught:
        chunkmill.Loader(store, sample=SAMPLE, variables="b", device="cuda")
    assert caught.value.status == "not-found"
