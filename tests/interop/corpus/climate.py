"""Files as the field makes them: grids, calendars, packing, swaths, meshes, tracks."""

import numpy as np

from .book import FORMATS, SHORT, random, smooth, values, variable

CALENDARS = (
    "standard",
    "gregorian",
    "proleptic_gregorian",
    "julian",
    "noleap",
    "365_day",
    "all_leap",
    "366_day",
    "360_day",
)
UNITS = (
    "days since 1850-01-01",
    "hours since 1900-01-01 00:00:00",
    "seconds since 1970-01-01T00:00:00Z",
    "minutes since 2000-2-30",
    "days since 0001-01-01 00:00:0.0",
    "months since 2000-01-01",
    "days since 2000-01-01 12:00:00 +01:00",
    "not a unit",
)


def latlon(ds, ny=19, nx=36, bounds=True):
    ds.createDimension("lat", ny)
    ds.createDimension("lon", nx)
    for d, n, top, name in (("lat", ny, 90, "latitude"), ("lon", nx, 180, "longitude")):
        a = np.linspace(-top, top, n)
        variable(
            ds,
            d,
            "f8",
            (d,),
            a,
            {
                "units": f"degrees_{'north' if d == 'lat' else 'east'}",
                "standard_name": name,
                "axis": "YX"[d == "lon"],
                **({"bounds": f"{d}_bnds"} if bounds else {}),
            },
        )
        if bounds:
            if "bnds" not in ds.dimensions:
                ds.createDimension("bnds", 2)
            variable(ds, f"{d}_bnds", "f8", (d, "bnds"), np.stack([a - 0.5, a + 0.5], 1))


def model_output(book):
    for fmt in FORMATS:
        for storage in ({}, dict(zlib=True, shuffle=True)) if fmt.startswith("NETCDF4") else ({},):
            with book.nc(f"cmip_{SHORT[fmt]}{'_z' if storage else ''}.nc", fmt) as ds:
                ds.setncatts(
                    {
                        "Conventions": "CF-1.7 CMIP-6.2",
                        "branch_time_in_parent": 0.0,
                        "realization_index": np.int32(1),
                        "tracking_id": "hdl:21.14100/x",
                    }
                )
                ds.createDimension("time", None)
                latlon(ds)
                variable(
                    ds,
                    "time",
                    "f8",
                    ("time",),
                    np.arange(24) * 30 + 15.0,
                    {"units": "days since 1850-01-01", "calendar": "360_day", "bounds": "time_bnds", "axis": "T"},
                )
                variable(
                    ds,
                    "time_bnds",
                    "f8",
                    ("time", "bnds"),
                    np.stack([np.arange(24) * 30.0, np.arange(24) * 30.0 + 30], 1),
                )
                variable(ds, "height", "f8", (), 2.0, {"units": "m", "positive": "up"})
                v = variable(
                    ds,
                    "tas",
                    "f4",
                    ("time", "lat", "lon"),
                    None,
                    {
                        "units": "K",
                        "standard_name": "air_temperature",
                        "cell_methods": "area: time: mean",
                        "coordinates": "height",
                        "missing_value": np.float32(1e20),
                    },
                    fill_value=1e20,
                    **storage,
                )
                data = smooth((24, 19, 36))
                data[:, :4] = 1e20
                v[:] = data


def reanalysis(book):
    for fmt in ("NETCDF3_64BIT_OFFSET", "NETCDF4"):
        with book.nc(f"era5_{SHORT[fmt]}.nc", fmt) as ds:
            ds.Conventions = "CF-1.6"
            latlon(ds, 13, 24, bounds=False)
            ds.createDimension("time", None)
            variable(
                ds,
                "time",
                "i4",
                ("time",),
                1043136 + np.arange(48),
                {"units": "hours since 1900-01-01 00:00:00.0", "calendar": "gregorian"},
            )
            for i, name in enumerate(("u10", "v10", "t2m")):
                v = variable(
                    ds,
                    name,
                    "i2",
                    ("time", "lat", "lon"),
                    None,
                    {
                        "scale_factor": 0.00123 * (i + 1),
                        "add_offset": 270.25 * i,
                        "missing_value": np.int16(-32767),
                        "units": "m s**-1",
                    },
                    fill_value=-32767,
                )
                data = smooth((48, 13, 24), "i2")
                data[5, 3] = -32767
                v[:] = data


