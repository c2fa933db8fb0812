"""chunkmill.record: what zarr-python and xarray read is written down, and readbench reads the same again."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
import zarr

from support import paths, tool

PACKAGE = paths.ROOT / "tools" / "python"
SHAPE, CHUNKS = (24, 30, 40), (5, 10, 16)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("record") / "a.zarr"
    values = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)
    data = xr.Dataset({n: (("time", "lat", "lon"), values + i) for i, n in enumerate(("t", "u"))})
    data.to_zarr(path, encoding={n: {"chunks": CHUNKS} for n in ("t", "u")}, consolidated=False)
    return path


def python(code, cwd, *words, env=None, module=()):
    environment = os.environ | {"PYTHONPATH": str(PACKAGE)} | (env or {})
    script = cwd / "script.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *module, script, *map(str, words)],
        cwd=cwd, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


READ = """
import sys, chunkmill, xarray as xr
ds = xr.open_zarr(chunkmill.record(sys.argv[1], "log"), chunks=None, consolidated=False)
for k in range(6):
    ds.t[k:k + 4, 3:13, 2 * k:2 * k + 8].load()
"""


def count_chunks(boxes):
    return sum(
        np.prod([(b - 1) // c - a // c + 1 for (a, b), c in zip(box, CHUNKS)], dtype=int) for box in boxes
    )


def test_a_log_has_what_was_read(store, tmp_path):
    python(READ, tmp_path, store)
    found = lines(tmp_path / "log")
    assert found[0]["chunkmill"] == "access" and found[0]["version"] == 1
    boxes = [line["box"] for line in found if line.get("array") == "t" and "box" in line]
    assert boxes == [[[k, k + 4], [3, 13], [2 * k, 2 * k + 8]] for k in range(6)]
    requests = [line for line in found if line.get("key", "").startswith("t/c/")]
    assert len(requests) == count_chunks(boxes)
    for line in requests:
        assert line["nbytes"] == (store / line["key"]).stat().st_size
        assert line["read"] in {b["read"] for b in found if "box" in b}
    assert not any("box" in line and line["array"] == "u" for line in found)


def replay(cwd, *words):
    done = tool.run("readbench", "--no-out", "--json", "--replay", "log", *words, cwd=cwd)
    assert done.status == 0, done.err
    return json.loads(done.out)


def test_readbench_reads_it_again(store, tmp_path):
    python(READ, tmp_path, store)
    report = replay(tmp_path, "--epochs", "1", store)
    session = report["sessions"][0]
    boxes = [line["box"] for line in lines(tmp_path / "log") if line.get("array") == "t" and "box" in line]
    assert session["counts"]["samples"] == 6
    assert session["counts"]["chunks"] == count_chunks(boxes)
    assert session["order"] == "recorded" and session["loader"]["workers"] == 1
    assert any("6 reads of t, 1 at a time by 1 process" in note for note in report["notes"])
    logged = tool.run("readbench", "--replay", "log", "--epochs", "1", "--log-samples", "--out", "out", store,
                      cwd=tmp_path)  # fmt: skip
    assert logged.status == 0, logged.err
    starts = [line.split(",") for line in (tmp_path / "out" / "samples.csv").read_text().splitlines()[1:]]
    assert len(starts) == 6


@pytest.mark.long
def test_the_same_elements_of_other_chunks(store, tmp_path):
    python(READ, tmp_path, store)
    made = tool.run("rechunk", "--chunks", "time=4,lat=10,lon=8", store, "b.zarr", cwd=tmp_path)
    assert made.status == 0, made.err
    report = replay(tmp_path, "--epochs", "1", "b.zarr")
    assert report["sessions"][0]["counts"]["samples"] == 6
    assert any("had other chunks when it was recorded" in note for note in report["notes"])


@pytest.mark.long
def test_variables_that_are_read_alike_are_one_sample(store, tmp_path):
    python(READ.replace("ds.t[", "ds[['t', 'u']].isel(time=slice(").replace("k:k + 4, 3:13, 2 * k:2 * k + 8]", "k, k + 4)).load();#"),
           tmp_path, store)  # fmt: skip
    report = replay(tmp_path, "--epochs", "1", store)
    assert sorted(p["variable"] for p in report["sessions"][0]["sample"]) == ["t", "u"]


def test_pieces_of_a_selection_are_boxes(store, tmp_path):
    python("""
import sys, chunkmill, zarr
a = zarr.open_group(chunkmill.record(sys.argv[1], "log"), mode="r")["t"]
a.oindex[[1, 2, 7], 3, 4:6]
a.vindex[[1, 2], [3, 3], [4, 9]]
a[3:9:2, 0:1, 5]
""", tmp_path, store)  # fmt: skip
    boxes = [line["box"] for line in lines(tmp_path / "log") if "box" in line]
    assert boxes == [
        [[1, 3], [3, 4], [4, 6]], [[7, 8], [3, 4], [4, 6]],
        [[1, 2], [3, 4], [4, 5]], [[2, 3], [3, 4], [9, 10]],
        [[3, 8], [0, 1], [5, 6]],
    ]  # fmt: skip


PLAIN = """
import sys, xarray as xr
xr.open_zarr(sys.argv[1], chunks=None, consolidated=False).t[0:4, 0:5, 0:5].load()
"""


@pytest.mark.parametrize("how", ["variable", "command"])
def test_programs_are_recorded_unchanged(store, tmp_path, how):
    if how == "variable":
        python("import chunkmill\n" + PLAIN, tmp_path, store, env={"CHUNKMILL_RECORD": "log"})
    else:
        python(PLAIN, tmp_path, store, module=("-m", "chunkmill", "record", "log"))
    boxes = [line["box"] for line in lines(tmp_path / "log") if "box" in line]
    assert boxes == [[[0, 4], [0, 5], [0, 5]]]


def test_processes_write_one_log(store, tmp_path):
    python("""
