"""PyTorch's view of a loader; imported when it is asked for."""
import torch
from torch.utils.data import IterableDataset


class Dataset(IterableDataset):
    def __init__(self, loader, transform):
        super().__init__()
        self._loader = loader
        self._transform = transform

    def __iter__(self):
        for batch in self._loader:
            yield self._transform(batch)

    def __len__(self):
        return len(self._loader)

    def set_epoch(self, epoch):
        self._loader.set_epoch(epoch)

    def state_dict(self):
        return self._loader.state_dict()

    def load_state_dict(self, state):
        self._loader.load_state_dict(state)


def tensors(batch):
    return {key: torch.from_dlpack(value) for key, value in batch.items()}


def dataset(loader, transform=None):
    return Dataset(loader, transform or tensors)
