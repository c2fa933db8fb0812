"""subset, split and normalize of the loader, against xarray's isel and sel and NumPy."""

import json
import os
import random

import netCDF4
import numpy as np
import pytest
import xarray
import zarr

from support import paths
from support.tool import nc2zarr, run

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python")

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
os.environ["CHUNKMILL_BIN"] = str(paths.BUILD / "bin")
import chunkmill  # noqa: E402

NTIMES, NLATS, NLONS = 120, 19, 6


def add_coordinate(group, name, values, **attributes):
    array = group.create_array(name, shape=values.shape, chunks=values.shape, dtype=values.dtype, dimension_names=(name,),
                               attributes=attributes)
    array[...] = values


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same field in two calendars."""
    made = {}
    for calendar in ("standard", "360_day"):
        path = made[calendar] = tmp_path_factory.mktemp("limits") / f"{calendar}.zarr"
        group = zarr.create_group(str(path), zarr_format=3)
        shape = (NTIMES, NLATS, NLONS)
        t2m = group.create_array("t2m", shape=shape, chunks=(7, 5, 6), dtype="f4", dimension_names=("time", "lat", "lon"))
        t2m[...] = np.arange(np.prod(shape), dtype="f4").reshape(shape)
        add_coordinate(group, "time", np.arange(NTIMES, dtype="i4") * 12 + 6, units="hours since 2001-12-20",
                       calendar=calendar)
        add_coordinate(group, "lat", np.linspace(90, -90, NLATS, dtype="f4"))
        add_coordinate(group, "lon", np.array([3, 0, 5, 1, 2, 4], dtype="i4"))
        zarr.consolidate_metadata(str(path))
    return made


def elements(path, **options):
    with chunkmill.Loader(path, variables="t2m", sample={"time": 1}, **options) as loader:
        return {d.name: d.elements for d in loader.dims}


def all_of(loader):
    return np.concatenate([batch["t2m"].numpy() for batch in loader])


INDICES = ({"time": slice(10, 50)}, {"time": slice(-20, None)}, {"time": slice(None, 3), "lat": slice(2, -2)},
           {"lat": slice(None)}, {"time": slice(np.int64(5), 10**6)}, {})


@pytest.mark.every
@pytest.mark.parametrize("subset", INDICES)
def test_integers_are_isels(stores, subset):
    expected = xarray.open_zarr(stores["standard"]).isel(subset)["t2m"].values
    with chunkmill.Loader(stores["standard"], variables="t2m", sample={"time": 1}, order="sequential", loader="planned",
                          subset=subset) as loader:
        found = {tuple(row): x.copy() for batch in loader for row, x in zip(batch.index.tolist(), batch["t2m"].numpy())}
        starts = [d.elements.start for d in loader.dims]
        times = {k: loader.dims[0].coords[k[0]] for k in found}
    assert sorted(found) == [(starts[0] + i, *starts[1:]) for i in range(len(expected))]
    assert all(np.array_equal(x, expected[k[0] - starts[0]][None]) for k, x in found.items())
    shown = xarray.open_zarr(stores["standard"]).time.values
    assert all(shown[k[0]] == time for k, time in times.items())


LABELS = [("time", slice(*ends)) for ends in (
    ("2002-01", "2002-01"), ("2002", None), (None, "2001"), ("2001-12-25", "2002-01-03"), ("2002-01-01T06", "2002-01-01T18:00"),
    ("2002-01-01T07", "2002-01-02T05:30"), ("1990", "2100"))]
MORE = [("time", slice(np.datetime64("2002-01-01T18"), np.datetime64("2002-01-05"))),
        ("lat", slice(60.0, 30.0)), ("lat", slice(55.0, -1.5)), ("lat", slice(None, 0.0)), ("lat", slice(np.float32(80), None))]


@pytest.mark.every
@pytest.mark.parametrize("calendar,dim,key", [("standard", *row) for row in LABELS + MORE] + [("360_day", *row) for row in LABELS])
def test_labels_are_sels(stores, calendar, dim, key):
    shown = xarray.open_zarr(stores[calendar], decode_times=xarray.coders.CFDatetimeCoder(use_cftime=calendar == "360_day"))
    places = shown.assign_coords(place=(dim, np.arange(shown.sizes[dim]))).sel({dim: key}).place.values
    assert elements(stores[calendar], subset={dim: key})[dim] == range(places[0], places[-1] + 1)


def test_a_day_of_datetime(stores):
    import datetime
    key = slice(datetime.datetime(2002, 1, 1), datetime.datetime(2002, 1, 2, 6))
    assert elements(stores["standard"], subset={"time": key})["time"] == range(24, 27)


@pytest.mark.every
@pytest.mark.parametrize("options,words", [
    ({"subset": {"lat": slice(30.0, 60.0)}}, "fall, so the larger one comes first"),
    ({"subset": {"lon": slice(1.0, 3.0)}}, "neither rise nor fall"),
    ({"subset": {"lat": slice(3, 30.0)}}, "mixes an index and a label"),
    ({"subset": {"lat": slice("30", None)}}, "numbers with a point"),
    ({"subset": {"time": slice(2.5, None)}}, "needs dates"),
    ({"subset": {"time": slice("spring", None)}}, "is not a date"),
    ({"subset": {"time": slice(0, 10, 2)}}, "a step must be 1"),
    ({"subset": {"time": 3}}, "needs a slice"),
    ({"subset": {"time": slice(5, 5)}}, "chooses none of the 120 elements of time"),
    ({"subset": {"depth": slice(3)}}, "no chosen variable has a dimension depth; there are time, lat, lon"),
    ({"subset": slice(3)}, "needs slices by dimension"),
    ({"split": ("test", 0.8)}, "no part test"),
    ({"split": ("train", 1.2)}, "between 0 and 1"),
    ({"split": "train"}, "split: needs"),
    ({"split": ("train", 0.8), "split_dim": "depth"}, "split_dim: no chosen variable has a dimension depth"),
    ({"split": ("val", 0.999)}, "val has none of the 120 elements"),
    ({"split_dim": "time"}, "give split, too"),
])
def test_refusals(stores, options, words):
    with pytest.raises(chunkmill.ChunkmillError, match=words):
        elements(stores["standard"], **options)


def test_a_sample_fits_the_subset(stores):
    with pytest.raises(chunkmill.ChunkmillError, match="do not fit dimension time, which has 8"):
        elements(stores["standard"], subset={"time": slice(8)}, lags=[-6, 3])


@pytest.mark.parametrize("lags", ([-2], [-5, -2], [2], [-1, 2]))
def test_lag_0_lies_in_the_array(stores, lags):
    n = 20
    with chunkmill.Loader(stores["standard"], variables="t2m", sample={"time": 1}, lags=lags, subset={"time": slice(n)},
                          order="sequential", batch=1) as loader:
        first = [int(batch.index[0, 0]) for batch in loader]
    assert first == list(range(max(0, -min(lags)), n - max(0, *lags)))


def lagged_store(path, dims):
    length = {"time": 12, "member": 4, "lat": 6}
    group = zarr.create_group(str(path), zarr_format=3)
    shape = tuple(length[d] for d in dims)
    field = group.create_array("field", shape=shape, chunks=tuple(n // 2 + 1 for n in shape), dtype="f4", dimension_names=dims)
    field[...] = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    flat = group.create_array("flat", shape=(6, 4), chunks=(4, 3), dtype="f8", dimension_names=("lat", "member"))
    flat[...] = np.arange(24.0).reshape(6, 4) * 1000
    return field[...]


@pytest.mark.parametrize("options", (
    {"order": "series"}, {"order": "map"}, {"order": "random"}, {"order": "all"}, {"order": "chunks"}, {"loader": "planned"},
), ids=str)
@pytest.mark.parametrize("lags", ([0], [2], [-3, 0], [-2, 1]), ids=str)
@pytest.mark.parametrize("dims", (("time", "member", "lat"), ("member", "time", "lat"), ("lat", "member", "time")), ids=",".join)
@pytest.mark.few(6)
def test_lags_go_along_time(tmp_path, options, lags, dims):
    """Wherever it stands, and whichever variable comes first; each tensor against NumPy."""
    values = lagged_store(tmp_path / "a.zarr", dims)
    steps = 1 if options.get("order") == "all" else 2  # no sample is clipped
    sample = {} if options.get("order") in ("series", "map") else {"sample": {"time": steps, "lat": 3}}
    with chunkmill.Loader(tmp_path / "a.zarr", variables=["flat", "field"], lags=lags, batch=3, **sample, **options) as loader:
        assert all(key[0] == "field" for key in loader.keys() if isinstance(key, tuple))
        seen = 0
        for batch in loader:
            for lag in lags:
                tensor = batch["field", lag] if lag and ("field", lag) in loader.keys() else batch["field"]
                for index, got in zip(batch.index, tensor.numpy()):
                    start = dict(zip((d.name for d in loader.dims), (int(i) for i in index)))
                    start["time"] += lag
                    box = tuple(slice(start[d], start[d] + n) for d, n in zip(dims, got.shape))
                    assert np.array_equal(got, values[box]), box
                    seen += 1
        assert seen > 0


def test_series_say_what_lags_leave(tmp_path):
    lagged_store(tmp_path / "a.zarr", ("time", "member", "lat"))
    options = {"variables": "field", "order": "series", "lags": [-2, 0]}
    with chunkmill.Loader(tmp_path / "a.zarr", sample={"time": 10}, **options) as loader:
        assert next(iter(loader))["field"].shape[1:] == (10, 1, 1)
    with pytest.raises(chunkmill.ChunkmillError, match="takes 10 of dimension time"):
        chunkmill.Loader(tmp_path / "a.zarr", sample={"time": 12}, **options)


def test_lags_need_room(tmp_path):
    """A variable that is read whole has no steps to go."""
    lagged_store(tmp_path / "a.zarr", ("time", "member", "lat"))
    with pytest.raises(chunkmill.ChunkmillError, match="do not fit dimension time"):
        chunkmill.Loader(tmp_path / "a.zarr", variables="field", sample={"lat": 3}, lags=[2])


@pytest.mark.parametrize("kind", ("map", "planned"))
@pytest.mark.parametrize("shares", ((0.7,), (0.5, 0.25)))
def test_parts_share_no_element(stores, kind, shares):
    seen = []
    for part in ("train", "val", "test")[:len(shares) + 1]:
        with chunkmill.Loader(stores["standard"], variables="t2m", sample={"time": 3}, lags=[-4, 0, 2], loader=kind,
                              split=(part, *shares), subset={"time": slice(10, None)}) as loader:
            seen.append({float(x) for key in loader.keys() for batch in loader for x in np.unique(batch[key].numpy())})
            assert seen[-1]
            assert loader.dims[0].elements.start >= 10
    assert all(not a & b for i, a in enumerate(seen) for b in seen[:i])


def test_the_dimension_of_a_split(tmp_path):
    group = zarr.create_group(str(tmp_path / "a.zarr"), zarr_format=3)
    group.create_array("x", shape=(10, 20), chunks=(3, 3), dtype="f4", dimension_names=("member", "time"))
    group.create_array("y", shape=(10, 20), chunks=(3, 3), dtype="f4", dimension_names=("member", "cell"))
    for name, cut in (("x", "time"), ("y", "member")):
        with chunkmill.Loader(tmp_path / "a.zarr", variables=name, sample={"member": 1}, split=("train", 0.5)) as loader:
            assert [d.name for d in loader.dims if len(d.elements) < d.length] == [cut]


@pytest.mark.parametrize("kind", ("map", "planned"))
def test_a_position_is_of_its_part(stores, kind):
    options = {"variables": "t2m", "sample": {"time": 1}, "batch": 4, "loader": kind}
    with chunkmill.Loader(stores["standard"], subset={"time": slice(20, 60)}, **options) as loader:
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        rest = [row.tolist() for batch in batches for row in batch.index]
    with chunkmill.Loader(stores["standard"], subset={"time": slice(20, 60)}, **options) as loader:
        loader.load_state_dict(state)
        assert [row.tolist() for batch in loader for row in batch.index] == rest
    for subset in ({"time": slice(60, 100)}, {"time": slice(21, 60)}, None):
        with chunkmill.Loader(stores["standard"], subset=subset, **options) as loader:
            with pytest.raises(chunkmill.ChunkmillError, match="other samples"):
                loader.load_state_dict(state)


def netcdf_until(path, field):
    with netCDF4.Dataset(path, "a" if path.exists() else "w") as ds:
        if "v" not in ds.variables:
            ds.createDimension("time")
            ds.createDimension("x", 6)
            ds.createVariable("v", "f4", ("time", "x"), chunksizes=(8, 4))
        ds["v"][:] = field


def zarr_until(path, field):
    group = zarr.open_group(str(path), mode="a")
    if "v" not in group:
        group.create_array("v", shape=field.shape, chunks=(8, 4), dtype="f4", dimension_names=("time", "x"))
    group["v"].resize(field.shape)
    group["v"][...] = field


def rectilinear_until(path, field):
    """Chunks along time are of 3, 8, 8, 8, ..., the last of what is left."""
    cuts = [0, *range(3, len(field), 8), len(field)]
    (path / "v").mkdir(parents=True, exist_ok=True)
    grid = {"kind": "inline", "chunk_shapes": [[int(n) for n in np.diff(cuts)], [4, 2]]}
    (path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    (path / "v" / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": field.shape, "data_type": "float32", "fill_value": 0,
        "chunk_grid": {"name": "rectilinear", "configuration": grid}, "dimension_names": ["time", "x"],
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}))
    for i, (first, end) in enumerate(zip(cuts, cuts[1:])):
        for k in range(2):
            field[first:end, 4 * k:4 * k + 4].tofile(path / "v" / f"c.{i}.{k}")


@pytest.mark.every
@pytest.mark.parametrize("write", (netcdf_until, zarr_until, rectilinear_until))
def test_a_position_outlives_growth_beyond_the_subset(tmp_path, write):
    path, field = tmp_path / "a", np.arange(41 * 6, dtype="f4").reshape(-1, 6)
    write(path, field[:20])
    given, saved = [{"loader": kind, "subset": subset} for kind in ("map", "planned") for subset in ({"time": slice(2, 18)}, None)], []
    options = {"variables": "v", "sample": {"time": 3, "x": 2}, "batch": 4, "seed": 3}
    for more in given:
        with chunkmill.Loader(path, **options, **more) as loader:
            batches = iter(loader)
            next(batches)
            saved.append((loader.state_dict(), [batch.index.tolist() for batch in batches]))
    write(path, field)
    for more, (state, rest) in zip(given, saved):
        with chunkmill.Loader(path, **options, **more) as loader:
            if more["subset"]:
                loader.load_state_dict(state)
                assert [batch.index.tolist() for batch in loader] == rest
            else:
                with pytest.raises(chunkmill.ChunkmillError, match="other samples, lengths of dimensions, order"):
                    loader.load_state_dict(state)


# ---- normalize ----

@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A packed variable with missing values, and one of levels, with their statistics beside the store."""
    folder = tmp_path_factory.mktemp("counted")
    rng = np.random.default_rng(1)
    t2m = xarray.Variable(("time", "lat"), rng.normal(280, 10, (40, 12)).round(1))
    t2m.values[3, 4] = np.nan
    z = xarray.Variable(("time", "level", "lat"), rng.normal(0, 1, (40, 3, 12)) * [[[1], [20], [5]]] + [[[9], [50], [0]]])
    same = xarray.Variable(("time", "lat"), np.full((40, 12), 7.0))
    xarray.Dataset({"t2m": t2m, "z": z.astype("f4"), "same": same}, coords={"level": [1000.0, 500.0, 100.0]}).to_netcdf(
        folder / "a.nc", encoding={"t2m": {"dtype": "i2", "scale_factor": 0.1, "add_offset": 280.0, "_FillValue": -999}})
    assert nc2zarr("--statistics", folder / "a.nc", folder / "a.zarr").status == 0
    return folder / "a.zarr"


