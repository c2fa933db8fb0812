"""Whether two stores hold the same: bytes, or values."""

import json
import subprocess

from . import tool


def same_files(a, b):
    """The names and bytes of two folders."""
    done = subprocess.run(["diff", "-r", a, b], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[:2000] + done.stderr


def digest(place, env=None, *options):
    """The rows of `rechunk --digest PLACE`, which may be a file, sorted; each is its words."""
    return sorted(line.split() for line in tool.run("rechunk", "--digest", *options, place, env=env).ok().out.splitlines())


def digests(place, *options, env=None, partial=False):
    """{array: digest}; PARTIAL: without arrays that have none, for which the program ends with 3."""
    done = tool.run("rechunk", "--digest", "--json", *options, place, env=env)
    if done.status != 3 or not partial:
        done.ok()
    return {row["name"]: row["digest"] for row in json.loads(done.out)["digests"] if row["digest"] or not partial}


def allow(*folders):
    """Options that let references point to FOLDERS."""
    return [word for folder in folders for word in ("--allow", folder)]
