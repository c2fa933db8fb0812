#!/usr/bin/env python3
"""Outputs of the programs and of the loader, byte for byte as they were blessed.

    golden.py [--bless] [--jobs N] [KIND[/NAME]...]

Kinds of rows are modules here: single inputs, archives, stores that grow, buckets, batches of the
loader, messages.  blessed/KIND.tsv has of each run the exit status and hashes: of all names and
bytes of the output, of the same with the compression undone, and of a document without what
depends on the machine.  The second one is asked where zstd, blosc or another library is not the
version that the table was blessed with, and the first then differs.  blessed/KIND.txt has what
was said, word by word.  --bless writes them anew.
"""

import argparse
import concurrent.futures
import importlib
import os
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[n] / more) for n, more in ((1, ""), (2, "tools/python"))]
    import hdf5plugin

    os.environ["HDF5_PLUGIN_PATH"] = hdf5plugin.PLUGIN_PATH

from golden import rows

KINDS = ("single", "archives", "growth", "buckets", "batches", "messages")


def bench_of(kind, folder):
    """Runs the rows of KIND: `names`; facts(NAME), what its options are made of; run(NAME, facts, blessed rows)."""
    (folder / kind).mkdir()
    return importlib.import_module(f"golden.{kind}").Bench(folder / kind)


def chosen(asked, kind, names):
    """Those of NAMES that the command line names; all where it names none."""
    if not asked or kind in asked:
        return names
    return [name for name in names if f"{kind}/{name}" in asked]


def bless(bench, kind, names, pool, libraries):
    table = rows.Table(kind) if names == bench.names else rows.Table.read(kind)
    table.libraries = libraries
    facts = list(pool.map(bench.facts, names))
    for name, f, got in zip(names, facts, pool.map(lambda n, f: bench.run(n, f, {}), names, facts)):
        table.put(name, f, got)
    table.write()
    return []


def compare(bench, kind, names, pool, libraries):
    table = rows.Table.read(kind)
    same = libraries == table.libraries
    if not same:
        print(f"{kind}: blessed with {table.libraries}, this is {libraries}: contents are compared, not bytes and plans")
    found = [f"{name}: blessed, and not there" for name in table.names() if name not in bench.names]
    return found + [line for lines in pool.map(lambda n: rows.check(bench, table, n, same), names) for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("rows", nargs="*")
    args = parser.parse_args()
    libraries, total = rows.libraries(), 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for kind in KINDS:
            if args.rows and not any(r.split("/")[0] == kind for r in args.rows):
                continue
            begun = time.monotonic()
            bench = bench_of(kind, Path(folder).resolve())
            names = chosen(args.rows, kind, bench.names)
            found = (bless if args.bless else compare)(bench, kind, names, pool, libraries)
            bench.close()
            total += len(found)
            done = "blessed" if args.bless else f"{len(found)} differences"
            print("\n".join(found + [f"{kind}: {len(names)} names, {done}, {time.monotonic() - begun:.0f} s"]), flush=True)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
