#!/usr/bin/env python3
"""A loader for `readbench --engine exec:CMD`: a PyTorch DataLoader over zarr-python.

The batches that are asked for are the batch sampler.  DataLoader reads in this
process: readbench's workers are the processes, so that each of them, as one of
DataLoader's, makes whole batches.
"""

import time

import numpy as np

import engine
import zarr_python


def open_store(greeting):
    try:
        import torch.utils.data  # noqa: F401: so that a missing PyTorch is told at once
    except ImportError:
        raise engine.Refusal("PyTorch is not installed: pip install torch") from None
    return zarr_python.open_store(greeting)


def whole(values, shape):
    """A clipped sample fills the place of a whole one: stacking needs equal shapes."""
    if list(values.shape) == list(shape):
        return values
    padded = np.zeros(shape, values.dtype)
    padded[engine.slices([0] * values.ndim, values.shape)] = values
    return padded


def loader(read, shapes, requests):
    """The batches of REQUESTS as lists of tensors, one a part, each [batch, sample...]."""
    from torch.utils.data import DataLoader, Dataset, default_collate

    class Samples(Dataset):
        def __getitem__(self, parts):
            return [whole(read(*part), shape) for part, shape in zip(parts, shapes)]

    def batches():
        for request in requests:
            parts = request["parts"]
            yield [
                [(part["variable"], part["start"][i], part["shape"][i]) for part in parts]
                for i in range(len(request["samples"]))
            ]

    return DataLoader(
        Samples(), batch_sampler=batches(), num_workers=0, collate_fn=lambda s: default_collate(s)
    )


def main():
    checksum = engine.options(__doc__).checksum
    lines = engine.Lines()
    begun = engine.begin(lines, open_store)
    if begun is None:
        return
    read, greeting = begun
    asked = {}

    def requests():
        while (request := lines.read()) is not None:
            asked.update(request=request, at=time.perf_counter())
            yield request

    try:
        for tensors in loader(read, greeting["sample"], requests()):
            seconds = time.perf_counter() - asked["at"]
            parts = [
                [sample[engine.slices([0] * len(shape), shape)] for sample, shape in zip(tensor.numpy(), part["shape"])]
                for tensor, part in zip(tensors, asked["request"]["parts"])
            ]
            lines.write(engine.answer(asked["request"], parts, seconds, greeting["sample"], checksum))
    except Exception as error:  # the iterator of a DataLoader that raised cannot go on
        lines.write({"error": engine.reason(error)})


if __name__ == "__main__":
    main()
