"""Parts of one commit to a repository, killed at any call and at any time: the branch has its old snapshot or the new
one, the same commands complete it, and nothing is left that nobody refers to."""

import os
import random
import shutil
import signal
import subprocess
import time

import netCDF4
import numpy as np
import pytest

from fault.test_icechunk import let_others_commit, tip_of, unreferred
from support import failio, icechunk, paths, tool

NPARTS = 3
KINDS = ("open", "write", "rename", "mkdir", "unlink", "truncate", "lock")
KILLS = paths.tries(3, 12, 200)
FOREIGN = "0123456789ABCDEFGHJK"
LAYOUTS = {
    "chunks": ("--chunks", "time=5,lat=6,lon=8", "--shards", "none"),
    "shards": ("--chunks", "time=5,lat=3,lon=4", "--shards", "time=10,lat=6,lon=8"),
    "statistics": ("--chunks", "time=5,lat=6,lon=8", "--shards", "none", "--statistics"),
    "overwrite": ("--chunks", "time=5,lat=6,lon=8", "--overwrite"),
    "append": ("--append", "time"),
    "replace": ("--replace", "time=3:9"),
}
STEPS = {"append": (18, 8), "replace": (3, 6)}  # of a repository that has the first 18


def make(path, first=0, n=20, seed=3):
    with netCDF4.Dataset(path, "w") as ds:
        for d, size in (("time", n), ("lat", 12), ("lon", 16)):
            ds.createDimension(d, size)
        data = np.random.default_rng(seed).normal(size=(n, 12, 16)).round(1)
        data[5:10] = 1e20
        ds.createVariable("tas", "f4", ("time", "lat", "lon"), fill_value=1e20)[:] = data
        ds.createVariable("time", "f8", ("time",))[:] = np.arange(first, first + n)
        ds.createVariable("lat", "f8", ("lat",))[:] = np.arange(12)
        ds.createVariable("name", str, ("lat",))[:] = np.array([f"row {i}" for i in range(12)], object)
    return path


class Case:
    """Of a small field: what a repository has before, all parts but the last, and the digests of one conversion."""

    def __init__(self, top, layout):
        self.source = make(top / "in.nc", *STEPS.get(layout, ()))
        self.layout = layout
        self.options = ["-q", "-j", "1", "--verify", "none", "--object-size", "4KiB", *LAYOUTS[layout]]
        self.begun = {"nothing": top / "nothing", "rest": top / "rest"}
        folder, one = self.begun["nothing"], top / "one"
        folder.mkdir()
        if layout in ("overwrite", "statistics", *STEPS):  # a repository that is there
            place = f"icechunk:{folder / 'repo'}" + ("::old" if layout == "statistics" else "")
            before = ["--chunks", "time=5,lat=6,lon=8", make(top / "before.nc", 0, 18, 4)] if layout in STEPS else [self.source]
            tool.nc2zarr("-q", *before, place).ok()
            (folder / "repo" / "chunks" / FOREIGN).write_text("another writer's")
        for copy in (one, self.begun["rest"]):
            shutil.copytree(folder, copy)
        tool.nc2zarr(*self.options, self.source, f"icechunk:{one / 'repo'}").ok()
        self.digests = digests(one / "repo")
        self.old = tip_of(self.begun["nothing"] / "repo")
        for k in range(1, NPARTS):
            self.part(k, self.begun["rest"]).ok()

    def command(self, k, root):
        return ["--part", f"{k}/{NPARTS}", *self.options, self.source, f"icechunk:{root / 'repo'}"]

    def part(self, k, root, *more):
        return tool.nc2zarr(*more, *self.command(k, root))

    def view(self, root, where):
        """Whether the commit is there: the branch has the old snapshot, whole, or the new one."""
        now = tip_of(root / "repo")
        if now is None or (self.old is not None and now[0] == self.old[0]):
            assert (now is None) == (self.old is None) and (now is None or now == self.old), where
            return False
        assert digests(root / "repo") == self.digests, where
        return True

    def check_done(self, root, where):
        assert self.view(root, where), where
        assert sorted(p.name for p in (root / "repo.chunkmill").iterdir()) == ["complete", "plan"], where
        assert not list((root / "repo").rglob("*.tmp")), where
        ncommits = len(icechunk.Repo(root / "repo").history())
        assert ncommits == (2 if self.old is None else 3), where
        others = {FOREIGN} if self.old is not None else set()
        left = unreferred(root / "repo")
        assert others <= left, where
        return left - others


