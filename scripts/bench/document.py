#!/usr/bin/env python3
"""document.py REPORT.json [DOCUMENT]: writes the table of docs/benchmarks.md anew, from a whole run of `make bench`.

It stands between the lines that begin with `<!-- figures` and `<!-- end`; everything else is left as it is.
"""
import argparse
import re
import sys
from pathlib import Path

import figures
import report

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/benchmarks.md"
BETWEEN = re.compile(r"(?<=<!-- figures -->\n).*(?=<!-- end -->\n)", re.S)


def times(f):
    return report.number(f.ratio["median"])


def row(part, work, rows):
    """Contenders that are our own programs in another way are left to the report."""
    bare = [times(f) for f in rows if f.is_bare]
    peers = [f"{f.contender} {times(f)}" for f in rows if not f.is_bare and not f.is_own]
    title = f"{part}: {work}" + (f", {rows[0].title}" if rows[0].title else "")
    return title, report.number(rows[0].ours["median"]), ", ".join(bare) or "-", ", ".join(peers) or "-"


def text(result):
    body = [row(part, work, rows) for (part, work), rows in figures.by_work(figures.of(result)).items()]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items() if version)
    return f"{report.where(result)}\n\n{report.table(('work', 'seconds', 'bare loops', 'peers'), body)}\n\nVersions: {versions}.\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report")
    parser.add_argument("document", nargs="?", type=Path, default=DOCUMENT)
    options = parser.parse_args()
    result = figures.read(options.report)
    if result["quick"]:
        sys.exit(f"document.py: {options.report}: is of a quick run, which is not for judging")
    before = options.document.read_text()
    if BETWEEN.search(before) is None:
        sys.exit(f"document.py: {options.document}: has no lines `<!-- figures -->` and `<!-- end -->`")
    options.document.write_text(BETWEEN.sub(lambda _: text(result), before))


if __name__ == "__main__":
    main()
