"""Chunkmill: batches for training, and the programs nc2zarr, chunkcalc, rechunk and readbench."""
from __future__ import annotations

from ._dates import Date
from ._tensor import Batch, Tensor
from .errors import (ArgumentTypeError, Error, FormatError, InvalidError, NotFoundError, OutOfMemoryError,
                     StorageError, UnsupportedError)
from .loader import Dim, Loader
from .programs import ProgramError, chunkcalc, convert, readbench, rechunk

ChunkmillError = Error  # its name before there were others

__all__ = ["ArgumentTypeError", "Batch", "ChunkmillError", "Date", "Dim", "Error", "FormatError", "InvalidError",
           "Loader", "NotFoundError", "OutOfMemoryError", "ProgramError", "StorageError", "Tensor", "UnsupportedError",
           "chunkcalc", "convert", "readbench", "rechunk"]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from ._library import library
        return str(library().cm_loader_version().decode())
    raise AttributeError(f"module 'chunkmill' has no attribute {name!r}")
