"""Rates of the disk: readbench's own probe beside programs that only read, all cold."""

import json
import os
import shutil

import measure


def files_of(store):
    for folder, _, names in sorted(os.walk(store)):
        for name in sorted(names):
            yield os.path.join(folder, name)


def shards_of(store):
    """Files of some size: fio and dd are asked for these."""
    return [path for path in files_of(store) if os.path.getsize(path) > 1 << 20]


def probe(bench, store):
    argv = [f"{bench.build}/bin/readbench", "-q", "--json", "--no-out", "--cold", "--order", "chunks", "--batch", "16",
            "--batches", "4", "--epochs", "1", "--step-time", "0ms", "--mode", "threads", "--workers",
            str(bench.threads), store]  # fmt: skip
    run = measure.run(argv)
    if run.status != 0:
        raise RuntimeError(run.why())
    return json.loads(run.output)["sessions"][0]["rates"]["storage"]


def fio(bench, store):
    """Pieces of a chunk's size anywhere in the shards, past the page cache, by as many threads."""
    names = ":".join(path.replace(":", "\\:") for path in shards_of(store))
    argv = ["fio", "--name=read", "--readonly", "--rw=randread", "--bs=256k", "--direct=1", "--ioengine=psync",
            "--thread", f"--numjobs={bench.threads}", "--group_reporting", "--time_based", "--runtime=2",
            "--output-format=json", f"--filename={names}"]  # fmt: skip
    run = measure.run(argv)
    if run.status != 0:
        raise RuntimeError(run.why())
    return json.loads(run.output[run.output.index("{") :])["jobs"][0]["read"]["bw_bytes"]


def dd(bench, store):
    """One file after the other, past the page cache, by one process."""
    seconds = nbytes = 0
    for path in shards_of(store):
        run = measure.run(["dd", f"if={path}", "of=/dev/null", "bs=1M", "iflag=direct"])
        if run.status != 0:
            raise RuntimeError(run.why())
        seconds, nbytes = seconds + run.wall, nbytes + os.path.getsize(path)
    return nbytes / seconds


READERS = {
    "probe": ("readbench's probe, --cold", None, probe),
    "fio": ("fio, random reads of 256 KiB, O_DIRECT", "fio", fio),
    "dd": ("dd, in order, O_DIRECT, one process", "dd", dd),
}


def measure_disk(bench, store, say):
    """Bytes a second, in rounds."""
    row = {}
    for who, (title, program, _) in READERS.items():
        row[who] = {"title": title, "rates": {}}
        if program and shutil.which(program) is None:
            row[who]["refused"] = f"{program} is not installed"
            say(f"disk: {program} is not installed: not measured")
    for r in range(min(bench.rounds, 5)):
        for who, (_, _, function) in READERS.items():
            if "refused" in row[who]:
                continue
            for path in files_of(store):
                measure.cold(path)
            try:
                row[who]["rates"][r] = function(bench, store)
            except (RuntimeError, ValueError, KeyError) as error:
                row[who]["refused"] = str(error)
    return row
