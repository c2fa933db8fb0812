"""The numbers of a summary, computed again from batches.csv and events.log alone, and the counts against chunkcalc."""

import collections
import itertools
import json
import math
import os
import statistics
import subprocess
import sys

import netCDF4
import numpy as np
import pytest
import zarr
from zarr.codecs import ZstdCodec

from support import browser, paths
from support import readbench as rb
from support import tool

SHAPE, CHUNK, NAMES = (18, 26, 31), (5, 8, 9), ("time", "lat", "lon")
SAMPLE = {"time": 3, "lat": 7, "lon": 10}
BOX = ",".join(f"{k}={v}" for k, v in SAMPLE.items())
NBYTES = 4 * math.prod(SAMPLE.values())
STAGES = ("storage", "decode", "assemble", "convert")
S = 1e-9  # of a nanosecond


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers")
    values = np.random.default_rng(2).random(SHAPE, "f4")
    kinds = {
        "v3.zarr": dict(chunks=CHUNK, dimension_names=NAMES),
        "sharded.zarr": dict(chunks=(2, 8, 4), shards=(6, 8, 16), compressors=ZstdCodec(), dimension_names=NAMES),
        "v2.zarr": dict(chunks=CHUNK, attributes={"_ARRAY_DIMENSIONS": list(NAMES)}),
        "large.zarr": dict(chunks=SHAPE, compressors=None, dimension_names=NAMES),
    }
    for name, kw in kinds.items():
        group = zarr.create_group(str(path / name), zarr_format=2 if name.startswith("v2") else 3)
        group.create_array("t", shape=SHAPE, dtype="f4", **kw)[...] = values
    with netCDF4.Dataset(path / "deflate.nc", "w") as ds:
        for name, n in zip(NAMES, SHAPE):
            ds.createDimension(name, n)
        ds.createVariable("t", "f4", NAMES, chunksizes=CHUNK, zlib=True)[:] = values
    return path


# ---- by the definitions ---------------------------------------------------------------------------


def percentile(values, share):
    """The least value that at least this share does not exceed; None where none lies above it."""
    if not values:
        return 0
    at = math.ceil(share * len(values))
    return sorted(values)[at - 1] if share <= 0.5 or at < len(values) else None


def closely(times):
    return {k: None if v is None else close(v) for k, v in times.items()}


def times(values):
    return {
        "n": len(values),
        "total": math.fsum(values),
        "mean": statistics.fmean(values) if values else 0,
        **{k: percentile(values, p) for k, p in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999))},
        "max": max(values, default=0),
    }


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def seconds(text):
    """A time as settings have it: "300 us", or "forward=200 us,other=100 us"."""
    parts = [part.split("=")[-1].split() for part in text.split(",")]
    return sum(float(number) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit] for number, unit in parts)


