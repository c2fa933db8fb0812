"""The figures of a report, one of a kind: how long each contender took, over ours beside it in the same round."""
import json
from dataclasses import dataclass

import measure
from contenders import NC2ZARR

BARE = ("roofline", "loop", "bare")  # minimal code over the same chunks, by the names of the parts
OWN = ("nc2zarr", "rechunk", "readbench")


@dataclass(frozen=True)
class Figure:
    part: str  # conversions, keep, rechunk, archive, readbench
    work: str
    title: str  # of the work
    who: str
    contender: str  # its title
    seconds: dict  # summaries: median, low, high, n
    ours: dict
    ratio: dict  # theirs / ours

    @property
    def is_bare(self):
        return self.who in BARE

    @property
    def is_own(self):
        """Our own program in another way."""
        return self.who.split("-")[0] in OWN or self.who in ("plain", "one") or self.who.endswith("-1")


def read(path):
    with open(path) as f:
        return json.load(f)


def _figure(part, work, title, who, contender, theirs, ours):
    """None where one of both was not measured; THEIRS and OURS are seconds by round, or by pair."""
    ratio = measure.ratios(theirs, ours) if theirs and ours else None
    if ratio is None:
        return None
    both = [k for k in theirs if k in ours]
    summaries = (measure.summary([side[k] for k in both]) for side in (theirs, ours))
    return Figure(part, work, title, who, contender, *summaries, ratio)


def _of_rounds(result):
    """Conversions: everyone in turn, ours once a round."""
    for row in result.get("conversions", []):
        ours = row["contenders"].get(NC2ZARR, {}).get("seconds")
        work = row["input"] + (", cold" if row["cache"] == "cold" else "")
        for who, entry in row["contenders"].items():
            if who != NC2ZARR:
                yield _figure("conversions", work, row["title"], who, entry["title"], entry.get("seconds"), ours)
    for row in result.get("keep", []):
        title = f"stored bytes unchanged: {row['title']}" + (", in shards" if row.get("in_shards") else "")
        yield _figure("keep", row["input"], title, "copy", "cp -r of the result", row.get("copy"), row.get("keep"))


def _of_pairs(result):
    """Every contender with a run of ours right beside it."""
    rows = {"rechunk": result.get("rechunk", []), "archive": result.get("archive", []),
            "readbench": result.get("readbench", {}).get("rows", [])}  # fmt: skip
    for part, each in rows.items():
        for row in each:
            work = row["work"] if "work" in row else f"{row['kind']}, {row['files']} files"
            for who, entry in row.get("contenders", {}).items():
                yield _figure(part, work, row.get("title", ""), who, entry["title"], entry.get("seconds"), entry.get("partner"))


def of(result):
    return [f for each in (_of_rounds, _of_pairs) for f in each(result) if f is not None]


def by_work(figures):
    """The figures of each work, in the order of the report."""
    works = {}
    for f in figures:
        works.setdefault((f.part, f.work), []).append(f)
    return works
