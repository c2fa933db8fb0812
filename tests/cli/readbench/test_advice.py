"""Causes that are planted: readbench names them, and its advice can be followed (scripts/bench/advice.py)."""

import importlib
import sys

import pytest
from support import paths

sys.path.insert(0, str(paths.ROOT / "scripts" / "bench"))
advice = importlib.import_module("advice")
sys.path.pop(0)

PATIENCE = 30  # seconds for others to become quiet, each time


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return advice.Bench(paths.BUILD / "bin", tmp_path_factory.mktemp("advice"), rounds=3, patience=PATIENCE)


@pytest.mark.few(2)
@pytest.mark.parametrize("situation", [s for s in advice.SITUATIONS if s.fixed], ids=lambda s: s.name.replace(" ", "-"))
@pytest.mark.roomy
def test_what_is_planted_is_found(bench, situation):
    """Where it is no matter of speed: the verdict, the advice, and that its command runs as it was printed."""
    words = bench.words(situation, bench.store(situation))
    found = bench.diagnose(situation, words)
    assert advice.judge(situation, found) == "", found
    if found["proposal"]:
        bench.follow(found["proposal"]["command"], words)


@pytest.mark.long
@pytest.mark.parametrize("situation", advice.SITUATIONS, ids=lambda s: s.name.replace(" ", "-"))
def test_following_the_advice_helps(bench, situation):
    row = advice.look(bench, situation)
    if row.wrong == "disturbed":
        pytest.skip("other programs kept the CPUs busy")
    assert row.wrong == "", row.line()
