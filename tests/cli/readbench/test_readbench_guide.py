"""For readers of guides: --preset loader-demo, logs for the demo's notebook, and scripts/step_time.py."""

import csv
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import yaml
import zarr

from support import paths, tool

QUICK = ["--batches", "3", "--epochs", "2", "--batch", "2", "--step-time", "1ms"]


def run(*args, **kw):
    return tool.run("readbench", *args, **kw)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("guide") / "a.zarr"
    group = zarr.open_group(path, mode="w")
    for name, shape in (("t", (12, 60, 70)), ("small", (40, 50))):
        array = group.create_array(name, shape=shape, chunks=(4, 30, 35)[-len(shape):], dtype="f4")  # fmt: skip
        array[...] = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    return path


@pytest.fixture(scope="module")
def report(store, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "out"
    done = run("--preset", "loader-demo", *QUICK, "--out", out, store).ok()
    return out, done


def test_the_preset_compares_with_what_was_published(report):
    out, done = report
    line = next(line for line in done.out.splitlines() if line.startswith("loader-demo: in the time of"))
    found = re.fullmatch(
        r"loader-demo: in the time of 4 epochs with the baseline, (\w+) makes (\d+): ([\d.]+) times as many; "
        r"published: 140, 35 times", line)  # fmt: skip
    assert found, line
    document = json.loads((out / "summary.json").read_text())
    sessions = {s["label"]: s for s in document["sessions"]}
    assert list(sessions) == ["baseline", "workers", "planned"]
    base = sessions["baseline"]["settings"]
    assert (base["mode"], base["persistent"], base["sample"]) == ("sync", "false", "3x48x48")
    assert sessions["planned"]["settings"]["loader"] == "planned" and sessions["workers"]["settings"]["prefetch"] == "3"
    assert any(note == line for note in document["notes"])


@pytest.mark.long(ci=1)
def test_its_own_numbers(store, tmp_path):
    settings = json.loads(run("--preset", "loader-demo", "--epochs", "1", "--batches", "1", "--step-time", "1ms", "--json",
                              "--no-out", "--variable", "small", store, cwd=tmp_path).ok().out)["sessions"][0]["settings"]  # fmt: skip
    assert settings["sample"] == "40x48" and settings["batch"] == "32"
    text = run("--help").ok().out
    assert "140 epochs in the time of 4" in " ".join(text.split())


@pytest.mark.parametrize("option", [["--tune"], ["--sweep", "workers=1,2"], ["--workers", "2"], ["--loader", "map"]])
def test_options_that_the_preset_sets(store, option):
    run("--preset", "loader-demo", *option, "--no-out", store).fails(2, "--preset loader-demo and", "exclude each other")


def test_another_preset_is_refused(store):
    run("--preset", "demo", "--no-out", store).fails(2, "loader-demo")


# ---- files ---------------------------------------------------------------------------------------------


def messages(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("label", ["baseline", "workers", "planned"])
def test_the_notebook_reads_the_log(report, label):
    """As the notebook of the dataloader demo does: the first line is the run's, ends have durations."""
    found = messages(report[0] / label / "benchmark.log")
    assert found[0]["event"] == "run start" and found[-1]["event"] == "run end"
    assert found[0]["locals"]["num_epochs"] == 2 and found[0]["locals"]["batch_size"] == 2
    assert found[0]["time"] > 1.6e9
    assert [m["time"] for m in found] == sorted(m["time"] for m in found)
    kinds = {m["event"] for m in found}
    assert kinds >= {f"{e} {w}" for e in ("setup", "epoch", "training") for w in ("start", "end")}
    waits, end = [], None
    for m in found:
        if m["event"].endswith(" end"):
            assert m["duration"] >= 0
        if m["event"] == "training end":
            end = m["time"]
        if m["event"] == "training start" and end is not None:
            waits.append(m["time"] - end)
    assert len(waits) == 5 and all(w >= 0 for w in waits)
    assert sum(m["event"] == "training end" for m in found) == 6
    if label != "planned":  # whose tasks are chunks
        batches = [m for m in found if m["event"] == "get-batch end"]
        assert len(batches) == 6 and {m["idx"] for m in batches} == {0, 1, 2}
        assert messages(report[0] / label / "benchmark_workers.log") == [m for m in found if m["event"].startswith("get-batch")]


def test_times_as_the_guide_names_them(report):
    folder = report[0] / "workers"
    rows = list(csv.DictReader((folder / "timing_results.csv").open()))
    assert len(rows) == 6
    for row in rows:
        parts = [float(row[k]) for k in ("data_loading_time", "memcpy_time", "step_time")]
        assert sum(parts) == pytest.approx(float(row["total_batch_time"]), abs=1e-6)
    given = yaml.safe_load((folder / "timing_summary.yaml").read_text())
    assert given["batches"] == 5
    values = [float(r["data_loading_time"]) for r in rows[1:]]
    assert given["data_loading"]["mean"] == pytest.approx(np.mean(values), abs=1e-8)
    assert given["data_loading"]["std"] == pytest.approx(np.std(values), abs=1e-8)
    assert sum(given[k]["share"] for k in ("data_loading", "memcpy", "step")) == pytest.approx(1, abs=1e-3)


def test_files_are_replaced_with_their_report(store, tmp_path):
    words = ["--sample", "2x8x8", *QUICK, "--out", "out", store]
    run(*words, cwd=tmp_path).ok()
    (tmp_path / "out" / "mine.log").write_text("mine")
    run("--overwrite", *words, cwd=tmp_path)
    assert (tmp_path / "out" / "mine.log").read_text() == "mine"
    for name in ("benchmark.log", "timing_summary.yaml"):
        assert (tmp_path / "out" / name).stat().st_size > 0


# ---- scripts/step_time.py ------------------------------------------------------------------------------

TORCH = """
import time

class _Cuda:
    @staticmethod
    def is_available():
        return False

cuda = _Cuda

class device:
    def __init__(self, name):
        self.type = name.split(":")[0]

class Tensor:
    def to(self, where):
        return self
    def float(self):
        return self
    def mean(self):
        return self
    def __radd__(self, other):
        return self
    def backward(self):
        time.sleep(0.02)

def randn(shape):
    t = Tensor()
    t.shape = shape
    return t

class Model:
    requires_grad = True
    def to(self, where):
        return self
    def train(self):
        return self
    def parameters(self):
        return [self]
    def __call__(self, x):
        time.sleep(0.01)
        return x

class optim:
    class AdamW:
        def __init__(self, parameters):
            assert parameters
        def zero_grad(self, set_to_none):
            pass
        def step(self):
            pass
"""


def step_time(tmp_path, *words):
    (tmp_path / "torch.py").write_text(TORCH)
    return subprocess.run(
        [sys.executable, paths.ROOT / "scripts" / "step_time.py", *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip


def test_a_step_is_timed_as_readbench_takes_it(store, tmp_path):
    (tmp_path / "mine.py").write_text("import torch\ndef step_time():\n    return torch.Model(), torch.randn([2, 3])\n")
    for words in (["mine.py"], ["--model", "torch:Model", "--input", "2x3"]):
        done = step_time(tmp_path, *words, "--steps", 3, "--warmup", 1)
        assert done.returncode == 0, done.stderr
        found = re.fullmatch(r"--step-time forward=(\d+)us,backward=(\d+)us,other=(\d+)us\n", done.stdout)
        assert found and int(found[1]) >= 10000 and int(found[2]) >= 20000
        assert "3 steps on cpu" in done.stderr
    settings = json.loads(run(*done.stdout.split(), "--sample", "2x8x8", "--batch", "2", "--batches", "1", "--epochs", "1", "--json",
                              "--no-out", store).ok().out)["sessions"][0]["settings"]  # fmt: skip
    assert "step-time" in settings


def test_step_time_says_what_is_missing(tmp_path):
    (tmp_path / "mine.py").write_text("x = 1\n")
    for words, sentence in ((["mine.py"], "has no function step_time()"), ([], "give a file, or --model and --input"),
                            (["--model", "torch", "--input", "2"], "give MODULE:NAME")):  # fmt: skip
        done = step_time(tmp_path, *words)
        assert done.returncode != 0 and sentence in done.stderr and "Traceback" not in done.stderr