def recompute(session, bare=False):
    """Holds every number of the summary that the records decide against them; BARE: the program was."""
    batches, ranks = session.batches, sorted({b["rank"] for b in session.batches})
    epochs = [(e["end_ns"] - e["start_ns"]) * S for e in session.events() if e["event"] == "epoch"]
    (setup,) = [e for e in session.events() if e["event"] == "setup"]
    begun = min(e["start_ns"] for e in session.events() if e["event"] == "epoch")
    firsts = [min((b for b in batches if b["rank"] == r), key=lambda b: b["got_ns"]) for r in ranks]
    rest = [b for b in batches if b not in firsts]
    wall = sum(epochs)

    given = session.training
    wait = [max(0, b["got_ns"] - b["want_ns"]) * S for b in rest]
    step = [(b["done_ns"] - max(b["want_ns"], b["ready_ns"])) * S for b in rest]
    for name, values in (
        ("wait", wait),
        ("step", step),
        ("batch_time", [(b["done_ns"] - b["want_ns"]) * S for b in rest]),
    ):
        assert closely(times(values)) == given[name], name
    assert given["setup_seconds"] == close((setup["end_ns"] - setup["start_ns"]) * S)
    # Of several ranks the slowest: in a training the others wait for it.
    assert given["first_batch_seconds"] == close(max(b["got_ns"] - begun for b in firsts) * S)
    longest = max((b["done_ns"] - b["want_ns"]) * S for b in firsts)
    assert given["first_step_seconds"] == close(longest)
    assert given["first_epoch_seconds"] == close(epochs[0])
    assert given["later_epoch_seconds"] == (close(statistics.fmean(epochs[1:])) if epochs[1:] else None)
    assert given["wall_seconds"] == close(wall)
    share = sum(wait) / (sum(wait) + sum(step))
    assert given["wait_share"] == close(share) and given["utilisation"] == close(1 - share)

    spent = {stage: [b[f"{stage}_ns"] * S for b in batches] for stage in STAGES}
    worked = sum(map(sum, spent.values()))
    for stage, values in spent.items():
        assert closely(times(values)) | {
            "share": close(sum(values) / worked)
        } == session.stages[stage]

    total = collections.Counter()
    for b in batches:
        total.update({k: b[k] for k in session.counts if k in b})
    total.update(
        batches=len(batches),
        samples=sum(b["nsamples"] for b in batches),
        failed_batches=sum(b["failed"] for b in batches),
    )
    counted = dict(session.counts)
    assert counted == {k: total[k] for k in counted}

    rates, threads = session.rates, session.loader["pool_workers"] * session.loader["worker_threads"]
    logical = total["logical_nbytes"] - total["missing_nbytes"]
    assert rates["samples"] == close(sum(b["nsamples"] for b in batches) / wall)
    assert rates["logical"] == close(logical / wall)
    assert rates["decoded"] == close(total["decoded_nbytes"] / wall)
    assert rates["physical"] == close(total["stored_nbytes"] / wall)
    assert rates["asked"] == close(total["stored_nbytes"] / sum(spent["storage"]) * threads)
    probed = rates["storage"] is not None
    # A sanitizer leaves too little of --memory for the probe.
    assert (
        probed != (session.emulated or bare) or paths.SANITIZED
    ), "a probe of the local disk says nothing about the storage that is emulated"
    if rates["efficiency"] is not None:  # left out where the probe is no bound
        assert probed and rates["asked"] <= rates["storage"]
        assert rates["efficiency"] == close(rates["asked"] / rates["storage"])
    assert rates["capacity"] == close(logical / worked * threads)

    of_bytes, of_chunks, of_requests = (session.amplification[k] for k in ("bytes", "chunks", "requests"))
    assert of_bytes == close(total["decoded_nbytes"] / total["logical_nbytes"])
    assert of_requests == close(total["requests"] / total["chunks"])
    whole = math.prod(-(-n // c) for n, c in zip(SAMPLE.values(), session.sample[0]["chunk"]))
    assert of_chunks == close(total["chunks"] / (whole * total["samples"]))
    assert session.predicted["fewest_chunks_per_sample"] == (whole if session.order == "random" else None)

    fed = session.accelerators
    assert fed["n"] == len(ranks)
    if session.settings["step-time"] != "0 s":
        each = seconds(session.settings["step-time-per-sample"]) * total["samples"] / len(batches)
        step = seconds(session.settings["step-time"]) + each
        assert fed["needed"] == close(len(ranks) * logical / len(batches) / step)
        assert fed["fed"] == min(len(ranks), int(fed["got"] / (0.9 * fed["needed"] / len(ranks))))
    if session.settings["step-time"] != "0 s" and len(batches) > len(ranks):
        assert fed["got"] == close(fed["needed"] * session.training["utilisation"])
    else:
        assert fed["got"] == close(rates["samples"] * NBYTES)
    used = session.resources
    assert used["cpu_seconds_per_gb"] == close(used["cpu_seconds"] / total["logical_nbytes"] * 1e9)
    # The kernel's own count is right within some pages for each CPU.
    assert used["peak_nbytes"] >= max(b["rss_nbytes"] for b in batches) - (1 << 20)
    return total


def in_order(session):
    """The times of each batch follow one another, and so do the steps of a rank."""
    for b in session.batches:
        assert b["queued_ns"] <= b["begin_ns"] <= b["end_ns"] <= b["got_ns"] <= b["ready_ns"] <= b["done_ns"]
        assert b["want_ns"] <= b["done_ns"]
    epochs = [e for e in session.events() if e["event"] == "epoch"]
    for (epoch, rank), run in itertools.groupby(
        sorted(session.batches, key=lambda b: (b["epoch"], b["rank"], b["got_ns"])), lambda b: (b["epoch"], b["rank"])
    ):
        run = list(run)
        assert all(b["want_ns"] == a["done_ns"] for a, b in zip(run, run[1:])), "late is counted from the step before"
        assert epochs[epoch]["start_ns"] <= run[0]["want_ns"] and run[-1]["done_ns"] <= epochs[epoch]["end_ns"]
    of = {"get-batch": ("want_ns", "got_ns"), "training": ("ready_ns", "done_ns"), "make-batch": ("begin_ns", "end_ns")}
    for kind, (a, b) in of.items():
        log = "events_workers.log" if kind == "make-batch" else "events.log"
        told = sorted((e["start_ns"], e["end_ns"]) for e in session.events(log) if e["event"] == kind)
        assert told == sorted((r[a], r[b]) for r in session.batches), kind


SETTINGS = {
    "sync": ["--mode", "sync"],
    "threads": ["--epochs", 3],
    "worker threads": ["--worker-threads", 2],
    "processes": ["--mode", "processes"],
    "planned": ["--loader", "planned"],
    "unordered": ["--unordered", "--workers", 3],
    "accelerators": ["--accelerators", 3],
    "shared": ["--accelerators", 3, "--pool", "shared", "--mode", "processes"],
    "cached": ["--cache", "64KiB"],
    "no step": ["--step-time", "0ms", "--epochs", 1],
    "a part of the step for each sample": ["--step-time", "forward=0.1ms", "--step-time-per-sample", "0.1ms"],
}
WITH_RATES = ("threads", "processes", "accelerators")  # the raw rates are taken alike in the others


@pytest.mark.parametrize("name", SETTINGS)
def test_the_summary_is_computed_from_the_records(root, tmp_path, name):
    # The last batch of an epoch is not full: sums must be over samples, not batches.
    all_of = ["--order", "strided:3", "--batches", 1000, "--batch", 5, "--step-time", "0.3ms"]
    program = "readbench" if name in WITH_RATES else rb.BARE
    session = rb.measure(
        tmp_path / "out", root / "v3.zarr", "--sample", BOX, *all_of, *SETTINGS[name], program=program
    ).only
    recompute(session, bare=program == rb.BARE)
    in_order(session)
    assert session.counts["logical_nbytes"] == session.counts["samples"] * NBYTES
    lengths = [b["nsamples"] for b in session.batches if b["epoch"] == 0]
    assert min(lengths) < 5, "a batch is not full, so that means over batches show"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if not browser.find():
        pytest.skip("chromium is not installed")
    b = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield b
    b.close()


# The page as read: tiles, and the rows of tables, by their names.
TILES = "Object.fromEntries([...document.querySelectorAll('.tile')].map(t => [t.querySelector('dt').innerText, t.querySelector('dd').firstChild.textContent]))"
ROWS = """Object.fromEntries([...document.querySelectorAll('main tr')].filter(r => r.cells.length > 1)
  .map(r => [r.closest('section').querySelector('h2').innerText + ': ' + r.cells[0].firstChild?.textContent,
    [...r.cells].slice(1).map(c => c.textContent)]))"""


def shown(text):
    """(value, what its last digit is worth) of "16.0 ms", "14 %", "1.9 GB/s", "15,852"."""
    units = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "%": 0.01, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
    number, _, unit = text.replace(",", "").partition(" ")
    digit = 10.0 ** -len(number.partition(".")[2])
    return float(number) * units.get(unit, 1), digit * units.get(unit, 1)


def test_the_page_shows_what_the_records_say(root, tmp_path, chromium):
    """Every figure of the page that batches.csv decides, computed from it again."""
    args = ["--sample", BOX, "--batch", 6, "--batches", 30, "--epochs", 2, "--workers", 2, "--step-time", "2ms"]
    session = rb.measure(tmp_path / "out", root / "v3.zarr", *args).only
    records = sorted(session.batches, key=lambda b: b["want_ns"])
    chromium.open(session.folder / "report.html", width=1400)
    tiles, table = chromium.evaluate(TILES), chromium.evaluate(ROWS)

    rest = records[1:]
    wait = [max(0, b["got_ns"] - b["want_ns"]) * S for b in rest]
    step = [(b["done_ns"] - max(b["want_ns"], b["ready_ns"])) * S for b in rest]
    epochs = [[b for b in records if b["epoch"] == e] for e in (0, 1)]
    wall = sum(max(b["done_ns"] for b in e) - min(b["want_ns"] for b in e) for e in epochs) * S
    share = sum(wait) / (sum(wait) + sum(step))
    logical = sum(b["logical_nbytes"] for b in records)
    wanted = [
        (tiles["samples a second"], sum(b["nsamples"] for b in records) / wall, 0.01),
        (tiles["accelerator utilisation"], 1 - share, 0),
        (tiles["wait for a batch, p95"], percentile(wait, 0.95), 0),
        (tiles["throughput, logical"], logical / wall, 0.01),
        (tiles["bytes decoded for each used"], sum(b["decoded_nbytes"] for b in records) / logical, 0),
        (table["All numbers: p50"][0], percentile(wait, 0.5), 0),
        (table["All numbers: max"][0], max(wait), 0),
        (table["A step's time: step"][0], statistics.fmean(a + b for a, b in zip(wait, step)), 0.01),
        (table["Predicted and measured: chunks"][-1], sum(b["chunks"] for b in records), 0),
        (table["Predicted and measured: requests"][-1], sum(b["requests"] for b in records), 0),
    ]
    for text, value, slack in wanted:
        number, digit = shown(text)
        assert abs(number - value) <= 0.51 * digit + slack * value, (text, value)
    # Waiting is the loader's time, and what lies between it and the step.
    loader, between = (shown(table[f"A step's time: {row}"][0]) for row in ("loader", "runtime"))
    assert abs(loader[0] + between[0] - statistics.fmean(wait)) <= 0.51 * (loader[1] + between[1])
    # The table of batches, in milliseconds.
    for i, b in enumerate(records, 1):
        cells = table[f"A step's time: {i} (epoch {b['epoch']}, rank {b['rank']}, batch {b['number']})"]
        assert abs(float(cells[0]) - (b["done_ns"] - max(b["want_ns"], b["ready_ns"])) / 1e6) <= 0.051
        assert abs(float(cells[1]) - max(0, b["got_ns"] - b["want_ns"]) / 1e6) <= 0.051
        assert abs(float(cells[4]) - b["storage_ns"] / 1e6) <= 0.051


def test_steps_take_the_time_that_was_asked_for(root, tmp_path):
    args = [
        "--batch",
        4,
        "--batches",
        10,
        "--step-time",
        "forward=1ms,backward=2ms,other=1ms",
        "--step-time-per-sample",
        "0.5ms",
    ]
    session = rb.measure(tmp_path / "out", root / "v3.zarr", "--sample", BOX, *args, program=rb.BARE).only
    recompute(session, bare=True)
    assert min(b["done_ns"] - b["ready_ns"] for b in session.batches) >= 6e6


@pytest.mark.long(ci=1)
def test_a_slow_loader_feeds_nobody_and_a_fast_one_does(root, tmp_path):
    args = ["--sample", BOX, "--batch", 4, "--batches", 8, "--epochs", 1]
    slow = rb.measure(
        tmp_path / "slow", root / "v3.zarr", *args, "--emulate", "latency=10ms", "--step-time", "1ms"
    ).only
    fast = rb.measure(tmp_path / "fast", root / "v3.zarr", *args, "--step-time", "300ms").only
    for session in (slow, fast):
        recompute(session)
    assert slow.accelerators["fed"] == 0 and slow.training["wait_share"] > 0.5
    slow_rules, fast_rules = ({f["rule"] for f in s.findings} for s in (slow, fast))
    if "contended" in slow_rules:  # the machine was busy: a cause in data or an emulated delay stands first all the same
        assert slow.diagnosis["cause"] in ("contention", "chunk-shape", "storage", "few-requests")
    else:
        assert slow_rules >= {"loader-waits", "io-bound"}
    assert not fast_rules & {"loader-waits", "io-bound"}
    if "contended" not in fast_rules:
        assert fast.accelerators["fed"] == 1 and fast.training["utilisation"] >= 0.9


@pytest.mark.long
def test_programs_that_burn_the_cpus_are_not_taken_for_the_loader(root, tmp_path):
    """Others' CPU time is told apart, below a cause that lies in the data alone, and no rule of CPUs fires on it."""
    burners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * len(os.sched_getaffinity(0)))
    ]
    try:
        args = ["--sample", BOX, "--batch", 4, "--batches", 200, "--epochs", 2, "--step-time", "1ms"]
        slowed = ["--emulate", "latency=2ms", "--workers", 2]
        session = rb.measure(tmp_path / "busy", root / "v3.zarr", *args, *slowed).only
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    used, cpus = session.resources, len(os.sched_getaffinity(0))
    assert used["other_cpus"] > 0.5 * cpus and used["own_cpus"] < 0.5 * cpus
    rules, cause = [f["rule"] for f in session.findings], session.diagnosis["cause"]
    assert "contended" in rules and not set(rules) & {"one-core", "cpu-bound"}
    if cause == "contention":
        assert rules[0] == "contended" and "quiet machine" in session.diagnosis["sentence"]
    else:
        assert cause in ("chunk-shape", "storage", "few-requests")


