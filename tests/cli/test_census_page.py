"""The census on the page of --report: holes of a store, of a source, and arrays that cannot be read."""

import json
import os
import re
import shutil

import jsonschema
import numpy as np
import pytest
import zarr
from zarr.codecs import ZstdCodec

from support import browser, fields, paths, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "chunkcalc.json").read_text())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "whole.zarr"
    root = zarr.open_group(str(path), mode="w", zarr_format=3)
    values = np.random.default_rng(3).normal(280, 5, (12, 4, 4)).astype("f4")
    for name, more in (("t2m", {}), ("q", {}), ("sh", {"shards": (4, 4, 4)})):
        a = root.create_array(name, shape=values.shape, chunks=(1, 2, 2), dtype="f4", fill_value=0, compressors=ZstdCodec(checksum=True),
                              dimension_names=("time", "y", "x"), **more)  # fmt: skip
        a[:] = values
    return path


@pytest.fixture
def store(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "a.zarr")
    return tmp_path / "a.zarr"


def page_of(store, folder, *options):
    """The page and the document of chunkcalc."""
    done = tool.run("chunkcalc", "--json", "--report", folder / "p.html", "--overwrite", *options, store).ok()
    document = json.loads(done.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return (folder / "p.html").read_text(), document


def section(page):
    (found,) = re.findall(r"<h2>Which chunks (?:of the source )?are there</h2>(.*?)<section><h2>", page, re.S)
    return found


def tile(page):
    (found,) = re.findall(r'<div class="tile([^"]*)"><dt>chunks [^<]*</dt><dd>([^<]*)<small>([^<]*)<', page)
    return found


def strips(text):
    return re.findall(r'<svg[^>]*aria-label="([^":]*): where', text)


def test_a_whole_store(whole, tmp_path):
    page, _ = page_of(whole, tmp_path)
    assert "All 144 chunks of 3 arrays are there." in section(page) and not strips(section(page))
    assert tile(page) == (" good", "no holes", "144 chunks")
    page, _ = page_of(whole, tmp_path, "--audit", "full")
    assert "are there, and decoded." in section(page)


def test_holes_are_named_and_drawn(store, tmp_path):
    for key in ("3/0/0", "3/0/1", "7/1/1"):
        (store / "t2m/c" / key).unlink()
    os.truncate(store / "q/c/5/0/0", 0)
    shutil.rmtree(store / "sh/c/2")
    (store / "<b>").write_text("?")
    page, document = page_of(store, tmp_path)
    seen = section(page)
    assert "3 of 48 chunks are absent, read as fill (3/0/0, 3/0/1, 7/1/1)</p>" in seen
    assert "1 of 48 chunks is empty: 0 bytes (5/0/0)</p>" in seen
    assert "16 of 48 chunks are absent, read as fill (shard 2/0/0)</p>" in seen
    assert "1 object belongs to nothing in this store:" in seen and "<li><b>&lt;b&gt;</b>: no part of a group</li>" in seen
    assert sorted(strips(seen)) == ["q", "q", "sh", "sh", "t2m", "t2m"]  # wide and narrow
    assert tile(page) == (" bad", "20 holes", "of 144 chunks")
    assert [a["name"] for a in document["census"]["arrays"]] == ["q", "sh", "t2m"]
    # Rows 3 and 7 of 12, a half and a quarter of their chunks.
    wide = re.search(r'<svg[^>]*class="wide"[^>]*aria-label="t2m: where.*?</svg>', seen, re.S)[0]
    (path,) = re.findall(r'class="fd55e00" d="([^"]*)"|d="([^"]*)" class="fd55e00"', wide) or [("", "")]
    boxes = [tuple(map(float, b)) for b in re.findall(r"M([\d.]+)[ ,]([\d.]+)h([\d.]+)v([\d.]+)", "".join(path))]
    assert [(round(x / (860 / 12)), height) for x, _, _, height in boxes] == [(3, 11), (7, 5.5)]


def test_an_array_that_cannot_be_read(store, tmp_path):
    """The others have their page, and it is told which has none."""
    key = store / "q/c/5/0/0"
    data = bytearray(key.read_bytes())
    data[-1] ^= 0x55
    key.write_bytes(data)
    page, document = page_of(store, tmp_path)
    assert tile(page) == (" good", "no holes", "144 chunks")  # by names and sizes
    assert "It could not be read to its end, so nothing of it was counted: " in page and "1 variable could not be read" in page
    (unread,) = document["report"]["unread"]
    assert unread["name"] == "q" and "chunk 5/0/0" in unread["why"]
    assert [v["name"] for v in document["report"]["variables"]] == ["sh", "t2m"]
    page, document = page_of(store, tmp_path, "--audit", "full")
    assert "1 of 48 chunks is undecodable (5/0/0): " in section(page) and tile(page)[0] == " bad"
    err = tool.run("chunkcalc", "--report", tmp_path / "p.html", "--overwrite", store).ok().err
    assert err.count("warning: q: was not read to its end: ") == 1
    _, document = page_of(f"{store}::t2m", tmp_path)
    assert "unread" not in document["report"]


def test_one_array_is_looked_at_and_all_are_counted(store, tmp_path):
    """A page is of the whole store, whatever a sample is read of."""
    (store / "t2m/c/3/0/0").unlink()
    page, document = page_of(store, tmp_path, "--variable", "q", "--sample", "1x2x2")
    assert "1 of 48 chunks is absent" in section(page) and document["census"]["depth"] == "sizes"
    plain = json.loads(tool.run("chunkcalc", "--json", "--variable", "q", "--sample", "1x2x2", store).ok().out)
    assert "census" not in plain
    _, document = page_of(store, tmp_path, "--variable", "q")  # without a sample the page is of that array
    assert [v["name"] for v in document["report"]["variables"]] == ["q"]


def test_a_conversion_tells_of_its_source(store, tmp_path):
    (store / "t2m/c/3/0/0").unlink()
    tool.run("rechunk", "--report", tmp_path / "p.html", "--variable", "t2m,q", "--rename", "t2m=tas", store, tmp_path / "b.zarr").ok()
    page = (tmp_path / "p.html").read_text()
    assert "<h2>Which chunks of the source are there</h2>" in page and "<h3>t2m</h3>" in section(page)
    assert "1 of 48 chunks is absent, read as fill (3/0/0)" in section(page) and "The other array is whole: 48 chunks" in section(page)
    assert tile(page) == (" bad", "1 hole", "of 96 chunks") and page.count("is absent") == 1
    fields.write(tmp_path / "in.nc", {"t": fields.make(4)})
    tool.run("nc2zarr", "--report", tmp_path / "q.html", tmp_path / "in.nc", tmp_path / "c.zarr").ok()
    assert "Which chunks" not in (tmp_path / "q.html").read_text()  # of a file nothing is known


def test_many_arrays_with_holes(tmp_path):
    """The first are drawn, more are told, and the rest is a number."""
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=3)
    for i in range(410):
        root.create_array(f"v{i:03}", shape=(2,), chunks=(1,), dtype="i1", fill_value=0)
    page, _ = page_of(tmp_path / "a.zarr", tmp_path)
    seen = section(page)
    assert len(strips(seen)) == 2 * 40 and seen.count("<h3>") == 400
    assert "and 10 more arrays with holes." in seen and tile(page) == (" bad", "820 holes", "of 820 chunks")


