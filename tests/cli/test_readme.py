"""Every command of the README, as it stands there, in its order."""

import os
import re
import subprocess

import pytest

from support import paths, tool

PROGRAMS = ("nc2zarr", "chunkcalc", "rechunk", "readbench")


def commands():
    """The lines of code blocks that begin with a program, continued lines joined."""
    text = (paths.ROOT / "README.md").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        found = re.match(r"    (?:\$ )?((?:%s) .*)" % "|".join(PROGRAMS), line)
        if found:
            yield found.group(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What `make demo` leaves in build/demo."""
    path = tmp_path_factory.mktemp("readme")
    subprocess.run([tool.program("make_sample"), "weather.nc"], cwd=path, check=True)
    subprocess.run([tool.program("nc2zarr"), "-q", "weather.nc", "weather.zarr"], cwd=path, check=True)
    return path


def test_there_are_commands():
    assert {c.split()[0] for c in commands()} == set(PROGRAMS)


def test_commands(folder):
    env = dict(os.environ, PATH=f"{paths.BUILD / 'bin'}:{os.environ['PATH']}")
    for command in commands():
        done = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_the_report_is_there(folder):
    assert (folder / "before" / "report.html").stat().st_size > 10000
