"""Fields as models and analyses have them: seasons, days, weather that travels; and faults planted in them."""

import netCDF4
import numpy as np

STEPS, ROWS, COLUMNS = 120, 24, 48


def make(steps=STEPS, rows=ROWS, columns=COLUMNS, hours=24, seed=1, levels=None, mean=280.0, spread=25.0):
    """Temperature-like values of (time[, level], lat, lon): a gradient, the seasons, the sun, travelling waves, noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(steps) * hours / 24
    lat = np.deg2rad(np.linspace(87.5, -87.5, rows))[:, None]
    lon = np.deg2rad(np.arange(columns) * 360 / columns)[None, :]
    base = mean + 8 - spread * np.sin(lat) ** 2 + 0.15 * spread * np.sin(2 * lon + 1) * np.cos(lat) + 0.1 * spread * np.sin(lat)
    waves = [(rng.integers(1, 6), rng.integers(1, 6), rng.uniform(0, 6), rng.uniform(0.05, 0.4), rng.uniform(0.5, 2.5)) for _ in range(8)]
    data = np.empty((steps, rows, columns), "f8")
    for i, day in enumerate(t):
        f = base + 0.4 * spread * np.sin(lat) * np.sin(2 * np.pi * day / 365) + 0.12 * spread * np.cos(lat) * np.cos(2 * np.pi * day + lon)
        for ky, kx, phase, omega, amplitude in waves:
            f = f + amplitude * spread / 25 * np.sin(ky * lat * 2 + phase) * np.cos(kx * lon + omega * day)
        data[i] = f + rng.normal(0, 0.3 * spread / 25, f.shape)
    if levels is not None:
        data = data[:, None] - 6.5 * np.arange(levels)[None, :, None, None]
    return data.astype("f4")


def write(path, variables, time=None, hours=24, fill=None, attrs=None, lat=None, chunks=None, units="days since 1980-01-01"):
    """A file of VARIABLES, {name: values}; ATTRS: {name: {attribute: value}}."""
    first = next(iter(variables.values()))
    steps, rows, columns = first.shape[0], first.shape[-2], first.shape[-1]
    with netCDF4.Dataset(path, "w") as ds:
        ds.title = "fields with seasons"
        for name, n in (("time", steps), ("lat", rows), ("lon", columns)):
            ds.createDimension(name, n)
        if first.ndim == 4:
            ds.createDimension("level", first.shape[1])
        t = ds.createVariable("time", "f8", ("time",))
        t.units, t.calendar, t.standard_name = units, "standard", "time"
        t[:] = np.arange(steps) * hours / 24 if time is None else time
        y = ds.createVariable("lat", "f4", ("lat",))
        y.units = "degrees_north"
        y[:] = np.linspace(87.5, -87.5, rows) if lat is None else lat
        x = ds.createVariable("lon", "f4", ("lon",))
        x.units = "degrees_east"
        x[:] = np.arange(columns) * 360 / columns
        for name, values in variables.items():
            dims = ("time", "level", "lat", "lon") if values.ndim == 4 else ("time", "lat", "lon")
            v = ds.createVariable(name, values.dtype, dims, zlib=True, fill_value=fill, chunksizes=chunks)
            v.set_auto_maskandscale(False)
            v.setncatts({"units": "K", "long_name": "temperature"} | (attrs or {}).get(name, {}))
            v[:] = values
    return path


def zeros(x):
    x[40] = 0


def scale_of_a_month(x):
    x[31:59] *= 10


def upside_down(x):
    x[50] = x[50, ::-1]


def stuck(x):
    x[60:64] = x[59]


def nan_block(x):
    x[70, 5:12, 10:30] = np.nan


def shifted(x):
    x[45] = np.roll(x[45], 24, axis=-1)


def undeclared_fill(x):
    x[20:30, :4, :9] = -9999


def celsius(x):
    x[33] -= 273.15


def outlier(x):
    x[80, 3, 7] = 1e20


def missing_step(x):
    x[90] = np.nan


def sign(x):
    x[35] = -x[35]


def constant_step(x):
    x[66] = 281.5


def all_missing(x):
    x[:] = np.nan


def invalid(x):
    x[52, 4, 4] = 400


def coarse(x):
    x[75] = np.round(x[75])


def half_missing(x):
    x[88, :, :24] = np.nan


def constant(x):
    x[:] = 273.15


def infinite(x):
    x[12, 3, 3] = np.inf


def anomaly_scale(x):
    x -= x.mean(axis=(1, 2), keepdims=True)
    x[44] *= 5


def repeated_day(x):
    x[64:68] = x[60:64]


# name: (what is done to the values, the finding: kind, first and last step, more for `write`)
FAULTS = {
    "a step of zeros": (zeros, ("zeros", 40, 40), {}),
    "a scale error in one month": (scale_of_a_month, ("scale", 31, 58), {}),
    "a swapped latitude": (upside_down, ("upside-down", 50, 50), {}),
    "a stuck field": (stuck, ("stuck", 60, 63), {}),
    "a block of NaN": (nan_block, ("missing-values", 70, 70), {}),
    "a repeated day": (repeated_day, ("repeated", 64, 67), {"hours": 6}),
    "a shifted longitude": (shifted, ("shifted", 45, 45), {}),
    "fill values as numbers": (undeclared_fill, ("undeclared-fill", 20, 29), {}),
    "kelvin and degrees Celsius": (celsius, ("units-jump", 33, 33), {}),
    "an outlier": (outlier, ("outlier", 80, 80), {}),
    "a gap in time": (None, ("gap", 54, 55), {"time": np.r_[0:55, 60:125]}),
    "steps out of order": (None, ("out-of-order", 31, 31), {"time": np.r_[0:30, 31, 30, 32:120]}),
    "a step that is missing": (missing_step, ("missing-step", 90, 90), {}),
    "a sign flip": (sign, ("sign-flip", 35, 35), {}),
    "a constant field": (constant_step, ("constant", 66, 66), {}),
    "a variable of NaN": (all_missing, ("all-missing", None, None), {}),
    "values outside the valid range": (invalid, ("outside-valid-range", 52, 52), {"attrs": {"t": {"valid_range": np.array([150, 350], "f4")}}}),
    "a time twice": (None, ("duplicate-time", 71, 71), {"time": np.r_[0:71, 70:119]}),
    "lost precision": (coarse, ("precision", 75, 75), {}),
    "half a field missing": (half_missing, ("missing-values", 88, 88), {}),
    "one value everywhere": (constant, ("constant", None, None), {}),
    "infinity": (infinite, ("infinite", 12, 12), {}),
    "the scale of anomalies": (anomaly_scale, ("scale", 44, 44), {}),
    "two rows of latitude exchanged": (None, ("coordinate-order", 12, 12), {"lat": np.r_[np.linspace(87.5, -87.5, 24)[[*range(11), 12, 11, *range(13, 24)]]]}),
}  # fmt: skip


def plant(path, name):
    """The file of fault NAME at PATH; returns the finding as (kind, variable, first, last)."""
    change, (kind, first, last), more = FAULTS[name]
    values = make(hours=more.get("hours", 24))
    if change is not None:
        change(values)
    write(path, {"t": values}, **more)
    variable = {"gap": "time", "out-of-order": "time", "duplicate-time": "time", "coordinate-order": "lat"}.get(kind, "t")
    return kind, variable, first, last
