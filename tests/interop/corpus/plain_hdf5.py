"""HDF5 that netCDF did not write: its chunk indexes, filters, masks, blocks and types."""

import ctypes
import glob
import os
import zlib

import h5py
import hdf5plugin
import numpy as np

from .book import random, smooth, values

EITHER = {"expect": "either", "oracle": False}


def with_scales(f, data, name="v", **storage):
    """A dataset whose dimensions are dimension scales, as netCDF-4 wants them."""
    d = f.create_dataset(name, data=data, **storage)
    for i, n in enumerate(data.shape):
        scale = f"{name}_d{i}"
        f[scale] = np.arange(n, dtype="i4")
        f[scale].make_scale(scale)
        d.dims[i].attach_scale(f[scale])
    return d


def indexes(book):
    """Every form of chunk index, filtered and not: the library's newest format has five."""
    grow = {"fixed": (None, None), "one": (0,), "two": (0, 1)}
    for libver in (("earliest", "v108"), ("v110", "v110")):
        for filters in ({}, dict(compression="gzip", shuffle=True)):
            tag = f"{libver[1]}_{'gzip' if filters else 'raw'}"
            with book.h5(f"index_{tag}.h5", libver) as f:
                for kind, free in grow.items():
                    shape, chunks = (37, 23), (5, 4)
                    maximal = tuple(None if i in free else n for i, n in enumerate(shape))
                    with_scales(f, smooth(shape, "f4"), kind, chunks=chunks, maxshape=maximal, **filters)
                with_scales(f, smooth((9, 8), "i2"), "single", chunks=(9, 8), **filters)
                with_scales(f, smooth((2000,), "i4"), "many", chunks=(3,), maxshape=(None,), **filters)
                d = f.create_dataset(
                    "sparse", (40, 40), "f8", chunks=(8, 8), maxshape=(None, None), fillvalue=-7.5, **filters
                )
                d[9:12, 20:39] = 1.25
    with book.h5("index_implicit.h5", ("v110", "v110")) as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4, 5))
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        d = h5py.h5d.create(f.id, b"v", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((10, 11)), plist)
        h5py.Dataset(d)[...] = smooth((10, 11))


def filters(book):
    plugins = {
        "lzf": dict(compression="lzf"),
        "lzf_shuffle": dict(compression="lzf", shuffle=True),
        "lz4": hdf5plugin.LZ4(),
        "lz4_block": hdf5plugin.LZ4(nbytes=256),
        "bzip2": hdf5plugin.BZip2(),
        "zstd": hdf5plugin.Zstd(5),
        "bitshuffle_none": hdf5plugin.Bitshuffle(cname="none"),
        "bitshuffle_lz4": hdf5plugin.Bitshuffle(cname="lz4"),
        "bitshuffle_zstd": hdf5plugin.Bitshuffle(cname="zstd"),
        **{
            f"blosc_{c}_{s}": hdf5plugin.Blosc(cname=c, shuffle=s)
            for c in ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
            for s in (0, 1, 2)
        },
        "szip": dict(compression="szip"),
        "all_deflate": dict(compression="gzip", shuffle=True, fletcher32=True),
    }
    for kind, storage in plugins.items():
        with book.h5(f"plugin_{kind}.h5", oracle="own" if kind.startswith("lzf") else True) as f:
            for t in ("u1", "i2", "f4", "f8"):
                with_scales(f, smooth((50, 41), t), f"s_{t}", chunks=(16, 16), **storage)
                d = with_scales(f, values(t, (130,), random(kind + t)), f"r_{t}", chunks=(33,), **storage)
                d.attrs["units"] = "1"
    for kind, storage in {"blosc2": hdf5plugin.Blosc2(), "zfp": hdf5plugin.Zfp(reversible=True)}.items():
        with book.h5(f"plugin_{kind}.h5", **EITHER) as f:
            with_scales(f, smooth((50, 41), "f4"), chunks=(16, 16), **storage)
    with book.h5("filter_scaleoffset.h5", expect="either") as f:
        with_scales(f, smooth((50, 41), "i4"), "int", chunks=(16, 16), scaleoffset=0)
        with_scales(f, smooth((50, 41), "f4"), "float", chunks=(16, 16), scaleoffset=3)
        with_scales(f, smooth((50, 41), "u2"), "short", chunks=(16, 16), scaleoffset=0, compression="gzip")
    with book.h5("filter_nbit.h5", expect="either") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((8,))
        plist.set_filter(5, h5py.h5z.FLAG_MANDATORY, ())
        d = h5py.h5d.create(f.id, b"v", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((20,)), plist)
        h5py.Dataset(d)[...] = np.arange(20)


