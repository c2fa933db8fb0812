"""Archives as descriptions: what a file holds is said in numpy first, then written, then held against the store."""

import copy
import datetime
import functools
import os
from dataclasses import dataclass, field
from pathlib import Path

import cftime
import netCDF4
import numpy as np

EPOCH = "microseconds since 1970-01-01"
UNITS = "days since 2000-01-01"


@dataclass
class Var:
    dims: tuple
    data: np.ndarray
    attrs: dict = field(default_factory=dict)
    fill: object = None
    chunks: tuple = None
    deflate: int = 0


@dataclass
class File:
    """Lengths of dimensions follow from the variables; what is unlimited is named."""

    name: str
    vars: dict
    attrs: dict = field(default_factory=dict)
    unlimited: tuple = ("time",)
    format: str = "NETCDF4"

    def dims(self):
        found = {}
        for v in self.vars.values():
            for d, n in zip(v.dims, v.data.shape):
                assert found.setdefault(d, n) == n, (self.name, d)
        return found

    def steps(self):
        return len(self.vars["time"].data)


def for_libraries(path):
    """Makes a file that only libraries open in a survey: there are bytes behind its end."""
    with open(path, "ab") as f:
        f.write(bytes(8))


def write(f, folder):
    path = Path(folder) / f.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with netCDF4.Dataset(path, "w", format=f.format) as nc:
        for name, n in f.dims().items():
            nc.createDimension(name, None if name in f.unlimited else n)
        for name, v in f.vars.items():
            kw = {}
            if f.format == "NETCDF4" and v.dims:
                kw = {"chunksizes": v.chunks, "zlib": bool(v.deflate), "complevel": v.deflate}
            dtype = str if v.data.dtype.kind == "O" else v.data.dtype
            made = nc.createVariable(name, dtype, v.dims, fill_value=v.fill, **kw)
            made.set_auto_maskandscale(False)
            made.set_auto_chartostring(False)
            made.setncatts(v.attrs)
            if v.data.size:
                made[...] = v.data
        nc.setncatts(f.attrs)
    return path


