"""NetCDF files in buckets and on web servers: listed, surveyed and converted as those of a folder are."""

import json
import signal
import subprocess
import urllib.parse
from pathlib import Path

import pytest
from append import files as F
from support import objects, rectilinear, stores, tool

ALL = "s3://bucket/arch/**/*.nc"
ROOM = "52KiB"  # for two of the files
LAYOUT = ("-q", "--chunks", "time=4")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    top = tmp_path_factory.mktemp("archive")
    days = [Path(d) for d in F.days(top, 0, 13)]
    tool.nc2zarr(*LAYOUT, *days, top / "want.zarr").ok()
    return days, stores.digest(top / "want.zarr")


@pytest.fixture
def bucket(archive):
    server = objects.Server()
    fill(server, archive[0])
    yield server
    server.close()


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def fill(server, days):
    for i, path in enumerate(days):
        data = path.read_bytes()
        server.objects[f"arch/{2000 + i // 5}/{path.name}"] = (data, objects.etag_of(data))


def asked(server):
    """Requests by their kind."""
    kinds = ["LIST" if "list-type" in query else method for method, _, _, query in server.asked]
    server.asked.clear()
    return {k: kinds.count(k) for k in set(kinds)}


def key_of(server, number):
    return next(k for k in server.objects if k.endswith(f"day{number:05}.nc"))


# ---- which inputs there are ----


def test_listings(bucket, archive, out, scratch, tmp_path):
    """In pages, in any order; each file by one request, and nothing that is no input."""
    bucket.objects |= {
        "arch/2000/notes.txt": (b"x", '"x"'),
        "arch/2000/.hidden.nc": (b"x", '"x"'),
        "arch/.git/a.nc": (b"x", '"x"'),
        "arch/2000/": (b"", '""'),
        "arch/old.zarr/zarr.json": (b"{}", '"x"'),
        "arch/old.zarr/x.nc": (b"x", '"x"'),
        "archive.nc": (b"x", '"x"'),
        "other/2000/day00000.nc": (b"x", '"x"'),
    }
    env = bucket.environment(TMPDIR=str(scratch))
    for page in (1000, 3):
        bucket.page = page
        for pattern in (ALL, "s3://bucket/arch/", "s3://bucket/arch/20*/*.nc", "s3://bucket/arch/20??", "s3://bucket/arch/*/day000[01]?.nc"):
            bucket.asked.clear()
            tool.nc2zarr("--overwrite", *LAYOUT, pattern, out, env=env).ok()
            assert stores.digest(out) == archive[1], pattern
            assert asked(bucket) == {"GET": 13, "LIST": 1 if page == 1000 else 7}, pattern
    assert list(scratch.iterdir()) == []


def test_they_are_what_a_folder_has(bucket, archive, tmp_path):
    """A pattern finds in a bucket what it finds in a folder of the same names."""
    names = ["a/b/c.nc", "a/b.nc/d.nc", "a/b.nc/e.txt", "a/.h/x.nc", "a/x.NC", "a/z.zarr/.zgroup", "a/z.zarr/1.nc", "a/z.zarr/g/2.nc", "b/f[1].nc",
             "b/f1.nc", "b/é +%41.nc", "top.h5", "top.hdf5"]  # fmt: skip
    data = archive[0][0].read_bytes()
    bucket.objects.clear()
    for i, name in enumerate(names):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        F.day(tmp_path / "in" / name, i)
        data = (tmp_path / "in" / name).read_bytes()
        bucket.objects["in/" + name] = (data, objects.etag_of(data))
    bucket.quote = urllib.parse.quote_plus  # as some servers encode blanks
    env = bucket.environment()
    for pattern in ("", "**/*.nc", "*/*.nc", "a/*", "a/b*", "**", "b/f[1].nc", "b/f[12].nc", "b/*%41*", "a/**/[!z]*.nc", "*.h*5"):
        found = []
        for top in (tmp_path, "s3://bucket"):
            done = tool.nc2zarr("--survey", "--json", "--order", "name", f"{top}/in/{pattern}", env=env)
            said = json.loads(done.out)
            assert done.status != 1 or "matches the pattern" in said["error"]["message"], (pattern, done)
            found.append([done.status, *(said.get(k) for k in ("files", "bytes")), [x["length"] for x in said.get("axes", [])]])
        assert found[0] == found[1], pattern


