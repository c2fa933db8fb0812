"""Input that is no input: every refusal is one sentence that names the file, and leaves nothing."""

import os
import shutil
import struct
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from support import nc_equals_zarr, paths, tool
from support.cdf import Cdf



def refused(path, out, *words, options=(), **kw):
    done = tool.nc2zarr(*options, path, out, **kw)
    done.fails(1, Path(path).name, *words)
    nothing_is_trusted(done, out)
    return done


def nothing_is_trusted(done, out):
    """No store, or one that the message calls unverified: libnetcdf found the damage when it was complete."""
    assert tool.opens_as_store(out) == (f"{out}: written, but not verified" in done.err), str(done)


def must_be_right_or_refused(path, out, **kw):
    """Files that netCDF4 reads must be converted correctly; others are refused."""
    done = tool.nc2zarr(path, out, **kw)
    if done.status == 0:
        assert nc_equals_zarr.differences(path, out, decoded=False) == []
    else:
        done.fails(1, Path(path).name)
        nothing_is_trusted(done, out)


# ---- not a file of ours -----------------------------------------------------------------------------

NOT_NETCDF = {
    "empty": b"",
    "one byte": b"C",
    "magic alone": b"CDF\1",
    "HDF5 magic alone": b"\x89HDF\r\n\x1a\n",
    "text": b"lon,lat\n1,2\n" * 100,
    "zeros": bytes(5000),
    "gzip": zlib.compress(b"x" * 1000),
    "HDF4": b"\x0e\x03\x13\x01" + bytes(500),
    "GRIB": b"GRIB" + bytes(500),
    "CDF-3": b"CDF\3" + bytes(500),
    "CDF-9": b"CDF\x09" + bytes(500),
    "magic after zeros": bytes(512) + b"\x89HDF\r\n\x1a\n" + bytes(100),
    "HTML": b"<!DOCTYPE html><html>not found</html>",
}


@pytest.mark.every
@pytest.mark.parametrize("kind", NOT_NETCDF)
def test_no_netcdf(tmp_path, out, kind):
    path = tmp_path / "input.nc"
    path.write_bytes(NOT_NETCDF[kind])
    refused(path, out)


def test_absent(tmp_path, out):
    refused(tmp_path / "absent.nc", out, "no such file")


def test_device_and_pipe(tmp_path, out):
    refused("/dev/null", out)
    os.mkfifo(tmp_path / "pipe.nc")
    refused(tmp_path / "pipe.nc", out, timeout=300)


def test_folder(tmp_path, out):
    (tmp_path / "folder.nc").mkdir()
    done = tool.nc2zarr(tmp_path / "folder.nc", out)
    assert done.status in (1, 2), str(done)  # folders of files are for the archive, which is not built
    done.fails(done.status, "folder.nc")
    assert not out.exists()


@pytest.mark.parametrize("path", paths.shared_files("bad"))
def test_shared_bad(path, out):
    must_be_right_or_refused(path, out)


def test_no_permission_to_read(as_nobody):
    folder, run = as_nobody
    shutil.copy(paths.CORPUS / "type_nc4_f4.nc", folder / "secret.nc")
    (folder / "secret.nc").chmod(0o000)
    run("nc2zarr", folder / "secret.nc", folder / "out.zarr").fails(1, "secret.nc", "permission denied")


def test_no_permission_to_write(as_nobody):
    folder, run = as_nobody
    shutil.copy(paths.CORPUS / "type_nc4_f4.nc", folder / "in.nc")
    (folder / "in.nc").chmod(0o644)
    (folder / "locked").mkdir(mode=0o555)
    run("nc2zarr", folder / "in.nc", folder / "locked" / "out.zarr").fails(1, "out.zarr", "permission denied")
    assert not any((folder / "locked").iterdir())


# ---- cut off ----------------------------------------------------------------------------------------

FAMILIES = [
    "type_cdf1_f8.nc",
    "type_cdf2_f4.nc",
    "type_cdf5_i8.nc",
    "cdf1_one_record_f8.nc",
    "type_nc4_f4.nc",
    "filter_zshuf_1.nc",
    "index_v110_gzip.h5",
    "index_v108_raw.h5",
    "strings_shapes.nc",
    "groups_nested.nc",
    "chars_nc4.nc",
]
PLACES = [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0]