@pytest.mark.parametrize("kind", ("map", "planned"))
@pytest.mark.parametrize("cast", (None, "float32"))
def test_normalized_values(counted, kind, cast):
    shown = xarray.open_zarr(counted)
    with chunkmill.Loader(counted, variables=["t2m", "z"], sample={"time": 1}, order="sequential", normalize=True, cast=cast,
                          loader=kind, sync=True) as loader:
        found = {name: {int(row[0]): x.copy() for batch in loader for row, x in zip(batch.index, batch[name].numpy())}
                 for name in ("t2m", "z")}
    for name, by_time in found.items():
        values = shown[name].values.astype("f8")
        axis = (0, 2) if name == "z" else None  # each level by itself
        expected = (values - np.nanmean(values, axis=axis, keepdims=True)) / np.nanstd(values, axis=axis, keepdims=True)
        got = np.concatenate([by_time[t] for t in range(40)])
        assert got.dtype == (cast or shown[name].dtype)
        assert np.array_equal(np.isnan(got), np.isnan(expected))
        assert np.allclose(got, expected, atol=2e-6, equal_nan=True)
        assert abs(np.nanmean(got)) < 1e-5 and abs(np.nanstd(got) - 1) < 1e-5


def test_statistics_elsewhere(counted, tmp_path):
    os.rename(f"{counted}.statistics.zarr", tmp_path / "s.zarr")
    try:
        with chunkmill.Loader(counted, variables="z", sample={"time": 1}, normalize=tmp_path / "s.zarr") as loader:
            assert abs(np.mean([batch["z"].numpy().mean() for batch in loader])) < 0.2
        with pytest.raises(chunkmill.ChunkmillError, match="normalize: .*statistics.zarr"):
            chunkmill.Loader(counted, variables="z", sample={"time": 1}, normalize=True)
    finally:
        os.rename(tmp_path / "s.zarr", f"{counted}.statistics.zarr")


