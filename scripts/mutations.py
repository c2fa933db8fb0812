#!/usr/bin/env python3
"""mutations.py BUILD [--quick] [NAME...]: whether `make check` finds the bugs of scripts/mutations.txt, or those named.

Makes each of them in a copy of the tree, builds, and runs the parts of check, the cheapest first, until one
fails: unit tests and fuzzers' inputs, goldens, the tests that the table names, all tests (not with --quick).  A
failure counts where it repeats itself; at the end each test that found something has to pass without a mutation.
CHUNKMILL_VENV is the virtual environment of the tests (BUILD/venv), CHUNKMILL_WORKERS how many run at once.
Takes a minute or two for each, and as long as check for one that nothing finds; more than three such are a fault.
"""
import concurrent.futures
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "scripts/mutations.txt"
# Each links only those in front of it.
LAYERS = [*re.search(r"^LAYERS := (.*)", (ROOT / "Makefile").read_text(), re.M)[1].split(), "tools"]
OTHER_BUILDS = ("asan", "tsan", "venv*", "wheel", "dist", "bundle", "bench", "logs*", "tmp")
WORKERS = int(os.environ.get("CHUNKMILL_WORKERS") or os.cpu_count() + 1)
MOST_MISSED = 3
HANG = 1800  # seconds
HANG_OF_UNIT = 300  # a busy machine takes a tenth of that
HUNG = 124  # the status of what did


class Mutation(NamedTuple):
    name: str
    file: Path  # below the tree
    line: int
    text: str
    where: list

    @property
    def layer(self):
        return self.file.parts[1] if self.file.parts[0] == "lib" else "tools"


def locate(block):
    """The mutation of BLOCK; ValueError where the source has not just one such line."""
    (name, file, *where), old, new = block[0].split(), block[1].removeprefix("- "), block[2].removeprefix("+ ")
    found = [(path, i) for top in ("lib", "tools") for path in sorted((ROOT / top).rglob(file))
             for i, line in enumerate(path.read_text().splitlines()) if line.strip() == old]
    gone = [test for test in where if not (ROOT / test).exists()]
    if len(found) != 1 or gone:
        raise ValueError(f"{name}: " + (f"{gone[0]} is not there" if gone else f"{file} has {len(found) or 'no'} lines: {old}"))
    path, i = found[0]
    indent = re.match(r"\s*", path.read_text().splitlines()[i])[0]
    return Mutation(name, path.relative_to(ROOT), i, indent + new, where)


def read_table(names):
    blocks, faults, mutations = re.sub(r"^#.*\n", "", TABLE.read_text(), flags=re.M).strip().split("\n\n"), [], []
    for block in blocks:
        try:
            mutations.append(locate(block.splitlines()))
        except ValueError as fault:
            faults.append(str(fault))
    unknown = set(names) - {m.name for m in mutations}
    if faults or unknown:
        sys.exit("\n".join(f"mutations.py: {f}" for f in faults or [f"there is no mutation {n}" for n in sorted(unknown)]))
    return [m for m in mutations if not names or m.name in names]