def write_all(files, folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    return [write(f, folder) for f in files]


def link_all(files, made, folder):
    """FILES in FOLDER: those that MADE, {name: (description, path)}, has already are linked."""
    for f in files:
        path = Path(folder) / f.name
        path.parent.mkdir(parents=True, exist_ok=True)
        known = made.get(f.name)
        if known and known[0] is f:
            os.link(known[1], path)
        else:
            write(f, folder)


# ---- the archive that has nothing wrong -------------------------------------------------------------

LAT = np.linspace(-60, 60, 4)
LON = np.arange(6) * 60.0


def fields(first, n):
    """N half-daily steps from step number FIRST of the whole archive."""
    every = [np.random.default_rng(1000 + i) for i in range(first, first + n)]
    tas = np.stack([np.round(r.normal(280, 10, (4, 6)) * 64) / 64 for r in every]).astype("f4")
    pr = np.stack([r.integers(-2000, 3000, (4, 6)) for r in every]).astype("i2")
    pr[:, 0, 0] = -32767
    flag = np.array([r.integers(0, 3) for r in every], "i1")
    return tas, pr, flag


def time_vars(first, n, units=UNITS, calendar="standard", dtype="f8"):
    """time and time_bnds of N half-daily steps, step number FIRST being FIRST / 2 days after 2000-01-01."""
    begin = [cftime.datetime(2000, 1, 1, calendar=calendar) + datetime.timedelta(hours=12 * (first + i)) for i in range(n)]
    half = datetime.timedelta(hours=12)
    edges = [[d, d + half] for d in begin]
    number = lambda dates: np.asarray(cftime.date2num(dates, units, calendar)).astype(dtype)  # noqa: E731
    attrs = {"units": units, "calendar": calendar, "standard_name": "time", "axis": "T", "bounds": "time_bnds"}
    return {
        "time": Var(("time",), number(begin) if n else np.zeros(0, dtype), attrs),
        "time_bnds": Var(("time", "bnds"), number(edges) if n else np.zeros((0, 2), dtype)),
    }


def characters(texts, length):
    """TEXTS as rows of LENGTH characters, the rest of them NULs."""
    rows = [[bytes([b]) for b in t.encode().ljust(length, b"\0")] for t in texts]
    return np.array(rows, "S1").reshape(len(rows), length)


def padded(data, length):
    """Rows of characters, longer by NULs."""
    return np.concatenate([data, np.full((*data.shape[:-1], length - data.shape[-1]), b"", "S1")], axis=-1)


def half_days(i, steps=2, first=None, format="NETCDF4"):
    """File number I of a clean archive; it begins with step FIRST."""
    first = i * steps if first is None else first
    tas, pr, flag = fields(first, steps) if steps else (np.zeros((0, 4, 6), "f4"), np.zeros((0, 4, 6), "i2"), np.zeros(0, "i1"))
    lat, lon = LAT, LON
    date = datetime.date(2000, 1, 1) + datetime.timedelta(days=i)
    kind = {"chunks": (1, 4, 6), "deflate": 1}
    flags = {"standard_name": "quality_flag", "flag_values": np.array([0, 1, 2], "i1"), "flag_meanings": "good bad ugly"}
    mapped = {"grid_mapping": "crs", "coordinates": "height note"}
    vars = {
        **time_vars(first, steps),
        "lat": Var(("lat",), lat, {"units": "degrees_north", "standard_name": "latitude"}),
        "lon": Var(("lon",), lon, {"units": "degrees_east", "standard_name": "longitude"}),
        "height": Var((), np.array(2.0), {"units": "m", "standard_name": "height"}),
        "crs": Var((), np.array(0, "i4"), {"grid_mapping_name": "latitude_longitude", "earth_radius": 6371000.0}),
        "orog": Var(("lat", "lon"), (np.outer(lat, lon) / 8).astype("f4"), {"units": "m", "standard_name": "surface_altitude"}),
        "tas": Var(
            ("time", "lat", "lon"),
            tas,
            {"units": "K", "standard_name": "air_temperature", "cell_methods": "time: mean", **mapped},
            fill=np.float32(1e20),
            **kind,
        ),
        "pr": Var(
            ("time", "lat", "lon"),
            pr,
            {"units": "kg m-2", "standard_name": "precipitation_amount", "scale_factor": 0.5, "add_offset": 100.0, **mapped},
            fill=np.int16(-32767),
            **kind,
        ),
        "flag": Var(("time",), flag, flags),
        "note": Var(("time", "note_length"), characters([f"n{first + k}" for k in range(steps)], 8), {"long_name": "observer's note"}),
    }
    attrs = {"title": "half-daily weather", "Conventions": "CF-1.8", "institution": "nowhere"}
    return File(f"w_{date:%Y%m%d}.nc", vars, attrs, format=format)


def clean(n, **kw):
    return [half_days(i, **kw) for i in range(n)]


def changed(f):
    """A copy of F that can be changed: its variables and attributes are its own, their values are not."""
    g = copy.copy(f)
    g.vars = {k: copy.copy(v) for k, v in f.vars.items()}
    for v in g.vars.values():
        v.attrs = dict(v.attrs)
    g.attrs = dict(f.attrs)
    return g


# ---- the reference ----------------------------------------------------------------------------------


@functools.cache
def decoded(data, dtype, units, calendar):
    dates = cftime.num2date(np.frombuffer(data, dtype), units, calendar, only_use_cftime_datetimes=True)
    return np.asarray(cftime.date2num(dates, EPOCH, calendar)).astype("i8")


def instants(v, of=None):
    """Microseconds since 1970 in the variable's calendar, as cftime decodes it; OF has the units of bounds."""
    attrs = of.attrs if of else v.attrs
    calendar = attrs.get("calendar", "standard")
    if v.data.size == 0:
        return np.zeros(v.data.shape, "i8")
    return decoded(v.data.tobytes(), v.data.dtype.str, attrs["units"], calendar).reshape(v.data.shape)


BOUNDS = {"time_bnds": "time", "climatology_bnds": "time"}


def joined(files, dim="time", names=None):
    """{name: (dims, values)} of what FILES make along DIM; times are instants."""
    files = sorted((f for f in files if f.steps()), key=lambda f: instants(f.vars["time"])[0])
    out = {}
    for name in names or list(dict.fromkeys(k for f in files for k in f.vars)):
        v = files[0].vars[name]
        if dim not in v.dims:
            out[name] = (v.dims, v.data)
            continue
        parts = []
        for f in files:
            w = f.vars[name]
            if name == "time" or name in BOUNDS:
                parts.append(instants(w, f.vars["time"]))
            else:
                parts.append(w.data)
        out[name] = (v.dims, np.concatenate(parts, axis=v.dims.index(dim)))
    return out
