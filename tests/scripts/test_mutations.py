"""A mutation is made in a copy and found there; one whose line is gone or stands twice is an error."""

import importlib
import shutil
import subprocess
import sys

import pytest
from support import paths

MAKEFILE = """LAYERS := base
build/tests/unit/%: tests/unit/%.c lib/base/one.c
\t@mkdir -p $(@D) && cc -o $@ $^
test-programs: build/tests/unit/base/test_one
"""
SOURCE = "int one(void)\n{\n    return 1;\n}\nint two(void)\n{\n    return 2;\n}\nint same(void)\n{\n    return 2;\n}\n"
TEST = 'int puts(const char *); int one(void);\nint main(void) { if (one() == 1) return 0; puts("not ok 1 - test_one"); return 1; }\n'


@pytest.fixture
def house(tmp_path):
    for name, text in {"Makefile": MAKEFILE, "lib/base/one.c": SOURCE, "tests/unit/base/test_one.c": TEST, "tests/cli/x": ""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("scripts", "build", "tools"):
        (tmp_path / name).mkdir()
    shutil.copy(paths.ROOT / "scripts/mutations.py", tmp_path / "scripts")
    (tmp_path / ".gitignore").write_text("/build/\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def run(house, table, *args):
    (house / "scripts/mutations.txt").write_text(table)
    done = subprocess.run([sys.executable, "scripts/mutations.py", "build", *args], cwd=house, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_a_mutation_is_found_in_a_copy(house):
    table = "# Text.\n\nzero one.c tests/cli\n- return 1;\n+ return 0;\n\nother one.c tests/cli\n- int one(void)\n+ int one(int)\n"
    status, said, _ = run(house, table, "zero")
    assert status == 0
    assert said[1].split()[:-2] == ["zero", "unit", "tests/unit/base/test_one", "test_one"]
    assert said[2:] == ["1 mutations, 1 caught by unit, 0 by goldens, 0 by tests, 0 not caught"]
    assert (house / "lib/base/one.c").read_text() == SOURCE
    assert not list((house / "build").iterdir())


def test_the_table_is_true(house):
    table = (
        "gone one.c tests/cli\n- return 3;\n+ return 4;\n\n"
        "twice one.c tests/cli\n- return 2;\n+ return 4;\n\n"
        "nowhere one.c tests/no\n- return 1;\n+ return 4;\n"
    )
    status, said, wrong = run(house, table)
    assert (status, said) == (1, [])
    assert wrong.splitlines() == [
        "mutations.py: gone: one.c has no lines: return 3;",
        "mutations.py: twice: one.c has 2 lines: return 2;",
        "mutations.py: nowhere: tests/no is not there",
    ]
    assert run(house, "zero one.c tests/cli\n- return 1;\n+ return 0;\n", "zeroes")[2] == "mutations.py: there is no mutation zeroes\n"


def test_the_project_s_table_is_true(monkeypatch):
    """Each line stands in one source, of a layer whose unit tests are known, and each test is there."""
    monkeypatch.syspath_prepend(paths.ROOT / "scripts")
    mutations = importlib.import_module("mutations")
    table = mutations.read_table([])
    assert len(table) >= 30 and {m.layer for m in table} <= set(mutations.LAYERS)
