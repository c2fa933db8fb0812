"""Several processes add to a repository, or replace steps of it, by one commit: the snapshot that one process makes."""

import json
import os
import random
import shutil
import subprocess

import netCDF4
import numpy as np
import pytest

from support import icechunk, objects, paths, tool

from .test_icechunk_parts import unreferred

LAYOUTS = {
    "a chunk across the end": ["--chunks", "v:4x12x20", "--chunks", "w:6x4"],
    "shards": ["--chunks", "v:2x12x20", "--chunks", "w:6x2", "--shards", "v:4x24x20", "--shards", "w:12x4"],
    "whole chunks": ["--chunks", "v:1x12x20", "--chunks", "w:24x1"],
    "default": [],
}
CHANGES = {"append": ("--append", "time"), "replace": ("--replace", "time=3:8")}


def make(path, first, n, seed, fill=None):
    """Steps of v are rows, and of w columns; texts; all fill; a field that does not grow."""
    rng = np.random.default_rng(seed)
    with netCDF4.Dataset(path, "w") as nc:
        for name, start, size in (("time", first, n), ("y", 0, 24), ("x", 0, 20)):
            nc.createDimension(name, size)
            nc.createVariable(name, "f8", (name,))[:] = np.arange(size) + start
        v = nc.createVariable("v", "f4", ("time", "y", "x"), zlib=True, chunksizes=(1, 24, 20), fill_value=-1)
        v[:] = rng.normal(size=(n, 24, 20))
        if fill is not None:
            v[fill] = -1
        nc.createVariable("w", "i2", ("y", "time"))[:] = rng.integers(0, 999, size=(24, n))
        nc.createVariable("name", str, ("time",))[:] = np.array([f"step {first + i} of {seed}" for i in range(n)], dtype=object)
        nc.createVariable("fixed", "i2", ("y",))[:] = np.arange(24)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of the repository, files that are added, and other values of steps 3 to 8."""
    folder = tmp_path_factory.mktemp("in")
    return {
        "base": [make(folder / "a.nc", 0, 10, 0)],
        "append": [make(folder / "b.nc", 10, 7, 1, fill=slice(2, 7)), make(folder / "c.nc", 17, 6, 2)],
        "replace": [make(folder / "new.nc", 3, 5, 3, fill=slice(0, 2))],
        "next": [make(folder / "d.nc", 23, 3, 4)],
    }


def part(k, n, how, files, place, *more, **kw):
    return tool.nc2zarr("-q", "--object-size", "4KiB", "--part", f"{k}/{n}", *CHANGES[how], *more, *files, place, **kw)


def digest(place, **kw):
    return tool.run("rechunk", "--digest", place, **kw).ok().out


def view(repo, branch="main"):
    return icechunk.Snapshot(repo, icechunk.Repo(repo).tip(branch)).store()


def same(a, b):
    """Both have the same documents, chunks and elements; inner chunks may lie in a shard in another order."""
    a_view, b_view = view(a), view(b)
    assert a_view.keys() == b_view.keys()
    assert {k: v for k, v in a_view.items() if k.endswith(".json")} == {k: v for k, v in b_view.items() if k.endswith(".json")}
    assert digest(f"icechunk:{a}") == digest(f"icechunk:{b}")


@pytest.fixture(scope="module", params=LAYOUTS)
def begun(request, files, tmp_path_factory):
    """A repository, and what one process makes of it."""
    top = tmp_path_factory.mktemp("begun")
    tool.nc2zarr("-q", *LAYOUTS[request.param], *files["base"], f"icechunk:{top / 'repo'}").ok()
    for how, change in CHANGES.items():
        shutil.copytree(top / "repo", top / how)
        tool.nc2zarr("-q", *change, *files[how], f"icechunk:{top / how}").ok()
    return top


@pytest.mark.few(2)
@pytest.mark.parametrize("how", CHANGES)
def test_any_number_in_any_order_some_twice(begun, files, how, tmp_path):
    for n in (1, 2, 7):
        repo, old = tmp_path / str(n), icechunk.Repo(begun / "repo").tip()
        shutil.copytree(begun / "repo", repo)
        order = [*range(1, n + 1), *random.Random(n).sample(range(1, n + 1), n // 2)]
        random.Random(n + 1).shuffle(order)
        left = set(range(1, n + 1))
        for k in order:
            if left:
                assert icechunk.Repo(repo).tip() == old
            part(k, n, how, files[how], f"icechunk:{repo}", "--verify", "full").ok()
            left.discard(k)
        same(repo, begun / how)
        assert icechunk.Repo(repo).history()[1] == old and not unreferred(repo)
        assert sorted(os.listdir(f"{repo}.chunkmill")) == ["complete", "plan"]
        # The same again is nothing more; then the repository grows further.
        tip = icechunk.Repo(repo).tip()
        for k in (1, n):
            part(k, n, how, files[how], f"icechunk:{repo}").ok()
        assert icechunk.Repo(repo).tip() == tip
        if how == "append":
            for k in (2, 1):
                part(k, 2, how, files["next"], f"icechunk:{repo}").ok()
            assert icechunk.Repo(repo).history()[1] == tip
            tool.nc2zarr("--check", "--subset", "time=23:26", *files["next"], f"icechunk:{repo}").ok()


@pytest.mark.few(2)
@pytest.mark.parametrize("how", CHANGES)
def test_all_at_once(begun, files, how, tmp_path):
    """And each of them twice."""
    repo = tmp_path / "repo"
    shutil.copytree(begun / "repo", repo)
    argv = [[tool.program("nc2zarr"), "-q", "--part", f"{k}/4", *CHANGES[how], *map(str, files[how]), f"icechunk:{repo}"] for k in (1, 2, 3, 4) * 2]
    running = [subprocess.Popen(a, env=tool.environment({}), stderr=subprocess.PIPE, text=True) for a in argv]
    for child in running:
        err = child.communicate(timeout=300)[1]
        assert child.returncode == 0, err
    same(repo, begun / how)
    assert len(icechunk.Repo(repo).history()) == 3 and not unreferred(repo)


def test_each_chunk_is_one_part_s(begun, files, tmp_path):
    """A chunk that the old end cuts is written once, by whoever's it is; chunks that stay keep their places."""
    repo = tmp_path / "repo"
    shutil.copytree(begun / "repo", repo)
    written = []
    for k in range(1, 4):
        report = tool.nc2zarr("--json", "--verify", "none", "--part", f"{k}/3", *CHANGES["append"], *files["append"], f"icechunk:{repo}").ok()
        written.append({v["name"]: v["nobjects"] + v["nskipped"] for v in json.loads(report.out)["variables"]})
    one = json.loads(tool.nc2zarr("--json", *CHANGES["append"], *files["append"], "--branch", "one", f"icechunk:{again(begun, tmp_path)}").ok().out)
    want = {v["name"]: v["nobjects"] + v["nskipped"] for v in one["variables"]}
    assert {name: sum(w.get(name, 0) for w in written) for name in want} == want
    was, now = (icechunk.Snapshot(repo, i) for i in reversed(icechunk.Repo(repo).history()[:2]))
    before, after = ({n.path: s.references(n) for n in s.nodes if n.is_array} for s in (was, now))
    assert after["/fixed"] == before["/fixed"]
    cut = {index for index in before["/v"] if after["/v"][index] != before["/v"][index]}
    assert all(index[0] == max(before["/v"])[0] for index in cut)


