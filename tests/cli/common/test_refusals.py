"""Refusals come before anything is written, erased or changed in meaning."""
import json

import netCDF4
import numpy as np
import pytest
import zarr

from support import tool


@pytest.fixture
def fields(tmp_path):
    path = tmp_path / "fields.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 100)
        ds.createDimension("y", 30)
        data = np.arange(3000).reshape(100, 30)
        ds.createVariable("x", "f8", ("x",))[:] = np.arange(100)
        ds.createVariable("chunked", "i4", ("x", "y"), chunksizes=(7, 8), zlib=True)[:] = data
        ds.createVariable("plain", "i4", ("x", "y"), contiguous=True)[:] = data
        far = ds.createVariable("far", "f4", ("x", "y"), fill_value=9.96921e36)
        far.set_auto_mask(False)
        far[:] = data % 3
        near = ds.createVariable("near", "f4", ("x", "y"), fill_value=-1)
        near.set_auto_mask(False)
        near[:] = data % 3 - 1
        packed = ds.createVariable("packed", "i1", ("x", "y"), fill_value=-1)
        packed.set_auto_maskandscale(False)
        packed.setncatts({"scale_factor": 0.5, "add_offset": 1.0, "_Unsigned": "true"})
        packed[:] = data.astype("i1")
        ds.createVariable("text", str, ("x",))[:] = np.array([str(i) for i in range(100)], object)
    return path


# ---- an old store outlives a refusal ----------------------------------------------------------------

@pytest.mark.every
@pytest.mark.parametrize("options", [
    ["--memory", "1MiB"], ["--fill-value", "near:words"], ["--rename", "near=far/near"], ["--dtype", "far:int16"],
    ["--chunks", "near:0x1"], ["--fill-value", "text:x"],
], ids=" ".join)
def test_overwrite_erases_nothing_that_it_cannot_replace(fields, out, options):
    tool.nc2zarr(fields, out).ok()
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    tool.nc2zarr("--overwrite", *options, fields, out).fails(1 if "--memory" in options else 2)
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before


# ---- options without effect -------------------------------------------------------------------------

TWO = ["--variable", "near,plain"]
SAMPLES = {
    "all are given": ([*TWO, "--chunks", "x=10,y=10"], "--chunks says the chunks of"),
    "by name": ([*TWO, "--chunks", "near:10x10", "--chunks", "plain:10x10"], "--chunks says"),
    "of the source": (["--chunks", "source", "--variable", "chunked"], "--chunks says"),
    "bytes that are kept": (["--variable", "chunked", "--codec", "keep"], "--codec says the chunks of chunked"),
    "bytes that cannot be kept": (["--variable", "plain", "--codec", "keep"], None),
    "one dimension is left": ([*TWO, "--chunks", "x=10"], None),
    "one array is left": ([*TWO, "--chunks", "near:10x10"], None),
    "an array of one dimension is left": (["--variable", "near,text", "--chunks", "x=10,y=10"], None),
    "a size": ([*TWO, "--chunks", "auto:4KiB"], None),
    "none is": ([], None),
}


@pytest.mark.every
@pytest.mark.parametrize("options, sentence", SAMPLES.values(), ids=SAMPLES)
def test_a_sample_that_chooses_no_chunks(fields, out, options, sentence):
    done = tool.nc2zarr("--sample", "x=20,y=5", *options, fields, out)
    if sentence is None:
        done.ok()
    else:
        done.fails(2, f"--sample has no effect: {sentence}")
        assert not out.exists()


def test_a_sample_for_a_coordinate_alone(fields, out, tmp_path):
    """rechunk cuts coordinates by it too, beside arrays whose chunks are given."""
    tool.nc2zarr("--variable", "near", fields, out).ok()
    tool.run("rechunk", "--sample", "x=20", "--chunks", "10x10", out, tmp_path / "b.zarr").ok()


@pytest.mark.parametrize("options", [(), ("--codec", "same")], ids=["nothing else", "same"])
def test_rechunk_cuts_a_file_for_a_sample(fields, out, tmp_path, options):
    """Its chunks stay where nothing says otherwise, and a sample does."""
    choice = ("--variable", "chunked", "--sample", "x=20,y=5")
    tool.nc2zarr(*choice, fields, tmp_path / "a.zarr").ok()
    tool.run("rechunk", *choice, *options, fields, out).ok()
    grids = [json.loads((store / "chunked/zarr.json").read_text())["chunk_grid"] for store in (tmp_path / "a.zarr", out)]
    assert grids[0] == grids[1]
    with netCDF4.Dataset(fields) as ds:
        assert grids[1]["configuration"]["chunk_shape"] != ds["chunked"].chunking()


@pytest.mark.parametrize("options, by", [(("--chunks", "source"), "--chunks"), (("--codec", "keep"), "--codec")])
def test_rechunk_of_a_file_whose_chunks_stay(fields, out, options, by):
    done = tool.run("rechunk", "--variable", "chunked", "--sample", "x=20,y=5", *options, fields, out)
    done.fails(2, f"--sample has no effect: {by} says the chunks of chunked")


