"""Libraries that make calls of a program fail (tests/fault/*.c), as LD_PRELOAD can name them."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from . import paths


@functools.cache
def library(name):
    """That of tests/fault/NAME.c; by a link where the build's own path holds a blank or a colon, which separate names there."""
    path = paths.BUILD / "tests" / "lib" / f"{name}.so"
    if not set(" \t:").intersection(str(path)):
        return path
    folder = tempfile.mkdtemp(prefix="chunkmill-preload-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    link = Path(folder) / path.name
    link.symlink_to(path)
    return link
