"""
Every verb before a server that fails: of each request in turn 20 or 40 % meet an error, a reset, a body that is cut, an
answer that never comes, or one that is lost after the server has done what was asked.

A run ends well, and all objects are those of a run without faults; or it ends with one sentence, nothing of others' is
lost and readers see what was there before, or all.  The same command without faults completes it to the same bytes.
A round is one trial; `CHUNKMILL_FULL=1` tries 200 of each verb, a sample a few.
"""

import random
import shutil
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import netCDF4
import numpy as np
import pytest
from append import files as F
from support import objects, paths, tool

pytestmark = pytest.mark.long
ROUNDS = paths.tries(2, 4, 100)  # of each verb at each share
SHARES = (0.2, 0.4)
FAULTS = ("500", "503", "reset", "cut", "too short", "too long", "slow down", "lost answer", "late") * 4 + ("no answer",)
STORE, OTHERS = "s3://bucket/s.zarr", {f"s.zarr{end}": b"another's" for end in ("-other/zarr.json", "x", ".statistics.zarrx/c")}
XML = {"Content-Type": "application/xml"}
SLOW_DOWN = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>"


def entry(data):
    return data, objects.etag_of(data)


class Faults:
    """To be a server's `fault`: one request in turn after the other meets one with the probability SHARE."""

    def __init__(self, server, share, seed):
        self.server, self.share, self.chance = server, share, random.Random(seed)
        self.lock, self.met, self.ended = threading.Lock(), Counter(), threading.Event()

    def __call__(self, handler):
        with self.lock:
            kind = self.chance.choice(FAULTS) if self.chance.random() < self.share else None
            self.met[kind] += 1
        return kind and getattr(self, kind.replace(" ", "_"), self.status)(handler, kind)

    def status(self, handler, kind):
        handler.reply(int(kind), b"<Error><Code>InternalError</Code></Error>", XML)
        return "done"

    def slow_down(self, handler, _):
        handler.reply(200, SLOW_DOWN, XML)
        return "done"

    def late(self, *_):
        time.sleep(0.05)

    def no_answer(self, handler, _):
        self.ended.wait(60)
        return self.reset(handler, _)

    def reset(self, handler, _):
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        handler.connection.close()
        handler.close_connection = True
        return "done"

    def lost_answer(self, handler, kind):
        try:
            handler.check_signature(self.server, *handler.path.split("?", 1) if "?" in handler.path else (handler.path, ""))
            handler.answer(self.server)
        except objects.Refusal:
            pass
        return self.reset(handler, kind)

    def said_wrong(self, handler, by, part):
        """The true answer with a length that is BY longer, of which a PART comes."""
        if handler.command != "GET":
            return None
        try:
            status, body, headers = handler.answer(self.server)
        except objects.Refusal:
            return self.reset(handler, "")
        if by < 0 and status != 206:  # nothing else tells how long an object is
            by = 0
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(max(0, len(body) + by)))
        handler.end_headers()
        handler.wfile.write(body[: int(len(body) * part)])
        handler.wfile.flush()
        handler.connection.shutdown(socket.SHUT_WR)
        handler.close_connection = True
        return "done"

    def cut(self, handler, _):
        return self.said_wrong(handler, 0, 0.5)

    def too_short(self, handler, _):
        return self.said_wrong(handler, -5, 1)

    def too_long(self, handler, _):
        return self.said_wrong(handler, 7, 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Inputs of all verbs: days, some of them new, and a file with long shards."""
    top = tmp_path_factory.mktemp("attack")
    F.days(top, 0, 10)
    for i in (3, 4):
        F.day(top / f"new{i}.nc", i, data=F.values(i, 1) + 0.5)
    with netCDF4.Dataset(top / "long.nc", "w") as ds:
        ds.createDimension("time", 12)
        ds.createDimension("x", 250000)
        ds.createVariable("v", "f4", ("time", "x"))[:] = np.random.default_rng(2).normal(size=(12, 250000)).astype("f4")
    return top


LAYOUT = ("--chunks", "time=4,lat=3")
SHARDS = ("--chunks", "time=2,lat=3", "--shards", "time=8,lat=6")
LONG = ("--chunks", "time=1,x=125000", "--shards", "time=12,x=250000", "--codec", "none")


def days(first, stop, top=None):
    return [f"s3://bucket/in/day{i:05}.nc" if top is None else top / f"day{i:05}.nc" for i in range(first, stop)]


class Verb:
    """`before` made the store that is there, `commands` are attacked; `resumed` is how they are given again."""

    def __init__(self, *commands, before=(), resumes=False, keys="s.zarr"):
        self.commands, self.before, self.resumes, self.keys = commands, before, resumes, keys


def verbs(top):
    write, grown = ("nc2zarr", *LAYOUT, *days(0, 6), STORE), ("nc2zarr", *LAYOUT, *days(0, 6, top), STORE)
    source = ("nc2zarr", *LAYOUT, *days(0, 6, top), "s3://bucket/a.zarr")
    more = ("nc2zarr", "--append", "time", *days(6, 10, top), "s3://bucket/a.zarr")
    copied = ("rechunk", "--statistics", "--chunks", "tas:time=5,lat=2,lon=4", "s3://bucket/a.zarr", STORE)
    return {
        "write": Verb(write, resumes=True),
        "append": Verb(("nc2zarr", "--append", "time", *days(6, 10), STORE), before=[grown]),
        "append to shards": Verb(("nc2zarr", "--append", "time", *days(6, 10, top), STORE), before=[(*grown[:1], *SHARDS, *grown[3:])]),
        "replace": Verb(("nc2zarr", "--replace", "time=3:5", top / "new3.nc", top / "new4.nc", STORE), before=[grown]),
        "parts": Verb(*[("nc2zarr", *SHARDS, "--part", f"{k}/3", *days(0, 10), STORE) for k in (1, 2, 3)]),
        "references": Verb(("nc2zarr", "--virtual", "json", "--overwrite", *days(0, 6), "OUT")),
        "multipart": Verb(("nc2zarr", "--checksum", "crc32c", *LONG, top / "long.nc", STORE), resumes=True),
        "rechunk": Verb(copied, before=[source], resumes=True),
        "rechunk append": Verb(("rechunk", "--append", "time", *copied[-2:]), before=[source, copied, more]),
        "rechunk parts": Verb(*[(*copied[:1], *SHARDS, "--part", f"{k}/3", *copied[-2:]) for k in (1, 2, 3)], before=[source, more]),
        "digest": Verb(("rechunk", "--digest", "s3://bucket/a.zarr"), before=[source]),
        "readbench": Verb(("readbench", "--no-out", "--seed", "1", "--variable", "tas", "--sample", "time=2", "--batch", "2", "--batches",
                           "3", "--epochs", "1", "--step-time", "0ms", "s3://bucket/a.zarr"), before=[source, more]),
        "chunkcalc": Verb(("chunkcalc", "s3://bucket/a.zarr"), before=[source, more]),
    }  # fmt: skip


MEASURES = ("readbench", "chunkcalc")  # which say other numbers each time
NAMES = list(verbs(paths.ROOT))


class Bench:
    """The initial state of a verb, and its result without faults."""

    def __init__(self, verb, top):
        self.verb, self.top = verb, top
        server = objects.Server()
        for path in top.glob("day*.nc"):
            server.objects[f"in/{path.name}"] = entry(path.read_bytes())
        for command in verb.before:
            self.run(server, command, top / "none").ok()
        server.objects |= {k: entry(v) for k, v in OTHERS.items()}
        self.before = dict(server.objects)
        self.said = [self.run(server, command, top / "want.json").ok().out for command in verb.commands]
        self.after = dict(server.objects)
        self.written = (top / "want.json").read_bytes() if (top / "want.json").exists() else None
        server.close()

    def run(self, server, command, out, *options):
        program, *args = [out if word == "OUT" else word for word in command]
        quick = () if program in ("readbench", "chunkcalc") or "--digest" in args else ("-q", "-j", "1", "--verify", "none")
        return tool.run(program, *quick, *options, *args, env=server.environment())


def data_of(found):
    """Objects by what they hold; of documents beside a store, which say when and by whom, that they are there."""
    return {k: v[0] if ".chunkmill/" not in k else b"" for k, v in found.items()}


def differs(got, want):
    return sorted(k for k in {*got, *want} if got.get(k) != want.get(k))


def demand(true, *what):
    """As `assert`, but without the objects in its sentence."""
    if not true:
        raise AssertionError("; ".join(map(str, what)))


def one_sentence(done, program):
    lines = done.err.splitlines()
    said = [line for line in lines if line.startswith(f"{program}: ") and "warning" not in line]
    listed = len(said) > 1 and said[-1].endswith("a decision; nothing was written")  # of many files, each that failed
    return done.status in (1, 4) and (len(said) == 1 or listed) and len(said[0]) > 20


def attack(name, bench, share, seed, folder):
    """One round; (faults met, whether all ended well at once)."""
    rng = random.Random(seed)
    server, out = objects.Server(), folder / f"{seed}.json"
    server.objects = dict(bench.before)
    faults = server.fault = Faults(server, share, seed)
    timeout = rng.choice(("1s", "3s", "20s"))
    what = (name, share, seed, timeout)
    well = []
    for nth, command in enumerate(bench.verb.commands):
        done = bench.run(server, command, out, "--timeout", timeout)
        well.append(done.status == 0)
        if done.status == 0:
            demand(name in MEASURES or done.out == bench.said[nth], what, str(done))
        else:
            demand(one_sentence(done, command[0]), what, str(done))
    share_met = sum(n for kind, n in faults.met.items() if kind)
    server.fault = None
    faults.ended.set()
    server.settle()
    got, want, before = data_of(server.objects), data_of(bench.after), data_of(bench.before)
    for key in OTHERS:
        demand(got[key] == before[key], what, key)
    if all(well):
        lost = [key for key in differs(got, want) if ".chunkmill/" not in key]  # what stays there, or is missed, costs no data
        demand(not lost, what, lost)
        demand(out.exists() == (bench.written is not None) and (bench.written is None or out.read_bytes() == bench.written), what)
    else:
        seen = {k: v for k, v in got.items() if k.endswith(("zarr.json", ".zmetadata")) and k.count("/") == 1 and k.startswith("s.zarr/")}
        for key, data in seen.items():
            demand(data in (before.get(key), want.get(key)), what, key)
        demand(not out.exists() or out.read_bytes() == bench.written, what)
    for nth, command in enumerate(bench.verb.commands):
        if well[nth] and bench.verb.resumes:
            continue
        options = ("--resume",) if bench.verb.resumes else ()
        done = bench.run(server, command, out, *options)
        demand(done.status == 0, what, str(done))
    got = data_of(server.objects)
    left = [key for key in differs(got, want) if ".chunkmill/" not in key or not all(well)]
    demand(not left, what, well, left)
    demand(server.uploads == {}, what, list(server.uploads))
    server.close()
    return share_met, all(well)


@pytest.mark.parametrize("name", NAMES)
def test_verb(made, tmp_path, name):
    for path in made.glob("*.json"):
        path.unlink()
    bench = Bench(verbs(made)[name], made)
    rounds = [(share, 1000 * int(10 * share) + n) for share in SHARES for n in range(ROUNDS)]
    failed, results = [], []

    def one(share, seed):
        try:
            results.append(attack(name, bench, share, seed, tmp_path))
        except AssertionError as e:
            failed.append(f"share {share}, seed {seed}: {str(e)[:3000]}")

    with ThreadPoolExecutor(14) as pool:
        list(pool.map(lambda r: one(*r), rounds))
    shutil.rmtree(tmp_path, ignore_errors=True)
    print(f"{name}: {len(rounds)} rounds, {sum(n for n, _ in results)} faults met, {sum(w for _, w in results)} ended well at once, {len(failed)} failed")
    assert not failed, "\n".join(failed)
    assert sum(n for n, _ in results) > len(rounds)
