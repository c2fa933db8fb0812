"""3,000 archives at random, in which what gives numbers their meaning varies from file to file: no silent difference.

A conversion is refused, or its store shows what each file shows at the same coordinates and nothing else.  The store
is not verified by the program, but held against `meaning_reference`, which shares no code with it.
"""

import contextlib
import datetime
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

from support import paths, tool

from . import files as F
from . import meaning_reference as R
from . import random_meaning

SHORT, LONG, SHARDS = 40, 3000, 30


class Outcome:
    """SAID is what the program said where it refused; PROBLEMS are silent differences."""

    def __init__(self, case):
        self.case, self.said, self.problems, self.why = case, "", [], set()


def command(case, *more, layout=True):
    return tool.nc2zarr("-q", "-j", "1", "--verify", "none", *case.command(layout), *more)


def refused(r):
    """True where it was refused in a sentence; a crash is none."""
    if r.status == 0:
        return False
    assert r.status in (1, 2, 4) and r.err.startswith("nc2zarr: "), str(r)
    return True


def judged(outcome, files, out, nbase=None):
    case = outcome.case
    shown = [R.show_file(p) for p in files]
    if case.within:
        shown = [R.within(f, "time", *case.within) for f in shown]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store = R.show_store(R.open_store(out))
    outcome.problems += R.Judge(shown, store, case.axes, case.options, nbase).judge()
    return outcome


def run(seed, folder):
    case = random_meaning.case(seed)
    outcome = Outcome(case)
    folder = Path(folder)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
    files = F.write_all(case.files, folder / "in")
    MODES[case.mode](outcome, files, folder / "out.zarr")
    if outcome.said:
        outcome.why = R.disagreements([R.show_file(p) for p in files], case.axes, case.options)
    return outcome


def at_once(outcome, files, out):
    r = command(outcome.case, *files, out)
    if refused(r):
        outcome.said = r.err
        assert not (out / "zarr.json").exists() and not (out / ".zgroup").exists(), str(r)
        return outcome
    return judged(outcome, files, out)


def appended(outcome, files, out):
    """The first files, then the others; where these are refused the store shows the first ones still."""
    k = 1 + outcome.case.seed // 10 % (len(files) - 1)
    done = at_once(outcome, files[:k], out)
    if done.said or done.problems:
        return done
    r = command(outcome.case, "--append", "time", *files[k:], out, layout=False)
    if not refused(r):
        return judged(outcome, files, out, k)
    outcome.said = r.err
    return judged(outcome, files[:k], out)


def in_parts(outcome, files, out):
    n = 2 + outcome.case.seed // 10 % 2
    for k in range(1, n + 1):
        r = command(outcome.case, "--part", f"{k}/{n}", *files, out)
        if refused(r):
            outcome.said = r.err
            return outcome
    return judged(outcome, files, out)


def referred(outcome, files, out):
    out = out.with_suffix(".json")
    r = command(outcome.case, "--virtual", "json", *files, out)
    if refused(r):
        outcome.said = r.err
        assert not out.exists(), str(r)
        return outcome
    return judged(outcome, files, out)


MODES = {"one": at_once, "append": appended, "parts": in_parts, "virtual": referred}


# Said of files that mean the same, these would be wrong.
DIFFERENT = ("its values are not those of", "has another value", "overlapping steps differ")


def hold(seeds, folder):
    wrong, accepted = [], 0
    for seed in seeds:
        outcome = run(seed, folder)
        accepted += not outcome.said
        if not outcome.why and any(text in outcome.said for text in DIFFERENT):
            wrong.append(f"seed {seed}: refused, and nothing differs: {outcome.said}")
        wrong += [f"seed {seed}: {p}" for p in outcome.problems[:3]]
    assert not wrong, "\n".join(wrong)
    return accepted


@pytest.mark.parametrize("shard", range(4))
def test_some(shard, tmp_path):
    hold(range(shard, SHORT, 4), tmp_path / "case")


def by_xarray(path):
    """{name: elements} as xarray shows them, dates in microseconds; without dates of calendars in which it fails at missing ones."""
    with xr.open_dataset(path, decode_times=False, mask_and_scale=False) as ds:
        odd = {n for n, v in ds.variables.items() if v.attrs.get("calendar") in ("noleap", "360_day")}
        odd |= {ds[n].attrs["bounds"] for n in odd if "bounds" in ds[n].attrs}
    with xr.open_dataset(path, drop_variables=odd, decode_timedelta=False) as ds:
        flat = {n: np.ravel(v.values) for n, v in ds.variables.items()}
    return {n: (v.astype("M8[us]") if v.dtype.kind == "M" else v).tolist() for n, v in flat.items()}


def seen(x):
    """An element of the reference as xarray has it."""
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=x[1]) if isinstance(x, tuple) else x.encode() if isinstance(x, str) else x


@pytest.mark.parametrize("seed", range(12))
def test_the_reference_decodes_as_xarray_does(seed, tmp_path):
    for path in F.write_all(random_meaning.case(seed).files, tmp_path):
        shown = R.show_file(path).vars
        for name, want in by_xarray(path).items():
            got = [seen(x) for x in shown[name].values.ravel()]
            assert got == [None if x != x else x for x in want], (path.name, name)


def damaged(kind):
    def value(store):
        store["t2m"][0, 0] += 2

    def epoch(store):
        store["time"].attrs["units"] = "days since 2000-01-02"

    def fill(store):
        store["t2m"].attrs["_FillValue"] = 4

    def attribute(store):
        store["t2m"].attrs["long_name"] = "coldness"

    def step(store):
        store["time"].resize((5,))

    return locals()[kind]


@pytest.mark.parametrize("kind", ["value", "epoch", "fill", "attribute", "step"])
def test_the_judge_sees(kind, tmp_path):
    """Errors in a store are found, one at a time."""
    time = lambda *days: F.Var(("time",), np.array(days, "f8"), {"units": "days since 2000-01-01"})  # noqa: E731
    t2m = lambda *v: F.Var(("time", "lat"), np.array(v, "i2"), {"long_name": "warmth"}, fill=-1)  # noqa: E731
    files = [F.File("a.nc", {"time": time(0, 1), "t2m": t2m([2, 4], [6, -1])}), F.File("b.nc", {"time": time(2, 3), "t2m": t2m([4, 4], [8, 2])})]
    case = random_meaning.Case(0, files, {"time": "time"})
    paths, out = F.write_all(files, tmp_path / "in"), tmp_path / "out.zarr"
    done = at_once(Outcome(case), paths, out)
    assert not done.said and not done.problems
    damaged(kind)(zarr.open_group(str(out), mode="r+", use_consolidated=False))
    zarr.consolidate_metadata(str(out))
    assert judged(Outcome(case), paths, out).problems


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_all(shard, tmp_path):
    """Of each shard enough is converted; a program that refuses all would pass else."""
    n = LONG // SHARDS
    assert hold(range(SHORT + shard * n, SHORT + (shard + 1) * n), tmp_path / "case") > n // 4
