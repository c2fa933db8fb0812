#!/usr/bin/env python3
"""docs.py BUILD FOLDER: README.md, docs/ and the programs' help as pages of HTML in FOLDER.

The pages need neither a network nor a server.  Markdown is read as these documents are written: headings,
paragraphs, lists, tables, indented code, links, pictures, code, bold.  A link that leads nowhere is an error.
"""

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# (heading of the navigation, [(document, or a program; its title there)])
SITE = [
    ("", [("README.md", "Chunkmill"), ("docs/gallery.md", "Gallery")]),
    ("Guides", [("docs/install.md", "Install"), ("docs/converting.md", "Converting"), ("docs/archives.md", "Archives"),
                ("docs/training.md", "Training"), ("docs/loader.md", "Loader"), ("docs/replay.md", "Replay"),
                ("docs/passport.md", "Passport"), ("docs/scale.md", "Many machines"), ("docs/readers.md", "Readers"),
                ("docs/icechunk.md", "Icechunk"), ("docs/benchmarks.md", "Benchmarks")]),
    ("Reference", [(program, program) for program in ("nc2zarr", "chunkcalc", "rechunk", "readbench")]),
    ("Project", [("lib/README.md", "Architecture"), ("CONTRIBUTING.md", "Contributing"), ("CHANGELOG.md", "Changes")]),
]  # fmt: skip

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--card:#f5f7f9;--ink:#1c2127;--soft:#5b6570;--line:#dde2e7;--accent:#0072b2}
@media(prefers-color-scheme:dark){:root{--paper:#14181d;--card:#1c2229;--ink:#e8eaed;--soft:#a3abb5;--line:#303841;--accent:#5cb3ea}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.55 system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif}
.page{display:grid;grid-template-columns:11rem minmax(0,52rem);gap:0 3rem;max-width:70rem;margin:0 auto;padding:0 1.2rem}
nav{padding:2rem 0;font-size:.93rem}nav h2{margin:1.2rem 0 .2rem;font-size:.8rem;color:var(--soft);font-weight:600}
nav a{display:block;padding:.15rem 0;color:inherit;text-decoration:none}nav a:hover{color:var(--accent)}
nav a[aria-current]{color:var(--accent);font-weight:650}
main{padding:2rem 0 4rem}a{color:var(--accent)}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 1rem}h2{font-size:1.35rem;margin:2.6rem 0 .5rem}h3{font-size:1.1rem;margin:1.8rem 0 .4rem}
h1,h2,h3,p,li{overflow-wrap:anywhere}td,th{overflow-wrap:break-word}
img{max-width:100%;height:auto;border:1px solid var(--line);border-radius:8px}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.88em}
code{background:var(--card);border-radius:4px;padding:.05em .3em}
pre{background:var(--card);border-radius:8px;padding:.8rem 1rem;overflow-x:auto;line-height:1.45}pre code{padding:0;background:none;font-size:1em}
.table{overflow-x:auto}table{border-collapse:collapse;font-size:.93rem}
th,td{text-align:left;vertical-align:top;padding:.4rem 1rem .4rem 0;border-bottom:1px solid var(--line);min-width:5rem}
@media(max-width:52rem){.page{display:block}nav{padding:1rem 0;border-bottom:1px solid var(--line);columns:2}
nav div{break-inside:avoid}nav h2{margin-top:.4rem}main{padding-top:1.2rem}}
@media print{nav{display:none}.page{display:block}pre{white-space:pre-wrap}}
"""


def slug(heading):
    """As GitHub names it."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).lower()).replace(" ", "-")


# ---- markdown -------------------------------------------------------------------------------------


class Inline:
    """Text within a block; LINK says where a target leads."""

    def __init__(self, link):
        self.link = link

    def __call__(self, text):
        parts = re.split(r"(`+)(.+?)\1", text)
        out = [self.plain(parts[0])]
        for code, after in zip(parts[2::3], parts[3::3]):
            out.append(f"<code>{html.escape(code.strip())}</code>")
            out.append(self.plain(after))
        # Links and bold may hold code.
        text = "".join(out)
        text = re.sub(r"!\[([^\]]*)\]\(([^)]+)\)", lambda m: f'<img alt="{m[1]}" src="{self.link(m[2])}">', text)
        text = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", lambda m: f'<a href="{self.link(m[2])}">{m[1]}</a>', text)
        return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)

    @staticmethod
    def plain(text):
        return html.escape(re.sub(r"\\([|*_`<])", r"\1", text))


def starts_block(line):
    return re.match(r"#{1,3} |\||[-*] |\d+\. ", line) is not None


def take_code(lines, out):
    body = []
    while lines and (lines[0].startswith("    ") or not lines[0].strip()):
        body.append(lines.pop(0)[4:])
    out.append(f"<pre><code>{html.escape(chr(10).join(body).rstrip())}</code></pre>")


