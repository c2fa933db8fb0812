"""Chunks that lie in files outside a repository: read only where the user allows it."""

import os
import struct

import netCDF4
import numcodecs
import numpy as np
import pytest
from support import icechunk, objects, tool

RECHUNK = "rechunk"
run = tool.run


@pytest.fixture
def made(tmp_path):
    """A file, and a repository whose chunks lie in it."""
    nc = tmp_path / ("a longer name, so that other locations fit in its place. " + "x" * 60 + ".nc")
    with netCDF4.Dataset(nc, "w") as d:
        d.createDimension("t", 64)
        d.createDimension("x", 400)
        d.createVariable("a", "f4", ("t", "x"), chunksizes=(16, 100), zlib=True)[:] = np.arange(25600).reshape(64, 400) % 977
    run("nc2zarr", "--virtual", "icechunk", nc, f"icechunk:{tmp_path / 'repo'}").ok()
    return nc, tmp_path / "repo"


def refused(repo, *words, options=(), env=None):
    said = run(RECHUNK, "--digest", *options, f"icechunk:{repo}", env=env).fails(1, *words)
    assert said.out == "" and "root:" not in said.err
    return said


def relocate(repo, location):
    """Lets all chunks lie at LOCATION."""
    for path in (repo / "manifests").iterdir():
        data = path.read_bytes()
        flat = bytearray(numcodecs.Zstd().decode(data[39:]))
        at = 0
        while (at := flat.find(b"file://", at)) >= 0:
            (n,) = struct.unpack_from("<I", flat, at - 4)
            assert len(location) <= n
            struct.pack_into("<I", flat, at - 4, len(location))
            flat[at : at + len(location) + 1] = location + b"\0"
            at += n
        path.write_bytes(data[:39] + bytes(numcodecs.Zstd().encode(bytes(flat))))


def test_where_the_user_allows_it(made, tmp_path):
    nc, repo = made
    said = refused(repo, "lies outside the repository; --allow").err
    option = said[said.index("--allow ") :].removesuffix(" permits it\n").split(" ", 1)
    assert option == ["--allow", str(tmp_path)]
    expected = run(RECHUNK, "--digest", nc).ok().out
    for place in (tmp_path, f"file://{tmp_path}", nc):
        assert run(RECHUNK, "--digest", "--allow", place, f"icechunk:{repo}").ok().out == expected
    refused(repo, "--allow", options=["--allow", tmp_path / "repo"])
    assert "16x100" in run("chunkcalc", "--allow", tmp_path, f"icechunk:{repo}").ok().out
    run(RECHUNK, "--allow", tmp_path, "--chunks", "a:t=64,x=50", repo, tmp_path / "o.zarr").ok()
    assert run(RECHUNK, "--digest", tmp_path / "o.zarr").ok().out == expected


def test_a_file_that_changed(made, tmp_path):
    nc, repo = made
    os.utime(nc, (2e9, 2e9))
    refused(repo, "has changed since the reference to it was made", options=["--allow", tmp_path])
    os.utime(nc, (1e9, 1e9))
    run(RECHUNK, "--digest", "--allow", tmp_path, f"icechunk:{repo}").ok()
    os.truncate(nc, 5000)
    os.utime(nc, (1e9, 1e9))
    refused(repo, "ends behind the end", options=["--allow", tmp_path])
    nc.unlink()
    refused(repo, "is missing", options=["--allow", tmp_path])
    os.mkfifo(nc)
    os.utime(nc, (1e9, 1e9))
    refused(repo, nc.name, options=["--allow", tmp_path])


LOCATIONS = [
    (b"file:///etc/passwd", "--allow /etc"),
    (b"FILE:///etc/passwd", "/etc/passwd"),
    (b"file:///%65tc/passwd", "--allow /etc"),
    (b"file://TMP/../../../../../../etc/passwd", '".."'),
    (b"file://TMP/%2e%2e/%2e%2e/%2E%2e/etc/passwd", '".."'),
    (b"file:///etc/./passwd", "--allow"),
    (b"file://other/etc/passwd", "other"),
    (b"/etc/passwd", "only chunks in files"),
    (b"etc/passwd", "only chunks in files"),
    (b"", "only chunks in files"),
    (b"file:", "absolute path"),
    (b"ftp://other/passwd", "only chunks in files"),
    (b"vcc://nobody/passwd", "no container nobody"),
    (b"vcc://", "no container"),
    (b"WEB/secret", "lies outside the repository; --allow http://127.0.0.1"),
    (b"http://user:pw@127.0.0.1/x", "user"),
    (b"s3://bucket/secret", "--allow s3://bucket"),
    (b"s3://bucket/a/../secret", ".."),
    (b"s3://bucket/%2e%2e/secret", ".."),
    (b"s3://", "s3://"),
    (b"file:///etc/pass\0wd", "NUL"),
    (b"file:///etc/pass\nwd", "--allow"),
]


def test_places_that_nobody_allowed(made, tmp_path):
    """One sentence each, and nothing is read."""
    _, repo = made
    server = objects.Server(bucket=None, signed=False)
    (repo / "manifests").rename(repo / "kept")
    try:
        for location, words in LOCATIONS if tool.paths.LONG else LOCATIONS[::3]:
            (repo / "manifests").mkdir(exist_ok=True)
            for path in (repo / "kept").iterdir():
                (repo / "manifests" / path.name).write_bytes(path.read_bytes())
            relocate(repo, location.replace(b"TMP", bytes(tmp_path)).replace(b"WEB", server.url.encode()))
            said = refused(repo, words, options=["--allow", tmp_path], env={"AWS_ENDPOINT_URL": server.url, **os.environ})
            assert said.err.count("\n") == 1
        assert server.asked == []
    finally:
        server.close()
