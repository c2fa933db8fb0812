"""--statistics of a store that parts make, or a run that was stopped: the bytes that one process writes."""

import random
import shutil

import netCDF4
import numpy as np
import pytest

from support import failio, paths, stores, tool

LAYOUTS = {
    "chunks": ("--chunks", "time=7,lat=6,lon=10", "--chunks", "z:time=11,level=2,lat=6,lon=20", "--shards", "none"),
    "levels first": ("--chunks", "time=full,lat=6,lon=5", "--chunks", "z:time=full,level=1,lat=3,lon=20"),
    "shards": ("--chunks", "time=3,lat=3,lon=5", "--shards", "time=9,lat=9,lon=15", "--chunks", "z:time=3,level=2,lat=3,lon=5", "--shards", "z:time=9,level=4,lat=9,lon=15"),
    "kept": ("--codec", "keep"),
    "converted": ("--unpack", "q", "--dtype", "z:float32", "--statistics-range", "time=1970..1979"),
    "tiny": ("--chunks", "time=1,lat=1,lon=10", "--chunks", "z:time=1,level=5,lat=2,lon=10", "--shards", "time=20,lat=12,lon=20", "--shards", "z:time=20,level=5,lat=12,lon=20"),
}


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """Packed, with levels, with fill values and NaN, never written, a value far from all others."""
    rng = np.random.default_rng(23)
    path = tmp_path_factory.mktemp("counted") / "in.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for name, n in {"time": 40, "level": 5, "lat": 18, "lon": 20}.items():
            ds.createDimension(name, n)
        ds.createVariable("time", "i4", ("time",))[:] = np.arange(1960, 2000)
        t = rng.normal(280, 20, (40, 18, 20)).astype("f4")
        t[3, 4:9, :] = np.nan
        t[10:24] = 1e20
        ds.createVariable("t", "f4", ("time", "lat", "lon"), chunksizes=(7, 11, 20), zlib=True, fill_value=1e20)[:] = t
        z = rng.normal(5e4, 1e-3, (40, 5, 18, 20))
        z[0, 0, 0, 0] = -1e7
        ds.createVariable("z", "f8", ("time", "level", "lat", "lon"), chunksizes=(6, 2, 7, 20), zlib=True)[:] = z
        q = ds.createVariable("q", "i2", ("time", "lat"), fill_value=-32767, chunksizes=(9, 4), zlib=True)
        q.scale_factor, q.add_offset = -0.25, 7.0
        q.set_auto_maskandscale(False)
        q[:] = rng.integers(-3000, 3000, (40, 18))
        ds.createVariable("never", "f4", ("time", "lat"), chunksizes=(7, 11))
        ds.createVariable("name", str, ("lat",))[:] = np.array([f"row {i}" for i in range(18)], object)
    return path


def same(a, b):
    for end in ("", ".statistics.zarr"):
        stores.same_files(f"{a}{end}", f"{b}{end}")


def named(tmp_path, folder):
    """The statistics name their store, so that all have one name."""
    (tmp_path / folder).mkdir()
    return tmp_path / folder / "o.zarr"


