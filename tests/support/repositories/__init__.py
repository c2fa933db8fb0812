"""Repositories that icechunk-python made (make.py), and what each version of them holds."""

import json
import pathlib
import tarfile

FOLDER = pathlib.Path(__file__).parent
NAMES = ("one", "two")  # by the format's version


def unpack(name, folder, made=FOLDER):
    """The repository's folder, and for each version its rows of digest, path and type."""
    with tarfile.open(made / f"{name}.tar.xz") as tar:
        # Python 3.11.2, Debian 12's, knows no filters.
        tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder, json.loads((made / f"{name}.json").read_text())["versions"]
