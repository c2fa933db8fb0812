"""The command line of readbench: wording, exit statuses, where files go, advice, comparison, help and the man page."""

import json
import os
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree as xml

import jsonschema
import numpy as np
import pytest
import zarr

from support import manual, paths, terminal, tool
from support.readbench import BARE

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "readbench.json").read_text())
QUICK = ["--sample", "time=2,lat=8,lon=8", "--batch", "4", "--batches", "5", "--step-time", "1ms", "--workers", "1"]


def run(*args, **kw):
    return tool.run("readbench", *args, **kw)


def bare(*args, **kw):
    """readbench's messages about options, without measuring and drawing."""
    return tool.run(BARE, *args, **kw)


def check(text):
    document = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    root = tmp_path_factory.mktemp("stores")
    for name in ("a.zarr", "b.zarr"):
        array = zarr.open_group(root / name, mode="w").create_array(
            "t", shape=(24, 32, 32), chunks=(4, 16, 16), dtype="f4", dimension_names=("time", "lat", "lon")
        )
        array[:] = np.arange(24 * 32 * 32, dtype="f4").reshape(24, 32, 32)
    return root


@pytest.fixture
def work(tmp_path, stores):
    for name in ("a.zarr", "b.zarr"):
        (tmp_path / name).symlink_to(stores / name)
    return tmp_path


# ---- wrong command lines --------------------------------------------------------------------------

WRONG = {
    "nothing": ([], "no store"),
    "unknown": (["--qqqqqq", "a.zarr"], "unknown option --qqqqqq"),
    "near": (["--worker", "2", "a.zarr"], "did you mean --workers?"),
    "cold and warm": (["--cold", "--warm", "a.zarr"], "--cold and --warm exclude each other"),
    "out and none": (["--out", "x", "--no-out", "a.zarr"], "--out and --no-out exclude each other"),
    "out without a name": (["--out", "", "a.zarr"], "--out takes a folder"),
    "tune and sweep": (["--tune", "--sweep", "workers=1", "a.zarr"], "--tune and --sweep exclude each other"),
    "cpus alone": (["--cpus", "3", "a.zarr"], "--cpus needs --advise"),
    "rank": (["--world-size", "2", "--rank", "2", "a.zarr"], "--rank must be below --world-size"),
    "step time": (["--step-time", "fast", "a.zarr"], "--step-time: 'fast' is not a time"),
    "step part": (["--step-time", "sideways=3ms", "a.zarr"], "'sideways=3ms' is not forward=T"),
    "step twice": (["--step-time", "other=1ms,other=2ms", "a.zarr"], "other is given twice"),
    "step without time": (["--step-time", "forward=", "a.zarr"], "--step-time"),
    "no sample": (["a.zarr"], "--sample"),
    "unknown dimension": (["--sample", "nosuch=2", "a.zarr"], "nosuch"),
    "order": ([*QUICK, "--order", "zigzag", "a.zarr"], "--order zigzag"),
    "mode": ([*QUICK, "--mode", "fibres", "a.zarr"], "--mode takes sync|threads|processes, not 'fibres'"),
    "emulate": ([*QUICK, "--emulate", "tape", "a.zarr"], "tape"),
    "device": ([*QUICK, "--device", "tpu", "a.zarr"], "tpu"),
    "cast": ([*QUICK, "--cast", "int8", "a.zarr"], "--cast takes"),
    "sweep": ([*QUICK, "--sweep", "nokey=1,2", "a.zarr"], "nokey"),
    "variable": ([*QUICK, "--variable", "nosuch", "a.zarr"], "nosuch"),
    "lag twice": ([*QUICK, "--lags", "0,6,6", "a.zarr"], "--lags 0,6,6: 6 is there twice"),
    "engine of another format": ([*QUICK, "--engine", "netcdf", "a.zarr"], "this is a Zarr store"),
    "no batch": (["--batch", "0", "a.zarr"], "--batch"),
    "cache policy": ([*QUICK, "--cache-policy", "lru", "a.zarr"], "--cache-policy needs --cache"),
    "another scheme": (["az://bucket/a.zarr"], "az://bucket/a.zarr"),
    "advise a store": (["--advise", "a.zarr"], "--advise takes no store"),
    "advise and tune": (["--advise", "--tune"], "--tune has no place beside --advise"),
    "compare one": (["--compare", "x"], "--compare takes two folders, not 1"),
    "compare and sweep": (["--compare", "--sweep", "workers=1", "x", "y"], "--sweep has no place beside --compare"),
}


