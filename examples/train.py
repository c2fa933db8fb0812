"""Trains a small network on the demo's data: the field of z six hours ahead from the one before.

    make demo
    python examples/train.py build/demo/weather.zarr
    torchrun --nproc-per-node 2 examples/train.py build/demo/weather.zarr

With torchrun each process reads its own share of each epoch, and gradients are averaged.
"""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn

from chunkmill import Loader

parser = argparse.ArgumentParser()
parser.add_argument("store")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batches", type=int, default=10, help="of an epoch and process")
parser.add_argument("--checkpoint", help="where to go on, and to leave a checkpoint")
options = parser.parse_args()

distributed = "RANK" in os.environ
if distributed:
    dist.init_process_group("gloo")
torch.manual_seed(0)

# Rank and world size come from torchrun's variables.
loader = Loader(options.store, variables=["z"], sample={"time": 2, "lat": 32, "lon": 32}, batch=16,
                batches=options.batches, loader="planned", seed=1)
network = nn.Sequential(nn.Conv2d(2, 16, 3, padding="same"), nn.ReLU(), nn.Conv2d(16, 2, 3, padding="same"))
model = nn.parallel.DistributedDataParallel(network) if distributed else network
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
first = 0

if options.checkpoint and os.path.exists(options.checkpoint):
    saved = torch.load(options.checkpoint)
    network.load_state_dict(saved["network"])
    optimizer.load_state_dict(saved["optimizer"])
    loader.load_state_dict(saved["loader"][loader.rank])
    first = saved["loader"][loader.rank]["epoch"]

for epoch in range(first, options.epochs):
    total = 0.0
    for batch in loader:
        z = torch.from_dlpack(batch["z"])  # [sample, time, level, lat, lon], not copied
        z = (z - z.mean()) / z.std()
        loss = nn.functional.mse_loss(model(z[:, 0]), z[:, 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if loader.rank == 0:
        print(f"epoch {epoch}: {len(loader)} batches, mean loss {total / len(loader):.4f}", flush=True)

if options.checkpoint:
    states = [loader.state_dict()]
    if distributed:
        states = [None] * dist.get_world_size()
        dist.all_gather_object(states, loader.state_dict())
    if loader.rank == 0:
        torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict(), "loader": states},
                   options.checkpoint)
loader.close()
if distributed:
    dist.destroy_process_group()
