"""A repository of references grows by references: new chunks stay in their files, and old ones are not looked at."""

import json
import os
import re
import shutil

import netCDF4
import numpy as np
import pytest

from support import icechunk, tool

V = {"dtype": "f4", "chunks": (1, 24, 40), "zlib": True, "fill_value": -1}


def month(path, first, n, seed=0, groups=("",), kind="NETCDF4", **more):
    """N steps of a field, small arrays along time, and fields without it."""
    form = V | more
    with netCDF4.Dataset(path, "w", format=kind) as nc:
        for group in (nc.createGroup(g) if g else nc for g in groups):
            for name, start, size in (("time", first, n), ("y", 0, 48), ("x", 0, 40)):
                group.createDimension(name, None if kind.startswith("NETCDF3") and name == "time" and form["chunks"] else size)
                group.createVariable(name, "f8", (name,))[:] = np.arange(size) + start
            storage = {} if kind.startswith("NETCDF3") else {"chunksizes": form["chunks"], "zlib": form["zlib"], "contiguous": form["chunks"] is None}
            v = group.createVariable("v", form["dtype"], ("time", "y", "x"), fill_value=form["fill_value"], **storage)
            v.set_auto_maskandscale(False)
            for k in ("scale_factor", "units"):
                if k in more:
                    v.setncattr(k, more[k])
            values = np.random.default_rng(seed).normal(size=(n, 48, 40))
            if "hole" not in more:
                v[:] = values
            else:
                v[: more["hole"]] = values[: more["hole"]]
            group.createVariable("n", "i4", ("time",))[:] = np.arange(n) * 7 + seed
            group.createVariable("fixed", "i2", ("y",))[:] = np.arange(48)
    return path


