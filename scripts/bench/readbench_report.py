"""Results of readbench.py, as targets and sections of the report."""

import measure
import report


def rows_of(result):
    return result.get("readbench", {}).get("rows", [])


def ratio(entry, what="seconds"):
    """This contender's time divided by readbench's in the same round."""
    ours = {"seconds": "partner", "cpu": "partner_cpu"}[what]
    return measure.ratios(entry[what], entry[ours]) if entry.get(what) else None


# ---- targets ----


def judge(rows, what, factor, entry):
    """By the clock; beside it what the CPU time says, which others on the machine change less."""
    report.at_least(rows, what, factor, ratio(entry))
    if cpu := ratio(entry, "cpu"):
        name, bound, measured, verdict = rows[-1]
        rows[-1] = (name, bound, f"{measured}; by CPU time {report.spread(cpu)}", verdict)


def target(rows, row, who, entry):
    name, factor = row["work"], entry["factor"]
    if who == "bare":
        judge(rows, f"readbench, of the roofline: {name}", factor, entry)
    elif who == "plain":
        judge(rows, f"readbench, {row['title']}, of {entry['title']}", factor, entry)
    elif factor and who not in ("zarr", "zarr-fast"):
        judge(rows, f"readbench, times faster than {entry['title']}: {name}", factor, entry)


def zarr_best(row):
    """Of several settings of zarr-python the one that takes the least."""
    found = [row["contenders"][who] for who in ("zarr", "zarr-fast") if who in row["contenders"]]
    return min((e for e in found if e.get("seconds")), key=lambda e: ratio(e)["median"], default={})


def targets(result, rows):
    for row in rows_of(result):
        for who, entry in row["contenders"].items():
            target(rows, row, who, entry)
        factor = row["contenders"].get("zarr", {}).get("factor")
        if factor:
            judge(rows, f"readbench, times faster than the best of zarr-python: {row['work']}", factor, zarr_best(row))
        if row["loader"] == "planned" and "decodes_per_chunk" in row:
            report.at_most(rows, f"readbench, decodes of a chunk in an epoch: {row['work']}", 1, row["decodes_per_chunk"])


# ---- sections ----

METHOD = """A pass reads all samples of a work once; ratios are taken within pairs, one pass of a contender and one
of readbench right beside it, in turn this one first and that one (in quick runs all contenders of a round share one
pass of readbench). All read the same samples in the same batches with as many workers, of the standard input as
nc2zarr writes it, blosc zstd 2 with byte shuffle, from the page cache. Before its time counts, each contender has
opened the store, has read all samples once, and the CRC32C of every one was compared. CPU seconds are those of all
threads and processes: on a machine that others use too they say more than the clock. Roofline: as many threads that
open, pread, decode with libzstd, unshuffle and copy, with the shards open and their indices read. Peers deliver
lists of arrays; the worker processes collate batches in shared memory, two under way each, as PyTorch's DataLoader
does with persistent workers. Load is the machine's mean over a minute, which counts the contenders too."""


def sections(result):
    rows = rows_of(result)
    texts = ["# readbench\n\n" + METHOD] if rows else []
    texts += [section(row) for row in rows]
    disk = result.get("readbench", {}).get("disk")
    return [*texts, disk_section(disk)] if disk else texts


def text_of(lengths):
    return "x".join(map(str, lengths))


def what(row):
    shards = f" in shards of {text_of(row['shard'])}" if row["shard"] else ""
    return (
        f"Chunks of {text_of(row['chunk'])}{shards}; {row['samples']} samples of {text_of(row['sample'])}, order "
        f"{row['order']}, in batches of {row['batch']}, by {row['workers']} workers."
    )


def section(row):
    lines = [f"## readbench, {row['work']}: {row['title']}", ""]
    if "refused" in row:
        return "\n".join([*lines, row["refused"]])
    lines.append(what(row))
    if row["load"]:
        lines.append(f"Load of the machine: {report.spread(measure.summary(row['load']))}.")
    body, refused, own, own_cpu = [], [], [], []
    least = ratio(row["contenders"].get("bare", {}))
    for entry in row["contenders"].values():
        if not entry["seconds"]:
            refused.append(f"- {entry['title']}: {entry.get('refused', 'not measured')}")
            continue
        own += entry["partner"].values()
        own_cpu += entry["partner_cpu"].values()
        body.append(line(row, entry["title"], entry["seconds"].values(), entry["cpu"].values(), least, entry))
    if own:
        body.insert(0, line(row, "readbench", own, own_cpu, least))
    head = ("contender", "seconds", "samples/s", "over readbench", "over roofline", "CPU s", "CPU over readbench's",
            "pairs")  # fmt: skip
    return "\n".join([*lines, "", report.table(head, body), *refused])


def line(row, title, seconds, cpu, least, entry=None):
    """LEAST: what the roofline takes over readbench, and so what anybody else can be over it at best."""
    middle, over = measure.summary(seconds), ratio(entry) if entry else {"median": 1, "n": 1}
    return (title, report.spread(middle), report.number(row["samples"] / middle["median"]), report.spread(over),
            report.number(over["median"] / least["median"]) if least else "-",
            f"{measure.summary(cpu)['median']:.2f}", report.spread(ratio(entry, "cpu")) if entry else "1",
            len(entry["seconds"]) if entry else "")  # fmt: skip


def disk_section(disk):
    body = []
    for entry in disk.values():
        rates = measure.summary([rate / 1e6 for rate in entry["rates"].values()]) if entry["rates"] else None
        body.append((entry["title"], entry.get("refused") or report.spread(rates), len(entry["rates"])))
    return "## readbench, disk: cold\n\n" + report.table(("reader", "MB/s", "rounds"), body)
