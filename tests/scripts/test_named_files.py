"""Comments name files that are there: what lint says of those that are not."""

import shutil
import subprocess
import sys

import pytest
from support import paths

SOURCE = "lib/store/dir.c"


@pytest.mark.parametrize("comment, said", [
    ("/* dir.c, store/dir.c and lib/store/dir.c are this file. */", ""),
    ("/* NAME.c is whichever is meant, H5Zshuffle.c HDF5's, <stdio.h> the system's. */", ""),
    ('#include "gone.h"', ""),
    ("/* As\n * gone.c has it. */", "lib/store/dir.c:2: gone.c is no file"),
    ("int x; // zarr/dir.c", "lib/store/dir.c:1: zarr/dir.c is no file"),
])
def test_names(tmp_path, comment, said):
    for folder in ("scripts", "lib/store"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(paths.ROOT / "scripts/named_files.py", tmp_path / "scripts")
    (tmp_path / SOURCE).write_text(comment + "\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    done = subprocess.run([sys.executable, "-B", "scripts/named_files.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (1 if said else 0, said)