def packed(book):
    """Every pair of packed type and attribute type."""
    for attribute in ("f4", "f8"):
        for fmt in ("NETCDF3_CLASSIC", "NETCDF4"):
            with book.nc(f"packed_{attribute}_{SHORT[fmt]}.nc", fmt) as ds:
                ds.createDimension("x", 60)
                for t in ("i1", "i2", "i4") + (("u1", "u2") if fmt == "NETCDF4" else ()):
                    v = variable(
                        ds,
                        f"p_{t}",
                        t,
                        ("x",),
                        None,
                        {"scale_factor": np.array(0.01, attribute), "add_offset": np.array(-3.5, attribute)},
                        fill_value=np.iinfo(t).max,
                    )
                    v[:] = smooth((60,), t)
                    v[3] = np.iinfo(t).max
                variable(ds, "scale_only", "i2", ("x",), smooth((60,), "i2"), {"scale_factor": np.array(2, attribute)})
                variable(ds, "offset_only", "i2", ("x",), smooth((60,), "i2"), {"add_offset": np.array(100, attribute)})
                variable(ds, "integer_scale", "i2", ("x",), smooth((60,), "i2"), {"scale_factor": np.int32(10)})
                variable(
                    ds,
                    "unsigned",
                    "i1",
                    ("x",),
                    np.arange(-30, 30),
                    {"_Unsigned": "true", "scale_factor": np.array(0.5, attribute)},
                    fill_value=-1,
                )


def calendars(book):
    for i, calendar in enumerate(CALENDARS):
        with book.nc(f"calendar_{calendar}.nc", FORMATS[i % 5]) as ds:
            ds.createDimension("time", None)
            variable(
                ds,
                "time",
                "f8",
                ("time",),
                np.arange(800) + 0.5,
                {"units": "days since 1999-01-01", "calendar": calendar},
            )
            variable(ds, "v", "f4", ("time",), smooth((800,)))
    for i, units in enumerate(UNITS):
        with book.nc(f"units_{i}.nc") as ds:
            ds.createDimension("time", 5)
            variable(ds, "time", "f4" if i % 2 else "i8", ("time",), np.arange(5), {"units": units})
            variable(ds, "v", "f4", ("time",), smooth((5,)))
    with book.nc("time_masked.nc", oracle="own") as ds:
        ds.createDimension("time", 5)
        variable(ds, "time", "f8", ("time",), [0, 1, 1e36, 3, 4], {"units": "days since 2000-01-01"}, fill_value=1e36)
        variable(ds, "lead", "i4", ("time",), np.arange(5), {"units": "hours"})
        variable(ds, "v", "f4", ("time",), smooth((5,)))


def satellite(book):
    with book.nc("swath.nc") as ds:
        for d, n in (("scan", 41), ("pixel", 53), ("band", 3)):
            ds.createDimension(d, n)
        variable(
            ds, "lat", "f4", ("scan", "pixel"), smooth((41, 53)), {"units": "degrees_north"}, fill_value=-999, zlib=True
        )
        variable(
            ds, "lon", "f4", ("scan", "pixel"), smooth((41, 53)), {"units": "degrees_east"}, fill_value=-999, zlib=True
        )
        v = variable(
            ds,
            "radiance",
            "u2",
            ("band", "scan", "pixel"),
            None,
            {
                "scale_factor": 0.0125,
                "add_offset": 0.0,
                "coordinates": "lat lon",
                "valid_range": np.array([0, 65530], "u2"),
            },
            fill_value=65535,
            zlib=True,
            chunksizes=(1, 41, 53),
        )
        v[:, :20] = smooth((3, 20, 53), "u2")
        variable(
            ds,
            "quality",
            "i1",
            ("scan", "pixel"),
            smooth((41, 53), "i1"),
            {"_Unsigned": "true", "flag_masks": np.array([1, 2, 4], "i1")},
            zlib=True,
        )
        g = ds.createGroup("metadata/geolocation")
        variable(g, "orbit", "i4", (), 1234)
    with book.nc("full_byte_image.nc", "NETCDF3_CLASSIC") as ds:
        ds.createDimension("y", 16)
        ds.createDimension("x", 16)
        variable(
            ds, "image", "i1", ("y", "x"), np.arange(256, dtype="u1").view("i1").reshape(16, 16), {"_Unsigned": "true"}
        )
    with book.nc("full_ubyte_image.nc", warns="image") as ds:
        ds.createDimension("y", 16)
        ds.createDimension("x", 16)
        variable(ds, "image", "u1", ("y", "x"), np.arange(256, dtype="u1").reshape(16, 16))


