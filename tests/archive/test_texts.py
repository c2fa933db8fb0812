"""Texts whose lengths differ between files: the shorter ones are filled up with NULs."""

import json
import shutil

import numpy as np
import pytest
import xarray as xr

from support import readers, tool

from . import files as F
from . import stores

STATIONS = ["Zürich", "Bern", "Genève"]


def report(step, station, length):
    """Of any length up to all of it."""
    text = f"{step}/{station} " + "abcdefghijklmnopqrstuvwxyz" * 3
    return text[: max(1, length - (step + station) % 5)]


def file(i, length, steps=2, name="length", format="NETCDF4", title=None, first=None, fill=None, **kind):
    """Texts in a record variable, in one that stands still, in two dimensions, and alone; numbers beside them."""
    first = i * steps if first is None else first
    texts = [F.characters([report(first + k, s, length) for s in range(3)], length) for k in range(steps)]
    title = "short" if title is None else title
    vars = {
        **F.time_vars(first, steps),
        "station_name": F.Var(("station", name), F.characters(STATIONS, length), {"_Encoding": "utf-8"}),
        "report": F.Var(("time", "station", name), np.array(texts, "S1").reshape(steps, 3, length), fill=fill, **kind),
        "title": F.Var(("title_length",), F.characters([title], len(title.encode()) + i % 3)[0]),
        "tas": F.Var(("time", "station"), np.arange(first * 3, (first + steps) * 3, dtype="f4").reshape(steps, 3)),
    }
    return F.File(f"f{i:04}.nc", vars, format=format)


def longest(files, name):
    return max(f.vars[name].data.shape[-1] for f in files)


def wanted(files, dim=None):
    """{variable: (dimensions, values)}: numpy's way with texts."""
    padded = [F.changed(f) for f in files]
    for name in ("station_name", "report", "title"):
        n = longest(files, name)
        widest = next(f for f in files if f.vars[name].data.shape[-1] == n)
        for f in padded:
            v = f.vars[name]
            v.data, v.dims = F.padded(v.data, n), widest.vars[name].dims
    return F.joined(padded)


LENGTHS = {"longer": [20, 20, 24, 24], "shorter": [24, 20, 20, 24], "all": [7, 30, 9, 20], "first": [9, 12, 12, 12]}
FORMATS = ["NETCDF4", "NETCDF3_CLASSIC", "NETCDF4_CLASSIC", "NETCDF3_64BIT_DATA"]
# One for several lengths, or one for each, as xarray writes them.
NAMES = {"one": lambda n: "length", "each": lambda n: f"string{n}"}


def archive(tmp_path, lengths=(20, 24, 7), naming="one", **kw):
    files = [file(i, n, name=NAMES[naming](n), **kw) for i, n in enumerate(lengths)]
    F.write_all(files, tmp_path / "in")
    return files


def found(doc, variable, kind="type"):
    return [f for f in doc["findings"] if f["kind"] == kind and f["variable"] == variable]


@pytest.mark.parametrize("naming", NAMES)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_texts_are_filled_up(tmp_path, lengths, naming):
    at = list(LENGTHS).index(lengths)
    files = archive(tmp_path, LENGTHS[lengths], naming, format=FORMATS[at])
    _, doc = stores.survey(tmp_path / "in", status=0)
    others = [f.name for f, n in zip(files, LENGTHS[lengths]) if n != LENGTHS[lengths][0]]
    for name in ("station_name", "report"):
        (note,) = found(doc, name)
        ends = [note["file"].rsplit("/", 1)[1], note["last"].rsplit("/", 1)[1]]
        assert (ends, note["files"], note["option"], note["weight"]) == ([others[0], others[-1]], len(others), "--char join", "note"), note
    out = tmp_path / "out.zarr"
    stores.convert("--verify", "full", tmp_path / "in", out).ok()
    stores.same(out, wanted(files))
    assert tool.nc2zarr("--check", tmp_path / "in", out).status == 0
    assert stores.attributes(out, "station_name")["_Encoding"] == "utf-8"


@pytest.mark.parametrize("format", FORMATS)
def test_as_xarray_joins_them(tmp_path, format):
    archive(tmp_path, format=format)
    out = tmp_path / "out.zarr"
    stores.convert(tmp_path / "in", out).ok()
    with (
        xr.open_mfdataset(sorted((tmp_path / "in").glob("*")), data_vars="minimal", coords="minimal", compat="override") as a,
        xr.open_zarr(out) as b,
    ):
        assert a["report"].dtype == b["report"].dtype == "S24"
        assert a["report"].values.tolist() == b["report"].values.tolist()
        assert list(b["station_name"].values) == STATIONS
        assert b["title"].values.item().decode() == "short"


