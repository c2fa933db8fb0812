"""Every tool over real servers of objects, whole and behind a faulty proxy; skipped where a server is not installed."""

import json
import re
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import zarr
from append import files as F
from support import daemons, paths, stores, tool
from zarr.codecs import BytesCodec, ShardingCodec

sys.path.insert(0, str(Path(__file__).parent))
import proxy  # noqa: E402
import servers  # noqa: E402

pytestmark = pytest.mark.long(ci=1)
CHUNKS = ("--chunks", "g/tas:time=4,y=16,x=24")
SHARDS = ("--shards", "g/tas:time=8,y=32,x=48", *CHUNKS)


@pytest.fixture(scope="module", params=[servers.Swift, servers.Seaweed, servers.Moto], ids=lambda c: c.__name__)
def bucket(request, tmp_path_factory):
    server = daemons.started(request.param, tmp_path_factory.mktemp)
    yield server
    assert server.uploads() == 0, "an upload in parts was left over"
    server.stop()


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "in.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in (("time", 12), ("y", 32), ("x", 48), ("wide", 250000)):
            ds.createDimension(d, n)
        ds.createVariable("time", "f8", ("time",))[:] = np.arange(12)
        field = np.random.default_rng(1).normal(size=(12, 32, 48)).astype("f4")
        tas = ds.createVariable("g/tas", "f4", ("time", "y", "x"), fill_value=-1)
        field[4:8, :8] = -1
        tas[:] = field
        ds.createVariable("name", str, ("time",))[:] = np.array([f"n{i}" for i in range(12)], dtype=object)
    return path


def test_conformance(bucket):
    """The suite of all stores, of tests/unit/store."""
    program = paths.BUILD / "tests" / "bin" / "store_conformance"
    done = subprocess.run([program, "s3://test/conformance"], env=tool.environment(bucket.environment()), capture_output=True, text=True)
    assert done.returncode == 0 and "15 test(s) run" in done.stdout + done.stderr, done.stdout[-3000:] + done.stderr[-3000:]


LAYOUTS = {
    "chunks": ("--chunks", "time=4,lat=3"),
    "format 2": ("--zarr-format", "2", "--chunks", "time=4"),
    "shards": ("--chunks", "time=2", "--shards", "time=8"),
}


def layouts(bucket):
    """All of them where a server is fast."""
    names = LAYOUTS if bucket.fast or paths.FULL else ("chunks", "shards")
    return [(f"grows {name}.zarr", LAYOUTS[name]) for name in names]


@pytest.mark.long
def test_append_and_parts(bucket, tmp_path):
    """Killed at any moment, the same command completes it; metadata come last."""
    env = bucket.environment()
    days = F.days(tmp_path, 0, 14)
    for name, options in layouts(bucket):
        want, store, parts = tmp_path / name, f"s3://test/{name}", f"s3://test/parts of what {name}"
        tool.nc2zarr("-q", *options, *days, want).ok()
        tool.nc2zarr("-q", *options, *days[:5], store, env=env).ok()
        few = digest_of_files(days[:5], tmp_path, options)
        for delay in (0.02, 0.05, 0.1, 0.2) if bucket.fast else (0.1, 0.4):
            kill_after(delay, env, "-q", "--append", "time", *days[5:], store)
            assert stores.digest(store, env) in (few, stores.digest(want))
        done = tool.nc2zarr("--append", "time", *days[5:], store, env=env).ok()
        assert ("advisory" in done.err) == (not bucket.conditional)
        assert stores.digest(store, env) == stores.digest(want)
        assert bucket.keys(f"{name}.chunkmill/") == [f"{name}.chunkmill/ledger"]
        for k, delay in ((1, 0.1), (2, 0.2), (3, 0.3)):
            kill_after(delay, env, "-q", "--part", f"{k}/3", *options, *days, parts)
        for k in (3, 1, 2):
            if f"parts of what {name}/zarr.json" in bucket.keys(f"parts of what {name}/"):
                assert stores.digest(parts, env) == stores.digest(want)  # by parts that were killed when all was done
            tool.nc2zarr("-q", "--part", f"{k}/3", *options, *days, parts, env=env).ok()
        assert stores.digest(parts, env) == stores.digest(want)