def meshes(book):
    with book.nc("ugrid.nc") as ds:
        for d, n in (("nodes", 12), ("faces", 7), ("corners", 4), ("time", None)):
            ds.createDimension(d, n)
        variable(
            ds,
            "mesh",
            "i4",
            (),
            0,
            {
                "cf_role": "mesh_topology",
                "topology_dimension": np.int32(2),
                "node_coordinates": "node_x node_y",
                "face_node_connectivity": "face_nodes",
            },
        )
        variable(ds, "node_x", "f8", ("nodes",), smooth((12,), "f8"))
        variable(ds, "node_y", "f8", ("nodes",), smooth((12,), "f8"))
        variable(
            ds,
            "face_nodes",
            "i4",
            ("faces", "corners"),
            np.arange(28).reshape(7, 4) % 13,
            {"start_index": np.int32(0)},
            fill_value=12,
        )
        variable(ds, "depth", "f4", ("time", "faces"), smooth((5, 7)), {"mesh": "mesh", "location": "face"})
    with book.nc("ocean_curvilinear.nc", "NETCDF4_CLASSIC") as ds:
        for d, n in (("time", None), ("lev", 3), ("j", 11), ("i", 13), ("vertices", 4)):
            ds.createDimension(d, n)
        for d, n in (("lev", 3), ("j", 11), ("i", 13)):
            variable(ds, d, "i4" if d != "lev" else "f8", (d,), np.arange(n))
        for name in ("latitude", "longitude"):
            variable(
                ds, name, "f8", ("j", "i"), smooth((11, 13), "f8"), {"bounds": f"vertices_{name}", "units": "degrees"}
            )
            variable(ds, f"vertices_{name}", "f8", ("j", "i", "vertices"), smooth((11, 13, 4), "f8"))
        variable(ds, "time", "f8", ("time",), np.arange(4), {"units": "days since 1850-01-01", "calendar": "gregorian"})
        v = variable(
            ds,
            "thetao",
            "f4",
            ("time", "lev", "j", "i"),
            None,
            {"coordinates": "latitude longitude"},
            fill_value=1e20,
            zlib=True,
        )
        v[:2] = smooth((2, 3, 11, 13))
    with book.nc("rotated_pole.nc", "NETCDF3_CLASSIC") as ds:
        for d, n in (("time", None), ("rlat", 9), ("rlon", 8)):
            ds.createDimension(d, n)
        variable(
            ds,
            "rotated_pole",
            "S1",
            (),
            None,
            {"grid_mapping_name": "rotated_latitude_longitude", "grid_north_pole_latitude": 39.25},
        )
        for d, n in (("rlat", 9), ("rlon", 8)):
            variable(ds, d, "f4", (d,), np.arange(n), {"units": "degrees"})
        for d in ("lat", "lon"):
            variable(ds, d, "f4", ("rlat", "rlon"), smooth((9, 8)))
        variable(ds, "time", "f8", ("time",), np.arange(5), {"units": "days since 1949-12-01", "calendar": "standard"})
        variable(
            ds,
            "pr",
            "f4",
            ("time", "rlat", "rlon"),
            smooth((5, 9, 8)),
            {"grid_mapping": "rotated_pole", "coordinates": "lon lat"},
        )


def tracks(book):
    rng = random("tracks")
    for fmt in ("NETCDF3_CLASSIC", "NETCDF4"):
        with book.nc(f"ragged_{SHORT[fmt]}.nc", fmt) as ds:
            for d, n in (("obs", None), ("trajectory", 4), ("id_len", 8)):
                ds.createDimension(d, n)
            ds.featureType = "trajectory"
            variable(ds, "row_size", "i4", ("trajectory",), [3, 0, 5, 2], {"sample_dimension": "obs"})
            variable(
                ds,
                "trajectory",
                "S1",
                ("trajectory", "id_len"),
                np.array([b"A1", b"BB22", b"", b"ZZZZZZZZ"], "S8").view("S1").reshape(4, 8),
                {"cf_role": "trajectory_id"},
            )
            variable(ds, "time", "f8", ("obs",), np.arange(10), {"units": "seconds since 2020-01-01"})
            variable(ds, "temp", "f4", ("obs",), smooth((10,)), fill_value=np.nan)
            if fmt == "NETCDF4":
                variable(ds, "ship", str, ("trajectory",), values(str, (4,), rng))
                variable(ds, "note", str, ("obs",), values(str, (10,), rng), {"long_name": "remarks"})
    with book.nc("stations.nc") as ds:
        for d, n in (("station", 6), ("time", None), ("name_strlen", 20)):
            ds.createDimension(d, n)
        variable(
            ds,
            "station_name",
            "S1",
            ("station", "name_strlen"),
            np.array([f"st{i}".encode() for i in range(6)], "S20").view("S1").reshape(6, 20),
            {"cf_role": "timeseries_id", "_Encoding": "utf-8"},
        )
        variable(ds, "time", "i8", ("time",), np.arange(30) * 3600, {"units": "seconds since 1970-01-01"})
        variable(
            ds,
            "humidity",
            "f4",
            ("station", "time"),
            smooth((6, 30)),
            {"coordinates": "station_name"},
            fill_value=-9999,
            zlib=True,
            chunksizes=(1, 10),
        )
        variable(ds, "dtype_bool", "i1", ("station",), [0, 1, 0, 1, 0, 1], {"dtype": "bool"})


def write(book):
    for chapter in (model_output, reanalysis, packed, calendars, satellite, meshes, tracks):
        chapter(book)
