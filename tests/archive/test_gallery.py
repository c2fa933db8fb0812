"""Families of archives: the survey's last line, pasted as it stands and without other knowledge, makes what xarray.open_mfdataset makes."""

import os
import re
import shlex
import subprocess
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr

from golden.families import FAMILIES
from support import paths, tool

from . import files as F
from . import gallery
from .test_paste import paste, survey, texts

COORDS = {"combine": "by_coords", "data_vars": "minimal", "coords": "minimal", "join": "exact", "compat": "no_conflicts"}


def nested(dim, data_vars="minimal", **kw):
    return {**COORDS, "combine": "nested", "concat_dim": dim, "data_vars": data_vars, **kw}


@dataclass
class Family:
    files: object  # makes them
    how: dict  # as xarray joins them
    more: tuple = ()  # the store has these, too: what xarray does not make
    given: str = "in"
    types: tuple = ()  # variables that xarray gives another type here; their values are the same


ARCHIVES = {
    "ERA5": Family(gallery.era5, COORDS),
    "CMIP6": Family(gallery.cmip6, COORDS),
    "WRF": Family(gallery.wrf, nested("Time"), ("Time",), "in/*"),
    "ROMS": Family(gallery.roms, nested("ocean_time")),
    "GOES": Family(gallery.goes, nested("t", "different"), types=("CMI", "x", "y")),  # JSON does not say that a scale_factor is float32
    "swath": Family(gallery.swath, nested("scan")),
    "stations": Family(gallery.stations, nested("station", "different", coords="different"), ("station",)),
    "stations of different times": Family(gallery.stations_of_different_times, nested("station", "different", coords="different", join="outer"), ("station",)),
    "tiles": Family(lambda: FAMILIES["tiles"].files, COORDS),
    "variables apart": Family(lambda: FAMILIES["variables apart"].files, COORDS),
    "packing": Family(lambda: FAMILIES["packing"].files, COORDS),
    "missing variable": Family(lambda: FAMILIES["missing variable"].files, {**COORDS, "join": "outer"}, types=("flag",)),  # xarray makes integers float where another variable lacks steps
    "members": Family(lambda: FAMILIES["members with a coordinate"].files, COORDS),
}


def dropped(line):
    """Variables of which the command keeps less than the files have."""
    words = shlex.split(line)
    given = {o: words[i + 1] for i, o in enumerate(words) if o in ("--exclude", "--static")}
    return {v.partition(":")[0] for v in given.values()}


def same(name, want, got, types):
    for d in set(want.dims) - set(got.dims):
        # xarray repeats what all files say alike.
        assert (want == want.isel({d: 0})).all(), name
        want = want.isel({d: 0})
    want = want.transpose(*got.dims)
    assert want.shape == got.shape, name
    if want.dtype.kind in "SUOT":
        assert texts(got.values) == texts(want.values), name
    elif want.dtype.kind == "M":
        # xarray's own nanoseconds of float64 hours are not exact.
        assert np.abs((want.values - got.values).astype("i8")).max(initial=0) < 1000, name
    elif name in types:
        assert want.dtype != got.dtype, f"{name}: {want.dtype}"
        np.testing.assert_allclose(got.values, want.values, rtol=1e-6, err_msg=name)
    else:
        assert want.dtype == got.dtype, (name, want.dtype, got.dtype)
        np.testing.assert_array_equal(got.values, want.values, err_msg=name)


