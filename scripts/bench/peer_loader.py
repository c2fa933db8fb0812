#!/usr/bin/env python3
"""peer_loader.py WHO WORKERS PLAN: loads the batches of PLAN as PyTorch's DataLoader does, over WHO of peer_read.py.

Worker processes make whole batches, each worker in its turn; each has two batches
under way, and they are delivered in order.  A worker collates a batch in memory
that it shares with the training, as DataLoader's do.  The workers stay between
passes (persistent_workers).  Says and does what peer_read.py says and does.
"""

import json
import math
import multiprocessing
import sys
import time
from multiprocessing import shared_memory

import numpy as np

import peer_read
import read_plan

PREFETCH = 2
SLOTS = PREFETCH + 1  # of a worker: the training has one batch


def work(who, path, memory, connection):
    plan = read_plan.read(path)
    batches = plan.batches()
    try:
        read_batch = peer_read.WHO[who](plan, 1)
        connection.send("ready")
        while (asked := connection.recv()) is not None:
            number, slot = asked
            cpu = time.process_time()
            place = view(memory, plan, slot)
            for i, values in enumerate(read_batch(batches[number])):
                place[i] = values
            connection.send((number, slot, time.process_time() - cpu))
    except Exception as error:  # whatever a library raises is told
        connection.send(f"{type(error).__name__}: {error}")
        raise


def view(memory, plan, slot):
    nbytes = plan.batch * plan.itemsize * math.prod(plan.sample)
    return np.ndarray((plan.batch, *plan.sample), "f4", memory.buf, slot * nbytes)


class Loader:
    def __init__(self, who, nworkers, path):
        self.plan = read_plan.read(path)
        nbytes = self.plan.batch * self.plan.itemsize * math.prod(self.plan.sample)
        # Fork, as DataLoader's default on Linux; nothing is opened yet.
        context = multiprocessing.get_context("fork")
        self.memory, self.workers = [], []
        for _ in range(nworkers):
            memory = shared_memory.SharedMemory(create=True, size=SLOTS * nbytes)
            ours, theirs = context.Pipe()
            context.Process(target=work, args=(who, path, memory, theirs), daemon=True).start()
            self.memory.append(memory)
            self.workers.append(ours)
        for worker in self.workers:
            if (said := worker.recv()) != "ready":
                raise RuntimeError(said)

    def epoch(self):
        """Batches in order, and the CPU seconds of each."""
        n, nworkers = len(self.plan.batches()), len(self.workers)

        def ask(number):
            if number < n:
                self.workers[number % nworkers].send((number, number // nworkers % SLOTS))

        for number in range(PREFETCH * nworkers):
            ask(number)
        for number in range(n):
            answer = self.workers[number % nworkers].recv()
            if isinstance(answer, str):
                raise RuntimeError(answer)
            ask(number + PREFETCH * nworkers)
            yield view(self.memory[number % nworkers], self.plan, answer[1]), answer[2]

    def close(self):
        for worker, memory in zip(self.workers, self.memory):
            worker.send(None)
            memory.close()
            memory.unlink()


def main():
    loader = Loader(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    print("ready", flush=True)
    for line in sys.stdin:
        if line.startswith("check "):
            nleft = len(loader.plan.starts)
            with open(line[6:].rstrip("\n"), "w") as f:
                for batch, _ in loader.epoch():
                    f.writelines(f"{peer_read.crc32c(sample):08x}\n" for sample in batch[:nleft])
                    nleft -= len(batch)
            print("{}", flush=True)
            continue
        cpu, start = time.process_time(), time.perf_counter()
        children = sum(cpu_of_batch for _, cpu_of_batch in loader.epoch())
        answer = {"seconds": time.perf_counter() - start, "cpu": children + time.process_time() - cpu}
        print(json.dumps(answer), flush=True)
    loader.close()


if __name__ == "__main__":
    main()
