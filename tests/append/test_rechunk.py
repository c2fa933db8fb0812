"""rechunk --append: what a source has grown by comes into a store that was made of it before."""

import os
import shutil
import signal

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from support import failio, objects, paths, rechunked, tool

from . import files as F

# Of the source, and of the target.
LAYOUTS = {
    "v3": (["--chunks", "time=4"], ["--chunks", "time=5,lat=2,lon=3"]),
    "codec": (["--chunks", "time=4", "--codec", "zstd"], ["--codec", "gzip:1"]),
    "shards": (["--chunks", "time=4"], ["--chunks", "time=2,lat=3,lon=4", "--shards", "time=8,lat=6,lon=8"]),
    "of shards": (["--chunks", "time=2", "--shards", "time=6"], ["--chunks", "time=3,lat=2", "--shards", "none"]),
    "v2": (["--chunks", "time=4"], ["--zarr-format", "2", "--chunks", "time=3,lon=2"]),
    "of v2": (["--zarr-format", "2", "--chunks", "time=4"], ["--zarr-format", "3", "--chunks", "time=7"]),
    "series of maps": (["--chunks", "time=1"], ["--chunks", "time=64,lat=1,lon=1"]),
    "maps of series": (["--chunks", "time=64,lat=1,lon=1"], ["--chunks", "time=1"]),
    "chunks stay": (["--chunks", "time=4"], []),
}
STEPS = [(6, 13), (8, 9, 10, 16), (4, 20), (1, 2, 3)]


def append(*args, **kw):
    return tool.run("rechunk", "-q", "--append", "time", *args, **kw)


def digest(store):
    return tool.run("rechunk", "--digest", store).ok().out.split("\n", 1)[1]


def same(got, want, at=""):
    assert digest(got) == digest(want), at


@pytest.mark.few(2)
@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_equals_one_run(layout, steps, tmp_path):
    of, to = LAYOUTS[layout]
    source, store = tmp_path / "a.zarr", tmp_path / "b.zarr"
    tool.nc2zarr("-q", *of, *F.days(tmp_path, 0, steps[0], each=2), source).ok()
    tool.run("rechunk", "-q", *to, source, store).ok()
    for was, n in zip(steps, steps[1:]):
        tool.nc2zarr("-q", "--append", "time", *F.days(tmp_path, was, n - was), source).ok()
        append("--verify", "full", source, store).ok()
        same(store, source, n)
    want = tmp_path / "want.zarr"
    tool.run("rechunk", "-q", *to, source, want).ok()
    same(store, want)
    with xr.open_zarr(store, chunks=None) as got, xr.open_zarr(want, chunks=None) as once:
        xr.testing.assert_identical(got.load(), once.load())
    # A coordinate that was repaired keeps its old chunks for an hour, for those who read it.
    assert {p.name for p in tmp_path.glob("b.zarr.chunkmill/*")} <= {"append-left"}


def grown(tmp_path, was=6, n=13, to=(), of=("--chunks", "time=4")):
    """A source that has grown, and the store that was made of it before."""
    source, store = tmp_path / "a.zarr", tmp_path / "work" / "b.zarr"
    tool.nc2zarr("-q", *of, *F.days(tmp_path, 0, was), source).ok()
    tool.run("rechunk", "-q", *(to or ["--chunks", "time=5,lat=2"]), source, store).ok()
    tool.nc2zarr("-q", "--append", "time", *F.days(tmp_path, was, n - was), source).ok()
    return source, store


def test_report(tmp_path):
    source, store = grown(tmp_path)
    before = failio.contents(store.parent)
    plan = rechunked.check_document(tool.run("rechunk", "--json", "--append", "time", "--dry-run", source, store).ok().out)
    assert failio.contents(store.parent) == before
    done = rechunked.check_document(tool.run("rechunk", "--json", "--append", "time", source, store).ok().out)
    for document in (plan, done):
        assert document["append"] == {"dimension": "time", "was": 6, "length": 13, "nheld": 0, "nlisted": 0}
        assert {a["name"]: a["shape"][0] for a in document["arrays"]} == {"tas": 13, "time": 13, "time_bnds": 13}
    assert [a["planned"] for a in plan["arrays"]] == [a["counted"] for a in done["arrays"]]
    before = failio.contents(store.parent)
    again = tool.run("rechunk", "--append", "time", source, store).ok()
    assert "time 13 to 13" in again.out and "Nothing is to be added" in again.out
    assert failio.contents(store.parent) == before


