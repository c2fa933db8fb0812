"""chunkcalc: the table of its contract, other people's arithmetic, advice, audits, plots and refusals."""
import csv
import io
import itertools
import json
import math
import re
import shlex
import shutil
import xml.etree.ElementTree as xml

import jsonschema
import pytest

from support import failio, manual, paths, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "chunkcalc.json").read_text())

ERA5 = ["--shape", "time=87600,lat=721,lon=1440", "--dtype", "float32"]


def run(*args, **kw):
    return tool.run("chunkcalc", *args, **kw)


def document(*args, **kw):
    result = run("--json", *args, **kw)
    doc = json.loads(result.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(doc)
    result.ok()
    return doc


def layout(doc, rule):
    return next(entry for entry in doc["layouts"] if entry["rule"] == rule)


# ---- the table ------------------------------------------------------------------------------------

TABLE = """\
chunk_size  minimal_chunks  maximal_chunks  minimal_bytes  maximal_bytes
8x8                     64              81           4096           5184
16x16                   16              25           4096           6400
32x32                    4               9           4096           9216
64x64                    1               4           4096          16384
128x128                  1               4          16384          65536
256x256                  1               4          65536         262144
512x512                  1               4         262144        1048576
1024x1024                1               4        1048576        4194304
"""


def test_the_table_of_the_contract():
    result = run("--sample", "64x64").ok()
    assert result.out == TABLE
    assert re.fullmatch(r"chunkcalc: one byte an element.*\n", result.err)


def test_an_itemsize_multiplies_bytes_and_is_not_remarked():
    result = run("--sample", "64x64", "--dtype", "float32", "--chunks", "32x32").ok()
    assert result.out.split("\n")[1].split() == ["32x32", "4", "9", "16384", "36864"]
    assert result.err == ""
    assert run("--sample", "64x64", "--itemsize", 4, "--chunks", "32x32").ok().out == result.out


def test_defaults_in_three_dimensions_are_multiples_of_the_sample():
    doc = document("--sample", "4x40x400")
    assert [entry["chunks"] for entry in doc["layouts"]] == [
        [1, 10, 100], [2, 20, 200], [4, 40, 400], [8, 80, 800], [16, 160, 1600]]


def test_defaults_are_clipped_to_the_array():
    doc = document("--sample", "10x10", "--shape", "100x20")
    assert [entry["chunks"] for entry in doc["layouts"]] == [
        [8, 8], [16, 16], [32, 20], [64, 20], [100, 20]]


def touched(sample, step, offset, chunk):
    return len({(offset + i * step) // chunk for i in range(sample)})


def percentile(values, share):
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1]


CASES = {
    "anywhere": ("3x5", "20x17", "4x3", "random"),
    "strided": ("4:3x3:5", "25x30", "4x3", "random"),
    "on boundaries": ("5x4", "23x19", "4x3", "chunk"),
    "every 6": ("5x4", "40x33", "4x7", "6"),
    "all of it": ("fullx1", "12x9", "5x2", "random"),
    "chunks beyond the array": ("2x2", "6x6", "10x4", "random"),
}


@pytest.mark.every
@pytest.mark.parametrize("sample, shape, chunks, align", CASES.values(), ids=CASES)
def test_statistics_equal_brute_force(sample, shape, chunks, align):
    doc = document("--sample", sample, "--shape", shape, "--chunks", chunks, "--align", align, "--itemsize", 2)
    lengths = [int(n) for n in shape.split("x")]
    cut = [int(n) for n in chunks.split("x")]
    per_dim = []
    for text, n, c in zip(sample.split("x"), lengths, cut):
        count, _, step = text.replace("full", str(n)).partition(":")
        count, step = int(count), int(step or 1)
        every = {"random": 1, "chunk": c}.get(align) or int(align)
        offsets = range(0, n - (count - 1) * step, every)
        per_dim.append([touched(count, step, o, c) for o in offsets])
    values = [math.prod(v) for v in itertools.product(*per_dim)]
    got = doc["layouts"][0]["reads"][0]
    want = {"min": min(values), "max": max(values), "p50": percentile(values, .5), "p95": percentile(values, .95)}
    assert {k: v for k, v in got["chunks"].items() if k != "mean"} == want
    assert got["chunks"]["mean"] == pytest.approx(sum(values) / len(values), rel=1e-12)
    assert got["bytes"]["max"] == max(values) * math.prod(cut) * 2


def test_shards_add_a_request_each():
    doc = document("--sample", "10x10", "--shape", "100x100", "--chunks", "5x5", "--shards", "20x25",
                   "--align", "100")
    got = doc["layouts"][0]
    assert got["reads"][0]["requests"] == {"min": 5, "mean": 5.0, "p50": 5, "p95": 5, "max": 5}
    assert got["array"]["nobjects"] == 20
    assert got["array"]["index_nbytes"] == 20 * (16 * 20 + 4)


def test_a_chunk_without_all_lengths_is_completed():
    doc = document("--sample", "time=3,lat=48,lon=48", *ERA5, "--chunks", "time=24")
    assert doc["layouts"][0]["chunks"][0] == 24
    assert all(n >= 1 for n in doc["layouts"][0]["chunks"])


def test_a_batch_counts_shared_chunks_once():
    doc = document("--sample", "2x2", "--shape", "4x4", "--chunks", "2x2", "--batch", 1000, "--step-time", "1s",
                   "--itemsize", 1)
    batch = doc["layouts"][0]["batch"]
    assert batch["distinct_chunks"] == pytest.approx(4)
    assert batch["bytes_per_s"] == pytest.approx(16)
    alone = document("--sample", "2x2", "--chunks", "2x2", "--batch", 1000)["layouts"][0]["batch"]
    assert alone["distinct_chunks"] == pytest.approx(1000 * 1.5 ** 2)


# ---- forms of output ------------------------------------------------------------------------------

def test_csv_holds_the_table():
    rows = list(csv.reader(io.StringIO(run("--sample", "64x64", "--format", "csv").ok().out)))
    assert rows == [line.split() for line in TABLE.splitlines()]


def test_csv_quotes_names():
    out = run("--sample", "lat=4,lon=4", "--read", "2@lat=1,lon=8", "--format", "csv", "--stats").ok().out
    rows = list(csv.reader(io.StringIO(out)))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert rows[2][0] == "lat=1,lon=8"


def test_markdown_is_a_table():
    lines = run("--sample", "64x64", "--format", "markdown").ok().out.splitlines()
    assert len(lines) == 10 and all(line.startswith("| ") and line.endswith(" |") for line in lines)
    assert re.fullmatch(r"[| :-]+", lines[1])


def test_json_twice_is_the_same():
    a, b = (run("--sample", "64x64", flag, *rest).ok().out for flag, *rest in (("--json",), ("--format", "json")))
    assert a == b


def test_quiet_is_quiet():
    assert run("-q", "--sample", "64x64").ok().err == ""


def test_plots(tmp_path):
    path = tmp_path / "plot.svg"
    run("--sample", "64x64", "--recommend", "--plot", path).ok()
    texts = ["".join(t.itertext()) for t in xml.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    assert {"Reads of 64x64", "chunks met", "bytes read", "recommended", "8x8", "1024x1024"} <= set(texts)


def test_a_plot_marks_what_is_there_and_shows_time(store, tmp_path):
    """The line of time has the seconds of the report, on an axis of its own; both layouts are marked."""
    path = tmp_path / "plot.svg"
    said = document(f"{store}::g/tas", "--read", "lat=1,lon=1", "--audit", "--storage", "local", "--plot", path)
    root, svg = xml.parse(path).getroot(), "{http://www.w3.org/2000/svg}"
    texts = ["".join(t.itertext()) for t in root.iter(svg + "text")]
    assert {"present chunks", "recommended", "time (right)", "1x40x50"} <= set(texts)
    assert texts.count("time of a read") == 2 and "; ;" not in said["cost"]["source"]
    lines = [
        [tuple(map(float, p.split(","))) for p in e.get("points").split()]
        for e in root.iter(svg + "polyline")
        if e.get("stroke") == "#00694d" and e.get("stroke-dasharray")
    ]
    lines = [line for line in lines if len(line) == len(said["layouts"])]
    assert len(lines) == 2
    wanted = sorted(said["layouts"], key=lambda x: x["chunk_nbytes"])
    seconds = [x["reads"][0]["seconds"] for x in wanted]
    for line in lines:
        (_, top), (_, low) = min(line, key=lambda p: p[1]), max(line, key=lambda p: p[1])
        scale = (low - top) / math.log10(max(seconds) / min(seconds))
        for (_, y), s in zip(sorted(line, key=lambda p: -p[1]), sorted(seconds)):
            assert abs(low - y - scale * math.log10(s / min(seconds))) < 0.1


def test_a_plot_that_cannot_be_written(tmp_path):
    result = run("--sample", "64x64", "--plot", tmp_path / "absent" / "x.svg")
    assert result.status == 1
    assert "x.svg: folder " in result.err


# ---- advice ---------------------------------------------------------------------------------------

READS = ["--read", "10@time=1", "--read", "lat=1,lon=1", "--read", "3@time=24,lat=64,lon=64"]


@pytest.mark.every
@pytest.mark.parametrize("objective, key", [("cost", "seconds"), ("bytes", "bytes"), ("requests", "requests"),
                                            ("regret", "regret")])
@pytest.mark.parametrize("storage", ["local", "nfs", "s3"])
def test_nothing_listed_beats_the_recommendation(objective, key, storage):
    doc = document(*READS, *ERA5, "--recommend", "--objective", objective, "--storage", storage)
    best = layout(doc, "recommended")
    bounds = doc["recommendation"]
    for entry in doc["layouts"]:
        if bounds["min_nbytes"] <= entry["chunk_nbytes"] <= bounds["max_nbytes"]:
            assert best[key] <= entry[key] * (1 + 1e-9), entry["rule"]
    assert bounds["min_nbytes"] <= best["chunk_nbytes"] <= bounds["max_nbytes"]
    assert doc["layouts"][bounds["layout"]]["rule"] == "recommended"


def test_rules_of_others_are_theirs():
    doc = document("--sample", "1x1x1", "--shape", "98128x277x349", "--dtype", "float32", "--recommend",
                   "--max-bytes", "1MiB")
    assert layout(doc, "rew")["chunks"] == [516, 20, 25]
    assert layout(doc, "zarr-python")["chunks"] == [3067, 18, 22]


def test_bounds_are_kept():
    doc = document("--sample", "3x48x48", "--shape", "87600x721x1440", "--dtype", "float32", "--recommend",
                   "--min-bytes", "1MiB", "--max-bytes", "2MiB")
    assert 1 << 20 <= layout(doc, "recommended")["chunk_nbytes"] <= 2 << 20


def test_the_front_is_a_front():
    front = document(*READS, *ERA5, "--recommend")["recommendation"]["front"]
    assert len(front) > 3
    for a, b in itertools.pairwise(front):
        assert a["bytes"] < b["bytes"] and a["requests"] > b["requests"]


def test_options_can_be_pasted():
    doc = document("--sample", "time=3,lat=48,lon=48", *ERA5, "--recommend")
    advice = doc["recommendation"]
    again = document("--sample", "time=3,lat=48,lon=48", *ERA5, "--chunks", advice["chunks_option"],
                     "--shards", advice["shards_option"])
    assert again["layouts"][0]["chunks"] == layout(doc, "recommended")["chunks"]
    assert again["layouts"][0]["array"]["nobjects"] == advice["sharded_objects"]


def test_more_weight_costs_less():
    def pays(weight):
        doc = document("--read", f"{weight}@time=1", "--read", "lat=1,lon=1", *ERA5, "--recommend")
        return layout(doc, "recommended")["reads"][0]["pays"]

    assert pays(100) < pays(1) < pays(0.01)


def test_presets_print_their_sources():
    for storage in ("local", "nfs", "s3"):
        out = run("--sample", "64x64", "--stats", "--storage", storage).ok().out
        assert re.search(rf"\n{storage}: .*\nSource: .{{40,}}\n", out)


def test_own_numbers_replace_the_preset():
    doc = document("--sample", "64x64", "--latency", "30ms", "--bandwidth", "1GB/s", "--decode", "2GB/s",
                   "--concurrency", "4", "--ratio", "2", "--chunks", "64x64")
    got = doc["layouts"][0]
    mean = (1 + 63 / 64) ** 2
    assert got["seconds"] == pytest.approx((0.03 * mean + mean * 4096 / 2 / 1e9 + mean * 4096 / 2e9) / 4)
    assert got["bytes"] == pytest.approx(mean * 2048)
    assert "given instead" in doc["cost"]["source"]


def test_warnings():
    def warnings(*args):
        return " ".join(document(*args)["warnings"])

    assert "a million or more objects" in warnings("--sample", "1x1", "--shape", "10000x10000", "--chunks", "8x8")
    assert "2^21" in warnings("--sample", "1", "--shape", "300000000", "--chunks", "100")
    assert "blosc" in warnings("--sample", "1", "--shape", "3000000000", "--chunks", "3000000000")
    assert "a worker has" in warnings("--sample", "1", "--shape", "3000000", "--chunks", "3000000", "--memory", "1MiB")


def test_it_takes_no_time():
    doc = document("--shape", "time=87600,level=37,lat=721,lon=1440", "--dtype", "float32", "--recommend",
                   "--objective", "regret", "--read", "time=1", "--read", "level=1,lat=1,lon=1", "--read",
                   "time=3,level=1,lat=64,lon=64", "--read", "time=24,lat=1,lon=1", "--read",
                   "time=365:24,level=1,lat=48,lon=48", timeout=300)
    assert doc["recommendation"]["evaluated"] > 1000


# ---- stores ---------------------------------------------------------------------------------------

TABLES = ("Compared, on average", "What each way of reading pays", "Fewer bytes or fewer requests", "The cost model")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    zarr = pytest.importorskip("zarr")
    numpy = pytest.importorskip("numpy")
    path = tmp_path_factory.mktemp("store") / "a.zarr"
    group = zarr.open_group(str(path), mode="w")
    field = numpy.arange(60 * 40 * 50, dtype="f4").reshape(60, 40, 50) // 1000
    for name, cut in (("g/tas", {"chunks": (1, 40, 50)}), ("cut", {"chunks": (10, 10, 10), "shards": (30, 20, 50)})):
        array = group.create_array(name, shape=field.shape, dtype="f4", dimension_names=["time", "lat", "lon"], **cut)
        array[:] = field
    group.create_array("empty", shape=(0, 3), chunks=(1, 3), dtype="i2")
    return path


def test_a_store_is_described(store):
    arrays = {a["name"]: a for a in document(store)["arrays"]}
    assert set(arrays) == {"g/tas", "cut", "empty"}
    assert arrays["cut"]["chunks"] == [10, 10, 10] and arrays["cut"]["shards"] == [30, 20, 50]
    assert arrays["cut"]["nchunks"] == 120 and arrays["cut"]["nobjects"] == 4
    assert arrays["g/tas"]["shards"] is None and arrays["g/tas"]["ratio"] > 2
    said = run(store).ok().out
    assert said.count("\n") == 6 and said.endswith("\nAll 180 chunks of 3 arrays are there.\n")


def test_one_array_of_a_store_is_described(store):
    assert [a["name"] for a in document(store, "--variable", "cut")["arrays"]] == ["cut"]
    said = run(store, "--variable", "tas").ok().out
    assert "g/tas" in said and "cut" not in said and said.endswith("\nAll 60 chunks of 1 array are there.\n"), said
    run(store, "--variable", "nothing").fails(2, "no such array")


def test_a_store_gives_shape_type_and_ratio(store):
    doc = document(f"{store}::g/tas", "--sample", "time=1")
    assert (doc["shape"], doc["type"], doc["dimensions"]) == ([60, 40, 50], "float32", ["time", "lat", "lon"])
    assert doc["cost"]["measured_chunks"] > 0 and doc["cost"]["ratio"] > 2


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """12 MiB: enough to be worth measuring."""
    np, zarr = pytest.importorskip("numpy"), pytest.importorskip("zarr")
    path = str(tmp_path_factory.mktemp("large") / "large.zarr")
    field = np.add.outer(np.arange(60), np.arange(200 * 262).reshape(200, 262) % 977).astype("f4")
    zarr.create_array(path, shape=field.shape, chunks=(20, 100, 131), dtype="f4")[:] = field
    return path


@pytest.mark.parametrize("program", ["rechunk", "nc2zarr"])
def test_the_answer_comes_first_and_can_be_pasted(store, tmp_path, program):
    """A store and a read suffice: the chunks, the command that makes them, and why; tables come after -v."""
    source, name = store, "g/tas"
    if program == "nc2zarr":
        netCDF4, source, name = pytest.importorskip("netCDF4"), tmp_path / "in put.nc", "tas"
        with netCDF4.Dataset(source, "w") as file:
            for dim, n in (("time", 60), ("lat", 40), ("lon", 50)):
                file.createDimension(dim, n)
            file.createVariable(name, "f4", ("time", "lat", "lon"), chunksizes=(1, 40, 50))[:] = 1
    args = (source, "--variable", name, "--sample", "lat=1,lon=1")
    out = run(*args).ok().out
    first, _, command, _, why, now, *rest = out.split("\n")
    chunks = re.fullmatch(rf"Recommended chunks of {name}: (time=60,lat=\d+,lon=\d+)", first).group(1)
    words = shlex.split(command)
    assert words[0] == program and words[1:3] == ["--chunks", f"{name}:{chunks}"]
    assert why.startswith("Why: ") and now.startswith("Now: with time=1,lat=40,lon=50 ") and rest == [""]
    tool.run(*words, cwd=tmp_path).ok()
    made = json.loads((tmp_path / words[-1] / name / "zarr.json").read_text())
    assert dict(zip(("time", "lat", "lon"), made["chunk_grid"]["configuration"]["chunk_shape"])) == {
        dim: int(n) for dim, n in (word.split("=") for word in chunks.split(","))}
    assert not any(table in out for table in TABLES)
    more = run(*args, "-v").ok().out
    assert more.split("\n")[0] == first and all(table in more for table in TABLES)
    assert run(*args, "--chunks", "1x40x50").ok().out.startswith("chunk_size ")


def test_chunks_that_are_best_are_kept(store):
    out = run(f"{store}::g/tas", "--sample", "time=1").ok().out
    assert out.startswith("Keep the present chunks of g/tas: time=1,lat=40,lon=50\nWhy: ") and "rechunk" not in out
    other = run(f"{store}::g/tas", "--sample", "time=1", "--min-bytes", "1MiB").ok().out
    assert other.startswith("Recommended chunks of g/tas: ")


def test_without_a_store_the_command_has_placeholders():
    out = run("--sample", "time=3,lat=48,lon=48", *ERA5, "--recommend").ok().out
    assert re.search(r"^  nc2zarr --chunks \S+ --shards \S+ INPUT.nc OUTPUT.zarr$", out, re.M)


@pytest.mark.roomy
def test_a_page_cache_has_no_bandwidth(large):
    said = run(large, "--sample", "4x32x32", "-v").ok().out
    assert "request, from the page cache, decoding at " in said and "in the page cache" in said.split("Source: ")[1]
    given = run(large, "--sample", "4x32x32", "-v", "--bandwidth", "1GB/s").ok().out
    assert "request, 1.00 GB/s, decoding at " in given


@pytest.mark.roomy
def test_counts_need_no_measuring(large):
    """Chunks and bytes of a table take the ratio; seconds take more."""
    counted = document(large, "--sample", "4x32x32")["cost"]
    assert counted["measured"] == "no" and counted["latency_s"] == 85e-6
    assert counted["measured_chunks"] > 0 and counted["ratio"] > 2
    assert document(large, "--sample", "4x32x32", "--stats")["cost"]["measured"] == "warm"
    assert document(large, "--sample", "4x32x32", "--audit")["cost"]["measured"] == "warm"


@pytest.mark.roomy
def test_costs_are_measured_where_the_store_is(large):
    cost = document(large, "--sample", "4x32x32", "--recommend")["cost"]
    assert cost["measured"] == "warm" and cost["measured_chunks"] > 4 and cost["source"].startswith("measured: ")
    assert 0 < cost["range_latency_s"] < cost["latency_s"] < 85e-6 and 0 < cost["chunk_s"] < 1e-3
    said = document(large, "--sample", "4x32x32", "--storage", "s3", "--recommend")["cost"]
    assert said["measured"] == "no" and said["latency_s"] == 0.1 and said["chunk_s"] > 0
    given = document(large, "--sample", "4x32x32", "--latency", "3ms", "--decode", "1GB/s")["cost"]
    assert given["latency_s"] == given["range_latency_s"] == 0.003
    assert given["chunk_s"] == 0 and given["decode_bytes_per_s"] == 1e9


@pytest.mark.roomy
def test_one_model_prices_all_rows(large):
    """More than 10,000 chunks lie in shards, in the choice, its sentence, its row and the front."""
    doc = document(large, "--sample", "2x6x6", "--chunks", "1x4x4", "--recommend", "--min-bytes", "64", "--max-bytes", "64")
    best, listed = layout(doc, "recommended"), layout(doc, "listed")
    assert doc["cost"]["measured"] == "warm" and best["array"]["nchunks"] > 10000
    assert doc["cost"]["range_latency_s"] < doc["cost"]["latency_s"]
    (read,) = best["reads"]
    assert read["pays"] == pytest.approx(1)
    for point in (listed, *doc["recommendation"]["front"]):
        if point["chunks"] == best["chunks"]:
            assert point["seconds"] == pytest.approx(best["seconds"])
    each = doc["cost"]["range_latency_s"] + doc["cost"]["chunk_s"]
    for row in (best, listed):
        assert row["seconds"] < 1.01 * row["requests"] * each + row["bytes"] * doc["cost"]["ratio"] * 1e-8 + 1e-6


@pytest.mark.parametrize("sample", ["1x64x64", "60x1x1", "4x30x200"])
@pytest.mark.roomy
def test_nc2zarr_and_rechunk_choose_what_is_recommended(large, sample, tmp_path):
    """Each measures for itself: shapes may differ a little, what they cost does not."""
    for program in ("nc2zarr", "rechunk"):
        codec = ("--codec", "same") if program == "nc2zarr" else ()
        plan = tool.run(program, "--json", "--dry-run", "--sample", sample, *codec, large, tmp_path / "out.zarr")
        said = json.loads(plan.ok().out)
        (variable,) = said["variables" if "variables" in said else "arrays"]
        chunks = "x".join(map(str, variable.get("after", variable)["chunks"]))
        doc = document(large, "--sample", sample, "--chunks", chunks, "--min-bytes", 4096, "--recommend")
        assert layout(doc, "listed")["seconds"] <= 1.25 * layout(doc, "recommended")["seconds"], program


@pytest.mark.parametrize("sample", ["1x8x8", "12x1x1", "1x90x180", "5x7x11"])
@pytest.mark.parametrize("shards", [None, "none", "auto"])
def test_small_arrays_get_the_same_answer(sample, shards, tmp_path):
    """Nothing is measured on 800 KiB: one search with one preset, so the very same chunks."""
    np, zarr = pytest.importorskip("numpy"), pytest.importorskip("zarr")
    path, field = tmp_path / "small.zarr", np.arange(12 * 90 * 180, dtype="f4").reshape(12, 90, 180)
    zarr.create_array(path, shape=(12, 90, 180), chunks=(12, 30, 30), dtype="f4")[:] = field
    options = ("--sample", sample, *(("--shards", shards) if shards else ()))
    want = layout(document(path, *options, "--recommend"), "recommended")["chunks"]
    for program in ("nc2zarr", "rechunk"):
        plan = json.loads(tool.run(program, "--json", "--dry-run", *options, path, tmp_path / "out.zarr").ok().out)
        (variable,) = plan["variables" if "variables" in plan else "arrays"]
        assert variable.get("after", variable)["chunks"] == want, program


@pytest.mark.parametrize("memory", [("2GiB", "64MiB"), ("64MiB", "2GiB")])
def test_a_resumed_run_keeps_its_chunks(large, tmp_path, memory):
    """The journal has them: only one of both runs has the memory to measure, and alone they choose otherwise."""
    root = tmp_path / "root"
    root.mkdir()
    out, options = root / "out.zarr", ("--codec", "zstd:1", "-j", "1", "--verify", "none", "--sample", "1x9x9")

    def planned(memory):
        said = tool.run("nc2zarr", "--json", "--dry-run", "--memory", memory, *options, large, tmp_path / "plan.zarr")
        return json.loads(said.ok().out)["variables"][0]["chunks"]

    assert planned(memory[0]) != planned(memory[1])
    killed = failio.inject("nc2zarr", "-q", "--memory", memory[0], *options, large, out, root=root,
                           state=tmp_path / "state", kind="rename", nth=5, way="kill")
    assert killed.done.status != 0 and any(p.is_file() for p in out.glob("**/c/**/*")), str(killed.done)
    chosen = re.search(rb'"chunks for [^"]*": *\{"[^"]*": *(\[[0-9, ]*\])', (root / "out.zarr.chunkmill" / "journal").read_bytes())
    assert chosen, "the journal names no chunks"
    resumed = tool.run("nc2zarr", "--json", "--memory", memory[1], "--resume", *options, large, out).ok()
    assert json.loads(resumed.out)["variables"][0]["chunks"] == json.loads(chosen[1])


def test_an_audit_judges(store):
    bad = document(f"{store}::g/tas", "--read", "lat=1,lon=1", "--audit")
    assert bad["audit"]["verdict"] == "poor" and bad["audit"]["gain"] > 2
    assert layout(bad, "present")["chunks"] == [1, 40, 50]
    good = document(f"{store}::g/tas", "--read", "time=1", "--audit")
    assert good["audit"]["verdict"] == "good"
    assert "\nAudit: poor: " in run(store, "--variable", "g/tas", "--read", "lat=1,lon=1", "--audit").ok().out


def test_many_tiny_files_are_not_good(tmp_path):
    """12,000 tiny chunks suit each read, but there are too many of them."""
    shape, chunk = [120, 100, 40], [1, 10, 4]
    path = tmp_path / "tiny.zarr"
    path.mkdir()
    document_ = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0.0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {},
    }
    (path / "zarr.json").write_text(json.dumps(document_))
    options = ("--sample", "1x10x4", "--align", "chunk", "--audit", "--latency", "1us", "--max-bytes", "160", "--min-bytes", "1")
    audit = document(path, *options)["audit"]
    assert audit["gain"] <= 1.25 and audit["verdict"] == "poor"
    assert "12000 files of 160 B each" in audit["sentence"]
    document_["chunk_grid"]["configuration"]["chunk_shape"] = [12, 10, 40]  # 100 files: the same reads
    (path / "zarr.json").write_text(json.dumps(document_))
    audit = document(path, "--sample", "12x10x40", "--align", "chunk", "--audit", "--latency", "1us")["audit"]
    assert audit["verdict"] == "good" and "files of" not in audit["sentence"]


def test_a_netcdf_file_is_described(tmp_path):
    sample = tmp_path / "weather.nc"
    tool.subprocess.run([tool.program("make_sample"), sample], check=True)
    arrays = document(sample)["arrays"]
    assert len(arrays) > 1 and any(a["chunks"] for a in arrays)
    largest = max(arrays, key=lambda a: a["decoded_nbytes"])
    doc = document(sample, "--sample", ",".join(f"{d}=1" for d in largest["dimensions"]), "--audit")
    assert doc["variable"] == largest["name"] and doc["audit"]["sentence"]


# ---- commands that are printed --------------------------------------------------------------------

def command_of(out):
    """The words of the command in an answer."""
    return shlex.split(out.split("\n")[2])


def pasted(out, cwd, **kw):
    """Runs that command; the store that it made."""
    words = command_of(out)
    tool.run(*words, cwd=cwd, **kw).ok()
    return cwd / words[-1]


def grid_of(path):
    return json.loads((path / "zarr.json").read_text())["chunk_grid"]["configuration"]["chunk_shape"]


def test_shards_for_zarr_2_come_with_format_3(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "v2.zarr", shape=(60, 80), chunks=(1, 80), dtype="f4", zarr_format=2)[:] = 1
    out = run("v2.zarr", "--sample", "60x1", "--shards", "auto", cwd=tmp_path).ok().out
    assert "--zarr-format 3" in out and grid_of(pasted(out, tmp_path)) == [60, 80]
    assert "--zarr-format" not in run("v2.zarr", "--sample", "60x1", cwd=tmp_path).ok().out


def test_a_command_means_one_array(tmp_path):
    """The array "q" alone where there is "sub/q", too; and an array of one dimension that is the store."""
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    for name in ("q", "sub/q", "sub/p"):
        group.create_array(name, shape=(60, 80), chunks=(1, 80), dtype="f4")[:] = 1
    for name, other in (("q", "sub/q"), ("sub/q", "q"), ("p", "q")):
        made = pasted(run("a.zarr", "--variable", f"/{name}" if name == "q" else name, "--sample", "60x1", cwd=tmp_path).ok().out, tmp_path)
        assert grid_of(made / name.replace("p", "sub/p")) != [1, 80] == grid_of(made / other)
        shutil.rmtree(made)
    zarr.create_array(tmp_path / "-one.zarr", shape=(5000,), chunks=(10,), dtype="f4")[:] = 1
    out = run("./-one.zarr", "--sample", "full", cwd=tmp_path).ok().out
    assert command_of(out)[2] == "/:5000" and grid_of(pasted(out, tmp_path)) == [5000]


@pytest.mark.parametrize("names", [("x", "x"), ("", "x"), ("a=b", "x")])
def test_a_command_names_no_dimension_that_has_no_name_of_its_own(tmp_path, names):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "a.zarr", shape=(60, 80), chunks=(1, 80), dtype="f4", dimension_names=names)[:] = 1
    assert grid_of(pasted(run("a.zarr", "--sample", "60x1", cwd=tmp_path).ok().out, tmp_path)) == [60, 80]


def test_a_command_of_a_repository_makes_a_folder(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "a.zarr", shape=(60, 80), chunks=(1, 80), dtype="f4")[:] = 1
    tool.run("rechunk", "a.zarr", "icechunk:repo", cwd=tmp_path).ok()
    for store, name in (("icechunk:repo", "repo-rechunked.zarr"), (f"icechunk:{tmp_path}/repo@main", "repo-rechunked-2.zarr")):
        out = run(store, "--sample", "60x1", cwd=tmp_path).ok().out
        made = pasted(out, tmp_path)  # beside the one before, where that is there
        assert made == tmp_path / name and grid_of(made) == [60, 80]


def test_a_command_makes_nothing_in_its_source(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "a.zarr", shape=(60, 80), chunks=(1, 80), dtype="f4")[:] = 1
    assert grid_of(pasted(run(".", "--sample", "60x1", cwd=tmp_path / "a.zarr").ok().out, tmp_path / "a.zarr")) == [60, 80]


def test_a_command_reads_what_was_read(store, tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as nc:
        for name, n in (("time", 60), ("x", 80)):
            nc.createDimension(name, n)
        nc.createVariable("tas", "f4", ("time", "x"), chunksizes=(1, 80))[:] = 1
    references = tmp_path / "r.json"
    tool.nc2zarr("-q", "--virtual", "json", tmp_path / "a.nc", references).ok()
    words = command_of(run(references, "--sample", "x=1", "--allow", "/a b", "--allow", "s3://c").ok().out)
    assert words[3:-2] == ["--allow", "/a b", "--allow", "s3://c"]
    words = command_of(run(f"{store}::g/tas", "--sample", "lat=1,lon=1", "--anonymous", "--absent-403", "--timeout", "90s").ok().out)
    assert words[3:-2] == ["--anonymous", "--absent-403", "--timeout", "90s"]


# ---- what is said of the present chunks -----------------------------------------------------------

def test_present_chunks_outside_the_bounds_cost_no_less_in_words(store):
    """A cost 0.3 times as high is no reason to change, and is not called one."""
    out = run(f"{store}::g/tas", "--sample", "1x1x1").ok().out
    assert re.search(r"; no shape between \S+ KiB and 64.00 MiB has a lower cost\.\n", out), out
    forced = run(f"{store}::g/tas", "--sample", "1x1x1", "--min-bytes", "256KiB").ok().out
    assert forced.startswith("Recommended") and re.search(r"\d requests? on average, cost no higher\.\n$", forced), forced


def test_bounds_are_those_of_the_array(tmp_path):
    """An array below the least size is one chunk: kept where it is one, and nothing larger is spoken of."""
    zarr = pytest.importorskip("zarr")
    for chunks, verb in (((1, 80), "Recommended"), ((60, 80), "Keep the present")):
        zarr.create_array(tmp_path / "a.zarr", shape=(60, 80), chunks=chunks, dtype="f4", overwrite=True)[:] = 1
        for bound in ((), ("--min-bytes", "1MiB")):
            out = run("a.zarr", "--sample", "60x1", *bound, cwd=tmp_path).ok().out
            assert out.startswith(f"{verb} chunks: 60x80"), out
            assert verb == "Keep the present" or "of the shapes between 18.75 KiB and 64.00 MiB" in out, out


def test_shards_are_compared_with_shards(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "a.zarr", shape=(60, 80), chunks=(1, 8), shards=(60, 80), dtype="f4")[:] = 1
    said = document(tmp_path / "a.zarr", "--sample", "60x1", "--audit")
    assert layout(said, "recommended")["shards"] == layout(said, "present")["shards"] == [60, 80]
    assert "--shards 60x80" in run(tmp_path / "a.zarr", "--sample", "60x1").ok().out
    kept = document(tmp_path / "a.zarr", "--sample", "1x8", "--align", "chunk", "--audit", "--min-bytes", "16", "--max-bytes", "32")
    assert kept["audit"]["gain"] == pytest.approx(1) and "the chunks 1x8 of / are good" in kept["audit"]["sentence"]


def test_a_file_is_one_file(tmp_path):
    """15,000 chunks of a NetCDF file are no files, and suit reads of one of them."""
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        for dim, n in (("t", 150), ("y", 100), ("x", 8)):
            file.createDimension(dim, n)
        file.createVariable("v", "f4", ("t", "y", "x"), chunksizes=(1, 1, 8))[:] = 1
    said = document(tmp_path / "a.nc", "--sample", "1x1x8", "--audit", "--min-bytes", "4", "--max-bytes", "32")
    assert said["audit"]["verdict"] == "good" and "files" not in said["audit"]["sentence"]
    assert layout(said, "present")["array"]["nobjects"] == 1 and said["audit"]["gain"] == pytest.approx(1)


# ---- damage, memory, and names --------------------------------------------------------------------

def test_a_damaged_chunk_is_named_and_the_others_are_measured(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "a.zarr", shape=(8, 90), chunks=(1, 90), dtype="f4")[:] = 1
    (tmp_path / "a.zarr" / "c" / "3" / "0").write_bytes(b"no zstd")
    for reads in (("--sample", "1x9"), ()):
        said = document(tmp_path / "a.zarr", *reads)
        (warning,) = said["warnings"]
        assert "1 of 8 chunks of a sample cannot be read: array /: chunk 3/0: zstd" in warning
        assert (said["cost"] if reads else said["arrays"][0])["measured_chunks"] == 7


def test_measuring_keeps_to_the_memory(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "a.zarr", shape=(2, 12 << 20), chunks=(1, 12 << 20), dtype="f4")[:] = 1
    done = {limit: run("--json", "--memory", limit, tmp_path / "a.zarr", peak=True).ok() for limit in ("64MiB", "1GiB")}
    few, many = (json.loads(done[limit].out) for limit in ("64MiB", "1GiB"))
    assert few["arrays"][0]["measured_chunks"] == 0 and done["64MiB"].peak < 64 << 20
    assert "/: chunks are not measured" in few["notes"][0] and many["arrays"][0]["measured_chunks"] == 2


def test_several_arrays_are_named(store):
    assert {a["name"] for a in document(store, "--variables", "cut,tas")["arrays"]} == {"cut", "g/tas"}
    run(store, "--variable", "cut,nothing").fails(2, "--variable nothing", "no such array")
    said = document(store, "--variable", "cut,tas", "--sample", "1x1x1")
    assert said["variable"] in ("cut", "g/tas") and "--variable cut,tas means 2 arrays; the largest, " in " ".join(said["notes"])
    counted = document(store, "--variable", "cut", "--sample", "1x1x1", "--audit")["census"]
    assert [a["name"] for a in counted["arrays"]] == ["cut"]


def test_lengths_of_the_chunks_that_are_there(store):
    said = document(f"{store}::cut", "--sample", "1x-1xsame", "--chunks", "samex20xfull", "--shards", "samexsamexsame")
    assert said["reads"][0]["sample"] == [1, 40, 10]
    assert said["layouts"][0]["chunks"] == [10, 20, 50] and said["layouts"][0]["shards"] == [30, 20, 50]
    run(f"{store}::g/tas", "--sample", "1x1x1", "--chunks", "1x1x1", "--shards", "samex1x1").fails(2, "a STORE with shards")


def test_shards_that_are_typed_go_with_chunks_that_are_chosen():
    options = ("--sample", "64x64", "--shape", "1000x1000", "--shards", "100x100")
    rows = document(*options)["layouts"]
    assert [row["shards"] for row in rows[:3]] == [[104, 104], [112, 112], [128, 128]]
    assert document(*options, "--recommend")["recommendation"]["shards_option"] != "none"
    run(*options, "--chunks", "8x8").fails(2, "not a multiple")


def test_sizes_beyond_64_bits_are_sizes():
    out = run("--sample", f"{1 << 62}x1x1", "--chunks", f"{1 << 60}x1x1", "--batch", 1000).ok().out
    assert "5000.00 EiB" in out
    rows = document("--sample", f"{1 << 62}x1x1")["layouts"]
    assert [row["chunks"] for row in rows] == [[1 << 60, 1, 1]]


# ---- refusals -------------------------------------------------------------------------------------

WRONG = {
    "nothing": ([], "no --sample and no store"),
    "zero": (["--sample", "0x64"], "--sample 0x64: a length of 0"),
    "negative": (["--sample", "64x-2"], "'-2' is not an integer"),
    "whole of what": (["--sample", "64x-1"], "give --shape"),
    "same as what": (["--sample", "64x64", "--chunks", "8xsame"], "'same' needs a STORE with chunks"),
    "no number": (["--sample", "64xabc"], "'abc' is not an integer"),
    "empty": (["--sample", ""], "is not an integer"),
    "a part missing": (["--sample", "64x"], "is not an integer"),
    "thirty digits": (["--sample", "1" * 30], "is larger than"),
    "too large to index": (["--sample", "9" * 19 + "x2"], "exceeds 2^62"),
    "over 64 bits together": (["--sample", "4000000000000x4000000000000", "--chunks", "1x1"], "2^64 chunks"),
    "bytes over 64 bits": (["--sample", "1", "--chunks", "4000000000000000000", "--itemsize", "8"], "2^64 bytes"),
    "over the array": (["--sample", "64x64", "--shape", "100x63"], "the array has only 63"),
    "stride over the array": (["--sample", "5:30", "--shape", "100"], "spans 121 elements"),
    "unknown name": (["--sample", "lat=1", "--shape", "lat=9,lon=9", "--chunks", "lta=3"],
                     "no dimension lta; the dimensions are lat, lon"),
    "names where there are none": (["--sample", "lat=1", "--shape", "9x9"], "no names"),
    "name twice": (["--sample", "lat=1,lat=2"], "lat is given twice"),
    "ranks differ": (["--sample", "64x64", "--chunks", "8x8x8"], "3 lengths for 2 dimensions"),
    "too many dimensions": (["--sample", "x".join("1" * 33)], "more than 32 dimensions"),
    "full of what": (["--sample", "lat=full"], "give --shape"),
    "type": (["--sample", "64", "--dtype", "floaty"], "'floaty' is not a type"),
    "type without size": (["--sample", "64", "--dtype", "string"], "--itemsize"),
    "align": (["--sample", "64", "--align", "0"], "--align 0"),
    "weight": (["--read", "-1@64"], "'-1' is not a weight"),
    "objective": (["--sample", "64", "--recommend", "--objective", "luck"], "--objective takes"),
    "bounds": (["--sample", "64", "--recommend", "--min-bytes", "2MiB", "--max-bytes", "1MiB"], "--min-bytes exceeds --max-bytes"),
    "latency": (["--sample", "64", "--ratio", "0"], "--ratio must be more than 0"),
    "shards": (["--sample", "64", "--chunks", "10", "--shards", "25", "--shape", "100"], "not a multiple"),
    "step without batch": (["--sample", "64", "--step-time", "1s"], "--step-time needs --batch"),
    "audit without a store": (["--sample", "64", "--audit"], "--audit needs a store"),
    "plot": (["--sample", "64", "--plot", "x.png"], "--plot x.png: the picture is an SVG: give a name that ends in .svg"),
    "two stores": (["a.zarr", "b.zarr"], "one store at a time"),
    "remote": (["ftp://host/a.zarr"], "ftp://host/a.zarr: cannot be opened: use a path, or a URL"),
    "stride in chunks": (["--sample", "64", "--chunks", "8:2"], "no meaning"),
}


@pytest.mark.every
@pytest.mark.parametrize("args, sentence", WRONG.values(), ids=WRONG)
def test_wrong_input_is_one_sentence(args, sentence):
    run(*args).fails(2, sentence)


def test_wrong_input_with_a_store(store):
    run(store, "--sample", "lat=41", "--variable", "g/tas").fails(2, "the array has only 40")
    run(store, "--sample", "lat=1", "--variable", "nothing").fails(2, "no such array")
    run(store, "--sample", "1x1", "--variable", "empty").fails(2, "is empty")
    assert "all there, - some" in run(store, "--audit").ok().out
    run(store, "--sample", "1x1x1", "--shape", "9x9x9").fails(2, "--shape")
    run(str(store) + "x", "--sample", "1").fails(1, "no such file")


def test_a_grid_that_nobody_knows(tmp_path):
    """Named with its reason: alone an error, beside others left out."""
    zarr = pytest.importorskip("zarr")
    group = zarr.create_group(str(tmp_path / "u.zarr"))
    for name in "vw":
        group.create_array(name, shape=(4, 4), chunks=(2, 2), dtype="f4")
    path = tmp_path / "u.zarr" / "v" / "zarr.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chunk_grid": {"name": "hexagonal", "configuration": {}}}))
    run(f"{tmp_path / 'u.zarr'}::v").fails(1, "u.zarr", "array v", "'hexagonal' is not supported")
    beside = run(tmp_path / "u.zarr").ok()
    assert "array v is left out: chunk grid 'hexagonal' is not supported" in beside.err and "2x2" in beside.out


# ---- the man page ---------------------------------------------------------------------------------

def test_the_examples_of_the_man_page_run(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(str(tmp_path / "era5.zarr"), shape=(8, 90, 90), dtype="f4", fill_value=0,
                      dimension_names=["time", "lat", "lon"])
    lines = manual.examples("chunkcalc")
    assert len(lines) >= 5
    for line in lines:
        result = run(*line, cwd=tmp_path).ok()
        assert result.out
