"""Builders of archives as they come: CMIP6, ERA5, WRF, GOES, members of ensembles."""

import datetime

import numpy as np

from . import files as F
from .files import File, Var


def rng(*key):
    return np.random.default_rng([7, *key])


def grid(ny=4, nx=6):
    return {
        "lat": Var(("lat",), np.linspace(-60, 60, ny), {"units": "degrees_north", "standard_name": "latitude"}),
        "lon": Var(("lon",), np.arange(nx) * (360.0 / nx), {"units": "degrees_east", "standard_name": "longitude"}),
    }


def cmip6(name, year, calendar="noleap", seed=0, days=40):
    """DAYS days from the beginning of YEAR, counted from then."""
    units = f"days since {year}-01-01 00:00:00"
    t = np.arange(days) + 0.5
    attrs = {"units": units, "calendar": calendar, "standard_name": "time", "axis": "T", "bounds": "time_bnds"}
    data = rng(year, seed).normal(280, 10, (days, 4, 6)).astype("f4")
    long = {"tas": "air_temperature", "pr": "precipitation_flux"}[name]
    fill = np.float32(1e20)
    return File(
        f"{name}_day_M_historical_r1i1p1f1_gn_{year}0101-{year + 4}1231.nc",
        {
            **grid(),
            "time": Var(("time",), t, attrs),
            "time_bnds": Var(("time", "bnds"), np.stack([t - 0.5, t + 0.5], 1)),
            "height": Var((), np.array(2.0), {"units": "m", "standard_name": "height"}),
            name: Var(("time", "lat", "lon"), data, {"units": "1", "standard_name": long, "cell_methods": "time: mean", "missing_value": fill}, fill, (1, 4, 6), 1),
        },
        {
            "Conventions": "CF-1.7 CMIP-6.2",
            "source_id": "M",
            "variant_label": "r1i1p1f1",
            "variable_id": name,
            "tracking_id": f"hdl:21.14100/{name}-{year}",
            "creation_date": f"2019-0{1 + year % 9}-01T00:00:00Z",
            "history": f"made for {year}",
        },
    )


def era5(month, strings=True):
    first = datetime.datetime(2021, month, 1)
    days = ((datetime.datetime(2021, month + 1, 1) if month < 12 else datetime.datetime(2022, 1, 1)) - first).days
    seconds = int((first - datetime.datetime(1970, 1, 1)).total_seconds()) + np.arange(days * 4) * 21600
    data = rng(month).normal(280, 10, (len(seconds), 2, 4, 6)).astype("f4")
    vars = {
        "number": Var((), np.array(0, "i8"), {"standard_name": "realization", "units": "1"}),
        "valid_time": Var(
            ("valid_time",),
            seconds.astype("i8"),
            {"units": "seconds since 1970-01-01", "calendar": "proleptic_gregorian", "standard_name": "time"},
        ),
        "pressure_level": Var(("pressure_level",), np.array([500.0, 850.0]), {"units": "hPa", "positive": "down"}),
        "latitude": Var(("latitude",), np.linspace(90, -90, 4), {"units": "degrees_north", "stored_direction": "decreasing"}),
        "longitude": Var(("longitude",), np.arange(6) * 60.0, {"units": "degrees_east"}),
        "t": Var(
            ("valid_time", "pressure_level", "latitude", "longitude"),
            data,
            {"units": "K", "standard_name": "air_temperature", "coordinates": "number valid_time pressure_level latitude longitude expver"},
            np.float32(np.nan),
            (31, 1, 4, 6),
            1,
        ),
    }
    if strings:
        expver = "0001" if month < 3 else "0005"
        vars["expver"] = Var(("valid_time",), np.array([expver] * len(seconds), object))
    return File(f"era5_2021{month:02d}.nc", vars, {"Conventions": "CF-1.7"}, unlimited=())


def wrf(hour):
    date = datetime.datetime(2005, 8, 28) + datetime.timedelta(hours=hour)
    text = date.strftime("%Y-%m-%d_%H:%M:%S")
    t2 = rng(hour).normal(290, 3, (1, 5, 7)).astype("f4")
    lat = np.broadcast_to(np.linspace(20, 30, 5, dtype="f4")[None, :, None], (1, 5, 7)).copy()
    common = {"MemoryOrder": "XY ", "description": "2 m temperature", "units": "K", "coordinates": "XLONG XLAT XTIME"}
    return File(
        f"wrfout_d01_{text}",
        {
            "Times": Var(("Time", "DateStrLen"), np.array([list(text)], "S1")),
            "XLAT": Var(("Time", "south_north", "west_east"), lat, {"units": "degree_north"}),
            "XTIME": Var(("Time",), np.array([hour * 60], "f4"), {"units": "minutes since 2005-08-28 00:00:00"}),
            "T2": Var(("Time", "south_north", "west_east"), t2, common),
        },
        {"TITLE": " OUTPUT FROM WRF V4.0 MODEL", "START_DATE": "2005-08-28_00:00:00", "SIMULATION_START_DATE": "2005-08-28_00:00:00"},
        unlimited=("Time",),
        format="NETCDF3_64BIT_OFFSET",
    )


def goes(minute):
    date = datetime.datetime(2020, 1, 1, 12) + datetime.timedelta(minutes=minute)
    at = (date - datetime.datetime(2000, 1, 1, 12)).total_seconds()
    stamp = date.strftime("%Y%j%H%M%S") + "0"
    cmi = rng(minute).integers(0, 4000, (5, 6)).astype("i2")
    packed = {"scale_factor": np.float32(0.00031746), "add_offset": np.float32(-0.0), "_Unsigned": "true", "units": "1", "grid_mapping": "goes_imager_projection"}
    return File(
        f"OR_ABI-L2-CMIPF-M6C01_G16_s{stamp}_e{stamp}_c{stamp}.nc",
        {
            "CMI": Var(("y", "x"), cmi, {**packed, "standard_name": "toa_lambertian_equivalent_albedo"}, np.int16(-1), (5, 6), 1),
            "t": Var((), np.array(at), {"units": "seconds since 2000-01-01 12:00:00", "standard_name": "time", "bounds": "time_bounds"}),
            "time_bounds": Var(("number_of_time_bounds",), np.array([at - 300, at + 300])),
            "y": Var(("y",), np.arange(5, dtype="i2"), {"scale_factor": -0.000056, "add_offset": 0.15, "units": "rad"}),
            "x": Var(("x",), np.arange(6, dtype="i2"), {"scale_factor": 0.000056, "add_offset": -0.15, "units": "rad"}),
            "goes_imager_projection": Var((), np.array(0, "i4"), {"grid_mapping_name": "geostationary", "perspective_point_height": 35786023.0}),
        },
        {"title": "ABI L2 Cloud and Moisture Imagery", "date_created": str(date), "id": f"scene {minute}"},
        unlimited=(),
    )


def member(name, year, r, number=None):
    f = F.changed(cmip6(name, year, seed=10 * r, days=3))
    f.name = f"r{r}i1p1/{name}_{year}.nc"
    f.attrs = {"Conventions": "CF-1.7"}
    if number is not None:
        f.vars["member"] = Var(("member",), np.array([number], "i4"), {"standard_name": "realization", "units": "1"})
        v = f.vars[name]
        v.dims, v.data, v.chunks = ("member", *v.dims), v.data[None], None
    return f
