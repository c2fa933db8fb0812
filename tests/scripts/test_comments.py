"""Comments name the thing first: what lint says of those that do not, and how many a folder may still have."""

import shutil
import subprocess
import sys

import pytest
from support import paths

END = "comments name the thing first, then say what holds of it"


def check(folder, files, table):
    for name, text in {"scripts/comments.txt": table, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    shutil.copy(paths.ROOT / "scripts/comments.py", folder / "scripts")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    done = subprocess.run([sys.executable, "-B", "scripts/comments.py"], cwd=folder, capture_output=True, text=True)
    *said, last = done.stderr.splitlines() or [END]
    assert (done.returncode, last) == (1 if said else 0, END)
    return said


@pytest.mark.parametrize("name, text, said", [
    ("lib/a.c", "int a; /* What is left. */", ["lib/a.c:1: What is left."]),
    ("lib/a.c", "/*\n * Who asks\n * gets it.\n */", ["lib/a.c:1: Who asks"]),
    ("lib/a.h", "\n// Whose it is", ["lib/a.h:2: Whose it is"]),
    ("lib/a.c", 'const char *s = "/* What is left. */";', []),
    ("lib/a.c", "/* The rest: what is left. */\n/* Whole. */\n/* Those of a file. */", []),
    ("a.py", "x = 1  # What is left", ["a.py:1: What is left"]),
    ("a.py", "# The rest.\n# What is left is the second line of a comment.", []),
    ("a.py", "x = 1  # one\n# Those that are left", ["a.py:2: Those that are left"]),
    ("a.py", 'def f():\n    """What is left."""', ['a.py:2: What is left."""']),
    ("a.py", 's = """What is left."""', []),
])
def test_beginnings(tmp_path, name, text, said):
    assert check(tmp_path, {name: text + "\n"}, "# none\n") == said


def test_as_many_as_allowed(tmp_path):
    files = {f"lib/load/{name}.c": "/* What is left. */\n" for name in "ab"}
    assert check(tmp_path, files, "2 lib/load\n") == []
    (tmp_path / "lib/load/c.c").write_text("/* What is new. */\n")
    assert check(tmp_path, {}, "2 lib/load\n") == [
        "lib/load/a.c:1: What is left.", "lib/load/b.c:1: What is left.", "lib/load/c.c:1: What is new.",
        "lib/load: 3 comments name nothing, allowed are 2"]
