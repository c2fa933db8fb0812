"""A program's own documentation: its options as --help and as its man page have them, and its examples."""

import re
import shlex
import subprocess

from . import paths, tool


def options_of_help(program):
    text = tool.run(program, "--help").ok().out
    shown = set()
    for letter, name, alias in re.findall(r"^  (?:-(\w), |    )--([a-z0-9-]+)(?:, --([a-z0-9-]+))?", text, re.M):
        shown.update(filter(None, ["-" + letter if letter else "", "--" + name, "--" + alias if alias else ""]))
    return shown


def width_of_help(program):
    """But for examples, which are to be copied as they are."""
    lines = tool.run(program, "--help").ok().out.splitlines()
    return max(len(line) for line in lines if not line.startswith(f"      {program} "))


def page(program):
    with open(paths.ROOT / "man" / f"{program}.inc") as prose:
        argv = [tool.program(program), "--generate", "man"]
        return subprocess.run(argv, stdin=prose, capture_output=True, text=True, check=True).stdout


def options_of_page(program):
    text = page(program)
    assert text.startswith(f".TH {program.upper()} 1") and ".OPTIONS" not in text
    assert text.index(".SH EXAMPLES") < text.index(".SH DESCRIPTION")
    plain = re.sub(r"\\f[BIR]", "", text).replace("\\-", "-")
    return set(re.findall(r"(?<![\w-])--?[a-z0-9][a-z0-9-]*", " ".join(re.findall(r"^\.TP\n(-.*)$", plain, re.M))))


def examples(program):
    """The arguments of each command in the page's section of examples."""
    text = page(program).replace("\\-", "-").replace("\\(aq", "'").replace("\\&", "").replace("\\e", "\\")
    section = text.split(".SH EXAMPLES")[1].split(".SH ")[0]
    return [shlex.split(line)[1:] for line in section.splitlines() if line.startswith(f"{program} ")]
