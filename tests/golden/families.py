"""Archives as people have them, each with the options that it is joined under."""

import datetime
from dataclasses import dataclass

import netCDF4
import numpy as np

from archive import files as F
from archive import kinds, traps
from archive.files import File, Var


@dataclass
class Archive:
    files: list
    options: tuple = ()
    stack: tuple = ("--stack", "both=tas,pr", "--unpack", "pr")
    per: str = "{variable}"
    layout: tuple = ()  # which neither a survey nor references have
    more: object = None  # writes what a description cannot say into a folder


def planted(name, *options, n=3, k=1, **kw):
    """A clean archive with one of the traps in file K."""
    return Archive(traps.TRAPS[name].plant(F.clean(n), k), options, **kw)


def noise(*key, shape=(3, 4), dtype="f4"):
    """Numbers that no library's generator draws."""
    n = np.arange(np.prod(shape), dtype=np.int64) + 1000 * np.dot(key, 7 ** np.arange(len(key)))
    return (n * 7919 % 1009 / 8).astype(dtype).reshape(shape)


def hours(n, first=0, **attrs):
    return Var(("time",), np.arange(n, dtype="f8") + first, {"units": "hours since 2001-02-03", **attrs})


# ---- places in space and time -------------------------------------------------------------------------


def tiles():
    """Four quarters of a map, each of two steps."""
    files = []
    for row in range(2):
        for column in range(2):
            y, x = np.arange(3.0) + 3 * row, np.arange(4.0) + 4 * column
            vars = {"time": hours(2), "y": Var(("y",), y), "x": Var(("x",), x)}
            for name in ("tas", "pr"):
                vars[name] = Var(("time", "y", "x"), noise(row, column, len(name), shape=(2, 3, 4)), {"units": "1"}, chunks=(1, 3, 4))
            files.append(File(f"tile_r{row}_c{column}.nc", vars))
    return files


def descending():
    """Steps run backwards within each file, and latitudes in all of them."""
    files = F.clean(3)
    for f in files:
        for v in f.vars.values():
            for d in {"time", "lat"} & set(v.dims):
                v.data = np.flip(v.data, v.dims.index(d)).copy()
    return files


def months():
    """Of unequal length, without a coordinate."""
    return [
        File(f"model_20000{m + 2}.nc", {n: Var(("time", "y"), noise(m, len(n), shape=(days, 4))) for n in ("tas", "pr")}, unlimited=())
        for m, days in enumerate((28, 29, 31))
    ]


def maps(form="NETCDF3_CLASSIC"):
    """A map a day, whose day only the name says."""
    days = [datetime.date(2000, 2, 27) + datetime.timedelta(days=i) for i in range(4)]
    vars = [{**kinds.grid(), **{n: Var(("lat", "lon"), noise(i, len(n), shape=(4, 6)), {"units": "K"}, np.float32(-999)) for n in ("tas", "pr")}} for i in range(4)]
    return [File(f"{d:%Y}/sst.day.{d:%Y%m%d}.v2.nc", v, {"title": "sst"}, unlimited=(), format=form) for d, v in zip(days, vars)]


def forecasts():
    """Two runs of three lead times: each file has one place along both."""
    files = []
    for run in range(2):
        for step in range(3):
            scalars = {"time": (6.0 * run, "forecast_reference_time"), "step": (3.0 * step, "forecast_period"), "valid_time": (6.0 * run + 3 * step, "time")}
            vars = {k: Var((), np.array(x), {"units": "hours" if k == "step" else "hours since 2001-02-03", "standard_name": s}) for k, (x, s) in scalars.items()}
            fields = {n: Var(("lat",), noise(run, step, len(n), shape=(4,))) for n in ("tas", "pr")}
            files.append(File(f"gfs.{run}/f{3 * step:03d}.nc", {"lat": kinds.grid()["lat"], **vars, **fields}, unlimited=()))
    return files


def runs():
    """Steps of a run that the next one has, too, with other values."""
    return [File(f"run{r}_{s}.nc", {"time": hours(1, 6 * r + 3 * s), "tas": Var(("time",), np.array([10.0 * r + s]))}) for r in range(2) for s in range(3)]


def members(number):
    return [kinds.member("tas", y, r, r if number else None) for r in (1, 2, 10) for y in (1850, 1855)]


def members_by_attribute():
    files = []
    for r in (1, 2):
        for name in ("tas", "pr"):
            vars = {"time": hours(3), name: Var(("time", "lat"), noise(r, len(name))), "lat": kinds.grid()["lat"]}
            files.append(File(f"{name}_{r}.nc", vars, {"realization_index": np.int32(r), "tracking_id": f"{name}/{r}"}))
    return files