def again(begun, tmp_path):
    shutil.copytree(begun / "repo", tmp_path / "again")
    return tmp_path / "again"


@pytest.mark.every
@pytest.mark.parametrize("how", CHANGES)
def test_a_group_on_a_branch(files, how, tmp_path):
    repo, one = tmp_path / "repo", tmp_path / "one"
    for place in (f"{repo}::deep/er", f"{repo}::other", one):
        tool.nc2zarr("-q", *LAYOUTS["a chunk across the end"], *files["base"], f"icechunk:{place}").ok()
    main, before = icechunk.Repo(repo).tip(), view(repo)
    for k in (2, 1, 2):
        part(k, 2, how, files[how], f"icechunk:{repo}::deep/er", "--branch", "dev", "--message", "more").ok()
    tool.nc2zarr("-q", *CHANGES[how], *files[how], f"icechunk:{one}").ok()
    now = view(repo, "dev")
    assert {k: v for k, v in now.items() if not k.startswith("deep/er/")} == {k: v for k, v in before.items() if not k.startswith("deep/er/")}
    assert {k.removeprefix("deep/er/"): v for k, v in now.items() if k.startswith("deep/er/")} == {
        k: v for k, v in view(one).items()
    }
    there = icechunk.Repo(repo)
    assert there.history("dev")[1] == main and icechunk.Snapshot(repo, there.tip("dev")).message == "more"


