"""rechunk: a target inside a store, and what the store then says of itself."""

import json
import shutil
import subprocess
import time

import numpy as np
import pytest
import zarr

from support import rechunked, tool
from support.rechunk_stores import SLOW, make_noise, make_store


@pytest.fixture(scope="module", params=[3, 2], ids=["v3", "v2"])
def pair(request, tmp_path_factory):
    """A source and a consolidated store, of one format."""
    folder = tmp_path_factory.mktemp(f"into{request.param}")
    make_store(folder / "in.zarr", request.param)
    root = zarr.create_group(folder / "there.zarr", zarr_format=request.param, attributes={"title": "mine"})
    root.create_array("sub/old", data=np.arange(12), chunks=(5,))
    zarr.consolidate_metadata(folder / "there.zarr", zarr_format=request.param)
    return folder / "in.zarr", folder / "there.zarr", request.param


@pytest.fixture
def there(pair, tmp_path):
    shutil.copytree(pair[1], tmp_path / "there.zarr")
    return tmp_path / "there.zarr"


def walked(store, fmt):
    """As a reader finds it who looks at every folder."""
    root = zarr.open_group(store, mode="r", zarr_format=fmt, use_consolidated=False)
    return sorted(path for path, _ in root.members(max_depth=None))


def consolidated(store, fmt):
    root = zarr.open_consolidated(str(store), zarr_format=fmt)
    return sorted(path for path, _ in root.members(max_depth=None))


def run(*args, **kw):
    return tool.run("rechunk", *args, **kw)


@pytest.mark.parametrize("node", ["new", "a/b/new", "sub/new"])
def test_into_a_store_that_is_there(pair, there, node):
    source, _, fmt = pair
    before = rechunked.files(there)
    run("--verify", "full", "--chunks", "time=full,lat=2,lon=2", source, f"{there}::{node}").ok()
    after = rechunked.files(there)
    changed = {k for k in before if before[k] != after.get(k)}
    assert changed == {"zarr.json" if fmt == 3 else ".zmetadata"}
    assert rechunked.listing(there / node) == rechunked.listing(source)
    names = walked(there, fmt)
    assert consolidated(there, fmt) == names
    assert {"sub", "sub/old", node, f"{node}/tas"} <= set(names)
    assert zarr.open_group(there, mode="r").attrs["title"] == "mine"
    assert np.array_equal(zarr.open_consolidated(str(there), zarr_format=fmt)["sub/old"][...], np.arange(12))


@pytest.mark.parametrize("node", ["new", "a/new"])
def test_into_a_store_that_is_made(pair, tmp_path, node):
    source, _, fmt = pair
    made = tmp_path / "made.zarr"
    run(source, f"{made}::{node}").ok()
    assert rechunked.listing(made / node) == rechunked.listing(source)
    assert consolidated(made, fmt) == walked(made, fmt)


def test_one_array(pair, there):
    source, _, fmt = pair
    run("--chunks", "5x5x5", f"{source}::tas", f"{there}::sub/tas").ok()
    tas = zarr.open_consolidated(str(there), zarr_format=fmt)["sub/tas"]
    assert tas.chunks == (5, 5, 5)
    assert np.array_equal(tas[...], zarr.open_array(source / "tas", mode="r")[...], equal_nan=True)


def test_within_one_store(there, pair):
    """Source and target may be neighbours."""
    run(f"{there}::sub/old", f"{there}::sub/series", "--chunks", "*:12").ok()
    assert {"sub/old", "sub/series"} <= set(consolidated(there, pair[2]))
    run(f"{there}::sub", f"{there}::sub/inside").fails(2, "inside the source")


def test_what_is_there_is_replaced_only_when_asked(pair, there):
    source, _, fmt = pair
    run(source, f"{there}::sub").fails(1, "--overwrite replaces it")
    assert "sub/old" in consolidated(there, fmt)
    run("--overwrite", source, f"{there}::sub").ok()
    names = consolidated(there, fmt)
    assert names == walked(there, fmt)
    assert "sub/tas" in names and "sub/old" not in names


def test_without_consolidated_metadata_there_is_none_after(pair, tmp_path):
    source, _, fmt = pair
    plain = tmp_path / "plain.zarr"
    zarr.create_group(plain, zarr_format=fmt)
    before = rechunked.files(plain)
    run(source, f"{plain}::new").ok()
    assert before.items() <= rechunked.files(plain).items()


