"""Rows of stores that grow: whole, and continued by the same command after a kill at each point.

A row of a class of calls stands for every point of it, for all must end in the same bytes.  Where
a shard's chunks lie depends on where a run was killed: of shards all must end in the same content.
"""

import shutil
import signal
import tempfile
from pathlib import Path

import numpy as np

from append import files as F
from golden import content, rows
from golden.rows import Row, said, tree_hash
from support import failio, tool

QUIET = ["-q", "-j", "1", "--memory", "256MiB", "--verify", "none"]
LAYOUTS = {k: F.KILLED[k] for k in ("v2", "v3", "shards")}
KILLS = ("rename", "unlink", "write")
MOST = 1000  # points of a class, which are all of them


def forget(root):
    """Removes the plan of parts, which names places and processes of this machine."""
    for name in ("plan", "complete"):
        (root / "s.zarr.chunkmill" / name).unlink(missing_ok=True)
    return root


def operations(files):
    """The commands that make one change, in order, without the store."""
    append = ["--append", "time", *files["new"]]
    return {
        "append": [append],
        "replace": [["--replace", "time=2:5", files["final"]]],
        "parts": [["--part", f"{k}/3", *append] for k in (1, 2, 3)],
    }


class Bench(rows.Bench):
    """A store of 6 days in each layout, 30 days more in three files, of which some are all fill, and 3 days again."""

    def __init__(self, folder):
        super().__init__(folder)
        data = F.values(14, 12)
        data[2:8] = 1e20
        (folder / "in").mkdir()
        made = {name: F.day(folder / "in" / f"{name}.nc", *days, **more) for name, days, more in (
            ("a", (0, 3), {}), ("b", (3, 3), {}), ("c", (6, 8), {}), ("d", (14, 12), {"data": data}), ("e", (26, 10), {}),
            ("final", (2, 3), {"data": F.values(2, 3) + np.float32(0.5)}),
        )}  # fmt: skip
        self.commands = operations({"new": [made[k] for k in "cde"], "final": made["final"]})
        for layout, options in LAYOUTS.items():
            (folder / layout).mkdir()
            tool.nc2zarr(*QUIET, *options, made["a"], made["b"], folder / layout / "s.zarr").ok()
        self.names = [f"{operation} {layout}" for operation in self.commands for layout in LAYOUTS]

    def continued(self, operation, root, begun, nth, killed, kind, state):
        """Kills command number KILLED at call NTH of KIND, and runs all of them again; None, or what went wrong."""
        commands = self.commands[operation]
        failio.renew(begun, root)
        store = root / "s.zarr"
        done = failio.inject("nc2zarr", *QUIET, *commands[killed], store, root=root, state=state, kind=kind, nth=nth, way="kill").done
        if done.status not in (-signal.SIGKILL, 128 + signal.SIGKILL):
            return f"not killed: {done}"
        for command in commands:
            done = tool.nc2zarr(*QUIET, *command, store)
            if done.status != 0:
                return str(done)
        return None

    def killed_at_each(self, operation, layout, kind, want, folder):
        """The row of KIND: that of the whole run where every point leads to its bytes."""
        commands, state, root, npoints = self.commands[operation], folder / "state", folder / "work", 0
        for k in range(0, len(commands), 2):  # of parts the one that publishes the plan, and the one that finishes
            begun = folder / f"begun{k}"
            failio.renew(self.folder / layout, root)
            for command in commands[:k]:
                tool.nc2zarr(*QUIET, *command, root / "s.zarr").ok()
            failio.renew(root, begun)
            whole = failio.inject("nc2zarr", *QUIET, *commands[k], root / "s.zarr", root=root, state=state)
            for nth in failio.spread(whole.counts[kind], MOST):
                wrong = self.continued(operation, root, begun, nth, k, kind, state)
                found = tree_hash(forget(root))
                same = content.digest(root) == want.content if layout == "shards" else found == want.bytes
                if wrong or not same:
                    return Row(1, found, content.digest(root), text=f"{kind} {nth} of {commands[k][:2]}: {wrong or 'another store'}\n")
                npoints += 1
            shutil.rmtree(begun)
        return Row(0, want.bytes, want.content) if npoints else Row(0)

    def run(self, name, facts, blessed):
        operation, layout = name.split(" ")
        got = {}
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            folder = Path(folder)
            root = folder / "work"
            failio.renew(self.folder / layout, root)
            reports = [tool.nc2zarr(*QUIET[1:], *command, root / "s.zarr") for command in self.commands[operation]]
            text = "".join(said(r, folder).replace(f"{self.folder}/", "") for r in reports)
            whole = Row(max(r.status for r in reports), tree_hash(forget(root)), content.digest(root), text=text)
            got["whole"] = whole
            for kind in KILLS:
                got[kind] = self.killed_at_each(operation, layout, kind, whole, folder)
        return got
