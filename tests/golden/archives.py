"""Rows of archives: every family surveyed as text and as a document, converted, stacked, counted, referred to, split."""

import json
import tempfile
import threading
from pathlib import Path

from archive import files as F
from golden import rows
from golden.families import FAMILIES
from golden.rows import USUAL, Row, said, without, written
from support import paths, tool

# Of a survey's document: what follows from the machine.
SURVEY_DROPPED = {"libraries", "version", "seconds"}
# {stack} and {per} are the family's own.
WAYS = {
    "survey": ["--survey"],
    "survey as JSON": ["--survey", "--json"],
    "convert": [],
    "stack": ["{stack}"],
    "statistics": ["--statistics", "--zarr-format", "2"],
    "references": ["--virtual", "json", "--base-url", "s3://bucket/in"],
    "store for each": ["-q", "--store-per", "{per}"],
}


def lines(document):
    """A survey's DOCUMENT, a line for each member, and for each element of those that are lists."""
    found = []
    for key, value in without(document, SURVEY_DROPPED).items():
        if isinstance(value, list):
            found += [f"{key}:"] + [f"  {json.dumps(x, ensure_ascii=False)}" for x in value]
        else:
            found.append(f"{key}: {json.dumps(value, ensure_ascii=False)}")
    return "".join(f"{x}\n" for x in found)


class Bench(rows.Bench):
    def __init__(self, folder):
        super().__init__(folder)
        self.names = list(FAMILIES)
        self.lock = threading.Lock()  # netCDF4 is for one thread at a time

    def archive(self, name):
        """Its folder, written where it is asked for first."""
        folder = self.folder / "archives" / name.replace(" ", "_")
        with self.lock:
            if not folder.exists():
                folder.mkdir(parents=True)
                F.write_all(FAMILIES[name].files, folder)
                if FAMILIES[name].more:
                    FAMILIES[name].more(folder)
        return folder

    def run_one(self, source, family, way, blessed):
        options = [x for part in WAYS[way] for x in (family.stack if part == "{stack}" else [part.format(per=family.per) if part == "{per}" else part])]
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            folder = Path(folder)
            (folder / "in").symlink_to(source)
            inputs = ["in/*"] if any("." not in f.name for f in family.files) else ["in"]
            if way == "references":
                r = tool.run("nc2zarr", *options, *family.options, *inputs, "out.json", cwd=folder)
            elif "--survey" in options:
                r = tool.run("nc2zarr", *options, *family.options, *inputs, cwd=folder)
            else:
                r = tool.run("nc2zarr", *options, *USUAL, *family.options, *family.layout, *inputs, "out", cwd=folder)
            text = lines(json.loads(r.out)) + r.err if "--json" in options else said(r, folder)
            (folder / "in").unlink()
            return Row(r.status, *written(folder, blessed), text=text.replace(str(source), "in").replace(f"{paths.BUILD}/bin/", ""))

    def run(self, name, facts, blessed):
        source = self.archive(name)
        return {way: self.run_one(source, FAMILIES[name], way, blessed.get(way)) for way in WAYS}
