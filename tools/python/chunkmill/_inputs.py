"""Where the elements lie of what a Loader is given: paths, URLs, objects of zarr-python and of xarray.

zarr, xarray, fsspec and obstore are not imported: an object is recognised by the modules of its classes.
"""
from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import _xarray
from .errors import ArgumentTypeError, InvalidError, UnsupportedError

_SCHEMES = ("http", "https", "s3", "s3a")


class Place(NamedTuple):
    """A folder or an object behind a URL, and how it is reached."""

    path: str
    anonymous: bool = False
    # Variables in place of the process's; None: not set.
    environment: tuple[tuple[str, str | None], ...] = ()

    def below(self, path: str) -> Place:
        """PATH inside of it."""
        return self._replace(path=f"{self.path.rstrip('/')}/{path.strip('/')}") if path.strip("/") else self


class Source(NamedTuple):
    """A place that a Loader opens, and how."""

    place: Place
    variables: list[str]
    view: _xarray.View | None = None  # what the user sees of it


def is_of(value: object, package: str, *names: str) -> bool:
    """Whether VALUE is of one of the classes NAMES of PACKAGE, or of one derived from it."""
    return any(kind.__name__ in names and kind.__module__.split(".")[0] == package for kind in type(value).__mro__)


# ---- stores of zarr-python ----

def _s3(path: str, told: Mapping[str, str | None], anonymous: bool) -> Place:
    """Keys that are told come without a session token of the process."""
    environment: dict[str, str | None] = {name: value for name, value in told.items() if value}
    if "AWS_ACCESS_KEY_ID" in environment:
        environment.setdefault("AWS_SESSION_TOKEN", None)
    return Place(f"s3://{path}", anonymous, tuple(environment.items()))


def _of_fsspec(fs: Any, path: str) -> Place:
    fs = getattr(fs, "sync_fs", fs)  # in zarr-python's asynchronous wrapper
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
    options: Mapping[str, Any] = getattr(fs, "storage_options", {})
    if "file" in protocols or "local" in protocols:
        return Place(path)
    for name in ("headers", "requester_pays", "session"):
        if options.get(name):
            raise UnsupportedError(f"store: fsspec's option {name} cannot be passed on to the loader")
    if "http" in protocols or "https" in protocols:
        return Place(path)
    if "s3" not in protocols:
        raise UnsupportedError(f"store: its file system is fsspec's {protocols[0]!r}; the loader reads local files, http "
                               "and s3: give a path or URL of these")
    client: Mapping[str, Any] = options.get("client_kwargs") or {}
    return _s3(path, {
        "AWS_ACCESS_KEY_ID": options.get("key") or client.get("aws_access_key_id"),
        "AWS_SECRET_ACCESS_KEY": options.get("secret") or client.get("aws_secret_access_key"),
        "AWS_SESSION_TOKEN": options.get("token") or client.get("aws_session_token"),
        "AWS_ENDPOINT_URL_S3": options.get("endpoint_url") or client.get("endpoint_url"),
        "AWS_REGION": client.get("region_name"), "AWS_PROFILE": options.get("profile")}, bool(options.get("anon")))


def _of_obstore(store: Any) -> Place:
    kind = type(store).__name__
    if kind == "LocalStore":
        return Place(os.fspath(store.prefix or "/"))
    if kind == "HTTPStore":
        return Place(store.url)
    if kind != "S3Store":
        raise UnsupportedError(f"store: obstore's {kind} cannot be read here; give a path, or a URL of http or s3")
    config = {name.removeprefix("aws_"): value for name, value in store.config.items()}
    told = {"AWS_ACCESS_KEY_ID": "access_key_id", "AWS_SECRET_ACCESS_KEY": "secret_access_key",
            "AWS_SESSION_TOKEN": "session_token", "AWS_ENDPOINT_URL_S3": "endpoint", "AWS_REGION": "region"}
    place = _s3(config["bucket"], {ours: config.get(theirs) for ours, theirs in told.items()},
                str(config.get("skip_signature")).lower() == "true")
    return place.below(store.prefix or "")


def _of_store(store: Any) -> Place:
    """A store of zarr-python 3."""
    while is_of(store, "zarr", "WrapperStore"):
        store = store._store
    if is_of(store, "zarr", "LocalStore"):
        return Place(os.fspath(store.root))
    if is_of(store, "zarr", "FsspecStore"):
        return _of_fsspec(store.fs, store.path)
    if is_of(store, "zarr", "ObjectStore"):
        return _of_obstore(store.store)
    raise UnsupportedError(f"store: a {type(store).__name__} of zarr-python cannot be read here; give a path, or a URL "
                           "of http or s3")


def _of_array(array: Any) -> tuple[Place, str]:
    """The group that holds an array of zarr-python, and the array's name there; "" where it is a root."""
    group, _, name = array.path.strip("/").rpartition("/")
    return _of_store(array.store).below(group), name


def _exactly(name: str) -> str:
    """A pattern of the library for one variable, and none of the same name in a group below."""
    return "/" + re.sub(r"([*?\[\]\\])", r"\\\1", name)


# ---- what a Loader may be given ----

def _of_dataset(view: _xarray.View) -> Source:
    places: dict[Place, list[str]] = {}
    for name, stored in view.stored.items():
        place, there = _of_array(stored.array) if stored.array is not None else (Place(stored.path), stored.name)
        if there != name and there and not view.is_array:
            raise InvalidError(f"store: variable {name} is {there} in {place.path}; it was renamed: give the path, and "
                               "the names that are there")
        places.setdefault(place, []).append(there)
    if len(places) != 1:
        raise InvalidError("store: the variables lie in several stores, " + ", ".join(p.path for p in places) +
                           ": open a loader for each")
    ((place, names),) = places.items()
    return Source(place, [_exactly(name) for name in names if name], view)


def find(store: object, variables: list[str]) -> Source:
    """Where STORE lies, and which of its variables are read."""
    if isinstance(store, (str, bytes, os.PathLike)):
        return Source(Place(os.fsdecode(store)), variables)
    if is_of(store, "xarray", "Dataset", "DataArray"):
        return _of_dataset(_xarray.view(store, variables))
    if is_of(store, "zarr", "Array", "AsyncArray"):
        if variables:
            raise InvalidError(f"variables: {', '.join(variables)}: an array has no variables; leave them out")
        place, name = _of_array(store)
        return Source(place, [_exactly(name)] if name else ["/"])
    if is_of(store, "zarr", "Group", "AsyncGroup", "StorePath"):
        return Source(_of_store(store.store).below(store.path), variables)  # type: ignore[attr-defined]
    if is_of(store, "zarr", "Store"):
        return Source(_of_store(store), variables)
    if is_of(store, "upath", "UPath"):
        return Source(_of_fsspec(store.fs, store.path), variables)  # type: ignore[attr-defined]
    raise ArgumentTypeError(f"store: needs a path or URL, a Group or Array of zarr-python, or a Dataset or DataArray of "
                            f"xarray, not {'None' if store is None else f'a {type(store).__name__}'}")