def test_append_and_parts_over_a_faulty_network(bucket, tmp_path):
    """At 20 % of requests: done, or one clear error, and nothing in between for readers; the same command finishes it."""
    days = F.days(tmp_path, 0, 10)
    options = LAYOUTS["shards"]
    want, store, parts = tmp_path / "want.zarr", "s3://test/faulty append.zarr", "s3://test/faulty parts.zarr"
    tool.nc2zarr("-q", *options, *days, want).ok()
    few = digest_of_files(days[:5], tmp_path, options)
    tool.nc2zarr("-q", *options, *days[:5], store, env=bucket.environment()).ok()
    between = proxy.Proxy(bucket.url, seed=3)
    faulty = bucket.environment(AWS_ENDPOINT_URL=between.url)

    def run(*args):
        done = tool.run("nc2zarr", "-q", "--timeout", "60s", *args, env=faulty)
        assert done.status in (0, 1) and bucket.secret not in done.out + done.err, done
        if done.status == 1:
            assert len([line for line in done.err.splitlines() if "warning" not in line]) == 1, done
        return done.status == 0

    appended = run("--append", "time", *days[5:], store)
    assert stores.digest(store, bucket.environment()) in ((stores.digest(want),) if appended else (few, stores.digest(want)))
    done = [run("--part", f"{k}/3", *options, *days, parts) for k in (1, 2, 3)]
    assert all(done) == ("faulty parts.zarr/zarr.json" in bucket.keys("faulty parts.zarr/"))
    assert len(between.met) >= 4 and bucket.uploads() == 0
    between.share = 0
    while not all(done):
        k = done.index(False)
        done[k] = tool.nc2zarr("-q", "--part", f"{k + 1}/3", *options, *days, parts, env=faulty).ok().status == 0
    tool.nc2zarr("-q", "--append", "time", *days[5:], store, env=faulty).ok()
    between.close()
    for made in (store, parts):
        assert stores.digest(made, bucket.environment()) == stores.digest(want)


def digest_of_files(files, folder, layout):
    tool.nc2zarr("-q", "--overwrite", *layout, *files, folder / "some.zarr").ok()
    return stores.digest(folder / "some.zarr")


