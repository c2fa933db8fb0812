"""chunkcalc --access: reads of a log in place of a sample, counted box by box, and rates predicted of them."""

import itertools
import json
import random
import re

import jsonschema
import numpy as np
import pytest
import zarr

from support import paths, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "chunkcalc.json").read_text())
SHAPE, CHUNKS = (48, 60, 80), (6, 30, 40)


def run(*args, **kw):
    return tool.run("chunkcalc", *args, **kw)


def document(*args, **kw):
    result = run("--json", *args, **kw)
    doc = json.loads(result.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(doc)
    result.ok()
    return doc


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("access") / "a.zarr"
    group = zarr.open_group(path, mode="w")
    values = np.random.default_rng(2).random(SHAPE, dtype="f4").cumsum(0)
    for name, shape in (("t", SHAPE), ("lat", SHAPE[1:2])):
        dims = ("time", "lat", "lon") if name == "t" else ("lat",)
        array = group.create_array(name, shape=shape, chunks=CHUNKS if name == "t" else (60,), dtype="f4",
                                   dimension_names=dims)  # fmt: skip
        array[...] = values if name == "t" else 1
    return path


def log_of(tmp_path, boxes, array="t", seconds=0.5):
    path = tmp_path / "log"
    with path.open("w") as f:
        for i, box in enumerate(boxes):
            line = {"array": array, "box": box, "time": i, "seconds": seconds, "pid": 1, "thread": 1, "read": i + 1}
            f.write(json.dumps(line) + "\n")
    return path


def windows(n, sizes, seed=1):
    r = random.Random(seed)
    for _ in range(n):
        at = [r.randrange(length - size + 1) for length, size in zip(SHAPE, sizes)]
        yield [[a, a + size] for a, size in zip(at, sizes)]


def chunks_of(box, chunk):
    return int(np.prod([(b - 1) // c - a // c + 1 for (a, b), c in zip(box, chunk)]))


def test_chunks_are_counted_box_by_box(store, tmp_path):
    boxes = list(windows(50, (4, 9, 7))) + list(windows(20, (48, 1, 1))) + [[[0, 1], [3, 60], [2, 80]]]
    doc = document("--access", log_of(tmp_path, boxes), "--against", "5x7x11", "--against", "time=48,lat=4,lon=4", store)
    access = doc["access"]
    assert (access["reads"], access["together"], access["streams"], access["wanted"]) == (71, 1, 1, True)
    assert [read["text"] for read in doc["reads"]] == [
        "time=4,lat=9,lon=7", "time=1,lat=57,lon=78", "time=48,lat=1,lon=1",
    ]  # fmt: skip
    assert [read["weight"] for read in doc["reads"]] == [50, 1, 20]
    for layout in doc["layouts"]:
        groups = [boxes[:50], boxes[70:], boxes[50:70]]
        for read, group in zip(layout["reads"], groups):
            met = [chunks_of(box, layout["chunks"]) for box in group]
            assert (read["chunks"]["min"], read["chunks"]["max"]) == (min(met), max(met))
            assert read["chunks"]["mean"] == pytest.approx(np.mean(met))
            assert read["chunks"]["p50"] == sorted(met)[(len(met) - 1) // 2]
    assert [layout["chunks"] for layout in doc["layouts"] if layout["rule"] == "against"] == [[5, 7, 11], [48, 4, 4]]
    assert all(layout["reads_per_second"] > 0 for layout in doc["layouts"])


def test_the_fewest_bytes_are_found(store, tmp_path):
    """Windows that lie on a grid are their own best chunks, whatever offsets a sample of their shape might have."""
    grid = [[[t, t + 6], [y, y + 12], [x, x + 16]] for t, y, x in itertools.product(range(0, 48, 6), range(0, 60, 12), range(0, 80, 16))]
    log = log_of(tmp_path, grid)
    doc = document("--access", log, "--objective", "requests", "--max-bytes", 6 * 12 * 16 * 4, "--min-bytes", 6 * 12 * 16 * 4, "--recommend", store)
    best = doc["layouts"][doc["recommendation"]["layout"]]
    assert best["chunks"] == [6, 12, 16] and best["requests"] == pytest.approx(1)
    random_ones = document("--sample", "6x12x16", "--objective", "requests", "--max-bytes", 6 * 12 * 16 * 4,
                           "--min-bytes", 6 * 12 * 16 * 4, "--recommend", store)  # fmt: skip
    assert random_ones["layouts"][random_ones["recommendation"]["layout"]]["requests"] > 2


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Of 144 MB, more than the largest chunk that is recommended; none is stored."""
    path = tmp_path_factory.mktemp("large") / "a.zarr"
    zarr.open_group(path, mode="w").create_array("t", shape=(180, 200, 500), chunks=(10, 20, 500), dtype="f8",
                                                 dimension_names=("time", "lat", "lon"))  # fmt: skip
    return path


COMPARED = {
    "fewest bytes, one chunk": ("store", "bytes", [], ["48x60x40"]),
    "fewest requests, one chunk": ("store", "requests", [], ["48x60x40"]),
    "a usual candidate": ("store", "bytes", [], ["4x9x7", "8x18x14"]),
    "smaller than those listed": ("store", "bytes", ["--chunks", "24x30x40"], ["4x9x7", "1x1x1"]),
    "larger than any that is recommended": ("large", "requests", [], ["180x200x500"]),
}


@pytest.mark.parametrize("name", COMPARED)
def test_a_comparison_leaves_the_recommendation(tmp_path, request, name):
    """Chunks to compare with are no candidates, move neither bound, and hide no candidate."""
    path, objective, options, against = COMPARED[name]
    path = request.getfixturevalue(path)
    options = ["--access", log_of(tmp_path, windows(40, (4, 9, 7))), "--objective", objective, "--recommend", *options, path]
    docs = [document(*words, *options) for words in ([], [word for chunks in against for word in ("--against", chunks)])]
    for key in ("min_nbytes", "max_nbytes", "layout", "chunks_option", "shards_option"):
        assert docs[0]["recommendation"][key] == docs[1]["recommendation"][key], key
    chunks = [[[layout["rule"], layout["chunks"]] for layout in doc["layouts"] if layout["rule"] != "against"] for doc in docs]
    assert ["listed", "recommended"] == sorted({rule for rule, _ in chunks[0]} & {"listed", "recommended"}) and chunks[0] == chunks[1]
    compared = [layout for layout in docs[1]["layouts"] if layout["rule"] == "against"]
    assert ["x".join(map(str, layout["chunks"])) for layout in compared] == against
    assert all(read["pays"] > 0 for layout in compared for read in layout["reads"])


def test_the_answer_has_rates(store, tmp_path):
    result = run("--access", log_of(tmp_path, windows(40, (4, 9, 7))), "--against", "8x10x10", store).ok()
    assert "Predicted: 40 reads, 1 at a time" in result.out
    rows = [line.split() for line in result.out.splitlines() if line.startswith("8x10x10")]
    assert len(rows) == 1 and re.search(r"^6x30x40 +present ", result.out, re.M)


def test_one_of_anything_is_in_the_singular(store, tmp_path):
    log = log_of(tmp_path, windows(1, (4, 9, 7)))
    for words in (["--access", log, "--against", "48x60x40"], ["--sample", "1x1x1", "--batch", 1, "--recommend", "-v"]):
        result = run(*words, store).ok()
        assert re.search(r"(?<![\d.])1 (read|sample)\b", result.out), result
        assert not re.search(r"(?<![\d.])1 (read|sample|chunk|request|file|object)s\b", result.out + result.err), result


def test_what_is_said_of_a_small_store_is_measured(store, tmp_path):
    """And the time of a read is that of its rate."""
    log = log_of(tmp_path, windows(40, (4, 9, 7)))
    assert document("--access", log, "--recommend", store)["cost"]["measured"] != "no"
    seconds = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
    lines = [line for line in run("--access", log, "--against", "8x10x10", store).ok().out.splitlines() if line.rstrip().endswith(" x")]
    assert len(lines) >= 2
    for line in lines:
        time, unit, rate = re.search(r"([\d.]+) (ns|us|ms|s) +([\d.e+]+) +[\d.]+ x$", line.rstrip()).groups()
        assert float(time) * seconds[unit] * float(rate) == pytest.approx(1, rel=0.02), line


def test_more_shapes_than_the_search_takes(store, tmp_path):
    boxes = [[[0, 1 + i % 40], [0, 1 + i % 31], [i % 7, 10 + i % 60]] for i in range(500)]
    doc = document("--access", log_of(tmp_path, boxes), "--recommend", store)
    assert len(doc["reads"]) == 64 and sum(read["weight"] for read in doc["reads"]) == 500


def test_reads_under_way_together(store, tmp_path):
    doc = document("--access", log_of(tmp_path, windows(9, (4, 9, 7)), seconds=2.5), store)
    assert doc["access"]["together"] == 3 and 1 <= doc["access"]["streams"] <= 3


def test_the_variable_that_most_was_read_of(store, tmp_path):
    log = log_of(tmp_path, windows(3, (4, 9, 7)))
    with log.open("a") as f:
        f.write('{"array":"lat","box":[[0,60]],"time":1,"seconds":1,"pid":1}\n')
    assert document("--access", log, store)["variable"] == "t"
    assert document("--access", log, "--variable", "lat", store)["variable"] == "lat"


WRONG = {
    "sample": (["--sample", "4x9x7"], 2, "says what is read"),
    "align": (["--align", "chunk"], 2, "says where reads start"),
    "against alone": (None, 2, "--against needs --access"),
    "variable": (["--variable", "q"], 2, "has no reads of the variable q"),
    "rank": (["--against", "4x9"], 2, "--against 4x9: 2 lengths for 3 dimensions"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options(store, tmp_path, name):
    words, status, sentence = WRONG[name]
    log = log_of(tmp_path, windows(3, (4, 9, 7)))
    options = ["--access", log, *words] if words is not None else ["--against", "4x9x7"]
    result = run(*options, store)
    assert result.status == status and sentence in result.err, str(result)


def test_a_log_of_another_store(store, tmp_path):
    log = log_of(tmp_path, [[[0, 4], [0, 5], [0, 81]]])
    result = run("--access", log, store)
    assert result.status == 2 and "t was read up to element 81 of dimension 2, and has 80 there now" in result.err
    log.write_text("{}\n")
    result = run("--access", log, store)
    assert result.status == 1 and "log, line 1: neither a request, nor a box, nor an array" in result.err


def test_a_log_of_chunks_alone(store, tmp_path):
    log = tmp_path / "log"
    with log.open("w") as f:
        for i in range(6):
            f.write(json.dumps({"key": f"t/c/{i}/0/1", "nbytes": 10, "time": 2 * i, "seconds": 1, "pid": 1, "thread": 1}) + "\n")
    doc = document("--access", log, store)
    assert not doc["access"]["wanted"] and doc["access"]["requests"] == 6
    assert any("not which of their elements were wanted" in note for note in doc["notes"])
    assert any("the store changed since the log was recorded" in w for w in doc["warnings"])
