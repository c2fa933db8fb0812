"""Batches and their tensors, which other libraries take by DLPack."""
import ctypes
import sys
from ctypes import byref, c_char_p, c_void_p, sizeof

from . import _library as c
from ._library import ChunkmillError, check

# Names of a capsule, which its consumer changes; they must live as long as any capsule.
_VERSIONED, _USED_VERSIONED = b"dltensor_versioned", b"used_dltensor_versioned"
_LEGACY = b"dltensor"

# Of DLPack's device types; and of CUDA's streams, as it numbers them.
_CPU, _CUDA, _DEFAULT_STREAM = 1, 2, 1

_api = ctypes.pythonapi
_new = _api.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [c_void_p, c_char_p, c_void_p]
# By address: the capsule is being freed, and must not be referred to again.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _api))
_get = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _api))

_clear = ctypes.PYFUNCTYPE(None)(("PyErr_Clear", _api))

_DELETER = ctypes.CFUNCTYPE(None, c_void_p)


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", c_void_p),
                ("deleter", _DELETER)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", c_void_p), ("strides", c_void_p),
                ("byte_offset", ctypes.c_uint64)]


class _Legacy(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("manager_ctx", c_void_p), ("deleter", _DELETER)]


def _unused(capsule):
    """A capsule that nobody took goes, and with it its hold on the batch."""
    # A consumer that refuses it drops it with its exception set, which would be taken for ours.
    _clear()
    for name, kind in ((_VERSIONED, _Versioned), (_LEGACY, _Legacy)):
        if _is_valid(capsule, name):
            address = _get(capsule, name)
            kind.from_address(address).deleter(address)


_destructor = ctypes.PYFUNCTYPE(None, c_void_p)(_unused)
# A capsule may be freed after this module was: the function stays.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_destructor))
_DESTRUCTOR = ctypes.cast(_destructor, c_void_p)

# struct's letters of types that it has.
_FORMAT = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H",
           "uint32": "I", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d", "bool": "?"}


def array(raw, kind, shape):
    """`raw` bytes as a NumPy array, or as a memoryview where there is no NumPy."""
    try:
        import numpy
    except ImportError:
        return memoryview(raw).cast("B").cast(_FORMAT.get(kind, "B"), shape)
    return numpy.frombuffer(raw, dtype=kind).reshape(shape)


class Tensor:
    """One variable of a batch: [samples, ...].

    It is taken by torch.from_dlpack, numpy.from_dlpack, jax.dlpack.from_dlpack, cupy.from_dlpack,
    without a copy.  The memory is the loader's; it is filled again when nothing holds it any more
    and, on a GPU, when the streams that took it have done what they then had to do.
    """

    def __init__(self, batch, number):
        self._batch = batch
        self._number = number
        t = c.library().cm_batch_tensor(batch._live(), number)
        if not t:
            raise ChunkmillError("the batch is not of this process", "invalid")
        t = t.contents
        self.name = t.variable.contents.name.decode()
        self.lag = t.variable.contents.lag
        self.dtype = t.variable.contents.type.decode()
        self.shape = tuple(t.shape[i] for i in range(t.ndims))
        self.nbytes = t.nbytes
        self._device = (t.device_type, t.device_number)

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device is not None and tuple(dl_device) != self._device:
            raise BufferError("chunkmill: a batch is given where it lies; copy it from there")
        if copy:
            raise BufferError("chunkmill: a batch is given without a copy; copy what you take")
        if self._device[0] == _CUDA:
            # None is the default stream, as Python's array API says.
            error = c.Error()
            stream = _DEFAULT_STREAM if stream is None else stream
            check(c.library().cm_batch_stream(self._batch._live(), stream, byref(error)), error)
        versioned = max_version is not None and max_version[0] >= 1
        export = c.library().cm_batch_dlpack if versioned else c.library().cm_batch_dlpack_legacy
        managed, error = c_void_p(), c.Error()
        check(export(self._batch._live(), self._number, byref(managed), byref(error)), error)
        return _new(managed, _VERSIONED if versioned else _LEGACY, _DESTRUCTOR)

    def numpy(self):
        """A NumPy array of the same memory; of a type that NumPy lacks, bytes."""
        import numpy
        if self._device[0] != _CPU:
            raise BufferError("chunkmill: the batch lies on a device, and NumPy's memory is the CPU's")
        return numpy.from_dlpack(self)

    def __array__(self, dtype=None, copy=None):
        taken = self.numpy()
        if dtype is not None and taken.dtype != dtype:
            return taken.astype(dtype)
        return taken.copy() if copy else taken

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        lag = f", lag={self.lag}" if self.lag else ""
        return f"<chunkmill.Tensor {self.name!r} {self.dtype} {list(self.shape)}{lag}>"


class Batch:
    """Samples that were read together: tensors by the names of their variables.

    batch["t2m"], or batch["t2m", 6] for a lag.  `index` has the first element of each sample along
    each dimension of the loader, `samples` their numbers in the epoch, `coords` the coordinates of
    each sample by dimension.
    """

    def __init__(self, loader, handle):
        self._handle = handle
        self._loader = loader
        info, error = c.BatchInfo(size=sizeof(c.BatchInfo)), c.Error()
        check(c.library().cm_batch_describe(handle, byref(info), byref(error)), error)
        self.epoch, self.number = info.epoch, info.number
        n, ndims = info.nsamples, len(loader.dims)
        self._n = n
        self._index = ctypes.string_at(info.index, 8 * n * ndims)
        self._sample = ctypes.string_at(info.sample, 8 * n)

    def _live(self):
        if self._handle is None:
            raise ChunkmillError("the batch was released", "invalid")
        return self._handle

    def keys(self):
        return self._loader.keys()

    def __iter__(self):
        return iter(self.keys())

    def __contains__(self, key):
        return key in self._loader._keys

    def __getitem__(self, key):
        try:
            number = self._loader._keys[key]
        except KeyError:
            raise KeyError(f"{key!r}: the loader reads {', '.join(map(repr, self.keys()))}") from None
        return Tensor(self, number)

    def items(self):
        return [(key, self[key]) for key in self.keys()]

    def values(self):
        return [self[key] for key in self.keys()]

    def __len__(self):
        """Samples."""
        return self._n

    @property
    def index(self):
        return array(self._index, "int64", [self._n, len(self._loader.dims)])

    @property
    def samples(self):
        return array(self._sample, "uint64", [self._n])

    @property
    def coords(self):
        """Coordinates of dimensions that have them: {name: [samples, length]}, as they are stored."""
        starts = memoryview(self._index).cast("q")
        found = {}
        for place, dim in enumerate(self._loader.dims):
            if dim.coords is None:
                continue
            raw, size = dim._raw, len(dim._raw) // dim.length
            parts = [raw[s * size:(s + dim.sample) * size]
                     for s in starts[place::len(self._loader.dims)].tolist()]
            found[dim.name] = array(b"".join(parts), dim.type, [self._n, dim.sample])
        return found

    def release(self):
        """Gives the memory back, once tensors that were taken are gone too."""
        handle, self._handle = self._handle, None
        if handle is not None:
            c.library().cm_batch_release(handle)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.release()

    def __del__(self, ends=sys.is_finalizing):
        # Modules are empty when the interpreter ends, and memory goes with the process.
        if getattr(self, "_handle", None) is not None and not ends():
            self.release()

    def __repr__(self):
        return f"<chunkmill.Batch {self.number} of epoch {self.epoch}: {self._n} samples>"
