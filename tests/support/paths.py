"""Where things are."""

import os
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
BUILD = Path(os.environ.get("CHUNKMILL_BUILD") or ROOT / "build").resolve()
CORPUS = BUILD / "corpus"
MANIFEST = CORPUS / "manifest.json"
SHARED = ROOT.parent / "shared"
LONG = os.environ.get("CHUNKMILL_LONG") == "1"  # make check-long
ALL = os.environ.get("CHUNKMILL_ALL") == "1"  # the sanitizers' parts of it: nothing long, all cases
CI = os.environ.get("CHUNKMILL_CI") == "1"  # what .ci/run takes of it
FULL = LONG and os.environ.get("CHUNKMILL_FULL") == "1"  # make check-long FULL=1
PRELOAD = os.environ.get("CHUNKMILL_PRELOAD")  # what all programs run with (tests/conditions.sh)
SANITIZED = BUILD.name in ("asan", "tsan") or BUILD.name.endswith(("-asan", "-tsan"))


def tries(short, long, full):
    """How much a test tries: in `make check`, in `make check-long`, and there with FULL=1."""
    return full if FULL else long if LONG else short


def shared_files(*folders, suffixes=(".nc", ".nc4", ".h5", ".hdf5")):
    """Test parameters: the real files in shared/data, or one that skips visibly."""
    found = [p for f in folders for p in sorted((SHARED / "data" / f).glob("*")) if p.suffix in suffixes]
    if found:
        return [pytest.param(p, id=p.name) for p in found]
    return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason="no ../shared/data beside this checkout"))]
