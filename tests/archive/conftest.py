"""Libraries to preload, and what is known not to hold yet."""

import re

import pytest

from support import paths

# Patterns of test names.  Strict: who makes one of them pass takes it out.
NOT_YET = {
    r"test_traps.*\[dimension renamed-": "--rename of a joined dimension",
    r"test_traps.*\[history-0\]": "names one file, not all that differ",
    r"test_traps.*\[a shorter dimension-": "is taken for a second dimension to join along, and names no file",
    r"test_traps.*\[gap, filled-": "bounds of the filled steps are fill values",
    r"test_damage.*test_a_(stale|damaged)_cache": "--survey-cache",
    r"test_kinds.*(goes|in_the_path|store_per)": "--new-dim, --store-per",
}


def pytest_collection_modifyitems(items):
    for item in items:
        for pattern, reason in NOT_YET.items():
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(scope="session")
def badlibrary():
    """Makes netCDF-C fail as it does on some damaged files."""
    return paths.BUILD / "tests" / "lib" / "badlibrary.so"
