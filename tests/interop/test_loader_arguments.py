"""Arguments of a Loader: stores, shapes and sizes as people write them, and errors that say what is wrong."""

import json
import os
import pickle

import numpy as np
import pytest
import zarr

from support import paths, tool

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python")

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
import chunkmill  # noqa: E402

VALUES = np.arange(6 * 4 * 5, dtype="f4").reshape(6, 4, 5)
NAMES = ("time", "lat", "lon")


@pytest.fixture
def store(tmp_path):
    group = zarr.create_group(str(tmp_path / "a.zarr"))
    group.create_array("v", shape=VALUES.shape, chunks=(2, 2, 5), dtype="f4", dimension_names=NAMES)[...] = VALUES
    times = group.create_array("time", shape=(6,), dtype="i4", dimension_names=("time",),
                               attributes={"units": "hours since 2000-01-01", "calendar": "standard"})
    times[...] = np.arange(6) * 6
    return tmp_path / "a.zarr"


@pytest.mark.parametrize("how", ["map", "planned"])
def test_a_whole_array_is_a_sample(store, how):
    with chunkmill.Loader(store, variables="v", sample="full", loader=how) as loader:
        (batch,) = loader
        assert (batch["v"].numpy() == VALUES[None]).all()


def test_data_are_read_by_default_however_large_their_coordinate_is(tmp_path):
    """chunkcalc takes the same."""
    group = zarr.create_group(str(tmp_path / "s.zarr"))
    for name, dtype in (("t", "i8"), ("v", "f4")):
        group.create_array(name, shape=(1000,), chunks=(100,), dtype=dtype, dimension_names=("t",))[:] = np.arange(1000)
    with chunkmill.Loader(tmp_path / "s.zarr", sample={"t": 10}) as loader:
        assert loader.keys() == ["v"]
    said = tool.run("chunkcalc", tmp_path / "s.zarr", "--sample", "t=10", "--json").ok().out
    assert json.loads(said)["variable"] == "v"


def test_attributes_of_coordinates(store):
    library = chunkmill._library.library()
    with chunkmill.Loader(store, variables="v", sample={"time": 2}) as loader:
        said = [library.cm_loader_dim_attributes(loader._handle, i) for i in range(4)]
        assert json.loads(said[0]) == {"units": "hours since 2000-01-01", "calendar": "standard"}
        assert said[1:] == [None] * 3


def test_samples(store):
    for sample, want in (({}, VALUES.shape), ({"time": 2}, (2, 4, 5)), ({"time": np.int64(2), "lat": None}, (2, 4, 5)),
                         ({"time": 2, "lat": slice(None), "lon": "full"}, (2, 4, 5)), ((2, 3, None), (2, 3, 5)),
                         (np.array([2, 3, 4]), (2, 3, 4)), ("time=3", (3, 4, 5))):
        with chunkmill.Loader(store, variables="v", sample=sample, batch=np.int32(2), seed=np.uint8(3)) as loader:
            assert next(iter(loader))["v"].shape[1:] == want and loader.dims[0].sample == want[0]


def test_sizes(store):
    for text, want in (("64MB", 64_000_000), ("64 MB", 64_000_000), ("64MiB", 64 << 20), ("0.0625gib", 64 << 20),
                       ("67108864", 64 << 20), (64e6, 64_000_000), (np.int64(64 << 20), 64 << 20), ("65536K", 64 << 20)):
        assert chunkmill._arguments.size("memory", text) == want
        with chunkmill.Loader(store, variables="v", sample={"time": 2}, memory=text, cache="1MB") as loader:
            assert loader.memory <= want
    with chunkmill.Loader(store, variables="v", sample={"time": 2}, memory=None, cache=None, workers=None, window=None):
        pass


WRONG = [
    ({"memory": "3 sacks"}, 'memory: "3 sacks" is not a size', ValueError),
    ({"memory": True}, "memory: needs bytes or a size as \"2GB\", not True, of type bool", TypeError),
    ({"cache": [1]}, "cache: needs bytes or a size", TypeError),
    ({"cache_dir_size": -1}, "cache_dir_size: -1 is negative", ValueError),
    ({"batch": None}, "batch: needs an integer, not None", TypeError),
    ({"batch": True}, "batch: needs an integer, not True", TypeError),
    ({"seed": 1.5}, "seed: needs an integer, not 1.5, of type float", TypeError),
    ({"drop_last": "yes"}, "drop_last: needs True or False", TypeError),
    ({"decode": None}, "decode: needs True or False, not None", TypeError),
    ({"order": 3}, "order: needs a text, not 3", TypeError),
    ({"cast": np.float32}, "cast: needs a text", TypeError),
    ({"cache_dir": 3}, "cache_dir: needs a path", TypeError),
    ({"variables": 3}, "variables: needs a text or a list of texts", TypeError),
    ({"variables": [3]}, "variables: needs texts, not 3", TypeError),
    ({"variables": []}, "variables: an empty list", ValueError),
    ({"sample": 4}, "sample: needs lengths by dimension", TypeError),
    ({"sample": {3: 4}}, "sample: needs names of dimensions", TypeError),
    ({"sample": {"time": 2.0}}, "sample['time']: needs an integer, not 2.0", TypeError),
    ({"sample": {"time": 0}}, "sample['time']: 0 elements are no sample", ValueError),
    ({"sample": {"time": -1}}, "sample['time']: -1 is negative", ValueError),
    ({"sample": {"time": slice(0, 4)}}, "sample['time']: slice(0, 4, None) chooses elements", ValueError),
    ({"lags": [0.5]}, "lags: needs an integer", TypeError),
    ({"order": "sideways"}, "order sideways: give random", ValueError),
    ({"cache_dir_size": 1 << 64}, "cache_dir_size: 18446744073709551616 is too large", ValueError),
]


