#!/usr/bin/env python3
"""Makes several hundred small NetCDF and HDF5 files, each odd in its own way.

    make_corpus.py FOLDER

FOLDER/manifest.json says of every file what a converter must do with it (see
corpus/book.py).  The same program makes the same files; a folder that this
version has filled already is left as it is.
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from corpus import attributes, book, classic, climate, layouts, metadata, plain_hdf5, types  # noqa: E402


def fingerprint():
    h = hashlib.sha256()
    for source in sorted(HERE.glob("corpus/*.py")) + [
        HERE / "make_corpus.py",
        HERE / "requirements.txt",
        HERE.parent / "support" / "cdf.py",
    ]:
        h.update(source.read_bytes())
    return h.hexdigest()


def main(folder):
    manifest = folder / "manifest.json"
    stamp = fingerprint()
    try:
        if json.loads(manifest.read_text())["stamp"] == stamp:
            return
    except (OSError, ValueError, KeyError):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = book.Book(folder)
    for chapter in (types, layouts, classic, plain_hdf5, attributes, metadata, climate):
        chapter.write(files)
    manifest.write_text(json.dumps({"stamp": stamp, "files": files.entries}, indent=1))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
