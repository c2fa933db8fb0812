"""Whether two stores hold the same: bytes, or values."""

import subprocess

from . import tool


def same_files(a, b):
    """The names and bytes of two folders."""
    done = subprocess.run(["diff", "-r", a, b], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[:2000] + done.stderr


def digest(place, env=None, *options):
    """The rows of `rechunk --digest PLACE`, which may be a file, sorted; each is its words."""
    return sorted(line.split() for line in tool.run("rechunk", "--digest", *options, place, env=env).ok().out.splitlines())


def digests(place, *options, env=None):
    """{array: digest}"""
    rows = tool.run("rechunk", "--digest", "--json", *options, place, env=env).ok().json()["digests"]
    return {row["name"]: row["digest"] for row in rows}


def allow(*folders):
    """Options that let references point to FOLDERS."""
    return [word for folder in folders for word in ("--allow", folder)]
