"""The loaders of scripts/engines under readbench: what they read is what the native engine delivers."""

import collections
import json
import math
import shlex
import sys

import netCDF4
import numpy as np
import pytest
import zarr

from support import paths
from support import readbench as rb

ENGINES = paths.ROOT / "scripts" / "engines"
SHAPE, NAMES = (10, 18, 22), ("time", "lat", "lon")
SAMPLE = (2, 5, 6)
BOX = ["--sample", "time=2,lat=5,lon=6"]
rng = np.random.default_rng(8)
DATA = {
    "t": rng.standard_normal(SHAPE).astype("f4"),
    "mask": rng.integers(-99, 99, SHAPE[1:]).astype("i2"),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    root = tmp_path_factory.mktemp("engines")
    for fmt in (2, 3):
        group = zarr.create_group(str(root / f"v{fmt}.zarr"), zarr_format=fmt)
        for name, values in DATA.items():
            dims = list(NAMES[-values.ndim :])
            kw = {"dimension_names": dims} if fmt == 3 else {"attributes": {"_ARRAY_DIMENSIONS": dims}}
            chunks = (4, 7, 8)[-values.ndim :]
            group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, **kw)[...] = values
    with netCDF4.Dataset(root / "file.nc", "w") as ds:
        for name, n in zip(NAMES, SHAPE):
            ds.createDimension(name, n)
        for name, values in DATA.items():
            v = ds.createVariable(name, values.dtype, NAMES[-values.ndim :])
            v.set_auto_maskandscale(False)
            v.scale_factor = np.float32(2)  # what is stored is wanted
            v[:] = values
    return root


def command(script, folder, *options):
    """A loader whose requests and answers are kept, for each worker."""
    loader = shlex.join([sys.executable, "-B", "-W", "ignore", str(ENGINES / script), *options])
    asked, told = (shlex.quote(str(folder / f"{name}.")) for name in ("asked", "told"))
    return f"exec:tee {asked}$$ | {loader} | tee {told}$$"


def conversations(folder):
    """(requests, answers) of each worker, without the greetings."""
    found = []
    for path in sorted(folder.glob("asked.*")):
        requests, answers = (
            [json.loads(line) for line in p.read_text().splitlines()]
            for p in (path, path.with_name(path.name.replace("asked", "told")))
        )
        assert requests[0]["protocol"] == 1 and answers[0] == {"ready": True}
        assert len(requests) == len(answers)
        found.append((requests[0], requests[1:], answers[1:]))
    return found


def batch_bytes(request, wholes):
    """Parts one after the other, each sample followed by zeros up to the size of a whole one."""
    text = b""
    for part, whole in zip(request["parts"], wholes):
        values = DATA[part["variable"]]
        for start, shape in zip(part["start"], part["shape"]):
            one = rb.delivered(values[rb.box(start, shape)])
            text += one + bytes(math.prod(whole) * values.itemsize - len(one))
    return text


ROWS = [
    ("zarr_python.py", "v2.zarr", ["--mode", "threads", "--workers", 2]),
    ("zarr_python.py", "v3.zarr", ["--mode", "processes", "--workers", 2]),
    ("zarr_python.py", "v3.zarr", ["--mode", "sync", "--order", "all", "--batches", 100]),
    ("xarray_engine.py", "v3.zarr", ["--workers", 1]),
    ("xarray_engine.py", "v2.zarr", ["--workers", 1, "--order", "sequential"]),
    ("xarray_engine.py", "file.nc", ["--workers", 1, "--lags", "0,3"]),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "script, name, args", ROWS, ids=lambda row: row if isinstance(row, str) else " ".join(map(str, row))
)
def test_a_loader_reads_what_the_native_engine_delivers(stores, tmp_path, script, name, args):
    given = [*BOX, "--variable", "t,mask", "--batch", 3, "--batches", 5, "--epochs", 2, *args]
    engine = ["--engine", command(script, tmp_path, "--checksum")]
    run = ["--step-time", "0ms", *given, *engine, "--out", tmp_path / "out", stores / name]
    session = rb.Report(rb.readbench(*run), tmp_path / "out").only
    native = rb.measure(tmp_path / "native", stores / name, *given, program=rb.BARE).only
    rb.same_bytes(native, DATA)

    wanted = collections.defaultdict(list)
    for row in native.logged:
        wanted[row[0], row[2]].append(row)
    answered = {}
    for greeting, requests, answers in conversations(tmp_path):
        assert greeting["store"] == str(stores / name) and greeting["batch"] == 3
        for request, answer in zip(requests, answers):
            text = batch_bytes(request, greeting["sample"])
            assert answer["crc32c"] == rb.Crc(text)
            rows = sorted(wanted[request["epoch"], request["batch"]], key=lambda r: (r[5], r[3]))
            boxes = [
                (tuple(start), tuple(shape))
                for part in request["parts"]
                for start, shape in zip(part["start"], part["shape"])
            ]
            assert boxes == [(r[8], r[9]) for r in rows]
            answered[request["epoch"], request["batch"]] = answer["nbytes"]
    assert set(answered) == set(wanted)
    # Batches, samples and bytes are those of the answers.
    assert {(b["epoch"], b["number"]): b["logical_nbytes"] for b in session.batches} == answered
    assert session.counts["samples"] == native.counts["samples"]
    assert session.counts["logical_nbytes"] == sum(answered.values())
    assert session.engine.startswith("exec:") and session.counts["failed_batches"] == 0
    # A loader's decoding is unknown: nothing is made up.
    assert session.counts["decoded"] == 0 or session.counts["decoded"] is None


