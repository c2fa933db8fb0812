"""--check with --subset: a part of a store against the files that it came from, or all of both."""

import numpy as np
import pytest
import zarr

from support import tool

from . import files as F


def check(*args):
    return tool.nc2zarr("-q", "--check", *args)


@pytest.fixture(params=[["--chunks", "time=4"], ["--chunks", "time=2", "--shards", "time=8"], ["--zarr-format", "2", "--chunks", "time=3,lat=2"]], ids=["chunks", "shards", "v2"])
def grown(request, tmp_path):
    """Ten days, and three that were added."""
    paths = F.days(tmp_path, 0, 13)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", *request.param, *paths[:10], store).ok()
    tool.nc2zarr("-q", "--append", "time", *paths, store).ok()
    return paths, store


def damage(store, step):
    a = zarr.open_group(store)["tas"]
    a[step, 2, 3] = a[step, 2, 3] + np.float32(1)


PARTS = ["time=10:13", "time=10:", "time=-3:", "time=2000-01-11..2000-01-13", "time=2000-01-11.."]


@pytest.mark.parametrize("part", PARTS)
def test_new_files_alone(grown, part):
    paths, store = grown
    check("--subset", part, *paths[10:], store).ok()
    damage(store, 9)  # behind none of these files
    check("--subset", part, *paths[10:], store).ok()
    damage(store, 11)
    r = check("--subset", part, *paths[10:], store)
    assert r.status == 3 and "tas" in r.err, str(r)


def test_one_new_file(grown):
    paths, store = grown
    check("--subset", "time=11:12", paths[11], store).ok()
    r = check("--subset", "time=12:13", paths[11], store)
    assert r.status == 3 and "tas" in r.err and "time" in r.err, str(r)


@pytest.mark.few
def test_a_part_of_all_files(grown):
    paths, store = grown
    damage(store, 6)
    for part in ("time=0:6", "time=7:", "time=2000-01-08.."):
        check("--subset", part, *paths, store).ok()
    assert check("--subset", "time=5:7", *paths, store).status == 3
    assert check(*paths, store).status == 3


def test_what_does_not_fit(grown):
    paths, store = grown
    assert check(*paths[10:], store).status == 3  # without a part the shapes differ
    check("--subset", "time=9:13", *paths[10:], store).fails(2, "time=9:13", "4 elements of the store", "3 of the input")
    check("--subset", "time=13:16", *paths[10:], store).fails(2, "selects none of the dimension's 13")
    check("--subset", "level=0:1", *paths[10:], store).fails(2, "level")
    r = tool.nc2zarr("--check", "--certificate", store.parent / "c.json", "--subset", "time=10:", *paths[10:], store)
    assert r.status == 2 and "certificate" in r.err and not (store.parent / "c.json").exists(), str(r)


def test_a_store_that_was_made_with_a_subset(tmp_path):
    """The range of the conversion means what it meant."""
    paths = F.days(tmp_path, 0, 8)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--subset", "time=2:6", *paths, store).ok()
    check("--subset", "time=2:6", *paths, store).ok()
    assert check("--subset", "time=1:5", *paths, store).status == 3
    damage(store, 3)
    assert check("--subset", "time=2:6", *paths, store).status == 3


def test_what_a_store_keeps_of_attributes(grown):
    """Attributes that files do not have alike are not in the store; those that it has are compared."""
    paths, store = grown
    a = zarr.open_group(store)["tas"]
    a.attrs["units"] = "degC"
    zarr.consolidate_metadata(store)
    r = check("--subset", "time=10:", *paths[10:], store)
    assert r.status == 3 and "units" in r.err, str(r)


def test_places_are_those_of_the_store(grown):
    """An element that differs, and a chunk that is gone, are named as the store counts them."""
    paths, store = grown
    damage(store, 11)
    r = check("--subset", "time=10:13", *paths[10:], store)
    assert r.status == 3 and "tas: element 11/2/3:" in r.err, str(r)