@pytest.mark.parametrize("kind", [{"chunks": (1, 2, 5)}, {"chunks": (2, 3, 7), "deflate": 4}, {"fill": b" "}], ids=str)
@pytest.mark.parametrize(
    "options",
    [(), ("--zarr-format", "2"), ("--chunks", "report:time=3,length=7"), ("--chunks", "time=2", "--shards", "time=4"), ("--memory", "32M")],
    ids=" ".join,
)
def test_layouts(tmp_path, kind, options):
    files = archive(tmp_path, **kind)
    out = tmp_path / "out.zarr"
    stores.convert("--verify", "full", *options, tmp_path / "in", out).ok()
    stores.same(out, wanted(files))


@pytest.mark.parametrize("mode", ["join", "uint8"])
def test_other_ways_with_characters(tmp_path, mode):
    files = archive(tmp_path)
    out = tmp_path / "out.zarr"
    stores.convert("--verify", "full", "--char", mode, tmp_path / "in", out).ok()
    with xr.open_zarr(out) as ds:
        ds.load()
    want = wanted(files)["report"][1]
    got = readers.arrays(out)["report"][...]
    if mode == "uint8":
        assert got.tobytes() == want.tobytes()
    else:
        texts = [b"".join(row).rstrip(b"\0").decode() for row in want.reshape(-1, want.shape[-1])]
        assert list(np.asarray(got).ravel()) == texts
        assert list(readers.arrays(out)["station_name"][...]) == STATIONS


def test_a_part_of_the_texts(tmp_path):
    files = archive(tmp_path)
    want = wanted(files)["report"][1]
    for i, (a, b) in enumerate([(0, 5), (5, 9), (19, 24), (22, 24)]):
        out = tmp_path / f"{i}.zarr"
        subset = ("--subset", f"length={a}:{b}", "--subset", "time=1:5")
        stores.convert("--verify", "full", *subset, tmp_path / "in", out).ok()
        assert readers.arrays(out)["report"][...].tobytes() == want[1:5, :, a:b].tobytes()


def test_parts(tmp_path):
    files = archive(tmp_path, [20, 24, 7, 24, 9, 20])
    out = tmp_path / "out.zarr"
    for k in (2, 3, 1):
        stores.convert("--chunks", "time=2", "--part", f"{k}/3", tmp_path / "in", out).ok()
    stores.same(out, wanted(files))


def test_chunks_that_memory_does_not_hold(tmp_path):
    """All steps of a few platforms are one chunk."""
    rng = np.random.default_rng(1)
    files = []
    for i, n in enumerate([40, 48, 33, 48]):
        f = file(i, 20, steps=40)
        texts = rng.integers(97, 123, (40, 3000, n), "u1").view("S1")
        f.vars["report"] = F.Var(("time", "platform", "report_length"), texts)
        files.append(f)
    F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    # Variables that are not selected may have any length.
    options = ("--chunks", "report:time=160,platform=300", "--memory", "40M", "--variables", "report")
    doc = stores.convert("--json", "--verify", "full", *options, tmp_path / "in", out).ok().json()
    assert doc["outcome"] == "done"
    want = np.concatenate([F.padded(f.vars["report"].data, 48) for f in files])
    assert readers.arrays(out)["report"][...].tobytes() == want.tobytes()


@pytest.mark.parametrize("at", [20, 23])
def test_verification_sees_what_follows_the_texts(tmp_path, at):
    """A character that no file has, where NULs belong."""
    archive(tmp_path, [24, 20, 24])
    out = tmp_path / "out.zarr"
    stores.convert(tmp_path / "in", out).ok()
    import zarr

    a = zarr.open_array(f"{out}/report", mode="r+")
    a[3, 1, at] = b"x"
    r = tool.nc2zarr("--check", tmp_path / "in", out)
    assert r.status == 3 and f"report: element 3/1/{at}: \"\" became \"x\"" in r.err, str(r)


def test_the_certificate_tells_the_lengths(tmp_path):
    files = archive(tmp_path, [20, 24, 20])
    proof, out = tmp_path / "proof.json", tmp_path / "out.zarr"
    r = tool.nc2zarr("--json", "--verify", "full", "--certificate", proof, tmp_path / "in", out).ok()
    doc = json.loads(proof.read_text())
    _, survey = stores.survey(tmp_path / "in", status=0)
    assert doc["reproducible"], doc["not_reproducible_because"]
    told = [i.get("left_out", {}).get("text_lengths") for i in doc["inputs"]]
    short = {"station_name": 20, "report": 20}
    assert told == [{**short, "title": 5}, {"title": 6}, short]
    for lists in (r.json()["file_attributes"], survey["file_attributes"]):
        assert [f["text_lengths"] for f in lists] == told
        assert [f["file"] for f in lists] == [str(tmp_path / "in" / f.name) for f in files]


