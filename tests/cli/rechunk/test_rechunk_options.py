"""The command line of rechunk: wording, exit statuses, JSON, progress, help and the man page."""

import re
import shutil

import jsonschema
import pytest
import zarr

from support import manual, rechunked, terminal, tool
from support.rechunk_stores import SLOW, make_noise, make_store


def run(*args, **kw):
    return tool.run("rechunk", *args, **kw)


@pytest.fixture
def work(tmp_path):
    """A working folder with a small store in it."""
    make_store(tmp_path / "in.zarr", 3)
    return tmp_path


# ---- wrong command lines --------------------------------------------------------------------------

WRONG = {
    "nothing": ([], "no source"),
    "no target": (["in.zarr"], "no target"),
    "too many": (["in.zarr", "b.zarr", "c.zarr"], "one source and one target, not 3 paths"),
    "unknown": (["--qqqqqq", "in.zarr", "b.zarr"], "unknown option --qqqqqq"),
    "near": (["--chunk", "3", "in.zarr", "b.zarr"], "did you mean --chunks?"),
    "choice": (["--zarr-format", "4", "in.zarr", "b.zarr"], "--zarr-format takes 2|3, not '4'"),
    "unknown dimension": (["--chunks", "nosuch=3", "in.zarr", "b.zarr"], "nosuch"),
    "unknown array": (["--chunks", "nosuch:time=3", "in.zarr", "b.zarr"], "nosuch"),
    "unknown codec": (["--codec", "tas:lzw", "in.zarr", "b.zarr"], "lzw"),
    "bad level": (["--codec", "zstd:99", "in.zarr", "b.zarr"], "99"),
    "chunk of nothing": (["--chunks", "tas:0x4x4", "in.zarr", "b.zarr"], "0"),
    "too many lengths": (["--chunks", "tas:1x2x3x4", "in.zarr", "b.zarr"], "tas"),
    "no such variable": (["--variable", "nosuch", "in.zarr", "b.zarr"], "nosuch"),
    "shards in version 2": (["--zarr-format", "2", "--shards", "auto", "in.zarr", "b.zarr"], "--shards"),
    "shard no multiple": (["--chunks", "tas:7x4x5", "--shards", "tas:8x8x10", "in.zarr", "b.zarr"], "tas"),
    "digest of nothing": (["--digest"], "no store"),
    "digest and layout": (["--digest", "--chunks", "time=3", "in.zarr"], "--chunks has no place beside --digest"),
    "digest and verify": (["--digest", "--verify", "full", "in.zarr"], "--verify has no place beside --digest"),
    "overflow of nothing": (["--overflow", "saturate", "in.zarr", "b.zarr"], "--overflow needs --dtype or --unpack"),
    "sample of given chunks": (["--variable", "tas", "--sample", "time=2", "--chunks", "tas:4x4x5", "--chunks", "time:40", "in.zarr",
                                "b.zarr"], "--sample has no effect"),
    "ftp": (["in.zarr", "ftp://host/b.zarr"], "ftp://host/b.zarr: cannot be opened"),
    "az": (["az://bucket/in.zarr", "b.zarr"], "cannot be opened"),
}


@pytest.mark.every
@pytest.mark.parametrize("args, sentence", WRONG.values(), ids=WRONG)
def test_wrong_command_line(work, args, sentence):
    before = rechunked.files(work)
    run(*args, cwd=work).fails(2, sentence)
    assert rechunked.files(work) == before


FAILS = {
    "absent source": (["nosuch.zarr", "b.zarr"], "nosuch.zarr"),
    "a folder of nothing": (["empty", "b.zarr"], "empty"),
    "a file": (["notes.txt", "b.zarr"], "notes.txt"),
    "a file as target": (["in.zarr", "notes.txt"], "notes.txt"),
    "a file as target, overwritten": (["--overwrite", "in.zarr", "notes.txt"], "notes.txt"),
    "a target that is there": (["in.zarr", "there.zarr"], "there.zarr"),
    "the source as target": (["in.zarr", "in.zarr"], "in.zarr"),
    "the source, overwritten": (["--overwrite", "in.zarr", "in.zarr"], "in.zarr"),
    "the source by another name": (["--overwrite", "in.zarr", "link.zarr"], "link.zarr"),
    "inside the source": (["in.zarr", "in.zarr/new"], "in.zarr"),
    "inside the source, overwritten": (["--overwrite", "in.zarr", "in.zarr/model"], "in.zarr"),
    "around the source": (["--overwrite", "in.zarr/model", "in.zarr"], "in.zarr"),
    "no such node": (["in.zarr::nosuch", "b.zarr"], "nosuch"),
    "a node outside": (["in.zarr::../x", "b.zarr"], "in.zarr: key '../x'"),
    "scratch is not a folder": (["--scratch", "notes.txt", "--chunks", "tas:40x1x1", "in.zarr", "b.zarr"], "notes.txt"),
    "too little memory": (["--memory", "100KiB", "--chunks", "tas:40x1x1", "in.zarr", "b.zarr"], "iB"),
}


