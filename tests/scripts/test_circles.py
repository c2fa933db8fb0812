"""Circles of files are found in objects, and the list of those that stand may only shrink."""

import shutil
import subprocess
import sys

import pytest
from support import paths

# Each file defines the functions of its line, and calls those behind the colon.
STANDS = "a one: two\nb two: three\nc three: one\nd four: one five\ne five:"
LIST = "lib/a.c\nlib/b.c\nlib/c.c\n"


class House:
    """A folder with sources, their objects, and a list of circles."""

    def __init__(self, folder):
        self.folder, self.list = folder, folder / "scripts/circles.txt"
        for name in ("scripts", "lib", "build/lib"):
            (folder / name).mkdir(parents=True)
        shutil.copy(paths.ROOT / "scripts/circles.py", folder / "scripts")

    def build(self, table):
        for file in [*self.folder.rglob("*.c"), *self.folder.rglob("*.o")]:
            file.unlink()
        for line in table.splitlines():
            head, calls = line.split(":")
            file, *names = head.split()
            calls = calls.split()
            text = "".join(f"void {name}(void);\n" for name in sorted({*names, *calls}))
            text += f"void {names[0]}(void) {{ {''.join(f'{name}(); ' for name in calls)}}}\n"
            text += "".join(f"void {name}(void) {{}}\n" for name in names[1:])
            source, built = self.folder / f"lib/{file}.c", self.folder / f"build/lib/{file}.o"
            for path in (source, built):
                path.parent.mkdir(exist_ok=True)
            source.write_text(text)
            subprocess.run(["cc", "-c", "-o", built, source], check=True)
        return self

    def run(self, *args):
        done = subprocess.run([sys.executable, "scripts/circles.py", "build", *args], cwd=self.folder,
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path).build(STANDS)
    made.list.write_text(LIST)
    return made


def test_what_stands_passes(house):
    assert house.run() == (0, "")


@pytest.mark.parametrize("table, said", [
    ("a one: two\nb two: three\nc three: one\nx/d four: five\ny/e five: four",
     "lint: a circle of folders: lib/x/d.c calls five of lib/y/e.c, which calls four of lib/x/d.c; "),
    ("a one: two\nb two: three\nc three: one\nd four: five\ne five: four",
     "lint: a new circle of lib/d.c, lib/e.c: lib/d.c calls five of lib/e.c, which calls four of lib/d.c; "),
    ("a one: two\nb two: three five\nc three: one\nd four: one\ne five: four",
     "lint: lib/d.c, lib/e.c joined the circle of lib/a.c: lib/b.c calls five of lib/e.c, which calls four of lib/d.c, "
     "which calls one of lib/a.c, which calls two of lib/b.c; "),
    ("a one: two six\nb two: three\nc three: one\nd four six: one five\ne five:",
     "lint: lib/d.c joined the circle of lib/a.c: lib/a.c calls six of lib/d.c, which calls one of lib/a.c; "),
    # A file with another name is a new one, until the list has that name.
    ("a one: two\nb two: three\nx three: one",
     "lint: lib/x.c joined the circle of lib/a.c: lib/b.c calls three of lib/x.c, which calls one of lib/a.c, "
     "which calls two of lib/b.c; "),
])
def test_what_grows_fails_and_is_not_blessed(house, table, said):
    house.build(table)
    for args in ((), ("--bless",)):
        status, text = house.run(*args)
        assert status == 1 and text.startswith(said) and text.count("lint:") == 1, text
    assert house.list.read_text() == LIST


def test_two_that_become_one(house):
    house.list.write_text(LIST + "\nlib/d.c\nlib/e.c\n")
    table = "a one: two {}\nb two: three\nc three: one\nd four: one five\ne five: four"
    assert house.build(table.format("")).run() == (0, "")
    status, text = house.build(table.format("five")).run()
    assert status == 1 and text.startswith("lint: the circles of lib/a.c and lib/d.c became one: lib/a.c calls five "
                                           "of lib/e.c, which calls four of lib/d.c, which calls one of lib/a.c; ")


@pytest.mark.parametrize("table, left", [
    ("a one: two\nb two: one\nc three: one", [["lib/a.c", "lib/b.c"]]),
    ("a one: two\nb two:\nc three: one", []),
    ("a one: two\nb two: one", [["lib/a.c", "lib/b.c"]]),
])
def test_what_shrinks_is_taken_off_the_list(house, table, left):
    house.build(table)
    status, text = house.run()
    assert status == 1 and "shrink the list: run scripts/circles.py build --bless" in text and "lib/c.c" in text
    assert house.run("--bless")[0] == 0
    blocks = house.list.read_text().split("\n\n")[1:]
    assert [block.split() for block in blocks] == left
    assert house.run() == (0, "")


def test_a_source_without_object_is_told(house):
    (house.folder / "build/lib/e.o").unlink()
    status, text = house.run()
    assert status == 1 and "build/lib/e.o is missing" in text
    # An object of a source that is gone counts no more.
    house.build(STANDS)
    (house.folder / "lib/c.c").unlink()
    assert "shrink the list" in house.run()[1]