def test_reads_what_is_new(tmp_path):
    """Of many chunks those with new elements are decoded, each once, where the target's chunks end with the old ones."""
    source, store = tmp_path / "a.zarr", tmp_path / "b.zarr"
    tool.nc2zarr("-q", "--chunks", "time=2", *F.days(tmp_path, 0, 40, each=10), source).ok()
    tool.run("rechunk", "-q", "--chunks", "time=10,lat=2,lon=2", source, store).ok()
    tool.nc2zarr("-q", "--append", "time", *F.days(tmp_path, 40, 10, each=10), source).ok()
    document = rechunked.check_document(tool.run("rechunk", "--json", "--append", "time", source, store).ok().out)
    tas = rechunked.arrays(document)["tas"]
    assert tas["counted"]["chunk_decodes"] == 5 and tas["counted"]["chunk_writes"] == 3 * 4, tas


def test_of_netcdf(tmp_path):
    """A file that grew, and a group in it."""
    p, store, inner = tmp_path / "a.nc", tmp_path / "b.zarr", tmp_path / "c.zarr"
    for n in (5, 12):
        F.day(p, 0, n)
        with netCDF4.Dataset(p, "a") as nc:
            g = nc.createGroup("g")
            g.createDimension("time", None)
            g.createVariable("time", "f8", ("time",))[:] = np.arange(n)
            g.createVariable("x", "f4", ("time",), chunksizes=(4,), zlib=True)[:] = np.arange(n) * 2
        how = [] if n == 5 else ["--append", "time", "--verify", "full"]
        tool.run("rechunk", "-q", *how, f"{p}::g", inner).ok()
        tool.run("rechunk", "-q", *how, *([] if how else ["--chunks", "time=3,lat=2"]), "--exclude", "g/x,g/time", p, store).ok()
    F.same(store, [p])
    assert zarr.open_group(inner)["x"][:].tolist() == list(range(0, 24, 2))


def test_one_array(tmp_path):
    """A store that is one array, without coordinates, and text."""
    for dtype, values in (("i4", np.arange(60).reshape(20, 3)), (str, np.array([f"{i}ä" * i for i in range(20)]))):
        source, store = tmp_path / f"{dtype}a.zarr", tmp_path / f"{dtype}b.zarr"
        dims = ["n", "m"][: values.ndim]
        a = zarr.create_array(source, shape=(7, *values.shape[1:]), chunks=(2, *values.shape[1:]), dtype=dtype, dimension_names=dims)
        a[:] = values[:7]
        tool.run("rechunk", "-q", "--chunks", ",".join(f"{d}=3" for d in dims), source, store).ok()
        a.resize((20, *values.shape[1:]))
        a[7:] = values[7:]
        tool.run("rechunk", "-q", "--append", "n", "--verify", "full", source, store).ok()
        assert (zarr.open_array(store)[:] == values).all()
        same(store, source)


def test_without_coordinate(tmp_path):
    """The comparison is reported; it finds a difference in the last step, --recheck finds all."""
    source, store = tmp_path / "a.zarr", tmp_path / "b.zarr"
    values = np.random.default_rng(1).random((400, 30, 40)).astype("f4")
    a = zarr.create_group(source).create_array("x", shape=(300, 30, 40), chunks=(10, 30, 40), dtype="f4", dimension_names=["n", "y", "x"])
    a[:] = values[:300]
    tool.run("rechunk", "-q", "--chunks", "n=64,y=8,x=8", source, store).ok()
    a.resize((400, 30, 40))
    a[300:] = values[300:]
    a[5, 2, 3] = -1
    before = failio.contents(store)
    r = tool.run("rechunk", "--append", "n", "--recheck", source, store)
    r.fails(1, "a.zarr", "x", "element 5/2/3 is -1")
    a[299, 2, 3] = -2
    tool.run("rechunk", "--append", "n", source, store).fails(1, "a.zarr", "x", "element 299/2/3 is -2")
    assert failio.contents(store) == before
    a[5, 2, 3], a[299, 2, 3] = values[5, 2, 3], values[299, 2, 3]
    r = tool.run("rechunk", "--append", "n", source, store).ok()
    assert "no coordinate along n" in r.err and "--recheck" in r.err
    same(store, source)


