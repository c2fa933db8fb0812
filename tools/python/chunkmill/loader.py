"""Batches of samples to train with."""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator
from ctypes import byref, c_char_p, c_uint64, c_void_p, sizeof, string_at
from typing import Any, Callable

from . import _arguments as a
from . import _coords, _inputs, _limits, _xarray
from . import _library as c
from ._library import check
from ._tensor import Batch, Key, array, labels
from .errors import HolesWarning, InvalidError

_SLICE_MS = 100  # between two looks at signals: Ctrl-C ends a wait

# Options with which any store can be opened to describe its dimensions.
_DESCRIBED: dict[str, Any] = {"sample": None, "lags": None, "order": b"chunks", "batch": 1, "batches": 0, "drop_last": False,
                              "world_size": 1, "rank": 0, "loader": None, "window": 0, "normalize": None, "device": None,
                              "staging": None, "describe_only": True}

# Of a variable that xarray has decoded these are in `encoding`.
_DECODED_BY = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")
_NOTHING: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()

_opened: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Before the interpreter ends: later there are no modules to close with."""
    for loader in list(_opened):
        loader.close()


def _statistics_of(path: str) -> str:
    """Where nc2zarr --statistics puts those of the store: beside it, and within a repository."""
    root, _, node = path.partition("::")
    if root.startswith("icechunk:") or os.path.isfile(os.path.join(root, "repo")):
        return f"{root}::{node + '/' if node else ''}statistics"
    return root.rstrip("/") + ".statistics.zarr"


class Dim:
    """A dimension of the samples.

    Attributes:
        name: None where the store gives it none.
        length: elements of the whole dimension.
        elements: the range of those that samples lie in, all of them but with `subset` and `split`.
        sample: elements that a sample takes.
        type: of the coordinates as they are stored: "float64", "string", ...; None where there are none.
        attributes: of the variable that has the coordinates, as `units` and `calendar`.
    """

    def __init__(self, d: Any, attributes: bytes | None, missing: int | None, decode: bool, elements: range) -> None:
        self.name: str | None = d.name.decode() if d.name else None
        self.length: int = d.length
        self.elements = elements
        self.sample: int = d.sample
        self.type: str | None = d.type.decode() if d.type else None
        self.attributes: dict[str, Any] = json.loads(attributes) if attributes else {}
        self._decode = decode
        self._stored = _coordinates(d.coords, self.type, d.length) if d.coords and self.type else None
        self._missing = string_at(missing, d.length) if missing else None
        self._decoded: Any = None

    @property
    def coords(self) -> Any:
        """The coordinates of all elements: a NumPy array, and None where there are none.

        With `decode` packed ones are unpacked, missing ones are NaN or NaT, and times are datetime64[ns]
        ([us] beyond the years 1677 to 2262).  In calendars that datetime64 does not have, as 360_day, they are objects of cftime, or
        chunkmill.Date where that is not installed.  Labels, as those of channels, are texts.

        Without NumPy they are as they are stored: a memoryview, or a list of texts.
        """
        return self.meant() if self._decode else self._stored

    def meant(self) -> Any:
        """The coordinates decoded, also without `decode`."""
        if self._decoded is None and self._stored is not None:
            plain = isinstance(self._stored, (list, memoryview))
            self._decoded = self._stored if plain else _coords.decode(self._stored, self.attributes, self._missing)
        return self._decoded

    def __repr__(self) -> str:
        return f"<chunkmill.Dim {self.name!r}: {self.sample} of {self.length}>"


class Variable:
    """A variable at a lag, common to all its tensors: `shape` and `nbytes` are a sample's."""

    def __init__(self, number: int, v: Any, dims: list[Dim]) -> None:
        self.number = number
        self.name: str = v.name.decode()
        self.lag: int = v.lag
        self.dtype: str = v.type.decode()
        self.shape: tuple[int, ...] = tuple(v.shape[:v.ndims])
        self.dims: tuple[str | None, ...] = tuple(dims[d].name for d in v.dim[:v.ndims])
        self.nbytes: int = v.nbytes
        self.capsule = c.library().capsule


def _coordinates(address: int, kind: str, n: int) -> Any:
    """N of them at ADDRESS; None where they are of a type that Python has no objects for."""
    name = kind.rstrip("0123456789")
    if kind == "string":
        texts: Any = (c_char_p * n).from_address(address)
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