@pytest.fixture
def months(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return [month(folder / f"{i}.nc", first, n, i) for i, (first, n) in enumerate([(0, 31), (31, 28), (59, 31), (90, 30)])]


def digest(place, *options):
    return tool.run("rechunk", "--digest", *options, place).ok().out


def refer(*argv):
    return tool.nc2zarr("--virtual", "icechunk", *argv)


def tip(repo, branch="main"):
    return icechunk.Snapshot(repo, icechunk.Repo(repo).tip(branch))


def references(repo, path="/v"):
    snapshot = tip(repo)
    (node,) = [n for n in snapshot.nodes if n.path == path]
    return snapshot.references(node)


def files_of(refs):
    return sorted({os.path.basename(ref[0]) for ref in refs.values() if isinstance(ref[0], str)})


def all_files(repo):
    return sorted(p for p in repo.rglob("*") if p.is_file())


@pytest.mark.parametrize("form", [{}, {"kind": "NETCDF3_64BIT_OFFSET"}, {"chunks": None, "zlib": False}, {"dtype": "i1"}, {"chunks": (1, 48, 40), "zlib": False}])
def test_months(form, tmp_path):
    """As the store of all of them; each commit keeps all references of the one before."""
    folder, repo, store = tmp_path / "in", tmp_path / "repo", tmp_path / "store.zarr"
    folder.mkdir()
    a, b, c, d = (month(folder / f"{i}.nc", first, n, i, **form) for i, (first, n) in enumerate([(0, 10), (10, 10), (20, 20), (40, 10)]))
    refer("-q", a, f"icechunk:{repo}").ok()
    before, seen = references(repo), {}
    for new in ([b], [c, d]):
        done = refer("--append", "time", *new, f"icechunk:{repo}").ok()
        assert "references" in done.out and "time " in done.out
        now = references(repo)
        assert {k: now[k] for k in before} == before and files_of(now) == sorted({*files_of(before), *(f.name for f in new)})
        assert not [r for r in now.values() if not isinstance(r[0], str)]
        before = now
        history = {i: icechunk.Snapshot(repo, i).store() for i in icechunk.Repo(repo).history()}
        assert {i: history[i] for i in seen} == seen, "an older snapshot is another"
        seen = history
    tool.nc2zarr("-q", a, b, c, d, store).ok()
    assert digest(f"icechunk:{repo}", "--allow", folder) == digest(store)
    tool.nc2zarr("-q", "--check", "--allow", folder, a, b, c, d, f"icechunk:{repo}").ok()
    assert len(icechunk.Repo(repo).history()) == 4 and not os.path.exists(f"{repo}.chunkmill")


def test_files_are_not_read(months, tmp_path):
    """Chunks of new files are not decoded, and the files of old references need not be there."""
    repo = tmp_path / "repo"
    refer("-q", months[0], f"icechunk:{repo}").ok()
    months[0].rename(tmp_path / "away.nc")
    data = bytearray(months[1].read_bytes())
    at = data.find(b"\x78", 20000)  # a chunk's first bytes, by zlib
    data[at : at + 2000] = bytes(2000)
    months[1].write_bytes(data)
    refer("-q", "--append", "time", months[1], f"icechunk:{repo}").ok()
    assert files_of(references(repo)) == ["0.nc", "1.nc"]


def test_nothing_new(months, tmp_path):
    """The command of every night names all files: what is referred to already is neither read nor committed again."""
    repo = tmp_path / "repo"
    refer("-q", *months[:2], f"icechunk:{repo}").ok()
    before = all_files(repo)
    assert "Nothing is to be added" in refer("--append", "time", *months[:2], f"icechunk:{repo}").ok().out
    assert all_files(repo) == before and not os.path.exists(f"{repo}.chunkmill")
    refer("-q", "--append", "time", *months, f"icechunk:{repo}").ok()
    assert files_of(references(repo)) == [f"{i}.nc" for i in range(4)]
    assert len(references(repo)) == 120 * 2
    other = month(tmp_path / "other.nc", 0, 31, 0)
    refer("--append", "time", other, f"icechunk:{repo}").fails(1, "--allow")


def test_a_dry_run(months, tmp_path):
    repo = tmp_path / "repo"
    refer("-q", months[0], f"icechunk:{repo}").ok()
    before = all_files(repo)
    done = refer("--append", "time", "--dry-run", months[1], f"icechunk:{repo}").ok()
    assert "time 31 to 59" in done.out and all_files(repo) == before
    other = month(tmp_path / "in" / "other.nc", 31, 4, chunks=(1, 48, 40))
    refer("--append", "time", "--dry-run", other, f"icechunk:{repo}").fails(1, "its chunks are")


def test_a_group_and_a_branch(tmp_path):
    """Only what lies in it grows."""
    folder, repo = tmp_path / "in", tmp_path / "repo"
    folder.mkdir()
    a, b = month(folder / "a.nc", 0, 8), month(folder / "b.nc", 8, 8, 1)
    refer("-q", a, f"icechunk:{repo}").ok()
    refer("-q", a, f"icechunk:{repo}::deep/er").ok()
    top = references(repo)
    refer("-q", "--append", "time", "--branch", "dev", "--message", "more", b, f"icechunk:{repo}::deep/er").ok()
    assert references(repo, "/deep/er/v").keys() == top.keys()
    there = icechunk.Snapshot(repo, icechunk.Repo(repo).tip("dev"))
    refs = {n.path: there.references(n) for n in there.nodes if n.is_array}
    assert there.message == "more" and refs["/v"] == top and len(refs["/deep/er/v"]) == 32
    tool.nc2zarr("-q", a, b, tmp_path / "both.zarr").ok()
    tool.run("rechunk", "-q", "--allow", folder, f"icechunk:{repo}@dev::deep/er", tmp_path / "copy.zarr").ok()
    assert digest(tmp_path / "copy.zarr") == digest(tmp_path / "both.zarr")


def test_along_another_dimension(tmp_path):
    """Numbers of chunks change where the first dimension is not the one that grows."""

    def make(path, first, n, seed):
        with netCDF4.Dataset(path, "w") as nc:
            for name, start, size in (("member", 0, 3), ("time", first, n), ("x", 0, 2000)):
                nc.createDimension(name, size)
                nc.createVariable(name, "f8", (name,))[:] = np.arange(size) + start
            v = nc.createVariable("v", "f4", ("member", "time", "x"), zlib=True, chunksizes=(1, 2, 500))
            v[:] = np.random.default_rng(seed).normal(size=(3, n, 2000))
        return path

    folder, repo = tmp_path / "in", tmp_path / "repo"
    folder.mkdir()
    files = [make(folder / f"{i}.nc", 4 * i, 4, i) for i in range(4)]
    refer("-q", files[0], f"icechunk:{repo}").ok()
    refer("-q", "--append", "time", files[1], f"icechunk:{repo}").ok()
    refer("-q", "--append", "time", *files[2:], f"icechunk:{repo}").ok()
    tool.nc2zarr("-q", *files, tmp_path / "store.zarr").ok()
    assert digest(f"icechunk:{repo}", "--allow", folder) == digest(tmp_path / "store.zarr")


def test_rows_of_several_files(tmp_path):
    """Contiguous data have no chunk of a part of a row."""
    folder, place = tmp_path / "in", f"icechunk:{tmp_path / 'repo'}"
    folder.mkdir()
    for i in range(2):
        with netCDF4.Dataset(folder / f"{i}.nc", "w") as nc:
            for name, start, size in (("member", 0, 30), ("time", 4 * i, 4), ("x", 0, 80)):
                nc.createDimension(name, size)
                nc.createVariable(name, "f8", (name,))[:] = np.arange(size) + start
            nc.createVariable("v", "f4", ("member", "time", "x"), contiguous=True)[:] = i
    refer("-q", folder / "0.nc", place).ok()
    refer("--append", "time", folder / "1.nc", place).fails(1, "it is contiguous, and several files have elements of one row")
    tool.nc2zarr("-q", "--append", "time", folder / "1.nc", place).ok()
    tool.nc2zarr("-q", "--check", "--allow", folder, folder / "0.nc", folder / "1.nc", place).ok()


def test_by_url(months, tmp_path):
    """The references are to the place that is named, below a container of the repository."""
    repo, url = tmp_path / "repo", "s3://bucket/era5"
    refer("-q", "--base-url", url, months[0], f"icechunk:{repo}").ok()
    refer("--append", "time", months[1], f"icechunk:{repo}").fails(2, "no container", "--allow", "file:///")
    refer("--append", "time", "--base-url", "s3://bucket/era6", months[1], f"icechunk:{repo}").fails(2, "s3://bucket/era6/1.nc", "no container")
    refer("-q", "--append", "time", "--base-url", url, months[1], f"icechunk:{repo}").ok()
    refer("-q", "--append", "time", "--base-url", "s3://bucket/era6", "--allow", "s3://bucket/era6", months[2], f"icechunk:{repo}").ok()
    assert {(r[0], r[3]) for r in references(repo).values()} == {(f"{url}/0.nc", 0), (f"{url}/1.nc", 0), ("s3://bucket/era6/2.nc", 0)}
    assert "Nothing is to be added" in refer("--append", "time", "--base-url", url, *months[:2], f"icechunk:{repo}").ok().out


REFUSED = {
    "chunks": ({"chunks": (1, 48, 40)}, "its chunks are 1x48x40, and 1x24x40 in the repository"),
    "codec": ({"zlib": False}, "its codec is"),
    "fill": ({"fill_value": -2}, "its fill value in"),
    "type": ({"dtype": "i2"}, "its elements are int16 in"),
    "contiguous": ({"chunks": None, "zlib": False}, "chunks in the repository are not rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_differs(name, months, tmp_path):
    """Of an array that the repository refers to, with the reason; without --virtual it is converted."""
    more, words = REFUSED[name]
    repo, place = tmp_path / "repo", f"icechunk:{tmp_path / 'repo'}"
    refer("-q", months[0], place).ok()
    before = all_files(repo)
    other = month(months[0].parent / "other.nc", 31, 4, 5, **more)
    refer("--append", "time", other, place).fails(1, "array v: its new chunks cannot be referred to", words, "without --virtual they are converted")
    assert all_files(repo) == before and not os.path.exists(f"{repo}.chunkmill")
    tool.nc2zarr("-q", "--append", "time", other, place).ok()
    tool.nc2zarr("-q", months[0], tmp_path / "store.zarr").ok()
    tool.nc2zarr("-q", "--append", "time", other, tmp_path / "store.zarr").ok()
    assert digest(place, "--allow", months[0].parent) == digest(tmp_path / "store.zarr")


def test_refusals(months, tmp_path):
    repo = tmp_path / "repo"
    place = f"icechunk:{repo}"
    refer("--append", "time", months[1], place).fails(1, "there is no store to add to")
    refer("-q", months[0], place).ok()
    refer("--replace", "time=0:31", months[0], place).fails(2, "--virtual", "--replace")
    refer("--append", "time", "--verify", "full", months[1], place).fails(2, "--verify full", "--check")
    refer("--append", "time", "--base-url", "bucket", months[1], place).fails(2, "is not a URL")
    refer("--append", "time", months[1], tmp_path / "store.zarr").fails(2, "--virtual icechunk", "is not icechunk:PATH")
    tool.nc2zarr("--virtual", "json", "--append", "time", months[1], place).fails(2, "json")
    parts = refer("--append", "time", "--part", "1/2", months[1], place)
    assert parts.status == 2 and "one process adds references" in parts.err
    refer("--append", "time", "--merge-along", "y=1,2", months[1], place).fails(2, "--merge-along")
    assert not os.path.exists(f"{repo}.chunkmill")


def test_the_end_cuts_a_chunk(tmp_path):
    """Its chunk holds elements of both; without --virtual it is read, where that is allowed."""
    folder, repo = tmp_path / "in", tmp_path / "repo"
    folder.mkdir()
    place = f"icechunk:{repo}"
    a, b, c = (month(folder / f"{i}.nc", first, n, i, chunks=(4, 24, 40)) for i, (first, n) in enumerate([(0, 8), (8, 6), (14, 6)]))
    refer("-q", a, place).ok()
    refer("-q", "--append", "time", b, place).ok()
    refer("--append", "time", c, place).fails(1, "array v", "it has 14 elements along time, in chunks of 4")
    tool.nc2zarr("--append", "time", c, place).fails(1, "lies outside the repository; --allow", str(folder))
    assert len(icechunk.Repo(repo).history()) == 3 and not os.path.exists(f"{repo}.chunkmill")
    tool.nc2zarr("-q", "--append", "time", "--allow", folder, c, place).ok()
    refs = references(repo)
    assert files_of(refs) == ["0.nc", "1.nc"]
    assert {k[0] for k, r in refs.items() if not isinstance(r[0], str)} == {3, 4}
    tool.nc2zarr("-q", a, b, c, tmp_path / "store.zarr").ok()
    assert digest(place, "--allow", folder) == digest(tmp_path / "store.zarr")
    tool.nc2zarr("-q", "--check", "--allow", folder, a, b, c, place).ok()


def test_what_fills_no_chunk_is_held_back(tmp_path):
    folder, repo = tmp_path / "in", tmp_path / "repo"
    folder.mkdir()
    place = f"icechunk:{repo}"
    a, b = (month(folder / f"{i}.nc", first, n, i, chunks=(4, 24, 40)) for i, (first, n) in enumerate([(0, 8), (8, 6)]))
    c = month(folder / "c.nc", 14, 6, 2, chunks=(2, 24, 40))
    refer("-q", a, place).ok()
    done = refer("--append", "time", "--append-rest", "hold", b, place).ok()
    assert "Held back" in done.out and {k[0] for k in references(repo)} == {0, 1, 2}
    refer("--append", "time", b, c, place).fails(1, "cannot be referred to")
    tool.nc2zarr("-q", "--subset", "time=0:12", a, b, tmp_path / "store.zarr").ok()
    assert digest(place, "--allow", folder) == digest(tmp_path / "store.zarr")


def test_beside_references(months, tmp_path):
    """Whole chunks that are converted need nothing of the others; a replacement neither, where it has whole chunks."""
    repo, place = tmp_path / "repo", f"icechunk:{tmp_path / 'repo'}"
    refer("-q", months[0], place).ok()
    months[0].rename(months[0].parent / "away")
    tool.nc2zarr("-q", "--append", "time", months[1], place).ok()
    (months[0].parent / "away").rename(months[0])
    refer("-q", "--append", "time", months[2], place).ok()
    refs = references(repo)
    assert files_of(refs) == ["0.nc", "2.nc"] and len(refs) == 90 * 2
    new = month(tmp_path / "new.nc", 3, 4, 9)
    tool.nc2zarr("--replace", "time=3:7", new, place).fails(1, "lies outside the repository; --allow", str(months[0].parent))
    tool.nc2zarr("-q", "--replace", "time=3:7", "--allow", months[0].parent, new, place).ok()
    refs = references(repo)
    assert {k[0] for k, r in refs.items() if not isinstance(r[0], str)} == {*range(31, 59), *range(3, 7)}
    tool.nc2zarr("-q", *months[:3], tmp_path / "store.zarr").ok()
    tool.nc2zarr("-q", "--replace", "time=3:7", new, tmp_path / "store.zarr").ok()
    assert digest(place, "--allow", months[0].parent) == digest(tmp_path / "store.zarr")


def test_a_file_that_is_delivered_again(months, tmp_path):
    """No reader takes its chunks any more: the steps are converted anew, and then files are added as before."""
    repo, place = tmp_path / "repo", f"icechunk:{tmp_path / 'repo'}"
    allow = ["--allow", months[0].parent]
    refer("-q", *months[:3], place).ok()
    os.utime(months[1], (2e9, 2e9))
    before = all_files(repo)
    tool.nc2zarr("--append", "time", *allow, *months, place).fails(1, "1.nc has changed since the reference to it was made; its chunks have to be replaced")
    month(months[1], 31, 28, 9)
    os.utime(months[1], (2e9, 2e9))
    for options in [], allow:
        r = refer("--append", "time", *options, *months, place).fails(1, "1.nc: it has changed since the references of v to it were made", "--replace time=31:59 (with --allow)")
        assert "permits" not in r.err, str(r)
    assert all_files(repo) == before
    r = tool.nc2zarr("--replace", "time=31:59", *allow, months[1], place).ok()
    assert re.search("array v: changes are not counted: .*1.nc has changed since", r.err) and "Changed in v" not in r.out and "Changed in n: " in r.out, str(r)
    assert files_of(references(repo)) == ["0.nc", "2.nc"]
    refer("-q", "--append", "time", *months, place).ok()
    assert files_of(references(repo)) == ["0.nc", "2.nc", "3.nc"]
    tool.nc2zarr("-q", *months, tmp_path / "store.zarr").ok()
    assert digest(place, *allow) == digest(tmp_path / "store.zarr")


def test_the_same_again_is_committed(months, tmp_path):
    """Values that cannot be read may be those of the file: nothing says that there is nothing to replace."""
    repo, place = tmp_path / "repo", f"icechunk:{tmp_path / 'repo'}"
    refer("-q", *months[:2], place).ok()
    os.utime(months[1], (2e9, 2e9))
    tool.nc2zarr("-q", "--replace", "time=31:59", "--allow", months[0].parent, months[1], place).ok()
    assert files_of(references(repo)) == ["0.nc"]


def test_a_converted_repository(months, tmp_path):
    """Arrays that it holds converted grow so, and a note says it."""
    repo, place = tmp_path / "repo", f"icechunk:{tmp_path / 'repo'}"
    tool.nc2zarr("-q", "--chunks", "v:4x48x40", months[0], place).ok()
    done = refer("-v", "--append", "time", months[1], place).ok()
    assert "array v: the repository has its chunks" in done.out + done.err
    assert not files_of(references(repo))
    tool.nc2zarr("-q", *months[:2], tmp_path / "store.zarr").ok()
    assert digest(place) == digest(tmp_path / "store.zarr")


def test_chunks_that_are_not_stored(tmp_path):
    """Are the fill value, as in the file."""
    folder, repo = tmp_path / "in", tmp_path / "repo"
    folder.mkdir()
    place = f"icechunk:{repo}"
    a, b, c = month(folder / "a.nc", 0, 8, 0, hole=4), month(folder / "b.nc", 8, 8, 1, hole=2), month(folder / "c.nc", 16, 8, 2, hole=0)
    refer("-q", a, place).ok()
    refer("-q", "--append", "time", b, place).ok()
    refer("-q", "--append", "time", c, place).ok()
    assert sorted({k[0] for k in references(repo)}) == [0, 1, 2, 3, 8, 9]
    tool.nc2zarr("-q", a, b, c, tmp_path / "store.zarr").ok()
    assert digest(place, "--allow", folder) == digest(tmp_path / "store.zarr")


def test_manifests_that_stay(tmp_path):
    """Of more references than one manifest has, those of the first 65,536 keep theirs."""

    def make(path, first, n):
        with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as nc:
            nc.createDimension("time", None)
            nc.createDimension("x", 2)
            for name, dims in (("time", ("time",)), ("v", ("time", "x")), ("w", ("time", "x"))):  # rows of each lie between others
                nc.createVariable(name, "f8", dims)
            nc["time"][:] = np.arange(first, first + n)
            nc["v"][:] = nc["w"][:] = np.arange(2 * first, 2 * (first + n)).reshape(n, 2)
        return path

    folder, repo = tmp_path / "in", tmp_path / "repo"
    folder.mkdir()
    a, b, c = make(folder / "a.nc", 0, 65540), make(folder / "b.nc", 65540, 2), make(folder / "c.nc", 65542, 3)
    refer("-q", a, f"icechunk:{repo}").ok()
    manifests = []
    for step in ([], [b], [c]):
        if step:
            refer("-q", "--append", "time", *step, f"icechunk:{repo}").ok()
        (node,) = [x for x in tip(repo).nodes if x.path == "/v"]
        manifests.append(node.manifests)
    assert [len(m) for m in manifests] == [2, 2, 2]
    assert manifests[0][0] == manifests[1][0] == manifests[2][0] and len({m[1][0] for m in manifests}) == 3
    some = ["-q", "--subset", "time=65500:65545"]  # across the ends of files and of manifests
    tool.nc2zarr(*some, a, b, c, tmp_path / "store.zarr").ok()
    tool.run("rechunk", *some, "--allow", folder, f"icechunk:{repo}", tmp_path / "copy.zarr").ok()
    assert digest(tmp_path / "copy.zarr") == digest(tmp_path / "store.zarr")


def test_fields_that_do_not_grow(tmp_path):
    """A large one is referred to by the first file: of another file it is compared, where that is allowed."""

    def make(path, first, n, more=0):
        month(path, first, n, first)
        with netCDF4.Dataset(path, "a") as nc:
            nc.createDimension("z", 9000)
            nc.createVariable("field", "f8", ("z",), zlib=True, chunksizes=(3000,))[:] = np.arange(9000.0) + more
        return path

    folder, repo = tmp_path / "in", tmp_path / "repo"
    folder.mkdir()
    place = f"icechunk:{repo}"
    a, b, c = make(folder / "a.nc", 0, 4), make(folder / "b.nc", 4, 4), make(folder / "c.nc", 8, 4, 1)
    refer("-q", a, place).ok()
    refer("--append", "time", b, place).fails(1, "--allow")
    refer("-q", "--append", "time", "--allow", folder, b, place).ok()
    assert refer("--append", "time", "--allow", folder, c, place).status != 0
    refer("-q", "--append", "time", "--exclude", "field", c, place).ok()
    assert files_of(references(repo)) == ["a.nc", "b.nc", "c.nc"] and files_of(references(repo, "/field")) == ["a.nc"]
    shutil.rmtree(folder)


def test_files_that_overlap(months, tmp_path):
    """Steps that another file has too are read from the first, where that is allowed; behind them it is referred to."""
    folder, repo, place = months[0].parent, tmp_path / "repo", f"icechunk:{tmp_path / 'repo'}"
    refer("-q", months[0], place).ok()
    with netCDF4.Dataset(months[0]) as a, netCDF4.Dataset(month(folder / "over.nc", 28, 6, 4), "a") as over:
        for name in ("v", "n"):
            over[name][:3] = a[name][28:]
    refer("--append", "time", folder / "over.nc", place).fails(1, "--allow", str(folder))
    refer("-q", "--append", "time", "--allow", folder, folder / "over.nc", place).ok()
    refs = references(repo)
    assert {k[0]: os.path.basename(r[0]) for k, r in refs.items() if k[0] >= 28} == {k: "0.nc" if k < 31 else "over.nc" for k in range(28, 34)}
    tool.nc2zarr("-q", "--along", "time", months[0], folder / "over.nc", tmp_path / "store.zarr").ok()
    assert digest(place, "--allow", folder) == digest(tmp_path / "store.zarr")


def test_a_link_to_the_folder(months, tmp_path):
    """References have the files' own places, by whichever path these are named."""
    repo, place = tmp_path / "repo", f"icechunk:{tmp_path / 'repo'}"
    (tmp_path / "link").symlink_to(months[0].parent)
    refer("-q", months[0], place).ok()
    refer("-q", "--append", "time", *(tmp_path / "link" / f.name for f in months[:2]), place).ok()
    assert len({os.path.dirname(r[0]) for r in references(repo).values()}) == 1 and len(icechunk.Repo(repo).history()) == 3


def test_what_a_document_says(months, tmp_path):
    """The numbers of references are those of the commit."""
    place = f"icechunk:{tmp_path / 'repo'}"
    for path in months[:2]:
        with netCDF4.Dataset(path, "a") as nc:
            nc.createVariable("w", "f8", ("time", "y"))[:] = 1  # converted, and no chunk of the manifest
    first = json.loads(refer("--json", months[0], place).ok().out)["output"]
    assert (first["nreferences"], first["ninline"]) == (31 * 2, 6) and len(references(tmp_path / "repo")) == 31 * 2
    said = json.loads(refer("--json", "--append", "time", months[1], place).ok().out)
    assert said["output"]["nreferences"] == 28 * 2 and said["append"]["length"] == 59
