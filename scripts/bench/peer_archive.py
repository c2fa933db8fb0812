#!/usr/bin/env python3
"""peer_archive.py WHAT FOLDER OUT [TARGET THREADS]: what other tools do with many files.

    survey-xarray       open_mfdataset, its defaults
    survey-advised      the same, told to compare nothing
    survey-virtualizarr open_virtual_mfdataset
    survey-kerchunk     scan and combine
    refer-virtualizarr  the same as survey-..., then the references written to OUT
    refer-kerchunk      the same
    convert-xarray      open_mfdataset with dask, then to_zarr with chunks of TARGET
    index               for roofline.c: each file's chunks of t2m, written as a plan to OUT

The last line is the time without imports.  What is not installed ends with status 3.
"""
import glob
import json
import os
import sys
import time
import warnings

warnings.simplefilter("ignore")
ADVISED = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override"}


def survey_xarray(files, **more):
    import xarray as xr

    xr.open_dataset(files[0]).close()
    start = time.perf_counter()
    xr.open_mfdataset(files, combine="by_coords", **more)
    return start


def survey_virtualizarr(files, out=None):
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_mfdataset
    from virtualizarr.parsers import HDFParser

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    start = time.perf_counter()
    found = open_virtual_mfdataset([f"file://{f}" for f in files], registry=registry, parser=HDFParser(), combine="by_coords",
                                   combine_attrs="override", loadable_variables=["time", "lat", "lon"], data_vars="minimal",
                                   coords="minimal", compat="override")  # fmt: skip
    if out:
        found.vz.to_kerchunk(out, format="json")
    return start


def survey_kerchunk(files, out=None):
    from kerchunk.combine import MultiZarrToZarr
    from kerchunk.hdf import SingleHdf5ToZarr

    start = time.perf_counter()
    refs = [SingleHdf5ToZarr(f, inline_threshold=300).translate() for f in files]
    same = ["lat", "lon", "orography"]
    found = MultiZarrToZarr(refs, concat_dims=["time"], coo_map={"time": "cf:time"}, identical_dims=same).translate()
    if out:
        with open(out, "w") as f:
            json.dump(found, f)
    return start


def convert_xarray(files, out, target, threads):
    import dask
    import numcodecs.blosc
    import xarray as xr
    import zarr

    numcodecs.blosc.set_nthreads(1)
    zarr.config.set({"threading.max_workers": threads})
    dask.config.set(scheduler="threads", num_workers=threads)
    start = time.perf_counter()
    data = xr.open_mfdataset(files, combine="by_coords", chunks={"time": 24}, mask_and_scale=False, **ADVISED)
    data = data.chunk(dict(zip(("time", "lat", "lon"), target)))
    codec = zarr.codecs.BloscCodec(cname="zstd", clevel=2, shuffle="shuffle")
    for name in ("t2m", "orography"):
        data[name].encoding = {}
    data.to_zarr(out, encoding={"t2m": {"compressors": codec, "chunks": target}}, zarr_format=3)
    return start


def index(files, out, target):
    import h5py

    lines, shape = [], None
    for path in files:
        with h5py.File(path) as h5:
            v = h5["t2m"]
            shape = v.shape
            for k in range(shape[0]):
                info = v.id.get_chunk_info(k)
                lines.append(f"{info.byte_offset} {info.size}\n")
    with open(out, "w") as f:
        f.write(f"files {shape[0]} {len(files)}\n")
        f.writelines(f"{path}\n" for path in files)
        whole = (len(lines), *shape[1:])
        print("array t2m 4 deflate shuffle native", *whole, 1, *shape[1:], *target, len(lines), file=f)
        f.writelines(lines)


def main():
    what, folder, out = sys.argv[1:4]
    files = sorted(glob.glob(f"{os.path.abspath(folder)}/*.nc"))
    target = tuple(map(int, sys.argv[4].split("x"))) if len(sys.argv) > 4 else ()
    try:
        if what == "index":
            index(files, out, target)
            return
        if what == "convert-xarray":
            start = convert_xarray(files, out, target, int(sys.argv[5]))
        elif what.endswith("-virtualizarr"):
            start = survey_virtualizarr(files, out if what.startswith("refer") else None)
        elif what.endswith("-kerchunk"):
            start = survey_kerchunk(files, out if what.startswith("refer") else None)
        else:
            start = survey_xarray(files, **(ADVISED if what == "survey-advised" else {}))
    except ImportError as e:
        print(f"{e.name} is not installed", file=sys.stderr)
        sys.exit(3)
    print(json.dumps({"seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
