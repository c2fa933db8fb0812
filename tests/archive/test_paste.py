"""A survey ends with a command line: pasted as it stands, it makes a store that readers open, and loses nothing that it does not name."""

import fcntl
import json
import os
import pty
import shlex
import shutil
import struct
import subprocess
import termios
import warnings

import jsonschema
import netCDF4
import numpy as np
import pytest
import xarray as xr

from golden.families import FAMILIES
from support import paths, tool

from . import files as F
from .test_families import member
from .traps import DECISION, TRAPS

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "nc2zarr.json").read_text())

# Archives that no option joins, and what the sentence names.
HOPELESS = {"calendar": "calendar", "upside down": "lat", "interleaved": "time"}
# Steps that differ from file to file show when data move, and nothing tells the files apart.
LATER = {"runs", "overlap that differs", "overlap, first", "overlap, last"}
COMPARED = "steps that several files have are compared while data move"


def survey(*args, cwd, **kw):
    """(the report, the words of the command line at its end or None), which the document has, too."""
    shown, r = tool.nc2zarr("--survey", *args, cwd=cwd, **kw), tool.nc2zarr("--survey", "--json", *args, cwd=cwd, **kw)
    assert shown.status in (0, 4) and shown.status == r.status, str(shown)
    document = json.loads(r.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    before, _, last = shown.out.rstrip("\n").rpartition("\n")
    line = last if before.endswith("\n") and last.startswith(str(shown.argv[0])) else None
    assert document["command"] == line, str(shown)
    return shown.out, line


def paste(line, cwd):
    """A shell runs it."""
    r = subprocess.run(["sh", "-c", line], cwd=cwd, capture_output=True, text=True)
    assert r.returncode == 0, f"{line}\n{r.stdout}{r.stderr}"
    return cwd / shlex.split(line)[-1]


def joined(files):
    """The Dataset that xarray makes of them; None where it does not join them."""
    how = {"combine": "by_coords", "data_vars": "minimal", "coords": "minimal", "join": "exact", "compat": "no_conflicts", "combine_attrs": "drop_conflicts"}
    try:
        return xr.open_mfdataset(list(map(str, files)), **how)
    except Exception:
        return None


def texts(values):
    """Bytes as the texts that they are."""
    return [x.decode() if isinstance(x, bytes) else x for x in values.ravel().tolist()]


def compare(out, files):
    """Variables that both have, where their dimensions are the same: (how many, of how many)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, want = xr.open_zarr(out), joined(files)
        with got:
            got.load()
            if want is None:
                return 0, len(got.variables)
            n = 0
            with want:
                for v in set(want.variables) & set(got.variables):
                    a, b = want[v], got[v]
                    if a.sizes != b.sizes:
                        continue
                    n += 1
                    if a.dtype.kind == "M":
                        assert np.abs((a.values - b.values).astype("i8")).max(initial=0) < 1000, v
                    elif a.dtype.kind == "f":
                        np.testing.assert_allclose(b.transpose(*a.dims).values, a.values, rtol=1e-6, atol=1e-6 * np.abs(np.nan_to_num(a.values)).max(initial=0), err_msg=v)
                    else:
                        assert texts(b.transpose(*a.dims).values) == texts(a.values), v
        return n, len(got.variables)


def write(family, folder):
    folder.mkdir()
    F.write_all(family.files, folder)
    if family.more:
        family.more(folder)


@pytest.mark.parametrize("name", FAMILIES)
def test_families(name, tmp_path):
    write(FAMILIES[name], tmp_path / "in")
    given = ["in/*"] if any("." not in f.name for f in FAMILIES[name].files) else ["in"]
    out, line = survey(*given, cwd=tmp_path)
    if name in HOPELESS:
        assert line is None and "no option joins these files: " in out and HOPELESS[name] in " ".join(out.split()).partition("no option joins")[2], out
        return
    assert line is not None, out
    for option in shlex.split(line):
        assert not option.startswith("--") or f"\n  {option} " in out, (option, out)
    assert (COMPARED in " ".join(out.split())) == (name in LATER or name == "overlap")
    if name in LATER:
        return
    compare(paste(line, tmp_path), sorted(p for p in (tmp_path / "in").rglob("*") if p.is_file()))


@pytest.mark.parametrize("name", [n for n, t in TRAPS.items() if t.weight == DECISION])
def test_traps(name, tmp_path):
    F.write_all(TRAPS[name].plant(F.clean(4), 2), tmp_path / "in")
    out, line = survey("in", cwd=tmp_path)
    assert (line is None) == ("no option joins these files" in out), out
    if name in LATER:
        assert COMPARED in " ".join(out.split())
        return
    if len(shlex.split(line or "")) != 3:
        refused = tool.nc2zarr("in", "out.zarr", cwd=tmp_path)
        assert refused.status == 4, str(refused)
        assert refused.err.rstrip("\n").endswith(f"\n\n{line}" if line else out.rpartition("no option")[2].rstrip("\n")), str(refused)
        block = out.partition("what they cost:")[2]
        assert block in refused.err and not (tmp_path / "out.zarr").exists()
    if line is not None:
        compare(paste(line, tmp_path), sorted((tmp_path / "in").glob("*")))


REAL = {
    "packed": "20171025_2056.Cloud_Top_Height.nc",
    "levels": "eraint_uvz.nc",
    "mesh": "outCSne30_vortex.nc",
    "360_day": "tas_Amon_HadGEM2-ES_rcp85_r1i1p1_200512-203011.nc",
    "no time": "basin_mask.nc",
    "characters": "tas_AFR-22_MPI-M-MPI-ESM-LR_historical_r1i1p1_GERICS-REMO2015_v1_day_19960101-20001231.nc",
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", REAL)
def test_real_files(name, tmp_path):
    source = paths.SHARED / "data" / "netcdf" / REAL[name]
    if not source.exists():
        pytest.skip("no ../shared/data beside this checkout")
    (tmp_path / "it's in").mkdir()
    shutil.copy(source, tmp_path / "it's in")
    _, line = survey(f"it's in/{source.name}", cwd=tmp_path)
    n, _ = compare(paste(line, tmp_path), [tmp_path / "it's in" / source.name])
    assert n > 0


# ---- the line -----------------------------------------------------------------------------------------


@pytest.fixture
def undecided(tmp_path):
    F.write_all(TRAPS["missing variable"].plant(F.clean(5), 2), tmp_path / "in")
    return tmp_path


def words(line):
    return shlex.split(line)[1:]


def test_inputs_as_they_were_typed(undecided):
    names = sorted(f"in/{p.name}" for p in (undecided / "in").glob("*.nc"))
    _, line = survey(*names, cwd=undecided)  # a shell did that with in/*.nc
    assert words(line) == ["--missing", "fill", "in/*.nc", "out.zarr"] and "in/*.nc" in line
    paste(line, undecided)
    _, line = survey(*names[:3], cwd=undecided)
    assert words(line) == ["--missing", "fill", *names[:3], "out-2.zarr"]  # out.zarr is there
    _, line = survey(*names[:4], cwd=undecided)
    assert words(line)[2:-1] == names[:4]
    _, line = survey("--along", "time", "in/*.nc", "x.zarr", cwd=undecided)
    assert words(line) == ["--along", "time", "--missing", "fill", "in/*.nc", "x.zarr"] and "'in/*.nc'" in line
    (undecided / "in").rename(undecided / "a b's")
    _, line = survey("a b's", cwd=undecided)
    assert words(line) == ["--missing", "fill", "a b's", "out-2.zarr"]
    paste(line, undecided)


def test_options_that_refuse_are_replaced(undecided):
    _, line = survey("-q", "--missing", "error", "--codec", "none", "in", cwd=undecided)
    assert words(line) == ["--codec", "none", "--missing", "fill", "in", "out.zarr"]


def test_nothing_to_decide(tmp_path):
    F.write_all(F.clean(3), tmp_path / "in")
    out, line = survey("in", cwd=tmp_path)
    assert words(line) == ["in", "out.zarr"] and "can be converted as it is\n\n" in out


def test_decisions_that_others_uncover(tmp_path):
    """Files along no dimension cannot be compared before it is known: the line decides both."""
    files = [F.File(f"day_2000010{i + 1}.nc", {"x": F.Var(("y",), np.arange(3.0) + i), **({"z": F.Var(("y",), np.arange(3.0))} if i != 1 else {})}, unlimited=()) for i in range(3)]
    F.write_all(files, tmp_path / "in")
    out, line = survey("in", cwd=tmp_path)
    assert "--new-dim" in words(line) and "--missing" in words(line), out
    with xr.open_zarr(paste(line, tmp_path)) as got:
        assert got.x.shape == (3, 3) and got.x.values.tolist() == [[i, i + 1, i + 2] for i in range(3)]


def test_members_are_kept(tmp_path):
    files = [member(r, y) for r in (1, 2) for y in (2001, 2002)]
    for f, (r, y) in zip(files, ((r, y) for r in (1, 2) for y in (2001, 2002))):
        f.name = f"tas_{y}_mem{r:02d}.nc"
    F.write_all(files, tmp_path / "in")
    out, line = survey("in", cwd=tmp_path)
    assert words(line)[:2] == ["--new-dim", "member=_mem*."] and "nothing is dropped" in " ".join(out.split())
    with xr.open_zarr(paste(line, tmp_path)) as got:
        assert got.tas.dims == ("member", "time", "lat")


# ---- the report ---------------------------------------------------------------------------------------


def test_findings_of_one_cause_stand_together(tmp_path):
    """Names are as short as they differ, lists are cut with a count, lines are no longer than 80 columns."""
    stem = "a_model_with_a_long_name_historical_"
    files = [F.File(f"{stem}{i:03d}.nc", {"time": F.Var(("time",), np.array([float(i)]), {"units": F.UNITS}), **{f"v{k}": F.Var(("time",), np.array([1.0])) for k in range(9) if i != 2 or k == 0}}) for i in range(4)]
    F.write_all(files, tmp_path / "in")
    for i in range(8):
        (tmp_path / "in" / f"{stem}9{i:02d}.nc").write_bytes(b"no data")
    out, line = survey("in", cwd=tmp_path)
    lines = out.splitlines()
    assert all(len(x) <= 80 for x in lines if x != line), out
    said = " ".join(out.split())
    assert "v1, v2, v3, v4, v5, v6 and 2 more: the variable is missing (...002.nc); --missing fill" in said
    assert lines.count("decision needed: missing") == lines.count("decision needed: unreadable") == 1
    assert lines.count(f"... below stands for in/{stem}") == 1
    assert "  and 3 more; -v lists all" in lines and stem not in out.partition(stem)[2].replace(line, "")
    assert sum(x.startswith("  ...9") for x in tool.nc2zarr("--survey", "-v", "in", cwd=tmp_path).out.splitlines()) == 8
    assert words(line)[:4] == ["--bad-file", "skip", "--missing", "fill"]
    order = [i for i, x in enumerate(lines) if x.startswith(("note", "warning", "decision needed"))]
    kinds = [lines[i].split(":")[0] for i in order]
    assert kinds == sorted(kinds, key=["note", "warning", "decision needed"].index)
    paste(line, tmp_path)


def test_costs_are_told(tmp_path):
    F.write_all(TRAPS["packing"].plant(F.clean(3), 1), tmp_path / "in")
    said = " ".join(survey("in", cwd=tmp_path)[0].split())
    assert "the store grows by " in said and " before compression; or --exclude pr leaves it out" in said
    # A stack needs all its variables.
    said = " ".join(survey("--stack", "x=pr", "in", cwd=tmp_path)[0].split())
    assert "the store grows by " in said and "--exclude" not in said
    said = " ".join(survey("--stack", "x=tas", "in", cwd=tmp_path)[0].split())
    assert "or --exclude pr leaves it out" in said


def test_appended_files(tmp_path):
    """A store that grows keeps its types: what no option decides has no line."""
    F.write_all(F.clean(3), tmp_path / "in")
    tool.nc2zarr("in", "s.zarr", cwd=tmp_path).ok()
    more = F.clean(5)[3:]
    more[0].vars["extra"] = F.Var(("time",), np.zeros(len(more[0].vars["time"].data)))
    F.write_all(more, tmp_path / "more")
    r = tool.nc2zarr("--append", "time", "more", "s.zarr", cwd=tmp_path)
    assert r.status == 4, str(r)
    line = r.err.rstrip("\n").rpartition("\n")[2]
    assert words(line) == ["--append", "time", "--exclude", "extra", "more", "s.zarr"], str(r)
    paste(line, tmp_path)
    assert os.listdir(tmp_path / "s.zarr" / "time")


@pytest.mark.parametrize("columns", [60, 120])
def test_lines_are_as_wide_as_the_terminal(undecided, columns):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([paths.BUILD / "bin" / "nc2zarr", "--survey", "in"], stdout=theirs, stderr=subprocess.DEVNULL, cwd=undecided):
        os.close(theirs)
        out = b""
        try:
            while got := os.read(ours, 4096):
                out += got
        except OSError:  # the end of a pseudo-terminal
            pass
    os.close(ours)
    lines = out.decode().partition("what they cost:")[2].splitlines()[1:-2]
    assert columns - 20 < max(map(len, lines)) <= columns, lines


def test_a_store_for_each(undecided):
    """The line has a folder as its output."""
    _, line = survey("--store-per", "{variable}", "in", cwd=undecided)
    assert words(line) == ["--store-per", "{variable}", "in", "out"]
    assert (paste(line, undecided) / "tas.zarr").is_dir()


def test_types_that_zarr_does_not_have(tmp_path):
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as nc:
        nc.createDimension("x", 2)
        pair = nc.createCompoundType(np.dtype([("a", "f8"), ("b", "i4")]), "pair")
        nc.createVariable("both", pair, ("x",))
        nc.createVariable("x", "f8", ("x",))[:] = [1, 2]
    _, line = survey("a.nc", cwd=tmp_path)
    assert words(line) == ["--exclude", "both", "a.nc", "out.zarr"]
    with xr.open_zarr(paste(line, tmp_path)) as got:
        assert got.x.values.tolist() == [1, 2]
