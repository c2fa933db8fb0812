"""Every command of the README and of docs/, as it stands there, in its order."""

import os
import re
import subprocess

import pytest

from support import paths, tool

PROGRAMS = ("nc2zarr", "chunkcalc", "rechunk", "readbench")
DOCUMENTS = ("README.md", "docs/converting.md", "docs/training.md")


def commands(document):
    """The lines of code blocks that begin with a program, continued lines joined."""
    text = (paths.ROOT / document).read_text().replace("\\\n", " ")
    for line in text.splitlines():
        found = re.match(r"    (?:\$ )?((?:%s) .*)" % "|".join(PROGRAMS), line)
        if found:
            yield found.group(1)


@pytest.fixture
def folder(tmp_path):
    """What `make demo` leaves in build/demo."""
    subprocess.run([tool.program("make_sample"), "weather.nc"], cwd=tmp_path, check=True)
    subprocess.run([tool.program("nc2zarr"), "-q", "weather.nc", "weather.zarr"], cwd=tmp_path, check=True)
    return tmp_path


def run(document, folder):
    env = dict(os.environ, PATH=f"{paths.BUILD / 'bin'}:{os.environ['PATH']}")
    for command in commands(document):
        done = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_there_are_commands():
    assert {c.split()[0] for c in commands("README.md")} == set(PROGRAMS)
    found = {f"docs/{p.name}" for p in (paths.ROOT / "docs").glob("*.md") if list(commands(f"docs/{p.name}"))}
    assert found == set(DOCUMENTS[1:])


def test_readme(folder):
    run("README.md", folder)
    assert (folder / "before" / "report.html").stat().st_size > 10000


@pytest.mark.parametrize("document", DOCUMENTS[1:])
def test_docs(document, folder):
    run(document, folder)


@pytest.mark.parametrize("document", ("README.md", *(f"docs/{p.name}" for p in (paths.ROOT / "docs").glob("*.md"))))
def test_links_lead_to_files(document):
    path = paths.ROOT / document
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / target).exists(), f"{document}: {target}"
