"""Rows of a bucket: keys and bodies after a store was written there, grew and was read; what is read from there."""

import tempfile
from pathlib import Path

from append import files as F
from golden import rows
from golden.growth import LAYOUTS, QUIET
from golden.rows import Row, said, written
from support import objects, tool

STORE, FILES = "s3://bucket/s.zarr", "s3://bucket/in"
# Each changes the bucket, and leaves a row.
WRITES = {
    "write": [["a.nc", "b.nc", STORE]],
    "append": [["--append", "time", "c.nc", STORE]],
    "parts": [["--part", f"{k}/3", "d.nc", "e.nc", "s3://bucket/p.zarr"] for k in (2, 3, 1)],
    "replace": [["--replace", "time=2:4", "final.nc", STORE]],
}
# Programs that read the bucket, and write beside.
READS = {
    "digest": ["rechunk", "--digest", STORE],
    "rechunk": ["rechunk", *QUIET, "--codec", "zstd:3", "--chunks", "tas:5x2x7", STORE, "out"],
    "file": ["nc2zarr", *QUIET, f"{FILES}/a.nc", "out"],
    "survey": ["nc2zarr", "--survey", f"{FILES}/a.nc", f"{FILES}/b.nc"],
    "archive": ["nc2zarr", *QUIET, f"{FILES}/a.nc", f"{FILES}/b.nc", "out"],
    "check": ["nc2zarr", "-q", "--check", "--subset", "time=:3", f"{FILES}/a.nc", STORE],
    "parts that add": ["nc2zarr", "--part", "1/2", "--append", "time", f"{FILES}/d.nc", STORE],
    "absent": ["rechunk", *QUIET, "s3://bucket/nothing.zarr", "out"],
    "another bucket": ["rechunk", *QUIET, "s3://other/s.zarr", "out"],
}


class Bench(rows.Bench):
    def __init__(self, folder):
        super().__init__(folder)
        self.names = list(LAYOUTS)
        for name, first, n in (("a", 0, 3), ("b", 3, 3), ("c", 6, 5), ("d", 11, 6), ("e", 17, 4), ("final", 2, 2)):
            F.day(folder / f"{name}.nc", first, n, data=F.values(first, n) + (name == "final"))

    def run(self, name, facts, blessed):
        got, server = {}, objects.Server()
        env = server.environment()
        for path in self.folder.glob("*.nc"):
            data = path.read_bytes()
            server.objects[f"in/{path.name}"] = (data, objects.etag_of(data))
        for label, commands in WRITES.items():
            layout = LAYOUTS[name] if label in ("write", "parts") else []
            done = [tool.nc2zarr(*QUIET, *layout, *command, cwd=self.folder, env=env) for command in commands]
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                folder = Path(folder)
                for prefix in ("s.zarr", "p.zarr", "s.zarr.chunkmill"):
                    server.get_folder(prefix, folder / prefix)
                keys = "".join(f"{key}\n" for key in server.keys() if not key.startswith("in/"))
                text = "".join(said(r, self.folder) for r in done) + keys
                got[label] = Row(max(r.status for r in done), *written(folder, blessed.get(label)), text=text)
        for label, (program, *command) in READS.items():
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                r = tool.run(program, *command, cwd=folder, env=env)
                text = said(r, folder).replace(server.url, "http://SERVER")
                got[label] = Row(r.status, *written(Path(folder), blessed.get(label)), text=text)
        server.close()
        return got