def digests(repo):
    return tool.run("rechunk", "--digest", f"icechunk:{repo}").ok().out


@pytest.fixture(scope="module", params=LAYOUTS)
def case(request, tmp_path_factory):
    return Case(tmp_path_factory.mktemp("parts"), request.param)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return Case(tmp_path_factory.mktemp("plain"), "chunks")


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("begun", ("nothing", "rest"))
def test_killed(case, begun, kind, tmp_path):
    """The first part, which publishes the plan; the last one, which commits."""
    root, state = tmp_path / "work", tmp_path / "state"
    number = 1 if begun == "nothing" else NPARTS
    failio.renew(case.begun[begun], root)
    whole = failio.inject("nc2zarr", *case.command(number, root), root=root, state=state)
    whole.done.ok()
    assert case.view(root, "whole") == (begun == "rest")
    nleft = 0
    moments = failio.spread(whole.counts[kind], KILLS)
    for i, nth in enumerate(moments):
        failio.renew(case.begun[begun], root)
        killed = failio.inject("nc2zarr", *case.command(number, root), root=root, state=state, kind=kind, nth=nth, way="kill")
        assert killed.done.status in (-signal.SIGKILL, 128 + signal.SIGKILL), str(killed.done)
        at = f"killed before {kind} {nth}: {killed.what}"
        was = case.view(root, at)
        # Others come first every second time: those that are done may find that they can finish.
        numbers = [*range(1, NPARTS + 1)] if i % 2 else [number, *range(1, NPARTS + 1)]
        for k in numbers:
            again = case.part(k, root)
            assert again.status == 0, (at, k, str(again))
        left = case.check_done(root, at)
        # Nothing is left that nobody refers to, unless it was about to be published.
        nleft += left != set()
        assert not left or not was, (at, left)
    assert nleft <= 2, nleft
    print(f"{begun}: {len(moments)} kills at {whole.counts[kind]} {kind}s, {nleft} left files")


def run_parts(case, root, rng, shares, until):
    """All parts at once, some of them killed after a while: how many were."""
    nkilled = 0
    running = [
        subprocess.Popen(
            [tool.program("nc2zarr"), *map(str, case.command(k, root))],
            stderr=subprocess.PIPE,
            text=True,
            env=tool.environment({}),
            start_new_session=True,
        )
        for k in (*range(1, NPARTS + 1), rng.randint(1, NPARTS))
    ]
    for child in running:
        if rng.random() < shares:
            time.sleep(rng.uniform(0, until))
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                nkilled += 1
    for child in running:
        _, err = child.communicate(timeout=300)
        assert child.returncode in (0, -signal.SIGKILL), err
    return nkilled


@pytest.mark.few
@pytest.mark.parametrize("seed", range(paths.tries(1, 25, 100)))
def test_killed_at_random(case, seed, tmp_path):
    """All parts at once, and one of them twice, killed at any time and begun again until nobody is killed."""
    rng = random.Random(seed)
    root = tmp_path / "work"
    failio.renew(case.begun[rng.choice(("nothing", "rest"))], root)
    nkilled = 0
    for share in (0.8, 0.6, 0.4, 0):
        nkilled += run_parts(case, root, rng, share, rng.choice((0.02, 0.06, 0.15)))
        done = case.view(root, seed)
        assert done or share > 0, seed
    case.check_done(root, seed)
    print(f"{seed}: {nkilled} kills")