# ---- variables and their types ------------------------------------------------------------------------


def apart(years=(1850, 1855)):
    return [kinds.cmip6(v, y, seed=s, days=5) for s, v in enumerate(("tas", "pr")) for y in years]


def strings():
    days = [[f"2000-01-0{2 * i + 1}", f"2000-01-0{2 * i + 2}"] for i in range(3)]
    fields = [{n: Var(("time",), noise(i, len(n), shape=(2,))) for n in ("tas", "pr")} for i in range(3)]
    return [File(f"file{i}.nc", {"time": Var(("time",), np.array(d, object)), "who": Var(("time",), np.array(["é", "long " * i], object)), **v}) for i, (d, v) in enumerate(zip(days, fields))]


def starts():
    """A scalar that each file has for itself, another that was corrected once, and their bounds."""
    files = []
    for i in range(4):
        vars = {"time": hours(3, 3 * i), "start": Var((), np.array(10.0 * i)), "dt": Var((), np.array(5.0 + (i > 2)))}
        files.append(File(f"his_{i}.nc", {**vars, **{n: Var(("time",), noise(i, len(n), shape=(3,))) for n in ("tas", "pr")}}))
    return files


def bounds():
    """Of space as of time, whose units change."""
    files = [F.half_days(0), F.changed(F.half_days(1))]
    traps.hours(files[1], 1)
    for f in files:
        f.vars["lat"].attrs["bounds"] = "lat_bnds"
        f.vars["lat_bnds"] = Var(("lat", "bnds"), np.stack([F.LAT - 20, F.LAT + 20], 1))
    return files


def several():
    """One archive with disagreements of many kinds."""
    files = F.clean(5)
    for k, name in enumerate(("packing", "static field", "missing variable", "standard_name")):
        files = traps.TRAPS[name].plant(files, k + 1)
    return files


def types():
    """Of three files no two have the same types."""
    files = []
    for i, (a, b) in enumerate((("i2", "f4"), ("i4", "f8"), ("u1", "i2"))):
        files.append(File(f"t{i}.nc", {"time": hours(2, 2 * i), "tas": Var(("time",), noise(i, shape=(2,), dtype=a)), "pr": Var(("time",), noise(i, 1, shape=(2,), dtype=b))}))
    return files


def expver():
    """Final data of ERA5, then a file with provisional ones along a dimension of their own."""
    fill, packed = np.int16(-32767), {"scale_factor": 0.01, "add_offset": 250.0, "units": "K"}
    coords = lambda first: {"time": hours(4, first), "lat": kinds.grid()["lat"]}  # noqa: E731
    values = noise(5, shape=(4, 4), dtype="i2")
    both = np.full((4, 2, 4), fill)
    both[:2, 0], both[2:, 1] = values[:2], values[2:]
    final = File("final.nc", {**coords(0), "tas": Var(("time", "lat"), noise(6, shape=(4, 4), dtype="i2"), packed, fill)}, unlimited=())
    recent = {**coords(4), "expver": Var(("expver",), np.array([1, 5], "i4")), "tas": Var(("time", "expver", "lat"), both, packed, fill)}
    return [final, File("recent.nc", recent, unlimited=())]


def large():
    """Fields larger than a document of references takes in, in chunks that do not fit together."""
    files = []
    for i, steps in enumerate((5, 7, 4)):
        first = (0, 5, 12)[i]
        vars = {"time": hours(steps, first), "lat": Var(("lat",), np.arange(24.0)), "lon": Var(("lon",), np.arange(36.0))}
        for n, kind in (("tas", {"chunks": (2, 12, 36), "deflate": 1}), ("pr", {})):
            vars[n] = Var(("time", "lat", "lon"), noise(i, len(n), shape=(steps, 24, 36)), {"units": "K"}, np.float32(1e20), **kind)
        files.append(File(f"large_{i}.nc", vars))
    return files


def groups(folder):
    for i in range(3):
        with netCDF4.Dataset(folder / f"g{i}.nc", "w") as nc:
            nc.createDimension("time", None)
            t = nc.createVariable("time", "f8", ("time",))
            t.units = F.UNITS
            t[:] = [2 * i, 2 * i + 1]
            nc.createVariable("tas", "f4", ("time",))[:] = noise(i, shape=(2,))
            g = nc.createGroup("surface/soil")
            g.createDimension("depth", 3)
            g.createVariable("pr", "f4", ("time", "depth"))[:] = noise(i, 1, shape=(2, 3))
            g.createVariable("depth", "f4", ("depth",))[:] = [0.5, 1, 2]