def masks(book):
    """Chunks of one dataset, each through its own choice of filters."""
    for libver in (("earliest", "v108"), ("v110", "v110")):
        with book.h5(f"masks_{libver[1]}.h5", libver) as f:
            data = smooth((12, 10), "i4")
            d = with_scales(
                f, np.zeros_like(data), chunks=(4, 10), maxshape=(None, 10), shuffle=True, compression="gzip"
            )
            for i, mask in enumerate((0b00, 0b10, 0b11)):
                raw = data[4 * i : 4 * i + 4].tobytes()
                if not mask & 1:
                    raw = np.frombuffer(raw, "u1").reshape(-1, 4).T.tobytes()
                if not mask & 2:
                    raw = zlib.compress(raw)
                d.id.write_direct_chunk((4 * i, 0), raw, mask)


def partial_edges(book):
    """H5Pset_chunk_opts leaves edge chunks unfiltered; h5py has no name for it."""
    found = glob.glob(os.path.join(os.path.dirname(h5py.__file__), "..", "h5py.libs", "libhdf5-*"))
    if not found:
        return
    library = ctypes.CDLL(found[0])
    with book.h5("partial_edges.h5", ("v110", "v110")) as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((8, 8))
        plist.set_shuffle()
        plist.set_deflate(5)
        if library.H5Pset_chunk_opts(ctypes.c_int64(plist.id), ctypes.c_uint(2)) < 0:
            raise OSError("H5Pset_chunk_opts failed")
        d = h5py.h5d.create(f.id, b"v", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((19, 21)), plist)
        h5py.Dataset(d)[...] = smooth((19, 21), "i4")


