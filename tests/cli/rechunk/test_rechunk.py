"""rechunk: what is carried over, plans and counts, results, and what is already there."""

import json
import os
import re
import signal
import subprocess
import time

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs.numcodecs as nc
from zarr.codecs import ZstdCodec

from support import digest, paths, readers, rechunked, store_lint, tool
from support.rechunk_stores import SLOW, make_noise, make_store


def run(*args, **kw):
    return tool.run("rechunk", *args, **kw)


@pytest.fixture(scope="module", params=[3, 2], ids=["v3", "v2"])
def either(request, tmp_path_factory):
    return make_store(tmp_path_factory.mktemp(f"v{request.param}") / "in.zarr", request.param)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("store") / "in.zarr", 3)


# ---- what is carried over -------------------------------------------------------------------------


def node_document(text):
    return {k: v for k, v in json.loads(text).items() if k != "consolidated_metadata"}


def test_without_options_bytes_pass_through(either, out):
    document = rechunked.run(either, out)
    assert {a["plan"]["kind"] for a in document["arrays"]} == {"copy"}
    a, b = ({k: v for k, v in rechunked.files(s).items() if v.strip() != b"{}"} for s in (either, out))
    assert set(a) == set(b)
    for key in set(a) - {".zmetadata"}:
        if os.path.basename(key) in ("zarr.json", ".zarray", ".zattrs", ".zgroup"):
            assert node_document(a[key]) == node_document(b[key]), key
        else:
            assert a[key] == b[key], key


GEOMETRIES = {
    "series": ["--chunks", "time=full,lat=2,lon=2"],
    "maps": ["--chunks", "tas:1x9x12"],
    "prime": ["--chunks", "tas:11x5x7"],
    "in order": ["--chunks", "tas:40x1x12", "--chunks", "model/run/*:3x5"],
    "auto": ["--chunks", "auto:1KiB"],
    "larger than the array": ["--chunks", "tas:64x16x16"],
    "codec": ["--codec", "zstd:1"],
    "none": ["--codec", "none"],
    "blosc": ["--codec", "tas:blosc:zstd:5:bitshuffle"],
    "gzip": ["--codec", "gzip:1", "--chunks", "tas:8x9x4"],
}


@pytest.mark.parametrize("fmt", ["same", "3", "2"])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_everything_is_carried_over(either, out, geometry, fmt):
    options = GEOMETRIES[geometry] + ([] if fmt == "same" else ["--zarr-format", fmt])
    document = rechunked.run(either, out, *options)
    version = 3 if (either / "zarr.json").exists() else 2
    assert document["source"]["zarr_format"] == version
    assert document["target"]["zarr_format"] == (version if fmt == "same" else int(fmt))
    want, got = rechunked.listing(either), rechunked.listing(out)
    if document["target"]["zarr_format"] != version:  # where names and missing values lie is the version's
        for node in [*want.values(), *got.values()]:
            for name in ("names", "fill"):
                node.pop(name, None)
            for name in ("_ARRAY_DIMENSIONS", "_FillValue"):
                node["attributes"].pop(name, None)
    assert got == want
    assert readers.disagreements(out) == []
    assert store_lint.lint(out) == []
    assert document["target"]["nobjects"] == sum(len(files) for _, _, files in os.walk(out))
    assert rechunked.digests(out) == rechunked.digests(either)


def test_dimension_names_cross_versions(either, out):
    fmt = "2" if (either / "zarr.json").exists() else "3"
    rechunked.run(either, out, "--zarr-format", fmt, "--chunks", "tas:5x9x12")
    import xarray as xr

    a, b = (xr.open_zarr(str(p), chunks=None, decode_cf=False) for p in (either, out))
    assert a.sizes == b.sizes and set(a.variables) == set(b.variables)
    assert a["tas"].dims == b["tas"].dims == ("time", "lat", "lon")


def test_coordinates_stay_as_they_are(store, out):
    found = rechunked.arrays(rechunked.run(store, out, "--chunks", "time=5"))
    assert found["time"]["plan"]["kind"] == "copy" and found["time"]["after"]["chunks"] == [40]
    assert found["tas"]["after"]["chunks"][0] == 5
    assert found["model/run/count"]["after"]["chunks"] == [4, 4]