@pytest.mark.parametrize("lengths", [(20, 24, 9), (24, 20, 20), (9, 9, 24)])
def test_empty_files(tmp_path, lengths):
    """A file without a step has texts of its length, none of them along time."""
    files = [file(0, lengths[0]), file(1, lengths[1], steps=0, first=2), file(2, lengths[2], first=2)]
    F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    stores.convert("--verify", "full", tmp_path / "in", out).ok()
    want, n = wanted(files), max(lengths)
    want["report"] = (want["report"][0], F.padded(want["report"][1], n))
    stores.same(out, want)


def test_other_orders_of_dimensions(tmp_path):
    files = [file(i, n) for i, n in enumerate([20, 24, 20])]
    turned = F.changed(files[2])
    v = turned.vars["report"]
    v.dims, v.data = ("station", "time", "length"), v.data.transpose(1, 0, 2)
    turned.unlimited = ()
    F.write_all([*files[:2], turned], tmp_path / "in")
    out = tmp_path / "out.zarr"
    stores.convert("--verify", "full", tmp_path / "in", out).ok()
    stores.same(out, wanted(files))


def large(tmp_path, n):
    files = [file(i, length) for i, length in enumerate([20, 24])]
    for f, length in zip(files, (20, 24)):
        f.vars["report"] = F.Var(("time", "platform", "length"), np.full((2, n, length), b"a", "S1"))
    F.write_all(files, tmp_path / "in")
    return files


def test_references_are_refused(tmp_path):
    """Bytes of a file are not filled up."""
    large(tmp_path, 720000)
    r = tool.nc2zarr("--virtual", "json", tmp_path / "in", tmp_path / "out.json")
    assert r.status == 1 and "report" in r.err and "its texts are shorter in some files" in r.err, str(r)
    assert not (tmp_path / "out.json").exists()


def test_few_texts_stand_in_the_document_of_references(tmp_path):
    files = large(tmp_path, 50)
    tool.nc2zarr("--virtual", "json", tmp_path / "in", tmp_path / "out.json").ok()
    tool.run("rechunk", tmp_path / "out.json", tmp_path / "out.zarr").ok()
    assert readers.arrays(tmp_path / "out.zarr")["report"][...].tobytes() == wanted(files)["report"][1].tobytes()


# ---- a store that grows ------------------------------------------------------------------------------


def grow(tmp_path, files, n, *options):
    """A store of the first N files, and the others beside it."""
    F.write_all(files[:n], tmp_path / "in")
    F.write_all(files[n:], tmp_path / "more")
    stores.convert(*options, tmp_path / "in", tmp_path / "out.zarr").ok()


