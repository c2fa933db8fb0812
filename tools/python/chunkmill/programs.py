"""The programs, for notebooks: each runs, and gives what --json says as objects."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Union

from .errors import Error, NotFoundError

Operand = Union[str, "os.PathLike[str]"]
Report = dict[str, Any]


class ProgramError(Error):
    """A program failed; the text is what it said.

    Attributes:
        returncode: the status that it ended with.
        report: its report where it made one, or None.
    """

    def __init__(self, text: str, returncode: int, report: Report | None) -> None:
        super().__init__(text, "program")
        self.returncode = returncode
        self.report = report


def find(name: str) -> str:
    """The program of the wheel, or of CHUNKMILL_BIN, or the one in PATH."""
    folder = os.environ.get("CHUNKMILL_BIN")
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")
    for place in (folder, own):
        if place and os.path.exists(os.path.join(place, name)):
            return os.path.join(place, name)
    found = shutil.which(name)
    if found is None:
        raise NotFoundError(f"{name}: not found; install the wheel, or name its folder in CHUNKMILL_BIN")
    return found


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{k}={v}" for k, v in value.items())
    return os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)


def arguments(options: Mapping[str, Any]) -> list[str]:
    """sample={"time": 4}, overwrite=True, chunks=["a:64x64", "b:8"] as words of a command line."""
    words = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words.append(f"{option}={_words(one)}")
    return words


def run(name: str, operands: Iterable[Operand], options: Mapping[str, Any]) -> Report:
    """Runs a program with --json, and gives its document."""
    command = [find(name), "--json", *arguments(options), "--", *(_words(o) for o in operands)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    report: Report | None = None
    if done.stdout.strip():
        try:
            report = json.loads(done.stdout)
        except ValueError:
            report = None
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip()
        raise ProgramError(words or f"{name}: ended with status {done.returncode}", done.returncode,
                           report)
    if report is None:
        raise ProgramError(f"{name}: printed no report", done.returncode, None)
    return report


def convert(source: Operand, target: Operand, **options: Any) -> Report:
    """nc2zarr: a NetCDF file to a Zarr store.  convert("a.nc", "a.zarr", overwrite=True)"""
    return run("nc2zarr", [source, target], options)


def rechunk(source: Operand, target: Operand, **options: Any) -> Report:
    """rechunk: rechunk("a.zarr", "b.zarr", chunks="time=full,lat=16,lon=16")"""
    return run("rechunk", [source, target], options)


def chunkcalc(*store: Operand, **options: Any) -> Report:
    """chunkcalc: chunkcalc("a.zarr", sample={"time": 4, "lat": 64, "lon": 64}, recommend=True)"""
    return run("chunkcalc", store, options)


def readbench(*stores: Operand, **options: Any) -> Report:
    """readbench: readbench("a.zarr", sample={"time": 4, "lat": 64, "lon": 64}, batch=32)"""
    if "out" not in options:
        options["no_out"] = True
    return run("readbench", stores, options)


def main() -> None:
    """The wheel's commands: the program takes the place of this process."""
    name = os.path.basename(sys.argv[0])
    path = find(name)
    os.execv(path, [name, *sys.argv[1:]])
