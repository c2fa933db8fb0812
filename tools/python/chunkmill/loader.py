"""The loader that readbench measures, to train with."""
import atexit
import contextlib
import ctypes
import os
import sys
import threading
import weakref
from ctypes import byref, c_char_p, c_void_p, sizeof, string_at

from . import _library as c
from ._library import ChunkmillError, check
from ._tensor import Batch, array, labels

_SLICE_MS = 100  # between two looks at signals: Ctrl-C ends a wait

_NOTHING = contextlib.nullcontext()

_opened = weakref.WeakSet()


@atexit.register
def _close_all():
    """Before the interpreter ends: later there are no modules to close with."""
    for loader in list(_opened):
        loader.close()


class Dim:
    """A dimension of the samples."""

    def __init__(self, d):
        self.name = d.name.decode() if d.name else None
        self.length = d.length
        self.sample = d.sample
        self.type = d.type.decode() if d.type else None
        self.coords = None if not d.coords else _coordinates(d.coords, self.type, d.length)

    def __repr__(self):
        return f"<chunkmill.Dim {self.name!r}: {self.sample} of {self.length}>"


class Variable:
    """What all tensors of one variable have in common: `shape` and `nbytes` are a sample's."""

    def __init__(self, number, v):
        self.number = number
        self.name = v.name.decode()
        self.lag = v.lag
        self.dtype = v.type.decode()
        self.shape = tuple(v.shape[:v.ndims])
        self.nbytes = v.nbytes
        self.capsule = c.library().capsule