@pytest.mark.every
@pytest.mark.parametrize("args, sentence", WRONG.values(), ids=WRONG)
def test_wrong_command_line(work, args, sentence):
    run(*args, cwd=work).fails(2, sentence)
    assert not list((work / "results" / "readbench").glob("*") if (work / "results").exists() else [])


FAILS = {
    "absent": ([*QUICK, "--no-out", "nosuch.zarr"], "nosuch.zarr"),
    "a folder of nothing": ([*QUICK, "--no-out", "empty"], "empty"),
    "slots of any size": (
        [*QUICK, "--no-out", "--device", "host", "--slot-size", "400GiB", "--workers", "1", "a.zarr"],
        "1 worker and slots of 400.00 GiB",
    ),
    "out is there": ([*QUICK, "--out", "empty", "a.zarr"], "empty: exists already"),
    "out in a file": ([*QUICK, "--out", "file/x", "a.zarr"], "file"),
    "compare what is absent": (["--compare", "x", "y"], "x"),
    "compare a store": (["--compare", "a.zarr", "a.zarr"], "a.zarr: this is not a report of readbench"),
    "compare another document": (["--compare", "other", "other"], "other/summary.json: this is not a summary"),
    "compare no JSON": (["--compare", "broken", "broken"], "broken/summary.json"),
    "compare half of one": (["--compare", "half", "half"], "breakdown: step is not a time"),
}


@pytest.mark.every
@pytest.mark.parametrize("args, words", FAILS.values(), ids=FAILS)
def test_failures(work, args, words):
    (work / "empty").mkdir()
    (work / "file").write_text("mine")
    half = {"schema": "readbench/1", "sessions": [{"breakdown": {"step": "long"}}]}
    for name, text in (("other", '{"schema": "rechunk/1"}'), ("broken", "{"), ("half", json.dumps(half))):
        (work / name).mkdir()
        (work / name / "summary.json").write_text(text)
    run(*args, cwd=work).fails(1, words)
    assert not list((work / "empty").iterdir()) and (work / "file").read_text() == "mine"


# ---- advice ---------------------------------------------------------------------------------------

ADVICE = [(10, 1, 8, 1), (20, 1, 18, 1), (60, 3, 18, 1), (160, 8, 18, 1), (20, 8, 1, 2)]


@pytest.mark.every
@pytest.mark.parametrize("cpus, accelerators, workers, threads", ADVICE)
def test_advice(cpus, accelerators, workers, threads):
    args = ["--advise", "--cpus", cpus, "--accelerators", accelerators]
    done = run(*args).ok()
    assert f"workers for each accelerator: {workers}\nthreads for each worker: {threads}\n" in done.out
    assert bool(done.warnings) == (threads == 2)
    document = check(run(*args, "--json").ok().out)
    assert (document["workers"], document["threads"]) == (workers, threads)
    assert bool(document["warning"]) == (threads == 2)


def test_advice_keeps_what_is_reserved():
    assert check(run("--advise", "--json", "--cpus", 10, "--reserve", 0).ok().out)["workers"] == 10
    assert check(run("--advise", "--json").ok().out)["cpus"] == len(os.sched_getaffinity(0))


# ---- measuring ------------------------------------------------------------------------------------


