#!/usr/bin/env python3
"""Outputs of nc2zarr and rechunk, byte for byte as they were blessed.

    golden.py [--bless] [--jobs N] [INPUT...]

Every input goes through every set of options below; table.tsv has of each run the exit
status and three hashes: of all names and bytes of the output, of the same with the
compression undone, and of the dry run's document without what depends on the machine.
The second one is asked where zstd, blosc or another library is not the version that the
table was blessed with, and the first then differs.  --bless writes the table anew.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    import hdf5plugin

    os.environ["HDF5_PLUGIN_PATH"] = hdf5plugin.PLUGIN_PATH

from golden import content, inputs
from support import tool

TABLE = Path(__file__).resolve().parent / "table.tsv"
# The same everywhere: threads and memory decide how work is done.
USUAL = ["-j", "2", "--memory", "256MiB", "--verify", "none"]

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
# Of a dry run's document: what follows from the machine or from how a plan is carried out, and sentences.
DROPPED = {
    "libraries", "version", "memory", "memory_nbytes", "seconds", "threads", "stages", "traffic_nbytes", "bound_nbytes",
    "gap", "reason", "access", "readers", "stored_nbytes", "nbytes", "kind", "order", "planned", "decodes_per_chunk",
}  # fmt: skip
SENTENCES = {"warnings", "notes", "error"}


def escaped(name):
    return re.sub(r"([:,=*\\])", r"\\\1", name)


def short(data):
    return hashlib.sha256(data).hexdigest()[:16]


def tree_hash(root):
    """All names and bytes below ROOT; "-": there is nothing."""
    h, found = hashlib.sha256(), False
    for path in sorted(p for p in root.rglob("*") if not p.is_dir() or p.is_symlink()):
        data = path.read_bytes()
        h.update(f"{path.relative_to(root)}\0{len(data)}\0".encode() + data)
        found = True
    return h.hexdigest()[:16] if found else "-"


def without(document, key=None):
    if key in SENTENCES:
        return bool(document)
    if key == "scratch_nbytes":
        return min(document, 1)  # how much follows from {least}, which the process's own memory moves
    if isinstance(document, dict):
        return {k: without(v, k) for k, v in document.items() if k not in DROPPED}
    if isinstance(document, list):
        return [without(v) for v in document]
    return document


def libraries(name="nc2zarr"):
    """Those that decide the bytes of an output: what fetches and what parses XML does not."""
    every = tool.run(name, "--version").out.splitlines()[1].split(", ")
    return ", ".join(one for one in every if one.split()[0] not in ("libcurl", "expat"))


class Bench:
    """The inputs, made in FOLDER, and the programs that are held against the table."""

    def __init__(self, folder):
        self.folder = folder
        self.files, self.stores = inputs.write(folder / "in", lambda *args: tool.run("nc2zarr", *args))

    def facts(self, name):
        """What an input's options are made of, from the program's own plan."""
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

    def run(self, name, label, facts, known=None):
        """One run: exit status, hash of the output, of its content where the first is not KNOWN, of the dry run."""
        is_store = name in self.stores
        options = [part.format(**{**facts, "least": "{least}"}) for part in (RECHUNK if is_store else NC2ZARR)[label]]
        program = "rechunk" if is_store else "nc2zarr"
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            folder = Path(folder)
            (folder / "in").symlink_to(self.folder / "in")
            if label == "digest":
                r = tool.run(program, *options, f"in/{name}", cwd=folder)
                return r.status, short(r.out.encode()), "-", "-"
            if "{least}" in options:
                least = self.least([program, "-q", *USUAL, *options, f"in/{name}", "out"], folder)
                options = [part.format(least=least) for part in options]
            r = tool.run(program, "-q", *USUAL, *options, f"in/{name}", "out", cwd=folder)
            out = folder / "out"
            bytes_hash = tree_hash(out)
            content_hash = "-" if bytes_hash in ("-", known) else content.digest(out)
            shutil.rmtree(out, ignore_errors=True)
            plan = tool.run(program, "--json", "--dry-run", *USUAL, *options, f"in/{name}", "out", cwd=folder)
            if plan.status != 0:
                return r.status, bytes_hash, content_hash, "-"
            document = without(json.loads(plan.out))
            return r.status, bytes_hash, content_hash, short(json.dumps(document, sort_keys=True).encode())

    def labels(self, name):
        return RECHUNK if name in self.stores else NC2ZARR


class Table:
    def __init__(self):
        self.libraries, self.facts, self.rows = "", {}, {}

    @classmethod
    def read(cls):
        t = cls()
        for line in TABLE.read_text().splitlines():
            kind, *rest = line.split("\t")
            if kind == "libraries":
                t.libraries = rest[0]
            elif kind == "input":
                t.facts[rest[0]] = json.loads(rest[1])
            elif kind == "run":
                name, label, status, *hashes = rest
                t.rows[name, label] = (int(status), *hashes)
        return t

    def write(self):
        lines = ["# Written by golden.py --bless: run, input, options, exit status, hashes of bytes, content and plan."]
        lines.append(f"libraries\t{self.libraries}")
        for name, facts in self.facts.items():
            lines.append(f"input\t{name}\t{json.dumps(facts, ensure_ascii=False)}")
            lines += ["\t".join(map(str, ("run", *key, *row))) for key, row in self.rows.items() if key[0] == name]
        TABLE.write_text("\n".join(lines) + "\n")


def differences(table, same_libraries, key, row):
    """Sentences about a run that is not as it was blessed."""
    want = table.rows.get(key)
    where = f"{key[0]}, {key[1]}"
    if want is None:
        return [f"{where}: not in the table"]
    if row[0] != want[0]:
        return [f"{where}: exit status {row[0]}, blessed {want[0]}"]
    found = []
    if row[1] != want[1] and (same_libraries or row[2] != want[2]):
        found.append(f"{where}: other {'bytes' if row[2] == want[2] else 'content'} than blessed")
    if row[3] != want[3] and same_libraries:
        found.append(f"{where}: another plan than blessed")
    return found


def check(bench, table, name):
    """What differs of one input."""
    same = libraries() == table.libraries
    if name not in table.facts:
        return [f"{name}: not in the table"]
    found = []
    for label in bench.labels(name):
        known = table.rows.get((name, label), ("", ""))[1]
        found += differences(table, same, (name, label), bench.run(name, label, table.facts[name], known))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("input", nargs="*")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        bench = Bench(Path(folder))
        names = args.input or bench.files + bench.stores
        if args.bless:
            table = Table.read() if args.input else Table()
            table.libraries = libraries()
            table.facts |= dict(zip(names, pool.map(bench.facts, names)))
            runs = [(name, label) for name in names for label in bench.labels(name)]
            for key, row in zip(runs, pool.map(lambda k: bench.run(*k, table.facts[k[0]]), runs)):
                table.rows[key] = row
            table.write()
            print(f"{len(names)} inputs, {len(runs)} runs blessed")
            return 0
        table = Table.read()
        if libraries() != table.libraries:
            print(f"blessed with {table.libraries}, this is {libraries()}: contents are compared, not bytes and plans")
        found = [line for lines in pool.map(lambda n: check(bench, table, n), names) for line in lines]
        print("\n".join(found + [f"{len(names)} inputs, {len(found)} differences"]))
        return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
