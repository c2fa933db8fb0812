"""Rows of single inputs: every file through every set of options of nc2zarr, every store through those of rechunk."""

import json
import re
import shutil
import tempfile
from pathlib import Path

from golden import inputs, rows
from golden.rows import USUAL, Row, plan_hash, short, written
from support import tool

# Of an input come {var}, its first array of most dimensions, {dim} and {n}, that array's first dimension,
# {last}, its last, and {slices}, {thirds} and {series}, chunks for it; {least} is the least memory.
NC2ZARR = {
    "default": [],
    "v2": ["--zarr-format", "2", "--skip-unsupported"],
    "raw": ["--codec", "none", "--chunks", "auto:2KiB", "--no-consolidate", "--skip-unsupported"],
    "shards": ["-j", "1", "--chunks", "auto:512B", "--shards", "auto:4KiB", "--skip-unsupported"],
    "keep": ["--codec", "keep", "--skip-unsupported"],
    "keep2": ["--codec", "keep:gzip", "--zarr-format", "2", "--skip-unsupported"],
    "unpack": ["--unpack", "all", "--codec", "zstd:3", "--keepbits", "9", "--skip-unsupported"],
    "dtype": ["--dtype", "{var}:float64", "--codec", "blosc:lz4:5:bitshuffle", "--fill-value", "{var}:3"],
    "subset": ["--subset", "{dim}=0:{n}:2", "--chunks", "{dim}=1", "--rename", "{var}=renamed", "--codec", "gzip:1"],
    "join": ["--char", "join", "--sample", "{dim}=1", "--codec", "blosc:zlib:4:shuffle", "--skip-unsupported"],
    "uint8": ["--char", "uint8", "--chunks", "source", "--variable", "{var}", "--zarr-format", "2"],
    "small": ["-j", "1", "--memory", "{least}", "--chunks", "{dim}=2", "--verify", "full"],
}
RECHUNK = {
    "copy": [],
    "auto": ["--chunks", "auto:1KiB"],
    "other": ["--zarr-format", "{other}"],
    "codec": ["--codec", "zstd:5", "--chunks", "source"],
    "shards": ["-j", "1", "--zarr-format", "3", "--chunks", "auto:512B", "--shards", "auto:4KiB"],
    "slices": ["--codec", "none", "--chunks", "{var}:{slices}"],
    "unsharded": ["--shards", "none", "--codec", "blosc:zlib:3:shuffle"],
    "v2": ["--zarr-format", "2", "--codec", "gzip:3", "--chunks", "auto:2KiB"],
    "one": ["--variable", "{var}", "--codec", "blosc:lz4:9:bitshuffle"],
    "series": ["--chunks", "{var}:{series}", "--verify", "full"],
    "small": ["-j", "1", "--memory", "{least}", "--chunks", "{var}:{thirds}"],
    "digest": ["--digest"],
}


def escaped(name):
    return re.sub(r"([:,=*\\])", r"\\\1", name)


class Bench(rows.Bench):
    """The inputs, made in FOLDER."""

    def __init__(self, folder):
        super().__init__(folder)
        self.files, self.stores = inputs.write(folder / "in", lambda *args: tool.run("nc2zarr", *args))
        self.names = self.files + self.stores

    def facts(self, name):
        """The facts that an input's options are made of, from the program's own plan."""
        program = "rechunk" if name in self.stores else "nc2zarr"
        more = [] if name in self.stores else ["--skip-unsupported"]
        r = tool.run(program, "--dry-run", "--json", *more, f"in/{name}", "x", cwd=self.folder)
        facts = {k: "none" for k in ("var", "dim", "last", "slices", "thirds", "series")} | {"n": "1", "other": "2"}
        if r.status != 0:
            return facts
        document = json.loads(r.out)
        arrays = document.get("variables") or document.get("arrays") or []
        for a in sorted(arrays, key=lambda a: (len(a["shape"]), min(a["shape"] + [1])), reverse=True)[:1]:
            rank = len(a["shape"])
            facts["var"] = escaped(a.get("source", a["name"]))
            if rank == 0:
                break
            dims = [d["name"] if isinstance(d, dict) else d for d in a["dimensions"]] or [None]
            if dims[0] and dims[-1]:
                facts |= {"dim": escaped(dims[0]), "last": escaped(dims[-1])}
            facts["n"] = str(a["shape"][0])
            facts["slices"] = "x".join(["1"] + ["full"] * (rank - 1))
            facts["series"] = "x".join(["full"] + ["5"] * (rank - 1))
            facts["thirds"] = "x".join(["3"] + ["full"] * (rank - 1))
        if document.get("source", {}).get("zarr_format") == 2:
            facts["other"] = "3"
        return facts

    def least(self, argv, cwd):
        """ARGV with the least memory that the program says it needs, and a little more."""
        r = tool.run(*[part.format(least="1MiB") for part in argv], cwd=cwd)
        needs = [float(n) * 1024 ** "KMG".index(unit) for n, unit in re.findall(r"([0-9.]+) ([KMG])iB", r.err)]
        return f"{int(max(needs, default=65536) * 1.02) + 512}KiB"

    def run_one(self, name, label, facts, blessed):
        is_store = name in self.stores
        options = [part.format(**{**facts, "least": "{least}"}) for part in (RECHUNK if is_store else NC2ZARR)[label]]
        program = "rechunk" if is_store else "nc2zarr"
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            folder = Path(folder)
            (folder / "in").symlink_to(self.folder / "in")
            if label == "digest":
                r = tool.run(program, *options, f"in/{name}", cwd=folder)
                return Row(r.status, short(r.out.encode()))
            if "{least}" in options:
                least = self.least([program, "-q", *USUAL, *options, f"in/{name}", "out"], folder)
                options = [part.format(least=least) for part in options]
            r = tool.run(program, "-q", *USUAL, *options, f"in/{name}", "out", cwd=folder)
            hashes = written(folder / "out", blessed)
            shutil.rmtree(folder / "out", ignore_errors=True)
            plan = tool.run(program, "--json", "--dry-run", *USUAL, *options, f"in/{name}", "out", cwd=folder)
            return Row(r.status, *hashes, plan_hash(plan))

    def run(self, name, facts, blessed):
        return {label: self.run_one(name, label, facts, blessed.get(label)) for label in (RECHUNK if name in self.stores else NC2ZARR)}
