"""3,000 archives at random, in which what gives numbers their meaning varies from file to file: no silent difference.

A conversion is refused, or its store shows what each file shows at the same coordinates and nothing else.  The store
is not verified by the program, but held against `meaning_reference`, which shares no code with it.
"""

import contextlib
import shutil
import warnings
from pathlib import Path

import pytest

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


def hold(seeds, folder):
    wrong, accepted = [], 0
    for seed in seeds:
        outcome = run(seed, folder)
        accepted += not outcome.said
        wrong += [f"seed {seed}: {p}" for p in outcome.problems[:3]]
    assert not wrong, "\n".join(wrong)
    return accepted


@pytest.mark.parametrize("shard", range(4))
def test_some(shard, tmp_path):
    hold(range(shard, SHORT, 4), tmp_path / "case")


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_all(shard, tmp_path):
    """Of each shard enough is converted; a program that refuses all would pass else."""
    n = LONG // SHARDS
    assert hold(range(SHORT + shard * n, SHORT + (shard + 1) * n), tmp_path / "case") > n // 4
