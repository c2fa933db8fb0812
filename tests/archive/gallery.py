"""Archives of the gallery (docs/gallery.md): small files with the structure, names, packing, calendars and dimensions of their families."""

import datetime

import numpy as np

from . import files as F
from .files import File, Var

NY, NX = 24, 40  # of a map: windows of 16 by 16 lie at several places


def rng(*key):
    return np.random.default_rng([2026, *key])


def smooth(*key, shape, mean=280.0, spread=10.0):
    """A field that looks like weather: waves, and a little noise."""
    r, out = rng(*key), np.zeros(shape)
    for _ in range(3):
        phase = r.uniform(0, 6.28)
        for d, n in enumerate(shape):
            phase = phase + np.linspace(0, r.uniform(1, 9), n).reshape([-1 if e == d else 1 for e in range(len(shape))])
        out += np.sin(phase)
    return (mean + spread * out / 3 + r.normal(0, 0.05 * spread, shape)).astype("f4")


def grid(y="latitude", x="longitude"):
    return {
        y: Var((y,), np.linspace(60, 48.5, NY).astype("f4"), {"units": "degrees_north", "long_name": "latitude"}),
        x: Var((x,), (np.arange(NX) * 0.5).astype("f4"), {"units": "degrees_east", "long_name": "longitude"}),
    }


def packed(values, scale, offset, missing=-32767):
    raw = np.round((values - offset) / scale).astype("i2")
    return raw, {"scale_factor": scale, "add_offset": offset, "missing_value": np.int16(missing)}


# ---- reanalysis, climate models -----------------------------------------------------------------------


def era5():
    """Months as the old data store packed them: each with a scale of its own, counted in hours since 1900."""
    files = []
    for month in (1, 2, 3):
        first = datetime.datetime(2019, month, 1)
        days = 12  # of each, so that it stays small
        hours = int((first - datetime.datetime(1900, 1, 1)).total_seconds()) // 3600 + np.arange(days * 4) * 6
        vars = {
            **grid(),
            "time": Var(("time",), hours.astype("i4"), {"units": "hours since 1900-01-01 00:00:00.0", "long_name": "time", "calendar": "gregorian"}),
        }
        for k, (name, long, unit, mean, spread) in enumerate((("t2m", "2 metre temperature", "K", 278.0, 12.0), ("u10", "10 metre U wind component", "m s**-1", 2.0, 9.0))):
            values = smooth(1, month, k, shape=(len(hours), NY, NX), mean=mean, spread=spread)
            scale = float(values.max() - values.min()) / 65000
            raw, attrs = packed(values, scale, float(values.max() + values.min()) / 2)
            vars[name] = Var(("time", "latitude", "longitude"), raw, {**attrs, "units": unit, "long_name": long}, np.int16(-32767))
        files.append(File(f"era5_2019{month:02d}.nc", vars, {"Conventions": "CF-1.6", "history": f"2020-0{month}-01 grib_to_netcdf"}, format="NETCDF3_64BIT_OFFSET"))
    return files


def cmip6():
    """Two variables in files of their own, a calendar without leap days, each file counted from its own year."""
    files = []
    for name, long, unit, mean, spread in (("tas", "air_temperature", "K", 280, 15), ("pr", "precipitation_flux", "kg m-2 s-1", 3e-5, 1e-5)):
        for year in (1850, 1855):
            t = np.arange(60) + 0.5
            lat, lon = np.linspace(-86.25, 86.25, NY), np.arange(NX) * 9.0
            values = smooth(2, year, len(name), shape=(60, NY, NX), mean=mean, spread=spread)
            attrs = {"units": unit, "standard_name": long, "cell_methods": "area: time: mean", "cell_measures": "area: areacella", "missing_value": np.float32(1e20)}
            vars = {
                "time": Var(("time",), t, {"units": f"days since {year}-01-01", "calendar": "noleap", "standard_name": "time", "axis": "T", "bounds": "time_bnds"}),
                "time_bnds": Var(("time", "bnds"), np.stack([t - 0.5, t + 0.5], 1)),
                "lat": Var(("lat",), lat, {"units": "degrees_north", "standard_name": "latitude", "axis": "Y", "bounds": "lat_bnds"}),
                "lat_bnds": Var(("lat", "bnds"), np.stack([lat - 3.75, lat + 3.75], 1)),
                "lon": Var(("lon",), lon, {"units": "degrees_east", "standard_name": "longitude", "axis": "X"}),
                name: Var(("time", "lat", "lon"), values, {**attrs, **({"coordinates": "height"} if name == "tas" else {})}, np.float32(1e20), (1, NY, NX), 2),
            }
            if name == "tas":
                vars["height"] = Var((), np.array(2.0), {"units": "m", "standard_name": "height", "positive": "up", "axis": "Z"})
            attrs = {"Conventions": "CF-1.7 CMIP-6.2", "variable_id": name, "tracking_id": f"hdl:21.14100/{name}-{year}", "creation_date": f"2019-0{year % 9 + 1}-01T00:00:00Z"}
            files.append(File(f"{name}_day_M_historical_r1i1p1f1_gn_{year}0101-{year + 4}1231.nc", vars, attrs))
    return files