def part(k, n, *args):
    return tool.nc2zarr("--part", f"{k}/{n}", "-q", "--statistics", *args)


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_number_in_any_order_some_twice(source, tmp_path, layout):
    options = (*LAYOUTS[layout], source)
    one = named(tmp_path, "one")
    tool.nc2zarr("-q", "--statistics", *options, one).ok()
    for n in (1, 2, 7, 64) if layout in ("shards", "tiny") else (2, 7):
        order = [*range(1, n + 1), *random.Random(n).sample(range(1, n + 1), n // 2)]
        random.Random(n + 1).shuffle(order)
        out = named(tmp_path, f"{n}")
        for i, k in enumerate(order):
            assert not (tmp_path / f"{n}" / "o.zarr.statistics.zarr").exists() or tool.opens_as_store(out)
            part(k, n, "-j", str(1 + i % 3), *options, out).ok()
        same(one, out)


def test_rechunk_counts_in_parts(source, tmp_path):
    tool.nc2zarr("-q", source, tmp_path / "in.zarr").ok()
    one, out = named(tmp_path, "one"), named(tmp_path, "parts")
    options = ("-q", "--statistics", "--chunks", "time=full,lat=3,lon=4", tmp_path / "in.zarr")
    tool.run("rechunk", *options, one).ok()
    for k in (3, 1, 4, 2, 3):
        tool.run("rechunk", "--part", f"{k}/4", *options, out).ok()
    same(one, out)


def test_parts_that_do_not_count_are_another_plan(source, tmp_path):
    out = tmp_path / "o.zarr"
    part(1, 3, source, out).ok()
    tool.nc2zarr("-q", "--part", "2/3", source, out).fails(1, "another plan", "--statistics", "differs")
    part(2, 3, "--statistics-range", "time=1970..1979", source, out).fails(1, "another plan", "--statistics")
    shutil.rmtree(out)
    tool.nc2zarr("-q", "--part", "1/3", source, out).ok()
    part(2, 3, source, out).fails(1, "another plan", "--statistics", "differs")


def test_a_part_without_what_it_counted_is_made_again(source, tmp_path):
    options = (*LAYOUTS["shards"], source)
    one, out = named(tmp_path, "one"), named(tmp_path, "parts")
    tool.nc2zarr("-q", "--statistics", *options, one).ok()
    counted = tmp_path / "parts" / "o.zarr.chunkmill" / "part-2.statistics"
    for k in (1, 2):
        part(k, 3, *options, out).ok()
    counted.write_bytes(counted.read_bytes()[:-9])
    part(3, 3, *options, out).fails(1, "run part 2 again")
    part(2, 3, *options, out).ok()
    same(one, out)
    # Of a store that is complete: an object that is gone is made, and counted, again.
    gone = next(p for p in sorted((out / "z" / "c").rglob("*")) if p.is_file())
    gone.unlink()
    for k in (1, 2, 3):
        part(k, 3, *options, out).ok()
    same(one, out)


def test_statistics_of_others_stay(source, tmp_path):
    out, beside = tmp_path / "o.zarr", tmp_path / "o.zarr.statistics.zarr"
    beside.mkdir()
    (beside / "notes.txt").write_text("mine")
    part(1, 2, source, out).fails(1, "statistics.zarr", "something else")
    assert not out.exists() and (beside / "notes.txt").read_text() == "mine"
    shutil.rmtree(beside)
    tool.nc2zarr("-q", "--statistics", source, out).ok()
    shutil.rmtree(out)
    part(1, 2, source, out).fails(1, "statistics.zarr", "--overwrite")
    for k in (1, 2):
        part(k, 2, "--overwrite", source, out).ok()
    same(out, out)


def killed_at(kind, nth, root, state, command):
    done = failio.inject("nc2zarr", *command, root=root, state=state, kind=kind, nth=nth, way="kill")
    assert done.done.status < 0 or done.done.status > 128, str(done.done)


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("layout", ("chunks", "shards"))
@pytest.mark.parametrize("how", ("first part", "last part", "resume"))
def test_killed(source, tmp_path, layout, how):
    """Killed before any rename: chunks that are kept are counted, each once."""
    one, begun = named(tmp_path, "one"), named(tmp_path, "begun")
    options = ("-q", "-j", "1", "--statistics", "--verify", "none", *LAYOUTS[layout], source)
    tool.nc2zarr(*options, one).ok()
    if how == "last part":
        for k in (1, 2):
            part(k, 3, *options, begun).ok()
    number = {"first part": 1, "last part": 3}.get(how)
    root, state = tmp_path / "work", tmp_path / "state"
    command = (*(("--part", f"{number}/3") if number else ()), *options, root / "o.zarr")
    failio.renew(begun.parent, root)
    whole = failio.inject("nc2zarr", *command, root=root, state=state)
    whole.done.ok()
    nkept = 0
    for nth in failio.spread(whole.counts["rename"], paths.tries(5, 15, 400)):
        failio.renew(begun.parent, root)
        killed_at("rename", nth, root, state, command)
        if number:
            again = tool.nc2zarr("-v", "--part", f"{number}/3", *options[1:], root / "o.zarr").ok()
            nkept += "were done already" in again.out + again.err
            for k in (1, 2, 3):
                part(k, 3, *options, root / "o.zarr").ok()
        else:
            again = tool.nc2zarr("-v", "--resume", *options[1:], root / "o.zarr")
            nkept += "were done already" in again.out + again.err
            if again.status != 0:  # killed before there was anything to go on with
                assert "resume" in again.err, str(again)
                tool.nc2zarr("--overwrite", *options, root / "o.zarr").ok()
        same(one, root / "o.zarr")
    assert nkept > 0
    shutil.rmtree(root)


def test_the_name_of_the_store_is_all_that_differs(source, tmp_path):
    """The bytes of two stores of other names, one of them made in parts, with that name put in place of the other."""
    tool.nc2zarr("-q", "--statistics", source, tmp_path / "a.zarr").ok()
    for k in (1, 2):
        part(k, 2, source, tmp_path / "b.zarr").ok()
    a, b = (failio.contents(tmp_path / f"{name}.zarr.statistics.zarr") for name in "ab")
    assert a["zarr.json"] != b["zarr.json"]
    assert {k: v and v.replace(b'"store": "b.zarr"', b'"store": "a.zarr"') for k, v in b.items()} == a


def test_a_complete_store_without_them_is_not_counted(source, tmp_path):
    out = tmp_path / "o.zarr"
    tool.nc2zarr("-q", source, out).ok()
    tool.nc2zarr("-q", "--resume", "--statistics", source, out).fails(1, "complete", "no statistics", "--overwrite")
    tool.nc2zarr("-q", "--overwrite", "--statistics", source, out).ok()
    tool.nc2zarr("-q", "--resume", "--statistics", source, out).ok()
