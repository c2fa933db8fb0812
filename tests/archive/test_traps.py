"""Each trap alone in one file: the survey names the file and the option, nothing is written; decided, the store is right."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

from support import paths, tool

from . import files as F
from . import stores
from .traps import DECISION, TRAPS, WARNING

SMALL, LARGE = 12, 2000


class Base:
    """The clean archive, written once; an archive with a trap has links to its files."""

    def __init__(self, folder, n):
        self.files = F.clean(n)
        self.made = {f.name: (f, p) for f, p in zip(self.files, F.write_all(self.files, folder))}
        self.folder = folder

    def with_trap(self, trap, k, folder):
        files = trap.plant(self.files, k)
        F.link_all(files, self.made, folder)
        return files

    @contextlib.contextmanager
    def planted(self, trap, k, aside):
        """The archive's own folder with the trap in it; whoever kept its survey knows all other files."""
        files = trap.plant(self.files, k)
        stay = {f.name for f in files if f.name in self.made and self.made[f.name][0] is f}
        gone, new = [n for n in self.made if n not in stay], [f for f in files if f.name not in stay]
        aside.mkdir()
        for i, name in enumerate(gone):
            (self.folder / name).rename(aside / str(i))
        try:
            for f in new:
                (self.folder / f.name).parent.mkdir(parents=True, exist_ok=True)
                F.write(f, self.folder)
            yield files
        finally:
            for f in new:
                (self.folder / f.name).unlink(missing_ok=True)
            for i, name in enumerate(gone):
                (aside / str(i)).rename(self.folder / name)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return Base(tmp_path_factory.mktemp("small"), SMALL)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return Base(tmp_path_factory.mktemp("large"), LARGE)


@pytest.fixture(scope="module")
def cache(large, tmp_path_factory):
    """Findings of a survey of the large archive."""
    path = tmp_path_factory.mktemp("cache") / "cache"
    stores.survey("--survey-cache", path, large.folder, status=0)
    return path


def of_kind(doc, trap):
    kinds = (trap.kind, trap.or_kind)
    return [f for f in doc["findings"] if f["kind"] in kinds and trap.variable in (None, f["variable"])]


def names_the_place(found, trap, files, k):
    """Where it begins and ends; the first file's own oddity is where the others differ from it, to the last."""
    ends = [(Path(f["file"] or "").name, Path(f["last"] or "").name) for f in found]
    names = [f.name for f in files]
    if trap.moves:
        near = {names[i] for i in (k - 1, k, k + 1) if 0 <= i < len(names)}
        return any(near & set(pair) for pair in ends)
    if k == 0:
        return (names[0], names[0]) in ends or (names[1], names[-1]) in ends
    return (names[k], names[k]) in ends


def check(trap, files, k, folder, tmp_path, *options):
    """FILES lie in FOLDER, with TRAP in file K; OPTIONS are given to each run."""
    out = tmp_path / "out.zarr"

    def listing():
        return stores.listing(tmp_path), stores.listing(folder)

    before = listing()

    refused = trap.weight == DECISION
    # The survey itself may find differences of data, where fields are small.
    status, doc = stores.survey(*options, folder, status=None if refused and not trap.survey else 4 if refused else 0)
    found = of_kind(doc, trap)
    assert found, doc["findings"]
    assert names_the_place(found, trap, files, k), (found, files[k].name)
    others = [f for f in doc["findings"] if f not in found and f["weight"] == DECISION]
    assert not others, others
    if trap.survey:
        weights = {f["weight"] for f in found}
        assert (DECISION in weights) == refused and (trap.weight != WARNING or WARNING in weights), found
    if trap.option:
        assert any((f["option"] or "").startswith(trap.option.split("=")[0].rsplit(" ", 1)[0]) for f in found), found
    if refused:
        r = tool.nc2zarr(*options, folder, out)
        assert r.status == (4 if status == 4 else 1), str(r)
        if status == 4:
            assert listing() == before, "something was written"
        assert not tool.opens_as_store(out)
        told = r.err + r.out
        assert any(Path(p).name in told for f in found for p in (f["file"], f["last"]) if p), str(r)
    if trap.refuses:
        r = tool.nc2zarr(*options, *trap.refuses, folder, out)
        assert r.status == 4, str(r)
        assert listing() == before
    if trap.mend:
        overwrite = ["--overwrite"] if refused and status == 0 else []
        verify = "full" if len(files) < 100 else "none"
        stores.convert(*options, *trap.decide, *overwrite, "--verify", verify, folder, out).ok()
        want = F.joined(trap.mend(files, k), names=None)
        calendar = files[0].vars.get("time", F.Var((), None)).attrs.get("calendar", "standard")
        stores.same(out, want, calendar)


AMONG_12 = [(name, (0, 5, SMALL - 1)[(i + j) % 3]) for i, name in enumerate(TRAPS) for j in range(3)]