def test_chosen(tmp_path):
    """--exclude, --variable and --rename as when the store was made."""
    source, store = tmp_path / "a.zarr", tmp_path / "b.zarr"
    tool.nc2zarr("-q", *F.days(tmp_path, 0, 4), source).ok()
    how = ["--exclude", "ground,time_bnds", "--rename", "tas=t2m", "--rename", "time=when"]
    tool.run("rechunk", "-q", *how, source, store).ok()
    only = tmp_path / "c.zarr"
    tool.run("rechunk", "-q", "--variable", "tas,time", source, only).ok()
    tool.nc2zarr("-q", "--append", "time", *F.days(tmp_path, 4, 3), source).ok()
    tool.run("rechunk", "--append", "when", *how[2:], source, store).fails(2, "variable ground: is not in the store to add to; --exclude")
    tool.run("rechunk", "-q", "--append", "when", *how, source, store).ok()
    tool.run("rechunk", "-q", "--append", "time", "--variable", "tas,time", source, only).ok()
    np.testing.assert_array_equal(zarr.open_group(store)["t2m"][:], F.values(0, 7))
    np.testing.assert_array_equal(zarr.open_group(only)["tas"][:], F.values(0, 7))


def test_rest_is_held(tmp_path):
    source, store = grown(tmp_path)
    append("--append-rest", "hold", source, store).ok()
    assert zarr.open_group(store)["tas"].shape[0] == 10
    append("--append-rest", "hold", source, store).ok()
    append(source, store).ok()
    same(store, source)


def change(source, name, at, value):
    a = zarr.open_group(source)[name]
    a[at] = value


def shrink(source, n):
    g = zarr.open_group(source)
    for name in ("tas", "time", "time_bnds"):
        g[name].resize((n, *g[name].shape[1:]))
    zarr.consolidate_metadata(source)


def attribute(source, name, **attrs):
    zarr.open_group(source, use_consolidated=False)[name].attrs.update(attrs)
    zarr.consolidate_metadata(source)