# ---- missing values ---------------------------------------------------------------------------------

@pytest.mark.parametrize("options", [["--dtype", "far:int16"], ["--dtype", "far:uint8"], ["--unpack", "packed", "--dtype", "packed:int16"]],
                         ids=" ".join)
def test_integers_that_cannot_say_missing(fields, out, options):
    """Zero instead would make every real zero missing."""
    tool.nc2zarr(*options, fields, out).fails(2, "missing value")
    assert not out.exists()


def test_integers_that_can(fields, out):
    tool.nc2zarr("--dtype", "near:int8", "--verify", "full", fields, out).ok()
    near = zarr.open(str(out))["near"]
    assert near.dtype == "int8" and near.attrs["_FillValue"] == -1
    assert np.array_equal(near[:], np.arange(3000).reshape(100, 30) % 3 - 1)


def test_unpack_unsigned(fields, out):
    tool.nc2zarr("--unpack", "packed", "--verify", "full", fields, out).ok()
    stored = np.arange(3000).astype("u1").reshape(100, 30)
    want = np.where(stored == 255, np.nan, stored * 0.5 + 1.0)
    assert np.array_equal(zarr.open(str(out))["packed"][:], want, equal_nan=True)


@pytest.mark.parametrize("value", ["1e300", "-1e39"])
def test_a_fill_value_beyond_its_type(fields, out, value):
    tool.nc2zarr("--fill-value", f"near:{value}", fields, out).fails(2, "near", "float32")


@pytest.mark.parametrize("options", [["--fill-value", "text:x"], ["--dtype", "text:float32"], ["--keepbits", "text:3"], ["--unpack", "text"]],
                         ids=" ".join)
def test_options_for_numbers_and_a_variable_of_text(fields, out, options):
    said = tool.nc2zarr(*options, fields, out).fails(2, options[0], "text")
    assert "no chosen variable" not in said.err


@pytest.mark.parametrize("dtype", ["bool", "string", "complex64"])
def test_types_that_no_number_becomes(fields, out, dtype):
    tool.nc2zarr("--dtype", f"near:{dtype}", fields, out).fails(2, "near", f"cast to {dtype}")


# ---- subsets ----------------------------------------------------------------------------------------

@pytest.mark.every
@pytest.mark.parametrize("spec, want", [
    ("-9223372036854775808:", slice(None)), (":9223372036854775807", slice(None)), ("-5:", slice(95, None)), (":-97", slice(3)),
    ("::9223372036854775808", slice(0, 1)), ("7::18446744073709551615", slice(7, 8)), ("::4611686018427387904", slice(0, 1)),
    ("3:90:40", slice(3, 90, 40)), ("::99", slice(None, None, 99)), ("95..1000", slice(95, None)), ("20..10", slice(10, 21)),
])
def test_odd_bounds_and_steps(fields, out, spec, want):
    tool.nc2zarr("--subset", f"x={spec}", "--verify", "full", fields, out).ok()
    whole = np.arange(3000).reshape(100, 30)
    for name in ("chunked", "plain"):
        assert np.array_equal(zarr.open(str(out))[name][:], whole[want])
    assert list(zarr.open(str(out))["text"][:]) == [str(i) for i in range(100)][want]


@pytest.mark.every
@pytest.mark.parametrize("spec", ["-9223372036854775809:", ":18446744073709551616", "::-1", "::0", "nan..5", "..inf", "5", "1:2:3:4"])
def test_bounds_that_mean_nothing(fields, out, spec):
    tool.nc2zarr("--subset", f"x={spec}", fields, out).fails(2, f"--subset x={spec}")


# ---- names of outputs -------------------------------------------------------------------------------

ENDINGS = ("nc", "nc4", "cdf", "h5", "hdf5", "hdf", "tar", "grib", "NC")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_name_of_another_format_is_refused(fields, tmp_path, ending):
    store, out = tmp_path / "in.zarr", tmp_path / f"new.{ending}"
    tool.nc2zarr("-q", fields, store).ok()
    for program, args in (("nc2zarr", (fields,)), ("rechunk", (store,)), ("nc2zarr", (fields, fields)),
                          ("nc2zarr", ("--dry-run", fields))):
        result = tool.run(program, *args, out).fails(2)
        assert result.err == (f"{program}: {out}: {program} writes a Zarr store, a folder, not a .{ending} file; "
                              "name the output new.zarr\n")
    assert not out.exists()