@pytest.mark.parametrize("naming", NAMES)
@pytest.mark.parametrize("options", [(), ("--chunks", "time=3"), ("--zarr-format", "2")], ids=" ".join)
def test_shorter_texts_are_added(tmp_path, naming, options):
    files = [file(i, n, name=NAMES[naming](n)) for i, n in enumerate([24, 24, 24, 20, 9])]
    for f in files:
        f.vars["title"].data = F.characters(["short"], 7 - len(files) // 5)[0]
    grow(tmp_path, files, 3, *options)
    stores.convert("--verify", "full", "--append", "time", tmp_path / "more", tmp_path / "out.zarr").ok()
    stores.same(tmp_path / "out.zarr", wanted(files))


def test_longer_texts_are_not_added(tmp_path):
    grow(tmp_path, [file(0, 20), file(1, 24)], 1)
    before = stores.listing(tmp_path / "out.zarr")
    r = tool.nc2zarr("--append", "time", tmp_path / "more", tmp_path / "out.zarr")
    assert r.status == 4 and "report, station_name: its texts are 24 characters long, and 20 in the store, which keeps that length (f0001.nc)" in r.said, str(r)
    assert stores.listing(tmp_path / "out.zarr") == before


def test_shorter_texts_replace(tmp_path):
    files = [file(i, 24, title="no more" if i else None) for i in range(3)]
    for f in files:
        f.vars["title"].data = F.characters(["short"], 5)[0]
    grow(tmp_path, files, 3)
    other = file(1, 11)
    other.vars["title"].data = F.characters(["short"], 5)[0]
    other.vars["report"].data = F.characters(["a", "bb", "ccc"] * 2, 11).reshape(2, 3, 11)
    shutil.rmtree(tmp_path / "more")
    F.write_all([other], tmp_path / "more")
    stores.convert("--verify", "full", "--replace", "time=2000-01-02..2000-01-02T12:00:00", tmp_path / "more", tmp_path / "out.zarr").ok()
    stores.same(tmp_path / "out.zarr", wanted([files[0], other, files[2]]))


# ---- what is no text, or not the same ----------------------------------------------------------------


def test_texts_that_differ_are_told(tmp_path):
    files = [file(i, n) for i, n in enumerate([20, 24, 20])]
    files[2].vars["station_name"].data = F.characters(["Zürich", "Bern", "Basel"], 20)
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    (f,) = found(doc, "station_name", "static")
    assert f["file"].endswith("f0002.nc") and 'element 2 is "Basel", and "Genève" there' in f["text"], f
    out = tmp_path / "out.zarr"
    stores.convert("--static", "first", tmp_path / "in", out).ok()
    assert readers.arrays(out)["station_name"][...].tobytes() == F.characters(STATIONS, 24).tobytes()


def test_texts_that_only_data_tell_apart(tmp_path):
    """More than a survey reads of a field."""
    files = [file(i, n) for i, n in enumerate([20, 24])]
    for f, n in zip(files, (20, 24)):
        f.vars["remark"] = F.Var(("remark", "length"), np.full((60000, n), b"", "S1"))
        f.vars["remark"].data[:, :3] = b"a"
    F.write_all(files, tmp_path / "in")
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    assert readers.arrays(tmp_path / "out.zarr")["remark"].shape == (60000, 24)
    files[1].vars["remark"].data[1234, 22] = b"b"
    F.write(files[1], tmp_path / "in")
    r = tool.nc2zarr("--overwrite", tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 1 and "remark" in r.err and "f0001.nc" in r.err, str(r)


def test_promoted_texts(tmp_path):
    files = [file(i, n) for i, n in enumerate([20, 24, 9])]
    for i, f in enumerate(files):
        n = (3, 9, 5)[i]
        f.vars["ship"] = F.Var(("ship_length",), F.characters(["y" * n], n)[0])
    F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    stores.convert("--promote", "ship", "--verify", "full", tmp_path / "in", out).ok()
    want = wanted(files)
    del want["ship"]
    rows = [f.vars["ship"].data for f in files for _ in range(2)]
    want["ship"] = (("time", "ship_length"), np.stack([F.padded(row, 9) for row in rows]))
    stores.same(out, want)


def test_texts_of_files_that_are_one_step_each(tmp_path):
    """Texts that differ only in length get no dimension; others do."""
    for i, n in enumerate([12, 15, 12]):
        vars = {
            "name": F.Var(("station", "length"), F.characters(STATIONS, n)),
            "ship": F.Var(("length",), F.characters([f"ship {i}"], n)[0]),
            "x": F.Var(("station",), np.arange(3, dtype="f4") + i),
        }
        F.write(F.File(f"d_2000010{i + 1}.nc", vars, unlimited=()), _folder(tmp_path))
    out = tmp_path / "out.zarr"
    stores.convert("--new-dim", "time=%Y%m%d", "--verify", "full", tmp_path / "in", out).ok()
    got = readers.arrays(out)
    assert got["ship"][...].tobytes() == F.characters(["ship 0", "ship 1", "ship 2"], 15).tobytes()
    assert got["name"].shape[-2:] == (3, 15) and got["x"].shape == (3, 3)


def _folder(tmp_path):
    (tmp_path / "in").mkdir(exist_ok=True)
    return tmp_path / "in"


def test_a_length_that_numbers_have_too(tmp_path):
    """Such a dimension is no length of texts, and nothing is filled up."""
    files = [file(i, n) for i, n in enumerate([20, 24])]
    for f, n in zip(files, (20, 24)):
        f.vars["weight"] = F.Var(("length",), np.arange(n, dtype="f4"))
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    assert found(doc, "length", "length"), doc["findings"]


def test_times_of_wrf_of_several_lengths(tmp_path):
    files = []
    for hour, n in ((0, 19), (1, 24), (2, 19)):
        text = f"2005-08-28_{hour:02}:00:00"
        vars = {
            "Times": F.Var(("Time", "DateStrLen"), F.characters([text], n)),
            "T2": F.Var(("Time", "y"), np.full((1, 4), hour, "f4")),
        }
        files.append(F.File(f"wrfout_{2 - hour}", vars, unlimited=("Time",), format="NETCDF3_64BIT_OFFSET"))
    F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    stores.convert("--verify", "full", str(tmp_path / "in" / "wrfout_*"), out).ok()
    got = readers.arrays(out)
    assert got["Times"][...].tobytes() == F.characters([f"2005-08-28_{h:02}:00:00" for h in range(3)], 24).tobytes()
    np.testing.assert_array_equal(got["T2"][...][:, 0], [0, 1, 2])
