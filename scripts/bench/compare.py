#!/usr/bin/env python3
"""compare.py REPORT.json REPORT.json...: the same figures of several machines, or of one before and after, side by side.

A report is what `make bench` leaves in BUILD/bench/report.json.  A figure is a contender's time over ours
in the same round, the median of all; in front of it stand the seconds that ours took.
"""
import argparse

import figures
import report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", nargs="+")
    results = [figures.read(path) for path in parser.parse_args().report]
    for i, result in enumerate(results):
        print(f"{chr(ord('A') + i)}: {report.where(result)}\n")
    found = [{(f.part, f.work, f.who): f for f in figures.of(result)} for result in results]
    keys = dict.fromkeys(key for each in found for key in each)
    rows = []
    for key in keys:
        all_of = [each.get(key) for each in found]
        contender = next(f.contender for f in all_of if f is not None)
        cells = [f"{report.number(f.ours['median'])} s, {report.number(f.ratio['median'])}" if f else "-" for f in all_of]
        rows.append((key[0], key[1], contender, *cells))
    names = [chr(ord("A") + i) for i in range(len(results))]
    print(report.table(("part", "work", "contender", *names), rows))


if __name__ == "__main__":
    main()
