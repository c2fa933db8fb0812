"""Every command of the README and of docs/, as it stands there, in its order."""

import html
import json
import os
import re
import shutil
import subprocess

import pytest

from support import paths

PROGRAMS = ("nc2zarr", "chunkcalc", "rechunk", "readbench")
DOCUMENTS = ("README.md", "docs/archives.md", "docs/converting.md", "docs/loader.md", "docs/training.md")


def commands(document):
    """The lines of code blocks that begin with a program, continued lines joined."""
    text = (paths.ROOT / document).read_text().replace("\\\n", " ")
    for line in text.splitlines():
        found = re.match(r"    (?:\$ )?((?:%s) .*)" % "|".join(PROGRAMS), line)
        if found:
            yield found.group(1)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder that `make demo` leaves, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run([paths.ROOT / "scripts" / "demo.sh", paths.BUILD, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.fixture
def folder(demo, tmp_path):
    shutil.copytree(demo[0], tmp_path / "demo")
    return tmp_path / "demo"


def run(document, folder):
    env = dict(os.environ, PATH=f"{paths.BUILD / 'bin'}:{os.environ['PATH']}")
    for command in commands(document):
        done = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, text=True)
        # The archive of the demo needs decisions, and its survey says so.
        assert done.returncode == (4 if "--survey" in command else 0), f"{command}\n{done.stderr}"


def test_there_are_commands():
    assert {c.split()[0] for c in commands("README.md")} == set(PROGRAMS)
    found = {f"docs/{p.name}" for p in (paths.ROOT / "docs").glob("*.md") if list(commands(f"docs/{p.name}"))}
    # Commands for several machines are run by tests/cli/common/test_launchers.py, the gallery's by tests/archive/test_gallery.py,
    # those of logs, pages and repositories, whose files are not here, by the tests of these.
    elsewhere = {"docs/scale.md", "docs/gallery.md", "docs/replay.md", "docs/passport.md", "docs/icechunk.md"}
    assert found == set(DOCUMENTS[1:]) | elsewhere


@pytest.mark.long
def test_the_page_of_the_demo(demo):
    folder, printed = demo
    page = (folder / "comparison" / "report.html").read_text()
    assert not re.search(r"""(src|href)=["']?(https?:)?//|url\(|@import""", page), "it needs a network"
    sessions = json.loads((folder / "comparison" / "summary.json").read_text())["sessions"]
    stores = ["weather.nc", "windows.zarr", "weather.zarr"]
    assert [s["store"] for s in sessions] == stores
    page = re.sub("<small>.*?</small>", "", page)
    row = {re.sub("<[^>]+>", "", name): [html.unescape(re.sub("<[^>]+>", "", c)) for c in re.findall("<td.*?</td>", cells)]
           for name, cells in re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page)}
    for i, s in enumerate(sessions):
        assert float(row["samples/s"][i].replace(",", "")) == pytest.approx(s["rates"]["samples"], rel=0.01)
        assert float(row["bytes decoded over bytes used"][i]) == pytest.approx(s["amplification"]["bytes"], rel=0.01)
    # Independent of the machine's load: the store for the sample decodes the least in vain.
    assert sessions[1]["amplification"]["bytes"] < min(sessions[i]["amplification"]["bytes"] for i in (0, 2))
    heading = html.unescape(re.search("<h1.*?>(.*?)</h1>", page).group(1))
    assert any(store in heading for store in stores) and heading in printed
    digests = re.findall(r"^ *([0-9a-f]{32})  z ", (folder / "demo.log").read_text(), re.M)
    assert len(digests) == 2 and len(set(digests)) == 1


@pytest.mark.long
def test_one_after_the_other(folder):
    """All pages in one folder: what one makes is in no other's way."""
    assert not [c for c in commands("README.md") if "--overwrite" in c]
    for document in DOCUMENTS:
        run(document, folder)
    assert (folder / "before" / "report.html").stat().st_size > 10000


@pytest.mark.long
def test_the_demo_is_short_and_can_be_made_again(demo):
    folder, printed = demo
    assert len(printed.splitlines()) == 9, "make demo says one line before"
    there = set(os.listdir(folder))
    done = subprocess.run([paths.ROOT / "scripts" / "demo.sh", paths.BUILD, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 9 and done.stderr == ""
    assert set(os.listdir(folder)) == there


@pytest.mark.long(ci=2)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_docs(document, folder):
    run(document, folder)


@pytest.mark.every
@pytest.mark.parametrize("document", ("README.md", *(f"docs/{p.name}" for p in (paths.ROOT / "docs").glob("*.md"))))
def test_links_lead_to_files(document):
    path = paths.ROOT / document
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / target).exists(), f"{document}: {target}"