def blocks(book):
    for size in (512, 4096):
        for libver in (("earliest", "v108"), ("v110", "v110")):
            name = f"userblock_{size}_{libver[1]}.h5"
            with book.h5(name, libver, userblock_size=size) as f:
                with_scales(f, smooth((30, 20)), "z", chunks=(8, 8), compression="gzip", shuffle=True)
                with_scales(f, smooth((30, 20)), "contiguous")
                with_scales(f, smooth((700,), "i2"), "raw", chunks=(64,), maxshape=(None,))
            with open(book.folder / name, "r+b") as raw:
                raw.write(b"#!user block\n" * (size // 13))


def layouts(book):
    with book.h5("compact.h5") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        for name, t in (("f", h5py.h5t.IEEE_F64LE), ("b", h5py.h5t.STD_I16BE)):
            d = h5py.h5d.create(f.id, name.encode(), t, h5py.h5s.create_simple((4, 5)), plist)
            h5py.Dataset(d)[...] = np.arange(20).reshape(4, 5)
    with book.h5("contiguous_unwritten.h5") as f:
        f.create_dataset("never", (30, 4), "f4", fillvalue=3.5)
        f.create_dataset("zero", (30, 4), "i2")
        f.create_dataset("written", data=smooth((30, 4), ">i4"))
        f.create_dataset("scalar", data=np.float32(2.5))
        f.create_dataset("big_scalar", data=np.array(7, ">i8"))
    with book.h5("fill_kinds.h5") as f:
        for alloc in (h5py.h5d.FILL_TIME_ALLOC, h5py.h5d.FILL_TIME_IFSET):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk((6,))
            plist.set_fill_time(alloc)
            d = h5py.h5d.create(f.id, f"t{alloc}".encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple((20,)), plist)
            h5py.Dataset(d)[7:9] = 5
        f.create_dataset("set", (20,), "f8", chunks=(6,), fillvalue=np.nan)[2] = 1
        d = f.create_dataset("attribute_differs", (20,), "i4", chunks=(6,), fillvalue=11)
        d[7] = 1
        d.attrs["_FillValue"] = np.array([-5], "i4")
    external = book.folder / "external.raw"
    external.write_bytes(smooth((6, 5), "f4").tobytes())
    with book.h5("external.h5", expect="either", word="external") as f:
        f.create_dataset("v", (6, 5), "f4", external=[(str(external), 0, 120)])
    with book.h5("virtual.h5", expect="either", word="virtual") as f:
        layout = h5py.VirtualLayout((35, 4), ">i4")
        layout[:30] = h5py.VirtualSource(str(book.folder / "contiguous_unwritten.h5"), "written", (30, 4))
        f.create_virtual_dataset("v", layout, fillvalue=1)


def kinds(book):
    with book.h5("text.h5") as f:
        f["vlen"] = np.array(["one", "", "drei\u00dfig"], h5py.string_dtype())
        f["ascii"] = np.array(["a", "b"], h5py.string_dtype("ascii"))
        f["scalar"] = "a single text"
        f["one_char"] = np.array([b"x", b"y"], "S1")
    with book.h5("text_fixed.h5", expect="either", oracle="own") as f:  # netCDF-C 4.9.0 reads its second text wrongly
        f["fixed"] = np.array([b"abc", b"defgh"], "S8")
    with book.h5("strange_types.h5", **EITHER) as f:
        f["half"] = np.arange(4, dtype="f2")
        f["bool"] = np.array([True, False])
        f["complex"] = np.arange(3) * 1j
        f["plain"] = np.arange(5, dtype="f4")
        f["big"] = np.arange(5, dtype=">u8")
        f["void"] = np.zeros(3, "V5")
        f["refs"] = np.array([f["plain"].ref], h5py.ref_dtype)
        f["null"] = h5py.Empty("f4")
        f.create_dataset("ragged", (2,), h5py.vlen_dtype("i4"))
    with book.h5("opaque.h5", expect="unsupported", word="v", oracle=False) as f:
        t = h5py.h5t.create(h5py.h5t.OPAQUE, 7)
        t.set_tag(b"blob")
        t.commit(f.id, b"blob_t")
        h5py.h5d.create(f.id, b"v", t, h5py.h5s.create_simple((3,)))
        f["plain"] = np.arange(5, dtype="f4")


def structure(book):
    with book.h5("groups.h5") as f:
        f.attrs["title"] = "nested"
        for path in ("a/b/c", "a/d", "empty/inner"):
            f.create_group(path)
        with_scales(f["a/b"], smooth((6, 7)), chunks=(3, 3))
        f["a/b"].attrs["level"] = np.int64(2)
        f["a/d/x"] = np.arange(3)
    with book.h5("order_tracked.h5") as f:
        g = f.create_group("z", track_order=True)
        for name in ("zeta", "alpha", "mid"):
            g[name] = np.arange(3, dtype="i2")
    with book.h5("no_scales.h5") as f:
        f["a"] = smooth((4, 5))
        f["b"] = smooth((5, 4))
        f["c"] = smooth((4, 4, 9))
        f.create_dataset("grow", data=smooth((4, 5)), maxshape=(None, 5), chunks=(2, 2))
    with book.h5("some_scales.h5", **EITHER) as f:  # netCDF-C 4.9.0 does not open it
        f["lat"] = np.linspace(-90, 90, 5)
        f["lat"].make_scale("lat")
        d = f.create_dataset("v", data=smooth((5, 6)))
        d.dims[0].attach_scale(f["lat"])
    with book.h5("links.h5", **EITHER) as f:
        f["real"] = np.arange(4)
        f["hard"] = f["real"]
        f["soft"] = h5py.SoftLink("/real")
        f["dangling"] = h5py.SoftLink("/nowhere")
        f["outside"] = h5py.ExternalLink("groups.h5", "/a/d/x")
    with book.h5("loop.h5", **EITHER) as f:
        g = f.create_group("g")
        g["again"] = f["/"]
        f["v"] = np.arange(3)
    with book.h5("attributes.h5") as f:
        d = f.create_dataset("v", data=np.arange(3))
        d.attrs["fixed"] = np.bytes_(b"fixed text")
        d.attrs["vlen"] = "text"
        d.attrs["bad"] = np.bytes_(b"\xb0C")
        d.attrs["texts"] = np.array(["a", "b"], h5py.string_dtype())
        d.attrs["big"] = np.array([1, 2], ">i4")
        d.attrs["NAME"] = "a user's own"
        d.attrs["CLASS"] = "a user's own"
        for i in range(40):  # past eight, attributes move into dense storage
            f.attrs[f"a{i:02}"] = i
    with book.h5("attributes_strange.h5", **EITHER) as f:
        d = f.create_dataset("v", data=np.arange(3))
        d.attrs["empty"] = h5py.Empty("f4")
        d.attrs["matrix"] = np.arange(6).reshape(2, 3)
        d.attrs["bool"] = True
        d.attrs["half"] = np.float16(1.5)
        d.attrs["ref"] = d.ref
    with book.h5("nothing.h5"):
        pass


def write(book):
    for chapter in (indexes, filters, masks, partial_edges, blocks, layouts, kinds, structure):
        chapter(book)
