"""Fixtures for every suite, and the corpus made before tests are collected."""

import asyncio
import os
import re
import signal
import subprocess
import sys

import pytest

# Settings around the tests that must not affect them: proxies, credentials, and a launcher.
SURROUNDINGS = re.compile(
    r"(?i:.*_proxy)|(AWS|SLURM|SBATCH|SRUN|OMPI|PMI|PMIX|PBS|LSB|SGE|BATCH)_\w+|JOB_COMPLETION_INDEX|PARALLEL_SEQ|COLUMNS|LINES"
)
for name in filter(SURROUNDINGS.fullmatch, list(os.environ)):
    del os.environ[name]

# A shell has what it starts in the background ignore these, and nohup the last one; the programs would inherit that.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# Where a worker of xdist inherits it, hdf5plugin takes its filters for registered, and h5py writes with none.
os.environ.pop("HDF5_PLUGIN_PATH", None)
import hdf5plugin  # noqa: E402

# netCDF4 finds the filters that it lacks there; it looks once, when it is imported.
os.environ["HDF5_PLUGIN_PATH"] = hdf5plugin.PLUGIN_PATH

from support import memory, paths, progress, sampling, tool  # noqa: E402


async def at_once(function, /, *args, **kw):
    return function(*args, **kw)


# zarr-python asks a thread for each chunk and document; of some KB that takes longer than reading them.
asyncio.to_thread = at_once


def pytest_configure(config):
    progress.install(config)
    if hasattr(config, "workerinput"):
        return
    maker = paths.TESTS / "interop" / "make_corpus.py"
    subprocess.run([sys.executable, "-W", "ignore", str(maker), str(paths.CORPUS)], env=tool.environment(), check=True)


def pytest_collection_modifyitems(config, items):
    taken = sampling.choose(items)
    left = set(items) - set(taken)
    if memory.is_little():
        for item in items:
            if item.get_closest_marker("roomy"):
                item.add_marker(pytest.mark.skip(reason="the machine has too little memory"))
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = taken


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    try:
        return (yield)
    except Exception as failure:
        memory.excuse(failure)
        raise


@pytest.fixture
def out(tmp_path):
    """Where a test's store goes."""
    return tmp_path / "out.zarr"
