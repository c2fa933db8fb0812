"""--statistics: what numpy computes in float64, the same bits however it was run."""

import math

import netCDF4
import numpy as np
import pytest
import zarr

from support import failio, icechunk, tool

RNG = np.random.default_rng(19)
LEVELS = 5


@pytest.fixture(scope="module")
def values():
    """Physical values; NaN is missing."""
    t2m = RNG.normal(280, 20, (40, 30, 20)).astype("f4")
    t2m[3, 4:9, :] = np.nan
    z = RNG.normal(5e4, 1e-3, (40, LEVELS, 30, 20))  # a mean far above the spread
    z[0, 0, 0, 0] = -1e7  # and a first value far from the mean
    q = RNG.integers(-3000, 3000, (40, LEVELS, 30)).astype("i2")
    q[:, 2, 5] = -32767
    return {"t2m": t2m, "z": z, "q": q, "big": RNG.integers(0, 2**40, (40, 30)),
            "empty": np.full((40, 30), 9.96921e36, "f4")}


@pytest.fixture(scope="module")
def source(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "in.nc"
    dims = {"time": 40, "level": LEVELS, "lat": 30, "lon": 20}
    with netCDF4.Dataset(path, "w") as ds:
        for name, n in dims.items():
            ds.createDimension(name, n)
        ds.createVariable("time", "i4", ("time",))[:] = np.arange(1960, 2000)
        for name, at, options in [("t2m", ("time", "lat", "lon"), {"chunksizes": (7, 11, 20), "zlib": True}),
                                  ("z", ("time", "level", "lat", "lon"), {"chunksizes": (6, 2, 7, 20), "zlib": True}),
                                  ("big", ("time", "lat"), {}),
                                  ("empty", ("time", "lat"), {"chunksizes": (7, 11), "fill_value": np.float32(9.96921e36)}),
                                  ]:
            ds.createVariable(name, values[name].dtype, at, **options)[:] = values[name]
        q = ds.createVariable("q", "i2", ("time", "level", "lat"), fill_value=-32767, chunksizes=(9, 5, 4), zlib=True)
        q.scale_factor, q.add_offset = -0.25, 7.0
        q.set_auto_maskandscale(False)
        q[:] = values["q"]
        ds.createVariable("text", str, ("lat",))[:] = np.array(["x"] * 30, object)
    return path


def expected(stored, name):
    """Of one level: exact sums."""
    x = np.asarray(stored, "f8").ravel()
    missing = np.isnan(x)
    if name == "q":
        missing |= x == -32767
    if name == "empty":
        missing |= True
    good = x[~missing]
    if name == "q":
        good = good * -0.25 + 7.0
    out = {"count": good.size, "missing": int(missing.sum())}
    if good.size:
        mean = math.fsum(good) / good.size
        out |= {"minimum": good.min(), "maximum": good.max(), "mean": mean,
                "std": math.sqrt(math.fsum((good - mean) ** 2) / good.size)}
    return out


def close(got, want):
    return abs(got - want) <= 1e-12 * abs(want)


def check(folder, values, names, part=slice(None), path="{kind}/{name}"):
    group = zarr.open_group(str(folder), mode="r")
    summary = group.attrs["variables"]
    assert group.attrs["chunkmill"] == "statistics" and sorted(summary) == sorted(names)
    for name in names:
        stored = values[name][part] if values[name].shape[0] == 40 else values[name]
        has_levels = name in ("z", "q")
        levels = [stored[:, k] for k in range(LEVELS)] if has_levels else [stored]
        assert summary[name].get("dimension") == ("level" if has_levels else None)
        for k, level in enumerate(levels):
            want = expected(level, name)
            got = {kind: np.atleast_1d(group[path.format(kind=kind, name=name)][...])[k]
                   for kind in ("count", "missing", "minimum", "maximum", "mean", "std")}
            assert got["count"] == want["count"] and got["missing"] == want["missing"], name
            for kind in ("minimum", "maximum"):
                if want["count"]:
                    assert got[kind] == want[kind], (name, kind)
            for kind in ("mean", "std"):
                if want["count"]:
                    assert close(got[kind], want[kind]), (name, kind, got[kind], want[kind])
                    assert summary[name][kind][k] == got[kind]
                else:
                    assert math.isnan(got[kind]) and summary[name][kind][k] is None
    return group


def test_infinities(tmp_path):
    """The attributes have them as text, as attributes of any array have them."""
    values = np.array([[1, np.inf, 2], [-np.inf, 3, np.nan], [4, 5, 6]], "f4")
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        ds.createDimension("level", 3)
        ds.createDimension("x", 3)
        ds.createVariable("v", "f4", ("level", "x"))[:] = values
    tool.nc2zarr("--statistics", tmp_path / "in.nc", tmp_path / "x.zarr").ok()
    group = zarr.open_group(str(tmp_path / "x.zarr.statistics.zarr"), mode="r")
    for kind in ("minimum", "maximum", "mean", "std"):
        written = [math.nan if x is None else float(x) for x in group.attrs["variables"]["v"][kind]]
        np.testing.assert_array_equal(written, group[f"{kind}/v"][...], kind)
    assert group.attrs["variables"]["v"]["maximum"] == ["Infinity", 3, 6]


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


NAMES = ("t2m", "z", "q", "big", "empty")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_as_numpy_has_it(source, values, tmp_path, zarr_format):
    out = tmp_path / "x.zarr"
    done = tool.nc2zarr("--statistics", "--verify", "none", "--zarr-format", str(zarr_format), source, out).ok()
    assert "Statistics of 5 variables in" in done.out and "% of the work)" in done.out
    check(tmp_path / "x.zarr.statistics.zarr", values, NAMES)


def test_the_same_bits_always(source, values, tmp_path):
    """Threads, memory, passes: the layout of the store alone decides."""
    seen = []
    plan = ["--chunks", "13x30x20", "--chunks", "z:40x2x3x20", "--chunks", "q:9x5x4"]
    for i, more in enumerate((["--threads", "1"], ["--threads", "3"], ["--threads", "8", "--shards", "none"],
                              ["--memory", "64MiB"])):
        out = tmp_path / str(i) / "x.zarr"
        out.parent.mkdir()
        tool.nc2zarr("--statistics", "--verify", "none", "--variable", "t2m,z,q", *plan, *more, source, out).ok()
        seen.append(contents(tmp_path / str(i) / "x.zarr.statistics.zarr"))
    assert all(one == seen[0] for one in seen)
    check(tmp_path / "0" / "x.zarr.statistics.zarr", values, ("t2m", "z", "q"))


def test_chunks_that_go_through(source, values, tmp_path):
    """Stored bytes pass unchanged, and are counted all the same, by both programs."""
    first, second, plain = tmp_path / "a.zarr", tmp_path / "b.zarr", tmp_path / "c.zarr"
    tool.nc2zarr("--codec", "keep", "--statistics", "--verify", "full", source, first).ok()
    check(tmp_path / "a.zarr.statistics.zarr", values, NAMES)
    tool.run("rechunk", "--statistics", "--verify", "full", first, second).ok()
    check(tmp_path / "b.zarr.statistics.zarr", values, NAMES)
    tool.run("rechunk", first, plain).ok()
    assert contents(second) == contents(plain)


def test_a_range(source, values, tmp_path):
    out = tmp_path / "x.zarr"
    tool.nc2zarr("--statistics", "--statistics-range", "time=1970..1979", source, out).ok()
    group = check(tmp_path / "x.zarr.statistics.zarr", values, NAMES, slice(10, 20))
    assert group.attrs["range"] == ["time=1970..1979"]
    step = tmp_path / "y.zarr"
    tool.nc2zarr("--statistics", "--statistics-range", "time=1970..1979", "--subset", "time=5:40:3", source, step).ok()
    cut = {name: v[5:40:3] for name, v in values.items() if v.shape[0] == 40}
    group = zarr.open_group(str(tmp_path / "y.zarr.statistics.zarr"), mode="r")
    assert group["count/big"][()] == sum(10 <= t < 20 for t in range(5, 40, 3)) * cut["big"].shape[1]


def test_converted_types(source, values, tmp_path):
    """Statistics count stored values: unpacked, and in the new type."""
    out = tmp_path / "x.zarr"
    tool.nc2zarr("--statistics", "--unpack", "q", "--dtype", "z:float32", "--variable", "q,z", source, out).ok()
    group = zarr.open_group(str(tmp_path / "x.zarr.statistics.zarr"), mode="r")
    want = [expected(values["q"][:, k], "q") for k in range(LEVELS)]
    assert np.allclose(group["mean/q"][:], [w["mean"] for w in want], rtol=1e-6)
    z = values["z"].astype("f4").astype("f8")
    assert all(close(group["mean/z"][k], math.fsum(z[:, k].ravel()) / z[:, k].size) for k in range(LEVELS))


REFUSED = [(["--check"], "--check"), (["--virtual", "json"], "references")]


@pytest.mark.parametrize("more, told", REFUSED)
def test_what_cannot_be_counted_is_refused(source, tmp_path, more, told):
    out = tmp_path / "x.zarr"
    done = tool.nc2zarr("--statistics", *more, source, out)
    done.fails(2, "--statistics", told)
    assert list(tmp_path.iterdir()) == []


def test_ranges_that_mean_nothing(source, tmp_path):
    out = tmp_path / "x.zarr"
    for text, told in [("time=0:3", "DIM=FROM..TO"), ("nodim=1..2", "no variable"), ("time=1..2", "no coordinate")]:
        done = tool.nc2zarr("--statistics", "--statistics-range", text, source, out)
        done.fails(2, "--statistics-range", told)
    tool.nc2zarr("--statistics-range", "time=1970..1971", source, out).fails(2, "--statistics")
    assert list(tmp_path.iterdir()) == []


def test_they_are_of_the_store_as_it_is(source, tmp_path):
    """An older store's go when it is overwritten, whatever the new run was asked for, and however it ends."""
    out, beside = tmp_path / "x.zarr", tmp_path / "x.zarr.statistics.zarr"
    tool.nc2zarr("--statistics", source, out).ok()
    assert beside.exists()
    tool.nc2zarr("--overwrite", source, out).ok()
    assert not beside.exists()
    tool.nc2zarr("--overwrite", "--statistics", "--variable", "q", source, out).ok()
    tool.nc2zarr("--overwrite", "--part", "1/1", "--variable", "q", source, out).ok()
    assert not beside.exists()
    tool.nc2zarr("--overwrite", "--statistics", "--variable", "q", source, out).ok()
    tool.nc2zarr("--overwrite", "--statistics", "--variable", "z", source, out).ok()
    assert list(zarr.open_group(str(beside), mode="r").attrs["variables"]) == ["z"]
    tool.nc2zarr("--overwrite", "--dtype", "float16", "--variable", "z", "--statistics", source, out).fails(2)
    assert not beside.exists()


def test_nothing_of_others_is_replaced(source, tmp_path):
    out, beside = tmp_path / "x.zarr", tmp_path / "x.zarr.statistics.zarr"
    beside.mkdir()
    (beside / "notes.txt").write_text("mine")
    tool.nc2zarr("--statistics", "--overwrite", source, out).fails(1, "statistics.zarr", "something else")
    assert not out.exists() and (beside / "notes.txt").read_text() == "mine"
    tool.nc2zarr(source, out).ok()
    assert (beside / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("begun", [True, False])
def test_files_of_others_stay(source, tmp_path, zarr_format, begun):
    """Also where a run was stopped while it wrote them, and whatever it is that takes them away."""
    out, beside = tmp_path / "x.zarr", tmp_path / "x.zarr.statistics.zarr"
    command = ("-q", "--verify", "none", "--zarr-format", str(zarr_format), source, out)
    mine = [beside / name for name in ("notes.txt", "mean/notes.txt", "mean/z/c.0.bak", "count/thesis/1.tex", "std/t2m/plot.png")]
    for again in (("--statistics", "--overwrite"), ("--overwrite",)):
        tool.nc2zarr("--statistics", "--overwrite", *command).ok()
        for path in mine:
            path.parent.mkdir(exist_ok=True)
            path.write_text("mine")
        if not (beside / "mean" / "link").is_symlink():
            (beside / "mean" / "link").symlink_to(tmp_path / "x.zarr")
        if begun:
            (beside / ".chunkmill-statistics").touch()
        tool.nc2zarr(*again, *command).ok()
        assert [path.read_text() for path in mine] == ["mine"] * len(mine)
        assert (beside / "mean" / "link").is_symlink()
        if "--statistics" in again:
            assert set(zarr.open_group(str(beside), mode="r")["mean"]) >= {"t2m", "z", "q"}
        else:
            left = [p for p in beside.rglob("*") if not p.is_dir() and not p.is_symlink()]
            assert sorted(left) == sorted(mine)


@pytest.mark.parametrize("name", [".chunkmill-123-1.tmp", None])
def test_a_folder_with_nothing_but_a_temporary(source, tmp_path, name):
    """A run that was killed before its first rename leaves that; an empty folder is in nobody's way either."""
    out, beside = tmp_path / "x.zarr", tmp_path / "x.zarr.statistics.zarr"
    beside.mkdir()
    if name:
        (beside / name).touch()
    tool.nc2zarr("-q", "--statistics", source, out).ok()
    assert not (beside / ".chunkmill-123-1.tmp").exists()
    assert zarr.open_group(str(beside), mode="r").attrs["variables"]


def test_a_store_that_grows_has_none(tmp_path):
    """An append removes them before it writes: they were of the store as it was."""
    for i in range(2):
        with netCDF4.Dataset(tmp_path / f"{i}.nc", "w") as ds:
            ds.createDimension("time", None)
            time = ds.createVariable("time", "f8", ("time",))
            time.units = "days since 2000-01-01"
            time[:] = [2.0 * i, 2.0 * i + 1]
            ds.createVariable("v", "f4", ("time",), chunksizes=(2,))[:] = [i, i + 1]
    out, beside = tmp_path / "x.zarr", tmp_path / "x.zarr.statistics.zarr"
    tool.nc2zarr("--statistics", tmp_path / "0.nc", out).ok()
    tool.nc2zarr("--statistics", "--append", "time", tmp_path / "1.nc", out).fails(2, "--statistics")
    assert beside.exists()
    # Not by one that fails before it changes the store.
    (out / "v" / "c" / "1").mkdir()
    assert tool.nc2zarr("--append", "time", tmp_path / "1.nc", out).status == 1
    assert beside.exists()
    (out / "v" / "c" / "1").rmdir()
    r = tool.nc2zarr("--verify", "none", "--append", "time", tmp_path / "1.nc", out).ok()
    assert not beside.exists()
    assert "its statistics were counted before this change, and were removed" in r.err, str(r)


def test_of_a_repository(values, source, tmp_path):
    """A group of the same commit, which goes when arrays are changed; a run that goes on counts all of them."""
    path = source
    repo, root, state = tmp_path / "work" / "repo", tmp_path / "work", tmp_path / "state"
    args = ["-q", "-j", "1", "--statistics", "--verify", "none", "--object-size", "64KiB", "--chunks", "time=4", path, f"icechunk:{repo}"]
    root.mkdir()
    for nth in (9, 0):  # renames: it is killed, and begins again
        failio.inject("nc2zarr", *args, root=root, state=state, **({"kind": "rename", "nth": nth, "way": "kill"} if nth else {}))
    icechunk.unpack(repo, tmp_path / "unpacked")
    check(tmp_path / "unpacked" / "statistics", values, NAMES, path="{name}/{kind}")
    tool.nc2zarr(*args).fails(1, "is in the repository already")
    tool.nc2zarr("--overwrite", *args).ok()
    keys = [set(icechunk.Snapshot(repo, i).store()) for i in icechunk.Repo(repo).history()]
    assert keys[0] == keys[1] and "statistics/t2m/mean/c" in keys[0]
    tool.nc2zarr("-q", "--overwrite", "--verify", "none", path, f"icechunk:{repo}").ok()
    now = icechunk.read(repo)
    assert {k.split("/")[0] for k in now} == {k.split("/")[0] for k in keys[0]} - {"statistics"}


def test_a_dimension_of_another_name(tmp_path):
    """Levels are those of the store's dimension, under the name that it has there."""
    source, out = tmp_path / "in.nc", tmp_path / "out.zarr"
    with netCDF4.Dataset(source, "w") as ds:
        for name, n in (("time", 6), ("level", 3)):
            ds.createDimension(name, n)
        ds.createVariable("level", "f4", ("level",))[:] = np.arange(3)
        ds.createVariable("z", "f4", ("time", "level"))[:] = RNG.normal(size=(6, 3))
    tool.nc2zarr("-q", "--statistics", "--rename", "level=height", source, out).ok()
    counted = zarr.open_group(f"{out}.statistics.zarr", mode="r")
    assert counted.attrs["variables"]["z"]["dimension"] == "height"
    assert counted["mean/z"].metadata.dimension_names == ("height",)
    assert "height" in zarr.open_group(out, mode="r")["z"].metadata.dimension_names


def test_coordinates_of_levels(tmp_path):
    """As they are shown, of the levels that are written: numbers, or texts, and null in place of what JSON cannot hold."""
    source = tmp_path / "in.nc"
    with netCDF4.Dataset(source, "w") as ds:
        for name, n in (("time", 6), ("level", 4), ("depth", 4)):
            ds.createDimension(name, n)
        level = ds.createVariable("level", "i2", ("level",))
        level.scale_factor, level.add_offset = 0.5, 100.0
        level.set_auto_maskandscale(False)
        level[:] = [3, 2, 1, 0]
        for name in ("level", "depth"):
            ds.createVariable(f"of_{name}", "f4", ("time", name))[:] = RNG.normal(size=(6, 4))

    def coordinates(program, of, *options):
        tool.run(program, "-q", "--statistics", *options, of, tmp_path / "out.zarr", "--overwrite").ok()
        of_all = zarr.open_group(tmp_path / "out.zarr.statistics.zarr", mode="r").attrs["variables"]
        assert "coordinates" not in of_all["of_depth"]
        return of_all["of_level"]["coordinates"]

    assert coordinates("nc2zarr", source) == [101.5, 101.0, 100.5, 100.0]
    assert coordinates("nc2zarr", source, "--subset", "level=1:4:2") == [101.0, 100.0]
    tool.nc2zarr("-q", source, tmp_path / "in.zarr").ok()
    assert coordinates("rechunk", tmp_path / "in.zarr", "--chunks", "time=2") == [101.5, 101.0, 100.5, 100.0]
    with netCDF4.Dataset(source, "a") as ds:
        ds.renameVariable("level", "heights")
        ds.createVariable("level", str, ("level",))[:] = np.array(["low", "", "\u00e4", "high"], object)
    assert coordinates("nc2zarr", source, "--statistics-by", "level") == ["low", "", "\u00e4", "high"]
    assert coordinates("nc2zarr", source, "--statistics-by", "level", "--subset", "level=1:4:2") == ["", "high"]


def test_by_a_dimension(source, values, tmp_path):
    """Along any dimension, in place of the levels; variables without it are counted as otherwise."""
    out = tmp_path / "out.zarr"
    tool.nc2zarr("-q", "--statistics", "--statistics-by", "lon", "--variable", "t2m,z,q", source, out).ok()
    counted = zarr.open_group(f"{out}.statistics.zarr", mode="r")
    assert counted["mean/q"].metadata.dimension_names == ("level",)
    for name in ("t2m", "z"):
        assert counted[f"mean/{name}"].metadata.dimension_names == ("lon",)
        axes = tuple(range(values[name].ndim - 1))
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(counted[f"mean/{name}"][...], np.nanmean(values[name].astype("f8"), axis=axes))
            np.testing.assert_allclose(counted[f"std/{name}"][...], np.nanstd(values[name].astype("f8"), axis=axes), rtol=1e-9)
    tool.run("rechunk", "-q", "--statistics", "--statistics-by", "lon", out, tmp_path / "again.zarr").ok()
    again = zarr.open_group(tmp_path / "again.zarr.statistics.zarr", mode="r")
    np.testing.assert_array_equal(again["count/z"][...], counted["count/z"][...])
    done = tool.nc2zarr("--statistics", "--statistics-by", "band", source, tmp_path / "no.zarr")
    done.fails(2, "--statistics-by band: no variable that is counted has that dimension")
    tool.nc2zarr("--statistics-by", "lon", source, tmp_path / "no.zarr").fails(2, "--statistics-by needs --statistics")
