"""report.md and report.json from what was measured, with the targets beside the figures."""
import json

import measure
from contenders import NC2ZARR, ROOFLINE

MIB = 1 << 20


def number(x):
    return f"{x:.3f}" if x < 1 else f"{x:.2f}" if x < 100 else f"{x:.0f}"


def spread(s):
    """Median, then the quartiles."""
    if s is None:
        return "-"
    return number(s["median"]) + (f" ({number(s['low'])} to {number(s['high'])})" if s["n"] > 1 else "")


ratio_text = spread


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


def seconds_of(row, name):
    return row["contenders"].get(name, {}).get("seconds") or {}


def against(row, name, other):
    """NAME's time over OTHER's, round by round; None where one was not measured."""
    return measure.ratios(seconds_of(row, name), seconds_of(row, other))


def one_line(row):
    parts = [f"{row['input']} ({row['cache']})"]
    for name, entry in row["contenders"].items():
        if entry["seconds"]:
            parts.append(f"{name} {measure.summary(entry['seconds'].values())['median']:.2f} s")
    return ", ".join(parts) + f"; nc2zarr / roofline {ratio_text(against(row, NC2ZARR, ROOFLINE))}"


# ---- targets: what, the bound, the figure, whether it holds ----


def at_most(rows, what, bound, figure, unit=""):
    """FIGURE is a summary or a number; none: nothing was measured."""
    judge(rows, what, f"at most {bound}{unit}", figure, unit, lambda x: x <= bound)


def at_least(rows, what, bound, figure, unit=""):
    judge(rows, what, f"at least {bound}{unit}", figure, unit, lambda x: x >= bound)


def judge(rows, what, target, figure, unit, holds):
    if figure is None:
        rows.append((what, target, "not measured", "-"))
        return
    middle = figure["median"] if isinstance(figure, dict) else figure
    text = spread(figure) if isinstance(figure, dict) else number(figure)
    rows.append((what, target, text + unit, "reached" if holds(middle) else "**not reached**"))


