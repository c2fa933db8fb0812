"""Files of several things in one folder, which no option joins: the survey proposes a store of each."""

import shlex

import numpy as np
import pytest

from support import readers, tool

from . import files as F
from . import stores
from .files import File, Var

HOURS = {"units": "hours since 2000-01-01", "standard_name": "time"}
SIZES = {"d01": (3, 4), "d02": (6, 5), "d03": (2, 9)}


def field(kind, day, steps=4):
    y, x = SIZES[kind]
    first = 100 * day + len(kind)
    return {
        "time": Var(("time",), np.arange(float(steps)) + 24 * day, HOURS),
        "t": Var(("time", "y", "x"), np.arange(steps * y * x, dtype="f4").reshape(steps, y, x) + first),
    }


# The names of files, by kind and day, and the pattern that tells the kinds apart.
NAMES = {
    "wrf": ("wrfout_{}_2000-01-0{}_00_00_00.nc", "wrfout_*_"),
    "at the end": ("geo-2000010{1}-{0}.nc", "-*."),
    "at the beginning": ("{}_x_2000010{}.nc", "*_x_"),
    "folders": ("{}/x_2000010{}.nc", "{dir}"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("nkinds", [2, 3])
@pytest.mark.every
def test_a_store_of_each_kind(name, nkinds, tmp_path):
    """The command that is proposed makes them, with every element."""
    form, pattern = NAMES[name]
    kinds = sorted(SIZES)[:nkinds]
    files = {k: [File(form.format(k, day), field(k, day)) for day in (1, 2, 3)] for k in kinds}
    F.write_all([f for k in kinds for f in files[k]], tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", tmp_path / "out.zarr", status=4)
    words = shlex.split(doc["command"])
    assert words[1:3] == ["--store-per", pattern] and words[-1] == str(tmp_path / "out"), doc["command"]
    shown = " ".join(tool.nc2zarr("--survey", tmp_path / "in").out.split())
    assert f"{nkinds} stores in the folder of the output" in shown and "no option joins" not in shown, shown
    tool.nc2zarr("-q", "--verify", "full", *words[1:]).ok()
    assert sorted(p.name for p in (tmp_path / "out").glob("*.zarr")) == [f"{k}.zarr" for k in kinds]
    for k in kinds:
        got = readers.arrays(tmp_path / "out" / f"{k}.zarr")
        np.testing.assert_array_equal(got["t"][...], np.concatenate([f.vars["t"].data for f in files[k]]))


def test_a_store_of_each_variable(tmp_path):
    """Grids differ, and a name tells nothing that a variable does not."""
    files = []
    for day in (1, 2, 3):
        for v, (y, x) in {"a": (3, 4), "b": (6, 5)}.items():
            files.append(File(f"{day}{v}.nc", {"time": Var(("time",), np.arange(2.0) + 24 * day, HOURS),
                                               v: Var(("time", "y", "x"), np.full((2, y, x), day, "f4"))}))
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    assert shlex.split(doc["command"])[1:3] == ["--store-per", "{variable}"]


def day(name, kind, day, lat0=None, **more):
    """A file of one day; on a coordinate from LAT0 on, if that is given."""
    vars = field(kind, day)
    if lat0 is not None:
        vars["y"] = Var(("y",), lat0 + 5.0 * np.arange(SIZES[kind][0]), {"units": "degrees_north"})
    return File(name, {**vars, **more})


def proposed(folder, files):
    F.write_all(files, folder)
    _, doc = stores.survey(folder, status=4)
    return shlex.split(doc["command"])[1:-2] if doc["command"] else None


WITHOUT = {  # what else is decided, and the pattern
    "a variable": lambda files: (files[1].vars.update(u=Var(("time", "y", "x"), np.ones((4, *SIZES["d01"]), "f4"))), ["--missing", "fill"])[1],
    "members": lambda files: (files.extend(day(f"w_{k}_r2_{d}.nc", k, d) for k in ("d01", "d02") for d in (1, 2, 3)), ["--new-dim", "member=_r*_"])[1],
}


@pytest.mark.parametrize("name", WITHOUT)
def test_stores_beside_other_options(name, tmp_path):
    files = [day(f"w_{k}_r1_{d}.nc", k, d) for k in ("d01", "d02") for d in (1, 2, 3)]
    more = WITHOUT[name](files)
    options = proposed(tmp_path / "in", files)
    assert options == ["--store-per", "w_*_", *more]
    tool.nc2zarr("-q", "--verify", "full", *options, tmp_path / "in", tmp_path / "out").ok()
    for kind in ("d01", "d02"):
        assert readers.arrays(tmp_path / "out" / f"{kind}.zarr")["t"].shape[-2:] == SIZES[kind]


def grids(kinds, months, steps=1, corrected=(), first=None, same=(), sizes=None, axes=()):
    """NEMO: fields on grids of one size, whose positions are variables without the joined dimension, or of AXES, too."""
    files = []
    for k in kinds:
        ny, nx = (sizes or {}).get(k, (3, 4))
        lat, lon = np.meshgrid(np.arange(float(ny)), np.arange(float(nx)), indexing="ij")
        for m in months:
            shift = 0.5 * "TUVW".index(k) + 0.25 * ((k, m) in corrected)
            time = 30.0 * m + np.arange(steps) + (first or {}).get(k, 0)
            vars = {"time": Var(("time",), time, {**HOURS, "bounds": "edges"}), "edges": Var(("time", "two"), np.stack([time - 1, time], 1)),
                    "nav_lat": Var(("y", "x"), lat + shift), "nav_lon": Var(("y", "x"), lon + shift),
                    **{a: Var((a,), np.arange(float(dict(y=ny, x=nx)[a])) + shift) for a in axes}}
            for name in (f"of_{k}", *same):
                vars[name] = Var(("time", "y", "x"), np.arange(1.0 * steps * ny * nx).reshape(steps, ny, nx) + 100 * m + len(name))
            files.append(File(f"ORCA_2010{m:02d}_grid_{k}.nc", vars))
    return files


POSITIONS = {  # of each grid; what is proposed
    "two grids": (lambda: grids("TU", (1, 2, 3, 4)), []),
    "four grids": (lambda: grids("TUVW", (1, 2), steps=3), []),
    "a file each": (lambda: grids("TUV", (1,), steps=5), []),
    "a step each": (lambda: grids("TUV", (1,)), []),
    "a step each, other rows": (lambda: grids("TUV", (1,), sizes={"U": (5, 4), "V": (6, 4)}), []),
    "a step each, other columns": (lambda: grids("TUV", (1,), sizes={"U": (3, 5), "V": (3, 6)}), []),
    "a step each, other lengths": (lambda: grids("TUV", (1,), sizes={"U": (4, 5), "V": (5, 6)}), []),
    "a step each, other axes": (lambda: grids("TUV", (1,), axes="yx"), []),
    "a step each, other axes and lengths": (lambda: grids("TU", (1,), sizes={"U": (4, 5)}, axes="yx"), []),
    "other steps": (lambda: grids("TU", (1, 2, 3), first={"U": 400}), []),
    "a field on both": (lambda: grids("TU", (1, 2, 3), same=("thickness",)), []),
    "corrected once": (lambda: grids("TU", (1, 2, 3), corrected=[("T", 3)]), ["--promote", "nav_lat", "--promote", "nav_lon"]),
}


@pytest.mark.parametrize("folders", [False, True])
@pytest.mark.parametrize("name", POSITIONS)
def test_positions_of_several_grids(name, folders, tmp_path):
    """None is dropped, though one store of the first grid's would do for all files."""
    make, more = POSITIONS[name]
    files = make()
    kind = lambda f: f.name[-4]  # noqa: E731
    for f in files:
        f.name = f"{kind(f)}/{f.name}" if folders else f.name
    options = proposed(tmp_path / "in", files)
    assert options == ["--store-per", "{dir}" if folders else "grid_*.", *more]
    tool.nc2zarr("-q", "--verify", "full", *options, tmp_path / "in", tmp_path / "out").ok()
    for k in sorted({kind(f) for f in files}):
        got = readers.arrays(tmp_path / "out" / f"{k}.zarr")
        of = [f.vars for f in files if kind(f) == k]
        np.testing.assert_array_equal(got[f"of_{k}"][...], np.concatenate([v[f"of_{k}"].data for v in of]))
        for v in ("nav_lat", "nav_lon"):
            np.testing.assert_array_equal(got[v][...], np.stack([w[v].data for w in of]) if more else of[0][v].data)


ONE_SERIES = {  # positions that differ within it
    "a correction": lambda: grids("T", (1, 2, 3, 4, 5), corrected=[("T", 3)]),
    "a correction for good": lambda: grids("T", (1, 2, 3, 4), steps=3, corrected=[("T", 3), ("T", 4)]),
    "a field on both, at other steps": lambda: grids("TU", (1, 2, 3), first={"U": 400}, same=("thickness",)),
}


@pytest.mark.parametrize("name", ONE_SERIES)
def test_no_stores_of_parts_of_a_series(name, tmp_path):
    """Its positions are the first file's, or each step's."""
    options = proposed(tmp_path / "in", ONE_SERIES[name]())
    assert {"--static", "--promote"} & set(options) and "--store-per" not in options, options
    tool.nc2zarr("-q", "--verify", "full", *options, tmp_path / "in", tmp_path / "out.zarr").ok()


@pytest.mark.parametrize("months, kept", [((1, 2, 3, 4, 5), True), ((1, 2), False)])
def test_each_step_is_kept_where_no_other_file_has_it(months, kept, tmp_path):
    """Where --promote would join what differs at one step it is not named."""
    files = grids("T", months, corrected=[("T", 3)]) if kept else grids("TU", months)
    F.write_all(files, tmp_path / "in")
    r = tool.nc2zarr(tmp_path / "in", "icechunk:" + str(tmp_path / "out"))
    said = " ".join(r.err.split())
    assert r.status == 4 and "--static nav_lat:first" in said and ("or --promote nav_lat" in said) == kept, said
    promoted = tool.nc2zarr("-q", "--promote", "nav_lat,nav_lon", tmp_path / "in", tmp_path / "out.zarr")
    assert promoted.status == (0 if kept else 4), str(promoted)


LARGE = {  # grids, their months, fields of all; what the message names besides --static and --exclude
    "a series": ("T", (1, 2), (), ["--promote"]),
    "a file each": ("TU", (1,), (), ["--store-per 'grid_*.'"]),
    "some files each": ("TUV", (1, 2), (), ["--store-per 'grid_*.'"]),
    "a field on all": ("TU", (1, 2), ("thickness",), ["--store-per 'grid_*.'"]),
}


@pytest.mark.parametrize("mesh", [False, True])
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.every
def test_large_positions_that_differ_while_data_move(name, mesh, tmp_path):
    """A survey does not read them: the message names what would keep all."""
    kinds, months, same, more = LARGE[name]
    files = grids(kinds, months, same=same)
    for i, f in enumerate(files):
        value = float(i if len(kinds) == 1 else kinds.index(f.name[-4]))
        f.vars["nav_lat"] = Var(*((("node",), np.full(420000, value, "f4")) if mesh else (("rows", "columns"), np.full((600, 700), value, "f4"))))
        del f.vars["nav_lon"]
    F.write_all(files, tmp_path / "in")
    r = tool.nc2zarr("-q", "--along", "time", tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 1 and "--static VAR:first takes" in r.err and "--exclude leaves them out" in r.err, str(r)
    assert [o for o in ("--promote", "--store-per 'grid_*.'") if o in r.err] == more, str(r)
    if "--store-per" in more[0]:
        tool.nc2zarr("-q", "--verify", "full", "--store-per", "grid_*.", tmp_path / "in", tmp_path / "out").ok()
        assert sorted(p.name for p in (tmp_path / "out").glob("*.zarr")) == [f"{k}.zarr" for k in sorted(kinds)]


CUT = {  # series that a pattern would cut into parts
    "days": lambda: [day(f"sst_2000010{d}.nc", "d01", d) for d in range(1, 6)] + [day(f"sst_2000010{d}_hires.nc", "d02", d) for d in (1, 2)],
    "years": lambda: [day(f"p.{2000 + d}{v}.nc", k, d) for d in range(1, 4) for v, k in (("", "d01"), (".v2", "d02"))],
}


@pytest.mark.parametrize("name", CUT)
def test_no_stores_that_cut_a_series(name, tmp_path):
    assert proposed(tmp_path / "in", CUT[name]()) is None


def more_words(*words, days=(1, 2, 3)):
    """Files of which some have a word more than others in their names, and another grid."""
    return [day(f"sst_2000010{d}{w}.nc", k, d) for k, w in zip(sorted(SIZES), words) for d in days]


APART = {  # files, and patterns of those that can be joined; none: nothing is said
    "days": (CUT["days"], ["sst_????????.nc", "sst_????????_hires.nc"]),
    "years": (CUT["years"], ["p.????.nc", "p.????.v?.nc"]),
    "three": (lambda: more_words("", "_hires", "_low"), ["sst_????????.nc", "sst_????????_hires.nc", "sst_????????_low.nc"]),
    "a file each": (lambda: more_words("", "_hires", days=(1,)), []),
    "one of them two grids": (lambda: [*more_words("", "_hires"), day("sst_20000104.nc", "d03", 4)], []),
    "a pattern gives both": (lambda: [f for d in (1, 2) for f in (day(f"sst_a{d}.nc", "d01", d), day(f"sst_ab{'xy'[d - 1]}.nc", "d02", d), day(f"sst_a{d}{d}.nc", "d03", d))], []),
}


@pytest.mark.parametrize("name", APART)
@pytest.mark.every
def test_files_that_no_pattern_of_stores_tells_apart(name, tmp_path):
    """Where only some names have a word more no `*` stands for the kinds: what can be converted apart is said."""
    make, patterns = APART[name]
    F.write_all(make(), tmp_path / "in")
    r = tool.nc2zarr("in", "out.zarr", cwd=tmp_path)
    said = " ".join(r.err.split()).partition("; these can be converted apart: ")[2]
    assert r.status == 4 and "no option joins these files" in " ".join(r.err.split()), str(r)
    assert shlex.split(said.replace(",", "")) == [f"in/{p}" for p in patterns], str(r)
    for i, p in enumerate(patterns):
        made = tool.nc2zarr("-q", "--verify", "full", "--gaps", "keep", f"in/{p}", f"{i}.zarr", cwd=tmp_path).ok()
        assert (tmp_path / f"{i}.zarr" / "zarr.json").exists(), str(made)


def test_no_empty_pattern(tmp_path):
    F.write_all(more_words("", "_hires"), tmp_path / "in")
    tool.nc2zarr("--store-per", "", tmp_path / "in", tmp_path / "out").fails(2, "--store-per: must be {dir}, {variable}, or a part of the files' names")


@pytest.mark.parametrize("form", ["{}/{}/out_{}.nc", "{}/{}/{}/t.nc"])
def test_folders_of_folders(form, tmp_path):
    """Of grids, and in these of years: a store for each grid."""
    files = [day(form.format(k, y, 2 * y + d), k, 2 * y + d) for k in ("d01", "d02") for y in (1, 2) for d in (0, 1)]
    options = proposed(tmp_path / "in", files)
    assert options == ["--store-per", "in/*/"]


@pytest.mark.parametrize("lat0, expected", [(1.0, "--store-per"), (1e-5, "--tolerance")])
def test_a_shifted_grid_is_not_rounded(lat0, expected, tmp_path):
    files = [day(f"out_{k}_{d}.nc", "d01", d, lat0=at) for k, at in (("p", 0.0), ("q", lat0)) for d in (1, 2)]
    options = proposed(tmp_path / "in", files)
    assert options[0] == expected and ("--tolerance" in options) == (expected == "--tolerance"), options


@pytest.mark.parametrize("counts", [(3, 1, 1), (2, 2, 1), (2, 1)], ids=str)
def test_kinds_of_few_files(counts, tmp_path):
    """A store of one file each, too, beside those of more."""
    files = [day(f"w_{k}_{d}.nc", k, d) for k, n in zip(sorted(SIZES), counts) for d in range(1, n + 1)]
    assert proposed(tmp_path / "in", files) == ["--store-per", "w_*_"]


@pytest.mark.parametrize("options", [["--store-per", "_*_"], ["--along", "y"]], ids=str)
def test_what_was_asked_for_stays(options, tmp_path):
    F.write_all([File(f"w_{k}_{day}_.nc", field(k, day)) for k in ("d01", "d02") for day in (1, 2)], tmp_path / "in")
    status, doc = stores.survey(*options, tmp_path / "in")
    assert (doc["command"] or "").count("--store-per") == (status == 0), doc["command"]


def test_no_stores_that_need_decisions_of_their_own(tmp_path):
    """One kind has two grids itself."""
    files = [File(f"w_{k}_{day}.nc", field(k, day)) for k in ("d01", "d02") for day in (1, 2, 3)]
    files[0].vars["t"].data = np.zeros((4, 7, 7), "f4")
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    assert "--store-per" not in (doc["command"] or "")


@pytest.mark.parametrize("output", ["repo.icechunk", "out.zarr"])
def test_stores_only_where_they_can_be_made(output, tmp_path):
    F.write_all([File(f"w_{k}_{day}.nc", field(k, day)) for k in ("d01", "d02") for day in (1, 2, 3)], tmp_path / "in")
    target = ("icechunk:" if output.startswith("repo") else "") + str(tmp_path / output)
    r = tool.nc2zarr(tmp_path / "in", target)
    assert r.status == 4 and ("--store-per" in r.err) == (output == "out.zarr"), str(r)
    assert stores.listing(tmp_path).keys() == {"in", *(f"in/{p.name}" for p in (tmp_path / "in").iterdir())}


def test_stores_grow_one_by_one(tmp_path):
    files = [day(f"t_{k}_0{d}.nc", k, d) for k in ("d01", "d02") for d in (0, 1, 2)]
    made = [str(p) for p in F.write_all(files, tmp_path / "in")]
    old, new = [p for p in made if not p.endswith("02.nc")], [p for p in made if p.endswith("02.nc")]
    many = tmp_path / "many"
    tool.nc2zarr("-q", "--store-per", "t_*_", *old, many).ok()
    tool.nc2zarr("--store-per", "t_*_", "--append", "time", *new, many).fails(2, "--store-per: not with --append", "name that store")
    tool.nc2zarr("--append", "time", *new, many).fails(2, f"{many}: is a folder of stores; name one of them, as {many}/d0")
    for kind in ("d01", "d02"):
        tool.nc2zarr("-q", "--append", "time", *(p for p in new if kind in p), many / f"{kind}.zarr").ok()
        assert readers.arrays(many / f"{kind}.zarr")["t"].shape == (12, *SIZES[kind])
