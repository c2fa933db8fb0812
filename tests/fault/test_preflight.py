"""Libraries that crash, loop or take all memory over a file: each is one sentence of the tool."""

import os
import signal
import subprocess
import time

import pytest

from support import paths, tool

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="the sanitizers' own wrappers come first")


TOOLS = {
    "nc2zarr": lambda path, out: ("nc2zarr", path, out),
    "chunkcalc": lambda path, out: ("chunkcalc", path),
    "rechunk": lambda path, out: ("rechunk", "--digest", path),
    "readbench": lambda path, out: ("readbench", "--no-out", "--sample", "1", "--batches", "1", path),
}
ENDS = {
    "crash": ("libhdf5 crashed while opening it (signal 11)", "the file is damaged"),
    "abort": ("libhdf5 crashed while opening it (signal 6)",),
    "exit": ("libhdf5 ended the process",),
    "kill": ("was killed (signal 9)",),
    "memory": ("cannot open it",),
    "loop": ("libhdf5 does not finish opening it", "20 s of CPU time"),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("name", TOOLS)
def test_libraries_that_fail(badlibrary, tmp_path, out, name, how):
    if how == "loop" and not paths.LONG:
        pytest.skip("takes 20 s of CPU time: CHUNKMILL_LONG=1")
    path = paths.CORPUS / "type_nc4_f4.nc"
    done = tool.run(*TOOLS[name](path, out), env={"LD_PRELOAD": str(badlibrary), "BADLIBRARY": how}, cwd=tmp_path)
    done.fails(1, "type_nc4_f4.nc", *ENDS[how])
    assert "nobody shall see" not in done.out + done.err
    assert list(tmp_path.iterdir()) == []


def test_stops_while_a_library_loops(badlibrary, tmp_path, out):
    """SIGTERM ends both, at once."""
    env = tool.environment({"LD_PRELOAD": str(badlibrary), "BADLIBRARY": "loop"})
    argv = [tool.program("nc2zarr"), str(paths.CORPUS / "type_nc4_f4.nc"), str(out)]
    with subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True) as running:
        children = f"/proc/{running.pid}/task/{running.pid}/children"
        child = ""
        while not child:
            time.sleep(0.01)
            with open(children) as f:
                child = f.read().strip()
        running.send_signal(signal.SIGTERM)
        err = running.stderr.read()
        assert running.wait() == -signal.SIGTERM, err
    assert "stopped by SIGTERM" in err
    assert not os.path.exists(f"/proc/{child}")
