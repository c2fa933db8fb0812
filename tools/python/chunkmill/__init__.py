"""Chunkmill: batches for training, and the programs nc2zarr, chunkcalc, rechunk and readbench."""
from __future__ import annotations

from ._dates import Date
from ._record import record
from ._tensor import Batch, Tensor
from .errors import (ArgumentTypeError, Error, FormatError, HolesWarning, InvalidError, NotFoundError, OutOfMemoryError,
                     StorageError, UnsupportedError)
from .loader import Dim, Loader
from .programs import ProgramError, chunkcalc, convert, readbench, rechunk

ChunkmillError = Error  # its name before there were others

__all__ = ["ArgumentTypeError", "Batch", "ChunkmillError", "Date", "Dim", "Error", "FormatError", "HolesWarning", "InvalidError",
           "Loader", "NotFoundError", "OutOfMemoryError", "ProgramError", "StorageError", "Tensor", "UnsupportedError",
           "chunkcalc", "convert", "readbench", "rechunk", "record"]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from ._library import library
        return str(library().cm_loader_version().decode())
    raise AttributeError(f"module 'chunkmill' has no attribute {name!r}")


def _record_where_asked() -> None:
    """CHUNKMILL_RECORD=LOG records every store that zarr-python opens."""
    import os

    from . import _record
    log = os.environ.get(_record.VARIABLE)
    if log:
        _record.record_all(log)


_record_where_asked()
