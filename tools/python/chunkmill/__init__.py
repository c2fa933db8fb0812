"""Chunkmill: batches for training, and the programs nc2zarr, chunkcalc, rechunk and readbench."""
from ._library import ChunkmillError
from ._tensor import Batch, Tensor
from .loader import Loader
from .programs import ProgramError, chunkcalc, convert, readbench, rechunk

__all__ = ["Batch", "ChunkmillError", "Loader", "ProgramError", "Tensor", "chunkcalc", "convert",
           "readbench", "rechunk"]


def __getattr__(name):
    if name == "__version__":
        from ._library import library
        return library().cm_loader_version().decode()
    raise AttributeError(f"module 'chunkmill' has no attribute {name!r}")