# ---- regional models ----------------------------------------------------------------------------------


def wrf():
    """A step a file, whose name has colons and no ending; the time is a text, winds lie on a grid of their own."""
    files = []
    for step in range(12):
        date = datetime.datetime(2005, 8, 28) + datetime.timedelta(hours=3 * step)
        text = date.strftime("%Y-%m-%d_%H:%M:%S")
        lat = np.repeat(np.linspace(20, 31.5, NY, dtype="f4")[:, None], NX, 1)[None]
        lon = np.repeat(np.linspace(-95, -75.5, NX, dtype="f4")[None], NY, 0)[None]
        about = lambda order, stagger, unit: {"FieldType": np.int32(104), "MemoryOrder": order, "stagger": stagger, "units": unit, "coordinates": "XLONG XLAT XTIME"}  # noqa: E731
        vars = {
            "Times": Var(("Time", "DateStrLen"), np.array([list(text)], "S1")),
            "XTIME": Var(("Time",), np.array([180.0 * step], "f4"), {"units": "minutes since 2005-08-28 00:00:00", "description": "minutes since 2005-08-28 00:00:00"}),
            "XLAT": Var(("Time", "south_north", "west_east"), lat, {"units": "degree_north"}),
            "XLONG": Var(("Time", "south_north", "west_east"), lon, {"units": "degree_east"}),
            "T2": Var(("Time", "south_north", "west_east"), smooth(3, step, 0, shape=(1, NY, NX)), about("XY ", "", "K")),
            "T": Var(("Time", "bottom_top", "south_north", "west_east"), smooth(3, step, 1, shape=(1, 3, NY, NX), mean=5), about("XYZ", "", "K")),
            "U": Var(("Time", "bottom_top", "south_north", "west_east_stag"), smooth(3, step, 2, shape=(1, 3, NY, NX + 1), mean=4), about("XYZ", "X", "m s-1")),
        }
        attrs = {"TITLE": " OUTPUT FROM WRF V4.0 MODEL", "START_DATE": "2005-08-28_00:00:00", "SIMULATION_START_DATE": "2005-08-28_00:00:00"}
        files.append(File(f"wrfout_d01_{text}", vars, attrs, unlimited=("Time",), format="NETCDF3_64BIT_OFFSET"))
    return files


def roms():
    """Staggered grids, levels that follow the ground, land as 1e37; the grid and its constants in every file."""
    sea = rng(4).uniform(0, 1, (NY, NX)) > 0.2
    h = (50 + 400 * np.outer(np.linspace(0, 1, NY), np.linspace(1, 0.2, NX))).astype("f8")
    lat, lon = np.meshgrid(np.linspace(36, 41.75, NY), np.linspace(-75, -65.25, NX), indexing="ij")
    fill = np.float32(1e37)
    static = {
        "s_rho": Var(("s_rho",), np.linspace(-0.875, -0.125, 4), {"standard_name": "ocean_s_coordinate_g2", "formula_terms": "s: s_rho C: Cs_r eta: zeta depth: h depth_c: hc", "positive": "up"}),
        "Cs_r": Var(("s_rho",), -np.linspace(0.9, 0.1, 4) ** 2, {"long_name": "S-coordinate stretching curves at RHO-points"}),
        "hc": Var((), np.array(20.0), {"units": "meter"}),
        "h": Var(("eta_rho", "xi_rho"), h, {"units": "meter", "coordinates": "lon_rho lat_rho"}),
        "lat_rho": Var(("eta_rho", "xi_rho"), lat, {"units": "degree_north", "standard_name": "latitude"}),
        "lon_rho": Var(("eta_rho", "xi_rho"), lon, {"units": "degree_east", "standard_name": "longitude"}),
        "mask_rho": Var(("eta_rho", "xi_rho"), sea.astype("f8"), {"flag_values": np.array([0.0, 1.0]), "flag_meanings": "land water"}),
    }
    files = []
    for n in range(4):
        steps = np.arange(6.0) + 6 * n

        def field(k, *shape, land=sea, mean=12.0, where="rho"):
            at = "ocean_time", *(("s_rho",) if len(shape) == 4 else ()), f"eta_{where}", f"xi_{where}"
            values = np.where(land, smooth(4, n, k, shape=shape, mean=mean), fill)
            return Var(at, values, {"coordinates": f"lon_{where} lat_{where} ocean_time", "time": "ocean_time", "field": "scalar, series"}, fill, (1, *shape[1:]), 1)

        vars = {
            "ocean_time": Var(("ocean_time",), steps * 3600, {"units": "seconds since 2006-01-01 00:00:00", "calendar": "proleptic_gregorian", "long_name": "time since initialization"}),
            **static,
            "zeta": field(0, 6, NY, NX, mean=0.2),
            "temp": field(1, 6, 4, NY, NX),
            "u": field(2, 6, 4, NY, NX - 1, land=sea[:, 1:] & sea[:, :-1], mean=0.1, where="u"),
        }
        files.append(File(f"ocean_his_{n + 1:04d}.nc", vars, {"type": "ROMS/TOMS history file", "history": f"ROMS, file {n + 1}", "file": f"ocean_his_{n + 1:04d}.nc"}, unlimited=("ocean_time",)))
    return files


