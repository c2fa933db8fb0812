"""Batches and their tensors, which other libraries take by DLPack."""
from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from ctypes import byref
from typing import TYPE_CHECKING, Any, Union

from . import _library as c
from ._library import check
from .errors import InvalidError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np

    from .loader import Dim, Loader, Variable

Key = Union[str, "tuple[str, int]"]

# Of DLPack's device types; and of CUDA's streams, as it numbers them.
_CPU, _CUDA, _DEFAULT_STREAM = 1, 2, 1

# struct's letters of types that it has.
_FORMAT = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H",
           "uint32": "I", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d", "bool": "?"}


def array(raw: Any, kind: str, shape: Sequence[int]) -> Any:
    """`raw` bytes as a NumPy array, or as a memoryview where there is no NumPy."""
    try:
        import numpy
    except ImportError:
        flat: Any = memoryview(raw).cast("B")
        return flat.cast(_FORMAT.get(kind, "q"), shape)
    return numpy.frombuffer(raw, dtype=kind).reshape(shape)


_MOST_CHARACTERS = 16 << 20


def labels(texts: list[str]) -> Any:
    """Texts as a NumPy array, or as a list where there is no NumPy."""
    try:
        import numpy
    except ImportError:
        return texts
    # All take the room of the longest: one that is very long would take what the others do not need.
    widest = max(map(len, texts), default=0)
    return numpy.array(texts, dtype=str if len(texts) * widest <= _MOST_CHARACTERS else object)


def _cut(dim: Dim, starts: list[int]) -> Any:
    """The coordinates of samples that begin at STARTS."""
    coords = dim.coords
    parts = [coords[s:s + dim.sample] for s in starts]
    if isinstance(coords, list):
        return parts
    if isinstance(coords, memoryview):
        return array(b"".join(part.tobytes() for part in parts), str(dim.type), [len(parts), dim.sample])
    import numpy
    return numpy.stack(parts)


def _not_sent(what: str) -> TypeError:
    return TypeError(f"a chunkmill.{what} lies in its loader's memory and cannot be pickled or copied: take an "
                     "array of NumPy or PyTorch from it, and copy that")