@pytest.mark.every
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("family", FAMILIES)
def test_truncated(tmp_path, out, family, place):
    whole = (paths.CORPUS / family).read_bytes()
    path = tmp_path / "cut.nc"
    path.write_bytes(whole[: min(int(len(whole) * place), len(whole) - 1)])
    refused(path, out)
    assert not out.exists()


def test_truncated_says_how_much_is_missing(tmp_path, out):
    whole = (paths.CORPUS / "type_cdf2_f4.nc").read_bytes()
    path = tmp_path / "cut.nc"
    path.write_bytes(whole[:-8])
    refused(path, out, str(len(whole)), str(len(whole) - 8))


# ---- headers that lie -------------------------------------------------------------------------------

LIES = {
    "dimension of 2^31-1": dict(dim_length=2**31 - 1),
    "dimension below zero": dict(dim_length=-1),
    "rank of a million": dict(rank=10**6),
    "rank below zero": dict(rank=-3),
    "rank of 2^31-1": dict(rank=2**31 - 1),
    "dimension that is not there": dict(dimid=7),
    "dimension below the first": dict(dimid=-1),
    "name of 2^31-1": dict(name_length=2**31 - 1),
    "name below zero": dict(name_length=-4),
    "attribute of 2^31-1": dict(att_length=2**31 - 1),
    "attribute below zero": dict(att_length=-1),
    "type 99": dict(type=99),
    "type 0": dict(type=0),
    "data far away": dict(begin=2**31 - 1),
    "data before the file": dict(begin=-400),
    "records of 2^31-2": dict(numrecs=2**31 - 2),
}
LIES_64 = {
    "dimension of 2^62": dict(dim_length=2**62),
    "product beyond 64 bits": dict(dim_length=2**40),
    "data at 2^62": dict(begin=2**62),
    "records of 2^62": dict(numrecs=2**62),
    "rank of 2^40": dict(rank=2**40),
    "attribute of 2^60": dict(att_length=2**60),
    "name of 2^60": dict(name_length=2**60),
}


@pytest.mark.every
@pytest.mark.parametrize("version, lie", [(v, k) for v in (1, 2, 5) for k in LIES] + [(5, k) for k in LIES_64])
def test_false_header(tmp_path, out, version, lie):
    fields = {**LIES, **LIES_64}[lie]
    variables = [("x", "i4", ("x",), np.arange(5)), ("v", "i2", ("t", "x", "x"), np.zeros((3, 5, 5)), {"units": "K"})]
    path = tmp_path / "false.nc"
    path.write_bytes(Cdf(version, {"t": None, "x": 5}, variables, {"title": "t"}, **fields).build())
    refused(path, out, timeout=300)


def test_rank_beyond_32(tmp_path, out):
    dims = {f"d{i}": 1 for i in range(40)}
    path = tmp_path / "deep.nc"
    path.write_bytes(Cdf(2, dims, [("v", "i2", tuple(dims), np.zeros((1,) * 32).reshape((1,) * 32))]).build())
    must_be_right_or_refused(path, out, timeout=300)


@pytest.mark.every
@pytest.mark.parametrize("seed", range(40))
def test_noise_in_a_classic_header(tmp_path, out, seed):
    """Bytes changed at random: refused or converted, never a crash, never without end."""
    rng = np.random.default_rng(seed)
    name = ["cmip_cdf1.nc", "interleaved_cdf5.nc", "attr_numbers_cdf2.nc", "era5_cdf2.nc"][seed % 4]
    data = bytearray((paths.CORPUS / name).read_bytes())
    for _ in range(rng.integers(1, 6)):
        data[rng.integers(4, 600)] = rng.integers(0, 256)
    path = tmp_path / "noise.nc"
    path.write_bytes(data)
    done = tool.nc2zarr(path, out, timeout=300)
    if done.status:
        done.fails(1, "noise.nc")
        assert not tool.opens_as_store(out), str(done)


