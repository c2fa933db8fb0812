"""Inputs of goldens: files of the corpus, files and stores written here.

Nothing here asks another library for bytes, so inputs are the same everywhere but for
the corpus, whose HDF5 files carry the time at which they were made.
"""

import gzip
import json
import struct
import subprocess
import zlib

import numpy as np

from support import cdf, paths

# One or more of each kind that the corpus has.
CORPUS = """
attr_many.nc attr_missing_nc4.nc attr_names_cdf1.nc attr_names_nc4.nc attr_numbers_cdf5.nc attr_numbers_nc4.nc
attr_own_name_cdf2.nc attr_texts_nc4c.nc attributes.h5 bigendian_raw.nc bigendian_zshuf.nc bigendian_zstd.nc
calendar_360_day.nc calendar_standard.nc cdf1_bad_utf8.nc cdf1_fill_other_type.nc cdf1_no_records.nc
cdf1_no_variables.nc cdf1_nothing.nc cdf1_nul_text.nc cdf1_two_records_i1.nc cdf2_one_record_f8.nc
cdf5_vsize_wrong.nc chars_cdf1.nc chars_nc4.nc chars_fill_nc4.nc chunks_default.nc chunks_many.nc chunks_series.nc
cmip_cdf1.nc cmip_nc4.nc cmip_nc4_z.nc cmip_nc4c_z.nc compact.h5 compound_beside.nc contiguous_unwritten.h5
dims_many_nc4.nc dims_no_variable.nc dims_repeated.nc dims_two_d_coordinate.nc empty_cdf2.nc empty_nc4.nc enum.nc
era5_cdf2.nc era5_nc4.nc fill_f4.nc fill_i2.nc fill_i8.nc fill_kinds.h5 fill_nan_f4.nc fill_u1.nc
filter_blosczstd.nc filter_blosclz4.nc filter_bzip2_1.nc filter_flet_2.nc filter_nbit.h5 filter_raw_3.nc
filter_szipec_0.nc filter_szipnn_1.nc filter_zflet_1.nc filter_zlib1_0.nc filter_zlib9_2.nc filter_zshuf_1.nc
filter_zshufflet_1.nc filter_zstd_2.nc filter_zstdshuf_3.nc full_byte_image.nc groups.h5 groups_empty.nc
groups_nested.nc groups_same_name.nc index_implicit.h5 index_v108_gzip.h5 index_v110_gzip.h5 index_v110_raw.h5
interleaved_cdf1.nc links.h5 masks_v108.h5 name_cjk.nc name_colon.nc name_dot.nc name_space.nc
no_scales.h5 nofill_cdf1.nc ocean_curvilinear.nc order_tracked.h5 packed_f4_nc4.nc packed_f8_cdf1.nc partial_edges.h5
plugin_bitshuffle_lz4.h5 plugin_blosc_lz4_1.h5 plugin_lz4.h5 plugin_lzf_shuffle.h5 plugin_szip.h5 quantized.nc
ragged_nc4.nc ranks_cdf1.nc ranks_nc4.nc rotated_pole.nc stations.nc strings_fill.nc strings_shapes.nc swath.nc
text.h5 text_fixed.h5 type_cdf5_u8.nc type_nc4_str.nc ugrid.nc unlimited_raw.nc
""".split()


