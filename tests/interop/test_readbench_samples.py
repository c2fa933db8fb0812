"""Order and content of every sample that readbench delivers, against a direct read by another implementation."""

import collections
import itertools
import math

import h5py
import hdf5plugin
import netCDF4
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, TransposeCodec, ZstdCodec

from support import readbench as rb

SHAPE, CHUNK, SAMPLE = (12, 23, 30), (5, 7, 8), (2, 6, 9)
NAMES = ("time", "lat", "lon")
BOX = "time=2,lat=6,lon=9"
FIELD = np.random.default_rng(7).standard_normal(SHAPE).astype("f4")


def zarr_store(path, values=FIELD, chunks=CHUNK, fmt=3, **kw):
    group = zarr.create_group(str(path), zarr_format=fmt)
    if fmt == 3:
        kw["dimension_names"] = NAMES
    else:
        kw["attributes"] = {"_ARRAY_DIMENSIONS": list(NAMES)}
    group.create_array("t", shape=values.shape, chunks=chunks, dtype=values.dtype, **kw)[...] = values


def netcdf_file(path, fmt, values=FIELD, **kw):
    with netCDF4.Dataset(path, "w", format=fmt) as ds:
        ds.set_auto_maskandscale(False)
        for name, n in zip(NAMES, values.shape):
            ds.createDimension(name, None if name == "time" and kw.pop("record", False) else n)
        ds.createVariable("t", values.dtype, NAMES, **kw)[:] = values


def hdf5_file(path):
    with h5py.File(path, "w") as f:
        d = f.create_dataset("t", data=FIELD.astype(">f8"), chunks=CHUNK, **hdf5plugin.Zstd())
        for i, name in enumerate(NAMES):
            f.create_dataset(name, data=np.arange(SHAPE[i])).make_scale(name)
            d.dims[i].attach_scale(f[name])


MAKERS = {
    "v3.zarr": lambda p: zarr_store(p),
    "gzip.zarr": lambda p: zarr_store(p, compressors=GzipCodec()),
    "transposed.zarr": lambda p: zarr_store(p, filters=TransposeCodec(order=(2, 0, 1))),
    "big.zarr": lambda p: zarr_store(p, serializer=BytesCodec(endian="big"), compressors=None),
    "sharded.zarr": lambda p: zarr_store(p, chunks=(2, 7, 4), shards=(4, 14, 16), compressors=ZstdCodec()),
    "int.zarr": lambda p: zarr_store(p, (FIELD * 100).astype("i2"), compressors=BloscCodec(shuffle="bitshuffle")),
    "v2.zarr": lambda p: zarr_store(p, fmt=2),
    "fortran.zarr": lambda p: zarr_store(p, FIELD.astype(">f8"), fmt=2, order="F"),
    "classic.nc": lambda p: netcdf_file(p, "NETCDF3_CLASSIC"),
    "record.nc": lambda p: netcdf_file(p, "NETCDF3_64BIT_OFFSET", record=True),
    "cdf5.nc": lambda p: netcdf_file(p, "NETCDF3_64BIT_DATA", FIELD.astype("f8")),
    "deflate.nc": lambda p: netcdf_file(p, "NETCDF4", chunksizes=CHUNK, zlib=True, shuffle=True),
    "contiguous.nc": lambda p: netcdf_file(p, "NETCDF4", contiguous=True),
    "zstd.h5": hdf5_file,
}


# Other measurements use each kind of file once; the others differ in their codecs and types.
MEASURED = ("v3.zarr", "sharded.zarr", "v2.zarr", "record.nc", "deflate.nc", "contiguous.nc", "zstd.h5")
UNCHUNKED = ("classic.nc", "record.nc", "cdf5.nc", "contiguous.nc")