# ---- chunks that are broken -------------------------------------------------------------------------

FILES = {  # a file of the corpus for each filter, and a variable of two dimensions in it
    "gzip": ("index_v108_gzip.h5", "fixed"),
    "gzip, new index": ("index_v110_gzip.h5", "fixed"),
    "netCDF's gzip": ("filter_zlib9_1.nc", "v1_"),
    "fletcher32": ("filter_flet_1.nc", "v1_"),
    "shuffle and fletcher32": ("filter_zshufflet_1.nc", "v1_"),
    "all of HDF5's": ("plugin_all_deflate.h5", "s_f4"),
    "szip": ("plugin_szip.h5", "s_f4"),
    "zstd": ("plugin_zstd.h5", "s_f4"),
    "blosc": ("plugin_blosc_lz4_1.h5", "s_f8"),
    "bzip2": ("plugin_bzip2.h5", "s_f8"),
    "lz4": ("plugin_lz4.h5", "s_f4"),
    "lzf": ("plugin_lzf.h5", "s_f4"),
    "bitshuffle": ("plugin_bitshuffle_lz4.h5", "s_f4"),
    "bitshuffle zstd": ("plugin_bitshuffle_zstd.h5", "s_f4"),
}


def broken_file(tmp_path, kind, change):
    """A copy in which CHANGE (of stored bytes) has been applied to chunk 2/1 of a variable; and its name."""
    source, prefix = FILES[kind]
    path = tmp_path / "broken.nc"
    shutil.copy(paths.CORPUS / source, path)
    with h5py.File(path, "r+") as f:
        name = next(n for n in f if n.startswith(prefix) and f[n].ndim == 2)
        at = tuple(p * c for p, c in zip((2, 1), f[name].chunks))
        mask, raw = f[name].id.read_direct_chunk(at)
        f[name].id.write_direct_chunk(at, change(bytearray(raw)), mask)
    return path, name


def flip(place):
    """PLACE: a byte's number, or a part of the chunk's length."""

    def change(raw):
        raw[place if isinstance(place, int) else int(len(raw) * place)] ^= 0x55
        return bytes(raw)

    return change


FLIPS = [
    ("gzip", 0.5),
    ("gzip, new index", 0.9999),
    ("netCDF's gzip", 0.5),
    ("fletcher32", 0.5),
    ("shuffle and fletcher32", 0.6),
    ("all of HDF5's", 0.6),
    ("zstd", 0),
    ("blosc", 5),
    ("bzip2", 0.5),
    ("lz4", 0),
    ("bitshuffle", 0),
]


@pytest.mark.every
@pytest.mark.parametrize("options", [[], ["--verify", "none", "-j", "1"]], ids=["default", "unverified"])
@pytest.mark.parametrize("kind, place", FLIPS)
def test_flipped_byte(tmp_path, out, kind, place, options):
    path, name = broken_file(tmp_path, kind, flip(place))
    refused(path, out, f"variable {name}: chunk 2/1: ", options=options)


@pytest.mark.parametrize("verify", ["none", "sample", "full"])
@pytest.mark.parametrize("change", [flip(0), flip(0.5), flip(0.9999), lambda raw: raw[:3]], ids=["first", "middle", "last", "cut"])
@pytest.mark.parametrize("kind", ["fletcher32", "all of HDF5's"])
def test_stored_bytes_with_a_checksum(tmp_path, out, kind, change, verify):
    """A checksum that is the last filter is compared where the bytes are passed on, too."""
    path, name = broken_file(tmp_path, kind, change)
    tool.nc2zarr("--codec", "keep", "--verify", verify, path, out).fails(1, f"variable {name}: chunk 2/1: fletcher32: ")
    assert not tool.opens_as_store(out)


@pytest.mark.parametrize("kind", ["gzip", "shuffle and fletcher32"])
def test_stored_bytes_that_nobody_decoded(tmp_path, out, kind):
    """Verification names the chunk, which the library does not."""
    path, name = broken_file(tmp_path, kind, flip(0.6))
    for options in ["--codec", "keep", "--verify", "full"], ["--check"]:
        done = tool.nc2zarr(*options, path, out).fails(1, path, "through netCDF-C", f"array {name}: chunk 2/1: ")
        assert tool.opens_as_store(out) and ("written, but not verified" in done.err) == ("--check" not in options)