# ---- satellites ---------------------------------------------------------------------------------------


def goes():
    """A scene a file, whose time is a scalar; unsigned numbers in signed ones, packed coordinates, flags."""
    files = []
    for scene in range(8):
        date = datetime.datetime(2020, 1, 1, 12, 0, 20) + datetime.timedelta(minutes=10 * scene)
        at = (date - datetime.datetime(2000, 1, 1, 12)).total_seconds()
        stamp = lambda d: d.strftime("%Y%j%H%M%S") + "7"  # noqa: E731
        cmi = np.clip(smooth(5, scene, shape=(NY, NX), mean=1200, spread=900), 0, 4095).astype("i2")
        cmi[0, :5] = -1
        about = {"coordinates": "t y x", "grid_mapping": "goes_imager_projection", "units": "1"}
        vars = {
            "CMI": Var(
                ("y", "x"),
                cmi,
                {"standard_name": "toa_lambertian_equivalent_albedo_multiplied_by_cosine_solar_zenith_angle", "_Unsigned": "true", "valid_range": np.array([0, 4095], "i2"), "scale_factor": np.float32(0.00031746), "add_offset": np.float32(0), **about},
                np.int16(-1),
                (NY, NX),
                1,
            ),
            "DQF": Var(("y", "x"), (cmi < 0).astype("i1"), {"flag_values": np.array([0, 1], "i1"), "flag_meanings": "good bad", "_Unsigned": "true", **about}, np.int8(-1), (NY, NX), 1),
            "t": Var((), np.array(at), {"units": "seconds since 2000-01-01 12:00:00", "standard_name": "time", "axis": "T", "bounds": "time_bounds"}),
            "time_bounds": Var(("number_of_time_bounds",), np.array([at - 280, at + 280])),
            "y": Var(("y",), np.arange(NY, dtype="i2"), {"scale_factor": np.float32(-5.6e-05), "add_offset": np.float32(0.128212), "units": "rad", "axis": "Y", "standard_name": "projection_y_coordinate"}),
            "x": Var(("x",), np.arange(NX, dtype="i2"), {"scale_factor": np.float32(5.6e-05), "add_offset": np.float32(-0.101332), "units": "rad", "axis": "X", "standard_name": "projection_x_coordinate"}),
            "goes_imager_projection": Var((), np.array(-2147483647, "i4"), {"grid_mapping_name": "geostationary", "perspective_point_height": 35786023.0, "longitude_of_projection_origin": -75.0, "sweep_angle_axis": "x"}),
        }
        name = f"OR_ABI-L2-CMIPC-M6C01_G16_s{stamp(date)}_e{stamp(date + datetime.timedelta(minutes=2))}_c{stamp(date + datetime.timedelta(minutes=3))}.nc"
        files.append(File(name, vars, {"title": "ABI L2 Cloud and Moisture Imagery", "date_created": f"{date:%Y-%m-%dT%H:%M:%S.7Z}", "id": f"scene {scene}", "dataset_name": name}, unlimited=()))
    return files