LOOK = """({width: document.documentElement.scrollWidth,
  unnamed: document.querySelectorAll('svg:not([aria-label])').length,
  drawn: [...document.querySelectorAll('svg')].filter(s => getComputedStyle(s).display !== 'none').map(s => s.getBoundingClientRect().width),
  cut: [...document.querySelectorAll('svg text')].filter(t => t.getBoundingClientRect().width > 0).filter(t => {
    const b = t.getBoundingClientRect(), s = t.ownerSVGElement.getBoundingClientRect();
    return b.left < s.left - 1 || b.right > s.right + 1 || b.bottom > s.bottom + 1}).length})"""


def test_the_section_in_a_browser(store, tmp_path):
    if not browser.find():
        pytest.skip("chromium is not installed")
    shutil.rmtree(store / "t2m/c/3")
    os.truncate(store / "q/c/5/0/0", 0)
    (store / ("long" * 50)).write_text("")
    page_of(store, tmp_path)
    b = browser.Browser(tmp_path / "profile")
    try:
        for width in (1400, 390):
            for dark in (False, True):
                b.open(tmp_path / "p.html", width=width, dark=dark)
                seen = b.evaluate(LOOK)
                assert b.complaints() == [] and seen["width"] <= width and seen["unnamed"] == 0 and seen["cut"] == 0
                assert len(seen["drawn"]) == 4 and min(seen["drawn"]) > 300  # the values of two, and two strips
        assert b.pdf().startswith(b"%PDF")
    finally:
        b.close()