@pytest.mark.parametrize("name, k", AMONG_12[:: paths.tries(3, 1, 1)])
def test_trap(small, name, k, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    check(TRAPS[name], small.with_trap(TRAPS[name], k, folder), k, folder, tmp_path)


# A sample without FULL=1, of traps and of the places where they lie.
AMONG_2000 = [(name, (0, 1337, LARGE - 1)[(i + j) % 3]) for i, name in enumerate(TRAPS) for j in range(3)]


@pytest.mark.long
@pytest.mark.parametrize("name, k", AMONG_2000[:: paths.tries(10, 3, 1)])
def test_trap_among_2000(large, cache, name, k, tmp_path):
    aside = large.folder.parent / f"{large.folder.name}-aside"
    with large.planted(TRAPS[name], k, aside) as files:
        check(TRAPS[name], files, k, large.folder, tmp_path, "--survey-cache", cache)
    aside.rmdir()


def no_findings(base, n, out):
    before = stores.listing(base.folder)
    _, doc = stores.survey(base.folder, status=0)
    assert doc["findings"] == []
    stores.convert("--verify", "full", base.folder, out).ok()
    stores.same(out, F.joined(base.files))
    assert stores.listing(base.folder) == before


def test_the_clean_archive_has_no_finding(small, tmp_path):
    no_findings(small, SMALL, tmp_path / "out.zarr")


@pytest.mark.long
def test_2000_clean_files_have_no_finding(large, tmp_path):
    no_findings(large, LARGE, tmp_path / "out.zarr")


def test_every_trap_is_a_trap(small):
    """A trap that changes nothing would pass everywhere."""
    for name, trap in TRAPS.items():
        files = trap.plant(small.files, 5)
        assert len(files) != SMALL or any(a is not b for a, b in zip(files, small.files)), name


# ---- more than one file, more than one trap ---------------------------------------------------------


def test_a_drift_begins_and_ends(small, tmp_path):
    """From file 3 to file 8 the packing is another: both ends are named."""
    folder = tmp_path / "in"
    folder.mkdir()
    files = list(small.files)
    for k in range(3, 9):
        files = TRAPS["packing"].plant(files, k)
    F.link_all(files, small.made, folder)
    _, doc = stores.survey(folder, status=4)
    found = of_kind(doc, TRAPS["packing"])
    assert {(Path(f["file"]).name, Path(f["last"]).name) for f in found} >= {(files[3].name, files[8].name)}
    assert sum(f["files"] for f in found) == 6
    assert "2" in found[0]["text"], "the number of distinct packings"


def test_several_traps_are_all_found(small, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    files = list(small.files)
    planted = {"packing": 2, "static field": 4, "calendar noleap": 7, "missing variable": 9, "standard_name": 10}
    for name, k in planted.items():
        files = TRAPS[name].plant(files, k)
    F.link_all(files, small.made, folder)
    _, doc = stores.survey(folder, status=4)
    for name, k in planted.items():
        found = of_kind(doc, TRAPS[name])
        assert names_the_place(found, TRAPS[name], files, k), (name, doc["findings"])
    assert doc["decisions"] == len([f for f in doc["findings"] if f["weight"] == DECISION])


def test_data_that_are_the_stores_fill_value(small, tmp_path):
    """One file's own fill is another; what was data there and is the store's fill stops the run, which goes on when decided."""
    folder, out = tmp_path / "in", tmp_path / "out.zarr"
    folder.mkdir()
    files = list(small.files)
    k = 5
    f = files[k] = F.changed(files[k])
    v = f.vars["pr"]
    v.data, v.fill = v.data.copy(), np.int16(-9999)
    v.data[v.data == -32767] = -9999
    v.data[1, 2, 3] = -32767
    F.link_all(files, small.made, folder)
    r = tool.nc2zarr(folder, out)
    assert r.status in (1, 4) and f.name in r.err and "pr" in r.err, str(r)
    assert not tool.opens_as_store(out)


def test_time_units_of_the_user(small, tmp_path):
    out = tmp_path / "out.zarr"
    stores.convert("--time-units", "hours since 1999-12-31 12:00:00", "--verify", "full", small.folder, out).ok()
    stores.same(out, F.joined(small.files))
    assert stores.attributes(out, "time")["units"] == "hours since 1999-12-31 12:00:00"


def test_times_that_only_integers_of_minutes_hold(small, tmp_path):
    trap, folder, out = TRAPS["thirds of hours"], tmp_path / "in", tmp_path / "out.zarr"
    folder.mkdir()
    small.with_trap(trap, 5, folder)
    _, doc = stores.survey(folder, status=0)
    assert any("minutes" in f["text"] for f in of_kind(doc, trap)), doc["findings"]
    stores.convert(folder, out).ok()
    import zarr

    time = zarr.open_array(f"{out}/time", mode="r")
    assert time.dtype == np.dtype("int64") and time.attrs["units"] == "minutes since 2000-01-01"


def test_the_survey_writes_nothing_and_converts_nothing(small, tmp_path):
    before = stores.listing(small.folder)
    for args in (["--survey"], ["--survey", "--json"], ["--dry-run"]):
        target = [] if "--survey" in args else [tmp_path / "out.zarr"]
        r = tool.nc2zarr(*args, small.folder, *target, cwd=tmp_path)
        assert r.status == 0 and r.out, str(r)
    assert stores.listing(small.folder) == before and list(tmp_path.iterdir()) == []
