#!/usr/bin/env python3
"""circles.py BUILD [--bless]: the circles of files, in which each calls the others over some way.

Reads with `nm` which object of BUILD uses names that which other file defines.  A file that belongs to a
circle cannot be understood, tested or moved alone.  None may reach over several folders.
scripts/circles.txt lists the circles that stand, and may only shrink: a circle that is new or has one
file more is a fault, one that is smaller is taken off the list by --bless.  Needs nothing but Python's own library and nm.
"""
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts/circles.txt"
HEAD = """# Circles of files that stand today: scripts/circles.py reads them in the objects.
# A circle is a block.  It may lose files (scripts/circles.py BUILD --bless) and gain none; a file
# that has another name now is renamed here by hand.
"""


def read_objects(build):
    """{file: {other file: names of it that the first uses}}, for the files that have a source."""
    objects = {}
    for source in sorted(p for top in ("lib", "tools") for p in (ROOT / top).rglob("*.c")):
        name = source.relative_to(ROOT)
        objects[str(build / name.with_suffix(".o"))] = str(name)
    missing = [o for o in objects if not Path(o).is_file()]
    if not objects or missing:
        sys.exit(f"circles.py: {missing[0] if missing else build} is missing: build the programs first")
    # A line is OBJECT: NAME TYPE [VALUE SIZE].
    said = subprocess.run(["nm", "-A", "-g", "-P", *objects], check=True, capture_output=True, text=True).stdout
    defines, uses = defaultdict(set), defaultdict(set)
    for line in said.splitlines():
        place, rest = line.split(": ", 1)
        name, kind = rest.split()[:2]
        if name != "main":  # each program has one, and no file calls it
            (uses if kind in "Uvw" else defines)[name].add(objects[place])
    calls = {file: defaultdict(set) for file in objects.values()}
    for name, users in uses.items():
        for user in users:
            for owner in defines[name] - {user}:
                calls[user][owner].add(name)
    return calls


def find_circles(calls):
    """The strongly connected components of more than one file, as Tarjan finds them."""
    number, low, stack, found = {}, {}, [], []
    for start in calls:
        if start in number:
            continue
        path = [(start, iter(sorted(calls[start])))]
        number[start] = low[start] = len(number)
        stack.append(start)
        while path:
            file, others = path[-1]
            for other in others:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    path.append((other, iter(sorted(calls[other]))))
                    break
                if other in stack:
                    low[file] = min(low[file], number[other])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[file])
                if low[file] == number[file]:
                    at = stack.index(file)
                    circle, stack[at:] = frozenset(stack[at:]), []
                    if len(circle) > 1:
                        found.append(circle)
    return found


def way(calls, circle, start, end):
    """The fewest files of CIRCLE, from START to END, each of which calls the next."""
    before, queue = {start: None}, [start]
    for file in queue:
        for other in sorted(set(calls[file]) & circle - set(before)):
            before[other] = file
            queue.append(other)
    files = [end]
    while before[files[-1]] is not None:
        files.append(before[files[-1]])
    return files[::-1]


def closing_calls(calls, circle, part_of):
    """The shortest round through files of CIRCLE that PART_OF has in several parts, as a sentence."""
    rounds = [[a, *way(calls, circle, b, a)] for a in sorted(circle) for b in sorted(set(calls[a]) & circle)
              if part_of[a] != part_of[b]]
    files = min(rounds, key=len)
    steps = [f"calls {', '.join(sorted(calls[a][b]))} of {b}" for a, b in zip(files, files[1:])]
    return f"{files[0]} {', which '.join(steps)}"


def faults_of(calls, circles, listed):
    """A sentence for each circle that is not within one of LISTED, or not within one folder."""
    for circle in circles:
        folder_of = {file: str(Path(file).parent) for file in circle}
        if len(set(folder_of.values())) > 1:
            yield f"a circle of folders: {closing_calls(calls, circle, folder_of)}; have one of these calls go"
            continue
        part_of = {file: next((known for known in listed if file in known), file) for file in circle}
        parts = set(part_of.values())
        joined = sorted(part for part in parts if isinstance(part, str))
        known = [part for part in parts if not isinstance(part, str)]
        if len(known) == len(parts) == 1:
            continue
        if not known:
            what = f"a new circle of {', '.join(joined)}"
        elif joined:
            what = f"{', '.join(joined)} joined the circle of {min(min(part) for part in known)}"
        else:
            what = f"the circles of {' and '.join(sorted(min(part) for part in known))} became one"
        yield f"{what}: {closing_calls(calls, circle, part_of)}; have one of these calls go"


def read_list():
    blocks, text = [[]], LIST.read_text() if LIST.exists() else ""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [frozenset(block) for block in blocks if block]


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--bless"]):
        sys.exit("usage: scripts/circles.py BUILD [--bless]")
    bless = sys.argv[2:] == ["--bless"]
    calls, listed = read_objects(Path(sys.argv[1])), read_list()
    circles = find_circles(calls)
    first = bless and not LIST.exists()
    faults = [] if first else list(faults_of(calls, circles, listed))
    if faults:
        sys.exit("\n".join(f"lint: {fault}" for fault in faults))
    if set(circles) == set(listed):
        return
    if not bless:
        gone = sorted(file for known in listed for file in known if not any(file in circle for circle in circles))
        sys.exit(f"lint: there are fewer or smaller circles than {LIST.relative_to(ROOT)} says"
                 f"{' (out: ' + ', '.join(gone) + ')' if gone else ''}: "
                 f"shrink the list: run scripts/circles.py {sys.argv[1]} --bless")
    circles.sort(key=lambda circle: (len(circle), min(circle)))
    LIST.write_text(HEAD + "".join("\n" + "".join(f"{file}\n" for file in sorted(c)) for c in circles))
    print(f"{LIST.relative_to(ROOT)}: {len(circles)} circles, {sum(map(len, circles))} files")


if __name__ == "__main__":
    main()
