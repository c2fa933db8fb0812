"""Variables of every type grow, also by chunks that hold nothing but the fill value."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import failio, tool

from . import files as F

LAYOUTS = {
    "v3": ["--chunks", "t=2"],
    "v2": ["--zarr-format", "2", "--chunks", "t=2"],
    "shards": ["--chunks", "t=1", "--shards", "t=4"],
}
# Type of the file, fill value, and a value that is another.
TYPES = {
    "byte": ("i1", -5, 7),
    "unsigned": ("u2", 9, 65535),
    "big": (">i4", -1, 3),
    "long": ("i8", 0, -(2**62)),
    "single": ("f4", np.nan, -0.0),
    "double": (">f8", -0.0, np.inf),
    "text": (str, "", "é\n\"%"),
}


def file(path, first, n, empty):
    """N steps from the first on; those where EMPTY(step) hold only fill values."""
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("t", None)
        nc.createDimension("x", 3)
        nc.createVariable("t", "f8", ("t",))[:] = np.arange(first, first + n)
        for name, (type, fill, value) in TYPES.items():
            kw = {} if type is str else {"fill_value": fill, "endian": "big" if type[0] == ">" else "little"}
            v = nc.createVariable(name, type if type is str else type.lstrip(">"), ("t", "x"), **kw)
            v.set_auto_maskandscale(False)
            rows = [[fill] * 3 if empty(step) else [value, fill, value] for step in range(first, first + n)]
            v[:] = np.array(rows, object if type is str else type)
    return path


@pytest.fixture(scope="module", params=LAYOUTS)
def case(request, tmp_path_factory):
    """Steps in three files, and the store that one conversion makes of them."""
    top = tmp_path_factory.mktemp("types")
    files = [file(top / f"{first}.nc", first, n, lambda step: step % 8 < 5) for first, n in ((0, 4), (4, 7), (11, 9))]
    tool.nc2zarr("-q", *LAYOUTS[request.param], *files, top / "want.zarr").ok()
    tool.nc2zarr("-q", *LAYOUTS[request.param], files[0], files[0], top / "s.zarr").ok()
    return LAYOUTS[request.param], top, files


def holds(store, want):
    """The same elements, and numbers that are all fill take no objects."""
    got, wanted = ({k for k, v in failio.contents(s).items() if v is not None and not k.startswith(("t/", "text/"))} for s in (store, want))
    assert got == wanted
    assert tool.run("rechunk", "--digest", store).ok().out == tool.run("rechunk", "--digest", want).ok().out


@pytest.mark.few(2)
@pytest.mark.parametrize("order", [[], [1], [2, 1], [3, 1, 3, 2]])
def test_one_after_the_other(case, order, tmp_path):
    """By one process, or by several parts."""
    _, top, files = case
    failio.renew(top / "s.zarr", tmp_path / "s.zarr")
    for n in (2, 3):
        for k in order or [0]:
            part = ["--part", f"{k}/{max(order)}"] if order else []
            tool.nc2zarr("-q", *part, "--append", "t", *files[:n], tmp_path / "s.zarr").ok()
    holds(tmp_path / "s.zarr", top / "want.zarr")


def test_by_rechunk(case, tmp_path):
    layout, top, files = case
    for n in (1, 2, 3):
        source = tmp_path / f"{n}.zarr"
        tool.nc2zarr("-q", *layout, files[0], *files[:n], source).ok()
        add = ["--append", "t"] if n > 1 else []
        tool.run("rechunk", "-q", *add, source, tmp_path / "s.zarr").ok()
    holds(tmp_path / "s.zarr", top / "want.zarr")


@pytest.mark.parametrize("empties", [True, False])
def test_replaced(case, empties, tmp_path):
    """A range becomes all fill, or none of it."""
    layout, top, files = case
    other = file(tmp_path / "other.nc", 4, 7, lambda step: empties)
    failio.renew(top / "want.zarr", tmp_path / "s.zarr")
    tool.nc2zarr("-q", "--replace", "t=4:11", other, tmp_path / "s.zarr").ok()
    tool.nc2zarr("-q", *layout, files[0], other, files[2], tmp_path / "want.zarr").ok()
    holds(tmp_path / "s.zarr", tmp_path / "want.zarr")


def test_places_in_messages(case, tmp_path):
    """Messages about a chunk or an element give its place in the array."""
    layout, top, files = case
    store = failio.renew(top / "s.zarr", tmp_path / "s.zarr") or tmp_path / "s.zarr"
    names = {"v3": ("text/c/3", "3/0", "text/c/3/0"), "v2": ("text/3.0", "3/0", "text/3.0"), "shards": ("text/c/1", "5/0", "text/c/1/0")}
    blocked, chunk, key = names[next(k for k, v in LAYOUTS.items() if v == layout)]
    (store / blocked).mkdir() if "." in blocked else (store / blocked).write_text("in the way")
    r = tool.nc2zarr("-q", "-j", "1", "--append", "t", *files[:2], store)
    assert r.status == 1 and key in r.err, str(r)
    assert f"array text: chunk {chunk}:" in r.err, str(r)


@pytest.mark.parametrize("layout", ([], ["--zarr-format", "2"], ["--shards", "time=8"]), ids=" ".join)
@pytest.mark.parametrize("chunk", (1, 4))
def test_gaps_are_missing_whatever_unwritten_elements_are(layout, chunk, tmp_path):
    """The store's fill value is not its _FillValue."""
    first, later = F.day(tmp_path / "a.nc", 0, 2, extra=("pr",)), F.day(tmp_path / "b.nc", 3)
    with xr.open_dataset(first) as ds:
        ds.to_netcdf(tmp_path / "filled.nc", encoding={"pr": {"_FillValue": np.float32(-9)}})
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", *layout, "--chunks", f"time={chunk}", "--fill-value", "tas:-7", "--fill-value", "pr:-8",
                 tmp_path / "filled.nc", store).ok()
    tool.nc2zarr("-q", "--append", "time", "--gaps", "fill", "--missing", "fill", "--verify", "full", later, store).ok()
    with xr.open_zarr(store, consolidated=False) as ds:
        assert np.isnan(ds.tas.values).all((1, 2)).tolist() == [False, False, True, False]
        assert np.isnan(ds.pr.values).all((1, 2)).tolist() == [False, False, True, True]
