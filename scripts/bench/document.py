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


LEGEND = """Medians of one run. Ratios are speed-ups, other time / our time, taken within pairs of runs side by side;
bare loops do the same work with minimal code."""


def times(f):
    """Two digits that count."""
    x = f.ratio["median"]
    return f"{x:.2f}" if x < 1.05 else f"{x:.1f}" if x < 10 else f"{x:.0f}"


def row(part, work, rows):
    """None where all others are our own programs in another way, which are left to the report."""
    bare = [times(f) for f in rows if f.is_bare]
    peers = [f"{f.contender}: {times(f)}" for f in rows if not f.is_bare and not f.is_own]
    title = f"{part}, {work}" + (f": {rows[0].title}" if rows[0].title else "")
    return (title, report.number(rows[0].ours["median"]), ", ".join(bare), "; ".join(peers)) if bare or peers else None


def text(result):
    body = [row(part, work, rows) for (part, work), rows in figures.by_work(figures.of(result)).items()]
    table = report.table(("work", "seconds", "bare loops", "peers"), [r for r in body if r is not None])
    versions = ", ".join(v if v.startswith(name) else f"{name} {v}" for name, v in result["versions"].items() if v)
    return f"{LEGEND}\n{report.where(result)}\n\n{table}\n\nVersions: {versions}.\n"


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