@pytest.mark.parametrize("name", ARCHIVES)
def test_pasted(name, tmp_path):
    family = ARCHIVES[name]
    files = F.write_all(family.files(), tmp_path / "in")
    out, line = survey(family.given, "out.zarr", cwd=tmp_path)
    assert line is not None, out
    made = paste(line, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_mfdataset(sorted(map(str, files)), **family.how) as want, xr.open_zarr(made) as got:
            left = dropped(line)
            assert set(got.variables) - left == (set(want.variables) | set(family.more)) - left, line
            for v in set(want.variables) - left:
                same(v, want[v], got[v], family.types)


# ---- docs/gallery.md -----------------------------------------------------------------------------------

SECTIONS = dict(zip(gallery.GALLERY, (paths.ROOT / "docs" / "gallery.md").read_text().split("\n## ")[1:], strict=True))


def code(section):
    """(commands, the program) of the page's indented lines."""
    lines = [line[4:] for line in section.splitlines() if line.startswith("    ") or not line]
    shell = [line for line in lines if line.startswith("nc2zarr ")]
    program = "\n".join(lines[lines.index("import numpy") :])
    return shell, program


@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python")
@pytest.mark.parametrize("name", SECTIONS)
def test_the_page(name, tmp_path):
    """Its second command is the last line of the first, and both run as they stand, as does the program."""
    (ask, convert), program = code(SECTIONS[name])
    assert sum(map(bool, program.splitlines())) + 2 <= 11, "about ten lines"
    gallery.write(name, tmp_path)
    env = tool.environment(
        {
            "PATH": f"{paths.BUILD / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(paths.ROOT / "tools" / "python"),
            "CHUNKMILL_LIBRARY": str(paths.BUILD / "lib" / "libchunkmill_loader.so.1"),
        }
    )
    run = lambda *words, **kw: subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, **kw)  # noqa: E731
    survey = run("sh", "-c", ask)
    assert survey.returncode in (0, 4) and survey.stdout.splitlines()[-1] == convert, survey.stdout + survey.stderr
    done = run("sh", "-c", convert)
    assert done.returncode == 0, done.stderr
    done = run(sys.executable, "-W", "ignore", "-c", program)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stdout
    said = re.search(r"# ((?:\([^)]*\)(?:, )?)+)", program)
    assert all(line.startswith(said[1].rstrip(", ").replace("), (", ") (")) for line in lines), (said[1], lines)
    assert "nan" not in done.stdout


def again(files, old, new, **attrs):
    """FILES under other names, with other values in their fields."""
    out = []
    for f in map(F.changed, files):
        f.name = f.name.replace(old, new)
        f.attrs.update(attrs)
        for v in f.vars.values():
            if v.data.ndim > 1 and "bnds" not in v.dims and v.data.dtype.kind != "S":
                v.data = v.data + v.data.dtype.type(1)
        out.append(f)
    return out


def test_members_of_cmip6(tmp_path):
    first = gallery.cmip6()
    for f in first:
        f.attrs["variant_label"] = "r1i1p1f1"
    F.write_all(first + again(first, "r1i1p1f1", "r2i1p1f1", variant_label="r2i1p1f1"), tmp_path / "in")
    _, line = survey("in", "out.zarr", cwd=tmp_path)
    assert shlex.split(line)[1:3] == ["--new-dim", "member=@variant_label"]
    with xr.open_zarr(paste(line, tmp_path)) as got:
        assert got.tas.sizes["member"] == 2 and (got.tas[1] - got.tas[0]).mean() == pytest.approx(1, abs=1e-3)


def inner_domain():
    """That of WRF's files which is smaller."""
    files = again(gallery.wrf(), "d01", "d02")
    for f in files:
        for v in f.vars.values():
            v.data = v.data[tuple(slice(12) if d == "south_north" else slice(None) for d in v.dims)]
    return files


PARTS = {
    "CMIPC-M6C*_": (lambda: gallery.goes() + again(gallery.goes(), "C01", "C13"), {"01", "13"}),
    "wrfout_*_": (lambda: gallery.wrf() + inner_domain(), {"d01", "d02"}),
    "_*.": (gallery.stations_of_different_times, {str(10000 + 111 * i) for i in range(5)}),
}


@pytest.mark.parametrize("per", PARTS)
def test_a_store_for_each_band_domain_and_station(per, tmp_path):
    """By the part of names that the page gives for them."""
    make, names = PARTS[per]
    assert f"`--store-per '{per}'`" in (paths.ROOT / "docs" / "gallery.md").read_text()
    F.write_all(make(), tmp_path / "in")
    _, line = survey("--store-per", per, "in/*" if "wrf" in per else "in", "made", cwd=tmp_path)
    paste(line, tmp_path)
    assert {p.stem for p in (tmp_path / "made").glob("*.zarr")} == names, line