@pytest.mark.every
@pytest.mark.parametrize("kind", FILES)
def test_chunk_cut_short(tmp_path, out, kind):
    path, name = broken_file(tmp_path, kind, lambda raw: bytes(raw[: len(raw) // 2]))
    refused(path, out, f"variable {name}: chunk 2/1: ")


CLAIMS = {  # a filter, and a chunk that says it decodes to very much, or to little
    "zstd": ("zstd", bytes([0x28, 0xB5, 0x2F, 0xFD, 0xE0]) + struct.pack("<Q", 1 << 60) + bytes([1, 0, 0])),
    "lz4": ("lz4", struct.pack(">QI", 1 << 60, 1 << 30) + bytes(20)),
    "bitshuffle": ("bitshuffle", struct.pack(">QI", 1 << 60, 8192) + bytes(20)),
    "bitshuffle zstd": ("bitshuffle zstd", struct.pack(">QI", 1 << 60, 8192) + bytes(20)),
    "blosc": ("blosc", bytes([2, 1, 1, 4]) + struct.pack("<III", 2**31 - 16, 2**20, 40) + bytes(24)),
    "szip": ("szip", struct.pack("<I", 2**32 - 1) + bytes(30)),
    "deflate bomb": ("gzip", zlib.compress(bytes(50_000_000), 9)),
    "deflate too short": ("gzip", zlib.compress(bytes(10))),
    "nothing": ("gzip", b"\0"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_chunk_that_claims_too_much(tmp_path, out, claim):
    kind, raw = CLAIMS[claim]
    path, name = broken_file(tmp_path, kind, lambda _: raw)
    done = refused(path, out, f"variable {name}: chunk 2/1: ", peak=True)
    assert paths.SANITIZED or done.peak < 150 << 20, done.peak


# Blocks of HDF5 metadata that carry a checksum, by their signature: a byte changed in one is noticed.
METADATA = [
    ("cmip_nc4_z.nc", b"OHDR", 1),
    ("groups_nested.nc", b"OHDR", 3),
    ("chars_nc4.nc", b"OHDR", 0),
    ("index_v110_gzip.h5", b"OHDR", 2),
    ("index_v110_gzip.h5", b"FAHD", 0),
    ("index_v110_gzip.h5", b"FADB", 0),
    ("index_v110_raw.h5", b"EAHD", 0),
    ("index_v110_raw.h5", b"EAIB", 0),
    ("index_v110_raw.h5", b"BTHD", 0),
    ("index_v110_gzip.h5", b"BTLF", 0),
    ("attr_many.nc", b"FRHP", 0),
]


@pytest.mark.every
@pytest.mark.parametrize(
    "name, signature, which", METADATA, ids=lambda v: v.decode() if isinstance(v, bytes) else str(v)
)
def test_changed_byte_in_metadata(tmp_path, out, name, signature, which):
    data = bytearray((paths.CORPUS / name).read_bytes())
    at = -1
    for _ in range(which + 1):
        at = data.index(signature, at + 1)
    data[at + 9] ^= 0x10
    path = tmp_path / "changed.nc"
    path.write_bytes(data)
    refused(path, out, timeout=300)


def test_contiguous_data_beyond_the_end(tmp_path, out):
    """HDF5's own header says that all is there; the data's address does not."""
    path = tmp_path / "beyond.nc"
    with h5py.File(path, "w", libver=("earliest", "v108")) as f:
        d = f.create_dataset("psl", data=np.arange(1000, dtype="i4"))
        where = d.id.get_offset()
    data = bytearray(path.read_bytes())
    at = data.find(struct.pack("<QQ", where, 4000))
    assert at > 0
    data[at : at + 8] = struct.pack("<Q", 1 << 40)
    path.write_bytes(data)
    done = refused(path, out)  # HDF5 1.14 does not open it, older versions say nothing
    assert "psl" in done.err or "netCDF-C cannot open it: it is corrupt" in done.err