def test_onto_references(files, tmp_path):
    """Converted steps beside references: the chunk that the old end cuts is read from its file, where that is allowed."""
    folder, repos = tmp_path / "in", [tmp_path / "repo", tmp_path / "one"]
    folder.mkdir()
    a = folder / "a.nc"
    with netCDF4.Dataset(a, "w") as nc:
        for name, size in (("time", 10), ("y", 96), ("x", 80)):
            nc.createDimension(name, size)
            nc.createVariable(name, "f8", (name,))[:] = np.arange(size)
        nc.createVariable("v", "f4", ("time", "y", "x"), zlib=True, chunksizes=(4, 96, 80))[:] = np.random.default_rng(0).normal(size=(10, 96, 80))
    b = folder / "b.nc"
    with netCDF4.Dataset(b, "w") as nc:
        for name, size, first in (("time", 7, 10), ("y", 96, 0), ("x", 80, 0)):
            nc.createDimension(name, size)
            nc.createVariable(name, "f8", (name,))[:] = np.arange(size) + first
        nc.createVariable("v", "f4", ("time", "y", "x"))[:] = np.random.default_rng(1).normal(size=(7, 96, 80))
    for repo in repos:
        tool.nc2zarr("-q", "--virtual", "icechunk", a, f"icechunk:{repo}").ok()
    for k in (1, 2):
        tool.nc2zarr("-q", "--part", f"{k}/2", "--append", "time", "--allow", folder, b, f"icechunk:{repos[0]}").ok()
    tool.nc2zarr("-q", "--append", "time", "--allow", folder, b, f"icechunk:{repos[1]}").ok()
    want = tool.run("rechunk", "--digest", "--allow", folder, f"icechunk:{repos[1]}").ok().out
    assert tool.run("rechunk", "--digest", "--allow", folder, f"icechunk:{repos[0]}").ok().out == want
    tool.nc2zarr("-q", "--part", "1/2", "--virtual", "icechunk", "--append", "time", b, f"icechunk:{repos[0]}").fails(2, "one process adds references")


# ---- other commits ---------------------------------------------------------------------------------------


def others_commit(repo, tmp_path, *argv):
    """Another program's commit, which takes no lock and looks at no plan."""
    changed = tmp_path / "changed"
    shutil.rmtree(changed, ignore_errors=True)
    shutil.copytree(repo, changed)
    tool.nc2zarr("-q", *argv, f"icechunk:{changed}").ok()
    shutil.copytree(changed, repo, dirs_exist_ok=True, ignore=lambda d, names: ["repo"] if d == str(changed) else [])
    shutil.copy(changed / "repo", repo / "their-repo")
    os.replace(repo / "their-repo", repo / "repo")
    return icechunk.Repo(repo).tip()


@pytest.mark.few(2)
@pytest.mark.parametrize("how", CHANGES)
def test_the_plan_s_snapshot_is_the_base(begun, files, how, tmp_path):
    """Parts that begin after another commit go on with the plan's snapshot; the commit of all is made on top of both."""
    repo = tmp_path / "repo"
    shutil.copytree(begun / "repo", repo)
    part(3, 3, how, files[how], f"icechunk:{repo}").ok()
    with netCDF4.Dataset(tmp_path / "other.nc", "w") as nc:
        nc.createDimension("z", 3)
        nc.createVariable("other", "f8", ("z",))[:] = np.arange(3)
    theirs = others_commit(repo, tmp_path, tmp_path / "other.nc")
    for k in (2, 1):
        assert icechunk.Repo(repo).tip() == theirs
        part(k, 3, how, files[how], f"icechunk:{repo}").ok()
    now = view(repo)
    assert {k for k in now if not k.startswith("other/")} == view(begun / how).keys() and "other/zarr.json" in now
    assert {tuple(x.split()) for x in digest(f"icechunk:{begun / how}").splitlines()} < {tuple(x.split()) for x in digest(f"icechunk:{repo}").splitlines()}
    assert icechunk.Repo(repo).history()[1] == theirs


def change(path, name, dims, values):
    """A file of one variable without coordinates."""
    with netCDF4.Dataset(path, "w") as nc:
        for dim, n in zip(dims, np.shape(values)):
            nc.createDimension(dim, n)
        nc.createVariable(name, np.asarray(values).dtype, dims)[:] = values
    return path


FOREIGN = {
    "the coordinate": ("append replace", "time", ("time",), np.arange(10.0) + 2, "/time: another commit has changed it meanwhile"),
    "another coordinate": ("append replace", "y", ("y",), np.arange(24.0)[::-1], "/y: another commit has changed it meanwhile"),
    "a field that was compared": ("append", "fixed", ("y",), np.arange(24, dtype="i2") + 1, "/fixed: another commit has changed it meanwhile"),
    "another array that would have to grow": ("append", "theirs", ("time",), np.arange(10.0), "/theirs: another commit has added it meanwhile, along time"),
}


