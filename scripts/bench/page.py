"""report.html from what was measured: a page without network or scripts, a plot for each work."""
import html
import math

import figures
import report

WIDTH, LABEL, ROW, LEAST, MOST = 860, 330, 22, 0.5, 100  # a plot in pixels, and its axis
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100)

STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;width:100%;font-size:13px}td,th{text-align:left;padding:.2rem .6rem .2rem 0;
border-bottom:1px solid #ddd;vertical-align:top}.no{color:#a40000;font-weight:600}svg{width:100%;height:auto}
svg text{font:12px system-ui,sans-serif;fill:currentColor}.bare{fill:#7a8ca0}.peer{fill:#2f6fb0}.own{fill:#a8b8a0}
.axis{stroke:currentColor;opacity:.18}.one{stroke:#c04000;stroke-width:1.5}.range{stroke:currentColor;stroke-width:1.5}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181a1c}td,th{border-color:#3a3d40}.no{color:#ff7a6b}}
@media print{section{break-inside:avoid}}"""


def x_of(ratio):
    """A logarithmic axis; figures beyond it end at its border."""
    inside = min(max(ratio, LEAST), MOST)
    return LABEL + (WIDTH - LABEL - 70) * math.log(inside / LEAST) / math.log(MOST / LEAST)


def bar(f, y):
    kind = "bare" if f.is_bare else "own" if f.is_own else "peer"
    left, right = sorted((x_of(1), x_of(f.ratio["median"])))
    middle, low, high = y + ROW / 2, x_of(f.ratio["low"]), x_of(f.ratio["high"])
    name = html.escape(f.contender)
    return (f'<text x="{LABEL - 8}" y="{middle + 4:.1f}" text-anchor="end">{name}</text>'
            f'<rect class="{kind}" x="{left:.1f}" y="{y + 4}" width="{max(right - left, 1):.1f}" height="{ROW - 8}"/>'
            f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>'
            f'<text x="{max(right, high) + 6:.1f}" y="{middle + 4:.1f}">{report.number(f.ratio["median"])}</text>')  # fmt: skip


def plot(rows):
    """Bars from 1, our time: to the right who is slower, with the quartiles."""
    height = ROW * len(rows) + 26
    axis = "".join(f'<line class="{"one" if t == 1 else "axis"}" x1="{x_of(t):.1f}" x2="{x_of(t):.1f}" y1="0" y2="{height - 20}"/>'
                   f'<text x="{x_of(t):.1f}" y="{height - 5}" text-anchor="middle">{t:g}</text>' for t in TICKS)  # fmt: skip
    bars = "".join(bar(f, i * ROW) for i, f in enumerate(rows))
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="times over ours">{axis}{bars}</svg>'


def section(part, work, rows):
    title = f"{part}: {work}" + (f", {rows[0].title}" if rows[0].title else "")
    ours = report.spread(rows[0].ours)
    return f"<section><h2>{html.escape(title)}</h2><p>Ours: {ours} s. Bars: their time over ours.</p>{plot(rows)}</section>"


def targets(result):
    rows = "".join(f"<tr><td>{html.escape(t['what'])}<td>{html.escape(t['target'])}<td>{html.escape(t['measured'])}"
                   f'<td{"" if t["verdict"] == "reached" else " class=no"}>{html.escape(t["verdict"].strip("*"))}</tr>'
                   for t in result["targets"])  # fmt: skip
    return f"<h2>Targets</h2><table><tr><th>what<th>target<th>measured<th></tr>{rows}</table>"


def page(result):
    works = figures.by_work(figures.of(result))
    parts = "".join(section(part, work, rows) for (part, work), rows in works.items())
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>Chunkmill beside its peers</title><style>{STYLE}</style><h1>Chunkmill beside its peers and bare loops</h1>"
            f"<p>{html.escape(report.where(result))}</p><p>{html.escape(report.METHOD)}</p>{parts}{targets(result)}</html>")  # fmt: skip
