"""Output of readbench's reports: summary, documents, tables, plots and pages, from made-up runs."""

import csv
import json
import math
import re
import statistics
import subprocess
import xml.etree.ElementTree as xml

import jsonschema
import pytest
import yaml

from support import browser, paths, tool

PROGRAM = paths.BUILD / "tests" / "bin" / "readbench_report"
SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "readbench.json").read_text())
ALONE = ["usual", "none", "one", "zero", "failed", "ranks", "shared", "device", "planned", "hostile"]
SEVERAL = {"two": 2, "three": 3, "sweep": 6, "tune": 5}
PLOTS = [
    "timeline",
    "total_batch_time",
    "batch_time_breakdown",
    "time_distribution_pie",
    "wait_histogram",
    "throughput",
    "resources",
]
DATA = ["summary.json", "summary.yaml", "config.yaml", "batches.csv", "events.log", "events_workers.log"]
SVG = "{http://www.w3.org/2000/svg}"


def run(case, *args, env=None):
    argv = [str(PROGRAM), case, *map(str, args)]
    done = subprocess.run(argv, capture_output=True, text=True, env=tool.environment(env), timeout=300)
    assert "Sanitizer" not in done.stderr and "runtime error:" not in done.stderr, done.stderr
    return tool.Result(argv, done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files of a case, made once."""
    root, known = tmp_path_factory.mktemp("reports"), {}

    def make(case):
        if case not in known:
            known[case] = run(case, root / case).ok()
        return root / case

    make.said = known
    return make


def validate(document):
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def batches(folder):
    with open(folder / "batches.csv", newline="") as f:
        return [{k: int(v) for k, v in row.items()} for row in csv.DictReader(f)]


# ---- documents ------------------------------------------------------------------------------------


@pytest.mark.every
@pytest.mark.parametrize("case", [*ALONE, *SEVERAL])
def test_documents_follow_the_schema(case):
    document = validate(json.loads(run(case, "--json").ok().out))
    assert document["outcome"] == "done"
    assert len(document["sessions"]) == SEVERAL.get(case, 1)


@pytest.mark.parametrize("case", [*ALONE, "sweep"])
def test_yaml_says_what_json_says(made, case):
    folder = made(case)
    document = validate(json.loads((folder / "summary.json").read_text()))
    text = (folder / "summary.yaml").read_text()
    assert yaml.safe_load(text) == json.loads(text) == document


def test_config_is_the_settings_as_run(made):
    config = yaml.safe_load((made("hostile") / "config.yaml").read_text())
    document = json.loads((made("hostile") / "summary.json").read_text())
    assert config["sessions"][0]["settings"] == document["sessions"][0]["settings"]
    assert config["sessions"][0]["settings"]["order"] == "yes", "a word, and no truth value"
    assert config["command"] == document["command"]


# ---- records --------------------------------------------------------------------------------------


def test_batches_have_every_field(made):
    header = (paths.ROOT / "include" / "chunkmill" / "readbench.h").read_text()
    body = re.search(r"struct cm_readbench_batch \{(.*?)\} cm_readbench_batch;", header, re.S)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    names = [n.strip() for line in body.split(";") for n in re.sub(r"^\s*\w+ ", "", line.strip()).split(",") if n.strip()]
    stages = [f"{s}_ns" for s in ("storage", "decode", "assemble", "convert")]
    names = [m for n in names for m in (stages if n.startswith("stage_ns") else [n])]
    assert list(batches(made("usual"))[0]) == [*names, "emulated"]


def percentile(values, share):
    return sorted(values)[math.ceil(share * len(values)) - 1]


@pytest.mark.every
@pytest.mark.parametrize("case", ["usual", "ranks", "device", "zero", "failed"])
def test_the_breakdown_is_that_of_the_batches(made, case):
    session = json.loads((made(case) / "summary.json").read_text())["sessions"][0]
    rows = [b for b in batches(made(case)) if (b["epoch"], b["number"]) != (0, 0) and not b["failed"]]
    loader = [max(0, b["got_ns"] - b["want_ns"]) / 1e9 for b in rows]
    runtime = [max(0, b["got_ns"] - max(b["end_ns"], b["want_ns"])) / 1e9 for b in rows]
    wait = [max(0, b["ready_ns"] - b["want_ns"]) / 1e9 for b in rows]
    total = [(b["done_ns"] - b["want_ns"]) / 1e9 for b in rows]
    given = session["breakdown"]
    assert given["n"] == len(rows)
    assert given["loader"] + given["runtime"] == pytest.approx(statistics.fmean(loader), abs=1e-9)
    assert given["runtime"] == pytest.approx(statistics.fmean(runtime), abs=1e-9) and given["memset"] == 0
    assert given["step"] == pytest.approx(statistics.fmean(total))
    parts = sum(given[k] for k in ("kernel", "memcpy", "memset", "runtime", "loader", "cpu", "other"))
    assert parts == pytest.approx(given["step"])
    assert given["cpu"] == pytest.approx(0.1 * (given["cpu"] + given["kernel"])), "other=T of --step-time"
    assert session["training"]["wait"]["p95"] == pytest.approx(percentile(wait, 0.95), abs=1e-9)


def test_samples_are_logged(made):
    with open(made("usual") / "samples.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    assert rows[0]["start"] == "5x6x7" and rows[0]["shape"] == "1x128x128" and rows[0]["crc32c"] == "00000abc"
    assert not (made("zero") / "samples.csv").exists()


@pytest.mark.parametrize("case", ["usual", "none", "ranks", "planned"])
def test_events_are_json_lines(made, case):
    folder = made(case)
    of = {
        "events.log": {"run", "setup", "epoch", "training", "get-batch"},
        "events_workers.log": {"worker", "make-batch"},
    }
    count = len(batches(folder))
    for name, kinds in of.items():
        events = [json.loads(line) for line in (folder / name).read_text().splitlines()]
        assert {e["event"] for e in events} <= kinds
        assert all(e["start_ns"] <= e["end_ns"] for e in events)
        assert [e["start_ns"] for e in events] == sorted(e["start_ns"] for e in events)
        for kind in kinds & {"training", "get-batch", "make-batch"}:
            assert sum(e["event"] == kind for e in events) == count
    assert "setup" in (folder / "events.log").read_text()


@pytest.mark.parametrize("case", ["usual", "ranks", "device", "none"])
def test_the_trace_is_a_chrome_trace(made, case):
    trace = json.loads((made(case) / "trace.json").read_text())
    events = trace["traceEvents"]
    rows = batches(made(case))
    assert sum(e["ph"] == "X" and e["name"] == "step" for e in events) == len(rows)
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in events if e["ph"] == "X")
    if not rows:
        return
    assert {e["name"] for e in events if e["ph"] == "C"} >= {"memory", "CPUs busy"}
    assert ("GPU" in {e["name"] for e in events if e["ph"] == "C"}) == (case == "device")
    first = rows[0]
    step = next(e for e in events if e["name"] == "step" and e["tid"] == first["rank"])
    assert step["ts"] == pytest.approx(max(first["want_ns"], first["ready_ns"]) / 1e3)
    # The stages of a batch lie within it.
    made_by = [e for e in events if e["ph"] == "X" and e["pid"] == 2 and e["tid"] == 0]
    whole = [e for e in made_by if e["name"].startswith("batch")]
    inner = [e for e in made_by if e["name"] == "decode"]
    assert inner and whole
    if case == "usual":
        spans = [(e["ts"], e["ts"] + e["dur"]) for e in whole]
        assert all(any(a - 1 <= e["ts"] and e["ts"] + e["dur"] <= b + 1 for a, b in spans) for e in inner)


def test_copies_stand_beside_steps_in_the_trace(made):
    """On a row of their own, so that one sees which step hides which copy."""
    events = json.loads((made("device") / "trace.json").read_text())["traceEvents"]
    rows = batches(made("device"))
    copies = [e for e in events if e["ph"] == "X" and e["name"].startswith("copy of batch")]
    steps = [e for e in events if e["ph"] == "X" and e["name"] == "step"]
    assert len(copies) == len(rows)
    assert not {(e["pid"], e["tid"]) for e in copies} & {(e["pid"], e["tid"]) for e in steps}
    (pid,) = {e["pid"] for e in copies}
    names = [e["args"]["name"] for e in events if e["ph"] == "M" and e["pid"] == pid]
    assert names[0] == "copies to the device" and "rank 0" in names
    assert sorted(e["ts"] for e in copies) == pytest.approx(sorted(r["copy_start_ns"] / 1e3 for r in rows))
    assert all(e["dur"] == pytest.approx(rows[0]["copy_ns"] / 1e3) for e in copies)
    hidden = sum(
        any(s["tid"] == c["tid"] and s["ts"] <= c["ts"] and c["ts"] + c["dur"] <= s["ts"] + s["dur"] for s in steps)
        for c in copies
    )
    assert hidden > len(rows) / 2
    for case in ("usual", "none"):
        trace = (made(case) / "trace.json").read_text()
        assert "copies to the device" not in trace and "copy of batch" not in trace


def test_rows_of_the_trace_do_not_overlap(made):
    """Slices of one row lie beside or inside each other, also where batches are made side by side."""
    for case in ("usual", "planned", "shared"):
        rows = {}
        for e in json.loads((made(case) / "trace.json").read_text())["traceEvents"]:
            if e["ph"] == "X" and e["pid"] == 2 and e["name"].startswith("batch"):
                rows.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"]))
        assert len(rows) == {"usual": 4, "planned": 1, "shared": 6}[case]
        for spans in rows.values() if case != "shared" else ():  # simulated rank by rank: those meet
            open_ends = []
            for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
                while open_ends and open_ends[-1] <= start + 0.01:
                    open_ends.pop()
                assert not open_ends or end <= open_ends[-1] + 0.01
                open_ends.append(end)


# ---- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ALONE)
def test_files_of_one(made, case):
    folder = made(case)
    have = {p.name for p in folder.iterdir()}
    assert have >= {*DATA, "trace.json", "report.html"} | {f"{p}.svg" for p in PLOTS}
    assert not [n for n in have if n.startswith(".")], "a file that was not finished"


@pytest.mark.parametrize("case", SEVERAL)
def test_files_of_several(made, case):
    folder = made(case)
    document = json.loads((folder / "summary.json").read_text())
    below = {p.name for p in folder.iterdir() if p.is_dir()}
    assert below == {s["label"] for s in document["sessions"]}
    assert (folder / "comparison.svg").exists() and (folder / "comparison_time.svg").exists()
    for session in document["sessions"]:
        own = json.loads((folder / session["label"] / "summary.json").read_text())
        assert own["sessions"] == [session]
        assert {p.name for p in (folder / session["label"]).iterdir()} >= set(DATA)


def test_nothing_that_exists_is_written_into(tmp_path):
    (tmp_path / "there").mkdir()
    result = run("one", tmp_path / "there")
    assert result.status == 1 and "exists already" in result.err
    assert not list((tmp_path / "there").iterdir())


def test_a_folder_in_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    result = run("one", tmp_path / "file" / "out")
    assert result.status == 1 and "cannot be made" in result.err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("case", [*ALONE, "sweep"])
def test_plots_are_drawn(made, case):
    for path in sorted(made(case).glob("*.svg")):
        text = path.read_text()
        assert not re.search(r"\b(nan|inf)\b", re.sub(r"<text.*?</text>", "", text), re.I), path.name
        root = xml.fromstring(text)
        width, height = float(root.get("width")), float(root.get("height"))
        shapes = [e for tag in ("path", "polyline", "polygon") for e in root.iter(SVG + tag)]
        assert shapes or case == "none", path.name
        for t in root.iter(SVG + "text"):
            assert 0 <= float(t.get("x")) <= width and 0 <= float(t.get("y")) <= height, path.name
        for e in root.iter(SVG + "polyline"):
            for x, y in (map(float, p.split(",")) for p in e.get("points").split()):
                assert -1 <= x <= width + 1 and -1 <= y <= height + 1, path.name
        for e in root.iter(SVG + "path"):
            for x, y in re.findall(r"M([-\d.]+) ([-\d.]+)", e.get("d")):
                assert -1 <= float(x) <= width + 1 and -1 <= float(y) <= height + 1, path.name


# ---- the closing summary --------------------------------------------------------------------------

SAID = [
    "samples/s",
    "logical",
    "decoded",
    "physical",
    "raw storage",
    "memory copied",
    "bytes decoded over bytes used",
    "chunks over the fewest",
    "requests over chunks",
    *("p50", "p95", "p99 ", "p99.9", "max"),
    "time to first batch",
    "first step",
    "share of time the step waited",
    "accelerator utilisation",
    "CPU seconds a GB",
    "peak memory",
    "missing chunks",
]


def test_the_summary_says_it_all():
    out = run("usual").ok().out
    for words in SAID:
        assert words in out, words
    assert re.search(r"^feeds 0 of 1 accelerator at 90 %: needs 26.2 MB/s, got 2\d\.\d MB/s$", out, re.M)
    assert "EMULATED" not in out
    assert not re.search(r" $", out, re.M), "spaces at the end of a line"
    assert not re.search(r"\b(nan|inf)\b", out, re.I)


def test_the_summary_says_what_a_device_was_and_cost():
    lines = [re.split("  +", line.strip()) for line in run("device").ok().out.splitlines()]
    said = dict(line for line in lines if len(line) == 2)
    assert said["device"] == "a second memory of this machine"
    assert said["driver"] == "550.54.15, CUDA 12.4"
    assert said["page-locked, apart"] == "64.00 MiB in 12.5 ms"
    assert said["plain pinned copy here"] == "11.0 GB/s"
    assert said["reading again and comparing"] == "8.00 GB/s"
    assert "page-locked" not in run("usual").ok().out
    # Bytes of the samples as they are stored: a cast makes others of them.
    assert "logical (before any cast)" in said


def test_a_proposal_says_what_it_promises(made):
    """In the sentence, with the command below it; and in the document."""
    assert re.search(r"predicted 1\.6 times the samples/s with 8 workers\n  try: readbench .* --workers 8$", run("usual").ok().out, re.M)
    proposal = json.loads((made("usual") / "summary.json").read_text())["sessions"][0]["diagnosis"]["proposal"]
    assert proposal["change"] == "workers" and proposal["gain"] == 1.6 and proposal["command"].endswith(" --workers 8")


def test_several_stand_beside_each_other():
    out = run("two").ok().out
    assert re.search(r"^ +era5\.nc +era5\.zarr$", out, re.M)
    ratio = re.search(r"^samples/s, ratio to the first +1\.00 +(\d\.\d\d)$", out, re.M)
    assert float(ratio[1]) > 2
    assert out.count("feeds ") == 2


def test_a_sweep_is_a_table():
    out = run("sweep").ok().out
    assert len(re.findall(r"^workers=\d+ EMULATED", out, re.M)) == 6
    assert re.search(r"^workers=16 EMULATED \*", out, re.M)
    assert "best: workers=16" in out and "because more workers gain less than 5 %" in out


def test_the_median_of_rounds_counts(made):
    """In the document, the table and the picture, as in the verdict."""
    sessions = json.loads(run("sweep", "--json").ok().out)["sessions"]
    assert max(len(s["rounds"]) for s in sessions) == 3
    out, page = run("sweep").ok().out, (made("sweep") / "report.html").read_text()
    for s in sessions:
        median = statistics.median(s["rounds"])
        assert s["rates"]["samples"] == pytest.approx(median)
        assert re.search(rf"^{s['label']} EMULATED[ *]+{median:.1f} ", out, re.M)
        assert f"{s['label']}: {median:.4g}" in page


def test_tuning_ends_with_a_line_to_paste():
    assert "\nDataLoader(dataset, batch_size=32, num_workers=8, prefetch_factor=2)\n" in run("tune").ok().out


def test_every_output_of_an_emulated_run_says_so(made):
    folder = made("hostile")
    assert "EMULATED" in made.said["hostile"].out
    assert json.loads((folder / "summary.json").read_text())["emulated"] is True
    assert yaml.safe_load((folder / "config.yaml").read_text())["sessions"][0]["emulated"] is True
    assert "EMULATED" in (folder / "report.html").read_text()
    for plot in PLOTS:
        assert "EMULATED" in (folder / f"{plot}.svg").read_text()


def test_names_do_no_harm(made):
    folder = made("hostile")
    out = made.said["hostile"].out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", out)
    page = (folder / "report.html").read_text()
    assert page.count("</script>") == 1
    assert '<b>"x"' not in page
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", page)


# ---- the page in a browser ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if not browser.find():
        pytest.skip("chromium is not installed")
    b = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield b
    b.close()


# Per plot that is shown: its name, and how many of its shapes and texts cover any area.
DRAWN = """[...document.querySelectorAll('svg[data-plot]')]
  .filter(s => getComputedStyle(s).display !== 'none')
  .map(s => [s.dataset.plot, s.getBoundingClientRect().width, s.getBoundingClientRect().height,
    [...s.querySelectorAll('path,polyline,polygon')]
      .filter(e => {const b = e.getBBox(); return b.width + b.height > 0}).length,
    [...s.querySelectorAll('text')].filter(e => e.getBBox().width > 0).length])"""

SHOWN = ["usual", "none", "one", "many", "zero", "failed", "ranks", "device", "planned", "hostile", "sweep", "tune"]


@pytest.mark.few(2)
@pytest.mark.parametrize("width", [1400, 1000, 390, 360])
@pytest.mark.parametrize("case", SHOWN)
def test_the_page_is_drawn(made, chromium, case, width):
    page = made(case) / "report.html"
    assert page.stat().st_size < 3 << 20
    chromium.open(page, width=width, dark=width in (360, 1400))
    assert chromium.complaints() == []
    assert [u for u in chromium.requests() if not u.startswith("data:")] == [f"file://{page}"]
    drawn = chromium.evaluate(DRAWN)
    assert [d[0] for d in drawn] == (["comparison", "comparison_time"] if case in SEVERAL else PLOTS)
    for name, w, h, shapes, texts in drawn:
        assert w > 300 and h > 100, name
        assert shapes > 0 or (case == "none" and name == "resources"), name
        assert texts > 0, name
    assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    assert len(chromium.evaluate("document.querySelector('h1').innerText")) > 10


# Elements that reach past the window and are in no box that scrolls, and cards whose text does not fit.
CUT = """[...document.querySelectorAll('td,th,dd,dt,h1,p,li,pre')]
  .filter(e => !e.closest('.scroll') || e.closest('.items'))
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1 || (e.closest('.tile') && e.scrollWidth > e.clientWidth + 1))
  .map(e => e.innerText)"""


@pytest.mark.parametrize("width, letters", [(390, 16), (320, 16), (700, 32), (1400, 32), (390, 24)])
@pytest.mark.parametrize("case", ["usual", "device", "three", "sweep"])
def test_nothing_is_cut_on_a_phone_or_under_zoom(made, chromium, case, width, letters):
    """LETTERS: their size, as the browser is set to, in pixels."""
    chromium.open(made(case) / "report.html", width=width)
    chromium.evaluate(f"document.documentElement.style.fontSize = '{letters}px'")
    assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    assert chromium.evaluate(CUT) == []


def test_words_of_the_trade_are_explained_and_zeros_left_out(made):
    """Of rows; one that is 0 says nothing, but for accelerators that are not fed."""
    for case in ("usual", "two"):
        page = (made(case) / "report.html").read_text()
        rows = dict(re.findall(r'<tr><th scope="row">([^<]*)(?:<small>.*?</small>)?</th>(.*?)</tr>', page))
        assert "missing chunks" not in rows and "accelerators fed at 90 %" in rows
        for name, cells in rows.items():
            values = re.findall("<td>(.*?)</td>", cells)
            assert name.startswith("accelerators fed") or not all(re.fullmatch(r"0(\.0+)?( .*)?", v) for v in values), name
    for words in ("displacement of the shuffle", "chunks over the fewest", "p95", "raw storage here"):
        assert f'<th scope="row">{words}<small>' in (made("planned") / "report.html").read_text() + page, words


def test_a_comparison_leads_with_its_cause(made):
    page = (made("two") / "report.html").read_text()
    lead = re.search(r'<p class="lead">(.*?)</p>\n<h1', page)
    assert lead and "era5.nc" in lead[1], page[:3000]


@pytest.mark.parametrize("case", ["usual", "many", "ranks", "device", "planned", "two", "sweep", "tune"])
def test_the_page_is_printed(made, chromium, case):
    """On four sheets at most, every plot among them, and nothing that only a screen can do."""
    chromium.open(made(case) / "report.html")
    pdf = chromium.pdf()
    assert pdf.startswith(b"%PDF") and len(pdf) > 20000
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 4
    chromium.call("Emulation.setEmulatedMedia", media="print")
    drawn = [d[0] for d in chromium.evaluate(DRAWN)]
    hidden = chromium.evaluate("[...document.querySelectorAll('.copy,.screen')].filter(e => e.offsetParent !== null).length")
    chromium.call("Emulation.setEmulatedMedia", media="")
    assert drawn == (["comparison", "comparison_time"] if case in SEVERAL else PLOTS)
    assert hidden == 0
    assert chromium.complaints() == []


def click(chromium, element):
    """As a mouse does it, in the middle of what ELEMENT, an expression, gives."""
    chromium.evaluate(f"{element}.scrollIntoView({{block: 'center'}})")
    x, y = chromium.evaluate(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({element}.getBoundingClientRect())")
    for kind in ("mousePressed", "mouseReleased"):
        chromium.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


@pytest.mark.parametrize("clipboard", [True, False])
@pytest.mark.parametrize("case", ["usual", "tune"])
def test_a_click_copies_a_command(made, chromium, case, clipboard):
    """By the clipboard, or, where a browser gives none, by what is selected."""
    chromium.open(made(case) / "report.html")
    commands = chromium.evaluate("[...document.querySelectorAll('pre.try')].map(p => p.textContent)")
    assert commands and chromium.evaluate("document.querySelectorAll('button.copy').length") == len(commands)
    chromium.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: %s})"
        % ("{writeText: t => {window.copied = t; return Promise.resolve()}}" if clipboard else "undefined")
    )
    chromium.evaluate("document.addEventListener('copy', () => {window.copied = getSelection().toString()})")
    for i, command in enumerate(commands):
        click(chromium, f"document.querySelectorAll('button.copy')[{i}]")
        assert " ".join(chromium.evaluate("window.copied").split()) == " ".join(command.split())
        assert chromium.evaluate(f"document.querySelectorAll('button.copy')[{i}].textContent") == "Copied"
    assert chromium.complaints() == []


def test_the_headline_of_a_comparison_compares(made, chromium):
    chromium.open(made("two") / "report.html")
    assert chromium.evaluate("document.querySelector('h1').innerText") == "era5.zarr: 4.5 times the samples a second of era5.nc"


def lines_of(path, colour):
    """The points of each line of COLOUR."""
    root = xml.fromstring(path.read_text())
    return [
        [tuple(map(float, p.split(","))) for p in e.get("points").split()]
        for e in root.iter(SVG + "polyline")
        if colour in (e.get("stroke") or "")
    ]


def words_of(path):
    return [(float(t.get("x")), float(t.get("y")), t.text or "") for t in xml.fromstring(path.read_text()).iter(SVG + "text")]


def test_another_stores_turn_is_blank(made):
    """Where it was the other's turn a line ends, and is not 0; in one run alone it goes on."""
    folder = made("two") / "era5.zarr"
    for plot, colour in (("throughput", "#0072b2"), ("throughput", "#e69f00"), ("resources", "#cc79a7")):
        lines = [p for p in lines_of(folder / f"{plot}.svg", colour) if p[0][1] != p[-1][1] or len(p) > 2]
        assert len(lines) == 2, (plot, colour)
        assert lines[0][-1][0] + 50 < lines[1][0][0], (plot, colour)
        (alone,) = [p for p in lines_of(made("usual") / f"{plot}.svg", colour) if len(p) > 2]
        assert len(alone) > 20