CHECKED = [
    ("zarr_python.py", "v2.zarr", ["--mode", "processes", "--order", "all", "--batches", 100]),
    ("xarray_engine.py", "file.nc", ["--mode", "threads", "--workers", 1, "--lags", "0,3"]),
]


@pytest.mark.parametrize("script, name, args", CHECKED, ids=lambda row: row if isinstance(row, str) else "")
def test_a_loaders_bytes_are_validated_by_its_checksums(stores, tmp_path, script, name, args):
    given = [*BOX, "--variable", "t,mask", "--batch", 3, "--batches", 5, "--epochs", 1, "--step-time", "0ms", *args]
    engine = ["--engine", command(script, tmp_path, "--checksum"), "--validate", "checksum"]
    report = rb.Report(rb.readbench(*given, *engine, "--out", tmp_path / "out", stores / name), tmp_path / "out")
    session, device = report.only, report.only.summary["validation"]
    uncounted = "chunks for the samples drawn; this engine does not count the chunks read"
    assert (uncounted in report.result.out) == name.endswith(".zarr")  # the file is not chunked
    assert device["batches"] == len(session.batches) and device["mismatches"] == 0
    assert device["nbytes"] == session.counts["logical_nbytes"] > 0


@pytest.mark.parametrize(
    "answer, status, wanted",
    [
        ('"crc32c": 305419896', 3, ["batch 0: the loader's checksum is not that of what the store holds", "4 diff"]),
        ('"seconds": 0', 2, ["--validate checksum: batch 0", 'no "crc32c"']),
    ],
    ids=["other bytes", "none"],
)
def test_a_loader_that_delivers_something_else_is_told(stores, answer, status, wanted):
    loops = 'while read -r l; do n=${l#*batch\\":}; echo "{\\"batch\\":${n%%,*},\\"nbytes\\":8,@}"; done'
    script = "read -r l; echo '{\"ready\":true}'; " + loops.replace("@", answer.replace('"', '\\"'))
    args = [*BOX, "--variable", "t", "--batch", 2, "--batches", 4, "--epochs", 1, "--workers", 1, "--step-time", "0ms"]
    engine = ["--engine", f"exec:{script}", "--validate", "checksum", "--no-out"]
    result = rb.readbench(*args, *engine, stores / "v3.zarr", status=status)
    assert all(words in result.err for words in wanted), str(result)


def test_a_loaders_own_time_is_the_storage_stage(stores, tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(
        "import json, sys, time\n"
        "input()\n"
        'print(json.dumps({"ready": True}), flush=True)\n'
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n"
        "    time.sleep(0.03)\n"
        '    answer = {"batch": request["batch"], "nbytes": 1000, "seconds": 0.02}\n'
        "    print(json.dumps(answer), flush=True)\n"
    )
    args = [*BOX, "--variable", "t", "--batch", 2, "--batches", 4, "--epochs", 1, "--workers", 1, "--step-time", "0ms"]
    engine = ["--engine", f"exec:{sys.executable} -S {script}"]
    session = rb.Report(
        rb.readbench(*args, *engine, "--out", tmp_path / "out", stores / "v3.zarr"), tmp_path / "out"
    ).only
    stages = [b["storage_ns"] + b["decode_ns"] + b["assemble_ns"] + b["convert_ns"] for b in session.batches]
    assert all(0.02e9 <= b["storage_ns"] <= 0.0201e9 for b in session.batches)
    assert all(0.03e9 <= s <= b["end_ns"] - b["begin_ns"] + 1e6 for s, b in zip(stages, session.batches))
    assert session.training["wait"]["p50"] >= 0.029
    assert session.counts["logical_nbytes"] == 4000


STAYS = [
    ["--cast", "float32"],
    ["--device", "host"],
    ["--log-samples"],
    ["--validate", "full"],
    ["--loader", "planned"],
]


@pytest.mark.every
@pytest.mark.parametrize("args", STAYS, ids=" ".join)
def test_what_cannot_be_done_with_anothers_data_is_refused(stores, tmp_path, args):
    engine = ["--engine", "exec:false"]
    rb.readbench(*BOX, *args, *engine, "--out", tmp_path / "out", stores / "v3.zarr", status=2).fails(2, "--engine exec")
    assert not (tmp_path / "out").exists()


def test_engines_side_by_side(stores, tmp_path):
    """One sweep: the native engine and a loader of zarr-python on the same samples."""
    loader = shlex.join([sys.executable, "-B", str(ENGINES / "zarr_python.py")])
    args = [*BOX, "--variable", "t", "--batch", 3, "--batches", 8, "--epochs", 2, "--workers", 1, "--step-time", "0ms"]
    sweep = ["--sweep", f"engine=native,exec:{loader}"]
    report = rb.Report(rb.readbench(*args, *sweep, "--out", tmp_path / "out", stores / "v3.zarr"), tmp_path / "out")
    assert [s.engine.split(":")[0] for s in report.sessions] == ["native", "exec"]
    assert report.sessions[0].counts["logical_nbytes"] == report.sessions[1].counts["logical_nbytes"]
    assert report.sessions[1].ratio < 1 and report.document["best"] == 0