import multiprocessing, sys, chunkmill, zarr
def read(k):
    a = zarr.open_group(STORE, mode="r")["t"]
    for i in range(20):
        a[i % 20:i % 20 + 4, 0:10, 0:10]
STORE = chunkmill.record(sys.argv[1], "log")
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        pool.map(read, range(3), chunksize=1)
""", tmp_path, store)  # fmt: skip
    found = lines(tmp_path / "log")  # each line is whole
    assert sum("box" in line for line in found) == 60
    report = replay(tmp_path, "--epochs", "1", store)
    assert report["sessions"][0]["counts"]["samples"] == 60


def test_what_is_given_is_what_the_store_has(store, tmp_path):
    out = python("""
import sys, chunkmill, numpy as np, pickle, zarr
plain, seen = (zarr.open_group(s, mode="r") for s in (sys.argv[1], chunkmill.record(sys.argv[1], "log")))
assert (plain["t"][:] == seen["t"][:]).all() and plain["t"].attrs.asdict() == seen["t"].attrs.asdict()
again = zarr.open_group(pickle.loads(pickle.dumps(chunkmill.record(sys.argv[1], "log"))), mode="r")
assert (again["u"][3] == plain["u"][3]).all()
store = chunkmill.record(zarr.storage.MemoryStore(), "log")
zarr.create_array(store, name="x", data=np.arange(5))
assert zarr.open_group(store)["x"][:].tolist() == [0, 1, 2, 3, 4]
try:
    chunkmill.record(7, "log")
except TypeError as e:
    print(e)
try:
    chunkmill.record(sys.argv[1])
except ValueError as e:
    print(e)
""", tmp_path, store)  # fmt: skip
    assert out == (
        "a store of zarr-python or a path, not int\nno log: name the file to write, or set CHUNKMILL_RECORD\n"
    )


# ---- logs that are wrong -----------------------------------------------------------------------------

LINE = '{"array":"t","box":[[0,4],[0,5],[0,%d]],"time":1,"seconds":0.1,"pid":1}\n'

WRONG = {
    "empty": ("", 1, "log: no read is recorded in it"),
    "text": ("hello\n", 1, "log, line 1: not a JSON object"),
    "past": (LINE % 41, 2, "log, line 1: t was read up to element 41 of dimension 2, and has 40 there now"),
    "other": (LINE.replace('"t"', '"v"') % 4, 2, "log: has no reads of an array of"),
    "deep": ("[" * 70000 + "\n", 1, "log, line 1: it is longer than 65536 bytes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_log_is_one_sentence(store, tmp_path, name):
    text, status, sentence = WRONG[name]
    (tmp_path / "log").write_text(text)
    done = tool.run("readbench", "--no-out", "--replay", "log", store, cwd=tmp_path)
    assert done.status == status, done.err
    assert sentence in done.err and len(done.err.splitlines()) <= 2


def test_a_store_that_changed_is_said(store, tmp_path):
    python(READ, tmp_path, store)
    changed = zarr.create_group(str(tmp_path / "b.zarr"))
    array = changed.create_array("t", shape=SHAPE, chunks=CHUNKS, dtype="f4", dimension_names=("time", "lat", "lon"))
    array[:] = np.random.default_rng(1).random(SHAPE, dtype="f4")
    report = replay(tmp_path, "--epochs", "1", "b.zarr")
    assert any("the store changed since the log was recorded" in w for w in report["warnings"])


def test_the_advice_names_the_log(store, tmp_path):
    (tmp_path / "log").write_text("".join(LINE % 4 for _ in range(40)))
    done = tool.run("readbench", "--json", "--no-out", "--epochs", "1", "--replay", "log", store, cwd=tmp_path)
    assert json.loads(done.out)["sessions"][0]["settings"]["replay"] == "log"
    text = tool.run("readbench", "--no-out", "--epochs", "1", "--replay", "log", store, cwd=tmp_path).out
    assert "chunkcalc --sample" not in text


def test_options_that_say_something_else(store, tmp_path):
    (tmp_path / "log").write_text(LINE % 4)
    for words in (["--sample", "time=1"], ["--order", "all"], ["--lags", "1"], ["--loader", "planned"],
                  ["--sweep", "workers=1,2"], ["--variable", "a,b"]):  # fmt: skip
        done = tool.run("readbench", "--no-out", "--replay", "log", *words, store, cwd=tmp_path)
        assert done.status == 2, done.err