def test_lists(bucket, archive, out, tmp_path):
    web = objects.Server(bucket=None, signed=False)
    days = archive[0]
    for path in days[:4]:
        web.objects["d e/" + path.name] = (path.read_bytes(), objects.etag_of(path.read_bytes()))
    keys = bucket.keys("arch")
    names = [f"{web.url}/d%20e/{p.name}" for p in days[:4]] + ["s3://bucket/" + k for k in keys[4:8]] + [str(p) for p in days[8:12]]
    names += ["s3://bucket/arch/*/day00012.nc", "s3://bucket/" + keys[5]]
    (tmp_path / "list").write_text("\n".join(names))
    (tmp_path / "zero").write_bytes(b"\0".join(n.encode() for n in names))
    env = bucket.environment()
    done = tool.nc2zarr("-v", "--overwrite", *LAYOUT[1:], f"@{tmp_path}/list", out, env=env).ok()
    assert stores.digest(out) == archive[1] and "1 file is named more than once" in done.err and "network:" in done.err
    with open(tmp_path / "zero") as standard:
        tool.nc2zarr("--overwrite", *LAYOUT, "-0", "@-", out, env=env, stdin=standard).ok()
    assert stores.digest(out) == archive[1]
    (tmp_path / "list").write_text("\n".join(map(str, days)))
    done = tool.nc2zarr("-v", "--overwrite", *LAYOUT[1:], f"@{tmp_path}/list", out, env=env).ok()
    assert "network" not in done.err
    web.close()