def _coordinates(address, kind, n):
    """N of them at ADDRESS; None where they are of a type that Python has no objects for."""
    name = kind.rstrip("0123456789")
    if kind == "string":
        texts = (c_char_p * n).from_address(address)
        return labels([text.decode("utf-8", "surrogateescape") for text in texts])
    if name in ("bytes", "unicode"):
        size = int(kind[len(name):]) * (1 if name == "bytes" else 4)
        code = ("utf-8", "surrogateescape") if name == "bytes" else ("utf-32-le", "replace")
        raw = string_at(address, size * n)
        return labels([raw[i * size:(i + 1) * size].decode(*code).rstrip("\0") for i in range(n)])
    if kind == "bool":
        return array(string_at(address, n), kind, [n])
    if name in ("int", "uint", "float"):
        return array(string_at(address, n * int(kind[len(name):]) // 8), kind, [n])
    if kind.startswith(("datetime64", "timedelta64")):
        return array(string_at(address, 8 * n), kind, [n])
    return None


def _shape(sample):
    if sample is None or isinstance(sample, str):
        return sample
    if isinstance(sample, (tuple, list)):
        return "x".join(str(length) for length in sample)
    return ",".join(f"{name}={length}" for name, length in sample.items())


def _from_environment(name, default):
    text = os.environ.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise ChunkmillError(f"{name}={text}: not an integer", "invalid") from None


_SIZES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def _size(value):
    if not isinstance(value, str):
        return int(value or 0)
    digits = value.rstrip("KMGTiB")
    try:
        return int(float(digits) * _SIZES[value[len(digits):]])
    except (ValueError, KeyError):
        raise ChunkmillError(f"{value}: give a size as 512MiB or 2GiB", "invalid") from None


def _text(value):
    return None if value is None else os.fsencode(value)


class Loader:
    """Batches of samples of a Zarr store or a NetCDF file.

        for epoch in range(10):
            for batch in loader:
                x = torch.from_dlpack(batch["t2m"])

    Options have the names and meanings of readbench's (`man readbench`).  What a sample is:
    `sample` ({"time": 4, "lat": 64, "lon": 64}, where a dimension that is not named is read whole,
    or (4, 64, 64) in order),
    `variables`, `lags`.  Which samples: `batch`, `batches` of an epoch (all), `drop_last`, `order`,
    `seed`, `rank` and `world_size` (those of torchrun, where its variables are set).  How:
    `loader` ("map" or "planned"), `window`, `workers`, `worker_threads`, `prefetch`, `memory`,
    `cache`, `cache_dir`, `io`, `sync` (without threads).  What it becomes: `cast`, `unpack`,
    `fill_to_nan`.  What references may point to beside what lies where they lie: `allow`, a place
    or several.  Where it comes to lie: `device` ("cuda:0"), `staging`.  `held`: batches
    that you hold when you ask for the next one (2).

    Each iteration is an epoch, also one that is left early; the first is epoch 0, unless set_epoch
    says otherwise.
    """

    def __init__(self, store, *, sample=None, variables=None, lags=None, batch=32, batches=None,
                 drop_last=False, order=None, seed=0, rank=None, world_size=None, loader=None,
                 window=0, workers=0, worker_threads=0, prefetch=2, held=2, sync=False, memory=0,
                 cast=None, unpack=False, fill_to_nan=False, io=None, cache=0, cache_policy=None,
                 cache_dir=None, cache_dir_size=0, device=None, staging=None, anonymous=False,
                 allow=None):
        self._handle = None
        # One that a handler of signals may take again, to save where the loader is.
        self._lock = threading.RLock()
        self._pid = os.getpid()
        if isinstance(variables, str):
            variables = [variables]
        if rank is None:
            rank = _from_environment("RANK", 0) if world_size is None else 0
        if world_size is None:
            world_size = _from_environment("WORLD_SIZE", 1)
        names = [_text(name) for name in variables or []]
        list_of_names = (c_char_p * (len(names) + 1))(*names)
        allowed = [_text(place) for place in ([allow] if isinstance(allow, str) else allow or [])]
        list_of_allowed = (c_char_p * (len(allowed) + 1))(*allowed)
        lib, o = c.library(), c.Options()
        lib.cm_loader_options_init(byref(o), sizeof(o))
        values = {
            "variable": ctypes.cast(list_of_names, ctypes.POINTER(c_char_p)),
            "nvariables": len(names), "sample": _text(_shape(sample)),
            "lags": _text(lags if lags is None or isinstance(lags, str)
                          else ",".join(str(lag) for lag in lags)),
            "batch": batch, "batches": batches or 0, "drop_last": drop_last, "order": _text(order),
            "seed": seed, "world_size": world_size, "rank": rank, "loader": _text(loader),
            "window": window, "workers": workers, "worker_threads": worker_threads,
            "local_ranks": _from_environment("LOCAL_WORLD_SIZE", 1), "prefetch": prefetch,
            "held": held, "sync": sync, "memory": _size(memory), "cast": _text(cast),
            "unpack": unpack, "fill_to_nan": fill_to_nan, "io": _text(io),
            "cache_nbytes": _size(cache), "cache_policy": _text(cache_policy),
            "cache_dir": _text(cache_dir), "cache_dir_nbytes": _size(cache_dir_size),
            "device": _text(device), "staging": _text(staging), "anonymous": anonymous,
            "allow": ctypes.cast(list_of_allowed, ctypes.POINTER(c_char_p)),
            "nallow": len(allowed),
            # The C library's own: it is asked without Python's lock.
            "environment": ctypes.cast(ctypes.CDLL(None).getenv, c_void_p)}
        for name, value in values.items():
            if isinstance(value, int) and not isinstance(value, bool) and value < 0:
                raise ChunkmillError(f"{name}: {value} is negative", "invalid")
            try:
                setattr(o, name, value)
            except TypeError as problem:
                raise TypeError(f"{name}: {problem}") from None
            # ctypes cuts a number that its field does not hold.
            if isinstance(value, int) and getattr(o, name) != value:
                raise ChunkmillError(f"{name}: {value} is too large", "invalid")
        # The capsule closes what was opened, wherever Ctrl-C falls.
        at, error = c_void_p(), c.Error()
        self._holder = c.made(lib.loader_holder, byref(at))
        self._cell = at.value
        try:
            check(lib.cm_loader_open(_text(store), byref(o), self._cell, byref(error)), error)
            self._handle = c_void_p.from_address(self._cell).value
            _opened.add(self)
            self._start(store, rank, world_size, batch)
        except BaseException:
            lib.cm_loader_clear(self._cell)
            raise

    def _start(self, store, rank, world_size, batch):
        self.store = os.fsdecode(store)
        self.rank, self.world_size, self.batch = rank, world_size, batch
        self._epoch = 0
        self._resume = False  # a restored epoch waits to be gone on with
        self._running = 0     # which iterator is the last one
        self._within = False  # an epoch was begun, and its end not met
        self._describe()

    def _describe(self):
        info, error = c.Info(size=sizeof(c.Info)), c.Error()
        check(self._call("describe", byref(info), byref(error)), error)
        self.dims = [Dim(info.dim[i]) for i in range(info.ndims)]
        self._keys = {}
        for i in range(info.nvariables):
            v = Variable(i, info.variable[i])
            if v.lag == 0 or v.name not in self._keys:
                self._keys[v.name] = v
            if v.lag != 0:
                self._keys[v.name, v.lag] = v
        self._nbatches = info.nbatches
        self.nsamples = info.nsamples
        self.batch_nbytes = info.batch_nbytes
        self.workers, self.worker_threads = info.workers, info.worker_threads
        self.slots, self.memory, self.window = info.slots, info.memory_nbytes, info.window
        self.device = info.device.decode()
        kind, _, number = self.device.partition(":")
        # Where tensors lie, as DLPack says it: CUDA is 2; 1 is the CPU, to which `host` belongs.
        self._place = (2, int(number)) if kind == "cuda" else (1, 0)
        # Where the library tells of a batch, the same memory for each: it is read under the lock.
        at, info, error = c_void_p(), c.BatchInfo(size=sizeof(c.BatchInfo)), c.Error()
        self._told = (c.library().cm_loader_next_described, c.library().batch_holder, at, byref(at), info,
                      error, (byref(info), byref(error)))
        self._number_nbytes = 8 * (1 + len(self.dims))  # of the numbers of a sample

    def _calls(self):
        """Nothing is closed while another thread calls.  A forked child has nobody to wait for."""
        return self._lock if os.getpid() == self._pid else _NOTHING

    def _call(self, name, *arguments):
        function = getattr(c.library(), "cm_loader_" + name)
        with self._calls():
            if self._handle is None:
                raise ChunkmillError("the loader was closed", "invalid")
            return function(self._handle, *arguments)

    def keys(self):
        """What a batch has: names of variables, with their lag where that is not 0."""
        return list(self._keys)

    def __len__(self):
        """Batches of an epoch, of this rank."""
        return self._nbatches

    # ---- epochs ----

    def set_epoch(self, epoch):
        """The epoch that the next iteration is; the ones after it follow."""
        self._epoch = int(epoch)
        self._resume = self._within = False

    def __iter__(self):
        error = c.Error()
        if not self._resume:
            epoch = self._epoch + self._within  # the one before may have been left early
            check(self._call("begin", epoch, byref(error)), error)
            self._epoch = epoch
        self._resume = False
        self._within = True
        self._running += 1
        return _Epoch(self, self._running)

    def _next(self):
        """The next batch; None at the end."""
        call, hold, at, where, info, error, arguments = self._told
        while True:
            with self._lock if os.getpid() == self._pid else _NOTHING:
                if self._handle is None:
                    raise ChunkmillError("the loader was closed", "invalid")
                # What holds the batch is there before the batch is: Ctrl-C between the two loses neither.
                holder = hold(where, arguments[1])
                cell = at.value
                status = call(self._handle, _SLICE_MS, cell, *arguments)
                if status == 0:
                    handle = c_void_p.from_address(cell).value
                    if handle is None:
                        return None
                    n = info.nsamples
                    return Batch(self, holder, cell, handle, info.epoch, info.number, n,
                                 string_at(info.sample, n * self._number_nbytes))
                if status != c.CANCELED:
                    check(status, error)

    def state_dict(self):
        """Where the next batch will come from; for load_state_dict, in any process."""
        position, error = c.Position(), c.Error()
        check(self._call("save", byref(position), byref(error)), error)
        return {"position": bytes(position.bytes).hex(), "epoch": self._epoch,
                "within": self._within}

    def load_state_dict(self, state):
        """The next iteration goes on where state_dict was taken."""
        try:
            raw = bytes.fromhex(state["position"])
            position = c.Position.from_buffer_copy(raw)
        except (KeyError, TypeError, ValueError):
            raise ChunkmillError("the state is not one that a loader gave", "invalid") from None
        error = c.Error()
        check(self._call("restore", byref(position), byref(error)), error)
        self._running += 1
        self._epoch = int(state.get("epoch", 0))
        # At the end of an epoch the next iteration is the one after it.
        self._resume = self._within = bool(state.get("within", True))

    def stats(self):
        """Counts and times since the loader was opened."""
        stats, error = c.Stats(size=sizeof(c.Stats)), c.Error()
        check(self._call("get_stats", byref(stats), byref(error)), error)
        return {name: getattr(stats, name) for name, _ in c.Stats._fields_ if name != "size"}

    # ---- PyTorch ----

    def dataset(self, transform=None):
        """An IterableDataset for torch.utils.data.DataLoader(..., batch_size=None, num_workers=0).

        It gives {name: tensor}, or what `transform` makes of a batch.
        """
        from ._torch import dataset
        return dataset(self, transform)

    # ---- the end ----

    def close(self):
        """Stops the workers.  Tensors that were taken stay as they are."""
        with self._calls():
            self._handle = None
            c.library().cm_loader_clear(self._cell)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __del__(self, ends=sys.is_finalizing):
        # As with a batch: modules are empty when the interpreter ends.
        if getattr(self, "_handle", None) is not None and not ends():
            self.close()

    def __reduce__(self):
        raise TypeError("a chunkmill.Loader has threads and cannot be sent to another process: open it "
                        "there; with a DataLoader use num_workers=0, the loader has its own workers")

    def __repr__(self):
        return f"<chunkmill.Loader {self.store!r}: {len(self)} batches of {self.batch}>"


class _Epoch:
    """One iteration."""

    def __init__(self, loader, running):
        self._loader = loader
        self._number = running
        self._over = False

    def __iter__(self):
        return self

    def __next__(self):
        if self._over:
            raise StopIteration
        if self._loader._running != self._number:
            raise ChunkmillError("another iteration of this loader was begun: it has one epoch at a "
                                 "time", "invalid")
        batch = self._loader._next()
        if batch is None:
            self._over = True
            self._loader._epoch += 1
            self._loader._within = False
            raise StopIteration
        return batch

    def __len__(self):
        return len(self._loader)
