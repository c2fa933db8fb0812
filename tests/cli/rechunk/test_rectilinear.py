"""Stores whose chunks differ in length along a dimension: read by every tool, and kept by --grid rectilinear."""

import json
import random
import zipfile

import numpy as np
import pytest

from support import paths, rectilinear, stores, tool

FIXTURE = paths.ROOT / "testdata" / "rectilinear.zip"
FACTS = json.loads(FIXTURE.with_suffix(".json").read_text())


def digests(store):
    out = tool.run("rechunk", "--digest", store).ok().out
    return {words[1]: words[0] for words in map(str.split, out.splitlines()) if len(words) == 3}


def grids(store):
    return {d.name: json.loads((d / "zarr.json").read_text())["chunk_grid"] for d in store.iterdir() if d.is_dir()}


@pytest.fixture
def folder(tmp_path):
    with zipfile.ZipFile(FIXTURE) as z:
        z.extractall(tmp_path / "a.zarr")
    return tmp_path / "a.zarr"


def test_digests_of_zarr_python(tmp_path):
    """Its values, also in regular grids, and in its own once more, chunk by chunk or with another codec."""
    want = {name: facts["digest"] for name, facts in FACTS.items()}
    assert digests(FIXTURE) == want
    for k, how in enumerate((["--chunks", "auto"], ["--grid", "rectilinear"], ["--grid", "rectilinear", "--codec", "gzip"])):
        out = tmp_path / str(k)
        done = tool.run("rechunk", *how, "--verify", "full", FIXTURE, out).ok()
        assert digests(out) == want
        assert ("Readers: zarr-python 3.2" in done.out) == (k > 0)


def test_chunks_stay(folder, tmp_path):
    """Byte by byte, those that are not there too; text and shards are written anew."""
    out = tmp_path / "b.zarr"
    report = tool.run("rechunk", "--json", "--grid", "rectilinear", folder, out).json()
    for name, grid in grids(out).items():
        array = next(a for a in report["arrays"] if a["name"] == name)
        assert array["counted"] == array["planned"], name
        if name in ("text", "sharded"):
            assert grid["name"] == "regular"
            continue
        before, after = ({p.relative_to(s): p.read_bytes() for p in (s / name / "c").rglob("*") if p.is_file()} for s in (folder, out))
        assert before == after, name
        if name not in ("cut", "shorter"):  # whose chunks behind the end are not there
            assert grid == FACTS[name]["grid"], name
            assert "shortest_chunks" in array["after"]


def test_audit_names_what_is_missing(folder):
    (folder / "both" / "c" / "1" / "2").unlink()
    (folder / "months" / "c" / "9").mkdir()
    (folder / "months" / "c" / "9" / "0").write_bytes(b"x")
    (folder / "both" / "c" / "2" / "3").write_bytes(b"short")
    report = tool.run("chunkcalc", "--audit", "--json", folder)
    arrays = {a["name"]: a for a in json.loads(report.out)["census"]["arrays"]}
    assert arrays["both"]["absent"]["chunks"] == ["1/2"]
    assert arrays["both"]["truncated"]["chunks"] == ["2/3"]
    assert "a chunk 12" in arrays["both"]["truncated"]["why"]  # 3 x 2 int16
    assert "months/c/9/0" in report.out


def brute_force(lengths, length, sample):
    """The mean of chunks that a read meets along a dimension, and of their elements."""
    starts = rectilinear.spans(length, lengths)
    chunks = nelem = 0
    for at in range(length - sample + 1):
        met = [n for start, n in starts if start < at + sample and start + n > at]
        chunks += len(met)
        nelem += sum(met)
    return chunks / (length - sample + 1), nelem / (length - sample + 1)


@pytest.mark.parametrize("sample", [(1, 1), (5, 3), (12, 9), (4, 2)])
def test_chunkcalc_counts_each_chunk(sample):
    report = tool.run("chunkcalc", "--json", "--recommend", "--variable", "both", "--sample", "x".join(map(str, sample)), FIXTURE).json()
    present = next(layout for layout in report["layouts"] if layout["rule"] == "present")
    (rows, row_elements), (columns, column_elements) = brute_force([5, 4, 3], 12, sample[0]), brute_force([2, 3, 2, 2], 9, sample[1])
    got = present["reads"][0]
    assert got["chunks"]["mean"] == pytest.approx(rows * columns)
    assert got["decoded_nbytes"] == pytest.approx(2 * row_elements * column_elements)
    assert present["array"]["nchunks"] == 12 and present["array"]["padding_nbytes"] == 0


def test_a_batch_takes_no_more_than_the_array(tmp_path):
    """All chunks together have as many bytes as they have, not each those of the longest."""
    rectilinear.write(tmp_path / "a", "v", np.arange(600, dtype="i2").reshape(600, 1), [[500, 50, 50], 1])
    report = tool.run("chunkcalc", "--json", "--recommend", "--sample", "10x1", "--batch", "64", tmp_path / "a").json()
    present = next(layout for layout in report["layouts"] if layout["rule"] == "present")
    assert present["batch"]["distinct_chunks"] == pytest.approx(3) and present["batch"]["decoded_nbytes"] <= 1200