@pytest.mark.every
@pytest.mark.parametrize("how,foreign", [(how, k) for how in CHANGES for k in FOREIGN if how in FOREIGN[k][0]])
def test_another_commit_to_what_parts_go_by(files, how, foreign, tmp_path):
    """Steps are found by coordinates, and arrays of a dimension have its length: nothing is committed on top of others."""
    _, name, dims, values, words = FOREIGN[foreign]
    repo = tmp_path / "repo"
    tool.nc2zarr("-q", *LAYOUTS["whole chunks"], *files["base"], f"icechunk:{repo}").ok()
    part(1, 2, how, files[how], f"icechunk:{repo}").ok()
    theirs = others_commit(repo, tmp_path, "--overwrite", change(tmp_path / "theirs.nc", name, dims, values))
    part(2, 2, how, files[how], f"icechunk:{repo}").fails(1, words, "nothing was committed")
    assert icechunk.Repo(repo).tip() == theirs


@pytest.mark.few(2)
@pytest.mark.parametrize("how", CHANGES)
def test_another_commit_to_the_same_arrays(begun, files, how, tmp_path):
    """It is never lost, and no chunk of an array as it was comes into it: all parts begin again with what is there."""
    repo = tmp_path / "repo"
    shutil.copytree(begun / "repo", repo)
    for k in (1, 2):
        part(k, 3, how, files[how], f"icechunk:{repo}").ok()
    other = ("--replace", "time=0:3", make(tmp_path / "other.nc", 0, 3, 9))
    theirs = others_commit(repo, tmp_path, *other)
    part(3, 3, how, files[how], f"icechunk:{repo}").fails(1, "another commit has changed it meanwhile", "nothing was committed", "run all parts again")
    assert icechunk.Repo(repo).tip() == theirs and not unreferred(repo)
    assert not os.path.exists(f"{repo}.chunkmill")
    for k in (1, 2, 3):
        part(k, 3, how, files[how], f"icechunk:{repo}").ok()
    one = again(begun, tmp_path)
    tool.nc2zarr("-q", *other, f"icechunk:{one}").ok()
    tool.nc2zarr("-q", *CHANGES[how], *files[how], f"icechunk:{one}").ok()
    same(repo, one)
    assert icechunk.Repo(repo).history()[1] == theirs


@pytest.mark.parametrize("how", CHANGES)
def test_a_snapshot_that_went(files, how, tmp_path):
    """Parts began with it: the others say so, and which run goes on without them."""
    repo, one = tmp_path / "repo", tmp_path / "one"
    for place in (repo, one):
        tool.nc2zarr("-q", *files["base"], f"icechunk:{place}").ok()
    part(1, 2, how, files[how], f"icechunk:{repo}").ok()
    shutil.rmtree(repo)
    shutil.copytree(one, repo)
    part(2, 2, how, files[how], f"icechunk:{repo}").fails(1, "is not there any more", "one process with --break-lock gives these parts up")
    tool.nc2zarr("-q", "--break-lock", *CHANGES[how], *files[how], f"icechunk:{repo}").ok()
    tool.nc2zarr("-q", *CHANGES[how], *files[how], f"icechunk:{one}").ok()
    same(repo, one)


# ---- the next plan, and others -------------------------------------------------------------------------


def test_others_wait_until_all_are_done(begun, files, tmp_path):
    repo = tmp_path / "repo"
    shutil.copytree(begun / "repo", repo)
    place = f"icechunk:{repo}"
    part(1, 3, "append", files["append"], place).ok()
    status = json.loads(tool.nc2zarr("--json", "--parts-status", place).ok().out)
    assert {p["number"]: p["state"] for p in status["parts"]} == {1: "done", 2: "missing", 3: "missing"}
    part(2, 4, "append", files["append"], place).fails(1, "in 3 parts, not in 4")
    part(2, 3, "append", files["append"][:1], place).fails(1, "1 input more than there are now", "not complete", "--break-lock")
    part(1, 3, "append", files["append"], f"{place}::g").fails(1, "g: no such folder")
    for more in (CHANGES["append"], CHANGES["replace"]):
        tool.nc2zarr("-q", *more, *files[more[0][2:]], place).fails(1, "3 parts write into it", "--break-lock")
    tool.nc2zarr("-q", *files["base"], f"{place}::new").fails(1, "3 parts write into it")
    same(repo, begun / "repo")
    assert unreferred(repo)
    # They are given up, with all that they wrote.
    tool.nc2zarr("-q", "--break-lock", *CHANGES["append"], *files["append"], place).ok()
    same(repo, begun / "append")
    assert not unreferred(repo)
    assert not os.path.exists(f"{repo}.chunkmill")


