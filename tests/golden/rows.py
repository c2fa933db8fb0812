"""Rows of the golden tables: what one run did, how rows are kept, and what differs from what was blessed."""

import difflib
import hashlib
import json
import re
from pathlib import Path
from typing import NamedTuple

from golden import content
from support import paths, tool

FOLDER = Path(__file__).resolve().parent / "blessed"
# The same everywhere: threads and memory decide how work is done.
USUAL = ["-j", "2", "--memory", "256MiB", "--verify", "none"]
# Of a dry run's document: what follows from the machine or from how a plan is carried out, and sentences.
DROPPED = {
    "libraries", "version", "memory", "memory_nbytes", "seconds", "threads", "stages", "traffic_nbytes", "bound_nbytes",
    "gap", "reason", "scratch_nbytes", "access", "readers", "stored_nbytes", "nbytes", "kind", "order", "planned", "decodes_per_chunk", "chunks_suit",
}  # fmt: skip
SENTENCES = {"warnings", "notes", "error"}
# Times in a report: its last line, and the time of statistics.
TIMES = re.compile(r"^ +[0-9.]+ (?:[num]?s|min|h), .*\n| \([0-9.]+ [num]?s, [0-9.]+ % of the work\)", re.M)


class Row(NamedTuple):
    """Hashes are of all names and bytes that were written, of the same with the compression undone, of a document."""

    status: int
    bytes: str = "-"
    content: str = "-"
    document: str = "-"
    text: str | None = None  # what was said, which is kept as it is


def short(data):
    return hashlib.sha256(data).hexdigest()[:16]


def tree_hash(root):
    """All names and bytes below ROOT; "-": there is nothing."""
    h, found = hashlib.sha256(), False
    for path in sorted(p for p in root.rglob("*") if not p.is_dir() or p.is_symlink()):
        data = content.data_of(path)
        h.update(f"{path.relative_to(root)}\0{len(data)}\0".encode() + data)
        found = True
    return h.hexdigest()[:16] if found else "-"


def written(root, blessed):
    """Hashes of bytes and content below ROOT; the latter is not asked for where the first is that of the row BLESSED."""
    found = tree_hash(root)
    if blessed and blessed.bytes == found:
        return found, blessed.content
    return found, "-" if found == "-" else content.digest(root)


def without(document, dropped=DROPPED, key=None):
    """DOCUMENT but for members that are DROPPED; sentences are those of a plan, which may name amounts of memory."""
    if key in SENTENCES and dropped is DROPPED:
        return bool(document)
    if key == "scratch_nbytes":
        return min(document, 1)  # how much follows from {least}, which the process's own memory moves
    if isinstance(document, dict):
        return {k: without(v, dropped, k) for k, v in document.items() if k not in dropped}
    if isinstance(document, list):
        return [without(v, dropped) for v in document]
    return document


def plan_hash(run):
    """Of a dry run's document; "-": it failed."""
    if run.status != 0:
        return "-"
    return short(json.dumps(without(json.loads(run.out)), sort_keys=True).encode())


def said(run, folder):
    """Output of a RUN in FOLDER, without times and places of this machine."""
    return TIMES.sub("", (run.out + run.err).replace(str(folder), ".").replace(f"{paths.BUILD}/bin/", ""))


def libraries(name="nc2zarr"):
    """Libraries that decide the bytes of an output: all but those that fetch and parse XML."""
    every = tool.run(name, "--version").out.splitlines()[1].split(", ")
    return ", ".join(one for one in every if one.split()[0] not in ("libcurl", "expat"))


class Bench:
    """Makes the rows of one kind, from inputs in FOLDER: `names`, and run(name, facts, blessed) -> {label: Row}."""

    def __init__(self, folder):
        self.folder = folder
        self.names = []

    def facts(self, name):
        """The facts that NAME's options are made of, kept with its rows."""
        return {}

    def close(self):
        pass


