"""Iterations of a loader: which epoch comes next, whose share it is, and what Ctrl-C leaves."""

import os
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
import zarr

from support import objects, paths

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python")

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
import chunkmill  # noqa: E402


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("iterations") / "s.zarr"
    group = zarr.create_group(str(path))
    a = group.create_array("a", shape=(60, 64, 64), chunks=(4, 32, 32), dtype="f4", dimension_names=("t", "y", "x"))
    a[...] = np.arange(a.size, dtype="f4").reshape(a.shape)
    label = group.create_array("label", shape=(60,), chunks=(4,), dtype="S3", dimension_names=("t",))
    label[...] = np.array([f"s{i}" for i in range(60)], "S3")
    return path


def opened(store, **options):
    return chunkmill.Loader(store, **{"variables": "a", "sample": {"t": 1}, "batch": 6, **options})


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_that_share_an_iteration_end_one_epoch(store, threads):
    with opened(store, batch=1, held=threads + 1) as loader:
        for epoch in range(4):
            batches, seen = iter(loader), []
            workers = [threading.Thread(target=lambda: seen.extend(b.number for b in batches)) for _ in range(threads)]
            for w in workers:
                w.start()
            for w in workers:
                w.join()
            assert sorted(seen) == list(range(60)) and loader.state_dict()["epoch"] == epoch + 1


@pytest.mark.few
@pytest.mark.parametrize("how", ["map", "planned"])
def test_a_loader_is_closed_while_its_server_says_nothing(store, monkeypatch, how):
    """Requests are repeated for five minutes and more; nobody waits for them any longer."""
    server, stalled, ended = objects.Server(), threading.Event(), threading.Event()

    def stall(handler):
        if "/c/" in handler.path:
            stalled.set()
            ended.wait(120)
            handler.close_connection = True
            return "done"

    try:
        server.put_folder(store, "s.zarr")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        server.fault = stall
        loader = opened(f"s3://{server.bucket}/s.zarr", loader=how)
        iter(loader)
        assert stalled.wait(60)
        closing = threading.Thread(target=loader.close, daemon=True)
        closing.start()
        closing.join(60)
        assert not closing.is_alive()
    finally:
        ended.set()
        server.close()


@pytest.mark.parametrize("at", [0, 5, 9])
def test_an_epoch_that_is_set_within_another_is_the_next_one(store, at):
    with opened(store) as loader:
        for batch in loader:
            assert batch.epoch == 0
            if batch.number == at:
                loader.set_epoch(7)
        assert [next(iter(loader)).epoch for _ in range(2)] == [7, 8]


RANKS = [  # the variables of torchrun, what is asked for, rank and world size
    ({"RANK": "1", "WORLD_SIZE": "2"}, {}, (1, 2)),
    ({"RANK": "1", "WORLD_SIZE": "2"}, {"world_size": 2}, (1, 2)),
    ({"RANK": "1", "WORLD_SIZE": "2"}, {"world_size": 1}, (0, 1)),
    ({"RANK": "1", "WORLD_SIZE": "2"}, {"rank": 0}, (0, 2)),
    ({"RANK": "0"}, {}, (0, 1)),
    ({"WORLD_SIZE": "1"}, {}, (0, 1)),
    ({"WORLD_SIZE": "2"}, {}, None),
    ({}, {"world_size": 2}, None),
]


@pytest.mark.every
@pytest.mark.parametrize("variables, options, want", RANKS)
def test_whose_share_it_is(store, monkeypatch, variables, options, want):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if want is None:
        with pytest.raises(chunkmill.InvalidError, match="rank: which of 2"):
            opened(store, **options)
        return
    with opened(store, **options) as loader:
        assert (loader.rank, loader.world_size) == want


@pytest.mark.parametrize("name, value", [("RANK", "-1"), ("WORLD_SIZE", "0"), ("LOCAL_WORLD_SIZE", "-3"), ("WORLD_SIZE", "two")])
def test_variables_that_say_no_share_are_named(store, monkeypatch, name, value):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv(name, value)
    with pytest.raises(chunkmill.InvalidError, match=f"{name}={value}"):
        opened(store)


@pytest.mark.parametrize("workers, options, fine", [(2, {}, False), (2, {"rank": 1, "world_size": 2}, True), (1, {}, True)])
def test_worker_processes_do_not_each_read_all(store, monkeypatch, workers, options, fine):
    worker = types.SimpleNamespace(id=1, num_workers=workers)
    monkeypatch.setitem(sys.modules, "torch.utils.data", types.SimpleNamespace(get_worker_info=lambda: worker))
    if fine:
        opened(store, **options).close()
        return
    with pytest.raises(chunkmill.InvalidError, match="worker processes"):
        opened(store, **options)


INTERRUPTED = """
import os, signal, sys, threading, chunkmill
def opened():
    return chunkmill.Loader(sys.argv[1], variables="a", sample={"t": 1, "y": 16, "x": 16}, batch=16, batches=10**5, workers=1)
for delay in (0.05, 0.08, 0.11, 0.14):
    loader, last = opened(), -1
    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        for batch in loader:
            last = batch.number
    except KeyboardInterrupt:
        pass
    batch = None
    with opened() as again:
        again.load_state_dict(loader.state_dict())
        print(next(iter(again)).number - last, end=" ")
    # The loader itself goes on there, too.
    loader.load_state_dict(loader.state_dict())
    print(next(iter(loader)).number - last)
    loader.close()
"""


def test_the_batch_that_arrives_with_an_interrupt_is_the_next_one(store):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, str(store)], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "PYTHONPATH": str(paths.ROOT / "tools" / "python")})
    # Between the last assignment and the next call an interrupt may fall as well: then the batch was had.
    assert done.returncode == 0 and set(done.stdout.split()) <= {"0", "1"}, (done.stdout, done.stderr)
    assert "1" in done.stdout.split()


def test_types_that_are_no_tensors_are_errors(store):
    with opened(store, variables="label") as loader, next(iter(loader)) as batch:
        for take in (np.from_dlpack, np.asarray, lambda t: t.numpy(), lambda t: t.__dlpack__(), lambda t: t.__dlpack__(max_version=(1, 0))):
            with pytest.raises(chunkmill.UnsupportedError, match="variable label"):
                take(batch["label"])
    with opened(store, cast="bfloat16") as loader, next(iter(loader)) as batch:
        with pytest.raises(chunkmill.UnsupportedError, match="bfloat16"):
            batch["a"].numpy()
