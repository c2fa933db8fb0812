"""Stores as objects of zarr-python and xarray; changed Datasets are refused."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import obstore.store
import pytest
import xarray
import zarr
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.local import LocalFileSystem
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore

from support import objects, paths, tool

pytestmark = [pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python"),
              pytest.mark.filterwarnings("ignore")]

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
import chunkmill  # noqa: E402

VALUES = np.arange(8 * 4, dtype="f4").reshape(8, 4)
OPTIONS = {"sample": {"time": 2}, "batch": 4, "order": "sequential", "workers": 1}


@pytest.fixture
def store(tmp_path):
    """A root and a group `sub`, each with v, p (packed), time and x."""
    times = np.arange("2000-01-01", "2000-01-09", dtype="M8[D]").astype("M8[ns]")
    ds = xarray.Dataset({"v": (("time", "x"), VALUES), "p": (("time", "x"), VALUES * 2)}, {"time": times, "x": np.arange(4.)})
    for group in (None, "sub"):
        ds.to_zarr(tmp_path / "a.zarr", group=group, mode="a",
                   encoding={"p": {"dtype": "i2", "scale_factor": 0.5, "add_offset": 1.0, "_FillValue": -1}})
    return tmp_path / "a.zarr"


def assert_reads(given, name="v", want=VALUES, **more):
    with chunkmill.Loader(given, **{**OPTIONS, **more}) as loader:
        (batch,) = loader
        assert name in batch
        assert (batch[name].numpy() == want.reshape(4, 2, 4)).all()
        return sorted(loader.keys())


def test_paths(store):
    for given in (str(store), store, pathlib.PurePosixPath(store), os.fsencode(store)):
        assert_reads(given, variables="v")


@pytest.mark.parametrize("group", ["", "sub"])
def test_groups_and_arrays(store, group):
    fsspec_store = FsspecStore(AsyncFileSystemWrapper(LocalFileSystem()), path=str(store))
    for one in (str(store), LocalStore(store), fsspec_store, ObjectStore(obstore.store.LocalStore(store))):
        opened = zarr.open_group(one, mode="r", path=group)
        assert_reads(opened, variables="v")
        assert assert_reads(opened["v"]) == ["v"]
        with pytest.raises(chunkmill.InvalidError, match="an array has no variables"):
            chunkmill.Loader(opened["v"], variables="v", **OPTIONS)
    assert_reads(LocalStore(store), variables="v")


def test_an_array_that_is_a_store(tmp_path):
    array = zarr.create_array(str(tmp_path / "a.zarr"), shape=(8, 4), chunks=(2, 4), dtype="f4", dimension_names=("time", "x"))
    array[...] = VALUES
    assert_reads(array, "/")


def test_names_are_no_patterns(tmp_path):
    wanted = {name: VALUES * i for i, name in enumerate(("v[1]", "v1", "v*", "vv"))}
    xarray.Dataset({name: (("time", "x"), values) for name, values in wanted.items()}).to_zarr(tmp_path / "a")
    for chunks in (None, {}):
        ds = xarray.open_zarr(tmp_path / "a", chunks=chunks)
        for name, values in wanted.items():
            assert assert_reads(ds, name, values, variables=name) == [name]


def test_stores_that_cannot_be_read_elsewhere(store):
    memory = zarr.create_group(MemoryStore())
    for given, words in ((memory, "MemoryStore of zarr-python cannot be read"), (None, "not None"), (3, "not a int"),
                         (["a.zarr"], "not a list")):
        with pytest.raises(chunkmill.Error, match=words):
            chunkmill.Loader(given, **OPTIONS)


@pytest.mark.parametrize("chunks", [None, {}])
@pytest.mark.parametrize("group", [None, "sub"])
def test_datasets(store, chunks, group):
    with xarray.open_zarr(store, chunks=chunks, group=group) as ds:
        assert assert_reads(ds) == ["p", "v"]
        assert assert_reads(ds, "p", VALUES * 2) == ["p", "v"]
        assert assert_reads(ds, variables="p", name="p", want=VALUES * 2) == ["p"]
        assert assert_reads(ds[["v"]]) == ["v"]
        assert assert_reads(ds["p"], "p", VALUES * 2) == ["p"]
        assert assert_reads(ds.isel(time=slice(None))["v"]) == ["v"]


def test_rechunked(store):
    assert_reads(xarray.open_zarr(store).chunk(time=3)["v"])


@pytest.mark.parametrize("chunks", [None, {}])
def test_changed_datasets_are_refused(store, chunks):
    def opened():
        return xarray.open_zarr(store, chunks=chunks)

    changed = {
        "selected": opened().isel(time=slice(2, 6)), "backwards": opened().isel(time=slice(None, None, -1)),
        "computed": opened() * 2, "transposed": opened().transpose("x", "time"), "loaded": opened().load(),
        "renamed": opened().rename(v="w"), "a renamed dimension": opened().rename(x="y"),
        "another coordinate": opened().assign_coords(x=[4., 5., 6., 7.]),
        "other times": opened().assign_coords(time=opened().time + np.timedelta64(1, "h")),
        "filled": opened().fillna(0), "joined": xarray.concat([opened(), opened()], "time"),
        "of no store": xarray.Dataset({"v": (("time", "x"), VALUES)}),
    }
    for what, ds in changed.items():
        with pytest.raises(chunkmill.InvalidError, match="^store: ") as problem:
            chunkmill.Loader(ds, **OPTIONS)
        assert "give " in str(problem.value) or "drop it" in str(problem.value), what
    with pytest.raises(chunkmill.InvalidError, match="no such variable; there are"):
        chunkmill.Loader(opened(), variables="q", **OPTIONS)
    raw = xarray.open_zarr(store, chunks=chunks, mask_and_scale=False)
    with pytest.raises(chunkmill.InvalidError, match="p has its attribute scale_factor in the Dataset.* decode=False"):
        chunkmill.Loader(raw, **OPTIONS)
    assert_reads(raw, decode=False)


@pytest.mark.parametrize("encoding", [{"scale_factor": 0.5, "dtype": "f8"}, {"add_offset": 3.0, "dtype": "f8"}, {"_FillValue": 1e20},
                                      {"missing_value": 1e20}], ids=lambda e: next(iter(e)))
def test_datasets_that_were_not_decoded_are_refused(tmp_path, encoding):
    """Also where the stored type is that of decoded values."""
    store = tmp_path / "raw.zarr"
    xarray.Dataset({"v": (("time", "x"), VALUES.astype("f8"))}).to_zarr(store, encoding={"v": encoding})
    raw = xarray.open_zarr(store, mask_and_scale=False)
    for options in ({}, {"cast": "float32"}):
        with pytest.raises(chunkmill.InvalidError, match="^store: v has its attribute .* decode=False"):
            chunkmill.Loader(raw, **options, **OPTIONS)
    assert_reads(raw, "v", raw["v"].values, decode=False)
    assert_reads(xarray.open_zarr(store))


TIMES = {  # coordinates, and their attributes
    "standard": (np.arange(8), {"units": "days since 2000-01-01", "calendar": "standard"}),
    "proleptic": (np.arange(8) / 7, {"units": "days since 1500-02-27", "calendar": "proleptic_gregorian"}),
    "before the reform": (np.arange(8), {"units": "days since 1500-02-27", "calendar": "standard"}),
    "no leap years": (np.arange(8), {"units": "hours since 2000-02-28 20:00", "calendar": "noleap"}),
    "one missing": (np.where(np.arange(8) == 3, np.nan, np.arange(8)), {"units": "days since 2000-01-01", "calendar": "standard"}),
    "equal months, one missing": (np.where(np.arange(8) == 3, np.nan, np.arange(8)), {"units": "days since 2000-01-01", "calendar": "360_day"}),
    "not a time": (np.where(np.arange(8) == 3, np.datetime64("NaT"), np.arange(8) + np.datetime64("2000-01-01T00", "h")).astype("M8[ns]"), {}),
    "leads": (np.arange(8) * 6, {"units": "hours"}),
    "parts of hours": (np.arange(8) / 7, {"units": "hours"}),
    "durations": ((np.arange(8) * 6).astype("m8[h]").astype("m8[ns]"), {}),
    "a missing duration": (np.where(np.arange(8) == 3, np.timedelta64("NaT"), np.arange(8).astype("m8[h]")).astype("m8[ns]"), {}),
}
SHOWN = {
    "by default": {}, "as numbers": {"decode_times": False}, "in seconds": {"decode_times": xarray.coders.CFDatetimeCoder(time_unit="s")},
    "as cftime": {"decode_times": xarray.coders.CFDatetimeCoder(use_cftime=True)}, "as durations": {"decode_timedelta": True},
}


@pytest.mark.every
@pytest.mark.parametrize("how", SHOWN)
def test_times_as_xarray_shows_them(tmp_path, how):
    for i, (what, (times, attrs)) in enumerate(TIMES.items()):
        if (what, how) == ("not a time", "as cftime"):
            continue  # cftime.num2date raises OverflowError
        path = tmp_path / f"{i}.zarr"
        xarray.Dataset({"v": (("time", "x"), VALUES)}, coords={"time": ("time", times, attrs)}).to_zarr(path)
        shown = xarray.open_zarr(path, **SHOWN[how])
        with chunkmill.Loader(shown, **OPTIONS) as loader:
            coords = loader.dims[0].coords
            assert len(coords) == 8 and ("missing" not in what or coords[3] is None or coords[3] != coords[2]), what
        later = shown.time.values.copy()
        later[1] = later[2]
        with pytest.raises(chunkmill.InvalidError, match="coordinate time of the Dataset is not the store's"):
            chunkmill.Loader(shown.assign_coords(time=later), **OPTIONS)


def test_datasets_of_netcdf(tmp_path):
    xarray.Dataset({"v": (("time", "x"), VALUES)}).to_netcdf(tmp_path / "a.nc")
    with xarray.open_dataset(tmp_path / "a.nc") as ds:
        assert_reads(ds)
        with pytest.raises(chunkmill.InvalidError, match="selected from or computed"):
            chunkmill.Loader(ds.isel(time=slice(1, 4)), **OPTIONS)


def test_buckets_with_the_options_of_their_store(store):
    """Endpoint and keys come from the object; the process's variables say nothing."""
    server = objects.Server()
    try:
        server.put_folder(store, "data/a.zarr")
        said = server.environment()
        remote = obstore.store.S3Store(server.bucket, prefix="data/a.zarr", endpoint=server.url,
                                       access_key_id=said["AWS_ACCESS_KEY_ID"],
                                       secret_access_key=said["AWS_SECRET_ACCESS_KEY"],
                                       region=said.get("AWS_REGION", "us-east-1"), client_options={"allow_http": True})
        assert_reads(zarr.open_group(ObjectStore(remote), mode="r", zarr_format=3), variables="v")

        class S3FileSystem(LocalFileSystem):
            """The names and options of s3fs, over the folder."""

            protocol = ("s3", "s3a")

            def _strip_protocol(self, path):
                return path

        fs = S3FileSystem(key=said["AWS_ACCESS_KEY_ID"], secret=said["AWS_SECRET_ACCESS_KEY"],
                          client_kwargs={"endpoint_url": server.url, "region_name": said.get("AWS_REGION", "us-east-1")})
        given = FsspecStore(AsyncFileSystemWrapper(fs), path=f"{server.bucket}/data/a.zarr")
        assert_reads(given, variables="v")
        fs.storage_options["requester_pays"] = True
        with pytest.raises(chunkmill.UnsupportedError, match="requester_pays"):
            chunkmill.Loader(given, variables="v", **OPTIONS)
    finally:
        server.close()