def test_codecs_stay_unless_others_are_asked_for(store, out):
    rechunked.run(store, out, "--chunks", "tas:40x3x4", "--codec", "model/run/count:gzip:2")
    assert readers.zarr_json(out, "tas")["codecs"] == readers.zarr_json(store, "tas")["codecs"]
    assert [c["name"] for c in readers.zarr_json(out, "model/run/count")["codecs"]] == ["bytes", "gzip"]
    assert readers.zarr_json(out, "model/run/flags")["codecs"] == readers.zarr_json(store, "model/run/flags")["codecs"]


def test_the_later_option_wins(store, out):
    found = rechunked.arrays(
        rechunked.run(
            store, out, "--chunks", "tas:1x1x1", "--chunks", "t*s:10x9x12", "--codec", "zstd:9", "--codec", "tas:same"
        )
    )
    assert found["tas"]["after"]["chunks"] == [10, 9, 12]
    assert found["tas"]["after"]["codec"] == found["tas"]["before"]["codec"]
    assert found["model/run/count"]["after"]["codec"] == "zstd:9"


def test_shards_and_back(store, tmp_path):
    one, two, three = (tmp_path / f"{n}.zarr" for n in ("one", "two", "three"))
    found = rechunked.arrays(rechunked.run(store, one, "--shards", "tas:14x8x15"))
    assert found["tas"]["after"]["shards"] == [14, 8, 15] and found["tas"]["after"]["chunks"] == [7, 4, 5]
    assert zarr.open_array(str(one / "tas"), mode="r").shards == (14, 8, 15)
    again = rechunked.arrays(rechunked.run(one, two))  # the source's shards stay
    assert again["tas"]["plan"]["kind"] == "copy" and again["tas"]["after"]["shards"] == [14, 8, 15]
    rechunked.run(one, three, "--shards", "none", "--chunks", "tas:9x9x9")
    assert zarr.open_array(str(three / "tas"), mode="r").shards is None
    for made in (one, two, three):
        assert rechunked.listing(made) == rechunked.listing(store)
        assert store_lint.lint(made) == []


@pytest.mark.parametrize("spec", ["auto", "auto:4KiB"])
def test_shards_auto(store, out, spec):
    found = rechunked.arrays(rechunked.run(store, out, "--chunks", "tas:4x4x4", "--shards", spec))
    assert found["tas"]["after"]["shards"] and found["tas"]["after"]["chunks"] == [4, 4, 4]
    assert rechunked.listing(out) == rechunked.listing(store)


def test_variable_takes_arrays_and_their_groups(either, out):
    document = rechunked.run(either, out, "--variable", "tas,model/run/flags")
    want = rechunked.listing(either)
    assert set(rechunked.arrays(document)) == {"tas", "model/run/flags"}
    assert rechunked.listing(out) == {k: want[k] for k in ("", "tas", "model", "model/run", "model/run/flags")}


@pytest.mark.every
@pytest.mark.parametrize("how", ["::", "folder", "url"])
def test_a_node_of_a_store(either, out, how):
    source = {"::": f"{either}::model/run", "folder": either / "model" / "run", "url": f"file://{either}::model/run"}[
        how
    ]
    rechunked.run(source, f"file://{out}" if how == "url" else out, "--chunks", "2x12")
    want = rechunked.listing(either / "model" / "run")
    assert rechunked.listing(out) == want and set(want) == {"", "count", "flags"}
    assert zarr.open_array(str(out / "flags"), mode="r").chunks == (2, 12)


def test_a_store_that_is_one_array(either, out):
    document = rechunked.run(f"{either}::tas", out, "--chunks", "5x5x5", "--codec", "gzip")
    assert len(document["arrays"]) == 1
    assert rechunked.listing(out) == rechunked.listing(either / "tas")
    assert list(rechunked.digests(out).values()) == [rechunked.digests(either)["tas"]]