REFUSED = {
    "shrank": (lambda s: shrink(s, 4), 2, "4 elements along time, and the store 6"),
    "coordinate changed": (lambda s: change(s, "time", 2, 99.0), 1, "variable time: elements that the store has already differ: element 2 is 99"),
    "bounds changed": (lambda s: change(s, "time_bnds", (0, 0), 99.0), 1, "time_bnds"),
    "old values changed": (lambda s: change(s, "tas", (1, 1, 1), 99.0), 1, "element 1/1/1 is 99"),
    "static changed": (lambda s: change(s, "ground", (0, 0), 99.0), 1, "ground"),
    "latitudes": (lambda s: change(s, "lat", 0, 99.0), 1, "lat"),
    "units": (lambda s: attribute(s, "time", units="days since 1999-01-01"), 2, "variable time: its units"),
    "packing": (lambda s: attribute(s, "tas", scale_factor=2.0), 2, "scale_factor"),
    "missing values": (lambda s: attribute(s, "tas", _FillValue="AAAAAAAA8D8="), 2, "fill value"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    """Store and what lies beside it stay as they were, byte for byte."""
    source, store = grown(tmp_path)
    spoil, status, words = REFUSED[name]
    spoil(source)
    before = failio.contents(store.parent)
    for more in ([], ["--dry-run"]):
        tool.run("rechunk", "--append", "time", *more, source, store).fails(status, words)
        assert failio.contents(store.parent) == before


@pytest.mark.parametrize(
    "options", [["--chunks", "time=2"], ["--codec", "none"], ["--dtype", "float64"], ["--resume"], ["--overwrite"], ["--unpack", "all"],
                ["--zarr-format", "2"], ["--subset", "lat=0:2"], ["--shards", "auto"], ["--sample", "time=1"]],
    ids=lambda o: o[0],
)  # fmt: skip
def test_options_of_a_new_store(options, tmp_path):
    source, store = grown(tmp_path)
    before = failio.contents(store.parent)
    tool.run("rechunk", "--append", "time", *options, source, store).fails(2, options[0])
    assert failio.contents(store.parent) == before


def test_other_refusals(tmp_path):
    source, store = grown(tmp_path)
    before = failio.contents(tmp_path)
    tool.run("rechunk", "--append", "when", source, store).fails(2, "when")
    tool.run("rechunk", "--append", "time", f"{source}::tas", store).fails(2, "the source is an array by itself")
    for option in (["--dtype", "f8"], ["--subset", "lat=0:2"], ["--unpack", "all"], ["--stack", "all=tas@c"], ["--keepbits", "3"]):
        tool.run("rechunk", "--append", "time", *option, source, store).fails(2, f"{option[0]}: a source is added as it is; make another store")
    for option in (["--chunks", "time=2"], ["--codec", "none"], ["--fill-value", "tas:1"]):
        tool.run("rechunk", "--append", "time", *option, source, store).fails(2, f"{option[0]}: a store that is changed in place keeps its layout")
    tool.run("rechunk", "--append", "time", source, tmp_path / "none.zarr").fails(1, "no store")
    tool.run("rechunk", "--append", "time", source, source).fails(2, "is the source")
    tool.run("rechunk", "--append", "time", source, f"{store}::tas").fails(2, "as a whole")
    tool.run("rechunk", "--recheck", source, store).fails(2, "only with --append")
    tool.run("rechunk", "--append-rest", "hold", source, store).fails(2, "only with --append")
    lock = store.parent / "b.zarr.chunkmill" / "lock"
    assert failio.contents(tmp_path) == before
    lock.parent.mkdir(exist_ok=True)
    lock.write_text("half")
    tool.run("rechunk", "--append", "time", source, store).fails(1, "break the lock")
    tool.run("rechunk", "--append", "time", "--break-lock", source, store).ok()
    same(store, source)


def test_parts(tmp_path):
    """Refused before anything is said of a part."""
    source, store = grown(tmp_path)
    before = failio.contents(tmp_path)
    for options in (["--part", "1/2"], ["--parts", "2"]):
        r = tool.run("rechunk", "--append", "time", *options, source, store).fails(2, "--part", "--append")
        assert "part 1 of" not in str(r)
    assert failio.contents(tmp_path) == before


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("conditional", [True, False], ids=["conditional", "unconditional"])
@pytest.mark.parametrize("layout", ["v3", "v2", "shards"])
def test_in_a_bucket(layout, conditional, tmp_path):
    """The objects of a folder, from a folder and from a bucket; killed at some requests, the same command completes it."""
    source, local = grown(tmp_path, to=LAYOUTS[layout][1])
    server = objects.Server(conditional=conditional)
    try:
        env, store = server.environment(), "s3://bucket/b.zarr"
        server.put_folder(local, "b.zarr")
        server.put_folder(source, "a.zarr")
        begun = dict(server.objects)
        append("--verify", "full", source, local).ok()

        def check(at):
            server.get_folder("b.zarr", tmp_path / f"got{at}")
            got, want = (failio.contents(s) for s in (tmp_path / f"got{at}", local))
            assert set(got) == set(want) and (layout == "shards" or got == want), at
            same(tmp_path / f"got{at}", source)
            assert not server.keys("b.zarr.chunkmill")

        for of in (source, "s3://bucket/a.zarr"):
            server.objects = dict(begun)
            append("--verify", "full", of, store, env=env).ok()
            check(str(of)[:2])
        done = dict(server.objects)
        append(source, store, env=env).ok()
        assert server.objects == done
        command = ["-q", "-j", "1", "--verify", "none", "--append", "time", source, store]
        server.objects = dict(begun)
        _, writes, _ = objects.kill_at(server, 10**9, False, *command, program="rechunk")
        for nth in failio.spread(len(writes), 1000 if paths.LONG else 3):
            server.objects = dict(begun)
            assert objects.kill_at(server, nth, nth % 2 == 0, *command, program="rechunk")[0] == -signal.SIGKILL, (nth, writes)
            tool.run("rechunk", *command, env=env).ok()
            check(nth)
    finally:
        server.close()


def seen(store):
    with xr.open_zarr(store, consolidated=True, chunks=None) as ds:
        return {n: v.values.tobytes() for n, v in ds.load().variables.items()}


@pytest.mark.long
@pytest.mark.parametrize("kind", ("rename", "unlink", "write") if paths.LONG else ("rename", "unlink"))
@pytest.mark.parametrize("layout", ["v3", "v2", "shards"])
def test_killed(layout, kind, tmp_path):
    """Readers of consolidated metadata see the old dataset or the new one; the same command completes it."""
    top, root, state = tmp_path / "old", tmp_path / "work", tmp_path / "state"
    source, old = grown(tmp_path, to=LAYOUTS[layout][1])
    shutil.copytree(old.parent, top)
    store = root / "b.zarr"
    command = ["-q", "-j", "1", "--verify", "none", "--append", "time", source, store]
    failio.renew(top, root)
    was = seen(store)
    whole = failio.inject("rechunk", *command, root=root, state=state)
    whole.done.ok()
    new, want = seen(store), failio.contents(root)
    assert was != new and digest(store) == digest(source)
    views = set()
    moments = failio.spread(whole.counts[kind], 1000 if paths.LONG else 10)
    print(f"rechunk --append, {layout}: {len(moments)} kills at {whole.counts[kind]} {kind}s")
    for nth in moments:
        failio.renew(top, root)
        killed = failio.inject("rechunk", *command, root=root, state=state, kind=kind, nth=nth, way="kill")
        assert killed.done.status in (-signal.SIGKILL, 128 + signal.SIGKILL), str(killed.done)
        view = seen(store)
        assert view in (was, new), (kind, nth, killed.what)
        views.add("new" if view == new else "old")
        tool.run("rechunk", *command).ok()
        got = failio.contents(root)
        assert set(got) == set(want), (kind, nth, set(got) ^ set(want))
        assert layout == "shards" or got == want, (kind, nth)
        assert seen(store) == new and not os.path.exists(f"{store}.chunkmill/lock")
    assert "old" in views


@pytest.mark.parametrize("dtype", ["U2", "U5", "U40", "S16", "S17", "S200", "c16"])
@pytest.mark.parametrize("along", [False, True], ids=["beside", "along"])
@pytest.mark.parametrize("fmt", [2, 3])
def test_elements_of_any_width(dtype, along, fmt, tmp_path):
    """Texts of fixed length are wider than numbers, and chunks of them may be absent."""
    text = np.array(["a", "bcd", "", "é" if dtype[0] == "U" else "e", "f", "g"]).astype(dtype) if dtype != "c16" else np.arange(6) * 1j
    for n in (4, 6):
        group = zarr.create_group(tmp_path / f"{n}.zarr", zarr_format=fmt)
        for name, data, dims in (("v", np.arange(n, dtype="f4"), ["time"]), ("x", text[:n] if along else text, ["time" if along else "x"])):
            named = {"dimension_names": dims} if fmt == 3 else {"attributes": {"_ARRAY_DIMENSIONS": dims}}
            a = group.create_array(name, shape=data.shape, chunks=(2,), dtype=data.dtype, **named)
            a[2:] = data[2:]
    store = tmp_path / "store.zarr"
    tool.run("rechunk", "-q", tmp_path / "4.zarr", store).ok()
    append("--verify", "full", tmp_path / "6.zarr", store).ok()
    got, want = (zarr.open_group(p, mode="r") for p in (store, tmp_path / "6.zarr"))
    for name in ("v", "x"):
        np.testing.assert_array_equal(got[name][...], want[name][...])


def test_a_wide_fill_value_does_not_grow(tmp_path):
    for n in (4, 6):
        group = zarr.create_group(tmp_path / f"{n}.zarr")
        group.create_array("v", shape=(n,), dtype="f4", dimension_names=["time"])
        group.create_array("x", shape=(3,), dtype="S17", fill_value=b"none", dimension_names=["x"])
    tool.run("rechunk", "-q", tmp_path / "4.zarr", tmp_path / "store.zarr").ok()
    append(tmp_path / "6.zarr", tmp_path / "store.zarr").fails(1, "variable x", "fill value has 17 bytes")