def kill_after(delay, env, *args, program="nc2zarr"):
    run = subprocess.Popen([tool.program(program), *map(str, args)], env=tool.environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(delay)
    run.kill()
    run.communicate()
    return run.returncode == 0  # it was faster


def test_end_to_end(bucket, source, tmp_path):
    env = bucket.environment()
    expected = stores.digest(source)
    for i, options in enumerate((CHUNKS, SHARDS, ("--zarr-format", "2", *CHUNKS), ("--no-consolidate", *CHUNKS))):
        store = f"s3://test/e2e {i}+=&é/out.zarr"
        done = tool.nc2zarr("--verify", "full", *options, source, store, env=env).ok()
        assert ("advisory" in done.err) == (not bucket.conditional)
        assert stores.digest(store, env) == expected
        tool.nc2zarr("--check", source, store, env=env).ok()
        tool.nc2zarr(source, store, env=env).fails(1, "exists")
        tool.run("rechunk", "--chunks", "g/tas:time=12,y=8,x=12", store, store + "2", env=env).ok()
        if i < 2:
            tool.run("rechunk", "--overwrite", store, store + "2", env=env).ok()
        tool.run("rechunk", store + "2", tmp_path / f"{i}.zarr", env=env).ok()
        assert stores.digest(tmp_path / f"{i}.zarr") == expected
        assert "g/tas" in tool.run("chunkcalc", store, env=env).ok().out
        mode = ("threads", "processes")[i % 2]
        tool.run("readbench", "--no-out", "--mode", mode, "--workers", "2", "--variable", "g/tas", "--sample", "time=2", "--batch", "2",
                 "--batches", "3", "--step-time", "0ms", store, env=env).ok()  # fmt: skip
    assert not [k for k in bucket.keys("e2e ") if ".chunkmill" in k]  # other tests have stores that keep a ledger


def refuses_checksums(done):
    """Debian 13's Swift says of crc32c that it does not know it; Debian 12's took no notice."""
    return done.status == 1 and "NotImplemented" in done.err and "--checksum none sends none" in done.err


@pytest.mark.long
def test_parts_of_a_long_object(bucket, tmp_path):
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        for d, n in (("time", 36), ("x", 250000)):
            ds.createDimension(d, n)
        ds.createVariable("v", "f4", ("time", "x"))[:] = np.random.default_rng(2).normal(size=(36, 250000)).astype("f4")
    env = bucket.environment()
    options = ("--checksum", "crc32c", "--chunks", "time=1,x=125000", "--shards", "time=36,x=250000", "--codec", "none", "--verify", "full")
    done = tool.nc2zarr(*options, tmp_path / "in.nc", "s3://test/long.zarr", env=env)
    if refuses_checksums(done):
        options = ("--checksum", "none", *options[2:])
        done = tool.nc2zarr(*options, tmp_path / "in.nc", "s3://test/long.zarr", env=env)
    done.ok()
    tool.nc2zarr("--check", tmp_path / "in.nc", "s3://test/long.zarr", env=env).ok()
    between = proxy.Proxy(bucket.url, share=0.4, seed=4)
    done = tool.nc2zarr("-q", *options, "--timeout", "60s", "--overwrite", tmp_path / "in.nc", "s3://test/long.zarr", env=bucket.environment(AWS_ENDPOINT_URL=between.url))
    between.close()
    assert between.met and done.status in (0, 1) and bucket.uploads() == 0, done
    if done.status == 1:
        tool.nc2zarr("-q", *options, "--overwrite", tmp_path / "in.nc", "s3://test/long.zarr", env=env).ok()
    tool.nc2zarr("--check", tmp_path / "in.nc", "s3://test/long.zarr", env=env).ok()


@pytest.fixture(scope="module")
def index_first(tmp_path_factory):
    """Shards whose index stands at the start: of `long` it is sent last, with the first of several parts."""
    path = tmp_path_factory.mktemp("index first") / "in.zarr"
    group, rng = zarr.create_group(path), np.random.default_rng(5)
    for name, shape, shard, chunk in (("long", (36, 250000), (36, 250000), (1, 125000)), ("small", (12, 40), (4, 20), (2, 5))):
        codec = ShardingCodec(chunk_shape=chunk, codecs=[BytesCodec()], index_location="start")
        a = group.create_array(name, shape=shape, dtype="f4", chunks=shard, serializer=codec, compressors=None, fill_value=-1, dimension_names=["time", "x"])
        a[:] = rng.normal(size=shape)
        a[: shape[0] // 3, : chunk[1]] = -1  # chunks that are not there
    return path


RECODED = {
    "as they are": (),
    "recoded": ("--codec", "zstd:1"),
    "cut anew": ("--chunks", "long:time=2,x=50000", "--shards", "long:time=36,x=250000", "--chunks", "small:time=1,x=10", "--shards", "small:time=6,x=20"),
}


def assert_equal_below(bucket, name, source, folder):
    """The content of the bucket, read by zarr-python."""
    for key, data in documents(bucket, name).items():
        (folder / key[1:]).parent.mkdir(parents=True, exist_ok=True)
        (folder / key[1:]).write_bytes(data)
    got, want = zarr.open_group(folder, mode="r"), zarr.open_group(source, mode="r")
    for array in ("long", "small"):
        (codec,) = json.loads((folder / array / "zarr.json").read_text())["codecs"]
        assert codec["configuration"]["index_location"] == "start"
        np.testing.assert_array_equal(got[array][:], want[array][:])


@pytest.mark.parametrize("how", RECODED)
def test_shards_whose_index_is_first(bucket, index_first, tmp_path, how):
    env, name = bucket.environment(), f"index first {how}.zarr"
    options, store = RECODED[how], f"s3://test/{name}"
    done = tool.run("rechunk", "-v", "--verify", "full", *options, index_first, store, env=env).ok()
    assert int(re.search(r"POST (\d+)", done.err).group(1)) == 2  # the long one was begun and completed in parts
    assert stores.digest(store, env) == stores.digest(index_first)
    assert_equal_below(bucket, name, index_first, tmp_path / "read")


def test_shards_whose_index_is_first_killed_and_over_a_faulty_network(bucket, index_first, tmp_path):
    env, name = bucket.environment(), "index first again.zarr"
    command = ("-q", *RECODED["recoded"], index_first, f"s3://test/{name}")
    for delay in (0.1, 0.3, 0.6, 1.0):
        kill_after(delay, env, "--overwrite", *command, program="rechunk")
        tool.run("rechunk", "--resume", "--verify", "full", *command, env=env).ok()
        assert stores.digest(command[-1], env) == stores.digest(index_first)
    between = proxy.Proxy(bucket.url, share=0.4, seed=6)
    done = tool.run("rechunk", "--overwrite", "--timeout", "60s", *command, env=bucket.environment(AWS_ENDPOINT_URL=between.url))
    between.close()
    assert between.met and done.status in (0, 1) and bucket.uploads() == 0, done
    if done.status == 1:
        tool.run("rechunk", "--overwrite", *command, env=env).ok()
    assert stores.digest(command[-1], env) == stores.digest(index_first)
    assert_equal_below(bucket, name, index_first, tmp_path / "read")


@pytest.mark.parametrize("kind", ["crc32c", "md5"])
def test_checksums(bucket, source, kind):
    """Objects and parts; what servers say of them agrees, where they say it."""
    env = bucket.environment()
    for options in (CHUNKS, ("--shards", "g/tas:time=8,y=32,x=48", *CHUNKS, "--codec", "none")):
        store = f"s3://test/checksums {kind}.zarr"
        done = tool.nc2zarr("-v", "--overwrite", "--verify", "full", "--checksum", kind, *options, source, store, env=env)
        if refuses_checksums(done):
            pytest.skip("this server knows no crc32c, and says so")
        done.ok()
        compared, all_of_them = map(int, re.search(r"(\d+) of (\d+) checksums", done.err).groups())
        assert all_of_them > 20 and (compared == all_of_them if kind in bucket.tells else compared == 0), done
        tool.nc2zarr("--check", "--checksum", kind, source, store, env=env).ok()


def test_killed_and_resumed(bucket, source):
    env = bucket.environment()
    for delay in (0.05, 0.15, 0.3, 0.6):
        run = subprocess.Popen([tool.program("nc2zarr"), "-j", "2", "--overwrite", *CHUNKS, source, "s3://test/killed.zarr"],
                               env=tool.environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        time.sleep(delay)
        run.kill()
        run.communicate()
        tool.nc2zarr("--resume", *CHUNKS, source, "s3://test/killed.zarr", env=env).ok()
        assert stores.digest("s3://test/killed.zarr", env) == stores.digest(source)
        tool.nc2zarr("--check", source, "s3://test/killed.zarr", env=env).ok()
    assert not bucket.keys("killed.zarr.chunkmill")


def documents(bucket, prefix):
    """Of each key below PREFIX its text, in which nothing of the store's own name is left."""
    return {key[len(prefix) :]: bucket.request("GET", "/test/" + urllib.parse.quote(key)) for key in bucket.keys(prefix + "/")}


@pytest.mark.long
def test_statistics_and_consolidated_metadata(bucket, source):
    """Killed at any moment, the same command completes them."""
    env, store = bucket.environment(), "s3://test/counted.zarr"
    options = ("--statistics", *CHUNKS, source, store)
    tool.nc2zarr(*options, env=env).ok()
    want = documents(bucket, "counted.zarr.statistics.zarr")
    assert len([k for k in want if k.endswith("/c")]) >= 6
    for delay in (0.1, 0.2, 0.3, 0.5) if bucket.fast else (0.5, 1.5):
        kill_after(delay, env, "-q", "--overwrite", *options)
        tool.nc2zarr("-q", "--resume", *options, env=env).ok()
        assert documents(bucket, "counted.zarr.statistics.zarr") == want
    key = "/test/counted.zarr/g/tas/zarr.json"
    bucket.request("PUT", key, body=bucket.request("GET", key).replace(b'"chunk', b' "chunk'))
    for delay in (0.02, 0.05, 0.1):
        kill_after(delay, env, "-q", "--consolidate", store)
    tool.nc2zarr("-q", "--consolidate", store, env=env).ok()
    assert "already" in tool.nc2zarr("--consolidate", store, env=env).ok().out
    assert json.loads(bucket.request("GET", "/test/counted.zarr/zarr.json"))["consolidated_metadata"]["metadata"]["g/tas"] == json.loads(bucket.request("GET", key))
    assert stores.digest(store, env) == stores.digest(source)
    assert not bucket.keys("counted.zarr.chunkmill")


@pytest.mark.parametrize("options", [CHUNKS, SHARDS], ids=["chunks", "shards"])
@pytest.mark.parametrize("seed", range(paths.tries(1, 1, 4)))
def test_a_faulty_network(bucket, source, options, seed):
    """At 20 % of requests: no difference, or one clear error; nothing half there."""
    between = proxy.Proxy(bucket.url, seed=seed)
    env = bucket.environment(AWS_ENDPOINT_URL=between.url)
    store = f"s3://test/faulty{seed}.zarr"
    ends = []
    for args in (
        ("nc2zarr", "--overwrite", "--verify", "full", *options, source, store),
        ("nc2zarr", "--check", source, store),
        ("rechunk", "--overwrite", "--chunks", "g/tas:time=12,y=8,x=12", store, store + "2"),
        ("rechunk", "--digest", store + "2"),
    ):
        done = tool.run(args[0], "--timeout", "60s", "--progress", "never", *args[1:], env=env)
        ends.append(done.status)
        # A length that is too short is a lie that only the chunk's own frame tells: --check calls that a difference.
        short = done.status == 3 and "cannot be read from the store" in done.err and between.met.get("too short")
        assert done.status in (0, 1) or short, done
        assert bucket.secret not in done.out + done.err
        if short:
            break
        if done.status == 1:
            said = [line for line in done.err.splitlines() if "warning" not in line]
            assert len(said) == 1, done
            break
    between.share = 0
    assert len(between.met) >= 4
    if ends == [0, 0, 0, 0]:
        assert stores.digest(store + "2", bucket.environment()) == stores.digest(source)
    between.close()


def put_archive(bucket, days):
    for i, day in enumerate(days):
        bucket.request("PUT", f"/test/archive/{2000 + i // 5}/{Path(day).name}", body=Path(day).read_bytes())


def test_an_archive(bucket, tmp_path):
    """NetCDF files that a bucket lists, converted as those of a folder; with little room, and behind a faulty network."""
    days = F.days(tmp_path, 0, 14)
    put_archive(bucket, days)
    env, out, scratch = bucket.environment(), tmp_path / "out.zarr", tmp_path / "scratch"
    scratch.mkdir()
    tool.nc2zarr("-q", *days, tmp_path / "want.zarr").ok()
    command = ("-q", "--overwrite", "--scratch", scratch, "--scratch-size")
    for size, inputs in (("1GiB", "s3://test/archive/**/*.nc"), ("60KiB", "s3://test/archive/")):
        tool.nc2zarr(*command, size, "--verify", "full", inputs, out, env=env).ok()
        assert stores.digest(out) == stores.digest(tmp_path / "want.zarr")
    grows = f"s3://test/grows-{type(bucket).__name__}.zarr"
    tool.nc2zarr("-q", "s3://test/archive/2000/", grows, env=env).ok()
    tool.nc2zarr("-q", "--append", "time", "s3://test/archive/**", grows, env=env).ok()
    again = tool.nc2zarr("-v", "--append", "time", "s3://test/archive/**", grows, env=env).ok()
    assert stores.digest(grows, env) == stores.digest(out) and "14 files are in the store already" in again.out
    for seed in range(2):
        between = proxy.Proxy(bucket.url, seed=seed)
        done = tool.nc2zarr(*command, "60KiB", "--timeout", "60s", "s3://test/archive/**/*.nc", out, env=bucket.environment(AWS_ENDPOINT_URL=between.url))
        between.close()
        assert done.status == 0 or (done.status == 1 and done.err.count("\n") == 1), done
        assert done.status != 0 or stores.digest(out) == stores.digest(tmp_path / "want.zarr")
        assert sum(between.met.values()) >= 2 and list(scratch.iterdir()) == []
    bucket.request("PUT", "/test/archive/2002/day00012.nc", body=b"another")
    tool.nc2zarr("-q", "--append", "time", "s3://test/archive/**", grows, env=env).fails(1, "day00012.nc", "has changed")


def test_refusals(bucket, source):
    env = bucket.environment
    for words, more, url in (
        (["access key", "denied", "signature", "forbidden"], {"AWS_ACCESS_KEY_ID": "nobody"}, "s3://test/x.zarr"),
        (["secret key", "denied", "signature", "forbidden"], {"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, "s3://test/x.zarr"),
        (["bucket"], {}, "s3://nothing-of-that-name/x.zarr"),
        (["zarr"], {}, "s3://test/nothing.zarr"),
    ):
        if type(bucket).__name__ == "Moto" and "AWS_ACCESS_KEY_ID" in more or "AWS_SECRET_ACCESS_KEY" in more and type(bucket).__name__ == "Moto":
            continue  # checks no signature
        done = tool.run("rechunk", "--digest", url, env=env(**more)).fails(1)
        assert any(re.search(w, done.err, re.I) for w in words), done
        assert "wrong-secret" not in done.err and bucket.secret not in done.err.replace("test:tester", "")


def test_static_files(source, tmp_path, tmp_path_factory):
    web = daemons.started(servers.Nginx, tmp_path_factory.mktemp)
    try:
        for i, options in enumerate((CHUNKS, SHARDS, ("--zarr-format", "2", *CHUNKS))):
            tool.nc2zarr(*options, source, web.folder / "www" / f"{i}.zarr").ok()
            between = proxy.Proxy(web.url, seed=i, faults=("delay", "cut", "reset", "500", "503", "too long", "lost answer"))
            assert stores.digest(f"{web.url}/{i}.zarr") == stores.digest(source)
            assert stores.digest(f"{between.url}/{i}.zarr") == stores.digest(source)
            between.close()
        (web.folder / "www" / "in.nc").write_bytes(source.read_bytes())
        tool.nc2zarr("--verify", "full", f"{web.url}/in.nc", tmp_path / "out.zarr").ok()
        assert stores.digest(tmp_path / "out.zarr") == stores.digest(source)
        days = F.days(web.folder / "www", 0, 9)
        (tmp_path / "list").write_text("\n".join(f"{web.url}/{Path(day).name}" for day in days))
        tool.nc2zarr("-q", *days, tmp_path / "want.zarr").ok()
        tool.nc2zarr("-q", "--scratch-size", "60KiB", f"@{tmp_path}/list", tmp_path / "many.zarr").ok()
        assert stores.digest(tmp_path / "many.zarr") == stores.digest(tmp_path / "want.zarr")
    finally:
        web.stop()