def test_a_dry_run_of_a_part(begun, files, tmp_path):
    repo = again(begun, tmp_path)
    part(1, 2, "append", files["append"], f"icechunk:{repo}", "--dry-run").ok()
    part(1, 2, "replace", files["replace"], f"icechunk:{repo}", "--dry-run").ok()
    assert not os.path.exists(f"{repo}.chunkmill")


def test_steps_that_are_there(begun, files, tmp_path):
    """They are compared by every part; those that differ are refused, and nothing is changed."""
    repo = again(begun, tmp_path)
    for k in (2, 1):
        part(k, 2, "append", [*files["base"], *files["append"]], f"icechunk:{repo}").ok()
    same(repo, begun / "append")
    other = make(tmp_path / "other.nc", 20, 6, 8)
    for k in (1, 2):
        assert part(k, 2, "append", [other], f"icechunk:{repo}").status in (1, 4)
    same(repo, begun / "append")


def test_chunks_that_are_gone(begun, files, tmp_path):
    """Icechunk's garbage collection removes what nothing refers to: the part whose chunks it was is made again."""
    repo = again(begun, tmp_path)
    there = set((repo / "chunks").iterdir())
    part(1, 2, "append", files["append"], f"icechunk:{repo}").ok()
    for path in set((repo / "chunks").iterdir()) - there:
        path.unlink()
    part(2, 2, "append", files["append"], f"icechunk:{repo}").fails(1, "run part 1 again")
    same(repo, begun / "repo")
    part(1, 2, "append", files["append"], f"icechunk:{repo}").ok()
    same(repo, begun / "append")
    assert not unreferred(repo)


# ---- in a bucket ----------------------------------------------------------------------------------------


@pytest.mark.few
@pytest.mark.parametrize("how", CHANGES)
def test_in_a_bucket(begun, files, how):
    server = objects.Server()
    env, repo = server.environment(), "icechunk:s3://bucket/r"
    try:
        server.put_folder(begun / "repo", "r")
        old, want = digest(repo, env=env), digest(f"icechunk:{begun / how}")
        for k in (3, 1, 3):
            part(k, 3, how, files[how], repo, env=env).ok()
            assert digest(repo, env=env) == old
        status = json.loads(tool.nc2zarr("--json", "--parts-status", repo, env=env).ok().out)
        assert {p["number"]: p["state"] for p in status["parts"]} == {1: "done", 2: "missing", 3: "done"}
        part(2, 3, how, files[how], repo, env=env).ok()
        assert digest(repo, env=env) == want
        assert server.keys("r.chunkmill") == ["r.chunkmill/complete", "r.chunkmill/plan"]
        tip = server.objects["r/repo"]
        part(2, 3, how, files[how], repo, env=env).ok()
        assert server.objects["r/repo"] == tip
    finally:
        server.close()


@pytest.mark.few
@pytest.mark.parametrize("number", [3, 1])
@pytest.mark.parametrize("how", CHANGES)
def test_killed_in_a_bucket(begun, files, how, number, tmp_path):
    """At requests that write, of the first part and of the last, which the server has done or not."""
    server = objects.Server()
    env, repo = server.environment(), "icechunk:s3://bucket/r"
    numbers = [k for k in range(1, 4) if k < number]
    try:
        server.put_folder(begun / "repo", "r")
        template = dict(server.objects)
        old, want = digest(repo, env=env), digest(f"icechunk:{begun / how}")
        for nth, done in [(n, n % 2 == 0) for n in spread(30, paths.tries(2, 16, 30))]:
            server.objects.clear()
            server.objects.update(template)
            server.uploads.clear()
            for k in numbers:
                part(k, 3, how, files[how], repo, env=env).ok()
            command = ("-q", "-j", "1", "--object-size", "4KiB", "--part", f"{number}/3", *CHANGES[how], *files[how], repo)
            objects.kill_at(server, nth, done, *command)
            assert digest(repo, env=env) in (old, want), nth
            for k in (*numbers, *range(number, 4)):
                part(k, 3, how, files[how], repo, env=env).ok()
            assert digest(repo, env=env) == want, nth
            assert server.keys("r.chunkmill") == ["r.chunkmill/complete", "r.chunkmill/plan"], nth
            assert template.keys() <= server.objects.keys(), nth
            assert len(icechunk.Repo(server.get_folder("r", tmp_path / f"got{nth}")).history()) == 3, nth
    finally:
        server.close()


def spread(count, most):
    return sorted({1 + i * (count - 1) // max(most - 1, 1) for i in range(min(most, count))})
