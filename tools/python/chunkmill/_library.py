"""The C library, as ctypes sees it (chunkmill/loader.h)."""
from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterable
from ctypes import (POINTER, Structure, byref, c_bool, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t,
                    c_uint, c_uint8, c_uint32, c_uint64, c_void_p)
from typing import Any, Callable

from .errors import of_status

NAME = "libchunkmill_loader.so.1"
FOR_EVER = 0xFFFFFFFF
VERSION = 4
MAX_DIMS = 32

STATUS = ("ok", "invalid", "memory", "io", "no-space", "not-found", "exists", "format", "unsupported",
          "budget", "canceled", "differs", "internal")
CANCELED = STATUS.index("canceled")


class Error(Structure):
    """cm_error."""

    _fields_ = [("status", c_int), ("placed", c_int), ("text", c_char * 1020), ("passes", c_int)]


class Range(Structure):
    """cm_loader_range."""

    _fields_ = [("dim", c_char_p), ("first", c_uint64), ("count", c_uint64)]


class Options(Structure):
    """cm_loader_options."""

    _fields_ = [
        ("size", c_size_t), ("version", c_uint32),
        ("variable", POINTER(c_char_p)), ("nvariables", c_size_t),
        ("sample", c_char_p), ("lags", c_char_p),
        ("batch", c_uint64), ("batches", c_uint64), ("drop_last", c_bool),
        ("order", c_char_p), ("seed", c_uint64), ("world_size", c_uint64), ("rank", c_uint64),
        ("loader", c_char_p), ("window", c_uint64),
        ("workers", c_uint), ("worker_threads", c_uint), ("local_ranks", c_uint),
        ("prefetch", c_uint), ("held", c_uint), ("sync", c_bool), ("memory", c_uint64),
        ("cast", c_char_p), ("unpack", c_bool), ("fill_to_nan", c_bool),
        ("io", c_char_p), ("cache_nbytes", c_uint64), ("cache_policy", c_char_p),
        ("cache_dir", c_char_p), ("cache_dir_nbytes", c_uint64), ("device", c_char_p),
        ("environment", c_void_p), ("anonymous", c_bool), ("staging", c_char_p),
        ("allow", POINTER(c_char_p)), ("nallow", c_size_t),
        ("range", POINTER(Range)), ("nranges", c_size_t), ("normalize", c_char_p), ("describe_only", c_bool),
    ]


class Dim(Structure):
    """cm_loader_dim."""

    _fields_ = [("name", c_char_p), ("length", c_uint64), ("sample", c_uint64), ("type", c_char_p),
                ("coords", c_void_p)]


class Variable(Structure):
    """cm_loader_variable."""

    _fields_ = [("name", c_char_p), ("lag", c_int64), ("type", c_char_p), ("stored_type", c_char_p),
                ("ndims", c_uint), ("dim", c_uint32 * MAX_DIMS), ("shape", c_uint64 * MAX_DIMS),
                ("nbytes", c_uint64)]


class Info(Structure):
    """cm_loader_info."""

    _fields_ = [("size", c_size_t), ("nsamples", c_uint64), ("nbatches", c_uint64),
                ("batch_nbytes", c_uint64), ("dim", POINTER(Dim)), ("ndims", c_size_t),
                ("variable", POINTER(Variable)), ("nvariables", c_size_t),
                ("workers", c_uint), ("worker_threads", c_uint), ("slots", c_uint),
                ("memory_nbytes", c_uint64), ("window", c_uint64), ("device", c_char_p)]


class Position(Structure):
    """cm_loader_position."""

    _fields_ = [("bytes", c_uint8 * 64)]


class Stats(Structure):
    """cm_loader_stats."""

    _fields_ = [("size", c_size_t)] + [(name, c_uint64) for name in (
        "epoch", "batch", "batches", "samples", "nbytes", "failed_batches", "wait_ns", "max_wait_ns",
        "since_begin_ns", "chunks", "decoded", "requests", "stored_nbytes", "decoded_nbytes",
        "missing_chunks", "cache_hits", "cache_misses", "storage_ns", "decode_ns", "assemble_ns",
        "convert_ns")] + [(name, c_uint) for name in ("slots", "held", "ready", "underway")]


class BatchInfo(Structure):
    """cm_batch_info."""

    _fields_ = [("size", c_size_t), ("epoch", c_uint64), ("number", c_uint64), ("nsamples", c_uint64),
                ("sample", c_void_p), ("index", c_void_p)]


class CTensor(Structure):
    """cm_tensor."""

    _fields_ = [("variable", POINTER(Variable)), ("data", c_void_p), ("nbytes", c_uint64),
                ("ndims", c_uint), ("shape", POINTER(c_int64)), ("device_type", c_int32),
                ("device_number", c_int32)]