def direct(path):
    """{variable: its values} by zarr-python, netCDF4 or h5py."""
    if path.suffix == ".zarr":
        return {name: a[...] for name, a in zarr.open_group(str(path), mode="r").arrays()}
    if path.suffix == ".h5":
        with h5py.File(path) as f:
            return {"t": f["t"][...]}
    with netCDF4.Dataset(path) as ds:
        ds.set_auto_maskandscale(False)
        return {name: v[...] for name, v in ds.variables.items()}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """store(name) -> the store of that name, made once."""
    root = tmp_path_factory.mktemp("stores")

    def find(name):
        if not (root / name).exists():
            MAKERS[name](root / name)
        return root / name

    return find


@pytest.fixture
def measure(tmp_path):
    """A run whose files go into the test's folder."""
    number = itertools.count()
    return lambda *args, **kw: rb.measure(tmp_path / f"run{next(number)}", *args, **{"program": rb.BARE, **kw})


def numbered(session):
    """batches.csv and samples.csv agree on which batch holds which samples."""
    held = collections.Counter((r[0], r[1], r[2]) for r in session.logged if r[5] == 0)
    assert held == {(b["epoch"], b["rank"], b["number"]): b["nsamples"] for b in session.batches}


def once(session, want, epochs=2):
    """Each epoch delivers the samples WANT, a multiset, and nothing else."""
    for epoch in range(epochs):
        assert collections.Counter(rb.starts(session, epoch)) == collections.Counter(want)


def test_the_checksum_is_the_known_one():
    assert rb.Crc(b"123456789") == 0xE3069283


# ---- formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize("loader", ["map", "planned"])
@pytest.mark.parametrize("name", MAKERS)
def test_formats(store, measure, name, loader):
    path = store(name)
    args = ["--variable", "t", "--sample", "x".join(map(str, SAMPLE)), "--batch", 5, "--order", "all"]
    if loader == "planned" and name in UNCHUNKED:
        rb.readbench(*args, "--loader", loader, "--no-out", path, status=1).fails(1, name, "t has no chunks")
        return
    program = "readbench" if loader == "map" and name in MEASURED else rb.BARE
    session = measure(path, *args, "--epochs", 1, "--loader", loader, program=program).only
    rb.same_bytes(session, direct(path))
    once(session, rb.tiles(SHAPE, SAMPLE, clipped=True), 1)
    assert sum(math.prod(r[9]) for r in session.logged) == math.prod(SHAPE)


@pytest.mark.parametrize("name", ["v3.zarr", "classic.nc", "deflate.nc", "contiguous.nc"])
def test_libnetcdf(store, measure, name):
    path = store(name)
    engine = "native" if name.endswith("zarr") else "netcdf"
    both = [
        measure(path, "--variable", "t", "--sample", BOX, "--batch", 4, "--batches", 6, "--engine", e, "--mode", m).only
        for e, m in ((engine, "threads"), (engine, "processes"), ("native", "sync"))
    ]
    rb.same_bytes(both[0], {"t": FIELD})
    assert both[0].engine == engine
    assert both[0].logged == both[1].logged == both[2].logged


# ---- modes and loaders ----------------------------------------------------------------------------

MODES = {
    "sync": ["--mode", "sync"],
    "threads": ["--mode", "threads", "--workers", 3],
    "worker threads": ["--workers", 2, "--worker-threads", 2, "--prefetch", 1],
    "fork": ["--mode", "processes"],
    "not persistent": ["--mode", "processes", "--no-persistent"],
    "cache": ["--cache", "100KiB"],
    "pread": ["--io", "pread"],
    "mmap": ["--io", "mmap"],
    "a host device": ["--device", "host"],
    "pageable": ["--device", "host", "--staging", "pageable", "--slot-size", "4KiB", "--slots", 9],
}
REFUSED_WHEN_PLANNED = {"worker threads": "--worker-threads 2: the planned loader hands out chunks"}
RANDOM = ["--sample", BOX, "--batch", 5, "--batches", 8, "--epochs", 2, "--seed", 11]


