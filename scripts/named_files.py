#!/usr/bin/env python3
"""named_files.py: names of source files, in comments and in lib/README.md, that no file has any more.

A name is `impl.h`, `zarr/meta.c` or `lib/store/dir.c`: the end of a path of this tree.  Prints
FILE:LINE: NAME for each that leads nowhere, but for sources of libraries and names in capitals.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"(?<![\w./<-])(?:[\w-]+/)*[\w-]+\.[ch](?![\w/>])")
# Sources and headers of the libraries whose formats are read.
FOREIGN = re.compile(r"H5\w+\.[ch]|bshuf_\w+\.c|blosc\.c|sz_compat\.c|szlib\.h|hdf5\.h|netcdf\.h|liburing\.h|nc4info\.c|hdf5open\.c")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def tracked(*patterns):
    said = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout
    return [path for path in said.splitlines() if (ROOT / path).is_file()]


def texts_of(path):
    """The text of a file, and of it what people read: (offset, text)."""
    text = (ROOT / path).read_text()
    return text, [(0, text)] if path.endswith(".md") else [(m.start(), m[0]) for m in COMMENT.finditer(text)]


def is_placeholder(name):
    return any(part.isupper() for part in re.split(r"[/.]", name))


def main():
    ends = set()
    for path in tracked("*.c", "*.h"):
        parts = path.split("/")
        ends.update("/".join(parts[i:]) for i in range(len(parts)))
    stale = []
    for path in tracked("lib/*.[ch]", "tools/*.[ch]", "include/*.h", "tests/unit/*.[ch]", "lib/README.md"):
        text, parts = texts_of(path)
        for offset, part in parts:
            for name in NAME.finditer(part):
                known = name[0] in ends or FOREIGN.fullmatch(name[0].split("/")[-1]) or is_placeholder(name[0])
                if not known:
                    line = text.count("\n", 0, offset + name.start()) + 1
                    stale.append(f"{path}:{line}: {name[0]} is no file")
    if stale:
        sys.exit("\n".join(stale))


if __name__ == "__main__":
    main()