_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    # name: (result, arguments)
    "cm_loader_options_init": (None, [POINTER(Options), c_size_t]),
    "cm_loader_open": (c_int, [c_char_p, POINTER(Options), c_void_p, POINTER(Error)]),
    "cm_loader_clear": (None, [c_void_p]),
    "cm_loader_describe": (c_int, [c_void_p, POINTER(Info), POINTER(Error)]),
    "cm_loader_dim_attributes": (c_char_p, [c_void_p, c_size_t]),
    "cm_loader_dim_missing": (c_void_p, [c_void_p, c_size_t]),
    "cm_loader_holes": (c_char_p, [c_void_p]),
    "cm_loader_dim_range": (c_bool, [c_void_p, c_size_t, POINTER(c_uint64), POINTER(c_uint64)]),
    "cm_loader_begin": (c_int, [c_void_p, c_uint64, POINTER(Error)]),
    "cm_loader_next_described": (c_int, [c_void_p, c_uint32, c_void_p, POINTER(BatchInfo), POINTER(Error)]),
    "cm_loader_save": (c_int, [c_void_p, POINTER(Position), POINTER(Error)]),
    "cm_loader_save_before": (c_int, [c_void_p, c_void_p, POINTER(Position), POINTER(Error)]),
    "cm_loader_restore": (c_int, [c_void_p, POINTER(Position), POINTER(Error)]),
    "cm_loader_get_stats": (c_int, [c_void_p, POINTER(Stats), POINTER(Error)]),
    "cm_batch_tensor": (POINTER(CTensor), [c_void_p, c_size_t]),
    "cm_batch_stream": (c_int, [c_void_p, c_int64, POINTER(Error)]),
    "cm_batch_clear": (None, [c_void_p]),
    "cm_loader_version": (c_char_p, []),
}


def find() -> str:
    """The library of the wheel, or CHUNKMILL_LIBRARY, or that of conda's environment, or the system's."""
    named = os.environ.get("CHUNKMILL_LIBRARY")
    if named:
        return named
    for folder in (os.path.dirname(os.path.abspath(__file__)), sys.prefix):
        path = os.path.join(folder, "lib", NAME)
        if os.path.exists(path):
            return path
    return NAME


def load() -> Any:
    """The library with the types of its functions."""
    path = find()
    try:
        # Without Python's lock in every call: what waits in C leaves other threads alone.
        library: Any = ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)
    except OSError as problem:
        raise ImportError(
            f"chunkmill: the loader's library cannot be loaded: {problem}; install the wheel, or name "
            f"the library in CHUNKMILL_LIBRARY") from problem
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    # A function that makes a Python object is called with Python's lock.
    capsule = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_size_t, c_bool, POINTER(Error))
    library.capsule = capsule(("cm_batch_capsule", library))
    holder = ctypes.PYFUNCTYPE(ctypes.py_object, POINTER(c_void_p), POINTER(Error))
    library.batch_holder = holder(("cm_batch_holder", library))
    library.loader_holder = holder(("cm_loader_holder", library))
    return library


_loaded: Any = None


def library() -> Any:
    """Loaded when it is first needed: the programs need none of it."""
    global _loaded
    if _loaded is None:
        _loaded = load()
    return _loaded


# The library marks its settings; a file's name between such marks is none of these.
_SETTING = re.compile("(?<![^ (])`(" + "|".join(
    [*(field[0] for field in Options._fields_), "variables", "mode"]) + ")`(?![^ ,;:)])")
_OPTION = {"variable": "variables", "mode": "loader", "cache_nbytes": "cache",
           "cache_dir_nbytes": "cache_dir_size"}


def argument(field: str) -> str:
    """The name that Loader has for a field of the options."""
    return _OPTION.get(field, field)


def words(text: str) -> str:
    """A sentence of the library with the names that Loader has for its options."""
    text = text.replace("`mode` sync", "sync")
    return _SETTING.sub(lambda found: _OPTION.get(found[1], found[1]), text)


def check(status: int, error: Error) -> None:
    """Raises what ERROR says where STATUS is not ok."""
    if status != 0:
        name = STATUS[status] if status < len(STATUS) else str(status)
        raise of_status(words(error.text.decode("utf-8", "replace")), name)


def environment(told: Iterable[tuple[str, str | None]]) -> Any:
    """getenv() for the library, with variables that are TOLD in place of the process's; None: not set.

    Without any it is the C library's own, which is asked without Python's lock.
    """
    getenv = ctypes.CDLL(None).getenv
    getenv.restype, getenv.argtypes = c_void_p, [c_char_p]
    kept = {name.encode(): None if value is None else ctypes.create_string_buffer(value.encode())
            for name, value in told}
    if not kept:
        return getenv

    def look(name: bytes) -> int | None:
        if name not in kept:
            return getenv(name)  # type: ignore[no-any-return]
        value = kept[name]
        return None if value is None else ctypes.addressof(value)

    return ctypes.CFUNCTYPE(c_void_p, c_char_p)(look)


def made(make: Callable[..., Any], *arguments: Any) -> Any:
    """An object that MAKE, a function of the library, makes; its last argument is where it says why not."""
    error = Error()
    try:
        return make(*arguments, byref(error))
    except ValueError:  # no object
        check(error.status, error)
        raise