@pytest.mark.parametrize("number", range(120 if paths.LONG else 6))
@pytest.mark.every
def test_normalized_by_level(tmp_path, number):
    """4-D variables, the levels anywhere among the dimensions: against NumPy, of Zarr and NetCDF, with absent chunks, lags and subsets."""
    rng = np.random.default_rng(number)
    dims = list(rng.permutation(["time", "level", "lat", "lon"]))
    size = {"time": int(rng.integers(6, 20)), "level": int(rng.integers(1, 6)), "lat": int(rng.integers(2, 9)), "lon": int(rng.integers(1, 70))}
    shape = [size[d] for d in dims]
    at = dims.index("level")
    along = [1] * 4
    along[at] = -1
    values = rng.normal(size=shape) * (1 + np.arange(size["level"]).reshape(along) * 7) + np.arange(size["level"]).reshape(along) * 100
    values = values.astype("f4")
    values[tuple(slice(0, n // 2) for n in shape)] = np.float32(-5)
    encoding = {"chunksizes": [int(rng.integers(1, n + 1)) for n in shape], "_FillValue": -5.0 if number % 2 else None, "dtype": "f4"}
    if number % 6 == 4:  # read at offsets, as slices
        xarray.Dataset({"z": (dims, values)}).to_netcdf(tmp_path / "a.nc", format="NETCDF3_64BIT")
    else:
        xarray.Dataset({"z": (dims, values)}).to_netcdf(tmp_path / "a.nc", encoding={"z": encoding})
    chunks = "x".join(str(int(rng.integers(1, n + 1))) for n in shape)
    assert nc2zarr("-q", "--statistics", "--chunks", f"z:{chunks}", tmp_path / "a.nc", tmp_path / "a.zarr").status == 0
    shown = xarray.open_zarr(tmp_path / "a.zarr").z.values.astype("f8")
    others = tuple(j for j in range(4) if j != at)
    with np.errstate(all="ignore"):
        mean, std = np.nanmean(shown, axis=others, keepdims=True), np.nanstd(shown, axis=others, keepdims=True)
    if not (std > 0).all():
        pytest.skip("a level of one value")
    want = (shown - mean) / std
    sample = {"time": 1} if number % 3 else {"time": 2, "lat": 1, "level": 1}
    subset = {"level": slice(int(rng.integers(0, size["level"])), size["level"])} if number % 4 == 1 else None
    options = {"loader": ("map", "planned")[number % 2], "normalize": True, "subset": subset, "batch": 3}
    if number % 5 == 2:
        options["lags"] = [-1, 0] if dims[0] == "time" else None
    n, store = 0, tmp_path / "a.zarr"
    if number % 3 == 1:
        store, options["normalize"] = tmp_path / "a.nc", f"{store}.statistics.zarr"
    with chunkmill.Loader(store, variables="z", sample=sample, **{k: v for k, v in options.items() if v is not None}) as loader:
        first = [subset["level"].start if subset and d == "level" else 0 for d in dims]
        for batch in loader:
            for row, got in zip(batch.index, batch["z"].numpy()):
                place = dict(zip(loader_dims(loader), row.tolist()))
                box = tuple(slice(place[d], place[d] + sample[d]) if d in sample else slice(f, None) for d, f in zip(dims, first))
                assert np.allclose(got, want[box], rtol=1e-5, atol=2e-6, equal_nan=True), (options, place)
                n += 1
    assert n > 0


def loader_dims(loader):
    return [d.name for d in loader.dims]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_statistics_of_levels_in_another_order(tmp_path, dtype):
    """The same coordinates, in whatever type and where one store has none; not the same ones turned round, but for levels left out."""
    def store(name, levels, dtype):
        ds = xarray.Dataset({"z": (("time", "level"), np.random.default_rng(1).normal(size=(9, 3)))}, {"level": np.array(levels, dtype)})
        ds.to_netcdf(tmp_path / f"{name}.nc")
        assert nc2zarr("-q", "--statistics", tmp_path / f"{name}.nc", tmp_path / f"{name}.zarr").status == 0
        return str(tmp_path / f"{name}.zarr")

    def batches(name, of, **options):
        with chunkmill.Loader(name, variables="z", sample={"time": 1}, normalize=f"{of}.statistics.zarr", **options) as loader:
            return sum(1 for _ in loader)

    levels = [1000, 850, 100]
    down, same, up = (store(name, at, to) for name, at, to in
                      (("down", levels, "f8"), ("same", levels, dtype), ("up", levels[::-1], dtype)))
    assert batches(same, down) and batches(down, same)
    with pytest.raises(ValueError, match=r"variable z: normalize: level 0 \(from 0\) is 100 here, and 1000 where the statistics"):
        batches(up, down)
    assert batches(up, down, subset={"level": slice(1, 2)})
    xarray.open_zarr(up).load().drop_vars("level").drop_encoding().to_zarr(tmp_path / "none.zarr")
    assert batches(str(tmp_path / "none.zarr"), down)
    foreign = tmp_path / "up.zarr" / "level" / "zarr.json"
    document = json.loads(foreign.read_text())
    document["codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "example.unknown"}]
    foreign.write_text(json.dumps(document))
    root = tmp_path / "up.zarr" / "zarr.json"
    group = json.loads(root.read_text())
    group.pop("consolidated_metadata", None)
    root.write_text(json.dumps(group))
    assert batches(up, down)  # coordinates that cannot be read tell nothing


def test_statistics_of_channels_in_another_order(tmp_path):
    """Channels are told by their labels: those of a stack in another order are refused, but where `subset` leaves out what differs."""
    xarray.Dataset({n: (("time",), np.arange(6.0) * k) for n, k in (("t", 1), ("u", 2), ("v", 3))}).to_netcdf(tmp_path / "in.nc")
    for name, channels in (("tuv", "t,u,v"), ("tvu", "t,v,u"), ("twv", "t,u,v")):
        assert nc2zarr("-q", "--statistics", "--stack", f"z={channels}", tmp_path / "in.nc", tmp_path / f"{name}.zarr").status == 0

    def batches(name, of, **options):
        normalize = str(tmp_path / f"{of}.zarr.statistics.zarr")
        with chunkmill.Loader(str(tmp_path / f"{name}.zarr"), variables="z", sample={"time": 1}, normalize=normalize, **options) as loader:
            return sum(1 for _ in loader)

    assert batches("tuv", "tuv") and batches("tuv", "twv")
    with pytest.raises(ValueError, match=r'variable z: normalize: channel 1 \(from 0\) is "v" here, and "u" where the statistics'):
        batches("tvu", "tuv")
    assert batches("tvu", "tuv", subset={"channel": slice(0, 1)})
    # A label with NUL in it is none that a text can be held against.
    ds = xarray.Dataset({"z": (("time", "channel"), np.random.default_rng(1).normal(size=(6, 2)))}, {"channel": np.array(["a\0b", "c"], object)})
    ds.to_zarr(tmp_path / "in.zarr", zarr_format=3)
    assert run("rechunk", "-q", "--statistics", "--statistics-by", "channel", tmp_path / "in.zarr", tmp_path / "odd.zarr").status == 0
    assert batches("odd", "odd")


HOURS = 1_040_000 + np.arange(4)


@pytest.mark.every
@pytest.mark.parametrize("counted_of,here,same", [
    ((HOURS, "f8"), (HOURS + 1, "f8"), False),
    ((HOURS, "f8"), (HOURS[::-1], "f8"), False),
    ((1.6e9 + 60 * np.arange(4), "f8"), (1.6e9 + 60 * np.arange(4)[::-1], "f8"), False),
    (([10_000_001, 10_000_002, 10_000_003], "i4"), ([10_000_003, 10_000_002, 10_000_001], "i4"), False),
    (([10, np.inf, 30], "f8"), ([np.inf, 20, 30], "f8"), False),
    (([10, np.nan, 30], "f8"), ([10, np.nan, 30], "f4"), True),
    (([0.1, 0.7, 1e-3], "f8"), ([0.1, 0.7, 1e-3], "f4"), True),
    (([1, 2, 3], "f8", "days since 2000-01-01"), ([1, 2, 3], "f8", "days since 2001-01-01"), False),
    (([1, 2, 3], "f8", "days since 2000-01-01"), ([1, 2, 3], "i2", "days since 2000-01-01"), True),
    (([1, 2, 3], "f8", "hPa"), ([1, 2, 3], "f8", "millibar"), True),
])
def test_statistics_of_levels_that_are_near(counted_of, here, same, tmp_path):
    """Places are the same by their coordinates, however large these are, and whatever instant they count from."""
    def store(name, at, dtype, units="1"):
        with netCDF4.Dataset(tmp_path / f"{name}.nc", "w") as nc:
            nc.createDimension("place", len(at))
            nc.createDimension("x", 50)
            nc.createVariable("place", dtype, ("place",))[:] = np.array(at, dtype)
            nc["place"].units = units
            nc.createVariable("z", "f4", ("place", "x"))[:] = np.random.default_rng(1).normal(size=(len(at), 50))
        assert nc2zarr("-q", "--statistics", "--statistics-by", "place", tmp_path / f"{name}.nc", tmp_path / f"{name}.zarr").status == 0
        return str(tmp_path / f"{name}.zarr")

    counted_in, read = store("counted", *counted_of), store("here", *here)
    options = {"variables": "z", "sample": {"place": 1}, "normalize": f"{counted_in}.statistics.zarr"}
    if same:
        with chunkmill.Loader(read, **options) as loader:
            assert sum(1 for _ in loader) > 0
    else:
        with pytest.raises(ValueError, match=r"variable z: normalize: place .* here, and .* where the statistics were counted"):
            chunkmill.Loader(read, **options)


def test_statistics_of_a_group(tmp_path):
    """Statistics name variables by the group that they lie in, and a loader of a group finds them."""
    z = np.random.default_rng(1).normal(2, 3, (6, 8))
    xarray.Dataset({"z": (("time", "x"), z)}).to_netcdf(tmp_path / "a.nc")
    xarray.Dataset({"z": (("time", "x"), z + 100)}).to_netcdf(tmp_path / "b.nc")
    for file, at in (("a", ""), ("b", "::g/h")):
        assert nc2zarr("-q", "--statistics", tmp_path / f"{file}.nc", f"icechunk:{tmp_path}/r{at}").status == 0
    for store, variable, shift in ((f"icechunk:{tmp_path}/r", "/z", 0), (f"icechunk:{tmp_path}/r::g/h", "z", 100)):
        with chunkmill.Loader(store, variables=variable, sample={"time": 6}, normalize=True) as loader:
            (got,) = next(iter(loader)).values()
            assert np.allclose(got.numpy()[0], (z + shift - (z + shift).mean()) / z.std(), atol=2e-4), store


def test_statistics_of_other_levels(counted, tmp_path):
    """One level of many, chosen before: no dimension, so all together; other levels are refused, and one that never varies."""
    shown = xarray.open_zarr(counted).load().drop_encoding()
    shown.isel(level=slice(0, 2)).to_zarr(tmp_path / "two.zarr")
    shown.isel(level=1, drop=True).to_zarr(tmp_path / "one.zarr")
    statistics = f"{counted}.statistics.zarr"
    with pytest.raises(chunkmill.ChunkmillError, match="variable z: normalize: the statistics are of 3 places along level, and it has 2"):
        chunkmill.Loader(tmp_path / "two.zarr", variables="z", sample={"time": 1}, normalize=statistics)
    z = shown.z.values.astype("f8")
    with chunkmill.Loader(tmp_path / "one.zarr", variables="z", sample={"time": 40}, normalize=statistics) as loader:
        got = next(iter(loader))["z"].numpy()[0]
    assert np.allclose(got, (z[:, 1] - z.mean()) / z.std(), atol=2e-6)
    z[:, 2] = 4
    xarray.Dataset({"z": (("time", "level", "lat"), z)}).to_netcdf(tmp_path / "c.nc")
    assert nc2zarr("-q", "--statistics", tmp_path / "c.nc", tmp_path / "c.zarr").status == 0
    with pytest.raises(chunkmill.ChunkmillError, match=r"normalize: its values at level 2 \(from 0\) are all the same"):
        chunkmill.Loader(tmp_path / "c.zarr", variables="z", sample={"time": 1}, normalize=True)
    with chunkmill.Loader(tmp_path / "c.zarr", variables="z", sample={"time": 1}, normalize=True, subset={"level": slice(0, 2)}) as loader:
        assert next(iter(loader))["z"].numpy().shape[-2:] == (2, 12)


@pytest.mark.every
@pytest.mark.parametrize("options,words", [
    ({"variables": "same"}, "variable same: normalize: its values are all the same"),
    ({"variables": "z", "decode": False}, "normalize: needs unpack and fill_to_nan"),
    ({"variables": "z", "normalize": "."}, "normalize: "),
])
def test_normalize_refuses(counted, options, words):
    with pytest.raises(chunkmill.ChunkmillError, match=words):
        chunkmill.Loader(counted, **{"sample": {"time": 1}, "normalize": True, **options})


def test_normalize_needs_statistics_of_each(counted, tmp_path):
    assert nc2zarr("--statistics", "--variables", "t2m", counted.parent / "a.nc", tmp_path / "b.zarr").status == 0
    with pytest.raises(chunkmill.ChunkmillError, match="variable z: normalize: there are no statistics of it"):
        chunkmill.Loader(counted, variables="z", sample={"time": 1}, normalize=tmp_path / "b.zarr.statistics.zarr")


def test_random_labels(stores):
    """Any two dates of two kinds, as sel has them."""
    rng = random.Random(5)
    shown = xarray.open_zarr(stores["standard"])
    times = shown.time.values
    for _ in range(60):
        a, b = sorted(times[rng.randrange(NTIMES)] + np.timedelta64(rng.randint(-90, 90), "m") for _ in range(2))
        form = rng.choice(("D", "h", "m", None))
        first, last = (a, b) if form is None else (str(a.astype(f"M8[{form}]")), str(b.astype(f"M8[{form}]")))
        places = np.flatnonzero(np.isin(times, shown.sel(time=slice(first, last)).time.values))
        if not len(places):
            with pytest.raises(chunkmill.ChunkmillError, match="chooses none"):
                elements(stores["standard"], subset={"time": slice(first, last)})
        else:
            found = elements(stores["standard"], subset={"time": slice(first, last)})["time"]
            assert found == range(places[0], places[-1] + 1), (first, last)