def targets(result, more):
    rows = []
    for row in result["conversions"]:
        name = row["input"] + (", cold" if row["cache"] == "cold" else "")
        at_most(rows, f"recoding over roofline: {name}", 1.15, against(row, NC2ZARR, ROOFLINE))
    for row in result["conversions"]:
        if "xarray" in row["contenders"]:
            name = row["input"] + (", cold" if row["cache"] == "cold" else "")
            what = f"times faster than xarray + dask + zarr-python: {name}"
            at_least(rows, what, 3, against(row, "xarray", NC2ZARR))
        if "nc2zarr-1" in row["contenders"]:
            at_least(rows, "1 to 2 threads, times faster", 1.85, against(row, "nc2zarr-1", NC2ZARR))
    for row in result.get("keep", []):
        figure = measure.ratios(row.get("keep", {}), row.get("copy", {})) if "refused" not in row else None
        if not row.get("in_shards"):
            at_most(rows, f"`--codec keep` over `cp -r`: {row['input']}", 1.2, figure)
    if "index" in result:
        index = result["index"]
        figure = measure.summary(index["seconds"].values()) if index["seconds"] else None
        at_most(rows, f"dry run with {index['chunks']:,} chunks, index and all", 0.5, figure, " s")
    for p in result["peaks"]:
        how = f"--memory {p['limit'] // MIB}MiB" if p["limit"] else "by default"
        if "refused" in p:
            rows.append((f"peak memory {how}: {p['input']}", f"at most {p['bound'] // MIB} MiB", p["refused"], "-"))
        else:
            at_most(rows, f"peak memory {how}: {p['input']}", p["bound"] // MIB, p["peak_nbytes"] / MIB, " MiB")
    for module in more:
        module.targets(result, rows)
    return rows


# ---- the page ----


def conversion(row):
    shape = "x".join(map(str, row["shape"]))
    lines = [f"## {row['input']}, {row['cache']}: {row['title']}", ""]
    target, megabytes = "x".join(map(str, row["target"])), (row["source_nbytes"] / 1e6, row["decoded_nbytes"] / 1e6)
    lines.append(f"{row['variables']} x {shape} to chunks of {target}; "
                 f"{megabytes[0]:.0f} MB on disk, {megabytes[1]:.0f} MB decoded.")  # fmt: skip
    body, refused = [], []
    for name, entry in row["contenders"].items():
        if not entry["seconds"]:
            refused.append(f"- {entry['title']}: {entry.get('refused', 'not measured')}")
            continue
        ours = against(row, name, NC2ZARR)
        body.append((entry["title"], spread(measure.summary(entry["seconds"].values())),
                     spread(against(row, name, ROOFLINE)), "1" if name == NC2ZARR else spread(ours),
                     f"{measure.summary(entry['cpu'])['median']:.2f}", f"{entry['peak_nbytes'] / MIB:.0f}",
                     entry["files"], f"{entry['stored_nbytes'] / 1e6:.1f}"))  # fmt: skip
    head = ("contender", "seconds", "over roofline", "over nc2zarr", "CPU s", "peak MiB", "files", "MB stored")
    lines += ["", table(head, body), *refused]
    if "stages" in row:
        lines += ["", stages(row["stages"])]
    return "\n".join(lines)


def stages(row, ours=NC2ZARR):
    """Seconds of all threads; the roofline's finer stages under the names that OURS has."""
    same = {"read": ["read"], "decode": ["inflate", "unshuffle"], "scatter": ["scatter"], "encode": ["compress"],
            "write": ["write"], "wait": ["wait"]}  # fmt: skip
    body = []
    for name, parts in same.items():
        least, took = sum(row[ROOFLINE][p] for p in parts), row[ours].get(name, 0)
        body.append((name, f"{least:.3f}", f"{took:.3f}"))
    title = "Thread seconds by kind of work, one run each with the clock read at every step:"
    return title + "\n\n" + table(("work", "roofline", ours), body)


def keep(rows):
    body = []
    for row in rows:
        if "refused" in row:
            body.append((row["input"], row["refused"], "", "", "", ""))
            continue
        body.append((row["input"] + (", in shards" if row.get("in_shards") else ""),
                     spread(measure.summary(row["keep"].values())),
                     spread(measure.summary(row["copy"].values())), spread(measure.ratios(row["keep"], row["copy"])),
                     row["files"], f"{row['stored_nbytes'] / 1e6:.1f}"))  # fmt: skip
    head = ("input", "`nc2zarr --codec keep`, s", "`cp -r`, s", "ratio", "files", "MB stored")
    return "## Stored bytes unchanged, beside a copy of the resulting store\n\n" + table(head, body)


def index(row):
    title = f"## The index of {row['chunks']:,} chunks\n\n"
    if "refused" in row:
        return title + row["refused"]
    seconds = spread(measure.summary(row["seconds"].values()))
    return title + (f"A dry run, which opens the file, reads the index, plans, and encodes one chunk: {seconds} s, "
                    f"peak {row['peak_nbytes'] / MIB:.0f} MiB.")  # fmt: skip


def peaks(rows):
    body = []
    for p in rows:
        limit = f"--memory {p['limit'] // MIB}MiB" if p["limit"] else "default"
        body.append((p["input"], limit, f"{p['bound'] / MIB:.0f}", p.get("refused", f"{p['peak_nbytes'] / MIB:.0f}"),
                     f"{p['seconds']:.2f}"))  # fmt: skip
    head = ("input", "limit", "target MiB", "peak MiB", "seconds, once")
    note = "By default the target is 64 MiB, one block, and 16 MiB a thread."
    return "## Memory\n\n" + note + "\n\n" + table(head, body)


def where(result):
    """The machine and the run, in a sentence each."""
    m = result["machine"]
    size = "quick: small inputs, few rounds; for trends, not for judging" if result["quick"] else "full"
    return (f"{m['cpu']}, {result['threads']} of {m['cpus']} CPUs for everyone, {m['memory']}, {m['system']}, "
            f"kernel {m['kernel']}, {m['file system']}. Run: {size}; {result['elapsed']:.0f} s.")  # fmt: skip


def page(result, more):
    lines = ["# nc2zarr, rechunk and readbench, their peers and the roofline", "", where(result)]
    lines.append("")
    lines.append(", ".join(f"{k}: {v}" for k, v in result["versions"].items() if v) + ".")
    lines += ["", METHOD, "", "## Targets", "", table(("what", "target", "measured", ""), targets(result, more)), ""]
    for row in result["conversions"]:
        lines += [conversion(row), ""]
    if result.get("keep"):
        lines += [keep(result["keep"]), ""]
    if "index" in result:
        lines += [index(result["index"]), ""]
    if result["peaks"]:
        lines += [peaks(result["peaks"]), ""]
    for module in more:
        for text in module.sections(result):
            lines += [text, ""]
    return "\n".join(lines)


METHOD = """Every figure is a median with its quartiles; ratios are taken within a round, in which all
contenders convert the same input in turn, with the same chunks, blosc zstd level 2 with byte shuffle, the same
number of threads, and no sync by anyone. Before its time counts, each output was read back by zarr-python and
compared with what netCDF4 reads from the file; later outputs must have as many files and bytes. The roofline is
bare loops over these very chunks that are given the addresses and write as many files. Programs count from start to
exit; the xarray contenders count without their imports, which is in their favour. Warm inputs lie in the page cache,
cold ones do not; both are checked before each run. Peak memory is the process's high-water mark."""


def write(result, folder, more=()):
    """MORE: modules with targets(result, rows) and sections(result) of their own."""
    result["targets"] = [dict(zip(("what", "target", "measured", "verdict"), row)) for row in targets(result, more)]
    with open(f"{folder}/report.json", "w") as f:
        json.dump(result, f, indent=1)
    with open(f"{folder}/report.md", "w") as f:
        f.write(page(result, more))
