"""--report: planted faults are named and stand on the page, and clean data have none."""

import json
import re

import jsonschema
import netCDF4
import numpy as np
import pytest

from support import browser, fields, objects, paths, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "nc2zarr.json").read_text())


def report(source, folder, *args, status=0):
    """The member `report` of the document, and the page."""
    page = folder / "page.html"
    done = tool.run("nc2zarr", "--json", "-q", "--report", page, *args, source, folder / "out.zarr")
    assert done.status == status, done.err
    doc = json.loads(done.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(doc)
    return doc["report"], page.read_text()


def found(r):
    return [(f["kind"], f["variable"], f["first"], f["last"]) for f in r["findings"]]


@pytest.mark.few(12)
@pytest.mark.parametrize("name", fields.FAULTS)
def test_a_fault_is_named_and_shown(name, tmp_path):
    expected = fields.plant(tmp_path / "in.nc", name)
    r, page = report(tmp_path / "in.nc", tmp_path)
    assert found(r) == [expected]
    finding = r["findings"][0]
    assert f"<code>{finding['kind']}</code>" in page and finding["sentence"] in page.replace("&quot;", '"')
    if finding["first"] is not None and finding["variable"] != "lat":  # its steps are no strip's
        assert finding["from"] in page
        assert re.search(r"<polygon points=\"[^\"]*\" class=\"fd55e00\"", page)


def rain(seed=3, steps=150, rows=12, columns=16):
    """Lognormal showers, most of them nowhere."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(-1, 1.6, (steps, rows, columns)))
    return np.where(rng.random(x.shape) < 0.85, 0, x).astype("f4")


def sunshine(steps=240, rows=10, columns=12):
    """Hourly, of a small region: zero at night."""
    hour = np.arange(steps)[:, None, None] % 24
    lon = np.linspace(0, 1, columns)[None, None, :]
    shade = 0.9 + 0.1 * np.random.default_rng(5).random((steps, rows, columns))
    return (np.clip(np.sin((hour + lon - 6) / 24 * 2 * np.pi), 0, None) * 900 * shade).astype("f4")


def snow(steps=365, rows=10, columns=12):
    """None in summer."""
    day = np.arange(steps)[:, None, None]
    depth = np.linspace(0.2, 1, rows)[None, :, None] * np.ones((1, 1, columns))
    return (np.clip(np.cos(day / 365 * 2 * np.pi) + 0.2, 0, None) * depth).astype("f4")


def ice(steps=60):
    x = fields.make(steps, hours=24 * 30, mean=30, spread=60)
    x = np.clip(x, 0, 100)
    x[:, 8:14, 10:20] = np.nan
    return x


def swaths(steps=80):
    """A satellite's, which sees some of it each day."""
    x, rng = fields.make(steps), np.random.default_rng(8)
    for i in range(steps):
        x[i, :, rng.permutation(48)[: rng.integers(10, 35)]] = np.nan
    return x


def accumulated(steps=96):
    """From the start of each forecast, of 24 hours."""
    rng = np.random.default_rng(9)
    rate = rng.gamma(0.5, 1, (steps, 12, 16))
    return np.concatenate([rate[i:i + 24].cumsum(0) for i in range(0, steps, 24)]).astype("f4")


def per_step_quantum(steps=100):
    """As GRIB has it: the precision follows the range of each field."""
    x = fields.make(steps, hours=6)
    for i in range(steps):
        q = 2.0 ** (np.floor(np.log2(np.ptp(x[i]))) - 11 - i % 2)
        x[i] = np.round(x[i] / q) * q
    return x


def climatology(steps=36):
    return np.tile(fields.make(12, hours=24 * 30), (3, 1, 1))


def daily_in_hours(steps=96):
    return np.repeat(fields.make(steps // 24), 24, axis=0)


def noise(seed):
    return np.random.default_rng(seed).normal(0, 1, (90, 16, 24)).astype("f4")


def trend(steps=100):
    return (fields.make(steps) + np.linspace(0, 30, steps)[:, None, None]).astype("f4")


def packed(steps=80):
    return np.round((fields.make(steps) - 280) * 512).clip(-32766, 32767).astype("i2")


def monsoon(steps=120):
    """Monthly sums that rise tenfold in three months of each year."""
    x = np.random.default_rng(2).gamma(4, 1, (steps, 12, 16))
    return (x * np.where(np.isin(np.arange(steps) % 12, (5, 6, 7)), 10, 1)[:, None, None]).astype("f4")


JJA = np.concatenate([np.arange(152, 244) + 365.25 * y for y in range(5)])

CLEAN = {
    "daily": (lambda: fields.make(), {}),
    "daily, another": (lambda: fields.make(seed=7), {}),
    "six-hourly": (lambda: fields.make(hours=6, seed=2), {"hours": 6}),
    "hourly": (lambda: fields.make(240, hours=1, seed=3), {"hours": 1}),
    "monthly": (lambda: fields.make(96, hours=24 * 30.4, seed=4), {"time": np.cumsum(np.tile([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], 8))}),
    "three years": (lambda: fields.make(1095, 8, 16, seed=5), {}),
    "levels": (lambda: fields.make(60, levels=4, seed=6), {}),
    "float64": (lambda: fields.make(seed=11).astype("f8"), {}),
    "packed": (packed, {"attrs": {"t": {"scale_factor": 1 / 512, "add_offset": 280.0}}, "fill": np.int16(-32767)}),
    "wind": (lambda: fields.make(mean=0, spread=8, seed=12), {}),
    "geopotential": (lambda: fields.make(mean=5e4, spread=4e3, seed=13), {}),
    "a trend": (trend, {}),
    "rain": (rain, {}),
    "rain of a village": (lambda: rain(4, 300, 4, 4), {}),
    "rain each hour": (lambda: rain(6, 500, 8, 8), {"hours": 1}),
    "a monsoon": (monsoon, {"hours": 24 * 30}),
    "sunshine": (sunshine, {"hours": 1}),
    "snow": (snow, {}),
    "ice with land": (ice, {"hours": 24 * 30}),
    "swaths": (swaths, {}),
    "accumulated": (accumulated, {"hours": 1}),
    "precision of each field": (per_step_quantum, {"hours": 6}),
    "a climatology": (climatology, {"hours": 24 * 30}),
    "daily values each hour": (daily_in_hours, {"hours": 1}),
    "noise": (lambda: noise(1), {}),
    "other noise": (lambda: noise(2), {}),
    "summers": (lambda: fields.make(len(JJA), 8, 16), {"time": JJA}),
    "one step": (lambda: fields.make(1), {}),
    "two steps": (lambda: fields.make(2), {}),
    "backwards": (lambda: fields.make(), {"time": np.arange(120)[::-1]}),
    "chunks of series": (lambda: fields.make(), {"chunks": (120, 4, 4)}),
    "classes": (lambda: np.random.default_rng(4).integers(0, 5, (60, 12, 16)).astype("i1"), {}),
    "declared fill": (lambda: np.where(fields.make() > 295, np.float32(-9999), fields.make()), {"fill": np.float32(-9999)}),
    "a valid range": (lambda: fields.make(), {"attrs": {"t": {"valid_range": np.array([100, 400], "f4")}}}),
}  # fmt: skip


@pytest.mark.few(14)
@pytest.mark.parametrize("name", CLEAN)
def test_clean_data_have_no_finding(name, tmp_path):
    make, more = CLEAN[name]
    fields.write(tmp_path / "in.nc", {"t": make()}, **more)
    r, page = report(tmp_path / "in.nc", tmp_path)
    assert found(r) == [] and "<h2>Findings</h2>" not in page


@pytest.mark.parametrize("name", ["a step of zeros", "a swapped latitude", "a repeated day", "a time twice", "an outlier"])
def test_other_programs_find_the_same(name, tmp_path):
    """rechunk and chunkcalc, of the store and of the file, in other chunks."""
    expected = fields.plant(tmp_path / "in.nc", name)
    report(tmp_path / "in.nc", tmp_path)
    for argv in (["rechunk", "--report", tmp_path / "a.html", "--chunks", "t:time=50,lat=3,lon=full", "--json",
                  tmp_path / "out.zarr", tmp_path / "b.zarr"],
                 ["chunkcalc", "--json", "--report", tmp_path / "b.html", tmp_path / "b.zarr"],
                 ["chunkcalc", "--json", "--report", tmp_path / "c.html", tmp_path / "in.nc"]):  # fmt: skip
        done = tool.run(*argv).ok()
        doc = json.loads(done.out)
        schema = json.loads((paths.ROOT / "tools" / "schema" / f"{argv[0]}.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(doc)
        assert found(doc["report"]) == [expected], argv
        assert f"<code>{expected[0]}</code>" in (tmp_path / doc["report"]["path"]).read_text()


def test_numbers_are_those_of_numpy(tmp_path):
    """Of all chunks alike, and of packed data as readers show them."""
    x = fields.make(60, levels=3)
    x[3:5, 1, 2:9] = np.nan
    packed_values = np.where(np.isnan(x), -32767, np.round((np.nan_to_num(x) - 280) * 512).clip(-32766, 32767)).astype("i2")
    shown = np.where(packed_values == -32767, np.nan, packed_values / 512 + 280.0)
    fields.write(tmp_path / "x.nc", {"t": x})
    fields.write(tmp_path / "p.nc", {"t": packed_values}, fill=np.int16(-32767), attrs={"t": {"scale_factor": 1 / 512, "add_offset": 280.0}})
    for name, values in (("x", x.astype("f8")), ("p", shown)):
        for chunks in ("time=1", "time=7,level=2,lat=5,lon=9", "time=full,level=1,lat=2,lon=3", "time=full,level=1,lat=1,lon=1"):
            r, _ = report(tmp_path / f"{name}.nc", tmp_path, "--chunks", chunks, "--overwrite", "--verify", "none")
            v = next(v for v in r["variables"] if v["name"] == "t")
            assert (v["count"], v["missing"], v["steps"]) == (np.isfinite(values).sum(), np.isnan(values).sum(), 60)
            got = [v["min"], v["mean"], v["max"], v["std"]]
            assert got == pytest.approx([np.nanmin(values), np.nanmean(values), np.nanmax(values), np.nanstd(values)], rel=1e-6), chunks


def test_infinite_and_tiny_numbers_are_those_of_numpy(tmp_path):
    r = np.random.default_rng(1)
    field = r.normal(size=(4, 50))
    values = {name: field.astype("f4") for name in ("plus", "both", "tiny")} | {"apart": field.copy()}
    values["plus"][1, 3] = values["both"][1, 3] = values["apart"][0, 2] = np.inf
    values["both"][1, 4] = values["apart"][3, 2] = -np.inf
    values["tiny"] *= np.float32(3e-22)  # whose squares have few digits as float32
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as nc:
        nc.createDimension("time", 4)
        nc.createDimension("x", 50)
        for name, v in values.items():
            nc.createVariable(name, v.dtype, ("time", "x"))[:] = v
    doc, _ = report(tmp_path / "in.nc", tmp_path)
    got = {v["name"]: [float(v[k]) for k in ("min", "mean", "max", "std")] for v in doc["variables"]}
    with np.errstate(invalid="ignore"):
        wanted = {k: [v.min(), v.mean(), v.max(), v.std()] for k, v in values.items()}
        wanted["tiny"] = [float(f(values["tiny"].astype("f8"))) for f in (np.min, np.mean, np.max, np.std)]
    for name, numbers in wanted.items():
        assert got[name] == pytest.approx(numbers, rel=1e-6, abs=0, nan_ok=True), name


def test_refusals(tmp_path):
    fields.write(tmp_path / "in.nc", {"t": fields.make(4)})
    source, page, out = tmp_path / "in.nc", tmp_path / "p.html", tmp_path / "o.zarr"
    for args, said in [(["--part", "1/2"], "--report is about a whole store"), (["--dry-run"], "reads none"),
                       (["--survey"], "--survey reads no data")]:
        done = tool.run("nc2zarr", "--report", page, *args, source, out)
        assert done.status == 2 and said in done.err, done.err
        assert not page.exists()
    page.write_text("mine")
    done = tool.run("nc2zarr", "--report", page, source, out)
    assert done.status == 1 and page.read_text() == "mine" and not out.exists(), done.err
    done = tool.run("nc2zarr", "--report", source, source, out)
    assert done.status != 0 and not out.exists()
    page.unlink()
    tool.run("nc2zarr", "--report", page, source, out).ok()
    assert page.read_text().startswith("<!doctype html>")
    tool.run("chunkcalc", "--report", page, out).ok()  # a page of ours may be replaced
    assert "chunkcalc" in page.read_text()
    done = tool.run("nc2zarr", "--resume", "--report", page, source, out)
    assert done.status == 1 and "is complete" in done.err, done.err


def test_names_from_outside_are_text(tmp_path):
    fields.write(tmp_path / "in.nc", {"t": fields.make(6)}, attrs={"t": {"long_name": "<script>alert(1)</script>\"'&", "units": "<b>"}})
    _, page = report(tmp_path / "in.nc", tmp_path)
    assert "<script" not in page and "<b>)" not in page and "&lt;script&gt;" in page
    assert "http:" not in page and "https:" not in page


def test_a_bucket(tmp_path):
    """A store that goes to a bucket has its page here, and one that lies there is read for it."""
    expected = fields.plant(tmp_path / "in.nc", "a step of zeros")
    server = objects.Server()
    try:
        env, page = server.environment(), tmp_path / "p.html"
        done = tool.run("nc2zarr", "--json", "-q", "--report", page, tmp_path / "in.nc", "s3://bucket/out.zarr", env=env).ok()
        assert found(json.loads(done.out)["report"]) == [expected] and "s3://bucket/out.zarr" in page.read_text()
        done = tool.run("chunkcalc", "--json", "--report", page, "s3://bucket/out.zarr", env=env).ok()
        assert found(json.loads(done.out)["report"]) == [expected]
    finally:
        server.close()


def test_many_files_are_one_dataset(tmp_path):
    """A fault at the seam of two files, and steps that lie in both by their numbers in the whole."""
    x = fields.make(90)
    x[30] = 0
    for k in range(3):
        fields.write(tmp_path / f"in{k}.nc", {"t": x[30 * k:30 * k + 30]}, time=np.arange(30 * k, 30 * k + 30))
    done = tool.run("nc2zarr", "--json", "-q", "--report", tmp_path / "p.html", *sorted(tmp_path.glob("in*.nc")), tmp_path / "out.zarr").ok()
    assert found(json.loads(done.out)["report"]) == [("zeros", "t", 30, 30)]
    done = tool.run("nc2zarr", "--report", tmp_path / "q.html", "--store-per", "{variable}", *sorted(tmp_path.glob("in*.nc")), tmp_path / "many")
    assert done.status == 2 and "is of one store" in done.err


def test_what_has_no_values(tmp_path):
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        for name, n in (("time", None), ("lat", 0), ("lon", 4), ("z", 3)):
            ds.createDimension(name, n)
        ds.createVariable("a", "f4", ("z", "lat", "lon"))
        ds.createVariable("b", "f4", ("time", "lon"))
        ds.createVariable("c", "f4", ())[...] = 4
        ds.createVariable("d", str, ("z",))[:] = np.array(["x", "y", "z"], object)
        ds.createVariable("e", "f4", ("z",), fill_value=-1)
    r, page = report(tmp_path / "in.nc", tmp_path)
    assert found(r) == [("all-missing", "e", None, None)]
    assert "It has no values." in page and {v["name"] for v in r["variables"]} == {"a", "b", "e"}


LOOK = """({width: document.documentElement.scrollWidth,
  unnamed: document.querySelectorAll('img:not([alt]), svg:not([aria-label]), th:not([scope])').length,
  drawn: [...document.querySelectorAll('svg')].filter(s => getComputedStyle(s).display !== 'none')
    .map(s => s.getBoundingClientRect().width),
  maps: [...document.querySelectorAll('img.map')].map(i => i.naturalWidth),
  lang: document.documentElement.lang, title: document.title, scripts: document.scripts.length,
  headings: [...document.querySelectorAll('h1,h2,h3')].length})"""


def test_the_page_in_a_browser(tmp_path):
    if not browser.find():
        pytest.skip("chromium is not installed")
    fields.plant(tmp_path / "in.nc", "a step of zeros")
    report(tmp_path / "in.nc", tmp_path)
    b = browser.Browser(tmp_path / "profile")
    try:
        for width in (1400, 390):
            for dark in (False, True):
                b.open(tmp_path / "page.html", width=width, dark=dark)
                assert b.complaints() == []
                assert [u for u in b.requests() if not u.startswith("data:")] == [f"file://{tmp_path / 'page.html'}"]
                seen = b.evaluate(LOOK)
                assert seen["width"] <= width and seen["unnamed"] == 0 and seen["scripts"] == 0
                assert len(seen["drawn"]) == 1 and seen["drawn"][0] > 300
                assert seen["maps"] == [48, 48, 48] and seen["lang"] == "en" and "passport" in seen["title"]
        assert b.pdf().startswith(b"%PDF")
    finally:
        b.close()


REAL = [
    "20171025_2056.Cloud_Top_Height.nc", "basin_mask.nc", "coads_climatology.nc4", "eraint_uvz.nc",
    "mrsos_day_HadGEM2-ES_rcp45_r1i1p1_20051201-20151130.nc", "outCSne30_vortex.nc",
    "pr_Amon_HadGEM3-GC31-MM_dcppA-hindcast_s2004-r3i1p1f2_gn_200411-200412.nc",
    "psl_EUR-11_MOHC-HadGEM2-ES_rcp85_r1i1p1_IPSL-WRF381P_v1_day_20510101-20601231.nc", "ref_test_360_day_1900.nc",
    "sfcWind_ANT-44_ECMWF-ERAINT_evaluation_r1i1p1_KNMI-RACMO21P_v1_day_19810101-19851231.nc",
    "siconc_SImon_MPI-ESM1-2-HR_historical_r1i1p1f1_gn_185001-185412.nc",
    "tas_AFR-22_MPI-M-MPI-ESM-LR_historical_r1i1p1_GERICS-REMO2015_v1_day_19960101-20001231.nc",
    "tas_Amon_HadGEM2-ES_rcp85_r1i1p1_200512-203011.nc", "tas_day_EC-EARTH_historical_r1i1p1_19600101-19691231.nc",
    "tos_Omon_CNRM-CM6-1_ssp245_r1i1p1f2_gn_201501.nc", "zostoga_Omon_HadGEM2-ES_rcp45_r1i1p1_200512-209911.nc",
]  # fmt: skip


@pytest.mark.every
@pytest.mark.parametrize("name", REAL)
def test_real_data_have_no_finding(name, tmp_path):
    source = paths.SHARED / "data" / "netcdf" / name
    if not source.exists():
        pytest.skip("the folder of real data is not there")
    r, _ = report(source, tmp_path)
    assert found(r) == []