def field(shape, dtype="f4"):
    """A smooth field that no library had a hand in: whole numbers, scaled."""
    n = np.arange(np.prod(shape, dtype=np.int64), dtype=np.int64)
    values = (n * 7919 % 1009 + n // 13) % 30000
    return (values / 8 if np.dtype(dtype).kind == "f" else values % 120).astype(dtype).reshape(shape)


def write_files(folder):
    """NetCDF classic files, larger than the corpus has them, and the traps."""
    time = ("time", "f8", ("time",), field((40,), "f8"), {"units": "days since 2000-01-01", "calendar": "noleap"})
    lat, lon = ("lat", "f4", ("lat",), field((23,))), ("lon", "f4", ("lon",), field((31,)))
    dims = {"time": None, "lat": 23, "lon": 31}
    tas = ("tas", "f4", ("time", "lat", "lon"), field((40, 23, 31)), {"units": "K", "_FillValue": ("f4", 1e20)})
    pr = ("pr", "i2", ("time", "lat", "lon"), field((40, 23, 31), "i2"),
          {"scale_factor": ("f4", 0.01), "add_offset": ("f4", 273.15), "_FillValue": ("i2", -999)})  # fmt: skip
    mask = ("mask", "i1", ("lat", "lon"), np.zeros((23, 31), "i1"), {"flag_values": ("i1", [0, 1])})
    for version in (1, 2, 5):
        (folder / f"cube_cdf{version}.nc").write_bytes(
            cdf.Cdf(version, dims, [time, lat, lon, tas, pr, mask], {"Conventions": "CF-1.11"}).build()
        )
    flat = ("v", "f8", ("x", "y"), field((300, 200), "f8"))
    (folder / "flat.nc").write_bytes(cdf.Cdf(2, {"x": 300, "y": 200}, [flat]).build())
    traps = folder / "traps.nc"
    subprocess.run(["ncgen", "-k", "nc4", "-o", str(traps), str(paths.ROOT / "testdata/traps.cdl")], check=True)


# ---- stores ----


class Store:
    """Writes keys; FORMAT is that of its metadata."""

    def __init__(self, path, fmt):
        self.path, self.fmt = path, fmt

    def put(self, key, data):
        path = self.path / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())

    def group(self, name="", **attributes):
        prefix = f"{name}/" if name else ""
        if self.fmt == 3:
            self.put(prefix + "zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": attributes})
        else:
            self.put(prefix + ".zgroup", {"zarr_format": 2})
            if attributes:
                self.put(prefix + ".zattrs", attributes)

    def array(self, name, values, chunks, encode=bytes, dims=None, attributes=None, absent=(), order="C", **members):
        """ENCODE makes stored bytes of a chunk's; MEMBERS replace those of the document."""
        values = np.asarray(values)
        prefix, attributes = (f"{name}/" if name else ""), dict(attributes or {})
        if self.fmt == 3:
            document = {
                "zarr_format": 3, "node_type": "array", "shape": list(values.shape), "data_type": str(values.dtype),
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                "attributes": attributes,
            }  # fmt: skip
            if dims:
                document["dimension_names"] = dims
            document.update(members)
            separator, lead = "/", "c/"
            if document["chunk_key_encoding"]["name"] == "v2":
                separator, lead = document["chunk_key_encoding"]["configuration"]["separator"], ""
            self.put(prefix + "zarr.json", document)
        else:
            document = {
                "zarr_format": 2, "shape": list(values.shape), "chunks": list(chunks), "dtype": values.dtype.str,
                "compressor": None, "fill_value": 0, "order": order, "filters": None,
            }  # fmt: skip
            document.update(members)
            separator, lead = document.get("dimension_separator", "."), ""
            self.put(prefix + ".zarray", document)
            if dims:
                attributes["_ARRAY_DIMENSIONS"] = dims
            if attributes:
                self.put(prefix + ".zattrs", attributes)
        count = [-(-n // c) for n, c in zip(values.shape, chunks)]
        for number, at in enumerate(np.ndindex(*count)):
            if number in absent:
                continue
            chunk = np.zeros(chunks, values.dtype)
            part = values[tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunks))]
            chunk[tuple(slice(0, n) for n in part.shape)] = part
            key = separator.join(map(str, at)) or "0" if lead == "" else (lead + separator.join(map(str, at))).rstrip("/")
            self.put(prefix + key, encode(chunk.tobytes(order)))


def gz(data):
    return gzip.compress(data, 6, mtime=0)


