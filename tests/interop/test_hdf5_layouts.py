"""Where HDF5 keeps a dataset's bytes, and through which filters they went: every rule for
addresses under every user block, and every order of filters, held against libhdf5."""

import itertools

import h5py
import hdf5plugin  # noqa: F401
import numpy as np
import pytest
import zarr

from support import tool

SHAPE = (11, 13)

# ---- addresses ------------------------------------------------------------------------------------------

USER_BLOCKS = [0, 512, 1024, 2048]
# Properties that decide the kind of chunk index in the newest file format.
CHUNKED = {
    "single": dict(chunks=SHAPE, maxshape=SHAPE),
    "single_filtered": dict(chunks=SHAPE, maxshape=SHAPE, compression="gzip"),
    "fixed_array": dict(chunks=(4, 5), maxshape=SHAPE),
    "fixed_array_filtered": dict(chunks=(4, 5), maxshape=SHAPE, compression="gzip"),
    "extensible_array": dict(chunks=(4, 5), maxshape=(None, 13)),
    "extensible_array_filtered": dict(chunks=(4, 5), maxshape=(None, 13), compression="gzip", shuffle=True),
    "btree2": dict(chunks=(4, 5), maxshape=(None, None)),
    "btree2_filtered": dict(chunks=(4, 5), maxshape=(None, None), compression="gzip", fletcher32=True),
}
ALLOCATE = {"early": h5py.h5d.ALLOC_TIME_EARLY, "late": h5py.h5d.ALLOC_TIME_LATE, "incremental": h5py.h5d.ALLOC_TIME_INCR}
WRITE = {"nothing": (), "some": (slice(0, 3), slice(1, 6)), "all": (slice(None), slice(None))}


