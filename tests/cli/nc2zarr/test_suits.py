"""The line that says which reads the default chunks suit, and the command for others, pasted as it stands."""

import json
import re
import shutil
import subprocess

import jsonschema
import netCDF4
import numpy as np
import pytest
import xarray

from support import paths, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "nc2zarr.json").read_text())
LINE = re.compile(r"^  Chunks (\S+) of (.+?) suit (.+); for random windows: (.+)$", re.M)


def write(path, name="z", **dims):
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in dims.items():
            ds.createDimension(d, n)
        v = ds.createVariable(name, "f4", tuple(dims))
        v[:] = np.arange(v.size, dtype="f4").reshape(v.shape)


def line(result):
    found = LINE.findall(result.ok().out)
    assert len(found) == 1, str(result)
    return found[0]


def paste(command, cwd):
    path = f"{paths.BUILD / 'bin'}"
    done = subprocess.run(["sh", "-c", command], cwd=cwd, env=tool.environment({"PATH": f"{path}:/usr/bin:/bin"}), capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert "suit" not in done.stdout, done.stdout
    return done


@pytest.mark.parametrize("dims, reads, sample", [
    ({"time": 20, "lat": 6, "lon": 8}, "reading all of it", "time=4,lat=3,lon=4"),
    ({"time": 200, "latitude": 200, "longitude": 300}, "maps and series alike", "time=4,latitude=32,longitude=32"),
    ({"time": 6, "level": 3, "y": 300, "x": 600}, "maps and series alike", "time=3,level=3,y=32,x=32"),
    ({"member": 100, "time": 10, "y": 90, "x": 100}, "maps and series alike", "member=1,time=4,y=32,x=32"),
    ({"time": 3, "y": 1024, "x": 1024}, "whole maps", "time=1,y=32,x=32"),
    ({"y": 2000, "x": 2000}, "tiles of maps", "y=32,x=32"),
    ({"time": 1000, "station": 3000}, "reads along both dimensions alike", "time=4,station=1024"),
    ({"obs": 3000000}, "runs along obs", "obs=1024"),
    ({"y": 300, "x": 400, "Time": 40}, "maps and series alike", "y=32,x=32,Time=4"),
    ({"a=b": 40, "c,d": 30, "e f": 20}, "reading all of it", r"'a\=b=4,c\,d=15,e f=10'"),
])  # fmt: skip
def test_a_file(dims, reads, sample, tmp_path):
    write(tmp_path / "in.nc", **dims)
    chunks, name, suited, command = line(tool.nc2zarr("in.nc", "out.zarr", cwd=tmp_path))
    assert (name, suited) == ("z", reads)
    with xarray.open_zarr(tmp_path / "out.zarr") as made:
        assert chunks == "x".join(map(str, made.z.encoding["chunks"]))
    assert command == f"{tool.program('nc2zarr')} --sample {sample} in.nc out-2.zarr"
    paste(command, tmp_path)
    with xarray.open_zarr(tmp_path / "out-2.zarr") as made, xarray.open_dataset(tmp_path / "in.nc") as source:
        xarray.testing.assert_identical(made.load(), source.load())


def test_dimensions_of_one_name_are_given_by_place(tmp_path):
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        ds.createDimension("x", 300)
        ds.createVariable("covariance", "f4", ("x", "x"))[:] = 1
    command = line(tool.nc2zarr("in.nc", "out.zarr", cwd=tmp_path))[3]
    assert "--sample 32x32 in.nc" in command
    paste(command, tmp_path)


def test_the_options_of_the_run_stay(tmp_path):
    write(tmp_path / "in.nc", time=20, lat=6, lon=8)
    with netCDF4.Dataset(tmp_path / "in.nc", "a") as ds:
        ds.createVariable("lat", "f4", ("lat",))[:] = range(6)
    (tmp_path / "out-2.zarr").mkdir()
    done = tool.nc2zarr("--overwrite", "-j", 1, "--rename", "lat=phi", "--codec=zstd:1", "--zarr-format", 2, "in.nc", "out.zarr", cwd=tmp_path)
    command = line(done)[3]
    assert command.split("nc2zarr ")[1] == "-j 1 --rename lat=phi --codec=zstd:1 --zarr-format 2 --sample 4x3x4 in.nc out-3.zarr"
    paste(command, tmp_path)
    assert (tmp_path / "out-3.zarr" / ".zgroup").exists()


def test_of_a_plan_it_is_the_output_that_was_named(tmp_path):
    write(tmp_path / "in.nc", time=20, lat=6, lon=8)
    command = line(tool.nc2zarr("--dry-run", "in.nc", "out.zarr", cwd=tmp_path))[3]
    assert command.endswith("--sample time=4,lat=3,lon=4 in.nc out.zarr")
    paste(command, tmp_path)


@pytest.mark.parametrize("options", [["--chunks", "5x6x8"], ["--sample", "2x3x4"], ["--codec", "keep"], ["--virtual", "json"]], ids=" ".join)
def test_chunks_that_were_asked_for_need_none(options, tmp_path):
    write(tmp_path / "in.nc", time=20, lat=6, lon=8)
    assert "suit" not in tool.nc2zarr(*options, "in.nc", "out", cwd=tmp_path).ok().out
    document = tool.nc2zarr("--json", *options, "in.nc", "out2", cwd=tmp_path).json()
    assert document["chunks_suit"] is None


def test_neither_does_a_comparison_or_a_store_that_grows(tmp_path):
    for i in (1, 2):
        write(tmp_path / f"{i}.nc", time=20, lat=6, lon=8)
        with netCDF4.Dataset(tmp_path / f"{i}.nc", "a") as ds:
            t = ds.createVariable("time", "f8", ("time",))
            t.units = "days since 2000-01-01"
            t[:] = np.arange(20) + 20 * i
    tool.nc2zarr("--along", "time", "1.nc", "out.zarr", cwd=tmp_path).ok()
    assert "suit" not in tool.nc2zarr("--append", "time", "2.nc", "out.zarr", cwd=tmp_path).ok().out
    assert "suit" not in tool.nc2zarr("--check", "1.nc", "2.nc", "out.zarr", cwd=tmp_path).ok().out


def test_an_archive(tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(5):
        write(tmp_path / "in" / f"part {i}.nc", time=20, lat=6, lon=8)
    done = tool.nc2zarr("--new-dim", "part=part *.nc", "--survey-cache", "cache", "in", "out.zarr", cwd=tmp_path)
    chunks, name, reads, command = line(done)
    assert (chunks, name, reads) == ("5x20x6x8", "z", "reading all of it")
    shutil.rmtree(tmp_path / "out.zarr.chunkmill", ignore_errors=True)
    paste(command, tmp_path)
    with xarray.open_zarr(tmp_path / "out.zarr") as one, xarray.open_zarr(tmp_path / "out-2.zarr") as two:
        xarray.testing.assert_identical(one.load(), two.load())


def test_members_are_no_time(tmp_path):
    """Both are joined, and unlimited: a window has steps of one member."""
    (tmp_path / "in").mkdir()
    for i in range(6):
        write(tmp_path / "in" / f"r{i % 3}_{i // 3}.nc", time=20, lat=6, lon=8)
        with netCDF4.Dataset(tmp_path / "in" / f"r{i % 3}_{i // 3}.nc", "a") as ds:
            t = ds.createVariable("time", "f8", ("time",))
            t.units = "days since 2000-01-01"
            t[:] = np.arange(20) + 20 * (i // 3)
    command = line(tool.nc2zarr("--new-dim", "member=r*_", "in", "out.zarr", cwd=tmp_path))[3]
    assert "--sample member=1,time=4,lat=3,lon=4 in " in command
    paste(command, tmp_path)


def test_several_stores_are_told_the_option(tmp_path):
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "a.nc", time=20, lat=6, lon=8)
    write(tmp_path / "in" / "b.nc", name="q", cell=90)
    done = tool.nc2zarr("--store-per", "*.nc", "in", "out", cwd=tmp_path).ok()
    assert [f[3] for f in LINE.findall(done.out)] == ["--sample time=4,lat=3,lon=4", "--sample cell=45"]
    documents = tool.nc2zarr("--json", "--store-per", "*.nc", "in", "more", cwd=tmp_path).json()
    jsonschema.Draft202012Validator(SCHEMA).validate(documents)
    assert [s["conversion"]["chunks_suit"]["command"] for s in documents["stores"]] == [None, None]


def test_json(tmp_path):
    write(tmp_path / "in.nc", time=200, latitude=200, longitude=300)
    document = tool.nc2zarr("--json", "in.nc", "out.zarr", cwd=tmp_path).json()
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["chunks_suit"] == {
        "variable": "z",
        "chunks": document["variables"][0]["chunks"],
        "reads": "maps and series alike",
        "sample": "time=4,latitude=32,longitude=32",
        "command": f"{tool.program('nc2zarr')} --sample time=4,latitude=32,longitude=32 in.nc out-2.zarr",
    }
    paste(document["chunks_suit"]["command"], tmp_path)
