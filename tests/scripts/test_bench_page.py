"""Figures, a page, a comparison of machines, and the table of a document, made by scripts/bench of a report."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "scripts/bench"
sys.path.insert(0, str(BENCH))

import figures  # noqa: E402
import page  # noqa: E402

ROUNDS = {"0": 1.0, "1": 1.2, "2": 1.1}


def times(factor):
    return {k: v * factor for k, v in ROUNDS.items()}


def entry(title, factor):
    return {"title": title, "seconds": times(factor), "partner": ROUNDS, "cpu": [1.0]}


def report(quick=False, factor=3):
    """Two contenders of a conversion, a copy, one pair of each other part; one that could not be measured."""
    return {
        "quick": quick, "threads": 2, "elapsed": 61.0, "versions": {"xarray": "2026.9", "GDAL": None},
        "machine": {"cpu": "A <CPU>", "cpus": 4, "memory": "8 GiB", "system": "Debian", "kernel": "6", "file system": "ext4"},
        "conversions": [{"input": "standard", "title": "a map a chunk", "cache": "warm", "contenders": {
            "nc2zarr": {"title": "nc2zarr", "seconds": ROUNDS}, "roofline": {"title": "bare loops", "seconds": times(0.9)},
            "xarray": {"title": "xarray & dask", "seconds": times(factor)},
            "gdal": {"title": "GDAL", "seconds": {}, "refused": "gone"}}}],
        "keep": [{"input": "standard", "title": "a map a chunk", "keep": ROUNDS, "copy": times(1.5)}],
        "rechunk": [{"work": "series", "title": "maps to series", "contenders": {
            "rechunk-durable": entry("rechunk, synced", 1.3), "dask": entry("dask", 400), "rechunker": entry("rechunker", 5)}}],
        "archive": [{"kind": "survey", "files": 400, "contenders": {"loop": entry("bare loop", 0.25)}}],
        "readbench": {"rows": [{"work": "whole", "title": "a chunk", "contenders": {"bare": entry("bare loops", 0.98)}}]},
        "targets": [{"what": "recoding", "target": "at most 1", "measured": "1.1", "verdict": "**not reached**"}],
    }  # fmt: skip


def test_figures_are_ratios_within_rounds():
    found = {(f.part, f.work, f.who): f for f in figures.of(report())}
    assert {k: round(f.ratio["median"], 6) for k, f in found.items()} == {
        ("conversions", "standard", "roofline"): 0.9,
        ("conversions", "standard", "xarray"): 3,
        ("keep", "standard", "copy"): 1.5,
        ("rechunk", "series", "rechunk-durable"): 1.3,
        ("rechunk", "series", "dask"): 400,
        ("rechunk", "series", "rechunker"): 5,
        ("archive", "survey, 400 files", "loop"): 0.25,
        ("readbench", "whole", "bare"): 0.98,
    }
    assert {f.who for f in found.values() if f.is_bare} == {"roofline", "loop", "bare"}
    assert {f.who for f in found.values() if f.is_own} == {"rechunk-durable"}


def test_a_round_that_one_of_both_lacks_is_left_out():
    r = report()
    del r["conversions"][0]["contenders"]["xarray"]["seconds"]["1"]
    (f,) = (f for f in figures.of(r) if f.who == "xarray")
    assert f.ratio["n"] == f.ours["n"] == 2 and f.ours["median"] == pytest.approx(1.05)


def test_the_page_has_a_plot_for_each_work_and_names_no_place():
    text = page.page(report())
    assert text.count("<svg ") == 5 and "://" not in text and "<script" not in text
    assert "A &lt;CPU&gt;" in text and "xarray &amp; dask" in text and "class=no>not reached" in text
    for svg in text.split("<svg ")[1:]:
        root = ElementTree.fromstring("<svg " + svg.split("</svg>")[0] + "</svg>")
        width, height = map(float, root.get("viewBox").split()[2:])
        for box in root.iter("rect"):
            x, y, w, h = (float(box.get(k)) for k in ("x", "y", "width", "height"))
            assert w > 0 and 0 <= x and x + w <= width and 0 <= y and y + h <= height


def run(script, *words):
    return subprocess.run([sys.executable, "-B", BENCH / script, *map(str, words)], capture_output=True, text=True, check=False)


def test_machines_are_compared_figure_by_figure(tmp_path):
    for name, r in (("a", report()), ("b", report(factor=5))):
        (tmp_path / f"{name}.json").write_text(json.dumps(r))
    done = run("compare.py", tmp_path / "a.json", tmp_path / "b.json")
    assert done.returncode == 0, done.stderr
    assert "| conversions | standard | xarray & dask | 1.10 s, 3.00 | 1.10 s, 5.00 |" in done.stdout


@pytest.mark.parametrize("quick", [False, True])
def test_a_document_is_written_from_a_whole_run_alone(tmp_path, quick):
    document, before = tmp_path / "d.md", "# D\n<!-- figures -->\nold\n<!-- end -->\nrest\n"
    document.write_text(before)
    (tmp_path / "r.json").write_text(json.dumps(report(quick)))
    done = run("document.py", tmp_path / "r.json", document)
    if quick:
        assert done.returncode == 1 and "quick run" in done.stderr and document.read_text() == before
        return
    text = document.read_text()
    assert done.returncode == 0 and "old" not in text and text.startswith("# D\n<!-- figures -->\n") and text.endswith("<!-- end -->\nrest\n")
    assert "| conversions, standard: a map a chunk | 1.10 | 0.90 | xarray & dask: 3.0 |" in text
    assert "| rechunk, series: maps to series | 1.10 |  | dask: 400; rechunker: 5.0 |" in text


def test_a_document_without_a_place_for_figures_is_left_alone(tmp_path):
    document = tmp_path / "d.md"
    document.write_text("# D\n")
    (tmp_path / "r.json").write_text(json.dumps(report()))
    done = run("document.py", tmp_path / "r.json", document)
    assert done.returncode == 1 and "has no lines" in done.stderr and document.read_text() == "# D\n"
