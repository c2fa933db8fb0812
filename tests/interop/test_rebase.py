"""Times of many files on one axis mean the instants that cftime and xarray decode in each file."""

import random
import subprocess
import warnings

import cftime
import numpy as np
import pytest
import xarray as xr

from support import paths

TIME_CAT = paths.BUILD / "tests" / "bin" / "time_cat"
CALENDARS = ["standard", "gregorian", "proleptic_gregorian", "julian", "noleap", "365_day", "all_leap", "360_day"]
REAL = {"standard", "gregorian", "proleptic_gregorian"}
UNITS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "milliseconds": 1e-3, "microseconds": 1e-6}
# Seconds between steps that real data have, and some that no clock has.
STEPS = [86400, 43200, 21600, 10800, 3600, 1800, 900, 600, 60, 1, 0.5, 0.001, 7 / 3]


def join(files, units=None):
    """(type, fill, lost, units, [values of each file]) as the library chooses, or its error."""
    text = ""
    for f in files:
        values = f["values"]
        shown = [float(v).hex() if values.dtype.kind == "f" else str(int(v)) for v in values]
        text += f"{values.dtype.name} {f['calendar']} {f.get('fill', '-')} {len(values)} {f['units']}\n"
        text += "".join(v + "\n" for v in shown)
    argv = [TIME_CAT] + (["--units", units] if units else [])
    r = subprocess.run(argv, input=text, capture_output=True, text=True, check=True)
    lines = r.stdout.splitlines()
    if lines[-1].startswith(("unsupported: ", "invalid: ", "format: ")):
        return lines[-1]
    dtype, fill, lost, units = lines[0].split(" ", 3)
    parse = float.fromhex if dtype.startswith("float") else int
    numbers = np.array([parse(v) for v in lines[1:]], dtype)
    return np.dtype(dtype), fill, lost, units, np.split(numbers, np.cumsum([len(f["values"]) for f in files])[:-1])


def by_cftime(values, units, calendar):
    return list(np.atleast_1d(cftime.num2date(values, units, calendar, only_use_cftime_datetimes=True)))


def by_xarray(values, units, calendar):
    """Nanoseconds, as xarray decodes them where it can."""
    ds = xr.Dataset({"t": ("t", values, {"units": units, "calendar": calendar})})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decoded = xr.decode_cf(ds).t.values
    return decoded.astype("datetime64[ns]").astype(np.int64) if decoded.dtype.kind == "M" else None


def same_instants(files, answer):
    dtype, _, _, units, parts = answer
    calendar = files[0]["calendar"]
    for f, got in zip(files, parts):
        assert got.dtype == dtype
        if len(got) == 0:
            continue
        want = by_cftime(f["values"], f["units"], f["calendar"])
        assert [d.timetuple()[:6] + (d.microsecond,) for d in by_cftime(got, units, calendar)] == [
            d.timetuple()[:6] + (d.microsecond,) for d in want
        ], (f, units)
        if calendar in REAL:
            a, b = by_xarray(f["values"], f["units"], f["calendar"]), by_xarray(got, units, calendar)
            assert (a is None) == (b is None)
            if a is not None:
                assert np.abs(a - b).max() < 1000, (f, units)


def numbers(rng, dtype, unit, step):
    """An ascending run of numbers, some of which no microsecond hits."""
    n, start = rng.randrange(0, 40), rng.randrange(0, 3000)
    values = (start + np.arange(n)) * step / UNITS[unit] if rng.random() < 0.8 else start + np.arange(n) * 1.0
    if np.dtype(dtype).kind != "f":
        values = np.clip(np.round(values), 0, np.iinfo(dtype).max)
    return values.astype(dtype)


def random_files(rng):
    calendar = rng.choice(CALENDARS)
    others = [calendar] if rng.random() < 0.8 or calendar not in REAL else sorted(REAL)
    step = rng.choice(STEPS)
    types = rng.choice([["float64"], ["float32"], ["int32"], ["int64"], ["int16", "uint8"], ["float32", "float64", "int32"]])
    units = rng.choice([[rng.choice(list(UNITS))], ["days", "hours"], list(UNITS)])
    year = rng.choice([1583, 1850, 1899, 1970, 2000, 2015])
    files = []
    for _ in range(rng.randrange(1, 6)):
        unit = rng.choice(units)
        date = f"{year + rng.randrange(0, 30)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"
        clock = rng.choice(["", "", " 00:00:00", " 12:00", "T06:30:00", " 00:00:00.5", " 03:00:00 +02:00"])
        values = numbers(rng, rng.choice(types), unit, step)
        files.append({"values": values, "units": f"{unit} since {date}{clock}", "calendar": rng.choice(others)})
    return files