class Table:
    """The rows of one kind, {(name, label): Row}, in KIND.tsv; their texts in KIND.txt."""

    def __init__(self, kind):
        self.tsv, self.txt = FOLDER / f"{kind}.tsv", FOLDER / f"{kind}.txt"
        self.libraries, self.facts, self.rows = "", {}, {}

    @classmethod
    def read(cls, kind):
        t = cls(kind)
        texts = t.read_texts()
        for line in t.tsv.read_text().splitlines():
            what, *rest = line.split("\t")
            if what == "libraries":
                t.libraries = rest[0]
            elif what == "input":
                t.facts[rest[0]] = json.loads(rest[1])
            elif what == "run":
                name, label, status, *hashes = rest
                t.rows[name, label] = Row(int(status), *hashes, texts.get(f"{name}: {label}"))
        return t

    def names(self):
        return list(dict.fromkeys(name for name, _ in self.rows))

    def of(self, name):
        """{label: Row}"""
        return {label: row for (n, label), row in self.rows.items() if n == name}

    def put(self, name, facts, rows):
        """The ROWS of NAME, in its place where it has one."""
        names = self.names()
        every = {n: self.of(n) for n in names} | {name: rows}
        self.rows = {(n, label): row for n, of_n in every.items() for label, row in of_n.items()}
        if facts:
            self.facts[name] = facts

    def read_texts(self):
        texts = {}
        for line in self.txt.read_text().split("\n")[1:] if self.txt.exists() else []:
            if line.startswith("## "):
                lines = texts.setdefault(line[3:], [])
            elif line.startswith("    "):
                lines.append(line[4:])
            elif line == "\\":  # the text does not end with a newline
                lines.append(None)
        return {k: "".join(f"{x}\n" for x in v if x is not None)[: -1 if None in v else None] for k, v in texts.items()}

    def write(self):
        lines = ["# Written by golden.py --bless: run, input, options, exit status, hashes of bytes, content and document."]
        lines.append(f"libraries\t{self.libraries}")
        texts = ["# Written by golden.py --bless: what runs said."]
        for name in self.names():
            if name in self.facts:
                lines.append(f"input\t{name}\t{json.dumps(self.facts[name], ensure_ascii=False)}")
            for label, row in self.of(name).items():
                lines.append("\t".join(map(str, ("run", name, label, *row[:4]))))
                if row.text is not None:
                    texts += [f"## {name}: {label}", *(f"    {x}" for x in row.text.removesuffix("\n").split("\n") if row.text)]
                    texts += ["\\"] if row.text and not row.text.endswith("\n") else []
        self.tsv.parent.mkdir(exist_ok=True)
        self.tsv.write_text("\n".join(lines) + "\n")
        if len(texts) > 1:
            self.txt.write_text("\n".join(texts) + "\n")


def text_difference(want, got):
    """Changed lines alone, the first of them."""
    lines = difflib.unified_diff((want or "").splitlines(), (got or "").splitlines(), lineterm="", n=0)
    return "".join(f"\n    {x}" for x in [x for x in lines if not x.startswith(("---", "+++", "@@"))][:12])


def differences(where, want, row, same_libraries):
    """Sentences about a ROW that is not as it was blessed.  Of other libraries content and words must be the same."""
    if want is None:
        return [f"{where}: not in the table"]
    found = []
    if row.status != want.status:
        found.append(f"{where}: exit status {row.status}, blessed {want.status}")
    elif row.bytes != want.bytes and (same_libraries or row.content != want.content):
        found.append(f"{where}: other {'bytes' if row.content == want.content else 'content'} than blessed")
    if row.document != want.document and same_libraries:
        found.append(f"{where}: another document than blessed")
    # A report of what was written tells of stored bytes.
    if row.text != want.text and (same_libraries or row.bytes == "-"):
        found.append(f"{where}: other words than blessed{text_difference(want.text, row.text)}")
    return found


def check(bench, table, name, same_libraries):
    """The differences of NAME, as sentences."""
    want = table.of(name)
    got = bench.run(name, table.facts.get(name, {}), want)
    found = [f"{name}, {label}: blessed, and no longer run" for label in want if label not in got]
    for label, row in got.items():
        found += differences(f"{name}, {label}", want.get(label), row, same_libraries)
    return found
