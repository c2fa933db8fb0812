"""No output differs from what was blessed (golden.py), in one byte."""

import tempfile
from pathlib import Path

import pytest

from support import paths

from . import golden

TABLE = golden.Table.read()
SAMPLE = paths.tries(15, 3, 1)  # one in so many inputs
NAMES = list(TABLE.facts)


@pytest.fixture(scope="session")
def bench():
    """The inputs, made once by each process that runs tests."""
    with tempfile.TemporaryDirectory() as folder:
        yield golden.Bench(Path(folder))


@pytest.mark.skipif(paths.SANITIZED, reason="takes minutes there, and other suites run the same code")
@pytest.mark.parametrize("name", NAMES[::SAMPLE])
def test_outputs_are_as_blessed(bench, name):
    assert golden.check(bench, TABLE, name) == []


def test_table_covers_every_input(bench):
    assert sorted(bench.files + bench.stores) == sorted(NAMES)
    assert len(TABLE.rows) == sum(len(bench.labels(name)) for name in NAMES) >= 1800