def test_what_is_needed_stands_beside_what_is_delivered(made):
    """Both in decoded bytes; what storage gave, in stored bytes, has an axis of its own."""
    words = words_of(made("usual") / "throughput.svg")
    place = {text: y for _, y, text in words}
    (decoded,) = [y for text, y in place.items() if text.startswith("decoded bytes")]
    (stored,) = [y for text, y in place.items() if text.startswith("stored bytes")]
    assert place["delivered"] == place["needed by the steps"] < decoded < place["read from storage"] < stored


def test_the_histogram_has_bars_enough_or_none(made):
    def bars(case):
        root = xml.fromstring((made(case) / "wait_histogram.svg").read_text())
        return [e for e in root.iter(SVG + "path") if "#d55e00" in (e.get("fill") or "")]

    assert len(bars("many")) >= 8
    waited = sum(b["ready_ns"] - b["want_ns"] >= 1000 for b in batches(made("usual")))
    assert 0 < waited < 20 and bars("usual") == []
    assert any("too few for bars" in text for *_, text in words_of(made("usual") / "wait_histogram.svg"))


def test_the_page_can_be_heard(made, chromium):
    """Every plot has a name, every table header a scope, and headings leave no level out."""
    chromium.open(made("usual") / "report.html")
    names = chromium.evaluate("[...document.querySelectorAll('svg')].map(s => s.getAttribute('aria-label'))")
    assert names and all(names)
    assert chromium.evaluate("document.querySelectorAll('thead th:not([scope])').length") == 0
    assert chromium.evaluate("document.querySelectorAll('h1').length") == 1
    assert chromium.evaluate("document.querySelectorAll('details table tbody tr').length") >= 50


def test_links_lead_to_files(made, chromium):
    for case in ("usual", "sweep"):
        folder = made(case)
        chromium.open(folder / "report.html")
        links = chromium.evaluate("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
        assert links and all((folder / link).exists() for link in links)


def test_colours_change_by_night(made, chromium):
    colour = "getComputedStyle(document.querySelector('svg .fd55e00')).fill + getComputedStyle(document.body).backgroundColor"
    seen = set()
    for dark in (False, True):
        chromium.open(made("usual") / "report.html", dark=dark)
        seen.add(chromium.evaluate(colour))
    assert len(seen) == 2