def test_files_go_below_results(work):
    out = run(*QUICK, "a.zarr", cwd=work).ok().out
    folder = re.search(r"^report: (results/readbench/\d{8}-\d{6})/report\.html$", out, re.M)[1]
    document = check((work / folder / "summary.json").read_text())
    assert document["out"] == folder
    assert document["command"].endswith(f"readbench {' '.join(QUICK)} a.zarr")
    assert document["sessions"][0]["counts"]["batches"] == 10


def pasted(work, *args):
    """Suggestions of a report, each line run by a shell, like the first run."""
    # Tuning is many runs: of those it says what the others are told, without the raw rates.
    (bare if "--tune" in args else run)(*QUICK, *args, cwd=work).ok()
    document = json.loads(next(p for p in work.glob("**/summary.json")).read_text())
    said = {f["command"] for s in document["sessions"] for f in [*s["findings"], s["diagnosis"]] if f.get("command")}
    said |= {s["diagnosis"]["proposal"]["command"] for s in document["sessions"] if s["diagnosis"]["proposal"]}
    said |= {document["tuned_command"]}
    said -= {None}
    for command in sorted(said):
        # Its measurements are tested with the first run.
        path = f"{paths.BUILD / 'tests' / 'bare'}:{paths.BUILD / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(command, shell=True, cwd=work, capture_output=True, text=True, env={**os.environ, "PATH": path})
        assert done.returncode == 0, (command, done.stderr)
        for made in work.glob("*-rechunked.zarr"):
            shutil.rmtree(made)
    return said


@pytest.mark.few(2)
@pytest.mark.parametrize("args", [
    ["--out", "made", "a.zarr"],
    ["--out=made", "--trace", "made.json", "--", "a.zarr", "b.zarr"],
    ["--overwrite", "-qj1", "--out", "made", "a.zarr"],
    ["--out", "made", "--tune", "--step-time", "0s", "a.zarr"],
    ["--", "./-x.zarr"],
], ids=lambda args: " ".join(args))
def test_hints_run_when_they_are_pasted(work, args):
    """Beside the report that they come from; a small store is in memory, so there is one at least."""
    (work / "-x.zarr").symlink_to("a.zarr")
    assert pasted(work, *args)


@pytest.mark.long(ci=1)
def test_the_turn_of_a_store_that_comes_later(work):
    """The drawing of CPUs and memory before the first epoch of a second store shows only its set-up."""
    run("--sample", "time=2,lat=8,lon=8", "--batch", 4, "--batches", 20, "--step-time", "20ms", "--sample-interval", 5,
        "--out", "made", "a.zarr", "b.zarr", cwd=work).ok()
    folder = work / "made" / "b.zarr"
    events = [json.loads(line) for line in (folder / "events.log").read_text().splitlines()]
    set_up = next(e["end_ns"] for e in events if e["event"] == "setup") / 1e9
    first = min(e["start_ns"] for e in events if e["event"] == "epoch") / 1e9
    assert first - set_up > 0.3
    root = xml.fromstring((folder / "resources.svg").read_text())
    svg = "{http://www.w3.org/2000/svg}"
    words = [(float(t.get("x")), float(t.get("y")), t.text) for t in root.iter(svg + "text") if re.fullmatch(r"[\d.]+", t.text or "")]
    low = max(y for _, y, _ in words)
    (x0, t0), *_, (x1, t1) = sorted({(x, float(text)) for x, y, text in words if y == low})
    drawn = [t0 + (float(p.split(",")[0]) - x0) * (t1 - t0) / (x1 - x0)
             for e in root.iter(svg + "polyline") if "#cc79a7" in e.get("stroke", "") for p in e.get("points").split()]
    assert [t for t in drawn if t > first + 0.1]
    assert not [t for t in drawn if set_up + 0.1 < t < first - 0.1]


def test_no_files(work):
    out = bare(*QUICK, "--no-out", "a.zarr", cwd=work).ok().out
    assert "report:" not in out
    assert {p.name for p in work.iterdir()} == {"a.zarr", "b.zarr"}