@pytest.mark.every
@pytest.mark.parametrize("options, words, kind", WRONG, ids=lambda x: x if isinstance(x, str) else "")
def test_what_is_wrong_is_named(store, options, words, kind):
    with pytest.raises(kind) as problem:
        chunkmill.Loader(store, **{"variables": "v", "sample": {"time": 2}, **options})
    assert isinstance(problem.value, chunkmill.InvalidError) and problem.value.status == "invalid"
    assert str(problem.value).startswith(words)


def test_errors_are_built_in_ones(store, tmp_path):
    options = {"variables": "v", "sample": {"time": 2}}
    with pytest.raises(FileNotFoundError) as missing:
        chunkmill.Loader(tmp_path / "nowhere.zarr", **options)
    assert isinstance(missing.value, chunkmill.NotFoundError) and missing.value.status == "not-found"
    with pytest.raises(MemoryError) as budget:
        chunkmill.Loader(store, memory=1000, **options)
    assert isinstance(budget.value, chunkmill.OutOfMemoryError) and budget.value.status == "budget"
    with chunkmill.Loader(store, loader="map", **options) as loader:
        (store / "v" / "zarr.json").unlink()
        for chunk in (store / "v" / "c").rglob("*"):
            if chunk.is_file():
                chunk.unlink()
        with pytest.raises(OSError, match="removed") as gone:
            list(loader)
    assert isinstance(gone.value, chunkmill.StorageError) and not isinstance(gone.value, FileNotFoundError)
    with pytest.raises(ValueError, match="was closed"):
        iter(loader)
    for kind in vars(chunkmill).values():
        if isinstance(kind, type) and issubclass(kind, chunkmill.Error) and kind is not chunkmill.ProgramError:
            again = pickle.loads(pickle.dumps(kind("words")))
            assert (type(again), str(again), again.status) == (kind, "words", kind("words").status)
    assert chunkmill.ChunkmillError is chunkmill.Error


# ---- the name that was taken is the key -----------------------------------------------------------------


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    path = tmp_path_factory.mktemp("grouped") / "g.zarr"
    root = zarr.create_group(str(path))
    for place, names in (("", "z"), ("Grid", "pq"), ("Grid/deep", "q")):
        group = root if not place else root.create_group(place)
        for name in names:
            values = VALUES + 1000 * len(place) + ord(name)
            group.create_array(name, shape=VALUES.shape, chunks=(2, 2, 5), dtype="f4", dimension_names=NAMES)[...] = values
    return path


@pytest.mark.parametrize("node", ["", "::Grid"])
@pytest.mark.parametrize("variables, keys", [
    ("p", ["p"]),
    (["Grid/p"], ["Grid/p"]),
    (["Grid/q", "p"], ["Grid/q", "p"]),
    ("p,Grid/deep/q", ["Grid/deep/q", "p"]),
    ("/Grid/p", ["Grid/p"]),
    ("p*", ["Grid/p"]),
    ("q", ["Grid/deep/q", "Grid/q"]),  # two of this name: each by its own
], ids=str)  # fmt: skip
def test_the_name_that_was_taken_is_the_key(grouped, node, variables, keys):
    """And the name in the store is one, too; with lags as well."""
    with chunkmill.Loader(f"{grouped}{node}", variables=variables, sample={"time": 1}, order="sequential", batch=2) as loader:
        batch = next(iter(loader))
        assert sorted(loader.keys()) == sorted(batch.keys()) == sorted(keys)
        for key in keys:
            name = batch[key].name
            assert name.endswith(key) and name in batch and key in batch
            np.testing.assert_array_equal(batch[key].numpy(), batch[name].numpy())
            np.testing.assert_array_equal(batch[key].numpy()[:, 0], VALUES[:2] + 1000 * len(name.rpartition("/")[0]) + ord(name[-1]))
        with pytest.raises(KeyError, match="the loader reads"):
            batch["z"]
    with chunkmill.Loader(f"{grouped}{node}", variables=variables, sample={"time": 1}, lags=[0, 2], order="sequential", batch=2) as loader:
        batch = next(iter(loader))
        for key in keys:
            np.testing.assert_array_equal(batch[key, 2].numpy(), batch[batch[key].name, 2].numpy())
            np.testing.assert_array_equal(batch[key, 2].numpy(), batch[key].numpy() + 2 * 20)


def test_an_exact_name_is_a_key_without_its_slash(grouped):
    with chunkmill.Loader(grouped, variables="/z", sample={"time": 1}) as loader:
        assert loader.keys() == ["z"] and "z" in next(iter(loader))