def copy_tree(build, to):
    """The sources and what was built, with their times, so that only what a mutation changes is built anew."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True)
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)
    shutil.copytree(build, to / "build", symlinks=True, ignore=shutil.ignore_patterns(*OTHER_BUILDS))
    (to.parent / "shared").symlink_to(ROOT.parent / "shared")


class Tree:
    def __init__(self, build, folder):
        self.root = Path(folder).resolve() / "tree"
        self.python = Path(os.environ.get("CHUNKMILL_VENV") or build / "venv").resolve() / "bin/python"
        self.tmp = self.root.parent / "tmp"
        self.env = {k: v for k, v in os.environ.items() if k not in ("CHUNKMILL_LONG", "CHUNKMILL_CI", "CHUNKMILL_ALL")}
        self.env |= {"CHUNKMILL_BUILD": str(self.root / "build"), "CMOCKA_MESSAGE_OUTPUT": "tap"}
        copy_tree(build, self.root)

    def run(self, *command, timeout=HANG):
        """(exit status, what was said)."""
        with subprocess.Popen(command, cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True) as p:  # fmt: skip
            try:
                said, _ = p.communicate(timeout=timeout)
                return p.returncode, said
            except subprocess.TimeoutExpired:
                return HUNG, ""
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(p.pid, signal.SIGKILL)  # what it left behind, too

    def make(self, *targets):
        status, said = self.run("make", "-s", f"-j{os.cpu_count()}", "NODEPS=1", "BUILD=build", *targets)
        if status != 0:
            sys.exit(f"mutations.py: make {' '.join(targets)[:200]} failed:\n{said[-4000:]}")

    def put(self, m, mutated):
        lines = (ROOT / m.file).read_text().splitlines(keepends=True)
        if mutated:
            lines[m.line] = m.text + "\n"
        (self.root / m.file).write_text("".join(lines))

    # ---- the parts of check: each gives the test that failed, or None ----

    def unit_programs(self, layers):
        return [str(source.relative_to(self.root).with_suffix("")) for layer in layers
                for folder in ("tests/unit", "tests") for source in sorted((self.root / folder / layer).glob("test_*.c"))]

    def program(self, name):
        """A unit test program, or a fuzzer."""
        inputs = [f"tests/fuzz/corpus/{Path(name).name}"] if "/fuzz/" in name else []
        status, said = self.run(f"build/{name}", *inputs, timeout=HANG_OF_UNIT)
        failed = re.search(r"^not ok \d+ - (\S+)", said, re.M)
        return f"{name} {failed[1] if failed else status}" if status != 0 else None

    def units(self, programs):
        self.make(*(f"build/{p}" for p in programs))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for failed in concurrent.futures.as_completed([pool.submit(self.program, p) for p in programs]):
                if failed.result():
                    pool.shutdown(wait=True, cancel_futures=True)
                    return failed.result()
        return None

    def pytest(self, *tests):
        status, said = self.run(str(self.python), "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-rfE", "-n", str(WORKERS),
                                "--dist", "worksteal", f"--basetemp={self.tmp}", *tests)  # fmt: skip
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.M)
        if status not in (0, HUNG) and not failed:
            sys.exit(f"mutations.py: pytest {' '.join(tests)} ended with {status}:\n{said[-4000:]}")
        return failed[1] if failed else tests[0] if status == HUNG else None

    def again(self, part, test):
        return self.program(test.split()[0]) if part == "unit" else self.pytest(test)


def parts_of(tree, m, quick):
    """(name, function) of each part of check, the cheapest first."""
    above = LAYERS[LAYERS.index(m.layer) + 1:]  # the programs of others do not link it
    fuzzers = [str(f.relative_to(tree.root).with_suffix("")) for f in sorted(tree.root.glob("tests/fuzz/fuzz_*.c"))]
    yield "unit", lambda: tree.units(tree.unit_programs([m.layer]))
    yield "unit", lambda: tree.units(tree.unit_programs(above) + fuzzers)
    yield "goldens", lambda: tree.make("test-programs") or tree.pytest("tests/golden")
    yield "tests", lambda: tree.pytest(*m.where)
    if not quick:
        yield "tests", lambda: tree.pytest("tests", "--ignore=tests/golden", "--ignore=tests/scripts/test_mutations.py")


def find(tree, m, quick):
    """(part, test) of what finds M; (None, None): nothing."""
    for part, try_part in parts_of(tree, m, quick):
        failed = try_part()
        if failed and tree.again(part, failed):
            return part, failed
    return None, None


def main(build, names, quick):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the copy goes, and what runs in it
    mutations, found = read_table(names), {}
    print(f"{len(mutations)} mutations, in a copy of {ROOT}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        tree = Tree(build, folder)
        for m in mutations:
            begun = time.monotonic()
            tree.put(m, True)
            part, test = found[m.name] = find(tree, m, quick)
            tree.put(m, False)
            print(f"{m.name:<28} {part or 'NOT CAUGHT':<10} {test or '':<60} {time.monotonic() - begun:5.0f} s", flush=True)
        tree.make("test-programs")
        for name, (part, test) in found.items():
            if test and tree.again(part, test):
                print(f"{name}: {test} fails without it, too")
                found[name] = (None, None)
    count = Counter(part for part, _ in found.values())
    print(f"{len(found)} mutations, {count['unit']} caught by unit, {count['goldens']} by goldens, "
          f"{count['tests']} by tests, {count[None]} not caught")  # fmt: skip
    sys.exit(count[None] > MOST_MISSED)


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--quick"]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    main(Path(arguments[0]).resolve(), arguments[1:], "--quick" in sys.argv)
