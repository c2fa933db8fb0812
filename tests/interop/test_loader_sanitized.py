"""The loader's library under AddressSanitizer, UBSan and ThreadSanitizer, in a real training with PyTorch.

Python and PyTorch are not instrumented: what a sanitizer says counts where one of our functions is in it.
"""

import os
import re
import subprocess
import sys

import pytest
import zarr
import numpy as np

from support import paths

pytestmark = [pytest.mark.long, pytest.mark.skipif(paths.SANITIZED, reason="builds its own sanitized libraries")]

RUNTIME = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
OURS = re.compile(r"\bcm_\w+|libchunkmill_loader")


def runtime(name):
    path = subprocess.run(["cc", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(path):
        pytest.skip(f"{name} is not installed")
    return os.path.realpath(path)


def reports(kind, text):
    """The reports of a sanitizer, each a text."""
    if kind == "thread":
        return re.split(r"^=+$", text, flags=re.M)
    return re.split(r"^(?==+\d+==ERROR|\S+:\d+:\d+: runtime error|(?:Direct|Indirect) leak)", text, flags=re.M)


@pytest.mark.parametrize("kind, folder", [("address", "asan"), ("thread", "tsan")])
def test_a_training_is_clean(tmp_path, kind, folder):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    build = paths.BUILD / folder
    subprocess.run(["make", "NODEPS=1", f"SAN={kind}", f"BUILD={build}", "CFLAGS=-O1 -g", f"-j{os.cpu_count()}", "loader"],
                   cwd=paths.ROOT, check=True, capture_output=True)
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_array("z", data=np.random.default_rng(1).normal(size=(60, 40, 50)).astype("f4"), chunks=(7, 20, 16),
                       dimension_names=("time", "lat", "lon"))
    env = {**os.environ, "PYTHONPATH": str(paths.ROOT / "tools" / "python"), "OMP_NUM_THREADS": "2",
           "CHUNKMILL_LIBRARY": str(build / "lib" / "libchunkmill_loader.so.1"), "PYTHONMALLOC": "malloc",
           "LD_PRELOAD": " ".join([*map(runtime, RUNTIME[kind]), runtime("libstdc++.so.6")]),
           "ASAN_OPTIONS": "exitcode=99:detect_leaks=1:detect_odr_violation=0", "LSAN_OPTIONS": "exitcode=0:max_leaks=0",
           "UBSAN_OPTIONS": "exitcode=99:print_stacktrace=1:halt_on_error=1",
           "TSAN_OPTIONS": "exitcode=0:ignore_noninstrumented_modules=1:die_after_fork=0:history_size=4"}
    done = subprocess.run(["setarch", "-R", sys.executable, str(paths.ROOT / "tests/interop/train_sanitized.py"),
                           str(tmp_path / "a.zarr"), "z"], env=env, capture_output=True, text=True, timeout=1800, check=False)
    ours = [text for text in reports(kind, done.stderr) if OURS.search(text)]
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr[-6000:]
    assert not ours, "\n\n".join(ours)[:6000]