def test_what_is_not_there(bucket, out, tmp_path):
    env = bucket.environment()
    for name, *words in (
        ("s3://bocket/arch/**/*.nc", "bocket", "no such bucket"),
        ("s3://bucket/arch/*.txt", "no object matches the pattern"),
        ("s3://bucket/nothing/", "holds no object"),
        ("s3://bucket/nothing.nc", "no such object"),
        ("s3://b*/x.nc", "bucket"),
        ("https://localhost/a/*.nc", "does not list"),
        ("https://localhost/a/", "does not list"),
    ):
        done = tool.nc2zarr(name, "s3://bucket/" + key_of(bucket, 1), out, env=env)
        assert done.status in (1, 2) and all(w in done.err for w in words) and done.err.count("\n") == 1, done
    assert not out.exists()

    def refuse(handler):
        if "list-type" in handler.query:
            handler.reply(403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", {})
            return "done"

    bucket.fault = refuse
    bucket.asked.clear()
    done = tool.nc2zarr(ALL, out, env=env).fails(1, "s3://bucket/arch", "denied")
    assert done.err.count("\n") == 1 and asked(bucket) == {"LIST": 1}


def test_the_output_is_no_input(bucket, archive, tmp_path):
    env = bucket.environment()
    for _ in range(2):
        tool.nc2zarr("--overwrite", *LAYOUT, "s3://bucket/arch/", "s3://bucket/arch/2000/out.zarr", env=env).ok()
    assert stores.digest("s3://bucket/arch/2000/out.zarr", env) == archive[1]


# ---- fetching ----


@pytest.mark.parametrize("size", ["1", ROOM, "1GiB"])
def test_within_its_room(bucket, archive, out, scratch, size):
    """Once each where they fit; where they do not, no more at a time than that, or one."""
    env, most = bucket.environment(), []
    allowed = max(26000, {"1": 1, ROOM: 53248, "1GiB": 1 << 30}[size])

    def look(handler):
        most.append(sum(p.stat().st_size for p in scratch.rglob("*") if p.is_file()))

    bucket.fault = look
    tool.nc2zarr(*LAYOUT, "-j", "1", "--scratch", scratch, "--scratch-size", size, ALL, out, env=env).ok()
    assert stores.digest(out) == archive[1] and list(scratch.iterdir()) == []
    # Each of the few readers may have one that it needs.
    assert max(most) <= (allowed if size != "1" else 3 * allowed)
    got = asked(bucket)
    assert got["GET"] == 13 if size == "1GiB" else 13 < got["GET"] <= 80


@pytest.mark.parametrize("size", ["1", "1GiB"])
def test_chunks_of_several_lengths_are_added(bucket, out, scratch, tmp_path, size):
    """Files are open twice then, with the store and without it, and share their copies."""
    keep = ("-q", "--codec", "keep", "--grid", "rectilinear")
    months = rectilinear.months(tmp_path, 6)
    for path in months:
        bucket.objects["months/" + path.name] = (path.read_bytes(), objects.etag_of(path.read_bytes()))
    env = bucket.environment()
    tool.nc2zarr(*keep, *months, tmp_path / "want.zarr").ok()
    tool.nc2zarr(*keep, "--scratch", scratch, "--scratch-size", size, "s3://bucket/months/0[12].nc", out, env=env).ok()
    append = ("-q", "--append", "time", "--scratch", scratch, "--scratch-size", size, "--verify", "full")
    tool.nc2zarr(*append, "s3://bucket/months/0[3456].nc", out, env=env).ok()
    stores.same_files(tmp_path / "want.zarr", out)
    assert list(scratch.iterdir()) == []


def test_all_variables_of_a_copy_at_once(bucket, archive, out, scratch):
    """Where not all copies fit, one is used for every variable before it goes."""
    size = max(path.stat().st_size for path in archive[0])
    tool.nc2zarr("-q", "--chunks", "time=2", "-j", "1", "--verify", "none", "--scratch", scratch, "--scratch-size", 6 * size, ALL, out,
                 env=bucket.environment()).ok()  # fmt: skip
    assert stores.digest(out) == archive[1]
    # One for the survey, one for elements, and some at the ends of rounds.
    assert asked(bucket)["GET"] <= 2 * 13 + 6


def test_dry_run_and_verification(bucket, archive, out, scratch, tmp_path):
    env = bucket.environment(TMPDIR=str(scratch))
    assert "tas" in tool.nc2zarr("--dry-run", ALL, out, env=env).ok().out and not out.exists()
    tool.nc2zarr(*LAYOUT, "--scratch-size", ROOM, "--verify", "full", "--certificate", tmp_path / "proof.json", ALL, out, env=env).ok()
    inputs = json.loads((tmp_path / "proof.json").read_text())["inputs"]
    tool.nc2zarr(*LAYOUT, "--verify", "full", "--certificate", tmp_path / "local.json", *archive[0], tmp_path / "local.zarr").ok()
    local = json.loads((tmp_path / "local.json").read_text())["inputs"]
    assert [i["path"] for i in inputs] == ["s3://bucket/" + k for k in bucket.keys("arch")]
    assert [i["sha256"] for i in inputs] == [i["sha256"] for i in local] and inputs[0]["etag"] == bucket.objects[key_of(bucket, 0)][1]
    tool.nc2zarr("-q", "--check", ALL, out, env=env).ok()
    tool.nc2zarr("-q", "--virtual", "json", ALL, tmp_path / "v.json", env=env).ok()
    assert stores.digest(tmp_path / "v.json", env, "--allow", "s3://bucket/arch") == archive[1]
    tool.nc2zarr(*LAYOUT, "--store-per", "{dir}", ALL, tmp_path / "per", env=env).ok()
    assert len(list((tmp_path / "per").glob("*.zarr"))) == 3 and list(scratch.iterdir()) == []


def test_a_file_that_changes(bucket, out, scratch):
    """Between the survey and the conversion: an error that names it."""
    key, seen = key_of(bucket, 3), []

    def change(handler):
        if handler.command == "GET" and handler.key == "bucket/" + key:
            seen.append(handler.headers["If-Match"])
            if len(seen) == 2:
                bucket.objects[key] = (bucket.objects[key_of(bucket, 4)][0], '"another"')

    bucket.fault = change
    done = tool.nc2zarr(*LAYOUT, "--scratch-size", "1", "--scratch", scratch, ALL, out, env=bucket.environment())
    done.fails(1, f"s3://bucket/{key}: changed since it was looked at")
    assert len(seen) >= 2 and all(seen) and not (out / "zarr.json").exists() and list(scratch.iterdir()) == []


def test_some_cannot_be_read(bucket, archive, out, scratch, tmp_path):
    """Damaged, forbidden, gone: that file is named, all others are looked at, and it can be left out."""
    env, key = bucket.environment(TMPDIR=str(scratch)), key_of(bucket, 5)
    whole = bucket.objects[key]

    def answer(status, code):
        def fault(handler):
            if handler.key == "bucket/" + key and handler.command == "GET":
                handler.reply(status, f"<Error><Code>{code}</Code></Error>".encode(), {})
                return "done"

        return fault

    (tmp_path / "list").write_text("\n".join("s3://bucket/" + k for k in bucket.keys("arch")))
    for name, fault, data in (
        ("truncated", None, (whole[0][:12000], '"cut"')),
        ("denied", answer(403, "AccessDenied"), whole),
        ("no longer there", answer(404, "NoSuchKey"), whole),
        ("no such object", None, None),
    ):
        bucket.fault, bucket.objects[key] = fault, data
        if data is None:
            del bucket.objects[key]
        inputs = ALL if data else f"@{tmp_path}/list"
        done = tool.nc2zarr(*LAYOUT, inputs, out, env=env)
        assert done.status == 4 and all(word in done.said for word in (f" {key.partition('/')[2]}: ", name, "--bad-file skip")), done
        assert not out.exists() and "chunkmill-inputs" not in done.err
        tool.nc2zarr(*LAYOUT, "--overwrite", "--bad-file", "skip", inputs, tmp_path / "less.zarr", env=env).ok()
    tool.nc2zarr("-q", "--overwrite", *LAYOUT, *archive[0][:5], *archive[0][6:], out).ok()
    assert stores.digest(out) == stores.digest(tmp_path / "less.zarr") and list(scratch.iterdir()) == []


@pytest.mark.parametrize("way", ["HEAD", "GET"])
def test_a_network_that_fails_is_no_bad_file(bucket, archive, out, scratch, tmp_path, way):
    """One of them is not answered about, or not sent: nothing proposes to leave it out, and nothing does."""
    web = objects.Server(bucket=None, signed=False, objects={p.name: (p.read_bytes(), objects.etag_of(p.read_bytes())) for p in archive[0][:3]})
    web.fault = lambda h: h.reply(503, b"", {}) or "done" if (h.command, h.key) == (way, archive[0][1].name) else None
    for options in ([], ["--bad-file", "skip"]):
        done = tool.nc2zarr("-q", *options, "--timeout", "100ms", *(f"{web.url}/{p.name}" for p in archive[0][:3]), out)
        done.fails(1, archive[0][1].name, "503", "run the same command again")
        assert "bad-file" not in done.err and not out.exists()
    web.close()


REFUSALS = {
    "secret": ({"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, "bucket", ("secret key is wrong", "SignatureDoesNotMatch")),
    "key": ({"AWS_ACCESS_KEY_ID": "AKIAOTHER"}, "bucket", ("does not know this access key",)),
    "region": ({"AWS_REGION": "eu-west-3"}, "bucket", ("AWS_REGION=us-east-1",)),
    "token": ({"AWS_SESSION_TOKEN": "TOKEN-ONE"}, "bucket", ("the session token has expired",)),
    "bucket": ({}, "other", ("there is no such bucket",)),
    "object": ({}, "bucket", ("none.nc: no such object",)),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_the_refusal_of_one_object_has_its_reason(bucket, out, case):
    """Which an answer to HEAD has no body for."""
    more, name, words = REFUSALS[case]
    done = tool.nc2zarr("-q", f"s3://{name}/arch/none.nc", out, env=bucket.environment(**more)).fails(1, *words)
    assert done.err.count("\n") == 1 and asked(bucket) == {"HEAD": 1, "GET": 1}


def test_survey_cache(bucket, archive, out, tmp_path):
    """Objects with a cached ETag are not fetched."""
    env, cache = bucket.environment(), ("--survey-cache", tmp_path / "cache")
    texts = []
    for expected in ({"LIST": 1, "GET": 13}, {"LIST": 1}):
        bucket.asked.clear()
        texts.append(tool.nc2zarr("--survey", *cache, ALL, env=env).ok().out.partition(" files opened")[0].splitlines()[1:-1])
        assert asked(bucket) == expected
    assert texts[0] == texts[1]
    data = archive[0][2].read_bytes() + b"\0"
    bucket.objects[key_of(bucket, 2)] = (data, objects.etag_of(data))
    tool.nc2zarr("--survey", *cache, ALL, env=env)
    assert asked(bucket) == {"LIST": 1, "GET": 1}
    tool.nc2zarr("--survey", *cache, *archive[0], env=env).ok()  # files beside objects
    tool.nc2zarr(*LAYOUT, *cache, ALL, out, env=env).ok()
    assert stores.digest(out) == archive[1]


def test_append_each_night(bucket, archive, out):
    """The same pattern each night: one listing, and the file that is new."""
    env = bucket.environment()
    last = bucket.objects.pop(key_of(bucket, 12))
    tool.nc2zarr(*LAYOUT, ALL, out, env=env).ok()
    bucket.objects["arch/2002/day00012.nc"] = last
    for expected in ({"LIST": 1, "GET": 1}, {"LIST": 1}):
        bucket.asked.clear()
        tool.nc2zarr("-q", "--append", "time", ALL, out, env=env).ok()
        assert asked(bucket) == expected and stores.digest(out) == archive[1]
    data = archive[0][3].read_bytes() + b"\0"
    bucket.objects[key_of(bucket, 3)] = (data, objects.etag_of(data))
    tool.nc2zarr("--append", "time", ALL, out, env=env).fails(1, "day00003.nc", "has changed", "--recheck")


def test_objects_that_nothing_tells_apart(archive, out, tmp_path):
    """Neither ETag nor time of change: of two of the same length, none is taken for the other."""
    def part(k):
        return archive[0][k].read_bytes(), '"x"'

    web = objects.Server(bucket=None, signed=False, hidden={"ETag", "Last-Modified"}, objects={"a.nc": part(0), "b.nc": part(1)})
    files = [f"{web.url}/{name}" for name in web.objects]
    survey = ("--survey", "--survey-cache", tmp_path / "cache")
    assert len(part(1)[0]) == len(part(2)[0])
    tool.nc2zarr(*LAYOUT, files[0], out).ok()
    tool.nc2zarr("-q", "--append", "time", files[1], out).ok()  # which the store does not have
    before = tool.nc2zarr(*survey, *files).ok().out
    web.objects["b.nc"] = part(2)
    assert tool.nc2zarr(*survey, *files).ok().out != before
    tool.nc2zarr("-q", "--append", "time", *files, out).fails(1, "b.nc", "neither an ETag", "--recheck")
    web.objects["b.nc"] = part(1)
    tool.nc2zarr("-q", "--append", "time", "--recheck", *files, out).ok()
    web.put_folder(out, "s.zarr")
    bench = ("readbench", "-q", "--no-out", "--sample", "time=1", "--batch", "1", "--batches", "2", "--cache-dir", tmp_path / "blocks", f"{web.url}/s.zarr")
    tool.run(*bench).fails(1, "neither its ETag")
    web.hidden = {"ETag"}
    tool.run(*bench).ok()
    web.close()


def test_a_faulty_server(bucket, archive, out, scratch):
    met = objects.faults_of(bucket, 0.2)
    for _ in range(3):
        tool.nc2zarr("--overwrite", *LAYOUT, "--scratch", scratch, "--scratch-size", ROOM, ALL, out, env=bucket.environment()).ok()
        assert stores.digest(out) == archive[1]
    assert len(met) > 10 and list(scratch.iterdir()) == []


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_stopped(bucket, archive, out, scratch, way):
    """At any request: nothing stays in the scratch folder, and --resume completes it."""
    env = bucket.environment()
    command = [*LAYOUT, "--scratch", scratch, "--scratch-size", ROOM, ALL, out]
    for nth in (1, 3, 9, 14, 20, 26):
        got, run = [], []

        def fault(handler, got=got, run=run, nth=nth):
            got.append(handler.key)
            if len(got) == nth:
                objects.wait_until(lambda: run)
                run[0].send_signal(way)

        bucket.fault = fault
        run.append(subprocess.Popen([tool.program("nc2zarr"), *map(str, command)], env=tool.environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        run[0].communicate(timeout=300)
        bucket.fault = None
        assert run[0].returncode == -way, nth
        objects.wait_until(lambda: list(scratch.iterdir()) == [])
        tool.nc2zarr(*(["--resume"] if out.exists() else []), *command, env=env).ok()
        assert stores.digest(out) == archive[1]
        tool.nc2zarr("--overwrite", *command, env=env).ok()
        subprocess.run(["rm", "-r", out], check=True)


def test_what_a_dead_machine_left(bucket, scratch, out):
    """A folder that nobody locks is removed by the next run; others of the name stay."""
    left, other = scratch / "chunkmill-inputs-abc123", scratch / "chunkmill-inputs-user"
    left.mkdir(), other.mkdir()
    (left / "17").write_bytes(b"x"), (other / "mine").write_bytes(b"x")
    tool.nc2zarr(*LAYOUT, "--scratch", scratch, ALL, out, env=bucket.environment()).ok()
    assert [p.name for p in scratch.iterdir()] == ["chunkmill-inputs-user"] and (other / "mine").exists()


def test_no_room(bucket, out, tmp_path):
    tool.nc2zarr(*LAYOUT, "--scratch", tmp_path / "none", ALL, out, env=bucket.environment()).fails(1, "none", "no folder can be made")