def damaged(folder):
    (folder / "w_20000104.nc").write_bytes(b"")
    (folder / "w_20000105.nc").write_bytes(b"CDF\1\0\0")


NOTHING = ("--stack", "both=tas")
FAMILIES = {
    "one dimension": Archive(F.clean(3)),
    "uneven": Archive([F.half_days(i, n, first) for i, (n, first) in enumerate(((3, 0), (0, 3), (2, 3), (1, 5)))]),
    "classic": Archive([F.half_days(i, format="NETCDF3_CLASSIC") for i in range(3)]),
    "CDF5": Archive([F.half_days(i, format="NETCDF3_64BIT_DATA") for i in range(2)]),
    "mixed formats": Archive([F.half_days(i, format=f) for i, f in enumerate(("NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF4_CLASSIC"))]),
    "large": Archive(large(), (), ("--stack", "both=tas,pr"), layout=("--chunks", "time=3,lat=12,lon=full")),
    "tiles": Archive(tiles(), stack=("--stack", "both=tas,pr"), per="tile_r*_c"),
    "descending": Archive(descending()),
    "months": Archive(months(), ("--along", "time"), ("--stack", "both=tas,pr")),
    "maps": Archive(maps(), ("--new-dim", "time=%Y%m%d"), ("--stack", "both=tas,pr"), "{dir}"),
    "maps undecided": Archive(maps("NETCDF4")),
    "scenes": Archive([kinds.goes(m) for m in (0, 10, 20)], ("--new-dim", "time=_s%Y%j%H%M%S%f_", "--promote", "t,time_bounds"), ("--stack", "both=CMI")),
    "forecasts": Archive(forecasts(), ("--new-dim", "time=@time", "--new-dim", "step=@step"), ("--stack", "both=tas,pr"), "{dir}"),
    "runs": Archive(runs(), ("--overlap", "last"), NOTHING, "run*_"),
    "members in folders": Archive(members(False), ("--new-dim", "member=/r*i1p1/"), NOTHING, "{dir}"),
    "members with a coordinate": Archive(members(True), (), NOTHING, "{dir}"),
    "members by attribute": Archive(members_by_attribute(), ("--new-dim", "member=@realization_index"), ("--stack", "both=tas,pr")),
    "variables apart": Archive(apart(), (), ("--stack", "both=tas,pr"), "*_day_M"),
    "identifiers": Archive([kinds.cmip6("tas", y, days=3) for y in (1850, 1855, 1860)], ("--file-attr", "tracking_id"), NOTHING),
    "ERA5": Archive([kinds.era5(m) for m in (2, 3)], stack=("--stack", "both=t@pressure_level")),
    "expver": Archive(expver(), ("--merge-along", "expver=1,5"), NOTHING),
    "WRF": Archive([kinds.wrf(h) for h in (0, 3, 6)], stack=("--stack", "both=T2")),
    "strings": Archive(strings(), ("--along", "time"), ("--stack", "both=tas,pr")),
    "longer texts": planted("longer texts, other dimension", "--char", "join"),
    "types": Archive(types(), stack=("--stack", "both=tas,pr")),
    "type promoted": planted("type float64"),
    "packing": planted("packing", "--packing", "unpack", stack=("--stack", "both=tas,pr")),
    "fill value": planted("fill value"),
    "units re-based": planted("units are hours", "--time-units", "minutes since 1999-12-31"),
    "bounds": Archive(bounds()),
    "calendar": planted("calendar noleap"),
    "missing variable": planted("missing variable", "--missing", "fill"),
    "static fields": planted("static field", "--static", "first"),
    "starts": Archive(starts(), ("--promote", "start", "--static", "dt:first"), ("--stack", "both=tas,pr")),
    "tolerance": planted("coordinate, a little", "--tolerance", "1e-6"),
    "upside down": planted("axis runs the other way"),
    "overlap": planted("overlap, identical"),
    "overlap that differs": planted("overlap, first", "--overlap", "first"),
    "gap": planted("gap", n=4),
    "gap filled": planted("gap", "--gaps", "fill", n=4),
    "interleaved": planted("interleaved", n=4),
    "meaning": planted("standard_name"),
    "renamed": planted("variable renamed", "--rename", "t2m=tas"),
    "dimension renamed": planted("dimension renamed", "--rename", "valid_time=time"),
    "several": Archive(several()),
    "groups": Archive([], more=groups, stack=("--stack", "both=tas")),
    "damaged": Archive(F.clean(3), ("--bad-file", "skip"), more=damaged),
    "damaged undecided": Archive(F.clean(3), more=damaged),
}