def _names_taken(asked: list[str], stored: set[str]) -> dict[str, str]:
    """By names of the store, the names by which they were asked for, where these name one variable each."""
    found: dict[str, str] = {}
    for name in (one.strip("/") for text in asked for one in text.split(",")):
        meant = [one for one in stored if f"/{one}".endswith(f"/{name}")]
        if len(meant) == 1 and name:
            found.setdefault(meant[0], name)
    return found


def _from_environment(name: str, default: int) -> int:
    text = os.environ.get(name)
    if text is None:
        return default
    least = 0 if name == "RANK" else 1
    try:
        found = int(text)
    except ValueError:
        raise InvalidError(f"{name}={text}: not an integer") from None
    if found < least:
        raise InvalidError(f"{name}={text}: less than {least}")
    return found


def _place_of(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """This process among those that share an epoch: as it was told, or else by torchrun's variables."""
    torch = sys.modules.get("torch.utils.data")
    worker = torch.get_worker_info() if torch is not None and rank is None else None
    if worker is not None and worker.num_workers > 1:
        raise InvalidError(f"rank: this is one of {worker.num_workers} worker processes of a DataLoader, and each would read "
                           "all: use num_workers=0, for the loader has its own workers, or give rank and world_size")
    if world_size is None:
        world_size = _from_environment("WORLD_SIZE", 1)
    if rank is None and world_size == 1:
        rank = 0  # each process reads all, whichever of them it is
    if rank is None:
        if "RANK" not in os.environ:
            raise InvalidError(f"rank: which of {world_size} processes this is, neither rank nor RANK says")
        rank = _from_environment("RANK", 0)
    return rank, world_size


def _texts(values: Iterable[str]) -> tuple[Any, int]:
    """A list of the library's, and how many they are."""
    encoded = [os.fsencode(value) for value in values]
    return (c_char_p * (len(encoded) + 1))(*encoded), len(encoded)


class Loader:
    """Batches of samples of a Zarr store or a NetCDF file.

        for epoch in range(10):
            for batch in loader:
                x = torch.from_dlpack(batch["t2m"])

    `store` is a path (str or os.PathLike) or URL, a Group or Array of zarr-python, or a Dataset or
    DataArray of xarray that shows a store as it was opened.  Of a Dataset all data variables are read
    where `variables` names none, of the others the largest that is no coordinate.

    What a sample is:
    `sample` ({"time": 4, "lat": 64, "lon": 64}, where a dimension that is not named is read whole,
    {} for whole arrays, or (4, 64, 64) in order),
    `variables`, `lags`.  Which samples: `batch`, `batches` of an epoch (all), `drop_last`, `order`,
    `seed`, `rank` and `world_size` (those of torchrun, where its variables are set).  How:
    `loader` ("map", or "planned", which takes from `order` where samples lie, and shuffles them), `window`,
    `workers`, `worker_threads`, `prefetch`, `memory`, `cache`, `cache_dir`, `io`, `sync` (without threads).  Sizes are bytes, or "3GB", "256MiB".
    What references may point to beside what lies where they lie: `allow`, a place
    or several.  Where it comes to lie: `device` ("cuda:0"), `staging`.  `held`: batches
    that you hold when you ask for the next one (2).

    Where samples lie, with all their elements and lags: `subset` ({"time": slice("2000", "2015-06"),
    "lat": slice(0, 360)}) limits dimensions.  Integers count elements as in xarray's `isel`, the end
    left out; labels are coordinates as in `sel`, both ends taken, in the order of the coordinates:
    numbers with a point (slice(60.0, 30.0) where they fall), datetime64, datetime, and dates as text,
    where "2015-06" is the whole month.  `split` takes one part of what is left, all in one piece: ("train", 0.8)
    the first 80 % of the elements of dimension time, or of the first one where there is none
    (`split_dim` names another), ("val", 0.8) the others; of three parts ("train", 0.8, 0.1), ("val", 0.8, 0.1)
    and ("test", 0.8, 0.1).  No sample of a part has an element along it in common with one of another part.

    `normalize`: (value - mean) / std of each variable, by the statistics that nc2zarr --statistics wrote
    beside the store (True) or elsewhere (their path), each level by itself where they have levels.

    Numbers are those that xarray decodes: unpacked by scale_factor and add_offset, fill values NaN, of
    the type that xarray gives them, coordinates of time as datetime64.  `decode=False` gives what is
    stored.  `cast` ("float32", "float16", "bfloat16", "float64") is the type of all variables;
    `unpack` and `fill_to_nan` say one part of `decode` otherwise.

    Each iteration is an epoch, also one that is left early; the first is epoch 0, unless set_epoch
    says otherwise.

    Attributes:
        store: the path or URL that was opened.
        rank: this process among those that share an epoch.
        world_size: how many they are.
        batch: samples of a batch.
        dims: the dimensions of a sample, each a Dim.
        nsamples: samples of an epoch, all ranks.
        batch_nbytes: bytes of a batch.
        workers: threads that make batches.
        worker_threads: threads of each worker.
        slots: batches that there is memory for.
        memory: bytes that the loader takes at most.
        window: chunks of a window of the planned loader, as it was chosen; 0 with "map".
        device: where batches lie: "none", "host", "cuda:0".
        holes: a sentence about chunks of the variables that are absent, which read as fill; a HolesWarning has
            it, too.  None where none is, and on ranks but the first.
    """

    def __init__(self, store: Any, *, sample: a.Sample = None, variables: a.Names = None, lags: Any = None,
                 batch: int = 32, batches: int | None = None, drop_last: bool = False, order: str | None = None,
                 seed: int = 0, rank: int | None = None, world_size: int | None = None, loader: str | None = None,
                 window: int | None = None, workers: int | None = None, worker_threads: int | None = None,
                 prefetch: int = 2, held: int = 2, sync: bool = False, memory: a.Size = None, decode: bool = True,
                 cast: str | None = None, unpack: bool | None = None, fill_to_nan: bool | None = None,
                 io: str | None = None, cache: a.Size = None, cache_policy: str | None = None,
                 cache_dir: str | os.PathLike[str] | None = None, cache_dir_size: a.Size = None,
                 device: str | None = None, staging: str | None = None, anonymous: bool = False,
                 allow: a.Names = None, subset: _limits.Subset = None, split: _limits.Split = None,
                 split_dim: str | None = None, normalize: bool | str | os.PathLike[str] | None = None) -> None:
        self._handle: int | None = None
        # One that a handler of signals may take again, to save where the loader is.
        self._lock = threading.RLock()
        self._pid = os.getpid()
        names = a.names("variables", variables)
        if variables is not None and not names:
            raise InvalidError("variables: an empty list; leave it out, or name one")
        self._asked = names  # each is a key, where it is no pattern
        self._decode = decode = a.flag("decode", decode)
        source = _inputs.find(store, names)
        rank, world_size = _place_of(rank, world_size)
        list_of_names, nnames = _texts(source.variables)
        list_of_allowed, nallowed = _texts(a.names("allow", allow))
        self._environment = c.environment(source.place.environment)  # lives as long as the loader
        texts = ctypes.POINTER(c_char_p)

        def whole(name: str, value: Any) -> int:
            return 0 if value is None else a.integer(name, value)

        values: dict[str, Any] = {
            "variable": ctypes.cast(list_of_names, texts), "nvariables": nnames,
            "sample": a.sample(sample), "lags": a.lags(lags),
            "batch": a.integer("batch", batch), "batches": whole("batches", batches),
            "drop_last": a.flag("drop_last", drop_last), "order": a.text("order", order),
            "seed": a.integer("seed", seed), "world_size": a.integer("world_size", world_size),
            "rank": a.integer("rank", rank), "loader": a.text("loader", loader),
            "window": whole("window", window), "workers": whole("workers", workers),
            "worker_threads": whole("worker_threads", worker_threads),
            "local_ranks": _from_environment("LOCAL_WORLD_SIZE", 1), "prefetch": a.integer("prefetch", prefetch),
            "held": a.integer("held", held), "sync": a.flag("sync", sync), "memory": a.size("memory", memory),
            "cast": a.text("cast", "xarray" if decode and cast is None else cast),
            "unpack": decode if unpack is None else a.flag("unpack", unpack),
            "fill_to_nan": decode if fill_to_nan is None else a.flag("fill_to_nan", fill_to_nan),
            "io": a.text("io", io), "cache_nbytes": a.size("cache", cache),
            "cache_policy": a.text("cache_policy", cache_policy), "cache_dir": a.path("cache_dir", cache_dir),
            "cache_dir_nbytes": a.size("cache_dir_size", cache_dir_size), "device": a.text("device", device),
            "staging": a.text("staging", staging),
            "anonymous": a.flag("anonymous", anonymous) or source.place.anonymous,
            "allow": ctypes.cast(list_of_allowed, texts), "nallow": nallowed,
            "environment": ctypes.cast(self._environment, c_void_p)}
        if normalize is not None and not a.is_bool(normalize):
            values["normalize"] = a.path("normalize", normalize)  # type: ignore[arg-type]
        elif normalize:
            values["normalize"] = os.fsencode(_statistics_of(source.place.path))
        if split_dim is not None and split is None:
            raise InvalidError("split_dim: says which dimension `split` cuts; give split, too")
        # The capsule closes what was opened, wherever Ctrl-C falls.
        lib, at = c.library(), c_void_p()
        self._holder = c.made(lib.loader_holder, byref(at))
        self._cell = at.value
        try:
            if a.subset(subset) or split is not None:
                self._open(source.place.path, {**values, **_DESCRIBED})
                found = _limits.ranges(self._read_dims(), subset, split, a.name("split_dim", split_dim))
                self._close()
                values["range"] = (c.Range * (len(found) + 1))(
                    *(c.Range(name.encode(), within.start, len(within)) for name, within in found.items()))
                values["nranges"] = len(found)
            self._open(source.place.path, values)
            _opened.add(self)
            self.store: str = source.place.path
            self.rank: int = values["rank"]
            self.world_size: int = values["world_size"]
            self.batch: int = values["batch"]
            self._start()
            holes = lib.cm_loader_holes(self._handle)
            self.holes: str | None = holes.decode("utf-8", "replace") if holes else None
            if source.view is not None:
                self._check_view(source.view, decode, cast is None)
            if self.holes is not None:
                warnings.warn(f"{self.store}: {self.holes}", HolesWarning, stacklevel=2)
        except BaseException:
            self._close()
            raise

    def _open(self, path: str, values: dict[str, Any]) -> None:
        lib, o, error = c.library(), c.Options(), c.Error()
        lib.cm_loader_options_init(byref(o), sizeof(o))
        for name, value in values.items():
            setattr(o, name, value)
            # ctypes cuts a number that its field does not hold.
            if isinstance(value, int) and getattr(o, name) != value:
                raise InvalidError(f"{c.argument(name)}: {value} is too large")
        check(lib.cm_loader_open(os.fsencode(path), byref(o), self._cell, byref(error)), error)
        self._handle = c_void_p.from_address(self._cell or 0).value

    def _close(self) -> None:
        self._handle = self._place_of_next = None
        c.library().cm_loader_clear(self._cell)

    def _start(self) -> None:
        self._epoch = 0
        self._place_of_next: tuple[Any, Any] | None = None  # of the next batch: its holder and cell
        self._resume = False  # a restored epoch waits to be gone on with
        self._running = self._counting = 0  # which iterator is the last one, and whose end is one of an epoch
        self._within = False  # an epoch was begun, and its end not met
        self._describe()

    def _check_view(self, view: _xarray.View, decode: bool, as_decoded: bool) -> None:
        """Refuses a Dataset that shows other dimensions, types or coordinates than the loader delivers."""
        for name, variable in view.variables.items():
            v = next(iter(self._keys.values())) if view.is_array else self._keys[name]  # an array by any name
            if v.dims != variable.dims:
                raise InvalidError(f"store: dimensions of {v.name} are {variable.dims} in the Dataset and {v.dims} in the "
                                   "store: they were renamed; give the path, and the names that are there")
            stored = [name for name in _DECODED_BY if decode and name in variable.attrs]
            if stored:
                raise InvalidError(f"store: {v.name} has its attribute {stored[0]} in the Dataset, which was opened without "
                                   "decoding; give decode=False for what is stored")
            if decode and as_decoded and variable.dtype != v.dtype:
                raise InvalidError(f"store: {v.name} is {variable.dtype} in the Dataset, and {v.dtype} where it is decoded; "
                                   "give decode=False for what is stored")
        for dim in self.dims:
            shown = view.coords.get(str(dim.name))
            if shown is not None and not _xarray.same_coords(
                    shown.values, dim._stored, dim.meant(), dim.attributes.get("units")):
                raise InvalidError(f"store: coordinate {dim.name} of the Dataset is not the store's: it was assigned since it "
                                   "was opened; drop it, or give the path")

    def _read_info(self) -> Any:
        info, error = c.Info(size=sizeof(c.Info)), c.Error()
        check(self._call("describe", byref(info), byref(error)), error)
        return info

    def _read_dims(self) -> list[Dim]:
        info, lib = self._read_info(), c.library()

        def elements(i: int) -> range:
            first, count = c_uint64(), c_uint64()
            lib.cm_loader_dim_range(self._handle, i, byref(first), byref(count))
            return range(first.value, first.value + count.value)

        return [Dim(info.dim[i], lib.cm_loader_dim_attributes(self._handle, i), lib.cm_loader_dim_missing(self._handle, i),
                    self._decode, elements(i)) for i in range(info.ndims)]

    def _describe(self) -> None:
        info = self._read_info()
        self.dims = self._read_dims()
        variables = [Variable(i, info.variable[i], self.dims) for i in range(info.nvariables)]
        taken = _names_taken(self._asked, {v.name for v in variables})
        self._keys: dict[Key, Variable] = {}
        self._found: dict[Key, Variable] = {}  # by the names of the store, too
        for v in variables:
            for keys, name in (self._keys, taken.get(v.name, v.name)), (self._found, v.name):
                if v.lag == 0 or name not in keys:
                    keys[name] = v
                if v.lag != 0:
                    keys[name, v.lag] = v
        self._found.update(self._keys)
        self._nbatches: int = info.nbatches
        self.nsamples: int = info.nsamples
        self.batch_nbytes: int = info.batch_nbytes
        self.workers: int = info.workers
        self.worker_threads: int = info.worker_threads
        self.slots: int = info.slots
        self.memory: int = info.memory_nbytes
        self.window: int = info.window
        self.device: str = info.device.decode()
        kind, _, number = self.device.partition(":")
        # Where tensors lie, as DLPack says it: CUDA is 2; 1 is the CPU, to which `host` belongs.
        self._place = (2, int(number)) if kind == "cuda" else (1, 0)
        # Where the library tells of a batch, the same memory for each: it is read under the lock.
        at, about, error = c_void_p(), c.BatchInfo(size=sizeof(c.BatchInfo)), c.Error()
        self._told = (c.library().cm_loader_next_described, c.library().batch_holder, at, byref(at), about,
                      error, (byref(about), byref(error)))
        self._number_nbytes = 8 * (1 + len(self.dims))  # of the numbers of a sample

    def _calls(self) -> contextlib.AbstractContextManager[Any]:
        """Nothing is closed while another thread calls.  A forked child has nobody to wait for."""
        return self._lock if os.getpid() == self._pid else _NOTHING

    def _call(self, name: str, *arguments: Any) -> int:
        function = getattr(c.library(), "cm_loader_" + name)
        with self._calls():
            if self._handle is None:
                raise InvalidError("the loader was closed")
            return int(function(self._handle, *arguments))

    def keys(self) -> list[Key]:
        """Keys of a batch: names of variables as they were asked for, with their lag where that is not 0."""
        return list(self._keys)

    def __len__(self) -> int:
        """Batches of an epoch, of this rank."""
        return self._nbatches

    # ---- epochs ----

    def set_epoch(self, epoch: int) -> None:
        """The epoch that the next iteration is; the ones after it follow."""
        self._epoch = a.epoch(epoch)
        self._resume = self._within = False
        self._counting = 0  # an iteration that goes on does not count its end

    def __iter__(self) -> Iterator[Batch]:
        """Begins an epoch; an iteration that was begun before ends with an error."""
        error = c.Error()
        if not self._resume:
            self._place_of_next = None
            epoch = self._epoch + self._within  # the one before may have been left early
            check(self._call("begin", epoch, byref(error)), error)
            self._epoch = epoch
        self._resume = False
        self._within = True
        self._running += 1
        self._counting = self._running
        return _Epoch(self, self._running)

    def _next(self) -> Batch | None:
        """The next batch; None at the end."""
        call, hold, at, where, info, error, arguments = self._told
        while True:
            with self._lock if os.getpid() == self._pid else _NOTHING:
                if self._handle is None:
                    raise InvalidError("the loader was closed")
                # The place of a batch is made before it.  One that arrived there as Ctrl-C fell is the next.
                if self._place_of_next is None:
                    self._place_of_next = hold(where, arguments[1]), at.value
                holder, cell = self._place_of_next
                if c_void_p.from_address(cell).value is None:
                    status = call(self._handle, _SLICE_MS, cell, *arguments)
                    if status == c.CANCELED:
                        continue
                    check(status, error)
                handle = c_void_p.from_address(cell).value
                if handle is None:
                    return None
                n = info.nsamples
                batch = Batch(self, holder, cell, handle, info.epoch, info.number, n,
                              string_at(info.sample, n * self._number_nbytes))
                self._place_of_next = None
                return batch

    def state_dict(self) -> dict[str, Any]:
        """Where the next batch of this epoch will come from, also behind a break; for load_state_dict, in any process."""
        position, error = c.Position(), c.Error()
        with self._calls():
            place = self._place_of_next
            waiting = c_void_p.from_address(place[1]).value if place is not None else None
            status = self._call("save", byref(position), byref(error)) if waiting is None else \
                self._call("save_before", waiting, byref(position), byref(error))
        check(status, error)
        return {"position": bytes(position.bytes).hex(), "epoch": self._epoch,
                "within": self._within}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration goes on where state_dict was taken."""
        try:
            raw = bytes.fromhex(state["position"])
            position = c.Position.from_buffer_copy(raw)
            epoch = a.epoch(state.get("epoch", 0))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InvalidError("the state is not one that a loader gave") from None
        error = c.Error()
        check(self._call("restore", byref(position), byref(error)), error)
        self._place_of_next = None
        self._running += 1
        self._epoch = epoch
        # At the end of an epoch the next iteration is the one after it.
        self._resume = self._within = bool(state.get("within", True))
        self._counting = 0

    def stats(self) -> dict[str, int]:
        """Counts and times since the loader was opened."""
        stats, error = c.Stats(size=sizeof(c.Stats)), c.Error()
        check(self._call("get_stats", byref(stats), byref(error)), error)
        return {field[0]: getattr(stats, field[0]) for field in c.Stats._fields_ if field[0] != "size"}

    # ---- PyTorch ----

    def dataset(self, transform: Callable[[Batch], Any] | None = None) -> Any:
        """An IterableDataset for torch.utils.data.DataLoader(..., batch_size=None, num_workers=0).

        It gives {name: tensor}, or what `transform` makes of a batch: chunkmill.torch.IterableDataset.
        """
        from .torch import IterableDataset
        return IterableDataset(self, transform=transform)

    # ---- the end ----

    def close(self) -> None:
        """Stops the workers.  Tensors that were taken stay as they are."""
        with self._calls():
            self._close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
        # As with a batch: modules are empty when the interpreter ends.
        if getattr(self, "_handle", None) is not None and not ends():
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a chunkmill.Loader has threads and cannot be sent to another process: open it "
                        "there; with a DataLoader use num_workers=0, the loader has its own workers")

    def __repr__(self) -> str:
        return f"<chunkmill.Loader {self.store!r}: {len(self)} batches of {self.batch}>"


class _Epoch:
    """One iteration."""

    def __init__(self, loader: Loader, running: int) -> None:
        self._loader = loader
        self._number = running
        self._over = False

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self._over:
            raise StopIteration
        if self._loader._running != self._number:
            raise InvalidError("another iteration of this loader was begun: it has one epoch at a time")
        batch = self._loader._next()
        if batch is None:
            self._end()
            raise StopIteration
        return batch

    def _end(self) -> None:
        loader = self._loader
        with loader._calls():
            if not self._over and loader._counting == self._number:
                loader._epoch += 1
                loader._within = False
            self._over = True

    def __len__(self) -> int:
        return len(self._loader)