def test_the_order_of_a_loader_is_told(work):
    for how, words in (("map", "sequential order, map loader"),
                       ("planned", "sequential places in shuffled blocks, planned loader")):
        told = run(*QUICK, "--no-out", "--order", "sequential", "--loader", how, "--epochs", 1, "a.zarr", cwd=work).ok()
        assert words in told.out


def test_quiet(work):
    done = bare(*QUICK, "-q", "--out", "made", "a.zarr", cwd=work).ok()
    assert done.out == "" and (work / "made" / "report.html").exists()


def test_json_is_the_summary(work):
    document = check(bare(*QUICK, "--json", "--out", "deep/made", "a.zarr", "b.zarr", cwd=work).ok().out)
    assert [s["label"] for s in document["sessions"]] == ["a.zarr", "b.zarr"]
    assert json.loads((work / "deep" / "made" / "summary.json").read_text()) == document
    assert (work / "deep" / "made" / "b.zarr" / "batches.csv").exists()


def test_json_of_failures(work):
    for args, status in ((["nosuch.zarr"], 1), ([*QUICK, "--order", "zigzag", "a.zarr"], 2)):
        done = bare("--json", "--no-out", *args, cwd=work)
        document = check(done.out)
        assert done.status == status and document["outcome"] == "failed" and document["sessions"] == []
        assert done.err == f"readbench: {document['error']['message']}\n"


def test_the_host_part_of_a_step(work):
    step = "forward=2ms,backward=1ms,other=1ms"
    args = [*QUICK, "--step-time", step, "--json", "--no-out", "a.zarr"]
    given = check(bare(*args, cwd=work).ok().out)["sessions"][0]["breakdown"]
    assert given["cpu"] / (given["cpu"] + given["kernel"]) == pytest.approx(0.25)
    assert given["kernel"] + given["cpu"] >= 0.004


def test_reports_are_compared(work):
    for name, step in (("before", "4ms"), ("after", "1ms")):
        bare(*QUICK, "--step-time", step, "--out", name, "a.zarr", cwd=work).ok()
    out = run("--compare", "before", "after", cwd=work).ok().out
    rows = {line.split()[0]: line.split() for line in out.splitlines()[1:9]}
    assert list(rows) == ["step", "kernel", "memcpy", "memset", "runtime", "loader", "CPU", "other"]
    assert out.splitlines()[0].split() == ["before", "share", "after", "share", "after/before"]
    document = check(run("--compare", "before", "after", "--json", cwd=work).ok().out)
    for side in ("before", "after"):
        given = document[side]["breakdown"]
        own = json.loads((work / side / "summary.json").read_text())["sessions"][0]["breakdown"]
        assert given == {k: own[k] for k in given}
        assert sum(given[k] for k in given if k != "step") == pytest.approx(given["step"], rel=1e-6)
    assert document["before"]["breakdown"]["kernel"] >= 0.004
    assert document["changed"] == {"step-time": {"before": "4.00 ms", "after": "1.00 ms"}}
    assert out.splitlines()[11:] == ["settings that differ, before and after:", "  step-time: 4.00 ms, 1.00 ms"]


def test_reports_of_the_same_settings_name_none_that_differ(work):
    bare(*QUICK, "--out", "same", "a.zarr", cwd=work).ok()
    assert "differ" not in run("--compare", "same", "same", cwd=work).ok().out
    assert check(run("--compare", "same", "same", "--json", cwd=work).ok().out)["changed"] == {}


def test_a_report_of_several_is_not_compared(work):
    bare(*QUICK, "--out", "both", "a.zarr", "b.zarr", cwd=work).ok()
    run("--compare", "both", "both", cwd=work).fails(1, "both: this report holds 2 measurements")
    run("--compare", "both/a.zarr", "both/b.zarr", cwd=work).ok()


def test_a_sweep_is_compared_by_its_best(work):
    bare(*QUICK, "--sweep", "prefetch=1,2", "--out", "swept", "a.zarr", cwd=work).ok()
    best = json.loads((work / "swept" / "summary.json").read_text())["best"]
    document = check(run("--compare", "swept", "swept", "--json", cwd=work).ok().out)
    assert document["before"]["label"] == f"prefetch={best + 1}"


