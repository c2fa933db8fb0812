"""Files that do not fit a store are refused by name, with the reason, and the store stays the same, byte for byte."""

import json
import os
import re
import shutil
import subprocess

import netCDF4
import numpy as np
import pytest
import xarray
import zarr

from support import failio, tool

from . import files as F

# Changes of the new file, exit status, words of the message, and options that let it pass.
CASES = {
    "wider type": (dict(type="f8", fill=1e20), 4, "float64", None),
    "units": (dict(attrs={"units": "degC"}), 4, "degC", None),
    "another calendar": (dict(calendar="noleap"), 4, "noleap", None),
    "meaning": (dict(attrs={"standard_name": "sea_surface_temperature"}), 4, "standard_name", ["--attrs", "first"]),
    "packing": (dict(attrs={"scale_factor": 2.0}), 4, "scale_factor", None),
    "other latitudes": (dict(lat=np.linspace(-50, 70, F.NLAT)), 4, "lat", ["--tolerance", "10"]),
    "turned latitudes": (dict(lat=np.linspace(60, -60, F.NLAT)), 4, "lat", None),
    "static field": (dict(static=np.ones((F.NLAT, F.NLON))), 4, "ground", ["--static", "first"]),
    "one variable more": (dict(extra=("pr",)), 4, "pr: the store has no such variable (new.nc); --exclude pr", ["--exclude", "pr"]),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    paths = F.days(folder, 0, 2, each=1)
    tool.nc2zarr("-q", "--chunks", "time=4", *paths, folder / "s.zarr").ok()
    return folder


def work_on(made, tmp_path):
    failio.renew(made, tmp_path / "work")
    return tmp_path / "work" / "s.zarr"


def untouched(made, store):
    """The store and what lies beside it are what they were; nothing is left of a lock."""
    return failio.contents(made) == failio.contents(store.parent)


@pytest.mark.parametrize("name", CASES)
def test_refused(made, name, tmp_path):
    how, status, word, decides = CASES[name]
    store = work_on(made, tmp_path)
    p = F.day(tmp_path / "new.nc", 2, 2, **how)
    r = tool.nc2zarr("--append", "time", p, store)
    assert r.status == status and word in r.said and "new.nc" in r.err, str(r)
    assert untouched(made, store), str(r)
    if not decides:
        assert "; --" not in r.err, f"no option makes a store another one: {r}"
    else:
        tool.nc2zarr("-q", "--append", "time", *decides, p, store).ok()


# New files without time in a variable that the store has along it, or with another value of it in each.
NOT_TO_BE_MADE = {
    "a dimension less": (dict(dims=("lat", "lon"), data=np.ones((F.NLAT, F.NLON))), "tas: it has no dimension time here"),
    "values that move": (dict(static=np.full((F.NLAT, F.NLON), 7)), "ground"),
}


@pytest.mark.parametrize("name", [*CASES, *NOT_TO_BE_MADE])
def test_proposed_options_are_allowed(made, name, tmp_path):
    """The command that is printed runs as it is; no option that a store which grows forbids is named."""
    how, words = {**NOT_TO_BE_MADE, **{k: (how, words) for k, (how, _, words, _) in CASES.items()}}[name]
    store = work_on(made, tmp_path)
    new = [F.day(tmp_path / f"{i}.nc", 2 + i, 1, **{**how, "static": how["static"] * i} if "static" in how and i else how) for i in range(3)]
    r = tool.nc2zarr("--append", "time", *new, store)
    assert r.status == 4 and words.split(" (new.nc)")[0] in r.said, str(r)
    assert not re.search("--(promote|new-dim|along|dtype|fill-value)", r.err), str(r)
    line = r.err.splitlines()[-1]
    if "no option joins these files" not in r.err:
        assert subprocess.run(line, shell=True, capture_output=True, cwd=tmp_path, check=False).returncode == 0, str(r)


def test_variables_more(made, tmp_path):
    """Filling what is missing does not add a variable; each is told of where it begins, and what helps helps."""
    store = work_on(made, tmp_path)
    a = F.day(tmp_path / "a.nc", 2, 2, extra=("pr",))
    b = F.day(tmp_path / "b.nc", 4, 2, extra=("pr", "psl"))
    for options in ([], ["--missing", "fill"]):
        r = tool.nc2zarr("--append", "time", *options, a, b, store)
        assert r.status == 4 and "pr: the store has no such variable (2 files, a.nc to b.nc); --exclude pr\n" in r.err, str(r)
        assert "psl: the store has no such variable (b.nc); --exclude psl\n" in r.err, str(r)
        line = r.err.splitlines()[-1]
        assert "--exclude pr --exclude psl" in line and "--missing" not in r.err.removesuffix(f"{line}\n"), str(r)
        assert untouched(made, store)
    tool.nc2zarr("-q", "--append", "time", "--exclude", "pr,psl", a, b, store).ok()
    F.same(store, [*sorted(made.glob("*.nc")), F.day(tmp_path / "c.nc", 2, 4)])


def test_a_variable_less(made, tmp_path):
    """A variable that the new file lacks is refused, or filled on request."""
    store = work_on(made, tmp_path)
    p = tmp_path / "new.nc"
    with xarray.open_dataset(F.day(tmp_path / "whole.nc", 2, 2), decode_cf=False) as whole:
        whole.drop_vars("tas").to_netcdf(p)
    r = tool.nc2zarr("--append", "time", p, store)
    assert r.status == 4 and "tas" in r.err and "--missing fill" in r.err, str(r)
    assert untouched(made, store), str(r)
    tool.nc2zarr("-q", "--append", "time", "--missing", "fill", p, store).ok()
    with xarray.open_zarr(store) as grown:
        assert grown.sizes["time"] == 4 and grown["tas"][2:].isnull().all() and grown["tas"][:2].notnull().any()


# Fields of the store (units of each), of the file that comes, options, the hint, and options that then add it.
STRANGE = {
    "other names": ({"t2m": "K", "tp": "m"}, {"VAR_2T": "K", "VAR_TP": "m"}, [], "--rename VAR_2T=t2m --rename VAR_TP=tp adds them"),
    "left out by hand": ({"t2m": "K", "tp": "m"}, {"VAR_2T": "K", "VAR_TP": "m"}, ["--missing", "fill", "--exclude", "VAR_*"], "--rename VAR_2T=t2m"),
    "names that nothing pairs": ({"a": "K", "b": "K"}, {"c": "K", "d": "K"}, [], "--rename NAME=STORED adds them"),
    "renamed": ({"t2m": "K"}, {"t2m": "K"}, [], "--rename t2m=tas adds them"),
    "stacked": ({"t2m": "K", "tp": "K"}, {"t2m": "K", "tp": "K"}, [], "x is a stack, to which no files are added: convert all again"),
    "replaced": ({"t2m": "K"}, {"VAR_2T": "K"}, ["--replace", "time=1:2"], "nothing of it would be replaced; where only the names differ, --rename VAR_2T=t2m"),
}
MADE_WITH = {"renamed": ["--rename", "t2m=tas"], "stacked": ["--stack", "x=t2m,tp"]}


def fields(path, step, units):
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("time", None)
        nc.createDimension("x0", 4)
        t = nc.createVariable("time", "i4", ("time",))
        t.units = F.UNITS
        t[:] = [step]
        for name, u in units.items():
            v = nc.createVariable(name, "f4", ("time", "x0"), fill_value=np.nan)
            v.units = u
            v[:] = step
    return path


@pytest.mark.parametrize("name", STRANGE)
def test_fields_of_other_names(name, tmp_path):
    """No option is proposed that adds fill values alone, and takes a file for done of which the store has nothing."""
    stored, own, options, words = STRANGE[name]
    old = [fields(tmp_path / f"{i}.nc", i, stored) for i in range(2)]
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", *MADE_WITH.get(name, []), *old, store).ok()
    new = fields(tmp_path / "2.nc", 1 if name == "replaced" else 2, own)
    grows = [] if name == "replaced" else ["--append", "time"]
    before = failio.contents(tmp_path)
    r = tool.nc2zarr(*grows, *options, new, store)
    assert r.status == 4 and words in r.said and "--exclude" not in r.err, str(r)
    assert not r.err.splitlines()[-1].startswith("nc2zarr"), str(r)
    assert failio.contents(tmp_path) == before, str(r)
    renames = re.findall("--rename [^ ]+=[^ ]+", r.said)
    if renames and "NAME=" not in words:
        tool.nc2zarr("-q", *(grows or options), *" ".join(dict.fromkeys(renames)).split(), new, store).ok()


def test_fields_of_another_file(tmp_path):
    """A file of which nothing is taken may be left out, where others give what the store has of its steps."""
    old = fields(tmp_path / "0.nc", 0, {"t2m": "K"})
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", old, store).ok()
    new = [fields(tmp_path / f"{n}.nc", 1, {n: "K"}) for n in ("t2m", "q")]
    r = tool.nc2zarr("--append", "time", *new, store)
    assert r.status == 4 and " --exclude q " in r.err.splitlines()[-1], str(r)
    assert subprocess.run(r.err.splitlines()[-1], shell=True, capture_output=True, check=False).returncode == 0
    with xarray.open_zarr(store) as grown:
        assert grown["t2m"].values.tolist() == [[0] * 4, [1] * 4]


@pytest.mark.parametrize("first", [-3, 1])
def test_steps_before_the_end(made, first, tmp_path):
    """Before the beginning, or between steps that are there."""
    store = work_on(made, tmp_path)
    p = F.day(tmp_path / "new.nc", first, 2) if first < 0 else F.day(tmp_path / "new.nc", 0.5, 1)
    r = tool.nc2zarr("--append", "time", p, store)
    assert r.status == 4 and "new.nc" in r.err, str(r)
    assert untouched(made, store)


def test_a_gap(made, tmp_path):
    p = F.day(tmp_path / "new.nc", 5, 1)
    store = work_on(made, tmp_path)
    r = tool.nc2zarr("--append", "time", "--gaps", "error", p, store)
    assert r.status == 4, str(r)
    assert untouched(made, store)
    tool.nc2zarr("--append", "time", p, store).ok()


def test_an_array_of_another_length(made, tmp_path):
    """Another program resized one array and not the others: nobody can say which steps the store has."""
    store = work_on(made, tmp_path)
    p = F.day(tmp_path / "new.nc", 2, 2)
    tas = zarr.open_group(store, mode="r+")["tas"]
    tas.resize((3, *tas.shape[1:]))
    for options in (["--dry-run"], []):
        r = tool.nc2zarr(*options, "--append", "time", p, store)
        assert r.status == 1 and "other metadata say; --consolidate renews them" in r.err, str(r)
    tool.nc2zarr("--consolidate", store).ok()
    for options in (["--dry-run"], []):
        r = tool.nc2zarr(*options, "--append", "time", p, store)
        assert r.status == 1 and "elements along time, and" in r.err and "tas" in r.err and "resized to one length first" in r.err, str(r)
    tas.resize((2, *tas.shape[1:]))
    zarr.consolidate_metadata(store)
    tool.nc2zarr("-q", "--append", "time", p, store).ok()
    F.same(store, [*sorted(made.glob("*.nc")), p])


@pytest.mark.parametrize("fmt", [2, 3])
@pytest.mark.parametrize("member", ["attributes", "fill_value"])
def test_metadata_that_contradict_each_other(fmt, member, tmp_path):
    """An array's own document was changed, and what is consolidated was not: neither run nor dry run go by one of the two."""
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--zarr-format", str(fmt), *F.days(tmp_path, 0, 2), store).ok()
    name = "zarr.json" if fmt == 3 else ".zattrs" if member == "attributes" else ".zarray"
    own = store / "tas" / name
    document = json.loads(own.read_text())
    (document if member == "fill_value" else document["attributes"] if fmt == 3 else document)[member] = 7
    own.write_text(json.dumps(document))
    p = F.day(tmp_path / "new.nc", 2, 2)
    before = failio.contents(store)
    for options in (["--dry-run"], []):
        r = tool.nc2zarr(*options, "--append", "time", p, store)
        assert r.status == 1 and f"tas/{name}: array tas: its {member}: not as other metadata say; --consolidate renews them" in r.err, str(r)
    assert failio.contents(store) == before
    tool.nc2zarr("--consolidate", store).ok()
    if member == "attributes":
        tool.nc2zarr("-q", "--append", "time", p, store).ok()


@pytest.mark.parametrize("fmt, names", [(3, "absent"), (3, "null"), (2, "absent")])
def test_an_array_without_names_of_dimensions(fmt, names, tmp_path):
    """It stays as it is; a variable of the files with its name has no place in the store."""
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--zarr-format", str(fmt), *F.days(tmp_path, 0, 2), store).ok()
    loose = zarr.open_group(store, mode="a", zarr_format=fmt).create_array("loose", shape=(5,), dtype="f4")
    loose[:] = 7
    if names == "null":
        path = store / "loose" / "zarr.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"dimension_names": [None]}))
    tool.nc2zarr("-q", "--consolidate", store).ok()
    tool.nc2zarr("-q", "--append", "time", "--verify", "full", F.day(tmp_path / "day00002.nc", 2), store).ok()
    assert (zarr.open_array(store, path="loose")[:] == 7).all()
    shutil.copytree(store, tmp_path / "t.zarr")
    zarr.open_group(tmp_path / "t.zarr", mode="a").__delitem__("loose")
    tool.nc2zarr("-q", "--consolidate", tmp_path / "t.zarr").ok()
    F.same(tmp_path / "t.zarr", sorted(tmp_path.glob("*.nc")))
    before = failio.contents(store)
    r = tool.nc2zarr("--append", "time", F.day(tmp_path / "new.nc", 3, extra=("loose",)), store)
    assert r.status == 4 and "loose: the store has no such variable" in r.err, str(r)
    assert failio.contents(store) == before


def test_a_store_without_names_of_dimensions(tmp_path):
    store = tmp_path / "s.zarr"
    zarr.open_group(store, mode="a").create_array("tas", shape=(5,), dtype="f4")[:] = 1
    before = failio.contents(store)
    r = tool.nc2zarr("--append", "time", F.day(tmp_path / "new.nc", 0), store)
    assert r.status in (1, 2) and "no dimension time" in r.err, str(r)
    assert failio.contents(store) == before


@pytest.mark.every
@pytest.mark.parametrize(
    "options",
    [["--chunks", "time=2"], ["--codec", "none"], ["--dtype", "tas:float64"], ["--resume"], ["--overwrite"],
     ["--zarr-format", "2"], ["--subset", "lat=0:2"], ["--along", "lat"], ["--keepbits", "3"]],
    ids=lambda o: o[0],
)
def test_options_of_a_new_store(made, options, tmp_path):
    store = work_on(made, tmp_path)
    p = F.day(tmp_path / "new.nc", 2, 2)
    r = tool.nc2zarr("--append", "time", *options, p, store)
    assert r.status == 2 and options[0] in r.err, str(r)
    assert untouched(made, store)


@pytest.mark.parametrize("n, words", [(1, "; 1 element differs"), (3, "; 3 elements differ")])
def test_numbers_of_elements(made, n, words, tmp_path):
    store = work_on(made, tmp_path)
    data = F.values(1, 1)
    data.flat[:n] += 1
    tool.nc2zarr("--append", "time", F.day(tmp_path / "new.nc", 1, data=data), store).fails(1, words)
    assert untouched(made, store)


def test_no_store_and_no_dimension(made, tmp_path):
    p = F.day(tmp_path / "new.nc", 2, 2)
    r = tool.nc2zarr("--append", "time", p, tmp_path / "none.zarr")
    assert r.status == 1 and "no store" in r.err, str(r)
    assert not os.path.exists(tmp_path / "none.zarr") and not os.path.exists(tmp_path / "none.zarr.chunkmill")
    store = work_on(made, tmp_path)
    r = tool.nc2zarr("--append", "when", p, store)
    assert r.status in (1, 2) and "when" in r.err, str(r)
    assert untouched(made, store)


def stations(path, names, text):
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("station", len(names))
        if text == "strings":
            nc.createVariable("station", str, ("station",))[:] = np.array(names, object)
        nc.createVariable("t", "f4", ("station",))[:] = np.arange(len(names))
    return path


@pytest.mark.parametrize("text", ("strings", "none"))
@pytest.mark.parametrize("target", ("s.zarr", "icechunk:s"))
def test_elements_that_nothing_tells_apart(text, target, tmp_path, monkeypatch):
    """They are added with a warning, and neither compared nor replaced."""
    monkeypatch.chdir(tmp_path)
    first, more = stations("a.nc", ["aa", "bb"], text), stations("b.nc", ["cc", "dd"], text)
    tool.nc2zarr("-q", first, target).ok()
    r = tool.nc2zarr("--append", "station", more, target).ok()
    assert "station: no coordinate of numbers tells which elements along it the store has: all of the files' are added" in r.err
    for options, word in ((["--append", "station", "--recheck"], "compared"), (["--replace", "station=2:4"], "replaced")):
        r = tool.nc2zarr(*options, more, target)
        assert r.status == 4 and f"none can be found there to be {word}" in " ".join(r.err.split()), str(r)
    said = tool.run("rechunk", "--dry-run", target, "out.zarr").ok().out
    assert re.search("t +float32 +4 ", said), said


def test_data_that_equal_the_stores_fill_value(tmp_path):
    """No option chooses another one, and none is proposed."""
    data = F.values(2, 1)
    data[0, 1, 2] = -9
    tool.nc2zarr("-q", F.day(tmp_path / "a.nc", 0, 2, fill=-9), tmp_path / "s.zarr").ok()
    new = F.day(tmp_path / "b.nc", 2, 1, fill=-7, data=data)
    for more in (["--dry-run"], []):
        r = tool.nc2zarr("--append", "time", *more, new, tmp_path / "s.zarr")
        assert r.status == 1 and r.err.endswith("element 2/1/2 is data, but equals the fill value that the store has\n"), str(r)
        assert r.err.count("variable tas") == 1 and "b.nc: variable tas" in r.err


def test_an_array_that_must_grow_is_not_to_be_left_out(tmp_path):
    """Where files lack it, the advice is to fill it."""
    with xarray.open_dataset(F.day(tmp_path / "a.nc", 0, 2, extra=("pr",))) as ds:
        ds.to_netcdf(tmp_path / "filled.nc", encoding={"pr": {"_FillValue": np.float32(-9)}})
    tool.nc2zarr("-q", tmp_path / "filled.nc", tmp_path / "s.zarr").ok()
    r = tool.nc2zarr("--append", "time", F.day(tmp_path / "b.nc", 2), tmp_path / "s.zarr")
    said = " ".join(r.err.split())
    assert r.status == 4 and "pr: missing in 1 file; 1 of 3 steps holds the fill value; chunks of nothing else take no space" in said
    assert "--exclude pr" not in said, said


def test_a_dry_run_tells_of_steps_that_are_not_compared_yet(made, tmp_path):
    store = work_on(made, tmp_path)
    again = F.day(tmp_path / "again.nc", 0, 2, data=F.values(0, 2) + 1)
    r = tool.nc2zarr("--append", "time", "--dry-run", again, store).ok()
    assert "Nothing is to be added" in r.out and "anything else stops the run" in " ".join(r.out.split()), str(r)
    tool.nc2zarr("--append", "time", again, store).fails(1, "overlapping steps differ")


# ---- what a crash of the machine leaves beside a store ---------------------------------------------

TORN = {
    "append": ("", "{", "{}", "[]", '{"chunkmill":"append","version":2,"objects":[]}'),
    "append-begun": ("", "\n", "12", "12x\n", "9" * 40 + "\n", "\0" * 20),
    "append-left": ("", "{", "{}"),
    "append-replaces": ("", "0", "0 2", "0 2 time", "0 x time\n", "\0" * 20),
}


@pytest.mark.parametrize("name", TORN)
def test_notes_that_were_cut(made, name, tmp_path):
    """A note that is empty or half is passed over, or told of by name; without it everything goes on."""
    new = F.days(tmp_path, 2, 2)
    for text in TORN[name]:
        store = work_on(made, tmp_path)
        note = store.parent / f"{store.name}.chunkmill" / name
        note.write_text(text)
        r = tool.nc2zarr("-q", "--append", "time", *new, store)
        if name != "append-begun":
            r.fails(1, f"the file {name}", "remove it")
            note.unlink()
            assert untouched(made, store)
            r = tool.nc2zarr("-q", "--append", "time", *new, store)
        r.ok()
        assert not note.exists() and zarr.open_group(store)["tas"].shape[0] == 4


def test_a_replacement_of_a_dimension_with_an_odd_name(tmp_path):
    """It is stopped, and completed by the same command."""
    dim = "a\nb c=d"
    for name, first in (("s", 0), ("t", 100)):
        g = zarr.create_group(tmp_path / f"{name}.zarr")
        g.create_array("v", data=np.arange(first, first + 6), chunks=(2,), dimension_names=(dim,))
        zarr.consolidate_metadata(g.store)
    note = tmp_path / "s.zarr.chunkmill" / "append-replaces"
    note.parent.mkdir()
    note.write_text(f"0 2 {dim}\n")
    r = tool.run("rechunk", "--append", dim, tmp_path / "t.zarr", tmp_path / "s.zarr")
    assert r.status == 1 and "a replacement of a\\x0ab c=d=0:2 was stopped half-way" in r.err, str(r)


@pytest.mark.parametrize("options, words", [
    (["--subset", "lat=1:2"], "--subset: files are added as they are"),
    (["--unpack", "all"], "--unpack: leave it out"),
    (["--chunks", "time=9"], "--chunks: a store that is changed in place keeps its layout"),
    (["--stack", "x=tas"], "--stack: not with --append, which keeps what a store is made of"),
    (["--survey"], "--survey: not with --append, which surveys the files before it adds them"),
])  # fmt: skip
def test_options_of_a_conversion_are_refused_before_files_are_read(made, options, words, tmp_path):
    """Whatever is wrong with the files: these are not there."""
    store = work_on(made, tmp_path)
    tool.nc2zarr("--append", "time", *options, tmp_path / "nosuch.nc", store).fails(2, words)
    assert untouched(made, store)


@pytest.mark.parametrize("form, grows", [("{}", True), ("{}::group", False), ("{}.zip", False)])
def test_an_output_that_exists_may_grow(form, grows, tmp_path):
    """Adding is named beside replacing, where it can be done."""
    first, second = F.days(tmp_path, 0, 2, each=1)[:2]
    out = form.format(tmp_path / "s.zarr")
    tool.nc2zarr("-q", first, out).ok()
    done = tool.nc2zarr("-q", second, out).fails(1, "exists; --overwrite replaces it")
    assert ("and --append adds to it" in done.err) == grows, str(done)
    assert tool.nc2zarr("-q", "--append", "time", second, out).status == (0 if grows else 2)
