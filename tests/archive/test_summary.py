"""The summary of a conversion tells of the survey before it, and of the folder that stays beside the store."""

import netCDF4
import pytest

from support import tool


@pytest.fixture
def days(tmp_path):
    for i in range(3):
        with netCDF4.Dataset(tmp_path / f"d{i}.nc", "w") as file:
            file.createDimension("time", None)
            time = file.createVariable("time", "i4", ("time",), chunksizes=(4 + i,))
            time.units = "days since 2000-01-01"
            time[:] = i
            file.createVariable("tas", "f4", ("time",))[:] = i
            file.history, file.title = f"run {i}", "all alike"
    return tmp_path


NOTE = "d1.nc: attributes that are not the same in all files are left out: history (2 files, to d2.nc)"


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--virtual", "json")], ids=" ".join)
def test_notes_of_the_survey_are_in_the_summary(days, options):
    """Notes about the store, not about how files are stored."""
    survey = tool.nc2zarr("--survey", "d*.nc", cwd=days).ok().out
    words = " ".join(survey.split())
    assert "in all files are left out: history" in words and "chunks are not those of" in words
    done = tool.nc2zarr(*options, "d*.nc", "out.json" if "--virtual" in options else "out.zarr", cwd=days).ok()
    assert f"  Note: {NOTE}\n" in done.out and "its chunks" not in done.out and done.err == ""


def test_many_notes_are_cut(days):
    for i in range(3):
        with netCDF4.Dataset(days / f"d{i}.nc", "a") as file:
            for k in range(12):
                file.createVariable(f"v{k}", "f4", ("time",)).comment = f"of {i}"
    out = tool.nc2zarr("d*.nc", "out.zarr", cwd=days).ok().out
    assert out.count("  Note: ") == 8 and "  5 more notes; --survey prints all\n" in out


def test_the_folder_beside_the_store_is_explained(days):
    """It stays for several files, and only then."""
    out = tool.nc2zarr("d*.nc", "out.zarr", cwd=days).ok().out
    beside = days / "out.zarr.chunkmill"
    assert f"  Beside the store: {beside} lists the input files" in out and (beside / "ledger").exists()
    assert "Beside the store" not in tool.nc2zarr("d0.nc", "one.zarr", cwd=days).ok().out
    assert not (days / "one.zarr.chunkmill").exists()
    assert "Beside the store" not in tool.nc2zarr("--check", "d*.nc", "out.zarr", cwd=days).ok().out