def test_the_format_is_the_stores(pair, there):
    source, _, fmt = pair
    other = 5 - fmt
    run("--zarr-format", str(other), source, f"{there}::new").fails(2, f"is of Zarr format {fmt}")
    changed = there.parent / "other.zarr"
    run("--zarr-format", str(other), "--shards", "none", source, changed).ok()
    run("--shards", "none", changed, f"{there}::new").ok()
    assert json.loads((there / "new" / ("zarr.json" if fmt == 3 else ".zgroup")).read_text())["zarr_format"] == fmt
    assert consolidated(there, fmt) == walked(there, fmt)


def test_a_copy_that_does_not_decode_stays_and_is_named(pair, there, tmp_path):
    source, _, fmt = pair
    shutil.copytree(source, tmp_path / "in.zarr")
    (tmp_path / "in.zarr" / ("tas/c/0/0/0" if fmt == 3 else "tas/0.0.0")).write_bytes(b"no such chunk")
    run("--verify", "full", tmp_path / "in.zarr", f"{there}::a/new").fails(1, "tas", "0/0/0", "not verified")
    assert "a/new/tas" in walked(there, fmt) and walked(there, fmt) == consolidated(there, fmt)
    assert np.array_equal(zarr.open_group(there, mode="r")["sub/old"][...], np.arange(12))


@pytest.mark.few
@pytest.mark.parametrize("store", ["there", "made"])
def test_what_was_killed_is_finished(pair, there, tmp_path, store):
    fmt, target = pair[2], tmp_path / f"{store}.zarr"
    before = consolidated(there, fmt)
    source = make_noise(tmp_path / "noise.zarr")
    command = [*SLOW, "--zarr-format", str(fmt), str(source), f"{target}::a/new"]
    process = subprocess.Popen([tool.program("rechunk"), *command], stdout=subprocess.DEVNULL)
    while process.poll() is None and sum(p.is_file() for p in (target / "a" / "new").rglob("*")) < 5:
        time.sleep(0.005)
    process.kill()
    assert process.wait() != 0
    assert consolidated(there, fmt) == before
    left = [target / folder / f".chunkmill-{process.pid}-7.tmp" for folder in ("", "a")]
    others = [target / folder / ".chunkmill-1-7.tmp" for folder in ("", "a")]
    for path in left + others:
        path.write_bytes(b"{")
    run(*command).fails(1, "--resume finishes it")
    run("--resume", "--verify", "full", *command).ok()
    assert [path.exists() for path in left + others] == [False, False, True, True], "another run may write beside it"
    for path in others:
        path.unlink()
    assert walked(target, fmt) == sorted(set(before if store == "there" else []) | {"a", "a/new", "a/new/v", "a/new/w"})
    if store == "there":
        assert consolidated(target, fmt) == walked(target, fmt)
    assert rechunked.digests(target / "a" / "new") == rechunked.digests(source)


REFUSED = {
    "below an array": ("{there}::sub/old/new", 2, "sub/old is not a group"),
    "no store": ("{folder}::new", 1, "not a Zarr store"),
    "out of the store": ("{there}::../new", 2, "names no node"),
    "a name of metadata": ("{there}::zarr.json", 2, "names no node"),
}


@pytest.mark.every
@pytest.mark.parametrize("target, status, sentence", REFUSED.values(), ids=REFUSED)
def test_refused(pair, there, target, status, sentence):
    before = rechunked.files(there)
    folder = there.parent / "folder"
    folder.mkdir()
    (folder / "mine").write_text("")
    run(pair[0], target.format(there=there, folder=folder)).fails(status, sentence)
    assert rechunked.files(there) == before
    assert not (there.parent / "new").exists()


def test_nothing_is_left_of_a_store_that_was_to_be_made(pair, tmp_path):
    source = tmp_path / "in.zarr"
    shutil.copytree(pair[0], source)
    chunk = next(p for p in sorted((source / "tas").rglob("*")) if p.is_file() and not p.name.startswith((".z", "zarr")))
    chunk.write_bytes(b"broken")
    run("--chunks", "time=full,lat=2,lon=2", source, f"{tmp_path}/made.zarr::a/b").fails(1)
    assert not (tmp_path / "made.zarr").exists()


def test_what_came_earlier_is_still_listed(pair, tmp_path):
    """Entries of one group must stand together: zarr-python takes each run of them for all of its group."""
    target = tmp_path / "many.zarr"
    run(pair[0], f"{target}::g1").ok()
    run(f"{pair[0]}::tas", f"{target}::g2/tas").ok()
    run(f"{pair[0]}::tas", f"{target}::g1/again").ok()
    names = set(zarr.open_group(pair[0], mode="r").array_keys())
    group = zarr.open_consolidated(target, mode="r")
    assert set(group["g1"].array_keys()) == names | {"again"}
    assert set(group["g2"].array_keys()) == {"tas"}