def swapped(width):
    return lambda data: np.frombuffer(data, f"u{width}").byteswap().tobytes()


def shuffled(width):
    return lambda data: np.frombuffer(data, "u1").reshape(-1, width).T.tobytes()


def crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c ^= b
        for _ in range(8):
            c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
    return struct.pack("<I", c ^ 0xFFFFFFFF)


def shard_of(nchunks, nbytes, at_start=False, holes=(), checksum=True):
    """A shard of NCHUNKS inner chunks of NBYTES, cut from the outer chunk along its first dimension."""

    def encode(data):
        head = 16 * nchunks + (4 if checksum else 0) if at_start else 0
        body, index = b"", b""
        for i in range(nchunks):
            if i in holes:
                index += struct.pack("<QQ", 2**64 - 1, 2**64 - 1)
                continue
            index += struct.pack("<QQ", head + len(body), nbytes)
            body += data[i * nbytes : (i + 1) * nbytes]
        index += crc32c(index) if checksum else b""
        return index + body if at_start else body + index

    return encode


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def sharding(inner, codecs=(LITTLE,), location="end", checksum=True):
    index = [LITTLE] + ([{"name": "crc32c"}] if checksum else [])
    return [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": inner, "codecs": list(codecs), "index_codecs": index, "index_location": location}}]  # fmt: skip


def vlen(texts):
    parts = [t.encode() for t in texts]
    return struct.pack("<I", len(parts)) + b"".join(struct.pack("<I", len(p)) + p for p in parts)


def version_3(folder):
    def new(name):
        return Store(folder / name, 3)

    s = new("v3_plain")
    s.group(title="plain", n=2**60, x=0.1)
    s.array("t", np.arange(20.0), [20], dims=["t"])
    s.array("a", field((20, 9, 12)), [7, 4, 5], dims=["t", "y", "x"], attributes={"units": "K"}, absent=(3,))
    s.array("deep/b", field((9, 12), "i2"), [4, 12], dims=["y", "x"])
    s.group("deep", note="inside")
    s = new("v3_gzip")
    s.group()
    s.array("a", field((30, 16), "f8"), [8, 8], gz, codecs=[LITTLE, {"name": "gzip", "configuration": {"level": 6}}])
    s = new("v3_crc")
    s.group()
    s.array("a", field((30, 16), "u2"), [8, 8], lambda d: d + crc32c(d), codecs=[LITTLE, {"name": "crc32c"}])
    s = new("v3_big_endian")
    s.group()
    s.array("a", field((11, 13), "i4"), [4, 13], swapped(4),
            codecs=[{"name": "bytes", "configuration": {"endian": "big"}}])  # fmt: skip
    s = new("v3_transposed")
    s.group()
    s.array("a", field((12, 10)), [4, 5], lambda d: np.frombuffer(d, "f4").reshape(4, 5).T.tobytes(),
            codecs=[{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE])  # fmt: skip
    s = new("v3_shards")
    s.group()
    s.array("a", field((24, 10)), [8, 10], shard_of(4, 80), dims=["t", "x"], codecs=sharding([2, 10]), absent=(1,))
    s = new("v3_shards_start")
    s.group()
    s.array("a", field((24, 10), "i2"), [8, 10], shard_of(4, 40, True, (2,)), codecs=sharding([2, 10], location="start"))
    s = new("v3_shards_plain_index")
    s.group()
    s.array("a", field((16, 10), "u1"), [8, 10], shard_of(4, 20, checksum=False), codecs=sharding([2, 10], checksum=False))
    s = new("v3_key_v2")
    s.group()
    s.array("a", field((9, 8)), [4, 4],
            chunk_key_encoding={"name": "v2", "configuration": {"separator": "."}})  # fmt: skip
    s = new("v3_root_array")
    s.array("", field((40, 30)), [9, 30], dims=["y", "x"])
    s = new("v3_implied")
    s.array("row/1/0", field((6, 6), "u2"), [3, 6])
    s.array("row/2/0", field((5, 6), "u2"), [3, 6])
    s.group()
    s = new("v3_no_root")
    s.array("a", field((6, 6), "u2"), [3, 6])
    s = new("v3_types")
    s.group()
    for t in ("bool", "int8", "uint8", "int64", "uint64", "float16", "float64", "complex64"):
        fill = False if t == "bool" else [0, 0] if t.startswith("complex") else 0
        s.array(t, (np.arange(30) % 2 if t == "bool" else np.arange(30)).astype(t).reshape(5, 6), [2, 6], fill_value=fill)
    s = new("v3_fill")
    s.group()
    s.array("nan", field((9, 9)), [3, 9], fill_value="NaN", absent=(1, 2))
    s.array("bits", field((9, 9)), [3, 9], fill_value="0x7fc00001", absent=(0,))
    s.array("inf", field((9, 9), "f8"), [3, 9], fill_value="-Infinity", absent=(0, 1, 2))
    s = new("v3_text")
    s.group()
    s.put("a/zarr.json", {
        "zarr_format": 3, "node_type": "array", "shape": [5], "data_type": "string",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": "", "codecs": [{"name": "vlen-utf8"}],
        "attributes": {}})  # fmt: skip
    for i, texts in enumerate((["a", "ünï"], ["", "日本"], ["z", ""])):
        s.put(f"a/c/{i}", vlen(texts))
    s = new("v3_scalar")
    s.group()
    s.array("a", np.array(2.5), [])
    s.array("empty", np.zeros((0, 4), "f4"), [1, 4])
    s = new("v3_strange")
    s.group(own={"a": [1, None, {"b": "ü"}]})
    s.array("a", field((4, 4)), [4, 4], attributes={"_FillValue": "AAAAAAAA+H8="}, storage_transformers=[])
    s.put("u/zarr.json", {"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "own_type",
                          "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
                          "chunk_key_encoding": {"name": "default"}, "fill_value": None,
                          "codecs": [{"name": "own_codec"}], "attributes": {}})  # fmt: skip
    s.put("u/c/0", b"anything")
    s = new("v3_large")
    s.group()
    s.array("a", field((48, 192, 192)), [4, 192, 192], dims=["t", "y", "x"])


def version_2(folder):
    def new(name):
        return Store(folder / name, 2)

    s = new("v2_plain")
    s.group(title="plain")
    s.array("t", np.arange(20.0), [20], dims=["t"])
    s.array("a", field((20, 9, 12)), [7, 4, 5], dims=["t", "y", "x"], attributes={"units": "K"}, absent=(3,))
    s.group("deep")
    s.array("deep/b", field((9, 12), "i2"), [4, 12], dims=["y", "x"])
    s = new("v2_zlib")
    s.group()
    s.array("a", field((30, 16), "f8"), [8, 8], lambda d: zlib.compress(d, 4), compressor={"id": "zlib", "level": 4})
    s = new("v2_gzip_nested")
    s.group()
    s.array("a", field((30, 16)), [8, 8], gz, compressor={"id": "gzip", "level": 6}, dimension_separator="/")
    s = new("v2_fortran")
    s.group()
    s.array("a", field((10, 12)), [4, 5], order="F", dims=["y", "x"])
    s = new("v2_big_endian")
    s.group()
    s.array("a", field((10, 12)).astype(">f4"), [4, 12], dims=["y", "x"])
    s = new("v2_shuffle")
    s.group()
    s.array("a", field((16, 12)), [4, 12], lambda d: zlib.compress(shuffled(4)(d), 1),
            filters=[{"id": "shuffle", "elementsize": 4}], compressor={"id": "zlib", "level": 1})  # fmt: skip
    s = new("v2_filter_alone")
    s.group()
    s.array("a", field((16, 12)), [4, 12], lambda d: zlib.compress(d, 1), filters=[{"id": "zlib", "level": 1}])
    s = new("v2_delta")
    s.group()
    s.array("a", field((16, 12), "i4"), [4, 12],
            lambda d: np.diff(np.frombuffer(d, "i4"), prepend=np.int32(0)).astype("i4").tobytes(),
            filters=[{"id": "delta", "dtype": "<i4", "astype": "<i4"}])  # fmt: skip
    s = new("v2_types")
    s.group()
    for t in ("|b1", "|i1", "|u1", "<u2", "<i8", "<f2", "<c8", "|S3", "<U2", "<M8[s]"):
        values = np.arange(30).astype(t) if t[1] not in "SU" else np.array([str(i) for i in range(30)], t)
        s.array(t[1:3].lower() + "x", values.reshape(5, 6), [2, 6], fill_value=None)
    s = new("v2_fill")
    s.group()
    s.array("nan", field((9, 9)), [3, 9], fill_value="NaN", absent=(1, 2))
    s.array("none", field((9, 9)), [3, 9], fill_value=None, absent=(0,))
    s.array("minus", field((9, 9), "i2"), [3, 9], fill_value=-7, absent=(0, 1, 2))
    s = new("v2_text")
    s.group()
    s.put("a/.zarray", {"zarr_format": 2, "shape": [5], "chunks": [2], "dtype": "|O", "compressor": None,
                        "fill_value": "", "order": "C", "filters": [{"id": "vlen-utf8"}]})  # fmt: skip
    for i, texts in enumerate((["a", "ünï"], ["", "日本"], ["z", ""])):
        s.put(f"a/{i}", vlen(texts))
    s = new("v2_root_array")
    s.array("", field((40, 30)), [9, 30], dims=["y", "x"])
    s = new("v2_scalar")
    s.group()
    s.array("a", np.array(2.5), [])
    s.array("empty", np.zeros((0, 4), "f4"), [1, 4])
    s = new("v2_structured")
    s.group()
    s.array("a", field((6, 6)), [3, 6])
    s.put("s/.zarray", {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": [["x", "<f4"], ["y", "|u1"]],
                        "compressor": None, "fill_value": None, "order": "C", "filters": None})  # fmt: skip
    s.put("s/0", bytes(range(10)))
    s = new("v2_large")
    s.group()
    s.array("a", field((48, 256, 256), "i2"), [48, 16, 16], dims=["t", "y", "x"])


# Made by nc2zarr from these files, under these options.
CONVERTED = {
    "from_cube": ("cube_cdf1.nc", []),
    "from_cube_v2": ("cube_cdf2.nc", ["--zarr-format", "2"]),
    "from_cube_shards": ("cube_cdf5.nc", ["--chunks", "auto:4KiB", "--shards", "auto:32KiB", "-j", "1"]),
    "from_cmip": ("cmip_nc4_z.nc", ["--codec", "keep"]),
    "from_groups": ("groups_nested.nc", ["--codec", "zstd:1"]),
    "from_strings": ("strings_shapes.nc", ["--codec", "gzip:1"]),
    "from_packed": ("packed_f4_nc4.nc", ["--zarr-format", "2", "--codec", "blosc:lz4"]),
}


def write(folder, program):
    """All inputs in FOLDER, by name: files, then stores.  PROGRAM runs nc2zarr with arguments."""
    folder.mkdir(parents=True)
    write_files(folder)
    for name in CORPUS:
        (folder / name).symlink_to(paths.CORPUS / name)
    files = sorted(p.name for p in folder.glob("*") if p.suffix in (".nc", ".h5"))
    version_3(folder)
    version_2(folder)
    for name, (source, options) in CONVERTED.items():
        program("-q", "--verify", "none", "--memory", "256MiB", *options, folder / source, folder / name)
    stores = sorted(p.name for p in folder.iterdir() if p.is_dir())
    return files, stores