# ---- chunkcalc ------------------------------------------------------------------------------------


def by_chunkcalc(path, sample=BOX):
    chunks = rb.readbench(
        "--no-out",
        "--json",
        "--sample",
        sample,
        "--batch",
        1,
        "--batches",
        1,
        "--memory",
        "64MiB",
        "--step-time",
        "0ms",
        path,
        program=rb.BARE,
    )
    (part,) = json.loads(chunks.out)["sessions"][0]["sample"]
    shape = ",".join(f"{d}={n}" for d, n in zip(part["dimensions"], part["chunk"]))
    document = tool.run("chunkcalc", "--sample", sample, "--chunks", shape, "--stats", "--json", path).json()
    (read,) = document["layouts"][0]["reads"]
    return read


def touched(logged, shape, chunk):
    """Chunks met, and their bytes, by arithmetic of one line."""
    n = sum(rb.met(r[8], r[9], chunk) for r in logged)
    return n, n * 4 * math.prod(chunk)


KINDS = {"v3.zarr": CHUNK, "v2.zarr": CHUNK, "sharded.zarr": (2, 8, 4), "deflate.nc": CHUNK, "large.zarr": SHAPE}


@pytest.mark.every
@pytest.mark.parametrize("name", KINDS)
def test_counts_are_those_of_chunkcalc(root, tmp_path, name):
    args = ["--sample", BOX, "--batch", 10, "--batches", 10]
    session = rb.measure(tmp_path / "out", root / name, *args, program=rb.BARE).only
    read = by_chunkcalc(root / name)
    predicted, counts = session.predicted, session.counts
    assert predicted["chunks_per_sample"] == pytest.approx(read["chunks"]["mean"])
    assert predicted["decoded_nbytes_per_sample"] == pytest.approx(read["decoded_nbytes"])
    every = [
        rb.met(at, SAMPLE.values(), KINDS[name])
        for at in itertools.product(*(range(n - s + 1) for n, s in zip(SHAPE, SAMPLE.values())))
    ]
    assert predicted["chunks_per_sample"] == pytest.approx(statistics.fmean(every))
    chunks, nbytes = touched(session.logged, SHAPE, KINDS[name])
    assert predicted["chunks"] == counts["chunks"] == counts["decoded"] == chunks
    assert predicted["decoded_nbytes"] == counts["decoded_nbytes"] == nbytes
    # The mean of 200 draws lies near the mean of all.
    margin = 5 * statistics.pstdev(every) / math.sqrt(200)
    assert abs(counts["chunks"] / counts["samples"] - read["chunks"]["mean"]) <= margin
    if name in ("v3.zarr", "v2.zarr", "large.zarr"):  # an object for each chunk; neighbours in a file are merged
        assert counts["requests"] == chunks
        assert predicted["requests_per_sample"] == pytest.approx(read["chunks"]["mean"])


