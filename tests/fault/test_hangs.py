"""A program that does not end says, in the test's failure, where it was, and leaves nothing behind."""

from pathlib import Path

import numpy as np
import pytest
import zarr

from support import hang, tool


@pytest.mark.long(ci=1)
def test_what_it_waits_for_is_told(tmp_path):
    store = tmp_path / "t.zarr"
    zarr.create_group(str(store)).create_array("t", data=np.zeros((8, 8), "f4"), chunks=(4, 4))
    args = ["--sample", "4x4", "--engine", "exec:sleep 1000", "--workers", 1, "--no-out", "--step-time", "0ms", store]
    with pytest.raises(hang.Hung) as caught:
        tool.run("readbench", *args, timeout=3)
    told = str(caught.value)
    assert "readbench" in told and "sleep 1000" in told, told
    assert told.count("\nprocess ") >= 2 and "system call" in told, told
    pids = [int(line.split()[1].rstrip(":")) for line in told.splitlines() if line.startswith("process ")]
    for pid in pids:
        assert not hang.text_of(Path(f"/proc/{pid}/cmdline")), f"{pid} is left"