@pytest.mark.long(ci=1)
def test_random_files_keep_their_instants():
    refused = 0
    for seed in range(paths.tries(400, 1000, 4000)):
        files = random_files(random.Random(seed))
        answer = join(files)
        if isinstance(answer, str):
            # Only what no unit and no integer below 2^53 can say.
            assert answer.startswith("unsupported: no type holds every time exactly"), (seed, answer)
            refused += 1
            continue
        same_instants(files, answer)
    assert refused < seed / 10, refused


DAILY = np.arange(31.0) + 0.5
CASES = {
    # As in CMIP6 archives: each file counts from its own first day.
    "drifting days": ([DAILY, DAILY], ["days since 2000-01-01", "days since 2000-02-01"], "float64", "days since 2000-01-01"),
    "hours that a double of days holds": (
        [DAILY, np.arange(0.0, 240, 3)],
        ["days since 2000-01-01", "hours since 2000-02-01"],
        "float64",
        "days since 2000-01-01",
    ),
    "hours that it does not hold": (
        [DAILY - 0.5, np.arange(0.0, 240)],
        ["days since 2000-01-01", "hours since 2000-02-01"],
        "int64",
        "hours since 2000-01-01",
    ),
    "hours written as days": (
        [np.arange(24) / 24, np.arange(24) / 24],
        ["days since 2000-01-01", "days since 2000-01-02"],
        "int64",
        "hours since 2000-01-01",
    ),
    "integers that days cannot say": (
        [np.arange(3, dtype="i4"), np.arange(72, dtype="i4")],
        ["days since 2000-01-01", "hours since 2000-01-04"],
        "int64",
        "hours since 2000-01-01",
    ),
    "integers stay of their type": (
        [np.arange(3, dtype="i4"), np.arange(3, dtype="i4") * 24],
        ["days since 2000-01-01", "hours since 2000-01-04"],
        "int32",
        "days since 2000-01-01",
    ),
    "integers that outgrow it": (
        [np.arange(3, dtype="i2"), np.arange(3, dtype="i2")],
        ["seconds since 2000-01-01", "seconds since 2001-01-01"],
        "int64",
        "seconds since 2000-01-01",
    ),
    "float32 is enough": (
        [np.arange(0, 24, 6, dtype="f4"), np.arange(0, 24, 6, dtype="f4")],
        ["hours since 2000-01-01", "hours since 2000-01-02"],
        "float32",
        "hours since 2000-01-01",
    ),
    "float32 is widened": (
        [np.arange(0, 1, 0.125, dtype="f4"), np.arange(0, 1, 0.125, dtype="f4") + np.float32(1e-3)],
        ["days since 1850-01-01", "days since 2000-02-01"],
        "float64",
        "days since 1850-01-01",
    ),
    "the date is spelled otherwise": (
        [DAILY, DAILY / 3],
        ["days since 2000-1-1", "days since 2000-01-01 00:00:00"],
        "float64",
        "days since 2000-1-1",
    ),
}


@pytest.mark.every
@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
@pytest.mark.parametrize("case", CASES)
def test_unit_and_type(case, calendar):
    values, units, dtype, want = CASES[case]
    files = [{"values": v, "units": u, "calendar": calendar} for v, u in zip(values, units)]
    answer = join(files)
    assert (answer[0], answer[3]) == (np.dtype(dtype), want)
    assert answer[2] == ("-" if want == units[0] else "1" if len(set(units)) > 1 and "written" not in case else answer[2])
    same_instants(files, answer)


@pytest.mark.parametrize("other", ["proleptic_gregorian", "gregorian", "standard"])
def test_calendars_that_agree_after_1582(other):
    files = [
        {"values": DAILY + 730000, "units": "days since 0001-01-01", "calendar": "standard"},
        {"values": DAILY + 730031, "units": "days since 0001-01-01", "calendar": other},
    ]
    answer = join(files)
    assert answer[3] == "days since 0001-01-01"
    same_instants(files, answer)


def test_a_date_before_1582_is_refused():
    files = [
        {"values": DAILY, "units": "days since 2000-01-01", "calendar": "standard"},
        {"values": DAILY, "units": "days since 1582-10-01", "calendar": "proleptic_gregorian"},
    ]
    assert join(files).startswith("unsupported: 1582-10-01T12:00:00 lies before 1582-10-15")