class Tensor:
    """One variable of a batch: [samples, ...].

    It is taken by torch.from_dlpack, numpy.from_dlpack, jax.dlpack.from_dlpack, cupy.from_dlpack,
    without a copy.  The memory is the loader's; it is filled again when nothing holds it any more
    and, on a GPU, when the streams that took it have done what they then had to do.
    """

    def __init__(self, batch: Batch, about: Variable) -> None:
        self._batch = batch
        self._about = about

    @property
    def name(self) -> str:
        """The variable's name."""
        return self._about.name

    @property
    def lag(self) -> int:
        """Steps along `time`, or the first dimension, from the sample's start; 0 but with `lags`."""
        return self._about.lag

    @property
    def dtype(self) -> str:
        """The name of its type: "float32", "bfloat16", ..."""
        return self._about.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Samples, and the lengths of one of them."""
        return (self._batch._n, *self._about.shape)

    @property
    def dims(self) -> tuple[str | None, ...]:
        """Names of the dimensions of a sample, those behind the first of `shape`."""
        return self._about.dims

    @property
    def nbytes(self) -> int:
        """Bytes of all samples."""
        return self._batch._n * self._about.nbytes

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's type and number of the device: (1, 0) is the CPU, (2, 0) the first GPU."""
        return self._batch._loader._place

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """A capsule of DLPack, which holds the batch's memory as long as its consumer does."""
        batch = self._batch
        place = batch._loader._place
        if dl_device is not None and tuple(dl_device) != place:
            raise BufferError("chunkmill: a batch is given where it lies; copy it from there")
        if copy:
            raise BufferError("chunkmill: a batch is given without a copy; copy what you take")
        if place[0] == _CUDA:
            # None is the default stream, as Python's array API says.
            error = c.Error()
            stream = _DEFAULT_STREAM if stream is None else stream
            check(c.library().cm_batch_stream(batch._live(), stream, byref(error)), error)
        versioned = max_version is not None and max_version[0] >= 1
        return c.made(self._about.capsule, batch._handle or batch._live(), self._about.number, versioned)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A NumPy array of the same memory.  NumPy has no bfloat16."""
        import numpy
        if self.dtype == "bfloat16":
            raise UnsupportedError(f"variable {self.name}: NumPy has no bfloat16; take it by torch.from_dlpack")
        if self.__dlpack_device__()[0] != _CPU:
            raise BufferError("chunkmill: the batch lies on a device, and NumPy's memory is the CPU's")
        return numpy.from_dlpack(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """For numpy.asarray: the same memory, or a copy where another type is asked for."""
        taken = self.numpy()
        if dtype is not None and taken.dtype != dtype:
            return taken.astype(dtype)
        return taken.copy() if copy else taken

    def __len__(self) -> int:
        """Samples."""
        return self.shape[0]

    def __reduce__(self) -> Any:
        raise _not_sent("Tensor")

    def __repr__(self) -> str:
        lag = f", lag={self.lag}" if self.lag else ""
        return f"<chunkmill.Tensor {self.name!r} {self.dtype} {list(self.shape)}{lag}>"


class Batch:
    """Samples that were read together: tensors by the names of their variables.

    batch["t2m"], or batch["t2m", 6] for a lag.

    Attributes:
        epoch: number of the epoch that it is of.
        number: its number in the epoch, from 0.
    """

    def __init__(self, loader: Loader, holder: Any, cell: int, handle: int, epoch: int, number: int, n: int,
                 numbers: bytes) -> None:
        self._holder = holder  # a capsule, which gives the memory back when it goes
        self._cell = cell      # of the handle, in the capsule
        self._handle: int | None = handle
        self._loader = loader
        self.epoch = epoch
        self.number = number
        self._n = n
        self._numbers = numbers  # of the samples, and where each begins

    def _live(self) -> int:
        if self._handle is None:
            raise InvalidError("the batch was released")
        return self._handle

    def keys(self) -> list[Key]:
        """Names of variables, with their lag where that is not 0."""
        return self._loader.keys()

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        return key in self._loader._found

    def __getitem__(self, key: Key) -> Tensor:
        """The tensor of one variable."""
        loader = self._loader
        try:
            about = loader._found[key]
        except KeyError:
            raise KeyError(f"{key!r}: the loader reads {', '.join(map(repr, self.keys()))}") from None
        self._live()
        if os.getpid() != loader._pid:
            raise InvalidError("the batch is not of this process")
        return Tensor(self, about)

    def items(self) -> list[tuple[Key, Tensor]]:
        """Pairs of keys and tensors."""
        return [(key, self[key]) for key in self.keys()]

    def values(self) -> list[Tensor]:
        """All tensors."""
        return [self[key] for key in self.keys()]

    def __len__(self) -> int:
        """Samples."""
        return self._n

    def _starts(self) -> bytes:
        return self._numbers[8 * self._n:]

    @property
    def index(self) -> Any:
        """The first element of each sample along each dimension of the loader: [samples, dimensions]."""
        return array(self._starts(), "int64", [self._n, len(self._loader.dims)])

    @property
    def samples(self) -> Any:
        """The samples' numbers in the epoch."""
        return array(self._numbers[:8 * self._n], "uint64", [self._n])

    @property
    def coords(self) -> dict[str, Any]:
        """Coordinates of all elements of each sample: {dimension: [samples, length]}.

        They are those of Dim.coords; dimensions without coordinates are left out.
        """
        starts = memoryview(self._starts()).cast("q")
        found: dict[str, Any] = {}
        for place, dim in enumerate(self._loader.dims):
            if dim.name is not None and dim.coords is not None:
                found[dim.name] = _cut(dim, starts[place::len(self._loader.dims)].tolist())
        return found

    def release(self) -> None:
        """Gives the memory back, once tensors that were taken are gone too."""
        self._handle = None
        c.library().cm_batch_clear(self._cell)

    def __reduce__(self) -> Any:
        raise _not_sent("Batch")

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<chunkmill.Batch {self.number} of epoch {self.epoch}: {self._n} samples>"
