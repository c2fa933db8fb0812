"""Random settings of the loader over random stores, every batch against what zarr-python reads."""

import itertools
import os
import random

import numpy as np
import pytest
import zarr

from support import paths

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python")

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
os.environ["CHUNKMILL_BIN"] = str(paths.BUILD / "bin")
import chunkmill  # noqa: E402

NAMES = ("time", "level", "lat", "lon")
TYPES = ("i1", "u2", "i4", "f4", "f8")
ORDERS = ("random", "sequential", "strided:3", "block-shuffle:4", "chunks")


def make_store(path, rng):
    """A few arrays of some of the dimensions each, in chunks and shards of their own; the first has all."""
    dims = NAMES[4 - rng.randint(1, 4):]
    length = {d: rng.randint(1, 40 if d == dims[0] else 20) for d in dims}
    group = zarr.create_group(str(path), zarr_format=rng.choice((2, 3)))
    for i in range(rng.randint(1, 3)):
        own = dims if i == 0 else tuple(d for d in dims if rng.random() < 0.7) or dims[:1]
        shape = tuple(length[d] for d in own)
        chunks = tuple(rng.randint(1, min(n, 9)) for n in shape)
        kw = {}
        if group.metadata.zarr_format == 3:
            kw["dimension_names"] = own
            if rng.random() < 0.3:
                kw["shards"] = tuple(c * rng.randint(1, 3) for c in chunks)
        else:
            kw["attributes"] = {"_ARRAY_DIMENSIONS": list(own)}
        values = np.random.default_rng(rng.randrange(1 << 30)).integers(0, 120, shape).astype(rng.choice(TYPES))
        array = group.create_array(f"v{i}", shape=shape, chunks=chunks, dtype=values.dtype, fill_value=7, **kw)
        if rng.random() < 0.8:
            array[...] = values  # otherwise no chunk of it is stored
    return dims, length


def limit(rng, dims, length):
    """A subset of some dimensions and a split of one, and the lengths that they leave."""
    subset, split, limits = {}, {}, {d: range(n) for d, n in length.items()}
    for d in dims:
        if rng.random() < 0.3:
            first = rng.randrange(length[d])
            subset[d] = slice(first or None, rng.randint(first + 1, length[d]))
            limits[d] = limits[d][subset[d]]
    cut = rng.choice(dims)
    n = len(limits[cut])
    if rng.random() < 0.3 and n >= 2:
        share = rng.randint(1, n - 1) / n
        split = {"split": (rng.choice(("train", "val")), share), "split_dim": cut}
        at = round(n * share)
        limits[cut] = limits[cut][:at] if split["split"][0] == "train" else limits[cut][at:]
    return {"subset": subset or None, **split}, limits


def make_setting(rng, dims, whole):
    limited, limits = limit(rng, dims, whole)
    length = {d: len(within) for d, within in limits.items()}
    sample = {d: rng.randint(1, length[d]) for d in dims if d == dims[0] or rng.random() < 0.8}
    room = length[dims[0]] - sample[dims[0]]
    back = rng.randint(0, min(room, 12)) if rng.random() < 0.5 else 0
    lags = sorted(rng.sample(range(-back, min(room, 12) + 1 - back), min(rng.randint(1, 3), min(room, 12) + 1)))
    setting = {
        **limited,
        "sample": sample,
        "lags": lags if rng.random() < 0.4 else None,
        "batch": rng.randint(1, 20),
        "order": rng.choice(ORDERS),
        "seed": rng.randrange(1000),
        "decode": False,
        "loader": rng.choice(("planned", "planned", "map")),
        "drop_last": rng.random() < 0.2,
        "workers": rng.randint(1, 4),
        "prefetch": rng.randint(1, 3),
        "sync": rng.random() < 0.2,
    }
    if setting["sync"]:
        del setting["workers"]
    if setting["loader"] == "planned" and rng.random() < 0.5:
        setting["window"] = rng.randint(1, 9)
    if rng.random() < 0.3:
        setting["memory"] = "40MiB"
    return setting, limits


def check_batch(group, loader, batch, limits):
    """Returns the places of its samples."""
    names = [d.name for d in loader.dims]
    size = {d.name: d.sample for d in loader.dims}
    assert {d.name: d.elements for d in loader.dims} == {name: limits[name] for name in names}
    for key in loader.keys():
        got = batch[key].numpy()
        array = group[batch[key].name]
        own = array.metadata.dimension_names if group.metadata.zarr_format == 3 else array.attrs["_ARRAY_DIMENSIONS"]
        for k in range(len(batch)):
            at = dict(zip(names, batch.index[k].tolist()))
            lag = batch[key].lag if own and own[0] == names[0] else 0
            for d in own:
                first = at[d] + lag * (d == names[0])
                for start in (at[d], first):
                    assert limits[d].start <= start and start + size[d] <= limits[d].stop, (key, at)
            box = tuple(slice(at[d] + lag * (d == names[0]), at[d] + lag * (d == names[0]) + size[d]) for d in own)
            assert np.array_equal(got[k], array[box]), (key, at)
    return [tuple(row) for row in batch.index.tolist()]


def opened(path, **setting):
    try:
        return chunkmill.Loader(path, variables="v*", **setting)
    except chunkmill.ChunkmillError as problem:
        # A variable without a dimension of the sample, a drop_last that leaves nothing.
        assert problem.status == "invalid", problem
        return None


@pytest.mark.parametrize("number", [pytest.param(n, marks=[pytest.mark.long] if n >= 60 or n == 44 else []) for n in range(400)])
@pytest.mark.every
def test_random_settings(tmp_path, number):
    rng = random.Random(number)
    dims, length = make_store(tmp_path / "a.zarr", rng)
    setting, limits = make_setting(rng, dims, length)
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="r")
    loader = opened(tmp_path / "a.zarr", **setting)
    if loader is None:
        return
    with loader:
        places, state = [], None
        stop = rng.randrange(len(loader) + 1)
        for batch in itertools.islice(loader, 60):
            places += check_batch(group, loader, batch, limits)
            if batch.number + 1 == stop:
                state = loader.state_dict()
        assert len(set(places)) == len(places), "a sample came twice"
        if len(loader) <= 60 and not setting["drop_last"]:
            assert len(places) == loader.nsamples
    if state is not None:
        with opened(tmp_path / "a.zarr", **setting) as again:
            again.load_state_dict(state)
            rest = [p for batch in itertools.islice(again, 10) for p in check_batch(group, again, batch, limits)]
        seen = places[stop * setting["batch"]:]  # of the first 60 batches
        assert rest[:len(seen)] == seen[:len(rest)]


@pytest.mark.parametrize("number", range(12))
def test_ranks_share_an_epoch(tmp_path, number):
    rng = random.Random(1000 + number)
    dims, length = make_store(tmp_path / "a.zarr", rng)
    setting = {**make_setting(rng, dims, length)[0], "drop_last": False, "batch": rng.randint(1, 9)}
    whole = opened(tmp_path / "a.zarr", **setting)
    if whole is None or whole.nsamples > 3000:
        return
    with whole:
        expected = {tuple(p) for batch in whole for p in batch.index.tolist()}
    world, seen = min(rng.randint(2, 5), len(expected)), []
    for rank in range(world):
        with chunkmill.Loader(tmp_path / "a.zarr", variables="v*", rank=rank, world_size=world, **setting) as loader:
            seen += [tuple(p) for batch in loader for p in batch.index.tolist()]
    assert set(seen) == expected
    assert len(seen) == -(-len(expected) // world) * world