THREADS = {(1, 1): "1", (1, 2): "1 with 2 threads", (2, 1): "2", (2, 3): "2 with 3 threads each"}


@pytest.mark.parametrize("workers, threads", THREADS)
def test_workers_and_their_threads_are_told(work, workers, threads):
    args = [*QUICK, "--no-out", "--workers", workers, "--worker-threads", threads, "a.zarr"]
    out = bare(*args, cwd=work).ok().out
    assert re.search(r"^  workers +(.*)$", out, re.M)[1] == THREADS[workers, threads]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_measured_before_a_signal_is_told(work, number):
    endless = ["--batches", "100000", "--step-time", "10ms"]
    args = [*QUICK, *endless, "--out", "made", "a.zarr"]
    with terminal.Watched([tool.program("readbench"), *args], cwd=work) as watched:
        watched.until(r"measuring: (?!0 B)[\d.]+ ")
        watched.process.send_signal(number)
        out, err = watched.end()
        assert watched.process.returncode == -number, err
    assert f"stopped by {number.name}; the measurements so far are printed and in made" in err
    assert "samples/s" in out
    document = check((work / "made" / "summary.json").read_text())
    assert document["outcome"] == "canceled" and document["sessions"][0]["counts"]["batches"] > 0
    assert "Not complete" in (work / "made" / "report.html").read_text()


def test_a_trace_goes_into_what_is_there(work):
    """A pipe, a device or a link is written into; a file of its name must not take its place."""
    (work / "link.json").symlink_to("real.json")
    os.mkfifo(work / "pipe")
    reader = subprocess.Popen(["cat", "pipe"], cwd=work, stdout=subprocess.PIPE, text=True)
    for name in ("link.json", "pipe", "new.json"):
        bare(*QUICK, "--no-out", "--trace", name, "a.zarr", cwd=work).ok()
    assert (work / "link.json").is_symlink() and (work / "pipe").is_fifo()
    piped = reader.communicate(timeout=300)[0]
    for text in (piped, (work / "real.json").read_text(), (work / "new.json").read_text()):
        assert any(e["name"] == "step" for e in json.loads(text)["traceEvents"])
    (work / "full").symlink_to("/dev/full")
    full = bare(*QUICK, "--no-out", "--trace", "full", "a.zarr", cwd=work)
    assert full.status == 1 and "No space left" in full.err


@pytest.mark.parametrize("kilobytes", [1, 4, 8, 20, 60])
def test_a_full_disk_leaves_nothing_that_is_cut(work, kilobytes):
    done = bare(*QUICK, "--out", "made", "a.zarr", cwd=work, before=tool.file_size_limit(kilobytes << 10))
    assert done.status == 1 and re.search(r"^readbench: made/\S+: cannot be written", done.err, re.M), str(done)
    assert "File too large" in done.err and ".part-" not in done.err
    assert "samples/s" in done.out and "report:" not in done.out
    left = list((work / "made").iterdir()) if (work / "made").exists() else []
    assert not [p for p in left if p.name.startswith(".") or p.name == "report.html"]
    for path in left:
        if path.suffix == ".json":
            json.loads(path.read_text())


# ---- one table: help, man page, completion --------------------------------------------------------

def test_the_examples_of_the_man_page_are_understood(work):
    """They name stores that are not there: that is all that is wrong with them."""
    lines = manual.examples("readbench")
    assert len(lines) >= 5
    for line in lines:
        shutil.rmtree(work / "results", ignore_errors=True)
        run(*line, cwd=work).fails(1, "no such file")


def test_completion_is_shell(tmp_path):
    for shell in ("bash", "zsh", "fish"):
        text = run("--generate", shell).ok().out
        assert "shuffle-window" in text
        if shutil.which(shell):
            (tmp_path / shell).write_text(text)
            subprocess.run([shell, "-n", tmp_path / shell], check=True)
