"""PyTorch's view of a loader; PyTorch is imported here alone."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import torch
import torch.distributed
import torch.utils.data

from ._tensor import Batch
from .errors import InvalidError
from .loader import Loader

__all__ = ["IterableDataset", "tensors"]


def tensors(batch: Batch) -> dict[Any, Any]:
    """{name: tensor} of a batch, not copied; (name, lag) where there are lags."""
    return {key: torch.from_dlpack(value) for key, value in batch.items()}


def _ranks() -> dict[str, Any]:
    """Of torch.distributed, where it was initialised; otherwise the loader asks torchrun's variables."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return {}
    return {"rank": torch.distributed.get_rank(), "world_size": torch.distributed.get_world_size()}


class IterableDataset(torch.utils.data.IterableDataset):  # type: ignore[misc,type-arg,unused-ignore]
    """Batches of a loader, for torch.utils.data.DataLoader(..., batch_size=None, num_workers=0).

        rows = IterableDataset("era5.zarr", sample={"time": 4, "lat": 64, "lon": 64}, batch=32)
        for tensors in torch.utils.data.DataLoader(rows, batch_size=None):
            x = tensors["t2m"]

    `store` is a Loader, or what Loader opens, with its options; rank and world size are then those of
    torch.distributed, if it was initialised before.  `transform` makes of a Batch what is given out,
    by default {name: tensor}.  The loader has threads of its own, so that worker processes are refused.

    Attributes:
        loader: the Loader that gives the batches.
    """

    def __init__(self, store: Any, *, transform: Callable[[Batch], Any] | None = None,
                 **options: Any) -> None:
        super().__init__()
        if isinstance(store, Loader):
            if options:
                raise InvalidError(f"{', '.join(options)}: the loader is open already; give its options to it")
            self.loader = store
        else:
            # A world of one was asked for: each process reads all.
            told = "rank" in options or options.get("world_size") == 1
            self.loader = Loader(store, **{**({} if told else _ranks()), **options})
        self._transform = transform or tensors

    def __iter__(self) -> Iterator[Any]:
        """An epoch of the loader."""
        if torch.utils.data.get_worker_info() is not None:
            raise InvalidError("this is a worker process of a DataLoader, and the loader has its own workers: use "
                               "num_workers=0")
        for batch in self.loader:
            yield self._transform(batch)

    def __len__(self) -> int:
        """Batches of an epoch, of this rank."""
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """The epoch that the next iteration is."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the next batch will come from."""
        return self.loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration goes on where state_dict was taken."""
        self.loader.load_state_dict(state)