def strange(path, fmt=3):
    """An array whose codec nobody here knows, beside one that all know."""
    make_store(path, fmt)
    root = zarr.open_group(str(path), mode="a")
    codec = dict(compressors=nc.LZMA()) if fmt == 3 else dict(compressors=numcodecs.LZMA())
    a = root.create_array("strange", shape=(6, 8), chunks=(3, 3), dtype="i4", **codec)
    a[...] = np.arange(48).reshape(6, 8)
    a.attrs["of"] = "another world"
    zarr.consolidate_metadata(str(path))
    return path


@pytest.mark.parametrize("fmt", [3, 2])
def test_an_unknown_codec_passes_through(tmp_path, out, fmt):
    source = strange(tmp_path / "in.zarr", fmt)
    found = rechunked.arrays(rechunked.run(source, out, "--chunks", "tas:5x5x5"))
    assert found["strange"]["plan"]["kind"] == "copy"
    assert rechunked.listing(out) == rechunked.listing(source)
    chunks = {k: v for k, v in rechunked.files(source / "strange").items() if "z" not in k}
    assert chunks and chunks == {k: v for k, v in rechunked.files(out / "strange").items() if "z" not in k}


@pytest.mark.parametrize(
    "options", [["--chunks", "strange:2x8"], ["--codec", "zstd"], ["--zarr-format", "2"]], ids=" ".join
)
def test_an_unknown_codec_is_refused_by_name_where_it_matters(tmp_path, out, options):
    source = strange(tmp_path / "in.zarr")
    run(*options, source, out).fails(1, "strange", "lzma")
    assert not out.exists()


@pytest.mark.parametrize(
    "options",
    [["--chunks", "2x8"], ["--chunks", "2x8", "--shards", "4x8"], ["--shards", "auto"], ["--sample", "2x8"]],
    ids=" ".join,
)
def test_an_unknown_codec_of_the_only_array_refuses_what_all_are_asked(tmp_path, out, options):
    source = strange(tmp_path / "in.zarr")
    for chosen in ([f"{source}::strange"], ["--variable", "strange", source]):
        run(*options, *chosen, out).fails(1, "lzma", "can only be carried over as it is")
        assert not out.exists()


def test_an_unknown_codec_can_be_left_out(tmp_path, out):
    source = strange(tmp_path / "in.zarr")
    rechunked.run(source, out, "--variable", "tas", "--chunks", "4x4x4", "--codec", "zstd")


