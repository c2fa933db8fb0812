"""Records what a program reads of a Zarr store, as lines of JSON: docs/replay.md has the format.

zarr is imported when recording begins, not before.
"""
from __future__ import annotations

import contextvars
import itertools
import json
import os
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Optional, Union

from .errors import ArgumentTypeError, InvalidError, UnsupportedError

VERSION = 1
VARIABLE = "CHUNKMILL_RECORD"
MOST_BOXES = 256  # of one read: a selection of more pieces is written as the box around them

Box = list[tuple[int, int]]
_read: contextvars.ContextVar[Optional[int]] = contextvars.ContextVar("chunkmill_read", default=None)
_number = itertools.count(1)


class Log:
    """Appends whole lines: processes that have the same file open do not cut each other's.

    Each line is one write, so that a worker that ends without warning loses none; a log that can
    no longer be written ends with one warning, and the program goes on.
    """

    _open: dict[str, Log] = {}
    _lock = threading.Lock()

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self.said: set[tuple[int, str]] = set()

    @classmethod
    def of(cls, path: Union[str, os.PathLike[str]]) -> Log:
        """The log at a path: one for each file, however it is named."""
        full = os.path.abspath(os.fsdecode(path))
        with cls._lock:
            if full not in cls._open:
                cls._open[full] = cls(full)
            return cls._open[full]

    def write(self, line: dict[str, Any]) -> None:
        """Appends a line; a log that cannot be written is given up with one warning."""
        if self.fd < 0:
            return
        data = (json.dumps(line, separators=(",", ":")) + "\n").encode()
        try:
            written = os.write(self.fd, data)
        except OSError as e:
            written, why = 0, e.strerror
        else:
            why = "no space left"
        if written < len(data):
            self.fd = -1
            import warnings
            warnings.warn(f"{self.path}: recording ends here: {why}", stacklevel=2)

    def once(self, what: str, line: dict[str, Any]) -> None:
        """LINE, of each process once; WHAT tells lines apart."""
        key = (os.getpid(), what)
        with self._lock:
            if key in self.said:
                return
            self.said.add(key)
        self.write(line)


def _place() -> dict[str, int]:
    return {"pid": os.getpid(), "thread": threading.get_native_id()}


def _runs(picked: Sequence[int]) -> list[tuple[int, int]]:
    """Runs of neighbours, in the order in which they come."""
    runs: list[tuple[int, int]] = []
    for i in picked:
        if runs and runs[-1][1] == i:
            runs[-1] = (runs[-1][0], i + 1)
        else:
            runs.append((i, i + 1))
    return runs


def _along(indexer: Any) -> list[tuple[int, int]]:
    """Ranges of elements that a selection takes of one dimension."""
    if hasattr(indexer, "step"):
        if indexer.nitems == 0:
            return []
        if indexer.step == 1:
            return [(int(indexer.start), int(indexer.start) + int(indexer.nitems))]
        last = indexer.start + (indexer.nitems - 1) * indexer.step
        first, last = min(indexer.start, last), max(indexer.start, last)
        # Elements some steps apart are one read in place of many.
        return [(int(first), int(last) + 1)]
    picked = indexer.dim_sel
    if not hasattr(picked, "tolist"):
        return [(int(picked), int(picked) + 1)]
    if getattr(picked, "dtype", None) == bool:
        picked = picked.nonzero()[0]
    return _runs(sorted(int(i) for i in picked.tolist()))


def _boxes(indexer: Any) -> Iterator[Box]:
    """Boxes of elements that INDEXER of zarr-python takes; none where it is of a kind not known."""
    if hasattr(indexer, "dim_indexers"):
        ranges = [_along(d) for d in indexer.dim_indexers]
    elif isinstance(getattr(indexer, "selection", None), tuple):
        points = list(zip(*(p.ravel().tolist() for p in indexer.selection)))
        if len(points) <= MOST_BOXES:
            yield from ([(int(i), int(i) + 1) for i in p] for p in points)
            return
        ranges = [[(int(p.min()), int(p.max()) + 1)] for p in indexer.selection]
    else:
        return
    n = 1
    for r in ranges:
        n *= len(r)
    if n > MOST_BOXES:
        ranges = [[(r[0][0], r[-1][1])] for r in ranges]
    yield from (list(box) for box in itertools.product(*ranges))


def _range(asked: Any) -> Optional[list[Optional[int]]]:
    """[first, end] of a part of an object; an end of null is the object's, a first below 0 counts from it."""
    if asked is None:
        return None
    if hasattr(asked, "end"):
        return [asked.start, asked.end]
    if hasattr(asked, "offset"):
        return [asked.offset, None]
    return [-asked.suffix, None]


_classes: list[Any] = []  # of the store below, made once zarr is there


