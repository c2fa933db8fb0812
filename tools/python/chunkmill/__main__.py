"""python -m chunkmill record LOG SCRIPT ARGUMENTS: runs a Python program, and records what it reads by zarr-python.

-m MODULE may stand for SCRIPT.  Processes that the program starts record, too.
"""
from __future__ import annotations

import os
import runpy
import sys

from . import _record


def main() -> None:
    """Runs a script or module of the command line, and records its reads in a log."""
    words = sys.argv[1:]
    if len(words) < 3 or words[0] != "record" or words[1].startswith("-") or words[2:] == ["-m"]:
        sys.exit("usage: python -m chunkmill record LOG SCRIPT [ARGUMENTS]")
    log, program = os.path.abspath(words[1]), words[2:]
    os.environ[_record.VARIABLE] = log
    _record.record_all(log)
    if program[0] == "-m":
        sys.argv = program[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = program
    sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
    runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main()