@pytest.fixture(scope="module")
def sync(store, tmp_path_factory):
    args = [*RANDOM, "--mode", "sync"]
    return rb.measure(tmp_path_factory.mktemp("sync") / "out", store("v3.zarr"), *args, program=rb.BARE).only


@pytest.mark.every
@pytest.mark.parametrize("args", MODES.values(), ids=MODES)
def test_every_mode_delivers_the_same(store, measure, sync, args):
    session = measure(store("v3.zarr"), *RANDOM, *args).only
    rb.same_bytes(session, {"t": FIELD})
    numbered(session)
    assert session.logged == sync.logged
    assert session.counts["samples"] == len(session.logged) == 80


PLANNED = (*RANDOM, "--loader", "planned", "--shuffle-window", 6)


@pytest.fixture(scope="module")
def planned(store, tmp_path_factory):
    args = [*PLANNED, "--mode", "sync"]
    return rb.measure(tmp_path_factory.mktemp("planned") / "out", store("v3.zarr"), *args, program=rb.BARE).only


@pytest.mark.every
@pytest.mark.parametrize("mode", MODES)
def test_the_planned_loader_delivers_the_same_in_every_mode(store, measure, planned, mode):
    args = MODES[mode]
    if mode in REFUSED_WHEN_PLANNED:
        run = ["--no-out", *PLANNED, *args, store("v3.zarr")]
        rb.readbench(*run, status=2).fails(2, REFUSED_WHEN_PLANNED[mode])
        return
    session = measure(store("v3.zarr"), *PLANNED, *args).only
    rb.same_bytes(session, {"t": FIELD})
    numbered(session)
    assert session.logged == planned.logged
    for epoch in range(2):
        assert len(set(rb.starts(session, epoch))) == 40
        places = [(r[2], r[3]) for r in session.logged if r[0] == epoch]
        assert places == [(b, i) for b in range(8) for i in range(5)]


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_unordered_batches_are_the_same_batches(store, measure, sync, mode):
    session = measure(store("v3.zarr"), *RANDOM, "--mode", mode, "--workers", 4, "--unordered").only
    assert sorted(session.logged) == sorted(sync.logged)
    delivered = [r for r in session.logged if r[0] == 0]
    assert all(len({r[2] for r in delivered[i : i + 5]}) == 1 for i in range(0, 40, 5)), "a batch comes whole"


def test_the_seed_decides(store, measure, sync):
    again = measure(store("v3.zarr"), *RANDOM).only
    other = measure(store("v3.zarr"), *RANDOM, "--seed", 12).only
    assert again.logged == sync.logged
    assert rb.starts(other, 0) != rb.starts(sync, 0)
    assert rb.starts(sync, 0) != rb.starts(sync, 1), "each epoch is shuffled anew"


# ---- orders ---------------------------------------------------------------------------------------


def ordered(measure, store, order, *args, loader="map", sample=BOX):
    given = ["--sample", sample] if sample else []
    session = measure(store("v3.zarr"), *given, "--order", order, "--batch", 4, *args, "--loader", loader).only
    rb.same_bytes(session, {"t": FIELD})
    numbered(session)
    assert session.order.split(":")[0] == order.split(":")[0]
    return session


TILES = rb.tiles(SHAPE, SAMPLE)


def test_sequential(measure, store):
    session = ordered(measure, store, "sequential", "--batches", 13)
    assert rb.starts(session, 0) == rb.starts(session, 1) == TILES[:52]