@pytest.mark.few(1)
@pytest.mark.parametrize("theirs", ["elsewhere", "the same", "another branch"])
def test_another_commit_meanwhile(plain, theirs, tmp_path):
    """The last part stands before each rename in turn while another commit is made: the commit of all parts is made on
    top of it, or refused where both have the same array; the other commit is never lost."""
    root, state, base, changed = (tmp_path / n for n in ("work", "state", "base", "changed"))
    base.mkdir()
    tool.nc2zarr("-q", plain.source, f"icechunk:{base / 'repo'}::old").ok()
    failio.renew(base, changed)
    for k in range(1, NPARTS):
        plain.part(k, base).ok()
    more = {"elsewhere": "::other", "the same": "", "another branch": "::dev"}[theirs]
    branch = "dev" if theirs == "another branch" else "main"
    tool.nc2zarr("-q", "--branch", branch, plain.source, f"icechunk:{changed / 'repo'}{more}").ok()
    their_tip = icechunk.Repo(changed / "repo").tip(branch)
    failio.renew(base, root)
    args = plain.command(NPARTS, root)
    count = failio.inject("nc2zarr", *args, root=root, state=state).counts["rename"]
    for nth in failio.spread(count, paths.tries(5, 30, 100)):
        failio.renew(base, root)
        was_first, status, err = let_others_commit(args, nth, changed, root, state)
        there = icechunk.Repo(root / "repo")
        where = (nth, failio.failed(state), err)
        if was_first:
            assert status == 0, where
            continue
        assert their_tip in there.history(branch), where
        if theirs != "the same":
            assert status == 0, where
            view = tip_of(root / "repo")[1]
            assert "tas/zarr.json" in view and ("other/tas/zarr.json" in view) == (theirs == "elsewhere"), where
            assert theirs == "another branch" or not unreferred(root / "repo"), where
            continue
        assert status == 1 and "already" in err and there.tip() == their_tip, where
        # It is said again, and the user can have it his way.
        assert plain.part(1, root).status == 1, where
        plain.part(1, root, "--overwrite").ok()
        assert their_tip in icechunk.Repo(root / "repo").history(), where
        assert digests(root / "repo").splitlines()[-3:], where


@pytest.mark.few(2)
@pytest.mark.parametrize("theirs", ["elsewhere", "the same"])
@pytest.mark.parametrize("ours", STEPS)
def test_another_commit_while_arrays_change(ours, theirs, tmp_path):
    """The same of parts that add steps, or replace them: refused where the other commit has changed one of the arrays, and
    all parts begin again with what is there then."""
    root, state, base, changed, top = (tmp_path / n for n in ("work", "state", "base", "changed", "top"))
    top.mkdir()
    case = Case(top, ours)
    failio.renew(case.begun["nothing"], changed)
    other = {
        "elsewhere": [case.source, f"icechunk:{changed / 'repo'}::other"],
        "the same": ["--replace", "time=0:2", make(tmp_path / "two.nc", 0, 2, 7), f"icechunk:{changed / 'repo'}"],
    }[theirs]
    tool.nc2zarr("-q", *other).ok()
    their_tip, theirs_now = tip_of(changed / "repo")
    failio.renew(changed if theirs == "the same" else case.begun["nothing"], base)
    tool.nc2zarr("-q", *LAYOUTS[ours], case.source, f"icechunk:{base / 'repo'}").ok()
    want = theirs_now | tip_of(base / "repo")[1]
    args = case.command(NPARTS, root)
    failio.renew(case.begun["rest"], root)
    count = failio.inject("nc2zarr", *args, root=root, state=state).counts["rename"]
    for nth in failio.spread(count, paths.tries(3, 20, 60)):
        failio.renew(case.begun["rest"], root)
        was_first, status, err = let_others_commit(args, nth, changed, root, state)
        where = (nth, failio.failed(state), err)
        if was_first:
            assert status == 0, where
            continue
        refused = theirs == "the same"
        assert status == (1 if refused else 0) and ("another commit has changed it meanwhile" in err) == refused, where
        if refused:
            assert tip_of(root / "repo")[0] == their_tip and unreferred(root / "repo") <= {FOREIGN}, where
            for k in range(1, NPARTS + 1):
                case.part(k, root).ok()
        assert icechunk.Repo(root / "repo").history()[1] == their_tip, where
        assert tip_of(root / "repo")[1] == want, where