@pytest.mark.few
@pytest.mark.parametrize("name", ["v3.zarr", "sharded.zarr", "deflate.nc"])
def test_a_batch_alone_is_foreseen(root, tmp_path, name):
    """Requests are those that the loader makes, neighbours merged; times are there, for processes too."""
    args = ["--sample", BOX, "--batch", 6, "--batches", 10, "--epochs", 2]
    session = rb.measure(tmp_path / "out", root / name, *args, "--mode", "sync").only
    predicted, measured = session.predicted, session.measured
    assert 1 <= measured["rounds"] <= 9 and 1 <= measured["batches"] <= 8
    for k in ("batch_seconds", "batch_cpu_seconds"):
        assert 0 < predicted[k] < 60 and 0 < measured[k] < 60
    first = [b for b in session.batches if b["epoch"] == 0][: measured["batches"]]
    made = statistics.fmean(b["requests"] for b in first)
    # Indices of shards are read once, whoever comes first.
    indices = math.prod(-(-n // s) for n, s in zip(SHAPE, (6, 8, 16))) if name == "sharded.zarr" else 0
    assert abs(made - predicted["batch_requests"]) <= indices / len(first) + 1e-9
    met = statistics.fmean(b["chunks"] for b in first)
    assert predicted["batch_requests"] == pytest.approx(met) if name == "v3.zarr" else predicted["batch_requests"] < met
    if name == "v3.zarr":
        apart = rb.measure(tmp_path / "apart", root / name, *args, "--mode", "processes").only
        assert apart.predicted["batch_seconds"] > 0


@pytest.mark.parametrize("name", ["sharded.zarr", "deflate.nc"])
def test_requests_are_predicted_as_the_reader_merges_them(root, tmp_path, name):
    """A sharded store by arithmetic, over all offsets; a file by the places of its chunks."""
    args = ["--sample", BOX, "--batch", 20, "--batches", 30, "--epochs", 1, "--emulate", "latency=0ms,bandwidth=9GB/s,concurrency=8"]
    session = rb.measure(tmp_path / "out", root / name, *args).only
    counted = session.counts["requests"] / session.counts["samples"]
    predicted = session.predicted["requests_per_sample"]
    assert predicted < 0.9 * session.predicted["chunks_per_sample"], "they are merged"
    if name == "deflate.nc":
        assert predicted == pytest.approx(counted)
    else:
        assert predicted == pytest.approx(counted, rel=0.15)


def test_what_is_not_foreseen_is_null(root, tmp_path):
    session = rb.measure(
        tmp_path / "out", root / "deflate.nc", "--sample", BOX, "--batch", 2, "--batches", 2, "--engine", "netcdf"
    ).only
    assert session.predicted["batch_seconds"] is None and session.measured["batch_seconds"] is None
    assert session.measured["rounds"] == 0


@pytest.mark.every
@pytest.mark.parametrize("loader", ["map", "planned"])
@pytest.mark.parametrize("mode", ["sync", "threads", "processes"])
def test_counts_are_the_same_in_every_mode(root, tmp_path, mode, loader):
    args = [
        "--sample",
        BOX,
        "--order",
        "block-shuffle:4",
        "--batch",
        7,
        "--batches",
        1000,
        "--mode",
        mode,
        "--loader",
        loader,
    ]
    session = rb.measure(tmp_path / "out", root / "v3.zarr", *args, program=rb.BARE).only
    recompute(session, bare=True)
    chunks, nbytes = touched(session.logged, SHAPE, CHUNK)
    distinct = math.prod(-(-n // c) for n, c in zip((18, 21, 30), CHUNK))
    counts = session.counts
    if loader == "map":
        assert counts["chunks"] == counts["decoded"] == session.predicted["chunks"] == chunks
        assert counts["decoded_nbytes"] == nbytes
    else:
        # Samples lie side by side and cover the first 18x21x30: each of their chunks once an epoch.
        times = session.loader["decodes_per_chunk"]
        assert counts["decoded"] == counts["requests"] == round(times * 2 * distinct)
        assert 1 <= times < 2


def test_what_the_planned_loader_would_decode(root, tmp_path):
    """Foreseen by a session of a few batches with the other loader: to the chunk what an epoch of it decodes."""
    args = [root / "v3.zarr", "--sample", BOX, "--batch", 64, "--epochs", 1]
    slow = ["--step-time", "0.1ms", "--emulate", "latency=1ms,bandwidth=1GB/s,concurrency=1", "--mode", "threads"]
    few = rb.measure(tmp_path / "few", *args, *slow, "--batches", 8).only
    all_of = rb.measure(tmp_path / "all", *args, "--batches", 1000, "--loader", "planned", program=rb.BARE).only
    nsamples = math.prod(n - k + 1 for n, k in zip(SHAPE, SAMPLE.values()))
    assert all_of.counts["samples"] == nsamples
    assert few.predicted["planned_chunks_per_sample"] * nsamples == pytest.approx(all_of.counts["decoded"])
    assert all_of.predicted["planned_chunks_per_sample"] is None
    found = {f["rule"]: f for f in few.findings}
    assert found["decoded-again"]["command"].endswith("--loader planned"), found


def test_stored_bytes_are_those_of_the_objects(root, tmp_path):
    """Everything read once: the bytes that storage gave are the sizes of the files."""
    args = [
        "--sample",
        ",".join(f"{d}={n}" for d, n in zip(NAMES, CHUNK)),
        "--order",
        "all",
        "--epochs",
        1,
        "--batches",
        1000,
        "--batch",
        6,
    ]
    for name in ("v3.zarr", "v2.zarr"):
        session = rb.measure(tmp_path / name, root / name, *args, program=rb.BARE).only
        objects = [
            p
            for p in (root / name / "t").rglob("*")
            if p.is_file() and p.name not in ("zarr.json", ".zarray", ".zattrs")
        ]
        assert session.counts["stored_nbytes"] == sum(p.stat().st_size for p in objects)
        assert session.counts["requests"] == session.counts["chunks"] == len(objects)
        whole = [p.stat().st_size for p in (root / name / "t").rglob("*") if p.is_file()]
        assert session.resources["store_nbytes"] == sum(whole)


def test_two_stores_stand_side_by_side(root, tmp_path):
    report = rb.measure(
        tmp_path / "out", [root / "v3.zarr", root / "deflate.nc"], "--sample", BOX, "--batch", 5, "--batches", 6
    )
    zarr_run, netcdf_run = report.sessions
    for session in report.sessions:
        recompute(session)
    assert [r[:6] + r[8:] for r in zarr_run.logged] == [r[:6] + r[8:] for r in netcdf_run.logged]
    assert zarr_run.ratio == 1 and netcdf_run.ratio > 0


# ---- caches, temperature, emulation ---------------------------------------------------------------

ALL = ["--sample", BOX, "--order", "random", "--batch", 5, "--batches", 12]
TOUCHED = math.prod(-(-n // c) for n, c in zip(SHAPE, CHUNK))


@pytest.mark.parametrize("policy", ["lru", "fifo"])
def test_a_cache_of_chunks(root, tmp_path, policy):
    plain = rb.measure(tmp_path / "plain", root / "v3.zarr", *ALL, "--mode", "sync", program=rb.BARE).only
    args = [*ALL, "--mode", "sync", "--cache-policy", policy]
    cached = rb.measure(tmp_path / "cached", root / "v3.zarr", *args, "--cache", "1MiB", program=rb.BARE).only
    recompute(cached, bare=True)
    assert cached.logged == plain.logged
    counts = cached.counts
    met = touched(plain.logged, SHAPE, CHUNK)[0]
    assert counts["cache_hits"] + counts["cache_misses"] == met
    # Everything fits: each chunk is asked for once.
    assert counts["cache_misses"] == counts["requests"] == counts["decoded"] <= TOUCHED
    assert counts["cache_evictions"] == 0
    # Room for three chunks.
    small = rb.measure(tmp_path / "small", root / "v3.zarr", *args, "--cache", "5000", program=rb.BARE).only
    recompute(small, bare=True)
    assert small.logged == plain.logged
    counts = small.counts
    assert counts["cache_hits"] + counts["cache_misses"] == met
    assert TOUCHED < counts["cache_misses"] <= met and 0 < counts["cache_evictions"] <= counts["cache_misses"]
    assert small.settings["cache-policy"] == policy


def test_cold_and_warm(root, tmp_path):
    cold = rb.measure(tmp_path / "cold", root / "v3.zarr", *ALL, "--epochs", 1, "--cold", program=rb.BARE)
    warm = rb.measure(tmp_path / "warm", root / "v3.zarr", *ALL, "--epochs", 1, "--warm", program=rb.BARE)
    assert cold.only.resources["temperature"] == "cold" and warm.only.resources["temperature"] == "warm"
    before = warm.only.resources["resident_before"]
    if before is None:
        pytest.skip("this file system does not tell what is in the page cache")
    assert before == 1
    assert cold.only.resources["resident_before"] < 0.1 or any("is not cold" in w for w in cold.document["warnings"])
    assert cold.only.logged == warm.only.logged
    assert "fits-in-memory" in {f["rule"] for f in warm.only.findings}
    assert "100 %" in warm.result.out and "warm" in warm.result.out


@pytest.mark.parametrize("prefix", ["icechunk:", ""])
def test_a_repository_is_made_warm(root, tmp_path, prefix):
    """The files of its chunks are, whether it is named by its plain path or not."""
    tool.nc2zarr(root / "deflate.nc", f"icechunk:{tmp_path / 'repo'}").ok()
    warm = rb.measure(tmp_path / "out", f"{prefix}{tmp_path / 'repo'}", *ALL, "--epochs", 1, "--warm", program=rb.BARE).only
    assert warm.resources["store_nbytes"] == sum(f.stat().st_size for f in (tmp_path / "repo" / "chunks").iterdir()) > 0
    assert warm.resources["resident_before"] in (1, None)


@pytest.mark.parametrize("workers", [1, 4])
def test_emulated_requests_take_their_time(root, tmp_path, workers):
    args = ["--sample", BOX, "--batch", 4, "--batches", 5, "--epochs", 1, "--workers", workers]
    report = rb.measure(tmp_path / "out", root / "v3.zarr", *args, "--emulate", "latency=4ms", program=rb.BARE)
    session = report.only
    recompute(session, bare=True)
    asked = sum(b["storage_ns"] for b in session.batches)
    assert asked >= session.counts["requests"] * 4e6
    at_least = session.counts["requests"] * 0.004 / workers
    assert session.training["wall_seconds"] >= at_least * 0.9


def test_emulated_bandwidth_and_concurrency(root, tmp_path):
    """A megabyte a second: 57 KB take as long as they should; and one request at a time means one after another."""
    args = ["--sample", BOX, "--batch", 4, "--batches", 5, "--epochs", 1, "--workers", 4]

    def emulated(name, how):
        return rb.measure(tmp_path / name, root / "v3.zarr", *args, "--emulate", how, program=rb.BARE).only

    slow = emulated("slow", "latency=0ms,bandwidth=2MB/s")
    assert sum(b["storage_ns"] for b in slow.batches) * S >= slow.counts["stored_nbytes"] / 2e6
    alone = emulated("alone", "latency=3ms,concurrency=1")
    assert alone.training["wall_seconds"] >= alone.counts["requests"] * 0.003


def test_every_output_says_that_it_was_emulated(root, tmp_path):
    args = ["--sample", BOX, "--batch", 2, "--batches", 2, "--epochs", 1, "--emulate", "latency=1ms"]
    report = rb.measure(tmp_path / "out", root / "v3.zarr", *args)
    assert "EMULATED" in report.result.out
    assert report.document["emulated"] is True and report.only.emulation
    for name in ("report.html", "summary.json", "summary.yaml", "config.yaml", "timeline.svg", "wait_histogram.svg"):
        assert "EMULATED" in (report.folder / name).read_text().upper(), name
    quiet = rb.measure(tmp_path / "plain", root / "v3.zarr", *args[:-2], program=rb.BARE)
    assert "EMULATED" not in quiet.result.out and quiet.document["emulated"] is False
    for r, emulated in ((report, True), (quiet, False)):
        records = r.only.batches + rb.rows(r.folder / "samples.csv")
        assert {row["emulated"] for row in records} == {int(emulated)}
        events = r.only.events() + r.only.events("events_workers.log")
        assert {e.get("emulated", False) for e in events} == {emulated}
        trace = json.loads((r.folder / "trace.json").read_text())
        assert trace["otherData"]["emulated"] is emulated
        assert ("EMULATED" in json.dumps(trace["traceEvents"])) is emulated


# ---- sweeps and tuning ----------------------------------------------------------------------------


def test_a_sweep_makes_every_combination(root, tmp_path):
    swept = ["--workers", 1, "--sweep", "workers=1,2", "--sweep", "prefetch=1,3"]
    report = rb.measure(tmp_path / "out", root / "v3.zarr", *ALL, *swept, program=rb.BARE)
    ran = [(s.loader["workers"], s.loader["prefetch"]) for s in report.sessions]
    assert sorted(ran) == [(1, 1), (1, 3), (2, 1), (2, 3)]
    for session in report.sessions:
        recompute(session, bare=True)
        assert session.logged == report.sessions[0].logged
    assert len({s.label for s in report.sessions}) == 4
    assert report.document["best"] is not None and report.document["reason"]


def test_tuning_stays_within_twelve_runs(root, tmp_path):
    args = ["--sample", BOX, "--batch", 4, "--batches", 10, "--workers", 1, "--tune"]
    report = rb.measure(tmp_path / "out", root / "v3.zarr", *args, program=rb.BARE)
    document = report.document
    assert 2 <= len(report.sessions) <= 12
    assert document["baseline"] == 0 and document["best"] is not None and document["reason"]
    line = document["data_loader"]
    assert line.startswith("DataLoader(num_workers=") and line in report.result.out.splitlines()
    # PyTorch has no planned loader and no threads in a worker: its line is of the best run that it can do.
    best = report.sessions[document["best"]]
    if best.loader["kind"] == "map" and best.loader["worker_threads"] == 1:
        assert f"num_workers={best.loader['workers']}, prefetch_factor={best.loader['prefetch']}" in line
    for session in report.sessions:
        assert session.counts["failed_batches"] == 0 and os.path.exists(session.folder / "batches.csv")
