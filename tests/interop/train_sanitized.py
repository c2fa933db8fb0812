"""A training on a sanitized library, in a plain Python with PyTorch: all that callers do to a loader.

    train_sanitized.py STORE VARIABLE

Run by test_loader_sanitized.py, with the sanitizer's runtime preloaded.  Prints "trained" at its end.
"""
import gc
import os
import random
import sys
import threading

import torch
from torch import nn

from chunkmill import ChunkmillError, Loader

STORE, NAME = sys.argv[1:]
SAMPLE = {"time": 2, "lat": 12, "lon": 14}
torch.manual_seed(0)
network = nn.Sequential(nn.Conv2d(1, 4, 3, padding="same"), nn.ReLU(), nn.Conv2d(4, 1, 3, padding="same"))
optimizer = torch.optim.Adam(network.parameters())


def opened(how, **more):
    options = {"variables": NAME, "sample": SAMPLE, "batch": 4, "batches": 12, "loader": how, "workers": 3,
               "worker_threads": 2 if how == "map" else 1, "seed": 1, **more}
    return Loader(STORE, **options)


def train(loader):
    for batch in loader:
        x = torch.from_dlpack(batch[NAME]).float()
        loss = nn.functional.mse_loss(network(x[:, :1]), x[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def held(how):
    """A whole epoch, deleted in any order by other threads, after the loader was closed."""
    with opened(how, held=12) as loader:
        tensors = [torch.from_dlpack(batch[NAME]) for batch in loader]
    want = [t.double().sum().item() for t in tensors]
    order = list(range(len(tensors)))
    random.Random(1).shuffle(order)
    wrong = []

    def drop(mine):
        for i in mine:
            if tensors[i].double().sum().item() != want[i]:
                wrong.append(i)
            tensors[i] = None

    threads = [threading.Thread(target=drop, args=(order[k::4],)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def given_back_meanwhile(how):
    """Tensors go in one thread, as the loader makes batches for another."""
    with opened(how, held=6, batches=60) as loader:
        waiting, ready, over = [], threading.Semaphore(0), threading.Event()

        def consume():
            while ready.acquire() and not (over.is_set() and not waiting):
                waiting.pop(0).add(1)

        thread = threading.Thread(target=consume)
        thread.start()
        for batch in loader:
            while len(waiting) > 2:
                pass
            waiting.append(torch.from_dlpack(batch[NAME]))
            ready.release()
        over.set()
        ready.release()
        thread.join()


def restored(how):
    with opened(how) as loader:
        running = iter(loader)
        first = [next(running)[NAME].numpy().copy() for _ in range(5)]
        state = loader.state_dict()
        rest = [b[NAME].numpy().copy() for b in running]
    with opened(how) as loader:
        loader.load_state_dict(state)
        again = [b[NAME].numpy().copy() for b in loader]
    assert len(first) + len(again) == 12 and all((a == b).all() for a, b in zip(rest, again, strict=True))


def interrupted(how):
    """An exception in the loop, a closed loader, another thread that waits."""
    with opened(how) as loader:
        try:
            for batch in loader:
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        del batch
        train(loader)
    loader, seen = opened(how, batches=100000), []

    def wait():
        try:
            for batch in loader:
                seen.append(batch.number)
        except ChunkmillError as problem:
            seen.append(str(problem))

    thread = threading.Thread(target=wait)
    thread.start()
    while not seen:
        loader.stats()
    loader.close()
    thread.join()
    assert seen[-1] == "the loader was closed"


def forked(how):
    """A child gets errors and gives nothing back."""
    with opened(how) as loader:
        running = iter(loader)
        batch = next(running)
        tensor = torch.from_dlpack(batch[NAME])
        child = os.fork()
        if child == 0:
            try:
                next(running)
            except ChunkmillError:
                del batch, tensor
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert sum(1 for _ in running) == 11


for how in ("map", "planned"):
    with opened(how) as loader:
        train(loader)
        train(loader)
    for step in (held, given_back_meanwhile, restored, interrupted, forked):
        step(how)
    rows = torch.utils.data.DataLoader(opened(how).dataset(), batch_size=None, num_workers=0)
    assert sum(1 for _ in rows) == 12
    gc.collect()
print("trained", flush=True)