@pytest.mark.parametrize("args, word", FAILS.values(), ids=FAILS)
def test_refusals_change_nothing(work, args, word):
    (work / "empty").mkdir()
    (work / "notes.txt").write_text("mine")
    (work / "there.zarr").mkdir()
    (work / "there.zarr" / "thesis.tex").write_text("years of work")
    (work / "link.zarr").symlink_to("in.zarr")
    before = rechunked.files(work)
    done = run(*args, cwd=work)
    assert done.status in (1, 2), str(done)
    done.fails(done.status, word)
    assert rechunked.files(work) == before


def test_too_little_memory_says_what_would_do(work):
    done = run("--memory", "1MiB", "--chunks", "tas:40x9x1", work / "in.zarr", work / "b.zarr").fails(1, "--memory")
    least = re.findall(r"([\d.]+) ?(KiB|MiB|GiB)", done.err)[-1]
    assert not (work / "b.zarr").exists()
    run("--memory", f"{least[0]}{least[1]}", "--chunks", "tas:40x9x1", work / "in.zarr", work / "b.zarr").ok()


def test_the_least_memory_is_enough_for_shards(tmp_path, out):
    """Of a sweep that cuts shards all are open at once: one chunk and one shard are not all that it takes."""
    source = tmp_path / "in.zarr"
    zarr.create_array(source, shape=(18, 73, 4855), chunks=(10, 57, 1351), dtype="f8", fill_value=7)[:] = 1
    options = ["-j", "2", "--codec", "zstd:1", "--verify", "none", "--chunks", "18x8x46", "--shards", "18x8x46"]
    done = run("--memory", "1MiB", *options, source, out).fails(1, "--memory")
    least = re.findall(r"([\d.]+) ?(KiB|MiB|GiB)", done.err)[-1]
    run("--memory", f"{least[0]}{least[1]}", *options, source, out).ok()


# ---- --json ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args, outcome, status",
    [
        (["in.zarr", "b.zarr"], "done", 0),
        (["--dry-run", "in.zarr", "b.zarr"], "planned", 0),
        (["absent.zarr", "b.zarr"], "failed", 1),
        (["--chunks", "nosuch=3", "in.zarr", "b.zarr"], "failed", 2),
        (["--digest", "in.zarr"], "done", 0),
        (["--digest", "absent.zarr"], "failed", 1),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else str(v),
)
def test_json_holds_against_the_schema(work, args, outcome, status):
    done = run("--json", *args, cwd=work)
    assert done.status == status, str(done)
    document = rechunked.check_document(done.out)
    assert document["outcome"] == outcome and (document["error"] is None) == (status == 0)
    if status:
        assert done.err == f"rechunk: {document['error']['message']}\n"


# ---- progress -------------------------------------------------------------------------------------


def test_progress_is_a_bar_on_a_terminal(tmp_path, out):
    slow = make_noise(tmp_path / "in.zarr")
    argv = [tool.program("rechunk"), "--progress", "always", *SLOW, slow, out]
    seen = terminal.shown(argv)
    assert re.search(r"\[=*>? *\] \w+: [\d.]+ \w+ of [\d.]+ \w+ \([\d.]+ %\)", seen), seen
    assert seen.endswith("\r\033[K")


# ---- one table: help, man page, completion --------------------------------------------------------

@pytest.mark.long(ci=1)
def test_the_examples_of_the_man_page_run(tmp_path):
    tool.subprocess.run([tool.program("make_sample"), "weather.nc"], cwd=tmp_path, check=True)
    tool.nc2zarr("-q", "--variable", "z", "--verify", "none", "weather.nc", "a.zarr", cwd=tmp_path).ok()
    lines = manual.examples("rechunk")
    assert len(lines) >= 5
    for line in lines:
        assert run(*line, cwd=tmp_path).ok().out
    shutil.rmtree(tmp_path)


def test_schema_describes_every_field():
    jsonschema.Draft202012Validator.check_schema(rechunked.SCHEMA)

    def walk(node):
        if isinstance(node, dict):
            for name, entry in node.get("properties", {}).items():
                assert entry.get("description"), name
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    walk(rechunked.SCHEMA)


# ---- costs that cannot be measured ------------------------------------------------------------


@pytest.mark.roomy
def test_unreadable_chunks_leave_the_presets_and_say_so(tmp_path):
    """Chunks for a sample are chosen by costs measured on the array; one that cannot be read is named."""
    store = tmp_path / "damaged.zarr"
    a = zarr.create_array(store, shape=(64, 200, 200), chunks=(16, 100, 100), dtype="f4")
    a[:] = 1.5
    plan = ["--dry-run", "--sample", "4x32x32", store, tmp_path / "out.zarr"]
    assert "preset" not in run(*plan).ok().err
    for chunk in (p for p in (store / "c").rglob("*") if p.is_file()):
        chunk.write_bytes(bytes(20))
    said = run(*plan).ok().err
    assert "warning: chunks for --sample of" in said and "follow preset costs: " in said
    assert "chunk 0/0/0" in said
    asked = tool.run("chunkcalc", "--sample", "4x32x32", "--recommend", store)
    assert asked.status != 0 and "damaged.zarr" in asked.err and asked.out == ""