def test_names_of_outputs_that_are_good(fields, tmp_path):
    """A forgotten output, references, an ending twice; a folder that is there and an output that is read are not new."""
    tool.nc2zarr(fields, fields).fails(2, "name the output fields.zarr, after all inputs")
    tool.nc2zarr("--virtual", "json", fields, tmp_path / "r.nc").fails(2, "references, a JSON document, not a .nc file; "
                                                                          "name the output r.json")
    tool.nc2zarr(fields, tmp_path / "a.zarr.nc").fails(2, "name the output a.zarr")
    tool.nc2zarr("--virtual", "json", fields, tmp_path / "r.zip").fails(2, "not a .zip file; name the output r.json")
    (tmp_path / "old.nc").mkdir()
    tool.nc2zarr("-q", "--overwrite", fields, tmp_path / "old.nc").ok()
    tool.nc2zarr("-q", "--check", fields, tmp_path / "old.nc").ok()


# ---- options and outputs that mean nothing ------------------------------------------------------------


def test_allow_without_anything_that_it_could_allow(fields, tmp_path):
    store, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    tool.nc2zarr("-q", fields, store).ok()
    for args in (("nc2zarr", fields, out), ("nc2zarr", fields, fields, out), ("rechunk", store, out), ("rechunk", "--digest", store),
                 ("chunkcalc", store), ("readbench", "--no-out", "--sample", "4", store)):
        tool.run(args[0], "--allow", "/data", *args[1:]).fails(2, "--allow /data: is not used")
    assert not out.exists()
    tool.run("rechunk", "--allow", "/data", tmp_path / "refs.json", out).fails(1, "refs.json")


@pytest.mark.parametrize("bucket", ["s3://bucket", "s3://bucket/"])
def test_a_whole_bucket_is_no_output(fields, bucket):
    """Its lock would lie in another bucket."""
    for args in (("-q", fields, bucket), ("-q", "--dry-run", fields, bucket), ("--consolidate", bucket)):
        tool.nc2zarr(*args).fails(2, "s3://bucket", "a whole bucket", "s3://bucket/NAME.zarr")


@pytest.mark.parametrize("ending", ["nc", "nc4", "cdf", "h5", "he5", "hdf5", "NC"])
def test_a_folder_is_searched_for_all_endings(fields, tmp_path, ending):
    folder, out = tmp_path / "in", tmp_path / "out.zarr"
    folder.mkdir()
    tool.nc2zarr(folder, out).fails(1, f".{ending.lower()}")
    (folder / f"x.{ending}").symlink_to(fields)
    tool.nc2zarr("-q", folder, out).ok()


def test_attributes_that_are_not_unicode(fields, tmp_path):
    """Half of a surrogate pair, and bytes that are not UTF-8: neither becomes another text."""
    store, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    tool.nc2zarr("-q", "--no-consolidate", fields, store).ok()
    document = (store / "zarr.json").read_bytes()
    for text in (b"x\\ud800y", b"caf\xe9"):
        (store / "zarr.json").write_bytes(document.replace(b'"attributes": {', b'"attributes": {"a": "' + text + b'", ', 1).replace(b'", }', b'"}'))
        assert text in (store / "zarr.json").read_bytes()
        tool.run("rechunk", store, out).fails(1, "zarr.json: JSON", "at byte")
    assert not out.exists()


# ---- links to nothing -----------------------------------------------------------------------------------


def test_a_link_to_nothing_among_inputs_is_told(fields, tmp_path):
    """It may have been a folder of files."""
    (tmp_path / "in" / "2000").mkdir(parents=True)
    (tmp_path / "in" / "2000" / "a.nc").symlink_to(fields)
    (tmp_path / "in" / "2000" / "notes.txt").symlink_to("nowhere")
    (tmp_path / "in" / "2001").symlink_to("nowhere")
    for inputs in (tmp_path / "in", f"{tmp_path}/in/*/*.nc", f"{tmp_path}/in/**/a.nc"):
        done = tool.nc2zarr("-q", inputs, tmp_path / "out.zarr")
        assert done.status == 4 and "in/2001: No such file" in done.err.replace("\n    ", " "), str(done)
    tool.nc2zarr("-q", f"{tmp_path}/in/2000/*.nc", tmp_path / "out.zarr").ok()


@pytest.mark.parametrize("name", ["w", "w/zarr.json", "g/h/w"])
def test_a_link_to_nothing_in_a_store_is_not_left_out(fields, tmp_path, name):
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", fields, store).ok()
    before = (store / "zarr.json").read_bytes()
    (store / name).parent.mkdir(parents=True, exist_ok=True)
    (store / name).symlink_to("nowhere")
    tool.nc2zarr("--consolidate", store).fails(1, f"{name}: is a symbolic link to nothing")
    assert (store / "zarr.json").read_bytes() == before
    (store / name).unlink()
    tool.nc2zarr("--consolidate", store).ok()


@pytest.mark.parametrize("out", ["/proc/x.zarr", "/proc/x/y.zarr", "/proc/x.zarr.zip", "icechunk:/proc/x"])
def test_a_place_that_takes_no_folders(fields, out):
    """It says that nothing is there, as if the folder above had just been removed."""
    tool.nc2zarr(fields, out).fails(1, "/proc/x", "not permitted")