def take_table(lines, out, inline):
    rows = []
    while lines and lines[0].startswith("|"):
        cells = re.split(r"(?<!\\)\|", lines.pop(0).strip())[1:-1]
        rows.append([inline(c.strip()) for c in cells])
    head, body = rows[0], rows[2:]
    out.append('<div class="table"><table>')
    if any(head):
        out.append("<thead><tr>" + "".join(f"<th>{c}</th>" for c in head) + "</tr></thead>")
    out.append("<tbody>" + "\n".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in body) + "</tbody></table></div>")


def take_list(lines, out, inline):
    mark = re.match(r"([-*]|\d+\.) ", lines[0])[1]
    tag = "ul" if mark in "-*" else "ol"
    out.append(f"<{tag}>")
    while lines and re.match(r"[-*] " if tag == "ul" else r"\d+\. ", lines[0]):
        item = [lines.pop(0).split(" ", 1)[1]]
        while lines and re.match(r" {2,3}\S", lines[0]):
            item.append(lines.pop(0).strip())
        out.append(f"<li>{inline(' '.join(item))}</li>")
    out.append(f"</{tag}>")


def render(text, link):
    lines, out, inline = text.splitlines(), [], Inline(link)
    while lines:
        line = lines[0]
        heading = re.match(r"(#{1,3}) (.*)", line)
        if not line.strip():
            lines.pop(0)
        elif heading:
            lines.pop(0)
            n = len(heading[1])
            out.append(f'<h{n} id="{slug(heading[2])}">{inline(heading[2])}</h{n}>')
        elif line.startswith("    "):
            take_code(lines, out)
        elif line.startswith("|"):
            take_table(lines, out, inline)
        elif starts_block(line):
            take_list(lines, out, inline)
        else:
            words = [lines.pop(0)]
            while lines and lines[0].strip() and not starts_block(lines[0]):
                words.append(lines.pop(0).strip())
            out.append(f"<p>{inline(' '.join(words))}</p>")
    return "\n".join(out)


# ---- the site -------------------------------------------------------------------------------------


def name_of(document):
    if document == "README.md":
        return "index.html"
    if document == "lib/README.md":
        return "architecture.html"
    return f"{Path(document).stem.lower()}.html"


PAGES = {document: name_of(document) for _, group in SITE for document, _ in group}


class Site:
    def __init__(self, build, folder):
        self.build, self.folder = Path(build), Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def copy(self, path):
        """A file of the project that is no page; of a folder, a page that lists it."""
        target = self.folder / "files" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, dirs_exist_ok=True)
            names = "".join(f'<li><a href="{html.escape(n)}">{html.escape(n)}</a></li>' for n in sorted(os.listdir(path)))
            target = target / "index.html"
            target.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{path.name}</title><ul>{names}</ul></html>')
        else:
            shutil.copy(path, target)
        return os.path.relpath(target, self.folder)

    def link(self, document, target):
        if re.match(r"\w+:", target):
            return target
        file, _, anchor = target.partition("#")
        path = (ROOT / document).parent.joinpath(file).resolve() if file else ROOT / document
        if not path.exists():
            sys.exit(f"docs.py: {document}: {target}: there is no such file")
        known = str(path.relative_to(ROOT))
        where = PAGES.get(known) or self.copy(path)
        return where + (f"#{anchor}" if anchor else "")

    def navigation(self, current):
        out = []
        for heading, group in SITE:
            links = "".join(
                f'<a href="{PAGES[d]}"{" aria-current=page" if d == current else ""}>{html.escape(title)}</a>' for d, title in group
            )
            out.append(f"<div>{f'<h2>{heading}</h2>' if heading else ''}{links}</div>")
        return "".join(out)

    def body(self, document):
        if "." in document:
            return render((ROOT / document).read_text(), lambda target: html.escape(self.link(document, target)))
        said = subprocess.run([self.build / "bin" / document, "--help"], capture_output=True, text=True, check=True, env={"COLUMNS": "80"})
        return f'<h1>{document}</h1>\n<p>As <code>{document} --help</code> and <code>man {document}</code> say it.</p>\n<pre><code>{html.escape(said.stdout)}</code></pre>'

    def write(self, document, title):
        page = (
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width,initial-scale=1">\n'
            f'<link rel="icon" href="data:,">\n<title>{html.escape(title)}{"" if title == "Chunkmill" else " · Chunkmill"}</title>\n<style>{STYLE}</style>\n</head>\n'
            f'<body>\n<div class="page">\n<nav>{self.navigation(document)}</nav>\n<main>\n{self.body(document)}\n</main>\n</div>\n</body>\n</html>\n'
        )
        (self.folder / PAGES[document]).write_text(page)


def main(build, folder):
    site = Site(build, folder)
    for _, group in SITE:
        for document, title in group:
            site.write(document, title)
    print(f"{folder}/index.html: {len(PAGES)} pages")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