def _store_class() -> Any:
    if _classes:
        return _classes[0]
    try:
        import zarr  # noqa: F401
        from zarr.abc.store import Store
        from zarr.storage import WrapperStore
    except ImportError as e:
        raise UnsupportedError(f"recording needs zarr-python 3: {e}") from e

    class RecordedStore(WrapperStore):  # type: ignore[misc]
        """A store that gives what STORE gives, and writes each request for an object into LOG."""

        def __init__(self, store: Any, log: str = "") -> None:
            super().__init__(store)
            self._log = Log.of(log)

        def _with_store(self, store: Any) -> Any:
            return type(self)(store, self._log.path)

        def __reduce__(self) -> Any:
            return record, (self._store, self._log.path)

        def __str__(self) -> str:
            return str(self._store)

        def __repr__(self) -> str:
            return f"chunkmill.record({self._store!r}, {self._log.path!r})"

        def _request(self, key: str, asked: Any, nbytes: Optional[int], at: float, took: float) -> None:
            self._log.once(str(self._store),
                           {"chunkmill": "access", "version": VERSION, "store": str(self._store), **_place()})
            line: dict[str, Any] = {"key": key, "nbytes": nbytes, "time": round(at, 6), "seconds": round(took, 6),
                                    **_place()}
            if asked is not None:
                line["range"] = _range(asked)
            if _read.get() is not None:
                line["read"] = _read.get()
            self._log.write(line)

        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            at, start = time.time(), time.perf_counter()
            found = await self._store.get(key, prototype, byte_range)
            self._request(key, byte_range, None if found is None else len(found), at, time.perf_counter() - start)
            return found

        async def get_partial_values(self, prototype: Any, key_ranges: Iterable[Any]) -> Any:
            wanted = list(key_ranges)
            at, start = time.time(), time.perf_counter()
            found = await self._store.get_partial_values(prototype, wanted)
            took = time.perf_counter() - start
            for (key, asked), one in zip(wanted, found):
                self._request(key, asked, None if one is None else len(one), at, took)
            return found

        async def _get_many(self, requests: Iterable[Any]) -> AsyncGenerator[Any, None]:
            async for one in Store._get_many(self, requests):  # by `get`
                yield one

    _classes.append(RecordedStore)
    _watch_selections()
    return RecordedStore


def _lengths(array: Any) -> list[int]:
    """Of its objects; where they differ in length along a dimension, the longest."""
    try:
        return list(getattr(array, "shards", None) or array.chunks)
    except NotImplementedError:
        return [n if isinstance(n, int) else max(n) for n in array.metadata.chunk_grid.chunk_shapes]


async def _selected(read: int, boxes: list[Box], array: Any, place: dict[str, int], wanted: Awaitable[Any]) -> Any:
    log: Log = array.store_path.store._log
    _read.set(read)
    at, start = time.time(), time.perf_counter()
    found = await wanted
    took = time.perf_counter() - start
    name = array.store_path.path
    chunks = _lengths(array)
    log.once(f"{array.store_path.store._store}\0{name}",
             {"array": name, "shape": list(array.shape), "chunks": chunks, **place})
    for box in boxes:
        log.write({"array": name, "box": box, "time": round(at, 6), "seconds": round(took, 6), "read": read, **place})
    return found


def _watch_selections() -> None:
    """Of arrays in a recorded store, the elements that a program asks for are written, too: requests tell
    which chunks, and not how much of them was used."""
    from zarr.core.array import AsyncArray
    inner: Optional[Callable[..., Awaitable[Any]]] = getattr(AsyncArray, "_get_selection", None)
    if inner is None:
        return

    def _get_selection(self: Any, indexer: Any, **options: Any) -> Awaitable[Any]:
        # Called in the program's thread; what is awaited runs in zarr's.
        wanted = inner(self, indexer, **options)
        if not isinstance(self.store_path.store, _classes[0]):
            return wanted
        return _selected(next(_number), list(_boxes(indexer)), self, _place(), wanted)

    AsyncArray._get_selection = _get_selection


def record(store: Any, log: Union[str, os.PathLike[str], None] = None) -> Any:
    """STORE of zarr-python, or a path or URL, as a store that writes what is read of it into LOG.

    For example:

        ds = xarray.open_zarr(chunkmill.record("era5.zarr", "access.log"))
        for batch in xbatcher.BatchGenerator(ds, {"time": 4, "latitude": 64, "longitude": 64}):
            batch.load()

    Then `readbench --replay access.log era5.zarr` reads the same again, and `chunkcalc --access
    access.log era5.zarr` finds the chunks that cost least for it.  Nothing is written to STORE.

    LOG is appended to; several processes may write into one, such as the workers of a DataLoader.
    Without it the environment variable CHUNKMILL_RECORD names it.  Where that is set,
    `import chunkmill` records every store that zarr-python opens afterwards, and
    `python -m chunkmill record LOG SCRIPT ARGUMENTS` does so for a program that does not import
    this package.

    Raises:
        UnsupportedError: zarr-python 3 is not installed.
        InvalidError: there is no LOG.
        OSError: LOG cannot be opened.
    """
    kind = _store_class()
    path = log if log is not None else os.environ.get(VARIABLE)
    if not path:
        raise InvalidError(f"no log: name the file to write, or set {VARIABLE}")
    if isinstance(store, kind):
        return store
    if isinstance(store, (str, os.PathLike)):
        from zarr.core.sync import sync
        from zarr.storage._common import make_store_path
        store = sync(make_store_path(os.fspath(store), mode="r")).store
        if isinstance(store, kind):
            return store
    from zarr.abc.store import Store
    if not isinstance(store, Store):
        raise ArgumentTypeError(f"a store of zarr-python or a path, not {type(store).__name__}")
    return kind(store, os.fspath(Log.of(path).path))


def record_all(log: Union[str, os.PathLike[str]]) -> None:
    """Every store that zarr-python opens from now on is recorded into LOG."""
    kind = _store_class()
    path = Log.of(log).path
    from zarr.storage import StorePath
    if hasattr(StorePath, "_chunkmill_inner"):
        return
    inner = StorePath.__init__

    def __init__(self: Any, store: Any, *words: Any, **named: Any) -> None:
        inner(self, store if isinstance(store, kind) else kind(store, path), *words, **named)

    StorePath._chunkmill_inner = inner
    StorePath.__init__ = __init__
