"""--store-per: one survey, many stores; each is whole by itself."""

import json
import shutil

import jsonschema
import numpy as np
import pytest

from support import paths, readers, tool

from . import files as F
from . import stores
from .files import Var

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "nc2zarr.json").read_text())


def document(*args, status=0):
    r = tool.nc2zarr("--json", *args)
    assert r.status == status, str(r)
    doc = json.loads(r.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(doc)
    return doc


def moved(files, folder, by=0):
    """FILES in FOLDER, with other values."""
    out = []
    for f in map(F.changed, files):
        f.name = f"{folder}/{f.name}"
        f.vars["tas"].data = f.vars["tas"].data + np.float32(by)
        out.append(f)
    return out


@pytest.fixture
def members(tmp_path):
    """{name of the store: files}, written below in/."""
    made = {name: moved(F.clean(3), name, i) for i, name in enumerate(("a", "b", "deep/c"))}
    for files in made.values():
        F.write_all(files, tmp_path / "in")
    return made


def names(out):
    return sorted(str(p.relative_to(out))[: -len(".zarr")] for p in out.rglob("*.zarr"))


def test_folders(tmp_path, members):
    out = tmp_path / "out"
    doc = document("--store-per", "{dir}", "--verify", "full", "--certificate", tmp_path / "proof", tmp_path / "in", out)
    assert doc["schema"] == "nc2zarr-stores/1" and doc["outcome"] == "done"
    assert [s["store"] for s in doc["stores"]] == ["a", "b", "deep/c"] == names(out)
    assert {s["conversion"]["outcome"] for s in doc["stores"]} == {"done"}
    for name, files in members.items():
        stores.same(out / f"{name}.zarr", F.joined(files))
        proof = json.loads((tmp_path / "proof" / f"{name}.json").read_text())
        assert proof["reproducible"] and len(proof["inputs"]) == 3, proof
    r = tool.nc2zarr("--store-per", "{dir}", "--check", tmp_path / "in", out)
    assert r.status == 0, str(r)


def test_the_survey_and_the_plan_tell_each_store(tmp_path, members):
    out = tmp_path / "out"
    doc = document("--survey", "--store-per", "{dir}", tmp_path / "in")
    assert [(s["store"], s["files"], s["decisions"]) for s in doc["stores"]] == [("a", 3, 0), ("b", 3, 0), ("deep/c", 3, 0)]
    doc = document("--dry-run", "--store-per", "{dir}", tmp_path / "in", out)
    assert [s["conversion"]["outcome"] for s in doc["stores"]] == ["planned"] * 3
    r = tool.nc2zarr("--dry-run", "--store-per", "{dir}", tmp_path / "in", out)
    assert all(f"{name}.zarr" in r.out for name in members), str(r)
    assert not out.exists()


def test_files_beside_folders(tmp_path, members):
    """Files in the folder that all have in common make a store of its name; unless a folder has it too."""
    F.write_all(F.clean(2), tmp_path / "in")
    stores.convert("--store-per", "{dir}", tmp_path / "in", tmp_path / "out").ok()
    assert names(tmp_path / "out") == ["a", "b", "deep/c", "in"]
    F.write_all(moved(F.clean(2), "in"), tmp_path / "in")
    r = tool.nc2zarr("--store-per", "{dir}", tmp_path / "in", tmp_path / "other")
    assert r.status == 2 and "one name" in r.err, str(r)


def test_parts_of_names(tmp_path):
    want = {}
    for r in ("r1i1p1", "r2i1p1", "r10i1p1"):
        files = moved(F.clean(2), "in", len(want))
        for f in files:
            f.name = f.name.replace("w_", f"w_{r}_")
        want[r[1:].split("i")[0]] = files
        F.write_all(files, tmp_path)
    stores.convert("--store-per", "r*i1p1", tmp_path / "in", tmp_path / "out").ok()
    assert names(tmp_path / "out") == sorted(want)
    for name, files in want.items():
        stores.same(tmp_path / "out" / f"{name}.zarr", F.joined(files))
    r = tool.nc2zarr("--store-per", "x*i1p1", tmp_path / "in", tmp_path / "other")
    assert r.status == 2 and "does not match x*i1p1" in r.err, str(r)


@pytest.mark.parametrize("pattern", ["{member}", "member", "%Y", "@realization_index", ""])
def test_patterns_that_mean_nothing(tmp_path, members, pattern):
    r = tool.nc2zarr("--store-per", pattern, tmp_path / "in", tmp_path / "out")
    assert r.status in (1, 2) and not (tmp_path / "out").exists(), str(r)


@pytest.mark.parametrize("apart", [False, True], ids=["in the same files", "in files of their own"])
def test_variables(tmp_path, apart):
    """Each store is what --variable makes; what no field needs is in all of them."""
    files = []
    for f in F.clean(3):
        f.vars["version"] = Var((), np.array(7, "i4"))
        if not apart:
            files.append(f)
            continue
        for name in ("tas", "pr", "flag", "orog"):
            g = F.changed(f)
            g.vars = {k: v for k, v in g.vars.items() if k == name or k not in ("tas", "pr", "flag", "orog")}
            g.name = f"{name}_{f.name}"
            files.append(g)
    F.write_all(files, tmp_path / "in")
    out = tmp_path / "out"
    stores.convert("--store-per", "{variable}", "--verify", "full", tmp_path / "in", out).ok()
    assert names(out) == ["flag", "orog", "pr", "tas"]
    whole = F.joined(F.clean(3))
    whole["version"] = ((), np.array(7, "i4"))
    needs = {
        "tas": ("time", "time_bnds", "lat", "lon", "height", "note", "crs"),
        "pr": ("time", "time_bnds", "lat", "lon", "height", "note", "crs"),
        "flag": ("time", "time_bnds"),
        "orog": ("lat", "lon"),
    }
    for name, more in needs.items():
        stores.same(out / f"{name}.zarr", {k: whole[k] for k in (name, *more, "version")})


def test_variables_that_are_chosen(tmp_path):
    F.write_all(F.clean(2), tmp_path / "in")
    stores.convert("--store-per", "{variable}", "--variable", "tas,pr", tmp_path / "in", tmp_path / "out").ok()
    assert names(tmp_path / "out") == ["pr", "tas"]
    stores.convert("--store-per", "{variable}", "--exclude", "tas,height", tmp_path / "in", tmp_path / "more").ok()
    assert names(tmp_path / "more") == ["flag", "orog", "pr"] and "height" not in readers.arrays(tmp_path / "more" / "pr.zarr")


def test_a_store_of_one_variable_does_not_replace_its_files(tmp_path):
    F.write_all(F.clean(2), tmp_path / "in")
    stores.convert("--store-per", "{variable}", "--verify", "full", "--certificate", tmp_path / "proof", tmp_path / "in", tmp_path / "out").ok()
    proof = json.loads((tmp_path / "proof" / "tas.json").read_text())
    assert not proof["reproducible"] and "other stores" in " ".join(proof["not_reproducible_because"])


def test_a_decision_for_one_store_stops_all(tmp_path, members):
    f = F.changed(members["b"][1])
    f.vars["tas"].attrs["units"] = "degC"
    F.write(f, tmp_path / "in")
    doc = document("--survey", "--store-per", "{dir}", tmp_path / "in", status=4)
    assert [s["decisions"] for s in doc["stores"]] == [0, 1, 0] and doc["decisions"] == 1
    r = tool.nc2zarr("--store-per", "{dir}", tmp_path / "in", tmp_path / "out")
    assert r.status == 4 and f.name in r.err and not (tmp_path / "out").exists(), str(r)


def test_nothing_is_written_where_one_store_is_there(tmp_path, members):
    out = tmp_path / "out"
    stores.convert("--store-per", "{dir}", tmp_path / "in", out).ok()
    shutil.rmtree(out / "a.zarr")
    before = stores.listing(out)
    r = tool.nc2zarr("--store-per", "{dir}", tmp_path / "in", out)
    assert r.status == 1 and "b.zarr" in r.err and "--resume" in r.err, str(r)
    assert stores.listing(out) == before
    # Missing stores are made, existing ones stay untouched.
    doc = document("--store-per", "{dir}", "--resume", tmp_path / "in", out)
    assert [s["conversion"]["outcome"] for s in doc["stores"]] == ["done", "complete", "complete"]
    after = stores.listing(out)
    changed = {k for k, v in after.items() if k in before and v != before[k]}
    # Beside each store there was a lock for a while; the ledger of the one that was made is its own.
    assert {k for k in changed if not k.endswith(".chunkmill")} <= {".", "a.zarr.chunkmill/ledger"}, changed
    for name, files in members.items():
        stores.same(out / f"{name}.zarr", F.joined(files))


def test_a_store_that_fails_leaves_the_others(tmp_path, members):
    """Steps that two files of b have differ: known only while data move."""
    f = F.changed(members["b"][0])
    f.name = "b/w_other.nc"
    f.vars["tas"].data = f.vars["tas"].data + 1
    F.write(f, tmp_path / "in")
    out = tmp_path / "out"
    r = tool.nc2zarr("--store-per", "{dir}", tmp_path / "in", out)
    assert r.status == 1 and "1 of 3 stores" in r.err, str(r)
    stores.same(out / "a.zarr", F.joined(members["a"]))
    assert not tool.opens_as_store(out / "b.zarr") and not tool.opens_as_store(out / "deep/c.zarr")
    stores.convert("--store-per", "{dir}", "--resume", "--overlap", "first", tmp_path / "in", out).ok()
    stores.same(out / "b.zarr", F.joined(members["b"]))
    stores.same(out / "deep" / "c.zarr", F.joined(members["deep/c"]))


@pytest.mark.parametrize(
    "options",
    [["--trace", "t.json"], ["--part", "1/2"], ["--parts", "2"]],
    ids=lambda o: o[0],
)
def test_what_is_of_one_store(tmp_path, members, options):
    r = tool.nc2zarr("--store-per", "{dir}", *options, tmp_path / "in", tmp_path / "out", cwd=tmp_path)
    assert r.status == 2 and "--store-per" in r.err and not (tmp_path / "out").exists(), str(r)


def test_outputs_that_are_no_folder_of_stores(tmp_path, members):
    stores.convert(tmp_path / "in" / "a", tmp_path / "one.zarr").ok()
    before = stores.listing(tmp_path)
    for args in (
        [tmp_path / "in", tmp_path / "one.zarr"],
        [tmp_path / "in"],
        ["--verify", "full", "--certificate", tmp_path / "in" / "a" / members["a"][0].name.split("/")[1], tmp_path / "in", tmp_path / "out"],
    ):
        r = tool.nc2zarr("--store-per", "{dir}", *args, cwd=tmp_path)
        assert r.status in (1, 2) and len(r.err.splitlines()) == 1, str(r)
        assert stores.listing(tmp_path) == before


def test_references(tmp_path, members):
    stores.convert("--store-per", "{dir}", "--virtual", "json", tmp_path / "in", tmp_path / "out").ok()
    assert sorted(p.name for p in (tmp_path / "out").rglob("*.json")) == ["a.json", "b.json", "c.json"]


def test_an_unreadable_file_is_of_its_store(tmp_path, members):
    (tmp_path / "in" / "b" / "w_20000104.nc").write_bytes(b"no file")
    doc = document("--survey", "--store-per", "{dir}", tmp_path / "in", status=4)
    assert [s["decisions"] for s in doc["stores"]] == [0, 1, 0]
    stores.convert("--store-per", "{dir}", "--bad-file", "skip", tmp_path / "in", tmp_path / "out").ok()
    assert readers.arrays(tmp_path / "out" / "b.zarr")["tas"].shape[0] == 6


ONE_STORE = {
    "codec": (("--codec", "tas:gzip:3"), "tas"),
    "chunks": (("--chunks", "p?:1x2x2"), "pr"),
    "shards": (("--chunks", "pr:1x2x2", "--shards", "pr:2x2x2"), "pr"),
    "dtype": (("--dtype", "tas:float64"), "tas"),
    "keepbits": (("--keepbits", "tas:7"), "tas"),
    "fill value": (("--fill-value", "tas:-5"), "tas"),
    "unpack": (("--unpack", "flag"), "flag"),
    "rename": (("--rename", "tas=temperature"), "tas"),
    "subset": (("--subset", "time=0:2"), "tas"),
    "a shape of few": (("--chunks", "time=2"), "tas"),
}


@pytest.mark.parametrize("options, store", ONE_STORE.values(), ids=ONE_STORE)
def test_an_option_for_one_variable_is_applied_where_it_is(tmp_path, options, store):
    files = F.clean(3)
    for f in files:
        f.vars["flag"].attrs["scale_factor"] = np.float64(0.5)
    F.write_all(files, tmp_path / "in")
    per = ("--store-per", "{variable}")
    tool.nc2zarr(*per, tmp_path / "in", tmp_path / "plain").ok()
    out = tmp_path / "out"
    tool.nc2zarr(*per, "--verify", "full", *options, tmp_path / "in", out).ok()
    assert names(out) == names(tmp_path / "plain") == ["flag", "orog", "pr", "tas"]
    def objects(folder, name):
        root = folder / f"{name}.zarr"
        return {p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file()}

    changed = {n for n in names(out) if objects(out, n) != objects(tmp_path / "plain", n)}
    assert store in changed and "orog" not in changed
    tool.nc2zarr(*per, "--check", *options, tmp_path / "in", out).ok()


@pytest.mark.every
@pytest.mark.parametrize("options", [("--codec", "tsa:gzip"), ("--chunks", "tsa:1x2x2"), ("--chunks", "tmie=2"), ("--dtype", "tsa:float64"),
                                     ("--fill-value", "tsa:0"), ("--unpack", "tsa"), ("--rename", "tsa=t"), ("--subset", "tmie=0:2")], ids=" ".join)
def test_an_option_for_a_variable_of_no_store_is_refused(tmp_path, options):
    F.write_all(F.clean(2), tmp_path / "in")
    r = tool.nc2zarr("--store-per", "{variable}", *options, tmp_path / "in", tmp_path / "out")
    assert r.status != 0 and ("tsa" in r.err or "tmie" in r.err) and not list(tmp_path.rglob("zarr.json")), str(r)


def test_a_survey_takes_the_folder_of_stores(tmp_path):
    """Named last, as in the command that makes them; a pattern or a mistyped file is none."""
    F.write_all(F.clean(2), tmp_path / "in")
    r = tool.nc2zarr("--survey", "--store-per", "{variable}", "in", "made", cwd=tmp_path)
    assert r.status == 0 and r.out.splitlines()[-1].endswith("--store-per '{variable}' in made"), str(r)
    for other in ("in.nc", "nothing/*", "@list"):
        r = tool.nc2zarr("--survey", "--store-per", "{variable}", "in", other, cwd=tmp_path)
        assert r.status != 0 and other.strip("@") in r.err, str(r)