def swath():
    """Granules of level 2: as many scan lines as the satellite saw, places and times for each, packed temperatures."""
    files, line = [], 0
    for granule, lines in enumerate((60, 61, 59, 60)):
        at = 8.2e8 + (line + np.arange(lines)) * 1.5
        lat = np.linspace(-40 + 20 * granule, -20 + 20 * granule, lines)[:, None] + np.linspace(0, 2, 32)
        lon = np.linspace(10 + granule, 14 + granule, lines)[:, None] + np.linspace(0, 15, 32)
        raw, attrs = packed(smooth(6, granule, shape=(lines, 32), mean=290, spread=8), 0.01, 273.15)
        raw[::7, 3] = -32767
        about = {"coordinates": "longitude latitude"}
        vars = {
            "scan_time": Var(("scan",), at, {"units": "seconds since 1993-01-01 00:00:00", "standard_name": "time"}),
            "latitude": Var(("scan", "pixel"), lat.astype("f4"), {"units": "degrees_north", "standard_name": "latitude"}, np.float32(-999), (20, 32), 1),
            "longitude": Var(("scan", "pixel"), lon.astype("f4"), {"units": "degrees_east", "standard_name": "longitude"}, np.float32(-999), (20, 32), 1),
            "sea_surface_temperature": Var(("scan", "pixel"), raw, {**attrs, "units": "kelvin", "standard_name": "sea_surface_temperature", **about}, np.int16(-32767), (20, 32), 1),
            "quality_level": Var(("scan", "pixel"), rng(6, granule).integers(0, 6, (lines, 32)).astype("i1"), {"flag_values": np.arange(6, dtype="i1"), "flag_meanings": "none bad worst low good best", **about}, np.int8(-128), (20, 32), 1),
        }
        begin = datetime.datetime(1993, 1, 1) + datetime.timedelta(seconds=float(at[0]))
        files.append(File(f"SST_L2_{begin:%Y%m%dT%H%M%S}_orbit{granule + 7001:05d}.nc", vars, {"processing_level": "L2", "start_time": f"{begin:%Y%m%dT%H%M%SZ}"}, unlimited=()))
        line += lines
    return files


# ---- stations -----------------------------------------------------------------------------------------


def stations():
    """A file a station, each with the same hours; its name is a text, its place three scalars, and there are gaps."""
    files = []
    for number, (name, lat, lon, alt) in enumerate((("KIEL", 54.38, 10.14, 27), ("POTSDAM", 52.38, 13.06, 81), ("ZUGSPITZE", 47.42, 10.98, 2956), ("HELGOLAND", 54.17, 7.89, 4), ("BROCKEN", 51.8, 10.62, 1134))):
        hours = 240
        values = smooth(7, number, shape=(hours,), mean=283 - 0.0065 * alt, spread=6)
        values[rng(7, number).uniform(size=hours) < 0.1] = -9999
        about = {"coordinates": "time lat lon alt station_name"}
        vars = {
            "time": Var(("time",), np.arange(hours, dtype="i4"), {"units": "hours since 2018-07-01 00:00:00", "calendar": "standard", "standard_name": "time"}),
            "station_name": Var(("name_strlen",), np.array(list(name.ljust(12, "\0")), "S1"), {"cf_role": "timeseries_id", "long_name": "station name"}),
            "lat": Var((), np.array(lat, "f4"), {"units": "degrees_north", "standard_name": "latitude"}),
            "lon": Var((), np.array(lon, "f4"), {"units": "degrees_east", "standard_name": "longitude"}),
            "alt": Var((), np.array(alt, "f4"), {"units": "m", "standard_name": "height", "positive": "up", "axis": "Z"}),
            "air_temperature": Var(("time",), values, {"units": "K", "standard_name": "air_temperature", **about}, np.float32(-9999)),
            "wind_speed": Var(("time",), np.abs(smooth(7, number, 1, shape=(hours,), mean=4, spread=3)), {"units": "m s-1", "standard_name": "wind_speed", **about}, np.float32(-9999)),
        }
        files.append(File(f"station_{10000 + 111 * number}.nc", vars, {"featureType": "timeSeries", "Conventions": "CF-1.8", "wmo_id": str(10000 + 111 * number)}, unlimited=()))
    return files


def stations_of_different_times():
    """Each begins later than the one before, and ends with it."""
    files = stations()
    for i, f in enumerate(files):
        for v in f.vars.values():
            v.data = v.data[10 * i :] if "time" in v.dims else v.data
    return files


GALLERY = {"era5": era5, "cmip6": cmip6, "wrf": wrf, "roms": roms, "goes": goes, "swath": swath, "stations": stations}


def write(name, folder):
    """The files of NAME below FOLDER/NAME."""
    return F.write_all(GALLERY[name](), folder / name)