def test_nothing_is_imported(store):
    script = ("import sys, chunkmill\n"
              "loader = chunkmill.Loader(sys.argv[1], sample={'time': 2}, variables='v')\n"
              "print([m for m in ('zarr', 'xarray', 'torch', 'fsspec', 'cftime', 'dask') if m in sys.modules])\n")
    done = subprocess.run([sys.executable, "-c", script, str(store)], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(paths.ROOT / "tools" / "python")})
    assert done.stdout == "[]\n"


def test_a_bucket_without_such_a_store(store, monkeypatch):
    """Nothing there is FileNotFoundError, as of a folder; what is no store is not."""
    server = objects.Server()
    try:
        server.put_folder(store / "v" / "c", "data/other")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        with pytest.raises(FileNotFoundError, match="s3://bucket/data/typo.zarr: nothing is there"):
            chunkmill.Loader(f"s3://{server.bucket}/data/typo.zarr", **OPTIONS)
        with pytest.raises(chunkmill.FormatError, match="no Zarr store"):
            chunkmill.Loader(f"s3://{server.bucket}/data/other", **OPTIONS)
        run = tool.run("readbench", f"s3://{server.bucket}/data/typo.zarr", env=server.environment())
        assert run.status == 1 and "nothing is there" in run.err, str(run)
    finally:
        server.close()