@pytest.mark.parametrize("a,b", [("noleap", "standard"), ("360_day", "365_day"), ("julian", "standard"), ("all_leap", "noleap")])
def test_other_calendars_are_refused(a, b):
    files = [{"values": DAILY, "units": "days since 2000-01-01", "calendar": c} for c in (a, b)]
    assert join(files).startswith("unsupported: times of the calendars")


@pytest.mark.parametrize("dtype,fill", [("int32", "-999"), ("float64", "nan"), ("float32", "-999.0")])
def test_missing_stays_missing(dtype, fill):
    values = np.array([0, float(fill), 2], dtype) if fill != "nan" else np.array([0, np.nan, 2], dtype)
    files = [{"values": values, "units": f"days since 2000-0{m}-01", "calendar": "noleap", "fill": fill} for m in (1, 2)]
    got_type, got_fill, _, _, parts = join(files)
    assert got_type == np.dtype(dtype)
    want = np.array([31, float(fill), 33], dtype) if fill != "nan" else np.array([31, np.nan, 33], dtype)
    np.testing.assert_array_equal(parts[1], want)


def test_missing_in_integers_that_had_none():
    files = [
        {"values": np.array([0.0, np.nan, 1 / 24]), "units": "days since 2000-01-01", "calendar": "standard"},
        {"values": np.arange(3.0), "units": "hours since 2000-01-02", "calendar": "standard"},
    ]
    dtype, fill, _, units, parts = join(files)
    assert (dtype, units) == (np.dtype("int64"), "hours since 2000-01-01")
    assert int(fill) == np.iinfo("int64").min == parts[0][1]
    assert parts[0][2] == 1 and list(parts[1]) == [24, 25, 26]
    decoded = xr.decode_cf(xr.Dataset({"t": ("t", parts[0], {"units": units})})).t.values
    assert np.isnat(decoded[1]) and not np.isnat(decoded[[0, 2]]).any()


def test_data_that_would_become_the_fill_value():
    files = [
        {"values": np.array([0, 1], "i4"), "units": "days since 2000-01-01", "calendar": "standard", "fill": "31"},
        {"values": np.array([0, 1], "i4"), "units": "days since 2000-02-01", "calendar": "standard"},
    ]
    assert join(files).startswith("invalid: 2000-02-01T00:00:00 would become the fill value")


def test_units_of_the_user():
    files = [{"values": DAILY, "units": f"days since 2000-0{m}-01", "calendar": "standard"} for m in (1, 2)]
    for units, dtype in [("hours since 1970-01-01", "float64"), ("days since 1999-12-31 12:00", "float64")]:
        answer = join(files, units)
        assert (answer[0], answer[3]) == (np.dtype(dtype), units)
        same_instants(files, answer)
    hourly = [dict(f, values=np.arange(24) / 24) for f in files]
    answer = join(hourly, "minutes since 1970-01-01")
    assert answer[3] == "minutes since 1970-01-01"
    same_instants(hourly, answer)
    assert join(hourly, "days since 1970-01-01").startswith("unsupported: no type holds every time exactly in 'days since")


def test_far_seconds_are_what_xarray_decodes():
    """A double of seconds, 150 years on, has nanoseconds that a product of doubles rounds."""
    files = [
        {"values": np.arange(5.0), "units": "seconds since 1850-01-01", "calendar": "standard"},
        {"values": np.arange(5.0) * 1000, "units": "milliseconds since 2005-01-01", "calendar": "standard"},
    ]
    answer = join(files)
    assert (answer[0], answer[3]) == (np.dtype("int64"), "milliseconds since 1850-01-01")
    same_instants(files, answer)
    near = [dict(f, units=f["units"].replace("2005", "1950")) for f in files]
    assert join(near)[0] == np.dtype("float64")


@pytest.mark.parametrize("year", [1700, 2000])
def test_hours_in_a_double_of_far_days(year):
    """Also where nanoseconds are out of xarray's range."""
    files = [
        {"values": np.arange(3.0), "units": "days since 1600-01-01", "calendar": "noleap"},
        {"values": np.arange(24.0), "units": f"hours since {year}-01-01", "calendar": "noleap"},
    ]
    answer = join(files)
    assert (answer[0], answer[3]) == (np.dtype("int64"), "hours since 1600-01-01")
    same_instants(files, answer)


def test_nothing_is_lost_to_integers_above_a_double():
    files = [
        {"values": np.arange(3.0), "units": "days since 0001-01-01", "calendar": "noleap"},
        {"values": np.arange(3) + np.array([0, 3e-6, 0]), "units": "seconds since 2000-01-01", "calendar": "noleap"},
    ]
    assert join(files).startswith("unsupported: no type holds")