def test_an_unknown_type_passes_through(tmp_path, out):
    a = zarr.create_array(
        str(tmp_path / "in.zarr" / "table"),
        shape=(7,),
        chunks=(3,),
        dtype=np.dtype([("a", "<i4"), ("b", "<f8")]),
        zarr_format=2,
        fill_value=None,
    )
    a[...] = np.array([(i, i / 2) for i in range(7)], a.dtype)
    (tmp_path / "in.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    rechunked.run(tmp_path / "in.zarr", out)
    b = zarr.open_array(str(out / "table"), mode="r", zarr_format=2)
    assert b[...].tobytes() == a[...].tobytes()


# ---- plans ----------------------------------------------------------------------------------------


@pytest.mark.every
@pytest.mark.parametrize("options", GEOMETRIES.values(), ids=GEOMETRIES)
def test_the_plan_is_what_is_done(store, out, options):
    before = rechunked.names_below(out.parent)
    plan = rechunked.run(store, out, "--dry-run", *options)
    assert rechunked.names_below(out.parent) == before
    assert plan["target"]["written"] is False and all(a["counted"] is None for a in plan["arrays"])
    done = rechunked.arrays(rechunked.run(store, out, *options))
    for name, a in rechunked.arrays(plan).items():
        b = done[name]
        for key in ("type", "shape", "dimensions", "before", "planned", "decoded_nbytes"):
            assert a[key] == b[key], (name, key)
        for key in ("chunks", "shards", "codec", "nchunks"):
            assert a["after"][key] == b["after"][key], (name, key)
        assert a["after"]["nobjects"] >= b["after"]["nobjects"], name
        assert {k: v for k, v in a["plan"].items() if k != "seconds"} == {
            k: v for k, v in b["plan"].items() if k != "seconds"
        }


def test_a_plan_for_people(store, out):
    done = run("--dry-run", "--chunks", "tas:40x2x2", store, out).ok()
    assert "planned: nothing is written" in done.out and "7x4x5 to 40x2x2" in done.out
    header = next(
        line for line in done.out.splitlines() if "bound" in line and "gap" in line and "reads" in line
    ).split()
    row = next(line for line in done.out.splitlines() if line.split()[:1] == ["tas"] and "%" in line).split()
    assert header[:4] == ["array", "reads", "decodes", "writes"]
    document = rechunked.arrays(rechunked.run(store, out, "--dry-run", "--chunks", "tas:40x2x2"))
    planned = document["tas"]["planned"]
    assert row[1:4] == [str(planned[k]) for k in ("chunk_reads", "chunk_decodes", "chunk_writes")]
    assert document["tas"]["plan"]["reason"] in done.out
    assert "Memory: at most" in done.out and not out.exists()


def test_traffic_is_what_is_counted(tmp_path, out):
    """With every chunk there; and a sweep, which reads once, meets the bound."""
    a = zarr.create_array(
        str(tmp_path / "in.zarr"), shape=(30, 40, 50), chunks=(1, 40, 50), dtype="f8", compressors=ZstdCodec()
    )
    a[...] = np.random.default_rng(0).random((30, 40, 50))
    (found,) = rechunked.run(tmp_path / "in.zarr", out, "--chunks", "30x4x5")["arrays"]
    counted = found["counted"]
    assert counted["chunk_reads"] == counted["chunk_decodes"] == 30 and counted["chunk_writes"] == 100
    assert counted["element_nbytes_read"] == counted["element_nbytes_written"] == a.nbytes
    assert (
        found["plan"]["traffic_nbytes"] == 2 * a.nbytes == found["plan"]["bound_nbytes"] and found["plan"]["gap"] == 0
    )
    assert found["plan"]["kind"] == "sweep"


@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")
def test_a_plan_says_why_it_was_taken(tmp_path, out):
    """The array is too small for a probe: bytes alone decide. The run counts what its plan said."""
    a = zarr.create_array(str(tmp_path / "in.zarr"), shape=(48, 1024, 256), chunks=(1, 1024, 256), dtype="f4", compressors=None)
    a[...] = np.random.default_rng(0).random(a.shape, "f4")
    options = ["--memory", "36MiB", "-j", "1", "--chunks", "48x30x30"]
    (plan,) = rechunked.run(tmp_path / "in.zarr", out, "--dry-run", *options)["arrays"]
    assert plan["plan"]["kind"] != "sweep" and not plan["plan"]["seconds"]
    assert plan["plan"]["reason"].endswith("; with 1 thread no other plan in this memory moves fewer bytes")
    (found,) = rechunked.run(tmp_path / "in.zarr", out, *options)["arrays"]
    assert found["plan"]["kind"] == plan["plan"]["kind"] and found["counted"] == found["planned"]


def test_missing_chunks_are_known_from_empty_ones(store, out):
    found = rechunked.arrays(rechunked.run(store, out, "--chunks", "tas:7x9x12"))["tas"]
    assert found["before"]["missing"] == 9 and found["before"]["nchunks"] == 54
    assert found["counted"]["chunk_reads"] == 45
    assert found["after"]["nchunks"] == 6 and found["after"]["nskipped"] == 1 and found["after"]["nobjects"] == 5
    assert not (out / "tas" / "c" / "2" / "0" / "0").exists()


# ---- results --------------------------------------------------------------------------------------


def test_full_verification_prints_digests(either, out):
    document = rechunked.run(either, out, "--verify", "full", "--chunks", "tas:9x9x2")
    assert document["verification"]["mode"] == "full" and document["verification"]["differences"] == []
    assert document["verification"]["nelements"] == sum(int(np.prod(a["shape"], dtype=int)) for a in document["arrays"])
    values = zarr.open_array(str(either / "tas"), mode="r")[...]
    want = digest.text(digest.fixed([v.tobytes() for v in values.ravel()]))
    assert rechunked.arrays(document)["tas"]["digest"] == want == rechunked.digests(out)["tas"][1]
    shown = run("--verify", "full", either, out.with_name("b.zarr")).ok()
    assert want in shown.out


def test_verify_none_compares_nothing(store, out):
    document = rechunked.run(store, out, "--verify", "none", "--chunks", "tas:9x9x2")
    assert document["verification"]["nelements"] == 0 and all(a["digest"] is None for a in document["arrays"])


def test_a_sample_is_the_default(store, out):
    document = rechunked.run(store, out, "--chunks", "tas:9x9x2")
    assert document["verification"]["mode"] == "sample" and document["verification"]["nelements"] > 0


def test_summary(store, out):
    done = run("--chunks", "tas:9x9x2", store, out).ok()
    assert re.fullmatch(r"rechunk: warning: model/run/flags: 1 of 3 chunks is absent \(0/2\), read as fill; tas: 9 of 54 .*\n", done.err)
    assert f"{out}: Zarr 3 from {store} (Zarr 3)" in done.out
    assert "no difference" in done.out and "7x4x5 to 9x9x2" in done.out and "Not as planned" not in done.out
    verbose = run("-v", "--chunks", "tas:9x9x2", store, out.with_name("b.zarr")).ok()
    assert "Counted, beside what was planned" in verbose.out and "Where the time went" in verbose.out


@pytest.mark.parametrize("looks", [[], ["--statistics"], ["--report", "page.html"]], ids=" ".join)
def test_chunks_that_pass_are_decoded_as_planned(store, out, looks):
    """Those who look at the elements decode them, which the plan knows."""
    document = rechunked.run(store, out, *looks, cwd=out.parent)
    passed = [a for a in document["arrays"] if a["plan"]["kind"] == "copy" and a["planned"]["chunk_reads"] > 0]
    assert passed
    for a in passed:
        assert a["counted"]["chunk_decodes"] == a["planned"]["chunk_decodes"], a["name"]
    assert any(a["counted"]["chunk_decodes"] > 0 for a in passed) == bool(looks)


def test_quiet_says_nothing(store, out):
    done = run("-q", "--chunks", "tas:9x9x2", store, out).ok()
    assert (done.out, done.err) == ("", "")


@pytest.mark.every
@pytest.mark.parametrize(
    "options",
    [["--durable"], ["-j", "3"], ["--memory", "200MB"], ["--progress", "always"], ["--scratch", "."]],
    ids=" ".join,
)
def test_harmless_options_change_nothing(store, out, options):
    rechunked.run(store, out, "--chunks", "tas:9x9x2", *options, cwd=out.parent)
    assert rechunked.listing(out) == rechunked.listing(store)
    assert sorted(os.listdir(out.parent)) == [out.name]


def test_trace_is_a_chrome_trace(store, out, tmp_path):
    rechunked.run(store, out, "--chunks", "tas:9x9x2", "--trace", tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    assert any(e["ph"] == "X" for e in events)


# ---- digests --------------------------------------------------------------------------------------


def test_digests_for_people(store, out):
    rechunked.run(store, out, "--chunks", "tas:9x9x2")
    one, two = run("--digest", store).ok(), run("--digest", out).ok()
    assert one.out == two.out and one.err == ""
    rows = [line.split() for line in one.out.splitlines()]
    assert {name: (dtype, found) for found, name, dtype in rows} == rechunked.digests(store)
    assert all(re.fullmatch("[0-9a-f]{32}", row[0]) for row in rows)
    both = run("--digest", store, out).ok().out
    assert both.count(f"{store}:\n") == both.count(f"{out}:\n") == 1
    assert (
        run("--digest", f"{store}::model/run/count").ok().out.split()[0]
        == rechunked.digests(store)["model/run/count"][1]
    )


def test_digest_of_what_cannot_be_decoded(tmp_path):
    """It is named, all others have theirs, and the status tells that the list is not whole."""
    source = strange(tmp_path / "in.zarr")
    done = run("--digest", source)
    assert done.status == 3
    assert re.search("^not digested +strange", done.out, re.M) and "lzma" in done.err
    document = rechunked.check_document(run("--json", "--digest", source).out)
    rows = {row["name"]: row for row in document["digests"]}
    assert rows["strange"]["digest"] is None and "lzma" in rows["strange"]["not_digested"]
    assert all(row["digest"] and not row["not_digested"] for name, row in rows.items() if name != "strange")
    assert set(rows) == {name for name, node in rechunked.listing(source).items() if "shape" in node}


@pytest.mark.parametrize("options", [["--chunks", "lat=5"], ["--chunks", "auto", "--shards", "auto"]], ids=" ".join)
def test_an_unknown_codec_is_left_out_of_the_chunks_that_all_are_asked(tmp_path, out, options):
    source = strange(tmp_path / "in.zarr")
    zarr.open_group(str(source)).create_array("model/grid", shape=(20, 30), chunks=(4, 4), dtype="i2")[...] = 3
    zarr.consolidate_metadata(str(source))
    done = run(*options, source, out).ok()
    assert len([w for w in done.warnings if "strange keeps its chunks" in w and "lzma" in w]) == 1
    assert rechunked.listing(out) == rechunked.listing(source)


def test_root_level_names(tmp_path, out):
    """/NAME is the array at the root, NAME any of that name."""
    root = zarr.create_group(str(tmp_path / "in.zarr"))
    for name in ("0", "row/0", "row/col/0"):
        root.create_array(name, shape=(8, 8), chunks=(2, 2), dtype="u1")[...] = 1
    found = rechunked.arrays(rechunked.run(tmp_path / "in.zarr", out, "--chunks", "0:8x8", "--chunks", "/0:4x4"))
    assert {k: a["after"]["chunks"] for k, a in found.items()} == {"0": [4, 4], "row/0": [8, 8], "row/col/0": [8, 8]}
    found = rechunked.arrays(rechunked.run(tmp_path / "in.zarr", tmp_path / "b", "--variable", "/0,/row/col/0"))
    assert set(found) == {"0", "row/col/0"}
    run("--variable", "/col/0", tmp_path / "in.zarr", tmp_path / "c").fails(2, "/col/0")


# ---- what is already there ------------------------------------------------------------------------


def test_overwrite_replaces_the_store_and_keeps_what_is_not_its_own(store, out):
    rechunked.run(store, out, "--chunks", "tas:2x2x2")
    (out / "notes.txt").write_text("mine")
    (out / "tas" / "README").write_text("mine too")
    run("--chunks", "tas:4x4x4", store, out).fails(1, "out.zarr", "--overwrite")
    rechunked.run(store, out, "--overwrite", "--variable", "model/run/count", "--zarr-format", "2")
    assert (out / "notes.txt").read_text() == "mine" and (out / "tas" / "README").read_text() == "mine too"
    left = [p for p in rechunked.files(out) if not p.startswith("model") and not p.startswith(".z")]
    assert sorted(left) == ["notes.txt", "tas/README"]
    assert set(rechunked.listing(out)) == {"", "model", "model/run", "model/run/count"}


def test_overwrite_that_fails_early_loses_nothing(store, out, tmp_path):
    rechunked.run(store, out)
    before = rechunked.files(out)
    run("--overwrite", tmp_path / "absent.zarr", out).fails(1, "absent.zarr")
    run("--overwrite", "--chunks", "nosuch=3", store, out).fails(2, "nosuch")
    run("--overwrite", "--memory", "1MiB", store, out).fails(1, "memory")
    assert rechunked.files(out) == before


def test_a_folder_of_other_things_is_kept(store, out):
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    run(store, out).fails(1, "out.zarr")
    run("--overwrite", store, out)
    assert (out / "thesis.tex").read_text() == "years of work"


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    return make_noise(tmp_path_factory.mktemp("slow") / "in.zarr")


def stopped(source, out, number, *options, objects=5):
    """Stopped by signal NUMBER once some chunks are there; returns what it said."""
    process = subprocess.Popen(
        [tool.program("rechunk"), *SLOW, *options, str(source), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=tool.environment(),
    )
    end = time.monotonic() + 300
    while sum(len(f) for _, _, f in os.walk(out)) < objects and process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    process.send_signal(number)
    printed, said = process.communicate(timeout=300)
    said = tool.spoken(said)
    assert process.returncode == -number, f"too fast to be stopped: {said}"
    assert printed == ""
    return said


@pytest.mark.few
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_stopped_and_resumed(slow, out, number):
    said = stopped(slow, out, number)
    name = signal.Signals(number).name
    assert said == f"rechunk: {out}: stopped by {name}; the same command with --resume goes on\n"
    assert not tool.opens_as_store(out)
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file() and not p.name.startswith(".")}
    for dry in (["--dry-run"], []):
        run(*SLOW, *dry, slow, out).fails(1, "out.zarr", "--resume")
        run(*SLOW, *dry, "--codec", "zstd:18", "--resume", slow, out).fails(1, "--codec")
    run(*SLOW, "--dry-run", "--resume", slow, out).ok()
    rechunked.run(slow, out, *SLOW, "--resume", "--verify", "full", "-j", "2", "--memory", "300MiB")
    after = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p in before}
    assert after == before or any("shard" in str(p) for p in before)
    assert rechunked.listing(out) == rechunked.listing(slow)
    assert not list(out.rglob(".chunkmill*")) and os.listdir(out.parent) == [out.name]


def test_resume_of_nothing_starts_and_of_what_is_complete_does_nothing(store, out):
    rechunked.run(store, out, "--resume")
    before = rechunked.files(out)
    assert "complete, nothing to resume" in run("--resume", store, out).ok().err
    document = json.loads(run("--resume", "--json", store, out).ok().out)
    assert document["outcome"] == "complete" and not document["target"]["resumable"]
    assert rechunked.files(out) == before


def test_arrays_that_are_only_copied_are_planned_and_counted(tmp_path, out):
    source = tmp_path / "in.zarr"
    zarr.create_array(source, data=np.ones((4, 6), "f4"), chunks=(2, 2), name="v", fill_value=0)
    document = json.loads((source / "v" / "zarr.json").read_text())
    (source / "v" / "zarr.json").write_text(json.dumps(document | {"codecs": [{"name": "mystery"}]}))
    assert "  6 files and those of metadata" in run("--dry-run", source, out).ok().out
    for more in (["--dry-run"], []):
        (a,) = rechunked.run(source, out, *more)["arrays"]
        assert a["after"]["nobjects"] == 6 and a["planned"]["chunk_reads"] == a["planned"]["chunk_writes"] == 6
        assert a["counted"] == (None if more else a["planned"])


@pytest.mark.parametrize("verify", ["none", "sample", "full"])
def test_a_complete_store_of_another_layout_is_no_success_of_resume(tmp_path, out, verify):
    source = tmp_path / "in.zarr"
    zarr.create_array(source, data=np.arange(4096.0).reshape(64, 64), chunks=(16, 16))
    asked = ["--verify", verify, "--chunks", "32x32", "--shards", "64x64", "--codec", "gzip:3"]
    run("-q", *asked, source, out).ok()
    before = rechunked.files(out)
    run("--resume", *asked, source, out).ok()
    run("--resume", "--verify", verify, source, out).ok()
    for other, said in (
        (["--chunks", "16x16"], "chunks 32x32, not 16x16"),
        (["--shards", "32x32"], "shards 64x64, not 32x32"),
        (["--shards", "none"], "has shards"),
        (["--codec", "gzip:4"], "gzip:3, not gzip:4"),
    ):
        done = run("--resume", *asked, *other, source, out).fails(1, "out.zarr", "complete, but", said, "--overwrite")
        assert done.err.count("\n") == 1
    run("--resume", "--verify", verify, "--zarr-format", "2", source, out).fails(1, "format 3, not 2")
    assert rechunked.files(out) == before


def test_overwrite_begins_again(slow, store, out):
    stopped(slow, out, signal.SIGINT)
    rechunked.run(store, out, "--overwrite")
    assert rechunked.listing(out) == rechunked.listing(store)


def test_resume_with_another_source_is_refused(slow, store, out):
    stopped(slow, out, signal.SIGINT)
    run(*SLOW, "--resume", store, out).fails(1, "out.zarr")
