"""Killed before any call that changes files, a repository has its old snapshot or the new one, whole; the same
command completes it, and removes no file of others."""

import os
import shutil
import signal
import subprocess
import time

import netCDF4
import numpy as np
import pytest

from support import failio, icechunk, paths, tool

KINDS = ("open", "write", "rename", "mkdir", "unlink", "truncate")
KILLS = paths.tries(4, 12, 60)  # of each kind of calls, in each case


def make(path, first, n, seed):
    with netCDF4.Dataset(path, "w") as nc:
        for name, size, start in (("time", n, first), ("y", 24, 0), ("x", 24, 0)):
            nc.createDimension(name, size)
            nc.createVariable(name, "f8", (name,))[:] = np.arange(size) + start
        v = nc.createVariable("v", "f4", ("time", "y", "x"), zlib=True, chunksizes=(1, 12, 24), fill_value=-1)
        v[:] = np.random.default_rng(seed).normal(size=(n, 24, 24))
        v[n // 2] = -1
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return make(tmp_path_factory.mktemp("in") / "in.nc", 0, 6, 0)


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Of so many steps that references are made."""
    return make(tmp_path_factory.mktemp("wide") / "in.nc", 0, 12, 0)


@pytest.fixture(scope="module")
def more(tmp_path_factory, wide):
    """For a repository of the source: steps behind its end, and steps within, with other values."""
    folder = tmp_path_factory.mktemp("more")
    return {
        "append": make(folder / "append.nc", 6, 5, 1),
        "replace": make(folder / "replace.nc", 2, 3, 2),
        "refer": make(wide.parent / "refer.nc", 12, 5, 3),
    }


def command(case, source, repo):
    more = {
        "new": [],
        "shards": ["--chunks", "v:1x12x12", "--shards", "v:2x24x24"],
        "overwrite": ["--overwrite"],
        "below": [],
        "virtual": ["--virtual", "icechunk"],
        "append": ["--append", "time"],
        "replace": ["--replace", "time=2:5"],
        "refer": ["--virtual", "icechunk", "--append", "time"],
    }[case]
    place = f"icechunk:{repo}" + ("::deep/er" if case == "below" else "")
    return ["-q", "-j", "1", "--verify", "none", "--object-size", "4KiB", *more, source, place]


def tip_of(repo):
    """The id at the tip and its keys, all of which must be there; None: no repository."""
    if not (repo / "repo").exists():
        return None
    there = icechunk.Repo(repo)
    for ident in there.history():
        icechunk.Snapshot(repo, ident).store()
    return there.tip(), icechunk.Snapshot(repo, there.tip()).store()


def is_one(view, old, new):
    return view == old or (view is not None and view[1].keys() == new[1].keys() and view[1] == new[1])


def unreferred(repo):
    """Files of chunks and manifests that no snapshot refers to."""
    used = set()
    for ident in icechunk.Repo(repo).history():
        snapshot = icechunk.Snapshot(repo, ident)
        used |= {icechunk.letters(i) for i in snapshot.files}
        for node in snapshot.nodes:
            for ref in (snapshot.references(node) if node.is_array else {}).values():
                if not isinstance(ref, bytes) and not isinstance(ref[0], str):
                    used.add(icechunk.letters(ref[0]))
    return {p.name for f in ("chunks", "manifests") for p in (repo / f).glob("*")} - used


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["new", "shards", "overwrite", "below", "virtual", "append", "replace", "refer"])
def test_killed(source, wide, more, case, kind, tmp_path):
    root, state, template = tmp_path / "work", tmp_path / "state", tmp_path / "template"
    repo = root / "repo"
    template.mkdir()
    chunks = "v:4x12x24" if case in more else "v:6x12x24"
    source = wide if case == "virtual" else source
    begin = ["--virtual", "icechunk", wide] if case == "refer" else ["--chunks", chunks, source]
    if case in ("overwrite", "below", *more):
        tool.nc2zarr("-q", *begin, f"icechunk:{template / 'repo'}").ok()
        (template / "repo" / "chunks").mkdir(exist_ok=True)
        (template / "repo" / "chunks" / "0123456789ABCDEFGHJK").write_text("another writer's")
    failio.renew(template, root)
    old = tip_of(repo)
    args = command(case, more.get(case, source), repo)
    whole = failio.inject("nc2zarr", *args, root=root, state=state)
    whole.done.ok()
    new = tip_of(repo)
    assert old is None or new[0] != old[0]
    moments = failio.spread(whole.counts[kind], paths.tries(1, 12, 60) if case in more else KILLS)
    nleft = 0
    for nth in moments:
        failio.renew(template, root)
        killed = failio.inject("nc2zarr", *args, root=root, state=state, kind=kind, nth=nth, way="kill")
        assert killed.done.status in (-signal.SIGKILL, 128 + signal.SIGKILL), str(killed.done)
        view = tip_of(repo)
        assert is_one(view, old, new), (kind, nth, killed.what)
        again = tool.nc2zarr(*args)
        # Killed when nothing but the journal's last file was left, it says that all is there already.
        complete = view != old and again.status == 1 and "is in the repository already" in again.err
        assert again.status == 0 or complete, (kind, nth, killed.what, str(again))
        done = tip_of(repo)
        assert done[1] == new[1], (kind, nth, killed.what)
        assert not (root / "repo.chunkmill").exists(), (kind, nth, killed.what)
        assert not list(repo.rglob("*.tmp")), (kind, nth, killed.what)
        others = {"0123456789ABCDEFGHJK"} if old is not None else set()
        assert others <= unreferred(repo) | set(), (kind, nth, killed.what)
        # Nothing is left that nobody refers to, unless it was about to be published.
        left = unreferred(repo) - others
        nleft += left != set()
        assert not left or view == old, (kind, nth, killed.what, left)
    assert nleft <= 2, nleft
    print(f"{case}: {len(moments)} kills at {whole.counts[kind]} {kind}s")


# ---- another writer, which takes no lock ----------------------------------------------------------------


def let_others_commit(args, nth, changed, root, state):
    """Runs nc2zarr up to its rename NTH, puts the state of CHANGED in place, as another program would, and lets it go
    on: whether ours was made before, the exit status, what it said."""
    repo = root / "repo"
    was = icechunk.Repo(repo).tip()
    env = tool.environment() | failio.environment(root, state, "rename", nth, "stop")
    child = subprocess.Popen(
        [tool.program("nc2zarr"), *map(str, args)], env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    stop_by = time.monotonic() + 300
    while not failio.failed(state) and child.poll() is None:
        assert time.monotonic() < stop_by
        time.sleep(0.01)
    # Files that never change first, and then the one that does.
    shutil.copytree(changed / "repo", repo, dirs_exist_ok=True, ignore=lambda d, names: ["repo"] if d == str(changed / "repo") else [])
    was_first = icechunk.Repo(repo).tip() != was
    if not was_first:
        shutil.copy(changed / "repo" / "repo", repo / "their-repo")
        os.replace(repo / "their-repo", repo / "repo")
    err = failio.go_on(child)
    return was_first, child.returncode, err


@pytest.mark.parametrize("theirs", ["elsewhere", "the same", "another branch"])
def test_another_commit_meanwhile(source, theirs, tmp_path):
    """A run stands before each rename in turn while another commit is made: it is applied on top of it, or refused
    where both have the same array.  The other commit is never lost."""
    root, state, base, changed = (tmp_path / n for n in ("work", "state", "base", "changed"))
    repo = root / "repo"
    base.mkdir()
    tool.nc2zarr("-q", source, f"icechunk:{base / 'repo'}::old").ok()
    failio.renew(base, changed)
    more = {"elsewhere": "::other", "the same": "", "another branch": "::dev"}[theirs]
    branch = "dev" if theirs == "another branch" else "main"
    tool.nc2zarr("-q", "--branch", branch, source, f"icechunk:{changed / 'repo'}{more}").ok()
    their_tip = icechunk.Repo(changed / "repo").tip(branch)
    args = ["-q", "-j", "1", "--verify", "none", source, f"icechunk:{repo}"]
    failio.renew(base, root)
    count = failio.inject("nc2zarr", *args, root=root, state=state).counts["rename"]
    for nth in failio.spread(count, paths.tries(5, 20, 60)):
        failio.renew(base, root)
        was_first, status, err = let_others_commit(args, nth, changed, root, state)
        there = icechunk.Repo(repo)
        where = (nth, failio.failed(state), err)
        if was_first:  # ours was made before
            assert status == 0, where
            continue
        assert their_tip in there.history(branch), where
        if theirs == "the same":
            assert status == 1 and "/v" not in err and "already" in err, where
            assert there.tip() == their_tip, where
        else:
            assert status == 0, where
            view = tip_of(repo)[1]
            assert "v/zarr.json" in view and "old/v/zarr.json" in view, where
            assert ("other/v/zarr.json" in view) == (theirs == "elsewhere"), where
        assert not (root / "repo.chunkmill").exists(), where
        assert theirs == "another branch" or not unreferred(repo), where


@pytest.mark.parametrize("theirs", ["elsewhere", "the same array", "a coordinate", "a new array"])
@pytest.mark.parametrize("ours", ["append", "replace", "refer"])
def test_growing_meanwhile(source, wide, more, ours, theirs, tmp_path):
    """The same of a run that changes arrays: refused where another commit has changed one of them, or added one that had to grow."""
    root, state, base, changed = (tmp_path / n for n in ("work", "state", "base", "changed"))
    repo = root / "repo"
    base.mkdir()
    begin = ["--virtual", "icechunk", wide] if ours == "refer" else ["--chunks", "v:4x12x24", source]
    tool.nc2zarr("-q", *begin, f"icechunk:{base / 'repo'}").ok()
    failio.renew(base, changed)
    other = {
        "elsewhere": [source, f"icechunk:{changed / 'repo'}::other"],
        "the same array": ["--append", "time", more["refer" if ours == "refer" else "append"], f"icechunk:{changed / 'repo'}"],
        "a coordinate": ["--overwrite", "--variables", "x", source, f"icechunk:{changed / 'repo'}"],
        "a new array": ["--variable", "v", "--rename", "v=w", "--exclude", "time,y,x", source, f"icechunk:{changed / 'repo'}"],
    }[theirs]
    tool.nc2zarr("-q", *other).ok()
    their_tip, theirs_now = tip_of(changed / "repo")
    args = command(ours, more[ours], repo)
    failio.renew(base, root)
    count = failio.inject("nc2zarr", *args, root=root, state=state).counts["rename"]
    alone = tip_of(repo)[1]
    for nth in failio.spread(count, paths.tries(1, 20, 60)):
        failio.renew(base, root)
        was_first, status, err = let_others_commit(args, nth, changed, root, state)
        where = (nth, failio.failed(state), err)
        if was_first or " lock" in failio.failed(state):  # ours was made before, or begins with theirs
            assert was_first is False or status == 0, where
            continue
        tip, view = tip_of(repo)
        if theirs in ("the same array", "a coordinate") or theirs == "a new array" and ours != "replace":  # of too few steps
            what = "added it meanwhile, along time, which grows" if theirs == "a new array" else "changed it meanwhile"
            assert status == 1 and f"another commit has {what}" in err, where
            assert tip == their_tip, where
        else:
            assert status == 0 and their_tip in icechunk.Repo(repo).history(), where
            assert view == theirs_now | alone, where
        assert not (root / "repo.chunkmill").exists() and not unreferred(repo), where


@pytest.mark.parametrize("kind", [k for k in failio.WAYS if k != "ring"])
@pytest.mark.parametrize("case", ["new", "below"])
def test_calls_that_fail(source, case, kind, tmp_path):
    """A commit that is reported is there, and one that is not can be made again."""
    root, state, base = tmp_path / "work", tmp_path / "state", tmp_path / "base"
    repo = root / "repo"
    base.mkdir()
    if case == "below":
        tool.nc2zarr("-q", source, f"icechunk:{base / 'repo'}::old").ok()
    args = ["-q", "-j", "1", "--object-size", "4KiB", source, f"icechunk:{repo}"]
    failio.renew(base, root)
    counts = failio.inject("nc2zarr", *args, root=root, state=state).counts
    for way in failio.WAYS[kind]:
        for nth in failio.spread(counts[kind], paths.tries(3, 8, 40)):
            failio.renew(base, root)
            failed = failio.inject("nc2zarr", *args, root=root, state=state, kind=kind, nth=nth, way=way)
            where = (way, nth, failed.what, str(failed.done))
            view = tip_of(repo)
            done = view is not None and "v/zarr.json" in view[1]
            assert failed.done.status in (0, 1), where
            assert done if failed.done.status == 0 else failed.done.err.strip(), where
            again = tool.nc2zarr(*args)
            assert again.status == 0 or (done and "already" in again.err), (where, str(again))
            assert "v/zarr.json" in tip_of(repo)[1], where