def create(f, name, layout, allocate, fill, dtype, folder):
    """The dataset NAME of one layout; None where HDF5 makes none such."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    maxshape = SHAPE
    if layout == "contiguous":
        dcpl.set_layout(h5py.h5d.CONTIGUOUS)
    elif layout == "compact":
        dcpl.set_layout(h5py.h5d.COMPACT)
    elif layout == "external":
        (folder / f"{name}.bin").write_bytes(bytes(range(1, 201)) * 10)  # without it nothing can be read
        dcpl.set_external(str(folder / f"{name}.bin").encode(), 3, np.prod(SHAPE) * np.dtype(dtype).itemsize)
    else:
        how = CHUNKED.get(layout) or dict(chunks=(4, 5), maxshape=SHAPE)
        maxshape = tuple(h5py.h5s.UNLIMITED if n is None else n for n in how["maxshape"])
        dcpl.set_chunk(how["chunks"])
        if how.get("shuffle"):
            dcpl.set_shuffle()
        if how.get("compression"):
            dcpl.set_deflate(4)
        if how.get("fletcher32"):
            dcpl.set_fletcher32()
    if allocate:
        dcpl.set_alloc_time(ALLOCATE[allocate])
    if fill is not None:
        dcpl.set_fill_value(np.array(fill, dtype))
    try:
        space = h5py.h5s.create_simple(SHAPE, maxshape)
        made = h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(np.dtype(dtype)), space, dcpl)
    except (OSError, ValueError, RuntimeError):
        return None  # compact data are allocated early, say
    return h5py.Dataset(made)


def make_layouts(path, user_block, libver):
    layouts = ["contiguous", "compact", "external", *CHUNKED, "implicit"]
    with h5py.File(path, "w", libver=libver, userblock_size=user_block) as f:
        for layout, allocate, written, fill in itertools.product(layouts, [None, *ALLOCATE], WRITE, [None, 7]):
            if layout == "implicit" and allocate != "early":
                continue  # which is what makes the index an implicit one
            for dtype in ("<i2", ">f8") if layout in ("contiguous", "extensible_array") else ("<i4",):
                name = "_".join(map(str, (layout, allocate, written, fill, np.dtype(dtype).kind)))
                v = create(f, name, layout, allocate, fill, dtype, path.parent)
                if v is not None and written != "nothing":
                    v[WRITE[written]] = 1 + np.arange(np.prod(SHAPE)).reshape(SHAPE)[WRITE[written]]
    if user_block:
        with path.open("r+b") as raw:  # its own bytes, so that they show where they are taken for data
            raw.write(b"\x5a" * user_block)


@pytest.mark.few(2)
@pytest.mark.parametrize("libver", ["earliest", "v110"])
@pytest.mark.parametrize("user_block", USER_BLOCKS)
def test_every_address_rule(tmp_path, out, user_block, libver):
    path = tmp_path / "layouts.h5"
    make_layouts(path, user_block, (libver, "v110"))
    tool.nc2zarr("--verify", "full", path, out).ok()
    store = zarr.open_group(str(out), mode="r")
    with h5py.File(path) as f:
        names = list(f)
        assert len(names) > 150
        wrong = [n for n in names if not np.array_equal(store[n][...], f[n][...])]
    assert wrong == []


# ---- filters --------------------------------------------------------------------------------------------

FILTERS = {
    "shuffle": (2, ()),
    "deflate": (1, (4,)),
    "fletcher32": (3, ()),
    "szip": (4, (4 | 32, 8)),
    "nbit": (5, ()),
    "scaleoffset": (6, (2, 0)),
    "bz2": (307, (9,)),
    "lzf": (32000, ()),
    "blosc": (32001, (0, 0, 0, 0, 5, 1, 1)),
    "lz4": (32004, (0,)),
    "bitshuffle": (32008, (0, 2)),
    "zstd": (32015, (3,)),
}
TYPES = ["u1", "<i2", "<f4", "<f8", ">i4"]
# Filters tried in threes as well: the order of the others makes no difference.
IN_THREES = ["shuffle", "deflate", "fletcher32", "zstd", "bz2"]


def orders():
    yield from itertools.permutations(FILTERS, 1)
    yield from itertools.permutations(FILTERS, 2)
    yield from itertools.permutations(IN_THREES, 3)
    yield from itertools.permutations(IN_THREES, 4)
    yield from (("shuffle",) * 2, ("fletcher32", "fletcher32", "shuffle"), ("fletcher32", "shuffle", "fletcher32"))


def make_pipeline(f, name, order, dtype):
    """A dataset through ORDER; None where HDF5 itself refuses it."""
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((7, 5))
    values = (np.arange(14 * 11).reshape(14, 11) % 23 * 3).astype(dtype)
    try:
        for each in order:
            dcpl.set_filter(FILTERS[each][0], h5py.h5z.FLAG_MANDATORY, FILTERS[each][1])
        space = h5py.h5s.create_simple(values.shape)
        v = h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(values.dtype), space, dcpl))
        v[...] = values
        if np.array_equal(v[...], values):
            return values
    except (OSError, ValueError, RuntimeError):
        pass
    if name in f:
        del f[name]
    return None


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory):
    path = tmp_path_factory.mktemp("filters") / "pipelines.h5"
    made = {}
    with h5py.File(path, "w", rdcc_nbytes=0) as f:  # without a cache a chunk that cannot be written fails at once
        for order, dtype in itertools.product(orders(), TYPES):
            lossy = {"scaleoffset", "nbit"} & set(order)
            if (lossy and np.dtype(dtype).kind == "f") or (lossy and len(order) > 1):
                continue
            # libaec drops the bytes after the last whole pixel
            if "szip" in order and order[-1] == "szip" and len(order) > 1:
                continue
            name = "-".join(order) + "-" + np.dtype(dtype).str.strip("|").replace("<", "le").replace(">", "be")
            values = make_pipeline(f, name, order, dtype)
            if values is not None:
                made[name] = values
    return path, made


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("zarr_format", ["2", "3"])
def test_keep_every_order_of_filters(pipelines, out, zarr_format):
    """Chunks that `keep` passes through can be read by numcodecs; others are recoded, and reported."""
    path, made = pipelines
    assert len(made) > 500
    done = tool.nc2zarr("--codec", "keep", "--zarr-format", zarr_format, "--json", path, out).json()
    passed = {v["name"]: v["passed_through"] for v in done["variables"]}
    recoded = {note.split()[1] for note in done["notes"] if "is recoded" in note}
    store = zarr.open_group(str(out), mode="r")
    wrong = [name for name, values in made.items() if not np.array_equal(store[name][...], values)]
    assert wrong == []
    assert recoded == {name for name in made if not passed[name]}
    for name in ("shuffle-deflate-lef8", "deflate-fletcher32-lei2", "fletcher32-shuffle-lef4", "deflate-shuffle-u1"):
        assert passed[name], name
    for name in ("deflate-shuffle-lei2", "fletcher32-shuffle-lef8", "lzf-u1", "bz2-fletcher32-shuffle-bei4"):
        assert not passed[name], name

# ---- lengths that contradict each other -----------------------------------------------------------------


def relengthen(path, old, new):
    """Changes the length in the one dataspace message that says OLD and, at most, OLD."""
    data, said = path.read_bytes(), np.array([old, old], "<u8").tobytes()
    assert data.count(said) == 1
    path.write_bytes(data.replace(said, np.array([new, old], "<u8").tobytes()))


@pytest.mark.parametrize("chunks", [(7,), None], ids=["chunked", "contiguous"])
@pytest.mark.parametrize("new", [2**39 + 77, 78])
def test_longer_than_it_may_be(tmp_path, out, new, chunks):
    """A length extended by a flipped bit has no data: they are not taken for fill values."""
    path = tmp_path / "long.h5"
    with h5py.File(path, "w", libver="earliest") as f:
        f.create_dataset("a", data=np.arange(77.0), chunks=chunks)
    relengthen(path, 77, new)
    for options in (["--dry-run"], []):
        done = tool.nc2zarr(*options, path, out, timeout=300)
        # HDF5 1.14 does not open such a file.
        done.fails(1, path, "cannot open it" if "netCDF-C cannot open it" in done.err else "variable a")
    assert not out.exists()

def test_headers_with_a_checksum(tmp_path, out):
    path = tmp_path / "long.h5"
    with h5py.File(path, "w", libver=("v110", "v110")) as f:
        f.create_dataset("a", data=np.arange(77.0), chunks=(7,))
    relengthen(path, 77, 78)
    tool.nc2zarr(path, out).fails(1, path, "header of a", "damaged")


def scaled(path, length, maxshape, chunks):
    """Datasets of other lengths than the fixed one of their dimension."""
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(100.0)
        f["x"].make_scale("x")
        a = f.create_dataset("a", data=np.arange(length, dtype="f8"), chunks=chunks, maxshape=maxshape)
        a.dims[0].attach_scale(f["x"])
    return path


@pytest.mark.parametrize("maxshape, chunks", [(None, None), (None, (10,)), ((None,), (10,)), (None, (7,))])
def test_shorter_than_a_fixed_dimension(tmp_path, out, maxshape, chunks):
    """netCDF-C reads none of it; nothing is made up for the elements that it lacks."""
    path = scaled(tmp_path / "short.h5", 50, maxshape, chunks)
    tool.nc2zarr(path, out).fails(1, path, "variable a", "fixed length of 100", "50")
    tool.nc2zarr("--variable", "x", path, out).ok()


def test_longer_than_a_fixed_dimension(tmp_path, out):
    """netCDF-C gives what lies before its end; that the rest stays behind is said."""
    path = scaled(tmp_path / "long.h5", 150, None, (10,))
    done = tool.nc2zarr("--verify", "full", path, out).ok()
    assert "variable a" in done.err and "150" in done.err and "left out" in done.err
    assert np.array_equal(zarr.open(str(out))["a"][:], np.arange(100.0))


def test_booleans_shorter_than_their_unlimited_dimension(tmp_path, out):
    """netCDF-C pads numbers to the dimension's length, and does not read booleans."""
    path = tmp_path / "short.h5"
    with h5py.File(path, "w") as f:
        f["x"] = f.create_dataset("x_", data=np.arange(5.0), chunks=(5,), maxshape=(None,))
        f["x"].make_scale("x")
        for name, data in (("flag", np.array([True, False, True])), ("number", np.arange(3))):
            f.create_dataset(name, data=data, chunks=(5,), maxshape=(None,)).dims[0].attach_scale(f["x"])
    tool.nc2zarr(path, out).fails(1, path, "variable flag", "shorter", "--skip-unsupported")
    tool.nc2zarr("--variable", "x,number", path, out).ok()
    assert zarr.open(str(out))["number"].shape == (5,)


@pytest.mark.parametrize("there", [("a.h5", "b.h5"), ("a.h5",)], ids=["all sources", "one source less"])
def test_sources_of_a_virtual_dataset(tmp_path, out, there):
    """HDF5 gives the fill value for what lies in a file that is not there: that is said."""
    layout = h5py.VirtualLayout((2, 5), "f8")
    for i, name in enumerate(("a.h5", "b.h5")):
        layout[i] = h5py.VirtualSource(name, "d", (5,))
        if name in there:
            with h5py.File(tmp_path / name, "w") as f:
                f["d"] = np.arange(5.0) + 10 * i
    with h5py.File(tmp_path / "virtual.h5", "w") as f:
        f.create_virtual_dataset("v", layout, fillvalue=-1)
    done = tool.nc2zarr(tmp_path / "virtual.h5", out).ok()
    assert ("variable v" in done.err and "b.h5 is not there" in done.err) == (len(there) == 1), done.err
    wanted = [np.arange(5.0), np.arange(5.0) + 10 if "b.h5" in there else np.full(5, -1)]
    assert np.array_equal(zarr.open(str(out))["v"][:], wanted)