def test_sequential_takes_the_whole_epoch(measure, store):
    """Asked for more batches than there are: all samples, the last batch with what is left."""
    session = ordered(measure, store, "sequential", "--batches", 1000)
    assert rb.starts(session, 0) == TILES
    assert session.batches[-1]["nsamples"] == (len(TILES) - 1) % 4 + 1
    dropped = ordered(measure, store, "sequential", "--batches", 1000, "--batch", 5, "--drop-last")
    assert rb.starts(dropped, 0) == TILES[: len(TILES) // 5 * 5]


@pytest.mark.parametrize("stride", [1, 4, 7])
def test_strided(measure, store, stride):
    session = ordered(measure, store, f"strided:{stride}", "--batches", 1000, "--epochs", 1)
    assert rb.starts(session, 0) == [t for first in range(stride) for t in TILES[first::stride]]


def test_block_shuffle(measure, store):
    session = ordered(measure, store, "block-shuffle:6", "--batches", 1000)
    once(session, TILES)
    place = {t: i for i, t in enumerate(TILES)}
    seen = []
    for epoch in range(2):
        order = [place[s] for s in rb.starts(session, epoch)]
        runs = [k for k, _ in itertools.groupby(n // 6 for n in order)]
        assert sorted(runs) == list(range(len(TILES) // 6)), "a run is finished before the next begins"
        assert runs != sorted(runs) and order != sorted(order)
        assert any(order[i : i + 6] != sorted(order[i : i + 6]) for i in range(0, len(order), 6))
        seen.append(order)
    assert seen[0] != seen[1]
    n = len(TILES)
    displaced = sum(abs(i - p) for i, p in enumerate(seen[0])) / n / n
    assert session.loader["displacement"] == pytest.approx(displaced, abs=1e-6)


def test_displacement_of_a_shuffle(measure, store):
    session = ordered(measure, store, "random", "--batches", 100, "--epochs", 1)
    places = [s[::-1] for s in rb.starts(session, 0)]
    rank = {s: i for i, s in enumerate(sorted(rb.starts(session, 0)))}
    n = len(places)
    displaced = sum(abs(i - rank[s]) for i, s in enumerate(rb.starts(session, 0))) / n / n
    assert session.loader["displacement"] == pytest.approx(displaced, abs=1e-6)
    assert 0.25 < displaced < 0.42


def test_chunk_by_chunk(measure, store):
    session = ordered(measure, store, "chunks", "--batches", 1000)
    once(session, TILES)
    chunks = [tuple(s // c for s, c in zip(start, CHUNK)) for start in rb.starts(session, 0)]
    assert chunks == sorted(chunks)


def test_random_draws_each_offset_at_most_once(measure, store):
    session = ordered(measure, store, "random", "--sample", "time=11,lat=20,lon=28", "--batches", 1000)
    every = list(itertools.product(range(2), range(4), range(3)))
    once(session, every)
    assert rb.starts(session, 0) != every and rb.starts(session, 0) != rb.starts(session, 1)


@pytest.mark.parametrize("sample", [None, "time=1"])
def test_map(measure, store, sample):
    session = ordered(measure, store, "map", sample=sample)
    once(session, [(t, 0, 0) for t in range(SHAPE[0])])
    assert {r[9] for r in session.logged} == {(1, *SHAPE[1:])}
    assert rb.starts(session, 0) != sorted(rb.starts(session, 0))


def test_series(measure, store):
    session = ordered(measure, store, "series", "--batch", 50, "--batches", 1000, sample=None)
    once(session, list(itertools.product([0], range(SHAPE[1]), range(SHAPE[2]))))
    assert {r[9] for r in session.logged} == {(SHAPE[0], 1, 1)}
    assert rb.starts(session, 0) != sorted(rb.starts(session, 0))


@pytest.mark.parametrize("loader", ["map", "planned"])
def test_everything(measure, store, loader):
    session = ordered(measure, store, "all", "--epochs", 1, loader=loader)
    cover = np.zeros(SHAPE, int)
    for row in session.logged:
        cover[rb.box(row[8], row[9])] += 1
    assert (cover == 1).all()


@pytest.mark.every
@pytest.mark.parametrize("order", ["sequential", "strided:5", "block-shuffle:6", "chunks", "map", "series"])
def test_orders_through_the_planned_loader(measure, store, order):
    sample = None if order in ("map", "series") else BOX
    session = ordered(measure, store, order, "--batches", 1000, "--epochs", 1, loader="planned", sample=sample)
    want = {"map": [(t, 0, 0) for t in range(12)], "series": list(itertools.product([0], range(23), range(30)))}
    once(session, want.get(order, TILES), 1)


# ---- shares of ranks ------------------------------------------------------------------------------


@pytest.mark.parametrize("drop", [False, True])
def test_ranks_share_as_the_distributed_sampler_does(measure, store, drop):
    world, batch = 4, 4
    drops = ["--drop-last"] if drop else []
    args = ["--sample", BOX, "--order", "sequential", "--batch", batch, "--batches", 1000, "--epochs", 1, *drops]
    padded = TILES[: len(TILES) // world * world] if drop else TILES + TILES[: -len(TILES) % world]
    assert len(TILES) % world, "the shares must come out uneven for this to test anything"
    for rank in range(world):
        session = measure(store("v3.zarr"), *args, "--world-size", world, "--rank", rank).only
        rb.same_bytes(session, {"t": FIELD})
        share = padded[rank::world]
        assert rb.starts(session, 0) == (share[: len(share) // batch * batch] if drop else share)


@pytest.mark.parametrize("pool", ["rank", "shared"])
@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_accelerators_take_the_same_shares(measure, store, pool, mode):
    args = ["--sample", BOX, "--order", "sequential", "--batch", 4, "--batches", 1000, "--epochs", 1]
    session = measure(store("v3.zarr"), *args, "--accelerators", 4, "--pool", pool, "--mode", mode).only
    rb.same_bytes(session, {"t": FIELD})
    padded = TILES + TILES[: -len(TILES) % 4]
    for rank in range(4):
        assert rb.starts(session, 0, rank=rank) == padded[rank::4]
    assert session.loader["ranks"] == 4 and session.loader["pool"] == pool


@pytest.mark.parametrize("pool", ["rank", "shared"])
@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_accelerators_through_the_planned_loader(measure, store, pool, mode):
    args = ["--sample", BOX, "--order", "block-shuffle:5", "--batch", 4, "--batches", 1000, "--loader", "planned"]
    session = measure(store("v3.zarr"), *args, "--accelerators", 4, "--pool", pool, "--mode", mode).only
    rb.same_bytes(session, {"t": FIELD})
    for epoch in range(2):
        shares = [collections.Counter(rb.starts(session, epoch, rank=rank)) for rank in range(4)]
        assert [sum(share.values()) for share in shares] == [14] * 4
        delivered = sum(shares, collections.Counter())
        assert set(delivered) == set(TILES), "all of them, and two again to come out even"
        alone = measure(store("v3.zarr"), *args, "--world-size", 4, "--rank", 2, "--epochs", epoch + 1).only
        assert collections.Counter(rb.starts(alone, epoch)) == shares[2]


# ---- validation -----------------------------------------------------------------------------------


@pytest.mark.every
@pytest.mark.parametrize("loader", ["map", "planned"])
@pytest.mark.parametrize(
    "args", [["--device", "host"], ["--device", "host", "--validate", "checksum"], ["--validate", "full"]]
)
def test_validation_reads_every_batch_again(measure, store, sync, args, loader):
    report = measure(store("v3.zarr"), *RANDOM, "--loader", loader, *args)
    assert report.document["outcome"] == "done"
    session = report.only
    told = session.validation
    assert told["mismatches"] == 0
    assert told["batches"] in (8, 16) and told["nbytes"] == told["batches"] * 5 * 4 * math.prod(SAMPLE)
    assert session.counts["samples"] == 80 and len(session.logged) == 80, "that pass is not measured"


# ---- several variables ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Three dimensions, two, and one that the sample says nothing about."""
    path = tmp_path_factory.mktemp("several") / "several.zarr"
    group = zarr.create_group(str(path))
    rng = np.random.default_rng(3)
    data = {}
    for name, dims, chunks, dtype in (
        ("t", NAMES, CHUNK, "f4"),
        ("u", ("time", "lat", "lon"), (3, 23, 5), "f8"),
        ("mask", ("lat", "lon"), (10, 11), "i2"),
        ("zonal", ("time", "lat"), (4, 9), "u1"),
        ("level", ("level",), (6,), "f8"),
    ):
        shape = [dict(time=12, lat=23, lon=30, level=6)[d] for d in dims]
        data[name] = (rng.random(shape) * 200).astype(dtype)
        group.create_array(name, shape=shape, chunks=chunks, dtype=dtype, dimension_names=dims)[...] = data[name]
    return path, data


@pytest.mark.parametrize("loader", ["map", "planned"])
@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_variables_of_differing_rank(several, measure, loader, mode):
    path, data = several
    names = ["t", "u", "mask", "zonal"]
    args = ["--variable", ",".join(names), "--sample", BOX, "--batch", 3, "--batches", 6]
    session = measure(path, *args, "--loader", loader, "--mode", mode).only
    rb.same_bytes(session, data)
    parts = collections.defaultdict(dict)
    for row in session.logged:
        parts[row[:5]][row[6]] = (row[8], row[9])
    assert len(parts) == 36
    for part in parts.values():
        assert set(part) == set(names)
        (t, y, x), shape = part["t"]
        assert part["u"] == ((t, y, x), shape) and shape == SAMPLE
        assert part["mask"] == ((y, x), shape[1:])
        assert part["zonal"] == ((t, y), shape[:2])


def test_a_variable_without_the_samples_dimensions_is_read_once_a_worker(several, measure):
    path, data = several
    args = ["--variable", "t,level", "--sample", BOX, "--batch", 3, "--batches", 6, "--workers", 2]
    session = measure(path, *args).only
    static = {p["variable"]: p["static"] for p in session.sample}
    assert static == {"t": False, "level": True}
    rb.same_bytes(session, data)
    alone = measure(path, *args, "--variable", "t").only
    assert 0 <= session.counts["chunks"] - alone.counts["chunks"] <= 2


@pytest.mark.parametrize("loader", ["map", "planned"])
def test_lags(several, measure, loader):
    path, data = several
    args = ["--variable", "t,mask", "--lags", "0,3,7", "--sample", BOX, "--batch", 3, "--batches", 1000]
    session = measure(path, *args, "--order", "sequential", "--loader", loader, "--epochs", 1).only
    rb.same_bytes(session, data)
    together = collections.defaultdict(dict)
    for row in session.logged:
        together[row[:5]].setdefault(row[6], []).append((row[7], row[8]))
    for sample in together.values():
        at = dict(sample["t"])
        assert set(at) == {0, 3, 7}
        assert all(at[lag] == (at[0][0] + lag, *at[0][1:]) for lag in at)
    # The last step that fits is the one whose furthest lag is still in the array.
    assert sorted({dict(s["t"])[0][0] for s in together.values()}) == [0, 2]


# ---- conversion -----------------------------------------------------------------------------------

PACKED = (np.arange(12 * 23 * 30).reshape(12, 23, 30) * 37 % 60000 - 30000).astype("i2")
PACKED[::3, ::2, ::5] = -32767
SCALE, OFFSET = 0.0123, 271.3


def bfloat16(values):
    """Rounded to the nearest, ties to even, by integers; NaN is the quiet one."""
    bits = values.astype("f4").view("u4").astype("u8")
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def converted(values, to):
    with np.errstate(over="ignore"):
        return bfloat16(values) if to == "bfloat16" else values.astype(to)


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    root = tmp_path_factory.mktemp("packed")
    attributes = {"scale_factor": SCALE, "add_offset": OFFSET, "_FillValue": -32767}
    group = zarr.create_group(str(root / "packed.zarr"), zarr_format=2)
    group.create_array(
        "t",
        shape=SHAPE,
        chunks=CHUNK,
        dtype="i2",
        fill_value=-32767,
        attributes={"_ARRAY_DIMENSIONS": list(NAMES), **attributes},
    )[...] = PACKED
    with netCDF4.Dataset(root / "packed.nc", "w") as ds:
        for name, n in zip(NAMES, SHAPE):
            ds.createDimension(name, n)
        v = ds.createVariable("t", "i2", NAMES, chunksizes=CHUNK, fill_value=-32767)
        v.set_auto_maskandscale(False)
        v.setncatts({"scale_factor": SCALE, "add_offset": OFFSET})
        v[:] = PACKED
    return root


@pytest.mark.every
@pytest.mark.parametrize("to", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("fill", [False, True])
@pytest.mark.parametrize("unpack", [False, True])
@pytest.mark.parametrize("name", ["packed.zarr", "packed.nc"])
def test_packed_values(packed, measure, name, unpack, fill, to):
    args = ["--cast", to] + ["--unpack"] * unpack + ["--fill-to-nan"] * fill
    loader = "planned" if unpack else "map"
    session = measure(
        packed / name, "--sample", BOX, "--batch", 3, "--batches", 4, "--loader", loader, "--epochs", 1, *args
    ).only
    want = PACKED.astype("f8")
    if unpack:
        want = want * SCALE + OFFSET
    if fill:
        want[PACKED == -32767] = np.nan
    # One rounding from double: float32 first would round bfloat16 twice.
    if to == "bfloat16":
        narrow = want.astype("f4")
        up, down = np.nextafter(narrow, np.float32(np.inf)), np.nextafter(narrow, np.float32(-np.inf))
        tie = narrow.view("u4") & 0xFFFF == 0x8000
        want = np.where(tie & (want > narrow), up, np.where(tie & (want < narrow), down, narrow))
    rb.same_bytes(session, {"t": converted(want, to)})
    assert session.sample[0]["type"] == to and session.sample[0]["stored_type"] == "int16"
    assert session.sample[0]["nbytes"] == math.prod(SAMPLE) * (4 if to == "float32" else 2)


@pytest.mark.parametrize("to", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1"])
def test_casts(tmp_path, measure, dtype, to):
    """Values with numbers that are too large, denormal, a tie or NaN."""
    rng = np.random.default_rng(5)
    if dtype[0] == "f":
        values = (rng.standard_normal(SHAPE) * 10.0 ** rng.integers(-30, 30, SHAPE)).astype(dtype)
        values[0, 0, :9] = [np.inf, -np.inf, -0.0, 65504, 65519.9, 65520, 6e-8, 1 + 2**-11, 1 + 2**-8]
    else:
        values = rng.integers(0, 1 << 62 if dtype == "i8" else 255, SHAPE).astype(dtype)
    zarr_store(tmp_path / "t.zarr", values)
    session = measure(
        tmp_path / "t.zarr", "--sample", BOX, "--order", "all", "--epochs", 1, "--cast", to, "--batch", 8
    ).only
    if to == "bfloat16" and dtype in ("f8", "i8"):  # values off every tie: one rounding is two
        narrow = values.astype("f4")
        keep = narrow.view("u4") & 0xFFFF != 0x8000
        assert keep.mean() > 0.99
        logged = [r for r in session.logged if keep[rb.box(r[8], r[9])].all()]
        session.__dict__["logged"] = logged
    rb.same_bytes(session, {"t": converted(values, to)})


def test_unpacking_keeps_a_float_type(tmp_path, measure):
    zarr_store(tmp_path / "t.zarr", FIELD, attributes={"scale_factor": 2.5, "add_offset": -1.0})
    session = measure(tmp_path / "t.zarr", "--sample", BOX, "--batches", 4, "--batch", 4, "--unpack").only
    rb.same_bytes(session, {"t": (FIELD.astype("f8") * 2.5 - 1.0).astype("f4")})