@pytest.mark.parametrize("loader", ["map", "planned"])
def test_readbench_counts_as_predicted(tmp_path, loader):
    options = ["--variable", "both", "--sample", "4x3", "--batch", "8", "--loader", loader, "--out", tmp_path / "r"]
    session = tool.run("readbench", "--json", *options, FIXTURE).json()["sessions"][0]
    assert session["counts"]["failed_chunks"] == 0
    if loader == "map":
        assert session["counts"]["chunks"] == session["predicted"]["chunks"]
        (rows, row_elements), (columns, column_elements) = brute_force([5, 4, 3], 12, 4), brute_force([2, 3, 2, 2], 9, 3)
        assert session["predicted"]["chunks_per_sample"] == pytest.approx(rows * columns)
        assert session["predicted"]["decoded_nbytes_per_sample"] == pytest.approx(2 * row_elements * column_elements)


@pytest.mark.parametrize("number", range(40 if paths.LONG else 3))
@pytest.mark.every
def test_random_grids(tmp_path, number):
    """Written by hand: every tool reads the values, in parts and subsets too."""
    rng = random.Random(number)
    rank = rng.randint(1, 3)
    shape = [rng.randint(1, 30) for _ in range(rank)]
    values = np.random.default_rng(number).integers(0, 1000, shape).astype(rng.choice(["int16", "float32", "int64"]))
    lengths = [rng.randint(1, 9) if rng.random() < 0.3 else rectilinear.cut(rng, n + rng.randint(0, 5), 9) for n in shape]
    names = [f"d{j}" for j in range(rank)]
    rectilinear.write(tmp_path / "a", "v", values, lengths, names)
    rectilinear.write(tmp_path / "b", "v", values, shape, names)
    want = digests(tmp_path / "b")
    assert digests(tmp_path / "a") == want
    chunks = "x".join(str(rng.randint(1, n)) for n in shape)
    first, step = rng.randrange(shape[0]), rng.randint(1, 4)
    subset = f"d0={first}:{shape[0]}:{step}"
    for k, s in enumerate("ab"):
        tool.run("rechunk", "-q", "--subset", subset, "--chunks", chunks, tmp_path / s, tmp_path / f"s{s}").ok()
    assert digests(tmp_path / "sa") == digests(tmp_path / "sb")
    (a,) = tool.run("rechunk", "--json", "--chunks", chunks, tmp_path / "a", tmp_path / "j").json()["arrays"]
    assert a["counted"] == a["planned"] and a["plan"]["gap"] >= 0
    for part in ("1/2", "2/2"):
        tool.run("rechunk", "-q", "--part", part, "--chunks", chunks, tmp_path / "a", tmp_path / "p").ok()
    tool.run("rechunk", "-q", "--grid", "rectilinear", tmp_path / "a", tmp_path / "k").ok()
    assert digests(tmp_path / "p") == digests(tmp_path / "k") == want
    n = rng.randint(1, 9)
    for part in rng.sample(range(1, n + 1), n):
        tool.run("rechunk", "-q", "--part", f"{part}/{n}", "--verify", "full", "--grid", "rectilinear", tmp_path / "a", tmp_path / "kp").ok()
    stores.same_files(tmp_path / "k", tmp_path / "kp")


def test_any_number_of_chunks_takes_little_memory(tmp_path):
    values = np.zeros(3, "int16")
    rectilinear.write(tmp_path / "a", "v", values, [[1, 2]])
    document = tmp_path / "a" / "v" / "zarr.json"
    d = json.loads(document.read_text())
    d["shape"], d["chunk_grid"]["configuration"]["chunk_shapes"] = [10**15], [[[1, 5 * 10**14], [2, 4 * 10**14]]]
    document.write_text(json.dumps(d))
    done = tool.run("chunkcalc", tmp_path / "a", peak=True).ok()
    assert "750000000000000" in done.out and done.peak < 64 << 20


REFUSED = [
    (["--grid", "rectilinear", "--zarr-format", "2"], "format 2 has no such grid"),
    (["--grid", "rectilinear", "--chunks", "10x3"], "leave out one of the two"),
    (["--grid", "rectilinear", "--shards", "auto"], "not put into shards"),
]


@pytest.mark.parametrize("options, words", REFUSED)
@pytest.mark.every
def test_refusals(tmp_path, options, words):
    done = tool.run("rechunk", *options, "--variable", "months", FIXTURE, tmp_path / "out")
    assert done.status == 2 and words in done.said, str(done)
    assert not (tmp_path / "out").exists()


def test_repositories_refuse(tmp_path):
    done = tool.run("rechunk", "--grid", "rectilinear", FIXTURE, f"icechunk:{tmp_path / 'out'}")
    assert done.status == 2 and "chunks of one length" in done.said, str(done)


@pytest.mark.long
@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer takes memory of its own")
def test_a_million_lengths_are_kept_once(tmp_path):
    """A document of many lengths takes about 100 bytes a length: it is there once, and programs that only read drop it."""
    n = 500_000
    doc = rectilinear.document(np.zeros(1, "i1"), [[1]])
    doc |= {"shape": [3 * n], "data_type": "int8", "fill_value": 0, "codecs": [{"name": "bytes"}]}
    doc["chunk_grid"]["configuration"]["chunk_shapes"] = [[1, 2] * n]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "zarr.json").write_text(json.dumps(doc))
    for argv in (["chunkcalc", tmp_path / "a"], ["rechunk", "--dry-run", tmp_path / "a", tmp_path / "b"]):
        done = tool.run(*argv, peak=True).ok()
        assert done.peak < 190 << 20, (argv, done.peak)
