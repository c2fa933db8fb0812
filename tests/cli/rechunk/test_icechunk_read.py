"""Icechunk repositories as sources."""

import json
import os

import netCDF4
import numcodecs
import numpy as np
import pytest
from support import icechunk, paths, repositories, tool

NC2ZARR, RECHUNK, CHUNKCALC = "nc2zarr", "rechunk", "chunkcalc"
run = tool.run


@pytest.fixture
def repo(tmp_path):
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as d:
        d.createDimension("t", 24)
        d.createDimension("x", 300)
        d.createVariable("a", "f4", ("t", "x"))[:] = np.arange(7200).reshape(24, 300) % 977
        d.createGroup("g").createVariable("n", "i2", ("t",))[:] = range(24)
    run(NC2ZARR, tmp_path / "in.nc", tmp_path / "z.zarr").ok()
    run(NC2ZARR, "--chunks", "a:6x100", tmp_path / "in.nc", f"icechunk:{tmp_path / 'repo'}").ok()
    return tmp_path / "repo"


def digest(source):
    return run(RECHUNK, "--digest", source).ok().out


def test_round_trip(repo, tmp_path):
    expected = digest(tmp_path / "z.zarr")
    tip = icechunk.letters(icechunk.Repo(repo).tip())
    for version in ("", "@main", f"@{tip}"):
        assert digest(f"icechunk:{repo}{version}") == expected
    assert digest(repo) == expected
    run(RECHUNK, f"icechunk:{repo}", tmp_path / "o.zarr").ok()
    run(RECHUNK, f"icechunk:{repo}", f"icechunk:{tmp_path / 'b'}").ok()
    assert digest(tmp_path / "o.zarr") == digest(f"icechunk:{tmp_path / 'b'}") == expected
    run(CHUNKCALC, f"icechunk:{repo}").ok()


@pytest.mark.parametrize("loader", ["map", "planned"])
def test_a_repository_at_hand_has_the_workers_of_a_folder(repo, tmp_path, loader):
    """As references have whose file is at hand: only a network is waited for by more threads than there are CPUs."""
    run(NC2ZARR, "--virtual", "json", tmp_path / "in.nc", tmp_path / "refs.json").ok()
    bench = ("--sample", "2x50", "--batch", 4, "--batches", 2, "--epochs", 1, "--step-time", "0ms", "--variable", "a", "--loader", loader)
    found = []
    for store in (tmp_path / "z.zarr", repo, f"icechunk:{repo}", tmp_path / "refs.json"):
        (session,) = run("readbench", "--no-out", "--json", *bench, store).json()["sessions"]
        found.append((session["loader"]["workers"], session["loader"]["worker_threads"]))
    assert len(set(found)) == 1, found


@pytest.mark.parametrize("name", repositories.NAMES)
def test_repositories_of_icechunk(name, tmp_path):
    """Of each format: branches, tags, split manifests, absent chunks, amended, moved and expired."""
    path, versions = repositories.unpack(name, tmp_path)
    for version, rows in versions.items():
        if version != "@virtual":
            assert [line.split() for line in digest(f"icechunk:{path}{version}").splitlines()] == rows, version
    assert [line.split() for line in digest(path).splitlines()] == versions["@main"]
    run(RECHUNK, "--digest", f"icechunk:{path}@tag:gone").fails(1, "tag gone")
    run(RECHUNK, "--digest", f"icechunk:{path}@1CECHNKREP0F1RSTCMT1").fails(1, "has no branch 1CECH", "dev, main")


def test_a_census(tmp_path):
    """Of chunks in files, in manifests, in files outside, and absent; sizes need no request."""
    path, _ = repositories.unpack("two", tmp_path)
    said = run(CHUNKCALC, "--audit", f"icechunk:{path}@virtual").ok().out
    assert "23 of 25 chunks are absent" in said
    assert "10 chunks are in manifests." in said
    assert "41 chunks are in files outside the repository (virtual)." in said
    found = json.loads(run(CHUNKCALC, "--audit", "--json", f"icechunk:{path}").ok().out)["census"]
    assert found["repository"] == {"inline": 10, "virtual": 0}
    assert {a["name"]: a["present"] for a in found["arrays"]} == {"a": 12, "g/hole": 2, "g/more": 3, "s": 1, "t": 4}


@pytest.mark.parametrize("kind", ["repo", "snapshots", "manifests"] if paths.LONG else ["manifests"])
def test_bombs(kind, repo):
    """A file that decodes to more than memory allows is refused before."""
    place = repo / kind
    for path in [place] if place.is_file() else place.iterdir():
        path.write_bytes(path.read_bytes()[:39] + bytes(numcodecs.Zstd(1).encode(bytes(100 << 20))))
    done = run(RECHUNK, "--digest", "--memory", "64MiB", f"icechunk:{repo}", peak=True).fails(1, kind, "does not fit the memory", "--memory")
    assert done.peak < 200 << 20


@pytest.mark.parametrize("text", ["{", "[]", '{"snapshot": 1}', '{"snapshot": "1CECHNKREP0F1RSTCMTU"}', '{"snapshot": "../../../../x"}', "x" * 5000])
def test_a_branch_that_is_no_branch(text, tmp_path):
    path, _ = repositories.unpack("one", tmp_path)
    (path / "refs/branch.main/ref.json").write_text(text)
    run(RECHUNK, "--digest", f"icechunk:{path}").fails(1, "refs/branch.main/ref.json")


def test_an_at_sign_in_a_path(tmp_path):
    """A path that exists wins over a branch."""
    path, versions = repositories.unpack("two", tmp_path / "a@dev")
    for place, version in (("a@dev", "@main"), ("a@dev@main", "@main"), ("a@dev@dev", "@dev")):
        assert [line.split() for line in digest(f"icechunk:{tmp_path / place}").splitlines()] == versions[version]
    path.rename(tmp_path / "a")
    assert [line.split() for line in digest(f"icechunk:{tmp_path / 'a@dev'}").splitlines()] == versions["@dev"]


def test_what_is_not_there(repo):
    run(RECHUNK, "--digest", f"icechunk:{repo}@dev").fails(1, "has no branch dev; there are: main")
    run(RECHUNK, "--digest", f"icechunk:{repo}@tag:v1").fails(1, "has no tag v1; there are: none")
    for folder in ("chunks", "manifests", "snapshots"):
        kept = {p: p.read_bytes() for p in (repo / folder).iterdir()}
        for n in (0, 20, -1):
            for p, data in kept.items():
                p.write_bytes(data[:n])
            run(RECHUNK, "--digest", f"icechunk:{repo}").fails(1, folder)
        for p, data in kept.items():
            p.write_bytes(data)


def test_a_pipe_is_not_waited_for(repo, tmp_path):
    """A store that has a pipe where a repository has its file: nobody writes into it."""
    expected = digest(tmp_path / "z.zarr")
    os.mkfifo(tmp_path / "z.zarr" / "repo")
    assert run(RECHUNK, "--digest", tmp_path / "z.zarr", timeout=60).ok().out == expected
